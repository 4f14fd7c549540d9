"""Operations on paths of unions, and gradients through operations on paths."""

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, UnsupportedTypeError

Dense, Ragged, Union = xt.DenseStructuredTensor, xt.RaggedStructuredTensor, xt.types.UnionTensor
S = xt.struct

EVENTS = Ragged.from_row_splits(
    Dense([3], {"n": [1, 2, 3], "what": Union.from_values([1.5, "a", 2.5])}), [0, 2, 2, 3]
)
USERS = Dense([3], {"key": Union.from_values(["x", 7, "y"]), "events": EVENTS})
PLAIN = [
    {"key": b"x", "events": [{"n": 1, "what": 1.5}, {"n": 2, "what": b"a"}]},
    {"key": 7, "events": []},
    {"key": b"y", "events": [{"n": 3, "what": 2.5}]},
]


def whats(user):
    return [event["what"] for event in user["events"]]


def promoted(users):
    return S.promote(users, "events.what", "all")


CASES = {
    "promote": (promoted, lambda u: {**u, "all": whats(u)}),
    "broadcast": (
        lambda users: S.broadcast(users, "key", "events.key"),
        lambda u: {**u, "events": [{**e, "key": u["key"]} for e in u["events"]]},
    ),
    "filter_by": (
        lambda users: S.filter_by(users, "events", users["events.n"] > 1),
        lambda u: {**u, "events": [e for e in u["events"] if e["n"] > 1]},
    ),
    "filter_by, a list of unions": (
        lambda users: S.filter_by(promoted(users), "all", users["events.n"] > 1),
        lambda u: {**u, "all": [e["what"] for e in u["events"] if e["n"] > 1]},
    ),
    "slice": (
        lambda users: S.slice(promoted(users), "all", stop=1),
        lambda u: {**u, "all": whats(u)[:1]},
    ),
    "num": (
        lambda users: S.num(promoted(users), "all", "n").without("all"),
        lambda u: {**u, "n": len(u["events"])},
    ),
    "map_values": (lambda users: S.map_values(users, lambda x: x, "events.what"), lambda u: u),
    "apply": (
        lambda users: S.apply(
            users,
            lambda what: what.match({"float": lambda x: x * 2}, default=lambda rows: 0.0),
            "events.what",
            "events.twice",
        ),
        lambda u: {
            **u,
            "events": [
                {**e, "twice": e["what"] * 2 if e["what"] != b"a" else 0} for e in u["events"]
            ],
        },
    ),
    "sort by another field": (
        lambda users: S.sort(users, "events", by="n", descending=True),
        lambda u: {**u, "events": u["events"][::-1]},
    ),
    "firsts": (
        lambda users: S.firsts(promoted(users), "all"),
        lambda u: {**u, "all": next(iter(whats(u)), None)},
    ),
    "pad": (
        lambda users: S.pad(users, "events", 2),
        lambda u: {**u, "events": (u["events"] + [None, None])[:2]},
    ),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", CASES)
def test_a_union_is_a_field_like_others(name):
    operation, expected = CASES[name]
    wanted = [expected(user) for user in PLAIN]
    assert operation(USERS).to_py() == wanted
    assert tf.function(operation, autograph=False)(USERS).to_py() == wanted


def test_explode_repeats_and_lists_unions():
    wanted = [{"key": u["key"], "events": event} for u in PLAIN for event in u["events"]]
    assert S.explode(USERS, "events").to_py() == wanted
    items = S.explode(promoted(USERS), "all")
    assert items["all"].to_py() == [what for u in PLAIN for what in whats(u)]


def test_lists_of_unions_become_one_list():
    values = [[[1, "a"], []], [["b"]], []]
    rows = [{"s": [{"l": items} for items in lists]} for lists in values]
    records = S.constant(rows, conflicts="union")
    flat = [[x for items in lists for x in items] for lists in values]
    for promote in (S.promote, tf.function(S.promote, autograph=False)):
        found = promote(records, "s.l", "all")["all"].to_py()
        assert found == [[x.encode() if isinstance(x, str) else x for x in row] for row in flat]


def test_a_union_of_a_single_record_is_broadcast():
    assert S.broadcast(USERS[0], "key", "events.key")["events.key"].to_py() == [b"x", b"x"]


def test_what_a_union_cannot_do_is_an_error_with_its_name():
    with pytest.raises(DTypeError, match=r"events\.what: .*UnionTensor"):
        S.sort(USERS, "events", by="what")
    with pytest.raises(UnsupportedTypeError, match="match"):
        S.cast(USERS, {"events.what": tf.int32})


GRADIENTS = {
    "promote": (lambda st: S.promote(st, "s.x", "y")["y"], [2.0, 4.0, 6.0]),
    "broadcast": (lambda st: S.broadcast(st, "w", "s.w")["s.w"] * st["s.x"], [2.0, 4.0, 54.0]),
    "apply": (lambda st: S.apply(st, lambda x: x * 2, "s.x", "s.y")["s.y"], [8.0, 16.0, 24.0]),
    "map_values": (lambda st: S.map_values(st, lambda x: x * 2, "s.x")["s.x"], [8.0, 16.0, 24.0]),
    "filter_by": (lambda st: S.filter_by(st, "s", st["s.x"] > 1)["s.x"], [0.0, 4.0, 6.0]),
    "explode": (lambda st: S.explode(st, "s")["s.x"], [2.0, 4.0, 6.0]),
    "gather": (lambda st: tf.gather(st["s"], [1, 1, 0])["x"], [2.0, 4.0, 12.0]),
    "slice": (lambda st: st["s"][1:]["x"], [0.0, 0.0, 6.0]),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
def test_gradients_flow_through(name, compiled):
    operation, expected = GRADIENTS[name]
    x = tf.Variable([1.0, 2.0, 3.0])

    def gradient():
        with tf.GradientTape() as tape:
            steps = Ragged.from_row_splits(Dense([3], {"x": tf.convert_to_tensor(x)}), [0, 2, 3])
            result = operation(Dense([2], {"w": [1.0, 3.0], "s": steps}))
            flat = getattr(result, "flat_values", result)
            total = tf.reduce_sum(flat**2)
        return tf.convert_to_tensor(tape.gradient(total, x))

    assert (tf.function(gradient) if compiled else gradient)().numpy().tolist() == expected


MIXED = [{"l": [1, "a", None], "k": 1}, {"l": [], "k": None}, {"l": None, "k": 3}]


def test_null_items_stay_where_null_lists_are_filled_or_left_out():
    records = xt.struct.constant(MIXED, conflicts="union", nulls="mask")
    filled = S.fill_null(records, "l", ["q", 5])
    assert filled.to_py() == [*MIXED[:2], {"l": ["q", 5], "k": 3}]
    dropped = S.drop_null(records, (), by="l")
    assert dropped.to_py() == MIXED[:2]
    for each in (filled, dropped):
        assert xt.to_arrow(each).to_pylist() == each.to_py()
    everywhere = S.fill_null(records, "l", "q")
    assert [row["l"] for row in everywhere.to_py()] == [[1, "a", "q"], [], []]


def test_lists_of_unions_that_may_be_null_are_lists_in_numpy():
    records = xt.struct.constant(MIXED, conflicts="union", nulls="mask")
    assert records.numpy()["l"].tolist() == [[1, b"a", None], [], None]


def test_a_union_of_other_variants_has_another_arrow_type():
    def union(names, times):
        codes, offsets = pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32())
        array = pa.UnionArray.from_dense(codes, offsets, [times, pa.array(["a"])], names)
        return xt.from_arrow(pa.table({"u": array}))

    one = union(["when", "text"], pa.array([1, 2], pa.timestamp("s")))
    other = union(["n", "text"], pa.array([1, 2]))
    updated = one.with_updates(u=other["u"])
    assert [row["u"] for row in updated.to_py(text=True)] == [1, "a", 2]
    assert xt.spec_of(updated) == xt.spec_of(other)
