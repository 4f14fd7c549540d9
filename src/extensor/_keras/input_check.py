"""The check that an input has the type that a model was built for."""

# This file calls a method of specs that is private to `_struct`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._protocol.symbolic import is_symbolic
from extensor._struct.difference import mismatch
from extensor._struct.meaning import changes
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
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


def cast_input(expected: Any, given: Any, model: str) -> Any:
    """Returns an input with records cast to the specs that a model was built for.

    Records are cast where that loses nothing: to a finer unit, a wider dtype, fields that may be
    null. All else stays as it is, and `check_input` tells what is wrong with it.

    Args:
        expected: The nest of specs that the model was built for.
        given: The nest of values.
        model: The model's name, for errors.

    Raises:
        DTypeError: If numbers mean something else than expected (also a TypeError).
    """
    if isinstance(given, StructuredTensor):
        own = any_batch_size(given.__tf_type_spec__())
        return expected.cast(given) if changes_input(expected, own, model) else given
    if isinstance(expected, dict) and isinstance(given, dict):
        return {n: cast_input(expected.get(n), item, model) for n, item in given.items()}
    if _are_lists(expected, given):
        pairs = zip(expected, given, strict=True)
        return type(given)([cast_input(*each, model) for each in pairs])
    return given


def changes_input(expected: Any, received: Any, model: str) -> bool:
    """Returns whether `cast_input` changes an input.

    Args:
        expected: The nest of specs that the model was built for.
        received: The nest of specs of the input.
        model: The model's name, for errors.

    Raises:
        DTypeError: If numbers mean something else than expected (also a TypeError).
    """
    if isinstance(expected, StructuredTensorSpec) and isinstance(received, StructuredTensorSpec):
        if expected.is_compatible_with(received):
            return False
        wrong = mismatch(expected, received, f"{model}: input", f"{model}: input ")
        if wrong is not None and _has_other_units(expected, received):
            raise wrong
        return wrong is None
    if isinstance(expected, dict) and isinstance(received, dict):
        return any(changes_input(expected.get(n), item, model) for n, item in received.items())
    return _are_lists(expected, received) and any(
        changes_input(*each, model) for each in zip(expected, received, strict=True)
    )


def cast_units(expected: Any, given: Any, model: str) -> Any:
    """Returns `cast_input`, but only where numbers have another unit than expected.

    A model that declares no input takes records of any other kind.
    """
    if not isinstance(given, StructuredTensor) or not isinstance(expected, StructuredTensorSpec):
        return given
    own = given.__tf_type_spec__()
    if expected._units() == own._units() or is_symbolic(given):
        return given
    return cast_input(expected, given, model)


def _has_other_units(expected: StructuredTensorSpec, received: StructuredTensorSpec) -> bool:
    wanted = expected._units()
    return any(not changes(wanted.get(path), unit) for path, unit in received._units().items())


def _are_lists(one: Any, other: Any) -> bool:
    are_lists = all(type(each) in (list, tuple) for each in (one, other))
    return are_lists and len(one) == len(other)


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
        where = f"{model}: input"
        wrong = mismatch(want, have, f"{where} {path}" if path else where, f"{where} ", path)
        if wrong is None:  # a call casts it; a dataset is cast as a whole
            raise _mismatch(model, str(path), str(want), str(have))
        raise wrong


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
        mend="Give the model the fields and dtypes that it was built for: "
        "spec.cast(records), with the spec of its input.",
    )
