"""`xt.TypeSpec`: serialization, components, compatibility, and the methods derived from them."""

import collections
import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from tests.samples.types import (
    MaskedTensor,
    MaskedTensorSpec,
    Parcel,
    ParcelSpec,
    StaticSpec,
    fresh_masked_type,
)

xt.register_type_spec(StaticSpec, "sample.StaticSpec")
xt.register_type_spec(MaskedTensorSpec, "sample.MaskedTensorSpec")

# TensorFlow says so of every registered spec that it writes.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type sample:UserWarning:tensorflow"
)

Unit = collections.namedtuple("Unit", ["name", "scale"])

EVERY_KIND = (
    True,
    7,
    "cup",
    0.25,
    None,
    tf.TensorSpec([None, 3], tf.int32),
    tf.TensorShape([2, None]),
    tf.TensorShape(None),
    tf.float16,
    np.array([[1.5, 2.5]], np.float32),
    tf.RaggedTensorSpec([None, None], tf.string),
    MaskedTensorSpec([3], tf.int64),
    ("a", (1, ())),
    Unit("gram", 0.001),
    {"b": 1, "a": tf.TensorShape([4])},
    collections.OrderedDict([("y", 1), ("x", {"deep": None})]),
)


# Strategies.

dtypes = st.sampled_from([tf.float32, tf.int64, tf.string, tf.bool])
known_shapes = st.lists(st.none() | st.integers(0, 3), max_size=3).map(tf.TensorShape)
shapes = known_shapes | st.just(tf.TensorShape(None))
arrays = st.lists(st.integers(-9, 9), max_size=3).map(np.array)
scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=4)
    | st.floats(allow_nan=False)
    | st.none()
)
specs_of_others = (
    st.builds(tf.TensorSpec, shapes, dtypes)
    | st.builds(lambda shape: tf.RaggedTensorSpec([*shape, None]), known_shapes)
    | st.builds(tf.SparseTensorSpec, shapes, dtypes)
)


def nests(leaves):
    keys = st.text(max_size=2)
    return st.recursive(
        leaves,
        lambda parts: (
            st.lists(parts, max_size=3).map(tuple)
            | st.builds(Unit, parts, parts)
            | st.dictionaries(keys, parts, max_size=3)
            | st.dictionaries(keys, parts, max_size=3).map(collections.OrderedDict)
            | st.lists(parts, max_size=2).map(lambda data: StaticSpec(*data))
        ),
        max_leaves=6,
    )


serializations = nests(scalars | dtypes | shapes | arrays | specs_of_others)
specs = st.lists(serializations, max_size=3).map(lambda data: StaticSpec(*data))


def with_shapes(part, change):
    """Returns a serialization with each of its shapes changed."""
    if isinstance(part, tf.TensorShape):
        return change(part)
    if isinstance(part, tf.TensorSpec):
        return tf.TensorSpec(change(part.shape), part.dtype)
    if isinstance(part, StaticSpec):
        return StaticSpec(*(with_shapes(p, change) for p in part.data))
    if isinstance(part, Unit):
        return Unit(*(with_shapes(p, change) for p in part))
    if isinstance(part, tuple):
        return tuple(with_shapes(p, change) for p in part)
    if isinstance(part, dict):
        return type(part)((k, with_shapes(p, change)) for k, p in part.items())
    return part


@st.composite
def related_specs(draw):
    """Draws two specs that differ at most in dimensions."""
    spec = draw(specs)

    def change(shape):
        if shape.rank is None or draw(st.booleans()):
            return shape
        return tf.TensorShape([draw(st.sampled_from([n, None, 5])) for n in shape])

    return with_shapes(spec, change), with_shapes(spec, change)


# Methods derived from the serialization.


@given(specs)
def test_specs_with_equal_serializations_are_equal(spec):
    same = StaticSpec.deserialize(spec.serialize())
    assert same == spec
    assert (same != spec) is False
    assert hash(same) == hash(spec)
    assert repr(same) == repr(spec) == f"StaticSpec{spec.data!r}"


@given(specs)
def test_a_spec_differs_from_one_with_more_parts(spec):
    more = StaticSpec(*spec.data, "more")
    assert spec != more
    assert (spec == more) is False
    assert not spec.is_compatible_with(more)
    assert spec.most_specific_compatible_type(more) is None


@given(specs)
def test_specs_are_pickled_and_copied(spec):
    for again in (pickle.loads(pickle.dumps(spec)), copy.copy(spec), copy.deepcopy(spec)):
        assert type(again) is StaticSpec
        assert again == spec
        assert hash(again) == hash(spec)


@given(related_specs())
def test_specs_come_back_from_the_structure_of_a_saved_model(pair):
    # The public way to the StructuredValue that a SavedModel holds.
    spec, other = pair
    loaded = tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto())
    assert loaded == spec
    assert loaded.is_compatible_with(other) == spec.is_compatible_with(other)
    assert loaded.is_subtype_of(other) == spec.is_subtype_of(other)
    assert other.is_subtype_of(loaded) == other.is_subtype_of(spec)


@pytest.mark.parametrize("part", EVERY_KIND, ids=lambda part: type(part).__name__)
def test_a_serialization_may_hold_every_type_of_the_text(part):
    spec = StaticSpec(part)
    assert spec == StaticSpec(copy.deepcopy(part))
    assert hash(spec) == hash(StaticSpec(copy.deepcopy(part)))
    assert spec.is_compatible_with(StaticSpec(copy.deepcopy(part)))
    assert spec.most_specific_compatible_type(StaticSpec(copy.deepcopy(part))) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto()) == spec
    assert spec != StaticSpec("something else")


def test_specs_with_keys_in_another_order_are_equal():
    assert StaticSpec({"a": 1, "b": 2}) == StaticSpec({"b": 2, "a": 1})
    assert hash(StaticSpec({"a": 1, "b": 2})) == hash(StaticSpec({"b": 2, "a": 1}))


def test_specs_with_arrays_of_other_values_or_shapes_differ():
    spec = StaticSpec(np.array([[1, 2]]))
    assert spec != StaticSpec(np.array([[1, 3]]))
    assert spec != StaticSpec(np.array([1, 2]))
    assert not spec.is_compatible_with(StaticSpec(np.array([[1, 3]])))
    assert spec.most_specific_compatible_type(StaticSpec(np.array([[1, 3]]))) is None


def test_a_pickled_spec_is_the_same_in_another_process(run_python, tmp_path):
    path = tmp_path / "spec.pickle"
    path.write_bytes(pickle.dumps(StaticSpec(*(p for p in EVERY_KIND if type(p) is not Unit))))
    run_python(f"""
        import pickle
        from tests.samples.types import StaticSpec
        with open({str(path)!r}, "rb") as file:
            spec = pickle.load(file)
        assert type(spec) is StaticSpec
        print(hash(spec) == hash(StaticSpec(*spec.data)), spec == StaticSpec(*spec.data))
        with open({str(path)!r}, "wb") as file:
            pickle.dump(spec, file)
    """)
    assert pickle.loads(path.read_bytes()) == StaticSpec(
        *(p for p in EVERY_KIND if type(p) is not Unit)
    )


@pytest.mark.parametrize("part", EVERY_KIND, ids=lambda part: type(part).__name__)
def test_a_tensor_info_describes_a_value(part):
    # The public way to the TensorInfo that a signature of TensorFlow 1 holds.
    with tf.Graph().as_default() as graph:
        placeholder = tf.compat.v1.placeholder
        masked = MaskedTensor(placeholder(tf.float32, [None, 2]), placeholder(tf.bool, [None, 2]))
        parts = {"m": masked, "r": tf.compat.v1.ragged.placeholder(tf.int32, 1)}
        spec = NotedSpec(part, tf.nest.map_structure(tf.type_spec_from_value, parts))
        info = tf.compat.v1.saved_model.build_tensor_info(Parcel(parts, spec))
        assert len(info.composite_tensor.components) == 4
        again = tf.compat.v1.saved_model.get_tensor_from_tensor_info(info, graph)
        assert again.__tf_type_spec__() == spec
        for a, b in zip(xt.nest.flatten(parts, True), xt.nest.flatten(again, True), strict=True):
            assert a is b


class NotedSpec(ParcelSpec):
    """Holds any static data beside its components."""

    def __init__(self, note, component_specs):
        super().__init__(component_specs)
        self.note = note

    def serialize(self):
        return self.note, self._specs


xt.register_type_spec(NotedSpec, "sample.NotedSpec")


def local_spec_class():
    class LocalSpec(StaticSpec):
        pass

    return LocalSpec


def test_specs_of_local_classes_work_in_their_process():
    ours, others = local_spec_class(), local_spec_class()
    spec = ours(1, tf.TensorShape([2]))
    assert spec == ours(1, tf.TensorShape([2]))
    assert hash(spec) == hash(ours(1, tf.TensorShape([2])))
    # A class of the same name is another class.
    assert spec != others(1, tf.TensorShape([2]))
    assert not spec.is_compatible_with(others(1, tf.TensorShape([2])))
    assert spec.most_specific_compatible_type(others(1, tf.TensorShape([2]))) is None
    assert spec.most_specific_compatible_type(ours(1, tf.TensorShape([3]))) == ours(
        1, tf.TensorShape([None])
    )
    assert copy.deepcopy(spec) == spec
    assert repr(spec) == "LocalSpec(1, TensorShape([2]))"
    with pytest.raises((AttributeError, pickle.PicklingError), match="LocalSpec"):
        pickle.dumps(spec)
    with pytest.raises(Exception, match="No encoder for object LocalSpec"):
        spec.experimental_as_proto()
    xt.register_type_spec(ours, "sample.LocalSpec")
    assert tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto()) == spec


@pytest.mark.parametrize("part", EVERY_KIND, ids=lambda part: type(part).__name__)
def test_a_repr_shows_every_part(part):
    assert repr(part) in repr(StaticSpec("first", part, "last"))
    assert repr(part) in repr(StaticSpec({"deep": (StaticSpec(part),)}))


class ScaleSpec(xt.TypeSpec):
    """Serializes to something other than its constructor's arguments."""

    def __init__(self, *, shape, unit):
        self.shape, self.unit = tf.TensorShape(shape), unit

    value_type = MaskedTensor

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape), tf.TensorSpec(self.shape, tf.bool)

    def to_components(self, value):
        return value.values, value.mask

    def from_components(self, components):
        return MaskedTensor(*components)

    def serialize(self):
        return {"version": 2, "state": (self.unit, self.shape)}

    @classmethod
    def deserialize(cls, serialization):
        unit, shape = serialization["state"]
        return cls(shape=shape, unit=unit)


def test_deserialize_may_be_overridden():
    spec = ScaleSpec(shape=[3], unit="gram")
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert copy.deepcopy(spec) == spec
    merged = spec.most_specific_compatible_type(ScaleSpec(shape=[4], unit="gram"))
    assert merged == ScaleSpec(shape=[None], unit="gram")
    assert spec.most_specific_compatible_type(ScaleSpec(shape=[3], unit="cup")) is None


# Components.


def test_a_subclass_overrides_public_names_only():
    _, spec_class = fresh_masked_type()
    assert {name for name in vars(spec_class) if name.startswith("_")} <= {
        "__init__",
        # Members that Python adds to a class.
        *("__module__", "__qualname__", "__doc__", "__firstlineno__", "__static_attributes__"),
        *("__abstractmethods__", "_abc_impl", "__slotnames__"),
    }


def test_a_spec_class_without_an_abstract_method_cannot_be_instantiated():
    class Unfinished(xt.TypeSpec):
        value_type = tuple
        component_specs = ()

        def to_components(self, value):
            return ()

        def serialize(self):
            return ()

    with pytest.raises(TypeError, match="from_components"):
        Unfinished()


@pytest.mark.parametrize("name", ["component_specs", "value_type"])
def test_a_method_instead_of_a_property_is_an_error_that_names_the_mend(name):
    with pytest.raises(TypeError, match=f"Slip.{name}: expected a property.*@property"):
        type("Slip", (xt.TypeSpec,), {name: lambda self: None})


def test_values_are_decomposed_and_rebuilt_without_an_op():
    masked = MaskedTensor(tf.constant([1.0, 2.0]), tf.constant([True, False]))
    spec = masked.__tf_type_spec__()
    with tf.Graph().as_default() as graph:
        again = spec.from_components(spec.to_components(masked))
        assert graph.get_operations() == []
    assert (again.values, again.mask) == (masked.values, masked.mask)
    xt.nest.map_structure(
        lambda component_spec, component: component_spec.is_compatible_with(component) or 1 / 0,
        spec.component_specs,
        spec.to_components(masked),
    )


# Compatibility.


def masked(shape, dtype=tf.float32):
    return MaskedTensor(tf.zeros(shape, dtype), tf.zeros(shape, tf.bool))


def test_a_value_of_eight_rows_is_compatible_with_a_spec_of_any_number():
    some, eight = MaskedTensorSpec([None, 3], tf.float32), MaskedTensorSpec([8, 3], tf.float32)
    assert some.is_compatible_with(eight)
    assert eight.is_compatible_with(some)
    assert some != eight
    assert some.is_compatible_with(masked([8, 3]))
    assert not some.is_compatible_with(masked([8, 4]))
    assert not some.is_compatible_with(masked([8, 3], tf.int32))


@pytest.mark.parametrize(
    "other",
    [
        None,
        3,
        "text",
        object(),
        {"values": 1},
        [[1], [2, 3]],
        np.zeros([8, 3], np.float32),
        lambda: None,
        tf.TensorSpec([8, 3]),
        tf.zeros([8, 3]),
        tf.ragged.constant([[1.0], []]),
        np.array([object()]),
    ],
    ids=lambda other: type(other).__name__,
)
def test_values_and_specs_of_other_types_are_not_compatible(other):
    assert MaskedTensorSpec([8, 3], tf.float32).is_compatible_with(other) is False


def test_a_spec_of_another_class_is_not_compatible():
    class Sub(MaskedTensorSpec):
        pass

    spec, sub = MaskedTensorSpec([3], tf.float32), Sub([3], tf.float32)
    assert spec != sub
    assert not spec.is_compatible_with(sub)
    assert not sub.is_compatible_with(spec)
    assert spec.most_specific_compatible_type(sub) is None


@given(specs, specs)
def test_compatibility_is_symmetric(a, b):
    assert a.is_compatible_with(b) == b.is_compatible_with(a)
    assert a.most_specific_compatible_type(b) == b.most_specific_compatible_type(a)


@given(related_specs())
def test_specs_are_compatible_if_their_shapes_are(pair):
    a, b = pair
    pairs = []
    with_shapes(a, lambda shape: pairs.append([shape]) or shape)
    rest = iter(pairs)
    with_shapes(b, lambda shape: next(rest).append(shape) or shape)
    # The dimensions, compared here by hand.
    agree = all(
        all(m is None or n is None or m == n for m, n in zip(x, y, strict=True))
        for x, y in pairs
        if x.rank is not None
    )
    assert a.is_compatible_with(b) is agree
    assert b.is_compatible_with(a) is agree


@given(related_specs())
def test_the_most_specific_compatible_type_keeps_the_dimensions_that_agree(pair):
    a, b = pair
    merged = a.most_specific_compatible_type(b)
    dims = []
    with_shapes(a, lambda shape: dims.append(shape) or shape)
    rest = iter(dims)

    def by_hand(shape):
        first = next(rest)
        if shape.rank is None:
            return shape
        return tf.TensorShape([m if m == n else None for m, n in zip(first, shape, strict=True)])

    assert merged == with_shapes(b, by_hand)
    for spec in pair:
        assert merged.is_compatible_with(spec)
        assert spec.is_subtype_of(merged)
        assert merged.most_specific_compatible_type(spec) == merged


@given(specs)
def test_a_spec_is_compatible_with_itself_and_merges_with_itself(spec):
    same = StaticSpec.deserialize(spec.serialize())
    assert spec.is_compatible_with(same)
    assert spec.most_specific_compatible_type(same) == spec
    assert spec.is_subtype_of(same)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1,), (True,)),
        ((1,), (1.0,)),
        (({"a": 1},), (collections.OrderedDict(a=1),)),
        (((1, 2),), (Unit(1, 2),)),
        ((np.array([1]),), (np.array([1.0]),)),
    ],
)
def test_equal_specs_are_compatible_however_they_are_written(a, b):
    a, b = StaticSpec(*a), StaticSpec(*b)
    assert a == b
    assert a.is_compatible_with(b)
    assert b.is_compatible_with(a)
    assert a.most_specific_compatible_type(b) == b


@pytest.mark.parametrize(
    "nest",
    [lambda s: collections.OrderedDict(b=s, a=1), lambda s: Unit(s, 1), lambda s: {"a": (s,)}],
    ids=["OrderedDict", "namedtuple", "dict"],
)
def test_a_spec_from_a_saved_model_takes_values_of_other_shapes(nest):
    # What comes back is a dict, and a namedtuple of another class.
    some, eight = (StaticSpec(nest(tf.TensorShape([n, 3]))) for n in (None, 8))
    loaded = tf.TypeSpec.experimental_from_proto(some.experimental_as_proto())
    assert loaded.is_compatible_with(eight)
    assert eight.is_compatible_with(loaded)
    assert eight.is_subtype_of(loaded)
    assert not loaded.is_subtype_of(eight)
    assert loaded.most_specific_compatible_type(eight) == some


@pytest.mark.parametrize(
    "part", [None, np.array([1, 2]), tf.TensorShape([None]), tf.int64], ids=str
)
@pytest.mark.parametrize("spec", [tf.TensorSpec([2], tf.int64), tf.RaggedTensorSpec([2, None])])
def test_a_spec_in_a_serialization_is_not_compatible_with_a_value_of_it(spec, part):
    a, b = StaticSpec(spec), StaticSpec(part)
    assert not a.is_compatible_with(b)
    assert not b.is_compatible_with(a)
    assert a.most_specific_compatible_type(b) is None
    assert b.most_specific_compatible_type(a) is None


def test_dicts_with_other_keys_are_not_merged():
    one, both = StaticSpec({"a": 1}), StaticSpec({"a": 1, "b": 2})
    for a, b in ((one, both), (both, one), (one, StaticSpec({"b": 1}))):
        assert a != b
        assert not a.is_compatible_with(b)
        assert a.most_specific_compatible_type(b) is None


def test_arrays_with_nan_are_compared():
    a, b = (StaticSpec(np.array([1.0, np.nan])) for _ in range(2))
    assert a.is_compatible_with(b)
    assert not a.is_compatible_with(StaticSpec(np.array([np.nan, 1.0])))


def test_shapes_of_different_rank_merge_to_an_unknown_one():
    a, b = MaskedTensorSpec([2], tf.int32), MaskedTensorSpec([2, 2], tf.int32)
    assert not a.is_compatible_with(b)
    assert a.most_specific_compatible_type(b) == MaskedTensorSpec(None, tf.int32)


def test_dtypes_do_not_merge():
    a, b = MaskedTensorSpec([2], tf.int32), MaskedTensorSpec([2], tf.int64)
    assert a.most_specific_compatible_type(b) is None


# The bridge to TensorFlow.


def test_cond_returns_the_common_type_of_its_branches():
    seen = []

    @tf.function
    def choose(yes):
        result = tf.cond(yes, lambda: masked([8, 3]), lambda: masked([8, 5]))
        seen.append(result.__tf_type_spec__())
        return result

    assert choose(tf.constant(True)).values.shape == [8, 3]
    assert choose(tf.constant(False)).values.shape == [8, 5]
    assert seen == [MaskedTensorSpec([8, None], tf.float32)]


def test_branches_without_a_common_type_are_an_error():
    with pytest.raises(TypeError):
        tf.function(lambda yes: tf.cond(yes, lambda: masked([2]), lambda: masked([2], tf.int32)))(
            tf.constant(True)
        )


def test_equal_specs_do_not_retrace():
    function = tf.function(lambda m: m.values)
    for _ in range(3):
        function(masked([2]))
    assert function.experimental_get_tracing_count() == 1
    function(masked([3]))
    assert function.experimental_get_tracing_count() == 2


def test_reduce_retracing_relaxes_the_shape_and_traces_no_more():
    shapes = []
    function = tf.function(lambda m: shapes.append(m.values.shape), reduce_retracing=True)
    for rows in (2, 3, 4, 5):
        function(masked([rows, 3]))
    assert [shape.as_list() for shape in shapes] == [[2, 3], [None, 3]]


def test_a_function_of_any_number_of_rows_takes_eight():
    signature = [MaskedTensorSpec([None, 3], tf.float32)]
    function = tf.function(lambda m: tf.shape(m.values)[0], input_signature=signature)
    assert function(masked([8, 3])).numpy() == 8
    assert function(masked([0, 3])).numpy() == 0
    with pytest.raises(TypeError):
        function(masked([8, 4]))


def test_a_generator_of_incompatible_values_is_an_error():
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([masked([2], tf.int32)]), output_signature=MaskedTensorSpec([2], tf.float32)
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iter(dataset))


def test_a_spec_that_forbids_merging_works_in_functions_and_loops():
    masked_type, spec_class = fresh_masked_type()
    asked = []
    spec_class.most_specific_compatible_type = lambda self, other: asked.append(other)
    value = masked_type(tf.constant([1.0]), tf.constant([True]))
    other = masked_type(tf.constant([1.0, 2.0]), tf.constant([True, False]))

    function = tf.function(lambda m: masked_type(m.values + 1, m.mask))
    np.testing.assert_array_equal(function(function(value)).values, [3.0])
    kept = tf.function(lambda yes: tf.cond(yes, lambda: value, lambda: value))
    np.testing.assert_array_equal(kept(tf.constant(True)).values, [1.0])
    assert asked == []
    met = tf.function(lambda yes: tf.cond(yes, lambda: value, lambda: other))
    with pytest.raises(TypeError):
        met(tf.constant(True))
    assert asked != []


class Amount:
    def __init__(self, values, unit):
        self.values, self.unit = values, unit

    def __tf_type_spec__(self):
        return AmountSpec(self.unit)


class AmountSpec(xt.TypeSpec):
    """Merges two different units into none; by default they would not be merged."""

    def __init__(self, unit):
        self.unit = unit

    value_type = Amount
    component_specs = (tf.TensorSpec([2], tf.float32),)

    def to_components(self, value):
        return (value.values,)

    def from_components(self, components):
        return Amount(*components, self.unit)

    def serialize(self):
        return (self.unit,)

    def most_specific_compatible_type(self, other):
        return self if self == other else AmountSpec(None)


def test_a_spec_may_merge_other_parts_than_the_default():
    cups, grams = Amount(tf.constant([1.0, 2.0]), "cup"), Amount(tf.constant([3.0, 4.0]), "gram")
    choose = tf.function(lambda yes: tf.cond(yes, lambda: cups, lambda: grams))
    assert choose(tf.constant(True)).unit is None
    assert choose(tf.constant(False)).unit is None
    same = tf.function(lambda yes: tf.cond(yes, lambda: cups, lambda: cups))
    assert same(tf.constant(True)).unit == "cup"
