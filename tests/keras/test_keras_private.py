"""One probe for each private name of Keras that extensor uses: it tells which one broke."""

import operator
import pathlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor
import extensor as xt
import extensor.keras  # it changes Keras
from extensor._keras import _keras_private

LIBRARY = pathlib.Path(extensor.__file__).parent
ROOM = LIBRARY / "_keras"
PRIVATE_FILES = ROOM / "_keras_private.py"


def test_a_model_is_saved_with_the_function_under_default_save_signature(tmp_path):
    class Doubled(keras.Model):
        @property
        def _default_save_signature(self):
            spec = tf.TensorSpec([None, 2], tf.int64)
            return tf.function(lambda x: self(x), input_signature=[spec])

        def call(self, x):
            return x * 2

    model = Doubled()
    model(tf.zeros([1, 2], tf.int64))
    tf.saved_model.save(model, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    signature = loaded.signatures["serving_default"].structured_input_signature[1]
    assert [spec.dtype for spec in signature.values()] == [tf.int64]


def test_keras_itself_would_save_it_for_floats():
    # The reason for the override. If this fails, it may go.
    class Doubled(keras.Model):
        def call(self, x):
            return x * 2

    model = Doubled()
    model(tf.zeros([1, 2], tf.int64))
    (spec,) = model._default_save_signature.input_signature
    assert spec.dtype == tf.float32


@pytest.mark.parametrize("has", [True, False])
def test_call_has_training_arg_tells_whether_call_takes_training(has):
    class With(keras.Model):
        def call(self, x, training=False):
            return x

    class Without(keras.Model):
        def call(self, x):
            return x

    assert (With if has else Without)()._call_has_training_arg is has
    arguments = _keras_private.inference_arguments((With if has else Without)())
    assert arguments == ({"training": False} if has else {})


def test_maybe_symbolic_build_makes_the_variables_under_a_strategy():
    calls = []

    class Probe(keras.Model):
        def _maybe_symbolic_build(self, *args, **kwargs):
            calls.append(kwargs)

        def call(self, x):
            return x

    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model = Probe()
        model.compile(loss="mse")
        model.evaluate(np.zeros([2, 1]), np.zeros([2, 1]), verbose=0)
    assert calls


def test_function_wrapper_is_what_keras_makes_of_a_loss_function():
    assert issubclass(keras.losses.MeanSquaredError, _keras_private.LossOfFunction)
    loss = _keras_private.LossOfFunction(lambda y_true, y_pred: y_true - y_pred, name="difference")
    assert isinstance(loss, keras.losses.Loss)
    # It gives a vector and a column one rank, and takes the mean.
    assert float(loss(np.array([3.0, 5.0]), np.array([[1.0], [2.0]]))) == 2.5


def test_standardize_inputs_returns_what_the_layers_of_a_functional_model_get():
    x = keras.Input((1,))
    base = type(keras.Model(x, keras.layers.Identity()(x)))

    class Ones(_keras_private.OwnInputs, base):
        def standardized(self, inputs):
            return None if inputs is None else [tf.ones([2, 1])]

    y = keras.layers.Rescaling(2.0)(x)
    np.testing.assert_array_equal(Ones(x, y)(tf.zeros([2, 1])), [[2.0], [2.0]])


def test_inbound_nodes_are_the_calls_of_a_layer_in_the_graph():
    first, second, layer = keras.Input((1,)), keras.Input((1,)), keras.layers.Rescaling(2.0)
    doubled = layer(first)
    keras.layers.Identity()(second)  # Keras 3.10 rejects an input that no layer reads
    _keras_private.set_call_arguments(layer, (second,), {})
    model = keras.Model(second, doubled)
    np.testing.assert_array_equal(model(np.ones([1, 1])), [[2.0]])


def test_keras_mask_is_the_attribute_of_a_tensor_that_has_a_mask():
    ids = tf.constant([[1, 0]])
    vectors = keras.layers.Embedding(5, 3, mask_zero=True)(ids)
    assert vectors._keras_mask.numpy().tolist() == [[True, False]]
    assert _keras_private.has_mask(vectors)
    assert not _keras_private.has_mask(ids)


def test_a_sequential_runs_its_functional_model():
    class Own(_keras_private.OwnGraph, keras.Sequential):
        def functional_model(self, inputs, outputs, name):
            return keras.Model(inputs, outputs * 2, name=name)

    model = Own([keras.Input((1,), name="x"), keras.layers.Rescaling(3.0)])
    assert model.declared_input.name == "x"
    np.testing.assert_array_equal(model(np.ones([1, 1])), [[6.0]])
    model = Own([keras.layers.Rescaling(3.0)])
    assert model.declared_input is None
    assert model.functional is None


def test_clone_sequential_model_is_what_clone_model_calls_for_a_sequential():
    class Own(_keras_private.OwnGraph, keras.Sequential):
        def clone_with(self, clone_function, input_tensors):
            return [clone_function(layer).scale for layer in self.layers]

    assert keras.models.clone_model(Own([keras.layers.Rescaling(3.0)])) == [3.0]


def test_serialize_keras_object_is_called_for_the_parts_of_a_configuration():
    assert keras.saving.serialize_keras_object.__module__ == "keras.src.saving.serialization_lib"

    class Held(keras.layers.Layer):
        def get_config(self):
            return {"spec": xt.DenseStructuredTensorSpec([], {})}

    config = keras.saving.serialize_keras_object(Held())["config"]
    assert config["spec"]["registered_name"] == "extensor>Kept"


def test_keras_itself_cannot_read_a_spec_again():
    # The reason for the wrapper.
    config = keras.saving.serialize_keras_object(tf.RaggedTensorSpec([None, None]))
    with pytest.raises(TypeError, match="Could not locate class"):
        keras.saving.deserialize_keras_object(config)


REFUSED = {
    "keras.layers.Layer.__call__": (lambda x: keras.layers.Identity()(x), "Only input tensors"),
    "keras.Model.fit": (lambda x: plain_model().fit(x, x), "Unrecognized data type"),
    "keras.Model.evaluate": (lambda x: plain_model().evaluate(x, x), "Unrecognized data type"),
    "keras.Model.predict": (lambda x: plain_model().predict(x), "Unrecognized data type"),
    "keras.src.models.functional.Functional.__init__": (
        lambda x: keras.Model(x, x), "values must be KerasTensors"),
    "keras.Sequential.add": (lambda x: keras.Sequential([x]), "Only instances of `keras.Layer`"),
    "keras.Input": (lambda x: keras.Input(x), "to a shape"),
    "keras.layers.Input": (lambda x: keras.layers.Input(type_spec=x), "unexpected keyword"),
}  # fmt: skip


def plain_model():
    model = keras.Sequential([keras.layers.Identity()])
    model.compile(loss="mse")
    return model


@pytest.mark.parametrize("target", REFUSED)
def test_refused_values_are_refused_by_the_function_that_is_changed(target):
    # Of a value that is none of ours. If Keras accepts it, or another function refuses it, the
    # change of the error goes elsewhere.
    door, message = REFUSED[target]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        door(object())
    found = target.removeprefix("keras.")
    changed = operator.attrgetter(found)(keras)
    names = {frame.frame.code.raw.co_name for frame in caught.traceback}
    assert changed.__code__.co_name in names
    listed = {patch.target for patch in xt.patches() if patch.probe == "refused_values"}
    assert listed == set(REFUSED)


def test_masked_inputs_are_refused_or_read_row_by_row_by_keras():
    # The reason for the changes of `adapt` and `StringLookup.call`.
    words = xt.types.MaskedTensor(["a", "b", "a"], [True, True, True])
    layer = keras.layers.StringLookup()
    layer.adapt.__wrapped__(layer, words)
    assert layer.get_vocabulary()[1] == "a"  # converted row by row
    lookup = keras.layers.StringLookup(vocabulary=["a"])
    with pytest.raises(TypeError):  # outside of a graph, Keras converts them with NumPy
        tf.function(lambda words: lookup.call.__wrapped__(lookup, words))(words)
    listed = {patch.target for patch in xt.patches() if patch.probe == "masked_inputs"}
    assert len(listed) == 6


def test_the_dtype_of_a_tensor_may_be_a_string_of_another_class():
    # Public names only, but extensor depends on it: a copy has the spec too.
    class Own(str):
        pass

    tensor = keras.KerasTensor((None,), Own("string"))
    assert type(tensor.dtype) is Own
    assert type(keras.KerasTensor(tensor.shape, tensor.dtype).dtype) is Own
    assert type(keras.Input(batch_shape=(None,), dtype=tensor.dtype).dtype) is Own


def test_flatten_layers_returns_the_layers_in_layers():
    inner = keras.layers.StringLookup(vocabulary=["a"])
    model = keras.Sequential([keras.Sequential([inner])])
    assert inner in _keras_private.layers_in(model)
    assert model in _keras_private.layers_in(model)


def test_initial_epoch_is_the_epoch_with_which_fit_begins():
    class Later(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            _keras_private.begin_with_epoch(self.model, 2)

    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(np.ones([1, 1]), np.ones([1]), epochs=3, verbose=0, callbacks=[Later()])
    assert history.epoch == [2]


def test_a_second_save_makes_no_optimizer_to_know_what_is_not_saved(tmp_path, monkeypatch):
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones([4, 1]), np.ones([4]), verbose=0)
    model.save_weights(tmp_path / "first.weights.h5")
    _keras_private.keep_names_not_saved()
    made, plain = [], keras.optimizers.Optimizer.__init__
    monkeypatch.setattr(
        keras.optimizers.Optimizer, "__init__", lambda *a, **k: made.append(plain(*a, **k))
    )
    model.save_weights(tmp_path / "second.weights.h5")
    assert made == []
    found, steps = model.get_weights(), int(model.optimizer.iterations)
    for name in ("first", "second"):
        for variable in (*model.weights, *model.optimizer.variables):
            variable.assign(tf.zeros_like(variable))
        model.load_weights(tmp_path / f"{name}.weights.h5")
        assert all(map(np.array_equal, model.get_weights(), found))
        assert int(model.optimizer.iterations) == steps > 0


def test_a_layer_that_was_called_takes_no_other_layers():
    layer = keras.layers.Dense(1)
    assert not _keras_private.is_closed(layer)
    layer(np.ones([1, 1]))
    assert _keras_private.is_closed(layer)
    with pytest.raises(ValueError, match="already built"):
        layer.other = keras.layers.Dense(1)


def test_summaries_are_those_of_discretization():
    numbers = np.random.default_rng(0).normal(size=[2, 500]).astype(np.float32)
    layer = keras.layers.Discretization(num_bins=4)
    summaries = []
    for batch in numbers:
        layer.update_state(batch)
        summaries.append(_keras_private.summary_with(np.zeros([2, 0], np.float32), batch, 0.01))
    joined = _keras_private.joined_summaries(summaries[1], summaries[0], 0.01)
    np.testing.assert_allclose(joined, layer.summary, rtol=0.05, atol=0.05)


def test_the_table_lists_what_is_probed():
    listed = re.findall(r"^\| `(?:\w+\.)?(\w+)` \|", _keras_private.__doc__, re.MULTILINE)
    assert sorted(listed) == [
        "Functional",
        "LossFunctionWrapper",
        "_call_has_training_arg",
        "_default_save_signature",
        "_flatten_layers",
        "_functional",
        "_inbound_nodes",
        "_initial_epoch",
        "_keras_mask",
        "_layers",
        "_maybe_symbolic_build",
        "_standardize_inputs",
        "_tracker",
        "global_state",
        "merge_summaries",
        "summarize",
    ]
    source = PRIVATE_FILES.read_text().split('"""', 2)[2]
    assert all(name in source for name in listed)


def test_a_model_of_inputs_and_outputs_is_a_functional():
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    assert type(model) is _keras_private.KerasFunctional


def test_every_patch_of_keras_has_a_probe():
    patches = [patch for patch in xt.patches() if patch.target.startswith("keras")]
    assert {patch.probe for patch in patches} == {
        "clone_sequential_model",
        "masked_inputs",
        "refused_values",
        "serialize_keras_object",
    }
    assert all(patch.versions == ("3.10", "3.15") for patch in patches)


def private_names():
    """Every private name that some object of Keras has."""
    layer = keras.layers.Dense(1)
    inputs = keras.Input((1,))
    model = keras.Model(inputs, layer(inputs))
    objects = [
        layer, inputs, model, keras.Sequential([layer]), keras.losses.MeanSquaredError(),
        keras.metrics.Mean(), keras.utils.PyDataset(), keras.export.ExportArchive(),
        keras.Variable(1.0), keras.optimizers.SGD(), keras.Operation(),
    ]  # fmt: skip
    return {
        name
        for thing in objects
        for name in {*dir(thing), *vars(thing)}
        if name.startswith("_") and not name.startswith("__")
    }


def test_no_other_file_names_a_private_part_of_keras():
    private = private_names()
    assert {"_inbound_nodes", "_keras_history"} < private
    own = {"_path"}  # the module extensor._path
    files = {path for path in ROOM.glob("*.py") if not path.name.startswith("_keras")}
    assert ROOM / "model.py" in files
    for path in sorted(files):
        source = path.read_text()
        assert "keras.src" not in source, path.name
        used = set(re.findall(r"(?:\.|def |[\"'])(_[a-z]\w*)", source)) - own
        assert not used & private, path.name
