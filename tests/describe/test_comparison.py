"""What drifted between two descriptions: against the distances of whole data."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt

NUMBERS = st.lists(st.integers(-20, 20), min_size=1, max_size=200)


def drift_of(one, other, **arguments):
    first, second = (xt.data.describe(pa.table({"x": values})) for values in (one, other))
    [drift] = first.compare(second, **arguments).drifts
    return drift


def distance(one, other):
    """Returns the Kolmogorov-Smirnov distance of all numbers."""
    points = np.union1d(one, other)
    shares = [np.searchsorted(np.sort(x), points, "right") / len(x) for x in (one, other)]
    return np.abs(shares[0] - shares[1]).max()


@given(NUMBERS, NUMBERS)
def test_numbers_are_compared_by_the_kolmogorov_smirnov_distance(one, other):
    drift = drift_of(one, other)
    np.testing.assert_allclose(drift.distance, distance(one, other), atol=1e-12)
    if drift.distance:
        assert drift.statistic == "Kolmogorov-Smirnov"


def test_many_numbers_are_compared_within_the_error():
    rng = np.random.default_rng(2)
    one, other = rng.normal(0, 1, 100_000), rng.normal(0.5, 1, 70_000)
    drift = drift_of(one, other)
    assert drift.distance == pytest.approx(distance(one, other), abs=0.02)
    assert drift.drifted
    assert not drift_of(one, rng.normal(0, 1, 70_000)).drifted


@given(
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=200),
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=200),
)
def test_strings_are_compared_by_the_l_infinity_distance(one, other):
    counts = Counter(one), Counter(other)
    expected = max(abs(counts[0][w] / len(one) - counts[1][w] / len(other)) for w in "abcdef")
    drift = drift_of(one, other)
    np.testing.assert_allclose(drift.distance, expected, atol=1e-12)


def test_lists_are_compared_by_their_lengths():
    one, other = ([[0] * (i % n) for i in range(500)] for n in (4, 8))
    first, second = (xt.data.describe(pa.table({"x": values})) for values in (one, other))
    lengths = [[len(each) for each in values] for values in (one, other)]
    [drift, items] = first.compare(second).drifts
    assert (drift.path, drift.drifted) == ("x", True)
    assert drift.distance == pytest.approx(distance(*lengths))
    assert (items.path, items.distance) == ("x[*]", 0.0)


def test_nulls_and_nan_are_drift_too():
    values = [1.0, 2.0] * 200
    drift = drift_of(values, [None, 2.0, 1.0, None] * 100)
    assert (drift.statistic, drift.distance, drift.drifted) == ("nulls", 0.5, True)
    assert drift.reason == "0.0% and 50.0% nulls"
    drift = drift_of(values, [float("nan"), 2.0, 1.0, float("nan")] * 100)
    assert (drift.distance, drift.reason) == (0.5, "shares of NaN and infinities")
    for count in range(4):  # numbers that are left
        drift = drift_of(values, [1.0, 2.0, 1.0][:count] + [float("nan")] * 400)
        assert (drift.distance, drift.drifted) == (400 / (400 + count), True)
    assert not drift_of([1.0], [float("nan")]).drifted, "one value may be NaN by chance"


def test_paths_and_types_that_differ_are_drift():
    one = xt.data.describe(pa.table({"a": [1], "b": [1], "c": [{"d": 1}], "e": [None]}))
    other = xt.data.describe(pa.table({"b": ["x"], "c": [{"z": 1}], "e": [3], "f": [1]}))
    found = {drift.path: drift for drift in one.compare(other).drifts}
    reasons = {path: drift.reason for path, drift in found.items() if drift.drifted}
    assert reasons == {
        "a": "only in the first",
        "b": "int64 and string",
        "c.d": "only in the first",
        "c.z": "only in the second",
        "f": "only in the second",
    }


def test_small_samples_do_not_drift_by_chance():
    rng = np.random.default_rng(7)
    found = [drift_of(rng.normal(size=40), rng.normal(size=30)) for _ in range(100)]
    assert all(drift.limit > 0.3 for drift in found)
    assert sum(drift.drifted for drift in found) <= 3  # one is expected
    assert drift_of(rng.normal(size=40), rng.normal(9, 1, size=30)).drifted


def test_thresholds_are_for_all_paths_or_for_one():
    one, other = (
        xt.data.describe(pa.table({"x": [v] * 500 + [2] * 500, "y": [v] * 500 + [2] * 500}))
        for v in (1, 2)
    )
    assert one.compare(other).drifted == ["x", "y"]
    assert one.compare(other, threshold=0.6).drifted == []
    assert one.compare(other, thresholds={"y": 0.6}).drifted == ["x"]
    with pytest.raises(xt.errors.FieldError, match="thresholds, z"):
        one.compare(other, thresholds={"z": 0.6})
    for threshold in (-1, 2, "a", None):
        with pytest.raises(xt.errors.DTypeError, match="threshold"):
            one.compare(other, threshold)
    with pytest.raises(xt.errors.DTypeError, match="Description"):
        one.compare("other")
    assert repr(one.compare(other)) == "<Comparison: 2 of 2 paths drifted>"


TIMES = [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")]


@given(
    st.lists(st.integers(0, 2**31), min_size=1, max_size=50),
    st.lists(st.integers(0, 2**31), min_size=1, max_size=50),
    st.sampled_from(TIMES),
    st.sampled_from(TIMES),
)
def test_times_of_different_units_are_compared_as_times(one, other, first, second):
    seconds = [pa.array(values, pa.timestamp("s")) for values in (one, other)]
    drift = drift_of(seconds[0].cast(first), seconds[1].cast(second))
    np.testing.assert_allclose(drift.distance, distance(one, other), atol=1e-12)


def test_dates_are_times_and_durations_have_units():
    days = pa.array([*range(50)] * 20, pa.date32())
    assert drift_of(days, days.cast(pa.timestamp("us"))).distance == 0
    assert drift_of(days.cast(pa.date64()), days).distance == 0
    seconds = pa.array([*range(50)], pa.duration("s"))
    drift = drift_of(seconds.cast(pa.duration("ns")), seconds)
    assert (drift.distance, drift.reason) == (0, "medians 0:00:24.500000 and 0:00:24.500000")


def test_the_page_has_the_bars_of_both_in_one_unit():
    days = pa.array([*range(50)] * 20, pa.date32())
    descriptions = [xt.data.describe(pa.table({"x": x})) for x in (days, days.cast(TIMES[1]))]
    page = descriptions[0].compare(descriptions[1])._repr_html_()
    heights = [re.findall(rf'"{name}" .*?height="(.*?)"', page) for name in ("one", "two")]
    assert heights[0] == heights[1]
    assert len(heights[0]) > 5


@pytest.mark.parametrize("other", [pa.int64(), pa.duration("s")])
def test_a_time_and_another_number_are_of_different_types(other):
    times = pa.array([1, 2, 3], pa.timestamp("s"))
    drift = drift_of(times, times.cast(pa.int64()).cast(other))
    assert (drift.statistic, drift.reason) == ("type", f"timestamp[s] and {other}")
