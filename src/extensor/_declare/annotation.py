"""Converters from type hints: which values a hint accepts, and how they are converted.

A hint is read twice: for the values of a field, and for the parts that replace these values in a
spec. Both readers walk the same containers and differ at the leaves.
"""

from __future__ import annotations

import enum
import functools
import typing
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Mapping,
    Reversible,
    Sequence,
    Set,
)
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
import tensorflow as tf

from extensor._declare.derived_spec import is_spec, part_of
from extensor._declare.static_data import FrozenDict, freeze
from extensor._lookup import defines
from extensor._protocol.lossless import is_tensor_like, lossless
from extensor._protocol.tree import Static
from extensor._tf import CompositeTensor, VariableSpec, describes
from extensor._tf._tf_as_tensor import is_registered
from extensor._typing import Value
from extensor.errors import DTypeError, ExtensorError, StructureError

Hint = Any
"""A type hint: a class, or what `typing` makes of classes."""


Converter = Callable[[Value, str], Value]
"""Takes a value and its path; returns the converted value, or raises an error."""


_NUMBERS = (int, float, bool, str, bytes)


_SEQUENCES: tuple[Any, ...] = (Iterable, Collection, Container, Reversible)
"""Hints that are read as Sequence: a field stores its items as a tuple, never an iterator."""


def type_arguments(cls: type) -> dict[type, dict[Any, Any]]:
    """Returns the type arguments of each generic base of a class, by type variable.

    >>> from extensor._declare.annotation import type_arguments
    >>> import typing
    >>> T = typing.TypeVar("T")
    >>> class Box(typing.Generic[T]): ...
    >>> class IntBox(Box[int]): ...
    >>> type_arguments(IntBox)[Box]
    {~T: <class 'int'>}
    """
    known: dict[type, dict[Any, Any]] = {}
    for kind in cls.__mro__:  # a class comes before its bases
        for base in vars(kind).get("__orig_bases__", ()):
            origin: Any = get_origin(base)
            variables: tuple[Any, ...] = getattr(origin, "__parameters__", ())
            args = get_args(base)
            if len(variables) == len(args):
                of_base = known.setdefault(origin, {})
                for variable, arg in zip(variables, args, strict=True):
                    of_base.setdefault(variable, with_arguments(arg, known.get(kind, {})))
    return {base: arguments for base, arguments in known.items() if arguments}


def with_arguments(annotation: Hint, arguments: Mapping[Any, Hint]) -> Hint:
    """Returns an annotation with type arguments in place of its type variables."""
    if isinstance(annotation, TypeVar):
        return arguments.get(annotation, annotation)
    variables = getattr(annotation, "__parameters__", ())
    # A generic class without a subscript has `__parameters__` too: these are its own, and unbound.
    if get_origin(annotation) is None or not any(v in arguments for v in variables):
        return annotation
    return annotation[tuple(arguments.get(v, v) for v in variables)]


class AnnotationReader:
    """Reads type hints for the values of a field."""

    def converter(self, annotation: Hint) -> Converter:
        """Returns the converter of values for a type hint.

        Args:
            annotation: The type hint of a field of an `xt.extension_type`.

        Raises:
            DTypeError: If the hint is not supported (also a TypeError).
        """
        if annotation is Any or annotation is object:
            return self.anything
        if isinstance(annotation, TypeVar):
            bound = annotation.__bound__
            options = annotation.__constraints__ or ((Any if bound is None else bound),)
            return _union(list(map(self.converter, options)), annotation)
        for attribute in ("__supertype__", "__value__"):  # NewType; `type X = ...`
            if hasattr(annotation, attribute) and not isinstance(annotation, type):
                variables = getattr(get_origin(annotation), "__type_params__", ())
                arguments = dict(zip(variables, get_args(annotation), strict=False))
                return self.converter(with_arguments(getattr(annotation, attribute), arguments))
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            specs = [note for note in args[1:] if isinstance(note, tf.TypeSpec)]
            return self.expect_annotated(self.converter(args[0]), specs)
        if origin is typing.Final:
            return self.converter(args[0])
        if origin is Literal:
            return _literal(args)
        if origin in (Union, UnionType):
            return _union(list(map(self.converter, args)), annotation)
        kind = origin or (type(None) if annotation is None else annotation)
        is_protocol = getattr(kind, "_is_protocol", False)
        if not isinstance(kind, type) or (is_protocol and not _supports_isinstance(kind)):
            expected = "a type that supports isinstance"
            received = f"a value of type {type(annotation).__name__}"
            if is_protocol:
                received = "a protocol that is not @typing.runtime_checkable"
            fix = "Annotate fields with types such as tf.Tensor, int or tuple[tf.Tensor, ...]."
            raise DTypeError(f"annotation {annotation!r}", expected, received, fix)
        if kind in _SEQUENCES or (
            issubclass(kind, (Sequence, Mapping, Set))
            and not issubclass(kind, (str, bytes, bytearray, range, memoryview, tf.TensorShape))
        ):
            return self._container(kind, args)
        if kind is np.ndarray and args:
            return _array(self._leaf(kind), args[-1])
        if issubclass(kind, (tf.Tensor, CompositeTensor)):
            return self.tensor(kind)
        return self._leaf(kind)

    def _leaf(self, kind: type) -> Converter:
        if kind in _NUMBERS:
            return functools.partial(_number, kind)
        if kind is tf.DType:
            return _wrap_errors(tf.dtypes.as_dtype, "a tf.DType")
        if kind is tf.TensorShape:
            return _wrap_errors(tf.TensorShape, "a tf.TensorShape")
        return self.instance(kind)

    def _container(self, kind: type, args: tuple[Any, ...]) -> Converter:
        if issubclass(kind, Mapping):
            return _mapping(*map(self.converter, args or (Any, Any)))
        if issubclass(kind, Set):
            return _set(*map(self.converter, args or (Any,)))
        if hasattr(kind, "_fields"):
            hints = typing.get_type_hints(kind, include_extras=True)
            names: tuple[str, ...] = getattr(kind, "_fields", ())
            arguments = dict(zip(getattr(kind, "__parameters__", ()), args, strict=False))
            items = [with_arguments(hints.get(name, Any), arguments) for name in names]
            return _tuple(kind, list(map(self.converter, items)))
        if issubclass(kind, tuple) and args and args[-1] is not Ellipsis:
            return _tuple(kind, [self.converter(arg) for arg in args if arg != ()])
        return _items(self.converter(args[0] if args else Any))

    def anything(self, value: Value, path: str) -> Value:
        """Converts a value of a field with the hint `Any`."""
        return freeze(value, path, _is_kept)

    def tensor(self, kind: type) -> Converter:
        """Returns the converter for a tensor or composite tensor class."""
        return _tensor if kind is tf.Tensor else self.instance(kind)

    def instance(self, kind: type) -> Converter:
        """Returns the converter for any other class, such as an abstract class."""
        name = "None" if kind is type(None) else f"a value of type {kind.__qualname__}"

        def convert(value: Value, path: str) -> Value:
            if not isinstance(value, kind):
                if issubclass(kind, tf.Variable) and _is_keras_variable(value):
                    fix = "Pass its `.value`."
                    raise DTypeError(path, "a value of type tf.Variable", "a keras.Variable", fix)
                raise _wrong(path, name, value, "Pass such a value, or change the annotation.")
            return freeze(value, path, _is_kept)

        return convert

    def expect_annotated(self, inner: Converter, specs: list[tf.TypeSpec]) -> Converter:
        """Returns a converter that applies `inner` and checks the specs of an `Annotated`."""
        dtypes = [spec.dtype for spec in specs if isinstance(spec, tf.TensorSpec)]

        def convert(value: Value, path: str) -> Value:
            if dtypes and value is not None and not is_tensor_like(value):
                value = _tensor(value, path, dtypes[0])
            value = inner(value, path)
            if is_tensor_like(value):
                _expect_compatible(specs, value, path)
            return value

        return convert


class PartReader(AnnotationReader):
    """Reads type hints for the parts of a spec."""

    def anything(self, value: Value, path: str) -> Value:
        return freeze(value, path, is_spec)

    def tensor(self, kind: type) -> Converter:
        expected = f"a TypeSpec of {kind.__qualname__}"

        def convert(value: Value, path: str) -> Value:
            if not isinstance(value, tf.TypeSpec) or not describes(value, kind):
                raise _wrong(path, expected, value, "Pass the result of tf.type_spec_from_value.")
            return value

        return convert

    def instance(self, kind: type) -> Converter:
        of_value = super().instance(kind)

        def convert(value: Value, path: str) -> Value:
            if isinstance(value, tf.TypeSpec):
                if isinstance(value, kind):
                    return Static(value)
                if describes(value, kind):
                    return value
            return of_value(value, path)

        return convert

    def expect_annotated(self, inner: Converter, specs: list[tf.TypeSpec]) -> Converter:
        def convert(value: Value, path: str) -> Value:
            part = inner(value, path)
            if isinstance(part, tf.TypeSpec):
                _expect_compatible(specs, part, path)
            return part

        return convert


def _supports_isinstance(protocol: type) -> bool:
    try:
        isinstance(None, protocol)
    except TypeError:
        return False
    return True


def _expect_compatible(specs: list[tf.TypeSpec], value: Value, path: str) -> None:
    """Raises unless a value, or its spec, is compatible with the specs in a hint."""
    for spec in specs:
        compared = value
        if isinstance(spec, tf.TensorSpec) and isinstance(value, (tf.Variable, VariableSpec)):
            compared = tf.TensorSpec(value.shape, value.dtype)
        if not spec.is_compatible_with(compared):
            raise _mismatch(spec, value, path)


def _is_kept(value: object) -> bool:
    """Returns whether a value is no static data: variables of a strategy are not tensor-like."""
    return is_tensor_like(value) or isinstance(value, tf.Variable)


def _is_keras_variable(value: object) -> bool:
    is_of_keras = type(value).__module__.partition(".")[0] == "keras"
    return is_of_keras and isinstance(getattr(value, "value", None), tf.Variable)


def _wrong(path: str, expected: str, value: Value, fix: str) -> DTypeError:
    received = type(value).__name__
    if is_tensor_like(value) and hasattr(value, "dtype"):
        received = f"a {received} of dtype {value.dtype.name}, shape {value.shape}"
    return DTypeError(path, expected, received, fix)


def _mismatch(spec: tf.TypeSpec, value: Value, path: str) -> ExtensorError:
    """Returns the error for a value, or a spec, that does not match the spec in a hint."""
    dtype: tf.DType | None = getattr(spec, "dtype", None)
    shape: Any = getattr(spec, "shape", None)
    if dtype is not None and hasattr(value, "dtype") and dtype != value.dtype:
        fix = f"Cast it with tf.cast(value, tf.{dtype.name})."
        return _wrong(path, f"dtype {dtype.name}", value, fix)
    given = getattr(value, "shape", None)
    if isinstance(shape, tf.TensorShape) and not shape.is_compatible_with(given):
        fix = "The field's annotation declares the shape."
        return StructureError(path, f"shape {shape}", f"shape {given}", fix)
    received = str(part_of(value))
    return DTypeError(path, str(spec), received, "The field's annotation declares the type.")


def _tensor(value: Value, path: str, dtype: tf.DType | None = None) -> tf.Tensor:
    if isinstance(value, tf.Tensor):
        return value
    # A composite tensor with a conversion, such as TFP's TransformedVariable, is converted, as in a
    # tf.experimental.ExtensionType.
    if (
        is_tensor_like(value)
        and not isinstance(value, tf.Variable)
        and not (is_registered(type(value)) or defines(type(value), "__tf_tensor__"))
    ):
        raise _wrong(path, "a tf.Tensor", value, "Annotate the field with the type of the value.")
    value = lossless(value, dtype, path)
    try:
        return tf.convert_to_tensor(value, dtype)
    except (TypeError, ValueError) as error:
        as_dtype = "" if dtype is None else f" of dtype {dtype.name}"
        fix = "Pass a value that tf.convert_to_tensor accepts, or change the annotation."
        raise _wrong(path, f"a tf.Tensor{as_dtype}", value, fix) from error


def _number(kind: type, value: Value, path: str) -> Value:
    if isinstance(value, np.generic):
        value = value.item()
    if kind is float and type(value) is int:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        expected = f"{'an' if kind is int else 'a'} {kind.__name__}"
        raise _wrong(path, expected, value, "For a tensor, annotate the field with tf.Tensor.")
    return value


def _wrap_errors(convert: Callable[[Any], Any], expected: str) -> Converter:
    def wrap_errors(value: Value, path: str) -> Value:
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            fix = f"Pass {expected}, or a value that converts to it."
            raise _wrong(path, expected, value, fix) from error

    return wrap_errors


def _literal(allowed: tuple[Any, ...]) -> Converter:
    def literal(value: Value, path: str) -> Value:
        if not any(type(value) is type(a) and value == a for a in allowed):
            received = (
                repr(value) if isinstance(value, (str, int, enum.Enum)) else type(value).__name__
            )
            fix = "Check the spelling."
            raise DTypeError(path, f"one of {', '.join(map(repr, allowed))}", received, fix)
        return value

    return literal


def _union(options: list[Converter], annotation: Hint) -> Converter:
    if len(options) == 1:
        return options[0]

    types = zip(options, get_args(annotation), strict=False)
    not_none = [option for option, arg in types if arg is not type(None)]

    def union(value: Value, path: str) -> Value:
        converted: list[Value] = []
        for option in options:
            try:
                result = option(value, path)
            except ExtensorError:
                continue
            if type(result) is type(value):  # an option that does not change the type wins
                return result
            converted.append(result)
        if converted:
            return converted[0]
        if len(not_none) == 1:
            not_none[0](value, path)  # raises a more specific error
        raise _wrong(path, str(annotation), value, "Give a value of one of these types.")

    return union


def _tuple(kind: type, items: list[Converter]) -> Converter:
    is_named = hasattr(kind, "_fields")
    expected = f"a {kind.__qualname__}" if is_named else f"a tuple of {len(items)}"

    def convert(value: Value, path: str) -> Value:
        is_kind = isinstance(value, kind if is_named else (list, tuple))
        if not is_kind or len(value) != len(items):
            received = type(value).__name__
            if isinstance(value, (list, tuple)):
                received = f"a {type(value).__name__} of {len(value)}"
            raise DTypeError(path, expected, received, "Pass one value for each item of the tuple.")
        converted = [
            item(v, f"{path}[{i}]") for i, (item, v) in enumerate(zip(items, value, strict=True))
        ]
        return kind(*converted) if is_named else tuple(converted)

    return convert


def _items(item: Converter) -> Converter:
    def convert(value: Value, path: str) -> Value:
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            raise _wrong(path, "a list or tuple", value, "Put the values into a tuple.")
        return tuple(item(v, f"{path}[{i}]") for i, v in enumerate(value))

    return convert


def _array(convert_array: Converter, dtype: Hint) -> Converter:
    """Returns a converter that also checks the dtype, given as `np.dtype[np.float32]`."""
    [scalar] = get_args(dtype) or (Any,)
    options: tuple[Any, ...] = get_args(scalar) or (scalar,)
    kinds = [kind for kind in options if isinstance(kind, type) and issubclass(kind, np.generic)]

    def convert(value: Value, path: str) -> Value:
        array = convert_array(value, path)
        if kinds and not any(np.issubdtype(array.dtype, kind) for kind in kinds):
            expected = f"an array of dtype {' or '.join(kind.__name__ for kind in kinds)}"
            fix = "Convert it with value.astype."
            raise DTypeError(path, expected, f"an array of dtype {array.dtype}", fix)
        return array

    return convert


def _set(item: Converter) -> Converter:
    def convert(value: Value, path: str) -> Value:
        if not isinstance(value, Set):
            raise _wrong(path, "a set", value, "Put the values into a set.")
        inside = f"{path}, an element"
        return frozenset(freeze(item(v, inside), inside) for v in value)

    return convert


def _mapping(key: Converter, item: Converter) -> Converter:
    def convert(value: Value, path: str) -> Value:
        if not isinstance(value, Mapping):
            raise _wrong(path, "a mapping", value, "Give a dict.")
        inside = f"{path}, a key"
        return FrozenDict(
            (freeze(key(k, inside), inside), item(v, f"{path}[{k!r}]")) for k, v in value.items()
        )

    return convert
