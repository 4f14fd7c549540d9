"""Serialized messages in files, in groups: TFRecord files, and messages after their lengths."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._data.planned import Group
from extensor._files.files import File, local_path
from extensor._formats.protobuf.delimited import ends_of_messages, messages_in
from extensor._formats.tfrecord.files import (
    ends_of_records,
    is_tfrecord,
    records_between,
    serialized_batches,
)

# The approximate size in bytes of the messages that are read at once.
_BLOCK = 1 << 18


class _Place(NamedTuple):
    """Where the messages of a group begin in their file."""

    first: int  # the number of the first message
    start: int  # its place in bytes
    is_tfrecord: bool


def groups_of_records(files: Sequence[File]) -> list[Group]:
    """Returns the messages of TFRecord files, in groups; a compressed file is one."""
    groups: list[Group] = []
    for file in files:
        ends = ends_of_records(file)
        if ends is None:
            sizes = [int(tf.size(each)) for each in serialized_batches(file)]
            size = file.system.get_file_info(file.inner).size
            groups.append(Group(file, "its records", sum(sizes), size))
        else:
            groups += _cut(file, ends, True)
    return groups


def groups_of_messages(files: Sequence[File]) -> list[Group]:
    """Returns the messages of TFRecord files and of files of messages after their lengths."""
    groups: list[Group] = []
    for file in files:
        with file.open() as stream:
            start: Any = stream.read(12)
        if is_tfrecord(start):
            groups += groups_of_records([file])
        elif start:
            with (
                local_path(file) as path,
                open(path, "rb") as opened,
                mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
            ):
                groups += _cut(file, ends_of_messages(data, file.path), False)
    return groups


def _cut(file: File, ends: np.ndarray[Any, Any], is_record: bool) -> Iterator[Group]:
    first = start = 0
    while first < len(ends):
        stop = max(int(np.searchsorted(ends, start + _BLOCK, "right")), first + 1)
        end = int(ends[stop - 1])
        place = _Place(first, start, is_record)
        yield Group(file, f"records from {first} on", stop - first, end - start, place)
        first, start = stop, end


def serialized(group: Group) -> Iterator[tuple[Callable[[int], str], tf.Tensor]]:
    """Yields messages of a group, each time with a function that names one of them."""
    place: _Place = group.at or _Place(0, 0, True)
    first, start, end = place.first, place.start, place.start + int(group.nbytes)
    if group.at is None:
        found = serialized_batches(group.file)
    elif place.is_tfrecord:
        found = records_between(group.file, start, end, group.rows)
    else:
        found = _messages_between(group.file, start, end)
    for each in found:
        yield _namer(first, group.file.path), each
        first += int(tf.size(each))


def _messages_between(file: File, start: int, end: int) -> Iterator[tf.Tensor]:
    with file.open() as stream:
        stream.seek(start)
        data: Any = stream.read(end - start)
    messages = messages_in(data)
    yield tf.constant(messages, tf.string, [len(messages)])


def _namer(first: int, path: str) -> Callable[[int], str]:
    return lambda number: f"record {first + number} of {path}"
