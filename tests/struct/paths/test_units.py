"""A field that moves has the Arrow type that it had: each function of `xt.struct` and each type."""

import datetime as dt
import decimal
import functools

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt

S = xt.struct
ARROW = {
    "timestamp": (
        pa.timestamp("s", "UTC"),
        lambda n: dt.datetime.fromtimestamp(n, dt.timezone.utc),
    ),
    "decimal": (pa.decimal128(10, 2), lambda n: decimal.Decimal(n).scaleb(-2)),
    "date": (pa.date32(), lambda n: dt.date(1970, 1, 1) + dt.timedelta(n)),
    "duration": (pa.duration("ms"), lambda n: dt.timedelta(milliseconds=n)),
    "text": (pa.string(), str),
    "words": (pa.dictionary(pa.int32(), pa.string()), str),
    "number": (pa.int64(), lambda n: n),
}
ROWS = [
    {
        "at": 3, "maybe": None, "list": [5, 4, 5], "lists": [[1], [2, 3]], "some": [None, 7],
        "steps": [{"at": 8, "inner": [9]}, {"at": 2, "inner": []}], "person": {"at": 6},
        "gone": None, "id": [1],
    },
    {
        "at": 1, "maybe": 2, "list": [0], "lists": [[]], "some": [], "steps": [],
        "person": {"at": 0}, "gone": {"at": 4}, "id": [2],
    },
]  # fmt: skip
MASKS = {"maybe": "mask", "some[*]": "mask", "gone": "mask"}


def schema(arrow):
    return pa.schema(
        {
            "at": arrow,
            "maybe": arrow,
            "list": pa.list_(arrow),
            "lists": pa.list_(pa.list_(arrow)),
            "some": pa.list_(arrow),
            "steps": pa.list_(pa.struct({"at": arrow, "inner": pa.list_(arrow)})),
            "person": pa.struct({"at": arrow}),
            "gone": pa.struct({"at": arrow}),
            "id": pa.list_(pa.int8()),
        }
    )


def changed(value, change):
    """Returns Python data with a function applied to each number, but not to the field `id`."""
    if isinstance(value, dict):
        return {n: v if n == "id" else changed(v, change) for n, v in value.items()}
    if isinstance(value, list):
        return [changed(item, change) for item in value]
    return value if value is None else change(value)


@functools.cache
def records(kind):
    arrow, made = ARROW[kind]
    return xt.from_arrow(pa.Table.from_pylist(changed(ROWS, made), schema(arrow)), nulls=MASKS)


CAPACITIES = {"id": 1, "list": 4, "lists": (3, 4), "steps": 4, "steps.inner": 4}


def static_and_back(r):
    r = r.without("some")
    return S.from_static(r.to_static(CAPACITIES), xt.spec_of(r))


def zipped(r):
    return S.zip({"a": r, "b": r["person"]}, depth=1)


# For each function that gives records: an operation, and the paths of all fields whose items come
# from a field of the type. A new function joins by one line.
FUNCTIONS = {
    "apply": [
        (lambda r: S.apply(r, tf.zeros_like, "id", "n"), ["at", "list", "steps.at", "maybe"])
    ],
    "argmax": [(lambda r: S.argmax(r, "id", target="n"), ["at", "list"])],
    "argmin": [(lambda r: S.argmin(r, "id", target="n"), ["at", "list"])],
    "argsort": [(lambda r: S.argsort(r, "id", target="n"), ["at", "list"])],
    "broadcast": [
        (lambda r: S.broadcast(r, "at", "steps.of"), ["steps.of", "steps.at", "at"]),
        (lambda r: S.broadcast(r, "list", "steps.of"), ["steps.of"]),
        (lambda r: S.broadcast(r, "maybe", "steps.of"), ["steps.of"]),
        (lambda r: S.broadcast(r, "person", "steps.of"), ["steps.of.at"]),
        (lambda r: S.broadcast(r, (), "steps.of"), ["steps.of.at", "steps.of.list"]),
    ],
    "cartesian": [
        (
            lambda r: S.cartesian(r, {"a": "list", "b": "lists", "c": "some"}, "pairs"),
            ["pairs.a", "pairs.b", "pairs.c", "list"],
        ),
        (lambda r: S.cartesian(r, {"a": "steps", "b": "list"}, "p"), ["p.a.at", "p.b"]),
    ],
    "cast": [(lambda r: S.cast(r, {"id": tf.int32}), ["at", "list"])],
    "combinations": [
        (lambda r: S.combinations(r, "list", "pairs"), ["pairs.0", "pairs.1", "list"]),
        (lambda r: S.combinations(r, "steps.inner", "steps.p", n=1), ["steps.p.0", "steps.inner"]),
    ],
    "drop_null": [
        (lambda r: S.drop_null(r, "some"), ["some", "maybe"]),
        (lambda r: S.drop_null(r, (), by="maybe"), ["maybe", "at"]),
    ],
    "explode": [
        (lambda r: S.explode(r, "list"), ["list", "at", "steps.at"]),
        (lambda r: S.explode(r, "lists"), ["lists", "at"]),
        (lambda r: S.explode(r, "some"), ["some", "at"]),
        (lambda r: S.explode(r, "steps.inner"), ["steps.inner", "steps.at", "at"]),
        (lambda r: S.explode(r, "steps"), ["steps.at", "at"]),
    ],
    "fill_null": [
        (lambda r: S.fill_null(r, "maybe", r["at"][0]), ["maybe", "at"]),
        (lambda r: S.fill_null(r, "some", r["at"][0]), ["some"]),
        (lambda r: S.fill_null(r, "gone", r["person"][0]), ["gone.at"]),
    ],
    "filter_by": [
        (lambda r: S.filter_by(r, "id", r["id"] > 1), ["at", "list"]),
        (lambda r: S.filter_by(r, "steps", tf.ragged.constant([[True, False], []])), ["steps.at"]),
        (
            lambda r: S.filter_by(r, "list", tf.ragged.constant([[True, False, True], [False]])),
            ["list"],
        ),
    ],
    "firsts": [
        (lambda r: S.firsts(r, "list"), ["list"]),
        (lambda r: S.firsts(r, "list", "one"), ["one", "list"]),
        (lambda r: S.firsts(r, "lists"), ["lists"]),
        (lambda r: S.firsts(r, "steps.inner"), ["steps.inner", "steps.at"]),
    ],
    "flatten": [
        (lambda r: S.flatten(r, "lists"), ["lists", "list"]),
        (lambda r: S.flatten(r[:, tf.newaxis]), ["lists", "at"]),
    ],
    "from_static": [(static_and_back, ["at", "maybe", "list", "lists", "steps.at", "gone.at"])],
    "group_by": [
        (lambda r: S.group_by(r, (), by="at"), ["at", "items.list", "items.at"]),
        (lambda r: S.group_by(r, (), by="person.at"), ["at", "items.list"]),
        (lambda r: S.group_by(r, "steps", by="at"), ["steps.at", "steps.items.at", "at"]),
    ],
    "has": [(lambda r: S.has(r, "list", "h"), ["at", "list"])],
    "is_null": [(lambda r: S.is_null(r, "maybe", "n"), ["maybe", "at"])],
    "local_index": [(lambda r: S.local_index(r, "steps", "steps.n"), ["at", "steps.at"])],
    "map_values": [
        (lambda r: S.map_values(r, tf.identity, "list"), ["list", "at"]),
        (lambda r: S.map_values(r, tf.zeros_like, "id", "n"), ["list", "at"]),
    ],
    "num": [(lambda r: S.num(r, "list", "n"), ["at", "list"])],
    "pad": [
        (lambda r: S.pad(r, "list", 4), ["list", "at"]),
        (lambda r: S.pad(r, "list", 4, value=r["at"][0]), ["list"]),
        (lambda r: S.pad(r, "steps", 3), ["steps.at"]),
    ],
    "promote": [
        (lambda r: S.promote(r, "steps.at", "all"), ["all", "steps.at", "at"]),
        (lambda r: S.promote(r, "steps.inner", "all"), ["all"]),
        (lambda r: S.promote(r, "person.at", "all"), ["all", "person.at"]),
        (lambda r: S.promote(r, "gone.at", "all"), ["all"]),
    ],
    "promote_and_broadcast": [
        (
            lambda r: S.promote_and_broadcast(r, {"p": "person.at", "l": "list"}, "steps"),
            ["steps.p", "steps.l", "steps.at"],
        ),
        (lambda r: S.promote_and_broadcast(r, {"a": "steps.at"}), ["a"]),
    ],
    "rename": [
        (lambda r: S.rename(r, {"at": "when", "steps.at": "on"}), ["when", "steps.on", "list"]),
        (lambda r: S.rename(r, {"at": "list", "list": "at"}), ["at", "list"]),
        (lambda r: S.rename(r, {"id": "at", "at": "was"}), ["was", "list"]),
    ],
    "reroot": [
        (lambda r: S.reroot(r, "steps", index="of"), ["at", "inner"]),
        (lambda r: S.reroot(r, "person"), ["at"]),
    ],
    "singletons": [
        (lambda r: S.singletons(r, "maybe"), ["maybe", "at"]),
        (lambda r: S.singletons(r, "at", "one"), ["one", "at"]),
        (lambda r: S.singletons(r, "steps.at"), ["steps.at"]),
    ],
    "slice": [
        (lambda r: S.slice(r, "list", 1), ["list", "at"]),
        (lambda r: S.slice(r, "list", stop=1), ["list", "at"]),
        (lambda r: S.slice(r, (), 1), ["list", "at", "steps.at"]),
    ],
    "sort": [
        (lambda r: S.sort(r, "list"), ["list", "at"]),
        (lambda r: S.sort(r, "steps", by="at"), ["steps.at", "steps.inner"]),
        (lambda r: S.sort(r, by="at"), ["list", "at"]),
    ],
    "unflatten": [
        (
            lambda r: S.unflatten(r, "list", tf.ragged.constant([[2, 1], [1]])),
            ["list", "at"],
        ),
        (lambda r: S.unflatten(r, (), [1, 1]), ["list", "at", "steps.at"]),
    ],
    "unique": [
        (lambda r: S.unique(r, "list"), ["list", "at"]),
        (lambda r: S.unique(r, by="at"), ["list", "at"]),
    ],
    "zip": [(zipped, ["a.at", "a.steps.at", "a.maybe", "b.at"])],
}
# What gives no records of other records.
OTHERS = {"constant", "constant_value", "from_tf", "num_cut", "spec_from", "to_tf", "tree"}


def rows_of(r, splits):
    return xt.RaggedStructuredTensor.from_row_splits(r, splits)


def batched(r, make):
    return next(iter(make(tf.data.Dataset.from_tensor_slices(r))))


# Methods of records, and functions of TensorFlow.
EVERY = ["at", "maybe", "list", "lists", "some", "steps.at", "steps.inner", "person.at", "gone.at"]
OF_RECORDS = {
    "with_updates": (lambda r: r.with_updates(id=r["id"] + 1), EVERY),
    "with_updates, filled": (lambda r: r.with_updates(maybe=r["maybe"].values), EVERY),
    "with_updates, masked": (
        lambda r: r.with_updates(at=xt.types.MaskedTensor(r["at"], [True, False])), EVERY,
    ),
    "with_updates, records": (
        lambda r: r.with_updates({"person": r["gone"].values}), ["person.at", "at"],
    ),
    "with_updates, inner": (lambda r: r.with_updates({"person.n": [1, 2]}), EVERY),
    "without": (lambda r: r.without("id", "steps.inner"), [p for p in EVERY if p != "steps.inner"]),
    "with_only": (lambda r: r.with_only("at", "steps.at"), ["at", "steps.at"]),
    "slice": (lambda r: r[1:], EVERY),
    "step": (lambda r: r[::-1], EVERY),
    "newaxis": (lambda r: r[tf.newaxis], EVERY),
    "merge_dims": (lambda r: rows_of(r, [0, 1, 2]).merge_dims(0, 1), EVERY),
    "partition": (lambda r: r.partition_outer_dimension([0, 2]), EVERY),
    "gather": (lambda r: tf.gather(r, [1, 0, 1]), EVERY),
    "boolean_mask": (lambda r: tf.boolean_mask(r, [True, False]), EVERY),
    "concat": (lambda r: tf.concat([r, r], 0), EVERY),
    "stack": (lambda r: tf.stack([r, r]), EVERY),
    "unstack": (lambda r: tf.stack(tf.unstack(r[:1])), EVERY),
    "where": (lambda r: tf.where([True, False], r, r[::-1]), EVERY),
    "reshape": (lambda r: tf.reshape(r, [2, 1]), EVERY),
    "expand_dims": (lambda r: tf.expand_dims(r, 0), EVERY),
    "reverse": (lambda r: tf.reverse(r, [0]), EVERY),
    "identity": (tf.identity, EVERY),
    "function": (lambda r: tf.function(lambda x: x)(r), EVERY),
    "ragged_batch": (lambda r: batched(r, lambda d: d.ragged_batch(2)), EVERY),
    "masked": (lambda r: r.with_updates(m=xt.types.MaskedTensor(r, [True, False])), ["m.at"]),
}  # fmt: skip
CASES = {
    f"{name} {i}": case for name, cases in FUNCTIONS.items() for i, case in enumerate(cases)
} | {f"records: {name}": case for name, case in OF_RECORDS.items()}
# The cases that one graph has.
GROUPS = [list(CASES)[i : i + 12] for i in range(0, len(CASES), 12)]


def item_at(arrow, path):
    """Returns the Arrow type of the items at a path, without the lists around it."""
    for name in [*path.split("."), None]:
        while hasattr(arrow, "value_field"):
            arrow = arrow.value_type
        arrow = arrow if name is None else arrow.field(name).type
    return arrow


def values_at(value, names):
    """Returns the values at a path of Python data, in their lists."""
    if isinstance(value, list):
        return [values_at(item, names) for item in value]
    if value is None or not names:
        return value
    return values_at(value[names[0]], names[1:])


def as_table(result):
    """Returns records of any rank as an Arrow table of rank 1."""
    return xt.to_arrow(S.zip({"all": result}, depth=1)).schema.field("all").type


def test_every_function_that_gives_records_is_in_the_table():
    public = {name for name in dir(S) if not name.startswith("_")}
    assert set(FUNCTIONS) | OTHERS == public
    assert not set(FUNCTIONS) & OTHERS


FEW = ["promote 0", "broadcast 1", "group_by 1", "explode 0", "firsts 1", "fill_null 0", "rename 1",
       "cartesian 0", "combinations 1", "unflatten 0", "records: masked"]  # fmt: skip


@pytest.mark.parametrize(("case", "kind"), list(zip(FEW, list(ARROW) * 2, strict=False)))
def test_a_field_that_moves_keeps_its_type(case, kind):
    check(case, kind, CASES[case][0](records(kind)))


WIDE = pa.decimal128(30, 2)


@functools.cache
def wide_records():
    made = ARROW["decimal"][1]
    table = pa.Table.from_pylist(changed(ROWS, made), schema(WIDE))
    return xt.from_arrow(table, nulls=MASKS)


@pytest.mark.parametrize("case", CASES)
def test_a_decimal_of_several_integers_is_one_value(case):
    change = CASES[case][0]
    found, failed = None, None
    try:
        found = change(wide_records())
    except xt.errors.DTypeError as error:
        failed = error
    if failed is not None:
        assert "to compare them" in failed.expected
        assert case.split()[0] in ("argsort", "argmax", "argmin", "group_by", "sort", "unique")
        return
    assert found.to_py() == change(records("decimal")).to_py()


@pytest.mark.parametrize("path", ["at", "maybe", "steps.at"])
@pytest.mark.parametrize(
    "function",
    [S.num, S.explode, S.firsts, S.flatten, S.local_index, S.sort, S.unique, S.drop_null],
)
def test_a_decimal_of_several_integers_is_no_list(path, function):
    for each in (records("decimal"), wide_records()):
        with pytest.raises(xt.errors.StructureError, match="expected a list, got one value a"):
            function(each, path)


@pytest.mark.parametrize("arrow", [ARROW["decimal"][0], WIDE], ids=str)
@pytest.mark.parametrize("price", [2, 2.5, decimal.Decimal("2.5")])
def test_the_numbers_in_a_list_are_decimals(price, arrow):
    given = {"few": [[1], None, [None]]}
    schema = pa.schema({"few": pa.list_(arrow)})
    r = xt.from_arrow(pa.table(given, schema), nulls="mask")
    want = [[decimal.Decimal(1)], [decimal.Decimal(price)] * 2, [None]]
    assert [row["few"] for row in S.fill_null(r, "few", [price, price]).to_py()] == want
    in_graph = tf.function(lambda r: S.fill_null(r, "few", [price, price]))(r)
    assert [row["few"] for row in in_graph.to_py()] == want


@pytest.mark.whole("1300 cases, half of them traced")
@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("case", CASES)
def test_every_field_that_moves_keeps_its_type(case, kind):
    check(case, kind, CASES[case][0](records(kind)))


@pytest.mark.whole("1300 cases, half of them traced")
@pytest.mark.parametrize("cases", GROUPS, ids=[f"{group[0]} to {group[-1]}" for group in GROUPS])
def test_every_field_that_moves_in_a_graph_keeps_its_type(cases):
    try:
        check_in_a_graph(cases)
    except Exception:
        broken = dict(errors_in_a_graph(cases))
        assert not broken, broken
        raise


def check_in_a_graph(cases):
    def results(*each):
        return {case: [CASES[case][0](r) for r in each] for case in cases}

    # One trace of several operations with the records of all kinds: most of its time is that of
    # its arguments.
    found = tf.function(results, autograph=False)(*map(records, ARROW))
    for case in cases:
        for kind, result in zip(ARROW, found[case], strict=True):
            check(case, kind, result)


def errors_in_a_graph(cases):
    """Yields the cases that fail when they are traced alone, with their errors."""
    for case in cases:
        try:
            check_in_a_graph([case])
        except Exception as error:
            yield case, error


def check(case, kind, result):
    _, paths = CASES[case]
    arrow, made = ARROW[kind]
    found = as_table(result)
    for path in paths:
        assert item_at(found, path) == arrow, (kind, path)
    if kind not in ("text", "words"):  # sorted in another order, the numbers are the same
        rows, numbers = result.to_py(), numbers_of(case)
        for path in paths:
            names = path.split(".")
            wanted = changed(values_at(numbers, names), made)
            assert values_at(rows, names) == wanted, (kind, path)


@functools.cache
def numbers_of(case):
    """Returns the result for plain numbers, as Python data."""
    return CASES[case][0](records("number")).to_py()
