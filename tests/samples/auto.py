"""Decorated classes that another process can import, and functions as their arguments."""

import enum
import functools

import tensorflow as tf

import extensor as xt


class Unit(enum.Enum):
    GRAM = 1
    CUP = 2


def halved(x):
    return x / 2


def power(x, exponent):
    return x**exponent


@tf.function
def tripled(x):
    return x * 3


class Kitchen:
    @staticmethod
    def doubled(x):
        return x * 2

    @classmethod
    def named(cls, x):
        return x + len(cls.__name__)


@xt.auto_composite_tensor(omit_kwargs=("name",))
class Adder(xt.AutoCompositeTensor):
    def __init__(self, x, y, name=None):
        with tf.name_scope(name or "Adder") as name:
            self._x = tf.convert_to_tensor(x)
            self._y = tf.convert_to_tensor(y)
            self._name = name

    def xpy(self):
        return self._x + self._y


@xt.auto_composite_tensor
class Functor(xt.AutoCompositeTensor):
    def __init__(self, factor=2):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


@xt.auto_composite_tensor(module_name="pantry")
class Jar:
    """A class without a base class, registered under another module."""

    def __init__(self, amounts, content=None):
        self._amounts, self._content = amounts, content


@xt.auto_composite_tensor
class Step(xt.AutoCompositeTensor):
    """Holds a callable."""

    def __init__(self, amount, function):
        self.amount, self.function = amount, function

    def __call__(self):
        return self.function(self.amount)


CALLABLES = {
    "function": halved,
    "static method": Kitchen.doubled,
    "class method": Kitchen.named,
    "of tensorflow": tf.nn.relu,
    "of tensorflow, by another name": tf.reduce_sum,
    "of python": abs,
    "class": tf.linalg.LinearOperatorDiag,
    "partial": functools.partial(power, exponent=3),
    "partial of a partial": functools.partial(functools.partial(power), exponent=2),
    "partial with a list": functools.partial(tf.reshape, shape=[1, 1]),
    "functor": Functor(4),
    "tf.function": tripled,
}

STATIC = {
    "enum": Unit.CUP,
    "list": ["a", [1, 2.0], None],
    "dict": {"b": (1, 2), "a": [b"bytes"]},
    "dtype": tf.float64,
    "type": int,
    "spec": tf.TensorSpec([None], tf.string),
    "list of callables": [halved, {"a": functools.partial(power, exponent=2)}],
}
