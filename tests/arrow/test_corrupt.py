"""Corrupt Arrow data that Arrow's own validation takes is refused by name, not read."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import FormatError, StructureError


def refused(error, path, data):
    with pytest.raises(error) as raised:
        xt.from_arrow(data)
    assert raised.value.path == path
    assert all((raised.value.expected, raised.value.received, raised.value.fix))


def test_an_array_that_begins_before_its_memory_is_refused(run_python):
    # Reading one ends the process, as pyarrow's own reading does.
    run_python(
        """
        import pyarrow as pa
        import extensor as xt

        def before(array, nulls=0):
            return pa.Array.from_buffers(array.type, len(array), array.buffers(), nulls, -1)

        def batch(array):
            return pa.RecordBatch.from_arrays([array], ["x"])

        def refused(data, path):
            try:
                xt.from_arrow(data)
            except xt.errors.StructureError as error:
                assert error.path == path and error.expected and error.received and error.fix
            else:
                raise AssertionError(f"{data} was taken")

        refused(batch(before(pa.array([1.5, None] * 300), -1)), "x")
        numbers = before(pa.array([1.5] * 600))
        views = before(pa.array(["a text that is too long"] * 8, pa.string_view()))
        bits = before(pa.array([True] * 70))
        words = pa.array(["a"] * 600)
        places = before(pa.array([0] * 600, pa.int8()))
        for array in (numbers, views, bits):
            whole = pa.nulls(len(array), array.type)
            refused(batch(array), "x")
            refused(pa.Table.from_batches([batch(whole), batch(array)]), "x")
            record = pa.StructArray.from_arrays([array], ["y"])
            refused(record, "y")
            refused(batch(record), "x.y")
            lists = pa.Array.from_buffers(
                pa.list_(array.type), 1, [None, pa.py_buffer(bytes([0] * 4 + [1, 0, 0, 0]))],
                children=[array])
            refused(batch(lists), "x")
        refused(pa.StructArray.from_buffers(
            pa.struct({"y": pa.int64()}), 1, [None], -1, -1, [pa.array([1])]), "")
        refused(batch(pa.DictionaryArray.from_buffers(
            pa.dictionary(pa.int8(), pa.string()), 600, places.buffers(), words, -1, -1)), "x")
        """
    )


@pytest.mark.parametrize("inner", [pa.int64(), pa.bool_(), pa.list_(pa.int64(), 1)])
def test_lists_of_one_size_have_all_their_values(inner):
    # Arrow forgets the offset when it counts them.
    values = pa.array([True, False] * 2 if inner == pa.bool_() else [1, 2, 3, 4],
                      inner if inner.num_fields == 0 else pa.int64())  # fmt: skip
    if inner.num_fields:
        values = pa.FixedSizeListArray.from_arrays(values, 1)
    late = pa.Array.from_buffers(pa.list_(inner, 2), 2, [None], -1, 1, [values])
    late.validate(full=True)
    refused(StructureError, "x", pa.table({"x": late}))
    whole = pa.FixedSizeListArray.from_arrays(values, 2)
    refused(StructureError, "x", pa.table({"x": pa.chunked_array([whole, late])}))
    assert xt.from_arrow(pa.table({"x": whole.slice(1)})).shape == [1]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.large_list(pa.int64())])
@pytest.mark.parametrize("splits", [tf.int32, tf.int64])
def test_no_lists_have_any_offset(kind, splits):
    width = np.int64 if kind == pa.large_list(pa.int64()) else np.int32
    offsets = pa.py_buffer(np.full(1, 77, width))
    none = pa.Array.from_buffers(kind, 0, [None, offsets], children=[pa.array([1])])
    lists = pa.Array.from_buffers(
        pa.list_(kind), 1, [None, pa.py_buffer(np.zeros(2, np.int32))], children=[none]
    )
    lists.validate(full=True)
    records = xt.from_arrow(pa.table({"x": lists}), row_splits_dtype=splits)
    assert records["x"].to_list() == [[]]
    assert records["x"].values.row_splits.numpy().tolist() == [0]


def test_an_empty_chunk_begins_anywhere():
    empty = pa.Array.from_buffers(pa.int64(), 0, [None, pa.py_buffer(b"")], 0, 3)
    for kind in (pa.int64(), pa.dictionary(pa.int8(), pa.string())):
        whole = pa.array([1, 2]) if kind == pa.int64() else pa.array(["a", "b"]).dictionary_encode()
        if kind != pa.int64():
            empty = pa.DictionaryArray.from_buffers(
                whole.type, 0, [None, pa.py_buffer(b"1234")], whole.dictionary, 0, 3
            )
        chunks = pa.chunked_array([empty, whole, whole])
        chunks.validate(full=True)
        assert xt.from_arrow(pa.table({"x": chunks}))["x"].shape == [4]
        assert xt.from_arrow(pa.table({"x": pa.chunked_array([empty])}))["x"].shape == [0]


def test_list_views_outside_of_their_values_are_refused_before_they_are_joined():
    views = pa.array([[1, 2]] * 2, pa.list_view(pa.int8()))
    sizes = pa.py_buffer(np.full(2, 1 << 30, np.int32))
    corrupt = pa.Array.from_buffers(
        views.type, 2, [None, sizes, views.buffers()[2]], children=[views.values]
    )
    table = pa.table({"x": pa.chunked_array([views, corrupt])})
    refused(StructureError, "x", table)
    refused(StructureError, "r.x", pa.table({"r": pa.chunked_array(
        [pa.StructArray.from_arrays([chunk], ["x"]) for chunk in (views, corrupt)])}))  # fmt: skip


def test_names_are_utf8():
    schema = pa.schema([("aaa", pa.int64()), ("r", pa.struct({"bbb": pa.int64()}))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([{"aaa": 1, "r": {"bbb": 2}}], schema))
    sent = sink.getvalue().to_pybytes()
    for name, path in ((b"aaa", "names of columns"), (b"bbb", "r")):
        data = pa.ipc.open_stream(sent.replace(name, b"\xff\xfe\xfd")).read_all()
        refused(FormatError, path, data)
        with pytest.raises(FormatError):
            xt.spec_from_schema(data.schema)


HOSTILE = """
import numpy as np, pyarrow as pa
import extensor as xt
from extensor.errors import StructureError

def buffer(*numbers, dtype=np.int32):
    return pa.py_buffer(np.array(numbers, dtype))

def array(arrow, count, buffers, *children, offset=0):
    return pa.Array.from_buffers(arrow, count, [None, *buffers], 0, offset, list(children))

later = []

def spoiled(arrow, count, buffers, *children):
    # pyarrow tests some arrays when it makes them, so their memory changes later.
    memory = [np.array(b, np.int32) for b, _ in buffers]
    made = array(arrow, count, [pa.py_buffer(m) for m in memory], *children)
    later.extend((m, bad) for m, (_, bad) in zip(memory, buffers))
    return made

numbers, words = pa.array([1, 2, 3]), pa.array(["a", "b", "c"])
runs, views = pa.run_end_encoded(pa.int32(), pa.string()), pa.list_view(pa.string())
ends = np.array([1, 2, 3], np.int32)
ended = pa.Array.from_buffers(pa.int32(), 3, [None, pa.py_buffer(ends)])
decreasing = array(runs, 3, [], ended, words)
later.append((ends, [2, 1, 3]))
pairs = pa.StructArray.from_arrays([words, numbers], ["key", "value"])
mapping = pa.map_(pa.string(), pa.int64())
big = 1 << 30
cases = [
    decreasing,
    spoiled(views, 2, [([0, 1], [0, 1]), ([1, 1], [1, big])], words),
    spoiled(views, 2, [([0, 1], [0, -1]), ([1, 1], [1, 1])], words),
    spoiled(views, 2, [([0, 1], [0, big]), ([1, 1], [1, 1])], words),
    spoiled(views, 2, [([0, 1], [0, 1]), ([1, 1], [-1, 1])], words),
    spoiled(mapping, 2, [([0, 1, 3], [0, 1, big])], pairs),
    spoiled(mapping, 2, [([0, 1, 3], [0, 2, 1])], pairs),
    array(pa.date32(), 2, [buffer(1, 2)], offset=-1),
    pa.DictionaryArray.from_arrays(pa.array([0, 9], pa.int8()), numbers, safe=False),
    pa.DictionaryArray.from_arrays(pa.array([0, -1], pa.int8()), numbers, safe=False),
]
wide = array(pa.decimal128(5, 2), 1, [buffer(1, 7, dtype=np.int64)])
batches = []
for bad in cases + [wide]:
    columns = [bad] if bad.offset < 0 else [bad, pa.StructArray.from_arrays([bad], ["y"])]
    batches += [pa.RecordBatch.from_arrays([column], ["x"]) for column in columns]
for memory, bad in later:
    memory[:] = bad
for batch in batches:
    try:
        xt.from_arrow(batch)
    except StructureError as error:
        assert error.path in ("x", "x.y", "x.key"), error
    else:
        raise AssertionError(batch.schema)
"""


def test_hostile_arrays_of_every_new_type_are_refused_before_they_are_read(run_python):
    run_python(HOSTILE)


def test_list_views_may_overlap_and_come_in_any_order():
    values = pa.array(["a", "b", None, "c"])
    parts = [pa.py_buffer(np.array(p, np.int32)) for p in ([3, 0, 0], [1, 2, 1])]
    views = pa.Array.from_buffers(pa.list_view(pa.string()), 3, [None, *parts], children=[values])
    ragged = xt.from_arrow(pa.table({"x": views}))["x"]
    assert ragged.to_list() == [[b"c"], [b"a", b"b"], [b"a"]]
    assert xt.from_arrow(pa.table({"x": views.slice(1)}))["x"].to_list() == [[b"a", b"b"], [b"a"]]
