"""The spec of UnionTensors, their boxes, and casts to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import tensorflow as tf

from extensor._types.union import conversion
from extensor._types.union.check import expect_names
from extensor._types.union.rows import flat_codes
from extensor.authoring import (
    box,
    box_rows,
    boxed_rows_specs,
    boxed_specs,
    castable_type,
    expect_unstacks,
    row_splits_of,
    rows_spec,
    sizes_of,
    stacked_spec,
    supertype,
    unbox,
    unbox_rows,
    unstacked_spec,
)
from extensor.errors import StructureError
from extensor.typing import ShapeLike

if TYPE_CHECKING:
    from typing_extensions import Self

    from extensor._types.union.value import UnionTensor


class UnionSpec:
    """The spec of unions of given variants, with any number of rows of each.

    Args:
        variants: The spec of the rows of each variant by name, in the order of the codes.
        shape: The static shape of the union; its rank must be known. Default: `[None]`.
        codes: The spec of the type codes, instead of a shape: a RaggedTensorSpec of int8 for a
            ragged union.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> spec = xt.types.UnionTensor.Spec(
    ...     {"number": tf.TensorSpec([None]), "text": tf.TensorSpec([None], tf.string)})
    >>> spec.shape, spec.names
    (TensorShape([None]), ('number', 'text'))
    """

    codes: Any
    variants: Mapping[str, Any]
    names: tuple[str, ...]
    value_type: Any

    def __init__(
        self,
        variants: Mapping[str, tf.TypeSpec],
        shape: ShapeLike = (None,),
        codes: tf.TypeSpec | None = None,
    ) -> None:
        expect_names(variants, list(variants))
        self.codes = tf.TensorSpec(shape, tf.int8) if codes is None else codes
        if self.codes.shape.rank is None:
            expected = "a shape of known rank"
            fix = "Sizes may be None; a single value has the shape []."
            raise StructureError("UnionTensor.Spec", expected, f"shape {self.codes.shape}", fix)
        self.variants = {
            name: rows_spec(spec, f"UnionTensor.variants[{name!r}]")
            for name, spec in variants.items()
        }
        self.names = tuple(variants)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the codes."""
        return self.codes.shape

    @property
    def rank(self) -> int:
        """The number of dimensions of the codes."""
        return self.codes.shape.rank

    @classmethod
    def deserialize(cls, serialization: Any) -> Self:
        """Returns the spec that `serialize` described.

        Raises:
            FieldError: If the names are not those of the variants (also a KeyError).
        """
        spec = cast("Any", super()).deserialize(serialization)
        expect_names(spec.variants, spec.names)
        return spec

    def _like(self, codes: tf.TypeSpec) -> Self:
        """Returns this spec with another spec of the codes."""
        return type(self)({name: self.variants[name] for name in self.names}, codes=codes)

    @classmethod
    def of(cls, value: UnionTensor) -> tf.TypeSpec:
        """Returns the spec of a union, for any number of rows of each variant."""
        parts = cast("Any", super()).of(value)
        return cls({name: parts.variants[name] for name in parts.names}, codes=parts.codes)

    def stacked(self, num: int | None) -> Self:
        """Returns the spec of a batch."""
        return self._like(stacked_spec(self.codes, num, "UnionTensor.Spec"))

    def unstacked(self) -> Self:
        """Returns the spec of one element along the first dimension."""
        if self.shape.rank == 0:
            fix = "Its rows are in value.variants."
            raise StructureError("UnionTensor.Spec", "a batch to unstack", "a single value", fix)
        return self._like(unstacked_spec(self.codes, "UnionTensor.Spec"))

    def __tf_cut_rows__(self, num_rows: int | None, row_splits_dtype: tf.DType) -> Self:
        """Returns the spec of a union that is cut into rows; see `UnionTensor.__tf_cut_rows__`."""
        codes = self.codes
        shape = tf.TensorShape([num_rows, None]).concatenate(codes.shape[1:])
        ragged_rank = getattr(codes, "ragged_rank", 0) + 1
        return self._like(tf.RaggedTensorSpec(shape, codes.dtype, ragged_rank, row_splits_dtype))

    def _ragged_row(self, row_splits_dtype: tf.DType) -> Self:
        """Returns a spec that stacks unions of different sizes as ragged ones.

        The variants have rows of their own, whose number does not matter.
        """
        codes = self.codes
        if isinstance(codes, tf.RaggedTensorSpec) or codes.shape.is_fully_defined():
            return self
        unknown = [axis for axis, size in enumerate(codes.shape) if size is None]
        return self._like(
            tf.RaggedTensorSpec(codes.shape, codes.dtype, unknown[-1], row_splits_dtype)
        )

    # The boxes are the codes, and for each variant its rows, cut into 0 or 1 row for each code.

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec]:
        """Returns the TensorSpecs of the boxes."""
        boxed = [b for name in self.names for b in boxed_rows_specs(self.variants[name])]
        return [*boxed_specs(self.codes, minimum_rank), *boxed]

    def to_boxed_tensor(self, value: UnionTensor, minimum_rank: int = 0) -> list[tf.Tensor]:
        """Returns the boxes of a union."""
        expect_unstacks(self, value, minimum_rank)
        codes = value.codes
        boxes = box(self.codes, codes, minimum_rank)
        sizes = codes
        if not isinstance(codes, tf.RaggedTensor):
            sizes = sizes_of(codes.shape, tf.shape(codes, tf.int64))
        flat = flat_codes(codes)
        for code, name in enumerate(self.names):
            is_own = tf.equal(flat, tf.cast(code, flat.dtype))
            splits = row_splits_of(tf.cast(is_own, self._splits_dtype()))
            boxes += box_rows(
                self.variants[name], value.variants[name], splits, sizes, minimum_rank
            )
        return boxes

    def from_boxed_tensor(self, boxed_tensor: list[tf.Tensor]) -> UnionTensor:
        """Returns the union that the boxes contain."""
        boxes = iter(boxed_tensor)
        codes = unbox(self.codes, [next(boxes)])
        variants = {
            name: unbox_rows(self.variants[name], self.shape, boxes, self._splits_dtype())
            for name in self.names
        }
        return self.value_type._of_parts(codes, variants, self.names)

    def _splits_dtype(self) -> tf.DType:
        # TensorFlow does not mix row splits of two dtypes.
        return self.codes.row_splits_dtype if hasattr(self.codes, "row_splits_dtype") else tf.int64

    # Casts.

    def cast(
        self, value: Any, casting_context: object | None = None, **request: Any
    ) -> UnionTensor:
        """Returns a value as a union of this spec.

        Args:
            value: A UnionTensor with some of these variants, in any order, or a list of Python
                values, as for `UnionTensor.from_values`.
            casting_context: The casting context of TensorFlow.
            **request: `extra` and `times` for records in it.

        Raises:
            DTypeError: If a value fits no variant (also a TypeError).
        """
        if isinstance(value, self.value_type):
            value = conversion.with_names(value, self)
        elif isinstance(value, list):
            return conversion.from_values(cast("Any", value), self)
        return cast("Any", super()).cast(value, casting_context, **request)

    def castable_type(self, spec: tf.TypeSpec) -> tf.TypeSpec | None:
        """Returns the spec of a union of the variants of both specs, or None."""
        if not isinstance(spec, type(self)):
            return None
        codes = _common_codes(self.codes, spec.codes)
        if codes is None:
            return None
        variants: dict[str, Any] = {}
        for name in (*self.names, *spec.names):
            both = [s.variants[name] for s in (self, spec) if name in s.names]
            variants[name] = castable_type(*both) if len(both) == 2 else both[0]
            if variants[name] is None:
                return None
        return type(self)(variants, codes=codes)


def _common_codes(one: tf.TypeSpec, other: tf.TypeSpec) -> tf.TypeSpec | None:
    """Returns the spec of the codes of both specs, or None.

    A RaggedTensorSpec without ragged dimensions is that of a row of ragged codes: its values are
    tensors.
    """
    common: Any = supertype(one, other)
    for row, tensor in ((one, other), (other, one)):
        is_row = isinstance(row, tf.RaggedTensorSpec) and row.ragged_rank == 0
        if common is None and is_row and isinstance(tensor, tf.TensorSpec):
            dense: Any = supertype(tf.TensorSpec(row.shape, row.dtype), tensor)
            if dense is not None:
                return tf.RaggedTensorSpec(dense.shape, row.dtype, 0, row.row_splits_dtype)
    return common
