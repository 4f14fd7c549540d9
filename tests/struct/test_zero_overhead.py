"""Functions of records run the ops that the same functions of bare tensors run, and no other."""

import collections
from dataclasses import dataclass
from typing import Any

import pytest
import tensorflow as tf

import extensor as xt

Dense, Ragged, Masked = xt.DenseStructuredTensor, xt.RaggedStructuredTensor, xt.types.MaskedTensor
S = xt.struct

POINTS = Dense([4], {"x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 4]})
STEPS = Ragged.from_row_splits(
    Dense([3], {"minutes": [5.0, 20, 8], "grams": [1.0, 2, 3]}), [0, 2, 2, 3]
)
TAGS = Dense([3], {"id": [1, 2, 3], "tags": tf.ragged.constant([[1, 2], [], [3]])})
RECIPES = TAGS.with_updates(steps=STEPS)
DEEP = Dense([3], {"way": Ragged.from_row_splits(Dense([3], {"steps": STEPS}), [0, 1, 1, 3])})
PRICES = Dense([4], {"price": Masked([1.0, 2, 3, 4], [True, False, True, True])})
WEIGHTS = Ragged.from_row_splits(PRICES, [0, 1, 4])

INT = tf.TensorSpec([], tf.int32)
INTS = tf.TensorSpec([None], tf.int32)
BOOLS = tf.TensorSpec([None], tf.bool)


def plain(records: Any) -> Any:
    """Returns records as a dict of tensors; ragged ones as a pair of a dict and row splits."""
    if isinstance(records, Ragged):
        return plain(records.values), records.row_splits
    if isinstance(records, Dense):
        return {name: plain(records.field_value((name,))) for name in records.field_names()}
    return (records.values, records.mask) if isinstance(records, Masked) else records


def rows(values: Any, splits: Any) -> Any:
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def each(op: Any) -> Any:
    return lambda fields, *args: {name: op(value, *args) for name, value in fields.items()}


def in_rows(op: Any) -> Any:
    """Returns a function that applies an op to each field of ragged records."""
    return lambda ragged, *args: {n: op(rows(v, ragged[1]), *args) for n, v in ragged[0].items()}


def lengths(splits: Any) -> Any:
    return splits[1:] - splits[:-1]


def promoted(deep: Any) -> Any:
    (way, outer) = deep["way"]
    (steps, inner) = way["steps"]
    return rows(steps["minutes"], tf.gather(inner, outer))


def row(ragged: Any, i: Any) -> Any:
    fields, splits = ragged
    start, end = splits[i], splits[i + 1]
    return {name: value[start:end] for name, value in fields.items()}


def filtered(recipes: Any) -> Any:
    fields, splits = recipes["steps"]
    keep = fields["minutes"] > 5
    before = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(tf.cast(keep, tf.int64))], 0)
    kept = tf.where(keep)[:, 0]
    return {n: tf.gather(v, kept) for n, v in fields.items()}, tf.gather(before, splits)


def sliced(ragged: Any) -> Any:
    fields, splits = ragged
    splits = splits[1:3]
    start, end = splits[0], splits[-1]
    return {name: value[start:end] for name, value in fields.items()}, splits - splits[0]


@dataclass
class Case:
    """A function of records, and the same function of their tensors.

    Attributes:
        ours: The function of the records and the other arguments.
        by_hand: The function of `plain(records)` and the other arguments.
        records: The records, with static sizes; they are unknown when the functions are traced.
        args: The specs of the other arguments.
        fewer: Whether ours runs fewer ops, because fields share what depends on the rows only.
        fixed: Whether the functions are traced with static sizes.
    """

    ours: Any
    by_hand: Any
    records: Any
    args: tuple[Any, ...] = ()
    fewer: bool = False
    fixed: bool = False


CASES = {
    "math on a field": Case(
        lambda r: r.with_updates(z=r["x"] * 2 + r["y"]),
        lambda d: {**d, "z": d["x"] * 2 + d["y"]}, POINTS,
    ),
    "a field of a field": Case(
        lambda r: r["steps.minutes"] * 2,
        lambda d: rows(d["steps"][0]["minutes"], d["steps"][1]) * 2, RECIPES,
    ),
    "a ragged reduction": Case(
        lambda r: r.with_updates(total=tf.reduce_sum(r["steps.minutes"], 1)),
        lambda d: {**d, "t": tf.reduce_sum(rows(d["steps"][0]["minutes"], d["steps"][1]), 1)},
        RECIPES,
    ),
    "with_updates of an inner field": Case(
        lambda r: r.with_updates({"steps.minutes": r["steps.minutes"].with_values(
            r["steps.minutes"].values + 1)}),
        lambda d: d["steps"][0]["minutes"] + 1, RECIPES,
    ),
    "promote": Case(
        lambda r: S.promote(r, "way.steps.minutes", "minutes"), promoted, DEEP,
    ),
    "broadcast": Case(
        lambda r: S.broadcast(r, "id", "steps.id"),
        lambda d: tf.repeat(d["id"], lengths(d["steps"][1]), axis=0), RECIPES,
    ),
    "apply": Case(
        lambda r: S.apply(r, lambda a, b: a - b, ["steps.minutes", "steps.grams"], "steps.d"),
        lambda d: rows(d["steps"][0]["minutes"], d["steps"][1])
        - rows(d["steps"][0]["grams"], d["steps"][1]), RECIPES,
    ),
    "map_values": Case(
        lambda r: S.map_values(r, lambda x: x * 2, "tags"),
        lambda d: d["tags"].with_values(d["tags"].values * 2), TAGS,
    ),
    "filter_by": Case(
        lambda r: S.filter_by(r, "steps", r["steps.minutes"] > 5), filtered, RECIPES,
    ),
    "num": Case(
        lambda r: S.num(r, "steps", "n"), lambda d: lengths(d["steps"][1]), RECIPES,
    ),
    "slice": Case(
        lambda r: S.slice(r, "tags", stop=1), lambda d: d["tags"][:, :1], TAGS, fewer=True,
    ),
    "explode with one other field": Case(
        lambda r: S.explode(r.with_only("id", "tags"), "tags"),
        lambda d: tf.repeat(d["id"], lengths(d["tags"].row_splits), axis=0), TAGS,
    ),
    "explode": Case(
        lambda r: S.explode(r.with_only("id", "other", "tags"), "tags"),
        lambda d: {n: tf.repeat(d[n], lengths(d["tags"].row_splits), axis=0)
                   for n in ("id", "other")},
        TAGS.with_updates(other=[1, 2, 3]), fewer=True,
    ),
    "rename": Case(lambda r: S.rename(r, {"steps.minutes": "m"}), lambda d: d, RECIPES),
    "cast": Case(
        lambda r: S.cast(r, {"steps.minutes": tf.int32}),
        lambda d: tf.cast(d["steps"][0]["minutes"], tf.int32), RECIPES,
    ),
    "the first record": Case(lambda r: r[0], each(lambda v: v[0]), POINTS),
    "the last record": Case(lambda r: r[-1], each(lambda v: v[-1]), POINTS),
    "a record": Case(lambda r, i: r[i], each(lambda v, i: v[i]), POINTS, (INT,)),
    "a record with a list": Case(
        lambda r, i: r[i], each(lambda v, i: v[i]), TAGS, (INT,), fewer=True,
    ),
    "the first list of records": Case(lambda r: r[0], lambda d: row(d, 0), STEPS, fewer=True),
    "a list of records": Case(
        lambda r, i: r[i], in_rows(lambda v, i: v[i]), STEPS, (INT,), fewer=True,
    ),
    "a slice": Case(lambda r: r[1:3], each(lambda v: v[1:3]), POINTS),
    "a slice with a step": Case(lambda r: r[::-1], each(lambda v: v[::-1]), POINTS),
    "a slice of lists": Case(lambda r: r[1:3], each(lambda v: v[1:3]), TAGS),
    "a slice of lists of records": Case(lambda r: r[1:2], sliced, STEPS, fixed=True),
    "a slice of unknown lists of records": Case(
        lambda r: r[1:2], in_rows(lambda v: v[1:2]), STEPS, fewer=True,
    ),
    "a mask": Case(
        lambda r, mask: r[mask], each(tf.boolean_mask), POINTS, (BOOLS,), fewer=True,
    ),
    "tf.gather": Case(tf.gather, each(tf.gather), POINTS, (INTS,)),
    "tf.gather of lists": Case(tf.gather, each(tf.gather), TAGS, (INTS,)),
    "tf.gather of lists of records": Case(tf.gather, in_rows(tf.gather), STEPS, (INTS,)),
    "tf.gather of deep lists": Case(
        tf.gather,
        lambda d, i: [tf.gather(rows(rows(v, d["way"][0]["steps"][1]), d["way"][1]), i)
                      for v in d["way"][0]["steps"][0].values()],
        DEEP, (INTS,),
    ),
    "tf.concat": Case(
        lambda r: tf.concat([r, r], 0), each(lambda v: tf.concat([v, v], 0)), POINTS,
    ),
    "tf.concat of lists": Case(
        lambda r: tf.concat([r, r], 0), each(lambda v: tf.concat([v, v], 0)), TAGS,
    ),
    "tf.concat of lists of records": Case(
        lambda r: tf.concat([r, r], 0), in_rows(lambda v: tf.concat([v, v], 0)), STEPS,
        fewer=True,
    ),
    "tf.stack": Case(lambda r: tf.stack([r, r]), each(lambda v: tf.stack([v, v])), POINTS),
    "tf.expand_dims": Case(
        lambda r: tf.expand_dims(r, 1), each(lambda v: tf.expand_dims(v, 1)), POINTS,
    ),
    "tf.reverse": Case(lambda r: tf.reverse(r, [0]), each(lambda v: tf.reverse(v, [0])), POINTS),
    "tf.where": Case(
        lambda r, c: tf.where(c, r, r), lambda d, c: each(lambda v: tf.where(c, v, v))(d),
        POINTS, (BOOLS,),
    ),
    "tf.split": Case(lambda r: tf.split(r, 2), each(lambda v: tf.split(v, 2)), POINTS),
    "tf.zeros_like": Case(tf.zeros_like, each(tf.zeros_like), POINTS),
    "tf.repeat": Case(
        lambda r: tf.repeat(r, 2, axis=0), each(lambda v: tf.repeat(v, 2, axis=0)), POINTS,
        fewer=True,
    ),
    "masked arithmetic": Case(
        lambda r: r.with_updates(price=r["price"] * 2.0 + 1.0),
        lambda d: (d["price"][0] * 2.0 + 1.0, d["price"][1]), PRICES,
    ),
    "fill_null": Case(
        lambda r: S.fill_null(r, "price", 0.0),
        lambda d: tf.where(d["price"][1], d["price"][0], 0.0), PRICES,
    ),
    "masked lists": Case(
        lambda r: r["price"], lambda d: [rows(v, d[1]) for v in d[0]["price"]], WEIGHTS,
    ),
}  # fmt: skip


def of_unknown_size(spec: Any) -> Any:
    """Returns a spec of a value with an unknown number of rows."""
    return xt.authoring.stacked_spec(xt.authoring.unstacked_spec(spec, "records"), None, "records")


def flat_specs(records: Any, fixed: bool) -> Any:
    if isinstance(records, tuple):
        return tuple(flat_specs(part, fixed) for part in records)
    if isinstance(records, dict):
        return {name: flat_specs(part, fixed) for name, part in records.items()}
    spec = tf.type_spec_from_value(records)
    return spec if fixed else of_unknown_size(spec)


def ops(function: Any, *specs: Any) -> collections.Counter:
    """Returns how often each op is in the graph of a function, and in those that it calls."""
    traced = tf.function(function, autograph=False).get_concrete_function(*specs)
    graph = traced.graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    # The signature: one placeholder for each component, one identity for each output.
    return collections.Counter(n.op for n in nodes if n.op not in ("Placeholder", "Identity"))


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", CASES)
def test_the_ops_are_those_of_bare_tensors(name):
    case = CASES[name]
    spec = xt.spec_of(case.records)
    ours = ops(case.ours, spec if case.fixed else of_unknown_size(spec), *case.args)
    by_hand = ops(case.by_hand, flat_specs(plain(case.records), case.fixed), *case.args)
    if case.fewer:
        assert ours.total() <= by_hand.total(), (ours - by_hand, by_hand - ours)
    else:
        assert ours == by_hand


def ops_in(function: Any) -> collections.Counter[str]:
    """Returns the ops of a function and of all functions that it calls, counted by type."""
    graph = tf.function(function).get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    return collections.Counter(node.op for node in nodes)


@pytest.mark.whole("traces many functions")
def test_a_dataset_of_records_runs_the_ops_of_a_dataset_of_dicts():
    def tensors(i: Any) -> dict[str, Any]:
        return {"id": i, "emb": tf.fill([8], i), "age": i + 1}

    def records(i: Any) -> Any:
        fields = tensors(i)
        author = Dense([], {"age": fields.pop("age")})
        return Dense([], {**fields, "author": author})

    def ages(make: Any, age: Any) -> Any:
        batches = tf.data.Dataset.range(10).map(make).batch(4)
        return batches.map(age).reduce(tf.constant(0, tf.int64), lambda a, b: a + tf.reduce_sum(b))

    ours = lambda: ages(records, lambda batch: batch["author.age"])  # noqa: E731
    peer = lambda: ages(tensors, lambda batch: batch["age"])  # noqa: E731
    assert ours() == peer() == 55
    assert ops_in(ours) == ops_in(peer)
    assert ops_in(ours)["MapDataset"] == 2
