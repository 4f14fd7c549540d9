"""Base class of specs that replace TensorFlow's own specs and add public methods to them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._tf import deserialize, name_for_saving, registered_name, serialize
from extensor._typing import Value


class StandIn:
    """Base class of specs that wrap a spec of TensorFlow's own."""

    __slots__ = ()

    plain_class: type[tf.TypeSpec]

    @property
    def plain(self: tf.TypeSpec) -> tf.TypeSpec:
        """TensorFlow's own spec, which this one wraps."""
        return deserialize(self.plain_class, serialize(self))

    def __tf_tracing_type__(self, context: object) -> tf.TypeSpec:
        return self.plain

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = registered_name(getattr(cls, "plain_class", cls))
        if name is not None:
            name_for_saving(cls, name)


def plain_spec(spec: Value) -> Value:
    """Returns TensorFlow's own spec if the argument is a `StandIn`; else the argument."""
    return spec.plain if isinstance(spec, StandIn) else spec
