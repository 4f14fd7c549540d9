"""Operations at paths through nulls: of items, records and lists."""

import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor import Path
from extensor.errors import DTypeError, FieldError, NullError, StructureError
from tests.struct.paths.trees import ODD, nullable_recipes

S = xt.struct
Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor

PLAIN = [
    {"id": 1, "sizes": [3, None, 1], "steps": [{"m": 5, "l": [1, 2]}, None, {"m": 2, "l": None}]},
    {"id": 2, "sizes": [], "steps": None},
    {"id": 3, "sizes": [4], "steps": [{"m": 7, "l": []}]},
]


@pytest.fixture(scope="module")
def records():
    policy = {"sizes[*]": "mask", "steps": "mask", "steps[*]": "mask", "steps[*].l": "mask"}
    return S.constant(PLAIN, nulls=policy)


def each_step(change):
    def changed(r):
        steps = r["steps"] and [s and {**s, **change(s)} for s in r["steps"]]
        return {**r, "steps": steps}

    return changed


def null_last(items, key=lambda x: x, reverse=False):
    rest = sorted((x for x in items if x is not None), key=key, reverse=reverse)
    return rest + [None] * (len(items) - len(rest))


def best(choose, items):
    """The place of the largest or smallest item that is not null."""
    places = [i for i, x in enumerate(items) if x is not None]
    return choose(places, key=lambda i: items[i], default=None)


CASES = {
    "num": (
        lambda t: S.num(t, "steps", "n"),
        lambda r: {**r, "n": None if r["steps"] is None else len(r["steps"])},
    ),
    "num, inner": (
        lambda t: S.num(t, "steps.l", "steps.n"),
        each_step(lambda s: {"n": None if s["l"] is None else len(s["l"])}),
    ),
    "local_index": (
        lambda t: S.local_index(t, "steps", "at"),
        lambda r: {**r, "at": r["steps"] and list(range(len(r["steps"])))},
    ),
    "has": (lambda t: S.has(t, "steps", "h"), lambda r: {**r, "h": bool(r["steps"])}),
    "broadcast": (
        lambda t: S.broadcast(t, "id", "steps.id"),
        lambda r: each_step(lambda s: {"id": r["id"]})(r),
    ),
    "broadcast, inside": (
        lambda t: S.broadcast(t, "steps.m", "steps.again"), each_step(lambda s: {"again": s["m"]})
    ),
    "promote": (
        lambda t: S.promote(t, "steps.m", "all"),
        lambda r: {**r, "all": r["steps"] and [s and s["m"] for s in r["steps"]]},
    ),
    "promote lists": (
        lambda t: S.promote(t, "steps.l", "all"),
        lambda r: {**r, "all": r["steps"] and [
            x for s in r["steps"] if s and s["l"] for x in s["l"]]},
    ),
    "promote_and_broadcast": (
        lambda t: S.promote_and_broadcast(t, {"id": "id", "all": "sizes"}, "steps"),
        lambda r: each_step(lambda s: {"id": r["id"], "all": r["sizes"]})(r),
    ),
    "apply": (
        lambda t: S.apply(t, lambda m: m * 2, "steps.m", "steps.twice"),
        each_step(lambda s: {"twice": s["m"] * 2}),
    ),
    "rename": (
        lambda t: S.rename(t, {"steps.m": "minutes"}),
        lambda r: {**r, "steps": r["steps"] and [
            s and {"minutes": s["m"], **{n: x for n, x in s.items() if n != "m"}}
            for s in r["steps"]]},
    ),
    "slice": (
        lambda t: S.slice(t, "steps", stop=1),
        lambda r: {**r, "steps": r["steps"] and r["steps"][:1]},
    ),
    "firsts": (
        lambda t: S.firsts(t, "sizes"), lambda r: {**r, "sizes": (r["sizes"] or [None])[0]}
    ),
    "firsts of null lists": (
        lambda t: S.firsts(t, "steps"), lambda r: {**r, "steps": (r["steps"] or [None])[0]}
    ),
    "explode": (
        lambda t: S.explode(t, "sizes"), lambda r: [{**r, "sizes": x} for x in r["sizes"]]
    ),
    "explode null lists": (
        lambda t: S.explode(t, "steps"), lambda r: [{**r, "steps": x} for x in r["steps"] or []]
    ),
    "sort": (
        lambda t: S.sort(t, "sizes", descending=True),
        lambda r: {**r, "sizes": null_last(r["sizes"], reverse=True)},
    ),
    "sort records": (
        lambda t: S.sort(t, "steps", by="m"),
        lambda r: {**r, "steps": r["steps"] and null_last(r["steps"], lambda s: s["m"])},
    ),
    "argsort": (
        lambda t: S.argsort(t, "sizes", target="order"),
        lambda r: {**r, "order": sorted(
            range(len(r["sizes"])), key=lambda i: (r["sizes"][i] is None, r["sizes"][i] or 0))},
    ),
    "argmax": (
        lambda t: S.argmax(t, "steps", by="m", target="top"),
        lambda r: {**r, "top": best(max, [s and s["m"] for s in r["steps"] or []])},
    ),
    "argmin": (
        lambda t: S.argmin(t, "sizes", target="low"),
        lambda r: {**r, "low": best(min, r["sizes"])},
    ),
    "filter_by": (
        lambda t: S.filter_by(t, "steps", t["steps.m"] > 4),
        lambda r: {**r, "steps": r["steps"] and [s for s in r["steps"] if s and s["m"] > 4]},
    ),
    "drop_null": (
        lambda t: S.drop_null(t, "steps"),
        lambda r: {**r, "steps": r["steps"] and [s for s in r["steps"] if s]},
    ),
    "pad": (
        lambda t: S.pad(t, "sizes", 2), lambda r: {**r, "sizes": (r["sizes"] + [None] * 2)[
            : max(2, len(r["sizes"]))]},
    ),
    "pad by a value": (
        lambda t: S.pad(t, "sizes", 2, value=9),
        lambda r: {**r, "sizes": (r["sizes"] + [9] * 2)[: max(2, len(r["sizes"]))]},
    ),
    "pad null lists": (
        lambda t: S.pad(t, "steps", 2),
        lambda r: {**r, "steps": None if r["steps"] is None else (
            r["steps"] + [None, None])[: max(2, len(r["steps"]))]},
    ),
    "fill_null": (
        lambda t: S.fill_null(t, "sizes", 9),
        lambda r: {**r, "sizes": [9 if x is None else x for x in r["sizes"]]},
    ),
    "fill_null, lists": (
        lambda t: S.fill_null(t, "steps.l", [7, 8]),
        each_step(lambda s: {"l": [7, 8] if s["l"] is None else s["l"]}),
    ),
    "fill_null, lists of nullable records": (
        lambda t: S.fill_null(t, "steps", []), lambda r: {**r, "steps": r["steps"] or []}
    ),
    "fill_null, records": (
        lambda t: S.fill_null(S.fill_null(t, "steps", []), "steps", {"m": -1, "l": None}),
        lambda r: {**r, "steps": [s or {"m": -1, "l": None} for s in r["steps"] or []]},
    ),
    "cartesian": (
        lambda t: S.cartesian(t, {"a": "sizes", "b": "steps"}, "all").with_only("all.a"),
        lambda r: {"all": [{"a": a} for a in r["sizes"] for _ in r["steps"] or []]},
    ),
}  # fmt: skip


def results(records):
    """Returns what each case makes of records. In a graph it is one trace for all of them."""
    return {name: operation(records) for name, (operation, _) in CASES.items()}


@pytest.fixture(scope="module")
def results_in_a_graph(records):
    return tf.function(results, autograph=False)(records)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", CASES)
def test_operations_are_those_of_plain_python(name, records, results_in_a_graph):
    operation, expected = CASES[name]
    wanted = [expected(r) for r in PLAIN]
    if isinstance(wanted[0], list):
        wanted = [r for each in wanted for r in each]
    assert records.to_py() == PLAIN
    assert operation(records).to_py() == wanted
    assert results_in_a_graph[name].to_py() == wanted


POLICY = ["sizes[*]", "steps", "steps[*]", "steps[*].l"]
FULL = {**ODD, "id": 1, "sizes": [1], "steps": [{**ODD, "m": 1, "l": [1]}]}  # shows the types


def named(value):
    """Returns the fields of records in one order."""
    if isinstance(value, list):
        return [named(item) for item in value]
    return {n: named(value[n]) for n in sorted(value)} if isinstance(value, dict) else value


def with_odd_names(plain):
    odd = [f"steps[*].{Path(name)}" for name in ODD] + [str(Path(name)) for name in ODD]
    return S.constant(plain, nulls=dict.fromkeys([*POLICY, *odd], "mask"))


@pytest.fixture(scope="module")
def results_of_any_size():
    """Returns `results` as a function that is traced once, for records of any size."""
    a, b = (xt.spec_of(with_odd_names([FULL] * size)) for size in (1, 2))
    spec = a.most_specific_common_supertype([b])
    return tf.function(results, input_signature=[spec], autograph=False)


@pytest.mark.whole("draws many values")
@given(plain=nullable_recipes)
def test_operations_of_drawn_records_are_those_of_plain_python(results_of_any_size, plain):
    plain = [*plain, FULL]
    records = with_odd_names(plain)  # once for all operations
    in_a_graph = results_of_any_size(records)
    for name, (operation, expected) in CASES.items():
        if name == "fill_null, records":  # its value has no fields of odd names
            continue
        wanted = [expected(r) for r in plain]
        if isinstance(wanted[0], list):
            wanted = [r for each in wanted for r in each]
        assert named(operation(records).to_py()) == named(wanted), name
        assert named(in_a_graph[name].to_py()) == named(wanted), f"{name}, in a graph"


def test_what_is_hidden_in_null_lists_stays_hidden():
    lists = xt.types.MaskedTensor(tf.ragged.constant([[1, 2], [3]]), [True, False])
    hidden = Dense([2], {"l": lists, "n": [1, 2]})
    rows = Dense([1], {"r": Ragged.from_row_splits(hidden, [0, 2])})
    assert S.promote(rows, "r.l", "l")["l"].to_list() == [[1, 2]]
    assert S.promote(rows[0], "r.l", "l")["l"].numpy().tolist() == [1, 2]
    assert tf.function(S.promote)(rows, "r.l", "l")["l"].to_list() == [[1, 2]]
    assert S.explode(hidden, "l").to_py() == [{"n": 1, "l": 1}, {"n": 1, "l": 2}]
    assert S.explode(hidden[1], "l").to_py() == []
    assert S.num(hidden, "l").to_py() == [2, None]
    assert S.num(hidden[1], "l").to_py() is None


PAIRS = [{"steps": [{"m": 5, "l": [1]}, {"m": 20, "l": []}]}, {"steps": [{"m": 8, "l": [3, 4]}]}]
ADDED = {"m": -1, "l": [9]}


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("value", [ADDED, S.constant(ADDED)], ids=["dict", "record"])
@pytest.mark.parametrize("graph", [False, True])
def test_pad_and_fill_null_take_a_record(value, graph):
    recipes = S.constant(PAIRS)
    wanted = [{"steps": r["steps"] + [ADDED] * (3 - len(r["steps"]))} for r in PAIRS]
    call = tf.function(lambda f: f(), autograph=False) if graph else lambda f: f()
    assert call(lambda: S.pad(recipes, "steps", 3, value)).to_py() == wanted
    filled = call(lambda: S.fill_null(S.pad(recipes, "steps", 3), "steps", value))
    assert filled.to_py() == wanted
    assert call(lambda: S.pad(recipes[1], "steps", 3, value)).to_py() == wanted[1]
    single = recipes[1].with_updates(steps=xt.types.MaskedTensor(recipes[1]["steps"], [False]))
    assert call(lambda: S.fill_null(single, "steps", value)).to_py() == {"steps": [ADDED]}


@xt.extension_type
class Interval:
    low: tf.Tensor
    high: tf.Tensor


INTERVALS = xt.DenseStructuredTensorSpec(
    [None],
    {
        "steps": xt.RaggedStructuredTensorSpec(
            [None, None],
            xt.DenseStructuredTensorSpec(
                [None], {"t": Interval.Spec(tf.TensorSpec([None]), tf.TensorSpec([None]))}
            ),
        )
    },
)
LOW = {"low": 1.0, "high": 2.0}


@pytest.mark.parametrize("value", [LOW, Interval(1.0, 2.0)])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: tf.function(f, autograph=False)])
def test_declared_types_are_filled_by_a_value_or_a_dict(value, wrap):
    step = {"t": {"low": 5.0, "high": 6.0}}
    recipes = S.constant([{"steps": [step]}, {"steps": []}], INTERVALS)
    padded = wrap(lambda r: S.pad(r, "steps", 2))(recipes)
    assert S.is_null(padded, "steps").to_list() == [[False, True], [True, True]]
    assert S.is_null(wrap(lambda r: S.firsts(r, "steps"))(recipes), "steps").numpy().tolist() == [
        False, True
    ]  # fmt: skip
    filled = wrap(lambda r: S.fill_null(S.firsts(r, "steps"), "steps", {"t": value}))(recipes)
    assert filled["steps"]["t"].low.numpy().tolist() == [5, 1]
    times = xt.types.MaskedTensor(filled["steps"]["t"], [False, True])
    masked = xt.DenseStructuredTensor([2], {"t": times})
    assert S.fill_null(masked, "t", value)["t"].high.numpy().tolist() == [2, 2]
    assert S.constant([{"steps": []}], INTERVALS)["steps"].values["t"].low.shape == [0]


@pytest.mark.parametrize("graph", [True, False])
def test_the_null_list_of_a_single_record_has_no_lists(graph):
    rows = [{"steps": None}, {"steps": [{"l": [1, 2]}, {"l": []}]}]
    records = S.constant(rows, nulls={"steps": "mask"})
    calls = {
        "n": (lambda r: S.num(r, "steps.l", "steps.n"), len),
        "l": (lambda r: S.firsts(r, "steps.l"), lambda items: items[0] if items else None),
    }
    for name, (call, answer) in calls.items():
        call = tf.function(call, autograph=False) if graph else call
        for i, row in enumerate(rows):
            steps = row["steps"] and [{**step, name: answer(step["l"])} for step in row["steps"]]
            assert call(records[i]).to_py() == {"steps": steps}


def test_lists_of_lists_are_padded_by_a_list():
    records = S.constant([{"x": [[1], [2, 3]]}, {"x": []}])
    assert S.pad(records, "x", 2, value=[7]).to_py() == [{"x": [[1], [2, 3]]}, {"x": [[7], [7]]}]
    filled = S.fill_null(S.pad(records, "x", 2), "x", [7])
    assert filled.to_py() == [{"x": [[1], [2, 3]]}, {"x": [[7], [7]]}]


@pytest.mark.parametrize(
    ("call", "error", "path"),
    [
        (lambda t: S.pad(t, "steps", 3, value={"m": 1}), FieldError, "value for steps"),
        (lambda t: S.pad(t, "steps", 3, value={"m": "x", "l": []}), DTypeError,
         "value for steps.m"),
        (lambda t: S.pad(t, "steps", 3, value=0), StructureError, "value for steps"),
        (lambda t: S.pad(t, "steps.l", 3, value=1.5), DTypeError, "steps.l"),
        (lambda t: S.pad(t, "steps.l", 3, value="x"), DTypeError, "steps.l"),
        (lambda t: S.pad(t, "steps.l", 3, value=2**40), DTypeError, "steps.l"),
        (lambda t: S.fill_null(S.pad(t, "steps", 3), "steps.m", 0), NullError, "steps.m"),
        (lambda t: S.fill_null(S.pad(t, "steps", 3), "steps.x", 0), FieldError, "steps.x"),
        (lambda t: S.unique(S.pad(t, "steps", 3), "steps", by="m"), NullError, "steps.m"),
        (lambda t: S.group_by(S.pad(t, "steps", 3), "steps", by="m"), NullError, "steps.m"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_error(call, error, path):
    with pytest.raises(error) as caught:
        call(S.constant(PAIRS))
    assert caught.value.path == path
    assert caught.value.fix


EXPLODED = {
    "a null list of records": (
        [{"l": [{"w": [1, 2], "k": 5}, {"w": [], "k": 6}]}, {"l": None}, {"l": []}],
        [{"l": [{"w": 1, "k": 5}, {"w": 2, "k": 5}]}, {"l": None}, {"l": []}],
    ),
    "a null record in a list": (
        [{"l": [{"w": [1, 2], "k": 5}, None, {"w": None, "k": 6}]}, {"l": [None]}],
        [{"l": [{"w": 1, "k": 5}, {"w": 2, "k": 5}]}, {"l": []}],
    ),
    "a null record": (
        [{"l": {"w": [1, None], "k": 5}}, {"l": None}, {"l": {"w": [], "k": 6}}],
        [{"l": [{"w": 1, "k": 5}, {"w": None, "k": 5}]}, {"l": None}, {"l": []}],
    ),
}


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("case", EXPLODED)
def test_explode_of_lists_in_records_that_may_be_null(case):
    rows, expected = EXPLODED[case]
    records = xt.struct.constant(rows, nulls="mask")
    ours = sorted_names(xt.struct.explode(records, "l.w").to_py())
    assert ours == sorted_names(expected)
    traced = tf.function(lambda st: xt.struct.explode(st, "l.w"))(records)
    assert sorted_names(traced.to_py()) == ours
    one = [sorted_names(xt.struct.explode(record, "l.w").to_py()) for record in records]
    assert one == ours


def sorted_names(value):
    if isinstance(value, dict):
        return {name: sorted_names(value[name]) for name in sorted(value)}
    return [sorted_names(item) for item in value] if isinstance(value, list) else value


@pytest.mark.whole("traces many functions")
def test_reductions_of_lists_that_may_be_null_of_items_that_may_be_null():
    rows = [{"n": [1, None, 2]}, {"n": None}, {"n": [5]}, {"n": []}, {"n": [None]}]
    lists = xt.struct.constant(rows, nulls="mask")["n"]
    expected = {
        tf.reduce_sum: ([3, None, 5, 0, None], [6, None, 2], 8),
        tf.reduce_prod: ([2, None, 5, 1, None], [5, None, 2], 10),
        tf.reduce_max: ([2, None, 5, None, None], [5, None, 2], 5),
        tf.reduce_min: ([1, None, 5, None, None], [1, None, 2], 1),
        tf.reduce_mean: ([1.5, None, 5, None, None], [3, None, 2], 8 / 3),
    }
    axes = (1, 0, None)
    reduced = [
        run(lambda values: [[op(values, axis=axis) for axis in axes] for op in expected])(lists)
        for run in (lambda function: function, tf.function)
    ]
    for results in reduced:
        for (op, wanted), found in zip(expected.items(), results, strict=True):
            assert [each.to_py() for each in found] == list(wanted), op
    assert tf.reduce_any(lists > 1, axis=1).to_py() == [True, None, True, False, None]
    assert tf.reduce_all(lists > 1, axis=1).to_py() == [False, None, True, True, None]


def test_reductions_over_three_levels_of_nulls():
    rows = [{"l": [{"w": [1, 2]}, {"w": None}]}, {"l": None}, {"l": [{"w": [None, 4]}]}]
    items = xt.struct.constant(rows, nulls="mask")["l.w"]
    assert tf.reduce_sum(items, axis=2).to_py() == [[3, None], None, [4]]
    assert tf.reduce_sum(items, axis=1).to_py() == [[1, 2], None, [None, 4]]
    assert tf.reduce_sum(items).to_py() == 7


KEYS = {"numbers": [2, 1, 2, 3], "strings": ["b", "a", "b", ""], "bools": [True, False, True, True]}
PATHS = {
    "of the records": ((), "k", lambda rows: rows),
    "of masked records": ((), "m.k", lambda rows: [{**row, "m": {"k": row["k"]}} for row in rows]),
    "of lists": ("l", "k", lambda rows: [{"l": rows[:1]}, {"l": rows[1:]}]),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("function", [S.group_by, S.unique])
def test_masked_keys_and_values_without_nulls_are_as_plain_ones(kind, path, function):
    at, by, shaped = PATHS[path]
    rows = shaped([{"k": k, "v": v} for k, v in zip(KEYS[kind], [1.0, 2.0, 3.0, 4.0], strict=True)])
    masked, plain = (S.constant(rows, nulls=nulls) for nulls in ("mask", "error"))
    assert function(masked, at, by=by).to_py() == function(plain, at, by=by).to_py()
    traced = tf.function(lambda records: function(records, at, by=by))
    assert traced(masked).to_py() == function(plain, at, by=by).to_py()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("function", [S.group_by, S.unique])
def test_null_keys_are_counted_and_null_values_are_not(path, function):
    at, by, shaped = PATHS[path]
    found = [{"k": 1, "v": None}, {"k": 2, "v": 1.0}, {"k": 1, "v": 1.0}]
    assert function(S.constant(shaped(found), nulls="mask"), at, by=by).to_py()
    found = [{"k": k, "v": 1.0} for k in (1, None, 2, None)]
    records = S.constant(shaped(found), nulls="mask")
    whole = xt.Path(*xt.Path.of(at), *xt.Path.of(by))
    with pytest.raises(NullError, match=rf"^{whole}: .* got 2 null\."):
        function(records, at, by=by)
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{whole}: .*got \] \[2\]"):
        tf.function(lambda records: function(records, at, by=by))(records)


UNIONS = [{"id": 1, "l": [{"x": 1}, {"x": None}, {"x": "a"}]}, {"id": 2, "l": []},
          {"id": 3, "l": [{"x": None}]}]  # fmt: skip


@pytest.mark.parametrize("run", [lambda f: f, tf.function])
def test_the_nulls_of_unions_are_nulls(run):
    lists = S.constant(UNIONS, conflicts="union", nulls="auto")
    flat = S.constant([step for r in UNIONS for step in r["l"]], conflicts="union", nulls="auto")
    assert run(lambda r: S.is_null(r, "x"))(flat).numpy().tolist() == [False, True, False, True]
    assert run(lambda r: S.has(r, "x"))(flat).numpy().tolist() == [True, False, True, False]
    assert run(lambda r: S.is_null(r, "l.x"))(lists).to_list() == [[False, True, False], [], [True]]

    filled = run(lambda r: S.fill_null(r, "l.x", 0))(lists)
    assert [step["x"] for r in filled.to_py() for step in r["l"]] == [1, 0, "a", 0]
    assert filled["l.x"].names == ("int", "string")
    assert run(lambda r: S.drop_null(r, (), by="x"))(flat).to_py() == [{"x": 1}, {"x": "a"}]
    dropped = run(lambda r: S.drop_null(r, "l", by="x"))(lists)
    assert [r["l"] for r in dropped.to_py()] == [[{"x": 1}, {"x": "a"}], [], []]
    assert dropped["l.x"].names == ("int", "string")

    items = S.constant([{"l": [1, None, "a"]}, {"l": [None]}], conflicts="union", nulls="auto")
    assert run(lambda r: S.drop_null(r, "l"))(items).to_py() == [{"l": [1, "a"]}, {"l": []}]
    assert run(lambda r: S.fill_null(r, "l", "b"))(items).to_py() == [
        {"l": [1, "b", "a"]}, {"l": ["b"]}
    ]  # fmt: skip
