"""The laws of values: components, nests, functions and control flow."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._count_text import count_text
from extensor._protocol import nest
from extensor._protocol.lossless import is_tensor_like
from extensor._protocol.spec import TypeSpec
from extensor._testing.law import BreachError, expect, law
from extensor._testing.subject import (
    StrangerSpec,
    Subject,
    common_spec,
    difference,
    has_variable,
    leaves,
    spec_of,
)
from extensor._testing.variation import alike, generalise, twin


def expect_equal(value: object, received: object, what: str) -> None:
    """Raises BreachError if two values have different tensors."""
    found = difference(value, received)
    expect(found is None, what, found)


# Components.


@law(
    "components-match-specs",
    "spec-is-stable",
    fix="Return one spec from component_specs for each component that to_components returns.",
)
def components_match_specs(subject: Subject) -> None:
    """Component specs and components have the same nest structure and are compatible."""
    for value, spec in subject.pairs:
        specs, components = _tf.component_specs(spec), _tf.to_components(spec, value)
        try:
            tf.nest.assert_same_structure(specs, components)
        except (TypeError, ValueError):
            raise BreachError(
                f"components in the structure of {specs}", "another structure"
            ) from None
        for i, (a, b) in enumerate(
            zip(tf.nest.flatten(specs), tf.nest.flatten(components), strict=True)
        ):
            is_value = is_tensor_like(b) or isinstance(b, _tf.BaseResourceVariable)
            received = tf.type_spec_from_value(b) if is_value else f"a {type(b).__qualname__}"
            expect(is_value and a.is_compatible_with(b), f"component {i} to be {a}", received)


@law(
    "from-components-changes-nothing",
    "components-match-specs",
    fix="Read the components, and set attributes of the new value only.",
)
def from_components_changes_nothing(subject: Subject) -> None:
    """from_components changes neither the components that it gets nor the spec."""
    for value, spec in subject.pairs:
        components = _tf.to_components(spec, value)
        before, state = leaves(components), repr(_tf.serialize(spec))
        _tf.from_components(spec, components)
        after = leaves(components)
        same = len(before) == len(after) and all(map(operator.is_, before, after))
        expect(same, "the components as they were", "other components after from_components")
        now = repr(_tf.serialize(spec))
        expect(state == now, f"the serialization {state} as it was", now)


@law(
    "components-rebuild-value",
    "from-components-changes-nothing",
    fix="Use the components in from_components in the order in which to_components returns them.",
)
def components_rebuild_value(subject: Subject) -> None:
    """A value rebuilt from its components has equal tensors and the same spec."""
    for value, spec in subject.pairs:
        again = _tf.from_components(spec, _tf.to_components(spec, value))
        if not isinstance(again, type(value)):
            raise BreachError(f"a {subject.type_name}", f"a {type(again).__name__}")
        expect_equal(value, again, "the original components")
        expect(alike(spec, spec_of(again)), f"a value of {spec}", spec_of(again))


@law(
    "value-type", "components-rebuild-value", fix="Return the class of the values from value_type."
)
def value_type(subject: Subject) -> None:
    """The value type of a spec is the class of its values, original or rebuilt."""
    for value, spec in subject.pairs:
        for instance in (value, _tf.from_components(spec, _tf.to_components(spec, value))):
            # isinstance would accept object, and abstract base classes.
            is_base = spec.value_type in type(instance).__mro__[:-1]
            expect(
                is_base if isinstance(spec, TypeSpec) else isinstance(instance, spec.value_type),
                f"value_type {type(instance).__name__}",
                spec.value_type.__name__,
            )


@law(
    "components-run-no-op",
    "components-rebuild-value",
    fix="Only store and return tensors in to_components and from_components, and in functions "
    "that they call.",
)
def components_run_no_op(subject: Subject) -> None:
    """to_components and from_components call no TensorFlow op."""
    for value, spec in subject.pairs:
        eager = _tf.to_components(spec, value)
        with tf.Graph().as_default() as graph:
            components = tf.nest.map_structure(
                lambda tensor: tf.compat.v1.placeholder(tensor.dtype, tensor.shape),
                eager,
                expand_composites=True,
            )
            before = len(graph.get_operations())
            symbolic = _tf.from_components(spec, components)
            ops = [op.type for op in graph.get_operations()[before:]]
            expect(not ops, "no op from from_components", ", ".join(ops))
            _tf.to_components(spec, symbolic)
            ops = [op.type for op in graph.get_operations()[before:]]
            expect(not ops, "no op from to_components", ", ".join(ops))


# Nests.


@law(
    "flatten-agrees",
    "components-match-specs",
    fix="Check the types of the components: one of them does not match its own spec.",
)
def flatten_agrees(subject: Subject) -> None:
    """A value and its spec flatten to the same number of leaves, and the leaves are compatible."""
    for value, spec in subject.pairs:
        tensors, specs = leaves(value), leaves(spec)
        expect(len(tensors) == len(specs), count_text(len(specs), "tensors"), f"{len(tensors)}")
        for i, (a, b) in enumerate(zip(specs, tensors, strict=True)):
            expect(a.is_compatible_with(b), f"tensor {i} to be {a}", f"{b.dtype.name} {b.shape}")


@law(
    "pack-uses-given-tensors",
    *("flatten-agrees", "components-run-no-op", "serialization-round-trip"),
    fix="Store only static data in the spec, and build the value from the given components.",
)
def pack_uses_given_tensors(subject: Subject) -> None:
    """pack_sequence_as with a value or its spec builds a value from the given tensors."""
    for value, spec in subject.pairs:
        for like in (value, spec, twin(spec)):
            given = [tf.identity(tensor) for tensor in leaves(value)]
            packed = nest.pack_sequence_as(like, given, expand_composites=True)
            expect_equal(value, packed, "a value with the given tensors")
            for i, (a, b) in enumerate(zip(given, leaves(packed), strict=True)):
                expect(a is b, f"the given tensor as component tensor {i}", "another tensor")


@law(
    "map-structure-rebuilds",
    "pack-uses-given-tensors",
    fix="Do not derive the class from a container of tf.nest (tuple, namedtuple, dict or other "
    "Mapping, attrs class), and do not define __tf_flatten__.",
)
def map_structure_rebuilds(subject: Subject) -> None:
    """map_structure with the identity returns an equal value; without expand_composites, a value
    is a single leaf.
    """  # noqa: D205
    for value, _ in subject.pairs:
        seen: list[Any] = []
        nest.map_structure(seen.append, value)
        expect(len(seen) == 1 and seen[0] is value, "the value itself as a leaf", "its parts")
        mapped = nest.map_structure(lambda tensor: tensor, value, expand_composites=True)
        expect_equal(value, mapped, "the same value")


@law(
    "same-structure-follows-merge",
    *("map-structure-rebuilds", "merge-is-idempotent", "merge-keeps-to-type", "merge-holds-both"),
    fix="Override most_specific_compatible_type, not most_specific_common_supertype.",
)
def same_structure_follows_merge(subject: Subject) -> None:
    """Two values or specs have the same structure if and only if they have a compatible type."""
    things = (*subject.pairs, *((spec, spec) for spec in (*subject.pool, StrangerSpec())))
    for (a, spec_a), (b, spec_b) in itertools.product(things, repeat=2):
        if isinstance(spec_a, StrangerSpec):
            continue
        try:
            nest.assert_same_structure(a, b, expand_composites=True)
        except (TypeError, ValueError):
            same = False
        else:
            same = True
        wanted = common_spec(spec_a, spec_b) is not None
        if same != wanted:
            kinds = ("the same", "different") if wanted else ("different", "the same")
            expected = f"{spec_a} and {spec_b} to be {kinds[0]} structures"
            raise BreachError(expected, f"{kinds[1]} structures")


# Functions and control flow.


@law(
    "function-carries-value",
    *("pack-uses-given-tensors", "map-structure-rebuilds", "hash-follows-equality"),
    *("merge-is-idempotent",),
    fix="Do not define __tf_tracing_type__. Store in the spec only data that a trace depends on.",
)
def function_carries_value(subject: Subject) -> None:
    """A tf.function accepts and returns values, and is traced once for equal specs."""
    for value, spec in subject.pairs:
        function: Any = tf.function(lambda v: v, autograph=False)
        for argument in (value, _tf.from_components(spec, _tf.to_components(spec, value))):
            traced = function.get_concrete_function(argument)
            expect_equal(value, traced(argument), "the original value")
        count = function.experimental_get_tracing_count()
        expect(count == 1, "one trace for two values with equal specs", f"{count} traces")


@law(
    "function-takes-generalisation",
    *("function-carries-value", "compatibility-with-generalisation", "merge-holds-both"),
    fix="In the constructor and in __tf_type_spec__, use only static shapes; a size may be None.",
    # TensorFlow does not support variables in a signature.
    applies=lambda subject: not any(map(has_variable, subject.specs)),
)
def function_takes_generalisation(subject: Subject) -> None:
    """A tf.function with a signature without static sizes accepts and returns all sizes."""
    for value, spec in subject.pairs:
        signature = [generalise(spec)]
        function: Any = tf.function(lambda v: v, input_signature=signature, autograph=False)
        traced = function.get_concrete_function()
        expect_equal(value, traced(value), "the original value")


@law(
    "control-flow-carries-value",
    "function-carries-value",
    fix="Define only __tf_type_spec__, and no private names of TensorFlow's protocols.",
)
def control_flow_carries_value(subject: Subject) -> None:
    """Values pass through tf.cond and tf.while_loop."""

    def carry_flag(flag: tf.Tensor, value: object) -> object:
        chosen = tf.cond(flag, lambda: value, lambda: value)
        counted = (tf.constant(0), chosen)
        return tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v), counted)[1]

    for value in subject.values:
        function: Any = tf.function(carry_flag, autograph=False)
        flag = tf.constant(True)
        traced = function.get_concrete_function(flag, value)
        expect_equal(value, traced(flag, value), "the original value")
