"""A quantity obeys the laws of extension types."""

import tensorflow as tf
from extensor_quantity import Quantity, QuantitySpec

import extensor as xt

FLOUR = Quantity(tf.constant([500.0, 250.0]), "g")
MILK = Quantity(tf.constant(0.5, tf.float64), "l")


@xt.testing.parametrize_laws([FLOUR, [MILK, Quantity(tf.constant([1.0, 2.0], tf.float64), "cup")]])
def test_laws(check):
    check()


def test_laws_for_values_of_every_size():
    xt.testing.check_spec(QuantitySpec([None, 2], tf.float32, "kg"), max_examples=3)
