"""Functions that AutoGraph calls without converting them.

| name | why |
| --- | --- |
| `autograph.impl.api` | `autograph_artifact` marks a function that AutoGraph does not convert. It would convert the source of a TensorFlow function that is passed to tf.function, which lacks the code of extensor that checks the arguments. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from collections.abc import Callable

from tensorflow.python.autograph.impl import api


def call_as_it_is(function: Callable[..., object]) -> None:
    """Makes AutoGraph call a function without converting its source."""
    api.autograph_artifact(function)
