"""Which classes TensorFlow treats as composite tensors: `__subclasshook__`s, and containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from extensor._patches.patch import REPLACED, changes, overrides, plain_of
from extensor._protocol.stand_in import StandIn, plain_spec
from extensor._tf._tf_composite import CompositeTensor, Container, refusal
from extensor._tf._tf_protocol import Extension, admitting, forget_answers, own_spec
from extensor._tf._tf_spec import from_components
from extensor._typing import Nest, Value


@changes(
    "tensorflow.python.framework.composite_tensor.CompositeTensor.__subclasshook__",
    reason="TensorFlow checks isinstance(value, CompositeTensor) to decide whether a value "
    "decomposes into tensors; the hook accepts classes without a base class of extensor.",
    probe="CompositeTensor",
)
def composite_tensors() -> None:
    _hook(CompositeTensor, admitting)


@changes(
    "tf.types.experimental.SupportsTracingProtocol.__subclasshook__",
    reason="tf.function checks this protocol before CompositeTensor. The hook equips a class whose "
    "values are first used in a tf.function.",
    probe="supports_tracing_protocol",
)
def traced_values() -> None:
    _hook(tf.types.experimental.SupportsTracingProtocol, admitting)


@changes(
    "tf.types.experimental.TraceType.__subclasshook__",
    reason="TensorFlow keeps a TraceType in a signature unchanged, but reads the tracing type of "
    "other objects. That of a stand-in is the spec that it replaces, so the hook excludes it.",
    probe="stand_in_signature",
)
def trace_types() -> None:
    _hook(tf.types.experimental.TraceType, _without_stand_ins)


def _without_stand_ins(
    abstract: type, inherited: Callable[[type], bool]
) -> classmethod[Any, Any, bool]:
    def subclasshook(cls: type, subclass: type) -> bool:
        if cls is abstract and issubclass(subclass, StandIn):
            return False
        return inherited(subclass) if cls is abstract else NotImplemented

    return classmethod(subclasshook)


def _hook(abstract: Any, make: Callable[[Any, Callable[[type], bool]], Any]) -> None:
    """Replaces the `__subclasshook__` of an abstract class."""
    inherited = plain_of(abstract.__subclasshook__)
    hook = make(abstract, inherited)
    vars(hook.__func__)[REPLACED] = inherited
    abstract.__subclasshook__ = hook
    forget_answers()


@overrides(
    "tensorflow.python.util.nest_util.sequence_like",
    reason="It rebuilds containers, and asserts that one that is also a composite tensor has one "
    "component. A container class with the protocol gets an error here that names the cause.",
    probe="packed_containers",
)
def sequence_like(instance: Nest, args: Iterable[Value], *, plain: Callable[..., Nest]) -> Nest:
    """Calls TensorFlow's function; rebuilds an extension value of its components."""
    kind = type(instance)
    # What TensorFlow returns after a dozen checks, which take half of nest.pack_sequence_as.
    if kind is tuple or kind is list:
        return kind(args)
    if kind is dict:
        return plain(instance, args)
    if isinstance(instance, Container):
        raise refusal(kind)
    if isinstance(instance, Extension):
        (components,) = args
        return from_components(own_spec(instance), components)
    return plain(instance, args)


@overrides(
    "tf.TypeSpec.is_compatible_with",
    reason="Datasets call it on the spec of a value with the declared spec, which may be a "
    "stand-in; it compares the classes.",
    probe="stand_in_compatibility",
)
def is_compatible_with(
    self: tf.TypeSpec, spec_or_value: object, *, plain: Callable[..., bool]
) -> bool:
    """Calls TensorFlow's method with the spec that a stand-in replaces."""
    return plain(self, plain_spec(spec_or_value))


@overrides(
    "tf.TypeSpec.most_specific_common_supertype",
    reason="tf.nest calls it to compare the spec of a value with another spec, which may be a "
    "stand-in; it compares the classes.",
    probe="stand_in_supertype",
)
def most_specific_common_supertype(
    self: tf.TypeSpec, others: Sequence[tf.TypeSpec], *, plain: Callable[..., tf.TypeSpec | None]
) -> tf.TypeSpec | None:
    """Calls TensorFlow's method with the specs that stand-ins replace."""
    return plain(self, list(map(plain_spec, others)))
