"""Comparison of specs is symmetric, and static data such as NaN does not cause retracing."""

import decimal
import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.samples.types import StaticSpec

# NaN and similar values, a new object in each call.

NOT_EQUAL_TO_THEMSELVES = {
    "float": lambda: float("nan"),
    "numpy float": lambda: np.float32("nan"),
    "numpy double": lambda: np.float64("nan"),
    "numpy complex": lambda: np.complex64(complex(1.0, float("nan"))),
    "array": lambda: np.array([1.0, float("nan")]),
    "array of halves": lambda: np.array([float("nan")], np.float16),
    "array of complex numbers": lambda: np.array([complex(0, float("nan"))]),
    "array without dimensions": lambda: np.array(float("nan")),
    "tuple": lambda: (1, (float("nan"), "a")),
    "list": lambda: [float("nan")],
    "mapping": lambda: {"a": {"b": float("nan")}},
}
ONLY_BY_HAND = {  # as other fields keep them, they are None or equal to themselves
    "time": lambda: np.datetime64("NaT", "s"),
    "array of times": lambda: np.array(["NaT"], "M8[s]"),
}
ONLY_FROZEN = {  # which TensorFlow's specs do not hold
    "complex": lambda: complex(1.0, float("nan")),
    "decimal": lambda: decimal.Decimal("nan"),
}


class Graded:
    def __init__(self, values, grade):
        self.values, self.grade = values, grade

    def __tf_type_spec__(self):
        return GradedSpec(self.values.shape, self.grade)


class GradedSpec(xt.StackableTypeSpec):
    def __init__(self, shape, grade):
        self.shape, self.grade = tf.TensorShape(shape), grade

    value_type = Graded

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape)

    def to_components(self, value):
        return value.values

    def from_components(self, components):
        return Graded(components, self.grade)

    def serialize(self):
        return self.shape, self.grade


@xt.extension_type
class Declared:
    values: tf.Tensor
    grade: Any


@xt.auto_composite_tensor
class Auto(xt.AutoCompositeTensor):
    def __init__(self, values, grade):
        self.values, self.grade = values, grade


CASES = {
    (kind, name): (cls, make)
    for kind, cls, grades in (
        ("by hand", Graded, {**NOT_EQUAL_TO_THEMSELVES, **ONLY_BY_HAND}),
        ("declared", Declared, {**NOT_EQUAL_TO_THEMSELVES, **ONLY_FROZEN}),
        ("auto", Auto, {**NOT_EQUAL_TO_THEMSELVES, **ONLY_FROZEN}),
    )
    for name, make in grades.items()
}


@pytest.mark.parametrize(("cls", "grade"), CASES.values(), ids=map(" ".join, CASES))
def test_static_data_that_is_not_equal_to_itself_does_not_retrace(cls, grade):
    def make(size=2):
        return cls(tf.ones([size]), grade())

    spec, again, other = (xt.spec_of(make(n)) for n in (2, 2, 3))
    assert spec == again
    assert (spec != again) is False
    assert hash(spec) == hash(again)
    assert spec.is_compatible_with(again)
    assert spec.is_compatible_with(make())
    assert spec.is_subtype_of(again)
    assert spec.most_specific_compatible_type(again) == spec
    merged = spec.most_specific_compatible_type(other)
    assert merged is not None
    assert merged.is_compatible_with(spec)
    assert spec.cast(value := make()) is value
    traces = []
    function = tf.function(lambda v: traces.append(v))
    for _ in range(3):
        function(make())
    assert len(traces) == 1


@pytest.mark.parametrize("cls", [Graded, Declared, Auto])
def test_nan_differs_from_every_number(cls):
    def spec(grade):
        return xt.spec_of(cls(tf.ones([2]), grade))

    nan = spec(math.nan)
    for other in (0.0, 1.0, math.inf, None, "nan", (math.nan,)):
        assert nan != spec(other)
        assert not nan.is_compatible_with(spec(other))
        assert nan.most_specific_compatible_type(spec(other)) is None


@pytest.mark.parametrize("cls", [Graded, Declared, Auto])
def test_complex_numbers_with_a_nan_differ_by_their_other_part(cls):
    one, two = (
        xt.spec_of(cls(tf.ones([2]), np.array([complex(real, math.nan)]))) for real in (1, 2)
    )
    assert one != two
    assert not one.is_compatible_with(two)
    assert one.most_specific_compatible_type(two) is None


def test_nan_in_a_spec_of_a_spec_is_equal_to_itself():
    make = lambda: StaticSpec({"inner": StaticSpec((float("nan"),))})  # noqa: E731
    assert make() == make()
    assert hash(make()) == hash(make())
    assert make().is_compatible_with(make())


def test_nan_in_a_saved_spec_is_equal_to_itself():
    xt.register_type_spec(GradedSpec, "test_spec_compared.GradedSpec")
    spec = GradedSpec([2], float("nan"))
    with pytest.warns(UserWarning, match="Encoding a StructuredValue"):
        proto = spec.experimental_as_proto()
    assert tf.TypeSpec.experimental_from_proto(proto) == spec


# In both directions.


@xt.extension_type
class Steps:
    minutes: tf.Tensor | tf.RaggedTensor


@xt.extension_type
class Anything:
    content: Any


HOLDERS = {
    "declared": Steps.Spec,
    "in a tuple": lambda spec: Anything.Spec((1, spec)),
    "auto": lambda spec: Auto.Spec(spec, 1),
    "by hand": StaticSpec,
    "by hand, in a tuple": lambda spec: StaticSpec((1, spec)),
    "records": lambda spec: xt.DenseStructuredTensorSpec([None], {"minutes": spec}),
    "records of records": lambda spec: xt.DenseStructuredTensorSpec(
        [None], {"steps": xt.DenseStructuredTensorSpec([None], {"minutes": spec})}
    ),
    "masked": lambda spec: xt.types.MaskedTensorSpec(spec, tf.TensorSpec([None], tf.bool)),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=list(HOLDERS))
def test_a_dense_tensor_and_a_row_of_a_ragged_one_are_compatible_from_both_sides(hold):
    dense = hold(tf.TensorSpec([2]))
    row = hold(tf.RaggedTensorSpec([2], ragged_rank=0))
    assert dense.is_compatible_with(row)
    assert row.is_compatible_with(dense)
    for other in (
        tf.RaggedTensorSpec([2, None]),
        tf.RaggedTensorSpec([3], ragged_rank=0),
        tf.RaggedTensorSpec([2], tf.int32, ragged_rank=0),
    ):
        assert not dense.is_compatible_with(hold(other))
        assert not hold(other).is_compatible_with(dense)


def test_a_tensor_is_not_compatible_with_a_variable_spec():
    @xt.extension_type
    class Counter:
        count: Any

    variable = xt.spec_of(Counter(tf.Variable([1.0])))
    assert not variable.is_compatible_with(Counter(tf.constant([1.0])))


SPECS = [
    tf.TensorSpec(shape, dtype, name)
    for shape in (None, [], [None], [2], [3], [2, 3], [None, 3])
    for dtype in (tf.float32, tf.int32)
    for name in (None, "a")
]


@pytest.mark.parametrize("one", SPECS, ids=str)
def test_the_supertype_of_two_tensor_specs_is_that_of_tensorflow(one):
    for other in SPECS:
        found, expected = (
            xt.authoring.supertype(one, other),
            one.most_specific_common_supertype([other]),
        )
        assert repr(found) == repr(expected)


def test_the_supertype_of_many_fields_joins_each_pair_of_shapes_once(monkeypatch):
    def spec(size, count):
        fields = {f"f{i}": tf.TensorSpec([size, 5, 7]) for i in range(count)}
        return xt.DenseStructuredTensorSpec([size], fields)

    joined = []
    join = tf.TensorShape.most_specific_compatible_shape
    monkeypatch.setattr(
        tf.TensorShape,
        "most_specific_compatible_shape",
        lambda self, other: joined.append(join(self, other)) or joined[-1],
    )
    found = spec(17, 40).most_specific_common_supertype([spec(19, 40)])
    assert found == spec(None, 40)
    assert len(joined) == 2  # of the records, and of the fields
