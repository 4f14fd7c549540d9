"""Laws of auto_composite_tensor for random arguments: round trips, and equality of specs."""

import functools
import warnings
from collections import namedtuple

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples import peer
from tests.samples.auto import Unit, halved, power

Pair = namedtuple("Pair", "a b")


def keeper(lib):
    # Different names: a class that is defined again replaces the class of the same name.
    @lib.auto_composite_tensor(module_name=f"tests.keeper.{lib.__name__}")
    class Keeper(lib.AutoCompositeTensor):
        def __init__(self, a, b=None):
            self.a, self._b = a, b

    return Keeper


Ours, Theirs = keeper(xt), keeper(peer)

shapes = st.lists(st.integers(0, 3), max_size=2)
tensors = st.builds(
    lambda shape, dtype: tf.zeros(shape, dtype),
    shapes,
    st.sampled_from([tf.float32, tf.int64, tf.string, tf.bool]),
)
composites = st.sampled_from(
    [tf.ragged.constant([[1], [2, 3]]), xt.DenseStructuredTensor([1], {"x": [1.0]})]
)
static = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from([Unit.CUP, tf.float32, tf.TensorShape([None, 2]), tf.TensorSpec([3])]),
    st.sampled_from([halved, tf.nn.relu, functools.partial(power, exponent=2), int]),
)
keys = st.text(max_size=2)


def nests(leaves, max_leaves=6):
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=3),
            st.builds(Pair, inner, inner),
        ),
        max_leaves=max_leaves,
    )


anything = nests(st.one_of(static, tensors, composites))
all_tensors = nests(tensors, max_leaves=15).filter(tf.nest.flatten)


def assert_same(value, expected):
    """Asserts that two arguments are of one kind, down to their leaves, and equal."""
    if isinstance(expected, (tf.Tensor, tf.RaggedTensor, xt.StructuredTensor)):
        flat = (tf.nest.flatten(v, expand_composites=True) for v in (value, expected))
        for a, b in zip(*flat, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        return
    assert type(value) is type(expected)
    if isinstance(expected, (list, tuple)):
        for a, b in zip(value, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, dict):
        assert list(value) == list(expected)
        for key in expected:
            assert_same(value[key], expected[key])
    elif isinstance(expected, functools.partial):
        assert (value.func, value.args, value.keywords) == (
            expected.func,
            expected.args,
            expected.keywords,
        )
    else:
        assert value == expected


@given(anything, anything)
def test_arguments_come_back(a, b):
    value = Ours(a, b)
    for again in (
        xt.nest.pack_sequence_as(value, xt.nest.flatten(value, True), True),
        tf.function(lambda v: v)(value),
    ):
        assert type(again) is Ours
        assert_same(again.a, a)
        assert_same(again._b, b)


@given(anything, anything)
def test_a_spec_survives_a_proto(a, b):
    spec = Ours(a, b).__tf_type_spec__()
    with warnings.catch_warnings():
        # TensorFlow warns of every registered spec that it writes.
        warnings.simplefilter("ignore")
        again = tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto())
    assert again == spec
    assert hash(again) == hash(spec)
    assert again.is_compatible_with(Ours(a, b))
    rebuilt = again.from_components(spec.to_components(Ours(a, b)))
    assert_same(rebuilt.a, a)


@given(st.lists(anything, min_size=2, max_size=3))
def test_specs_are_equal_if_and_only_if_their_parts_are(arguments):
    specs = [Ours(argument).__tf_type_spec__() for argument in arguments]
    twins = [Ours(argument).__tf_type_spec__() for argument in arguments]
    for spec, twin in zip(specs, twins, strict=True):
        assert spec == twin
        assert hash(spec) == hash(twin)
    for a in specs:
        for b in specs:
            # The repr tells lists from tuples, and `1` from `1.0`; of dicts the order is free.
            if repr(a) == repr(b):
                assert a == b
            merged = a.most_specific_compatible_type(b)
            if merged is not None:
                assert a == b or repr(a) != repr(b)
                assert merged.is_compatible_with(a)
                assert merged.is_compatible_with(b)
                assert merged == b.most_specific_compatible_type(a)


@given(all_tensors, st.one_of(st.none(), all_tensors))
def test_the_peer_has_the_same_components_in_the_same_order(a, b):
    ours, theirs = Ours(a, b), Theirs(a, b)
    flat = [tf.nest.flatten(v, expand_composites=True) for v in (ours, theirs)]
    assert list(map(id, flat[0])) == list(map(id, flat[1]))
    packed = [
        tf.nest.pack_sequence_as(v, list(range(len(flat[0]))), expand_composites=True)
        for v in (ours, theirs)
    ]
    assert packed[0].a == packed[1].a
    assert packed[0]._b == packed[1]._b
    # Its serialization is an older version of that of extensor.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert Ours.Spec.deserialize(theirs._type_spec._serialize()) == ours.__tf_type_spec__()
