"""Classes with annotated fields as specs, and records as their objects."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import typing
import uuid
from typing import Annotated, Literal, NamedTuple, TypedDict

import attrs
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from typing_extensions import NotRequired, Required

import extensor as xt
from extensor.errors import DTypeError, FieldError, StructureError, UnsupportedTypeError

T, R = tf.TensorSpec, tf.RaggedTensorSpec
Dense, Ragged = xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec
Masked = xt.types.MaskedTensor.Spec
spec_from = xt.struct.spec_from


class Unit(enum.Enum):
    CUP = "cup"
    GRAM = "g"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class DataStep:
    minutes: float
    tools: list[str]


@attrs.define
class AttrsStep:
    minutes: float
    tools: list[str]


class TupleStep(NamedTuple):
    minutes: float
    tools: list[str]


class DictStep(TypedDict):
    minutes: float
    tools: list[str]


STEP = {"minutes": T([None]), "tools": R([None, None], tf.string)}
STEPS = [DataStep, AttrsStep, TupleStep, DictStep]


@pytest.mark.parametrize("cls", STEPS)
def test_every_kind_of_class_is_a_spec_and_takes_its_objects(cls):
    spec = spec_from(cls)
    assert spec == Dense([None], STEP)
    assert spec.field_names() == ("minutes", "tools")
    objects = [cls(minutes=1.5, tools=["pot"]), cls(minutes=2.0, tools=[])]
    for records in (xt.struct.constant(objects), xt.struct.constant(objects, spec)):
        assert xt.spec_of(records).is_subtype_of(spec)
        assert records.to_objects(cls) == objects
        assert records[0].to_objects(cls) == objects[0]


def test_a_pydantic_class_is_a_spec_and_takes_its_objects():
    pydantic = pytest.importorskip("pydantic", reason="pydantic is optional")

    class Step(pydantic.BaseModel):
        minutes: float
        tools: list[str]

    assert spec_from(Step) == Dense([None], STEP)
    objects = [Step(minutes=1.5, tools=["pot"])]
    assert xt.struct.constant(objects, spec_from(Step)).to_objects(Step) == objects


@dataclasses.dataclass
class Everything:
    flag: bool
    count: int
    title: str
    unit: Unit
    level: Level
    choice: Literal["a", "b"]
    step: DataStep
    steps: list[TupleStep]
    grid: list[list[int]]
    pair: tuple[int, int]
    many: tuple[float, ...]
    wide: Annotated[float, tf.float64]
    small: np.int8
    words: Annotated[list[Annotated[int, np.uint8]], (3,)]
    box: Annotated[list[list[float]], (2, None)]
    image: Annotated[object, T([4, 4])]


EVERYTHING = {
    "flag": T([None], tf.bool),
    "count": T([None], tf.int32),
    "title": T([None], tf.string),
    "unit": T([None], tf.string),
    "level": T([None], tf.int32),
    "choice": T([None], tf.string),
    "step": Dense([None], STEP),
    "steps": Ragged([None, None], Dense([None], STEP)),
    "grid": R([None, None, None], tf.int32),
    "pair": T([None, 2], tf.int32),
    "many": R([None, None], tf.float32),
    "wide": T([None], tf.float64),
    "small": T([None], tf.int8),
    "words": T([None, 3], tf.uint8),
    "box": T([None, 2, None]),
    "image": T([None, 4, 4]),
}


@pytest.mark.parametrize("shape", [[None], [], [2], [None, 3]])
def test_every_annotation_has_a_spec_that_is_a_class_again(shape):
    spec = spec_from(Everything, shape)
    assert spec.shape.as_list() == shape
    if shape == [None]:
        assert dict(spec.field_specs) == EVERYTHING
    assert spec_from(spec.python_class(), shape) == spec
    assert eval(repr(spec), {"xt": xt, "tf": tf}) == spec


def test_objects_of_every_annotation_come_back():
    one = Everything(
        True, 3, "ä", Unit.GRAM, Level.LOW, "b", DataStep(1.0, ["pot"]),
        [TupleStep(2.0, []), TupleStep(3.0, ["cup"])], [[1], []], (1, 2), (0.5,), 0.1, 4,
        [1, 2, 3], [[1.0], [2.0]], np.eye(4).tolist(),
    )  # fmt: skip
    for shape, value in [([None], [one, one]), ([], one), ([1, 2], [[one, one]])]:
        records = xt.struct.constant(value, spec_from(Everything, shape))
        assert records.to_objects(Everything) == value


@dataclasses.dataclass
class Nullable:
    a: int | None
    b: list[float | None]
    c: list[float] | None
    d: DataStep | None


def test_optional_is_masked():
    spec = spec_from(Nullable)
    mask = T([None], tf.bool)
    floats = R([None, None], tf.float32)
    assert dict(spec.field_specs) == {
        "a": Masked(T([None], tf.int32), mask),
        "b": Masked(floats, R([None, None], tf.bool)),
        "c": Masked(floats, mask),
        "d": Masked(Dense([None], STEP), mask),
    }
    assert spec_from(spec.python_class()) == spec
    assert eval(repr(spec), {"xt": xt, "tf": tf}) == spec


def test_dates_are_integers_and_come_back():
    @dataclasses.dataclass
    class Event:
        at: datetime.datetime
        day: datetime.date

    spec = spec_from(Event)
    assert dict(spec.field_specs) == {"at": T([None], tf.int64), "day": T([None], tf.int32)}
    records = xt.struct.constant([{"at": 1_000_000, "day": 1}], spec)
    assert records.to_objects(Event) == [
        Event(datetime.datetime(1970, 1, 1, 0, 0, 1), datetime.date(1970, 1, 2))
    ]


@dataclasses.dataclass
class Node:
    children: list[Node]


def made(annotation):
    return dataclasses.make_dataclass("Made", [("a", annotation)])


@pytest.mark.parametrize(
    ("cls", "error", "says"),
    [
        (Node, StructureError, "^children: .*contain itself.*got Node -> Node"),
        (int, DTypeError, "a dataclass, TypedDict, NamedTuple, attrs or pydantic class, got int"),
        (3, DTypeError, "a dataclass, .* got 3"),
        (made(list), UnsupportedTypeError, r"^a: .*such as list\[float\], got list"),
        (made(tuple[int, str]), UnsupportedTypeError, "^a: expected a list with the type"),
        (made(object), UnsupportedTypeError, r"^a: .*got object.*Annotated\[object, spec\]"),
        (
            made(decimal.Decimal),
            UnsupportedTypeError,
            r"^a: .*got Decimal.*Annotated\[Decimal, pa\.dec",
        ),
        (made(Literal["a", 1]), UnsupportedTypeError, "^a: expected values of one type"),
        (made("Unknown"), DTypeError, "Made: expected annotations whose names are defined"),
        (made(list[made(object)]), UnsupportedTypeError, r"^a\.a: "),
    ],
)
def test_a_class_without_a_spec_is_an_error_that_names_the_field(cls, error, says):
    with pytest.raises(error, match=says):
        spec_from(cls)


def test_a_class_with_other_fields_is_an_error():
    records = xt.struct.constant([{"x": 1}])
    with pytest.raises(FieldError, match="the fields of DataStep: minutes, tools, got x"):
        records.to_objects(DataStep)
    with pytest.raises(DTypeError, match=r"^to_objects: .*got int"):
        records.to_objects(int)
    with pytest.raises(FieldError, match="names of attributes, got 'a b'"):
        xt.spec_of(xt.struct.constant([{"a b": 1}])).python_class()


def test_names_of_attrs_aliases_and_nested_types_are_kept():
    @attrs.define
    class Private:
        _x: int
        y: typing.List[int]  # noqa: UP006  (the old name must work too)

    objects = [Private(1, [2])]
    assert xt.struct.constant(objects, spec_from(Private)).to_objects(Private) == objects


@pytest.mark.whole("starts a process")
def test_importing_extensor_does_not_import_pydantic(run_python):
    run_python(
        """
        import sys
        before = set(sys.modules)
        import extensor
        found = {name.split(".")[0] for name in set(sys.modules) - before}
        assert "pydantic" not in found, found
        """
    )


class Partial(TypedDict, total=False):
    title: Required[str]
    minutes: float
    tags: NotRequired[list[str] | None]


def test_a_key_that_may_be_missing_is_nullable():
    spec = spec_from(Partial, shape=[None])
    assert not isinstance(spec.field_specs["title"], Masked)
    rows = [{"title": "tea"}, {"title": "bread", "minutes": 30.0, "tags": ["dry"]}]
    assert spec.cast(rows).to_py() == [
        {"title": "tea", "minutes": None, "tags": None},
        {"title": "bread", "minutes": 30.0, "tags": ["dry"]},
    ]
    assert spec_from(spec.python_class(), shape=[None]) == spec
    with pytest.raises(FieldError, match="title"):
        spec.cast([{"minutes": 1.0}])


@pytest.mark.parametrize(
    ("arrow", "value"),
    [
        (pa.decimal128(10, 2), decimal.Decimal("1.25")),
        (pa.decimal32(5, 1), decimal.Decimal("-1.5")),
        (pa.decimal128(30, 2), decimal.Decimal("1234567890123456789012345.25")),
        (pa.timestamp("ms"), datetime.datetime(2020, 1, 1, 3)),
        (pa.timestamp("s", "UTC"), datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)),
        (pa.date64(), datetime.date(2020, 1, 1)),
        (pa.time32("s"), datetime.time(3, 4, 5)),
        (pa.duration("ns"), datetime.timedelta(1)),
        (pa.uuid(), uuid.UUID(int=7)),
    ],
)
def test_objects_have_the_values_of_to_py(arrow, value):
    schema = pa.schema({"x": arrow, "l": pa.list_(arrow)})
    rows = [{"x": value, "l": [value]}, {"x": value, "l": []}]
    records = xt.spec_from_schema(schema).cast(rows)
    spec = xt.spec_of(records).unstacked().stacked(None)
    cls = spec.python_class()
    assert xt.struct.spec_from(cls) == spec
    objects = records.to_objects(cls)
    assert [vars(each) for each in objects] == records.to_py()
    assert [each.x for each in objects] == [value] * 2
    assert spec.cast(objects).to_py() == records.to_py()


def test_decimals_are_given_to_fields_of_floats_and_unions_keep_their_types():
    prices = pa.table({"a": pa.array([decimal.Decimal("1.25")], pa.decimal128(5, 2))})
    assert xt.from_arrow(prices).to_objects(made(float))[0].a == 1.25
    dates = xt.struct.constant([{"a": datetime.date(2020, 1, 1)}, {"a": "x"}], conflicts="union")
    found = [each.a for each in dates.to_objects(made(datetime.date | str))]
    assert found == [datetime.date(2020, 1, 1), "x"]
