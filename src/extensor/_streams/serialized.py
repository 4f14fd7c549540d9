"""Serialized messages in files, in groups: TFRecord files, and messages after their lengths."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._files.files import File, local_path
from extensor._formats.protobuf.delimited import ends_of_messages, messages_in
from extensor._formats.tfrecord.files import (
    ends_of_records,
    is_tfrecord,
    records_in,
    serialized_batches,
)
from extensor._streams.source import BLOCK, Group


class _Place(NamedTuple):
    """Where the messages of a group begin in their file."""

    first: int  # the number of the first message
    start: int  # its place in bytes
    is_tfrecord: bool


def groups_of_records(files: Sequence[File], block: int | None = None) -> list[Group]:
    """Returns the messages of TFRecord files, in groups; a compressed file is one.

    Args:
        files: The files.
        block: The approximate size in bytes of a group.
    """
    groups: list[Group] = []
    for file in files:
        ends = ends_of_records(file)
        if ends is None:
            sizes = [int(tf.size(each)) for each in serialized_batches(file)]
            size = file.system.get_file_info(file.inner).size
            groups.append(Group(file, "its records", sum(sizes), size))
        else:
            groups += _cut(file, ends, True, block or BLOCK)
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
                groups += _cut(file, ends_of_messages(data, file.path), False, BLOCK)
    return groups


def _cut(file: File, ends: np.ndarray[Any, Any], is_record: bool, block: int) -> Iterator[Group]:
    first = start = 0
    while first < len(ends):
        stop = max(int(np.searchsorted(ends, start + block, "right")), first + 1)
        end = int(ends[stop - 1])
        place = _Place(first, start, is_record)
        yield Group(file, f"records from {first} on", stop - first, end - start, place)
        first, start = stop, end


def serialized(groups: Sequence[Group]) -> Iterator[tuple[Callable[[int], str], tf.Tensor]]:
    """Yields the messages of groups of one file, each time with a function that names one."""
    file, first = groups[0].file, 0
    if groups[0].at is None:
        for each in serialized_batches(file):
            yield _namer(first, file.path), each
            first += int(tf.size(each))
        return
    with file.open() as stream:
        for group in groups:
            first, start, is_record = group.at
            stream.seek(start)
            data: Any = stream.read(int(group.nbytes))
            if is_record:
                found = records_in(data, f"{group.name} of {file.path}")
            else:
                messages = messages_in(data)
                found = iter([tf.constant(messages, tf.string, [len(messages)])])
            for each in found:
                yield _namer(first, file.path), each
                first += int(tf.size(each))


def _namer(first: int, path: str) -> Callable[[int], str]:
    return lambda number: f"record {first + number} of {path}"
