"""Lowering of extension values around the `call` of a layer or a model.

Keras gets lowered arguments, and `call` gets the values. The results of `call` are lowered for
Keras, and the caller gets the values. Masks and configurations are converted in the same way.

Keras examines each component tensor several times a call. So the only argument of a layer that is
built is passed as one object, a `PassedValue`, if Keras need not cast a tensor in it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import has_mask, set_call_arguments
from extensor._keras.component_tensors import float_dtypes, to_tensors
from extensor._keras.graph_node import (
    is_symbolic,
    to_value_tensors,
    with_fields,
    with_value_tensors,
)
from extensor._keras.input_check import ArgumentUnits
from extensor._keras.lowering import (
    PassedValue,
    contains,
    from_lowered,
    is_extension,
    is_lowered,
    map_leaves,
    map_lowered,
    one_mask,
    own_spec,
    spec_of_lowered,
    to_lowered,
)
from extensor._keras.serialization import with_deserialized_values, with_serialized_values
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import component_specs
from extensor._typing import Nest, Value

if TYPE_CHECKING:
    from typing_extensions import Self

# The layer that Keras calls. Its `call` gets and returns lowered values. A direct `call`, such as
# `super().call()` in a user's `call`, gets and returns values.
_in_keras: ContextVar[Any] = ContextVar("_in_keras", default=None)

# The layer whose values in a graph stay `ValueKerasTensor`s.
_returns_value_tensors: ContextVar[Any] = ContextVar("_returns_value_tensors", default=None)


class TakesValues:
    """Lets the `call` of a Keras layer take and return extension values."""

    _value_count = 0  # of the values in graphs that the layer returned
    _units: Any = None  # the ArgumentUnits of the first call

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name, wrap in _WRAPPERS.items():
            method = vars(cls).get(name)
            if method is not None and not getattr(method, "takes_lowered", False):
                setattr(cls, name, wrap(method))

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
        return super().from_config(with_deserialized_values(config), *args, **kwargs)  # type: ignore[misc]

    def __call__(self, *args: object, **kwargs: object) -> Nest:
        """Returns the outputs of the layer for values or placeholders."""
        call = super().__call__  # type: ignore[misc]
        passed = _passed_value(self, args, kwargs)
        if passed is not None:
            return from_lowered(_called_by(self, call, **passed, **kwargs))
        args, kwargs = self.lowered_arguments((args, kwargs))
        if not is_symbolic((args, kwargs)):
            return from_lowered(_called_by(self, call, *args, **kwargs))
        # Keras builds the layer for the component tensors. The graph has one KerasTensor a value.
        graph_args, graph_kwargs = with_value_tensors((args, kwargs))
        outputs = _called_by(self, call, *args, **kwargs)
        set_call_arguments(self, graph_args, graph_kwargs)
        if _returns_value_tensors.get() is self:
            return outputs
        return from_lowered(with_fields(outputs))

    def lowered_arguments(self, arguments: Nest) -> Nest:
        """Returns the arguments of a call as Keras gets them."""
        return to_lowered(arguments)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Nest:
        """Returns placeholders for the outputs of `call` for placeholders."""
        args, kwargs = to_lowered((args, kwargs))
        compute = super().compute_output_spec  # type: ignore[misc]
        return self._value_tensors(_called_by(self, compute, *args, **kwargs))

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: object, **kwargs: object
    ) -> Callable[..., Any]:
        """Returns `call` for these arguments, as it is to run in a `keras.RematScope`."""
        args, kwargs = to_lowered((args, kwargs))
        in_keras = functools.partial(_called_by, self, layer_call)
        function, tensors, with_floats = of_floats(in_keras, args, kwargs)
        # Keras may compute the sizes of the outputs, in a graph of its own.
        args, kwargs = map_leaves(_as_keras_tensor, (args, kwargs))
        changed = super().rematerialized_call(function, *args, **kwargs)  # type: ignore[misc]
        if changed is function:
            return layer_call
        return lambda *_, **__: with_floats(changed(*tensors))

    def _known_specs(self) -> dict[str, Any]:
        """Returns the specs of arguments that are known before the first call, by name."""
        return {}

    def _value_tensors(self, outputs: Nest) -> Nest:
        """Returns outputs with each value replaced by a `ValueKerasTensor`."""
        return to_value_tensors(outputs, self._new_name)

    def _new_name(self) -> str:
        """Returns the name of the next value that the layer returns in a graph."""
        name: str = self.name  # type: ignore[attr-defined]
        self._value_count += 1
        return name if self._value_count == 1 else f"{name}_{self._value_count - 1}"


@contextlib.contextmanager
def returning_value_tensors(layer: keras.Layer | None) -> Generator[None, None, None]:
    """Lets a layer return the values of a graph as `ValueKerasTensor`s, which Keras accepts."""
    token = _returns_value_tensors.set(layer)
    try:
        yield
    finally:
        _returns_value_tensors.reset(token)


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


def _is_mask(name: str) -> bool:
    return name == "mask" or name.endswith("_mask")  # Keras's names of the arguments for masks


def wrapper(around: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator of methods, whose methods call a function with the method itself.

    Args:
        around: Takes the method, its object and its arguments. Returns the result. It must be a
            function of a module: cloudpickle copies the method of a class in a notebook with all
            that it names, and cannot copy a ContextVar.
    """

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: object, *args: object, **kwargs: object) -> Nest:
            return around(method, self, *args, **kwargs)

        call.takes_values = True  # type: ignore[attr-defined]
        return call

    return decorate


def _compute_mask(
    method: Callable[..., Any], layer: object, inputs: Nest, previous_mask: Nest = None
) -> Nest:
    return method(layer, from_lowered(inputs), one_mask(previous_mask))


def _with_shapes(
    method: Callable[..., Any], layer: object, /, *args: object, **kwargs: object
) -> Nest:
    return method(layer, *_with_field_shapes(list(args)), **_with_field_shapes(kwargs))


def _get_config(method: Callable[..., Any], layer: object) -> dict[str, Any]:
    return with_serialized_values(method(layer))


def _call(method: Callable[..., Any], layer: Any, /, *args: object, **kwargs: object) -> Nest:
    if _in_keras.get() is not layer:
        return method(layer, *args, **kwargs)
    own_args, own_kwargs = _values(args, kwargs)
    if layer._units is None:
        layer._units = ArgumentUnits(method, own_args, own_kwargs, layer._known_specs())
    if layer._units.specs:
        own_args, own_kwargs = layer._units.of_arguments(own_args, own_kwargs)
    return to_lowered(_called_by(None, method, layer, *own_args, **own_kwargs))


def _compute_output_spec(
    method: Callable[..., Any], layer: Any, /, *args: object, **kwargs: object
) -> Nest:
    if _in_keras.get() is not layer:
        return method(layer, *args, **kwargs)
    own_args, own_kwargs = _values(args, kwargs)
    return layer._value_tensors(_called_by(None, method, layer, *own_args, **own_kwargs))


def _values(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns the arguments of a method that Keras calls as values, with one mask for each."""
    return from_lowered(args), {
        name: one_mask(item) if _is_mask(name) else from_lowered(item)
        for name, item in kwargs.items()
    }


_WRAPPERS = {
    "build": wrapper(_with_shapes),
    "call": wrapper(_call),
    "compute_mask": wrapper(_compute_mask),
    "compute_output_shape": wrapper(_with_shapes),
    "compute_output_spec": wrapper(_compute_output_spec),
    "get_config": wrapper(_get_config),
}
"""What wraps each method of a layer, so that the method gets and returns values."""


def of_floats(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], list[tf.Tensor], Callable[[Any], Any]]:
    """Returns a function of the float tensors in the arguments of a call.

    Args:
        call: The function.
        args: The positional arguments: nests of tensors.
        kwargs: The keyword arguments: nests of tensors.

    Returns:
        The function, which returns the float tensors of the result; its arguments; and a function
        that returns the whole result of the last run from the float tensors of the result.
    """
    leaves = tf.nest.flatten((args, kwargs))
    places = [at for at, leaf in enumerate(leaves) if _is_float(leaf)]
    result: Any = None

    def of_tensors(*tensors: tf.Tensor) -> tuple[Any, ...]:
        nonlocal result
        own = list(leaves)
        for at, tensor in zip(places, tensors, strict=True):
            own[at] = tensor
        own_args, own_kwargs = tf.nest.pack_sequence_as((args, kwargs), own)
        result = call(*own_args, **own_kwargs)
        return tuple(leaf for leaf in tf.nest.flatten(result) if _is_float(leaf))

    def with_floats(floats: Iterable[tf.Tensor]) -> Nest:
        remaining = iter(floats)
        return tf.nest.map_structure(
            lambda leaf: next(remaining) if _is_float(leaf) else leaf, result
        )

    return of_tensors, [leaves[at] for at in places], with_floats


def _is_float(leaf: Value) -> bool:
    return isinstance(leaf, tf.Tensor) and (leaf.dtype.is_floating or leaf.dtype.is_complex)


def _with_field_shapes(shapes: Nest) -> Nest:
    """Returns the shapes of arguments, with those of lowered values as shapes of the values.

    Args:
        shapes: The shapes that Keras found: tuples of ints and None, in nests.
    """
    return map_lowered(lambda form: _shape_of(spec_of_lowered(form)), shapes)


def _shape_of(spec: tf.TypeSpec, outer: tuple[int | None, ...] = (), rank: int = 0) -> Nest:
    """Returns the shape of a value, or a dict of the shapes of its fields.

    Args:
        spec: The spec of the value, of which the first dimensions are those of the records in it.
        outer: The shape of these records.
        rank: The rank of these records, without ragged dimensions.
    """
    shape: Any = getattr(spec, "shape", None)
    if isinstance(shape, tf.TensorShape):
        if shape.rank is None:
            return None
        outer = (*outer, *shape.as_list()[rank:])
        if not isinstance(spec, StructuredTensorSpec):
            return outer
        record = spec._record
        rank = record.shape.rank
        return {name: _shape_of(one, outer, rank) for name, one in record.field_specs.items()}
    parts = component_specs(spec)
    if not isinstance(parts, Mapping):
        # The fields of a declared type are attributes of its spec.
        attributes = {name: one for name, one in vars(spec).items() if not name.startswith("_")}
        parts = {name: one for name, one in attributes.items() if isinstance(one, tf.TypeSpec)}
    return {str(name): _shape_of(part, outer, rank) for name, part in parts.items()}
