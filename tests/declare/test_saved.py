"""Declared types in SavedModels, checkpoints, pickles and notebook cells that run twice."""

import datetime
import textwrap
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.saved_model.nested_structure_coder import NotEncodableError

import extensor as xt
from extensor._declare import static_data
from extensor._declare.static_data import key
from extensor.errors import DTypeError
from tests.samples.declared import (
    STATIC,
    Counter,
    Course,
    Labelled,
    Masked,
    Pantry,
    Rows,
    Scaled,
    labelled,
)

# TensorFlow warns of every registered spec that it writes.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type tests.samples.declared:UserWarning:tensorflow"
)


def doubled(value):
    return xt.replace(value, values=value.values * 2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns a saved model with one function for each kind of static data."""
    module = tf.Module()
    for i, kind in enumerate(STATIC):
        # A value's spec, with a number of rows that is not known.
        spec = Labelled.Spec(
            tf.TensorSpec([None]), labelled(kind).__tf_type_spec__()._parts["label"]
        )
        setattr(module, f"double_{i}", tf.function(doubled, input_signature=[spec]))
    module.scale = tf.function(
        lambda x: x.inner.values * x.factor,
        input_signature=[
            Scaled.Spec(Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool)), 3.0)
        ],
    )
    pantry = Pantry({"oil": [1.0]}, (2, 3), [tf.ragged.constant([[1]]), {"a": Course.MAIN}])
    module.identity = tf.function(lambda x: x, input_signature=[pantry.__tf_type_spec__()])
    folder = str(tmp_path_factory.mktemp("declared") / "model")
    tf.saved_model.save(module, folder)
    return folder


@pytest.mark.whole("starts a process")
def test_a_model_with_static_data_of_every_kind_is_loaded_in_a_fresh_process(run_python, saved):
    run_python(f"""
        import tensorflow as tf
        from extensor._declare.static_data import key
        from tests.samples.declared import STATIC, Course, Labelled, Masked, Pantry, Scaled
        from tests.samples.declared import labelled

        loaded = tf.saved_model.load({saved!r})
        for i, kind in enumerate(STATIC):
            value = labelled(kind, [1.0, 2.0, 3.0])
            result = getattr(loaded, f"double_{{i}}")(value)
            assert type(result) is Labelled
            assert result.values.numpy().tolist() == [2.0, 4.0, 6.0]
            assert key(result.label) == key(value.label), (result.label, value.label)
        scaled = loaded.scale(Scaled(Masked([1.0], [True]), 3.0))
        assert scaled.numpy().tolist() == [3.0]
        pantry = Pantry({{"oil": [1.0]}}, (2, 3), [tf.ragged.constant([[1]]), {{"a": Course.MAIN}}])
        again = loaded.identity(pantry)
        assert again.pairs[1] == 3 and again.anything[1] == {{"a": Course.MAIN}}
        assert again.amounts["oil"].numpy().tolist() == [1.0]
    """)


@pytest.mark.whole("starts a process")
def test_a_process_without_the_type_gets_a_warning_and_stand_ins(run_python, saved):
    run_python(f"""
        import warnings
        import tensorflow as tf
        import extensor
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = tf.saved_model.load({saved!r})
        said = {{str(warning.message) for warning in caught}}
        assert any("'tests.samples.declared.Labelled' is not registered" in text for text in said)
        assert any("`import tests.samples.declared`" in text for text in said), said
        assert loaded.scale({{"inner": {{"values": [2.0], "mask": [True]}}}}).numpy() == [6.0]
        pantry = loaded.identity.concrete_functions[0].structured_outputs
        assert "tests.samples.declared" in repr(pantry), pantry
    """)


ABSENT = """
import enum
import sys
import types
from typing import NamedTuple

module = types.ModuleType("kitchen")
sys.modules["kitchen"] = module

class Size(enum.Enum):
    BIG = 1

class Pair(NamedTuple):
    a: int

for cls in (Size, Pair):
    cls.__module__ = "kitchen"
    setattr(module, cls.__name__, cls)
"""


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize(("data", "what"), [("Size.BIG", "enum"), ("Pair(3)", "class")])
def test_a_class_of_static_data_that_is_not_importable_is_an_error(
    run_python, tmp_path, data, what
):
    run_python(f"""
        exec({ABSENT!r})
        import tensorflow as tf
        from tests.samples.declared import Labelled
        module = tf.Module()
        spec = Labelled([1.0], {{"a": {data}}}).__tf_type_spec__()
        module.identity = tf.function(lambda x: x, input_signature=[spec])
        tf.saved_model.save(module, {str(tmp_path)!r})
    """)
    name = data[:4]
    run_python(f"""
        import tensorflow as tf
        import tests.samples.declared
        import extensor as xt
        try:
            tf.saved_model.load({str(tmp_path)!r})
        except xt.ExtensorError as error:
            assert isinstance(error, ValueError)
            assert "kitchen.{name}: expected the {what} of saved static data" in str(error), error
            assert "No module named 'kitchen'" in str(error), error
        else:
            raise AssertionError("the model was loaded")
    """)


@pytest.mark.whole("starts a process")
def test_a_class_whose_fields_changed_is_an_error(run_python, tmp_path):
    for fields, code in [
        (
            "a: tf.Tensor",
            """
            module = tf.Module()
            module.f = tf.function(lambda x: x, input_signature=[Cup(1).__tf_type_spec__()])
            tf.saved_model.save(module, FOLDER)
            """,
        ),
        (
            "b: tf.Tensor",
            """
            try:
                tf.saved_model.load(FOLDER)
            except xt.ExtensorError as error:
                assert "Cup.Spec.b: expected a spec or static data" in str(error), error
            else:
                raise AssertionError
            """,
        ),
    ]:
        run_python(
            f"FOLDER = {str(tmp_path)!r}\nimport tensorflow as tf, extensor as xt\n"
            f"@xt.extension_type(name='kitchen.Cup')\nclass Cup:\n    {fields}\n"
            + textwrap.dedent(code)
        )


CELL = """
import enum
import tensorflow as tf
import extensor as xt

class Size(enum.Enum):
    BIG = 1

@xt.extension_type
class Cup:
    amount: tf.Tensor
    size: Size = Size.BIG
"""


@pytest.mark.whole("starts a process")
def test_a_notebook_cell_may_run_twice(run_python, tmp_path):
    # `python -c` runs in __main__, as a notebook does.
    run_python(
        f"""
CELL = {CELL!r}
FOLDER = {str(tmp_path)!r}
exec(CELL)
old_class, old = Cup, Cup([1.0])
double = tf.function(lambda x: xt.replace(x, amount=x.amount * 2))
assert type(double(old)) is old_class
exec(CELL)
assert Cup is not old_class
new = Cup([1.0])
assert old.__tf_type_spec__() != new.__tf_type_spec__()
assert type(double(old)) is old_class
assert type(double(new)) is Cup
for name, value in [("old", old), ("new", new)]:
    module = tf.Module()
    spec = value.__tf_type_spec__()
    module.double = tf.function(double.python_function, input_signature=[spec])
    tf.saved_model.save(module, FOLDER + "/" + name)
"""
    )
    run_python(
        f"""
exec({CELL!r})
for name in ("old", "new"):
    result = tf.saved_model.load({str(tmp_path)!r} + "/" + name).double(Cup([1.0]))
    assert type(result) is Cup and result.size is Size.BIG
    assert result.amount.numpy().tolist() == [2.0]
"""
    )


@xt.extension_type(name="test_declare_saved.Weights")
class Weights:
    b: tf.Variable
    c: tf.Variable


@xt.extension_type(name="test_declare_saved.MoreWeights")
class MoreWeights:
    c: tf.Variable
    a: tf.Variable
    b: tf.Variable


def test_a_checkpoint_names_variables_by_their_fields(tmp_path):
    module, other = tf.Module(), tf.Module()
    module.held = Weights(tf.Variable(1.0), tf.Variable(2.0))
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"))
    other.held = MoreWeights(tf.Variable(0.0), tf.Variable(0.0), tf.Variable(0.0))
    tf.train.Checkpoint(module=other).restore(path).expect_partial()
    assert [v.numpy() for v in (other.held.a, other.held.b, other.held.c)] == [0, 1, 2]


def test_a_checkpoint_of_an_older_release_names_variables_by_position(tmp_path):
    module = tf.Module()
    module.held = tf.Module()
    module.held.component_0, module.held.component_1 = tf.Variable(1.0), tf.Variable(2.0)
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"))
    module = tf.Module()
    module.held = Weights(tf.Variable(0.0), tf.Variable(0.0))
    tf.train.Checkpoint(module=module).restore(path).assert_consumed()
    assert [module.held.b.numpy(), module.held.c.numpy()] == [1, 2]


def test_a_spec_with_static_data_is_a_signature_of_a_saved_model(tmp_path):
    module = tf.Module()
    spec = Rows.Spec(tf.TensorSpec([None, 3]), "cup", ("a",))
    module.total = tf.function(lambda x: tf.reduce_sum(x.values), input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.total(Rows([[1, 2, 3]], "cup", tags=["a"])).numpy() == 6
    assert not spec.is_compatible_with(Rows([[1, 2, 3]], "gram", tags=["a"]))


def test_variables_in_a_value_are_checkpointed_and_tracked(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            self.counter = Counter(tf.Variable(1.0), tf.Variable([2.0]))

        @tf.function(input_signature=[])
        def add(self):
            return self.counter.count.assign_add(1.0)

    model = Model()
    assert model.add().numpy() == 2
    assert len(model.variables) == 2
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    fresh = Model()
    tf.train.Checkpoint(model=fresh).restore(path).assert_existing_objects_matched()
    assert fresh.counter.count.numpy() == 2
    tf.saved_model.save(model, str(tmp_path / "model"))
    assert tf.saved_model.load(str(tmp_path / "model")).add().numpy() == 3


@xt.auto_composite_tensor(module_name="test_declare_saved")
class Kept(xt.AutoCompositeTensor):
    def __init__(self, b, c):
        self.b, self.c = b, c


@pytest.mark.parametrize("kind", [Weights, Kept])
def test_variables_of_a_strategy_are_used_tracked_and_checkpointed(kind, tmp_path):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    module, plain = tf.Module(), tf.Module()
    with strategy.scope():
        module.held = kind(tf.Variable(1.0), tf.Variable(2.0, trainable=False))
    assert [len(module.variables), len(module.trainable_variables)] == [2, 1]

    @tf.function
    def add(held):
        return strategy.run(lambda: held.b.assign_add(held.c.read_value()))

    assert [add(module.held).numpy() for _ in range(2)] == [3, 5]
    assert add.experimental_get_tracing_count() == 1
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"))
    plain.held = kind(tf.Variable(0.0), tf.Variable(0.0))
    tf.train.Checkpoint(module=plain).restore(path).assert_consumed()
    assert [v.numpy() for v in plain.variables] == [5, 2]
    module.read = tf.function(lambda: module.held.b + module.held.c, input_signature=[])
    tf.saved_model.save(module, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    assert loaded.read().numpy() == 7
    with strategy.scope():
        others = kind(tf.Variable(1.0), tf.Variable(2.0, trainable=False))
    assert xt.spec_of(others) != xt.spec_of(module.held)
    assert [add(others).numpy(), module.held.b.numpy()] == [3, 5]


def test_proto_and_pickle_give_equal_specs():
    for kind in STATIC:
        spec = labelled(kind).__tf_type_spec__()
        again = tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto())
        assert key(again.label) == key(spec.label)
    assert np.array_equal(again.label["sizes"][0], [1, 2])


@xt.extension_type(name="test_declare_saved.Dated")
class Dated:
    values: tf.Tensor
    when: Any


@xt.extension_type(name="test_declare_saved.Outer")
class Outer:
    dated: Dated


@pytest.mark.parametrize(
    ("when", "received"),
    [
        (datetime.date(2020, 1, 1), "a date"),
        ((1, {"a": datetime.date(2020, 1, 1)}), "a date"),
        (lambda: 1, "a function"),
    ],
    ids=["date", "deep", "lambda"],
)
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")
def test_static_data_that_cannot_be_saved_is_an_error_that_names_its_field(
    when, received, tmp_path
):
    module = tf.Module()
    dated = Dated([1.0], when)
    for value in (dated, Outer(dated)):
        spec = value.__tf_type_spec__()
        module.same = tf.function(lambda x: x, input_signature=[spec])
        for number, save in enumerate(
            (
                lambda folder: tf.saved_model.save(module, folder),
                lambda folder, value=value: tf.data.Dataset.from_tensors(value).save(folder),
                lambda folder, spec=spec: xt.serving.save(
                    tf.Module(), folder, xt.serving.flat_signature(lambda x: x, spec)
                ),
            )
        ):
            with pytest.raises(NotEncodableError) as caught:
                save(str(tmp_path / f"{type(value).__name__}_{number}"))
            error = caught.value
            assert isinstance(error, DTypeError)
            assert error.path == "Dated.when"
            assert error.expected == "static data that a SavedModel can hold"
            assert error.received == received
            assert str(error).endswith(str(error.fix))


@xt.extension_type
class Nested:
    x: tf.Tensor
    static: tuple


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")
def test_more_levels_of_static_data_than_protocol_buffers_read_are_an_error():
    deep = ()
    for _ in range(60):
        deep = (deep,)
    with pytest.raises(NotEncodableError, match="got more levels") as error:
        xt.spec_of(Nested(1.0, deep)).experimental_as_proto()
    assert isinstance(error.value, DTypeError)


@pytest.mark.parametrize("tag", ["dict", "set"])
def test_a_saved_key_that_became_a_tensor_is_an_error(tag):
    """An edited file, in which a key of a dict and its value are swapped."""
    spec = tf.TensorSpec([None], tf.float32)
    code = (tag, (spec, "mass")) if tag == "dict" else (tag, spec)
    with pytest.raises(xt.errors.FormatError, match="keys and elements of sets that are no"):
        static_data.decode(code)
