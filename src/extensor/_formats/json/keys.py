"""Objects with so many keys that these may be data, such as ids, and not names of fields."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from extensor._arrow.arrow_type import contains_type, is_list
from extensor._path import Path
from extensor.errors import StructureError

_MANY = 300
_TOO_MANY = 3_000
_ROOT = Path()


def wide_objects(arrow: pa.DataType, arrays: list[pa.Array], path: Path = _ROOT) -> Iterator[str]:
    """Yields a text for each field whose objects have many keys.

    Args:
        arrow: The type of all arrays together.
        arrays: Arrays of objects or lists of them. Objects may lack fields of the type.
        path: Their path.

    Raises:
        StructureError: If there are too many keys: each object would have a value for each key.
    """
    if not contains_type(arrow, lambda t: pa.types.is_struct(t) and t.num_fields > _MANY):
        return
    if is_list(arrow) and pa.types.is_nested(arrow.value_type):
        inner = [array.flatten() for array in arrays if not pa.types.is_null(array.type)]
        yield from wide_objects(arrow.value_type, inner, path)
    if not pa.types.is_struct(arrow):
        return
    arrays = [array for array in arrays if pa.types.is_struct(array.type)]
    found = [
        # Not `flatten`, which aborts the process where a union is below a null.
        {field.name: array.field(i) for i, field in enumerate(array.type.fields)}
        for array in arrays
    ]
    objects = sum(len(array) - array.null_count for array in arrays)
    present = sum(len(c) - c.null_count for each in found for c in each.values())
    if is_wide(arrow.num_fields, objects, present):
        if arrow.num_fields > _TOO_MANY:
            raise too_many_keys(str(path), arrow.num_fields, objects)
        keys = f"the keys of objects become {arrow.num_fields:,} fields"
        yield f"{path if path else 'read_json'}: {keys}. {_fix(str(path))}"
    for field in arrow.fields:
        if pa.types.is_nested(field.type):
            inner = [each[field.name] for each in found if field.name in each]
            yield from wide_objects(field.type, inner, path / field.name)


def is_wide(keys: int, objects: int, present: int) -> bool:
    """Returns whether the keys of objects may be data.

    Args:
        keys: The number of distinct keys.
        objects: The number of objects.
        present: The number of values of all objects.
    """
    # Where most objects have most keys, these are names of fields.
    return keys > _MANY and (objects <= 10 or present * 2 <= keys * objects)


def expect_few_keys(keys: int, objects: int, present: int, path: str) -> None:
    """Raises StructureError as `wide_objects` does."""
    if keys > _TOO_MANY and is_wide(keys, objects, present):
        raise too_many_keys(path, keys, objects)


def too_many_keys(path: str, keys: int, objects: int) -> StructureError:
    """Returns the error for objects with too many keys."""
    expected = f"objects of at most {_TOO_MANY:,} keys"
    received = f"{keys:,} keys in {objects:,} objects"
    return StructureError(path or "read_json", expected, received, _fix(path))


def _fix(path: str) -> str:
    given = f"maps=[{path.replace('[*]', '')!r}]" if path else "records=()"
    return f"If the keys are data, such as ids, give {given}: then they become lists of records."
