"""The Arrow types of the fields of records, which TensorFlow's dtypes do not express.

An int64 tensor may be a timestamp, a duration or a decimal number, and a string tensor may be text,
bytes or a dictionary. Records and their specs keep the Arrow type of each field that came from
Arrow, so that `to_arrow` writes the same type. Of the Arrow types, only the meaning of numbers
(`meaning.py`) is part of the equality and the hash of a spec: a `tf.function` is not traced again
for the others.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import tensorflow as tf

from extensor._struct.meaning import WHOLE, Meaning, are_decimals, is_integer, meaning_of
from extensor._typing import FieldValue


class ArrowType(NamedTuple):
    """The Arrow type of a field.

    Attributes:
        field: The Arrow field, with its type, nullability and metadata. Structs in its type are
            empty, because the records inside keep the Arrow types of their own fields.
        form: The dtype and the inner rank of the field's values; see `form_of`.
        words: For a dictionary, its values; None if they are not known.
    """

    field: pa.Field
    form: Any
    words: pa.Array | None = None

    @property
    def meaning(self) -> Meaning:
        """What the numbers of the field mean."""
        return meaning_of(self.field.type)

    def joined(self, other: ArrowType) -> ArrowType:
        """Returns the type of values of both, such as that of lists of any length.

        It is this type if Arrow has no type for both.
        """
        if self.field.type == other.field.type or self.form != other.form:
            return self
        field = _unified(self.field, other.field)
        if field is None:  # a dictionary is text, unless there are bytes beside it
            field = _unified(*map(_without_words, (self.field, other.field)))
            if field is None or not _has_bytes(field.type):
                return self
        return ArrowType(field.with_name(self.field.name), self.form)


def _unified(one: pa.Field, other: pa.Field) -> pa.Field | None:
    schemas = [pa.schema([field.with_name("")]) for field in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None


def _without_words(field: pa.Field) -> pa.Field:
    is_dictionary = pa.types.is_dictionary(field.type)
    return field.with_type(field.type.value_type) if is_dictionary else field


def _has_bytes(arrow: pa.DataType) -> bool:
    return pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow)


ArrowTypes = Mapping[str, ArrowType]

NONE: ArrowTypes = MappingProxyType({})
"""The Arrow types of records that did not come from Arrow."""


def are_equal(types: Sequence[ArrowTypes]) -> bool:
    """Returns whether records have the same types. It calls no Python function for each field."""
    if all(each is types[0] for each in types):
        return True
    plain = [{name: one.field.type for name, one in each.items()} for each in types]
    return all(each == plain[0] for each in plain)


def meanings_of_fields(types: ArrowTypes, fields: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """Returns the meaning of the numbers of each field that has one, sorted by name.

    Args:
        types: The Arrow types.
        fields: The values or the specs of the fields.
        rank: The number of dimensions of the records.
    """
    return {
        name: types[name].meaning
        for name in sorted(types)
        if types[name].meaning is not None
        and name in fields
        and type_fits(types[name], fields[name], rank)
    }


def meaning_beside(own: Meaning, kept: ArrowType | None, other: Meaning) -> Meaning:
    """Returns the meaning of the numbers of a field that meet those of another field.

    Beside decimals, integers of Arrow and of Python are decimals of scale 0. Tensors without an
    Arrow type have no meaning.

    Args:
        own: The meaning of the numbers of the field.
        kept: The Arrow type of the field, if it is known.
        other: The meaning of the numbers of the other field.
    """
    if own is None and kept is not None and are_decimals(other) and is_integer(kept.field.type):
        return WHOLE
    return own


def type_fits(kept: ArrowType, value_or_spec: FieldValue | tf.TypeSpec, rank: int) -> bool:
    """Returns whether an Arrow type is that of a field of this dtype and rank."""
    dtype, inner = form_of(value_or_spec, rank)
    return kept.form[0] == dtype and (inner is None or kept.form[1] == inner)


def value_rank(kept: ArrowType | None) -> int:
    """Returns how many inner dimensions of a field are one value of its Arrow type.

    A decimal of more than 18 digits is a vector of integers, and so is an interval.

    Args:
        kept: The Arrow type of the field, or None.
    """
    arrow, inner = (None, 0) if kept is None else (kept.field.type, kept.form[1] or 0)
    while arrow is not None and inner:
        if isinstance(arrow, pa.BaseExtensionType):
            arrow = arrow.storage_type
        elif hasattr(arrow, "value_type"):
            inner -= hasattr(arrow, "value_field")  # a list; no dictionary
            arrow = arrow.value_type
        else:
            return inner if pa.types.is_decimal(arrow) or pa.types.is_interval(arrow) else 0
    return 0


def form_of(value_or_spec: FieldValue | tf.TypeSpec, rank: int) -> tuple[Any, int | None]:
    """Returns the dtype and the inner rank of a field. An Arrow type depends on both.

    Args:
        value_or_spec: A field's value, or its spec.
        rank: The number of outer dimensions, those of the records.
    """
    dtype: Any = getattr(value_or_spec, "dtype", None)
    inner = getattr(getattr(value_or_spec, "shape", None), "rank", None)
    return dtype, None if inner is None else inner - rank


def types_to_text(types: ArrowTypes) -> tuple[tuple[str, str], ...]:
    """Returns Arrow types as text, for a SavedModel. The words of dictionaries are left out."""
    return tuple(
        (name, base64.b64encode(pa.schema([kept.field]).serialize()).decode("ascii"))
        for name, kept in types.items()
    )


def types_from_text(
    pairs: Iterable[tuple[str, str]], specs: Mapping[str, Any], rank: int
) -> ArrowTypes:
    """Returns the Arrow types that `types_to_text` wrote, for fields with these specs."""
    return {name: ArrowType(_field(text), form_of(specs[name], rank)) for name, text in pairs}


@functools.lru_cache(1024)  # TensorFlow rebuilds specs when it compares structures
def _field(text: str) -> pa.Field:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))).field(0)
