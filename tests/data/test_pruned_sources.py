"""Datasets of every source read the fields that are used, and their elements stay the same."""

import contextlib
import functools
import importlib
import json
from unittest import mock

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._data.prunable import is_prunable, prune
from extensor._streams.arrow import ArrowSource
from tests.data.test_prunable import all_used, in_arrays
from tests.formats.test_parquet import folder
from tests.keras.test_pruned_input import Scorer, assert_same, results
from tests.pruning.programs import EXPRESSIONS, table, value

# Keras warns at the end of each dataset whose number of batches is not known.
pytestmark = [
    pytest.mark.whole("compares every source with and without pruning"),
    pytest.mark.filterwarnings("ignore:Your input ran out of data"),
]

LEAVES = ["a", "b", "c", "title", "tags", "inner.d", "inner.e", "inner.sizes"]
LEAVES += ["steps.m", "steps.n", "steps.text"]


def message_class():
    """A message with the fields of the records."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="pruned.proto", package="p", syntax="proto3")

    def message(name, **fields):
        made = file.message_type.add(name=name)
        for number, (field, (kind, is_list)) in enumerate(fields.items(), 1):
            label = kinds.LABEL_REPEATED if is_list else kinds.LABEL_OPTIONAL
            names = {} if isinstance(kind, int) else {"type_name": f".p.{kind}"}
            number_of = kind if isinstance(kind, int) else kinds.TYPE_MESSAGE
            made.field.add(name=field, number=number, type=number_of, label=label, **names)

    number, text = kinds.TYPE_FLOAT, kinds.TYPE_STRING
    message("Inner", d=(number, False), e=(number, False), sizes=(number, True))
    message("Step", m=(number, False), n=(number, False), text=(text, False))
    message(
        "Record", a=(number, False), b=(number, False), c=(number, False), title=(text, False),
        tags=(number, True), inner=("Inner", False), steps=("Step", True),
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Record"))


Record = message_class()


def of_arrow(path, records, **options):
    with pa.ipc.new_file(f"{path}/0.arrow", records.schema) as writer:
        writer.write_table(records, max_chunksize=4)
    return lambda size, **more: xt.data.arrow(path, size, **options, **more)


def of_json(path, records, **options):
    with open(f"{path}/0.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in records.to_pylist())
    return lambda size, **more: xt.data.json(path, size, **options, **more)


def of_tfrecord(path, records, **options):
    xt.write_tfrecord(xt.from_arrow(records), f"{path}/0.tfrecord")
    return lambda size, **more: xt.data.tfrecord(path, size, **options, **more)


def of_parquet(path, records, **options):
    pq.write_table(records, f"{path}/0.parquet", row_group_size=4)
    return lambda size, **more: xt.data.parquet(path, size, **options, **more)


def of_batches(path, records):
    pieces = records.to_batches(max_chunksize=5)
    return lambda size, **more: xt.data.batches(pieces, records.schema, size, **more)


def of_proto(path, records):
    with open(f"{path}/0.bin", "wb") as file:
        for row in records.to_pylist():
            data = Record(**row).SerializeToString()
            length = len(data)
            while length > 0x7F:
                file.write(bytes([length & 0x7F | 0x80]))
                length >>= 7
            file.write(bytes([length]) + data)
    # A message without `inner` has the default of each field in it.
    return lambda size, **more: xt.data.proto(path, Record, size, nulls={"inner": xt.fill(ZERO)},
                                              **more)  # fmt: skip


ZERO = {"d": 0.0, "e": 0.0, "sizes": []}
with_schema = {"schema": table(0).schema}
SOURCES = {
    "arrow": of_arrow,
    "arrow, a schema": lambda *args: of_arrow(*args, **with_schema),
    "json, a schema": lambda *args: of_json(*args, **with_schema),
    "tfrecord, a schema": lambda *args: of_tfrecord(*args, **with_schema),
    "parquet, a schema": lambda *args: of_parquet(*args, **with_schema),
    "batches": of_batches,
    "proto": of_proto,
}


@contextlib.contextmanager
def converted():
    """Yields the set of the paths that are converted to tensors while it is open."""
    found = set()
    module = importlib.import_module("extensor._data.conversion")
    plain = module.read_records

    def counted(records, *args, **kwargs):
        spec = plain(records, *args, **kwargs).__tf_type_spec__()
        found.update(str(path) for path, _ in spec.leaves())
        return plain(records, *args, **kwargs)

    with mock.patch.object(module, "read_records", counted):
        yield found


@functools.cache
def of_all_fields(expressions):
    """A function of all fields, which is traced once for the sources of one spec."""
    return tf.function(lambda records: tuple(value(one, records) for one in expressions))


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=settings.default.max_examples // 4)
@given(
    expressions=st.lists(EXPRESSIONS, min_size=1, max_size=2),
    shape=st.sampled_from(["map", "filter"]),
    options=st.sampled_from([{}, {"shuffle": xt.data.Shuffle(1, 5), "epochs": 2}]),
)
def test_elements_are_the_same(name, expressions, shape, options):
    def mapped(records):
        return tuple(value(one, records) for one in expressions)

    def chained(dataset, function=mapped):
        if shape == "filter":
            dataset = dataset.filter(lambda records: records["b"][0] > 0.0)
        return dataset.map(function)

    with folder() as path:
        make = SOURCES[name](path, table(1, 11))
        whole = chained(make(3, columns=None, **options), of_all_fields(tuple(expressions)))
        found = prune(chained(make(3, **options)), all_used)
        assert found is not None
        assert found.dataset.element_spec == whole.element_spec
        assert list(map(in_arrays, found.dataset)) == list(map(in_arrays, whole))


@pytest.mark.parametrize("name", SOURCES)
def test_only_the_fields_of_the_model_are_converted(name, tmp_path):
    make = SOURCES[name](str(tmp_path), table(2, 40))
    assert not is_prunable(make(8, columns=None))
    assert not is_prunable(make(8, columns=["a", "inner"]))
    model = Scorer(("sum", ("steps", "m")))
    with converted() as read:
        outputs = model.predict(make(8), verbose=0)
    assert read == {"a", "steps.m"}
    with converted() as read:
        np.testing.assert_array_equal(model.predict(make(8, columns=None), verbose=0), outputs)
    assert sorted(read) == sorted(LEAVES)


@pytest.mark.parametrize("make", [of_json, of_tfrecord])
def test_types_that_were_found_out_stay(make, tmp_path):
    dataset = make(str(tmp_path), table(2, 20))(8).map(lambda r: (r["title"], r["tags"]))
    with converted() as read:
        found = list(map(in_arrays, prune(dataset, all_used).dataset))
    assert read == {"title", "tags"}
    assert found == list(map(in_arrays, dataset))


@pytest.mark.parametrize("name", ["json, a schema", "batches", "proto"])
def test_training_has_the_same_results(name, tmp_path):
    make = SOURCES[name](str(tmp_path), table(3, 32))

    def fitted(path, columns):
        def parquet(_, size, columns):
            return make(size, columns=columns)

        with mock.patch.object(xt.data, "parquet", parquet):
            return results(lambda: Scorer(("lengths", ("tags",))), path, columns)

    assert_same(*[fitted(None, columns) for columns in ("auto", None)])


def test_buffers_of_unused_columns_of_an_arrow_file_are_not_read(tmp_path):
    make = of_arrow(str(tmp_path), table(2, 4000))
    model, found = Scorer(("number", ("b",))), {}
    plain = ArrowSource.batches
    for columns in ("auto", None):

        def counted(self, groups, rows, columns=columns):
            for batch in plain(self, groups, rows):
                found[columns] = found.get(columns, 0) + batch.get_total_buffer_size()
                yield batch

        with mock.patch.object(ArrowSource, "batches", counted):
            model.predict(make(100, columns=columns), verbose=0)
    assert found["auto"] < found[None] / 5


def test_a_state_and_the_epochs_are_those_of_the_dataset(tmp_path):
    """A dataset that reads fewer fields goes on where the other one is."""
    pq.write_table(table(2, 40), tmp_path / "0.parquet", row_group_size=4)
    arguments = {"shuffle": xt.data.Shuffle(1, 8), "epochs": 2}
    whole = xt.data.parquet(tmp_path, 8, **arguments)
    state = xt.data.state(whole, 3)
    expected = [in_arrays(batch["a"]) for batch in whole]
    second = [in_arrays(batch["a"]) for batch in whole]
    resumed = xt.data.parquet(tmp_path, 8, **arguments, state=state).map(lambda r: r["a"])
    found = prune(resumed, all_used)
    assert list(map(in_arrays, found.dataset)) == expected[3:]
    assert list(map(in_arrays, found.dataset)) == second
    assert xt.data.state(resumed, 0)["epoch"] == 2


def test_a_backup_goes_on_where_a_model_that_uses_few_fields_was(tmp_path):
    pq.write_table(table(2, 40), tmp_path / "0.parquet", row_group_size=4)

    def trained(stop=None):
        keras.utils.set_random_seed(1)
        train = xt.data.parquet(f"{tmp_path}/*.parquet", 8, shuffle=xt.data.Shuffle(1, 8))
        labelled = train.map(lambda r: (r, r["c"][:, None]))
        model = Scorer(("number", ("b",)))
        model.compile("sgd", "mse")
        model(next(iter(xt.data.parquet(f"{tmp_path}/*.parquet", 8))))
        calls = [xt.keras.callbacks.BackupAndRestore(tmp_path / "b", labelled, save_freq=1)]

        class Stop(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                if stop == batch:
                    raise KeyboardInterrupt

        if stop is not None:
            calls.append(Stop())
        with contextlib.suppress(KeyboardInterrupt):
            model.fit(labelled, epochs=3, shuffle=False, callbacks=calls, verbose=0)
        return model.get_weights()

    expected = trained()
    trained(stop=2)
    assert_same(trained(), expected)


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
@pytest.mark.parametrize("columns", ["auto", None])
def test_an_error_of_the_data_reaches_who_trains(tmp_path, method, columns):
    records = table(2, 40)
    nulls = records.set_column(0, "a", pa.array([*[1.0] * 39, None], pa.float32()))
    pq.write_table(nulls, tmp_path / "0.parquet", row_group_size=4)
    dataset = xt.data.parquet(tmp_path, 8, columns=columns)
    if method != "predict":
        dataset = dataset.map(lambda r: (r, r["c"][:, None]))
    model = Scorer(("number", ("b",)))
    model.compile("sgd", "mse")
    with pytest.raises(errors.NullError, match=r"a: .*0\.parquet, row group 9, record 3") as caught:
        getattr(model, method)(dataset, verbose=0)
    assert caught.value.__cause__ is None
    assert "raised" not in str(caught.value)
