"""xt.numpy_function: a Python function of extension values as an op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

from extensor._functions.nested import nested_specs, tensor_or_value
from extensor._protocol.casting import cast_value, described, not_castable
from extensor._protocol.spec import TypeSpec
from extensor._tf import CompositeTensor
from extensor.errors import StructureError


def numpy_function(
    func: Callable[..., Any],
    inp: list[Any],
    Tout: Any,  # noqa: N803 - TensorFlow's own name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Wraps a Python function as an op, as `tf.numpy_function`, also for extension values.

    Args:
        func: Takes a NumPy array for each tensor, and for each extension value a value of its
            own type whose tensors are eager, so that `.numpy()` reads them. Returns what `Tout`
            says.
        inp: The arguments.
        Tout: A nest of dtypes and specs of what `func` returns; an extension type by its spec, to
            which what is returned is cast.
        stateful: As in `tf.numpy_function`.
        name: A name for the op.

    Returns:
        What `func` returned, as tensors and extension values. It has no gradient: with
        `tf.py_function`, which takes extension values as it is, it has.

    Raises:
        DTypeError: If `func` returns a value that cannot be cast to its spec in `Tout`: another
            class, dtype or static data, or None (also a TypeError). In a graph this and the next
            are an InvalidArgumentError when it runs.
        StructureError: If it returns another nest or another shape (also a ValueError).

    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> xt.numpy_function(lambda rows: np.int32(len(rows.values)), [ragged], tf.int32)
    <tf.Tensor: shape=(), dtype=int32, numpy=3>
    """
    inp = [tf.nest.map_structure(tensor_or_value, value) for value in inp]
    specs = tf.nest.map_structure(_output_spec, Tout)
    if not any(isinstance(x, (CompositeTensor, tf.TypeSpec)) for x in tf.nest.flatten([inp, Tout])):
        return tf.numpy_function(func, inp, Tout, stateful, name)
    arguments, leaves = nested_specs(inp), _flat_specs(specs)

    def on_arrays(*arrays: Any) -> list[Any]:
        rest = iter(arrays)

        def rebuilt(spec: Any) -> Any:
            if isinstance(spec, tf.TensorSpec):
                return next(rest)
            flat = [tf.constant(next(rest), leaf.dtype) for leaf in _flat_specs(spec)]
            return tf.nest.pack_sequence_as(spec, flat, expand_composites=True)

        results = func(*tf.nest.map_structure(rebuilt, arguments))
        return _flat_results(specs, results) if leaves else []

    flat = tf.numpy_function(
        on_arrays,
        tf.nest.flatten(inp, expand_composites=True),
        [leaf.dtype for leaf in leaves],
        stateful=stateful,
        name=name,
    )
    if not leaves:
        return flat
    flat = list(flat) if isinstance(flat, (list, tuple)) else [flat]
    for leaf, tensor in zip(leaves, flat, strict=True):
        tensor.set_shape(leaf.shape)
    return tf.nest.pack_sequence_as(specs, flat, expand_composites=True)


def _flat_results(specs: Any, results: Any) -> list[Any]:
    """Returns the tensors of what a function returned, which is what its specs say."""
    path = "numpy_function"
    listed = isinstance(specs, (list, tuple)) and len(cast("Any", specs)) == 1
    if listed and not isinstance(results, (list, tuple)):
        results = [results]
    try:
        tf.nest.assert_same_structure(specs, results, check_types=False)
    except (TypeError, ValueError) as error:
        raise StructureError(
            path=path,
            expected=f"a function that returns {specs}, as Tout says",
            received=f"{tf.nest.map_structure(described, results)}",
            mend="Return such a nest, or say in Tout what is returned.",
        ) from error
    values: list[Any] = []
    for spec, value in zip(tf.nest.flatten(specs), tf.nest.flatten(results), strict=True):
        if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec, TypeSpec)):
            values.append(cast_value(spec, value, path))
        elif spec.is_compatible_with(value):
            values.append(value)
        else:  # TensorFlow's own casts do not compare static data
            raise not_castable(spec, value, path)
    return tf.nest.flatten(values, expand_composites=True)


def _output_spec(output: Any) -> Any:
    return output if isinstance(output, tf.TypeSpec) else tf.TensorSpec(None, output)


def _flat_specs(specs: Any) -> list[Any]:
    return tf.nest.flatten(specs, expand_composites=True)
