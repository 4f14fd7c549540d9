"""The kinds of extension values that the tests of xt.keras go through, each with a plain twin.

A kind is a value of ten rows, the component tensors that a model in plain Keras takes instead, and
two layers that do the same arithmetic on the one and on the others, in the same order, so that
both must agree to the last bit.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import extensor as xt
from tests.keras import sample_models as sample
from tests.samples.types import fresh_masked_type

COUNT, BATCH = 10, 4
_RANDOM = np.random.default_rng(3)
VALUES = _RANDOM.random((COUNT, 3), np.float32)

MaskedTensor, MaskedTensorSpec = fresh_masked_type()
xt.register_type_spec(MaskedTensorSpec, name="tests.keras.kinds.MaskedTensorSpec")
MaskedTensor.__keras_mask__ = lambda self: (self.values, self.mask)


@xt.extension_type
class Dish:
    """A declared type with dense, ragged and string parts, and a static one."""

    taste: tf.Tensor
    minutes: tf.RaggedTensor
    title: tf.Tensor
    unit: str = "gram"


@keras.saving.register_keras_serializable("tests.keras")
class MaskedFeatures(xt.keras.Layer):
    def call(self, masked):
        return tf.where(masked.mask, masked.values, 0.0)


class BareMaskedFeatures(keras.layers.Layer):
    def call(self, x):
        return tf.where(x["mask"], x["values"], 0.0)


def _title_number(title, like):
    return tf.cast(tf.strings.length(title), like.dtype)[:, tf.newaxis]


@keras.saving.register_keras_serializable("tests.keras")
class DishFeatures(xt.keras.Layer):
    def call(self, dish):
        minutes = tf.reduce_sum(dish.minutes, axis=1)[:, tf.newaxis]
        return tf.concat([dish.taste, minutes, _title_number(dish.title, minutes)], axis=1)


class BareDishFeatures(keras.layers.Layer):
    def call(self, x):
        minutes = sample.row_sums(x["minutes"], x["minutes_splits"])[:, tf.newaxis]
        return tf.concat([x["a_taste"], minutes, _title_number(x["title"], minutes)], axis=1)


@keras.saving.register_keras_serializable("tests.keras")
class RecipeFeatures(xt.keras.Layer):
    def call(self, records):
        sums = [tf.reduce_sum(records[n], axis=1) for n in ("minutes", "ingredients.amount")]
        title = _title_number(records["title"], sums[0])
        return tf.concat([records["taste"], tf.stack(sums, axis=1), title], axis=1)


class BareRecipeFeatures(keras.layers.Layer):
    def call(self, x):
        sums = [
            sample.row_sums(x["minutes"], x["minutes_splits"]),
            sample.row_sums(x["amounts"], x["names_splits"]),
        ]
        title = _title_number(x["title"], sums[0])
        return tf.concat([x["a_taste"], tf.stack(sums, axis=1), title], axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    value: Any
    bare: Callable[[Any], dict]
    features: Callable[[], Any]
    bare_features: Callable[[], Any]
    size: int  # of the features

    @property
    def spec(self):
        """The spec of a batch of any size."""
        return tf.data.Dataset.from_tensor_slices(self.value).batch(BATCH).element_spec

    def dataset(self, *others):
        return tf.data.Dataset.from_tensor_slices((self.value, *others)).batch(BATCH)

    def bare_dataset(self, *others):
        return self.dataset(*others).map(lambda value, *rest: (self.bare(value), *rest))

    def rows(self, start, stop):
        """A part of the value, cut by NumPy alone."""
        return take(self.value, range(COUNT)[start:stop])


def take(value, rows):
    """Rows of a value, made of rows that NumPy picked."""
    rows = list(rows)
    if isinstance(value, xt.StructuredTensor):
        parts = {name: take(value[name], rows) for name in value.field_names()}
        return (
            xt.DenseStructuredTensor([len(rows)], parts) if value.rank == 1 else _cut(value, rows)
        )
    if isinstance(value, tf.RaggedTensor):
        flat, splits = value.values.numpy(), value.row_splits.numpy()
        picked = [flat[splits[row] : splits[row + 1]] for row in rows]
        lengths = [len(row) for row in picked]
        flat = np.concatenate([flat[:0], *picked])
        return tf.RaggedTensor.from_row_lengths(tf.constant(flat, value.dtype), lengths)
    if isinstance(value, tf.Tensor):
        return tf.constant(value.numpy()[rows], value.dtype)
    if isinstance(value, Dish):
        parts = [take(part, rows) for part in (value.taste, value.minutes, value.title)]
        return Dish(*parts, value.unit)
    return MaskedTensor(take(value.values, rows), take(value.mask, rows))


def _cut(value, rows):
    splits = value.row_splits.numpy()
    inner = [i for row in rows for i in range(splits[row], splits[row + 1])]
    lengths = [splits[row + 1] - splits[row] for row in rows]
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return xt.RaggedStructuredTensor.from_row_splits(take(value.values, inner), splits)


def rows_of(value):
    """Something that has as many items as a value has rows."""
    title = getattr(value, "title", None)
    if title is None:
        title = value["title"] if isinstance(value, xt.StructuredTensor) else value.values
    return title


def numbers(value):
    """All that a value holds, as plain Python."""
    return [np.asarray(part).tolist() for part in tf.nest.flatten(value, expand_composites=True)]


_recipes = sample.recipes()
KINDS = {
    "protocol only": Kind(
        MaskedTensor(tf.constant(VALUES), tf.constant(VALUES > 0.4)),
        lambda masked: {"values": masked.values, "mask": masked.mask},
        MaskedFeatures,
        BareMaskedFeatures,
        3,
    ),
    "declared": Kind(
        Dish(_recipes["taste"], _recipes["minutes"], _recipes["title"]),
        lambda dish: {
            "a_taste": dish.taste,
            "minutes": dish.minutes.flat_values,
            "minutes_splits": dish.minutes.row_splits,
            "title": dish.title,
        },
        DishFeatures,
        BareDishFeatures,
        5,
    ),
    "records": Kind(_recipes, sample.bare, RecipeFeatures, BareRecipeFeatures, 6),
}
RATINGS = sample.ratings()


@keras.saving.register_keras_serializable("tests.keras")
class Net(xt.keras.Model):
    """Features and a dense layer, as a subclassed model."""

    def __init__(self, features, **kwargs):
        super().__init__(**kwargs)
        self.features, self.dense = features, keras.layers.Dense(1)

    def call(self, inputs, training=False):
        return self.dense(self.features(inputs))

    def get_config(self):
        return {"features": keras.saving.serialize_keras_object(self.features), "name": self.name}

    @classmethod
    def from_config(cls, config):
        features = keras.saving.deserialize_keras_object(config["features"])
        return cls(features, name=config["name"])


class BareNet(keras.Model):
    def __init__(self, features):
        super().__init__()
        self.features, self.dense = features, keras.layers.Dense(1)

    def call(self, inputs, training=False):
        return self.dense(self.features(inputs))


def functional(kind):
    placeholder = xt.keras.Input(kind.spec)
    return xt.keras.Model(placeholder, keras.layers.Dense(1)(kind.features()(placeholder)))


FORMS = {
    "subclassed": lambda kind: Net(kind.features()),
    "functional": functional,
    "sequential": lambda kind: xt.keras.Sequential([kind.features(), keras.layers.Dense(1)]),
}


def twins(kind, form="subclassed", **options):
    """A model and its twin in plain Keras, with the same weights, compiled alike."""
    model, bare = FORMS[form](kind), BareNet(kind.bare_features())
    model(kind.value)
    bare(kind.bare(kind.value))
    bare.set_weights(model.get_weights())
    for one in (model, bare):
        options = {"loss": "mse", "metrics": ["mae"], **options}
        one.compile(keras.optimizers.Adam(0.1), **options)
    return model, bare


@functools.cache
def _made(make, *arguments):
    made = make(*arguments)
    models = made if isinstance(made, tuple) else (made,)
    return made, [(model, [v.numpy() for v in model.variables]) for model in models]


def reused(make, *arguments):
    """Returns the models that a function makes, as they were when it made them.

    Calls with the same function and arguments get the same models, whose steps are traced once.

    Args:
        make: A function of the arguments, which returns a compiled model or a tuple of them.
        *arguments: Hashable values.
    """
    made, models = _made(make, *arguments)
    for model, first_values in models:
        for variable, value in zip(model.variables, first_values, strict=True):
            variable.assign(value)
        for variable in model.optimizer.variables:
            if variable is not model.optimizer._learning_rate:
                variable.assign(tf.zeros_like(variable))
        model.reset_metrics()
    return made
