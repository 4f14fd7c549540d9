"""What happens to values before and after `call`: it sees values, whoever calls it and how."""

import collections
import os
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.keras import kinds
from tests.keras import sample_models as sample
from tests.keras.kinds import COUNT, KINDS
from tests.samples.types import MaskedTensor, fresh_masked_type, parcel

RECORDS = sample.recipes()


RAGGED = RECORDS["minutes"]


PLAIN = tf.constant([[1.0, 2.0], [3.0, 4.0]])


MASKED = MaskedTensor(PLAIN, PLAIN > 1.5)


def same(one, other):
    """Whether two nests of values are of one structure and hold the same."""
    tf.nest.assert_same_structure(one, other, expand_composites=True)
    return all(
        a.dtype == b.dtype and np.array_equal(a, b)
        for a, b in zip(
            tf.nest.flatten(one, expand_composites=True),
            tf.nest.flatten(other, expand_composites=True),
            strict=True,
        )
    )


class Recorder(xt.keras.Layer):
    """Keeps what `call` was given, and returns it as it came."""

    def call(self, *args, **kwargs):
        type(self).seen = args, kwargs  # Keras would track it in the layer itself
        return args[0] if args else next(iter(kwargs.values()))


Pair = collections.namedtuple("Pair", "left right")


VALUES = {
    "records": RECORDS,
    "a single list of records": RECORDS["ingredients"],
    "ragged": RAGGED,
    "deeper ragged": tf.ragged.constant([[[1, 2], []], [[3]], []]),
    "protocol only": MASKED,
    "unregistered": fresh_masked_type()[0](PLAIN, PLAIN > 2),
    "parcel of all": parcel({"r": RAGGED, "m": MASKED}),
    "plain": PLAIN,
    "list": [RECORDS, PLAIN],
    "tuple": (RAGGED, {"m": MASKED, "p": PLAIN}),
    "namedtuple": Pair(RECORDS, PLAIN),
    "dict": {"r": RECORDS, "deeper": {"again": [RAGGED]}},
    "ordered": collections.OrderedDict(z=RAGGED, a=PLAIN),
    "records of records": xt.DenseStructuredTensor([10], {"inner": RECORDS, "x": tf.range(10)}),
    "no fields": xt.DenseStructuredTensor([3], {}),
}


@pytest.mark.parametrize("how", ["positional", "keyword"])
@pytest.mark.parametrize("case", VALUES)
def test_call_sees_the_value_and_the_caller_gets_what_it_returns(case, how):
    layer, value = Recorder(), VALUES[case]
    result = layer(value) if how == "positional" else layer(anything=value)
    args, kwargs = layer.seen
    (seen,) = args if how == "positional" else kwargs.values()
    assert type(seen) is type(value)
    assert type(result) is type(value)
    assert same(seen, value)
    assert same(result, value)


def test_several_values_and_options_are_arguments_of_one_call():
    class Sum(xt.keras.Layer):
        def call(self, records, extra, *, scale, ragged=None, training=None):
            assert training is True
            assert isinstance(scale, float)
            total = tf.reduce_sum(records["minutes"], axis=1) + extra
            return scale * (total + tf.reduce_sum(ragged, axis=1))

    result = Sum()(RECORDS, tf.ones([10]), scale=2.0, ragged=RAGGED, training=True)
    expected = 2 * (2 * tf.reduce_sum(RAGGED, axis=1) + 1)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


class Doubled(xt.keras.Layer):
    def call(self, records):
        return records.with_updates(taste=records["taste"] * 2)


class DoubledTwice(Doubled):
    def call(self, records):
        once = super().call(records)
        assert isinstance(once, xt.StructuredTensor)
        return super().call(once)


class Inherited(Doubled):
    pass


class Around(xt.keras.Layer):
    """Layers inside a layer, the same one twice."""

    def __init__(self):
        super().__init__()
        self.inner = Doubled()

    def call(self, records):
        return {"out": self.inner(self.inner(records)), "plain": records["taste"]}


@pytest.mark.parametrize(("layer", "factor"), [(Doubled, 2), (DoubledTwice, 4), (Inherited, 2)])
def test_super_call_takes_and_returns_values(layer, factor):
    np.testing.assert_array_equal(layer()(RECORDS)["taste"], RECORDS["taste"] * factor)


def test_layers_call_layers():
    result = Around()(RECORDS)
    np.testing.assert_array_equal(result["out"]["taste"], RECORDS["taste"] * 4)
    assert same(result["out"].without("taste"), RECORDS.without("taste"))
    np.testing.assert_array_equal(result["plain"], RECORDS["taste"])


@pytest.mark.parametrize("layer", [Doubled, DoubledTwice, Inherited])
def test_a_call_on_placeholders_gives_placeholders_of_the_same_type(layer):
    spec = RECORDS.__tf_type_spec__()
    symbolic = layer()(xt.keras.Input(spec._unbatch()._batch(None)))
    assert isinstance(symbolic, xt.StructuredTensor)
    assert symbolic.__tf_type_spec__().is_compatible_with(spec)
    assert isinstance(symbolic["taste"], keras.KerasTensor)
    assert symbolic["taste"].shape == (None, 3)
    assert symbolic["ingredients.name"].dtype == tf.string


def test_a_layer_of_plain_keras_may_hold_layers_of_records():
    class Stock(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.inner = Wrapping()

        def call(self, x):
            return self.inner(x)["y"]

    class Wrapping(xt.keras.Layer):
        def call(self, x):
            return xt.DenseStructuredTensor([None], {"y": x * 2})

    x = keras.Input((2,))
    np.testing.assert_array_equal(Stock()(PLAIN), PLAIN * 2)
    np.testing.assert_array_equal(xt.keras.Model(x, Stock()(x))(PLAIN), PLAIN * 2)


@pytest.mark.parametrize("in_function", [False, True])
def test_gradients_flow_through_a_layer(in_function):
    layer = Doubled()

    def gradient(taste):
        with tf.GradientTape() as tape:
            tape.watch(taste)
            loss = tf.reduce_sum(layer(RECORDS.with_updates(taste=taste))["taste"] ** 2)
        return tape.gradient(loss, taste)

    taste = RECORDS["taste"]
    result = (tf.function(gradient) if in_function else gradient)(taste)
    np.testing.assert_allclose(result, 8 * taste, rtol=1e-6)


@pytest.mark.parametrize(
    ("policy", "dtype"),
    [("mixed_float16", tf.float16), ("mixed_bfloat16", tf.bfloat16), ("float64", tf.float64)],
)
def test_a_dtype_policy_casts_floats_and_leaves_strings_and_integers_alone(policy, dtype):
    value = RECORDS.with_updates(count=tf.range(10), flag=tf.range(10) > 3)
    layer = Recorder(dtype=policy)
    layer(value)
    ((seen,), _) = layer.seen
    dtypes = {str(path): spec.dtype for path, spec in seen.__tf_type_spec__().leaves()}
    assert dtypes == {
        "taste": dtype,
        "title": tf.string,
        "minutes": dtype,
        "ingredients.name": tf.string,
        "ingredients.amount": dtype,
        "count": tf.int32,
        "flag": tf.bool,
    }
    np.testing.assert_array_equal(seen["taste"], tf.cast(value["taste"], dtype))
    assert seen["minutes"].row_splits.dtype == tf.int64


def test_a_layer_may_make_its_weights_in_build():
    class Weighted(xt.keras.Layer):
        def build(self, input_shape):
            self.kernel = self.add_weight(shape=(3, 1), initializer="ones")

        def call(self, records):
            return records["taste"] @ self.kernel

    layer = Weighted()
    assert not layer.built
    np.testing.assert_allclose(
        layer(RECORDS), tf.reduce_sum(RECORDS["taste"], axis=1, keepdims=True), rtol=1e-6
    )
    assert [weight.shape for weight in layer.weights] == [(3, 1)]


RECORD_SHAPES = {
    "taste": (None, 3),
    "title": (None,),
    "minutes": (None, None),
    "ingredients": {"name": (None, None), "amount": (None, None)},
}
MASKED = xt.types.MaskedTensor([[1.0, 2.0]], [[True, False]])


class Value(tf.experimental.BatchableExtensionType):
    x: tf.Tensor
    label: str = "value"


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (RECORDS, RECORD_SHAPES),
        (RECORDS["minutes"], (None, None)),
        (MASKED, (None, 2)),
        (Value(tf.ones([2, 3])), {"x": (2, 3)}),
        ({"records": RECORDS}, {"records": RECORD_SHAPES}),
        ([MASKED, MASKED], [(None, 2), (None, 2)]),
    ],
    ids=["records", "ragged", "masked", "fields", "dict", "list"],
)
def test_build_and_compute_output_shape_get_the_shapes_of_fields(value, expected, symbolic):
    seen = []

    class Shaped(xt.keras.Layer):
        def build(self, shapes):
            seen.append(shapes)

        def compute_output_shape(self, shapes):
            seen.append(shapes)
            return (None, 1)

        def call(self, inputs):
            return tf.zeros([2, 1])

    if symbolic:
        value = tf.nest.map_structure(
            lambda one: xt.keras.Input(tf.type_spec_from_value(one)), value
        )
    assert Shaped()(value).shape[1:] == (1,)
    assert seen == [expected] * (1 + symbolic)


def test_a_model_may_make_its_weights_from_the_shapes_of_fields(tmp_path):
    @keras.saving.register_keras_serializable("tests")
    class Weighted(xt.keras.Model):
        def build(self, input_shape):
            self.kernel = self.add_weight(shape=(input_shape["taste"][1], 1), name="kernel")

        def call(self, records):
            return records["taste"] @ self.kernel

    model = Weighted()
    expected = model(RECORDS)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(RECORDS), expected)


@pytest.mark.whole("traces many functions")
def test_one_trace_serves_batches_of_every_size():
    traces = []

    class Traced(xt.keras.Layer):
        def call(self, records):
            traces.append(records.shape)
            return tf.reduce_sum(records["minutes"], axis=1)

    layer = Traced()
    layer(RECORDS)  # builds it
    traces.clear()
    run = tf.function(layer, reduce_retracing=True)
    for size in (10, 4, 3, 7):
        run(RECORDS[:size])
    assert len(traces) <= 2


EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Beside(xt.keras.Layer):
    """Takes values in nests and by keyword, and returns them beside plain tensors."""

    def call(self, pair, *, extra, plain, training=None):
        first, second = pair["both"]
        assert training is True
        assert type(first) is type(second) is type(extra)
        return [first, {"extra": extra, "plain": plain * 2.0}]


@EACH
def test_values_in_nests_by_keyword_and_beside_tensors(kind):
    layer, plain = Beside(), tf.ones([COUNT, 2])
    nest = {"both": (kind.value, kind.value)}
    first, rest = layer(nest, extra=kind.value, plain=plain, training=True)
    assert kinds.numbers(first) == kinds.numbers(rest["extra"]) == kinds.numbers(kind.value)
    np.testing.assert_array_equal(rest["plain"], plain * 2)
    # The same symbolically, into a model of Keras's own and into ours.
    placeholders = [xt.keras.Input(kind.spec, name=name) for name in ("a", "b", "c")]
    x = keras.Input((2,), name="x")
    nest = {"both": tuple(placeholders[:2])}
    first, rest = layer(nest, extra=placeholders[2], plain=x, training=True)
    assert type(first) is type(kind.value)
    model = xt.keras.Model([*placeholders, x], [first, rest])
    first, rest = model([kind.value, kind.rows(0, COUNT), kind.value, plain])
    assert kinds.numbers(first) == kinds.numbers(rest["extra"]) == kinds.numbers(kind.value)
    np.testing.assert_array_equal(rest["plain"], plain * 2)


@EACH
def test_a_dtype_policy_casts_floats_alone(kind):
    class Seen(kind.features):
        def call(self, value):
            type(self).seen = value
            return tf.cast(super().call(keep), tf.float16)

    keep = kind.value
    for autocast, dtype in ((True, tf.float16), (False, tf.float32)):
        Seen(dtype="mixed_float16", autocast=autocast)(kind.value)
        before = tf.nest.flatten(kind.value, expand_composites=True)
        after = tf.nest.flatten(Seen.seen, expand_composites=True)
        for one, other in zip(before, after, strict=True):
            expected = dtype if one.dtype == tf.float32 else one.dtype
            assert other.dtype == expected
            cast = one if expected == one.dtype else tf.cast(one, expected)
            np.testing.assert_array_equal(cast, other)


@pytest.mark.whole("trains models")
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_whole_model_in_mixed_precision_is_that_of_plain_keras(policy):
    kind = KINDS["records"]
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model, bare = kinds.twins(kind)
        history = model.fit(kind.value, kinds.RATINGS, 4, shuffle=False, verbose=0).history
        plain = bare.fit(kind.bare_dataset(kinds.RATINGS), shuffle=False, verbose=0).history
    finally:
        keras.config.set_dtype_policy(before)
    assert model.compute_dtype == policy.removeprefix("mixed_")
    assert history == plain


@EACH
def test_the_masks_of_arguments_are_passed_on(kind):
    class Kept(xt.keras.Layer):
        def call(self, value, tensor, value_mask=None, tensor_mask=None):
            return tf.cast(tensor_mask, tf.int32) + (0 if value_mask is None else 2)

    numbers = np.array([[1, 2, 0]] * COUNT)
    embedded = keras.layers.Embedding(5, 2, mask_zero=True)(numbers)
    np.testing.assert_array_equal(Kept()(kind.value, embedded), numbers > 0)
    given = Kept()(kind.value, embedded, value_mask=tf.ones([COUNT], tf.bool))
    np.testing.assert_array_equal(given, 2 + (numbers > 0))
    placeholder, number = xt.keras.Input(kind.spec), keras.Input((3,), dtype="int64", name="number")
    embedded = keras.layers.Embedding(5, 2, mask_zero=True)(number)
    model = xt.keras.Model([placeholder, number], Kept()(placeholder, embedded))
    np.testing.assert_array_equal(model([kind.value, numbers]), numbers > 0)


class Summed(xt.keras.Model):
    """Adds up many fields."""

    def call(self, records):
        return tf.add_n([records[name] for name in records.field_names()])


def test_keras_examines_no_tensor_of_the_value_that_an_eager_call_of_a_built_model_passes_on():
    def python_calls(fields):
        value = {f"f{i}": tf.ones([2]) for i in range(fields)}
        records, model = xt.DenseStructuredTensor([2], value), Summed()
        for _ in range(2):  # the first calls build the model, and fill the caches
            model(records)
        calls = collections.Counter()

        def count(frame, event, argument):
            if event == "call" and f"{os.sep}keras{os.sep}" in frame.f_code.co_filename:
                calls[frame.f_code.co_name] += 1

        sys.setprofile(count)
        try:
            model(records)
        finally:
            sys.setprofile(None)
        return calls

    assert python_calls(2) == python_calls(40)


def test_a_value_whose_floats_are_not_of_the_compute_dtype_is_cast_in_each_call():
    model = Summed(dtype="float16")
    records = xt.DenseStructuredTensor([2], {"x": [1.0, 2.0]})
    assert [model(records).dtype for _ in range(2)] == [tf.float16, tf.float16]
    own = Summed(dtype=keras.DTypePolicy("mixed_float16"))
    assert [own(records).dtype for _ in range(2)] == [tf.float16, tf.float16]


def test_the_masks_of_component_tensors_reach_call_each_time():
    class Masks(xt.keras.Layer):
        supports_masking = True

        def call(self, records, mask=None):
            return tf.zeros([2]) if mask is None else tf.cast(mask[:, 0], tf.float32)

    layer = Masks()
    words = keras.layers.Embedding(5, 3, mask_zero=True)(tf.constant([[1, 0], [0, 2]]))
    for expected, tensor in [([0, 0], tf.ones([2, 2, 3])), ([1, 0], words), ([1, 0], words)]:
        result = layer(xt.DenseStructuredTensor([2], {"words": tensor}))
        assert result.numpy().tolist() == expected


def test_compute_mask_gets_the_value_that_call_gets():
    class Kept(xt.keras.Layer):
        supports_masking = True

        def call(self, records):
            return records["x"] * 2

        def compute_mask(self, records, previous_mask=None):
            return records["x"] > 0

    layer = Kept()
    records = xt.DenseStructuredTensor([2], {"x": [1.0, -2.0]})
    for _ in range(2):
        assert layer(records)._keras_mask.numpy().tolist() == [True, False]


@pytest.mark.parametrize("names", ["*args", "records, /", "records, training=False"])
def test_values_reach_call_by_any_kind_of_parameter(names):
    first = names.split(",")[0].strip("*")
    source = f"def call(self, {names}): return {first}[0] if {first!r} == 'args' else {first}"
    namespace = {}
    exec(source, namespace)
    layer = type("Own", (xt.keras.Layer,), {"call": namespace["call"]})()
    for _ in range(2):
        assert same(layer(RECORDS), RECORDS)


def test_a_built_layer_takes_placeholders():
    layer = Doubled()
    layer(RECORDS)
    placeholder = xt.keras.Input(tf.type_spec_from_value(RECORDS))
    model = xt.keras.Model(placeholder, layer(placeholder)["taste"])
    np.testing.assert_array_equal(model(RECORDS), RECORDS["taste"] * 2)
