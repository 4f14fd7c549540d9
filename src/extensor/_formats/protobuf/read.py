"""from_proto and spec_from_proto: serialized messages to StructuredTensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from extensor._arrow.null_argument import has_auto
from extensor._arrow.wanted_table import WantedTable
from extensor._formats.protobuf.absent import Absent
from extensor._formats.protobuf.columns import BadMessageError, SplitError, first_bad, read_table
from extensor._formats.protobuf.descriptors import descriptor_of, record_of
from extensor._formats.protobuf.fields import Count, Record, records_of
from extensor._formats.protobuf.graph import GraphReader
from extensor._formats.protobuf.text import expect_format, parse_texts
from extensor._formats.protobuf.wire import ROOT, file_of
from extensor._path import PathLike
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike, TensorLike
from extensor.errors import DTypeError, FormatError, NullError, UnsupportedTypeError

if TYPE_CHECKING:
    from google.protobuf.message import Message


@refuse_deep_nesting("from_proto")
def from_proto(
    serialized: TensorLike | Message | pa.Array,
    message: type[Message] | Descriptor,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    max_depth: int | None = None,
    format: str = "binary",
) -> StructuredTensor:
    """Returns serialized messages as records.

    Outside of graphs, `ptars` reads the messages (`pip install "extensor[protobuf]"`). Inside of a
    graph, `tf.io.decode_proto` does, so a SavedModel takes serialized messages, and runs in every
    TensorFlow server. Both give the same records.

    A message type becomes the fields of records:

    - a `required` field, and a field of proto3 without presence, is one value;
    - a `repeated` field is a list, and a map is a list of records with `key` and `value`;
    - every other field is a list of no value or of one, or what `nulls` says;
    - a oneof is a union of its fields, under the name of the oneof;
    - a message or a group is a record, an enum its int32 number;
    - google.protobuf.Timestamp and Duration are int64 nanoseconds, and the wrappers, such as
      google.protobuf.Int32Value, are their values;
    - an extension that the descriptor's pool knows is a field with the full name of the extension.

    Unknown fields are skipped, also where the type is newer than the message.

    Args:
        serialized: The bytes of one message, a list of these, an Arrow array of binary, or a
            tensor of strings, whose shape the records have. Also messages of protobuf themselves.
        message: The class of the messages, or its descriptor.
        columns: The paths of the fields to read, such as `["title", "steps.minutes"]`. Other fields
            are not decoded. The name of one field of a oneof reads this field alone, also where the
            bytes set another one later, as those of two joined messages may, and
            `attributes["color"]` one key of a map: then `attributes` is a record with the optional
            field `color`. Default: all.
        schema: The spec of the records, or a pyarrow Schema. Default: as the message type says.
        nulls: What a field becomes that a message does not have. Default: an empty list. Or a
            policy of `xt.from_arrow`, or a dict of policies by path. `"default"` is the default
            value of the field, as protobuf returns it.
        row_splits_dtype: The dtype of row splits. Default: tf.int64.
        max_depth: How often a message type is read inside itself. A message that is nested deeper
            is an error. Needed for recursive types without `columns`.
        format: "binary" for serialized messages; "json" for messages in the JSON of protobuf, and
            "text" for those of text_format: str, or bytes in UTF-8. Texts are parsed by protobuf
            itself, which is slower, and outside of graphs only.

    Returns:
        A StructuredTensor of shape `[]` for one message, `[n]` for several.

    Raises:
        FormatError: If bytes are not a message of the type; the error names the record (also a
            ValueError). In a graph, an error of TensorFlow.
        FieldError: If a path does not exist (also a KeyError).
        DTypeError: If `serialized` or `message` is of another type (also a TypeError).
        StructureError: If a type is recursive, and there is no `max_depth` (also a ValueError).
        MissingDependencyError: If ptars is not installed (also an ImportError).

    >>> import extensor as xt
    >>> from google.protobuf import descriptor_pb2
    >>> Name = descriptor_pb2.UninterpretedOption.NamePart
    >>> messages = [Name(name_part="a", is_extension=True), Name(name_part="b", is_extension=False)]
    >>> serialized = [message.SerializeToString() for message in messages]
    >>> xt.from_proto(serialized, Name)
    <StructuredTensor shape=(2,) {name_part: string, is_extension: bool}
     [{name_part: 'a', is_extension: True},
      {name_part: 'b', is_extension: False}]>
    >>> xt.from_proto(serialized[0], Name, columns=["name_part"])
    <StructuredTensor shape=() {name_part: string} {name_part: 'a'}>
    """
    expect_format(format, "from_proto")
    descriptor = descriptor_of(message)
    reader = _Reader(descriptor, columns, schema, nulls, row_splits_dtype, max_depth)
    return reader.read(serialized, format)


@refuse_deep_nesting("spec_from_proto")
def spec_from_proto(
    message: type[Message] | Descriptor,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
    max_depth: int | None = None,
) -> DenseStructuredTensorSpec:
    """Returns the spec of the records that `from_proto` returns.

    Args:
        message: The class of the messages, or its descriptor.
        columns: The paths of the fields to read, as in `from_proto`. Default: all.
        schema: The spec of the records, or a pyarrow Schema. Default: as the message type says.
        nulls: What a field becomes that a message does not have. Default: an empty list. Or a
            policy of `xt.from_arrow`, or a dict of policies by path. `"default"` is the default
            value of the field.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.
        max_depth: How often a message type is read inside itself. Needed for recursive types
            without `columns`.

    Raises:
        FieldError, DTypeError, StructureError: As `from_proto`.

    >>> import extensor as xt
    >>> from google.protobuf import descriptor_pb2
    >>> xt.struct.tree(xt.spec_from_proto(descriptor_pb2.UninterpretedOption.NamePart))
    records (None,)
    ├── name_part: string
    └── is_extension: bool
    """
    descriptor = descriptor_of(message)
    reader = _Reader(descriptor, columns, schema, nulls, row_splits_dtype, max_depth)
    return reader.wanted.spec(reader.record.schema)


def _maybe_with_long_tags(messages: list[bytes]) -> list[bytes]:
    """Returns the messages with bytes as in a tag of more than 32 bits; other values have them too.

    Such a tag has four bytes that say that another one follows, and more than 4 bits in the fifth.
    """
    data = np.frombuffer(b"\0".join(messages), np.uint8)
    two = data[:-1] & data[1:]
    four = two[:-2] & two[2:]  # the highest bit says that another byte follows
    if not four.size or four.max() < 0x80:
        return []
    places = np.flatnonzero((four[:-1] >= 0x80) & (data[4:] >= 0x10))
    ends = np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)) + 1)
    return [messages[i] for i in np.unique(np.searchsorted(ends, places, side="right"))]


class _Reader:
    """Reads messages of a type. The arguments are those of `from_proto`."""

    def __init__(
        self,
        descriptor: Descriptor,
        columns: Iterable[PathLike] | None,
        schema: SchemaLike | None,
        nulls: NullsLike | None,
        row_splits_dtype: DTypeLike | None,
        max_depth: int | None,
    ) -> None:
        self.descriptor = descriptor
        of_schema, of_message = (None, columns) if schema is None else (columns, None)
        wanted = WantedTable(of_schema, schema, nulls, row_splits_dtype)
        if isinstance(wanted.nulls, dict) and (nulls is None or has_auto(nulls)):
            nulls = wanted.nulls  # the masks of the spec
        absent = Absent(nulls)
        self.record = record_of(descriptor, of_message, wanted.schema, absent, max_depth)
        absent.expect_all_used()
        self.wanted = wanted
        wanted.nulls = _policies(self.record)

    def read(self, serialized: Any, form: str) -> StructuredTensor:
        if isinstance(serialized, tf.RaggedTensor):
            records: Any = self.read(serialized.flat_values, form)
            for splits in reversed(serialized.nested_row_splits):
                records = RaggedStructuredTensor._of_parts(records, splits)
            return records
        if isinstance(serialized, (tf.Tensor, np.ndarray)):
            shape = tf.TensorShape(serialized.shape)
            if (shape.rank or 0) > 1:
                sizes = shape if shape.is_fully_defined() else tf.shape(serialized)
                return tf.reshape(self.read(tf.reshape(serialized, [-1]), form), sizes)
        if tf.is_symbolic_tensor(serialized):
            if form != "binary":
                expected = "serialized messages, because no op of TensorFlow parses others"
                received = f"format={form!r} in a graph"
                fix = "Call from_proto outside of the graph."
                raise UnsupportedTypeError("from_proto: format", expected, received, fix)
            return self._read_in_graph(serialized)
        messages, is_one = _messages(serialized, None if form != "binary" else self.descriptor)
        if form != "binary":
            messages = parse_texts(messages, self.descriptor, form)
        records = self._records_or_first_bad(messages)
        return records[0] if is_one else records

    def _records(self, messages: list[bytes]) -> StructuredTensor:
        # ptars reads the tag of a field without what is above 32 bits. protobuf refuses it.
        cls = GetMessageClass(self.descriptor)
        for _ in self._parse(cls, _maybe_with_long_tags(messages)):
            pass
        if any(f.is_group for record in records_of(self.record) for f in record.on_wire()):
            return self._with_groups(messages)
        try:
            table = read_table(self.record, messages, "from_proto")
        except SplitError:
            table = read_table(self.record, self._canonical(messages), "from_proto")
        if not self.record.shown:
            return DenseStructuredTensor._of_parts(1, {}, tf.zeros([len(messages)], tf.bool))
        return self.wanted.records(table)

    def _read_in_graph(self, serialized: tf.Tensor) -> StructuredTensor:
        if serialized.dtype != tf.string or serialized.shape.rank is None:
            expected = "a tensor of strings of a known rank"
            received = f"dtype {serialized.dtype.name}, shape {serialized.shape}"
            fix = "Give strings, and their rank by tf.ensure_shape."
            raise DTypeError("from_proto: serialized", expected, received, fix)
        natural = WantedTable(None, None, self.wanted.nulls, self.wanted.row_splits_dtype)
        if self.wanted.schema is not None and (
            self.wanted.spec()._record != natural.spec(self.record.schema)._record
        ):
            expected = "the types of the message type, because a graph does not convert them"
            received = f"{self.wanted.spec()}, not {natural.spec(self.record.schema)}"[:500]
            fix = "Convert the fields with tf.cast."
            raise UnsupportedTypeError("from_proto: schema", expected, received, fix)
        is_one = serialized.shape.rank == 0
        vector = serialized[None] if is_one else serialized
        records = self._by_ops(vector)
        return records[0] if is_one else records

    def _with_groups(self, messages: list[bytes]) -> StructuredTensor:
        # ptars does not read groups. tf.io.decode_proto does, but it finds fewer errors.
        messages = self._canonical(messages)
        try:
            return self._by_ops(tf.constant(messages, tf.string, [len(messages)]))
        except tf.errors.OpError as error:
            expected = f"a message of type {self.record.name}"
            fix = "Correct the message, or choose other columns with columns=."
            raise BadMessageError(None, expected, error.message.splitlines()[0], fix) from error

    def _by_ops(self, messages: tf.Tensor) -> StructuredTensor:
        return GraphReader(self.wanted.row_splits_dtype).records(self.record, messages)

    def _records_or_first_bad(self, messages: list[bytes]) -> StructuredTensor:
        """Returns records, or raises for the first message that is none."""
        try:
            return self._records(messages)
        except BadMessageError:
            number = first_bad(messages, self._records)
        try:
            return self._records(messages[number : number + 1])
        except BadMessageError as error:
            path = f"record {number}" if error.path is None else f"record {number}, {error.path}"
            raise FormatError(path, error.expected, error.received, error.fix) from error

    def _canonical(self, messages: list[bytes]) -> list[bytes]:
        """Returns messages as protobuf itself writes them, with each field once.

        Their type is that of the fields to read: of the own one, protobuf takes numbers that an
        enum does not list, and all but the last entry of a map with one key, out of the fields.
        """
        pool = DescriptorPool()
        pool.AddSerializedFile(file_of(self.record).SerializeToString())
        cls = GetMessageClass(pool.FindMessageTypeByName(ROOT))
        canonical: list[bytes] = []
        for message in self._parse(cls, messages):
            # A field of another wire type than its own is one of them.
            message.DiscardUnknownFields()
            canonical.append(message.SerializePartialToString())
        return canonical

    def _parse(self, cls: type[Message], messages: list[bytes]) -> Iterator[Message]:
        """Yields messages as protobuf itself reads them."""
        for message in messages:
            try:
                yield cls.FromString(message)
            except DecodeError as error:
                expected = f"a message of type {self.record.name}"
                fix = "The bytes are damaged, cut, or of another message type."
                received = str(error).rpartition("': ")[2]  # without the name of our own type
                raise BadMessageError(None, expected, received, fix) from error


def _policies(record: Record) -> dict[tuple[str, ...], Any] | str:
    """Returns the argument `nulls` for the Arrow table of a record."""
    found: dict[Any, Any] = {}
    for inner in records_of(record):
        for field in inner.fields:
            if field.count is Count.NULLABLE:
                found[field.path.names] = field.policy
    return found or "error"


def _messages(serialized: Any, binary: Descriptor | None) -> tuple[list[bytes], bool]:
    """Returns serialized messages as a list, and whether there is only one.

    Args:
        serialized: The messages.
        binary: The message type of binary messages; None for texts, which may be strings.
    """
    if isinstance(serialized, (str, bytes, bytearray, memoryview)) or _is_message(serialized):
        return _check_messages([serialized], binary), True
    if isinstance(serialized, (pa.Array, pa.ChunkedArray)):
        given = serialized.to_pylist()
    elif isinstance(serialized, np.ndarray) or hasattr(serialized, "numpy"):
        array = np.asarray(getattr(serialized, "numpy", lambda: serialized)(), object)
        if not array.ndim:
            return _check_messages([array.item()], binary), True
        given = array.tolist()
    elif not isinstance(serialized, Iterable):
        raise _no_messages(type(serialized).__name__)
    else:
        given = list(serialized)
    return _check_messages(given, binary), False


def _is_message(value: object) -> bool:
    return hasattr(value, "SerializePartialToString")


def _check_messages(given: list[Any], binary: Descriptor | None) -> list[bytes]:
    if {bytes}.issuperset(map(type, given)):
        return given
    messages: list[bytes] = []
    for i, message in enumerate(given):
        if isinstance(message, (bytes, bytearray, memoryview)):
            messages.append(bytes(message))
        elif binary is None and isinstance(message, str):
            # That of half a surrogate pair is not UTF-8, which the parser says.
            messages.append(message.encode("utf-8", "surrogatepass"))
        elif binary is not None and _is_message(message):
            if message.DESCRIPTOR.full_name != binary.full_name:
                raise _no_messages(
                    f"a message of type {message.DESCRIPTOR.full_name} in record {i}"
                )
            messages.append(message.SerializePartialToString())
        elif message is None:
            expected, fix = "bytes for each record", "Remove the record."
            raise NullError("from_proto: serialized", expected, f"a null in record {i}", fix)
        else:
            raise _no_messages(f"{type(message).__name__} in record {i}")
    return messages


def _no_messages(received: str) -> DTypeError:
    expected = "the bytes of a message, a list of these, or a tensor of strings"
    fix = "Give [message.SerializeToString() for message in messages]."
    return DTypeError("from_proto: serialized", expected, received, fix)
