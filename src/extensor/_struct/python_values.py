"""Python objects of the numbers and bytes of a field: dates, str, Decimal, as its type says."""

from __future__ import annotations

import decimal
import functools
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from extensor._struct.arrow_types import type_fits
from extensor._struct.meaning import Unit, meaning_of
from extensor._struct.records import RecordsBase

Decoder = functools.partial[Any]
"""Returns the Python objects of numbers or bytes in nested lists, in which None stays None."""

Decoders = Decoder | Mapping[str, Any] | None
"""How the values of a field are decoded; of a union, those of each variant. None for no change."""


def _texts(items: list[Any]) -> list[Any]:
    """Returns the str of bytes in UTF-8; all other values stay."""
    try:
        return list(map(bytes.decode, items))
    except TypeError:  # not all are bytes
        kinds = set(map(type, items))
    if dict in kinds:  # of a type of a user
        return [{n: as_text(v) for n, v in i.items()} if type(i) is dict else i for i in items]
    if bytes not in kinds:
        return items
    return [item.decode() if type(item) is bytes else item for item in items]


def decoders_of_field(records: RecordsBase, name: str, text: bool | None = None) -> Decoders:
    """Returns how the values of a field of records are decoded."""
    dense = records._record
    kept = dense._metadata.types.get(name)
    decoders = decoders_of(None if kept is None else kept.field.type, text)
    if decoders is None or kept is None or type_fits(kept, dense._columns[name], dense.rank):
        return decoders
    return decoders_of(None, text)


def decoders_of(arrow: pa.DataType | None, text: bool | None) -> Decoders:
    """Returns how the values of a field are decoded.

    Args:
        arrow: The Arrow type of the field, or None if it has none.
        text: Whether strings become str. None for those that are known to be text.
    """
    if arrow is None:
        return as_text if text else None
    try:
        return _decoders_of(arrow, text)
    except TypeError:  # an extension type without a hash
        return _decoders_of.__wrapped__(arrow, text)


@functools.lru_cache(maxsize=4096)
def _decoders_of(arrow: pa.DataType, text: bool | None) -> Decoders:
    t = pa.types
    if isinstance(arrow, pa.UuidType):
        return _each(lambda items: [None if i is None else uuid.UUID(bytes=i) for i in items])
    if isinstance(arrow, pa.BaseExtensionType):
        return decoders_of(arrow.storage_type, text)
    if hasattr(arrow, "value_type") and not t.is_map(arrow):
        return decoders_of(arrow.value_type, text)
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
    if t.is_decimal(arrow) and arrow.precision > 18:
        return functools.partial(_wide_decimals, unit.size)
    if t.is_decimal(arrow):
        arrow = pa.decimal64(18, arrow.scale)
    numbers = pa.int32() if arrow.bit_width == 32 else pa.int64()
    if t.is_timestamp(arrow) and arrow.tz is not None:
        return _each(lambda items: _with_zone(pa.array(items, numbers).view(arrow)))
    return _each(lambda items: pa.array(items, numbers).view(arrow).to_pylist())


class UnknownZoneError(ValueError):
    """A time zone that Python does not know; its argument is the name."""


def _with_zone(times: pa.Array) -> list[Any]:
    try:
        return times.to_pylist()
    except (ValueError, KeyError) as error:  # the latter of pytz, which pyarrow uses if it is there
        raise UnknownZoneError(times.type.tz) from error


def _wide_decimals(scale: int, plain: Any) -> object:
    """Returns decimals of several integers each: 64 bits, the lowest first, two's complement."""
    if plain is None:
        return None
    parts: list[Any] = plain
    if not parts or not isinstance(parts[0], int):
        return [_wide_decimals(scale, part) for part in parts]
    unsigned = sum((part & (2**64 - 1)) << 64 * i for i, part in enumerate(parts))
    whole = unsigned - (1 << 64 * len(parts)) if parts[-1] < 0 else unsigned
    sign, digits, _ = decimal.Decimal(whole).as_tuple()
    return decimal.Decimal((sign, digits, -scale))


def of_flat_lists(decode: Decoder) -> Callable[[list[Any]], list[Any]] | None:
    """Returns what a Decoder does with a flat list, if it makes one object of each value."""
    return decode.args[0] if decode.func is _decode else None


def _each(decode: Callable[[list[Any]], list[Any]]) -> Decoder:
    """Returns the Decoder that calls a function of a flat list, once."""
    return functools.partial(_decode, decode)


def _decode(decode: Callable[[list[Any]], list[Any]], plain: object) -> object:
    if not isinstance(plain, list):
        return decode([plain])[0]
    items: list[Any] = plain
    if list not in set(map(type, items)):
        return decode(items)
    return _place(items, iter(decode(list(_leaves(items)))))


def _leaves(items: list[Any]) -> Iterator[Any]:
    """Returns the values in nested lists, one after another; None may be in place of a list."""
    kinds = set(map(type, items))
    if list not in kinds:
        return iter(items)
    if kinds == {list}:
        return _leaves(list(itertools.chain.from_iterable(items)))
    return itertools.chain.from_iterable(_leaves(i if isinstance(i, list) else [i]) for i in items)


def _place(items: list[Any], values: Iterator[Any]) -> list[Any]:
    if list not in set(map(type, items)):
        return list(itertools.islice(values, len(items)))
    return [_place(i, values) if isinstance(i, list) else next(values) for i in items]


as_text: Decoder = functools.partial(_decode, _texts)
"""Returns the str of all bytes."""
