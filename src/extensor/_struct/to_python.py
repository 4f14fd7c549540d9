"""Records as plain Python."""

from __future__ import annotations

import datetime
import decimal
import functools
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor import _tf
from extensor._authoring.rows import uncut_rows
from extensor._converter import converter
from extensor._path import Path, quote
from extensor._protocol.box import box, unbox
from extensor._struct.arrow_types import type_fits
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.masked import field_of, is_masked, is_union, under_masks
from extensor._struct.meaning import Unit, meaning_of
from extensor._struct.records import RecordsBase
from extensor._typing import FieldValue
from extensor.errors import DTypeError, FormatError

if TYPE_CHECKING:
    from extensor._struct.tensor import StructuredTensor

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
    if t.is_time64(arrow) and arrow.unit == "ns":
        return _each(_times_of_day)
    numbers = pa.int32() if arrow.bit_width == 32 else pa.int64()
    if t.is_timestamp(arrow) and arrow.tz is not None:
        return _each(lambda items: _with_zone(pa.array(items, numbers).view(arrow)))
    return _each(lambda items: pa.array(items, numbers).view(arrow).to_pylist())


class Time(datetime.time):
    """A time of day with nanoseconds, as pandas.Timestamp has for points in time.

    It is equal to the time without them, because a datetime.time has none.
    """

    nanosecond = 0

    @classmethod
    def of(cls, time: datetime.time, nanosecond: int) -> Time:
        """Returns a time with nanoseconds."""
        made = cls(time.hour, time.minute, time.second, time.microsecond)
        made.nanosecond = nanosecond
        return made

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, nanosecond={self.nanosecond})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        time = datetime.time(self.hour, self.minute, self.second, self.microsecond)
        return Time.of, (time, self.nanosecond)


def _times_of_day(items: list[Any]) -> list[Any]:
    times = pa.array(items, pa.int64()).view(pa.time64("ns")).to_pylist()
    pairs = zip(times, items, strict=True)
    return [Time.of(time, n % 1000) if n is not None and n % 1000 else time for time, n in pairs]


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
    return decode.args[0] if decode.func is _decoded else None


def _each(decode: Callable[[list[Any]], list[Any]]) -> Decoder:
    """Returns the Decoder that calls a function of a flat list, once."""
    return functools.partial(_decoded, decode)


def _decoded(decode: Callable[[list[Any]], list[Any]], plain: object) -> object:
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


as_text: Decoder = functools.partial(_decoded, _texts)
"""Returns the str of all bytes."""


Way = Callable[[Any, str], Decoders]
"""Returns how the values of a field of records are decoded."""


@refuse_deep_nesting("to_py")
def to_py(records: StructuredTensor, text: bool | None = None) -> Any:
    """Returns a dict for a record, and nested lists of dicts for a collection.

    Args:
        records: A StructuredTensor.
        text: Whether strings become str instead of bytes. None for those that are known to be text.

    Raises:
        DTypeError: If the tensors are part of a graph and hold no values (also a TypeError).
        FormatError: If a string is not UTF-8, or a time is not one of Python (also a ValueError).
    """
    expect_values(records, "to_py")
    try:
        return _records(records, lambda dense, name: decoders_of_field(dense, name, text), Path())
    except _UnfitError as error:
        at, decode = error.args
        raise _unfit(to_numbers(records), at.names, decode, records.rank) from error.__cause__


def to_numbers(records: StructuredTensor) -> Any:
    """Returns `to_py` with the numbers and bytes of the tensors, whatever they mean."""
    return _records(records, lambda dense, name: None, Path())


def expect_values(records: StructuredTensor, method: str) -> None:
    """Raises DTypeError if the tensors of records are part of a graph and hold no values.

    Args:
        records: A StructuredTensor.
        method: The name of the caller, the path in the error.
    """
    if holds_values(records):
        return
    at = next(filter(None, _symbolic_fields(records, Path())), Path())
    expected, fix = "tensors that hold values", f"Call {method} outside of tf.function."
    raise DTypeError(f"{method}: {at}" if at else method, expected, "tensors of a graph", fix)


def _symbolic_fields(records: Any, at: Path) -> Iterator[Path]:
    for name in records.field_names():
        value = records._uncut_field(name, at / name)
        if isinstance(value, RecordsBase):
            yield from _symbolic_fields(value, at / name)
        elif not holds_values(value):
            yield at / name


def holds_values(value: FieldValue) -> bool:
    """Returns whether the tensors of a value are not part of a graph. Makes no specs."""
    if isinstance(value, tf.Tensor):
        return hasattr(value, "numpy")
    if isinstance(value, RecordsBase):
        records: Any = value
        is_ragged = hasattr(records, "row_splits")
        parts = (records.row_splits, records.values) if is_ragged else records._row_parts()
        return all(map(holds_values, parts))
    if is_masked(value):
        return holds_values(value.values) and holds_values(value.mask)
    return all(hasattr(p, "numpy") for p in tf.nest.flatten(value, expand_composites=True))


def _records(records: Any, way: Way, at: Path) -> Any:
    """Returns records in as many nested lists as they have dimensions."""
    splits = getattr(records, "row_splits", None)
    if splits is not None:
        return _cut_list(_records(records.values, way, at), splits)
    names = records.field_names()
    if not records.rank:
        return {n: _field(records, n, way, at / n) for n in names}
    if not names:
        return _empty_records(records.shape.as_list())
    columns = [_field(records, n, way, at / n) for n in names]
    return _merge_columns(_dicts_of(names), columns, records.rank)


def _field(records: StructuredTensor, name: str, way: Way, at: Path) -> Any:
    value = records._field(name, at)
    if isinstance(value, RecordsBase):
        return _records(value, way, at)
    return _plain(value, way(records, name), records.rank, way, at)


def _cut_list(items: list[Any], splits: tf.Tensor) -> list[Any]:
    return [items[start:end] for start, end in itertools.pairwise(splits.numpy().tolist())]


def _plain(value: FieldValue, decoders: Decoders, rank: int, way: Way, at: Path) -> Any:
    """Returns a field's value in nested lists.

    Args:
        value: The value.
        decoders: How it is decoded.
        rank: The number of dimensions of the records around it.
        way: How the fields inside it are converted.
        at: The path of the field.
    """
    if isinstance(value, tf.Tensor) and decoders is None:  # most fields
        plain = value.numpy()
        return plain.tolist() if isinstance(plain, (np.ndarray, np.generic)) else plain
    if isinstance(value, RecordsBase):
        return _records(value, way, at)
    if is_masked(value):
        inner = under_masks(value)
        if isinstance(inner, RecordsBase):
            return _masked_records(value, inner, way, at)
        if is_union(inner):
            return _with_none(_plain(value.values, decoders, rank, way, at), _numbers(value.mask))
    elif is_union(value):
        by_name = (
            decoders if isinstance(decoders, Mapping) else dict.fromkeys(value.names, decoders)
        )
        rows = [iter(_plain(value.variants[n], by_name[n], 1, way, at)) for n in value.names]
        return _union_items(_numbers(value.codes), rows)
    if decoders is None or isinstance(decoders, Mapping):
        return _to_numbers(value, rank)
    try:
        return _decode(value, decoders, rank)
    except (OverflowError, ValueError):
        pass  # perhaps of a value that a null hides
    try:
        return decoders(_to_numbers(value, rank))
    except (OverflowError, ValueError) as error:
        raise _UnfitError(at, decoders) from error


def _decode(value: FieldValue, decode: Decoder, rank: int) -> Any:
    """Returns `_to_numbers` with all flat values decoded by one call, also those under a mask."""
    rows = uncut_rows(value) if isinstance(value, tf.RaggedTensor) or is_masked(value) else None
    if rows is not None:
        return _cut_list(_decode(rows[0], decode, 1), rows[1])
    if is_masked(value):
        return _with_none(_decode(value.values, decode, rank), _numbers(value.mask))
    is_tensor = isinstance(value, (tf.Tensor, tf.Variable))
    decode_flat = of_flat_lists(decode)
    if not is_tensor or not value.shape.rank or decode_flat is None:
        return decode(_to_numbers(value, rank))
    texts = converter("kept_texts")(value) if decode is as_text else None
    if texts is not None:
        return texts
    array = value.numpy()
    values = decode_flat(array.reshape(-1).tolist())
    if array.ndim == 1:
        return values
    made = np.empty(array.size, object)
    made[:] = values
    return made.reshape(array.shape).tolist()


def _to_numbers(value: FieldValue, rank: int) -> Any:
    """Returns a value of any type but records, with the numbers and bytes of its tensors."""
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return _numbers(value)
    if hasattr(value, "to_py"):
        return value.to_py()
    splits = getattr(value, "row_splits", None)
    if splits is not None:
        return _cut_list(_to_numbers(value.values, 1), splits)
    if not rank:
        return value
    spec = tf.type_spec_from_value(value)
    boxes = box(spec, value, 1)
    element = _tf.unstacked(spec)
    elements = [unbox(element, [b[i] for b in boxes]) for i in range(boxes[0].shape[0])]
    return elements if rank == 1 else [_to_numbers(each, rank - 1) for each in elements]


def _numbers(value: FieldValue) -> Any:
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    plain = value.numpy()
    return plain.tolist() if hasattr(plain, "tolist") else plain


def _masked_records(value: FieldValue, records: Any, way: Way, at: Path) -> Any:
    """Returns masked records, with None for those that are null."""
    try:
        plain = _records(records, way, at)
    except _UnfitError:  # perhaps of a value that a null hides: each field gets the mask first
        names, rank = records.field_names(), records.rank
        columns = [
            _plain(field_of(value, n, at / n), way(records, n), rank, way, at / n) for n in names
        ]
        plain = _merge_columns(_dicts_of(names), columns, rank)
    while is_masked(value):
        plain = _with_none(plain, _numbers(value.mask))
        value = value.values
    return plain


def _with_none(plain: Any, mask: object) -> Any:
    """Returns values with None where a mask in nested lists is False."""
    if plain is None or not isinstance(mask, list):
        return plain if mask else None
    valid: list[Any] = mask
    if not valid or isinstance(valid[0], bool):
        return [item if own else None for item, own in zip(plain, valid, strict=True)]
    return [_with_none(item, own) for item, own in zip(plain, valid, strict=True)]


def _union_items(codes: Any, rows: list[Any]) -> Any:
    if not isinstance(codes, list):
        return next(rows[codes])
    inner: list[Any] = codes
    return [_union_items(code, rows) for code in inner]


def _merge_columns(dicts: Callable[[list[Any]], list[Any]], columns: list[Any], rank: int) -> Any:
    """Returns the records of columns in nested lists; None where a list is null."""
    if rank == 0:
        return dicts([[column] for column in columns])[0]
    if rank == 1:
        return None if columns[0] is None else dicts(columns)
    if columns[0] is None:
        return None
    return [_merge_columns(dicts, list(row), rank - 1) for row in zip(*columns, strict=True)]


@functools.lru_cache(maxsize=256)
def _dicts_of(names: tuple[str, ...]) -> Callable[[list[Any]], list[Any]]:
    """Returns a function from columns to a list of dicts with these names.

    It is compiled for the names, as `collections.namedtuple` does: a dict with known keys takes
    half the time of `dict(zip(names, row))`.
    """
    if len(names) > 100:  # compiling takes time too
        return lambda columns: [
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        ]
    values = [f"v{i}" for i in range(len(names))]
    pairs = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    code = f"lambda columns: [{{{pairs}}} for {', '.join(values)}, in zip(*columns, strict=True)]"
    return eval(code, {"zip": zip})


def _empty_records(sizes: list[int]) -> Any:
    return [_empty_records(sizes[1:]) for _ in range(sizes[0])] if sizes else {}


class _UnfitError(Exception):
    """A value that cannot be decoded. Its arguments: the path of the field, and the Decoder."""


def _unfit(plain: Any, names: tuple[str, ...], decode: Decoder, rank: int) -> FormatError:
    """Returns the error for the first value of a field that cannot be decoded.

    Args:
        plain: The records with the numbers and bytes of their tensors.
        names: The path of the field.
        decode: The Decoder of the field.
        rank: The number of dimensions of the records.
    """
    text, record, value = next(
        place for place in _places(plain, "", names, rank, ()) if not _fits(decode, place[-1])
    )
    number = str(record[0]) if len(record) == 1 else str(list(record))
    at = f"{text}, record {number}" if record else text
    numbers = f"records[{', '.join(map(repr, names))}]"
    try:
        decode(value)
    except UnknownZoneError as error:
        fix = (
            "Install the package tzdata if the zone exists. Otherwise name another zone in "
            f"Arrow, by a cast, or take the numbers: {numbers}."
        )
        return FormatError(at, "a time in a zone that Python knows", f"zone {error.args[0]!r}", fix)
    except (OverflowError, ValueError):
        pass
    is_text = isinstance(value, bytes)
    expected = "text in UTF-8" if is_text else "a date or time that Python can hold"
    fix = f"Take the numbers: {numbers}."
    if is_text:
        fix = "Call to_py(text=False), which returns bytes."
    return FormatError(at, expected, f"{value!r}"[:43], fix)


def _fits(decode: Decoder, value: FieldValue) -> bool:
    try:
        decode(value)
    except (OverflowError, ValueError):
        return False
    return True


def _places(
    plain: object, text: str, names: tuple[str, ...], rank: int, record: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...], Any]]:
    """Yields each value of a field, with its path and the number of its record."""
    if isinstance(plain, list):
        items: list[Any] = plain
        for i, item in enumerate(items):
            if rank:
                yield from _places(item, text, names, rank - 1, (*record, i))
            else:
                yield from _places(item, f"{text}[*]", names, 0, record)
    elif names and isinstance(plain, dict):
        inner = f"{text}.{quote(names[0])}" if text else quote(names[0])
        yield from _places(plain[names[0]], inner, names[1:], 0, record)
    elif plain is not None and not names:
        yield text, record, plain
