"""A value in one line of limited width. Reads only the rows and items that it shows."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._path import Path
from extensor._protocol.symbolic import is_symbolic
from extensor._struct import index
from extensor._struct.display.schema import name_text
from extensor._struct.inside import map_inside
from extensor._struct.masked import is_masked, is_union
from extensor._struct.records import RecordsBase
from extensor._struct.row_splits import outer_sizes
from extensor._struct.to_python import Decoders, decoders_of_field
from extensor._typing import FieldValue

_LEAST = 8
"""The width that a value gets at least."""

_STRING = 40

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _STRING
_short.maxlist = _short.maxdict = 4


def with_first_fields(value: FieldValue, most: int) -> FieldValue:
    """Returns records with their first fields only, at every depth; other values as they are.

    One field more is kept than can be shown, so that a cell ends with `...`.

    Args:
        value: The value of a field, or records.
        most: The number of fields to keep.
    """
    if not isinstance(value, RecordsBase):
        return value
    records: Any = value
    if len(names := records.field_names()) > most:
        records = records._select(names[:most])
    return map_inside(records, lambda part, _: with_first_fields(part, most))


def num_rows(value: FieldValue) -> int:
    """Returns the size of the first dimension of a value that is not symbolic."""
    size = value.shape[0]
    return int(outer_sizes(value, 1)[0]) if size is None else size


def cell_at(value: FieldValue, position: int, width: int, decoders: Decoders = None) -> str:
    """Returns one element of a value as text; see `cell`."""
    try:
        return _cell(index.take(value, (position,), Path()), max(width, _LEAST), decoders)
    except Exception:  # as in `cell`
        return f"<{type(value).__name__}>"


def cell(value: FieldValue, width: int, decoders: Decoders = None) -> str:
    """Returns a value as text of about a width; what does not fit is `...`.

    Args:
        value: The value.
        width: The width.
        decoders: How a value of a field is decoded, from `decoders`.
    """
    try:
        return _cell(value, max(width, _LEAST), decoders)
    except Exception:  # from the code of other types: a repr never fails
        return f"<{type(value).__name__}>"


def _cell(value: FieldValue, width: int, decoders: Decoders) -> str:
    if isinstance(value, RecordsBase):
        records: Any = value
        if records.shape.rank:
            return _join_cells("[", _items(value, None), "]", width)
        fields = (
            (f"{name_text(n)}: ", records._field(n, Path(n)), decoders_of_field(records, n))
            for n in records.field_names()
        )
        return _join_cells("{", fields, "}", width)
    if is_masked(value) and not value.mask.shape.rank:
        return cell(value.values, width, decoders) if value.mask else "None"
    if is_union(value) and not value.codes.shape.rank and hasattr(value.codes, "numpy"):
        name = value.names[int(value.codes)]
        inner = decoders.get(name) if isinstance(decoders, dict) else decoders
        return cell_at(value.variants[name], 0, width, inner)
    if is_symbolic(value) or (isinstance(value, tf.Tensor) and not hasattr(value, "numpy")):
        return "?"
    shape: Any = getattr(value, "shape", None)
    if isinstance(value, (tf.Tensor, tf.Variable)) and (not shape.rank or _is_decimal(value)):
        plain = _decode(value.numpy(), decoders)
        if not isinstance(plain, (list, np.ndarray)):
            return _scalar(plain)
    if isinstance(shape, tf.TensorShape) and shape.rank:
        return _join_cells("[", _items(value, decoders), "]", width)
    if not hasattr(value, "to_py"):
        return f"<{type(value).__name__}>"
    plain = _decode(value.to_py(), decoders)
    return _short.repr(plain) if isinstance(plain, (list, dict)) else _scalar(plain)


def _decode(plain: object, decoders: Decoders) -> object:
    """Returns a value as it is decoded, or as it is if it cannot be."""
    if not isinstance(decoders, functools.partial):
        return plain
    try:
        return decoders(plain.tolist() if isinstance(plain, (np.ndarray, np.generic)) else plain)
    except (OverflowError, ValueError):
        return plain


def _items(value: FieldValue, decoders: Decoders) -> Iterator[tuple[str, Any, Decoders]]:
    for i in range(num_rows(value)):
        yield "", index.take(value, (i,), Path()), decoders


def _join_cells(
    begin: str, parts: Iterable[tuple[str, Any, Decoders]], end: str, width: int
) -> str:
    texts: list[str] = []
    used = 2
    for label, value, decoders in parts:
        if used >= width:
            texts.append("...")
            break
        text = label + cell(value, width - used - len(label), decoders)
        if texts and used + len(text) > width:
            texts.append("...")
            break
        texts.append(text)
        used += len(text) + 2
    return begin + ", ".join(texts) + end


def _is_decimal(value: FieldValue) -> bool:
    """Returns whether a tensor may be one decimal of several integers."""
    return value.dtype == tf.int64 and value.shape in ([2], [4])


def _scalar(plain: object) -> str:
    if isinstance(plain, (bytes, str)):
        text = repr(plain)
        return text if len(text) <= _STRING else f"{plain[: _STRING // 2]!r}..."
    return str(plain)
