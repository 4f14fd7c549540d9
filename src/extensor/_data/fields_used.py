"""fields_used: the fields of records that a function or model uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._pruning.components import checked_uses, components
from extensor._pruning.consumption import VALUE, Consumption, concrete_graph
from extensor._pruning.fields import FieldsUsed
from extensor._struct.spec import StructuredTensorSpec
from extensor.errors import DTypeError


def fields_used(fn_or_model: Callable[[Any], Any], spec: StructuredTensorSpec) -> FieldsUsed:
    """Returns the paths of the fields that a function or model uses.

    The function is traced, as by `tf.function`. A field is used if a result of the function depends
    on its values, or an operation with side effects does, such as `tf.print`.

    Args:
        fn_or_model: A function of records, or a model.
        spec: The spec of the records.

    Returns:
        A sequence of paths, for `columns` of `xt.data.parquet`, `read_parquet` and other readers.
        It has at least one path, because the number of records is read with a field.

    Raises:
        DTypeError: If `fn_or_model` is not callable, or `spec` is not the spec of a
            StructuredTensor (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> step = xt.DenseStructuredTensorSpec([None], {"minutes": tf.TensorSpec([None], tf.int32),
    ...                                              "text": tf.TensorSpec([None], tf.string)})
    >>> recipe = xt.DenseStructuredTensorSpec([None], {
    ...     "title": tf.TensorSpec([None], tf.string),
    ...     "steps": xt.RaggedStructuredTensorSpec([None, None], step)})
    >>> xt.data.fields_used(lambda r: tf.reduce_sum(r["steps", "minutes"], axis=1), recipe)
    FieldsUsed(['steps.minutes'])
    """
    if not callable(fn_or_model):
        expected, received = "a function of records, or a model", type(fn_or_model).__name__
        raise DTypeError("xt.data.fields_used: fn_or_model", expected, received, "Give a callable.")
    if not isinstance(spec, StructuredTensorSpec):
        expected = "the spec of a StructuredTensor"
        fix = "Give xt.spec_of(records), or the element_spec of a dataset of records."
        raise DTypeError("xt.data.fields_used: spec", expected, repr(spec), fix)
    return FieldsUsed(spec, checked_uses(components(spec), uses_by(fn_or_model, spec)))


def uses_by(function: Callable[[Any], Any], spec: Any) -> dict[int, int]:
    """Returns how a function uses the component tensors of its argument, by their number.

    Args:
        function: A function of one argument.
        spec: The nest of specs of the argument.
    """
    # AutoGraph converts the function, as tf.function and Dataset.map do.
    consumption = consumption_of(tf.function(function), spec)
    return consumption.input_uses(dict.fromkeys(range(consumption.result_count), VALUE))


def consumption_of(function: Callable[[Any], Any], spec: Any) -> Consumption:
    """Returns what the results of a function of `tf.function` consume of its argument."""
    inputs: list[str] = []

    def call(argument: Any) -> Any:
        flat = tf.nest.flatten(argument, expand_composites=True)
        inputs[:] = [tensor.op.name for tensor in flat if tf.is_tensor(tensor)]
        return function(argument)

    return Consumption(concrete_graph(call, spec), inputs)
