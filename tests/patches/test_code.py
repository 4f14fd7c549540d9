"""Tracebacks through functions whose code extensor replaces: file names and source lines."""

import linecache
import traceback
from pathlib import Path

import pytest
import tensorflow as tf

TENSORFLOW = Path(tf.__file__).parent


class Failing:
    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        raise ZeroDivisionError("of a handler")


class Declining:
    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        return NotImplemented


CALLS = {
    "two arguments": lambda x: tf.add(x, 1.0),
    "keywords": lambda x: tf.add(x=1.0, y=x, name="sum"),
    "defaults filled in": lambda x: tf.bitwise.invert(x),
    "a sequence": lambda x: tf.concat([x, x], 0),
    "any number": lambda x: tf.einsum("i,i->i", x, x),
    "an operator": lambda x: tf.constant(1.0) + x,
    "a reflected operator": lambda x: tf.RaggedTensor.__radd__(tf.ragged.constant([[1.0]]), x),
    "an item": lambda x: tf.__operators__.getitem(x, 0),
}


def frames_below(call, value):
    """Returns the frames of a traceback from TensorFlow's function on."""
    try:
        call(value)
    except Exception as error:
        summary = traceback.extract_tb(error.__traceback__)
        return [frame for frame in summary if frame.filename != __file__]
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("kind", [Failing, Declining])
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_the_frame_of_a_function_shows_tensorflows_own_source(call, kind):
    first = frames_below(call, kind())[0]
    assert TENSORFLOW in Path(first.filename).parents, first
    # The first line of the function: its definition, or a decorator above it.
    definition = "lambda " if first.name == "<lambda>" else f"def {first.name}("
    assert definition in first.line or first.line.startswith("@"), first
    below = "".join(linecache.getline(first.filename, first.lineno + i) for i in range(9))
    assert definition in below


def test_no_frame_of_extensor_is_shown_if_no_type_overrides_the_function():
    frames = frames_below(CALLS["two arguments"], object())
    assert frames
    assert [frame for frame in frames if "extensor" in Path(frame.filename).parts] == []
