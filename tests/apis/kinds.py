"""The three types with which every row of the matrix is tested.

Each kind defines how its values are made, changed and compared, so that one test of an API serves
all kinds. Example `n` is the same in every batch: `make(4)` is `make(2)` and `make(2, 2)`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import extensor as xt
from tests.samples.types import MaskedTensor, MaskedTensorSpec

xt.register_type_spec(MaskedTensorSpec, "sample.MaskedTensorSpec")


@xt.extension_type
class Measured:
    """A declared type that holds another extension type, and static data."""

    masked: MaskedTensor
    weight: tf.Tensor
    unit: str = "kg"


def masked(size, start=0):
    numbers = np.arange(start, start + size)
    return MaskedTensor(tf.constant(numbers, tf.float32), tf.constant(numbers % 2 == 0))


def measured(size, start=0):
    weight = np.arange(start, start + size, dtype=np.float32) + 0.5
    return Measured(masked(size, start), weight, "g")


def recipes(size, start=0):
    numbers = np.arange(start, start + size)
    lengths = numbers % 3
    inner = [10 * n + i for n in numbers for i in range(n % 3)]
    steps = xt.DenseStructuredTensor([len(inner)], {"minutes": np.array(inner, np.float32)})
    return xt.DenseStructuredTensor(
        [size],
        {
            "title": [f"recipe {n}" for n in numbers],
            "score": numbers.astype(np.float32),
            "tags": tf.RaggedTensor.from_row_lengths(
                tf.constant([f"tag {i}" for i in inner], tf.string), lengths
            ),
            "author": xt.DenseStructuredTensor([size], {"age": numbers + 20}),
            "steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, *np.cumsum(lengths)]),
        },
    )


def one_masked(m):
    return MaskedTensor(m.values[0], m.mask[0])


def change_masked(change, m):
    return MaskedTensor(change(m.values), m.mask)


@dataclasses.dataclass(frozen=True)
class Kind:
    """One of the three types.

    Attributes:
        name: How the table and the tests' ids call it.
        make: Takes a number of examples and the first one's number; returns a batch.
        one: Returns the only example of a batch of one.
        change: Takes a function and a value; returns the value with the function applied to the
            floats that `floats` returns.
        floats: Returns one of the value's tensors.
        has_strings: Whether values have components that XLA knows nothing of.
    """

    name: str
    make: Callable[..., Any]
    one: Callable[[Any], Any]
    change: Callable[[Any, Any], Any]
    floats: Callable[[Any], Any]
    has_strings: bool = False

    # Not made at import: who imports this may have devices to choose before the first tensor.
    @functools.cached_property
    def element(self):
        """The spec of one example."""
        return self.make(3).__tf_type_spec__().unstacked()

    @functools.cached_property
    def spec(self):
        """The spec of a batch of any size."""
        return self.element.stacked(None)

    def doubled(self, value):
        """Returns the value with its floats doubled."""
        return self.change(lambda floats: floats * 2, value)

    def example(self, number):
        """Returns example `number`, not in a batch."""
        return self.one(self.make(1, number))

    def row(self, example):
        """Returns an example with the spec of a row of a batch, in which other rows are longer."""
        tensors = tf.nest.flatten(example, expand_composites=True)
        return tf.nest.pack_sequence_as(self.element, tensors, expand_composites=True)

    def examples(self, *numbers):
        """Returns a list of examples."""
        return [self.example(n) for n in numbers]

    def __str__(self):
        return self.name


KINDS = [
    Kind("masked", masked, one_masked, change_masked, lambda m: m.values),
    Kind(
        "recipes",
        recipes,
        lambda r: r[0],
        lambda change, r: r.with_updates({"score": change(r["score"])}),
        lambda r: r["score"],
        has_strings=True,
    ),
    Kind(
        "measured",
        measured,
        lambda m: xt.replace(m, masked=one_masked(m.masked), weight=m.weight[0]),
        lambda change, m: xt.replace(m, masked=change_masked(change, m.masked)),
        lambda m: m.masked.values,
    ),
]


def assert_same(value, expected):
    """Asserts that two nests of values have the same types, static data and numbers."""
    tf.nest.assert_same_structure(value, expected)
    for v, e in zip(tf.nest.flatten(value), tf.nest.flatten(expected), strict=True):
        assert type(v) is type(e) or isinstance(v, tf.Tensor)
        if isinstance(e, Measured):
            assert v.unit == e.unit
        flat = [tf.nest.flatten(x, expand_composites=True) for x in (v, e)]
        for a, b in zip(*flat, strict=True):
            assert getattr(a, "dtype", None) == getattr(b, "dtype", None)
            np.testing.assert_array_equal(a, b)
