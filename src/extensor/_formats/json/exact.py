"""JSON by Python's parser, which gives exact values and the line of each error."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from extensor._arrow.arrow_type import decoded_type, inner_fields, is_encoded, is_list, is_text
from extensor._arrow.struct_fields import batch_of
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._formats.json.maps import PathTree, as_maps, expect_few_keys, with_maps
from extensor._formats.json.source import Text
from extensor._formats.json.types import is_bytes, value_of
from extensor._formats.python.constant import arrow_of, of_spec
from extensor._path import Path
from extensor._progress import no_bar
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.tensor import StructuredTensor
from extensor.errors import FieldError, FormatError, StructureError

_SPACE = re.compile(r"[ \t\n\r]*")


@refuse_deep_nesting("read_json")
def exact_records(
    texts: list[Text],
    wanted: WantedTable,
    conflicts: str,
    path: tuple[str, ...] | None,
    maps: PathTree,
    advance: Callable[[int], object] = no_bar,
) -> pa.Table | StructuredTensor:
    """Returns the records of texts as an Arrow table, or, with a schema, as a StructuredTensor.

    Args:
        texts: The texts.
        wanted: The arguments of the caller.
        conflicts: "error" or "union".
        path: As in `fast_table`.
        maps: The paths of objects that are maps.
        advance: Is called with the number of bytes that are parsed.

    Raises:
        FormatError, StructureError, DTypeError, NullError, FieldError: With the line of the error.
    """
    records = _ParsedRecords()
    for text in texts:
        records.add(text, path, advance)
    if maps:
        unused = set(maps.paths())
        values = [with_maps(value, maps, unused) for value in records.values]
        if unused and values and wanted.schema is None:
            expected, fix = "paths of objects", "Check the path; list levels are not part of it."
            raise FieldError("maps", expected, f"{Path(*min(unused))}, where there are none", fix)
        records.values = values
    if wanted.schema is not None:
        arrow = pa.struct(list(wanted.schema))
        values = [_as_type(value, arrow) for value in records.values]
        return _of_schema(values, wanted, records)
    if wanted.columns is not None:
        columns = PathTree(wanted.columns)
        records.values = [_chosen(v, columns, conflicts == "union") for v in records.values]
    try:
        array = arrow_of(records.values, wanted.nulls, conflicts, records.name_of, expect_few_keys)
    except UnicodeEncodeError as error:
        expected, fix = "names of fields that UTF-8 can encode", "Correct the name."
        raise FormatError(texts[0].name, expected, f"{ascii(error.object)[:40]}", fix) from None
    if maps:
        array = as_maps(array, maps)
    return pa.Table.from_batches([batch_of(array)])


def _of_schema(values: list[Any], wanted: WantedTable, records: _ParsedRecords) -> StructuredTensor:
    parsed = wanted.without_auto()
    made = of_spec(values, parsed.spec(), parsed.nulls, name_of=records.name_of)
    # Through the schema, so that the records keep exactly its types.
    return wanted.records(pa.Table.from_batches([to_arrow(made, wanted.schema)]))


class _ParsedRecords:
    """Records, with the source and line of each."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: list[tuple[str, int, int | None]] = []

    def name_of(self, index: int) -> str:
        """Returns the name of a record: its source and line, or number."""
        name, number, line = self._places[index]
        return f"record {number} of {name}" if line is None else f"line {line} of {name}"

    def add(
        self, text: Text, path: tuple[str, ...] | None, advance: Callable[[int], object]
    ) -> None:
        """Adds the records of a text.

        Raises:
            FormatError: If it is not JSON (also a ValueError).
            StructureError: If there is a value that is not a record (also a ValueError).
        """
        parser = _Parser(text)
        line, at = text.line + 1, 0
        for number, (value, start) in enumerate(parser.records(path)):
            if start is not None:
                line += parser.source.count("\n", at, start)
                advance(start - at)
                at = start
            where = text.name, number, None if start is None else line
            self._places.append(where)
            self.values.append(value)
            if not isinstance(value, dict):
                plain = 'Write plain values as records, such as {"x": 1}'
                fix = f"{plain}; records= names the path of records in an object."
                fix = "Remove it." if value is None else fix
                name = self.name_of(len(self._places) - 1)
                raise StructureError(name, "an object, which is a record", _kind(value), fix)
        advance(text.buffer.size - at)


class _Parser:
    """Parses a text, value by value.

    Attributes:
        source: The text.
    """

    def __init__(self, text: Text) -> None:
        self._name, self._line = text.name, text.line
        self.source = _decode(text)
        self._at = 0
        self._decoder = json.JSONDecoder(object_pairs_hook=_record, parse_float=_float)

    def records(self, path: tuple[str, ...] | None) -> Iterator[tuple[Any, int | None]]:
        """Yields each record and its position, or None where that is not known."""
        first = self._next()
        if path is not None and not (path == () and first == "["):
            if first:
                value = self._value()
                self._expect_end("the end of the only object", "Leave out records=.")
                for each in _below(self._name, value, path):
                    yield each, None
        elif first != "[":
            while self._next():
                start = self._at
                yield self._value(), start
        else:
            self._at += 1
            is_open = self._next() != "]"
            while is_open:
                start = self._at
                yield self._value(), start
                is_open = self._next() != "]"
                if is_open and self._next() != ",":
                    raise self._error(self._at, "',' or ']'", "Correct the text.")
                self._at += is_open
                self._next()
            self._at += 1
            self._expect_end("the end of the only array", "Correct the text.")

    def _next(self) -> str:
        """Returns the next character that is not a space, and goes to it."""
        found: Any = _SPACE.match(self.source, self._at)
        self._at = found.end()
        return self.source[self._at : self._at + 1]

    def _value(self) -> Any:
        """Returns the value that begins here, and goes to its end."""
        at = self._at
        try:
            value, self._at = self._decoder.raw_decode(self.source, at)
            return value
        except json.JSONDecodeError as error:
            raise self._error(error.pos, "JSON", "Correct the text.", error.msg) from None
        except _BadValueError as error:
            expected, received, fix = error.args
        except RecursionError:
            received, expected = "deeper nesting", "values nested within Python's recursion limit"
            fix = "Write the data with less nesting."
        except ValueError as error:  # an integer of thousands of digits
            received, expected = str(error)[:80], "numbers of fewer digits"
            fix = "Write the number as a string."
        raise FormatError(self._place(at), expected, received, fix)

    def _place(self, at: int) -> str:
        line = self._line + self.source.count("\n", 0, at) + 1
        return f"{self._name}, line {line}"

    def _expect_end(self, expected: str, fix: str) -> None:
        if self._next():
            raise self._error(self._at, expected, fix)

    def _error(self, at: int, expected: str, fix: str, reason: str = "") -> FormatError:
        column = at - self.source.rfind("\n", 0, at)
        found = self.source[at : at + 20]
        received = repr(found) if found else "the end of the text"
        received += f" ({reason})" if reason else ""
        return FormatError(f"{self._place(at)}, column {column}", expected, received, fix)


class _BadValueError(Exception):
    """A value that JSON allows and records do not: what was expected, what was received, a fix."""


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        name = next(name for name in names if names.count(name) > 1)
        received, fix = f"an object with the key {name!r} twice", "Rename or remove one of the two."
        raise _BadValueError("objects with distinct keys", received, fix)
    return record


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        fix = "Write the number as a string."
        raise _BadValueError("numbers that float64 can hold", f"the number {text[:40]}", fix)
    return value


def _decode(text: Text) -> str:
    content = bytes(text.buffer.slice(0, text.buffer.size))
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = text.line + content.count(b"\n", 0, error.start) + 1
        received = f"the byte 0x{content[error.start]:02x} ({error.reason})"
        fix = "Write the text as UTF-8."
        raise FormatError(f"{text.name}, line {line}", "UTF-8 text", received, fix) from None


def _kind(value: object) -> str:
    kinds: dict[type, str] = {list: "an array", str: "a string", bool: "a bool", type(None): "null"}
    return kinds.get(type(value), "a number")


def _below(name: str, value: Any, path: tuple[str, ...]) -> list[Any]:
    """Returns the records at a path of an object: items of an array, or entries of an object."""
    for i, key in enumerate(path):
        if not isinstance(value, dict) or key not in value:
            keys = "no object"
            if isinstance(value, dict):
                keys = ", ".join(map(repr, list(value)[:10])) or "an empty object"
            place, expected = f"{name}: {Path(*path[: i + 1])}", f"an object with the key {key!r}"
            raise FieldError(place, expected, keys, "Correct records=.")
        value = value[key]
    if isinstance(value, dict):
        return [{"key": key, "value": each} for key, each in value.items()]
    if isinstance(value, list):
        return value
    expected, fix = "an array of records, or an object of records", "Correct records=."
    raise StructureError(f"{name}: {Path(*path)}" if path else name, expected, _kind(value), fix)


def _chosen(value: object, columns: PathTree, top_only: bool) -> object:
    """Returns a value with the chosen fields only, so that others may have conflicts."""
    if isinstance(value, list):
        return [_chosen(item, columns, top_only) for item in value]
    if not isinstance(value, dict) or columns.is_end:
        return value
    return {
        name: each if top_only else _chosen(each, columns.below[name], top_only)
        for name, each in value.items()
        if name in columns.below
    }


def _as_type(value: object, arrow: pa.DataType) -> object:
    """Returns a value with the fields of a type only, and text as the values that it stands for.

    A value that does not fit stays as it is. Then `of_spec` raises, with its place.
    """
    t = pa.types
    if value is None:
        return None
    if is_encoded(arrow):
        return _as_type(value, arrow.value_type)
    if t.is_union(arrow):
        return _as_variant(value, [field.type for field in inner_fields(arrow)])
    if isinstance(arrow, pa.FixedShapeTensorType) and isinstance(value, list):
        flat = np.array(value, object)  # as `write_json` writes it
        if flat.shape != (math.prod(arrow.shape),):
            return value
        order = arrow.permutation or range(len(arrow.shape))
        return flat.reshape(arrow.shape).transpose(order).tolist()
    if t.is_struct(arrow) and isinstance(value, dict):
        fields = {field.name: field.type for field in arrow.fields}
        return {
            name: _as_type(each, fields[name]) for name, each in value.items() if name in fields
        }
    if (is_list(arrow) or t.is_map(arrow)) and isinstance(value, list):
        inner = pa.struct(inner_fields(arrow)) if t.is_map(arrow) else arrow.value_type
        return [_as_type(item, inner) for item in value]
    if t.is_decimal(arrow) and type(value) in (int, float, str):
        try:
            return Decimal(str(value))
        except InvalidOperation:
            return value
    if isinstance(value, str) and is_bytes(arrow):
        found = value_of(value, arrow)
        return _NoBase64() if isinstance(found, str) else found
    if isinstance(value, str) and t.is_temporal(arrow):
        return value_of(value, arrow)
    return value


def _as_variant(value: object, variants: list[pa.DataType]) -> object:
    """Returns a value as `_as_type` of the first variant of a union that it stands for.

    A value that is one of JSON's own in a variant stays: text, a number, or a list of several kinds
    of lists. Of several records, the one of the most similar names counts.
    """
    types = [decoded_type(each) for each in variants]
    if isinstance(value, str) and any(map(is_text, types)):
        return value
    if isinstance(value, (int, float)) and any(map(_is_number, types)):
        return value
    if isinstance(value, list) and sum(is_list(t) or pa.types.is_map(t) for t in types) > 1:
        return value
    if isinstance(value, dict):
        names = {each: {field.name for field in inner_fields(each)} for each in variants}
        variants = sorted(variants, key=lambda each: len(names[each] ^ value.keys()))
    made = (_as_type(value, each) for each in variants)
    return next((m for m in made if m is not value and type(m) is not _NoBase64), value)


def _is_number(arrow: pa.DataType) -> bool:
    return pa.types.is_integer(arrow) or pa.types.is_floating(arrow)


# Its name is in the error, because it does not fit any field.
_NoBase64: Any = type("text that is not base64", (), {})
