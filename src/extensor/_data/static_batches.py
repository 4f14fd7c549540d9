"""Batches of static shapes, made of the records of a dataset: what `bucket` and `pack` share."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from extensor._protocol.named_leaves import named_leaves
from extensor._protocol.tree import supertype
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.index import with_zeros
from extensor._struct.paths.place import Names
from extensor._struct.paths.rows import size_of
from extensor._struct.paths.to_static import Sizes, with_null_rows
from extensor._struct.spec import resolve
from extensor._tf import data_nest
from extensor._typing import Nest
from extensor.errors import DTypeError, StructureError

# The number of records that are in one batch where a dataset has single records.
_RECORDS = 64


class StaticShape(NamedTuple):
    """The capacities of a batch.

    Attributes:
        rows: The number of records.
        padded: As for `to_static`.
        packed: As for `to_static`.
    """

    rows: int
    padded: Sizes
    packed: Sizes


class StaticBatches:
    """Batches of static shapes of the elements of a dataset: records, alone or with labels.

    Args:
        name: The function, for errors.
        dataset: The dataset, of batches or of single records.
        overflow: As for `to_static`.
        has_free_rows: Whether batches may have fewer records than places.

    Raises:
        DTypeError, StructureError: If the dataset has no records, or values that are no rows.
    """

    def __init__(
        self, name: str, dataset: tf.data.Dataset, overflow: str, has_free_rows: bool = True
    ) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            expected = "a tf.data.Dataset, such as xt.data.parquet returns"
            fix = "Give tf.data.Dataset.from_tensor_slices(records) for records in memory."
            raise DTypeError(f"{name}: dataset", expected, type(dataset).__name__, fix)
        self.name = name
        self._overflow = overflow
        self._has_free_rows = has_free_rows
        leaves = list(named_leaves(dataset.element_spec))
        kinds = [isinstance(spec, DenseStructuredTensorSpec) for _, spec in leaves]
        spec: Any = leaves[kinds.index(True)][1] if any(kinds) else None
        if spec is None or spec.rank > 1:
            received = f"elements of {type(dataset.element_spec).__name__}"
            fix = "Give a dataset of records; put lists of records into a field."
            raise DTypeError(f"{name}: dataset", "records, one for each row", received, fix)
        self._place = kinds.index(True)
        self._dataset = dataset
        self.batches = dataset.batch(_RECORDS) if spec.rank == 0 else dataset
        """The elements in batches of any size."""
        for names, leaf in named_leaves(self.batches.element_spec):
            _expect_rows(leaf, f"{name}: dataset{''.join(f'[{each}]' for each in names)}")

    @property
    def rows(self) -> tf.data.Dataset:
        """The elements of single records."""
        return self._dataset if self.batches is not self._dataset else self.batches.unbatch()

    def names_of(self, path: Any) -> Names:
        """Returns the names of a path in the records.

        Raises:
            FieldError: If there is no such field (also a KeyError).
        """
        spec: Any = data_nest.flatten(self.batches.element_spec)[self._place]
        names = resolve(path, tuple(spec.field_specs))
        spec.field_spec(path)
        return names

    def records_in(self, element: Nest) -> Any:
        """Returns the records of a batch."""
        return data_nest.flatten(element)[self._place]

    def made(self, element: Nest, shape: StaticShape) -> Nest:
        """Returns rows with static shapes, whose free places are null.

        Args:
            element: At most `shape.rows` rows.
            shape: The capacities.
        """
        leaves: list[Any] = data_nest.flatten(element)
        count = size_of(leaves[self._place])
        valid = tf.sequence_mask(count, shape.rows)
        # Keras takes the third of three values as the weights of the records: zeros.
        is_weighted = type(element) is tuple and len(element) == 3
        made: list[Any] = []
        for i, leaf in enumerate(leaves):
            value = with_zeros(leaf, shape.rows - count, shape.rows)
            if isinstance(tf.type_spec_from_value(leaf), DenseStructuredTensorSpec):
                own = (shape.padded, shape.packed) if i == self._place else (None, None)
                value = value.to_static(*own, overflow=self._overflow)
            is_weight = is_weighted and i == len(leaves) - 1
            is_null = self._has_free_rows and not is_weight
            made.append(with_null_rows(value, valid) if is_null else value)
        return data_nest.pack_sequence_as(element, made)

    def chosen(self, element: Nest, shapes: list[StaticShape], number: tf.Tensor) -> Nest:
        """Returns rows with one of several static shapes; the sizes that differ are open.

        Args:
            element: The rows.
            shapes: The capacities to choose from.
            number: The number of those that are chosen.
        """
        specs: list[list[Any]] = []

        def branch(shape: StaticShape) -> list[tf.Tensor]:
            made = self.made(element, shape)
            specs.append([tf.type_spec_from_value(leaf) for leaf in data_nest.flatten(made)])
            return tf.nest.flatten(made, expand_composites=True)

        branches = [functools.partial(branch, shape) for shape in shapes]
        flat: Any = tf.switch_case(tf.cast(number, tf.int32), branches)
        common = [functools.reduce(_common, each) for each in zip(*specs, strict=True)]
        leaves = tf.nest.pack_sequence_as(common, flat, expand_composites=True)
        return data_nest.pack_sequence_as(element, leaves)


def _common(a: tf.TypeSpec, b: tf.TypeSpec) -> tf.TypeSpec:
    found = supertype(a, b)
    assert found is not None  # they differ in sizes only
    return found


def _expect_rows(spec: Any, where: str) -> None:
    """Raises an error for a value of an element that is not one row for each record."""
    if isinstance(spec, tf.RaggedTensorSpec):
        fix = "Put it into the records, where its path gets a capacity."
        raise StructureError(where, "records, or one value for each of them", "lists", fix)
    shape = getattr(spec, "shape", None)
    if shape is not None and shape.rank == 0:
        fix = "Leave it out, or give one for each record."
        raise StructureError(where, "a value for each record", "one for all", fix)


def expect_sizes(sizes: object, where: str) -> None:
    """Raises an error if capacities are no mapping from paths."""
    if not isinstance(sizes, Mapping):
        raise DTypeError(where, "a mapping from paths", type(sizes).__name__, 'Write {"items": 8}.')


def text_of_sizes(sizes: Sizes) -> list[str]:
    """Returns capacities as data that JSON can represent."""
    return sorted(f"{path!r}: {size!r}" for path, size in sizes.items())
