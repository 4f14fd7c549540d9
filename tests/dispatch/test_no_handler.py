"""An operation without a handler raises one clear error at once.

Each call runs in a separate process with a time limit, because endless recursion would hang.
"""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt

TYPES = """
import numpy as np, tensorflow as tf, extensor as xt

class Bare(xt.dispatch.OperatorsMixin):
    def __init__(self, values):
        self.values = tf.convert_to_tensor(values)

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)

    @xt.dispatch.implements(tf.abs)
    @classmethod
    def absolute(cls, x, name=None):
        return cls(tf.abs(x.values))

class Indexed(Bare):
    @xt.dispatch.implements(tf.__operators__.getitem)
    @classmethod
    def item(cls, x, key, var=None):
        return cls(x.values[key])

@xt.extension_type
class Composite(Bare):
    values: tf.Tensor

class Declining(Bare):
    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        return NotImplemented

class Sequence:  # without OperatorsMixin
    __tf_dispatch__ = classmethod(lambda cls, op, args, kwargs: NotImplemented)
    __len__ = lambda self: 4
    __getitem__ = lambda self, key: tf.__operators__.getitem(self, key)
"""
CALLS = """
one = tf.ones([2])
calls_of = lambda x: {
    "tf.add": [lambda: x + x, lambda: x + 1, lambda: 1 + x, lambda: one + x, lambda: tf.add(x, x)],
    "tf.reduce_sum": [lambda: tf.reduce_sum(x)],
    "tf.convert_to_tensor": [lambda: tf.convert_to_tensor(x)],
    "tf.stack": [lambda: tf.stack([x, x])],
    "tf.io.serialize_tensor": [lambda: tf.io.serialize_tensor(x)],
    "tf.bitwise.invert": [lambda: ~x],
    "tf.cast": [tf.function(lambda: tf.cast(x, tf.int32))],
    "tf.__operators__.getitem": [] if type(x) is Indexed else [
        lambda: x[0], lambda: list(x), lambda: [*x], lambda: 1.0 in x,
    ],
    "": [
        lambda: tf.constant(x), lambda: tf.Variable(x), tf.function(lambda: tf.constant(x)),
        lambda: np.asarray(x), lambda: np.array(x, np.float32), lambda: np.stack([x, x]),
    ],
}
"""


ENDS = """
from extensor.errors import DTypeError

for kind in (Bare, Indexed, Composite, Declining):
    x, name = kind(np.ones([40, 30, 20], np.int32)), kind.__name__
    for function, each in calls_of(x).items():
        if kind is Composite and function in ("tf.stack", "tf.__operators__.getitem"):
            continue  # of a declared type, the rows: see test_rows.py
        for call in each:
            try:
                call()
            except DTypeError as error:
                message = str(error)
            else:
                raise AssertionError((kind, function))
            assert f"{name}: expected a tensor, or a value that converts to one" in message, message
            why = f"{name} has no handler for {function}."
            if kind is Declining:
                why = f"{name} declined: its __tf_dispatch__ returned NotImplemented."
            assert not function or f"{function} was not overridden. {why}" in message, message
            assert "xt.dispatch.implements" in message, message
assert len(list(Indexed([[1, 2], [3, 4]]))) == 2
"""
IN_A_LIST = """
for x in (Bare(np.ones([4, 3, 2])), Indexed(np.ones([4, 3, 2])), Sequence()):
    for call in (
        lambda: tf.constant([x, 1.0]), lambda: tf.add([x, x], 1.0), lambda: tf.add(x, 1),
        lambda: tf.constant(x), lambda: tf.ragged.constant([x]),
    ):
        try:
            call()
        except (TypeError, ValueError) as error:
            assert type(x).__name__ in str(error), error
        else:
            raise AssertionError(x)
"""


@pytest.mark.whole("calls every operation of TensorFlow")
def test_an_operation_without_a_handler_is_one_error_that_names_the_function(run_python):
    run_python(TYPES + CALLS + ENDS)


def test_values_in_lists_and_types_without_the_mixin_raise_the_error(run_python):
    run_python(TYPES + IN_A_LIST)


class Half(xt.dispatch.OperatorsMixin):
    """A type that converts to a tensor, without handlers."""

    shape = tf.TensorShape([2])

    def __array__(self, dtype=None, copy=None):
        return np.full(2, 0.5, dtype or np.float32)

    __tf_dispatch__ = classmethod(lambda cls, op, args, kwargs: NotImplemented)


def test_a_type_that_converts_to_a_tensor_is_converted():
    np.testing.assert_array_equal(np.asarray(Half()), [0.5, 0.5])
    np.testing.assert_array_equal(tf.constant(Half()), [0.5, 0.5])
    np.testing.assert_array_equal(Half() + tf.ones([2]), [1.5, 1.5])
    np.testing.assert_array_equal(tf.convert_to_tensor(Half()), [0.5, 0.5])


def test_a_registered_conversion_is_used_first():
    class Registered(xt.dispatch.OperatorsMixin):
        __tf_dispatch__ = classmethod(lambda cls, op, args, kwargs: NotImplemented)

    tf.register_tensor_conversion_function(
        Registered, lambda value, dtype=None, name=None, as_ref=False: tf.constant(0.5, dtype)
    )
    assert tf.add(Registered(), 1.0).numpy() == 1.5


def test_a_declared_value_with_a_length_is_no_list_of_its_rows():
    @xt.extension_type
    class Rows:
        x: tf.Tensor

        def __len__(self):
            return self.x.shape[0]

    for convert in (tf.convert_to_tensor, tf.reduce_sum, tf.Variable):
        with pytest.raises(xt.errors.DTypeError, match="Rows: expected a tensor"):
            convert(Rows(tf.zeros([0, 2])))  # as a list it would be an empty tensor


def test_a_value_that_does_not_convert_is_an_error_beside_tensors():
    class Bare(xt.dispatch.OperatorsMixin):
        pass

    class Strict:
        __tf_dispatch_types__ = (tf.Tensor,)
        __tf_dispatch__ = classmethod(lambda cls, op, args, kwargs: "answered")

    assert tf.add(Strict(), Half()) == "answered"
    with pytest.raises(ValueError, match=r"Strict was not called: .* is a .*Bare"):
        tf.add(Strict(), Bare())


def test_a_value_that_does_not_convert_is_an_argument_of_a_function():
    class Bare(xt.dispatch.OperatorsMixin):
        shape = tf.TensorShape([2])

    assert tf.function(lambda value: len(value))(Bare()).numpy() == 2
    assert not hasattr(Bare, "__array__")
    assert not hasattr(Half(), "__array_interface__")
