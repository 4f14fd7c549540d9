"""TensorFlow's functions that types can override, and the arguments of their calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from extensor._tf._tf_dispatch import PublicFunction, public_functions
from extensor._typing import Nest, Value
from extensor.errors import ProtocolError

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


def _takes_tensors(function: PublicFunction) -> dict[str, bool]:
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


# They may return None, and so may all assertions but two.
_MAY_RETURN_NONE = frozenset(
    "Assert case cond io.write_file no_op numpy_function print py_function".split()
)
_RETURN_THEIR_ARGUMENT = ("debugging.assert_all_finite", "debugging.assert_same_float_dtype")

# The function that users call, for operators that call another function of TensorFlow.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "__operators__.add": tf.add,
    "__operators__.eq": tf.equal,
    "__operators__.ne": tf.not_equal,
}


# Their sequence may be any iterable; TensorFlow converts it to a list.
_ANY_ITERABLE = ("add_n",)

_NOT_GIVEN = object()


class Operation:
    """A function of TensorFlow that types can override.

    Attributes:
        public: The function and its signature.
        name: Its shortest public name under `tf`.
        function: The function as users call it: the same object under all its names, and `tf.add`
            for the operator `+`.
        tensors: The parameters that take a tensor (False) or a sequence of tensors (True).
        places: The same, by the positions of the parameters.
        required: The number of parameters without a default.
        may_return_none: Whether it may return None.
        any_iterable: Whether its sequences may be other iterables than lists and tuples.
    """

    __slots__ = (
        *("_index", "any_iterable", "function", "may_return_none", "name", "places", "public"),
        *("required", "tensors"),
    )

    def __init__(self, public: PublicFunction) -> None:
        self.public = public
        self.name = public.name
        self.function = _OPERATORS.get(public.name, public.function)
        self.tensors = _takes_tensors(public)
        self.places = [(public.parameters.index(p), nested) for p, nested in self.tensors.items()]
        self.required = len(public.parameters) - len(public.defaults)
        self.may_return_none = self.name in _MAY_RETURN_NONE or (
            "assert_" in self.name and self.name not in _RETURN_THEIR_ARGUMENT
        )
        self.any_iterable = self.name in _ANY_ITERABLE
        self._index = {name: place for place, name in enumerate(public.parameters)}

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """Returns the arguments of a call by position, up to the last one that was passed.

        Defaults fill the gaps.

        Args:
            args: The positional arguments.
            kwargs: The keyword arguments.

        Returns:
            The shortest tuple that contains all passed arguments; None if the call is invalid.
        """
        if self.public.variadic:
            return args
        required, defaults = self.required, self.public.defaults
        count = len(args)
        if not kwargs:
            if not required <= count <= required + len(defaults):
                return None
            if self.public.fills_in:
                while count > required and args[count - 1] is defaults[count - 1 - required]:
                    count -= 1
            return args[:count]
        values = [*args, *[_NOT_GIVEN] * (required - count), *defaults[max(0, count - required) :]]
        last = count
        for name, value in kwargs.items():
            place = self._index.get(name, -1)
            if place < count:
                return None
            values[place] = value
            last = max(last, place + 1)
        if len(values) > len(self.public.parameters) or any(
            value is _NOT_GIVEN for value in values
        ):
            return None
        return tuple(values[:last])

    def tensor_arguments(self, args: tuple[Any, ...]) -> Iterator[Value]:
        """Yields the arguments of a call for parameters that take tensors, left to right.

        The items of nested sequences of tensors are yielded one by one.
        """
        count = len(args)
        for place, nested in self.places:
            if self.public.variadic and place == len(self.public.parameters) - 1:
                yield from items(args[place:])
            elif place < count:
                yield from items(args[place]) if nested else (args[place],)


def items(value: Nest) -> Iterator[Value]:
    """Yields the items of a nested list or tuple, or the value itself if it is neither."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from items(item)
    else:
        yield value


FUNCTIONS: dict[Callable[..., Any], PublicFunction] = {
    public.function: public for public in public_functions()
}
"""All functions of TensorFlow that types can override."""


@functools.cache
def _operation_of(function: Callable[..., Any]) -> Operation:
    return Operation(FUNCTIONS[function])


def operation_of(function: object) -> Operation:
    """Returns the operation of a function of TensorFlow.

    Raises:
        ProtocolError: If types cannot override the function.
    """
    if inspect.isfunction(function) and function in FUNCTIONS:
        return _operation_of(function)
    expected = "a function of TensorFlow that types can override, such as tf.add"
    received = "a function without a dispatcher" if callable(function) else type(function).__name__
    fix = "For an operator, pass its function: tf.add for +, tf.__operators__.getitem for x[i]."
    raise ProtocolError(
        getattr(function, "__qualname__", None) or repr(function), expected, received, fix
    )


def tensor_parameters(op: Callable[..., Any]) -> tuple[str, ...]:
    """Returns the parameters of an operation that take a tensor, or a sequence of tensors.

    Only values in these parameters override the operation.

    Args:
        op: A function of TensorFlow that types can override, under any of its names.

    Returns:
        The names of the parameters, in their order.

    Raises:
        ProtocolError: If types cannot override the function.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.tensor_parameters(tf.add)
    ('x', 'y')
    >>> xt.dispatch.tensor_parameters(tf.reduce_sum)
    ('input_tensor',)
    >>> xt.dispatch.tensor_parameters(tf.concat)
    ('values',)
    """
    return tuple(operation_of(op).tensors)


def named_arguments(op: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the arguments of a call by the names of the parameters.

    Args:
        op: A function of TensorFlow that types can override.
        args: The positional arguments that a handler got.

    Raises:
        ProtocolError: If types cannot override the function.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.named_arguments(tf.reduce_sum, ([1, 2], 0))
    {'input_tensor': [1, 2], 'axis': 0}
    """
    return dict(zip(operation_of(op).public.parameters, args, strict=False))


def name_of(op: Callable[..., Any]) -> str:
    """Returns the shortest public name of an operation, for errors.

    Args:
        op: A function of TensorFlow that types can override, under any of its names.

    Raises:
        ProtocolError: If types cannot override the function.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.dispatch.name_of(tf.math.reduce_sum)
    'tf.reduce_sum'
    """
    return repr(operation_of(op))
