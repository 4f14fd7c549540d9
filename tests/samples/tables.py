"""Arrow tables that Parquet can store: nested, with unusual names, without nulls."""

import pyarrow as pa
from hypothesis import strategies as st

# Dots and quotes are grammar in a path, "list" and "element" are what Parquet itself calls the
# levels of a list, and all of them may be names of fields.
NAMES = st.sampled_from(
    [
        "a",
        "b",
        "a.b",
        "b.a",
        "a b",
        'a"',
        "[*]",
        "list",
        "element",
        "key",
        "ä",
        "\\",
        "",
        "null",
        "shape",
    ]
)

NUMBERS = {
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
}
STRINGS = {
    pa.string(): st.text(max_size=5),
    pa.large_string(): st.text(max_size=5),
    pa.binary(): st.binary(max_size=5),
}


def structs(types):
    """Struct types with fields of the given types, under different names."""
    pairs = st.tuples(NAMES, types)
    fields = st.lists(pairs, min_size=1, max_size=3, unique_by=lambda pair: pair[0])
    return fields.map(pa.struct)


TYPES = st.recursive(
    st.sampled_from([*NUMBERS, *STRINGS]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        st.tuples(inner, st.integers(1, 2)).map(lambda pair: pa.list_(*pair)),
        structs(inner),
    ),
    max_leaves=5,
)


def values(arrow_type):
    """Python values of an Arrow type, without nulls."""
    if arrow_type in NUMBERS:
        return NUMBERS[arrow_type]
    if arrow_type in STRINGS:
        return STRINGS[arrow_type]
    if pa.types.is_struct(arrow_type):
        return st.fixed_dictionaries({f.name: values(f.type) for f in arrow_type.fields})
    size = arrow_type.list_size if pa.types.is_fixed_size_list(arrow_type) else None
    return st.lists(values(arrow_type.value_type), min_size=size or 0, max_size=size or 3)


@st.composite
def tables(draw, max_rows=7):
    """Tables of any number of rows up to `max_rows`."""
    record = draw(structs(TYPES))
    rows = draw(st.lists(values(record), max_size=max_rows))
    return pa.table(pa.RecordBatch.from_struct_array(pa.array(rows, record)))
