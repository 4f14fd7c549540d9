"""Unions from Python values and back, and unions with other variants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._types.masked.value import MaskedTensor
from extensor._types.union.rows import flat_codes
from extensor.authoring import cast_value, lossless
from extensor.errors import DTypeError, FieldError

NULL = "null"
"""The name of the variant of None."""


def kind_of(value: Any) -> str:
    """Returns the name of the variant of a Python value: `"int"`, `"string"`, `"record"`, ..."""
    if value is None:
        return NULL
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    raise DTypeError(
        path="UnionTensor.from_values",
        expected="numbers, strings, booleans, None, lists or dicts",
        received=type(value).__name__,
        mend="Convert it first.",
    )


# bool before int, because True is an int.
_KINDS: tuple[tuple[Any, str], ...] = (
    ((bool, np.bool_), "bool"),
    ((int, np.integer), "int"),
    ((float, np.floating), "float"),
    ((str, bytes), "string"),
    (Mapping, "record"),
    ((list, tuple, np.ndarray), "list"),
)


def parts_of(cls: Any, values: list[Any]) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """Returns codes and variants for Python values, one variant for each kind of value.

    Args:
        cls: UnionTensor.
        values: The values.
    """
    kinds = [kind_of(value) for value in values]
    names = list(dict.fromkeys(kinds))
    rows = {name: [v for v, k in zip(values, kinds, strict=True) if k == name] for name in names}
    codes = np.array([names.index(kind) for kind in kinds], np.int8)
    return codes, {name: _rows_of(cls, name, rows[name]) for name in names}


def _rows_of(cls: Any, kind: str, rows: list[Any]) -> Any:
    if kind == NULL:
        return nulls(len(rows))
    if kind == "record":
        return _records(cls, rows)
    if kind == "list":
        return tf.ragged.constant([list(row) for row in rows])
    return tf.convert_to_tensor(lossless(rows, None, f"UnionTensor.from_values: {kind}"))


def _records(cls: Any, rows: list[Any]) -> Any:
    from extensor import DenseStructuredTensor  # imports this module

    names = list(dict.fromkeys(name for row in rows for name in row))
    for row in rows:
        missing = [name for name in names if name not in row]
        if missing:
            raise FieldError(
                path=f"UnionTensor.from_values: record.{missing[0]}",
                expected=f"records with the fields {', '.join(names)}",
                received=f"a record without {missing[0]!r}",
                mend="Add the field, or pass the spec.",
            )
    columns: dict[str, Any] = {}
    for name in names:
        column = [row[name] for row in rows]
        kinds = {kind_of(value) for value in column}
        if len(kinds) > 1 and kinds != {"int", "float"}:
            columns[name] = cls.from_values(column)
        else:
            columns[name] = _rows_of(cls, "float" if len(kinds) > 1 else kinds.pop(), column)
    return DenseStructuredTensor([len(rows)], columns)


def nulls(count: Any) -> MaskedTensor:
    """Returns the rows of the variant of None: booleans that are all not valid.

    Args:
        count: The number of rows.
    """
    return MaskedTensor.of_parts(tf.zeros([count], tf.bool), tf.zeros([count], tf.bool))


def of_values(values: list[Any], spec: Any) -> Any:
    """Returns a union of a spec from Python values.

    Args:
        values: A list of values; for a spec of higher rank, nested lists.
        spec: A UnionSpec.

    Raises:
        DTypeError: If a value fits no variant (also a TypeError).
    """
    rank = spec.shape.rank
    flat: list[Any] = []
    shape = _flattened(values, rank, flat)
    fits = {name: _kinds_of(variant) for name, variant in spec.variants.items()}
    names: list[str] = []
    for i, value in enumerate(flat):
        kind = kind_of(value)
        found = [name for name in spec.names if kind in fits[name]]
        exact = [name for name in found if fits[name][0] == kind] or found
        if not exact:
            raise DTypeError(
                path=f"UnionTensor.Spec, record {i}",
                expected=f"a value of one of the variants {', '.join(spec.names)}",
                received=f"{kind} {value!r}",
                mend="Add a variant to the spec.",
            )
        names.append(kind if kind in exact else exact[0])
    numbers = [spec.names.index(name) for name in names]
    variants: dict[str, Any] = {}
    for name in spec.names:
        rows = [v for v, own in zip(flat, names, strict=True) if own == name]
        variants[name] = _cast(spec.variants[name], rows, f"UnionTensor.Spec.{name}")
    codes: Any = tf.constant(numbers, tf.int8, [len(numbers)])
    if rank != 1:
        codes = _nested(numbers, shape)
        codes = (
            tf.ragged.constant(codes, tf.int8, ragged_rank=rank - 1)
            if isinstance(spec.codes, tf.RaggedTensorSpec)
            else tf.constant(codes, tf.int8)
        )
    return spec.value_type.of_parts(
        cast_value(spec.codes, codes, "UnionTensor"), variants, spec.names
    )


def _cast(spec: Any, rows: list[Any], path: str) -> Any:
    if not isinstance(spec, MaskedTensor.Spec) or None not in rows:
        return cast_value(spec, rows, path)
    zero = {tf.string: "", tf.bool: False}.get(spec.dtype, 0)
    values = cast_value(spec.values, [zero if row is None else row for row in rows], path)
    return MaskedTensor(values, [row is not None for row in rows])


def _flattened(values: Any, rank: int, flat: list[Any]) -> Any:
    """Appends the values at a depth, and returns the number of values in each list."""
    if rank <= 1:
        flat.extend(values if rank else [values])
        return len(values) if rank else None
    return [_flattened(inner, rank - 1, flat) for inner in values]


def _nested(numbers: list[int], shape: Any) -> Any:
    rest = iter(numbers)

    def build(shape: Any) -> Any:
        if shape is None:
            return next(rest)
        if isinstance(shape, int):
            return [next(rest) for _ in range(shape)]
        return [build(inner) for inner in shape]

    return build(shape)


def _kinds_of(spec: Any) -> list[str]:
    """Returns the kinds of values that rows of a spec hold; the best first."""
    if isinstance(spec, MaskedTensor.Spec):
        return [NULL, *_kinds_of(spec.values)]
    if hasattr(spec, "field_names"):
        return ["record"]
    if spec.shape.rank is None or spec.shape.rank > 1:
        return ["list"]
    dtype: tf.DType = spec.dtype
    if dtype == tf.string:
        return ["string"]
    if dtype == tf.bool:
        return ["bool"]
    return ["int"] if dtype.is_integer else ["float", "int"]


def with_names(value: Any, spec: Any) -> Any:
    """Returns a union with the variants of a spec, or the value itself if they differ more.

    Args:
        value: A UnionTensor.
        spec: A UnionSpec.
    """
    if value.names == spec.names or not set(value.names) <= set(spec.names):
        return value
    table = tf.constant([spec.names.index(name) for name in value.names], tf.int8)
    codes = value.codes
    flat = tf.gather(table, tf.cast(flat_codes(codes), tf.int32))
    if isinstance(codes, tf.RaggedTensor):
        new = codes.with_flat_values(tf.reshape(flat, tf.shape(codes.flat_values)))
    else:
        new = tf.ensure_shape(tf.reshape(flat, tf.shape(codes)), codes.shape)
    variants = {
        name: value.variants[name]
        if name in value.variants
        else cast_value(spec.variants[name], [], f"UnionTensor.{name}")
        for name in spec.names
    }
    return value.of_parts(new, variants, spec.names)


def to_py(value: Any) -> Any:
    """Returns the values of a union as numbers, bytes, lists and dicts."""
    rows = [iter(listed(value.variants[name])) for name in value.names]
    return _placed(listed(value.codes), rows)


def _placed(codes: Any, rows: list[Any]) -> Any:
    if isinstance(codes, list):
        return [_placed(code, rows) for code in cast("list[Any]", codes)]
    return next(rows[codes])


def listed(value: Any) -> Any:
    """Returns a value as lists of its Python values."""
    if hasattr(value, "to_py"):
        return value.to_py()
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    plain = value.numpy()
    return plain.tolist() if hasattr(plain, "tolist") else plain
