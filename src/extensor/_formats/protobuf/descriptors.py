"""Descriptors of message types to the fields of records."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from extensor._arrow.arrow_type import inner_fields
from extensor._formats.protobuf.absent import Absent, is_word
from extensor._formats.protobuf.chosen_fields import (
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
    Key,
    MessageField,
    Oneof,
    Record,
    Scalar,
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


_MOST_VARIANTS = 128
"""So many variants the unions of Arrow have, whose codes are int8."""

_ZEROS: dict[int, Any] = {
    Proto.TYPE_STRING: "",
    Proto.TYPE_BYTES: b"",
    Proto.TYPE_BOOL: False,
    Proto.TYPE_FLOAT: 0.0,
    Proto.TYPE_DOUBLE: 0.0,
}


def descriptor_of(message: object) -> Descriptor:
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
    absent: Absent,
    max_depth: int | None,
) -> Record:
    """Returns the fields of the records of a message type.

    Args:
        descriptor: The message type.
        columns: The paths of the fields; None for all.
        schema: The schema of the records; None if it follows from the message type.
        absent: What to do where a message does not have a field.
        max_depth: How often a message type may be inside itself; None for never.

    Raises:
        FieldError: If a field does not exist (also a KeyError).
        StructureError: If the type is recursive, and `max_depth` is None (also a ValueError).
    """
    if columns is not None:
        chosen = chosen_fields(columns, _choices(descriptor))
    else:
        chosen = None if schema is None else chosen_by(schema)
    arrow = None if schema is None else pa.struct(list(schema))
    place = _MessagePlace(Path(), chosen, arrow, {})
    return _FieldMaker(absent, max_depth).record(descriptor, place)


class _MessagePlace(NamedTuple):
    """Where records or a field are, and what is asked for there.

    Attributes:
        path: The path.
        chosen: The fields inside to read; None for all.
        arrow: The type that the schema has there; None if no schema is given.
        around: The message types around, and how often each.
    """

    path: Path
    chosen: Chosen | None
    arrow: pa.DataType | None
    around: Mapping[str, int]

    def item(self) -> _MessagePlace:
        """Returns the same place of the items of a list."""
        return self if self.arrow is None else self._replace(arrow=item_of(self.arrow))


_Policied = TypeVar("_Policied", MessageField, Oneof)


class _FieldMaker:
    """Makes fields of descriptors.

    Args:
        absent: The policies for fields that a message does not have.
        max_depth: How often a message type may be inside itself.
    """

    def __init__(self, absent: Absent, max_depth: int | None) -> None:
        self._absent = absent
        self._max_depth = max_depth

    def record(self, descriptor: Descriptor, at: _MessagePlace) -> Record:
        """Returns a message type as a record."""
        if at.arrow is not None and not pa.types.is_struct(at.arrow):
            expected = f"records, because the field is a message of type {descriptor.full_name}"
            fix = "Convert the field, or choose others."
            raise DTypeError(at.path, expected, f"Arrow type {at.arrow}", fix)
        around = {**at.around, descriptor.full_name: at.around.get(descriptor.full_name, 0) + 1}
        known = _choices(descriptor)
        names = _names(descriptor) if at.chosen is None else list(at.chosen)
        if descriptor.GetOptions().map_entry:
            names.sort()  # the key first
        fields: list[AnyField] = []
        for name in names:
            if name not in known:
                raise no_field(at.path / name, list(known))
            chosen = None if at.chosen is None else at.chosen[name]
            arrow = None if at.arrow is None else at.arrow.field(name).type
            place = _MessagePlace(at.path / name, chosen, arrow, around)
            found = known[name]
            if isinstance(found, OneofDescriptor):
                fields += self._oneof(found, place)
            else:
                oneof = _oneof_of(found)
                if oneof is not None and oneof in map(known.get, names):
                    expected = f"either the oneof {at.path / oneof.name}, or fields of it"
                    raise FieldError(place.path, expected, "both", "Leave out one of them.")
                fields.append(self._field(found, name, place))
        left_out = [f.name for f in descriptor.fields if _is_required(f) and f.name not in names]
        paths = tuple(at.path / name for name in left_out)
        return Record(descriptor.full_name, tuple(fields), paths)

    def _field(
        self, found: FieldDescriptor, name: str, at: _MessagePlace, is_member: bool = False
    ) -> MessageField:
        entry = found.message_type
        is_map = entry is not None and entry.GetOptions().map_entry
        if is_map and at.arrow is not None and pa.types.is_struct(at.arrow):  # the schema has keys
            chosen = {MapKey(key): inner for key, inner in (at.chosen or {}).items()}
            at = at._replace(chosen=chosen)
        if at.chosen and any(isinstance(inner, MapKey) for inner in at.chosen):
            return self._keys_of(found, is_map, name, at)
        kind = self._type(found, at.item())
        count = Count.NULLABLE if is_member else _count(found)
        oneof = _oneof_of(found)
        made = MessageField(
            name,
            at.path,
            found.number,
            Count.MANY if isinstance(kind, Cut) else count,
            kind,
            is_group=found.type == Proto.TYPE_GROUP,
            is_map=is_map,
            is_packed=_is_repeated(found) and _is_packed(found),
            oneof="" if oneof is None else oneof.name,
            given=at.item().arrow,
        )
        if isinstance(kind, Cut) or count is not Count.OPTIONAL:
            return made
        return self._with_policy(made, kind.arrow, at.arrow)

    def _keys_of(
        self, found: FieldDescriptor, is_map: bool, name: str, at: _MessagePlace
    ) -> MessageField:
        """Returns a field that has some keys of a map."""
        path, chosen = at.path, at.chosen or {}
        keys = [key for key in chosen if isinstance(key, MapKey)]
        entry: Any = found.message_type
        if not is_map or len(keys) < len(chosen):
            expected = "no key in brackets, because the field is not a map"
            if is_map:
                expected = "either keys in brackets, or key and value"
            raise FieldError(path, expected, ", ".join(chosen), "Check the spelling.")
        if any(chosen[key] != chosen[keys[0]] for key in keys):
            expected = "the same fields for each key of the map"
            fix = "Choose these fields for each key."
            raise StructureError(path, expected, f"others for {keys[0]} than for {keys[-1]}", fix)
        of_key, of_value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        fields: list[MessageField] = []
        for key in keys:
            arrow = None if at.arrow is None else at.arrow.field(key.text).type
            place = _MessagePlace(path / key.text, chosen[key], arrow, at.around)
            kind = self._type(of_value, place.item())
            if isinstance(kind, Cut):
                raise no_field(place.path, [])
            made = MessageField(key.text, place.path, of_value.number, Count.OPTIONAL, kind)
            fields.append(self._with_policy(made, kind.arrow, arrow))
        leaf = _leaf(of_key)
        values = tuple(_key_of(key.text, leaf, path) for key in keys)
        kind = ChosenKeys(
            entry.full_name, tuple(fields), key=leaf, value=fields[0].type, keys=values
        )
        return MessageField(name, path, found.number, Count.MANY, kind, is_map=True)

    def _with_policy(
        self, made: _Policied, arrow: pa.DataType, wanted: pa.DataType | None
    ) -> _Policied:
        policy = self._absent.policy(made.path, arrow)
        if policy is None and (wanted is None or not is_list(wanted)):
            # The masks of a union are those of its variants.
            is_masked = isinstance(made, Oneof) and self._absent.masks(m.path for m in made.members)
            if is_masked:
                policy = "mask"
            elif wanted is not None:
                policy = "error"  # the schema has no list
        if policy is None:
            return made
        if is_word(policy, "default"):
            # A oneof has no default: it stays a list.
            return made if isinstance(made, Oneof) else dataclasses.replace(made, count=Count.ONE)
        return dataclasses.replace(made, count=Count.NULLABLE, policy=policy)

    def _oneof(self, found: OneofDescriptor, at: _MessagePlace) -> list[AnyField]:
        if at.chosen:
            name = next(iter(at.chosen))
            expected = f"the oneof {at.path}, or one of its fields"
            fix = f'Write columns=["{name}"] for one field of the oneof.'
            raise FieldError(at.path / name, expected, str(at.path / name), fix)
        union = at.item().arrow
        names = [member.name for member in found.fields]
        if union is not None and not pa.types.is_union(union):
            expected = f"a union of the fields of the oneof: {', '.join(names)}"
            fix = "Make a UnionTensor, or records with one of these fields."
            raise DTypeError(at.path, expected, f"Arrow type {union}", fix)
        variants = {} if union is None else {each.name: each.type for each in inner_fields(union)}
        for name in variants:
            if name not in names:
                raise no_field(at.path / name, names)
        members: list[MessageField] = []
        for member in found.fields:
            name, arrow = member.name, variants.get(member.name)
            if union is None or arrow is not None:
                chosen = None if arrow is None else chosen_inside(arrow)
                self._absent.is_known(at.path / name)
                place = _MessagePlace(at.path / name, chosen, arrow, at.around)
                members.append(self._field(member, name, place, is_member=True))
        cut = [member for member in members if isinstance(member.type, Cut)]
        members = [member for member in members if member not in cut]
        if not members:
            return [*cut]
        if len(members) > _MOST_VARIANTS:
            expected = f"at most {_MOST_VARIANTS} fields, which is all that a union has"
            fix = "Give columns= with those fields of the oneof that are to be read."
            raise StructureError(at.path, expected, f"a oneof of {len(members)} fields", fix)
        made = Oneof(found.name, at.path, Count.OPTIONAL, tuple(members))
        return [self._with_policy(made, item_of(made.arrow.type), at.arrow), *cut]

    def _type(self, found: FieldDescriptor, at: _MessagePlace) -> Type:
        message = found.message_type
        name = "" if message is None else message.full_name
        is_value = message is None or name in _TIMES or name in _WRAPPERS
        if is_value and at.chosen:
            raise no_field(at.path / next(iter(at.chosen)), [])
        if message is None:
            return _leaf(found)
        if name in _TIMES:
            return Time(_TIMES[name])
        if name in _WRAPPERS:
            return Wrapper(_leaf(message.fields_by_name["value"]))
        depth = at.around.get(name, 0)
        # A path that goes on names a depth itself.
        if depth and at.chosen is None:
            if self._max_depth is None:
                expected = "a message type that is not inside itself"
                fix = "Give max_depth=, how often it holds itself, or columns=, the paths to read."
                raise StructureError(at.path, expected, f"the recursive type {name}", fix)
            if depth > self._max_depth:
                return Cut()
        return self.record(message, at)


def _key_of(text: str, leaf: Scalar, path: Path) -> Key:
    """Returns a key of a map.

    Raises:
        FieldError: If the keys of the map are of another type (also a KeyError).
    """
    with contextlib.suppress(KeyError, ValueError, OverflowError, pa.ArrowException):
        if pa.types.is_string(leaf.arrow):
            return text.encode()
        if pa.types.is_boolean(leaf.arrow):
            return {"true": True, "false": False}[text]
        return pa.scalar(int(text), leaf.arrow).as_py()
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


def _leaf(found: FieldDescriptor) -> Scalar:
    if found.type == Proto.TYPE_ENUM:
        default = int(found.default_value or 0)
        return Scalar(Proto.TYPE_INT32, 0 if _is_repeated(found) else default)
    if _is_repeated(found):
        return Scalar(found.type, _ZEROS.get(found.type, 0))
    return Scalar(found.type, found.default_value)


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


def _choices(descriptor: Descriptor) -> dict[str, FieldDescriptor | OneofDescriptor]:
    """Returns what may be chosen, by name: fields, oneofs, members of oneofs, extensions."""
    known: dict[str, FieldDescriptor | OneofDescriptor] = {}
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
