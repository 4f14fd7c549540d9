"""auto_composite_tensor: the arguments of a class's constructor make it an extension type."""

# What a composite tensor answers to TensorFlow has no public names.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import abc
import functools
import operator
import re
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

import tensorflow as tf

from extensor import _tf
from extensor._auto.constructor import Constructor
from extensor._auto.spec import AutoSpec, not_decorated
from extensor._tf import (
    CompositeTensor,
    admit,
    refuse,
    registered_spec,
    replace_registration,
)
from extensor._tf._tf_nest import composite_first
from extensor._tf._tf_probability import is_deferred
from extensor.errors import ArgumentError, ProtocolError, RegistrationError

_Class = TypeVar("_Class", bound=type)


def is_deferred_assertion_context() -> bool:
    """Returns whether a value is being made again out of its tensors, and need not be checked.

    A constructor that checks its arguments by TensorFlow ops asks this first: the value was
    checked when it was first made, and what rebuilds it must not add ops to a graph.

    >>> @xt.auto_composite_tensor
    ... class Rate(xt.AutoCompositeTensor):
    ...     def __init__(self, value, validate_args=False):
    ...         self._value, self._validate_args = value, validate_args
    ...         if validate_args and not xt.is_deferred_assertion_context():
    ...             tf.debugging.assert_positive(value)
    """
    return is_deferred()


class AutoCompositeTensor(CompositeTensor):
    """The base class to choose for classes that `auto_composite_tensor` decorates.

    It makes the class a `CompositeTensor` before it is decorated, so that the decorator returns
    the class itself and not a new one.

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

    def __tf_type_spec__(self) -> Any:
        """Returns the spec, which the decorator derives.

        Raises:
            ArgumentError: If the class is not decorated (also a TypeError and a ValueError).
        """
        return _spec_of(self)

    @property
    def _type_spec(self) -> Any:
        return self.__tf_type_spec__()

    def _convert_variables_to_tensors(self) -> Any:
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
    """Makes a class an extension type by the arguments of its constructor.

    Each argument of `__init__` must be found again in a value: as the attribute `x`, as `_x`, or
    as `parameters["x"]`. Arguments hold tensors, variables, extension values, static data, or
    lists, tuples, dicts and `functools.partial`s of these. A value is made again, out of other
    tensors, by calling the constructor.

    A class that is a composite tensor already, by the base class `AutoCompositeTensor` or
    otherwise, is changed and returned; its spec, if it had one, is replaced. Any other class is
    left alone, and what is returned is a new class, `<Name>_AutoCompositeTensor`, that is derived
    from it and from `AutoCompositeTensor`.

    What the arguments named in a value's `_composite_tensor_shape_parameters` are is static where
    it is known. A method `_convert_variables_to_tensors` of the class's own is kept.

    Args:
        cls: The class.
        omit_kwargs: Names of arguments that are left to their defaults, or one name. Names that
            the constructor does not take are passed over.
        non_identifying_kwargs: Names of arguments whose static data does not count when specs
            are compared.
        module_name: The module under whose name the spec is registered for SavedModels, as
            `<module_name>.<Name>_ACTTypeSpec`. Default: the class's own.

    Returns:
        The class, or the new one. Its spec is its attribute `Spec`, unless it had an attribute
        of this name.

    Raises:
        ArgumentError: If the constructor takes `*args` or `**kwargs` and the class has no
            attribute `parameters`, or an omitted argument has no default (also a TypeError and a
            ValueError).
        RegistrationError: If another class has the name (also a ValueError).
        ProtocolError: If `cls` is not a class (also a TypeError).

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
        raise ProtocolError(
            path="auto_composite_tensor",
            expected="a class",
            received=f"a {type(cls).__name__}",
            mend="Write @xt.auto_composite_tensor above a class; give options by name.",
        )
    omitted = _names("omit_kwargs", omit_kwargs)
    ignored = _names("non_identifying_kwargs", non_identifying_kwargs)
    name = f"{cls.__module__ if module_name is None else module_name}.{cls.__name__}_ACTTypeSpec"
    options = omitted, ignored, name
    generated = _generated_classes.get(cls, {}).get(options)
    if generated is not None:
        return generated
    refuse(cls, attrs=False)
    Constructor(cls, omitted)  # raises where there is no telling what the arguments are
    _check_name(cls, name)
    made: Any = cls if issubclass(cls, CompositeTensor) else _generated(cls)
    refuse(made)
    spec_class = _spec_class(made, cls, omitted, ignored)
    _equip(made, spec_class)
    replace_registration(spec_class, name)
    if made is not cls:
        _generated_classes.setdefault(cls, {})[options] = made
    return made


def _names(option: str, names: Iterable[str] | str) -> tuple[str, ...]:
    found = (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise ArgumentError(
            path=f"auto_composite_tensor, {option}",
            expected="a sequence of names of arguments",
            received="something else in it",
            mend="Give the names as text.",
        )
    return found


_NAME = re.compile(r"(\w+\.)+\w+")

# Making the class.

_generated_classes: weakref.WeakKeyDictionary[type, dict[Any, type]] = weakref.WeakKeyDictionary()


def _generated(cls: type) -> type:
    """Returns a new class that is a `cls` and a composite tensor."""
    meta: Any = type(cls)
    if meta is not type and not issubclass(meta, abc.ABCMeta):
        meta = type(meta.__name__, (meta, abc.ABCMeta), {})
    members = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        # Where the class is found, if the decorator stands above it: pickle looks there.
        "__qualname__": cls.__qualname__,
    }
    return types.new_class(
        f"{cls.__name__}_AutoCompositeTensor",
        (cls, AutoCompositeTensor),
        {} if meta is type else {"metaclass": meta},
        lambda namespace: namespace.update(members),
    )


def _spec_class(made: type, cls: type, omitted: Any, ignored: Any) -> type[AutoSpec]:
    """Returns the spec class of a class that is decorated, or was generated for one."""
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
    """Gives a class all that makes TensorFlow ask its spec."""
    made._extensor_spec = spec_class
    made.__tf_type_spec__ = _spec_of
    _tf.equip(made, _spec_of, _with_variables_read)
    own = getattr(made, "Spec", spec_class)
    if isinstance(own, type) and issubclass(own, AutoSpec):  # none, or one from before
        made.Spec = spec_class
    admit(made)
    abc.update_abstractmethods(made)
    composite_first(made)


def _check_name(cls: type, name: str) -> None:
    """Raises unless the spec of a class may be registered under a name."""
    if not _NAME.fullmatch(name):
        raise RegistrationError(
            path=f"{cls.__module__}.{cls.__qualname__}",
            expected="a module_name of words of letters, digits and _, joined by dots",
            received=repr(name.rpartition(".")[0]),
            mend='Give one: auto_composite_tensor(module_name="my_project").',
        )
    holder: Any = registered_spec(name)
    if holder is None:
        return
    described = getattr(holder, "value_type", None)
    if isinstance(described, property) and described.fget is not None:
        # The specs of TensorFlow Probability ask nothing of themselves to tell it.
        try:
            described = described.fget(None)
        except Exception:
            described = None
    if isinstance(described, type) and any(_redefines(cls, base) for base in described.__mro__):
        return
    raise RegistrationError(
        path=f"{cls.__module__}.{cls.__qualname__}",
        expected=f"a name for its spec that no other class has, {name!r}",
        received=f"the name of the spec of {described!r}",
        mend="Register one of the two elsewhere: auto_composite_tensor(module_name=...).",
    )


def _redefines(cls: type, old: type) -> bool:
    """Returns whether a class is what an old one became when its definition ran again.

    Of classes inside functions the last one counts.
    """
    return cls.__module__ == old.__module__ and (
        cls.__qualname__ == old.__qualname__
        or (cls.__name__ == old.__name__ and "<locals>" in old.__qualname__)
    )


# What a value has.


def _spec_of(self: Any) -> Any:
    """Returns the spec of a value of a decorated class, or what a subclass has in its place."""
    for base in type(self).__mro__:
        members = vars(base)
        if "_extensor_spec" in members:
            return members["_extensor_spec"].of(self)
        if base is AutoCompositeTensor:
            break
        if "_type_spec" in members:  # a subclass of a decorated class, with a spec of its own
            return members["_type_spec"].__get__(self)
    raise not_decorated(type(self), "AutoCompositeTensor")


def _with_variables_read(self: Any) -> Any:
    """Returns the value with tensors in place of the variables in it."""
    spec = _spec_of(self)
    components = spec.to_components(self)
    read = tf.nest.map_structure(_read, components)
    same = map(operator.is_, tf.nest.flatten(read), tf.nest.flatten(components))
    return self if all(same) else spec.from_components(read)


def _read(component: Any) -> Any:
    if isinstance(component, tf.Variable):
        return tf.convert_to_tensor(component)
    if isinstance(component, CompositeTensor):
        return _tf.variables_read(component)
    return component
