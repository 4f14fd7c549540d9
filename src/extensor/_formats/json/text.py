"""Arrow arrays as JSON text, column by column: Arrow joins the text of fields and items."""

# pyarrow makes most functions of pyarrow.compute when it is imported.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from extensor._arrow.arrow_type import contains_type, decoded_type, is_encoded, is_list
from extensor._arrow.selection import take_places
from extensor._formats.json.types import is_bytes, is_text
from extensor._path import Path
from extensor.errors import FormatError, UnsupportedTypeError

pc: Any = pyarrow.compute  # pyarrow makes its functions at run time

_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = {**_SHORT, **{chr(i): f"\\u{i:04x}" for i in range(32) if chr(i) not in _SHORT}}


def json_text(array: pa.Array, path: Path, allow_nan: bool) -> pa.StringArray:
    """Returns the JSON text of each value; a null is `null`.

    Args:
        array: The values.
        path: Their path, for errors.
        allow_nan: Whether to write `NaN` and `Infinity`, which are not JSON.

    Raises:
        FormatError: If a float is not finite, unless `allow_nan` (also a ValueError).
        UnsupportedTypeError: If JSON has nothing for a type (also a TypeError).
    """
    while is_encoded(array.type) or isinstance(array.type, pa.BaseExtensionType):
        array = _plain(array)
    return _text(array, path, allow_nan).fill_null("null")


def _plain(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    return array.storage


def _text(array: pa.Array, path: Path, allow_nan: bool) -> pa.StringArray:
    arrow, t = array.type, pa.types
    if t.is_struct(arrow):
        return _objects(array, path, allow_nan)
    if t.is_map(arrow):
        return _maps(array, path, allow_nan)
    if is_list(arrow):
        return _surrounded("[", _joined(array, json_text(_items(array), path, allow_nan)), "]")
    if t.is_union(arrow):
        return _variants(array, path, allow_nan)
    if t.is_null(arrow):
        return pa.nulls(len(array), pa.string())
    if t.is_boolean(arrow) or t.is_integer(arrow):
        return array.cast(pa.string())
    if t.is_floating(arrow):
        return _floats(array, path, allow_nan)
    if is_text(arrow):
        return _surrounded('"', _escaped(array.cast(pa.string())), '"')
    if is_bytes(arrow):
        values = [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()]
        return _surrounded('"', pa.array(values, pa.string()), '"')
    if t.is_duration(arrow):
        return array.cast(pa.int64()).cast(pa.string())
    if t.is_timestamp(arrow) and arrow.tz is not None:
        array = array.cast(pa.timestamp(arrow.unit, "UTC"))
    if t.is_date64(arrow):
        array = array.cast(pa.date32())
    if (t.is_temporal(arrow) and not t.is_interval(arrow)) or t.is_decimal(arrow):
        text = pc.replace_substring(array.cast(pa.string()), " ", "T")
        return _surrounded('"', text, '"')
    expected = "a type that JSON can express"
    fix = "Convert the field first, or remove it with without."
    raise UnsupportedTypeError(path if path else "write_json", expected, f"Arrow type {arrow}", fix)


def _items(array: pa.Array) -> pa.Array:
    """Returns the items of all lists that are not null."""
    if array.null_count and contains_type(
        array.type, lambda each: isinstance(each, pa.BaseExtensionType)
    ):
        # `flatten` cannot leave out null lists of these types.
        array = take_places(array, np.flatnonzero(array.is_valid().to_numpy(False)))
    return array.flatten()


def _surrounded(start: str, text: pa.StringArray, end: str) -> pa.StringArray:
    return pc.binary_join_element_wise(start, text, end, "")


def _objects(array: pa.StructArray, path: Path, allow_nan: bool) -> pa.StringArray:
    if array.null_count:
        # What is below a null is not written. `flatten` would give it a null, and so abort the
        # process where it is a union, which has no nulls of its own.
        valid = array.is_valid()
        present = valid.to_numpy(False)
        text = _objects(take_places(array, np.flatnonzero(present)), path, allow_nan)
        return text.take(pa.array(np.cumsum(present) - 1, pa.int64(), mask=~present))
    parts: list[str | pa.StringArray] = []
    for field, child in zip(array.type.fields, _children(array), strict=True):
        name = json.dumps(field.name, ensure_ascii=False)
        parts.append(f"{',' if parts else '{'}{name}:")
        parts.append(json_text(child, path / field.name, allow_nan))
    if not parts:
        return pa.array(["{}"] * len(array), pa.string())
    return pc.binary_join_element_wise(*parts, "}", "")


def _children(array: pa.StructArray) -> list[pa.Array]:
    return [array.field(i) for i in range(array.type.num_fields)]


def _with_nulls(text: pa.StringArray, array: pa.Array) -> pa.StringArray:
    if not array.null_count:
        return text
    return pc.if_else(array.is_valid(), text, pa.scalar(None, pa.string()))


def _joined(array: pa.Array, items: pa.StringArray) -> pa.StringArray:
    """Returns the text of the items of each list, with commas between them."""
    if pa.types.is_fixed_size_list(array.type):
        lengths = pc.if_else(array.is_valid(), array.type.list_size, 0).to_numpy(False)
    else:
        lengths = pc.list_value_length(array).fill_null(0).to_numpy()
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    text = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets), items), ",")
    return _with_nulls(text, array)


def _maps(array: pa.MapArray, path: Path, allow_nan: bool) -> pa.StringArray:
    if not is_text(decoded_type(array.type.key_type)):
        expected = "maps whose keys are text, as those of JSON objects"
        fix = "Give schema= with a list of records of key and value for this field."
        raise UnsupportedTypeError(path, expected, f"keys of Arrow type {array.type.key_type}", fix)
    # The entries of null maps are not part of `flatten` of a list.
    entries = pa.struct([array.type.key_field, array.type.item_field])
    lists = array.cast(pa.list_(pa.field("entries", entries, nullable=False)))
    keys, values = _children(lists.flatten())
    _expect_keys_once(pc.list_parent_indices(lists), keys, path)
    pairs = pc.binary_join_element_wise(
        json_text(keys, path / "key", allow_nan), json_text(values, path / "value", allow_nan), ":"
    )
    return _surrounded("{", _joined(lists, pairs), "}")


def _expect_keys_once(maps: pa.Array, keys: pa.Array, path: Path) -> None:
    """Raises if one map has a key twice, because an object cannot."""
    words = keys.cast(decoded_type(keys.type)).dictionary_encode()
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
    text = array.cast(pa.string())
    if not pc.all(finite).as_py() and len(array) > array.null_count:
        if not allow_nan:
            number = pc.index(finite, pa.scalar(False)).as_py()
            expected = "finite numbers, because JSON has no others"
            fix = "Mask or replace the value, or give allow_nan=True to write NaN and Infinity."
            raise FormatError(path, expected, str(array[number].as_py()), fix)
        text = pc.replace_substring(pc.replace_substring(text, "nan", "NaN"), "inf", "Infinity")
    # With the point, the number is read as a float again.
    is_integer = pc.equal(pc.floor(array), array)
    if pc.any(is_integer).as_py():
        pointed = pc.replace_substring_regex(text, r"^(-?[0-9]+)$", r"\1.0")
        text = pc.if_else(is_integer, pointed, text)
    return text


def _escaped(text: pa.StringArray) -> pa.StringArray:
    if not pc.any(pc.match_substring_regex(text, r'[\x00-\x1f"\\]')).as_py():
        return text
    for character, escaped in _ESCAPED.items():
        text = pc.replace_substring(text, character, escaped)
    return text
