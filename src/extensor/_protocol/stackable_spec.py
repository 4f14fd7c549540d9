"""StackableTypeSpec: the spec of extension values that can be stacked and unstacked."""

# The methods that TensorFlow calls on batchable specs are private.

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from extensor import _tf
from extensor._protocol.box import (
    alone_or_list,
    as_list,
    box,
    boxed_specs,
    expect_type,
    stacked_spec,
    unbox,
    unstacked_spec,
)
from extensor._protocol.component_error import does_not_stack, mismatch
from extensor._protocol.spec import TypeSpec
from extensor._protocol.tree import map_shapes
from extensor._tf import BatchableTypeSpec
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, ExtensorError, ProtocolError, StructureError

if TYPE_CHECKING:
    from typing_extensions import Self

ChangeShape = Callable[[tf.TensorShape], tf.TensorShape]
ChangeSpec = Callable[[tf.TypeSpec], tf.TypeSpec]


class StackableTypeSpec(TypeSpec, BatchableTypeSpec):
    """A TypeSpec whose values TensorFlow can stack and unstack.

    `tf.data.Dataset.batch` and `unbatch`, `tf.map_fn` and similar functions box each value into
    tensors that stack, and unbox the result. By default, a value is boxed by boxing its
    components, and a spec is stacked by adding a dimension in front of each shape in its
    serialization. If your type stacks in another way, override some of the five methods.

    The example of `ExtensionType`, with a stackable spec:

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> class MaskedTensor:
    ...     def __init__(self, values, mask):
    ...         self.values, self.mask = values, mask
    ...
    ...     def __tf_type_spec__(self):
    ...         return MaskedTensorSpec(self.values.shape, self.values.dtype)
    >>> class MaskedTensorSpec(xt.StackableTypeSpec):
    ...     def __init__(self, shape, dtype):
    ...         self.shape, self.dtype = tf.TensorShape(shape), tf.dtypes.as_dtype(dtype)
    ...
    ...     value_type = MaskedTensor
    ...
    ...     @property
    ...     def component_specs(self):
    ...         return tf.TensorSpec(self.shape, self.dtype), tf.TensorSpec(self.shape, tf.bool)
    ...
    ...     def to_components(self, value):
    ...         return value.values, value.mask
    ...
    ...     def from_components(self, components):
    ...         return MaskedTensor(*components)
    ...
    ...     def serialize(self):
    ...         return self.shape, self.dtype
    >>> masked = MaskedTensor(tf.constant([3, 1, 2]), tf.constant([True, False, True]))
    >>> for batch in tf.data.Dataset.from_tensor_slices(masked).batch(2):
    ...     print(batch.values.numpy(), batch.mask.numpy())
    [3 1] [ True False]
    [2] [ True]
    """

    def to_boxed_tensor(self, value: Value, minimum_rank: int = 0) -> list[tf.Tensor] | tf.Tensor:
        """Returns a value as a tensor, or parallel tensors, that can be stacked.

        Stacking, unstacking or concatenating boxed tensors has the same result as stacking,
        unstacking or concatenating the values. May call TensorFlow ops.

        Args:
            value: A value that this spec describes.
            minimum_rank: How many times the boxed tensors can be unstacked: they have at least
                this rank, and the same leading `minimum_rank` dimensions.

        Returns:
            A tensor, or a list of tensors. By default: the boxes of the components, in the order
            of `tf.nest.flatten`; for a type of one box, the tensor itself.

        Raises:
            DTypeError: If the value is of another type: a stack has values of one type (also a
                TypeError).
            StructureError: If a component has fewer dimensions than `minimum_rank`, or its
                leading dimensions differ from those of another component (also a ValueError).
        """
        expect_type(self, value)
        boxes: list[tf.Tensor] = []

        def add(spec: tf.TypeSpec, component: Value) -> None:
            if not isinstance(spec, BatchableTypeSpec):
                raise does_not_stack(spec, type(self).__qualname__)
            if isinstance(spec, tf.TensorSpec) and not spec.is_compatible_with(component):
                wrong = mismatch(self, components)
                if wrong is not None:
                    raise wrong
            boxes.extend(box(spec, component, minimum_rank))

        components = self.to_components(value)
        try:
            tf.nest.map_structure(add, self.component_specs, components)
        except (TypeError, ValueError, AttributeError) as error:
            wrong = None if isinstance(error, ExtensorError) else mismatch(self, components)
            if wrong is None:
                raise
            raise wrong from error
        leading = tf.TensorShape([None] * minimum_rank)
        for i, tensor in enumerate(boxes):
            if tensor.shape.rank is not None and not (
                tensor.shape.rank >= minimum_rank
                and leading.is_compatible_with(tensor.shape[:minimum_rank])
            ):
                expected = f"at least {minimum_rank} dimension(s) to unstack" + (
                    "" if None in leading else f", {leading.as_list()} as the others"
                )
                received = f"shape {tensor.shape}"
                fix = "Unstack only values whose components share leading dimensions."
                raise StructureError(
                    f"{type(self).__qualname__}, boxed tensor {i}", expected, received, fix
                )
            leading = leading.merge_with(tensor.shape[:minimum_rank])
        return alone_or_list(boxes)

    def from_boxed_tensor(self, boxed_tensor: Sequence[tf.Tensor]) -> Value:
        """Returns the value that a boxed tensor, or parallel boxed tensors, hold.

        Args:
            boxed_tensor: The result of `to_boxed_tensor`, or of stacking, unstacking or
                concatenating such tensors. They may be reshaped too, if the spec that unboxes
                is `stacked` once for each added dimension.

        Raises:
            StructureError: If the number of tensors or a shape is wrong (also a ValueError).
            DTypeError: If a dtype is wrong (also a TypeError).
        """
        boxes = list(as_list(boxed_tensor))
        expect_boxes(self, boxes)
        return self._unbox(boxes)

    def _unbox(self, boxes: list[tf.Tensor]) -> Value:
        """Returns the value that boxes hold, without checks."""
        rest = iter(boxes)
        components = [
            next(rest)  # same as `unbox`, but faster: this runs for each element of a dataset
            if count is None
            else unbox(spec, [next(rest) for _ in range(count)])
            for spec, count in self._numbers_of_boxes
        ]
        specs = self.component_specs
        if type(specs) is tuple and len(specs) == len(components) and all(
            map(operator.is_, specs, [spec for spec, _ in self._numbers_of_boxes])
        ):  # fmt: skip
            return self.from_components(tuple(components))
        return self.from_components(tf.nest.pack_sequence_as(specs, components))

    @functools.cached_property
    def _numbers_of_boxes(self) -> list[tuple[tf.TypeSpec, int | None]]:
        """The spec of each component, and the number of its boxes; None for a plain tensor."""
        return [
            (spec, None if type(spec) is tf.TensorSpec else len(boxed_specs(spec)))
            for spec in tf.nest.flatten(self.component_specs)
        ]

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> list[tf.TypeSpec] | tf.TypeSpec:
        """Returns the TensorSpecs of the result of `to_boxed_tensor`: one spec, or a list."""
        return alone_or_list(
            [
                tensor_spec
                for spec in tf.nest.flatten(self.component_specs)
                for tensor_spec in boxed_specs(spec, minimum_rank)
            ]
        )

    def stacked(self, num: int | None) -> Self:
        """Returns the spec of `num` stacked values of this spec (None: an unknown number)."""
        return self._change_shapes(
            lambda shape: tf.TensorShape([num]).concatenate(shape),
            lambda spec: stacked_spec(spec, num, type(self).__qualname__),
        )

    def unstacked(self) -> Self:
        """Returns the spec of one row of a value of this spec: the inverse of `stacked`.

        Raises:
            StructureError: If a component has no dimension to unstack (also a ValueError).
        """
        return self._change_shapes(
            lambda shape: shape[1:], lambda spec: unstacked_spec(spec, type(self).__qualname__)
        )

    def _any_length(self) -> Self:
        """Returns `unstacked().stacked(None)`: this spec with a first dimension of unknown size.

        One pass, because two passes at each level of nested specs take time exponential in the
        number of levels.
        """
        cls = type(self)
        if (cls.stacked, cls.unstacked) != (StackableTypeSpec.stacked, StackableTypeSpec.unstacked):
            return self.unstacked().stacked(None)
        return self._change_shapes(any_length_shape, any_length)

    def _change_shapes(self, change_shape: ChangeShape, change_spec: ChangeSpec) -> Self:
        """Maps the shapes in the serialization, and checks the result against the components."""
        # A part of the serialization is often a component spec too.
        done: dict[int, tuple[tf.TypeSpec, tf.TypeSpec]] = {}

        def once(spec: tf.TypeSpec) -> tf.TypeSpec:
            if id(spec) not in done:  # the tuple holds the spec, so that its id stays its own
                done[id(spec)] = spec, change_spec(spec)
            return done[id(spec)][1]

        result = self.deserialize(map_shapes(self.serialize(), change_shape, once))
        expected = [once(spec) for spec in tf.nest.flatten(self.component_specs)]
        received = tf.nest.flatten(result.component_specs)
        if len(expected) != len(received) or not all(
            a.is_compatible_with(b) for a, b in zip(expected, received, strict=False)
        ):
            raise ProtocolError(
                type(self).__qualname__,
                f"component specs {expected} after stacking or unstacking",
                f"{received}",
                "Override stacked and unstacked: the default adds or removes a dimension of "
                "each shape in serialize(), and this does not change the component specs likewise.",
            )
        return result

    def _restack(self, change_shape: ChangeShape, change_spec: ChangeSpec) -> Self:
        """Maps the shapes, and raises an error if a stack of the result is not of this type."""
        return self._change_shapes(change_shape, change_spec)

    def _as_row(self) -> StackableTypeSpec:
        """Returns the spec of a value as that of a row, which may be of a ragged tensor."""
        return self

    # Methods for `Dataset.ragged_batch` and `padded_batch`: see `dataset_batch`.

    def _stacks_by_components(self) -> bool:
        """Returns whether a stack of values has stacks of their components as components."""
        return type(self).to_boxed_tensor is StackableTypeSpec.to_boxed_tensor

    def _named_components(self) -> Nest:
        """Returns the component specs, as a dict where the components have names."""
        return self.component_specs

    def _ragged_row(self, row_splits_dtype: tf.DType) -> StackableTypeSpec:
        """Returns a spec that stacks dense components of different sizes as ragged tensors."""
        if not self._stacks_by_components():  # the author overrides how values stack
            return self
        specs = tf.nest.flatten(self.component_specs)
        expected = [ragged_row(spec, row_splits_dtype) for spec in specs]
        if expected == specs:
            return self
        try:
            row = self._restack(lambda shape: shape, lambda s: ragged_row(s, row_splits_dtype))
            received = tf.nest.flatten(row.component_specs)
        except ExtensorError as error:
            raise _not_ragged(self) from error
        if list(map(type, received)) != list(map(type, expected)):
            raise _not_ragged(self)
        return row

    # Methods that TensorFlow calls.

    def _batch(self, batch_size: int | None) -> StackableTypeSpec:
        return self.stacked(batch_size)

    def _unbatch(self) -> StackableTypeSpec:
        return self.unstacked()

    def _to_tensor_list(self, value: Value) -> list[tf.Tensor]:
        return list(as_list(self.to_boxed_tensor(value)))

    def _to_batched_tensor_list(self, value: Value) -> list[tf.Tensor]:
        return list(as_list(self.to_boxed_tensor(value, minimum_rank=1)))

    def _from_compatible_tensor_list(self, tensor_list: list[tf.Tensor]) -> Value:
        if type(self).from_boxed_tensor is StackableTypeSpec.from_boxed_tensor:
            return self._unbox(tensor_list)  # boxes from TensorFlow need no checks
        boxed_alone = not isinstance(self.boxed_tensor_spec(), (list, tuple))
        return self.from_boxed_tensor(tensor_list[0] if boxed_alone else tensor_list)

    @property
    def _flat_tensor_specs(self) -> list[tf.TensorSpec]:
        return list(self._boxed_specs)

    @functools.cached_property
    def _boxed_specs(self) -> list[tf.TensorSpec]:
        # TensorFlow asks for them with each element of a dataset.
        return list(as_list(self.boxed_tensor_spec()))


def stacks_by_components(spec: object) -> bool:
    """Returns whether a stack of values of a spec has stacks of their components as components.

    >>> from extensor._protocol.stackable_spec import stacks_by_components
    >>> import extensor as xt
    >>> stacks_by_components(xt.types.CSRSparseTensor.Spec([2, 3]))
    False
    """
    return isinstance(spec, StackableTypeSpec) and spec._stacks_by_components()


def as_row(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of a value as that of a row, so that a stack of rows may be ragged.

    The rows of a ragged tensor are dense. If a field takes ragged tensors only, its dense values
    are such rows, and stack to a ragged tensor.

    >>> from extensor._protocol.stackable_spec import as_row
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Steps:
    ...     minutes: tf.RaggedTensor
    >>> row = Steps(tf.ragged.constant([[1], [2, 3]]))[0]
    >>> as_row(xt.spec_of(row)).minutes
    RaggedTensorSpec(TensorShape([1]), tf.int32, 0, tf.int64)
    """
    return spec._as_row() if isinstance(spec, StackableTypeSpec) else spec


def any_length(spec: tf.TypeSpec) -> tf.TypeSpec:
    """Returns the spec of stacked values, with an unknown number of them.

    >>> from extensor._protocol.stackable_spec import any_length
    >>> import tensorflow as tf
    >>> any_length(tf.TensorSpec([2, 3]))
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    """
    if isinstance(spec, StackableTypeSpec):
        return spec._any_length()
    if spec.__class__ is tf.TensorSpec and spec.shape.rank:
        return tf.TensorSpec(any_length_shape(spec.shape), spec.dtype)
    return _tf.stacked(_tf.unstacked(spec), None)


def any_length_shape(shape: tf.TensorShape) -> tf.TensorShape:
    """Returns a shape with an unknown first size."""
    return tf.TensorShape([None]).concatenate(shape[1:])


def ragged_row(spec: tf.TypeSpec, row_splits_dtype: tf.DType = tf.int64) -> tf.TypeSpec:
    """Returns a spec that stacks values of different sizes as ragged tensors.

    Args:
        spec: The spec of one value. Returned unchanged unless it has a dense tensor of unknown
            size.
        row_splits_dtype: The dtype of the row splits of the stack.

    Raises:
        DTypeError: If the type cannot have ragged components (also a TypeError).

    >>> from extensor._protocol.stackable_spec import ragged_row
    >>> import tensorflow as tf
    >>> ragged_row(tf.TensorSpec([None, 3]))._batch(2)
    RaggedTensorSpec(TensorShape([2, None, 3]), tf.float32, 1, tf.int64)
    """
    if isinstance(spec, StackableTypeSpec):
        return spec._ragged_row(row_splits_dtype)
    if not isinstance(spec, tf.TensorSpec) or spec.shape.rank is None:
        return spec
    unknown = [axis for axis, size in enumerate(spec.shape) if size is None]
    if not unknown:
        return spec
    return tf.RaggedTensorSpec(spec.shape, spec.dtype, unknown[-1], row_splits_dtype)


def _not_ragged(spec: tf.TypeSpec) -> DTypeError:
    expected = "a type whose components may be ragged, or all have known sizes"
    fix = "Declare the field as tf.Tensor | tf.RaggedTensor, or use padded_batch."
    return DTypeError("ragged_batch", expected, str(spec), fix)


def expect_boxes(spec: StackableTypeSpec, boxes: list[tf.Tensor]) -> None:
    """Raises StructureError or DTypeError unless boxed tensors match their specs."""
    path = type(spec).__qualname__
    fix = "Give the result of to_boxed_tensor of the same type, and stack or unstack the spec as "
    fix += "often as the tensors."
    specs = list(as_list(spec.boxed_tensor_spec()))
    if len(boxes) != len(specs):
        raise StructureError(path, f"{len(specs)} boxed tensors", f"{len(boxes)}", fix)
    for i, (wanted, tensor) in enumerate(zip(specs, boxes, strict=True)):
        dtype = getattr(tensor, "dtype", None)
        if dtype != wanted.dtype:
            received = type(tensor).__qualname__ if dtype is None else tf.as_dtype(dtype).name
            raise DTypeError(f"{path}, boxed tensor {i}", wanted.dtype.name, received, fix)
        if not wanted.shape.is_compatible_with(tensor.shape):
            expected = f"shape {wanted.shape}"
            raise StructureError(f"{path}, boxed tensor {i}", expected, f"{tensor.shape}", fix)
