"""python_class: specs as dataclasses."""

# This file calls methods of records or specs that are private to extensor.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import dataclasses
import keyword
import re
import typing
from typing import Any, Union, get_args, get_origin

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import inner_fields
from extensor._formats.python.hints import KEPT, LEAVES, kind_of_arrow, variants_in
from extensor._formats.python.variants import NULL
from extensor._formats.python.wanted import ragged_dimensions
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import unstacked
from extensor.errors import FieldError, UnsupportedTypeError


def python_class(spec: StructuredTensorSpec, name: str = "Record") -> type:
    """Returns a dataclass with the fields of a spec; see `StructuredTensorSpec.python_class`."""
    record = spec._record
    fields: list[Any] = []
    for field, each in record.field_specs.items():
        if not field.isidentifier() or keyword.iskeyword(field):
            expected = "names of fields that are names of attributes"
            fix = "Rename the field, or keep the records as dicts, with to_py()."
            raise FieldError(field, expected, repr(field), fix)
        arrow = getattr(record, "arrow_types", {}).get(field)
        fields.append((field, _hint_of(each, record.rank, _class_name(field), arrow)))
    return dataclasses.make_dataclass(name, fields)


def _class_name(field: str) -> str:
    return "".join(part.capitalize() for part in re.split("_+", field)) or "Record"


def _hint_of(spec: Any, outer: int, name: str, arrow: Any = None) -> Any:
    """Returns the annotation of a field of records of rank `outer`."""
    from extensor._types.masked.spec import MaskedSpec
    from extensor._types.union.spec import UnionSpec

    if isinstance(spec, MaskedSpec):
        return _masked_hint(spec, outer, name, arrow)
    if isinstance(spec, StructuredTensorSpec):
        return _in_lists(python_class(spec, name), spec, outer, spec.rank)
    if isinstance(spec, UnionSpec):
        hint, rank = _union_hint(spec, name, arrow), spec.shape.rank
        return _as_it_is(spec, outer) if hint is None else _in_lists(hint, spec, outer, rank)
    shape = getattr(spec, "shape", None)
    known = isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec))
    if not known or shape is None or shape.rank is None:
        return _as_it_is(spec, outer)
    leaf = _leaf_type(arrow)
    # A decimal of many digits is several integers.
    is_wide = leaf is not None and pa.types.is_decimal(leaf) and leaf.precision > 18
    return _in_lists(_leaf_hint(spec.dtype, leaf), spec, outer, shape.rank - is_wide)


def _leaf_type(arrow: Any) -> Any:
    """Returns the Arrow type of the items of lists."""
    while arrow is not None and inner_fields(arrow):
        arrow = inner_fields(arrow)[0].type
    return arrow


def _as_it_is(spec: Any, outer: int) -> Any:
    for _ in range(outer):
        spec = unstacked(spec)
    return typing.Annotated[object, spec]


def _union_hint(spec: Any, name: str, arrow: Any) -> Any:
    """Returns the annotation of one value; None if its variants would get other names."""
    while arrow is not None and not pa.types.is_union(arrow) and inner_fields(arrow):
        arrow = inner_fields(arrow)[0].type
    kept = {} if arrow is None else {each.name: each.type for each in inner_fields(arrow)}
    hints: dict[str, Any] = {}
    for variant, rows in spec.variants.items():
        own = name if variant == "record" else variant
        is_null = variant == NULL and rows.dtype == tf.float32
        hints[variant] = None if is_null else _hint_of(rows, 1, own, kept.get(variant))
    hint = Union[tuple(hints.values())]  # noqa: UP007
    try:
        names = list(variants_in(hint, "")) if len(hints) > 1 else []
    except UnsupportedTypeError:
        return None
    return hint if names == list(hints) and set(hints) != {names[0], NULL} else None


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


def _in_lists(hint: Any, spec: Any, outer: int, rank: int) -> Any:
    """Returns an annotation in lists for the dimensions of a spec from `outer` to `rank`."""
    shape, ragged = spec.shape[:rank], ragged_dimensions(spec)
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
    for kind, known in KEPT.items():
        if arrow == known:
            return kind
    own = None if arrow is None or not dtype.is_integer else kind_of_arrow(arrow)
    if own is not None:
        return typing.Annotated[own, arrow]
    for kind, known in LEAVES.items():
        if known == dtype:
            return kind
    kind = float if dtype.is_floating else complex if dtype.is_complex else int
    return typing.Annotated[kind, dtype]
