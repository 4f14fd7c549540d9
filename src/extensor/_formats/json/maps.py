"""Objects that are maps: their keys are data, and not names of fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from extensor._arrow.arrow_type import contains_type, inner_fields, is_list
from extensor._arrow.struct_fields import inner_arrays, with_inner_arrays
from extensor._path import Path, PathLike
from extensor.errors import DTypeError, StructureError


class PathTree:
    """Some paths, as a tree of names.

    Attributes:
        below: The tree of each name.
        is_end: Whether a path ends here.
    """

    def __init__(self, paths: Iterable[PathLike] = ()) -> None:
        self.below: dict[str, PathTree] = {}
        self.is_end = False
        for path in paths:
            node = self
            for name in Path.of(path):
                node = node.below.setdefault(name, PathTree())
            node.is_end = True

    def __bool__(self) -> bool:
        return self.is_end or bool(self.below)

    def paths(self, outer: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """Yields the names of each path."""
        if self.is_end:
            yield outer
        for name, node in self.below.items():
            yield from node.paths((*outer, name))


def map_paths(maps: Iterable[PathLike], schema: pa.Schema | None) -> PathTree:
    """Returns the paths of maps that the caller gave, and those of the maps of a schema.

    Raises:
        DTypeError: If `maps` is not a list of paths (also a TypeError).
    """
    if isinstance(maps, (str, bytes, Path)) or not isinstance(maps, Iterable):
        raise DTypeError("maps", "a list of paths", repr(maps)[:80], 'Write maps=["support"].')
    found = [*maps]
    if schema is not None:
        found += _maps_in(pa.struct(list(schema)), ())
    return PathTree(found)


def _maps_in(arrow: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if pa.types.is_map(arrow):
        yield path
    has_names = pa.types.is_struct(arrow) or pa.types.is_map(arrow)
    for field in inner_fields(arrow):
        yield from _maps_in(field.type, (*path, field.name) if has_names else path)


def with_maps(
    value: object, tree: PathTree, unused: set[tuple[str, ...]], path: tuple[str, ...] = ()
) -> object:
    """Returns a value with the objects at the paths of maps as lists of {key, value}.

    Args:
        value: The value.
        tree: The paths.
        unused: The paths at which no object was found; those that are found are removed.
        path: The path of the value.
    """
    if not tree:
        return value
    if isinstance(value, list):
        return [with_maps(item, tree, unused, path) for item in value]
    if not isinstance(value, dict):
        return value
    if tree.is_end:
        unused.discard(path)
        inner = tree.below.get("value", _NONE)
        below = (*path, "value")
        return [
            {"key": key, "value": with_maps(each, inner, unused, below)}
            for key, each in value.items()
        ]
    return {
        name: with_maps(each, tree.below.get(name, _NONE), unused, (*path, name))
        for name, each in value.items()
    }


_NONE = PathTree()


def as_maps(array: pa.Array, tree: PathTree) -> pa.Array:
    """Returns an array with Arrow maps for the lists of {key, value} at the paths of maps."""
    arrow = array.type
    if not tree:
        return array
    if pa.types.is_struct(arrow):
        below = [tree.below.get(field.name, _NONE) for field in arrow.fields]
        return with_inner_arrays(array, list(map(as_maps, inner_arrays(array), below)))
    if not is_list(arrow):
        return array
    child = array.values
    if not tree.is_end or not pa.types.is_list(arrow):
        return with_inner_arrays(array, [as_maps(child, tree)])
    if pa.types.is_null(child.type):
        child = pa.array([], pa.struct({"key": pa.string(), "value": pa.null()}))
    if not pa.types.is_struct(child.type) or {f.name for f in child.type.fields} != _ENTRY:
        return array
    keys = child.field("key")
    values = as_maps(child.field("value"), tree.below.get("value", _NONE))
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(array.offsets, keys, values, mask=mask)


_ENTRY = {"key", "value"}


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
