"""Where a dataset goes on: the unit of what was read before, and of what is read now."""

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

WAYS = {
    "parquet": (xt.write_parquet, xt.data.parquet, "it.parquet"),
    "arrow": (xt.write_arrow, xt.data.arrow, "it.arrow"),
    "json": (xt.write_json, xt.data.json, "it.jsonl"),
    "tfrecord": (xt.write_tfrecord, xt.data.tfrecord, "it.tfrecord"),
}


def records(arrow, count=6):
    return xt.from_arrow(pa.table({"x": pa.array(range(count), pa.int64()).cast(arrow)}))


@pytest.mark.parametrize("way", WAYS)
def test_a_state_is_of_a_source_with_the_same_unit(way, tmp_path):
    write, read, name = WAYS[way]
    seconds, fine = (pa.schema({"x": pa.duration(unit)}) for unit in ("s", "us"))
    write(records(pa.duration("s")), tmp_path / name)
    words = {"schema": seconds} if way in ("json", "tfrecord") else {}
    state = xt.data.state(read(tmp_path / name, 2, **words), 1)
    rest = read(tmp_path / name, 2, state=state, **words)
    assert [row for batch in rest for row in batch.to_py()] == records(seconds[0].type).to_py()[2:]
    if not words:
        write(records(fine[0].type), tmp_path / name)
    with pytest.raises(errors.StructureError, match=r"state, digest: .* other files, columns"):
        read(tmp_path / name, 2, state=state, **({"schema": fine} if words else {}))


def test_a_checkpoint_of_an_iterator_has_numbers_without_their_unit(tmp_path):
    """TensorFlow saves the tensors of elements that were read ahead, and no spec; see docs."""

    def iterator(unit, first):
        made = records(pa.duration(unit))
        made = made.with_updates(x=made["x"] + first)
        dataset = tf.data.Dataset.from_tensor_slices(made)
        return iter(dataset.shuffle(4, seed=1, reshuffle_each_iteration=False))

    ours, theirs = iterator("s", 0), iterator("us", 100)
    used = [next(ours)["x"].numpy() for _ in range(2)]
    path = tf.train.Checkpoint(iterator=ours).write(str(tmp_path / "it"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert names == ["_CHECKPOINTABLE_OBJECT_GRAPH", "iterator/.ATTRIBUTES/ITERATOR_STATE"]
    tf.train.Checkpoint(iterator=theirs).read(path)
    rest = list(theirs)
    numbers = [element["x"].numpy() for element in rest]
    read_ahead = [number for number in numbers if number < 100]
    assert read_ahead
    assert sorted(used + [number % 100 for number in numbers]) == list(range(6))
    assert {element.arrow_types["x"] for element in rest} == {pa.duration("us")}
