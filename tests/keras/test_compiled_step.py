"""Models with jit_compile=True: fields that the model does not read may have any type."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

pytestmark = pytest.mark.whole("compiles steps with XLA")

COUNT = 6
RANDOM = np.random.default_rng(5)
RECORDS = xt.DenseStructuredTensor(
    [COUNT],
    {
        "a_title": tf.constant([f"t{i}" for i in range(COUNT)]),  # the first tensor is of strings
        "x": tf.constant(RANDOM.random((COUNT, 3), np.float32)),
        "minutes": tf.RaggedTensor.from_row_lengths(tf.range(9.0), [0, 3, 1, 2, 0, 3]),
        "names": tf.RaggedTensor.from_row_lengths(["n"] * 9, [3, 0, 2, 1, 3, 0]),
    },
)
Y = RANDOM.random((COUNT, 1), np.float32)

READS = {
    "dense": lambda records: records["x"],
    "ragged": lambda records: tf.reduce_sum(records["minutes"], axis=1)[:, tf.newaxis],
}


class Net(xt.keras.Model):
    def __init__(self, read):
        super().__init__()
        self.read, self.dense = read, keras.layers.Dense(1)
        self.normal = keras.layers.BatchNormalization()

    def call(self, records, training=False):
        return self.normal(self.dense(self.read(records)), training=training)


class Stepping(Net):
    """A model with steps of its own."""

    def train_step(self, data):
        assert isinstance(data[0], xt.StructuredTensor)
        return super().train_step(data)

    def test_step(self, data):
        assert isinstance(data[0], xt.StructuredTensor)
        return super().test_step(data)

    def predict_step(self, data):
        assert isinstance(data[0] if isinstance(data, tuple) else data, xt.StructuredTensor)
        return super().predict_step(data)


def functional(read):
    record = xt.keras.Input(tf.data.Dataset.from_tensor_slices(RECORDS).batch(2).element_spec)
    features = record["x"] if read is READS["dense"] else xt.keras.Lambda(read)(record)
    return xt.keras.Model(record, keras.layers.Dense(1)(features))


FORMS = {"subclassed": Net, "own steps": Stepping, "functional": functional}


def results(make, read, jit_compile, steps=1):
    """Everything that training computes."""
    keras.utils.set_random_seed(2)
    model = make(read)
    model(RECORDS)
    model.compile(
        keras.optimizers.SGD(0.01), "mse", metrics=["mae"],
        jit_compile=jit_compile, steps_per_execution=steps,
    )  # fmt: skip
    weights = np.linspace(0.5, 2.0, COUNT, dtype=np.float32)
    # Batches of one size, because XLA compiles again for another.
    options = {"batch_size": 3, "verbose": 0}
    fit = model.fit(RECORDS, Y, epochs=2, shuffle=False, sample_weight=weights, **options)
    assert model.jit_compile is jit_compile
    return [
        *fit.history["loss"],
        *fit.history["mae"],
        *model.evaluate(RECORDS, Y, **options),
        *model.predict(RECORDS, **options)[:, 0],
        *np.concatenate([np.ravel(weight) for weight in model.get_weights()]),
    ]


@pytest.mark.parametrize(
    ("form", "read"), [("subclassed", "dense"), ("own steps", "ragged"), ("functional", "dense")]
)
def test_fields_that_are_not_read_are_not_compiled(read, form):
    compiled = results(FORMS[form], READS[read], True)
    np.testing.assert_allclose(
        compiled, results(FORMS[form], READS[read], False), rtol=1e-3, atol=1e-5
    )


def test_several_steps_in_one_execution_are_compiled():
    compiled = results(Net, READS["dense"], True, steps=2)
    np.testing.assert_allclose(
        compiled, results(Net, READS["dense"], False, 2), rtol=1e-3, atol=1e-5
    )


CALLS = {
    "fit": lambda model: model.fit(RECORDS, Y, verbose=0),
    "evaluate": lambda model: model.evaluate(RECORDS, Y, verbose=0),
    "predict": lambda model: model.predict(RECORDS, verbose=0),
    "train_on_batch": lambda model: model.train_on_batch(RECORDS, Y),
    "test_on_batch": lambda model: model.test_on_batch(RECORDS, Y),
    "predict_on_batch": lambda model: model.predict_on_batch(RECORDS),
}
BAD = {
    "strings": (lambda r: tf.cast(tf.strings.length(r["a_title"]), "float32")[:, None], "a_title"),
    "ragged strings": (
        lambda r: tf.reduce_sum(
            tf.ragged.map_flat_values(
                lambda names: tf.cast(tf.strings.length(names), tf.float32), r["names"]
            ), axis=1)[:, None],
        "names",
    ),
    "padding": (lambda r: tf.reduce_sum(r["minutes"].to_tensor(), axis=1)[:, None], "minutes"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "how"), [*(("strings", how) for how in CALLS), ("padding", "fit"),
                      ("padding", "predict"), ("ragged strings", "fit")],
)  # fmt: skip
def test_an_error_names_the_field_that_xla_cannot_take(case, how):
    read, name = BAD[case]
    model = Net(read)
    model.compile("sgd", "mse", jit_compile=True)
    with pytest.raises(errors.UnsupportedTypeError) as raised:
        CALLS[how](model)
    assert raised.value.path.startswith(f"{model.name}: input {name}")
    assert "jit_compile=False" in raised.value.fix


def test_strings_pass_through_a_compiled_model():
    class Scored(xt.keras.Model):
        def call(self, records):
            return records.with_updates(x=records["x"] * 2.0)

    model = Scored()
    model.compile(jit_compile=True)
    result = model.predict(RECORDS, batch_size=4, verbose=0)
    assert result["a_title"].numpy().tolist() == RECORDS["a_title"].numpy().tolist()
    assert result["names"].to_list() == RECORDS["names"].to_list()
    assert result["minutes"].to_list() == RECORDS["minutes"].to_list()
    np.testing.assert_array_equal(result["x"], RECORDS["x"] * 2.0)


def test_a_model_of_tensors_is_compiled_as_in_keras():
    class Doubled(xt.keras.Model):
        def call(self, x):
            return tf.ragged.constant([[1.0], []]).to_tensor() * 0 + x

    model = Doubled()
    model.compile(jit_compile=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="XLA"):
        model.predict(np.ones([2, 1], np.float32), verbose=0)
