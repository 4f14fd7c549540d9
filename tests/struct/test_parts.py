"""Fields of extension types inside lists of records: cut into rows, batched, indexed, written."""

import itertools

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._struct import index, reshape
from extensor.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor
Dataset = tf.data.Dataset

# One record of every kind of masked field, as Python values, and how to build the column of it.


def column(rows):
    """Numbers of which some are null."""
    rows = list(rows)
    values = tf.constant([n or 0 for n in rows], tf.int64)
    return MaskedTensor(values, [n is not None for n in rows])


def ragged(rows):
    return tf.ragged.constant(rows, tf.int64, ragged_rank=1, row_splits_dtype=tf.int64)


def lists(rows):
    """Lists of which some are null, of items of which some are null."""
    rows = list(rows)
    full = [row or [] for row in rows]
    mask = tf.ragged.constant([[n is not None for n in r] for r in full], tf.bool, ragged_rank=1)
    items = MaskedTensor(ragged([[n or 0 for n in row] for row in full]), mask)
    return MaskedTensor(items, [row is not None for row in rows])


def null_lists(rows):
    rows = list(rows)
    return MaskedTensor(ragged([row or [] for row in rows]), [row is not None for row in rows])


def records(rows):
    """Records of which some are null, and so are some of their fields."""
    full = [{"n": None, "s": ""} if row is None else row for row in rows]
    names = tf.constant([row["s"] for row in full], tf.string)
    inner = Dense([len(full)], {"n": column([row["n"] for row in full]), "s": names})
    return MaskedTensor(inner, [row is not None for row in rows])


numbers = st.none() | st.integers(-9, 9)
KINDS = {
    "numbers": (column, numbers),
    "null lists": (null_lists, st.none() | st.lists(st.integers(-9, 9), max_size=3)),
    "lists": (lists, st.none() | st.lists(numbers, max_size=3)),
    "records": (
        records,
        st.none() | st.fixed_dictionaries({"n": numbers, "s": st.sampled_from([b"", b"salt"])}),
    ),
}


@st.composite
def steps(draw):
    """Rows of records with a field of every kind, as a value and as Python lists."""
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    count, splits = sum(lengths), [0]
    for length in lengths:
        splits.append(splits[-1] + length)
    drawn = {
        name: draw(st.lists(items, min_size=count, max_size=count))
        for name, (_, items) in KINDS.items()
    }
    values = Dense([count], {name: KINDS[name][0](rows) for name, rows in drawn.items()})
    flat = [dict(zip(drawn, row, strict=True)) for row in zip(*drawn.values(), strict=True)]
    plain = [flat[a:b] for a, b in itertools.pairwise(splits)]
    return Ragged.from_row_splits(values, splits), plain


@given(steps())
def test_masked_fields_of_lists_of_records_are_plain_python(case):
    value, plain = case
    assert value.to_py() == plain
    for name in KINDS:
        assert value[name].to_py() == [[record[name] for record in row] for row in plain]
        assert value[name, 0].to_py() == [record[name] for record in plain[0]]
        assert value[-1, name].to_py() == [record[name] for record in plain[-1]]
    assert value[1:].to_py() == plain[1:]
    assert value[:, :1].to_py() == [row[:1] for row in plain]


@pytest.mark.whole("draws many values")
@given(steps())
def test_they_are_batched_and_unbatched(case):
    value, plain = case
    recipes = Dense([len(plain)], {"steps": value})
    plain = [{"steps": row} for row in plain]
    rows = Dataset.from_tensor_slices(recipes)
    for data in (rows, rows.map(lambda row: row), rows.batch(2).unbatch()):
        assert [row.to_py() for row in data] == plain
        assert [part for batch in data.batch(2) for part in batch.to_py()] == plain
    assert [part for batch in rows.ragged_batch(2) for part in batch.to_py()] == plain


@given(steps(), st.data())
def test_they_are_gathered_and_reshaped(case, data):
    value, plain = case
    places = data.draw(st.lists(st.integers(0, len(plain) - 1), max_size=4))
    gathered = index.gather(value, tf.constant(places, tf.int64))
    assert gathered.to_py() == [plain[i] for i in places]
    flat, rows = value.values, [record for row in plain for record in row]
    if rows:
        split = reshape.split_outer(flat, [1, len(rows)])
        assert split.to_py() == [rows]
        assert reshape.merge_outer(split, [1, len(rows)]).to_py() == rows
        nested = ragged([[len(rows) - 1, 0], [], [0]])
        assert index.gather(flat, nested).to_py() == [[rows[-1], rows[0]], [], [rows[0]]]


@given(steps())
def test_they_replace_each_other_where_rows_agree(case):
    value, plain = case
    again = value.with_updates({name: value[name] for name in KINDS}, more=value["numbers"])
    assert again.without("more").to_py() == plain
    assert again["more"].to_py() == value["numbers"].to_py()


def test_a_field_with_other_rows_is_refused():
    value = Ragged.from_row_splits(Dense([3], {"n": column([1, None, 3])}), [0, 2, 3])
    other = xt.authoring.cut_rows(column([1, None, 3]), tf.constant([0, 1, 3], tf.int64))
    with pytest.raises(xt.errors.StructureError, match="row 0 of length 1 instead of 2"):
        value.with_updates(m=other)
    with pytest.raises(xt.errors.StructureError, match="a ragged value with the same rows"):
        value.with_updates(m=column([1, 2]))


def test_row_splits_inside_a_masked_field_count():
    steps = Dense([2], {"xs": null_lists([[1], None])})
    with pytest.raises(xt.errors.DTypeError, match="TensorFlow does not mix"):
        Ragged.from_row_splits(steps, tf.constant([0, 1, 2], tf.int32))


def test_a_gather_of_a_masked_field_makes_no_boxes():
    records = Dense([2], {"n": column([1, None]), "xs": null_lists([[1], None])})
    graph = (
        tf.function(lambda r: index.gather(r, tf.constant([1, 0])))
        .get_concrete_function(records)
        .graph
    )
    ops = {op.type for op in graph.get_operations()}
    assert not {o for o in ops if "Variant" in o}
    assert "RaggedGather" in ops


# A type of one's own with the two methods.


@xt.extension_type
class Angle:
    """Degrees."""

    degrees: tf.Tensor | tf.RaggedTensor

    @property
    def shape(self):
        return self.degrees.shape

    def __tf_cut_rows__(self, row_splits):
        return Angle(xt.authoring.cut_rows(self.degrees, row_splits))

    def __tf_uncut_rows__(self):
        rows = xt.authoring.uncut_rows(self.degrees)
        return None if rows is None else (Angle(rows[0]), rows[1])

    def to_py(self):
        degrees = self.degrees
        return degrees.to_list() if hasattr(degrees, "to_list") else degrees.numpy().tolist()


def test_a_type_with_the_two_methods_is_a_field_of_lists_of_records():
    turns = Ragged.from_row_splits(Dense([3], {"by": Angle([1.0, 2.0, 3.0])}), [0, 2, 3])
    assert isinstance(turns["by"], Angle)
    assert turns["by"].to_py() == [[1.0, 2.0], [3.0]]
    assert turns.to_py() == [[{"by": 1.0}, {"by": 2.0}], [{"by": 3.0}]]
    again = turns.with_updates(by=turns["by"])
    assert again["by"].to_py() == [[1.0, 2.0], [3.0]]
    assert turns["by", 0].to_py() == [1.0, 2.0]
    [batch] = Dataset.from_tensor_slices(Dense([2], {"turns": turns})).batch(2)
    assert batch["turns.by"].to_py() == [[1.0, 2.0], [3.0]]
