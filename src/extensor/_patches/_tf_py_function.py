"""What tf.py_function does with extension values: what is cast, and what has a gradient."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import script_ops

from extensor._patches.meeting import as_declared, casts
from extensor._patches.patch import REPLACED, changes, plain_of, replaces
from extensor._tf import Extension, describes_extension


class _OfValues:
    """A function of flat tensors, some of which stand for an extension value."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *tensors: Any) -> Any:
        return self._function(*tensors)


@replaces(
    "tensorflow.python.ops.script_ops._wrap_for_composites",
    reason="tf.py_function refuses a result that is not what Tout says; this function takes "
    "values apart on their way in and out.",
    probe="python_functions",
)
def wrap_for_composites(plain: Any) -> Any:
    def _wrap(func: Any, inp: Any, Tout: Any) -> Any:  # noqa: N803 - TensorFlow's own name
        """As TensorFlow's own; what is returned is cast, and functions of our values are marked."""

        @functools.wraps(func)
        def cast_func(*args: Any) -> Any:
            results = func(*args)
            results = results if isinstance(results, (list, tuple)) else [results]
            # TensorFlow leaves out what was not declared.
            return [as_declared(spec, value) for spec, value in zip(Tout, results, strict=False)]

        function, *rest = plain(cast_func if any(map(casts, Tout)) else func, inp, Tout)
        takes_ours = any(isinstance(x, Extension) for x in inp)
        if takes_ours or any(map(describes_extension, Tout)):
            function = _OfValues(function)
        return function, *rest

    return _wrap


@changes(
    "tensorflow.python.framework.ops.gradient_registry",
    reason="The gradient of tf.py_function gives integers, bools and strings gradients too, which "
    "they cannot have; no second gradient can be registered for its op.",
    probe="gradients_of_ops",
)
def register_gradient() -> None:
    registered: dict[str, Any] = ops.gradient_registry._registry["EagerPyFunc"]
    plain = plain_of(registered["type"])
    replacement = functools.update_wrapper(gradient_of_values(plain), plain)
    vars(replacement)[REPLACED] = plain
    registered["type"] = replacement


def gradient_of_values(plain: Any) -> Any:
    """Returns the gradient of the op of a py_function, given TensorFlow's own."""

    def _gradient(op: Any, *upstream: Any) -> Any:
        """As TensorFlow's own; of extension values only floating point parts have gradients."""
        token: bytes = op.get_attr("token")
        function: Any = script_ops._py_funcs.get(token.decode())
        if not isinstance(getattr(function, "_func", None), _OfValues):
            return plain(op, *upstream)
        targets = [i for i, tensor in enumerate(op.outputs) if _has_gradient(tensor)]
        targets = [i for i in targets if upstream[i] is not None]
        sources = [i for i, tensor in enumerate(op.inputs) if _has_gradient(tensor)]
        if not targets or not sources:
            return [None] * len(op.inputs)

        def gradient(*upstream: Any) -> Any:
            tape, inputs, outputs = script_ops.tape_cache.pop(token)
            return tape.gradient(
                [outputs[i] for i in targets],
                [inputs[i] for i in sources],
                output_gradients=upstream,
                unconnected_gradients="zero",
            )

        with tf.control_dependencies(op.outputs):
            found: Any = script_ops._internal_py_func(
                func=gradient,
                inp=[tf.convert_to_tensor(upstream[i]) for i in targets],
                Tout=[op.inputs[i].dtype for i in sources],
                use_eager_py_func=True,
                is_grad_func=True,
            )
        if not tf.executing_eagerly():
            function.set_support_graph_mode_gradient()
        gradients: dict[int, Any] = dict(zip(sources, found, strict=True))
        return [gradients.get(i) for i in range(len(op.inputs))]

    return _gradient


def _has_gradient(tensor: Any) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex
