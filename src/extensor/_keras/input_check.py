"""The check that an input has the type that a model was built for."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._path import Path
from extensor._struct.spec import difference
from extensor.errors import DTypeError


def check_input(expected: Any, received: Any, model: str) -> None:
    """Raises unless the specs of an input are compatible with those that a model was built for.

    Args:
        expected: The nest of specs that the model was built for.
        received: The nest of specs of the input.
        model: The model's name, for the error.

    Raises:
        DTypeError: If the specs are not compatible. The error names the model and the path of the
            first difference (also a TypeError).
    """
    _check(_without_list(expected), _without_list(received), Path(), model)


def _without_list(inputs: Any) -> Any:
    """Returns inputs in lists; a list of one input as this input, as Keras does."""
    inputs = _as_lists(inputs)
    return inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else inputs


def _check(want: Any, have: Any, path: Path, model: str) -> None:
    is_nest = isinstance(want, (dict, list))
    if type(want) is type(have) and is_nest and len(want) == len(have):
        is_dict = isinstance(want, dict)
        keys: list[Any] = list(want) if is_dict else list(range(len(want)))
        for name in keys:
            if is_dict and name not in have:
                raise _mismatch(model, str(path / str(name)), "this input", _text(have))
            _check(want[name], have[name], path / str(name), model)
    elif is_nest or isinstance(have, (dict, list)):
        raise _mismatch(model, str(path), _text(want), _text(have))
    elif not want.is_compatible_with(have) and not _casts(want, have):
        at, wanted, had = difference(want, have, lambda a, b: a.is_compatible_with(b), path)
        raise _mismatch(model, str(at), wanted, had)


def _text(part: Any) -> str:
    return f"inputs {', '.join(part)}" if isinstance(part, dict) else str(part)


def _casts(want: Any, have: Any) -> bool:
    """Returns whether Keras casts a tensor to the expected spec, as it does with floats."""
    if not (isinstance(want, tf.TensorSpec) and isinstance(have, tf.TensorSpec)):
        return False
    floats = want.dtype.is_floating and have.dtype.is_floating
    return floats and want.shape.is_compatible_with(have.shape)


def _as_lists(structure: Any) -> Any:
    """Returns a nest with tuples replaced by lists, because Keras treats them alike."""
    if isinstance(structure, dict):
        return {name: _as_lists(item) for name, item in structure.items()}
    return [_as_lists(i) for i in structure] if isinstance(structure, (list, tuple)) else structure


def _mismatch(model: str, path: str, expected: str, received: str) -> DTypeError:
    return DTypeError(
        path=f"{model}: input {path}" if path else f"{model}: input",
        expected=expected,
        received=received,
        mend="Give the model the fields and dtypes that it was built for; change records with "
        "with_only, with_updates and tf.cast.",
    )
