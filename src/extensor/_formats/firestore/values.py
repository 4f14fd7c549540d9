"""Values of Firestore's client as plain Python data, with the Arrow types that this loses."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from extensor._arrow.struct_fields import inner_arrays, with_inner_arrays
from extensor._formats.firestore import types

_LEAVES = {str, int, float, bool, bytes, type(None)}


class Plain:
    """Converts documents to plain Python data, and remembers where references and points are.

    Attributes:
        kinds: The types of the values of one field: Python classes, and Arrow types of `types`.
        fields: The same for the fields of its maps, by name.
        items: The same for the items of its arrays.
    """

    __slots__ = ("fields", "items", "kinds")

    def __init__(self) -> None:
        self.kinds: set[Any] = set()
        self.fields: dict[str, Plain] = {}
        self.items: Plain | None = None

    def plain(self, value: Any) -> Any:
        """Returns a value as plain Python data: a dict, a list, a number, a string, ..."""
        cls = type(value)
        if cls in _LEAVES:
            if value is not None:
                self.kinds.add(cls)
            return value
        if cls is dict:
            self.kinds.add(dict)
            # The order of the fields of a map is another one in each process.
            return {name: self._field(name).plain(value[name]) for name in sorted(value)}
        if cls is list:
            self.kinds.add(list)
            if self.items is None:
                self.items = Plain()
            return [self.items.plain(item) for item in value]
        from google.cloud.firestore_v1 import DocumentReference, GeoPoint
        from google.cloud.firestore_v1.vector import Vector

        if isinstance(value, DocumentReference):
            self.kinds.add(types.REFERENCE)
            return value.path
        if isinstance(value, GeoPoint):
            self.kinds.add(types.POINT)
            return {"latitude": float(value.latitude), "longitude": float(value.longitude)}
        if isinstance(value, Vector):
            self.kinds.add(types.VECTOR)
            return [float(each) for each in value]
        self.kinds.add(cls)
        return value

    def _field(self, name: str) -> Plain:
        found = self.fields.get(name)
        if found is None:
            found = self.fields[name] = Plain()
        return found

    def typed(self, array: pa.Array) -> pa.Array:
        """Returns an array with the types of Firestore, where all its values have one of them."""
        if len(self.kinds) == 1:
            (kind,) = self.kinds
            if isinstance(kind, pa.OpaqueType):
                return pa.ExtensionArray.from_storage(kind, array.cast(kind.storage_type))
        arrow = array.type
        if pa.types.is_struct(arrow):
            inner = [self._field(field.name) for field in arrow]
        elif pa.types.is_list(arrow) and self.items is not None:
            inner = [self.items]
        else:
            return array
        return with_inner_arrays(array, list(map(Plain.typed, inner, inner_arrays(array))))
