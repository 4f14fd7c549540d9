"""Extension values in tf.py_function: casts and shapes of results, and gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops

from extensor._patches.common_type import cast_to_declared, takes_casts
from extensor._patches.patch import REPLACED, changes, overrides, plain_of, with_original
from extensor._tf import Extension, component_specs, describes_extension, to_components
from extensor._tf._tf_named_function import script_ops
from extensor._typing import Value


class _OfValues:
    """A function of flat tensors, some of which are components of extension values."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *tensors: tf.Tensor) -> Any:
        return self._function(*tensors)


@overrides(
    "tensorflow.python.ops.script_ops._wrap_for_composites",
    reason="tf.py_function rejects a result that does not match Tout; this function decomposes "
    "arguments and results.",
    probe="python_functions",
)
def wrap_for_composites(
    func: Callable[..., Any],
    inp: list[Value],
    Tout: list[tf.TypeSpec],  # noqa: N803 - TensorFlow's own name
    *,
    plain: Callable[..., tuple[Any, ...]],
) -> tuple[Any, ...]:
    """Calls TensorFlow's function; casts results, and marks functions of extension values."""

    @functools.wraps(func)
    def cast_func(*args: Value) -> list[Value]:
        results = func(*args)
        results = results if isinstance(results, (list, tuple)) else [results]
        # TensorFlow drops results that were not declared.
        return [cast_to_declared(spec, value) for spec, value in zip(Tout, results, strict=False)]

    function, *rest = plain(cast_func if any(map(takes_casts, Tout)) else func, inp, Tout)
    takes_ours = any(isinstance(x, Extension) for x in inp)
    if takes_ours or any(map(describes_extension, Tout)):
        function = _OfValues(function)
    return function, *rest


@overrides(
    "tensorflow.python.ops.script_ops._internal_py_func",
    reason="In a graph, the results of tf.py_function have no shapes, also where Tout is a spec "
    "that has them. A value of unknown ranks may have no spec, so that no function can take it.",
    probe="python_functions",
)
def internal_py_func(
    func: Callable[..., Any],
    inp: list[Value],
    Tout: Any,  # noqa: N803 - TensorFlow's own name
    *args: Any,
    plain: Callable[..., Any],
    **kwargs: Any,
) -> Any:
    """Calls TensorFlow's function; extension values get the shapes that their specs have."""
    results = plain(func, inp, Tout, *args, **kwargs)
    if not tf.executing_eagerly():
        is_several = isinstance(results, (list, tuple))  # no results are an Operation
        pairs = zip(Tout, results, strict=True) if is_several else [(Tout, results)]
        for spec, value in pairs:
            if describes_extension(spec):
                _set_shapes(spec, value)
    return results


def _set_shapes(spec: tf.TypeSpec, value: Value) -> None:
    parts = tf.nest.flatten(component_specs(spec))
    for part, component in zip(parts, tf.nest.flatten(to_components(spec, value)), strict=True):
        if isinstance(part, tf.TensorSpec):
            component.set_shape(part.shape)
        elif describes_extension(part):
            _set_shapes(part, component)


@changes(
    "tensorflow.python.framework.ops.gradient_registry",
    reason="The gradient of tf.py_function also passes integers, bools and strings to the tape, "
    "which fails; TensorFlow does not allow a second registration for the op.",
    probe="gradients_of_ops",
)
def register_gradient() -> None:
    registered: dict[str, Any] = ops.gradient_registry._registry["EagerPyFunc"]
    plain = plain_of(registered["type"])
    replacement = functools.update_wrapper(with_original(gradient, plain), plain)
    vars(replacement)[REPLACED] = plain
    registered["type"] = replacement


def gradient(
    op: tf.Operation, *upstream: tf.Tensor, plain: Callable[..., Any]
) -> list[tf.Tensor | None]:
    """The gradient of the op of tf.py_function.

    As TensorFlow's function; for extension values, only for floating point tensors.
    """
    token: bytes = op.get_attr("token")
    function: Any = script_ops._py_funcs.get(token.decode())
    if not isinstance(getattr(function, "_func", None), _OfValues):
        return plain(op, *upstream)
    targets = [i for i, tensor in enumerate(op.outputs) if _has_gradient(tensor)]
    targets = [i for i in targets if upstream[i] is not None]
    sources = [i for i, tensor in enumerate(op.inputs) if _has_gradient(tensor)]
    if not targets or not sources:
        return [None] * len(op.inputs)

    def of_tape(*upstream: tf.Tensor) -> Any:
        tape, inputs, outputs = script_ops.tape_cache.pop(token)
        return tape.gradient(
            [outputs[i] for i in targets],
            [inputs[i] for i in sources],
            output_gradients=upstream,
            unconnected_gradients="zero",
        )

    with tf.control_dependencies(op.outputs):
        found: Any = script_ops._internal_py_func(
            func=of_tape,
            inp=[tf.convert_to_tensor(upstream[i]) for i in targets],
            Tout=[op.inputs[i].dtype for i in sources],
            use_eager_py_func=True,
            is_grad_func=True,
        )
    if not tf.executing_eagerly():
        function.set_support_graph_mode_gradient()
    gradients: dict[int, tf.Tensor] = dict(zip(sources, found, strict=True))
    return [gradients.get(i) for i in range(len(op.inputs))]


def _has_gradient(tensor: tf.Tensor) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex
