"""The check that an input has the type that a model was built for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from extensor._keras.graph_node import is_symbolic
from extensor._keras.lowering import contains, is_extension, map_leaves, own_spec, to_lowered
from extensor._keras.open_spec import any_batch_size
from extensor._path import Path
from extensor._protocol.tree import with_items
from extensor._struct.difference import mismatch
from extensor._struct.spec import has_records, units_of
from extensor._struct.units import have_other_units, with_units_of
from extensor._typing import Nest
from extensor.errors import DTypeError, StructureError


def check_input(expected: Nest, received: Nest, model: str) -> None:
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


def cast_input(expected: Nest, given: Nest, is_declared: bool) -> Nest:
    """Returns an input with records cast to the specs that a model was built for, without loss.

    Args:
        expected: The nest of specs that the model was built for.
        given: The nest of values.
        is_declared: Whether the model declares its input. Records are cast to it: to a finer unit,
            a wider dtype, fields that may be null. `check_input` tells what is wrong with others.
            A model without such an input takes any records, with the units of those before.

    Raises:
        DTypeError: If numbers mean something else than expected (also a TypeError).
    """
    if is_extension(given):
        if not isinstance(expected, tf.TypeSpec):
            is_one = type(expected) in (list, tuple) and len(expected) == 1
            return cast_input(expected[0], given, is_declared) if is_one else given
        # Whether lists fit a dense field is known for values only.
        is_known = is_declared and tf.executing_eagerly()
        spec = own_spec(given)
        if not is_cast(expected, spec, is_declared, total=not is_known) or is_placeholder(given):
            return given  # a model that gets a placeholder casts its values
        if not is_declared:
            return with_units_of(expected, given)
        try:
            return expected.cast(given)
        except StructureError:
            if is_cast(expected, spec, is_declared):
                raise
            return given  # `check_input` lists the fields with other sizes
    if isinstance(expected, dict) and isinstance(given, dict):
        return {n: cast_input(expected.get(n), item, is_declared) for n, item in given.items()}
    is_one = type(given) in (list, tuple) and len(given) == 1
    if is_one and isinstance(expected, tf.TypeSpec):
        return type(given)([cast_input(expected, given[0], is_declared)])
    if _are_lists(expected, given):
        pairs = zip(expected, given, strict=True)
        return with_items(given, [cast_input(*each, is_declared) for each in pairs])
    return given


def is_cast(expected: Nest, received: Nest, is_declared: bool, total: bool = True) -> bool:
    """Returns whether `cast_input` changes an input of these specs.

    Args:
        expected: As in `cast_input`.
        received: The nest of specs of the input.
        is_declared: As in `cast_input`.
        total: Whether the cast must hold for all values of these specs, as in `mismatch`.
    """
    if isinstance(received, tf.TypeSpec):
        if not isinstance(expected, tf.TypeSpec):
            return False
        if not is_declared:
            return have_other_units(expected, received)
        if not has_records(expected):
            return False
        received = any_batch_size(received)
        if received == expected or expected.is_compatible_with(received):
            return False
        return not mismatch(expected, received, "", total=total)
    if isinstance(expected, dict) and isinstance(received, dict):
        return any(is_cast(expected.get(n), item, is_declared) for n, item in received.items())
    return _are_lists(expected, received) and any(
        is_cast(*each, is_declared) for each in zip(expected, received, strict=True)
    )


def is_placeholder(given: Nest) -> bool:
    """Returns whether a nest of values has placeholders for values, in a functional graph."""
    return is_symbolic(to_lowered(given))


def _are_lists(one: Nest, other: Nest) -> bool:
    are_lists = all(isinstance(each, (list, tuple)) for each in (one, other))
    return are_lists and len(one) == len(other)


class ArgumentUnits:
    """The specs of the arguments of a layer by name: later calls get the units in them.

    Args:
        call: The method `call` of the layer's class.
        args: The positional arguments of the first call, without the layer.
        kwargs: The other arguments.
        known: The specs of some of the arguments, if the model was saved after its first call.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        known: Mapping[str, Nest],
    ) -> None:
        self._signature = inspect.signature(call)
        given = self._signature.bind_partial(None, *args, **kwargs).arguments
        specs = {name: map_leaves(_spec_or_none, value) for name, value in given.items()}
        specs.update(known)
        self.specs = {name: spec for name, spec in specs.items() if contains(spec, _has_units)}

    def of_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the arguments of a call with these units.

        Raises:
            DTypeError: If numbers mean something else than in the first call (also a TypeError).
        """
        given = self._signature.bind_partial(None, *args, **kwargs)
        for name in self.specs.keys() & given.arguments.keys():
            spec, value = self.specs[name], given.arguments[name]
            if self._signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                spec = (*spec, *[None] * len(value))[: len(value)]  # there may be more, or fewer
            given.arguments[name] = cast_input(spec, value, is_declared=False)
        return given.args[1:], given.kwargs


def _spec_or_none(leaf: object) -> tf.TypeSpec | None:
    return own_spec(leaf) if is_extension(leaf) else None


def _has_units(spec: object) -> bool:
    return isinstance(spec, tf.TypeSpec) and bool(units_of(spec))


def _without_list(inputs: Nest) -> Nest:
    """Returns inputs in lists; a list of one input as this input, as Keras does."""
    inputs = _as_lists(inputs)
    return inputs[0] if isinstance(inputs, list) and len(inputs) == 1 else inputs


def _check(want: Nest, have: Nest, path: Path, model: str) -> None:
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
        at = f"{where} {path}" if path else where
        wrong = mismatch(want, have, at, f"{where} ", path, total=True)
        if wrong is None:  # a call casts it; a dataset is cast as a whole
            raise _mismatch(model, str(path), str(want), str(have))
        raise wrong


def _text(part: Nest) -> str:
    return f"inputs {', '.join(part)}" if isinstance(part, dict) else str(part)


def _casts(want: tf.TypeSpec, have: tf.TypeSpec) -> bool:
    """Returns whether Keras casts a tensor to the expected spec, as it does with floats."""
    if not (isinstance(want, tf.TensorSpec) and isinstance(have, tf.TensorSpec)):
        return False
    floats = want.dtype.is_floating and have.dtype.is_floating
    return floats and want.shape.is_compatible_with(have.shape)


def _as_lists(structure: Nest) -> Nest:
    """Returns a nest with tuples replaced by lists, because Keras treats them alike."""
    if isinstance(structure, dict):
        return {name: _as_lists(item) for name, item in structure.items()}
    return [_as_lists(i) for i in structure] if isinstance(structure, (list, tuple)) else structure


def _mismatch(model: str, path: str, expected: str, received: str) -> DTypeError:
    fix = "Give the fields and dtypes of its input: spec.cast(records), with the spec of the input."
    return DTypeError(
        f"{model}: input {path}" if path else f"{model}: input", expected, received, fix
    )
