"""Fields of structs with a mask and a union, at which pyarrow's own function ends the process."""

import io
import textwrap

import pyarrow as pa
import pytest

import extensor as xt
from extensor import errors
from extensor._arrow.selection import items_of
from extensor._arrow.struct_fields import batch_of, struct_fields

UNION = pa.UnionArray.from_dense(
    pa.array([0, 1, 0], pa.int8()),
    pa.array([0, 0, 1], pa.int32()),
    [pa.array([1, 2]), pa.array(["a"])],
    ["i", "s"],
)


def masked(*fields, mask=(False, False, False)):
    names = [f"f{i}" for i in range(len(fields))]
    return pa.StructArray.from_arrays(fields, names, mask=pa.array(mask))


def test_fields_of_structs_with_a_mask_and_a_union():
    array = masked(UNION, pa.array([1, None, 3]))
    assert [field.to_pylist() for field in struct_fields(array)] == [[1, "a", 2], [1, None, 3]]
    assert [field.to_pylist() for field in struct_fields(array[1:])] == [["a", 2], [None, 3]]
    assert batch_of(array[1:]).to_pylist() == array[1:].to_pylist()
    with pytest.raises(errors.UnsupportedTypeError, match=r"f0: .*1 null records with a union"):
        struct_fields(masked(UNION, mask=(False, True, False)))


def test_fields_of_other_structs_are_null_where_the_struct_is():
    array = masked(pa.array([1, 2, 3]), mask=(False, True, False))
    assert struct_fields(array)[0].to_pylist() == [1, None, 3]
    assert batch_of(array).to_pylist() == [{"f0": 1}, {"f0": None}, {"f0": 3}]
    assert batch_of(pa.array([{}, {}], pa.struct([]))).num_columns == 0


CODE = textwrap.dedent(
    """
    import pyarrow as pa
    import extensor as xt

    union = pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()),
        [pa.array([1, 2]), pa.array(["a"])], ["i", "s"],
    )

    def masked(array, mask=(False, False, False)):
        return pa.StructArray.from_arrays([array], ["u"], mask=pa.array(mask))

    class Source:
        def __init__(self, array):
            self.array = array

        def __arrow_c_array__(self, requested_schema=None):
            return self.array.__arrow_c_array__(requested_schema)

    class Stream(Source):
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([self.array]).__arrow_c_stream__(requested_schema)

    inner = xt.from_arrow(pa.table({"r": masked(union)}))
    wanted = [{"u": 1}, {"u": "a"}, {"u": 2}]
    {call}
    """
)
CALLS = {
    "read_arrow": "assert xt.read_arrow(Source(masked(union))).to_py() == wanted",
    "read_arrow of a stream": "assert xt.read_arrow(Stream(masked(union))).to_py() == wanted",
    "read_arrow of nulls": """
try:
    xt.read_arrow(Source(masked(union, (False, True, False))))
except xt.errors.UnsupportedTypeError as error:
    assert "u: " in str(error)
else:
    raise AssertionError
""",
    "to_pandas": "assert len(xt.to_pandas(inner)) == 3",
    "to_pandas with nulls": """
rows = [{"r": {"u": 1}}, {"r": {"u": "a"}}, {"r": None}]
records = xt.struct.constant(rows, nulls="mask", conflicts="union")
assert len(xt.to_pandas(records)) == 3
""",
    "read_json": """
text = b'{"r": {"u": 1}}\\n{"r": {"u": "a"}}\\n{"r": null}\\n'
assert xt.read_json(text, nulls="mask", conflicts="union").to_py()[2] == {"r": None}
""",
    "read_json of null records": """
try:
    xt.read_json(b'{"u": 1}\\n{"u": "a"}\\nnull\\n', nulls="mask", conflicts="union")
except xt.errors.ExtensorError:
    pass
""",
    "from_pandas": """
import pandas as pd
frame = pd.DataFrame({"r": [{"u": 1}, {"u": "a"}, None]})
assert xt.from_pandas(frame, nulls="mask", conflicts="union").to_py()[2] == {"r": None}
""",
    "from_awkward": """
import awkward as ak
array = ak.Array([{"r": {"u": 1}}, {"r": {"u": "a"}}, {"r": None}])
try:
    assert len(xt.from_awkward(array, nulls="mask").to_py()) == 3
except xt.errors.ExtensorError:
    pass
array = ak.Array([{"u": 1}, {"u": "a"}])
assert xt.from_awkward(array).to_py() == [{"u": 1}, {"u": "a"}]
""",
}


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("call", CALLS)
def test_no_door_ends_the_process(run_python, call):
    run_python(CODE.replace("{call}", CALLS[call]))


JSON = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "2", None, "4", "5", "6"]))
NULL = pa.array([False, True, False])


@pytest.mark.parametrize("values", [JSON, pa.StructArray.from_arrays([JSON], ["a"])], ids=str)
@pytest.mark.parametrize("start", [0, 1])
def test_items_of_lists_that_arrow_does_not_flatten(values, start):
    offsets, starts, sizes = (pa.array(x, pa.int32()) for x in ([0, 2, 3, 6], [4, 0, 1], [2, 1, 3]))
    for lists in (
        pa.ListArray.from_arrays(offsets, values, mask=NULL),
        pa.FixedSizeListArray.from_arrays(values, 2, mask=NULL),
        pa.ListViewArray.from_arrays(starts, sizes, values, mask=NULL),
    ):
        part = lists.slice(start)
        rows = [row for row in part.to_pylist() if row is not None]
        assert items_of(part).to_pylist() == [item for row in rows for item in row]
        records = xt.from_arrow(pa.table({"x": part}), nulls="mask")
        text = io.BytesIO()
        xt.write_json(records, text)
        assert xt.read_json(text.getvalue(), schema=xt.spec_of(records)).to_py() == records.to_py()
        assert "x[*]" in xt.data.describe(records).paths
