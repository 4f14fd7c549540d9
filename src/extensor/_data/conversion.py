"""Tables as datasets of batches, up to the first batch that cannot be converted."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow.parallel_columns import convert_columns
from extensor._arrow.read import read_records
from extensor._arrow.schema import spec_from_schema
from extensor._arrow.strings_by_batch import StringsByBatch
from extensor._data.dataset_graph import boxes_of
from extensor._data.position import Positioned
from extensor._path import Path
from extensor._protocol.box import box, boxed_specs
from extensor._raised import error_of_text, mark
from extensor._struct.masked import is_union
from extensor._struct.ragged import RaggedStructuredTensor
from extensor._struct.row_splits import cut
from extensor._struct.tensor import StructuredTensor
from extensor._tf import stacked
from extensor._tf._tf_named_function import call_named, function_of_dataset, name_function
from extensor._typing import NullsLike
from extensor.errors import ExtensorError


class Conversion:
    """How the records of a dataset become batches.

    Args:
        plan: The arguments `batch_size` and `drop_remainder`.
        schema: The schema of the records.
        splits: As `row_splits_dtype` of `from_arrow`.
        nulls: As in `from_arrow`.
    """

    def __init__(
        self, plan: Positioned, schema: pa.Schema, splits: tf.DType, nulls: NullsLike
    ) -> None:
        static = plan.batch_size if plan.drop_remainder else None
        self.spec = spec_from_schema(schema, static, splits, nulls)
        """The spec of a batch."""
        self._schema = schema
        self.splits = splits
        self.nulls: NullsLike = nulls
        self._cuts_by_batch = True

    def batches(
        self,
        table: pa.Table,
        size: int,
        first: int,
        place: Callable[[int], str] | None = None,
        count: int | None = None,
    ) -> list[tf.data.Dataset]:
        """Returns a dataset of the batches of a table, and one of the batch after them.

        Where records cannot be converted, the last dataset raises the error after the batches
        before it.

        Args:
            table: The records. Strings may be in dictionaries.
            size: The number of records in a batch.
            first: The number of the table's first record, for errors.
            place: Returns where a record is, by its number, for errors.
            count: The number of batches in the first dataset. Default: all that are full.
        """
        count = table.num_rows // size if count is None else count
        if not count:  # one smaller batch
            size, count = table.num_rows, 1
        with contextlib.suppress(ExtensorError):
            return self._convert(table, size, count)
        made: list[tf.data.Dataset] = []
        for at in range(0, table.num_rows, size):
            batch = table.slice(at, size)
            try:
                made += self._convert(batch, batch.num_rows, 1)
            except ExtensorError as error:
                where = f"of the batch that begins with record {first + at}"
                if place is not None:
                    where += f" ({place(first + at + self._first_wrong(batch))})"
                made.append(failing_dataset(_error_at(error, where), self.spec))
                break
        return [concatenate(made[:count]), *made[count:]]

    def _convert(self, table: pa.Table, size: int, count: int) -> list[tf.data.Dataset]:
        if self._cuts_by_batch:
            strings = StringsByBatch(-(-table.num_rows // size))
            found = batches_of(self._read(table, strings), size, count, self.spec, strings)
            if not strings:
                return found
            self._cuts_by_batch = False  # some are in arrays or unions in lists
        return batches_of(self._read(table), size, count, self.spec)

    def _read(self, table: pa.Table, strings: StringsByBatch | None = None) -> StructuredTensor:
        return read_records(table, self.splits, self.nulls, self._schema, True, strings)

    def _first_wrong(self, table: pa.Table) -> int:
        """Returns the number of the first record that cannot be converted."""
        good, bad = 0, table.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (good, middle) if self._fails(table.slice(0, middle)) else (middle, bad)
        return bad - 1

    def _fails(self, table: pa.Table) -> bool:
        try:
            self._read(table)
        except ExtensorError:
            return True
        return False


def concatenate(datasets: list[tf.data.Dataset]) -> tf.data.Dataset:
    """Returns datasets one after another."""
    return functools.reduce(lambda one, other: one.concatenate(other), datasets)


def _error_at(error: ExtensorError, where: str) -> ExtensorError:
    """Returns an error that says where the record is that cannot be converted."""
    if error.received is None:
        return type(error)(f"{error} The record is one {where}.")
    return type(error)(error.path, error.expected, f"{error.received} {where}", error.fix)


_NAME = "extensor.data.fail"


def failing_dataset(error: BaseException, spec: tf.TypeSpec) -> tf.data.Dataset:
    """Returns a dataset that raises an error in place of its first element.

    Args:
        error: The error.
        spec: The spec of the elements that it does not have.
    """
    message = tf.raw_ops.TensorDataset(components=[np.array(str(mark(error)))], output_shapes=[[]])
    variant = tf.raw_ops.FlatMapDataset(
        input_dataset=message, other_arguments=[], f=_function(), **boxes_of(spec)
    )
    return tf.data.experimental.from_variant(variant, spec)


def _fail(message: tf.Tensor) -> tf.Tensor:
    raise error_of_text(message.numpy().decode())


@functools.cache
def _function() -> Callable[..., tf.Tensor]:
    name_function(_NAME, _fail, tf.variant)

    def fail(message: tf.Tensor) -> tf.Tensor:
        returned = call_named(_NAME, [message], tf.variant)
        returned.set_shape([])
        return returned

    with tf.init_scope():
        return function_of_dataset(fail, tf.TensorSpec([], tf.string))


# Records in lists: from here on, columns are cut in parallel.
_MANY = 1 << 14


def batches_of(
    records: StructuredTensor,
    size: int,
    count: int,
    spec: tf.TypeSpec,
    strings: StringsByBatch | None = None,
) -> list[tf.data.Dataset]:
    """Returns datasets of the batches of records. Copies no numbers and no strings.

    Args:
        records: Records from `from_arrow`.
        size: The number of records in a batch.
        count: The number of batches of this size in the first dataset, at least one. The records
            after them, if there are any, are the only batch of a second dataset.
        spec: The spec of a batch.
        strings: Those of the records that are cut with their batches.

    >>> from extensor._data.conversion import batches_of
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> records = xt.DenseStructuredTensor([5], {"x": [1, 2, 3, 4, 5]})
    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.int32)})
    >>> datasets = batches_of(records, 2, 2, spec)
    >>> [[batch["x"].numpy().tolist() for batch in dataset] for dataset in datasets]
    [[[1, 2], [3, 4]], [[5]]]
    """
    nrows = records.shape[0]
    assert nrows is not None
    has_rest = count * size < nrows
    ends = np.arange(count + 1 + has_rest) * size
    ends[-1] = nrows
    boxes = _Cut(ends, strings).boxes(records, spec)
    with tf.device("CPU:0"):
        variants = tf.raw_ops.PartitionedCall(
            args=[tf.constant([count, size]), *boxes],
            Tout=[tf.variant] * (1 + has_rest),
            f=_slices(spec, has_rest),
        )
    return [tf.data.experimental.from_variant(variant, spec) for variant in variants]


@functools.lru_cache(maxsize=128)
def _slices(spec: tf.TypeSpec, has_rest: bool) -> Callable[..., list[tf.Tensor]]:
    """Returns a function of boxes that makes the datasets of `batches_of`, as variants.

    The op alone takes half a millisecond more for each call, because TensorFlow then makes a
    function for it each time. The arguments are the number and the size of batches, and the boxes:
    a vector with a variant for each batch, or a tensor of all records.

    Args:
        spec: The spec of a batch.
        has_rest: Whether there are records after these batches.
    """
    specs = boxed_specs(spec)

    def slices(numbers: tf.Tensor, *boxes: tf.Tensor) -> list[tf.Tensor]:
        count, size = tf.unstack(numbers)
        full, rest = list[tf.Tensor](), list[tf.Tensor]()
        for tensor in boxes:
            if tensor.dtype == tf.variant:
                full.append(tensor[:count])
                rest.append(tensor[count:])
                continue
            shape = tf.concat([numbers, tf.shape(tensor)[1:]], 0)
            full.append(tf.reshape(tensor[: count * size], shape))
            rest.append(tensor[count * size :][tf.newaxis])
        shapes = [row.shape for row in specs]
        return [
            tf.raw_ops.TensorSliceDataset(components=stack, output_shapes=shapes)
            for stack in ([full, rest] if has_rest else [full])
        ]

    with tf.init_scope():
        function = tf.function(slices, autograph=False)
        arguments = (tf.TensorSpec(None, row.dtype) for row in specs)
        return function.get_concrete_function(tf.TensorSpec([2], tf.int32), *arguments)


@functools.lru_cache(maxsize=1024)
def _stack_of(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of a stack of values: that of each stack would be made anew."""
    return stacked(spec, None)


class _Cut:
    """Cuts values into batches, as boxes.

    Args:
        ends: The number of the first record of each batch, and the number of records.
        strings: As in `batches_of`.
    """

    def __init__(self, ends: np.ndarray[Any, Any], strings: StringsByBatch | None) -> None:
        self._ends = ends
        self._strings = strings
        self._splits: dict[tf.DType, tf.Tensor] = {}

    def boxes(self, value: Any, spec: Any) -> list[tf.Tensor]:
        """Returns the boxes of a value: tensors as they are, and variants for each batch.

        Args:
            value: The value.
            spec: The spec of a batch of it.
        """
        if isinstance(value, tf.Tensor):
            return [value]
        if isinstance(value, (tf.RaggedTensor, RaggedStructuredTensor)):
            return self._lists(_stack_of(spec), self._cut(value, value.row_splits.dtype))
        if not isinstance(value, StructuredTensor) and is_union(value):
            # Its variants have rows of their own, which its boxes cut by the codes.
            if isinstance(value.codes, tf.RaggedTensor):
                return box(_stack_of(spec), self._cut(value, value.codes.row_splits.dtype), 1)
            cut_spec = spec.__tf_cut_rows__(None, tf.int64)
            return [value.codes, *box(cut_spec, self._cut(value, tf.int64), 1)[1:]]
        # Dense records or masked values: the boxes of all components.
        parts = tf.nest.flatten(spec.to_components(value))
        specs = tf.nest.flatten(spec.component_specs)
        # The op copies the values of lists.
        lists = {i: p.values for i, p in enumerate(parts) if isinstance(p, RaggedStructuredTensor)}
        sizes = {i: int(values.shape[0] or 0) for i, values in lists.items()}
        found = convert_columns(
            lambda i: self.boxes(parts[i], specs[i]),
            len(parts),
            {i: size for i, size in sizes.items() if size > _MANY},
        )
        return [tensor for boxes in found for tensor in boxes]

    def _lists(self, stack: Any, batches: Any) -> list[tf.Tensor]:
        """Returns the boxes of lists whose rows are the batches."""
        if not self._strings:
            return box(stack, batches, 1)
        columns = [(stack, batches)]
        if isinstance(batches, RaggedStructuredTensor):
            specs = [spec for spec, _ in stack._column_boxes]
            columns = list(zip(specs, stack._to_columns(batches), strict=True))
        found = [self._strings.box(column) or box(spec, column, 1) for spec, column in columns]
        return [tensor for boxes in found for tensor in boxes]

    def _cut(self, value: Any, dtype: tf.DType) -> Any:
        """Returns a value with its rows in lists, which are the batches."""
        if dtype not in self._splits:
            self._splits[dtype] = tf.constant(self._ends, dtype)
        return cut(value, self._splits[dtype], Path())
