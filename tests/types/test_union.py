"""UnionTensor: rows of several variants keep their order in every API."""

import copy
import datetime as dt
import pickle

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor.types import MaskedTensor, UnionTensor

Spec = UnionTensor.Spec

VALUES = [1, "a", {"x": 2, "t": ["q", "r"]}, None, [1.0, 2.0], 2.5, "b", True, 3]
PLAIN = [1, b"a", {"x": 2, "t": ["q", "r"]}, None, [1.0, 2.0], 2.5, b"b", True, 3]


def amounts(x=(500.0, 250.0)):
    return UnionTensor([0, 1, 0], {"grams": x, "text": ["a pinch"]})


def everything():
    return UnionTensor.from_values(VALUES)


def in_rows():
    """A ragged union whose variants are records, lists, masked numbers and text."""
    records = xt.DenseStructuredTensor([2], {"x": [1, 2], "l": tf.ragged.constant([[1], [2, 3]])})
    return UnionTensor(
        tf.ragged.constant([[0, 1, 3], [], [0, 2]], tf.int8),
        {
            "record": records,
            "list": tf.ragged.constant([[b"a", b"b"]]),
            "masked": MaskedTensor([7], [False]),
            "text": ["t"],
        },
    )


# What it holds.


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize(
    "values",
    [
        [amounts(), amounts()[:2]],
        [everything()],
        [everything()[2], everything()[0]],
        [in_rows()],
        [UnionTensor([[0, 1], [1, 0]], {"a": [1.0, 2.0], "b": ["x", "y"]})],
    ],
    ids=["vector", "every kind", "single", "ragged", "matrix"],
)
def test_the_laws_hold(values):
    xt.testing.check_extension_type(values)


def test_values_come_back():
    assert everything().to_py() == PLAIN
    assert everything().names == (*("float", "string", "record", "list", "bool", "null"),)
    assert in_rows().to_py() == [
        [{"x": 1, "l": [1]}, [b"a", b"b"], b"t"],
        [],
        [{"x": 2, "l": [2, 3]}, None],
    ]


def test_a_variant_has_its_own_rows_only():
    union = everything()
    assert union.variants["float"].numpy().tolist() == [1, 2.5, 3]
    assert union.codes.dtype == tf.int8
    assert union.shape == [9]
    assert union.rank == 1


def test_its_specs_compare_the_order_of_the_variants():
    one = Spec({"a": tf.TensorSpec([None]), "b": tf.TensorSpec([None], tf.string)})
    other = Spec({"b": tf.TensorSpec([None], tf.string), "a": tf.TensorSpec([None])})
    assert one != other
    assert one == Spec({"a": tf.TensorSpec([3]), "b": tf.TensorSpec([None], tf.string)})


def test_it_is_copied_and_pickled():
    assert copy.deepcopy(everything()).to_py() == PLAIN
    assert pickle.loads(pickle.dumps(everything())).to_py() == PLAIN
    changed = xt.replace(amounts(), variants={"grams": [1.0, 2.0], "text": ["x"]})
    assert changed.to_py() == [1.0, b"x", 2.0]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: UnionTensor([0, 2], {"a": [1.0], "b": ["x"]}), xt.errors.RowError, "from 0 to 1"),
        (lambda: UnionTensor([0, -1], {"a": [1.0], "b": ["x"]}), IndexError, "got -1"),
        (lambda: UnionTensor([0, 256], {"a": [1.0], "b": ["x"]}), IndexError, "got 256"),
        (lambda: UnionTensor([0, 0], {"a": [1.0]}), xt.errors.StructureError, "2 rows"),
        (lambda: UnionTensor([0.5], {"a": [1.0]}), xt.errors.DTypeError, "int64 or int32"),
        (lambda: UnionTensor([0], {}), xt.errors.StructureError, "1 to 128 variants"),
        (lambda: UnionTensor([0], [1.0]), xt.errors.DTypeError, "a mapping from names"),
        (lambda: UnionTensor([0], {1: [1.0]}), xt.errors.DTypeError, "not strings"),
        (lambda: UnionTensor([0], {"a": [1.0]}, names=["b"]), KeyError, "names of the variants"),
        (lambda: UnionTensor.from_values([]), ValueError, "at least one value"),
        (lambda: UnionTensor.from_values([object()]), TypeError, "got object"),
        (
            lambda: UnionTensor.from_values([{"x": 1}, {}]),
            ValueError,
            "record 1: .*as record 0 has",
        ),
        (lambda: amounts()[3], IndexError, "from -3 to 2"),
        (lambda: amounts()[0][0], IndexError, "a single value"),
        (lambda: amounts().is_variant("cups"), KeyError, "grams, text"),
    ],
)
def test_what_does_not_fit_is_an_error(make, error, words):
    with pytest.raises(error, match=words) as caught:
        make()
    assert isinstance(caught.value, xt.errors.ExtensorError)


def test_a_graph_validates_on_request():
    @tf.function
    def make(codes, numbers):
        return UnionTensor(codes, {"a": numbers, "b": ["x"]}, validate=True)

    assert make(tf.constant([0, 1]), tf.constant([1.0])).to_py() == [1.0, b"x"]
    for codes in ([0, 2], [0, 0]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            make(tf.constant(codes), tf.constant([1.0]))


# match.


def test_match_keeps_the_order_of_the_rows():
    union = UnionTensor.from_values([1, "abc", 2, ""])
    lengths = union.match({"int": lambda n: n * 10, "string": tf.strings.length})
    assert lengths.numpy().tolist() == [10, 3, 20, 0]
    assert lengths.shape == [4]


def test_a_number_is_the_result_for_all_rows():
    result = amounts().match({"grams": lambda g: g / 1000, "text": lambda t: 0})
    np.testing.assert_allclose(result, [0.5, 0, 0.25])
    assert result.dtype == tf.float32


def test_results_of_records_are_records():
    union = UnionTensor.from_values([1, "a", 2])
    result = union.match(
        {
            "int": lambda n: xt.DenseStructuredTensor([2], {"n": n, "t": ["", ""]}),
            "string": lambda s: xt.DenseStructuredTensor([1], {"n": [0], "t": s}),
        }
    )
    assert isinstance(result, xt.DenseStructuredTensor)
    assert result["n"].numpy().tolist() == [1, 0, 2]
    assert result["t"].numpy().tolist() == [b"", b"a", b""]


def test_results_of_ragged_tensors_are_a_ragged_tensor():
    result = UnionTensor.from_values(["a b", 1, "c"]).match(
        {"string": tf.strings.split, "int": lambda n: tf.ragged.constant([[b"x", b"y", b"z"]])}
    )
    assert result.to_list() == [[b"a", b"b"], [b"x", b"y", b"z"], [b"c"]]


def test_other_results_are_a_union():
    result = UnionTensor.from_values([1, "a", 2]).match(
        {"int": lambda n: n / 2}, default=tf.identity
    )
    assert isinstance(result, UnionTensor)
    assert result.to_py() == [0.5, b"a", 1.0]
    result = xt.replace(result, codes=[1, 0, 0])
    assert result.to_py() == [b"a", 0.5, 1.0]


def test_match_of_other_shapes():
    functions = {"a": lambda a: a * 2, "b": lambda b: -1.0}
    variants = {"a": [1.0, 2.0], "b": ["x"]}
    assert UnionTensor([[0], [1], [0]], variants).match(functions).numpy().tolist() == [
        *([2.0], [-1.0], [4.0]),
    ]
    assert UnionTensor([0, 1, 0], variants)[2].match(functions).numpy() == 4
    ragged = tf.ragged.constant([[0, 1], [], [0]], tf.int8)
    assert UnionTensor(ragged, variants).match(functions).to_list() == [[2, -1], [], [4]]
    vectors = {"a": lambda a: tf.stack([a, a], 1), "b": lambda b: [[0.0, 7.0]]}
    assert UnionTensor([[0, 1, 0]], variants).match(vectors).numpy().tolist() == [
        [[1, 1], [0, 7], [2, 2]]
    ]
    lists = {
        "a": lambda a: tf.ragged.constant([[1], [2, 3]]),
        "b": lambda b: tf.ragged.constant([[]], tf.int32),
    }
    assert UnionTensor([[0], [1], [0]], variants).match(lists).to_list() == [[[1]], [[]], [[2, 3]]]
    assert UnionTensor([0, 1, 0], variants)[2].match(
        {"a": lambda a: tf.ragged.constant([[2, 3]]), "b": lambda b: tf.ragged.constant([[1]])[:0]}
    ).numpy().tolist() == [2, 3]


def test_match_without_rows_of_a_variant():
    union = amounts()[:1]
    assert union.match({"grams": lambda g: g, "text": lambda t: 0.0}).numpy().tolist() == [500.0]
    assert union[:0].match({"grams": lambda g: g, "text": lambda t: 0.0}).shape == [0]


@pytest.mark.parametrize(
    ("functions", "error", "words"),
    [
        ({"grams": abs}, KeyError, "no function for text"),
        ({"grams": abs, "text": abs, "cups": abs}, KeyError, "a function for 'cups'"),
        ({"grams": lambda g: g[:1], "text": lambda t: 0.0}, ValueError, "a result of 2 rows"),
    ],
)
def test_a_match_that_does_not_fit_is_an_error(functions, error, words):
    with pytest.raises(error, match=words):
        amounts().match(functions)


def test_gradients_go_through_the_variants():
    x, scale = tf.constant([500.0, 250.0]), tf.Variable(2.0)

    @tf.function
    def total(x):
        union = tf.gather(amounts(x), [2, 1, 2, 0])
        return tf.reduce_sum(union.match({"grams": lambda g: g * scale, "text": lambda t: 1.0}))

    with tf.GradientTape() as tape:
        tape.watch(x)
        value = total(x)
    assert value.numpy() == 2 * (250 + 250 + 500) + 1
    dx, dscale = tape.gradient(value, [x, scale])
    assert tf.convert_to_tensor(dx).numpy().tolist() == [2, 4]
    assert dscale.numpy() == 1000


# Conversions and casts.


def test_a_spec_casts_python_values():
    spec = Spec(
        {
            "number": tf.TensorSpec([None]),
            "text": tf.TensorSpec([None], tf.string),
            "null": MaskedTensor.Spec(tf.TensorSpec([None], tf.bool)),
        }
    )
    union = UnionTensor.from_values([1, "a", 2.5, None], spec)
    assert union.to_py() == [1.0, b"a", 2.5, None]
    assert spec.is_compatible_with(union)
    assert UnionTensor.from_values([], spec).shape == [0]
    with pytest.raises(xt.errors.DTypeError, match="record 1: expected a value of one"):
        UnionTensor.from_values([1, [2]], spec)
    square = Spec({"n": tf.TensorSpec([None], tf.int32)}, [2, 2])
    assert square.cast([[1, 2], [3, 4]]).to_py() == [[1, 2], [3, 4]]


def test_a_union_casts_to_more_variants_in_another_order():
    spec = Spec(
        {
            "text": tf.TensorSpec([None], tf.string),
            "flag": tf.TensorSpec([None], tf.bool),
            "grams": tf.TensorSpec([None]),
        }
    )
    cast = spec.cast(amounts())
    assert cast.names == ("text", "flag", "grams")
    assert cast.to_py() == amounts().to_py()
    joined = Spec.of(amounts()).castable_type(spec)
    assert joined.names == ("grams", "text", "flag")


def test_records_in_a_variant_cast_as_elsewhere():
    def of(unit, **types):
        spec = xt.DenseStructuredTensorSpec([None], {"at": tf.TensorSpec([None], unit)}, **types)
        return Spec({"record": spec, "text": tf.TensorSpec([None], tf.string)})

    record = xt.DenseStructuredTensor([1], {"at": tf.constant([5], tf.int64)})
    plain = UnionTensor([0, 1], {"record": record, "text": ["a"]})
    seconds = of(tf.int64, types={"at": "timestamp[s]"}).cast(plain)
    assert seconds.to_py()[0] == {"at": dt.datetime(1970, 1, 1, 0, 0, 5)}
    fine = of(tf.int64, types={"at": "timestamp[us]"})
    assert fine.cast(seconds).variants["record"]["at"].numpy().tolist() == [5_000_000]
    with pytest.raises(xt.errors.DTypeError, match="at: expected int64"):
        Spec.of(seconds).cast(fine.cast(plain))


@pytest.mark.whole("draws many values")
@settings(max_examples=25)
@given(st.lists(st.sampled_from(VALUES), min_size=1, max_size=6), st.data())
def test_rows_are_those_of_a_list(values, data):
    union = UnionTensor.from_values(values)
    plain = [PLAIN[VALUES.index(value)] for value in values]
    numbers = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=5))
    assert union.to_py() == plain
    assert tf.gather(union, tf.constant(numbers, tf.int32)).to_py() == [plain[i] for i in numbers]
    part = data.draw(st.slices(len(values)))
    assert union[part].to_py() == plain[part]
    assert tf.concat([union, union[part]], 0).to_py() == plain + plain[part]


# Datasets, files, Keras.


@pytest.mark.whole("traces many datasets")
def test_datasets_batch_and_unbatch():
    dataset = tf.data.Dataset.from_tensor_slices(everything()).map(tf.identity).batch(4)
    assert [batch.to_py() for batch in dataset] == [PLAIN[:4], PLAIN[4:8], PLAIN[8:]]
    assert [value.to_py() for value in dataset.unbatch()] == PLAIN
    rows = tf.data.Dataset.from_tensor_slices(in_rows()).batch(2)
    assert [batch.to_py() for batch in rows] == [in_rows().to_py()[:2], in_rows().to_py()[2:]]


def test_datasets_batch_records_with_a_union():
    records = xt.DenseStructuredTensor([3], {"id": [1, 2, 3], "amount": amounts()})
    [first, _] = tf.data.Dataset.from_tensor_slices(records).batch(2)
    assert first["amount"].to_py() == [500.0, b"a pinch"]
    assert records[1]["amount"].to_py() == b"a pinch"


def test_a_function_is_traced_once_for_any_number_of_rows_of_a_variant():
    traces = []

    @tf.function
    def kilos(union):
        traces.append(union)
        return union.match({"grams": lambda g: g / 1000, "text": lambda t: 0.0})

    kilos(amounts())
    kilos(UnionTensor([1, 1, 1], {"grams": tf.zeros([0]), "text": ["a", "b", "c"]}))
    assert len(traces) == 1
    assert "UnionTensor" in repr(traces[0])


@pytest.mark.whole("starts a process")
@pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type extensor.types:UserWarning:tensorflow"
)
def test_a_saved_model_takes_a_union_in_a_fresh_process(run_python, tmp_path):
    spec = Spec({"grams": tf.TensorSpec([None]), "text": tf.TensorSpec([None], tf.string)})
    module, folder = tf.Module(), str(tmp_path)
    module.kilos = tf.function(
        lambda union: union.match({"grams": lambda g: g / 1000, "text": lambda t: 0.0}),
        input_signature=[spec],
    )
    tf.saved_model.save(module, folder)
    run_python(f"""
        import numpy as np
        import tensorflow as tf
        import extensor as xt

        model = tf.saved_model.load({folder!r})
        union = xt.types.UnionTensor([0, 1, 0], {{"grams": [500.0, 250.0], "text": ["a"]}})
        np.testing.assert_allclose(model.kilos(union), [0.5, 0, 0.25])
    """)


@pytest.mark.whole("trains models")
def test_a_keras_layer_takes_a_union():
    class Kilos(xt.keras.Layer):
        def __init__(self):
            super().__init__()
            self.scale = self.add_weight(shape=(), initializer="ones")

        def call(self, union):
            return union.match({"grams": lambda g: g * self.scale, "text": lambda t: 1.0})

    inputs = xt.keras.Input(Spec.of(amounts()))
    model = xt.keras.Model(inputs, Kilos()(inputs))
    model.compile("sgd", "mse")
    np.testing.assert_allclose(model.predict(amounts(), verbose=0), [500, 1, 250])
    targets = np.zeros([3], np.float32)
    before = model.evaluate(amounts((0.5, 0.25)), targets, verbose=0)
    model.fit(amounts((0.5, 0.25)), targets, epochs=2, batch_size=2, verbose=0)
    assert model.evaluate(amounts((0.5, 0.25)), targets, verbose=0) < before


def test_its_repr_shows_a_few_values():
    assert repr(amounts()) == (
        "<UnionTensor shape=(3,) {grams: float32, text: string} [500.0, b'a pinch', 250.0]>"
    )
    many = UnionTensor(np.zeros(1000, np.int32), {"n": np.arange(1000)})
    assert repr(many) == "<UnionTensor shape=(1000,) {n: int64} [0, 1, 2, 3, 4, 5, ...]>"
