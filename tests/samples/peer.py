"""TensorFlow Probability, whose `auto_composite_tensor` is compared with extensor's."""

import warnings

with warnings.catch_warnings():
    # It asks distutils for versions, and asks TensorFlow for names that have moved.
    warnings.simplefilter("ignore")
    import tensorflow_probability as tfp
    from tensorflow_probability.python.internal.auto_composite_tensor import (
        is_deferred_assertion_context,
    )

    # Loaded lazily, and with warnings of their own.
    tfp.bijectors, tfp.distributions  # noqa: B018

auto_composite_tensor = tfp.experimental.auto_composite_tensor
AutoCompositeTensor = tfp.experimental.AutoCompositeTensor

__all__ = [
    "AutoCompositeTensor",
    "auto_composite_tensor",
    "is_deferred_assertion_context",
    "tfp",
]
