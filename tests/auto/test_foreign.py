"""Classes of other libraries: LinearOperators, TensorFlow Probability, dataclasses, attrs."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.whole("runs each class in another process")


@pytest.fixture(scope="module")
def saved(run_python, tmp_path_factory):
    """Returns the results of a process that uses each value in every API and saves it."""
    folder = tmp_path_factory.mktemp("foreign")
    run_python(
        f"""
        import json, warnings
        import numpy as np
        import tensorflow as tf
        import extensor as xt
        from extensor._auto.spec import AutoSpec
        from tests.samples.foreign import looped, used, values

        warnings.simplefilter("ignore")
        report = {{}}
        module = tf.Module()
        for name, value in values().items():
            traces = []

            def call(value):
                traces.append(name)
                return used(value)

            spec = tf.type_spec_from_value(value)
            function, carry = tf.function(call), tf.function(looped)
            carried = carry(value)
            function(value), function(carried)
            eager = looped(value)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(value)
                result = tf.reduce_sum(used(value))
            leaves = tf.nest.flatten(value, expand_composites=True)
            gradient = tape.gradient(result, value) if leaves else value
            assert type(gradient) is type(value), name
            of_value = tf.nest.flatten(gradient, expand_composites=True)
            pairs = zip(of_value, tape.gradient(result, leaves), strict=True)
            setattr(module, f"use_{{name}}", tf.function(used, input_signature=[spec]))
            setattr(module, f"loop_{{name}}", tf.function(looped, input_signature=[spec]))
            report[name] = {{
                "auto": isinstance(spec, AutoSpec),
                "types": [type(v) is type(value) for v in (carried, eager)],
                "specs": [tf.type_spec_from_value(v) == spec for v in (carried, eager)],
                "traces": len(traces),
                "gradients": [
                    [np.asarray(x).tolist() for x in pair] for pair in pairs if pair[1] is not None
                ],
                "numbers": [
                    np.asarray(x).tolist()
                    for x in (used(value), used(carried), used(eager), function(value))
                ],
            }}
        tf.saved_model.save(module, {str(folder / "model")!r})
        with open({str(folder / "report.json")!r}, "w") as file:
            json.dump(report, file)
        """,
        timeout=300,
    )
    return folder


@pytest.fixture(scope="module")
def report(saved):
    return json.loads((saved / "report.json").read_text())


NAMES = [
    *("Identity", "Diag", "LowerTriangular", "BlockDiag", "Normal", "Independent"),
    *("TransformedDistribution", "chained", "JointDistributionSequential"),
    *("JointDistributionNamed", "JointDistributionCoroutine", "Chain", "Invert", "Reshape"),
    *("plain", "dataclass", "attrs", "slots"),
]


@pytest.mark.whole("traces many functions")
def test_every_class_is_tested(report):
    assert list(report) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_class_goes_through_functions_and_loops(report, name):
    row = report[name]
    assert row["auto"]
    assert row["types"] == [True, True]
    assert row["specs"] == [True, True]
    assert row["traces"] == 1
    first, *others = row["numbers"]
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_with_respect_to_a_foreign_value_are_those_of_its_tensors(report, name):
    gradients = report[name]["gradients"]
    without = {"Identity", "JointDistributionCoroutine", "Reshape"}
    assert bool(gradients) == (name not in without)
    for of_value, of_tensor in gradients:
        np.testing.assert_allclose(of_value, of_tensor, rtol=1e-6)


@pytest.mark.whole("starts a process")
def test_foreign_classes_are_loaded_in_a_fresh_process(run_python, saved):
    run_python(
        f"""
        import json
        import numpy as np
        import tensorflow as tf
        from tests.samples.foreign import used, values

        report = json.load(open({str(saved / "report.json")!r}))
        loaded = tf.saved_model.load({str(saved / "model")!r})
        for name, value in values().items():
            expected = report[name]["numbers"][0]
            looped = getattr(loaded, f"loop_{{name}}")(value)
            assert type(looped) is type(value), name
            for result in (getattr(loaded, f"use_{{name}}")(value), used(looped)):
                np.testing.assert_allclose(result, expected, rtol=1e-6, err_msg=name)
        """,
        timeout=300,
    )


@pytest.mark.slow
def test_foreign_classes_obey_the_laws(run_python):
    """All but one, for some: their constructors make constants of numbers, which are ops."""
    run_python(
        """
        import warnings
        import tensorflow as tf
        import extensor as xt
        from tests.samples.foreign import values

        warnings.simplefilter("ignore")
        tf.get_logger().setLevel("ERROR")
        makes_constants = set()
        for name, value in values().items():
            if not tf.nest.flatten(value, expand_composites=True):
                continue  # a stack of nothing has no size
            try:
                xt.testing.check_extension_type(value)
            except xt.testing.LawError as error:
                assert error.names == {"components-run-no-op"}, (name, error)
                makes_constants.add(name)
        assert makes_constants <= {
            *("Independent", "TransformedDistribution", "chained", "Chain"),
            *("JointDistributionSequential", "JointDistributionNamed"),
        }, makes_constants
        """,
        timeout=300,
    )


@pytest.mark.whole("starts a process")
def test_classes_derived_from_a_decorated_one_keep_their_own_specs(run_python):
    run_python(
        """
        import tensorflow as tf
        import extensor as xt
        from extensor._auto.spec import AutoSpec
        from tests.samples.peer import tfp

        tfd = tfp.distributions
        xt.auto_composite_tensor(
            tfd.MultivariateNormalLinearOperator,
            omit_kwargs=("parameters",),
            non_identifying_kwargs=("name",),
        )
        child = tfd.MultivariateNormalTriL([0.0, 1.0], [[1.0, 0.0], [2.0, 3.0]])
        assert isinstance(child, tfd.MultivariateNormalLinearOperator)
        again = tf.function(lambda d: d)(child)
        assert type(again) is type(child)
        assert not isinstance(child._type_spec, AutoSpec)
        assert child.__tf_type_spec__() == child._type_spec
        parent = tfd.MultivariateNormalLinearOperator(
            [0.0, 1.0], tf.linalg.LinearOperatorDiag([1.0, 2.0])
        )
        assert isinstance(parent._type_spec, AutoSpec)
        assert type(tf.function(lambda d: d)(parent)) is type(parent)
        """
    )
