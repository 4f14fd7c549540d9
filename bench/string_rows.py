"""Conversion of strings between Arrow and tensors, against one Python object for each string.

What was tried besides, and with which result, is in strings.md.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import tensorflow as tf

import extensor as xt
from bench.measure import Call
from bench.row import NoLimit, Row

_BYTES = 4_000_000
_LENGTHS = (8, 24, 256, 4096)


def rows() -> list[Row]:
    return [
        row
        for length in _LENGTHS
        for row in (
            Row(
                f"from_arrow, strings of {length} bytes, vs object array",
                NoLimit(),
                lambda folder, length=length: _in(length),
            ),
            Row(
                f"to_arrow, strings of {length} bytes, vs object array",
                NoLimit(),
                lambda folder, length=length: _out(length),
            ),
        )
    ]


def _strings(length: int) -> pa.Array:
    """Returns strings of 0.5 to 1.5 times a length, `_BYTES` in all."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(length // 2, length + length // 2 + 1, _BYTES // length)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    letters = rng.integers(ord("a"), ord("z") + 1, offsets[-1], np.uint8)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(letters))


def _in(length: int) -> tuple[Call, Call]:
    strings = _strings(length)
    table = pa.table({"text": strings})
    as_bytes = strings.cast(pa.binary())
    return (
        lambda: xt.from_arrow(table),
        lambda: tf.constant(as_bytes.to_numpy(zero_copy_only=False)),
    )


def _out(length: int) -> tuple[Call, Call]:
    value = xt.from_arrow(pa.table({"text": _strings(length)}))
    tensor = value.field_value("text")
    return lambda: xt.to_arrow(value), lambda: pa.array(tensor.numpy(), pa.string())
