"""Hypothesis strategies for Arrow data: supported schemas, and records of them."""

import decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from extensor._arrow.arrow_type import (
    contains_type,
    inner_fields,
    may_be_empty,
    with_inner_fields,
)

# Generated schemas differ in so many ways that a property over them asks for more examples.
MANY = settings(max_examples=5 * settings.default.max_examples)

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(),
            pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]  # fmt: skip
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
SIZED = [pa.binary(0), pa.binary(3)]
TIMES = [pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"),
         pa.time64("ns"), pa.timestamp("s"), pa.timestamp("us", "Europe/Paris"),
         pa.timestamp("ns"), pa.duration("ms"), pa.duration("ns")]  # fmt: skip
DECIMALS = [pa.decimal32(5, 2), pa.decimal64(12, 0), pa.decimal128(18, 3), pa.decimal128(38, 10),
            pa.decimal256(10, 2), pa.decimal256(76, 30)]  # fmt: skip
INTERVAL = pa.month_day_nano_interval()
EXTENSIONS = [pa.bool8(), pa.uuid(), pa.json_(pa.large_string()), pa.opaque(pa.int16(), "a", "b"),
              pa.fixed_shape_tensor(pa.float32(), [2, 1]),
              pa.fixed_shape_tensor(pa.int8(), [2, 3], permutation=[1, 0])]  # fmt: skip
ENCODED = [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_binary()),
           pa.dictionary(pa.int64(), pa.float64(), ordered=True),
           pa.dictionary(pa.int16(), pa.timestamp("s")), pa.dictionary(pa.int32(), pa.bool_()),
           pa.dictionary(pa.uint32(), pa.string_view()),
           pa.run_end_encoded(pa.int32(), pa.binary_view()),
           pa.run_end_encoded(pa.int16(), pa.string()), pa.run_end_encoded(pa.int64(), pa.int8()),
           pa.run_end_encoded(pa.int32(), pa.decimal128(4, 1)),
           pa.run_end_encoded(pa.int32(), pa.list_(pa.float16()))]  # fmt: skip

# Arrow names are UTF-8, which has no surrogates.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(
    ["title", "est. time", "a.b", "", " ", '"', "[*]", "a\nb", "row_splits", "values", "naïve"]
)
metadata = st.none() | st.dictionaries(st.binary(max_size=3), st.binary(max_size=3), min_size=1)


def _field(name: str, arrow_type: pa.DataType, nullable: bool, metadata: Any = None) -> pa.Field:
    nullable = nullable or pa.types.is_null(arrow_type)
    # Arrow has no fields of null that are not nullable.
    nullable = nullable or pa.types.is_null(arrow_type)
    return pa.field(name, arrow_type, nullable, metadata)


def _fields(types: st.SearchStrategy, max_size: int = 3) -> st.SearchStrategy:
    field = st.builds(_field, names, types, nullable=st.booleans(), metadata=metadata)
    return st.lists(field, max_size=max_size, unique_by=lambda f: f.name)


def _nested(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        _nested_plainly(inner),
        st.builds(pa.list_view, inner),
        st.builds(pa.large_list_view, inner),
        st.builds(lambda key, item, ordered: pa.map_(key, item, keys_sorted=ordered),
                  leaf_types, inner, st.booleans()),
    )  # fmt: skip


def _nested_plainly(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.large_list, inner),
        st.builds(lambda t, nullable: pa.list_(_field("element", t, nullable)),
                  inner, st.booleans()),
        st.builds(pa.list_, inner, st.integers(0, 3)),
        _fields(inner).map(pa.struct),
    )  # fmt: skip


@st.composite
def _unions(draw, inner: st.SearchStrategy) -> pa.DataType:
    fields = draw(_fields(inner).filter(len))
    codes = draw(st.permutations(range(5)))[: len(fields)]
    return draw(st.sampled_from([pa.dense_union, pa.sparse_union]))(fields, codes)


plain_types = st.sampled_from([*INTEGERS, *FLOATS, pa.bool_(), *TEXTS, *BYTES, *SIZED])
leaf_types = plain_types | st.sampled_from(
    [*TIMES, *DECIMALS, INTERVAL, *EXTENSIONS, *ENCODED, pa.list_(pa.null())]
)
types = st.recursive(leaf_types, _nested, max_leaves=4)
nullable_types = st.recursive(
    leaf_types | st.just(pa.null()), lambda inner: _nested(inner) | _unions(inner), max_leaves=4
)
# What Parquet stores and gives back as the same type.
storable_types = st.recursive(
    st.sampled_from([*INTEGERS, pa.float32(), pa.float64(), pa.bool_(), pa.string(),
                     pa.large_string(), pa.binary(), pa.date32()]),
    lambda inner: st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.large_list, inner),
        _fields(inner).filter(len).map(pa.struct),
        _unions(inner),
    ),
    max_leaves=4,
)  # fmt: skip
plain = st.recursive(plain_types, _nested_plainly, max_leaves=4)  # with the values of `to_pylist`


def _schemas(types: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(lambda fields, meta: pa.schema(fields, meta), _fields(types, 4), metadata)


def _nullable(field: pa.Field) -> pa.Field:
    arrow = field.type
    inner = [_nullable(part) for part in inner_fields(arrow)]
    if pa.types.is_map(arrow):  # a key is never null
        inner[0] = inner[0].with_nullable(False)
    if pa.types.is_union(arrow):
        make = pa.dense_union if arrow.mode == "dense" else pa.sparse_union
        return field.with_type(make(inner, arrow.type_codes)).with_nullable(True)
    return field.with_type(with_inner_fields(arrow, inner)).with_nullable(True)


def nullable_schemas(types: st.SearchStrategy) -> st.SearchStrategy:
    """Returns a strategy for schemas whose fields may all have nulls."""
    return _schemas(types).map(
        lambda schema: pa.schema([_nullable(f) for f in schema], schema.metadata)
    )


class Hidden(NamedTuple):
    """A null above a value that no reader may return."""

    value: Any


class Variant(NamedTuple):
    """A value of a union."""

    number: int
    value: Any


def values(arrow_type: pa.DataType, nulls: bool = False) -> st.SearchStrategy:
    """Returns a strategy for Python values of an Arrow type, with or without nulls inside."""
    t = pa.types

    def inner(inner_type: pa.DataType) -> st.SearchStrategy:
        if t.is_null(inner_type):
            return st.none()
        found = values(inner_type, nulls)
        # A union has no nulls of its own.
        return found if not nulls or t.is_union(inner_type) else _none_or(found)

    if t.is_union(arrow_type):
        parts = [inner(arrow_type.field(i).type) for i in range(arrow_type.num_fields)]
        return st.one_of(*(st.builds(Variant, st.just(i), part) for i, part in enumerate(parts)))
    if t.is_boolean(arrow_type):
        return st.booleans()
    if arrow_type == pa.bool8():
        return st.integers(0, 1)
    if isinstance(arrow_type, pa.BaseExtensionType):
        # Arrow's own `to_pylist` fails for tensors with nulls inside.
        is_tensor = arrow_type.extension_name == "arrow.fixed_shape_tensor"
        return values(arrow_type.storage_type, nulls and not is_tensor)
    if t.is_dictionary(arrow_type) or t.is_run_end_encoded(arrow_type):
        return values(arrow_type.value_type, nulls)
    if t.is_temporal(arrow_type) and arrow_type != INTERVAL:
        largest = _LARGEST.get(str(arrow_type), 2 ** (arrow_type.bit_width - 1) - 1)
        smallest = 0 if t.is_time(arrow_type) else -largest
        step = 86_400_000 if t.is_date64(arrow_type) else 1
        return st.integers(smallest // step, largest // step).map(lambda i: i * step)
    if arrow_type == INTERVAL:
        months = st.integers(-(2**31), 2**31 - 1)
        parts = st.tuples(months, months, st.integers(-(2**63), 2**63 - 1))
        return parts.map(pa.MonthDayNano)
    if t.is_decimal(arrow_type):
        digits = st.integers(1 - 10**arrow_type.precision, 10**arrow_type.precision - 1)
        return digits.map(lambda i: decimal.Decimal(i).scaleb(-arrow_type.scale, _EXACT))
    if t.is_map(arrow_type):
        pair = st.tuples(values(arrow_type.key_type), inner(arrow_type.item_type))
        return st.lists(pair, max_size=3)
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
    if t.is_fixed_size_binary(arrow_type):
        return st.binary(min_size=arrow_type.byte_width, max_size=arrow_type.byte_width)
    if t.is_fixed_size_list(arrow_type):
        size = arrow_type.list_size
        return st.lists(inner(arrow_type.value_type), min_size=size, max_size=size)
    if t.is_struct(arrow_type):
        return st.fixed_dictionaries({f.name: inner(f.type) for f in arrow_type.fields})
    if t.is_null(arrow_type.value_type) and not nulls:
        return st.just([])
    return st.lists(inner(arrow_type.value_type), max_size=3)


def _none_or(found: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(st.none(), st.builds(Hidden, found), found, found)


_EXACT = decimal.Context(prec=100)
# Python has no later days, and Arrow makes arrays of times of a day only.
_LARGEST = {
    "date32[day]": 700_000,
    "date64[ms]": 700_000 * 86_400_000,
    "time32[s]": 86_399,
    "time32[ms]": 86_399_999,
    "time64[us]": 86_399_999_999,
    "time64[ns]": 86_399_999_999_999,
    "duration[ms]": 80_000_000_000_000,
    "timestamp[s]": 60_000_000_000,
    "timestamp[us, tz=Europe/Paris]": 60_000_000_000_000_000,
}


def _array(whole: list, arrow_type: pa.DataType) -> pa.Array:
    """Returns an array of Python values of any type, also of types that `pa.array` cannot make."""
    t = pa.types
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, _array(whole, arrow_type.storage_type))
    if t.is_dictionary(arrow_type):
        # Some nulls are in the dictionary, others in the indices.
        encoding = "encode" if any(isinstance(value, Hidden) for value in whole) else "mask"
        encoded = _array(whole, arrow_type.value_type).dictionary_encode(null_encoding=encoding)
        return encoded.cast(arrow_type)
    if t.is_run_end_encoded(arrow_type):
        ends = pa.array(range(1, len(whole) + 1), arrow_type.run_end_type)
        inner = _array(whole, arrow_type.value_type)
        return pa.RunEndEncodedArray.from_arrays(ends, inner, type=arrow_type)
    if t.is_union(arrow_type):
        return _union(whole, arrow_type)
    if not t.is_nested(arrow_type):
        return pa.array([None if isinstance(v, Hidden) else v for v in whole], arrow_type)
    valid = [value is not None and not isinstance(value, Hidden) for value in whole]
    bits = None if all(valid) else pa.py_buffer(np.packbits(valid, bitorder="little"))
    whole = [value.value if isinstance(value, Hidden) else value for value in whole]
    if t.is_struct(arrow_type):
        columns = [
            _array([zero(f.type) if row is None else row[f.name] for row in whole], f.type)
            for f in arrow_type.fields
        ]
        return pa.Array.from_buffers(arrow_type, len(whole), [bits], children=columns)
    whole = [zero(arrow_type) if value is None else value for value in whole]
    if t.is_map(arrow_type):
        entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
        names = (entries.field(0).name, entries.field(1).name)
        pairs = [dict(zip(names, pair, strict=True)) for row in whole for pair in row]
        inner, width = _array(pairs, entries), np.int32
    elif t.is_fixed_size_list(arrow_type):
        inner = _array([item for row in whole for item in row], arrow_type.value_type)
        return pa.Array.from_buffers(arrow_type, len(whole), [bits], children=[inner])
    else:
        inner = _array([item for row in whole for item in row], arrow_type.value_type)
        large = t.is_large_list(arrow_type) or t.is_large_list_view(arrow_type)
        width = np.int64 if large else np.int32
    offsets = np.cumsum([0, *map(len, whole)]).astype(width)
    buffers = [bits, pa.py_buffer(offsets)]
    if t.is_list_view(arrow_type) or t.is_large_list_view(arrow_type):
        buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(np.diff(offsets))]
    return pa.Array.from_buffers(arrow_type, len(whole), buffers, children=[inner])


def zero(arrow_type: pa.DataType) -> Any:
    """Returns a value below a null; a union in it has no nulls."""
    t = pa.types
    if t.is_union(arrow_type):
        return Variant(0, None if t.is_null(arrow_type.field(0).type) else
                       zero(arrow_type.field(0).type))  # fmt: skip
    if t.is_fixed_size_list(arrow_type):
        return [zero(arrow_type.value_type)] * arrow_type.list_size
    if t.is_struct(arrow_type):
        return {field.name: zero(field.type) for field in arrow_type.fields}
    return [] if may_be_empty(arrow_type) else None


def _union(whole: list, arrow_type: pa.UnionType) -> pa.Array:
    numbers = np.array([value.number for value in whole], np.int8)
    codes = pa.py_buffer(np.array([arrow_type.type_codes[i] for i in numbers], np.int8))
    fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    if arrow_type.mode == "sparse":
        parts = [
            _array([v.value if v.number == i else zero(f.type) for v in whole], f.type)
            for i, f in enumerate(fields)
        ]
        return pa.Array.from_buffers(arrow_type, len(whole), [None, codes], children=parts)
    parts = [
        _array([v.value for v in whole if v.number == i], f.type) for i, f in enumerate(fields)
    ]
    offsets = [int((numbers[:at] == number).sum()) for at, number in enumerate(numbers)]
    buffers = [None, codes, pa.py_buffer(np.array(offsets, np.int32))]
    return pa.Array.from_buffers(arrow_type, len(whole), buffers, children=parts)


@st.composite
def arrays(draw, arrow_type: pa.DataType, count: int, nulls: bool = False) -> pa.Array:
    """An array of so many values, perhaps a slice out of a longer one; with nulls inside them."""
    before, after = draw(st.sampled_from([(0, 0), (1, 0), (0, 2), (3, 1)]))
    whole = draw(st.lists(values(arrow_type, nulls), min_size=before + count + after,
                          max_size=before + count + after))  # fmt: skip
    return _array(whole, arrow_type).slice(before, count)


@st.composite
def records(draw, schema: pa.Schema, max_rows: int = 5, nulls: bool = False):
    """Records of a schema in any form that `from_arrow` takes, with or without nulls inside."""
    record = pa.struct(list(schema))
    # Arrow does not join chunks of dictionaries with nulls, nor decode them in all types.
    most = 1 if nulls and contains_type(record, pa.types.is_dictionary) else 3
    counts = draw(st.lists(st.integers(0, max_rows), min_size=1, max_size=most))
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
def schemas_and_records(
    draw, max_rows: int = 5, nulls: bool = False, types: st.SearchStrategy = types
):
    """A schema, and records of it."""
    schema = draw(nullable_schemas(types) if nulls else _schemas(types))
    return schema, draw(records(schema, max_rows, nulls))


def python_of(data: Any) -> Any:
    """Returns the values that `to_py` gives of Arrow data: those of `to_pylist`, with few changes.

    A pair of a map is a dict, an interval is a list, and a float of 16 bits a float of Python.
    """
    if isinstance(data, dict):
        return {name: python_of(value) for name, value in data.items()}
    if isinstance(data, (list, pa.MonthDayNano)):
        return [python_of(item) for item in data]
    if isinstance(data, tuple):
        return dict(zip(("key", "value"), map(python_of, data), strict=True))
    if isinstance(data, np.floating):  # of older releases of pyarrow
        return float(data)
    return python_of(data.to_pylist()) if hasattr(data, "to_pylist") else data


def exactly(data) -> str:
    """Returns a text that two pieces of Arrow data share only if they hold the same values.

    It tells -0.0 from 0.0 and takes NaN for equal to itself, which `equals` does not.
    """
    return repr(data.to_pylist())
