"""Compilation of a step with XLA, without the tensors of a batch that the step does not read.

XLA has no strings, and compiles again for each new size of a tensor. So a tensor that a step does
not read must not be an argument of the compiled function.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Hashable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import layers_in
from extensor._keras.component_names import tensor_name
from extensor._keras.lowering import contains, from_lowered, is_extension
from extensor._path import Path
from extensor._protocol.named_leaves import named_leaves
from extensor._struct.component import components
from extensor._typing import Nest
from extensor.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._keras.trainer import Trainer

# The model whose step is compiled already.
_compiling: ContextVar[Any] = ContextVar("_compiling", default=None)

_NOT_COMPILED = (tf.string, tf.variant, tf.resource)


def compiles_steps(model: Trainer) -> bool:
    """Returns whether extensor compiles the steps of a model, and not Keras."""
    # Keras compiles the steps of all replicas together, because they exchange gradients.
    is_alone = model.distribute_strategy.num_replicas_in_sync == 1
    return is_alone and model.jit_compile is True and not model.run_eagerly


def expect_no_lookup(model: keras.Model) -> None:
    """Raises if a layer of a model looks strings up, which XLA cannot compile.

    Keras warns of such a layer, and compiles nothing.

    Raises:
        UnsupportedTypeError: If there is one (also a TypeError).
    """
    for layer in filter(_looks_up, layers_in(model)):
        expected = "layers that XLA compiles, because of jit_compile=True"
        fix = (
            "Make ids in the dataset: dataset.map(lambda records: records.with_updates("
            'tags=layer(records["tags"]))), and give the model the ids. Or use '
            "compile(jit_compile=False)."
        )
        raise UnsupportedTypeError(
            f"{model.name}: {layer.path}", expected, type(layer).__name__, fix
        )


def _looks_up(layer: keras.Layer) -> bool:
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


def run_compiled(model: Trainer, step: Callable[[Any], Any], data: Nest) -> Nest:
    """Returns the outputs of a step of a model, compiled with XLA if the model compiles.

    Args:
        model: The model.
        step: Takes a batch. Returns a nest of tensors.
        data: The batch.

    Raises:
        UnsupportedTypeError: If the step reads a tensor of strings (also a TypeError).
    """
    if _compiling.get() is model or not compiles_steps(model) or tf.executing_eagerly():
        return step(data)
    token = _compiling.set(model)
    try:
        return _compiled(model, step, from_lowered(data))
    finally:
        _compiling.reset(token)


def _compiled(model: Trainer, step: Callable[[Any], Any], data: Nest) -> Nest:
    leaves = tf.nest.flatten(data, expand_composites=True)
    tensors = [leaf for leaf in leaves if tf.is_tensor(leaf)]

    def on_tensors(*tensors: tf.Tensor) -> Nest:
        given = iter(tensors)
        own = [next(given) if tf.is_tensor(leaf) else leaf for leaf in leaves]
        return step(tf.nest.pack_sequence_as(data, own, expand_composites=True))

    if not contains(data, is_extension):
        return tf.function(on_tensors, autograph=False, jit_compile=True)(*tensors)
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
    traced = tf.function(on_tensors, autograph=False).get_concrete_function(*specs)
    inputs = [tensor.ref() for tensor in traced.inputs]
    given = dict(zip(inputs, [*tensors, *traced.captured_inputs], strict=True))
    outputs = tf.nest.flatten(traced.structured_outputs, expand_composites=True)
    # Strings that the step returns unchanged are not compiled either.
    passed = [given.get(_source(out)) if out.dtype in _NOT_COMPILED else None for out in outputs]
    computed = [out for out, value in zip(outputs, passed, strict=True) if value is None]
    needed = _operations_of(computed, traced)
    read = [ref for ref in inputs if ref.deref().op in needed]
    names = [
        name for name, leaf in zip(names_of_batch(data), leaves, strict=True) if tf.is_tensor(leaf)
    ]
    is_read = [ref in read for ref in inputs[: len(tensors)]]
    read_names = list(itertools.compress(zip(names, tensors, strict=True), is_read))
    strings = [name for name, tensor in read_names if tensor.dtype in _NOT_COMPILED]
    if strings:
        raise _error(model, strings, "strings that the model reads")
    splits = [name for name, _ in read_names if ".row_splits" in name]
    model.compiled_ragged = tuple(dict.fromkeys(name.split(".row_splits")[0] for name in splits))

    def on_read() -> list[tf.Tensor]:
        return _copy(traced.graph, needed, {ref: given[ref] for ref in read}, computed)

    results = iter(tf.function(on_read, autograph=False, jit_compile=True)())
    flat = [next(results) if value is None else value for value in passed]
    return tf.nest.pack_sequence_as(traced.structured_outputs, flat, expand_composites=True)


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
    fix = (
        "Convert the field to a tensor of numbers before the model, in dataset.map, or use "
        "compile(jit_compile=False)."
    )
    return UnsupportedTypeError(f"{model.name}: {', '.join(names)}", expected, received, fix)


def _source(tensor: tf.Tensor) -> Hashable:
    """Returns a reference to the tensor that a tensor is the same as."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor.ref()


def _operations_of(outputs: list[Any], traced: tf.types.experimental.ConcreteFunction) -> set[Any]:
    """Returns the operations that compute the outputs of a function, or have effects."""
    arguments = {tensor.op for tensor in traced.inputs}
    needed: set[Any] = set()
    todo = [tensor.op for tensor in outputs]
    todo += [op for op in traced.graph.get_operations() if op.op_def.is_stateful]
    while todo:
        op = todo.pop()
        if op not in needed and not (op.type == "Placeholder" and op not in arguments):
            needed.add(op)
            todo += [tensor.op for tensor in op.inputs]
            todo += [other for other in op.control_inputs if other not in arguments]
    return needed


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
    inputs = {ref.deref().op.name for ref in given}
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
