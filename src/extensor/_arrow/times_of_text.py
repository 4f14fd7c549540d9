"""Text in ISO 8601 as timestamps, dates and times, where a type wants them."""

# pyarrow makes most functions of pyarrow.compute when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute
import tensorflow as tf

from extensor._arrow.arrow_type import contains_type, inner_fields, is_list
from extensor._arrow.encoded_types import decode
from extensor._arrow.read import read_records
from extensor._arrow.schema import masks_of_spec, schema_from_spec
from extensor._arrow.struct_fields import struct_fields, with_inner_arrays
from extensor._arrow.write import to_arrow
from extensor._path import Path
from extensor._struct.difference import flat_spec
from extensor._struct.inside import map_inside
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.reshape import split_outer
from extensor.errors import DTypeError, FormatError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor

pc: Any = pyarrow.compute


def is_time(arrow: pa.DataType) -> bool:
    """Returns whether the values of a type are written as text in ISO 8601."""
    t = pa.types
    return t.is_timestamp(arrow) or t.is_date(arrow) or t.is_time(arrow)


def expect_text(array: pa.Array, path: Path) -> None:
    """Raises FormatError if an array has times for which Arrow has no text in ISO 8601.

    Such as the infinite times of databases: Arrow writes `<value out of range: ...>`.
    """
    if not is_time(array.type):
        return
    ends = pa.array(list(pc.min_max(array).values()), array.type)
    if pa.types.is_timestamp(array.type):  # the text of a zone hides that it is out of range
        ends = ends.cast(pa.timestamp(array.type.unit))
    for text in ends.cast(pa.string()).to_pylist():
        if text is not None and text.startswith("<"):
            received = f"{text.strip('<>')}, of type {array.type}"
            fix = "Mask or replace the value, or write Parquet, which keeps its number."
            raise FormatError(path, "times that ISO 8601 has text for", received, fix)


def time_of_text(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Returns an array of text as an array of times, as Arrow casts it.

    Raises:
        pa.ArrowInvalid: If a text is not in ISO 8601, or the type does not hold it.

    >>> import pyarrow as pa
    >>> from extensor._arrow.times_of_text import time_of_text
    >>> time_of_text(pa.array(["12:30:00"]), pa.time32("s"))[0]
    <pyarrow.Time32Scalar: datetime.time(12, 30)>
    """
    if not pa.types.is_time(arrow):
        return array.cast(arrow)
    # Arrow does not cast text to times of a day.
    day = pa.scalar("1970-01-01T", array.type)
    whole = pc.binary_join_element_wise(day, array, pa.scalar("", array.type))
    return whole.cast(pa.timestamp(arrow.unit)).cast(arrow)


def times_of_text(array: pa.Array, arrow: pa.DataType, at: Callable[[int], str]) -> pa.Array:
    """Returns an array of text as an array of times.

    Args:
        array: The text.
        arrow: The type of the times.
        at: Returns the place of a text from its number, for errors.

    Raises:
        DTypeError: If a text is not in ISO 8601, or the type does not hold it; the error counts all
            of them (also a TypeError).
    """
    try:
        return time_of_text(array, arrow)
    except pa.ArrowInvalid:
        texts = array.to_pylist()
        wrong = {text for text in set(texts) if not _is_time(text, arrow)}
        found = [text for text in texts if text in wrong]
        expected = f"text in ISO 8601 for {arrow}, such as {_example(arrow)!r}"
        received = repr(found[0][:60])
        if len(found) > 1:
            received = f"{found[0][:60]!r}, the first of {len(found)} other texts"
        fix = "Correct the text in the data. A null needs a field that may be null."
        raise DTypeError(at(texts.index(found[0])), expected, received, fix) from None


def _is_time(text: str | None, arrow: pa.DataType) -> bool:
    try:
        time_of_text(pa.array([text], pa.string()), arrow)
    except pa.ArrowInvalid:
        return False
    return True


def _example(arrow: pa.DataType) -> str:
    if pa.types.is_date(arrow):
        return "2026-05-01"
    if pa.types.is_time(arrow):
        return "12:30:00"
    return "2026-05-01T12:30:00" + ("" if arrow.tz is None else "Z")


def table_with_times(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Returns a table with its text as times, at any depth, where a schema has times.

    Raises:
        DTypeError: As `times_of_text`.
    """
    for i, name in enumerate(table.schema.names):
        if wanted.get_field_index(name) < 0:
            continue
        want = wanted.field(name).type
        chunks = table.column(i).chunks or [pa.array([], table.schema.types[i])]
        made = [_with_times(chunk, want, Path(name)) for chunk in chunks]
        if not made[0].type.equals(table.schema.types[i]):
            table = table.set_column(i, name, pa.chunked_array(made))
    return table


def _with_times(array: pa.Array, want: pa.DataType, path: Path) -> pa.Array:
    t = pa.types
    if t.is_dictionary(array.type) and is_time(want):
        array = decode(array)
    if t.is_string_view(array.type) and is_time(want):
        array = array.cast(pa.large_string())
    if (t.is_string(array.type) or t.is_large_string(array.type)) and is_time(want):
        return times_of_text(array, want, lambda index: str(path))
    is_struct = t.is_struct(array.type) and t.is_struct(want)
    lists = (t.is_list, t.is_large_list, t.is_fixed_size_list)
    if not is_struct and not (is_list(want) and any(is_kind(array.type) for is_kind in lists)):
        return array
    if array.offset:
        array = pa.concat_arrays([array, array.slice(0, 0)])
    if is_struct:
        wanted = {field.name: field.type for field in want.fields}
        inner = [
            _with_times(child, wanted[field.name], path / field.name)
            if field.name in wanted
            else child
            for field, child in zip(array.type.fields, struct_fields(array), strict=True)
        ]
    else:
        inner = [_with_times(array.values, inner_fields(want)[0].type, path)]
    return with_inner_arrays(array, inner)


def records_with_times(records: StructuredTensor, spec: tf.TypeSpec) -> StructuredTensor:
    """Returns records with their text as times, at any depth, where a spec has times.

    Args:
        records: A StructuredTensor of any rank, outside of a graph.
        spec: The spec.

    Raises:
        DTypeError: As `times_of_text`; or if the text is part of a graph (also a TypeError).
    """
    return _times_in_records(records, schema_from_spec(flat_spec(spec)))


def _times_in_records(records: StructuredTensor, wanted: pa.Schema) -> StructuredTensor:
    if isinstance(records, RaggedStructuredTensor):
        return map_inside(records, lambda values, _: _times_in_records(values, wanted))
    times = [field.name for field in wanted if contains_type(field.type, is_time)]
    names = [name for name in records.field_names() if name in times]
    own = schema_from_spec(flat_spec(records.__tf_type_spec__()))
    names = [name for name in names if not own.field(name).type.equals(wanted.field(name).type)]
    if not names:
        return records
    some = records.with_only(*names)
    flat = some[tf.newaxis] if not records.rank else some
    if records.rank > 1:
        flat = flat.merge_dims(0, records.rank - 1)
    table = pa.Table.from_batches([to_arrow(flat)])
    found = table_with_times(table, wanted)
    if found is table:
        return records
    splits = next(iter(records.__tf_type_spec__()._row_splits_dtypes()), tf.int64)
    made = read_records(found, splits, masks_of_spec(flat.__tf_type_spec__()))
    if records.rank != 1:
        made = made[0] if not records.rank else split_outer(made, records.shape.as_list())
    return records.with_updates({name: made[name] for name in names})
