"""flat_signature: a signature of plain tensors for a function of extension values."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._data.fields_used import uses_by
from extensor._path import Path
from extensor._pruning.components import checked_uses, components, with_blanks
from extensor._pruning.fields import FieldsUsed
from extensor._serving.client import Client
from extensor._serving.layout import Layout, layout_of_arguments, layout_of_fields, signature_leaves
from extensor._serving.tensor_check import check_tensors
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import CompositeTensor
from extensor._typing import Nest
from extensor.errors import DTypeError, ExtensorError, ProtocolError, StructureError

_CONCRETE = tf.types.experimental.ConcreteFunction
_POLYMORPHIC = tf.types.experimental.PolymorphicFunction
_FUNCTIONS = (_CONCRETE, _POLYMORPHIC)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class FlatSignature(Client):
    """A function of plain tensors for a server, and its client.

    Create it with `flat_signature`.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> signature = xt.serving.flat_signature(tf.square, tf.TensorSpec([None]))
    >>> signature.function(**signature.encode([2.0, 3.0]))["output_0"].numpy()
    array([4., 9.], dtype=float32)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: inspect.Signature,
        inputs: Layout,
        outputs: Layout,
        module: tf.Module | None,
        unused: Collection[Path] = (),
    ) -> None:
        super().__init__(parameters, inputs, outputs, unused)
        self._function = function
        # Keeps the module's variables alive, because a tf.function does not.
        self._module = module

    @property
    def function(self) -> tf.types.experimental.PolymorphicFunction:
        """The tf.function of plain tensors, a signature for `tf.saved_model.save`."""
        return self._function


def flat_signature(
    fn: Callable[..., Any],
    /,
    *args: object,
    ragged: str = "row_splits",
    validate: bool = False,
    prune: bool = True,
    **kwargs: object,
) -> FlatSignature:
    """Returns a function of extension values as a function of plain tensors, named by their paths.

    A server that runs SavedModels accepts only plain tensors, as do the C and C++ APIs. So each
    component of each argument and result becomes one plain tensor. Its name is its path and its
    part: `steps__minutes__mask`. The name of an input begins with the argument's name if there are
    several arguments; the name of an output begins with a key of the result if it is a dict.
    `extensor._serving.layout` documents the grammar.

    Args:
        fn: A callable: a function, a `tf.function` or one of its concrete functions, a
            `tf.Module`, or a layer or model of Keras.
        *args: The spec of each argument, or a nest of specs. A value gives its own spec. Static
            arguments have the value given here, or their default. Optional if `fn` is a concrete
            function, a tf.function with an `input_signature`, a functional model of Keras, or an
            `xt.keras.Model` that was called, fitted or loaded.
        ragged: How to send ragged rows: as `row_splits` or as `row_lengths`.
        validate: Whether the function validates the tensors of a request: that they have the
            shapes of their specs, that row splits fit the values, and that fields have one row for
            each record. This takes a few comparisons a call. Without it, tensors that do not fit
            cause an error in some operation, or wrong results.
        prune: Whether clients send only the fields of records that `fn` uses. Clients give records
            with these fields, or with all. False: they send all fields.
        **kwargs: Specs by the names of arguments.

    Raises:
        ProtocolError: If `fn` is not callable (also a TypeError).
        DTypeError: If the specs do not fit the arguments of `fn` (also a TypeError).
        StructureError: If `fn` returns no tensors (also a ValueError).
        UnsupportedTypeError: If a component cannot be sent to a server, such as a variable (also a
            TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> def longest(recipe):
    ...     return {"minutes": tf.reduce_max(recipe["minutes"], axis=1)}
    >>> spec = xt.DenseStructuredTensorSpec([None], {
    ...     "minutes": tf.RaggedTensorSpec([None, None], tf.int32)})
    >>> signature = xt.serving.flat_signature(longest, spec, ragged="row_lengths")
    >>> recipe = xt.DenseStructuredTensor([2], {"minutes": tf.ragged.constant([[5, 20], [8]])})
    >>> request = signature.encode(recipe)
    >>> {name: tensor.numpy().tolist() for name, tensor in request.items()}
    {'minutes': [5, 20, 8], 'minutes__row_lengths': [2, 1]}
    >>> signature.decode(signature.function(**request))["minutes"].numpy()
    array([20,  8], dtype=int32)
    """
    call = _call(fn, args, kwargs)
    given = {name: tf.nest.map_structure(_spec, x) for name, x in call.arguments.items()}
    concrete = _trace(fn, call, given)
    sent = {name: nest for name, nest in given.items() if _has_spec(nest)}
    outputs = Layout(tf.nest.map_structure(_spec, concrete.structured_outputs), ragged)
    if not outputs.components:
        expected, fix = "a function that returns tensors", "Return the values that a client needs."
        raise StructureError(_name(fn), expected, "a function that returns 0 tensors", fix)

    # Includes arguments that were not given, because a concrete function has no defaults.
    full_call = _Call(call.signature, *concrete.structured_input_signature)
    fixed = {n: given[n] if n in given else call.default(n) for n in full_call.arguments}

    def run(values: dict[str, Any]) -> Nest:
        return full_call(concrete, {**fixed, **values})

    inputs, used = layout_of_arguments(sent, ragged), None
    if prune:
        found = _UsedParts(run, sent)
        if found.unused:
            used, sent = found, found.specs
            inputs = layout_of_fields(inputs, sent)

    def encode(values: dict[str, Any]) -> dict[str, tf.Tensor]:
        return outputs.encode(run(values if used is None else used.with_blanks(values)))

    optional = _defaults(call.signature, inputs)
    defaults = {name: tensor for one in optional.values() for name, tensor in one.items()}
    flat = _on_tensors(_name(fn), encode, inputs, defaults, validate)
    unused = () if used is None else used.unused
    return FlatSignature(
        flat, _signature_sent(call.signature, sent, optional), inputs, outputs, fn, unused
    )


def _on_tensors(
    name: str,
    function: Callable[[Any], dict[str, tf.Tensor]],
    inputs: Layout,
    defaults: Mapping[str, tf.Tensor],
    validate: bool,
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a function of a dict of arguments as a tf.function of their tensors, by name."""

    def on_tensors(*tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        named = dict(zip(specs, tensors, strict=True))
        if validate:
            # A server does not compare the shapes of a request with the specs. Operations may not
            # notice a wrong shape: `==` of a scalar and a vector broadcasts.
            named = {n: tf.ensure_shape(tensor, specs[n].shape) for n, tensor in named.items()}
            checks = check_tensors(inputs.structure, inputs.decode(named), inputs.ragged)
            with tf.control_dependencies([*named.values(), *checks]):
                named = {n: tf.identity(tensor) for n, tensor in named.items()}
        return function(inputs.decode(named))

    # Parameters with a default come after those without.
    specs = {c.name: c.spec for c in sorted(inputs.components, key=lambda c: c.name in defaults)}
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    parameters = [inspect.Parameter(n, kind, default=defaults.get(n, empty)) for n in specs]
    on_tensors.__name__ = name
    on_tensors.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    flat: Any = tf.function(on_tensors, input_signature=list(specs.values()), autograph=False)
    flat.get_concrete_function()
    return flat


class _Call:
    """The arguments of a call by name; calling it calls a function with other arguments."""

    def __init__(
        self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
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

    def default(self, name: str) -> object:
        """Returns the default of an argument."""
        return self.signature.parameters[name].default

    def __call__(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        args = [arguments[name] for name in self._positional]
        for name in self._rest:
            args += arguments[name]
        return function(*args, **{name: arguments[name] for name in self._keywords})


def _call(fn: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
    if not callable(fn):
        expected, received = "a function or a callable module", type(fn).__name__
        raise ProtocolError("flat_signature", expected, received, "Give a method of the object.")
    if not args and not kwargs:
        function = _function(fn)
        args, kwargs = getattr(function, "structured_input_signature", None) or (
            getattr(function, "input_signature", None) or _model_inputs(fn),
            {},
        )
    signature = _signature(fn)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        expected = f"specs for the arguments {signature}"
        fix = "Give a spec for each argument without a default, such as dataset.element_spec."
        raise DTypeError(_name(fn), expected, f"specs that do not fit ({error})", fix) from error
    return _Call(signature, args, kwargs)


def _model_inputs(fn: Any) -> Nest:
    """Returns the specs of the inputs of a Keras model, or () if they are not known."""
    if hasattr(fn, "serving_function"):  # a model of xt.keras
        serve = fn.serving_function()
        return () if serve is None else serve.input_signature
    keras = sys.modules.get("keras")  # without Keras there is no model of Keras
    if keras is None or not isinstance(fn, keras.Model):
        return ()
    try:
        inputs = fn.inputs[0] if isinstance(fn, keras.Sequential) else fn.input
    except (AttributeError, ValueError):  # neither functional nor built
        return ()
    return (tf.nest.map_structure(lambda one: tf.TensorSpec(one.shape, one.dtype), inputs),)


def _signature(fn: Any) -> inspect.Signature:
    if isinstance(fn, _CONCRETE):
        return fn.function_type
    signature = inspect.signature(fn)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} and callable(
        getattr(fn, "call", None)
    ):
        # A layer of Keras, whose __call__ passes any arguments to `call`.
        return inspect.signature(fn.call)
    return signature


def _trace(
    fn: Callable[..., Any], call: _Call, given: Mapping[str, Any]
) -> tf.types.experimental.ConcreteFunction:
    """Returns the concrete function of `fn` for the given specs."""
    if isinstance(fn, _CONCRETE):
        return fn
    function = _function(fn)
    if not isinstance(function, _POLYMORPHIC):
        function = tf.function(function)
    return call(function.get_concrete_function, given)


def _function(fn: Any) -> Any:
    """Returns a function as it is, or the `__call__` of a module, which may be a tf.function."""
    is_function = inspect.isroutine(fn) or isinstance(fn, (*_FUNCTIONS, functools.partial))
    return fn if is_function else fn.__call__


def _spec(leaf: Any) -> Any:
    """Returns the spec of a value, and anything else as it is."""
    if type(leaf) is tf.TensorSpec:
        return tf.TensorSpec(leaf.shape, leaf.dtype)  # drops the name: tensors are named by path
    if isinstance(leaf, (tf.Tensor, CompositeTensor, np.ndarray)):
        return tf.type_spec_from_value(leaf)
    return leaf


def _has_spec(structure: Nest) -> bool:
    return any(isinstance(leaf, tf.TypeSpec) for leaf in tf.nest.flatten(structure))


def _defaults(signature: inspect.Signature, inputs: Layout) -> dict[str, dict[str, Any]]:
    """Returns the tensors of the default of each argument whose default fits its spec."""
    found: dict[str, dict[str, Any]] = {}
    for name in inputs.structure:
        parameter = signature.parameters.get(name)
        if parameter is None or parameter.default is parameter.empty:
            continue
        with contextlib.suppress(ExtensorError):  # such as None: a caller must give a value
            found[name] = inputs.encode({name: parameter.default}, optional=inputs.structure)
    return found


def _signature_sent(
    signature: inspect.Signature, names: Collection[str], optional: Container[str]
) -> inspect.Signature:
    """Returns the parameters that are sent. Optional parameters have the default None."""
    parameters: list[inspect.Parameter] = []
    rest_is_optional = True
    for name, parameter in reversed(list(signature.parameters.items())):
        if parameter.kind is parameter.VAR_KEYWORD or name not in names:
            continue
        is_optional = name in optional
        if parameter.kind in _POSITIONAL:
            # In Python, an optional positional parameter cannot precede a required one.
            is_optional = rest_is_optional = rest_is_optional and is_optional
        default = None if is_optional else parameter.empty
        parameters.append(inspect.Parameter(name, parameter.kind, default=default))
    known = [parameter.name for parameter in parameters]
    others = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names if n not in known]
    return inspect.Signature([*reversed(parameters), *others])


def _name(fn: object) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


class _UsedParts:
    """The specs of arguments whose records have only the fields that a function uses.

    Args:
        function: A function of a dict of arguments.
        specs: The specs of the arguments, or nests of specs, by name.
    """

    def __init__(self, function: Callable[[Any], Any], specs: Nest) -> None:
        found = uses_by(function, specs)
        self._structure = specs
        self._specs = tf.nest.flatten(specs)
        self._uses: list[list[int]] = []
        first = 0
        for spec in self._specs:
            parts = components(spec) if isinstance(spec, tf.TypeSpec) else ()
            uses = {i: found[first + i] for i in range(len(parts)) if first + i in found}
            self._uses.append(checked_uses(parts, uses))
            first += len(parts)
        narrow = [
            _with_fields(spec, [Path.parse(path).names for path in FieldsUsed(spec, uses)])
            if isinstance(spec, StructuredTensorSpec)
            else spec
            for spec, uses in zip(self._specs, self._uses, strict=True)
        ]
        self.specs = tf.nest.pack_sequence_as(specs, narrow)
        """The specs with fewer fields."""
        self._narrow = narrow

    @property
    def unused(self) -> list[Path]:
        """The paths of the fields that the function does not use, in the order of the specs."""
        places = [names for names, _ in signature_leaves(self._structure)]
        found = zip(places, self._specs, self._narrow, strict=True)
        return [path for at, *both in found for path in _left_out(both[0], both[1], Path(*at))]

    def with_blanks(self, values: Nest) -> Nest:
        """Returns the arguments with all fields; those that are not used are blank."""
        leaves = [
            with_blanks(spec, uses, narrow, value)
            if isinstance(spec, StructuredTensorSpec)
            else value
            for spec, uses, narrow, value in zip(
                self._specs, self._uses, self._narrow, tf.nest.flatten(values), strict=True
            )
        ]
        return tf.nest.pack_sequence_as(values, leaves)


def _with_fields(spec: tf.TypeSpec, paths: Collection[tuple[str, ...]]) -> tf.TypeSpec:
    """Returns a spec of records with the fields at some paths. Masked records stay whole."""
    if not isinstance(spec, StructuredTensorSpec) or () in paths:
        return spec
    record = spec._record
    fields: dict[str, Any] = {}
    for name, inner in record.field_specs.items():
        below = [path[1:] for path in paths if path[0] == name]
        if below:
            if _is_map(record.arrow_types.get(name)):
                below.append(("key",))  # without keys, an object of JSON would be no map
            fields[name] = _with_fields(inner, below)
    if fields == dict(record.field_specs):
        return spec
    metadata = record._metadata.with_fields(fields)
    return spec._with_record(DenseStructuredTensorSpec(record.shape, fields, *metadata))


def _is_map(arrow: pa.DataType | None) -> bool:
    return arrow is not None and pa.types.is_map(arrow)


def _left_out(spec: tf.TypeSpec, narrow: tf.TypeSpec, path: Path) -> Iterator[Path]:
    """Yields the path of each field of a spec that another spec lacks."""
    if not isinstance(spec, StructuredTensorSpec) or narrow is spec:
        return
    fields = narrow._record.field_specs
    for name, inner in spec._record.field_specs.items():
        if name in fields:
            yield from _left_out(inner, fields[name], path / name)
        else:
            yield path / name
