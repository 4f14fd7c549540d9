"""Laws of declared types with random fields, nesting and values."""

import copy
import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples.declared import STATIC, Course, Masked, Name, Spiced, Unit

# TensorFlow warns of every registered spec that it writes.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type (test_declare_properties|tests.samples.declared)"
    ":UserWarning:tensorflow"
)


@dataclasses.dataclass
class Kind:
    """An annotation, and a strategy of functions from a number of rows to values of it."""

    annotation: Any
    values: st.SearchStrategy[Callable[[int], Any]]


def constant(value):
    return lambda rows: value


dtypes = st.sampled_from([tf.float32, tf.int64, tf.bool, tf.string])


@st.composite
def tensors(draw):
    # TensorFlow has a segmentation fault when it batches tensors without elements.
    dtype, inner = draw(dtypes), draw(st.lists(st.integers(1, 2), max_size=2))
    number = draw(st.integers(0, 9))

    def make(rows):
        numbers = tf.fill([rows, *inner], number)
        return tf.as_string(numbers) if dtype == tf.string else tf.cast(numbers, dtype)

    return make


@st.composite
def ragged_tensors(draw):
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))

    def make(rows):
        row_lengths = list(itertools.islice(itertools.cycle(lengths), rows))
        return tf.RaggedTensor.from_row_lengths(tf.range(sum(row_lengths)), row_lengths)

    return make


@st.composite
def sparse_tensors(draw):
    width = draw(st.integers(1, 3))
    return lambda rows: tf.sparse.from_dense(tf.eye(rows, width))


def masked(tensor):
    return lambda rows: Masked(tensor(rows), tf.ones([rows], tf.bool))


def each_in(container):
    return lambda makes: lambda rows: container([make(rows) for make in makes])


tensor_kinds = st.sampled_from(
    [
        Kind(tf.Tensor, tensors()),
        Kind(tf.RaggedTensor, ragged_tensors()),
        Kind(tf.SparseTensor, sparse_tensors()),
        Kind(Masked, tensors().map(masked)),
        Kind(Any, tensors() | ragged_tensors()),
        Kind(tf.Tensor | None, tensors() | st.just(constant(None))),
    ]
)

scalars = (
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=4)
    | st.binary(max_size=4)
    | st.none()
    | st.sampled_from([*Course, tf.float16, tf.TensorSpec([2]), Unit("g", 2.0), Name("a")])
)
hashable_data = st.recursive(
    scalars,
    lambda parts: (
        st.lists(parts, max_size=3).map(tuple)
        | st.frozensets(parts, max_size=3)
        | st.builds(Unit, st.text("ab"), parts)
    ),
    max_leaves=4,
)
arrays = st.builds(
    lambda numbers, dtype: np.array(numbers).astype(dtype),
    st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from(["f4", "i8", "u1", "?", "U3", "S2", "m8[s]", ">i2", "c8"]),
)
static_data = st.recursive(
    hashable_data | arrays | st.sampled_from(list(STATIC.values())),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(hashable_data, parts, max_size=3),
    max_leaves=5,
)
static_kinds = st.sampled_from(
    [
        Kind(Any, static_data.map(constant)),
        Kind(int | str | None, (st.integers() | st.text("ab") | st.none()).map(constant)),
        Kind(
            dict[str, tuple[float, ...]],
            st.dictionaries(st.text("ab"), st.lists(st.floats())).map(constant),
        ),
    ]
)


def containers(kinds):
    """Kinds of containers of the given kinds, which may be static or not."""
    return st.one_of(
        st.lists(kinds, max_size=3).map(
            lambda items: Kind(
                tuple[tuple(item.annotation for item in items)],
                st.tuples(*(item.values for item in items)).map(each_in(tuple)),
            )
        ),
        kinds.map(
            lambda item: Kind(
                list[item.annotation], st.lists(item.values, max_size=3).map(each_in(list))
            )
        ),
        kinds.map(
            lambda item: Kind(
                dict[str, item.annotation],
                st.dictionaries(st.text("ab'[", max_size=2), item.values, max_size=3).map(
                    lambda makes: lambda rows: {k: make(rows) for k, make in makes.items()}
                ),
            )
        ),
        tensors().map(lambda make: Kind(Spiced, st.just(lambda rows: Spiced(make(rows), "salt")))),
    )


kinds = st.recursive(tensor_kinds | static_kinds, containers, max_leaves=4)
numbers = itertools.count()


@st.composite
def declarations(draw, max_depth=1):
    """A declared type, and a strategy of functions from a number of rows to values of it."""
    field_kinds = kinds
    if max_depth:
        inner = declarations(max_depth - 1).map(lambda pair: Kind(*pair))
        field_kinds = kinds | inner
    names = draw(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=4))
    fields = {name: draw(field_kinds) for name in names}
    cls = xt.extension_type(name=f"test_declare_properties.N{next(numbers)}")(
        type(
            "Declared", (), {"__annotations__": {n: kind.annotation for n, kind in fields.items()}}
        )
    )
    values = st.fixed_dictionaries({name: kind.values for name, kind in fields.items()}).map(
        lambda makes: lambda rows: cls(**{name: make(rows) for name, make in makes.items()})
    )
    return cls, values


@st.composite
def makers(draw):
    """A function from a number of rows to a value of a declared type."""
    _, values = draw(declarations())
    return draw(values)


def leaves(value):
    return xt.nest.flatten(value, expand_composites=True)


def assert_same(a, b):
    assert type(a) is type(b)
    assert a.__tf_type_spec__().is_compatible_with(b.__tf_type_spec__())
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@given(makers(), st.integers(0, 3))
def test_a_value_is_the_same_after_flatten_and_pack(make, rows):
    value = make(rows)
    spec = value.__tf_type_spec__()
    again = xt.nest.pack_sequence_as(value, leaves(value), expand_composites=True)
    assert_same(again, value)
    assert again.__tf_type_spec__() == spec
    assert hash(again.__tf_type_spec__()) == hash(spec)
    assert repr(again.__tf_type_spec__()) == repr(spec)
    tf.nest.assert_same_structure(spec.component_specs, spec.to_components(value))
    for part, component in spec.component_specs.items():
        assert component.is_compatible_with(spec.to_components(value)[part])
    assert make(rows).__tf_type_spec__() == spec


@given(makers(), st.integers(1, 3))
def test_a_value_is_the_same_after_a_function(make, rows):
    value = make(rows)
    function = tf.function(lambda x: x)
    assert_same(function(value), value)
    assert_same(function(make(rows)), value)
    assert function.experimental_get_tracing_count() == 1


@given(makers(), st.integers(0, 3))
def test_a_spec_is_the_same_after_a_copy_and_a_proto(make, rows):
    spec = make(rows).__tf_type_spec__()
    again = copy.deepcopy(spec)
    assert again == spec
    assert hash(again) == hash(spec)
    proto = tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto())
    assert proto == spec
    assert hash(proto) == hash(spec)
    assert spec.deserialize(spec.serialize()) == spec


@given(makers(), st.integers(0, 3), st.integers(0, 3))
def test_specs_of_any_two_numbers_of_rows_are_merged(make, m, n):
    a, b = make(m).__tf_type_spec__(), make(n).__tf_type_spec__()
    merged = a.most_specific_compatible_type(b)
    assert merged == b.most_specific_compatible_type(a)
    assert a.is_compatible_with(b) == b.is_compatible_with(a)
    if m == n:
        assert merged == a == b
    elif merged is not None:  # a sparse tensor's shape may say otherwise
        assert a.is_subtype_of(merged)
        assert b.is_subtype_of(merged)


@given(makers(), st.integers(1, 3))
def test_a_value_is_the_same_after_stacking_and_unstacking(make, rows):
    value = make(rows)
    spec = value.__tf_type_spec__()
    assert spec.stacked(2).unstacked() == spec or contains_sparse_or_ragged(spec)
    if not leaves(value):
        return  # tf.data takes no element without a tensor
    dataset = tf.data.Dataset.from_tensors(value)
    assert_same(dataset.get_single_element(), value)
    (batch,) = dataset.repeat(2).batch(2, drop_remainder=True)
    for row in tf.data.Dataset.from_tensors(batch).unbatch():
        assert_same(row, value)


@given(makers(), st.integers(1, 3))
def test_sliced_values_are_concatenated_again(make, rows):
    value = make(rows)
    if not leaves(value):
        return
    (batch,) = tf.data.Dataset.from_tensor_slices(value).batch(rows)
    assert_same(batch, value)


def contains_sparse_or_ragged(spec):
    """Returns whether specs of TensorFlow lose information when they are stacked."""
    return any(
        not isinstance(part, tf.TensorSpec)
        for part in tf.nest.flatten(spec.component_specs, expand_composites=False)
    )
