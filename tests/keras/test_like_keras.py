"""A functional model of values beside the same model of plain Keras: what is seen from outside."""

import keras
import numpy as np
import pytest

import extensor as xt
from tests.keras import sample_models as sample

pytestmark = pytest.mark.whole("trains each kind of model twice, also with plain Keras")

RECORDS = sample.recipes()
SPEC = sample.batches().element_spec[0]
ONES, ZEROS = np.ones([10, 1], "f"), np.zeros([10, 1], "f")


class Taste(xt.keras.Layer):
    def call(self, records):
        return records["taste"]


def twins():
    """The two models, with the input of each."""
    # Only the counters of names begin anew: to free memory takes a second late in a run.
    keras.backend.clear_session(free_memory=False)
    inputs = (xt.keras.Input(SPEC, name="recipe"), keras.Input((3,), name="recipe"))
    firsts = (Taste(name="first"), keras.layers.Identity(name="first"))
    data = (RECORDS, RECORDS["taste"].numpy())
    classes = (xt.keras.Model, keras.Model)
    for placeholder, first, x, model_class in zip(inputs, firsts, data, classes, strict=True):
        keras.backend.clear_session(free_memory=False)
        keras.utils.set_random_seed(1)
        hidden = keras.layers.Dense(4, name="hidden")(first(placeholder))
        a = keras.layers.Dense(1, name="a")(hidden)
        b = keras.layers.Dense(1, name="b")(keras.layers.Dropout(0.5, name="drop")(hidden))
        yield model_class(placeholder, [a, b]), x


def fitted(by_name=False, run_eagerly=True, **arguments):
    def history(model, x):
        model.compile("sgd", run_eagerly=run_eagerly, **arguments)
        targets = {"a": ONES, "b": ZEROS} if by_name else [ONES, ZEROS]
        history = model.fit(x, targets, shuffle=False, verbose=0, validation_split=0.2).history
        return {name: [round(float(value), 5) for value in part] for name, part in history.items()}

    return history


def printed(model, _):
    lines = []
    model.summary(print_fn=lines.append)
    return [line for line in "\n".join(lines).split("\n")[:1]]


def in_callback(model, x):
    names = []
    callback = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: names.append(
            (callback.model.name, callback.model.get_layer("hidden").units, sorted(logs))
        )
    )
    model.compile("sgd", ["mse", "mae"], run_eagerly=True)
    model.fit(x, [ONES, ZEROS], verbose=0, callbacks=[callback])
    return names


SEEN = {
    "name": lambda model, _: (type(model).__name__, model.name, model.path),
    "layers": lambda model, _: [layer.name for layer in model.layers],
    "names": lambda model, _: (model.output_names, [tensor.name for tensor in model.inputs]),
    "input_names": lambda model, _: hasattr(model, "input_names"),
    "shapes": lambda model, _: (model.output_shape, [out.shape for out in model.outputs]),
    "variables": lambda model, _: ([v.path for v in model.variables], model.count_params()),
    "a missing layer": lambda model, _: model.get_layer("none"),
    "a layer by index": lambda model, _: model.get_layer(index=2).name,
    "a layer beyond": lambda model, _: model.get_layer(index=99),
    "new layers": lambda model, _: setattr(model, "layers", []),
    "features": lambda model, x: type(model)(model.inputs, model.layers[-2].output)(x).shape,
    "configuration": lambda model, _: (
        sorted(model.get_config()),
        model.get_config()["input_layers"],
        model.get_config()["output_layers"],
    ),
    "stateless_call": lambda model, x: [
        out.shape
        for out in model.stateless_call(
            model.trainable_variables, model.non_trainable_variables, x
        )[0]
    ],
    "compute_output_shape": lambda model, _: model.compute_output_shape(model.input_shape),
    "an input in a list": lambda model, x: [out.shape for out in model([x])],
    "the first line of summary": printed,
    "a callback": in_callback,
    "one loss": fitted(loss="mse"),
    "losses": fitted(run_eagerly=False, loss=["mse", "mse"]),
    "losses by name": fitted(by_name=True, loss={"a": "mse", "b": "mse"}),
    "a lambda": fitted(loss=lambda y, out: keras.ops.mean((y - out) ** 2, -1)),
    "metrics by name": fitted(loss=["mse", "mae"], metrics={"a": ["mae"]}, loss_weights=[0.2, 0.8]),
    "everything by name": fitted(
        by_name=True,
        run_eagerly=False,
        loss={"a": "mse", "b": "mae"},
        metrics={"a": ["mae", keras.metrics.MeanSquaredError(name="own")]},
        weighted_metrics={"b": ["mae"]},
        loss_weights={"a": 0.3},
    ),
    "metrics": fitted(loss=["mse", "mse"], metrics=["mae", "mse"]),
    "too few losses": fitted(loss=["mse"]),
    "an unknown loss": fitted(by_name=True, loss={"none": "mse"}),
    "an unknown weight": fitted(loss=["mse", "mse"], loss_weights={"none": 1.0}),
    "an unknown metric": fitted(loss=["mse", "mse"], metrics={"none": ["mae"]}),
}


# A list of one input, which Keras takes with this warning.
@pytest.mark.filterwarnings("ignore:The structure of `inputs` doesn't match:UserWarning")
@pytest.mark.filterwarnings("ignore:Gradients do not exist:UserWarning")
@pytest.mark.parametrize("case", SEEN)
def test_a_functional_model_looks_as_that_of_keras(case):
    seen = []
    for model, x in twins():
        try:
            seen.append(SEEN[case](model, x))
        except Exception as error:
            seen.append((type(error), str(error)))
    assert repr(seen[0]) == repr(seen[1])
