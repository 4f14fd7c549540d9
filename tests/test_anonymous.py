"""What a file holds of types whose classes are not imported: stand-ins, and damage."""

import copy
import itertools
import pickle
import random
import re
import textwrap
import warnings

import pytest
import tensorflow as tf
from google.protobuf.unknown_fields import UnknownFieldSet

import extensor as xt
from extensor._keras import spec_key
from extensor._tf import _tf_registry, _tf_saving
from extensor.errors import FormatError, ImmutableError, MissingTypeError, RegistrationError
from tests.samples import larder as sample_larder
from tests.samples.larder import BagSpec, Jar, Lid, Shelf, bag, jar

pytestmark = pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning:tensorflow")
stands_in = pytest.mark.filterwarnings("ignore:The type .* is not registered:UserWarning")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("larder"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample_larder.save(folder)
    return folder


LOAD = """
import sys, warnings
import numpy as np
import tensorflow as tf
import extensor as xt

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = tf.saved_model.load(FOLDER + "/model")
said = {str(warning.message) for warning in caught}

def error_of(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("no error")
"""


@pytest.fixture(scope="module")
def loading(run_python, saved):
    """Runs a snippet where the model is loaded and its types are not imported."""

    def run(code, folder=saved, before=""):
        run_python(f"FOLDER = {folder!r}\n{before}{LOAD}" + textwrap.dedent(code))

    return run


@pytest.mark.whole("traces many functions")
def test_a_model_with_types_that_are_not_imported_is_loaded_with_stand_ins(loading):
    loading("""
        assert "tests.samples.larder" not in sys.modules
        assert (
            "The type 'larder.Jar' is not registered: its values are stand-ins with the "
            "same components, but without its methods. It is defined in tests.samples.larder: "
            "`import tests.samples.larder`, or the module that registers it, before loading."
        ) in said, said
        assert any(message.startswith("The type 'Bag' is") for message in said), said

        # A value comes out, and goes in again.
        bag = model.made(tf.constant([1.0, 2.0]))
        assert repr(bag).startswith("<Bag(component_0=<tf.Tensor: shape=(2,), dtype=float32")
        assert repr(bag).endswith(", defined in tests.samples.larder, not imported>")
        assert bag.component_1.numpy().tolist() == [False, True]
        doubled = model.doubled(bag)
        assert [c.numpy().tolist() for c in doubled.components] == [[2.0, 4.0], [False, True]]
        assert model.total(doubled).numpy() == 6.0
        assert "AnonymousSpec('extensor.dotless.Bag', 'tests.samples.larder', (" in repr(
            xt.spec_of(bag)
        )
        assert {"component_0", "component_1"} <= set(dir(bag))
        assert repr(model.bolt()).startswith("<larder.BoltSpec(component=<tf.Tensor")

        # Flat tensors.
        values, mask = tf.constant([1.0, 5.0]), tf.constant([True, True])
        assert model.total((values, mask)).numpy() == 6.0
        assert model.total(([1.0, 5.0], [True, False])).numpy() == 6.0
        assert model.total.concrete_functions[0](values, mask).numpy() == 6.0
        [total] = model.signatures["total"](bag=values, bag_1=mask).values()
        assert total.numpy() == 6.0
        shelf = model.doubled_shelf({"jars": [1.0], "rows": tf.ragged.constant([[1.0], []])})
        assert shelf.jars.numpy().tolist() == [2.0]
        assert shelf.rows.to_list() == [[1.0], []]
        assert shelf.name == "top"
        assert repr(shelf).startswith("<larder.Shelf_ACTTypeSpec(jars=<tf.Tensor")
        error = error_of(lambda: model.total((values,)))
        assert isinstance(error, (TypeError, ValueError)), error

        # What only the class knows.
        error = error_of(lambda: bag.frobnicate())
        assert isinstance(error, AttributeError) and isinstance(error, ValueError)
        assert str(error).startswith(
            "Bag: expected a class with the attribute 'frobnicate', got a stand-in, because the "
            "class is not imported. "
        )
        assert "`import tests.samples.larder`" in str(error)
        assert not hasattr(bag, "frobnicate")

        # In graphs.
        traces = []
        again = tf.function(lambda b: (traces.append(b), model.doubled(b))[1])
        assert model.total(again(bag)).numpy() == 6.0
        assert model.total(again(doubled)).numpy() == 12.0
        assert len(traces) == 1
        chosen = tf.function(lambda c: tf.cond(c, lambda: bag, lambda: doubled))(tf.constant(False))
        assert chosen.component_0.numpy().tolist() == [2.0, 4.0]
        with tf.GradientTape() as tape:
            tape.watch(bag)
            loss = model.total(model.doubled(bag))
        assert tape.gradient(loss, bag).component_0.numpy().tolist() == [2.0, 2.0]
    """)


@pytest.mark.whole("starts a process")
def test_data_of_types_that_are_not_imported_is_loaded_with_stand_ins(loading):
    loading("""
        warnings.simplefilter("ignore")
        load = tf.data.Dataset.load
        [jar] = load(FOLDER + "/jars")
        assert jar.grams.numpy().tolist() == [1.0, 2.0]
        assert jar.label == "jam"
        assert jar.lid.unit == "cm" and jar.lid.width.numpy().tolist() == [3.0]
        assert jar.rows.to_list() == [[1], [2, 3]]
        assert jar.components["parts[1]"].numpy() == 2.0
        fields = ["grams", "parts[0]", "parts[1]", "lid", "rows", "size", "label"]
        assert "tests.samples.larder" not in sys.modules
        places = [repr(jar).index(f"{field}=") for field in fields]
        assert places == sorted(places) and repr(jar).startswith("<larder.Jar(grams=")
        assert model.doubled_jar(jar).grams.numpy().tolist() == [2.0, 4.0]
        [both] = load(FOLDER + "/jars").repeat(2).batch(2)
        assert both.grams.shape == [2, 2] and both.lid.width.shape == [2, 1]
        assert both.rows.to_list() == [[[1], [2, 3]]] * 2
        [batch] = load(FOLDER + "/Bag").batch(3)
        assert batch.component_0.numpy().tolist() == [1.0, 2.0, 3.0]
        [bolt] = load(FOLDER + "/bolts")
        assert bolt.component.numpy().tolist() == [1.0, 2.0]
        error = error_of(lambda: load(FOLDER + "/bolts").batch(2))
        assert "larder.BoltSpec: expected the class, which defines how its val" in str(error)
        error = error_of(lambda: list(load(FOLDER + "/Sack")))
        assert "larder.SackSpec: expected the class, which defines how its val" in str(error)
    """)


def test_a_class_that_is_imported_later_gives_its_values_to_what_was_loaded(loading):
    loading("""
        from tests.samples.larder import Bag, bag, jar
        doubled = model.doubled(bag())
        assert type(doubled) is not Bag
        assert doubled.component_0.numpy().tolist() == [2.0, 4.0, 6.0]
        assert model.total(bag()).numpy() == 6.0
        assert model.doubled_jar(jar()).grams.numpy().tolist() == [2.0, 4.0]
        later = tf.saved_model.load(FOLDER + "/model")
        assert type(later.doubled(bag())) is Bag
        assert type(later.doubled(model.doubled(bag()))) is Bag
    """)


@pytest.mark.whole("starts a process")
def test_what_was_loaded_with_stand_ins_is_saved_again_for_both(loading, run_python, tmp_path):
    again = str(tmp_path)
    loading(f"""
        module = tf.Module()
        module.doubled, module.doubled_jar = model.doubled, model.doubled_jar
        module.total = model.total
        tf.saved_model.save(module, {again!r} + "/model")
    """)
    loading(
        """
        assert model.total(model.doubled(([1.0, 2.0], [True, True]))).numpy() == 6.0
        """,
        again,
    )
    loading(
        """
        assert said == set()
        from tests.samples.larder import Bag, bag, jar
        assert type(model.doubled(bag())) is Bag
        assert model.doubled_jar(jar()).grams.numpy().tolist() == [2.0, 4.0]
        """,
        again,
        before="import tests.samples.larder\n",
    )


# In one process: a spec's message is read while its class is not registered.


def message(spec):
    return spec.experimental_as_proto()


def read(proto):
    return tf.TypeSpec.experimental_from_proto(proto)


def forget(monkeypatch):
    """Makes TensorFlow forget the names of the sample's specs."""
    # In the dict itself: a test may import types, whose names must stay.
    known = _tf_registry.type_spec_registry._NAME_TO_TYPE_SPEC
    for name in list(known):
        if name.startswith("larder.") or name == "extensor.dotless.Bag":
            monkeypatch.delitem(known, name)


@pytest.fixture
def unknown(monkeypatch):
    forget(monkeypatch)


SPECS = {
    "declared": lambda: xt.spec_of(jar()),
    "declared, without tensors": lambda: Lid.Spec(tf.TensorSpec([]), "cm"),
    "auto": lambda: Shelf.Spec([tf.TensorSpec([2]), {"a": tf.TensorSpec([])}], None, "top"),
    "by hand": lambda: BagSpec([None], tf.float32),
    "does not stack": lambda: sample_larder.BoltSpec(),
}
each = pytest.mark.parametrize("make", SPECS.values(), ids=list(SPECS))


@each
@stands_in
def test_a_stand_in_has_the_components_of_the_spec(make, unknown):
    spec = make()
    stand_in = read(message(spec))
    assert type(stand_in) is not type(spec)
    tf.nest.assert_same_structure(stand_in.component_specs, spec.component_specs)
    assert tf.nest.flatten(stand_in.component_specs)[-1] is not None
    for ours, theirs in zip(
        tf.nest.flatten(stand_in, True), tf.nest.flatten(spec, True), strict=True
    ):
        assert ours == theirs


@each
@stands_in
def test_a_stand_in_is_compared_copied_and_pickled(make, unknown):
    stand_in, same = read(message(make())), read(message(make()))
    assert stand_in == same
    assert hash(stand_in) == hash(same)
    assert stand_in.is_compatible_with(same)
    for again in (copy.deepcopy(stand_in), pickle.loads(pickle.dumps(stand_in))):
        assert again == stand_in
        assert repr(again) == repr(stand_in)
    value = stand_in.from_components(
        tf.nest.map_structure(lambda spec: spec, stand_in.component_specs)
    )
    assert repr(pickle.loads(pickle.dumps(value))) == repr(value)
    assert stand_in != read(message(Lid.Spec(tf.TensorSpec([7]), "inch")))


@each
@stands_in
def test_a_stand_in_is_written_as_the_spec_was(make, unknown):
    proto = message(make())
    again = message(read(proto))
    assert read(again) == read(proto)
    names = ("type_spec_class_name", "num_flat_components", "type_state")
    assert [getattr(again, name) for name in names] == [getattr(proto, name) for name in names]


@each
@stands_in
def test_a_stand_in_becomes_the_spec_where_the_class_is_registered(make):
    with pytest.MonkeyPatch.context() as patch:
        forget(patch)
        again = message(read(message(make())))
    assert read(again) == make()


@pytest.mark.whole("checks all laws of several types")
@stands_in
def test_a_stand_in_obeys_the_laws(unknown):
    for spec, value in ((BagSpec([None], tf.float32), bag()), (xt.spec_of(jar()), jar())):
        stand_in = read(message(spec))
        xt.testing.check_extension_type([stand_in.cast(value)] * 2)


@stands_in
def test_a_stand_in_of_a_value_cannot_be_changed(unknown):
    value = read(message(BagSpec([None], tf.float32))).cast(([1.0], [True]))
    with pytest.raises(ImmutableError, match=r"Bag\.component_0: expected no assignment"):
        value.component_0 = 1
    with pytest.raises(MissingTypeError, match="expected a class with the attribute 'values'"):
        value.values  # noqa: B018


@stands_in
def test_a_type_with_a_part_of_a_type_that_is_not_imported_is_itself(unknown):
    _tf_registry.type_spec_registry._NAME_TO_TYPE_SPEC["larder.Jar"] = Jar.Spec
    spec = read(message(xt.spec_of(jar())))
    assert type(spec) is Jar.Spec
    assert spec.lid.name == "larder.Lid"


def test_what_is_nested_deep_is_written_in_a_size_that_grows_no_faster_than_it():
    spec, sizes = BagSpec([None], tf.float32), []
    for _ in range(12):
        spec = Nest.Spec(spec)
        sizes.append(len(message(spec).SerializeToString()))
    steps = [b - a for a, b in itertools.pairwise(sizes)]
    assert max(steps) < 1.5 * min(steps)


@xt.extension_type(name="test_anonymous.Nest")
class Nest:
    content: object


# Modules.


def without_field(proto, number):
    """Returns a message without one of the fields that only extensor's codec knows."""
    again = type(proto)(
        type_spec_class=proto.type_spec_class,
        type_spec_class_name=proto.type_spec_class_name,
        num_flat_components=proto.num_flat_components,
        type_state=proto.type_state,
    )
    for field in UnknownFieldSet(proto):
        if field.field_number != number:
            _tf_saving.add_field(again, field.field_number, field.data)
    return again


def with_module(proto, module):
    proto = without_field(proto, _tf_saving.MODULE_FIELD)
    _tf_saving.add_field(proto, _tf_saving.MODULE_FIELD, module)
    return proto


@pytest.mark.parametrize("module", [b"gone.for_good", b"extensor.types.gone", b"__main__"])
def test_a_class_whose_module_moved_is_found_by_its_name(module):
    for spec in (xt.spec_of(bag()), xt.types.MaskedTensorSpec(tf.TensorSpec([None]))):
        assert read(with_module(message(spec), module)) == spec


def test_a_class_of_extensor_is_found_by_its_name_where_nothing_imported_it(run_python, tmp_path):
    spec = xt.types.MaskedTensorSpec(tf.TensorSpec([None]))
    path = tmp_path / "spec.pb"
    path.write_bytes(with_module(message(spec), b"extensor.types.gone").SerializeToString())
    run_python(f"""
        import sys
        import tensorflow as tf
        import extensor
        assert "extensor.types" not in sys.modules
        proto = tf.TypeSpec.experimental_type_proto()()
        proto.ParseFromString(open({str(path)!r}, "rb").read())
        spec = tf.TypeSpec.experimental_from_proto(proto)
        import extensor as xt
        assert type(spec) is xt.types.MaskedTensorSpec, spec
    """)


# What earlier versions wrote, which is not in the file for stand-ins.


@pytest.mark.parametrize("kind", ["declared", "declared, without tensors", "auto"])
@stands_in
def test_the_components_of_a_declared_type_follow_from_what_earlier_versions_wrote(kind, unknown):
    spec = SPECS[kind]()
    stand_in = read(without_field(message(spec), _tf_saving.COMPONENTS_FIELD))
    assert stand_in == read(message(spec))


def test_those_of_a_type_by_hand_do_not_so_its_class_must_be_imported(unknown):
    proto = without_field(message(xt.spec_of(bag())), _tf_saving.COMPONENTS_FIELD)
    with pytest.raises(
        RegistrationError, match=r"It is defined in tests\.samples\.larder: `import"
    ):
        read(proto)


def test_a_stored_model_of_the_first_version_loads_without_its_class(run_python):
    run_python("""
        import warnings
        warnings.simplefilter("ignore")
        import tensorflow as tf
        import extensor as xt
        model = tf.saved_model.load("tests/saved/0.1/dishes")
        one = tf.constant(1.0)
        dish = model.double({"grams": [1.0, 2.0], "parts[0]": one, "parts[1]": one})
        assert dish.grams.numpy().tolist() == [2.0, 4.0]
        assert dish.label["unit"] == "gram"
        assert repr(dish).startswith("<stored_model.Dish(grams=")
    """)


# Damage.


DAMAGED = {
    "another number of parts": lambda p: p.type_state.tuple_value.values.pop(),
    "nothing": lambda p: p.ClearField("type_state"),
    "another kind of part": lambda p: p.type_state.tuple_value.values[0].CopyFrom(
        type(p.type_state)(string_value="x")
    ),
    "no part": lambda p: p.type_state.tuple_value.values[0].Clear(),
    "another container": lambda p: p.type_state.CopyFrom(type(p.type_state)(int64_value=3)),
    "another kind of spec": lambda p: setattr(p, "type_spec_class", 3),
    "no kind of spec": lambda p: setattr(p, "type_spec_class", 0),
}


@pytest.mark.parametrize(
    "make", [make for kind, make in SPECS.items() if kind != "does not stack"]
)  # which has no part
@pytest.mark.parametrize("damage", DAMAGED.values(), ids=list(DAMAGED))
@pytest.mark.parametrize("is_known", [True, False])
@stands_in
def test_a_damaged_spec_is_a_named_error_or_a_spec(make, damage, is_known, request):
    if not is_known:
        request.getfixturevalue("unknown")
    proto = message(make())
    damage(proto)
    try:
        outcome = read(proto)
    except xt.ExtensorError as error:
        outcome = error
    assert isinstance(outcome, tf.TypeSpec) or re.search("larder|Bag|Jar|Lid|Shelf", str(outcome))


def test_the_error_for_damage_names_the_type_and_what_happened():
    proto = message(xt.spec_of(bag()))
    proto.type_state.tuple_value.values.pop()
    with pytest.raises(FormatError) as caught:
        read(proto)
    error = caught.value
    assert error.path == "Bag"
    assert error.expected == "a valid type spec"
    assert error.received.startswith("TypeError: ")
    assert "save the model again" in error.fix


@stands_in
def test_a_damaged_count_of_tensors_is_a_named_error(unknown):
    proto = message(xt.spec_of(jar()))
    proto.num_flat_components += 1
    with pytest.raises(
        FormatError,
        match=r"larder\.Jar: expected the specs of the 7 tensors of a value, got 6 specs",
    ):
        read(proto)


def test_a_damaged_module_is_a_named_error():
    with pytest.raises(FormatError, match=r"UnicodeDecodeError"):
        read(with_module(message(xt.spec_of(bag())), b"\xff\xfe"))


@pytest.mark.parametrize("is_known", [True, False])
@stands_in
def test_specs_with_any_bytes_changed_are_read_or_refused_by_name(is_known, request):
    if not is_known:
        request.getfixturevalue("unknown")
    kind = tf.TypeSpec.experimental_type_proto()
    chosen = random.Random(7)
    outcomes = {"read": 0, "refused": 0, "no message": 0}
    for make in SPECS.values():
        whole = message(make()).SerializeToString()
        for _ in range(60):
            changed = bytearray(whole)
            for _ in range(chosen.choice([1, 1, 1, 4])):
                changed[chosen.randrange(len(changed))] = chosen.randrange(256)
            proto = kind()
            try:
                proto.ParseFromString(bytes(changed))
            except Exception:  # protobuf's own error, of what never was a message
                outcomes["no message"] += 1
                continue
            if _tf_saving.field_of(proto, _tf_saving.MODULE_FIELD) is None:
                outcomes["no message"] += 1  # nor is this one of extensor's
                continue
            try:
                read(proto)
                outcomes["read"] += 1
            except xt.ExtensorError:
                outcomes["refused"] += 1
    assert outcomes["read"] > 20
    assert outcomes["refused"] > 20


# Keras.


def test_a_keras_model_needs_the_class(unknown):
    key = spec_key.key_of_spec(xt.spec_of(bag()))
    with pytest.raises(RegistrationError, match=r"^Bag: .*`import tests\.samples\.larder`"):
        spec_key.spec_of_key(key)
