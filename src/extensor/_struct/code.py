"""Specs as code: an expression that makes the spec again, with `tf` and `xt` in scope."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._path import Path
from extensor._struct.arrow_types import ArrowType, ArrowTypes, form_of
from extensor._struct.field import expect_mapping
from extensor._struct.masked import is_union, under_masks
from extensor._struct.meaning import Unit, meaning_of
from extensor._struct.spec import no_such_field
from extensor.errors import DTypeError

_TYPES = "extensor._types."


def code_of(spec: tf.TypeSpec) -> str:
    """Returns an expression that makes a spec. For other libraries' specs, their repr.

    >>> from extensor._struct.code import code_of
    >>> import tensorflow as tf
    >>> code_of(tf.RaggedTensorSpec([None, None], tf.int32))
    'tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64)'
    """
    if isinstance(spec, tf.TensorSpec) and type(spec) is tf.TensorSpec:
        name = "" if spec.name is None else f", {spec.name!r}"
        return f"tf.TensorSpec({shape_code(spec.shape)}, {dtype_code(spec.dtype)}{name})"
    if isinstance(spec, tf.RaggedTensorSpec):
        flat = spec.flat_values_spec
        parts = [shape_code(spec.shape), dtype_code(spec.dtype), str(spec.ragged_rank)]
        parts.append(dtype_code(spec.row_splits_dtype))
        if flat is not None:
            parts[1] = "None"
            parts.append(f"flat_values_spec={code_of(flat)}")
        return f"tf.RaggedTensorSpec({', '.join(parts)})"
    if isinstance(spec, tf.SparseTensorSpec):
        return f"tf.SparseTensorSpec({shape_code(spec.shape)}, {dtype_code(spec.dtype)})"
    if isinstance(spec, tf.TypeSpec) and type(spec).__module__.startswith(_TYPES):
        return _code_of_type(spec)
    return repr(spec)


def shape_code(shape: tf.TensorShape) -> str:
    """Returns an expression for a shape: `[2, None]`, or `None` for an unknown rank."""
    return "None" if shape.rank is None else repr(shape.as_list())


def dtype_code(dtype: tf.DType) -> str:
    """Returns an expression for a dtype."""
    return f"tf.{dtype.name}" if hasattr(tf, dtype.name) else f"tf.as_dtype({dtype.name!r})"


def _code_of_type(spec: tf.TypeSpec) -> str:
    """Returns an expression for the spec of a type of `xt.types`, from its attributes."""
    names = inspect.signature(type(spec)).parameters
    arguments = {name: getattr(spec, name) for name in names if hasattr(spec, name)}
    for name in reversed(list(arguments)):
        # What follows from the other arguments is left out, such as a shape beside codes.
        others = {other: value for other, value in arguments.items() if other != name}
        try:
            is_implied = type(spec)(**others) == spec
        except (TypeError, ValueError):  # an argument that is required
            continue
        arguments = others if is_implied else arguments
    pairs = [f"{name}={_code(value)}" for name, value in arguments.items()]
    return f"xt.types.{spec.value_type.__name__}.Spec({', '.join(pairs)})"


def _code(value: object) -> str:
    if isinstance(value, tf.TypeSpec):
        return code_of(value)
    if isinstance(value, tf.TensorShape):
        return shape_code(value)
    if isinstance(value, tf.DType):
        return dtype_code(value)
    if isinstance(value, Mapping):
        items: Any = value
        return "{" + ", ".join(f"{k!r}: {_code(v)}" for k, v in items.items()) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_code, value))
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


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
