"""describe: its sources, and its memory."""

import copy
import pickle

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt

RECORDS = [
    {"title": "Tea", "minutes": [5, 2], "score": 0.5},
    {"title": "Bread", "minutes": [], "score": 1.5},
    {"title": "Tea", "minutes": [7], "score": 2.5},
]
BATCH = xt.struct.constant(RECORDS)
TABLE = pa.Table.from_pylist(RECORDS)

STRUCT = pa.struct(list(TABLE.schema))


def batches():
    return tf.data.Dataset.from_tensors(BATCH)


SOURCES = {
    "records": lambda: BATCH,
    "a dataset of batches": batches,
    "a dataset of records": lambda: batches().unbatch(),
    "a table": lambda: TABLE,
    "a record batch": lambda: TABLE.to_batches()[0],
    "a reader": lambda: TABLE.to_reader(1),
    "an array of structs": lambda: TABLE.to_batches()[0].to_struct_array(),
    "a slice of an array of structs": lambda: pa.array([None, *RECORDS]).slice(1),
    "slices in chunks": lambda: pa.chunked_array([pa.array([{}, *RECORDS], STRUCT).slice(1)]),
    "a slice of a DataFrame": lambda: polars.DataFrame([RECORDS[0], *RECORDS])[1:],
    "batches of Arrow": lambda: iter(TABLE.to_batches(max_chunksize=1)),
    "batches of records": lambda: [BATCH[:2], BATCH[2:]],
}


def expect(found):
    assert found.num_records == 3
    assert list(found.paths) == ["title", "minutes", "minutes[*]", "score"]
    assert found["title"].words.top() == [("Tea", 2), ("Bread", 1)]
    assert found["minutes"].lengths.mean == 1.0
    assert (found["minutes[*]"].numbers.min, found["minutes[*]"].numbers.max) == (2, 7)
    assert found["score"].numbers.mean == 1.5


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_of_records_is_described(name):
    expect(xt.data.describe(SOURCES[name]()))


@pytest.mark.parametrize("name", SOURCES)
def test_only_chosen_columns_are_described(name):
    found = xt.data.describe(SOURCES[name](), columns=["score"])
    assert list(found.paths) == ["score"]
    with pytest.raises(xt.errors.FieldError, match="nothing"):
        xt.data.describe(SOURCES[name](), columns=["nothing"])


def test_python_objects_in_a_dataframe_are_refused_and_not_their_addresses_described():
    frame = polars.DataFrame({"things": polars.Series([object()], dtype=polars.Object)})
    with pytest.raises(xt.errors.UnsupportedTypeError, match=r"things: .*Python objects"):
        xt.data.describe(frame)


@pytest.mark.parametrize("source", [pa.array([1]), polars.Series([1])])
def test_arrow_data_of_no_records_is_refused(source):
    with pytest.raises(xt.errors.DTypeError, match="expected records"):
        xt.data.describe(source)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "jsonl"])
def test_files_are_described(suffix, tmp_path):
    for part, name in ((BATCH[:1], "a"), (BATCH[1:], "b")):
        path = tmp_path / f"{name}.{suffix}"
        {"parquet": xt.write_parquet, "arrow": xt.write_arrow, "jsonl": xt.write_json}[suffix](
            part, path
        )
    for paths in (tmp_path, str(tmp_path / "*"), [tmp_path / f"{n}.{suffix}" for n in "ab"]):
        expect(xt.data.describe(paths))
        expect(xt.data.describe(paths, format="json" if suffix == "jsonl" else suffix))
        assert list(xt.data.describe(paths, ["score"]).paths) == ["score"]


@pytest.mark.parametrize("source", ["table", "records", "reader", "file"])
def test_nothing_has_statistics_too(source, tmp_path):
    empty = TABLE.slice(0, 0)
    pq.write_table(empty, tmp_path / "empty.parquet")
    found = xt.data.describe(
        {
            "table": empty,
            "records": BATCH[:0],
            "reader": empty.to_reader(),
            "file": tmp_path / "empty.parquet",
        }[source]
    )
    assert found.num_records == 0
    assert list(found.paths) == ["title", "minutes", "minutes[*]", "score"]
    assert np.isnan(found["score"].numbers.quantile(0.5))
    assert str(found).startswith("0 records")
    assert "<svg" not in found._repr_html_()
    assert str(found.compare(found)).startswith("0 of 4 paths drifted")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (3, "got int"),
        ([{"x": 1}], "got dict"),
        (tf.data.Dataset.range(3), "a dataset of TensorSpec"),
        (tf.data.Dataset.zip(batches(), batches()), "dataset.map"),
        (xt.DenseStructuredTensor([1, 1], {"x": [[1]]}), "rank 2"),
    ],
)
def test_other_sources_are_errors(source, text):
    with pytest.raises(xt.errors.DTypeError, match=text):
        xt.data.describe(source)


def test_two_fields_of_one_name_are_refused():
    one, two = pa.array([1]), pa.array([2])
    inner = pa.StructArray.from_arrays([one, two], names=["x", "x"])
    for table, path in (
        (pa.table([one, two], names=["x", "x"]), "x"),
        (pa.table({"r": inner}), r"r\.x"),
    ):
        with pytest.raises(xt.errors.StructureError, match=f"{path}: .*two fields of this name"):
            xt.data.describe(table)


def test_fields_of_null_records_are_null_beside_a_union():
    rows = [
        {"x": 1, "s": {"z": 1, "u": 2}, "l": [1], "u": 1},
        None,
        {"x": None, "s": None, "l": [], "u": "q"},
        {"x": 3, "s": {"z": None, "u": "t"}, "l": ["w"], "u": 2},
    ]
    records = xt.struct.constant([{"r": row} for row in rows], conflicts="union", nulls="mask")
    found = xt.data.describe(records)
    for name in ("x", "s", "l", "u"):
        assert found[f"r.{name}"].nulls == sum((row or {}).get(name) is None for row in rows)
    inner = [((row or {}).get("s") or {}).get("z") for row in rows]
    assert found["r.s.z"].nulls == inner.count(None)


def test_a_path_that_does_not_exist_is_an_error():
    with pytest.raises(xt.errors.FieldError, match=r"minutes: expected one of the paths title"):
        xt.data.describe(TABLE.select(["title"]))["minutes"]


def test_the_progress_bar_is_on_the_standard_error_when_asked(capsys):
    xt.data.describe(TABLE)
    assert capsys.readouterr() == ("", "")
    xt.data.describe(TABLE, progress=True)
    out, errors = capsys.readouterr()
    assert out == ""
    assert "describe: 100%" in errors
    assert "3.00/3.00" in errors


def test_without_the_extra_the_error_names_it(run_python):
    run_python(
        """
        import sys
        sys.modules["datasketches"] = None
        import pyarrow as pa
        import extensor as xt
        try:
            xt.data.describe(pa.table({"x": [1]}))
        except xt.errors.MissingDependencyError as error:
            assert '[describe]"' in str(error)
        else:
            raise AssertionError
        """
    )


def test_the_merged_description_of_parts_is_that_of_the_whole():
    parts = [xt.data.describe(TABLE.slice(i, 1)) for i in range(3)]
    expect(parts[0].merge(parts[1]).merge(parts[2]))
    assert parts[0].num_records == 1  # unchanged
    assert parts[0]["title"].words.top() == [("Tea", 1)]
    with pytest.raises(xt.errors.DTypeError, match=r"xt\.data\.describe"):
        parts[0].merge(TABLE)
    with pytest.raises(xt.errors.DTypeError, match="title"):
        parts[0].merge(xt.data.describe(pa.table({"title": [1]})))


@pytest.mark.whole("starts a process")
def test_memory_does_not_grow_with_the_number_of_records(run_python):
    # Strings that are all different, long strings, and numbers, four and forty times.
    done = run_python(
        """
        import os, resource
        import numpy as np
        import pyarrow as pa
        import extensor as xt

        def batches(count):
            rng = np.random.default_rng(0)
            for i in range(count):
                rows = 20_000
                yield pa.record_batch({
                    "id": [f"record {i} {j}" for j in range(rows)],
                    "text": [chr(97 + j % 26) * 200 + str(i) for j in range(rows)],
                    "x": rng.normal(size=rows),
                    "list": pa.ListArray.from_arrays(
                        np.arange(0, 5 * rows + 1, 5, np.int32), rng.normal(size=5 * rows)
                    ),
                })

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        xt.data.describe(batches(4))
        first = peak()
        found = xt.data.describe(batches(40))
        assert found.num_records == 800_000
        print(peak() - first)
        """
    )
    assert float(done.stdout) < 40  # MB; the ids alone are 40 times as many


@pytest.mark.whole("starts a process")
def test_a_parquet_file_is_read_in_parts(tmp_path, run_python):
    path = tmp_path / "large.parquet"
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, pa.schema({"x": pa.float64()})) as writer:
        for _ in range(40):
            writer.write_table(pa.table({"x": rng.normal(size=200_000)}))
    done = run_python(
        f"""
        import pyarrow as pa
        import extensor as xt
        found = xt.data.describe({str(path)!r})
        assert found["x"].numbers.count == 8_000_000
        print(pa.default_memory_pool().max_memory() / 2**20)
        """
    )
    assert float(done.stdout) < 16  # MB, of 61 MB


def test_descriptions_of_several_processes_are_merged():
    table = pa.table(
        {
            "x": [1, None, 3],
            "t": ["a", "b" * 500, "a"],
            "l": [[1.5, float("nan")], [], None],
            "when": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
        }
    )
    found = xt.data.describe(table)
    sent = pickle.loads(pickle.dumps(found))
    assert str(sent) == str(found) == str(copy.deepcopy(found))
    assert str(sent.merge(sent)) == str(found.merge(found))
    assert sent.compare(found).drifted == []
