"""Checks of the laws of extension types for your own types, and Hypothesis strategies.

One rule of the specification is not checked, because no general check exists: that values are
immutable.
"""

# pyright: reportUnusedImport=false

# These imports register the laws.
from extensor._testing import cast_law as _cast_law  # noqa: F401
from extensor._testing import spec_law as _spec_law  # noqa: F401
from extensor._testing import stack_law as _stack_law  # noqa: F401
from extensor._testing import value_law as _value_law  # noqa: F401
from extensor._testing.check_laws import check_extension_type, check_spec, parametrize_laws
from extensor._testing.law import Law, laws
from extensor._testing.strategy import specs_of, values_of
from extensor.errors import LawError

__all__ = [
    "Law",
    "LawError",
    "check_extension_type",
    "check_spec",
    "laws",
    "parametrize_laws",
    "specs_of",
    "values_of",
]


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
