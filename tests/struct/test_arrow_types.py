"""The Arrow types that records and their specs carry, through all that makes records of records."""

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from tests.samples.arrow_strategies import exactly

WORDS = pa.DictionaryArray.from_arrays(
    pa.array([1, 0, 1], pa.int8()), pa.array(["tsp", "cup", "ounce"]), ordered=True
)
TABLE = pa.table({
    "when": pa.array([0, 1, 2], pa.timestamp("s", "Europe/Paris")),
    "price": pa.array([1, 2, 3], pa.decimal128(9, 2)),
    "unit": WORDS,
    "steps": pa.array([[{"took": 1}], [], [{"took": 2}, {"took": 3}]],
                      pa.list_(pa.struct({"took": pa.duration("ms")}))),
    "record": pa.array([{"day": 1}] * 3, pa.struct({"day": pa.date32()})),
})  # fmt: skip


def types_of(records):
    return xt.to_arrow(records).schema


WAYS = {
    "with_updates": lambda r: r.with_updates(new=[1, 2, 3]).without("new"),
    "nested with_updates": lambda r: r.with_updates({"record.day": r["record.day"] + 1}),
    "with_only": lambda r: r.with_only(*r.field_names()),
    "range": lambda r: r[1:],
    "one": lambda r: tf.nest.map_structure(lambda x: x, r)[:1],
    "gather": lambda r: next(iter(tf.data.Dataset.from_tensors(r).unbatch().batch(2))),
    "ragged_batch": lambda r: next(iter(tf.data.Dataset.from_tensor_slices(r).ragged_batch(3))),
    "tf.function": lambda r: tf.function(lambda x: x)(r),
    "tf.function of parts": lambda r: tf.function(lambda x: x[1:])(r),
    "components": lambda r: xt.spec_of(r).from_components(xt.spec_of(r).to_components(r)),
    "cast": lambda r: xt.spec_from_schema(TABLE.schema).cast(r.to_py()),
    "pickle": lambda r: pickle.loads(pickle.dumps(r)),
    "deepcopy": copy.deepcopy,
    "map_fn": lambda r: tf.map_fn(lambda x: x, r),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_types_are_kept_by(way):
    assert types_of(way(xt.from_arrow(TABLE))) == TABLE.schema


def test_a_single_record_keeps_the_types():
    scalar = xt.to_arrow(xt.from_arrow(TABLE)[0])
    assert scalar.type == pa.struct(list(TABLE.schema))
    assert exactly(pa.table(pa.repeat(scalar, 1))) == exactly(TABLE.slice(0, 1))


def test_an_update_of_another_dtype_or_structure_drops_the_type():
    records = xt.from_arrow(TABLE)
    updated = records.with_updates(when=[1.0, 2.0, 3.0], price=[[1], [2], [3]], record=[1, 2, 3])
    assert set(updated.arrow_types) == {"unit", "steps"}
    assert types_of(updated).field("when").type == pa.float32()
    again = updated.with_updates(when=tf.constant([1, 2, 3], tf.int64))
    assert types_of(again).field("when").type == pa.int64()
    assert "when" not in records.without("when").with_updates(when=records["when"]).arrow_types


def test_the_types_are_not_part_of_equality_and_no_function_is_traced_for_them():
    traces = []

    @tf.function
    def identity(records):
        traces.append(1)
        return records

    for words in (["a", "b", "a"], ["c", "d", "c"]):
        table = pa.table({"unit": pa.array(words).dictionary_encode()})
        assert exactly(xt.to_arrow(identity(xt.from_arrow(table)))) == exactly(table)
    plain = xt.from_arrow(pa.table({"unit": ["x", "y", "z"]}))
    identity(plain)
    assert len(traces) == 1
    with_types, without = xt.spec_of(xt.from_arrow(table)), xt.spec_of(plain)
    assert with_types == without
    assert hash(with_types) == hash(without)


def test_the_vocabulary_the_index_type_and_the_order_come_back_and_new_words_follow():
    records = xt.from_arrow(TABLE)
    back = xt.to_arrow(records).column(2)
    assert back.type == WORDS.type
    assert back.dictionary.to_pylist() == ["tsp", "cup", "ounce"]
    assert back.indices.equals(WORDS.indices)
    more = records.with_updates(unit=["gallon", "ounce", "gallon"])
    back = xt.to_arrow(more).column(2)
    assert back.dictionary.to_pylist() == ["tsp", "cup", "ounce", "gallon"]
    assert back.indices.to_pylist() == [3, 2, 3]
    many = xt.from_arrow(pa.table({"x": WORDS.take(pa.array([0] * 200))}))
    many = many.with_updates(x=[str(i) for i in range(200)])
    with pytest.raises(xt.errors.DTypeError, match="x: expected values that fit Arrow type dict"):
        xt.to_arrow(many)


def test_a_spec_is_serialized_with_its_types_and_the_form_of_0_1_is_still_taken():
    spec = xt.spec_from_schema(TABLE.schema)
    again = type(spec).deserialize(spec.serialize())
    assert again == spec
    assert again.arrow_types == spec.arrow_types
    plain = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.int64)})
    assert len(plain.serialize()) == 2
    assert type(spec).deserialize(plain.serialize()) == plain


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")
def test_a_saved_model_keeps_the_types(tmp_path):
    module = tf.Module()
    spec = xt.spec_from_schema(TABLE.schema)
    module.f = tf.function(lambda r: r, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path))
    records = tf.saved_model.load(str(tmp_path)).f(xt.from_arrow(TABLE))
    assert types_of(records) == TABLE.schema


def test_python_records_cast_by_a_schema_go_out_with_its_types():
    schema = pa.schema({"when": pa.timestamp("us"), "day": pa.date32()})
    records = xt.spec_from_schema(schema).cast([{"when": 5, "day": 3}])
    assert types_of(records) == schema


def test_times_are_the_integers_of_numpy_and_pandas():
    days = np.array(["1969-12-31", "2024-02-29"], "datetime64[D]")
    table = pa.table({
        "day": pa.array(days), "when": pa.array(days.astype("datetime64[us]")),
        "took": pa.array(np.array([1, -2], "timedelta64[ns]")),
        "zoned": pa.array(pd.to_datetime(days).tz_localize("UTC").as_unit("ms")),
    })  # fmt: skip
    records = xt.from_arrow(table)
    assert (records["day"].numpy() == days.astype(np.int32)).all()
    assert (records["when"].numpy().view("datetime64[us]") == days).all()
    assert records["took"].numpy().tolist() == [1, -2]
    assert (records["zoned"].numpy().view("datetime64[ms]") == days).all()
    later = records.with_updates(when=records["when"] + 1)
    assert xt.to_arrow(later)["when"].to_pylist()[0].microsecond == 1


def test_parquet_files_come_back_with_their_types(tmp_path):
    many = pa.table({"text": ["cup", "tsp"] * 5000, "bytes": pa.array([b"a"] * 10_000)})
    for name, table in {"types": TABLE, "strings": many}.items():
        path = tmp_path / f"{name}.parquet"
        xt.write_parquet(xt.from_arrow(table), path)
        stored = pq.read_table(path)
        assert xt.to_arrow(xt.read_parquet(path)).schema == stored.schema
        assert exactly(pa.table(xt.read_parquet(path))) == exactly(table)
        (batch,) = xt.data.parquet(path, batch_size=table.num_rows)
        assert xt.to_arrow(batch).schema == stored.schema
