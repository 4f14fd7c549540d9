"""CSV files are what Python's csv module, pandas and pyarrow say they are."""

import csv
import datetime as dt
import gzip
import io
import itertools
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._files.files import file_at
from extensor._formats.csv.lines import Dialect, blocks, blocks_of_file
from extensor.errors import (
    DTypeError,
    FieldError,
    FormatError,
    NullError,
    StructureError,
    UnsupportedTypeError,
)

texts = st.text(st.sampled_from('ab,;"\n\r\té0 '), max_size=5)
rows_of_text = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(texts, min_size=width, max_size=width), max_size=6)
)


def written(rows, delimiter=",", quoting=csv.QUOTE_ALL, lines="\n"):
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=lines).writerows(rows)
    return file.getvalue().encode()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("lines", ["\n", "\r\n"])
@given(rows=rows_of_text)
def test_values_are_those_of_pythons_csv(delimiter, lines, rows):
    rows = [[text.replace("\r", "") for text in row] for row in rows]
    names = [f"c{i}" for i in range(len(rows[0]) if rows else 2)]
    text = written([names, *rows], delimiter, lines=lines)
    schema = pa.schema(dict.fromkeys(names, pa.string()))
    records = xt.read_csv(text, schema=schema, delimiter=delimiter)
    assert [list(record.values()) for record in records.to_py()] == rows


@given(rows=rows_of_text, size=st.integers(1, 40), names=st.booleans())
def test_blocks_of_any_size_have_all_records(rows, size, names):
    rows = [[text.replace("\r", "") or "x" for text in row] for row in rows]
    width = len(rows[0]) if rows else 2
    header = [] if names else [[f"c{i}" for i in range(width)]]
    dialect = Dialect(names=tuple(f"c{i}" for i in range(width)) if names else None)
    text = written([*header, *rows], quoting=csv.QUOTE_MINIMAL)
    found = list(blocks(io.BytesIO(text), "it", dialect, size))
    whole = b"".join(block.data for block in found)
    assert text.endswith(whole)
    assert list(csv.reader(io.StringIO(whole.decode(), newline=""))) == rows
    count = 0
    for block in found:
        assert block.record == count
        assert text[block.start : block.start + len(block.data)] == block.data
        count += len(list(csv.reader(io.StringIO(block.data.decode(), newline=""))))


LENIENT = ['5"', 'a"b"', '"x\ny"', '"q"",\n"', '""', '6" "', '"a"b', "p"]


@given(
    rows=st.lists(st.lists(st.sampled_from(LENIENT), min_size=2, max_size=2), max_size=9),
    size=st.integers(1, 40),
    names=st.booleans(),
)
def test_quotes_within_a_value_are_characters_as_others(rows, size, names):
    """They were counted, so that a block ended within quotes, or the text had no end."""
    text = "".join(f"{','.join(row)}\n" for row in rows).encode()
    [header, *expected] = csv.reader(io.StringIO('h",k\n' + text.decode(), newline=""))
    dialect = Dialect(names=tuple(header) if names else None)
    found = list(blocks(io.BytesIO(text if names else b'h",k\n' + text), "it", dialect, size))
    read = [
        list(csv.reader(io.StringIO(block.data.decode(), newline=""), strict=False))
        for block in found
    ]
    assert [row for each in read for row in each] == expected
    assert [block.record for block in found] == [sum(map(len, read[:i])) for i in range(len(read))]
    schema = pa.schema(dict.fromkeys(header, pa.string()))
    records = xt.read_csv(b'h",k\n' + text, schema=schema)
    assert [list(record.values()) for record in records.to_py()] == expected


NUMBERS = {
    "int": ["1", "-20", "0"],
    "float": ["1.5", "-2e10", "7"],
    "bool": ["true", "false", "1"],
    "bit": ["0", "1", "1"],
    "text": ["a", "1", "x y"],
    "date": ["2020-01-02", "2021-01-02", "2020-01-03"],
    "gaps": ["1", "", "3"],
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("size", [1, 1000])
def test_types_are_those_of_pandas_whatever_is_parsed_at_once(kind, size, tmp_path):
    values = NUMBERS[kind]
    path = tmp_path / "it.csv"
    path.write_text("x,y\n" + "".join(f"{value},k\n" for value in values))
    records = xt.read_csv(path, nulls="mask")
    own = [record["x"] for record in records.to_py()]
    theirs = pd.read_csv(path)["x"]
    if kind == "bool":  # pandas has no column of true and 1
        theirs = pd.Series([True, False, True])
    assert own == [None if pd.isna(value) else value for value in theirs]
    found = list(blocks_of_file(file_at(path), Dialect(), size))
    assert len(found) == (len(values) if size == 1 else 1)
    batches = xt.data.csv(path, 2, nulls="mask")
    assert [record for batch in batches for record in batch.to_py()] == records.to_py()
    assert xt.spec_of(records).is_subtype_of(batches.element_spec)


def test_types_of_blocks_join_as_those_of_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr("extensor._streams.csv.BLOCK", 1)
    for values in (["0", "true"], ["1", "2", "x"], ["", "1.5", "3"], ["5", "true"], ["1", "7"]):
        path = tmp_path / "it.csv"
        path.write_text("x,y\n" + "".join(f"{value},k\n" for value in values))
        whole = xt.read_csv(path, nulls="mask")
        batches = list(xt.data.csv(path, 10, nulls="mask"))
        assert [x for batch in batches for x in batch.to_py()] == whole.to_py()


UTC = dt.timezone.utc
TIME = dt.datetime(2024, 2, 29, 23, 59, 58, 123456)
VALUES = {
    pa.int8(): [1, None, -128],
    pa.uint64(): [2**64 - 1, None, 0],
    pa.int64(): [2**63 - 1, None, -(2**63)],
    pa.float16(): [0.5, None, float("inf")],
    pa.float32(): [np.float32(0.1).item(), None, float("-inf")],
    pa.float64(): [0.1, None, 1e300],
    pa.bool_(): [True, None, False],
    pa.string(): ["", None, 'a "b", \n c'],
    pa.large_string(): ["NA", None, "null"],
    pa.string_view(): ["é", None, " x "],
    pa.binary(): [b"ab", None, b""],
    pa.binary(2): [b"ab", None, b"cd"],
    pa.dictionary(pa.int32(), pa.string()): ["a", None, "a"],
    pa.date32(): [TIME.date(), None, dt.date(1900, 1, 1)],
    pa.date64(): [TIME.date(), None, dt.date(1900, 1, 1)],
    pa.time32("s"): [dt.time(23, 59, 58), None, dt.time()],
    pa.time64("us"): [TIME.time(), None, dt.time()],
    pa.timestamp("s"): [TIME.replace(microsecond=0), None, dt.datetime(1900, 1, 1)],
    pa.timestamp("us"): [TIME, None, dt.datetime(1900, 1, 1)],
    pa.timestamp("us", "UTC"): [TIME.replace(tzinfo=UTC), None, TIME.replace(1904, tzinfo=UTC)],
    pa.duration("ms"): [dt.timedelta(milliseconds=1500), None, -dt.timedelta(1)],
    pa.decimal32(5, 2): [Decimal("1.50"), None, Decimal("-999.99")],
    pa.decimal128(10, 2): [Decimal("1.50"), None, Decimal("-999.99")],
    pa.decimal128(38, 9): [Decimal("12345678901234567890.123456789"), None, Decimal()],
    pa.decimal256(50, 3): [Decimal("1.500"), None, Decimal("-7.000")],
    pa.uuid(): [bytes(16), None, b"a" * 16],
    pa.bool8(): [1, None, 0],
}  # fmt: skip
READ = {
    "read_csv": lambda path, schema: xt.read_csv(path, schema=schema).to_py(),
    "xt.data.csv": lambda path, schema: [
        x for batch in xt.data.csv(path, 2, schema=schema) for x in batch.to_py()
    ],
}


@pytest.mark.parametrize("arrow", VALUES, ids=str)
@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_each_type_comes_back_by_its_spec(arrow, read, tmp_path):
    table = pa.table({"x": pa.array(VALUES[arrow], arrow), "n": pa.array([1, 2, 3])})
    records = xt.from_arrow(table, nulls={"x": "mask"})
    xt.write_csv(records, tmp_path / "it.csv")
    assert read(tmp_path / "it.csv", xt.spec_of(records)) == records.to_py()


def test_one_field_of_nulls_keeps_its_records(tmp_path):
    records = xt.from_arrow(pa.table({"x": pa.array([None, 5, None])}), nulls="mask")
    for name in ("it.csv", "it.csv.gz", "it.tsv"):
        xt.write_csv(records, tmp_path / name)
        assert xt.read_csv(tmp_path / name, nulls="mask").to_py() == records.to_py()
        [batch] = xt.data.csv(tmp_path / name, 5, nulls="mask")
        assert batch.to_py() == records.to_py()


def test_files_are_written_as_pyarrow_writes_them(tmp_path):
    numbers = [1.5, None, float("nan")]
    table = pa.table({"s": ["a", 'b"', None], "x": numbers, "b": [True, None, False]})
    theirs = io.BytesIO()
    pacsv.write_csv(table, theirs)
    xt.write_csv(xt.from_arrow(table, nulls="mask"), tmp_path / "it.csv", table.schema)
    assert (tmp_path / "it.csv").read_bytes() == theirs.getvalue()
    file = io.StringIO()
    xt.write_csv(xt.from_arrow(table, nulls="mask"), file, delimiter=";")
    assert file.getvalue() == theirs.getvalue().decode().replace(",", ";")
    xt.write_csv(xt.from_arrow(table, nulls="mask"), tmp_path / "it.csv.gz")
    packed = (tmp_path / "it.csv.gz").read_bytes()
    assert gzip.decompress(packed) == theirs.getvalue()
    expected = repr(xt.read_csv(theirs.getvalue(), nulls="mask").to_py())  # with a NaN
    for source in (packed, io.BytesIO(packed)):
        assert repr(xt.read_csv(source, nulls="mask").to_py()) == expected


def test_text_may_be_in_any_encoding_without_a_header_and_with_other_nulls(tmp_path):
    text = "é;1,5;NA\nü;NA;2\n"
    words = {"nulls": "mask", "delimiter": ";", "names": ["a", "b", "c"], "null_values": ["NA"]}
    expected = [{"a": "é", "b": "1,5", "c": None}, {"a": "ü", "b": None, "c": 2}]
    for encoding in ("latin-1", "utf-16", "utf-8-sig", "cp1252"):
        records = xt.read_csv(text.encode(encoding), encoding=encoding, **words)
        assert records.to_py() == expected
        (tmp_path / "it.csv").write_bytes(text.encode(encoding))
        dataset = xt.data.csv(tmp_path / "it.csv", 1, encoding=encoding, **words)
        assert [record for batch in dataset for record in batch.to_py()] == expected
    records = xt.read_csv(io.StringIO(text), encoding="latin-1", **words)
    assert records.to_py() == expected


def test_columns_and_schema_choose_fields():
    text = b"a,b.c,a b\n1,2,3\n"
    assert xt.read_csv(text, columns=["a b", '"b.c"']).to_py() == [{"a b": 3, "b.c": 2}]
    schema = pa.schema([("b.c", pa.float32()), ("new", pa.int64())])
    assert xt.read_csv(text, schema=schema, nulls="mask").to_py() == [{"b.c": 2.0, "new": None}]
    schema = pa.schema([pa.field("new", pa.int64(), nullable=False)])
    with pytest.raises(FieldError, match=r"new: expected a column of CSV, got the columns a, b.c"):
        xt.read_csv(text, schema=schema)
    one = xt.read_csv(b"x,y\r1,2\r3,4\r")
    assert one.to_py() == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]


def test_a_quote_inside_a_value_is_a_character(tmp_path):
    text = 'a,b\n12" disc,"x\ny"\n"z""\n",7" single\n5",\n'
    path = tmp_path / "it.csv"
    path.write_text(text)
    [names, *rows] = csv.reader(io.StringIO(text, newline=""))
    records = xt.read_csv(path, nulls=xt.fill(""))
    assert [list(record.values()) for record in records.to_py()] == rows
    for size in range(1, len(text)):
        found = list(blocks_of_file(file_at(path), Dialect(), size))
        assert b"".join(block.data for block in found) == text[len(",".join(names)) + 1 :].encode()
        ends = ["".join(map("".join, rows[: block.record])).count("\n") for block in found]
        lines = text.encode().splitlines(keepends=True)
        starts = [len(b"".join(lines[: 1 + b.record + e])) for b, e in zip(found, ends)]  # noqa: B905
        assert [block.start for block in found] == starts


def test_integers_of_one_file_are_not_rounded_by_numbers_of_another(tmp_path):
    for name, value in (("wide", 2**53 + 1), ("even", 2**60), ("half", 0.5), ("text", "x")):
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{value},k\n")

    def read(*names):
        return xt.read_csv([tmp_path / f"{name}.csv" for name in names])["x"].numpy().tolist()

    for names in (("wide", "half"), ("half", "even", "wide")):
        with pytest.raises(DTypeError, match=r"x: expected numbers that int64 or float64 holds"):
            read(*names)
    assert read("even", "half") == [2.0**60, 0.5]
    assert read("wide", "even") == [2**53 + 1, 2**60]
    texts = {"wide": b"9007199254740993", "half": b"0.5", "text": b"x"}
    for names in itertools.permutations(["wide", "half", "text"]):
        assert read(*names) == [texts[name] for name in names]
    (tmp_path / "both.csv").write_text(f"x,y\n{2**53 + 1},k\n0.5,k\n")
    with pytest.raises(DTypeError, match=r"both.csv: x: .*got 9007199254740993\."):
        read("wide", "both")
    assert read("both", "text") == [texts["wide"], texts["half"], texts["text"]]
    assert xt.read_csv(tmp_path / "both.csv", columns=["y"]).to_py() == [{"y": "k"}] * 2


BAD = {
    "too few values": (b"a,b\n1,2\n3\n", {}, FormatError, "expected 2 values .* got 1 in record 1"),
    "too many values": (b"a,b\n1,2,3\n", {}, FormatError, "expected 2 values .* got 3 in record 0"),
    "a quote without end": (
        b'a,b\n1,2\n3,"x\n4,5\n', {}, FormatError, "a quote without its end, in record 1"),
    "no header": (b"", {}, FormatError, "names="),
    "empty lines": (b"\n\n", {}, FormatError, "names="),
    "a quote in the header": (b'a,"b\n1,2\n', {}, FormatError, "a quote without its end"),
    "two names": (b"a,a\n1,2\n", {}, StructureError, "'a' twice"),
    "a wrong value": (
        b"a,b\n1,2\n3,x\n", {"schema": pa.schema({"b": pa.int8()})}, DTypeError,
        "b: expected text of the type int8.* got 'x' in record 1"),
    "a number too large": (
        b"a\n300\n", {"schema": pa.schema({"a": pa.int8()})}, DTypeError, "'300' in record 0"),
    "a time without a zone": (
        b"b,a\nx,2020-01-01T10:00:00Z\ny,2020-01-01T10:00:00\n",
        {"schema": pa.schema({"a": pa.timestamp("s", "UTC")})}, DTypeError,
        r"a: expected text of the type timestamp\[s, tz=UTC\], as schema= says, got text of "
        r"another \(expected a zone offset in '2020-01-01T10:00:00'\) in record 1"),
    "a decimal with more digits": (
        b"a\n1.55\n1.555\n", {"schema": pa.schema({"a": pa.decimal128(10, 2)})}, DTypeError,
        r"a: .* as schema= says, got .* would cause data loss\) in record 1"),
    "other text": (
        b"a,b\nx,\xff\n", {"schema": pa.schema({"b": pa.string()})}, FormatError, "encoding="),
    "a wide integer": (b"a\n9007199254740993\n1.5\n", {}, DTypeError, "9007199254740993.*schema="),
    "a large number": (
        b"a\n1e300\n", {"schema": pa.schema({"a": pa.float32()})}, DTypeError, "a: .*too large"),
    "a list": (
        b"a\n1\n", {"schema": pa.schema({"a": pa.list_(pa.int8())})}, UnsupportedTypeError, "JSON"),
    "a null": (b"a,b\n1,\n", {}, NullError, 'nulls={"b": "mask"}'),
    "a delimiter": (b"a\n", {"delimiter": "||"}, StructureError, "delimiter: expected one"),
    "an encoding": (b"a\n", {"encoding": "klingon"}, StructureError, "encoding"),
    "another encoding": (b"a\n\xff\xff\n", {"encoding": "utf-16"}, FormatError, "encoding="),
    "names of text": (b"a\n", {"names": "ab"}, DTypeError, "names: expected a list of str"),
    "no source": (5, {}, DTypeError, "a path, a file object, bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_text_is_an_error_that_says_where(case, tmp_path):
    text, words, error, match = BAD[case]
    with pytest.raises(error, match=match):
        xt.read_csv(text, **words)
    if isinstance(text, bytes):
        (tmp_path / "it.csv").write_bytes(text)
        with pytest.raises((error, tf.errors.OpError), match=match.removesuffix(".*schema=")):
            list(xt.data.csv(tmp_path / "it.csv", 2, **words))


def test_files_that_disagree_are_an_error_that_names_both(tmp_path):
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n3,4\n")
    for read in (xt.read_csv, lambda path, **words: next(iter(xt.data.csv(path, 9, **words)))):
        with pytest.raises(StructureError, match=r"2.csv: expected the columns of .*1.csv: a, b"):
            read(tmp_path)
        schema = pa.schema({"a": pa.int32(), "b": pa.int32()})
        assert read(tmp_path, schema=schema).to_py() == [{"a": 1, "b": 2}, {"a": 4, "b": 3}]


def test_nested_fields_are_not_written(tmp_path):
    for records, match in (
        (xt.struct.constant([{"a": {"b": [1]}}]), "a: expected one value.*JSON or Parquet"),
        (xt.struct.constant([{"l": [1]}]), "l: expected one value"),
    ):
        with pytest.raises(UnsupportedTypeError, match=match):
            xt.write_csv(records, tmp_path / "it.csv")
    with pytest.raises(StructureError, match="at least one field"):
        xt.write_csv(xt.DenseStructuredTensor([2], {}), tmp_path / "it.csv")
    with pytest.raises(FormatError, match="text in UTF-8"):
        xt.write_csv(xt.DenseStructuredTensor([1], {"x": [b"\xff"]}), tmp_path / "it.csv")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def many(tmp_path, monkeypatch):
    """A folder of three files of 20 records, of which a few are read at once."""
    monkeypatch.setattr("extensor._streams.csv.BLOCK", 100)
    for k in range(3):
        rows = [{"n": n, "t": f'text "{n}"\n'} for n in range(20 * k, 20 * k + 20)]
        packed = ".gz" if k == 1 else ""
        xt.write_csv(xt.struct.constant(rows), tmp_path / f"{k}.csv{packed}")
    return tmp_path


def numbers(dataset):
    return [n for batch in dataset for n in batch["n"].numpy().tolist()]


@pytest.mark.parametrize("shuffle", [None, xt.data.Shuffle(seed=3, window=10)])
def test_shards_have_each_record_once_and_resume_at_the_batch(many, shuffle):
    words = {"shuffle": shuffle, "schema": pa.schema({"n": pa.int64(), "t": pa.string()})}
    assert sorted(numbers(xt.data.csv(many, 7, **words))) == list(range(60))
    shards = [numbers(xt.data.csv(many, 7, shard=(i, 3), **words)) for i in range(3)]
    assert all(shards)
    assert sorted(n for shard in shards for n in shard) == list(range(60))
    whole = list(xt.data.csv(many, 7, epochs=2, **words))
    dataset = xt.data.csv(many, 7, epochs=2, **words)
    iterator = iter(dataset)
    for _ in range(5):
        next(iterator)
    rest = list(xt.data.csv(many, 7, epochs=2, state=xt.data.state(iterator, 5), **words))
    assert [batch.to_py() for batch in rest] == [batch.to_py() for batch in whole[5:]]


def test_models_read_the_fields_that_they_use(many):
    used = xt.data.fields_used(lambda batch: batch["n"] + 1, xt.data.csv(many, 5).element_spec)
    assert xt.data.csv(many, 5, columns=used).element_spec.field_names() == ("n",)
    [first, *_] = xt.data.csv(many, 5, columns=["t"])
    assert first.to_py()[0] == {"t": 'text "0"\n'}
    assert xt.data.csv(many, 5).cardinality() == 12


@pytest.mark.whole("starts servers")
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")
def test_the_service_reads_the_same_records(many):
    dataset = xt.data.csv(many, 7, null_values=["NA"], delimiter=",", shard="service")
    server = tf.data.experimental.service.DispatchServer()
    address = server.target.split("://")[1]
    config = tf.data.experimental.service.WorkerConfig(dispatcher_address=address)
    worker = tf.data.experimental.service.WorkerServer(config)
    served = dataset.apply(
        tf.data.experimental.service.distribute("distributed_epoch", server.target)
    )
    assert sorted(numbers(served)) == list(range(60))
    del worker


@pytest.mark.parametrize("write", [xt.write_csv, xt.write_json])
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (86_400, pa.time32("s")),  # 24:00:00
        (2**63 - 1, pa.timestamp("us")),  # infinity of DuckDB
        (-(2**63) + 1, pa.timestamp("us", "Europe/Paris")),
        (2**30, pa.date32()),
        (86_400_000 * 2**33, pa.date64()),
    ],
    ids=str,
)
def test_a_time_without_text_is_an_error(write, number, kind, tmp_path):
    records = xt.from_arrow(pa.table({"at": pa.array([0, number], kind)}))
    with pytest.raises(xt.errors.FormatError, match=rf"at: expected times .* {number}, of type"):
        write(records, tmp_path / "file")
    assert not (tmp_path / "file").exists()
    write(records[:1], tmp_path / "file")


def test_a_zone_of_seconds_from_utc_is_an_error(tmp_path):
    kind = pa.timestamp("ms", "Europe/Amsterdam")  # 19 min 32 s from UTC in 1780
    table = pa.table({"at": pa.array([0, -6_000_000_000_000, None], kind)})
    records = xt.from_arrow(table, nulls="mask")
    with pytest.raises(xt.errors.FormatError, match=r"at: .* got 1172 seconds, in Europe"):
        xt.write_csv(records, tmp_path / "at.csv")
    in_utc = pa.schema([("at", pa.timestamp("ms", "UTC"))])
    xt.write_csv(records, tmp_path / "at.csv", schema=in_utc)
    read = xt.read_csv(tmp_path / "at.csv", schema=table.schema, nulls="mask")
    assert xt.to_arrow(read).column("at").equals(table.column("at").combine_chunks())
