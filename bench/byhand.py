"""Recipe records between Arrow and tensors, written by hand for that one schema.

What someone who knows both libraries well would write without extensor. Every name, type and level
of nesting of `bench.recipe` is spelled out, and nothing else is handled: no nulls, no other
schema, no sliced structs.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import tensorflow as tf

from bench.recipe import EMBEDDING, INGREDIENT, SCHEMA, STEP, USER_RATING

# TensorFlow's kernels load whole vectors; unaligned memory crashes the process.
_ALIGNMENT = 64


def from_arrow(table: pa.Table) -> dict[str, tf.Tensor]:
    """Returns the leaves and the row splits of a one-chunk table of recipes."""
    title, est_time, ingredients, steps, user_ratings = (c.chunk(0) for c in table.columns)
    amount, unit, name = ingredients.flatten().flatten()
    (description,) = steps.flatten().flatten()
    user_embedding, score = user_ratings.flatten().flatten()
    return {
        "title": _strings(title),
        "est_time": _numbers(est_time),
        "ingredients": _row_splits(ingredients),
        "amount": _numbers(amount),
        "unit": _strings(unit),
        "name": _strings(name),
        "steps": _row_splits(steps),
        "description": _strings(description),
        "user_ratings": _row_splits(user_ratings),
        "user_embedding": tf.reshape(_numbers(user_embedding.flatten()), [-1, EMBEDDING]),
        "score": _numbers(score),
    }


def to_arrow(tensors: dict[str, tf.Tensor]) -> pa.RecordBatch:
    """Returns the record batch of a result of `from_arrow`."""
    ingredients = pa.StructArray.from_arrays(
        [
            _number_array(tensors["amount"]),
            _string_array(tensors["unit"]),
            _string_array(tensors["name"]),
        ],
        fields=list(INGREDIENT),
    )
    steps = pa.StructArray.from_arrays([_string_array(tensors["description"])], fields=list(STEP))
    embeddings = pa.FixedSizeListArray.from_arrays(
        _number_array(tf.reshape(tensors["user_embedding"], [-1])), EMBEDDING
    )
    user_ratings = pa.StructArray.from_arrays(
        [embeddings, _number_array(tensors["score"])], fields=list(USER_RATING)
    )
    columns = [
        _string_array(tensors["title"]),
        _number_array(tensors["est_time"]),
        pa.ListArray.from_arrays(_offset_array(tensors["ingredients"]), ingredients),
        pa.ListArray.from_arrays(_offset_array(tensors["steps"]), steps),
        pa.ListArray.from_arrays(_offset_array(tensors["user_ratings"]), user_ratings),
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def _numbers(array: pa.Array) -> tf.Tensor:
    start = array.buffers()[1].address + array.offset * (array.type.bit_width // 8)
    if start % _ALIGNMENT:
        return tf.constant(array.to_numpy())
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def _row_splits(lists: pa.ListArray) -> tf.Tensor:
    offsets = lists.offsets.to_numpy()
    return tf.constant(offsets.astype(np.int64) - offsets[0])


def _strings(array: pa.StringArray) -> tf.Tensor:
    # One op cuts all strings from one blob: a quarter of the time of a Python object for each. The
    # blob is in a list because TensorFlow takes tens of milliseconds for a bare `bytes` of this
    # size, and microseconds for a list of one.
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    blob = tf.constant([memoryview(data)[offsets[0] : offsets[-1]].tobytes()])
    return tf.raw_ops.Substr(input=blob, pos=offsets[:-1] - offsets[0], len=np.diff(offsets))


def _number_array(tensor: tf.Tensor) -> pa.Array:
    # The array reads the tensor's memory and keeps it alive.
    return pa.Array.from_buffers(
        pa.float32(), len(tensor), [None, pa.py_buffer(memoryview(tensor))]
    )


def _offset_array(row_splits: tf.Tensor) -> pa.Array:
    return pa.array(np.asarray(row_splits).astype(np.int32))


def _string_array(tensor: tf.Tensor) -> pa.StringArray:
    blob = tf.strings.reduce_join(tensor).numpy()
    offsets = np.zeros(len(tensor) + 1, np.int32)
    np.cumsum(tf.strings.length(tensor).numpy(), out=offsets[1:])
    array = pa.Array.from_buffers(
        pa.binary(), len(tensor), [None, pa.py_buffer(offsets), pa.py_buffer(blob)]
    )
    # The cast copies nothing. It checks that every string is UTF-8, which Arrow requires and
    # TensorFlow does not check.
    return array.cast(pa.string())
