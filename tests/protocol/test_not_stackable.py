"""Values of a type that does not stack: every API that stacks raises the same error."""

import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ProtocolError


class Bag:
    def __init__(self, values):
        self.values = values

    def __tf_type_spec__(self):
        return BagSpec(self.values.shape)


class BagSpec(xt.TypeSpec):
    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    value_type = Bag

    @property
    def component_specs(self):
        return (tf.TensorSpec(self.shape),)

    def to_components(self, value):
        return (value.values,)

    def from_components(self, components):
        return Bag(*components)

    def serialize(self):
        return (self.shape,)


def bag():
    return Bag(tf.constant([1.0, 2.0]))


def dataset():
    return tf.data.Dataset.from_tensors(bag())


NUMBERS = tf.range(2)
STACK = {
    "batch": lambda: dataset().batch(2),
    "batch in a nest": lambda: tf.data.Dataset.zip((dataset(), {"a": dataset()})).batch(2),
    "unbatch": lambda: dataset().unbatch(),
    "rebatch": lambda: dataset().rebatch(2),
    "ragged_batch": lambda: dataset().ragged_batch(2),
    "from_tensor_slices": lambda: tf.data.Dataset.from_tensor_slices({"a": bag()}),
    "bucket_by_sequence_length": lambda: dataset().bucket_by_sequence_length(
        lambda _: 1, [10], [2, 2], no_padding=True
    ),
    "group_by_window": lambda: dataset().group_by_window(
        lambda _: tf.constant(0, tf.int64), lambda _, window: window.batch(2), 2
    ),
    "window": lambda: dataset().window(2).flat_map(lambda window: window.batch(2)),
    "map_fn": lambda: tf.map_fn(lambda x: x, bag()),
    "map_fn to tensors": lambda: tf.map_fn(
        lambda _: 1.0, bag(), fn_output_signature=tf.TensorSpec([])
    ),
    "map_fn with a signature": lambda: tf.map_fn(
        lambda _: bag(), NUMBERS, fn_output_signature=BagSpec([2])
    ),
    "vectorized_map": lambda: tf.vectorized_map(lambda x: x, bag()),
    "vectorized_map to values": lambda: tf.vectorized_map(lambda _: bag(), NUMBERS),
    "scan": lambda: xt.scan(lambda _, x: x, bag()),
    "scan to values": lambda: xt.scan(lambda _a, _b: bag(), NUMBERS, initializer=bag()),
    "foldl": lambda: xt.foldl(lambda _, x: x, bag()),
    "foldr": lambda: xt.foldr(lambda _, x: x, bag()),
}


@pytest.mark.parametrize("stack", STACK.values(), ids=list(STACK))
def test_every_function_that_stacks_values_raises_the_same_error(stack):
    with pytest.raises(ProtocolError) as caught:
        stack()
    error = caught.value
    assert error.path == "BagSpec"
    assert error.expected == "a type whose values stack"
    assert error.received == "BagSpec, which is not stackable"
    assert error.fix == "Derive BagSpec from xt.StackableTypeSpec."


@pytest.mark.parametrize("stack", ["batch", "map_fn", "vectorized_map"])
def test_the_error_passes_through_a_tf_function_unchanged(stack):
    with pytest.raises(ProtocolError, match=r"^BagSpec: expected a type whose values stack"):
        tf.function(lambda: STACK[stack]() and None)()


def test_a_component_that_does_not_stack_is_named_with_the_spec_that_holds_it():
    @xt.extension_type
    class Holder:
        bag: Bag

    spec = xt.spec_of(Holder(bag()))
    value = Holder(bag())
    for stack in (
        lambda: spec.stacked(2),
        spec.unstacked,
        lambda: spec.to_boxed_tensor(value),
        lambda: tf.data.Dataset.from_tensors(value),
        lambda: tf.map_fn(lambda x: x, value),
    ):
        with pytest.raises(ProtocolError) as caught:
            stack()
        assert caught.value.path.endswith("Holder.Spec")
        assert caught.value.expected == "components whose values stack"
        assert caught.value.received == "BagSpec, which is not stackable"


def test_a_spec_that_derives_from_tensorflows_own_batchable_one_still_stacks():
    class OwnSpec(BagSpec, xt._tf.BatchableTypeSpec):
        def _batch(self, batch_size):
            return OwnSpec([batch_size, *self.shape])

        def _unbatch(self):
            return OwnSpec(self.shape[1:])

    class Own(Bag):
        def __tf_type_spec__(self):
            return OwnSpec(self.values.shape)

    OwnSpec.value_type = Own
    OwnSpec.from_components = lambda self, components: Own(*components)
    batches = tf.data.Dataset.from_tensor_slices(Own(tf.constant([1.0, 2.0, 3.0]))).batch(2)
    assert [batch.values.numpy().tolist() for batch in batches] == [[1.0, 2.0], [3.0]]


def test_specs_that_tensorflow_does_not_stack_raise_its_error():
    optional = dataset().map(lambda x: tf.experimental.Optional.from_value(x.values))
    with pytest.raises(AttributeError, match="'OptionalSpec' object has no attribute '_batch'"):
        optional.batch(2)
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    with pytest.raises(TypeError, match="map_fn can not consume"):
        tf.map_fn(lambda _: 1.0, slices, fn_output_signature=tf.TensorSpec([]))
