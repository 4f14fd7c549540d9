"""Dicts of the fields of a declared type: in `spec.cast` and in requests to servers."""

import enum
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature


class Scale(enum.Enum):
    METRIC = 1
    IMPERIAL = 2


@xt.extension_type(name="given_fields.Measured")
class Measured:
    value: tf.Tensor
    unit: str
    parts: tuple
    by_name: dict
    digits: int = 2
    extra: Any = None


def measured(unit="g", scale=Scale.METRIC, digits=2, extra=None, value=(1.0, 2.0)):
    parts = (tf.constant(3), scale, [tf.constant("a"), 5])
    return Measured(
        tf.constant(value), unit, parts, {"low": tf.constant(0), "of": "x"}, digits, extra
    )


statics = st.sampled_from(
    ["g", "kg", "", 1, 1.0, True, None, Scale.METRIC, (1, "a"), [1], {"a": 1}]
)


def python(value):
    return {
        "value": value.value.numpy().tolist(),
        "unit": value.unit,
        "parts": (3, value.parts[1], ["a", 5]),
        "by_name": {"low": 0, "of": "x"},
        "digits": value.digits,
        "extra": value.extra,
    }


@given(statics, statics)
def test_a_dict_is_cast_if_and_only_if_its_static_data_is_that_of_the_spec(own, other):
    spec = xt.spec_of(measured(extra=own))
    data = {**python(measured(extra=own)), "extra": other}
    if xt.spec_of(measured(extra=other)) == spec:
        assert spec.cast(data).__tf_type_spec__() == spec
        return
    with pytest.raises(errors.DTypeError, match=r"Measured\.Spec\.extra") as raised:
        spec.cast(data)
    assert raised.value.received == repr(other)


USES = {
    "cast": lambda spec, data: spec.cast(data).value.numpy(),
    "encode": lambda spec, data: flat_signature(lambda x: x, spec).encode(data)["value"].numpy(),
    "signature": lambda spec, data: tf.function(lambda x: x.value, input_signature=[spec])(
        data
    ).numpy(),
}


@pytest.mark.parametrize("use", USES)
def test_static_fields_are_given_and_checked(use):
    call, spec = USES[use], xt.spec_of(measured())
    data = python(measured())
    np.testing.assert_array_equal(call(spec, data), [1.0, 2.0])
    short = {name: data[name] for name in ("value", "unit", "parts", "by_name")}
    np.testing.assert_array_equal(call(spec, short), [1.0, 2.0])  # the others have defaults


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"unit": "kg"}, "Measured.Spec.unit", "expected 'g', got 'kg'"),
        ({"unit": None}, "Measured.Spec.unit", "expected 'g', got None"),
        ({"digits": 3}, "Measured.Spec.digits", "expected 2, got 3"),
        ({"parts": (3, Scale.IMPERIAL, ["a", 5])}, "Measured.Spec.parts[1]", "IMPERIAL"),
        ({"parts": (3,)}, "Measured.Spec.parts", "a sequence of 3"),
        ({"by_name": {"low": 0}}, "Measured.Spec.by_name", "a dict with 'low', 'of'"),
        ({"unheard": 1}, "Measured.Spec", "Leave out unheard."),
    ],
)
def test_other_fields_are_an_error_with_their_path(change, path, words):
    with pytest.raises((errors.DTypeError, errors.StructureError)) as raised:
        xt.spec_of(measured()).cast({**python(measured()), **change})
    assert raised.value.path == path
    assert words in str(raised.value)


@pytest.mark.parametrize("name", ["unit", "value", "parts"])
def test_the_mend_for_a_missing_field_names_it(name):
    data = {key: value for key, value in python(measured()).items() if key != name}
    with pytest.raises(errors.DTypeError) as raised:
        xt.spec_of(measured()).cast(data)
    assert f"Add {name!r}: {repr('g') if name == 'unit' else '...'}." in raised.value.fix
    with pytest.raises(errors.DTypeError, match="Add 'digits': 3"):
        xt.spec_of(measured(digits=3)).cast(
            {key: value for key, value in python(measured()).items() if key != "digits"}
        )


def test_components_may_be_given_by_their_own_names():
    value = xt.spec_of(measured()).cast(
        {
            **{"value": [1, 2], "unit": "g", "parts[0]": 3, "parts[2][0]": "a"},
            "by_name['low']": 7,
        }
    )
    assert value.by_name["low"].numpy() == 7


def test_static_data_that_a_type_ignores_is_not_needed():
    @xt.auto_composite_tensor(non_identifying_kwargs=("name",))
    class Normal(xt.AutoCompositeTensor):
        def __init__(self, loc, name, scale=1.0):
            self._loc, self._name, self._scale = tf.convert_to_tensor(loc), name, scale

    spec = Normal([1.0], "a").__tf_type_spec__()
    for data in ({"loc": [2.0]}, {"loc": [2.0], "name": "b"}, {"loc": [2.0], "scale": 1.0}):
        assert spec.cast(data)._loc.numpy().tolist() == [2.0]
    with pytest.raises(errors.DTypeError, match="scale"):
        spec.cast({"loc": [2.0], "scale": 2.0})
