"""Files of messages that each follow their length, as a varint."""

from __future__ import annotations

import array
import mmap
from typing import Any

import numpy as np

from extensor.errors import FormatError


def ends_of_messages(data: bytes | mmap.mmap, path: str) -> np.ndarray[Any, Any]:
    """Returns where each message of a file ends.

    Args:
        data: The content of the file.
        path: The path of the file, for errors.

    Raises:
        FormatError: If the last message is not complete (also a ValueError).
    """
    ends, at, size = array.array("q"), 0, len(data)
    while at < size:
        start, length = _after_length(data, at)
        at = size + 1 if length is None else start + length
        if at > size:
            received = "a file that ends before the message does"
            fix = "Write the file again, or check that it has messages after their lengths."
            record = f"record {len(ends)} of {path}"
            raise FormatError(record, "a message after its length", received, fix)
        ends.append(at)
    return np.array(ends, np.int64)


def messages_in(data: bytes) -> list[bytes]:
    """Returns the messages of a part of a file that begins and ends with a message."""
    messages: list[bytes] = []
    at = 0
    while at < len(data):
        start, length = _after_length(data, at)
        if length is None or start + length > len(data):
            break
        at = start + length
        messages.append(data[start:at])
    return messages


def _after_length(data: bytes | mmap.mmap, at: int) -> tuple[int, int | None]:
    """Returns where the message at a place begins, and its length; None if that is not complete."""
    length = shift = 0
    for number, byte in enumerate(data[at : at + 10], at + 1):
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, length
        shift += 7
    return at, None
