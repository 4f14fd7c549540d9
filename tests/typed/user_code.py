"""A program that calls each public function; the comment of a line is the type that pyright shows.

`tests/test_typing.py` runs pyright on it. A type with `Any` in it gives the reason after a colon.
"""

# ruff: noqa: E501, F821 - one line a function; reveal_type is a name of type checkers
# fmt: off

import awkward as ak
import datasets
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import tensorflow as tf
from firebase_admin import db
from google.cloud.firestore_v1 import Client as Firestore
from google.cloud.spanner_v1.database import Database
from google.protobuf.descriptor_pb2 import FileDescriptorProto

import extensor as xt

schema = pa.schema([("title", pa.string()), ("minutes", pa.list_(pa.int32()))])
records = xt.struct.constant([{"title": "Tea", "minutes": [5, 2]}])
spec = xt.spec_from_schema(schema)
tensor = tf.constant([1.0, 2.0])
splits = tf.constant([0, 1, 2])


class Recipe:
    title: str


def firestore() -> Firestore: ...
def spanner() -> Database: ...
def trained() -> xt.keras.Model: ...


# extensor
reveal_type(xt.arrow_function(lambda r: r["minutes"], spec, nulls="mask"))  # ArrowFunction
reveal_type(xt.arrow_function("model.keras", schema)(pa.table({"title": ["Tea"]})))  # Table | RecordBatch | StructArray
reveal_type(xt.auto_composite_tensor(Recipe))  # type[Recipe]
reveal_type(xt.auto_composite_tensor(omit_kwargs="name")(Recipe))  # type[Recipe]
reveal_type(xt.extension_type(Recipe))  # type[Recipe]
reveal_type(xt.extension_type(name="shop.Recipe")(Recipe))  # type[Recipe]
reveal_type(xt.fill(0))  # Fill
reveal_type(xt.foldl(lambda total, x: total + x, tensor))  # Any: what the function returns
reveal_type(xt.foldr(lambda total, x: total + x, tensor))  # Any: what the function returns
reveal_type(xt.from_arrow(pa.table({"title": ["Tea"]}), ["title"], nulls={"title": "mask"}))  # StructuredTensor
reveal_type(xt.from_awkward(ak.Array([{"x": 1}]), schema=spec))  # StructuredTensor
reveal_type(xt.from_huggingface(datasets.Dataset.from_list([{"x": 1}])))  # StructuredTensor
reveal_type(xt.from_pandas(pd.DataFrame({"x": [1]}), nulls=xt.fill(0), levels="fields"))  # StructuredTensor
reveal_type(xt.from_proto([b""], FileDescriptorProto, max_depth=2))  # StructuredTensor
reveal_type(xt.from_tf_example([b""], spec))  # StructuredTensor
reveal_type(xt.from_tf_sequence_example(tf.constant([b""]), schema, context=["minutes"]))  # StructuredTensor
reveal_type(xt.is_deferred_assertion_context())  # bool
reveal_type(xt.numpy_function(lambda x: x, [tensor], tf.float32))  # Any: as `Tout` says
reveal_type(xt.patches())  # list[Patch]
reveal_type(xt.print(tensor))  # Operation | None
reveal_type(xt.read_arrow("recipes.arrow", nulls="auto", read_ahead=0))  # StructuredTensor
reveal_type(xt.read_database("SELECT 1 AS x", "duckdb:recipes.db"))  # StructuredTensor
reveal_type(xt.read_database("SELECT 1 AS x", duckdb.connect(), batch_size=100))  # Iterator[StructuredTensor]
reveal_type(xt.read_delta("recipes", version=2))  # StructuredTensor
reveal_type(xt.read_firestore(firestore().collection("recipes"), id_field="id"))  # StructuredTensor
reveal_type(xt.read_iceberg("recipes.metadata.json", filter="minutes > 5"))  # StructuredTensor
reveal_type(xt.read_csv("recipes.csv", delimiter=";", cache="parts"))  # StructuredTensor
reveal_type(xt.read_json("recipes.jsonl", maps=["by_id"], cache=xt.data.Cache("parts")))  # StructuredTensor
reveal_type(xt.read_parquet(["a.parquet", "b.parquet"], filters=[("minutes", ">", 5)]))  # StructuredTensor
reveal_type(xt.read_realtime_database(db.reference("recipes")))  # StructuredTensor
reveal_type(xt.read_spanner(spanner(), "SELECT title FROM recipes"))  # StructuredTensor
reveal_type(xt.read_tfrecord("recipes.tfrecord", cache="parts"))  # StructuredTensor
reveal_type(xt.recompute_grad(lambda x: x))  # (...) -> Any: the result of the function
reveal_type(xt.register_extension_type(Recipe, xt.TypeSpec))  # type[Recipe]
reveal_type(xt.register_type_spec(xt.TypeSpec))  # type[TypeSpec]
reveal_type(xt.register_type_spec(name="shop.Spec")(xt.TypeSpec))  # type[TypeSpec]
reveal_type(xt.registered_types())  # dict[str, type]
reveal_type(xt.replace(Recipe(), title="Tea"))  # Recipe
reveal_type(xt.scan(lambda total, x: total + x, tensor))  # Any: what the function returns
reveal_type(xt.schema_from_spec(spec))  # Schema
reveal_type(xt.spec_from_proto(FileDescriptorProto, max_depth=2))  # DenseStructuredTensorSpec
reveal_type(xt.spec_from_schema(schema, nulls={"title": "mask"}))  # DenseStructuredTensorSpec
reveal_type(xt.spec_of(records))  # StructuredTensorSpec
reveal_type(xt.spec_of(tensor))  # TypeSpec[Unknown]
reveal_type(xt.to_arrow(records, schema))  # RecordBatch | Array | StructScalar
reveal_type(xt.to_awkward(records))  # Array
reveal_type(xt.to_huggingface(records))  # Dataset
reveal_type(xt.to_pandas(records))  # DataFrame
reveal_type(xt.to_proto(records, FileDescriptorProto))  # Tensor
reveal_type(xt.to_tf_example(records))  # Tensor
reveal_type(xt.to_tf_sequence_example(records, context=["minutes"]))  # Tensor
reveal_type(xt.tuple([tensor, records]))  # list[Any]: values of any types
reveal_type(xt.write_arrow(records, "recipes.arrow"))  # None
reveal_type(xt.write_database(records, "recipes", duckdb.connect()))  # None
reveal_type(xt.write_firestore(records, firestore().collection("recipes")))  # None
reveal_type(xt.write_csv([records], "recipes.csv"))  # None
reveal_type(xt.write_json([records], "recipes.jsonl"))  # None
reveal_type(xt.write_parquet(records, "recipes.parquet", partition_by=["title"]))  # None
reveal_type(xt.write_realtime_database(records, db.reference("recipes")))  # None
reveal_type(xt.write_spanner(records, "recipes", spanner()))  # None
reveal_type(xt.write_tfrecord(records, "recipes.tfrecord"))  # None

# extensor.authoring
reveal_type(xt.authoring.array_over(tensor))  # ndarray[Any, Any]
reveal_type(xt.authoring.as_tensor([1, 2], "Cup.grams"))  # Tensor
reveal_type(xt.authoring.assertions("Recipe", [(tf.constant(True), "no title")]))  # list[Operation]
reveal_type(xt.authoring.batch_item(records, 0))  # StructuredTensor
reveal_type(xt.authoring.batch_of(xt.types.TensorDigraph, [xt.types.TensorDigraph([0], [0])]))  # TensorDigraph
reveal_type(xt.authoring.box(spec, records))  # list[Tensor]
reveal_type(xt.authoring.box_rows(tf.TensorSpec([2]), tensor, splits, [2], 1))  # list[Tensor]
reveal_type(xt.authoring.boxed_rows_specs(tf.TensorSpec([2])))  # list[TensorSpec]
reveal_type(xt.authoring.boxed_specs(spec))  # list[TensorSpec]
reveal_type(xt.authoring.cast_value(spec, records))  # Any: a value of the type of the spec
reveal_type(xt.authoring.castable_type(spec, spec))  # TypeSpec[Unknown] | None
reveal_type(xt.authoring.check_row_splits(np.array([0, 2]), 2, "Recipe.minutes"))  # list[Operation]
reveal_type(xt.authoring.concat_rows([tensor, tensor]))  # Tensor
reveal_type(xt.authoring.cut_rows(tensor, splits))  # Any: a ragged value of the type
reveal_type(xt.authoring.expect_unstacks(spec, records, 1))  # None
reveal_type(xt.authoring.extension_type(Recipe))  # type[Recipe]
reveal_type(xt.authoring.first_positions(tf.TensorShape([1]), splits, splits, splits))  # Tensor
reveal_type(xt.authoring.integers([1, 2], "Recipe.minutes"))  # Tensor
reveal_type(xt.authoring.is_tensor_like([1, 2]))  # bool
reveal_type(xt.authoring.known_arrays(tensor))  # list[Any] | None: arrays
reveal_type(xt.authoring.lossless([1, 2], tf.int32, "Recipe.minutes"))  # Tensor
reveal_type(xt.authoring.num_rows(records))  # Tensor
reveal_type(xt.authoring.reduce_rows(tensor, splits, splits, "sum"))  # Tensor
reveal_type(xt.authoring.replace(Recipe(), title="Tea"))  # Recipe
reveal_type(xt.authoring.required(tf.constant(True), xt.errors.StructureError("Recipe")))  # list[Operation]
reveal_type(xt.authoring.row_ids(splits, tensor))  # Tensor
reveal_type(xt.authoring.row_splits_of(splits))  # Tensor
reveal_type(xt.authoring.rows_spec(spec, "Recipe"))  # TypeSpec[Unknown]
reveal_type(xt.authoring.sizes_of(tf.TensorShape([None]), splits))  # list[Any]: integers and tensors
reveal_type(xt.authoring.stack_rows([tensor, tensor]))  # Tensor
reveal_type(xt.authoring.stacked_spec(spec, 2, "Recipe"))  # TypeSpec[Unknown]
reveal_type(xt.authoring.static_num_rows(records))  # int | None
reveal_type(xt.authoring.supertype(spec, spec))  # TypeSpec[Unknown] | None
reveal_type(xt.authoring.take_rows(records, [0]))  # StructuredTensor
reveal_type(xt.authoring.tensor_over(np.zeros(2)))  # Tensor
reveal_type(xt.authoring.unbox(spec, [tensor]))  # Any: a value of the type of the spec
reveal_type(xt.authoring.unbox_rows(spec, tf.TensorShape([2]), iter([tensor]), tf.int64))  # Any: a value of the type of the spec
reveal_type(xt.authoring.uncut_rows(records))  # tuple[Any, Tensor] | None: a ragged value of the type
reveal_type(xt.authoring.unstacked_spec(spec, "Recipe"))  # TypeSpec[Unknown]
reveal_type(xt.authoring.with_rows_of(records, records, 1, lambda text: xt.errors.StructureError("Recipe", text)))  # StructuredTensor

# extensor.data
reveal_type(xt.data.arrays(xt.data.parquet("recipes.parquet", 2)))  # Dataset[Unknown]
reveal_type(xt.data.Cache("parts", max_bytes=1 << 30))  # Cache
reveal_type(xt.data.arrow("recipes.arrow", 2, nulls="mask", shard="service"))  # Dataset[Unknown]
reveal_type(xt.data.batches([pa.RecordBatch.from_pylist([{"x": 1}])], schema, 2))  # Dataset[Unknown]
reveal_type(xt.data.bucket(xt.data.parquet("a.parquet", 2), "items", [8, 32], [64, 16]))  # Dataset[Unknown]
reveal_type(xt.data.database("SELECT 1 AS x", duckdb.connect(), 2, params=[1]))  # Dataset[Unknown]
reveal_type(xt.data.describe("recipes.parquet"))  # Description
reveal_type(xt.data.fields_used(lambda r: r["minutes"], spec))  # FieldsUsed
reveal_type(xt.data.firestore(firestore().collection("recipes"), 2, schema=schema))  # Dataset[Unknown]
reveal_type(xt.data.csv("recipes.csv", 2, names=["a"]))  # Dataset[Unknown]
reveal_type(xt.data.json("recipes.jsonl", 2, shuffle=xt.data.Shuffle(100)))  # Dataset[Unknown]
reveal_type(xt.data.mix({"a": (xt.data.parquet("a.parquet", 2), 0.7)}, seed=1))  # Dataset[Unknown]
reveal_type(xt.data.pack(xt.data.parquet("a.parquet", 2), {"items": 4096}, 64))  # Dataset[Unknown]
reveal_type(xt.data.padding_share(xt.data.pack(xt.data.parquet("a.parquet", 2), {"items": 9})))  # dict[str, float]
reveal_type(xt.data.parquet("recipes.parquet", 2, columns=["title"], read_ahead=0, cache="parts"))  # Dataset[Unknown]
reveal_type(xt.data.proto("recipes.bin", FileDescriptorProto, 2, max_depth=2))  # Dataset[Unknown]
reveal_type(xt.data.spanner(spanner(), "SELECT title FROM recipes", 2))  # Dataset[Unknown]
reveal_type(xt.data.state(xt.data.parquet("recipes.parquet", 2), 3))  # dict[str, Any]: data for JSON
reveal_type(xt.data.steps_per_shard(xt.data.parquet("recipes.parquet", 2)))  # int
reveal_type(xt.data.tfrecord("recipes.tfrecord", 2))  # Dataset[Unknown]

# extensor.dispatch
reveal_type(xt.dispatch.follows_protocol(Recipe))  # bool
reveal_type(xt.dispatch.handle(Recipe, tf.add, (records, 1), {}))  # Any: what the handler returns
reveal_type(xt.dispatch.implements(tf.add, on=Recipe))  # (_F@implements) -> _F@implements
reveal_type(xt.dispatch.is_binary_elementwise_op(tf.add))  # bool
reveal_type(xt.dispatch.is_comparison_op(tf.add))  # bool
reveal_type(xt.dispatch.is_logical_op(tf.add))  # bool
reveal_type(xt.dispatch.is_rearranging_op(tf.add))  # bool
reveal_type(xt.dispatch.is_reduction_op(tf.add))  # bool
reveal_type(xt.dispatch.is_shape_only_op(tf.add))  # bool
reveal_type(xt.dispatch.is_stacking_op(tf.add))  # bool
reveal_type(xt.dispatch.is_unary_elementwise_op(tf.add))  # bool
reveal_type(xt.dispatch.is_unit_keeping_reduction_op(tf.add))  # bool
reveal_type(xt.dispatch.name_of(tf.add))  # str
reveal_type(xt.dispatch.named_arguments(tf.add, (1, 2)))  # dict[str, Any]: arguments of any types
reveal_type(xt.dispatch.tensor_parameters(tf.add))  # tuple[str, ...]

# extensor.keras
model = trained()
reveal_type(xt.keras.Input(spec))  # Any: a placeholder, with the attributes of a value
reveal_type(xt.keras.serialize(spec))  # dict[str, Any]: data for JSON
reveal_type(model.fit(records, tensor, epochs=2))  # History
reveal_type(model.evaluate(records, tensor))  # float | list[float] | dict[str, float]
reveal_type(model.predict(records))  # Any: what the model returns
reveal_type(model.compile(loss="mse"))  # None
features = xt.keras.layers.RecordFeatures(crosses=[("city", "kind")], crossing_dim=16)
reveal_type(features.adapt(records))  # None
reveal_type(features.merge(features))  # None
bags = xt.keras.layers.EmbeddingBags({"tags": 16})
reveal_type(bags.adapt(records))  # None
reveal_type(bags.embeddings)  # dict[str, Tensor]: the vectors of each field

# extensor.nest
reveal_type(xt.nest.assert_same_structure(records, records))  # None
reveal_type(xt.nest.flatten(records, expand_composites=True))  # list[Any]: leaves of any types
reveal_type(xt.nest.map_structure(tf.negative, records, expand_composites=True))  # Any: a nest of the same form
reveal_type(xt.nest.pack_sequence_as(records, [tensor], expand_composites=True))  # Any: a nest of the same form

# extensor.serving
reveal_type(xt.serving.flat_signature(lambda r: r["minutes"], spec))  # FlatSignature
reveal_type(xt.serving.load_client("model"))  # Client
reveal_type(xt.serving.load_client("model").encode_json(b"{}"))  # str
reveal_type(xt.serving.load_client("model").decode_json(b"{}"))  # Any: what the signature returns
reveal_type(xt.serving.save(tf.Module(), "model"))  # None
reveal_type(xt.serving.save_clients("model", {"serve": xt.serving.load_client("model")}))  # None

# extensor.struct
reveal_type(xt.struct.apply(records, lambda x: x, "minutes", "copy"))  # StructuredTensor
reveal_type(xt.struct.argmax(records, "minutes"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.argmin(records, "minutes", target="first"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.argsort(records, "minutes"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.broadcast(records, "title", "steps.title"))  # StructuredTensor
reveal_type(xt.struct.cartesian(records, {"a": "minutes", "b": "minutes"}, "pairs"))  # StructuredTensor
reveal_type(xt.struct.cast(records, {"minutes": tf.int64}))  # StructuredTensor
reveal_type(xt.struct.combinations(records, "minutes", "pairs"))  # StructuredTensor
reveal_type(xt.struct.constant({"title": "Tea"}, dtype={"minutes": tf.int64}))  # StructuredTensor
reveal_type(xt.struct.constant_value({"title": "Tea"}))  # StructuredTensorValue
reveal_type(xt.struct.drop_null(records, "minutes"))  # StructuredTensor
reveal_type(xt.struct.explode(records, "minutes"))  # StructuredTensor
reveal_type(xt.struct.fill_null(records, "minutes", 0))  # StructuredTensor
reveal_type(xt.struct.filter_by(records, "minutes", tensor > 1))  # StructuredTensor
reveal_type(xt.struct.firsts(records, "minutes"))  # Any: records, masked ones for the path ()
reveal_type(xt.struct.flatten(records, "minutes"))  # StructuredTensor
reveal_type(xt.struct.from_static(records, spec))  # Any: records, masked ones for the path ()
reveal_type(xt.struct.from_tf(tf.experimental.StructuredTensor.from_pyval({"x": 1})))  # StructuredTensor
reveal_type(xt.struct.group_by(records, (), "title"))  # StructuredTensor
reveal_type(xt.struct.has(records, "minutes"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.is_null(records, "minutes"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.local_index(records, "minutes"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.map_values(records, lambda x: x, "minutes"))  # StructuredTensor
reveal_type(xt.struct.num(records, "minutes"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.num(records, "minutes", "count"))  # Any: the value of a field, or records with it
reveal_type(xt.struct.num_cut(records, {"minutes": 1}))  # dict[str, Tensor]
reveal_type(xt.struct.pad(records, "minutes", 3, value=0))  # Any: records, masked ones for the path ()
reveal_type(xt.struct.promote(records, "steps.minutes", "minutes"))  # StructuredTensor
reveal_type(xt.struct.promote_and_broadcast(records, {"m": "minutes"}))  # StructuredTensor
reveal_type(xt.struct.rename(records, {"minutes": "m"}))  # StructuredTensor
reveal_type(xt.struct.reroot(records, "steps"))  # StructuredTensor
reveal_type(xt.struct.singletons(records, "title"))  # StructuredTensor
reveal_type(xt.struct.slice(records, "minutes", 1))  # StructuredTensor
reveal_type(xt.struct.sort(records, "minutes"))  # StructuredTensor
reveal_type(xt.struct.spec_from(Recipe, [None]))  # StructuredTensorSpec
reveal_type(xt.struct.to_tf(records))  # Unknown: a class of TensorFlow without types
reveal_type(xt.struct.tree(records))  # Tree
reveal_type(xt.struct.unflatten(records, "minutes", [[1, 1]]))  # StructuredTensor
reveal_type(xt.struct.unique(records, "minutes"))  # StructuredTensor
reveal_type(xt.struct.zip({"x": tensor}))  # StructuredTensor

# extensor.testing
reveal_type(xt.testing.check_extension_type([records]))  # None
reveal_type(xt.testing.check_spec(spec, max_examples=5))  # None
reveal_type(xt.testing.laws())  # list[Law]
reveal_type(xt.testing.parametrize_laws([records]))  # (Any) -> Any: a test function
reveal_type(xt.testing.specs_of(records))  # SearchStrategy[TypeSpec[Unknown]]
reveal_type(xt.testing.values_of(spec))  # SearchStrategy[Any]: values of any type
