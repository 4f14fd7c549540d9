"""Hypothesis strategies for Arrow data: any schema that has a counterpart, and records of it."""

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from extensor._arrow.arrow_type import inner_fields, with_inner_fields

# Generated schemas differ in so many ways that a property over them asks for more examples.
MANY = settings(max_examples=5 * settings.default.max_examples)

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(),
            pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]  # fmt: skip
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
SIZED = [pa.binary(0), pa.binary(3)]

# Arrow names are UTF-8, which has no surrogates.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(
    ["title", "est. time", "a.b", "", " ", '"', "[*]", "a\nb", "row_splits", "values", "naïve"]
)
metadata = st.none() | st.dictionaries(st.binary(max_size=3), st.binary(max_size=3), min_size=1)


def _fields(types: st.SearchStrategy, max_size: int = 3) -> st.SearchStrategy:
    field = st.builds(pa.field, names, types, nullable=st.booleans(), metadata=metadata)
    return st.lists(field, max_size=max_size, unique_by=lambda f: f.name)


def _nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.large_list, inner),
        st.builds(lambda t, nullable: pa.list_(pa.field("element", t, nullable)),
                  inner, st.booleans()),
        st.builds(pa.list_, inner, st.integers(0, 3)),
        _fields(inner).map(pa.struct),
    )  # fmt: skip


leaf_types = st.sampled_from([*INTEGERS, *FLOATS, pa.bool_(), *TEXTS, *BYTES, *SIZED])
types = st.recursive(leaf_types, _nested, max_leaves=4)
schemas = st.builds(lambda fields, meta: pa.schema(fields, meta), _fields(types, 4), metadata)


def _nullable(field: pa.Field) -> pa.Field:
    inner = [_nullable(part) for part in inner_fields(field.type)]
    return field.with_type(with_inner_fields(field.type, inner)).with_nullable(True)


nullable_schemas = schemas.map(lambda schema: pa.schema([_nullable(f) for f in schema]))


def values(arrow_type: pa.DataType, nulls: bool = False) -> st.SearchStrategy:
    """Returns a strategy for Python values of an Arrow type, with or without nulls inside."""
    t = pa.types

    def inner(inner_type: pa.DataType) -> st.SearchStrategy:
        found = values(inner_type, nulls)
        return st.none() | found if nulls else found

    if t.is_boolean(arrow_type):
        return st.booleans()
    if t.is_integer(arrow_type):
        bits = arrow_type.bit_width
        if t.is_signed_integer(arrow_type):
            return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return st.integers(0, 2**bits - 1)
    if t.is_floating(arrow_type):
        floats = st.floats(width=arrow_type.bit_width)
        # Older releases of pyarrow make float16 arrays of NumPy's own scalars only.
        return floats.map(np.float16) if t.is_float16(arrow_type) else floats
    if arrow_type in TEXTS:
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    if arrow_type in BYTES:
        return st.binary(max_size=30)
    if arrow_type in SIZED:
        return st.binary(min_size=arrow_type.byte_width, max_size=arrow_type.byte_width)
    if t.is_fixed_size_list(arrow_type):
        size = arrow_type.list_size
        return st.lists(inner(arrow_type.value_type), min_size=size, max_size=size)
    if t.is_struct(arrow_type):
        return st.fixed_dictionaries({f.name: inner(f.type) for f in arrow_type.fields})
    return st.lists(inner(arrow_type.value_type), max_size=3)


@st.composite
def arrays(draw, arrow_type: pa.DataType, count: int, nulls: bool = False) -> pa.Array:
    """An array of so many values, perhaps a slice out of a longer one; with nulls inside them."""
    before, after = draw(st.sampled_from([(0, 0), (1, 0), (0, 2), (3, 1)]))
    whole = draw(st.lists(values(arrow_type, nulls), min_size=before + count + after,
                          max_size=before + count + after))  # fmt: skip
    return pa.array(whole, arrow_type).slice(before, count)


@st.composite
def records(draw, schema: pa.Schema, max_rows: int = 5, nulls: bool = False):
    """Records of a schema in any form that `from_arrow` takes, with or without nulls inside."""
    record = pa.struct(list(schema))
    counts = draw(st.lists(st.integers(0, max_rows), min_size=1, max_size=3))
    chunks = [draw(arrays(record, n, nulls)) for n in counts]
    form = draw(st.sampled_from(["batch", "table", "struct array", "chunked array"]))
    if form == "struct array":
        return chunks[0]
    if form == "chunked array":
        return pa.chunked_array(chunks, record)
    batches = [_batch(chunk, schema) for chunk in chunks]
    return batches[0] if form == "batch" else pa.Table.from_batches(batches, schema)


def _batch(chunk: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    if not len(schema):
        return pa.RecordBatch.from_struct_array(chunk).replace_schema_metadata(schema.metadata)
    columns = [chunk.field(i) for i in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@st.composite
def schemas_and_records(draw, max_rows: int = 5, nulls: bool = False):
    """A schema, and records of it."""
    schema = draw(nullable_schemas if nulls else schemas)
    return schema, draw(records(schema, max_rows, nulls))


def exactly(data) -> str:
    """Returns a text that two pieces of Arrow data share only if they hold the same values.

    It tells -0.0 from 0.0 and takes NaN for equal to itself, which `equals` does not.
    """
    return repr(data.to_pylist())
