"""The laws that extension types obey, runnable on your own type, and Hypothesis strategies.

One rule of the text is not checked, because it cannot be in general: that values are immutable.
"""

# Importing these enters the laws.
from extensor.testing import cast_law as cast_law
from extensor.testing import spec_law as spec_law
from extensor.testing import stack_law as stack_law
from extensor.testing import value_law as value_law
from extensor.testing.check import check_extension_type, check_spec, parametrize_laws
from extensor.testing.law import Law, LawError, laws
from extensor.testing.strategy import specs_of, values_of

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
    # Not the modules that it is made of.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
