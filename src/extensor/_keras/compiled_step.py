"""Compilation of a step with XLA, without the tensors of a batch that the step does not read.

XLA has no strings, and compiles again for each new size of a tensor. So a tensor that a step does
not read must not be an argument of the compiled function.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import layers_in
from extensor._keras.component_tensors import tensor_name
from extensor._keras.lowering import from_lowered, is_extension
from extensor._path import Path
from extensor._protocol.named_leaves import named_leaves
from extensor._struct.component import components
from extensor._tf import map_elements
from extensor._tf._tf_control_inputs import stateful_ops_after
from extensor._typing import Nest
from extensor.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._keras.trainer import Trainer


@dataclass
class _CompiledStep:
    """The step of a model that is compiled now."""

    model: object
    apart: list[tf.Tensor] = field(default_factory=list[tf.Tensor])  # what `mark_apart` got


_compiling: ContextVar[_CompiledStep | None] = ContextVar("_compiling", default=None)

_NOT_COMPILED = (tf.string, tf.variant, tf.resource)

# The operations with effects that may run before a step, and in a dataset.
_LOOKUPS = ("Assert", "LookupTableFindV2")

# The parts of an element of `with_parts_apart`.
_APART, _BATCH = "extensor: computed apart", "extensor: batch"


def compiles_steps(model: Trainer) -> bool:
    """Returns whether extensor compiles the steps of a model, and not Keras."""
    # Keras compiles the steps of all replicas together, because they exchange gradients.
    is_alone = model.distribute_strategy.num_replicas_in_sync == 1
    return is_alone and model.jit_compile is True and not model.run_eagerly


def expect_no_lookup(model: keras.Model) -> None:
    """Raises if a layer of a model looks strings up, which XLA cannot compile.

    Keras warns of such a layer, and compiles nothing. The layers in a `RecordFeatures` run before
    the compiled step, if extensor compiles the steps.

    Raises:
        UnsupportedTypeError: If there is one (also a TypeError).
    """
    is_alone = model.distribute_strategy.num_replicas_in_sync == 1
    for layer in lookups_in(model, apart=False if is_alone else None):
        expected = "layers that XLA compiles, because of jit_compile=True"
        fix = (
            "Make ids in the dataset: dataset.map(lambda records: records.with_updates("
            'tags=layer(records["tags"]))), and give the model the ids; on one device, a '
            "RecordFeatures of such layers does it by itself. Or use compile(jit_compile=False)."
        )
        # A layer that is not built has no path.
        around = [each.name for each in layers_in(model)[1:] if layer in layers_in(each)]
        path = f"{model.name}: {'/'.join(around)}"
        raise UnsupportedTypeError(path, expected, type(layer).__name__, fix)


def allow_static_lists(model: keras.Model) -> None:
    """Lets Keras compile the layers for lists of a model, which take static lists in its steps."""
    for layer in layers_in(model):
        if getattr(layer, "_takes_static_lists", False):
            layer.supports_jit = True


def lookups_in(model: keras.Model, apart: bool | None = None) -> list[keras.Layer]:
    """Returns the layers of a model that look strings up.

    Args:
        model: The model.
        apart: Whether they are in a `RecordFeatures`, which computes them apart. Default: all.
    """
    layers = layers_in(model)
    own = {id(each) for layer in layers for each in getattr(layer, "layers_apart", ())}
    return [x for x in layers if looks_up(x) and apart in (None, id(x) in own)]


def looks_up(layer: object) -> bool:
    """Returns whether a layer looks up or hashes, for which XLA has no operations."""
    lookups = (
        keras.layers.Hashing,
        keras.layers.HashedCrossing,
        keras.layers.IntegerLookup,
        keras.layers.StringLookup,
        keras.layers.TextVectorization,
    )
    return isinstance(layer, lookups)


def is_compiling() -> bool:
    """Returns whether a step is traced that XLA compiles: then sizes must not depend on data."""
    return _compiling.get() is not None


def mark_apart(result: Any) -> Any:
    """Returns a result that XLA cannot compute, to be computed before the compiled step.

    That is possible if it depends only on the batch and on tables.
    """
    step = _compiling.get()
    if step is not None and isinstance(result, tf.Tensor):
        step.apart.append(result)
    return result


def run_compiled(model: Trainer, step: Callable[[Any], Any], data: Nest) -> Nest:
    """Returns the outputs of a step of a model, compiled with XLA if the model compiles.

    Args:
        model: The model.
        step: Takes a batch. Returns a nest of tensors.
        data: The batch.

    Raises:
        UnsupportedTypeError: If the step reads a tensor of strings (also a TypeError).
    """
    computed = None
    if isinstance(data, dict) and set(data) == {_APART, _BATCH}:
        computed, data = data[_APART], data[_BATCH]
    own = _compiling.get()
    is_inside = own is not None and own.model is model
    if is_inside or tf.executing_eagerly():
        return step(data)
    if not compiles_steps(model):
        # A step that gets no batch, at the end of a dataset of unknown length, must count nothing.
        leaves = filter(tf.is_tensor, tf.nest.flatten(data, expand_composites=True))
        with stateful_ops_after(itertools.islice(leaves, 1)):
            return step(data)
    return _compile_in_parts(model, _TracedStep(model, step, from_lowered(data)), computed)


class PartsApart:
    """The functions that compute what XLA cannot, which a model keeps until it is compiled again.

    A batch of the same spec needs no other trace, unless a layer has another table since.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Callable[[Nest], Nest], Sequence[object]]] = {}

    def function_for(
        self,
        model: Trainer,
        step: Callable[[Any], Any],
        spec: Nest,
        create_variables: Callable[[], None],
    ) -> Callable[[Nest], Nest]:
        """Returns a function of a batch. The arguments are those of `with_parts_apart`."""
        tables = [getattr(layer, "lookup_table", None) for layer in lookups_in(model)]
        key = step, repr(spec)
        known, before = self._known.get(key, (None, []))
        is_same = len(tables) == len(before) and all(map(operator.is_, tables, before))
        if known is not None and is_same:
            return known

        def compute(element: Nest) -> Nest:
            traced = _TracedStep(model, step, from_lowered(element))
            return {_APART: tuple(traced.compute_apart()), _BATCH: element}

        create_variables()
        function = tf.function(compute, autograph=False)
        self._known[key] = function, tables
        return function


def with_parts_apart(
    model: Trainer,
    step: Callable[[Any], Any],
    dataset: tf.data.Dataset,
    create_variables: Callable[[], None],
) -> tf.data.Dataset:
    """Returns a dataset that computes what XLA cannot, and elements that only `run_compiled` takes.

    Args:
        model: A model that extensor compiles.
        step: A step of the model.
        dataset: The batches.
        create_variables: Creates all variables of the model, before its step is traced.
    """
    parts = model.parts_apart = model.parts_apart or PartsApart()
    function = parts.function_for(model, step, dataset.element_spec, create_variables)
    return map_elements(dataset, function).prefetch(tf.data.AUTOTUNE)


class _TracedStep:
    """The graph of a step of a model for a batch.

    Args:
        model: The model.
        step: Takes a batch. Returns a nest of tensors.
        data: The batch.
    """

    def __init__(self, model: Trainer, step: Callable[[Any], Any], data: Nest) -> None:
        leaves = tf.nest.flatten(data, expand_composites=True)
        self.tensors = [leaf for leaf in leaves if tf.is_tensor(leaf)]

        def on_tensors(*tensors: tf.Tensor) -> Nest:
            given = iter(tensors)
            own = [next(given) if tf.is_tensor(leaf) else leaf for leaf in leaves]
            return step(tf.nest.pack_sequence_as(data, own, expand_composites=True))

        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in self.tensors]
        compiled = _CompiledStep(model)
        token = _compiling.set(compiled)
        try:
            traced = tf.function(on_tensors, autograph=False).get_concrete_function(*specs)
        finally:
            _compiling.reset(token)
        self.data, self.graph, self.outputs = data, traced.graph, traced.structured_outputs
        self.inputs = [tensor.ref() for tensor in traced.inputs]
        self.given = dict(zip(self.inputs, [*self.tensors, *traced.captured_inputs], strict=True))
        # Operations that depend on variables cannot run before the step. Neither can those in a
        # function that the step calls.
        self._before: dict[Any, set[Any]] = {}  # the operations that compute each part
        for tensor in compiled.apart:
            needed = self._lookups_for(tensor) if tensor.graph is traced.graph else None
            if needed is not None:
                self._before[tensor.ref()] = needed

    @property
    def apart(self) -> list[Any]:
        """References to the tensors that are computed before the step."""
        return list(self._before)

    def compute_apart(self) -> list[tf.Tensor]:
        """Returns the tensors that are computed before the step, for the batch."""
        if not self._before:
            return []
        needed = set[Any]().union(*self._before.values())
        read = {ref: self.given[ref] for ref in self.inputs if ref.deref().op in needed}
        return _copy(self.graph, needed, read, [ref.deref() for ref in self.apart])

    def _lookups_for(self, tensor: tf.Tensor) -> set[Any] | None:
        """Returns the operations that compute a tensor of the batch and of tables, or None."""
        needed: set[Any] = set()
        todo = [tensor.op]
        while todo:
            op = todo.pop()
            if op.op_def.is_stateful and op.type not in _LOOKUPS:
                return None
            if op not in needed:
                needed.add(op)
                todo += [each.op for each in op.inputs]
                todo += [each for each in op.control_inputs if each.type == "Assert"]
        return needed

    def operations_for(self, outputs: list[Any]) -> set[Any]:
        """Returns the operations of the step that compute its outputs, or have effects."""
        arguments = {ref.deref().op for ref in self.inputs}
        before = set[Any]().union(*self._before.values())
        operations = [op for op in self.graph.get_operations() if op.op_def.is_stateful]
        todo = [op for op in operations if op not in before]
        # What computes the parts apart is needed only if something else needs it.
        todo += [tensor.op for tensor in outputs if tensor.ref() not in self._before]
        needed: set[Any] = set()
        while todo:
            op = todo.pop()
            if op not in needed and not (op.type == "Placeholder" and op not in arguments):
                needed.add(op)
                todo += [each.op for each in op.inputs if each.ref() not in self._before]
                todo += [
                    other
                    for other in op.control_inputs
                    if other not in arguments and not (other.op_def.is_stateful and other in before)
                ]
        return needed


def _compile_in_parts(
    model: Trainer, step: _TracedStep, computed_apart: Sequence[tf.Tensor] | None
) -> Nest:
    """Returns the outputs of a step, without compiling what it does not read or computes apart."""
    outputs = tf.nest.flatten(step.outputs, expand_composites=True)
    # Strings that the step returns unchanged are not compiled either.
    sources = [_source(out) if out.dtype in _NOT_COMPILED else None for out in outputs]
    passed = [step.given.get(source) for source in sources]
    computed = [out for out, value in zip(outputs, passed, strict=True) if value is None]
    needed = step.operations_for(computed)
    read = [ref for ref in step.inputs if ref.deref().op in needed]
    leaves = tf.nest.flatten(step.data, expand_composites=True)
    names = [
        name
        for name, leaf in zip(names_of_batch(step.data), leaves, strict=True)
        if tf.is_tensor(leaf)
    ]
    is_read = [ref in read for ref in step.inputs[: len(step.tensors)]]
    read_names = list(itertools.compress(zip(names, step.tensors, strict=True), is_read))
    strings = [name for name, tensor in read_names if tensor.dtype in _NOT_COMPILED]
    if strings:
        raise _error(model, strings, "strings that the model reads")
    splits = [name for name, _ in read_names if ".row_splits" in name]
    model.compiled_ragged = tuple(dict.fromkeys(name.split(".row_splits")[0] for name in splits))
    before = step.compute_apart() if computed_apart is None else computed_apart
    given = {ref: step.given[ref] for ref in read}
    consumed = {each.ref() for op in needed for each in op.inputs}
    parts = zip(step.apart, before, strict=True)
    given.update({ref: value for ref, value in parts if ref in consumed})

    def on_read() -> list[tf.Tensor]:
        return _copy(step.graph, needed, given, computed)

    results = iter(tf.function(on_read, autograph=False, jit_compile=True)())
    flat = [next(results) if value is None else value for value in passed]
    return tf.nest.pack_sequence_as(step.outputs, flat, expand_composites=True)


@contextlib.contextmanager
def named_errors(model: Trainer) -> Generator[None]:
    """Raises the errors of XLA about ragged tensors again, with the names of the fields.

    Raises:
        UnsupportedTypeError: If XLA cannot compile what the model does with ragged tensors (also a
            TypeError).
    """
    try:
        yield
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
        names = model.compiled_ragged
        if not (names and model.jit_compile is True and "XLA" in str(error)):
            raise
        raise _error(model, names, "a ragged tensor, and operations that XLA lacks") from error


def _error(model: Trainer, names: Iterable[str], received: str) -> UnsupportedTypeError:
    expected = "tensors and operations of XLA, because of jit_compile=True"
    fix = "Convert the field to numbers before the model, or use compile(jit_compile=False)."
    return UnsupportedTypeError(f"{model.name}: {', '.join(names)}", expected, received, fix)


def _source(tensor: tf.Tensor) -> Hashable:
    """Returns a reference to the tensor that a tensor is the same as."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor.ref()


def _copy(
    graph: tf.Graph, needed: set[Any], given: dict[Any, Any], outputs: list[Any]
) -> list[Any]:
    """Returns outputs of a graph, computed by a copy of its operations in the current graph.

    Args:
        graph: The graph.
        needed: The operations to copy.
        given: The values of the inputs, by references.
        outputs: The tensors to return.
    """
    current: Any = tf.compat.v1.get_default_graph()
    definition = graph.as_graph_def()
    inputs = {ref.deref().op.name for ref in given if ref.deref().op.type == "Placeholder"}
    names = {op.name for op in needed} - inputs
    part = tf.compat.v1.GraphDef(versions=definition.versions, library=definition.library)
    for node in definition.node:
        if node.name in names:
            copy = part.node.add()
            copy.CopyFrom(node)
            kept = [each for each in node.input if not each.startswith("^") or each[1:] in names]
            del copy.input[:]
            copy.input.extend(kept)
    return tf.graph_util.import_graph_def(
        part,
        {ref.deref().name: current.capture(value) for ref, value in given.items()},
        [output.name for output in outputs],
        name="",
    )


def names_of_batch(data: Nest) -> list[str]:
    """Returns a name for each tensor of a batch, in the order of `tf.nest`."""
    parts = dict(
        zip(
            ("input", "target", "sample_weight"),
            keras.utils.unpack_x_y_sample_weight(data),
            strict=True,
        )
    )
    count = len(data) if isinstance(data, tuple) else 1
    names: list[str] = []
    for title, part in list(parts.items())[:count]:
        for place, leaf in named_leaves(part):
            at = Path(*place)
            own = [f"{at}"]
            if is_extension(leaf):
                own = [tensor_name(one, at) for one in components(tf.type_spec_from_value(leaf))]
            names += [f"{title} {name}".strip() for name in own]
    return names
