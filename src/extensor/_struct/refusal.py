"""Errors for uses of records as a number or a tensor, and the operators that raise them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import tensorflow as tf

from extensor._path import Path
from extensor._struct.display import text
from extensor._tf._tf_as_tensor import NoArray
from extensor.errors import DTypeError


def refusal(
    records: Any,
    use: str,
    example: Callable[[str], str],
    strings: bool = False,
    without_fields: str = "These records have no fields.",
) -> DTypeError:
    """Returns the error for a use of records that only one of their fields allows.

    Args:
        records: A StructuredTensor.
        use: What was called, such as "tf.add".
        example: Takes code for a field, and returns code of the use with this field.
        strings: Whether the use needs strings, not numbers.
        without_fields: What to do with records without fields.
    """
    leaves = list(records.__tf_type_spec__().leaves())
    fitting = [path for path, spec in leaves if _fits(spec, strings)]
    path = (fitting or [path for path, _ in leaves] or [None])[0]
    if path is None:
        fix = without_fields
    else:
        fix = f"Use one of the fields: {example(f'records[{_code(path)}]')}."
    expected = "a tensor, or a value that converts to one"
    return DTypeError(use, expected, text.kind_text(records), fix)


def _fits(spec: tf.TypeSpec, strings: bool) -> bool:
    dtype: Any = getattr(spec, "dtype", None)
    if not isinstance(dtype, tf.DType):
        return False
    return dtype == tf.string if strings else dtype.is_integer or dtype.is_floating


def _code(path: Path) -> str:
    text = str(path)
    return repr(text) if "'" in text or '"' in text else f'"{text}"'


def _refuse_as_array(records: object) -> NoReturn:
    # NumPy and TensorFlow would read records of rank 1 or more as a sequence.
    raise refusal(
        records,
        "conversion of records to an array or tensor",
        "{}, or records.to_py(), or records.to_pandas()".format,
        without_fields="These records have no fields. Write records.to_py() or to_pandas().",
    )


def _binary(symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: object) -> NoReturn:
        raise refusal(self, f"records {symbol} value", lambda field: f"{field} {symbol} 1")

    return operator


def _reflected_operator(symbol: str) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: object) -> NoReturn:
        raise refusal(self, f"value {symbol} records", lambda field: f"1 {symbol} {field}")

    return operator


def _unary(form: str) -> Callable[[Any], Any]:
    def operator(self: Any) -> NoReturn:
        raise refusal(self, form.format("records"), form.format)

    return operator


class RefusesMath:
    """Operators that raise an error, which shows how to compute with a field instead.

    `==` compares identity, as for any object.
    """

    __slots__ = ()

    # With these, NumPy arrays leave operators to the records, and do not convert them.
    __array_ufunc__ = None
    __array_priority__ = 100
    __array_interface__ = NoArray(_refuse_as_array)

    __add__, __radd__ = _binary("+"), _reflected_operator("+")
    __sub__, __rsub__ = _binary("-"), _reflected_operator("-")
    __mul__, __rmul__ = _binary("*"), _reflected_operator("*")
    __truediv__, __rtruediv__ = _binary("/"), _reflected_operator("/")
    __floordiv__, __rfloordiv__ = _binary("//"), _reflected_operator("//")
    __mod__, __rmod__ = _binary("%"), _reflected_operator("%")
    __pow__, __rpow__ = _binary("**"), _reflected_operator("**")
    __matmul__, __rmatmul__ = _binary("@"), _reflected_operator("@")
    __and__, __rand__ = _binary("&"), _reflected_operator("&")
    __or__, __ror__ = _binary("|"), _reflected_operator("|")
    __xor__, __rxor__ = _binary("^"), _reflected_operator("^")
    __lt__, __le__, __gt__, __ge__ = _binary("<"), _binary("<="), _binary(">"), _binary(">=")
    __neg__, __pos__, __invert__ = _unary("-{}"), _unary("+{}"), _unary("~{}")
    __abs__, __float__, __int__ = _unary("abs({})"), _unary("float({})"), _unary("int({})")

    def __bool__(self) -> bool:
        raise refusal(
            self,
            "bool(records)",
            lambda field: f"tf.reduce_any({field} != 0), or `records is not None`",
        )
