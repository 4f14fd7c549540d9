"""The Arrow schema of serialized Examples and SequenceExamples, of the values in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._count_text import count_text
from extensor._formats.tfrecord.layout import SEQUENCE, parse_error
from extensor.errors import DTypeError, StructureError

_ARROW = {"int64_list": pa.int64(), "float_list": pa.float32(), "bytes_list": pa.binary()}


def infer_schema(
    serialized: Iterable[bytes],
    message: str,
    name_of: Callable[[int], str],
    find_text: bool = False,
) -> tuple[pa.Schema, list[tuple[str]]]:
    """Returns a schema of all features, and the paths of lists in the context.

    A feature that has one value wherever it occurs is a field without a list. Others are lists.

    Args:
        serialized: The messages.
        message: `EXAMPLE` or `SEQUENCE`.
        name_of: Returns the name of a record by its number, for errors.
        find_text: Whether bytes have the type of text where all of them are UTF-8.

    Raises:
        FormatError: If bytes are not the message (also a ValueError).
        DTypeError: If the values of a feature differ in type (also a TypeError).
        StructureError: If there is no record or no feature, or a SequenceExample has a feature and
            a feature list of one name (also a ValueError).
    """
    features: dict[str, _FeatureType] = {}
    lists: dict[str, _FeatureType] = {}
    number = -1
    for number, one in enumerate(serialized):
        parsed = _parse(one, message, number, name_of)
        if message == SEQUENCE:
            context = parsed.context.feature
            for key, steps in parsed.feature_lists.feature_list.items():
                found = lists.setdefault(key, _FeatureType(key, find_text))
                for step in steps.feature:
                    found.add(step, number, name_of)
        else:
            context = parsed.features.feature
        for key, feature in context.items():
            features.setdefault(key, _FeatureType(key, find_text)).add(feature, number, name_of)
    if not features and not lists:
        expected = "at least one record with a feature, to find out the schema"
        received = (
            "no records" if number < 0 else count_text(number + 1, "records without features")
        )
        raise StructureError("schema", expected, received, "Give schema=.")
    for key in features.keys() & lists.keys():
        expected = "a feature of the context or a feature list"
        fix = "Give schema= and keys= with two names for it."
        raise StructureError(key, expected, "both, under one name", fix)
    # The order of keys in a message is not defined.
    fields = [pa.field(key, found.type) for key, found in sorted(features.items())]
    fields += [pa.field(key, pa.list_(found.type)) for key, found in sorted(lists.items())]
    return pa.schema(fields), [(key,) for key, found in features.items() if not found.is_single]


def _parse(one: bytes, message: str, number: int, name_of: Callable[[int], str]) -> Any:
    kind: Any = tf.train.SequenceExample if message == SEQUENCE else tf.train.Example
    parsed = kind()
    try:
        parsed.ParseFromString(one)
    except Exception as error:  # DecodeError, of a package that is not a dependency of ours
        raise parse_error(name_of(number), message, "protobuf") from error
    return parsed


class _FeatureType:
    """What the values of a feature have in common.

    Attributes:
        is_single: Whether there was one value each time.
    """

    def __init__(self, key: str, find_text: bool) -> None:
        self.is_single = True
        self._is_text = find_text
        self._key = key
        self._kind: str | None = None

    def add(self, feature: Any, number: int, name_of: Callable[[int], str]) -> None:
        kind = feature.WhichOneof("kind")
        if kind is None:  # as if the feature were missing
            return
        self._kind = self._kind or kind
        if kind != self._kind:
            expected = f"a feature of one type, such as {self._kind} in earlier records"
            fix = "Read the field with a schema from files of one type."
            raise DTypeError(self._key, expected, f"{kind} in {name_of(number)}", fix)
        values = getattr(feature, kind).value
        if len(values) != 1:
            self.is_single = False
        if self._is_text and kind == "bytes_list":
            self._is_text = all(map(_is_utf8, values))

    @property
    def type(self) -> pa.DataType:
        arrow = pa.float32() if self._kind is None else _ARROW[self._kind]
        if self._is_text and arrow == pa.binary():
            arrow = pa.string()
        return arrow if self.is_single and self._kind else pa.list_(arrow)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
