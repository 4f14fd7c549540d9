"""Constructors with `**kwargs`: a property `parameters` names the keywords."""

import pytest
import tensorflow as tf
from tensorflow.python.saved_model import nested_structure_coder

import extensor as xt
from extensor.errors import ArgumentError


class Base(xt.AutoCompositeTensor):
    @property
    def parameters(self):
        return self._parameters


@xt.auto_composite_tensor(
    omit_kwargs=("hidden",), non_identifying_kwargs="name", module_name="tests.keywords"
)
class Model(Base):
    """Keeps its keywords side by side with the other arguments, as time series models do."""

    def __init__(self, rate, name="Model", **options):
        self._parameters = {"rate": rate, "name": name, **options}
        self.rate, self.name = rate, name
        self._scale = options.get("scale")  # found before what is in `parameters`
        self.hidden = options.get("hidden")


@xt.auto_composite_tensor(module_name="tests.keywords")
class Locals(Base):
    """Keeps them in one dict, as `dict(locals())` does."""

    def __init__(self, rate, **options):
        self._parameters = dict(locals())
        self.rate = rate


SCALE = tf.constant([1.0, 2.0])
RATE = tf.constant(0.5)


@pytest.mark.parametrize(
    "values",
    [
        [Model(RATE, "a", scale=SCALE, steps=3), Model(RATE, "a", scale=SCALE[:1], steps=4)],
        [Model(RATE), Model(RATE, scale=[SCALE, {"a": RATE}])],
        [Locals(RATE, scale=SCALE, steps=3), Locals(RATE)],
    ],
)
def test_laws(values):
    xt.testing.check_extension_type(values)


def rebuilt(value):
    flat = tf.nest.flatten(value, expand_composites=True)
    return tf.nest.pack_sequence_as(value, flat, expand_composites=True)


@pytest.mark.parametrize("cls", [Model, Locals])
def test_a_value_is_made_again_with_its_keywords(cls):
    for value in (
        tf.function(lambda v: v)(cls(RATE, scale=SCALE, steps=3)),
        rebuilt(cls(RATE, steps=3, scale=SCALE)),
        tf.while_loop(
            lambda i, _: i < 2,
            lambda i, v: (i + 1, v),
            (0, cls(RATE, scale=SCALE, steps=3)),
        )[1],
    ):
        options = value.parameters if cls is Model else value.parameters["options"]
        assert options["scale"].numpy().tolist() == [1.0, 2.0]
        assert options["steps"] == 3
        assert value.rate.numpy() == 0.5


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")
def test_the_spec_has_a_part_for_all_keywords():
    spec = Model(RATE, "a", scale=SCALE, steps=3, hidden=1)._type_spec
    assert spec.options == {"scale": tf.TensorSpec([2]), "steps": 3}
    assert Model.Spec(tf.TensorSpec([]), "a", {"scale": tf.TensorSpec([2]), "steps": 3}) == spec
    assert Model(RATE)._type_spec.options == {}
    assert Model(RATE, "b")._type_spec == Model(RATE, "a")._type_spec
    assert Model(RATE, steps=1)._type_spec != Model(RATE, steps=2)._type_spec
    again = nested_structure_coder.decode_proto(nested_structure_coder.encode_structure(spec))
    assert again == spec


def test_specs_that_were_written_without_keywords_are_read():
    spec = Model(RATE)._type_spec
    version, *parts = spec.serialize()
    older = (version, *(part for part in parts if part[0] != "options"))
    assert len(older) < len(spec.serialize())
    assert Model.Spec.deserialize(older) == spec


def test_a_variable_among_the_keywords_stays_one():
    count = tf.Variable(1.0)
    tf.function(lambda v: v.parameters["scale"].assign_add(1.0))(Model(RATE, scale=count))
    assert count.numpy() == 2.0


def test_an_attribute_has_precedence_over_the_constructor_argument():
    @xt.auto_composite_tensor
    class Converting(Base):
        def __init__(self, **options):
            self._parameters = options
            self._scale = tf.convert_to_tensor(options["scale"])

    assert Converting(scale=1.0)._type_spec.options == {"scale": tf.TensorSpec([])}


def test_keywords_without_a_mapping_are_an_error_when_a_value_is_decomposed():
    @xt.auto_composite_tensor
    class Method(xt.AutoCompositeTensor):
        def __init__(self, x, **options):
            self.x = x

        def parameters(self):
            return {}

    @xt.auto_composite_tensor
    class Args(Base):
        def __init__(self, *items):
            self._parameters = {"items": items}

    for value, stars in ((Method(RATE), r"\*\*options"), (Args(RATE), r"\*items")):
        with pytest.raises(ArgumentError, match=rf"got {stars}. \*args and \*\*kwargs are not"):
            rebuilt(value)


def test_all_keywords_may_be_omitted():
    @xt.auto_composite_tensor(omit_kwargs=("options", "items"))
    class Plain(xt.AutoCompositeTensor):
        def __init__(self, x, *items, **options):
            self.x, self.items, self.options = x, items, options

    assert rebuilt(Plain(RATE, 1, a=2)).items == ()
    assert rebuilt(Plain(RATE, 1, a=2)).options == {}
    assert Plain(RATE)._type_spec.field_names == ("x",)


@pytest.mark.whole("starts a process")
def test_probability_is_imported_with_this_decorator_and_its_keywords_are_kept(run_python):
    run_python(
        """
        import pairs.probability
        import tensorflow as tf
        import tensorflow_probability as tfp
        from extensor._auto.spec import AutoSpec

        import extensor as xt

        tfd = tfp.distributions
        assert tfp.experimental.auto_composite_tensor is xt.auto_composite_tensor
        assert isinstance(tfd.Normal(0.0, 1.0)._type_spec, AutoSpec)

        def check(value, of):
            for again in (
                tf.function(lambda v: v)(value),
                tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v), (0, value))[1],
            ):
                assert type(again) is type(value)
                tf.debugging.assert_near(of(again), of(value))
            coder = tf.__internal__.saved_model
            spec = value._type_spec
            assert isinstance(spec, AutoSpec)
            assert coder.decode_proto(coder.encode_structure(spec)) == spec

        zeros = tfd.ZeroInflatedNegativeBinomial(
            inflated_loc_probs=0.2, probs=0.5, total_count=10.0
        )
        check(zeros, lambda d: d.log_prob([0.0, 3.0]))
        series = tfp.sts.AutoregressiveStateSpaceModel(
            num_timesteps=5,
            coefficients=[0.8, -0.1],
            level_scale=0.5,
            initial_state_prior=tfd.MultivariateNormalDiag(scale_diag=[1.0, 1.0]),
            initial_step=2,
        )
        check(series, lambda d: d.log_prob(tf.ones([5, 1])))
        assert tf.function(lambda d: d)(series).initial_step == 2
        """,
        timeout=300,
    )


@pytest.mark.whole("starts a process")
def test_values_that_probability_rebuilds_are_not_validated_again(run_python):
    run_python(
        """
        import extensor as xt
        from tests.samples.peer import tfp
        from tensorflow_probability.python.internal import auto_composite_tensor as theirs

        assert not xt.is_deferred_assertion_context()
        with theirs._deferred_assertion_context():
            assert xt.is_deferred_assertion_context()
        assert not xt.is_deferred_assertion_context()
        """
    )
