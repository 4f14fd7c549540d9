"""SimpleMaskedTensor, the example of the proposal for `__tf_dispatch__`, works as proposed."""

from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt


class SimpleMaskedTensor:
    """Class that pairs a `value` tensor with a corresponding boolean `mask`."""

    def __init__(self, value, mask):
        value.shape.assert_is_compatible_with(mask.shape)
        self._value = value
        self._mask = mask

    value = property(lambda self: self._value)
    mask = property(lambda self: self._mask)
    shape = property(lambda self: self._value.shape)
    dtype = property(lambda self: self._value.dtype)

    def __tf_type_spec__(self):
        return SimpleMaskedTensorSpec(self.shape, self.dtype)

    _dispatchers: ClassVar = {}  # dict mapping operation to handler function.

    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        if xt.dispatch.is_unary_elementwise_op(op):
            return cls._unary_elementwise_dispatch(op, args, kwargs)
        elif xt.dispatch.is_binary_elementwise_op(op):
            return cls._binary_elementwise_dispatch(op, args, kwargs)
        else:
            dispatch_handler = cls._dispatchers.get(op, None)
            if dispatch_handler is not None:
                return dispatch_handler(*args, **kwargs)
            else:
                return NotImplemented

    @classmethod
    def _unary_elementwise_dispatch(cls, op, args, kwargs):
        args = list(args)
        first_arg = args.pop(0)
        if not isinstance(first_arg, SimpleMaskedTensor):
            return NotImplemented
        transformed_values = op(first_arg.value, *args, **kwargs)
        return SimpleMaskedTensor(transformed_values, first_arg.mask)

    @classmethod
    def _binary_elementwise_dispatch(cls, op, args, kwargs):
        args = list(args)
        values = []
        masks = []
        for arg in args[:2]:
            if isinstance(arg, tf.Tensor):
                values.append(arg)
            elif isinstance(arg, SimpleMaskedTensor):
                values.append(arg.value)
                masks.append(arg.mask)
            else:
                return NotImplemented

        transformed_values = op(*values, *args[2:], **kwargs)
        combined_mask = masks[0] if len(masks) == 1 else tf.math.logical_and(*masks)
        return SimpleMaskedTensor(transformed_values, combined_mask)


# We support ops that take tf.Tensor and SimpleMaskedTensor arguments. We don't support any other
# dispatchable argument types (such as tf.RaggedTensor).
SimpleMaskedTensor.__tf_dispatch_types__ = (tf.Tensor, SimpleMaskedTensor)


class SimpleMaskedTensorSpec(xt.TypeSpec):
    """Type specification for a `SimpleMaskedTensor`."""

    def __init__(self, shape, dtype):
        self._shape = tf.TensorShape(shape)
        self._dtype = tf.dtypes.as_dtype(dtype)

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    value_type = property(lambda self: SimpleMaskedTensor)

    def to_components(self, masked_tensor):
        return (masked_tensor.value, masked_tensor.mask)

    def from_components(self, components):
        return SimpleMaskedTensor(*components)

    @property
    def component_specs(self):
        return (tf.TensorSpec(self._shape, self._dtype), tf.TensorSpec(self._shape, tf.bool))

    def serialize(self):
        return (self._shape, self._dtype)


def masked_tensor_shape(input, out_type=tf.int32, name=None):
    return tf.shape(input.value, out_type, name)


def masked_tensor_tile(input, multiples, name=None):
    with tf.name_scope(name or "tile"):
        return SimpleMaskedTensor(tf.tile(input.value, multiples), tf.tile(input.mask, multiples))


def masked_tensor_reduce_sum(input_tensor, axis=None, keepdims=False, name=None):
    with tf.name_scope(name or "reduce_sum"):
        return SimpleMaskedTensor(
            tf.reduce_sum(input_tensor.value, axis, keepdims),
            tf.reduce_all(input_tensor.mask, axis, keepdims),
        )


SimpleMaskedTensor._dispatchers.update(
    {
        tf.shape: masked_tensor_shape,
        tf.tile: masked_tensor_tile,
        tf.reduce_sum: masked_tensor_reduce_sum,
    }
)

MASKED = SimpleMaskedTensor(
    tf.constant([[1.0, 4.0], [9.0, 16.0]]), tf.constant([[True, False], [True, True]])
)


@pytest.fixture(params=["eager", "graph"])
def run(request):
    return tf.function if request.param == "graph" else lambda function: function


def same(masked, value, mask):
    assert type(masked) is SimpleMaskedTensor
    np.testing.assert_array_equal(masked.value, value)
    np.testing.assert_array_equal(masked.mask, mask)


def test_unary_elementwise_operations(run):
    same(run(tf.sqrt)(MASKED), [[1, 2], [3, 4]], MASKED.mask)
    same(run(lambda x: tf.cast(x, dtype=tf.int32))(MASKED), [[1, 4], [9, 16]], MASKED.mask)
    same(run(lambda x: tf.clip_by_value(x, 2, 10))(MASKED), [[2, 4], [9, 10]], MASKED.mask)


def test_binary_elementwise_operations(run):
    other = SimpleMaskedTensor(tf.ones([2, 2]), tf.constant([[False, True], [True, True]]))
    both = [[False, False], [True, True]]
    same(run(tf.add)(MASKED, other), [[2, 5], [10, 17]], both)
    same(run(lambda x, y: tf.math.multiply(y=x, x=y))(MASKED, other), MASKED.value, both)
    ten = tf.constant(10.0)
    same(run(lambda x: tf.maximum(x, ten))(MASKED), [[10, 10], [10, 16]], MASKED.mask)
    same(run(lambda x: ten - x)(MASKED), [[9, 6], [1, -6]], MASKED.mask)
    same(run(lambda x: ten > x)(MASKED), [[True, True], [True, False]], MASKED.mask)


def test_operations_of_the_table(run):
    assert run(lambda x: tf.shape(x, out_type=tf.int64))(MASKED).dtype == tf.int64
    np.testing.assert_array_equal(run(tf.shape)(MASKED), [2, 2])
    tiled = run(lambda x: tf.tile(x, multiples=[1, 2]))(MASKED)
    same(tiled, [[1, 4, 1, 4], [9, 16, 9, 16]], [[True, False] * 2, [True, True] * 2])
    same(run(tf.math.reduce_sum)(MASKED), 30.0, False)
    total = run(lambda x: tf.reduce_sum(axis=1, input_tensor=x, keepdims=True))(MASKED)
    same(total, [[5], [25]], [[False], [True]])


def test_a_ragged_tensor_beside_it_is_not_supported():
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises((TypeError, ValueError), match="SimpleMaskedTensor was not called"):
        tf.add(MASKED, ragged)


def test_operations_that_it_does_not_override_are_errors():
    with pytest.raises((TypeError, ValueError), match="SimpleMaskedTensor declined"):
        tf.reverse(MASKED, [0])


def test_generic_functions_take_it(run):
    result = run(lambda x: tf.while_loop(
        lambda i, _: i < 3, lambda i, m: (i + 1, tf.add(m, m)), (tf.constant(0), x)
    ))(MASKED)  # fmt: skip
    same(result[1], [[8, 32], [72, 128]], MASKED.mask)
    with tf.GradientTape() as tape:
        tape.watch(MASKED.value)
        total = tf.reduce_sum(tf.square(MASKED))
    np.testing.assert_array_equal(tape.gradient(total.value, MASKED.value), 2 * MASKED.value)
