"""Damaged Arrow IPC files and streams are refused by name, or read as pyarrow reads them."""

import random

import pyarrow as pa

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.arrow_memory import (
    ENCODED,
    FOREIGN,
    NAMES,
    check,
    plain,
    random_array,
    random_type,
    read,
)
from tests.fuzz.mutation import damaged


def test_damaged_files_are_refused_or_read_as_pyarrow_reads_them():
    ends = cases.run(__name__, cases.seeds(1000))
    assert {"refused", "read"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    is_stream = dice.random() < 0.5
    columns, whole = _written(dice, is_stream)
    # The schema comes first, and a file ends in a footer.
    spans = [(0, 400), (0, 400)] if is_stream else [(0, 400), (len(whole) - 400, len(whole))]
    spans = dice.choice([[], [(max(start, 0), stop) for start, stop in spans]])
    data = damaged(dice, whole, spans)
    chosen = dice.choice([None, None, dice.sample(columns, 1)])
    try:
        found, error = plain(xt.read_arrow(data, chosen)), None
    except xt.errors.ExtensorError as caught:
        found, error = None, caught
    with cases.theirs("pyarrow"):
        theirs = _theirs(data, chosen)
    if found is None:
        # pyarrow does not look for the end of a stream, nor at the text of words and names.
        stricter = any(word in str(error) for word in ("end mark", "UTF8", "utf-8"))
        assert stricter or not isinstance(theirs, list), f"pyarrow reads it: {error!r}"
        return "refused"
    assert repr(found) == repr(theirs) or "UTF8" in str(theirs), f"{theirs}"
    return "read"


def _written(dice, is_stream):
    """Returns the columns of a random table, and the bytes of a file of several batches of it."""
    while True:
        count = dice.choice([0, 1, 5, 50, 300, 1000])
        nulls = dice.choice([0.0, 0.0, 0.0, 0.1])
        has_batches = dice.random() < 0.9
        leaves = FOREIGN if has_batches else [*FOREIGN, *ENCODED]
        types = [random_type(dice, 2, leaves) for _ in range(dice.randint(1, 4))]
        arrays = [
            random_array(dice, t, count, nulls) if has_batches else pa.chunked_array([], t)
            for t in types
        ]
        table = pa.table(arrays, dice.sample(NAMES, len(types)))
        options = pa.ipc.IpcWriteOptions(
            compression=dice.choice([None, None, "lz4", "zstd"]),
            metadata_version=dice.choice([pa.ipc.MetadataVersion.V4, pa.ipc.MetadataVersion.V5]),
        )
        sink = pa.BufferOutputStream()
        make = pa.ipc.new_stream if is_stream else pa.ipc.new_file
        try:
            with make(sink, table.schema, options=options) as writer:
                if has_batches:
                    writer.write_table(table, dice.choice([None, count // 3 + 1]))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        return table.column_names, sink.getvalue().to_pybytes()


def _theirs(data, columns):
    """Returns the records as pyarrow reads them, or why it does not."""
    try:
        is_file = data[:6] == b"ARROW1"
        open_with = pa.ipc.open_file if is_file else pa.ipc.open_stream
        with open_with(pa.py_buffer(data)) as reader:
            # pyarrow does not look at the schema at the beginning of a file.
            if is_file and not pa.ipc.read_schema(pa.py_buffer(data[8:])).equals(reader.schema):
                raise ValueError("two schemas")
            # As a reader of a part does: damage of other columns does not matter.
            names = reader.schema.names
            if len(set(names)) < len(names):
                raise ValueError("a name twice")
            options = pa.ipc.IpcReadOptions(
                included_fields=[names.index(name) for name in columns] if columns else None
            )
        with open_with(pa.py_buffer(data), options=options) as reader:
            table = reader.read_all()
        table = table.select(columns) if columns else table
        values = [read(column) for column in table.columns]
        _check(table)
    except Exception as error:
        return error
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*values, strict=True)]


def _check(table):
    try:
        check(table)
    except pa.ArrowInvalid as error:
        # The mask counts, not the number of nulls that a file says it has. A decimal of too many
        # digits is the integer that it is.
        harmless = ("null_count value", "does not fit in precision")
        if not any(word in str(error) for word in harmless):
            raise
