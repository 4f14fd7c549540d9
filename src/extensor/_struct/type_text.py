"""Arrow types of fields as short text, for the constructor and the repr of a spec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._path import Path
from extensor._struct.arrow_types import ArrowType, ArrowTypes, form_of
from extensor._struct.code import code_of
from extensor._struct.field import expect_mapping
from extensor._struct.masked import is_union, under_masks
from extensor._struct.meaning import Unit, meaning_of
from extensor._struct.spec import no_such_field
from extensor.errors import DTypeError

_PATTERN = re.compile(
    r"(?P<kind>date|time|timestamp|duration|decimal)(?P<width>\d*)"
    r"(\[(?P<unit>\w+)(, tz=(?P<zone>.+))?\]|\((?P<digits>\d+), (?P<scale>-?\d+)\))?"
)


def type_text(kept: ArrowType) -> str | dict[str, Any]:
    """Returns the type of the numbers of a field as text; for a union, a dict by variant.

    Args:
        kept: The Arrow type of a field whose numbers have a meaning.
    """
    return _text_of(kept.field.type)


def _text_of(arrow: pa.DataType) -> str | dict[str, Any]:
    while not pa.types.is_union(arrow):
        if isinstance(arrow, pa.BaseExtensionType):
            arrow = arrow.storage_type
        elif hasattr(arrow, "value_type"):
            arrow = arrow.value_type
        else:
            return str(arrow)
    fields = [arrow.field(i) for i in range(arrow.num_fields)]
    return {f.name: _text_of(f.type) for f in fields if meaning_of(f.type) is not None}


def to_arrow_types(types: Any, field_specs: Mapping[str, Any], rank: int) -> ArrowTypes:
    """Returns the Arrow types of fields.

    Args:
        types: For each field, a type of Arrow, or the text of the type of its numbers; for a
            union, a dict of these.
        field_specs: The specs of the fields.
        rank: The number of dimensions of the records.

    Raises:
        FieldError: If there is no such field (also a KeyError).
        DTypeError: If a text is not the name of a type, or a type does not fit a field (also a
            TypeError).
    """
    expect_mapping(types, "types", "from field names to Arrow types", '{"when": "timestamp[us]"}')
    for name in types:
        if name not in field_specs:
            raise no_such_field(Path(name), tuple(field_specs))
    return {
        name: _to_arrow_type(name, each, field_specs[name], rank) for name, each in types.items()
    }


def _to_arrow_type(name: str, given: object, spec: tf.TypeSpec, rank: int) -> ArrowType:
    form = form_of(spec, rank)
    if isinstance(given, pa.DataType):
        arrow = given
    else:
        arrow = _arrow_of(given, spec, Path(name))
        unit = meaning_of(arrow)
        is_wide = isinstance(unit, Unit) and unit.kind.endswith("bits")
        for _ in range((form[1] or 0) - is_wide):  # a wide decimal has several integers
            arrow = pa.list_(arrow)
    unit = meaning_of(arrow)
    if isinstance(unit, Unit) and form[0] not in (tf.int64, tf.int32):
        received = getattr(form[0], "name", code_of(spec))
        fix = "Give the field the spec that xt.spec_from_schema returns for this type."
        raise DTypeError(f"types: {Path(name)}", f"a field of integers, for {unit}", received, fix)
    return ArrowType(pa.field(name, arrow), form)


def _arrow_of(given: object, spec: tf.TypeSpec, at: Path) -> pa.DataType:
    """Returns the Arrow type of one value of a field."""
    spec = under_masks(spec)
    if isinstance(given, Mapping) and is_union(spec):
        fields = [
            pa.field(name, _arrow_of(given[name], spec.variants[name], at / name))
            if name in given
            else pa.field(name, _plain(spec.variants[name]))
            for name in spec.names
        ]
        return pa.dense_union(fields)
    parsed = _PATTERN.fullmatch(given) if isinstance(given, str) else None
    try:
        return pa.type_for_alias(given) if parsed is None else _made(**parsed.groupdict())
    except (TypeError, ValueError, AttributeError) as error:
        expected = "a type of Arrow or its text, such as 'timestamp[us]' or 'decimal128(9, 2)'"
        fix = "Give pa.timestamp('us', 'UTC'), or the text that str() of it returns."
        raise DTypeError(f"types: {at}", expected, repr(given)[:60], fix) from error


def _plain(spec: tf.TypeSpec) -> pa.DataType:
    dtype = getattr(spec, "dtype", None)
    if dtype == tf.string:
        return pa.binary()
    return pa.null() if dtype is None else pa.from_numpy_dtype(dtype.as_numpy_dtype)


def _made(kind: str, width: str, unit: Any, zone: Any, digits: Any, scale: Any) -> pa.DataType:
    make = getattr(pa, kind + width)
    if kind == "decimal":
        return make(int(digits), int(scale))
    if kind == "timestamp":
        return make(unit, zone)
    return make() if kind == "date" else make(unit)
