"""Slices whose bounds and step are tensors of a graph are those of a list in Python."""

import functools
import itertools

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def lists(lengths):
    items = Dense([sum(lengths)], {"m": tf.range(sum(lengths))})
    return Ragged.from_row_lengths(items, tf.constant(lengths, tf.int64))


def dense(lengths):
    size = len(lengths)
    numbers = tf.range(size)
    return Dense([size], {
        "x": numbers,
        "pair": tf.stack([numbers, -numbers], axis=1),
        "tags": lists(lengths)["m"],
        "in": Dense([size], {"name": tf.strings.as_string(numbers)}),
        "steps": lists(lengths),
        "grams": xt.types.MaskedTensor(numbers, numbers % 2 == 0),
    })  # fmt: skip


def deep(lengths):
    return Ragged.from_row_splits(lists(lengths), [0, len(lengths) // 2, len(lengths)])


MAKES = {"dense": dense, "ragged": lists, "deep": deep}
KEYS = {
    "records": (lambda r, part: r[part], lambda rows, part: rows[part]),
    "in rows": (lambda r, part: r[:, part], lambda rows, part: [row[part] for row in rows]),
}
NUMBERS = tf.TensorSpec([3], tf.int32)


def opened(make):
    spec = xt.spec_of(make([2, 1]))
    return xt.authoring.stacked_spec(xt.authoring.unstacked_spec(spec, "r"), None, "r")


def part_of(numbers, is_given):
    """Returns a slice of a begin, an end and a step; of None for each that is not given."""
    return slice(*(n if each else None for n, each in zip(numbers, is_given, strict=True)))


@functools.cache
def traced(make, key, is_given):
    """Returns a function that slices by tensors."""

    def taken(records, numbers):
        return KEYS[key][0](records, part_of(tf.unstack(numbers), is_given))

    return tf.function(taken, input_signature=[opened(MAKES[make]), NUMBERS], autograph=False)


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize(
    "case",
    [("dense", "records"), *itertools.product(["ragged", "deep"], KEYS)],
    ids="-".join,
)
@given(
    lengths=st.lists(st.integers(0, 3), max_size=4),
    bounds=st.tuples(st.integers(-6, 6), st.integers(-6, 6)),
    step=st.sampled_from([-3, -2, -1, 1, 2, 3]),
    is_given=st.sampled_from([(1, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 0, 0)]),
)
@settings(deadline=None)
def test_a_slice_by_tensors_is_that_of_a_list(case, lengths, bounds, step, is_given):
    make, key = case
    records = MAKES[make](lengths)
    numbers = (*bounds, step)
    part = part_of(numbers, is_given)
    expected = KEYS[key][1](records.to_py(), part)
    assert traced(make, key, is_given)(records, numbers).to_py() == expected
    assert KEYS[key][0](records, part).to_py() == expected


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("numbers", [(-1, -9, -1), (0, 9, 2), (9, 0, -2), (1, 3, 1), (3, 1, 1)])
def test_bounds_and_step_are_tensors(make, numbers):
    records = MAKES[make]([2, 0, 3, 1])
    taken = traced(make, "records", (1, 1, 1))(records, numbers)
    assert taken.to_py() == records.to_py()[slice(*numbers)]


@pytest.mark.parametrize("part", [
    slice(1, 2**63 - 1), slice(-(10**20), 10**20), slice(2**63 - 1, None, -1),
    slice(None, -(2**63), -1), slice(-(10**20), None, -1),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_bounds_of_any_size_are_those_of_a_list(part, dtype):
    rows = [[1, 2, 3], [], [4]]
    records = Ragged.from_row_splits(Dense([4], {"x": [1, 2, 3, 4]}), tf.constant([0, 3, 3, 4]))
    records = records.with_row_splits_dtype(dtype)
    for run in (lambda f: f, tf.function):
        assert run(lambda: records["x", :, part])().to_list() == [row[part] for row in rows]
        assert run(lambda: records[part]["x"])().to_list() == rows[part]
        assert run(lambda: records.values[part]["x"])().numpy().tolist() == [1, 2, 3, 4][part]
