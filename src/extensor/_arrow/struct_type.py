"""Structs, which become records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import contains_type, names_of, without_fields
from extensor._arrow.cast import cast_column
from extensor._arrow.column_type import ColumnType, Inner
from extensor._arrow.kept_strings import is_kept
from extensor._arrow.location import Location
from extensor._arrow.natural_type import natural_field
from extensor._arrow.nulls import refuse_nulls
from extensor._arrow.parallel_columns import LARGE, convert_and_free, convert_columns
from extensor._count_text import count_text
from extensor._path import Path
from extensor._struct.arrow_types import ArrowType, ArrowTypes, form_of, meaning_beside, type_fits
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.dims import Dims
from extensor._struct.meaning import meaning_of
from extensor._struct.metadata import Metadata
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue
from extensor.errors import FieldError, StructureError

# This file calls `StructuredTensor._field`, which is faster than `field_value`.


_STRING = 24  # bytes of a string in a tensor; longer ones than 22 have more memory elsewhere


class StructType(ColumnType):
    """Structs, which become records.

    Args:
        arrow: The Arrow type.
        fields: The types of the fields, by name.
        dims: The name of the dimension of the records.
    """

    def __init__(self, arrow: pa.DataType, fields: dict[str, ColumnType], dims: Dims = ()) -> None:
        super().__init__(arrow)
        self.fields = fields
        self._checked: tuple[Path | None, list[Path]] = None, []
        self._dims = dims
        self._arrow_types: ArrowTypes | None = None
        self._inner_type: Callable[[pa.DataType, Path], ColumnType] | None = None
        self.copies_strings = any(field.copies_strings for field in fields.values())

    @functools.cached_property
    def _kept(self) -> list[pa.Field]:
        return [without_fields(field) for field in self.arrow.fields]

    @functools.cached_property
    def _encode(self) -> list[tuple[int, str]]:
        """The number and name of each field with a dictionary."""
        fields = enumerate(self.fields.items())
        return [(i, n) for i, (n, f) in fields if contains_type(f.arrow, pa.types.is_dictionary)]

    @functools.cached_property
    def paths(self) -> list[Path]:
        """The path of each field from these records."""
        return list(map(Path, self.fields))

    @classmethod
    def from_arrow_type(
        cls, arrow: pa.DataType, path: Path, inner_type: Callable[..., ColumnType], dims: Dims = ()
    ) -> StructType:
        """Returns the type. Raises if two fields have the same name."""
        fields = arrow.fields
        names = names_of(fields, path)
        types = [inner_type(f.type, path / n) for n, f in zip(names, fields, strict=True)]
        made = cls(arrow, dict(zip(names, types, strict=True)), dims)
        made._inner_type = inner_type
        return made

    def spec(self, count: int | None, location: Location) -> DenseStructuredTensorSpec:
        """Returns the spec of dense records of rank 1."""
        fields = {n: f.spec(count, location.field(n)) for n, f in self.fields.items()}
        types = {
            name: ArrowType(field, form_of(fields[name], 1))
            for name, field in zip(self.fields, self._kept, strict=True)
        }
        return DenseStructuredTensorSpec([count], fields, types, self._dims or None)

    def check(self, array: pa.Array, path: Path) -> None:
        """Checks the fields too."""
        super().check(array, path)
        last, paths = self._checked
        if last is not path:  # made once for all chunks of a column
            paths = [path / name for name in self.fields]
            self._checked = path, paths
        for i, field in enumerate(self.fields.values()):
            field.check(array.field(i), paths[i])

    def inner(self, array: pa.Array, location: Location) -> Sequence[Inner]:
        """Returns the fields."""
        fields = enumerate(self.fields.items())
        return [(field, array.field(i), location.field(name)) for i, (name, field) in fields]

    def _read(self, array: pa.Array, location: Location) -> DenseStructuredTensor:
        columns = [array.field(i) for i in range(len(self.fields))]
        return self.read_columns(columns, len(array), location)

    def read_and_free(self, columns: list[Any], number: int, location: Location) -> FieldValue:
        """Frees the columns of the fields too."""
        array = columns[number]
        if array.null_count:
            refuse_nulls(array, location)
        inner, count = [array.field(i) for i in range(len(self.fields))], len(array)
        columns[number] = None
        del array
        return self.read_columns(inner, count, location, frees=True)

    def read_columns(
        self, columns: list[pa.Array], count: int, location: Location, frees: bool = False
    ) -> DenseStructuredTensor:
        """Returns the records of validated columns.

        Args:
            columns: One column for each field.
            count: The number of records.
            location: The location of the records.
            frees: Whether to take each column out of the list once it is converted.
        """
        types = list(self.fields.values())
        locations = [location.field(name) for name in self.fields]
        sizes: dict[int, int] = {}
        for i, each in enumerate(types):
            # Strings that are read from a dictionary have few bytes in Arrow.
            factor = 1 if columns[i].type == each.arrow else 4
            if each.copies_strings and columns[i].get_total_buffer_size() * factor > LARGE:
                size = columns[i].nbytes * factor  # takes longer; a slice has the buffers of all
                if size > LARGE:
                    sizes[i] = size

        def convert(number: int) -> Any:
            if frees:
                return types[number].read_and_free(columns, number, locations[number])
            return types[number].read(columns[number], locations[number])

        frees = frees and not self._encode
        if frees:
            values = convert_and_free(convert, columns, sizes)
        else:
            values = convert_columns(convert, len(columns), sizes)
        fields = dict(zip(self.fields, values, strict=True))
        rows = None if fields else tf.zeros([count], tf.bool)
        extra = Metadata(self._types(fields, columns), self._dims)
        # The shape, because finding it from the fields takes longer than making one.
        shape = tf.TensorShape([count])
        return DenseStructuredTensor._of_parts(1, fields, rows, None, extra, shape)

    def _types(self, fields: dict[str, Any], columns: Sequence[pa.Array]) -> ArrowTypes:
        """Returns the Arrow types of fields, with the values of their dictionaries."""
        types = self._arrow_types
        if types is None:  # the same for all values of this type
            pairs = zip(fields.items(), self._kept, strict=True)
            types = {name: ArrowType(kept, form_of(value, 1)) for (name, value), kept in pairs}
            self._arrow_types = types
        found: ArrowTypes = {}
        for i, name in self._encode:
            words = self.fields[name].vocabulary(columns[i])
            if words is not None:
                found[name] = types[name]._replace(words=words)
        return {**types, **found} if found else types

    def _write(self, value: FieldValue, path: Path) -> pa.Array:
        if not isinstance(value, DenseStructuredTensor) or value.rank != 1:
            return super()._write(value, path)
        self._expect_fields(value.field_names(), path)
        columns = write_fields(value, list(self.fields.items()), path, self._inner_type)
        expect_same_size(self.fields, columns, path)
        count = len(columns[0]) if columns else int(value.shape[0])
        return pa.Array.from_buffers(self.arrow, count, [None], children=columns)

    def _expect_fields(self, names: tuple[str, ...], path: Path) -> None:
        given = set(names)
        for name in self.fields:
            if name not in given:
                expected = "records with this field of the schema"
                received = f"records with the fields {', '.join(names)}"
                fix = "Add the field with with_updates, or remove it from the schema."
                raise FieldError(path / name, expected, received, fix)
        for name in names:
            if name not in self.fields:
                expected = f"one of the schema's fields {', '.join(self.fields)}"
                fix = "Remove the field with without, or add it to the schema."
                raise FieldError(path / name, expected, "a field that is not in the schema", fix)


def write_fields(
    records: StructuredTensor,
    types: Sequence[tuple[str, ColumnType]],
    path: Path,
    type_of: Callable[[pa.DataType, Path], ColumnType] | None = None,
) -> list[pa.Array]:
    """Returns fields of records as columns; those with many strings in parallel.

    Args:
        records: Dense records of rank 1.
        types: The name and the type of each field to write.
        path: The path of the records, for errors.
        type_of: Returns the type to write for an Arrow type, where numbers have another meaning in
            the types that are given. None if they are the types of the records.
    """
    known = records._metadata.types
    calls: list[Callable[[], pa.Array]] = []
    sizes: dict[int, int] = {}
    for name, field in types:
        at, kept = path / name, known.get(name)
        if kept is not None and kept.words is not None:
            field = field.with_vocabulary(kept.words)
        value = records._field(name, at)
        if type_of is not None and kept is not None and _means_other(kept, value, field.arrow):
            own = type_of(natural_field(records, name, value, path).type, at)
            calls.append(functools.partial(_change_shapes, own, value, field.arrow, at))
            continue
        if field.copies_strings and (size := _size_of_strings(value)) > LARGE:
            sizes[len(calls)] = size
        calls.append(functools.partial(field.write, value, at))
    return convert_columns(lambda i: calls[i](), len(calls), sizes)


def _means_other(kept: ArrowType, value: FieldValue, arrow: pa.DataType) -> bool:
    """Returns whether the numbers of a field have a meaning, which is not that of a type."""
    if kept.field.type == arrow:
        return False
    want = meaning_of(arrow)
    return meaning_beside(kept.meaning, kept, want) not in (None, want) and type_fits(
        kept, value, 1
    )


def _change_shapes(own: ColumnType, value: FieldValue, arrow: pa.DataType, path: Path) -> pa.Array:
    """Returns a field, written as its own type and cast to another one."""
    return cast_column(own.write(value, path), arrow, path, "Correct schema=.")


def _size_of_strings(value: FieldValue) -> int:
    """Returns how many bytes the strings to copy take in TensorFlow, without long ones."""
    tensors = tf.nest.flatten(value, expand_composites=True)
    return sum(
        _STRING * t.shape.num_elements() for t in tensors if t.dtype == tf.string and not is_kept(t)
    )


def expect_same_size(names: Iterable[str], columns: Sequence[pa.Array], path: Path) -> None:
    """Raises StructureError unless all columns of written records have the same length.

    The size of a variable may have changed since it became a field.
    """
    if len(set(map(len, columns))) < 2:
        return
    count = len(columns[0])
    for name, column in zip(names, columns, strict=True):
        if len(column) != count:
            expected = count_text(count, "values, one for each record")
            fix = "Give every field one value for each record."
            raise StructureError(path / name, expected, count_text(len(column), "values"), fix)
