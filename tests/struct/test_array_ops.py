"""TensorFlow's operations on whole records equal the same on the records' Python form."""

import decimal
import itertools

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, ExtensorError, RowError, StructureError
from tests.samples.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def dense(*shape, start=0):
    """Returns dense records with fields of many types, numbered from `start`."""
    count = int(np.prod(shape))
    numbers = np.arange(start, start + count)

    def split(value):
        for size in reversed(shape[1:]):
            value = tf.RaggedTensor.from_uniform_row_length(value, size)
        return value

    words = tf.ragged.constant([[b"w%d" % n] * (n % 3) for n in numbers], tf.string, 1)
    items = Dense([count * 2], {"n": np.arange(count * 2) + start})
    rows = Ragged.from_row_splits(items, np.arange(0, count * 2 + 1, 2))
    for size in reversed(shape[1:]):
        rows = Ragged.from_row_splits(rows, np.arange(0, rows.shape[0] + 1, size))
    return Dense(shape, {
        "x": numbers.reshape(shape),
        "pair": np.stack([numbers, -numbers], -1).reshape([*shape, 2]),
        "words": split(words),
        "inner": Dense(shape, {"s": np.array([f"s{n}" for n in numbers]).reshape(shape)}),
        "items": rows,
    })  # fmt: skip


def ragged(*lengths, start=0):
    """Returns ragged records of rank 2 with fields of many types."""
    value = dense(sum(lengths), start=start)
    return Ragged.from_row_splits(value, np.cumsum([0, *lengths]))


def py(value):
    return [py(v) for v in value] if isinstance(value, list) else value.to_py()


def both_ways(function, *args):
    """Returns the result of a function, after checking that it is the same in a graph."""
    eager = function(*args)
    traced = tf.function(function, autograph=False)(*args)
    assert py(traced) == py(eager)
    return eager


def lists(array):
    """Returns nested lists of the dicts in an object array."""
    return array.tolist()


def objects(value, rank):
    """Returns nested lists of dicts as an object array, for NumPy's own operations."""
    shape, flat = [], value
    for _ in range(rank):
        shape.append(len(flat))
        flat = flat[0] if flat else []
    array = np.empty(shape, object)
    for place in itertools.product(*map(range, shape)):
        item = value
        for i in place:
            item = item[i]
        array[place] = item
    return array


# NumPy's operation on an object array of dicts is the reference for dense records.
DENSE = {
    "gather": (lambda v: tf.gather(v, [2, 0]), lambda a: a[[2, 0]]),
    "gather of two dimensions": (lambda v: tf.gather(v, [[2], [0]]), lambda a: a[[[2], [0]]]),
    "gather a scalar": (lambda v: tf.gather(v, 1), lambda a: a[1]),
    "gather axis 1": (lambda v: tf.gather(v, [1, 1, 0], axis=1), lambda a: a[:, [1, 1, 0]]),
    "gather axis -1": (lambda v: tf.gather(v, [1], axis=-1), lambda a: a[:, [1]]),
    "gather batch_dims": (
        lambda v: tf.gather(v, [[1], [0], [1]], batch_dims=1),
        lambda a: np.take_along_axis(a, np.array([[1], [0], [1]]), 1),
    ),
    "batch_gather": (
        lambda v: tf.compat.v1.batch_gather(v, [[1], [0], [1]]),
        lambda a: np.take_along_axis(a, np.array([[1], [0], [1]]), 1),
    ),
    "gather_nd": (lambda v: tf.gather_nd(v, [[2, 1], [0, 0]]), lambda a: a[[2, 0], [1, 0]]),
    "gather_nd of rows": (lambda v: tf.gather_nd(v, [[2], [0]]), lambda a: a[[2, 0]]),
    "boolean_mask": (
        lambda v: tf.boolean_mask(v, [True, False, True]), lambda a: a[[True, False, True]],
    ),
    "boolean_mask axis 1": (
        lambda v: tf.boolean_mask(v, [True, False], axis=1), lambda a: a[:, [True, False]],
    ),
    "boolean_mask of two dimensions": (
        lambda v: tf.boolean_mask(v, [[True, False], [True, True], [False, False]]),
        lambda a: a[np.array([[True, False], [True, True], [False, False]])],
    ),
    "concat": (lambda v: tf.concat([v, v], 0), lambda a: np.concatenate([a, a])),
    "concat axis 1": (lambda v: tf.concat([v, v], 1), lambda a: np.concatenate([a, a], 1)),
    "concat axis -1": (lambda v: tf.concat([v, v], -1), lambda a: np.concatenate([a, a], 1)),
    "stack": (lambda v: tf.stack([v, v]), lambda a: np.stack([a, a])),
    "stack axis 1": (lambda v: tf.stack([v, v], axis=1), lambda a: np.stack([a, a], 1)),
    "stack axis -1": (lambda v: tf.stack([v, v], axis=-1), lambda a: np.stack([a, a], 2)),
    "expand_dims": (lambda v: tf.expand_dims(v, 0), lambda a: a[None]),
    "expand_dims -1": (lambda v: tf.expand_dims(v, -1), lambda a: a[:, :, None]),
    "squeeze": (lambda v: tf.squeeze(v[:, :1]), lambda a: a[:, 0]),
    "squeeze axis": (lambda v: tf.squeeze(v[:1, :1], axis=0), lambda a: a[0, :1]),
    "tile": (lambda v: tf.tile(v, [2, 1]), lambda a: np.tile(a, [2, 1])),
    "tile axis 1": (lambda v: tf.tile(v, [1, 3]), lambda a: np.tile(a, [1, 3])),
    "reverse": (lambda v: tf.reverse(v, [0]), lambda a: a[::-1]),
    "reverse both": (lambda v: tf.reverse(v, [0, -1]), lambda a: a[::-1, ::-1]),
    "roll": (lambda v: tf.roll(v, 1, 0), lambda a: np.roll(a, 1, 0)),
    "transpose": (tf.transpose, lambda a: a.T),
    "transpose perm": (lambda v: tf.transpose(v, [0, 1]), lambda a: a),
    "reshape": (lambda v: tf.reshape(v, [2, 3]), lambda a: a.reshape(2, 3)),
    "reshape -1": (lambda v: tf.reshape(v, [-1]), lambda a: a.reshape(-1)),
    "broadcast_to": (lambda v: tf.broadcast_to(v[:1], [3, 2]),
                     lambda a: np.broadcast_to(a[:1], [3, 2])),
    "repeat": (lambda v: tf.repeat(v, [0, 2, 1], axis=0), lambda a: np.repeat(a, [0, 2, 1], 0)),
    "repeat axis 1": (lambda v: tf.repeat(v, 2, axis=1), lambda a: np.repeat(a, 2, 1)),
    "repeat all": (lambda v: tf.repeat(v, 2), lambda a: np.repeat(a, 2)),
    "slice": (lambda v: tf.slice(v, [1, 0], [2, -1]), lambda a: a[1:3]),
    "strided_slice": (lambda v: tf.strided_slice(v, [0, 0], [3, 1], [2, 1]), lambda a: a[::2, :1]),
    "strided_slice by masks": (
        lambda v: tf.strided_slice(v, [1, 1], [2, 2], begin_mask=1, shrink_axis_mask=2),
        lambda a: a[:2, 1],
    ),
    "getitem": (lambda v: tf.__operators__.getitem(v, (slice(1, None), 0)), lambda a: a[1:, 0]),
    "identity": (tf.identity, lambda a: a),
    "stop_gradient": (tf.stop_gradient, lambda a: a),
    "where": (
        lambda v: tf.where([[True], [False], [True]], v, tf.reverse(v, [0])),
        lambda a: np.where([[True], [False], [True]], a, a[::-1]),
    ),
    "where scalar": (lambda v: tf.where(False, v, tf.reverse(v, [0])), lambda a: a[::-1]),
}  # fmt: skip


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", DENSE)
def test_dense_records_are_moved_as_an_array_of_dicts(name):
    function, reference = DENSE[name]
    value = dense(3, 2)
    result = both_ways(function, value)
    expected = reference(objects(value.to_py(), 2))
    assert result.to_py() == lists(expected)
    assert result.shape == expected.shape
    assert result.field_names() == value.field_names()
    numbers = np.arange(6).reshape(3, 2)
    masked = Dense([3, 2], {"m": xt.types.MaskedTensor(numbers, numbers % 2 == 0)})
    assert function(masked)["m"].to_py() == lists(reference(objects(masked["m"].to_py(), 2)))
    counted = Dense([3, 2], {})
    assert function(counted).to_py() == lists(reference(objects(counted.to_py(), 2)))


OF_UNKNOWN_SIZES = DENSE.keys() - {"squeeze"}  # without an axis, its sizes must be static


@pytest.fixture(scope="module")
def results_of_unknown_sizes():
    """Returns the results of all operations in one graph."""
    spec = dense(3, 2).__tf_type_spec__().unstacked().unstacked().stacked(None).stacked(None)

    def results(value):
        return {name: DENSE[name][0](value) for name in OF_UNKNOWN_SIZES}

    return tf.function(results, input_signature=[spec], autograph=False)(dense(3, 2))


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", sorted(OF_UNKNOWN_SIZES))
def test_sizes_may_be_unknown_in_a_graph(name, results_of_unknown_sizes):
    _, reference = DENSE[name]
    expected = reference(objects(dense(3, 2).to_py(), 2))
    assert results_of_unknown_sizes[name].to_py() == lists(expected)


RAGGED = {
    "gather": (lambda v: tf.gather(v, [2, 0]), lambda p: [p[2], p[0]]),
    "gather_nd": (lambda v: tf.gather_nd(v, [[2, 0], [0, 1]]), lambda p: [p[2][0], p[0][1]]),
    "gather batch_dims": (
        lambda v: tf.gather(v, tf.ragged.constant([[1, 1], [], [0]]), batch_dims=1),
        lambda p: [[p[0][1], p[0][1]], [], [p[2][0]]],
    ),
    "boolean_mask": (lambda v: tf.boolean_mask(v, [True, False, True]), lambda p: [p[0], p[2]]),
    "ragged boolean_mask": (
        lambda v: tf.ragged.boolean_mask(v, tf.ragged.constant([[False, True], [], [True]])),
        lambda p: [p[0][1:], [], p[2]],
    ),
    "concat": (lambda v: tf.concat([v, v[:1]], 0), lambda p: p + p[:1]),
    "concat axis 1": (
        lambda v: tf.concat([v, v[::-1]], 1),
        lambda p: [a + b for a, b in zip(p, p[::-1], strict=True)],
    ),
    "stack": (lambda v: tf.stack([v, v[:2]]), lambda p: [p, p[:2]]),
    "expand_dims 0": (lambda v: tf.expand_dims(v, 0), lambda p: [p]),
    "expand_dims 1": (lambda v: tf.expand_dims(v, 1), lambda p: [[row] for row in p]),
    "expand_dims -1": (lambda v: tf.expand_dims(v, -1), lambda p: [[[i] for i in r] for r in p]),
    "squeeze": (lambda v: tf.squeeze(tf.expand_dims(v, 0), 0), lambda p: p),
    "tile": (lambda v: tf.tile(v, [2, 1]), lambda p: p + p),
    "tile axis 1": (lambda v: tf.tile(v, [1, 2]), lambda p: [row + row for row in p]),
    "reverse": (lambda v: tf.reverse(v, [0]), lambda p: p[::-1]),
    "reverse axis 1": (lambda v: tf.reverse(v, [1]), lambda p: [row[::-1] for row in p]),
    "repeat": (lambda v: tf.repeat(v, [2, 0, 1], axis=0), lambda p: [p[0], p[0], p[2]]),
    "slice": (lambda v: tf.slice(v, [1, 0], [2, 1]), lambda p: [row[:1] for row in p[1:]]),
    "identity": (tf.identity, lambda p: p),
    "where": (
        lambda v: tf.where(tf.ragged.constant([[True, False], [], [False]]), v, v[:, ::-1]),
        lambda p: [[p[0][0], p[0][0]], [], p[2]],
    ),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", RAGGED)
def test_ragged_records_are_moved_as_nested_lists(name):
    function, reference = RAGGED[name]
    value = ragged(2, 0, 1)
    assert both_ways(function, value).to_py() == reference(value.to_py())


@pytest.mark.whole("traces many functions")
def test_lists_of_records_come_back_from_split_and_unstack():
    value = dense(3, 2)
    p = value.to_py()
    assert py(both_ways(lambda v: tf.split(v, 3), value)) == [[row] for row in p]
    assert py(both_ways(lambda v: tf.split(v, [1, 2]), value)) == [p[:1], p[1:]]
    assert py(both_ways(lambda v: tf.split(v, 2, axis=1), value)) == [
        [[row[0]] for row in p], [[row[1]] for row in p],
    ]  # fmt: skip
    assert py(both_ways(tf.unstack, value)) == p
    assert py(both_ways(lambda v: tf.unstack(v, axis=-1), value)) == [
        [row[0] for row in p], [row[1] for row in p],
    ]  # fmt: skip
    rows = ragged(2, 0, 1)
    assert py(both_ways(tf.unstack, rows)) == rows.to_py()
    for values in (tf.range(3), rows):  # TensorFlow's own error: no row is left out
        with pytest.raises(tf.errors.InvalidArgumentError, match="must equal 1, got shape"):
            tf.unstack(values, 1)
    assert py(both_ways(lambda v: tf.split(v, [1, 2]), rows)) == [
        rows.to_py()[:1],
        rows.to_py()[1:],
    ]


def test_dense_and_ragged_are_joined():
    a, b = dense(2, 2), ragged(1, 2, start=9)
    for axis in (0, 1):
        joined = both_ways(lambda a, b, axis=axis: tf.concat([a, b], axis), a, b)
        expected = a.to_py() + b.to_py() if axis == 0 else [
            x + y for x, y in zip(a.to_py(), b.to_py(), strict=True)
        ]  # fmt: skip
        assert joined.to_py() == expected
    assert both_ways(lambda a, b: tf.stack([b, a]), a, b).to_py() == [b.to_py(), a.to_py()]


def test_single_records_are_stacked():
    value = dense(3)[["x", "pair", "inner"]]
    assert both_ways(lambda v: tf.stack([v[2], v[0]]), value).to_py() == [
        value.to_py()[2], value.to_py()[0],
    ]  # fmt: skip
    assert both_ways(lambda v: tf.expand_dims(v[1], 0), value).to_py() == [value.to_py()[1]]


def test_row_splits_of_two_dtypes_are_joined():
    a = dense(2)[["x", "items"]]
    b = Dense([2], {"x": a["x"], "items": a["items"].with_row_splits_dtype(tf.int32)})
    assert tf.concat([a, b], 0).to_py() == a.to_py() * 2


def test_shuffled_fields_stay_together():
    value = dense(20)
    shuffled = both_ways_as_sets(lambda v: tf.random.shuffle(v), value)
    assert shuffled != value.to_py()
    seeded = tf.random.experimental.stateless_shuffle(value, [1, 2])
    assert seeded.to_py() == tf.random.experimental.stateless_shuffle(value, [1, 2]).to_py()
    assert sorted(map(str, seeded.to_py())) == sorted(map(str, value.to_py()))
    rows = ragged(*[1, 2] * 5)
    assert sorted(map(str, tf.random.shuffle(rows).to_py())) == sorted(map(str, rows.to_py()))


def both_ways_as_sets(function, value):
    for shuffle in (function, tf.function(function)):
        shuffled = shuffle(value).to_py()
        assert sorted(map(str, shuffled)) == sorted(map(str, value.to_py()))
    return shuffled


def test_shape_size_and_rank():
    for value in (dense(3, 2), Dense([3, 2], {})):
        assert tf.shape(value).numpy().tolist() == [3, 2]
        assert tf.shape(value, out_type=tf.int64).dtype == tf.int64
        assert tf.size(value).numpy() == 6
        assert tf.rank(value).numpy() == 2
    record = dense(1)[0]
    assert tf.shape(record).numpy().tolist() == []
    assert tf.size(record).numpy() == 1
    rows = ragged(2, 0, 1)
    assert tf.size(rows).numpy() == 3
    assert tf.size(tf.stack([rows, rows])).numpy() == 6
    assert tf.rank(rows).numpy() == 2
    with pytest.raises(StructureError, match="row_lengths"):
        tf.shape(rows)
    spec = dense(3)[["x"]].__tf_type_spec__().unstacked().stacked(None)
    sizes = tf.function(lambda v: (tf.shape(v), tf.size(v)), input_signature=[spec])
    assert [part.numpy().tolist() for part in sizes(dense(3)[["x"]])] == [[3], 3]


def test_zeros_and_ones_like():
    value = dense(2)
    zeros = both_ways(tf.zeros_like, value)
    assert zeros["x"].numpy().tolist() == [0, 0]
    assert zeros["words"].to_list() == [[], [b""]]
    assert zeros["items.n"].to_list() == [[0, 0], [0, 0]]
    numbers = value[["x", "pair", "items"]]
    assert tf.ones_like(numbers)["items.n"].to_list() == [[1, 1], [1, 1]]
    assert tf.ones_like(numbers, tf.bool)["x"].numpy().tolist() == [True, True]
    with pytest.raises(DTypeError, match=r"tf.ones_like: inner.s"):
        tf.ones_like(value[["inner"]])


@pytest.mark.whole("traces many functions")
def test_control_flow_takes_records():
    names = ["x", "words", "inner"]
    a, b = dense(2)[names], dense(2, start=5)[names]
    yes = tf.constant(True)
    for chosen in (
        tf.function(lambda a, b: tf.cond(yes, lambda: a, lambda: b))(a, b),
        tf.function(lambda a, b: tf.case([(yes, lambda: a)], default=lambda: b))(a, b),
        tf.function(lambda a, b: tf.switch_case(tf.constant(0), [lambda: a, lambda: b]))(a, b),
    ):
        assert chosen.to_py() == a.to_py()

    @tf.function
    def reversed_thrice(a):
        return tf.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, tf.reverse(v, [0])), (tf.constant(0), a)
        )[1]

    assert reversed_thrice(a).to_py() == a.to_py()[::-1]
    tf.group(a, b)


def test_fields_of_other_types_are_moved():
    other = MaskedTensor(tf.constant([[1, 2], [3, 4]]), tf.constant([[True, False]] * 2))
    sparse = tf.sparse.from_dense([[0, 1], [2, 0]])
    value = Dense([2], {"o": other, "s": sparse})
    for moved, rows in (
        (tf.reverse(value, [0]), [1, 0]),
        (tf.concat([value, value], 0), [0, 1, 0, 1]),
        (tf.tile(value, [2]), [0, 1, 0, 1]),
        (tf.gather(value, [1, 1]), [1, 1]),
        (tf.where([False, True], value, value[::-1]), [1, 1]),
        (tf.split(value, 2)[1], [1]),
    ):
        assert moved["o"].values.numpy().tolist() == [[[1, 2], [3, 4]][i] for i in rows]
        assert tf.sparse.to_dense(moved["s"]).numpy().tolist() == [
            [[0, 1], [2, 0]][i] for i in rows
        ]
    stacked = tf.stack([value, value])
    assert stacked["o"].values.shape == [2, 2, 2]
    assert tf.transpose(Dense([2, 2], {"o": other}))["o"].values.numpy().tolist() == [
        [1, 3], [2, 4],
    ]  # fmt: skip


# What is refused.


def recipes():
    return Dense([2], {
        "title": ["a", "b"],
        "est. time": [55.0, 30.0],
    })  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [
        lambda v: v + 1, lambda v: 1 + v, lambda v: v - v, lambda v: v * 2.0, lambda v: 2 / v,
        lambda v: -v, lambda v: abs(v), lambda v: v > 1, lambda v: v @ v, lambda v: ~v,
        lambda v: np.ones(2) + v, lambda v: tf.ones(2) + v, lambda v: v + tf.ones(2),
        lambda v: tf.add(v, 1), lambda v: tf.add(1, v), lambda v: tf.reduce_sum(v), tf.abs,
        lambda v: tf.matmul(v, v), tf.nn.relu, tf.math.cumsum, lambda v: tf.cast(v, tf.int32),
        lambda v: tf.equal(v, v), tf.constant, tf.convert_to_tensor, np.asarray, np.array,
        lambda v: tf.cast(v, tf.float32), bool, float, int, 
        lambda v: tf.sort(v), lambda v: tf.where(v), lambda v: tf.one_hot(v, 3),
        lambda v: bool(v[0]), lambda v: float(v[0]), lambda v: np.asarray(v[0]),
        lambda v: tf.constant(v[0]), lambda v: v[0] + 1,
    ],
)  # fmt: skip
def test_a_use_as_a_number_names_a_field_to_use_instead(function):
    with pytest.raises(DTypeError, match=r"""records\['"est. time"'\]""") as caught:
        function(recipes())
    assert isinstance(caught.value, TypeError)
    assert len(str(caught.value)) < 500


def test_a_refused_operation_names_a_string_where_it_takes_strings():
    with pytest.raises(DTypeError, match=r'tf.strings.length.*records\["title"\]'):
        tf.strings.length(recipes())
    with pytest.raises(DTypeError, match=r'Use one of the fields: records\["title"\]'):
        recipes()[["title"]] + 1
    with pytest.raises(DTypeError, match="no fields"):
        Dense([2], {}) + 1


def test_records_are_still_compared_by_identity():
    value = recipes()
    assert value == value
    assert value != recipes()
    assert len({value, value}) == 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a, b: tf.concat([a, b.without("x")], 0), "tf.concat"),
        (lambda a, b: tf.stack([a, b[0]]), "tf.stack"),
        (lambda a, b: tf.concat([a, a["x"]], 0), "tf.concat: expected records only"),
        (lambda a, b: tf.concat([a["x"], a], 0), "records only"),
        (lambda a, b: tf.concat([a, b.with_updates(x=[1.0, 2.0])], 0), "tf.concat: x: expected"),
        (lambda a, b: tf.concat([a, b], 1), "tf.concat: axis: expected an axis of the records"),
        (lambda a, b: tf.where([True, False], a, a["x"]), "tf.where: expected records for both"),
        (lambda a, b: tf.gather(a, [0], axis=2), "tf.gather: axis"),
        (lambda a, b: tf.gather(a[0], [0]), "tf.gather: axis: expected records of rank 1"),
        (lambda a, b: tf.gather_nd(a, [[0, 0]]), "tf.gather_nd: indices"),
        (lambda a, b: tf.where([[True]], a, b), "tf.where: condition"),
        (lambda a, b: tf.transpose(ragged(1, 2)), "tf.transpose: expected dense records"),
        (lambda a, b: tf.reshape(ragged(1, 2), [-1]), "tf.reshape: expected dense records"),
        (lambda a, b: tf.unstack(ragged(1, 2), axis=1), "tf.unstack: expected axis 0"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_cannot_be_moved_is_an_error(function, words):
    with pytest.raises(ExtensorError, match=words) as caught:
        function(dense(2), dense(2))
    assert caught.value.fix


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.data())
def test_ragged_records_are_gathered_and_joined_as_lists(lengths, data):
    value = ragged(*lengths)
    p = value.to_py()
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=4))
    taken = tf.gather(value, np.asarray(rows, np.int64))
    assert taken.to_py() == [p[i] for i in rows]
    assert tf.concat([value, taken], 0).to_py() == p + taken.to_py()
    assert tf.concat([value, value], 1).to_py() == [row + row for row in p]
    assert tf.reverse(value, [0, 1]).to_py() == [row[::-1] for row in p[::-1]]


SINGLE = [
    {"id": 1, "tags": [1, 2], "steps": [{"n": 1}, {"n": 2}], "inner": {"q": [[1], []]}},
    {"id": 2, "tags": [3], "steps": [{"n": 3}], "inner": {"q": [[2, 3]]}},
    {"id": 3, "tags": [4], "steps": [], "inner": {"q": []}},
]
SCHEMA = pa.schema(
    {
        "id": pa.int32(),
        "tags": pa.list_(pa.int32()),
        "steps": pa.list_(pa.struct({"n": pa.int32()})),
        "inner": pa.struct({"q": pa.list_(pa.list_(pa.int32()))}),
    }
)


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("chosen", [[0, 1, 2], [1], [1, 2, 1]])
def test_single_records_with_lists_of_other_lengths_are_stacked_as_ragged(chosen):
    records = xt.from_arrow(pa.Table.from_pylist(SINGLE, SCHEMA))

    def stacked(value):
        return tf.ragged.stack([value[i] for i in chosen])

    for result in (stacked(records), tf.function(stacked)(records)):
        assert result.shape == [len(chosen)]
        assert result.to_py() == [SINGLE[i] for i in chosen]
        assert isinstance(result["tags"], tf.RaggedTensor)
        assert isinstance(result["steps"], xt.RaggedStructuredTensor)


def test_collections_of_other_lengths_are_stacked_as_ragged():
    records = xt.from_arrow(pa.Table.from_pylist(SINGLE, SCHEMA))
    rows = tf.ragged.stack([records[:2], records[2:]])
    assert isinstance(rows, xt.RaggedStructuredTensor)
    assert rows.to_py() == [SINGLE[:2], SINGLE[2:]]
    with pytest.raises(StructureError, match=r"tf\.ragged\.stack: axis"):
        tf.ragged.stack([records, records], axis=1)


def test_values_of_several_numbers_are_stacked_as_ragged_as_they_are():
    wide, pair = pa.decimal128(30, 2), pa.list_(pa.float32(), 2)
    item = pa.struct({"d": wide, "p": pair})
    types = {"d": wide, "p": pair, "ds": pa.list_(wide), "s": pa.list_(item), "n": item}
    row = {"d": decimal.Decimal("12345678901234567890.25"), "p": [0.5, 1.0]}
    rows = [{**row, "ds": [row["d"]] * n, "s": [row] * n, "n": row} for n in (1, 0, 2)]
    records = xt.from_arrow(pa.Table.from_pylist(rows, pa.schema(types)))

    def stacked(records):
        halves = tf.ragged.stack([records[:1], records[1:]])
        return halves, tf.ragged.stack([records[0], records[2]])

    spec = xt.spec_of(records).unstacked().stacked(None)
    for call in (stacked, tf.function(stacked, input_signature=[spec])):
        halves, single = call(records)
        assert halves.to_py() == [rows[:1], rows[1:]]
        assert single.to_py() == [rows[0], rows[2]]


FIELDS = {"number": 1, "list": [1], "record": {"a": 1}, "list of records": [{"a": 1}]}


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(FIELDS, 2)))
def test_fields_of_other_kinds_are_not_joined(one, other):
    first, second = (xt.struct.constant([{"x": FIELDS[kind]}]) for kind in (one, other))
    for call in (
        lambda *r: tf.concat(r, 0),
        lambda *r: tf.stack(r),
        lambda *r: tf.where([True], *r),
    ):
        with pytest.raises(StructureError, match=r"tf\.\w+: x: expected .* in item 1"):
            call(first, second)


@pytest.mark.parametrize(("begin", "size"), [(1, 9), (-1, 1), (4, 0)])
def test_a_slice_outside_of_the_records_is_an_error(begin, size):
    records = Dense([3], {"x": [1, 2, 3]})
    with pytest.raises(RowError, match=r"tf\.slice: axis 0: expected a range from 0 to at most 3"):
        tf.slice(records, [begin], [size])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.slice(records["x"], [begin], [size])
    part = tf.function(lambda n: tf.slice(records, [n], [2])["x"])
    assert part(tf.constant(1)).numpy().tolist() == [2, 3]


def test_stack_names_a_field_whose_lists_differ_in_length():
    records = xt.from_arrow(pa.Table.from_pylist(SINGLE, SCHEMA))
    with pytest.raises(
        StructureError, match=r"^tf\.stack: tags: .*\(2,\).*\(1,\) in item 1.*ragged\.stack"
    ):
        tf.stack([records[0], records[1]])
    with pytest.raises(StructureError, match=r"^tf\.stack: steps: .*item 1.*ragged\.stack"):
        tf.stack([records[1].without("inner"), records[2].without("inner")])


class Length(xt.dispatch.OperatorsMixin):
    """A type that overrides an operation, but none that moves its elements."""

    def __init__(self, metres):
        self.metres = metres

    shape = property(lambda self: self.metres.shape)

    def __tf_type_spec__(self):
        return LengthSpec(self.shape)

    @xt.dispatch.implements(tf.negative)
    @classmethod
    def negative(cls, x, name=None):
        return cls(-x.metres)


class LengthSpec(xt.StackableTypeSpec):
    value_type = Length

    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape)

    def to_components(self, value):
        return value.metres

    def from_components(self, components):
        return Length(components)

    def serialize(self):
        return (self.shape,)


class Cut(Length):
    """A type that moves its elements, but does not join them."""

    def __tf_type_spec__(self):
        return CutSpec(self.shape)

    @xt.dispatch.implements(xt.dispatch.is_rearranging_op)
    @classmethod
    def rearranged(cls, op, x, *args, **kwargs):
        return cls(op(x.metres, *args, **kwargs))


class CutSpec(LengthSpec):
    value_type = Cut

    def from_components(self, components):
        return Cut(components)


@pytest.mark.parametrize("kind", [Length, Cut])
@pytest.mark.parametrize("call", [
    lambda r: r[0], lambda r: r[::-1], lambda r: tf.gather(r, [1, 0]), lambda r: tf.roll(r, 1, 0),
    lambda r: tf.concat([r, r], 0), lambda r: tf.stack([r, r]), lambda r: tf.reverse(r, [0]),
    lambda r: tf.expand_dims(r, 1), lambda r: tf.where([True, False], r, tf.reverse(r, [0])),
    lambda r: tf.boolean_mask(r, [False, True]), lambda r: tf.reshape(r, [2, 1]),
])  # fmt: skip
def test_a_field_whose_type_overrides_other_operations_is_moved_as_a_tensor(kind, call):
    metres = tf.constant([1.0, 2.0])
    found = call(xt.DenseStructuredTensor([2], {"length": kind(metres), "metres": metres}))
    assert type(found["length"]) is kind
    np.testing.assert_array_equal(found["length"].metres, found["metres"])


def test_ragged_parts_of_a_field_get_a_dimension():
    @xt.extension_type
    class Steps:
        minutes: tf.RaggedTensor

    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    records = xt.DenseStructuredTensor([2], {"steps": Steps(ragged)})
    for axis in (0, 1):
        expanded = tf.expand_dims(records, axis)["steps"].minutes
        assert expanded.to_list() == tf.expand_dims(ragged, axis).to_list()
