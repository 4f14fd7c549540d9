"""The laws of specs that stack: boxes, and datasets that use them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._count_text import count_text
from extensor._protocol.box import box, boxed_specs, unbox
from extensor._testing.law import expect, law
from extensor._testing.subject import Subject, leaves, stacks
from extensor._testing.value_law import expect_equal
from extensor._typing import Value


def _stacks(subject: Subject) -> bool:
    return all(map(stacks, subject.specs))


def _unstacks(subject: Subject) -> bool:
    """Returns whether values have boxes, which hold the number of stacked values."""
    return _stacks(subject) and all(map(leaves, subject.specs))


# Boxes.


@law(
    "boxed-spec-describes-boxes",
    *("components-rebuild-value", "value-type", "flatten-agrees"),
    fix="Return one spec from boxed_tensor_spec for each tensor that to_boxed_tensor returns.",
    applies=_stacks,
)
def boxed_spec_describes_boxes(subject: Subject) -> None:
    """The boxed tensor specs of a spec are compatible with the boxes of its values."""
    for value, spec in subject.pairs:
        _expect_described(spec, box(spec, value), 0)


def _expect_described(spec: tf.TypeSpec, boxes: list[Any], minimum_rank: int) -> None:
    specs = boxed_specs(spec, minimum_rank)
    expect(len(boxes) == len(specs), f"{len(specs)} boxed tensors", len(boxes))
    for i, (a, b) in enumerate(zip(specs, boxes, strict=True)):
        expect(a.is_compatible_with(b), f"boxed tensor {i} to be {a}", f"{b.dtype.name} {b.shape}")


@law(
    "boxes-rebuild-value",
    "boxed-spec-describes-boxes",
    fix="Make from_boxed_tensor the inverse of to_boxed_tensor.",
    applies=_stacks,
)
def boxes_rebuild_value(subject: Subject) -> None:
    """from_boxed_tensor returns a value equal to the one that was boxed."""
    for value, spec in subject.pairs:
        expect_equal(value, unbox(spec, box(spec, value)), "the value that was boxed")


@law(
    "unstacked-undoes-stacked",
    *("serialization-round-trip", "compatibility-is-reflexive"),
    fix="Add a first dimension to every shape in stacked, and remove it in unstacked.",
    applies=_stacks,
)
def unstacked_undoes_stacked(subject: Subject) -> None:
    """A spec that is stacked and then unstacked is compatible with the original, for any count."""
    for spec in subject.specs:
        for count in (2, None):
            again = _tf.unstacked(_tf.stacked(spec, count))
            expect(spec.is_compatible_with(again), f"a spec compatible with {spec}", again)


# Stacked values.


def _stacks_of(subject: Subject) -> list[tuple[Any, list[Any]]]:
    """Returns for each value its spec and two or more values of this spec."""
    return [
        (spec, [value, *(v for v, s in subject.pairs if s == spec)])
        for value, spec in subject.pairs
    ]


def _stack(spec: tf.TypeSpec, rows: list[Any], count: int | None) -> Value:
    columns = zip(*(box(spec, row) for row in rows), strict=True)
    return unbox(_tf.stacked(spec, count), [tf.stack(column) for column in columns])


def _unstack(spec: tf.TypeSpec, boxes: list[Any]) -> list[Any]:
    """Returns the values in boxes, one for each position of the first dimension."""
    columns = [tf.unstack(tensor) for tensor in boxes]
    return [unbox(spec, list(row)) for row in zip(*columns, strict=True)]


def _expect_rows(rows: list[Any], received: list[Any], what: str) -> None:
    expect(len(rows) == len(received), count_text(len(rows), "values"), len(received))
    for i, (a, b) in enumerate(zip(rows, received, strict=True)):
        expect_equal(a, b, f"value {i} {what}")


@law(
    "stacked-boxes-stack-values",
    *("boxes-rebuild-value", "unstacked-undoes-stacked", "compatibility-takes-values"),
    *("equality-is-equivalence", "compatibility-with-generalisation"),
    fix="Boxes are stacked along a new first dimension: do not change the order of dimensions.",
    applies=_stacks,
)
def stacked_boxes_stack_values(subject: Subject) -> None:
    """Stacked boxes unbox to a value of the stacked spec, with a static count or without."""
    for spec, rows in _stacks_of(subject):
        for count in (len(rows), None):
            batch_spec, batch = _tf.stacked(spec, count), _stack(spec, rows, count)
            expected = f"a value of {batch_spec} from stacked boxes"
            expect(batch_spec.is_compatible_with(batch), expected, tf.type_spec_from_value(batch))


@law(
    "boxes-have-minimum-rank",
    "stacked-boxes-stack-values",
    fix="Return tensors from to_boxed_tensor(value, minimum_rank) whose first minimum_rank "
    "dimensions are those of the value.",
    applies=_stacks,
)
def boxes_have_minimum_rank(subject: Subject) -> None:
    """With minimum_rank=1, the first dimension of the boxes of a stacked value is the number of
    values, and the boxes match their specs.
    """  # noqa: D205 - the docstring is the statement of the law
    for spec, rows in _stacks_of(subject):
        batch_spec = _tf.stacked(spec, len(rows))
        boxes = box(batch_spec, _stack(spec, rows, len(rows)), 1)
        _expect_described(batch_spec, boxes, 1)
        for i, tensor in enumerate(boxes):
            expected = count_text(len(rows), f"rows in boxed tensor {i}")
            received = f"shape {tensor.shape}"
            expect(tensor.shape.rank and tensor.shape[0] == len(rows), expected, received)


@law(
    "unstacked-boxes-unstack-values",
    "boxes-have-minimum-rank",
    fix="Return from to_boxed_tensor(value, 1) the stacked boxes of the rows.",
    applies=_unstacks,
)
def unstacked_boxes_unstack_values(subject: Subject) -> None:
    """The unstacked boxes of a stacked value unbox to the original values."""
    for spec, rows in _stacks_of(subject):
        batch_spec, batch = _tf.stacked(spec, len(rows)), _stack(spec, rows, len(rows))
        again = _unstack(_tf.unstacked(batch_spec), box(batch_spec, batch, 1))
        _expect_rows(rows, again, "of the stacked value to be equal to the original")


@law(
    "concatenated-boxes-concatenate-values",
    "unstacked-boxes-unstack-values",
    fix="Compute each row of the boxes from its own value only, not from its position.",
    applies=_unstacks,
)
def concatenated_boxes_concatenate_values(subject: Subject) -> None:
    """The concatenated boxes of two stacked values unbox to a stack of all values."""
    for spec, rows in _stacks_of(subject):
        batch_spec, batch = _tf.stacked(spec, len(rows)), _stack(spec, rows, len(rows))
        # tf.concat has no kernel for variants, and TensorFlow's own types box into variants.
        boxes = [tf.stack(tf.unstack(box_) * 2) for box_ in box(batch_spec, batch, 1)]
        both_spec = _tf.stacked(spec, 2 * len(rows))
        again = _unstack(_tf.unstacked(both_spec), box(both_spec, unbox(both_spec, boxes), 1))
        _expect_rows(rows * 2, again, "of the concatenated values to be equal to the original")


@law(
    "reshaped-boxes-batch-values",
    "unstacked-boxes-unstack-values",
    fix="Let a spec that is stacked twice unbox boxes that are stacked twice, and return the same "
    "boxes from to_boxed_tensor(value, 2).",
    applies=_unstacks,
)
def reshaped_boxes_batch_values(subject: Subject) -> None:
    """The boxes of a stacked value can be reshaped to batches, and unbox to a stack of batches."""
    for spec, rows in _stacks_of(subject):
        both = rows * 2
        boxes = box(_tf.stacked(spec, len(both)), _stack(spec, both, len(both)), 1)
        sizes = [2, len(rows)]
        reshaped = [tf.reshape(t, tf.concat([sizes, tf.shape(t)[1:]], 0)) for t in boxes]
        batches_spec = _tf.stacked(_tf.stacked(spec, len(rows)), 2)
        batches = box(batches_spec, unbox(batches_spec, reshaped), 2)
        again = [row for i in range(2) for row in _unstack(spec, [t[i] for t in batches])]
        _expect_rows(both, again, "of the batches to be equal to the original")


@law(
    "no-boxes-are-a-batch",
    "unstacked-boxes-unstack-values",
    fix="Accept boxes whose first dimension is 0 in from_boxed_tensor.",
    applies=_unstacks,
)
def no_boxes_are_a_batch(subject: Subject) -> None:
    """Boxes with a first dimension of 0 unbox to an empty stack."""
    for spec, rows in _stacks_of(subject):
        boxes = box(_tf.stacked(spec, len(rows)), _stack(spec, rows, len(rows)), 1)
        for count in (0, None):
            empty_spec = _tf.stacked(spec, count)
            empty = unbox(empty_spec, [tensor[:0] for tensor in boxes])
            expected = f"a value of {empty_spec} from empty boxes"
            expect(empty_spec.is_compatible_with(empty), expected, tf.type_spec_from_value(empty))


@law(
    "dataset-batches-and-unbatches",
    *("unstacked-boxes-unstack-values", "function-carries-value"),
    fix="Use only TensorFlow ops to box and unbox: datasets do both in a graph.",
    applies=_unstacks,
)
def dataset_batches_and_unbatches(subject: Subject) -> None:
    """A dataset that is batched and unbatched yields the original values."""

    def same(value: object) -> object:
        return value

    for value, spec in subject.pairs:
        # Dataset.unbatch ends the process if a tensor has no elements (TensorFlow 2.21).
        if any(tensor.shape.num_elements() == 0 for tensor in box(spec, value)):
            continue
        dataset: Any = tf.data.Dataset.from_tensors(value).repeat(2).map(same).batch(2)
        _expect_rows([value, value], list(dataset.unbatch()), "to be equal to the original")
