"""has, is_null and singletons depend on the data only, not on what else may be null."""

import re

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, FieldError, StructureError

S = xt.struct
PLACES = ("steps", "steps[*]", "steps[*].x", "steps[*].l", "steps[*].l[*]")


def or_none(values):
    return st.none() | values


step = st.fixed_dictionaries(
    {
        "x": or_none(st.integers(0, 3)),
        "l": or_none(st.lists(or_none(st.integers(0, 3)), max_size=2)),
    }
)
record = st.fixed_dictionaries({"steps": or_none(st.lists(or_none(step), max_size=3))})

FULL = {"steps": [{"x": 1, "l": [1]}]}  # shows the types


def nulls_in(plain):
    """Returns the places that have a null."""
    found = set()
    for row in plain:
        steps = row["steps"]
        found |= {"steps"} if steps is None else set()
        for each in steps or []:
            if each is None:
                found.add("steps[*]")
                continue
            found |= {f"steps[*].{name}" for name in ("x", "l") if each[name] is None}
            found |= {"steps[*].l[*]"} if None in (each["l"] or []) else set()
    return found


def each_step(plain, function):
    return [
        [function(each or {"x": None, "l": None}) for each in row["steps"] or []] for row in plain
    ]


def listed(value):
    if hasattr(value, "to_py"):
        return value.to_py()
    return value.to_list() if isinstance(value, tf.RaggedTensor) else value.numpy().tolist()


QUESTIONS = {
    "has x": (lambda r, t: S.has(r, "steps.x", t), lambda s: s["x"] is not None),
    "has l": (lambda r, t: S.has(r, "steps.l", t), lambda s: bool(s["l"])),
    "x is null": (lambda r, t: S.is_null(r, "steps.x", t), lambda s: s["x"] is None),
    "singles": (
        lambda r, t: S.singletons(r, "steps.x", t)["steps.x"],
        lambda s: [] if s["x"] is None else [s["x"]],
    ),
}


@pytest.mark.parametrize(
    "in_graph",
    [False, pytest.param(True, marks=pytest.mark.whole("traces each example"))],
)
@given(st.data())
def test_answers_do_not_depend_on_which_other_places_may_be_null(in_graph, data):
    plain = [*data.draw(st.lists(record, max_size=3)), FULL]
    others = data.draw(st.sets(st.sampled_from(PLACES)))
    records = S.constant(plain, nulls=dict.fromkeys(nulls_in(plain) | others, "mask"))
    name = data.draw(st.sampled_from(sorted(QUESTIONS)))
    ask, answer = QUESTIONS[name]
    found = tf.function(ask, autograph=False)(records, None) if in_graph else ask(records, None)
    assert without_none(listed(found)) == each_step(plain, answer)


def without_none(value):
    """Returns lists with empty ones in place of None: the field of a null list is null."""
    if isinstance(value, list):
        return [without_none(item) for item in value]
    return [] if value is None else value


@given(st.data())
def test_a_target_gets_the_answers(data):
    plain = [*data.draw(st.lists(record, max_size=3)), FULL]
    others = data.draw(st.sets(st.sampled_from(PLACES)))
    records = S.constant(plain, nulls=dict.fromkeys(nulls_in(plain) | others, "mask"))
    ask, answer = QUESTIONS[data.draw(st.sampled_from([n for n in QUESTIONS if n != "singles"]))]
    assert ask(records, "steps.new").to_py() == [
        {"steps": row["steps"] and [
            each and {**each, "new": answer(each)} for each in row["steps"]
        ]}
        for row in plain
    ]  # fmt: skip
    assert ask(records, "new").to_py() == [
        {**row, "new": new} for row, new in zip(plain, each_step(plain, answer), strict=True)
    ]


@pytest.mark.whole("five seconds: each example has four policies")
@given(st.lists(record, max_size=3), st.booleans())
def test_the_rank_of_is_null_of_lists_is_that_of_the_lists_own_mask(plain, of_lists):
    plain = [*plain, FULL]
    plain = [
        {"steps": row["steps"] and [
            each if of_lists or each is None else {**each, "l": each["l"] or []}
            for each in row["steps"]
        ]}
        for row in plain
    ]  # fmt: skip
    needed = nulls_in(plain) | {"steps[*].l" if of_lists else "steps[*].l[*]"}
    for others in ({"steps"}, {"steps[*]"}, {"steps", "steps[*]"}, set()):
        records = S.constant(plain, nulls=dict.fromkeys(needed | others, "mask"))
        wanted = (
            each_step(plain, lambda s: s["l"] is None)
            if of_lists
            else each_step(plain, lambda s: [item is None for item in s["l"] or []])
        )
        assert listed(S.is_null(records, "steps.l")) == wanted


def kept(row, name):
    steps = row["steps"]
    return {"steps": steps and [each for each in steps if each and each[name] is not None]}


@given(st.data(), st.sampled_from(["x", "l"]))
def test_drop_null_by_a_field_keeps_the_records_whose_field_is_not_null(data, name):
    plain = [*data.draw(st.lists(record, max_size=3)), FULL]
    others = data.draw(st.sets(st.sampled_from(PLACES)))
    records = S.constant(plain, nulls=dict.fromkeys(nulls_in(plain) | others, "mask"))
    wanted = [kept(row, name) for row in plain]
    assert S.drop_null(records, "steps", by=name).to_py() == wanted
    flat = S.explode(records, "steps")
    rows = [each["steps"] for each in flat.to_py()]
    assert S.drop_null(flat, (), by=("steps", name)).to_py() == [
        {"steps": each} for each in rows if each and each[name] is not None
    ]


def test_the_field_that_was_null_has_no_mask_after_drop_null():
    plain = [{"steps": [{"x": 1}, {"x": None}, None]}, {"steps": None}]
    records = S.constant(plain, nulls="mask")
    dropped = S.drop_null(S.drop_null(records, (), by="steps"), "steps", by="x")
    assert dropped["steps", "x"].to_list() == [[1]]
    grid = tf.expand_dims(S.explode(records, "steps"), 0)  # records of rank 2
    assert S.drop_null(grid, (), by="steps.x").to_py() == [[{"steps": {"x": 1}}]]
    traced = tf.function(lambda r: S.drop_null(r, "steps", by="x"), autograph=False)
    assert traced(records).to_py() == [{"steps": [{"x": 1}]}, {"steps": None}]


@pytest.mark.parametrize(
    ("path", "by", "error", "text"),
    [
        ("x", "y", DTypeError, "x: expected a list of records, whose field may be null"),
        ("steps", "l.z", FieldError, "l"),
        ("steps", "in.z", StructureError, "Give the path of that list: 'steps.in'."),
        ("steps", (), FieldError, "Leave out `by` to drop the records that are null."),
    ],
)
def test_drop_null_by_what_is_no_field_of_the_records(path, by, error, text):
    row = {"x": [1], "steps": [{"l": [1], "in": [{"z": 1}]}]}
    with pytest.raises(error, match=re.escape(text)):
        S.drop_null(S.constant([row]), path, by=by)


@pytest.mark.parametrize("name", ["x", ("in", "x")])
def test_apply_replaces_a_field_that_exists(name):
    records = S.constant([{"x": 1, "y": 5, "in": {"x": 1}}, {"x": 2, "y": 6, "in": {"x": 2}}])
    doubled = S.apply(records, lambda x: x * 2, [name], name)
    assert doubled[name].numpy().tolist() == [2, 4]
    assert doubled.field_names() == records.field_names()
    other = "in.x" if name == "x" else "x"
    assert doubled[other].numpy().tolist() == [1, 2]


def test_an_error_for_the_empty_string_says_what_the_root_is():
    records = S.constant([{"x": [1]}])
    for call in (
        lambda: S.drop_null(records, ""),
        lambda: S.is_null(records, ""),
        lambda: S.group_by(records, "", by="x"),
        lambda: records[""],
    ):
        with pytest.raises(FieldError, match=re.escape("the path of the records themselves is ()")):
            call()
    named = xt.DenseStructuredTensor([1], {"": tf.constant([[1]])})
    assert S.num(named, "").numpy().tolist() == [1]
    for call in (lambda: records.without(()), lambda: records.with_updates({(): 1})):
        with pytest.raises(FieldError, match=re.escape("got (), the path of the records")):
            call()
