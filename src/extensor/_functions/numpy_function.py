"""xt.numpy_function for extension values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from extensor._functions.nested import nested_specs, tensor_or_value
from extensor._protocol.casting import cast_value, not_castable, type_text
from extensor._protocol.spec import TypeSpec
from extensor._tf import CompositeTensor
from extensor._typing import DTypeLike, Nest, Value
from extensor.errors import StructureError


def numpy_function(
    func: Callable[..., Any],
    inp: list[Any],
    Tout: object,  # noqa: N803 - TensorFlow's own name
    stateful: bool = True,
    name: str | None = None,
) -> Nest:
    """Returns the results of a Python function that runs as an op.

    Like `tf.numpy_function`, also for extension values.

    Args:
        func: Takes a NumPy array for each tensor, and for each extension value a value of the same
            type with eager tensors, which `.numpy()` reads. Returns values that match `Tout`.
        inp: The arguments.
        Tout: A nest of dtypes and specs for the results of `func`. For an extension value it has a
            spec, to which the result is cast.
        stateful: As in `tf.numpy_function`.
        name: A name for the op.

    Returns:
        The results of `func` as tensors and extension values. They have no gradient; use
        `tf.py_function`, which also takes extension values, to get one.

    Raises:
        DTypeError: If `func` returns a value that cannot be cast to its spec in `Tout`: another
            class, dtype or static data, or None (also a TypeError). In a graph, this error and the
            next are raised as an InvalidArgumentError at run time.
        StructureError: If `func` returns another nest or another shape (also a ValueError).

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> xt.numpy_function(lambda rows: np.int32(len(rows.values)), [ragged], tf.int32)
    <tf.Tensor: shape=(), dtype=int32, numpy=3>
    """
    inp = [tf.nest.map_structure(tensor_or_value, value) for value in inp]
    specs = tf.nest.map_structure(_output_spec, Tout)
    if not any(isinstance(x, (CompositeTensor, tf.TypeSpec)) for x in tf.nest.flatten([inp, Tout])):
        return tf.numpy_function(func, inp, Tout, stateful, name)
    arguments, leaves = nested_specs(inp), _flat_specs(specs)

    def on_arrays(*arrays: np.ndarray[Any, Any]) -> list[tf.Tensor]:
        rest = iter(arrays)

        def rebuild(spec: tf.TypeSpec) -> Value:
            if isinstance(spec, tf.TensorSpec):
                return next(rest)
            flat = [tf.constant(next(rest), leaf.dtype) for leaf in _flat_specs(spec)]
            return tf.nest.pack_sequence_as(spec, flat, expand_composites=True)

        results = func(*tf.nest.map_structure(rebuild, arguments))
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


def _flat_results(specs: Nest, results: Nest) -> list[tf.Tensor]:
    """Returns the component tensors of the results of a function, cast to their specs."""
    path = "numpy_function"
    listed = isinstance(specs, (list, tuple)) and len(specs) == 1
    if listed and not isinstance(results, (list, tuple)):
        results = [results]
    try:
        tf.nest.assert_same_structure(specs, results, check_types=False)
    except (TypeError, ValueError) as error:
        expected = f"a result with the structure of Tout, {specs}"
        received = f"{tf.nest.map_structure(type_text, results)}"
        fix = "Return this structure, or change Tout."
        raise StructureError(path, expected, received, fix) from error
    values: list[Value] = []
    for spec, value in zip(tf.nest.flatten(specs), tf.nest.flatten(results), strict=True):
        if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec, TypeSpec)):
            values.append(cast_value(spec, value, path))
        elif spec.is_compatible_with(value):
            values.append(value)
        else:  # casts of TensorFlow's own specs do not compare static data
            raise not_castable(spec, value, path)
    return tf.nest.flatten(values, expand_composites=True)


def _output_spec(output: tf.TypeSpec | DTypeLike) -> tf.TypeSpec:
    return output if isinstance(output, tf.TypeSpec) else tf.TensorSpec(None, output)


def _flat_specs(specs: Nest) -> list[tf.TensorSpec]:
    return tf.nest.flatten(specs, expand_composites=True)
