"""Rows of different lengths in flat values: the same results as NumPy, pandas and RaggedTensor."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.authoring import (
    concat_rows,
    cut_rows,
    num_rows,
    reduce_rows,
    row_ids,
    row_splits_of,
    rows_spec,
    sizes_of,
    stack_rows,
    static_num_rows,
    take_rows,
    uncut_rows,
)

RUNS = {"eager": lambda f: f, "graph": tf.function}
LENGTHS = st.lists(st.integers(0, 4), max_size=6)
DTYPES = st.sampled_from([tf.int32, tf.int64])
COUNT = tf.TensorSpec([], tf.int64)


@xt.extension_type
class Interval:
    low: tf.Tensor
    high: tf.Tensor


def interval(rows):
    low = tf.reshape(tf.constant(rows, tf.float32), [-1])
    return Interval(low, low + 1.0)


def ragged(rows):
    return tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)


def records(rows):
    return xt.DenseStructuredTensor(
        [len(rows)], {"x": tf.constant(rows, tf.int32), "steps": ragged([[row] for row in rows])}
    )


def lists_of_records(rows):
    lengths = [int(row) % 3 for row in rows]
    flat = xt.DenseStructuredTensor([sum(lengths)], {"x": tf.range(sum(lengths))})
    return xt.RaggedStructuredTensor.from_row_splits(flat, np.cumsum([0, *lengths]))


# A value whose rows depend on numbers.
KINDS = {
    "tensor": lambda rows: tf.constant(rows, tf.int32),
    "matrix": lambda rows: tf.constant([[row, -row] for row in rows], tf.int32, [len(rows), 2]),
    "ragged tensor": lambda rows: ragged([[row] * (row % 3) for row in rows]),
    "declared type": interval,
    "records": records,
    "lists of records": lists_of_records,
    "CSRSparseTensor": lambda rows: xt.types.CSRSparseTensor.from_dense(
        np.array([[row % 2, row] for row in rows], np.float32).reshape(-1, 2)
    ),
}


def py(value):
    """Returns the rows of a value as Python data."""
    if isinstance(value, Interval):
        return list(zip(py(value.low), py(value.high), strict=True))
    if isinstance(value, xt.types.CSRSparseTensor):
        return value.to_dense().numpy().tolist()
    if isinstance(value, xt.StructuredTensor):
        return value.to_py()
    return value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy().tolist()


@given(LENGTHS, DTYPES)
def test_row_splits_are_the_sums_of_the_lengths(lengths, dtype):
    splits = row_splits_of(tf.constant(lengths, dtype, [len(lengths)]))
    assert splits.dtype == dtype
    assert splits.numpy().tolist() == np.cumsum([0, *lengths]).tolist()


def test_lengths_of_any_rank_are_counted_in_row_major_order():
    assert row_splits_of(tf.constant([[2, 0], [1, 3]])).numpy().tolist() == [0, 2, 2, 3, 6]
    assert row_splits_of(tf.constant(3)).numpy().tolist() == [0, 3]


ids_in_a_graph = tf.function(
    row_ids, input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None])]
)


@given(LENGTHS, DTYPES)
def test_row_ids_equal_repeat_of_numpy(lengths, dtype):
    splits = row_splits_of(tf.constant(lengths, dtype, [len(lengths)]))
    expected = np.repeat(np.arange(len(lengths)), lengths).tolist()
    ids = row_ids(splits, tf.zeros([sum(lengths)], tf.string))
    assert (ids.dtype, ids.numpy().tolist()) == (tf.int64, expected)
    in_graph = ids_in_a_graph(tf.cast(splits, tf.int64), tf.zeros([sum(lengths)]))
    assert in_graph.numpy().tolist() == expected


@given(LENGTHS, DTYPES)
def test_cut_rows_are_the_rows_of_a_ragged_tensor(lengths, dtype):
    values = tf.range(sum(lengths))
    splits = row_splits_of(tf.constant(lengths, dtype, [len(lengths)]))
    rows = cut_rows(values, splits)
    assert rows.row_splits.dtype == dtype
    assert (
        rows.to_list()
        == tf.RaggedTensor.from_row_lengths(values, lengths or [0])[: len(lengths)].to_list()
    )
    again, again_splits = uncut_rows(rows)
    assert again is rows.values
    assert again_splits.numpy().tolist() == splits.numpy().tolist()


def test_cut_rows_take_the_shape_of_a_batch():
    splits = tf.constant([0, 2, 2, 3, 6, 6, 7])
    rows = cut_rows(tf.range(7), splits, [2, 3])
    assert rows.shape.as_list() == [2, 3, None]
    assert rows.to_list() == [[[0, 1], [], [2]], [[3, 4, 5], [], [6]]]
    deep = cut_rows(tf.range(7), splits, [1, tf.constant(2), 3])
    assert deep.to_list() == [rows.to_list()]


def test_no_sizes_leave_the_values_as_they_are():
    values = tf.range(3)
    assert cut_rows(values, tf.constant([0, 3]), []) is values


def test_ragged_values_are_cut_by_splits_of_their_own_dtype():
    values = tf.RaggedTensor.from_row_lengths(tf.range(3), tf.constant([1, 2], tf.int64))
    rows = cut_rows(values, tf.constant([0, 0, 2], tf.int32))
    assert rows.to_list() == [[], [[0], [1, 2]]]
    assert {splits.dtype for splits in rows.nested_row_splits} == {tf.int64}


def test_records_are_cut_and_uncut():
    flat = xt.DenseStructuredTensor([3], {"x": [7, 8, 9]})
    rows = cut_rows(flat, tf.constant([0, 2, 3], tf.int64))
    assert isinstance(rows, xt.RaggedStructuredTensor)
    values, splits = uncut_rows(rows)
    assert values.to_py() == flat.to_py()
    assert splits.numpy().tolist() == [0, 2, 3]


def test_a_type_with_the_methods_is_cut_and_uncut():
    @xt.extension_type
    class Angle:
        degrees: tf.Tensor | tf.RaggedTensor

        def __tf_cut_rows__(self, row_splits):
            return Angle(cut_rows(self.degrees, row_splits))

        def __tf_uncut_rows__(self):
            rows = uncut_rows(self.degrees)
            return None if rows is None else (Angle(rows[0]), rows[1])

    flat = Angle([90.0, 45.0, 180.0])
    rows = cut_rows(flat, tf.constant([0, 2, 3]))
    assert rows.degrees.to_list() == [[90.0, 45.0], [180.0]]
    values, splits = uncut_rows(rows)
    assert values.degrees.numpy().tolist() == [90.0, 45.0, 180.0]
    assert splits.numpy().tolist() == [0, 2, 3]
    assert uncut_rows(flat) is None


@pytest.mark.parametrize("value", [tf.range(3), interval([1, 2])], ids=["tensor", "declared type"])
def test_a_value_without_ragged_rows_is_not_uncut(value):
    assert uncut_rows(value) is None


def test_sizes_are_integers_where_they_are_known():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def sizes(x):
        first, second = sizes_of(x.shape, tf.shape(x))
        assert second == 3
        assert tf.is_tensor(first)
        return first

    assert sizes(tf.zeros([2, 3])) == 2
    assert sizes_of(tf.TensorShape([]), tf.zeros([0], tf.int32)) == []


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_counted_taken_and_concatenated(kind, run):
    make = KINDS[kind]
    value, other = make([5, 0, 3, 7]), make([2, 4])
    rows = py(value)
    count = run(num_rows)(value)
    assert (count.dtype, int(count)) == (tf.int64, 4)
    assert static_num_rows(value) == 4
    for positions in ([3, 0, 0], []):
        taken = run(take_rows)(value, tf.constant(positions, tf.int64))
        assert type(taken) is type(value)
        assert py(taken) == [rows[i] for i in positions]
    joined = run(lambda *values: concat_rows(list(values)))(value, make([]), other)
    assert type(joined) is type(value)
    assert py(joined) == rows + py(other)
    both = run(lambda *values: stack_rows(list(values)))(value, value)
    assert type(both) is type(value)
    assert py(run(take_rows)(both, tf.constant(1))) == rows


def test_rows_of_two_types_are_not_concatenated():
    with pytest.raises(
        xt.errors.DTypeError, match=r"tf.concat: expected values of Interval.*, got"
    ):
        concat_rows([interval([1, 2]), tf.zeros([2])])


def test_the_number_of_rows_is_unknown_in_a_graph():
    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec(None)])
    def counts(x, y):
        assert static_num_rows(x) is None
        assert static_num_rows(y) is None
        assert static_num_rows(Interval(x, x)) is None
        return num_rows(x)

    assert counts(tf.zeros([3]), tf.zeros([2])) == 3


def test_a_spec_of_rows_has_any_number_of_rows():
    ragged_spec = tf.RaggedTensorSpec([3, None], tf.int32)
    assert rows_spec(ragged_spec, "Recipe").shape.as_list() == [None, None]
    spec = rows_spec(xt.spec_of(interval([1, 2])), "Recipe")
    assert spec == xt.spec_of(interval([1, 2])).unstacked().stacked(None)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (tf.TensorSpec([]), xt.errors.StructureError),
        (tf.OptionalSpec(tf.TensorSpec([])), xt.errors.ProtocolError),
    ],
    ids=["scalar", "not stackable"],
)
def test_a_spec_without_rows_is_an_error(spec, error):
    with pytest.raises(error, match=r"Recipe\.steps"):
        rows_spec(spec, "Recipe.steps")


REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@tf.function(input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None], tf.int64), COUNT])
def reduced_in_a_graph(values, ids, count):
    return {name: reduce_rows(values, ids, count, name) for name in REDUCTIONS}


@given(LENGTHS, st.lists(st.floats(-100, 100, width=16), min_size=24, max_size=24))
def test_reduced_rows_equal_those_of_numpy(lengths, numbers):
    ids = np.repeat(np.arange(len(lengths)), lengths)
    values = np.resize(np.array(numbers, np.float32), [len(ids), 2])
    in_graph = reduced_in_a_graph(values, ids, len(lengths))
    for name, reduction in REDUCTIONS.items():
        rows = [reduction(values[ids == i], 0) if n else [0, 0] for i, n in enumerate(lengths)]
        expected = np.reshape(rows, [len(lengths), 2])
        eager = reduce_rows(tf.constant(values), tf.constant(ids), len(lengths), name)
        np.testing.assert_allclose(eager, expected, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(in_graph[name], expected, rtol=1e-5, atol=1e-4)
    vector = reduce_rows(tf.constant(values[:, 0]), tf.constant(ids), len(lengths), "max")
    np.testing.assert_array_equal(
        vector, [max(values[ids == i, 0], default=0) for i in range(len(lengths))]
    )


@pytest.mark.parametrize("name", ["max", "min"])
def test_infinite_numbers_and_nan_are_extremes(name):
    rows = [[np.nan, 1], [-np.inf], [np.inf, np.inf], [np.inf, 2], [-np.inf, 2], [np.inf, np.nan]]
    values, ids = tf.concat(rows, 0), np.repeat(np.arange(len(rows)), list(map(len, rows)))
    found = reduce_rows(values, tf.constant(ids), tf.constant(len(rows)), name)
    np.testing.assert_array_equal(found, list(map(REDUCTIONS[name], rows)))


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_rows_of_many_short_floats_are_added_up(dtype):
    ids = np.repeat([0, 1], [5_000, 3])
    values = tf.fill([5_003], tf.constant(3.0, dtype))
    for name, reduction in (("sum", np.sum), ("mean", np.mean)):
        found = reduce_rows(values, tf.constant(ids), tf.constant(2), name)
        assert found.dtype == dtype
        expected = [reduction(np.full(n, 3.0)) for n in (5_000, 3)]
        np.testing.assert_array_equal(found, tf.cast(expected, dtype))


@pytest.mark.parametrize(
    ("values", "reduction", "text"),
    [
        (tf.zeros([1]), "median", "reduction: expected one of sum, mean, max, min, got 'median'"),
        (tf.constant([1]), "mean", "values: expected a floating-point tensor, got int32"),
        (tf.constant(["a"]), "sum", "values: expected a numeric tensor, got string"),
        (ragged([[1]]), "sum", "values: expected a numeric tensor, got RaggedTensor"),
        (tf.constant([1j]), "max", "values: expected a real tensor, got complex128"),
    ],
)
def test_what_is_not_reduced_is_an_error(values, reduction, text):
    with pytest.raises(xt.errors.DTypeError, match=text):
        reduce_rows(values, tf.constant([0]), tf.constant(1), reduction)


@pytest.mark.parametrize(("values", "ops"), [([0.5, 0.25], 1), ([0.5], 1)])
def test_rows_are_compared_with_those_of_another_value_when_a_graph_runs(values, ops):
    def error(received):
        return xt.errors.StructureError("weights", "one for each x", received, "Count them.")

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])], autograph=False)
    def weighted(x, weights):
        return x * xt.authoring.with_rows_of(weights, x, 1, error)

    graph = weighted.get_concrete_function().graph
    assert [op.type for op in graph.get_operations()].count("Assert") == ops
    x = tf.constant([1.0, 2.0])
    if len(values) == 2:
        assert weighted(x, tf.constant(values)).numpy().tolist() == [0.5, 0.5]
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match="weights: expected one for each"):
            weighted(x, tf.constant(values))


def test_rows_that_are_the_same_add_no_op():
    @tf.function(input_signature=[tf.TensorSpec([None])], autograph=False)
    def same(x):
        y = x * 2.0
        return xt.authoring.with_rows_of(y, x, 1, xt.errors.StructureError)

    types = {op.type for op in same.get_concrete_function().graph.get_operations()}
    assert not types & {"Assert", "Equal", "Shape"}
