"""What nesting costs: each level of lists of records adds as much as the one before."""

import pytest
import tensorflow as tf

import extensor as xt

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def records_in_lists(depth):
    value = Dense([2], {"x": [1, 2]})
    for _ in range(depth):
        value = Dense([2], {"list": Ragged.from_row_splits(value, [0, 1, 2])})
    return value


def lists_in_lists(depth):
    value = Dense([2], {"x": [1, 2]})
    for _ in range(depth):
        value = Ragged.from_row_splits(value, [0, 1, 2])
    return value


def masked_records(depth):
    value = Dense([2], {"x": [1, 2]})
    for _ in range(depth):
        value = Dense([2], {"m": xt.types.MaskedTensor(value, [True, False])})
    return value


@pytest.fixture
def specs_made(monkeypatch):
    """Returns a list with one item for each spec of records that was made."""
    made = []
    for cls in (xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec):

        def counted(self, *args, _init=cls.__init__, **kwargs):
            made.append(type(self))
            _init(self, *args, **kwargs)

        monkeypatch.setattr(cls, "__init__", counted)
    return made


def batched(value):
    return next(iter(tf.data.Dataset.from_tensor_slices(value).batch(2)))


def restacked(value):
    spec = value.__tf_type_spec__()
    return spec.unstacked().stacked(2)


@pytest.mark.parametrize("nest", [records_in_lists, lists_in_lists, masked_records])
@pytest.mark.parametrize("work", [restacked, batched])
def test_twice_the_depth_makes_twice_the_specs(nest, work, specs_made):
    def count(depth):
        value = nest(depth)
        value.__tf_type_spec__()
        specs_made.clear()
        work(value)
        return len(specs_made)

    counts = [count(depth) for depth in (2, 4, 8)]
    assert counts[2] - counts[1] <= 2 * (counts[1] - counts[0]) + 2, counts


def test_a_batch_of_32_nested_lists_is_the_lists():
    value = records_in_lists(32)
    assert batched(value).to_py() == value.to_py()
