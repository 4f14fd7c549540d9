"""StructuredTensor: nested records as tensors, in Arrow's own layout."""

from typing import TYPE_CHECKING

from extensor._formats.python.classes import spec_from
from extensor._formats.python.constant import constant, constant_value
from extensor._struct.display.text import tree
from extensor._struct.from_tf import from_tf, to_tf
from extensor._struct.other_names import OF_PATHS as _OF_PATHS
from extensor._struct.other_names import no_attribute as _no_attribute
from extensor._struct.paths.compute import apply, cast, map_values, rename
from extensor._struct.paths.earlier_names import INSTEAD as _EARLIER
from extensor._struct.paths.earlier_names import function_of as _function_of
from extensor._struct.paths.from_static import from_static
from extensor._struct.paths.group import cartesian, combinations, group_by, unflatten
from extensor._struct.paths.lists import explode, filter_by, flatten, local_index, num, slice_
from extensor._struct.paths.move import broadcast, promote, promote_and_broadcast, reroot
from extensor._struct.paths.nulls import drop_null, fill_null, firsts, has, is_null, pad, singletons
from extensor._struct.paths.order import argmax, argmin, argsort, sort, unique
from extensor._struct.paths.to_static import num_cut
from extensor._struct.value import zip_ as _zip

__all__ = [
    "apply",
    "argmax",
    "argmin",
    "argsort",
    "broadcast",
    "cartesian",
    "cast",
    "combinations",
    "constant",
    "constant_value",
    "drop_null",
    "explode",
    "fill_null",
    "filter_by",
    "firsts",
    "flatten",
    "from_static",
    "from_tf",
    "group_by",
    "has",
    "is_null",
    "local_index",
    "map_values",
    "num",
    "num_cut",
    "pad",
    "promote",
    "promote_and_broadcast",
    "rename",
    "reroot",
    "singletons",
    "sort",
    "spec_from",
    "to_tf",
    "tree",
    "unflatten",
    "unique",
]

# Public, but not in `__all__`: a star-import must not replace the builtins of these names.
slice = slice_
zip = _zip


def __dir__() -> list[str]:
    return [*__all__, "slice", "zip", *(name for name in globals() if name.startswith("__"))]


if not TYPE_CHECKING:  # a type checker would find any name

    def __getattr__(name):
        if name in _EARLIER:
            return _function_of(name)
        raise _no_attribute("module 'extensor.struct'", name, _OF_PATHS)
