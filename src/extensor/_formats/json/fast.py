"""JSON by Arrow's parser, where it is right.

Arrow's parser infers types block by block, and takes text for timestamps. So the text is cut into
blocks here, each is parsed alone, and one type is made of the types of all blocks.
"""

# pyarrow makes most functions of pyarrow.compute when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import inner_fields
from extensor._arrow.buffers import as_text
from extensor._arrow.struct_fields import batch_of, inner_arrays
from extensor._formats.json.maps import wide_objects
from extensor._formats.json.source import OpenFile, Text
from extensor._formats.json.types import (
    InexactError,
    convert_array,
    join_types,
    only_timestamps,
    parsed_type,
    with_text,
)
from extensor._progress import no_bar

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

_BLOCK = 1 << 22  # bytes
_SAMPLE = 1 << 14
_STEP = 1 << 14
_DEPTH = 1000
"""Arrow's parser aborts the process where records nest thousands of levels deep (pyarrow 26)."""
_EXACT_FLOATS = 2**53
_RECORDS = "records"
_SPACE = b" \t\r\n"
_NULL_RECORD = re.compile(rb"\}\s*null")
_LONG_INTEGER = re.compile(rb"[:\[,\s]-?[0-9]{16,}\s*[,}\]\s]")
_NO_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))


def fast_table(
    texts: list[Text],
    schema: pa.Schema | None,
    path: tuple[str, ...] | None,
    advance: Callable[[int], object] = no_bar,
) -> pa.Table:
    """Returns the records of texts.

    Args:
        texts: The texts.
        schema: The wanted schema, or None to infer it.
        path: The field of a single object that holds the records; None if they are the values or
            the items of the texts.
        advance: Is called with the number of bytes of each part that is read.

    Raises:
        InexactError: If the parser would not give the exact values, or finds an error.
    """
    try:
        return _table(texts, schema, path, advance)
    # The name of a field that is not UTF-8 raises a UnicodeDecodeError when it is read.
    except (pa.ArrowException, UnicodeDecodeError, KeyError, RecursionError) as error:
        raise InexactError from error


def _table(
    texts: list[Text],
    schema: pa.Schema | None,
    path: tuple[str, ...] | None,
    advance: Callable[[int], object],
) -> pa.Table:
    wanted = None if schema is None else pa.struct(list(schema))
    asked = None if wanted is None else parsed_type(wanted)
    spans = [span for text in texts for span in _spans(text.buffer, path)]
    order: list[pa.DataType] = []
    hints: pa.DataType | None = None
    if asked is None and spans and spans[0].path is None:
        first = spans[0]
        sample = first._replace(size=_size_of_lines(first.source, first.start, _SAMPLE)).block()
        sample.expect_shallow()
        found = sample.parse(None, None).type
        order, hints = [with_text(found)], only_timestamps(found)
    if len(spans) > 1:
        # One thread more than cores, because each waits for the others' Python code.
        with ThreadPoolExecutor(pa.cpu_count() + 1) as pool:
            arrays: list[pa.StructArray] = []
            for array in pool.map(lambda span: span.block().read(hints, asked), spans):
                advance(spans[len(arrays)].size)
                arrays.append(array)
    else:
        arrays = [span.block().read(hints, asked) for span in spans]
    if wanted is None:
        wanted = pa.struct([])
        for found in [*order, *(array.type for array in arrays)]:
            wanted = join_types(wanted, found)
        _expect_names(wanted.fields)
        list(wide_objects(wanted, arrays))  # raises before memory is taken
    batches = [batch_of(convert_array(array, wanted)) for array in arrays]
    return pa.Table.from_batches(batches, schema or pa.schema(wanted.fields))


class _Span(NamedTuple):
    """The place of a `_Block`, whose text may not be read yet."""

    source: pa.Buffer | OpenFile
    start: int
    size: int
    path: tuple[str, ...] | None

    def block(self) -> _Block:
        """Returns the block, with its text."""
        return _Block(self.source.slice(self.start, self.size), self.path)


def _spans(source: pa.Buffer | OpenFile, path: tuple[str, ...] | None) -> Iterator[_Span]:
    start, end = 0, source.size
    first = _first_byte(source, start, end)
    if not first:
        return
    if path is None and first == b"{":
        # Blocks of one size, as many for each core.
        cores = pa.cpu_count()
        count = cores * math.ceil(end / (cores * _BLOCK))
        size = max(math.ceil(end / count), _BLOCK // 4)
        while start < end:
            span = _Span(source, start, _size_of_lines(source, start, size), None)
            start += span.size
            first = _first_byte(source, span.start, start)
            if first == b"{":
                yield span
            elif first:  # Arrow's parser aborts the process where the first record is null
                raise InexactError
        return
    if first == b"[" and not path:
        # The parser reads objects only.
        text = pa.py_buffer(b'{"records":' + bytes(source.slice(0, end)) + b"}")
        yield _Span(text, 0, text.size, (_RECORDS,))
        return
    if first == b"{" and path:
        yield _Span(source, 0, end, path)
        return
    raise InexactError


def _size_of_lines(source: pa.Buffer | OpenFile, start: int, size: int) -> int:
    """Returns the size of the lines from a place on that have at least so many bytes."""
    left = source.size - start
    while size < left:
        step = source.slice(start + size, min(_STEP, left - size))
        end = bytes(step).find(b"\n")
        if end >= 0:
            return size + end + 1
        size += _STEP
    return left


def _first_byte(source: pa.Buffer | OpenFile, start: int, end: int) -> bytes:
    """Returns the first byte between two places that is no white space."""
    for at in range(start, end, 256):
        part = bytes(source.slice(at, min(256, end - at))).lstrip(_SPACE)
        if part:
            return part[:1]
    return b""


class _Block:
    """Some records as text, which are parsed at once.

    Args:
        buffer: The text.
        path: The fields that lead to the list of records in a single object; None if the text is
            the records, one after another.
    """

    def __init__(self, buffer: pa.Buffer, path: tuple[str, ...] | None) -> None:
        self.buffer = buffer
        self.path = path

    def read(self, hints: pa.DataType | None, asked: pa.DataType | None) -> pa.StructArray:
        """Returns the records.

        Args:
            hints: The fields that are text, though they look like timestamps.
            asked: The type of the records, or None to infer it.

        Raises:
            InexactError: As `fast_table`.
        """
        self.expect_shallow()
        array = self.parse(hints, asked)
        found = None if asked is not None else only_timestamps(array.type)
        if found is not None:
            order = with_text(array.type)
            array = self.parse(found if hints is None else join_types(hints, found), None)
            if only_timestamps(array.type) is not None:
                raise InexactError
            array = convert_array(array, join_types(order, array.type))
        return array

    def parse(self, hints: pa.DataType | None, asked: pa.DataType | None) -> pa.StructArray:
        """Returns the records as the parser reads them, with timestamps for some text."""
        from pyarrow import json

        known = asked if asked is not None else hints
        if known is not None and self.path is not None:
            known = pa.list_(known)
            for name in reversed(self.path):
                known = pa.struct([(name, known)])
        table = json.read_json(
            pa.BufferReader(self.buffer),
            json.ReadOptions(use_threads=False, block_size=self.buffer.size + 1),
            json.ParseOptions(
                explicit_schema=None if known is None else pa.schema(known.fields),
                unexpected_field_behavior="infer" if asked is None else "ignore",
            ),
        )
        table.validate()  # nulls in lists of an asked type may make arrays that do not fit
        array = _struct_of(table)
        self._check(array, asked is not None)
        if self.path is None:
            self._expect_no_null(table)
            return array
        _expect_names(table.schema)  # also those beside the records
        return self._records(array)

    def _check(self, array: pa.StructArray, is_asked: bool) -> None:
        """Raises where text is not UTF-8, or a number may not be what it was.

        Args:
            array: The records.
            is_asked: Whether their type was asked for.

        Raises:
            InexactError: If a float may be an integer that a float cannot hold, or has more digits
                than a float holds.
            pa.ArrowInvalid: If text is not UTF-8.
        """
        largest = 0.0
        for leaf in _leaves(array):
            if pa.types.is_string(leaf.type):
                as_text(leaf, leaf.type)
            elif pa.types.is_floating(leaf.type):
                largest = max(largest, _largest(leaf))
        if is_asked:
            if math.isinf(largest):
                raise InexactError
        elif largest >= _EXACT_FLOATS and _LONG_INTEGER.search(self.buffer):
            raise InexactError

    def _records(self, array: pa.StructArray) -> pa.StructArray:
        if len(array) != 1:
            raise InexactError
        for name in self.path or ():
            if not pa.types.is_struct(array.type):
                raise InexactError
            array = array.field(name)
        if pa.types.is_list(array.type) and not array.null_count:
            items = array.flatten()
            if pa.types.is_struct(items.type) and not items.null_count:
                return items
            if not len(items):
                return pa.array([], pa.struct([]))
        raise InexactError

    def _expect_no_null(self, table: pa.Table) -> None:
        """Raises where a record may be null, for which the parser gives a record of nulls."""
        count = table.num_rows
        empty = np.ones(count, bool)
        for column in table.columns:
            if not column.null_count:
                return
            empty &= column.is_null().to_numpy()
        if empty.any() and _NULL_RECORD.search(self.buffer):
            raise InexactError

    def expect_shallow(self) -> None:
        """Raises where a record is nested more deeply than the parser can read."""
        text = np.frombuffer(self.buffer, np.uint8)
        if self.path is None:
            # The words of 8 bytes with line breaks, which are found in half of the time.
            words = (text[: len(text) // 8 * 8] == ord("\n")).view(np.int64) != 0
            places = np.concatenate(([-1], np.flatnonzero(words), [len(words)]))
            if 8 * int((places[1:] - places[:-1]).max()) <= 2 * _DEPTH - 8:
                return
        ends = np.flatnonzero(text == ord("\n")) if self.path is None else np.empty(0, np.int64)
        # Each level has two brackets.
        longest = int(np.diff(ends, prepend=-1, append=len(text)).max())
        if longest <= 2 * _DEPTH:
            return
        opens = np.flatnonzero((text | 32) == ord("{"))  # also "["
        before = np.searchsorted(opens, ends)
        if int(np.diff(before, prepend=0, append=len(opens)).max()) <= _DEPTH:
            return
        bare = bytes(self.buffer).replace(b"\\\\", b"").replace(b'\\"', b"")
        bare = re.sub(rb'"[^"]*"', b"", bare.translate(None, _NO_STRUCTURE).replace(b'""', b""))
        brackets = np.frombuffer(bare, np.uint8)
        steps = np.where((brackets | 32) == ord("{"), 1, -1)
        if len(steps) and np.cumsum(steps).max() > _DEPTH:
            raise InexactError


def _struct_of(table: pa.Table) -> pa.StructArray:
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0].to_struct_array()
    return pa.array([{}] * table.num_rows, pa.struct(list(table.schema)))


def _expect_names(fields: Iterable[pa.Field]) -> None:
    """Raises UnicodeDecodeError if the name of a field is not UTF-8."""
    for field in fields:
        _ = field.name
        _expect_names(inner_fields(field.type))


def _largest(array: pa.Array) -> float:
    """Returns the largest finite or infinite float, without its sign."""
    if len(array) and not array.null_count:  # NumPy takes a fifth of the time
        numbers = array.to_numpy()
        return max(-float(np.fmin.reduce(numbers)), float(np.fmax.reduce(numbers)))
    ends = pc.min_max(array)
    return max((abs(end.as_py() or 0.0) for end in (ends["min"], ends["max"])), default=0.0)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yields the numbers, the text and all else inside records."""
    if not array.type.num_fields:
        yield array
        return
    for inner in inner_arrays(array):
        yield from _leaves(inner)
