"""Classes of Keras that get a value of ours: they work, or say what `xt.keras` has instead."""

import functools
import inspect
import json
import operator
import re

import keras
import pytest
import tensorflow as tf

import extensor as xt
import extensor.keras
from extensor import errors
from tests.keras.plain_keras import DOORS, INPUTS, VALUES, OwnLayer, OwnModel

SYMBOLIC = {
    **{
        f"{name}, symbolic": functools.partial(xt.keras.Input, xt.spec_of(value))
        for name, value in VALUES.items()
    },
    "ragged, symbolic": lambda: xt.keras.Input(tf.RaggedTensorSpec([None, None], tf.float32)),
}


SPECS = {name: xt.spec_of(value) for name, value in VALUES.items()}


def check(door, value):
    """Checks that a door works, or that its error names what exists in `xt.keras`."""
    raised = None
    try:
        door(value)
    except (errors.ExtensorError, tf.errors.InvalidArgumentError) as error:
        raised = error
    if isinstance(raised, tf.errors.InvalidArgumentError):  # counted when the graph runs
        assert "expected no nulls" in str(raised)
        assert "is] [3]" in str(raised)
    elif isinstance(raised, errors.NullError):
        assert "3 nulls" in str(raised)
    elif raised is not None:
        names = re.findall(r"\bxt\.keras\.([\w.]*\w)", str(raised))
        assert names, raised
        for name in names:
            operator.attrgetter(name)(xt.keras)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("door", DOORS)
def test_a_class_of_keras_takes_a_value_or_names_what_xt_keras_has(door, value):
    check(DOORS[door], VALUES[value])


# A dataset cannot hold placeholders.
@pytest.mark.parametrize("door", ["fit", "evaluate"])
def test_a_generator_of_records_names_what_xt_keras_has(door):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse")
    batches = (each for each in [(VALUES["records"], tf.zeros([2, 1]))])
    fit = {"steps_per_epoch": 1, "shuffle": False}
    steps = fit if door == "fit" else {"steps": 1}
    with pytest.raises(
        xt.errors.DTypeError, match=r"extension values in the data\. Use xt\.keras\.Seq"
    ):
        getattr(model, door)(batches, verbose=0, **steps)


def test_concrete_records_are_taken_by_models_of_ours_and_named_by_others():
    value = xt.struct.constant_value([{"x": 1.0}, {"x": 2.0}])

    class OneField(xt.keras.Model):
        def call(self, records):
            return records["x"][:, None]

    model = OneField()
    assert model.predict(value, verbose=0).tolist() == [[1.0], [2.0]]
    with pytest.raises(
        xt.errors.DTypeError, match=r"a StructuredTensorValue\. Give value\.to_tensor\(\)"
    ):
        model(value)
    with pytest.raises(xt.errors.DTypeError, match=r"got a StructuredTensorValue\. Give a tensor"):
        keras.layers.Dense(1)(value)


SYMBOLIC_DOORS = {name: door for name, door in DOORS.items() if "ataset" not in name}


@pytest.mark.parametrize("value", SYMBOLIC)
@pytest.mark.parametrize("door", SYMBOLIC_DOORS)
def test_so_it_is_with_placeholders(door, value):
    check(SYMBOLIC_DOORS[door], SYMBOLIC[value]())


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("door", INPUTS)
def test_so_it_is_with_specs(door, spec):
    with pytest.raises(errors.DTypeError, match=r"xt\.keras\.Input"):
        INPUTS[door](SPECS[spec])


def test_the_input_of_a_model_of_ours_is_a_placeholder_too():
    recipe = xt.keras.Input(SPECS["records"])
    model = xt.keras.Model(recipe, keras.layers.Dense(1)(recipe["x"]))
    with pytest.raises(errors.DTypeError, match=r"xt\.keras\.Layer"):
        keras.layers.Dense(1)(model.input)


ADVICE = {
    "Lambda": (lambda: keras.layers.Lambda(lambda x: x), "Use xt.keras.Lambda,"),
    "GRU": (lambda: keras.layers.GRU(2), "Use xt.keras.layers.ListRNN,"),
    "a user's layer": (OwnLayer, "Derive OwnLayer from xt.keras.Layer:"),
    "a user's model": (OwnModel, "Derive OwnModel from xt.keras.Model:"),
    "Sequential": (lambda: keras.Sequential([keras.layers.Dense(1)]), "Use xt.keras.Sequential,"),
}


@pytest.mark.parametrize("case", ADVICE)
def test_the_name_fits_the_class(case):
    make, advice = ADVICE[case]
    with pytest.raises(errors.DTypeError) as caught:
        make()(VALUES["records"])
    assert caught.value.fix.startswith(advice)
    assert caught.value.received == "a DenseStructuredTensor"
    assert "StructuredTensor shape" not in str(caught.value)  # nor what it holds


def test_errors_of_a_users_layer_that_takes_a_value_by_name_are_its_own():
    class Failing(keras.layers.Layer):
        def call(self, inputs, records=None):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        Failing()(tf.zeros([2]), records=VALUES["records"])


FRESH = """
import sys
import tensorflow as tf
import extensor as xt
import keras

records = xt.DenseStructuredTensor([2], {"x": tf.zeros([2, 3])})
spec = xt.spec_of(records)
for door in (
    lambda: keras.layers.Dense(1)(records),
    lambda: keras.Sequential([keras.layers.Dense(1)]).predict(records),
    lambda: keras.Input(type_spec=spec),
    lambda: keras.layers.StringLookup().adapt(records),
):
    try:
        door()
    except xt.errors.DTypeError as error:
        assert "xt.keras." in str(error), error
    else:
        raise AssertionError("no error")
lookup = keras.layers.StringLookup(vocabulary=["a", "b"])
assert lookup(xt.types.MaskedTensor(["b", "a"])).numpy().tolist() == [2, 1]
assert "extensor.keras" not in sys.modules
"""


@pytest.mark.whole("starts a process")
def test_import_extensor_is_enough(run_python):
    run_python(FRESH)


PLAIN = """
import json, traceback
import keras
import numpy as np
import tensorflow as tf
IMPORT

x = np.ones([2, 3], "float32")
layer = keras.layers.Dense(1, kernel_initializer="ones", name="dense")
model = keras.Sequential([layer], name="model")
model.compile("sgd", "mse")


class Failing(keras.layers.Layer):
    def call(self, inputs):
        raise LookupError("mine")


def nested():
    return keras.Sequential([Failing(name="failing")], name="outer")(x)


DOORS = {
    "a layer": lambda: layer(x), "by name": lambda: layer(inputs=x), "a model": lambda: model(x),
    "fit": lambda: model.fit(x, x[:, :1], verbose=0).history,
    "predict": lambda: model.predict(x, verbose=0), "a graph": lambda: tf.function(layer)(x),
    "an input": lambda: keras.Input([3], name="x").shape,
    "adapt": lambda: keras.layers.Normalization().adapt(data=x),
    "strings": lambda: keras.layers.StringLookup(vocabulary=["a"])(inputs=[["a", "b"]]),
    "wrong shape": lambda: layer(x[:, :2]), "no tensor": lambda: layer("a"),
    "no layer": lambda: model.add(3), "no input": lambda: keras.Model(3, 4),
    "no shape": lambda: keras.Input("a"), "no such argument": lambda: keras.Input(type_spec=3),
    "no data": lambda: model.fit("a"), "no strings": lambda: keras.layers.StringLookup()(3),
    "of the user": nested, "not adapted": lambda: keras.layers.StringLookup().adapt(3),
}
found = {}
for name, door in DOORS.items():
    try:
        found[name] = repr(door())
    except Exception as error:
        frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        own = [name for name in frames if "extensor" in name.split("/")]
        found[name] = type(error).__name__, str(error), own
print(json.dumps(found))
"""


@pytest.mark.whole("starts two processes")
def test_plain_keras_does_the_same_with_and_without_extensor(run_python):
    plain, ours = (
        json.loads(run_python(PLAIN.replace("IMPORT", line)).stdout.splitlines()[-1])
        for line in ("", "import extensor.keras")
    )
    assert ours == plain
    assert sum(isinstance(result, list) for result in plain.values()) >= 8


@pytest.mark.parametrize(
    "patch",
    [patch for patch in xt.patches() if patch.target.startswith("keras.")],
    ids=lambda patch: patch.target,
)
def test_a_change_of_keras_keeps_the_name_and_the_parameters(patch):
    found = operator.attrgetter(patch.target.partition(".")[2])(keras)
    assert inspect.signature(found) == inspect.signature(found.__wrapped__)
    assert found.__name__ == found.__wrapped__.__name__
    assert found.__doc__ == found.__wrapped__.__doc__


def test_on_another_backend_the_advice_is_arrays(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    records = xt.DenseStructuredTensor([2], {"x": [1.0, 2.0]})
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    dataset = tf.data.Dataset.from_tensors((records, [1.0, 2.0]))
    for call in (
        lambda: model.fit(dataset),
        lambda: model.predict(records),
        lambda: keras.layers.Dense(1)(records),
        lambda: keras.Input(xt.spec_of(records)),
    ):
        with pytest.raises(errors.DTypeError, match=r"Give arrays: xt\.data\.arrays\(dataset\)"):
            call()
