"""Dense and sparse unions, which become UnionTensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import inner_fields, invalid, names_of
from extensor._arrow.column_type import ColumnType, Inner
from extensor._arrow.flat_types import NullType
from extensor._arrow.location import Location
from extensor._arrow.null_policy import Fill, variant_of_nulls
from extensor._arrow.nullable_type import NullableType, array_of_one
from extensor._arrow.nulls import nulls_of
from extensor._arrow.selection import expect_selectable, take_places
from extensor._count_text import count_text
from extensor._memory import array_over
from extensor._path import Path
from extensor._struct.masked import is_union
from extensor._typing import FieldValue
from extensor.errors import FieldError


class UnionType(ColumnType):
    """A union, dense or sparse. Rows that no code points to are not read.

    Args:
        arrow: The Arrow type.
        variants: The type of each variant, in the order of the codes of a UnionTensor.
        target: The number of the variant that the nulls of all variants are read into, and an array
            of the value in their place. Nulls of a variant with a policy of its own stay there.
        policy: The policy for nulls in this variant.
    """

    def __init__(
        self,
        arrow: pa.DataType,
        variants: dict[str, ColumnType],
        target: tuple[int, pa.Array] | None = None,
        policy: object = "error",
    ) -> None:
        super().__init__(arrow)
        self._target = target
        self.policy = policy
        self.variants = variants
        self.copies_strings = any(inner.copies_strings for inner in variants.values())
        self._is_dense = arrow.mode == "dense"

    @classmethod
    def from_arrow_type(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType]
    ) -> UnionType:
        """Returns the type."""
        fields = inner_fields(arrow)
        names = names_of(fields, path)
        types = [inner_type(f.type, path / n) for n, f in zip(names, fields, strict=True)]
        # A variant of nulls alone is no error.
        types = [NullableType(t, "mask") if isinstance(t, NullType) else t for t in types]
        return cls(arrow, dict(zip(names, types, strict=True)))

    def with_nulls(self, policy: object) -> UnionType:
        """Returns the type with a policy for the nulls of variants that have none."""
        number = variant_of_nulls(policy, self.arrow)
        if number is None:
            return self
        arrow = self.arrow.field(number).type
        is_fill = isinstance(policy, Fill)
        value = array_of_one(policy.value, arrow) if is_fill else nulls_of(arrow, 1)
        return UnionType(self.arrow, self.variants, (number, value), policy)

    def spec(self, count: int | None, location: Location) -> tf.TypeSpec:
        """Returns the spec of a UnionTensor."""
        # Imported here, because `import extensor` stays fast without the module.
        from extensor._types.union.value import UnionTensor

        variants = {n: t.spec(None, location.field(n)) for n, t in self.variants.items()}
        return UnionTensor.Spec(variants, [count])

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks codes, offsets and the variants too."""
        super().check(array, path)
        positions = self._positions(array, path)
        if positions.size and positions.min() < 0:
            first = int(np.argmax(positions < 0))
            raise invalid(
                path,
                f"type codes {', '.join(map(str, self.arrow.type_codes))}",
                f"code {self._codes(array, path)[first]} in record {first}",
            )
        offsets = self._offsets(array, path) if self._is_dense else None
        for i, (name, inner) in enumerate(self.variants.items()):
            rows = array.field(i)
            if offsets is not None:
                own = offsets[positions == i]
                if own.size and (own.min() < 0 or own.max() >= len(rows)):
                    raise invalid(
                        path / name,
                        f"offsets from 0 to {len(rows) - 1}, for {count_text(len(rows), 'values')}",
                        f"offsets from {own.min()} to {own.max()}",
                    )
            inner.check(rows, path / name)

    def valid(self, array: pa.Array) -> np.ndarray[Any, Any] | None:
        """Returns which rows are not null in their variant; a union has no nulls of its own."""
        found = np.ones(len(array), bool)
        parts = zip(self.variants.values(), self._rows(array, Path()), strict=True)
        for variant, (records, rows) in parts:
            inner = variant.valid(rows)
            if inner is not None:
                found[records] = inner
        return None if found.all() else found

    def _rows(self, array: pa.Array, path: Path) -> list[tuple[Any, pa.Array]]:
        """Returns for each variant the numbers of its records, and their values."""
        positions = self._positions(array, path)
        offsets = self._offsets(array, path) if self._is_dense else None
        found: list[tuple[Any, pa.Array]] = []
        for i in range(len(self.variants)):
            records = np.flatnonzero(positions == i)
            places = records if offsets is None else offsets[records]
            rows = array.field(i)
            if len(places) != len(rows) or not np.array_equal(places, np.arange(len(rows))):
                rows = take_places(rows, places)
            found.append((records, rows))
        return found

    def _without_nulls(
        self, parts: list[tuple[Any, pa.Array]], path: Path
    ) -> list[tuple[Any, pa.Array]]:
        """Returns the records and values of each variant, with all nulls in their variant."""
        if self._target is None:
            return parts
        number, value = self._target
        moved: list[Any] = []
        for i, (variant, (records, rows)) in enumerate(
            zip(self.variants.values(), parts, strict=True)
        ):
            # The variant of nulls has a policy, "mask", because its nulls are no error.
            has_policy = isinstance(variant, NullableType) and not pa.types.is_null(variant.arrow)
            is_target = i == number and value.null_count > 0
            valid = None if has_policy or is_target else variant.valid(rows)
            if valid is not None:
                moved.append(records[~valid])
                parts[i] = records[valid], take_places(rows, np.flatnonzero(valid))
        if moved:
            records, rows = parts[number]
            every = np.concatenate([records, *moved])
            order = np.argsort(every, kind="stable")
            expect_selectable(rows, path)
            places = np.minimum(np.arange(len(every)), len(rows))[order]
            parts[number] = every[order], take_places(pa.concat_arrays([rows, value]), places)
        return parts

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the rows of each variant."""
        return [(inner, rows, at) for _, inner, rows, at in self._parts(array, location)]

    def _parts(
        self, array: pa.Array, location: Location
    ) -> Iterator[tuple[Any, ColumnType, pa.Array, Location]]:
        """Yields for each variant the numbers of its records, its type, rows and location."""
        parts = self._without_nulls(self._rows(array, location.path), location.path)
        hidden = location.hidden
        for (name, inner), (records, rows) in zip(self.variants.items(), parts, strict=True):
            below = None if hidden is None else hidden[records]
            # The searched numbers are those after the record's own: see `Location.record`.
            ends = _ends(records)
            at = Location(None, location.splits, location, ends, hidden=below, name=name)
            yield records, inner, rows, at

    def _read(self, array: pa.Array, location: Location) -> FieldValue:
        from extensor._types.union.value import UnionTensor

        variants: list[Any] = []
        codes = np.zeros(len(array), np.int8)
        for code, (records, inner, rows, at) in enumerate(self._parts(array, location)):
            codes[records] = code
            variants.append(inner.read(rows, at))
        named = dict(zip(self.variants, variants, strict=True))
        return UnionTensor._of_parts(tf.constant(codes, tf.int8), named, tuple(self.variants))

    def _codes(self, array: pa.Array, path: Path) -> np.ndarray[Any, Any]:
        return union_numbers(array, 1, np.int8, path)

    def _offsets(self, array: pa.Array, path: Path) -> np.ndarray[Any, Any]:
        return union_numbers(array, 2, np.int32, path)

    def _positions(self, array: pa.Array, path: Path) -> np.ndarray[Any, Any]:
        """Returns for each record the position of its variant; -1 for an unknown code."""
        table = np.full(256, -1, np.int16)
        table[np.array(self.arrow.type_codes, np.int8).view(np.uint8)] = np.arange(
            len(self.arrow.type_codes)
        )
        return table[self._codes(array, path).view(np.uint8)]

    def _write_masked(self, value: FieldValue, path: Path) -> pa.Array:
        # A union has no nulls of its own: a row that is not valid is null in its variant.
        union, valid = value.values, array_over(value.mask)
        if not is_union(union) or union.shape.rank != 1:
            raise self.not_convertible(union, path)
        own = array_over(union.codes)
        variants: dict[str, Any] = {}
        for code, name in enumerate(union.names):
            mask, rows = valid[own == code], union.variants[name]
            variants[name] = rows if mask.all() else type(value).combined(rows, tf.constant(mask))
        return self._write(type(union)._of_parts(union.codes, variants, union.names), path)

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        from extensor._types.union.rows import position_in_variant

        if not is_union(value) or value.shape.rank != 1:
            raise self.not_convertible(value, path)
        for name in value.names:
            if name not in self.variants:
                expected = f"one of the schema's variants {', '.join(self.variants)}"
                fix = "Add the variant to the schema."
                raise FieldError(path / name, expected, "a variant that is not in the schema", fix)
        names = list(self.variants)
        table = np.array([self.arrow.type_codes[names.index(n)] for n in value.names], np.int8)
        own = array_over(value.codes)
        codes = table[own]
        offsets = array_over(position_in_variant(value.codes, len(value.names)))
        children: list[pa.Array] = []
        for name, inner in self.variants.items():
            if name in value.variants:
                rows = inner.write(value.variants[name], path / name)
            else:
                rows = nulls_of(inner.arrow, 0)
            if not self._is_dense:
                is_other = own != (value.names.index(name) if name in value.names else -1)
                rows = _spread(rows, offsets, is_other)
            children.append(rows)
        buffers = [None, pa.py_buffer(codes)]
        if self._is_dense:
            buffers.append(pa.py_buffer(offsets.astype(np.int32)))
        return pa.Array.from_buffers(self.arrow, len(own), buffers, children=children)


def _spread(
    rows: pa.Array, places: np.ndarray[Any, Any], is_other: np.ndarray[Any, Any]
) -> pa.Array:
    """Returns the rows of a variant at the places of all records, with any value elsewhere."""
    if not len(rows):
        return nulls_of(rows.type, len(places))
    return take_places(rows, np.where(is_other, 0, places))


def _ends(records: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns offsets in which a search for the row of a variant finds the number of its record."""
    size = int(records[-1]) + 2 if records.size else 1
    return np.searchsorted(records, np.arange(size))


def union_numbers(
    array: pa.Array, which: int, dtype: type[np.generic], path: object
) -> np.ndarray[Any, Any]:
    """Returns the codes or offsets of a union, without those before and after a slice."""
    buffer: Any = array.buffers()[which]
    end = array.offset + len(array)
    size = 0 if buffer is None else buffer.size // np.dtype(dtype).itemsize
    if size < end:
        raise invalid(path, f"{end} codes and offsets", f"{size}")
    if buffer is None or not len(array):
        return np.zeros([0], dtype)
    return np.frombuffer(buffer, dtype, end)[array.offset :]
