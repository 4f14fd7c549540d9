"""Every tensor of a nest has a name, and the nest is rebuilt from its tensors."""

import re

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._serving.layout import layout_of_arguments
from extensor.serving import flat_signature
from tests.samples import declared
from tests.serving.sample import (
    RAGGED,
    VALUES,
    assert_alike,
    names,
    raises,
    served,
)


@pytest.mark.parametrize("ragged", RAGGED)
@pytest.mark.parametrize("kind", VALUES)
def test_every_tensor_has_a_name_and_the_value_comes_back(kind, ragged):
    value, expected = VALUES[kind]
    signature = flat_signature(lambda x, y: {"same": x}, value, tf.TensorSpec([]), ragged=ragged)
    assert names(signature.inputs) == [*(n.replace("row_splits", ragged) for n in expected), "y"]
    assert names(signature.outputs) == [
        re.sub("^x", "same", n.replace("row_splits", ragged)) for n in expected
    ]
    assert_alike(served(signature, value, 0.0)["same"], value)


dtypes = st.sampled_from([tf.float32, tf.int64, tf.string, tf.bool])


FIELDS = ["a", "A", "a.b", "a__b", "", "row_splits", "mask", "mask_1", "codes", "crème", "class"]
fields = st.sampled_from(FIELDS)


def masked(spec):
    return xt.types.MaskedTensor.Spec(spec, tf.TensorSpec(spec.shape[:1], tf.bool))


def masked_lists(dtype):
    inner = xt.types.MaskedTensor.Spec(
        tf.RaggedTensorSpec([None, None], dtype), tf.RaggedTensorSpec([None, None], tf.bool)
    )
    return xt.types.MaskedTensor.Spec(inner, tf.TensorSpec([None], tf.bool))


def records(leaves):
    def dense(drawn):
        return xt.DenseStructuredTensorSpec([None], drawn)

    inner = st.dictionaries(fields, leaves, max_size=3).map(dense)
    return inner | inner.map(lambda spec: xt.RaggedStructuredTensorSpec([None, None], spec))


specs = st.recursive(
    dtypes.map(lambda dtype: tf.TensorSpec([None], dtype))
    | dtypes.map(lambda dtype: tf.TensorSpec([None, 2], dtype))
    | dtypes.map(lambda dtype: tf.SparseTensorSpec([None, 3], dtype))
    | st.builds(lambda dtype, n: tf.RaggedTensorSpec([None] * (n + 1), dtype, n), dtypes,
                st.integers(1, 3)),
    records,
    max_leaves=6,
)  # fmt: skip


nested = st.recursive(
    dtypes.map(lambda dtype: tf.TensorSpec([None], dtype))
    | dtypes.map(lambda dtype: tf.RaggedTensorSpec([None, None, None], dtype, 2))
    | dtypes.map(masked_lists),
    lambda leaves: st.dictionaries(fields, leaves, min_size=1, max_size=3).flatmap(
        lambda drawn: st.sampled_from(
            [
                dense(drawn),
                masked(dense(drawn)),
                xt.RaggedStructuredTensorSpec([None, None], dense(drawn)),
                xt.types.UnionTensor.Spec(drawn),
            ]
        )
    ),
    max_leaves=5,
)


def dense(drawn):
    return xt.DenseStructuredTensorSpec([None], drawn)


@given(st.dictionaries(fields, nested, min_size=1, max_size=2), st.sampled_from(RAGGED))
def test_names_are_unique_whatever_the_fields_are_called(structure, ragged):
    structure = {f"argument_{i}": spec for i, spec in enumerate(structure.values())}
    layout = layout_of_arguments(structure, ragged)
    found = names(layout)
    assert len({name.lower() for name in found}) == len(found)
    words = {word for c in layout.components for word in c.path.names[1:]}
    assert words <= set(FIELDS)  # no words of extensor
    again = dict(reversed(structure.items()))
    assert sorted(names(layout_of_arguments(again, ragged))) == sorted(found)
    places = [[*c.path, c.part] if c.part else [*c.path] for c in layout.components]
    plain = ["__".join(place[len(structure) == 1 and len(c.path) > 1 :])
             for place, c in zip(places, layout.components, strict=True)]  # fmt: skip
    if len(set(plain)) == len(plain) and words <= {"a", "row_splits", "mask", "mask_1", "codes"}:
        assert found == plain


@given(st.data(), st.dictionaries(fields, specs, max_size=3), st.sampled_from(RAGGED))
def test_any_nest_comes_back_from_its_tensors(data, structure, ragged):
    layout = xt.serving.Layout(structure, ragged)
    assert len({name.lower() for name in names(layout)}) == len(layout.components)
    values = {key: data.draw(xt.testing.values_of(spec)) for key, spec in structure.items()}
    tensors = layout.encode(values)
    assert list(tensors) == names(layout)
    for component in layout.components:
        assert component.spec.is_compatible_with(tensors[component.name])
        assert component.path.names[0] in structure
    assert_alike(layout.decode(tensors), values)


def test_the_error_for_a_value_that_cannot_be_sent_has_its_path():
    variable = declared.Counter(tf.Variable(1.0), tf.Variable(2.0))
    error = raises(errors.UnsupportedTypeError, flat_signature, lambda x: x.count, variable)
    assert (error.path, error.received) == ("x.count", "a variable")
    dataset = tf.data.Dataset.range(3)
    error = raises(errors.UnsupportedTypeError, flat_signature, lambda x: 1, dataset)
    assert (error.path, error.received) == ("x", "a tensor of dtype variant")
