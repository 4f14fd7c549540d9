"""Which classes TensorFlow takes for what: the hooks that `isinstance` asks, and containers."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.patch import REPLACED, changes, plain_of, replaces
from extensor._protocol.stand_in import StandIn
from extensor._tf._tf_composite import CompositeTensor, Container, refused
from extensor._tf._tf_protocol import admitting, forget_answers


@changes(
    "tensorflow.python.framework.composite_tensor.CompositeTensor.__subclasshook__",
    reason="TensorFlow asks isinstance(value, CompositeTensor) wherever it decides whether a value "
    "decomposes into tensors; the hook lets classes in that have no base of ours.",
    probe="CompositeTensor",
)
def composite_tensors() -> None:
    _hook(CompositeTensor, admitting)


@changes(
    "tf.types.experimental.SupportsTracingProtocol.__subclasshook__",
    reason="tf.function asks a value's class for this protocol before anything else asks for "
    "CompositeTensor, so that tf.function may be the first API that a class meets.",
    probe="supports_tracing_protocol",
)
def traced_values() -> None:
    _hook(tf.types.experimental.SupportsTracingProtocol, admitting)


@changes(
    "tf.types.experimental.TraceType.__subclasshook__",
    reason="A spec in a signature is taken as it is if it is a TraceType; else its tracing type is "
    "asked for, which of a stand-in is the spec that it stands for. So a stand-in is none.",
    probe="stand_in_signature",
)
def trace_types() -> None:
    _hook(tf.types.experimental.TraceType, _without_stand_ins)


def _without_stand_ins(abstract: Any, inherited: Callable[[type], Any]) -> Any:
    def subclasshook(cls: type, subclass: type) -> Any:
        if cls is abstract and issubclass(subclass, StandIn):
            return False
        return inherited(subclass) if cls is abstract else NotImplemented

    return classmethod(subclasshook)


def _hook(abstract: Any, make: Callable[[Any, Callable[[type], Any]], Any]) -> None:
    """Gives an abstract class another `__subclasshook__`."""
    inherited = plain_of(abstract.__subclasshook__)
    hook = make(abstract, inherited)
    vars(hook.__func__)[REPLACED] = inherited
    abstract.__subclasshook__ = hook
    forget_answers()


_PLAIN_KINDS = (tuple, dict, list)  # most of what comes


@replaces(
    "tensorflow.python.util.nest_util.sequence_like",
    reason="It packs a container anew, and asserts that one which is a composite tensor too has "
    "one component; a container with the protocol is met here if nothing asked for its spec "
    "before.",
    probe="packed_containers",
)
def sequence_like(plain: Any) -> Any:
    def sequence_like(instance: Any, args: Any) -> Any:
        if type(instance) not in _PLAIN_KINDS and isinstance(instance, Container):
            raise refused(type(instance))
        return plain(instance, args)

    return sequence_like
