"""spec_from, python_class and to_objects: classes with annotated fields, and specs."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import keyword
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import inner_fields
from extensor._formats.python.objects import names_of
from extensor._formats.python.wanted import ragged_dimensions
from extensor._path import quoted
from extensor._struct.common_shape import known_rank
from extensor._struct.dense import DenseStructuredTensorSpec
from extensor._struct.ragged import RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor.errors import DTypeError, FieldError, StructureError, UnsupportedTypeError

_LEAVES: dict[Any, tf.DType] = {
    bool: tf.bool,
    int: tf.int32,
    float: tf.float32,
    complex: tf.complex128,
    str: tf.string,
    bytes: tf.string,
    bytearray: tf.string,
}

_ARROW: dict[Any, pa.DataType] = {
    datetime.datetime: pa.timestamp("us"),
    datetime.date: pa.date32(),
    datetime.time: pa.time64("us"),
    datetime.timedelta: pa.duration("us"),
}

_KEPT: dict[Any, pa.DataType] = {**_ARROW, bytes: pa.binary()}

_LISTS = (
    list,
    tuple,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
)
_UNIONS = (Union, types.UnionType)


def spec_from(cls: type, shape: Any = (None,)) -> StructuredTensorSpec:
    """Returns the spec of records with the fields of a class.

    | annotation | field |
    | --- | --- |
    | `bool`, `int`, `float`, `str`, `bytes` | bool, int32, float32, string |
    | a NumPy scalar type, such as `np.float64` | its dtype |
    | `datetime`, `date`, `time`, `timedelta` | an integer, as `xt.from_arrow` reads them |
    | `Literal`, an `Enum` | string or int32, the type of the values |
    | another class with fields | a record |
    | `list[T]`, `Sequence[T]`, `tuple[T, ...]` | a ragged list of T |
    | `tuple[T, T, T]` | a dense vector of 3 |
    | `T | None` | a MaskedTensor of T |
    | `Annotated[T, tf.float64]` | T with this dtype |
    | `Annotated[list[T], (3,)]` | lists of this dense shape |
    | `Annotated[T, a tf.TypeSpec]` | a field of this spec, for one record |

    `int` and `float` are those of `xt.struct.constant`. Annotations may be strings (`from
    __future__ import annotations`).

    Args:
        cls: A dataclass, TypedDict, NamedTuple, attrs or pydantic class.
        shape: The shape of the collection of records; `[None]` for any number of them, `[]` for
            a single record.

    Raises:
        DTypeError: If the class has no annotated fields (also a TypeError).
        UnsupportedTypeError: If an annotation has no counterpart (also a TypeError).
        StructureError: If the class contains itself (also a ValueError).

    >>> import dataclasses, typing
    >>> class Step(typing.NamedTuple):
    ...     minutes: float
    >>> @dataclasses.dataclass
    ... class Recipe:
    ...     title: str
    ...     steps: list[Step]
    >>> print(xt.struct.tree(xt.struct.spec_from(Recipe)))
    records (None,)
    ├── title: string
    └── steps: list of records
        └── minutes: float32
    """
    outer = known_rank(shape, "spec_from: shape")
    return _records(cls, outer, "", ())


def to_objects(records: Any, cls: type) -> Any:
    """Returns records as objects of a class, in nested lists for dimensions.

    See `StructuredTensor.to_objects`.
    """
    _hints_of(cls, "to_objects")
    return _object(records.to_py(text=False), cls, cls.__name__)


def python_class(spec: StructuredTensorSpec, name: str = "Record") -> type:
    """Returns a dataclass with the fields of a spec; see `StructuredTensorSpec.python_class`."""
    return _class_of(spec, name)


# From annotations to specs.


def _records(cls: Any, outer: tf.TensorShape, path: str, inside: tuple[Any, ...]) -> Any:
    if cls in inside:
        chain = " -> ".join(each.__name__ for each in (*inside, cls))
        raise StructureError(
            path=path or cls.__name__,
            expected="a class that does not contain itself, because a spec has finite depth",
            received=chain,
            mend="Store such data flat: a list of nodes with the indices of their children.",
        )
    fields: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    for name, hint in _hints_of(cls, path or "spec_from").items():
        at = f"{path}.{quoted(name)}" if path else quoted(name)
        arrow = _arrow_type(hint)
        if arrow is not None:
            kept[name] = arrow
        fields[name] = _spec_of(hint, outer, at, (*inside, cls), None)
    return _dense(outer, fields, kept)


def _dense(shape: tf.TensorShape, fields: dict[str, Any], kept: dict[str, Any]) -> Any:
    make: Any = DenseStructuredTensorSpec
    if not kept or not hasattr(make, "arrow_types"):
        return make(shape, fields)
    from extensor._struct.arrow_types import ArrowType, form_of

    rank = shape.rank
    types = {n: ArrowType(pa.field(n, t), form_of(fields[n], rank)) for n, t in kept.items()}
    return make(shape, fields, types)


def _spec_of(hint: Any, outer: Any, path: str, inside: tuple[Any, ...], dtype: Any) -> Any:
    """Returns the spec of a field.

    Args:
        hint: The annotation of one record's value.
        outer: The shape of the records that have the field.
        path: The path of the field, for errors.
        inside: The classes that contain the field.
        dtype: The dtype that an outer annotation chose, or None.
    """
    hint, dtype, sizes, spec = _annotated(hint, dtype)
    if spec is not None:
        return _stacked(spec, outer)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return _union(arguments, outer, path, inside, dtype)
    if sizes is not None:
        inner, given = hint, len(sizes)
        for _ in range(given):
            inner = _item(inner, path)
        return _spec_of(inner, outer.concatenate(sizes), path, inside, dtype)
    if origin is Literal:
        return _spec_of(_one_type(arguments, path), outer, path, inside, dtype)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        kind = _one_type([member.value for member in hint], path)
        return _spec_of(kind, outer, path, inside, dtype)
    if hint in _LISTS or origin in _LISTS:
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            inner = _item(hint, path)
            return _spec_of(inner, outer.concatenate([len(arguments)]), path, inside, dtype)
        items = _spec_of(_item(hint, path), tf.TensorShape([None]), path, inside, dtype)
        return _cut(items, outer)
    if _is_class_with_fields(hint):
        return _records(hint, outer, path, inside)
    return tf.TensorSpec(outer, dtype or _dtype_of(hint, path))


def _annotated(hint: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """Returns an annotation without its wrappers, and the dtype, sizes and spec in them."""
    sizes = spec = None
    while True:
        origin = get_origin(hint)
        if origin is typing.Annotated:
            hint, *notes = get_args(hint)
            for note in notes:
                if isinstance(note, tf.TypeSpec):
                    spec = note
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
            return hint, dtype, sizes, spec


def _union(arguments: Any, outer: Any, path: str, inside: Any, dtype: Any) -> Any:
    from extensor._types.masked.value import MaskedTensor

    kinds = [each for each in arguments if each is not type(None)]
    if len(kinds) > 1:
        raise UnsupportedTypeError(
            path=path,
            expected="one type, or one type and None",
            received=" | ".join(getattr(kind, "__name__", str(kind)) for kind in kinds),
            mend="Annotate the field with the spec of one value, Annotated[object, spec]: "
            "the spec of a xt.types.UnionTensor.",
        )
    values = _spec_of(kinds[0], outer, path, inside, dtype)
    made: Any = MaskedTensor.Spec
    return made(values, tf.TensorSpec(outer, tf.bool))


def _cut(items: Any, outer: Any) -> Any:
    """Returns the spec of lists of items, which are ragged below the first dimension."""
    if outer.rank == 0:  # the list of a single record
        return items
    if isinstance(items, StructuredTensorSpec):
        spec: Any = items
        for axis in range(outer.rank, 0, -1):
            first = outer[0] if axis == 1 else None
            spec = RaggedStructuredTensorSpec([first, None, *spec.shape[1:]], spec, tf.int64)
        return spec
    if isinstance(items, (tf.TensorSpec, tf.RaggedTensorSpec)):
        inner = items.ragged_rank if isinstance(items, tf.RaggedTensorSpec) else 0
        shape = outer.concatenate(items.shape)
        return tf.RaggedTensorSpec(shape, items.dtype, outer.rank + inner, tf.int64)
    mask = tf.RaggedTensorSpec(outer.concatenate(items.mask.shape), tf.bool, outer.rank, tf.int64)
    return type(items)(_cut(items.values, outer), mask)


def _stacked(spec: Any, outer: Any) -> Any:
    from extensor._tf import stacked

    for size in reversed(outer.as_list()):
        spec = stacked(spec, size)
    return spec


def _item(hint: Any, path: str) -> Any:
    """Returns the annotation of the items of a list."""
    arguments = [each for each in get_args(hint) if each is not Ellipsis]
    if get_origin(hint) in _LISTS and arguments and all(a == arguments[0] for a in arguments):
        return arguments[0]
    raise UnsupportedTypeError(
        path=path,
        expected="a list with the type of its items, such as list[float]",
        received=_name(hint),
        mend="Give all items one type; describe unlike items by a class with a field for each.",
    )


def _one_type(values: Any, path: str) -> Any:
    kinds = {type(value) for value in values}
    for kind in (bool, int, str, bytes, float):
        if kinds and all(issubclass(each, kind) for each in kinds):
            return kind
    raise UnsupportedTypeError(
        path=path,
        expected="values of one type, such as strings",
        received=", ".join(sorted(kind.__name__ for kind in kinds)) or "no values",
        mend="Give all values one type.",
    )


def _dtype_of(hint: Any, path: str) -> tf.DType:
    if hint in _LEAVES:
        return _LEAVES[hint]
    if hint in _ARROW:
        return tf.int32 if hint is datetime.date else tf.int64
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return tf.dtypes.as_dtype(hint)
    if isinstance(hint, type):
        for kind, dtype in _LEAVES.items():
            if issubclass(hint, kind):
                return dtype
    mend = "Annotate the field with the spec of one value: Annotated[object, spec]."
    if hint is decimal.Decimal:
        mend = "Annotate the field as float or str, or read decimals from Arrow, which has a scale."
    raise UnsupportedTypeError(
        path=path, expected="a type that tensors can hold", received=_name(hint), mend=mend
    )


def _arrow_type(hint: Any) -> Any:
    """Returns the Arrow type that a field keeps, for dates and times; None for other types."""
    hint = _annotated(hint, None)[0]
    if get_origin(hint) in _UNIONS:
        kinds = [each for each in get_args(hint) if each is not type(None)]
        return _arrow_type(kinds[0]) if len(kinds) == 1 else None
    if get_origin(hint) in _LISTS:
        inner = [each for each in get_args(hint) if each is not Ellipsis]
        found = _arrow_type(inner[0]) if inner else None
        return None if found is None else pa.list_(found)
    return _KEPT.get(hint) if isinstance(hint, collections.abc.Hashable) else None


def _is_class_with_fields(hint: Any) -> bool:
    return isinstance(hint, type) and names_of(hint) is not None


def _hints_of(cls: Any, path: str) -> dict[str, Any]:
    """Returns the annotations of the fields of a class, by name."""
    names = names_of(cls) if isinstance(cls, type) else None
    if names is None:
        raise DTypeError(
            path=path,
            expected="a dataclass, TypedDict, NamedTuple, attrs or pydantic class",
            received=_name(cls),
            mend="Decorate the class with @dataclasses.dataclass.",
        )
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        # A class in a function: look into the names of the callers too.
        hints = _local_hints(cls, path, error)
    missing = [name for name in names if name not in hints]
    if missing:
        raise DTypeError(
            path=f"{path}: {cls.__name__}.{missing[0]}",
            expected="a field with an annotation",
            received="a field without one",
            mend="Annotate it, such as `title: str`.",
        )
    return {name: hints[name] for name in names}


def _local_hints(cls: type, path: str, error: NameError) -> dict[str, Any]:
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        try:
            return typing.get_type_hints(cls, localns=dict(frame.f_locals), include_extras=True)
        except NameError:
            frame = frame.f_back
    raise DTypeError(
        path=f"{path}: {cls.__name__}",
        expected="annotations whose names are defined",
        received=f"{error}",
        mend="Define the class that the annotation names before this call.",
    ) from error


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


# From specs to classes.


def _class_of(spec: StructuredTensorSpec, name: str) -> type:
    record = spec.record
    fields: list[Any] = []
    for field, each in record.field_specs.items():
        if not field.isidentifier() or keyword.iskeyword(field):
            raise FieldError(
                path=field,
                expected="names of fields that are names of attributes",
                received=repr(field),
                mend="Rename the field, or keep the records as dicts, with to_py().",
            )
        arrow = getattr(record, "arrow_types", {}).get(field)
        fields.append((field, _hint_of(each, record.rank, _class_name(field), arrow)))
    return dataclasses.make_dataclass(name, fields)


def _class_name(field: str) -> str:
    return "".join(part.capitalize() for part in re.split("_+", field)) or "Record"


def _hint_of(spec: Any, outer: int, name: str, arrow: Any = None) -> Any:
    """Returns the annotation of a field of records of rank `outer`."""
    from extensor._types.masked.spec import MaskedSpec

    if isinstance(spec, MaskedSpec):
        return _masked_hint(spec, outer, name, arrow)
    if isinstance(spec, StructuredTensorSpec):
        cuts = ragged_dimensions(spec)
        return _in_lists(_class_of(spec, name), spec.shape, outer, cuts)
    shape = getattr(spec, "shape", None)
    known = isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec))
    if not known or shape is None or shape.rank is None:
        from extensor._tf import unstacked

        for _ in range(outer):
            spec = unstacked(spec)
        return typing.Annotated[object, spec]
    rank = spec.ragged_rank if isinstance(spec, tf.RaggedTensorSpec) else 0
    return _in_lists(_leaf_hint(spec.dtype, arrow), shape, outer, rank)


def _masked_hint(spec: Any, outer: int, name: str, arrow: Any) -> Any:
    depth = spec.mask.shape.rank - outer
    hint = _hint_of(spec.values, outer, name, arrow)
    return _optional(hint, depth)


def _optional(hint: Any, depth: int) -> Any:
    if not depth:
        return Union[hint, None]  # noqa: UP007  (hint may be a string or a class)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        inner = _optional(arguments[0], depth)
        return typing.Annotated[(inner, *arguments[1:])]  # pyright: ignore
    return list[_optional(arguments[0], depth - 1)]  # pyright: ignore


def _in_lists(hint: Any, shape: Any, outer: int, ragged: int) -> Any:
    """Returns an annotation in lists for the dimensions after the first `outer` ones."""
    listed = [axis for axis in range(outer, shape.rank) if axis <= ragged and ragged]
    if not outer and not listed and shape.rank and shape[0] is None:
        listed = [0]  # the outermost list of a single record
    dense = [axis for axis in range(outer, shape.rank) if axis not in listed]
    for _ in dense:
        hint = list[hint]
    if dense:
        hint = typing.Annotated[hint, tuple(shape[axis] for axis in dense)]
    for _ in listed:
        hint = list[hint]
    return hint


def _leaf_hint(dtype: tf.DType, arrow: Any) -> Any:
    while arrow is not None and inner_fields(arrow):
        arrow = inner_fields(arrow)[0].type
    for kind, known in _KEPT.items():
        if arrow == known:
            return kind
    for kind, known in _LEAVES.items():
        if known == dtype:
            return kind
    kind = float if dtype.is_floating else complex if dtype.is_complex else int
    return typing.Annotated[kind, dtype]


# From records to objects.


def _object(plain: Any, hint: Any, path: str) -> Any:
    """Returns plain Python data as objects of an annotation's classes."""
    hint = _annotated(hint, None)[0]
    if plain is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        kinds = [each for each in arguments if each is not type(None)]
        return _object(plain, kinds[0], path) if len(kinds) == 1 else plain
    if isinstance(plain, list) and origin not in _LISTS:
        items: list[Any] = plain
        return [_object(item, hint, path) for item in items]
    if isinstance(plain, list):
        inner = arguments[0] if arguments else object
        made = [_object(item, inner, path) for item in plain]
        return tuple(made) if origin is tuple else made
    if isinstance(plain, dict):
        return _instance(plain, hint, path)
    return _leaf(plain, hint)


def _leaf(plain: Any, hint: Any) -> Any:
    origin = get_origin(hint)
    if origin is Literal:
        hint = type(get_args(hint)[0])
    if not isinstance(hint, type):
        return plain
    if issubclass(hint, enum.Enum):
        text = plain.decode() if isinstance(plain, bytes) else plain
        return hint(text) if any(text == member.value for member in hint) else hint(plain)
    if isinstance(plain, bytes) and issubclass(hint, str):
        return plain.decode("utf-8")
    if isinstance(plain, int) and hint in _ARROW:
        return pa.scalar(plain, _INTEGERS[hint]).cast(_ARROW[hint]).as_py()
    return plain


_INTEGERS: dict[Any, pa.DataType] = {
    kind: pa.int32() if kind is datetime.date else pa.int64() for kind in _ARROW
}


def _instance(plain: Mapping[str, Any], cls: Any, path: str) -> Any:
    hints = _cached_hints(cls, path)
    if set(plain) != set(hints):
        raise FieldError(
            path=path,
            expected=f"the fields of {_name(cls)}: {', '.join(hints)}",
            received=", ".join(plain) or "no fields",
            mend="Choose the fields with with_only, or make a class with spec.python_class().",
        )
    values = {name: _object(plain[name], hint, f"{path}.{name}") for name, hint in hints.items()}
    return _maker(cls)(values)


@functools.lru_cache(maxsize=256)
def _cached_hints(cls: Any, path: str) -> dict[str, Any]:
    return _hints_of(cls, path)


@functools.lru_cache(maxsize=256)
def _maker(cls: Any) -> Callable[[dict[str, Any]], Any]:
    """Returns a function from the values of the fields to an object."""
    if typing.is_typeddict(cls):
        return dict
    described = getattr(cls, "__attrs_attrs__", None)
    if described is not None:  # an attrs class drops the underscores of private names
        alias = {each.name: each.alias or each.name.lstrip("_") for each in described}
        return lambda values: cls(**{alias[name]: value for name, value in values.items()})
    return lambda values: cls(**values)
