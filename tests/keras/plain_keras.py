"""The ways in which a class of Keras, and not of xt.keras, gets a value: each is a door.

A door takes a value, and returns what Keras makes of it. A new door joins the tests by one line.
"""

import keras
import numpy as np
import tensorflow as tf

import extensor as xt

Y = np.zeros([2, 1])


class OwnLayer(keras.layers.Layer):
    def call(self, inputs):
        return inputs


class OwnModel(keras.Model):
    def call(self, inputs):
        return inputs


def compiled(model):
    model.compile("sgd", "mse")
    return model


def functional():
    inputs = keras.Input([3])
    return compiled(keras.Model(inputs, keras.layers.Dense(1)(inputs)))


def sequential():
    return compiled(keras.Sequential([keras.layers.Dense(1)]))


def data(*parts):
    return tf.data.Dataset.from_tensors(parts)


LAYERS = {
    "a user's layer": OwnLayer,
    "a user's model": OwnModel,
    "a functional model": functional,
    "a Sequential": sequential,
    "a built Sequential": lambda: keras.Sequential([keras.Input([3]), keras.layers.Dense(1)]),
    "Dense": lambda: keras.layers.Dense(1),
    "Identity": keras.layers.Identity,
    "Lambda": lambda: keras.layers.Lambda(lambda x: x),
    "Embedding": lambda: keras.layers.Embedding(2, 2),
    "LSTM": lambda: keras.layers.LSTM(2),
    "RNN": lambda: keras.layers.RNN(keras.layers.LSTMCell(2)),
    "GlobalAveragePooling1D": keras.layers.GlobalAveragePooling1D,
    "TimeDistributed": lambda: keras.layers.TimeDistributed(keras.layers.Dense(1)),
    "StringLookup": lambda: keras.layers.StringLookup(vocabulary=["a"]),
    "TextVectorization": lambda: keras.layers.TextVectorization(vocabulary=["a"]),
    "Normalization": lambda: keras.layers.Normalization(mean=0.0, variance=1.0),
}

ADAPTED = {
    "StringLookup": keras.layers.StringLookup,
    "IntegerLookup": keras.layers.IntegerLookup,
    "TextVectorization": keras.layers.TextVectorization,
    "Normalization": keras.layers.Normalization,
    "Discretization": lambda: keras.layers.Discretization(num_bins=2),
}


class Batches(keras.utils.PyDataset):
    """The batches of a list."""

    def __init__(self, batches):
        super().__init__()
        self._batches = batches

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, index):
        return self._batches[index]


DOORS = {
    **{f"{name}(x)": lambda x, make=make: make()(x) for name, make in LAYERS.items()},
    **{f"{name}(inputs=x)": lambda x, make=make: make()(inputs=x) for name, make in LAYERS.items()},
    **{f"{name}.adapt(x)": lambda x, make=make: make().adapt(x) for name, make in ADAPTED.items()},
    **{
        f"{name}.adapt(dataset)": lambda x, make=make: make().adapt(data(x).map(lambda x: x))
        for name, make in ADAPTED.items()
    },
    "Concatenate([x, x])": lambda x: keras.layers.Concatenate()([x, x]),
    "Add of a dict": lambda x: keras.layers.Add()({"a": x, "b": x}),
    "attention(x, value=x)": lambda x: keras.layers.MultiHeadAttention(1, 2)(x, value=x),
    "in tf.function": lambda x: tf.function(keras.layers.Dense(1))(x),
    "in a layer of ours": lambda x: xt.keras.Lambda(lambda x: keras.layers.Identity()(x))(x),
    "fit(x)": lambda x: sequential().fit(x, Y, verbose=0),
    "fit(x=x)": lambda x: functional().fit(x=x, y=Y, verbose=0),
    "fit(y=x)": lambda x: functional().fit(np.zeros([2, 3]), x, verbose=0),
    "fit(validation_data=(x, y))": lambda x: functional().fit(
        np.zeros([2, 3]), Y, validation_data=(x, Y), verbose=0
    ),
    "fit(PyDataset)": lambda x: sequential().fit(Batches([(x, Y)]), verbose=0),
    "evaluate(PyDataset)": lambda x: sequential().evaluate(Batches([(x, Y)]), verbose=0),
    "fit(dataset)": lambda x: sequential().fit(data(x, Y), shuffle=False, verbose=0),
    "evaluate(x)": lambda x: functional().evaluate(x, Y, verbose=0),
    "predict(x)": lambda x: functional().predict(x, verbose=0),
    "predict(dataset)": lambda x: sequential().predict(data(x), verbose=0),
    "predict_on_batch(x)": lambda x: OwnModel().predict_on_batch(x),
    "train_on_batch(x, y)": lambda x: sequential().train_on_batch(x, Y),
    "keras.Model(x, x)": lambda x: keras.Model(x, x),
    "keras.Model(inputs=[x])": lambda x: keras.Model(inputs=[x], outputs=[x]),
    "keras.Sequential([x])": lambda x: keras.Sequential([x]),
    "keras.Sequential().add(x)": lambda x: keras.Sequential().add(x),
    "keras.Input(tensor=x)": lambda x: keras.Input(tensor=x),
}

INPUTS = {
    "keras.Input(spec)": lambda spec: keras.Input(spec),
    "keras.Input(shape=spec)": lambda spec: keras.Input(shape=spec),
    "keras.Input(batch_shape=spec)": lambda spec: keras.Input(batch_shape=spec),
    "keras.Input(type_spec=spec)": lambda spec: keras.Input(type_spec=spec),
    "keras.Input(dtype=spec)": lambda spec: keras.Input([1], dtype=spec),
    "keras.layers.Input(spec)": lambda spec: keras.layers.Input(spec),
}


@xt.extension_type
class Point:
    x: tf.Tensor


class Bare:
    """A type that has only the protocol."""

    def __init__(self, x):
        self.x = x

    def __tf_type_spec__(self):
        return BareSpec(self.x.shape)


class BareSpec(xt.StackableTypeSpec):
    value_type = Bare

    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape, tf.float32)

    def to_components(self, value):
        return value.x

    def from_components(self, components):
        return Bare(components)

    def serialize(self):
        return (self.shape,)


VALUES = {
    "records": xt.DenseStructuredTensor([2], {"x": tf.zeros([2, 3]), "t": ["a", "b"]}),
    "lists of records": xt.DenseStructuredTensor(
        [2], {"rows": xt.RaggedStructuredTensor.from_row_splits(
            xt.DenseStructuredTensor([1], {"x": [1.0]}), [0, 1, 1])}
    )["rows"],
    "masked": xt.types.MaskedTensor(tf.zeros([2, 3]), [[True] * 3, [False] * 3]),
    "a declared type": Point(tf.zeros([2, 3])),
    "a type with the protocol": Bare(tf.zeros([2, 3])),
}  # fmt: skip
