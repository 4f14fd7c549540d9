"""extension_type: a class of annotated fields becomes an extension type."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from extensor.core.annotation import Converter, converter
from extensor.core.derive import DerivedSpec
from extensor.core.registry import register_type_spec
from extensor.errors import ImmutableError, ProtocolError

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
elif TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**kwargs: Any) -> Any:
        """Says to type checkers that what follows works like dataclass; does nothing."""
        return lambda decorator: decorator


_Class = TypeVar("_Class", bound=type)
_Value = TypeVar("_Value")


@overload
def extension_type(cls: _Class, /) -> _Class: ...
@overload
def extension_type(*, name: str | None = None) -> Callable[[_Class], _Class]: ...
@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def extension_type(cls: Any = None, /, *, name: str | None = None) -> Any:
    """Makes a class of annotated fields an extension type; there is nothing else to write.

    The class gets what `dataclasses.dataclass(frozen=True)` gives: `__init__`, repr, defaults,
    `field()`, keyword-only fields, `__post_init__`, inheritance, pattern matching; and a spec,
    derived from its fields, with all that follows: tf.function, control flow, tf.data with
    batching, SavedModel, pickling.

    Fields hold tensors (`tf.Tensor`, `tf.RaggedTensor`, `tf.Variable`, `xt.StructuredTensor`, any
    extension type), static data (numbers, strings, enums, `tf.DType`, `tf.TensorShape`, arrays,
    ...), or tuples and mappings of both. Values are converted to what the annotation asks for
    when an instance is made: lists become tensors or tuples, dicts immutable mappings, arrays
    frozen copies. `Annotated[tf.Tensor, tf.TensorSpec([None, 3], tf.float32)]` checks dtype and
    shape too. `__post_init__` runs after that.

    Args:
        cls: The class.
        name: The name under which its spec is registered for SavedModels. Default: the module
            and name of the class; a class inside a function is registered only if named.

    Returns:
        The class. Its spec is the class's attribute `Spec`.

    Raises:
        DTypeError: If an annotation is none that can be read (also a TypeError).

    >>> @xt.extension_type
    ... class MaskedTensor:
    ...     values: tf.Tensor
    ...     mask: tf.Tensor
    >>> masked = MaskedTensor([3.0, 1.0], mask=[True, False])
    >>> masked.values
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 1.], dtype=float32)>
    >>> doubled = tf.function(lambda x: xt.replace(x, values=x.values * 2))(masked)
    >>> doubled.values.numpy()
    array([6., 2.], dtype=float32)
    >>> masked.values = 1
    Traceback (most recent call last):
    extensor.errors.ImmutableError: MaskedTensor.values: expected no assignment, ...
    """
    # Annotations may be text (`from __future__ import annotations`) that names what is local to
    # the caller, such as another type that is declared in the same function.
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    names = {} if caller is None else {**caller.f_globals, **caller.f_locals}
    if cls is None:
        return lambda decorated: _declared(decorated, name, names)
    return _declared(cls, name, names)


def replace(value: _Value, /, **changes: Any) -> _Value:
    """Returns a copy of a declared value with some fields changed.

    Args:
        value: A value of a class declared with `extension_type`.
        **changes: New values by field name; they are converted and checked as at construction.

    Raises:
        ProtocolError: If the value's class was not declared (also a TypeError).

    >>> @xt.extension_type
    ... class Interval:
    ...     low: tf.Tensor
    ...     high: tf.Tensor
    >>> xt.replace(Interval(0.0, 1.0), high=2.0).high.numpy().item()
    2.0
    """
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise ProtocolError(
            path="replace",
            expected="a value of a class declared with xt.extension_type",
            received=type(value).__name__,
            mend="Build a new value of the class itself.",
        )
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def _declared(cls: Any, name: str | None, names: dict[str, Any]) -> Any:
    if not isinstance(cls, type):
        raise ProtocolError(
            path="extension_type",
            expected="a class",
            received=repr(cls),
            mend="Write @xt.extension_type above a class.",
        )
    own_check = vars(cls).get("__post_init__") or getattr(cls, "_extensor_check", None)
    cls._extensor_check = own_check  # type: ignore[attr-defined]
    cls.__post_init__ = _post_init  # type: ignore[attr-defined]
    made = dataclasses.dataclass(frozen=True, eq=False)(cls)
    made.__setattr__ = _refuse_assignment
    made.__delattr__ = _refuse_deletion
    made.__tf_type_spec__ = _type_spec
    made._extensor_pending = names
    made._extensor_own = {}
    _resolve(made, missing_names_are_errors=False)
    made.Spec = _spec_class(made)
    if name is not None or "<locals>" not in made.__qualname__:
        register_type_spec(made.Spec, name or f"{made.__module__}.{made.__qualname__}")
    return made


def _resolve(cls: Any, missing_names_are_errors: bool) -> None:
    """Reads the annotations of a class's own fields; its bases have read theirs.

    Args:
        cls: A declared class.
        missing_names_are_errors: Whether a name that is not there (yet) raises NameError.
    """
    names = cls._extensor_pending
    if names is None:
        return
    module = vars(sys.modules.get(cls.__module__, typing))
    own = types.SimpleNamespace(__annotations__=vars(cls).get("__annotations__", {}))
    try:
        hints = typing.get_type_hints(own, module, {**names, cls.__name__: cls}, True)
    except NameError:
        if missing_names_are_errors:
            raise
        return
    fields = {field.name for field in dataclasses.fields(cls)}
    cls._extensor_own = {n: converter(hint) for n, hint in hints.items() if n in fields}
    cls._extensor_pending = None  # lets go of the caller's variables


def _converters(cls: Any) -> list[tuple[str, Converter]]:
    """Returns what converts each field, in the fields' order."""
    by_name: dict[str, Converter] = {}
    for base in reversed(cls.__mro__):
        if "_extensor_own" in vars(base):
            _resolve(base, missing_names_are_errors=True)
            by_name.update(base._extensor_own)
    return [(f.name, by_name[f.name]) for f in dataclasses.fields(cls)]


def _post_init(self: Any, *args: Any) -> None:
    cls = type(self)
    converters = vars(cls).get("_extensor_converters")
    if converters is None:
        converters = cls._extensor_converters = _converters(cls)
    fields = self.__dict__
    for name, convert in converters:
        fields[name] = convert(fields[name], f"{cls.__qualname__}.{name}")
    check = cls._extensor_check
    if check is not None:
        check(self, *args)


def _type_spec(self: Any) -> DerivedSpec:
    fields = self.__dict__
    spec = fields.get("_extensor_spec")
    if spec is None:
        spec = fields["_extensor_spec"] = type(self).Spec.of(self)
    return spec


def _refuse_assignment(self: Any, name: str, value: object) -> None:
    raise _immutable(self, name, "assignment")


def _refuse_deletion(self: Any, name: str) -> None:
    raise _immutable(self, name, "deletion")


def _immutable(self: Any, name: str, what: str) -> ImmutableError:
    return ImmutableError(
        path=f"{type(self).__qualname__}.{name}",
        expected=f"no {what}, because extension values are immutable",
        received=f"one of {name!r}",
        mend=f"Make a changed copy: xt.replace(value, {name}=...).",
    )


class _DeclaredSpec(DerivedSpec):
    """The spec of a declared class; each has a subclass of its own."""

    def rebuilt(self, fields: dict[str, Any]) -> Any:
        """Returns the value with the given fields, without running `__init__`."""
        cls = self.value_type
        value = object.__new__(cls)
        value.__dict__.update(fields)
        return value


def _spec_class(cls: Any) -> type[DerivedSpec]:
    return type(
        "Spec",
        (_DeclaredSpec,),
        {
            "__doc__": f"The spec of {cls.__qualname__}.",
            "__module__": cls.__module__,
            "__qualname__": f"{cls.__qualname__}.Spec",
            "field_names": tuple(field.name for field in dataclasses.fields(cls)),
            "value_type": cls,
        },
    )
