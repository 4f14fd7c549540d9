"""Which parameters of TensorFlow's functions take tensors.

A function that TensorFlow generated from the definition of an op has annotations with this
information. For functions written by hand, the tables below list parameter names, because
TensorFlow uses the same name for the same meaning. Exceptions are listed by function.

Options such as `axis`, `keepdims` and `dtype` do not count as tensors, even if TensorFlow converts
them to tensors.
"""

from __future__ import annotations

from extensor._tf._tf_dispatch import PublicFunction

_TENSORS = frozenset(
    """
    a alpha anchors arr atol b bands base_paddings batch_shape bbox_deltas begin beta bias biases
    block_shape bounding_boxes box_indices boxes chol clip_norm clip_value_max clip_value_min colors
    condition constant_values contents contrast_factor counts crop_size crops data default_value
    delta deltas dense_shape depth depthwise_filter diagonal dilation_rate dims embedding_weights
    end example_name example_names features fft_length filter filter_sizes filters frame_length
    frame_step frequency_weights gain gamma hypothesis ids imag image image_info image_size images
    img1 img2 index indices input input_ input_bytes input_max input_min input_shape input_sizes
    input_tensor inputs iou_threshold jpeg_quality json_examples l2_regularizer label_length labels
    lam len lengths limit limits log_input log_mel_spectrograms logit_length logits lower_upper mask
    mask_indices mat1 mat2 matrix max_index max_output_size max_output_size_per_class max_range
    maxlen maxval maxvals mdcts mean mean_ss means min_object_covered min_range min_size minval
    minvals nbins new_shape nms_threshold noise_shape num_columns num_or_size_splits num_results
    num_samples num_segments num_spectrogram_bins off_value offset offsets on_value operand other
    out_backprop output_shape overlap_threshold overlaps pad_value padding_value paddings params
    partitions pattern per_example_loss periodic perm pointwise_filter pos pos_weight pre_nms_topn
    pred predictions probs rate rcond real records regularization_loss repeats rewrite rhs rt_input
    rtol sample_rate sample_weight sampled_candidates saturation_factor scalar scale score_threshold
    scores segment_ids self sep seq_length seq_lengths sequence_length serialized serialized_sparse
    shape shape_x shape_y shift signal signals size skip soft_nms_sigma sorted_sequence sp_a sp_b
    sp_ids sp_input sp_weights sparse_ids sparse_weights splits start starts stddev stddevs stfts
    stop t targets tensor to_retain true_classes truth updates use_norm value value_range values
    variance variance_ss weights window_length x y
    """.split()
)
_SEQUENCES = frozenset(
    """
    args coeffs diagonals inp key ranks record_defaults slice_spec sp_inputs t_list tensors
    """.split()
)

# Exceptions: functions in which a name has another meaning.
_TENSORS_HERE = {
    "assert_rank": ["rank"],
    "debugging.assert_rank_at_least": ["rank"],
    "eye": ["num_rows"],
    "fingerprint": ["method"],
    "io.read_file": ["filename"],
    "image.crop_to_bounding_box": [
        *("offset_height", "offset_width", "target_height", "target_width")
    ],
    "image.rot90": ["k"],
    "linalg.diag": ["k", "num_cols", "num_rows"],
    "linalg.diag_part": ["k"],
    "linalg.matrix_rank": ["tol"],
    "linalg.set_diag": ["k"],
    "linspace": ["num"],
    "math.sobol_sample": ["dim"],
    "nn.top_k": ["k"],
    "random.experimental.index_shuffle": ["seed"],
    "random.fold_in": ["seed"],
    "random.split": ["num", "seed"],
    "sparse.add": ["threshold"],
    "sparse.eye": ["num_rows"],
    "sparse.to_indicator": ["vocab_size"],
    "strided_slice": ["strides"],
}
_SEQUENCES_HERE = {
    "Assert": ["data"],
    "add_n": ["inputs"],
    "concat": ["values"],
    "debugging.assert_shapes": ["data"],
    "einsum": ["inputs"],
    "identity_n": ["input"],  # generated, but lists of mixed dtypes have no annotation
    "io.encode_proto": ["values"],  # the same
    "math.accumulate_n": ["inputs"],
    "nn.embedding_lookup": ["params"],
    "nn.embedding_lookup_sparse": ["params"],
    "nn.nce_loss": ["weights"],
    "nn.safe_embedding_lookup_sparse": ["embedding_weights"],
    "nn.sampled_softmax_loss": ["weights"],
    "parallel_stack": ["values"],
    "print": ["inputs"],
    "ragged.cross": ["inputs"],
    "ragged.cross_hashed": ["inputs"],
    "ragged.stack": ["values"],
    "shape_n": ["input"],
    "sparse.cross": ["inputs"],
    "sparse.cross_hashed": ["inputs"],
    "stack": ["values"],
    "strings.format": ["inputs"],
    "strings.join": ["inputs"],
}
_OTHERS_HERE = {
    "broadcast_static_shape": ["shape_x", "shape_y"],  # tf.TensorShapes
    "debugging.assert_proper_iterable": ["values"],  # any values
    "ensure_shape": ["shape"],  # a static shape
    "image.adjust_hue": ["delta"],
    "io.parse_example": ["features"],  # a dict of feature configurations
    "io.parse_single_example": ["features"],
    "math.accumulate_n": ["shape"],
    "nn.atrous_conv2d": ["rate"],
    "nn.atrous_conv2d_transpose": ["rate"],
    "nn.leaky_relu": ["alpha"],
    "nn.moments": ["shift"],  # not used
}


def takes_tensors(function: PublicFunction) -> dict[str, bool]:
    """Returns the parameters of a function that take tensors, in order.

    Returns:
        For each such parameter, whether it takes a sequence of tensors. A single tensor may be
        passed instead of the sequence.
    """
    name = function.name
    sequences = _SEQUENCES_HERE.get(name, ())
    found: dict[str, bool] = {}
    for parameter in function.parameters:
        if parameter in sequences:
            found[parameter] = True
        elif function.generated is not None:
            if parameter in function.generated:
                found[parameter] = function.generated[parameter]
        elif parameter in _OTHERS_HERE.get(name, ()):
            continue
        elif parameter in _SEQUENCES:
            found[parameter] = True
        elif (
            parameter in _TENSORS
            or parameter in _TENSORS_HERE.get(name, ())
            # In other functions `seed` is a Python number.
            or (parameter == "seed" and "stateless" in name)
        ):
            found[parameter] = False
    return found
