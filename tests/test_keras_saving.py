"""Models of records on disk: exported, saved whole, and read by a process that never saw them."""

import keras
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from tests import sample_models as sample
from tests.sample_types import fresh_masked_type

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

SAVED = """
import keras
import numpy as np
from tests import sample_models

records = sample_models.recipes()
model = keras.saving.load_model({path!r})
np.save({out!r}, model(records))
np.savez({out!r} + "-weights.npz", *[w.numpy() for w in model.weights])
dataset = sample_models.batches()
np.save({out!r} + "-fit.npy", model.fit(dataset, verbose=0).history["loss"])
"""


def trained(make):
    model = make()
    model.compile(keras.optimizers.Adam(0.1), "mse")
    model.fit(sample.batches(), verbose=0)
    return model


@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_an_exported_model_gives_the_same_numbers_in_a_fresh_process(tmp_path, run_python, make):
    model = trained(make)
    parquet, path, out = (str(tmp_path / n) for n in ("r.parquet", "exported", "out.npy"))
    pq.write_table(sample.table(), parquet)
    model.export(path, verbose=False)
    run_python(EXPORTED.format(parquet=parquet, path=path, out=out))
    np.testing.assert_array_equal(np.load(out), model(RECORDS))
    predicted = np.concatenate([model.predict_on_batch(x) for x, _ in sample.batches()])
    np.testing.assert_allclose(np.load(out), predicted, rtol=1e-6)


@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_a_saved_model_goes_on_in_a_fresh_process(tmp_path, run_python, make):
    model = trained(make)
    path, out = str(tmp_path / "model.keras"), str(tmp_path / "out.npy")
    model.save(path)
    run_python(SAVED.format(path=path, out=out))
    np.testing.assert_array_equal(np.load(out), model(RECORDS))
    with np.load(out + "-weights.npz") as weights:
        assert len(weights) == len(model.weights)
        for theirs, mine in zip(weights.values(), model.weights, strict=True):
            np.testing.assert_array_equal(theirs, mine)
    if make is sample.functional:  # dropout begins anew in plain Keras too
        history = model.fit(sample.batches(), verbose=0).history["loss"]
        np.testing.assert_array_equal(np.load(out + "-fit.npy"), history)


@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_predict_and_the_exported_model_agree_to_the_last_bit(tmp_path, make):
    model = trained(make)
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
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
    assert raised.value.expected == "a model that knows its input"
    assert "never called" in raised.value.received
    assert "input_signature=" in raised.value.mend
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


@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_weights_alone_come_back_too(tmp_path, make):
    model, other = called(make(), RECORDS), called(make(), RECORDS)
    assert not np.array_equal(model(RECORDS), other(RECORDS))
    model.save_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(model(RECORDS), other(RECORDS))


def test_a_model_that_was_never_called_is_saved_without_weights(tmp_path):
    with pytest.warns(UserWarning, match="not yet been built"):
        sample.Rating().save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded(RECORDS).shape == [10, 1]


@pytest.mark.parametrize("make", [sample.functional, sample.Rating])
def test_a_clone_is_a_model_of_the_same_kind_with_weights_of_its_own(make):
    model = called(make(), RECORDS)
    clone = called(keras.models.clone_model(model), RECORDS)
    assert type(clone) is type(model)
    assert [w.shape for w in clone.weights] == [w.shape for w in model.weights]
    clone.set_weights(model.get_weights())
    np.testing.assert_array_equal(clone(RECORDS), model(RECORDS))


def test_a_functional_model_shows_its_layers():
    model = functional_of(Doubled(name="doubled"), Lazy(name="lazy"))
    assert isinstance(model.get_layer("doubled"), Doubled)
    assert isinstance(model.get_layer(index=-1), Lazy)
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line))
    assert "doubled" in "".join(lines)
    assert model.count_params() == 8


def model_of_an_unregistered_type(form):
    masked_type, masked_spec = fresh_masked_type()

    class Filled(xt.keras.Layer):
        def call(self, masked):
            return tf.where(masked.mask, masked.values, 0.0)

    class Filling(xt.keras.Model):
        def __init__(self):
            super().__init__()
            self.filled, self.dense = Filled(), keras.layers.Dense(1)

        def call(self, masked):
            return self.dense(self.filled(masked))

    value = masked_type(tf.ones([4, 3]), tf.cast([[1, 0, 1]] * 4, tf.bool))
    if form == "subclassed":
        return called(Filling(), value), value
    masked = xt.keras.Input(masked_spec([None, 3], tf.float32))
    return xt.keras.Model(masked, keras.layers.Dense(1)(Filled()(masked))), value


@pytest.mark.parametrize("form", ["functional", "subclassed"])
def test_a_type_that_is_not_registered_works_in_its_process_alone(tmp_path, form):
    model, value = model_of_an_unregistered_type(form)
    kernel, bias = model.weights
    np.testing.assert_allclose(model(value), tf.fill([4, 1], kernel[0, 0] + kernel[2, 0] + bias[0]))
    model.compile("sgd", "mse")
    dataset = tf.data.Dataset.from_tensor_slices((value, tf.ones([4, 1]))).batch(3)
    assert len(model.fit(dataset, epochs=2, verbose=0).history["loss"]) == 2
    for write in (lambda: model.save(tmp_path / "m.keras"), lambda: model.export(tmp_path / "m")):
        with pytest.raises(errors.RegistrationError) as raised:
            write()
        assert isinstance(raised.value, ValueError)
        assert raised.value.path.endswith("MaskedTensorSpec")
        assert "a registered TypeSpec" in raised.value.expected
        assert "only this process" in raised.value.received
        assert "@xt.register_type_spec" in raised.value.mend


@xt.extension_type
class Tagged:
    x: tf.Tensor
    tag: object = None


@keras.saving.register_keras_serializable("tests")
class Untagged(xt.keras.Layer):
    def call(self, tagged):
        return tagged.x


@pytest.mark.parametrize("form", ["functional", "subclassed"])
def test_static_data_that_cannot_be_written_is_an_error_that_names_it(tmp_path, form):
    value = Tagged(tf.ones([4, 2]), object())
    if form == "functional":
        placeholder = xt.keras.Input(tf.type_spec_from_value(value))
        model = xt.keras.Model(placeholder, Untagged()(placeholder))
    else:
        model = called(xt.keras.Sequential([Untagged()]), value)
    np.testing.assert_array_equal(model(value), value.x)
    for write in (lambda: model.save(tmp_path / "m.keras"), lambda: model.export(tmp_path / "m")):
        with pytest.raises(errors.DTypeError) as raised:
            write()
        assert raised.value.path == f"{model.name}: Tagged.tag"
        assert "static data" in raised.value.expected
        assert "object" in raised.value.received
        assert raised.value.mend
