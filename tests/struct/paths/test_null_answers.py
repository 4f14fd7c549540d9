"""has, is_null and singletons depend on the data only, not on what else may be null."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt

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
