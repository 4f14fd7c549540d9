"""`xt.nest`: flatten, pack_sequence_as, map_structure and assert_same_structure."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples.calls import calls_of
from tests.samples.types import MaskedTensor, MaskedTensorSpec, Parcel, ParcelSpec, parcel


def masked(values=(3.0, 1.0), dtype=tf.float32):
    values = tf.constant(values, dtype)
    return MaskedTensor(values, tf.ones_like(values, tf.bool))


RAGGED = tf.ragged.constant([[1, 2], [], [3]])
SPARSE = tf.sparse.from_dense([[0, 5], [6, 0]])

# Each value beside its component tensors, named by TensorFlow's own attributes.
COMPOSITES = {
    "ragged": (RAGGED, lambda v: [v.flat_values, v.row_splits]),
    "sparse": (SPARSE, lambda v: [v.indices, v.values, v.dense_shape]),
    "masked": (masked(), lambda v: [v.values, v.mask]),
    "nested": (
        parcel({"b": (RAGGED, masked()), "a": SPARSE}),
        # tf.nest goes through dicts in the order of their sorted keys.
        lambda v: [
            *(SPARSE.indices, SPARSE.values, SPARSE.dense_shape),
            *(RAGGED.flat_values, RAGGED.row_splits),
            *(v.components["b"][1].values, v.components["b"][1].mask),
        ],
    ),
    "dense": (tf.constant([1, 2]), lambda v: [v]),
}
each_composite = pytest.mark.parametrize(
    ("value", "tensors"), COMPOSITES.values(), ids=COMPOSITES.keys()
)


def assert_same_tensors(received, expected):
    assert len(received) == len(expected)
    for a, b in zip(received, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@each_composite
def test_flatten_returns_the_component_tensors_of_a_value(value, tensors):
    flat = xt.nest.flatten(value, expand_composites=True)
    assert all(isinstance(t, tf.Tensor) for t in flat)
    assert all(a is b for a, b in zip(flat, tensors(value), strict=True))


@each_composite
def test_flatten_returns_the_component_specs_of_a_spec(value, tensors):
    flat = xt.nest.flatten(tf.type_spec_from_value(value), expand_composites=True)
    assert all(isinstance(spec, tf.TensorSpec) for spec in flat)
    for spec, tensor in zip(flat, tensors(value), strict=True):
        assert spec.is_compatible_with(tensor)


@each_composite
def test_without_expansion_values_and_specs_are_leaves(value, tensors):
    spec = tf.type_spec_from_value(value)
    structure = {"x": [value], "s": spec}
    flat = xt.nest.flatten(structure)
    assert flat[0] is spec
    assert flat[1] is value
    assert xt.nest.pack_sequence_as(structure, ["s", "x"]) == {"x": ["x"], "s": "s"}
    assert xt.nest.map_structure(id, structure) == {"x": [id(value)], "s": id(spec)}
    xt.nest.assert_same_structure(structure, {"x": [1], "s": 2})


@each_composite
def test_pack_by_value_and_by_spec_rebuild_the_same(value, tensors):
    new = [tf.identity(t) for t in tensors(value)]
    for structure in (value, tf.type_spec_from_value(value)):
        packed = xt.nest.pack_sequence_as(structure, new, expand_composites=True)
        assert type(packed) is type(value)
        assert tf.type_spec_from_value(packed) == tf.type_spec_from_value(value)
        flat = xt.nest.flatten(packed, expand_composites=True)
        assert all(a is b for a, b in zip(flat, new, strict=True))


def test_pack_takes_static_data_from_the_spec_and_tensors_from_the_list():
    spec = ParcelSpec({"m": MaskedTensorSpec([None], tf.float32)})
    values, mask = tf.constant([7.0, 8.0]), tf.constant([False, True])
    packed = xt.nest.pack_sequence_as(spec, [values, mask], expand_composites=True)
    assert type(packed) is Parcel
    assert packed.spec is spec
    assert packed.components["m"].values is values
    assert packed.components["m"].mask is mask


@pytest.mark.parametrize("expand_composites", [False, True])
def test_pack_of_too_few_or_too_many_leaves_is_an_error(expand_composites):
    for count in (0, 9):
        with pytest.raises(ValueError, match=r"flat_sequence|elements"):
            xt.nest.pack_sequence_as([masked()], [tf.constant(1)] * count, expand_composites)


@each_composite
def test_map_structure_maps_component_tensors_and_rebuilds_the_type(value, tensors):
    def double(tensor):
        # Tensors of int64 and bool are indices, splits, shapes and masks.
        return tensor * 2 if tensor.dtype in (tf.int32, tf.float32) else tensor

    mapped = xt.nest.map_structure(double, value, expand_composites=True)
    assert type(mapped) is type(value)
    assert_same_tensors(
        xt.nest.flatten(mapped, expand_composites=True), [double(t) for t in tensors(value)]
    )


def test_map_structure_takes_several_values():
    one, two = masked([1.0, 2.0]), masked([10.0, 20.0])
    total = xt.nest.map_structure(
        lambda a, b: a | b if a.dtype == tf.bool else a + b, one, two, expand_composites=True
    )
    np.testing.assert_array_equal(total.values, [11.0, 22.0])


def test_map_structure_of_a_spec_sees_tensor_specs():
    seen = []
    spec = ParcelSpec((MaskedTensorSpec([3], tf.float32), tf.RaggedTensorSpec([2, None])))
    xt.nest.map_structure(seen.append, xt.nest.flatten(spec, expand_composites=True))
    assert seen[:2] == [tf.TensorSpec([3], tf.float32), tf.TensorSpec([3], tf.bool)]
    assert [s.dtype for s in seen[2:]] == [tf.float32, tf.int64]


# The example of the documentation.


def test_map_structure_maps_each_tensor_of_ragged_sparse_and_extension_values():
    structure = {"a": RAGGED, "b": SPARSE, "c": masked([3.0, 1.0])}
    flat = xt.nest.flatten(structure, expand_composites=True)
    mapped = [t if t.dtype == tf.bool else t + 0 for t in flat]
    packed = xt.nest.pack_sequence_as(structure, mapped, expand_composites=True)
    assert packed["a"].flat_values is mapped[0]
    assert packed["a"].row_splits is not structure["a"].row_splits
    assert packed["b"].values is mapped[3]
    assert packed["c"].values is mapped[5]
    assert [type(packed[k]) for k in "abc"] == [tf.RaggedTensor, tf.SparseTensor, MaskedTensor]


# assert_same_structure.

SAME = {
    "two values": (masked([1.0]), masked([2.0])),
    "of two shapes": (masked([1.0]), masked([2.0, 3.0])),
    "value and spec": (masked([1.0]), MaskedTensorSpec([None], tf.float32)),
    "two specs": (MaskedTensorSpec([4], tf.int32), MaskedTensorSpec([5], tf.int32)),
    "nested": (parcel({"m": masked([1.0])}), parcel({"m": masked([2.0, 3.0])})),
    "tensor specs": (tf.TensorSpec([4], tf.int32), tf.TensorSpec([4], tf.int64)),
    "in containers": ({"x": [masked([1.0])]}, {"x": [masked([2.0])]}),
}
DIFFERENT = {
    "dtype": (masked([1.0]), masked([1], tf.int32)),
    "dtype of specs": (MaskedTensorSpec([4], tf.int32), MaskedTensorSpec([4], tf.int64)),
    "dtype of ragged specs": (
        tf.RaggedTensorSpec([2, None], tf.int32),
        tf.RaggedTensorSpec([2, None], tf.int64),
    ),
    "specs in containers": (
        {"x": MaskedTensorSpec([4], tf.int32)},
        {"x": MaskedTensorSpec([4], tf.int64)},
    ),
    "value and spec": (masked([1.0]), MaskedTensorSpec([None], tf.int32)),
    "another type": (masked([1.0]), RAGGED),
    "a tensor": (masked([1.0]), tf.constant([1.0])),
    "deep inside": (parcel({"m": masked([1.0])}), parcel({"m": masked([1], tf.int32)})),
    "another nest inside": (parcel({"m": masked([1.0])}), parcel({"n": masked([1.0])})),
}


@pytest.mark.parametrize(("x", "y"), SAME.values(), ids=SAME)
def test_structures_with_a_common_spec_are_the_same(x, y):
    xt.nest.assert_same_structure(x, y, expand_composites=True)
    xt.nest.assert_same_structure(y, x, expand_composites=True)


@pytest.mark.parametrize(("x", "y"), DIFFERENT.values(), ids=DIFFERENT)
def test_structures_without_a_common_spec_are_an_error(x, y):
    for a, b in ((x, y), (y, x)):
        with pytest.raises((ValueError, TypeError), match=r"structure|TypeSpec"):
            xt.nest.assert_same_structure(a, b, expand_composites=True)


def test_containers_of_other_types_are_an_error_unless_check_types_is_false():
    with pytest.raises(TypeError):
        xt.nest.assert_same_structure([masked()], (masked(),))
    xt.nest.assert_same_structure([masked()], (masked(),), check_types=False)


# Nests of nests.

leaves = st.sampled_from([tf.constant(1.0), tf.constant(["a", "b"]), RAGGED, SPARSE, masked()])
nests = st.recursive(
    leaves,
    lambda parts: (
        st.lists(parts, min_size=1, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("abc"), parts, min_size=1)
        | parts.map(lambda p: parcel((p,)))
    ),
    max_leaves=5,
)


def components_by_hand(nest):
    """Returns the tensors of a nest without tf.nest."""
    if isinstance(nest, dict):
        return [t for key in sorted(nest) for t in components_by_hand(nest[key])]
    if isinstance(nest, tuple):
        return [t for part in nest for t in components_by_hand(part)]
    if isinstance(nest, Parcel):
        return components_by_hand(nest.components)
    for value, tensors in COMPOSITES.values():
        if type(value) is type(nest):
            return tensors(nest)
    return [nest]


@given(nests)
def test_any_nest_comes_back_from_flatten_and_pack(nest):
    flat = xt.nest.flatten(nest, expand_composites=True)
    assert all(a is b for a, b in zip(flat, components_by_hand(nest), strict=True))
    packed = xt.nest.pack_sequence_as(nest, flat, expand_composites=True)
    assert all(a is b for a, b in zip(components_by_hand(packed), flat, strict=True))
    xt.nest.assert_same_structure(nest, packed, expand_composites=True)
    mapped = xt.nest.map_structure(lambda t: t, nest, expand_composites=True)
    assert all(a is b for a, b in zip(components_by_hand(mapped), flat, strict=True))


@pytest.mark.parametrize("kind", ["records", "masked", "parcel"])
def test_comparing_values_again_uses_cached_specs(kind):
    def calls(count):
        def value():
            parts = {f"x{i}": tf.ones([2, 3]) for i in range(count)}
            if kind == "records":
                return xt.DenseStructuredTensor([2], parts)
            return parcel(parts) if kind == "parcel" else parcel({n: masked() for n in parts})

        a, b = value(), value()
        spec_a, spec_b = map(tf.type_spec_from_value, (a, b))
        assert spec_a is not spec_b or kind != "records"
        return calls_of(lambda: (spec_a._with_tensor_ranks_only(), spec_b._without_tensor_names()))

    assert calls(2) == calls(20)


def test_comparing_equal_records_runs_as_much_python_for_many_fields_as_for_few():
    def calls(count):
        a, b = (
            xt.DenseStructuredTensor([2], {f"x{i}": tf.ones([2]) for i in range(count)})
            for _ in range(2)
        )
        return calls_of(lambda: tf.nest.assert_same_structure(a, b, expand_composites=True))

    assert calls(2) == calls(20)


def test_specs_that_were_found_equal_keep_the_order_of_their_fields_and_their_dimensions():
    tensors = {"a": tf.TensorSpec([2]), "b": tf.TensorSpec([2])}
    one = xt.DenseStructuredTensorSpec([2], tensors, dims="row")
    other = xt.DenseStructuredTensorSpec([2], dict(reversed(tensors.items())))
    assert one == other
    assert (one.field_names(), one.dims) == (("a", "b"), ("row",))
    assert (other.field_names(), other.dims) == (("b", "a"), (None,))
    ranks = one._with_tensor_ranks_only()
    assert (ranks.field_names(), ranks.dims) == (("a", "b"), ("row",))
    assert other._with_tensor_ranks_only().field_names() == ("b", "a")


@given(st.recursive(st.integers(), lambda inner: st.lists(inner) | st.tuples(inner, inner)))
def test_lists_and_tuples_are_packed_as_tensorflow_packs_them(structure):
    from tensorflow.python.util import nest_util

    def packed(like):
        flat = list(range(len(tf.nest.flatten(structure))))
        return nest_util._tf_core_pack_sequence_as([structure], flat, False, like)

    replaced = nest_util.sequence_like
    assert packed(replaced) == packed(replaced.__wrapped__)
    assert type(packed(replaced)[0]) is type(packed(replaced.__wrapped__)[0])
