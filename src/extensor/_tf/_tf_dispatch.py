"""The functions of TensorFlow that take tensors, and what it makes tensors of.

| name | why |
| --- | --- |
| `dispatch` | Its table `_TYPE_BASED_DISPATCH_SIGNATURES` is the one list of all functions that carry a dispatcher. |
| `tf_decorator` | What a function's parameters are called, and its public names (`_tf_api_names`), its innermost function says, beneath all decorators. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.util import dispatch, tf_decorator

from extensor._lookup import defines
from extensor._tf._tf_as_tensor import is_array, is_registered
from extensor._tf._tf_composite import CompositeTensor

REPLACED = "_extensor_plain"
"""The attribute in which what takes the place of something of TensorFlow's keeps what it replaced.

It is found there again where extensor is imported anew, so that nothing is replaced twice."""

# They take any number of arguments, so TensorFlow gives them no entry in its table.
_VARIADIC = ("einsum", "meshgrid", "print", "ragged.map_flat_values", "sparse.map_values")

# TensorFlow gives them no dispatcher.
_WITHOUT_DISPATCHER = """
    io.decode_json_example io.is_jpeg io.read_file io.serialize_tensor
    linalg.banded_triangular_solve linalg.logm linalg.slogdet nn.all_candidate_sampler
    required_space_to_batch_paddings signal.fftnd signal.ifftnd signal.irfft signal.irfft2d
    signal.irfft3d signal.irfftnd signal.rfft signal.rfft2d signal.rfft3d signal.rfftnd sparse.add
    sparse.concat sparse.cross sparse.cross_hashed sparse.expand_dims sparse.eye
    sparse.fill_empty_rows sparse.from_dense sparse.mask sparse.maximum sparse.minimum
    sparse.reduce_max sparse.reduce_sum sparse.reorder sparse.reset_shape sparse.retain
    sparse.sampled_addmm sparse.segment_mean sparse.segment_sqrt_n sparse.segment_sum sparse.slice
    sparse.softmax sparse.sparse_dense_matmul sparse.split sparse.to_dense sparse.to_indicator
    sparse.transpose
"""


class PublicFunction(NamedTuple):
    """A function of TensorFlow that takes tensors.

    Attributes:
        name: The shortest of its public names under `tf`.
        function: The function, as `tf` has it under each of its public names.
        parameters: The names of its parameters.
        defaults: The defaults of the last of them.
        variadic: Whether the last parameter stands for any number of positional arguments. Such
            functions take keywords as well, none of which are for tensors.
        generated: Which parameters take a tensor (False) or a sequence of tensors (True), if the
            function was generated from an op's definition; None if it was written by hand.
        fills_in: Whether the function is called with all its parameters, defaults filled in, before
            anything can look at the call. Others take `*args, **kwargs` and pass them on.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    defaults: tuple[Any, ...]
    variadic: bool
    generated: dict[str, bool] | None
    fills_in: bool


def public_functions() -> Iterator[PublicFunction]:
    """Yields every function under `tf` that types can override, each once."""
    seen: set[int] = set()
    for function in list(dispatch._TYPE_BASED_DISPATCH_SIGNATURES):
        _, innermost = tf_decorator.unwrap(function)
        # To look up a name under `keras` would import Keras; it is a copy that nobody reaches.
        names = [n for n in getattr(innermost, "_tf_api_names", ()) if not n.startswith("keras.")]
        public = _under_tf(names[0]) if names else None
        if hasattr(public, dispatch.TYPE_BASED_DISPATCH_ATTR) and id(public) not in seen:
            seen.add(id(public))
            yield _described(min(names, key=_length), public, innermost)
    for name in (*_VARIADIC, *_WITHOUT_DISPATCHER.split()):
        public = _under_tf(name)
        if public is not None and id(public) not in seen:
            seen.add(id(public))
            yield _described(name, public, tf_decorator.unwrap(public)[1])


def _under_tf(name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), tf)
    except AttributeError:
        return None  # said to be public, but not there


def _length(name: str) -> tuple[int, int, str]:
    return name.count("."), len(name), name


def _described(name: str, public: Any, innermost: Any) -> PublicFunction:
    code = _own(innermost).__code__
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    parameters = code.co_varnames[: code.co_argcount + variadic]
    generated = None
    if ".gen_" in innermost.__module__:
        annotations = typing.cast("dict[str, Any]", innermost.__annotations__)
        generated = {
            parameter: typing.get_origin(annotations[parameter].__origin__) is list
            for parameter in parameters
            # An attribute of the op is annotated as what it is, an input as Annotated.
            if hasattr(annotations.get(parameter), "__metadata__")
        }
    defaults = innermost.__defaults__ or ()
    fills_in = not takes_anything(_own(public))
    return PublicFunction(name, public, parameters, defaults, variadic, generated, fills_in)


def _own(function: Any) -> Any:
    """Returns what a function was before extensor gave it other code."""
    return vars(function).get(REPLACED, function)


def takes_anything(function: Any) -> bool:
    """Returns whether a function takes any number of positional arguments."""
    return bool(function.__code__.co_flags & inspect.CO_VARARGS)


def elementwise(arity: int) -> list[Callable[..., Any]]:
    """Returns the functions that TensorFlow itself holds for elementwise.

    Some of them stand behind the function that users call, which shares their dispatcher.

    Args:
        arity: 1 or 2.
    """
    return list(
        dispatch.unary_elementwise_apis() if arity == 1 else dispatch.binary_elementwise_apis()
    )


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """Returns what TensorFlow dispatches calls of a function with, or None."""
    return getattr(function, dispatch.TYPE_BASED_DISPATCH_ATTR, None)


def converts_to_tensor(kind: type) -> bool:
    """Returns whether TensorFlow makes a tensor of a value of a type, where it wants one.

    A composite is none, even if it is registered to be made one: `tf.convert_to_tensor` reads it,
    but it is not a tensor to what takes values apart.

    >>> [converts_to_tensor(kind) for kind in (tf.Variable, float, np.ndarray, tf.TensorShape)]
    [True, True, True, True]
    >>> [converts_to_tensor(kind) for kind in (tf.RaggedTensor, tf.data.Dataset, object)]
    [False, False, False]
    """
    try:
        if issubclass(kind, (tf.Tensor, tf.Variable, bool, int, float, complex, str, bytes)):
            return True
        if issubclass(kind, CompositeTensor):
            return False
    except Exception:  # a class without a hash, which TensorFlow cannot look up either
        return False
    return is_array(kind) or defines(kind, "__tf_tensor__") or is_registered(kind)
