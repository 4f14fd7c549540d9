"""What autograph leaves as it is.

| name | why |
| --- | --- |
| `autograph.core.config.CONVERSION_RULES` | autograph rewrites the source of what a tf.function calls, unless a rule names its module, as TensorFlow's own list does for Keras and TFP. Rewriting extensor would make every trace slow and gain nothing: no loop of it depends on a tensor. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from tensorflow.python.autograph.core import config

config.CONVERSION_RULES = (config.DoNotConvert("extensor"), *config.CONVERSION_RULES)
