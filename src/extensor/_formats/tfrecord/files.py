"""Reading and writing of TFRecord files of Examples and SequenceExamples."""

from __future__ import annotations

import array
import bisect
import contextlib
import gzip
import itertools
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.batches import num_records_of
from extensor._arrow.wanted_table import WantedTable
from extensor._files.files import File, FilePath, fetched_ahead, files_at, local_path
from extensor._files.output import atomic_path
from extensor._files.part_cache import Cache
from extensor._files.store import READ_AHEAD, reading_as, reading_of
from extensor._formats.tfrecord.layout import EXAMPLE, SEQUENCE, infer_schema, parse_error
from extensor._formats.tfrecord.parsed import Parser, wanted_spec, with_nullable
from extensor._formats.tfrecord.serialized import to_tf_example, to_tf_sequence_example
from extensor._path import PathLike
from extensor._progress import progress_bar
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._tf._tf_data import records_of_file
from extensor._tf._tf_eager import read_eagerly
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, FormatError, StructureError

_FRAME = 16
"""Bytes around each record: its length, and two checksums."""

_LENGTH = struct.Struct("<Q")
_BATCH = 4096
_CHUNK = 1 << 20


@read_eagerly
def read_tfrecord(
    paths: FilePath | Iterable[FilePath],
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    keys: Mapping[PathLike, str] | None = None,
    context: Iterable[PathLike] = (),
    message: str | None = None,
    *,
    read_ahead: int = READ_AHEAD,
    cache: FilePath | Cache | None = None,
    progress: bool | None = None,
) -> StructuredTensor:
    """Returns the records of TFRecord files of tf.Examples or tf.SequenceExamples.

    Gzip and zlib compression are detected. Without a schema, all records are parsed twice, the
    first time in Python: give `schema=` for large files. A feature that has one value wherever it
    occurs is a field without a list then; all others are lists.

    Args:
        paths: Files, folders, patterns or URLs.
        columns: Paths of the fields to read. Default: all.
        schema: The spec of the records, or an Arrow schema. Default: that of the features.
        nulls: The policy for features that are missing, or a dict of policies by path: `"error"`
            (the default), `"mask"`, or `xt.fill(value)`. With a spec, its MaskedTensors are masked.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields. It needs a schema.
        context: The paths of the lists that are features of the context of a SequenceExample.
            Without a schema, they are found out.
        message: "Example" or "SequenceExample". Default: SequenceExample if a record has feature
            lists.
        read_ahead: How many bytes of files that are not local are fetched before they are read, or
            the next row group or 8 MB if these are larger; 0 for none. Default: 12 MB.
        cache: A folder of the disk in which the parts of files that are not local are kept that
            were read, or an `xt.data.Cache` with its size. Default: none.
        progress: Whether to show a progress bar while the schema is found out. Default: on a
            terminal and in a notebook, if tqdm is installed, after a second.

    Returns:
        A StructuredTensor of shape `[number of records]`.

    Raises:
        FormatError: If a file is no TFRecord file, or is damaged or truncated, or a record is not
            the message (also a ValueError). A file that was cut exactly between two records is
            complete: the format does not store the number of records.
        MissingFileError: If a path does not exist (also a FileNotFoundError).
        StructureError: If there is no file, or no record and no schema (also a ValueError).
        DTypeError, NullError, FieldError, UnsupportedTypeError: As in `from_tf_example`.

    >>> import extensor as xt
    >>> path = "recipes.tfrecord"
    >>> xt.write_tfrecord(xt.struct.constant([{"title": "Tea", "minutes": [5, 2]}]), path)
    >>> xt.read_tfrecord(path).to_py()
    [{'minutes': [5, 2], 'title': b'Tea'}]
    """
    expect_message(message)
    given = WantedTable(columns, schema, nulls, row_splits_dtype)
    with reading_as(reading_of(read_ahead, cache)):
        files = files_at(paths)
    with fetched_ahead(files) as opened:
        parts = [_serialize(file) for file in opened]
    ends = np.cumsum([int(tf.size(part)) for part in parts]).tolist()
    serialized = tf.concat(parts, 0)

    def name_of(number: int) -> str:
        file = bisect.bisect_right(ends, number)
        return f"record {number - (ends[file - 1] if file else 0)} of {files[file].path}"

    if message is None:
        message, lacking = message_of(serialized, name_of)
    else:
        lacking = np.zeros(0, np.int64)
    messages = _with_bar(serialized, progress)
    found, context = wanted_features(given, messages, message, name_of, keys, context)
    wanted = with_nullable(given, found)
    if schema is None:
        spec: StructuredTensorSpec = wanted.spec(found)
    else:
        spec = wanted_spec(wanted, schema, row_splits_dtype)
    parser = Parser(spec, message, wanted.nulls, keys, context)
    if message == SEQUENCE and lacking.size:
        number = parser.first_with_lists_in_context(tf.gather(serialized, lacking))
        if number is not None:
            expected = "a tf.SequenceExample, as other records of the files"
            fix = 'Give message="Example" or "SequenceExample", or context=.'
            record = name_of(int(lacking[number]))
            raise FormatError(record, expected, "a tf.Example with a list", fix)
    return given.settle(parser.records(serialized, name_of))


def _with_bar(serialized: tf.Tensor, progress: bool | None) -> Iterator[bytes]:
    count = int(tf.size(serialized))
    with progress_bar("read_tfrecord, schema", progress, count) as advance:
        for message in serialized.numpy():
            yield message
            advance(1)


def wanted_features(
    wanted: WantedTable,
    messages: Iterable[bytes],
    message: str,
    name_of: Callable[[int], str],
    keys: Mapping[PathLike, str] | None,
    context: Iterable[PathLike],
    find_text: bool = False,
) -> tuple[pa.Schema, Iterable[PathLike]]:
    """Returns the schema of the records, and the paths of lists in the context.

    Args:
        wanted: The arguments `columns` and `schema`.
        messages: The serialized messages, which are parsed if no schema is given.
        message: `EXAMPLE` or `SEQUENCE`.
        name_of: Returns the name of a record by its number, for errors.
        keys: The names of features by path, which need a schema.
        context: The paths that the caller gave.
        find_text: As in `infer_schema`.

    Raises:
        StructureError: If there are keys and no schema (also a ValueError).
        FieldError: If a column does not exist (also a KeyError).
        The errors of `infer_schema`.
    """
    if wanted.schema is not None:
        return wanted.schema, context
    if keys:
        raise StructureError("keys", "a schema", "none", "Give schema=, whose paths keys= names.")
    found, lists = infer_schema(messages, message, name_of, find_text)
    schema = wanted.pruned(found)
    is_sequence = message == SEQUENCE
    return schema, [path for path in lists if is_sequence and path[0] in schema.names]


def write_tfrecord(
    records: StructuredTensor | Iterable[StructuredTensor],
    path: FilePath,
    schema: SchemaLike | None = None,
    keys: Mapping[PathLike, str] | None = None,
    context: Iterable[PathLike] = (),
    message: str = EXAMPLE,
    compression: str | tf.io.TFRecordOptions | None = None,
    *,
    progress: bool | None = None,
) -> None:
    """Writes records to a TFRecord file, as tf.Examples or tf.SequenceExamples.

    The file appears at `path` only when it is complete.

    Args:
        records: A StructuredTensor of rank 1, or an iterable of batches of one schema, such as a
            dataset.
        path: The file. An existing file is replaced.
        schema: The spec, or the Arrow schema, to which the records are cast. Default: their own.
        keys: The names of features by path, such as `{"image.data": "image/encoded"}`, for those
            that have other names than their fields.
        context: The paths of the lists that are features of the context of a SequenceExample.
        message: "Example", or "SequenceExample" for lists of lists.
        compression: "GZIP", "ZLIB", "", or a `tf.io.TFRecordOptions`. Default: "GZIP" if the path
            ends with ".gz", else none.
        progress: Whether to show a progress bar. Default: on a terminal and in a notebook, if tqdm
            is installed, after a second.

    Raises:
        DTypeError: If `records` is or yields anything but StructuredTensors (also a TypeError).
        StructureError: If there is no batch, batches have different specs, or the message cannot
            hold a field (also a ValueError).
        MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
            folder (also a FileNotFoundError, an IsADirectoryError).
        UnsupportedTypeError, NullError, FieldError: As in `to_tf_example`.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> path = "recipes.tfrecord.gz"
    >>> xt.write_tfrecord(xt.struct.constant([{"title": "Tea"}]), path)
    >>> len(list(tf.data.TFRecordDataset(path, "GZIP")))
    1
    """
    expect_message(message)
    context = tuple(context)
    if compression is None:
        compression = "GZIP" if os.fsdecode(path).endswith(".gz") else ""
    batches = [records] if isinstance(records, StructuredTensor) else records
    if not isinstance(batches, Iterable):
        batches = [batches]  # `to_tf_example` raises, as for any batch of the wrong type
    with (
        progress_bar("write_tfrecord", progress, num_records_of(records)) as advance,
        atomic_path(path) as unfinished,
        tf.io.TFRecordWriter(unfinished, compression) as writer,
    ):
        first: Any = None
        for batch in batches:
            if message == EXAMPLE:
                serialized = to_tf_example(batch, schema, keys)
            else:
                serialized = to_tf_sequence_example(batch, schema, keys, context)
            spec = batch.__tf_type_spec__()._any_length()
            first = spec if first is None else first
            if schema is None and spec != first:
                expected = f"batches of one spec: {first}"
                fix = "Give schema=, or convert the batches to one spec."
                raise StructureError("write_tfrecord", expected, str(spec), fix)
            for one in serialized.numpy():
                writer.write(one)
                advance(1)
        if first is None:
            expected = "at least one batch of records"
            fix = "To write an empty file, give a batch of 0 records."
            raise StructureError("write_tfrecord", expected, "0 batches", fix)


def expect_message(message: object) -> None:
    """Raises a DTypeError if an argument `message` is not the name of a message."""
    if message not in (None, EXAMPLE, SEQUENCE):
        fix = "Leave it out for the default."
        raise DTypeError("message", f'"{EXAMPLE}" or "{SEQUENCE}"', repr(message)[:80], fix)


def message_of(
    serialized: tf.Tensor, name_of: Callable[[int], str]
) -> tuple[str, np.ndarray[Any, Any]]:
    """Returns which message records are, and the numbers of those without feature lists.

    An Example is a SequenceExample without feature lists.
    """
    none = np.zeros(0, np.int64)
    if not serialized.shape[0]:
        return EXAMPLE, none
    sizes = _feature_list_sizes(serialized)
    if sizes is None:
        for number in range(int(tf.size(serialized))):
            if _feature_list_sizes(serialized[number : number + 1]) is None:
                either = f"{EXAMPLE} or tf.{SEQUENCE}"
                raise parse_error(name_of(number), either, "TensorFlow", "one of these messages")
        return EXAMPLE, none
    has_lists = sizes.numpy()[:, 0] > 0
    return (SEQUENCE, np.flatnonzero(~has_lists)) if has_lists.any() else (EXAMPLE, none)


def _feature_list_sizes(serialized: tf.Tensor) -> tf.Tensor | None:
    """Returns how many feature lists each record has, or None if a record is not a message."""
    try:
        return tf.io.decode_proto(
            serialized, f"tensorflow.{SEQUENCE}", ["feature_lists"], [tf.string]
        ).sizes
    except tf.errors.DataLossError:
        return None


def _serialize(file: File) -> tf.Tensor:
    """Returns the bytes of each record of a file.

    Raises:
        FormatError: If the file is damaged or truncated.
    """
    batches = list(serialized_batches(file))
    return tf.concat(batches, 0) if batches else tf.zeros([0], tf.string)


def serialized_batches(file: File) -> Iterator[tf.Tensor]:
    """Yields the bytes of the records of a file, some thousand records at a time.

    Raises:
        FormatError: If the file is damaged or truncated.
    """
    with local_path(file) as path:
        if _is_plain(path):
            yield from _frames(path, file.path)
            return
        # TensorFlow accepts a compressed file without its last bytes, and ignores what follows a
        # zlib stream. So it is not used to decompress.
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain")
            with open(path, "rb") as source, open(plain, "wb") as target:
                for chunk in _decompress(source, file.path):
                    target.write(chunk)
            yield from _frames(plain, file.path)


def ends_of_records(file: File) -> np.ndarray[Any, Any] | None:
    """Returns where each record of a file ends, from the lengths that it stores.

    Returns None if the file is compressed.

    Raises:
        FormatError: If the file is truncated.
    """
    with local_path(file) as path:
        if not _is_plain(path):
            return None
        if not os.path.getsize(path):
            return np.zeros(0, np.int64)
        with (
            open(path, "rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            ends, at, size = array.array("q"), 0, len(data)
            while at + 12 <= size:
                at += int(_LENGTH.unpack_from(data, at)[0]) + _FRAME
                if at > size:
                    break
                ends.append(at)
        if at != size:
            raise _damage_error(file.path, path, "truncated")
        return np.array(ends, np.int64)


def records_in(part: bytes, name: str) -> Iterator[tf.Tensor]:
    """Yields the records in a part of a file that is not compressed, some thousand at a time.

    Args:
        part: The bytes of some records.
        name: Where they are, for errors.

    Raises:
        FormatError: If they are damaged or truncated.
    """
    # TensorFlow checks the sums of records, and reads files from their beginning only.
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(part)
        copy.flush()
        try:
            yield from _batches(copy.name)
        except tf.errors.DataLossError as error:
            expected, fix = "complete records of a TFRecord file", "Write the file again."
            raise FormatError(name, expected, "a damaged or truncated one", fix) from error


def is_tfrecord(start: bytes) -> bool:
    """Returns whether a file with these first 12 bytes is a TFRecord file, compressed or not."""
    if start.startswith(b"\x1f\x8b\x08"):
        return True
    if start[:1] == b"\x78":
        with contextlib.suppress(zlib.error):
            zlib.decompressobj().decompress(start)
            return True
    return len(start) == 12 and _masked_crc(start[:8]) == int.from_bytes(start[8:], "little")


def _masked_crc(data: bytes) -> int:
    """Returns the checksum that follows the length of a record."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _is_plain(path: str) -> bool:
    with open(path, "rb") as file:
        start = file.read(2)
    is_zlib = len(start) == 2 and start[0] == 0x78 and int.from_bytes(start, "big") % 31 == 0
    if start != b"\x1f\x8b" and not is_zlib:
        return True
    # The length of the first record may look like this too. Then its checksum is right.
    try:
        next(records_of_file(path), None)
    except (tf.errors.DataLossError, tf.errors.OutOfRangeError):
        return False
    return True


def _decompress(source: BufferedReader, path: str) -> Iterator[bytes]:
    is_gzip = source.peek(1)[:1] == b"\x1f"
    try:
        if is_gzip:
            with gzip.GzipFile(fileobj=source) as stream:
                while chunk := stream.read(_CHUNK):
                    yield chunk
            return
        stream = zlib.decompressobj()
        while chunk := source.read(_CHUNK):
            yield stream.decompress(chunk)
            if stream.unused_data:
                raise zlib.error("bytes follow the end of the stream")
        yield stream.flush()
        if not stream.eof:
            raise zlib.error("the stream has no end")
    except (EOFError, OSError, zlib.error) as error:
        received = f"a {'gzip' if is_gzip else 'zlib'} file that does not decompress ({error})"
        fix = "Write the file again."
        raise FormatError(path, "a complete TFRecord file", received, fix) from error


def _frames(path: str, name: str) -> Iterator[tf.Tensor]:
    size = 0
    try:
        for batch in _batches(path):
            size += int(tf.reduce_sum(tf.strings.length(batch))) + _FRAME * int(tf.size(batch))
            yield batch
    except tf.errors.DataLossError as error:
        raise _damage_error(name, path, str(error)) from error
    # TensorFlow takes a start of fewer than 12 bytes for the end of the file.
    if size != os.path.getsize(path):
        raise _damage_error(name, path, "the file ends in the header of a record")


def _batches(path: str) -> Iterator[tf.Tensor]:
    records = records_of_file(path)
    while batch := list(itertools.islice(records, _BATCH)):
        yield tf.constant(batch, tf.string)


def _damage_error(name: str, path: str, reason: str) -> FormatError:
    count = 0
    try:
        for _ in records_of_file(path):
            count += 1
    except tf.errors.DataLossError:
        pass
    kind = "truncated" if "truncated" in reason or "ends in" in reason else "damaged"
    expected = "a complete record of a TFRecord file"
    received = f"a {kind} one" if count else f"a {kind} one, or a file of another format"
    return FormatError(f"record {count} of {name}", expected, received, "Write the file again.")
