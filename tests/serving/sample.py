"""Values of every type that can be sent to a server, and modules to serve."""

import collections
import enum

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.samples import declared
from tests.samples.types import MaskedTensor, MaskedTensorSpec, Parcel, ParcelSpec

xt.register_type_spec(MaskedTensorSpec, "sample.MaskedTensorSpec")


@xt.register_type_spec
class BoxSpec(ParcelSpec):
    """The spec of a type with components of any structure."""


def box(components):
    specs = tf.nest.map_structure(tf.type_spec_from_value, components)
    return Parcel(components, BoxSpec(specs))


RAGGED = ("row_splits", "row_lengths")
STEPS = xt.RaggedStructuredTensor.from_row_splits(
    xt.DenseStructuredTensor(
        [3], {"minutes": [5, 20, 8], "tools": tf.ragged.constant([["pan"], [], ["pot", "lid"]])}
    ),
    [0, 2, 3],
)
RECIPE = xt.DenseStructuredTensor(
    [2],
    {
        "title": ["soup", "stew"],
        "tags": tf.ragged.constant([["quick"], []]),
        "steps": STEPS,
    },
)
RECIPE_SPEC = xt.DenseStructuredTensorSpec(
    [None],
    {
        "title": tf.TensorSpec([None], tf.string),
        "tags": tf.RaggedTensorSpec([None, None], tf.string),
        "steps": xt.RaggedStructuredTensorSpec(
            [None, None],
            xt.DenseStructuredTensorSpec(
                [None],
                {
                    "minutes": tf.TensorSpec([None], tf.int32),
                    "tools": tf.RaggedTensorSpec([None, None], tf.string),
                },
            ),
        ),
    },
)


class Foreign(tf.experimental.ExtensionType):
    __name__ = "tests.serving.sample.Foreign"

    ragged: tf.RaggedTensor
    pair: tuple[tf.Tensor, int]
    name: str


@xt.auto_composite_tensor
class Normal(xt.AutoCompositeTensor):
    def __init__(self, loc, scale, bounds=None):
        self._loc, self._scale = tf.convert_to_tensor(loc), tf.convert_to_tensor(scale)
        self._bounds = bounds


class Course(enum.Enum):
    STARTER = 1
    MAIN = 2


Point = collections.namedtuple("Point", "x y")
ANY_PANTRY = declared.Pantry(
    {"b": [1.0], "a": [2.0]},
    ([3.0], 4),
    {Course.MAIN: [tf.constant(5)], Course.STARTER: declared.Spiced(tf.constant(6), "salt"), 7: 8},
)
VALUES = {
    "a tensor": (tf.constant([1, 2]), ["x"]),
    "a ragged tensor": (tf.ragged.constant([[1], []]), ["x", "x__row_splits"]),
    "lists in lists": (
        tf.ragged.constant([[[1], []], []]),
        ["x", "x__row_splits", "x__row_splits_1"],
    ),
    "a ragged tensor with a dense dimension": (
        tf.RaggedTensor.from_uniform_row_length(tf.constant([[1, 2], [3, 4]]), 1),
        ["x", "x__row_splits"],
    ),
    "a sparse tensor": (
        tf.sparse.from_dense([[0, 1], [2, 0]]),
        ["x__indices", "x__values", "x__dense_shape"],
    ),
    "indexed slices": (
        tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]), tf.constant([4])),
        ["x__values", "x__indices", "x__dense_shape"],
    ),
    "a nest": (
        {"b": [tf.constant(1), (tf.constant("a"), None)], "a": Point(tf.constant(2.0), None)},
        ["x__a__x", "x__b__0", "x__b__1__0"],
    ),
    "records": (
        RECIPE,
        [
            *("x__steps__minutes", "x__steps__tools", "x__steps__tools__row_splits"),
            *("x__steps__row_splits", "x__tags", "x__tags__row_splits", "x__title"),
        ],
    ),
    "records in lists in lists": (
        xt.RaggedStructuredTensor.from_row_splits(STEPS, [0, 2]),
        [
            *("x__minutes", "x__tools", "x__tools__row_splits"),
            *("x__row_splits_1", "x__row_splits"),
        ],
    ),
    "one record": (
        RECIPE[0],
        [
            *("x__steps__minutes", "x__steps__tools", "x__steps__tools__row_splits"),
            *("x__tags", "x__title"),
        ],
    ),
    "records without fields": (
        xt.DenseStructuredTensor([2], {"nothing": xt.DenseStructuredTensor([2], {})}),
        ["x__nothing__rows"],
    ),
    "a type that follows the protocol": (
        MaskedTensor(tf.constant([1.0, 2.0]), tf.constant([True, False])),
        ["x__0", "x__1"],
    ),
    "a type with named components": (
        box({"low": tf.constant(1), "high": [tf.ragged.constant([[1]])]}),
        ["x__high__0", "x__high__0__row_splits", "x__low"],
    ),
    "a type of one component": (
        box(tf.ragged.constant([[1]])),
        ["x", "x__row_splits"],
    ),
    "a declared type": (
        declared.Scaled(declared.Masked([1.0], [True]), 3.0),
        ["x__inner__mask", "x__inner__values"],
    ),
    "a declared type with containers": (
        ANY_PANTRY,
        [
            *("x__amounts__a", "x__amounts__b", "x__anything__MAIN__0"),
            *("x__anything__STARTER__amounts", "x__pairs__0"),
        ],
    ),
    "a declared type with a spec as static data": (
        declared.Labelled([1.0], (tf.TensorSpec([None]), "x")),
        ["x__values"],
    ),
    "a class whose constructor makes it a type": (
        Normal(0.0, 1.0, {"low": tf.constant(-3.0), "high": [tf.constant(3.0)]}),
        ["x__bounds__high__0", "x__bounds__low", "x__loc", "x__scale"],
    ),
    "TensorFlow's own extension type": (
        Foreign(tf.ragged.constant([[1]]), (tf.constant(2.0), 3), "four"),
        ["x__ragged", "x__ragged__row_splits", "x__pair__0"],
    ),
}


def assert_alike(value, expected):
    """Asserts that two values have one structure, one type each, and one content."""
    for a, b in zip(tf.nest.flatten(value), tf.nest.flatten(expected), strict=True):
        if isinstance(b, (str, type(None))):
            assert a == b
            continue
        assert tf.type_spec_from_value(a).is_compatible_with(b)
        flat = [tf.nest.flatten(x, expand_composites=True) for x in (a, b)]
        for tensor, other in zip(*flat, strict=True):
            assert tensor.dtype == other.dtype
            np.testing.assert_array_equal(tensor, other)
    tf.nest.assert_same_structure(value, expected)


ONE = tf.constant(1)


class Kitchen(tf.Module):
    """A module with functions of every kind."""

    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(3)

    def __call__(self, recipe, flip=False):
        minutes = recipe["steps.minutes"]
        if tf.reduce_sum(minutes) > 100:  # for AutoGraph to convert
            minutes = minutes // 2
        return minutes * (-self.factor if flip else self.factor)

    @tf.function
    def traced(self, recipe, plus=ONE, *, flip=False):
        return recipe["steps.minutes"] * (-self.factor if flip else self.factor) + plus

    @tf.function(input_signature=[RECIPE_SPEC, tf.TensorSpec([], tf.int32, name="other_name")])
    def signed(self, recipe, plus=ONE):
        return recipe["steps.minutes"] + plus


class Tables(tf.Module):
    """Holds nested tables, a file, and an unused variable."""

    def __init__(self, vocabulary):
        super().__init__()
        lines = tf.lookup.TextFileIndex
        rows = tf.lookup.TextFileInitializer(
            vocabulary, tf.string, lines.WHOLE_LINE, tf.int64, lines.LINE_NUMBER
        )
        self.tables = {"tags": [tf.lookup.StaticVocabularyTable(rows, 1)]}
        self.offset = tf.Variable(100, dtype=tf.int64)
        self.unused = tf.Variable(tf.zeros([1000]))

    @tf.function
    def __call__(self, recipe):
        numbers = tf.ragged.map_flat_values(self.tables["tags"][0].lookup, recipe["tags"])
        return {"recipe": recipe.with_updates(tags=numbers + self.offset)}


def names(layout):
    """The names of the tensors of a layout."""
    return [component.name for component in layout.components]


def content(tensors):
    """The numbers in tensors, by their names."""
    return {name: tensor.numpy().tolist() for name, tensor in tensors.items()}


def served(signature, *args, **kwargs):
    """What a client gets for these arguments."""
    request = {n: t.numpy() for n, t in signature.encode(*args, **kwargs).items()}
    return signature.decode({n: t.numpy() for n, t in signature.function(**request).items()})


def raises(error, function, *args, **kwargs):
    """Returns the error that a call raises, which says what was expected and what to do."""
    with pytest.raises(error) as raised:
        function(*args, **kwargs)
    assert all((raised.value.expected, raised.value.received, raised.value.fix))
    return raised.value
