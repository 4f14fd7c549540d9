"""Records with the units of a spec, whatever other fields they have."""

# This file calls methods of records that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from typing import Any

from extensor._path import Path
from extensor._struct.change import changed
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.inside import map_inside
from extensor._struct.masked import is_masked, is_union
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.spec import (
    StructuredTensorSpec,
    parts_of_spec,
    parts_of_value,
    spec_or_none,
    units_of,
    with_parts,
)


def have_other_units(want: Any, have: Any) -> bool:
    """Returns whether numbers in the records of a value have other units than in another spec.

    Args:
        want: A spec.
        have: Another spec, or a value.
    """
    return want is not None and _have_other_units(want, spec_or_none(have))


@functools.lru_cache(maxsize=1024)
def _have_other_units(want: Any, have: Any) -> bool:
    wanted, had = units_of(want), units_of(have)
    return wanted != had and any(wanted.get(at, unit) != unit for at, unit in had.items())


def with_units_of(spec: Any, value: Any, path: Path | None = None) -> Any:
    """Returns a value with the numbers in its records changed to the units that a spec has.

    Fields that the spec does not have stay as they are.

    Args:
        spec: The spec of records, or of an extension value with records in it.
        value: The records, or the extension value.
        path: The path of the value, for errors.

    Raises:
        DTypeError: If a change loses information (also a TypeError).
    """
    path = Path() if path is None else path
    spec = spec.values if is_masked(spec) else spec
    if is_masked(value) or isinstance(value, RaggedStructuredTensor):
        return map_inside(value, lambda part, _: with_units_of(spec, part, path))
    if not isinstance(spec, StructuredTensorSpec):
        return _with_units_in_parts(spec, value, path)
    if not isinstance(value, DenseStructuredTensor):
        return value
    record = spec._record
    wanted, had = record._meanings, value._meanings()
    types = dict(value._metadata.types)

    def of_field(part: Any, name: str) -> Any:
        if name not in record.field_specs:
            return part
        field = record.field_specs[name]
        if name not in wanted or name not in had:
            return with_units_of(field, part, path / name)
        if wanted[name] == had[name]:
            return part
        types[name] = record._metadata.types[name]
        return changed(part, wanted[name], had[name], field, path / name)

    made = value._map_parts(of_field)
    return made._with_metadata(made._metadata._replace(types=types))


def _with_units_in_parts(spec: Any, value: Any, path: Path) -> Any:
    if is_union(spec) or not units_of(spec):
        return value
    wanted, parts = parts_of_spec(spec), parts_of_value(value)
    return with_parts(
        value, {n: with_units_of(wanted.get(n), part, path / n) for n, part in parts.items()}
    )
