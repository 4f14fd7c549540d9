"""Unions and dates in classes: specs, objects in, and objects out."""

import dataclasses
import datetime
import uuid
from typing import Annotated, Literal, NamedTuple, TypedDict

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, UnsupportedTypeError
from extensor.types import MaskedTensor, UnionTensor

T, R = tf.TensorSpec, tf.RaggedTensorSpec
spec_from = xt.struct.spec_from
NULL = MaskedTensor.Spec(T([None]))


@dataclasses.dataclass
class Circle:
    r: float


@dataclasses.dataclass
class Square:
    side: float
    name: str


class Mark(NamedTuple):
    word: str


def class_of(hint):
    return dataclasses.make_dataclass("Made", [("a", hint)])


UNIONS = [
    (int | str, {"int": T([None], tf.int32), "string": T([None], tf.string)}),
    (int | str | None, {"int": T([None], tf.int32), "string": T([None], tf.string), "null": NULL}),
    (list[int] | str, {"list": R([None, None], tf.int32), "string": T([None], tf.string)}),
    (list[int] | list[list[int]], {"list": R([None, None], tf.int32),
                                   "list2": R([None, None, None], tf.int32)}),
    (bool | float, {"bool": T([None], tf.bool), "float": T([None])}),
    (int | float, {"int": T([None], tf.int32), "float": T([None])}),
    (Annotated[int, tf.int64] | Literal["a", "b"],
     {"int": T([None], tf.int64), "string": T([None], tf.string)}),
    (Mark | int, {"record": xt.DenseStructuredTensorSpec([None], {"word": T([None], tf.string)}),
                  "int": T([None], tf.int32)}),
    (Circle | Square | None, {
        "Circle": xt.DenseStructuredTensorSpec([None], {"r": T([None])}),
        "Square": xt.DenseStructuredTensorSpec(
            [None], {"side": T([None]), "name": T([None], tf.string)}),
        "null": NULL}),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "variants"), UNIONS)
@pytest.mark.parametrize("shape", [[None], [], [2, 3]])
def test_a_union_of_types_is_a_union_and_a_class_again(hint, variants, shape):
    spec = spec_from(class_of(hint), shape)
    assert spec.field_specs["a"] == UnionTensor.Spec(variants, shape)
    assert spec.field_specs["a"].names == tuple(variants)
    assert spec_from(spec.python_class(), shape) == spec
    assert eval(repr(spec), {"xt": xt, "tf": tf}) == spec


def test_lists_of_unions_are_ragged_unions_and_a_class_again():
    @dataclasses.dataclass
    class Words:
        a: list[int | str]
        b: list[list[int | str]]
        c: Annotated[list[int | str], (3,)]
        d: list[Mark | Circle | None] | None

    spec = spec_from(Words)
    assert spec.field_specs["a"].shape.as_list() == [None, None]
    assert spec.field_specs["b"].codes == R([None, None, None], tf.int8)
    assert spec.field_specs["c"].shape.as_list() == [None, 3]
    assert spec_from(spec.python_class()) == spec
    objects = [Words([1, "x"], [[], ["y", 2]], [1, 2, "z"], [Mark("q"), None, Circle(1.0)])]
    objects.append(Words([], [], ["z", 2, "z"], None))
    for records in (xt.struct.constant(objects, spec), spec.cast(objects)):
        assert records.to_objects(Words) == objects
        assert xt.spec_of(records).is_subtype_of(spec)


def test_a_union_with_other_names_stays_as_it_is():
    variants = {"grams": T([None]), "text": T([None], tf.string)}
    spec = xt.DenseStructuredTensorSpec([None], {"a": UnionTensor.Spec(variants)})
    assert spec_from(spec.python_class()) == spec
    one = xt.DenseStructuredTensorSpec([None], {"a": UnionTensor.Spec({"int": T([None])})})
    assert spec_from(one.python_class()) == one


@dataclasses.dataclass
class Drawing:
    shape: Circle | Square | None
    size: int | str
    tags: list[str] | str
    when: datetime.date | datetime.datetime | int | None
    id: uuid.UUID


DRAWINGS = [
    Drawing(Circle(1.5), 3, ["a", "b"], datetime.date(2020, 1, 2), uuid.UUID(int=3)),
    Drawing(None, "big", "c", 5, uuid.UUID(int=4)),
    Drawing(Square(2.0, "s"), "ä", [], datetime.datetime(2020, 1, 2, 3), uuid.UUID(int=5)),
    Drawing(Circle(2.5), 0, "", None, uuid.UUID(int=6)),
]


@pytest.mark.parametrize("shape", [[None], [2, 2], []])
def test_objects_with_unions_come_back(shape):
    spec = spec_from(Drawing, shape)
    value = {0: DRAWINGS[2], 1: DRAWINGS, 2: [DRAWINGS[:2], DRAWINGS[2:]]}[len(shape)]
    for records in (xt.struct.constant(value, spec), spec.cast(value)):
        assert xt.spec_of(records).is_subtype_of(spec)
        assert records.to_objects(Drawing) == value


def test_objects_with_unions_come_back_from_arrow_and_lists():
    @dataclasses.dataclass
    class Page:
        drawings: list[Drawing]
        first: Drawing | None

    spec = spec_from(Page)
    pages = [Page(DRAWINGS[:3], DRAWINGS[3]), Page([], None)]
    records = spec.cast(pages)
    assert records.to_objects(Page) == pages
    again = xt.from_arrow(xt.to_arrow(records), nulls={"first": "mask"})
    assert again.to_objects(Page) == pages
    assert [row["when"] for row in xt.to_arrow(records).to_pylist()[0]["drawings"]] == [
        drawing.when for drawing in DRAWINGS[:3]
    ]


def test_dates_and_times_go_in_as_objects_and_come_back():
    class Event(TypedDict):
        at: datetime.datetime
        day: datetime.date
        start: datetime.time
        took: datetime.timedelta | None
        days: list[datetime.date]

    day = datetime.date(2020, 1, 2)
    event = Event(
        at=datetime.datetime(2020, 1, 2, 3, 4, 5, 6),
        day=day,
        start=datetime.time(1, 2),
        took=None,
        days=[day, day],
    )
    later = Event({**event, "took": datetime.timedelta(seconds=1), "days": []})
    spec = spec_from(Event)
    records = spec.cast([event, later])
    assert records.to_objects(Event) == [event, later]
    assert xt.to_arrow(records).to_pylist() == [event, later]
    again = spec_from(spec.python_class())
    assert again == spec
    assert again.cast([event]).to_objects(Event) == [event]
    assert spec.field_specs["at"].dtype == tf.int64
    assert spec.field_specs["day"].dtype == tf.int32
    with pytest.raises(DTypeError, match=r"^day, record 0: expected date32\[day\], got datetime"):
        spec.cast([{**event, "day": event["at"]}])


@pytest.mark.parametrize(
    ("hint", "says"),
    [
        (str | bytes, r"^a: expected a union of types that a value shows.*got str \| bytes"),
        (list[int] | list[str], r"^a: .*got list\[int\] \| list\[str\].*list\[int \| str\]"),
        (np.int8 | int, "^a: expected a union of types that a value shows"),
        (object | int, "^a: expected a type that tensors can hold, got object"),
        (Circle | list, r"^a: expected a list with the type of its items"),
    ],
)
def test_a_union_that_values_do_not_tell_apart_is_an_error(hint, says):
    with pytest.raises(UnsupportedTypeError, match=says):
        spec_from(class_of(hint))


def test_records_of_other_variants_are_an_error():
    made = class_of(int | str)
    records = xt.struct.constant([{"a": 1}, {"a": True}], conflicts="union")
    with pytest.raises(DTypeError, match=r"^Made\.a: .* int, string, got .* the variant bool"):
        records.to_objects(made)
    with pytest.raises(DTypeError, match=r"got values of one type.*spec_from"):
        xt.struct.constant([{"a": 1}]).to_objects(made)
    wide = class_of(float | str)
    ints = xt.struct.constant([{"a": 1}, {"a": "x"}], conflicts="union")
    assert [each.a for each in ints.to_objects(wide)] == [1, "x"]


def test_a_pydantic_class_with_unions_takes_its_objects():
    pydantic = pytest.importorskip("pydantic", reason="pydantic is optional")

    class Item(pydantic.BaseModel):
        value: int | str | None
        parts: list[Mark | Circle]
        at: datetime.datetime

    objects = [
        Item(value=1, parts=[Circle(1.0)], at=datetime.datetime(2020, 1, 2)),
        Item(value=None, parts=[Mark("x")], at=datetime.datetime(2021, 1, 2)),
    ]
    spec = spec_from(Item)
    assert spec_from(spec.python_class()) == spec
    assert spec.cast(objects).to_objects(Item) == objects
