"""python_class: specs as dataclasses."""

from __future__ import annotations

import dataclasses
import keyword
import re
import typing
from typing import Union, get_args, get_origin

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import item_type, variant_types
from extensor._formats.python.hints import KEPT, LEAVES, Hint, variants_in
from extensor._formats.python.kinds import class_of_arrow
from extensor._formats.python.variants import NULL
from extensor._formats.python.wanted import ragged_dimensions, rank_of_values, value_spec
from extensor._struct.masked import is_masked, is_union
from extensor._struct.spec import StructuredTensorSpec
from extensor.errors import FieldError, UnsupportedTypeError


def python_class(spec: StructuredTensorSpec, name: str = "Record") -> type:
    """Returns a dataclass with the fields of a spec; see `StructuredTensorSpec.python_class`."""
    record = spec._record
    fields: list[tuple[str, Hint]] = []
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


def _hint_of(spec: tf.TypeSpec, outer: int, name: str, arrow: pa.DataType | None) -> Hint:
    """Returns the annotation of a field of records of rank `outer`."""
    if is_masked(spec):
        return _optional(_hint_of(spec.values, outer, name, arrow), spec.mask.shape.rank - outer)
    if isinstance(spec, StructuredTensorSpec):
        return _in_lists(python_class(spec, name), spec, outer, spec.rank)
    is_plain = isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec))
    if is_union(spec):
        hint, rank = _union_hint(spec, name, arrow), spec.shape.rank
    elif is_plain and spec.shape.rank is not None:
        item = item_type(arrow)
        hint, rank = _leaf_hint(spec.dtype, item), rank_of_values(spec, item)
    else:
        hint, rank = None, 0
    if hint is None:
        return typing.Annotated[object, value_spec(spec, outer)]
    return _in_lists(hint, spec, outer, rank)


def _union_hint(spec: tf.TypeSpec, name: str, arrow: pa.DataType | None) -> Hint:
    """Returns the annotation of one value; None if its variants would get other names."""
    types = variant_types(arrow)
    hints: dict[str, Hint] = {}
    for variant, rows in spec.variants.items():
        own = name if variant == "record" else variant
        is_null = variant == NULL and rows.dtype == tf.float32
        hints[variant] = None if is_null else _hint_of(rows, 1, own, types.get(variant))
    hint = Union[tuple(hints.values())]  # noqa: UP007
    try:
        names = list(variants_in(hint, "")) if len(hints) > 1 else []
    except UnsupportedTypeError:
        return None
    return hint if names == list(hints) and set(hints) != {names[0], NULL} else None


def _optional(hint: Hint, depth: int) -> Hint:
    if not depth:
        return Union[hint, None]  # noqa: UP007  (hint may be a string or a class)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        inner = _optional(arguments[0], depth)
        return typing.Annotated[(inner, *arguments[1:])]  # pyright: ignore
    return list[_optional(arguments[0], depth - 1)]  # pyright: ignore


def _in_lists(hint: Hint, spec: tf.TypeSpec, outer: int, rank: int) -> Hint:
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


def _leaf_hint(dtype: tf.DType, arrow: pa.DataType | None) -> Hint:
    for kind, known in KEPT.items():
        if arrow == known:
            return kind
    own = None if arrow is None or not dtype.is_integer else class_of_arrow(arrow)
    if own is not None:
        return typing.Annotated[own, arrow]
    for kind, known in LEAVES.items():
        if known == dtype:
            return kind
    kind = float if dtype.is_floating else complex if dtype.is_complex else int
    return typing.Annotated[kind, dtype]
