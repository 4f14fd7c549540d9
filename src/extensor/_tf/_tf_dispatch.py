"""The functions that let a type override what they do with its values.

TensorFlow's own dispatcher, in C++, is not used: it comes after so many wrappers that a call takes
longer to reach it than extensor takes in all, most of TensorFlow's generated functions raise and
catch an error before they reach it, it cannot take varargs, and two of its targets that match one
call are an error. So the arguments of a call are looked at where the call comes in. A function
keeps its identity, whoever has imported it: only its code is replaced, by code that looks at the
types of the arguments and then calls what was there before, with the arguments as they came.

The new code has the file, the line, the name and the parameters of the code that it replaces. So
whoever reads the function (`inspect`, AutoGraph, TensorFlow's debugger) finds TensorFlow's source,
and a traceback holds as many frames as before, all of them TensorFlow's.

| name | why |
| --- | --- |
| `dispatch` | Its table `_TYPE_BASED_DISPATCH_SIGNATURES` is the one list of all functions that carry a dispatcher. |
| `tf_decorator` | What a function's parameters are called, and its public names (`_tf_api_names`), its innermost function says, beneath all decorators. |
| `tf.Tensor.__add__` and its kin, of `tf.Variable`, `tf.RaggedTensor` and `tf.SparseTensor` too (public; wrapped) | An operator makes a tensor of the other operand before it calls a function that carries a dispatcher, or calls another function than users do. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.util import dispatch, tf_decorator

from extensor._lookup import defines
from extensor._tf._tf_as_tensor import is_array, is_registered
from extensor._tf._tf_autograph import call_as_it_is
from extensor._tf._tf_protocol import CompositeTensor

# They take any number of arguments, so TensorFlow gives them no entry in its table.
_VARIADIC = ("einsum", "meshgrid", "print", "ragged.map_flat_values", "sparse.map_values")

# TensorFlow gives them no dispatcher.
_WITHOUT_DISPATCHER = """
    io.decode_json_example io.is_jpeg io.read_file io.serialize_tensor
    linalg.banded_triangular_solve linalg.logm linalg.slogdet nn.all_candidate_sampler
    required_space_to_batch_paddings signal.fftnd signal.ifftnd signal.irfft signal.irfft2d
    signal.irfft3d signal.irfftnd signal.rfft signal.rfft2d signal.rfft3d signal.rfftnd sparse.add
    sparse.concat sparse.cross sparse.cross_hashed sparse.expand_dims sparse.eye
    sparse.fill_empty_rows sparse.from_dense sparse.mask sparse.maximum sparse.minimum
    sparse.reduce_max sparse.reduce_sum sparse.reorder sparse.reset_shape sparse.retain
    sparse.sampled_addmm sparse.segment_mean sparse.segment_sqrt_n sparse.segment_sum sparse.slice
    sparse.softmax sparse.sparse_dense_matmul sparse.split sparse.to_dense sparse.to_indicator
    sparse.transpose
"""


class PublicFunction(NamedTuple):
    """A function of TensorFlow that takes tensors.

    Attributes:
        name: The shortest of its public names under `tf`.
        function: The function, as `tf` has it under each of its public names.
        parameters: The names of its parameters.
        defaults: The defaults of the last of them.
        variadic: Whether the last parameter stands for any number of positional arguments. Such
            functions take keywords as well, none of which are for tensors.
        generated: Which parameters take a tensor (False) or a sequence of tensors (True), if the
            function was generated from an op's definition; None if it was written by hand.
        fills_in: Whether the function is called with all its parameters, defaults filled in, before
            anything can look at the call. Others take `*args, **kwargs` and pass them on.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[str, ...]
    defaults: tuple[Any, ...]
    variadic: bool
    generated: dict[str, bool] | None
    fills_in: bool


def public_functions() -> Iterator[PublicFunction]:
    """Yields every function under `tf` that types can override, each once."""
    seen: set[int] = set()
    for function in list(dispatch._TYPE_BASED_DISPATCH_SIGNATURES):
        _, innermost = tf_decorator.unwrap(function)
        # To look up a name under `keras` would import Keras; it is a copy that nobody reaches.
        names = [n for n in getattr(innermost, "_tf_api_names", ()) if not n.startswith("keras.")]
        public = _under_tf(names[0]) if names else None
        if hasattr(public, dispatch.TYPE_BASED_DISPATCH_ATTR) and id(public) not in seen:
            seen.add(id(public))
            yield _described(min(names, key=_length), public, innermost)
    for name in (*_VARIADIC, *_WITHOUT_DISPATCHER.split()):
        public = _under_tf(name)
        if public is not None and id(public) not in seen:
            seen.add(id(public))
            yield _described(name, public, tf_decorator.unwrap(public)[1])


def _under_tf(name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), tf)
    except AttributeError:
        return None  # said to be public, but not there


def _length(name: str) -> tuple[int, int, str]:
    return name.count("."), len(name), name


def _described(name: str, public: Any, innermost: Any) -> PublicFunction:
    code = _plain(innermost).__code__
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
    fills_in = not _takes_anything(_plain(public))
    return PublicFunction(name, public, parameters, defaults, variadic, generated, fills_in)


def _takes_anything(function: Any) -> bool:
    return bool(function.__code__.co_flags & inspect.CO_VARARGS)


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


# Which types are known to override nothing.


class _Types(set[type]):
    """A set of types that may be a constant of code."""

    __hash__ = object.__hash__  # type: ignore[assignment]


_FLAT = _Types({bool, bytes, float, int, str, type(None), types.FunctionType})
PLAIN = _Types({*_FLAT, list, tuple})
"""Types that override nothing; each joins when a function first meets it. `_FLAT` are those of them
whose values hold no others."""


def is_plain(kind: type) -> bool:
    """Returns whether a type is known to override nothing."""
    try:
        return kind in PLAIN
    except Exception:  # a class of somebody else's that has no hash
        return False


def plain_sequence(value: Any) -> bool:
    """Returns whether a value, and every item of it if it is a nested list or tuple, is plain."""
    kind = type(value)
    if kind is not list and kind is not tuple:
        return is_plain(kind)
    try:
        if len(value) > 32:  # in C, a million numbers take a hundredth of a second
            kinds = list(map(type, value))
            if kinds[0] in _FLAT and kinds.count(kinds[0]) == len(kinds):
                return True
            return PLAIN.issuperset(kinds) and all(map(plain_sequence, value))
        for item in value:
            kind = type(item)
            if kind not in _FLAT and not ((kind is list or kind is tuple) and plain_sequence(item)):
                return False
    except Exception:  # as above
        return False
    return True


def plain_iterable(value: Any) -> bool:
    """Returns the same for a parameter that takes any iterable, such as a generator."""
    kind = type(value)
    if kind is list or kind is tuple:
        return plain_sequence(value)
    return kind is str or (is_plain(kind) and not defines(kind, "__iter__"))


def overrides_nothing(kind: type) -> None:
    """Remembers a type that does not follow the protocol.

    A set that has grown to this size grows no more: types that are made anew all the time must be
    able to go. What holds items of other types is looked into each time.
    """
    if len(PLAIN) < 4096 and not issubclass(kind, (list, tuple)):
        try:
            PLAIN.add(kind)
            _FLAT.add(kind)
        except Exception:  # as above
            pass


def overrides_now(kind: type) -> None:
    """Forgets a type that has come to follow the protocol."""
    if is_plain(kind):
        PLAIN.discard(kind)
        _FLAT.discard(kind)


# The code that looks at the arguments of a call.

_ATTRIBUTE = "_extensor_plain"
"""The attribute in which a function keeps what it was before."""

THEIRS = object()
"""The answer to a call that is TensorFlow's own."""

Ask = Callable[[tuple[Any, ...], dict[str, Any]], Any]


class Asking(NamedTuple):
    """What answers the calls of a function that hold values of unknown types.

    Attributes:
        function: What a handler gets as the operation that was called.
        ask: Gets the positional and the keyword arguments as they came. It returns a handler and
            the arguments to call it with; or None and the result, which is `THEIRS` if the function
            itself is to be called.
        failed: Gets the error that a handler raised, and the handler, before the error goes on.
        unanswered: Gets a handler, what it returned if that is None or NotImplemented, and the
            arguments as they came. It returns the result, or `THEIRS`.
    """

    function: Callable[..., Any]
    ask: Ask
    failed: Callable[[Exception, Any], None]
    unanswered: Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]


def _plain(function: Any) -> Any:
    """Returns what a function was before it was intercepted."""
    return vars(function).get(_ATTRIBUTE, function)


def intercept(
    public: PublicFunction,
    make: Callable[[Callable[..., Any]], Asking],
    sequences: Iterable[int],
    any_iterable: bool = False,
) -> None:
    """Lets something else answer the calls of a function that hold values of unknown types.

    Args:
        public: The function.
        make: Gets the function as it was before, and returns what answers such a call. A function
            that fills in its defaults passes all arguments by position.
        sequences: The places of the parameters that take a sequence of tensors.
        any_iterable: Whether they take other iterables than lists and tuples too.
    """
    function = typing.cast("types.FunctionType", public.function)
    plain = vars(function).setdefault(_ATTRIBUTE, _copied(function))
    sequences = tuple(sequences)
    if public.fills_in:
        call_as_it_is(function)
        count = plain.__code__.co_argcount
        template = _named_template(count, sequences, plain.__code__.co_freevars)
    else:
        template = _template(bool(sequences), plain.__code__.co_freevars)
    looks = plain_iterable if any_iterable else plain_sequence
    consts = make(plain)._asdict()
    function.__code__ = _disguised(template, plain, consts, looks if sequences else None)


def intercept_operator(cls: Any, name: str, answer: Callable[[Any, Any], Any]) -> None:
    """Lets something else answer an operator where the other operand is of an unknown type.

    Args:
        cls: A class of TensorFlow.
        name: Its method, such as `__add__`. Nothing happens if the class does not define it.
        answer: Gets both operands of such a call, and returns the result, or `THEIRS` if the method
            itself is to be called.
    """
    found = vars(cls).get(name)
    if found is None:
        return
    plain = _plain(found)
    code = plain.__code__
    stars = _takes_anything(plain)

    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:  # whoever calls the method itself may name the operands
            try:
                args = inspect.signature(plain).bind(*args, **kwargs).args
            except TypeError:
                return THEIRS
        return answer(*args[:2]) if len(args) > 1 else THEIRS

    # The method may be a function that users call by another name, so this is a new one.
    if code.co_argcount:
        template = _operator_template(code.co_argcount, stars, code.co_freevars)
    else:
        template = _template(False, code.co_freevars, handlers=False)
    operator = _copied(plain, _disguised(template, plain, {"ask": ask}))
    vars(operator).update(vars(found))
    vars(operator)[_ATTRIBUTE] = plain
    call_as_it_is(operator)
    setattr(cls, name, operator)


def _copied(function: types.FunctionType, code: types.CodeType | None = None) -> types.FunctionType:
    """Returns a function that does the same, or what other code does, under the same name."""
    copied = types.FunctionType(
        code or function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__annotations__ = function.__annotations__
    copied.__doc__ = function.__doc__
    copied.__module__ = function.__module__
    copied.__qualname__ = function.__qualname__
    return copied


def _disguised(
    template: types.CodeType,
    plain: types.FunctionType,
    consts: dict[str, Any],
    looks: Callable[[Any], bool] | None = None,
) -> types.CodeType:
    """Returns a template's code with the constants that it needs, and in place of a function's.

    Args:
        template: Code in which strings stand for other constants.
        plain: The function, of which the code gets the file, the line, the names and the
            parameters.
        consts: What some of the strings stand for, which have these names after an underscore.
        looks: Looks into a value whose type is not known to hold no others; None if no parameter
            takes a sequence.
    """
    # What takes any iterable looks into every argument.
    known = PLAIN if looks is None else _FLAT if looks is plain_sequence else _Types()
    consts = {f"_{name}": value for name, value in consts.items()}
    consts |= {**_CONSTS, "_plain": plain, "_types": known, "_looks": looks}
    code = plain.__code__
    named = code.co_varnames[: template.co_argcount]
    changes: dict[str, Any] = {
        "co_consts": tuple(
            consts.get(c, c) if isinstance(c, str) else c for c in template.co_consts
        ),
        "co_varnames": (*named, *template.co_varnames[template.co_argcount :]),
        "co_filename": code.co_filename,
        "co_firstlineno": code.co_firstlineno,
        "co_name": code.co_name,
    }
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = code.co_qualname
    return template.replace(**changes)


@functools.cache
def _template(sequences: bool, closure: tuple[str, ...], handlers: bool = True) -> types.CodeType:
    """Returns the code that looks at the arguments of a function of `*args, **kwargs`.

    Strings stand for constants. Calls with one or two arguments, which most are, have branches of
    their own, because a call with a star takes longer than looking does.
    """
    body = [
        *_named("_types", "_type", "_plain", *(("_looks",) if sequences else ())),
        "looking = True",
        "try:",
        "  if not kwargs and _len(args) == 1:",
        "    [a] = args",
        f"    if {_known('a', sequences)}:",
        "      looking = False",
        "      return _plain(a)",
        "  elif not kwargs and _len(args) == 2:",
        "    a, b = args",
        f"    if {_known('a', sequences)} and {_known('b', sequences)}:",
        "      looking = False",
        "      return _plain(a, b)",
        "  else:",
        "    for a in args:",
        f"      if not ({_known('a', sequences)}): break",
        "    else:",
        "      for a in kwargs.values():",
        f"        if not ({_known('a', sequences)}): break",
        "      else:",
        "        looking = False",
        "        return _plain(*args, **kwargs)",
        *_otherwise("args, kwargs", "*args, **kwargs", handlers),
    ]
    return _compiled("*args, **kwargs", [*_named("_len"), *body], closure)


@functools.cache
def _named_template(
    count: int, sequences: tuple[int, ...], closure: tuple[str, ...]
) -> types.CodeType:
    """Returns the same for a function with a number of parameters, whatever they are called.

    Args:
        count: The number.
        sequences: Which of them take a sequence.
        closure: The names of the function's closure.
    """
    names = [f"_{i}" for i in range(count)]
    checks = [_known(name, i in sequences) for i, name in enumerate(names)]
    parameters = ", ".join(names)
    body = [
        *_named("_types", "_type", "_plain", *(("_looks",) if sequences else ())),
        "looking = True",
        "try:",
        f"  if {' and '.join(checks)}:",
        "    looking = False",
        f"    return _plain({parameters})",
        *_otherwise(f"({parameters},), {{}}", parameters, True),
    ]
    return _compiled(parameters, body, closure)


@functools.cache
def _operator_template(count: int, stars: bool, closure: tuple[str, ...]) -> types.CodeType:
    """Returns the same for an operator with a number of parameters.

    Args:
        count: The number.
        stars: Whether `*args, **kwargs` follow. One argument that they take may be an operand.
        closure: The names of the operator's closure.
    """
    names = [f"_{i}" for i in range(count)]
    checks = [_known(name, False) for name in names]
    given, args, parameters = f"({', '.join(names)},)", "{}", ", ".join(names)
    if stars:
        given, args = f"({', '.join(names)}, *args)", "kwargs"
        parameters = f"{parameters}, *args, **kwargs"
        checks.append("not kwargs and (not args or (_len(args) == 1 and _type(args[0]) in _types))")
    body = [
        *_named("_types", "_type", "_len", "_plain"),
        "looking = True",
        "try:",
        f"  if {' and '.join(checks)}:",
        "    looking = False",
        f"    return _plain({parameters})",
        *_otherwise(f"{given}, {args}", parameters, False),
    ]
    return _compiled(parameters, body, closure)


def _known(name: str, sequence: bool) -> str:
    """Returns the expression that says whether the type of an argument is known."""
    return f"(_type({name}) in _types{f' or _looks({name})' * sequence})"


def _otherwise(given: str, args: str, handlers: bool) -> list[str]:
    """Returns the end of a template: what follows if a type is not known, or has no hash."""
    return [
        "except '_Exception' as error:",
        "  if not looking:",
        "    _beneath = '_beneath'",
        "    raise error.with_traceback(_beneath(error))",
        *_named("_ask", "_theirs"),
        *(_handled(given) if handlers else [f"answer = _ask({given})"]),
        "if answer is not _theirs:",
        "  return answer",
        "try:",
        f"  return _plain({args})",
        "except '_Exception' as error:",
        "  _beneath = '_beneath'",
        "  raise error.with_traceback(_beneath(error))",
    ]


def _handled(given: str) -> list[str]:
    """Returns the lines that call a handler.

    They do it here, because each frame between TensorFlow's function and a handler makes every op
    that the handler calls a microsecond slower: TensorFlow keeps the stack of each op.
    """
    return [
        f"handler, answer = _ask({given})",
        "if handler is not None:",
        *(f"  {line}" for line in _named("_function", "_failed", "_declines", "_unanswered")),
        "  try:",
        "    answer = handler(_function, answer, {})",
        "  except '_Exception' as error:",
        "    _failed(error, handler)",
        "    raise",
        "  if answer is None or answer is _declines:",
        f"    answer = _unanswered(handler, answer, {given})",
    ]


def _named(*names: str) -> list[str]:
    """Returns lines that name constants: Python warns of a string that is called itself."""
    return [f"{name} = '{name}'" for name in names]


def _compiled(parameters: str, body: list[str], closure: tuple[str, ...]) -> types.CodeType:
    """Returns the code of a function, with names for a closure that it does not use.

    A function keeps its closure when it gets other code, and Python counts that it fits. All of it
    is on one line, without columns: which of TensorFlow's lines it is, `_disguised` decides.
    """
    lines = [f"def outer({', '.join(closure)}):", f"  def template({parameters}):"]
    lines += [f"    {line}" for line in body]
    if closure:
        lines.append(f"    {', '.join(closure)}")  # behind what returns
    lines.append("  return template")
    tree = ast.parse("\n".join(lines))
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.excepthandler):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = -1
    names: dict[str, Any] = {}
    exec(compile(tree, __file__, "exec"), names)
    return names["outer"](*closure).__code__


def _beneath(error: BaseException) -> types.TracebackType | None:
    """Returns an error's traceback without the frame of the function that was intercepted.

    The frame of the code that calls it stays, and a traceback is as long as it was before.
    """
    of_code = error.__traceback__
    of_function = of_code and of_code.tb_next
    return of_function and of_function.tb_next


_CONSTS: dict[str, Any] = {
    "_beneath": _beneath,
    "_declines": NotImplemented,
    "_Exception": Exception,
    "_len": len,
    "_theirs": THEIRS,
    "_type": type,
}


# What TensorFlow makes tensors of.


def converts_to_tensor(kind: type) -> bool:
    """Returns whether TensorFlow makes a tensor of a value of a type, where it wants one.

    A composite is none, even if it is registered to be made one: `tf.convert_to_tensor` reads it,
    but it is not a tensor to what takes values apart.

    >>> from extensor._tf._tf_dispatch import converts_to_tensor
    >>> [converts_to_tensor(kind) for kind in (tf.Variable, float, np.ndarray, tf.TensorShape)]
    [True, True, True, True]
    >>> [converts_to_tensor(kind) for kind in (tf.RaggedTensor, tf.data.Dataset, object)]
    [False, False, False]
    """
    try:
        if issubclass(kind, (tf.Tensor, tf.Variable, bool, int, float, complex, str, bytes)):
            return True
        if issubclass(kind, CompositeTensor):
            return False
    except Exception:  # a class without a hash, which TensorFlow cannot look up either
        return False
    return is_array(kind) or defines(kind, "__tf_tensor__") or is_registered(kind)
