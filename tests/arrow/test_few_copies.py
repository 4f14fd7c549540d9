"""How often from_arrow copies, and what one small record costs: counted and not timed."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import _memory
from extensor._arrow import nulls
from tests.samples.calls import calls_of


def refuse(monkeypatch, module, name):
    def refused(*args, **kwargs):
        raise AssertionError(f"{name} ran.")

    monkeypatch.setattr(module, name, refused)


ONE = pa.table(
    {
        **{"title": ["bread"], "a": [1.5], "b": [2], "c": [True], "d": [0.5], "e": [7]},
        **{"f": [[1.0, 2.0]], "g": [["a", "b"]]},
    }
)


def test_a_record_of_eight_leaves_takes_few_calls():
    xt.from_arrow(ONE)  # makes the reader
    assert calls_of(lambda: xt.from_arrow(ONE)) < 600


def test_no_path_is_made_without_an_error(monkeypatch):
    table = pa.table({"a": [1.5], "b": [{"c": {"d": 2}}]})
    xt.from_arrow(table)
    made = []
    plain = xt.Path.__truediv__
    monkeypatch.setattr(
        xt.Path, "__truediv__", lambda s, name: (made.append(name), plain(s, name))[1]
    )
    xt.from_arrow(table)
    assert not made


@pytest.mark.parametrize("values", [[1, 2, 3], [1.5, 2.5], [True, False, True]], ids=str)
@pytest.mark.parametrize("first", [0, 1])
def test_unaligned_numbers_are_copied_once_and_not_by_tf_constant(values, first, monkeypatch):
    array = pa.array([values[0], *values])[1 + first :]
    refuse(monkeypatch, tf, "constant")
    found = xt.from_arrow(pa.table({"x": array}))["x"]
    assert found.numpy().tolist() == values[first:]


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("count", [1, 3, 1000])
def test_every_unaligned_vector_becomes_an_aligned_tensor(dtype, count):
    memory = _memory.aligned_empty(count + 1, np.dtype(dtype))
    memory[:] = np.arange(count + 1) % 2
    assert memory.ctypes.data % _memory.ALIGNMENT == 0
    for part in (memory, memory[1:]):
        tensor = xt.authoring.tensor_over(part)
        assert _memory.array_over(tensor).ctypes.data % _memory.ALIGNMENT == 0
        np.testing.assert_array_equal(tensor.numpy(), part)
        np.testing.assert_array_equal(tf.identity(tensor)[:1].numpy(), part[:1])


LISTS = [[1.0, 2.0], None, [], [3.0]]


@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("large", [False, True])
def test_null_lists_without_values_are_read_without_a_copy(start, large, monkeypatch):
    kind = pa.large_list if large else pa.list_
    table = pa.table({"x": pa.array(LISTS, kind(pa.float64()))[start:]})
    refuse(monkeypatch, nulls, "filter_lists")
    found = xt.from_arrow(table, nulls="mask")
    assert found.to_py() == [{"x": row} for row in LISTS[start:]]
    checks = []
    plain = nulls.buffers.offsets_of
    monkeypatch.setattr(nulls.buffers, "offsets_of", lambda *a: (checks.append(a), plain(*a))[1])
    xt.from_arrow(table, nulls="mask")
    assert len(checks) == 1  # the offsets are validated once


@pytest.mark.parametrize("large", [False, True])
def test_null_lists_over_values_are_left_out(large):
    offsets = pa.array([0, 2, 3, 3, 5], pa.int64() if large else pa.int32())
    make = pa.LargeListArray if large else pa.ListArray
    values = pa.array([1.0, 2.0, 7.0, 3.0, 4.0])
    lists = make.from_arrays(offsets, values, mask=pa.array([False, True, False, False]))
    found = xt.from_arrow(pa.table({"x": lists}), nulls="mask")["x"]
    assert found.to_py() == [[1.0, 2.0], None, [], [3.0, 4.0]]
    assert found.values.values.values.shape == [4]
    assert xt.from_arrow(pa.table({"x": lists[1:]}), nulls="mask")["x"].to_py() == [
        None, [], [3.0, 4.0]
    ]  # fmt: skip
