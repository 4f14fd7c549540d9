"""The functions of TensorFlow that take tensors, and the types that convert to tensors.

| name | why |
| --- | --- |
| `dispatch` | Its table `_TYPE_BASED_DISPATCH_SIGNATURES` is the only list of all functions with a dispatcher. `Dispatch` of a dispatcher calls what users registered. |
| `tf_decorator` | It unwraps a function: only the innermost one has the parameter names and the public names (`_tf_api_names`). |
"""  # noqa: E501 - a table row is one line

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
"""The attribute of a replacement that contains the original object of TensorFlow.

A second import of extensor reads it, so that nothing is replaced twice."""

# Functions of any number of arguments, which TensorFlow's table lacks.
_VARIADIC = ("einsum", "meshgrid", "print", "ragged.map_flat_values", "sparse.map_values")

# Functions without a dispatcher of TensorFlow.
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
        function: The function that all its public names refer to.
        parameters: The names of its parameters.
        defaults: The defaults of the last parameters.
        variadic: Whether the last parameter takes any number of positional arguments. Keyword
            arguments of such functions are not tensors.
        generated: Which parameters take a tensor (False) or a sequence of tensors (True), if the
            function was generated from an op's definition; None if it was written by hand.
        fills_in: Whether the outermost function has named parameters, so that Python fills in the
            defaults. Others take `*args, **kwargs` and pass them on.
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
        # Looking up a name under `keras` would import Keras.
        names = [n for n in getattr(innermost, "_tf_api_names", ()) if not n.startswith("keras.")]
        public = _under_tf(names[0]) if names else None
        if hasattr(public, dispatch.TYPE_BASED_DISPATCH_ATTR) and id(public) not in seen:
            seen.add(id(public))
            yield _describe(min(names, key=_length), public, innermost)
    for name in (*_VARIADIC, *_WITHOUT_DISPATCHER.split()):
        public = _under_tf(name)
        if public is not None and id(public) not in seen:
            seen.add(id(public))
            yield _describe(name, public, tf_decorator.unwrap(public)[1])


def _under_tf(name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), tf)
    except AttributeError:
        return None  # exported, but missing in `tf`


def _length(name: str) -> tuple[int, int, str]:
    return name.count("."), len(name), name


def _describe(name: str, public: Any, innermost: Any) -> PublicFunction:
    code = _own(innermost).__code__
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    parameters = code.co_varnames[: code.co_argcount + variadic]
    generated = None
    if ".gen_" in innermost.__module__:
        annotations = typing.cast("dict[str, Any]", innermost.__annotations__)
        generated = {
            parameter: typing.get_origin(annotations[parameter].__origin__) is list
            for parameter in parameters
            # Inputs of the op are annotated with Annotated, attributes are not.
            if hasattr(annotations.get(parameter), "__metadata__")
        }
    defaults = innermost.__defaults__ or ()
    fills_in = not takes_anything(_own(public))
    return PublicFunction(name, public, parameters, defaults, variadic, generated, fills_in)


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the original function, before extensor replaced its code."""
    return vars(function).get(REPLACED, function)


def takes_anything(function: Callable[..., Any]) -> bool:
    """Returns whether a function takes any number of positional arguments."""
    return bool(function.__code__.co_flags & inspect.CO_VARARGS)


def elementwise(arity: int) -> list[Callable[..., Any]]:
    """Returns the functions that TensorFlow itself lists as elementwise.

    Some of them are inner functions of the public function, which shares their dispatcher.

    Args:
        arity: 1 or 2.
    """
    return list(
        dispatch.unary_elementwise_apis() if arity == 1 else dispatch.binary_elementwise_apis()
    )


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """Returns TensorFlow's dispatcher of a function, or None."""
    return getattr(function, dispatch.TYPE_BASED_DISPATCH_ATTR, None)


def registered_result(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Returns the result of the function that `tf.experimental.dispatch_for_api` registered.

    Returns:
        `NotImplemented` if none is registered for the types of the arguments.

    >>> from extensor._tf._tf_dispatch import registered_result
    >>> import tensorflow as tf
    >>> registered_result(tf.stack, ([tf.constant(1)],), {})
    NotImplemented
    """
    dispatcher = dispatcher_of(function)
    return NotImplemented if dispatcher is None else dispatcher.Dispatch(args, kwargs)


def converts_to_tensor(kind: type) -> bool:
    """Returns whether TensorFlow converts values of a type to tensors implicitly.

    Composite tensors return False, even if a conversion is registered, because TensorFlow
    decomposes them.

    >>> from extensor._tf._tf_dispatch import converts_to_tensor
    >>> import numpy as np
    >>> import tensorflow as tf
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
