"""`xt.extension_type`: constructor, fields, inheritance, specs and variables."""

from __future__ import annotations

import abc
import collections
import copy
import dataclasses
import functools
import gc
import json
import pickle
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import pytest
import tensorflow as tf
from typing_extensions import TypeAliasType

import extensor as xt
from tests.samples.declared import STATIC, Counter, Course, Masked, Pantry, Rows, Scaled, labelled

if TYPE_CHECKING:
    from nowhere import Missing

ROOT = Path(__file__).parents[2]
T = TypeVar("T")
U = TypeVar("U")


def masked(values=(1.0, 2.0), mask=(True, False)):
    return Masked(values, mask)


def same(a, b):
    """Returns whether two values have equal components."""
    tensors, others = (xt.nest.flatten(x, expand_composites=True) for x in (a, b))
    return type(a) is type(b) and all(
        np.array_equal(x, y) for x, y in zip(tensors, others, strict=True)
    )


# A value.


def test_the_constructor_takes_fields_by_position_and_name():
    assert same(Masked([1.0], [True]), Masked(mask=[True], values=[1.0]))
    for wrong in (lambda: Masked([1.0]), lambda: Masked([1.0], [True], 3), lambda: Masked(a=1)):
        with pytest.raises(TypeError, match=r"Masked.__init__\(\)"):
            wrong()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: setattr(x, "values", 1),
        lambda x: setattr(x, "other", 1),
        lambda x: delattr(x, "values"),
        lambda x: setattr(x, "Spec", 1),
    ],
)
def test_a_value_cannot_be_changed(change):
    value = masked()
    with pytest.raises(AttributeError, match=r"Masked\.\w+: expected no .*immutable") as caught:
        change(value)
    assert isinstance(caught.value, xt.ExtensorError)
    assert same(value, masked())


def test_the_mend_for_an_assignment_is_replace():
    with pytest.raises(AttributeError, match=r"xt.replace\(value, values=...\)"):
        masked().values = 1
    with pytest.raises(AttributeError, match="Declare it as a field"):
        masked().note = 1


def test_a_repr_names_the_fields():
    assert repr(Rows([[1, 2, 3]])) == (
        "Rows(values=<tf.Tensor: shape=(1, 3), dtype=float32, "
        "numpy=array([[1., 2., 3.]], dtype=float32)>, unit='gram', tags=())"
    )


def test_values_match_patterns():
    match Scaled(masked(), 3.0):
        case Scaled(Masked(values, mask), factor):
            assert values.shape == mask.shape == [2]
            assert factor == 3.0
        case _:
            raise AssertionError


def test_values_are_equal_by_identity_and_specs_by_content():
    a, b = masked(), masked()
    assert a == a
    assert a != b
    assert len({a, b}) == 2
    assert a.__tf_type_spec__() == b.__tf_type_spec__()
    assert Masked([1], [True]).__tf_type_spec__() != a.__tf_type_spec__()


VALUES = {
    "masked": masked,
    "scaled": lambda: Scaled(masked(), factor=3),
    "rows": lambda: Rows([[1, 2, 3]], tags=["a"]),
    "pantry": lambda: Pantry(
        {"salt": 1.0, "oil": [2.0]},
        (tf.constant([3]), 4),
        [tf.ragged.constant([[1], []]), {"deep": (5, masked())}, Course.MAIN],
    ),
    "static": lambda: labelled("mapping"),
}
each = pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)


@each
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_values_and_specs_are_copied_and_pickled(make, copied):
    value = make()
    again = copied(value)
    assert again is not value
    assert same(again, value)
    assert again.__tf_type_spec__() == value.__tf_type_spec__()
    assert copied(value.__tf_type_spec__()) == value.__tf_type_spec__()


@each
def test_a_value_passes_through_functions_and_nests(make):
    value = make()
    spec = value.__tf_type_spec__()
    function = tf.function(lambda x: x)
    assert same(function(value), value)
    assert same(function(make()), value)
    assert function.experimental_get_tracing_count() == 1
    assert same(tf.function(lambda x: x, input_signature=[spec])(value), value)
    flat = xt.nest.flatten(value, expand_composites=True)
    assert same(xt.nest.pack_sequence_as(value, flat, expand_composites=True), value)
    assert same(tf.cond(tf.constant(True), lambda: value, make), value)
    assert same(tf.identity(value), value)


@each
def test_components_build_no_op(make):
    value = make()
    spec = value.__tf_type_spec__()
    with tf.Graph().as_default() as graph:
        again = spec.from_components(spec.to_components(value))
        assert graph.get_operations() == []
    assert same(again, value)
    tf.nest.assert_same_structure(spec.component_specs, spec.to_components(value))


def test_pickles_open_in_a_fresh_process(run_python, tmp_path):
    values = [make() for make in VALUES.values()]
    values += [labelled(kind) for kind in STATIC]
    path = tmp_path / "values.pickle"
    path.write_bytes(pickle.dumps([(value, value.__tf_type_spec__()) for value in values]))
    run_python(f"""
        import pickle
        with open({str(path)!r}, "rb") as file:
            pairs = pickle.load(file)
        for value, spec in pairs:
            assert value.__tf_type_spec__() == spec, (value, spec)
            assert hash(value.__tf_type_spec__()) == hash(spec)
        with open({str(path)!r}, "wb") as file:
            pickle.dump(pairs, file)
    """)
    for value, (again, spec) in zip(values, pickle.loads(path.read_bytes()), strict=True):
        assert same(again, value)
        assert spec == value.__tf_type_spec__()


# replace.


def test_replace_changes_some_fields_and_converts_them():
    value = xt.replace(Rows([[1, 2, 3]]), values=[[4, 5, 6]], tags=["a"])
    assert value.values.numpy().tolist() == [[4.0, 5.0, 6.0]]
    assert value.values.dtype == tf.float32
    assert (value.unit, value.tags) == ("gram", ("a",))
    if sys.version_info >= (3, 13):
        assert copy.replace(value, unit="cup").unit == "cup"


def test_replace_takes_the_other_fields_as_they_are():
    stacked = next(iter(tf.data.Dataset.from_tensors(Rows([[1, 2, 3]])).batch(1)))
    assert stacked.values.shape == [1, 1, 3]  # no longer what the annotation says
    assert xt.replace(stacked, unit="cup").values is stacked.values


def test_replace_of_an_unknown_field_is_an_error():
    with pytest.raises(
        KeyError, match=r"Masked\.msak: expected one of the fields mask, values, go"
    ):
        xt.replace(masked(), msak=[True])
    with pytest.raises(KeyError, match=r"Masked\.Spec"):
        xt.replace(masked(), Spec=1)
    with pytest.raises(TypeError, match=r"Masked\.values: expected a tf.Tensor"):
        xt.replace(masked(), values=tf.ragged.constant([[1]]))
    mere = dataclasses.make_dataclass("Mere", ["a"])
    for other in (3, Masked, mere(1), tf.constant(1)):
        with pytest.raises(TypeError, match=r"declared with xt.extension_type, got a"):
            xt.replace(other, a=2)


# Fields as dataclass has them.


@xt.extension_type
class Recipe:
    steps: tf.Tensor
    scale: dataclasses.InitVar[float] = 1.0
    planet: ClassVar[str] = "Earth"
    title: str = "soup"
    courses: tuple[Course, ...] = dataclasses.field(default_factory=lambda: [Course.MAIN])
    hidden: int = dataclasses.field(default=0, repr=False, compare=False, metadata={"a": 1})
    count: int = dataclasses.field(init=False)
    total: float = dataclasses.field(init=False, default=0)
    _: dataclasses.KW_ONLY
    notes: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self, scale):
        assert isinstance(self.steps, tf.Tensor)
        assert isinstance(self.courses, tuple)
        self.steps = self.steps * scale
        object.__setattr__(self, "count", np.int64(len(self.steps)))


def test_fields_follow_the_conventions_of_dataclass():
    recipe = Recipe([1.0, 2.0], 10, notes={"a": "b"})
    assert [f.name for f in dataclasses.fields(Recipe)] == [
        *("steps", "title", "courses", "hidden", "count", "total", "notes")
    ]
    assert recipe.steps.numpy().tolist() == [10.0, 20.0]
    assert recipe.courses == (Course.MAIN,)
    assert recipe.planet == "Earth"
    assert (type(recipe.count), recipe.count) == (int, 2)
    assert (type(recipe.total), recipe.total) == (float, 0.0)
    assert "hidden" not in repr(recipe)
    assert same(tf.function(lambda x: x)(recipe), recipe)
    assert same(pickle.loads(pickle.dumps(recipe)), recipe)
    again = xt.replace(recipe, steps=[1.0, 1.0, 1.0], scale=2)
    assert again.steps.numpy().tolist() == [2.0, 2.0, 2.0]
    assert again.count == 3
    assert again.notes == {"a": "b"}
    with pytest.raises(TypeError, match="positional argument"):
        Recipe([1.0], 1.0, "soup", (), 0, {})
    with pytest.raises(KeyError, match=r"Recipe.count: expected one of the fields"):
        xt.replace(recipe, count=3)
    with pytest.raises(AttributeError, match="immutable"):
        recipe.count = 3


def test_an_init_var_without_a_default_is_given_to_replace_too():
    @xt.extension_type
    class Cup:
        amount: tf.Tensor
        factor: dataclasses.InitVar[int]

        def __post_init__(self, factor):
            self.amount = self.amount * factor

    cup = Cup(1, 3)
    assert cup.amount.numpy() == 3
    assert xt.replace(cup, factor=2).amount.numpy() == 6
    with pytest.raises(KeyError, match=r"Cup.factor: expected a value for this InitVar"):
        xt.replace(cup, amount=2)


def test_mutable_defaults_are_safe():
    @xt.extension_type
    class Cup:
        amounts: tf.Tensor = [1, 2]  # noqa: RUF012
        notes: dict[str, list[int]] = {"a": [1]}  # noqa: RUF012
        table: np.ndarray = np.array([1])

    one, other = Cup(), Cup()
    assert one.notes == other.notes == {"a": (1,)}
    assert one.amounts.numpy().tolist() == [1, 2]
    assert one.table.tolist() == [1]


def test_a_field_without_a_default_after_one_with_is_keyword_only_with_all_after_it():
    @xt.extension_type
    class Cup:
        unit: str = "gram"
        amount: tf.Tensor
        other: int = 3
        last: tf.Tensor = dataclasses.field(repr=False)

    @xt.extension_type
    class Mug(Cup):
        handle: int

    cup = Cup("cup", other=4, amount=1, last=2)
    assert (cup.unit, cup.other) == ("cup", 4)
    assert Mug("cup", other=4, amount=1, last=2, handle=5).handle == 5
    with pytest.raises(TypeError, match="positional argument"):
        Cup("cup", 4, amount=1, last=2)
    with pytest.raises(TypeError, match="missing 2 required keyword-only"):
        Cup("cup")


def test_post_init_checks():
    @xt.extension_type
    class Pair:
        a: tf.Tensor
        b: tf.Tensor

        def __post_init__(self):
            self.a.shape.assert_is_compatible_with(self.b.shape)

    with pytest.raises(ValueError, match="Shapes"):
        Pair([1], [1, 2])
    with pytest.raises(ValueError, match="Shapes"):
        xt.replace(Pair([1], [2]), a=[1, 2])


def test_post_init_of_base_classes_may_be_called():
    calls = []

    class Mixin:
        def __post_init__(self):
            calls.append("mixin")

    @xt.extension_type
    class Base(Mixin):
        a: tf.Tensor

        def __post_init__(self):
            super().__post_init__()
            assert isinstance(self.a, tf.Tensor)
            calls.append("base")

    @xt.extension_type
    class Sub(Base):
        b: tf.Tensor

        def __post_init__(self):
            super().__post_init__()
            assert isinstance(self.b, tf.Tensor)
            calls.append("sub")

    @xt.extension_type
    class Quiet(Sub):
        c: int = 3

    Quiet(1, 2)
    assert calls == ["mixin", "base", "sub"]
    calls.clear()
    xt.replace(Sub(1, 2), a=3)
    assert calls == ["mixin", "base", "sub"] * 2

    @xt.extension_type
    class OnlyMixin(Mixin):
        a: tf.Tensor

    calls.clear()
    OnlyMixin(1)
    assert calls == ["mixin"]


def test_a_class_may_define_init():
    @xt.extension_type
    class Base:
        values: tf.Tensor
        mask: tf.Tensor
        unit: str = "gram"

        def __init__(self, pairs):
            self.values = [value for value, _ in pairs]
            self.mask = [is_valid for _, is_valid in pairs]

        def __post_init__(self):
            assert self.values.shape == self.mask.shape

    @xt.extension_type
    class Sub(Base):
        extra: tuple[int, ...]

        def __init__(self, pairs, *extra):
            super().__init__(pairs)
            self.extra = extra

    for value in (Base([(1.0, True)]), Sub([(1.0, True)], 3)):
        assert isinstance(value.values, tf.Tensor)
        assert value.unit == "gram"
        assert same(tf.function(lambda x: x)(value), value)
        assert same(copy.deepcopy(value), value)
        with pytest.raises(AttributeError):
            value.values = 1
        assert xt.replace(value, values=[2.0]).values.numpy().tolist() == [2.0]
    assert Sub([(1.0, True)], 3).extra == (3,)

    @xt.extension_type
    class Forgetful:
        a: tf.Tensor
        b: tf.Tensor

        def __init__(self, a):
            self.a = a

    with pytest.raises(
        KeyError, match=r"Forgetful.b: expected a value, got an unset field. Set self.b in"
    ):
        Forgetful(1)

    @xt.extension_type
    class Sloppy:
        a: tf.Tensor

        def __init__(self, a):
            self.other = a

    with pytest.raises(AttributeError, match=r"Sloppy.other.*Declare it as a field"):
        Sloppy(1)


def test_a_spec_that_init_asks_for_is_not_kept():
    @xt.extension_type
    class Pair:
        values: tf.Tensor

        def __init__(self, value):
            self.values = tf.constant(value)
            assert xt.spec_of(self).values.shape == []
            self.values = tf.stack([self.values, self.values])

    assert xt.spec_of(Pair(1.0)).values.shape == [2]


def test_a_generated_init_may_be_called_by_a_subclass_with_its_own():
    @xt.extension_type
    class Base:
        a: tf.Tensor

        def __post_init__(self):
            assert isinstance(self.a, tf.Tensor)

    @xt.extension_type
    class Sub(Base):
        b: tf.Tensor

        def __init__(self, both):
            super().__init__(both)
            self.b = both

        def __post_init__(self):
            super().__post_init__()
            assert isinstance(self.b, tf.Tensor)

    assert Sub(3).b.numpy() == 3


def test_methods_properties_and_caches_are_allowed():
    @xt.extension_type
    class Cup:
        amount: tf.Tensor

        @property
        def doubled(self):
            return self.amount * 2

        @functools.cached_property
        def tripled(self):
            return self.amount * 3

        @classmethod
        def empty(cls):
            return cls(0)

        def __eq__(self, other):
            return isinstance(other, Cup) and bool(self.amount == other.amount)

        __hash__ = None

    cup = Cup(2)
    assert (cup.doubled.numpy(), cup.tripled.numpy()) == (4, 6)
    assert Cup.empty().amount.numpy() == 0
    assert cup == Cup(2)
    assert tf.function(lambda x: x.tripled)(cup).numpy() == 6


# Inheritance.


def test_a_declared_subclass_adds_fields():
    @xt.extension_type
    class Weighted(Masked):
        weights: tf.Tensor
        mask: tf.Tensor | None = None

    value = Weighted([1.0], weights=[2.0])
    assert [f.name for f in dataclasses.fields(Weighted)] == ["values", "mask", "weights"]
    assert same(tf.function(lambda x: x)(value), value)
    assert not issubclass(Weighted.Spec, Masked.Spec)
    assert isinstance(value, Masked)
    assert Masked([1.0], [True]).__tf_type_spec__() != value.__tf_type_spec__()


def test_an_undeclared_subclass_is_an_error_rather_than_its_base():
    class Sub(Masked):
        def total(self):
            return tf.reduce_sum(self.values)

    with pytest.raises(TypeError, match=r"Sub: expected a declared class.*Masked.*@xt.extension_t"):
        Sub([1.0], [True])
    declared = xt.extension_type(Sub)
    value = tf.function(lambda x: x)(declared([1.0], [True]))
    assert type(value) is Sub
    assert value.total().numpy() == 1


def test_bases_may_be_abstract_or_plain_dataclasses_or_mixins():
    @dataclasses.dataclass(frozen=True)
    class Mere:
        unit: str

    class Shaped(abc.ABC):
        @property
        @abc.abstractmethod
        def shape(self): ...

    @xt.extension_type
    class Cup(Mere, Shaped):
        amount: tf.Tensor

        @property
        def shape(self):
            return self.amount.shape

    cup = Cup("gram", [1.0])
    assert cup.shape == [1]
    assert same(tf.function(lambda x: x)(cup), cup)
    with pytest.raises(TypeError, match=r"Cup.unit: expected a str"):
        Cup(3, [1.0])


def test_generic_types():
    @xt.extension_type
    class Box(Generic[T]):
        content: T
        label: str = "box"

    for content in (tf.constant(1), tf.ragged.constant([[1]]), "static"):
        box = Box[Any](content)
        assert type(box) is Box
        again = tf.function(lambda x: x)(box)
        assert type(again.content) is type(content) or isinstance(content, tf.Tensor)

    @xt.extension_type
    class IntBox(Box[int]):
        lid: tf.Tensor = 0

    assert IntBox(3).content == 3
    with pytest.raises(TypeError, match=r"IntBox.content: expected an int, got str"):
        IntBox("a")


def test_an_argument_for_a_type_variable_holds_in_the_fields_that_are_inherited():
    @xt.extension_type
    class Both(Generic[T, U]):
        one: T
        many: dict[str, tuple[U, ...]]
        text: str = "t"

    @xt.extension_type
    class Half(Both[tf.Tensor, U]):
        more: U

    @xt.extension_type
    class Whole(Half[Annotated[tf.Tensor, tf.TensorSpec(None, tf.float64)]]):
        pass

    @xt.extension_type
    class Below(Whole):
        """Adds nothing."""

    half = Half([1.0], {"a": ["x"]}, more="y")
    assert isinstance(half.one, tf.Tensor)
    assert (half.many, half.more) == ({"a": ("x",)}, "y")
    for cls in (Whole, Below):
        whole = cls([1.0], {"a": [1]}, more=2)
        assert (whole.one.dtype, whole.more.dtype) == (tf.float32, tf.float64)
        assert whole.many["a"][0].dtype == tf.float64
        again = tf.function(lambda x: x)(whole)
        assert type(again) is cls
        assert again.many["a"][0].numpy() == 1
        with pytest.raises(TypeError, match=rf"{cls.__name__}.more: expected dtype float64"):
            cls([1.0], {}, more=tf.constant(1.0))
        with pytest.raises(TypeError, match=r"Spec.one: expected a TypeSpec of"):
            cls.Spec(one=1, many={}, text="t", more=tf.TensorSpec([], tf.float64))
    # Without a type argument, the class still accepts any value.
    assert Both(1, {}).one == 1


def test_a_field_that_is_declared_again_keeps_its_own_annotation():
    @xt.extension_type
    class Base(Generic[T]):
        x: T

    @xt.extension_type
    class Narrow(Base[tf.Tensor]):
        x: int

    @xt.extension_type
    class Narrower(Narrow):
        pass

    assert (Narrow(1).x, Narrower(1).x) == (1, 1)


def test_a_type_argument_reaches_a_field_of_a_plain_dataclass_and_may_be_text():
    @dataclasses.dataclass(frozen=True)
    class Mere(Generic[T]):
        x: list[T]

    @xt.extension_type
    class Holder(Mere["Later"]):
        pass

    @xt.extension_type
    class Later:
        y: tf.Tensor

    assert Holder([Later(1)]).x[0].y.numpy() == 1
    with pytest.raises(TypeError, match=r"Holder.x\[0\]: expected a value of type .*Later"):
        Holder([1])


def test_a_generic_alias_checks_its_type_argument():
    couple = TypeAliasType("couple", tuple[T, T], type_params=(T,))  # `type couple[T] = ...`

    @xt.extension_type
    class Holder:
        pair: couple[tf.Tensor]

    assert all(isinstance(x, tf.Tensor) for x in Holder((1, 2)).pair)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no generic namedtuples")
def test_a_generic_namedtuple_checks_its_type_argument():
    class Couple(NamedTuple, Generic[T]):
        first: T
        second: str

    @xt.extension_type
    class Holder:
        pair: Couple[tf.Tensor]

    assert isinstance(Holder(Couple(1, "a")).pair.first, tf.Tensor)


# Annotations that are text: this file has `from __future__ import annotations`.


@xt.extension_type
class Tree:
    value: tf.Tensor
    children: tuple[Tree, ...] = ()
    later: Leaf | None = None


@xt.extension_type
class Leaf:
    value: tf.Tensor


def test_annotations_may_name_the_class_itself_and_later_ones():
    tree = Tree(1, (Tree(2), Tree(3, [Tree(4)])), Leaf(5))
    assert same(tf.function(lambda x: x)(tree), tree)
    assert tf.function(lambda x: x.children[1].children[0].value)(tree).numpy() == 4
    with pytest.raises(TypeError, match=r"Tree.children\[0\]: expected a value of type Tree"):
        Tree(1, [Leaf(1)])


def test_local_classes_may_name_each_other():
    @xt.extension_type
    class Node:
        value: tf.Tensor
        edge: Edge | None = None

    @xt.extension_type
    class Edge:
        node: Node

    value = Node(1, Edge(Node(2)))
    assert same(tf.function(lambda x: x)(value), value)
    assert Node._extensor_caller is None
    with pytest.raises(TypeError, match=r"Edge.node: expected a value of type .*Node"):
        Edge(3)


def test_an_undefined_name_in_an_annotation_is_an_error_when_a_value_is_made():
    @xt.extension_type
    class Cup:
        content: Missing

    with pytest.raises(TypeError, match=r"Cup.content: .*'Missing'.*if TYPE_CHECKING"):
        Cup(1)


def test_the_decorator_does_not_keep_the_callers_variables():
    class Big:
        pass

    def declare():
        big = Big()

        @xt.extension_type
        class Cup:
            content: tf.Tensor

        return Cup, weakref.ref(big)

    cup, big = declare()
    gc.collect()
    assert big() is None
    assert cup(1).content.numpy() == 1


# Declaring.


@pytest.mark.parametrize("name", ["Spec", "_type_spec", "_consumers", "_extensor_x", "__tf_x__"])
def test_reserved_names_are_an_error(name):
    cls = type("Cup", (), {"__annotations__": {name: "tf.Tensor"}})
    with pytest.raises(
        TypeError, match=rf"Cup\.{name}: expected a field name that is not reserved"
    ):
        xt.extension_type(cls)


def test_decorating_anything_but_a_class_with_a_dict_is_an_error():
    for wrong in (3, lambda: None, "Cup", type("Cup", (), {"__slots__": ()}), int):
        with pytest.raises(TypeError, match="extension_type: expected a class whose instances"):
            xt.extension_type(wrong)


def test_a_frozen_dataclass_is_an_error_that_names_the_decorator():
    with pytest.raises(xt.errors.ProtocolError, match=r"Cup: .* or the decorator @dataclass"):

        @xt.extension_type
        @dataclasses.dataclass(frozen=True)
        class Cup:
            amount: tf.Tensor


def test_a_field_may_be_called_self():
    cup = xt.extension_type(type("Cup", (), {"__annotations__": {"self": tf.Tensor}}))
    assert cup.Spec(self=tf.TensorSpec([1])) == xt.spec_of(cup([1.0]))


def test_a_name_for_the_registry():
    @xt.extension_type(name="cookbook.Cup")
    class Cup:
        amount: tf.Tensor

    spec = Cup(1).__tf_type_spec__()
    with pytest.warns(UserWarning, match="cookbook.Cup"):
        proto = spec.experimental_as_proto()
    assert proto.type_spec_class_name == "cookbook.Cup"
    assert tf.TypeSpec.experimental_from_proto(proto) == spec
    with pytest.raises(ValueError, match=r"'cookbook.Cup'"):

        @xt.extension_type(name="cookbook.Cup")
        class Other:
            amount: tf.Tensor


def test_a_local_class_without_a_name_is_not_registered():
    @xt.extension_type()
    class Cup:
        amount: tf.Tensor

    with pytest.raises(Exception, match=r"xt\.register_type_spec\(Cup\.Spec, "):
        Cup(1).__tf_type_spec__().experimental_as_proto()


# Specs.


def test_a_spec_is_made_by_hand():
    values, mask = tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool)
    spec = Masked.Spec(values, mask=mask)
    assert spec == masked().__tf_type_spec__()
    assert (spec.values, spec.mask) == (values, mask)
    assert spec.value_type is Masked
    assert repr(spec) == f"Masked.Spec(values={values!r}, mask={mask!r})"
    assert Scaled.Spec(spec, 2).factor == 2.0
    nested = Pantry.Spec({"a": values}, (mask, 3), {"b": [values, 4]})
    assert sorted(nested.component_specs) == ["amounts['a']", "anything['b'][0]", "pairs[0]"]
    assert nested.anything == {"b": (values, 4)}
    assert nested.pairs == (mask, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: Masked.Spec(s), r"Masked\.Spec\.mask: expected a spec or.*got no argument"),
        (lambda s: Masked.Spec(s, s, msak=s), r"Masked\.Spec\.msak: expected one of the fields"),
        (
            lambda s: Masked.Spec(s, s, s),
            r"Masked\.Spec: expected one part for each field.*3 parts",
        ),
        (lambda s: Masked.Spec(s, values=s), r"values twice"),
    ],
)
def test_a_spec_with_other_names_is_an_error(make, message):
    with pytest.raises(KeyError, match=message):
        make(tf.TensorSpec([2]))


def test_keys_that_look_alike_are_an_error():
    class Key:
        def __repr__(self):
            return "key"

    with pytest.raises(TypeError, match=r"Pantry.Spec: expected keys .* differ in their repr"):
        Pantry({}, (1, 1), {Key(): tf.constant(1), Key(): tf.constant(2)}).__tf_type_spec__()


def test_specs_are_merged_by_their_shapes_wherever_they_are():
    def spec(n, shape, k=4):
        return Pantry.Spec(
            {"a": tf.TensorSpec([n])}, (tf.TensorSpec([]), k), [shape, {"b": tf.TensorSpec([n, 1])}]
        )

    some = spec(None, tf.TensorShape([None]))
    assert spec(2, tf.TensorShape([2])).most_specific_compatible_type(
        spec(3, tf.TensorShape([3]))
    ) == spec(None, tf.TensorShape([None]))
    assert some.is_compatible_with(spec(3, tf.TensorShape([3])))
    assert spec(3, tf.TensorShape([3])).is_subtype_of(some)
    assert not some.is_subtype_of(spec(3, tf.TensorShape([3])))
    for other in (spec(2, tf.TensorShape([2]), k=5), spec(2, 3), masked().__tf_type_spec__(), None):
        assert spec(2, tf.TensorShape([2])).most_specific_compatible_type(other) is None
    function = tf.function(lambda x: x, reduce_retracing=True)
    for n in range(1, 5):
        function(Masked(tf.zeros([n]), tf.zeros([n], tf.bool)))
    assert function.experimental_get_tracing_count() == 2


def test_values_are_stacked_with_their_static_shapes():
    @xt.extension_type
    class Shaped:
        values: tf.Tensor
        ragged: tf.RaggedTensor
        inner: Masked
        shape: tf.TensorShape
        shapes: tuple[tf.TensorShape, ...]
        label: str = "a"

    rt = tf.ragged.constant([[1], [2, 3]])
    value = Shaped([[1.0], [2.0]], rt, masked(), [2, 1], ([2], [2, None]))
    (batch,) = tf.data.Dataset.from_tensors(value).repeat(3).batch(3, drop_remainder=True)
    assert batch.values.shape == [3, 2, 1]
    assert batch.shape == [3, 2, 1]
    assert batch.shapes == (tf.TensorShape([3, 2]), tf.TensorShape([3, 2, None]))
    assert batch.inner.values.shape == [3, 2]
    assert batch.ragged.shape.rank == 3
    for row in tf.data.Dataset.from_tensors(batch).unbatch():
        assert same(row, value)
    rows = [row.values.numpy().tolist() for row in tf.data.Dataset.from_tensor_slices(value)]
    assert rows == [[1.0], [2.0]]


def test_what_does_not_stack_is_an_error():
    counter = Counter(tf.Variable(1), tf.Variable(2))
    with pytest.raises(TypeError, match=r"Counter.Spec: expected components whose values stack"):
        counter.__tf_type_spec__().stacked(2)


def test_a_class_may_add_members_to_its_spec():
    @xt.extension_type
    class Grid:
        values: tf.Tensor
        mask: tf.Tensor

        class Spec:
            def __init__(self, shape, dtype=tf.float32):
                self.values = tf.TensorSpec(shape, dtype)
                self.mask = tf.TensorSpec(shape, tf.bool)

            @property
            def shape(self):
                return self.values.shape

            def __repr__(self):
                return f"Grid.Spec({self.shape})"

    @xt.extension_type
    class Other:
        values: tf.Tensor

        class Spec:
            def __init__(self, shape):
                super().__init__(values=tf.TensorSpec(shape))

            def stacked(self, num):
                return super().stacked(None)

    spec = Grid.Spec([2])
    grid = Grid([1.0, 2.0], [True, False])
    assert grid.__tf_type_spec__() == spec
    assert repr(spec) == "Grid.Spec((2,))"
    assert spec.stacked(3).shape == [3, 2]
    assert same(tf.function(lambda x: x, input_signature=[Grid.Spec([None])])(grid), grid)
    assert Other([1.0]).__tf_type_spec__() == Other.Spec([1])
    assert Other.Spec([1]).stacked(3) == Other.Spec([None, 1])

    @xt.extension_type
    class Wrong:
        values: tf.Tensor

        class Spec:
            def __init__(self):
                self.values = 3

    with pytest.raises(TypeError, match=r"Wrong.Spec.values: expected a TypeSpec of Tensor"):
        Wrong.Spec()


# Variables.


def test_variables_are_read_and_assigned_in_a_function():
    counter = Counter(tf.Variable(1.0), tf.Variable(10.0))

    @tf.function
    def add(c):
        c.count.assign_add(c.other)
        return c.count + 0.0

    assert add(counter).numpy() == 11
    assert add(counter).numpy() == 21
    assert counter.count.numpy() == 21
    assert add.experimental_get_tracing_count() == 1
    add(Counter(tf.Variable(2.0), tf.Variable(3.0)))
    assert add.experimental_get_tracing_count() == 1
    with tf.GradientTape() as tape:
        loss = counter.count * counter.other
    assert tape.gradient(loss, [counter.count, counter.other])[0].numpy() == 10


@pytest.mark.parametrize("nested", [False, True])
def test_two_fields_may_hold_one_variable(nested):
    def hold(a, b):
        counter = Counter(a, b)
        return Pantry({}, (1, 1), {"deep": counter}) if nested else counter

    @tf.function
    def both(x):
        counter = x.anything["deep"] if nested else x
        counter.count.assign_add(1.0)
        before = counter.other.read_value()
        counter.other.assign_add(10.0)
        return before, counter.count.read_value()

    one, two = tf.Variable(0.0), tf.Variable(100.0)
    assert [float(x) for x in both(hold(one, two))] == [100.0, 1.0]
    for _ in range(10):
        one.assign(0.0)
        assert [float(x) for x in both(hold(one, one))] == [1.0, 11.0]
    assert both.experimental_get_tracing_count() == 2
    copied = copy.deepcopy(Counter(one, one))
    assert copied.count is copied.other
    assert copied.count is not one


# Threads.


def test_eight_threads_may_use_a_new_type_at_once():
    @xt.extension_type
    class Cup:
        content: Saucer
        note: str = "a"

    @xt.extension_type
    class Saucer:
        values: tf.Tensor

    barrier, results = threading.Barrier(8), collections.deque()
    function = tf.function(lambda x: x)

    def run():
        barrier.wait()
        results.append(function(Cup(Saucer([1.0]))).content.values.numpy().tolist())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(results) == [[1.0]] * 8


# Type checkers.

CHECKED = """
import dataclasses
from typing import Annotated, Any, Generic, TypeVar

import tensorflow as tf
import extensor as xt

T = TypeVar("T")


@xt.extension_type
class Masked:
    values: Any
    unit: str
    scale: float = 1.0
    tags: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)


@xt.extension_type(name="cookbook.Box")
class Box(Generic[T]):
    content: T


@xt.extension_type
class Sub(Masked):
    depth: int = 3


@xt.extension_type
class Weighed:
    grams: Any
    kilos: Any

    def __init__(self, grams: float) -> None:
        object.__setattr__(self, "grams", grams)
        self.kilos = grams / 1000  # error

    def __post_init__(self) -> None:
        object.__setattr__(self, "kilos", self.grams / 1000)


kilos: float = Weighed(3.0).kilos
Weighed()  # error
Weighed(3.0).kilos = 1.0  # error
masked = Masked([1.0], "gram", 2.0, tags=("a",))
box: Box[int] = Box(3)
text: str = xt.replace(masked, unit="cup").unit
depth: int = Sub(1, "gram", depth=4).depth
match masked:
    case Masked(_, unit, scale):
        number: float = scale
    case _:
        pass
Masked([1.0])  # error
Masked([1.0], 3)  # error
Masked([1.0], "gram", 1.0, ("a",))  # error
masked.unit = "cup"  # error
wrong: int = xt.replace(masked, unit="cup").unit  # error
"""


@pytest.mark.whole("starts a process")
def test_pyright_understands_a_declaration(tmp_path):
    sample = tmp_path / "sample.py"
    sample.write_text(CHECKED)
    config = {
        "include": [str(sample)],
        "extraPaths": [str(ROOT / "src")],
        "stubPath": str(ROOT / "typings"),
        "pythonVersion": "3.10",
        "reportMissingModuleSource": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = {d["range"]["start"]["line"] for d in found if d["severity"] == "error"}
    expected = {n for n, line in enumerate(CHECKED.splitlines()) if line.endswith("# error")}
    assert errors == expected, [d["message"] for d in found]


def test_fields_may_be_assigned_by_object_setattr():
    @xt.extension_type
    class Weighed:
        grams: tf.Tensor
        kilos: tf.Tensor

        def __init__(self, grams):
            object.__setattr__(self, "grams", grams)

        def __post_init__(self):
            object.__setattr__(self, "kilos", [self.grams.numpy() / 1000])

    weighed = Weighed(500.0)
    assert (weighed.grams.dtype, weighed.kilos.numpy().tolist()) == (tf.float32, [0.5])
    assert xt.replace(weighed, grams=250.0).kilos.numpy().tolist() == [0.25]


def test_annotated_is_checked_in_this_file_too():
    @xt.extension_type
    class Cup:
        amount: Annotated[tf.Tensor, tf.TensorSpec([None], tf.float32)]

    assert Cup([1]).amount.dtype == tf.float32
    with pytest.raises(ValueError, match=r"Cup.amount: expected shape"):
        Cup(1)
