"""Containers that tf.nest decomposes by itself cannot become extension types."""

import collections.abc
import dataclasses
import typing

import attrs
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ProtocolError


class _Items(collections.abc.Sequence):
    def __init__(self, items):
        self.items = items

    def __getitem__(self, i):
        return self.items[i]

    def __len__(self):
        return 2


def bases():
    """Returns a new container class of each kind of tf.nest, with a function that makes one."""

    class Named(typing.NamedTuple):
        a: typing.Any
        b: typing.Any

    @attrs.define(slots=False)
    class Attrs:
        a: typing.Any
        b: typing.Any

    @dataclasses.dataclass
    class Flatten:
        a: typing.Any
        b: typing.Any

        def __tf_flatten__(self):
            return (), (self.a, self.b)

        @classmethod
        def __tf_unflatten__(cls, metadata, leaves):
            return cls(*leaves)

    by_items = lambda cls, a, b: cls([a, b])  # noqa: E731
    by_names = lambda cls, a, b: cls(a=a, b=b)  # noqa: E731
    by_place = lambda cls, a, b: cls(a, b)  # noqa: E731
    return {
        "namedtuple": (Named, by_place),
        "attrs": (Attrs, by_place),
        "tf_flatten": (Flatten, by_place),
        "list": (list, by_items),
        "tuple": (tuple, by_items),
        "dict": (dict, by_names),
        "ordered dict": (collections.OrderedDict, by_names),
        "sequence": (_Items, by_items),
    }


KINDS = list(bases())
by_kind = pytest.mark.parametrize("kind", KINDS)


def fresh(kind):
    """Returns a value of a new class of a kind that follows the protocol."""
    base, make = bases()[kind]

    class Pair(base):
        def __tf_type_spec__(self):
            return PairSpec()

    class PairSpec(xt.TypeSpec):
        value_type = property(lambda self: Pair)
        component_specs = tf.TensorSpec([2]), tf.TensorSpec([2])

        def to_components(self, value):
            return tuple(value)

        def from_components(self, components):
            return make(Pair, *components)

        def serialize(self):
            return ()

    return make(Pair, tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]))


def loop(value):
    return tf.while_loop(lambda i, _: i < 1, lambda i, x: (i + 1, x), [0, value])


CONTACTS = {
    "spec_of": xt.spec_of,
    "type_spec_from_value": tf.type_spec_from_value,
    "nest.flatten": lambda v: tf.nest.flatten(v, expand_composites=True),
    "nest.pack_sequence_as": lambda v: tf.nest.pack_sequence_as(v, [1, 2]),
    "nest.map_structure": lambda v: tf.nest.map_structure(lambda x: x, v),
    "xt.nest.map_structure": lambda v: xt.nest.map_structure(lambda x: x, [v], True),
    "argument": lambda v: tf.function(lambda x: 1)(v),
    "argument in a nest": lambda v: tf.function(lambda x: 1)({"a": [v]}),
    "result": lambda v: tf.function(lambda: v)(),
    "concrete function": lambda v: tf.function(lambda x: 1).get_concrete_function(v),
    "signature": lambda v: tf.function(lambda x: 1, input_signature=[v.__tf_type_spec__()])(v),
    "cond": lambda v: tf.function(lambda c: tf.cond(c, lambda: v, lambda: v))(tf.constant(True)),
    "switch_case": lambda v: tf.function(lambda c: tf.switch_case(c, [lambda: v, lambda: v]))(
        tf.constant(0)
    ),
    "while_loop": lambda v: tf.function(lambda: loop(v))(),
    "eager while_loop": loop,
    "map_fn": lambda v: tf.map_fn(lambda x: x, v),
    "vectorized_map": lambda v: tf.vectorized_map(lambda x: x, v),
    "scan": lambda v: xt.scan(lambda _, x: x, v),
    "from_tensors": tf.data.Dataset.from_tensors,
    "from_tensor_slices": tf.data.Dataset.from_tensor_slices,
    "optional": tf.experimental.Optional.from_value,
    "identity": tf.identity,
    "stop_gradient": tf.stop_gradient,
    "convert_to_tensor": tf.convert_to_tensor,
    "add": lambda v: tf.add(v, 1.0),
    "reduce_sum": tf.reduce_sum,
    "py_function": lambda v: tf.py_function(lambda x: x, [v], Tout=v.__tf_type_spec__()),
    "numpy_function": lambda v: xt.numpy_function(lambda x: x, [v], tf.float32),
    "print": xt.print,
    "tuple": lambda v: xt.tuple([v]),
    "module": lambda v: setattr(tf.Module(), "pair", v),
}


def expect_refusal(error, cls):
    assert error.path.endswith(cls.__qualname__)
    assert error.expected == "a class whose values are leaves of tf.nest"
    assert error.received == "a container class, which tf.nest flattens"
    assert error.fix == "Write a class that has the container as a field."


@by_kind
@pytest.mark.parametrize("contact", CONTACTS)
def test_every_api_raises_the_same_error_for_a_container_with_the_protocol(kind, contact):
    value = fresh(kind)
    for _ in range(2):
        with pytest.raises(ProtocolError) as caught:
            CONTACTS[contact](value)
        expect_refusal(caught.value, type(value))


@pytest.mark.whole("many cases")
@by_kind
def test_a_dataset_that_returns_a_container_with_the_protocol_raises_the_error(kind):
    value = fresh(kind)
    with pytest.raises(TypeError) as caught:
        tf.data.Dataset.range(1).map(lambda _: value)
    error = caught.value
    expect_refusal(error if isinstance(error, ProtocolError) else error.__cause__, type(value))
    generated = tf.data.Dataset.from_generator(
        lambda: iter([value]), output_signature=value.__tf_type_spec__()
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"which tf\.nest flattens"):
        next(iter(generated))


@by_kind
def test_the_spec_of_a_container_with_the_protocol_is_an_error_where_it_is_defined(kind):
    cls = type(fresh(kind))
    with pytest.raises(ProtocolError) as caught:
        type("LateSpec", (xt.TypeSpec,), {"value_type": cls})
    expect_refusal(caught.value, cls)


@by_kind
def test_the_decorators_reject_containers(kind):
    base, _ = bases()[kind]
    for decorate in (xt.extension_type, xt.auto_composite_tensor):
        if kind == "attrs" and decorate is xt.auto_composite_tensor:
            continue  # TensorFlow is kept from taking these apart, before it meets them

        class Pair(base):
            pass

        with pytest.raises(ProtocolError) as caught:
            decorate(Pair)
        expect_refusal(caught.value, Pair)


@by_kind
def test_containers_without_the_protocol_do_not_change(kind):
    base, make = bases()[kind]
    cls = type("Pair", (base,), {})
    value = make(cls, tf.constant(1.0), tf.constant(2.0))
    before = vars(cls).keys() - {"__annotations__"}
    again = tf.nest.map_structure(lambda x: x + 1, value)
    assert type(again) is cls
    assert len(tf.nest.flatten(value, expand_composites=True)) == 2
    assert not isinstance(value, xt.ExtensionType)
    if kind != "sequence":  # which tf.function does not take
        tf.function(lambda x: tf.nest.flatten(x)[0])(value)
    assert vars(cls).keys() - {"__annotations__"} == before


@by_kind
def test_the_laws_reject_containers(kind):
    value = fresh(kind)
    with pytest.raises(ProtocolError) as caught:
        xt.testing.check_extension_type(value)
    expect_refusal(caught.value, type(value))


def test_a_subclass_of_str_with_the_protocol_is_a_leaf():
    class Word(str):
        __slots__ = ()

        def __tf_type_spec__(self):
            return WordSpec()

    class WordSpec(xt.TypeSpec):
        value_type = Word
        component_specs = ()

        def to_components(self, value):
            return ()

        def from_components(self, components):
            return Word("a")

        def serialize(self):
            return ()

    assert tf.nest.flatten(Word("a"), expand_composites=True) == []
    assert type(tf.function(lambda word: word)(Word("a"))) is Word
