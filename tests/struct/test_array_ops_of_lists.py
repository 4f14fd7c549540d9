"""Array operations on records whose lists differ in length, and on nulls and unions in them."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, StructureError

constant = xt.struct.constant
ROWS = [
    {"id": 1, "tags": [1], "maybe": None, "what": 1, "steps": [{"n": 1}, {"n": 2}],
     "lists": [[1], []], "mixed": ["a"], "null": None},
    {"id": 2, "tags": [5, 6], "maybe": [3, None], "what": "x", "steps": [],
     "lists": [], "mixed": [1, "b"], "null": {"a": 1}},
    {"id": 3, "tags": [], "maybe": [7], "what": 2, "steps": [{"n": 3}],
     "lists": [[2, 3]], "mixed": [], "null": {"a": None}},
]  # fmt: skip
POLICY = dict.fromkeys(["maybe", "maybe[*]", "null", "null.a"], "mask")


@functools.cache
def rows():
    return constant(ROWS, nulls=POLICY, conflicts="union")


def py(value):
    return value.to_py(text=True)


def both_ways(function, *args):
    """Yields the result of a function, eagerly and in a graph."""
    yield function(*args)
    yield tf.function(function, autograph=False)(*args)


# tf.where never repeats a list of one item to the length of another.


PAIRS = list(itertools.permutations(range(3), 2))


def of_pairs(records, flag):
    return [tf.where(flag, records[one], records[other]) for one, other in PAIRS]


OF_PAIRS_IN_A_GRAPH = tf.function(of_pairs, autograph=False)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("chosen", [True, False])
def test_where_of_single_records_returns_one_of_them(chosen):
    expected = [ROWS[one if chosen else other] for one, other in PAIRS]
    for found in both_ways(lambda v: of_pairs(v, chosen), rows()):
        assert list(map(py, found)) == expected
    for function in (of_pairs, OF_PAIRS_IN_A_GRAPH):
        found = function(rows(), tf.constant(chosen))
        assert list(map(py, found)) == expected


def test_where_refuses_dense_fields_of_other_sizes():
    one = xt.DenseStructuredTensor([2], {"r": xt.DenseStructuredTensor([2], {"v": [[1], [2]]})})
    other = one.with_updates({"r.v": [[1, 2], [3, 4]]})
    with pytest.raises(
        StructureError, match=r"tf\.where: r\.v: expected values of shape \(1,\).*\(2,\)"
    ):
        tf.where([True, False], one, other)
    with pytest.raises(StructureError, match=r"tf\.where"):
        tf.where(True, one[0], other[0].without("r"))


def test_where_of_single_records_of_one_size_runs_one_op_a_field():
    records = xt.DenseStructuredTensor([2], {"a": [1, 2], "b": [1.0, 2.0]})
    graph = tf.function(lambda v, c: tf.where(c, v[0], v[1]), autograph=False)
    traced = graph.get_concrete_function(records, tf.TensorSpec([], tf.bool)).graph
    types = [op.type for op in traced.get_operations()]
    assert types.count("SelectV2") == 2
    assert "If" not in types
    assert "StatelessIf" not in types


# tf.stack.


@pytest.mark.parametrize(
    ("field", "path"), [("tags", "tags"), ("maybe", "maybe"), ("mixed", "mixed")]
)
def test_stack_names_the_field_whose_lists_differ(field, path):
    records = rows()[[field]]
    with pytest.raises(StructureError, match=rf"^tf\.stack: {path}: .*in item 1.*ragged\.stack"):
        tf.stack([records[1], records[2]])
    nested = xt.DenseStructuredTensor([], {"r": records[1]})
    other = xt.DenseStructuredTensor([], {"r": records[2]})
    with pytest.raises(StructureError, match=rf"^tf\.stack: r\.{path}: "):
        tf.stack([nested, other])
    assert py(tf.ragged.stack([records[1], records[2]])) == [
        {field: ROWS[1][field]}, {field: ROWS[2][field]}
    ]  # fmt: skip


# tf.repeat.


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("times", [0, 1, 2])
def test_repeat_inside_ragged_rows(times):
    ragged = xt.RaggedStructuredTensor.from_row_lengths(rows(), [2, 0, 1])
    deep = xt.RaggedStructuredTensor.from_row_lengths(ragged, [1, 2])
    plain = [ROWS[:2], [], ROWS[2:]]
    halves_ = [plain[:1], plain[1:]]

    def repeated(ragged, deep):
        return (
            tf.repeat(ragged, times, axis=1),
            tf.repeat(deep, times, axis=2),
            tf.repeat(deep, tf.constant(times), axis=-2),
        )

    for found in both_ways(repeated, ragged, deep):
        assert py(found[0]) == [[r for r in row for _ in range(times)] for row in plain]
        assert py(found[1]) == [
            [[r for r in row for _ in range(times)] for row in half] for half in halves_
        ]
        assert py(found[2]) == [[row for row in half for _ in range(times)] for half in halves_]


def test_repeat_of_ragged_rows_takes_one_number():
    ragged = xt.RaggedStructuredTensor.from_row_lengths(rows(), [2, 0, 1])
    with pytest.raises(StructureError, match=r"tf\.repeat: repeats: expected one number"):
        tf.repeat(ragged, [1, 2], axis=1)


# tf.zeros_like and tf.ones_like.

NUMBERS = [{"u": 5, "m": None, "xs": [1, True]}, {"u": 2.5, "m": 3, "xs": []}]


def test_zeros_and_ones_keep_nulls_and_the_variant_of_each_row():
    for found in both_ways(tf.zeros_like, rows()):
        assert py(found)[1] == {
            "id": 0, "tags": [0, 0], "maybe": [0, None], "what": "", "steps": [],
            "lists": [], "mixed": [0, ""], "null": {"a": 0},
        }  # fmt: skip
        assert [row["what"] for row in py(found)] == [0, "", 0]
    for found in both_ways(tf.zeros_like, rows()[0]):
        assert py(found)["steps"] == [{"n": 0}, {"n": 0}]
        assert py(found)["maybe"] is None
    numbers = constant(NUMBERS, nulls={"m": "mask"}, conflicts="union")
    for found in both_ways(tf.ones_like, numbers):
        assert py(found) == [{"u": 1, "m": None, "xs": [1, True]}, {"u": 1.0, "m": 1, "xs": []}]


@pytest.mark.parametrize(
    ("rows", "path"),
    [
        ([{"m": "a"}, {"m": None}], "m"),
        ([{"r": {"ms": [None, "x"]}}], r"r\.ms"),
        ([{"u": 1}, {"u": "x"}], r"u\.string"),
    ],
)
def test_ones_of_strings_name_their_field(rows, path):
    records = constant(rows, nulls="mask", conflicts="union")
    with pytest.raises(DTypeError, match=rf"^tf\.ones_like: {path}: "):
        tf.ones_like(records)


# Loops.

MOVES = {
    "reverse": lambda v: tf.reverse(v, [0]),
    "gather": lambda v: tf.gather(v, [2, 1, 0]),
    "slice": lambda v: v[::-1],
    "roll": lambda v: tf.roll(tf.roll(tf.reverse(v, [0]), 1, 0), -1, 0),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", MOVES)
def test_a_loop_may_move_records_with_lists(name):
    move = MOVES[name]

    def thrice(v):
        return tf.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, move(v)), (tf.constant(0), v)
        )[1]

    ragged = xt.RaggedStructuredTensor.from_row_lengths(rows(), [2, 0, 1])
    values = {"records": rows()} if name == "roll" else {"records": rows(), "ragged": ragged}
    for found in both_ways(lambda values: {n: thrice(v) for n, v in values.items()}, values):
        assert py(found["records"]) == ROWS[::-1]
        assert name == "roll" or py(found["ragged"]) == [ROWS[2:], [], ROWS[:2]]


def test_a_loop_still_refuses_another_number_of_records():
    @tf.function
    def shorter(v):
        return tf.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, v[1:]), (tf.constant(0), v))

    with pytest.raises(ValueError, match="enters the loop with shape"):
        shorter(rows())


# Every operation of the list in the documentation, on all of these fields at once.


def halves(v):
    return tf.reshape(tf.concat([v, v[:1]], 0), [2, 2])


FOUR = [*ROWS, ROWS[0]]
SQUARE = [FOUR[:2], FOUR[2:]]
# Functions of the records, and of two rows of two of them.
OPS = {
    "batch_gather": (lambda v, h: tf.compat.v1.batch_gather(h, [[1], [0]]),
                     [[FOUR[1]], [FOUR[2]]]),
    "boolean_mask": (lambda v, h: tf.boolean_mask(v, [True, False, True]), [ROWS[0], ROWS[2]]),
    "boolean_mask of two dimensions": (
        lambda v, h: tf.boolean_mask(h, [[False, True], [True, False]]), FOUR[1:3]),
    "boolean_mask of axis 1": (
        lambda v, h: tf.boolean_mask(h, [False, True], axis=1), [[FOUR[1]], [FOUR[3]]]),
    "concat": (lambda v, h: tf.concat([v, v[::-1]], 0), ROWS + ROWS[::-1]),
    "concat of axis 1": (lambda v, h: tf.concat([h] * 2, 1), [row * 2 for row in SQUARE]),
    "expand_dims": (lambda v, h: tf.expand_dims(v, 1), [[row] for row in ROWS]),
    "expand_dims of one": (lambda v, h: tf.expand_dims(v[1], 0), [ROWS[1]]),
    "gather": (lambda v, h: tf.gather(v, [2, 0]), [ROWS[2], ROWS[0]]),
    "gather of axis 1": (lambda v, h: tf.gather(h, [1], axis=1), [[FOUR[1]], [FOUR[3]]]),
    "gather_nd": (lambda v, h: tf.gather_nd(h, [[1, 0], [0, 1]]), [FOUR[2], FOUR[1]]),
    "identity": (lambda v, h: tf.identity(v), ROWS),
    "identity of one": (lambda v, h: tf.identity(v[0]), ROWS[0]),
    "squeeze": (lambda v, h: tf.squeeze(v[1:2]), ROWS[1]),
    "squeeze of axis 1": (lambda v, h: tf.squeeze(h[:, :1], 1), [FOUR[0], FOUR[2]]),
    "stack": (lambda v, h: tf.stack([v, v]), [ROWS, ROWS]),
    "stack of axis 1": (lambda v, h: tf.stack([v, v], 1), [[row, row] for row in ROWS]),
    "stack of one": (lambda v, h: tf.stack([v[0], v[0]]), [ROWS[0]] * 2),
    "tile": (lambda v, h: tf.tile(v, [2]), ROWS * 2),
    "tile of both": (lambda v, h: tf.tile(h, [2, 2]), [row * 2 for row in SQUARE] * 2),
    "unstack": (lambda v, h: tf.unstack(v), ROWS),
    "unstack of axis 1": (
        lambda v, h: tf.unstack(h, axis=1), [[FOUR[0], FOUR[2]], [FOUR[1], FOUR[3]]]),
    "where": (lambda v, h: tf.where([True, False, True], v, v[::-1]), [ROWS[0], ROWS[1], ROWS[2]]),
    "where of a number": (lambda v, h: tf.where(False, v, v[::-1]), ROWS[::-1]),
    "split": (lambda v, h: tf.split(v, [1, 2]), [ROWS[:1], ROWS[1:]]),
    "split of axis 1": (lambda v, h: tf.split(h, 2, axis=1),
                        [[[row[0]] for row in SQUARE], [[row[1]] for row in SQUARE]]),
    "slice": (lambda v, h: tf.slice(v, [1], [2]), ROWS[1:]),
    "slice of both": (lambda v, h: tf.slice(h, [0, 1], [-1, 1]), [[FOUR[1]], [FOUR[3]]]),
    "reverse": (lambda v, h: tf.reverse(v, [0]), ROWS[::-1]),
    "repeat": (lambda v, h: tf.repeat(v, [1, 0, 2], axis=0), [ROWS[0], ROWS[2], ROWS[2]]),
    "repeat of axis 1": (
        lambda v, h: tf.repeat(h, 2, axis=1), [[x for x in r for _ in "ab"] for r in SQUARE]),
    "repeat of all": (lambda v, h: tf.repeat(h, 2), [x for x in FOUR for _ in "ab"]),
    "transpose": (lambda v, h: tf.transpose(h), [[FOUR[0], FOUR[2]], [FOUR[1], FOUR[3]]]),
    "cond": (lambda v, h: tf.cond(tf.size(v) > 2, lambda: v, lambda: v[:0]), ROWS),
    "cond of one": (lambda v, h: tf.cond(tf.size(v) > 2, lambda: v[1], lambda: v[0]), ROWS[1]),
    "case": (
        lambda v, h: tf.case([(tf.size(v) < 0, lambda: v)], default=lambda: v[::-1]), ROWS[::-1]),
    "switch_case": (lambda v, h: tf.switch_case(tf.size(v) - 2, [lambda: v[:1], lambda: v]), ROWS),
}  # fmt: skip


@pytest.fixture(scope="module")
def results_in_a_graph():
    """Returns the results of all operations in one graph."""

    def results(v):
        h = halves(v)
        return {name: function(v, h) for name, (function, _) in OPS.items()}

    return tf.function(results, autograph=False)(rows())


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", OPS)
def test_each_equals_the_same_on_python_data(name, results_in_a_graph):
    function, expected = OPS[name]

    def plain(value):
        return [plain(part) for part in value] if isinstance(value, list) else py(value)

    for found in (function(rows(), halves(rows())), results_in_a_graph[name]):
        assert plain(found) == expected


def test_group_waits_for_records_and_gives_nothing():
    @tf.function
    def after(v):
        with tf.control_dependencies([tf.group(v, v[0])]):
            return tf.identity(v)

    assert py(after(rows())) == ROWS
    assert tf.group(rows()) is None


@pytest.mark.whole("traces many functions")
def test_shuffle_keeps_fields_together_in_records_of_every_rank():
    for value, plain in ((rows(), ROWS), (halves(rows()), SQUARE)):
        for found in both_ways(tf.random.shuffle, value):
            assert sorted(map(repr, py(found))) == sorted(map(repr, plain))
    many = constant([{"i": i, "xs": [i] * (i % 3)} for i in range(100)])
    seeded = [py(tf.random.shuffle(many, seed=1)) for _ in range(2)]
    assert seeded[0] != py(many)
    assert all(row["xs"] == [row["i"]] * (row["i"] % 3) for row in seeded[0])


def test_rank_size_and_shape():
    ragged = xt.RaggedStructuredTensor.from_row_lengths(rows(), [2, 0, 1])
    for value, rank, size, shape in (
        (rows(), 1, 3, [3]), (rows()[0], 0, 1, []), (halves(rows()), 2, 4, [2, 2]),
        (ragged, 2, 3, None),
    ):  # fmt: skip
        for found in both_ways(lambda v: (tf.rank(v), tf.size(v)), value):
            assert [np.asarray(part).tolist() for part in found] == [rank, size]
        if shape is None:
            with pytest.raises(StructureError, match=r"tf\.shape: .*row_lengths"):
                tf.shape(value)
        else:
            for found in both_ways(tf.shape, value):
                assert found.numpy().tolist() == shape


def test_a_loop_may_change_the_number_of_values_of_constants():
    @tf.function
    def doubled():
        records = xt.struct.constant([{"items": [{"v": 1}, {"v": 2}]}, {"items": []}])

        def double(i, v):
            lists = tf.concat([v["items"], v["items"]], 1)
            return i + 1, v.with_updates({"items": lists})

        return tf.while_loop(lambda i, v: i < 2, double, (tf.constant(0), records))[1]

    assert doubled().to_py() == [{"items": [{"v": 1}, {"v": 2}] * 4}, {"items": []}]
