"""The laws of specs that stack: boxes, and the datasets that are made with them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor.core.box import box, boxed_specs, unbox
from extensor.testing.law import expect, law
from extensor.testing.subject import Subject, stacks
from extensor.testing.value_law import expect_equal


def _stacks(subject: Subject) -> bool:
    return all(map(stacks, subject.specs))


@law(
    "boxes-rebuild-value",
    *("components-rebuild-value", "flatten-agrees"),
    mend="Let from_boxed_tensor undo to_boxed_tensor.",
    applies=_stacks,
)
def boxes_rebuild_value(subject: Subject) -> None:
    """A value is rebuilt from its boxed tensors."""
    for value, spec in subject.pairs:
        expect_equal(value, unbox(spec, box(spec, value)), "the value that was boxed")


@law(
    "boxed-spec-describes-boxes",
    "boxes-rebuild-value",
    mend="Let boxed_tensor_spec describe, one by one, what to_boxed_tensor returns.",
    applies=_stacks,
)
def boxed_spec_describes_boxes(subject: Subject) -> None:
    """The boxed tensor specs of a spec are compatible with the boxes of its values."""
    for value, spec in subject.pairs:
        boxes, specs = box(spec, value), boxed_specs(spec)
        expect(len(boxes) == len(specs), f"{len(specs)} boxed tensors", len(boxes))
        for i, (a, b) in enumerate(zip(specs, boxes, strict=True)):
            expect(
                a.is_compatible_with(b), f"boxed tensor {i} to be {a}", f"{b.dtype.name} {b.shape}"
            )


@law(
    "unstacked-undoes-stacked",
    *("serialization-round-trip", "compatibility-is-reflexive"),
    mend="Let stacked add a dimension in front of every shape, and unstacked drop it.",
    applies=_stacks,
)
def unstacked_undoes_stacked(subject: Subject) -> None:
    """A spec that is stacked and unstacked again is compatible with itself, for any number."""
    for spec in subject.specs:
        for count in (2, None):
            again = _tf.unstacked(_tf.stacked(spec, count))
            expect(spec.is_compatible_with(again), f"a spec compatible with {spec}", again)


@law(
    "stacked-boxes-stack-values",
    *("boxed-spec-describes-boxes", "unstacked-undoes-stacked", "compatibility-takes-values"),
    *("equality-is-equivalence", "compatibility-with-generalisation"),
    mend="Make boxes that can be stacked in front of their first dimension: leave the order of "
    "dimensions as it is, and let to_boxed_tensor(value, 1) return what stacking gave.",
    applies=_stacks,
)
def stacked_boxes_stack_values(subject: Subject) -> None:
    """Stacked boxes unbox to the stacked value, whose unstacked boxes unbox to the values."""
    for value, spec in subject.pairs:
        rows = [value, *(v for v, s in subject.pairs if s == spec)]
        batch_spec = _tf.stacked(spec, len(rows))
        columns = zip(*(box(spec, row) for row in rows), strict=True)
        batch = unbox(batch_spec, [tf.stack(column) for column in columns])
        expect(
            batch_spec.is_compatible_with(batch),
            f"a value of {batch_spec} out of stacked boxes",
            tf.type_spec_from_value(batch),
        )
        columns = [tf.unstack(tensor, len(rows)) for tensor in box(batch_spec, batch, 1)]
        row_spec = _tf.unstacked(batch_spec)
        again = [unbox(row_spec, list(boxes)) for boxes in zip(*columns, strict=True)]
        for i, (a, b) in enumerate(zip(rows, again, strict=True)):
            expect_equal(a, b, f"value {i} back from the stacked value")


@law(
    "dataset-batches-and-unbatches",
    *("stacked-boxes-stack-values", "function-carries-value"),
    mend="Box and unbox with TensorFlow ops alone: a dataset does it in a graph.",
    applies=_stacks,
)
def dataset_batches_and_unbatches(subject: Subject) -> None:
    """A dataset of a value, batched and unbatched, yields the value."""

    def same(value: Any) -> Any:
        return value

    for value, spec in subject.pairs:
        # Dataset.unbatch of tensors without an element ends the process (TensorFlow 2.21).
        if any(tensor.shape.num_elements() == 0 for tensor in box(spec, value)):
            continue
        dataset: Any = tf.data.Dataset.from_tensors(value).repeat(2).map(same).batch(2)
        again = list(dataset.unbatch())
        expect(len(again) == 2, "two values", len(again))
        for received in again:
            expect_equal(value, received, "the value that went in")
