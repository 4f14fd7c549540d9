"""Descriptors of message types to the fields of records."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from extensor._formats.protobuf.absent import Absent, is_word
from extensor._formats.protobuf.chosen import (
    Chosen,
    MapKey,
    chosen_by,
    chosen_fields,
    chosen_inside,
    is_list,
    item_of,
    no_field,
)
from extensor._formats.protobuf.fields import (
    AnyField,
    ChosenKeys,
    Count,
    Cut,
    Field,
    Leaf,
    Oneof,
    Record,
    Time,
    Type,
    Wrapper,
)
from extensor._path import Path, PathLike
from extensor.errors import DTypeError, FieldError, StructureError

_TIMES = {
    "google.protobuf.Timestamp": pa.timestamp("ns", "UTC"),
    "google.protobuf.Duration": pa.duration("ns"),
}
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in "Double Float Int64 UInt64 Int32 UInt32 Bool String Bytes".split()
}


def descriptor_of(message: Any) -> Descriptor:
    """Returns the descriptor of a message class, or of a message.

    Raises:
        DTypeError: If it is neither, and no descriptor (also a TypeError).
    """
    descriptor = getattr(message, "DESCRIPTOR", message)
    if not isinstance(descriptor, Descriptor):
        expected = "a message class of protobuf, or the descriptor of one"
        fix = "Give recipe_pb2.Recipe, or recipe_pb2.Recipe.DESCRIPTOR."
        raise DTypeError("message", expected, repr(message)[:80], fix)
    return descriptor


def record_of(
    descriptor: Descriptor,
    columns: Iterable[PathLike] | None,
    schema: pa.Schema | None,
    nulls: Any,
    max_depth: int | None,
) -> Record:
    """Returns the fields of the records of a message type.

    Args:
        descriptor: The message type.
        columns: The paths of the fields; None for all.
        schema: The schema of the records; None if it follows from the message type.
        nulls: What to do where a message does not have a field; see `from_proto`.
        max_depth: How often a message type may be inside itself; None for never.

    Raises:
        FieldError: If a field does not exist (also a KeyError).
        StructureError: If the type is recursive, and `max_depth` is None (also a ValueError).
    """
    absent = Absent(nulls)
    fields = _Fields(absent, max_depth)
    if columns is not None:
        chosen = chosen_fields(columns, _known(descriptor))
    else:
        chosen = None if schema is None else chosen_by(schema)
    record = fields.record(descriptor, chosen, schema, Path(), {})
    absent.expect_all_used()
    return record


class _Fields:
    """Makes fields of descriptors.

    Args:
        absent: The policies for fields that a message does not have.
        max_depth: How often a message type may be inside itself.
    """

    def __init__(self, absent: Absent, max_depth: int | None) -> None:
        self._absent = absent
        self._max_depth = max_depth

    def record(
        self,
        descriptor: Descriptor,
        chosen: Chosen | None,
        schema: Any,
        path: Path,
        around: Mapping[str, int],
    ) -> Record:
        """Returns a message type as a record.

        Args:
            descriptor: The message type.
            chosen: The fields to read; None for all.
            schema: The Arrow schema, or the struct type, of the records; None if none is given.
            path: The path of the record.
            around: The message types around this one, and how often each.
        """
        around = {**around, descriptor.full_name: around.get(descriptor.full_name, 0) + 1}
        known = _known(descriptor)
        names = _names(descriptor) if chosen is None else list(chosen)
        if descriptor.GetOptions().map_entry:
            names.sort()  # the key first
        fields: list[AnyField] = []
        for name in names:
            if name not in known:
                raise no_field(path / name, list(known))
            inner = None if chosen is None else chosen[name]
            wanted = None if schema is None else schema.field(name).type
            found = known[name]
            if isinstance(found, OneofDescriptor):
                fields += self._oneof(found, inner, wanted, path / name, around)
            else:
                fields.append(self._field(found, name, inner, wanted, path / name, around))
        return Record(descriptor.full_name, tuple(fields))

    def _field(
        self,
        found: FieldDescriptor,
        name: str,
        chosen: Chosen | None,
        wanted: Any,
        path: Path,
        around: Mapping[str, int],
        is_member: bool = False,
    ) -> Field:
        entry = found.message_type if found.message_type is not None else None
        is_map = entry is not None and entry.GetOptions().map_entry
        if is_map and wanted is not None and pa.types.is_struct(wanted):  # the schema has keys
            chosen = {MapKey(inner): of for inner, of in (chosen or {}).items()}
        if chosen and any(isinstance(inner, MapKey) for inner in chosen):
            return self._keys_of(found, is_map, name, chosen, wanted, path, around)
        inside = None if wanted is None else item_of(wanted)
        kind = self._type(found, chosen, inside, path, around)
        made = Field(
            name,
            path,
            found.number,
            _count(found),
            kind,
            is_group=found.type == Proto.TYPE_GROUP,
            is_map=is_map,
            is_packed=_is_repeated(found) and _is_packed(found),
        )
        if isinstance(kind, Cut):
            return dataclasses.replace(made, count=Count.MANY)
        if is_member:
            return dataclasses.replace(made, count=Count.NULLABLE)
        if made.count is not Count.OPTIONAL:
            return made
        return self._with_policy(made, kind.arrow, wanted)

    def _keys_of(
        self,
        found: FieldDescriptor,
        is_map: bool,
        name: str,
        chosen: Chosen,
        wanted: Any,
        path: Path,
        around: Mapping[str, int],
    ) -> Field:
        """Returns a field that has some keys of a map."""
        keys = [key for key in chosen if isinstance(key, MapKey)]
        entry: Any = found.message_type
        if not is_map or len(keys) < len(chosen):
            raise FieldError(
                path,
                "either keys in brackets, or key and value"
                if is_map
                else "no key in brackets, because the field is not a map",
                ", ".join(chosen),
                "Check the spelling.",
            )
        if any(chosen[key] != chosen[keys[0]] for key in keys):
            expected = "the same fields for each key of the map"
            fix = "Choose these fields for each key."
            raise StructureError(path, expected, f"others for {keys[0]} than for {keys[-1]}", fix)
        of_key, of_value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        leaf = _leaf(of_key)
        fields: list[Field] = []
        for key in keys:
            at = path / key.text
            of_wanted = None if wanted is None else wanted.field(key.text).type
            inside = None if of_wanted is None else item_of(of_wanted)
            kind = self._type(of_value, chosen[key], inside, at, around)
            if isinstance(kind, Cut):
                raise no_field(at, [])
            made = Field(key.text, at, of_value.number, Count.OPTIONAL, kind)
            fields.append(self._with_policy(made, kind.arrow, of_wanted))
        values = tuple(_key_of(key.text, leaf, path) for key in keys)
        of_keys = ChosenKeys(entry.full_name, tuple(fields), leaf, fields[0].type, values)
        return Field(name, path, found.number, Count.MANY, of_keys, is_map=True)

    def _with_policy(self, made: Any, arrow: pa.DataType, wanted: Any) -> Any:
        policy = self._absent.policy(made.path, arrow)
        if policy is None and wanted is not None and not is_list(wanted):
            policy = "error"  # the schema has no list
        if policy is None:
            return made
        if is_word(policy, "default"):
            # A oneof has no default: it stays a list.
            return made if isinstance(made, Oneof) else dataclasses.replace(made, count=Count.ONE)
        return dataclasses.replace(made, count=Count.NULLABLE, policy=policy)

    def _oneof(
        self,
        found: OneofDescriptor,
        chosen: Chosen | None,
        wanted: Any,
        path: Path,
        around: Mapping[str, int],
    ) -> list[AnyField]:
        union = None if wanted is None else item_of(wanted)
        if chosen:
            name = next(iter(chosen))
            expected = f"the oneof {path}, or one of its fields"
            fix = f'Write columns=["{name}"] for one field of the oneof.'
            raise FieldError(path / name, expected, str(path / name), fix)
        variants = {} if union is None else {union.field(i).name: union.field(i).type
                                             for i in range(union.num_fields)}  # fmt: skip
        members: list[Field] = []
        for m in found.fields:
            if union is None or m.name in variants:
                inside = variants.get(m.name)
                inner = None if inside is None else chosen_inside(inside)
                self._absent.is_known(path / m.name)
                members.append(
                    self._field(m, m.name, inner, inside, path / m.name, around, is_member=True)
                )
        cut = [m for m in members if isinstance(m.type, Cut)]
        members = [m for m in members if m not in cut]
        if not members:
            return [*cut]
        made = Oneof(found.name, path, Count.OPTIONAL, tuple(members))
        return [self._with_policy(made, item_of(made.arrow.type), wanted), *cut]

    def _type(
        self,
        found: FieldDescriptor,
        chosen: Chosen | None,
        wanted: Any,
        path: Path,
        around: Mapping[str, int],
    ) -> Type:
        message = found.message_type
        if message is None:
            self._expect_no_inner(chosen, path)
            return _leaf(found)
        if message.full_name in _TIMES:
            self._expect_no_inner(chosen, path)
            return Time(_TIMES[message.full_name])
        if message.full_name in _WRAPPERS:
            self._expect_no_inner(chosen, path)
            return Wrapper(_leaf(message.fields_by_name["value"]))
        depth = around.get(message.full_name, 0)
        # A path that goes on names a depth itself.
        if depth and chosen is None:
            if self._max_depth is None:
                raise StructureError(
                    path,
                    "a message type that is not inside itself",
                    f"the recursive type {message.full_name}",
                    "Give max_depth=, the number of times that the type is read inside "
                    "itself, or columns=, the paths to read.",
                )
            if depth > self._max_depth:
                return Cut()
        return self.record(message, chosen, wanted, path, around)

    def _expect_no_inner(self, chosen: Chosen | None, path: Path) -> None:
        if chosen:
            raise no_field(path / next(iter(chosen)), [])


def _key_of(text: str, leaf: Leaf, path: Path) -> Any:
    """Returns a key of a map.

    Raises:
        FieldError: If the keys of the map are of another type (also a KeyError).
    """
    key: Any = text
    with contextlib.suppress(KeyError, ValueError, OverflowError, pa.ArrowException):
        if pa.types.is_string(leaf.arrow):
            return text.encode()
        if pa.types.is_boolean(leaf.arrow):
            return {"true": True, "false": False}[text]
        key = int(text)
        pa.scalar(key, leaf.arrow)  # raises if it does not fit
        return key
    raise FieldError(path, f"a key of the type {leaf.arrow}", repr(text), "Check the spelling.")


def _count(found: FieldDescriptor) -> Count:
    if _is_repeated(found):
        return Count.MANY
    if _is_required(found):
        return Count.REQUIRED
    # The value of a map entry is there, even if the entry lacks it.
    if found.containing_type is not None and found.containing_type.GetOptions().map_entry:
        return Count.ONE
    return Count.OPTIONAL if found.has_presence else Count.ONE


def _is_repeated(found: Any) -> bool:
    # protobuf 7 has no `label`, and protobuf 5 has no `is_repeated`.
    known = getattr(found, "is_repeated", None)
    return found.label == Proto.LABEL_REPEATED if known is None else known


def _is_required(found: Any) -> bool:
    known = getattr(found, "is_required", None)
    return found.label == Proto.LABEL_REQUIRED if known is None else known


def _is_packed(found: Any) -> bool:
    known = getattr(found, "is_packed", None)
    if known is not None:
        return bool(known)
    options = found.GetOptions()
    if options.HasField("packed"):
        return options.packed
    file = FileDescriptorProto()
    found.file.CopyToProto(file)
    return file.syntax == "proto3"


def _leaf(found: FieldDescriptor) -> Leaf:
    if found.type == Proto.TYPE_ENUM:
        default = int(found.default_value or 0)
        return Leaf(Proto.TYPE_INT32, 0 if _is_repeated(found) else default)
    zeros: dict[int, Any] = {Proto.TYPE_STRING: "", Proto.TYPE_BYTES: b"", Proto.TYPE_BOOL: False,
                              Proto.TYPE_FLOAT: 0.0, Proto.TYPE_DOUBLE: 0.0}  # fmt: skip
    zero = zeros.get(found.type, 0)
    return Leaf(found.type, zero if _is_repeated(found) else found.default_value)


def _oneof_of(found: FieldDescriptor) -> OneofDescriptor | None:
    """Returns the oneof of a field, if it is not one that only marks `optional` in proto3."""
    oneof = found.containing_oneof
    if oneof is None or oneof.name in _marks(found.containing_type):
        return None
    return oneof


@functools.lru_cache(1024)
def _marks(descriptor: Descriptor) -> frozenset[str]:
    """Returns the names of the oneofs that only mark a field of proto3 as `optional`."""
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    return frozenset(
        proto.oneof_decl[field.oneof_index].name for field in proto.field if field.proto3_optional
    )


def _names(descriptor: Descriptor) -> list[str]:
    """Returns the names of all fields of the records, in the order of the message type."""
    names: dict[str, None] = {}
    for found in descriptor.fields:
        oneof = _oneof_of(found)
        names[found.name if oneof is None else oneof.name] = None
    return [*names, *(extension.full_name for extension in _extensions(descriptor))]


def _known(descriptor: Descriptor) -> dict[str, Any]:
    """Returns what may be chosen, by name: fields, oneofs, members of oneofs, extensions."""
    known: dict[str, Any] = {}
    for found in descriptor.fields:
        known[found.name] = found
        oneof = _oneof_of(found)
        if oneof is not None:
            known.setdefault(oneof.name, oneof)
    return {**known, **{found.full_name: found for found in _extensions(descriptor)}}


@functools.lru_cache(1024)
def has_extensions(descriptor: Descriptor) -> bool:
    """Returns whether a message type, or one inside it, may have extensions."""
    seen: dict[str, Descriptor] = {}
    waiting = [descriptor]
    while waiting:
        one = waiting.pop()
        if one.full_name not in seen:
            seen[one.full_name] = one
            waiting += [f.message_type for f in one.fields if f.message_type is not None]
    return any(one.is_extendable for one in seen.values())


def _extensions(descriptor: Descriptor) -> list[FieldDescriptor]:
    if not descriptor.is_extendable:
        return []
    found = descriptor.file.pool.FindAllExtensions(descriptor)
    return sorted(found, key=lambda extension: extension.number)
