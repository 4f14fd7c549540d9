"""Types of other libraries: components in a nest, and boxes whose static shapes are compared.

The GraphTensor of TF-GNN is such a type.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import composite_tensor, type_spec

import extensor as xt


class Piece(composite_tensor.CompositeTensor):
    """Items, in rows of different lengths, and their sizes."""

    def __init__(self, items, sizes, spec=None):
        self.items, self.sizes, self._spec = items, sizes, spec
        first, second = items.shape[0], sizes.shape[0]
        if first != second:
            raise ValueError(f"batch dimensions do not match: {first}, {second}")

    @property
    def _type_spec(self):
        return self._spec or PieceSpec(*map(tf.type_spec_from_value, (self.items, self.sizes)))

    @property
    def shape(self):
        return self.sizes.shape[:1]


class PieceSpec(type_spec.BatchableTypeSpec):
    """The components are a nest. TensorFlow's own encoders box them."""

    __slots__ = ("items", "sizes")

    value_type = Piece

    def __init__(self, items, sizes):
        self.items, self.sizes = items, sizes

    @property
    def shape(self):
        return self.sizes.shape[:1]

    @property
    def _component_specs(self):
        return {"of": {"items": self.items}, "sizes": self.sizes}

    def _to_components(self, value):
        return {"of": {"items": value.items}, "sizes": value.sizes}

    def _from_components(self, components):
        return Piece(components["of"]["items"], components["sizes"], self)

    def _from_compatible_tensor_list(self, tensors):
        items = self.items._from_compatible_tensor_list([tensors[0]])
        return Piece(items, tensors[1], self)

    def _serialize(self):
        return self.items, self.sizes

    def _batch(self, size):
        return PieceSpec(self.items._batch(size), self.sizes._batch(size))

    def _unbatch(self):
        return PieceSpec(self.items._unbatch(), self.sizes._unbatch())

    @property
    def _flat_tensor_specs(self):
        return [*self.items._flat_tensor_specs, self.sizes]

    def _to_tensor_list(self, value):
        return [*self.items._to_tensor_list(value.items), value.sizes]

    def _to_batched_tensor_list(self, value):
        return [*self.items._to_batched_tensor_list(value.items), value.sizes]


def pieces():
    items = tf.ragged.constant([[1.0], [2.0, 3.0], []], row_splits_dtype=tf.int64)
    piece = Piece(items, tf.constant([[1.0], [2.0], [0.0]]))
    return tf.data.Dataset.from_tensor_slices(piece).batch(2)


class Total(xt.keras.Layer):
    def call(self, piece):
        return tf.reduce_sum(piece.items, axis=1)[:, tf.newaxis] + piece.sizes


def subclassed(_):
    class Model(xt.keras.Model):
        def __init__(self):
            super().__init__()
            self.total, self.dense = Total(), keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, piece):
            return self.dense(self.total(piece))

    return Model()


def functional(spec):
    piece = xt.keras.Input(spec, name="piece")
    total = Total()(piece)
    both = keras.layers.Add()([total, keras.layers.Rescaling(0.0)(piece.sizes)])
    model = xt.keras.Model(piece, keras.layers.Dense(1, kernel_initializer="ones")(both))
    names = [operation.name for operation in model.operations]
    assert {"piece.of.items", "piece.of.items.row_splits", "piece.sizes"} >= {
        name for name in names if name.startswith("piece.")
    }
    assert "piece.sizes" in names
    return model


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("build", [subclassed, functional])
def test_a_model_of_a_type_of_another_library_trains_and_predicts(build):
    dataset = pieces()
    model = build(dataset.element_spec)
    predicted = model.predict(dataset, verbose=0)
    np.testing.assert_allclose(predicted, [[2.0], [7.0], [0.0]])
    model.compile("sgd", "mse")
    model.fit(dataset.map(lambda piece: (piece, tf.zeros_like(piece.sizes))), verbose=0)
    again = model.predict(dataset, verbose=0)
    assert again[1] < predicted[1]
