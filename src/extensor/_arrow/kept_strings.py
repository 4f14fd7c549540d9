"""Arrow columns that are kept beside tensors of strings and row splits while their table lives.

These tensors are copies. While the caller holds the table that it came from, the way back
needs none: the column is there, and a tensor cannot change. Nothing is kept alive: the tensor has
the column only until the table is deleted.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.buffers import as_text

_ATTRIBUTE = "_extensor_arrow_column"
_FEW = 512
"""Values: up to here, to write them takes less time than to keep the column."""


class _Kept:
    """A column; None once its table was deleted."""

    __slots__ = ("__weakref__", "array", "is_checked")

    def __init__(self, array: pa.Array) -> None:
        self.array: pa.Array | None = array
        self.is_checked = False


class _Owned:
    """What is kept of a table, and the addresses of its memory."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self.kept: weakref.WeakSet[_Kept] = weakref.WeakSet()
        self.addresses = {buffer.address for buffer in _buffers_of(table) if buffer is not None}


_owned: dict[int, _Owned] = {}
_lock = threading.Lock()


def keep_column(tensor: tf.Tensor, array: pa.Array, owner: pa.Table | pa.RecordBatch) -> None:
    """Keeps a column beside its tensor until its table is deleted.

    Columns that are not in the memory of the table, because they were converted, are not kept.
    """
    if array.null_count or len(array) <= _FEW:  # the tensor has values in place of nulls
        return
    with _lock:
        found = _owned.get(id(owner))
        if found is None:
            found = _owned[id(owner)] = _Owned(owner)
            weakref.finalize(owner, _release, id(owner)).atexit = False
        if array.buffers()[1].address not in found.addresses:
            return
        kept = _Kept(array)
        found.kept.add(kept)
    setattr(tensor, _ATTRIBUTE, kept)


def is_kept(tensor: tf.Tensor) -> bool:
    """Returns whether the column of a tensor is kept."""
    kept: _Kept | None = getattr(tensor, _ATTRIBUTE, None)
    return kept is not None and kept.array is not None


def kept_column(tensor: tf.Tensor, arrow_type: pa.DataType) -> pa.Array | None:
    """Returns the column of a tensor, if it is kept, of this type, and valid text where it is text.

    Args:
        tensor: A tensor of strings of rank 1.
        arrow_type: The wanted type.
    """
    kept: _Kept | None = getattr(tensor, _ATTRIBUTE, None)
    array = None if kept is None else kept.array
    if kept is None or array is None or array.type != arrow_type:
        return None
    if not kept.is_checked:  # Arrow does not check that text is UTF-8
        try:
            as_text(array, array.type)
        except pa.ArrowInvalid:
            return None
        kept.is_checked = True
    return array


def kept_lists(row_splits: tf.Tensor, arrow_type: pa.DataType) -> pa.Array | None:
    """Returns the lists whose offsets row splits are a copy of, if they are kept, and of this kind.

    Args:
        row_splits: The row splits.
        arrow_type: The wanted type; that of the items may be another one.
    """
    kept: _Kept | None = vars(row_splits).get(_ATTRIBUTE)
    array = None if kept is None else kept.array
    return None if array is None or array.type.id != arrow_type.id else array


def kept_texts(tensor: tf.Tensor) -> list[str] | None:
    """Returns the str of a tensor whose column is kept, if it is valid text.

    Arrow makes them from the column, without the bytes of each string.
    """
    # To look up a missing attribute of a tensor takes longer than to decode a few strings.
    kept: _Kept | None = vars(tensor).get(_ATTRIBUTE)
    array = None if kept is None else kept.array
    if array is None or array.type not in (pa.string(), pa.large_string()):
        return None
    checked = kept_column(tensor, array.type)
    return None if checked is None else checked.to_pylist()


def _release(key: int) -> None:
    for kept in list(_owned.pop(key).kept):
        kept.array = None


def _buffers_of(table: pa.Table | pa.RecordBatch) -> list[Any]:
    chunks = [
        chunk
        for column in table.columns
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    return [buffer for chunk in chunks for buffer in chunk.buffers()]
