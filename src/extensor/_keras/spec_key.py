"""Specs as keys: texts that spell a TypeSpec, so that a plain dict can say what it holds."""

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

from extensor._protocol.box import StackableTypeSpec
from extensor._protocol.tree import reshaped
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf._tf_saving import classes_needed
from extensor.errors import DTypeError, ExtensorError, RegistrationError

_MARK = "extensor:"
_LOCAL = "extensor-local:"

# Each with what TensorFlow said when it was to write it.
_local_specs: dict[str, tuple[tf.TypeSpec, Exception]] = {}
_local_numbers = itertools.count()


def is_mark(key: Any) -> bool:
    """Returns whether something is a key that spells a spec."""
    return isinstance(key, str) and key.startswith((_MARK, _LOCAL))


def mark(spec: tf.TypeSpec) -> str:
    """Returns the key that spells a spec."""
    return _mark(spec, _order(spec))


def any_batch_size(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a spec with the size of its first dimension left open, where it has one."""
    return _any_batch_size(spec, _order(spec))


def any_sizes(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns a spec with all sizes left open, if there is one."""
    return _any_sizes(spec, _order(spec))


@functools.lru_cache(maxsize=1024)
def _any_sizes(spec: Any, order: Any) -> Any:
    if isinstance(spec, tf.RaggedTensorSpec):
        shape = _open(spec.shape)
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    try:
        return spec.deserialize(reshaped(spec.serialize(), _open, _open_spec))
    except (AttributeError, ValueError, TypeError):
        return spec  # whose sizes mean more


def _open(shape: tf.TensorShape) -> tf.TensorShape:
    return tf.TensorShape(None if shape.rank is None else [None] * shape.rank)


def _open_spec(spec: Any) -> Any:
    if isinstance(spec, tf.TensorSpec):
        return tf.TensorSpec(_open(spec.shape), spec.dtype, spec.name)
    return any_sizes(spec)


def _order(spec: Any) -> Any:
    """Returns the order of fields, of which the equality of specs says nothing."""
    if isinstance(spec, StructuredTensorSpec):
        fields = spec.record.field_specs
        return tuple((name, _order(inner)) for name, inner in fields.items())
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
        return None
    return tuple(_order(inner) for inner in tf.nest.flatten(spec._component_specs))


@functools.lru_cache(maxsize=1024)
def _any_batch_size(spec: Any, order: Any) -> tf.TypeSpec:
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank:
        shape = tf.TensorShape([None]).concatenate(spec.shape[1:])
        return tf.RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank:
        shape = tf.TensorShape([None]).concatenate(spec.shape[1:])
        return tf.TensorSpec(shape, spec.dtype, spec.name)
    if isinstance(spec, StackableTypeSpec):
        try:
            return spec.unstacked().stacked(None)
        except ExtensorError:
            return spec  # of a single value, or of one that has no batch
    return spec


@functools.lru_cache(maxsize=1024)
def _mark(spec: tf.TypeSpec, order: Any) -> str:
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
    return _MARK + base64.urlsafe_b64encode(packed).decode()


@functools.lru_cache(maxsize=1024)
def marked_spec(key: str) -> tf.TypeSpec:
    """Returns the spec that a key spells."""
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
    proto.ParseFromString(zlib.decompress(base64.urlsafe_b64decode(key[len(_MARK) :])))
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
