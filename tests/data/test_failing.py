"""A dataset that raises an error in place of its first element."""

import pytest
import tensorflow as tf

from extensor import errors
from extensor._data.conversion import failing_dataset


def test_the_error_comes_as_it_is_and_once():
    error = errors.NullError(path="title", expected="no null", received="one", fix="Fill it.")
    spec = tf.RaggedTensorSpec([None, None], tf.string)
    dataset = failing_dataset(error, spec)
    assert dataset.element_spec == spec
    with pytest.raises(errors.NullError, match="title: expected no null"):
        next(iter(dataset))
