"""Classes of other libraries, decorated. For fresh processes, because the classes change."""

import dataclasses
import functools

import attrs
import tensorflow as tf

import extensor as xt
from tests.samples.peer import tfp

tfb, tfd = tfp.bijectors, tfp.distributions

for operator in (
    tf.linalg.LinearOperatorIdentity,
    tf.linalg.LinearOperatorDiag,
    tf.linalg.LinearOperatorBlockDiag,
    tf.linalg.LinearOperatorLowerTriangular,
):
    assert xt.auto_composite_tensor(operator, omit_kwargs=("name",)) is operator

for stochastic in (
    tfd.Normal,
    tfd.Independent,
    tfd.TransformedDistribution,
    tfd.JointDistributionSequential,
    tfd.JointDistributionNamed,
    tfd.JointDistributionCoroutine,
    tfb.Scale,
    tfb.Shift,
    tfb.Exp,
    tfb.Chain,
    tfb.Invert,
    tfb.Reshape,
):
    decorated = xt.auto_composite_tensor(
        stochastic,
        omit_kwargs=("parameters", "name"),
        module_name="tests.samples.foreign",
    )
    assert decorated is stochastic


class _Line:
    def __init__(self, slope, offset=0.0):
        self._slope, self._offset = slope, offset

    def __call__(self, x):
        return self._slope * x + self._offset


@dataclasses.dataclass(frozen=True)
class _Frozen:
    slope: object
    offset: object = 0.0

    def __call__(self, x):
        return self.slope * x + self.offset


@attrs.define
class _Attrs:
    slope: object
    offset: object = 0.0

    def __call__(self, x):
        return self.slope * x + self.offset


class _Slots:
    __slots__ = ("_offset", "slope")

    def __init__(self, slope, offset=0.0):
        self.slope, self._offset = slope, offset

    def __call__(self, x):
        return self.slope * x + self._offset


Line, Frozen, Attrs, Slots = map(xt.auto_composite_tensor, (_Line, _Frozen, _Attrs, _Slots))


def wider(a):
    return tfd.Normal(a, 2.0)


def scaled(b, scale):
    return tfd.Normal(b, scale)


def walk():
    root = tfd.JointDistributionCoroutine.Root
    z = yield root(tfd.Normal(0.0, 1.0))
    yield tfd.Normal(z, 2.0)


def values():
    """A value of each class, some of them inside one another."""
    diagonal = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    triangle = tf.linalg.LinearOperatorLowerTriangular([[1.0, 0.0], [2.0, 3.0]])
    identity = tf.linalg.LinearOperatorIdentity(2)
    block = tf.linalg.LinearOperatorBlockDiag
    normal = tfd.Normal([0.0, 1.0], [1.0, 2.0], validate_args=True)
    chain = tfb.Chain([tfb.Shift(1.0), tfb.Scale([2.0, 3.0])])
    return {
        "Identity": identity,
        "Diag": diagonal,
        "LowerTriangular": triangle,
        "BlockDiag": block([diagonal, block([identity, triangle])]),
        "Normal": normal,
        "Independent": tfd.Independent(normal, reinterpreted_batch_ndims=1),
        "TransformedDistribution": tfd.TransformedDistribution(normal, tfb.Exp()),
        "chained": tfd.TransformedDistribution(normal, chain),
        "JointDistributionSequential": tfd.JointDistributionSequential(
            [tfd.Normal(0.0, 1.0), wider, functools.partial(scaled, scale=0.5)]
        ),
        "JointDistributionNamed": tfd.JointDistributionNamed(
            {"a": tfd.Normal(0.0, 1.0), "b": tfd.Normal(1.0, 2.0)}
        ),
        "JointDistributionCoroutine": tfd.JointDistributionCoroutine(walk),
        "Chain": chain,
        "Invert": tfb.Invert(tfb.Scale([2.0, 4.0])),
        "Reshape": tfb.Reshape(event_shape_out=[2, 1], event_shape_in=[2]),
        "plain": Line(tf.constant([2.0, 3.0])),
        "dataclass": Frozen(tf.constant([2.0, 3.0]), 1.0),
        "attrs": Attrs(tf.constant([2.0, 3.0]), tf.constant(1.0)),
        "slots": Slots([tf.constant(2.0), 3.0][0], tf.constant([1.0, 1.0])),
    }


def used(value):
    """The result of a use of a value: a matrix product, a logarithm of a density, a call."""
    if isinstance(value, tf.linalg.LinearOperator):
        return value.matmul(tf.ones([value.shape[-1], 1]))
    if isinstance(value, tfd.JointDistribution):
        model = value.sample(seed=(0, 1))
        return value.log_prob(model)
    if isinstance(value, tfd.Distribution):
        return value.log_prob([0.5, 0.25])
    if isinstance(value, tfb.Bijector):
        return value.forward(tf.constant([0.5, 0.25]))
    return value(tf.constant([0.5, 0.25]))


def looped(value):
    """A value that went through a loop."""
    return tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v), (0, value))[1]
