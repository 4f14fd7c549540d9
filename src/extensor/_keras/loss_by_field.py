"""Conversion of extension values to plain tensors for losses and metrics, field by field.

A ragged tensor is replaced by its flat values, each with the weight of its record. Rows whose
target is null do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import LossOfFunction, with_mask
from extensor._keras.lowering import contains, is_extension
from extensor._path import Path
from extensor._protocol.tree import map_leaves
from extensor._struct.masked import records_in
from extensor._struct.tensor import StructuredTensor
from extensor._types.masked.value import MaskedTensor
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, FieldError, StructureError


def chosen_fields(*choices: Nest) -> list[str]:
    """Returns the names of the fields that have a loss or metric.

    Args:
        *choices: Arguments of `compile`. Dicts map fields to losses or metrics; others are ignored.
    """
    names: dict[str, None] = {}
    for choice in choices:
        if isinstance(choice, dict):
            names.update((name, None) for name, item in choice.items() if item is not None)
    return list(names)


def check_fields(path: str, chosen: Nest, names: Iterable[str]) -> None:
    """Raises unless every key of `chosen` is a field with a loss or a metric.

    Args:
        path: The name of the argument, for the error.
        chosen: A dict by field. Any other value passes.
        names: The fields with a loss or a metric.

    Raises:
        FieldError: If a key is not one of the fields (also a KeyError).
    """
    for name in chosen if isinstance(chosen, dict) else ():
        if name not in names:
            expected = f"one of the fields with a loss or metric: {', '.join(names)}"
            fix = "Name the same fields as in compile(loss=..., metrics=...)."
            raise FieldError(f"{path} {name}", expected, name, fix)


def by_values(
    y: Nest, y_pred: Nest, sample_weight: Nest, model: str, loss: Nest = None, name: str = "output"
) -> tuple[Any, Any, Any]:
    """Returns targets, outputs and weights, with ragged tensors replaced by their flat values.

    Args:
        y: Targets: a tensor, or a nest with the structure of the outputs.
        y_pred: Outputs.
        sample_weight: One weight for each record, a nest of such weights, or None.
        model: The model's name, for errors.
        loss: The loss, or a nest of losses; None for metrics.
        name: The path of the outputs, for errors.

    Raises:
        FieldError: If an output has no target (also a KeyError).
        DTypeError: If only the target or only the output is ragged (also a TypeError).
    """
    if not isinstance(y_pred, (dict, list, tuple)):
        return _plain_tensors(y, y_pred, sample_weight, name, model, loss)
    is_dict = isinstance(y_pred, dict)
    keys: list[Any] = list(y_pred) if is_dict else list(range(len(y_pred)))
    nest = dict if is_dict else (list, tuple)
    parts: list[tuple[Any, Any, Any]] = []
    for key in keys:
        truth = _field(y, key, f"{model}: target") if is_dict else y[key]
        weight = sample_weight[key] if isinstance(sample_weight, nest) else sample_weight
        inner = loss[key] if isinstance(loss, nest) else loss
        at = f"{name} {key}".strip()
        parts.append(by_values(truth, y_pred[key], weight, model, inner, at))
    truths, outputs, weights = (
        dict(zip(keys, part, strict=True)) if is_dict else list(part)
        for part in zip(*parts, strict=True)
    )
    is_weighted = any(weight is not None for weight in tf.nest.flatten(weights))
    return truths, outputs, weights if is_weighted else None


def by_field(
    names: Sequence[str], y: Nest, y_pred: Nest, sample_weight: Nest, model: str, loss: Nest = None
) -> tuple[Any, Any, Any]:
    """Returns targets, outputs and weights as dicts from the names of fields to plain tensors.

    A ragged field is replaced by its flat values, each with the weight of its record.

    Args:
        names: The fields, by name or path.
        y: Targets: a StructuredTensor, or a nest of dicts.
        y_pred: Outputs.
        sample_weight: One weight for each record, a dict of such weights by field, or None.
        model: The model's name, for errors.
        loss: The losses by name; None for metrics.

    Raises:
        FieldError: If the targets or outputs do not have a field (also a KeyError).
        DTypeError: If only the target or only the output is ragged (also a TypeError).
    """
    outputs = {name: _field(y_pred, name, f"{model}: output") for name in names}
    if isinstance(sample_weight, dict):
        sample_weight = {name: sample_weight.get(name) for name in names}
    return by_values(y, outputs, sample_weight, model, loss, name="")


def in_order_of(y_pred: Nest, given: Nest, names: Sequence[str]) -> Nest:
    """Returns targets, weights or losses in the form of several outputs, as Keras pairs them.

    Args:
        y_pred: The outputs.
        given: A dict by the names of outputs in a list, or a list for outputs in a dict; or
            anything else, which is returned.
        names: The names of the outputs in a list.
    """
    if isinstance(y_pred, (list, tuple)) and isinstance(given, dict) and set(given) == set(names):
        return [given[name] for name in names]
    if isinstance(y_pred, dict) and isinstance(given, (list, tuple)) and len(given) == len(y_pred):
        return keras.tree.pack_sequence_as(y_pred, list(given))
    return given


def takes_mean(loss: Nest) -> bool:
    """Returns whether Keras takes the mean of a loss over all values."""
    means = ("sum_over_batch_size", "mean")
    return loss is not None and getattr(loss, "reduction", means[0]) in means


def _field(value: Nest, name: str, what: str) -> Value:
    """Returns the part of a nest of dicts and extension values at a name or path."""
    if isinstance(value, dict) and name in value:
        return value[name]
    names = [name] if isinstance(value, StructuredTensor) and name in value.field_names() else None
    for step in names or Path.of(name):
        # The fields of declared types are attributes. Masked records give fields with their mask.
        records = records_in(value)
        is_nest = isinstance(value, dict) or records is not None
        listed = value if records is None else records.field_names()
        if not (step in listed if is_nest else is_extension(value) and hasattr(value, step)):
            expected = "this field, because it has a loss or metric"
            received = f"fields {', '.join(map(str, listed))}" if is_nest else type(value).__name__
            fix = "Name fields of the outputs in compile(loss=..., metrics=...)."
            raise FieldError(f"{what} {name}", expected, received, fix)
        value = value[step] if is_nest else getattr(value, step)
    return value


def _plain_tensors(
    truth: Value, output: Value, weight: tf.Tensor | None, name: str, model: str, loss: Nest
) -> tuple[Any, Any, Any]:
    mask = None
    if is_extension(truth) and hasattr(truth, "__keras_mask__"):
        truth, mask = _target_and_mask(truth, f"{model}: target of {name}")
    if isinstance(output, MaskedTensor):
        output = output.unmasked(f"{model}: {name}")
    ragged = [isinstance(part, tf.RaggedTensor) for part in (truth, output)]
    if any(ragged) and not all(ragged):
        expected = "a target and an output that are both ragged or both dense"
        received = "a dense target and a ragged output"
        if ragged[0]:
            received = "a ragged target and a dense output"
        fix = "Make both ragged, or convert both to dense tensors with to_tensor."
        raise DTypeError(f"{model}: {name}", expected, received, fix)
    if all(ragged):
        weight = weights_of_values(output, weight, takes_mean(loss))
        splits = zip(truth.nested_row_splits, output.nested_row_splits, strict=False)
        if truth.ragged_rank != output.ragged_rank:
            expected = f"an output of ragged rank {truth.ragged_rank}, as of the target"
            received = f"ragged rank {output.ragged_rank}"
            fix = "Return an output with the rows of its target."
            raise StructureError(f"{model}: {name}", expected, received, fix)
        message = f"{model}: {name}: the rows of the outputs differ from those of the targets"
        checks = [
            tf.debugging.assert_equal(tf.cast(a, tf.int64), tf.cast(b, tf.int64), message)
            for a, b in splits
        ]
        with tf.control_dependencies([check for check in checks if check is not None]):
            truth, output = truth.flat_values, tf.identity(output.flat_values)
    if getattr(output, "shape", tf.TensorShape(None)).rank == 1 and not is_extension(output):
        # A last dimension of 1, because Keras takes the mean along it before weighing the records.
        output = output[:, tf.newaxis]
        truth = tf.convert_to_tensor(truth)
        truth = truth[:, tf.newaxis] if truth.shape.rank == 1 else truth
    if mask is None:
        return truth, output, weight
    if loss is not None:
        if takes_mean(loss):
            known = tf.math.count_nonzero(mask)
            weight = _over_replicas(weight, tf.size(mask), known)
        return truth, with_mask(output, mask), weight
    # The metrics of Keras do not use a mask without weights, so they get the other rows only.
    if weight is not None:
        weight = tf.boolean_mask(tf.convert_to_tensor(weight), mask)
    return tf.boolean_mask(truth, mask), tf.boolean_mask(output, mask), weight


def _target_and_mask(target: Value, path: str) -> tuple[Any, Any]:
    """Returns the tensor of a masked target, and its mask with one bool for each row.

    The mask is None for a target in which rows are not null as a whole, and so nothing may be null.
    """
    values, mask = getattr(target, "values", None), getattr(target, "mask", None)
    if not any(isinstance(part, (tf.RaggedTensor, StructuredTensor)) for part in (values, mask)):
        tensor, mask = target.__keras_mask__()
        if mask.shape.rank == 2 and mask.shape[1] == 1:
            mask = mask[:, 0]
        if mask.shape.rank == 1:
            return tensor, mask
    if isinstance(target, MaskedTensor):
        return target.unmasked(path), None
    expected = "a target with one value for each record, each valid or null as a whole"
    received = f"a {type(target).__name__} of shape {getattr(target, 'shape', 'unknown')}"
    fix = "Give a tensor and sample_weight=, or a loss function that takes whole values."
    raise DTypeError(path, expected, received, fix)


def weights_of_values(
    ragged: tf.RaggedTensor, weight: tf.Tensor | None, is_mean: bool
) -> tf.Tensor | None:
    """Returns the weight of each value of a ragged tensor, from the weights of its rows."""
    if weight is not None:
        weight = tf.convert_to_tensor(weight)
        for lengths in ragged.nested_row_lengths():
            weight = tf.repeat(weight, lengths, axis=0)
    size = tf.shape(ragged.flat_values)[0]
    return _over_replicas(weight, size, size) if is_mean else weight


def _over_replicas(
    weight: tf.Tensor | None, size: tf.Tensor, own_count: tf.Tensor
) -> tf.Tensor | None:
    """Returns weights with which the average of the means of all replicas is the mean of all.

    Keras averages the means of all replicas, but a replica may have more values than another.

    Args:
        weight: The weights, or None.
        size: How many weights there are.
        own_count: How many values the mean of this replica is of.
    """
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return weight
    own_count = tf.cast(own_count, keras.config.floatx())
    share = tf.math.divide_no_nan(own_count, context.all_reduce("sum", own_count))
    share *= context.num_replicas_in_sync
    if weight is None:
        return tf.fill([size], share)
    return tf.cast(weight, share.dtype) * share


@keras.saving.register_keras_serializable(package="extensor")
class FunctionLoss(LossOfFunction):
    """A loss function that takes whole extension values.

    Keras weights and reduces the result of the function, like every loss.

    Args:
        function: Takes the targets and the outputs. Returns one loss for each record, or a scalar.
        **kwargs: `name`, `reduction` and `dtype`, as for `keras.losses.Loss`.
    """

    def __init__(self, function: Any, **kwargs: object) -> None:
        if isinstance(function, dict):
            function = keras.saving.deserialize_keras_object(function)
        name = getattr(function, "__name__", type(function).__name__)
        # TensorFlow does not accept the name of a lambda. Keras changes names in the same way.
        kwargs.setdefault("name", re.sub(r"\W+", "", name))
        super().__init__(function, **kwargs)
        self.function = function

    def __call__(self, y_true: Nest, y_pred: Nest, sample_weight: Nest = None) -> tf.Tensor:
        """Returns the loss of a batch."""
        if not contains((y_true, y_pred), is_extension):
            return super().__call__(y_true, y_pred, sample_weight)
        losses = self.function(y_true, y_pred)
        if isinstance(losses, tf.RaggedTensor):
            sample_weight = weights_of_values(losses, sample_weight, takes_mean(self))
            losses = losses.flat_values
        return _ComputedLoss(reduction=self.reduction, dtype=self.dtype)(
            losses, losses, sample_weight
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {
            "function": keras.saving.serialize_keras_object(self.function),
            "name": self.name,
            "reduction": self.reduction,
        }


class _ComputedLoss(keras.losses.Loss):
    """A loss whose values are computed already, and only weighted and reduced."""

    def call(self, y_true: Nest, y_pred: Nest) -> tf.Tensor:
        return y_pred


def with_function_losses(loss: Nest) -> Nest:
    """Returns the argument `loss` of `compile` with each function wrapped in a `FunctionLoss`."""
    return map_leaves(_with_function, loss)


def _with_function(loss: Nest) -> Nest:
    is_function = callable(loss) and not isinstance(loss, (type, keras.losses.Loss))
    if not is_function or getattr(loss, "__module__", "").startswith("keras."):
        return loss
    return FunctionLoss(loss)


def check_losses(loss: Nest, y_pred: Nest, model: str) -> None:
    """Raises if a loss that takes tensors would get an extension value.

    Args:
        loss: The argument of `compile`, after `with_function_losses`.
        y_pred: The outputs that the loss would get.
        model: The model's name, for the error.

    Raises:
        DTypeError: If a loss would get an extension value; the error names the output (also a
            TypeError).
    """
    if isinstance(loss, dict):
        for name in loss if isinstance(y_pred, dict) else ():
            check_losses(loss[name], y_pred.get(name), f"{model}: output {name}")
    elif isinstance(loss, (FunctionLoss, list, tuple)) or loss is None:
        return
    elif contains(y_pred, is_extension):
        expected = f"a tensor or a ragged tensor, the input of the loss {_loss_name(loss)}"
        fix = (
            'Give losses by field, compile(loss={"score": "mse"}), or a function '
            "loss(y_true, y_pred) that takes whole values."
        )
        raise DTypeError(model, expected, "an extension value", fix)


def check_targets(loss: Nest, y: Nest, path: str) -> None:
    """Raises if a loss would get strings.

    Args:
        loss: The argument of `compile`.
        y: The targets that the loss would get.
        path: The name of the targets, for the error.

    Raises:
        DTypeError: If a loss would get strings; the error names the target (also a TypeError).
    """
    if isinstance(y, dict):
        for name, target in y.items():
            check_targets(
                loss.get(name) if isinstance(loss, dict) else loss, target, f"{path} {name}"
            )
    elif isinstance(y, (list, tuple)):
        losses = loss if isinstance(loss, (list, tuple)) else [loss] * len(y)
        for i, (each, target) in enumerate(zip(losses, y, strict=False)):
            check_targets(each, target, f"{path} {i}")
    elif loss is not None and getattr(y, "dtype", None) == tf.string:
        fix = (
            "Replace each string by its number in a vocabulary before fit: "
            "keras.layers.StringLookup(vocabulary=words, num_oov_indices=0)(labels)."
        )
        raise DTypeError(path, f"numbers, because of the loss {_loss_name(loss)}", "strings", fix)


def _loss_name(loss: Nest) -> str:
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
