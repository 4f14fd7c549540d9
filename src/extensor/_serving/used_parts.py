"""The arguments of a function with only the fields that the function uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._data.fields_used import uses_by
from extensor._path import Path
from extensor._pruning.components import checked_uses, components, with_blanks
from extensor._pruning.fields import FieldsUsed
from extensor._serving.named_nest import signature_leaves
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._typing import Nest


class UsedParts:
    """The specs of arguments whose records have only the fields that a function uses.

    Args:
        function: A function of a dict of arguments.
        specs: The specs of the arguments, or nests of specs, by name.
    """

    def __init__(self, function: Callable[[Any], Any], specs: Nest) -> None:
        found = uses_by(function, specs)
        self._structure = specs
        self._specs = tf.nest.flatten(specs)
        self._uses: list[list[int]] = []
        first = 0
        for spec in self._specs:
            parts = components(spec) if isinstance(spec, tf.TypeSpec) else ()
            uses = {i: found[first + i] for i in range(len(parts)) if first + i in found}
            self._uses.append(checked_uses(parts, uses))
            first += len(parts)
        narrow = [
            _with_fields(spec, [Path.parse(path).names for path in FieldsUsed(spec, uses)])
            if isinstance(spec, StructuredTensorSpec)
            else spec
            for spec, uses in zip(self._specs, self._uses, strict=True)
        ]
        self.specs = tf.nest.pack_sequence_as(specs, narrow)
        """The specs with fewer fields."""
        self._narrow = narrow

    @property
    def unused(self) -> list[Path]:
        """The paths of the fields that the function does not use, in the order of the specs."""
        places = [names for names, _ in signature_leaves(self._structure)]
        found = zip(places, self._specs, self._narrow, strict=True)
        return [path for at, *both in found for path in _left_out(both[0], both[1], Path(*at))]

    def with_blanks(self, values: Nest) -> Nest:
        """Returns the arguments with all fields; those that are not used are blank."""
        leaves = [
            with_blanks(spec, uses, narrow, value)
            if isinstance(spec, StructuredTensorSpec)
            else value
            for spec, uses, narrow, value in zip(
                self._specs, self._uses, self._narrow, tf.nest.flatten(values), strict=True
            )
        ]
        return tf.nest.pack_sequence_as(values, leaves)


def _with_fields(spec: tf.TypeSpec, paths: Collection[tuple[str, ...]]) -> tf.TypeSpec:
    """Returns a spec of records with the fields at some paths. Masked records stay whole."""
    if not isinstance(spec, StructuredTensorSpec) or () in paths:
        return spec
    record = spec._record
    fields: dict[str, Any] = {}
    for name, inner in record.field_specs.items():
        below = [path[1:] for path in paths if path[0] == name]
        if below:
            if _is_map(record.arrow_types.get(name)):
                below.append(("key",))  # without keys, an object of JSON would be no map
            fields[name] = _with_fields(inner, below)
    if fields == dict(record.field_specs):
        return spec
    metadata = record._metadata.with_fields(fields)
    return spec._with_record(DenseStructuredTensorSpec(record.shape, fields, *metadata))


def _is_map(arrow: pa.DataType | None) -> bool:
    return arrow is not None and pa.types.is_map(arrow)


def _left_out(spec: tf.TypeSpec, narrow: tf.TypeSpec, path: Path) -> Iterator[Path]:
    """Yields the path of each field of a spec that another spec lacks."""
    if not isinstance(spec, StructuredTensorSpec) or narrow is spec:
        return
    fields = narrow._record.field_specs
    for name, inner in spec._record.field_specs.items():
        if name in fields:
            yield from _left_out(inner, fields[name], path / name)
        else:
            yield path / name
