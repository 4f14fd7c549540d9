"""A distribution of TensorFlow Probability as a field of a declared type."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.types.sample_belief import DISTRIBUTIONS, Belief, Beliefs, tfd

pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type (tests.types|tfp.):UserWarning:tensorflow"
)

each = pytest.mark.parametrize("name", DISTRIBUTIONS)

GRAMS = tf.constant(1.5)


def belief(name):
    return Belief(DISTRIBUTIONS[name](), 1.0)


def same(a, b):
    """Whether two distributions are of one family with the same numbers."""
    tf.debugging.assert_equal(a.prob(GRAMS), b.prob(GRAMS))
    tf.debugging.assert_equal(a.sample(3, seed=[1, 2]), b.sample(3, seed=[1, 2]))
    return type(a) is type(b)


@pytest.mark.whole("many cases")
@each
def test_it_crosses_a_function(name):
    before = belief(name)
    traces = []

    @tf.function
    def update(value):
        traces.append(value)
        return value.update(GRAMS)

    after = update(update(before))
    assert isinstance(after, Belief)
    assert same(after.amount, before.amount)
    np.testing.assert_allclose(after.weight, 1 + 2 * before.amount.prob(GRAMS), rtol=1e-6)


@pytest.mark.whole("many cases")
@each
def test_a_function_takes_another_of_its_family_by_signature(name):
    before = belief(name)
    function = tf.function(
        lambda value: value.amount.prob(GRAMS), input_signature=[before.__tf_type_spec__()]
    )
    np.testing.assert_allclose(function(before), before.amount.prob(GRAMS), rtol=1e-6)


@pytest.mark.whole("many cases")
@each
@pytest.mark.parametrize("in_function", [False, True])
def test_it_crosses_loops_and_branches(name, in_function):
    before = xt.replace(belief(name), weight=belief(name).amount.prob(GRAMS))

    def updated(value, count):
        _, after = tf.while_loop(
            lambda i, _: i < count, lambda i, value: (i + 1, value.update(GRAMS)), (0, value)
        )
        return tf.cond(count > 1, lambda: after, lambda: value)

    after = (tf.function(updated) if in_function else updated)(before, tf.constant(3))
    assert same(after.amount, before.amount)
    np.testing.assert_allclose(after.weight, 4 * before.weight, rtol=1e-6)


@each
def test_it_has_gradients(name):
    """As a field; a distribution alone cannot be a source in TensorFlow."""
    before = belief(name)
    plain = DISTRIBUTIONS[name]()
    tensors = tf.nest.flatten(plain, expand_composites=True)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([before, *tensors])
        ours = tf.reduce_sum(before.update(GRAMS).weight)
        theirs = tf.reduce_sum(plain.prob(GRAMS))
    gradient = tape.gradient(ours, before)
    assert type(gradient.amount) is type(plain)
    found = tf.nest.flatten(gradient.amount, expand_composites=True)
    expected = tape.gradient(theirs, tensors, unconnected_gradients="zero")
    assert any(np.any(x) for x in expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.whole("many cases")
@each
def test_it_crosses_a_dataset(name):
    before = belief(name)
    [after] = tf.data.Dataset.from_tensors(before).map(lambda value: value.update(GRAMS))
    assert same(after.amount, before.amount)


@each
def test_it_works_in_containers(name):
    beliefs = Beliefs({name: DISTRIBUTIONS[name](), "other": tfd.Normal(0.0, 1.0)})
    after = tf.function(lambda value: value)(beliefs)
    assert same(after.amounts[name], beliefs.amounts[name])


@pytest.mark.whole("many cases")
@each
def test_it_keeps_the_laws_of_functions_and_control_flow(name):
    """Other laws concern specs of TensorFlow Probability, which cannot be pickled."""
    kept = {
        "components-rebuild-value",
        "components-run-no-op",
        "pack-uses-given-tensors",
        "function-carries-value",
        "control-flow-carries-value",
        "serialization-round-trip",
    }
    laws = [law for law in xt.testing.laws() if law.name in kept]
    assert len(laws) == len(kept)
    for law in laws:
        law(belief(name))


@pytest.mark.whole("starts a process")
def test_all_are_saved_and_loaded_in_a_fresh_process(run_python, tmp_path):
    """It is saved in its own process too: other tests replace the specs of these classes."""
    folder = str(tmp_path / "model")
    done = run_python(f"""
        import tensorflow as tf
        from tests.types.sample_belief import DISTRIBUTIONS, Belief

        module, expected = tf.Module(), {{}}
        for name, distribution in DISTRIBUTIONS.items():
            before = Belief(distribution(), 1.0)
            function = tf.function(
                lambda value, grams: value.update(grams),
                input_signature=[before.__tf_type_spec__(), tf.TensorSpec([])],
            )
            setattr(module, name, function)
            expected[name] = before.update(1.5).weight.numpy().tolist()
        tf.saved_model.save(module, {folder!r})
        print(expected)
    """)
    run_python(f"""
        import numpy as np
        import tensorflow as tf
        from tests.types.sample_belief import DISTRIBUTIONS, Belief

        model = tf.saved_model.load({folder!r})
        for name, expected in {done.stdout.strip()}.items():
            before = Belief(DISTRIBUTIONS[name](), 1.0)
            after = getattr(model, name)(before, 1.5)
            assert type(after.amount) is type(before.amount)
            np.testing.assert_allclose(after.weight, expected, rtol=1e-6)
            np.testing.assert_allclose(after.amount.prob(1.5), before.amount.prob(1.5), rtol=1e-6)
    """)
