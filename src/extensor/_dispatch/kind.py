"""The kinds of TensorFlow's operations.

TensorFlow itself lists 160 functions as elementwise. The tables below have the other kinds that
users can ask for. `tests/dispatch/topics.py` lists all functions that have none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from extensor._dispatch.operation import FUNCTIONS
from extensor._tf._tf_dispatch import dispatcher_of, elementwise

Function = Callable[..., Any]

# In addition to TensorFlow's own lists.
_UNARY = """
    debugging.assert_all_finite ensure_shape histogram_fixed_width_bins identity
    quantization.fake_quant_with_min_max_args quantization.fake_quant_with_min_max_vars
    quantization.quantize_and_dequantize quantization.quantize_and_dequantize_v2 stop_gradient
"""
_BINARY = """
    __operators__.add __operators__.eq __operators__.ne math.igamma math.igammac math.nextafter
    math.polygamma nn.log_poisson_loss nn.weighted_cross_entropy_with_logits
    quantization.fake_quant_with_min_max_args_gradient
"""
# TensorFlow lists it as unary.
_NOT_UNARY = "math.nextafter"

_COMPARISON = """
    __operators__.eq __operators__.ne equal greater greater_equal less less_equal not_equal
"""
_LOGICAL = "logical_and logical_not logical_or math.logical_xor"
_REDUCTION = """
    argmax argmin math.count_nonzero math.reduce_euclidean_norm math.reduce_std
    math.reduce_variance norm reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean
    reduce_min reduce_prod reduce_sum strings.reduce_join
"""
_UNIT_KEEPING = """
    math.reduce_euclidean_norm math.reduce_std norm reduce_max reduce_mean reduce_min reduce_sum
"""
_SHAPE_ONLY = "ones_like rank shape shape_n size zeros_like"
_REARRANGING = """
    __operators__.getitem batch_to_space boolean_mask broadcast_to dynamic_partition expand_dims
    gather gather_nd image.central_crop image.crop_to_bounding_box image.flip_left_right
    image.flip_up_down image.grayscale_to_rgb image.random_crop image.random_flip_left_right
    image.random_flip_up_down image.rot90 image.stateless_random_crop
    image.stateless_random_flip_left_right image.stateless_random_flip_up_down image.transpose
    linalg.diag_part linalg.matrix_transpose linalg.tensor_diag_part nn.depth_to_space
    nn.embedding_lookup nn.space_to_depth ragged.boolean_mask ragged.stack_dynamic_partitions
    random.experimental.stateless_shuffle random.shuffle repeat reshape reverse reverse_sequence
    roll signal.fftshift signal.ifftshift slice split squeeze strided_slice tile transpose unstack
"""
_STACKING = "concat parallel_stack ragged.stack stack"


def _ops(text: str) -> Iterator[Function]:
    """Yields the functions with these names, if this version of TensorFlow has them."""
    by_name = _by_name()
    for name in text.split():
        if name in by_name:
            yield by_name[name]


@functools.cache
def _by_name() -> dict[str, Function]:
    return {public.name: function for function, public in FUNCTIONS.items()}


def _elementwise_in_tensorflow(arity: int) -> Iterator[Function]:
    ours = {id(dispatcher_of(function)): function for function in FUNCTIONS}
    for function in elementwise(arity):
        public = ours.get(id(dispatcher_of(function)))
        if public is not None:
            yield public


@functools.cache
def _unary() -> frozenset[Function]:
    return frozenset([*_elementwise_in_tensorflow(1), *_ops(_UNARY)]).difference(_ops(_NOT_UNARY))


@functools.cache
def _binary() -> frozenset[Function]:
    return frozenset([*_elementwise_in_tensorflow(2), *_ops(_BINARY)])


@functools.cache
def _all(text: str) -> frozenset[Function]:
    return frozenset(_ops(text))


def is_unary_elementwise_op(op: Function) -> bool:
    """Returns whether an operation transforms each element of its first argument separately.

    The result has the shape of the first argument. All other arguments apply to all elements alike.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_unary_elementwise_op(tf.math.abs)
    True
    >>> xt.dispatch.is_unary_elementwise_op(tf.clip_by_value)
    True
    >>> xt.dispatch.is_unary_elementwise_op(tf.nn.softmax)
    False
    """
    return op in _unary()


def is_binary_elementwise_op(op: Function) -> bool:
    """Returns whether an operation transforms each pair of elements of its first two arguments.

    The two arguments broadcast, and the result has the broadcast shape. A few require equal shapes,
    or a scalar as the first argument: `tf.nn.sigmoid_cross_entropy_with_logits`,
    `tf.nn.weighted_cross_entropy_with_logits`, `tf.nn.log_poisson_loss`, `tf.math.scalar_mul`,
    `tf.quantization.fake_quant_with_min_max_args_gradient`.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_binary_elementwise_op(tf.math.add)
    True
    >>> xt.dispatch.is_binary_elementwise_op(tf.matmul)
    False
    """
    return op in _binary()


def is_comparison_op(op: Function) -> bool:
    """Returns whether a binary elementwise operation returns bools for arguments of any dtype.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_comparison_op(tf.less)
    True
    >>> xt.dispatch.is_comparison_op(tf.logical_and)
    False
    """
    return op in _all(_COMPARISON)


def is_logical_op(op: Function) -> bool:
    """Returns whether an elementwise operation takes only bools and returns bools.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_logical_op(tf.logical_not)
    True
    """
    return op in _all(_LOGICAL)


def is_reduction_op(op: Function) -> bool:
    """Returns whether an operation combines the values of its first argument along `axis`.

    The result has the shape of the first argument without this axis. Each element is computed only
    from the values along the axis. The result may be a number of another kind: a position
    (`tf.argmax`), a count, a square. See `is_unit_keeping_reduction_op`.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_reduction_op(tf.reduce_sum)
    True
    >>> xt.dispatch.is_reduction_op(tf.strings.reduce_join)
    True
    >>> xt.dispatch.is_reduction_op(tf.cumsum)
    False
    """
    return op in _all(_REDUCTION)


def is_unit_keeping_reduction_op(op: Function) -> bool:
    """Returns whether an operation is a reduction whose result has the unit of its argument.

    If all numbers become k times as large (k > 0), the result becomes k times as large. So the sum
    of lengths in metres is a length in metres. Their variance, product, position and count are not.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_unit_keeping_reduction_op(tf.reduce_max)
    True
    >>> xt.dispatch.is_unit_keeping_reduction_op(tf.argmax)
    False
    """
    return op in _all(_UNIT_KEEPING)


def is_shape_only_op(op: Function) -> bool:
    """Returns whether an operation uses only the shape and dtype of its first argument.

    The result does not depend on the elements.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_shape_only_op(tf.shape)
    True
    >>> xt.dispatch.is_shape_only_op(tf.reshape)
    False
    """
    return op in _all(_SHAPE_ONLY)


def is_rearranging_op(op: Function) -> bool:
    """Returns whether an operation moves elements of its first argument, whatever their values.

    The results contain elements of the first argument in other positions; some may be removed or
    repeated. So one call can move values, and another call their mask, weights or units.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_rearranging_op(tf.gather)
    True
    >>> xt.dispatch.is_rearranging_op(tf.sort), xt.dispatch.is_rearranging_op(tf.pad)
    (False, False)
    """
    return op in _all(_REARRANGING)


def is_stacking_op(op: Function) -> bool:
    """Returns whether an operation joins a sequence of tensors, whatever their values.

    Args:
        op: A function of TensorFlow, under any of its names. Other functions return False.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.is_stacking_op(tf.concat)
    True
    >>> xt.dispatch.is_stacking_op(tf.add_n)
    False
    """
    return op in _all(_STACKING)
