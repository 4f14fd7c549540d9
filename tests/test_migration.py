"""Models that an older version of a type, or of extensor, has written are loaded and run."""

import textwrap
from pathlib import Path

import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import FieldError, ProtocolError, RegistrationError

DATA = Path(__file__).parent / "saved"

# TensorFlow says so of every registered spec that it writes.
pytestmark = [
    pytest.mark.whole("loads stored models in fresh processes"),
    pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning"),
]

# A declared type and one by hand, in two versions: one component is renamed, and its dtype changes.

FIRST = """
import tensorflow as tf
import extensor as xt

@xt.extension_type(name="cookbook.Recipe")
class Recipe:
    title: tf.Tensor
    minutes: tf.Tensor
    unit: str = "metric"

@xt.extension_type(name="cookbook.Menu")
class Menu:
    recipes: Recipe
    price: tf.Tensor

class Interval:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def __tf_type_spec__(self):
        return IntervalSpec(self.low.shape)

@xt.register_type_spec(name="cookbook.IntervalSpec")
class IntervalSpec(xt.StackableTypeSpec):
    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    value_type = Interval

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape), tf.TensorSpec(self.shape)

    def to_components(self, value):
        return value.low, value.high

    def from_components(self, components):
        return Interval(*components)

    def serialize(self):
        return (self.shape,)
"""

SAVE = """
RECIPES = Recipe.Spec(tf.TensorSpec([None], tf.string), tf.TensorSpec([None]), "metric")
recipe = Recipe(["bread", "soup"], [90.0, 20.5])
interval = Interval(tf.constant([1.0, 2.0]), tf.constant([1.5, 4.0]))

module = tf.Module()
module.double = tf.function(
    lambda r: xt.replace(r, minutes=r.minutes * 2), input_signature=[RECIPES])
module.total = tf.function(lambda r: tf.reduce_sum(r.minutes))
module.total(recipe)
module.menu = tf.function(lambda m: xt.replace(m, price=m.price + m.recipes.minutes[0]))
module.menu(Menu(recipe, 1.0))
module.recipe = tf.function(lambda: {"it": recipe}, input_signature=[])
module.widened = tf.function(
    lambda i: Interval(i.low - 1, i.high + 1), input_signature=[IntervalSpec([None])])
module.middle = tf.function(lambda i: (i.low + i.high) / 2)
module.middle(interval)
tf.saved_model.save(module, FOLDER + "/model", signatures={"double": module.double})
tf.data.Dataset.from_tensors(recipe).repeat(2).save(FOLDER + "/recipes")
tf.data.Dataset.from_tensor_slices(interval).save(FOLDER + "/intervals")
"""

SECOND = """
import tensorflow as tf
import extensor as xt

@xt.extension_type(name="cookbook.Recipe")
class Recipe:
    title: tf.Tensor
    seconds: tf.Tensor
    unit: str = "metric"

    def hours(self):
        return self.seconds / 3600

    class Spec:
        __version__ = 2

        def upgraded(self, fields):
            seconds = tf.cast(fields["minutes"] * 60, tf.int64)
            return Recipe(fields["title"], seconds, fields["unit"])

        def downgraded(self, recipe):
            minutes = tf.cast(recipe.seconds, tf.float32) / 60
            return {"title": recipe.title, "minutes": minutes, "unit": recipe.unit}

@xt.extension_type(name="cookbook.Menu")
class Menu:
    recipes: Recipe
    price: tf.Tensor

class Interval:
    def __init__(self, low, width):
        self.low, self.width = low, width

    def __tf_type_spec__(self):
        return IntervalSpec(self.low.shape)

class FirstInterval(Interval):
    def __init__(self, low, high):
        self.first_low, self.first_high = low, high

    low = property(lambda self: tf.cast(self.first_low, tf.float64))
    width = property(lambda self: tf.cast(self.first_high, tf.float64) - self.low)

    def __tf_type_spec__(self):
        return IntervalSpec(self.first_low.shape, version=1)

@xt.register_type_spec(name="cookbook.IntervalSpec")
class IntervalSpec(xt.StackableTypeSpec):
    def __init__(self, shape, version=2):
        self.shape, self.version = tf.TensorShape(shape), version

    value_type = Interval

    def serialize(self):
        return self.shape, self.version

    @classmethod
    def deserialize(cls, serialization):
        return cls(*serialization, *[1][: 2 - len(serialization)])

    @property
    def component_specs(self):
        dtype = tf.float32 if self.version == 1 else tf.float64
        return tf.TensorSpec(self.shape, dtype), tf.TensorSpec(self.shape, dtype)

    def to_components(self, value):
        if self.version == 1:
            return value.first_low, value.first_high
        return value.low, value.width

    def from_components(self, components):
        return FirstInterval(*components) if self.version == 1 else Interval(*components)

    def cast(self, value):
        if isinstance(value, Interval):
            version = value.__tf_type_spec__().version
            if version < self.version:
                value = Interval(value.low, value.width)
            elif version > self.version:
                ends = value.low, value.low + value.width
                value = FirstInterval(*[tf.cast(end, tf.float32) for end in ends])
        return super().cast(value)

    def castable_type(self, spec):
        if isinstance(spec, IntervalSpec) and spec.version != self.version:
            shape = self.shape.most_specific_compatible_shape(spec.shape)
            return IntervalSpec(shape)
        return super().castable_type(spec)
"""


@pytest.fixture(scope="module")
def saved(run_python, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("first"))
    run_python(f"FOLDER = {folder!r}\n{FIRST}{SAVE}")
    return folder


def test_what_a_first_version_saved_runs_under_the_second(run_python, saved):
    run_python(
        f"FOLDER = {saved!r}\n{SECOND}"
        + textwrap.dedent("""
        import copy, dataclasses, pickle

        model = tf.saved_model.load(FOLDER + "/model")
        recipe = Recipe(["a", "b"], tf.constant([90, 120], tf.int64))

        def check(value, *seconds):
            assert isinstance(value, Recipe)
            assert value.seconds.dtype == tf.int64
            assert value.seconds.numpy().tolist() == list(seconds), value
            assert value.hours().shape == [len(seconds)]
            assert value.unit == "metric"

        # Functions with a signature, and without.
        doubled = model.double(recipe)
        check(doubled, 180, 240)
        assert repr(doubled).startswith("Recipe(title=")
        assert model.total(recipe).numpy() == 3.5
        check(model.recipe()["it"], 5400, 1230)
        check(model.double(doubled), 360, 480)
        check(tf.function(model.double)(recipe), 180, 240)
        [result] = model.signatures["double"](
            r=tf.constant([1.0]), r_1=tf.constant(["a"])).values()
        check(result, 120)
        menu = model.menu(Menu(recipe, 1.0))
        assert menu.price.numpy() == 2.5
        check(menu.recipes, 90, 120)

        # The older encoding behaves as any value.
        new, old = recipe.__tf_type_spec__(), doubled.__tf_type_spec__()
        assert new != old and not new.is_compatible_with(doubled)
        assert new.castable_type(old) == old.castable_type(new) == new
        assert type(new.cast(doubled)) is Recipe and new.cast(doubled).__tf_type_spec__() == new
        assert old.cast(recipe).__tf_type_spec__() == old
        assert old.cast(doubled) is doubled
        check(xt.replace(doubled, title=["x", "y"]), 180, 240)
        check(dataclasses.replace(doubled, title=tf.constant(["x", "y"])), 180, 240)
        check(copy.deepcopy(doubled), 180, 240)
        check(pickle.loads(pickle.dumps(doubled)), 180, 240)
        check(tf.nest.map_structure(lambda t: t, doubled, expand_composites=True), 180, 240)
        match doubled:
            case Recipe(title=title, seconds=seconds):
                assert seconds.numpy().tolist() == [180, 240]
        try:
            doubled.seconds = 1
        except AttributeError:
            pass
        else:
            raise AssertionError("assigned")

        # Both encodings meet in the newest.
        for first in (True, False):
            choose = tf.function(lambda yes: tf.cond(yes, lambda: recipe, lambda: doubled))
            chosen = choose(tf.constant(first))
            assert type(chosen) is Recipe
            check(chosen, *((90, 120) if first else (180, 240)))

        @tf.function
        def loop(n):
            return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, recipe), (0, doubled))[1]

        check(loop(tf.constant(0)), 180, 240)
        check(loop(tf.constant(2)), 90, 120)

        data = tf.data.Dataset.load(FOLDER + "/recipes")
        for value in data:
            check(value, 5400, 1230)
        [both] = data.batch(2)
        assert both.seconds.numpy().tolist() == [[5400, 1230]] * 2
        assert [x.numpy().tolist() for x in data.map(lambda x: x.seconds)] == [[5400, 1230]] * 2
        [*_, last] = data.concatenate(tf.data.Dataset.from_tensors(recipe))
        check(last, 90, 120)

        # The one by hand.
        interval = Interval(*tf.constant([[1.0, 2.0], [2.0, 4.0]], tf.float64))
        wide = model.widened(interval)
        assert isinstance(wide, Interval)
        assert wide.low.numpy().tolist() == [0.0, 1.0] and wide.low.dtype == tf.float64
        assert wide.width.numpy().tolist() == [4.0, 6.0]
        assert model.middle(interval).numpy().tolist() == [2.0, 4.0]
        newest = interval.__tf_type_spec__().cast(wide)
        assert type(newest) is Interval and newest.width.numpy().tolist() == [4.0, 6.0]
        widths = [i.width.numpy() for i in tf.data.Dataset.load(FOLDER + "/intervals")]
        assert widths == [0.5, 2.0]

        # Static data that differs is refused.
        for call in (model.double, model.total):
            try:
                call(xt.replace(recipe, unit="imperial"))
            except (TypeError, ValueError) as error:
                assert "unit='imperial'" in str(error), error
            else:
                raise AssertionError("other static data was taken")
    """)
    )


def test_what_was_loaded_is_saved_again_in_the_encoding_it_has(run_python, saved, tmp_path):
    run_python(
        f"FOLDER = {saved!r}\nAGAIN = {str(tmp_path)!r}\n{SECOND}"
        + textwrap.dedent("""
        model = tf.saved_model.load(FOLDER + "/model")
        recipe = Recipe(["a"], tf.constant([90], tf.int64))
        module = tf.Module()
        module.double = model.double
        module.later = tf.function(lambda r: xt.replace(r, seconds=r.seconds + 1))
        module.later(recipe)
        tf.saved_model.save(module, AGAIN)
    """)
    )
    run_python(
        f"AGAIN = {str(tmp_path)!r}\n{SECOND}"
        + textwrap.dedent("""
        model = tf.saved_model.load(AGAIN)
        recipe = Recipe(["a"], tf.constant([90], tf.int64))
        assert model.double(recipe).seconds.numpy().tolist() == [180]
        later = model.later(recipe)
        assert type(later) is Recipe and later.seconds.numpy().tolist() == [91]
        spec = recipe.__tf_type_spec__()
        assert spec.serialize()[0] == 2 and type(spec).deserialize(spec.serialize()) == spec
    """)
    )
    done = run_python(
        f"AGAIN = {str(tmp_path)!r}\n{FIRST}tf.saved_model.load(AGAIN)\n", check=False
    )
    assert done.returncode != 0
    assert "expected version 1 of the type, or an older one, got version 2" in done.stderr


# Without a process of their own.


@xt.extension_type(name="test_migration.First")
class First:
    minutes: tf.Tensor
    unit: str = "metric"


SERIALIZED = First([1.0]).__tf_type_spec__().serialize()


def second(**members):
    class Cup:
        seconds: tf.Tensor
        unit: str = "metric"
        Spec = type("Spec", (), {"__version__": 2, **members})

    Cup.__annotations__ = {"seconds": tf.Tensor, "unit": str}
    return xt.extension_type(Cup)


def test_a_version_without_a_way_to_the_newest_is_an_error_that_names_the_method():
    cup = second()
    old = cup.Spec.deserialize(SERIALIZED)
    value = old.from_components({"minutes": tf.constant([1.0])})
    with pytest.raises(ProtocolError, match=r"version 1 and .*Define upgraded\(self, fields\)"):
        value.seconds  # noqa: B018
    with pytest.raises(ProtocolError, match=r"Define downgraded\(self, value\) in `class Spec`"):
        old.cast(cup([1.0]))
    assert old.cast(value) is value


def test_what_upgraded_and_downgraded_return_is_checked():
    cup = second(
        upgraded=lambda self, fields: fields,
        downgraded=lambda self, value: {"seconds": value.seconds, "unit": value.unit},
    )
    old = cup.Spec.deserialize(SERIALIZED)
    value = old.from_components({"minutes": tf.constant([1.0])})
    with pytest.raises(ProtocolError, match=r"upgraded: expected a .*Cup, got a mappingproxy"):
        value.seconds  # noqa: B018
    with pytest.raises(FieldError, match=r"of version 1: minutes, unit, got seconds, unit"):
        old.cast(cup([1.0]))
    wrong = second(downgraded=lambda self, value: {"minutes": value.seconds, "unit": "imperial"})
    old = wrong.Spec.deserialize(SERIALIZED)
    with pytest.raises(TypeError, match=r"unit='metric', version=1\), got .*unit='imperial'"):
        old.cast(wrong([1.0]))


def test_versions_in_between_are_distinct():
    cup = second(
        __version__=3,
        upgraded=lambda self, fields: cup(
            fields["minutes"] * {1: 60.0, 2: 1.0}[self.__version__], fields["unit"]
        ),
    )
    old = [cup.Spec.deserialize(SERIALIZED), cup.Spec.deserialize((2, *SERIALIZED))]
    assert old[0] != old[1]
    values = [spec.from_components({"minutes": tf.constant([2.0])}) for spec in old]
    assert [value.seconds.numpy().tolist() for value in values] == [[120.0], [2.0]]
    newest = cup([1.0]).__tf_type_spec__()
    assert old[0].castable_type(old[1]) == old[1].castable_type(old[0]) == newest
    assert [newest.cast(value).seconds.numpy().tolist() for value in values] == [[120.0], [2.0]]
    with pytest.raises(RegistrationError, match=r"expected version 3 .*got version 4"):
        cup.Spec.deserialize((4, *SERIALIZED))


def test_an_older_value_obeys_the_laws():
    cup = second(upgraded=lambda self, fields: cup(fields["minutes"], fields["unit"]))
    values = [
        cup.Spec.deserialize(First(numbers).__tf_type_spec__().serialize()).from_components(
            {"minutes": tf.constant(numbers)}
        )
        for numbers in ([1.0], [1.0, 2.0])
    ]
    xt.testing.check_extension_type(values)


def test_a_function_of_an_older_version_is_served_under_the_names_that_it_had():
    cup = second(upgraded=lambda self, fields: cup(fields["minutes"] * 60, fields["unit"]))
    old = cup.Spec.deserialize(SERIALIZED)
    signature = xt.serving.flat_signature(lambda x: {"total": x.seconds, "x": x}, old)
    assert [component.name for component in signature.inputs.components] == ["minutes"]
    served = signature.function(minutes=tf.constant([2.0]))
    assert {name: tensor.numpy().tolist() for name, tensor in served.items()} == {
        "total": [120.0],
        "x__minutes": [2.0],
    }
    decoded = signature.decode(served)["x"]
    assert decoded.__tf_type_spec__().is_subtype_of(old)
    assert decoded.seconds.numpy().tolist() == [120.0]


def test_a_field_with_the_name_of_a_method_of_its_spec_is_served_by_its_place():
    @xt.extension_type
    class Package:
        upgraded: tuple[tf.Tensor, ...]

    layout = xt.serving.Layout({"p": xt.spec_of(Package(([1.0], [2.0])))})
    assert [str(component.path) for component in layout.components] == [
        "p.upgraded.0",
        "p.upgraded.1",
    ]


@pytest.mark.parametrize("version", [0, "2", None])
def test_a_version_is_a_number_that_counts_from_one(version):
    with pytest.raises(ProtocolError, match=r"__version__: expected 1, 2, 3 and so on"):
        second(__version__=version)


def test_a_field_may_be_called_as_what_a_spec_has_of_its_own():
    @xt.extension_type
    class Package:
        version: int
        upgraded: tf.Tensor

    value = Package(3, [1.0])
    assert value.__tf_type_spec__().version == 3
    assert tf.function(lambda p: p)(value).version == 3


# Extensor's own.


def folders():
    return sorted(path.parent for path in DATA.glob("*/records"))


@pytest.mark.parametrize("folder", folders(), ids=lambda path: path.name)
def test_a_stored_model_runs(run_python, folder):
    run_python(f"""
        import tensorflow as tf
        import extensor as xt

        steps = xt.DenseStructuredTensor(
            [3], {{"minutes": [5.0, 20.0, 8.0], "tool": ["bowl", "oven", ""]}})
        recipes = xt.DenseStructuredTensor([2], {{
            "title": ["Snickerdoodles", "Flapjacks"],
            "author": xt.DenseStructuredTensor([2], {{"age": [31, 45]}}),
            "steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3]),
            "tags": tf.ragged.constant([["sweet"], []], dtype=tf.string),
            "vector": [[1.0, 2.0], [3.0, 4.0]],
        }})
        model = tf.saved_model.load({str(folder / "records")!r})
        scored = model.score(recipes)
        assert isinstance(scored, xt.DenseStructuredTensor)
        assert scored["total"].numpy().tolist() == [50.0, 16.0]
        assert scored["steps", "minutes"].to_list() == [[10.0, 40.0], [16.0]]
        assert scored.without("total", "steps").to_py() == recipes.without("steps").to_py()
        assert scored.field_names() == ("title", "author", "steps", "tags", "vector", "total")
        assert model.score(recipes[:1])["total"].numpy().tolist() == [50.0]
        assert model.score(recipes.to_py())["total"].numpy().tolist() == [50.0, 16.0]
        assert model.row(recipes["steps"]).to_py() == steps[:2].to_py()
        assert model.first(steps[:1]).to_py() == steps[:1].to_py()

        from tests.stored_model import LABEL, Dish
        model = tf.saved_model.load({str(folder / "dishes")!r})
        dish = model.double(Dish([1.0, 2.0], [3.0, 4.0], LABEL))
        assert type(dish) is Dish and dish.label == LABEL
        assert dish.grams.numpy().tolist() == [2.0, 4.0]
        assert [part.numpy() for part in dish.parts] == [3.0, 4.0]
    """)


def test_there_is_a_stored_model_and_all_of_them_are_small():
    assert folders()
    for folder in folders():
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) < 100_000


@pytest.mark.parametrize(
    ("spec_class", "serialization"),
    [
        (xt.DenseStructuredTensorSpec, (tf.TensorShape([2]), (), (), (), "more")),
        (xt.RaggedStructuredTensorSpec, (tf.TensorShape([2, None]),)),
    ],
)
def test_a_spec_of_a_newer_extensor_is_an_error_that_names_it(spec_class, serialization):
    with pytest.raises(
        RegistrationError, match=r"parts, .*Load the data with the version of extensor"
    ):
        spec_class.deserialize(serialization)
