"""Dates, times, decimals and tensors share the memory of Arrow, as the table in docs says."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from tests.arrow.test_buffers import address, aligned

SHARED = [
    pa.date32(), pa.time32("ms"), pa.date64(), pa.time64("ns"),
    pa.timestamp("us"), pa.timestamp("s", "Asia/Tokyo"), pa.duration("ms"), pa.decimal64(18, 3),
]  # fmt: skip


def data(array):
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


@pytest.mark.parametrize("arrow", SHARED, ids=str)
def test_integers_with_a_unit_are_shared_both_ways(arrow):
    array = aligned(np.arange(256).astype(f"i{arrow.bit_width // 8}"), arrow)
    step = 512 // arrow.bit_width
    for piece in (array, array.slice(step, 5)):
        records = xt.from_arrow(pa.table({"x": piece}))
        assert address(records["x"]) == data(piece)
        assert xt.to_arrow(records).column(0).buffers()[1].address == data(piece)
    moved = xt.from_arrow(pa.table({"x": array.slice(1)}))["x"]
    assert address(moved) % 64 == 0
    assert moved.numpy().tolist() == list(range(1, 256))


@pytest.mark.parametrize("arrow", [pa.decimal128(38, 2), pa.decimal256(60, 2)], ids=str)
def test_decimals_of_many_digits_are_shared_both_ways(arrow):
    width = arrow.bit_width // 64
    numbers = np.zeros([64, width], np.int64)
    numbers[:, 0] = range(64)
    numbers[5] = -1
    array = pa.Array.from_buffers(arrow, 64, [None, aligned(numbers.reshape(-1)).buffers()[1]])
    for piece in (array, array.slice(8)):
        records = xt.from_arrow(pa.table({"x": piece}))
        assert address(records["x"]) == data(piece)
        assert xt.to_arrow(records).column(0).buffers()[1].address == data(piece)
        assert xt.to_arrow(records).column(0).equals(piece)
    assert xt.from_arrow(pa.table({"x": array}))["x"][5].numpy().tolist() == [-1] * width


def test_lists_that_follow_one_another_and_tensors_of_one_shape_share_their_values():
    values = aligned(np.arange(64))
    parts = [aligned(np.array(p, np.int32)).buffers()[1] for p in ([0, 3, 3], [3, 0, 61])]
    views = pa.Array.from_buffers(pa.list_view(pa.int64()), 3, [None, *parts], children=[values])
    tensors = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int64(), [2, 4]), pa.FixedSizeListArray.from_arrays(values, 8)
    )
    ragged = xt.from_arrow(pa.table({"x": views}))["x"]
    assert address(ragged.values) == data(values)
    assert ragged.row_lengths().numpy().tolist() == [3, 0, 61]
    dense = xt.from_arrow(pa.table({"x": tensors}))["x"]
    assert dense.shape == [8, 2, 4]
    assert address(dense) == data(values)


@pytest.mark.parametrize("digits", [18, 5])
def test_decimals_of_few_digits_are_their_integers(digits):
    makes = [pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256]
    for arrow in (make(digits, 2) for make in makes[digits > 9 :]):
        array = pa.array([125, -(10 ** (digits - 2)) + 1, 0]).cast(pa.decimal128(22, 0)).cast(arrow)
        numbers = xt.from_arrow(pa.table({"x": array}))["x"]
        assert numbers.dtype == tf.int64
        assert numbers.numpy().tolist() == [12500, 100 - 10**digits, 0]


TOO_SMALL = [pa.decimal32(5, 2), pa.decimal64(12, 0), pa.decimal128(18, 2), pa.decimal128(38, 2),
             pa.decimal256(40, 0)]  # fmt: skip


@pytest.mark.parametrize("arrow", TOO_SMALL, ids=str)
def test_decimals_of_too_many_digits_do_not_go_out(arrow):
    records = xt.from_arrow(pa.table({"x": pa.array([1], arrow)}))
    dtype = records["x"].dtype
    if records["x"].shape.rank == 2:
        updated = records.with_updates(x=tf.fill(records["x"].shape, dtype.max))
    elif arrow.precision == 18:
        updated = records.with_updates(x=[tf.constant(10**18, dtype)])
    else:
        updated = records.with_updates(x=[dtype.max])
    with pytest.raises(xt.errors.DTypeError, match="x: expected values that fit Arrow type dec"):
        xt.to_arrow(updated)


@pytest.mark.parametrize(
    ("values", "dtype", "arrow"),
    [
        ([1e300], tf.float64, pa.float32()),
        ([1e6], tf.float64, pa.float16()),
        ([-1e6], tf.float32, pa.float16()),
        ([4095], tf.int32, pa.float16()),
        ([100_000], tf.int32, pa.float16()),
        ([2**24 + 1], tf.int32, pa.float32()),
        ([2**53 + 1], tf.int64, pa.float64()),
        ([300], tf.int32, pa.int8()),
        ([1.5], tf.float32, pa.int32()),
        ([2**40], tf.int64, pa.date32()),
    ],
)
def test_a_number_that_does_not_fit_is_an_error(values, dtype, arrow):
    records = xt.DenseStructuredTensor([1], {"x": tf.constant(values, dtype)})
    with pytest.raises(xt.errors.DTypeError) as caught:
        xt.to_arrow(records, pa.schema({"x": arrow}))
    assert caught.value.path == "x"


def test_floats_may_lose_precision_and_what_is_not_finite_stays():
    numbers = [0.1, float("inf"), -float("inf"), float("nan"), 65504.0]
    records = xt.DenseStructuredTensor([5], {"x": tf.constant(numbers, tf.float64)})
    for arrow, dtype in ((pa.float32(), np.float32), (pa.float16(), np.float16)):
        column = xt.to_arrow(records, pa.schema({"x": arrow})).column(0)
        expected = np.array(numbers).astype(dtype)
        assert np.array_equal(column.to_numpy(), expected, equal_nan=True)
    exact = xt.DenseStructuredTensor([2], {"x": [2048, -4096]})
    assert xt.to_arrow(exact, pa.schema({"x": pa.float16()}))["x"].to_pylist() == [2048, -4096]
