"""StackableTypeSpec: extension values that can be stacked and unstacked, however many they are."""

# The boxes of TensorFlow's own types have no public name.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._tf import BatchableTypeSpec
from extensor.core.spec import TypeSpec
from extensor.errors import ProtocolError, StructureError


class StackableTypeSpec(TypeSpec, BatchableTypeSpec):
    """A TypeSpec whose values TensorFlow can stack and unstack.

    `tf.data.Dataset.batch` and `unbatch`, `tf.map_fn` and their kin box each value into tensors
    that stack, and unbox what comes out. By default a value is boxed by boxing its components,
    and a spec is stacked by adding a dimension in front of every shape in its serialization; an
    author whose type does not stack that way overrides some of the five methods.

    With the spec of `ExtensionType`'s example derived from this class instead:

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

    def to_boxed_tensor(self, value: Any, minimum_rank: int = 0) -> Any:
        """Returns a value as a tensor, or parallel tensors, that can be stacked.

        Stacking, unstacking or concatenating boxed tensors and unboxing the result is the same
        as doing so to the values. May call TensorFlow ops.

        Args:
            value: A value that this spec describes.
            minimum_rank: How many times the boxed tensors must be fit for unstacking: they have
                at least this rank, and agree in shape up to it.

        Returns:
            A tensor, or a list of them. By default: the boxes of the components, in the order in
            which `tf.nest` flattens them.

        Raises:
            StructureError: If a component has fewer dimensions than `minimum_rank`.
        """
        boxes: list[Any] = []
        components = self.to_components(value)
        tf.nest.map_structure(
            lambda spec, component: boxes.extend(box(spec, component, minimum_rank)),
            self.component_specs,
            components,
        )
        for i, tensor in enumerate(boxes):
            if tensor.shape.rank is not None and tensor.shape.rank < minimum_rank:
                raise StructureError(
                    path=f"{type(self).__name__}, boxed tensor {i}",
                    expected=f"at least {minimum_rank} dimension(s) to unstack",
                    received=f"shape {tensor.shape}",
                    mend="Unstack only values whose components share leading dimensions.",
                )
        return boxes

    def from_boxed_tensor(self, boxed_tensor: Any) -> Any:
        """Returns the value that a boxed tensor, or parallel ones, stand for.

        Args:
            boxed_tensor: What `to_boxed_tensor` returned, or what came of stacking, unstacking
                or concatenating such tensors.
        """
        specs = self.component_specs
        boxes = list(_as_list(boxed_tensor))
        counts = [len(boxed_specs(spec)) for spec in tf.nest.flatten(specs)]
        if len(boxes) != sum(counts):
            raise StructureError(
                path=type(self).__name__,
                expected=f"{sum(counts)} boxed tensors",
                received=f"{len(boxes)}",
                mend="Give what to_boxed_tensor of the same spec returned.",
            )
        components: list[Any] = []
        for spec, count in zip(tf.nest.flatten(specs), counts, strict=True):
            components.append(unbox(spec, boxes[:count]))
            del boxes[:count]
        return self.from_components(tf.nest.pack_sequence_as(specs, components))

    def boxed_tensor_spec(self, minimum_rank: int = 0) -> Any:
        """Returns the TensorSpec, or the list of them, of what `to_boxed_tensor` returns."""
        return [
            tensor_spec
            for spec in tf.nest.flatten(self.component_specs)
            for tensor_spec in boxed_specs(spec, minimum_rank)
        ]

    def stacked(self, num: int | None) -> StackableTypeSpec:
        """Returns the spec of `num` stacked values of this spec (None: a number not known)."""
        return self._restacked(
            lambda shape: tf.TensorShape([num]).concatenate(shape),
            lambda spec: spec._batch(num),
        )

    def unstacked(self) -> StackableTypeSpec:
        """Returns the spec of one value among those that a value of this spec stacks."""
        return self._restacked(lambda shape: shape[1:], lambda spec: spec._unbatch())

    def _restacked(self, of_shape: Any, of_spec: Any) -> StackableTypeSpec:
        """Maps the shapes in the serialization, and checks the result against the components."""

        def change(part: Any) -> Any:
            if isinstance(part, tf.TensorShape):
                return of_shape(part)
            if isinstance(part, BatchableTypeSpec):
                return of_spec(part)
            if isinstance(part, tf.TypeSpec):
                raise ProtocolError(
                    path=type(self).__name__,
                    expected="components that stack",
                    received=f"{type(part).__name__}, which does not",
                    mend=f"Derive {type(part).__name__} from xt.StackableTypeSpec.",
                )
            if isinstance(part, dict):
                return type(part)((k, change(v)) for k, v in part.items())
            if isinstance(part, (list, tuple)):
                items = [change(v) for v in part]
                return type(part)(*items) if hasattr(part, "_fields") else type(part)(items)
            return part

        result = self.deserialize(change(self.serialize()))
        expected = [change(spec) for spec in tf.nest.flatten(self.component_specs)]
        received = tf.nest.flatten(result.component_specs)
        if len(expected) != len(received) or not all(
            a.is_compatible_with(b) for a, b in zip(expected, received, strict=False)
        ):
            raise ProtocolError(
                path=type(self).__name__,
                expected=f"component specs {expected} once stacked or unstacked",
                received=f"{received}",
                mend="Override stacked and unstacked: adding or dropping a dimension of every "
                "shape in serialize() does not do the same to the components.",
            )
        return result

    # What TensorFlow calls.

    def _batch(self, batch_size: int | None) -> StackableTypeSpec:
        return self.stacked(batch_size)

    def _unbatch(self) -> StackableTypeSpec:
        return self.unstacked()

    def _to_tensor_list(self, value: Any) -> list[Any]:
        return list(_as_list(self.to_boxed_tensor(value)))

    def _to_batched_tensor_list(self, value: Any) -> list[Any]:
        return list(_as_list(self.to_boxed_tensor(value, minimum_rank=1)))

    def _from_compatible_tensor_list(self, tensor_list: list[Any]) -> Any:
        boxed_alone = not isinstance(self.boxed_tensor_spec(), (list, tuple))
        return self.from_boxed_tensor(tensor_list[0] if boxed_alone else tensor_list)

    @property
    def _flat_tensor_specs(self) -> list[Any]:
        return list(_as_list(self.boxed_tensor_spec()))


def box(spec: tf.TypeSpec, value: Any, minimum_rank: int = 0) -> list[Any]:
    """Returns the boxed tensors of a value of any spec that stacks.

    Args:
        spec: Ours, or TensorFlow's (dense, ragged, sparse, its own extension types).
        value: A value of it.
        minimum_rank: As in `StackableTypeSpec.to_boxed_tensor`; at most 1 for TensorFlow's
            composite types, whose encoders know no more.

    >>> from extensor.core.box import box
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> [tensor.shape for tensor in box(tf.type_spec_from_value(ragged), ragged, 1)]
    [TensorShape([2])]
    """
    if isinstance(spec, tf.TensorSpec):
        return [value]
    if isinstance(spec, StackableTypeSpec):
        return list(_as_list(spec.to_boxed_tensor(value, minimum_rank)))
    if isinstance(spec, BatchableTypeSpec):
        if minimum_rank == 0:
            return spec._to_tensor_list(value)
        if minimum_rank == 1:
            return spec._to_batched_tensor_list(value)
    raise ProtocolError(
        path=type(spec).__name__,
        expected=f"a type whose values can be unstacked {minimum_rank} time(s)",
        received=f"{type(spec).__name__}, which cannot",
        mend="Derive the spec from xt.StackableTypeSpec.",
    )


def unbox(spec: tf.TypeSpec, boxes: list[Any]) -> Any:
    """Returns the value of `spec` that boxed tensors stand for, the reverse of `box`."""
    return boxes[0] if isinstance(spec, tf.TensorSpec) else spec._from_compatible_tensor_list(boxes)


def boxed_specs(spec: tf.TypeSpec, minimum_rank: int = 0) -> list[Any]:
    """Returns the TensorSpecs of what `box` returns."""
    if isinstance(spec, tf.TensorSpec):
        return [spec]
    if isinstance(spec, StackableTypeSpec):
        return list(_as_list(spec.boxed_tensor_spec(minimum_rank)))
    return spec._flat_tensor_specs


def _as_list(boxed: Any) -> Any:
    return boxed if isinstance(boxed, (list, tuple)) else [boxed]
