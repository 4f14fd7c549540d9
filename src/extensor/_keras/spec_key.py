"""Keys of specs: strings that encode a TypeSpec, for this or another process.

The key of a spec that is not registered works only in this process.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import re
import warnings
import zlib
from collections.abc import Hashable
from typing import Any

import tensorflow as tf

from extensor._keras.open_spec import ignored_parts
from extensor._tf._tf_saving import classes_needed
from extensor._typing import Nest
from extensor.errors import DTypeError, RegistrationError

_REGISTERED = "extensor:"
_LOCAL = "extensor-local:"

# Each spec with the error that TensorFlow raised when it serialized the spec.
_local_specs: dict[str, tuple[tf.TypeSpec, Exception]] = {}
_local_numbers = itertools.count()


class SpecKey(str):
    """The key of a spec. Its `repr`, which errors of Keras show, is that of the spec.

    Args:
        key: The key, after an optional first word.
        spec: The spec.
    """

    spec: tf.TypeSpec

    def __new__(cls, key: str, spec: tf.TypeSpec) -> SpecKey:
        """Returns the key of a spec."""
        self = super().__new__(cls, key)
        self.spec = spec
        return self

    def __repr__(self) -> str:
        return f"<{self.spec}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def is_key(key: object) -> bool:
    """Returns whether `key` is the key of a spec."""
    return isinstance(key, str) and key.startswith((_REGISTERED, _LOCAL))


def key_of_spec(spec: tf.TypeSpec) -> str:
    """Returns the key of a spec."""
    return _key(spec, ignored_parts(spec))


@functools.lru_cache(maxsize=1024)
def _key(spec: tf.TypeSpec, order: Hashable) -> str:
    try:
        with warnings.catch_warnings():
            # TensorFlow warns that loading needs a registered type. A registered type is fine.
            warnings.simplefilter("ignore", UserWarning)
            proto = spec.experimental_as_proto()
    except Exception as error:
        # A spec that is not registered works in this process, but cannot be saved.
        key = f"{_LOCAL}{next(_local_numbers)}"
        _local_specs[key] = spec, error
        return SpecKey(key, spec)
    packed = zlib.compress(proto.SerializeToString(deterministic=True), 9)
    return SpecKey(_REGISTERED + base64.urlsafe_b64encode(packed).decode(), spec)


@functools.lru_cache(maxsize=1024)
def spec_of_key(key: str) -> tf.TypeSpec:
    """Returns the spec of a key."""
    if key.startswith(_LOCAL):
        if key not in _local_specs:
            expected = "a registered TypeSpec, because only such specs can be loaded"
            received = "a TypeSpec that was not registered when the model was saved"
            fix = "Put @xt.register_type_spec above the class, and save the model again."
            raise RegistrationError("xt.keras", expected, received, fix)
        return _local_specs[key][0]
    proto = tf.TypeSpec.experimental_type_proto()()
    proto.ParseFromString(zlib.decompress(base64.urlsafe_b64decode(key[len(_REGISTERED) :])))
    with classes_needed():  # layers need the real types, not stand-ins
        return tf.TypeSpec.experimental_from_proto(proto)


def check_savable(config: Nest, owner: str = "") -> Nest:
    """Returns a model's configuration as it is, if another process can load it.

    Args:
        config: The configuration from `get_config`.
        owner: The model's name, for the error.

    Raises:
        RegistrationError: If a spec in it is not registered (also a ValueError).
        DTypeError: If the static data of a spec in it cannot be saved (also a TypeError).
    """
    local = re.search(f"{_LOCAL}[0-9]+", json.dumps(config))
    if local is None:
        return config
    spec, error = _local_specs[local[0]]
    at = f"{owner}: " if owner else ""
    if isinstance(error, DTypeError):
        raise DTypeError(f"{at}{error.path}", error.expected, error.received, error.fix) from error
    expected = "a registered TypeSpec, because only such specs can be loaded"
    received = "a TypeSpec that is not registered"
    fix = "Put @xt.register_type_spec above the class."
    raise RegistrationError(
        f"{at}{type(spec).__module__}.{type(spec).__qualname__}", expected, received, fix
    ) from error
