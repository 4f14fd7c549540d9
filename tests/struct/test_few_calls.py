"""What one call of a small value costs: a fixed number of Python calls, counted and not timed."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.samples.calls import calls_of

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor

NAMES = [f"x{i}" for i in range(8)]
FIELDS = {name: tf.fill([32], float(i)) for i, name in enumerate(NAMES)}
NEW = tf.zeros([32])


def deep():
    """Returns records with an id, and three levels of lists around a field x."""
    value = Dense([5], {"x": tf.range(5.0)})
    for splits in ([0, 1, 3, 5], [0, 2, 3], [0, 1, 1, 2]):
        value = Dense([None], {"list": Ragged.from_row_splits(value, splits)})
    return value.with_updates(id=tf.range(3))


def test_promote_walks_to_the_field_once_and_runs_one_gather_a_list(monkeypatch):
    records, path = deep(), ("list", "list", "list", "x")
    gathers = []
    plain = tf.raw_ops.GatherV2
    monkeypatch.setattr(tf.raw_ops, "GatherV2", lambda **kw: (gathers.append(kw), plain(**kw))[1])
    promoted = xt.struct.promote(records, path, "x")["x"]
    assert len(gathers) == 2
    assert promoted.to_list() == [[0.0, 1.0, 2.0], [], [3.0, 4.0]]
    assert promoted.flat_values is records[path].flat_values
    # tf.gather twice and tf.RaggedTensor.from_row_splits alone are 280.
    assert calls_of(lambda: xt.struct.promote(records, path, "x")) < 520


def spec_of_new_records():
    return Dense([32], FIELDS).__tf_type_spec__()


def test_records_of_tensors_are_made_and_described_in_few_calls():
    assert calls_of(lambda: Dense([32], FIELDS)) < 130
    assert calls_of(spec_of_new_records) < 320


def test_the_specs_of_unchanged_fields_are_not_made_again():
    records = Dense([32], FIELDS)
    spec = records.__tf_type_spec__()
    changed = records.with_updates(x0=NEW, more=NEW).without("x1").with_updates(x1=tf.range(32))
    new = changed.__tf_type_spec__()
    assert [n for n in NAMES if new.field_specs[n] is spec.field_specs[n]] == NAMES[2:]
    assert new == Dense([32], {n: changed[n] for n in changed.field_names()}).__tf_type_spec__()
    assert new.field_specs["x1"].dtype == tf.int32
    assert calls_of(lambda: records.with_updates(x0=NEW).__tf_type_spec__()) < 160


def test_a_field_that_was_removed_is_described_anew_when_it_comes_back():
    records = Dense([2], {"x": [1.0, 2.0], "y": [1, 2]})
    records.__tf_type_spec__()
    again = records.without("x").with_updates(x=["a", "b"]).with_updates(z=[1, 2])
    assert again.__tf_type_spec__().field_specs["x"] == tf.TensorSpec([2], tf.string)


@pytest.mark.parametrize("rank", [1, 2])
def test_a_field_in_rows_is_read_in_few_calls(rank):
    values = tf.reshape(tf.range(6.0), [6, 1][:rank])
    records = Ragged.from_row_splits(Dense([6], {"x": values}), [0, 2, 6])
    public = tf.RaggedTensor.from_row_splits(values, records.row_splits, validate=False)
    assert tf.type_spec_from_value(records["x"]) == tf.type_spec_from_value(public)
    np.testing.assert_array_equal(records["x"].flat_values, values)
    assert calls_of(lambda: records["x"]) < 110


def test_rows_of_another_dtype_than_inner_rows_are_cut_as_tensorflow_does():
    inner = tf.RaggedTensor.from_row_splits([1, 2, 3], tf.constant([0, 1, 3]))
    outer = tf.constant([0, 2], tf.int64)
    with pytest.raises(ValueError, match="must have same dtype"):
        tf.RaggedTensor.from_row_splits(inner, outer, validate=False)
    assert xt.authoring.cut_rows(inner, outer).row_splits.dtype == tf.int32


MIXED = {
    "numbers": tf.range(5.0),
    "matrix": tf.reshape(tf.range(10), [5, 2]),
    "text": tf.constant(list("abcde")),
    "tags": tf.ragged.constant([[1, 2], [], [3], [], [4, 5]]),
    "deep": tf.ragged.constant([[[1], []], [], [[2, 3]], [], [[4]]]),
    "masked": xt.types.MaskedTensor(tf.range(5), [True, False, True, True, False]),
    "author": Dense([5], {"age": tf.range(5), "names": tf.ragged.constant([["a"]] * 5)}),
    "steps": Ragged.from_row_splits(Dense([3], {"minutes": [5, 20, 8]}), [0, 2, 2, 3, 3, 3]),
    "nothing": Dense([5], {}),
}


@pytest.mark.parametrize(
    "records",
    [
        Dense([5], MIXED, dims="recipe"),
        Dense([5], {}),
        Dense([5, 2], {"x": tf.reshape(tf.range(10), [5, 2])}, dims=("recipe", None)),
        Ragged.from_row_splits(Dense([5], MIXED), [0, 2, 2, 5]),
        Dense([0], {"x": tf.zeros([0])}),
    ],
    ids=["mixed", "no fields", "matrix", "ragged", "no records"],
)
def test_iteration_gives_what_indexing_gives(records):
    found = list(records)
    assert len(found) == len(records)
    for i, one in enumerate(found):
        assert type(one) is type(records[i])
        assert one.dims == records[i].dims
        assert one.__tf_type_spec__() == records[i].__tf_type_spec__()
        assert one.to_py() == records[i].to_py() == records.to_py()[i]


@pytest.fixture
def ops(monkeypatch):
    """Returns the names of the ops Unpack and StridedSlice that run."""
    ran = []
    for name in ("Unpack", "StridedSlice"):
        plain = getattr(tf.raw_ops, name)
        monkeypatch.setattr(
            tf.raw_ops, name, lambda _n=name, _f=plain, **kw: (ran.append(_n), _f(**kw))[1]
        )
    plain_unstack = tf.unstack
    monkeypatch.setattr(
        tf, "unstack", lambda *args, **kw: (ran.append("Unpack"), plain_unstack(*args, **kw))[1]
    )
    return ran


def test_iteration_cuts_a_field_by_one_op(ops):
    records = Dense([32], FIELDS)
    assert [one["x1"].numpy() for one in records] == [1.0] * 32
    assert ops == ["Unpack"] * 8


def test_the_first_of_many_records_comes_before_all_are_cut(ops):
    first = next(iter(Dense([10_000], {"x": tf.range(10_000)})))
    assert first["x"].numpy() == 0
    assert ops == ["StridedSlice", "Unpack"]
    assert calls_of(lambda: next(iter(Dense([10_000], {"x": tf.range(10_000)})))) < 2_000


@pytest.mark.whole("traces many functions")
def test_iteration_in_a_graph():
    @tf.function
    def total(records):
        return tf.add_n([one["x3"] for one in records])

    assert total(Dense([32], FIELDS)).numpy() == 96.0


def test_one_record_is_one_op_a_field(ops):
    records = Dense([32], FIELDS)
    records[0]
    assert ops == ["StridedSlice"] * 8
    # The eight ops alone are about 80.
    assert calls_of(lambda: records[0]) < 210
    assert calls_of(lambda: records[:1]) < 210


@pytest.mark.parametrize("key", [slice(0, 2**40), slice(-(2**40), 2), slice(2**31, None)])
def test_bounds_beyond_32_bits(key):
    records = Dense([3], {"x": [1, 2, 3]})
    assert records[key]["x"].numpy().tolist() == [1, 2, 3][key]
