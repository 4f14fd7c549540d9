"""What follows from schema and policy is made once; another schema or policy gets its own."""

import pyarrow as pa
import pytest

import extensor as xt
from extensor._arrow.reader import records_reader

SCHEMA = pa.schema({"x": pa.int64(), "xs": pa.list_(pa.int64())})


def test_a_schema_and_a_policy_have_one_reader():
    other = pa.schema({"x": pa.int64(), "xs": pa.list_(pa.int64())})
    assert records_reader(SCHEMA, "mask") is records_reader(other, "mask")
    assert records_reader(SCHEMA, {"x": 0}) is records_reader(other, {"x": 0})


@pytest.mark.parametrize(
    "other",
    [
        SCHEMA.with_metadata({"a": "b"}),
        pa.schema([SCHEMA.field(0).with_metadata({"a": "b"}), SCHEMA.field(1)]),
        pa.schema([SCHEMA.field(0).with_nullable(False), SCHEMA.field(1)]),
        pa.schema([SCHEMA.field(1), SCHEMA.field(0)]),
    ],
    ids=["metadata", "metadata of a field", "nullability", "order"],
)
def test_schemas_that_differ_in_anything_come_back_as_they_were(other):
    for schema in (SCHEMA, other, SCHEMA):
        table = pa.table({"x": [1], "xs": [[1]]}).select(schema.names).cast(schema)
        written = xt.to_arrow(xt.from_arrow(table))
        for field, wanted in zip(written.schema, schema, strict=True):
            assert field.equals(wanted, check_metadata=True)


def test_policies_that_compare_equal_are_not_the_same():
    table = pa.table({"b": pa.array([None], pa.bool_())})
    assert xt.from_arrow(table, nulls={"b": True}).to_py() == [{"b": True}]
    with pytest.raises(xt.errors.DTypeError, match="a value of Arrow type bool, got 1"):
        xt.from_arrow(table, nulls={"b": 1})


def test_a_policy_may_change_after_the_call():
    table = pa.table({"xs": pa.array([None], pa.list_(pa.int64()))})
    items = [1]
    assert xt.from_arrow(table, nulls={"xs": items})["xs"].to_list() == [[1]]
    items.append(2)
    assert xt.from_arrow(table, nulls={"xs": [1]})["xs"].to_list() == [[1]]
    assert xt.from_arrow(table, nulls={"xs": items})["xs"].to_list() == [[1, 2]]


class _First(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.int8(), "extensor.test_reader")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


class _Second(_First):
    pass


def test_extension_types_of_one_name_keep_their_class():
    for cls in (_First, _Second, _First):
        array = pa.ExtensionArray.from_storage(cls(), pa.array([1], pa.int8()))
        written = xt.to_arrow(xt.from_arrow(pa.table({"x": array})))
        assert type(written.schema.field(0).type) is cls


def test_null_keys_of_a_map_are_an_error_and_end_no_process(run_python):
    run_python("""
        import pyarrow as pa
        import extensor as xt
        from extensor.types import MaskedTensor

        entries = xt.DenseStructuredTensor([2], {
            "key": MaskedTensor(["a", "b"], [True, False]), "value": [1, 2],
        })
        records = xt.DenseStructuredTensor(
            [1], {"m": xt.RaggedStructuredTensor.from_row_splits(entries, [0, 2])}
        )
        schema = pa.schema({"m": pa.map_(pa.string(), pa.int32())})
        try:
            xt.to_arrow(records, schema)
        except xt.errors.NullError as error:
            assert "keys of a map without nulls" in str(error), error
        else:
            raise AssertionError("no error")
    """)
