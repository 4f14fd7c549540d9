"""`columns` and `schema` of from_arrow, for each kind of Arrow data."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, FieldError, NullError, StructureError

TABLE = pa.table(
    {
        "title": ["Snickerdoodles", "Flapjacks"],
        "rating": pa.array([4, 5], pa.int8()),
        "steps": [[{"minutes": 5, "tool": "bowl"}], [{"minutes": 8, "tool": None}]],
    }
)
STRUCTS = TABLE.to_struct_array()


class Exported:
    """An object of another library that exports records by the PyCapsule interface."""

    def __init__(self, table=TABLE):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


KINDS = {
    "table": TABLE,
    "batch": TABLE.to_batches()[0],
    "chunked structs": STRUCTS,
    "structs": STRUCTS.combine_chunks(),
    "sliced": pa.concat_tables([TABLE, TABLE]).slice(2),
    "reader": None,
    "exported": Exported(),
}


@pytest.fixture(params=KINDS)
def data(request):
    return TABLE.to_reader() if request.param == "reader" else KINDS[request.param]


def test_columns_are_those_of_all_records(data):
    found = xt.from_arrow(data, columns=["steps.minutes", "title"])
    everything = xt.from_arrow(TABLE, nulls="mask").with_only("title", "steps.minutes")
    assert {*found.field_names()} == {"steps", "title"}
    assert [{**each} for each in found.to_py()] == everything.to_py()


def test_nulls_of_other_columns_do_not_count(data):
    assert xt.from_arrow(data, columns=["rating"]).to_py() == [{"rating": 4}, {"rating": 5}]


def test_a_schema_casts_columns(data):
    schema = pa.schema({"rating": pa.float32(), "title": pa.large_string()})
    found = xt.from_arrow(data, schema=schema)
    assert found["rating"].dtype == tf.float32
    assert xt.to_arrow(found).schema == schema


def test_a_spec_gives_masks_and_row_splits(data):
    spec = xt.spec_of(xt.from_arrow(TABLE, nulls={"*": "mask"}, row_splits_dtype=tf.int32))
    assert spec.is_compatible_with(xt.from_arrow(data, schema=spec))


def test_a_table_of_no_columns_keeps_its_records():
    empty = pa.array([{}, {}], pa.struct([]))
    assert xt.from_arrow(empty, schema=pa.schema([])).shape == (2,)


def test_a_graph_reads_eagerly(data):
    found = tf.function(lambda: xt.from_arrow(data, columns=["rating"])["rating"])()
    assert found.numpy().tolist() == [4, 5]


@pytest.mark.parametrize(
    ("error", "arguments", "text"),
    [
        (FieldError, {"columns": ["titel"]}, "titel"),
        (FieldError, {"schema": pa.schema({"titel": pa.string()})}, "titel"),
        (DTypeError, {"schema": pa.schema({"title": pa.int32()})}, "title"),
        (DTypeError, {"schema": {"title": "string"}}, "schema"),
        (NullError, {"columns": ["steps.tool"]}, r"steps\[\*\]\.tool"),
        (StructureError, {"columns": []}, "columns"),
    ],
)
def test_arguments_that_do_not_fit_the_data_are_named(data, error, arguments, text):
    with pytest.raises(error, match=text):
        xt.from_arrow(data, **arguments)


def test_lists_of_records_have_no_columns():
    with pytest.raises(DTypeError, match="with_only"):
        xt.from_arrow(pa.array([[{"a": 1}]]), columns=["a"])


def test_data_that_is_no_table_has_no_columns():
    with pytest.raises(DTypeError, match="a Table"):
        xt.from_arrow({"a": [1]}, columns=["a"])


def test_corrupt_data_is_refused_before_it_is_cast():
    offsets = np.array([0, 900, 2], np.int32)
    bad = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])
    table = pa.Table.from_arrays([bad], names=["a"])
    with pytest.raises(StructureError, match="corrupt"):
        xt.from_arrow(table, schema=pa.schema({"a": pa.large_string()}))


def damaged():
    """Returns records of which the field "bad" has an offset outside its memory."""
    offsets = np.array([0, 900, 2], np.int32)
    bad = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])
    return pa.StructArray.from_arrays([pa.array([4, 5]), bad], ["rating", "bad"])


@pytest.mark.parametrize("form", ["structs", "batch", "table", "reader", "exported"])
def test_only_columns_that_are_asked_for_must_be_valid(form):
    structs = damaged()
    batch = pa.RecordBatch.from_struct_array(structs)
    table = pa.Table.from_batches([batch])
    made = {"structs": structs, "batch": batch, "table": table, "exported": Exported(table)}

    def read(**arguments):
        return xt.from_arrow(table.to_reader() if form == "reader" else made[form], **arguments)

    for arguments in ({"columns": ["rating"]}, {"schema": pa.schema({"rating": pa.float32()})}):
        assert read(**arguments).to_py() == [{"rating": 4}, {"rating": 5}]
    wide = pa.schema({"bad": pa.large_string()})
    for arguments in ({"columns": ["bad", "rating"]}, {"columns": ["bad"]}, {"schema": wide}):
        with pytest.raises(StructureError, match=r"bad: .*[Oo]ffset"):
            read(**arguments)


def test_a_column_that_is_asked_for_has_as_many_values_as_there_are_records():
    # pyarrow gives a batch that is imported the whole columns of the struct that was sliced.
    batch = pa.record_batch(pa.array([{"x": i, "y": i} for i in range(10)]).slice(0, 3))
    if len(batch.column(0)) == 3:  # a release that does not
        pytest.skip("this pyarrow imports slices as they are")
    schema = pa.schema({"y": pa.float32()})
    for data in (batch, pa.Table.from_batches([batch])):
        for arguments in ({"columns": ["x"]}, {"columns": ["y", "x"]}, {"schema": schema}):
            with pytest.raises(StructureError):
                xt.from_arrow(data, **arguments)


def test_an_array_that_begins_before_its_memory_has_no_columns(run_python):
    # Reading one ends the process, as pyarrow's own reading does.
    run_python(
        """
        import pyarrow as pa
        import extensor as xt

        inner = pa.array([1.5] * 600)
        before = pa.Array.from_buffers(inner.type, 600, inner.buffers(), 0, -1)
        for data in (
            pa.Table.from_batches([pa.RecordBatch.from_arrays([before], ["x"])]),
            pa.StructArray.from_arrays([before], ["x"]),
            pa.StructArray.from_buffers(pa.struct({"x": pa.float64()}), 1, [None], -1, -1, [inner]),
        ):
            for schema in (pa.schema({"x": pa.float32()}), pa.schema({"x": pa.float64()})):
                try:
                    xt.from_arrow(data, schema=schema)
                except xt.errors.StructureError as error:
                    assert error.expected and error.received and error.fix
                else:
                    raise AssertionError(f"{data} was taken")
        """
    )
