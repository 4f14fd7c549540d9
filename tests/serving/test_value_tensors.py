"""Values with components that cannot be sent raise an error."""

import tensorflow as tf

from extensor import errors
from extensor.serving import flat_signature
from tests.samples import declared
from tests.serving.sample import raises


def test_the_error_for_a_value_that_cannot_be_sent_has_its_path():
    variable = declared.Counter(tf.Variable(1.0), tf.Variable(2.0))
    error = raises(errors.UnsupportedTypeError, flat_signature, lambda x: x.count, variable)
    assert (error.path, error.received) == ("x.count", "a variable")
    dataset = tf.data.Dataset.range(3)
    error = raises(errors.UnsupportedTypeError, flat_signature, lambda x: 1, dataset)
    assert (error.path, error.received) == ("x", "a tensor of dtype variant")
