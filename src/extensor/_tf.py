"""THE quarantine: every private TensorFlow name that extensor uses, and why it needs it.

No other module imports `tensorflow.python`, `tensorflow.core` or `tf.__internal__` (a linter
checks). `tests/test_tf_probe.py` holds one probe a name, so that a new TensorFlow tells which one
broke. Seen to work with TensorFlow 2.20 and 2.21.

| name | why |
| --- | --- |
| `CompositeTensor` | TensorFlow asks `isinstance(value, CompositeTensor)` wherever it decides whether a value decomposes into tensors. It is an ABCMeta class, so a `__subclasshook__` lets classes in that have no base of ours. |
| `tf.types.experimental.SupportsTracingProtocol` (public; that it is asked first is not) | tf.function asks a value's class for this protocol before anything else asks for CompositeTensor. The same hook stands there, so that tf.function may be the first API that a class meets. |
| `BatchableTypeSpec` | `Dataset.batch`, `map_fn` and `vectorized_map` stack values of these specs only. |
| `type_spec_registry` | The one registry of names under which specs are written into a SavedModel. Its `register` refuses what a re-run notebook cell does; its two tables are amended here. |
| `autograph.core.config.CONVERSION_RULES` | autograph rewrites the source of what a tf.function calls, unless a rule names its module, as TensorFlow's own list does for Keras and TFP. Rewriting extensor would make every trace slow and gain nothing: no loop of it depends on a tensor. |
| `VariableSpec` | A field that holds a Variable is described by it, so that the variable survives tf.function. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from extensor.errors import MissingDependencyError

# The requirement of pyproject.toml, asked for here because no extra need have been chosen.
try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    raise MissingDependencyError(
        path="extensor",
        expected="TensorFlow 2.20 or newer",
        received="no TensorFlow",
        mend='Install it: pip install "extensor[tf]", or "extensor[tf-cpu]" without a GPU.',
    ) from None
if tuple(int(part) for part in tf.__version__.split(".")[:2]) < (2, 20):
    raise MissingDependencyError(
        path="extensor",
        expected="TensorFlow 2.20 or newer",
        received=f"TensorFlow {tf.__version__}",
        mend='Upgrade it: pip install --upgrade "extensor[tf]", or "extensor[tf-cpu]".',
    )
from tensorflow.python.autograph.core import config as autograph_config
from tensorflow.python.framework import type_spec_registry
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.framework.type_spec import BatchableTypeSpec
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, VariableSpec

__all__ = [
    "BaseResourceVariable",
    "BatchableTypeSpec",
    "CompositeTensor",
    "VariableSpec",
    "admit",
    "registered_name",
    "registered_spec",
    "replace_registration",
]

_PROTOCOL = "__tf_type_spec__"


class _TypeSpecOfValue:
    """Gives TensorFlow `value._type_spec`, which it reads where the protocol has a method.

    Not a data descriptor: a class that keeps an attribute of this name in its instances keeps it.
    """

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        return self if value is None else value.__tf_type_spec__()


def _tracing_type(self: Any, context: Any) -> Any:
    return self.__tf_type_spec__().__tf_tracing_type__(context)


def _convert_variables_to_tensors(self: Any) -> Any:
    """Returns the value with variables read, where its spec speaks of a plain tensor."""
    spec = self.__tf_type_spec__()
    read_any = False

    def read(component_spec: Any, component: Any) -> Any:
        nonlocal read_any
        if isinstance(component, BaseResourceVariable) and isinstance(
            component_spec, tf.TensorSpec
        ):
            read_any = True
            return tf.convert_to_tensor(component)
        return component

    components = tf.nest.map_structure(read, spec._component_specs, spec._to_components(self))
    return spec._from_components(components) if read_any else self


def _shape_invariant_to_type_spec(self: Any, shape: Any) -> Any:
    if shape is None:
        return self.__tf_type_spec__()
    raise NotImplementedError(
        f"{type(self).__name__}: expected a TypeSpec as shape invariant, got a shape. "
        "Give tf.while_loop a TypeSpec for this loop variable."
    )


_MEMBERS: dict[str, Any] = {
    "_type_spec": _TypeSpecOfValue(),
    "__tf_tracing_type__": _tracing_type,
    "_convert_variables_to_tensors": _convert_variables_to_tensors,
    "_shape_invariant_to_type_spec": _shape_invariant_to_type_spec,
    "_consumers": CompositeTensor._consumers,
}


def admit(cls: type) -> bool:
    """Makes a class that defines `__tf_type_spec__` what TensorFlow means by a composite tensor.

    Args:
        cls: Any class.

    Returns:
        Whether the class follows the protocol.
    """
    # A protocol has no values of its own, and on Python 3.10 and 3.11 it would ask of every class
    # what is added to it.
    if getattr(cls, "_is_protocol", False):
        return False
    if not any(_PROTOCOL in vars(base) for base in cls.__mro__):
        return False
    for name, member in _MEMBERS.items():
        if not any(name in vars(base) for base in cls.__mro__):
            setattr(cls, name, member)
    return True


def _hook(abstract: type) -> None:
    """Lets `isinstance(value, abstract)` admit classes that follow the protocol.

    Python asks a class's `__subclasshook__` once per class met and remembers the answer, so this
    costs nothing afterwards. Subclasses of `abstract` inherit the hook and must not answer to it.
    """
    inherited: Callable[[type], Any] = abstract.__subclasshook__

    def subclasshook(cls: type, subclass: type) -> Any:
        if cls is abstract and admit(subclass):
            return True
        return inherited(subclass) if cls is abstract else NotImplemented

    abstract.__subclasshook__ = classmethod(subclasshook)  # type: ignore[assignment]


_hook(CompositeTensor)
_hook(tf.types.experimental.SupportsTracingProtocol)


autograph_config.CONVERSION_RULES = (
    autograph_config.DoNotConvert("extensor"),
    *autograph_config.CONVERSION_RULES,
)


_registry_lock = threading.RLock()


def registered_name(spec_class: type) -> str | None:
    """Returns the name under which TensorFlow knows a TypeSpec class, or None."""
    return type_spec_registry._TYPE_SPEC_TO_NAME.get(spec_class)


def registered_spec(name: str) -> type | None:
    """Returns the TypeSpec class that TensorFlow knows under a name, or None."""
    return type_spec_registry._NAME_TO_TYPE_SPEC.get(name)


def replace_registration(spec_class: type, name: str) -> None:
    """Binds a name to a class in TensorFlow's registry, in place of an older class if need be.

    The older class keeps its name for saving, because values of it may still be alive.
    """
    with _registry_lock:
        type_spec_registry._TYPE_SPEC_TO_NAME[spec_class] = name
        type_spec_registry._NAME_TO_TYPE_SPEC[name] = spec_class
