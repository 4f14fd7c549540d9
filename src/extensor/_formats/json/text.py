"""Arrow arrays as JSON text, column by column.

A text of many values is pieces that repeat, `{"title":"` and `","minutes":[`, and pieces of one
value each. The values of a column are converted by one Arrow function, and one `take` puts the
pieces of all rows in their order.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import decoded_type, is_list, is_text
from extensor._arrow.buffers import as_text
from extensor._arrow.encoded_types import plain_values
from extensor._arrow.selection import items_of, take_places
from extensor._arrow.times_of_text import expect_text
from extensor._formats.json.types import is_bytes
from extensor._path import Path
from extensor.errors import FormatError, UnsupportedTypeError

# pyarrow makes most functions of pyarrow.compute when it is imported.
# pyright: reportAttributeAccessIssue=false


pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = {**_SHORT, **{chr(i): f"\\u{i:04x}" for i in range(32) if chr(i) not in _SHORT}}


_Numbers = np.ndarray[Any, Any]


class _Choice(NamedTuple):
    """A piece of text for each value, one of several."""

    texts: tuple[str, ...]
    numbers: _Numbers


# The text of values: pieces after one another, each the same for all values, or one for each value.
_Parts = list[str | pa.StringArray | _Choice]


def json_text(array: pa.Array, path: Path, allow_nan: bool) -> pa.StringArray:
    """Returns the JSON text of each value; a null is `null`.

    Args:
        array: The values.
        path: Their path, for errors.
        allow_nan: Whether to write `NaN` and `Infinity`, which are not JSON.

    Raises:
        FormatError: If text is not UTF-8, or a float is not finite, unless `allow_nan` (also a
            ValueError).
        UnsupportedTypeError: If JSON has nothing for a type (also a TypeError).
    """
    return _interleave(_text(array, path, allow_nan), len(array))


def json_lines(records: pa.StructArray, allow_nan: bool) -> pa.Buffer:
    """Returns the JSON text of records, which are no nulls, with a line break after each."""
    text = _interleave([*_objects(records, Path(), allow_nan), "\n"], len(records))
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int32, 1, 4 * (text.offset + len(text)))
    return pa.py_buffer(b"") if data is None else data.slice(0, int(ends[0]))


def _or_null(start: str, values: pa.StringArray, end: str = "") -> _Parts:
    """Returns the text of values, and `null` for a null.

    Args:
        start: What the text of all values begins with.
        values: The rest of each.
        end: What the text of all values ends with.
    """
    if not values.null_count:
        return [start, values, end]
    valid = values.is_valid().to_numpy(False)
    return [_Choice(("null", start), valid), values.fill_null(""), _Choice(("", end), valid)]


def _merged(parts: _Parts) -> _Parts:
    """Returns the same text in fewer parts: one between two arrays, and no empty text."""
    merged: _Parts = []
    for part in parts:
        if isinstance(part, pa.Array) or not merged or isinstance(merged[-1], pa.Array):
            merged += [] if isinstance(part, str) and not part else [part]
        else:
            merged[-1] = _joined(merged[-1], part)
    return merged


def _joined(a: str | _Choice, b: str | _Choice) -> str | _Choice:
    """Returns the text of two parts after one another."""
    if isinstance(a, str):
        return a + b if isinstance(b, str) else _Choice(tuple(a + x for x in b.texts), b.numbers)
    if isinstance(b, str):
        return _Choice(tuple(x + b for x in a.texts), a.numbers)
    texts = tuple(x + y for x in a.texts for y in b.texts)
    return _Choice(texts, a.numbers * len(b.texts) + b.numbers)


def _interleave(parts: _Parts, count: int) -> pa.StringArray:
    """Returns the pieces of each row after one another, as one text a row.

    Args:
        parts: The parts, of which an array has no nulls.
        count: The number of rows.
    """
    parts = _merged(parts)
    arrays = [part for part in parts if isinstance(part, pa.Array)]
    if len(arrays) == len(parts) == 1:
        return arrays[0]
    texts: list[str] = []
    dtype = np.int32 if count * len(parts) < 1 << 31 else np.int64
    order = np.empty((count, len(parts)), dtype)
    rows, start = np.arange(count, dtype=dtype), 0
    for i, part in enumerate(parts):
        first = len(arrays) * count + len(texts)
        if isinstance(part, str):
            order[:, i] = first
            texts.append(part)
        elif isinstance(part, _Choice):
            np.add(part.numbers, first, out=order[:, i], casting="unsafe")
            texts += part.texts
        else:
            np.add(rows, start, out=order[:, i])
            start += count
    pieces = pa.concat_arrays([*arrays, pa.array(texts, pa.string())])
    if not parts:
        return pa.array([""] * count, pa.string())
    taken = pc.take(pieces, pa.array(order.ravel()), boundscheck=False)
    _, offsets, data = taken.buffers()
    ends = np.frombuffer(offsets, np.int32, taken.offset + len(taken) + 1)[taken.offset :]
    ends = np.ascontiguousarray(ends[:: len(parts)])
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), data or pa.py_buffer(b""))


def _text(array: pa.Array, path: Path, allow_nan: bool) -> _Parts:
    array = plain_values(array)
    arrow, t = array.type, pa.types
    if t.is_struct(arrow):
        return _objects(array, path, allow_nan)
    if t.is_map(arrow):
        return _maps(array, path, allow_nan)
    if is_list(arrow):
        return _lists(array, path, allow_nan)
    if t.is_union(arrow):
        return [_variants(array, path, allow_nan)]
    if is_text(arrow):
        return _or_null('"', _escape(array.cast(pa.string()), path), '"')
    if is_bytes(arrow):
        values = [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()]
        return _or_null('"', pa.array(values, pa.string()), '"')
    text, is_quoted = _scalars(array, path, allow_nan)
    quote = '"' if is_quoted else ""
    return _or_null(quote, text, quote)


def _scalars(array: pa.Array, path: Path, allow_nan: bool) -> tuple[pa.StringArray, bool]:
    """Returns the text of numbers, bools and times, and whether it needs quotes."""
    arrow, t = array.type, pa.types
    if t.is_null(arrow):
        return pa.nulls(len(array), pa.string()), False
    if t.is_boolean(arrow) or t.is_integer(arrow):
        return array.cast(pa.string()), False
    if t.is_floating(arrow):
        return _floats(array, path, allow_nan), False
    if t.is_duration(arrow):
        return array.cast(pa.int64()).cast(pa.string()), False
    expect_text(array, path)
    if t.is_timestamp(arrow) and arrow.tz is not None:
        array = array.cast(pa.timestamp(arrow.unit, "UTC"))
    if t.is_date64(arrow):
        array = array.cast(pa.date32())
    if (t.is_temporal(arrow) and not t.is_interval(arrow)) or t.is_decimal(arrow):
        return pc.replace_substring(array.cast(pa.string()), " ", "T"), True
    expected = "a type that JSON can express"
    fix = "Convert the field first, or remove it with without."
    raise UnsupportedTypeError(path if path else "write_json", expected, f"Arrow type {arrow}", fix)


def _objects(array: pa.StructArray, path: Path, allow_nan: bool) -> _Parts:
    if array.null_count:
        # What is below a null is not written. `flatten` would give it a null, and so abort the
        # process where it is a union, which has no nulls of its own.
        valid = array.is_valid()
        present = valid.to_numpy(False)
        valid = take_places(array, np.flatnonzero(present))
        text = _interleave(_objects(valid, path, allow_nan), len(valid))
        places = pa.array(np.cumsum(present) - 1, pa.int64(), mask=~present)
        return _or_null("", text.take(places))
    parts: _Parts = []
    before = "{"
    for field, child in zip(array.type.fields, _children(array), strict=True):
        parts.append(before + json.dumps(field.name, ensure_ascii=False))
        numbers = _after_colons(child)
        if numbers is not None:
            parts.append(numbers)
        else:
            parts += [":", *_text(child, path / field.name, allow_nan)]
        before = ","
    return [*parts, "}"] if parts else ["{}"]


def _children(array: pa.StructArray) -> list[pa.Array]:
    return [
        # A field of nulls may have another length where lists are flattened.
        pa.nulls(len(array)) if pa.types.is_null(field.type) else array.field(i)
        for i, field in enumerate(array.type.fields)
    ]


def _lists(array: pa.Array, path: Path, allow_nan: bool) -> _Parts:
    items = items_of(array)
    if pa.types.is_floating(items.type) and not array.null_count:
        closed = _closed_lists(items, _lengths(array))
        if closed is not None:
            return ["[", closed]
    return _join("[", array, _text(items, path, allow_nan), len(items), "]")


def _lengths(array: pa.Array) -> np.ndarray[Any, Any]:
    """Returns the number of items of each list; that of a null is 0."""
    if pa.types.is_fixed_size_list(array.type):
        return pc.if_else(array.is_valid(), array.type.list_size, 0).to_numpy(False)
    return pc.list_value_length(array).fill_null(0).to_numpy()


def _join(opening: str, array: pa.Array, items: _Parts, count: int, closing: str) -> _Parts:
    """Returns the text of the items of each list, in brackets, and with commas between them.

    Args:
        opening: The first bracket.
        array: The lists.
        items: The text of the items of all lists.
        count: The number of items.
        closing: The last bracket.
    """
    items = _merged(items)
    start = items[0] if items and isinstance(items[0], str) else ""
    items = items[1:] if start else items
    end = items[-1] if items and isinstance(items[-1], str) else ""
    items = items[:-1] if end else items
    lengths = _lengths(array)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), _interleave(items, count))
    values = pc.binary_join(lists, f"{end},{start}")
    full = opening + start, end + closing
    if not array.null_count and ((not start and not end) or lengths.all()):
        return [full[0], values, full[1]]
    numbers = np.where(lengths > 0, 2, array.is_valid().to_numpy(False))
    return [
        _Choice(("null", opening, full[0]), numbers),
        values,
        _Choice(("", closing, full[1]), numbers),
    ]


def _maps(array: pa.MapArray, path: Path, allow_nan: bool) -> _Parts:
    if not is_text(decoded_type(array.type.key_type)):
        expected = "maps whose keys are text, as those of JSON objects"
        fix = "Give schema= with a list of records of key and value for this field."
        raise UnsupportedTypeError(path, expected, f"keys of Arrow type {array.type.key_type}", fix)
    # Lists of the places of the entries: `flatten` leaves out those of null maps. Arrow has no
    # `flatten` of extension types below nulls.
    own, places = array.buffers()[:2], pa.array(np.arange(len(array.keys)))
    lists = pa.Array.from_buffers(
        pa.list_(pa.int64()), len(array), own, offset=array.offset, children=[places]
    )
    used = lists.flatten().to_numpy()
    keys, values = take_places(array.keys, used), take_places(array.items, used)
    _expect_keys_once(pc.list_parent_indices(lists), keys, path)
    pairs = [*_text(keys, path / "key", allow_nan), ":", *_text(values, path / "value", allow_nan)]
    return _join("{", lists, pairs, len(keys), "}")


def _expect_keys_once(maps: pa.Array, keys: pa.Array, path: Path) -> None:
    """Raises if one map has a key twice, because an object cannot."""
    words = plain_values(keys).cast(pa.large_string()).dictionary_encode()
    codes = words.indices.to_numpy() + maps.to_numpy() * np.int64(len(words.dictionary))
    if len(np.unique(codes)) < len(codes):
        expected = "maps of distinct keys, because they become objects"
        fix = "Give schema= with a list of records of key and value for this field."
        raise FormatError(path, expected, "a map that has a key twice", fix)


def _variants(array: pa.UnionArray, path: Path, allow_nan: bool) -> pa.StringArray:
    arrow = array.type
    texts: list[pa.StringArray] = []
    starts = np.zeros(128, np.int64)
    for i, code in enumerate(arrow.type_codes):
        starts[code] = sum(map(len, texts))
        texts.append(json_text(array.field(i), path / arrow.field(i).name, allow_nan))
    codes = array.type_codes.to_numpy(False)
    is_dense = arrow.mode == "dense"
    rows = array.offsets.to_numpy(False) if is_dense else np.arange(len(array))
    return pa.concat_arrays(texts).take(pa.array(starts[codes] + rows))


def _floats(array: pa.Array, path: Path, allow_nan: bool) -> pa.StringArray:
    finite = pc.is_finite(array)
    if not pc.all(finite).as_py() and len(array) > array.null_count:
        if not allow_nan:
            number = pc.index(finite, pa.scalar(False)).as_py()
            expected = "finite numbers, because JSON has no others"
            fix = "Mask or replace the value, or give allow_nan=True to write NaN and Infinity."
            raise FormatError(path, expected, str(array[number].as_py()), fix)
        text = float_texts(array)
        return pc.replace_substring(pc.replace_substring(text, "nan", "NaN"), "inf", "Infinity")
    return float_texts(array)


def _escape(text: pa.StringArray, path: Path) -> pa.StringArray:
    _, offsets, data = text.buffers()
    if data is None:
        return text
    first, last = np.frombuffer(offsets, np.int32)[[text.offset, text.offset + len(text)]]
    codes = np.frombuffer(data, np.uint8)[first:last]
    if not len(codes):
        return text
    if codes.max() > 127:
        _expect_utf8(text, path)
    has_control = codes.min() < 32
    for character, escaped in _ESCAPED.items():
        code = ord(character)
        if (code >= 32 or has_control) and (codes == code).any():
            text = pc.replace_substring(text, character, escaped)
    return text


def _expect_utf8(text: pa.StringArray, path: Path) -> None:
    try:
        as_text(text, text.type)
    except pa.ArrowInvalid as error:
        fix = "Write the field as bytes, which become base64."
        raise FormatError(path, "text in UTF-8", "bytes that are not UTF-8", fix) from error


# Arrow writes an exponent from 1e10 on, and orjson only for larger numbers; of float64, orjson
# writes one below 1e-5, and Arrow below 1e-6.
_LARGE = 9e9
_SMALL = (9e-7, 1.1e-5)

_MOST = 1 << 26  # numbers: the text of more might not fit offsets of 32 bits

_COMMA, _COLON, _BRACKET = b",:]"


def float_texts(array: pa.Array) -> pa.StringArray:
    """Returns the shortest text of each float; a null stays null.

    Integers have a point, so that they are read as floats again. NaN is `nan`, and infinity `inf`.
    """
    numbers = _numbers(array.fill_null(0) if array.null_count else array)
    if numbers is None:
        return _of_arrow(array)
    data = _write_array(numbers)
    ends = _ends(data) - np.arange(1, len(array) + 1)  # without the bracket and the commas
    data = np.frombuffer(data.tobytes().translate(None, b"[,]"), np.uint8)
    texts = _texts(data, [0], ends)
    others = ~_is_plain(numbers)
    if others.any():
        replaced = _of_arrow(pa.array(numbers[others], array.type))
        texts = pc.replace_with_mask(texts, pa.array(others), replaced)
    if array.null_count:
        texts = pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))
    return texts


def _after_colons(array: pa.Array) -> pa.StringArray | None:
    """Returns the text of floats, or of vectors of them, each after a colon.

    Returns None of other types, and where orjson does not write this text: of nulls and some
    numbers. It also returns None of short vectors, of which each takes time of its own.
    """
    t = array.type
    is_vectors = pa.types.is_fixed_size_list(t) and t.list_size > 4 and not array.null_count
    items = items_of(array) if is_vectors else array
    numbers = _plain_numbers(items) if pa.types.is_floating(items.type) else None
    if numbers is None:
        return None
    if is_vectors:
        data = _write_array(numbers.reshape(len(array), -1))
        ends = _places_of_few(data[:-1], _BRACKET) + 1
    else:
        data = _write_array(numbers)
        ends = _ends(data)
    data[0] = data[ends[:-1]] = _COLON  # in place of the bracket and the commas
    return _texts(data, [0], ends)


def _closed_lists(items: pa.Array, lengths: _Numbers) -> pa.StringArray | None:
    """Returns the text of the items of each list, and the bracket that ends it.

    Returns None as `_after_colons`, and for empty lists.

    Args:
        items: The items of all lists, one list after another.
        lengths: The number of items of each list.
    """
    numbers = _plain_numbers(items) if lengths.all() else None
    if numbers is None:
        return None
    data = _write_array(numbers)
    ends = _ends(data)[np.cumsum(lengths) - 1]
    data[ends] = _BRACKET  # in place of the comma between two lists
    return _texts(data, [1], ends + 1)


def _texts(data: _Numbers, start: list[int], ends: _Numbers) -> pa.StringArray:
    offsets = pa.py_buffer(np.concatenate((start, ends), dtype=np.int32, casting="unsafe"))
    return pa.StringArray.from_buffers(len(ends), offsets, pa.py_buffer(data))


@functools.cache
def _orjson() -> Any:
    """Returns the module, which the extra `json` installs, or None."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("orjson")
    return None


def _numbers(array: pa.Array) -> _Numbers | None:
    """Returns floats without nulls as orjson takes them, or None if it does not."""
    is_taken = array.type != pa.float16() and 0 < len(array) < _MOST
    return array.to_numpy() if is_taken and _orjson() is not None else None


def _plain_numbers(array: pa.Array) -> _Numbers | None:
    """Returns floats whose text orjson writes; None of nulls and other numbers."""
    numbers = None if array.null_count else _numbers(array)
    return numbers if numbers is not None and _is_plain(numbers).all() else None


def _write_array(numbers: _Numbers) -> _Numbers:
    """Returns numbers as one JSON array, whose bytes may be changed."""
    orjson = _orjson()
    text: bytes = orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY)
    return np.frombuffer(bytearray(text), np.uint8)


def _ends(data: _Numbers) -> _Numbers:
    """Returns where each number of a JSON array ends: at a comma or the bracket."""
    is_end = data == _COMMA
    is_end[-1] = True
    return np.flatnonzero(is_end)


def _places_of_few(data: _Numbers, character: int) -> _Numbers:
    """Returns where a character is, of which there are few: eight bytes are looked at together."""
    bits = np.packbits(data == character)
    groups = np.flatnonzero(bits != 0)
    places = np.flatnonzero(np.unpackbits(bits[groups]).view(np.bool_))
    return groups[places >> 3] * 8 + (places & 7)


def _is_plain(numbers: _Numbers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns which numbers are finite, and have the same text by Arrow and by orjson."""
    sizes = np.abs(numbers)
    plain = sizes < _LARGE
    if numbers.dtype == np.float64:
        plain &= (sizes < _SMALL[0]) | (sizes > _SMALL[1])
    return plain


def _of_arrow(array: pa.Array) -> pa.StringArray:
    text = array.cast(pa.string())
    if array.type == pa.float16():  # which Arrow does not compare
        array = array.cast(pa.float32())
    is_integer = pc.and_(pc.is_finite(array), pc.equal(pc.floor(array), array))
    if pc.any(is_integer).as_py():
        needs_point = pc.and_not(is_integer, pc.match_substring(text, "e"))
        text = pc.binary_join_element_wise(text, pc.if_else(needs_point, ".0", ""), "")
    return text
