"""Records with the units of a spec, whatever other fields they have."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import tensorflow as tf

from extensor._path import Path
from extensor._struct.arrow_types import meaning_beside
from extensor._struct.change import change_numbers, dtype_of
from extensor._struct.inside import map_records_with_spec
from extensor._struct.meaning import WHOLE, Meaning, are_decimals, different_meanings
from extensor._struct.spec import spec_or_none, units_of
from extensor._typing import FieldValue

if TYPE_CHECKING:
    from extensor._struct.dense_spec import DenseStructuredTensorSpec
    from extensor._struct.tensor import StructuredTensor


def have_other_units(want: tf.TypeSpec | None, have: object) -> bool:
    """Returns whether numbers in the records of a value have other units than in another spec.

    Args:
        want: A spec.
        have: Another spec, or a value.
    """
    return want is not None and _have_other_units(want, spec_or_none(have))


@functools.lru_cache(maxsize=1024)
def _have_other_units(want: tf.TypeSpec, have: tf.TypeSpec | None) -> bool:
    wanted, had = units_of(want), units_of(have)
    if wanted == had:
        return False
    # Numbers without a unit take any, but beside decimals they are their value.
    return any(
        are_decimals(wanted.get(at)) or are_decimals(had.get(at)) or (at in wanted and at in had)
        for at in wanted.keys() | had.keys()
        if wanted.get(at) != had.get(at)
    )


def with_units_of(spec: tf.TypeSpec, value: FieldValue, path: Path | None = None) -> FieldValue:
    """Returns a value with the numbers in its records changed to the units that a spec has.

    Fields that the spec does not have stay as they are.

    Args:
        spec: The spec of records, or of an extension value with records in it.
        value: The records, or the extension value.
        path: The path of the value, for errors.

    Raises:
        DTypeError: If a change loses information (also a TypeError).
    """

    def changed_record(
        records: StructuredTensor, record: DenseStructuredTensorSpec, at: Path
    ) -> StructuredTensor:
        wanted, had = record._meanings, records._meanings()
        types = dict(records._metadata.types)

        def of_field(part: FieldValue, name: str) -> FieldValue:
            if name not in record.field_specs:
                return part
            spec = record.field_specs[name]
            want, own = wanted.get(name), had.get(name)
            want, own = (
                meaning_beside(want, record._metadata.types.get(name), own),
                meaning_beside(own, types.get(name), want),
            )
            if None in (want, own):
                _expect_no_other_value((want, own), (spec, part), at / name)
                return with_units_of(spec, part, at / name)
            if want == own:
                return part
            types[name] = record._metadata.types[name]
            return change_numbers(part, want, own, spec, at / name)

        made = records._map_parts(of_field)
        return made._with_metadata(made._metadata._replace(types=types))

    return map_records_with_spec(value, spec, changed_record, Path() if path is None else path)


def _expect_no_other_value(
    meanings: tuple[Meaning, Meaning], fields: tuple[tf.TypeSpec, FieldValue], path: Path
) -> None:
    """Raises DTypeError for floats beside decimals with digits: 1.5 is no integer of such ones."""
    is_float = any(dtype is not None and dtype.is_floating for dtype in map(dtype_of, fields))
    if is_float and any(are_decimals(each) and each != WHOLE for each in meanings):
        raise different_meanings(*meanings, path)
