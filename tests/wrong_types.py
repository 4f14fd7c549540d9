"""For each law one type that breaks it and no other, the way an author might by accident."""

import collections
import itertools

import tensorflow as tf

import extensor as xt
from tests.sample_types import Parcel, ParcelSpec


class Measure:
    """Amounts and whether each is exact, in a unit: right, whatever spec it is given."""

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
"""Makes a value of a wrong type, by the law that the type breaks."""


def two_by_three(value_type):
    amounts = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return value_type(amounts, amounts > 2.0)


def breaks(law, value_base=Measure):
    """Enters a subclass of MeasureSpec as the one that breaks a law, with a value class."""

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


# Serialization and equality.


class Numbered(Measure):
    numbers = itertools.count()

    def __tf_type_spec__(self):
        return self.spec_class(self.amounts.shape, f"gram {next(self.numbers)}")


@breaks("spec-is-stable", Numbered)
class NumberedSpec(MeasureSpec):
    """Its values number their specs."""


@breaks("serialization-types")
class ComplexSpec(MeasureSpec):
    """Writes a part that no file takes."""

    def serialize(self):
        return self.shape, self.unit, 1j

    @classmethod
    def deserialize(cls, serialization):
        return cls(*serialization[:2])


@breaks("serialization-round-trip")
class ReversedSpec(MeasureSpec):
    """Reads what it wrote the other way round."""

    @classmethod
    def deserialize(cls, serialization):
        shape, unit = serialization
        return cls(shape[::-1], unit)


@breaks("pickle-round-trip")
class ForgetfulSpec(MeasureSpec):
    """Pickles without its unit."""

    def __reduce__(self):
        return type(self), (self.shape, "gram?")


@breaks("repr-shows-all")
class TerseSpec(MeasureSpec):
    """Shows half of what it holds."""

    def __repr__(self):
        return f"TerseSpec({self.shape})"


@breaks("equality-is-equivalence")
class LonelySpec(MeasureSpec):
    """Equals itself alone."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@breaks("hash-follows-equality")
class ScatteredSpec(MeasureSpec):
    """Has a hash for every instance."""

    __eq__ = MeasureSpec.__eq__
    __hash__ = object.__hash__


@breaks("inequality-negates-equality")
class ContrarySpec(MeasureSpec):
    """Differs from what it equals."""

    def __ne__(self, other):
        return self is not other


@breaks("proto-round-trip")
class OrderedSpec(MeasureSpec):
    """Insists on the class of a mapping, which a SavedModel does not keep."""

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
    """Is compatible with all but itself."""

    def is_compatible_with(self, spec_or_value):
        return super().is_compatible_with(spec_or_value) and spec_of(spec_or_value) != self


@breaks("compatibility-takes-values")
class SpecsOnlySpec(MeasureSpec):
    """Knows no value."""

    def is_compatible_with(self, spec_or_value):
        return isinstance(spec_or_value, tf.TypeSpec) and super().is_compatible_with(spec_or_value)


@breaks("compatibility-is-symmetric")
class SuperiorSpec(MeasureSpec):
    """Takes compatibility for being more general."""

    def is_compatible_with(self, spec_or_value):
        if not super().is_compatible_with(spec_or_value):
            return False
        return self.most_specific_compatible_type(spec_of(spec_or_value)) == self


@breaks("compatibility-keeps-to-type")
class OpenSpec(MeasureSpec):
    """Is compatible with everything that has a spec."""

    def is_compatible_with(self, spec_or_value):
        return type(spec_of(spec_or_value)) is not OpenSpec or super().is_compatible_with(
            spec_or_value
        )


@breaks("compatibility-with-generalisation")
class ExactSpec(MeasureSpec):
    """Takes compatibility for equality."""

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
    """Merges to itself, whatever the other one is."""

    def most_specific_compatible_type(self, other):
        return None if super().most_specific_compatible_type(other) is None else self


@breaks("merge-holds-both")
class MixedSpec(MeasureSpec):
    """Merges to a type of another unit."""

    def most_specific_compatible_type(self, other):
        result = super().most_specific_compatible_type(other)
        return result if result is None or self == other else MixedSpec(result.shape, "spoon")


@breaks("merge-keeps-to-type")
class StrictSpec(MeasureSpec):
    """Raises where it should say None."""

    def most_specific_compatible_type(self, other):
        result = super().most_specific_compatible_type(other)
        if result is None:
            raise ValueError("no TypeSpec is compatible with both")
        return result


# Components and nests.


@breaks("components-match-specs")
class MisdescribedSpec(MeasureSpec):
    """Says int32 where its values hold bool."""

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
    """Names another class than the one it makes."""

    value_type = tuple

    def from_components(self, components):
        return self.made(*components, unit=self.unit)


MistypedSpec.made = type("Mistyped", (Measure,), {"spec_class": MistypedSpec})
WRONG["value-type"] = lambda: two_by_three(MistypedSpec.made)


@breaks("components-run-no-op")
class BusySpec(MeasureSpec):
    """Calls an op where none may be."""

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
    """Keeps the value that it came from, and gives it back whatever the components are."""

    memory = None

    def from_components(self, components):
        return self.memory or super().from_components(components)


class Pair(collections.namedtuple("Pair", ["amounts", "exact"])):
    unit = "gram"

    def __new__(cls, amounts, exact, unit="gram"):
        return super().__new__(cls, amounts, exact)

    __tf_type_spec__ = Measure.__tf_type_spec__


@breaks("map-structure-rebuilds", Pair)
class PairSpec(MeasureSpec):
    """Its values are namedtuples, which tf.nest takes apart by itself."""


@breaks("same-structure-follows-merge")
class AgreeableSpec(MeasureSpec):
    """Overrides what TensorFlow calls in place of the public name."""

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
    """Its values are new to tf.function each time."""


class Sized(Measure):
    def __tf_type_spec__(self):
        return self.spec_class([int(size) for size in self.amounts.shape], self.unit)


@breaks("function-takes-generalisation", Sized)
class SizedSpec(MeasureSpec):
    """Its values must know their sizes, in a graph too."""


@breaks("control-flow-carries-value")
class GraphBoundSpec(MeasureSpec):
    """Refuses tensors of an outer graph, which a branch of tf.cond captures."""

    def to_components(self, value):
        graph = getattr(value.amounts, "graph", None)
        if graph not in (None, tf.compat.v1.get_default_graph()):
            raise ValueError("the amounts are of another graph")
        return super().to_components(value)


# Boxes.


@breaks("boxes-rebuild-value")
class ContradictingSpec(MeasureSpec):
    """Unboxes the contrary of what it boxed."""

    def from_boxed_tensor(self, boxed_tensor):
        amounts, exact = boxed_tensor
        return super().from_boxed_tensor([amounts, ~exact])


@breaks("boxed-spec-describes-boxes")
class MislabelledSpec(MeasureSpec):
    """Describes its boxes in another order."""

    def boxed_tensor_spec(self, minimum_rank=0):
        return super().boxed_tensor_spec(minimum_rank)[::-1]


@breaks("unstacked-undoes-stacked")
class StuckSpec(MeasureSpec):
    """Unstacks to itself."""

    def unstacked(self):
        return self


@breaks("stacked-boxes-stack-values")
class TransposedSpec(MeasureSpec):
    """Boxes the columns in place of the rows, so that stacking comes last in a value."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        return list(map(tf.transpose, super().to_boxed_tensor(value, minimum_rank)))

    def from_boxed_tensor(self, boxed_tensor):
        return super().from_boxed_tensor(list(map(tf.transpose, boxed_tensor)))

    def boxed_tensor_spec(self, minimum_rank=0):
        specs = super().boxed_tensor_spec(minimum_rank)
        return [tf.TensorSpec(spec.shape[::-1], spec.dtype) for spec in specs]


@breaks("dataset-batches-and-unbatches")
class EagerSpec(MeasureSpec):
    """Boxes through NumPy, which no graph can."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        return [tf.constant(tensor.numpy()) for tensor in (value.amounts, value.exact)]
