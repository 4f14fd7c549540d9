"""`xt.spec_of`: specs of TensorFlow's own values, with the public methods of `xt.TypeSpec`."""

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, ProtocolError
from tests.samples.types import MaskedTensor, MaskedTensorSpec


class Bowl(tf.experimental.BatchableExtensionType):
    __name__ = "test_spec_of.Bowl"
    amounts: tf.Tensor
    steps: tf.RaggedTensor
    label: str = "soup"


class Spoon(tf.experimental.ExtensionType):
    __name__ = "test_spec_of.Spoon"
    amount: tf.Tensor


VARIABLE = tf.Variable([1.0, 2.0])
RAGGED = tf.ragged.constant([[1, 2], [3]])
SPARSE = tf.sparse.from_dense([[1.5, 0.0], [0.0, 2.5]])
SLICES = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([3, 1]))
BOWL = Bowl(tf.constant([1, 2]), RAGGED)

# The value; the class of its spec; value_type; serialize(); the component specs; the components
# that a value holds as attributes.
TABLE = {
    "Tensor": (
        tf.constant([1.0, 2.0]),
        *(tf.TensorSpec, tf.Tensor),
        (tf.TensorShape([2]), tf.float32, None),
        tf.TensorSpec([2], tf.float32),
        lambda tensor: tensor,
    ),
    "Variable": (
        VARIABLE,
        *(type(tf.type_spec_from_value(VARIABLE)), type(VARIABLE)),
        (tf.TensorShape([2]), tf.float32, True, None),
        (tf.TensorSpec([], tf.resource),),
        lambda variable: (variable.handle,),
    ),
    "RaggedTensor": (
        RAGGED,
        *(tf.RaggedTensorSpec, tf.RaggedTensor),
        (tf.TensorShape([2, None]), tf.int32, 1, tf.int64),
        (tf.TensorSpec([None], tf.int32), tf.TensorSpec([3], tf.int64)),
        lambda ragged: (ragged.flat_values, ragged.row_splits),
    ),
    "SparseTensor": (
        SPARSE,
        *(tf.SparseTensorSpec, tf.SparseTensor),
        (tf.TensorShape([2, 2]), tf.float32),
        (
            tf.TensorSpec([None, 2], tf.int64),
            tf.TensorSpec([None], tf.float32),
            tf.TensorSpec([2], tf.int64),
        ),
        lambda sparse: (sparse.indices, sparse.values, sparse.dense_shape),
    ),
    "IndexedSlices": (
        SLICES,
        *(type(tf.type_spec_from_value(SLICES)), tf.IndexedSlices),
        (tf.TensorShape([3, 1]), tf.float32, tf.int32, tf.int32, tf.TensorShape([1])),
        (
            tf.TensorSpec([1, 1], tf.float32),
            tf.TensorSpec([1], tf.int32),
            tf.TensorSpec([2], tf.int32),
        ),
        lambda slices: (slices.values, slices.indices, slices.dense_shape),
    ),
    "Dataset": (
        tf.data.Dataset.range(3),
        *(tf.data.DatasetSpec, tf.data.Dataset),
        (tf.TensorSpec([], tf.int64), tf.TensorShape([])),
        tf.TensorSpec([], tf.variant),
        None,
    ),
    "Optional": (
        tf.experimental.Optional.from_value(tf.constant(1)),
        *(tf.OptionalSpec, tf.experimental.Optional),
        (tf.TensorSpec([], tf.int32),),
        (tf.TensorSpec([], tf.variant),),
        None,
    ),
    "iterator": (
        iter(tf.data.Dataset.range(3)),
        *(tf.data.IteratorSpec, tf.data.Iterator),
        (tf.TensorSpec([], tf.int64),),
        (tf.TensorSpec([], tf.resource),),
        None,
    ),
    "ExtensionType": (
        BOWL,
        *(Bowl.Spec, Bowl),
        (
            ("amounts", tf.TensorSpec([2], tf.int32)),
            ("steps", tf.RaggedTensorSpec([2, None], tf.int32)),
            ("label", "soup"),
        ),
        (tf.TensorSpec([2], tf.int32), tf.RaggedTensorSpec([2, None], tf.int32)),
        lambda bowl: (bowl.amounts, bowl.steps),
    ),
    "int": (
        3,
        *(tf.TensorSpec, tf.Tensor),
        (tf.TensorShape([]), tf.int32, None),
        tf.TensorSpec([], tf.int32),
        None,
    ),
    "text": (
        "a",
        *(tf.TensorSpec, tf.Tensor),
        (tf.TensorShape([]), tf.string, None),
        tf.TensorSpec([], tf.string),
        None,
    ),
    "list": (
        [1.0, 2.0],
        *(tf.TensorSpec, tf.Tensor),
        (tf.TensorShape([2]), tf.float32, None),
        tf.TensorSpec([2], tf.float32),
        None,
    ),
    "NumPy array": (
        np.zeros([2, 3], np.int16),
        *(tf.TensorSpec, tf.Tensor),
        (tf.TensorShape([2, 3]), tf.int16, None),
        tf.TensorSpec([2, 3], tf.int16),
        None,
    ),
    "NumPy scalar": (
        np.float64(0.5),
        *(tf.TensorSpec, tf.Tensor),
        (tf.TensorShape([]), tf.float64, None),
        tf.TensorSpec([], tf.float64),
        None,
    ),
}
KINDS = pytest.mark.parametrize("kind", TABLE)


@KINDS
def test_a_spec_has_the_public_members_of_type_spec(kind):
    value, spec_class, value_type, serialization, component_specs, components = TABLE[kind]
    spec = xt.spec_of(value)
    assert isinstance(spec, spec_class)
    assert issubclass(spec.value_type, value_type)
    assert spec.serialize() == serialization
    assert type(spec).deserialize(serialization) == spec
    assert spec.component_specs == component_specs
    received = spec.to_components(value)
    tf.nest.assert_same_structure(spec.component_specs, received)
    if components is not None:
        for a, b in zip(tf.nest.flatten(components(value)), tf.nest.flatten(received), strict=True):
            assert a is b
    again = spec.from_components(received)
    assert isinstance(again, value_type)
    assert spec.is_compatible_with(again)
    tf.nest.map_structure(
        lambda a, b: a.is_compatible_with(b) or pytest.fail(f"{a} and {b}"),
        spec.component_specs,
        received,
    )


@KINDS
def test_specs_are_compared(kind):
    value = TABLE[kind][0]
    spec, own = xt.spec_of(value), tf.type_spec_from_value(value)
    for a, b in ((spec, own), (own, spec), (spec, xt.spec_of(value))):
        assert a == b
        assert (a != b) is False
        assert hash(a) == hash(b)
        assert a.is_compatible_with(b)
    for other in (tf.TensorSpec([9, 9], tf.uint8), MaskedTensorSpec([2], tf.int32)):
        assert spec != other
        assert other != spec
        assert spec.is_compatible_with(other) is False
        assert spec.most_specific_compatible_type(other) is None
    for nothing in (None, object(), [[1], [2, 3]], {"a": 1}):
        assert spec.is_compatible_with(nothing) is False
        assert spec != nothing
    merged = spec.most_specific_compatible_type(own)
    assert merged == spec
    assert merged.serialize() == spec.serialize()


def test_specs_are_merged_by_their_shapes():
    two, three = (xt.spec_of(tf.zeros([n, 4])) for n in (2, 3))
    merged = two.most_specific_compatible_type(three)
    assert merged == tf.TensorSpec([None, 4])
    assert merged.most_specific_compatible_type(two).serialize()[0] == tf.TensorShape([None, 4])
    assert not two.is_compatible_with(three)
    assert merged.is_compatible_with(tf.zeros([7, 4]))


@KINDS
def test_it_is_copied_and_pickled(kind):
    spec = xt.spec_of(TABLE[kind][0])
    for again in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert again == spec
        assert again.serialize() == spec.serialize()
        assert repr(again) == repr(spec) == repr(tf.type_spec_from_value(TABLE[kind][0]))


@pytest.mark.parametrize(
    "value", [3, "a", [1, 2], [[1.5]], np.zeros([2, 3], np.int16), np.float64(0.5), True, VARIABLE]
)
def test_a_spec_is_compatible_with_its_values(value):
    spec = xt.spec_of(value)
    assert spec.is_compatible_with(value)
    spec.to_components(value)
    for other in (xt.spec_of(tf.zeros([9, 9], tf.uint8)), xt.spec_of(RAGGED)):
        assert other.is_compatible_with(value) is False


def test_it_is_compatible_with_a_variable_of_keras():
    variable = keras.Variable([1.0, 2.0])
    spec = xt.spec_of(variable)
    assert spec.is_compatible_with(variable)
    assert not xt.spec_of(tf.zeros([3])).is_compatible_with(variable)


# TensorFlow accepts it in place of its own spec.


@pytest.mark.parametrize("kind", [kind for kind in TABLE if kind != "Variable"])
def test_a_function_takes_it_as_its_signature(kind):
    value = TABLE[kind][0]
    spec = xt.spec_of(value)
    function = tf.function(lambda x: x, input_signature=[spec])
    assert isinstance(function(value), spec.value_type)
    concrete = tf.function(lambda x: x).get_concrete_function(spec)
    [signature], _ = concrete.structured_input_signature
    assert type(signature) is type(tf.type_spec_from_value(value))
    assert spec.is_compatible_with(signature)
    assert isinstance(concrete(value), spec.value_type)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("kind", [kind for kind in TABLE if kind != "Variable"])
def test_a_dataset_takes_it_as_its_element_spec(kind):
    value = TABLE[kind][0]
    spec = xt.spec_of(value)
    generated = tf.data.Dataset.from_generator(lambda: iter([value]), output_signature=spec)
    [element] = generated
    assert isinstance(element, spec.value_type)
    own = tf.data.Dataset.from_tensors(value)
    assert isinstance(list(own.concatenate(generated))[1], spec.value_type)
    assert isinstance(list(generated.concatenate(own))[1], spec.value_type)


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("kind", ["Tensor", "RaggedTensor", "SparseTensor", "ExtensionType"])
def test_map_fn_takes_it_as_its_output_signature(kind):
    value = TABLE[kind][0]
    spec = xt.spec_of(value)
    mapped = tf.map_fn(lambda _: value, tf.range(3), fn_output_signature=spec)
    assert spec.stacked(3).is_compatible_with(mapped)


@KINDS
def test_nest_flattens_it_to_the_specs_of_its_tensors(kind):
    value = TABLE[kind][0]
    own = tf.nest.flatten(tf.type_spec_from_value(value), expand_composites=True)
    assert xt.nest.flatten(xt.spec_of(value), expand_composites=True) == own


@pytest.mark.parametrize(
    "kind", ["Variable", "RaggedTensor", "SparseTensor", "IndexedSlices", "ExtensionType"]
)
def test_it_is_saved_as_the_spec_that_it_represents(kind):
    spec = xt.spec_of(TABLE[kind][0])
    loaded = tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto())
    assert type(loaded) is type(tf.type_spec_from_value(TABLE[kind][0]))
    assert loaded == spec


@xt.extension_type
class Jar:
    content: tf.RaggedTensor


WIDE = tf.RaggedTensorSpec([None, None], tf.int32)


@pytest.mark.parametrize(
    "holder",
    [
        Jar.Spec,
        lambda spec: xt.DenseStructuredTensorSpec([None], {"all": spec}),
        lambda spec: xt.RaggedStructuredTensorSpec(
            [None, None], xt.DenseStructuredTensorSpec([None], {"all": spec})
        ),
    ],
    ids=["declared", "dense", "ragged"],
)
def test_a_spec_that_contains_it_equals_one_with_the_spec_of_tensorflow(holder):
    narrow = holder(tf.RaggedTensorSpec([2, None], tf.int32))
    own, held = holder(WIDE), holder(xt.spec_of(WIDE))
    assert own == held
    for a, b in ((own, held), (held, own), (narrow, held), (held, narrow)):
        assert a.most_specific_compatible_type(b) == own
        assert a.castable_type(b) == own
    assert narrow.is_subtype_of(held)
    for leaf in tf.nest.flatten(held.component_specs):
        assert type(leaf) in (tf.RaggedTensorSpec, tf.TensorSpec, xt.DenseStructuredTensorSpec)


def test_nest_takes_it_as_the_structure_of_a_value():
    for kind in ("RaggedTensor", "SparseTensor", "ExtensionType"):
        value = TABLE[kind][0]
        for a, b in ((value, xt.spec_of(value)), (xt.spec_of(value), value)):
            tf.nest.assert_same_structure(a, b, expand_composites=True)
        with pytest.raises((TypeError, ValueError)):
            tf.nest.assert_same_structure(value, xt.spec_of(SLICES), expand_composites=True)


# Stacking.


@pytest.mark.parametrize(
    ("kind", "tensors"),
    [("Tensor", 0), ("RaggedTensor", 0), ("SparseTensor", 0), ("Dataset", 0), ("ExtensionType", 2)],
)
def test_values_that_stack_are_boxed(kind, tensors):
    value = TABLE[kind][0]
    spec = xt.spec_of(value)
    boxed = spec.to_boxed_tensor(value)
    described = spec.boxed_tensor_spec()
    if tensors:
        assert len(boxed) == len(described) == tensors
    else:
        assert isinstance(boxed, tf.Tensor)
        assert described.is_compatible_with(boxed)
    assert isinstance(spec.from_boxed_tensor(boxed), spec.value_type)
    assert spec.stacked(None).unstacked() == spec
    two = tf.nest.map_structure(lambda box: tf.stack([box, box]), boxed)
    assert spec.stacked(2).is_compatible_with(spec.stacked(2).from_boxed_tensor(two))


def test_reshaping_the_box_batches_the_values():
    rows = tf.ragged.constant([[1, 2], [], [3], [4, 5, 6], [7], [8, 9]])
    spec = xt.spec_of(rows)
    boxed = spec.to_boxed_tensor(rows, minimum_rank=1)
    batches = spec.unstacked().stacked(3).stacked(2).from_boxed_tensor(tf.reshape(boxed, [-1, 3]))
    assert batches.to_list() == [[[1, 2], [], [3]], [[4, 5, 6], [7], [8, 9]]]


def test_a_value_that_does_not_stack_has_no_box():
    for value in (VARIABLE, SLICES, Spoon(1.0)):
        assert not hasattr(xt.spec_of(value), "to_boxed_tensor")


# Casting.


def test_the_spec_of_a_ragged_tensor_casts_a_dense_one():
    dense = tf.constant([[1, 2], [3, 4]])
    assert xt.spec_of(RAGGED).cast(dense).to_list() == [[1, 2], [3, 4]]
    assert xt.spec_of(RAGGED).castable_type(xt.spec_of(dense)) == tf.RaggedTensorSpec(
        [2, None], tf.int32
    )
    assert xt.spec_of(RAGGED).castable_type(xt.spec_of(SPARSE)) is None


# Extension types.


def test_the_spec_of_an_extension_value_is_its_own():
    masked = MaskedTensor(tf.constant([1.0]), tf.constant([True]))
    for spec in (xt.spec_of(masked), tf.type_spec_from_value(masked)):
        assert type(spec) is MaskedTensorSpec
        assert spec == masked.__tf_type_spec__()
    assert xt.spec_of(spec) is spec
    stacked = xt.spec_of([masked, masked, masked])
    assert stacked == tf.type_spec_from_value([masked] * 3) == spec.stacked(3)


def test_a_spec_gives_the_same_as_a_value_of_it():
    own = tf.RaggedTensorSpec([2, None], tf.int32)
    spec = xt.spec_of(own)
    assert spec == own
    assert spec.serialize() == xt.spec_of(RAGGED).serialize()
    assert xt.spec_of(spec) is spec
    [inner, *_] = xt.spec_of(BOWL).component_specs
    assert xt.spec_of(inner).serialize() == (tf.TensorShape([2]), tf.int32, None)


# Errors.


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, object(), [[1], [2, 3]], (tf.constant(1), tf.constant("a")), lambda: 1],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_a_spec_is_an_error_that_names_the_mend(value):
    with pytest.raises(DTypeError) as caught:
        xt.spec_of(value)
    assert caught.value.path == "spec_of"
    assert caught.value.expected.startswith("a value with a TypeSpec")
    assert caught.value.received == type(value).__qualname__
    assert "tf.nest.map_structure(xt.spec_of, nest)" in caught.value.fix


def test_a_protocol_that_returns_no_spec_is_an_error():
    class Odd:
        def __tf_type_spec__(self):
            return 3

    with pytest.raises(ProtocolError) as caught:
        xt.spec_of(Odd())
    assert caught.value.path.endswith("Odd.__tf_type_spec__")
    assert (caught.value.expected, caught.value.received) == ("a TypeSpec of its own", "3")
