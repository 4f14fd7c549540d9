"""Generic classes, aliases and fields without an argument: as specs, and back as objects."""

import dataclasses
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import attrs
import pytest
import tensorflow as tf
from typing_extensions import TypedDict

import extensor as xt
from extensor.errors import DTypeError, StructureError, UnsupportedTypeError

T = TypeVar("T")
K = TypeVar("K")
spec_from = xt.struct.spec_from
constant = xt.struct.constant


@dataclasses.dataclass
class Box(Generic[T]):
    value: T
    items: list[T]
    other: T | None = None


@attrs.define
class AttrsBox(Generic[T]):
    value: T
    items: list[T]
    other: T | None = None


class DictBox(TypedDict, Generic[T]):
    value: T
    items: list[T]
    other: T | None


@dataclasses.dataclass
class Shelf(Generic[K, T]):
    key: K
    boxes: list[Box[T]]
    first: Box[K]


@dataclasses.dataclass
class IntBox(Box[int]):
    label: str = ""


@dataclasses.dataclass
class Labeled(Box[K], Generic[K, T]):
    label: T | None = None


INTS = {
    "value": tf.TensorSpec([None], tf.int32),
    "items": tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64),
    "other": xt.types.MaskedTensor.Spec(tf.TensorSpec([None], tf.int32)),
}


@pytest.mark.parametrize("box", [Box, AttrsBox, DictBox])
@pytest.mark.parametrize("shape", [[None], []])
def test_a_generic_class_has_the_types_that_it_is_given(box, shape):
    if shape:
        assert dict(spec_from(box[int]).field_specs) == INTS
    objects = [box(value="a", items=["b"], other=None), box(value="", items=[], other="c")]
    value = objects if shape else objects[0]
    records = constant(value, spec_from(box[str], shape))
    assert records["value"].dtype == tf.string
    assert records.to_objects(box[str]) == value


def test_a_generic_named_tuple_and_pydantic_class():
    try:

        class Pair(NamedTuple, Generic[T]):
            first: T
            rest: list[T]

        pair = Pair
    except TypeError:  # Python 3.10
        pair = None
    if pair is not None:
        objects = [pair(1.5, [2.0])]
        assert constant(objects, spec_from(pair[float])).to_objects(pair[float]) == objects
    pydantic = pytest.importorskip("pydantic", reason="pydantic is optional")

    class Model(pydantic.BaseModel, Generic[T]):
        value: T
        items: list[T]

    class Named(Model[int]):
        name: str

    models = [Model[int](value=1, items=[2])]
    assert spec_from(Model[int]).field_specs["items"].dtype == tf.int32
    assert constant(models, spec_from(Model[int])).to_objects(Model[int]) == models
    named = [Named(value=1, items=[], name="n")]
    assert constant(named, spec_from(Named)).to_objects(Named) == named


def test_generic_classes_in_each_other_and_their_subclasses():
    spec = spec_from(Shelf[str, float])
    assert spec.field_spec("boxes.items").dtype == tf.float32
    assert spec.field_spec("first.items").dtype == tf.string
    shelves = [Shelf("k", [Box(1.5, [2.5])], Box("x", ["y"]))]
    assert constant(shelves, spec).to_objects(Shelf[str, float]) == shelves
    boxes = [IntBox(1, [2], None, "l")]
    assert spec_from(IntBox).field_specs["items"].dtype == tf.int32
    assert constant(boxes, spec_from(IntBox)).to_objects(IntBox) == boxes
    labeled = [Labeled(1.0, [], 2.0, "l")]
    assert constant(labeled, spec_from(Labeled[float, str])).to_objects(Labeled[float, str]) == (
        labeled
    )
    assert spec_from(spec.python_class()) == spec


@pytest.mark.parametrize(
    ("cls", "error", "says"),
    [
        (Box, UnsupportedTypeError, r"^value: .*got ~T\. Give the generic class its types"),
        (Shelf, UnsupportedTypeError, r"^key: .*got ~K"),
        (Generic[T], DTypeError, r"a dataclass, .*got typing.Generic\[~T\]"),
        (list[IntBox], DTypeError, r"Give the class: spec_from\(IntBox\); shape="),
        (Box[int] | None, DTypeError, r"Give the class: spec_from\(Box\[int\]\)"),
        (Annotated[IntBox, (2,)], DTypeError, r"Give the class: spec_from\(IntBox\)"),
        (IntBox(1, []), DTypeError, r"Give the class of the object: spec_from\(IntBox\)"),
        ("IntBox", DTypeError, "got 'IntBox'"),
        (Any, DTypeError, "got Any|got typing.Any"),
        (None, DTypeError, "got None"),
        (dict[str, int], DTypeError, r"got dict\[str, int\]"),
    ],
)
def test_what_is_no_class_is_an_error_that_says_what_to_give(cls, error, says):
    with pytest.raises(error, match=says):
        spec_from(cls)


@dataclasses.dataclass
class Tree(Generic[T]):
    value: T
    children: "list[Tree[T]]"


def test_a_generic_class_that_contains_itself_is_an_error():
    with pytest.raises(StructureError, match=r"^children: .*Tree\[int\] -> Tree\[int\]"):
        spec_from(Tree[int])


# Fields that are not arguments of the constructor, or have another name there.


@dataclasses.dataclass(frozen=True)
class Area:
    width: float
    height: float
    area: float = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "area", self.width * self.height)


@attrs.define
class AttrsArea:
    width: float
    area: float = attrs.field(init=False, default=0.0)


def test_fields_without_an_argument_come_back():
    areas = [Area(2.0, 3.0), Area(1.0, 4.0)]
    assert constant(areas, spec_from(Area)).to_objects(Area) == areas
    one = AttrsArea(2.0)
    one.area = 7.0
    assert constant([one], spec_from(AttrsArea)).to_objects(AttrsArea) == [one]


def test_aliases_of_pydantic_are_given_to_its_constructor():
    pydantic = pytest.importorskip("pydantic", reason="pydantic is optional")

    class Aliased(pydantic.BaseModel):
        a: int = pydantic.Field(alias="A")
        b: float = pydantic.Field(validation_alias=pydantic.AliasChoices("B", "bb"))
        c: Annotated[int, pydantic.Field(gt=0)] = 1

    class ByName(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(populate_by_name=True)
        a: int = pydantic.Field(alias="A")

    objects = [Aliased(A=3, B=1.5, c=2)]
    assert constant(objects, spec_from(Aliased)).to_objects(Aliased) == objects
    named = [ByName(a=3)]
    assert constant(named, spec_from(ByName)).to_objects(ByName) == named
