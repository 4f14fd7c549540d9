"""Where a path leads: the field, the records that hold it, and where a new field goes."""

from __future__ import annotations

from typing import Any

from extensor._path import Path, PathLike
from extensor._struct import masked
from extensor._struct.arrow_types import ArrowType, value_rank
from extensor._struct.spec import resolve, root_is_no_field
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue
from extensor.errors import DTypeError, FieldError, PathError, StructureError

Names = tuple[str, ...]


def names_of(st: StructuredTensor, path: PathLike) -> Names:
    """Returns the names of a path; `()` is the root."""
    if not isinstance(st, StructuredTensor):
        fix = "Give the records as the first argument."
        raise DTypeError("xt.struct", "a StructuredTensor", type(st).__name__, fix)
    return resolve(path, st._names()) if path != () else ()


def value_at(st: StructuredTensor, names: Names) -> FieldValue:
    """Returns the value at a path, or the records themselves for `()`.

    Raises:
        FieldError: If there is no such field (also a KeyError).
    """
    return st.field_value(names) if names else st


def fields_at(st: StructuredTensor, names: Names) -> StructuredTensor:
    """Returns the records at a path, without their masks: for their rows and the names of fields.

    Raises:
        FieldError: If there is no such field, or it is not records (also a KeyError).
    """
    value = value_at(st, names)
    records = value if isinstance(value, StructuredTensor) else masked.records_in(value)
    if records is None:
        fix = "Put the new field into the records that hold this field."
        raise FieldError(Path(*names), "records, which have fields", type(value).__name__, fix)
    return records


def depth_of(st: StructuredTensor, names: Names) -> int:
    """Returns how many dimensions a field has from the records that hold it; 0 for the root."""
    return fields_at(st, names[:-1]).rank if names else 0


def type_at(st: StructuredTensor, names: Names) -> ArrowType | None:
    """Returns the Arrow type of the field at a path, or None if it has none."""
    if not names:
        return None
    return fields_at(st, names[:-1])._record._metadata.types.get(names[-1])


def rank_at(st: StructuredTensor, names: Names) -> int | None:
    """Returns how many dimensions of records and lists a field has; None if its rank is unknown."""
    value = value_at(st, names)
    if isinstance(value, StructuredTensor):
        return value.rank
    rank = getattr(getattr(value, "shape", None), "rank", None)
    return rank if rank is None else rank - value_rank(type_at(st, names))


def list_at(st: StructuredTensor, path: PathLike) -> tuple[Names, Any, int]:
    """Returns the names of a path, the lists there, and the number of dimensions outside them.

    Raises:
        FieldError: If there is no such field (also a KeyError).
        StructureError: If the field is not a list (also a ValueError).
    """
    names = names_of(st, path)
    value = value_at(st, names)
    depth = depth_of(st, names)
    rank = rank_at(st, names)
    if rank is None or rank <= depth:
        received = "one value a record" if names else "a single record"
        fix = "Give the path of a list, or of a list of records."
        raise StructureError(Path(*names) if names else "the records", "a list", received, fix)
    return names, value, depth


def target_field(st: StructuredTensor, target: PathLike) -> tuple[Names, bool]:
    """Returns the names of the path of a field in records that exist, and whether it exists.

    Raises:
        FieldError: If there are no such records (also a KeyError).
    """
    names = names_of(st, target)
    if not names:
        raise root_is_no_field("target", "Name the new field.")
    return names, names[-1] in fields_at(st, names[:-1])._names()


def new_field(st: StructuredTensor, target: PathLike) -> Names:
    """Returns the names of the path of a new field, whose records exist.

    Raises:
        FieldError: If the field exists, or its records do not (also a KeyError).
    """
    names, exists = target_field(st, target)
    if exists:
        fix = "Choose another name, or remove the field first: st.without(path)."
        raise FieldError(Path(*names), "the path of a new field", "a field that exists", fix)
    return names


def put(
    st: StructuredTensor, names: Names, value: FieldValue, validate: bool = False
) -> FieldValue:
    """Returns the records with a value at a path; `()` replaces the records.

    Args:
        st: The records.
        names: The path.
        value: The value.
        validate: Whether a graph compares the rows of the value with those of the records. They
            are the same if the value was computed from these rows.
    """
    if not names:
        return value
    if len(names) > 1 and masked.is_masked(value) and masked.is_masked(value_at(st, names[:-1])):
        # The records that get the value have the masks of its outer dimensions.
        rank = depth_of(st, names)
        while masked.is_masked(value) and value.mask.shape.rank < rank:
            value = value.values
    return st.with_updates({names: value}, validate=validate)


def return_or_put(st: StructuredTensor, target: PathLike | None, value: FieldValue) -> FieldValue:
    """Returns the value, or the records with it in a new field."""
    return value if target is None else put(st, new_field(st, target), value)


def not_in_line(source: Names, target: Names, where: str, other: str) -> PathError:
    """Returns the error for a target that does not lie above or below its source."""
    expected = f"a path whose records lie {where} those of {Path(*source)}"
    received = f"records at {Path(*target[:-1])}" if target[:-1] else "the root"
    fix = f"Use xt.struct.{other}, or promote_and_broadcast for records that lie beside each other."
    return PathError(Path(*target), expected, received, fix)
