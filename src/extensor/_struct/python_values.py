"""Python objects of the numbers and bytes of a field: dates, str, Decimal, as its type says."""

# This file reads attributes of records that are private to this package.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import decimal
import functools
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from extensor._struct.arrow_types import fits
from extensor._struct.meaning import Unit, meaning_of

Decoder = Callable[[Any], Any]
"""Returns the Python objects of numbers or bytes in nested lists, in which None stays None."""

Decoders = Decoder | Mapping[str, Any] | None
"""How the values of a field are decoded; of a union, those of each variant. None for no change."""


def _texts(items: list[Any]) -> list[Any]:
    """Returns the str of bytes in UTF-8; all other values stay."""
    try:
        return list(map(bytes.decode, items))
    except TypeError:  # some are None, or no bytes
        return [
            item.decode()
            if isinstance(item, bytes)
            else {name: as_text(inner) for name, inner in item.items()}
            if isinstance(item, dict)
            else item
            for item in items
        ]


def type_of_field(records: Any, name: str) -> Any:
    """Returns the Arrow type of a field of dense records; None if it has none."""
    kept: Any = records._metadata.types.get(name)
    if kept is None or not fits(kept, records._columns[name], records.rank):
        return None
    return kept.field.type


def decoders_of(arrow: Any, text: bool | None) -> Decoders:
    """Returns how the values of a field are decoded.

    Args:
        arrow: The Arrow type of the field, or None if it has none.
        text: Whether strings become str. None for those that are known to be text.
    """
    t = pa.types
    while arrow is not None and (hasattr(arrow, "value_type") and not t.is_map(arrow)):
        arrow = arrow.value_type
    if arrow is None:
        return as_text if text else None
    if isinstance(arrow, pa.UuidType):
        return _each(lambda items: [None if i is None else uuid.UUID(bytes=i) for i in items])
    if isinstance(arrow, pa.BaseExtensionType):
        return decoders_of(arrow.storage_type, text)
    if t.is_union(arrow):
        fields = (arrow.field(i) for i in range(arrow.num_fields))
        return {field.name: decoders_of(field.type, text) for field in fields}
    if t.is_string(arrow) or t.is_large_string(arrow) or t.is_string_view(arrow):
        return None if text is False else as_text
    if t.is_binary(arrow) or t.is_large_binary(arrow) or t.is_binary_view(arrow):
        return as_text if text else None
    unit = meaning_of(arrow)
    if not isinstance(unit, Unit):
        return as_text if text else None
    if t.is_decimal(arrow):
        return lambda plain: _decimals(plain, unit.size, arrow.precision > 18)
    numbers = pa.int32() if arrow.bit_width == 32 else pa.int64()
    return _each(lambda items: pa.array(items, numbers).view(arrow).to_pylist())


def _decimals(plain: Any, scale: int, is_wide: bool) -> Any:
    if plain is None:
        return None
    if isinstance(plain, list):
        parts: list[Any] = plain
        if not (is_wide and parts and isinstance(parts[0], int)):
            return [_decimals(part, scale, is_wide) for part in parts]
        # 64 bits each, the lowest first, in two's complement
        unsigned = sum((part & (2**64 - 1)) << 64 * i for i, part in enumerate(parts))
        plain = unsigned - (1 << 64 * len(parts)) if parts[-1] < 0 else unsigned
    sign, digits, _ = decimal.Decimal(plain).as_tuple()
    return decimal.Decimal((sign, digits, -scale))


def _each(decode: Callable[[list[Any]], list[Any]]) -> Decoder:
    """Returns the Decoder that calls a function of a flat list, once."""
    return functools.partial(_decoded, decode)


def _decoded(decode: Callable[[list[Any]], list[Any]], plain: Any) -> Any:
    if not isinstance(plain, list):
        return decode([plain])[0]
    items: list[Any] = plain
    if not any(map(_is_list, items)):
        return decode(items)
    return _placed(items, iter(decode(list(_leaves(items)))))


def _is_list(item: Any) -> bool:
    return isinstance(item, list)


def _leaves(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if isinstance(item, list):
            yield from _leaves(item)
        else:
            yield item


def _placed(items: list[Any], values: Iterator[Any]) -> list[Any]:
    if not any(map(_is_list, items)):
        return list(itertools.islice(values, len(items)))
    return [_placed(i, values) if isinstance(i, list) else next(values) for i in items]


as_text: Decoder = functools.partial(_decoded, _texts)
"""Returns the str of all bytes."""
