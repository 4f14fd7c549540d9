"""The names under which specs are saved.

| name | why |
| --- | --- |
| `type_spec_registry` | The registry of the names of specs in a SavedModel. Its `register` rejects a class that is defined again, as in a notebook, so extensor writes its two tables. |
"""  # noqa: E501 - a table row is one line

from __future__ import annotations

import threading

from tensorflow.python.framework import type_spec_registry

_registry_lock = threading.RLock()

DOTLESS = "extensor.dotless."
"""The prefix of names without a dot in TensorFlow's registry, which requires a dot."""


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
    """Sets the name for saving of a spec class; reading the name still returns another class."""
    with _registry_lock:
        type_spec_registry._TYPE_SPEC_TO_NAME[spec_class] = name


def replace_registration(spec_class: type, name: str) -> None:
    """Registers a class under a name in TensorFlow's registry, and replaces an older class.

    The older class keeps its name for saving, because its values may still exist.
    """
    with _registry_lock:
        type_spec_registry._TYPE_SPEC_TO_NAME[spec_class] = name
        type_spec_registry._NAME_TO_TYPE_SPEC[name] = spec_class
