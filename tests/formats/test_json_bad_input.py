"""Text that is not JSON, or not records, is refused by an error that names the line."""

import gzip

import pyarrow as pa
import pytest

import extensor as xt
from extensor._formats.json import fast
from extensor._formats.json.types import InexactError

GOOD = b'{"x": 1}\n'


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (b'{"x": 1, "x": 2}', "FormatError", "line 2: .* the key 'x' twice"),
        (b'{"y": [{"x": 1, "x": 2}]}', "FormatError", "line 2: .* the key 'x' twice"),
        (b'{"y": "\xff"}', "FormatError", "line 2: expected UTF-8 text, got the byte 0xff"),
        (b'{"\xff": 1}', "FormatError", "line 2: expected UTF-8 text, got the byte 0xff"),
        (b'{"y": {"\xff": 1}}', "FormatError", "line 2: expected UTF-8 text, got the byte 0xff"),
        (b'{"y": "\\ud800"}', "FormatError", "y, line 2 of JSON: expected text that UTF-8 can"),
        (b'{"\\ud800": 1}', "FormatError", "names of fields that UTF-8 can encode"),
        (b'{"x": 1', "FormatError", r"line 2, column 8: expected JSON"),
        (b'{"x": 1},', "FormatError", r"line 2, column 9: expected JSON"),
        (b"{'x': 1}", "FormatError", r"line 2, column 2: expected JSON"),
        (b'{"x": "a\tb"}', "FormatError", r"line 2, column 9: expected JSON"),
        (b"7", "StructureError", "line 2 of JSON: expected an object.*got a number"),
        (b'"x"', "StructureError", "line 2 of JSON: expected an object.*got a string"),
        (b"[]", "StructureError", "line 2 of JSON: expected an object.*got an array"),
        (b'{"x": ' + b"9" * 5000 + b"}", "FormatError", "line 2: expected numbers of fewer digits"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_line_that_is_not_a_record(text, error, message):
    with pytest.raises(getattr(xt.errors, error), match=message):
        xt.read_json(GOOD + text, nulls="mask")


@pytest.mark.parametrize(
    "text", [b"[1]", b'["x", {}]', b"7", b'[{"x": 1}] {}', b'[{"x": 1}', b"[{}{}]"]
)
def test_an_array_that_is_not_of_records(text):
    with pytest.raises((xt.errors.StructureError, xt.errors.FormatError), match=r"line 1"):
        xt.read_json(text)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_that_is_not_utf8(encoding):
    with pytest.raises(xt.errors.FormatError, match="expected UTF-8 text"):
        xt.read_json('{"x": "é"}'.encode(encoding))


@pytest.mark.whole("starts a process")
def test_deep_nesting_is_an_error_and_ends_no_process(run_python):
    run_python(r"""
        import pytest
        import extensor as xt
        for n in (900, 3_000, 20_000, 200_000):
            lists = b'{"x": ' + b"[" * n + b"]" * n + b"}"
            records = b'{"x":' * n + b"1" + b"}" * n
            hidden = b'{"s": "]]]]' + b"]" * n + b'\\"", "x": ' + b"[" * n + b"]" * n + b"}"
            for text in (lists, records, hidden, b"[" + records + b"]"):
                after_long_lines = (b'{"x": [' + b"1, " * 2_000 + b"1]}\n") * 300 + text
                for whole in (text, b'{"x": 1}\n' * 300_000 + text, after_long_lines):
                    with pytest.raises((xt.errors.StructureError, xt.errors.FormatError)):
                        xt.read_json(whole if n == 3_000 else text, nulls="mask")
                    if n != 3_000:
                        break
    """)


def test_a_record_is_deep_from_1001_levels_on_wherever_its_line_begins():
    for before in range(20):
        for levels in (3, 990, 1000, 1001):
            lists = b"[" * (levels - 1) + b"]" * (levels - 1)
            text = b" " * before + b'{"x":1}\n{"x":' + lists + b'}\n{"x":1}' + b" " * (before % 3)
            is_deep = False
            try:
                fast._Block(pa.py_buffer(text), None).expect_shallow()
            except InexactError:
                is_deep = True
            assert is_deep == (levels > 1000)


def test_many_brackets_that_are_not_deep_are_read():
    items = [{"l": [[1], []]}] * 5_000
    assert xt.read_json(pa.py_buffer(f'{{"x": {items}}}'.replace("'", '"').encode())).to_py() == [
        {"x": items}
    ]


@pytest.mark.parametrize(
    "compress", [gzip.compress, lambda b: pa.compress(b, "zstd", asbytes=True)]
)
def test_a_truncated_compressed_file(tmp_path, compress):
    whole = compress(GOOD * 1000)
    path = tmp_path / "file.jsonl.gz"
    for size in (len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:size])
        with pytest.raises(xt.errors.FormatError, match=f"^{path}: expected a complete"):
            xt.read_json(path)


def test_sources_that_are_none(tmp_path):
    with pytest.raises(xt.errors.MissingFileError, match=r"none.json"):
        xt.read_json(tmp_path / "none.json")
    with pytest.raises(xt.errors.StructureError, match="at least one file"):
        xt.read_json(tmp_path)
    with pytest.raises(xt.errors.FormatError, match="Give the text as bytes"):
        xt.read_json('{"x": 1}')
    with pytest.raises(xt.errors.DTypeError, match=r"xt\.struct\.constant"):
        xt.read_json([{"x": 1}])
    with pytest.raises(xt.errors.DTypeError, match="a path, a file object, bytes"):
        xt.read_json(5)
    with pytest.raises(xt.errors.DTypeError, match="conflicts"):
        xt.read_json(b"", conflicts="ignore")


@pytest.mark.parametrize(
    ("text", "records", "message"),
    [
        (b'{"a": {"b": 1}}', "a.b", "a.b: expected an array of records"),
        (b'{"a": {"b": 1}}', "a.c", "a.c: expected an object with the key 'c'"),
        (b'{"a": [1]}', "a", "record 0 of JSON: expected an object"),
        (b'{"a": []} {"a": []}', "a", "the end of the only object"),
    ],
)
def test_a_path_of_records_that_does_not_fit(text, records, message):
    with pytest.raises(xt.errors.ExtensorError, match=message):
        xt.read_json(text, records=records)
