"""Single values: passed on, printed, copied, held in variables and modules, and saved."""

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from extensor.core import functional
from tests.apis.kinds import KINDS, assert_same
from tests.apis.matrix import EAGER, RUN, row

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
    assert_same(run(lambda *x: functional.tuple_(list(x)), *values), values)


SHOWN = {
    "masked": "MaskedTensor([0 1 2], [1 0 1])",
    "recipes": "DenseStructuredTensor(author=DenseStructuredTensor(age=[20 21 22]), score=[0 1 2], "
    "steps=RaggedStructuredTensor(DenseStructuredTensor(minutes=[10 20 21]), [0 0 1 3]), "
    "tags=[[], ['tag 10'], ['tag 20', 'tag 21']], title=[\"recipe 0\" \"recipe 1\" \"recipe 2\"])",
    "measured": "Measured(masked=MaskedTensor([0 1 2], [1 0 1]), weight=[0.5 1.5 2.5])",
}


@row("tf.print")
def test_print_shows_what_a_value_is_when_the_graph_runs(kind, run, tmp_path):
    path = tmp_path / "printed"

    def show(x):
        functional.print_("a", x, {"b": [x, 1]}, output_stream=f"file://{path}", sep="|")
        functional.print_("plain", 1, tf.constant(2), output_stream=f"file://{path}")
        return tf.constant(0)

    run(show, kind.make(3))
    shown = SHOWN[kind.name]
    assert path.read_text() == f"a|{shown}|{{'b': [{shown}, 1]}}\nplain 1 2\n"


@row("tf.debugging.assert_*")
def test_assertions_speak_of_components(kind, run):
    value = kind.make(3)

    def check(x, expected):
        with tf.control_dependencies([tf.debugging.assert_equal(kind.floats(x), expected)]):
            return tf.identity(x)

    assert_same(run(check, value, tf.constant([0.0, 1.0, 2.0])), value)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(check, value, tf.constant([0.0, 1.0, 3.0]))


MEND = r"xt\.nest\.flatten\(value, expand_composites=True\).*hold a tf\.Variable in a field"


@row("tf.convert_to_tensor")
def test_a_value_is_no_tensor(kind, run):
    value = kind.make(3)
    with pytest.raises(TypeError, match=f"{type(value).__name__}: expected a tensor.*{MEND}"):
        run(tf.convert_to_tensor, value)


@row("tf.Variable(value)")
def test_a_value_is_no_variable(kind, run):
    value = kind.make(3)
    with pytest.raises(TypeError, match=f"{type(value).__name__}: expected a tensor.*{MEND}"):
        run(lambda x: tf.Variable(x) and 0, value)


def test_a_class_that_converts_itself_still_does():
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
def test_a_value_is_no_checkpoint(kind, run):
    with pytest.raises(ValueError, match="trackable"):
        tf.train.Checkpoint(value=with_variable(kind)[0])


def reader(kind):
    """A module with a variable in a value, and a function that reads it."""
    module = tf.Module()
    module.value, variable = with_variable(kind)
    variable.assign([3.0, 2.0, 1.0])
    module.floats = tf.function(lambda: kind.floats(module.value) * 2, input_signature=[])
    return module


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """What another process says of models that were saved here, and of the rows it has to itself.

    For each row and kind "" or what went wrong.
    """
    folder = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        module = tf.Module()
        module.double = tf.function(kind.doubled, input_signature=[kind.spec])
        tf.saved_model.save(module, str(folder / kind.name / "function"))
        module = reader(kind)
        tf.saved_model.save(module, str(folder / kind.name / "variable"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.apis.elsewhere", str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@row("tf.saved_model: arguments and results")
def test_saved_functions_take_and_return_values(kind, run, there):
    assert there["function"][kind.name] == ""


@row("tf.saved_model: variables in values")
def test_saved_functions_read_variables_in_values(kind, run, there):
    assert there["variable"][kind.name] == ""


SPEC_NAMES = {
    "masked": "sample.MaskedTensorSpec",
    "recipes": "extensor.DenseStructuredTensorSpec",
    "measured": "tests.apis.kinds.Measured",
}


@row("tf.saved_model: a type that was not imported")
def test_loading_without_the_type_says_what_to_import(kind, run, there):
    error = there["not imported"][kind.name]
    assert f"The type '{SPEC_NAMES[kind.name]}' has not been registered" in error
    assert "by importing its module" in error


@row("threads: a type first met in eight at once")
def test_eight_threads_meet_a_type_at_once(kind, run, there):
    assert there["threads"][kind.name] == ""


@row("MirroredStrategy.run")
def test_every_replica_gets_values(kind, run, there):
    row = there["replicas, eager"] if run is RUN[EAGER] else there["replicas, graph"]
    assert row[kind.name] == ""


@row("MirroredStrategy.experimental_distribute_dataset")
def test_a_distributed_dataset_has_values(kind, run, there):
    assert there["distributed dataset"][kind.name] == ""


@row("MirroredStrategy: a loop over a distributed dataset")
def test_a_loop_over_a_distributed_dataset_has_values(kind, run, there):
    row = there["loop, eager"] if run is RUN[EAGER] else there["loop, graph"]
    assert row[kind.name] == ""


@row("MirroredStrategy.reduce, gather")
def test_components_of_all_replicas_are_gathered(kind, run, there):
    assert there["gather"][kind.name] == ""


@row("tf.data service")
def test_a_data_service_sends_values(kind, run, there):
    assert there["data service"][kind.name] == ""


def test_the_other_process_is_asked_for_nothing_that_no_row_reads(there):
    source = Path(__file__).read_text()
    assert [name for name in there if f'there["{name}"]' not in source] == []
