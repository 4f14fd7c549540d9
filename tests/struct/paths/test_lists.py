"""Lists: how long they are, where their items are, which items stay; and computed fields."""

import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor.errors import DTypeError, FieldError, RowError, StructureError
from tests.struct.paths.trees import ODD, check, recipes, vector

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor
S = xt.struct


def each_step(change):
    return lambda r: {**r, "steps": [{**s, **change(s)} for s in r["steps"]]}


CASES = {
    "num": (lambda t: S.num(t, "steps", "n"), lambda r: {**r, "n": len(r["steps"])}),
    "num, inner": (
        lambda t: S.num(t, "steps.tools", "steps.n"), each_step(lambda s: {"n": len(s["tools"])})
    ),
    "num of numbers": (lambda t: S.num(t, "sizes", "n"), lambda r: {**r, "n": len(r["sizes"])}),
    "local_index": (
        lambda t: S.local_index(t, "sizes", "at"),
        lambda r: {**r, "at": list(range(len(r["sizes"])))},
    ),
    "index in the items": (
        lambda t: S.local_index(t, "steps", "steps.at"),
        lambda r: {**r, "steps": [{**s, "at": i} for i, s in enumerate(r["steps"])]},
    ),
    "index from the end": (
        lambda t: S.local_index(t, "steps.tags", "steps.at", from_end=True),
        each_step(lambda s: {"at": list(range(-len(s["tags"]), 0))}),
    ),
    "slice to one": (
        lambda t: S.slice(t, "steps", stop=1), lambda r: {**r, "steps": r["steps"][:1]}
    ),
    "slice, inner": (
        lambda t: S.slice(t, "steps.tools", stop=2),
        each_step(lambda s: {"tools": s["tools"][:2]}),
    ),
    "slice": (
        lambda t: S.slice(t, "steps.tags", 1, None),
        each_step(lambda s: {"tags": s["tags"][1:]}),
    ),
    "slice with a step": (
        lambda t: S.slice(t, "steps", step=-1), lambda r: {**r, "steps": r["steps"][::-1]}
    ),
    "filter": (
        lambda t: S.filter_by(t, "steps", t["steps.minutes"] > 0),
        lambda r: {**r, "steps": [s for s in r["steps"] if s["minutes"] > 0]},
    ),
    "filter, inner": (
        lambda t: S.filter_by(t, "steps.tools", t["steps.tools.grams"] > 0.0),
        each_step(lambda s: {"tools": [t for t in s["tools"] if t["grams"] > 0]}),
    ),
    "filter by a path": (
        lambda t: S.filter_by(
            S.apply(t, lambda x: x > 0, "sizes", "big"), "sizes", "big").without("big"),
        lambda r: {**r, "sizes": [x for x in r["sizes"] if x > 0]},
    ),
    "has": (lambda t: S.has(t, "sizes", "h"), lambda r: {**r, "h": bool(r["sizes"])}),
    "has, of a value": (lambda t: S.has(t, "id", "h"), lambda r: {**r, "h": True}),
    "apply": (
        lambda t: S.apply(t, lambda a, b: a + b, ["id", "author.age"], "sum"),
        lambda r: {**r, "sum": r["id"] + r["author"]["age"]},
    ),
    "apply, inner": (
        lambda t: S.apply(t, lambda m: m * 2, ["steps.minutes"], "steps.twice"),
        each_step(lambda s: {"twice": s["minutes"] * 2}),
    ),
    "map_values": (
        lambda t: S.map_values(t, lambda x: x + 1, "steps.tools.grams"),
        each_step(lambda s: {"tools": [{"grams": t["grams"] + 1} for t in s["tools"]]}),
    ),
    "rename": (
        lambda t: S.rename(t, {"steps": "ways", "steps.tags": "words", "id": "number"}),
        lambda r: {
            **{name: r[name] for name in ODD},
            "number": r["id"], "author": r["author"], "sizes": r["sizes"],
            "ways": [
                {**{name: s[name] for name in ODD},
                 "minutes": s["minutes"], "words": s["tags"], "tools": s["tools"]}
                for s in r["steps"]
            ],
        },
    ),
    "cast": (
        lambda t: S.cast(t, {"steps.minutes": tf.float32, "id": tf.int64}),
        each_step(lambda s: {"minutes": float(s["minutes"])}),
    ),
    "explode, inner": (
        lambda t: S.explode(t, "steps.tools"),
        lambda r: {
            **r, "steps": [{**s, "tools": x} for s in r["steps"] for x in s["tools"]]
        },
    ),
    "explode into a list": (
        lambda t: S.explode(t, "author.books"),
        lambda r: {**r, "author": [{**r["author"], "books": b} for b in r["author"]["books"]]},
    ),
    "unflatten": (
        lambda t: S.unflatten(t, "steps.tags", S.local_index(t, "steps.tags") * 0 + 1),
        each_step(lambda s: {"tags": [[x] for x in s["tags"]]}),
    ),
    "flatten": (
        lambda t: S.flatten(S.apply(t, lambda x: x, "steps.tags", "w"), "w"),
        lambda r: {**r, "w": [x for s in r["steps"] for x in s["tags"]]},
    ),
    "sort": (lambda t: S.sort(t, "sizes"), lambda r: {**r, "sizes": sorted(r["sizes"])}),
    "sort by": (
        lambda t: S.sort(t, "steps", by="minutes", descending=True),
        lambda r: {**r, "steps": sorted(r["steps"], key=lambda s: -s["minutes"])},
    ),
    "sort strings": (
        lambda t: S.sort(t, "steps.tags"), each_step(lambda s: {"tags": sorted(s["tags"])})
    ),
    "sort strings down": (
        lambda t: S.sort(t, "steps.tags", descending=True),
        each_step(lambda s: {"tags": sorted(s["tags"], reverse=True)}),
    ),
    "argsort": (
        lambda t: S.argsort(t, "sizes", target="order"),
        lambda r: {
            **r, "order": sorted(range(len(r["sizes"])), key=lambda i: r["sizes"][i])
        },
    ),
    "unique": (
        lambda t: S.unique(t, "steps.tags"),
        each_step(lambda s: {"tags": list(dict.fromkeys(s["tags"]))}),
    ),
    "unique by": (
        lambda t: S.unique(t, "steps", by="minutes"),
        lambda r: {
            **r, "steps": list({s["minutes"]: s for s in reversed(r["steps"])}.values())
            and [s for i, s in enumerate(r["steps"])
                 if s["minutes"] not in [x["minutes"] for x in r["steps"][:i]]],
        },
    ),
    "argmax": (
        lambda t: S.argmax(t, "steps", by="minutes", target="top"),
        lambda r: {**r, "top": max(range(len(r["steps"])), default=None,
                                   key=lambda i: r["steps"][i]["minutes"])},
    ),
    "argmin": (
        lambda t: S.argmin(t, "sizes", target="low"),
        lambda r: {**r, "low": min(range(len(r["sizes"])), default=None,
                                   key=lambda i: r["sizes"][i])},
    ),
    "group_by": (
        lambda t: S.group_by(t, "steps", by="minutes"),
        lambda r: {**r, "steps": [
            {"minutes": k, "items": [s for s in r["steps"] if s["minutes"] == k]}
            for k in dict.fromkeys(s["minutes"] for s in r["steps"])
        ]},
    ),
    "cartesian": (
        lambda t: S.cartesian(t, {"a": "sizes", "b": "steps", "c": "sizes"}, "all"),
        lambda r: {**r, "all": [
            {"a": a, "b": b, "c": c} for a in r["sizes"] for b in r["steps"] for c in r["sizes"]
        ]},
    ),
    "combinations": (
        lambda t: S.combinations(t, "sizes", "pairs"),
        lambda r: {**r, "pairs": [
            {"0": a, "1": b} for i, a in enumerate(r["sizes"]) for b in r["sizes"][i + 1:]
        ]},
    ),
    "combinations of three": (
        lambda t: S.combinations(t, "sizes", "three", 3, ["a", "b", "c"]),
        lambda r: {**r, "three": [
            {"a": a, "b": b, "c": c} for i, a in enumerate(r["sizes"])
            for j, b in enumerate(r["sizes"]) for c in r["sizes"][j + 1:] if i < j
        ]},
    ),
    "firsts": (
        lambda t: S.firsts(t, "sizes", "first"),
        lambda r: {**r, "first": r["sizes"][0] if r["sizes"] else None},
    ),
    "pad": (
        lambda t: S.pad(t, "sizes", 2, value=-9),
        lambda r: {**r, "sizes": r["sizes"] + [-9] * (2 - len(r["sizes"]))},
    ),
    "pad and clip": (
        lambda t: S.pad(t, "sizes", 2, value=-9, clip=True),
        lambda r: {**r, "sizes": (r["sizes"] + [-9, -9])[:2]},
    ),
    "pad with nulls": (
        lambda t: S.pad(t, "sizes", 2),
        lambda r: {**r, "sizes": r["sizes"] + [None] * (2 - len(r["sizes"]))},
    ),
    "singletons": (
        lambda t: S.singletons(t, "id"), lambda r: {**r, "id": [r["id"]]}
    ),
    "fill_null": (
        lambda t: S.fill_null(S.firsts(t, "sizes"), "sizes", 5),
        lambda r: {**r, "sizes": (r["sizes"] + [5])[0]},
    ),
    "drop_null": (
        lambda t: S.drop_null(S.pad(t, "sizes", 3), "sizes"), lambda r: r
    ),
    "is_null": (
        lambda t: S.is_null(S.firsts(t, "sizes"), "sizes", "none").without("sizes"),
        lambda r: {**{k: r[k] for k in r if k != "sizes"}, "none": not r["sizes"]},
    ),
    "singletons of nulls": (
        lambda t: S.singletons(S.firsts(t, "sizes"), "sizes"),
        lambda r: {**r, "sizes": r["sizes"][:1]},
    ),
}  # fmt: skip


@pytest.mark.whole("draws many values")
@given(plain=recipes)
def test_operations_are_those_of_plain_python(plain):
    check(plain, CASES)


def test_nan_is_sorted_last():
    records = Dense([1], {"x": [[2.0, float("nan"), 1.0]]})
    assert S.argsort(records, "x").numpy().tolist() == [[2, 0, 1]]
    assert S.argsort(records, "x", descending=True).numpy().tolist() == [[0, 2, 1]]


def test_the_records_themselves_are_a_list():
    records = Dense([3], {"x": [2, 1, 2]})
    assert S.sort(records, by="x")["x"].numpy().tolist() == [1, 2, 2]
    assert S.unique(records, by="x")["x"].numpy().tolist() == [2, 1]
    assert S.filter_by(records, (), records["x"] > 1)["x"].numpy().tolist() == [2, 2]
    assert S.num(records, ()).numpy() == 3
    assert S.slice(records, (), 1)["x"].numpy().tolist() == [1, 2]
    rows = Ragged.from_row_splits(records, [0, 2, 3])
    assert S.sort(rows, by="x", axis=-1)["x"].to_list() == [[1, 2], [2]]
    assert S.flatten(rows)["x"].numpy().tolist() == [2, 1, 2]


def test_a_mask_counts_a_null_as_false():
    records = Dense([3], {"x": [2, 1, 2]})
    mask = xt.types.MaskedTensor([True, True, False], [True, False, True])
    assert S.filter_by(records, (), mask)["x"].numpy().tolist() == [2]


def test_a_mask_may_be_nested_lists():
    records = Dense([3], {"x": tf.ragged.constant([[], [1], [2, 3]])})
    mask = [[], [True], [False, True]]
    assert S.filter_by(records, "x", mask)["x"].to_list() == [[], [1], [3]]
    assert S.filter_by(records[:1], "x", [[]])["x"].to_list() == [[]]
    square = Dense([2], {"x": [[1, 2], [3, 4]]})
    assert S.filter_by(square, "x", [[True, False], [True, True]])["x"].to_list() == [[1], [3, 4]]


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ([[2], [1]], r"x: expected lengths that add up .* other lengths for list ] \[0\]"),
        ([[1], [2], []], r"x: expected lengths for ] \[2\] \[ lists, got lengths for ] \[3\]"),
        ([[3, -2], [2]], r"counts: expected splits that never decrease"),
    ],
)
def test_lengths_that_do_not_fit_fail_when_a_graph_runs(counts, text):
    records = Dense([2], {"x": tf.ragged.constant([[1], [2, 3]])})
    spec = tf.RaggedTensorSpec([None, None], tf.int32)
    cut = tf.function(lambda c: S.unflatten(records, "x", c)["x"], input_signature=[spec])
    assert cut(tf.ragged.constant([[1], [0, 2]])).to_list() == [[[1]], [[], [2, 3]]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        cut(tf.ragged.constant(counts))


def test_a_null_is_no_length_and_a_number_of_items_may_be_a_tensor():
    records = Dense([2], {"x": tf.ragged.constant([[1], [2, 3]])})
    with pytest.raises(xt.errors.NullError, match="counts: expected no nulls, got 1 null"):
        S.unflatten(records, (), xt.types.MaskedTensor([2, 0], [True, False]))
    pad = tf.function(lambda n: S.pad(records, "x", n, value=0)["x"])
    assert pad(tf.constant(2)).to_list() == [[1, 0], [2, 3]]


RECORDS = [
    {**ODD, "id": 1, "author": {"age": 2, "books": []}, "sizes": [3],
     "steps": [{**ODD, "minutes": 3, "tags": [], "tools": [{"grams": 0.5}]}]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        (lambda t: S.num(t, "nope"), FieldError),
        (lambda t: S.num(t, "id"), StructureError),
        (lambda t: S.num(t, "sizes", "id"), FieldError),
        (lambda t: S.num(t, "sizes", "id.x"), FieldError),
        (lambda t: S.filter_by(t, "sizes", t["sizes"]), DTypeError),
        (lambda t: S.filter_by(t, "sizes", t["id"] > 0), StructureError),
        (lambda t: S.filter_by(t, "sizes", tf.ragged.constant([[True, False]])), StructureError),
        (lambda t: S.filter_by(t, "sizes", "nope"), FieldError),
        (lambda t: S.flatten(t, "sizes"), StructureError),
        (lambda t: S.explode(t, ()), StructureError),
        (lambda t: S.explode(t, "id"), StructureError),
        (lambda t: S.sort(t, "steps"), DTypeError),
        (lambda t: S.sort(t, "steps", by="tags"), DTypeError),
        (lambda t: S.sort(t, "steps", by="nope"), FieldError),
        (lambda t: S.sort(t, "sizes", by="x"), DTypeError),
        (lambda t: S.sort(t, by="id", axis=1), RowError),
        (lambda t: S.unflatten(t, "sizes", [[5]]), StructureError),
        (lambda t: S.unflatten(t, "sizes", [1]), StructureError),
        (lambda t: S.cartesian(t, {"a": "sizes", "b": "steps.tags"}, "x"), StructureError),
        (lambda t: S.cartesian(t, {}, "x"), StructureError),
        (lambda t: S.combinations(t, "sizes", "x", 2, ["a"]), StructureError),
        (lambda t: S.group_by(t, "steps", "minutes", "minutes"), FieldError),
        (lambda t: S.rename(t, {"id": "sizes"}), FieldError),
        (lambda t: S.rename(t, {"nope": "x"}), FieldError),
        (lambda t: S.cast(t, {"steps": tf.int32}), DTypeError),
        (lambda t: S.map_values(t, lambda x: x[:0], "sizes"), StructureError),
        (lambda t: S.apply(t, lambda x: x[:0], "sizes", "x"), StructureError),
        (lambda t: S.pad(t, "steps", 2, value=0), StructureError),
        (lambda t: S.pad(t, "sizes", -2), StructureError),
        (lambda t: S.pad(t, "sizes", 1.5), DTypeError),
        (lambda t: S.pad(t, "sizes", None), DTypeError),
        (lambda t: S.slice(t, "sizes", 0.5), DTypeError),
        (lambda t: S.slice(t, "sizes", stop=tf.constant(1.5)), DTypeError),
        (lambda t: S.unflatten(t, "sizes", [[1.9]]), DTypeError),
        (lambda t: S.cast(t, {"id": "nope"}), DTypeError),
        (lambda t: S.pad(S.cast(t, {"sizes": tf.uint64}), "sizes", 9, value=2**64), DTypeError),
        (lambda t: S.cast(t, {"id": tf.string}), DTypeError),
    ],
)
def test_what_does_not_fit_is_one_error(operation, kind):
    with pytest.raises(kind) as caught:
        operation(vector(RECORDS))
    for part in ("path", "expected", "received", "fix"):
        assert getattr(caught.value, part), part
