"""What `import extensor` changes in Keras: what its own classes do with extension values.

Keras itself refuses them, with errors about positional arguments, shapes or KerasTensors. Where it
does, the error names what `xt.keras` has instead. A call that Keras accepts is not changed, and a
call without extension values raises Keras's errors.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._keras.advice import (
    is_ours,
    own_values,
    refusal,
    refusal_of_data,
    refusal_of_elements,
    refusal_of_layer,
)
from extensor._patches.install import install_keras
from extensor._patches.patch import Patch, replaces
from extensor._protocol.symbolic import is_symbolic
from extensor._struct.masked import is_masked
from extensor._tf import Extension
from extensor._typing import Nest
from extensor.errors import MissingAttributeError, NullError

TABLE: list[Patch] = []
VERSIONS = ("3.10", "3.15")


def install() -> None:
    """Makes the changes, if Keras is imported. TensorFlow imports it where it is installed."""
    keras = sys.modules.get("keras")
    version = getattr(keras, "__version__", "0.0").split(".")[:2]
    if tuple(map(int, version)) >= tuple(map(int, VERSIONS[0].split("."))):
        install_keras(TABLE)


_replaces = functools.partial(replaces, probe="refused_values", table=TABLE, versions=VERSIONS)


@_replaces(
    "keras.layers.Layer.__call__",
    reason="A layer or model of Keras that gets an extension value says 'Only input tensors may "
    "be passed as positional arguments'.",
)
def layer_call(plain: Callable[..., Any]) -> Callable[..., Any]:
    return _advising(plain, _advice_of_layer)


def _advice_of_layer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    layer, *inputs = args
    given = next(own_values(inputs), None)
    # A user's layer accepts values by their names, and may raise any error about them.
    if given is None and type(layer).__module__.startswith("keras."):
        given = next(own_values(kwargs), None)
    return None if given is None else refusal_of_layer(layer, given)


def _first_batch(data: Nest) -> Nest:
    """Returns the first batch of a PyDataset, or what a dataset has; other data as it is."""
    keras = sys.modules["keras"]
    if isinstance(data, tf.data.Dataset) and keras.backend.backend() != "tensorflow":
        return data.element_spec  # JAX and PyTorch get no records from any model
    return data[0] if isinstance(data, keras.utils.PyDataset) else data


_DATA = ("x", "y", "sample_weight", "validation_data")


def with_data(plain: Callable[..., Any]) -> Callable[..., Any]:
    return _advising(plain, _advice_of_model)


for _name in ("fit", "evaluate", "predict"):
    _replaces(
        f"keras.Model.{_name}", reason="It calls an extension value an 'unrecognized data type'."
    )(with_data)


def _advice_of_model(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    model, *data = args
    given = [*data[:2], *(kwargs.get(name) for name in _DATA)]
    given = next(own_values([_first_batch(each) for each in given]), None)
    if given is not None:
        return refusal_of_data(model, given)
    # A generator gave the value, and Keras read an attribute of tensors.
    is_element = isinstance(sys.exc_info()[1], MissingAttributeError)
    return refusal_of_elements(model) if is_element else None


@_replaces(
    "keras.src.models.functional.Functional.__init__",
    reason="`keras.Model(inputs, outputs)` says that a placeholder of `xt.keras.Input` is no "
    "KerasTensor.",
)
def functional(plain: Callable[..., Any]) -> Callable[..., Any]:
    expected, fix = "KerasTensors as inputs and outputs", "Use xt.keras.Model(inputs, outputs)."
    return _advising(plain, functools.partial(_advice_of_class, "keras.Model", expected, fix))


@_replaces(
    "keras.Sequential.add", reason="It says that a placeholder of `xt.keras.Input` is no layer."
)
def add(plain: Callable[..., Any]) -> Callable[..., Any]:
    error = ("keras.Sequential", "layers", "Use xt.keras.Sequential.")
    return _advising(plain, functools.partial(_advice_of_class, *error))


def make_input(plain: Callable[..., Any]) -> Callable[..., Any]:
    fix = "Use xt.keras.Input(spec), with the spec of a batch such as dataset.element_spec."
    return _advising(plain, functools.partial(_advice, "keras.Input", "a shape and a dtype", fix))


for _module in ("keras", "keras.layers"):
    _replaces(f"{_module}.Input", reason="It says that the spec of an extension type is no shape.")(
        make_input
    )


def _advice(
    path: str, expected: str, fix: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    given = next(own_values([list(args), kwargs]), None)
    return None if given is None else refusal(path, expected, given, fix)


def _advice_of_class(
    path: str, expected: str, fix: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    return None if is_ours(args[0]) else _advice(path, expected, fix, args[1:], kwargs)


def _advising(
    plain: Callable[..., Any], advice: Callable[[Any, Any], Exception | None]
) -> Callable[..., Any]:
    """Returns a function that raises another error where a function of Keras fails.

    Args:
        plain: The function of Keras.
        advice: Takes the arguments of a failed call. Returns the error; None for Keras's own.
    """

    def function(*args: object, **kwargs: object) -> Nest:
        try:
            return plain(*args, **kwargs)
        except NullError:
            raise
        except Exception as error:
            better = advice(args, kwargs)
            if better is None:
                raise
            raise better from error

    return _disguise(function, plain)


def _disguise(function: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the name of Keras's function, for tracebacks, and without a file.

    AutoGraph calls a function of the file "<string>" as it is. It would look for the source of any
    other one, and warn that it does not find it.
    """
    function.__code__ = function.__code__.replace(
        co_filename="<string>", co_name=plain.__code__.co_name
    )
    return function


_LAYERS = ("Discretization", "IntegerLookup", "Normalization", "StringLookup", "TextVectorization")


def with_masked(plain: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Nest:
        name = args[0].name
        args = tuple(_unmask(arg, name) for arg in args)
        kwargs = {key: _unmask(arg, name) for key, arg in kwargs.items()}
        return plain(*args, **kwargs)

    return _advising(_disguise(function, plain), _advice_of_preprocessing)


for _target in ("StringLookup.call", *(f"{name}.adapt" for name in _LAYERS)):
    _replaces(
        f"keras.layers.{_target}",
        reason="It converts a MaskedTensor to an array, or takes it row by row. Where nothing is "
        "null, it gets the values; otherwise the error counts the nulls.",
        probe="masked_inputs",
    )(with_masked)


def _advice_of_preprocessing(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    layer, *data = args
    specs = [x.element_spec for x in [*data, *kwargs.values()] if isinstance(x, tf.data.Dataset)]
    given = next(own_values([data, kwargs, specs]), None)
    return None if given is None else refusal_of_layer(layer, given)


def _unmask(value: Nest, name: str) -> Nest:
    if isinstance(value, Extension):  # else `is_masked` would import the type
        masked: Any = value
        if is_masked(masked) and not is_symbolic(masked.values):
            return masked.unmasked(name)
    return value
