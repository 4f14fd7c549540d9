"""What records keep beside their tensors: Arrow types of fields, and names of dimensions.

It moves with the records and their specs. Of all this, only the meaning of numbers is part of the
equality and the hash of a spec: a `tf.function` is not traced again for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._struct.arrow_types import NONE as NO_TYPES
from extensor._struct.arrow_types import ArrowTypes, are_equal, form_of
from extensor._struct.dims import Axes, Dims, move_axes
from extensor._struct.masked import under_masks
from extensor._struct.records import RecordsBase
from extensor._typing import FieldValue


class Metadata(NamedTuple):
    """The metadata of dense records.

    Attributes:
        types: The Arrow types of the fields.
        dims: The names of the records' dimensions.
    """

    types: ArrowTypes = NO_TYPES
    dims: Dims = ()

    def with_axes(self, axes: Axes) -> Metadata:
        """Returns the metadata of records whose dimensions were moved."""
        return Metadata(self.types, move_axes(self.dims, axes)) if self.dims else self

    def with_fields(self, names: Iterable[str]) -> Metadata:
        """Returns the metadata of records with the given fields only."""
        if not self.types:
            return self
        return Metadata({n: self.types[n] for n in names if n in self.types}, self.dims)

    def after_updates(
        self, old: Mapping[str, Any], new: Mapping[str, Any], names: Iterable[str]
    ) -> Metadata:
        """Returns the metadata without the types of fields whose dtype or structure changed.

        Args:
            old: The values of all fields before the update.
            new: The values of all fields after the update.
            names: The names of the fields that were updated.
        """
        known = (name for name in names if name in self.types)
        return self.without(
            n for n in known if n not in old or not _has_structure_of(old[n], new[n])
        )

    def without(self, names: Iterable[str]) -> Metadata:
        """Returns the metadata without the Arrow types of the given fields."""
        gone = set(names)
        kept = {name: kept for name, kept in self.types.items() if name not in gone}
        return Metadata(kept, self.dims) if gone else self

    def merge(self, other: Metadata) -> Metadata:
        """Returns the metadata of both; where both have some, that of the first."""
        if other is NONE or self is other:
            return self
        types = {**other.types, **self.types} if self.types and other.types else None
        return Metadata(types or self.types or other.types, self.dims or other.dims)

    def joined(self, other: Metadata) -> Metadata:
        """Returns the metadata of the values of both, with Arrow types that fit both."""
        merged = self.merge(other)
        if are_equal([self.types, other.types]):
            return merged
        both = self.types.keys() & other.types.keys()
        types = {name: self.types[name].joined(other.types[name]) for name in both}
        return merged._replace(types={**merged.types, **types})


NONE = Metadata()
"""The metadata of most records."""


def _has_structure_of(old: FieldValue, new: FieldValue) -> bool:
    """Returns whether the Arrow type of a value is that of another one; masks are no part of it."""
    kind, form = _kind_and_form(old)
    if (kind, form) != _kind_and_form(new):
        return False
    if kind in _KINDS:
        return True
    variants = [getattr(under_masks(value), "names", ()) for value in (old, new)]  # of a union
    return set(variants[1]) <= set(variants[0])


_KINDS = (tf.Tensor, tf.RaggedTensor, RecordsBase)


def _kind_and_form(value: FieldValue) -> tuple[object, object]:
    inner = value if isinstance(value, _WITHOUT_MASK) else under_masks(value)
    kind = tf.Tensor if isinstance(inner, tf.Variable) else type(inner)
    kind = next((each for each in _KINDS if isinstance(inner, each)), kind)
    return kind, form_of(inner, 0)


_WITHOUT_MASK = (*_KINDS, tf.Variable)
