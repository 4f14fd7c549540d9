"""The public names of TensorFlow's functions.

| name | why |
| --- | --- |
| `tf_export` | The `__module__` of a TensorFlow function is private, and may change in another release. This gives its public name, which does not. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import functools

import tensorflow as tf
from tensorflow.python.util import tf_export


def public_name(symbol: object) -> str | None:
    """Returns the name of a symbol of TensorFlow under `tf`, or None if it has none.

    >>> from extensor._tf._tf_symbol import public_name
    >>> import tensorflow as tf
    >>> public_name(tf.nn.relu), public_name(len)
    ('nn.relu', None)
    """
    name = tf_export.get_canonical_name_for_symbol(symbol)
    if name is None:
        return None
    try:
        found = functools.reduce(getattr, name.split("."), tf)
    except AttributeError:
        return None
    return name if found is symbol else None
