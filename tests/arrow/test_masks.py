"""Masks of columns: made of Arrow's bits when they are first read, and shared between columns."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt

VALUES = [None if i % 3 == 0 else i for i in range(200)]
COLUMNS = {
    "numbers": pa.array(VALUES, pa.float32()),
    "bools": pa.array([v and v % 2 == 0 for v in VALUES]),
    "strings": pa.array([v and str(v) for v in VALUES]),
    "lists": pa.array([v and [v, None] for v in VALUES], pa.list_(pa.int64())),
    "maps": pa.array([v and [(str(v), 1.5)] for v in VALUES], pa.map_(pa.string(), pa.float32())),
}


def refuse(*args, **kwargs):
    raise AssertionError("Bits were unpacked.")


@pytest.mark.parametrize("kind", COLUMNS)
def test_bits_are_unpacked_when_a_mask_is_first_read(kind, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(np, "unpackbits", refuse)
        column = xt.from_arrow(pa.table({"x": COLUMNS[kind]}), nulls="mask")["x"]
        assert column.shape[0] == 200
        with pytest.raises(AssertionError, match="unpacked"):
            column.mask  # noqa: B018 - reading it makes it
    np.testing.assert_array_equal(column.mask, [v is not None for v in VALUES])
    assert column.mask is column.mask


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("start", [0, 3, 8, 16])
def test_the_mask_of_a_slice_is_that_of_its_rows(kind, start):
    part = pa.table({"x": COLUMNS[kind].slice(start, 100)})
    found = xt.from_arrow(part, nulls="mask")
    np.testing.assert_array_equal(found["x"].mask, [v is not None for v in VALUES][start:][:100])
    assert xt.to_arrow(found).to_pylist() == part.to_pylist()


@pytest.mark.parametrize("start", [0, 3, 8])
def test_values_of_null_lists_are_left_out(start):
    mask = pa.array([False, True, False, True, True] * 4)
    over = pa.ListArray.from_arrays(range(0, 41, 2), pa.array(range(40)), mask=mask)
    over = over.slice(start)
    for nulls in ("mask", "empty"):
        found = xt.from_arrow(pa.table({"x": over}), nulls={"x": nulls})["x"]
        lists = found.values if nulls == "mask" else found
        assert lists.to_list() == [row or [] for row in over.to_pylist()]


def test_the_mask_of_items_is_cut_when_it_is_first_read():
    column = xt.from_arrow(pa.table({"x": COLUMNS["lists"]}), nulls="mask")["x"]
    items = column.values.mask
    assert items.to_list() == [[] if v is None else [True, False] for v in VALUES]
    assert items.row_splits is column.values.values.row_splits


def test_columns_without_nulls_share_a_mask():
    table = pa.table({"a": pa.array([1.5, 2.0]), "b": pa.array(["x", "y"])})
    records = xt.from_arrow(table, nulls="mask")
    assert records["a"].mask is records["b"].mask
    assert records["a"].mask.numpy().all()


def test_a_mask_read_while_a_function_is_traced_is_an_eager_tensor():
    records = xt.from_arrow(pa.table({"x": COLUMNS["lists"]}), nulls="mask")

    @tf.function
    def valid():
        return tf.reduce_sum(tf.cast(records["x"].mask, tf.int32)), records["x"].values.mask

    count, items = valid()
    assert count == 133
    assert items.to_list() == records["x"].values.mask.to_list()
    assert records["x"].mask.numpy().sum() == 133


def test_threads_may_read_a_mask_at_the_same_time():
    for _ in range(20):
        column = xt.from_arrow(pa.table({"x": COLUMNS["numbers"]}), nulls="mask")["x"]
        with ThreadPoolExecutor(8) as threads:
            sums = threads.map(lambda _, c=column: c.mask.numpy().sum(), range(8))
            assert set(sums) == {133}


CHANGES = {
    "replace": lambda column: xt.replace(column, values=column.values + 1),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda column: pickle.loads(pickle.dumps(column)),
    "function": tf.function(lambda column: column),
    "dataset": lambda column: next(iter(tf.data.Dataset.from_tensors(column))),
    "packed": lambda column: tf.nest.pack_sequence_as(
        column, tf.nest.flatten(column, expand_composites=True), expand_composites=True
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_values_whose_mask_was_not_read_are_changed_as_others(change):
    column = xt.from_arrow(pa.table({"x": COLUMNS["numbers"]}), nulls="mask")["x"]
    changed = CHANGES[change](column)
    np.testing.assert_array_equal(changed.mask, [v is not None for v in VALUES])
    plus = int(change == "replace")
    assert changed.to_py() == [v if v is None else v + plus for v in VALUES]


def test_a_mask_that_was_not_read_keeps_no_memory_of_the_table():
    strings = COLUMNS["strings"]  # whose values are copied
    memory = np.frombuffer(strings.buffers()[0], np.uint8).copy()
    buffers = [pa.py_buffer(memory), *strings.buffers()[1:]]
    array = pa.Array.from_buffers(strings.type, len(strings), buffers)
    kept = weakref.ref(memory)
    column = xt.from_arrow(pa.table({"x": array.slice(3, 150)}), nulls="mask")["x"]
    del memory, buffers, array
    gc.collect()
    assert kept() is None
    np.testing.assert_array_equal(column.mask, [v is not None for v in VALUES[3:153]])
