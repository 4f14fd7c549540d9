"""The specs of placeholders are remembered as long as these live."""

import copy
import gc

import keras
import pytest
import tensorflow as tf

import extensor as xt
from extensor._keras import placeholder


class Range:
    """A type without weak references."""

    __slots__ = ("high", "low")

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __tf_type_spec__(self):
        return RangeSpec(self.low.shape, self.low.dtype)


@xt.register_type_spec
class RangeSpec(xt.StackableTypeSpec):
    value_type = Range

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tf.TensorShape(shape), tf.as_dtype(dtype)

    @property
    def component_specs(self):
        return [tf.TensorSpec(self.shape, self.dtype)] * 2

    def to_components(self, value):
        return [value.low, value.high]

    def from_components(self, components):
        return Range(*components)

    def serialize(self):
        return self.shape, self.dtype


@pytest.mark.whole("traces many functions")
@pytest.mark.usefixtures("frozen_objects")
def test_placeholders_of_a_class_without_weak_references_go_with_their_tensors():
    @keras.saving.register_keras_serializable("test_placeholder_spec")
    class Width(xt.keras.Layer):  # Keras 3.10 copies the layers of a graph through a file
        def call(self, taken):
            return taken.high - taken.low

    def build():
        taken = xt.keras.Input(RangeSpec([None, 2], tf.float32))
        return taken, xt.keras.Model(taken, Width()(taken))

    gc.collect()
    before = len(placeholder._specs)
    taken, model = build()
    gc.collect()
    assert len(placeholder._specs) > before
    value = Range(tf.zeros([3, 2]), tf.ones([3, 2]))
    assert model(value).numpy().tolist() == [[1.0, 1.0]] * 3
    assert copy.deepcopy(taken.low).shape == (None, 2)
    del taken, model
    keras.backend.clear_session()
    gc.collect()
    assert len(placeholder._specs) == before
