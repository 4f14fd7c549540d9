"""Records of any rank: made from rows, merged, cut, filled, zipped, and TensorFlow's own."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, ExtensorError, FieldError, StructureError
from tests.samples.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def flat(count):
    numbers = np.arange(count)
    words = tf.RaggedTensor.from_row_lengths([b"w"] * sum(n % 3 for n in range(count)),
                                             [n % 3 for n in range(count)])  # fmt: skip
    items = Dense([count * 2], {"n": np.arange(count * 2)})
    return Dense([count], {
        "x": numbers,
        "pair": np.stack([numbers, -numbers], -1),
        "words": words,
        "inner": Dense([count], {"s": tf.constant([f"s{n}" for n in numbers], tf.string)}),
        "items": Ragged.from_uniform_row_length(items, 2),
    })  # fmt: skip


def rows(items, lengths):
    ends = np.cumsum([0, *lengths]).tolist()
    return [items[a:b] for a, b in itertools.pairwise(ends)]


row_lengths = st.lists(st.integers(0, 3), max_size=4)


@tf.function(reduce_retracing=True)
def cut_in_a_graph(values, lengths, rowids, nrows):
    by_lengths = Ragged.from_row_lengths(values, lengths)
    return by_lengths, Ragged.from_value_rowids(values, rowids, nrows)


@pytest.mark.whole("draws many values")
@given(row_lengths)
def test_rows_are_given_in_any_form(lengths):
    values = flat(sum(lengths))
    expected = rows(values.to_py(), lengths)
    rowids = np.repeat(np.arange(len(lengths)), lengths)
    assert Ragged.from_row_lengths(values, lengths).to_py() == expected
    assert Ragged.from_value_rowids(values, rowids, len(lengths)).to_py() == expected
    given = tf.constant(lengths, tf.int64), tf.constant(rowids, tf.int64)
    for value in cut_in_a_graph(values, *given, len(lengths)):
        assert value.with_row_splits_dtype(tf.int64).to_py() == expected


def test_rows_of_one_length():
    values = flat(6)
    for length, nrows in ((2, None), (tf.constant(2), None), (2, 3)):
        cut = Ragged.from_uniform_row_length(values, length, nrows)
        assert cut.to_py() == rows(values.to_py(), [2, 2, 2])
    assert Ragged.from_uniform_row_length(flat(0), 0, 2).to_py() == [[], []]
    assert Ragged.from_value_rowids(flat(3), [0, 0, 2]).to_py() == rows(flat(3).to_py(), [2, 0, 1])


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda v: Ragged.from_row_lengths(v, [1, 1]), StructureError, "row_splits"),
        (lambda v: Ragged.from_row_lengths(v, [4, -1]), StructureError, "not negative"),
        (lambda v: Ragged.from_row_lengths(v, [1.5]), DTypeError, "int64 or int32"),
        (lambda v: Ragged.from_value_rowids(v, [0, 2, 1]), StructureError, "do not decrease"),
        (lambda v: Ragged.from_value_rowids(v, [0, 1, 2], 2), StructureError, "below 2"),
        (lambda v: Ragged.from_value_rowids(v, [0, 1]), StructureError, "row_splits"),
        (lambda v: Ragged.from_uniform_row_length(v, 2), StructureError, "all 3 values"),
        (lambda v: Ragged.from_uniform_row_length(v, 0), StructureError, "with length 0, nrows"),
        (lambda v: v.partition_outer_dimension([0, 2]), StructureError, "row_splits"),
        (lambda v: v.merge_dims(0, 1), StructureError, "merge_dims"),
        (lambda v: v[0].merge_dims(0, 0), StructureError, "rank 1 or more"),
        (lambda v: v.with_row_splits_dtype(tf.int16), DTypeError, "int64 or int32"),
    ],
)
def test_rows_that_do_not_fit_are_an_error(make, kind, words):
    with pytest.raises(kind, match=words) as caught:
        make(flat(3))
    assert caught.value.fix


def merged(value, outer, inner):
    if outer:
        return [merged(item, outer - 1, inner - 1) for item in value]
    for _ in range(inner):
        value = [item for row in value for item in row]
    return value


RANK_3 = {
    "ragged": lambda: Ragged.from_row_lengths(Ragged.from_row_lengths(flat(5), [2, 0, 3]), [1, 2]),
    "dense": lambda: tf.reshape(flat(12), [2, 3, 2]),
    "rows of dense": lambda: Ragged.from_row_lengths(tf.reshape(flat(6), [3, 2]), [1, 2]),
    "rows of one length": lambda: Ragged.from_uniform_row_length(
        Ragged.from_row_lengths(flat(5), [2, 0, 1, 2]), 2
    ),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("kind", RANK_3)
@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (-2, -1), (1, 1)])
def test_dimensions_are_merged(kind, axes):
    value = RANK_3[kind]()
    outer, inner = (axis % 3 for axis in axes)
    expected = merged(value.to_py(), outer, inner)
    assert value.merge_dims(*axes).to_py() == expected
    assert tf.function(lambda v: v.merge_dims(*axes))(value).to_py() == expected
    spec = value.__tf_type_spec__().unstacked().stacked(None)
    opened = tf.function(lambda v: v.merge_dims(*axes), input_signature=[spec])
    assert opened(value).to_py() == expected


def test_merged_fields_of_other_types():
    masked = MaskedTensor(tf.reshape(tf.range(12), [2, 3, 2]), tf.ones([2, 3, 2], tf.bool))
    value = Dense([2, 3, 2], {"m": masked})
    assert value.merge_dims(0, 1)["m"].values.shape == [6, 2]
    assert value.merge_dims(1, 2)["m"].values.shape == [2, 6]


def test_an_outer_dimension_is_cut():
    partition = tf.experimental.RowPartition.from_row_lengths([1, 2])
    for value in (flat(3), Ragged.from_row_lengths(flat(4), [1, 0, 3])):
        cut = value.partition_outer_dimension(partition)
        assert cut.to_py() == rows(value.to_py(), [1, 2])
        assert cut.merge_dims(0, 1).to_py() == value.to_py()


@pytest.mark.parametrize("kind", RANK_3)
def test_the_dtype_of_all_row_splits_changes(kind):
    value = RANK_3[kind]()
    for dtype in (tf.int32, tf.int64):
        value = value.with_row_splits_dtype(dtype)
        assert value._row_splits_dtypes() == {dtype}
        assert value["words"].row_splits.dtype == dtype
        assert value.to_py() == RANK_3[kind]().to_py()


def test_dense_and_ragged_cast_to_each_other():
    dense = tf.reshape(flat(6), [3, 2])
    ragged = Ragged.from_uniform_row_length(flat(6), 2)
    assert ragged.__tf_type_spec__().cast(dense).to_py() == dense.to_py()
    assert isinstance(ragged.__tf_type_spec__().cast(dense), Ragged)
    assert isinstance(dense.__tf_type_spec__().cast(ragged), Dense)
    assert dense.__tf_type_spec__().cast(ragged).to_py() == ragged.to_py()


def filled(lists, default):
    longest = max(map(len, lists), default=0)
    return [[*row, *[default] * (longest - len(row))] for row in lists]


@pytest.mark.whole("draws many values")
@given(row_lengths)
def test_rows_are_filled(lengths):
    value = Ragged.from_row_lengths(flat(sum(lengths)), lengths)
    missing = {"x": -1, "pair": [0, 0], "words": [], "inner": {"s": b"none"}, "items": []}
    dense = value.to_dense({"x": -1, ("inner", "s"): "none"})
    assert isinstance(dense, Dense)
    assert dense.to_py() == filled(value.to_py(), missing)
    assert tf.function(lambda v: v.to_dense({"x": -1, "inner.s": "none"}))(value).to_py() == (
        dense.to_py()
    )
    assert value.to_dense()["x"].numpy().tolist() == filled(value["x"].to_list(), 0)


def test_filled_rows_of_more_dimensions_and_a_mask():
    value = RANK_3["ragged"]()[["x"]]
    assert value[:1].to_dense({"x": -1})["x"].numpy().tolist() == [[[0, 1]]]
    assert value.to_dense({"x": -1})["x"].numpy().tolist()[0] == [[0, 1, -1], [-1] * 3]
    masked = Ragged.from_row_lengths(flat(3), [2, 1]).to_dense(masked=True)
    assert isinstance(masked, xt.types.MaskedTensor)
    assert masked.mask.numpy().tolist() == [[True, True], [True, False]]
    assert masked.values["x"].numpy().tolist() == [[0, 1], [2, 0]]
    dense = flat(3)
    assert dense.to_dense() is dense
    nothing = Ragged.from_row_lengths(Dense([3], {}), [2, 1])
    assert nothing.to_dense().to_py() == [[{}, {}], [{}, {}]]


@pytest.mark.parametrize(
    ("defaults", "kind"),
    [({"y": 0}, FieldError), ({"inner.y": 0}, FieldError), ({"inner": 0}, DTypeError),
     ({"words": "a"}, DTypeError)],
)  # fmt: skip
def test_a_default_value_needs_a_field(defaults, kind):
    with pytest.raises(kind, match=next(iter(defaults)).split(".")[0]):
        Ragged.from_row_lengths(flat(3), [2, 1]).to_dense(defaults)


def test_ragged_values_are_zipped_to_lists_of_records():
    a = tf.ragged.constant([[3.0, 1.0], [], [2.0]])
    b = tf.ragged.constant([["x", "y"], [], ["z"]])
    value = xt.struct.zip({"a": a, "b": b})
    assert value.to_py() == [[{"a": 3.0, "b": b"x"}, {"a": 1.0, "b": b"y"}], [],
                             [{"a": 2.0, "b": b"z"}]]  # fmt: skip
    assert tf.function(lambda a, b: xt.struct.zip({"a": a, "b": b}))(a, b).to_py() == value.to_py()
    assert xt.struct.zip({"a": a, "b": b}, depth=1).shape == [3]
    deep = xt.struct.zip({"v": value, "a": a})
    assert deep.to_py()[2] == [{"v": {"a": 2.0, "b": b"z"}, "a": 2.0}]
    assert xt.struct.zip({"a": [1, 2], "b": a[:2]}).to_py() == [
        {"a": 1, "b": [3.0, 1.0]}, {"a": 2, "b": []},
    ]  # fmt: skip
    assert xt.struct.zip({"a": [[1, 2], [3, 4]]}, depth=2).shape == [2, 2]
    with pytest.raises(StructureError, match="b: expected the row splits"):
        xt.struct.zip({"a": a, "b": b[::-1]})
    with pytest.raises(StructureError, match="b: expected a value whose shape begins"):
        xt.struct.zip({"a": a, "b": [1, 2]})
    with pytest.raises(StructureError, match="rank 2 or more"):
        xt.struct.zip({"a": [1, 2]}, depth=2)
    with pytest.raises(StructureError, match="at least one field"):
        xt.struct.zip({})
    with pytest.raises(StructureError, match="ragged value, like"):
        xt.struct.zip({"a": a, "b": [[1], [2], [3]]}, depth=2)


PYVALS = [
    {"x": 1, "y": [1, 2]},
    [{"x": 1, "y": [[1], [2, 3]]}, {"x": 2, "y": []}],
    [{"x": 1, "in": {"s": b"a"}, "list": [{"n": 1}, {"n": 2}]},
     {"x": 2, "in": {"s": b"b"}, "list": []}],
    [[{"x": 1}], [{"x": 2}, {"x": 3}]],
    [[[{"x": 1}], []], [[{"x": 2}, {"x": 3}]]],
]  # fmt: skip


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("pyval", PYVALS, ids=str)
def test_tensorflows_own_structured_tensor_is_read_and_written(pyval):
    theirs = tf.experimental.StructuredTensor.from_pyval(pyval)
    ours = xt.struct.from_tf(theirs)
    assert ours.to_py() == pyval
    assert xt.struct.to_tf(ours).to_pyval() == pyval
    assert tf.function(xt.struct.from_tf)(theirs).to_py() == pyval


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("kind", RANK_3)
def test_records_of_rank_3_go_to_tensorflows_and_back(kind):
    value = RANK_3[kind]()
    theirs = xt.struct.to_tf(value)
    assert theirs.rank == 3
    assert xt.struct.from_tf(theirs).to_py() == value.to_py()


def test_what_is_not_read_or_written_is_an_error():
    masked = Dense([1], {"m": xt.types.MaskedTensor([1])})
    for call in (lambda: xt.struct.from_tf(flat(1)), lambda: xt.struct.to_tf([{"a": 1}]),
                 lambda: xt.struct.to_tf(masked)):  # fmt: skip
        with pytest.raises(ExtensorError) as caught:
            call()
        assert caught.value.fix
    empty = xt.struct.from_tf(tf.experimental.StructuredTensor.from_fields({}, [2], 2))
    assert empty.to_py() == [{}, {}]


def test_rows_of_masked_values_unions_and_lists_of_records_are_filled():
    rows = [[{"m": 1, "u": 2, "l": [{"z": 1}]}, {"m": None, "u": "b", "l": []}], []]
    value = xt.struct.constant(rows, nulls={"m": "mask"}, conflicts="union")
    assert value.to_dense().to_py()[0] == rows[0]
    assert value.to_dense()["m"].mask.numpy().tolist() == [[True, False], [False, False]]
    assert value.to_dense()["l"].to_py()[1] == [[], []]
    with pytest.raises(DTypeError, match=r"^l\.z: expected the path of a field of tensors"):
        value.to_dense({"l.z": -1})
