"""Records with the units of a spec, whatever other fields they have."""

# This file calls methods of records that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

from extensor._path import Path
from extensor._struct.change import changed
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.inside import map_inside
from extensor._struct.spec import StructuredTensorSpec, spec_or_none, unmasked


def have_other_units(want: Any, have: Any) -> bool:
    """Returns whether the numbers of a field of records have other units than in another spec.

    Args:
        want: A spec.
        have: Another spec, or a value.
    """
    want, have = unmasked(want), unmasked(spec_or_none(have))
    if not isinstance(want, StructuredTensorSpec) or not isinstance(have, StructuredTensorSpec):
        return False
    wanted, had = want._units(), have._units()
    return wanted != had and any(wanted.get(at, unit) != unit for at, unit in had.items())


def with_units_of(spec: Any, value: Any, path: Path | None = None) -> Any:
    """Returns records with the numbers of their fields changed to the units that a spec has.

    Fields that the spec does not have stay as they are.

    Args:
        spec: The spec of records.
        value: Records, or the value of a field.
        path: The path of the value, for errors.

    Raises:
        DTypeError: If a change loses information (also a TypeError).
    """
    path = Path() if path is None else path
    spec = unmasked(spec)
    if not isinstance(spec, StructuredTensorSpec):
        return value
    if not isinstance(value, DenseStructuredTensor):
        return map_inside(value, lambda part, _: with_units_of(spec, part, path))
    record = spec.record
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

    made = value.map_parts(of_field)
    return made._with_metadata(made._metadata._replace(types=types))
