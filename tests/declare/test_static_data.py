"""Static data: frozen, compared by content, and written into SavedModels."""

import copy
import datetime
import enum
import math
import pickle
from collections import OrderedDict, defaultdict
from decimal import Decimal

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor._declare.static_data import FrozenDict, decode, encode, freeze, key
from tests.samples.declared import STATIC, Course, Labelled, Masked, Unit, labelled

pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type tests.samples.declared:UserWarning:tensorflow"
)

kinds = pytest.mark.parametrize("kind", STATIC)


@kinds
def test_frozen_data_is_equal_to_itself_and_to_nothing_else(kind):
    frozen = freeze(STATIC[kind], "x")
    assert key(frozen) == key(freeze(copy.deepcopy(STATIC[kind]), "x"))
    assert hash(key(frozen)) == hash(key(freeze(copy.deepcopy(STATIC[kind]), "x")))
    for other, data in STATIC.items():
        assert (key(freeze(data, "x")) == key(frozen)) == (other == kind)


@kinds
def test_freezing_twice_changes_nothing(kind):
    frozen = freeze(STATIC[kind], "x")
    assert key(freeze(frozen, "x")) == key(frozen)


@kinds
def test_a_spec_with_static_data_is_copied_pickled_and_saved(kind):
    spec = labelled(kind).__tf_type_spec__()
    for again in (
        pickle.loads(pickle.dumps(spec)),
        copy.copy(spec),
        copy.deepcopy(spec),
        spec.deserialize(spec.serialize()),
        tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto()),
    ):
        assert again == spec
        assert hash(again) == hash(spec)
        assert kind == "set" or repr(again) == repr(spec)  # sets are not in order
        assert again.is_compatible_with(spec)
        assert again.most_specific_compatible_type(spec) == spec


@kinds
def test_static_data_passes_through_a_function_unchanged(kind):
    value = labelled(kind)
    traces = []

    @tf.function
    def double(x):
        traces.append(x)
        return xt.replace(x, values=x.values * 2)

    assert key(double(value).label) == key(value.label)
    double(labelled(kind))
    assert len(traces) == 1


def test_numbers_of_different_types_differ():
    different = [freeze(x, "x") for x in (1, 1.0, True, np.array(1), (1,), [[1]], {1}, {1: 1})]
    assert len(set(map(key, different))) == len(different)
    assert key(freeze([1, 2], "x")) == key(freeze((1, 2), "x"))


def test_dicts_with_keys_of_different_types_do_not_merge():
    one, other = (Labelled([1.0], {number: "m"}) for number in (1, True))
    spec = xt.spec_of(one)
    assert spec.is_compatible_with(Labelled([2.0], {1: "m"}))
    assert not spec.is_compatible_with(other)
    assert spec.most_specific_compatible_type(xt.spec_of(other)) is None


def test_equal_times_and_decimals_that_differ_are_traced_apart():
    utc = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    other = utc.astimezone(datetime.timezone(datetime.timedelta(hours=1)))
    for one, two in ((utc, other), (Decimal("1.0"), Decimal("1.00"))):
        assert one == two
        function = tf.function(lambda labelled: labelled)
        found = [function(Labelled([1.0], label)).label for label in (one, two)]
        assert list(map(repr, found)) == [repr(one), repr(two)]


def test_numpy_scalars_become_python_ones():
    for scalar in (np.int8(3), np.float64(0.5), np.bool_(True), np.str_("a"), np.bytes_(b"a")):
        frozen = freeze(scalar, "x")
        assert type(frozen) in (int, float, bool, str, bytes)
        assert frozen == scalar
    assert freeze(np.datetime64("2020-01-01", "s"), "x") == datetime.datetime(2020, 1, 1)


def test_times_of_numpy_that_python_does_not_have_keep_their_unit():
    times = [np.datetime64("2020-01-01", "ns"), np.timedelta64(5, "ns"), np.timedelta64(5, "Y")]
    for time in times:
        frozen = freeze(time, "x")
        assert frozen.dtype == time.dtype
        assert frozen[()] == time
    assert len({key(freeze(time, "x")) for time in times}) == 3
    assert np.isnat(freeze(np.datetime64("NaT", "s"), "x"))


def test_mappings_are_compared_without_their_order():
    for mapping in (dict, OrderedDict, lambda items: defaultdict(int, items), FrozenDict):
        assert key(freeze(mapping([("b", 1), ("a", 2)]), "x")) == key(freeze({"a": 2, "b": 1}, "x"))
    assert list(freeze({"b": 1, "a": 2}, "x")) == ["b", "a"]


def test_arrays_become_read_only_copies():
    array = np.array([1.0, 2.0])
    value = Labelled([1.0], {"of": array})
    array[0] = 9
    for held in (
        value.label["of"],
        copy.deepcopy(value).label["of"],
        pickle.loads(pickle.dumps(value)).label["of"],
        tf.TypeSpec.experimental_from_proto(value.__tf_type_spec__().experimental_as_proto()).label[
            "of"
        ],
    ):
        assert held.tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 3
        with pytest.raises(ValueError, match="WRITEABLE"):
            held.flags.writeable = True


def test_a_frozen_dict_is_immutable_and_hashable():
    frozen = FrozenDict({"a": 1, "b": np.array([1])})
    assert hash(frozen) == hash(FrozenDict({"b": np.array([1]), "a": 1}))
    assert repr(FrozenDict({"a": 1})) == "{'a': 1}"
    for change in (
        lambda: frozen.__setitem__("a", 2),
        lambda: setattr(frozen, "a", 2),
        lambda: delattr(frozen, "_items"),
        lambda: setattr(frozen, "_items", {}),
    ):
        with pytest.raises(AttributeError):
            change()
    assert pickle.loads(pickle.dumps(FrozenDict({"a": 1}))) == {"a": 1}


class Mutable:
    __hash__ = None


@pytest.mark.parametrize(
    "data",
    [
        Mutable(),
        bytearray(b"a"),
        np.array([object()]),
        np.ma.masked_array([1, 2], [True, False]),
        np.array([(1, [])], [("a", int), ("b", object)]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_data_that_cannot_be_frozen_is_an_error_that_names_its_place(data):
    with pytest.raises(TypeError, match=r"Labelled\.label\['deep'\]\[1\]: expected .*, got .*\. "):
        Labelled([1.0], {"deep": [1, data]})
    with pytest.raises(xt.ExtensorError):
        Labelled.Spec(tf.TensorSpec([1]), {"deep": [1, data]})


def test_an_extension_value_in_static_data_is_an_error():
    masked = Masked([1.0], [True])
    with pytest.raises(TypeError, match=r"an element: expected static.*got Masked.*of tensors"):
        Labelled([1.0], {masked})
    with pytest.raises(TypeError, match="a key: expected static"):
        Labelled([1.0], {masked: 1})
    assert Labelled([1.0], {"a": masked}).label["a"] is masked


def test_hashable_values_of_any_class_are_static_data():
    def activation(x):
        return x

    value = Labelled([1.0], (activation, int, range(3), 1j))
    spec = value.__tf_type_spec__()
    assert spec == Labelled([1.0], (activation, int, range(3), 1j)).__tf_type_spec__()
    assert spec != Labelled([1.0], (print, int, range(3), 1j)).__tf_type_spec__()
    assert tf.function(lambda x: x)(value).label == value.label
    # It is an error only when they are saved.
    with pytest.raises(TypeError, match=r"Labelled.label: expected static data that a SavedModel"):
        spec.experimental_as_proto()


def test_classes_that_cannot_be_imported_work_in_their_process():
    class Local(enum.Enum):
        A = 1

    spec = Labelled([1.0], Local.A).__tf_type_spec__()
    assert copy.deepcopy(spec) == spec
    longer = Labelled([1.0, 2.0], Local.A).__tf_type_spec__()
    assert spec.most_specific_compatible_type(longer).label is Local.A
    assert spec.stacked(3).label is Local.A
    with pytest.raises(ValueError, match=r"<locals>\.Local: expected the enum.*importable"):
        tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto())


@pytest.mark.parametrize(
    "code",
    [
        ("enum", "no.such.module", "Course", "MAIN"),
        ("enum", "tests.samples.declared", "Menu", "MAIN"),
        ("enum", "tests.samples.declared", "Course", "DESSERT"),
        ("enum", "tests.samples.declared", "Unit", "MAIN"),
        ("named", "tests.samples.declared", "Unit", "too few"),
        # Only classes of static data are called.
        ("named", "os", "system", "true"),
        ("named", "builtins", "eval", "1"),
        ("named", "subprocess", "Popen", "true"),
    ],
)
def test_a_missing_class_is_an_error_that_names_it(code):
    with pytest.raises(xt.ExtensorError) as caught:
        decode(code)
    assert isinstance(caught.value, ValueError)
    assert f"{code[1]}.{code[2]}: expected the " in str(caught.value)
    assert f"Make {code[2]} importable from the module {code[1]}" in str(caught.value)


def test_the_encoding_is_readable():
    assert encode((1, "a", None)) == ("tuple", 1, "a", None)
    assert encode(Course.MAIN) == ("enum", "tests.samples.declared", "Course", "MAIN")
    assert encode(Unit("g", 1.0)) == ("named", "tests.samples.declared", "Unit", "g", 1.0)
    assert math.isnan(decode(encode(math.nan)))
