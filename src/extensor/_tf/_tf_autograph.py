"""What autograph leaves as it is.

| name | why |
| --- | --- |
| `autograph.impl.api` | `autograph_artifact` marks a function that autograph calls as it is. Of a function of TensorFlow that is given to tf.function itself it rewrites the source, which does not say that other code looks at the arguments. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import Any

from tensorflow.python.autograph.impl import api


def call_as_it_is(function: Any) -> None:
    """Lets autograph call a function, and not what it makes of its source."""
    api.autograph_artifact(function)
