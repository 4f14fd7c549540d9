"""constant and constant_value: Python data to StructuredTensors."""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.found_nulls import FoundNulls, found_nulls, not_in_spec, with_list
from extensor._arrow.location import Location
from extensor._arrow.null_argument import by_path
from extensor._arrow.null_policy import REST, Nulls, is_error, text_of
from extensor._arrow.read import read_records
from extensor._arrow.reader import rows_reader
from extensor._choice import expect_one_of
from extensor._formats.python.columns import ColumnConverter, ExpectFew, expect_size, offsets_of
from extensor._formats.python.dtypes import Dtypes
from extensor._formats.python.fast import array_of_type, infer_array
from extensor._formats.python.kinds import Kind, kind_of, kind_of_value
from extensor._formats.python.objects import names_of
from extensor._formats.python.place import Offsets, Place, show
from extensor._formats.python.unfit import fields_error
from extensor._formats.python.variants import NULL
from extensor._formats.python.wanted import Wanted, WantedLists, wanted_records
from extensor._path import Path
from extensor._protocol.casting import cast_value
from extensor._struct.cast_request import STRICT, CastRequest
from extensor._struct.common_shape import checked_splits_dtype
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.inside import map_inside
from extensor._struct.masked import is_masked, records_in
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.ragged_spec import RaggedRowSpec
from extensor._struct.reshape import split_outer
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._struct.value import StructuredTensorValue
from extensor._tf._tf_eager import eagerly
from extensor._typing import DTypeLike, NullsLike
from extensor.errors import DTypeError, ExtensorError, NullError, StructureError

_ROOT = Path()


@refuse_deep_nesting("constant")
def constant(
    pyval: Any,
    spec: StructuredTensorSpec | None = None,
    dtype: DTypeLike | Mapping[Any, DTypeLike] | None = None,
    row_splits_dtype: DTypeLike = tf.int64,
    nulls: NullsLike | None = None,
    conflicts: str = "error",
) -> StructuredTensor:
    """Returns Python data as a StructuredTensor; floats are float32 unless `dtype=tf.float64`.

    Without a spec, the values decide. Python numbers get the dtypes that `tf.ragged.constant` gives
    them: int32 (int64 if a number needs it), and float32. An integer that the floats of its field
    do not hold exactly is an error. Numbers of NumPy keep their dtypes. Empty lists are float32. A
    dict becomes a single record; lists of dicts become a collection, which is dense if all lists of
    a level have one length. Lists inside of records are ragged; the outermost one of a single
    record is dense.

    Args:
        pyval: A dict, or (nested) lists of dicts. A record may also be an object of a dataclass,
            a NamedTuple, an attrs or pydantic class. Values are numbers, strings, bytes, bools,
            NumPy arrays, tensors, dates, lists, records, and members of enums.
        spec: The spec of the result; then this function is `spec.cast(pyval)`, and `dtype` and
            `row_splits_dtype` must be left out.
        dtype: The dtype of all numbers, or a dict from path to dtype.
        row_splits_dtype: The dtype of the row splits of lists, tf.int64 or tf.int32.
        nulls: What becomes of None and of missing keys: `"error"` (the default), `"mask"` for a
            MaskedTensor, `"empty"` for lists, or `xt.fill(value)`; one for all fields, or a dict by
            path. More in `xt.from_arrow`.
        conflicts: What becomes of a field whose values have different types: `"error"` (the
            default), or `"union"` for a UnionTensor.

    Raises:
        StructureError: If lists and records differ in structure (also a ValueError).
        DTypeError: If a value does not fit a dtype, or records differ in type (also a TypeError).
        NullError: If a value is None or missing, and `nulls` is left out (also a ValueError).
        FieldError: If a record does not have the fields of the spec (also a KeyError).
        FormatError: If a str cannot be encoded as UTF-8 (also a ValueError).

    `to_py` of the result is the data again.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([
    ...     {"title": "Pancakes", "steps": [{"minutes": 5}, {"minutes": 20}]},
    ...     {"title": "Tea", "steps": []}])
    >>> recipes
    <StructuredTensor shape=(2,) {title: string, steps: [*] {minutes: int32}}
     [{title: 'Pancakes', steps: [{minutes: 5}, {minutes: 20}]},
      {title: 'Tea', steps: []}]>
    >>> xt.struct.constant({"title": "Tea", "grams": [2.5, 250]})["grams"].numpy()
    array([  2.5, 250. ], dtype=float32)
    """
    expect_one_of(("error", "union"), conflicts, "constant: conflicts")
    if spec is not None:
        if not isinstance(spec, StructuredTensorSpec):
            expected = "the spec of a StructuredTensor"
            sources = "xt.spec_of(records), xt.spec_from_schema(schema) or xt.struct.spec_from(cls)"
            raise DTypeError("constant: spec", expected, show(spec), f"Get one from {sources}.")
        if dtype is not None:
            expected, fix = "no dtype, because the spec has the dtypes", "Leave one of them out."
            raise DTypeError("constant: dtype", expected, f"both spec= and dtype={dtype!r}", fix)
        return of_spec(pyval, spec, nulls)
    splits = checked_splits_dtype(row_splits_dtype)
    chosen = Dtypes(dtype)
    levels, place, flat = _levels(pyval)
    columns = ColumnConverter(chosen, nulls, conflicts == "union")
    array = infer_array(flat) if dtype is None and set(map(type, flat)) == {dict} else None
    if array is None:
        array = _array(columns, flat, place, nulls) if flat else pa.array([], pa.struct([]))
        chosen.expect_all_used()
    return _build_records(array, levels, columns, splits, _policy(columns, nulls))


@refuse_deep_nesting("constant_value")
def constant_value(
    pyval: object,
    spec: StructuredTensorSpec | None = None,
    dtype: DTypeLike | Mapping[Any, DTypeLike] | None = None,
    row_splits_dtype: DTypeLike = tf.int64,
    nulls: NullsLike | None = None,
    conflicts: str = "error",
) -> StructuredTensorValue:
    """Returns Python data as a StructuredTensorValue: records of NumPy arrays.

    The arguments and errors are those of `xt.struct.constant`.

    >>> import extensor as xt
    >>> xt.struct.constant_value([{"x": 1}, {"x": 2}])["x"]
    array([1, 2], dtype=int32)
    """
    with eagerly():
        records = constant(pyval, spec, dtype, row_splits_dtype, nulls, conflicts)
        return StructuredTensorValue.from_tensor(records)


def arrow_of(
    records: list[Any],
    nulls: NullsLike | None,
    conflicts: str,
    name_of: Callable[[int], str],
    expect_few: ExpectFew | None = None,
) -> pa.StructArray:
    """Returns records as an Arrow array, whose numbers are int64 and float64.

    Args:
        records: Dicts.
        nulls: As in `constant`. A null is a null of the array if `nulls` lets it be one.
        conflicts: As in `constant`.
        name_of: Returns the name of a record from its number, for errors.
        expect_few: As in `ColumnConverter`.
    """
    columns = ColumnConverter(Dtypes(None, wide=True), nulls, conflicts == "union", expect_few)
    place = Place(name_of=name_of).records(np.array([0, len(records)]))
    return _array(columns, records, place, nulls) if records else pa.array([], pa.struct([]))


def _array(
    columns: ColumnConverter, records: list[Any], place: Place, nulls: NullsLike | None
) -> pa.Array:
    """Returns records as an Arrow array. An error for a null lists all fields with nulls."""
    try:
        return columns.array(records, None, place)
    except NullError as error:

        def read(other: NullsLike) -> pa.Array:
            return columns.with_nulls(other).array(records, None, place)

        raise _with_all_nulls(error, nulls, read) from None


def is_data(value: object) -> bool:
    """Returns whether a value is a list, a dict, or an object of a class with fields."""
    return isinstance(value, (list, tuple, Mapping)) or names_of(type(value)) is not None


def of_spec(
    pyval: Any,
    spec: StructuredTensorSpec,
    nulls: NullsLike | None = None,
    path: str = "",
    name_of: Callable[[int], str] | None = None,
    request: CastRequest = STRICT,
) -> StructuredTensor:
    """Returns records of a spec from Python data; see `StructuredTensorSpec.cast`.

    Args:
        pyval: Nested lists of dicts or objects, or one dict of the values of all records.
        spec: The spec.
        nulls: As in `constant`.
        path: The path of the records, for errors.
        name_of: Returns the name of a record of a format from its number, for errors.
        request: What the caller of `cast` asks for.
    """
    if isinstance(pyval, Mapping) and spec.rank:
        return _of_columns(pyval, spec, path, request)
    outer = (path,) if path else ()
    place = Place(path, outer, name_of=name_of)
    wanted: Wanted = wanted_records(spec)
    dtypes = Dtypes(None, rounds=name_of is not None)
    columns = ColumnConverter(dtypes, nulls, unions=False, request=request.inside(*outer))
    flat: list[Any] = [pyval]
    levels: list[_Level] = []
    while isinstance(wanted, WantedLists):
        _expect_lists(flat, place)
        offsets = offsets_of(flat)
        outer, place = place, place.records(offsets)
        size = expect_size(offsets, wanted.size, outer) if wanted.dense else None
        levels.append((size, offsets))
        flat = list(itertools.chain.from_iterable(flat))
        wanted = wanted.items
    made = array_of_type(flat, wanted, place) if nulls is None else None
    if made is None:
        try:
            array = columns.array(flat, wanted, place)
        except NullError as error:
            if name_of is not None:  # a format has an error of its own
                raise
            lenient = columns.with_nulls("empty")
            raise _with_all_nulls_of_spec(
                error, nulls, lenient, lambda each: each.array(flat, wanted, place)
            ) from None
    else:
        array, columns.policies = made
    splits = next(iter(spec._row_splits_dtypes()), tf.int64)
    built = _build_records(array, levels, columns, splits, _policy(columns, nulls))
    return _with_metadata(spec.cast(built), spec)


def _with_metadata(value: Any, spec: Any) -> Any:
    """Returns records with the metadata of a spec, which is not part of its equality."""
    if isinstance(spec, RaggedRowSpec):
        return _with_metadata(value, spec.values_spec)._with_hint(spec)
    if is_masked(value) and records_in(value) is not None:
        return type(value)._of_parts(_with_metadata(value.values, spec.values), value.mask)
    if isinstance(value, RaggedStructuredTensor):
        values = _with_metadata(value.values, spec.values_spec)
        return RaggedStructuredTensor._of_parts(values, value.row_splits, spec._name)
    if not isinstance(value, DenseStructuredTensor):
        return value
    specs = {"": None, **spec.field_specs}
    typed = value._map_parts(lambda part, name: _with_metadata(part, specs[name]))
    typed = typed._with_metadata(spec._metadata.merge(value._metadata))
    return typed if value._hint is None else typed._with_hint(value._hint)


def _policy(columns: ColumnConverter, nulls: NullsLike | None) -> NullsLike | None:
    """Returns the policies of spec and values together with the argument `nulls`."""
    if not columns.policies:
        return nulls
    given: dict[str, Any] = dict(nulls) if isinstance(nulls, Mapping) else {"*": nulls}
    return {**columns.policies, **given}


def _of_columns(
    values: Mapping[str, Any], spec: StructuredTensorSpec, path: str, request: CastRequest
) -> StructuredTensor:
    """Returns records of a dense spec from one dict of the values of all records."""
    names = spec._record.field_specs
    if spec._record is not spec:
        expected = "lists of records, because the records are ragged"
        fix = "Nest one list for each dimension of the records."
        raise StructureError(path or "records", expected, "a dict", fix)
    kept = [name for name in values if name in names or not request.drops(Path(name))]
    if set(names) != set(kept):
        missing = [name for name in names if name not in values]
        raise fields_error(names, kept, missing, path or "records")
    if not names and not spec.shape.is_fully_defined():
        expected = "lists of empty records, which show the number of records"
        fix = "Nest one list for each dimension of the records."
        raise StructureError(path or "records", expected, "an empty dict", fix)
    fields: dict[str, Any] = {}
    for name, each in names.items():
        at = str(Place(path).field(name).text)
        value = values[name]
        if isinstance(each, StructuredTensorSpec) and isinstance(value, (list, tuple, Mapping)):
            fields[name] = of_spec(value, each, path=at, request=request.below(name))
        elif isinstance(each, StructuredTensorSpec) and isinstance(value, StructuredTensor):
            fields[name] = each._cast_as(value, request.below(name))
        else:
            fields[name] = cast_value(each, value, at)
    return spec._with_fields(fields)


_Level = tuple[int | None, Offsets]
"""The size of the lists of a level, None where they are ragged, and their offsets."""


def _levels(pyval: object) -> tuple[list[_Level], Place, list[Any]]:
    """Returns the levels of lists of a collection, the place of the records, and all records."""
    flat: list[Any] = [pyval]
    place = Place()
    levels: list[Offsets] = []
    while True:
        types = set(map(type, flat))
        found = {kind_of(cls, flat) for cls in types - {type(None)}}
        if found != {Kind.LIST} or type(None) in types:
            break
        offsets = offsets_of(flat)
        levels.append(offsets)
        place = place.records(offsets)
        flat = list(itertools.chain.from_iterable(flat))
    if found != {Kind.RECORD} and (flat or not levels):
        for index, value in enumerate(flat):
            is_null_record = value is None and Kind.RECORD in found
            if not is_null_record and (value is None or kind_of_value(value) is not Kind.RECORD):
                at = place.at(index)
                expected = "records: dicts, or objects of a class with fields"
                fix = 'Name the values of a plain list: {"x": values}.'
                if len(found) > 1:
                    fix = "Nest all records in the same number of lists."
                at = "constant" if at == "records" else at
                raise StructureError(at, expected, show(value), fix)
    return _dense_below(levels), place, flat


def _expect_lists(values: list[Any], place: Place) -> None:
    for index, value in enumerate(values):
        if value is None or kind_of_value(value) is not Kind.LIST:
            fix = "Nest one list for each dimension of the records."
            raise StructureError(place.at(index), "a list", show(value), fix)


def _dense_below(levels: list[Offsets]) -> list[_Level]:
    """Returns for each level its size, None where it is ragged, and its offsets.

    As in a RaggedTensor, the dimensions below the last one whose lists differ in length are dense.
    """
    lengths = [np.diff(offsets) for offsets in levels]
    ragged = [axis for axis, each in enumerate(lengths) if (each != each[:1]).any()]
    first_dense = ragged[-1] + 1 if ragged else 0
    sizes = [int(each[0]) if len(each) else 0 for each in lengths]
    return list(zip([None] * first_dense + sizes[first_dense:], levels, strict=True))


def _build_records(
    array: pa.Array,
    levels: list[_Level],
    columns: ColumnConverter,
    splits: tf.DType,
    nulls: NullsLike | None,
) -> StructuredTensor:
    """Returns the records of an Arrow array, with the dimensions of the collection."""
    # Without `nulls`, from_arrow has its own default.
    policy: dict[str, Any] = {} if nulls is None else {"nulls": nulls}
    records: Any = read_records(array, splits, **policy)
    if columns.tensors:
        in_lists = functools.partial(_in_lists_of, splits=splits)
        built = _with_levels(_place(records, columns.tensors, in_lists), levels, splits)
    else:
        with tf.init_scope():
            built = _with_levels(records, levels, splits)
    return _place(built, columns.values, lambda _, value: value) if columns.values else built


def _place(
    value: Any,
    columns: Mapping[tuple[str, ...], Any],
    place: Callable[[Any, Any], Any],
    at: Path = _ROOT,
) -> Any:
    """Returns records with columns in place of placeholders.

    Args:
        value: Records, or a value inside them.
        columns: The column for each placeholder, by the names of its path.
        place: Takes a placeholder and its column, and returns what takes its place.
        at: The path of the value.
    """
    if at.names in columns:
        return place(value, columns[at.names])
    return map_inside(value, lambda part, inner: _place(part, columns, place, inner), at)


def _with_levels(
    records: StructuredTensor, levels: list[_Level], splits: tf.DType
) -> StructuredTensor:
    if not levels:
        return records[0]
    for size, offsets in reversed(levels[1:]):
        if size is not None:
            records = split_outer(records, [len(offsets) - 1, size])
        else:
            row_splits = tf.constant(offsets, splits)
            records = RaggedStructuredTensor._of_parts(records, row_splits)
    return records


def _in_lists_of(value: Any, column: Any, splits: tf.DType) -> Any:
    """Returns a column of all values in the lists of its placeholder.

    Args:
        value: The placeholder.
        column: The values.
        splits: The dtype of row splits.
    """
    if isinstance(column, tf.RaggedTensor) and column.row_splits.dtype != splits:
        column = column.with_row_splits_dtype(splits)
    if isinstance(value, tf.RaggedTensor):
        inner = _in_lists_of(value.values, column, splits)
        return tf.RaggedTensor.from_row_splits(inner, value.row_splits, validate=False)
    sizes = value.shape.as_list()
    for axis in reversed(range(1, len(sizes))):
        column = split_outer(column, [int(np.prod(sizes[:axis])), sizes[axis]])
    return column


def _with_all_nulls(
    error: NullError, nulls: NullsLike | None, read: Callable[[NullsLike], pa.Array]
) -> NullError:
    """Returns the error for a null in Python values, which lists all fields whose nulls are errors.

    Args:
        error: The error for the first null.
        nulls: The argument `nulls`.
        read: Returns the records as an Arrow array, for another argument `nulls`.
    """
    given = by_path(nulls)
    masks = {path: "mask" if is_error(each) else each for path, each in given.items()}
    try:
        array = read({REST: "mask", **masks})
        described = rows_reader(array.type, given)
    except ExtensorError:
        return error  # the values have other faults too
    policies = Nulls(given)
    counts: dict[Any, int] = collections.Counter()
    for each in found_nulls(described, array, Location(Path(), tf.int64)):
        path = each.path if each.is_refused else _union_of(each)
        is_refused = each.is_refused or (path is not None and is_error(policies.chosen(path)))
        if is_refused and each.number:
            counts[path] += each.number
    return with_list(error, nulls, counts)


def _union_of(found: FoundNulls) -> str | None:
    """Returns the path of the union whose nulls these are: under "mask" they are a variant."""
    names = found.location.place[0]
    union = found.location.parent
    if found.described.arrow != pa.null() or names[-1:] != (NULL,) or union is None:
        return None
    return text_of(union.place)


def _with_all_nulls_of_spec(
    error: NullError,
    nulls: NullsLike | None,
    lenient: ColumnConverter,
    read: Callable[[ColumnConverter], pa.Array],
) -> NullError:
    """Returns the error for a null in values of a spec, which lists all fields with such nulls.

    Args:
        error: The error for the first null.
        nulls: The argument `nulls`.
        lenient: A conversion that takes all nulls.
        read: Returns the records as an Arrow array, by a conversion.
    """
    given = {path: each for path, each in by_path(nulls).items() if not is_error(each)}
    replaced = {
        path: each for path, each in given.items() if each == "empty" or not isinstance(each, str)
    }
    try:
        array = read(lenient)
        described = rows_reader(array.type, {**lenient.policies, **replaced})
    except ExtensorError:
        return error  # the values have other faults too
    found = found_nulls(described, array, Location(Path(), tf.int64))
    return not_in_spec(error, given, found, "xt.struct.constant")
