"""Python's operators: of tensors and values of dispatchable types, and of OperatorsMixin."""

import operator

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.dispatch.overriding import recording

BINARY = {
    operator.add: tf.add,
    operator.sub: tf.subtract,
    operator.mul: tf.multiply,
    operator.truediv: tf.truediv,
    operator.floordiv: tf.math.floordiv,
    operator.mod: tf.math.floormod,
    operator.pow: tf.pow,
    operator.matmul: tf.matmul,
}
LOGICAL = {
    operator.and_: (tf.logical_and, tf.bitwise.bitwise_and),
    operator.or_: (tf.logical_or, tf.bitwise.bitwise_or),
    operator.xor: (tf.math.logical_xor, tf.bitwise.bitwise_xor),
}
COMPARISONS = {
    operator.lt: (tf.less, tf.greater),
    operator.le: (tf.less_equal, tf.greater_equal),
    operator.gt: (tf.greater, tf.less),
    operator.ge: (tf.greater_equal, tf.less_equal),
}
FLOATS, INTS, BOOLS = tf.constant([1.0, 2.0]), tf.constant([1, 2]), tf.constant([True, False])
VALUES = {
    "tensor": FLOATS,
    "variable": tf.Variable(FLOATS),
    "array": np.ones(2, np.float32),
    "scalar": np.float32(2),
    "number": 2.0,
}
Mixin = xt.dispatch.OperatorsMixin


def asked(kind, call):
    """Returns the operation and the arguments that a call passed to the type."""
    kind.calls.clear()
    assert call() == "answered"
    [(op, args, kwargs)] = kind.calls
    assert kwargs == {}
    return op, args


# a type without operators.


@pytest.mark.parametrize("name", ["tensor", "variable"])
@pytest.mark.parametrize("symbol", BINARY, ids=lambda symbol: symbol.__name__)
def test_a_tensor_beside_a_value_calls_the_function(symbol, name):
    kind, tensor = recording(), VALUES[name]
    x = kind()
    op, (first, second) = asked(kind, lambda: symbol(tensor, x))
    assert op is BINARY[symbol]
    assert first is tensor
    assert second is x
    op, (first, second) = asked(kind, lambda: symbol(x, tensor))
    assert op is BINARY[symbol]
    assert first is x
    assert second is tensor


@pytest.mark.parametrize("symbol", LOGICAL, ids=lambda symbol: symbol.__name__)
def test_and_or_and_xor_are_logical_or_bitwise_by_the_dtype(symbol):
    kind = recording()
    x = kind()
    logical, bitwise = LOGICAL[symbol]
    assert asked(kind, lambda: symbol(BOOLS, x)) == (logical, (BOOLS, x))
    assert asked(kind, lambda: symbol(x, BOOLS)) == (logical, (x, BOOLS))
    assert asked(kind, lambda: symbol(INTS, x))[0] is bitwise
    assert asked(kind, lambda: symbol(x, INTS))[0] is bitwise


@pytest.mark.parametrize("symbol", COMPARISONS, ids=lambda symbol: symbol.__name__)
def test_a_tensor_is_compared_with_a_value(symbol):
    kind = recording()
    x = kind()
    straight, reflected = COMPARISONS[symbol]
    assert asked(kind, lambda: symbol(FLOATS, x)) == (straight, (FLOATS, x))
    # Python calls the reflected comparison of the tensor.
    assert asked(kind, lambda: symbol(x, FLOATS)) == (reflected, (FLOATS, x))


def test_equality_is_identity_unless_the_type_overrides_it():
    kind = recording()
    x = kind()
    for tensor in (FLOATS, VALUES["variable"]):
        assert (tensor == x) is False
        assert (tensor != x) is True
        assert (x == tensor) is False
    assert x in [FLOATS, x]
    assert kind.calls == []
    compared = recording(__eq__=lambda self, other: "equal", __ne__=lambda self, other: "not equal")
    assert operator.eq(FLOATS, compared()) == "equal"
    assert operator.ne(FLOATS, compared()) == "not equal"


def test_the_functions_behind_equality_can_be_overridden():
    kind = recording()
    x = kind()
    assert asked(kind, lambda: tf.__operators__.eq(FLOATS, x)) == (tf.equal, (FLOATS, x))
    assert asked(kind, lambda: tf.__operators__.ne(FLOATS, x)) == (tf.not_equal, (FLOATS, x))


def test_a_value_as_an_index():
    kind = recording()
    x = kind()
    getitem = tf.__operators__.getitem
    assert asked(kind, lambda: FLOATS[x]) == (getitem, (FLOATS, x))
    assert asked(kind, lambda: FLOATS[0, x]) == (getitem, (FLOATS, (0, x)))
    assert asked(kind, lambda: VALUES["variable"][x])[0] is getitem


@pytest.mark.parametrize("ragged", [tf.ragged.constant([[1.0], []])])
def test_a_ragged_tensor_beside_a_value(ragged):
    kind = recording()
    x = kind()
    assert asked(kind, lambda: ragged + x) == (tf.add, (ragged, x))
    assert asked(kind, lambda: x * ragged) == (tf.multiply, (x, ragged))
    assert asked(kind, lambda: ragged < x) == (tf.less, (ragged, x))
    assert asked(kind, lambda: ragged[x])[0] is tf.__operators__.ragged_getitem
    assert (ragged == x) is False
    assert (ragged - 1.0).to_list() == [[0.0], []]


def test_a_sparse_tensor_beside_a_value():
    sparse, kind = tf.sparse.from_dense([1.0, 0.0]), recording()
    x = kind()
    assert asked(kind, lambda: sparse * x) == (tf.multiply, (sparse, x))
    assert asked(kind, lambda: sparse / x) == (tf.truediv, (sparse, x))


def test_a_type_keeps_its_own_operators():
    kind = recording(
        __radd__=lambda self, other: "own add",
        __add__=lambda self, other: "own add",
        __gt__=lambda self, other: "own greater",
    )
    x = kind()
    for tensor in (FLOATS, VALUES["variable"]):
        assert tensor + x == "own add"
        assert x + tensor == "own add"
        assert (tensor < x) == "own greater"
    assert kind.calls == []
    assert asked(kind, lambda: FLOATS - x)[0] is tf.subtract


def test_a_number_class_beside_a_tensor_calls_the_function():
    class Posit(recording(), int):
        pass

    x = Posit(3)  # int has an __radd__, which declines
    assert asked(Posit, lambda: FLOATS + x) == (tf.add, (FLOATS, x))
    assert asked(Posit, lambda: x - FLOATS) == (tf.subtract, (x, FLOATS))


def test_an_operator_that_declines_calls_that_of_the_tensor():
    kind = recording(__add__=lambda self, other: NotImplemented)
    x = kind()
    assert asked(kind, lambda: x + FLOATS) == (tf.add, (x, FLOATS))


def test_the_error_of_a_declined_operator_names_the_type():
    kind = recording(answer=NotImplemented)
    with pytest.raises(ValueError, match=r"tf\.subtract was not overridden\. Recording declined"):
        FLOATS - kind()
    with pytest.raises(ValueError, match=r"tf\.subtract was not overridden\. Recording declined"):
        kind() - FLOATS


@pytest.mark.parametrize("graph", [False, True])
def test_operators_of_tensors_do_not_change(graph):
    def all_of_them(x):
        return [
            *(symbol(x, x) for symbol in (*COMPARISONS, operator.eq, operator.ne, operator.add)),
            *(x + 1.0, 1.0 - x, x * np.ones(2, "f"), np.ones(2, "f") / x, x == None, x**2),  # noqa: E711
            *(
                x[0],
                -x,
                abs(x),
                (x > 0) & (x < 2),
                operator.add([1.0, 2.0], x),
                x[None] @ x[:, None],
            ),
        ]

    function = tf.function(all_of_them) if graph else all_of_them
    results = function(tf.constant([1.0, 2.0]))
    expected = [[False, False], [True, True], [False, False], [True, True], [True, True]]
    expected += [[False, False], [2, 4], [2, 3], [0, -1], [1, 2], [1, 0.5], False, [1, 4]]
    expected += [1, [-1, -2], [1, 2], [True, False], [2, 4], [[5]]]
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, value)


def test_errors_of_operators_of_tensors_do_not_change():
    with pytest.raises(tf.errors.InvalidArgumentError):
        FLOATS + INTS
    with pytest.raises(ValueError, match="unsupported type"):
        FLOATS + object()

    class Reflected:
        def __radd__(self, other):
            return "reflected"

    assert FLOATS + Reflected() == "reflected"


# OperatorsMixin.


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("symbol", BINARY, ids=lambda symbol: symbol.__name__)
def test_the_mixin_calls_the_function_on_either_side(symbol, name):
    kind, other = recording("Mixed", (Mixin,)), VALUES[name]
    x = kind()
    for call, expected in (
        (lambda: symbol(x, other), (x, other)),
        (lambda: symbol(other, x), (other, x)),
        (lambda: symbol(x, x), (x, x)),
    ):
        op, args = asked(kind, call)
        assert op is BINARY[symbol]
        assert len(args) == 2
        assert all(map(operator.is_, args, expected))


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("symbol", COMPARISONS, ids=lambda symbol: symbol.__name__)
def test_the_mixin_compares(symbol, name):
    kind, other = recording("Mixed", (Mixin,)), VALUES[name]
    x = kind()
    straight, reflected = COMPARISONS[symbol]
    op, args = asked(kind, lambda: symbol(x, other))
    assert op is straight
    assert args[0] is x
    op, args = asked(kind, lambda: symbol(other, x))
    assert op is reflected
    assert args[0] is x


def test_the_mixin_has_the_unary_operators():
    kind = recording("Mixed", (Mixin,))
    x = kind()
    assert asked(kind, lambda: -x) == (tf.negative, (x,))
    assert asked(kind, lambda: abs(x)) == (tf.abs, (x,))
    assert asked(kind, lambda: ~x) == (tf.logical_not, (x,))
    assert asked(kind, lambda: x[1:]) == (tf.__operators__.getitem, (x, slice(1, None)))
    assert +x is x


@pytest.mark.parametrize("symbol", LOGICAL, ids=lambda symbol: symbol.__name__)
def test_the_mixin_is_logical_for_bools_and_bitwise_for_integers(symbol):
    bools = recording("Bools", (Mixin,), dtype=tf.bool)
    ints = recording("Ints", (Mixin,), dtype=tf.int32)
    unknown = recording("Unknown", (Mixin,))
    logical, bitwise = LOGICAL[symbol]
    assert asked(bools, lambda: symbol(bools(), True))[0] is logical
    assert asked(bools, lambda: symbol(True, bools()))[0] is logical
    assert asked(ints, lambda: symbol(ints(), 3))[0] is bitwise
    assert asked(unknown, lambda: symbol(unknown(), unknown()))[0] is logical
    assert asked(unknown, lambda: symbol(unknown(), INTS))[0] is bitwise
    assert asked(ints, lambda: ~ints())[0] is tf.bitwise.invert


def test_equality_is_elementwise_if_the_type_chooses_it():
    plain = recording("Plain", (Mixin,))
    x = plain()
    assert x == x
    assert x != plain()
    assert hash(x) == hash(x)
    assert plain.calls == []

    class Compared(recording("Compared", (Mixin,)), elementwise_equality=True):
        pass

    y = Compared()
    assert asked(Compared, lambda: y == FLOATS) == (tf.equal, (y, FLOATS))
    assert asked(Compared, lambda: y != 3) == (tf.not_equal, (y, 3))
    assert asked(Compared, lambda: y == FLOATS) == (tf.equal, (y, FLOATS))
    assert asked(Compared, lambda: y != FLOATS) == (tf.not_equal, (y, FLOATS))
    assert ((y == None), (y != None)) == ((FLOATS == None), (FLOATS != None))  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(y)


def test_the_truth_of_a_value_is_an_error():
    kind = recording("Mixed", (Mixin,))
    for ask in (bool, lambda x: not x, lambda x: x and 1, lambda x: 1 if x else 2):
        with pytest.raises(xt.ExtensorError, match=r"bool\(Mixed\): expected a single bool"):
            ask(kind())


def test_the_length_of_a_value_is_its_first_dimension():
    def with_shape(shape):
        return recording("Mixed", (Mixin,), shape=shape)()

    assert len(with_shape(tf.TensorShape([3, 2]))) == 3
    assert len(with_shape((0,))) == 0
    assert list(with_shape([2])) == ["answered", "answered"]
    for shape in ([], [None, 2], tf.TensorShape(None)):
        with pytest.raises(xt.ExtensorError, match=r"len\(Mixed\): expected .*first dimension"):
            len(with_shape(shape))
    with pytest.raises(xt.ExtensorError, match="got no shape"):
        len(recording("Mixed", (Mixin,))())


def test_a_value_of_one_type_beside_another():
    a, b = recording("A", (Mixin,), answer="A"), recording("B", (Mixin,), answer="B")
    assert (a() + b(), b() + a()) == ("A", "B")
    sub = type("Sub", (a,), {})
    assert sub() - a() == "A"
    assert a() - sub() == "A"
    assert a.calls[-1][0] is tf.subtract


# Numbers on the left.


class Plain(xt.dispatch.OperatorsMixin):
    """Passes its tensor to any operation, and does not convert the other operand."""

    def __init__(self, tensor):
        self.tensor = tensor

    dtype = property(lambda self: self.tensor.dtype)

    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        return op(*(arg.tensor if isinstance(arg, cls) else arg for arg in args), **kwargs)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64, tf.int64, tf.complex64])
@pytest.mark.parametrize("left", [3, [3, 1], np.array([3, 1]), np.int16(3)], ids=repr)
def test_a_number_on_the_left_gets_the_dtype_of_the_value(left, dtype):
    symbols = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
    if not dtype.is_complex:
        symbols += [operator.floordiv, operator.mod]
    right = tf.cast([2, 4], dtype)

    def reflected(symbol, x):
        return getattr(type(x), f"__r{symbol.__name__}__")(x, left)

    for symbol in symbols:
        expected = reflected(symbol, right)
        for run in (lambda call: call(), lambda call: tf.function(call)()):
            result = run(lambda symbol=symbol: symbol(left, Plain(right)))
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)


def test_a_list_on_the_left_keeps_the_gradients_of_tensors_in_it():
    two = tf.constant(2.0, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(two)
        result = [two, 1.0] / Plain(tf.constant([4.0, 4.0], tf.float64))
    assert tape.gradient(result, two).numpy() == 0.25


@pytest.mark.parametrize("left", [1.5, np.float64(1.5), np.array([1.5]), [1.5], 2**40])
def test_a_number_on_the_left_that_the_dtype_does_not_hold_is_an_error(left):
    with pytest.raises(xt.errors.DTypeError, match="left of a Plain: expected values that dtype"):
        left * Plain(tf.constant([1]))


def test_a_number_on_the_left_of_a_value_without_a_dtype_is_not_converted():
    for kind in (recording(bases=(Mixin,)), recording(bases=(Mixin,), dtype="float32")):
        x = kind()
        assert asked(kind, lambda: 1 / x) == (tf.truediv, (1, x))  # noqa: B023
