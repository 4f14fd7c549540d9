"""The kinds of TensorFlow's operations.

TensorFlow itself lists 160 functions as elementwise. The tables below classify all other functions.
A function that is in no list has not been classified.
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

# All others, by topic.
_OTHERS = {
    "assertions": """
        Assert assert_equal assert_greater assert_less assert_rank debugging.assert_greater_equal
        debugging.assert_integer debugging.assert_less_equal debugging.assert_near
        debugging.assert_negative debugging.assert_non_negative debugging.assert_non_positive
        debugging.assert_none_equal debugging.assert_positive debugging.assert_proper_iterable
        debugging.assert_rank_at_least debugging.assert_rank_in debugging.assert_same_float_dtype
        debugging.assert_scalar debugging.assert_shapes debugging.assert_type check_pinned
    """,
    "control flow and user functions": """
        case cond foldl foldr no_op numpy_function print py_function scan timestamp
    """,
    "conversion and identity": """
        bitcast convert_to_tensor identity_n nn.with_space_to_batch tuple
    """,
    "creation": """
        broadcast_dynamic_shape broadcast_static_shape eye fill linspace meshgrid one_hot ones range
        sequence_mask unravel_index zeros
    """,
    "functions along an axis or of all elements": """
        approx_top_k argsort clip_by_global_norm clip_by_norm cumsum histogram_fixed_width
        linalg.global_norm linalg.normalize math.bincount math.confusion_matrix math.cumprod
        math.cumulative_logsumexp math.invert_permutation math.is_non_decreasing
        math.is_strictly_increasing math.lbeta math.polyval math.betainc nn.approx_max_k
        nn.approx_min_k nn.in_top_k nn.isotonic_regression nn.l2_loss nn.l2_normalize nn.log_softmax
        nn.moments nn.normalize_moments nn.softmax nn.sufficient_statistics nn.top_k
        nn.weighted_moments nn.zero_fraction searchsorted sort unique unique_with_counts where add_n
        math.accumulate_n
    """,
    "padding and insertion": """
        dynamic_stitch extract_volume_patches image.extract_patches linalg.band_part linalg.diag
        linalg.set_diag linalg.tensor_diag pad required_space_to_batch_paddings scatter_nd
        space_to_batch space_to_batch_nd tensor_scatter_nd_add tensor_scatter_nd_max
        tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update
    """,
    "segments": """
        math.segment_max math.segment_mean math.segment_min math.segment_prod math.segment_sum
        math.unsorted_segment_max math.unsorted_segment_mean math.unsorted_segment_min
        math.unsorted_segment_prod math.unsorted_segment_sqrt_n math.unsorted_segment_sum
        strings.unsorted_segment_join
    """,
    "linear algebra": """
        eig eigvals einsum linalg.adjoint linalg.banded_triangular_solve linalg.cholesky
        linalg.cholesky_solve linalg.cross linalg.det linalg.eigh linalg.eigh_tridiagonal
        linalg.eigvalsh linalg.experimental.conjugate_gradient linalg.expm linalg.inv linalg.logdet
        linalg.logm linalg.lstsq linalg.lu linalg.lu_matrix_inverse linalg.lu_reconstruct
        linalg.lu_solve linalg.matrix_rank linalg.matvec linalg.pinv linalg.qr linalg.slogdet
        linalg.solve linalg.svd linalg.trace linalg.triangular_solve linalg.tridiagonal_matmul
        linalg.tridiagonal_solve matmul matrix_square_root tensordot
    """,
    "random numbers": """
        math.sobol_sample nn.all_candidate_sampler nn.compute_accidental_hits nn.dropout
        nn.experimental.general_dropout nn.experimental.stateless_dropout
        nn.fixed_unigram_candidate_sampler nn.learned_unigram_candidate_sampler random.categorical
        random.experimental.index_shuffle random.fold_in random.gamma
        random.log_uniform_candidate_sampler random.normal random.poisson random.split
        random.stateless_binomial random.stateless_categorical random.stateless_gamma
        random.stateless_normal random.stateless_parameterized_truncated_normal
        random.stateless_poisson random.stateless_truncated_normal random.stateless_uniform
        random.truncated_normal random.uniform random.uniform_candidate_sampler random_index_shuffle
    """,
    "neural networks": """
        conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2 nn.atrous_conv2d
        nn.atrous_conv2d_transpose nn.avg_pool nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d
        nn.batch_norm_with_global_normalization nn.batch_normalization nn.bias_add
        nn.collapse_repeated nn.compute_average_loss nn.conv1d nn.conv1d_transpose nn.conv2d
        nn.conv2d_transpose nn.conv3d nn.conv3d_transpose nn.conv_transpose nn.convolution nn.crelu
        nn.ctc_beam_search_decoder nn.ctc_greedy_decoder nn.ctc_loss nn.ctc_unique_labels
        nn.depthwise_conv2d nn.depthwise_conv2d_backprop_filter nn.depthwise_conv2d_backprop_input
        nn.dilation2d nn.embedding_lookup_sparse nn.erosion2d nn.fractional_avg_pool
        nn.fractional_max_pool nn.lrn nn.max_pool nn.max_pool1d nn.max_pool2d nn.max_pool3d
        nn.max_pool_with_argmax nn.nce_loss nn.pool nn.safe_embedding_lookup_sparse
        nn.sampled_softmax_loss nn.scale_regularization_loss nn.separable_conv2d
        nn.softmax_cross_entropy_with_logits nn.sparse_softmax_cross_entropy_with_logits
        quantization.dequantize quantization.fake_quant_with_min_max_vars_gradient
        quantization.fake_quant_with_min_max_vars_per_channel
        quantization.fake_quant_with_min_max_vars_per_channel_gradient quantization.quantize
        quantization.quantized_concat
    """,
    "images": """
        image.adjust_contrast image.adjust_hue image.adjust_jpeg_quality image.adjust_saturation
        image.combined_non_max_suppression image.crop_and_resize image.draw_bounding_boxes
        image.extract_glimpse image.generate_bounding_box_proposals image.hsv_to_rgb
        image.image_gradients image.non_max_suppression image.non_max_suppression_overlaps
        image.non_max_suppression_padded image.non_max_suppression_with_scores
        image.pad_to_bounding_box image.per_image_standardization image.psnr image.random_contrast
        image.random_hue image.random_jpeg_quality image.random_saturation image.resize
        image.resize_with_crop_or_pad image.resize_with_pad image.rgb_to_grayscale image.rgb_to_hsv
        image.rgb_to_yiq image.rgb_to_yuv image.sample_distorted_bounding_box image.sobel_edges
        image.ssim image.ssim_multiscale image.stateless_random_contrast image.stateless_random_hue
        image.stateless_random_jpeg_quality image.stateless_random_saturation
        image.stateless_sample_distorted_bounding_box image.total_variation image.yiq_to_rgb
        image.yuv_to_rgb
    """,
    "signals": """
        fftnd ifftnd irfftnd rfftnd signal.dct signal.fft signal.fft2d signal.fft3d signal.fftnd
        signal.frame signal.ifftnd signal.irfft signal.irfft2d signal.irfft3d signal.irfftnd
        signal.rfft signal.rfft2d signal.rfft3d signal.rfftnd signal.hamming_window
        signal.hann_window signal.idct signal.ifft signal.ifft2d signal.ifft3d signal.inverse_mdct
        signal.inverse_stft signal.inverse_stft_window_fn signal.kaiser_bessel_derived_window
        signal.kaiser_window signal.linear_to_mel_weight_matrix signal.mdct
        signal.mfccs_from_log_mel_spectrograms signal.overlap_and_add signal.stft
        signal.vorbis_window
    """,
    "strings": """
        edit_distance fingerprint strings.bytes_split strings.format strings.join strings.ngrams
        strings.split strings.unicode_decode strings.unicode_decode_with_offsets
        strings.unicode_encode strings.unicode_split strings.unicode_split_with_offsets
    """,
    "files and records": """
        audio.decode_wav audio.encode_wav io.decode_and_crop_jpeg io.decode_bmp io.decode_csv
        io.decode_gif io.decode_image io.decode_json_example io.decode_jpeg io.decode_jxl
        io.decode_png io.decode_proto io.decode_raw io.decode_webp io.deserialize_many_sparse
        io.encode_jpeg io.encode_png io.encode_proto io.extract_jpeg_shape io.is_jpeg
        io.matching_files io.parse_example io.parse_sequence_example io.parse_single_example
        io.parse_single_sequence_example io.parse_tensor io.read_file io.serialize_many_sparse
        io.serialize_sparse io.serialize_tensor io.write_file
    """,
    "ragged and sparse values": """
        __operators__.ragged_getitem ragged.constant ragged.cross ragged.cross_hashed
        ragged.map_flat_values ragged.range ragged.row_splits_to_segment_ids
        ragged.segment_ids_to_row_splits ragged_fill_empty_rows ragged_fill_empty_rows_grad
        sets.difference sets.intersection sets.size sets.union sparse.add sparse.bincount
        sparse.concat sparse.cross sparse.cross_hashed sparse.expand_dims sparse.eye
        sparse.fill_empty_rows sparse.from_dense sparse.map_values sparse.mask sparse.maximum
        sparse.minimum sparse.reduce_max sparse.reduce_sum sparse.reorder sparse.reset_shape
        sparse.reshape sparse.retain sparse.sampled_addmm sparse.segment_mean sparse.segment_sqrt_n
        sparse.segment_sum sparse.slice sparse.softmax sparse.sparse_dense_matmul sparse.split
        sparse.to_dense sparse.to_indicator sparse.transpose
    """,
}


def _named(text: str) -> Iterator[Function]:
    """Yields the functions with these names, if this version of TensorFlow has them."""
    by_name = _by_name()
    for name in text.split():
        if name in by_name:
            yield by_name[name]


@functools.cache
def _by_name() -> dict[str, Function]:
    return {public.name: function for function, public in FUNCTIONS.items()}


def _listed_by_tensorflow(arity: int) -> Iterator[Function]:
    ours = {id(dispatcher_of(function)): function for function in FUNCTIONS}
    for function in elementwise(arity):
        public = ours.get(id(dispatcher_of(function)))
        if public is not None:
            yield public


@functools.cache
def _unary() -> frozenset[Function]:
    return frozenset([*_listed_by_tensorflow(1), *_named(_UNARY)]).difference(_named(_NOT_UNARY))


@functools.cache
def _binary() -> frozenset[Function]:
    return frozenset([*_listed_by_tensorflow(2), *_named(_BINARY)])


@functools.cache
def _all(text: str) -> frozenset[Function]:
    return frozenset(_named(text))


def kinds_of(op: Function) -> list[str]:
    """Returns the kinds of an operation; an empty list if it is not classified.

    >>> from extensor._dispatch.kind import kinds_of
    >>> import tensorflow as tf
    >>> kinds_of(tf.less)
    ['binary elementwise', 'comparison']
    >>> kinds_of(tf.matmul)
    ['linear algebra']
    """
    known = {
        "unary elementwise": _unary(),
        "binary elementwise": _binary(),
        "comparison": _all(_COMPARISON),
        "logical": _all(_LOGICAL),
        "reduction": _all(_REDUCTION),
        "shape only": _all(_SHAPE_ONLY),
        "rearranging": _all(_REARRANGING),
        "stacking": _all(_STACKING),
        **{topic: _all(names) for topic, names in _OTHERS.items()},
    }
    return [kind for kind, functions in known.items() if op in functions]


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
