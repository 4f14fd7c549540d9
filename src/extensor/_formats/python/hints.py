"""Annotations of the fields of classes."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import enum
import inspect
import sys
import types
import typing
import uuid
from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.natural_type import NUMBERS
from extensor._arrow.schema import spec_from_schema
from extensor._formats.python.kinds import kind_of
from extensor._formats.python.objects import class_in, is_typed_dict, names_of
from extensor._formats.python.variants import NULL, list_name, variant_name
from extensor.errors import DTypeError, UnsupportedTypeError

Hint = Any
"""An annotation: a class, or what `typing` makes of classes, which has no type of its own."""

Bound = dict[Any, dict[Any, Hint]]
"""The types of the type variables of a class and of its bases, by class."""

LEAVES: dict[type, tf.DType] = {
    bool: tf.bool,
    int: tf.int32,
    float: tf.float32,
    complex: tf.complex128,
    str: tf.string,
    bytes: tf.string,
    bytearray: tf.string,
}

ARROW: dict[type, pa.DataType] = {
    datetime.datetime: pa.timestamp("us"),
    datetime.date: pa.date32(),
    datetime.time: pa.time64("us"),
    datetime.timedelta: pa.duration("us"),
    uuid.UUID: pa.uuid(),
}
"""The Arrow types of classes whose objects Arrow converts, in the units of `xt.struct.constant`."""

INTEGERS: dict[type, pa.DataType] = {
    kind: pa.int32() if kind is datetime.date else pa.int64() for kind in ARROW if kind != uuid.UUID
}
"""The Arrow types of the tensors of classes in `ARROW`, if these are integers."""

KEPT: dict[type, pa.DataType] = {**ARROW, bytes: pa.binary()}


def arrow_note(hint: Hint) -> pa.DataType | None:
    """Returns the Arrow type in an annotation such as `Annotated[Decimal, pa.decimal64(9, 2)]`."""
    if get_origin(hint) is not typing.Annotated:
        return None
    inner, *notes = get_args(hint)
    found = [note for note in notes if isinstance(note, pa.DataType)]
    return found[0] if found else arrow_note(inner)


LISTS = (
    list,
    tuple,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
)
UNIONS = (Union, types.UnionType)


class Unwrapped(NamedTuple):
    """An annotation without the wrappers around it, and the dtype, sizes and spec in them."""

    hint: Hint
    dtype: tf.DType | None
    sizes: tuple[int | None, ...] | None
    spec: tf.TypeSpec | None


def unwrap(hint: Hint, dtype: tf.DType | None = None) -> Unwrapped:
    """Returns an annotation without its wrappers; `dtype` counts if they have none."""
    sizes = spec = None
    while True:
        origin = get_origin(hint)
        if origin is typing.Annotated:
            hint, *notes = get_args(hint)
            for note in notes:
                if isinstance(note, tf.TypeSpec):
                    spec = note
                elif isinstance(note, pa.DataType):
                    field = pa.field("x", note, nullable=False)
                    spec = spec_from_schema(pa.schema([field])).unstacked().field_specs["x"]
                elif isinstance(note, (tuple, tf.TensorShape)):
                    sizes = tuple(note)
                elif isinstance(note, (tf.DType, np.dtype)) or (
                    isinstance(note, type) and issubclass(note, np.generic)
                ):
                    dtype = tf.dtypes.as_dtype(note)
        elif getattr(origin, "__name__", None) in ("Required", "NotRequired", "ReadOnly"):
            hint = get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif hasattr(hint, "__value__") and type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return Unwrapped(hint, dtype, sizes, spec)


def is_list_hint(hint: Hint) -> bool:
    """Returns whether an annotation is a list, with or without the type of its items."""
    return hint in LISTS or get_origin(hint) in LISTS


def item_of(hint: Hint, path: str) -> Hint:
    """Returns the annotation of the items of a list."""
    arguments = [each for each in get_args(hint) if each is not Ellipsis]
    if get_origin(hint) in LISTS and arguments and all(a == arguments[0] for a in arguments):
        return arguments[0]
    expected = "a list with the type of its items, such as list[float]"
    fix = "Give all items one type; describe unlike items by a class with a field for each."
    raise UnsupportedTypeError(path, expected, hint_text(hint), fix)


def is_class_with_fields(hint: Hint) -> bool:
    """Returns whether an annotation is a class whose objects are records: `Box` or `Box[int]`."""
    cls = class_in(hint)
    return isinstance(cls, type) and names_of(cls) is not None


def hints_of(hint: Hint, path: str) -> dict[str, Hint]:
    """Returns the annotations of the fields of a class, by name.

    Args:
        hint: The class, or a generic class with its types, such as `Box[int]`.
        path: The path of the field that has the class, for errors.
    """
    cls = class_in(hint)
    names = names_of(cls) if isinstance(cls, type) else None
    if names is None:
        expected = "a dataclass, TypedDict, NamedTuple, attrs or pydantic class"
        received = repr(hint) if isinstance(hint, str) else hint_text(hint)
        raise DTypeError(path, expected, received, _fix_of_class(hint))
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        # A class in a function: look into the names of the callers too.
        hints = _local_hints(cls, path, error)
    bound = _bound_types(hint)
    hints = {name: _with_types(each, _types_for(name, cls, bound)) for name, each in hints.items()}
    missing = [name for name in names if name not in hints]
    if missing:
        place, fix = f"{path}: {cls.__name__}.{missing[0]}", "Annotate it, such as `title: str`."
        raise DTypeError(place, "a field with an annotation", "a field without one", fix)
    may_miss: Collection[str] = getattr(cls, "__optional_keys__", ())  # of a TypedDict
    return {name: _of_key(hints[name], name in may_miss) for name in names}


def _fix_of_class(hint: Hint) -> str:
    inner = [each for each in get_args(hint) if is_class_with_fields(each)]
    if len(inner) == 1:  # list[Recipe], Recipe | None, Annotated[Recipe, ...]
        return f"Give the class: spec_from({hint_text(inner[0])}); shape= says how many records."
    if not isinstance(hint, type) and names_of(type(hint)) is not None:
        return f"Give the class of the object: spec_from({hint_text(type(hint))})."
    return "Give a class with annotated fields: decorate it with @dataclasses.dataclass."


def _bound_types(hint: Hint) -> Bound:
    """Returns the types of the type variables of a generic class, and of each of its bases."""
    cls = class_in(hint)
    own = getattr(cls, "__pydantic_generic_metadata__", {})  # Box[int] is a class in pydantic
    made_from = own.get("origin")
    if made_from is not None:
        variables = made_from.__pydantic_generic_metadata__["parameters"]
        return {made_from: dict(zip(variables, own["args"], strict=True))}
    given = dict(zip(getattr(cls, "__parameters__", ()), get_args(hint), strict=False))
    found = {cls: given}
    for base in (*getattr(cls, "__orig_bases__", ()), *getattr(cls, "__bases__", ())):
        if class_in(base) not in (cls, typing.Generic, object):
            for each, inner in _bound_types(base).items():
                bound = {variable: _with_types(kind, given) for variable, kind in inner.items()}
                found.setdefault(each, bound)
    return found


def _types_for(name: str, cls: type, bound: Bound) -> dict[Any, Hint]:
    """Returns the types of type variables in the annotation of a field of a class."""
    if not is_typed_dict(cls):
        for base in cls.__mro__:  # the class that has the annotation: others may reuse a variable
            if name in inspect.get_annotations(base):
                return bound.get(base, {})
    merged: dict[Any, Hint] = {}
    for given in bound.values():
        merged = {**given, **merged}
    return merged


def _with_types(hint: Hint, bound: dict[Any, Hint]) -> Hint:
    """Returns an annotation with types in the place of type variables."""
    if isinstance(hint, typing.TypeVar):
        return bound.get(hint, hint)
    variables: Any = getattr(hint, "__parameters__", ())
    if not bound or not variables or get_origin(hint) is None:
        return hint
    return hint[tuple(bound.get(variable, variable) for variable in variables)]


def _of_key(hint: Hint, may_miss: bool) -> Hint:
    """Returns the annotation of a field; that of a key that may be missing is nullable."""
    kind = getattr(get_origin(hint), "__name__", None)
    if kind == "NotRequired":
        may_miss, hint = True, get_args(hint)[0]
    elif kind == "Required":
        may_miss = False
    return typing.Union[hint, None] if may_miss else hint  # noqa: UP007


def _local_hints(cls: type, path: str, error: NameError) -> dict[str, Hint]:
    frame = sys._getframe(1)
    while frame is not None:
        try:
            return typing.get_type_hints(cls, localns=dict(frame.f_locals), include_extras=True)
        except NameError:
            frame = frame.f_back
    expected = "annotations whose names are defined"
    fix = "Define the class that the annotation names before this call."
    raise DTypeError(f"{path}: {cls.__name__}", expected, f"{error}", fix) from error


def hint_text(hint: Hint) -> str:
    """Returns an annotation as text."""
    if isinstance(hint, type) and not get_args(hint):
        return hint.__name__
    if is_class_with_fields(hint):
        return f"{class_in(hint).__name__}[{', '.join(map(hint_text, get_args(hint)))}]"
    return str(hint)


def type_beside_none(hint: Hint) -> Hint:
    """Returns T of the annotation `T | None`; None for other unions."""
    found = [each for each in get_args(hint) if each is not type(None)]
    return found[0] if len(found) == 1 and type(None) in get_args(hint) else None


def _one_type(values: Iterable[object], path: str) -> type:
    """Returns the type of values, such as those of a Literal."""
    found = {type(value) for value in values}
    for kind in (bool, int, str, bytes, float):
        if found and all(issubclass(each, kind) for each in found):
            return kind
    received = ", ".join(sorted(each.__name__ for each in found)) or "no values"
    fix = "Give all values one type."
    raise UnsupportedTypeError(path, "values of one type, such as strings", received, fix)


def dtype_of(hint: Hint, path: str) -> tf.DType:
    """Returns the dtype of a type of single values."""
    if hint in LEAVES:
        return LEAVES[hint]
    if hint in ARROW:
        return NUMBERS[INTEGERS[hint]] if hint in INTEGERS else tf.string
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return tf.dtypes.as_dtype(hint)
    if isinstance(hint, type):
        for kind, dtype in LEAVES.items():
            if issubclass(hint, kind):
                return dtype
    fix = "Annotate the field with the spec of one value: Annotated[object, spec]."
    if hint is decimal.Decimal:
        fix = "Give the scale: Annotated[Decimal, pa.decimal128(10, 2)]."
    if isinstance(hint, typing.TypeVar):
        fix = f"Give the generic class its types, such as int for {hint}: spec_from(Box[int])."
    raise UnsupportedTypeError(path, "a type that tensors can hold", hint_text(hint), fix)


def variants_in(hint: Hint, path: str) -> dict[str, Hint]:
    """Returns the types in a union by the names of the variants; None is `null`, and last.

    Records of one class are `record`; several classes have their own names.

    Raises:
        UnsupportedTypeError: If values do not show which of two types they have (also a
            TypeError).
    """
    members = [each for each in get_args(hint) if each is not type(None)]
    records = [each for each in members if is_class_with_fields(unwrap(each).hint)]
    found: dict[str, Hint] = {}
    for each in members:
        if len(records) > 1 and each in records:
            name = class_in(unwrap(each).hint).__name__
        else:
            name = _variant_name(each, path)
        if name in found:
            expected = "a union of types that a value shows: numbers, text, records, ..."
            received = f"{hint_text(found[name])} | {hint_text(each)}"
            fix = "Wrap one of them in a class with a field, or join them: list[int | str]."
            raise UnsupportedTypeError(path, expected, received, fix)
        found[name] = each
    return {**found, NULL: type(None)} if type(None) in get_args(hint) else found


def _variant_name(hint: Hint, path: str) -> str:
    """Returns the name that `xt.struct.constant` gives to the variant of such values."""
    depth = 0
    hint, dtype, _, spec = unwrap(hint)
    while spec is None and is_list_hint(hint):
        depth += 1
        hint, _, _, spec = unwrap(item_of(hint, path))
    if depth:
        return list_name(depth)
    if is_class_with_fields(hint):
        return "record"
    if spec is not None:
        return "other"
    hint = value_type(hint, path)
    dtype = dtype or dtype_of(hint, path)
    classes = {hint} if dtype.is_integer else {dtype.as_numpy_dtype}
    return variant_name(kind_of(hint, ()), classes)


def value_type(hint: Hint, path: str) -> Hint:
    """Returns the type of the values of a Literal or an Enum; other types as they are."""
    if get_origin(hint) is Literal:
        return _one_type(get_args(hint), path)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _one_type([member.value for member in hint], path)
    return hint
