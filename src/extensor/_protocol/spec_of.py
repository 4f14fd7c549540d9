"""`spec_of`: the specs of TensorFlow's own values, with the public methods of `xt.TypeSpec`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import tensorflow as tf

from extensor import _tf
from extensor._protocol.box import alone_or_list, as_list, box, boxed_specs, unbox
from extensor._protocol.casting import cast_value, castable_type
from extensor._protocol.lossless import lossless
from extensor._protocol.spec import TypeSpec
from extensor._protocol.stand_in import StandIn, plain_spec
from extensor._protocol.symbolic import symbolic_spec
from extensor._typing import Nest, Value
from extensor.errors import DTypeError, ExtensorError

if TYPE_CHECKING:
    from extensor._struct.spec import StructuredTensorSpec
    from extensor._struct.tensor import StructuredTensor


@overload
def spec_of(value: StructuredTensor | StructuredTensorSpec) -> StructuredTensorSpec: ...
@overload
def spec_of(value: object) -> tf.TypeSpec: ...
def spec_of(value: object) -> tf.TypeSpec:
    """Returns the spec of any value that TensorFlow accepts, with the methods of `xt.TypeSpec`.

    The spec of an extension value is the result of its `__tf_type_spec__`. For any other value, it
    is an instance of TensorFlow's own spec class (`tf.RaggedTensorSpec`, for example), equal to
    the result of `tf.type_spec_from_value` and usable in its place. It also has the public
    methods `value_type`, `component_specs`, `to_components`, `from_components`, `serialize`,
    `deserialize`, `is_compatible_with`, `most_specific_compatible_type`, `cast` and
    `castable_type`; and, if its values stack, those of `xt.StackableTypeSpec`.

    Args:
        value: A Tensor, Variable, RaggedTensor, SparseTensor, IndexedSlices, Dataset, iterator,
            Optional, extension value, or `tf.experimental.ExtensionType`; a value for
            `tf.convert_to_tensor` (a number, string, list, NumPy array); a spec of any of these;
            or a placeholder of Keras, such as `model.input` of a model that was loaded.

    Raises:
        DTypeError: If the value is none of these, such as a dict (also a TypeError).
        ProtocolError: If its `__tf_type_spec__` returns no TypeSpec (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> sparse = tf.sparse.from_dense([[1, 0], [0, 2]])
    >>> spec = xt.spec_of(sparse)
    >>> spec.serialize()
    (TensorShape([2, 2]), tf.int32)
    >>> indices, values, dense_shape = spec.to_components(sparse)
    >>> spec.from_components((indices, values * 2, dense_shape)).values.numpy()
    array([2, 4], dtype=int32)
    >>> spec.most_specific_compatible_type(xt.spec_of(tf.constant(1))) is None
    True
    """
    spec = value
    if not isinstance(value, tf.TypeSpec):
        try:
            spec = tf.type_spec_from_value(value)
        except ExtensorError:
            raise
        except (TypeError, ValueError, tf.errors.InvalidArgumentError) as error:
            items = cast("list[object]", value) if isinstance(value, list) else []
            # Keras 3.10 gives the input of a model that was loaded as a list of one.
            spec = symbolic_spec(items[0] if len(items) == 1 else value)
            if spec is None:
                expected = "a value with a TypeSpec, or a value that converts to a tensor"
                fix = (
                    "For a nest, use tf.nest.map_structure(xt.spec_of, nest). For a class of your "
                    "own, define __tf_type_spec__."
                )
                raise DTypeError("spec_of", expected, type(value).__qualname__, fix) from error
    return _public(cast("tf.TypeSpec", spec))


def _public(spec: tf.TypeSpec) -> Any:
    """Returns an equal spec that has the public methods."""
    if isinstance(spec, (TypeSpec, StandIn)):
        return spec
    return _tf.deserialize(_stand_in(type(spec)), _tf.serialize(spec))


class _PublicNames(StandIn):
    """Mixin with the public methods, for a spec class of TensorFlow that has private ones."""

    # Jobs 2 and 3.

    def serialize(self: tf.TypeSpec) -> tuple[Any, ...]:
        """As `xt.TypeSpec.serialize`."""
        return _tf.serialize(self)

    @classmethod
    def deserialize(cls: type[tf.TypeSpec], serialization: Nest) -> tf.TypeSpec:
        """As `xt.TypeSpec.deserialize`."""
        return _tf.deserialize(cls, serialization)

    @property
    def component_specs(self: tf.TypeSpec) -> Nest:
        """As `xt.TypeSpec.component_specs`."""
        return _as_tuple(_tf.component_specs(self))

    def to_components(self: tf.TypeSpec, value: Value) -> Nest:
        """As `xt.TypeSpec.to_components`; converts a value to a tensor if needed."""
        return _as_tuple(_tf.to_components(self, _convert(self, value)))

    def from_components(self: tf.TypeSpec, components: Nest) -> Value:
        """As `xt.TypeSpec.from_components`."""
        is_list = isinstance(_tf.component_specs(self), list)
        return _tf.from_components(self, list(components) if is_list else components)

    # Job 4. TensorFlow compares the classes of specs, so these methods compare the plain specs.

    def is_compatible_with(self: Any, spec_or_value: object) -> bool:
        """As `xt.TypeSpec.is_compatible_with`."""
        plain = self.plain
        try:
            if plain.is_compatible_with(plain_spec(spec_or_value)):
                return True
            # TensorFlow's method refuses values that convert to tensors, such as lists.
            return not isinstance(spec_or_value, tf.TypeSpec) and plain.is_compatible_with(
                plain_spec(spec_of(spec_or_value))
            )
        except (TypeError, ValueError):  # the value has no spec
            return False

    def most_specific_compatible_type(self: Any, other: tf.TypeSpec) -> tf.TypeSpec | None:
        """As `xt.TypeSpec.most_specific_compatible_type`."""
        merged = self.plain.most_specific_common_supertype([plain_spec(other)])
        return None if merged is None else _public(merged)

    def most_specific_common_supertype(
        self: Any, others: Sequence[tf.TypeSpec]
    ) -> tf.TypeSpec | None:
        """As TensorFlow's own."""
        return self.plain.most_specific_common_supertype(list(map(plain_spec, others)))

    def is_subtype_of(self: Any, other: object) -> bool:
        """As TensorFlow's own."""
        return self.plain.is_subtype_of(plain_spec(other))

    def __eq__(self: Any, other: object) -> bool:
        return isinstance(other, tf.TypeSpec) and bool(self.plain == plain_spec(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self: Any) -> int:
        return hash(self.plain)

    def __repr__(self: Any) -> str:
        return repr(self.plain)

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return _public, (self.plain,)

    # Casting.

    def cast(self: Any, value: Value, casting_context: object = None) -> Value:
        """As `xt.TypeSpec.cast`."""
        if isinstance(value, tf.TypeSpec):  # TensorFlow passes specs too
            return self.plain.cast(plain_spec(value), casting_context)
        return cast_value(self.plain, value)

    def castable_type(self: Any, spec: tf.TypeSpec) -> tf.TypeSpec | None:
        """As `xt.TypeSpec.castable_type`."""
        found = castable_type(self.plain, plain_spec(spec))
        return None if found is None else _public(found)


class _StackableNames(_PublicNames):
    """As `_PublicNames`, for a stackable spec class. One boxed tensor is not put into a list."""

    def to_boxed_tensor(
        self: Any, value: Value, minimum_rank: int = 0
    ) -> tf.Tensor | list[tf.Tensor]:
        """As `xt.StackableTypeSpec.to_boxed_tensor`."""
        return alone_or_list(box(self.plain, _convert(self, value), minimum_rank))

    def from_boxed_tensor(self: Any, boxed_tensor: tf.Tensor | Sequence[tf.Tensor]) -> Value:
        """As `xt.StackableTypeSpec.from_boxed_tensor`."""
        return unbox(self.plain, list(as_list(boxed_tensor)))

    def boxed_tensor_spec(self: Any, minimum_rank: int = 0) -> tf.TensorSpec | list[tf.TensorSpec]:
        """As `xt.StackableTypeSpec.boxed_tensor_spec`."""
        return alone_or_list(boxed_specs(self.plain, minimum_rank))

    def stacked(self: Any, num: int | None) -> tf.TypeSpec:
        """As `xt.StackableTypeSpec.stacked`."""
        return _public(_tf.stacked(self.plain, num))

    def unstacked(self: Any) -> tf.TypeSpec:
        """As `xt.StackableTypeSpec.unstacked`."""
        return _public(_tf.unstacked(self.plain))


@functools.cache
def _stand_in(plain_class: Any) -> type[tf.TypeSpec]:
    """Returns the subclass of a TensorFlow spec class that has the public methods."""
    stacks = issubclass(plain_class, _tf.BatchableTypeSpec)
    return type(plain_class)(
        plain_class.__name__,
        (_StackableNames if stacks else _PublicNames, plain_class),
        {
            "__doc__": plain_class.__doc__,
            "__module__": __name__,
            "__qualname__": plain_class.__qualname__,
            "plain_class": plain_class,
        },
    )


def _convert(spec: tf.TypeSpec, value: Value) -> Value:
    if isinstance(spec, tf.TensorSpec) and not isinstance(value, tf.Tensor):
        return tf.convert_to_tensor(lossless(value, spec.dtype, "TensorSpec"), spec.dtype)
    return value


def _as_tuple(nest: Nest) -> Nest:
    return tuple(nest) if isinstance(nest, list) else nest
