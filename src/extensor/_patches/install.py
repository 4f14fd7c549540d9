"""Installs the table of patches, once."""

# pyright: reportUnusedImport=false

from __future__ import annotations

import threading

from extensor._dispatch.switch import is_on
from extensor._patches import (  # noqa: F401 - each import registers patches
    _tf_autograph,
    _tf_branches,
    _tf_classes,
    _tf_codec,
    _tf_conversion,
    _tf_data,
    _tf_distribute,
    _tf_gradients,
    _tf_loops,
    _tf_modules,
    _tf_py_function,
    _tf_restored,
    _tf_session,
)
from extensor._patches.functions import functions, operators
from extensor._patches.patch import TABLE, Patch

_installed: list[Patch] = []
_lock = threading.Lock()


def install() -> None:
    """Makes all changes of TensorFlow, unless they are made already."""
    with _lock:
        if not _installed:
            rows = [*TABLE, *functions(), *operators()] if is_on() else list(TABLE)
            for row in rows:
                row.apply()
            _installed.extend(rows)


def install_keras(rows: list[Patch]) -> None:
    """Makes changes of Keras, unless they are made already."""
    with _lock:
        for row in rows:
            if row not in _installed:
                row.apply()
                _installed.append(row)


def patches() -> list[Patch]:
    """Returns what extensor has changed in TensorFlow and Keras, one record a change.

    `import extensor` changes TensorFlow, and `import extensor.keras` changes Keras.

    Returns:
        Records with the attributes `target` (the dotted name of what is changed), `reason`,
        `defined_in` (the file and line of the function that makes the change), `versions` (the
        releases with which it is tested) and `probe` (the test that checks whether a
        new release still does what the change needs).

    >>> import extensor as xt
    >>> [patch] = [patch for patch in xt.patches() if patch.target == "tf.GradientTape.jacobian"]
    >>> patch
    <tf.GradientTape.jacobian: It reshapes the gradients, which works only for tensors.
    (extensor/_patches/_tf_gradients.py:...)>
    """
    return list(_installed)
