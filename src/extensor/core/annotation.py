"""What the annotation of a field lets in, and how a value is brought into that form."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
import tensorflow as tf

from extensor.core.derive import is_tensor_like
from extensor.core.static import FrozenDict, freeze
from extensor.errors import DTypeError, ExtensorError, StructureError

Converter = Callable[[Any, str], Any]
"""Takes a value and its path; returns the value in the form to keep, or raises DTypeError."""


def converter(annotation: Any) -> Converter:
    """Returns what brings values into the form that an annotation asks for.

    Args:
        annotation: A type, as the fields of an `xt.extension_type` are annotated with.

    Raises:
        DTypeError: If there is no telling what the annotation lets in (also a TypeError).
    """
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation is Any or annotation is object or isinstance(annotation, TypeVar):
        return _anything
    if origin is Annotated:
        return _annotated(converter(args[0]), args[1:])
    if origin is Literal:
        return _literal(args)
    if origin in (Union, types.UnionType):
        return _union([converter(arg) for arg in args], annotation)
    if origin is typing.ClassVar:
        raise AssertionError("class variables are no fields")
    kind = origin if isinstance(origin, type) else annotation
    if kind is None:
        kind = type(None)
    if not isinstance(kind, type):
        raise DTypeError(
            path=f"annotation {annotation!r}",
            expected="a type",
            received=type(annotation).__name__,
            mend="Annotate fields with types such as tf.Tensor, int or tuple[tf.Tensor, ...].",
        )
    if issubclass(kind, (str, bytes, tf.TensorShape)) or not issubclass(
        kind, (Sequence, Mapping, Set)
    ):
        return _of_type(kind)
    return _container(kind, args)


def _container(kind: type, args: tuple[Any, ...]) -> Converter:
    if issubclass(kind, Mapping):
        return _mapping(*([converter(arg) for arg in args] or [_anything, _anything]))
    if issubclass(kind, Set):
        return _checked(kind, lambda value, path: frozenset(value))
    if hasattr(kind, "_fields"):
        return _checked(kind, lambda value, path: kind(*(_anything(v, path) for v in value)))
    if not args:
        return _items(_anything)
    if issubclass(kind, tuple) and args[-1] is not Ellipsis:
        return _tuple([converter(arg) for arg in args if arg != ()])
    return _items(converter(args[0]))


def _wrong(path: str, expected: str, value: Any, mend: str) -> DTypeError:
    received = type(value).__name__
    if is_tensor_like(value) and hasattr(value, "dtype"):
        received = f"a {received} of dtype {value.dtype.name}, shape {value.shape}"
    return DTypeError(path=path, expected=expected, received=received, mend=mend)


def _anything(value: Any, path: str) -> Any:
    if is_tensor_like(value):
        return value
    if isinstance(value, Mapping):
        return FrozenDict((k, _anything(v, f"{path}[{k!r}]")) for k, v in value.items())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return tuple(_anything(v, f"{path}[{i}]") for i, v in enumerate(value))
    return freeze(value, path)


def _tensor(value: Any, path: str, dtype: tf.DType | None = None) -> Any:
    if isinstance(value, tf.Tensor):
        return value
    if is_tensor_like(value) and not isinstance(value, tf.Variable):
        raise _wrong(path, "a tf.Tensor", value, "Annotate the field with the type that it holds.")
    try:
        return tf.convert_to_tensor(value, dtype)
    except (TypeError, ValueError) as error:
        reason = str(error).strip().split("\n", 1)[0][:200]
        raise _wrong(
            path, "a tf.Tensor", value, f"It does not convert to one. TensorFlow says: {reason}"
        ) from error


def _of_type(kind: type) -> Converter:
    if kind is tf.Tensor:
        return _tensor
    if kind is float:
        return _float
    if kind is tf.DType:
        return _tried(tf.dtypes.as_dtype, "a tf.DType")
    if kind is tf.TensorShape:
        return _tried(tf.TensorShape, "a tf.TensorShape")
    if kind is np.ndarray:
        return _checked(kind, freeze)

    def keep(value: Any, path: str) -> Any:
        return value if is_tensor_like(value) else freeze(value, path)

    return _checked(kind, keep)


def _float(value: Any, path: str) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise _wrong(path, "a float", value, "Annotate a field that holds a tensor with tf.Tensor.")


def _tried(convert: Callable[[Any], Any], expected: str) -> Converter:
    def tried(value: Any, path: str) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            raise _wrong(path, expected, value, "Give one, or something that names one.") from error

    return tried


def _checked(kind: type, keep: Converter) -> Converter:
    name = "None" if kind is type(None) else f"a value of type {kind.__qualname__}"

    def checked(value: Any, path: str) -> Any:
        is_bool = isinstance(value, bool) and kind is int
        if not isinstance(value, kind) or is_bool:
            raise _wrong(path, name, value, "Give one, or change the field's annotation.")
        return keep(value, path)

    return checked


def _literal(allowed: tuple[Any, ...]) -> Converter:
    def literal(value: Any, path: str) -> Any:
        if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
            listed = ", ".join(map(repr, allowed))
            raise DTypeError(
                path=path,
                expected=f"one of {listed}",
                received=repr(value) if isinstance(value, (str, int, enum.Enum)) else
                type(value).__name__,
                mend="Check the spelling.",
            )  # fmt: skip
        return value

    return literal


def _union(options: list[Converter], annotation: Any) -> Converter:
    def union(value: Any, path: str) -> Any:
        for option in options:
            try:
                result = option(value, path)
            except ExtensorError:
                continue
            if result is value or type(result) is type(value):
                return result
        for option in options:
            try:
                return option(value, path)
            except ExtensorError:
                continue
        raise _wrong(path, str(annotation), value, "Give a value of one of these types.")

    return union


def _tuple(items: list[Converter]) -> Converter:
    def convert(value: Any, path: str) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(items):
            raise _wrong(path, f"a tuple of {len(items)}", value, "Give one value for each place.")
        return tuple(
            item(v, f"{path}[{i}]") for i, (item, v) in enumerate(zip(items, value, strict=True))
        )

    return convert


def _items(item: Converter) -> Converter:
    def convert(value: Any, path: str) -> Any:
        if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)):
            raise _wrong(path, "a list or tuple", value, "Put the values into a tuple.")
        return tuple(item(v, f"{path}[{i}]") for i, v in enumerate(value))

    return convert


def _mapping(key: Converter, item: Converter) -> Converter:
    def convert(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise _wrong(path, "a mapping", value, "Give a dict.")
        return FrozenDict((key(k, path), item(v, f"{path}[{k!r}]")) for k, v in value.items())

    return convert


def _annotated(inner: Converter, notes: tuple[Any, ...]) -> Converter:
    specs = [note for note in notes if isinstance(note, tf.TypeSpec)]
    if not specs:
        return inner

    def annotated(value: Any, path: str) -> Any:
        for spec in specs:
            if isinstance(spec, tf.TensorSpec) and not is_tensor_like(value):
                value = _tensor(value, path, spec.dtype)
        value = inner(value, path)
        for spec in specs:
            if not spec.is_compatible_with(value):
                _raise_mismatch(spec, value, path)
        return value

    return annotated


def _raise_mismatch(spec: Any, value: Any, path: str) -> None:
    dtype, shape = getattr(spec, "dtype", None), getattr(spec, "shape", None)
    if dtype is not None and hasattr(value, "dtype") and dtype != value.dtype:
        mend = f"Cast it with tf.cast(value, tf.{dtype.name})."
        raise _wrong(path, f"dtype {dtype.name}", value, mend)
    if shape is not None and hasattr(value, "shape"):
        raise StructureError(
            path=path,
            expected=f"shape {shape}",
            received=f"shape {value.shape}",
            mend="The field's annotation declares the shape.",
        )
    raise _wrong(path, str(spec), value, "The field's annotation declares the type.")
