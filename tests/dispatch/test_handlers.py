"""`implements`: the table of handlers of a class."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.dispatch import (
    handle,
    implements,
    is_binary_elementwise_op,
    is_shape_only_op,
    is_unary_elementwise_op,
)


class Box:
    def __init__(self, values):
        self.values = tf.convert_to_tensor(values)

    @implements(tf.tile)
    @staticmethod
    def tile(input, multiples, name=None):
        return Box(tf.tile(input.values, multiples))

    @implements(is_unary_elementwise_op)
    @classmethod
    def each(cls, op, x, *args, **kwargs):
        return cls(op(x.values, *args, **kwargs))

    @implements(tf.shape, tf.size)
    @staticmethod
    def of_values(op, input, *args, **kwargs):
        return op(input.values, *args, **kwargs)

    @implements(tf.einsum)
    @staticmethod
    def einsum(equation, *inputs, **kwargs):
        return tf.einsum(equation, *(getattr(x, "values", x) for x in inputs), **kwargs)


BOX = Box([1.0, 4.0])


def test_a_handler_gets_the_arguments_of_its_operation():
    np.testing.assert_array_equal(tf.tile(BOX, [2]).values, [1, 4, 1, 4])
    np.testing.assert_array_equal(tf.tile(multiples=[2], input=BOX).values, [1, 4, 1, 4])
    np.testing.assert_array_equal(Box.tile(BOX, [1]).values, [1, 4])
    assert tf.einsum("i,i->", BOX, tf.constant([1.0, 2.0]), optimize="greedy").numpy() == 9.0


def test_a_handler_whose_first_parameter_is_op_gets_the_operation():
    assert tf.size(BOX).numpy() == 2
    assert tf.shape(BOX, out_type=tf.int64).dtype == tf.int64
    np.testing.assert_array_equal(tf.sqrt(BOX).values, [1, 2])
    assert tf.cast(BOX, tf.int32).values.dtype == tf.int32


def test_a_handler_may_be_a_class_method():
    class Crate(Box):
        pass

    assert type(tf.sqrt(Crate([4.0]))) is Crate
    assert type(tf.tile(Crate([4.0]), [1])) is Box


def test_a_handler_may_be_a_plain_function():
    class Bare:
        @implements(tf.abs, tf.negative)
        def either(op, x, name=None):  # noqa: N805 - it gets no self
            return op.__name__

    assert [tf.abs(Bare()), tf.negative(Bare()), Bare.either(len, 1)] == ["abs", "neg", "len"]


def test_an_operation_without_a_handler_is_declined():
    with pytest.raises(ValueError, match=r"Box has no handler for tf\.reverse\.$"):
        tf.reverse(BOX, [0])
    assert handle(Box, tf.reverse, (BOX, [0]), {}) is NotImplemented


def test_the_error_names_a_handler_that_declined():
    class Bag:
        @implements(tf.sort)
        @staticmethod
        def sort(values, axis=-1):
            return NotImplemented

        @implements(is_shape_only_op)
        @staticmethod
        def of_shape(op, *args):
            return NotImplemented

    with pytest.raises(ValueError, match=r"its handler for tf\.sort returned NotImpl"):
        tf.sort(Bag())
    with pytest.raises(ValueError, match=r"its handler for tf\.size returned NotImpl"):
        tf.size(Bag())


def test_the_error_names_a_dispatch_method_that_declined():
    class Bag:
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return handle(cls, op, args, kwargs)

    with pytest.raises(ValueError, match=r"Bag declined: its __tf_dispatch__ returned NotImpl"):
        tf.sort(Bag())


def test_a_handler_outside_the_class_names_its_class():
    class Bag:
        values = tf.constant([3.0, 1.0])

    bag = Bag()
    with pytest.raises(ValueError, match="unsupported type"):
        tf.sort(bag)

    @implements(tf.sort, on=Bag)
    def sort(values, axis=-1, direction="ASCENDING", name=None):
        return tf.sort(values.values, axis, direction)

    np.testing.assert_array_equal(tf.sort(bag, direction="DESCENDING"), [3, 1])
    assert callable(sort)
    assert isinstance(bag, xt.DispatchableType)


def test_handlers_of_operations_precede_those_of_kinds_and_subclasses_precede_bases():
    class Base:
        @implements(is_unary_elementwise_op)
        @staticmethod
        def each(op, x, *args):
            return "base, kind"

        @implements(tf.exp)
        @staticmethod
        def exp(x, name=None):
            return "base, exp"

        @implements(tf.abs)
        @staticmethod
        def abs(x, name=None):
            return "base, abs"

    class Sub(Base):
        @implements(is_unary_elementwise_op)
        @staticmethod
        def each(op, x, *args):
            return "sub, kind"

        @implements(tf.abs)
        @staticmethod
        def abs(x, name=None):
            return "sub, abs"

    assert [tf.cos(Base()), tf.exp(Base()), tf.abs(Base())] == [
        *("base, kind", "base, exp", "base, abs")
    ]
    assert [tf.cos(Sub()), tf.exp(Sub()), tf.abs(Sub())] == ["sub, kind", "base, exp", "sub, abs"]


def test_a_dispatch_method_of_the_class_is_kept():
    class Own:
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return ("own", handle(cls, op, args, kwargs))

        @implements(tf.abs)
        @staticmethod
        def abs(x, name=None):
            return "abs"

    assert tf.abs(Own()) == ("own", "abs")
    assert tf.exp(Own()) == ("own", NotImplemented)


def test_a_subclass_of_the_protocol_gets_a_dispatch_method():
    class Based(xt.DispatchableType):
        @implements(tf.abs)
        @staticmethod
        def abs(x, name=None):
            return "abs"

    assert tf.abs(Based()) == "abs"
    assert Based.__tf_dispatch_types__ is None


def test_a_declared_type_has_handlers():
    @xt.extension_type
    class Masked(xt.dispatch.OperatorsMixin):
        values: tf.Tensor
        mask: tf.Tensor

        __tf_dispatch_types__ = (tf.Tensor,)

        @implements(is_binary_elementwise_op)
        @classmethod
        def pairs(cls, op, x, y, *args, **kwargs):
            x, y = (a if isinstance(a, cls) else cls(a, True) for a in (x, y))
            return cls(op(x.values, y.values, *args, **kwargs), x.mask & y.mask)

    @tf.function
    def double(x):
        return 2.0 * x + x

    masked = double(Masked([1.0, 2.0], [True, False]))
    assert type(masked) is Masked
    np.testing.assert_array_equal(masked.values, [3.0, 6.0])
    np.testing.assert_array_equal(masked.mask, [True, False])


def test_decorators_may_be_stacked():
    class Both:
        @implements(tf.sin)
        @implements(tf.cos)
        @staticmethod
        def either(op, x, name=None):
            return op.__name__

    assert [tf.sin(Both()), tf.cos(Both()), Both.either(len, 1)] == ["sin", "cos", "len"]


@pytest.mark.parametrize("method", [staticmethod, classmethod])
def test_the_decorator_of_a_method_above_is_an_error(method):
    # It would hide the handler from the class, so that none is registered.
    with pytest.raises(xt.errors.ProtocolError, match="Swap the two lines"):

        class Hidden:
            @method
            @implements(tf.sin)
            def sin(cls, x, name=None):  # noqa: N805 - of either decorator
                return "hidden"


def test_a_handler_of_a_base_is_one_of_subclasses_that_functions_got_before():
    class Base:
        pass

    class Sub(Base):
        pass

    with pytest.raises(ValueError, match="Attempt to convert"):
        tf.sin(Sub())
    implements(tf.sin, on=Base)(lambda x: "late")
    assert [tf.sin(Sub()), tf.sin(Base())] == ["late", "late"]


@pytest.mark.parametrize(
    "ops", [(len,), (tf.while_loop,), ("tf.add",), (tf.add, None), ([tf.add, tf.subtract],)]
)
def test_implementing_anything_but_an_operation_is_an_error(ops):
    with pytest.raises(xt.ExtensorError, match="expected a function of TensorFlow"):
        implements(*ops)


@pytest.mark.parametrize("on", [Box([1.0]), tf.Tensor, "Box"])
def test_implementing_on_anything_but_a_class_of_your_own_is_an_error(on):
    with pytest.raises(xt.errors.ProtocolError, match="implements, on: expected a class of your"):
        implements(tf.sin, on=on)


def test_implementing_no_operation_is_an_error():
    with pytest.raises(xt.ExtensorError, match="at least one operation"):
        implements()
