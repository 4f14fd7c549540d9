"""Corrupted Arrow arrays are refused by name, or converted to just what they hold."""

import random

import numpy as np
import pyarrow as pa

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.arrow_memory import (
    BYTES,
    DENSE_UNION,
    ENCODED,
    FOREIGN,
    NAMES,
    TEXTS,
    UNION,
    DamagedError,
    plain,
    random_array,
    random_type,
    read,
)
from tests.fuzz.mutation import damaged

MORE = [*FOREIGN, *ENCODED]


def test_corrupt_arrays_are_refused_or_converted_to_what_they_hold():
    ends = cases.run(__name__, cases.seeds(1000))
    assert {"refused", "converted"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    if dice.random() < 0.05:
        return _refused(_Liar(dice) if dice.random() < 0.7 else _deep(dice))
    with cases.theirs("pyarrow"):
        while not (data := _corrupt(dice)):
            pass
        try:
            expected = _read(data)
        except Exception as error:
            expected = error
        try:
            data.validate(full=True)
            whole = isinstance(expected, list)
        except Exception:
            whole = False
    # An exporter passes no sizes of buffers, so nobody knows where corrupt memory ends. It passes
    # names up to their first NUL.
    is_exported = (
        whole
        and dice.random() < 0.3
        and "\0" not in str(data.type if isinstance(data, pa.Array) else data.schema)
    )
    try:
        got = plain(xt.from_arrow(_Exported(data) if is_exported else data))
    except xt.errors.ExtensorError as error:
        got = error
    if isinstance(got, list):
        assert isinstance(expected, list), f"converted, but {expected!r}"
        assert repr(got) == repr(expected)
        return "converted"
    # Arrow's own validation does not see all.
    is_told = "wrote these buffers" in str(got) or "chunks that do not" in str(got)
    assert is_told or not whole, f"whole, but {got!r}"
    return "refused"


def _refused(data):
    try:
        xt.from_arrow(data)
    except xt.errors.ExtensorError:
        return "refused"
    raise AssertionError("was taken")


class _Liar:
    """Hands over what is no Arrow data."""

    def __init__(self, dice):
        schema, array = pa.array([{"x": 1}]).__arrow_c_array__()
        stream = pa.table({"x": [1]}).__arrow_c_stream__()
        lies = [None, 3, "x", (), (schema,), (array, schema), (schema, None), (stream, array),
                pa.array([1]).__arrow_c_array__()]  # fmt: skip
        self._lie = dice.choice(lies)
        setattr(self, dice.choice(["__arrow_c_array__", "__arrow_c_stream__"]), self._export)

    def _export(self, requested_schema=None):
        return self._lie


def _deep(dice):
    """Returns records so deep that Python cannot follow."""
    array = pa.array([1])
    for _ in range(dice.choice([400, 2000])):
        if dice.random() < 0.5:
            array = pa.StructArray.from_arrays([array], ["x"])
        else:
            array = pa.FixedSizeListArray.from_arrays(array, 1)
    return pa.StructArray.from_arrays([array], ["x"])


class _Exported:
    """Data that another library hands over, which nobody has validated."""

    def __init__(self, data):
        if isinstance(data, pa.Table):
            self.__arrow_c_stream__ = data.__arrow_c_stream__
        else:
            self.__arrow_c_array__ = data.__arrow_c_array__


def _read(data):
    if isinstance(data, pa.Array):
        return read(data)
    if not data.num_columns:
        return [{}] * data.num_rows
    columns = [read(data.column(i)) for i in range(data.num_columns)]
    if any(len(column) != data.num_rows for column in columns):
        raise DamagedError("columns of different lengths")
    return [dict(zip(data.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _corrupt(dice):
    """Returns records with a fault, or nothing if pyarrow takes none with that fault."""
    names = dice.sample(NAMES, dice.randint(1, 3))
    arrow = pa.struct([(name, random_type(dice, 2, MORE)) for name in names])
    count, nulls = dice.choice([0, 1, 3, 8, 70, 600]), dice.choice([0.0, 0.0, 0.2])
    try:
        whole = _array(dice, arrow, count, nulls)
        if dice.random() < 0.3:
            return _spoiled(dice, whole)
        if dice.random() < 0.3:
            batch = _sent(dice, pa.RecordBatch.from_struct_array(whole))
        elif dice.random() < 0.7:
            columns = [whole.field(i) for i in range(len(arrow.fields))]
            at = dice.randrange(len(columns))
            columns[at] = _damaged(dice, columns[at])
            batch = pa.RecordBatch.from_arrays(columns, [f.name for f in arrow.fields])
        else:
            return _damaged(dice, whole)
        if dice.random() < 0.3:
            start = dice.randrange(batch.num_rows + 1)
            batch = batch.slice(start, dice.randrange(batch.num_rows - start + 1))
        if dice.random() < 0.3:
            other = pa.RecordBatch.from_struct_array(_array(dice, arrow, count, nulls))
            batches = [batch, other.cast(batch.schema)]
            return pa.Table.from_batches(dice.sample(batches, 2))
    except (
        pa.ArrowException,
        OSError,
        StopIteration,
        ValueError,
        TypeError,
        OverflowError,
        IndexError,
    ):
        return None
    return batch


def _array(dice, arrow, count, nulls):
    if arrow in (UNION, DENSE_UNION):
        kinds = pa.array([dice.randrange(2) for _ in range(count)], pa.int8())
        parts = [_array(dice, f.type, count, 0) for f in (arrow.field(0), arrow.field(1))]
        if arrow == UNION:
            return pa.UnionArray.from_sparse(kinds, parts)
        return pa.UnionArray.from_dense(kinds, pa.array(range(count), pa.int32()), parts)
    if pa.types.is_run_end_encoded(arrow):
        return pa.RunEndEncodedArray.from_arrays(
            pa.array([count] if count else [], pa.int32()),
            random_array(dice, pa.string(), bool(count)),
        )
    if pa.types.is_list_view(arrow):
        return pa.array([[1, 2]] * count, arrow)
    if pa.types.is_struct(arrow):
        columns = [_array(dice, f.type, count, nulls) for f in arrow.fields]
        return pa.StructArray.from_arrays(columns, fields=list(arrow.fields))
    return random_array(dice, arrow, count, nulls)


def _sent(dice, batch):
    """Returns a batch that was damaged on its way; IPC validates nothing that it reads."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        start = sink.tell()
        writer.write_batch(batch)
        stop = sink.tell()
    whole = sink.getvalue().to_pybytes()
    return pa.ipc.open_stream(damaged(dice, whole, [(start, stop)] * 5)).read_next_batch()


def _spoiled(dice, array):
    """Returns an array whose memory changed after pyarrow had looked at it."""
    memory = []
    copy = _over(array, memory)
    room = dice.choice([m for m in memory if m.size] or [np.zeros(1, np.uint8)])
    for _ in range(dice.choice([1, 2, 8])):
        room[dice.randrange(room.size)] = dice.choice([0, 1, 0x7F, 0x80, 0xFF])
    return copy


def _over(array, memory):
    """Returns a copy of an array over memory that can be written to."""
    children, buffers = _parts(array)
    for i, buffer in enumerate(buffers):
        if buffer is not None:
            memory.append(np.frombuffer(buffer, np.uint8).copy())
            buffers[i] = pa.py_buffer(memory[-1])
    children = [_over(child, memory) for child in children]
    if pa.types.is_dictionary(array.type):
        words = _over(array.dictionary, memory)
        return pa.DictionaryArray.from_buffers(array.type, len(array), buffers, words, -1)
    return pa.Array.from_buffers(array.type, len(array), buffers, children=children or None)


def _damaged(dice, array):
    """Returns an array that was rebuilt with a fault in it or in an array inside of it."""
    children, buffers = _parts(array)
    arrow, length, offset, nulls = array.type, len(array), array.offset, -1
    words = array.dictionary if pa.types.is_dictionary(arrow) else None
    inner = [*range(len(children))] + ([-1] if words is not None else [])
    if inner and dice.random() < 0.7:
        at = dice.choice(inner)
        if at < 0:
            words = _damaged(dice, words)
        else:
            children[at] = _damaged(dice, children[at])
    else:
        match dice.choice(["buffer"] * 6 + ["length", "offset", "nulls", "children", "type"]):
            case "length":
                length = dice.choice([0, -1, length - 1, length + 1, 2 * length, 1 << 31, 1 << 62])
            case "offset":
                offset = dice.choice([-1, 1, length, 1 << 31, 1 << 62])
            case "nulls":
                nulls = dice.choice([0, 1, length, length + 1, 1 << 40])
            case "children":
                children = [child.slice(0, dice.randrange(len(child) + 1)) for child in children]
                words = words and words.slice(0, dice.randrange(len(words) + 1))
            case "type":
                arrow = dice.choice([*TEXTS, *BYTES, pa.int64(), pa.float16(), pa.bool_(), arrow])
            case "buffer":
                at = dice.randrange(len(buffers))
                buffers[at] = _damaged_buffer(dice, buffers[at])
    if words is not None:
        return pa.DictionaryArray.from_buffers(arrow, length, buffers, words, nulls, offset)
    return pa.Array.from_buffers(arrow, length, buffers, nulls, offset, children or None)


def _parts(array):
    """Returns the arrays inside of an array, and its own buffers."""
    arrow, t = array.type, pa.types
    if t.is_struct(arrow) or t.is_union(arrow):
        children = [array.field(i) for i in range(arrow.num_fields)]
    elif t.is_run_end_encoded(arrow):
        children = [array.run_ends, array.values]
    else:
        children = [array.values] if hasattr(array, "values") else []
    buffers = array.buffers()
    return children, buffers[: len(buffers) - sum(len(child.buffers()) for child in children)]


def _damaged_buffer(dice, buffer):
    if buffer is None:
        return pa.py_buffer(dice.randbytes(dice.choice([0, 1, 8, 64])))
    if buffer.size < 4 or dice.random() < 0.5:
        return pa.py_buffer(damaged(dice, buffer.to_pybytes())) if dice.random() < 0.9 else None
    code = "i4" if buffer.size % 8 or dice.random() < 0.5 else "i8"
    numbers = np.frombuffer(buffer, code, buffer.size // np.dtype(code).itemsize).copy()
    low, high = np.iinfo(code).min, np.iinfo(code).max
    at = dice.randrange(len(numbers))
    odd = [-1, low, high, 1 << 30, int(numbers[at]) + 1, int(numbers[at]) - 1]
    numbers[at] = min(max(dice.choice(odd), low), high)
    return pa.py_buffer(numbers)
