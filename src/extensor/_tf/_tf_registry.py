"""The names under which specs are saved.

| name | why |
| --- | --- |
| `type_spec_registry` | The one registry of names under which specs are written into a SavedModel. Its `register` refuses what a re-run notebook cell does; its two tables are amended here. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading

from tensorflow.python.framework import type_spec_registry

_registry_lock = threading.RLock()

DOTLESS = "extensor.dotless."
"""What a name begins with in TensorFlow's registry, which takes names of two words or more, if its
author gave it no dot, which is legal here."""


def registered_name(spec_class: type) -> str | None:
    """Returns the name under which TensorFlow knows a TypeSpec class, or None."""
    return type_spec_registry._TYPE_SPEC_TO_NAME.get(spec_class)


def registered_spec(name: str) -> type | None:
    """Returns the TypeSpec class that TensorFlow knows under a name, or None."""
    return type_spec_registry._NAME_TO_TYPE_SPEC.get(name)


def registered_specs() -> dict[str, type]:
    """Returns every TypeSpec class that TensorFlow knows under a name, by its name."""
    return dict(type_spec_registry._NAME_TO_TYPE_SPEC)


def name_for_saving(spec_class: type, name: str) -> None:
    """Lets specs of a class be saved under a name, which stays that of another when read."""
    with _registry_lock:
        type_spec_registry._TYPE_SPEC_TO_NAME[spec_class] = name


def replace_registration(spec_class: type, name: str) -> None:
    """Binds a name to a class in TensorFlow's registry, in place of an older class if need be.

    The older class keeps its name for saving, because values of it may still be alive.
    """
    with _registry_lock:
        type_spec_registry._TYPE_SPEC_TO_NAME[spec_class] = name
        type_spec_registry._NAME_TO_TYPE_SPEC[name] = spec_class
