"""spec_from: classes with annotated fields as specs."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args, get_origin

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.natural_type import natural_flat_type
from extensor._formats.python.hints import (
    KEPT,
    LISTS,
    UNIONS,
    Hint,
    arrow_note,
    dtype_of,
    hint_text,
    hints_of,
    is_class_with_fields,
    is_list_hint,
    item_of,
    type_beside_none,
    unwrap,
    value_type,
    variants_in,
)
from extensor._formats.python.variants import NULL
from extensor._path import Path, quote
from extensor._struct.arrow_types import ArrowType, form_of
from extensor._struct.common_shape import shape_of_known_rank
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.masked import is_union
from extensor._struct.ragged_spec import RaggedStructuredTensorSpec
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import stacked
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
    return _records(cls, _Place("", shape_of_known_rank(shape, "spec_from: shape"), ()))


class _Place(NamedTuple):
    """Where records or a field are.

    Attributes:
        path: The path, for errors.
        outer: The shape of the records.
        inside: The classes around.
    """

    path: str
    outer: tf.TensorShape
    inside: tuple[Hint, ...]

    def field(self, name: str, cls: Hint) -> _Place:
        """Returns the place of a field of a class."""
        path = f"{self.path}.{quote(name)}" if self.path else quote(name)
        return _Place(path, self.outer, (*self.inside, cls))


def _records(cls: Hint, at: _Place) -> DenseStructuredTensorSpec:
    if cls in at.inside:
        chain = " -> ".join(hint_text(each) for each in (*at.inside, cls))
        expected = "a class that does not contain itself, because a spec has finite depth"
        fix = "Store such data flat: a list of nodes with the indices of their children."
        raise StructureError(at.path or hint_text(cls), expected, chain, fix)
    fields: dict[str, tf.TypeSpec] = {}
    types: dict[str, ArrowType] = {}
    for name, hint in hints_of(cls, at.path or "spec_from").items():
        fields[name] = _spec_of(hint, at.field(name, cls))
        arrow = _arrow_type(hint)
        if arrow is not None:
            types[name] = ArrowType(pa.field(name, arrow), form_of(fields[name], at.outer.rank))
    return DenseStructuredTensorSpec(at.outer, fields, types)


def _spec_of(hint: Hint, at: _Place, dtype: tf.DType | None = None) -> tf.TypeSpec:
    """Returns the spec of a field.

    Args:
        hint: The annotation of one record's value.
        at: The place of the field.
        dtype: The dtype that an outer annotation chose, or None.
    """
    hint, dtype, sizes, spec = unwrap(hint, dtype)
    if spec is not None:
        for size in reversed(at.outer.as_list()):
            spec = stacked(spec, size)
        return spec
    if get_origin(hint) in UNIONS:
        return _union(hint, at, dtype)
    arguments = get_args(hint)
    is_row = get_origin(hint) is tuple and arguments and arguments[-1] is not Ellipsis
    if sizes is not None:
        inner = hint
        for _ in sizes:
            inner = item_of(inner, at.path)
        return _spec_of(inner, at._replace(outer=at.outer.concatenate(sizes)), dtype)
    if is_row:
        outer = at.outer.concatenate([len(arguments)])
        return _spec_of(item_of(hint, at.path), at._replace(outer=outer), dtype)
    if is_list_hint(hint):
        items = at._replace(outer=tf.TensorShape([None]))
        return _in_lists(_spec_of(item_of(hint, at.path), items, dtype), at.outer)
    if is_class_with_fields(hint):
        return _records(hint, at)
    return tf.TensorSpec(at.outer, dtype or dtype_of(value_type(hint, at.path), at.path))


def _union(hint: Hint, at: _Place, dtype: tf.DType | None) -> tf.TypeSpec:
    from extensor._types.masked.value import MaskedTensor
    from extensor._types.union.value import UnionTensor

    one = type_beside_none(hint)
    if one is not None:
        return MaskedTensor.Spec(_spec_of(one, at, dtype), tf.TensorSpec(at.outer, tf.bool))
    rows = tf.TensorShape([None])
    variants: dict[str, tf.TypeSpec] = {}
    for name, each in variants_in(hint, at.path).items():
        if name == NULL:
            variants[name] = MaskedTensor.Spec(tf.TensorSpec(rows, tf.float32))
        else:
            chosen = dtype if name in ("int", "float", "complex") else None
            place = at._replace(path=f"{at.path}.{name}", outer=rows)
            variants[name] = _spec_of(each, place, chosen)
    return UnionTensor.Spec(variants, at.outer)


def _in_lists(items: Any, outer: tf.TensorShape) -> tf.TypeSpec:
    """Returns the spec of lists of items, which are ragged below the first dimension."""
    if outer.rank == 0:  # the list of a single record
        return items
    if isinstance(items, StructuredTensorSpec):
        for axis in range(outer.rank, 0, -1):
            shape = [outer[0] if axis == 1 else None, None, *items.shape[1:]]
            items = RaggedStructuredTensorSpec(shape, items, tf.int64)
        return items
    if isinstance(items, (tf.TensorSpec, tf.RaggedTensorSpec)):
        inner = items.ragged_rank if isinstance(items, tf.RaggedTensorSpec) else 0
        shape = outer.concatenate(items.shape)
        return tf.RaggedTensorSpec(shape, items.dtype, outer.rank + inner, tf.int64)
    if is_union(items):
        return type(items)(items.variants, codes=_in_lists(items.codes, outer))
    mask = tf.RaggedTensorSpec(outer.concatenate(items.mask.shape), tf.bool, outer.rank, tf.int64)
    return type(items)(_in_lists(items.values, outer), mask)


def _arrow_type(hint: Hint) -> pa.DataType | None:
    """Returns the Arrow type that a field keeps, for dates and times; None for other types."""
    arrow = arrow_note(hint)
    if arrow is not None:
        return arrow
    hint = unwrap(hint).hint
    if get_origin(hint) in UNIONS:
        one = type_beside_none(hint)
        if one is not None:
            return _arrow_type(one)
        if all(_arrow_type(each) is None for each in get_args(hint)):
            return None
        variants = variants_in(hint, "").items()
        return pa.dense_union([pa.field(name, _variant_type(each)) for name, each in variants])
    if get_origin(hint) in LISTS:
        items = [each for each in get_args(hint) if each is not Ellipsis]
        found = _arrow_type(items[0]) if items else None
        return None if found is None else pa.list_(found)
    return KEPT.get(hint) if isinstance(hint, type) else None


def _variant_type(hint: Hint) -> pa.DataType:
    """Returns an Arrow type for a variant beside one that keeps its Arrow type."""
    kept = _arrow_type(hint)
    if kept is not None or hint is type(None):
        return pa.null() if kept is None else kept
    hint, dtype, _, _ = unwrap(hint)
    if is_list_hint(hint):
        return pa.list_(_variant_type(item_of(hint, "")))
    if is_class_with_fields(hint):
        return pa.struct([])  # the records keep the types of their fields
    return natural_flat_type(dtype or dtype_of(value_type(hint, ""), ""), Path())
