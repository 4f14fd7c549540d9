"""What an extension value says where TensorFlow wants one tensor.

| name | why |
| --- | --- |
| `tf.register_tensor_conversion_function` (public) | Where TensorFlow wants one tensor and gets an extension value, its own errors speak of lengths and NumPy. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._tf._tf_protocol import Container, Extension, refused
from extensor.errors import DTypeError


def _refuse_as_tensor(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    try:
        return tf.constant(value, dtype, name=name)  # what would be tried without this function
    except (TypeError, ValueError) as error:
        raise DTypeError(
            path=type(value).__name__,
            expected="a tensor, or what converts to one",
            received="an extension value, which is made of several",
            mend="Give its components, xt.nest.flatten(value, expand_composites=True). To change "
            "them in place, hold a tf.Variable in a field.",
        ) from error


def _refuse_container(value: Any, *args: Any, **kwargs: Any) -> Any:
    raise refused(type(value))


# Before the one for lists and tuples, which packs them.
tf.register_tensor_conversion_function(Container, _refuse_container, 0)
# After all that users register for their own classes (100), before the one for any object (200).
tf.register_tensor_conversion_function(Extension, _refuse_as_tensor, 199)
