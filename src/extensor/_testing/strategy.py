"""Hypothesis strategies for the specs and the values of extension types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from extensor import _tf
from extensor._dependency import import_extra
from extensor._struct.dense_spec import DenseStructuredTensorSpec
from extensor._struct.ragged_spec import ListSpec, RaggedRowSpec, RaggedStructuredTensorSpec
from extensor._testing.subject import spec_of
from extensor._testing.variation import open_axes, with_shapes
from extensor._types.masked.value import MaskedTensor
from extensor._types.union.value import UnionTensor
from extensor._typing import Value
from extensor.errors import DTypeError, UnsupportedTypeError

if TYPE_CHECKING:
    from types import ModuleType

    from hypothesis.strategies import SearchStrategy

    from extensor._struct.tensor import StructuredTensor

_MAX = 3
"""The maximum of drawn sizes and row lengths."""


def specs_of(value_or_spec: object) -> SearchStrategy[tf.TypeSpec]:
    """Returns a strategy for specs of a value in which some sizes are None.

    Args:
        value_or_spec: An extension value, or a TypeSpec.

    Raises:
        MissingDependencyError: If Hypothesis is not installed (also an ImportError).
        ProtocolError: If the value has no TypeSpec (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> from hypothesis import find
    >>> find(xt.testing.specs_of(tf.ragged.constant([[1, 2], [3]])),
    ...      lambda spec: spec.shape[0] is None)
    RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)
    """
    st = import_extra("hypothesis", "testing", "xt.testing").strategies
    spec = value_or_spec if isinstance(value_or_spec, tf.TypeSpec) else spec_of(value_or_spec)

    # The same axes are opened in all shapes, so shapes that must agree still do.
    return st.sets(st.integers(0, _MAX)).map(functools.partial(open_axes, spec))


def values_of(spec: tf.TypeSpec) -> SearchStrategy[Any]:
    """Returns a strategy for values of a spec.

    Tensors are drawn by shape and dtype, ragged and sparse tensors and StructuredTensors by rows or
    entries, a mask with the rows of its values, a union by codes and the rows of its variants. The
    strings of a field that Arrow describes as text are UTF-8, and its times are within a day.

    Any other extension value is built from drawn components. Unknown sizes are drawn once for each
    axis, so components that share a dimension agree. If the components of your type must satisfy
    more conditions (for example ascending row splits), pass your own strategy to `check_spec`.

    Args:
        spec: Any TypeSpec.

    Raises:
        MissingDependencyError: If Hypothesis is not installed (also an ImportError).
        DTypeError: If `spec` is not a TypeSpec (also a TypeError).
        UnsupportedTypeError: If a component has a dtype without a strategy, such as variant (also
            a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> from hypothesis import find
    >>> find(xt.testing.values_of(tf.RaggedTensorSpec([None, None], tf.int32)),
    ...      lambda ragged: ragged.nrows() == 2)
    <tf.RaggedTensor [[], []]>
    """
    st = import_extra("hypothesis", "testing", "xt.testing").strategies
    if not isinstance(spec, tf.TypeSpec):
        fix = "To get the spec of a value, call tf.type_spec_from_value(value)."
        raise DTypeError("values_of", "a TypeSpec", type(spec).__name__, fix)

    @st.composite
    def values(draw: Callable[[SearchStrategy[Any]], Any]) -> Value:
        return _Draw(draw, st).value(spec)

    return values()


_RAGGED = (tf.RaggedTensorSpec, ListSpec)
"""In these specs an axis of unknown size is ragged and keeps its unknown size."""


class _Draw:
    """Draws one value. `outer` holds the sizes of leading axes that are already fixed."""

    def __init__(self, draw: Callable[[Any], Any], st: ModuleType) -> None:
        self._draw, self._st = draw, st
        self._sizes: dict[int, int] = {}
        self._arrow: pa.DataType | None = None
        """The Arrow type of the field that is drawn."""

    def value(self, spec: Any, outer: Sequence[int] = ()) -> Value:
        """Returns a value of any spec."""
        if isinstance(spec, _tf.VariableSpec):
            raise _unsupported_error("a Variable")
        if isinstance(spec, tf.TensorSpec):
            return self._tensor(self._draw_shape(spec.shape, outer), spec.dtype)
        if isinstance(spec, tf.SparseTensorSpec):
            return self._sparse(self._draw_shape(spec.shape, outer), spec.dtype)
        if isinstance(spec, tf.RaggedTensorSpec):
            return self._ragged(spec, outer)
        if isinstance(spec, RaggedRowSpec):
            row = self.value(spec.values_spec, outer or self._draw_shape(spec.shape[:1], ()))
            return spec.from_components(spec.values_spec.to_components(row))
        if isinstance(spec, RaggedStructuredTensorSpec):
            return self._ragged_records(spec, outer)
        if isinstance(spec, UnionTensor.Spec):
            return self._union(spec, outer)
        if isinstance(spec, MaskedTensor.Spec):
            return self._masks(spec, outer)
        if isinstance(spec, DenseStructuredTensorSpec):
            return self._records(spec, self._draw_shape(spec.shape, outer))
        spec = with_shapes(spec, lambda s: tf.TensorShape(self._draw_shape(s, outer)), _RAGGED)
        specs = _tf.component_specs(spec)
        parts = [self.value(component, outer) for component in tf.nest.flatten(specs)]
        return _tf.from_components(spec, tf.nest.pack_sequence_as(specs, parts))

    def _records(self, spec: DenseStructuredTensorSpec, outer: Sequence[int]) -> StructuredTensor:
        parts: list[Any] = []
        names = sorted(spec.field_names()) or [""]
        for name, component in zip(names, spec.component_specs, strict=True):
            above, self._arrow = self._arrow, spec.arrow_types.get(name)
            parts.append(self.value(component, outer))
            self._arrow = above
        return spec.from_components(tuple(parts))

    def _draw_shape(self, shape: tf.TensorShape, outer: Sequence[int]) -> list[int]:
        """Returns a shape with a size for each axis."""
        if shape.rank is None:
            shape = tf.TensorShape([None] * (len(outer) + self._draw(self._st.integers(0, 2))))
        return [self._size(axis, size, outer) for axis, size in enumerate(shape)]

    def _size(self, axis: int, size: int | None, outer: Sequence[int]) -> int:
        if size is not None:
            return size
        if axis < len(outer):
            return outer[axis]
        if axis not in self._sizes:
            self._sizes[axis] = self._draw(self._st.integers(0, _MAX))
        return self._sizes[axis]

    def _splits(self, axis: int, size: int | None, outer: Sequence[int], nrows: int) -> list[int]:
        """Returns row splits; all rows have the same length if the size of the axis is fixed."""
        fixed = size is not None or axis < len(outer)
        length = self._st.integers(0, _MAX)
        if fixed:
            length = self._st.just(self._size(axis, size, outer))
        rows = self._draw(self._st.lists(length, min_size=nrows, max_size=nrows))
        return [0, *np.cumsum(rows, dtype=int).tolist()]

    def _ragged(
        self, spec: tf.RaggedTensorSpec, outer: Sequence[int]
    ) -> tf.Tensor | tf.RaggedTensor:
        if spec.ragged_rank == 0:
            return self._tensor(self._draw_shape(spec.shape, outer), spec.dtype)
        nrows = self._size(0, spec.shape[0], outer)
        partitions: list[tf.Tensor] = []
        for axis in range(1, spec.ragged_rank + 1):
            splits = self._splits(axis, spec.shape[axis], outer, nrows)
            nrows = splits[-1]
            partitions.append(tf.constant(splits, spec.row_splits_dtype))
        inner = self._draw_shape(spec.shape, outer)[spec.ragged_rank + 1 :]
        return tf.RaggedTensor.from_nested_row_splits(
            self._tensor([nrows, *inner], spec.dtype), partitions
        )

    def _ragged_records(
        self, spec: RaggedStructuredTensorSpec, outer: Sequence[int]
    ) -> StructuredTensor:
        splits = self._splits(1, spec.shape[1], outer, self._size(0, spec.shape[0], outer))
        values = self.value(spec.values_spec, [splits[-1], *outer[2:]])
        return spec.from_components((values, tf.constant(splits, spec.row_splits_dtype)))

    def _union(self, spec: UnionTensor.Spec, outer: Sequence[int]) -> UnionTensor:
        """Returns a union with a row of a variant for each of its codes."""
        codes = tf.nest.map_structure(
            lambda part: part if part.dtype != tf.int8 else self._codes(part.shape, spec.names),
            self.value(spec.codes, outer),
            expand_composites=True,
        )
        flat = codes.flat_values if isinstance(codes, tf.RaggedTensor) else codes
        counts = np.bincount(flat.numpy().reshape(-1), minlength=len(spec.names))
        variants = {
            name: self._inside().value(spec.variants[name], [int(count)])
            for name, count in zip(spec.names, counts, strict=True)
        }
        return spec.value_type(codes, variants, spec.names)

    def _inside(self) -> _Draw:
        """Returns a strategy with sizes of its own, for values that share no dimension."""
        inside = _Draw(self._draw, self._st)
        inside._arrow = self._arrow
        return inside

    def _is_bytes(self) -> bool:
        if self._arrow is None:
            return True
        item = _item_type(self._arrow)
        return not (
            pa.types.is_string(item)
            or pa.types.is_large_string(item)
            or pa.types.is_string_view(item)
            or pa.types.is_union(item)
        )

    def _codes(self, shape: tf.TensorShape, names: Sequence[str]) -> tf.Tensor:
        code = self._st.integers(0, len(names) - 1)
        count = shape.num_elements()
        drawn = self._draw(self._st.lists(code, min_size=count, max_size=count))
        return tf.reshape(tf.constant(drawn, tf.int8, [count]), shape)

    def _masks(self, spec: MaskedTensor.Spec, outer: Sequence[int]) -> MaskedTensor:
        """Returns a masked value, whose mask has the rows of the values."""
        values = self.value(spec.values, outer)
        if not getattr(spec.mask, "ragged_rank", 0):
            shape = spec.mask.shape
            sizes = [*values.shape[: shape.rank]]
            return spec.value_type(values, self._tensor(self._draw_shape(shape, sizes), tf.bool))
        splits: list[tf.Tensor] = []
        rows = values
        for _ in range(spec.mask.ragged_rank):
            splits.append(rows.row_splits)
            rows = rows.values
        inner = rows.shape[: spec.mask.shape.rank - spec.mask.ragged_rank]
        mask = tf.RaggedTensor.from_nested_row_splits(self._tensor([*inner], tf.bool), splits)
        return spec.value_type(values, mask)

    def _sparse(self, shape: list[int], dtype: tf.DType) -> tf.SparseTensor:
        places = list(np.ndindex(*shape))
        chosen = sorted(self._draw(self._st.sets(self._st.sampled_from(places)))) if places else []
        indices = tf.constant(chosen, tf.int64, [len(chosen), len(shape)])
        return tf.SparseTensor(indices, self._tensor([len(chosen)], dtype), shape)

    def _tensor(self, shape: list[int], dtype: tf.DType) -> tf.Tensor:
        count = int(np.prod(shape))
        items = self._draw(self._st.lists(self._item(dtype), min_size=count, max_size=count))
        return tf.reshape(tf.constant(items, dtype, [count]), shape)

    def _item(self, dtype: tf.DType) -> SearchStrategy[Any]:
        st = self._st
        if dtype == tf.string:
            return (
                st.binary(max_size=2) if self._is_bytes() else st.text(max_size=2).map(str.encode)
            )
        if dtype == tf.bool:
            return st.booleans()
        if dtype.is_integer:
            item = None if self._arrow is None else _item_type(self._arrow)
            is_time = item is not None and pa.types.is_time(item)
            small = st.integers(0 if is_time else max(dtype.min, -9), 9)
            if dtype.size < 8 or not (item is None or pa.types.is_integer(item)):
                return small
            # A float64 does not tell these from their neighbours.
            return small | st.sampled_from([2**53 + 1, max(dtype.min, -(2**53) - 1)])
        if dtype.is_floating:
            return st.integers(-9, 9).map(float)
        if dtype.is_complex:
            return st.builds(complex, st.integers(-9, 9), st.integers(-9, 9))
        raise _unsupported_error(dtype.name)


def _item_type(arrow: pa.DataType) -> pa.DataType:
    """Returns the Arrow type of the items of lists and dictionaries, at any depth."""
    value_type = getattr(arrow, "value_type", None)
    return arrow if value_type is None else _item_type(value_type)


def _unsupported_error(received: str) -> UnsupportedTypeError:
    expected, fix = "numbers, strings or booleans", "Pass your own strategy to check_spec."
    return UnsupportedTypeError("xt.testing.values_of", expected, received, fix)
