"""DimensionAlignments from ragged batches, and applied to records and to masked values."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.types import DimensionAlignment, MaskedTensor

RUNS = {"eager": lambda f: f, "graph": tf.function}
each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@st.composite
def ragged_batches(draw, several):
    """Lists of the target, or of the targets, of each source, and the numbers of targets."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    rows = []
    for count in counts:
        target = st.integers(0, count - 1)
        rows.append(draw(st.lists(st.lists(target, max_size=3) if several else target, max_size=4)))
    return rows, counts


def parts(alignment):
    names = ("source", "target", "num_sources", "num_targets", "num_pairs")
    return {name: getattr(alignment, name).numpy().tolist() for name in names}


@each_run
@given(case=ragged_batches(several=False))
def test_an_index_of_a_ragged_batch(run, case):
    rows, counts = case
    target = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    batch = run(DimensionAlignment.from_index)(target, tf.constant(counts))
    singles = [DimensionAlignment.from_index(row, n) for row, n in zip(rows, counts, strict=True)]
    assert parts(batch) == parts(DimensionAlignment.batch(singles))


@each_run
@given(case=ragged_batches(several=True))
def test_the_targets_of_a_ragged_batch(run, case):
    rows, counts = case
    targets = tf.ragged.constant(rows, tf.int64, ragged_rank=2)
    batch = run(DimensionAlignment.from_ragged)(targets, tf.constant(counts))
    assert batch.to_ragged().to_list() == [[sorted(set(row)) for row in each] for each in rows]
    assert batch.num_targets.numpy().tolist() == counts
    same_count = DimensionAlignment.from_ragged(targets, 3)
    assert same_count.num_targets.numpy().tolist() == [3] * len(rows)


SPEAKERS = DimensionAlignment.from_index([0, 0, 2, 0], num_targets=3)
RECORDS = xt.DenseStructuredTensor(
    [4],
    {
        "word": ["hi", "there", "hello", "bye"],
        "score": MaskedTensor([1.0, 2.0, 3.0, 4.0], [True, False, True, True]),
        "letters": tf.ragged.constant([[1], [], [2, 3], [4]]),
    },
)


@each_run
def test_records_are_grouped_as_python_groups_them(run):
    rows = RECORDS.to_py(text=False)
    found = run(SPEAKERS.apply)(RECORDS)
    assert found.to_py(text=False) == [[rows[0], rows[1], rows[3]], [], [rows[2]]]
    one_each = DimensionAlignment.from_index([2, 0, 3, 1], 4)
    found = run(lambda records: one_each.apply(records, "only"))(RECORDS)
    assert found.to_py(text=False) == [rows[1], rows[3], rows[0], rows[2]]


@each_run
def test_records_of_a_batch_are_grouped_in_each_alignment(run):
    short = DimensionAlignment.from_index([0], 1)
    both = DimensionAlignment.batch([SPEAKERS, short])
    records = xt.authoring.cut_rows(tf.gather(RECORDS, [0, 1, 2, 3, 1]), tf.constant([0, 4, 5]))
    rows = RECORDS.to_py()
    found = run(both.apply)(records)
    assert found.to_py() == [[[rows[0], rows[1], rows[3]], [], [rows[2]]], [[rows[1]]]]


REDUCTIONS = {"sum": np.ma.sum, "mean": np.ma.mean, "max": np.ma.max, "min": np.ma.min}


@each_run
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("of_rows", [False, True], ids=["numbers", "rows"])
def test_masked_values_are_reduced_as_by_numpy_ma(run, name, of_rows):
    values = np.arange(1.0, 9.0).reshape(4, 2)
    mask = np.array([[True, False], [False, True], [True, True], [False, False]])
    if of_rows:
        mask = np.repeat(mask[:, :1], 2, 1)
    x = MaskedTensor(values, mask[:, 0] if of_rows else mask)
    array = np.ma.array(values, mask=~mask)
    speakers = DimensionAlignment.from_index([0, 0, 1, 0], 2)
    found = run(lambda x: speakers.apply(x, name))(x)
    want = [REDUCTIONS[name](array[rows], axis=0) for rows in ([0, 1, 3], [2])]
    assert found.to_py() == [np.ma.filled(row.astype(object), None).tolist() for row in want]


def test_masked_values_are_grouped_with_their_mask():
    x = MaskedTensor([1.0, 2.0, 3.0, 4.0], [True, False, False, True])
    assert SPEAKERS.apply(x).to_py() == [[1.0, None, 4.0], [], [None]]
    assert SPEAKERS.apply(x, "sum").to_py() == [5.0, 0.0, None]
    assert SPEAKERS.apply(x, "max").to_py() == [4.0, None, None]
    both = DimensionAlignment.batch([SPEAKERS, DimensionAlignment.identity(1)])
    lists = MaskedTensor(
        tf.ragged.constant([[1.0, 2.0, 3.0, 4.0], [5.0]]),
        tf.ragged.constant([[True, False, False, True], [True]]),
    )
    assert both.apply(lists).to_py() == [[[1.0, None, 4.0], [], [None]], [[5.0]]]
    assert both.apply(lists, "sum").to_py() == [[5.0, 0.0, None], [5.0]]


def test_records_are_not_reduced():
    with pytest.raises(xt.errors.DTypeError, match=r"tf\.reduce_sum: .*Use one of the fields"):
        SPEAKERS.apply(RECORDS, "sum")


def test_records_of_another_batch_are_an_error():
    both = DimensionAlignment.batch([SPEAKERS, DimensionAlignment.identity(1)])
    records = xt.authoring.cut_rows(RECORDS, tf.constant([0, 3, 4]))
    with pytest.raises(xt.errors.StructureError, match=r"expected \[4, 1\] values, .*got \[3, 1\]"):
        both.apply(records)
