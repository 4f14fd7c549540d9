"""The text forms of records: one line for a repr, a tree for a schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from extensor._path import quoted
from extensor._struct.spec import StructuredTensorSpec
from extensor.errors import DTypeError


def line(records: Any) -> str:
    """Returns shape and schema of a StructuredTensor on one line."""
    spec = records.__tf_type_spec__()
    return f"<StructuredTensor shape={_shape_text(spec.shape)} {_inline_schema(spec)}>"


def tree(records_or_spec: Any) -> str:
    """Returns the schema of records as a tree, one field a line.

    Args:
        records_or_spec: A StructuredTensor or the spec of one.

    Raises:
        DTypeError: If it is neither (also a TypeError).

    >>> steps = xt.DenseStructuredTensor([3], {"minutes": [5, 20, 8]})
    >>> recipes = xt.DenseStructuredTensor([2], {
    ...     "title": ["Snickerdoodles", "Flapjacks"],
    ...     "steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3])})
    >>> print(xt.struct.tree(recipes))
    records (2,)
    ├── title: string
    └── steps: list of records
        └── minutes: int32
    """
    spec = records_or_spec
    if hasattr(spec, "__tf_type_spec__"):
        spec = spec.__tf_type_spec__()
    if not isinstance(spec, StructuredTensorSpec):
        raise DTypeError(
            path="tree",
            expected="a StructuredTensor, or the spec of one",
            received=type(records_or_spec).__name__,
            mend="For a dataset, use its element_spec; for an Arrow schema, spec_from_schema.",
        )
    return "\n".join([f"records {_shape_text(spec.shape)}", *_branches(spec, "")])


def _branches(spec: StructuredTensorSpec, indent: str) -> Iterator[str]:
    fields = list(spec.record.field_specs.items())
    for i, (name, field) in enumerate(fields):
        last = i == len(fields) - 1
        yield f"{indent}{'└── ' if last else '├── '}{quoted(name)}: {_text(field, spec.record)}"
        if isinstance(field, StructuredTensorSpec):
            yield from _branches(field, indent + ("    " if last else "│   "))


def _text(field: Any, record: StructuredTensorSpec) -> str:
    if isinstance(field, StructuredTensorSpec):
        levels = field.rank - record.rank
        return "list of " * levels + ("records" if levels else "record")
    return _dtype_text(field, record.rank)


def _inline_schema(spec: StructuredTensorSpec) -> str:
    parts: list[str] = []
    for name, field in spec.record.field_specs.items():
        if isinstance(field, StructuredTensorSpec):
            inner = "[*]" * (field.rank - spec.record.rank)
            parts.append(f"{quoted(name)}: {inner}{' ' if inner else ''}{_inline_schema(field)}")
        else:
            parts.append(f"{quoted(name)}: {_dtype_text(field, spec.record.rank)}")
    return "{" + ", ".join(parts) + "}"


def _dtype_text(field: Any, outer: int) -> str:
    dtype: Any = getattr(field, "dtype", None)
    shape = getattr(field, "shape", None)
    if not isinstance(dtype, tf.DType):
        return _type_name(field)
    text = dtype.name if isinstance(field, (tf.TensorSpec, tf.RaggedTensorSpec)) else (
        f"{_type_name(field)} of {dtype.name}"
    )  # fmt: skip
    if shape is None or shape.rank is None:
        return text
    return text + "".join(f"[{'*' if size is None else size}]" for size in shape[outer:])


def _type_name(field: Any) -> str:
    # Other libraries' specs may have a `value_type` that is not a class.
    return getattr(field.value_type, "__name__", type(field).__name__)


def _shape_text(shape: tf.TensorShape) -> str:
    sizes = ", ".join(str(size) for size in shape)
    return f"({sizes},)" if shape.rank == 1 else f"({sizes})"
