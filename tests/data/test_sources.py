"""Files as streams: the records of the files, in any order, from any place."""

import gzip
import json
import pathlib

import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors

SCHEMA = pa.schema({"n": pa.int64(), "list": pa.list_(pa.string())})
SHUFFLE = xt.data.Shuffle(seed=4, window=30)
KINDS = [".arrow", ".feather", ".arrows", ".jsonl", ".jsonl.gz", ".tfrecord", ".tfrecord.gz"]


def read(paths, *args, **kwargs):
    if ".tfrecord" in paths[0]:
        kwargs.setdefault("schema", SCHEMA)
    return door(xt.data, paths)(paths, *args, **kwargs)


def door(module, paths, prefix=""):
    """The function of a module that reads files of this format."""
    kind = pathlib.Path(paths[0]).suffixes[0].removeprefix(".")
    names = {"jsonl": "json", "tfrecord": "tfrecord"}
    return getattr(module, prefix + names.get(kind, "arrow"))


def written(folder, sizes, suffix):
    """Files of so many records each, numbered through, in record batches of seven."""
    paths, first = [], 0
    for number, size in enumerate(sizes):
        path = folder / f"{number}{suffix}"
        paths.append(str(path))
        numbers = list(range(first, first + size))
        first += size
        lists = [[str(n)] * (n % 3) for n in numbers]
        table = pa.table({"n": numbers, "list": lists}, schema=SCHEMA)
        if ".json" in suffix:
            text = "".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode()
            path.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
            continue
        if ".tfrecord" in suffix:
            xt.write_tfrecord(xt.from_arrow(table), str(path))
            continue
        make = pa.ipc.new_stream if suffix == ".arrows" else pa.ipc.new_file
        with make(str(path), SCHEMA) as writer:
            writer.write_table(table, max_chunksize=7)
    return paths


def numbers(dataset):
    return [batch["n"].numpy().tolist() for batch in dataset]


def flat(batches):
    return [n for batch in batches for n in batch]


@pytest.fixture(params=KINDS)
def paths(request, tmp_path):
    return written(tmp_path, [40, 0, 25], request.param)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=3), st.integers(1, 9), st.booleans())
def test_batches_are_the_records_in_order(tmp_path_factory, sizes, size, drop_remainder):
    paths = written(tmp_path_factory.mktemp("files"), sizes, ".arrow")
    dataset = read(paths, size, drop_remainder=drop_remainder)
    count = sum(sizes)
    stop = count - size + 1 if drop_remainder else count
    expected = [list(range(i, min(i + size, count))) for i in range(0, stop, size)]
    assert numbers(dataset) == expected
    assert int(dataset.cardinality()) == len(expected)


def test_records_are_those_of_the_whole(paths):
    dataset = read(paths, 8)
    given = {"schema": SCHEMA} if ".tfrecord" in paths[0] else {}
    whole = door(xt, paths, "read_")(paths, **given)
    assert [row for batch in dataset for row in batch.to_py()] == whole.to_py()
    only = next(iter(read(paths, 8, columns=["list"])))
    assert only.field_names() == ("list",)
    assert only["list"].to_list() == whole["list"][:8].to_list()


def test_an_epoch_in_another_order_has_each_record_once(paths):
    epochs = numbers(read(paths, 5, shuffle=SHUFFLE, epochs=2))
    first, second = flat(epochs[:13]), flat(epochs[13:])
    assert sorted(first) == sorted(second) == list(range(65))
    assert first != second
    assert first != list(range(65))
    assert numbers(read(paths, 5, shuffle=SHUFFLE, epochs=2)) == epochs


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
def test_shards_have_each_record_once(paths, shuffle):
    shards = [numbers(read(paths, 4, shuffle=shuffle, shard=(i, 2))) for i in range(2)]
    assert sorted(flat(shards[0]) + flat(shards[1])) == list(range(65))
    is_stream = paths[0].endswith(
        (".arrows", ".gz", ".jsonl", ".tfrecord")
    )  # may be of one shard as a whole
    assert all(shards) or is_stream


@pytest.mark.parametrize("shuffle", [None, SHUFFLE])
@pytest.mark.parametrize("steps", [0, 3, 13, 20])
def test_a_state_and_a_checkpoint_go_on_at_the_exact_batch(paths, tmp_path, shuffle, steps):
    def dataset(**state):
        return read(paths, 5, shuffle=shuffle, epochs=2, **state)

    expected = numbers(dataset())[steps:]
    state = json.loads(json.dumps(xt.data.state(dataset(), steps)))
    resumed = numbers(dataset(state=state))
    assert resumed[: len(expected)] == expected
    assert len(resumed) == len(expected)
    iterator = iter(dataset())
    for _ in range(steps):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    again = iter(dataset())
    tf.train.Checkpoint(iterator=again).restore(saved)
    assert numbers(again) == expected


def test_a_state_of_other_files_is_an_error(paths):
    state = xt.data.state(read(paths, 5), 3)
    with pytest.raises(errors.StructureError, match="state, digest"):
        read(paths[:1], 5, state=state)


def test_a_cut_file_is_an_error_that_names_it(tmp_path):
    (path,) = written(tmp_path, [40], ".arrow")
    content = (tmp_path / "0.arrow").read_bytes()
    (tmp_path / "0.arrow").write_bytes(content[: len(content) // 2])
    with pytest.raises(errors.FormatError, match=r"0\.arrow"):
        numbers(xt.data.arrow(path, 5))


def test_files_of_other_columns_are_an_error(tmp_path):
    (path,) = written(tmp_path, [3], ".arrow")
    xt.write_arrow(xt.DenseStructuredTensor([1], {"other": [1]}), str(tmp_path / "b.arrow"))
    with pytest.raises(errors.ExtensorError, match=r"b\.arrow|n"):
        xt.data.arrow([path, str(tmp_path / "b.arrow")], 2)
