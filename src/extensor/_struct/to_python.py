"""Records as plain Python."""

# This file calls methods of records that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from extensor import _tf
from extensor._path import Path, quoted
from extensor._protocol.box import box, unbox
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.masked import is_masked
from extensor._struct.records import Records
from extensor.errors import DTypeError, FormatError


@refuse_deep_nesting("to_py")
def to_py(records: Any, text: bool = False) -> Any:
    """Returns a dict for a record, and nested lists of dicts for a collection.

    Args:
        records: A StructuredTensor.
        text: Whether strings become str instead of bytes.

    Raises:
        DTypeError: If the tensors are part of a graph and hold no values (also a TypeError).
        FormatError: If `text`, and a string is not UTF-8 (also a ValueError).
    """
    expect_values(records, "to_py")
    try:
        if records.rank:
            return _elements(records, 1, text, Path())
        return _record(records, text, Path())
    except FormatError:
        _refuse_bytes(to_py(records), "", records.rank)
        raise


def expect_values(records: Any, method: str) -> None:
    """Raises DTypeError if the tensors of records are part of a graph and hold no values.

    Args:
        records: A StructuredTensor.
        method: The name of the caller, the path in the error.
    """
    if _holds_values(records):
        return
    at = next(filter(None, _symbolic_fields(records, Path())), Path())
    raise DTypeError(
        path=f"{method}: {at}" if at else method,
        expected="tensors that hold values",
        received="tensors of a graph",
        mend=f"Call {method} outside of tf.function.",
    )


def _symbolic_fields(records: Any, at: Path) -> Any:
    for name in records.field_names():
        field = records._uncut_field(name, at / name)
        if isinstance(field, Records):
            yield from _symbolic_fields(field, at / name)
        elif not _holds_values(field):
            yield at / name


def _holds_values(value: Any) -> bool:
    """Returns whether the tensors of a value are not part of a graph. Makes no specs."""
    if isinstance(value, tf.Tensor):
        return hasattr(value, "numpy")
    if isinstance(value, Records):
        records: Any = value
        while hasattr(records, "row_splits"):
            if not hasattr(records.row_splits, "numpy"):
                return False
            records = records.values
        parts = [records._field(name, Path()) for name in records.field_names()]
        return all(map(_holds_values, parts or tf.nest.flatten(records, expand_composites=True)))
    if is_masked(value):
        return _holds_values(value.values) and _holds_values(value.mask)
    return all(hasattr(p, "numpy") for p in tf.nest.flatten(value, expand_composites=True))


def _record(records: Any, text: bool, at: Path) -> dict[str, Any]:
    return {
        name: _plain_field(records._field(name, at / name), text, at / name)
        for name in records.field_names()
    }


def _plain_field(value: Any, text: bool, at: Path) -> Any:
    if isinstance(value, Records):
        records: Any = value
        return _elements(value, 1, text, at) if records.rank else _record(records, text, at)
    if hasattr(value, "to_py"):
        plain = value.to_py()
        return _decoded(plain, at) if text else plain
    if hasattr(value, "row_splits"):
        return _elements(value, 1, text, at)
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return _of_tensor(value, text, at)
    return value


def _elements(value: Any, rank: int, text: bool, at: Path) -> list[Any]:
    """Returns nested lists of a value's elements along its first `rank` dimensions.

    Inner dimensions of tensors become lists too. Elements of other types are not converted.
    """
    splits = getattr(value, "row_splits", None)
    if splits is not None:
        inner = _elements(value.values, 1, text, at)
        ends = splits.numpy().tolist()
        return [inner[start:end] for start, end in itertools.pairwise(ends)]
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return _of_tensor(value, text, at)
    if isinstance(value, Records):
        return _zipped(value, text, at)
    if hasattr(type(value), "__tf_cut_rows__"):
        plain = value.to_py()
        return _decoded(plain, at) if text else plain
    spec = tf.type_spec_from_value(value)
    boxes = box(spec, value, 1)
    element = _tf.unstacked(spec)
    elements = [unbox(element, [b[i] for b in boxes]) for i in range(boxes[0].shape[0])]
    return elements if rank == 1 else [_elements(e, rank - 1, text, at) for e in elements]


def _of_tensor(value: Any, text: bool, at: Path) -> Any:
    plain = value.numpy()
    if text and value.dtype == tf.string:
        return _decoded(plain.tolist() if isinstance(plain, np.ndarray) else plain, at)
    return plain.tolist() if hasattr(plain, "tolist") else plain


_PLAIN = {int, float, bool, complex, type(None)}
"""Types of values that hold no bytes."""


def _decoded(plain: Any, at: Path) -> Any:
    """Returns a value with str for each bytes, also in lists and dicts."""
    if isinstance(plain, bytes):
        try:
            return plain.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                path=at or "to_py",
                expected="text in UTF-8",
                received=f"{plain[:40]!r}",
                mend="Call to_py() without text=True, which returns bytes.",
            ) from error
    if isinstance(plain, list):
        items: list[Any] = plain
        with contextlib.suppress(TypeError, UnicodeDecodeError):  # not all are bytes of text
            return list(map(bytes.decode, items))
        if set(map(type, items)) <= _PLAIN:
            return items
        return [_decoded(item, at) for item in items]
    if isinstance(plain, dict):
        fields: dict[str, Any] = plain
        return {name: _decoded(item, at / name) for name, item in fields.items()}
    return plain


def _refuse_bytes(plain: Any, at: str, rank: int, record: tuple[int, ...] = ()) -> None:
    """Raises FormatError for the first bytes that are not UTF-8, with path and record.

    Args:
        plain: A collection of records as plain Python, or a value in it.
        at: The path.
        rank: The number of lists that are dimensions of the collection.
        record: The number of the record.
    """
    if isinstance(plain, list):
        items: list[Any] = plain
        for i, item in enumerate(items):
            if rank:
                _refuse_bytes(item, at, rank - 1, (*record, i))
            else:
                _refuse_bytes(item, f"{at}[*]", 0, record)
    elif isinstance(plain, dict):
        fields: dict[str, Any] = plain
        for name, item in fields.items():
            _refuse_bytes(item, f"{at}.{quoted(name)}" if at else quoted(name), 0, record)
    elif isinstance(plain, bytes):
        number = str(record[0]) if len(record) == 1 else str(list(record))
        try:
            plain.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                path=f"{at}, record {number}" if record else at,
                expected="text in UTF-8",
                received=f"{plain[:40]!r}",
                mend="Call to_py() without text=True, which returns bytes.",
            ) from error


def _zipped(records: Any, text: bool, at: Path) -> list[Any]:
    names = records.field_names()
    if not names:
        return _empty_records(records.shape.as_list())
    columns = [_elements(records._field(n, at / n), records.rank, text, at / n) for n in names]
    return _merged(_dicts_of(names), columns, records.rank)


def _merged(dicts: Callable[[list[Any]], list[Any]], columns: list[Any], rank: int) -> list[Any]:
    if rank == 1:
        return dicts(columns)
    return [_merged(dicts, list(row), rank - 1) for row in zip(*columns, strict=True)]


@functools.lru_cache(maxsize=256)
def _dicts_of(names: tuple[str, ...]) -> Callable[[list[Any]], list[Any]]:
    """Returns a function from columns to a list of dicts with these names.

    It is compiled for the names, as `collections.namedtuple` does: a dict with known keys takes
    half the time of `dict(zip(names, row))`.
    """
    if len(names) > 100:  # compiling takes time too
        return lambda columns: [
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        ]
    values = [f"v{i}" for i in range(len(names))]
    pairs = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    code = f"lambda columns: [{{{pairs}}} for {', '.join(values)}, in zip(*columns, strict=True)]"
    return eval(code, {"zip": zip})


def _empty_records(sizes: list[int]) -> Any:
    return [_empty_records(sizes[1:]) for _ in range(sizes[0])] if sizes else {}
