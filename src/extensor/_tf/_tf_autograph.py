"""What autograph leaves as it is.

| name | why |
| --- | --- |
| `autograph.core.config.CONVERSION_RULES` | autograph rewrites the source of what a tf.function calls, unless a rule names its module, as TensorFlow's own list does for Keras and TFP. Rewriting extensor would make every trace slow and gain nothing: no loop of it depends on a tensor. |
| `autograph.impl.api` | `autograph_artifact` marks a function that autograph calls as it is. Of a function of TensorFlow that is given to tf.function itself it rewrites the source, which does not say that other code looks at the arguments. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import Any

from tensorflow.python.autograph.core import config
from tensorflow.python.autograph.impl import api

config.CONVERSION_RULES = (config.DoNotConvert("extensor"), *config.CONVERSION_RULES)


def call_as_it_is(function: Any) -> None:
    """Lets autograph call a function, and not what it makes of its source."""
    api.autograph_artifact(function)
