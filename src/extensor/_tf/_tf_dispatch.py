"""The functions that let a type say what they do with its values.

TensorFlow's own dispatcher, in C++, is not asked: it stands behind so many wrappers that reaching
it costs more than all that extensor does, most of TensorFlow's generated functions raise and catch
an error before they reach it, it cannot take varargs, and two of its targets that match one call
are an error. So a call is looked at where it comes in. A function keeps its identity, whoever has
imported it: only its code is replaced, by code that looks at the types of the arguments and then
calls what was there before.

| name | why |
| --- | --- |
| `dispatch` | Its table `_TYPE_BASED_DISPATCH_SIGNATURES` is the one list of all functions that carry a dispatcher. |
| `tf_decorator` | What a function's parameters are called, and its public names (`_tf_api_names`), its innermost function says, beneath all decorators. |
| `tensor_conversion_registry` | Which types TensorFlow makes tensors of. |
| `tf.Tensor.__add__` and its kin, of `tf.Variable`, `tf.RaggedTensor` and `tf.SparseTensor` too (public; wrapped) | An operator makes a tensor of the other operand before it calls a function that carries a dispatcher, or calls another function than users do. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.framework import tensor_conversion_registry
from tensorflow.python.util import dispatch, tf_decorator

from extensor._tf._tf_protocol import CompositeTensor

# They take any number of arguments, so TensorFlow gives them no entry in its table.
_VARIADIC = ("einsum", "meshgrid", "print", "ragged.map_flat_values", "sparse.map_values")


class PublicFunction(NamedTuple):
    """A function of TensorFlow that carries a dispatcher.

    Attributes:
        name: The shortest of its public names under `tf`.
        function: The function, as `tf` has it under each of its public names.
        parameters: The names of its parameters.
        defaults: The defaults of the last of them.
        variadic: Whether the last parameter stands for any number of positional arguments. Such
            functions take keywords as well, none of which are for tensors.
        generated: Which parameters take a tensor (False) or a sequence of tensors (True), if the
            function was generated from an op's definition; None if it was written by hand.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    defaults: tuple[Any, ...]
    variadic: bool
    generated: dict[str, bool] | None


def public_functions() -> Iterator[PublicFunction]:
    """Yields every function under `tf` that carries a dispatcher, each once."""
    seen: set[int] = set()
    for function in list(dispatch._TYPE_BASED_DISPATCH_SIGNATURES):
        _, innermost = tf_decorator.unwrap(function)
        # To look up a name under `keras` would import Keras; it is a copy that nobody reaches.
        names = [n for n in getattr(innermost, "_tf_api_names", ()) if not n.startswith("keras.")]
        public = _under_tf(names[0]) if names else None
        if hasattr(public, dispatch.TYPE_BASED_DISPATCH_ATTR) and id(public) not in seen:
            seen.add(id(public))
            yield _described(min(names, key=_length), public, innermost)
    for name in _VARIADIC:
        public = _under_tf(name)
        yield _described(name, public, tf_decorator.unwrap(public)[1])


def _under_tf(name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), tf)
    except AttributeError:
        return None  # said to be public, but not there


def _length(name: str) -> tuple[int, int, str]:
    return name.count("."), len(name), name


def _described(name: str, public: Any, innermost: Any) -> PublicFunction:
    innermost = vars(innermost).get(_PLAIN, innermost)
    code = innermost.__code__
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    parameters = code.co_varnames[: code.co_argcount + variadic]
    generated = None
    if ".gen_" in innermost.__module__:
        annotations = typing.cast("dict[str, Any]", innermost.__annotations__)
        generated = {
            parameter: typing.get_origin(annotations[parameter].__origin__) is list
            for parameter in parameters
            # An attribute of the op is annotated as what it is, an input as Annotated.
            if hasattr(annotations.get(parameter), "__metadata__")
        }
    defaults = innermost.__defaults__ or ()
    return PublicFunction(name, public, parameters, defaults, variadic, generated)


def elementwise(arity: int) -> list[Callable[..., Any]]:
    """Returns the functions that TensorFlow itself holds for elementwise.

    Some of them stand behind the function that users call, which shares their dispatcher.

    Args:
        arity: 1 or 2.
    """
    return list(
        dispatch.unary_elementwise_apis() if arity == 1 else dispatch.binary_elementwise_apis()
    )


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """Returns what TensorFlow dispatches calls of a function with, or None."""
    return getattr(function, dispatch.TYPE_BASED_DISPATCH_ATTR, None)


class Missing:
    """Stands for an argument that was not given."""

    def __repr__(self) -> str:
        return "<not given>"


MISSING = Missing()


_PLAIN = "_extensor_plain"
"""The attribute in which a function keeps what it did before."""

Ask = Callable[..., Any]


class Places(NamedTuple):
    """Where a function is looked at, and what answers.

    Attributes:
        tensors: Which of its parameters take a tensor.
        sequences: Which of its parameters take a sequence of tensors.
        ask: Answers a call in place of the function, where one of these arguments, or an item of a
            sequence, is of a type not in `PLAIN`. It gets the positional arguments, the shortest
            tuple that holds all that was given, and those among them that are named here. For a
            variadic function it gets the positional arguments and the keywords.
    """

    tensors: list[int]
    sequences: list[int]
    ask: Ask


def intercept(public: PublicFunction, prepare: Callable[[Callable[..., Any]], Places]) -> None:
    """Lets something else answer the calls of a function that hold values of unknown types.

    Args:
        public: The function.
        prepare: Gets the function as it was before, when it is first called.
    """
    function = typing.cast("types.FunctionType", public.function)
    plain = _copied(function)

    def first(*args: Any, **kwargs: Any) -> Any:
        _look_at(public, plain, prepare(plain))
        return function(*args, **kwargs)

    # To compile the code for all functions would take longer than importing extensor may take.
    _replace_code(function, _first_template(_closure(function)), {"_first": first})


def _look_at(public: PublicFunction, plain: types.FunctionType, places: Places) -> None:
    function = typing.cast("types.FunctionType", public.function)
    if not places.tensors and not places.sequences:
        function.__code__ = plain.__code__
        return
    consts: dict[str, Any] = {"_plain": plain, "_ask": places.ask}
    if public.variadic:
        _replace_code(function, _variadic_template(_closure(function)), consts)
        return
    required = len(public.parameters) - len(public.defaults)
    unhashable = [i for i, v in enumerate(public.defaults, required) if not _hashable(v)]
    for i, value in enumerate(public.defaults, required):
        consts[f"_d{i}"] = _Holder(value) if i in unhashable else value
    consts["_given"] = functools.partial(_given, required, public.defaults)
    # A function that warns of parameters which should not be given must not be given them.
    template = _template(public, places, unhashable, always_ask=_warns(function))
    _replace_code(function, template, consts)
    function.__defaults__ = (MISSING,) * len(public.defaults)


def _given(required: int, defaults: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the values of parameters without those at the end that are `MISSING`.

    Args:
        required: How many parameters have no default.
        defaults: Those of the others. They stand in for what is missing before the end.
        values: One for each parameter.
    """
    count = len(values)
    while values[count - 1] is MISSING:
        count -= 1
    optional = zip(values[required:count], defaults, strict=False)
    filled = [default if value is MISSING else value for value, default in optional]
    return (*values[:required], *filled)


def _closure(function: types.FunctionType) -> tuple[str, ...]:
    return function.__code__.co_freevars


def _copied(function: types.FunctionType) -> types.FunctionType:
    """Returns what a function was before it was intercepted, as a function of its own."""
    plain = vars(function).get(_PLAIN)
    if plain is None:
        plain = types.FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        plain.__kwdefaults__ = function.__kwdefaults__
        plain.__annotations__ = function.__annotations__
        plain.__module__ = function.__module__
        function.__dict__[_PLAIN] = plain
        # For whoever asks for the signature or the source.
        if "__signature__" not in vars(function):
            function.__dict__["__signature__"] = inspect.signature(plain)
        function.__dict__.setdefault("__wrapped__", plain)
    return plain


def _replace_code(
    function: types.FunctionType, template: types.CodeType, consts: dict[str, Any]
) -> None:
    """Gives a function the code of a template.

    Args:
        function: The function, whose closure stays.
        template: Code in which strings stand for other constants, with names for the function's
            closure.
        consts: These constants.
    """
    consts = {**_CONSTS, **consts}
    function.__code__ = template.replace(
        co_consts=tuple(consts.get(c, c) if isinstance(c, str) else c for c in template.co_consts),
        co_name=function.__name__,
    )


class _Holder:
    """Holds a default that may not be a constant of code, because it is not hashable."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _warns(function: Any) -> bool:
    """Returns whether one of a function's decorators looks for deprecated arguments."""
    decorators, _ = tf_decorator.unwrap(function)
    return any("deprecat" in (decorator.decorator_name or "") for decorator in decorators)


def _template(
    public: PublicFunction, places: Places, unhashable: list[int], always_ask: bool
) -> types.CodeType:
    """Returns the code that looks at the arguments of a function.

    Of `tf.add` it is, with the constants that strings stand for:

        def template(x, y, name=MISSING):
            if type(x) in PLAIN and type(y) in PLAIN:
                return plain(x, y, None if name is MISSING else name)
            return ask((x, y) if name is MISSING else given((x, y, name)), (x, y))
    """
    names = public.parameters
    required = len(names) - len(public.defaults)
    checks = [f"_type({names[i]}) in _types" for i in places.tensors]
    checks += [f"_plain_sequence({names[i]})" for i in places.sequences]
    filled = [
        f"'_d{i}'{'.value' * (i in unhashable)} if {name} is _missing else {name}"
        if i >= required
        else name
        for i, name in enumerate(names)
    ]
    lines = [f"def template({', '.join(names)}):"]
    if public.defaults:
        lines += _named("_missing")
    if not always_ask:
        lines += _named("_plain", *(("_type", "_types") if places.tensors else ()))
        lines += _named(*(("_plain_sequence",) if places.sequences else ()))
        lines.append(f" if {' and '.join(checks)}: return _plain({', '.join(filled)})")
    lines += _named("_ask", "_given")
    args = _tuple(names)
    if public.defaults:
        nothing_more = " and ".join(f"{name} is _missing" for name in names[required:])
        args = f"{_tuple(names[:required])} if {nothing_more} else _given({args})"
    looked_at = _tuple([names[i] for i in sorted([*places.tensors, *places.sequences])])
    lines.append(f" return _ask({args}, {looked_at})")
    return _compiled(lines, _closure(typing.cast("types.FunctionType", public.function)))


@functools.cache
def _first_template(closure: tuple[str, ...]) -> types.CodeType:
    lines = ["def template(*args, **kwargs):", *_named("_first"), " return _first(*args, **kwargs)"]
    return _compiled(lines, closure)


@functools.cache
def _variadic_template(closure: tuple[str, ...]) -> types.CodeType:
    lines = [
        "def template(*args, **kwargs):",
        *_named("_plain_sequence", "_plain", "_ask"),
        " return _plain(*args, **kwargs) if _plain_sequence(args) else _ask(args, kwargs)",
    ]
    return _compiled(lines, closure)


def _tuple(names: Sequence[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names)})"


def _named(*names: str) -> list[str]:
    """Returns lines that name constants: Python warns of a string that is called itself."""
    return [f" {name} = '{name}'" for name in names]


def _compiled(lines: list[str], closure: tuple[str, ...]) -> types.CodeType:
    """Returns the code of the function `template`, with names for a closure that it does not use.

    A function keeps its closure when it gets other code, and Python counts that it fits.
    """
    source = [f"def outer({', '.join(closure)}):"]
    source += [f" {line}" for line in lines]
    if closure:
        source.append(f"  {', '.join(closure)}")  # behind what returns
    source.append(" return template")
    namespace: dict[str, Any] = {}
    exec(compile("\n".join(source), "<extensor: dispatch>", "exec"), namespace)
    return namespace["outer"](*closure).__code__


class _Types(set[type]):
    """A set of types that may be a constant of code."""

    __hash__ = object.__hash__  # type: ignore[assignment]


PLAIN = _Types({Missing, bool, bytes, float, int, list, str, tuple, types.FunctionType})
"""Types whose values have nothing to say; each joins when a function first meets it."""


def plain_sequence(value: Any) -> bool:
    """Returns whether no type in a nested list or tuple has anything to say."""
    kind = type(value)
    if kind is not list and kind is not tuple:
        return kind in PLAIN
    for item in value:
        kind = type(item)
        if kind not in PLAIN or ((kind is list or kind is tuple) and not plain_sequence(item)):
            return False
    return True


_CONSTS: dict[str, Any] = {
    "_missing": MISSING,
    "_plain_sequence": plain_sequence,
    "_type": type,
    "_types": PLAIN,
}


def has_nothing_to_say(kind: type) -> None:
    """Remembers a type that does not follow the protocol.

    A set that has grown to this size grows no more: types that are made anew all the time must be
    able to go. What holds items of other types is looked into each time.
    """
    if len(PLAIN) < 4096 and not issubclass(kind, (list, tuple)):
        PLAIN.add(kind)


def has_something_to_say(kind: type) -> None:
    """Forgets a type that has come to follow the protocol."""
    PLAIN.discard(kind)


def converts_to_tensor(kind: type) -> bool:
    """Returns whether TensorFlow makes a tensor of a value of a type, where it wants one.

    >>> from extensor._tf._tf_dispatch import converts_to_tensor
    >>> [converts_to_tensor(kind) for kind in (tf.Variable, float, np.ndarray, tf.TensorShape)]
    [True, True, True, True]
    >>> [converts_to_tensor(kind) for kind in (tf.RaggedTensor, tf.data.Dataset, object)]
    [False, False, False]
    """
    if issubclass(kind, (tf.Tensor, tf.Variable, bool, int, float, complex, str, bytes)):
        return True
    if issubclass(kind, CompositeTensor):
        return False
    if any(hasattr(kind, name) for name in ("__array__", "__array_interface__", "__tf_tensor__")):
        return True
    # The function for `object` takes all there is, and then fails.
    return any(base is not object for base, _ in tensor_conversion_registry.get(kind))


def intercept_operator(cls: Any, name: str, make: Callable[[Callable[..., Any]], Ask]) -> None:
    """Lets something else answer an operator where the other operand is of an unknown type.

    Args:
        cls: A class of TensorFlow.
        name: Its method, such as `__add__`. Nothing happens if the class does not define it.
        make: Gets the method as it was before, and returns what answers instead of it.
    """
    found = vars(cls).get(name)
    if found is None:
        return
    plain = vars(found).get(_PLAIN, found)
    ask = make(plain)

    @functools.wraps(plain)
    def operator(self: Any, other: Any) -> Any:
        return plain(self, other) if type(other) in PLAIN else ask(self, other)

    vars(operator)[_PLAIN] = plain
    setattr(cls, name, operator)
