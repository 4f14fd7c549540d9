"""EmbeddingBags gives the vectors, the gradients and the weights of an EmbeddingBag a field."""

import functools

import keras
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from tests.keras.layers.samples import WORDS, nullable_lists, ragged

Bag, Bags = xt.keras.layers.EmbeddingBag, xt.keras.layers.EmbeddingBags
IDS = tf.ragged.constant([[1, 2, 1], [], [3]])
TAGS = tf.ragged.constant([["salt", "oil"], ["rice", "beer"], []])
RECORDS = xt.DenseStructuredTensor([3], {"ids": IDS, "others": IDS[::-1], "tags": TAGS})


def bags(combiner="mean", **options):
    return {
        "ids": Bag(3, input_dim=7, combiner=combiner, **options),
        "others": Bag(3, input_dim=4, combiner=combiner),
        "tags": Bag(3, vocabulary=WORDS, combiner=combiner, empty=0.5),
    }


def side_by_side(separate, records):
    return tf.concat([bag(records[path]) for path, bag in separate.items()], axis=1)


def same(separate):
    """EmbeddingBags with the same vectors."""
    side_by_side(separate, RECORDS)
    return Bags(separate)


COMBINER = pytest.mark.parametrize("combiner", ["sum", "mean", "max", "attention"])


@COMBINER
def test_the_results_are_those_of_separate_bags(combiner):
    separate = bags(combiner)
    together = same(separate)
    np.testing.assert_array_equal(together(RECORDS), side_by_side(separate, RECORDS))
    assert together(RECORDS).shape == (3, 9)
    assert len(together.trainable_weights) == (6 if combiner == "attention" else 1)
    traced = tf.function(together)(RECORDS)
    np.testing.assert_allclose(traced, together(RECORDS), rtol=1e-6)


@functools.cache
def separate_and_together(combiner):
    separate = {p: Bag(2, input_dim=7, combiner=combiner, empty=e) for p, e in (("a", 0), ("b", 9))}
    return separate, Bags(separate)


@pytest.mark.whole("draws many values")
@pytest.mark.parametrize("combiner", ["sum", "mean", "max"])
@given(rows=st.tuples(*[nullable_lists(st.integers(0, 6), min_size=1)] * 2))
def test_lists_with_nulls_are_as_in_separate_bags(combiner, rows):
    size = min(map(len, rows))
    fields = {"a": ragged(rows[0][:size], pa.int32()), "b": ragged(rows[1][:size], pa.int64())}
    records = xt.DenseStructuredTensor([size], fields)
    separate, together = separate_and_together(combiner)
    np.testing.assert_allclose(together(records), side_by_side(separate, records), rtol=1e-6)


@pytest.mark.parametrize("combiner", ["sum", "mean", "max"])
def test_gradients_are_those_of_separate_bags(combiner):
    separate = bags(combiner)
    together = same(separate)
    with tf.GradientTape(persistent=True) as tape:
        losses = [
            tf.reduce_sum(f(RECORDS) ** 2) for f in (together, lambda r: side_by_side(separate, r))
        ]
    [found] = tape.gradient(losses[0], together.trainable_weights)
    weights = [bag.trainable_weights[0] for bag in separate.values()]
    expected = tf.concat([tf.convert_to_tensor(g) for g in tape.gradient(losses[1], weights)], 0)
    assert np.abs(expected).sum() > 0
    np.testing.assert_allclose(tf.convert_to_tensor(found), expected, rtol=1e-5, atol=1e-6)


def test_first_weights_are_those_of_the_initializers_of_the_bags():
    separate = bags()
    together = Bags(separate)
    side_by_side(separate, RECORDS)
    for path, bag in separate.items():
        np.testing.assert_array_equal(together.embeddings[path], bag.get_weights()[0])


def test_bags_of_another_width_or_combiner_have_another_table():
    others = {**bags(), "wide": Bag(5, input_dim=4), "sum": Bag(3, input_dim=4, combiner="sum")}
    records = RECORDS.with_updates({"wide": IDS, "sum": IDS})
    together = same(bags()), Bags(others)
    assert [tuple(weight.shape) for weight in together[1].weights] == [(16, 3), (4, 5), (4, 3)]
    expected = side_by_side(others, records)
    np.testing.assert_allclose(together[1](records), expected, rtol=1e-6)


@pytest.mark.parametrize("combiner", ["sum", "mean", "max"])
def test_the_fields_of_a_table_have_one_lookup_and_one_reduction(combiner):
    layer = Bags(bags(combiner))
    graph = tf.function(layer).get_concrete_function(RECORDS).graph
    operations = [op for op in graph.get_operations() if op.type not in ("Cast", "Identity")]
    table = layer.weights[0].shape
    assert len([op for op in operations if any(x.shape == table for x in op.inputs)]) == 1
    segments = [op for op in operations if "Segment" in op.type]
    assert len([op for op in segments if op.outputs[0].dtype.is_floating]) == 1


def test_fields_with_one_bag_share_its_vectors(tmp_path):
    shared = Bag(3, input_dim=7)
    together = Bags({"ids": shared, "others": shared})
    assert tuple(together.weights[0].shape) == (7, 3)
    result = together(RECORDS)
    np.testing.assert_allclose(result[:, :3], result[::-1, 3:], rtol=1e-6)
    again = Bags.from_config(together.get_config())
    assert tuple(again.weights[0].shape) == (7, 3)


def test_a_dict_has_the_result_of_each_bag_also_of_lists_in_lists():
    nested = tf.ragged.constant([[[1, 2], []], [], [[3]]])
    records = RECORDS.with_updates(nested=nested)
    separate = {**bags(), "nested": Bag(3, input_dim=4)}
    side = {path: bag(records[path]) for path, bag in separate.items()}
    found = Bags(separate, output_mode="dict")(records)
    assert list(found) == list(separate)
    for path, expected in side.items():
        assert type(found[path]) is type(expected)
        for ours, theirs in zip(*map(_parts, (found[path], expected)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    with pytest.raises(errors.StructureError, match="nested: expected one list for each record"):
        Bags(separate)(records)


def _parts(value):
    return tf.nest.flatten(value, expand_composites=True)


def model(make):
    keras.utils.set_random_seed(1)
    placeholder = xt.keras.Input(tf.data.Dataset.from_tensor_slices(RECORDS).batch(2).element_spec)
    joined = make(bags(embeddings_regularizer="l2"), placeholder)
    made = xt.keras.Model(placeholder, keras.layers.Dense(1)(joined))
    made.compile(keras.optimizers.SGD(0.1), "mse")
    return made


@pytest.mark.whole("trains models")
def test_a_model_is_trained_saved_and_exported_as_one_with_separate_bags(tmp_path):
    one = model(lambda each, records: Bags(each)(records))
    other = model(lambda each, records: keras.layers.Concatenate()(
        [bag(records[path]) for path, bag in each.items()]))  # fmt: skip
    data = tf.data.Dataset.from_tensor_slices((RECORDS, tf.ones([3, 1]))).batch(2)
    losses = [each.fit(data, epochs=3, verbose=0).history["loss"] for each in (one, other)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    one.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(RECORDS), one(RECORDS))
    one.save_weights(tmp_path / "one.weights.h5")
    again = model(lambda each, records: Bags(dict(reversed(each.items())))(records))
    again.load_weights(tmp_path / "one.weights.h5")
    for path, vectors in one.layers[1].embeddings.items():
        np.testing.assert_array_equal(again.layers[1].embeddings[path], vectors)
    one.export(tmp_path / "model", verbose=False)
    served = tf.saved_model.load(tmp_path / "model")
    np.testing.assert_allclose(served.serve(RECORDS), one(RECORDS), rtol=1e-5)


def test_half_precision():
    together = Bags(bags(), dtype="mixed_float16")
    assert together(RECORDS).dtype == tf.float16
    assert together.weights[0].dtype == "float32"


@pytest.mark.parametrize("number", [-1, 4])
def test_an_id_of_another_field_is_an_error(number):
    records = RECORDS.with_updates(others=tf.ragged.constant([[number], [], []]))
    for call in (Bags(bags()), tf.function(Bags(bags()))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="ids, others: expected ids from"):
            call(records)


def test_bad_arguments_and_fields_are_named():
    with pytest.raises(errors.ArgumentError, match="an EmbeddingBag for at least one field"):
        Bags({})
    with pytest.raises(errors.ArgumentError, match="tags: expected an EmbeddingBag, got Dense"):
        Bags({"tags": keras.layers.Dense(1)})
    with pytest.raises(errors.ArgumentError, match="output_mode"):
        Bags(bags(), output_mode="list")
    with pytest.raises(errors.DTypeError, match="tags: expected ids that are integers"):
        Bags({"tags": Bag(2, input_dim=3)})(RECORDS)
    with pytest.raises(errors.FieldError, match="tag"):
        Bags({"tag": Bag(2, input_dim=3)})(RECORDS)
    with pytest.raises(errors.UnsupportedTypeError, match="expected records"):
        Bags(bags())(IDS)
    vectors = RECORDS.with_updates(
        ids=tf.RaggedTensor.from_row_splits([[1, 2], [3, 4]], [0, 1, 1, 2])
    )
    with pytest.raises(errors.StructureError, match="ids: expected lists of words or ids"):
        Bags(bags())(vectors)


def adapted(**options):
    made = Bags({"tags": 3, "ids": 2, "others": Bag(2, input_dim=4)}, **options)
    labeled = tf.data.Dataset.from_tensor_slices((RECORDS, [1, 2, 3])).batch(2)
    made.adapt(labeled)
    return made


@pytest.mark.parametrize("max_tokens", [None, 3])
def test_adapt_reads_the_vocabularies_that_layers_of_keras_read(max_tokens):
    layer = adapted(max_tokens=max_tokens)
    lookups = {"tags": keras.layers.StringLookup, "ids": keras.layers.IntegerLookup}
    for path, kind in lookups.items():
        lookup = kind(max_tokens=max_tokens)
        lookup.adapt(RECORDS[path].flat_values)
        assert len(layer.embeddings[path]) == lookup.vocabulary_size()
    words = keras.layers.StringLookup(max_tokens=max_tokens)
    words.adapt(RECORDS["tags"].flat_values)
    own = [layer.embeddings["tags"].numpy()[words(row)] for row in RECORDS["tags"]]
    expected = [rows.mean(0) if len(rows) else np.zeros(3) for rows in own]
    np.testing.assert_allclose(layer(RECORDS)[:, :3], expected, rtol=1e-5, atol=1e-7)


def test_fields_without_a_bag_have_the_combiner_of_the_layer():
    layer = adapted(combiner="sum", output_mode="dict")
    ids = keras.layers.IntegerLookup()
    ids.adapt(RECORDS["ids"].flat_values)
    own = [layer.embeddings["ids"].numpy()[ids(row)].sum(0) for row in RECORDS["ids"]]
    np.testing.assert_allclose(layer(RECORDS)["ids"], own, rtol=1e-5, atol=1e-7)
    assert len(layer.weights) == 3  # sums of 3 and of 2 numbers, and a mean of 2


READ = """
import sys
import keras
import numpy as np
import tensorflow as tf
import extensor as xt
model = keras.saving.load_model("{folder}/model.keras")
records = xt.DenseStructuredTensor([3], {{
    "ids": tf.ragged.constant([[1, 2, 1], [], [3]]),
    "others": tf.ragged.constant([[3], [], [1, 2, 1]]),
    "tags": tf.ragged.constant([["salt", "oil"], ["rice", "beer"], []])}})
np.testing.assert_allclose(model(records), np.load("{folder}/expected.npy"), rtol=1e-6)
print({{path: len(vectors) for path, vectors in model.layers[1].embeddings.items()}})
"""


@pytest.mark.whole("starts a process")
def test_a_model_with_vocabularies_of_adapt_is_read_in_a_fresh_process(tmp_path, run_python):
    spec = tf.data.Dataset.from_tensor_slices(RECORDS).batch(2).element_spec
    placeholder = xt.keras.Input(spec)
    saved = xt.keras.Model(placeholder, keras.layers.Dense(1)(adapted()(placeholder)))
    saved.save(tmp_path / "model.keras")
    np.save(tmp_path / "expected.npy", saved(RECORDS))
    done = run_python(READ.format(folder=tmp_path))
    assert done.stdout.strip().endswith("{'tags': 5, 'ids': 4, 'others': 4}")


@pytest.mark.filterwarnings("ignore:.*unbuilt state:UserWarning")
def test_errors_of_adapt_are_named():
    layer = Bags({"tags": 3, "ids": Bag(2, input_dim=4)})
    assert "tags" not in layer.embeddings
    again = Bags.from_config(layer.get_config())
    again.adapt(RECORDS)
    assert again.embeddings["tags"].shape == (5, 3)
    with pytest.raises(errors.StructureError, match="at least one field without a vocabulary"):
        again.adapt(RECORDS)
    with pytest.raises(errors.StructureError, match=r"none for tags. Call adapt\(dataset\) first"):
        layer(RECORDS)
    with pytest.raises(errors.StructureError, match="a layer that was not called yet"):
        layer.adapt(RECORDS)
    floats = xt.DenseStructuredTensor([1], {"price": tf.ragged.constant([[1.5]])})
    with pytest.raises(errors.DTypeError, match="price: expected strings or integers, got float32"):
        Bags({"price": 3}).adapt(floats)
    empty = xt.DenseStructuredTensor([1], {"tags": tf.ragged.constant([[]], dtype=tf.string)})
    with pytest.raises(errors.StructureError, match="tags: expected at least one string, got none"):
        Bags({"tags": 3}).adapt(empty)
    with pytest.raises(errors.UnsupportedTypeError, match="expected batches of records, got dict"):
        Bags({"tags": 3}).adapt({"tags": TAGS})
    with pytest.raises(errors.ArgumentError, match="tags: expected vectors of size 1 or more"):
        Bags({"tags": 0})
    with pytest.raises(errors.ArgumentError, match="tags: expected an EmbeddingBag, got bool"):
        Bags({"tags": True})
    with pytest.raises(errors.ArgumentError, match="expected one of the combiners"):
        Bags({"tags": 3}, combiner="median")


def test_the_loss_of_a_regularizer_is_that_of_separate_bags():
    shared = Bag(3, input_dim=7, embeddings_regularizer="l2", embeddings_initializer="ones")
    other = Bag(3, input_dim=7, embeddings_regularizer="l1", embeddings_initializer="ones")
    separate = {"ids": shared, "others": shared, "both": other}
    records = RECORDS.with_updates(both=IDS)
    layer = Bags(separate)
    layer(records)
    side_by_side(separate, records)
    expected = sum(map(float, [*shared.losses, *other.losses]))
    assert sum(map(float, layer.losses)) == pytest.approx(expected)
    assert expected == pytest.approx(3 * 7 * (0.01 + 0.01))


def test_a_bag_that_is_not_trained_stays_as_it_is(tmp_path):
    frozen = Bag(3, input_dim=7, embeddings_initializer="ones", trainable=False)
    layer = Bags({"ids": frozen, "others": Bag(3, input_dim=4)})
    record = xt.keras.Input(xt.spec_of(RECORDS[["ids", "others"]]).unstacked().stacked(None))
    model = xt.keras.Model(record, keras.layers.Dense(1)(layer(record)))
    model.compile("sgd", "mse")
    before = layer.embeddings
    model.fit(RECORDS[["ids", "others"]], np.ones([3, 1]), verbose=0)
    assert np.array_equal(layer.embeddings["ids"], np.ones([7, 3]))
    assert not np.array_equal(layer.embeddings["others"], before["others"])
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert len(again.trainable_weights) == len(model.trainable_weights) == 3


def test_files_keep_all_bits_of_wide_floats(tmp_path):
    layer = Bags({"ids": Bag(3, input_dim=7)}, dtype="float64")
    record = xt.keras.Input(xt.spec_of(RECORDS[["ids"]]).unstacked().stacked(None))
    xt.keras.Model(record, layer(record)).save(tmp_path / "model.keras")
    [weight] = keras.saving.load_model(tmp_path / "model.keras").get_weights()
    np.testing.assert_array_equal(weight, layer.get_weights()[0])
