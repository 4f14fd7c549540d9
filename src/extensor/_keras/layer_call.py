"""Lowering and raising of extension values around the `call` of a layer or a model.

Arguments are lowered for Keras and raised for `call`. Results of `call` are lowered for Keras and
raised for the caller. Masks and configurations are converted in the same way.

Keras examines each component tensor several times a call. So the only argument of a layer that is
built is passed as one object, a `PassedValue`, if Keras need not cast a tensor in it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import has_mask, set_call_arguments
from extensor._keras.component_tensors import float_dtypes, to_tensors
from extensor._keras.field_shapes import with_field_shapes
from extensor._keras.graph_node import (
    as_whole_values,
    is_symbolic,
    with_fields,
    with_whole_values,
)
from extensor._keras.input_check import ArgumentUnits
from extensor._keras.lowering import (
    PassedValue,
    contains,
    is_extension,
    is_lowered,
    lowered,
    map_leaves,
    one_mask,
    own_spec,
    raised,
)
from extensor._keras.rematerialized import of_floats
from extensor._keras.serialization import deserialized, serialized
from extensor._typing import Nest, Value

if TYPE_CHECKING:
    from typing_extensions import Self

# The layer that Keras calls. Its `call` gets and returns lowered values. A direct `call`, such as
# `super().call()` in a user's `call`, gets and returns values.
_in_keras: ContextVar[Any] = ContextVar("_in_keras", default=None)

# The layer whose values in a graph stay `WholeValue`s.
_returns_whole: ContextVar[Any] = ContextVar("_returns_whole", default=None)


class TakesValues:
    """Lets the `call` of a Keras layer take and return extension values."""

    _value_count = 0  # of the values in graphs that the layer returned
    _units: Any = None  # the ArgumentUnits of the first call

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        outputs = functools.partial(_with_values, lower=TakesValues._whole)
        for name, wrapped in {**_WRAPPED, "compute_output_spec": outputs}.items():
            method = vars(cls).get(name)
            if method is not None and not getattr(method, "takes_lowered", False):
                setattr(cls, name, wrapped(method))

    def get_build_config(self) -> dict[str, Any] | None:
        """Returns the build configuration, or None if the first call builds the layer.

        The first call builds a layer that takes extension values, or that has no own `build`.
        """
        if type(self).build is keras.layers.Layer.build:  # type: ignore[attr-defined]
            return None
        config = super().get_build_config()  # type: ignore[misc]
        return None if contains(config, is_lowered) else config

    @classmethod
    def from_config(cls, config: dict[str, Any], *args: Any, **kwargs: Any) -> Self:
        """Returns the layer of a configuration, which may contain specs and extension values."""
        return super().from_config(deserialized(config), *args, **kwargs)  # type: ignore[misc]

    def __call__(self, *args: object, **kwargs: object) -> Nest:
        """Returns the outputs of the layer for values or placeholders."""
        call = super().__call__  # type: ignore[misc]
        passed = _passed_value(self, args, kwargs)
        if passed is not None:
            return raised(_called_by(self, call, **passed, **kwargs))
        args, kwargs = self.lowered_arguments((args, kwargs))
        if not is_symbolic((args, kwargs)):
            return raised(_called_by(self, call, *args, **kwargs))
        # Keras builds the layer for the component tensors, but the graph has whole values.
        whole_args, whole_kwargs = with_whole_values((args, kwargs))
        outputs = _called_by(self, call, *args, **kwargs)
        set_call_arguments(self, whole_args, whole_kwargs)
        return outputs if _returns_whole.get() is self else raised(with_fields(outputs))

    def lowered_arguments(self, arguments: Nest) -> Nest:
        """Returns the arguments of a call as Keras gets them."""
        return lowered(arguments)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Nest:
        """Returns placeholders for the outputs of `call` for placeholders."""
        args, kwargs = lowered((args, kwargs))
        compute = super().compute_output_spec  # type: ignore[misc]
        return self._whole(_called_by(self, compute, *args, **kwargs))

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: object, **kwargs: object
    ) -> Callable[..., Any]:
        """Returns `call` for these arguments, as it is to run in a `keras.RematScope`."""
        args, kwargs = lowered((args, kwargs))
        in_keras = functools.partial(_called_by, self, layer_call)
        function, tensors, whole = of_floats(in_keras, args, kwargs)
        # Keras may compute the sizes of the outputs, in a graph of its own.
        args, kwargs = map_leaves(_as_keras_tensor, (args, kwargs))
        changed = super().rematerialized_call(function, *args, **kwargs)  # type: ignore[misc]
        return layer_call if changed is function else lambda *_, **__: whole(changed(*tensors))

    def _known_specs(self) -> dict[str, Any]:
        """Returns the specs of arguments that are known before the first call, by name."""
        return {}

    def _whole(self, outputs: Nest) -> Nest:
        """Returns outputs with each value replaced by a `WholeValue`."""
        return as_whole_values(outputs, self._new_name)

    def _new_name(self) -> str:
        """Returns the name of the next value that the layer returns in a graph."""
        name: str = self.name  # type: ignore[attr-defined]
        self._value_count += 1
        return name if self._value_count == 1 else f"{name}_{self._value_count - 1}"


@contextlib.contextmanager
def returning_whole_values(layer: keras.Layer | None) -> Generator[None, None, None]:
    """Lets a layer return the values of a graph as `WholeValue`s, which Keras accepts."""
    token = _returns_whole.set(layer)
    try:
        yield
    finally:
        _returns_whole.reset(token)


def is_called_by_keras(layer: object) -> bool:
    """Returns whether `call` of a layer gets lowered values and must return such values."""
    return _in_keras.get() is layer


def _called_by(layer: object, call: Callable[..., Any], /, *args: object, **kwargs: object) -> Nest:
    """Returns the result of a function, in which Keras calls a layer; or no layer, for None."""
    token = _in_keras.set(layer)
    try:
        return call(*args, **kwargs)
    finally:
        _in_keras.reset(token)


def _as_keras_tensor(leaf: Value) -> Value:
    return keras.KerasTensor(leaf.shape, leaf.dtype.name) if isinstance(leaf, tf.Tensor) else leaf


def _passed_value(
    layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, PassedValue] | None:
    """Returns the keyword argument that passes on a value, or None if it must be lowered.

    Keras accepts an argument that is not a tensor by its name only.
    """
    if len(args) != 1 or not kwargs.keys() <= {"training"} or not is_extension(args[0]):
        return None
    name = _name_of_input(type(layer).call)
    if name is None or not layer.built or layer.input_spec is not None:
        return None
    (value,) = args
    spec = own_spec(value)
    if layer.autocast and not float_dtypes(spec) <= {layer.compute_dtype}:
        return None
    tensors = to_tensors(spec, value)
    if not all(isinstance(tensor, tf.Tensor) and not has_mask(tensor) for tensor in tensors):
        return None
    return {name: PassedValue(value)}


@functools.lru_cache(maxsize=1024)
def _name_of_input(call: Callable[..., Any]) -> str | None:
    """Returns the name of the first parameter of a `call` that takes values, if it has one."""
    if not hasattr(call, "takes_values"):
        return None
    parameters = list(inspect.signature(call).parameters.values())[1:2]
    named = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return named[0] if named else None


def _lowered(_: object, outputs: Nest) -> Nest:
    return lowered(outputs)


def _is_mask(name: str) -> bool:
    return name == "mask" or name.endswith("_mask")  # Keras's names of the arguments for masks


def _with_one_mask(compute_mask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compute_mask)
    def compute_one_mask(self: Any, inputs: Nest, previous_mask: Nest = None) -> Nest:
        return compute_mask(self, raised(inputs), one_mask(previous_mask))

    return compute_one_mask


def _with_field_shapes(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def method_of_shapes(self: Any, *args: object, **kwargs: object) -> Nest:
        args, kwargs = with_field_shapes(list(args)), with_field_shapes(kwargs)
        return method(self, *args, **kwargs)

    return method_of_shapes


def _with_serialized_values(get_config: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(get_config)
    def serialized_config(self: Any) -> dict[str, Any]:
        return serialized(get_config(self))

    return serialized_config


def _with_values(
    method: Callable[..., Any], lower: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    # Only names of functions here: cloudpickle copies the method of a class in a notebook with all
    # that it names, and cannot copy a ContextVar.
    @functools.wraps(method)
    def method_with_values(self: Any, *args: object, **kwargs: object) -> Nest:
        return _call_with_values(method, lower, self, args, kwargs)

    method_with_values.takes_values = True  # type: ignore[attr-defined]
    return method_with_values


def _call_with_values(
    method: Callable[..., Any],
    lower: Callable[[Any, Any], Any],
    layer: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Nest:
    if _in_keras.get() is not layer:
        return method(layer, *args, **kwargs)
    masks = {name: one_mask(kwargs.pop(name)) for name in list(kwargs) if _is_mask(name)}
    args, kwargs = raised(args), {name: raised(item) for name, item in kwargs.items()}
    if lower is _lowered:
        if layer._units is None:
            layer._units = ArgumentUnits(method, args, kwargs, layer._known_specs())
        if layer._units.specs:
            args, kwargs = layer._units.of_arguments(args, kwargs)
    return lower(layer, _called_by(None, method, layer, *args, **kwargs, **masks))


_WRAPPED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "build": _with_field_shapes,
    "call": functools.partial(_with_values, lower=_lowered),
    "compute_mask": _with_one_mask,
    "compute_output_shape": _with_field_shapes,
    "get_config": _with_serialized_values,
}
"""What wraps each method of a layer, so that the method gets and returns values."""
