"""One sample call of every public function of TensorFlow that supports dispatch.

`SAMPLES[name]` holds the arguments by parameter: those that the function must have, and the
optional ones that may be tensors. `USUAL` holds defaults for parameters. `EXCLUDED` holds the
functions that cannot be called here, each with the reason.
"""

import functools
import io
import os
import wave

import numpy as np
import tensorflow as tf

_RANDOM = np.random.default_rng(7)


def _uniform(*shape, low=0.1, high=0.9, dtype=np.float32):
    return tf.constant(_RANDOM.uniform(low, high, shape).astype(dtype))


def _ints(*shape, low=1, high=5, dtype=np.int32):
    return tf.constant(_RANDOM.integers(low, high, shape, endpoint=True).astype(dtype))


def _bytes_of_wave():
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(bytes(range(64)))
    return tf.constant(file.getvalue())


FLOATS = _uniform(2, 3)
OTHERS = tf.where(tf.constant([[True, False, True], [True, True, False]]), _uniform(2, 3), FLOATS)
BATCHES = _uniform(2, 2, 3)
COMPLEX = tf.complex(_uniform(2, 4), _uniform(2, 4))
VOLUMES = tf.complex(_uniform(2, 2, 2, 4), _uniform(2, 2, 2, 4))
INTS = _ints(2, 3)
BOOLS = tf.constant([[True, False, True], [False, False, True]])
STRINGS = tf.constant([["12.5", "3", "-7"], ["0.25", "64", "1e3"]])
WORDS = tf.constant([["flour", "salt and oil", ""], ["egg", "Rye", "oat milk"]])
SQUARES = _uniform(2, 3, 3)
POSITIVE = tf.matmul(SQUARES, SQUARES, transpose_b=True) + 3 * tf.eye(3)
IMAGES = _uniform(2, 8, 8, 3)
LARGE = _uniform(1, 176, 176, 1)
BYTES = tf.cast(_ints(6, 8, 3, low=0, high=255), tf.uint8)
SIGNAL = _uniform(2, 32)
SEED = tf.constant([3, 4])
SPARSE = tf.sparse.from_dense([[1, 0, 2], [0, 3, 0]])
SETS = tf.constant([[1, 2, 3], [4, 5, 9]])
RAGGED = tf.ragged.constant([[1, 2, 3], [4]])
EXAMPLE = tf.train.Example(
    features=tf.train.Features(
        feature={"grams": tf.train.Feature(float_list=tf.train.FloatList(value=[500.0]))}
    )
).SerializeToString()
SEQUENCE = tf.train.SequenceExample(
    context=tf.train.Features(
        feature={"grams": tf.train.Feature(float_list=tf.train.FloatList(value=[500.0]))}
    )
).SerializeToString()
FEATURES = {"grams": tf.io.FixedLenFeature([], tf.float32)}
FILTERS = _uniform(2, 2, 3, 4)
CANDIDATES = {
    "true_classes": tf.constant([[1, 2], [3, 4]], tf.int64),
    "num_true": 2,
    "num_sampled": 3,
    "unique": True,
    "range_max": 20,
}
BOXES = tf.constant([[0.0, 0.0, 0.5, 0.5], [0.1, 0.1, 0.6, 0.6], [0.5, 0.5, 1.0, 1.0]])
SCORES = tf.constant([0.9, 0.8, 0.7])

# The default for each required parameter, by its name.
USUAL = {
    **dict.fromkeys(("x", "input", "input_tensor", "features", "t", "value", "data"), FLOATS),
    **dict.fromkeys(("tensor", "values", "inputs", "a", "self"), FLOATS),
    **dict.fromkeys(("y", "b", "other", "updates"), OTHERS),
    **dict.fromkeys(("image", "images"), IMAGES),
    **dict.fromkeys(("logits", "predictions"), FLOATS),
    **dict.fromkeys(("serialized",), tf.constant([EXAMPLE])),
    "shape": tf.constant([2, 3]),
    "seed": SEED,
    "padding": "SAME",
    "strides": 1,
    "ksize": 2,
    "dtype": tf.float32,
    "axis": 0,
}

SAMPLES = {}
"""For each function its arguments by parameter, but for those in `USUAL`."""


def _sample(names, **arguments):
    for name in names.split():
        assert name not in SAMPLES, name
        SAMPLES[name] = arguments


# Elementwise.
_sample(
    "abs acos asin asinh atan atanh cos cosh erf exp floor negative round sigmoid sign sin sinh "
    "sqrt square tan tanh math.angle math.bessel_i0 math.bessel_i0e math.bessel_i1 math.bessel_i1e "
    "math.ceil math.conj math.digamma math.erf math.erfc math.erfcinv math.erfinv math.expm1 "
    "math.is_finite math.is_inf math.is_nan math.lgamma math.log math.log1p "
    "math.log_sigmoid math.ndtri math.real math.reciprocal math.reciprocal_no_nan math.rint "
    "math.rsqrt math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0 "
    "math.special.bessel_k0e math.special.bessel_k1 math.special.bessel_k1e "
    "math.special.bessel_y0 math.special.bessel_y1 math.special.dawsn math.special.expint "
    "math.special.fresnel_cos math.special.fresnel_sin math.special.spence nn.elu nn.gelu "
    "nn.leaky_relu nn.relu nn.relu6 nn.selu nn.softplus nn.softsign nn.crelu as_string "
    "cast saturate_cast identity stop_gradient zeros_like ones_like"
)
del SAMPLES["erf"]
SAMPLES["cast"] = SAMPLES["saturate_cast"] = {"dtype": tf.int32}
_sample("acosh", x=FLOATS + 1)
_sample("math.imag", input=COMPLEX)
_sample("nn.silu", beta=tf.constant(2.0))
_sample("bitcast", type=tf.uint8)
_sample("bitwise.invert", x=INTS)
_sample("logical_not", x=BOOLS)
_sample("debugging.check_numerics", message="not a number")
_sample(
    "add subtract multiply divide truediv realdiv pow maximum minimum equal not_equal less "
    "less_equal greater greater_equal math.divide_no_nan math.multiply_no_nan "
    "math.squared_difference math.xdivy math.xlog1py math.xlogy math.mod "
    "math.floordiv truncatemod atan2 __operators__.add __operators__.eq __operators__.ne"
)
_sample("truncatediv", x=INTS, y=_ints(2, 3))
_sample("math.nextafter", x1=FLOATS, x2=OTHERS)
_sample("math.zeta", x=FLOATS + 2, q=OTHERS)
_sample("math.polygamma", a=tf.round(FLOATS * 3) + 1, x=OTHERS)
_sample("math.igamma math.igammac", x=OTHERS)
_sample("math.betainc", x=_uniform(2, 3))
_sample("complex", real=FLOATS, imag=OTHERS)
_sample("scalar_mul", scalar=tf.constant(2.0))
_sample("logical_and logical_or math.logical_xor", x=BOOLS, y=BOOLS[::-1])
_sample("bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor", x=INTS, y=_ints(2, 3))
_sample("bitwise.left_shift bitwise.right_shift", x=INTS, y=_ints(2, 3))
_sample("clip_by_value", clip_value_min=tf.constant(0.3), clip_value_max=tf.constant(0.6))
_sample("where", condition=BOOLS, x=FLOATS, y=OTHERS)
_sample("nn.sigmoid_cross_entropy_with_logits", labels=OTHERS, logits=FLOATS)
_sample(
    "nn.weighted_cross_entropy_with_logits",
    labels=OTHERS,
    logits=FLOATS,
    pos_weight=tf.constant(2.0),
)
_sample("nn.log_poisson_loss", targets=OTHERS, log_input=FLOATS)
_sample("math.polyval", coeffs=[tf.constant(2.0), tf.constant(-1.0), tf.constant(0.5)])
_sample("image.adjust_brightness", delta=tf.constant(0.1))
_sample("image.adjust_gamma", gamma=tf.constant(2.0), gain=tf.constant(1.5))
_sample("image.convert_image_dtype", dtype=tf.uint8)
_sample("image.random_brightness", max_delta=0.2, seed=3)
_sample("image.stateless_random_brightness", max_delta=0.2)
_sample("math.accumulate_n add_n", inputs=[FLOATS, OTHERS, FLOATS])
_sample("sequence_mask", lengths=INTS, maxlen=tf.constant(5))
_sample("one_hot", indices=INTS, depth=tf.constant(6), on_value=2.0, off_value=-1.0)
_sample(
    "quantization.fake_quant_with_min_max_args quantization.fake_quant_with_min_max_args_gradient"
)
SAMPLES["quantization.fake_quant_with_min_max_args_gradient"] = {
    "gradients": OTHERS,
    "inputs": FLOATS * tf.constant([1.0, 20.0, 1.0]),
}
_sample(
    "quantization.fake_quant_with_min_max_vars quantization.fake_quant_with_min_max_vars_gradient",
    min=tf.constant(0.0),
    max=tf.constant(1.0),
)
SAMPLES["quantization.fake_quant_with_min_max_vars_gradient"] = {
    "gradients": OTHERS,
    **SAMPLES["quantization.fake_quant_with_min_max_vars"],
}
_sample(
    "quantization.fake_quant_with_min_max_vars_per_channel",
    min=tf.constant([0.0, 0.1, 0.2]),
    max=tf.constant([0.3, 0.6, 0.9]),
)
_sample(
    "quantization.fake_quant_with_min_max_vars_per_channel_gradient",
    gradients=OTHERS,
    **SAMPLES["quantization.fake_quant_with_min_max_vars_per_channel"],
)
_sample(
    "quantization.quantize",
    min_range=tf.constant(0.0),
    max_range=tf.constant(1.0),
    T=tf.quint8,
)
_sample(
    "quantization.dequantize",
    input=tf.bitcast(tf.cast(INTS, tf.uint8), tf.quint8),
    min_range=tf.constant(0.0),
    max_range=tf.constant(1.0),
)
_sample(
    "quantization.quantize_and_dequantize_v2",
    input_min=tf.constant(0.0),
    input_max=tf.constant(1.0),
    range_given=True,
)
SAMPLES["quantization.quantize_and_dequantize"] = SAMPLES["quantization.quantize_and_dequantize_v2"]
_sample(
    "quantization.quantized_concat",
    concat_dim=tf.constant(0),
    values=[tf.bitcast(tf.cast(INTS, tf.uint8), tf.quint8)] * 2,
    input_mins=[tf.constant(0.0)] * 2,
    input_maxes=[tf.constant(1.0)] * 2,
)

# Strings.
_sample("strings.length strings.lower strings.upper strings.strip", input=WORDS)
_sample("strings.bytes_split", input=WORDS)
_sample("strings.to_number", input=STRINGS)
_sample("strings.to_hash_bucket strings.to_hash_bucket_fast", input=WORDS, num_buckets=7)
_sample("strings.to_hash_bucket_strong", input=WORDS, num_buckets=7, key=[1, 2])
_sample("strings.regex_full_match", input=WORDS, pattern=tf.constant("[a-z]+"))
_sample("strings.regex_replace", input=WORDS, pattern=tf.constant("o"), rewrite=tf.constant("0"))
_sample("strings.substr", input=STRINGS, pos=tf.constant(0), len=tf.constant(1))
_sample("strings.unicode_script", input=INTS + 65)
_sample("strings.unicode_transcode", input=WORDS, input_encoding="UTF-8", output_encoding="UTF-8")
_sample("strings.unicode_decode strings.unicode_decode_with_offsets", input=WORDS)
_sample("strings.unicode_split strings.unicode_split_with_offsets", input=WORDS)
for _name in ("decode", "decode_with_offsets", "split", "split_with_offsets"):
    SAMPLES[f"strings.unicode_{_name}"] = {"input": WORDS, "input_encoding": "UTF-8"}
_sample("strings.unicode_encode", input=INTS + 65, output_encoding="UTF-8")
_sample("strings.split", input=WORDS, sep=tf.constant(" "))
_sample("strings.ngrams", data=WORDS, ngram_width=2)
_sample("strings.join", inputs=[WORDS, WORDS[::-1]])
_sample("strings.reduce_join", inputs=WORDS)
_sample(
    "strings.unsorted_segment_join",
    inputs=WORDS,
    segment_ids=tf.constant([0, 0]),
    num_segments=tf.constant(1),
)
_sample("strings.format", template="{} and {}", inputs=[FLOATS, INTS])
_sample("io.decode_base64", input=tf.io.encode_base64(WORDS))
_sample("io.encode_base64", input=WORDS)
_sample("io.decode_compressed", bytes=WORDS)
_sample("io.decode_raw", input_bytes=tf.constant([["ab", "cd"], ["ef", "gh"]]), out_type=tf.uint8)
_sample("edit_distance", hypothesis=SPARSE, truth=SPARSE)
_sample("fingerprint", data=WORDS, method=tf.constant("farmhash64"))

# Reductions, and other operations along an axis.
_sample(
    "reduce_sum reduce_mean reduce_prod reduce_min reduce_max reduce_logsumexp "
    "math.reduce_euclidean_norm math.reduce_std math.reduce_variance math.count_nonzero "
    "argmax argmin norm"
)
_sample("reduce_all reduce_any", input_tensor=BOOLS)
_sample("cumsum math.cumprod math.cumulative_logsumexp")
_sample("nn.softmax nn.log_softmax nn.isotonic_regression sort argsort linalg.normalize")
_sample("nn.l2_normalize", axis=0)
_sample("nn.moments nn.sufficient_statistics", axes=[0], shift=tf.constant(0.5))
SAMPLES["nn.moments"] = {"axes": [0]}
_sample("nn.weighted_moments", axes=[0], frequency_weights=OTHERS)
_sample(
    "nn.normalize_moments",
    counts=tf.constant(2.0),
    mean_ss=_uniform(3),
    variance_ss=_uniform(3),
    shift=_uniform(3),
)
_sample("math.is_non_decreasing math.is_strictly_increasing", x=tf.constant([1.0, 2.0, 3.0]))
_sample("nn.zero_fraction nn.l2_loss")
_sample("math.lbeta linalg.global_norm")
SAMPLES["linalg.global_norm"] = {"t_list": [FLOATS, OTHERS]}
_sample("clip_by_norm", clip_norm=tf.constant(1.0))
_sample("clip_by_global_norm", t_list=[FLOATS, OTHERS], clip_norm=tf.constant(1.0))
_sample("nn.top_k", k=tf.constant(2))
_sample("approx_top_k", k=2)
_sample("nn.approx_max_k", operand=FLOATS, k=2)
_sample(
    "nn.in_top_k",
    targets=tf.constant([1, 1]),
    predictions=tf.constant([[0.1, 0.9, 0.2], [0.9, 0.1, 0.2]]),
    k=1,
)
_sample("unique unique_with_counts", x=tf.constant([3, 1, 3, 2]))
_sample("math.bincount", arr=INTS, weights=FLOATS)
_sample("sparse.bincount", values=INTS, weights=FLOATS)
_sample(
    "math.confusion_matrix",
    labels=tf.constant([1, 2, 0]),
    predictions=tf.constant([1, 0, 0]),
    num_classes=3,
    weights=tf.constant([0.5, 1.0, 2.0]),
)
_sample(
    "histogram_fixed_width histogram_fixed_width_bins",
    value_range=tf.constant([0.0, 1.0]),
    nbins=tf.constant(4),
)
_sample(
    "math.segment_max math.segment_mean math.segment_min math.segment_prod math.segment_sum",
    segment_ids=tf.constant([0, 0]),
)
_sample(
    "math.unsorted_segment_max math.unsorted_segment_mean math.unsorted_segment_min "
    "math.unsorted_segment_prod math.unsorted_segment_sqrt_n math.unsorted_segment_sum",
    segment_ids=tf.constant([1, 0]),
    num_segments=tf.constant(3),
)
_sample("searchsorted", sorted_sequence=tf.sort(FLOATS), values=OTHERS)

# Shapes and places.
_sample("shape size rank")
_sample("shape_n", input=[FLOATS, OTHERS])
_sample("identity_n", input=[FLOATS, INTS])
_sample("tuple", tensors=[FLOATS, INTS])
_sample("reshape", tensor=FLOATS, shape=tf.constant([3, 2]))
_sample("expand_dims transpose image.transpose linalg.adjoint linalg.matrix_transpose")
SAMPLES["linalg.adjoint"] = {"matrix": COMPLEX}
SAMPLES["transpose"] = {"perm": tf.constant([1, 0])}
_sample("squeeze", input=FLOATS[None])
_sample("tile", multiples=tf.constant([1, 2]))
_sample("repeat", repeats=tf.constant([1, 2]), axis=0)
_sample("roll", shift=tf.constant(1))
_sample("reverse", axis=tf.constant([1]))
_sample("reverse_sequence", seq_lengths=tf.constant([2, 3]), seq_axis=1)
_sample("broadcast_to", shape=tf.constant([2, 2, 3]))
_sample("ensure_shape", shape=[2, 3])
_sample("pad", paddings=tf.constant([[0, 1], [1, 0]]), constant_values=tf.constant(7.0))
_sample("slice", input_=FLOATS, begin=tf.constant([0, 1]), size=tf.constant([2, 2]))
_sample(
    "strided_slice",
    input_=FLOATS,
    begin=tf.constant([0, 0]),
    end=tf.constant([2, 3]),
    strides=tf.constant([1, 2]),
)
_sample("__operators__.getitem", slice_spec=(0, tf.constant(1)))
_sample("__operators__.ragged_getitem", rt_input=RAGGED, key=1)
_sample("gather", params=FLOATS, indices=tf.constant([1, 0]), axis=0)
_sample("gather_nd", params=FLOATS, indices=tf.constant([[1, 0], [0, 2]]))
_sample("nn.embedding_lookup", params=FLOATS, ids=tf.constant([1, 0]))
_sample("boolean_mask ragged.boolean_mask", mask=BOOLS)
_sample("scatter_nd", indices=tf.constant([[1], [0]]), shape=tf.constant([3, 3]))
_sample(
    "tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub "
    "tensor_scatter_nd_update",
    indices=tf.constant([[1]]),
    updates=OTHERS[:1],
)
_sample("dynamic_partition", partitions=tf.constant([1, 0]), num_partitions=2)
_sample(
    "dynamic_stitch", indices=[tf.constant([0]), tf.constant([1])], data=[FLOATS[:1], OTHERS[:1]]
)
_sample("split", num_or_size_splits=tf.constant([1, 1]))
_sample("unstack")
_sample("stack concat", values=[FLOATS, OTHERS])
_sample("ragged.stack", values=[FLOATS, OTHERS])
_sample("ragged.stack_dynamic_partitions", partitions=tf.constant([1, 0]), num_partitions=2)
_sample("meshgrid", args=[tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0, 5.0])])
_sample("broadcast_dynamic_shape", shape_x=tf.constant([2, 1]), shape_y=tf.constant([3]))
_sample("broadcast_static_shape", shape_x=tf.TensorShape([2, 1]), shape_y=tf.TensorShape([3]))
_sample("unravel_index", indices=tf.constant([1, 5]), dims=tf.constant([2, 3]))
_sample("math.invert_permutation", x=tf.constant([2, 0, 1]))
_sample(
    "batch_to_space",
    input=_uniform(4, 1, 1, 1),
    block_shape=tf.constant([2, 2]),
    crops=tf.constant([[0, 0], [0, 0]]),
)
_sample(
    "space_to_batch space_to_batch_nd",
    input=_uniform(1, 2, 3, 1),
    block_shape=tf.constant([2, 2]),
    paddings=tf.constant([[0, 0], [1, 0]]),
)
_sample("nn.depth_to_space", input=_uniform(1, 2, 2, 4), block_size=2)
_sample("nn.space_to_depth", input=_uniform(1, 2, 2, 1), block_size=2)
_sample("extract_volume_patches", input=_uniform(1, 3, 3, 3, 1))
SAMPLES["extract_volume_patches"] |= {"ksizes": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1]}
_sample("fill", dims=tf.constant([2, 3]), value=tf.constant(7.0))
_sample("zeros ones")
_sample("eye", num_rows=tf.constant(2), num_columns=tf.constant(3), batch_shape=tf.constant([2]))
_sample("range", start=tf.constant(0), limit=tf.constant(6), delta=tf.constant(2))
_sample("linspace", start=tf.constant(0.0), stop=tf.constant(1.0), num=tf.constant(5))
_sample("convert_to_tensor")
_sample("timestamp no_op")
_sample(
    "sets.difference sets.intersection sets.union", a=SETS, b=tf.constant([[1, 2, 7], [5, 6, 9]])
)
_sample("sets.size", a=SPARSE)

# Control flow and functions.
_sample("cond", pred=tf.constant(True), true_fn=lambda: FLOATS, false_fn=lambda: OTHERS)
_sample("case", pred_fn_pairs=[(tf.constant(True), lambda: FLOATS)], default=lambda: OTHERS)
_sample("foldl foldr scan", fn=lambda total, x: total + x, elems=FLOATS)
_sample("numpy_function", func=lambda x: x, inp=[FLOATS], Tout=tf.float32)
_sample("py_function", func=lambda x: x, inp=[FLOATS], Tout=tf.float32)

# Assertions.
_sample("Assert", condition=tf.constant(True), data=[FLOATS])
_sample("assert_equal", x=FLOATS, y=FLOATS)
_sample("assert_greater", x=FLOATS + 1, y=OTHERS)
_sample("assert_less", x=FLOATS, y=OTHERS + 1)
_sample("debugging.assert_greater_equal", x=FLOATS, y=FLOATS)
_sample("debugging.assert_less_equal", x=FLOATS, y=FLOATS)
_sample("debugging.assert_none_equal", x=FLOATS, y=OTHERS + 1)
_sample("debugging.assert_near", y=FLOATS, rtol=tf.constant(0.1), atol=tf.constant(0.1))
_sample("debugging.assert_negative debugging.assert_non_positive", x=-FLOATS)
_sample("debugging.assert_positive debugging.assert_non_negative")
_sample("debugging.assert_integer", x=INTS)
_sample("debugging.assert_all_finite", message="not finite")
_sample("assert_rank debugging.assert_rank_at_least", rank=tf.constant(2))
_sample("debugging.assert_rank_in", ranks=[tf.constant(1), tf.constant(2)])
_sample("debugging.assert_scalar", tensor=tf.constant(1.0))
_sample("debugging.assert_shapes", shapes=[(FLOATS, ("N", 3))], data=[FLOATS])
_sample("debugging.assert_type", tf_type=tf.float32)
_sample("debugging.assert_proper_iterable", values=[FLOATS])
_sample("debugging.assert_same_float_dtype", tensors=[FLOATS, OTHERS])

# Linear algebra.
_sample("matmul", b=_uniform(3, 2))
_sample("linalg.matvec", b=_uniform(3))
_sample("tensordot", b=_uniform(3, 2), axes=1)
_sample("einsum", equation="ij,jk->ik", inputs=[FLOATS, _uniform(3, 2)])
_sample("linalg.cross")
_sample("linalg.band_part", input=SQUARES, num_lower=tf.constant(1), num_upper=tf.constant(0))
_sample("linalg.cholesky", input=POSITIVE)
_sample("linalg.cholesky_solve", chol=tf.linalg.cholesky(POSITIVE), rhs=_uniform(2, 3, 1))
_sample("linalg.det linalg.inv linalg.expm linalg.lu linalg.qr", input=POSITIVE)
_sample("matrix_square_root", input=POSITIVE)
_sample("linalg.diag", diagonal=FLOATS, k=tf.constant(1), padding_value=tf.constant(7.0))
SAMPLES["linalg.diag"] |= {"num_rows": tf.constant(4), "num_cols": tf.constant(4)}
_sample("linalg.diag_part", input=SQUARES, k=tf.constant(1), padding_value=tf.constant(7.0))
_sample("linalg.set_diag", input=SQUARES, diagonal=FLOATS, k=tf.constant(0))
_sample("linalg.tensor_diag", diagonal=FLOATS)
_sample("linalg.tensor_diag_part linalg.trace", input=SQUARES[0])
SAMPLES["linalg.trace"] = {"x": SQUARES}
_sample("linalg.eigh linalg.eigvalsh linalg.svd eig eigvals", tensor=POSITIVE)
_sample(
    "linalg.eigh_tridiagonal",
    alpha=_uniform(3),
    beta=_uniform(2),
    select="i",
    select_range=tf.constant([0, 1]),
)
_sample(
    "linalg.experimental.conjugate_gradient",
    operator=tf.linalg.LinearOperatorFullMatrix(
        POSITIVE[0], is_self_adjoint=True, is_positive_definite=True
    ),
    rhs=_uniform(3),
    x=_uniform(3),
)
_sample("linalg.logdet", matrix=POSITIVE)
_sample(
    "linalg.lstsq",
    matrix=tf.cast(POSITIVE, tf.float64),
    rhs=_uniform(2, 3, 1, dtype=np.float64),
    l2_regularizer=tf.constant(0.1, tf.float64),
)
_lu, _perm = tf.linalg.lu(POSITIVE)
_sample("linalg.lu_matrix_inverse linalg.lu_reconstruct", lower_upper=_lu, perm=_perm)
_sample("linalg.lu_solve", lower_upper=_lu, perm=_perm, rhs=_uniform(2, 3, 1))
_sample("linalg.matrix_rank", a=SQUARES, tol=tf.constant(0.01))
_sample("linalg.pinv", a=SQUARES, rcond=tf.constant(0.01))
_sample("linalg.solve linalg.triangular_solve", matrix=POSITIVE, rhs=_uniform(2, 3, 1))
_sample(
    "linalg.tridiagonal_matmul linalg.tridiagonal_solve",
    diagonals=[
        tf.constant([0.1, 0.2, 0.0]),
        tf.constant([2.0, 3.0, 4.0]),
        tf.constant([0.0, 0.1, 0.2]),
    ],
    rhs=_uniform(3, 1),
    diagonals_format="sequence",
)

# Signals.
_sample("signal.fft signal.ifft signal.fft2d signal.ifft2d signal.fftnd", input=COMPLEX)
del SAMPLES["signal.fftnd"]
_sample("signal.fft3d signal.ifft3d", input=VOLUMES)
_sample("signal.dct signal.idct signal.fftshift signal.ifftshift")
_sample("signal.frame", signal=SIGNAL, frame_length=tf.constant(8), frame_step=tf.constant(4))
SAMPLES["signal.frame"] |= {"pad_end": True, "pad_value": tf.constant(0.0)}
_sample("signal.overlap_and_add", signal=_uniform(2, 4, 8), frame_step=tf.constant(4))
_sample("signal.stft", signals=SIGNAL, frame_length=tf.constant(8), frame_step=tf.constant(4))
SAMPLES["signal.stft"] |= {"fft_length": tf.constant(8)}
_sample("signal.inverse_stft", stfts=tf.signal.stft(SIGNAL, 8, 4), frame_length=tf.constant(8))
SAMPLES["signal.inverse_stft"] |= {"frame_step": tf.constant(4), "fft_length": tf.constant(8)}
_sample("signal.inverse_stft_window_fn", frame_step=tf.constant(4))
_sample("signal.mdct", signals=SIGNAL, frame_length=tf.constant(8))
_sample("signal.inverse_mdct", mdcts=_uniform(2, 4, 4))
_sample("signal.mfccs_from_log_mel_spectrograms", log_mel_spectrograms=SIGNAL)
_sample(
    "signal.linear_to_mel_weight_matrix",
    num_mel_bins=5,
    num_spectrogram_bins=tf.constant(9),
    sample_rate=tf.constant(8000),
)
_sample(
    "signal.hamming_window signal.hann_window signal.vorbis_window signal.kaiser_window "
    "signal.kaiser_bessel_derived_window",
    window_length=tf.constant(8),
)
for _name in ("hamming", "hann"):
    SAMPLES[f"signal.{_name}_window"] = {
        "window_length": tf.constant(8),
        "periodic": tf.constant(True),
    }
for _name in ("kaiser", "kaiser_bessel_derived"):
    SAMPLES[f"signal.{_name}_window"] = {"window_length": tf.constant(8), "beta": tf.constant(12.0)}

# Random numbers.
_sample("random.normal random.truncated_normal", mean=tf.constant(0.0), stddev=tf.constant(1.0))
_sample(
    "random.stateless_normal random.stateless_truncated_normal",
    mean=tf.constant(0.0),
    stddev=tf.constant(1.0),
)
_sample("random.uniform random.stateless_uniform", minval=tf.constant(0.0), maxval=tf.constant(1.0))
for _name in ("random.normal", "random.truncated_normal", "random.uniform"):
    SAMPLES[_name] = {**SAMPLES[_name], "seed": 5}
_sample("random.gamma", alpha=FLOATS, beta=OTHERS)
_sample("random.stateless_gamma", alpha=FLOATS, beta=OTHERS)
_sample("random.poisson", lam=FLOATS)
_sample("random.stateless_poisson", lam=FLOATS)
_sample("random.stateless_binomial", counts=FLOATS * 10, probs=OTHERS)
_sample(
    "random.stateless_parameterized_truncated_normal",
    means=tf.constant(0.0),
    stddevs=tf.constant(1.0),
    minvals=tf.constant(-2.0),
    maxvals=tf.constant(2.0),
)
_sample("random.categorical", num_samples=tf.constant(4))
_sample("random.stateless_categorical", num_samples=tf.constant(4))
_sample("random.shuffle random.experimental.stateless_shuffle", value=_uniform(7, 2))
_sample(
    "random.experimental.index_shuffle random_index_shuffle",
    index=tf.constant(3, tf.uint32),
    max_index=tf.constant(9, tf.uint32),
    seed=tf.constant([1, 2, 3], tf.uint32),
)
SAMPLES["random.experimental.index_shuffle"] = {
    **SAMPLES["random_index_shuffle"],
    "seed": tf.constant([1, 2], tf.uint32),
}
_sample("random.fold_in", data=tf.constant(3))
_sample("random.split", num=tf.constant(2))
_sample("random.uniform_candidate_sampler random.log_uniform_candidate_sampler", **CANDIDATES)
_sample("nn.learned_unigram_candidate_sampler", **CANDIDATES)
_sample("nn.fixed_unigram_candidate_sampler", **CANDIDATES, unigrams=list(range(1, 21)))
_sample(
    "nn.compute_accidental_hits",
    true_classes=CANDIDATES["true_classes"],
    sampled_candidates=tf.constant([2, 9, 4], tf.int64),
    num_true=2,
)
_sample("math.sobol_sample", dim=tf.constant(2), num_results=tf.constant(4), skip=tf.constant(1))
_sample("nn.dropout", rate=tf.constant(0.5), noise_shape=tf.constant([2, 3]))
_sample("nn.experimental.stateless_dropout", rate=tf.constant(0.5), noise_shape=tf.constant([2, 3]))
_sample(
    "nn.experimental.general_dropout",
    rate=tf.constant(0.5),
    uniform_sampler=lambda shape, dtype: tf.random.uniform(shape, dtype=dtype, seed=3),
    noise_shape=tf.constant([2, 3]),
)

# Neural networks.
_sample("conv", input=IMAGES, filter=FILTERS, strides=[1, 1, 1, 1])
_sample("nn.conv2d nn.convolution", input=IMAGES, filters=FILTERS)
_sample("nn.conv1d", input=_uniform(2, 8, 3), filters=_uniform(2, 3, 4), stride=1)
_sample(
    "nn.conv3d", input=_uniform(1, 4, 4, 4, 2), filters=_uniform(2, 2, 2, 2, 3), strides=[1] * 5
)
_sample(
    "nn.conv1d_transpose",
    input=_uniform(2, 8, 4),
    filters=_uniform(2, 3, 4),
    output_shape=tf.constant([2, 8, 3]),
)
_sample(
    "nn.conv2d_transpose nn.conv_transpose",
    input=_uniform(2, 8, 8, 4),
    filters=FILTERS,
    output_shape=tf.constant([2, 8, 8, 3]),
)
_sample(
    "nn.conv3d_transpose",
    input=_uniform(1, 4, 4, 4, 3),
    filters=_uniform(2, 2, 2, 2, 3),
    output_shape=tf.constant([1, 4, 4, 4, 2]),
    strides=[1] * 5,
)
_sample("nn.atrous_conv2d", value=IMAGES, filters=FILTERS, rate=2)
_sample(
    "nn.atrous_conv2d_transpose",
    value=_uniform(2, 8, 8, 4),
    filters=FILTERS,
    output_shape=tf.constant([2, 8, 8, 3]),
    rate=2,
)
_sample("nn.depthwise_conv2d", input=IMAGES, filter=_uniform(2, 2, 3, 1), strides=[1] * 4)
_sample(
    "nn.separable_conv2d",
    input=IMAGES,
    depthwise_filter=_uniform(2, 2, 3, 1),
    pointwise_filter=_uniform(1, 1, 3, 4),
    strides=[1] * 4,
)
_sample(
    "nn.depthwise_conv2d_backprop_filter",
    input=IMAGES,
    filter_sizes=tf.constant([2, 2, 3, 1]),
    out_backprop=IMAGES,
    strides=[1] * 4,
)
_sample(
    "nn.depthwise_conv2d_backprop_input",
    input_sizes=tf.constant([2, 8, 8, 3]),
    filter=_uniform(2, 2, 3, 1),
    out_backprop=IMAGES,
    strides=[1] * 4,
)
_sample("nn.dilation2d", input=IMAGES, filters=_uniform(2, 2, 3), strides=[1] * 4)
SAMPLES["nn.dilation2d"] |= {"data_format": "NHWC", "dilations": [1] * 4}
_sample("nn.erosion2d", value=IMAGES, filters=_uniform(2, 2, 3), strides=[1] * 4)
SAMPLES["nn.erosion2d"] |= {"data_format": "NHWC", "dilations": [1] * 4}
_sample("nn.avg_pool nn.max_pool nn.avg_pool2d nn.max_pool2d", input=IMAGES)
_sample("nn.avg_pool1d nn.max_pool1d", input=_uniform(2, 8, 3))
_sample("nn.avg_pool3d nn.max_pool3d", input=_uniform(1, 4, 4, 4, 2))
_sample("nn.max_pool_with_argmax", input=IMAGES)
_sample(
    "nn.fractional_avg_pool nn.fractional_max_pool", value=IMAGES, pooling_ratio=[1, 1.4, 1.4, 1]
)
for _name in ("avg", "max"):
    SAMPLES[f"nn.fractional_{_name}_pool"] = {
        "value": IMAGES,
        "pooling_ratio": [1.0, 1.4, 1.4, 1.0],
        "seed": 3,
    }
_sample("nn.pool", input=IMAGES, window_shape=[2, 2], pooling_type="MAX")
_sample(
    "nn.with_space_to_batch",
    input=IMAGES,
    dilation_rate=tf.constant([1, 1]),
    op=lambda x, spatial, padding: tf.cumsum(x, 1),
)
_sample(
    "nn.batch_normalization",
    mean=_uniform(3),
    variance=_uniform(3),
    offset=_uniform(3),
    scale=_uniform(3),
    variance_epsilon=0.01,
)
_sample(
    "nn.batch_norm_with_global_normalization",
    input=IMAGES,
    mean=_uniform(3),
    variance=_uniform(3),
    beta=_uniform(3),
    gamma=_uniform(3),
    variance_epsilon=0.01,
    scale_after_normalization=True,
)
_sample("nn.bias_add", bias=_uniform(3))
_sample("nn.lrn", input=IMAGES)
_sample("nn.collapse_repeated", labels=INTS, seq_length=tf.constant([3, 2]))
_sample("nn.compute_average_loss", per_example_loss=_uniform(3), sample_weight=_uniform(3))
_sample("nn.scale_regularization_loss", regularization_loss=tf.constant(2.0))
_sample("nn.softmax_cross_entropy_with_logits", labels=OTHERS, logits=FLOATS)
_sample("nn.sparse_softmax_cross_entropy_with_logits", labels=tf.constant([1, 2]))
_sample(
    "nn.ctc_beam_search_decoder nn.ctc_greedy_decoder",
    inputs=_uniform(5, 2, 4),
    sequence_length=tf.constant([5, 4]),
)
_sample(
    "nn.ctc_loss",
    labels=tf.constant([[1, 2], [2, 1]]),
    logits=_uniform(5, 2, 4),
    label_length=tf.constant([2, 2]),
    logit_length=tf.constant([5, 4]),
)
_sample("nn.ctc_unique_labels", labels=INTS)
_sample(
    "nn.nce_loss nn.sampled_softmax_loss",
    weights=_uniform(10, 3),
    biases=_uniform(10),
    labels=tf.constant([[1], [2]], tf.int64),
    inputs=FLOATS,
    num_sampled=3,
    num_classes=10,
)
_SPARSE_IDS = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([0, 1, 1], tf.int64), [2, 2])
_SPARSE_WEIGHTS = _SPARSE_IDS.with_values(tf.constant([0.5, 2.0, 3.0]))
_sample(
    "nn.embedding_lookup_sparse",
    params=FLOATS,
    sp_ids=_SPARSE_IDS,
    sp_weights=_SPARSE_WEIGHTS,
)
_sample(
    "nn.safe_embedding_lookup_sparse",
    embedding_weights=FLOATS,
    sparse_ids=_SPARSE_IDS,
    sparse_weights=_SPARSE_WEIGHTS,
)

# Ragged and sparse values.
_sample("ragged.constant", pylist=[[1, 2], [3]])
_sample("ragged.cross ragged.cross_hashed", inputs=[WORDS, WORDS])
_sample(
    "ragged.range", starts=tf.constant([0, 2]), limits=tf.constant([3, 5]), deltas=tf.constant(1)
)
_sample("ragged.row_splits_to_segment_ids", splits=tf.constant([0, 2, 3], tf.int64))
_sample(
    "ragged.segment_ids_to_row_splits",
    segment_ids=tf.constant([0, 0, 2], tf.int64),
    num_segments=tf.constant(3, tf.int64),
)
_sample("ragged.map_flat_values", op=tf.negative, args=[RAGGED])
_sample("sparse.map_values", op=tf.negative, args=[SPARSE])
_sample(
    "ragged_fill_empty_rows",
    value_rowids=tf.constant([0, 2], tf.int64),
    values=tf.constant([1.0, 2.0]),
    nrows=tf.constant(3, tf.int64),
    default_value=tf.constant(7.0),
)
_sample(
    "ragged_fill_empty_rows_grad",
    reverse_index_map=tf.constant([0, 1], tf.int64),
    grad_values=tf.constant([1.0, 2.0]),
)
_sample("sparse.reshape", sp_input=SPARSE, shape=tf.constant([3, 2], tf.int64))
_sample("io.serialize_sparse io.serialize_many_sparse", sp_input=SPARSE)
_sample(
    "io.deserialize_many_sparse",
    serialized_sparse=tf.io.serialize_many_sparse(SPARSE),
    dtype=tf.int32,
)

# Files and records.
_sample("io.parse_example", features=FEATURES, example_names=tf.constant(["meal"]))
_sample("io.parse_single_example", features=FEATURES, serialized=tf.constant(EXAMPLE))
SAMPLES["io.parse_single_example"] |= {"example_names": tf.constant("meal")}
_sample(
    "io.parse_sequence_example",
    serialized=tf.constant([SEQUENCE]),
    context_features=FEATURES,
    example_names=tf.constant(["meal"]),
)
_sample(
    "io.parse_single_sequence_example",
    serialized=tf.constant(SEQUENCE),
    context_features=FEATURES,
    example_name=tf.constant("meal"),
)
_sample("io.parse_tensor", serialized=tf.io.serialize_tensor(FLOATS), out_type=tf.float32)
_sample(
    "io.decode_csv",
    records=tf.constant(["1,2.5", "3,4.5"]),
    record_defaults=[tf.constant([0]), [0.0]],
)
_sample("io.matching_files", pattern=tf.constant("/*"))
_sample("io.write_file", filename=tf.constant(os.devnull), contents=tf.constant("egg"))
_sample("print", inputs=[FLOATS])
_sample("audio.decode_wav", contents=_bytes_of_wave())
_sample("audio.encode_wav", audio=_uniform(8, 1), sample_rate=tf.constant(8000))

# Images.
_JPEG = tf.io.encode_jpeg(BYTES)
_sample("io.decode_image io.decode_png", contents=tf.io.encode_png(BYTES))
_sample("io.decode_jpeg io.extract_jpeg_shape", contents=_JPEG)
_sample("io.decode_and_crop_jpeg", contents=_JPEG, crop_window=tf.constant([0, 0, 4, 4]))
_sample("io.encode_jpeg io.encode_png", image=BYTES)
_sample("image.adjust_contrast", contrast_factor=tf.constant(2.0))
_sample("image.adjust_hue", delta=tf.constant(0.1))
_sample("image.adjust_saturation", saturation_factor=tf.constant(2.0))
_sample("image.adjust_jpeg_quality", image=IMAGES[0], jpeg_quality=tf.constant(80))
_sample("image.central_crop", central_fraction=0.5)
_sample(
    "image.combined_non_max_suppression",
    boxes=BOXES[None, :, None, :],
    scores=SCORES[None, :, None],
    max_output_size_per_class=tf.constant(2),
    max_total_size=tf.constant(2),
    iou_threshold=tf.constant(0.5),
    score_threshold=tf.constant(0.1),
)
_sample(
    "image.crop_and_resize",
    image=IMAGES,
    boxes=BOXES[:2],
    box_indices=tf.constant([0, 1]),
    crop_size=tf.constant([4, 4]),
)
for _name in ("crop", "pad"):
    _sample(
        f"image.{_name}_to_bounding_box",
        offset_height=tf.constant(1),
        offset_width=tf.constant(1),
        target_height=tf.constant(4 if _name == "crop" else 10),
        target_width=tf.constant(4 if _name == "crop" else 10),
    )
_sample(
    "image.draw_bounding_boxes",
    boxes=BOXES[None][:, :2].numpy().repeat(2, 0),
    colors=_uniform(2, 3),
)
_sample(
    "image.extract_glimpse",
    input=IMAGES,
    size=tf.constant([4, 10]),
    offsets=tf.constant([[0.0, 0.0]] * 2),
)
_sample(
    "image.extract_patches",
    sizes=[1, 2, 2, 1],
    strides=[1, 1, 1, 1],
    rates=[1, 1, 1, 1],
)
_sample("image.flip_left_right image.flip_up_down image.hsv_to_rgb image.image_gradients")
_sample("image.grayscale_to_rgb", images=IMAGES[..., :1])
_sample("image.per_image_standardization image.sobel_edges image.rgb_to_grayscale")
_sample("image.rgb_to_hsv image.rgb_to_yiq image.rgb_to_yuv image.yiq_to_rgb image.yuv_to_rgb")
_sample("image.total_variation")
_sample("image.rot90", k=tf.constant(1))
_NMS = {
    "boxes": BOXES,
    "scores": SCORES,
    "max_output_size": tf.constant(2),
    "iou_threshold": tf.constant(0.3),
    "score_threshold": tf.constant(0.1),
}
_sample("image.non_max_suppression image.non_max_suppression_padded", **_NMS)
_sample("image.non_max_suppression_with_scores", **_NMS, soft_nms_sigma=tf.constant(0.0))
_sample(
    "image.non_max_suppression_overlaps",
    overlaps=_uniform(3, 3),
    scores=SCORES,
    max_output_size=tf.constant(2),
    overlap_threshold=tf.constant(0.5),
    score_threshold=tf.constant(0.1),
)
_sample("image.psnr", a=IMAGES, b=IMAGES[::-1], max_val=1.0)
_sample("image.ssim", img1=_uniform(1, 16, 16, 1), img2=_uniform(1, 16, 16, 1), max_val=1.0)
_sample("image.ssim_multiscale", img1=LARGE, img2=LARGE**2, max_val=1.0)
_sample("image.random_contrast image.random_saturation", lower=0.5, upper=1.5, seed=3)
_sample("image.stateless_random_contrast image.stateless_random_saturation", lower=0.5, upper=1.5)
SAMPLES["image.stateless_random_saturation"] = {"lower": 0.5, "upper": 1.5, "seed": SEED}
_sample("image.random_hue", max_delta=0.2, seed=3)
_sample("image.stateless_random_hue", max_delta=0.2)
_sample("image.random_flip_left_right image.random_flip_up_down", seed=3)
_sample("image.stateless_random_flip_left_right image.stateless_random_flip_up_down")
_sample("image.random_crop", value=IMAGES, size=tf.constant([2, 4, 4, 3]), seed=3)
_sample("image.stateless_random_crop", value=IMAGES, size=tf.constant([2, 4, 4, 3]))
_sample(
    "image.random_jpeg_quality", image=IMAGES[0], min_jpeg_quality=70, max_jpeg_quality=90, seed=3
)
_sample(
    "image.stateless_random_jpeg_quality", image=IMAGES[0], min_jpeg_quality=70, max_jpeg_quality=90
)
_sample("image.resize", size=tf.constant([4, 4]))
_sample("image.resize_with_crop_or_pad image.resize_with_pad", target_height=10, target_width=4)
_sample(
    "image.sample_distorted_bounding_box image.stateless_sample_distorted_bounding_box",
    image_size=tf.constant([8, 8, 3]),
    bounding_boxes=BOXES[None],
    min_object_covered=tf.constant(0.1),
)
SAMPLES["image.sample_distorted_bounding_box"] = {
    **SAMPLES["image.sample_distorted_bounding_box"],
    "seed": 3,
}

# Functions without a dispatcher of TensorFlow.
FLOAT_SPARSE = tf.sparse.from_dense([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
_sample("io.decode_json_example", json_examples=tf.constant(["{}"]))
_sample("io.is_jpeg", contents=tf.io.encode_jpeg(BYTES))
_sample("io.read_file", filename=tf.constant(__file__))
_sample("io.serialize_tensor")
_sample("linalg.banded_triangular_solve", bands=_uniform(2, 2, 3, low=0.5), rhs=_uniform(2, 3, 1))
_sample("linalg.slogdet", input=POSITIVE)
_sample(
    "nn.all_candidate_sampler",
    true_classes=tf.constant([[0, 1], [1, 2]], tf.int64),
    num_true=2,
    num_sampled=3,
    unique=True,
    seed=3,
)
_sample(
    "required_space_to_batch_paddings",
    input_shape=tf.constant([3, 5]),
    block_shape=tf.constant([2, 2]),
    base_paddings=tf.constant([[0, 0], [1, 0]]),
)
_sample("signal.rfft signal.rfft2d signal.rfft3d", input_tensor=_uniform(2, 2, 2, 4))
_sample("signal.irfft", input_tensor=COMPLEX, fft_length=tf.constant([4]))
_sample("signal.irfft2d", input_tensor=COMPLEX, fft_length=tf.constant([2, 4]))
_sample("signal.irfft3d", input_tensor=VOLUMES, fft_length=tf.constant([2, 2, 4]))
SAMPLES["signal.rfft"] = {**SAMPLES["signal.rfft"], "fft_length": tf.constant([4])}
SAMPLES["signal.rfft2d"] = {**SAMPLES["signal.rfft2d"], "fft_length": tf.constant([2, 4])}
SAMPLES["signal.rfft3d"] = {**SAMPLES["signal.rfft3d"], "fft_length": tf.constant([2, 2, 4])}
_sample("sparse.add", a=FLOAT_SPARSE, b=FLOAT_SPARSE, threshold=tf.constant(0.5))
_sample("sparse.concat", sp_inputs=[SPARSE, SPARSE])
_sample("sparse.cross sparse.cross_hashed", inputs=[SPARSE, INTS])
_sample("sparse.expand_dims", sp_input=SPARSE)
_sample("sparse.eye", num_rows=tf.constant(3), num_columns=tf.constant(2))
_sample("sparse.fill_empty_rows", sp_input=SPARSE, default_value=tf.constant(7))
_sample("sparse.from_dense", tensor=INTS)
_sample(
    "sparse.mask",
    a=tf.IndexedSlices(FLOATS, tf.constant([1, 4])),
    mask_indices=tf.constant([1]),
)
_sample("sparse.maximum sparse.minimum", sp_a=SPARSE, sp_b=SPARSE)
_sample("sparse.reduce_max sparse.reduce_sum sparse.reorder", sp_input=SPARSE)
_sample("sparse.reset_shape", sp_input=SPARSE, new_shape=tf.constant([4, 4], tf.int64))
_sample("sparse.retain", sp_input=SPARSE, to_retain=tf.constant([True, False, True]))
_sample(
    "sparse.sampled_addmm",
    indices=tf.constant([[0, 0], [1, 2]], tf.int64),
    values=tf.constant([1.0, 2.0]),
    dense_shape=tf.constant([2, 3]),
    mat1=_uniform(2, 4),
    mat2=_uniform(4, 3),
)
_sample(
    "sparse.segment_mean sparse.segment_sqrt_n sparse.segment_sum",
    indices=tf.constant([0, 1]),
    segment_ids=tf.constant([0, 0]),
    num_segments=tf.constant(2),
)
_sample(
    "sparse.slice",
    sp_input=SPARSE,
    start=tf.constant([0, 0], tf.int64),
    size=tf.constant([2, 2], tf.int64),
)
_sample("sparse.softmax", sp_input=FLOAT_SPARSE)
_sample("sparse.sparse_dense_matmul", sp_a=FLOAT_SPARSE, b=_uniform(3, 2))
_sample("sparse.split", sp_input=SPARSE, num_split=2, axis=0)
_sample("sparse.to_dense", sp_input=SPARSE, default_value=tf.constant(7))
_sample("sparse.to_indicator", sp_input=SPARSE, vocab_size=5)
_sample("sparse.transpose", sp_input=SPARSE, perm=tf.constant([1, 0]))

EXCLUDED = {}
"""The functions that are not called, with the reason."""


def _exclude(reason, names):
    EXCLUDED.update(dict.fromkeys(names.split(), reason))


_exclude(
    "TensorFlow has no kernel for it on a CPU",
    "conv2d_backprop_filter_v2 conv2d_backprop_input_v2 fftnd ifftnd rfftnd irfftnd check_pinned "
    "signal.fftnd signal.ifftnd signal.rfftnd signal.irfftnd "
    "image.generate_bounding_box_proposals nn.approx_min_k",
)
_exclude("needs a graph", "parallel_stack")
_exclude("its kernel does not end for some of the matrices that the definitions try", "linalg.logm")
_exclude(
    "decodes a format that TensorFlow does not write",
    "io.decode_bmp io.decode_gif io.decode_jxl io.decode_webp",
)
_exclude("needs the descriptor of a message", "io.decode_proto io.encode_proto")


@functools.cache
def arguments(operation):
    """The arguments of one call of an operation, by parameter."""
    parameters = operation.public.parameters
    given = SAMPLES[operation.name]
    must = () if operation.public.variadic else parameters[: operation.required]
    given = {**{p: USUAL[p] for p in must if p not in given}, **given}
    return {p: given[p] for p in parameters if p in given}
