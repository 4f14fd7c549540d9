"""Message types created at run time, messages, and the records expected for them."""

import math

import pyarrow as pa
from google.protobuf import (  # noqa: F401
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from hypothesis import strategies as st

NUMBERS = {
    Proto.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    Proto.TYPE_SINT32: st.integers(-(2**31), 2**31 - 1),
    Proto.TYPE_SFIXED32: st.integers(-(2**31), 2**31 - 1),
    Proto.TYPE_UINT32: st.integers(0, 2**32 - 1),
    Proto.TYPE_FIXED32: st.integers(0, 2**32 - 1),
    Proto.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    Proto.TYPE_SINT64: st.integers(-(2**63), 2**63 - 1),
    Proto.TYPE_SFIXED64: st.integers(-(2**63), 2**63 - 1),
    Proto.TYPE_UINT64: st.integers(0, 2**64 - 1),
    Proto.TYPE_FIXED64: st.integers(0, 2**64 - 1),
    Proto.TYPE_FLOAT: st.floats(width=32),
    Proto.TYPE_DOUBLE: st.floats(),
    Proto.TYPE_BOOL: st.booleans(),
}
TEXTS = {
    Proto.TYPE_STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    Proto.TYPE_BYTES: st.binary(max_size=4),
}
KEYS = [t for t in NUMBERS if t not in (Proto.TYPE_FLOAT, Proto.TYPE_DOUBLE)] + [Proto.TYPE_STRING]
FILES = ["timestamp", "duration", "wrappers", "struct", "any"]
TIMES = {
    "google.protobuf.Timestamp": pa.timestamp("ns", "UTC"),
    "google.protobuf.Duration": pa.duration("ns"),
}
WRAPPERS = [f"{n}Value" for n in "Double Float Int64 UInt64 Int32 UInt32 Bool String Bytes".split()]


def message_class(file, name, *more):
    """Returns the class of a message type of a FileDescriptorProto."""
    pool = descriptor_pool.DescriptorPool()
    for known in FILES:
        of_known = descriptor_pool.Default().FindFileByName(f"google/protobuf/{known}.proto")
        pool.AddSerializedFile(of_known.serialized_pb)
    for one in (file, *more):
        pool.AddSerializedFile(one.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def file_of(syntax="proto3"):
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax=syntax)
    file.dependency.extend(f"google/protobuf/{known}.proto" for known in FILES)
    return file


def add(message, name, kind, repeated=False, required=False, optional=False, **rest):
    """Adds a field to a DescriptorProto; `kind` is a number, or the name of a message type."""
    field = message.field.add(name=name, number=len(message.field) + 1, **rest)
    field.label = 3 if repeated else 2 if required else 1
    if isinstance(kind, str):
        field.type, field.type_name = Proto.TYPE_MESSAGE, kind
    else:
        field.type = kind
    if optional:  # of proto3
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    return field


@st.composite
def classes(draw):
    """Draws a class of messages."""
    syntax = draw(st.sampled_from(["proto2", "proto3"]))
    file = file_of(syntax)
    color = file.enum_type.add(name="Color")
    for i, name in enumerate(["NO_COLOR", "RED", "BLUE"]):
        color.value.add(name=name, number=[0, 1, 7][i])
    _fill(draw, file.message_type.add(name="M"), ".t.M", syntax, 2)
    return message_class(file, "t.M")


def _fill(draw, message, full_name, syntax, depth):
    for i in range(draw(st.integers(0, 4))):
        _add(draw, message, full_name, f"f{i}", syntax, depth)
    if draw(st.booleans()) and depth:
        oneofs = len(message.oneof_decl)
        message.oneof_decl.add(name="choice")
        for i in range(draw(st.integers(1, 3))):
            field = _add(draw, message, full_name, f"o{i}", syntax, depth, in_oneof=True)
            field.oneof_index = oneofs
    # The oneofs that mark optional fields follow all others.
    real = [o for o in message.oneof_decl if not o.name.startswith("_")]
    marks = [o for o in message.oneof_decl if o.name.startswith("_")]
    names = [o.name for o in (*real, *marks)]
    before = [o.name for o in message.oneof_decl]
    for field in message.field:
        if field.HasField("oneof_index"):
            field.oneof_index = names.index(before[field.oneof_index])
    del message.oneof_decl[:]
    for name in names:
        message.oneof_decl.add(name=name)


def _add(draw, message, full_name, name, syntax, depth, in_oneof=False):
    kinds = ["number", "number", "text", "enum", "time", "wrapper"]
    if depth:
        kinds += ["record", "record"] + ([] if in_oneof else ["map"])
        kinds += ["group"] if syntax == "proto2" else []
    kind = draw(st.sampled_from(kinds))
    rest = {"number": draw(st.sampled_from([1, 17, 3000])) + len(message.field)}
    label = "one" if in_oneof else draw(st.sampled_from(["one", "optional", "required", "many"]))
    labels = {"repeated": label == "many" or kind == "map"}
    labels["required"] = syntax == "proto2" and label == "required" and kind != "map"
    labels["optional"] = syntax == "proto3" and label == "optional" and kind != "map"
    number = draw(st.sampled_from(sorted(NUMBERS)))
    if kind == "map":
        entry = message.nested_type.add(name=f"{name.upper()}Entry")
        entry.options.map_entry = True
        add(entry, "key", draw(st.sampled_from(KEYS)))
        _value(draw, entry, message, full_name, syntax, depth, number)
        type_name = f"{full_name}.{entry.name}"
        return _added(message, name, type_name, labels, rest)
    if kind in ("record", "group"):
        inner = message.nested_type.add(name=f"{name.upper()}")
        type_name = f"{full_name}.{inner.name}"
        _fill(draw, inner, type_name, syntax, depth - 1)
        field = _added(message, name, type_name, labels, rest)
        if kind == "group":
            field.type = Proto.TYPE_GROUP
        return field
    if kind == "time":
        known = f".{draw(st.sampled_from(list(TIMES)))}"
        return _added(message, name, known, labels, rest)
    if kind == "wrapper":
        known = f".google.protobuf.{draw(st.sampled_from(WRAPPERS))}"
        return _added(message, name, known, labels, rest)
    if kind == "enum":
        field = _added(message, name, ".t.Color", labels, rest)
        field.type = Proto.TYPE_ENUM
        if syntax == "proto2" and label == "optional":
            field.default_value = "BLUE"
        return field
    if kind == "text":
        number = draw(st.sampled_from(sorted(TEXTS)))
    field = _added(message, name, number, labels, rest)
    if label == "many" and kind == "number":
        field.options.packed = draw(st.booleans())
    if syntax == "proto2" and label == "optional":
        defaults = {Proto.TYPE_BOOL: "true", Proto.TYPE_STRING: "é", Proto.TYPE_BYTES: r"\377a"}
        field.default_value = defaults.get(number, "3")
    return field


def _added(message, name, kind, labels, rest):
    rest = dict(rest)
    number = rest.pop("number")
    while number in [f.number for f in message.field]:
        number += 1
    field = add(message, name, kind, **labels)
    field.number = number
    return field


def _value(draw, entry, message, full_name, syntax, depth, number):
    if draw(st.booleans()):
        add(entry, "value", number)
        return
    inner = message.nested_type.add(name=f"{entry.name}V")
    _fill(draw, inner, f"{full_name}.{inner.name}", syntax, depth - 1)
    add(entry, "value", f"{full_name}.{inner.name}")


@st.composite
def messages(draw, cls):
    """Draws a message of a class, with all required fields."""
    message = cls()
    _set(draw, message)
    return message


def _set(draw, message):
    descriptor = message.DESCRIPTOR
    if descriptor.full_name in TIMES:
        message.seconds = draw(st.integers(-(10**9), 9 * 10**9))
        message.nanos = draw(st.integers(0, 10**9 - 1))
        if descriptor.name == "Duration" and message.seconds < 0:
            message.nanos *= -1  # the parts of a duration have one sign
        return
    for field in descriptor.fields:
        if _label(field) != "required" and not draw(st.booleans()):
            continue
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, of = field.message_type.fields
            for _ in range(draw(st.integers(0, 2))):
                if of.message_type is not None:
                    _set(draw, value[_drawn(draw, key)])
                else:
                    value[_drawn(draw, key)] = _drawn(draw, of)
        elif _label(field) == "repeated":
            for _ in range(draw(st.integers(0, 3))):
                if field.message_type is not None:
                    _set(draw, value.add())
                else:
                    value.append(_drawn(draw, field))
        elif field.message_type is not None:
            value.SetInParent()
            _set(draw, value)
        else:
            setattr(message, field.name, _drawn(draw, field))


def _drawn(draw, field):
    if field.enum_type is not None:
        return draw(st.sampled_from([v.number for v in field.enum_type.values]))
    return draw({**NUMBERS, **TEXTS}[field.type])


def record(message, absent="list"):
    """Returns what the record of a message must be, by the public API of protobuf.

    Args:
        message: The message.
        absent: What a field that is not there becomes: "list", "mask" or "default".
    """
    fields = {}
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        if oneof is not None and not oneof.name.startswith("_"):
            if oneof.name not in fields:
                name = message.WhichOneof(oneof.name)
                found = [] if name is None else [_value_of(getattr(message, name), absent)]
                if absent == "mask":
                    found = found[0] if found else None
                fields[oneof.name] = found
            continue
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            items = [{"key": _value_of(k, absent), "value": _value_of(value[k], absent)}
                     for k in value]  # fmt: skip
            fields[field.name] = sorted(items, key=repr)
        elif _label(field) == "repeated":
            fields[field.name] = [_value_of(item, absent) for item in value]
        elif _label(field) == "required" or not field.has_presence or absent == "default":
            fields[field.name] = _value_of(value, absent)
        else:
            found = [_value_of(value, absent)] if message.HasField(field.name) else []
            if absent == "mask":
                found = found[0] if found else None
            fields[field.name] = found
    known = message.DESCRIPTOR.is_extendable and message.DESCRIPTOR.file.pool
    for field in known.FindAllExtensions(message.DESCRIPTOR) if known else ():
        value = message.Extensions[field]
        if _label(field) == "repeated":
            fields[field.full_name] = [_value_of(item, absent) for item in value]
        else:
            found = [_value_of(value, absent)] if message.HasExtension(field) else []
            fields[field.full_name] = found
    return fields


def _label(field):
    if hasattr(field, "is_repeated"):  # newer protobuf warns of `label`
        return "repeated" if field.is_repeated else "required" if field.is_required else "optional"
    return {1: "optional", 2: "required", 3: "repeated"}[field.label]


def _value_of(value, absent):
    descriptor = getattr(value, "DESCRIPTOR", None)
    if descriptor is None:
        if isinstance(value, float) and math.isnan(value):
            return "nan"
        return value
    if descriptor.full_name in TIMES:
        return pa.scalar(value.seconds * 10**9 + value.nanos, TIMES[descriptor.full_name]).as_py()
    if descriptor.full_name in [f"google.protobuf.{name}" for name in WRAPPERS]:
        return _value_of(value.value, absent)
    return record(value, absent)


def plain(records):
    """Returns records in the form of `record`: maps in order, NaN as a word."""
    if isinstance(records, dict):
        return {name: plain(value) for name, value in records.items()}
    if isinstance(records, list):
        values = [plain(value) for value in records]
        if values and all(isinstance(v, dict) and list(v) == ["key", "value"] for v in values):
            return sorted(values, key=repr)
        return values
    if isinstance(records, float) and math.isnan(records):
        return "nan"
    return records
