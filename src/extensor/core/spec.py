"""TypeSpec: the static half of an extension type, with its four jobs."""

from __future__ import annotations

import abc
import inspect
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import tensorflow as tf

from extensor.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

_PROPERTIES = ("component_specs", "value_type")
"""Public names that are read as properties; a plain method in their place is a slip."""


class TypeSpec(tf.TypeSpec):
    """Describes the type of an extension value: all that is static about it.

    A subclass has four jobs:

    1. **Store** static data, in its constructor.
    2. **Serialize** itself: `serialize` (and `deserialize`).
    3. **Decompose** values into tensors and rebuild them: `to_components`, `from_components`,
       `component_specs`, `value_type`.
    4. **Compare** types: `__eq__`, `__hash__`, `is_compatible_with`,
       `most_specific_compatible_type`. All of them have defaults that follow from `serialize`.

    It overrides these public names and no other. See `ExtensionType` for a whole example.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _PROPERTIES:
            if inspect.isfunction(vars(cls).get(name)):
                raise ProtocolError(
                    path=f"{cls.__module__}.{cls.__qualname__}.{name}",
                    expected="a property",
                    received="a method",
                    mend=f"Put @property above `def {name}(self)`.",
                )

    # Job 2: serialize the spec.

    @abc.abstractmethod
    def serialize(self) -> tuple[Any, ...]:
        """Returns the state of this spec as a nested tuple.

        It may hold bool, int, float, str, None, `tf.DType`, `tf.TensorShape`, `tf.TensorSpec`,
        TypeSpec, `np.ndarray`, and nested tuples, namedtuples, dicts and OrderedDicts of these.

        The defaults of equality, hashing, pickling, repr, compatibility and SavedModel storage
        follow from it. If it is not the tuple of the constructor's arguments, override
        `deserialize` too.
        """
        raise NotImplementedError

    @classmethod
    def deserialize(cls, serialization: Any) -> Self:
        """Returns the spec that `serialize` described.

        Args:
            serialization: What `serialize` returned. A namedtuple that went through a SavedModel
                comes back as another namedtuple class of the same name and fields.
        """
        return cls(*serialization)

    # Job 3: decompose values and rebuild them.

    @property
    @abc.abstractmethod
    def value_type(self) -> type:
        """The Python type of the values that this spec describes."""
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def component_specs(self) -> Any:
        """A nest of specs, one for each component that `to_components` returns."""
        raise NotImplementedError

    @abc.abstractmethod
    def to_components(self, value: Any) -> Any:
        """Returns the tensors that a value is made of.

        Args:
            value: A value that this spec describes.

        Returns:
            A nest (as `tf.nest` has it) of tensors and extension values that matches
            `component_specs`. Must not call any TensorFlow op.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def from_components(self, components: Any) -> Any:
        """Returns the value that is made of the given components.

        Args:
            components: A nest that matches `component_specs`.

        Returns:
            A value that this spec describes. Must not call any TensorFlow op.
        """
        raise NotImplementedError

    # Job 4: compare types.

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Returns whether a value belongs to this type, or a spec shares values with it.

        By default two specs are compatible if they are of the same class and their
        serializations are: shapes, dtypes and specs by their own rule, all else by equality.
        Equal specs always are.

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
        other = cast("TypeSpec", spec_or_value)
        return self == other or _compatible(self.serialize(), other.serialize())

    def most_specific_compatible_type(self, other: tf.TypeSpec) -> TypeSpec | None:
        """Returns the most specific spec whose type holds the values of both, or None.

        By default two specs of one class whose serializations differ in shapes only are merged
        by merging the shapes.

        Args:
            other: Another TypeSpec.

        Returns:
            A TypeSpec, or None where no type holds the values of both.
        """
        if type(self) is not type(other):
            return None
        if self == other:
            return self
        merged = _merged(self.serialize(), cast("TypeSpec", other).serialize())
        return None if merged is _NOTHING else self.deserialize(merged)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _deserialized, (type(self), self.serialize())

    # What TensorFlow calls. A subclass has no reason to override anything below.

    def _serialize(self) -> Any:
        return self.serialize()

    @classmethod
    def _deserialize(cls, serialization: Any) -> Self:
        return cls.deserialize(serialization)

    @property
    def _component_specs(self) -> Any:
        return self.component_specs

    def _to_components(self, value: Any) -> Any:
        return self.to_components(value)

    def _from_components(self, components: Any) -> Any:
        return self.from_components(components)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TypeSpec | None:
        """Returns the most specific spec that holds the values of all; TensorFlow asks this."""
        result = self
        for other in others:
            if result == other:
                continue
            merged = result.most_specific_compatible_type(other)
            if merged is None:
                return None
            result = merged
        return result

    def is_subtype_of(self, other: Any) -> bool:
        """Returns whether every value of this type is one of `other`'s; TensorFlow asks this."""
        if type(self) is not type(other):
            return False
        return self == other or self.most_specific_compatible_type(other) == other


def _deserialized(cls: type[TypeSpec], serialization: Any) -> TypeSpec:
    return cls.deserialize(serialization)


_NOTHING = object()
"""Stands for "no merge": None is a value that a serialization may hold."""


def _same_kind(a: Any, b: Any) -> bool:
    """Whether two parts of serializations are of one class, as far as a SavedModel keeps it.

    A namedtuple comes back as another class of the same name and fields, an OrderedDict as a dict.
    """
    if hasattr(a, "_fields") and hasattr(b, "_fields"):
        return type(a).__name__ == type(b).__name__ and a._fields == b._fields
    if isinstance(a, dict):
        return isinstance(b, dict)
    return type(a) is type(b)


def _compatible(a: Any, b: Any) -> bool:
    if isinstance(a, tf.TypeSpec):
        # Anything else TensorFlow's specs would take for a value, and raise where it is none.
        return isinstance(b, tf.TypeSpec) and a.is_compatible_with(b)
    if not _same_kind(a, b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_compatible, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_compatible(a[k], b[k]) for k in a)
    if isinstance(a, (tf.TensorShape, tf.DType)):
        return a.is_compatible_with(b)
    return _equal(a, b)


def _merged(a: Any, b: Any) -> Any:
    if isinstance(a, tf.TypeSpec):
        merged = a.most_specific_common_supertype([b])
        return _NOTHING if merged is None else merged
    if not _same_kind(a, b):
        return _NOTHING
    if isinstance(a, tf.TensorShape):
        return a.most_specific_compatible_shape(b)
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return _NOTHING
        items = [_merged(x, y) for x, y in zip(a, b, strict=True)]
        if any(item is _NOTHING for item in items):
            return _NOTHING
        return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return _NOTHING
        pairs = [(k, _merged(a[k], b[k])) for k in a]
        return _NOTHING if any(v is _NOTHING for _, v in pairs) else type(a)(pairs)
    return a if _equal(a, b) else _NOTHING


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    return bool(a == b)
