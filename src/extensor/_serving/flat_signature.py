"""Signatures of plain tensors for functions of any values."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Collection, Container, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._serving.client import Client
from extensor._serving.layout import Layout
from extensor._serving.tensor_check import check_tensors
from extensor._tf import CompositeTensor
from extensor.errors import DTypeError, ExtensorError, ProtocolError, StructureError

_CONCRETE = tf.types.experimental.ConcreteFunction
_POLYMORPHIC = tf.types.experimental.PolymorphicFunction
_FUNCTIONS = (_CONCRETE, _POLYMORPHIC)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class FlatSignature(Client):
    """A function as a server runs it, which knows tensors only, and its client.

    Made by `flat_signature`.
    """

    def __init__(
        self,
        function: Any,
        parameters: inspect.Signature,
        inputs: Layout,
        outputs: Layout,
        module: Any,
    ) -> None:
        super().__init__(parameters, inputs, outputs)
        self._function = function
        # A function does not keep the variables that it uses alive: their module does.
        self._module = module

    @property
    def function(self) -> Any:
        """The tf.function of the plain tensors, as `tf.saved_model.save` takes it."""
        return self._function


def flat_signature(
    fn: Any, /, *args: Any, ragged: str = "row_splits", validate: bool = False, **kwargs: Any
) -> FlatSignature:
    """Returns a function of any values as one of plain tensors, each named by its path.

    A server that runs SavedModels knows tensors only, and so do the C and C++ APIs. This makes one
    plain tensor of each component of each value, going in and coming out. The names of inputs begin
    with those of the function's arguments, the names of outputs with the keys of its result, or
    with `output_0` where it has none; those of fields follow. `extensor._serving.tensor_name`
    has the grammar.

    Args:
        fn: A function, a `tf.function` or one of its concrete functions, a `tf.Module`, a layer or
            model of Keras: whatever is called with values.
        *args: For each argument its spec, or a nest of specs; values may stand for their specs.
            Static arguments are fixed to what is given here, those that are left out to their
            defaults. May be left out altogether if `fn` is a tf.function with an `input_signature`,
            or a concrete function.
        ragged: Whether ragged rows go as `row_splits` or as `row_lengths`.
        validate: Whether the function checks that the tensors of a request have the shapes of
            their specs and fit each other before it uses them: row splits that cut the values,
            fields with as many rows as there are records. It costs a few comparisons a call;
            without it, tensors that do not fit give an error of whichever operation trips over
            them, or wrong numbers.
        **kwargs: More specs, by the names of arguments.

    Raises:
        ProtocolError: If `fn` cannot be called (also a TypeError).
        DTypeError: If the specs are not those of its arguments (also a TypeError).
        StructureError: If `fn` returns no tensors (also a ValueError).
        UnsupportedTypeError: If a component is a variable, or something else that cannot be sent
            to a server (also a TypeError).

    >>> def longest(recipe):
    ...     return {"minutes": tf.reduce_max(recipe["minutes"], axis=1)}
    >>> spec = xt.DenseStructuredTensorSpec([None], {
    ...     "minutes": tf.RaggedTensorSpec([None, None], tf.int32)})
    >>> signature = xt.serving.flat_signature(longest, spec, ragged="row_lengths")
    >>> recipe = xt.DenseStructuredTensor([2], {"minutes": tf.ragged.constant([[5, 20], [8]])})
    >>> request = signature.encode(recipe)
    >>> {name: tensor.numpy().tolist() for name, tensor in request.items()}
    {'recipe__minutes': [5, 20, 8], 'recipe__minutes___row_lengths': [2, 1]}
    >>> signature.decode(signature.function(**request))["minutes"].numpy()
    array([20,  8], dtype=int32)
    """
    call = _call(fn, args, kwargs)
    given = {name: tf.nest.map_structure(_spec, x) for name, x in call.arguments.items()}
    concrete = _traced(fn, call, given)
    sent = {name: nest for name, nest in given.items() if _has_spec(nest)}
    inputs = Layout(sent, ragged)
    outputs = Layout(tf.nest.map_structure(_spec, concrete.structured_outputs), ragged)
    if not outputs.components:
        raise StructureError(
            path=_name(fn),
            expected="a function that returns tensors",
            received="one that returns none",
            mend="Return what a client is to know.",
        )

    # Arguments that were not given too: a concrete function has no defaults.
    whole = _Call(call.signature, *concrete.structured_input_signature)
    fixed = {n: given[n] if n in given else call.default(n) for n in whole.arguments}

    def served(*tensors: Any) -> dict[str, Any]:
        named = dict(zip(specs, tensors, strict=True))
        if validate:
            # A server compares the shapes of a request with no spec, and operations trust that it
            # did: `==` of a scalar and a vector of sizes compares nothing.
            named = {n: tf.ensure_shape(tensor, specs[n].shape) for n, tensor in named.items()}
            ready = [*named.values(), *check_tensors(sent, inputs.decode(named), inputs.ragged)]
            with tf.control_dependencies(ready):
                named = {n: tf.identity(tensor) for n, tensor in named.items()}
        values = inputs.decode(named)
        return outputs.encode(whole(concrete, {**fixed, **values}))

    optional = _defaults(call.signature, inputs)
    defaults = {name: tensor for one in optional.values() for name, tensor in one.items()}
    # A parameter with a default stands behind those without.
    specs = {c.name: c.spec for c in sorted(inputs.components, key=lambda c: c.name in defaults)}
    served.__name__ = _name(fn)
    served.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [_parameter(name, defaults.get(name, inspect.Parameter.empty)) for name in specs]
    )
    flat: Any = tf.function(served, input_signature=list(specs.values()), autograph=False)
    flat.get_concrete_function()
    return FlatSignature(flat, _sent(call.signature, sent, optional), inputs, outputs, fn)


class _Call:
    """The arguments of a call by their names, and the call again with others in their places."""

    def __init__(self, signature: inspect.Signature, args: Any, kwargs: Any) -> None:
        self.signature = signature
        parameters = signature.parameters.values()
        own = [p.name for p in parameters if p.kind in _POSITIONAL]
        self._positional = own[: len(args)]
        self._rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL and args[len(own) :]]
        self._keywords = list(kwargs)
        self.arguments: dict[str, Any] = {
            **dict(zip(own, args, strict=False)),
            **{name: tuple(args[len(own) :]) for name in self._rest},
            **kwargs,
        }

    def default(self, name: str) -> Any:
        """Returns the default of an argument."""
        return self.signature.parameters[name].default

    def __call__(self, function: Any, arguments: Mapping[str, Any]) -> Any:
        args = [arguments[name] for name in self._positional]
        for name in self._rest:
            args += arguments[name]
        return function(*args, **{name: arguments[name] for name in self._keywords})


def _call(fn: Any, args: Any, kwargs: Any) -> _Call:
    if not callable(fn):
        raise ProtocolError(
            path="flat_signature",
            expected="a function, or a module that can be called",
            received=type(fn).__name__,
            mend="Give one of its methods.",
        )
    if not args and not kwargs:
        function = _function(fn)
        args, kwargs = getattr(function, "structured_input_signature", None) or (
            getattr(function, "input_signature", None) or (),
            {},
        )
    signature = _signature(fn)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise DTypeError(
            path=_name(fn),
            expected=f"specs for the arguments {signature}",
            received=f"other ones: {error}",
            mend="Give a spec for each argument that has no default.",
        ) from error
    return _Call(signature, args, kwargs)


def _signature(fn: Any) -> inspect.Signature:
    if isinstance(fn, _CONCRETE):
        return fn.function_type
    signature = inspect.signature(fn)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} and callable(
        getattr(fn, "call", None)
    ):
        # A layer of Keras, whose __call__ takes anything and hands it on.
        return inspect.signature(fn.call)
    return signature


def _traced(fn: Any, call: _Call, given: Mapping[str, Any]) -> Any:
    """Returns the concrete function for what is given."""
    if isinstance(fn, _CONCRETE):
        return fn
    function = _function(fn)
    if not isinstance(function, _POLYMORPHIC):
        function = tf.function(function)
    return call(function.get_concrete_function, given)


def _function(fn: Any) -> Any:
    """Returns what is called when a module is called, which may be a tf.function."""
    is_function = inspect.isroutine(fn) or isinstance(fn, (*_FUNCTIONS, functools.partial))
    return fn if is_function else fn.__call__


def _spec(leaf: Any) -> Any:
    """Returns the spec of a value, and anything else as it is."""
    if type(leaf) is tf.TensorSpec:
        return tf.TensorSpec(leaf.shape, leaf.dtype)  # paths are its names here
    if isinstance(leaf, (tf.Tensor, CompositeTensor, np.ndarray)):
        return tf.type_spec_from_value(leaf)
    return leaf


def _has_spec(structure: Any) -> bool:
    return any(isinstance(leaf, tf.TypeSpec) for leaf in tf.nest.flatten(structure))


def _defaults(signature: inspect.Signature, inputs: Layout) -> dict[str, dict[str, Any]]:
    """Returns the tensors of each argument whose default is a value of its spec."""
    found: dict[str, dict[str, Any]] = {}
    for name in inputs.structure:
        parameter = signature.parameters.get(name)
        if parameter is None or parameter.default is parameter.empty:
            continue
        with contextlib.suppress(ExtensorError):  # None, say: whoever calls must give a value
            found[name] = inputs.encode({name: parameter.default}, optional=inputs.structure)
    return found


def _sent(
    signature: inspect.Signature, names: Collection[str], optional: Container[str]
) -> inspect.Signature:
    """Returns the parameters that are sent, of which some may be left out."""
    parameters: list[inspect.Parameter] = []
    may_stop = True
    for name, parameter in reversed(list(signature.parameters.items())):
        if parameter.kind is parameter.VAR_KEYWORD or name not in names:
            continue
        may_miss = name in optional
        if parameter.kind in _POSITIONAL:
            # Python has none that may be left out in front of one that may not.
            may_miss = may_stop = may_stop and may_miss
        default = None if may_miss else parameter.empty
        parameters.append(inspect.Parameter(name, parameter.kind, default=default))
    known = [parameter.name for parameter in parameters]
    others = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names if n not in known]
    return inspect.Signature([*reversed(parameters), *others])


def _parameter(name: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
