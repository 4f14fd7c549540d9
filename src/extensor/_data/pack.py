"""pack: batches of one static shape, each of as many records as its items allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import tensorflow as tf

from extensor._authoring.comparison import with_checks
from extensor._choice import expect_one_of
from extensor._count_text import count_text
from extensor._data.position import positive
from extensor._data.regrouped import regroup
from extensor._data.static_batches import (
    StaticBatches,
    StaticShape,
    expect_sizes,
    text_of_sizes,
)
from extensor._path import Path
from extensor._protocol.run_time_check import LATER, assert_op
from extensor._struct import index
from extensor._struct.paths.place import Names
from extensor._struct.paths.to_static import Sizes, items_of_rows
from extensor._tf import data_nest, map_elements
from extensor.errors import StructureError

_NAME = "xt.data.pack"

# The number of records that are divided into batches at once.
_WINDOW = 1 << 13


def pack(
    dataset: tf.data.Dataset,
    packed: Sizes,
    batch_size: int | None = None,
    padded: Sizes | None = None,
    overflow: Literal["error", "cut", "drop"] = "error",
    state: dict[str, Any] | None = None,
) -> tf.data.Dataset:
    """Returns a dataset of batches of one static shape, of as many records as their items allow.

    A batch has the next records of the dataset, until the lists of one more would not fit. Then
    `to_static(packed=)` gives it its capacities. So all batches have about as many items, however
    long the lists are, and XLA compiles a model once.

    Args:
        dataset: Batches of records, as functions of `xt.data` return them, or single records; alone
            or in a tuple or dict with labels. The sizes of its batches do not matter.
        packed: The number of items in all lists of a batch together, by the path of the lists.
        batch_size: The number of places for records in a batch, which are null where they are free.
            Default: the smallest number of `packed`, so that lists of one item fill a batch.
        padded: The sizes of the other lists by path, as for `to_static`. A list of the records that
            has none is an error.
        overflow: "error" if the lists of one record must not have more items than a batch, "cut" to
            leave out those at its end, or "drop" to leave out such records.
        state: Where the first pass begins, from `xt.data.state` of this dataset. The batches before
            are made and dropped. Make `dataset` without a state.

    Returns:
        A dataset of unknown cardinality, whose element spec is static. Free rows are null, in
        labels too, so that losses of `xt.keras` leave them out; the third of three values, the
        weights of Keras, is 0 there. Records are divided into batches in windows of 8192 records,
        so the last batch of each window may have fewer than fit.

    Raises:
        FieldError: If a path does not exist (also a KeyError).
        StructureError: If there is no list at a path, a list has no capacity, a number is not
            positive, or `state` is of another dataset (also a ValueError). During iteration: an
            InvalidArgumentError if a record does not fit.
        DTypeError: If the dataset has no records, or an argument has another type (also a
            TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> lists = tf.ragged.constant([[1], [2, 3, 4], [5], [6, 7], [8]])
    >>> records = xt.DenseStructuredTensor([5], {"items": lists})
    >>> dataset = tf.data.Dataset.from_tensor_slices(records)
    >>> for batch in xt.data.pack(dataset, {"items": 5}, batch_size=3):
    ...     print(batch["items"].to_py())
    [[1], [2, 3, 4], [5]]
    [[6, 7], [8], [None, None]]
    """
    fix = 'Give "drop" to leave out the records that do not fit in a batch.'
    expect_one_of(("error", "cut", "drop"), overflow, f"{_NAME}: overflow", fix)
    made = StaticBatches(_NAME, dataset, "cut" if overflow == "cut" else "error")
    expect_sizes(packed, f"{_NAME}: packed")
    others = {} if padded is None else padded
    expect_sizes(others, f"{_NAME}: padded")
    fix = "Give the number of items in all lists of a batch."
    budgets: dict[Names, list[int]] = {}
    for path, given in packed.items():
        several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        names = made.names_of(path)
        budgets[names] = [positive(size, f"{_NAME}: {Path(*names)}", fix) for size in several]
    if not budgets:
        fix = 'Give for example {"items": 4096}; to pad all lists, use to_static in map.'
        raise StructureError(f"{_NAME}: packed", "a path of lists at least", "none", fix)
    smallest = min(size for sizes in budgets.values() for size in sizes)
    fix = "Give the number of places for records in a batch."
    rows = smallest if batch_size is None else positive(batch_size, f"{_NAME}: batch_size", fix)
    shape = StaticShape(rows, others, packed)

    @tf.autograph.experimental.do_not_convert
    def divide(element: Any) -> Any:
        counts, sizes = _counts(made.records_in(element), budgets)
        fits = tf.reduce_all(counts <= sizes, 1)
        if overflow == "drop":
            kept = tf.where(fits)[:, 0]
            counts = tf.gather(counts, kept)
            leaves = [index.gather(leaf, kept) for leaf in data_nest.flatten(element)]
            element = data_nest.pack_sequence_as(element, leaves)
        elif overflow == "cut":
            counts = tf.minimum(counts, sizes)
        else:
            counts = with_checks(_checks(counts, budgets), counts)
        return element, _ends(counts, sizes, rows)

    @tf.autograph.experimental.do_not_convert
    def batches(element: Any, ends: tf.Tensor) -> tf.data.Dataset:
        leaves: list[Any] = data_nest.flatten(element)

        @tf.autograph.experimental.do_not_convert
        def batch(begin: tf.Tensor, end: tf.Tensor) -> Any:
            some = [leaf[begin:end] for leaf in leaves]
            return made.made(data_nest.pack_sequence_as(element, some), shape)

        begins = tf.concat([tf.zeros([1], ends.dtype), ends], 0)[:-1]
        return tf.data.Dataset.from_tensor_slices((begins, ends)).map(batch)

    windows = made.rows.batch(max(_WINDOW, rows))
    grouped = map_elements(windows, divide).flat_map(batches)
    sizes = [text_of_sizes(packed), text_of_sizes(others)]
    return regroup(_NAME, dataset, grouped, [*sizes, rows, overflow], state)


def _counts(records: Any, budgets: dict[Names, list[int]]) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the number of items of each record for each budget, and the budgets.

    Raises:
        StructureError: If there are no lists of so many levels at a path (also a ValueError).
    """
    counts = items_of_rows(records)
    for names, sizes in budgets.items():
        if len(counts.get(names, [])) != len(sizes):
            expected = count_text(len(sizes), "levels of lists, one for each number")
            received = str(len(counts.get(names, [])))
            fix = "Give the path of a list; for lists of lists, a number for each level."
            raise StructureError(Path(*names) or "()", expected, received, fix)
    columns = [each for names in budgets for each in counts[names]]
    sizes = [size for several in budgets.values() for size in several]
    return tf.stack(columns, 1), tf.constant(sizes, tf.int64)


def _checks(counts: tf.Tensor, budgets: dict[Names, list[int]]) -> list[Any]:
    """Returns the ops that fail if the lists of one record do not fit in a batch."""
    checks: list[Any] = []
    budget_of_column = [(names, size) for names, sizes in budgets.items() for size in sizes]
    for column, (names, size) in enumerate(budget_of_column):
        most = tf.reduce_max(tf.concat([[0], counts[:, column]], 0))
        expected = f"at most {size} items in the lists of a record"
        fix = 'Give a larger number, or overflow="cut" or "drop".'
        error = StructureError(Path(*names), expected, f"{LATER} in one", fix)
        checks += assert_op(most <= size, error, [most])
    return checks


def _ends(counts: tf.Tensor, sizes: tf.Tensor, rows: int) -> tf.Tensor:
    """Returns where each batch ends, as numbers of records.

    Args:
        counts: The number of items of each record for each budget, none above it.
        sizes: The budgets.
        rows: The number of records that a batch has at most.
    """
    count = tf.shape(counts, tf.int64)[0]
    before = tf.pad(tf.cumsum(counts), [[1, 0], [0, 0]])  # items before each record
    fitting = tf.searchsorted(
        tf.transpose(before), tf.transpose(before + sizes), side="right", out_type=tf.int64
    )
    following = tf.reduce_min(fitting, 0) - 1  # the end of a batch that begins with each record
    following = tf.minimum(following, tf.range(count + 1) + rows)

    def step(
        number: tf.Tensor, at: tf.Tensor, found: tf.TensorArray
    ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
        end = following[at]
        return number + 1, end, found.write(number, end)

    found = tf.TensorArray(tf.int64, size=0, dynamic_size=True, element_shape=[])
    zero = tf.constant(0, tf.int64)
    _, _, found = tf.while_loop(lambda _, at, __: at < count, step, [tf.constant(0), zero, found])
    return found.stack()
