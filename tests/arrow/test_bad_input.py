"""Arrow data that has no counterpart is an error that says where, what and how to fix it."""

import ctypes

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import (
    DTypeError,
    ExtensorError,
    FieldError,
    FormatError,
    NullError,
    StructureError,
    UnsupportedTypeError,
)

BUILTIN = {
    DTypeError: TypeError,
    FieldError: KeyError,
    FormatError: ValueError,
    NullError: ValueError,
    StructureError: ValueError,
    UnsupportedTypeError: TypeError,
}


def fails(kind, function, *args, path, expected, received, fix, **kwargs):
    """Asserts that a call raises an error with these parts; the last three are contained."""
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    error = caught.value
    assert type(error) is kind
    assert isinstance(error, ExtensorError)
    assert isinstance(error, BUILTIN[kind])
    assert error.path == path
    assert expected in error.expected
    assert received in error.received
    assert fix in error.fix
    for part in (error.path, error.expected, error.received, error.fix):
        assert part in str(error)


# Nulls.


def nested(value, null_at):
    """Returns five records of which one has a null, at some depth."""
    records = [
        {"recipe": {"title": "a", "steps": [{"minutes": 1, "tools": ["x", "y"]}, {"minutes": 2,
         "tools": []}], "grid": [[1, 2], [3, 4]]}}
        for _ in range(5)
    ]  # fmt: skip
    record = records[value]
    match null_at:
        case "recipe":
            record["recipe"] = None
        case "recipe.title":
            record["recipe"]["title"] = None
        case "recipe.steps":
            record["recipe"]["steps"] = None
        case "recipe.steps, an element":
            record["recipe"]["steps"][1] = None
        case "recipe.steps.minutes":
            record["recipe"]["steps"][1]["minutes"] = None
        case "recipe.steps.tools":
            record["recipe"]["steps"][0]["tools"] = None
        case "recipe.steps.tools, an element":
            record["recipe"]["steps"][0]["tools"][1] = None
        case "recipe.grid":
            record["recipe"]["grid"] = None
        case "recipe.grid, an element":
            record["recipe"]["grid"][1] = None
        case "recipe.grid, an element of an element":
            record["recipe"]["grid"][0][1] = None
    return records


STEP = pa.struct([("minutes", pa.int64()), ("tools", pa.list_(pa.string()))])
NESTED = pa.schema([("recipe", pa.struct([
    ("title", pa.string()), ("steps", pa.list_(STEP)), ("grid", pa.list_(pa.list_(pa.int8()), 2)),
]))])  # fmt: skip
PLACES = ["recipe", "recipe.title", "recipe.steps", "recipe.steps, an element",
          "recipe.steps.minutes", "recipe.steps.tools", "recipe.steps.tools, an element",
          "recipe.grid", "recipe.grid, an element",
          "recipe.grid, an element of an element"]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", ["table", "slice", "chunks", "struct array", "batch"])
def test_a_null_names_its_path_and_the_first_record(place, form):
    table = pa.Table.from_pylist(nested(3, place), NESTED)
    record = 3
    if form == "slice":
        table, record = table.slice(2), 1
    elif form == "chunks":
        table = pa.concat_tables([table.slice(0, 1), table.slice(1, 1), table.slice(2)])
        assert table.column(0).num_chunks == 3
    elif form == "struct array":
        table = table.combine_chunks().to_batches()[0].to_struct_array()
    elif form == "batch":
        table = table.slice(1).to_batches()[0]
        record = 2
    path = place.split(",")[0].replace(".steps.", ".steps[*].") + "[*]" * place.count("an element")
    fails(NullError, xt.from_arrow, table, path=path, expected="without nulls",
          received=f"1 null, the first in record {record}", fix="nulls={")  # fmt: skip


def test_of_several_nulls_the_first_is_named():
    table = pa.table({"x": [[1], [2, None], [], [None, None]]})
    fails(NullError, xt.from_arrow, table, path="x[*]", expected="without nulls",
          received="3 nulls, the first in record 1", fix='nulls={"x[*]": "mask"}')  # fmt: skip


def test_a_null_record_is_an_error():
    fails(NullError, xt.from_arrow, pa.array([{"x": 1}, None]), path="records",
          expected="without nulls", received="1 null, the first in record 1",
          fix="drop_null")  # fmt: skip
    with pytest.raises(NullError):
        xt.from_arrow(pa.scalar(None, pa.struct([("x", pa.int64())])))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([None, 1, 2]).slice(1),
        pa.array([[None], [1]]).slice(1),
        pa.array([{"x": None}, {"x": 1}]).slice(1),
        pa.array([[None, 1], [1, 2]], pa.list_(pa.int64(), 2)).slice(1),
        pa.chunked_array([pa.array([None, 1]).slice(1), pa.array([2])]),
    ],
    ids=["number", "list", "struct", "fixed_size_list", "chunked"],
)
def test_a_null_outside_the_slice_is_no_null(array):
    records = xt.from_arrow(pa.table({"x": array}))
    assert xt.to_arrow(records).to_pylist() == [{"x": v} for v in array.to_pylist()]


# Types.


class _CSchema(ctypes.Structure):
    """`struct ArrowSchema` of Arrow's C data interface."""

    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("format", "name", "metadata")),
        *((name, ctypes.c_int64) for name in ("flags", "n_children")),
        *((name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private")),
    ]


@ctypes.CFUNCTYPE(None, ctypes.POINTER(_CSchema))
def _release(schema):
    schema.contents.release = None


def of_format(code):
    """Returns the type of a format of the C data interface, which pyarrow may not make itself."""
    released = ctypes.cast(_release, ctypes.c_void_p)
    schema = _CSchema(code, b"", None, 0, 0, None, None, released, None)
    return pa.DataType._import_from_c(ctypes.addressof(schema))


@pytest.mark.parametrize("code", [b"tiM", b"tiD"], ids=["months", "days"])
def test_a_type_without_counterpart_is_named_with_its_path(code):
    arrow = of_format(code)  # pyarrow has no arrays of these intervals
    said = dict(expected="has a tensor", received=str(arrow), fix="Cast the column")
    fails(UnsupportedTypeError, xt.spec_from_schema, pa.schema({"x": arrow}), path="x", **said)
    nested = pa.struct({"l": pa.large_list(pa.struct({"y z": arrow}))})
    schema = pa.schema({"x": nested})
    fails(UnsupportedTypeError, xt.spec_from_schema, schema, path='x.l."y z"', **said)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.complex64, tf.complex128, tf.qint8], ids=str)
def test_a_dtype_that_arrow_lacks_is_named_with_its_path(dtype):
    field = tf.zeros([2], tf.float32)
    field = tf.quantization.quantize(field, 0, 1, dtype)[0] if dtype.is_quantized else tf.cast(
        field, dtype
    )  # fmt: skip
    records = xt.DenseStructuredTensor([2], {"r": xt.DenseStructuredTensor([2], {"x": field})})
    fails(UnsupportedTypeError, xt.to_arrow, records, path="r.x", expected="Arrow supports",
          received=dtype.name, fix="Cast the field")  # fmt: skip


def test_a_field_of_another_type_does_not_go_out():
    records = xt.DenseStructuredTensor([2], {"x": tf.sparse.from_dense([[1, 0], [0, 2]])})
    fails(UnsupportedTypeError, xt.to_arrow, records, path="x", expected="a tensor",
          received="SparseTensor", fix="without")  # fmt: skip


@pytest.mark.parametrize(
    "data", [pa.array([1]), pa.array([[1]]), pa.chunked_array([[1]]), pa.scalar(1), [{"x": 1}],
             {"x": [1]}, None, "table", np.zeros(3), tf.zeros(3), pa.schema([])],
    ids=lambda data: type(data).__name__,
)  # fmt: skip
def test_what_holds_no_records_is_an_error(data):
    fails(DTypeError, xt.from_arrow, data, path="from_arrow", expected="a Table",
          received=str(data.type) if isinstance(data, (pa.Array, pa.ChunkedArray))
          else type(data).__name__, fix="pa.array(dicts)")  # fmt: skip


@pytest.mark.parametrize("dtype", [tf.float32, tf.int16, "uint8"])
def test_row_splits_are_int64_or_int32(dtype):
    said = dict(path="row_splits_dtype", expected="int64 or int32",
                received=tf.as_dtype(dtype).name, fix="int64")  # fmt: skip
    fails(DTypeError, xt.from_arrow, pa.table({"x": [1]}), row_splits_dtype=dtype, **said)
    fails(DTypeError, xt.spec_from_schema, pa.schema([]), row_splits_dtype=dtype, **said)


# Names.


def test_two_fields_of_one_name_are_an_error():
    said = dict(expected="unique field name", received="two fields", fix="Rename")
    table = pa.table([[1], [2]], names=["a b", "a b"])
    fails(StructureError, xt.from_arrow, table, path='"a b"', **said)
    fails(StructureError, xt.spec_from_schema, table.schema, path='"a b"', **said)
    batch = pa.record_batch([pa.array([1]), pa.array([2])], ["a b", "a b"])
    fails(StructureError, xt.from_arrow, batch, path='"a b"', **said)
    struct = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    fails(StructureError, xt.from_arrow, struct, path="x", **said)
    table = pa.table({"l": pa.ListArray.from_arrays([0, 1], struct)})
    fails(StructureError, xt.from_arrow, table, path="l.x", **said)
    fails(StructureError, xt.spec_from_schema, table.schema, path="l.x", **said)
    one = xt.DenseStructuredTensor([1], {"x": [1]})
    fails(StructureError, xt.to_arrow, one, struct.type, path="x", **said)


@pytest.mark.parametrize("name", ["", " ", "a.b", '"', "[*]", "a\nb", "row_splits", "self", "ñ"])
def test_odd_names_are_no_error(name):
    table = pa.table({name: [1], "l": [[{name: 2}]]})
    records = xt.from_arrow(table)
    assert records[(name,)].numpy().tolist() == [1]
    assert records[name].numpy().tolist() == [1]
    assert records["l", name].to_list() == [[2]]
    assert xt.to_arrow(records, table.schema).equals(table.to_batches()[0])


@pytest.mark.parametrize("records", [pa.table({"x": [1], "l": [[{"y": "a"}]]}).slice(1),
                                     pa.table({"x": pa.chunked_array([], pa.int64())}),
                                     pa.table({}), pa.array([], pa.struct([]))],
                         ids=["sliced away", "no chunk", "no column", "no field"])  # fmt: skip
def test_no_records_are_no_error(records):
    tensor = xt.from_arrow(records)
    assert tensor.shape == [0]
    assert tensor.to_py() == []
    assert xt.to_arrow(tensor).num_rows == 0


# Corrupt memory: nothing may be read by offsets that lead out of it. In a process of their own,
# because what goes wrong there ends the process.

_HOSTILE = """
import numpy as np, pyarrow as pa, tensorflow as tf
import extensor as xt
from extensor.errors import StructureError

SPOILS = []

def build(kind, offsets, child):
    # pyarrow makes no array of bad offsets, so it gets them later, in `refused`.
    wide = "large" in str(kind)
    room = np.zeros(len(offsets), np.int64 if wide else np.int32)
    SPOILS.append((room, offsets))
    buffers = [None, pa.py_buffer(room)]
    count = len(offsets) - 1
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.Array.from_buffers(kind, count, buffers, children=[child])
    return pa.Array.from_buffers(kind, count, [*buffers, child])

def refused(table, *paths):
    for room, offsets in SPOILS:
        room[:] = offsets
    SPOILS.clear()
    for dtype in (tf.int64, tf.int32):
        try:
            value = xt.from_arrow(table, row_splits_dtype=dtype)
        except StructureError as error:
            assert isinstance(error, ValueError)
            assert error.path in paths, (error.path, paths)
            assert error.expected and error.received and error.fix
        else:
            raise AssertionError(f"{paths} was taken: {value}")

LISTS = [pa.list_(pa.int64()), pa.large_list(pa.int64())]
STRINGS = [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()]
"""

HOSTILE_OFFSETS = {
    "negative": [-8, 0, 2, 4],
    "negative inside": [0, -8, 2, 4],
    "decreasing": [0, 3, 1, 4],
    "decreasing at the end": [0, 4, 4, 2],
    "overrunning": [0, 2, 4, 1 << 30],
    "overrunning inside": [0, 1 << 30, 2, 4],
    "overrunning at the start": [1 << 30, 1 << 30, 1 << 30, 1 << 30],
    "ending one too late": [0, 2, 4, 5],
    "least integer": [0, -(1 << 31), 2, 4],
    "greatest integer": [0, (1 << 31) - 1, 2, 4],
}


def test_offsets_that_leave_their_memory_are_refused(run_python):
    run_python(
        _HOSTILE
        + f"""
for name, offsets in {HOSTILE_OFFSETS}.items():
    for kind in LISTS:
        table = pa.table({{"x": build(kind, offsets, pa.array([1, 2, 3, 4]))}})
        refused(table, "x")
        refused(table.to_batches()[0], "x")
    for kind in STRINGS:
        refused(pa.table({{"x": build(kind, offsets, pa.py_buffer(b"abcd"))}}), "x")
"""
    )


def test_offsets_that_leave_their_memory_are_refused_in_any_number(run_python):
    # Long arrays of strings take other ways than short ones.
    run_python(
        _HOSTILE
        + """
numbers, letters = pa.array(range(3000)), pa.py_buffer(b"a" * 3000)
for at in (0, 1, 1500, 2999, 3000):
    for bad in (-8, 1 << 30, -(1 << 31), (1 << 31) - 1, 3001, at - 1000):
        offsets = [*range(at), bad, *range(at + 1, 3001)]
        for kind in [*LISTS, *STRINGS]:
            child = letters if kind in STRINGS else numbers
            refused(pa.table({"x": build(kind, offsets, child)}), "x")
"""
    )


def test_offsets_that_leave_their_memory_are_refused_at_any_depth(run_python):
    run_python(
        _HOSTILE
        + f"""
for name, offsets in {HOSTILE_OFFSETS}.items():
    for kind in [*LISTS, *STRINGS]:
        child = pa.py_buffer(b"abcd") if kind in STRINGS else pa.array([1, 2, 3, 4])
        for shape in ("struct", "list of structs", "fixed_size_list"):
            array = build(kind, offsets, child)
            if shape == "fixed_size_list":
                array = pa.Array.from_buffers(pa.list_(kind, 3), 1, [None], children=[array])
                refused(pa.table({{"x": array}}), "x")
                continue
            array = pa.StructArray.from_arrays([array], ["y"])
            if shape == "list of structs":
                array = pa.ListArray.from_arrays([0, 3], array)
            # Where Arrow itself rejects the column as a whole, only the column is named.
            refused(pa.table({{"x": array}}), "x", "x.y")
"""
    )


def test_hostile_chunks_are_refused_before_they_are_joined(run_python):
    run_python(
        _HOSTILE
        + f"""
for name, offsets in {HOSTILE_OFFSETS}.items():
    for kind in [*LISTS, *STRINGS]:
        child = pa.py_buffer(b"abcd") if kind in STRINGS else pa.array([1, 2, 3, 4])
        for order in ("bg", "gb", "bb"):
            chunks = [build(kind, offsets if c == "b" else [0, 2, 4], child) for c in order]
            refused(pa.table({{"x": pa.chunked_array(chunks)}}), "x")
"""
    )


def test_buffers_that_are_too_short_are_refused(run_python):
    # An IPC stream says how long an array is, and its reader believes it.
    run_python(
        _HOSTILE
        + """
def lengthened(array):
    table = pa.table({"x": array})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    there = (12345).to_bytes(8, "little")
    data = sink.getvalue().to_pybytes()
    assert there in data
    return pa.ipc.open_stream(data.replace(there, (1 << 22).to_bytes(8, "little"))).read_all()

numbers = np.arange(12345)
for kind in (pa.int16(), pa.int64(), pa.float32(), pa.bool_(), pa.float16()):
    array = pa.array((numbers % 2).astype(bool)) if kind == pa.bool_() else pa.array(
        (numbers % 7).astype(kind.to_pandas_dtype()), kind)
    table = lengthened(array)
    assert table.num_rows == 1 << 22
    refused(table, "x")
    refused(lengthened(pa.StructArray.from_arrays([array], ["y"])), "x")
    with_nulls = pa.array([None, *[False] * 12344]) if kind == pa.bool_() else pa.array(
        [None, *np.ones(12344, kind.to_pandas_dtype())], kind)
    refused(lengthened(with_nulls), "x")
for kind in STRINGS:
    refused(lengthened(pa.array(["ab"] * 12345, kind)), "x")
for kind in [*LISTS, pa.list_(pa.int64(), 1)]:
    refused(lengthened(pa.array([[1]] * 12345, kind)), "x")
"""
    )


def test_views_of_strings_that_leave_their_memory_are_refused(run_python):
    run_python(
        _HOSTILE
        + """
def view(length, prefix, buffer, offset):
    return np.array([length], np.int32).tobytes() + prefix + np.array([buffer, offset],
                                                                      np.int32).tobytes()
data = pa.py_buffer(b"abcdefghijklmnopqrstuvwxyz")
for kind in (pa.string_view(), pa.binary_view()):
    fine = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(view(20, b"abcd", 0, 0)), data])
    assert xt.from_arrow(pa.table({"x": fine}))["x"].numpy().tolist() == [data.to_pybytes()[:20]]
    for bad in (view(1 << 28, b"abcd", 0, 0), view(20, b"abcd", 0, 1 << 28),
                view(20, b"abcd", 7, 0), view(20, b"abcd", -1, 0), view(20, b"abcd", 0, -100),
                view(-5, b"abcd", 0, 0)):
        array = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bad), data])
        refused(pa.table({"x": array}), "x")
        refused(pa.table({"x": pa.chunked_array([array, fine])}), "x")
        struct = pa.StructArray.from_buffers(pa.struct([("y", kind)]), 1, [None], children=[array])
        refused(pa.table({"x": struct}), "x")
"""
    )


def test_an_empty_list_array_may_lack_its_offsets():
    # The Arrow format allows it, and other writers make use of that.
    nothing = pa.py_buffer(np.full(64, 255, np.uint8)).slice(0, 0)  # before what may not be read
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64())):
        for offsets in (None, nothing):
            array = pa.Array.from_buffers(kind, 0, [None, offsets], children=[pa.array([1])])
            for splits in (tf.int64, tf.int32):
                records = xt.from_arrow(pa.table({"x": array}), row_splits_dtype=splits)
                assert records["x"].row_splits.numpy().tolist() == [0]
                assert records["x"].to_list() == []


# The way out.


RECIPES = xt.DenseStructuredTensor([2], {
    "title": ["a", "b"],
    "time": [1, 300],
    "steps": tf.ragged.constant([[1, 2], [3]]),
    "grid": [[1, 2], [3, 4]],
    "record": xt.DenseStructuredTensor([2], {"x": [0.5, 1.0]}),
})  # fmt: skip


def schema(**changes):
    types = {
        "title": pa.string(),
        "time": pa.int32(),
        "steps": pa.list_(pa.int32()),
        "grid": pa.list_(pa.int32(), 2),
        "record": pa.struct([("x", pa.float32())]),
        **changes,
    }
    return pa.schema([(name, t) for name, t in types.items() if t is not None])


def test_the_schema_that_the_next_tests_spoil_is_right():
    assert xt.to_arrow(RECIPES, schema()).schema == schema()


@pytest.mark.parametrize(
    ("changes", "kind", "path", "expected", "received", "fix"),
    [
        ({"cook": pa.string()}, FieldError, "cook", "this field of the schema", "title, time",
         "with_updates"),
        ({"time": None}, FieldError, "time", "one of the schema's fields title, steps",
         "not in the schema", "without"),
        ({"record": pa.struct([("x", pa.float32()), ("y z", pa.int8())])}, FieldError,
         'record."y z"', "this field of the schema", "fields x", "with_updates"),
        ({"record": pa.struct([])}, FieldError, "record.x", "one of the schema's fields",
         "not in the schema", "without"),
        ({"title": pa.int32()}, DTypeError, "title", "int32", "string", "Change the schema"),
        ({"title": pa.binary(2)}, DTypeError, "title", "fixed_size_binary[2]", "string",
         "Change the schema"),
        ({"time": pa.int8()}, DTypeError, "time", "int8", "int32 values", "cast the field"),
        ({"time": pa.list_(pa.int32())}, DTypeError, "time", "list<item: int32>", "int32",
         "Change the schema"),
        ({"time": pa.struct([])}, DTypeError, "time", "struct<>", "int32", "Change the schema"),
        ({"time": pa.null()}, DTypeError, "time", "null", "int32", "Change the schema"),
        ({"steps": pa.int32()}, DTypeError, "steps", "int32", "a ragged value", "Change"),
        ({"steps": pa.list_(pa.list_(pa.int32()))}, DTypeError, "steps", "list<item: int32>",
         "int32", "Change the schema"),
        ({"steps": pa.list_(pa.int32(), 2)}, StructureError, "steps", "lists of 2",
         "a list of 1 in row 1", "list type"),
        ({"grid": pa.list_(pa.int32(), 3)}, StructureError, "grid", "lists of 3", "lists of 2",
         "Change the schema"),
        ({"grid": pa.int32()}, DTypeError, "grid", "int32", "lists of 2", "Change the schema"),
        ({"record": pa.float32()}, DTypeError, "record", "float", "records", "Change the schema"),
        ({"record": pa.struct([("x", pa.int32())])}, DTypeError, "record.x", "int32",
         "float32 values", "cast the field"),
    ],
)  # fmt: skip
def test_a_schema_that_does_not_fit_is_an_error(changes, kind, path, expected, received, fix):
    fails(kind, xt.to_arrow, RECIPES, schema(**changes), path=path, expected=expected,
          received=received, fix=fix)  # fmt: skip


def test_an_error_never_shows_what_a_tensor_holds():
    records = xt.DenseStructuredTensor([1], {"x": [424242]})
    with pytest.raises(DTypeError) as caught:
        xt.to_arrow(records, pa.schema([("x", pa.int8())]))
    assert "424242" not in str(caught.value)
    records = xt.DenseStructuredTensor([1], {"x": [b"\xffsecret"]})
    with pytest.raises(FormatError) as caught:
        xt.to_arrow(records)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("arrow_type", [None, pa.string(), pa.large_string(), pa.string_view()],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("count", [1, 600])
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_text_that_is_not_utf8_is_an_error(arrow_type, count, bad):
    records = xt.DenseStructuredTensor([count], {
        "r": xt.DenseStructuredTensor([count], {"x": [b"fine"] * (count - 1) + [bad]})
    })  # fmt: skip
    target = None if arrow_type is None else pa.schema([("r", pa.struct([("x", arrow_type)]))])
    fails(FormatError, xt.to_arrow, records, target, path="r.x", expected="UTF-8",
          received="not UTF-8", fix="binary")  # fmt: skip
    fine = pa.schema([("r", pa.struct([("x", pa.binary())]))])
    assert xt.to_arrow(records, fine).to_pylist()[-1] == {"r": {"x": bad}}


def test_strings_that_are_utf8_only_together_are_an_error():
    records = xt.DenseStructuredTensor([600], {"x": [b"\xc3", b"\xa9"] * 300})
    with pytest.raises(FormatError):
        xt.to_arrow(records)


@pytest.mark.parametrize("value", [None, 3, tf.zeros(3), pa.table({}), tf.ragged.constant([[1]])],
                         ids=lambda v: type(v).__name__)  # fmt: skip
def test_only_records_go_out(value):
    fails(DTypeError, xt.to_arrow, value, path="to_arrow", expected="a StructuredTensor",
          received=type(value).__name__, fix="DenseStructuredTensor")  # fmt: skip


@pytest.mark.parametrize("target", ["x", {"x": pa.int32()}, [("x", pa.int32())], 3])
def test_a_schema_is_an_arrow_schema(target):
    fails(DTypeError, xt.to_arrow, RECIPES, target, path="to_arrow: schema",
          expected="a Schema or struct type", received=type(target).__name__,
          fix="Leave it out")  # fmt: skip


def test_a_schema_has_no_place_for_lists_of_records():
    matrix = xt.DenseStructuredTensor([1, 2], {"x": [[1, 2]]})
    fails(DTypeError, xt.to_arrow, matrix, pa.schema([("x", pa.int32())]),
          path="to_arrow: schema", expected="1 list(s) of structs", received="Schema",
          fix="Leave it out")  # fmt: skip


@pytest.mark.parametrize(
    ("splits", "expected", "received"),
    [
        ([0, 2, 100], "end with 3", "100"),
        ([0, 2, 1 << 40], "end with 3", str(1 << 40)),
        ([0, 3, 1, 3], "never decrease", "after row 1"),
        ([1, 2, 3], "begin with 0", "1"),
    ],
)
def test_row_splits_that_nobody_checked_do_not_go_out(splits, expected, received):
    values = xt.DenseStructuredTensor([3], {"y": [1, 2, 3]})
    splits = tf.constant(splits, tf.int64)
    cut = tf.RaggedTensor.from_row_splits(values["y"], splits, validate=False)
    lists = {
        "x": cut,
        "l": xt.RaggedStructuredTensor._of_parts(values, splits),
    }
    for name, field in lists.items():
        records = xt.DenseStructuredTensor([splits.shape[0] - 1], {name: field})
        fails(StructureError, xt.to_arrow, records, path=name, expected=expected,
              received=received, fix="Row i holds")  # fmt: skip


def test_fields_that_nobody_compared_do_not_go_out():
    variable = tf.Variable([1, 2, 3], shape=[None])
    records = xt.DenseStructuredTensor([3], {"x": [1, 2, 3], "v": variable})
    assert xt.to_arrow(records).to_pylist() == [{"x": i, "v": i} for i in (1, 2, 3)]
    for length in (1, 5):
        variable.assign(tf.range(length))
        fails(StructureError, xt.to_arrow, records, path="v", expected="3 values",
              received=str(length), fix="one value for each")  # fmt: skip
    alone = xt.DenseStructuredTensor([None], {"v": variable})
    assert xt.to_arrow(alone).to_pylist() == [{"v": i} for i in range(5)]


def test_columns_of_other_lengths_than_their_batch_are_refused():
    # pyarrow gives a batch that is imported the whole columns of the struct that was sliced.
    struct = pa.array([{"x": i} for i in range(10)]).slice(0, 3)
    batch = pa.record_batch(struct)
    if len(batch.column(0)) == 3:  # a release that does not
        pytest.skip("this pyarrow imports slices as they are")
    for data in (batch, pa.Table.from_batches([batch])):
        fails(StructureError, xt.from_arrow, data, path="x", expected="3 values", received="10",
              fix="validate()")  # fmt: skip


def test_a_graph_holds_no_values_to_write():
    @tf.function
    def write(records):
        xt.to_arrow(records)

    fails(DTypeError, write, RECIPES, path="to_arrow: title", expected="hold values",
          received="a graph", fix="outside of tf.function")  # fmt: skip


def test_a_single_record_has_no_capsule():
    fails(DTypeError, pa.table, xt.DenseStructuredTensor([], {"x": 1}),
          path="Arrow PyCapsule export", expected="rank 1 or more", received="a single record",
          fix="to_arrow")  # fmt: skip
