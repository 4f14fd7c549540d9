"""Operations on records with special names, nulls at all levels, and empty parts."""

import datetime

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, NullError, StructureError
from extensor.types import MaskedTensor, UnionTensor

INNER = pa.struct({"a.b": pa.list_(pa.int64()), "": pa.timestamp("ms")})
SCHEMA = pa.schema({"": pa.uint64(), "null": pa.list_(INNER), "shape": INNER})

large = st.sampled_from([0, 2**53 + 1, 2**62 + 1])
inner = st.fixed_dictionaries({
    "a.b": st.none() | st.lists(st.none() | large, max_size=2),
    "": st.none() | st.just(datetime.datetime(2026, 5, 1)),
})  # fmt: skip
row = st.fixed_dictionaries({
    "": st.none() | large.map(lambda n: n + 2**63),
    "null": st.none() | st.lists(st.none() | inner, max_size=2),
    "shape": st.none() | inner,
})  # fmt: skip
rows = st.lists(row, max_size=3)


def of(plain, schema=SCHEMA):
    return xt.from_arrow(pa.Table.from_pylist(plain, schema), nulls="mask")


OPERATIONS = {
    "reverse": (lambda r: tf.reverse(r, [0]), lambda p: p[::-1]),
    "tile": (lambda r: tf.tile(r, [2]), lambda p: p * 2),
    "stack": (lambda r: tf.stack([r, r]), lambda p: [p, p]),
    "expand and squeeze": (lambda r: tf.squeeze(tf.expand_dims(r, 0), 0), lambda p: p),
    "reshape": (lambda r: tf.reshape(r, [-1, 1]), lambda p: [[each] for each in p]),
    "where": (lambda r: tf.where([i % 2 == 0 for i in range(len(r))], r, tf.reverse(r, [0])),
              lambda p: [p[i] if i % 2 == 0 else p[-1 - i] for i in range(len(p))]),
    "gather": (lambda r: tf.gather(r, tf.range(min(len(r), 1))), lambda p: p[:1]),
    "repeat": (lambda r: tf.repeat(r, 2, axis=0), lambda p: [x for x in p for _ in range(2)]),
}  # fmt: skip


@pytest.mark.whole("some seconds: records of many types")
@pytest.mark.parametrize("name", OPERATIONS)
@given(rows)
def test_an_operation_keeps_every_field_and_null(name, plain):
    operation, expected = OPERATIONS[name]
    assert operation(of(plain)).to_py() == expected(plain)


@pytest.mark.whole("some seconds: records of many types")
@given(rows)
def test_parts_and_single_records_have_every_field_and_null(plain):
    records = of(plain)
    assert [part.to_py() for part in tf.unstack(records, len(plain))] == plain
    parts = tf.split(records, [len(plain), 0])
    assert [part.to_py() for part in parts] == [plain, []]


@pytest.mark.whole("some seconds: records of many types")
@given(st.lists(rows, min_size=1, max_size=4))
def test_parts_of_any_length_are_concatenated(parts):
    joined = tf.concat([of(part) for part in parts], 0)
    assert joined.to_py() == [each for part in parts for each in part]


@pytest.mark.parametrize("values", [[1, 2], [True, False], ["a", "b"]])
def test_records_whose_only_field_has_an_empty_name(values):
    records = xt.DenseStructuredTensor([2], {"": tf.constant(values)})
    plain = records.to_py()
    assert list(plain[0]) == [""]
    for name, (operation, expected) in OPERATIONS.items():
        assert operation(records).to_py() == expected(plain), name
    assert [part.to_py() for part in tf.split(records, 2)] == [plain[:1], plain[1:]]
    assert tf.concat([records[:0], records, records[:0]], 0).to_py() == plain


def test_an_empty_part_between_lists_of_lists_of_records():
    deep = pa.schema({"a": pa.list_(pa.struct({"b": pa.list_(pa.struct({"c": pa.int64()}))}))})
    parts = [[{"a": [{"b": [{"c": 1}]}]}], [{"a": []}], [], [{"a": [{"b": []}, {"b": [{"c": 2}]}]}]]
    found = tf.concat([xt.from_arrow(pa.Table.from_pylist(p, deep)) for p in parts], 0)
    assert found.to_py() == [each for part in parts for each in part]


@pytest.mark.parametrize("of_field", [
    lambda v: xt.DenseStructuredTensor([1], {"v": v}),
    lambda v: MaskedTensor(xt.DenseStructuredTensor([1], {"v": v}), [True]),
    lambda v: xt.RaggedStructuredTensor.from_row_lengths(
        xt.DenseStructuredTensor([1], {"v": v}), [1]),
])  # fmt: skip
def test_an_error_for_records_in_records_has_the_whole_path(of_field):
    both = [
        xt.DenseStructuredTensor([1], {"inner": of_field(tf.constant([1], dtype))})
        for dtype in (tf.int32, tf.float32)
    ]
    for call in (
        lambda: tf.concat(both, 0),
        lambda: tf.stack(both),
        lambda: tf.where([True], *both),
        lambda: tf.concat([each[:, None] for each in both], 1),
    ):
        with pytest.raises(DTypeError, match=r"inner\.v: expected dtype int32"):
            call()


EMPTY = tf.ragged.constant([[], []], dtype=tf.int64)


@pytest.mark.parametrize(("rows", "kind", "plain"), [
    (EMPTY, pa.large_list(pa.int64()), [[], []]),
    (MaskedTensor(EMPTY, [True, False]), pa.large_list(pa.int64()), [[], None]),
    (MaskedTensor(tf.constant([1, 2]), [False, False]), pa.int32(), [None, None]),
    (tf.zeros([2, 0]), pa.list_(pa.float32(), 0), [[], []]),
    (MaskedTensor(tf.zeros([2]), [False, False]), pa.null(), [None, None]),
])  # fmt: skip
def test_a_variant_named_null_keeps_its_type_and_its_empty_lists(rows, kind, plain):
    union = UnionTensor._of_parts(
        tf.constant([0, 1, 0], tf.int8), {"null": rows, "b": tf.constant(["x"])}, ("null", "b")
    )
    records = xt.DenseStructuredTensor([3], {"a": union})
    found = xt.to_arrow(records).column(0)
    assert found.type.field(0).type == kind
    assert found.to_pylist() == [plain[0], "x", plain[1]]
    back = xt.struct.constant(records.to_py(), records.__tf_type_spec__())
    assert back.to_py() == records.to_py()


def test_empty_lists_are_not_written_as_nulls():
    lists = xt.DenseStructuredTensor([2], {"a": MaskedTensor(EMPTY, [True, False])})
    with pytest.raises(DTypeError, match="a: expected values that fit Arrow type null"):
        xt.to_arrow(lists, pa.schema({"a": pa.null()}))


@pytest.mark.parametrize("kind", ["flat", "records"])
def test_lists_of_other_sizes_are_an_error_with_their_path(kind):
    def records(size):
        lists = xt.DenseStructuredTensor([1], {"v": [list(range(size))]})
        return lists if kind == "flat" else xt.DenseStructuredTensor([1], {"i": lists})

    at = "v" if kind == "flat" else r"i\.v"
    for join in (tf.concat, tf.function(tf.concat)):
        with pytest.raises(StructureError, match=rf"{at}: expected values of shape \(2,\)"):
            join([records(2), records(3)], 0)


@pytest.mark.parametrize("function", [xt.struct.group_by, xt.struct.unique])
def test_an_error_for_a_null_key_has_its_path(function):
    data = [{"l": [{"v": None}, {"v": 1}]}]
    records = xt.struct.constant(data, nulls={"l[*].v": "mask"})
    with pytest.raises(NullError, match=r"^l\.v: expected keys that are not null, got 1 null"):
        function(records, "l", by="v")
