"""What records keep beside their tensors: Arrow types of fields, and names of dimensions.

It moves with the records and their specs. Of all this, only the meaning of numbers is part of the
equality and the hash of a spec: a `tf.function` is not traced again for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from extensor._struct import arrow_types
from extensor._struct.dims import Axes, Dims, move_axes


class Metadata(NamedTuple):
    """The metadata of dense records.

    Attributes:
        types: The Arrow types of the fields.
        dims: The names of the records' dimensions.
    """

    types: arrow_types.ArrowTypes = arrow_types.NONE
    dims: Dims = ()

    def moved(self, axes: Axes) -> Metadata:
        """Returns the metadata of records whose dimensions were moved."""
        return Metadata(self.types, move_axes(self.dims, axes)) if self.dims else self

    def selected(self, names: Iterable[str]) -> Metadata:
        """Returns the metadata of records with the given fields only."""
        return (
            Metadata(arrow_types.select_types(self.types, names), self.dims) if self.types else self
        )

    def after_updates(
        self, old: Mapping[str, Any], new: Mapping[str, Any], names: Iterable[str]
    ) -> Metadata:
        """Returns the metadata after an update; see `arrow_types.types_after_updates`."""
        if not self.types:
            return self
        return Metadata(arrow_types.types_after_updates(self.types, old, new, names), self.dims)

    def without(self, names: Iterable[str]) -> Metadata:
        """Returns the metadata without the Arrow types of the given fields."""
        gone = set(names)
        kept = {name: kept for name, kept in self.types.items() if name not in gone}
        return Metadata(kept, self.dims) if gone else self

    def joined(self, other: Metadata) -> Metadata:
        """Returns the metadata of both; where both have some, that of the first."""
        if other is NONE or self is other:
            return self
        return Metadata(arrow_types.merge_types(self.types, other.types), self.dims or other.dims)


NONE = Metadata()
"""The metadata of most records."""
