"""to_arrow: StructuredTensors become Arrow records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor._arrow import buffers, schema
from extensor._path import Path
from extensor._protocol.row_splits import check_row_splits
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.tensor import StructuredTensor
from extensor.errors import DTypeError, FieldError, StructureError, UnsupportedTypeError


@refuse_deep_nesting("to_arrow")
def to_arrow(records: StructuredTensor, schema: Any = None) -> Any:
    """Returns a StructuredTensor as Arrow data.

    Numbers and row splits share the tensors' memory; strings and booleans are copied.

    Args:
        records: A StructuredTensor that holds values (not part of a graph).
        schema: The Arrow schema or struct type to produce. Without it numbers keep their type,
            strings become `string` (text in UTF-8), ragged dimensions `large_list` for int64 row
            splits and `list` for int32, and further dense dimensions `fixed_size_list`. With it,
            fields come in the schema's order, and numbers are cast as Arrow does it safely:
            floats may lose precision, integers nothing. For records of higher rank, the type of
            the lists of structs.

    Returns:
        A RecordBatch for records of rank 1, a StructScalar for a single record, and an array of
        lists for higher ranks.

    Raises:
        DTypeError: If `records` is no StructuredTensor or holds no values, or a field does not
            convert to the type that the schema asks for (also a TypeError).
        FieldError: If the schema's fields are not those of the records (also a KeyError).
        StructureError: If a list is not of the fixed size that the schema asks for, or the parts
            of the records do not fit, because nobody checked them (also a ValueError).
        FormatError: If a string that becomes text is not UTF-8 (also a ValueError).

    >>> recipes = xt.DenseStructuredTensor([2], {"title": ["Snickerdoodles", "Flapjacks"]})
    >>> xt.to_arrow(recipes).to_pylist()
    [{'title': 'Snickerdoodles'}, {'title': 'Flapjacks'}]
    """
    if not isinstance(records, StructuredTensor):
        raise DTypeError(
            path="to_arrow",
            expected="a StructuredTensor",
            received=type(records).__name__,
            mend='Name the column of a bare tensor: xt.DenseStructuredTensor([n], {"x": tensor}).',
        )
    if isinstance(schema, pa.Schema) and records.rank <= 1:
        target = pa.struct(list(schema))
    elif schema is None or isinstance(schema, pa.DataType):
        target = schema
    else:
        raise DTypeError(
            path="to_arrow: schema",
            expected="a Schema or struct type" if records.rank <= 1
            else f"the Arrow type of {records.rank - 1} list(s) of structs",
            received=type(schema).__name__,
            mend="Leave it out for the natural types.",
        )  # fmt: skip
    for part in tf.nest.flatten(records, expand_composites=True):
        if not hasattr(part, "numpy"):
            raise DTypeError(
                path="to_arrow",
                expected="tensors that hold values",
                received="tensors of a graph",
                mend="Call it outside of tf.function.",
            )
    if records.rank == 0:
        spec = records.__tf_type_spec__()
        lone = spec.stacked(1).from_boxed_tensor(
            [tf.stack([box]) for box in spec.to_boxed_tensor(records)]
        )
        return _array(lone, target, Path())[0]
    if records.rank == 1:
        array = _array(records, target, Path())
        full: Any = schema if isinstance(schema, pa.Schema) else pa.schema(array.type.fields)
        columns = [array.field(i) for i in range(len(full))]
        return (
            pa.RecordBatch.from_arrays(columns, schema=full)
            if columns
            else pa.RecordBatch.from_struct_array(array).replace_schema_metadata(full.metadata)
        )
    return _array(records, target, Path())


def _array(value: Any, target: pa.DataType | None, path: Path) -> pa.Array:
    if isinstance(value, StructuredTensor) and not hasattr(value, "row_splits"):
        return _folded_records(value, target, path)
    if hasattr(value, "row_splits"):
        return _list(value, target, path)
    if isinstance(value, tf.Variable):
        value = tf.convert_to_tensor(value)
    if not isinstance(value, tf.Tensor):
        raise UnsupportedTypeError(
            path=path,
            expected="a tensor, a ragged tensor or records",
            received=type(value).__name__,
            mend="Replace the field by its parts with with_updates, or leave it out with without.",
        )
    if value.shape.rank > 1:
        return _folded(value, target, path)
    return _flat(value, target, path)


def _flat(tensor: tf.Tensor, target: pa.DataType | None, path: Path) -> pa.Array:
    if tensor.dtype == tf.string:
        wanted = pa.string() if target is None else target
        if not schema.is_string(wanted):
            raise _not_convertible(path, wanted, "string")
        return buffers.strings_out(tensor, wanted, path)
    natural = schema.arrow_type(tensor.dtype, path)
    if tensor.dtype == tf.bool:
        array = buffers.booleans_out(tensor)
    else:
        array = buffers.numbers_out(tensor, natural)
    if target is None or target == natural:
        return array
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _not_convertible(path, target, f"{tensor.dtype.name} values that do not") from error


def _not_convertible(path: Path, target: Any, received: str) -> DTypeError:
    return DTypeError(
        path=path,
        expected=f"values that fit Arrow type {target}",
        received=received,
        mend="Change the schema, or cast the field first.",
    )


def _list(value: Any, target: pa.DataType | None, path: Path) -> pa.Array:
    splits = value.row_splits
    if target is not None and pa.types.is_fixed_size_list(target):
        return _uniform_list(value, target, path)
    if target is not None and not schema.is_list(target):
        raise _not_convertible(path, target, "a ragged value")
    inner = _array(value.values, None if target is None else target.value_type, path)
    check_row_splits(buffers.array_over(splits), len(inner), str(path))
    if target is None:
        target = pa.large_list(inner.type) if splits.dtype == tf.int64 else pa.list_(inner.type)
    width = np.int64 if pa.types.is_large_list(target) else np.int32
    if splits.dtype == width:
        offsets = buffers.buffer_of(splits)
    else:
        numbers = splits.numpy()
        if numbers[-1] > np.iinfo(width).max:
            raise StructureError(
                path=path,
                expected=f"at most 2**31 - 1 values in an Arrow array of type {target}",
                received=f"{numbers[-1]}",
                mend="Give schema= with large_list.",
            )
        offsets = pa.py_buffer(numbers.astype(width))
    count = int(splits.shape[0]) - 1
    return pa.Array.from_buffers(target, count, [None, offsets], children=[inner])


def _uniform_list(value: Any, target: pa.DataType, path: Path) -> pa.Array:
    lengths = np.diff(value.row_splits.numpy())
    if (lengths != target.list_size).any():
        wrong = int(np.argmax(lengths != target.list_size))
        raise StructureError(
            path=path,
            expected=f"lists of {target.list_size}, as the schema has them",
            received=f"a list of {lengths[wrong]} in row {wrong}",
            mend="Give schema= with a list type for this field.",
        )
    inner = _array(value.values, target.value_type, path)
    check_row_splits(value.row_splits.numpy(), len(inner), str(path))
    return pa.Array.from_buffers(target, len(lengths), [None], children=[inner])


def _folded(tensor: tf.Tensor, target: pa.DataType | None, path: Path) -> pa.Array:
    """Writes a dense tensor of rank 2 or more as lists of one size."""
    nrows, size, *rest = tensor.shape.as_list()
    _check_fixed(target, size, path)
    inner_type = None if target is None else target.value_type
    inner = _array(tf.reshape(tensor, [nrows * size, *rest]), inner_type, path)
    return _lists_of(inner, nrows, size, target)


def _check_fixed(target: pa.DataType | None, size: int, path: Path) -> None:
    if target is None:
        return
    fixed = pa.types.is_fixed_size_list(target)
    if not (fixed or schema.is_list(target)):
        raise _not_convertible(path, target, f"lists of {size}")
    if fixed and target.list_size != size:
        raise StructureError(
            path=path,
            expected=f"lists of {target.list_size}, as the schema has them",
            received=f"lists of {size}",
            mend="Change the schema.",
        )


def _lists_of(inner: pa.Array, nrows: int, size: int, target: pa.DataType | None) -> pa.Array:
    if target is None:
        target = pa.list_(inner.type, size)
    if pa.types.is_fixed_size_list(target):
        return pa.Array.from_buffers(target, nrows, [None], children=[inner])
    width = np.int64 if pa.types.is_large_list(target) else np.int32
    offsets = pa.py_buffer((np.arange(nrows + 1) * size).astype(width))
    return pa.Array.from_buffers(target, nrows, [None, offsets], children=[inner])


def _folded_records(records: Any, target: pa.DataType | None, path: Path) -> pa.Array:
    if records.rank == 1:
        return _records(records, target, path)
    nrows, size = records.shape.as_list()[:2]
    _check_fixed(target, size, path)
    inner_type = None if target is None else target.value_type
    inner = _array(_unfolded(records), inner_type, path)
    return _lists_of(inner, nrows, size, target)


def _unfolded(value: Any) -> Any:
    """Joins the first two dimensions of a value."""
    if hasattr(value, "row_splits"):
        return value.values
    if isinstance(value, DenseStructuredTensor):
        return value.map_parts(lambda part, _: _unfolded(part), value.rank - 1)
    nrows, size, *rest = value.shape.as_list()
    return tf.reshape(value, [nrows * size, *rest])


def _records(records: DenseStructuredTensor, target: pa.DataType | None, path: Path) -> pa.Array:
    names = records.field_names()
    if target is None:
        columns = [_array(records.field_value((n,)), None, path / n) for n in names]
        fields = [pa.field(n, c.type) for n, c in zip(names, columns, strict=True)]
        target = pa.struct(fields)
    else:
        if not pa.types.is_struct(target):
            raise _not_convertible(path, target, "records")
        wanted = schema.names_of(target.fields, path)
        _check_names(wanted, names, path)
        columns = [
            _array(records.field_value((n,)), target.field(i).type, path / n)
            for i, n in enumerate(wanted)
        ]
        names = wanted
    # Variables may have changed their size since they became fields.
    count = len(columns[0]) if columns else int(records.shape[0])
    for name, column in zip(names, columns, strict=True):
        if len(column) != count:
            raise StructureError(
                path=path / name,
                expected=f"{count} values, one for each record",
                received=f"{len(column)}",
                mend="Give every field one value for each record.",
            )
    return pa.Array.from_buffers(target, count, [None], children=columns)


def _check_names(wanted: list[str], names: tuple[str, ...], path: Path) -> None:
    for name in wanted:
        if name not in names:
            raise FieldError(
                path=path / name,
                expected="a field of the records, because the schema has it",
                received=f"records with the fields {', '.join(names)}",
                mend="Add it with with_updates, or take it out of the schema.",
            )
    for name in names:
        if name not in wanted:
            raise FieldError(
                path=path / name,
                expected=f"one of the schema's fields {', '.join(wanted)}",
                received="a field that the schema does not have",
                mend="Leave it out with without, or add it to the schema.",
            )
