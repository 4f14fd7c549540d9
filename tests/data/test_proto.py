"""xt.data.proto: TFRecord files, and files of messages after their lengths."""

import importlib

import pytest
import tensorflow as tf
from google.protobuf import descriptor_pb2

import extensor as xt
from extensor import errors

Name = descriptor_pb2.UninterpretedOption.NamePart
SHUFFLE = xt.data.Shuffle(seed=5, window=8)
MESSAGES = [Name(name_part=f"name {i}" * (i * 9), is_extension=i % 2 == 0) for i in range(30)]
SERIALIZED = [message.SerializeToString() for message in MESSAGES]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(importlib.import_module("extensor._streams.serialized"), "BLOCK", 2000)


def delimited(messages):
    """The bytes of messages after their lengths, as protobuf writes them in several languages."""

    def varint(number):
        return (
            varint(number >> 7).join([bytes([number & 0x7F | 0x80]), b""])
            if number > 0x7F
            else bytes([number])
        )

    return b"".join(varint(len(message)) + message for message in messages)


def write(path, messages, kind):
    if kind == "delimited":
        path.write_bytes(delimited(messages))
        return
    with tf.io.TFRecordWriter(str(path), "GZIP" if kind == "gzip" else "") as writer:
        for message in messages:
            writer.write(message)


@pytest.fixture(params=["delimited", "tfrecord", "gzip"])
def folder(request, tmp_path):
    write(tmp_path / "0.bin", SERIALIZED[:10], request.param)
    write(tmp_path / "1.bin", [], "delimited")
    write(tmp_path / "2.bin", SERIALIZED[10:], request.param)
    return tmp_path


def names(dataset):
    return [name for batch in dataset for name in batch["name_part"].numpy().tolist()]


EXPECTED = [message.name_part.encode() for message in MESSAGES]


@pytest.mark.whole("reads many files")
def test_messages_are_those_of_from_proto(folder):
    dataset = xt.data.proto(folder, Name, 7)
    assert [row for batch in dataset for row in batch.to_py()] == xt.from_proto(
        SERIALIZED, Name
    ).to_py()
    assert len(dataset) == 5
    assert [b.to_py() for b in xt.data.proto(folder, Name, 30, columns=["is_extension"])] == [
        [{"is_extension": message.is_extension} for message in MESSAGES]
    ]


@pytest.mark.whole("reads many files")
def test_order_shards_and_states(folder):
    shuffled = xt.data.proto(folder, Name, 7, shuffle=SHUFFLE)
    first, second = names(shuffled), names(shuffled)
    assert sorted(first) == sorted(second) == sorted(EXPECTED)
    assert first != second
    shards = [names(xt.data.proto(folder, Name, 4, shard=(i, 2))) for i in range(2)]
    assert sorted(shards[0] + shards[1]) == sorted(EXPECTED)
    state = xt.data.state(xt.data.proto(folder, Name, 7, shuffle=SHUFFLE), 2)
    assert names(xt.data.proto(folder, Name, 7, shuffle=SHUFFLE, state=state)) == first[14:]


@pytest.mark.whole("starts a process")
def test_another_process_makes_the_dataset_of_its_serialized_form(folder):
    stream = importlib.import_module("extensor._data.stream")
    dataset = xt.data.proto(folder, Name, 7, nulls=None)
    made = stream._made_feed(stream.feeds[dataset].serialized)
    assert names(stream.stream(made)) == EXPECTED


@pytest.mark.whole("starts a process")
def test_a_workers_process_needs_no_class(folder, tmp_path_factory, run_python):
    iterator = iter(xt.data.proto(folder, Name, 7))
    next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path_factory.mktemp("s") / "it"))
    done = run_python(f"""
import importlib, tensorflow as tf, extensor as xt
from google.protobuf import descriptor_pb2
importlib.import_module("extensor._streams.serialized").BLOCK = 2000
iterator = iter(xt.data.proto({str(folder)!r}, descriptor_pb2.UninterpretedOption.NamePart, 7))
tf.train.Checkpoint(iterator=iterator).restore({saved!r})
print(sum(len(batch["name_part"]) for batch in iterator))
""")
    assert done.stdout.splitlines()[-1] == "23"


def test_a_message_of_another_type_is_an_error_with_its_file(tmp_path):
    write(tmp_path / "0.bin", [*SERIALIZED[:9], b"\xff\xff"], "delimited")
    seen = []
    with pytest.raises(errors.FormatError, match=r"0\.bin") as caught:
        seen.extend(xt.data.proto(tmp_path, Name, 3))
    assert "record" in str(caught.value)


@pytest.mark.parametrize("kind", ["delimited", "tfrecord", "gzip"])
def test_a_file_that_is_cut_is_named(tmp_path, kind):
    write(tmp_path / "0.bin", SERIALIZED, kind)
    content = (tmp_path / "0.bin").read_bytes()
    (tmp_path / "0.bin").write_bytes(content[:-9])
    with pytest.raises(errors.FormatError, match=r"0\.bin"):
        xt.data.proto(tmp_path, Name, 3)


@pytest.mark.whole("reads many files")
def test_a_file_that_is_cut_or_replaced_in_a_pass_is_named(folder):
    path = folder / "2.bin"
    content = path.read_bytes()
    for changed in (content[: len(content) // 3], delimited(SERIALIZED[:2])):
        path.write_bytes(content)
        dataset = xt.data.proto(folder, Name, 3)
        path.write_bytes(changed)
        with pytest.raises(errors.FormatError, match=r"2\.bin"):
            list(dataset)


def test_a_spec_pins_the_masks_of_a_stream(tmp_path):
    kinds = descriptor_pb2.EnumValueOptions
    messages = [kinds(deprecated=True), kinds()]
    write(tmp_path / "0.bin", [message.SerializeToString() for message in messages], "delimited")
    records = xt.from_proto(messages, kinds, ["deprecated", "debug_redact"], nulls="mask")
    [batch] = xt.data.proto(tmp_path, kinds, 2, schema=xt.spec_of(records))
    assert batch.to_py() == records.to_py() == [
        {"deprecated": message.deprecated or None, "debug_redact": None} for message in messages
    ]  # fmt: skip


def test_wrong_arguments_are_named(folder, tmp_path_factory):
    with pytest.raises(errors.DTypeError, match="message"):
        xt.data.proto(folder, "Name", 3)
    with pytest.raises(errors.FieldError, match="nothing"):
        xt.data.proto(folder, Name, 3, columns=["nothing"])
    with pytest.raises(errors.StructureError, match="at least one file"):
        xt.data.proto(tmp_path_factory.mktemp("empty"), Name, 3)
    with pytest.raises(errors.RowError, match="shard"):
        xt.data.proto(folder, Name, 3, shard=(3, 3))
