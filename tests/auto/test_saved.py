"""Values of decorated classes in SavedModels, loaded in other processes."""

import functools
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.samples.auto import CALLABLES, STATIC, Adder, Jar, Step, Unit

# TensorFlow warns of every registered spec that it writes.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type (tests|pantry|extensor):UserWarning:tensorflow"
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model with a function for each kind of argument."""
    module = tf.Module()
    spec = Adder.Spec(tf.TensorSpec([None]), tf.TensorSpec([None]))
    module.add = tf.function(lambda a: a.xpy(), input_signature=[spec])
    module.again = tf.function(lambda a: Adder(a.xpy(), a._y), input_signature=[spec])
    for i, content in enumerate(STATIC.values()):
        jar = Jar([tf.constant([1.0]), {"a": tf.constant([2])}], content)
        signature = [jar.__tf_type_spec__()]
        setattr(module, f"jar_{i}", tf.function(lambda jar: jar, input_signature=signature))
    for i, function in enumerate(CALLABLES.values()):
        signature = [Step(tf.constant([4.0]), function).__tf_type_spec__()]
        setattr(module, f"step_{i}", tf.function(lambda step: step, input_signature=signature))
    mixed = Jar(["abc", tf.constant([1.0]), xt.DenseStructuredTensor([1], {"a": [1]})], Unit.GRAM)
    module.mixed = tf.function(lambda jar: jar, input_signature=[mixed.__tf_type_spec__()])
    folder = str(tmp_path_factory.mktemp("auto") / "model")
    tf.saved_model.save(module, folder)
    return folder


@pytest.mark.whole("starts a process")
def test_values_with_all_kinds_of_arguments_are_loaded_in_a_fresh_process(run_python, saved):
    run_python(f"""
        import functools
        import numpy as np
        import tensorflow as tf
        import extensor as xt
        from tests.samples.auto import CALLABLES, STATIC, Adder, Functor, Jar, Step, Unit

        loaded = tf.saved_model.load({saved!r})
        assert loaded.add(Adder([1.0, 2.0], [3.0, 4.0])).numpy().tolist() == [4.0, 6.0]
        again = loaded.again(Adder([1.0], [3.0]))
        assert type(again) is Adder and again.xpy().numpy().tolist() == [7.0]
        for i, (kind, content) in enumerate(STATIC.items()):
            jar = getattr(loaded, f"jar_{{i}}")(
                Jar([tf.constant([1.0]), {{"a": tf.constant([2])}}], content)
            )
            assert type(jar) is Jar and type(jar._amounts) is list, kind
            assert jar._amounts[1]["a"].numpy().tolist() == [2]
            assert type(jar._content) is type(content), kind
            if kind != "list of callables":
                assert jar._content == content, kind
        assert jar._content[1]["a"](3) == 9
        for i, (kind, function) in enumerate(CALLABLES.items()):
            step = getattr(loaded, f"step_{{i}}")(Step(tf.constant([4.0]), function))
            assert type(step) is Step, kind
            if kind == "functor":
                assert type(step.function) is Functor
            elif isinstance(function, functools.partial):
                assert step.function.func is getattr(function, "func")
            else:
                assert step.function == function, kind
            if kind != "class":
                np.testing.assert_array_equal(step(), function(tf.constant([4.0])), kind)
        mixed = loaded.mixed(
            Jar(["abc", tf.constant([7.0]), xt.DenseStructuredTensor([1], {{"a": [8]}})], Unit.GRAM)
        )
        text, tensor, record = mixed._amounts
        assert (text, tensor.numpy(), record["a"].numpy()) == ("abc", [7.0], [8])
    """)


@pytest.mark.whole("starts a process")
def test_a_process_without_the_class_gets_a_warning_and_stand_ins(run_python, saved):
    run_python(f"""
        import sys, warnings
        import tensorflow as tf
        import extensor
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = tf.saved_model.load({saved!r})
        assert "tests.samples.auto" not in sys.modules
        said = {{str(warning.message) for warning in caught}}
        assert any("Adder_ACTTypeSpec' is not registered" in text for text in said), said
        assert any("`import tests.samples.auto`" in text for text in said), said
        assert loaded.add({{"x": [1.0, 2.0], "y": [3.0, 4.0]}}).numpy().tolist() == [4.0, 6.0]
        again = loaded.again({{"x": [1.0], "y": [3.0]}})
        assert again.x.numpy().tolist() == [4.0] and again.y.numpy().tolist() == [3.0]
        assert "Adder_ACTTypeSpec(" in repr(again), again
    """)


SHELF = """
import sys, types
import tensorflow as tf
import {library}

module = types.ModuleType("{module}")
sys.modules["{module}"] = module

@{library}.auto_composite_tensor(module_name="shelf")
class Box({library}.AutoCompositeTensor):
    def __init__(self, content, label="none"{more}):
        self._content = [tf.convert_to_tensor(c) for c in content]
        self.label = label
        {body}

Box.__module__ = "{module}"
Box.__qualname__ = "Box"
module.Box = Box
"""

SAVE = """
model = tf.Module()
box = Box([float(i) for i in range(12)], "mine")
model.sum = tf.function(lambda b: tf.stack(b._content), input_signature=[box._type_spec])
model.same = tf.function(lambda b: b, input_signature=[box._type_spec])
tf.saved_model.save(model, {folder!r})
"""

LOAD = """
model = tf.saved_model.load({folder!r})
box = Box([float(i) for i in range(12)], "mine")
assert model.sum(box).numpy().tolist() == list(range(12))
again = model.same(box)
assert type(again) is Box and again.label == "mine"
assert [c.numpy() for c in again._content] == list(range(12))
"""


def shelf(library="xt", module="attic", more="", body="pass"):
    imported = {"xt": "import extensor as xt", "peer": "from tests.samples import peer"}[library]
    code = textwrap.dedent(SHELF).replace("import {library}", imported)
    return code.format(library=library, module=module, more=more, body=body)


SIZED = {"more": ", size=3", "body": "self.size = size"}


@pytest.fixture(scope="module")
def boxes(run_python, tmp_path_factory):
    """Returns the paths of a saved box, and of one with an additional argument."""
    folders = [str(tmp_path_factory.mktemp("boxes")) for _ in range(2)]
    run_python(shelf() + SAVE.format(folder=folders[0]))
    run_python(shelf(**SIZED) + SAVE.format(folder=folders[1]))
    return folders


@pytest.mark.whole("starts a process")
def test_a_class_that_was_moved_is_loaded_by_its_old_name(run_python, boxes):
    run_python(shelf(module="cellar") + LOAD.format(folder=boxes[0]))


@pytest.mark.whole("starts a process")
def test_an_argument_that_was_added_later_has_its_default_in_old_models(run_python, boxes):
    run_python(shelf(**SIZED) + LOAD.format(folder=boxes[0]))


@pytest.mark.whole("saves and loads models")
def test_a_removed_argument_is_an_error_that_names_it(run_python, boxes):
    run_python(
        shelf()
        + f"""
try:
    tf.saved_model.load({boxes[1]!r})
except KeyError as error:
    assert "Box.Spec.size" in str(error), error
else:
    raise AssertionError("the model was loaded")
"""
    )


@pytest.mark.whole("starts a process")
def test_a_model_that_was_saved_with_the_peer_is_loaded(run_python, tmp_path):
    """The serialization of the peer is an older version of that of extensor."""
    folder = str(tmp_path)
    run_python(shelf("peer") + SAVE.format(folder=folder))
    run_python(shelf("xt") + LOAD.format(folder=folder))


PEER = (
    (1, {"x": tf.TensorSpec([2])}, {"y": 3}, ("name",)),
    (2, {"x": tf.TensorSpec([2])}, {"y": 3}, ("name",), ()),
    (3, {"x": tf.TensorSpec([2])}, {"y": 3}, ("name",), (), ("y",)),
)


@pytest.mark.parametrize("serialization", PEER, ids=["1", "2", "3"])
def test_older_versions_are_read(serialization):
    spec = Adder.Spec.deserialize(serialization)
    assert spec == Adder.Spec(x=tf.TensorSpec([2]), y=3)
    assert spec.serialize() == (4, ("x", tf.TensorSpec([2])), ("y", 3))
    assert Adder.Spec.deserialize(spec.serialize()) == spec


def test_older_versions_hold_nests_of_specs():
    two = tf.TensorSpec([2])
    spec = Jar.Spec.deserialize((3, {"amounts": [{"a": (two,)}]}, {"content": ["x"]}, (), (), ()))
    jar = Jar([{"a": (tf.constant([1.0, 2.0]),)}], ["x"])
    assert spec == jar.__tf_type_spec__()


def test_a_later_version_is_an_error():
    with pytest.raises(ValueError, match="version 1 to 4, got version 5"):
        Adder.Spec.deserialize((5, ("x", tf.TensorSpec([]))))


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (lambda x: x, "function"),
        ([lambda x: x], "function"),
        (functools.partial(lambda x: x), "function"),
        (Adder(1.0, 2.0).xpy, "method"),
        (object(), "object"),
    ],
    ids=["lambda", "in a list", "in a partial", "bound method", "object"],
)
def test_a_callable_that_cannot_be_imported_is_an_error_only_when_saved(function, shown, tmp_path):
    step = Step(tf.constant(1.0), function)
    assert type(tf.function(lambda s: s)(step)) is Step
    module = tf.Module()
    module.step = tf.function(lambda s: s, input_signature=[step.__tf_type_spec__()])
    with pytest.raises(TypeError, match=rf"Step\.function: .*SavedModel can hold, got a {shown}"):
        tf.saved_model.save(module, str(tmp_path))


def test_a_removed_function_is_an_error_that_names_it(run_python, tmp_path):
    module = tf.Module()
    spec = Step(tf.constant(1.0), CALLABLES["function"]).__tf_type_spec__()
    module.step = tf.function(lambda s: s, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path))
    run_python(f"""
        import tensorflow as tf
        from tests.samples import auto as sample_auto
        del sample_auto.halved
        try:
            tf.saved_model.load({str(tmp_path)!r})
        except ValueError as error:
            assert "tests.samples.auto.halved" in str(error), error
        else:
            raise AssertionError("the model was loaded")
    """)


def test_a_function_of_tensorflow_is_saved_under_its_public_name():
    spec = Step(tf.constant(1.0), tf.reduce_sum).__tf_type_spec__()
    assert spec.serialize()[2] == ("function", ("callable", "tensorflow", "math.reduce_sum"))


def test_a_variable_inside_a_value_is_saved_with_the_module_that_holds_it(tmp_path):
    module = tf.Module()
    module.jar = Jar([tf.Variable([1.0, 2.0])])
    module.total = tf.function(lambda: tf.reduce_sum(module.jar._amounts[0]), input_signature=[])
    assert len(module.variables) == 1
    tf.saved_model.save(module, str(tmp_path))
    module.jar._amounts[0].assign([0.0, 0.0])
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded.total(), 3.0)
