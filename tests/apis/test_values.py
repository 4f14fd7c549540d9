"""Single values: in functions, printed, copied, in variables and modules, and saved."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.saved_model.nested_structure_coder import NotEncodableError

import extensor as xt
from tests.apis.kinds import KINDS, assert_same
from tests.apis.matrix import EAGER, RUN, row
from tests.apis.process import at_once
from tests.samples.types import fresh_masked_type, parcel

pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type:UserWarning:tensorflow"
)


@row("tf.identity")
def test_identity_returns_the_value(kind, run):
    assert_same(run(tf.identity, kind.make(3)), kind.make(3))


@row("tf.stop_gradient")
def test_stop_gradient_stops_gradients(kind, run):
    value = kind.make(3)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            stopped = tf.stop_gradient(x)
            y = tf.reduce_sum(kind.floats(stopped) ** 2)
        return stopped, tape.gradient(y, x)

    stopped, found = run(gradient, value)
    assert_same(stopped, value)
    assert found is None


@row("tf.group")
def test_group_waits_for_values(kind, run):
    variable = tf.Variable(0.0)

    def count(x):
        counted = tf.py_function(
            lambda x: (variable.assign_add(tf.reduce_sum(kind.floats(x))), x)[1], [x], kind.spec
        )
        with tf.control_dependencies([tf.group(counted)]):
            return variable.read_value()

    assert run(count, kind.make(3)).numpy() == 3.0


@row("tf.tuple")
def test_tuple_returns_the_values(kind, run):
    values = [kind.make(3), tf.constant(1), kind.make(2)]
    assert_same(run(lambda *x: xt.tuple(list(x)), *values), values)


SHOWN = {
    "masked": "MaskedTensor([0 1 2], [1 0 1])",
    "recipes": "DenseStructuredTensor(author=DenseStructuredTensor(age=[20 21 22]), score=[0 1 2], "
    "steps=RaggedStructuredTensor(DenseStructuredTensor(minutes=[10 20 21]), [0 0 1 3]), "
    "tags=[[], ['tag 10'], ['tag 20', 'tag 21']], title=[\"recipe 0\" \"recipe 1\" \"recipe 2\"])",
    "measured": "Measured(masked=MaskedTensor([0 1 2], [1 0 1]), weight=[0.5 1.5 2.5])",
}


@row("tf.print")
def test_print_shows_the_value_when_the_graph_runs(kind, run, tmp_path):
    path = tmp_path / "printed"

    def show(x):
        xt.print("a", x, {"b": [x, 1]}, output_stream=f"file://{path}", sep="|")
        xt.print("plain", 1, tf.constant(2), output_stream=f"file://{path}")
        return tf.constant(0)

    run(show, kind.make(3))
    shown = SHOWN[kind.name]
    assert path.read_text() == f"a|{shown}|{{'b': [{shown}, 1]}}\nplain 1 2\n"


def test_print_does_not_name_row_splits_like_fields(tmp_path):
    path = tmp_path / "printed"
    records = xt.DenseStructuredTensor([3], {"a": [1, 2, 3], "b": [4, 5, 6]})
    rows = xt.RaggedStructuredTensor.from_row_splits(records, [0, 1, 3])  # as many parts as fields
    xt.print(rows, output_stream=f"file://{path}")
    inner = "DenseStructuredTensor(a=[1 2 3], b=[4 5 6])"
    assert path.read_text() == f"RaggedStructuredTensor({inner}, [0 1 3])\n"


def test_print_shows_nests_of_components(tmp_path):
    @xt.auto_composite_tensor
    class Parts(xt.AutoCompositeTensor):
        def __init__(self, x, parts):
            self.x, self.parts = x, parts

    path = tmp_path / "printed"
    one, two = tf.constant([1]), tf.constant([2])
    for parts in ([one, two], {"a": one, "b": [two]}, [one, "text"]):
        xt.print(Parts(one, parts), output_stream=f"file://{path}")
    assert path.read_text().splitlines() == [
        "Parts(parts=[[1], [2]], x=[1])",
        "Parts(parts={'a': [1], 'b': [[2]]}, x=[1])",
        "Parts(parts=([1]), x=[1])",
    ]


MEND = r"Give the tensor inside of the value.*xt\.dispatch\.implements"


def is_no_tensor(value):
    """A regular expression for the error: it names the type and the fix, and shows no values."""
    if isinstance(value, xt.StructuredTensor):
        return rf"got a {type(value).__name__} of shape [^\n]*\. Use one of the fields: tf\."
    return rf"{type(value).__name__}: expected a tensor.*{MEND}"


ASSERTIONS = {
    "assert_equal": lambda x, y: tf.debugging.assert_equal(x, y),
    "assert_near": lambda x, y: tf.debugging.assert_near(x, y),
    "assert_less_equal": lambda x, y: tf.debugging.assert_less_equal(x, y),
    "assert_non_negative": lambda x, y: tf.debugging.assert_non_negative(x),
    "assert_all_finite": lambda x, y: tf.debugging.assert_all_finite(x, ""),
    "assert_shapes": lambda x, y: tf.debugging.assert_shapes([(x, ["N"]), (y, ["N"])]),
    "assert_type": lambda x, y: tf.debugging.assert_type(x, tf.float32),
    "assert_rank": lambda x, y: tf.debugging.assert_rank(x, 1),
}


def converts_not(value):
    """Returns the pattern of the error of a conversion; that of records names a field."""
    if isinstance(value, xt.StructuredTensor):
        return (
            r'conversion of records .*: expected a tensor.*Use one of the fields: records\["score"'
        )
    return f"{type(value).__name__}: expected a tensor.*{MEND}"


@pytest.mark.whole("traces many functions")
@row("tf.debugging.assert_*")
def test_assertions_check_components(kind, run):
    value, other = kind.make(3), kind.make(3)

    def check_all(x, y):
        for check in ASSERTIONS.values():
            check(kind.floats(x), kind.floats(y))
        flat = [xt.nest.flatten(v, expand_composites=True) for v in (x, y)]
        for a, b in zip(*flat, strict=True):
            tf.debugging.assert_equal(a, b)
        return tf.identity(x)

    assert_same(run(check_all, value, other), value)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(check_all, value, kind.change(lambda floats: tf.add(floats, [0.0, 0.0, 1.0]), other))
    for check in ASSERTIONS.values():
        # tf.debugging.assert_shapes converts the values, which are inside pairs, itself.
        with pytest.raises(TypeError, match=f"{is_no_tensor(value)}|{converts_not(value)}"):
            run(lambda x, y, check=check: check(x, y) and 0, value, other)


@row("tf.convert_to_tensor")
def test_converting_a_value_to_a_tensor_is_an_error(kind, run):
    value = kind.make(3)
    with pytest.raises(TypeError, match=is_no_tensor(value)):
        run(tf.convert_to_tensor, value)


@row("tf.Variable(value)")
def test_a_variable_of_a_value_is_an_error(kind, run):
    value = kind.make(3)
    with pytest.raises(TypeError, match=converts_not(value)):
        run(lambda x: tf.Variable(x) and 0, value)


def test_a_class_with_a_conversion_is_converted():
    class Own(type(KINDS[0].make(1))):
        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.values, dtype)

    class Registered(type(KINDS[0].make(1))):
        pass

    tf.register_tensor_conversion_function(
        Registered, lambda value, dtype=None, name=None, as_ref=False: value.values
    )
    for cls in (Own, Registered):
        value = cls(tf.constant([1.0]), tf.constant([True]))
        assert_same(tf.convert_to_tensor(value), tf.constant([1.0]))


def with_variable(kind, size=3):
    """A value whose floats are a variable, and the variable."""
    value = kind.make(size)
    variable = tf.Variable(kind.floats(value))
    return kind.change(lambda _: variable, value), variable


@row("tf.Variable in a field: read")
def test_a_variable_in_a_field_is_read(kind, run):
    value, variable = with_variable(kind)
    assert kind.floats(value) is variable
    assert_same(kind.floats(run(kind.doubled, value)), tf.constant([0.0, 2.0, 4.0]))
    variable.assign([1.0, 2.0, 3.0])
    assert_same(kind.floats(run(lambda: kind.doubled(value))), tf.constant([2.0, 4.0, 6.0]))


@row("tf.Variable in a field: assign")
def test_a_variable_in_a_field_is_assigned(kind, run):
    value, variable = with_variable(kind)
    run(lambda: kind.floats(value).assign([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(variable, [1.0, 2.0, 3.0])


@xt.extension_type
class Held:
    """A declared type that holds a variable."""

    variable: tf.Variable


HOLDERS = {
    "protocol": (lambda v: parcel([v]), lambda p: p.components[0]),
    "nested": (lambda v: parcel([parcel([v])]), lambda p: p.components[0].components[0]),
    "structured": (lambda v: xt.DenseStructuredTensor([], {"v": v}), lambda s: s["v"]),
    "declared": (Held, lambda h: h.variable),
    "declared in protocol": (lambda v: parcel([Held(v)]), lambda p: p.components[0].variable),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(("hold", "held"), HOLDERS.values(), ids=list(HOLDERS))
def test_a_variable_that_is_given_twice_is_one_in_the_graph(hold, held):
    @tf.function
    def write_and_read(one, other):
        for _ in range(20):
            held(one).assign_add(1.0)
            held(other).assign(held(other) * 1.0)
        return held(one).read_value(), held(other).read_value()

    def handles(*arguments):
        concrete = tf.function(lambda *_: None).get_concrete_function(*arguments)
        return [tensor.dtype for tensor in concrete.inputs].count(tf.resource)

    one, other = tf.Variable(0.0), tf.Variable(0.0)
    assert_same(write_and_read(hold(one), hold(one)), (tf.constant(20.0), tf.constant(20.0)))
    assert_same(write_and_read(hold(one), hold(other)), (tf.constant(40.0), tf.constant(0.0)))
    assert_same(write_and_read(hold(other), hold(other)), (tf.constant(20.0), tf.constant(20.0)))
    assert write_and_read.experimental_get_tracing_count() == 2
    assert (handles(hold(one), hold(one)), handles(hold(one), hold(other))) == (1, 2)
    assert handles(hold(one), one) == 1


@row("copy.copy")
def test_copies_are_the_same(kind, run):
    assert_same(copy.copy(kind.make(3)), kind.make(3))


@row("copy.deepcopy")
def test_deep_copies_are_the_same(kind, run):
    assert_same(copy.deepcopy({"a": kind.make(3)}), {"a": kind.make(3)})


@row("pickle")
def test_pickles_are_the_same(kind, run):
    assert_same(pickle.loads(pickle.dumps(kind.make(3))), kind.make(3))
    assert pickle.loads(pickle.dumps(kind.spec)) == kind.spec


@row("tf.Module: variables")
def test_a_module_finds_the_variables_in_its_values(kind, run):
    module = tf.Module()
    module.value, variable = with_variable(kind)
    assert [v is variable for v in module.variables] == [True]
    assert [v is variable for v in module.trainable_variables] == [True]


@row("tf.train.Checkpoint")
def test_a_checkpoint_saves_the_variables_in_values(kind, run, tmp_path):
    def new_module():
        module, variables = tf.Module(), []
        for name, hold in {
            "value": lambda x: x,
            "list": lambda x: [kind.make(1), x],
            "dict": lambda x: {"a": x},
            "tuple": lambda x: (x, 1),
        }.items():
            value, variable = with_variable(kind)
            setattr(module, name, hold(value))
            variables.append(variable)
        return module, variables

    module, variables = new_module()
    for i, variable in enumerate(variables):
        variable.assign([i, 2.0, 3.0])
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"))
    module, variables = new_module()
    tf.train.Checkpoint(module=module).restore(path).assert_consumed()
    for i, variable in enumerate(variables):
        np.testing.assert_array_equal(variable, [i, 2.0, 3.0])
    # And what is assigned after restoring began.
    module = tf.Module()
    status = tf.train.Checkpoint(module=module).restore(path)
    module.value, variable = with_variable(kind)
    np.testing.assert_array_equal(variable, [0.0, 2.0, 3.0])
    status.assert_existing_objects_matched()


@row("tf.train.Checkpoint(value)")
def test_checkpointing_a_value_is_an_error(kind, run):
    with pytest.raises(ValueError, match="trackable"):
        tf.train.Checkpoint(value=with_variable(kind)[0])


@pytest.mark.whole("saves and loads models")
@row("tf.saved_model: arguments and results")
def test_saved_functions_take_and_return_values(kind, run, there):
    assert there["function"][kind.name] == ""


@pytest.mark.whole("loads models in another process")
@row("tf.saved_model: variables in values")
def test_saved_functions_read_variables_in_values(kind, run, there):
    assert there["variable"][kind.name] == ""


NOT_IMPORTED = {
    "masked": ("sample.MaskedTensorSpec", "tests.samples.types"),
    "recipes": ("extensor.DenseStructuredTensorSpec", "extensor"),
    "measured": ("tests.apis.kinds.Measured", "tests.apis.kinds"),
}


@pytest.mark.whole("loads models in another process")
@row("tf.saved_model: a type that was not imported")
def test_loading_without_the_type_gives_stand_ins_and_a_warning(kind, run, there):
    without_extensor, with_extensor = there["not imported"][kind.name]
    name, module = NOT_IMPORTED[kind.name]
    assert f"The type '{name}' has not been registered" in without_extensor
    assert "by importing its module" in without_extensor
    if module == "extensor":
        assert with_extensor == ""
    else:
        assert (
            f"The type '{name}' is not registered: its values are stand-ins with the "
            f"same components, but without its methods. It is defined in {module}: "
            f"`import {module}`, or the module that registers it, before loading."
        ) in with_extensor


def unregistered(kind):
    """A value that holds one of the kind's and has a spec without a name, and that spec."""
    value = parcel({"value": kind.make(3)})
    return value, value.__tf_type_spec__()


@row("tf.saved_model: a type that was not registered")
def test_saving_an_unregistered_type_says_how_to_register_it(kind, run, tmp_path):
    value, spec = unregistered(kind)
    taken, traced, returned = tf.Module(), tf.Module(), tf.Module()
    taken.call = tf.function(lambda x: 0, input_signature=[spec])
    traced.call = tf.function(lambda x: 0)
    traced.call(value)
    returned.call = tf.function(lambda: value, input_signature=[])
    expected = r"samples\.types\.ParcelSpec: expected a spec with a registered name.*"
    expected += r'xt\.register_type_spec\(ParcelSpec, "tests\.samples\.types\.ParcelSpec"\)'
    for module in (taken, traced, returned):
        with pytest.raises(NotEncodableError, match=expected) as caught:
            tf.saved_model.save(module, str(tmp_path))
        assert isinstance(caught.value, ValueError)
    with pytest.raises(NotEncodableError, match=expected):
        tf.data.Dataset.from_tensors(value).save(str(tmp_path))


@pytest.mark.whole("loads models in another process")
@row("tensorflow_hub.load")
def test_the_hub_loads_functions_of_values(kind, run, there):
    row = there["hub, eager"] if run is RUN[EAGER] else there["hub, graph"]
    assert row[kind.name] == ""


@pytest.mark.whole("loads models in another process")
@row("tensorflow_hub.KerasLayer")
def test_a_layer_of_the_hub_takes_and_returns_values(kind, run, there):
    row = there["hub layer, eager"] if run is RUN[EAGER] else there["hub layer, graph"]
    assert row[kind.name] == ""


@pytest.mark.whole("loads models in another process")
@row("threads: first use of a type in eight threads at once")
def test_eight_threads_may_use_a_type_at_once(kind, run, there):
    assert there["threads"][kind.name] == ""


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize(
    "first",
    [
        tf.function(lambda value: value),
        lambda value: tf.nest.flatten(value, expand_composites=True),
        lambda value: list(tf.data.Dataset.from_tensor_slices(value).batch(3)),
        lambda value: tf.cond(tf.constant(True), lambda: value, lambda: value),
        lambda value: tf.map_fn(lambda x: x, value, fn_output_signature=value.spec().unstacked()),
        tf.type_spec_from_value,
        tf.identity,
    ],
    ids=["function", "nest", "dataset", "cond", "map_fn", "type_spec", "identity"],
)
def test_eight_threads_may_call_any_api_first_at_once(first):
    for _ in range(3):
        masked_type, _ = fresh_masked_type()
        masked_type.spec = masked_type.__tf_type_spec__
        value = masked_type(tf.constant([1.0, 2.0, 3.0]), tf.constant([True, False, True]))
        at_once(lambda value=value: first(value))


@pytest.mark.whole("loads models in another process")
@row("tf.data service")
def test_a_data_service_sends_values(kind, run, there):
    assert there["data service"][kind.name] == ""


@pytest.mark.whole("loads models in another process")
def test_every_result_of_the_other_process_is_read_by_a_row(there):
    source = Path(__file__).read_text()
    assert [name for name in there if f'there["{name}"]' not in source] == []
