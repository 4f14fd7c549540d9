"""read_json: the forms of JSON text, and the traps that real data has."""

import bz2
import decimal
import gzip
import io
import json
import math

import pyarrow as pa
import pyarrow.json
import pytest

import extensor as xt
from extensor._formats.json import fast, read, source


def lines(*values):
    return "\n".join(map(json.dumps, values)).encode()


TWO = [{"title": "Tea", "minutes": [5, 2]}, {"title": "Bread", "minutes": []}]
READ = [{"title": "Tea", "minutes": [5, 2]}, {"title": "Bread", "minutes": []}]


@pytest.fixture(params=["fast", "exact"])
def reader(request, monkeypatch):
    """read_json by Arrow's parser where it can, and by Python's parser only."""
    if request.param == "exact":

        def never(*_):
            raise read.InexactError

        monkeypatch.setattr(read, "fast_table", never)
    return xt.read_json


@pytest.fixture
def fast_only(monkeypatch):
    """Makes the test fail where Arrow's parser is not enough."""

    def never(*_):
        raise AssertionError("Python's parser was needed.")

    monkeypatch.setattr(read, "exact_records", never)


# The forms of text.


@pytest.mark.parametrize(
    "text",
    [
        lines(*TWO),
        lines(*TWO) + b"\n\n",
        lines(*TWO).replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + lines(*TWO),
        json.dumps(TWO).encode(),
        json.dumps(TWO, indent=2).encode(),
        b" \n" + json.dumps(TWO).encode() + b" \n",
        "\n".join(json.dumps(each, indent=2) for each in TWO).encode(),
        lines(*TWO).replace(b"\n", b" "),
        gzip.compress(lines(*TWO), mtime=0),
        bz2.compress(json.dumps(TWO).encode()),
        pa.compress(lines(*TWO), "zstd", asbytes=True),
        gzip.compress(lines(TWO[0]) + b"\n", mtime=0) + gzip.compress(lines(TWO[1]), mtime=0),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_each_form_of_text_has_the_same_records(reader, text):
    assert reader(text).to_py() == READ


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (lines(*TWO) + b" \n", None),
        (b"\xef\xbb\xbf" + lines(*TWO), None),
        (json.dumps(TWO).encode(), None),
        (json.dumps({"all": TWO}).encode(), "all"),
        (gzip.compress(lines(*TWO)), None),
        (b"", None),
    ],
    ids=lambda text: repr(text)[:12],
)
@pytest.mark.parametrize("block", [1, 30])
def test_a_large_file_is_read_in_parts(reader, monkeypatch, tmp_path, text, path, block):
    monkeypatch.setattr(source, "_LARGE", -1)
    monkeypatch.setattr(fast, "_BLOCK", block)
    (tmp_path / "large.json").write_bytes(text)
    assert reader(tmp_path / "large.json", records=path).to_py() == (READ if text else [])


def test_a_large_file_that_is_cut_while_it_is_read_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(source, "_LARGE", -1)
    path = tmp_path / "large.json"
    path.write_bytes(lines(*TWO))
    (text,) = source.texts_of(path)
    path.write_bytes(lines(TWO[0]))
    with pytest.raises(xt.errors.FormatError, match=r"large\.json: expected the file to stay"):
        fast.fast_table([text], None, None)


@pytest.mark.parametrize("make", [bytearray, memoryview, pa.py_buffer, io.BytesIO])
def test_text_in_memory(make):
    assert xt.read_json(make(lines(*TWO))).to_py() == READ
    assert xt.read_json(io.StringIO(lines(*TWO).decode())).to_py() == READ


def test_a_list_of_sources_is_concatenated(reader, tmp_path):
    path = tmp_path / "one.json"
    path.write_bytes(json.dumps(TWO).encode())
    assert reader([path, lines(*TWO), io.BytesIO(b"")]).to_py() == READ * 2


def test_files_of_a_folder_and_a_pattern(tmp_path):
    (tmp_path / "b.jsonl").write_bytes(lines(TWO[1]))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(lines(TWO[0])))
    (tmp_path / "_SUCCESS").write_bytes(b"")
    assert xt.read_json(tmp_path).to_py() == READ
    assert xt.read_json(str(tmp_path / "*.jsonl")).to_py() == READ[1:]
    with open(tmp_path / "b.jsonl", "rb") as file:
        assert xt.read_json(file).to_py() == READ[1:]


def test_records_in_one_object(reader):
    text = json.dumps({"count": 2, "data": {"rows": TWO}, "odd": [1, "x"]}).encode()
    assert reader(text, records="data.rows").to_py() == READ
    assert reader(json.dumps({"rows": []}).encode(), records="rows").to_py() == []
    schema = pa.schema({"title": pa.string()})
    assert reader(text, schema=schema, records="data.rows").to_py() == [
        {"title": "Tea"}, {"title": "Bread"}]  # fmt: skip


def test_an_object_of_records(reader):
    text = json.dumps({"AD": {"people": 84}, "AE": {"people": 9630}}).encode()
    rows = [{"key": "AD", "value": {"people": 84}}, {"key": "AE", "value": {"people": 9630}}]
    assert reader(text, records=()).to_py() == rows
    assert reader(b'{"of": ' + text + b"}", records="of").to_py() == rows
    assert reader(text, records=(), columns=["value.people"]).to_py() == [
        {"value": {"people": 84}}, {"value": {"people": 9630}}]  # fmt: skip


def test_no_text_has_no_records(reader):
    assert reader(b"").to_py() == reader(b" \n").to_py() == reader(b"[]").to_py() == []
    spec = xt.spec_of(xt.read_json(lines(*TWO)))
    assert reader(b"", schema=xt.schema_from_spec(spec)).to_py() == []
    assert reader(b"{}\n{}").to_py() == [{}, {}]


# Types.


def test_numbers_are_wide_and_text_stays_text(reader):
    records = reader(
        lines(
            {"i": 1, "f": 0.1, "b": True, "when": "2020-01-01T00:00:00+02:00", "day": "2020-01-01"}
        )
    )
    assert {name: records[name].dtype.name for name in records.field_names()} == {
        "i": "int64", "f": "float64", "b": "bool", "when": "string", "day": "string"}  # fmt: skip
    assert records["when"].numpy() == [b"2020-01-01T00:00:00+02:00"]


@pytest.mark.parametrize("block", [1, 40, 1 << 20])
def test_the_types_follow_from_all_records(reader, monkeypatch, block):
    monkeypatch.setattr(fast, "_BLOCK", block)
    monkeypatch.setattr(fast, "_SAMPLE", block)
    values = [
        {"a": None, "l": [], "n": 1, "s": "2020-01-01", "d": {"x": None}},
        {"a": {"b": 1}, "l": [{"c": [1]}], "n": 2.5, "s": "x", "d": {"x": "2020-01-01"}},
        {"a": {"b": 2, "e": "2020-01-01"}, "l": [], "n": 3, "s": "y", "d": {"x": "z", "t": []}},
        {"new": "2020-01-01 00:00:00", "d": None},
    ]
    records = reader(lines(*values), nulls="mask")
    fields = ["a", "l", "n", "s", "d", "new"]
    assert list(records.field_names()) == fields
    assert records["a"].values.field_names() == ("b", "e")
    found = records.to_py()
    assert found == [
        {"a": None, "l": [], "n": 1.0, "s": "2020-01-01",
         "d": {"x": None, "t": None}, "new": None},
        {"a": {"b": 1, "e": None}, "l": [{"c": [1]}], "n": 2.5, "s": "x",
         "d": {"x": "2020-01-01", "t": None}, "new": None},
        {"a": {"b": 2, "e": "2020-01-01"}, "l": [], "n": 3.0, "s": "y",
         "d": {"x": "z", "t": []}, "new": None},
        {"a": None, "l": None, "n": None, "s": None, "d": None, "new": "2020-01-01 00:00:00"},
    ]  # fmt: skip


def test_a_record_larger_than_a_block(monkeypatch, fast_only):
    monkeypatch.setattr(fast, "_BLOCK", 16)
    values = [{"x": list(range(100))}, {"x": []}, {"x": [1]}]
    assert xt.read_json(lines(*values)).to_py() == values


def test_lists_that_are_always_empty(reader):
    records = reader(lines({"x": [], "y": {"z": []}}, {"x": [], "y": {"z": []}}))
    assert records.to_py() == [{"x": [], "y": {"z": []}}] * 2
    assert records["x"].dtype.name == "float32"


def test_many_records_need_no_python(fast_only):
    values = [{"i": i, "when": "2020-01-01", "l": [{"s": str(i)}] * (i % 3)} for i in range(50_000)]
    records = xt.read_json(lines(*values))
    assert records["i"].numpy().tolist() == list(range(50_000))
    assert records[49_999].to_py() == {"i": 49_999, "when": "2020-01-01", "l": [{"s": "49999"}]}


def test_numbers_that_are_not_finite(reader):
    records = reader(b'{"x": NaN}\n{"x": Infinity}\n{"x": -Infinity}\n{"x": 1}')
    found = records["x"].numpy().tolist()
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -math.inf, 1.0]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b'{"x": 1}\n{"x": 9223372036854775808}', "x, line 2"),
        (b'{"x": 1}\n{"x": -9223372036854775809}', "x, line 2"),
        (b'[{"x": 0.5},\n\n{"x": 9007199254740993}]', "x, line 3"),
        (b'{"x": [{"y": [1, 123456789012345678901234567890]}]}', r"x\[\*\].y\[\*\], line 1"),
    ],
)
def test_an_integer_that_does_not_fit_is_an_error(reader, text, where):
    with pytest.raises(xt.errors.DTypeError, match=rf"^{where} of JSON: expected a number that"):
        reader(text)


def test_a_large_number_that_is_a_float_is_read(reader):
    text = b'{"x": 1e300, "s": "12345678901234567890"}\n{"x": 36893488147419103232, "s": ""}'
    assert reader(text)["x"].numpy().tolist() == [1e300, 2.0**65]
    schema = pa.schema({"x": pa.float64()})
    assert reader(b'{"x": 9223372036854775809}', schema=schema)["x"].numpy() == [2.0**63]
    schema = pa.schema({"x": pa.uint64()})
    assert reader(b'{"x": 18446744073709551615}', schema=schema)["x"].numpy() == [2**64 - 1]


def test_a_number_too_large_for_a_float_is_an_error(reader):
    with pytest.raises(xt.errors.FormatError, match=r"line 2: .* got the number 1e400"):
        reader(b'{"x": 1.5}\n{"x": 1e400}')
    with pytest.raises(xt.errors.DTypeError, match="x, line 1"):
        reader(b'{"x": 1e39}', schema=pa.schema({"x": pa.float32()}))


@pytest.mark.parametrize("digits", [310, 400])
def test_an_integer_that_no_float_holds_is_an_error_that_names_the_line(digits):
    spec = xt.spec_from_schema(pa.schema({"x": pa.float64()}))
    text = b'{"x": 1.5}\n{"x": ' + b"9" * digits + b"}"
    with pytest.raises(xt.errors.DTypeError, match=r"x, line 2 of JSON: expected a number that"):
        xt.read_json(text, schema=spec)


# Nulls.


def test_nulls_and_missing_fields(reader):
    text = lines({"x": 1, "y": {"z": None}}, {"y": None}, {"x": None, "y": {}})
    with pytest.raises(xt.errors.NullError, match="x"):
        reader(text, columns=["x"])
    assert reader(text, nulls="mask").to_py() == [
        {"x": 1, "y": {"z": None}}, {"x": None, "y": None}, {"x": None, "y": {"z": None}},
    ]  # fmt: skip
    assert reader(text, ["x"], nulls={"x": -1}).to_py() == [{"x": 1}, {"x": -1}, {"x": -1}]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"null", 1),
        (b'null\n{"x": 1}', 1),
        (b'{"x": 1}\n \n null\n{"x": 2}', 3),
        (b'{"x": 1} null', 1),
        (b"{}\nnull", 2),
        (b'[{"x": 1},\nnull]', 2),
        (b'{"x": null}\nnull', 2),
    ],
)
def test_a_null_record_is_an_error(reader, text, line):
    with pytest.raises(xt.errors.StructureError, match=rf"^line {line} of JSON: .* got null"):
        reader(text)


@pytest.mark.whole("starts a process")
def test_a_null_record_in_a_large_file_ends_no_process(run_python):
    run_python("""
        import extensor as xt
        for text in (b"null", b"\\n" * 5 + b'null\\n{"x": 1}',
                     b'{"x": 1}\\n' * 120_000 + b"null\\n" * 120_000):
            try:
                xt.read_json(text)
            except xt.errors.StructureError as error:
                assert "got null" in str(error), error
            else:
                raise AssertionError(text[:20])
    """)


# Schema and columns.


def test_what_was_inferred_can_be_pinned(reader):
    records = reader(lines(*TWO))
    for schema in (xt.spec_of(records), xt.schema_from_spec(xt.spec_of(records))):
        assert reader(lines(*TWO), schema=schema).to_py() == READ
    with pytest.raises(xt.errors.DTypeError, match="title, line 1 of JSON"):
        reader(lines({"title": 5, "minutes": []}), schema=schema)
    with pytest.raises(xt.errors.StructureError, match="minutes, line 2 of JSON"):
        reader(lines(TWO[0], {"title": "x", "minutes": {}}), schema=schema)
    with pytest.raises(xt.errors.DTypeError, match=r"minutes\[\*\], line 1 of JSON"):
        reader(lines({"title": "x", "minutes": [1.5]}), schema=schema)


def test_a_schema_reads_times_decimals_and_bytes(reader):
    text = lines({
        "utc": "2020-01-01T00:00:00+02:00", "local": "2020-01-01 01:02:03.5", "day": "2020-02-01",
        "at": "12:34:56.789", "took": 90, "price": "1.25", "number": 2.5, "raw": "AP8=",
        "kind": "a", "three": [1, 2, 3], "half": 1.5, "large": ["x"], "unknown": [1, "x"],
    })  # fmt: skip
    schema = pa.schema({
        "utc": pa.timestamp("ms", "UTC"), "local": pa.timestamp("us"), "day": pa.date32(),
        "at": pa.time32("ms"), "took": pa.duration("s"), "price": pa.decimal128(9, 2),
        "number": pa.decimal128(9, 2), "raw": pa.binary(),
        "kind": pa.dictionary(pa.int32(), pa.string()), "three": pa.list_(pa.int8(), 3),
        "half": pa.float16(), "large": pa.large_list(pa.large_string()),
    })  # fmt: skip
    batch = xt.to_arrow(reader(text, schema=schema))
    assert batch.schema.types == schema.types
    (row,) = batch.to_pylist()
    shown = {name: str(row[name]) for name in list(row)[:7]}
    assert shown == {
        "utc": "2019-12-31 22:00:00+00:00", "local": "2020-01-01 01:02:03.500000",
        "day": "2020-02-01", "at": "12:34:56.789000", "took": "0:01:30", "price": "1.25",
        "number": "2.50",
    }  # fmt: skip
    assert [row[name] for name in list(row)[7:]] == [b"\0\xff", "a", [1, 2, 3], 1.5, ["x"]]


@pytest.mark.parametrize(
    ("value", "arrow"),
    [
        ("2020-01-01T00:00:00+02:00", pa.timestamp("s")),  # an offset would be lost
        ("yesterday", pa.timestamp("s")),
        ("2020-01-01T00:00:00.5", pa.timestamp("s")),
        ("1.255", pa.decimal128(9, 2)),
        ("A", pa.binary()),
        (300, pa.int8()),
        (1.0, pa.int64()),
        (-1, pa.uint64()),
    ],
)
def test_a_value_that_is_not_of_the_schema_is_an_error(reader, value, arrow):
    text = lines({"x": None}, {"x": value})
    with pytest.raises(xt.errors.ExtensorError, match="x, line 2 of JSON"):
        reader(text, schema=pa.schema({"x": arrow}), nulls="mask")


def test_columns_are_read_in_spite_of_conflicts_in_others(reader):
    text = lines(
        {"a": 1, "b": "x", "c": {"d": 1, "e": 2}}, {"a": "y", "b": "z", "c": {"d": 3, "e": []}}
    )
    assert reader(text, ["c.d", "b"]).to_py() == [
        {"c": {"d": 1}, "b": "x"}, {"c": {"d": 3}, "b": "z"}]  # fmt: skip
    with pytest.raises(xt.errors.DTypeError, match="a, line 2"):
        reader(text, ["a"])
    with pytest.raises(xt.errors.FieldError, match="nothing"):
        reader(text, ["nothing"])


def test_row_splits(reader):
    import tensorflow as tf

    records = reader(lines(*TWO), row_splits_dtype=tf.int32)
    assert records["minutes"].row_splits.dtype == tf.int32


# Conflicts.

CONFLICTS = [
    ([{"v": "x"}, {"v": False}], "v", {"string", "bool"}),
    ([{"v": {"a": 1}}, {"v": [{"a": 1}]}], "v", {"record", "list"}),
    ([{"v": [[1]]}, {"v": [1]}], "v", {"list2", "list"}),
    ([{"v": [{"w": 1}]}, {"v": [{"w": "x"}]}], r"v\[\*\].w", {"int", "string"}),
]


@pytest.mark.parametrize(("values", "path", "names"), CONFLICTS)
def test_a_conflict_names_path_and_line(reader, tmp_path, values, path, names):
    file = tmp_path / "file.jsonl"
    file.write_bytes(lines(values[0]) + b"\n\n" + lines(values[1]))
    with pytest.raises((xt.errors.DTypeError, xt.errors.StructureError)) as caught:
        reader(file)
    # Lists of several depths conflict at their items.
    at, _, message = str(caught.value).partition(", line 3 of ")
    assert at.removesuffix("[*]") == path.replace("\\", "")
    assert message.startswith(f"{file}: expected ")
    assert 'conflicts="union"' in message


@pytest.mark.parametrize(("values", "path", "names"), CONFLICTS)
def test_a_conflict_becomes_a_union(reader, values, path, names):
    records = reader(lines(*values), conflicts="union")
    encoded = json.loads(json.dumps(values))
    assert json.loads(json.dumps(records.to_py(), default=bytes.decode)) == encoded
    union = records[xt.Path.parse(path.replace("\\", ""))]
    assert set(union.variants) == names
    pinned = reader(lines(*values), schema=xt.spec_of(records))
    assert pinned.to_py() == records.to_py()


def test_a_union_with_nulls(reader):
    values = [{"v": "x"}, {"v": None}, {"v": True}, {}]
    records = reader(lines(*values), conflicts="union", nulls="mask")
    assert records.to_py() == [{"v": "x"}, {"v": None}, {"v": True}, {"v": None}]


# Objects that are maps.

SUPPORT = [{"id": "a", "support": {"chrome": {"since": 1}, "edge": {"since": None}}},
           {"id": "b", "support": {}}, {"id": "c", "support": {"opera": {"since": 7}}}]  # fmt: skip


def test_maps_become_lists_of_key_and_value():
    records = xt.read_json(lines(*SUPPORT), nulls={"support.value.since": "mask"}, maps=["support"])
    assert records.to_py()[0]["support"] == [
        {"key": "chrome", "value": {"since": 1}},
        {"key": "edge", "value": {"since": None}},
    ]
    assert records["support.key"].to_list() == [[b"chrome", b"edge"], [], [b"opera"]]
    # The type is part of the schema, so that maps= need not be given again.
    assert pa.types.is_map(xt.to_arrow(records).schema.field("support").type)
    pinned = xt.read_json(lines(*SUPPORT), schema=xt.spec_of(records))
    assert pinned.to_py() == records.to_py()


def test_maps_in_lists_and_in_maps():
    value = {"l": [{"m": {"x": {"deep": {"y": 1}}}}, {"m": {}}]}
    records = xt.read_json(lines(value), maps=["l.m", "l.m.value.deep"])
    assert records.to_py() == [
        {"l": [{"m": [{"key": "x", "value": {"deep": [{"key": "y", "value": 1}]}}]}, {"m": []}]}
    ]
    with pytest.raises(xt.errors.FieldError, match="n, where there are none"):
        xt.read_json(lines(value), maps=["n"])
    with pytest.raises(xt.errors.DTypeError, match=r'maps=\["support"\]'):
        xt.read_json(lines(value), maps="l.m")


def test_an_object_of_many_keys_is_warned_of(reader):
    text = lines(*({"m": {f"id{i}": 1}} for i in range(301)))
    with pytest.warns(UserWarning, match=r"m: the keys of objects become 301 fields.*maps=\['m'\]"):
        reader(text, nulls="mask")
    whole = json.dumps({f"id{i}": {"x": i} for i in range(301)}).encode()
    with pytest.warns(UserWarning, match=r"records=\(\)"):
        reader(whole)
    assert reader(whole, records=())["value.x"].numpy().tolist() == list(range(301))


def test_a_table_of_many_columns_is_not_warned_of(reader):
    text = lines(*({f"c{i}": i for i in range(301)} for _ in range(20)))
    assert len(reader(text).field_names()) == 301


@pytest.mark.whole("makes very large values")
def test_an_object_of_too_many_keys_is_an_error(reader):
    text = lines(*({"m": {f"id{i}": 1}} for i in range(3_001)))
    with pytest.raises(xt.errors.StructureError, match=r"m: .* got 3,001 keys .* maps=\['m'\]"):
        reader(text, nulls="mask")


# The parser that all of this works around.


def test_arrow_still_guesses_timestamps():
    """If this fails, the hints for text are no longer needed."""
    table = pyarrow.json.read_json(io.BytesIO(b'{"x": "2020-01-01T00:00:00+02:00"}'))
    assert pa.types.is_timestamp(table.schema.field("x").type)


@pytest.mark.parametrize("permutation", [None, [1, 0]])
def test_tensors_are_read_as_they_are_written(reader, permutation):
    tensors = pa.fixed_shape_tensor(pa.float64(), [2, 3], permutation=permutation)
    storage = pa.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]], tensors.storage_type)
    table = pa.table({"x": pa.ExtensionArray.from_storage(tensors, storage)})
    text = io.BytesIO()
    xt.write_json(xt.from_arrow(table), text)
    read = reader(text.getvalue(), schema=table.schema)
    assert read["x"].numpy().tolist() == table["x"].chunk(0).to_numpy_ndarray().tolist()
    assert xt.to_arrow(read).column(0) == table.column(0).chunk(0)


def test_a_time_of_day_keeps_its_nanoseconds(reader):
    schema = pa.schema({"at": pa.time64("ns")})
    text = lines({"at": "00:00:00.000001001"}, {"at": "00:00:01"})
    assert reader(text, schema=schema)["at"].numpy().tolist() == [1001, 10**9]


def test_text_that_is_not_base64_is_named_so(reader):
    schema = pa.schema({"raw": pa.binary()})
    assert reader(b'{"raw": "AP8="}', schema=schema)["raw"].numpy().tolist() == [b"\0\xff"]
    with pytest.raises(xt.errors.ExtensorError, match=r"raw.*got text that is not base64"):
        reader(b'{"raw": "%"}', schema=schema)


def union(*variants):
    codes = pa.array(range(len(variants)), pa.int8())
    arrays = [pa.concat_arrays([array] * len(variants)) for array in variants]
    return pa.UnionArray.from_sparse(codes, arrays)


WHEN, RAW = pa.array([1], pa.timestamp("s", "UTC")), pa.array([b"\0\xff"])
RECORD = pa.StructArray.from_arrays([WHEN], ["at"])


@pytest.mark.parametrize(
    "column",
    [
        pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.int8()), RAW),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 0], pa.int8()), WHEN),
        pa.RunEndEncodedArray.from_arrays([2], WHEN),
        pa.RunEndEncodedArray.from_arrays([2], RAW),
        union(RAW, pa.array([1])),
        union(WHEN, pa.array([1])),
        union(pa.array(["2020-01-01"]), WHEN.cast(pa.int64())),
        union(RECORD, pa.array([1])),
        union(RECORD),
        union(pa.array([decimal.Decimal("1.50")]), pa.array([7])),
        union(pa.array([decimal.Decimal("1.50")]), pa.array([True])),
        union(RECORD, pa.StructArray.from_arrays([WHEN], ["to"])),
        union(pa.array([[1]], pa.list_(WHEN.type)), pa.array(["a"])),
    ],
    ids=lambda column: str(column.type),
)
def test_text_stands_for_values_in_dictionaries_runs_and_unions(column):
    records = xt.from_arrow(pa.table({"x": column}), nulls="mask")
    text = io.BytesIO()
    xt.write_json(records, text)
    read = xt.read_json(text.getvalue(), schema=xt.spec_of(records))
    assert xt.to_arrow(read)["x"].type == column.type
    assert xt.to_arrow(read)["x"].to_pylist() == column.to_pylist()
