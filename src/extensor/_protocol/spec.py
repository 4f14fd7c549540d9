"""TypeSpec: the static part of an extension type."""

from __future__ import annotations

import abc
import functools
import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

import tensorflow as tf

from extensor._lookup import full_name
from extensor._protocol import tree
from extensor._protocol.casting import (
    cast_components,
    castable_type,
    difference_of_records,
    not_castable,
)
from extensor._protocol.component_error import does_not_stack, mismatch
from extensor._protocol.registry import redefines
from extensor._protocol.symbolic import is_symbolic
from extensor._tf import BatchableTypeSpec, CompositeTensor, is_refused, nan_equal_to_itself, refuse
from extensor._typing import Nest, Value
from extensor.errors import AbstractMethodError, DTypeError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

_T = TypeVar("_T")

_PROPERTIES = ("component_specs", "value_type")
"""Public names that must be properties; a plain method under such a name is a mistake."""


class TypeSpec(tf.TypeSpec):
    """Describes the type of an extension value: its static data.

    A subclass has four jobs:

    1. **Store** static data, in its constructor.
    2. **Serialize** itself: `serialize` (and `deserialize`).
    3. **Decompose** values into tensors and rebuild them: `to_components`, `from_components`,
       `component_specs`, `value_type`.
    4. **Compare** types: `__eq__`, `__hash__`, `is_compatible_with`,
       `most_specific_compatible_type`. All of them have defaults that follow from `serialize`.

    It overrides these public names only. See `ExtensionType` for a complete example.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Price:
    ...     amount: tf.Tensor
    >>> isinstance(xt.spec_of(Price([1.5])), xt.TypeSpec)
    True
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _PROPERTIES:
            if inspect.isfunction(vars(cls).get(name)):
                fix = f"Put @property above `def {name}(self)`."
                raise ProtocolError(f"{full_name(cls)}.{name}", "a property", "a method", fix)
        value_type = vars(cls).get("value_type")
        if isinstance(value_type, type) and is_refused(value_type):
            refuse(value_type)
        # `cast` may come from the `class Spec` in a declared class, a base that is no TypeSpec.
        author = next(base for base in cls.__mro__ if "cast" in vars(base))
        own = vars(author)["cast"]
        is_new = author is cls or not issubclass(author, tf.TypeSpec)
        if is_new and inspect.isfunction(own) and len(inspect.signature(own).parameters) == 2:
            cls.cast = _with_context(own)

    # Job 2: serialize the spec.

    @abc.abstractmethod
    def serialize(self) -> tuple[Any, ...]:
        """Returns the state of this spec as a nested tuple.

        The tuple may contain bool, int, float, str, None, `tf.DType`, `tf.TensorShape`,
        `tf.TensorSpec`, TypeSpec, `np.ndarray`, and nested tuples, namedtuples, dicts and
        OrderedDicts of these.

        By default, equality, hashing, pickling, repr, compatibility and SavedModel storage use
        it. If it is not the tuple of the constructor's arguments, override `deserialize` too.
        """
        raise not_overridden(self, "serialize")

    @classmethod
    def deserialize(cls, serialization: Nest) -> Self:
        """Returns the spec that `serialize` described.

        Args:
            serialization: The result of `serialize`. A namedtuple from a SavedModel is of another
                class with the same name and fields.
        """
        return cls(*serialization)

    # Job 3: decompose values and rebuild them.

    @property
    @abc.abstractmethod
    def value_type(self) -> type:
        """The Python type of the values that this spec describes."""
        raise not_overridden(self, "value_type")

    @property
    @abc.abstractmethod
    def component_specs(self) -> Nest:
        """A nest of specs, one for each component that `to_components` returns."""
        raise not_overridden(self, "component_specs")

    @abc.abstractmethod
    def to_components(self, value: Value) -> Nest:
        """Returns the components of a value.

        Args:
            value: A value that this spec describes.

        Returns:
            A nest (as `tf.nest` has it) of tensors and extension values that matches
            `component_specs`. Must not call any TensorFlow op.
        """
        raise not_overridden(self, "to_components")

    @abc.abstractmethod
    def from_components(self, components: Nest) -> Value:
        """Returns a value with the given components.

        Args:
            components: A nest that matches `component_specs`.

        Returns:
            A value that this spec describes. Must not call any TensorFlow op.
        """
        raise not_overridden(self, "from_components")

    # Job 4: compare types.

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Returns whether a value has this type, or a spec describes some of the same values.

        By default, two specs are compatible if they have the same class and compatible
        serializations: shapes, dtypes and specs are compared by their own `is_compatible_with`,
        all else by equality. Equal specs are always compatible.

        Args:
            spec_or_value: A TypeSpec, or a value that has one.
        """
        if not isinstance(spec_or_value, tf.TypeSpec):
            try:
                spec_or_value = tf.type_spec_from_value(spec_or_value)
            except (TypeError, ValueError):
                return False
        if type(self) is not type(spec_or_value):
            return False
        other = cast("Self", spec_or_value)
        return self == other or self._agrees(other)

    def _agrees(self, other: Self) -> bool:
        """Returns whether another spec of this class describes some of the same values."""
        return tree.are_compatible(self.serialize(), other.serialize())

    def most_specific_compatible_type(self, other: tf.TypeSpec) -> TypeSpec | None:
        """Returns the most specific spec that describes the values of both specs, or None.

        By default, two specs of one class whose serializations differ in shapes only are merged
        by merging the shapes.

        Args:
            other: Another TypeSpec.

        Returns:
            A TypeSpec; None if no type has the values of both.
        """
        if type(self) is not type(other):
            return None
        if self == other:
            return self
        return self._merged(cast("Self", other))

    def _merged(self, other: Self) -> Self | None:
        """Returns the most specific spec for the values of this spec and another of its class."""
        merged = tree.merge(self.serialize(), other.serialize())
        return None if merged is None else self.deserialize(merged)

    # Casting: values of other types as values of this one.

    def cast(self, value: Value, casting_context: object | None = None, **request: Any) -> Value:
        """Returns a value that is equivalent to `value` and has this type.

        A value of this type is returned unchanged. By default, two other kinds of values are cast,
        component by component: values of the same class and static data whose components can be
        cast (a dense tensor to a ragged one, for example), and nests with one item for each
        component, such as a tensor, number, list or NumPy array. For a declared type, that is a
        dict of its fields; static fields must be equal to those of this spec.

        To cast values of other types too, override this method as `cast(self, value)` and call
        `super().cast(value)` for all other values.

        Args:
            value: A value of a type that can be cast to this one.
            casting_context: The context that TensorFlow passes when it casts arguments.
            **request: `extra` and `times` for the records in it, as in the `cast` of their spec.

        Raises:
            DTypeError: If the value cannot be cast, or its static data differs (also a
                TypeError).
            StructureError: If a shape does not fit (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> @xt.extension_type
        ... class Interval:
        ...     low: tf.Tensor
        ...     high: tf.Tensor
        ...     unit: str
        >>> spec = Interval.Spec(tf.TensorSpec([]), tf.TensorSpec([]), "mm")
        >>> spec.cast({"low": 1, "high": 2, "unit": "mm"}).high
        <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
        >>> spec.cast(Interval(1.0, 2.0, "inch"))
        Traceback (most recent call last):
        extensor.errors.DTypeError: Interval.Spec: expected a value that can be cast to
        Interval.Spec(..., unit='mm'), got Interval.Spec(..., unit='inch'). ...
        """
        if isinstance(value, tf.TypeSpec):
            # TensorFlow passes the spec of an argument that has no value yet.
            if value == self or value.is_subtype_of(self):
                return self
            raise not_castable(self, value)
        type_spec = getattr(value, "__tf_type_spec__", None)
        if type_spec is None:
            if isinstance(value, (tf.Tensor, CompositeTensor)):
                raise not_castable(self, value)
            components = value
        else:
            spec = type_spec()
            if type(spec) is not type(self) and redefines(type(spec), type(self)):
                # The two classes come from one notebook cell that ran twice.
                spec = self.deserialize(spec.serialize())
            if self._accepts(spec):
                return value
            own = spec
            if type(self) is not type(spec) and hasattr(spec, "_extensor_resolved"):
                # A spec from a SavedModel whose class was imported only later.
                spec = spec._extensor_resolved()
            components = own.to_components(value) if type(self) is type(spec) else None
            if components is not None and request:
                path = type(self).__qualname__
                components = cast_components(self.component_specs, components, path, **request)
                return self.cast(own.from_components(components))
            if components is None or self.castable_type(spec) is None:
                raise not_castable(self, value)
        path = type(self).__qualname__
        try:
            parts = cast_components(self.component_specs, components, path, **request)
        except DTypeError:
            wrong = None
            if type_spec is not None:
                wrong = difference_of_records(self, type_spec(), path)
            if wrong is None:
                raise
            raise wrong from None
        return self.from_components(parts)

    def _accepts(self, spec: tf.TypeSpec) -> bool:
        """Returns whether values of a spec are values of this one."""
        # A cache, because a tf.function with a signature casts each argument three times a call,
        # and most arguments have few different shapes.
        accepted: set[tf.TypeSpec] = self.__dict__.setdefault("_accepted", set())
        if spec == self or spec in accepted:
            return True
        try:
            is_subtype = spec.is_subtype_of(self)
        except NotImplementedError:  # as in `supertype`
            is_subtype = False
        if is_subtype:
            if len(accepted) >= _MAX_ACCEPTED:
                accepted.clear()
            accepted.add(spec)
        return is_subtype

    def castable_type(self, spec: tf.TypeSpec) -> tf.TypeSpec | None:
        """Returns the spec of a type that values of this spec and another can be cast to, or None.

        TensorFlow APIs that join values of two types, such as the branches of `tf.cond` and
        concatenated datasets, cast both to that type. By default it is the result of
        `most_specific_compatible_type`. If that is None and the serializations of two specs of
        one class differ in shapes and specs only, these are merged with `castable_type`.

        A subclass overrides this together with `cast`. For two different types, one of the two
        overrides is enough.

        Args:
            spec: A spec of any type.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> @xt.extension_type
        ... class Steps:
        ...     minutes: tf.Tensor | tf.RaggedTensor
        >>> dense = Steps.Spec(tf.TensorSpec([2, 3]))
        >>> dense.castable_type(Steps.Spec(tf.RaggedTensorSpec([None, None])))
        Steps.Spec(minutes=RaggedTensorSpec(TensorShape([None, None]), tf.float32, 1, tf.int64))
        """
        if type(self) is not type(spec):
            return None
        try:
            found = self.most_specific_compatible_type(spec)
        except NotImplementedError:  # as in `supertype`
            found = None
        if found is None:
            a, b = self.serialize(), cast("TypeSpec", spec).serialize()
            # If the trees merge without a cast, the type's own rule has refused that merge.
            merged = tree.merge(a, b, castable_type) if tree.merge(a, b) is None else None
            found = None if merged is None else self.deserialize(merged)
        return found

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return from_serialization, (type(self), self.serialize())

    # Methods that TensorFlow calls. A subclass does not override anything below.

    def _serialize(self) -> tuple[Any, ...]:
        return self.serialize()

    @classmethod
    def _deserialize(cls, serialization: Nest) -> Self:
        return cls.deserialize(serialization)

    @property
    def _component_specs(self) -> Nest:
        return self.component_specs

    def _to_components(self, value: Value) -> Nest:
        return self.to_components(value)

    def _from_components(self, components: Nest) -> Value:
        return self.from_components(components)

    def _with_tensor_ranks_only(self) -> tf.TypeSpec:
        relax = super()._with_tensor_ranks_only
        return self._once("_ranks_only", lambda: self._with_value_sizes(relax()))

    def _with_value_sizes(self, relaxed: tf.TypeSpec) -> tf.TypeSpec:
        """Returns this spec without its sizes, with those that are part of single values."""
        return relaxed

    def _without_tensor_names(self) -> tf.TypeSpec:
        return self._once("_unnamed_tensors", super()._without_tensor_names)

    def _once(self, name: str, compute: Callable[[], _T]) -> _T:
        """Returns what follows from this spec, computed in the first call.

        tf.nest asks for the same parts of a spec each time that it compares two values.

        Args:
            name: The name under which the spec keeps it.
            compute: Computes it.
        """
        try:
            return self.__dict__[name]
        except KeyError:
            return self.__dict__.setdefault(name, compute())

    # StackableTypeSpec overrides what stacks and boxes values.

    def _batch(self, batch_size: int | None) -> tf.TypeSpec:
        raise self._not_stackable()

    def _unbatch(self) -> tf.TypeSpec:
        raise self._not_stackable()

    def _to_batched_tensor_list(self, value: Value) -> list[tf.Tensor]:
        if isinstance(self, BatchableTypeSpec):  # a later base in the MRO implements it
            return super()._to_batched_tensor_list(value)
        raise self._not_stackable()

    def _not_stackable(self) -> Exception:
        """Returns the error to raise when values are stacked."""
        return does_not_stack(self)

    @property
    def _flat_tensor_specs(self) -> list[tf.TensorSpec]:
        self._expect_boxes()
        return super()._flat_tensor_specs

    def _to_tensor_list(self, value: Value) -> list[tf.Tensor]:
        self._expect_boxes()
        return super()._to_tensor_list(value)

    def _from_compatible_tensor_list(self, tensor_list: list[tf.Tensor]) -> Value:
        self._expect_boxes()
        return super()._from_compatible_tensor_list(tensor_list)

    def _expect_boxes(self) -> None:
        """Raises an error if values cannot be elements of datasets."""

    def to_tensors(self, value: Value) -> list[tf.Tensor]:
        """Returns the flat list of tensors of a value. Called by TensorFlow."""
        try:
            return super().to_tensors(value)
        except (TypeError, ValueError, AttributeError) as error:
            components = self.to_components(value)
            if any(map(is_symbolic, tf.nest.flatten(components))):
                at = type(self).__qualname__
                fix = "Call the function in the call of an xt.keras.Layer or xt.keras.Lambda."
                raise DTypeError(at, "tensors", "placeholders of Keras", fix) from error
            wrong = mismatch(self, components)
            if wrong is None:
                raise
            raise wrong from error

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TypeSpec | None:
        """Returns the most specific spec for the values of all specs. Called by TensorFlow."""
        result = self
        for other in others:
            if result == other:
                continue
            merged = result.most_specific_compatible_type(other)
            if merged is None:
                return None
            result = merged
        return result

    def is_subtype_of(self, other: object) -> bool:
        """Returns whether each value of this type is a value of `other`. Called by TensorFlow."""
        if type(self) is not type(other):
            return False
        return self == other or self.most_specific_compatible_type(other) == other


nan_equal_to_itself(TypeSpec)


def from_serialization(cls: type[TypeSpec], serialization: Nest) -> TypeSpec:
    """Returns the spec for a class and a serialization. Used by pickle."""
    return cls.deserialize(serialization)


def not_overridden(spec: tf.TypeSpec, name: str) -> AbstractMethodError:
    """Returns the error for a call of a method that the subclass must define."""
    at = f"{type(spec).__qualname__}.{name}"
    expected = "an override of this abstract member"
    fix = f"Define {name}, and do not call super().{name} in it."
    return AbstractMethodError(at, expected, "a call of the base class", fix)


def _with_context(own: Callable[[Any, Value], Value]) -> Callable[..., Value]:
    """Returns an author's `cast(self, value)` with the third parameter that TensorFlow passes."""

    @functools.wraps(own)
    def cast(self: TypeSpec, value: Value, casting_context: object = None, **request: Any) -> Value:
        if isinstance(value, tf.TypeSpec):
            return TypeSpec.cast(self, value, casting_context)
        return own(self, value)

    return cast


_MAX_ACCEPTED = 64
"""The maximum size of the cache in `TypeSpec._accepts`."""
