"""Damaged messages are refused by name, or read as protobuf reads them."""

import random

from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message import DecodeError

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.mutation import damaged
from tests.samples import proto_types

COLUMNS = ["name", "field", "enum_type", "oneof_decl", "reserved_range", "reserved_name"]


def test_damaged_messages_are_refused_or_read_as_protobuf_reads_them():
    ends = cases.run(__name__, cases.seeds(1000))
    assert {"refused", "read"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    whole = [_message(dice).SerializeToString() for _ in range(dice.randint(1, 5))]
    number = dice.randrange(len(whole))
    messages = list(whole)
    one = whole[number]
    messages[number] = damaged(dice, one, [(0, len(one))])
    columns = dice.choice([COLUMNS, ["name"], ["field.name", "field.options.packed"]])
    wanted = _theirs(messages)
    records, refusal = _ours(messages, columns)
    if refusal is not None:
        # protobuf returns text of proto2 that is not UTF-8 as bytes.
        assert wanted is None or "UTF-8" in refusal
        assert f"record {number}" in refusal
        return "refused"
    if wanted is not None:
        got = [_chosen(record, columns) for record in records.to_py()]
        assert got == [_chosen(record, columns) for record in wanted]
        return "read"
    return "damaged where nobody read"


def _message(dice):
    made = DescriptorProto(name=dice.choice(["", "M", "é"]))
    for i in range(dice.randint(0, 4)):
        field = made.field.add(
            name=f"f{i}", number=dice.randint(1, 1 << 28), type=dice.randint(1, 18)
        )
        if dice.random() < 0.5:
            field.options.packed = dice.random() < 0.5
    made.reserved_name.extend(dice.choice(["a", "b" * 200]) for _ in range(dice.randint(0, 3)))
    made.reserved_range.add(start=dice.randint(-5, 5), end=7)
    return made


def _ours(messages, columns):
    try:
        return xt.from_proto(messages, DescriptorProto, columns), None
    except xt.errors.FormatError as error:
        return None, str(error)


def _theirs(messages):
    """Returns the records as protobuf reads them, or None if it does not."""
    try:
        parsed = [DescriptorProto.FromString(message) for message in messages]
        return [proto_types.record(message) for message in parsed]
    except (DecodeError, UnicodeDecodeError):
        return None


def _chosen(record, columns):
    if columns is COLUMNS:
        return (record["name"], [f["number"] for f in record["field"]], record["reserved_range"])
    return record["name"] if columns == ["name"] else [f["name"] for f in record["field"]]
