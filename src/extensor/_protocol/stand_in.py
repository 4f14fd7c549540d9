"""Specs that stand in for TensorFlow's own, so that these answer to public names."""

from __future__ import annotations

from typing import Any

from extensor._tf import deserialize, name_for_saving, registered_name, serialize


class StandIn:
    """A base of classes whose instances stand in for a spec of TensorFlow's own."""

    __slots__ = ()

    plain_class: Any

    @property
    def plain(self: Any) -> Any:
        """The spec that this one stands for."""
        return deserialize(self.plain_class, serialize(self))

    def __tf_tracing_type__(self, context: Any) -> Any:
        return self.plain

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = registered_name(getattr(cls, "plain_class", cls))
        if name is not None:
            name_for_saving(cls, name)


def plain_spec(spec: Any) -> Any:
    """Returns the spec that a spec stands for, if it stands for one; else what was given."""
    return spec.plain if isinstance(spec, StandIn) else spec
