"""Fields copied to records above or below them."""

import itertools

import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor.errors import ExtensorError, FieldError, PathError
from tests.struct.paths.trees import ODD, check, recipes, vector

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def joined(lists):
    return list(itertools.chain.from_iterable(lists))


def promoted(*paths):
    return lambda t: xt.struct.promote(t, *paths)


def broadcast(*paths):
    return lambda t: xt.struct.broadcast(t, *paths)


PROMOTED = {
    ("steps.minutes", "new"): lambda r: {**r, "new": [s["minutes"] for s in r["steps"]]},
    ("steps.tags", "new"): lambda r: {**r, "new": joined(s["tags"] for s in r["steps"])},
    ("steps.tools", "new"): lambda r: {**r, "new": joined(s["tools"] for s in r["steps"])},
    ("steps.tools.grams", "new"): lambda r: {
        **r, "new": [t["grams"] for s in r["steps"] for t in s["tools"]]
    },
    ("steps.tools.grams", "steps.new"): lambda r: {
        **r, "steps": [{**s, "new": [t["grams"] for t in s["tools"]]} for s in r["steps"]]
    },
    ("author.books", "new"): lambda r: {**r, "new": r["author"]["books"]},
    ("author", "new"): lambda r: {**r, "new": r["author"]},
}  # fmt: skip


def below(record, value):
    return {
        **record,
        "steps": [
            {**s, "tools": [{**t, "new": value(record, s)} for t in s["tools"]]}
            for s in record["steps"]
        ],
    }


BROADCAST = {
    ("id", "steps.new"): lambda r: {**r, "steps": [{**s, "new": r["id"]} for s in r["steps"]]},
    ("sizes", "steps.new"): lambda r: {
        **r, "steps": [{**s, "new": r["sizes"]} for s in r["steps"]]
    },
    ("author", "steps.new"): lambda r: {
        **r, "steps": [{**s, "new": r["author"]} for s in r["steps"]]
    },
    ("id", "steps.tools.new"): lambda r: below(r, lambda r, s: r["id"]),
    ("author", "steps.tools.new"): lambda r: below(r, lambda r, s: r["author"]),
    ("steps.minutes", "steps.tools.new"): lambda r: below(r, lambda r, s: s["minutes"]),
    ("steps.tags", "steps.tools.new"): lambda r: below(r, lambda r, s: s["tags"]),
    ("id", "author.new"): lambda r: {**r, "author": {**r["author"], "new": r["id"]}},
}  # fmt: skip


def each_step(change):
    return lambda r: {**r, "steps": [{**s, **change(r, s)} for s in r["steps"]]}


MOVES = {
    **{f"promote {paths}": (promoted(*paths), wanted) for paths, wanted in PROMOTED.items()},
    **{f"broadcast {paths}": (broadcast(*paths), wanted) for paths, wanted in BROADCAST.items()},
    "promote_and_broadcast": (
        lambda t: (
            xt.struct.promote_and_broadcast(
                t, {"age": "author.age", "all": "steps.minutes"}, "steps"
            )
            if "age" not in t["steps"]
            else t
        ),
        each_step(lambda r, s: {"age": r["author"]["age"], "all": s["minutes"]}),
    ),
    "promote_and_broadcast, up": (
        lambda t: xt.struct.promote_and_broadcast(t, {"all": "steps.minutes"}, "author"),
        lambda r: {
            **r, "author": {**r["author"], "all": [s["minutes"] for s in r["steps"]]}
        },
    ),
    "broadcast the records": (
        broadcast((), "steps.recipe"), each_step(lambda r, s: {"recipe": r})
    ),
    "promote_and_broadcast the records": (
        lambda t: xt.struct.promote_and_broadcast(t, {"recipe": ()}, "steps"),
        each_step(lambda r, s: {"recipe": r}),
    ),
}  # fmt: skip


@pytest.mark.whole("draws many values")
@given(plain=recipes)
def test_fields_move_as_those_of_plain_python(plain):
    check(plain, MOVES)


@given(plain=recipes)
def test_reroot(plain):
    records = vector(plain)
    expected = [{**t, "of": i} for i, r in enumerate(plain) for s in r["steps"] for t in s["tools"]]
    rerooted = xt.struct.reroot(records, "steps.tools", index="of")
    assert rerooted.rank == 1
    assert rerooted.to_py() == expected
    traced = tf.function(lambda st: xt.struct.reroot(st, ("steps", "tools"), index="of"))
    assert traced(records).to_py() == expected
    assert xt.struct.reroot(records, "author").to_py() == [r["author"] for r in plain]
    if plain:
        first = xt.struct.reroot(records[0], "steps.tools", index="of")
        assert first.to_py() == [e for e in expected if e["of"] == 0]


def deep(splits):
    """Returns records of lists in lists in lists, with a number in the innermost."""
    leaf = Dense([splits[-1][-1]], {"x": tf.range(splits[-1][-1])})
    for level in reversed(splits):
        leaf = Dense([len(level) - 1], {"list": Ragged.from_row_splits(leaf, level)})
    return leaf


SPLITS = [[0, 2, 3], [0, 1, 1, 4], [0, 3, 4, 4, 6]]


def test_promote_over_n_lists_gathers_n_minus_1_row_splits_and_copies_no_value():
    records = deep(SPLITS)

    @tf.function(input_signature=[records.__tf_type_spec__()])
    def promoted(st):
        return xt.struct.promote(st, "list.list.list.x", "x")["x"]

    kinds = [op.type for op in promoted.get_concrete_function().graph.get_operations()]
    assert kinds.count("GatherV2") == 2
    assert set(kinds) <= {"Placeholder", "GatherV2", "Identity", "Const", "NoOp"}
    assert promoted(records).to_list() == [[0, 1, 2], [3, 4, 5]]
    x = records["list.list.list.x"]
    assert xt.struct.promote(records, "list.list.list.x", "x")["x"].values is x.flat_values


def test_broadcast_of_wide_rows_takes_no_memory_for_the_longest_list():
    wide = tf.reshape(tf.range(6.0), [2, 3])
    records = Dense([2], {"wide": wide, "xs": tf.ragged.constant([[1], [2, 3, 4]])})

    @tf.function
    def broadcast(records):
        items = xt.struct.apply(records, lambda x: x, ["xs"], "items")
        items = items.with_updates(items=xt.struct.zip({"x": items["items"]}))
        return xt.struct.broadcast(items, "wide", "items.wide")["items.wide"]

    traced = broadcast.get_concrete_function(xt.spec_of(records))
    repeated = [op for op in traced.graph.get_operations() if op.type in ("BroadcastTo", "Tile")]
    assert repeated
    assert all(op.outputs[0].dtype in (tf.int64, tf.int32) for op in repeated)
    assert broadcast(records).values.numpy().tolist() == [[0, 1, 2], *[[3, 4, 5]] * 3]


def test_broadcast_repeats_once():
    records = deep(SPLITS).with_updates(id=[7, 8])

    @tf.function(input_signature=[records.__tf_type_spec__()])
    def once(st):
        return xt.struct.broadcast(st, "id", "list.list.list.id")

    @tf.function(input_signature=[tf.TensorSpec([2], tf.int32), tf.TensorSpec([2], tf.int64)])
    def repeat(values, lengths):
        return tf.repeat(values, lengths)

    def count(function, kind):
        graph = function.get_concrete_function().graph
        return sum(op.type == kind for op in graph.get_operations())

    for kind in ("Where", "Max", "Range", "Tile", "BroadcastTo"):
        assert count(once, kind) == count(repeat, kind)
    promoted = xt.struct.promote(once(records), "list.list.list.id", "ids")
    lengths = xt.struct.promote(records, "list.list.list.x", "x")["x"].row_lengths()
    assert promoted["ids"].to_list() == [[7] * int(lengths[0]), [8] * int(lengths[1])]


def test_fixed_inner_dimensions_stay_and_fixed_lists_are_merged():
    steps = Dense([2, 3], {"embedding": tf.reshape(tf.range(24.0), [2, 3, 4])})
    records = Dense([2], {"steps": steps, "v": tf.ones([2, 5])})
    assert xt.struct.promote(records, "steps.embedding", "e")["e"].shape == [2, 3, 4]
    assert xt.struct.broadcast(records, "v", "steps.v")["steps.v"].shape == [2, 3, 5]
    tools = Dense([2, 3, 2], {"w": tf.reshape(tf.range(12), [2, 3, 2])})
    both = records.with_updates({"steps.tools": tools})
    promoted = xt.struct.promote(both, "steps.tools.w", "w")["w"]
    assert promoted.shape == [2, 6]
    assert promoted.numpy().tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_gradients_flow_through_both():
    records = deep(SPLITS)
    x, y = tf.range(6.0), tf.constant([2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        st = records.with_updates(
            {"y": y, "list.list.list.x": xt.struct.map_values(
                records, lambda _: x, "list.list.list.x")["list.list.list.x"]}
        )  # fmt: skip
        st = xt.struct.promote(st, "list.list.list.x", "xs")
        st = xt.struct.broadcast(st, "y", "list.list.list.y")
        total = tf.reduce_sum(st["xs"] ** 2) + tf.reduce_sum(st["list.list.list.y"].flat_values)
    dx, dy = tape.gradient(total, [x, y])
    assert tf.convert_to_tensor(dx).numpy().tolist() == [0, 2, 4, 6, 8, 10]
    lengths = xt.struct.promote(records, "list.list.list.x", "x")["x"].row_lengths()
    assert tf.convert_to_tensor(dy).numpy().tolist() == lengths.numpy().tolist()


PLAIN = [
    {**ODD, "id": 1, "author": {"age": 2, "books": []}, "sizes": [],
     "steps": [{**ODD, "minutes": 3, "tags": [], "tools": [{"grams": 0.5}]}]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "source", "target", "kind"),
    [
        ("promote", "steps.nope", "x", FieldError),
        ("promote", "nope.minutes", "x", FieldError),
        ("promote", "steps.minutes", "nope.x", FieldError),
        ("promote", "steps.minutes", "id", FieldError),
        ("promote", "steps.minutes", (), FieldError),
        ("promote", (), "x", FieldError),
        ("promote", "steps.minutes", "author.x", PathError),
        ("promote", "id", "steps.x", PathError),
        ("broadcast", "nope", "steps.x", FieldError),
        ("broadcast", "id", "steps.minutes", FieldError),
        ("broadcast", "id", "steps.nope.x", FieldError),
        ("broadcast", "id", "id.x", FieldError),
        ("broadcast", "steps.minutes", "x", PathError),
        ("broadcast", "steps.minutes", "author.x", PathError),
        ("broadcast", "author.age", "steps.x", PathError),
    ],
)
def test_what_is_no_source_or_target_is_one_error(operation, source, target, kind):
    with pytest.raises(kind) as caught:
        getattr(xt.struct, operation)(vector(PLAIN), source, target)
    for part in ("path", "expected", "received", "fix"):
        assert getattr(caught.value, part)


def test_a_root_that_is_not_records_is_an_error():
    with pytest.raises(ExtensorError, match="StructuredTensor"):
        xt.struct.promote({"a": [1]}, "a", "b")
    with pytest.raises(FieldError):
        xt.struct.reroot(vector(PLAIN), "id")
    with pytest.raises(FieldError):
        xt.struct.reroot(vector(PLAIN), "steps", index="minutes")


def test_an_argument_that_is_no_mapping_is_an_error():
    steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    rows = xt.RaggedStructuredTensor.from_row_lengths(steps, [2, 1])
    records = xt.DenseStructuredTensor([2], {"steps": rows, "x": [1, 2]})
    for call in (
        lambda: xt.struct.promote_and_broadcast(records, ["x"], "steps"),
        lambda: xt.struct.cartesian(records, ["steps", "steps"], "pairs"),
        lambda: xt.struct.rename(records, ["x"]),
        lambda: xt.struct.cast(records, "x"),
        lambda: xt.struct.zip([rows]),
        lambda: rows.to_dense(default_values=["minutes"]),
    ):
        with pytest.raises(xt.errors.DTypeError, match=r"expected a mapping .* Write \{"):
            call()


def test_no_records_lie_above_the_root():
    with pytest.raises(FieldError, match=r"xt\.struct\.broadcast"):
        xt.struct.promote(vector(PLAIN), (), "x")
