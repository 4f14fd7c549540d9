"""Boxes of values of every kind: they match their specs, stack, and hold the value.

The laws of boxes for nested types are in `tests/protocol/test_box.py`.
"""

import pytest
import tensorflow as tf

import extensor as xt
from extensor.authoring import box, boxed_specs, stacked_spec, unbox, unstacked_spec


@xt.extension_type
class Interval:
    low: tf.Tensor
    high: tf.Tensor


VALUES = {
    "tensor": tf.constant([[1, 2], [3, 4]]),
    "ragged tensor": tf.ragged.constant([[1, 2], [3]]),
    "sparse tensor": tf.sparse.from_dense([[0, 2], [3, 0]]),
    "declared type": Interval([1.0, 2.0], [3.0, 4.0]),
    "records": xt.DenseStructuredTensor([2], {"x": [1, 2]}),
    "CSRSparseTensor": xt.types.CSRSparseTensor.from_dense([[0.0, 2.0], [3.0, 0.0]]),
}


def parts(value):
    return [t.numpy().tolist() for t in tf.nest.flatten(value, expand_composites=True)]


@pytest.mark.parametrize("minimum_rank", [0, 1])
@pytest.mark.parametrize("kind", VALUES)
def test_boxes_match_their_specs_and_hold_the_value(kind, minimum_rank):
    value = VALUES[kind]
    spec = tf.type_spec_from_value(value)
    boxes, specs = box(spec, value, minimum_rank), boxed_specs(spec, minimum_rank)
    assert len(boxes) == len(specs)
    for tensor, tensor_spec in zip(boxes, specs, strict=True):
        assert isinstance(tensor_spec, tf.TensorSpec)
        assert tensor_spec.is_compatible_with(tensor)
    assert parts(unbox(spec, boxes)) == parts(value)


@pytest.mark.parametrize("kind", VALUES)
def test_stacked_boxes_are_boxes_of_the_stacked_spec(kind):
    value = VALUES[kind]
    spec = tf.type_spec_from_value(value)
    stacked = stacked_spec(spec, 3, "Recipe")
    assert unstacked_spec(stacked, "Recipe").is_compatible_with(value)
    batch = unbox(stacked, [tf.stack([tensor] * 3) for tensor in box(spec, value)])
    for i in range(3):
        again = [tensor[i] for tensor in box(stacked, batch, 1)]
        assert parts(unbox(spec, again)) == parts(value)


@pytest.mark.parametrize(
    "call", [lambda s: stacked_spec(s, 2, "Recipe"), lambda s: unstacked_spec(s, "Recipe")]
)
def test_a_spec_that_does_not_stack_is_an_error(call):
    with pytest.raises(xt.errors.ProtocolError, match="Recipe"):
        call(tf.OptionalSpec(tf.TensorSpec([])))


def test_a_spec_without_dimensions_does_not_unstack():
    with pytest.raises(xt.errors.StructureError, match=r"Recipe: expected at least 1 dimension"):
        unstacked_spec(tf.TensorSpec([]), "Recipe")


def test_a_value_of_another_type_is_not_boxed():
    with pytest.raises(
        xt.errors.DTypeError, match=r"expected a RaggedTensor, .* got a EagerTensor"
    ):
        box(tf.RaggedTensorSpec([2, None]), tf.zeros([2, 2]))
