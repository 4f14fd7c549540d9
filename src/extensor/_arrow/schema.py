"""Arrow schemas to specs of StructuredTensors, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import is_list, variant_types
from extensor._arrow.dim_names import with_dim
from extensor._arrow.location import Location
from extensor._arrow.natural_type import natural_type
from extensor._arrow.null_policy import REST
from extensor._arrow.reader import records_reader
from extensor._path import Path
from extensor._struct.common_shape import checked_splits_dtype
from extensor._struct.deep_nesting import refuse_deep_nesting
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_masked
from extensor._struct.spec import StructuredTensorSpec
from extensor._typing import NullsLike
from extensor.errors import DTypeError, StructureError


@refuse_deep_nesting("spec_from_schema")
def spec_from_schema(
    schema: pa.Schema,
    nrows: int | None = None,
    row_splits_dtype: tf.DType = tf.int64,
    nulls: NullsLike | None = "error",
) -> DenseStructuredTensorSpec:
    """Returns the spec of the StructuredTensor that `from_arrow` returns for data of a schema.

    Args:
        schema: The Arrow schema.
        nrows: The number of records, or None if it varies.
        row_splits_dtype: The dtype of the row splits of lists, tf.int64 or tf.int32.
        nulls: The policy of `xt.from_arrow` for nulls, such as `"mask"`, or a dict of policies by
            path. The spec of a masked field is the spec of a MaskedTensor.

    Raises:
        UnsupportedTypeError: If a type has no counterpart (also a TypeError).
        StructureError: If two fields have the same name (also a ValueError).

    >>> import pyarrow as pa
    >>> import extensor as xt
    >>> schema = pa.schema({"title": pa.string(), "steps": pa.list_(pa.string())})
    >>> xt.struct.tree(xt.spec_from_schema(schema))
    records (None,)
    ├── title: string
    └── steps: string[*]
    """
    location = Location(Path(), checked_splits_dtype(row_splits_dtype))
    return records_reader(schema, nulls).spec(nrows, location)


@refuse_deep_nesting("schema_from_spec")
def schema_from_spec(spec: StructuredTensorSpec) -> pa.Schema:
    """Returns the Arrow schema of the records of a spec: what `to_arrow` writes of them.

    A field that came from Arrow has the type that it came with. Other types are those that
    `to_arrow` chooses without a schema.

    Args:
        spec: The spec of a StructuredTensor of rank 1, such as that of `xt.spec_of(records)`.

    Raises:
        DTypeError: If `spec` is not the spec of a StructuredTensor (also a TypeError).
        StructureError: If its rank is not 1 (also a ValueError).
        UnsupportedTypeError: If Arrow has no type for a field (also a TypeError).

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "Tea", "minutes": [5, 2]}])
    >>> xt.schema_from_spec(xt.spec_of(recipes))
    title: string
    minutes: list<item: int32>
      child 0, item: int32
    """
    if not isinstance(spec, StructuredTensorSpec):
        expected, fix = "the spec of a StructuredTensor", "Give xt.spec_of(records)."
        raise DTypeError("schema_from_spec", expected, type(spec).__name__, fix)
    if spec.rank != 1:
        expected = "the spec of records of rank 1, which are the rows of a table"
        fix = "Give the spec of a vector of records."
        raise StructureError("schema_from_spec", expected, f"rank {spec.rank}", fix)
    with tf.Graph().as_default():
        # The type follows from the parts of a value. These parts have no numbers.
        records = tf.nest.map_structure(
            lambda part: tf.compat.v1.placeholder(part.dtype, part.shape),
            spec,
            expand_composites=True,
        )
        return with_dim(pa.schema(natural_type(records, Path()).fields), spec.dims[0])


_ROOT = Path()


def masks_of_spec(spec: StructuredTensorSpec) -> dict[Any, str]:
    """Returns the argument `nulls` with which `from_arrow` masks the fields that a spec masks."""
    places = masked_places(spec)
    # A field may have the name `*`.
    return dict.fromkeys(((REST,) if place == REST else place for place in places), "mask")


def masked_places(
    spec: tf.TypeSpec, at: Path = _ROOT, rank: int = 0, arrow: pa.DataType | None = None
) -> Iterator[str]:
    """Yields the place of each mask below a path, as `nulls` names it.

    Args:
        spec: The spec of the field.
        at: The path of the field.
        rank: The rank of the records that have the field.
        arrow: The Arrow type that the field came with, or None.
    """
    # Imported here, because `import extensor` stays fast without the module.
    from extensor._types.union.spec import UnionSpec

    if is_masked(spec):
        yield str(at) + "[*]" * _num_levels(spec.mask.shape.rank - rank, arrow)
        yield from masked_places(spec.values, at, rank, arrow)
    elif isinstance(spec, StructuredTensorSpec):
        record = spec._record
        types = record.arrow_types
        for name, field in record.field_specs.items():
            yield from masked_places(field, at / name, record.rank, types.get(name))
    elif isinstance(spec, UnionSpec):
        types = variant_types(arrow)
        for name, variant in spec.variants.items():
            yield from masked_places(variant, at / name, 1, types.get(name))


def _num_levels(rank: int, arrow: pa.DataType | None) -> int:
    """Returns in how many lists the values are below so many dimensions of a field.

    The dimensions of a tensor of Arrow are one list.
    """
    levels = 0
    while arrow is not None and rank > 0:
        if isinstance(arrow, pa.FixedShapeTensorType):
            return levels + 1
        levels, rank = levels + is_list(arrow), rank - is_list(arrow)
        arrow = getattr(arrow, "value_type", None)
    return levels + rank
