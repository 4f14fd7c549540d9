"""Models of records on disk: saved whole and exported, and read again."""

import keras
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests.keras import kinds
from tests.keras import sample_models as sample
from tests.keras.kinds import BATCH, KINDS

pytestmark = pytest.mark.whole("saves and loads models of every kind")

RECORDS = sample.recipes()


EXPORTED = """
import sys
import numpy as np
import tensorflow as tf
import extensor as xt

records = xt.read_parquet({parquet!r}).without("rating")
loaded = tf.saved_model.load({path!r})
np.save({out!r}, loaded.serve(records))
sizes = [loaded.serve(records[i : i + 3]) for i in (0, 3, 6, 9)]
np.testing.assert_allclose(np.concatenate(sizes), loaded.serve(records), rtol=1e-5, atol=1e-6)
other = records.with_only("ingredients", "title", "minutes", "taste")
np.testing.assert_array_equal(loaded.serve(other), loaded.serve(records))
assert "extensor.keras" not in sys.modules
"""


def trained(make):
    model = make()
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(sample.batches(), verbose=0)
    return model


@pytest.fixture(scope="module", params=[sample.functional, sample.Rating])
def model_and_export(request, tmp_path_factory):
    keras.utils.set_random_seed(0)
    model, path = trained(request.param), str(tmp_path_factory.mktemp("model") / "exported")
    model.export(path, verbose=False)
    return model, path


def test_an_exported_model_gives_the_same_numbers_in_a_fresh_process(
    tmp_path, run_python, model_and_export
):
    model, path = model_and_export
    parquet, out = str(tmp_path / "r.parquet"), str(tmp_path / "out.npy")
    pq.write_table(sample.table(), parquet)
    run_python(EXPORTED.format(parquet=parquet, path=path, out=out))
    np.testing.assert_array_equal(np.load(out), model(RECORDS))
    predicted = np.concatenate([model.predict_on_batch(x) for x, _ in sample.batches()])
    np.testing.assert_allclose(np.load(out), predicted, rtol=1e-6)


def test_predict_and_the_exported_model_agree_to_the_last_bit(model_and_export):
    model, path = model_and_export
    loaded = tf.saved_model.load(path)
    predicted = model.predict(sample.batches(), verbose=0)
    served = np.concatenate([loaded.serve(records) for records, _ in sample.batches()])
    np.testing.assert_array_equal(served, predicted)


def test_an_exported_model_runs_in_inference_mode(tmp_path):
    model = sample.Rating()
    noisy = model(RECORDS, training=True)
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    served = loaded.serve(RECORDS)
    np.testing.assert_array_equal(served, model(RECORDS))
    assert not np.array_equal(served, noisy)


def test_a_model_that_was_never_called_is_exported_by_a_signature(tmp_path):
    model = sample.Rating()
    with pytest.raises(errors.StructureError) as raised:
        model.export(tmp_path / "exported")
    assert isinstance(raised.value, ValueError)
    assert raised.value.path == f"{model.name}.export"
    assert raised.value.expected == "a model that was called, or input_signature="
    assert "never called" in raised.value.received
    assert "input_signature=" in raised.value.fix
    assert not (tmp_path / "exported").exists()
    spec = sample.batches().element_spec[0]
    model.export(tmp_path / "exported", input_signature=[spec], verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    np.testing.assert_array_equal(loaded.serve(RECORDS), model(RECORDS))


def test_only_a_saved_model_is_exported(tmp_path):
    with pytest.raises(errors.UnsupportedTypeError, match="expected format='tf_saved_model'"):
        sample.functional().export(tmp_path / "model.onnx", format="onnx")
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_a_model_is_not_written_to_a_file_that_keras_cannot_read(tmp_path, make):
    model = called(make(), RECORDS)
    with pytest.raises(errors.UnsupportedTypeError, match=r"ends in \.keras") as raised:
        model.save(tmp_path / "model.h5")
    assert raised.value.path == f"{model.name}.save"
    assert not (tmp_path / "model.h5").exists()


def test_an_exported_model_refuses_other_records(tmp_path):
    model = sample.functional()
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    with pytest.raises((TypeError, ValueError)):
        loaded.serve(RECORDS.without("taste"))


@keras.saving.register_keras_serializable("tests")
class Doubled(xt.keras.Layer):
    def call(self, records):
        return records.with_updates(taste=records["taste"] * 2)


@keras.saving.register_keras_serializable("tests")
class Lazy(xt.keras.Layer):
    """A layer whose own layer is built by the first call."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(2)

    def call(self, records):
        return self.dense(records["taste"])


@keras.saving.register_keras_serializable("tests")
class Built(xt.keras.Layer):
    """A layer with a weight that `build` makes."""

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(3, 2))

    def call(self, records):
        return records["taste"] @ self.kernel


@keras.saving.register_keras_serializable("tests")
class Both(xt.keras.Model):
    """A model of models, and of layers of every kind."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.lazy, self.built_one, self.doubled = Lazy(), Built(), Doubled()
        self.one, self.other = sample.functional(), sample.Rating()

    def call(self, records):
        records = self.doubled(records)
        parts = [self.lazy, self.built_one, self.one, self.other]
        return tf.concat([part(records) for part in parts], axis=1)


@keras.saving.register_keras_serializable("tests")
class Compared(xt.keras.Model):
    """A model with arguments beside the first."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(2)

    def call(self, one, flip=False, other=None):
        sign = -1.0 if flip else 1.0
        return sign * self.dense(one["taste"] - (0.0 if other is None else other["taste"]))


def placeholder(name=None):
    return xt.keras.Input(sample.batches().element_spec[0], name)


def functional_of(*layers):
    recipe = value = placeholder()
    for layer in layers:
        value = layer(value)
    return xt.keras.Model(recipe, value)


def called(model, *args, **kwargs):
    model(*args, **kwargs)
    return model


def two_inputs():
    one, two = placeholder("one"), placeholder("two")
    joined = keras.layers.Concatenate()([Lazy()(one), Built()(two)])
    return xt.keras.Model((one, two), keras.layers.Dense(1)(joined))


OTHER = RECORDS.with_updates(taste=RECORDS["taste"] ** 2)


MODELS = {
    "layers with weights": (lambda: functional_of(Doubled(), Doubled(), Lazy()), [RECORDS]),
    "a layer with a build": (lambda: functional_of(Built()), [RECORDS]),
    "functional in functional": (lambda: functional_of(sample.functional()), [RECORDS]),
    "subclassed in functional": (lambda: functional_of(Doubled(), sample.Rating()), [RECORDS]),
    "records between models": (
        lambda: functional_of(functional_of(Doubled()), sample.functional()), [RECORDS],
    ),
    "models in subclassed": (lambda: called(Both(), RECORDS), [RECORDS]),
    "first called by keyword": (lambda: called(sample.Rating(), records=RECORDS), [RECORDS]),
    "two arguments": (lambda: called(Compared(), RECORDS, other=OTHER), [RECORDS, OTHER]),
    "two inputs": (two_inputs, [(RECORDS, OTHER)]),
}  # fmt: skip


def apply(model, args):
    return model(*args) if len(args) == 1 else model(args[0], other=args[1])


@pytest.mark.parametrize("case", MODELS)
def test_every_kind_of_model_comes_back_from_disk(tmp_path, case):
    make, args = MODELS[case]
    model = make()
    expected = apply(model, args)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(apply(loaded, args), expected)
    model.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    np.testing.assert_array_equal(exported.serve(*args), expected)


def test_a_model_that_was_never_called_is_saved_without_weights(tmp_path):
    with pytest.warns(UserWarning, match="not yet been built"):
        sample.Rating().save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded(RECORDS).shape == [10, 1]


EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Wrapped(xt.keras.Layer):
    """What a SavedModel serves, as a layer."""

    def __init__(self, path, load=tf.saved_model.load):
        super().__init__()
        self.loaded = load(path)

    def call(self, inputs):
        return self.loaded.serve(inputs)


@EACH
def test_a_layer_wraps_a_loaded_model(tmp_path, kind):
    model = kinds.functional(kind)
    model.export(tmp_path / "model", verbose=False)
    placeholder = xt.keras.Input(kind.spec)
    around = xt.keras.Model(placeholder, Wrapped(str(tmp_path / "model"))(placeholder))
    np.testing.assert_array_equal(around(kind.value), model(kind.value))
    predicted = around.predict(kind.value, BATCH, verbose=0)
    np.testing.assert_array_equal(predicted, model.predict(kind.value, BATCH, verbose=0))


@EACH
def test_models_inside_models(kind):
    inner = kinds.functional(kind)
    outer = xt.keras.Input(kind.spec)
    model = xt.keras.Model(outer, keras.layers.Dense(2)(inner(xt.keras.Identity()(outer))))
    deeper = xt.keras.Sequential([xt.keras.Identity(), model])
    np.testing.assert_array_equal(deeper(kind.value), model(kind.value))
    dense = model.get_layer(index=-1)
    np.testing.assert_array_equal(model(kind.value), dense(inner(kind.value)))


def test_an_export_to_a_format_that_keras_does_not_know_is_its_error(tmp_path):
    records = KINDS["records"]
    record = xt.keras.Input(records.spec)
    model = xt.keras.Model(record, record["taste"])
    with pytest.raises(ValueError, match="Unrecognized format=odd"):
        model.export(tmp_path / "model", format="odd")
    with pytest.raises(errors.UnsupportedTypeError, match=r"xt\.serving\.flat_signature"):
        model.export(tmp_path / "model", format="onnx")
