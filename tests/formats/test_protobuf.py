"""Serialized messages become records: by ptars outside of graphs, by decode_proto inside."""

import pytest
import tensorflow as tf
from google.protobuf import json_format, text_format
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from tests.samples import proto_types


# Half as many, because each example traces the graph of another class.
@pytest.mark.whole("draws many values")
@settings(max_examples=settings.default.max_examples // 2)
@given(st.data())
def test_both_engines_give_what_protobuf_gives(data):
    cls = data.draw(proto_types.classes())
    messages = data.draw(st.lists(proto_types.messages(cls), max_size=4))
    serialized = [message.SerializeToString() for message in messages]
    absent = data.draw(st.sampled_from(["list", "default", "mask"]))
    nulls = None if absent == "list" else absent
    wanted = [proto_types.record(message, absent) for message in messages]
    records = xt.from_proto(serialized, cls, nulls=nulls)
    assert proto_types.plain(records.to_py()) == wanted
    decode = tf.function(lambda s: xt.from_proto(s, cls, nulls=nulls), autograph=False)
    decode = decode.get_concrete_function(tf.TensorSpec([None], tf.string))
    decoded = decode(tf.constant(serialized, tf.string, [len(serialized)]))
    assert proto_types.plain(decoded.to_py()) == wanted
    spec = xt.spec_from_proto(cls, nulls=nulls)
    assert spec.is_compatible_with(records)
    assert spec.is_compatible_with(decoded)


@pytest.mark.whole("draws many values")
@given(st.data())
def test_records_become_the_messages_that_they_came_from(data):
    cls = data.draw(proto_types.classes())
    messages = data.draw(st.lists(proto_types.messages(cls), max_size=4))
    nulls = data.draw(st.sampled_from([None, "mask"]))
    records = xt.from_proto(messages, cls, nulls=nulls)
    write = lambda r: xt.to_proto(r, cls)  # noqa: E731
    if data.draw(st.booleans()):
        write = tf.function(write, autograph=False)
    again = [cls.FromString(one) for one in write(records).numpy()]
    wanted = [proto_types.record(message) for message in messages]
    assert [proto_types.record(message) for message in again] == wanted


@pytest.mark.whole("draws many values")
@given(st.data())
def test_json_and_text_are_read_as_protobuf_reads_them(data):
    cls = data.draw(proto_types.classes())
    messages = data.draw(st.lists(proto_types.messages(cls), max_size=3))
    form = data.draw(st.sampled_from(["json", "text"]))
    print_one = json_format.MessageToJson if form == "json" else text_format.MessageToString
    texts = [print_one(message, descriptor_pool=cls.DESCRIPTOR.file.pool) for message in messages]
    records = xt.from_proto(texts, cls, format=form)
    wanted = [proto_types.record(message) for message in messages]
    assert proto_types.plain(records.to_py()) == wanted
    again = xt.from_proto(xt.to_proto(records, cls, format=form), cls, format=form)
    assert proto_types.plain(again.to_py()) == wanted
