"""spec_from: classes with annotated fields as specs."""

from __future__ import annotations

import collections.abc
from typing import Any, get_args, get_origin

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.natural_type import natural_flat_type
from extensor._formats.python.hints import (
    KEPT,
    LISTS,
    UNIONS,
    annotated,
    arrow_note,
    dtype_of,
    hints_of,
    is_class_with_fields,
    item_of,
    kinds_in,
    name_of,
    value_type,
    variants_in,
)
from extensor._formats.python.variants import NULL
from extensor._path import Path, quoted
from extensor._struct.common_shape import known_rank
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._typing import ShapeLike
from extensor.errors import StructureError


def spec_from(cls: type, shape: ShapeLike = (None,)) -> StructuredTensorSpec:
    """Returns the spec of records with the fields of a class.

    | annotation | field |
    | --- | --- |
    | `bool`, `int`, `float`, `str`, `bytes` | bool, int32, float32, string |
    | a NumPy scalar type, such as `np.float64` | its dtype |
    | `datetime`, `date`, `time`, `timedelta` | an integer, as `xt.from_arrow` reads them |
    | `UUID` | a string of 16 bytes |
    | `Literal`, an `Enum` | string or int32, the type of the values |
    | another class with fields | a record |
    | `list[T]`, `Sequence[T]`, `tuple[T, ...]` | a ragged list of T |
    | `tuple[T, T, T]` | a dense vector of 3 |
    | `T | None` | a MaskedTensor of T |
    | `T | U`, `T | U | None` | a UnionTensor, with a variant `null` for None |
    | `Annotated[T, tf.float64]` | T with this dtype |
    | `Annotated[list[T], (3,)]` | lists of this dense shape |
    | `Annotated[T, a tf.TypeSpec]` | a field of this spec, for one record |
    | `Annotated[Decimal, pa.decimal128(10, 2)]` | a field of this Arrow type; also of a time |

    `int` and `float` are those of `xt.struct.constant`, and so are the names of variants: `int`,
    `string`, `list`, `list2` for lists of lists, `record`. If there are several classes of records,
    their variants have the names of the classes. Annotations may be strings (`from
    __future__ import annotations`).

    Args:
        cls: A dataclass, TypedDict, NamedTuple, attrs or pydantic class; a generic class with its
            types, such as `Box[int]`.
        shape: The shape of the collection of records; `[None]` for any number of them, `[]` for
            a single record.

    Raises:
        DTypeError: If the class has no annotated fields (also a TypeError).
        UnsupportedTypeError: If an annotation has no counterpart (also a TypeError).
        StructureError: If the class contains itself (also a ValueError).

    >>> import extensor as xt
    >>> import dataclasses, typing
    >>> class Step(typing.NamedTuple):
    ...     minutes: float
    >>> @dataclasses.dataclass
    ... class Recipe:
    ...     title: str
    ...     steps: list[Step]
    >>> print(xt.struct.tree(xt.struct.spec_from(Recipe)))
    records (None,)
    ├── title: string
    └── steps: list of records
        └── minutes: float32
    """
    outer = known_rank(shape, "spec_from: shape")
    return _records(cls, outer, "", ())


def _records(cls: Any, outer: tf.TensorShape, path: str, inside: tuple[Any, ...]) -> Any:
    if cls in inside:
        chain = " -> ".join(name_of(each) for each in (*inside, cls))
        expected = "a class that does not contain itself, because a spec has finite depth"
        fix = "Store such data flat: a list of nodes with the indices of their children."
        raise StructureError(path or name_of(cls), expected, chain, fix)
    fields: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    for name, hint in hints_of(cls, path or "spec_from").items():
        at = f"{path}.{quoted(name)}" if path else quoted(name)
        fields[name] = _spec_of(hint, outer, at, (*inside, cls), None)
        arrow = _arrow_type(hint)
        if arrow is not None:
            kept[name] = arrow
    return _dense(outer, fields, kept)


def _dense(shape: tf.TensorShape, fields: dict[str, Any], kept: dict[str, Any]) -> Any:
    make: Any = DenseStructuredTensorSpec
    if not kept or not hasattr(make, "arrow_types"):
        return make(shape, fields)
    from extensor._struct.arrow_types import ArrowType, form_of

    rank = shape.rank
    types = {n: ArrowType(pa.field(n, t), form_of(fields[n], rank)) for n, t in kept.items()}
    return make(shape, fields, types)


def _spec_of(hint: Any, outer: Any, path: str, inside: tuple[Any, ...], dtype: Any) -> Any:
    """Returns the spec of a field.

    Args:
        hint: The annotation of one record's value.
        outer: The shape of the records that have the field.
        path: The path of the field, for errors.
        inside: The classes that contain the field.
        dtype: The dtype that an outer annotation chose, or None.
    """
    hint, dtype, sizes, spec = annotated(hint, dtype)
    if spec is not None:
        return _stacked(spec, outer)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in UNIONS:
        return _union(hint, outer, path, inside, dtype)
    if sizes is not None:
        inner, given = hint, len(sizes)
        for _ in range(given):
            inner = item_of(inner, path)
        return _spec_of(inner, outer.concatenate(sizes), path, inside, dtype)
    if hint in LISTS or origin in LISTS:
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            inner = item_of(hint, path)
            return _spec_of(inner, outer.concatenate([len(arguments)]), path, inside, dtype)
        items = _spec_of(item_of(hint, path), tf.TensorShape([None]), path, inside, dtype)
        return _cut(items, outer)
    if is_class_with_fields(hint):
        return _records(hint, outer, path, inside)
    return tf.TensorSpec(outer, dtype or dtype_of(value_type(hint, path), path))


def _union(hint: Any, outer: Any, path: str, inside: tuple[Any, ...], dtype: Any) -> Any:
    from extensor._types.masked.value import MaskedTensor
    from extensor._types.union.value import UnionTensor

    kinds, has_none = kinds_in(hint)
    if len(kinds) == 1 and has_none:
        values = _spec_of(kinds[0], outer, path, inside, dtype)
        made: Any = MaskedTensor.Spec
        return made(values, tf.TensorSpec(outer, tf.bool))
    rows = tf.TensorShape([None])
    variants: dict[str, Any] = {}
    for name, each in variants_in(hint, path).items():
        if name == NULL:
            variants[name] = MaskedTensor.Spec(tf.TensorSpec(rows, tf.float32))
        else:
            chosen = dtype if name in ("int", "float", "complex") else None
            variants[name] = _spec_of(each, rows, f"{path}.{name}", inside, chosen)
    union: Any = UnionTensor.Spec
    return union(variants, outer)


def _cut(items: Any, outer: Any) -> Any:
    """Returns the spec of lists of items, which are ragged below the first dimension."""
    from extensor._types.union.spec import UnionSpec

    if outer.rank == 0:  # the list of a single record
        return items
    if isinstance(items, StructuredTensorSpec):
        spec: Any = items
        for axis in range(outer.rank, 0, -1):
            first = outer[0] if axis == 1 else None
            spec = RaggedStructuredTensorSpec([first, None, *spec.shape[1:]], spec, tf.int64)
        return spec
    if isinstance(items, (tf.TensorSpec, tf.RaggedTensorSpec)):
        inner = items.ragged_rank if isinstance(items, tf.RaggedTensorSpec) else 0
        shape = outer.concatenate(items.shape)
        return tf.RaggedTensorSpec(shape, items.dtype, outer.rank + inner, tf.int64)
    if isinstance(items, UnionSpec):
        return type(items)(items.variants, codes=_cut(items.codes, outer))
    mask = tf.RaggedTensorSpec(outer.concatenate(items.mask.shape), tf.bool, outer.rank, tf.int64)
    return type(items)(_cut(items.values, outer), mask)


def _stacked(spec: Any, outer: Any) -> Any:
    from extensor._tf import stacked

    for size in reversed(outer.as_list()):
        spec = stacked(spec, size)
    return spec


def _arrow_type(hint: Any) -> Any:
    """Returns the Arrow type that a field keeps, for dates and times; None for other types."""
    arrow = arrow_note(hint)
    if arrow is not None:
        return arrow
    hint = annotated(hint, None)[0]
    if get_origin(hint) in UNIONS:
        kinds, has_none = kinds_in(hint)
        if len(kinds) == 1 and has_none:
            return _arrow_type(kinds[0])
        if all(_arrow_type(kind) is None for kind in kinds):
            return None
        return pa.dense_union([pa.field(n, _whole(h)) for n, h in variants_in(hint, "").items()])
    if get_origin(hint) in LISTS:
        inner = [each for each in get_args(hint) if each is not Ellipsis]
        found = _arrow_type(inner[0]) if inner else None
        return None if found is None else pa.list_(found)
    return KEPT.get(hint) if isinstance(hint, collections.abc.Hashable) else None


def _whole(hint: Any) -> pa.DataType:
    """Returns an Arrow type for a variant beside one that keeps its Arrow type."""
    kept = _arrow_type(hint)
    if kept is not None or hint is type(None):
        return pa.null() if kept is None else kept
    hint, dtype, _, _ = annotated(hint, None)
    if hint in LISTS or get_origin(hint) in LISTS:
        return pa.list_(_whole(item_of(hint, "")))
    if is_class_with_fields(hint):
        return pa.struct([])  # the records keep the types of their fields
    return natural_flat_type(dtype or dtype_of(value_type(hint, ""), ""), Path())
