"""Statistics of numbers and strings: against NumPy and collections.Counter over all values."""

import fractions
import math
import statistics
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensor._describe.sketches import Numbers, Words

FLOATS = st.lists(st.floats(width=64), max_size=300)
# Wide enough to be exact in a float64, and narrow enough for sums of squares.
INTEGERS = st.lists(st.integers(-(2**40), 2**40), max_size=300)
STRINGS = st.lists(st.text(max_size=5), max_size=300)


def of(values, arrow, make=Numbers):
    found = make()
    found.add(pa.array(values, arrow))
    return found


@given(FLOATS)
def test_floats_have_the_statistics_of_numpy(values):
    found = of(values, pa.float64())
    array = np.array(values, np.float64)
    finite = array[np.isfinite(array)]
    assert found.count == len(finite)
    assert found.nans == np.isnan(array).sum()
    assert found.infinities == np.isinf(array).sum()
    assert found.zeros == (array == 0).sum()
    if len(finite):
        assert (found.min, found.max) == (finite.min(), finite.max())
        exact = float(statistics.median(map(fractions.Fraction, finite.tolist())))
        assert found.median == pytest.approx(exact, rel=1e-12)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = finite.mean(), finite.std()
        if np.isfinite(mean) and np.isfinite(std):
            np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
            np.testing.assert_allclose(found.std, std, rtol=1e-12)


@given(INTEGERS, st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.9, 1.0]))
def test_quantiles_of_few_numbers_are_those_of_numpy(values, rank):
    found = of(values, pa.int64())
    assert found.rank_error == 0.0
    if values:
        assert found.quantile(rank) == np.quantile(values, rank, method="inverted_cdf")
        assert found.median == pytest.approx(np.median(np.array(values, float)), rel=1e-12)
    else:
        assert math.isnan(found.quantile(rank))
        assert math.isnan(found.median)


def test_quantiles_of_many_numbers_are_within_the_error():
    values = np.random.default_rng(5).lognormal(size=300_000)
    found = Numbers()
    for part in np.array_split(values, 37):
        found.add(pa.array(part))
    assert 0 < found.rank_error < 0.005
    values.sort()
    for rank in np.linspace(0, 1, 21):
        true = np.searchsorted(values, found.quantile(rank), "right") / len(values)
        # Three times what is exceeded once in 100 times: never.
        assert abs(true - rank) < 3 * found.rank_error


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64()])
def test_the_ends_of_integers_are_exact(kind):
    limits = np.iinfo(kind.to_pandas_dtype())
    low, high = int(limits.min), int(limits.max)
    found = of([low, high, high - 1], kind)
    assert (found.min, found.max) == (low, high)


@given(INTEGERS, INTEGERS)
def test_merged_numbers_are_those_of_the_whole(one, other):
    merged, whole = of(one, pa.int64()), of(one + other, pa.int64())
    merged.merge(of(other, pa.int64()))
    assert (merged.count, merged.zeros) == (whole.count, whole.zeros)
    assert (merged.min, merged.max) == (whole.min, whole.max)
    if whole.count:
        np.testing.assert_allclose(merged.mean, np.mean(one + other), rtol=1e-9, atol=1e-3)
        np.testing.assert_allclose(merged.std, np.std(one + other), rtol=1e-9, atol=1e-3)
        for rank in (0.0, 0.25, 0.5, 1.0):
            assert merged.quantile(rank) == whole.quantile(rank)  # few numbers: exact


def test_merged_sketches_are_within_the_error_of_the_whole():
    rng = np.random.default_rng(1)
    parts = [rng.normal(i, 1, 50_000) for i in range(4)]
    merged = of(parts[0], pa.float64())
    for part in parts[1:]:
        merged.merge(of(part, pa.float64()))
    whole = np.sort(np.concatenate(parts))
    for rank in (0.01, 0.5, 0.99):
        true = np.searchsorted(whole, merged.quantile(rank), "right") / len(whole)
        assert abs(true - rank) < 3 * merged.rank_error


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=300))
def test_the_bars_of_a_histogram_hold_all_numbers(values):
    found = of(values, pa.int64())
    edges = found.histogram_edges()
    shares = found.histogram(edges)
    assert len(shares) == len(edges) - 1
    np.testing.assert_allclose(shares.sum(), 1)
    inner = np.array([-np.inf, *edges[1:-1], np.inf])
    expected, _ = np.histogram(values, inner)
    np.testing.assert_allclose(shares, expected / len(values), atol=1e-12)


def test_bars_of_integers_hold_the_same_number_of_integers():
    found = of(list(range(61)) * 3, pa.int64())
    edges = found.histogram_edges()
    assert set(np.diff(edges)) == {4.0}
    np.testing.assert_allclose(found.histogram(edges)[:-1], 4 / 61)


@pytest.mark.parametrize(
    "values", [[1e308, -1e308], [5e-324, 0.0], [1.0], [1e300, np.nextafter(1e300, 2e300)]]
)
def test_extreme_numbers_have_a_histogram(values):
    found = of(values, pa.float64())
    shares = found.histogram(found.histogram_edges())
    np.testing.assert_allclose(shares.sum(), 1)


@given(STRINGS)
def test_strings_are_counted_as_by_a_counter(values):
    found = of(values, pa.string(), Words)
    counter = Counter(values)
    assert found.count == len(values)
    assert found.unique == len(counter)
    assert found.error == 0
    assert dict(found.top()) == counter
    if values:
        assert found.lengths.max == max(len(value.encode()) for value in values)


@given(STRINGS, STRINGS)
def test_merged_strings_are_those_of_the_whole(one, other):
    merged = of(one, pa.string(), Words)
    merged.merge(of(other, pa.string(), Words))
    assert dict(merged.top()) == Counter(one + other)
    assert merged.unique == len(set(one + other))


def test_frequent_strings_among_many_are_found_within_the_error():
    rng = np.random.default_rng(3)
    values = [f"common {i}" for i in rng.integers(0, 5, 100_000)]
    values += [f"rare {i}" for i in rng.integers(0, 1_000_000, 100_000)]
    rng.shuffle(values)
    found = Words()
    for start in range(0, len(values), 10_000):
        found.add(pa.array(values[start : start + 10_000]))
    counter = Counter(values)
    assert 0 < found.error <= 0.001 * len(values)
    assert {word for word, _ in found.top(5)} == {word for word, _ in counter.most_common(5)}
    for word, count in found.top(5):
        assert abs(count - counter[word]) <= found.error
    assert found.unique == pytest.approx(len(counter), rel=0.08)


def test_no_more_strings_are_different_than_there_are():
    uniques = [of(map(str, range(n)), pa.string(), Words).unique for n in range(4_000, 4_400, 50)]
    assert all(found <= n for found, n in zip(uniques, range(4_000, 4_400, 50), strict=True))
    assert any(found < n for found, n in zip(uniques, range(4_000, 4_400, 50), strict=True))


def test_long_strings_and_bytes_that_are_no_text_are_counted():
    found = of([b"\xff\x00", b"x" * 5_000_000, b"x" * 6_000_000], pa.binary(), Words)
    assert found.lengths.max == 6_000_000
    assert dict(found.top()) == {"\\xff\x00": 1, "x" * 200 + "...": 2}
