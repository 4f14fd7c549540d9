"""`extension_type`: makes a class of annotated fields an extension type."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

import tensorflow as tf

from extensor._declare.derived_spec import DerivedSpec
from extensor._declare.fields import read_annotations, readings
from extensor._declare.static_data import Part
from extensor._declare.version import VersionedSpec, newest
from extensor._lookup import defines, full_name
from extensor._protocol.registry import register_type_spec
from extensor._protocol.spec import TypeSpec
from extensor._tf import refuse
from extensor._typing import Nest, TensorLike, Value
from extensor.errors import ExtensorError, FieldError, ImmutableError, ProtocolError

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
elif TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**kwargs: Any) -> Any:
        """Does nothing; type checkers treat the decorated function like `dataclass`."""
        return lambda decorator: decorator


_Class = TypeVar("_Class", bound=type)
_Value = TypeVar("_Value")


@overload
def extension_type(cls: _Class, /) -> _Class: ...
@overload
def extension_type(*, name: str | None = None) -> Callable[[_Class], _Class]: ...
@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def extension_type(cls: Any = None, /, *, name: str | None = None) -> Any:
    """Makes a class of annotated fields an extension type.

    The class becomes a frozen dataclass, with `__init__`, repr, defaults, `field()`, keyword-only
    fields, `__post_init__`, inheritance and pattern matching. It also gets a spec, derived from its
    fields, so that values work with tf.function, control flow, tf.data and its batching,
    SavedModel and pickle.

    Fields hold tensors (`tf.Tensor`, `tf.RaggedTensor`, `tf.Variable`, `xt.StructuredTensor`, any
    extension type), static data (numbers, strings, enums, `tf.DType`, `tf.TensorShape`, arrays,
    ...), or tuples and mappings of both. The constructor converts each argument to the annotated
    type: lists become tensors or tuples, dicts immutable mappings, arrays frozen copies.
    `Annotated[tf.Tensor, tf.TensorSpec([None, 3], tf.float32)]` checks dtype and shape too.
    `__post_init__` runs after the conversion.

    Args:
        cls: The class.
        name: The name under which its spec is registered for SavedModels. Default: the module
            and name of the class. A class inside a function is registered only if named.

    Returns:
        The class. Its spec class is the attribute `Spec`.

    Raises:
        DTypeError: If an annotation is not supported (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
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
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if cls is None:
        return lambda decorated: _declare(decorated, name, caller)
    return _declare(cls, name, caller)


def replace(value: _Value, /, **changes: Any) -> _Value:
    """Returns a copy of a declared value with some fields changed.

    Args:
        value: A value of a class declared with `extension_type`.
        **changes: New values by field name, converted and checked as in the constructor. Other
            fields are not converted again. `__post_init__` runs on the copy. `InitVar`s without
            a default must be given too.

    Raises:
        FieldError: If a name is not a field of the constructor (also a KeyError).
        ProtocolError: If the value's class was not declared (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Interval:
    ...     low: tf.Tensor
    ...     high: tf.Tensor
    >>> xt.replace(Interval(0.0, 1.0), high=2.0).high.numpy().item()
    2.0
    """
    value = newest(value)
    cls: Any = type(value)
    if "Spec" not in vars(cls) or not hasattr(cls, "_extensor_own"):
        expected = "a value of a class declared with xt.extension_type"
        fix = "Call the constructor of the class instead."
        raise ProtocolError("replace", expected, f"a {cls.__qualname__}", fix)
    taken = {field.name for field in dataclasses.fields(cls) if field.init}
    init_only = _init_only(cls)
    for name in changes:
        if name not in taken | init_only.keys():
            at = f"{cls.__qualname__}.{name}"
            fix = "Check the spelling; fields with init=False cannot be replaced."
            raise FieldError(at, f"one of the fields {', '.join(sorted(taken))}", repr(name), fix)
    arguments = {name: changes.pop(name, default) for name, default in init_only.items()}
    for name, argument in arguments.items():
        if argument is dataclasses.MISSING:
            at = f"{cls.__qualname__}.{name}"
            fix = f"Pass it: xt.replace(value, {name}=...)."
            raise FieldError(at, "a value for this InitVar", "no argument", fix)
    copy = object.__new__(cls)
    # Read by name, because a field may be made when it is first read.
    copy.__dict__.update({n: getattr(value, n) for n in taken - changes.keys()}, **changes)
    _complete(copy, tuple(arguments.values()), taken - changes.keys())
    return copy


# Making the class. Attributes set on it: `_extensor_check`, the author's `__post_init__`; for
# `_extensor_own`, `_extensor_caller` and `_extensor_readings` see `fields`.

_RESERVED = ("Spec", "_type_spec", "_consumers", "_shape_invariant_to_type_spec")
"""Attributes of a class that TensorFlow or this decorator uses."""

_STAGE = "_extensor_stage"
"""The attribute of a value under construction. It is `init` while the author's `__init__` runs, and
`check` while the author's `__post_init__` runs."""


def _declare(cls: Any, name: str | None, caller: types.FrameType | None) -> Any:
    if not isinstance(cls, type) or cls.__dictoffset__ == 0:
        expected, received = "a class whose instances have a __dict__", f"a {type(cls).__name__}"
        if isinstance(cls, type):
            received = f"{cls.__qualname__}, which has __slots__"
        fix = "Write @xt.extension_type above a class without __slots__."
        raise ProtocolError("extension_type", expected, received, fix)
    refuse(cls)
    for method in ("__setattr__", "__delattr__"):
        if method in vars(cls):
            expected = f"a class without {method}, because values are immutable"
            received = f"a class that defines {method}, as a frozen dataclass does"
            fix = "Remove it, or the decorator @dataclass: @xt.extension_type makes a dataclass."
            raise ProtocolError(cls.__qualname__, expected, received, fix)
    made: Any = cls
    inherited = _prepare_fields(made)
    if "__init__" in vars(made):
        made.__init__ = _own_init(made.__init__)
    if "__post_init__" in vars(made) or not hasattr(made, "_extensor_check"):
        made._extensor_check = getattr(made, "__post_init__", None)
        made.__post_init__ = _post_init(made._extensor_check)
    dataclasses.dataclass(frozen=True, eq=False)(made)
    for field in inherited:  # the annotation of a base class, read with that class
        del made.__annotations__[field]
    made.__setattr__ = _set
    made.__delattr__ = _delete
    made.__replace__ = replace
    made.__tf_type_spec__ = _type_spec
    if not defines(made, "__getitem__"):
        made.__getitem__ = row_at
        if not defines(made, "__iter__"):
            made.__iter__ = _rows
    if made.__reduce__ is object.__reduce__:
        made.__reduce__ = _reduce
    # With `from __future__ import annotations`, hints are strings. They may name local variables
    # of the caller, such as a type that is declared later in the same function.
    made._extensor_caller = caller
    made._extensor_own = {}
    read_annotations(made, names_may_be_missing=True)
    made.Spec = _spec_class(made)
    if name is not None or "<locals>" not in made.__qualname__:
        register_type_spec(made.Spec, name or full_name(made))
    return made


def _prepare_fields(cls: Any) -> list[str]:
    """Changes fields that `dataclass` would refuse: mutable defaults, fields after a default.

    Returns:
        The names of inherited fields that were copied into the class. The caller deletes their
        annotations after `dataclass` ran.
    """
    fields: dict[str, Any] = {}  # in the order that `dataclass` uses
    for base in cls.__mro__[:0:-1]:
        fields.update(getattr(base, "__dataclass_fields__", {}))
    own: dict[str, Any] = vars(cls).get("__annotations__", {})
    for name, annotation in own.items():
        if name in _RESERVED or name.startswith(("_extensor_", "__")):
            at = f"{cls.__qualname__}.{name}"
            fix = "Rename the field."
            raise ProtocolError(at, "a field name that is not reserved", repr(name), fix)
        text = annotation if isinstance(annotation, str) else repr(annotation)
        if "ClassVar" in text or "KW_ONLY" in text:
            continue
        field = vars(cls).get(name, dataclasses.MISSING)
        if not isinstance(field, dataclasses.Field):
            # Values may share a mutable default, because each converts or copies it.
            is_mutable = type(field).__hash__ is None and "InitVar" not in text
            field = (
                dataclasses.field(default_factory=functools.partial(_identity, field))
                if is_mutable
                else dataclasses.field(default=field)
            )
            setattr(cls, name, field)
        fields[name] = field
    positional = {n: f for n, f in fields.items() if f.init and f.kw_only is not True}
    after_default = keyword_only = False
    inherited: list[str] = []
    for name, field in positional.items():
        keyword_only = keyword_only or (after_default and not _has_default(field))
        after_default = after_default or _has_default(field)
        if not keyword_only:
            continue
        if name not in own:
            field = copy.copy(field)
            setattr(cls, name, field)
            cls.__annotations__[name] = field.type
            inherited.append(name)
        field.kw_only = True
    return inherited


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return not field.default is field.default_factory is dataclasses.MISSING


def _identity(value: object) -> object:
    return value


# Making a value.


def _own_init(init: Callable[..., None]) -> Callable[..., None]:
    """Returns an `__init__` that calls the author's `__init__` and then converts the fields."""

    @functools.wraps(init)
    def __init__(self: Value, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        fields = self.__dict__
        if _STAGE in fields:  # the `__init__` of a subclass calls this one
            init(self, *args, **kwargs)
            return
        fields[_STAGE] = "init"
        init(self, *args, **kwargs)
        del fields[_STAGE]
        _complete(self, ())

    return __init__


def _post_init(check: Callable[..., None] | None) -> Callable[..., None]:
    """Returns a `__post_init__` that converts the fields and then calls the author's."""

    def __post_init__(self: Value, *init_only: Any) -> None:  # noqa: N807
        stage = self.__dict__.get(_STAGE)
        if stage is None:
            _complete(self, init_only)
        elif stage == "check" and check is not None:  # the one of a subclass calls this one
            check(self, *init_only)

    return __post_init__


def _complete(value: Value, init_only: tuple[Any, ...], unchanged: Collection[str] = ()) -> None:
    """Converts the fields of a value under construction, and runs the author's `__post_init__`.

    Args:
        value: A value whose fields are not converted yet.
        init_only: The arguments for `__post_init__`.
        unchanged: The names of fields that are already converted.
    """
    cls, fields = type(value), value.__dict__
    known = vars(cls).get("_extensor_readings") or readings(cls)
    for name, (path, convert, _, _) in known.items():
        if name not in unchanged:
            if name not in fields and not _set_default(cls, fields, name):
                continue
            fields[name] = convert(fields[name], path)
    check = cls._extensor_check
    if check is not None:
        before = dict(fields)
        fields[_STAGE] = "check"
        check(value, *init_only)
        del fields[_STAGE]
        for name, (path, convert, _, _) in known.items():
            if name in fields and fields[name] is not before.get(name):
                fields[name] = convert(fields[name], path)
    fields.pop("_extensor_spec", None)  # of the fields before, if the author asked for it
    if not known.keys() <= fields.keys():
        missing = next(name for name in known if name not in fields)
        fix = f"Set self.{missing} in __init__ or __post_init__, or give it a default."
        raise FieldError(known[missing].path, "a value", "an unset field", fix)


def _set_default(cls: Any, fields: dict[str, Any], name: str) -> bool:
    field = cls.__dataclass_fields__[name]
    if field.default_factory is not dataclasses.MISSING:
        fields[name] = field.default_factory()
    elif field.default is not dataclasses.MISSING:
        fields[name] = field.default
    return name in fields


def _init_only(cls: Any) -> dict[str, Any]:
    """Returns the names and defaults of a class's InitVars."""
    return {
        name: field.default
        for name, field in cls.__dataclass_fields__.items()
        if field._field_type.name == "_FIELD_INITVAR"
    }


# Methods of values.


def _type_spec(self: Value) -> DerivedSpec:
    fields = self.__dict__
    spec = fields.get("_extensor_spec")
    if spec is None:
        spec = fields["_extensor_spec"] = type(self).Spec.of(self)
    return spec


def row_at(self: Value, key: TensorLike | slice) -> Value:
    """Returns a row, or for a slice some rows: the `__getitem__` of a class that defines none."""
    return tf.__operators__.getitem(self, key)


def _rows(self: Value) -> Iterator[Value]:
    """Returns an iterator of the rows, which Python would otherwise look for without end."""
    return iter(tf.unstack(self))


_SET_BY_KERAS = ("_keras_mask", "_keras_logits")
"""The attributes that tf_keras sets on the inputs of a model, and Keras on the results of softmax
and sigmoid. They are allowed, as in `tf.experimental.ExtensionType`, and no part of the value."""


def _set(self: Value, name: str, value: object) -> None:
    if name not in _SET_BY_KERAS and (
        _STAGE not in self.__dict__ or name not in type(self).__dataclass_fields__
    ):
        raise _immutable(self, name, "assignment")
    self.__dict__[name] = value


def _delete(self: Value, name: str) -> None:
    if name not in _SET_BY_KERAS or name not in self.__dict__:
        raise _immutable(self, name, "deletion")
    del self.__dict__[name]


def _immutable(self: Value, name: str, what: str) -> ImmutableError:
    is_field = name in type(self).__dataclass_fields__
    expected = f"no {what}, because extension values are immutable"
    fix = "Declare it as a field, or compute it in a property."
    if is_field:
        fix = f"Make a changed copy: xt.replace(value, {name}=...)."
    return ImmutableError(f"{type(self).__qualname__}.{name}", expected, f"{what} of {name!r}", fix)


def _reduce(self: Value) -> tuple[Callable[..., Value], tuple[Any, ...]]:
    spec = self.__tf_type_spec__()
    return _unpickle, (spec, spec.to_components(self))


def _unpickle(spec: DerivedSpec, components: dict[str, Nest]) -> Value:
    return spec.from_components(components)


# The spec.


class _DeclaredSpec(VersionedSpec):
    """The spec of a declared class; each has a subclass of its own."""

    @classmethod
    def read_part(cls, name: str, part: Part) -> Part:
        """Returns a part, frozen and checked against the field's type hint."""
        field = readings(cls.value_type)[name]
        return field.convert_part(part, f"{cls.__qualname__}.{name}")

    def from_fields(self, fields: dict[str, Nest]) -> Value:
        """Returns the value with the given fields, without running `__init__`."""
        value = object.__new__(self.value_type)
        value.__dict__.update(fields)
        return value


def _spec_class(cls: Any) -> type[_DeclaredSpec]:
    """Returns the spec class of a declared class; the author's `class Spec`, if any, is a base."""
    own = vars(cls).get("Spec", _NO_SPEC)
    members: dict[str, Any] = {
        "__doc__": f"The spec of {cls.__qualname__}.",
        "__module__": cls.__module__,
        "__qualname__": f"{cls.__qualname__}.Spec",
        "field_names": tuple(field.name for field in dataclasses.fields(cls)),
        "value_type": cls,
    }
    if own is _NO_SPEC:
        return type(_DeclaredSpec)("Spec", (_DeclaredSpec,), members)
    is_type_spec = isinstance(own, type) and issubclass(own, tf.TypeSpec)
    if not isinstance(own, type) or (is_type_spec and not issubclass(own, TypeSpec)):
        raise _wrong_spec(cls, own)
    members["__doc__"] = own.__doc__ or members["__doc__"]
    if "__init__" in vars(own):
        members["__init__"] = _own_spec_init(own.__init__)
    try:
        return type(_DeclaredSpec)("Spec", (own, _DeclaredSpec), members)
    except ExtensorError:
        raise
    except TypeError as error:  # a layout or metaclass conflict of the bases
        raise _wrong_spec(cls, own) from error


_NO_SPEC = object()


def _wrong_spec(cls: type, own: object) -> ProtocolError:
    at = f"{cls.__qualname__}.Spec"
    fix = "Write `class Spec:` without a base, or give the attribute another name."
    return ProtocolError(at, "a class with members to add to the spec", repr(own), fix)


def _own_spec_init(init: Callable[..., None]) -> Callable[..., None]:
    """Returns an `__init__` that calls the author's, and takes assigned attributes as parts."""

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        init(self, *args, **kwargs)
        if "_parts" not in self.__dict__:
            names = [name for name in self.field_names if name in self.__dict__]
            DerivedSpec.__init__(self, **{name: self.__dict__.pop(name) for name in names})

    return __init__
