"""The same tests for `extensor` and for `tensorflow_probability.experimental`.

docs/auto-composite-tensor.md lists the differences. `differs` marks the tests that show them.
"""

import collections
import dataclasses
import functools
import inspect
import re
from pathlib import Path

import attrs
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor

import extensor as xt
from tests.samples import peer

pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type tests.auto.test_parity:UserWarning:tensorflow"
)

LIBRARIES = {"extensor": xt, "tfp": peer}
DIFFERENCES: dict[str, str] = {}
"""What the documentation says of a test that holds here and not for the peer, by its name."""


def differs(row):
    """Marks a test of a difference between the two: the peer must fail it."""

    def mark(function):
        DIFFERENCES[function.__name__] = row
        return function

    return mark


@pytest.fixture(
    params=["extensor", pytest.param("tfp", marks=pytest.mark.whole("shows what the peer does"))]
)
def lib(request):
    name = request.node.originalname
    if request.param == "tfp" and name in DIFFERENCES:
        reason = DIFFERENCES[name]
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    return LIBRARIES[request.param]


def adder(lib, **options):
    """Returns the class of the example in the documentation."""

    @lib.auto_composite_tensor(omit_kwargs=("name",), **options)
    class Adder(lib.AutoCompositeTensor):
        def __init__(self, x, y, name=None):
            with tf.name_scope(name or "Adder") as name:
                self._x = tf.convert_to_tensor(x)
                self._y = tf.convert_to_tensor(y)
                self._name = name

        def xpy(self):
            return self._x + self._y

    return Adder


def holder(lib, base=None, **options):
    """Returns a class that stores any argument."""

    @lib.auto_composite_tensor(**options)
    class Holder(base or lib.AutoCompositeTensor):
        def __init__(self, x, other=None):
            super().__init__()
            self.x = x
            self.other = other

    return Holder


def rebuilt(value):
    flat = tf.nest.flatten(value, expand_composites=True)
    return tf.nest.pack_sequence_as(value, flat, expand_composites=True)


def loop(value, body, times=3):
    (result,) = tf.while_loop(
        lambda _: True, lambda v: (body(v),), (value,), maximum_iterations=times
    )
    return result


def carried(value):
    """Returns a value after a tf.function and a loop."""
    return tf.function(lambda v: loop(v, lambda inner: inner))(value)


# The class.


def test_the_example_of_the_documentation_works(lib):
    @lib.auto_composite_tensor(omit_kwargs=("name",))
    class Adder(lib.AutoCompositeTensor):
        def __init__(self, x, y, name=None):
            with tf.name_scope(name or "Adder") as name:
                self._x = tf.convert_to_tensor(x)
                self._y = tf.convert_to_tensor(y)
                self._name = name

        def xpy(self):
            return self._x + self._y

    def body(obj):
        return (Adder(obj.xpy(), 1.0),)

    (result,) = tf.while_loop(
        cond=lambda _: True, body=body, loop_vars=(Adder(1.0, 1.0),), maximum_iterations=3
    )
    assert result.xpy().numpy() == 5.0


def test_a_class_with_the_base_is_returned_itself(lib):
    class MyClass(lib.AutoCompositeTensor):
        pass

    decorated = lib.auto_composite_tensor(MyClass)
    assert decorated is MyClass
    assert type(MyClass()) is MyClass
    assert isinstance(MyClass(), CompositeTensor)


def test_a_class_that_is_composite_by_a_trivial_spec_is_returned_itself(lib):
    class MyClass(CompositeTensor):
        @property
        def _type_spec(self):
            pass

        def __init__(self, x):
            self.x = x

    assert lib.auto_composite_tensor(MyClass) is MyClass
    assert carried(MyClass(tf.constant(2.0))).x.numpy() == 2.0


def test_any_other_class_gets_a_subclass_of_both(lib):
    class MyClass:
        def __init__(self, x):
            self.x = x

    made = lib.auto_composite_tensor(MyClass)
    assert made is not MyClass
    assert issubclass(made, MyClass)
    assert issubclass(made, CompositeTensor)
    assert not isinstance(MyClass(1), CompositeTensor)
    assert type(carried(made(tf.constant(2.0)))) is made


@differs("the new class is called `<Name>_AutoCompositeTensor`")
def test_the_subclass_has_a_name_of_its_own(lib):
    class MyClass:
        pass

    made = lib.auto_composite_tensor(MyClass)
    assert type(made()).__name__ == "MyClass_AutoCompositeTensor"


def test_decorating_a_class_again_returns_the_same_subclass(lib):
    class MyClass:
        pass

    once = lib.auto_composite_tensor(MyClass, omit_kwargs=("name",))
    assert lib.auto_composite_tensor(MyClass, omit_kwargs=("name",)) is once
    assert lib.auto_composite_tensor(MyClass) is not once


def test_the_spec_of_a_class_that_has_one_is_replaced(lib):
    class Operator(tf.linalg.LinearOperatorFullMatrix):
        pass

    before = type(Operator([[1.0]])._type_spec)
    assert lib.auto_composite_tensor(Operator, omit_kwargs=("name",)) is Operator
    operator = Operator([[1.0, 0.0], [0.0, 2.0]])
    assert type(operator._type_spec) is not before
    assert type(carried(operator)) is Operator
    np.testing.assert_allclose(carried(operator).matvec([3.0, 4.0]), [3.0, 8.0])


def test_a_subclass_that_is_not_decorated_raises(lib):
    class Child(adder(lib)):
        pass

    with pytest.raises(ValueError, match="auto_composite_tensor"):
        Child(1.0, 2.0)._type_spec  # noqa: B018


def test_a_decorated_subclass_is_a_type_of_its_own(lib):
    @lib.auto_composite_tensor(omit_kwargs=("name",))
    class Scaled(adder(lib)):
        def __init__(self, x, y, scale, name=None):
            super().__init__(x, y, name)
            self._scale = tf.convert_to_tensor(scale)

    value = carried(Scaled(1.0, 2.0, 3.0))
    assert type(value) is Scaled
    assert [t.numpy() for t in (value._x, value._y, value._scale)] == [1.0, 2.0, 3.0]


def test_a_subclass_without_arguments_of_its_own(lib):
    @lib.auto_composite_tensor
    class Identity(lib.AutoCompositeTensor):
        def __call__(self, x):
            return x

    assert type(carried(Identity())) is Identity
    assert tf.nest.flatten(Identity(), expand_composites=True) == []


def test_a_dataclass(lib):
    @lib.auto_composite_tensor
    @dataclasses.dataclass
    class Point:
        x: object
        y: object = 2

    point = carried(Point(tf.constant([1.0])))
    assert (point.x.numpy().tolist(), point.y) == ([1.0], 2)


def test_a_class_with_slots(lib):
    @lib.auto_composite_tensor
    class Point:
        __slots__ = ("_x", "y")

        def __init__(self, x, y):
            self._x, self.y = x, y

    point = carried(Point(tf.constant([1.0]), "text"))
    assert (point._x.numpy().tolist(), point.y) == ([1.0], "text")


@differs("a value of an attrs class is a composite tensor, not a nest of its fields")
def test_an_attrs_class(lib):
    @lib.auto_composite_tensor
    @attrs.define
    class Point:
        x: object
        y: object = 2

    point = carried(Point(tf.constant([1.0])))
    assert (point.x.numpy().tolist(), point.y) == ([1.0], 2)
    assert tf.nest.flatten(Point(1.0)) != [1.0, 2]


# The arguments.


def test_arguments_are_read_from_attributes_private_ones_and_parameters(lib):
    @lib.auto_composite_tensor
    class Thing(lib.AutoCompositeTensor):
        def __init__(self, public, private, listed):
            self.public = tf.convert_to_tensor(public)
            self._private = tf.convert_to_tensor(private)
            self.parameters = {"listed": tf.convert_to_tensor(listed), "public": "not this one"}

    thing = Thing(1.0, 2.0, 3.0)
    components = thing._type_spec._to_components(thing)
    assert {name: t.numpy() for name, t in components.items()} == {
        "public": 1.0,
        "private": 2.0,
        "listed": 3.0,
    }
    assert thing._type_spec._from_components(components).parameters["listed"].numpy() == 3.0


def test_a_property_counts_as_an_attribute(lib):
    @lib.auto_composite_tensor
    class Thing(lib.AutoCompositeTensor):
        def __init__(self, x):
            self._inside = tf.convert_to_tensor(x)

        @property
        def x(self):
            return self._inside

    assert carried(Thing(1.0)).x.numpy() == 1.0


@differs("a method with the name of an argument is not used as its value")
def test_a_method_is_not_an_argument(lib):
    @lib.auto_composite_tensor
    class Thing(lib.AutoCompositeTensor):
        def __init__(self, mean):
            self._mean = tf.convert_to_tensor(mean)

        def mean(self):
            return self._mean

    assert rebuilt(Thing(1.0)).mean().numpy() == 1.0


def test_an_argument_that_is_not_found_raises(lib):
    @lib.auto_composite_tensor
    class Thing(lib.AutoCompositeTensor):
        def __init__(self, lost):
            pass

    with pytest.raises(ValueError, match="lost"):
        Thing(1)._type_spec  # noqa: B018


@pytest.mark.parametrize("kind", ["args", "kwargs"])
def test_arguments_without_names_are_an_error(lib, kind):
    class Args(lib.AutoCompositeTensor):
        def __init__(self, x, *args):
            self.x, self.args = x, args

    class Kwargs(lib.AutoCompositeTensor):
        def __init__(self, x, **kwargs):
            self.x, self.kwargs = x, kwargs

    with pytest.raises(ValueError, match=r"\*args and \*\*kwargs are not supported"):
        rebuilt(lib.auto_composite_tensor({"args": Args, "kwargs": Kwargs}[kind])(tf.constant(1)))


@differs(
    "a constructor with `*args` or `**kwargs` is rejected by the decorator, not when a value is "
    "taken apart"
)
def test_arguments_without_names_are_an_error_at_the_decoration(lib):
    class Args(lib.AutoCompositeTensor):
        def __init__(self, *args):
            self.args = args

    with pytest.raises(ValueError, match=r"\*args"):
        lib.auto_composite_tensor(Args)


@differs(
    "a constructor with `**kwargs` is accepted if a property `parameters` returns all arguments by "
    "name"
)
def test_keywords_that_parameters_name_are_kept(lib):
    @lib.auto_composite_tensor
    class Thing(lib.AutoCompositeTensor):
        def __init__(self, x, **options):
            self._x, self._options = x, options

        @property
        def parameters(self):
            return {"x": self._x, **self._options}

    assert rebuilt(Thing(tf.constant(1.0), y=tf.constant(2.0))).parameters["y"].numpy() == 2.0


def test_a_class_with_parameters_and_nameless_arguments_is_an_error_when_decomposed(lib):
    """So that TensorFlow Probability, which decorates all its classes, can be imported."""

    @lib.auto_composite_tensor
    class Thing(lib.AutoCompositeTensor):
        def __init__(self, *args):
            self.args = args

        @property
        def parameters(self):
            return {}

    thing = Thing(1)
    with pytest.raises(ValueError, match=r"\*args and \*\*kwargs are not supported"):
        thing._type_spec  # noqa: B018


def test_one_omitted_argument_may_be_given_as_a_text(lib):
    @lib.auto_composite_tensor(omit_kwargs="name")
    class Thing(lib.AutoCompositeTensor):
        def __init__(self, x, name="none"):
            self.x, self.name = x, name

    assert rebuilt(Thing(tf.constant(1.0), "a")).name == "none"
    assert Thing(tf.constant(1.0), "a")._type_spec == Thing(tf.constant(1.0), "b")._type_spec


def test_a_constructor_that_is_wrapped(lib):
    def tagged(function):
        @functools.wraps(function)
        def wrapper(self, *args, **kwargs):
            self.tag = "tagged"
            return function(self, *args, **kwargs)

        return wrapper

    @lib.auto_composite_tensor
    class Thing(lib.AutoCompositeTensor):
        @tagged
        def __init__(self, value):
            self.value = tf.convert_to_tensor(value)

    result = loop(Thing(3), lambda thing: Thing(value=thing.value + 1))
    assert (result.value.numpy(), result.tag) == (6, "tagged")


NESTS = {
    "list": lambda t: [t, t + 1],
    "tuple": lambda t: (t, t + 1),
    "dict": lambda t: {"b": t, "a": t + 1},
    "deep": lambda t: [{"a": (t, [t])}, t],
    "ordered dict": lambda t: collections.OrderedDict([("b", t), ("a", t + 1)]),
    "namedtuple": lambda t: inspect.FullArgSpec(*[t] * 7),
    "long": lambda t: [t + i for i in range(12)],
    "ragged": lambda t: [tf.ragged.stack([t, t])],
    "empty": lambda t: [t, []],
}


@pytest.mark.parametrize("kind", NESTS)
@pytest.mark.parametrize("base", [None, tf.Module])
def test_nested_arguments(lib, kind, base):
    """A tf.Module keeps lists, tuples and dicts in wrappers."""
    holder_class = holder(lib, base)
    value = holder_class(NESTS[kind](tf.constant([1.0])))
    again = carried(value)
    tf.nest.assert_same_structure(again.x, value.x)
    assert [t.numpy().tolist() for t in tf.nest.flatten(again.x, expand_composites=True)] == [
        t.numpy().tolist() for t in tf.nest.flatten(value.x, expand_composites=True)
    ]
    flat = tf.nest.flatten(NESTS[kind](tf.constant([1.0])), expand_composites=True)
    assert len(tf.nest.flatten(value, expand_composites=True)) == len(flat)


def test_components_are_flat_in_the_order_of_names_and_places(lib):
    thing = holder(lib)({"b": tf.constant(1), "a": [tf.constant(i) for i in range(2, 14)]})
    thing.other = tf.constant(0)
    assert [t.numpy() for t in tf.nest.flatten(thing, expand_composites=True)] == [
        0,
        *range(2, 14),
        1,
    ]


STATIC = {
    "none": None,
    "int": 3,
    "float": 2.5,
    "str": "text",
    "bool": True,
    "dtype": tf.float32,
    "shape": tf.TensorShape([2, None]),
    "list": [1, "a", [2.0]],
    "tuple": (1, ("a",)),
    "dict": {"a": 1, "b": [None]},
    "class": int,
}


@pytest.mark.parametrize("kind", STATIC)
def test_static_arguments(lib, kind):
    holder_class = holder(lib)
    traces = []

    @tf.function
    def function(value):
        traces.append(value.other)
        return holder_class(value.x + 1, value.other)

    for start in (1.0, 2.0):
        result = function(holder_class(tf.constant(start), STATIC[kind]))
        assert result.x.numpy() == start + 1
        assert result.other == STATIC[kind]
        assert type(result.other) is type(STATIC[kind])
    assert traces == [STATIC[kind]]
    function(holder_class(tf.constant(1.0), "other"))
    assert len(traces) == 2


def test_an_argument_may_hold_a_tensor_or_not(lib):
    holder_class = holder(lib)
    for other in (0, tf.constant(0)):
        result = loop(
            holder_class(tf.constant(0.0), other), lambda v: holder_class(v.x + 1, v.other)
        )
        assert result.x.numpy() == 3.0


@differs("static data is compared by content and type: `1`, `1.0` and `True` differ")
def test_static_arguments_are_compared_with_their_types(lib):
    specs = [holder(lib)(tf.constant(1.0), other)._type_spec for other in (1,)]
    holder_class = holder(lib)
    specs = [holder_class(tf.constant(1.0), other)._type_spec for other in (1, 1.0, True)]
    assert len(set(specs)) == 3


@differs(
    "arrays and scalars of NumPy stay, and a number known when the graph is built keeps its dtype"
)
def test_arrays_stay_arrays(lib):
    result = carried(holder(lib)(tf.constant(1.0), np.array([[1, 2]], np.int16)))
    assert result.other.dtype == np.int16
    assert result.other.tolist() == [[1, 2]]
    for number in (np.int64(3), np.float32(0.1)):
        assert type(carried(holder(lib)(tf.constant(1.0), number)).other) is type(number)


@differs("the constructor gets a static container as a copy, and every mapping as a dict")
def test_static_containers_are_copies(lib):
    content = collections.OrderedDict(a=[1])
    result = rebuilt(holder(lib)(tf.constant(1.0), content)).other
    assert type(result) is dict
    assert result == content
    assert result["a"] is not content["a"]


@differs("an argument that is not hashable is static, compared by identity")
def test_arguments_that_are_not_hashable_are_compared_by_identity(lib):
    @dataclasses.dataclass
    class Config:
        size: int = 3

    config, holder_class = Config(), holder(lib)
    value = holder_class(tf.constant(1.0), config)
    assert carried(value).other is config
    assert value._type_spec == holder_class(tf.constant(2.0), config)._type_spec
    assert value._type_spec != holder_class(tf.constant(2.0), Config())._type_spec


@differs("a list, tuple, dict or partial may hold both tensors and static parts")
def test_an_argument_that_mixes_tensors_and_static_parts(lib):
    result = carried(holder(lib)(["abc", tf.constant(1.0), {"a": (tf.constant(2), None)}]))
    assert result.x[0] == "abc"
    assert result.x[1].numpy() == 1.0
    assert result.x[2]["a"][0].numpy() == 2
    assert result.x[2]["a"][1] is None


def test_extension_types_as_arguments(lib):
    @xt.extension_type
    class Masked:
        values: tf.Tensor
        mask: tf.Tensor

    record = xt.DenseStructuredTensor([2], {"a": tf.constant([1, 2]), "b": ["x", "y"]})
    things = {
        "declared": Masked([1.0], [True]),
        "record": record,
        "ragged": tf.ragged.constant([[1], []]),
        "sparse": tf.sparse.from_dense([0, 1]),
        "of ours": adder(xt)(1.0, 2.0),
        "of the peer": adder(peer)(1.0, 2.0),
        "operator": tf.linalg.LinearOperatorDiag([1.0]),
        "distribution": peer.tfp.distributions.Normal(0.0, 1.0),
    }
    result = carried(holder(lib)(things))
    assert {k: type(v) for k, v in result.x.items()} == {k: type(v) for k, v in things.items()}
    tf.nest.map_structure(
        np.testing.assert_array_equal,
        tf.nest.flatten(result, expand_composites=True),
        tf.nest.flatten(things, expand_composites=True),
    )


# The options.


def test_arguments_that_are_omitted(lib):
    adder_class = adder(lib)
    value = adder_class(1.0, 2.0, name="mine")
    assert value._type_spec == adder_class(1.0, 2.0, name="other")._type_spec
    assert "mine" not in repr(value._type_spec)
    assert rebuilt(value)._name == "Adder/"


def test_omitted_names_that_the_constructor_does_not_take(lib):
    assert carried(holder(lib, omit_kwargs=("parameters", "other"))(tf.constant(1.0))).other is None


def test_a_name_is_kept_through_flatten(lib):
    value = holder(lib)(tf.constant(1.0), "a name")
    assert rebuilt(value).other == "a name"
    assert rebuilt(rebuilt(value)).other == "a name"


def test_arguments_that_do_not_identify(lib):
    holder_class = holder(lib, non_identifying_kwargs=("other",))
    a, b = (holder_class(tf.constant(1.0), name) for name in "ab")
    assert a._type_spec == b._type_spec
    assert hash(a._type_spec) == hash(b._type_spec)
    assert a._type_spec.is_compatible_with(b._type_spec)
    assert a._type_spec.most_specific_common_supertype([b._type_spec]) == a._type_spec
    assert [rebuilt(v).other for v in (a, b)] == ["a", "b"]
    traces = []
    function = tf.function(lambda v: traces.append(v) or v.x)
    function(a), function(b)
    assert len(traces) == 1
    numbered = iter(range(100))
    loop(a, lambda v: holder_class(v.x, f"{next(numbered)}"))


def test_shape_parameters_stay_static_through_a_loop(lib):
    check_shape_parameters(lib, "_composite_tensor_shape_params")


@differs("`_composite_tensor_shape_parameters` is read")
def test_shape_parameters_are_read_from_the_attribute_of_probability(lib):
    check_shape_parameters(lib, "_composite_tensor_shape_parameters")


def check_shape_parameters(lib, attribute):
    @lib.auto_composite_tensor
    class Zeros(lib.AutoCompositeTensor):
        def __init__(self, value, shape):
            self.value = tf.convert_to_tensor(value)
            self._shape = tf.convert_to_tensor(shape)
            setattr(self, attribute, ("shape",))

        def tensor(self):
            return self.value + tf.zeros(self._shape)

    seen = []

    @tf.function
    def function(zeros):
        return loop(
            zeros, lambda z: seen.append(z.tensor().shape) or Zeros(z.value + 1.0, z._shape)
        )

    result = function(Zeros(1.0, [2, 3]))
    assert seen[-1] == [2, 3]
    assert result.tensor().numpy().tolist() == [[4.0] * 3] * 2
    assert Zeros(1.0, [2, 3])._type_spec != Zeros(1.0, [2, 4])._type_spec


# Variables.


def test_a_variable_as_an_argument(lib):
    adder_class = adder_of_variables(lib)
    variable = tf.Variable(1.0)
    result = loop(adder_class(1.0, variable), lambda v: adder_class(v.xpy(), variable))
    assert result.xpy().numpy() == 5.0


def adder_of_variables(lib):
    @lib.auto_composite_tensor
    class Adder(lib.AutoCompositeTensor):
        def __init__(self, x, y):
            self._x, self._y = (
                v if isinstance(v, tf.Variable) else tf.convert_to_tensor(v) for v in (x, y)
            )

        def xpy(self):
            return self._x + self._y

    return Adder


def test_a_variable_is_assigned_inside_a_function_and_not_traced_again(lib):
    adder_class = adder_of_variables(lib)
    traces = []

    @tf.function
    def function(value):
        traces.append(type(value._y))
        value._y.assign_add(1.0)
        return value.xpy()

    variable = tf.Variable(1.0)
    value = adder_class(1.0, variable)
    assert [function(value).numpy(), function(value).numpy()] == [3.0, 4.0]
    assert variable.numpy() == 3.0
    other = tf.Variable(10.0)
    assert function(adder_class(1.0, other)).numpy() == 12.0
    assert other.numpy() == 11.0
    assert len(traces) == 1


def test_variables_are_converted_to_tensors(lib):
    inner = adder_of_variables(lib)(tf.Variable(1.0), 2.0)
    value = adder_of_variables(lib)(tf.Variable(3.0), 4.0)
    value._y = tf.Variable([5.0])
    held = holder(lib)([inner, value], "static")
    read = held._convert_variables_to_tensors()
    assert not any(
        isinstance(leaf, tf.Variable)
        for leaf in tf.nest.flatten([v for x in read.x for v in (x._x, x._y)])
    )
    assert [t.numpy().tolist() for t in tf.nest.flatten(read, expand_composites=True)] == [
        1.0,
        2.0,
        3.0,
        [5.0],
    ]
    assert read.other == "static"


@differs("a `_convert_variables_to_tensors` of the class is kept")
def test_the_conversion_of_variables_may_be_overridden(lib):
    @lib.auto_composite_tensor
    class Counter(lib.AutoCompositeTensor):
        def __init__(self, count):
            self.count = count

        def _convert_variables_to_tensors(self):
            return "mine"

    assert Counter(tf.Variable(1))._convert_variables_to_tensors() == "mine"


# Callables.


def test_a_callable_is_static(lib):
    holder_class = holder(lib)

    def function(x):
        return x + 1

    value = holder_class(tf.constant(1.0), function)
    assert carried(value).other is function
    assert value._type_spec == holder_class(tf.constant(2.0), function)._type_spec
    assert value._type_spec != holder_class(tf.constant(2.0), lambda x: x + 1)._type_spec


def test_a_functor_that_is_composite(lib):
    @lib.auto_composite_tensor
    class Scale(lib.AutoCompositeTensor):
        def __init__(self, factor):
            self._factor = tf.convert_to_tensor(factor)

        def __call__(self, x):
            return x * self._factor

    holder_class = holder(lib)
    value = holder_class(tf.constant(2.0), Scale(3.0))
    assert len(tf.nest.flatten(value, expand_composites=True)) == 2
    result = loop(value, lambda v: holder_class(v.other(v.x), v.other))
    assert result.x.numpy() == 54.0
    assert type(result.other) is Scale


class Conversion:
    """A callable that holds a tensor, and for which a conversion function is registered."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


class ConversionSpec(tf.TypeSpec):
    value_type = Conversion

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype

    def _serialize(self):
        return self.shape, self.dtype

    @property
    def _component_specs(self):
        return tf.TensorSpec(self.shape, self.dtype)

    def _to_components(self, value):
        return value.factor

    def _from_components(self, components):
        return Conversion(components)


@pytest.fixture
def conversion():
    from tensorflow.python.framework import type_spec

    type_spec.register_type_spec_from_value_converter(
        Conversion, lambda value: ConversionSpec(value.factor.shape, value.factor.dtype)
    )
    yield Conversion
    type_spec._TYPE_CONVERSION_FUNCTION_REGISTRY.pop()


@differs(
    "a value with a conversion function registered with TensorFlow is decomposed by this function"
)
def test_a_callable_with_a_conversion_function(lib, conversion):
    holder_class = holder(lib)
    value = holder_class(tf.constant(2.0), conversion(tf.constant(3.0)))
    assert len(tf.nest.flatten(value, expand_composites=True)) == 2
    result = loop(value, lambda v: holder_class(v.other(v.x), v.other))
    assert result.x.numpy() == 54.0
    assert type(result.other) is conversion


# The spec.


def test_specs_are_compared_by_content(lib):
    adder_class = adder(lib)
    spec = adder_class(1.0, [2.0])._type_spec
    same, other = adder_class(5.0, [6.0])._type_spec, adder_class(1.0, [2.0, 3.0])._type_spec
    assert spec == same
    assert hash(spec) == hash(same)
    assert spec != other
    assert spec.is_compatible_with(same)
    assert spec.is_compatible_with(adder_class(1.0, [1.0]))
    assert not spec.is_compatible_with(other)
    assert spec != adder(lib)(1.0, [2.0])._type_spec


def test_the_repr_of_a_spec_shows_its_parts(lib):
    text = repr(holder(lib)(tf.constant([1.0]), "metadata")._type_spec)
    assert "metadata" in text
    assert "TensorSpec(shape=(1,), dtype=tf.float32" in text
    assert "x=" in text or "'x'" in text


def test_the_most_specific_supertype_merges_shapes(lib):
    adder_class = adder(lib)
    a, b = adder_class(1.0, [2.0])._type_spec, adder_class(1.0, [2.0, 3.0])._type_spec
    merged = a.most_specific_common_supertype([b])
    assert merged._component_specs["y"] == tf.TensorSpec([None])
    assert merged._component_specs["x"] == tf.TensorSpec([])
    assert a.is_subtype_of(merged)
    assert not merged.is_subtype_of(a)
    assert merged.is_compatible_with(a)
    holder_class = holder(lib)
    a, b = (holder_class(tf.constant(1.0), other)._type_spec for other in "ab")
    assert a.most_specific_common_supertype([b]) is None
    assert a.most_specific_common_supertype([merged]) is None


def test_a_loop_with_a_shape_that_grows(lib):
    adder_class = adder(lib)
    value = adder_class(1.0, [2.0])
    grown = adder_class(1.0, [2.0, 2.0])._type_spec
    invariant = value._type_spec.most_specific_common_supertype([grown])
    (result,) = tf.while_loop(
        lambda _: True,
        lambda v: (adder_class(v._x, tf.concat([v._y, v._y], 0)),),
        (value,),
        shape_invariants=(invariant,),
        maximum_iterations=3,
    )
    assert result._y.shape == [8]


def test_branches_of_a_conditional(lib):
    adder_class = adder(lib)
    function = tf.function(
        lambda flag: tf.cond(flag, lambda: adder_class(1.0, 2.0), lambda: adder_class(3.0, 4.0))
    )
    assert function(tf.constant(False)).xpy().numpy() == 7.0
    assert tf.switch_case(tf.constant(1), [lambda: adder_class(1.0, 2.0)] * 2).xpy().numpy() == 3.0


def test_a_value_is_mapped(lib):
    mapped = tf.nest.map_structure(lambda t: t * 2, adder(lib)(1.0, 2.0), expand_composites=True)
    assert mapped.xpy().numpy() == 6.0


def test_values_are_rebuilt_without_validation(lib):
    checked = []

    @lib.auto_composite_tensor
    class Rate(lib.AutoCompositeTensor):
        def __init__(self, value, validate_args=False):
            self._value, self._validate_args = tf.convert_to_tensor(value), validate_args
            if validate_args and not lib.is_deferred_assertion_context():
                checked.append(tf.debugging.assert_positive(self._value))

    with pytest.raises(tf.errors.InvalidArgumentError):
        Rate(-1.0, validate_args=True)
    rate = Rate(1.0, validate_args=True)
    graph = tf.function(lambda r: r).get_concrete_function(rate).graph
    assert {op.type for op in graph.get_operations()} <= {"Placeholder", "Identity"}
    assert len(checked) == 1
    Rate(1.0, validate_args=True)
    assert len(checked) == 2
    assert not lib.is_deferred_assertion_context()


def test_a_value_that_fails_to_be_rebuilt_restores_validation(lib):
    @lib.auto_composite_tensor
    class Fragile(lib.AutoCompositeTensor):
        def __init__(self, x):
            self.x = x
            if lib.is_deferred_assertion_context():
                raise RuntimeError("not again")

    with pytest.raises(RuntimeError, match="not again"):
        rebuilt(Fragile(tf.constant(1.0)))
    assert not lib.is_deferred_assertion_context()


# Other APIs.


def test_a_dataset_batches_and_unbatches(lib):
    adder_class = adder(lib)
    value = adder_class([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    dataset = tf.data.Dataset.from_tensor_slices(value)
    assert [v.xpy().numpy() for v in dataset] == [5.0, 7.0, 9.0]
    batches = list(dataset.batch(2))
    assert [b.xpy().numpy().tolist() for b in batches] == [[5.0, 7.0], [9.0]]
    assert [v.xpy().numpy() for v in dataset.batch(2).unbatch()] == [5.0, 7.0, 9.0]
    assert [v.numpy() for v in dataset.map(adder_class.xpy)] == [5.0, 7.0, 9.0]


def test_map_fn(lib):
    adder_class = adder(lib)
    value = adder_class([1.0, 2.0], [4.0, 5.0])
    row = value._type_spec._unbatch()
    result = tf.map_fn(lambda v: adder_class(v.xpy(), v._y), value, fn_output_signature=row)
    assert result.xpy().numpy().tolist() == [9.0, 12.0]


@differs("gradients with respect to a value are values")
def test_gradients_with_respect_to_a_value(lib):
    value = adder(lib)(2.0, [3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(value)
        y = tf.reduce_sum(value._x * value._y**2)
    gradient = tape.gradient(y, value)
    assert type(gradient) is type(value)
    assert gradient._x.numpy() == 25.0
    assert gradient._y.numpy().tolist() == [12.0, 16.0]


def test_gradients_through_a_function(lib):
    adder_class = adder(lib)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(lambda v: adder_class(v.xpy(), v._y))(adder_class(x, 3.0)).xpy()
    assert tape.gradient(y, x).numpy() == 1.0


def test_a_module_with_a_signature_is_saved_and_loaded(lib, tmp_path):
    adder_class = adder(lib, module_name=f"tests.auto.test_parity.{lib.__name__.split('.')[0]}")
    module = tf.Module()
    spec = adder_class(1.0, 1.0)._type_spec
    module.sum = tf.function(lambda v: v.xpy(), input_signature=[spec])
    module.make = tf.function(lambda x: adder_class(x, 1.0), input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.sum(adder_class(2.0, 3.0)).numpy() == 5.0
    assert type(loaded.make(2.0)) is adder_class
    assert loaded.make(2.0).xpy().numpy() == 3.0


def test_a_class_that_is_defined_again_replaces_the_previous_one(lib):
    first, second = adder(lib, module_name="again"), adder(lib, module_name="again")
    assert first is not second
    assert carried(first(1.0, 2.0)).xpy().numpy() == 3.0
    assert carried(second(1.0, 2.0)).xpy().numpy() == 3.0


@differs("saving the spec of a value that holds a lambda raises an error that names the argument")
def test_a_lambda_cannot_be_saved(lib, tmp_path):
    module = tf.Module()
    spec = holder(lib)(tf.constant(1.0), lambda x: x)._type_spec
    module.x = tf.function(lambda v: v.x, input_signature=[spec])
    with pytest.raises(ValueError, match=r"Holder\.other"):
        tf.saved_model.save(module, str(tmp_path))


@differs("a callable that can be imported by name is saved with the value that holds it")
def test_a_callable_that_can_be_imported_is_saved(lib, tmp_path):
    holder_class = holder(lib, module_name="tests.auto.test_parity.callables")
    module = tf.Module()
    value = holder_class(tf.constant(-1.0), functools.partial(tf.nn.leaky_relu, alpha=0.5))
    module.call = tf.function(lambda v: v.other(v.x), input_signature=[value._type_spec])
    tf.saved_model.save(module, str(tmp_path))
    again = holder_class(tf.constant(-3.0), functools.partial(tf.nn.leaky_relu, alpha=0.5))
    assert tf.saved_model.load(str(tmp_path)).call(again).numpy() == -1.5


@differs("two classes of different modules cannot have the same name: the second is an error")
def test_a_name_of_another_class_is_an_error(lib):
    adder(lib, module_name="taken")

    class Adder(lib.AutoCompositeTensor):
        pass

    Adder.__module__ = "elsewhere"
    with pytest.raises(ValueError, match="taken"):
        lib.auto_composite_tensor(Adder, module_name="taken")


def test_every_difference_is_documented_and_shown():
    page = Path(__file__).parents[2] / "docs" / "auto-composite-tensor.md"
    listed = re.search(r"<!-- differences -->(.*)<!-- differences -->", page.read_text(), re.S)
    rows = [" ".join(row.split()) for row in re.findall(r"^- (.*(?:\n  .*)*)", listed[1], re.M)]
    assert sorted(row.rstrip(".;") for row in rows) == sorted(DIFFERENCES.values())
