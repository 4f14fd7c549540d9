"""Units, scales and zones of numbers are part of their spec; Arrow's casts are the reference."""

import datetime as dt
import decimal
import functools

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from tests.samples.calls import calls_of

# Two types, of which the numbers of the first change to the second without loss.
FINER = [
    (pa.timestamp("s"), pa.timestamp("ms")),
    (pa.timestamp("s", "UTC"), pa.timestamp("us", "Asia/Tokyo")),
    (pa.timestamp("us"), pa.timestamp("ns")),
    (pa.date32(), pa.date64()),
    (pa.date32(), pa.timestamp("s")),
    (pa.date64(), pa.timestamp("us")),
    (pa.time32("s"), pa.time32("ms")),
    (pa.time32("ms"), pa.time64("us")),
    (pa.duration("s"), pa.duration("ns")),
    (pa.decimal32(5, 1), pa.decimal32(7, 2)),
    (pa.decimal128(9, 1), pa.decimal64(12, 4)),
    (pa.decimal256(12, 0), pa.decimal128(18, 3)),
    (pa.decimal128(10, -2), pa.decimal128(12, 0)),
]
# Two types, of which neither changes to the other.
APART = [
    (pa.timestamp("s"), pa.timestamp("s", "UTC")),
    (pa.date32(), pa.timestamp("s", "UTC")),
    (pa.duration("s"), pa.timestamp("s")),
    (pa.time64("us"), pa.duration("us")),
    (pa.decimal128(10, 2), pa.timestamp("s")),
    (pa.time32("ms"), pa.date32()),
]
# Two types that store the same numbers in other ways.
SAME = [
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Paris")),
    (pa.decimal32(5, 2), pa.decimal128(18, 2)),
    (pa.timestamp("s"), pa.dictionary(pa.int32(), pa.timestamp("s"))),
    (pa.string(), pa.large_string()),
    (pa.list_(pa.duration("s")), pa.large_list(pa.duration("s"))),
]
NUMBERS = [3, 1, 2]
KINDS = {
    "flat": (lambda array: array, lambda arrow: arrow),
    "lists": (
        lambda array: pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), array),
        pa.list_,
    ),
    "nulls": (
        lambda array: pa.concat_arrays([array[:2], pa.nulls(1, array.type)]),
        lambda arrow: arrow,
    ),
    "records": (
        lambda array: pa.StructArray.from_arrays([array], ["inner"]),
        lambda arrow: pa.struct({"inner": arrow}),
    ),
    "null records": (
        lambda array: pa.StructArray.from_arrays(
            [array], ["inner"], mask=pa.array([False, True, False])
        ),
        lambda arrow: pa.struct({"inner": arrow}),
    ),
    "records in lists": (
        lambda array: pa.ListArray.from_arrays(
            pa.array([0, 1, 1, 3], pa.int32()), pa.StructArray.from_arrays([array], ["inner"])
        ),
        lambda arrow: pa.list_(pa.struct({"inner": arrow})),
    ),
}


def column(arrow, kind="flat"):
    storage = pa.array(NUMBERS, pa.int32() if arrow.bit_width == 32 else pa.int64())
    if pa.types.is_decimal(arrow):
        array = pa.array([decimal.Decimal(n).scaleb(-arrow.scale) for n in NUMBERS], arrow)
    elif pa.types.is_date64(arrow):
        array = pa.array([n * 86_400_000 for n in NUMBERS], pa.int64()).view(arrow)
    else:
        array = storage.view(arrow)
    return KINDS[kind][0](array)


def table(arrow, kind="flat"):
    return pa.table({"n": [0, 1, 2], "x": column(arrow, kind)})


@functools.cache
def records(arrow, kind="flat"):
    nulls = {"nulls": {"x": "mask"}, "null records": {"x": "mask"}}.get(kind, "error")
    return xt.from_arrow(table(arrow, kind), nulls=nulls)


@functools.cache
def records_of_all_kinds(arrow):
    """Returns records with a field of each kind."""
    columns = {kind: column(arrow, kind) for kind in KINDS}
    nulls = {"nulls": "mask", "null records": "mask"}
    return xt.from_arrow(pa.table({"n": [0, 1, 2], **columns}), nulls=nulls)


@functools.cache
def expected(coarse, fine):
    """Returns the fields of both as Python data of the finer type, by Arrow's own safe cast."""
    return [
        {kind: column(arrow, kind).cast(KINDS[kind][1](fine)).to_pylist() for kind in KINDS}
        for arrow in (coarse, fine)
    ]


def in_graph(op):
    return lambda a, b: tf.function(op)(a, b)


def slices(a):
    return tf.data.Dataset.from_tensor_slices(a)


def rows(a):
    return xt.RaggedStructuredTensor.from_row_splits(a, [0, 2, 3])


def stacked(dataset):
    return next(iter(dataset.ragged_batch(10)))


@xt.extension_type
class Box:
    records: xt.StructuredTensor | xt.types.MaskedTensor


def masked(records):
    return xt.types.MaskedTensor(records, [True] * 3)


BOTH = {  # the records of both, one after another
    "concat": lambda a, b: tf.concat([a, b], 0),
    "concat in a graph": in_graph(lambda a, b: tf.concat([a, b], 0)),
    "concat of rows": lambda a, b: tf.concat([rows(a), rows(b)], 0).values,
    "stack": lambda a, b: tf.reshape(tf.stack([a, b]), [-1]),
    "ragged stack": lambda a, b: tf.ragged.stack([a, b]).values,
    "stack of masked records": lambda a, b: tf.reshape(
        tf.stack([masked(a), masked(b)]).values, [-1]
    ),
    "where": lambda a, b: tf.concat([tf.where([True] * 3, a, b), tf.where([False] * 3, a, b)], 0),
    "datasets": lambda a, b: stacked(slices(a).concatenate(slices(b))),
}
FIRST = {  # the records of the first, as the second
    "cast": lambda a, b: xt.spec_of(b).cast(a),
    "cast of a declared type": lambda a, b: xt.spec_of(Box(b)).cast(Box(a)).records,
    "cast without other fields": lambda a, b: (
        xt.spec_of(Box(masked(b)))
        .cast(Box(masked(a.with_updates(more=[1, 2, 3]))), extra="ignore")
        .records.values
    ),
    "cond": in_graph(lambda a, b: tf.cond(a["n"][0] == 0, lambda: a, lambda: b)),
    "switch_case": in_graph(
        lambda a, b: tf.switch_case(tf.cast(a["n"][0], tf.int32), [lambda: a, lambda: b])
    ),
    "signature": lambda a, b: tf.function(lambda x: x, input_signature=[xt.spec_of(b)])(a),
}


@pytest.mark.parametrize("types", FINER, ids=str)
@pytest.mark.parametrize("joint", BOTH)
def test_records_that_are_joined_get_the_finer_unit(joint, types):
    ours, theirs = map(records_of_all_kinds, types)
    coarse, fine = expected(*types)
    for a, b, first, second in ((ours, theirs, coarse, fine), (theirs, ours, fine, coarse)):
        result = BOTH[joint](a, b)
        found = xt.to_arrow(result).to_pydict()
        for kind in KINDS:
            assert found[kind] == first[kind] + second[kind], kind
        assert found["n"] == [0, 1, 2, 0, 1, 2]


@st.composite
def parts(draw):
    """Tables with the same fields, of odd names, in other units; and their field types."""
    names = draw(
        st.lists(st.sampled_from(["", "null", "a.b", "shape", "x"]), min_size=1, unique=True)
    )
    fields = {
        name: (draw(st.sampled_from(FINER)), draw(st.sampled_from([*KINDS]))) for name in names
    }

    def part():
        start, count = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        columns = {n: column(draw(st.sampled_from(t)), k) for n, (t, k) in fields.items()}
        return pa.table(columns).slice(start, count)

    # The finer type is in the first part, so that it is in one of them.
    first = pa.table({name: column(fine, kind) for name, ((_, fine), kind) in fields.items()})
    return [first, *(part() for _ in range(draw(st.integers(1, 3))))], fields


@given(parts())
def test_any_parts_with_any_names_are_joined_as_arrow_joins_them(drawn):
    tables, fields = drawn
    schema = pa.schema([(name, KINDS[kind][1](fine)) for name, ((_, fine), kind) in fields.items()])
    want = pa.concat_tables([table.cast(schema) for table in tables])
    found = tf.concat([xt.from_arrow(table, nulls="mask") for table in tables], 0)
    assert xt.to_arrow(found, schema).to_pylist() == want.to_pylist()


@pytest.mark.parametrize("types", FINER, ids=str)
@pytest.mark.parametrize("joint", FIRST)
def test_records_that_are_cast_get_the_unit_of_the_spec(joint, types):
    ours, theirs = map(records_of_all_kinds, types)
    coarse, _ = expected(*types)
    result = FIRST[joint](ours, theirs)
    found = xt.to_arrow(result).to_pydict()
    for kind in KINDS:
        assert found[kind] == coarse[kind], kind
    assert xt.spec_of(result).is_compatible_with(xt.spec_of(theirs))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("types", APART, ids=str)
@pytest.mark.parametrize("joint", {**BOTH, **FIRST})
def test_numbers_that_differ_in_more_than_the_unit_are_an_error(joint, types, kind):
    ours, theirs = (records(arrow, kind) for arrow in types)
    with pytest.raises(
        TypeError, match=r"decimal|timestamp|time of day|times? |time64|duration|date"
    ):
        ({**BOTH, **FIRST})[joint](ours, theirs)


# Where values of no common type meet: an error of ours that has a path, both types, and a fix.
MEET = {
    "cond": in_graph(lambda a, b: tf.cond(a["n"][0] == 0, lambda: a, lambda: b)),
    "eager cond": lambda a, b: tf.cond(tf.constant(True), lambda: a, lambda: b),
    "cond of a declared type": in_graph(
        lambda a, b: tf.cond(a["n"][0] == 0, lambda: Box(a), lambda: Box(b))
    ),
    "switch_case": FIRST["switch_case"],
    "while_loop": in_graph(
        lambda a, b: tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, b), (0, a))
    ),
    "concatenate": BOTH["datasets"],
    "choose_from_datasets": lambda a, b: tf.data.Dataset.choose_from_datasets(
        [slices(a), slices(b)], tf.data.Dataset.range(2)
    ),
    "from_list": lambda a, b: tf.data.experimental.from_list([a, b]),
    "cast": FIRST["cast"],
    "cast of a declared type": FIRST["cast of a declared type"],
    "stack of declared types": lambda a, b: tf.stack([Box(a), Box(b)]),
    "ragged stack": BOTH["ragged stack"],
}


@pytest.mark.parametrize("kind", ["flat", "records", "null records"])
@pytest.mark.parametrize("joint", MEET)
def test_an_error_where_records_meet_has_a_path_both_types_and_a_fix(joint, kind):
    ours, theirs = (records(arrow, kind) for arrow in APART[0])
    inside = "" if kind == "flat" else r"\.inner"
    parts = rf"x{inside}: expected (?=.*timestamp\[s\]\))(?=.*tz=UTC).* got .*schema="
    with pytest.raises(errors.DTypeError, match=parts) as caught:
        MEET[joint](ours, theirs)
    assert "Spec(" not in str(caught.value)


def test_fields_that_a_spec_does_not_have_are_left_out_at_any_depth():
    own = xt.struct.constant([{"a": 1}, {"a": 2}])
    more = own.with_updates(b=[3, 4])
    python = more.to_py()
    mask = [True, False]
    for spec, values, paths in (
        (xt.spec_of(Box(own)), (Box(more), {"records": python}), ["records.b"]),
        (
            xt.spec_of(xt.types.MaskedTensor(own, mask)),
            (xt.types.MaskedTensor(more, mask), [python[0], None]),
            ["b"],
        ),
        (
            xt.spec_of(Box(xt.types.MaskedTensor(own, mask))),
            (Box(xt.types.MaskedTensor(more, mask)), {"records": [python[0], None]}),
            ["records.b"],
        ),
        (
            xt.spec_of(xt.DenseStructuredTensor([2], {"box": Box(own)})),
            (xt.DenseStructuredTensor([2], {"box": Box(more)}),),
            ["box.records.b"],
        ),
    ):
        for value in values:
            for extra in ("ignore", paths):
                made = spec.cast(value, extra=extra)
                assert xt.spec_of(made) == spec
                first = [tf.nest.flatten(made, expand_composites=True)[0].numpy().tolist()]
                assert first[0][0] == 1
            with pytest.raises((errors.DTypeError, errors.FieldError), match='extra="ignore"'):
                spec.cast(value)
            with pytest.raises((errors.DTypeError, errors.FieldError)):
                spec.cast(value, extra=["c"])


@pytest.mark.parametrize("types", SAME, ids=str)
def test_what_is_stored_in_another_way_means_the_same(types):
    ours, theirs = map(xt.spec_from_schema, (pa.schema({"x": arrow}) for arrow in types))
    assert ours == theirs
    assert hash(ours) == hash(theirs)
    assert ours.is_compatible_with(theirs)
    traces = []
    function = tf.function(lambda value: traces.append(value))
    for spec in (ours, theirs):
        function.get_concrete_function(spec)
    assert len(traces) == 1


@pytest.mark.parametrize("types", FINER + APART, ids=str)
def test_specs_that_differ_in_meaning_are_not_equal(types):
    ours, theirs = map(xt.spec_from_schema, (pa.schema({"x": arrow}) for arrow in types))
    assert ours != theirs
    assert not ours.is_compatible_with(theirs)
    assert not theirs.is_compatible_with(ours)
    assert ours.most_specific_compatible_type(theirs) is None
    assert not ours.is_subtype_of(theirs)
    traces = []
    function = tf.function(lambda value: traces.append(value))
    for spec in (ours, theirs):
        function.get_concrete_function(spec)
    assert len(traces) == 2


@pytest.mark.parametrize("types", FINER, ids=str)
def test_a_coarser_unit_is_an_error_that_says_both(types):
    coarse, fine = (xt.from_arrow(pa.table({"in": column(t, "records")})) for t in types)
    spec = xt.spec_of(coarse)
    if pa.types.is_date64(types[1]):
        assert spec.cast(fine).to_py() == coarse.to_py()  # whole days
        return
    with pytest.raises(errors.DTypeError, match=r"inner: expected .+ got .+ schema=") as caught:
        spec.cast(fine)
    assert caught.value.path.endswith("inner")


def ops(function, *specs):
    graph = tf.function(function, autograph=False).get_concrete_function(*specs).graph
    return [op.type for op in graph.get_operations()]


NO_WORK = {"Placeholder", "Identity", "Const", "NoOp"}


@pytest.mark.parametrize(
    ("types", "work"),
    [(FINER[0], ["Mul"]), (FINER[2], ["Mul"]), (FINER[4], ["Cast", "Mul"]), (SAME[0], [])],
)
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_graph_the_change_is_one_multiply(types, work, kind):
    ours, theirs = (xt.spec_of(records(arrow, kind)) for arrow in types)
    found = ops(theirs.cast, ours)
    assert [op for op in found if op not in NO_WORK] == work


EAGER = ["concat", "concat of rows", "stack", "where", "cast"]


@pytest.mark.parametrize("joint", EAGER)
def test_where_units_agree_a_joint_costs_what_it_costs_without_units(joint):
    """Counts the calls of Python and C functions, for records of many fields."""

    def cost(arrow):
        parts = [
            xt.from_arrow(pa.table({f"x{i}": pa.array(NUMBERS).cast(arrow) for i in range(20)}))
            for _ in range(2)
        ]
        return calls_of(lambda: {**BOTH, **FIRST}[joint](*parts))

    assert cost(pa.timestamp("us")) <= 1.02 * cost(pa.int64()) + 40


def test_numbers_without_a_meaning_take_that_of_the_field():
    typed = xt.from_arrow(pa.table({"x": column(pa.timestamp("s"))}))
    plain = xt.DenseStructuredTensor([3], {"x": tf.constant([7, 8, 9], tf.int64)})
    assert xt.spec_of(typed) != xt.spec_of(plain)
    want = pa.array([7, 8, 9]).view(pa.timestamp("s")).to_pylist()
    for each in (
        xt.spec_of(typed).cast(plain),
        tf.concat([typed, plain], 0)[3:],
        tf.concat([plain, typed], 0)[:3],
        typed.with_updates(x=plain["x"]),
    ):
        assert [row["x"] for row in each.to_py()] == want
    back = xt.spec_of(plain).cast(typed)
    assert back.to_py() == [{"x": 3}, {"x": 1}, {"x": 2}]
    assert xt.spec_of(back) == xt.spec_of(plain)
    assert ops(xt.spec_of(typed).cast, xt.spec_of(plain)) == ops(lambda x: x, xt.spec_of(plain))


def test_a_number_that_does_not_fit_the_finer_unit_is_an_error():
    seconds = xt.from_arrow(pa.table({"x": pa.array([2**40], pa.int64()).view(pa.timestamp("s"))}))
    spec = xt.spec_from_schema(pa.schema({"x": pa.timestamp("ns")}))
    with pytest.raises(errors.DTypeError, match=r"x: expected numbers that int64 holds"):
        spec.cast(seconds)
    with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
        xt.to_arrow(seconds)["x"].cast(pa.timestamp("ns"))
    half = xt.from_arrow(pa.table({"x": pa.array([43_200_000], pa.int64()).view(pa.date64())}))
    with pytest.raises(errors.DTypeError, match=r"x: expected .+ dates in days"):
        xt.spec_from_schema(pa.schema({"x": pa.date32()})).cast(half)


def test_the_least_integer_does_not_fit_the_finer_unit():
    least = pa.array([-(2**63)], pa.int64()).view(pa.timestamp("s"))
    spec = xt.spec_from_schema(pa.schema({"x": pa.timestamp("us")}))
    with pytest.raises(errors.DTypeError, match=r"x: expected numbers that int64 holds"):
        spec.cast(xt.from_arrow(pa.table({"x": least})))


@pytest.mark.parametrize("hidden", [2**62, -(2**63)])
@pytest.mark.parametrize("in_lists", [False, True])
def test_a_number_below_a_null_need_not_fit_the_finer_unit(hidden, in_lists):
    def column_of(numbers, unit):
        data = pa.py_buffer(np.array(numbers, np.int64))
        times = pa.Array.from_buffers(
            pa.timestamp(unit), 3, [pa.py_buffer(bytes([0b101])), data], null_count=1
        )
        times = pa.ListArray.from_arrays([0, 2, 3], times) if in_lists else times
        return xt.from_arrow(pa.table({"x": times}), nulls="mask")

    coarse, fine = column_of([1, hidden, 3], "s"), column_of([1, hidden, 3], "us")
    assert tf.concat([coarse, fine], 0).to_py() == coarse.to_py() + fine.to_py()
    open_spec = xt.spec_of(fine).unstacked().stacked(None)
    assert open_spec.cast(coarse).to_py() == coarse.to_py()


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5), st.sampled_from(FINER))
def test_every_number_is_changed_as_arrow_changes_it_or_refused(numbers, types):
    coarse, fine = types
    if pa.types.is_decimal(coarse):
        most = 10**coarse.precision
        numbers = [n % most for n in numbers]
        array = pa.array([decimal.Decimal(n).scaleb(-coarse.scale) for n in numbers], coarse)
        fine = pa.decimal128(38, fine.scale)  # to_arrow refuses more digits than the type has
    else:
        if pa.types.is_time(coarse):
            numbers = [n % 86_400 for n in numbers]
        elif pa.types.is_date64(coarse):
            numbers = [n // 2**30 * 86_400_000 for n in numbers]
        elif pa.types.is_date32(coarse):
            numbers = [n % 2**30 for n in numbers]
        width = pa.int32() if coarse.bit_width == 32 else pa.int64()
        array = pa.array(numbers, width).view(coarse)
    records = xt.from_arrow(pa.table({"x": array}))
    spec = xt.spec_from_schema(pa.schema({"x": types[1]}))
    try:
        want = array.cast(fine)
    except pa.ArrowInvalid:  # an overflow
        with pytest.raises(errors.DTypeError, match="x: expected"):
            spec.cast(records)
        return
    if pa.types.is_decimal(fine):
        wanted = [int(n.as_py().scaleb(fine.scale)) for n in want]
        if max(wanted) >= 2**63:
            with pytest.raises(errors.DTypeError, match="x: expected"):
                spec.cast(records)
            return
    else:
        wanted = want.view(pa.int32() if fine.bit_width == 32 else pa.int64()).to_pylist()
    assert spec.cast(records)["x"].numpy().tolist() == wanted


def test_the_variants_of_a_union_change_each():
    def union(arrow):
        codes, offsets = pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32())
        parts = [column(arrow)[:2], pa.array(["a"])]
        return xt.from_arrow(pa.table({
            "x": pa.UnionArray.from_dense(codes, offsets, parts, ["when", "text"])
        }))  # fmt: skip

    coarse, fine, other = map(union, (pa.timestamp("s"), pa.timestamp("us"), pa.date32()))
    assert xt.spec_of(coarse) != xt.spec_of(fine)
    assert xt.spec_of(fine).cast(coarse).to_py() == coarse.to_py()
    assert tf.concat([fine, coarse], 0).to_py() == fine.to_py() + coarse.to_py()
    assert tf.concat([other, coarse], 0).to_py()[0]["x"] == dt.datetime(1970, 1, 4)
    with pytest.raises(errors.DTypeError, match=r"x: expected"):
        xt.spec_of(coarse).cast(fine)


def test_a_spec_written_by_hand_has_units():
    spec = xt.DenseStructuredTensorSpec(
        [None],
        {
            "when": tf.TensorSpec([None], tf.int64),
            "days": tf.RaggedTensorSpec([None, None], tf.int32),
            "price": tf.TensorSpec([None], tf.int64),
        },
        types={"when": "timestamp[us, tz=UTC]", "days": "date32", "price": pa.decimal128(9, 2)},
    )
    schema = {"days": pa.list_(pa.date32()), "price": pa.decimal64(12, 2)}
    schema = pa.schema({"when": pa.timestamp("us", "UTC"), **schema})
    assert spec == xt.spec_from_schema(schema)
    rows = [{
        "when": dt.datetime(2026, 5, 1, tzinfo=dt.timezone.utc),
        "days": [dt.date(2026, 5, 1)], "price": decimal.Decimal("1.25"),
    }]  # fmt: skip
    made = spec.cast(rows)
    assert made.to_py() == rows
    assert xt.to_arrow(made).schema.field("days").type == pa.list_(pa.date32())
    with pytest.raises(errors.DTypeError, match=r"types: x: expected a type of Arrow"):
        xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])}, {"x": "timestamp[m]"})
    with pytest.raises(errors.DTypeError, match=r"types: x: expected a field of integers"):
        xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])}, {"x": "timestamp[s]"})
    with pytest.raises(errors.FieldError, match="y"):
        xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])}, {"y": "date32"})


@pytest.mark.parametrize("types", FINER[:3], ids=str)
def test_the_laws_hold_with_units(types):
    xt.testing.check_extension_type([records(arrow, "lists") for arrow in types])


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_with_another_name_keeps_its_meaning(kind):
    for make in (lambda r: r, rows):
        given_ = make(records(pa.decimal128(10, 2), kind))
        renamed = xt.struct.rename(given_, {"x": "y"})
        assert xt.struct.rename(renamed, {"y": "x"}).to_py() == given_.to_py()


Dense = xt.DenseStructuredTensor
REPLACED = {  # an update replaces a field: it joins nothing
    "a field": (lambda ours, theirs: ours.with_updates(x=theirs["x"]), "x"),
    "records": (lambda ours, theirs: ours.with_updates(r=theirs), "r.x"),
    "masked records": (
        lambda ours, theirs: ours.with_updates(
            r=xt.types.MaskedTensor(theirs, [True, True, True])
        ),
        "r.x",
    ),
    "records in records": (
        lambda ours, theirs: Dense([3], {"r": ours}).with_updates({"r.s": theirs}), "r.s.x",
    ),
    "records in place of records": (
        lambda ours, theirs: Dense([3], {"r": ours}).with_updates({"r": theirs}), "r.x",
    ),
    "records in lists": (
        lambda ours, theirs: Dense([2], {"l": rows(ours)}).with_updates({"l": rows(theirs)}), "l.x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["flat", "lists"])
@pytest.mark.parametrize("types", FINER + APART, ids=str)
@pytest.mark.parametrize("way", REPLACED)
def test_an_update_with_records_has_their_meaning(way, types, kind):
    ours, theirs = (records(arrow, kind) for arrow in types)
    update, path = REPLACED[way]
    wanted = theirs.arrow_types["x"]
    if way == "a field":  # a plain tensor has no meaning: it takes that of the field, if it fits
        wanted = ours.arrow_types["x"] if ours["x"].dtype == theirs["x"].dtype else None
    made = update(ours, theirs)
    *above, name = path.split(".")
    inner = made.field_value(tuple(above)) if above else made
    while not isinstance(inner, Dense):
        inner = inner.values
    assert inner.arrow_types.get(name) == wanted
    parts = (tf.nest.flatten(x, expand_composites=True) for x in (inner[name], theirs["x"]))
    found, given_ = ([part.numpy().tolist() for part in each] for each in parts)
    assert found == given_
