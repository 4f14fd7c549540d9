"""A declared type with a distribution of TensorFlow Probability as a field."""

from collections.abc import Mapping

import tensorflow as tf

import extensor as xt
from tests.samples.peer import tfp

tfd = tfp.distributions


@xt.extension_type
class Belief:
    """An amount that is known up to a distribution."""

    amount: tfd.Distribution
    weight: tf.Tensor

    def update(self, grams):
        """Returns the belief after a measurement."""
        return xt.replace(self, weight=self.weight + self.amount.prob(grams))


@xt.extension_type
class Beliefs:
    """Distributions of several families, in a container."""

    amounts: Mapping[str, tfd.Distribution]


DISTRIBUTIONS = {
    "normal": lambda: tfd.Normal([1.0, 2.0], 0.5),
    "uniform": lambda: tfd.Uniform(0.0, [3.0, 4.0]),
    "independent": lambda: tfd.Independent(tfd.Normal([[1.0, 2.0]] * 2, 1.0), 1),
    "multivariate": lambda: tfd.MultivariateNormalTriL(
        [[1.0, 2.0]] * 2, scale_tril=[[1.0, 0.0], [0.5, 2.0]]
    ),
    "mixture": lambda: tfd.MixtureSameFamily(
        tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([1.0, 2.0], [0.5, 1.0])
    ),
    "transformed": lambda: tfd.TransformedDistribution(
        tfd.Normal([0.0, 1.0], 1.0), tfp.bijectors.Exp()
    ),
}
"""Distributions that have a density at the value 1.5."""
