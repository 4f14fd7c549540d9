"""Array operations and positions on records with nulls of every kind, against plain Python."""

import itertools
import re

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt

PLAIN = [
    {"id": i, "grams": None if i % 2 else float(i), "sizes": list(range(i)),
     "steps": [{"minutes": i, "note": None if i == 1 else b"q"}] * (i % 3),
     "scores": None if i == 2 else [None, i], "author": None if i == 1 else {"age": i}}
    for i in range(4)
]  # fmt: skip
POLICY = dict.fromkeys(["grams", "steps[*].note", "scores", "scores[*]", "author"], "mask")


@pytest.fixture(scope="module")
def records():
    return xt.struct.constant(PLAIN, nulls=POLICY)


def halves(s):
    return tf.stack([s[:2], s[2:]])


OPS = {
    "gather": (lambda s: tf.gather(s, [2, 0]), lambda p: [p[2], p[0]]),
    "gather, of rank 2": (lambda s: tf.gather(s, [[2], [0]]), lambda p: [[p[2]], [p[0]]]),
    "gather, of axis 1": (
        lambda s: tf.gather(halves(s), [1], axis=1), lambda p: [[p[1]], [p[3]]]
    ),
    "batch_gather": (
        lambda s: tf.gather(halves(s), [[1], [0]], batch_dims=1), lambda p: [[p[1]], [p[2]]]
    ),
    "gather_nd": (lambda s: tf.gather_nd(s, [[3], [1]]), lambda p: [p[3], p[1]]),
    "boolean_mask": (
        lambda s: tf.boolean_mask(s, [True, False, True, False]), lambda p: [p[0], p[2]]
    ),
    "concat": (lambda s: tf.concat([s, s[:1]], 0), lambda p: p + p[:1]),
    "concat, axis 1": (
        lambda s: tf.concat([tf.expand_dims(s, 1)] * 2, 1), lambda p: [[x, x] for x in p]
    ),
    "stack": (lambda s: tf.stack([s, s]), lambda p: [p, p]),
    "stack, axis 1": (lambda s: tf.stack([s, s], 1), lambda p: [[x, x] for x in p]),
    "expand_dims": (lambda s: tf.expand_dims(s, 0), lambda p: [p]),
    "expand_dims, axis 1": (lambda s: tf.expand_dims(s, 1), lambda p: [[x] for x in p]),
    "squeeze": (lambda s: tf.squeeze(s[None], 0), lambda p: p),
    "reshape": (lambda s: tf.reshape(s, [2, 2]), lambda p: [p[:2], p[2:]]),
    "transpose": (lambda s: tf.transpose(halves(s)), lambda p: [[p[0], p[2]], [p[1], p[3]]]),
    "tile": (lambda s: tf.tile(s, [2]), lambda p: p + p),
    "repeat": (
        lambda s: tf.repeat(s, [1, 0, 2, 1], axis=0), lambda p: [p[0], p[2], p[2], p[3]]
    ),
    "reverse": (lambda s: tf.reverse(s, [0]), lambda p: p[::-1]),
    "roll": (lambda s: tf.roll(s, 1, 0), lambda p: p[3:] + p[:3]),
    "slice": (lambda s: tf.slice(s, [1], [2]), lambda p: p[1:3]),
    "where": (
        lambda s: tf.where([True, False, True, False], s, tf.reverse(s, [0])),
        lambda p: [p[0], p[2], p[2], p[0]],
    ),
    "split": (lambda s: tf.stack(tf.split(s, 2)), lambda p: [p[:2], p[2:]]),
    "identity": (tf.identity, lambda p: p),
    "None": (lambda s: s[None], lambda p: [p]),
    "a mask with nulls": (lambda s: s[s["grams"] < 2], lambda p: [p[0]]),
    "a ragged mask with nulls": (
        lambda s: s["steps"][s["steps.note"] == "q"],
        lambda p: [[s for s in r["steps"] if s["note"]] for r in p],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def results_in_a_graph(records):
    """Returns the results of all operations in one graph."""

    def results(records):
        return {name: operation(records) for name, (operation, _) in OPS.items()}

    return tf.function(results, autograph=False)(records)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", OPS)
def test_operations_are_those_of_plain_python(name, records, results_in_a_graph):
    operation, expected = OPS[name]
    assert records.to_py() == PLAIN
    assert operation(records).to_py() == expected(PLAIN)
    assert results_in_a_graph[name].to_py() == expected(PLAIN)


# Two rows of a field, without nulls, and with nulls at one level or at two.
ROWS = {
    "lists": (
        pa.list_(pa.int32()),
        [[[1], []], [[1], None], [[None, 1], []], [[None], None]],
    ),
    "records": (
        pa.struct([("u", pa.float64()), ("v", pa.list_(pa.int64()))]),
        [
            [{"u": 1.5, "v": [1]}, {"u": 2.5, "v": []}],
            [None, {"u": 1.5, "v": [1, 2]}],
            [{"u": None, "v": []}, {"u": 1.5, "v": [2]}],
            [None, {"u": None, "v": [1]}],
        ],
    ),
    "lists of records": (
        pa.list_(pa.struct([("p", pa.int64())])),
        [[[{"p": 1}], []], [None, [{"p": 1}]], [[{"p": None}], []], [[None, {"p": 1}], None]],
    ),
}
JOINS = {
    "concat": (lambda a, b: tf.concat([a, b], 0), lambda a, b: a + b),
    "concat, axis 1": (lambda a, b: tf.concat([a[None], b[None]], 1), lambda a, b: [a + b]),
    "stack": (lambda a, b: tf.stack([a, b]), lambda a, b: [a, b]),
    "stack, axis 1": (
        lambda a, b: tf.stack([a, b], 1), lambda a, b: [[a[0], b[0]], [a[1], b[1]]]
    ),
    "where": (lambda a, b: tf.where([True, False], a, b), lambda a, b: [a[0], b[1]]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS)
def test_records_with_nulls_at_other_levels_are_joined(kind):
    arrow, levels = ROWS[kind]
    plain = [[{"x": x} for x in rows] for rows in levels]
    pairs = list(itertools.permutations(range(len(levels)), 2))
    values = [
        xt.from_arrow(pa.table({"x": pa.array(rows, arrow)}), nulls="auto") for rows in levels
    ]

    def joined(values, pairs):
        return [op(values[i], values[j]) for i, j in pairs for op, _ in JOINS.values()]

    traced = tf.function(joined, autograph=False)
    for function, some in ((joined, pairs), (traced, pairs[::4])):
        found = [records.to_py() for records in function(values, some)]
        assert found == [op(plain[i], plain[j]) for i, j in some for _, op in JOINS.values()]


def test_fields_with_nulls_at_other_levels_are_concatenated():
    arrow, levels = ROWS["lists"]
    fields = [
        xt.from_arrow(pa.table({"x": pa.array(rows, arrow)}), nulls="auto")["x"] for rows in levels
    ]
    for (one, rows), (other, others) in itertools.product(
        zip(fields, levels, strict=True), repeat=2
    ):
        found = tf.concat([one, other], 0)
        assert xt.DenseStructuredTensor([4], {"x": found}).to_py() == [
            {"x": x} for x in rows + others
        ]


INTS, TWO_INTS = pa.list_(pa.int32()), pa.list_(pa.int32(), 2)


@pytest.mark.parametrize(
    ("rows", "kind", "others", "other_kind", "wanted"),
    [
        ([[1, 2]], TWO_INTS, [[1]], INTS, INTS),
        ([[1, 2]], TWO_INTS, [[]], pa.large_list(pa.int32()), pa.large_list(pa.int32())),
        ([[1, 2], None], TWO_INTS, [[None], []], INTS, INTS),
        (["a"], pa.string(), ["b"], pa.large_string(), pa.large_string()),
        ([b"a"], pa.string(), [b"\xff"], pa.binary(), pa.binary()),
        ([b"abc"], pa.binary(3), [b"x"], pa.binary(), pa.binary()),
        (["a"], pa.dictionary(pa.int32(), pa.string()), [b"\xff"], pa.binary(), pa.binary()),
    ],
)
def test_joined_records_have_the_arrow_type_of_both(rows, kind, others, other_kind, wanted):
    tables = [pa.table({"x": pa.array(rows, kind)}), pa.table({"x": pa.array(others, other_kind)})]
    for first, second in (tables, tables[::-1]):
        one, other = (xt.from_arrow(table, nulls="auto") for table in (first, second))
        table = xt.to_arrow(tf.concat([one, other], 0))
        assert table.column("x").type == wanted
        both = [table.column("x").cast(wanted).to_pylist() for table in (first, second)]
        assert table.column("x").to_pylist() == both[0] + both[1]


def test_a_cast_names_the_level_of_nulls_that_the_spec_has_not():
    arrow, (_, of_lists, of_items, of_both) = ROWS["lists"]
    lists, items, both = (
        xt.from_arrow(pa.table({"x": pa.array(rows, arrow)}), nulls="auto")
        for rows in (of_lists, of_items, of_both)
    )
    for wanted, records, expected, received in (
        (lists, items, "null lists", "null items"),
        (items, lists, "null items", "null lists"),
        (lists, both, "null lists", "null lists and null items"),
    ):
        text = f"x: expected int32[*] with {expected}, got int32[*] with {received}. "
        with pytest.raises(xt.errors.DTypeError, match=re.escape(text)):
            xt.spec_of(wanted).cast(records)


def test_rows_of_datasets_with_nulls_at_other_levels_are_concatenated():
    arrow, levels = ROWS["lists"]
    for one, other in itertools.permutations(levels, 2):
        first, second = (
            tf.data.Dataset.from_tensor_slices(
                xt.from_arrow(pa.table({"x": pa.array(rows, arrow)}), nulls="auto")
            )
            for rows in (one, other)
        )
        found = [record.to_py() for record in first.concatenate(second)]
        assert found == [{"x": x} for x in one + other]


@pytest.mark.parametrize("item", [pa.int32(), pa.struct({"a": pa.int32()})], ids=str)
@pytest.mark.parametrize("nulls", ["mask", {"x": "mask"}, {"x[*]": "mask"}], ids=str)
def test_rows_of_lists_of_lists_are_stacked(item, nulls):
    one = pa.scalar({"a": 1} if pa.types.is_struct(item) else 1, item).as_py()
    rows = pa.array([[[one]], [], [[], [one, one]]], pa.list_(pa.list_(item)))
    records = xt.from_arrow(pa.table({"x": rows}), nulls=nulls)
    for stack in (
        lambda: tf.stack(tf.unstack(records)),
        tf.function(lambda: tf.stack(list(records))),
    ):
        assert stack().to_py() == [{"x": row} for row in rows.to_pylist()]
        assert xt.spec_of(records).cast(stack()).to_py() == records.to_py()


def test_unstack_gives_each_record(records):
    assert [record.to_py() for record in tf.unstack(records)] == PLAIN


def test_zeros_keep_the_nulls(records):
    zeros = tf.zeros_like(records)
    assert zeros["author.age"].to_py() == [0, None, 0, 0]
    assert zeros["scores"].to_py() == [[None, 0], [None, 0], None, [None, 0]]


def test_masked_positions_are_refused(records):
    with pytest.raises(xt.errors.DTypeError, match="MaskedTensor"):
        records[xt.types.MaskedTensor([1, 2], [True, False])]
