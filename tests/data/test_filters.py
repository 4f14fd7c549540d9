"""Streams of Parquet files with `filters=` have the records that `read_parquet` has."""

import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, FieldError, StructureError
from tests.files.range_server import RangeServer

ROWS = [
    {"n": n, "x": None if n % 7 == 0 else n / 2, "t": f"text {n % 5}", "l": [n] * (n % 3)}
    for n in range(60)
]
TABLE = pa.Table.from_pylist(ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filtered")
    for k in range(3):
        pq.write_table(TABLE.slice(20 * k, 20), folder / f"{k}.parquet", row_group_size=6)
    return folder


def numbers(dataset):
    return [n for batch in dataset for n in batch["n"].numpy().tolist()]


conditions = st.one_of(
    st.tuples(st.just("n"), st.sampled_from(["<", ">=", "!="]), st.integers(-1, 61)),
    st.tuples(st.just("t"), st.sampled_from(["=", "!="]), st.sampled_from(["text 1", "text 9"])),
    st.tuples(st.just("x"), st.just(">"), st.sampled_from([0.0, 3.5, 20.0])),
)
filters = st.lists(conditions, min_size=1, max_size=2) | st.lists(
    st.lists(conditions, min_size=1, max_size=2), min_size=1, max_size=2
)


@given(filters=filters, size=st.integers(1, 9), shuffled=st.booleans(), count=st.integers(1, 4))
def test_all_passes_have_the_filtered_records(folder, filters, size, shuffled, count):
    expected = xt.read_parquet(folder, ["n"], filters=filters)["n"].numpy().tolist()
    shuffle = xt.data.Shuffle(seed=1, window=10) if shuffled else None
    words = {"columns": ["n"], "filters": filters, "shuffle": shuffle}
    dataset = xt.data.parquet(folder, size, **words)
    found = numbers(dataset)
    assert (sorted(found) if shuffled else found) == expected
    assert dataset.cardinality() == -(-len(expected) // size)
    shards = [xt.data.parquet(folder, size, shard=(i, count), **words) for i in range(count)]
    passes = [list(shard) for shard in shards]
    assert [shard.cardinality() for shard in shards] == list(map(len, passes))
    assert sorted(n for batches in passes for n in numbers(batches)) == expected
    seen, states = [], []
    for i, batches in enumerate(passes):
        steps = min(i, len(batches))
        seen += numbers(batches[:steps])
        shard = xt.data.parquet(folder, size, shard=(i, count), **words)
        states.append(xt.data.state(shard, steps))
    for i in range(2):
        seen += numbers(xt.data.parquet(folder, size, shard=(i, 2), state=states, **words))
    assert sorted(seen) == expected
    step = dataset.cardinality().numpy() // 2
    state = xt.data.state(xt.data.parquet(folder, size, **words), int(step))
    assert numbers(xt.data.parquet(folder, size, state=state, **words)) == found[step * size :]


def test_a_state_of_another_filter_is_an_error(folder):
    """It was taken where both leave as many records of each row group."""
    evens, odds = ([("n", "in", list(range(i, 60, 2)))] for i in (0, 1))
    state = xt.data.state(xt.data.parquet(folder, 4, ["n"], filters=evens), 2)
    rest = xt.data.parquet(folder, 4, ["n"], filters=evens, state=state)
    assert numbers(rest) == list(range(16, 60, 2))
    for other in (state, [state]):
        with pytest.raises(StructureError, match=r"^state.*, digest: expected"):
            xt.data.parquet(folder, 4, ["n"], filters=odds, state=other)


def test_the_condition_holds_for_the_records_of_each_row_group(tmp_path):
    """pyarrow reads row groups 3, 6, 9 and 12 in another order."""
    pq.write_table(pa.table({"n": range(39)}), tmp_path / "it.parquet", row_group_size=3)
    words = {"columns": ["n"], "filters": (pc.field("n") != 9) & (pc.field("n") != 37)}
    expected = [n for n in range(39) if n not in (9, 37)]
    shards = [xt.data.parquet(tmp_path, 4, shard=(i, 3), **words) for i in range(3)]
    assert [numbers(shard) for shard in shards] == [
        [n for n in expected if n // 3 % 3 == i] for i in range(3)
    ]
    found = xt.read_parquet(tmp_path, row_groups=[3, 6, 9, 12], **words)
    assert found["n"].numpy().tolist() == [n for n in expected if n // 3 in (3, 6, 9, 12)]
    ends = {
        **words,
        "filters": [[("n", "<", 4)], [("n", ">", 15), ("n", "<", 22)], [("n", ">", 34)]],
    }
    found = xt.read_parquet(tmp_path, **ends)["n"].numpy().tolist()
    assert found == [n for n in range(39) if n < 4 or 15 < n < 22 or n > 34]


def test_the_filter_may_be_of_columns_that_are_not_read(folder):
    dataset = xt.data.parquet(
        folder, 4, columns=["l"], filters=(pc.field("t") == "text 1") & (pc.field("n") > 30)
    )
    expected = [row["l"] for row in ROWS if row["t"] == "text 1" and row["n"] > 30]
    assert [row for batch in dataset for row in batch["l"].to_list()] == expected


def test_nulls_are_those_of_the_filtered_records(folder):
    filtered = xt.data.parquet(folder, 4, ["x"], nulls="auto", filters=[("x", ">", 1.0)])
    assert filtered.element_spec == xt.DenseStructuredTensorSpec(
        [None], {"x": tf.TensorSpec([None], tf.float64)}
    )
    whole = xt.data.parquet(folder, 4, ["x"], nulls="auto", filters=[("n", ">", 1)])
    assert not filtered.element_spec.is_compatible_with(whole.element_spec)


@pytest.mark.whole("starts servers")
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")
@pytest.mark.parametrize("given", [[("n", ">", 30)], [[("n", ">", 55)], [("t", "=", "text 1")]]])
def test_workers_of_the_service_filter_too(folder, given):
    dataset = xt.data.parquet(folder, 4, filters=given, nulls={"x": "mask"}, shard="service")
    server = tf.data.experimental.service.DispatchServer()
    address = server.target.split("://")[1]
    config = tf.data.experimental.service.WorkerConfig(dispatcher_address=address)
    worker = tf.data.experimental.service.WorkerServer(config)
    served = dataset.apply(
        tf.data.experimental.service.distribute("distributed_epoch", server.target)
    )
    expected = xt.read_parquet(folder, ["n"], filters=given)["n"].numpy().tolist()
    assert sorted(numbers(served)) == expected
    del worker


def test_row_groups_that_cannot_match_are_not_read(folder):
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with RangeServer(files).running() as server:
        words = {"columns": ["n"], "filters": [("n", "<", 6)]}
        dataset = xt.data.parquet(f"{server.url}/0.parquet", 3, **words)
        assert numbers(dataset) == list(range(6))
        server.requests.clear()
        list(dataset)
        # The column of the filter, and the records: no request for the other row groups.
        *_, last = server.requests
        metadata = pq.read_metadata(folder / "0.parquet")
        chunk = metadata.row_group(0).column(0)
        start = chunk.dictionary_page_offset
        assert last == ("GET", f"bytes={start}-{start + chunk.total_compressed_size - 1}")


BAD = {
    "a list": ([("l", "=", [1])], DTypeError, "filters"),
    "no such column": ([("y", "=", 1)], FieldError, "y"),
    "another type": ([("n", "=", "text")], DTypeError, "filters"),
    "no filter": ([], DTypeError, "filters"),
    "a word": ("n > 1", DTypeError, "filters"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_filters_are_the_errors_of_read_parquet(folder, case):
    given, error, match = BAD[case]
    for read in (xt.read_parquet, lambda path, **words: xt.data.parquet(path, 4, **words)):
        with pytest.raises(error, match=match):
            read(folder, filters=given, nulls="mask")


@pytest.mark.parametrize(
    ("types", "values", "condition", "expected"),
    [
        ((pa.int32(), pa.int64()), ([1, 2], [2**40, 1]), (">", 2**35), [2**40]),
        ((pa.int64(), pa.int32()), ([2**40, 1], [1, 2]), ("<", 2), [1, 1]),
        ((pa.float32(), pa.float64()), ([0.5], [0.1, 0.2]), ("=", 0.1), [0.1]),
        ((pa.int64(), pa.float64()), ([1, 2], [1.5, 2.5]), (">=", 2), [2, 2.5]),
        ((pa.timestamp("ms"), pa.timestamp("us")), ([1], [1500, 1]), (">", "1 ms"), [1500]),
    ],
)
def test_a_condition_compares_the_values_of_files_of_several_types(
    tmp_path, types, values, condition, expected
):
    """The column was taken for one of the type that the first file has."""
    for i, (arrow, own) in enumerate(zip(types, values, strict=True)):
        table = pa.table({"n": own, "x": pa.array(own, arrow)})
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=1)
    operator, value = condition
    value = datetime.datetime(1970, 1, 1, 0, 0, 0, 1000) if value == "1 ms" else value
    words = {"schema": pa.schema({"n": pa.float64()}), "filters": [("x", operator, value)]}
    assert xt.read_parquet(tmp_path, **words)["n"].numpy().tolist() == expected
    assert numbers(xt.data.parquet(tmp_path, 2, **words)) == expected


def test_a_column_that_the_first_file_does_not_have_is_null_in_a_condition(tmp_path):
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"n": [3, 4], "x": [5, 6]}), tmp_path / "1.parquet")
    schema = pa.schema({"n": pa.int64(), "x": pa.int64()})
    words = {"schema": schema, "nulls": "auto", "filters": [("x", ">", 5)]}
    assert xt.read_parquet(tmp_path, **words).to_py() == [{"n": 4, "x": 6}]
    assert numbers(xt.data.parquet(tmp_path, 2, **words)) == [4]


def test_a_number_that_no_type_holds_is_an_error_of_the_condition(folder):
    with pytest.raises(DTypeError, match=r"filters: expected a list of conditions .*'<', 1180591"):
        xt.read_parquet(folder, filters=[("n", "<", 2**70)])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ([("h", "=", 5)], [1]),
        ([("h", ">", 2**63), ("n", ">", 1)], [2]),
        ([("h", "in", [5, 2**64 - 1])], [1, 2]),
        ([("h", "not in", {7})], [1, 2]),
        ([("s.h", "<", 6)], [1]),
        (pc.field("h").isin([5]), [1]),
    ],
)
def test_large_numbers_without_a_sign_are_compared(tmp_path, condition, expected):
    """pyarrow takes ints of Python for int64, and fails where the column has larger numbers."""
    numbers_of = pa.array([5, 2**64 - 1, 7], pa.uint64())
    table = pa.table(
        {"n": [1, 2, 3], "h": numbers_of, "s": pa.StructArray.from_arrays([numbers_of], ["h"])}
    )
    pq.write_table(table, tmp_path / "0.parquet")
    found = xt.read_parquet(tmp_path, ["n"], filters=condition)["n"].numpy().tolist()
    assert found == numbers(xt.data.parquet(tmp_path, 2, ["n"], filters=condition)) == expected


@pytest.mark.parametrize(
    "condition", [pc.field("h") == 5, pc.divide(pc.field("h"), pa.scalar(0, pa.uint64())) == 1]
)
def test_a_condition_that_the_records_do_not_fit_is_no_error_of_the_file(tmp_path, condition):
    pq.write_table(pa.table({"h": pa.array([2**64 - 1], pa.uint64())}), tmp_path / "0.parquet")
    for read in (xt.read_parquet, lambda path, **words: xt.data.parquet(path, 4, **words)):
        with pytest.raises(DTypeError, match=r"filters: .*(not in range|divide by zero)"):
            read(tmp_path, filters=condition)
