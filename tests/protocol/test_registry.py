"""Names of registered specs: unique, kept from TensorFlow's names, and reusable in notebooks."""

import re
import textwrap

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import ProtocolError
from tests.samples.types import StaticSpec

pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type:UserWarning:tensorflow"
)


def new_spec_class(name, module=__name__):
    return type(name, (StaticSpec,), {"__module__": module})


def written_name(spec_class):
    """Returns the name of a spec class in a SavedModel."""
    return spec_class().experimental_as_proto().type_spec_class_name


def assert_unregistered(spec_class):
    # TensorFlow's NotEncodableError is private, and no ValueError.
    with pytest.raises(Exception, match=f"No encoder for object {spec_class.__name__}"):
        written_name(spec_class)


def test_the_default_name_is_module_and_class():
    spec_class = xt.register_type_spec(new_spec_class("DefaultSpec"))
    assert written_name(spec_class) == f"{__name__}.DefaultSpec"


@xt.register_type_spec
class BareSpec(StaticSpec):
    pass


@xt.register_type_spec()
class CalledSpec(StaticSpec):
    pass


@xt.register_type_spec(name="test_registry.decorated.Named")
class NamedSpec(StaticSpec):
    pass


def test_the_decorator_takes_a_name_or_none():
    assert isinstance(BareSpec, type)
    assert written_name(BareSpec) == f"{__name__}.BareSpec"
    assert written_name(CalledSpec) == f"{__name__}.CalledSpec"
    assert written_name(NamedSpec) == "test_registry.decorated.Named"


def test_a_registered_spec_comes_back_from_its_proto():
    spec_class = xt.register_type_spec(new_spec_class("BackSpec"), "test_registry.Back")
    spec = spec_class(1, tf.TensorShape([None]))
    loaded = tf.TypeSpec.experimental_from_proto(spec.experimental_as_proto())
    assert type(loaded) is spec_class
    assert loaded == spec


def test_registering_the_same_pair_again_changes_nothing():
    spec_class = new_spec_class("AgainSpec")
    for _ in range(3):
        assert xt.register_type_spec(spec_class, "test_registry.Again") is spec_class
    assert written_name(spec_class) == "test_registry.Again"
    default = new_spec_class("AgainDefaultSpec")
    xt.register_type_spec(default)
    xt.register_type_spec(default, f"{__name__}.AgainDefaultSpec")


def test_a_name_that_another_spec_has_is_an_error():
    first = xt.register_type_spec(new_spec_class("FirstSpec"), "test_registry.Taken")
    second = new_spec_class("SecondSpec")
    with pytest.raises(ValueError, match=r"SecondSpec: .*'test_registry.Taken'.*FirstSpec"):
        xt.register_type_spec(second, "test_registry.Taken")
    assert written_name(first) == "test_registry.Taken"
    assert_unregistered(second)
    xt.register_type_spec(second, "test_registry.Free")
    assert written_name(second) == "test_registry.Free"


def test_a_name_of_tensorflow_is_an_error():
    proto_name = tf.RaggedTensorSpec([2, None]).experimental_as_proto()
    spec_class = new_spec_class("RaggedTensorSpec")
    with pytest.raises(ValueError, match="name that no other TypeSpec has"):
        xt.register_type_spec(spec_class, "tf.RaggedTensorSpec")
    assert_unregistered(spec_class)
    assert type(tf.TypeSpec.experimental_from_proto(proto_name)) is tf.RaggedTensorSpec


def test_a_second_name_for_a_spec_is_an_error():
    spec_class = xt.register_type_spec(new_spec_class("TwiceSpec"), "test_registry.Once")
    with pytest.raises(ValueError, match=r"TwiceSpec: expected the name 'test_registry.Once'"):
        xt.register_type_spec(spec_class, "test_registry.Twice")
    with pytest.raises(ValueError, match=r"'test_registry\.Once'"):
        xt.register_type_spec(spec_class)
    assert written_name(spec_class) == "test_registry.Once"
    # The rejected name is still free.
    xt.register_type_spec(new_spec_class("OtherSpec"), "test_registry.Twice")


def test_a_name_without_a_dot_is_valid():
    first = xt.register_type_spec(new_spec_class("DotlessSpec"), "Dotless")
    # TensorFlow's own rule for the names in a SavedModel.
    assert re.fullmatch(r"(\w+\.)+\w+", written_name(first))
    assert type(tf.TypeSpec.experimental_from_proto(first().experimental_as_proto())) is first
    xt.register_type_spec(first, "Dotless")
    other = new_spec_class("OtherDotlessSpec")
    with pytest.raises(ValueError, match="'Dotless'"):
        xt.register_type_spec(other, "Dotless")
    with pytest.raises(ValueError, match="expected the name 'Dotless'"):
        xt.register_type_spec(first, "Other")
    assert_unregistered(other)
    xt.register_type_spec(other, "test_registry.Dotless")
    assert written_name(first) != written_name(other)


@pytest.mark.parametrize(
    "name",
    ["", ".", "a.", ".a", "a..b", "a-b.c", "a b", "a.b\n", "a/b", "<locals>.Spec", 3, b"a.b"],
)
def test_a_name_that_is_not_words_and_dots_is_an_error(name):
    spec_class = new_spec_class("BadNameSpec")
    with pytest.raises(ValueError, match="words of letters, digits and _") as caught:
        xt.register_type_spec(spec_class, name)
    assert repr(name) in str(caught.value)
    assert isinstance(caught.value, xt.ExtensorError)
    assert_unregistered(spec_class)


words = st.from_regex(r"\w{1,5}", fullmatch=True)


@given(st.lists(words, min_size=1, max_size=3).map(".".join), st.data())
def test_every_valid_name_names_one_spec(name, data):
    name = f"{name}{id(data)}"
    spec_class, other = new_spec_class("WordSpec"), new_spec_class("OtherWordSpec")
    xt.register_type_spec(spec_class, name)
    with pytest.raises(ValueError, match="no other TypeSpec"):
        xt.register_type_spec(other, name)
    loaded = tf.TypeSpec.experimental_from_proto(spec_class(name).experimental_as_proto())
    assert type(loaded) is spec_class
    assert loaded == spec_class(name)


@pytest.mark.parametrize("wrong", [int, tuple, 3, "test_registry.Name", StaticSpec()])
def test_what_is_not_a_spec_class_is_an_error(wrong):
    with pytest.raises(TypeError, match="expected a subclass of TypeSpec"):
        xt.register_type_spec(wrong, "test_registry.Wrong")
    with pytest.raises(TypeError, match="expected a subclass of TypeSpec"):
        xt.register_type_spec(name="test_registry.Wrong")(wrong)


def test_the_class_may_be_given_by_keyword():
    spec_class = new_spec_class("KeywordSpec")
    registered = xt.register_type_spec(type_spec_subclass=spec_class, name="test_registry.Keyword")
    assert registered is spec_class
    assert written_name(spec_class) == "test_registry.Keyword"


class HalfSpec(xt.TypeSpec):
    """Lacks two abstract methods."""

    value_type = tuple
    component_specs = ()

    def serialize(self):
        return ()


class OtherHalf:
    pass


@pytest.mark.parametrize("spec_class", [HalfSpec, xt.TypeSpec, xt.StackableTypeSpec, tf.TypeSpec])
def test_an_abstract_spec_is_an_error_that_names_what_it_lacks(spec_class):
    missing = "from_components" if issubclass(spec_class, xt.TypeSpec) else "_from_components"
    for register in (
        lambda: xt.register_type_spec(spec_class, "test_registry.Abstract"),
        lambda: xt.register_type_spec(name="test_registry.Abstract")(spec_class),
    ):
        with pytest.raises(TypeError, match="expected a concrete TypeSpec") as caught:
            register()
        assert isinstance(caught.value, ProtocolError)
        assert missing in caught.value.received
    assert "test_registry.Abstract" not in xt.registered_types()


def test_an_abstract_spec_for_a_foreign_class_is_an_error():
    spec_class = type(
        "OtherHalfSpec",
        (HalfSpec,),
        {"value_type": OtherHalf, "from_value": classmethod(lambda cls, value: cls())},
    )
    with pytest.raises(ProtocolError, match=r"expected a concrete TypeSpec.*, got a class without"):
        xt.register_extension_type(OtherHalf, spec_class)
    assert not hasattr(OtherHalf, "__tf_type_spec__")


def test_classes_made_in_functions_do_not_replace_each_other():
    def make():
        class LocalSpec(StaticSpec):
            pass

        return LocalSpec

    first, second = make(), make()
    xt.register_type_spec(first, "test_registry.Local")
    with pytest.raises(ValueError, match="no other TypeSpec"):
        xt.register_type_spec(second, "test_registry.Local")


def test_a_class_that_is_defined_again_replaces_the_old_one():
    old = xt.register_type_spec(new_spec_class("CellSpec"))
    old_spec = old(1)
    new = xt.register_type_spec(new_spec_class("CellSpec"))
    assert new is not old
    assert written_name(new) == written_name(old) == f"{__name__}.CellSpec"
    loaded = tf.TypeSpec.experimental_from_proto(old_spec.experimental_as_proto())
    assert loaded == new(1)
    # It is a redefinition under the old name only.
    with pytest.raises(ValueError, match="no other TypeSpec"):
        xt.register_type_spec(
            new_spec_class("CellSpec", module="elsewhere"), f"{__name__}.CellSpec"
        )


CELL = """
import tensorflow as tf
import extensor as xt

class Amount:
    def __init__(self, grams):
        self.grams = grams

    def __tf_type_spec__(self):
        return AmountSpec(self.grams.shape)

@xt.register_type_spec
class AmountSpec(xt.TypeSpec):
    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    value_type = Amount

    @property
    def component_specs(self):
        return (tf.TensorSpec(self.shape, tf.float32),)

    def to_components(self, value):
        return (value.grams,)

    def from_components(self, components):
        return Amount(*components)

    def serialize(self):
        return (self.shape,)
"""


@pytest.fixture(scope="module")
def saved_twice(run_python, tmp_path_factory):
    """A folder with a model saved from either class of a cell that ran twice."""
    folder = tmp_path_factory.mktemp("cell")
    # `python -c` runs in __main__, as a notebook does.
    saving = f"""
    CELL = {CELL!r}
    exec(CELL)
    old_class, old = Amount, Amount(tf.constant([1.0, 2.0]))
    old_signature = [AmountSpec([None])]
    exec(CELL)
    assert Amount is not old_class
    double = lambda amount: type(amount)(amount.grams * 2)
    for name, value, signature in [
        ("old", old, old_signature),
        ("new", Amount(tf.constant([1.0, 2.0])), [AmountSpec([None])]),
    ]:
        module = tf.Module()
        module.double = tf.function(double, input_signature=signature)
        assert module.double(value).grams.numpy().tolist() == [2.0, 4.0]
        tf.saved_model.save(module, {str(folder)!r} + "/" + name)
    """
    run_python(textwrap.dedent(saving))
    return folder


@pytest.mark.whole("starts a process")
def test_a_notebook_cell_may_run_twice_and_both_its_classes_still_save(run_python, saved_twice):
    loading = f"""
    exec({CELL!r})
    for name in ("old", "new"):
        loaded = tf.saved_model.load({str(saved_twice)!r} + "/" + name)
        result = loaded.double(Amount(tf.constant([1.0, 2.0, 3.0])))
        assert type(result) is Amount
        assert result.grams.numpy().tolist() == [2.0, 4.0, 6.0]
    """
    run_python(textwrap.dedent(loading))


@pytest.mark.whole("starts a process")
def test_loading_without_the_class_names_it_and_gives_stand_ins(run_python, saved_twice):
    loading = f"""
    import warnings
    import tensorflow as tf
    import extensor
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = tf.saved_model.load({str(saved_twice / "new")!r})
    [*_, said] = [str(warning.message) for warning in caught]
    assert "'__main__.AmountSpec' is not registered" in said, said
    assert said.endswith("Run the program or notebook cell that defines it before loading."), said
    doubled = loaded.double(([1.0, 2.0],))
    assert doubled.component_0.numpy().tolist() == [2.0, 4.0]
    assert "__main__.AmountSpec(" in repr(doubled)
    """
    run_python(textwrap.dedent(loading))


def test_saving_an_unregistered_spec_is_an_error(tmp_path):
    module = tf.Module()
    signature = [new_spec_class("UnsavedSpec")(1)]
    module.identity = tf.function(lambda x: x, input_signature=signature)
    with pytest.raises(Exception, match="No encoder for object UnsavedSpec"):
        tf.saved_model.save(module, str(tmp_path))
