"""Columns of Python values to Arrow arrays, with errors that name path, record and value.

A column holds one Python value for each record. Columns of records become one column for each
field, and columns of lists one column of all items. So every error knows its place.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.natural_type import NATURAL_NUMBERS
from extensor._arrow.null_policy import Fill, Nulls
from extensor._arrow.times_of_text import times_of_text
from extensor._authoring.rows import stack_rows
from extensor._formats.python import leaves
from extensor._formats.python.dtypes import Dtypes
from extensor._formats.python.kinds import Kind, converts, kind_of, kind_of_arrow, plain
from extensor._formats.python.objects import as_dict
from extensor._formats.python.place import Offsets, Place, show
from extensor._formats.python.unfit import (
    conflict_error,
    fields_error,
    first_of,
    kind_error,
    missing_key_error,
    null_error,
)
from extensor._formats.python.variants import NULL, variant_names, variant_of
from extensor._formats.python.wanted import Cast, Fields, Leaf, Variants, Wanted, WantedLists
from extensor._path import Path
from extensor._protocol.casting import cast_value
from extensor._protocol.stackable_spec import stacks_by_components
from extensor._struct.cast_request import STRICT, CastRequest
from extensor._struct.masked import is_masked
from extensor._tf import stacked
from extensor._typing import NullsLike
from extensor.errors import DTypeError, NullError, StructureError, UnsupportedTypeError

_INT32 = 2**31 - 1

Values = Sequence[Any]
"""A column: a list of Python values, or a NumPy array."""

Mask = np.ndarray[Any, Any]
"""True for each null of a column."""

ExpectFew = Callable[[int, int, int, str], None]
"""Raises if records may have too many fields.

It gets the number of fields, of records, of values of all records, and the path.
"""


class ColumnConverter:
    """Converts columns to Arrow arrays.

    Args:
        dtypes: The dtypes that the caller chose.
        nulls: The argument `nulls` of `constant`.
        unions: Whether values of different types become a union.
        expect_few: Is called for records whose fields are not known.
        request: What the caller of `cast` asks for.
    """

    def __init__(
        self,
        dtypes: Dtypes,
        nulls: NullsLike | None,
        unions: bool,
        expect_few: ExpectFew | None = None,
        request: CastRequest = STRICT,
    ) -> None:
        self._dtypes = dtypes
        self._expect_few = expect_few
        self._policies = Nulls(nulls)
        self._unions = unions
        self._request = request
        self.policies: dict[str, str] = {}
        """The policies for nulls that follow from spec and values, by path."""
        self.tensors: dict[tuple[str, ...], Any] = {}
        """The columns that Arrow does not carry, by the names on their path.

        Arrow carries a placeholder of the same length: a column of integers.
        """
        self.values: dict[tuple[str, ...], Any] = {}
        """The same for the fields of a single record, which keep tensors as they are."""

    def with_nulls(self, nulls: NullsLike) -> ColumnConverter:
        """Returns the same conversion with another argument `nulls`."""
        return ColumnConverter(self._dtypes, nulls, self._unions, self._expect_few, self._request)

    def array(self, values: Values, wanted: Wanted | None, place: Place) -> pa.Array:
        """Returns a column as an Arrow array.

        Args:
            values: The column.
            wanted: What the spec wants of it; None to infer it from the values.
            place: Its place.

        Raises:
            StructureError, FieldError, NullError, DTypeError: If a value does not fit.
        """
        values, types = plain(values, set(map(type, values)))
        if isinstance(wanted, Cast):
            return self._tensors(values, wanted, place)
        if isinstance(wanted, Variants):
            return self._of_variants(values, wanted, place)
        if _is_map(wanted):
            values = [_entries(value) for value in values]
            types = set(map(type, values))
        has_nulls = type(None) in types
        types.discard(type(None))
        if wanted is not None:
            self._add_policy(wanted, place)
        if has_nulls:
            self._expect_no_null(values, wanted, place)
        if self._request.reads_times and isinstance(wanted, Leaf) and wanted.is_time:
            texts = [i for i, value in enumerate(values) if isinstance(value, str)]
            if texts:
                return self._with_times(values, texts, wanted, place)
        by_kind = _by_kind(types, values)
        if Kind.TENSOR in by_kind:
            return self._tensors(values, None, place)
        kind = self._one_kind(by_kind, values, wanted, place)
        if wanted is None and self._unions and kind in (None, Kind.LIST):
            names = variant_names(values, by_kind)
            if kind is None or len(set(names) - {None}) > 1:
                return self._union(values, names, place)
        assert kind is not None  # `_union` made an array of several kinds
        mask = np.fromiter((v is None for v in values), bool, len(values)) if has_nulls else None
        if kind is Kind.RECORD:
            return self._records(values, types, wanted, place, mask)
        if kind is Kind.LIST:
            return self._lists(values, wanted, place, mask)
        return self._leaf(values, types, kind, wanted, place)

    def _add_policy(self, wanted: Wanted, place: Place) -> None:
        """Adds the policy for nulls that follows from what is wanted."""
        if wanted.nullable:
            self.policies[place.text] = "mask"
        elif place.names and self._policies.chosen(place.text) in ("mask", "auto"):
            self.policies[place.text] = "error"  # the spec says what is masked

    def _one_kind(
        self,
        by_kind: dict[Kind, set[type]],
        values: Values,
        wanted: Fields | WantedLists | Leaf | None,
        place: Place,
    ) -> Kind | None:
        """Returns the kind of a column; None for a union."""
        if wanted is None:
            if len(by_kind) < 2:
                return next(iter(by_kind), Kind.NULL)
            if self._unions:
                return None
            raise conflict_error(values, by_kind.values(), place, self._dtypes.wide)
        expected = _wanted_kind(wanted, by_kind)
        arrow = wanted.arrow if isinstance(wanted, Leaf) else None
        for found, types in by_kind.items():
            is_number = found is Kind.NUMBER and arrow is not None
            if found is not expected and not is_number and not converts(found, arrow):
                index = first_of(values, types)
                raise kind_error(values[index], wanted, place.at(index))
        return next(iter(by_kind), expected)

    def _expect_no_null(
        self, values: Values, wanted: Fields | WantedLists | Leaf | None, place: Place
    ) -> None:
        if wanted is None and not self._policies.are_errors:
            return
        if wanted is not None and (wanted.nullable or self._replaces_nulls(place)):
            return
        index = first_of(values, {type(None)})
        if wanted is None:
            raise null_error(index, values, place)
        fix = "Replace the null, or describe the field by the spec of a MaskedTensor."
        raise NullError(place.at(index), wanted.text, "null", fix)

    def _replaces_nulls(self, place: Place) -> bool:
        """Returns whether nulls get a value at a place."""
        return self._policies.chosen(place.text) not in ("error", "mask", "auto")

    # Records.

    def _records(
        self,
        values: Values,
        types: set[type],
        wanted: Wanted | None,
        place: Place,
        mask: Mask | None,
    ) -> pa.Array:
        records = values if types == {dict} else [v if v is None else as_dict(v) for v in values]
        present: Values = records if mask is None else [v for v in records if v is not None]
        if isinstance(wanted, Fields):
            inner: Mapping[str, Wanted | None] = wanted.fields
        else:
            inner = dict.fromkeys(itertools.chain.from_iterable(present))
            self._expect_strings(inner, records, place)
            if self._expect_few is not None:
                self._expect_few(len(inner), len(present), sum(map(len, present)), place.text)
        self._expect_fields(records, present, list(inner), wanted, place)
        arrays: list[pa.Array] = []
        for name, each in inner.items():
            column = [None if v is None else v.get(name) for v in records]
            if mask is not None:
                arrays.append(self._below_null(column, mask, each, place.field(name)))
            else:
                arrays.append(self.array(column, each, place.field(name)))
        fields = [pa.field(name, array.type) for name, array in zip(inner, arrays, strict=True)]
        arrow, buffers = pa.struct(fields), [_validity(mask)]
        return pa.Array.from_buffers(arrow, len(values), buffers, children=arrays)

    def _below_null(
        self, column: Values, mask: Mask, wanted: Wanted | None, place: Place
    ) -> pa.Array:
        """Returns values, with nulls where they, or the records around them, are null."""
        inner = copy.copy(self)
        inner.tensors, inner.values = {}, {}
        indices = np.flatnonzero(~mask)
        found = inner.array([column[i] for i in indices.tolist()], wanted, place.chosen(indices))
        if inner.tensors or inner.values:
            expected = "Python values, because some of the records are null"
            fix = "Convert the tensors first, with numpy() or to_list()."
            raise UnsupportedTypeError(place.text, expected, "tensors", fix)
        rows = np.cumsum(~mask) - 1
        return found.take(pa.array(rows, pa.int64(), mask=mask))

    def _expect_strings(self, names: Mapping[Any, object], records: Values, place: Place) -> None:
        for name in names:
            if not isinstance(name, str):
                index = next(i for i, v in enumerate(records) if v is not None and name in v)
                expected = "keys of type str, the names of fields"
                fix = "Write data with other keys as a list of records with key and value."
                raise DTypeError(place.at(index), expected, f"the key {show(name)}", fix)

    def _expect_fields(
        self,
        records: Values,
        present: Values,
        names: list[str],
        wanted: Wanted | None,
        place: Place,
    ) -> None:
        """Raises for records that lack a field, or have one that is not wanted."""
        known = frozenset(names)
        odd = {keys for keys in set(map(frozenset, present)) if keys != known}
        if odd and isinstance(wanted, Fields):
            for index, record in enumerate(records):
                if record is not None and frozenset(record) in odd:
                    self._expect_wanted(record, wanted.fields, place, index)
        elif odd and self._policies.are_errors:
            raise missing_key_error(records, names, place)

    def _expect_wanted(
        self, record: Mapping[str, Any], fields: Mapping[str, Wanted], place: Place, index: int
    ) -> None:
        drops = self._request.drops
        kept = [n for n in record if n in fields or not drops(Path(*place.names, str(n)))]
        missing = [
            name
            for name, each in fields.items()
            if name not in record and not (each.nullable or self._replaces_nulls(place.field(name)))
        ]
        if missing or not fields.keys() >= set(kept):
            raise fields_error(fields, kept, missing, place.at(index))

    # Lists.

    def _lists(
        self, values: Values, wanted: Wanted | None, place: Place, mask: Mask | None
    ) -> pa.Array:
        is_dense = isinstance(wanted, WantedLists) and (wanted.dense or wanted.size is not None)
        if is_dense and mask is not None:  # a null list has as many items as the others
            return self._below_null(values, mask, wanted, place)
        lists = values if mask is None else [() if v is None else v for v in values]
        offsets = offsets_of(lists)
        items = list(itertools.chain.from_iterable(lists))
        inner = wanted.items if isinstance(wanted, WantedLists) else None
        if isinstance(wanted, WantedLists) and is_dense:
            size = expect_size(offsets, wanted.size, place)
            column = self.array(items, inner, place.items(offsets))
            arrow, buffers = pa.list_(column.type, size), [None]
        else:
            column = self.array(items, inner, place.items(offsets))
            is_large = int(offsets[-1]) > _INT32
            arrow = pa.large_list(column.type) if is_large else pa.list_(column.type)
            splits = pa.py_buffer(offsets if is_large else offsets.astype(np.int32))
            buffers = [_validity(mask), splits]
        return pa.Array.from_buffers(arrow, len(values), buffers, children=[column])

    # Leaves.

    def _leaf(
        self, values: Values, types: set[type], kind: Kind, wanted: Wanted | None, place: Place
    ) -> pa.Array:
        if kind is Kind.NULL:
            if self._dtypes.wide:
                return pa.nulls(len(values))
            dtype = self._dtypes.chosen(place)
            return pa.nulls(len(values), NATURAL_NUMBERS.get(dtype, pa.float32()))
        if not isinstance(wanted, Leaf):
            dtype = self._dtypes.column_dtype(kind, types, values, place)
        elif converts(kind, wanted.arrow):
            return leaves.times_or_decimals(values, wanted.arrow, place)
        else:
            dtype = wanted.dtype
        if kind is Kind.STRING:
            is_uuid = isinstance(wanted, Leaf) and kind_of_arrow(wanted.arrow) is Kind.UUID
            if is_uuid and str in types:
                return leaves.uuids(values, place)
            return leaves.strings(values, types, place)
        if kind is Kind.BOOL:
            return pa.array(values, pa.bool_())
        if kind is Kind.NUMBER:
            return self._numbers(values, dtype, wanted is not None, place)
        if isinstance(wanted, Leaf):
            index = next(i for i, value in enumerate(values) if value is not None)
            raise kind_error(values[index], wanted, place.at(index))
        return leaves.by_arrow(values, place)

    def _numbers(self, values: Values, dtype: tf.DType, is_of_spec: bool, place: Place) -> pa.Array:
        mask = None
        if not isinstance(values, np.ndarray) and None in values:
            mask = np.fromiter((v is None for v in values), bool, len(values))
            values = [0 if v is None else v for v in values]
        arrow = NATURAL_NUMBERS.get(dtype)
        if arrow is None:  # complex, bfloat16 and others, which Arrow does not have
            tensor = leaves.tensor_of_numbers(values, dtype, place)
            return self._placeholder(tensor, len(values), place)
        array = self._dtypes.array(values, dtype, place, is_of_spec)
        return pa.array(array, arrow, mask=mask)

    def _with_times(self, values: Values, texts: list[int], wanted: Leaf, place: Place) -> pa.Array:
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

    def _tensors(self, values: Values, wanted: Cast | None, place: Place) -> pa.Array:
        """Returns the placeholder of tensors, or of values that a spec casts."""
        if place.is_single:
            one = values[0]
            one = one if wanted is None else cast_value(wanted.spec, one, place.text)
            self.values[place.names] = one
            return pa.array([0])
        if wanted is None:
            column = leaves.stacked_tensors(values, place)
        else:
            column = self._cast(values, wanted.spec, place)
        return self._placeholder(column, len(values), place)

    def _cast(self, values: Values, spec: tf.TypeSpec, place: Place) -> Any:
        """Returns the values of a column as a spec of one value casts them."""
        if not len(values):
            return _without_rows(stacked(spec, 0))
        if stacks_by_components(spec) and not is_masked(spec) and all(
            isinstance(value, (Mapping, spec.value_type)) for value in values
        ):  # fmt: skip
            rows = [cast_value(spec, value, place.at(i)) for i, value in enumerate(values)]
            return stack_rows(rows)
        return cast_value(stacked(spec, len(values)), list(values), place.text)

    def _placeholder(self, column: Any, count: int, place: Place) -> pa.Array:
        self.tensors[place.names] = column
        return pa.array(np.arange(count))

    # Unions.

    def _union(self, values: Values, names: list[str | None], place: Place) -> pa.Array:
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
            found = variant_names(values, _by_kind(set(map(type, values)), values))
            if set(found) <= set(order):
                names = found
        if None in names:
            raise null_error(names.index(None), values, place)
        return self._dense_union(values, names, dict.fromkeys(order), place)

    def _of_variants(self, values: Values, wanted: Variants, place: Place) -> pa.Array:
        names = [variant_of(value, wanted) for value in values]
        if None in names:
            index = names.index(None)
            expected = f"a value of one of the variants {', '.join(wanted.variants)}"
            fix = "Add a variant to the spec."
            raise DTypeError(place.at(index), expected, show(values[index]), fix)
        return self._dense_union(values, names, wanted.variants, place)

    def _dense_union(
        self,
        values: Values,
        names: list[str | None],
        wanted: Mapping[str, Wanted | None],
        place: Place,
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


def _without_rows(spec: Any) -> Any:
    """Returns the value of a spec of no rows."""
    if stacks_by_components(spec) and not is_masked(spec):
        return spec.from_components(tf.nest.map_structure(_without_rows, spec.component_specs))
    return cast_value(spec, [])


def offsets_of(lists: Sequence[Sized]) -> Offsets:
    """Returns where the items of each list begin in the list of all items, and their number."""
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=offsets[1:])
    return offsets


def expect_size(offsets: Offsets, size: int | None, place: Place) -> int:
    """Returns the length of all lists, which must have one length: `size`, unless that is None.

    Raises:
        StructureError: If a list has another length (also a ValueError).
    """
    lengths = np.diff(offsets)
    is_given = size is not None
    if size is None:
        size = int(lengths[0]) if len(lengths) else 0
    wrong = lengths != size
    if wrong.any():
        index = int(np.argmax(wrong))
        like = f", as {place.record(0)} has" if place.record(0) else ", like the first"
        expected = f"a list of {size}" if is_given else f"a list of {size}{like}"
        fix = "Pad or cut the lists to one length, or use a spec of ragged lists."
        if place.is_root:
            fix = "Leave the number of records open: spec.unstacked().stacked(None)."
        raise StructureError(place.at(index), expected, f"a list of {lengths[index]}", fix)
    return size


def _validity(mask: Mask | None) -> pa.Buffer | None:
    return None if mask is None else pa.array(~mask).buffers()[1]


def _by_kind(types: set[type], values: Values) -> dict[Kind, set[type]]:
    by_kind: dict[Kind, set[type]] = {}
    for cls in types - {type(None)}:
        by_kind.setdefault(kind_of(cls, values), set()).add(cls)
    return by_kind


def _wanted_kind(wanted: Fields | WantedLists | Leaf, found: Mapping[Kind, object]) -> Kind:
    if isinstance(wanted, Fields):
        return Kind.RECORD
    if isinstance(wanted, WantedLists):
        return Kind.LIST
    own = kind_of_arrow(wanted.arrow)
    if own is not None and own in found:  # a time or a UUID as an object
        return own
    return {tf.string: Kind.STRING, tf.bool: Kind.BOOL}.get(wanted.dtype, Kind.NUMBER)


def _is_map(wanted: Wanted | None) -> bool:
    """Returns whether lists of records of a key and a value are wanted, as of a map."""
    return (
        isinstance(wanted, WantedLists)
        and isinstance(wanted.items, Fields)
        and set(wanted.items.fields) == {"key", "value"}
    )


def _entries(value: Any) -> Any:
    """Returns a dict, or pairs as Arrow has them of a map, as records of a key and a value."""
    is_pairs = type(value) is list and all(type(x) is tuple and len(x) == 2 for x in value)
    pairs = value if is_pairs else value.items() if type(value) is dict else None
    return value if pairs is None else [{"key": key, "value": each} for key, each in pairs]
