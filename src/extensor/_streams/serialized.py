"""Serialized messages in files, in groups: TFRecord files, and messages after their lengths."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow.fs as pafs
import tensorflow as tf

from extensor._files.files import File, fetched_ahead, local_path
from extensor._formats.protobuf.wire import ends_of_messages, messages_in
from extensor._formats.tfrecord.files import (
    ends_of_records,
    is_tfrecord,
    records_in,
    serialized_batches,
)
from extensor._streams.source import BLOCK, Group


def groups_of_records(
    files: Sequence[File], block: int | None = None
) -> Iterator[tuple[Group, Group]]:
    """Yields the messages of TFRecord files, in groups; a compressed file is one.

    With each comes the same group of a local file, which exists until the next one is asked for.

    Args:
        files: The files.
        block: The approximate size in bytes of a group.
    """
    for file, local in _copy(files):
        for group in _of_records(file, local, block or BLOCK):
            yield group, group._replace(file=local)


def _of_records(file: File, local: File, block: int) -> Iterable[Group]:
    ends = ends_of_records(local)
    if ends is not None:
        return _cut(file, ends, True, block)
    sizes = [int(tf.size(each)) for each in serialized_batches(local)]
    return [Group(file, "its records", sum(sizes), os.path.getsize(local.inner))]


def _copy(files: Sequence[File]) -> Iterator[tuple[File, File]]:
    """Yields files, each with a local one of the same content."""
    with fetched_ahead(files) as opened:
        for file, each in zip(files, opened, strict=True):
            with local_path(each) as path:
                yield file, File(file.path, pafs.LocalFileSystem(), path)


def groups_of_messages(files: Sequence[File]) -> list[Group]:
    """Returns the messages of TFRecord files and of files of messages after their lengths."""
    groups: list[Group] = []
    for file, local in _copy(files):
        with open(local.inner, "rb") as opened:
            start = opened.read(12)
            if is_tfrecord(start):
                groups += _of_records(file, local, BLOCK)
            elif start:
                with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    groups += _cut(file, ends_of_messages(data, file.path), False, BLOCK)
    return groups


def _cut(file: File, ends: np.ndarray[Any, Any], is_record: bool, block: int) -> Iterator[Group]:
    first = start = 0
    while first < len(ends):
        stop = max(int(np.searchsorted(ends, start + block, "right")), first + 1)
        end = int(ends[stop - 1])
        place = start, first, is_record  # as `read_serialized` takes them
        yield Group(file, f"records from {first} on", stop - first, end - start, place)
        first, start = stop, end


def read_serialized(groups: Sequence[Group]) -> Iterator[tuple[Callable[[int], str], tf.Tensor]]:
    """Yields the messages of groups of one file, each time with a function that names one."""
    file, first = groups[0].file, 0
    if groups[0].at is None:
        for each in serialized_batches(file):
            yield _namer(first, file.path), each
            first += int(tf.size(each))
        return
    with file.open() as stream:
        for group in groups:
            start, first, is_record = group.at
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
