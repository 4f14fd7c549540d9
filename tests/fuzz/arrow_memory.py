"""Random Arrow arrays, and a slow reader of their memory that trusts nothing in it."""

import bisect
import contextlib
import itertools

import numpy as np
import pyarrow as pa

import extensor as xt
from extensor._struct.to_python import to_numbers

NUMBERS = {
    pa.int8(): "i1", pa.int16(): "i2", pa.int32(): "i4", pa.int64(): "i8",
    pa.uint8(): "u1", pa.uint16(): "u2", pa.uint32(): "u4", pa.uint64(): "u8",
    pa.float16(): "f2", pa.float32(): "f4", pa.float64(): "f8",
}  # fmt: skip
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
WORDS = ["", "a", "a\0", "\0", "flour", "brown sugar", "crème fraîche",
         "a text too long for a view" * 3]  # fmt: skip
NAMES = ["c0", "c1", "", "null", "a.b", "shape"]
PLACES = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()]
# Less frequent types.
FOREIGN = [
    pa.timestamp("us"), pa.date32(), pa.decimal128(9, 2), pa.null(),
    pa.map_(pa.string(), pa.int32()), pa.duration("s"),
]  # fmt: skip

UNION = pa.sparse_union([pa.field("a", pa.int32()), pa.field("b", pa.string())])
DENSE_UNION = pa.dense_union([pa.field("a", pa.int32()), pa.field("b", pa.string())])
ENCODED = [UNION, DENSE_UNION, pa.run_end_encoded(pa.int32(), pa.string()),
           pa.list_view(pa.int8())]  # fmt: skip


class DamagedError(Exception):
    """What an array says of itself does not fit its memory."""


class UnreadableError(Exception):
    """An array has nulls, or a type without counterpart."""


def random_type(random, depth=3, leaves=()):
    """Returns a type; `leaves` are more ones that may be in it."""
    kinds = ["number"] * 3 + ["text", "bytes", "bool", "category"]
    kinds += ["list", "large list", "fixed list", "struct", "struct"] * (depth > 0)
    match random.choice(kinds) if not leaves or random.random() < 0.95 else "leaf":
        case "number":
            return random.choice(list(NUMBERS))
        case "text":
            return random.choice(TEXTS)
        case "bytes":
            return random.choice(BYTES)
        case "bool":
            return pa.bool_()
        case "category":
            return pa.dictionary(random.choice(PLACES), random.choice([*TEXTS[:2], *BYTES[:2]]))
        case "leaf":
            return random.choice(leaves)
        case "list":
            return pa.list_(random_type(random, depth - 1, leaves))
        case "large list":
            return pa.large_list(random_type(random, depth - 1, leaves))
        case "fixed list":
            return pa.list_(random_type(random, depth - 1, leaves), random.randint(1, 3))
        case _:
            names = random.sample(NAMES, random.randint(1, 3))
            return pa.struct([(name, random_type(random, depth - 1, leaves)) for name in names])


def random_array(random, arrow_type, count, nulls=0.0):
    """Returns an array of `count` values, of which each is null with the chance `nulls`."""
    t = pa.types
    if t.is_dictionary(arrow_type):
        words = random.sample(WORDS, random.randint(1, len(WORDS)))
        places = [_or_null(random, nulls, random.randrange(len(words))) for _ in range(count)]
        return pa.DictionaryArray.from_arrays(
            pa.array(places, arrow_type.index_type),
            pa.array([word.encode() for word in words]).cast(arrow_type.value_type),
        )
    if t.is_struct(arrow_type):
        columns = [random_array(random, f.type, count, nulls) for f in arrow_type.fields]
        mask = pa.array([random.random() < nulls for _ in range(count)], pa.bool_())
        return pa.StructArray.from_arrays(
            columns, fields=list(arrow_type.fields), mask=mask if nulls else None
        )
    if t.is_fixed_size_list(arrow_type):
        size = arrow_type.list_size
        values = random_array(random, arrow_type.value_type, count * size, nulls)
        return pa.FixedSizeListArray.from_arrays(values, type=arrow_type)
    if t.is_list(arrow_type) or t.is_large_list(arrow_type):
        lengths = [random.choice([0, 1, 2, 5]) for _ in range(count)]
        offsets = [0, *itertools.accumulate(lengths)]
        places = [*(_or_null(random, nulls, at) for at in offsets[:-1]), offsets[-1]]
        values = random_array(random, arrow_type.value_type, offsets[-1], nulls)
        large = t.is_large_list(arrow_type)
        kind, width = (pa.LargeListArray, pa.int64()) if large else (pa.ListArray, pa.int32())
        return kind.from_arrays(pa.array(places, width), values, type=arrow_type)
    return pa.array([_or_null(random, nulls, _value(random, arrow_type)) for _ in range(count)],
                    arrow_type)  # fmt: skip


def _or_null(random, nulls, value):
    return None if nulls and random.random() < nulls else value


def _value(random, arrow_type):
    t = pa.types
    if arrow_type in TEXTS:
        return random.choice(WORDS)
    if arrow_type in BYTES:
        return random.choice([b"\xff", random.choice(WORDS).encode()])
    if t.is_boolean(arrow_type):
        return random.random() < 0.5
    if t.is_floating(arrow_type):
        number = random.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), random.gauss(0, 100)])
        return np.float16(number) if t.is_float16(arrow_type) else number
    if t.is_null(arrow_type):
        return None
    if t.is_map(arrow_type):
        return [(word, i) for i, word in enumerate(random.sample(WORDS, 2))]
    numbers = [0, 1, 7, random.randrange(100)]
    if arrow_type in (pa.int64(), pa.uint64()):  # more than a float64 tells apart
        numbers += [2**53 + 1, 2**62 + 1, -(2**53) - 1 if arrow_type == pa.int64() else 2**64 - 1]
    return random.choice(numbers)


def plain(records):
    """Returns the numbers and bytes of records, and calls `to_py`, which may name a bad value."""
    with contextlib.suppress(xt.errors.FormatError):
        records.to_py()
    return to_numbers(records)


def read(array):
    """Returns the values of an array as `plain` does: numbers, bytes, lists and dicts.

    Raises:
        DamagedError: If a value that is looked at is outside of the array's memory.
        UnreadableError: If there is a null, or a type that extensor has no counterpart for.
    """
    if isinstance(array, pa.ChunkedArray):
        if not array.num_chunks:
            return _nothing(array.type)
        return [value for chunk in array.chunks for value in read(chunk)]
    arrow, count, first, t = array.type, len(array), array.offset, pa.types
    if count == 0:
        return _nothing(arrow)
    if t.is_null(arrow) or t.is_union(arrow):
        raise UnreadableError(arrow)
    buffers = array.buffers()
    if buffers[0] is not None and not all(_bits(buffers[0], first, count)):
        raise UnreadableError("null")
    if arrow in NUMBERS:
        return _numbers(buffers[1], NUMBERS[arrow], first, count).tolist()
    if t.is_temporal(arrow):
        return _numbers(buffers[1], f"i{arrow.bit_width // 8}", first, count).tolist()
    if arrow == pa.decimal128(9, 2):
        rows = _numbers(buffers[1], "i8", 2 * first, 2 * count).reshape(-1, 2)
        if (rows[:, 1] != rows[:, 0] >> 63).any():
            raise DamagedError("more digits")
        return rows[:, 0].tolist()
    if t.is_boolean(arrow):
        return _bits(buffers[1], first, count)
    if arrow in (pa.string_view(), pa.binary_view()):
        return [_viewed(view, buffers[2:]) for view in _views(buffers[1], first, count)]
    if arrow in TEXTS or arrow in BYTES:
        size = 0 if buffers[2] is None else buffers[2].size
        wide = t.is_large_string(arrow) or t.is_large_binary(arrow)
        offsets = _offsets(buffers[1], wide, first, count, size)
        data = b"" if buffers[2] is None else buffers[2].to_pybytes()
        return [data[a:b] for a, b in itertools.pairwise(offsets)]
    if t.is_dictionary(arrow):
        places, words = read(array.indices), array.dictionary
        if any(not 0 <= place < len(words) for place in places):
            raise DamagedError("a place outside of the dictionary")
        return [read(words.slice(place, 1))[0] for place in places]
    if t.is_struct(arrow):
        columns = [read(array.field(i)) for i in range(arrow.num_fields)]
        if any(len(column) < count for column in columns):
            raise DamagedError("a short column")
        names = [field.name for field in arrow.fields]
        if len(set(names)) < len(names):
            raise UnreadableError("two fields of one name")
        return [{n: c[i] for n, c in zip(names, columns, strict=True)} for i in range(count)]
    if t.is_fixed_size_list(arrow):
        size = arrow.list_size
        if len(array.values) < (first + count) * size:
            raise DamagedError("too few values")
        inner = read(array.values.slice(first * size, count * size))
        return [inner[i * size : (i + 1) * size] for i in range(count)]
    if t.is_list_view(arrow):
        offsets = _numbers(buffers[1], "i4", first, count).tolist()
        sizes = _numbers(buffers[2], "i4", first, count).tolist()
        views = list(zip(offsets, sizes, strict=True))
        if any(at < 0 or size < 0 or at + size > len(array.values) for at, size in views):
            raise DamagedError("a view of a list")
        return [read(array.values.slice(at, size)) for at, size in views]
    if t.is_run_end_encoded(arrow):
        ends, values = read(array.run_ends), array.values
        if ends[0] < 1 or sorted(set(ends)) != ends or ends[-1] < first + count:
            raise DamagedError("ends of runs")
        if len(values) < len(ends):
            raise DamagedError("too few runs")
        runs = [bisect.bisect_right(ends, first + i) for i in range(count)]
        return [read(values.slice(run, 1))[0] for run in runs]
    if t.is_list(arrow) or t.is_large_list(arrow) or t.is_map(arrow):
        offsets = _offsets(buffers[1], t.is_large_list(arrow), first, count, len(array.values))
        inner = read(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
        return [inner[a - offsets[0] : b - offsets[0]] for a, b in itertools.pairwise(offsets)]
    raise UnreadableError(arrow)


def _nothing(arrow):
    """Returns no values of a type, if it is one that extensor has a counterpart for."""
    t = pa.types
    if t.is_union(arrow):
        raise UnreadableError(arrow)
    if t.is_map(arrow):
        _nothing(arrow.key_type)
        _nothing(arrow.item_type)
    elif t.is_struct(arrow):
        if len({field.name for field in arrow.fields}) < arrow.num_fields:
            raise UnreadableError("two fields of one name")
        for field in arrow.fields:
            _nothing(field.type)
    elif (
        t.is_fixed_size_list(arrow)
        or t.is_list(arrow)
        or t.is_large_list(arrow)
        or t.is_dictionary(arrow)
        or t.is_run_end_encoded(arrow)
        or t.is_list_view(arrow)
    ):
        _nothing(arrow.value_type)
    return []


def check(data):
    """Raises what Arrow says of data, unless it is that text is not UTF-8: tensors hold bytes."""
    try:
        data.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise


def _bytes(buffer, first, count):
    if buffer is None or first < 0 or count < 0 or buffer.size < first + count:
        raise DamagedError("a short buffer")
    return buffer.slice(first, count).to_pybytes()


def _bits(buffer, first, count):
    whole = np.frombuffer(_bytes(buffer, first // 8, -(-(first % 8 + count) // 8)), np.uint8)
    bits = np.unpackbits(whole, bitorder="little")[first % 8 : first % 8 + count]
    return bits.astype(bool).tolist()


def _numbers(buffer, code, first, count):
    width = np.dtype(code).itemsize
    return np.frombuffer(_bytes(buffer, first * width, count * width), code)


def _offsets(buffer, wide, first, count, limit):
    offsets = _numbers(buffer, "i8" if wide else "i4", first, count + 1).tolist()
    if offsets[0] < 0 or offsets[-1] > limit or sorted(offsets) != offsets:
        raise DamagedError("offsets")
    return offsets


def _views(buffer, first, count):
    whole = _bytes(buffer, 16 * first, 16 * count)
    return [whole[i : i + 16] for i in range(0, len(whole), 16)]


def _viewed(view, data):
    size, _, place, offset = np.frombuffer(view, "i4").tolist()
    if 0 <= size <= 12:
        return view[4 : 4 + size]
    if size < 0 or not 0 <= place < len(data) or offset < 0:
        raise DamagedError("a view")
    return _bytes(data[place], offset, size)
