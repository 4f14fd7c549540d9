"""Errors for components that do not match their specs, or that do not stack."""

from __future__ import annotations

import tensorflow as tf

from extensor._tf import VariableSpec
from extensor._typing import Nest, Value
from extensor.errors import ProtocolError

_FIX = "Make component_specs and to_components match, component by component."


def mismatch(spec: tf.TypeSpec, components: Nest) -> ProtocolError | None:
    """Returns the error for components that do not match the component specs, or None.

    Args:
        spec: The spec of a value.
        components: The result of its `to_components`.

    >>> from extensor._protocol.component_error import mismatch
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.spec_of(tf.ragged.constant([[1, 2], [3]]))
    >>> print(mismatch(spec, (tf.constant([1, 2, 3]), tf.constant([0, 2, 3]))))
    RaggedTensorSpec.to_components, component 1: expected TensorSpec(shape=(3,), dtype=tf.int64,
    name=None), got TensorSpec(shape=(3,), dtype=tf.int32, name=None). Make component_specs and
    to_components match, component by component.
    """
    path = f"{type(spec).__qualname__}.to_components"
    specs = spec.component_specs
    try:
        tf.nest.assert_same_structure(specs, components)
    except (TypeError, ValueError):
        received = str(tf.nest.map_structure(_spec_or_class, components))
        return ProtocolError(path, f"components in the structure {specs}", received, _FIX)
    pairs = zip(tf.nest.flatten(specs), tf.nest.flatten(components), strict=True)
    for i, (wanted, component) in enumerate(pairs):
        found = _spec_or_class(component)
        if isinstance(found, str) or not wanted.is_compatible_with(component):
            return ProtocolError(f"{path}, component {i}", str(wanted), str(found), _FIX)
    return None


def does_not_stack(spec: tf.TypeSpec, path: str | None = None) -> ProtocolError:
    """Returns the error for a spec whose values do not stack.

    Args:
        spec: A spec that is not stackable.
        path: The name of the spec that contains it, or the path of a field. Default: `spec` is
            not a component of another spec.
    """
    name = type(spec).__qualname__
    if isinstance(spec, VariableSpec):
        received, fix = "a Variable", "Read it first: tf.convert_to_tensor(variable)."
    else:
        received, fix = name, f"Derive {name} from xt.StackableTypeSpec."
    what = "a type" if path is None else "components"
    received = f"{received}, which is not stackable"
    return ProtocolError(path or name, f"{what} whose values stack", received, fix)


def _spec_or_class(component: Value) -> tf.TypeSpec | str:
    """Returns the spec of a component, or the name of its class if it has no spec."""
    try:
        return tf.type_spec_from_value(component)
    except (TypeError, ValueError):
        return type(component).__qualname__
