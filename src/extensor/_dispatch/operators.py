"""Python's operators, for values of types that override operations and for tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import tensorflow as tf

from extensor._dispatch.call import NOT_OVERRIDDEN, follows_protocol
from extensor._dispatch.switch import SWITCHED_OFF, is_on
from extensor._lookup import lineage, namespace
from extensor._protocol.lossless import is_tensor_like, lossless
from extensor._tf._tf_as_tensor import NoArray
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from typing_extensions import Self

Function = Callable[..., Any]


def _of_bools(logical: Function, bitwise: Function) -> Function:
    """Returns the function of `&`, `|`, `^` or `~`: logical for bools, bitwise for integers."""

    def function(*operands: Value) -> Value:
        for operand in operands:
            dtype = getattr(operand, "dtype", None)
            if dtype is not None:
                return (logical if dtype == tf.bool else bitwise)(*operands)
        return logical(*operands)

    return function


_and = _of_bools(tf.logical_and, tf.bitwise.bitwise_and)
_or = _of_bools(tf.logical_or, tf.bitwise.bitwise_or)
_xor = _of_bools(tf.math.logical_xor, tf.bitwise.bitwise_xor)
_invert = _of_bools(tf.logical_not, tf.bitwise.invert)


def _left(function: Function) -> Function:
    def operator(self: Value, other: Value) -> Value:
        return function(self, other)

    return operator


def _right(function: Function) -> Function:
    def operator(self: Value, other: Value) -> Value:
        dtype = getattr(self, "dtype", None)
        is_array = hasattr(type(other), "__array__") and not is_tensor_like(other)  # of pandas
        if (is_array or isinstance(other, _OF_ANY_DTYPE)) and isinstance(dtype, tf.DType):
            other = _of_dtype(dtype, other, f"left of a {type(self).__qualname__}")
        return function(other, self)

    return operator


_added_right = _right(tf.add)

_OF_PYTHON = (object, int, float, complex)
_OF_ANY_DTYPE = (int, float, complex, np.number, np.ndarray, list, tuple)


def _of_dtype(dtype: tf.DType, numbers: Value, path: str) -> np.ndarray[Any, Any] | tf.Tensor:
    """Returns numbers converted to a dtype, as in `1 / tensor`; tf.truediv would use int32."""
    numbers = lossless(numbers, dtype, path)
    if isinstance(numbers, (list, tuple)):  # they may contain tensors
        return tf.convert_to_tensor(numbers, dtype)
    # An array: a tensor would have a gradient, and a NumPy scalar is slow.
    return np.asarray(numbers, dtype.as_numpy_dtype)


def refuse_as_tensor(value: object) -> NoReturn:
    """Raises DTypeError for a value that TensorFlow or NumPy tries to convert.

    Without this error they would treat the value as a sequence, and index it recursively.
    """
    name = type(value).__qualname__
    fix = (
        "Give the tensor inside of the value, such as x.values. Authors of the type register "
        "a handler for the function with xt.dispatch.implements, or define __array__."
        if is_on()
        else SWITCHED_OFF
    )
    raise DTypeError(name, "a tensor, or a value that converts to one", f"a {name}", fix)


class OperatorsMixin:
    """Gives a class the operators of a tensor, each of which calls TensorFlow's function.

    So `__tf_dispatch__` handles all of them:

    `+ - * / // % ** @ & | ^ ~ < <= > >= abs()`, unary `+ -`, and `x[i]`

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class Length(xt.dispatch.OperatorsMixin):
    ...     def __init__(self, metres):
    ...         self.metres = metres
    ...
    ...     @classmethod
    ...     def __tf_dispatch__(cls, op, args, kwargs):
    ...         if xt.dispatch.is_binary_elementwise_op(op):
    ...             metres = [x.metres if isinstance(x, cls) else x for x in args[:2]]
    ...             return cls(op(*metres, *args[2:], **kwargs))
    ...         return NotImplemented
    >>> length = Length(tf.constant([1.0, 3.0]))
    >>> (2.0 * length - length / 2.0).metres.numpy()
    array([1.5, 4.5], dtype=float32)
    >>> (length > 2.0).metres.numpy()
    array([False,  True])

    `&`, `|`, `^` and `~` are logical if the first operand with a `dtype` has bool, or if no operand
    has a `dtype`. Otherwise they are bitwise.

    If the class has a `dtype`, a number, list or array on the left is converted to it, as in `1 /
    tensor`. `0 + value` is the value, so that `sum(values)` works.

    `==` compares identity, which dicts and `in` need. `class Length(OperatorsMixin,
    elementwise_equality=True)` compares elements; then values have no hash.

    `bool()` of a value is an error. `len()` is the first dimension of its `shape`, if this is
    static.
    """

    # As of a tensor: NumPy arrays leave operators to the value, and functions get it as an array.
    __array_priority__ = 100
    __array_interface__ = NoArray(refuse_as_tensor)

    def __init_subclass__(cls, elementwise_equality: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if elementwise_equality:
            # As of a tensor, which equals None nowhere.
            cls.__eq__ = lambda self, other: False if other is None else tf.equal(self, other)
            cls.__ne__ = lambda self, other: True if other is None else tf.not_equal(self, other)
            cls.__hash__ = None  # type: ignore[assignment]

    __add__ = _left(tf.add)
    __sub__, __rsub__ = _left(tf.subtract), _right(tf.subtract)
    __mul__, __rmul__ = _left(tf.multiply), _right(tf.multiply)
    __truediv__, __rtruediv__ = _left(tf.truediv), _right(tf.truediv)
    __floordiv__, __rfloordiv__ = _left(tf.math.floordiv), _right(tf.math.floordiv)
    __mod__, __rmod__ = _left(tf.math.floormod), _right(tf.math.floormod)
    __pow__, __rpow__ = _left(tf.pow), _right(tf.pow)
    __matmul__, __rmatmul__ = _left(tf.matmul), _right(tf.matmul)
    __and__, __rand__ = _left(_and), _right(_and)
    __or__, __ror__ = _left(_or), _right(_or)
    __xor__, __rxor__ = _left(_xor), _right(_xor)
    __lt__, __le__ = _left(tf.less), _left(tf.less_equal)
    __gt__, __ge__ = _left(tf.greater), _left(tf.greater_equal)

    def __radd__(self, other: Value) -> Value:
        # The sum() of values begins with 0.
        return self if type(other) is int and other == 0 else _added_right(self, other)

    def __neg__(self) -> Value:
        return tf.negative(self)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Value:
        return tf.abs(self)

    def __invert__(self) -> Value:
        return _invert(self)

    def __getitem__(self, key: Nest) -> Value:
        return tf.__operators__.getitem(self, key)

    def __bool__(self) -> bool:
        name = type(self).__name__
        fix = "Compute elementwise: tf.where, tf.reduce_any. To test for a value: `x is not None`."
        raise DTypeError(f"bool({name})", "a single bool", f"a {name}", fix)

    def __len__(self) -> int:
        shape = getattr(self, "shape", None)
        sizes: Any = None if shape is None else tf.TensorShape(shape)
        if sizes is None or not sizes.rank or sizes[0] is None:
            expected = "a value with a shape whose first dimension is known"
            received = "no shape" if sizes is None else f"shape {sizes}"
            fix = "Use tf.shape(x)[0], if the type handles it. tf.stack makes one value of a list."
            raise StructureError(f"len({type(self).__name__})", expected, received, fix)
        return int(sizes[0])

    def __iter__(self) -> Iterator[Value]:
        return (self[i] for i in range(len(self)))


# The operators of TensorFlow's own classes.


def _leaving_to(reflected: str, function: Function | None) -> Function:
    """Returns an operator that lets another operand that overrides operations handle the call.

    Args:
        reflected: The method of the other operand that Python calls if this one declines.
        function: The function to call if this method does not exist; None for Python's default.
    """

    def operator(one: Value, other: Value) -> object:
        if _is_not_overridden(one, other):
            return NOT_OVERRIDDEN
        # Not the methods of the metaclass or of classes of Python, which decline.
        bases = [b for b in lineage(type(other)) if all(b is not one for one in _OF_PYTHON)]
        if function is None or any(reflected in namespace(base) for base in bases):
            return NotImplemented
        return function(one, other)

    return operator


def _swap(function: Function) -> Function:
    """Returns a reflected operator, which Python calls if the first operand has no operator."""

    def operator(one: Value, other: Value) -> object:
        return NOT_OVERRIDDEN if _is_not_overridden(one, other) else function(other, one)

    return operator


def _is_not_overridden(one: Value, other: Value) -> bool:
    follows_protocol(type(one))  # caches the type if it does not
    return not follows_protocol(type(other))


_BINARY = {
    "add": tf.add,
    "sub": tf.subtract,
    "mul": tf.multiply,
    "truediv": tf.truediv,
    "floordiv": tf.math.floordiv,
    "mod": tf.math.floormod,
    "pow": tf.pow,
    "matmul": tf.matmul,
    "and": _and,
    "or": _or,
    "xor": _xor,
}
# Each with the reflected method of the other operand.
_COMPARISONS: list[tuple[str, str, Function | None]] = [
    ("__lt__", "__gt__", tf.less),
    ("__le__", "__ge__", tf.less_equal),
    ("__gt__", "__lt__", tf.greater),
    ("__ge__", "__le__", tf.greater_equal),
    ("__eq__", "__eq__", None),
    ("__ne__", "__ne__", None),
]


def answers() -> Iterator[tuple[str, Function]]:
    """Yields the names of TensorFlow's operators, each with its replacement.

    The replacement takes both operands, the second of an unknown type. It returns the result, or
    `NOT_OVERRIDDEN`.
    """
    for name, function in _BINARY.items():
        yield f"__{name}__", _leaving_to(f"__r{name}__", function)
        yield f"__r{name}__", _swap(function)
    for name, reflected, function in _COMPARISONS:
        yield name, _leaving_to(reflected, function)
