"""Keys of specs: texts from which a TypeSpec can be read again, in this process or in another.

A spec that is not registered has a key too, which only this process can read.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import re
import warnings
import zlib
from typing import Any

import tensorflow as tf

from extensor._keras.open_spec import field_order
from extensor._tf._tf_saving import classes_needed
from extensor.errors import DTypeError, RegistrationError

_REGISTERED = "extensor:"
_LOCAL = "extensor-local:"

# Each with the error that TensorFlow raised when it tried to write the spec.
_local_specs: dict[str, tuple[tf.TypeSpec, Exception]] = {}
_local_numbers = itertools.count()


def is_key(key: Any) -> bool:
    """Returns whether something is the key of a spec."""
    return isinstance(key, str) and key.startswith((_REGISTERED, _LOCAL))


def key_of_spec(spec: tf.TypeSpec) -> str:
    """Returns the key of a spec."""
    return _key(spec, field_order(spec))


@functools.lru_cache(maxsize=1024)
def _key(spec: tf.TypeSpec, order: Any) -> str:
    try:
        with warnings.catch_warnings():
            # TensorFlow warns that a reader needs the type registered, which is so by now.
            warnings.simplefilter("ignore", UserWarning)
            proto = spec.experimental_as_proto()
    except Exception as error:
        # A spec that is not registered works in this process, but cannot be saved.
        key = f"{_LOCAL}{next(_local_numbers)}"
        _local_specs[key] = spec, error
        return key
    packed = zlib.compress(proto.SerializeToString(deterministic=True), 9)
    return _REGISTERED + base64.urlsafe_b64encode(packed).decode()


@functools.lru_cache(maxsize=1024)
def spec_of_key(key: str) -> tf.TypeSpec:
    """Returns the spec of a key."""
    if key.startswith(_LOCAL):
        if key not in _local_specs:
            raise RegistrationError(
                path="xt.keras",
                expected="a registered TypeSpec, so that the model can be read again",
                received="one that only the process knew which wrote the model",
                mend="Put @xt.register_type_spec above the class, and write the model again.",
            )
        return _local_specs[key][0]
    proto = tf.TypeSpec.experimental_type_proto()()
    proto.ParseFromString(zlib.decompress(base64.urlsafe_b64decode(key[len(_REGISTERED) :])))
    with classes_needed():  # a layer asks more of its values than stand-ins have
        return tf.TypeSpec.experimental_from_proto(proto)


def check_savable(config: Any, owner: str = "") -> Any:
    """Returns a model's configuration, unless it means something in this process only.

    Args:
        config: What `get_config` returns.
        owner: The model's name, for the error.

    Raises:
        RegistrationError: If there is a spec in it that is not registered (also a ValueError).
        DTypeError: If there is one whose static data cannot be written (also a TypeError).
    """
    local = re.search(f"{_LOCAL}[0-9]+", json.dumps(config))
    if local is None:
        return config
    spec, error = _local_specs[local[0]]
    at = f"{owner}: " if owner else ""
    if isinstance(error, DTypeError):
        raise DTypeError(
            path=f"{at}{error.path}",
            expected=error.expected,
            received=error.received,
            mend=error.mend,
        ) from error
    raise RegistrationError(
        path=f"{at}{type(spec).__module__}.{type(spec).__qualname__}",
        expected="a registered TypeSpec, so that the model can be read again",
        received="one that only this process knows",
        mend="Put @xt.register_type_spec above the class.",
    ) from error
