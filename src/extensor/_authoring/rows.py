"""Rows of different lengths, stored one after another in flat values.

A batch of rows has a shape, and its rows are counted in row-major order: `prod(shape) + 1` row
splits give the begin and end of each row in the flat values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from extensor._protocol.box import box, stacked_spec, unbox, unstacked_spec
from extensor._protocol.casting import cast_value, castable_type, difference_of_records
from extensor._protocol.stackable_spec import as_row, stacks_by_components
from extensor._protocol.symbolic import symbolic_rows
from extensor._raised import first_line
from extensor._tf import ragged_tensor
from extensor._typing import Nest, TensorLike
from extensor.errors import DTypeError, StructureError

_Value = TypeVar("_Value", bound=Any)


def row_splits_of(lengths: tf.Tensor) -> tf.Tensor:
    """Returns the row splits for row lengths.

    Args:
        lengths: The length of each row: an integer tensor of any shape.

    Returns:
        A vector of size `number of rows + 1`, of the dtype of the lengths.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.row_splits_of(tf.constant([[2, 0], [1, 3]])).numpy()
    array([0, 2, 2, 3, 6], dtype=int32)
    """
    flat = tf.reshape(lengths, [-1])
    return tf.concat([tf.zeros([1], flat.dtype), tf.cumsum(flat)], 0)


def row_ids(row_splits: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Returns the row index of each value, as an int64 vector.

    Args:
        row_splits: The row splits of the values.
        values: A vector with one item for each value, of any dtype.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.row_ids(tf.constant([0, 2, 2, 3]), tf.constant([7, 8, 9])).numpy()
    array([0, 0, 2])
    """
    # tf.repeat, which TensorFlow's RaggedTensor uses, needs memory as if all rows were as long as
    # the longest.
    sparse = tf.raw_ops.RaggedTensorToSparse(rt_nested_splits=[row_splits], rt_dense_values=values)
    return sparse.sparse_indices[:, 0]


def cut_rows(values: Any, row_splits: tf.Tensor, sizes: Sequence[Any] | None = None) -> Any:
    """Returns flat values cut into rows: a RaggedTensor, or a ragged value of the same type.

    A type of your own can be cut if it has two methods. Then its values may also be a field of
    records that are in lists:

    - `__tf_cut_rows__(self, row_splits)` returns the value with its first dimension cut into rows:
      shape `[n, ...]` becomes `[number of rows, None, ...]`.
    - `__tf_uncut_rows__(self)` returns the value before the cut and the row splits, or None if the
      value is not cut into rows.

    Such a type also has a method `to_py`, which returns a list of the rows as Python values.

    Args:
        values: A tensor or RaggedTensor of shape `[n, ...]`, records, or a value of a type with
            `__tf_cut_rows__`.
        row_splits: The row splits of the values.
        sizes: The sizes of the batch of rows: integers, or scalar tensors. If empty, the values
            are one row, and are returned unchanged. Default: the rows have one dimension. Two or
            more sizes are for tensors only.

    Returns:
        A value of shape `[*sizes, None, ...]`. With one size, no op runs.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.cut_rows(tf.constant([7, 8, 9]), tf.constant([0, 2, 3]))
    <tf.RaggedTensor [[7, 8], [9]]>
    """
    if sizes is not None and not sizes:
        return values
    if hasattr(type(values), "__tf_cut_rows__"):
        return values.__tf_cut_rows__(row_splits)
    symbolic = symbolic_rows(values, row_splits)
    if symbolic is not None:
        return symbolic
    if isinstance(values, tf.RaggedTensor):
        row_splits = tf.cast(row_splits, values.row_splits.dtype)
    rows = ragged_tensor(values, row_splits)
    if sizes is None or len(sizes) == 1:
        return rows
    sizes = [tf.cast(size, row_splits.dtype) for size in sizes]
    for axis in range(len(sizes) - 1, 0, -1):
        rows = tf.RaggedTensor.from_uniform_row_length(
            rows,
            sizes[axis],
            nrows=tf.cast(num_elements(sizes[:axis]), row_splits.dtype),
            validate=False,
        )
    return rows


def uncut_rows(value: Any) -> tuple[Any, tf.Tensor] | None:
    """Returns a ragged value before it was cut into rows, and the row splits; runs no op.

    Args:
        value: A RaggedTensor, ragged records, or a value of a type with `__tf_uncut_rows__` (see
            `cut_rows`).

    Returns:
        None if the second dimension of the value is not ragged.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> values, row_splits = xt.authoring.uncut_rows(tf.ragged.constant([[7, 8], [9]]))
    >>> values.numpy(), row_splits.numpy()
    (array([7, 8, 9], dtype=int32), array([0, 2, 3]))
    """
    row_splits = getattr(value, "row_splits", None)
    if row_splits is not None:
        return value.values, row_splits
    return value.__tf_uncut_rows__() if hasattr(type(value), "__tf_uncut_rows__") else None


def sizes_of(shape: tf.TensorShape, sizes: tf.Tensor) -> list[Any]:
    """Returns the sizes of dimensions: an integer where a size is known statically, else a tensor.

    Args:
        shape: The static shape.
        sizes: A vector of the sizes.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.sizes_of(tf.TensorShape([2, 3]), tf.constant([2, 3]))
    [2, 3]
    """
    return [s if s is not None else sizes[i] for i, s in enumerate(shape.as_list())]


def num_elements(sizes: Sequence[Any]) -> tf.Tensor:
    """Returns the product of sizes as an int64 scalar; 1 for an empty sequence.

    Args:
        sizes: Integers, or scalar tensors.
    """
    return tf.reduce_prod([tf.constant(1, tf.int64), *(tf.cast(s, tf.int64) for s in sizes)])


# Values of any type. Their rows are the items of the first dimension.


def num_rows(value: Any) -> tf.Tensor:
    """Returns the size of the first dimension of a value, as an int64 scalar.

    Args:
        value: A tensor, RaggedTensor, or a value of any type that stacks.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.num_rows(tf.ragged.constant([[1, 2], [3]])).numpy().item()
    2
    """
    if isinstance(value, tf.RaggedTensor):
        return value.nrows(tf.int64)
    if not isinstance(value, tf.Tensor):
        value = box(tf.type_spec_from_value(value), value, 1)[0]
    return tf.shape(value, tf.int64)[0]


def rows_spec(spec: tf.TypeSpec, path: str) -> tf.TypeSpec:
    """Returns a spec with an unknown size of the first dimension.

    Args:
        spec: A spec whose first dimension is the dimension of rows.
        path: Where the spec is used, for errors.

    Raises:
        ProtocolError: If the values do not stack (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.rows_spec(tf.TensorSpec([3, 2]), "Recipe.steps")
    TensorSpec(shape=(None, 2), dtype=tf.float32, name=None)
    """
    return stacked_spec(unstacked_spec(spec, path), None, path)


def static_num_rows(value: object) -> int | None:
    """Returns the size of the first dimension of a value if it is known without graph ops.

    Args:
        value: As for `num_rows`.

    Returns:
        An integer, or None.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.static_num_rows(tf.zeros([3, 2]))
    3
    """
    shape: Any = getattr(value, "shape", None)
    if isinstance(shape, tf.TensorShape):
        return shape[0] if shape.rank else None
    if tf.executing_eagerly():
        return int(num_rows(value))
    return None


def take_rows(value: _Value, positions: TensorLike) -> _Value:
    """Returns the rows at some positions of the first dimension of a value.

    Args:
        value: A tensor, RaggedTensor, or a value of any type that stacks.
        positions: An integer tensor of known rank, or a list or number.

    Returns:
        A value of shape `positions.shape + value.shape[1:]`.

    Raises:
        StructureError: If the components have different numbers of rows (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.take_rows(tf.ragged.constant([[1, 2], [], [3]]), [2, 0])
    <tf.RaggedTensor [[3], [1, 2]]>
    """
    if isinstance(value, (tf.Tensor, tf.RaggedTensor)):
        return tf.gather(value, positions)
    numbers = tf.convert_to_tensor(positions)
    spec: Any = tf.type_spec_from_value(value)
    path = type(spec).__qualname__
    result = unstacked_spec(spec, path)
    for size in reversed(numbers.shape.as_list()):
        result = stacked_spec(result, size, path)
    if stacks_by_components(spec):  # because a gather of variants has no gradient
        parts = spec.to_components(value)
        sizes = _known_sizes(parts)
        if len(sizes) > 1:
            received = f"components of {' and '.join(map(str, sorted(sizes)))} rows"
            fix = "Take rows only of values whose components share the first dimension."
            raise StructureError(path, "components with one number of rows", received, fix)
        return result.from_components(
            tf.nest.map_structure(lambda part: take_rows(part, numbers), parts)
        )
    return unbox(result, [tf.gather(part, numbers) for part in box(spec, value, 1)])


def _known_sizes(parts: Nest) -> set[int]:
    """Returns the numbers of rows of the tensors in components, as far as they are known."""
    sizes: set[int] = set()
    for part in tf.nest.flatten(parts):
        if isinstance(part, (*_TENSORS, tf.SparseTensor)):
            if part.shape.rank and part.shape[0] is not None:
                sizes.add(part.shape[0])
        # The `shape` of a user's class may be that of each row.
        elif stacks_by_components(spec := tf.type_spec_from_value(part)):
            sizes |= _known_sizes(spec.to_components(part))
    return sizes


def stack_rows(values: list[_Value]) -> _Value:
    """Returns several values as the rows of one value.

    Args:
        values: At least one tensor, RaggedTensor, or value of any type that stacks; all of one
            type, or of types that cast to one.

    Raises:
        DTypeError: If the values do not cast to one type (also a TypeError).
        StructureError: If they differ in size (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.stack_rows([tf.constant([1, 2]), tf.constant([3, 4])]).numpy()
    array([[1, 2],
           [3, 4]], dtype=int32)
    """
    if all(isinstance(value, _TENSORS) for value in values):
        return tf.stack(values)
    specs = [as_row(tf.type_spec_from_value(value)) for value in values]
    spec = common_spec(specs, "tf.stack")
    columns = zip(*(box(spec, cast_value(spec, value)) for value in values), strict=True)
    stacked = stacked_spec(spec, len(values), "tf.stack")
    try:
        return unbox(stacked, [stacked_boxes(column) for column in columns])
    except (ValueError, tf.errors.InvalidArgumentError) as error:
        received = f"values of different sizes ({first_line(error)})"
        fix = "Use tf.ragged.stack, or Dataset.ragged_batch, for values of different sizes."
        raise StructureError("tf.stack", "values of one size", received, fix) from error


def stacked_boxes(boxes: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns boxes as the rows of one tensor.

    >>> from extensor._authoring.rows import stacked_boxes
    >>> import tensorflow as tf
    >>> stacked_boxes([tf.constant(1), tf.constant(2)]).numpy()
    array([1, 2], dtype=int32)
    """
    if len(boxes) > 1 or boxes[0].dtype != tf.variant:
        return tf.stack(boxes)
    # Grappler replaces a stack of one tensor by ExpandDims, which has no kernel for variants.
    return tf.reshape(boxes[0], tf.concat([[1], tf.shape(boxes[0])], 0))


def concat_rows(values: list[_Value]) -> _Value:
    """Returns the rows of several values, one after the other, as one value.

    Args:
        values: At least one tensor, RaggedTensor, or value of any type that stacks; all of one
            type, or of types that cast to one.

    Raises:
        DTypeError: If the values do not cast to one type (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.concat_rows([tf.constant([1, 2]), tf.constant([3])]).numpy()
    array([1, 2, 3], dtype=int32)
    """
    if all(isinstance(value, _TENSORS) for value in values):
        return tf.concat(values, 0)
    spec = common_rows_spec(values, "tf.concat")
    columns = zip(*(box(spec, cast_value(spec, value), 1) for value in values), strict=True)
    return unbox(spec, [_concatenated_boxes(column) for column in columns])


def common_rows_spec(values: Sequence[Any], path: str) -> tf.TypeSpec:
    """Returns the spec to which values cast, with an unknown size of the first dimension.

    Raises:
        DTypeError: If the values do not cast to one type (also a TypeError).
    """
    return common_spec([rows_spec(tf.type_spec_from_value(v), path) for v in values], path)


_TENSORS = (tf.Tensor, tf.Variable, tf.RaggedTensor)


def common_spec(specs: list[Any], path: str) -> tf.TypeSpec:
    """Returns the spec to which values of all specs cast; raises DTypeError if there is none."""
    common, *others = specs
    for other in others:
        merged: Any = castable_type(common, other)
        if merged is None:
            fix = "Give all values the same fields with the same dtypes."
            raise difference_of_records(common, other, path) or DTypeError(
                path, f"values of {common}", str(other), fix
            )
        common = merged
    return common


def _concatenated_boxes(boxes: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns boxes concatenated along their first dimension."""
    if boxes[0].dtype != tf.variant:
        return tf.concat(boxes, 0)
    # Variants have a kernel for dynamic_stitch, but none for concat.
    counts = [tf.shape(part)[0] for part in boxes]
    begins = tf.cumsum(counts, exclusive=True)
    places = [begins[i] + tf.range(count) for i, count in enumerate(counts)]
    return tf.dynamic_stitch(places, list(boxes))


def reduce_rows(values: tf.Tensor, ids: tf.Tensor, count: tf.Tensor, reduction: str) -> tf.Tensor:
    """Returns the sum, mean, maximum or minimum of each row; zero for an empty row.

    Args:
        values: A tensor of shape `[n, ...]`.
        ids: The row index of each value, below `count`.
        count: The number of rows.
        reduction: `"sum"`, `"mean"`, `"max"` or `"min"`.

    Returns:
        A tensor of shape `[count, ...]`; NaN where a value of the row is NaN, as TensorFlow's
        reductions of tensors.

    Raises:
        DTypeError: If the reduction is unknown, or the values are not numeric (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.reduce_rows(tf.constant([1.0, 2.0, 5.0]), [0, 0, 2], 3, "mean").numpy()
    array([1.5, 0. , 5. ], dtype=float32)
    """
    segment = _REDUCTIONS.get(reduction)
    if segment is None:
        expected = f"one of {', '.join(_REDUCTIONS)}"
        raise DTypeError("reduction", expected, repr(reduction), "Check the spelling.")
    is_number = isinstance(values, tf.Tensor) and values.dtype not in (tf.string, tf.bool)
    if is_number and reduction == "mean":
        is_number = not values.dtype.is_integer
    elif is_number and reduction != "sum":
        is_number = not values.dtype.is_complex
    if not is_number:
        kind = f"{values.dtype.name}" if isinstance(values, tf.Tensor) else type(values).__name__
        wanted = {"mean": "floating-point", "sum": "numeric"}.get(reduction, "real")
        raise DTypeError("values", f"a {wanted} tensor", kind, "Cast or flatten them first.")
    if reduction in ("sum", "mean"):
        if values.dtype in (tf.float16, tf.bfloat16):  # a sum stops to grow at a few hundred items
            return tf.cast(segment(tf.cast(values, tf.float32), ids, count), values.dtype)
        return segment(values, ids, count)
    result = segment(values, ids, count)
    if values.dtype.is_floating:
        # The kernels begin with a finite number, and pass over NaN.
        end = tf.constant(-np.inf if reduction == "max" else np.inf, values.dtype)
        kinds = tf.where(tf.math.is_nan(values), 2, tf.cast(tf.not_equal(values, end), tf.int32))
        kind = tf.math.unsorted_segment_max(kinds, ids, count)
        result = tf.where(tf.equal(kind, 0), end, result)
        result = tf.where(tf.equal(kind, 2), tf.constant(np.nan, values.dtype), result)
    lengths = tf.math.unsorted_segment_sum(tf.ones_like(ids), ids, count)
    has_values = tf.reshape(lengths > 0, tf.concat([[-1], tf.ones_like(tf.shape(values)[1:])], 0))
    return tf.where(has_values, result, tf.zeros_like(result))


_REDUCTIONS: dict[str, Callable[..., tf.Tensor]] = {
    "sum": tf.math.unsorted_segment_sum,
    "mean": tf.math.unsorted_segment_mean,
    "max": tf.math.unsorted_segment_max,
    "min": tf.math.unsorted_segment_min,
}
