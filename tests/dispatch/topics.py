"""The functions of TensorFlow that have none of the kinds of `extensor._dispatch.kind`."""

from extensor._dispatch import kind

TOPICS = {
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


def kinds_of(op):
    """Returns the kinds of an operation; an empty list if nobody has classified it."""
    names = {
        "unary elementwise": kind._unary(),
        "binary elementwise": kind._binary(),
        "comparison": kind._all(kind._COMPARISON),
        "logical": kind._all(kind._LOGICAL),
        "reduction": kind._all(kind._REDUCTION),
        "shape only": kind._all(kind._SHAPE_ONLY),
        "rearranging": kind._all(kind._REARRANGING),
        "stacking": kind._all(kind._STACKING),
        **{topic: kind._all(text) for topic, text in TOPICS.items()},
    }
    return [name for name, functions in names.items() if op in functions]
