"""Rows whose target is null: they count neither in losses nor in metrics."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.types import MaskedTensor

X = xt.DenseStructuredTensor([4], {"x": [[1.0], [2.0], [3.0], [4.0]]})
Y = np.array([1.0, np.nan, 0.0, np.nan], "float32")
VALID = ~np.isnan(Y)
OPTIONS = {"metrics": ["mae", keras.metrics.MeanSquaredError], "weighted_metrics": ["mae"]}


def masked(y=Y):
    return MaskedTensor(y, ~np.isnan(y))


def model(loss="mse", units=1, **options):
    x = xt.keras.Input(xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 1])}))
    dense = keras.layers.Dense(units, kernel_initializer="ones")
    made = xt.keras.Model(x, dense(x["x"]))
    metrics = {
        name: [one() if isinstance(one, type) else one for one in OPTIONS[name]] for name in OPTIONS
    }
    made.compile("sgd", loss, **{**metrics, **options})
    return made


@pytest.mark.whole("trains models")
def test_rows_without_a_target_do_not_count():
    found, expected = model(), model()
    history = found.fit(X, masked(), epochs=3, shuffle=False, verbose=0).history
    plain = expected.fit(X[VALID], Y[VALID], epochs=3, shuffle=False, verbose=0).history
    assert history.keys() == plain.keys()
    for name in plain:
        np.testing.assert_allclose(history[name], plain[name], rtol=1e-5)
    for weight, twin in zip(found.weights, expected.weights, strict=True):
        np.testing.assert_allclose(weight, twin, rtol=1e-5)


@pytest.mark.parametrize("how", ["values", "dataset", "one-hot", "column"])
def test_class_weights_are_those_of_the_other_rows(how):
    options = {"epochs": 2, "class_weight": {0: 0.5, 1: 3.0}, "verbose": 0}
    y = np.nan_to_num(Y)
    y = {"one-hot": np.eye(2)[y.astype(int)], "column": y[:, np.newaxis]}.get(how, y)
    found, expected = (model(units=2 if how == "one-hot" else 1) for _ in range(2))
    plain = expected.fit(X[VALID], y[VALID], **options).history
    data = X, MaskedTensor(y, VALID)
    if how != "values":
        data = [tf.data.Dataset.from_tensor_slices(data).batch(4)]
    history = found.fit(*data, **options).history
    assert history.keys() == plain.keys()
    for name in plain:
        np.testing.assert_allclose(history[name], plain[name], rtol=1e-5)


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size", "mean_with_sample_weight"])
def test_the_loss_is_reduced_over_the_other_rows(reduction):
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    logs = model(loss).evaluate(X, masked(), verbose=0)
    np.testing.assert_allclose(logs, model(loss).evaluate(X[VALID], Y[VALID], verbose=0))


@pytest.mark.whole("traces many functions")
def test_other_weights_are_kept():
    weights = np.array([1.0, 5.0, 3.0, 7.0], "float32")
    logs = model().evaluate(X, masked(), sample_weight=weights, verbose=0)
    plain = model().evaluate(X[VALID], Y[VALID], sample_weight=weights[VALID], verbose=0)
    np.testing.assert_allclose(logs, plain)


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("y", [Y, Y[:, np.newaxis]], ids=["vector", "column"])
def test_a_batch_without_any_target_changes_nothing(y):
    rows = tf.data.Dataset.from_tensor_slices((X, masked(y))).batch(1)
    one = model()
    logs = one.evaluate(rows, verbose=0, return_dict=True)
    plain = model().evaluate(X[VALID], Y[VALID], verbose=0, return_dict=True)
    np.testing.assert_allclose(logs["mae"], plain["mae"])
    before = [weight.numpy() for weight in one.weights]
    one.reset_metrics()  # `train_on_batch` of Keras 3.10 counts earlier batches too
    logs = one.train_on_batch(X[1::2], masked(y[1::2]), return_dict=True)
    assert logs["loss"] == 0
    for weight, old in zip(one.weights, before, strict=True):
        np.testing.assert_array_equal(weight, old)


@pytest.mark.whole("trains models")
def test_targets_of_several_outputs_have_masks_of_their_own():
    x = xt.keras.Input(xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 1])}))
    outputs = {name: keras.layers.Dense(1, name=name)(x["x"]) for name in ("a", "b")}
    two = xt.keras.Model(x, outputs)
    two.compile("sgd", {"a": "mse", "b": "mse"}, metrics={"a": ["mae"], "b": ["mae"]})
    logs = two.evaluate(X, {"a": masked(), "b": np.zeros(4)}, verbose=0, return_dict=True)
    errors_of = {name: np.abs(np.array(value)[:, 0]) for name, value in two(X).items()}
    truth = np.abs(np.array(two(X)["a"])[VALID, 0] - Y[VALID])
    np.testing.assert_allclose(logs["a_mae"], truth.mean(), rtol=1e-5)
    np.testing.assert_allclose(logs["b_mae"], errors_of["b"].mean(), rtol=1e-5)


@pytest.mark.parametrize("form", ["outputs", "losses", "targets", "weights"])
def test_several_outputs_take_lists_and_dicts_as_in_keras(form):
    x = xt.keras.Input(xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 1])}))
    made = {n: keras.layers.Dense(1, name=n, kernel_initializer="ones") for n in ("b", "a")}
    outputs = [dense(x["x"]) for dense in made.values()]
    two = xt.keras.Model(x, dict(zip(made, outputs, strict=True)) if form == "targets" else outputs)
    is_list = form in ("targets", "weights")
    losses, metrics = {"b": "mse", "a": "mae"}, {"a": ["mae"]}
    two.compile("sgd", ["mse", "mae"] if form == "losses" else losses, metrics=metrics)
    y = {"b": masked()[:, tf.newaxis], "a": np.zeros(4)}
    if is_list:
        y = list(y.values()) if form == "weights" else [y["a"], y["b"]]  # of a dict: by its keys
    weights = [np.ones(4), np.ones(4)] if form == "weights" else None
    logs = two.evaluate(X, y, sample_weight=weights, verbose=0, return_dict=True)
    assert logs["a_mae"] == 2.5
    assert logs["b_loss"] == np.square(np.array([1.0, 3.0]) - Y[VALID]).mean()
    assert logs["loss"] == logs["a_loss"] + logs["b_loss"]


def test_a_function_of_whole_values_gets_the_mask():
    seen = []

    def loss(y_true, y_pred):
        seen.append(type(y_true))
        return tf.square(y_true.fill(0.0)[:, tf.newaxis] - y_pred)

    model(loss, metrics=None, weighted_metrics=None).evaluate(X, masked(), verbose=0)
    assert set(seen) == {MaskedTensor}


def test_a_mask_of_the_output_is_kept():
    steps = tf.constant([[[1.0], [2.0]], [[3.0], [9.0]], [[5.0], [6.0]]])
    x = MaskedTensor(steps, tf.constant([[True, True], [True, False], [True, True]])[..., None])
    made = xt.keras.Sequential([xt.keras.Masked()])
    made.compile("sgd", "mse")
    y = MaskedTensor(tf.zeros([3, 2, 1]), [True, True, False])
    assert made.evaluate(x, y, verbose=0) == pytest.approx((1 + 4 + 9) / 3)


class Known:
    """A type with a mask of items, of which only `__keras_mask__` is known."""

    def __init__(self, values, mask):
        self.values, self.mask = values, mask

    def __tf_type_spec__(self):
        return KnownSpec(self.values.shape)

    def __keras_mask__(self):
        return self.values, self.mask


class KnownSpec(xt.StackableTypeSpec):
    value_type = Known

    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape), tf.TensorSpec(self.shape, tf.bool)

    def to_components(self, value):
        return value.values, value.mask

    def from_components(self, components):
        return Known(*components)

    def serialize(self):
        return (self.shape,)


def test_targets_of_another_type_with_a_mask_of_items_are_refused_with_advice():
    target = Known(tf.ones([4, 2]), tf.ones([4, 2], tf.bool))
    with pytest.raises(errors.DTypeError, match="one value for each record") as caught:
        model(units=2).fit(X, target, verbose=0)
    assert "sample_weight" in caught.value.fix
