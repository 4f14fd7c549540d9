"""Losses and metrics of extension values field by field, each field as a plain tensor.

A ragged tensor is given to them as its values, one after another, each with the weight of its
record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from extensor._keras.lowering import is_extension
from extensor._path import Path
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FieldError, StructureError


def chosen_fields(*choices: Any) -> list[str]:
    """Returns the names of the fields that losses or metrics are chosen for.

    Args:
        *choices: Arguments of `compile`; those that are dicts choose by field.
    """
    names: dict[str, None] = {}
    for choice in choices:
        if isinstance(choice, dict):
            names.update((name, None) for name, item in choice.items() if item is not None)
    return list(names)


def check_fields(path: str, chosen: Any, names: Iterable[str]) -> None:
    """Raises unless all fields that something is chosen for have a loss or a metric.

    Args:
        path: Says what is chosen, for the error.
        chosen: A dict by field, or something else, which chooses no fields.
        names: The fields with a loss or a metric.

    Raises:
        FieldError: If there is another one (also a KeyError).
    """
    for name in chosen if isinstance(chosen, dict) else ():
        if name not in names:
            raise FieldError(
                path=f"{path} {name}",
                expected="a field for which a loss or metric was chosen",
                received=f"fields {', '.join(names)}",
                mend="Name the same fields as in compile(loss=..., metrics=...).",
            )


def by_values(
    y: Any, y_pred: Any, sample_weight: Any, model: str, loss: Any = None, name: str = "output"
) -> tuple[Any, Any, Any]:
    """Returns targets, outputs and weights, with the values of ragged ones in their place.

    Args:
        y: Targets: a tensor, or a nest of them like the outputs.
        y_pred: Outputs.
        sample_weight: One weight for each record, a nest of them, or None.
        model: The model's name, for errors.
        loss: The loss that they are for, or a nest of losses; None for metrics.
        name: Where the outputs are, for errors.

    Raises:
        FieldError: If there is an output without a target (also a KeyError).
        DTypeError: If one is ragged and the other not (also a TypeError).
    """
    if not isinstance(y_pred, (dict, list, tuple)):
        return _plain(y, y_pred, sample_weight, name, model, takes_mean(loss))
    is_dict = isinstance(y_pred, dict)
    keys: list[Any] = list(y_pred) if is_dict else list(range(len(y_pred)))
    parts: list[tuple[Any, Any, Any]] = []
    for key in keys:
        truth = _field(y, key, f"{model}: target") if is_dict else y[key]
        is_nest = isinstance(sample_weight, (dict, list, tuple))
        weight = sample_weight[key] if is_nest else sample_weight
        inner = loss[key] if isinstance(loss, (dict, list, tuple)) else loss
        parts.append(by_values(truth, y_pred[key], weight, model, inner, f"{name} {key}"))
    truths, outputs, weights = (
        dict(zip(keys, part, strict=True)) if is_dict else list(part)
        for part in zip(*parts, strict=True)
    )
    return truths, outputs, _if_any(weights)


def by_field(
    names: list[str], y: Any, y_pred: Any, sample_weight: Any, model: str, loss: Any = None
) -> tuple[Any, Any, Any]:
    """Returns targets, outputs and weights as dicts from the names of fields to plain tensors.

    A ragged field is replaced by its values, one after another, each with the weight of its record.

    Args:
        names: The fields, by name or path.
        y: Targets: a StructuredTensor, or a nest of dicts.
        y_pred: Outputs.
        sample_weight: One weight for each record, a dict of them by field, or None.
        model: The model's name, for errors.
        loss: The losses by name; None for metrics.

    Raises:
        FieldError: If there is no such field among targets or outputs (also a KeyError).
        DTypeError: If one is ragged and the other not (also a TypeError).
    """
    truths: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for name in names:
        output = _field(y_pred, name, f"{model}: output")
        truth = _field(y, name, f"{model}: target")
        weight = sample_weight.get(name) if isinstance(sample_weight, dict) else sample_weight
        is_mean = takes_mean(loss[name] if isinstance(loss, dict) else loss)
        parts = _plain(truth, output, weight, name, model, is_mean)
        truths[name], outputs[name], weights[name] = parts
    return truths, outputs, _if_any(weights)


def _if_any(weights: Any) -> Any:
    """Returns a nest of weights, or None if it holds none."""
    return weights if any(weight is not None for weight in tf.nest.flatten(weights)) else None


def takes_mean(loss: Any) -> bool:
    """Returns whether Keras takes the mean of a loss over all values."""
    means = ("sum_over_batch_size", "mean")
    return loss is not None and getattr(loss, "reduction", means[0]) in means


def _field(value: Any, name: str, what: str) -> Any:
    """Returns a part of a nest of dicts and extension values."""
    if isinstance(value, dict) and name in value:
        return value[name]
    names = [name] if isinstance(value, StructuredTensor) and name in value.field_names() else None
    for step in names or Path.of(name):
        # The fields of declared types are attributes.
        is_nest = isinstance(value, (dict, StructuredTensor))
        if not (step in value if is_nest else is_extension(value) and hasattr(value, step)):
            listed = value if isinstance(value, dict) else getattr(value, "field_names", tuple)()
            raise FieldError(
                path=f"{what} {name}",
                expected="this field, for which a loss or metric was chosen",
                received=f"fields {', '.join(map(str, listed))}" if is_nest else "none",
                mend="Name fields of the outputs in compile(loss=..., metrics=...).",
            )
        value = value[step] if is_nest else getattr(value, step)
    return value


def _plain(
    truth: Any, output: Any, weight: Any, name: str, model: str, is_mean: bool
) -> tuple[Any, Any, Any]:
    ragged = [isinstance(part, tf.RaggedTensor) for part in (truth, output)]
    if any(ragged) and not all(ragged):
        raise DTypeError(
            path=f"{model}: {name}",
            expected="a ragged target and a ragged output, or none",
            received="ragged " + ("targets" if ragged[0] else "outputs") + " alone",
            mend="Make both ragged, or both dense with to_tensor.",
        )
    if all(ragged):
        weight = weights_of_values(output, weight, is_mean)
        splits = zip(truth.nested_row_splits, output.nested_row_splits, strict=False)
        if truth.ragged_rank != output.ragged_rank:
            raise StructureError(
                path=f"{model}: {name}",
                expected=f"ragged rank {truth.ragged_rank}, as the targets have",
                received=f"{output.ragged_rank}",
                mend="Return an output that is cut as its targets are.",
            )
        message = f"{model}: {name}: outputs are not cut into the rows of the targets"
        checks = [
            tf.debugging.assert_equal(tf.cast(a, tf.int64), tf.cast(b, tf.int64), message)
            for a, b in splits
        ]
        with tf.control_dependencies([check for check in checks if check is not None]):
            truth, output = truth.flat_values, tf.identity(output.flat_values)
    if getattr(output, "shape", tf.TensorShape(None)).rank == 1 and not is_extension(output):
        # Keras takes the mean along the last dimension before it weighs the records.
        output = output[:, tf.newaxis]
        truth = tf.convert_to_tensor(truth)
        truth = truth[:, tf.newaxis] if truth.shape.rank == 1 else truth
    return truth, output, weight


def weights_of_values(ragged: Any, weight: Any, is_mean: bool) -> Any:
    """Returns the weight of each value of a ragged tensor, from those of its rows.

    Where it is cut over replicas, Keras averages their means, though one has more values than
    another. So with `is_mean` the weights make the average the mean over the values of all.
    """
    if weight is not None:
        weight = tf.convert_to_tensor(weight)
        for lengths in ragged.nested_row_lengths():
            weight = tf.repeat(weight, lengths, axis=0)
    context = tf.distribute.get_replica_context()
    if not is_mean or context is None or context.num_replicas_in_sync == 1:
        return weight
    mine = tf.cast(tf.shape(ragged.flat_values)[0], keras.config.floatx())
    share = tf.math.divide_no_nan(mine, context.all_reduce("sum", mine))
    share *= context.num_replicas_in_sync
    if weight is None:
        return tf.fill(tf.shape(ragged.flat_values)[:1], share)
    return tf.cast(weight, share.dtype) * share
