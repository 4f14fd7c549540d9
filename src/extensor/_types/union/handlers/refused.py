"""Operations on numbers, which a union as a whole does not have."""

from __future__ import annotations

from typing import Any

from extensor._types.union.value import UnionTensor
from extensor.dispatch import (
    implements,
    is_binary_elementwise_op,
    is_reduction_op,
    is_unary_elementwise_op,
    name_of,
)
from extensor.errors import UnsupportedTypeError


@implements(is_unary_elementwise_op, is_binary_elementwise_op, is_reduction_op, on=UnionTensor)
def refuse(op: Any, *args: Any) -> Any:
    """Raises an error that shows `match`."""
    union = next((arg for arg in args if isinstance(arg, UnionTensor)), None)
    if union is None:
        return NotImplemented
    functions = ", ".join(f"{name!r}: ..." for name in union.names)
    raise UnsupportedTypeError(
        name_of(op),
        "a value of one type",
        f"a UnionTensor of {', '.join(union.names)}",
        f"Apply a function to each variant: union.match({{{functions}}}).",
    )
