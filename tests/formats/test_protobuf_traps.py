"""What messages may hold beside plain fields, and what damaged messages give."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

import extensor as xt
from tests.samples.proto_types import add, file_of, message_class, plain, record

INT, TEXT = Proto.TYPE_INT32, Proto.TYPE_STRING


_functions = {}


def in_graph(serialized, cls, **options):
    """The records as a function reads them that was traced once for any number of messages."""
    key = cls, repr(options)
    if key not in _functions:
        read = tf.function(lambda s: xt.from_proto(s, cls, **options), autograph=False)
        _functions[key] = read.get_concrete_function(tf.TensorSpec([None], tf.string))
    return _functions[key](tf.constant(serialized, tf.string, [len(serialized)]))


def both(serialized, cls, **options):
    """The records of both engines, which must be equal."""
    records = xt.from_proto(serialized, cls, **options).to_py()
    assert in_graph(serialized, cls, **options).to_py() == records
    return records


@pytest.fixture(scope="module")
def recipe():
    file = file_of()
    step = file.message_type.add(name="Step")
    add(step, "minutes", INT)
    add(step, "tool", TEXT, optional=True)
    message = file.message_type.add(name="Recipe")
    add(message, "title", TEXT)
    add(message, "steps", ".t.Step", repeated=True)
    add(message, "best", ".t.Step")
    return message_class(file, "t.Recipe")


@pytest.fixture(scope="module")
def choice():
    file = file_of()
    inner = file.message_type.add(name="In")
    add(inner, "x", INT)
    add(inner, "y", INT)
    message = file.message_type.add(name="M")
    message.oneof_decl.add(name="kind")
    add(message, "a", INT).oneof_index = 0
    add(message, "b", TEXT).oneof_index = 0
    add(message, "c", ".t.In").oneof_index = 0
    return message_class(file, "t.M")


@pytest.fixture(scope="module")
def tree():
    file = file_of()
    message = file.message_type.add(name="Tree")
    add(message, "name", TEXT)
    add(message, "below", ".t.Tree", repeated=True)
    return message_class(file, "t.Tree")


@pytest.mark.whole("traces many functions")
def test_one_message_is_one_record(recipe):
    one = recipe(title="tea").SerializeToString()
    zero_rank = np.array(one, object)
    for serialized in (one, bytearray(one), recipe(title="tea"), tf.constant(one), zero_rank):
        record = xt.from_proto(serialized, recipe)
        assert record.rank == 0
        assert record.to_py() == {"title": "tea", "steps": [], "best": []}
    decoded = tf.function(lambda s: xt.from_proto(s, recipe))(tf.constant(one))
    assert decoded.rank == 0
    assert decoded.to_py() == record.to_py()


@pytest.mark.whole("compiles a proto file a case")
def test_a_batch_is_a_vector(recipe):
    one = recipe(title="tea").SerializeToString()
    arrays = ([one], (one,), np.array([one], object), pa.array([one]), tf.constant([one]))
    for serialized in arrays:
        assert xt.from_proto(serialized, recipe)["title"].numpy().tolist() == [b"tea"]
    assert both([], recipe) == []


def test_a_column_that_is_not_selected_is_not_decoded(recipe):
    broken = recipe(title="tea").SerializeToString() + b"\x12\x02\x08\x80"  # a damaged step
    assert both([broken], recipe, columns=["title"]) == [{"title": "tea"}]
    with pytest.raises(xt.errors.FormatError, match="record 0"):
        xt.from_proto([broken], recipe)


@pytest.mark.whole("compiles a proto file a case")
def test_columns_are_paths(recipe):
    message = recipe(title="tea", steps=[{"minutes": 5}], best={"tool": "pot"})
    got = both([message.SerializeToString()], recipe, columns=["steps.minutes", "best.tool"])
    assert got == [{"steps": [{"minutes": 5}], "best": [{"tool": ["pot"]}]}]
    with pytest.raises(xt.errors.FieldError, match=r"steps\.minute: .* Did you mean minutes"):
        xt.from_proto([], recipe, columns=["steps.minute"])
    with pytest.raises(xt.errors.FieldError):
        xt.from_proto([], recipe, columns=["title.x"])


@pytest.mark.whole("traces many functions")
def test_a_damaged_message_is_named(recipe):
    good = recipe(title="tea").SerializeToString()
    messages = [good] * 10
    messages[7] = b"\x0a\x09x"
    with pytest.raises(xt.errors.FormatError, match=r"record 7: .*unexpected EOF"):
        xt.from_proto(messages, recipe)
    with pytest.raises(tf.errors.DataLossError):
        in_graph(messages, recipe)
    with pytest.raises(xt.errors.NullError, match="record 1"):
        xt.from_proto([good, None], recipe)
    with pytest.raises(xt.errors.DTypeError, match="str in record 1"):
        xt.from_proto([good, "tea"], recipe)
    with pytest.raises(xt.errors.DTypeError, match="message class"):
        xt.from_proto([good], "t.Recipe")


@pytest.mark.whole("compiles a proto file a case")
def test_parts_of_a_message_are_merged(recipe, choice):
    tool, minutes = recipe(best={"tool": "pot"}), recipe(best={"minutes": 5})
    parts = tool.SerializeToString() + minutes.SerializeToString()
    for nulls, wanted in ((None, [{"minutes": 5, "tool": ["pot"]}]),
                          ("default", {"minutes": 5, "tool": "pot"})):  # fmt: skip
        got = both([parts, b""], recipe, columns=["best"], nulls=nulls)
        assert got[0]["best"] == wanted
    c = choice(c={"x": 1}).SerializeToString() + choice(c={"y": 2}).SerializeToString()
    assert both([c], choice) == [{"kind": [{"x": 1, "y": 2}]}]


def test_the_last_field_of_a_oneof_counts(choice):
    serialized = choice(b="x").SerializeToString() + choice(a=3).SerializeToString()
    assert xt.from_proto([serialized, b""], choice).to_py() == [{"kind": [3]}, {"kind": []}]
    # tf.io.decode_proto does not say which of two fields is the last.
    with pytest.raises(tf.errors.InvalidArgumentError, match="two fields of this oneof"):
        in_graph([serialized], choice)


@pytest.mark.parametrize("has_group", [False, True])
def test_numbers_that_an_enum_does_not_list_stay_beside_a_oneof_and_a_group(has_group):
    file = file_of("proto2")
    file.enum_type.add(name="Color").value.add(name="RED", number=3)
    message = file.message_type.add(name="M")
    message.oneof_decl.add(name="kind")
    add(message, "a", INT).oneof_index = 0
    add(message, "b", TEXT).oneof_index = 0
    add(message, "colors", ".t.Color", repeated=True).type = Proto.TYPE_ENUM
    if has_group:
        add(message.nested_type.add(name="G"), "x", INT)
        add(message, "g", ".t.M.G").type = Proto.TYPE_GROUP
    cls = message_class(file, "t.M")
    twice = cls(a=1).SerializeToString() + cls(b="x").SerializeToString()
    wanted = [{"kind": [], "colors": [99, 3]}, {"kind": ["x"], "colors": []}]
    for row in wanted if has_group else ():
        row["g"] = []
    assert xt.from_proto([b"\x18\x63\x18\x03", twice], cls).to_py() == wanted


def test_a_oneof_of_more_fields_than_a_union_has_is_read_by_columns():
    file = file_of()
    message = file.message_type.add(name="M")
    message.oneof_decl.add(name="kind")
    for number in range(129):
        add(message, f"p{number}", INT).oneof_index = 0
    cls = message_class(file, "t.M")
    for read in (lambda: xt.from_proto([], cls), lambda: xt.spec_from_proto(cls)):
        with pytest.raises(
            xt.errors.StructureError, match=r"kind: .*128 fields.* of 129.*columns="
        ):
            read()
    chosen = xt.from_proto([cls(p128=7)], cls, columns=["p128", "p0"])
    assert chosen.to_py() == [{"p128": [7], "p0": []}]


@pytest.mark.whole("compiles a proto file a case")
def test_a_field_of_a_oneof_is_read_alone(choice):
    messages = [choice(a=0), choice(b="x"), choice()]
    serialized = [message.SerializeToString() for message in messages]
    assert both(serialized, choice, columns=["a"]) == [{"a": [0]}, {"a": []}, {"a": []}]
    assert in_graph(serialized, choice, nulls="auto").to_py()[2] == {"kind": None}
    assert both(serialized, choice, nulls={"kind": "mask"}) == [
        {"kind": 0}, {"kind": "x"}, {"kind": None}
    ]  # fmt: skip


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("nulls", ["mask", {"kind": "mask"}, {"kind.a": "mask"}])
def test_a_spec_pins_the_mask_of_a_oneof(choice, nulls):
    messages = [choice(a=5), choice(), choice(c={"x": 1})]
    serialized = [message.SerializeToString() for message in messages]
    records = xt.from_proto(serialized, choice, ["kind"], nulls=nulls)
    assert records.to_py() == [record(message, "mask") for message in messages]
    assert both(serialized, choice, schema=xt.spec_of(records)) == records.to_py()


def test_a_oneof_and_a_field_of_it_are_not_read_together(choice):
    message = choice(a=5).SerializeToString()
    for columns in (["kind", "a"], ["c.x", "kind"]):
        with pytest.raises(xt.errors.FieldError, match="either the oneof kind, or fields of it"):
            xt.from_proto([message], choice, columns)
    both = xt.from_proto([message], choice, ["a"]).with_updates(
        {"kind": xt.from_proto([message], choice)["kind"]}
    )
    with pytest.raises(xt.errors.FieldError, match="a: expected either the oneof kind"):
        xt.to_proto(both, choice)


def test_a_message_without_a_field_of_a_oneof_is_an_error_on_demand(choice):
    full = choice(b="x").SerializeToString()
    assert both([full], choice, nulls={"kind": "error"}) == [{"kind": "x"}]
    with pytest.raises(xt.errors.NullError, match="kind"):
        xt.from_proto([full, b""], choice, nulls={"kind": "error"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="kind: "):
        in_graph([full, b""], choice, nulls={"kind": "error"})


@pytest.mark.whole("traces many functions")
def test_a_recursive_type_needs_a_depth(tree):
    message = tree(name="a", below=[{"name": "b", "below": [{"name": "c"}]}])
    serialized = [message.SerializeToString()]
    with pytest.raises(xt.errors.StructureError, match=r"recursive type t\.Tree.*max_depth"):
        xt.from_proto(serialized, tree)
    assert both(serialized, tree, max_depth=2) == [
        {"name": "a", "below": [{"name": "b", "below": [{"name": "c"}]}]}
    ]
    assert both(serialized, tree, columns=["below.below.name"]) == [
        {"below": [{"below": [{"name": "c"}]}]}
    ]
    with pytest.raises(xt.errors.FormatError, match=r"record 1, below\.below: .*max_depth"):
        xt.from_proto([b"", *serialized], tree, max_depth=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_depth"):
        in_graph(serialized, tree, max_depth=1)


def test_extensions_are_fields_of_their_full_names():
    file = file_of("proto2")
    message = file.message_type.add(name="M")
    message.extension_range.add(start=100, end=200)
    add(message, "x", INT)
    more = file.extension.add(name="size", number=100, label=1, type=INT, extendee=".t.M")
    more.default_value = "7"
    file.extension.add(name="tags", number=101, label=3, type=TEXT, extendee=".t.M")
    cls = message_class(file, "t.M")
    message = cls(x=1)
    pool = cls.DESCRIPTOR.file.pool
    message.Extensions[pool.FindExtensionByName("t.tags")].append("a")
    serialized = [message.SerializeToString()]
    assert both(serialized, cls) == [{"x": [1], "t.size": [], "t.tags": ["a"]}]
    assert both(serialized, cls, columns=["t.size"], nulls="default") == [{"t.size": 7}]
    records = xt.from_proto(serialized, cls)
    assert xt.to_proto(records, cls).numpy().tolist() == serialized


def test_unknown_fields_are_skipped(recipe):
    unknown = b"\x9b\x06\x08\x01\x9c\x06" + b"\xa2\x06\x01x" + recipe(title="a").SerializeToString()
    assert both([unknown], recipe, columns=["title"]) == [{"title": "a"}]


def test_a_field_of_another_wire_type_is_unknown_where_a_part_is_repeated(recipe):
    # `minutes` as text and as a number: protobuf takes the text for an unknown field.
    step = b"\x0a\x02\x01\x02" + b"\x08\x05"
    message = b"\x12" + bytes([len(step)]) + step
    assert record(recipe.FromString(message))["steps"][0]["minutes"] == 5
    assert xt.from_proto([message], recipe)[0].to_py()["steps"][0]["minutes"] == 5


@pytest.mark.parametrize("tag", ["8a80808010", "8a808080 7f", "8a8080808000", "8a80808000", "0a"])
def test_a_tag_of_more_than_32_bits_is_refused_as_by_protobuf(recipe, tag):
    """A tag with zeros at its end, in five bytes, is no such tag."""
    message = bytes.fromhex(tag) + b"\x03tea"
    try:
        expected = recipe.FromString(message).title
    except DecodeError:
        with pytest.raises(xt.errors.FormatError, match="record 1"):
            xt.from_proto([b"", message], recipe, columns=["title"])
    else:
        assert xt.from_proto([message], recipe, columns=["title"]).to_py() == [{"title": expected}]


def test_any_is_its_url_and_its_bytes(recipe):
    file = file_of()
    message = file.message_type.add(name="Holder")
    add(message, "one", ".google.protobuf.Any")
    add(message, "many", ".google.protobuf.Any", repeated=True)
    holder = message_class(file, "t.Holder")
    packed = {
        "type_url": "type.googleapis.com/t.Recipe",
        "value": recipe(title="tea").SerializeToString(),
    }
    serialized = [holder(one=packed, many=[packed, {}]).SerializeToString(), b""]
    for records in (xt.from_proto(serialized, holder), in_graph(serialized, holder)):
        first, second = records.to_py()
        inner = first["many"][0]
        assert inner == {"type_url": "type.googleapis.com/t.Recipe", "value": packed["value"]}
        assert first["many"][1] == {"type_url": "", "value": b""}
        assert first["one"] in (inner, [inner])
        assert second["many"] == []
        # The bytes are messages of the type that the URL names.
        values = records["many.value"][0][:1]
        assert xt.from_proto(values, recipe)["title"].numpy().tolist() == [b"tea"]
    again = xt.to_proto(xt.from_proto(serialized, holder), holder)
    assert [holder.FromString(m) for m in again.numpy()] == [
        holder.FromString(m) for m in serialized
    ]


def test_a_required_field_that_is_missing_is_an_error():
    file = file_of("proto2")
    add(file.message_type.add(name="M"), "x", INT, required=True)
    cls = message_class(file, "t.M")
    with pytest.raises(xt.errors.FormatError, match=r"record 1, x: .*required"):
        xt.from_proto([cls(x=1), cls()], cls)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"x: .*required"):
        in_graph([b""], cls)


def test_to_proto_refuses_records_without_a_required_field(holder):
    for inner, path in (({"x": 7}, "a.below"), ({"x": 7, "below": {}}, "a.below.y")):
        records = xt.struct.constant([{"a": [inner]}])
        with pytest.raises(xt.errors.StructureError, match=f"^{path}: .* required in t"):
            xt.to_proto(records, holder)
    whole = {"x": 7, "below": {"y": "z"}}
    written = xt.to_proto(xt.struct.constant([{"a": [whole]}]), holder)
    assert holder.FromString(written[0].numpy()) == holder(a=whole)


@pytest.fixture(scope="module")
def holder():
    """Holders of messages that have required fields."""
    file = file_of("proto2")
    inner = file.message_type.add(name="In")
    add(inner, "x", INT, required=True)
    add(inner, "below", ".t.Below", required=True)
    add(file.message_type.add(name="Below"), "y", TEXT, required=True)
    message = file.message_type.add(name="M")
    message.oneof_decl.add(name="kind")
    add(message, "a", ".t.In").oneof_index = 0
    add(message, "b", INT).oneof_index = 0
    add(message, "one", ".t.In")
    return message_class(file, "t.M")


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("nulls", [None, "mask", "default"])
def test_a_message_that_is_not_there_may_lack_its_required_fields(holder, nulls):
    inner = {"x": 7, "below": {"y": "z"}}
    messages = [holder(), holder(a=inner), holder(b=1), holder(one=inner)]
    serialized = [message.SerializeToString() for message in messages]
    for chosen in (messages, messages[:1], messages[:0]):
        wanted = [record(message, nulls or "list") for message in chosen]
        assert both(serialized[: len(chosen)], holder, nulls=nulls) == wanted
    lacking = holder(a={"x": 7, "below": {}}).SerializePartialToString()
    with pytest.raises(xt.errors.FormatError, match=r"record 1, kind\.a\.below\.y: .*required"):
        xt.from_proto([serialized[0], lacking], holder, nulls=nulls)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"kind\.a\.below\.y: .*required"):
        in_graph([serialized[0], lacking], holder, nulls=nulls)


@pytest.mark.parametrize("packed", [b"\x02\x05\x06", b"\x01\x05", b"\x00"])
@pytest.mark.parametrize("kind", ["one", "optional", "required", "default"])
def test_a_packed_value_of_a_field_that_is_not_repeated_is_an_unknown_field(kind, packed):
    file = file_of("proto3" if kind in ("one", "optional") else "proto2")
    message = file.message_type.add(name="M")
    field = add(message, "x", INT, optional=kind == "optional", required=kind == "required")
    if kind == "default":
        field.default_value = "3"
    cls = message_class(file, "t.M")
    for serialized in (b"\x0a" + packed + b"\x08\x09", b"\x08\x09\x0a" + packed):
        assert xt.from_proto([serialized], cls).to_py() == [record(cls.FromString(serialized))]
    if kind != "required":
        wanted = [record(cls.FromString(b"\x0a" + packed))]
        assert xt.from_proto([b"\x0a" + packed], cls).to_py() == wanted
    else:
        with pytest.raises(xt.errors.FormatError, match=r"record 0, x: .*required"):
            xt.from_proto([b"\x0a" + packed], cls)


@pytest.mark.whole("traces many functions")
def test_packed_numbers_that_are_cut_are_an_error():
    file = file_of()
    inner = file.message_type.add(name="In")
    add(inner, "x", Proto.TYPE_DOUBLE, repeated=True)
    message = file.message_type.add(name="M")
    add(message, "f", Proto.TYPE_FLOAT, repeated=True)
    add(message, "one", ".t.In")
    add(message, "many", ".t.In", repeated=True)
    cls = message_class(file, "t.M")
    good = cls(f=[1, 2], one={"x": [3]}, many=[{"x": [4]}, {}]).SerializeToString()
    unpacked = b"\x0d" + b"\x00" * 4
    wanted = [record(cls.FromString(one)) for one in (good, unpacked, b"")]
    assert both([good, unpacked, b""], cls) == wanted
    seven, inside = b"\x0a\x07" + b"\x01" * 7, b"\x0a\x0c" + b"\x01" * 12
    for bad, path in ((seven, "f"), (b"\x12\x0e" + inside, "one.x"),
                      (b"\x1a\x0e" + inside, "many.x")):  # fmt: skip
        with pytest.raises(xt.errors.FormatError, match=f"^record 1, {path}: .*packed"):
            xt.from_proto([good, bad], cls)
        with pytest.raises(tf.errors.DataLossError):
            in_graph([good, bad], cls)
        assert xt.from_proto([bad], cls, columns=["many.x"] if path == "f" else ["f"]).shape == [1]


@pytest.mark.whole("traces many functions")
def test_nulls_fill_a_field_that_is_not_there(recipe):
    serialized = [recipe(best={"tool": "pot"}).SerializeToString(), b""]
    got = both(serialized, recipe, columns=["best.tool"],
               nulls={"best": "default", "best.tool": xt.fill("none")})  # fmt: skip
    assert got == [{"best": {"tool": "pot"}}, {"best": {"tool": "none"}}]
    with pytest.raises(xt.errors.NullError, match="best"):
        xt.from_proto(serialized, recipe, nulls={"best": "error"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="best"):
        in_graph(serialized, recipe, nulls={"best": "error"})
    with pytest.raises(xt.errors.FieldError, match=r"bests: .*Did you mean best"):
        xt.from_proto(serialized, recipe, nulls={"bests": "mask"})


def test_a_time_that_does_not_fit_is_an_error():
    file = file_of()
    add(file.message_type.add(name="M"), "at", ".google.protobuf.Timestamp")
    cls = message_class(file, "t.M")
    late = cls(at={"seconds": 253402300799})  # the year 9999
    with pytest.raises(xt.errors.FormatError, match=r"record 1, at: .*1677"):
        xt.from_proto([cls(), late], cls)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at: "):
        in_graph([late.SerializeToString()], cls)
    for at in ({"seconds": -(2**63)}, {"seconds": 9223372035, "nanos": 2**31 - 1}):
        with pytest.raises(xt.errors.FormatError, match=r"record 0, at: .*1677"):
            xt.from_proto([cls(at=at)], cls)
        with pytest.raises(tf.errors.InvalidArgumentError, match="at: "):
            in_graph([cls(at=at).SerializeToString()], cls)


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, -1, 0, 3 * 10**9])
def test_each_time_of_64_bits_is_read_and_no_other(number):
    file = file_of()
    add(file.message_type.add(name="M"), "at", ".google.protobuf.Duration")
    cls = message_class(file, "t.M")
    seconds, nanos = divmod(number, 10**9)
    serialized = [cls(at={"seconds": seconds, "nanos": nanos}).SerializeToString()]
    if -(2**63) <= number < 2**63:
        for records in (xt.from_proto(serialized, cls), in_graph(serialized, cls)):
            assert records["at"].values.numpy().tolist() == [number]
        return
    with pytest.raises(xt.errors.FormatError, match=r"record 0, at: .*1677"):
        xt.from_proto(serialized, cls)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at: "):
        in_graph(serialized, cls)


@pytest.fixture(scope="module")
def times():
    file = file_of()
    message = file.message_type.add(name="M")
    add(message, "at", ".google.protobuf.Timestamp")
    add(message, "all", ".google.protobuf.Timestamp", repeated=True)
    add(message, "took", ".google.protobuf.Duration")
    add(message, "count", Proto.TYPE_INT64)
    add(message, "share", Proto.TYPE_FLOAT)
    return message_class(file, "t.M")


def test_a_time_in_place_of_one_that_is_not_there(times):
    at = datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc)
    took = datetime.timedelta(seconds=-1)
    message = times(at=at)
    nulls = {"at": xt.fill(at), "took": xt.fill(took)}
    records = both([message.SerializeToString(), b""], times, columns=["at", "took"], nulls=nulls)
    assert records == [{"at": at, "took": took}] * 2


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_unit_are_written_as_the_times_that_they_are(times, unit):
    at = datetime.datetime(1969, 1, 2, 3, 4, 5, 0 if unit == "s" else 678000, datetime.timezone.utc)
    took = datetime.timedelta(seconds=-5, milliseconds=0 if unit == "s" else -250)
    zoned, duration = pa.timestamp(unit, "UTC"), pa.duration(unit)
    table = pa.table(
        {
            "at": pa.array([at, None], zoned),
            "all": pa.array([[at, at], []], pa.list_(zoned)),
            "took": pa.array([took, took], duration),
        }
    )
    records = xt.from_arrow(table, nulls={"at": "mask"})
    both, one = times(), times()
    both.took.FromTimedelta(took)
    one.took.FromTimedelta(took)
    for place in (one.at, one.all.add(), one.all.add()):
        place.FromDatetime(at)
    for write in (xt.to_proto, tf.function(xt.to_proto, autograph=False)):
        assert [times.FromString(m) for m in write(records, times).numpy()] == [one, both]


def test_to_proto_refuses_numbers_that_mean_something_else(times):
    def refused(name, array, message):
        records = xt.from_arrow(pa.table({name: array}), nulls="auto")
        with pytest.raises(xt.errors.DTypeError, match=message):
            xt.to_proto(records, times)

    refused("at", pa.array([5], pa.duration("ns")), "at: expected timestamps .* got durations")
    refused("at", pa.array([86_400_000], pa.date64()), "at: .* got dates in ms")
    refused("took", pa.array([5], pa.time64("ns")), "took: expected durations .* got times of day")
    refused("count", pa.array([Decimal("1.25")], pa.decimal64(5, 2)), "count: .*scale 2")
    refused("count", pa.array([5, None]), "count: expected values without a mask")
    refused("all", pa.array([[], None], pa.list_(pa.timestamp("us"))), "all: .*without a mask")
    whole = xt.from_arrow(pa.table({"count": pa.array([Decimal(125)], pa.decimal64(5, 0))}))
    assert times.FromString(xt.to_proto(whole, times)[0].numpy()).count == 125


def test_floats_of_16_bits_are_written(times):
    halves = xt.from_arrow(pa.table({"share": pa.array([0.5, 0.0, -0.0], pa.float16())}))
    written = xt.to_proto(halves, times).numpy().tolist()
    assert written == [times(share=v).SerializeToString() for v in (0.5, 0.0, -0.0)]


def test_a_schema_pins_the_records(recipe):
    message = recipe(title="tea", steps=[{"minutes": 5}])
    records = xt.from_proto([message], recipe, columns=["title", "steps.minutes"],
                            nulls={}, row_splits_dtype=tf.int32)  # fmt: skip
    spec = xt.spec_of(records)
    again = xt.from_proto([message.SerializeToString()], recipe, schema=spec)
    assert xt.spec_of(again) == spec
    decoded = in_graph([message.SerializeToString()], recipe, schema=spec)
    assert spec.is_compatible_with(decoded) or xt.spec_of(decoded) == spec


@pytest.mark.whole("starts a process")
def test_one_long_list_among_many_does_not_take_the_memory_of_a_rectangle(recipe, run_python):
    # 2,000 messages padded to 100,000 steps each were 200 million strings: 4.8 GB.
    code = """
import resource
import tensorflow as tf, extensor as xt
from google.protobuf import descriptor_pb2 as d
DT = d.DescriptorProto
long = DT(field=[{"number": i} for i in range(100_000)], reserved_name=["a"] * 100_000)
messages = [long.SerializeToString()] + [DT(name="x").SerializeToString()] * 2_000
columns = ["name", "field.number", "reserved_name"]
read = tf.function(lambda s: xt.from_proto(s, DT, columns=columns), autograph=False)
read = read.get_concrete_function(tf.TensorSpec([None], tf.string))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
records = read(tf.constant(messages))
assert records["reserved_name"].row_lengths()[0] == 100_000
assert records["field"][0].to_py() == xt.from_proto(messages[0], DT, columns)["field"].to_py()
assert records["name"][1].numpy().tolist() == [b"x"]
again = xt.to_proto(records, DT)
assert again[0] == xt.to_proto(xt.from_proto(messages[:1], DT, columns), DT)[0]
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
assert grown < 1000, grown
"""
    run_python(code)


@pytest.mark.whole("starts a process")
def test_a_saved_model_takes_and_returns_messages_in_a_process_without_extensor(
    recipe, run_python, tmp_path
):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, serialized):
            records = xt.from_proto(serialized, recipe, columns=["title", "steps"])
            longer = records.with_updates({"steps.minutes": records["steps.minutes"] + 1})
            return {"minutes": records["steps.minutes"].flat_values,
                    "longer": xt.to_proto(longer, recipe)}  # fmt: skip

    model = Model()
    tf.saved_model.save(model, str(tmp_path / "it"), signatures=model.serve)
    message = recipe(title="tea", steps=[{"minutes": 5}, {"tool": "pot"}])
    code = f"""
import sys
import tensorflow as tf
model = tf.saved_model.load({str(tmp_path / "it")!r})
got = model.signatures["serving_default"](serialized=tf.constant([{message.SerializeToString()!r}]))
assert got["minutes"].numpy().tolist() == [5, 0]
print(got["longer"].numpy()[0].hex())
assert "extensor" not in sys.modules and "ptars" not in sys.modules
"""
    done = run_python(code)
    longer = recipe.FromString(bytes.fromhex(done.stdout.strip().splitlines()[-1]))
    assert longer == recipe(title="tea", steps=[{"minutes": 6}, {"minutes": 1, "tool": "pot"}])


def test_to_proto_refuses_what_the_type_does_not_hold(recipe):
    records = xt.struct.constant([{"titel": "tea"}])
    with pytest.raises(xt.errors.FieldError, match=r"titel: .*Did you mean title"):
        xt.to_proto(records, recipe)
    with pytest.raises(xt.errors.DTypeError, match="title: expected string"):
        xt.to_proto(xt.struct.constant([{"title": 5}]), recipe)
    with pytest.raises(xt.errors.DTypeError, match="steps"):
        xt.to_proto(xt.struct.constant([{"steps": {"minutes": 5}}]), recipe)
    with pytest.raises(xt.errors.DTypeError, match=r"steps: expected records, .*t\.Step"):
        xt.to_proto(xt.struct.constant([{"steps": ["stir"]}]), recipe)
    with pytest.raises(xt.errors.FormatError, match=r"best: .*not repeated"):
        xt.to_proto(xt.struct.constant([{"best": [{"minutes": 5}, {"minutes": 6}]}]), recipe)
    with pytest.raises(xt.errors.FormatError, match=r"title: .*UTF-8"):
        xt.to_proto(xt.struct.constant([{"title": b"\xff"}]), recipe)
    with pytest.raises(xt.errors.DTypeError, match=r"got a message of type t\.Recipe in record 1"):
        xt.from_proto([b"", recipe()], recipe.DESCRIPTOR.fields_by_name["best"].message_type)
    with pytest.raises(xt.errors.DTypeError, match="StructuredTensor"):
        xt.to_proto({"title": "tea"}, recipe)
    one = xt.to_proto(xt.struct.constant({"title": "tea"}), recipe)
    assert recipe.FromString(one.numpy()) == recipe(title="tea")


def test_to_proto_refuses_what_a_oneof_does_not_have(choice):
    union = lambda rows: xt.struct.constant(rows, conflicts="union")  # noqa: E731
    for records, message in (
        (union([{"kind": 5}, {"kind": "x"}]), r"kind\.int: expected one of the fields a, b, c"),
        (xt.struct.constant([{"kind": 5}]), "kind: expected a union of the fields .* a, b, c"),
        (xt.struct.constant([{"kind": [5]}]), "kind: expected a union of the fields .* a, b, c"),
    ):
        with pytest.raises((xt.errors.FieldError, xt.errors.DTypeError), match=message):
            xt.to_proto(records, choice)


def test_to_proto_refuses_two_fields_of_a_oneof(choice):
    both_set = xt.struct.constant([{"a": 1, "b": "x"}])
    with pytest.raises(xt.errors.FormatError, match=r"a: .*one field of the oneof kind"):
        xt.to_proto(both_set, choice)
    records = xt.from_proto([choice(a=0), choice(b="x"), choice()], choice, columns=["a", "b"])
    again = [choice.FromString(one) for one in xt.to_proto(records, choice).numpy()]
    assert again == [choice(a=0), choice(b="x"), choice()]


def test_to_proto_refuses_lists_in_place_of_values(recipe, choice):
    numbers = tf.ones([2, 1, 1], tf.int32)
    union = xt.from_proto([choice(a=5), choice(b="x")], choice, nulls="mask")["kind"]
    for records, cls in (
        (xt.DenseStructuredTensor([2], {"title": tf.constant([["a"], ["b"]])}), recipe),
        (xt.DenseStructuredTensor([2], {"title": union}), recipe),
        (xt.struct.constant([{"steps": [[{"minutes": 5}]]}]), recipe),
        (xt.struct.constant([{"steps": [{"minutes": [[5]]}]}]), recipe),
        (xt.DenseStructuredTensor([2], {"a": numbers}), choice),
    ):
        with pytest.raises(xt.errors.DTypeError, match=r"^(title|steps|steps\.minutes|a): "):
            xt.to_proto(records, cls)


def test_json_has_the_names_and_forms_of_protobuf():
    file = file_of()
    color = file.enum_type.add(name="Color")
    color.value.add(name="NONE", number=0)
    color.value.add(name="RED", number=4)
    message = file.message_type.add(name="M")
    add(message, "big_number", Proto.TYPE_INT64, json_name="bigNumber")
    add(message, "color", Proto.TYPE_ENUM).type_name = ".t.Color"
    add(message, "raw", Proto.TYPE_BYTES, json_name="raw")
    add(message, "at", ".google.protobuf.Timestamp", json_name="at")
    cls = message_class(file, "t.M")
    text = """{"bigNumber": "9007199254740993", "color": "RED", "raw": "_w==",
               "at": "1970-01-01T00:00:01.5+00:00"}"""
    record = xt.from_proto(text, cls, format="json")
    assert record.rank == 0
    assert record.to_py() == {
        "big_number": 2**53 + 1, "color": 4, "raw": b"\xff",
        "at": [pa.scalar(1_500_000_000, pa.timestamp("ns", "UTC")).as_py()],
    }  # fmt: skip
    written = xt.to_proto(record, cls, format="json").numpy()
    assert b'"bigNumber": "9007199254740993"' in written
    assert xt.from_proto("color: RED", cls, format="text")["color"] == 4
    with pytest.raises(xt.errors.FormatError, match=r"record 1: .*as json, got .*colour"):
        xt.from_proto(["{}", '{"colour": 1}'], cls, format="json")
    with pytest.raises(xt.errors.StructureError, match="format"):
        xt.from_proto("{}", cls, format="yaml")
    with pytest.raises(xt.errors.UnsupportedTypeError, match="format"):
        in_graph(["{}"], cls, format="json")


@pytest.mark.whole("traces many functions")
def test_what_has_no_text_is_named(times, recipe):
    late = xt.from_arrow(pa.table({"at": pa.array([0, 2**39], pa.timestamp("s", "UTC"))}))
    with pytest.raises(xt.errors.FormatError, match=r"record 1: .*t\.M that json .*Timestamp"):
        xt.to_proto(late, times, format="json")
    file = file_of()
    add(file.message_type.add(name="Holder"), "one", ".google.protobuf.Any")
    holder = message_class(file, "t.Holder")
    for form, url, value in (("json", "no.Such", b""), ("text", "t.Holder", b"\xff")):
        inner = {"type_url": f"type.googleapis.com/{url}", "value": value}
        records = xt.struct.constant([{"one": [inner]}])
        with pytest.raises(xt.errors.FormatError, match=f"record 0: .*that {form} can express"):
            xt.to_proto(records, holder, format=form)
    with pytest.raises(xt.errors.FormatError, match=r"record 0: .*utf-8"):
        xt.from_proto(['{"title": "\ud800"}'], recipe, format="json")


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_number_that_a_closed_enum_does_not_list_has_no_text(format):
    file = file_of("proto2")
    file.enum_type.add(name="Color").value.add(name="RED", number=3)
    inner = file.message_type.add(name="In")
    add(inner, "color", ".t.Color").type = Proto.TYPE_ENUM
    add(file.message_type.add(name="M"), "all", ".t.In", repeated=True)
    cls = message_class(file, "t.M")
    records = xt.struct.constant([{"all": [{"color": [3]}]}, {"all": [{"color": [99]}]}])
    assert xt.from_proto(xt.to_proto(records, cls), cls).to_py() == records.to_py()
    with pytest.raises(xt.errors.FormatError, match=f"record 1: .*{format}.*closed enum"):
        xt.to_proto(records, cls, format=format)
    first = xt.to_proto(records[:1], cls, format=format)
    assert xt.from_proto(first, cls, format=format).to_py() == records[:1].to_py()


def test_the_files_of_protobuf_and_tensorflow_are_read_and_written_unchanged():
    import tensorflow.core.example.feature_pb2 as feature
    import tensorflow.core.framework.graph_pb2 as graph
    import tensorflow.core.protobuf.config_pb2 as config

    known, waiting = {}, [graph.DESCRIPTOR, config.DESCRIPTOR, feature.DESCRIPTOR]
    waiting.append(Proto.DESCRIPTOR.file)
    while waiting:
        file = waiting.pop()
        known[file.name] = file
        waiting += [other for other in file.dependencies if other.name not in known]
    serialized = [file.serialized_pb for file in known.values()]
    assert len(serialized) > 20
    messages = [FileDescriptorProto.FromString(one) for one in serialized]
    columns = ["name", "dependency", "message_type.name", "message_type.field"]
    records = xt.from_proto(serialized, FileDescriptorProto, columns)
    wanted = [plain(record(message)) for message in messages]
    got = plain(records.to_py())
    for ours, theirs in zip(got, wanted, strict=True):
        assert [ours["name"], ours["dependency"]] == [theirs["name"], theirs["dependency"]]
        fields = [m["field"] for m in theirs["message_type"]]
        assert [m["field"] for m in ours["message_type"]] == fields
    decoded = in_graph(serialized, FileDescriptorProto, columns=columns)
    assert plain(decoded.to_py()) == got
    written = xt.to_proto(decoded, FileDescriptorProto).numpy()
    again = [FileDescriptorProto.FromString(one) for one in written]
    assert [m.message_type[0].field if m.message_type else [] for m in again] == [
        m.message_type[0].field if m.message_type else [] for m in messages
    ]


@pytest.fixture(scope="module")
def shelf():
    """Messages with maps of each type of key."""
    file = file_of()
    book = file.message_type.add(name="Book")
    add(book, "title", TEXT)
    add(book, "pages", INT)
    message = file.message_type.add(name="Shelf")
    add(message, "name", TEXT)
    of_key = {"colors": TEXT, "counts": Proto.TYPE_INT64, "flags": Proto.TYPE_BOOL, "books": TEXT}
    for name, key in of_key.items():
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        add(entry, "key", key)
        add(entry, "value", ".t.Book" if name == "books" else TEXT)
        add(message, name, f".t.Shelf.{entry.name}", repeated=True)
    return message_class(file, "t.Shelf")


@pytest.fixture(scope="module")
def shelves(shelf):
    full = shelf(name="a", colors={"red": "r", "": "none", "x.y": "z"}, counts={-5: "five"})
    full.flags[True] = "yes"
    full.books["b"].pages = 7
    empty = shelf(colors={"blue": "b"})
    for title in ("b", "c"):
        empty.books.get_or_create(title)
    return [full, shelf(name="b"), empty, full]


KEYS = {
    'colors["red"]': ("colors", "red", "r"),
    "colors['x.y']": ("colors", "x.y", "z"),
    'colors[""]': ("colors", "", "none"),
    "colors[blue]": ("colors", "blue", "b"),
    "counts[-5]": ("counts", -5, "five"),
    "flags[true]": ("flags", True, "yes"),
    "flags[false]": ("flags", False, None),
}


@pytest.mark.whole("compiles a proto file a case")
@pytest.mark.parametrize("nulls", [None, "mask", "default"])
def test_one_key_of_a_map_is_a_column(shelf, shelves, nulls):
    serialized = [message.SerializeToString() for message in shelves]
    absent = {None: [], "mask": None, "default": ""}[nulls]
    got = both(serialized, shelf, columns=[*KEYS, "name"], nulls=nulls)
    for message, ours in zip(shelves, got, strict=True):
        assert ours["name"] == message.name
        for name, key, _ in KEYS.values():
            theirs = getattr(message, name)
            there = theirs.get(key)
            wanted = absent if there is None else [there] if nulls is None else there
            text = {True: "true", False: "false"}.get(key) if name == "flags" else str(key)
            assert ours[name][text] == wanted
    for name, key, value in KEYS.values():
        found = [getattr(message, name).get(key) for message in shelves]
        assert value is None or value in found
    for few in (serialized[1:2], []):
        assert both(few, shelf, columns=['colors["red"]']) == [{"colors": {"red": []}}] * len(few)


@pytest.mark.whole("compiles a proto file a case")
def test_the_value_of_a_key_may_be_a_message(shelf, shelves):
    serialized = [message.SerializeToString() for message in shelves]
    got = both(serialized, shelf, columns=['books["b"].pages', 'books["c"].pages'])
    assert [ours["books"] for ours in got] == [
        {"b": [{"pages": 7}], "c": []},
        {"b": [], "c": []},
        {"b": [{"pages": 0}], "c": [{"pages": 0}]},
        {"b": [{"pages": 7}], "c": []},
    ]
    whole = both(serialized[:1], shelf, columns=['books["b"]'], nulls={"books.b": "mask"})
    assert whole == [{"books": {"b": {"title": "", "pages": 7}}}]


def test_the_last_entry_with_a_key_counts_and_an_entry_may_lack_its_value(shelf):
    twice = (
        shelf(colors={"red": "1"}).SerializeToString()
        + shelf(colors={"red": "2"}).SerializeToString()
    )
    without = b"\x12\x05\x0a\x03red"
    wanted = [{"colors": {"red": [shelf.FromString(one).colors["red"]]}}
              for one in (twice, without)]  # fmt: skip
    assert both([twice, without], shelf, columns=['colors["red"]']) == wanted


@pytest.mark.whole("traces many functions")
def test_a_spec_pins_the_keys_of_a_map(shelf, shelves):
    serialized = [message.SerializeToString() for message in shelves]
    records = xt.from_proto(serialized, shelf, columns=['colors["red"]', 'books["b"].pages'])
    spec = xt.spec_of(records)
    again = xt.from_proto(serialized, shelf, schema=spec)
    assert xt.spec_of(again) == spec
    assert again.to_py() == records.to_py() == in_graph(serialized, shelf, schema=spec).to_py()


def test_keys_that_a_map_cannot_have_are_refused(shelf):
    for column in ("counts[red]", "counts[99999999999999999999]", "flags[1]"):
        with pytest.raises(xt.errors.FieldError, match="a key of the type"):
            xt.from_proto([], shelf, columns=[column])
    for column in ('name["a"]', 'books["b"]["c"]', '["a"]', 'books["b"].page'):
        with pytest.raises(xt.errors.FieldError):
            xt.from_proto([], shelf, columns=[column])
    with pytest.raises(xt.errors.FieldError, match="keys in brackets, or key and value"):
        xt.from_proto([], shelf, columns=['colors["red"]', "colors.key"])
    with pytest.raises(xt.errors.StructureError, match="the same fields"):
        xt.from_proto([], shelf, columns=['books["b"].pages', 'books["c"]'])
    with pytest.raises(xt.errors.PathError):
        xt.from_proto([], shelf, columns=['colors["red"'])


@pytest.mark.whole("traces functions: seven seconds")
def test_messages_of_any_shape_are_records_of_that_shape(recipe):
    texts = [["tea", "rye"], ["fig", ""]]
    bytes_ = [[recipe(title=text).SerializeToString() for text in row] for row in texts]
    dense, ragged = tf.constant(bytes_), tf.ragged.constant([bytes_[0], [], bytes_[1][:1]])
    for given in (dense, dense.numpy()):
        assert xt.from_proto(given, recipe)["title"].numpy().tolist() == [
            [b"tea", b"rye"],
            [b"fig", b""],
        ]
    read = tf.function(lambda s: xt.from_proto(s, recipe))
    unknown = read.get_concrete_function(tf.TensorSpec([None, None], tf.string))
    for records in (xt.from_proto(dense, recipe), read(dense), unknown(dense)):
        assert records.shape == [2, 2]
        assert records["title"].numpy().tolist() == [[b"tea", b"rye"], [b"fig", b""]]
    for records in (xt.from_proto(ragged, recipe), read(ragged)):
        assert records["title"].to_list() == [[b"tea", b"rye"], [], [b"fig"]]
