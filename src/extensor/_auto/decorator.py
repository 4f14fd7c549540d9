"""`auto_composite_tensor`: derives an extension type from the constructor of a class."""

# The methods of composite tensors that TensorFlow calls are private.

from __future__ import annotations

import abc
import functools
import operator
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

import tensorflow as tf

from extensor import _tf
from extensor._auto.constructor import Constructor
from extensor._auto.spec import AutoSpec, not_decorated
from extensor._lookup import full_name
from extensor._tf import CompositeTensor, admit, refuse, registered_spec, replace_registration
from extensor._tf._tf_nest import composite_first
from extensor._tf._tf_probability import is_deferred
from extensor._typing import Value
from extensor.errors import ArgumentError, ProtocolError, RegistrationError

if TYPE_CHECKING:
    from typing_extensions import Self

_Class = TypeVar("_Class", bound=type)


def is_deferred_assertion_context() -> bool:
    """Returns whether a value is being rebuilt from its tensors, so that checks must not run.

    Call it in a constructor that checks its arguments with TensorFlow ops. The arguments were
    checked when the value was first constructed, and rebuilding it must not add ops to a graph.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.auto_composite_tensor
    ... class Rate(xt.AutoCompositeTensor):
    ...     def __init__(self, value, validate_args=False):
    ...         self._value, self._validate_args = value, validate_args
    ...         if validate_args and not xt.is_deferred_assertion_context():
    ...             tf.debugging.assert_positive(value)
    """
    return is_deferred()


class AutoCompositeTensor(CompositeTensor):
    """Recommended base class for classes that `auto_composite_tensor` decorates.

    With this base, the class is a `CompositeTensor` already, so that the decorator returns the
    class itself and not a new class.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.auto_composite_tensor
    ... class Scale(xt.AutoCompositeTensor):
    ...     def __init__(self, factor):
    ...         self._factor = tf.convert_to_tensor(factor)
    ...
    ...     def __call__(self, x):
    ...         return x * self._factor
    >>> tf.function(lambda scale, x: scale(x))(Scale(2.0), 21.0).numpy().item()
    42.0
    """

    def __tf_type_spec__(self) -> AutoSpec:
        """Returns the spec that the decorator derived.

        Raises:
            ArgumentError: If the class is not decorated (also a TypeError and a ValueError).
        """
        return _spec_of(self)

    @property
    def _type_spec(self) -> AutoSpec:
        return self.__tf_type_spec__()

    def _convert_variables_to_tensors(self) -> Self:
        return _with_variables_read(self)


@overload
def auto_composite_tensor(
    cls: _Class,
    omit_kwargs: Iterable[str] | str = (),
    non_identifying_kwargs: Iterable[str] | str = (),
    module_name: str | None = None,
) -> _Class: ...
@overload
def auto_composite_tensor(
    cls: None = None,
    omit_kwargs: Iterable[str] | str = (),
    non_identifying_kwargs: Iterable[str] | str = (),
    module_name: str | None = None,
) -> Callable[[_Class], _Class]: ...
def auto_composite_tensor(
    cls: Any = None,
    omit_kwargs: Iterable[str] | str = (),
    non_identifying_kwargs: Iterable[str] | str = (),
    module_name: str | None = None,
) -> Any:
    """Makes a class an extension type, whose spec is derived from the constructor arguments.

    A value must store each argument `x` of `__init__` as the attribute `x`, as `_x`, or as
    `parameters["x"]`. Arguments are tensors, variables, extension values, static data, or lists,
    tuples, dicts and `functools.partial`s of these. To rebuild a value from its tensors, the
    constructor is called.

    A class that is a composite tensor already, such as a subclass of `AutoCompositeTensor`, is
    changed and returned; an existing spec is replaced. For any other class, the decorator returns
    a new class, `<Name>_AutoCompositeTensor`, with that class and `AutoCompositeTensor` as bases.
    The module gets the new class under this name too, where pickle finds it.

    Arguments named in a value's `_composite_tensor_shape_parameters` are static data if their
    values are known. If the class defines `_convert_variables_to_tensors`, that method is kept.

    Args:
        cls: The class.
        omit_kwargs: Names of arguments that keep their defaults, or one name. Names that the
            constructor does not take are ignored.
        non_identifying_kwargs: Names of arguments whose static data is ignored when specs are
            compared.
        module_name: The prefix of the name under which the spec is registered for SavedModels,
            `<module_name>.<Name>_ACTTypeSpec`. Default: the module of the class.

    Returns:
        The class, or the new class. Its spec class is the attribute `Spec`, unless the class
        defines another attribute of this name.

    Raises:
        ArgumentError: If the constructor takes `*args` or `**kwargs` and the class has no
            attribute `parameters`, or an omitted argument has no default (also a TypeError and a
            ValueError).
        RegistrationError: If another class has the name (also a ValueError).
        ProtocolError: If `cls` is not a class (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.auto_composite_tensor(omit_kwargs=("name",))
    ... class Adder(xt.AutoCompositeTensor):
    ...     def __init__(self, x, y, name=None):
    ...         with tf.name_scope(name or "Adder") as name:
    ...             self._x = tf.convert_to_tensor(x)
    ...             self._y = tf.convert_to_tensor(y)
    ...             self._name = name
    ...
    ...     def xpy(self):
    ...         return self._x + self._y
    >>> (result,) = tf.while_loop(
    ...     cond=lambda _: True,
    ...     body=lambda adder: (Adder(adder.xpy(), 1.0),),
    ...     loop_vars=(Adder(1.0, 1.0),),
    ...     maximum_iterations=3,
    ... )
    >>> result.xpy().numpy().item()
    5.0
    """
    if cls is None:
        return functools.partial(
            auto_composite_tensor,
            omit_kwargs=omit_kwargs,
            non_identifying_kwargs=non_identifying_kwargs,
            module_name=module_name,
        )
    if not isinstance(cls, type):
        fix = "Write @xt.auto_composite_tensor above a class; give options by name."
        raise ProtocolError("auto_composite_tensor", "a class", f"a {type(cls).__name__}", fix)
    omitted = _names("omit_kwargs", omit_kwargs)
    ignored = _names("non_identifying_kwargs", non_identifying_kwargs)
    name = f"{cls.__module__ if module_name is None else module_name}.{cls.__name__}_ACTTypeSpec"
    options = omitted, ignored, name
    generated = _generated_classes.get(cls, {}).get(options)
    if generated is not None:
        return generated
    refuse(cls, attrs=False)
    Constructor(cls, omitted)  # raises if the arguments are not known
    _check_name(cls, name)
    made: Any = cls if issubclass(cls, CompositeTensor) else _generate(cls)
    refuse(made)
    spec_class = _spec_class(made, cls, omitted, ignored)
    _equip(made, spec_class)
    replace_registration(spec_class, name)
    if made is not cls:
        _generated_classes.setdefault(cls, {})[options] = made
    return made


def _names(option: str, names: Iterable[str] | str) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names)
    wrong = [type(name).__name__ for name in found if not isinstance(name, str)]
    if wrong:
        at = f"auto_composite_tensor, {option}"
        expected, fix = "a sequence of argument names", "Pass the names as strings."
        raise ArgumentError(at, expected, f"a sequence with a {wrong[0]}", fix)
    return found


_NAME = re.compile(r"(\w+\.)+\w+")

# Making the class.

_generated_classes: weakref.WeakKeyDictionary[type, dict[Any, type]] = weakref.WeakKeyDictionary()


def _generate(cls: type) -> type:
    """Returns a new class that is a `cls` and a composite tensor."""
    meta: Any = type(cls)
    if meta is not type and not issubclass(meta, abc.ABCMeta):
        meta = type(meta.__name__, (meta, abc.ABCMeta), {})
    name = f"{cls.__name__}_AutoCompositeTensor"
    outer, _, _ = cls.__qualname__.rpartition(".")
    is_in_class = outer and not outer.endswith("<locals>")
    members: dict[str, Any] = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        # pickle finds a class inside another class by the name that the decorator binds there.
        "__qualname__": cls.__qualname__ if is_in_class else f"{outer}.{name}".lstrip("."),
    }
    bases: tuple[Any, ...] = (cls, AutoCompositeTensor)
    parameters = getattr(cls, "__parameters__", ())
    if parameters:  # typing.Generic reads its type variables there
        generic: Any = cls
        bases = members["__orig_bases__"] = (generic[parameters], AutoCompositeTensor)
    made = types.new_class(
        name,
        types.resolve_bases(bases),
        {} if meta is type else {"metaclass": meta},
        lambda namespace: namespace.update(members),
    )
    module = sys.modules.get(cls.__module__)
    if module is not None and not outer and getattr(module, cls.__name__, None) is not cls:
        # The class is being defined. pickle finds the new class by its own name. Modules that
        # have the original class already, such as those of other projects, are not changed.
        setattr(module, name, made)
    return made


def _spec_class(
    made: type, cls: type, omitted: tuple[str, ...], ignored: tuple[str, ...]
) -> type[AutoSpec]:
    """Returns the spec class for a decorated class.

    Args:
        made: The class of the values: `cls`, or the class that was generated from it.
        cls: The decorated class.
        omitted: Names of arguments that keep their defaults.
        ignored: Names of arguments whose static data is ignored when specs are compared.
    """
    members = {
        "__doc__": f"The spec of {cls.__qualname__}.",
        "__module__": cls.__module__,
        "__qualname__": f"{cls.__qualname__}.Spec",
        "value_type": made,
        "omitted": omitted,
        "ignored": ignored,
    }
    return type(AutoSpec)("Spec", (AutoSpec,), members)


def _equip(made: Any, spec_class: type[AutoSpec]) -> None:
    """Adds to a class the methods that TensorFlow calls to get its spec."""
    made._extensor_spec = spec_class
    made.__tf_type_spec__ = _spec_of
    _tf.equip(made, _spec_of, _with_variables_read)
    own = getattr(made, "Spec", spec_class)
    if isinstance(own, type) and issubclass(own, AutoSpec):  # absent, or from another decorator
        made.Spec = spec_class
    admit(made)
    abc.update_abstractmethods(made)
    composite_first(made)


def _check_name(cls: type, name: str) -> None:
    """Raises unless the spec of a class may be registered under a name."""
    if not _NAME.fullmatch(name):
        at = full_name(cls)
        expected = "a module_name of words of letters, digits and _, joined by dots"
        fix = 'Give one: auto_composite_tensor(module_name="my_project").'
        raise RegistrationError(at, expected, repr(name.rpartition(".")[0]), fix)
    holder: Any = registered_spec(name)
    if holder is None:
        return
    described = getattr(holder, "value_type", None)
    if isinstance(described, property) and described.fget is not None:
        # This property of TensorFlow Probability's specs does not use `self`.
        try:
            described = described.fget(None)
        except Exception:
            described = None
    if isinstance(described, type) and any(_redefines(cls, base) for base in described.__mro__):
        return
    at = full_name(cls)
    expected = f"a spec name that no other class has, {name!r}"
    fix = "Register one of the two under another name: auto_composite_tensor(module_name=...)."
    raise RegistrationError(at, expected, f"the name of the spec of {described!r}", fix)


def _redefines(cls: type, old: type) -> bool:
    """Returns whether a class comes from the same definition as an old one, which ran again.

    A class defined inside a function replaces an earlier one of the same name.
    """
    return cls.__module__ == old.__module__ and (
        cls.__qualname__ == old.__qualname__
        or (cls.__name__ == old.__name__ and "<locals>" in old.__qualname__)
    )


# Methods of values.


def _spec_of(self: Value) -> Any:
    """Returns the spec of a value of a decorated class, or the `_type_spec` of a subclass."""
    for base in type(self).__mro__:
        members = vars(base)
        if "_extensor_spec" in members:
            return members["_extensor_spec"].of(self)
        if base is AutoCompositeTensor:
            break
        if "_type_spec" in members:  # a subclass of a decorated class that overrides the spec
            return members["_type_spec"].__get__(self)
    raise not_decorated(type(self), "AutoCompositeTensor")


def _with_variables_read(self: Value) -> Value:
    """Returns the value with its variables converted to tensors."""
    spec = _spec_of(self)
    components = spec.to_components(self)
    read = tf.nest.map_structure(_read, components)
    same = map(operator.is_, tf.nest.flatten(read), tf.nest.flatten(components))
    return self if all(same) else spec.from_components(read)


def _read(component: Value) -> Value:
    if isinstance(component, tf.Variable):
        return tf.convert_to_tensor(component)
    if isinstance(component, CompositeTensor):
        return _tf.variables_read(component)
    return component
