"""xt.data.batches: Arrow record batches from anywhere, in batches of one size."""

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._data import ordered as module
from extensor._data import stream

SCHEMA = pa.schema({"n": pa.int64(), "l": pa.list_(pa.int32())})


def pieces(sizes):
    first = 0
    for size in sizes:
        numbers = range(first, first + size)
        columns = [pa.array(numbers, pa.int64()), pa.array([[n] * (n % 3) for n in numbers])]
        yield pa.record_batch([columns[0], columns[1].cast(SCHEMA[1].type)], schema=SCHEMA)
        first += size


def numbers(dataset):
    return [batch["n"].numpy().tolist() for batch in dataset]


@given(
    st.lists(st.integers(0, 9), max_size=6), st.integers(1, 7), st.booleans(), st.integers(1, 20)
)
def test_batches_have_one_size_whatever_the_pieces_have(sizes, size, drop_remainder, rows):
    before = set(stream._passes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART_ROWS", rows)
        dataset = xt.data.batches(
            lambda: pieces(sizes), SCHEMA, size, drop_remainder=drop_remainder
        )
        found = [numbers(dataset) for _ in range(2)]
    count = sum(sizes)
    stop = count - size + 1 if drop_remainder else count
    assert found == [[list(range(i, min(i + size, count))) for i in range(0, stop, size)]] * 2
    assert set(stream._passes) <= before


def test_a_checkpoint_goes_on_at_the_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PART_ROWS", 4)
    dataset = xt.data.batches(lambda: pieces([3, 8, 5]), SCHEMA, 2)
    iterator, other = iter(dataset), iter(dataset)
    seen = [next(iterator) for _ in range(3)]
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    del iterator
    tf.train.Checkpoint(iterator=other).restore(saved)
    assert numbers(seen) + numbers(other) == [[n, n + 1] for n in range(0, 16, 2)]


def test_an_iterator_gives_one_pass_and_then_an_error():
    dataset = xt.data.batches(pieces([3]), SCHEMA, 2)
    assert numbers(dataset) == [[0, 1], [2]]
    with pytest.raises(errors.StructureError, match="a generator, which was read by another pass"):
        numbers(dataset)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (
            3,
            errors.DTypeError,
            r"record batch 1: expected a pyarrow\.RecordBatch",
        ),
        (pa.record_batch({"n": [1]}), errors.StructureError, "record batch 1: expected the schema"),
    ],
)
def test_a_wrong_piece_is_an_error_by_number(wrong, error, match):
    with pytest.raises(error, match=match):
        numbers(xt.data.batches([*pieces([3]), wrong], SCHEMA, 2))


@pytest.mark.parametrize("count", [2, 7, 140_000])
def test_an_error_of_the_source_reaches_python_as_it_was_after_the_batches_before_it(count):
    def broken():
        yield from pieces([count // 2, count - count // 2])
        raise ConnectionResetError("gone")

    size, seen = max(2, count // 40), []
    with pytest.raises(ConnectionResetError, match="gone"):
        seen.extend(batch.shape[0] for batch in xt.data.batches(broken, SCHEMA, size))
    assert seen == [size] * (count // size)


def test_a_null_is_an_error_by_path():
    piece = pa.record_batch({"n": [1, None], "l": [[1], []]}, schema=SCHEMA)
    with pytest.raises(errors.NullError, match=r"^n: expected a column without nulls"):
        numbers(xt.data.batches([piece], SCHEMA, 2))


def test_what_is_wrong_at_once():
    with pytest.raises(errors.DTypeError, match="source"):
        xt.data.batches(3, SCHEMA, 2)
    with pytest.raises(errors.StructureError, match="batch_size"):
        xt.data.batches([], SCHEMA, 0)
    with pytest.raises(errors.StructureError, match="expected a dataset of xt"):
        xt.data.state(tf.data.Dataset.range(3), 1)
