"""Damaged Parquet files are refused by name, or read as pyarrow reads them."""

import random
import re
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.arrow_memory import (
    FOREIGN,
    NAMES,
    DamagedError,
    UnreadableError,
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.parquet"
        while not (columns := _written(dice, path)):
            pass
        whole = path.read_bytes()
        footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        spans = [(footer, len(whole)), (len(whole) - 8, len(whole)), (4, min(footer, 64))]
        path.write_bytes(damaged(dice, whole, spans))
        chosen = dice.choice([None, None, dice.sample(columns, 1)])
        once, error = outcome(lambda: plain(xt.read_parquet(path, chosen)))
        # A condition that all records fulfil, for which statistics and columns are read.
        field = pc.field(dice.choice(columns))
        always = field.is_valid() | field.is_null()
        kept, filter_error = outcome(lambda: plain(xt.read_parquet(path, chosen, filters=always)))
        size = dice.choice([1, 7, 1000])
        streamed, stream_error = outcome(lambda: _passed(path, size, chosen))
        with cases.theirs("pyarrow"):
            table = _theirs(path, chosen, pq.read_table)
            file = _theirs(path, chosen, _read_file)
            opens = _opens(path)
            has_none = opens and pq.read_metadata(path).num_rows == 0
    # A stream does not read a file whose footer counts no records.
    if streamed == [] and has_none:
        streamed, stream_error = once, error
    for got, error_of_it in ((once, error), (streamed, stream_error)):
        if isinstance(got, list):
            assert repr(got) in (repr(table), repr(file)) or "UTF8" in f"{table}{file}"
        else:
            assert not (opens and isinstance(table, list)), f"pyarrow reads it: {error_of_it!r}"
    # The column of the condition may be damaged, or not be known to it.
    assert repr(kept) == repr(once) or filter_error is not None
    return "refused" if once is None else "read"


def _written(dice, path):
    """Writes a table under some options; returns its columns, or none if it cannot be written."""
    version = dice.choice(["1.0", "2.0"])
    count = dice.choice([0, 1, 5, 50, 300])
    nulls = dice.choice([0.0, 0.0, 0.0, 0.1])
    types = [random_type(dice, 2, FOREIGN) for _ in range(dice.randint(1, 4))]
    arrays = [random_array(dice, t, count, nulls) for t in types]
    table = pa.table(arrays, dice.sample(NAMES, len(types)))
    options = dict(
        row_group_size=dice.choice([None, max(1, count // 3)]),
        compression=dice.choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        use_dictionary=dice.random() < 0.6,
        write_statistics=dice.random() < 0.7,
        store_schema=dice.random() < 0.6,
        write_page_index=dice.random() < 0.3,
        write_page_checksum=dice.random() < 0.2,
        data_page_version=version,
        data_page_size=dice.choice([None, 64]),
        version=dice.choice(["1.0", "2.4", "2.6"]),
    )
    try:
        pq.write_table(table, path, **options)
    except pa.ArrowNotImplementedError:
        return []
    return table.column_names


def outcome(call):
    """Returns what a call returns or else its error, if that is one that users can expect."""
    try:
        return call(), None
    except xt.errors.ExtensorError as error:
        return None, error
    except tf.errors.OpError as error:
        # TensorFlow writes the names of errors of Python into the messages of its own.
        named = re.search(r"\b(\w+): ", str(error))
        kind = getattr(xt.errors, named[1], None) if named else None
        if not kind:
            raise
        return None, error


def _passed(path, size, columns):
    return [record for batch in xt.data.parquet(path, size, columns) for record in plain(batch)]


def _theirs(path, columns, read_with):
    """Returns the records as pyarrow reads them, or why it does not."""
    try:
        table = read_with(path, columns=columns)
        names = table.column_names
        if names != (columns or names) or len(set(names)) < len(names):
            raise UnreadableError("other names")
        if table.num_rows != pq.read_metadata(path).num_rows:
            raise DamagedError("other records than the footer counts")
        values = [read(column) for column in table.columns]
        check(table)
    except Exception as error:
        return error
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _read_file(path, columns):
    return pq.ParquetFile(path, pre_buffer=False).read(columns)


def _opens(path):
    try:
        return bool(pq.ParquetFile(path))
    except Exception:
        return False
