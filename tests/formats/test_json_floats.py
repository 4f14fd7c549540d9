"""Floats as JSON text: orjson and Arrow write the same."""

import hypothesis.strategies as st
import numpy as np
import polars
import pyarrow as pa
import pytest
from hypothesis import given

import extensor as xt
from extensor._formats.json import text
from extensor._formats.json.text import float_texts

FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(scope="module", autouse=True)
def _installed():
    pytest.importorskip("orjson", reason="the extra `json` installs it")


def by_arrow(call):
    """Returns what a call returns where orjson is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_orjson", lambda: None)
        return call()


def lines(records, folder):
    path = folder / "records.jsonl"
    xt.write_json(records, path, allow_nan=True)
    return path.read_bytes()


@FLOATS
def test_numbers_of_any_size_have_the_text_that_arrow_gives(dtype):
    random = np.random.default_rng(0)
    size = np.dtype(dtype).itemsize
    bits = random.integers(0, 256, (20_000, size), np.uint8).view(dtype)[:, 0]
    near = (random.random(20_000) * 10.0 ** random.integers(-9, 19, 20_000)).astype(dtype)
    edges = np.array(
        [1e-5, 1e-6, 1e10, 1e13, 0.0, -0.0, 1, -1, 0.1, np.nan, np.inf, -np.inf], dtype
    )
    edges = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)])
    numbers = pa.array(np.concatenate([bits, near, np.round(near), edges]))
    assert float_texts(numbers).equals(by_arrow(lambda: float_texts(numbers)))


@FLOATS
@given(values=st.lists(st.none() | st.floats(width=32), max_size=5))
def test_nulls_stay_nulls(dtype, values):
    numbers = pa.array(values, pa.from_numpy_dtype(dtype)).slice(1)
    assert float_texts(numbers).equals(by_arrow(lambda: float_texts(numbers)))


@given(
    st.lists(st.lists(st.floats(width=32) | st.integers(-9, 9).map(float)), max_size=5),
    st.sampled_from([pa.float32(), pa.float64(), pa.float16()]),
    st.sampled_from([pa.list_, pa.large_list]),
)
def test_lists_have_the_same_text(tmp_path_factory, values, item, kind):
    values = [[v if abs(v) < 6e4 else 1.5 for v in each] for each in values]
    data = pa.table({"x": pa.array(values, kind(item)), "y": pa.array([1.0] * len(values), item)})
    records, folder = xt.from_arrow(data), tmp_path_factory.mktemp("lists")
    assert lines(records, folder) == by_arrow(lambda: lines(records, folder))


@pytest.mark.parametrize("size", [1, 4, 5, 8, 70])
def test_lists_of_lists_and_of_one_size_have_the_text_that_polars_writes(tmp_path, size):
    random = np.random.default_rng(size)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(3 * size)), size)
    pairs = pa.FixedSizeListArray.from_arrays(pa.array([0.5, 1, 2, 1e3, 5, 6], pa.float32()), 2)
    deep = pa.array([[[1.5], [2.5, 3]], [[4.25]], [[0.1, 0.2]]])
    data = pa.table({"pairs": pairs, "vectors": vectors, "deep": deep}).slice(1)
    polars.DataFrame(data).write_ndjson(tmp_path / "polars.jsonl")
    assert lines(xt.from_arrow(data), tmp_path) == (tmp_path / "polars.jsonl").read_bytes()


def test_a_number_that_is_not_finite_is_named(tmp_path):
    records = xt.DenseStructuredTensor([2], {"x": [[1.0, 2.0], [3.0, float("nan")]]})
    with pytest.raises(xt.errors.FormatError, match=r"x.*finite numbers.*nan"):
        xt.write_json(records, tmp_path / "x.jsonl")
