"""For each law, a type that breaks only this law, by a mistake that authors make."""

import collections
import itertools

import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor

import extensor as xt
from tests.samples.types import Parcel, ParcelSpec


class Measure:
    """Amounts, whether each is exact, and a unit. The class is correct; its specs may be wrong."""

    spec_class: type

    def __init__(self, amounts, exact, unit="gram"):
        self.amounts, self.exact, self.unit = amounts, exact, unit

    def __tf_type_spec__(self):
        return self.spec_class(self.amounts.shape, self.unit)


class MeasureSpec(xt.StackableTypeSpec):
    def __init__(self, shape, unit):
        self.shape, self.unit = tf.TensorShape(shape), unit

    value_type = Measure

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape, tf.float32), tf.TensorSpec(self.shape, tf.bool)

    def to_components(self, value):
        return value.amounts, value.exact

    def from_components(self, components):
        return self.value_type(*components, unit=self.unit)

    def serialize(self):
        return self.shape, self.unit


Measure.spec_class = MeasureSpec

WRONG = {}
"""Functions that make a value of a wrong type, by the broken law."""


def two_by_three(value_type):
    amounts = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return value_type(amounts, amounts > 2.0)


def breaks(law, value_base=Measure):
    """Registers a subclass of MeasureSpec, which breaks a law, with a value class."""

    def enter(spec_class):
        value_type = type(f"{spec_class.__name__}Value", (value_base,), {"spec_class": spec_class})
        if "value_type" not in vars(spec_class):
            spec_class.value_type = value_type
        WRONG[law] = lambda: two_by_three(value_type)
        return spec_class

    return enter


def spec_of(spec_or_value):
    if isinstance(spec_or_value, tf.TypeSpec):
        return spec_or_value
    return tf.type_spec_from_value(spec_or_value)


# Before all else.


@breaks("spec-has-repr")
class SpeechlessSpec(MeasureSpec):
    """Raises an error in its repr: the attribute does not exist."""

    def __repr__(self):
        return f"SpeechlessSpec({self.shape}, {self.units!r})"


# Serialization and equality.


class Numbered(Measure):
    numbers = itertools.count()

    def __tf_type_spec__(self):
        return self.spec_class(self.amounts.shape, f"gram {next(self.numbers)}")


@breaks("spec-is-stable", Numbered)
class NumberedSpec(MeasureSpec):
    """Each spec of a value has another number."""


@breaks("serialization-types")
class ComplexSpec(MeasureSpec):
    """Serializes a part that a file cannot have."""

    def serialize(self):
        return self.shape, self.unit, 1j

    @classmethod
    def deserialize(cls, serialization):
        return cls(*serialization[:2])


@breaks("serialization-round-trip")
class ReversedSpec(MeasureSpec):
    """Deserializes the parts in the wrong order."""

    @classmethod
    def deserialize(cls, serialization):
        shape, unit = serialization
        return cls(shape[::-1], unit)


class OunceSpec(MeasureSpec):
    """Serializes only its shape, and is deserialized with the default unit."""

    def __init__(self, shape, unit="ounce"):
        super().__init__(shape, unit)

    def serialize(self):
        return (self.shape,)


OunceSpec.value_type = type("Ounce", (Measure,), {"spec_class": OunceSpec})


@breaks("pickle-round-trip")
class ForgetfulSpec(MeasureSpec):
    """Pickles without its unit."""

    def __reduce__(self):
        return type(self), (self.shape, "gram?")


@breaks("repr-shows-all")
class TerseSpec(MeasureSpec):
    """Has half of its parts in its repr."""

    def __repr__(self):
        return f"TerseSpec({self.shape})"


@breaks("equality-is-equivalence")
class LonelySpec(MeasureSpec):
    """Is equal only to itself."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@breaks("hash-follows-equality")
class ScatteredSpec(MeasureSpec):
    """Has another hash for each instance."""

    __eq__ = MeasureSpec.__eq__
    __hash__ = object.__hash__


@breaks("equality-tells-components-apart")
class BlurredSpec(MeasureSpec):
    """Is equal to specs with another number of rows."""

    def __eq__(self, other):
        return type(other) is type(self) and (self.shape[1:], self.unit) == (
            other.shape[1:],
            other.unit,
        )

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.unit)


@breaks("inequality-negates-equality")
class ContrarySpec(MeasureSpec):
    """Has a `!=` that does not negate `==`."""

    def __ne__(self, other):
        return self is not other


@breaks("proto-round-trip")
class OrderedSpec(MeasureSpec):
    """Requires the class of a mapping, which a SavedModel does not keep."""

    def serialize(self):
        return self.shape, collections.OrderedDict(unit=self.unit)

    @classmethod
    def deserialize(cls, serialization):
        shape, parts = serialization
        return cls(shape, parts["unit"] if isinstance(parts, collections.OrderedDict) else "gram?")


xt.register_type_spec(OrderedSpec, "wrong.OrderedSpec")


# Compatibility.


@breaks("compatibility-is-reflexive")
class ShySpec(MeasureSpec):
    """Is compatible with all specs except itself."""

    def is_compatible_with(self, spec_or_value):
        return super().is_compatible_with(spec_or_value) and spec_of(spec_or_value) != self


@breaks("compatibility-takes-values")
class SpecsOnlySpec(MeasureSpec):
    """Is compatible with no value."""

    def is_compatible_with(self, spec_or_value):
        return isinstance(spec_or_value, tf.TypeSpec) and super().is_compatible_with(spec_or_value)


@breaks("compatibility-is-symmetric")
class SuperiorSpec(MeasureSpec):
    """Is compatible only with more specific specs."""

    def is_compatible_with(self, spec_or_value):
        if not super().is_compatible_with(spec_or_value):
            return False
        return self.most_specific_compatible_type(spec_of(spec_or_value)) == self


@breaks("compatibility-keeps-to-type")
class OpenSpec(MeasureSpec):
    """Is compatible with every value that has a spec."""

    def is_compatible_with(self, spec_or_value):
        return type(spec_of(spec_or_value)) is not OpenSpec or super().is_compatible_with(
            spec_or_value
        )


@breaks("compatibility-follows-components")
class LaxSpec(MeasureSpec):
    """Compares only the unit."""

    def is_compatible_with(self, spec_or_value):
        other = spec_of(spec_or_value)
        return type(other) is LaxSpec and other.unit == self.unit


@breaks("compatibility-with-generalisation")
class ExactSpec(MeasureSpec):
    """Is compatible only with equal specs."""

    def is_compatible_with(self, spec_or_value):
        return spec_of(spec_or_value) == self


@breaks("merge-is-idempotent")
class VagueSpec(MeasureSpec):
    """Merges to the least specific type."""

    def most_specific_compatible_type(self, other):
        if super().most_specific_compatible_type(other) is None:
            return None
        return VagueSpec([None, None], self.unit)


@breaks("merge-is-commutative")
class MineSpec(MeasureSpec):
    """Merges to itself with every spec."""

    def most_specific_compatible_type(self, other):
        return None if super().most_specific_compatible_type(other) is None else self


@breaks("merge-holds-both")
class MixedSpec(MeasureSpec):
    """Merges to a type of another unit."""

    def most_specific_compatible_type(self, other):
        result = super().most_specific_compatible_type(other)
        return result if result is None or self == other else MixedSpec(result.shape, "spoon")


@breaks("merge-is-most-specific")
class HastySpec(MeasureSpec):
    """Merges to a type without static sizes if one size differs."""

    def most_specific_compatible_type(self, other):
        result = super().most_specific_compatible_type(other)
        return result if result is None or self == other else HastySpec([None, None], self.unit)


@breaks("merge-keeps-to-type")
class StrictSpec(MeasureSpec):
    """Raises an error instead of returning None."""

    def most_specific_compatible_type(self, other):
        result = super().most_specific_compatible_type(other)
        if result is None:
            raise ValueError("no TypeSpec is compatible with both")
        return result


# Components and nests.


@breaks("components-match-specs")
class MisdescribedSpec(MeasureSpec):
    """Has the dtype int32 for a component of dtype bool."""

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape, tf.float32), tf.TensorSpec(self.shape, tf.int32)


@breaks("components-rebuild-value")
class UnitlessSpec(MeasureSpec):
    """Rebuilds values without their unit."""

    def from_components(self, components):
        return self.value_type(*components, unit="gram?")


@breaks("value-type")
class MistypedSpec(MeasureSpec):
    """Has another value type than the class of its values."""

    value_type = tuple

    def from_components(self, components):
        return self.made(*components, unit=self.unit)


MistypedSpec.made = type("Mistyped", (Measure,), {"spec_class": MistypedSpec})
WRONG["value-type"] = lambda: two_by_three(MistypedSpec.made)


class AnythingSpec(MeasureSpec):
    """Has `object` as its value type."""

    value_type = object

    def from_components(self, components):
        return self.made(*components, unit=self.unit)


AnythingSpec.made = type("Anything", (Measure,), {"spec_class": AnythingSpec})


@breaks("from-components-changes-nothing")
class PoppingSpec(MeasureSpec):
    """Empties the list of components that it gets."""

    @property
    def component_specs(self):
        return list(super().component_specs)

    def to_components(self, value):
        return list(super().to_components(value))

    def from_components(self, components):
        return super().from_components([components.pop(0) for _ in range(len(components))])


class LabellingSpec(MeasureSpec):
    """Changes itself when it makes a value."""

    def from_components(self, components):
        self.unit += "s"
        return super().from_components(components)


LabellingSpec.value_type = type("Labelling", (Measure,), {"spec_class": LabellingSpec})


@breaks("components-run-no-op")
class BusySpec(MeasureSpec):
    """Calls an op in from_components."""

    def from_components(self, components):
        return super().from_components(tuple(map(tf.identity, components)))


def wrong_inside():
    inner = WRONG["components-match-specs"]()
    return Parcel((inner,), ParcelSpec((tf.type_spec_from_value(inner),)))


WRONG["flatten-agrees"] = wrong_inside


class Remembered(Measure):
    def __tf_type_spec__(self):
        spec = super().__tf_type_spec__()
        spec.memory = self
        return spec


@breaks("pack-uses-given-tensors", Remembered)
class RememberingSpec(MeasureSpec):
    """Keeps its first value, and returns it for all components."""

    memory = None

    def from_components(self, components):
        return self.memory or super().from_components(components)


class Pair(CompositeTensor, collections.namedtuple("Pair", ["amounts", "exact"])):
    unit = "gram"

    def __new__(cls, amounts, exact, unit="gram"):
        return super().__new__(cls, amounts, exact)

    # With the protocol it would be refused.
    _type_spec = property(Measure.__tf_type_spec__)


@breaks("map-structure-rebuilds", Pair)
class PairSpec(MeasureSpec):
    """Its values are namedtuples, which tf.nest takes apart without a spec."""

    def cast(self, value):
        own = isinstance(value, Pair) and value._type_spec == self
        return value if own else super().cast(value)


@breaks("same-structure-follows-merge")
class AgreeableSpec(MeasureSpec):
    """Overrides a private method of TensorFlow instead of the public one."""

    def most_specific_common_supertype(self, others):
        return self


def in_two_units(gram):
    return [gram, type(gram)(gram.amounts, gram.exact, unit="spoon")]


# Two values that no type holds show it.
agreeable = WRONG["same-structure-follows-merge"]
WRONG["same-structure-follows-merge"] = lambda: in_two_units(agreeable())


# Functions and control flow.


class Retraced(Measure):
    traces = itertools.count()

    def __tf_tracing_type__(self, context):
        return self.spec_class(self.amounts.shape, f"gram {next(self.traces)}")


@breaks("function-carries-value", Retraced)
class RetracedSpec(MeasureSpec):
    """Each value has a new trace of a tf.function."""


class Sized(Measure):
    def __tf_type_spec__(self):
        return self.spec_class([int(size) for size in self.amounts.shape], self.unit)


@breaks("function-takes-generalisation", Sized)
class SizedSpec(MeasureSpec):
    """Its values need static sizes, in a graph too."""


@breaks("control-flow-carries-value")
class GraphBoundSpec(MeasureSpec):
    """Raises an error for tensors of an outer graph, which a branch of tf.cond captures."""

    def to_components(self, value):
        graph = getattr(value.amounts, "graph", None)
        if tf.inside_function() and graph not in (None, tf.compat.v1.get_default_graph()):
            raise ValueError("the amounts are of another graph")
        return super().to_components(value)


# Boxes.


@breaks("boxed-spec-describes-boxes")
class MislabelledSpec(MeasureSpec):
    """Has its boxed specs in another order than the boxes."""

    def boxed_tensor_spec(self, minimum_rank=0):
        return super().boxed_tensor_spec(minimum_rank)[::-1]


@breaks("boxes-rebuild-value")
class ContradictingSpec(MeasureSpec):
    """Negates the component `exact` when it unboxes values."""

    def from_boxed_tensor(self, boxed_tensor):
        amounts, exact = boxed_tensor
        return super().from_boxed_tensor([amounts, ~exact])


@breaks("unstacked-undoes-stacked")
class StuckSpec(MeasureSpec):
    """Unstacks to itself."""

    def unstacked(self):
        return self


@breaks("stacked-boxes-stack-values")
class TransposedSpec(MeasureSpec):
    """Boxes columns instead of rows, so that values are stacked along the last dimension."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        return list(map(tf.transpose, super().to_boxed_tensor(value, minimum_rank)))

    def from_boxed_tensor(self, boxed_tensor):
        return self.from_components(tuple(map(tf.transpose, boxed_tensor)))

    def boxed_tensor_spec(self, minimum_rank=0):
        specs = super().boxed_tensor_spec(minimum_rank)
        return [tf.TensorSpec(spec.shape[::-1], spec.dtype) for spec in specs]


class PackedSpec(MeasureSpec):
    """Boxes both components into one tensor, along a new last dimension. This is correct."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        return tf.stack([value.amounts, tf.cast(value.exact, tf.float32)], -1)

    def from_boxed_tensor(self, boxed_tensor):
        return self.value_type(boxed_tensor[..., 0], boxed_tensor[..., 1] > 0, self.unit)

    def boxed_tensor_spec(self, minimum_rank=0):
        return tf.TensorSpec(self.shape.concatenate([2]), tf.float32)


@breaks("boxes-have-minimum-rank")
class WholeSpec(PackedSpec):
    """Boxes a value into one string, with every minimum_rank."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        return tf.io.serialize_tensor(super().to_boxed_tensor(value))

    def from_boxed_tensor(self, boxed_tensor):
        texts = tf.reshape(boxed_tensor, [-1])
        parts = tf.stack([tf.io.parse_tensor(text, tf.float32) for text in tf.unstack(texts)])
        return super().from_boxed_tensor(
            tf.reshape(parts, tf.concat([tf.shape(boxed_tensor), tf.shape(parts)[1:]], 0))
        )

    def boxed_tensor_spec(self, minimum_rank=0):
        return tf.TensorSpec(None, tf.string)


@breaks("unstacked-boxes-unstack-values")
class BackwardSpec(PackedSpec):
    """Boxes the rows in reverse order for unstacking."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        boxed = super().to_boxed_tensor(value)
        return boxed[:, ::-1] if minimum_rank else boxed


@breaks("concatenated-boxes-concatenate-values")
class NumberedRowsSpec(PackedSpec):
    """Boxes rows with their numbers for unstacking, and unboxes them in that order."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        boxed = super().to_boxed_tensor(value)
        number = tf.cast(tf.range(tf.shape(boxed)[0]), tf.float32) if minimum_rank else 0.0
        number = tf.reshape(number, [-1] + [1] * (boxed.shape.rank - 1))
        return tf.concat([boxed, tf.ones_like(boxed[..., :1]) * number], -1)

    def from_boxed_tensor(self, boxed_tensor):
        if boxed_tensor.shape.rank == 4:
            numbers = boxed_tensor[:, 0, 0, 2]
            boxed_tensor = tf.gather(boxed_tensor, tf.argsort(numbers, stable=True))
        return super().from_boxed_tensor(boxed_tensor)

    def boxed_tensor_spec(self, minimum_rank=0):
        return tf.TensorSpec(self.shape.concatenate([3]), tf.float32)


def and_another(value):
    return [value, type(value)(value.amounts * 10, value.exact)]


# Two values that differ show it.
numbered = WRONG["concatenated-boxes-concatenate-values"]
WRONG["concatenated-boxes-concatenate-values"] = lambda: and_another(numbered())


@breaks("reshaped-boxes-batch-values")
class OnceSpec(PackedSpec):
    """Stacks and unstacks once."""

    def from_boxed_tensor(self, boxed_tensor):
        if boxed_tensor.shape.rank > 4:
            raise ValueError("a stack of stacks")
        return super().from_boxed_tensor(boxed_tensor)


@breaks("no-boxes-are-a-batch")
class NeverEmptySpec(PackedSpec):
    """Reads its first row, which may not exist."""

    def from_boxed_tensor(self, boxed_tensor):
        _ = boxed_tensor[0]
        return super().from_boxed_tensor(boxed_tensor)


@breaks("dataset-batches-and-unbatches")
class EagerSpec(MeasureSpec):
    """Boxes through NumPy, which fails in a graph."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        return [tf.constant(tensor.numpy()) for tensor in (value.amounts, value.exact)]


# Casting.


@breaks("cast-keeps-own-values")
class RemakingSpec(MeasureSpec):
    """Makes a new value in each cast."""

    def cast(self, value):
        return self.from_components(self.to_components(value))


@breaks("castable-type-is-symmetric")
class SelfishSpec(MeasureSpec):
    """Has itself as the castable type with every spec."""

    def castable_type(self, spec):
        return self if type(self) is type(spec) else None


@breaks("cast-reaches-castable-type")
class BoastfulSpec(MeasureSpec):
    """Has a castable type to which no value can be cast."""

    def castable_type(self, spec):
        met = super().castable_type(spec)
        return None if met is None else type(self)(met.shape, "any")


ALSO = [
    ("serialization-round-trip", lambda: two_by_three(OunceSpec.value_type)),
    ("value-type", lambda: two_by_three(AnythingSpec.made)),
    ("from-components-changes-nothing", lambda: two_by_three(LabellingSpec.value_type)),
]
"""More broken laws, each with the function that makes a value of such a type."""
