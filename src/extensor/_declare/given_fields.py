"""The components in a dict of the fields of a declared type, whose static data is checked."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import tensorflow as tf

from extensor._declare.static_data import FrozenDict, FrozenPartial, Part, freeze, key, thaw
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.tree import Static
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, StructureError

if TYPE_CHECKING:
    from extensor._declare.derived_spec import DerivedSpec


def components_of_fields(
    spec: DerivedSpec,
    parts: Mapping[str, Part],
    checked: Mapping[str, bool],
    given: Mapping[str, Nest],
) -> dict[str, Value]:
    """Returns the components of a dict of fields, by the names that the spec has for them.

    Args:
        spec: The spec of the declared type.
        parts: Its parts by name.
        checked: Whether the static data of a field is compared, by name.
        given: The dict. A field with a default may be missing, if its default is that of the spec.
            A component of a container may be given by its own name: `columns[0]`.

    Raises:
        DTypeError: If a field is missing or unknown, or its static data differs (also a TypeError).
        StructureError: If a container has another structure (also a ValueError).
    """
    cls = type(spec).__qualname__
    components: dict[str, Value] = {}
    used = set[str]()
    missing: list[str] = []
    for name, part in parts.items():
        inner = [each for each in spec.component_specs if each.partition("[")[0] == name]
        if name in given:
            used.add(name)
            found = dict(_match(part, given[name], name, cls, checked[name]))
        else:
            used.update(each for each in inner if each in given)
            found = {each: given[each] for each in inner if each in given}
            if len(found) < len(inner):
                missing.append(f"{name!r}: ...")
            elif not inner and checked[name] and not _is_default(spec.value_type, name, part):
                missing.append(f"{name!r}: {_show(part)}")
        components.update(found)
    unknown = [name for name in given if name not in used]
    if missing or unknown:
        received = f"a dict with {', '.join(map(str, given)) or '0 fields'}"
        fix = " ".join(
            [f"Add {', '.join(missing)}."] * bool(missing)
            + [f"Leave out {', '.join(map(str, unknown))}."] * bool(unknown)
        )
        raise DTypeError(cls, f"a dict with the fields {', '.join(parts)}", received, fix)
    return components


def _match(
    part: Part, value: Nest, name: str, cls: str, is_checked: bool
) -> Iterator[tuple[str, Value]]:
    """Yields the components in a field, and raises where its static data differs."""
    if isinstance(part, tf.TypeSpec):
        yield name, value
    elif not _has_tensors(part):
        if is_checked and not _is_equal(part, value):
            fix = "Convert the value, or give the spec of values with this static data."
            raise DTypeError(f"{cls}.{name}", _show(part), repr(value)[:60], fix)
    elif isinstance(part, tuple) and type(part) is not FrozenPartial:
        if not isinstance(value, (list, tuple)) or len(value) != len(part):
            raise _other_structure(f"a sequence of {len(part)}", value, f"{cls}.{name}")
        for i, (inner, item) in enumerate(zip(part, value, strict=True)):
            yield from _match(inner, item, f"{name}[{i}]", cls, is_checked)
    elif isinstance(part, FrozenDict):
        if not isinstance(value, Mapping) or value.keys() != part.keys():
            keys = ", ".join(map(repr, part))
            raise _other_structure(f"a dict with {keys}", value, f"{cls}.{name}")
        for k, inner in part.items():
            yield from _match(inner, value[k], f"{name}[{k!r}]", cls, is_checked)


def _has_tensors(part: Part) -> bool:
    items = part.values() if isinstance(part, FrozenDict) else part
    is_container = isinstance(part, (tuple, FrozenDict))
    return isinstance(part, tf.TypeSpec) or (is_container and any(map(_has_tensors, items)))


def _is_default(cls: type, name: str, part: Part) -> bool:
    parameter = inspect.signature(cls).parameters.get(name)
    return parameter is not None and _is_equal(part, parameter.default)


def _is_equal(part: Part, value: Nest) -> bool:
    own = part.spec if isinstance(part, Static) else part
    return key(own) == key(freeze(value, "value", is_tensor_like))


def _show(part: Part) -> str:
    return repr(thaw(part.spec if isinstance(part, Static) else part, lambda leaf: leaf))[:60]


def _other_structure(expected: str, value: object, path: str) -> StructureError:
    received = repr(value)[:60]
    return StructureError(path, expected, received, "Give the field as the constructor takes it.")
