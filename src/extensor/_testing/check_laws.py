"""Three ways to check the laws: on given values, as pytest tests, on generated values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._dependency import import_extra
from extensor._testing.law import Law, LawError, Trial, laws
from extensor._testing.strategy import values_of
from extensor._testing.subject import Subject
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def check_extension_type(value_or_values: object) -> None:
    """Raises if values of a type break a law of extension types.

    Works for any composite tensor: classes with `__tf_type_spec__`, StructuredTensors, TensorFlow's
    RaggedTensor and SparseTensor, `tf.experimental.ExtensionType`. Laws of stacking apply only to
    specs that stack, and the law of SavedModel only to registered specs. It is not checked that
    values are immutable, because no general check exists.

    Args:
        value_or_values: A value, or a list or tuple of values of one type, which are also
            compared with each other. Values that differ in shape or static data find more errors.

    Raises:
        LawError: If laws are broken. The message lists all of them (also an AssertionError).
        ProtocolError: If there is no value, or if the values have different types (also a
            TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.testing.check_extension_type(tf.ragged.constant([[1, 2], [3]]))

    The error names the broken law and says how to correct the type:

    >>> class Menu:
    ...     def __init__(self, prices):
    ...         self.prices = prices
    ...
    ...     def __tf_type_spec__(self):
    ...         return MenuSpec(self.prices.shape)
    >>> class MenuSpec(xt.TypeSpec):
    ...     def __init__(self, shape):
    ...         self.shape = shape
    ...
    ...     value_type = Menu
    ...
    ...     @property
    ...     def component_specs(self):
    ...         return (tf.TensorSpec(self.shape, tf.int32),)
    ...
    ...     def to_components(self, value):
    ...         return (value.prices,)
    ...
    ...     def from_components(self, components):
    ...         return Menu(tf.abs(components[0]))
    ...
    ...     def serialize(self):
    ...         return (self.shape,)
    >>> xt.testing.check_extension_type(Menu(tf.constant([3, 4])))
    Traceback (most recent call last):
        ...
    extensor.errors.LawError: Menu breaks a law of extension types.
      components-run-no-op: to_components and from_components call no TensorFlow op.
        expected no op from from_components, got Abs. Only store and return tensors in
        to_components and from_components, and in functions that they call.
      Not checked, because they depend on these laws: pack-uses-given-tensors,
      map-structure-rebuilds, same-structure-follows-merge, function-carries-value,
      function-takes-generalisation, control-flow-carries-value.
    """
    Trial(Subject(value_or_values)).check(laws())


def parametrize_laws(types: Iterable[Any]) -> Callable[[Any], Any]:
    """Returns a decorator that runs a pytest test function once for each type and law.

    The test function takes the argument `check` and calls it::

        @xt.testing.parametrize_laws([recipe, [short_menu, long_menu]])
        def test_laws(check):
            check()

    The ids are `Recipe-components-rebuild-value` and so on. A law that does not apply to a type
    gets no test. A law that depends on a broken law is skipped.

    Args:
        types: For each type one value, or a list or tuple of values.

    Raises:
        MissingDependencyError: If pytest is not installed (also an ImportError).
        ProtocolError: As `check_extension_type`.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> decorate = xt.testing.parametrize_laws([tf.ragged.constant([[1, 2], [3]])])
    >>> decorate.mark.args[1][0].id
    'RaggedTensor-spec-has-repr'
    """
    pytest = import_extra("pytest", "testing", "xt.testing")
    trials = [Trial(Subject(values)) for values in types]

    def check(trial: Trial, law: Law) -> None:
        broken = trial.broken(law)
        if broken and law.name not in broken:
            pytest.skip(f"depends on broken laws: {', '.join(sorted(broken))}")
        trial.check([law])

    return pytest.mark.parametrize(
        "check",
        [
            pytest.param(
                functools.partial(check, trial, law), id=f"{trial.subject.type_name}-{law.name}"
            )
            for trial in trials
            for law in laws()
            if law.applies_to(trial.subject)
        ],
    )


def check_spec(
    spec: tf.TypeSpec, values: SearchStrategy[Any] | None = None, max_examples: int = 20
) -> None:
    """Raises if generated values of a spec, alone or in pairs, break a law.

    Args:
        spec: Any TypeSpec except a TensorSpec. Sizes that are None are drawn.
        values: A Hypothesis strategy for the values. Default: `values_of(spec)`.
        max_examples: How many examples are drawn. The first ones take longest, because they trace
            several tf.functions.

    Raises:
        LawError: If laws are broken. The message shows the smallest values that break one of them
            (also an AssertionError).
        MissingDependencyError: If Hypothesis is not installed (also an ImportError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.testing.check_spec(tf.RaggedTensorSpec([None, None], tf.int32), max_examples=2)
    """
    hypothesis = import_extra("hypothesis", "testing", "xt.testing")
    st = hypothesis.strategies
    if not isinstance(spec, tf.TypeSpec):
        fix = "To check a value, call check_extension_type."
        raise DTypeError("check_spec", "a TypeSpec", type(spec).__name__, fix)
    found: list[LawError] = []

    def breaks(drawn: list[Any]) -> bool:
        trial = Trial(Subject(drawn))
        # After a law is broken, search the smallest values with the broken laws only.
        names = found[0].names if found else ()
        error = trial.error(law for law in laws() if not names or law.name in names)
        if error is not None and not found:
            found.append(error)
        return error is not None

    try:
        smallest = hypothesis.find(
            st.lists(values_of(spec) if values is None else values, min_size=1, max_size=2),
            breaks,
            random=Random(0),
            settings=hypothesis.settings(
                max_examples=max_examples,
                database=None,
                deadline=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            ),
        )
    except hypothesis.errors.NoSuchExample:
        return
    subject = Subject(smallest)
    described = ", ".join(map(repr, subject.specs))
    error = Trial(subject).error(laws(), f"; specs of the smallest such values: {described}.")
    raise error if error is not None else found[0]
