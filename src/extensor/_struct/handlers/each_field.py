"""Applies operations that move records to each field, of whatever type.

An operation is applied to the tensors themselves. Where a field is ragged, or has another
type without such an operation, it is applied to the numbers of the records, once for all such
fields, and each of them is gathered by the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from extensor._authoring.rows import common_rows_spec, common_spec, concat_rows
from extensor._dispatch.handlers import handles, implements
from extensor._path import Path
from extensor._protocol.casting import cast_value
from extensor._protocol.row_splits import expect_splits_fit
from extensor._struct import dims, index, reshape
from extensor._struct.arrow_types import are_equal
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dims import Axes, Dims
from extensor._struct.display import text
from extensor._struct.field import shape_of
from extensor._struct.masked import is_masked, is_union, records_in
from extensor._struct.metadata import Metadata
from extensor._struct.parts import row_parts
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import first_sizes
from extensor._struct.tensor import StructuredTensor
from extensor._tf import BaseResourceVariable, CompositeTensor, ranks_only
from extensor._typing import FieldValue, TensorLike
from extensor.errors import DTypeError, StructureError

_F = TypeVar("_F", bound=Callable[..., Any])

_DENSE = (tf.Tensor, BaseResourceVariable)
_WITHOUT_MASK = (*_DENSE, tf.RaggedTensor, StructuredTensor)


def axis_of(axis: TensorLike, rank: int, name: str) -> int:
    """Returns a static axis, not negative.

    Raises:
        StructureError: If it is outside of the records' dimensions (also a ValueError).
    """
    known = tf.get_static_value(axis)
    if known is not None and -rank <= known < rank:
        return int(known) % rank
    expected = "records of rank 1 or more"
    if rank:
        expected = f"an axis of the records, from {-rank} to {rank - 1}"
    fix = "The dimensions inside a field belong to the field: call it on the field."
    raise StructureError(f"{name}: axis", expected, f"axis {axis if known is None else known}", fix)


def axes_of(axes: TensorLike, rank: int, name: str) -> list[int]:
    """Returns one static axis or several, not negative; see `axis_of`."""
    return [axis_of(axis, rank, name) for axis in np.reshape(axes, [-1]).tolist()]


def implements_for_records(*ops: Callable[..., Any]) -> Callable[[_F], _F]:
    """Returns a decorator: `implements` for operations whose first argument must be records.

    Records in another argument alone are an error, as for an operation without a handler.
    """

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def handler(records: object, *args: object, **kwargs: object) -> object:
            is_records = isinstance(records, StructuredTensor)
            return function(records, *args, **kwargs) if is_records else NotImplemented

        implements(*ops, on=StructuredTensor)(handler)
        return function

    return decorate


def map_tensors(
    records: StructuredTensor, op: Callable[[Any], Any], axes: Axes, is_ragged: bool = False
) -> StructuredTensor:
    """Returns records whose dimensions are moved by an operation on tensors.

    Args:
        records: The records.
        op: Takes a tensor, or a RaggedTensor for ragged records, whose first dimensions are those
            of the records. Returns it with these dimensions changed.
        axes: For each dimension of the result, the dimension of the records that it is; None for
            a new one.
        is_ragged: Whether the operation returns RaggedTensors for tensors.
    """
    return map_tensors_to_many(records, lambda value: [op(value)], axes, is_ragged)[0]


def map_tensors_to_many(
    records: StructuredTensor,
    op: Callable[[Any], list[Any]],
    axes: Axes,
    is_ragged: bool = False,
) -> list[Any]:
    """Returns several collections of records; as `map_tensors`, with an op that returns a list."""
    if is_ragged or isinstance(records, RaggedStructuredTensor):
        numbers, flat = index.number_items(records, records.rank)
        return [
            _with_dims_of(index.gather(flat, part), records._dims, axes) for part in op(numbers)
        ]
    sizes = functools.cache(lambda: first_sizes(records, records.rank))
    numbers = functools.cache(lambda: op(index.range_of_shape(sizes())))

    def apart(value: FieldValue) -> list[Any]:
        if isinstance(value, _DENSE):
            return op(value)
        if isinstance(value, DenseStructuredTensor):
            return map_tensors_to_many(value, op, [*axes, *range(records.rank, value.rank)])
        if _is_dense_masked(value):
            pairs = zip(apart(value.values), apart(value.mask), strict=True)
            return [type(value)._of_parts(*pair) for pair in pairs]
        is_other = not isinstance(value, StructuredTensor) and not is_masked(value)
        if is_other and _moves_itself(value):
            return op(value)
        flat = _flat(value, sizes())
        return [index.gather(flat, part) for part in numbers()]

    columns = {name: apart(value) for name, value in _parts(records).items()}
    extra = records._metadata.with_axes(axes)
    return [_of_parts(len(axes), dict(zip(columns, row, strict=True)), extra)
            for row in zip(*columns.values(), strict=True)]  # fmt: skip


def _with_dims_of(result: FieldValue, names: Dims, axes: Axes) -> StructuredTensor:
    """Returns a result with the names that its dimensions had in the records."""
    return result._with_dims(dims.move_axes(names, axes)) if names else result


def _first_dims(values: Sequence[Any]) -> Dims:
    """Returns the names of the first collection that has any."""
    return next((value._dims for value in values if value._dims), ())


def _joined_metadata(values: Sequence[Any]) -> Metadata:
    return functools.reduce(Metadata.joined, [value._metadata for value in values])


def join_fields(
    values: Sequence[Any], op: Callable[[list[Any]], Any], axes: Axes, name: str
) -> StructuredTensor:
    """Returns records that an operation makes of several collections with the same fields.

    Args:
        values: The collections, of one rank.
        op: Takes a list of tensors, or of RaggedTensors for ragged records, and returns one.
        axes: As for `map_tensors`.
        name: The name of the operation, for errors.
    """
    return _join_fields(_with_one_dtype(values), op, axes, name)


def _join_fields(
    values: Sequence[Any], op: Callable[[list[Any]], Any], axes: Axes, name: str
) -> StructuredTensor:
    """Returns `join_fields`, for collections whose row splits all have one dtype."""
    expect_same_fields(values, name)
    values = _with_one_meaning(values, name)
    if any(isinstance(value, RaggedStructuredTensor) for value in values):
        pairs = [index.number_items(value, value.rank) for value in values]
        result = index.gather(
            concat_values([flat for _, flat in pairs], name),
            op(_add_offsets([numbers for numbers, _ in pairs], [flat for _, flat in pairs])),
        )
        return _with_dims_of(result, _first_dims(values), axes)
    outer = values[0].rank

    @functools.cache
    def numbers() -> tf.Tensor:
        sizes = [first_sizes(value, outer) for value in values]
        totals = [functools.reduce(lambda a, b: a * b, one, 1) for one in sizes]
        begins = [sum(totals[:i]) for i in range(len(totals))]
        return op([
            index.range_of_shape(one) + tf.cast(begin, tf.int64)
            for one, begin in zip(sizes, begins, strict=True)
        ])  # fmt: skip

    def of_field(parts: list[Any], at: str) -> FieldValue:
        if all(isinstance(part, _DENSE) for part in parts):
            return op(parts)
        if all(isinstance(part, DenseStructuredTensor) for part in parts):
            return _join_fields(parts, op, [*axes, *range(outer, parts[0].rank)], at)
        if all(map(_is_dense_masked, parts)) and len({p.mask.shape.rank for p in parts}) == 1:
            inner, masks = [part.values for part in parts], [part.mask for part in parts]
            return type(parts[0])._of_parts(of_field(inner, at), of_field(masks, at))
        are_own = not isinstance(parts[0], StructuredTensor) and any(
            _moves_itself(part, tf.concat) for part in parts
        )
        if are_own and not any(map(is_masked, parts)):
            return op(parts)
        pairs = zip(parts, values, strict=True)
        flats = [_flat(part, first_sizes(value, outer)) for part, value in pairs]
        return index.gather(concat_values(flats, at), numbers())

    columns = [_parts(value) for value in values]
    return _of_parts(
        len(axes),
        {n: of_field([column[n] for column in columns], _inside(name, n)) for n in columns[0]},
        _joined_metadata(values).with_axes(axes),
    )


def concat_records(values: Sequence[Any]) -> StructuredTensor:
    """Returns the records of several collections, one after another along the first dimension.

    Args:
        values: The collections, of one rank, with the same fields.
    """
    expect_same_fields(values, "tf.concat")
    return concat_values(_with_one_dtype(values), "tf.concat")


def concat_values(values: Sequence[Any], name: str) -> FieldValue:
    """Returns values of any type, concatenated along their first dimension."""
    first = values[0]
    if len(values) == 1:
        return first
    are_masked = [not isinstance(value, _WITHOUT_MASK) and is_masked(value) for value in values]
    if any(are_masked) and not all(are_masked):
        spec = common_rows_spec(values, name)
        return concat_values([cast_value(spec, value) for value in values], name)
    if any(isinstance(value, RaggedStructuredTensor) for value in values):
        return _concat_ragged(values, name)
    if isinstance(first, DenseStructuredTensor):
        expect_same_fields(values, name)
        values = _with_one_meaning(values, name)
        columns = [_parts(value) for value in values]
        return _of_parts(
            first.rank,
            {n: concat_values([c[n] for c in columns], _inside(name, n)) for n in columns[0]},
            _joined_metadata(values),
        )
    are_records = all(are_masked) and all(records_in(value) is not None for value in values)
    if are_records and len({value.mask.shape.rank for value in values}) == 1:
        inner = concat_values([value.values for value in values], name)
        return type(first)._of_joined(inner, tf.concat, [value.mask for value in values])
    if isinstance(first, (*_DENSE, tf.RaggedTensor)) or _moves_itself(first, tf.concat):
        try:
            return tf.concat(list(values), 0)
        except (ValueError, tf.errors.InvalidArgumentError):
            fix = "Pad or cut the lists to one length, or read them as lists of any length."
            expect_one_size(values, name, fix, 1)
            raise
    return concat_rows(list(values))


def expect_one_size(values: Sequence[Any], name: str, fix: str, outer: int = 0) -> None:
    """Raises StructureError if fields have other known sizes than those of the first value.

    Args:
        values: The values of one field, or records.
        name: The name of the operation, or the path of the field, for errors.
        fix: How to correct the error.
        outer: How many outer dimensions may have other sizes.
    """
    if all(map(is_masked, values)):  # a mask has the sizes of its values
        return expect_one_size([value.values for value in values], name, fix, outer)
    if all(map(is_union, values)):
        values = [value.codes for value in values]
    if not all(isinstance(value, (tf.Tensor, DenseStructuredTensor)) for value in values):
        return
    _expect_one_shape(values, name, fix, outer)
    records = [value for value in values if isinstance(value, DenseStructuredTensor)]
    for field in records[0]._columns if records else ():
        parts = [each._columns[field] for each in records if field in each._columns]
        expect_one_size(parts, _inside(name, field), fix, outer)


def _expect_one_shape(values: Sequence[Any], name: str, fix: str, outer: int) -> None:
    shapes = [value.shape[outer:] for value in values]
    for i, shape in enumerate(shapes):
        if not shape.is_compatible_with(shapes[0]):
            expected = f"values of shape {shapes[0]}, as in the first records"
            raise StructureError(name, expected, f"shape {shape} in item {i}", fix)


def _inside(name: str, field: str | None) -> str:
    """Returns the path of a field, after the name of an operation or the path of records."""
    return name if field is None else f"{name}{'.' if ': ' in name else ': '}{Path(field)}"


def _with_one_meaning(values: Sequence[Any], name: str) -> Sequence[Any]:
    """Returns dense records whose numbers mean the same; see `_struct.meaning`."""
    if not all(isinstance(value, DenseStructuredTensor) for value in values):
        return values
    if are_equal([value._metadata.types for value in values]):
        return values
    meanings = [value._meanings() for value in values]
    if all(each == meanings[0] for each in meanings):
        return values
    spec: Any = common_spec([ranks_only(value.__tf_type_spec__()) for value in values], name)
    return [spec.cast(value) for value in values]


def _concat_ragged(values: Sequence[Any], name: str) -> StructuredTensor:
    dtype = next(v.row_splits.dtype for v in values if isinstance(v, RaggedStructuredTensor))
    ragged = [value._as_ragged(dtype) for value in values]
    splits: list[Any] = [ragged[0].row_splits]
    begin: Any = ragged[0].row_splits[-1]
    for value in ragged[1:]:
        splits.append(value.row_splits[1:] + begin)
        begin = begin + value.row_splits[-1]
    records = concat_values([value.values for value in ragged], name)
    result = RaggedStructuredTensor._of_parts(records, tf.concat(splits, 0))
    return result._with_dims(_first_dims(values))


def _add_offsets(numbers: list[Any], flats: list[Any]) -> list[Any]:
    """Returns numbers that count on from one collection to the next."""
    result: list[Any] = []
    begin: Any = tf.constant(0, tf.int64)
    for own, flat in zip(numbers, flats, strict=True):
        if isinstance(own, tf.RaggedTensor):
            own = own.with_row_splits_dtype(tf.int64)
        result.append(tf.cast(own, tf.int64) + begin)
        begin = begin + tf.cast(first_sizes(flat, 1)[0], tf.int64)
    return result


_Parts = dict[str | None, Any]


def _parts(records: StructuredTensor) -> _Parts:
    """Returns the fields of dense records; without fields, their counter under the name None."""
    return records._columns if records._rows is None else {None: records._rows}


def _of_parts(rank: int, parts: _Parts, extra: Metadata) -> DenseStructuredTensor:
    fields = {name: part for name, part in parts.items() if name is not None}
    return DenseStructuredTensor._of_parts(rank, fields, parts.get(None), None, extra)


def _flat(value: FieldValue, sizes: list[Any]) -> FieldValue:
    """Returns a field's value with the dimensions of the records merged into one."""
    return index.merge_outer_dims(value, sizes) if sizes else reshape.expand_dims(value, 0)


def _moves_itself(value: FieldValue, op: Callable[..., Any] = tf.gather) -> bool:
    """Returns whether a value that is neither a tensor nor records has operations that move it.

    Args:
        value: The value.
        op: Whose handler tells that the type has such operations: tf.gather, or tf.concat.
    """
    if isinstance(value, tf.RaggedTensor) or (
        # A union in lists is moved by its rows: not every operation takes ragged codes.
        is_union(value) and isinstance(value.codes, tf.RaggedTensor)
    ):
        return False
    return handles(type(value), op)


def _is_dense_masked(value: FieldValue) -> bool:
    """Returns whether a value has a mask, and parts without ragged dimensions of the records."""
    if not is_masked(value) or not isinstance(value.mask, tf.Tensor):
        return False
    inner = value.values
    return isinstance(inner, (*_DENSE, DenseStructuredTensor)) or _is_dense_masked(inner)


def _with_one_dtype(values: Sequence[Any]) -> list[Any]:
    """Returns collections with row splits of one dtype, because TensorFlow mixes no dtypes."""
    dtypes: set[tf.DType] = set()
    for value in values:
        dtypes |= value._row_splits_dtypes() if isinstance(value, StructuredTensor) else set()
    if dtypes == {tf.int32}:
        for lists in zip(*[_list_lengths(value, Path()) for value in values], strict=False):
            expect_splits_fit(sum(count for _, count in lists), lists[0][0])
    return [v.with_row_splits_dtype(tf.int64) for v in values] if len(dtypes) > 1 else list(values)


def _list_lengths(value: FieldValue, path: Path) -> Iterator[tuple[Path, int]]:
    """Yields the number of values in all lists of an eager value, for each dimension of lists."""
    if isinstance(value, DenseStructuredTensor):
        for name in sorted(value._columns):
            yield from _list_lengths(value._columns[name], path / name)
    elif isinstance(value, (tf.RaggedTensor, RaggedStructuredTensor)):
        if hasattr(value.row_splits, "numpy"):
            yield path, int(value.row_splits[-1])
        yield from _list_lengths(value.values, path)
    elif isinstance(value, CompositeTensor):
        for part in row_parts(value) or ():
            yield from _list_lengths(part, path)


def _have_units(both: Sequence[Any], field: str) -> bool:
    """Returns whether the numbers of a field have units in both collections."""
    specs = [value.__tf_type_spec__()._record for value in both]
    return all(field in spec._meanings for spec in specs)


def expect_same_fields(values: Sequence[Any], name: str) -> None:
    """Raises unless all values are records of one rank with the same fields and dtypes."""
    first = values[0]
    for i, value in enumerate(values):
        if not isinstance(value, StructuredTensor):
            fix = "Join records with records, and fields with fields."
            raise DTypeError(name, "records only", f"a {type(value).__name__} as item {i}", fix)
        if value.rank != first.rank or set(value.field_names()) != set(first.field_names()):
            expected = f"records like the first: {text.kind_text(first)}"
            fix = "Give all records the same fields and rank: with_only, without, with_updates."
            raise StructureError(name, expected, f"{text.kind_text(value)} as item {i}", fix)
        for field in first.field_names():
            ours, theirs = (
                first._uncut_field(field, Path(field)),
                value._uncut_field(field, Path(field)),
            )
            _expect_one_kind((first, ours), (value, theirs), i, _inside(name, field))
            wanted: Any = getattr(ours, "dtype", None)
            own: Any = getattr(theirs, "dtype", None)
            if isinstance(wanted, tf.DType) and wanted != own and not _have_units(
                (first, value), field
            ):  # fmt: skip
                expected = f"dtype {wanted.name}, as in the first records"
                received = f"{getattr(own, 'name', type(theirs).__name__)} in item {i}"
                fix = "Cast the field with with_updates and tf.cast."
                raise DTypeError(_inside(name, field), expected, received, fix)


def _expect_one_kind(first: tuple[Any, Any], other: tuple[Any, Any], item: int, name: str) -> None:
    """Raises StructureError unless both values are records or none is, and of one rank.

    Args:
        first: Records, and a field of theirs before it was cut into rows.
        other: Other records, and their field.
        item: The number of the other records, for errors.
        name: The path of the field, for errors.
    """
    kinds: list[tuple[bool, int | None]] = []
    for records, value in (first, other):
        rank = shape_of(value).rank
        inner = None if rank is None else rank - records._record.rank
        kinds.append((records_in(value) is not None, inner))
    if kinds[0] == kinds[1] or (kinds[0][0] == kinds[1][0] and None in (kinds[0][1], kinds[1][1])):
        return
    expected, received = (
        text.kind_text(records_in(value)) if is_records else f"values of shape {shape_of(value)}"
        for (_, value), (is_records, _) in zip((first, other), kinds, strict=True)
    )
    fix = "Give the field one type, or leave it out: records.without."
    raise StructureError(
        name, f"{expected}, as in the first records", f"{received} in item {item}", fix
    )
