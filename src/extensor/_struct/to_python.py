"""Records as plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._protocol.box import box, unbox
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.records import Records
from extensor.errors import DTypeError


@refuse_deep_nesting("to_py")
def to_py(records: Any) -> Any:
    """Returns a dict for a record, and nested lists of dicts for a collection.

    Raises:
        DTypeError: If the tensors are part of a graph and hold no values (also a TypeError).
    """
    expect_values(records, "to_py")
    return _elements(records) if records.rank else _record(records)


def expect_values(records: Any, method: str) -> None:
    """Raises DTypeError if the tensors of records are part of a graph and hold no values.

    Args:
        records: A StructuredTensor.
        method: The name of the caller, the path in the error.
    """
    for part in tf.nest.flatten(records, expand_composites=True):
        if not hasattr(part, "numpy"):
            raise DTypeError(
                path=method,
                expected="tensors that hold values",
                received="tensors of a graph",
                mend=f"Call {method} outside of tf.function.",
            )


def _record(records: Any) -> dict[str, Any]:
    return {name: _plain_field(records.field_value((name,))) for name in records.field_names()}


def _plain_field(value: Any) -> Any:
    if hasattr(value, "to_py"):
        return value.to_py()
    if hasattr(value, "row_splits"):
        return _elements(value)
    if isinstance(value, (tf.Tensor, tf.Variable)):
        plain = value.numpy()
        return plain.tolist() if hasattr(plain, "tolist") else plain
    return value


def _elements(value: Any, rank: int = 1) -> list[Any]:
    """Returns nested lists of a value's elements along its first `rank` dimensions.

    Inner dimensions of tensors become lists too. Elements of other types are not converted.
    """
    splits = getattr(value, "row_splits", None)
    if splits is not None:
        inner = _elements(value.values)
        return [inner[a:b] for a, b in itertools.pairwise(splits.numpy().tolist())]
    if isinstance(value, (tf.Tensor, tf.Variable)):
        return value.numpy().tolist()
    if isinstance(value, Records):
        return _zipped(value)
    if hasattr(type(value), "__tf_cut_rows__"):
        return value.to_py()
    spec = tf.type_spec_from_value(value)
    boxes = box(spec, value, 1)
    element = _tf.unstacked(spec)
    elements = [unbox(element, [b[i] for b in boxes]) for i in range(boxes[0].shape[0])]
    return elements if rank == 1 else [_elements(e, rank - 1) for e in elements]


def _zipped(records: Any) -> list[Any]:
    names = records.field_names()
    if not names:
        return _empty_records(records.shape.as_list())
    columns = [_elements(records.field_value((name,)), records.rank) for name in names]
    return _merged(names, columns, records.rank)


def _merged(names: tuple[str, ...], columns: list[Any], rank: int) -> list[Any]:
    rows = zip(*columns, strict=True)
    if rank == 1:
        return [dict(zip(names, row, strict=True)) for row in rows]
    return [_merged(names, list(row), rank - 1) for row in rows]


def _empty_records(sizes: list[int]) -> Any:
    return [_empty_records(sizes[1:]) for _ in range(sizes[0])] if sizes else {}
