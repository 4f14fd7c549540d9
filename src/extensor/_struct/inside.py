"""What is inside a value of any type: one function for all operations that reach into records.

Records have fields, ragged records have the records of all rows, a masked value has values, a
union has the rows of each variant, a RaggedTensor has values. An operation says what it does with
some of these, and calls itself for what is inside of all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct.masked import is_masked, is_union
from extensor._struct.records import RecordsBase
from extensor._struct.spec import (
    StructuredTensorSpec,
    has_records,
    parts_of_spec,
    parts_of_value,
    with_parts,
)
from extensor._typing import FieldValue

_ROOT = Path()


def map_inside(
    value: FieldValue, change: Callable[[Any, Path], Any], at: Path = _ROOT
) -> FieldValue:
    """Returns a value with a function applied to each value directly inside it.

    Masks, row splits, type codes and names of dimensions stay.

    Args:
        value: The value.
        change: Takes a value inside, and its path: for a field or a variant, one name more. Returns
            a value with the same rows.
        at: The path of the value.

    Returns:
        The value itself if nothing is inside, or nothing there changes.

    >>> from extensor._struct.inside import map_inside
    >>> import extensor as xt
    >>> records = xt.DenseStructuredTensor([2], {"x": [1, 2], "y": [3, 4]})
    >>> map_inside(records, lambda part, at: -part if str(at) == "y" else part).to_py()
    [{'x': 1, 'y': -3}, {'x': 2, 'y': -4}]
    """
    if isinstance(value, tf.Tensor):
        return value
    if isinstance(value, tf.RaggedTensor):
        values = change(value.values, at)
        return value if values is value.values else value.with_values(values)
    if isinstance(value, RecordsBase):
        records: Any = value
        if hasattr(records, "row_splits"):
            values = change(records.values, at)
            return value if values is records.values else records._with_values(values)
        fields = {name: change(part, at / name) for name, part in records._columns.items()}
        if all(part is records._columns[name] for name, part in fields.items()):
            return value
        return records._map_parts(lambda part, name: fields[name])
    if is_masked(value):
        values = change(value.values, at)
        return value if values is value.values else type(value)._of_parts(values, value.mask)
    if is_union(value):
        rows = {name: change(part, at / name) for name, part in value.variants.items()}
        if all(part is value.variants[name] for name, part in rows.items()):
            return value
        return value._of_parts(value.codes, rows, value.names)
    return value


def map_records_with_spec(
    value: FieldValue, spec: tf.TypeSpec, change: Callable[[Any, Any, Path], Any], at: Path = _ROOT
) -> FieldValue:
    """Returns a value with a function applied to the dense records in it that a spec describes.

    Args:
        value: Records, or another value.
        spec: The spec of records, masked or not, or of an extension value with records in it.
        change: Takes dense records, the spec of dense records, and their path. It calls
            `map_records_with_spec` for what is inside of a field.
        at: The path of the value.
    """
    spec = spec.values if is_masked(spec) else spec
    if is_masked(value) or (isinstance(value, RecordsBase) and hasattr(value, "row_splits")):
        return map_inside(value, lambda part, _: map_records_with_spec(part, spec, change, at))
    if isinstance(spec, StructuredTensorSpec):
        return change(value, spec._record, at) if isinstance(value, RecordsBase) else value
    specs = {} if is_union(spec) else parts_of_spec(spec)
    if not any(map(has_records, specs.values())) or type(value) is not spec.value_type:
        return value
    parts = {
        name: map_records_with_spec(part, specs.get(name), change, at / name)
        for name, part in parts_of_value(value).items()
    }
    return with_parts(value, parts)
