"""Columns of Python values to Arrow arrays, with errors that name path, record and value.

A column holds one Python value for each record. Columns of records become one column for each
field, and columns of lists one column of all items. So every error knows its place.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.natural_type import NUMBERS
from extensor._arrow.null_policy import Fill, Nulls
from extensor._arrow.times_of_text import times_of_text
from extensor._formats.python import kinds, leaves, variants
from extensor._formats.python.dtypes import Dtypes
from extensor._formats.python.objects import as_dict
from extensor._formats.python.place import Place, shown
from extensor._formats.python.unfit import (
    choose_nulls,
    conflict,
    first_of,
    listed_keys,
    no_null,
    other_fields,
    unfit,
    wanted_text,
)
from extensor._formats.python.variants import NULL
from extensor._formats.python.wanted import Cast, Fields, Leaf, Lists, Variants, column_spec
from extensor._path import Path
from extensor._protocol.casting import cast_value
from extensor._struct.cast_request import STRICT, CastRequest
from extensor.errors import (
    DTypeError,
    NullError,
    StructureError,
    UnsupportedTypeError,
)

_INT32 = 2**31 - 1
_ARROW = {dtype: arrow for arrow, dtype in NUMBERS.items()}


class Columns:
    """Converts columns to Arrow arrays.

    Args:
        dtypes: The dtypes that the caller chose.
        nulls: The argument `nulls` of `constant`.
        unions: Whether values of different types become a union.
        expect_few: Raises if records may have too many fields. It gets the number of fields, of
            records, of values of all records, and the path.
        request: What the caller of `cast` asks for.
    """

    def __init__(
        self,
        dtypes: Dtypes,
        nulls: Any,
        unions: bool,
        expect_few: Callable[[int, int, int, str], None] | None = None,
        request: CastRequest = STRICT,
    ) -> None:
        self._dtypes = dtypes
        self._expect_few = expect_few
        self._policies = Nulls(nulls)
        self._nulls = not self._policies.are_errors
        self._unions = unions
        self._request = request
        self.policies: dict[str, str] = {}
        """The policies for nulls that follow from spec and values, by path."""
        self.tensors: list[tuple[tuple[str, ...], Any]] = []
        """The columns that Arrow does not carry, with the names on their path.

        Arrow carries a placeholder of the same length: a column of integers.
        """
        self.values: list[tuple[tuple[str, ...], Any]] = []
        """The same for the fields of a single record, which keep tensors as they are."""

    def under(self, nulls: Any) -> Columns:
        """Returns the same conversion with another argument `nulls`."""
        return Columns(self._dtypes, nulls, self._unions, self._expect_few)

    def array(self, values: Sequence[Any], wanted: Any, place: Place) -> pa.Array:
        """Returns a column as an Arrow array.

        Args:
            values: The column.
            wanted: What the spec wants of it; None to infer it from the values.
            place: Its place.

        Raises:
            StructureError, FieldError, NullError, DTypeError: If a value does not fit.
        """
        types = set(map(type, values))
        values, types = kinds.plain(values, types)
        if dict in types and _is_map(wanted):
            values = [_entries(value) if type(value) is dict else value for value in values]
            types = set(map(type, values))
        has_nulls = type(None) in types
        types.discard(type(None))
        if isinstance(wanted, (Fields, Lists, Leaf)):
            if wanted.nullable:
                self.policies[place.text] = "mask"
            elif place.names and self._policies.chosen(place.text) in ("mask", "auto"):
                self.policies[place.text] = "error"  # the spec says what is masked
        if isinstance(wanted, Cast) and place.is_single:
            value = cast_value(wanted.spec, values[0], place.text)
            return self._placeholder_of_one(value, place)
        if isinstance(wanted, Cast):
            return self._placeholder(self._cast(values, wanted, place), len(values), place)
        if isinstance(wanted, Variants):
            return self._of_variants(values, wanted, place)
        if has_nulls:
            self._expect_no_null(values, types, wanted, place)
        if self._request.reads_times and isinstance(wanted, Leaf) and wanted.is_time:
            texts = [i for i, value in enumerate(values) if isinstance(value, str)]
            if texts:
                return self._with_times(values, texts, wanted, place)
        by_kind = _by_kind(types, values)
        if kinds.TENSOR in by_kind and place.is_single:
            return self._placeholder_of_one(values[0], place)
        if kinds.TENSOR in by_kind:
            return self._placeholder(leaves.stacked(values, place), len(values), place)
        kind = self._one_kind(by_kind, values, wanted, place)
        if wanted is None and self._unions and (kind is None or kind == kinds.LIST):
            names = variants.names_of(list(values), by_kind)
            if kind is None or len({name for name in names if name is not None}) > 1:
                return self._union(values, names, place)
        assert kind is not None  # `_union` made an array of several kinds
        mask = np.fromiter((v is None for v in values), bool, len(values)) if has_nulls else None
        if kind == kinds.RECORD:
            return self._records(values, wanted, place, mask, by_kind[kind] if by_kind else {dict})
        if kind == kinds.LIST:
            return self._lists(values, wanted, place, mask)
        assert kind is not None
        return self._leaf(values, types, kind, wanted, place)

    def _one_kind(
        self, by_kind: dict[str, Any], values: Any, wanted: Any, place: Place
    ) -> str | None:
        """Returns the kind of a column; None for a union."""
        if wanted is not None:
            expected = _wanted_kind(wanted, by_kind)
            arrow = wanted.arrow if isinstance(wanted, Leaf) else None
            for found, types in by_kind.items():
                if expected != found and not (
                    arrow is not None and (found == kinds.NUMBER or kinds.converts(found, arrow))
                ):
                    index = first_of(values, types)
                    raise unfit(values[index], wanted, place.at(index))
            return next(iter(by_kind), expected)
        if len(by_kind) > 1:
            if self._unions:
                return None
            raise conflict(values, list(by_kind.values()), place, self._dtypes.wide)
        return next(iter(by_kind), "null")

    def _expect_no_null(self, values: Any, types: set[type], wanted: Any, place: Place) -> None:
        if wanted is None and self._nulls:
            return
        if wanted is not None and (wanted.nullable or self._fills(place)):
            return
        index = next(i for i, value in enumerate(values) if value is None)
        if wanted is not None:
            fix = "Replace the null, or describe the field by the spec of a MaskedTensor."
            raise NullError(place.at(index), wanted_text(wanted), "null", fix)
        raise no_null(index, values, place)

    def _fills(self, place: Place) -> bool:
        """Returns whether nulls get a value at a place."""
        return self._policies.chosen(place.text) not in ("error", "mask", "auto")

    # Records.

    def _records(
        self, values: Any, wanted: Any, place: Place, mask: Any, types: set[type]
    ) -> pa.Array:
        plain = values if types == {dict} else [v if v is None else as_dict(v) for v in values]
        present: Any = plain if mask is None else [v for v in plain if v is not None]
        if isinstance(wanted, Fields):
            names: Any = list(wanted.fields)
            inner: Any = list(wanted.fields.values())
        else:
            names = list(dict.fromkeys(itertools.chain.from_iterable(present)))
            inner = [None] * len(names)
            self._expect_strings(names, plain, place)
            if self._expect_few is not None:
                self._expect_few(len(names), len(present), sum(map(len, present)), place.text)
        self._expect_fields(plain, present, names, wanted, place)
        arrays: list[pa.Array] = []
        for name, each in zip(names, inner, strict=True):
            column = [None if v is None else v.get(name) for v in plain]
            if mask is not None:
                arrays.append(self._below_null(column, mask, each, place.field(name)))
            else:
                arrays.append(self.array(column, each, place.field(name)))
        return struct_array(names, arrays, len(values), mask)

    def _below_null(self, column: list[Any], mask: Any, wanted: Any, place: Place) -> pa.Array:
        """Returns a field of records of which some are null: there, the field is null too."""
        kept = copy.copy(self)
        kept.tensors, kept.values = [], []
        indices = np.flatnonzero(~mask)
        at = place.chosen(indices)
        found = kept.array([column[i] for i in indices.tolist()], wanted, at)
        if kept.tensors or kept.values:
            expected = "Python values, because some of the records are null"
            fix = "Convert the tensors first, with numpy() or to_list()."
            raise UnsupportedTypeError(place.text, expected, "tensors", fix)
        taken = np.cumsum(~mask) - 1
        return found.take(pa.array(taken, pa.int64(), mask=mask))

    def _expect_strings(self, names: list[Any], values: Any, place: Place) -> None:
        for name in names:
            if not isinstance(name, str):
                index = next(i for i, v in enumerate(values) if v is not None and name in v)
                expected = "keys of type str, the names of fields"
                fix = "Write data with other keys as a list of records with key and value."
                raise DTypeError(place.at(index), expected, f"the key {shown(name)}", fix)

    def _expect_fields(
        self, values: Any, present: Any, names: list[str], wanted: Any, place: Place
    ) -> None:
        """Raises for records that lack a field, or have one that is not wanted."""
        known = frozenset(names)
        odd = {keys for keys in set(map(frozenset, present)) if keys != known}
        if not odd:
            return
        if wanted is not None:
            for index, value in enumerate(values):
                if value is not None and frozenset(value) in odd:
                    self._expect_wanted(value, wanted, place, index)
        elif not self._nulls:
            lacking = next(i for i, v in enumerate(values) if v is not None and known - set(v))
            missing = next(name for name in names if name not in values[lacking])
            having = next(i for i, v in enumerate(values) if v is not None and missing in v)
            other = place.record(having)
            whose = "another item" if other == place.record(lacking) else other
            example = values[having][missing]
            count = sum(missing not in value for value in present)
            at = place.field(missing)
            raise NullError(
                at.at(lacking),
                f"a value, as {whose} has ({shown(example)})",
                f"a record with {listed_keys(values[lacking])}"
                + (f", the first of {count} without the key" if count > 1 else "")
                + f"; {whose} has {listed_keys(values[having])}",
                "Give all records the same keys. A missing key is a null. " + choose_nulls(at),
            )

    def _expect_wanted(self, value: Any, wanted: Any, place: Place, index: int) -> None:
        kept = [
            name
            for name in value
            if name in wanted.fields or not self._request.drops(Path(*place.names, str(name)))
        ]
        missing = [
            name
            for name, each in wanted.fields.items()
            if name not in value and not (each.nullable or self._fills(place.field(name)))
        ]
        if missing or not wanted.fields.keys() >= set(kept):
            raise other_fields(wanted.fields, kept, missing, place.at(index))

    # Lists.

    def _lists(self, values: Any, wanted: Any, place: Place, mask: Any) -> pa.Array:
        lists = values if mask is None else [() if v is None else v for v in values]
        offsets = offsets_of(lists)
        items: list[Any] = list(itertools.chain.from_iterable(lists))
        inner = None
        if isinstance(wanted, Lists):
            inner = wanted.items
            if wanted.dense and mask is None:
                size = expect_size(offsets, wanted.size, place)
                column = self.array(items, inner, place.items(offsets))
                made = pa.list_(column.type, size)
                return pa.Array.from_buffers(made, len(values), [None], children=[column])
        column = self.array(items, inner, place.items(offsets))
        large = int(offsets[-1]) > _INT32
        made = pa.large_list(column.type) if large else pa.list_(column.type)
        buffer = pa.py_buffer(offsets if large else offsets.astype(np.int32))
        return pa.Array.from_buffers(
            made, len(values), [_validity(mask), buffer], children=[column]
        )

    # Leaves.

    def _leaf(
        self, values: Any, types: set[type], kind: str, wanted: Any, place: Place
    ) -> pa.Array:
        if kind == "null" and self._dtypes.wide:
            return pa.nulls(len(values))
        if kind == "null":
            dtype = self._dtypes.of_numbers(place.text, set()) or tf.float32
            return pa.nulls(len(values)).cast(_arrow(dtype))
        if isinstance(wanted, Leaf):
            dtype = wanted.dtype
            if wanted.arrow is not None and kinds.converts(kind, wanted.arrow):
                return leaves.of_type(values, wanted.arrow, place)
        else:
            dtype = self._dtypes.of(kind, types, values, place)
        if kind == kinds.STRING and _is_uuid(wanted) and str in types:
            return leaves.uuids(values, place)
        if kind == kinds.STRING:
            return leaves.strings(values, types, place)
        if kind == kinds.BOOL:
            return pa.array(values, pa.bool_())
        if kind not in (kinds.BOOL, kinds.NUMBER) or dtype is None:
            if isinstance(wanted, Leaf):
                index = next(i for i, value in enumerate(values) if value is not None)
                raise unfit(values[index], wanted, place.at(index))
            return leaves.by_arrow(values, place)
        return self._numbers(values, dtype, wanted, place)

    def _numbers(self, values: Any, dtype: tf.DType, wanted: Any, place: Place) -> pa.Array:
        mask = None
        if None in values if not isinstance(values, np.ndarray) else False:
            mask = np.fromiter((v is None for v in values), bool, len(values))
            values = [0 if v is None else v for v in values]
        arrow = _arrow_or_none(dtype)
        if arrow is None:  # complex, bfloat16 and others, which Arrow does not have
            tensor = leaves.converted(values, dtype, place)
            return self._placeholder(tensor, len(values), place)
        array = self._dtypes.array(values, dtype, place, wanted is not None)
        return pa.array(array, arrow, mask=mask)

    def _with_times(self, values: Any, texts: list[int], wanted: Leaf, place: Place) -> pa.Array:
        """Returns a column of times, of which some are text."""
        written = leaves.strings([values[i] for i in texts], {str}, place.chosen(texts))
        made = times_of_text(written, wanted.arrow, place.chosen(texts).at)
        others = [i for i, value in enumerate(values) if not isinstance(value, str)]
        if not others:
            return made
        rest = self.array([values[i] for i in others], wanted, place.chosen(others))
        order = np.argsort([*texts, *others])
        return pa.concat_arrays([made, rest.cast(made.type)]).take(pa.array(order))

    # Tensors, and values that a spec casts.

    def _placeholder(self, tensor: Any, count: int, place: Place) -> pa.Array:
        self.tensors.append((place.names, tensor))
        return pa.array(np.arange(count))

    def _placeholder_of_one(self, value: Any, place: Place) -> pa.Array:
        self.values.append((place.names, value))
        return pa.array([0])

    def _cast(self, values: Any, wanted: Cast, place: Place) -> Any:
        return cast_value(column_spec(wanted, len(values)), list(values), place.text)

    # Unions.

    def _union(self, values: Any, names: list[str | None], place: Place) -> pa.Array:
        """Returns values of different kinds as a dense union, one child for each kind."""
        policy = self._policies.chosen(place.text)
        filled = policy.value if isinstance(policy, Fill) else [] if policy == "empty" else None
        order = [name for name in dict.fromkeys(names) if name is not None]
        if policy == "mask" or (policy == "auto" and None in names):
            names = [NULL if name is None else name for name in names]
            order.append(NULL)
        elif None in names and filled is not None:
            # A null belongs to the variant of the value that replaces it.
            values = [filled if value is None else value for value in values]
            types = set(map(type, values))
            found = variants.names_of(values, _by_kind(types, values))
            if set(found) <= set(order):
                names = found
        if None in names:
            raise no_null(names.index(None), values, place)
        return self._dense_union(values, names, dict.fromkeys(order), place)

    def _of_variants(self, values: Any, wanted: Variants, place: Place) -> pa.Array:
        names = [variants.variant_of(value, wanted.variants) for value in values]
        if None in names:
            index = names.index(None)
            expected = f"a value of one of the variants {', '.join(wanted.variants)}"
            fix = "Add a variant to the spec."
            raise DTypeError(place.at(index), expected, shown(values[index]), fix)
        return self._dense_union(values, names, wanted.variants, place)

    def _dense_union(
        self, values: Any, names: list[str | None], wanted: Mapping[str, Any], place: Place
    ) -> pa.Array:
        numbers = {name: code for code, name in enumerate(wanted)}
        codes = np.fromiter((numbers[str(name)] for name in names), np.int8, len(names))
        offsets = np.zeros(len(names), np.int32)
        children: list[pa.Array] = []
        for code, (name, each) in enumerate(wanted.items()):
            indices = np.flatnonzero(codes == code)
            offsets[indices] = np.arange(len(indices))
            if name == NULL and (each is None or each == Leaf(tf.float32, nullable=True)):
                children.append(pa.nulls(len(indices)))
                continue
            at = place.field(name).chosen(indices)
            children.append(self.array([values[i] for i in indices.tolist()], each, at))
        return pa.UnionArray.from_dense(pa.array(codes), pa.array(offsets), children, list(wanted))


def struct_array(names: list[str], columns: list[Any], count: int, mask: Any = None) -> pa.Array:
    """Returns an array of structs, also without fields.

    Args:
        names: The names of the fields.
        columns: Their columns.
        count: The number of structs.
        mask: True for each null; None for no nulls.
    """
    fields = [pa.field(n, column.type) for n, column in zip(names, columns, strict=True)]
    return pa.Array.from_buffers(pa.struct(fields), count, [_validity(mask)], children=columns)


def offsets_of(lists: Any) -> np.ndarray[Any, Any]:
    """Returns where the items of each list begin in the list of all items, and their number."""
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=offsets[1:])
    return offsets


def expect_size(offsets: Any, size: int | None, place: Place) -> int:
    """Returns the length of all lists, which must have one length: `size`, unless that is None.

    Raises:
        StructureError: If a list has another length (also a ValueError).
    """
    lengths = np.diff(offsets)
    fixed = size is not None
    if size is None:
        size = int(lengths[0]) if len(lengths) else 0
    wrong = lengths != size
    if wrong.any():
        index = int(np.argmax(wrong))
        raise StructureError(
            place.at(index),
            f"a list of {size}"
            + (
                ""
                if fixed
                else f", as {place.record(0)} has"
                if place.record(0)
                else ", like the first"
            ),
            f"a list of {lengths[index]}",
            "Pad or cut the lists to one length, or use a spec of ragged lists."
            if not place.is_root
            else "Leave the number of records open: spec.unstacked().stacked(None).",
        )
    return size


def _validity(mask: Any) -> Any:
    return None if mask is None else pa.array(~mask).buffers()[1]


def _by_kind(types: set[type], values: Any) -> dict[str, set[type]]:
    by_kind: dict[str, set[type]] = {}
    for cls in types - {type(None)}:
        by_kind.setdefault(kinds.kind_of(cls, values), set()).add(cls)
    return by_kind


def _wanted_kind(wanted: Any, by_kind: Any) -> str:
    if isinstance(wanted, Fields):
        return kinds.RECORD
    if isinstance(wanted, Lists):
        return kinds.LIST
    measure = None if wanted.arrow is None else kinds.of_arrow(wanted.arrow)
    if measure is not None and measure in by_kind:  # a time or a UUID as an object
        return measure
    if wanted.dtype == tf.string:
        return kinds.STRING
    return kinds.BOOL if wanted.dtype == tf.bool else kinds.NUMBER


def _is_uuid(wanted: Any) -> bool:
    arrow = wanted.arrow if isinstance(wanted, Leaf) else None
    return arrow is not None and kinds.of_arrow(arrow) == kinds.UUID


def _is_map(wanted: Any) -> bool:
    """Returns whether lists of records of a key and a value are wanted, as of a map."""
    return (
        isinstance(wanted, Lists)
        and isinstance(wanted.items, Fields)
        and set(wanted.items.fields) == {"key", "value"}
    )


def _entries(map_: Mapping[Any, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in map_.items()]


def _arrow_or_none(dtype: tf.DType) -> Any:
    return _ARROW.get(dtype)


def _arrow(dtype: tf.DType) -> pa.DataType:
    return _ARROW.get(dtype) or pa.float32()
