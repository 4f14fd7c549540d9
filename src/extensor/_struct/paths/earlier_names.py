"""Functions of `xt.struct` under the names of 0.2, until 0.4."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from extensor._path import PathLike
from extensor._struct.paths.lists import local_index, num, slice_
from extensor._typing import TensorLike
from extensor.errors import StructureError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor


def _size(st: StructuredTensor, source: PathLike, target: PathLike) -> Any:
    return num(st, source, target)


def _index(st: StructuredTensor, path: PathLike, target: PathLike, from_end: bool = False) -> Any:
    return local_index(st, path, target, from_end)


def _truncate(st: StructuredTensor, path: PathLike, limit: TensorLike) -> StructuredTensor:
    if isinstance(limit, int) and limit < 0:
        fix = "Use xt.struct.slice to leave out the last items."
        raise StructureError("limit", "0 or more items", str(limit), fix)
    return slice_(st, path, stop=limit)


_FUNCTIONS = {"size": _size, "index": _index, "truncate": _truncate}

INSTEAD = {
    "index": 'xt.struct.local_index(records, "list", "position")',
    "size": 'xt.struct.num(records, "list", "count")',
    "truncate": 'xt.struct.slice(records, "list", stop=5)',
}
"""What to write instead of each earlier name."""


def function_of(name: str) -> Callable[..., Any]:
    """Returns the function of an earlier name, and warns.

    >>> import warnings
    >>> from extensor._struct.paths.earlier_names import function_of
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     _ = function_of("size")
    >>> print(found[0].message)
    xt.struct.size goes away in 0.4. Write xt.struct.num(records, "list", "count")
    """
    message = f"xt.struct.{name} goes away in 0.4. Write {INSTEAD[name]}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)  # the line of the user
    return _FUNCTIONS[name]
