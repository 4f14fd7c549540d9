"""Every tensor of a nest has a name, and the nest is rebuilt from its tensors."""

import re

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.serving import flat_signature
from tests.serving.sample import (
    RAGGED,
    VALUES,
    assert_alike,
    names,
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


fields = st.sampled_from(["a", "A", "a.b", "", "row_splits", "values", "crème", "class"])


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
