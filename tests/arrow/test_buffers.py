"""What is shared between Arrow and TensorFlow, by address, and that sharing never does harm."""

import gc

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt

pytestmark = pytest.mark.usefixtures("frozen_objects")

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
           "float16", "float32", "float64"]  # fmt: skip


def aligned(numbers, arrow_type=None):
    """Returns numbers as an Arrow array in memory of Arrow's own, which is 64-byte aligned."""
    numbers = np.ascontiguousarray(numbers)
    buffer = pa.allocate_buffer(max(numbers.nbytes, 1))
    np.frombuffer(buffer, np.uint8)[: numbers.nbytes] = numbers.view(np.uint8).reshape(-1)
    assert buffer.address % 64 == 0
    arrow_type = pa.from_numpy_dtype(numbers.dtype) if arrow_type is None else arrow_type
    return pa.Array.from_buffers(arrow_type, len(numbers), [None, buffer])


def list_of(list_type, offsets, values):
    return pa.Array.from_buffers(
        list_type, len(offsets) - 1, [None, aligned(offsets).buffers()[1]], children=[values]
    )


def address(tensor):
    return np.asarray(memoryview(tensor)).__array_interface__["data"][0]


def data_address(array):
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


# The table at the top of arrow/buffers.py, word by word.


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_in_are_shared(dtype):
    array = aligned(np.arange(256).astype(dtype))
    step = 64 // array.type.bit_width * 8  # values in 64 bytes
    for piece in (array, array.slice(step), array.slice(2 * step, 3)):
        tensor = xt.from_arrow(pa.table({"x": piece}))["x"]
        assert address(tensor) == data_address(piece)
        assert tensor.dtype.name == dtype
        assert tensor.numpy().tolist() == piece.to_pylist()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_that_do_not_start_at_64_bytes_are_copied(dtype):
    array = aligned(np.arange(256).astype(dtype)).slice(1)
    tensor = xt.from_arrow(pa.table({"x": array}))["x"]
    assert address(tensor) != data_address(array)
    assert address(tensor) % 64 == 0
    assert tensor.numpy().tolist() == array.to_pylist()


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_out_are_shared(dtype):
    tensor = tf.cast(tf.range(100), dtype)
    column = xt.to_arrow(xt.DenseStructuredTensor([100], {"x": tensor})).column(0)
    assert column.buffers()[1].address == address(tensor)
    assert column.to_numpy().tolist() == list(range(100))


def test_numbers_out_of_any_rank_are_shared():
    tensor = tf.reshape(tf.range(24), [2, 3, 4])
    column = xt.to_arrow(xt.DenseStructuredTensor([2], {"x": tensor})).column(0)
    assert column.values.values.buffers()[1].address == address(tensor)
    assert column.to_pylist() == tensor.numpy().tolist()


def test_numbers_below_lists_and_structs_are_shared_both_ways():
    values = aligned(np.arange(6, dtype=np.float32))
    record = pa.StructArray.from_arrays([values], ["amount"])
    lists = list_of(pa.large_list(record.type), np.array([0, 2, 6]), record)
    records = xt.from_arrow(pa.table({"ingredients": lists}))
    tensor = records["ingredients"].values["amount"]
    assert address(tensor) == values.buffers()[1].address
    back = xt.to_arrow(records).column(0)
    assert back.values.field(0).buffers()[1].address == values.buffers()[1].address


@pytest.mark.parametrize(
    ("list_of_type", "splits", "shared"),
    [
        (pa.list_, tf.int32, True),
        (pa.large_list, tf.int64, True),
        (pa.list_, tf.int64, False),
        (pa.large_list, tf.int32, False),
    ],
    ids=["list as int32", "large_list as int64", "list widened", "large_list narrowed"],
)
def test_offsets_in_are_shared_if_they_keep_their_width(list_of_type, splits, shared):
    list_type = list_of_type(pa.int16())
    width = np.int64 if pa.types.is_large_list(list_type) else np.int32
    array = list_of(list_type, np.array([0, 2, 2, 5], width), pa.array([1, 2, 3, 4, 5], pa.int16()))
    ragged = xt.from_arrow(pa.table({"x": array}), row_splits_dtype=splits)["x"]
    assert ragged.row_splits.dtype == splits
    assert ragged.to_list() == [[1, 2], [], [3, 4, 5]]
    assert (address(ragged.row_splits) == array.buffers()[1].address) == shared


def test_offsets_of_lists_of_records_are_shared():
    record = pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["minutes"])
    array = list_of(pa.list_(record.type), np.array([0, 1, 3], np.int32), record)
    records = xt.from_arrow(pa.table({"steps": array}), row_splits_dtype=tf.int32)
    assert address(records["steps"].row_splits) == array.buffers()[1].address


def test_offsets_that_do_not_begin_with_0_are_copied():
    # 16 offsets are 64 bytes: aligned, but the first one is not 0.
    array = list_of(pa.list_(pa.int64()), np.arange(33, dtype=np.int32), pa.array(range(32)))
    ragged = xt.from_arrow(pa.table({"x": array.slice(16)}), row_splits_dtype=tf.int32)["x"]
    assert ragged.row_splits.numpy().tolist() == list(range(17))
    assert ragged.to_list() == [[i] for i in range(16, 32)]


def test_offsets_that_begin_with_0_in_the_middle_of_a_buffer_are_right():
    offsets = np.concatenate([np.zeros(16, np.int32), np.arange(5, dtype=np.int32)])
    array = list_of(pa.list_(pa.int64()), offsets, pa.array(range(4))).slice(16)
    ragged = xt.from_arrow(pa.table({"x": array}), row_splits_dtype=tf.int32)["x"]
    assert address(ragged.row_splits) == array.buffers()[1].address + 64
    assert ragged.to_list() == [[0], [1], [2], [3]]


@pytest.mark.parametrize("splits", [tf.int64, tf.int32], ids=["int64", "int32"])
def test_row_splits_out_are_shared(splits):
    ragged = tf.RaggedTensor.from_row_splits([1, 2, 3], tf.constant([0, 2, 3], splits))
    steps = xt.RaggedStructuredTensor.from_row_splits(
        xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]}), tf.constant([0, 2, 3], splits)
    )
    batch = xt.to_arrow(xt.DenseStructuredTensor([2], {"x": ragged, "steps": steps}))
    assert batch.column("x").buffers()[1].address == address(ragged.row_splits)
    assert batch.column("x").values.buffers()[1].address == address(ragged.values)
    assert batch.column("steps").buffers()[1].address == address(steps.row_splits)


def test_what_was_shared_on_the_way_in_is_shared_on_the_way_out():
    table = pa.table({"x": aligned(np.arange(10))})
    back = xt.to_arrow(xt.from_arrow(table))
    assert back.column(0).buffers()[1].address == table.column(0).chunk(0).buffers()[1].address


def test_booleans_and_strings_are_copied():
    table = pa.table({"b": [True, False] * 40, "s": ["x" * 30] * 80})
    records = xt.from_arrow(table)
    back = xt.to_arrow(records)
    for name in ("b", "s"):
        there = {b.address for b in table.column(name).chunk(0).buffers() if b}
        assert there.isdisjoint({b.address for b in back.column(name).buffers() if b})


# Lifetime: either side may go first.


def _churn():
    """Uses memory, so that what was wrongly freed is overwritten."""
    gc.collect()
    return [np.full(100_000, 7, np.int64) for _ in range(20)], pa.array(np.full(10**6, 9))


def test_tensors_outlive_the_arrow_data():
    numbers = np.arange(100_000)
    lists = list_of(pa.large_list(pa.int64()), numbers, aligned(numbers))
    table = pa.table({"x": aligned(numbers[1:]), "lists": lists})
    records = xt.from_arrow(table)
    x, ragged = records["x"], records["lists"]
    assert address(x) == data_address(table.column("x").chunk(0))
    assert address(ragged.values) == data_address(lists.values)
    assert address(ragged.row_splits) == lists.buffers()[1].address
    del table, lists, records
    kept = _churn()
    assert np.array_equal(x.numpy(), numbers[1:])
    assert np.array_equal(ragged.values.numpy(), numbers[:-1])
    assert np.array_equal(ragged.row_splits.numpy(), numbers)
    del kept


def test_arrow_data_outlives_the_tensors():
    numbers = np.arange(100_000)
    tensor = tf.constant(numbers)
    ragged = tf.RaggedTensor.from_row_splits(tensor, tf.constant(np.arange(100_001)))
    records = xt.DenseStructuredTensor([100_000], {"x": tensor, "r": ragged})
    batch = xt.to_arrow(records)
    assert batch.column("x").buffers()[1].address == address(tensor)
    del records, tensor, ragged
    kept = _churn()
    assert np.array_equal(batch.column("x").to_numpy(), numbers)
    assert np.array_equal(batch.column("r").values.to_numpy(), numbers)
    assert np.array_equal(batch.column("r").offsets.to_numpy(), np.arange(100_001))
    del kept


def test_memory_is_given_back():
    size = 8 << 20
    gc.collect()  # of other tests
    before = pa.total_allocated_bytes()
    tensor = xt.from_arrow(pa.table({"x": aligned(np.zeros(size // 8))}))["x"]
    gc.collect()
    assert pa.total_allocated_bytes() - before >= size
    assert float(tf.reduce_sum(tensor)) == 0
    del tensor
    gc.collect()
    assert pa.total_allocated_bytes() - before < size


# Sharing must not let TensorFlow write into Arrow's memory, or into what Arrow was given.


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_updating_a_variable_never_changes_the_arrow_data_it_came_from(dtype):
    numbers = np.arange(1024).astype(dtype)
    array = aligned(numbers)
    one = tf.ones([1024], dtype)

    variable = tf.Variable(xt.from_arrow(pa.table({"x": array}))["x"])
    gc.collect()
    variable.assign_add(one)
    variable.assign_sub(one * 3)
    variable.scatter_nd_update([[0]], tf.constant([99], dtype))

    assigned = tf.Variable(tf.zeros([1024], dtype))
    assigned.assign(xt.from_arrow(pa.table({"x": array}))["x"])
    gc.collect()
    assigned.assign_add(one)
    assigned[3:5].assign(tf.constant([7, 7], dtype))

    @tf.function
    def in_a_graph(records):
        assigned.assign(records["x"])
        assigned.assign_add(one)
        x = records["x"]
        for _ in tf.range(3):
            x = x + one
        return tf.tensor_scatter_nd_update(x, [[0]], tf.constant([5], dtype))

    in_a_graph(xt.from_arrow(pa.table({"x": array})))
    gc.collect()
    assigned.assign_add(one)

    assert np.array_equal(array.to_numpy(), numbers)
    assert assigned.numpy()[1] == 3


def test_ops_that_may_reuse_their_input_never_change_the_arrow_data():
    numbers = np.linspace(0, 1, 1024, dtype=np.float32)
    array = aligned(numbers)

    def tensor():
        return xt.from_arrow(pa.table({"x": array}))["x"]

    # Each takes over the memory of an input that nobody else holds, where TensorFlow allows it.
    tf.add(tensor(), 1.0)
    tf.nn.relu(-tensor())
    tf.exp(tf.reshape(tensor(), [2, -1]))
    tf.sort(tensor(), direction="DESCENDING")
    tf.tensor_scatter_nd_update(tensor(), [[0]], [5.0])
    tf.function(lambda x: tf.sqrt(tf.exp(x) + 1.0))(tensor())
    tf.function(lambda x: tf.tensor_scatter_nd_add(tf.identity(x), [[0]], [5.0]))(tensor())
    assert np.array_equal(array.to_numpy(), numbers)


def test_updating_a_variable_never_changes_the_arrow_data_made_of_it():
    variable = tf.Variable(np.arange(1024, dtype=np.float32))
    batch = xt.to_arrow(xt.DenseStructuredTensor([1024], {"v": variable}))
    gc.collect()
    variable.assign_add(tf.ones([1024]))
    variable.scatter_nd_update([[0]], [77.0])
    assert np.array_equal(batch.column(0).to_numpy(), np.arange(1024, dtype=np.float32))


# Alignment: a tensor over memory that is not 64-byte aligned aborts the process at some later op,
# so these run in a process of their own.

_WALK = """
import numpy as np, pyarrow as pa, tensorflow as tf
import extensor as xt

def check(x, expected):
    expected = np.asarray(expected)
    assert x.numpy().tolist() == expected.tolist()
    for got, want in [
        (tf.reduce_sum(x), expected.sum(dtype=expected.dtype)),
        (tf.reduce_max(x), expected.max()),
        (x + x, expected + expected),
        (tf.concat([x, x], 0), np.concatenate([expected, expected])),
        (tf.gather(x, [0, 5]), expected[[0, 5]]),
        (tf.reverse(x, [0]), expected[::-1]),
        (tf.cast(x, tf.float64), expected.astype(float)),
    ]:
        assert np.array_equal(got.numpy(), want), (x.dtype, got, want)
    if x.dtype in (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64):
        m = tf.reshape(x, [4, 8])
        want = expected.reshape(4, 8) @ expected.reshape(4, 8).T
        assert np.allclose(tf.matmul(m, m, transpose_b=True).numpy(), want)
"""


@pytest.mark.whole("starts a process")
def test_a_slice_at_any_value_is_safe_to_compute_with(run_python):
    run_python(
        _WALK
        + """
for dtype in map(np.dtype, ["int8", "int16", "int32", "int64", "float32", "float64"]):
    numbers = (np.arange(128) % 7).astype(dtype)
    array = pa.array(numbers.tolist(), pa.from_numpy_dtype(dtype))
    shared = 0
    for offset in range(65):
        piece = array.slice(offset, 32)
        x = xt.from_arrow(pa.table({"x": piece}))["x"]
        shared += np.asarray(memoryview(x)).__array_interface__["data"][0] == (
            piece.buffers()[1].address + offset * dtype.itemsize)
        check(x, numbers[offset : offset + 32])
    assert shared == 1 + dtype.itemsize, shared  # wherever 64 bytes allow it, and only there
"""
    )


@pytest.mark.whole("starts a process")
def test_a_buffer_at_any_byte_is_safe_to_compute_with(run_python):
    # A memory-mapped IPC file or foreign memory need not even be aligned to the width of a value.
    run_python(
        _WALK
        + """
for dtype in map(np.dtype, ["int8", "int16", "int32", "int64", "float32", "float64"]):
    numbers = (np.arange(32) % 7).astype(dtype)
    for offset in range(65):
        buffer = pa.py_buffer(b"x" * offset + numbers.tobytes()).slice(offset)
        array = pa.Array.from_buffers(pa.from_numpy_dtype(dtype), 32, [None, buffer])
        check(xt.from_arrow(pa.table({"x": array}))["x"], numbers)
"""
    )


@pytest.mark.whole("starts a process")
def test_lists_at_any_offset_are_safe_to_compute_with(run_python):
    run_python(
        _WALK
        + """
lists = [[i, i + 1] if i % 3 else [i] for i in range(100)]
for list_type in (pa.list_(pa.int64()), pa.large_list(pa.int64())):
    array = pa.array(lists, list_type)
    for offset in range(65):
        for splits in (tf.int32, tf.int64):
            piece = array.slice(offset, 20)
            r = xt.from_arrow(pa.table({"x": piece}), row_splits_dtype=splits)["x"]
            assert r.to_list() == piece.to_pylist()
            assert tf.reduce_sum(r, 1).numpy().tolist() == [sum(v) for v in piece.to_pylist()]
            assert (r + r).to_list() == [[2 * a for a in v] for v in piece.to_pylist()]
            r.row_splits.numpy()
            tf.RaggedTensor.from_row_splits(r.values, r.row_splits, validate=True)
"""
    )


def test_a_table_read_from_ipc_bytes_is_safe_to_compute_with(run_python):
    run_python(
        _WALK
        + """
numbers = np.arange(32) % 5
table = pa.table({"a": pa.array([1], pa.int8()).take(pa.array([0] * 32)), "x": numbers,
                  "f": numbers.astype(np.float32)})
sink = pa.BufferOutputStream()
with pa.ipc.new_stream(sink, table.schema) as writer:
    writer.write_table(table)
for shift in range(0, 64, 4):
    data = pa.py_buffer(b"x" * shift + sink.getvalue().to_pybytes()).slice(shift)
    records = xt.from_arrow(pa.ipc.open_stream(data).read_all())
    check(records["x"], numbers)
    check(records["f"], numbers.astype(np.float32))
"""
    )
