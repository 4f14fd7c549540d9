"""Damaged TFRecord files and messages are refused by name, or read as they were written."""

import random
import tempfile
from pathlib import Path

import tensorflow as tf

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.mutation import damaged

SPEC = xt.DenseStructuredTensorSpec(
    [None],
    {
        "id": tf.TensorSpec([None], tf.int64),
        "score": tf.TensorSpec([None, 2], tf.float32),
        "names": tf.RaggedTensorSpec([None, None], tf.string),
        "steps": xt.RaggedStructuredTensorSpec(
            [None, None],
            xt.DenseStructuredTensorSpec(
                [None],
                {
                    "tool": tf.TensorSpec([None], tf.string),
                    "minutes": tf.TensorSpec([None], tf.int64),
                },
            ),
        ),
    },
)


def test_damaged_files_are_refused_or_read_as_they_were_written():
    ends = cases.run(__name__, cases.seeds(1000))
    assert {"refused", "read"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    message = dice.choice(["Example", "SequenceExample"])
    compression = dice.choice(["", "", "GZIP", "ZLIB"])
    rows = [_row(dice) for _ in range(dice.choice([1, 3, 20]))]
    records = xt.struct.constant(rows, spec=SPEC)
    to = xt.to_tf_example if message == "Example" else xt.to_tf_sequence_example
    serialized = list(to(records).numpy())
    is_message = dice.random() < 0.5
    if is_message:  # in a file with right checksums
        number = dice.randrange(len(serialized))
        serialized[number] = damaged(dice, serialized[number])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.tfrecord"
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            for one in serialized:
                writer.write(one)
        if not is_message:
            whole = path.read_bytes()
            path.write_bytes(damaged(dice, whole, [(0, 12), (len(whole) - 20, len(whole))]))
        is_empty = path.stat().st_size == 0
        schema = dice.choice([SPEC, SPEC, None])
        error = None
        try:
            found = xt.read_tfrecord(path, schema=schema, message=dice.choice([message, None]))
        except xt.errors.ExtensorError as refused:
            error = refused
    if error is not None:
        assert str(path) in str(error) or is_message or schema is None, error
        return "refused"
    if schema is None:
        return "inferred"
    if not is_message:
        # The format does not store the number of records. A file without bytes has none.
        assert found.to_py() == records.to_py()[: len(found)]
        lost = len(found) < len(rows)
        assert len(found) == len(rows) or (lost and (is_empty or not compression))
        return "read"
    others = [i for i in range(len(rows)) if i != number]
    assert [found.to_py()[i] for i in others] == [records.to_py()[i] for i in others]
    expected = _theirs(serialized[number], message)
    assert expected is None or repr(found.to_py()[number]) == repr(expected)
    return "read"


def _row(dice):
    return {
        "id": dice.getrandbits(62),
        "score": [dice.randrange(100) / 4, 0.5],
        "names": [dice.randbytes(dice.randrange(5)) for _ in range(dice.randrange(4))],
        "steps": [
            {"tool": dice.randbytes(3), "minutes": dice.randrange(300)}
            for _ in range(dice.randrange(4))
        ],
    }


def _theirs(one, message):
    """Returns a record as protobuf reads it, or None if it does not."""
    try:
        if message == "Example":
            parsed, lists = tf.train.Example.FromString(one).features.feature, {}
        else:
            both = tf.train.SequenceExample.FromString(one)
            parsed, lists = both.context.feature, both.feature_lists.feature_list
    except Exception:
        return None

    def column(key, kind):
        if key in lists:
            return [x for f in lists[key].feature for x in getattr(f, kind).value]
        return list(getattr(parsed[key], kind).value)

    tools, minutes = column("steps.tool", "bytes_list"), column("steps.minutes", "int64_list")
    return {
        "id": column("id", "int64_list")[0],
        "score": column("score", "float_list"),
        "names": column("names", "bytes_list"),
        "steps": [{"tool": t, "minutes": m} for t, m in zip(tools, minutes, strict=True)],
    }
