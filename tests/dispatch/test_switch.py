"""EXTENSOR_DISPATCH=0 leaves TensorFlow's functions and operators unchanged."""

import pytest

OFF = {"EXTENSOR_DISPATCH": "0"}

KIND = """
import numpy as np, tensorflow as tf
plain = tf.add.__code__, tf.Tensor.__add__, tf.concat.__code__
import extensor as xt

class Length(xt.dispatch.OperatorsMixin):
    def __init__(self, metres):
        self.metres = metres

    @xt.dispatch.implements(tf.add, tf.reduce_sum, tf.concat, tf.convert_to_tensor)
    @classmethod
    def handle(cls, op, *args, **kwargs):
        return "handled"

class Bare:
    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        return "handled"

length, bare, one = Length(tf.constant([1.0])), Bare(), tf.constant([1.0])

CALLS = {
    "function": lambda: tf.add(length, 1.0),
    "second argument": lambda: tf.add(one, bare),
    "operator": lambda: length + 1.0,
    "operator of a tensor": lambda: one + bare,
    "reflected operator": lambda: one + length,
    "sequence": lambda: tf.concat([length, one], 0),
    "reduction": lambda: tf.reduce_sum(bare),
    "conversion": lambda: tf.convert_to_tensor(length),
    "in a graph": lambda: tf.function(lambda: tf.add(bare, 1.0))(),
}
"""


def test_functions_and_operators_of_tensorflow_do_not_change(run_python):
    run_python(
        KIND
        + """
assert plain == (tf.add.__code__, tf.Tensor.__add__, tf.concat.__code__)
assert not hasattr(tf.add, "_extensor_plain")
assert not [p for p in xt.patches() if p.probe in ("dispatch", "operators")]
assert [p for p in xt.patches() if "EXTENSOR_DISPATCH=0" in p.reason]
assert tf.add(one, 1.0).numpy().tolist() == (one + 1.0).numpy().tolist() == [2.0]
""",
        env=OFF,
    )


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("env", [OFF, {"EXTENSOR_DISPATCH": "1"}], ids=["off", "on"])
def test_the_error_for_a_missing_handler_names_the_switch(run_python, env):
    run_python(
        KIND
        + f"""
for name, call in CALLS.items():
    try:
        found = call()
    except (TypeError, ValueError) as error:
        assert {env == OFF}, (name, error)
        assert "EXTENSOR_DISPATCH=0" in str(error), (name, error)
        assert isinstance(error, xt.ExtensorError) or name == "in a graph", (name, error)
    else:
        assert {env != OFF}, (name, found)
        assert found == "handled" or tf.is_tensor(found), (name, found)
""",
        env=env,
    )


def test_types_work_in_every_api_that_needs_no_handler(run_python):
    run_python(
        """
import tensorflow as tf
import extensor as xt

masked = xt.types.MaskedTensor(tf.constant([1.0, 2.0]), tf.constant([True, False]))
records = xt.DenseStructuredTensor([2], {"a": [1.0, 2.0], "m": tf.ragged.constant([[1], []])})

for value in (masked, records):
    assert type(tf.function(lambda x: x)(value)) is type(value)
    [batch] = tf.data.Dataset.from_tensor_slices(value).batch(2)
    assert type(batch) is type(value)
    kept = tf.cond(tf.constant(True), lambda: value, lambda: value)
    assert type(kept) is type(value)
    flat = tf.nest.flatten(value, expand_composites=True)
    assert flat
with tf.GradientTape() as tape:
    tape.watch(masked)
    total = tf.reduce_sum(masked.values ** 2)
assert tape.gradient(total, masked).values.numpy().tolist() == [2.0, 4.0]
""",
        env=OFF,
    )


def test_types_that_convert_to_tensors_are_converted(run_python):
    run_python(
        """
import numpy as np, tensorflow as tf
import extensor as xt

class AsArray:
    def __array__(self, dtype=None, copy=None):
        return np.ones([2], np.float32)

    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        return "handled"

class Registered:
    __tf_dispatch__ = AsArray.__tf_dispatch__

tf.register_tensor_conversion_function(Registered, lambda value, *args, **kwargs: tf.ones([2]))
for kind in (AsArray, Registered):
    assert tf.add(kind(), 1.0).numpy().tolist() == [2.0, 2.0]
""",
        env=OFF,
    )
