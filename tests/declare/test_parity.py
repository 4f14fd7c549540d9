"""Declared types behave like tf.experimental.ExtensionType with the same annotations.

`docs/migrate/extension-type.md` shows the rows.
"""

import inspect
import re
import typing
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt

PAGE = Path(__file__).parents[2] / "docs" / "migrate" / "extension-type.md"


class Theirs:
    base, check, name = tf.experimental.BatchableExtensionType, "__validate__", "theirs"

    @classmethod
    def declare(cls, bases=(), name=None, **members):
        members |= {"__name__": name} if name else {}
        return type(cls.base)("Cup", bases or (cls.base,), {"__module__": __name__, **members})

    @staticmethod
    def spec(value):
        return tf.type_spec_from_value(value)

    @staticmethod
    def as_dict(value):
        return tf.experimental.extension_type.as_dict(value)


class Ours:
    check, name = "__post_init__", "ours"

    @staticmethod
    def declare(bases=(), name=None, **members):
        cls = type(
            "Cup", bases, {"__module__": __name__, "__qualname__": "a.<locals>.Cup", **members}
        )
        return xt.extension_type(name=name)(cls)

    @staticmethod
    def spec(value):
        return value.__tf_type_spec__()

    @staticmethod
    def as_dict(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}


def plain(value):
    """Returns comparable data of a value or a result."""
    if isinstance(value, tf.Tensor):
        return "Tensor", value.dtype, value.numpy().tolist()
    if isinstance(value, tf.RaggedTensor):
        return "RaggedTensor", value.to_list()
    if isinstance(value, tf.SparseTensor):
        return "SparseTensor", tf.sparse.to_dense(value).numpy().tolist()
    if isinstance(value, tuple):
        return "tuple", [plain(item) for item in value]
    if isinstance(value, Mapping):
        return "mapping", {k: plain(v) for k, v in value.items()}
    if type(value).__name__ == "Cup":
        fields = getattr(type(value), "__annotations__", {})
        return "Cup", {name: plain(getattr(value, name)) for name in fields}
    return type(value).__name__, value


def attempt(call):
    """Returns the result of a call, or the builtin error that it raises."""
    try:
        return plain(call())
    except (TypeError, ValueError, AttributeError) as error:
        return next(
            e.__name__ for e in (TypeError, ValueError, AttributeError) if isinstance(error, e)
        )


def field(annotation, *values):
    """A row: a field, its values, and the results of a function of them."""

    def behaviour(kit):
        cup = kit.declare(__annotations__={"x": annotation})
        through = tf.function(lambda value: value)
        return [attempt(lambda v=v: cup(v).x) for v in values] + [
            attempt(lambda v=v: through(cup(v)).x) for v in values
        ]

    return behaviour


ROWS = {
    "`int`": field(int, 3, "a", None, 2.5),
    "`float`": field(float, 2.5, "a", None),
    "`bool`": field(bool, True, 1, "a"),
    "`str`": field(str, "a", b"a", 3),
    "`bytes`": field(bytes, b"a", "a"),
    "`None`": field(None, None, 3),
    "`tf.DType`": field(tf.DType, tf.int32, "int32", np.int32, "nonsense"),
    "`tf.TensorShape`": field(tf.TensorShape, [None, 2], tf.TensorShape(None), "abc"),
    "`tf.Tensor`": field(
        tf.Tensor, 1, [1.0, 2.0], np.array([1]), b"a", tf.Variable(2.0), None, object()
    ),
    "`tf.RaggedTensor`": field(tf.RaggedTensor, tf.ragged.constant([[1], []]), tf.constant(1)),
    "`tf.SparseTensor`": field(tf.SparseTensor, tf.sparse.eye(2), [1]),
    "`tuple[X, Y]`": field(tuple[int, tf.Tensor], (1, 2), [1, [2.0]], (1,), 3),
    "`tuple[X, ...]`": field(tuple[tf.Tensor, ...], (), [1, [2.0]], 3),
    "`typing.Mapping[str, X]`": field(
        typing.Mapping[str, tf.Tensor], {}, {"b": 1, "a": [2.0]}, {1: 2}, 3
    ),
    "`Union[X, Y]`": field(typing.Union[int, str], 1, "a", None),  # noqa: UP007
    "`Optional[X]`": field(typing.Optional[tf.RaggedTensor], None, tf.ragged.constant([[1]]), 3),  # noqa: UP045
    "nested containers": field(
        typing.Mapping[str, tuple[tuple[tf.Tensor, int], ...]],
        {"a": [(1, 2), ([3.0], 4)]},
        {"a": 1},
    ),
}


def row(name):
    def register(behaviour):
        ROWS[name] = behaviour
        return behaviour

    return register


TWO = {"values": tf.Tensor, "mask": tf.Tensor}


@row("another extension type")
def another_type(kit):
    inner = kit.declare(__annotations__=TWO)
    outer = kit.declare(__annotations__={"inner": inner, "many": tuple[inner, ...]})
    value = outer(inner([1.0], [True]), [inner([2.0], [False])])
    return [plain(tf.function(lambda x: x)(value)), attempt(lambda: outer([1.0], ()))]


@row("a forward reference")
def forward_reference(kit):
    return [attempt(lambda: kit.declare(__annotations__={"x": "tf.Tensor"})([1.0]).x)]


@row("a default")
def default(kit):
    cup = kit.declare(__annotations__={"x": tf.Tensor, "unit": str}, unit="gram")
    return [plain(cup([1])), plain(cup([1], "cup")), plain(cup(x=[1], unit="cup"))]


@row("a list as the default of a tensor")
def list_default(kit):
    cup = kit.declare(__annotations__={"x": tf.Tensor}, x=[1, 2])
    return [plain(cup()), plain(cup([3.0]))]


@row("a field without a default after one with")
def keyword_only(kit):
    annotations = {"a": int, "b": int, "c": int}
    cup = kit.declare(__annotations__=annotations, a=1)
    more = kit.declare(__annotations__={**annotations, "d": int}, a=1, d=4)
    return [
        plain(cup(b=2, c=3)),
        plain(cup(5, c=2, b=3)),
        attempt(lambda: cup(5, 2, 3)),
        attempt(lambda: more(5, 6, b=2, c=3)),
    ]


@row("a default for an inherited field")
def inherited_default(kit):
    base = kit.declare(__annotations__={"a": int, "b": str, "c": int})
    cup = kit.declare(bases=(base,), __annotations__={"b": str}, b="b")
    shown = [(p.name, p.kind) for p in inspect.signature(cup).parameters.values()]
    return [shown, cup(1, c=3).c, cup(1, "x", c=3).b, attempt(lambda: cup(1, "x", 3))]


@row("`__validate__`")
def validate(kit):
    def check(self):
        assert isinstance(self.values, tf.Tensor)
        self.values.shape.assert_is_compatible_with(self.mask.shape)

    cup = kit.declare(__annotations__=TWO, **{kit.check: check})
    return [plain(cup([1.0], [True])), attempt(lambda: cup([1.0], [True, False]))]


@row("an `__init__` of its own")
def own_init(kit):
    def init(self, values, threshold):
        self.values = tf.convert_to_tensor(values)
        self.mask = self.values > threshold

    cup = kit.declare(__annotations__=TWO, __init__=init)
    value = cup([1.0, 2.0], 1.5)
    return [plain(value), plain(tf.function(lambda x: x)(value)), attempt(lambda: cup([1.0]))]


@row("methods, properties, class methods")
def methods(kit):
    cup = kit.declare(
        __annotations__=TWO,
        shape=property(lambda self: self.values.shape),
        total=lambda self: tf.reduce_sum(self.values),
        empty=classmethod(lambda cls: cls([], [])),
    )
    value = cup([1.0, 2.0], [True, False])
    return [plain(value.shape), plain(value.total()), plain(cup.empty())]


@row("a subclass with more fields")
def subclass(kit):
    base = kit.declare(__annotations__=TWO)
    sub = kit.declare((base,), __annotations__={"scale": float})
    value = tf.function(lambda x: x)(sub([1.0], [True], 2.0))
    return [type(value) is sub, isinstance(value, base), plain(value.values), value.scale]


@row("immutability")
def immutability(kit):
    value = kit.declare(__annotations__=TWO)([1.0], [True])
    return [
        attempt(lambda: setattr(value, "values", 1)),
        attempt(lambda: setattr(value, "other", 1)),
        attempt(lambda: delattr(value, "values")),
    ]


@row("`Cup.Spec(...)`")
def spec_by_hand(kit):
    cup = kit.declare(__annotations__={**TWO, "unit": str})
    values, mask = tf.TensorSpec([1]), tf.TensorSpec([1], tf.bool)
    value = cup([1.0], [True], "gram")
    return [
        cup.Spec(values, mask, "gram") == cup.Spec(values=values, mask=mask, unit="gram"),
        cup.Spec(values, mask, "gram") == kit.spec(value),
        cup.Spec(values, mask, "cup") == kit.spec(value),
        cup.Spec(values, mask, "gram").values,
        attempt(lambda: cup.Spec(values, 3, "gram")),
        attempt(lambda: cup.Spec(values, mask, 3)),
    ]


@row("a `class Spec` of its own")
def own_spec(kit):
    class Spec:
        def __init__(self, shape, dtype=tf.float32):
            self.values = tf.TensorSpec(shape, dtype)
            self.mask = tf.TensorSpec(shape, tf.bool)

        def __repr__(self):
            return f"Cup.Spec({self.shape})"

        shape = property(lambda self: self.values.shape)

    cup = kit.declare(__annotations__=TWO, Spec=Spec)
    spec = cup.Spec([1])
    value = cup([1.0], [True])
    return [
        spec == kit.spec(value),
        repr(kit.spec(value)),
        kit.spec(value).shape,
        plain(tf.function(lambda x: x, input_signature=[cup.Spec([None])])(value)),
    ]


@row("`__name__`")
def registered_name(kit):
    cup = kit.declare(__annotations__=TWO, name=f"parity.{kit.name}.Cup")
    spec = kit.spec(cup([1.0], [True]))
    return [tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto()) == spec]


@row("`BatchableExtensionType`")
def batchable(kit):
    cup = kit.declare(__annotations__={**TWO, "shape": tf.TensorShape, "unit": str})
    value = cup([[1.0], [2.0]], [[True], [False]], [2, 1], "gram")
    dataset = tf.data.Dataset.from_tensor_slices(value)
    return [
        *map(plain, dataset),
        *map(plain, dataset.batch(2, drop_remainder=True)),
        plain(tf.map_fn(lambda x: x.values + 1.0, value, fn_output_signature=tf.float32)),
    ]


@row("`tf.experimental.dispatch_for_api`")
def dispatch(kit):
    cup = kit.declare(__annotations__=TWO)

    @tf.experimental.dispatch_for_api(tf.math.abs, {"x": cup})
    def cup_abs(x: cup, name=None):
        return cup(tf.abs(x.values), x.mask)

    return [plain(tf.abs(cup([-1.0], [True])))]


@row("`as_dict`")
def as_dict(kit):
    value = kit.declare(__annotations__={**TWO, "unit": str})([1.0], [True], "gram")
    return [{name: plain(part) for name, part in kit.as_dict(value).items()}]


@row("cond and while_loop")
def control_flow(kit):
    cup = kit.declare(__annotations__=TWO)

    @tf.function
    def run(x):
        x = tf.cond(tf.constant(True), lambda: x, lambda: cup([9.0], [False]))
        return tf.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, cup(x.values * 2.0, x.mask)), (0, x)
        )[1]

    return [plain(run(cup([1.0], [True])))]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue with type parity:UserWarning")
def test_both_declare_the_same(name):
    assert ROWS[name](Ours) == ROWS[name](Theirs)


@pytest.mark.parametrize("annotation", [list[int], set, type, tf.TypeSpec, typing.Any])
def test_annotations_that_only_extensor_supports_work(annotation):
    Ours.declare(__annotations__={"x": annotation})
    with pytest.raises(TypeError):
        Theirs.declare(__annotations__={"x": annotation})


def test_values_of_both_kinds_of_types_contain_each_other():
    theirs = Theirs.declare(__annotations__=TWO)
    ours = Ours.declare(__annotations__={"inner": theirs})
    outer = Theirs.declare(__annotations__={"inner": ours})
    value = outer(ours(theirs([1.0], [True])))
    again = tf.function(lambda x: x)(value)
    assert type(again.inner.inner) is theirs
    (batch,) = tf.data.Dataset.from_tensors(value).batch(1)
    assert batch.inner.inner.values.shape == [1, 1]


def test_the_page_shows_the_rows():
    table = PAGE.read_text().split("<!-- parity -->")[1]
    assert re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[2:] == list(ROWS)
