"""Classes that cannot be edited become extension types when a spec is registered for them."""

import collections
import datetime
import pickle
import textwrap

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ProtocolError, RegistrationError
from tests.samples.elsewhere import (
    Interval,
    IntervalSpec,
    Narrow,
    NarrowSpec,
    Slotted,
    SlottedSpec,
    WidthSpec,
)
from tests.samples.types import MaskedTensor, MaskedTensorSpec, fresh_masked_type

pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type tests.samples.elsewhere:UserWarning:tensorflow"
)

xt.register_extension_type(Interval, IntervalSpec)
xt.register_extension_type(Slotted, SlottedSpec)


def fresh():
    """Returns a new foreign class, and a new spec class for it."""

    class Someones:
        def __init__(self, low, high, unit="mm"):
            self.low, self.high, self.unit = low, high, unit

    class SomeonesSpec(IntervalSpec):
        value_type = Someones

    SomeonesSpec.__name__ = f"SomeonesSpec{id(SomeonesSpec)}"
    return Someones, SomeonesSpec


def interval(cls=Interval, unit="mm"):
    return cls(tf.constant([1.0, 2.0]), tf.constant([3.0, 5.0]), unit)


@pytest.mark.parametrize("values", [[interval(), interval(unit="inch")], interval(Slotted)])
def test_it_obeys_the_laws(values):
    xt.testing.check_extension_type(values)


def test_it_has_the_members_of_a_class_with_the_protocol():
    protocol, _ = fresh_masked_type()
    before = set(vars(protocol))
    xt.nest.flatten(protocol(tf.constant([1.0]), tf.constant([True])), expand_composites=True)
    gained = set(vars(protocol)) - before
    assert gained
    for cls in (Interval, Slotted):
        assert gained | {"__tf_type_spec__"} <= set(vars(cls))


def test_tf_function_may_be_the_first_api_that_gets_a_value():
    someones, spec_class = fresh()
    assert xt.register_extension_type(someones, spec_class) is someones
    value = interval(someones)
    traces = []

    @tf.function
    def widened(x):
        traces.append(x)
        return someones(x.low - 1, x.high + 1, x.unit)

    result = widened(value)
    assert type(result) is someones
    assert result.high.numpy().tolist() == [4.0, 6.0]
    widened(interval(someones))
    assert len(traces) == 1
    assert isinstance(value.__tf_type_spec__(), spec_class)
    assert isinstance(value, xt.ExtensionType)


@pytest.mark.parametrize("cls", [Interval, Slotted])
def test_it_goes_through_datasets_gradients_and_control_flow(cls):
    value = interval(cls)
    [batch] = tf.data.Dataset.from_tensor_slices(value).batch(2)
    assert type(batch) is cls
    np.testing.assert_array_equal(batch.high, [3.0, 5.0])
    with tf.GradientTape() as tape:
        tape.watch(value)
        loss = tf.reduce_sum(value.low * 2 + value.high)
    gradient = tape.gradient(loss, value)
    assert type(gradient) is cls
    assert gradient.low.numpy().tolist() == [2.0, 2.0]
    chosen = tf.function(lambda flag: tf.cond(flag, lambda: value, lambda: value))
    assert type(chosen(tf.constant(True))) is cls
    mapped = tf.map_fn(lambda x: x, value, fn_output_signature=xt.spec_of(value).unstacked())
    assert type(mapped) is cls
    assert type(xt.nest.map_structure(tf.negative, value, expand_composites=True)) is cls


def test_its_spec_is_registered_too():
    assert xt.registered_types()["tests.samples.elsewhere.IntervalSpec"] is IntervalSpec
    spec = xt.spec_of(interval())
    assert tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto()) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_a_registered_spec_keeps_its_name():
    someones, spec_class = fresh()
    xt.register_type_spec(spec_class, "test_register_extension_type.Named")
    xt.register_extension_type(someones, spec_class)
    assert xt.registered_types()["test_register_extension_type.Named"] is spec_class


# Once.


def test_the_same_registration_again_changes_nothing():
    before = dict(vars(Interval))
    assert xt.register_extension_type(Interval, IntervalSpec) is Interval
    assert dict(vars(Interval)) == before


def test_a_second_spec_for_a_class_is_an_error():
    with pytest.raises(RegistrationError) as caught:
        xt.register_extension_type(Interval, WidthSpec)
    assert caught.value.path == "tests.samples.elsewhere.Interval"
    assert caught.value.expected == (
        "the spec that is registered for it, tests.samples.elsewhere.IntervalSpec"
    )
    assert caught.value.received == "tests.samples.elsewhere.WidthSpec"
    assert "Use that spec" in caught.value.fix
    assert isinstance(interval().__tf_type_spec__(), IntervalSpec)
    assert "tests.samples.elsewhere.WidthSpec" not in xt.registered_types()


def test_a_class_with_the_protocol_has_its_spec():
    other = type("OtherSpec", (IntervalSpec,), {"value_type": MaskedTensor})
    for cls in (MaskedTensor, type("Sub", (MaskedTensor,), {})):
        with pytest.raises(RegistrationError, match="expected a class without a spec"):
            xt.register_extension_type(cls, other)
    assert isinstance(
        MaskedTensor(tf.constant([1.0]), tf.constant([True])).__tf_type_spec__(), MaskedTensorSpec
    )


def test_a_spec_that_is_defined_again_replaces_the_old_one():
    class Someones:
        def __init__(self, low, high, unit="mm"):
            self.low, self.high, self.unit = low, high, unit

    def cell():
        members = {"value_type": Someones, "__module__": __name__, "__qualname__": "CellSpec"}
        return type("CellSpec", (IntervalSpec,), members)

    old, new = cell(), cell()
    xt.register_extension_type(Someones, old)
    xt.register_extension_type(Someones, new)
    assert type(interval(Someones).__tf_type_spec__()) is new


def test_a_subclass_is_registered_on_its_own():
    value = interval(Narrow)
    for use in (
        lambda: value.__tf_type_spec__(),
        lambda: tf.function(lambda x: x.low)(value),
        lambda: xt.nest.flatten(value, expand_composites=True),
    ):
        with pytest.raises(TypeError, match=r"Narrow: .*, because its base"):
            use()
    xt.register_extension_type(Narrow, NarrowSpec)
    assert type(tf.function(lambda x: x)(value)) is Narrow
    assert type(tf.function(lambda x: x)(interval())) is Interval


# Too late.


@pytest.mark.parametrize(
    "meet",
    [
        lambda value: tf.nest.flatten(value, expand_composites=True),
        lambda value: tf.function(lambda x: x.low)(value),
    ],
    ids=["nest", "function"],
)
def test_a_class_that_tensorflow_has_used_is_an_error_and_stays_unchanged(meet):
    someones, spec_class = fresh()
    value = interval(someones)
    meet(value)
    for _ in range(2):
        with pytest.raises(RegistrationError) as caught:
            xt.register_extension_type(someones, spec_class)
        assert caught.value.path.endswith("Someones")
        assert caught.value.expected == "a class of which TensorFlow has seen no value yet"
        assert (
            caught.value.received == "a class that TensorFlow has cached as a plain Python object"
        )
        assert "right after importing it" in caught.value.fix
        assert not hasattr(someones, "__tf_type_spec__")
        assert not hasattr(someones, "_type_spec")
    assert tf.nest.flatten(value, expand_composites=True) == [value]
    assert tf.function(lambda x: x.low)(value).numpy().tolist() == [1.0, 2.0]


def test_a_class_can_be_registered_after_isinstance_was_called_with_it():
    someones, spec_class = fresh()
    value = interval(someones)
    assert not isinstance(value, xt.ExtensionType)
    with pytest.raises(TypeError):
        tf.type_spec_from_value(value)  # asks isinstance of it
    xt.register_extension_type(someones, spec_class)
    assert len(tf.nest.flatten(value, expand_composites=True)) == 2
    assert type(tf.function(lambda x: x)(value)) is someones


# Classes that cannot be registered.


@pytest.mark.parametrize(
    ("cls", "received"),
    [
        (datetime.date, "C extension"),
        (complex, "C extension"),
        (collections.OrderedDict, "container"),
        (collections.namedtuple("Pair", "low high"), "container"),
        (list, "container"),
        (tf.Tensor, "tensors, variables, TypeSpecs"),
        (tf.RaggedTensor, "tensors, variables, TypeSpecs"),
        (tf.Variable, "tensors, variables, TypeSpecs"),
        (tf.experimental.ExtensionType, "tensors, variables, TypeSpecs"),
        (3, "3"),
    ],
    ids=str,
)
def test_a_class_that_cannot_be_registered_is_an_error_that_names_the_mend(cls, received):
    _, spec_class = fresh()
    spec_class.value_type = cls
    with pytest.raises(ProtocolError, match=received) as caught:
        xt.register_extension_type(cls, spec_class)
    assert caught.value.expected.startswith("a class ")
    assert caught.value.fix == (
        "Write a class that has the container as a field."
        if received == "container"
        else "Make a class of your own that holds the value."
    )


def test_a_spec_class_must_make_specs_of_values():
    someones, _ = fresh()
    with pytest.raises(ProtocolError, match=r"MaskedTensorSpec\.from_value: expected a class"):
        xt.register_extension_type(someones, MaskedTensorSpec)
    for wrong in (int, 3, interval()):
        with pytest.raises(ProtocolError, match="expected a class and a subclass of TypeSpec"):
            xt.register_extension_type(someones, wrong)
    assert not hasattr(someones, "__tf_type_spec__")


def test_a_spec_class_of_another_class_is_an_error():
    someones, _ = fresh()
    with pytest.raises(ProtocolError) as caught:
        xt.register_extension_type(someones, SlottedSpec)
    assert caught.value.path == "tests.samples.elsewhere.SlottedSpec.value_type"
    assert caught.value.expected.endswith("Someones")
    assert caught.value.received == "tests.samples.elsewhere.Slotted"
    assert not hasattr(someones, "__tf_type_spec__")


def test_a_spec_of_another_class_is_an_error_where_it_is_made():
    someones, spec_class = fresh()
    spec_class.value_type = property(lambda self: Slotted if self.unit == "inch" else someones)
    xt.register_extension_type(someones, spec_class)
    assert type(tf.function(lambda x: x)(interval(someones))) is someones
    for use in (lambda x: x.__tf_type_spec__(), tf.function(lambda x: x)):
        with pytest.raises(ProtocolError, match=r"value_type: expected .*Someones, got .*Slotted"):
            use(interval(someones, "inch"))


def test_a_name_of_another_spec_is_an_error_and_the_class_stays_unchanged():
    someones, spec_class = fresh()
    spec_class.__name__ = "IntervalSpec"
    spec_class.__module__ = "tests.samples.elsewhere"
    with pytest.raises(RegistrationError, match="no other TypeSpec"):
        xt.register_extension_type(someones, spec_class)
    assert not hasattr(someones, "__tf_type_spec__")


# Saved under one spec, loaded under another.


@pytest.fixture(scope="module")
def saved(run_python, tmp_path_factory):
    """A model that was saved where Interval has IntervalSpec."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    saving = f"""
    import warnings
    warnings.simplefilter("ignore")
    import tensorflow as tf
    import extensor as xt
    from tests.samples.elsewhere import Interval, IntervalSpec
    xt.register_extension_type(Interval, IntervalSpec)
    module = tf.Module()
    module.widen = tf.function(
        lambda x: Interval(x.low - 1, x.high + 1, x.unit),
        input_signature=[IntervalSpec([None], tf.float32, "mm")],
    )
    tf.saved_model.save(module, {str(folder)!r})
    """
    run_python(textwrap.dedent(saving))
    return folder


LOADING = """
import tensorflow as tf
import extensor as xt
from tests.samples.elsewhere import Interval, IntervalSpec, WidthSpec
value = Interval(tf.constant([1.0]), tf.constant([3.0]))
"""


@pytest.mark.whole("starts a process")
def test_a_model_loads_where_its_spec_is_registered(run_python, saved):
    run_python(f"""{LOADING}
xt.register_extension_type(Interval, IntervalSpec)
result = tf.saved_model.load({str(saved)!r}).widen(value)
assert type(result) is Interval
assert (result.low.numpy(), result.high.numpy()) == ([0.0], [4.0])
""")


@pytest.mark.whole("starts a process")
def test_a_model_that_was_saved_with_another_spec_is_an_error(run_python, saved):
    said = run_python(f"""{LOADING}
xt.register_extension_type(Interval, WidthSpec)
xt.register_type_spec(IntervalSpec)
try:
    tf.saved_model.load({str(saved)!r})
except xt.ExtensorError as error:
    print(error)
else:
    raise AssertionError("the model was loaded")
""").stdout
    assert (
        "tests.samples.elsewhere.Interval: expected the spec that the file contains, "
        "tests.samples.elsewhere.IntervalSpec, got tests.samples.elsewhere.WidthSpec, registered "
        "in this process. Load the file in a process that registers this spec" in said
    )


@pytest.mark.whole("saves and loads models")
def test_a_model_that_was_saved_with_an_unregistered_spec_takes_no_value(run_python, saved):
    run_python(f"""{LOADING}
import warnings
warnings.simplefilter("ignore")
xt.register_extension_type(Interval, WidthSpec)
model = tf.saved_model.load({str(saved)!r})
try:
    model.widen(value)
except (TypeError, ValueError) as error:
    assert "tests.samples.elsewhere.IntervalSpec" in str(error), error
else:
    raise AssertionError("a value of another spec was taken")
""")


# The list of registered names.


def test_every_named_spec_is_listed():
    known = xt.registered_types()
    assert known["tf.RaggedTensorSpec"] is tf.RaggedTensorSpec
    assert known["extensor.DenseStructuredTensorSpec"] is xt.DenseStructuredTensorSpec
    assert list(known) == sorted(known)
    spec_class = type("Listed", (IntervalSpec,), {})
    assert spec_class not in known.values()
    xt.register_type_spec(spec_class, "Listed")
    assert xt.registered_types()["Listed"] is spec_class
    xt.registered_types().clear()
    assert xt.registered_types()["Listed"] is spec_class
