"""Patches of the functions and operators of TensorFlow that types can override."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

from extensor._dispatch.call import NOT_OVERRIDDEN, Interception, interception
from extensor._dispatch.known_types import FLAT, PLAIN, Types, plain_iterable, plain_sequence
from extensor._dispatch.operation import FUNCTIONS, Operation, operation_of
from extensor._dispatch.operators import answers
from extensor._patches.patch import Patch, copy_of, plain_of
from extensor._tf._tf_autograph import call_as_it_is
from extensor._tf._tf_dispatch import REPLACED, PublicFunction, takes_anything


def _intercept(
    public: PublicFunction,
    make: Callable[[Callable[..., Any]], Interception],
    sequences: Iterable[int],
    any_iterable: bool = False,
) -> None:
    """Redirects the calls of a function with values of unknown types.

    Args:
        public: The function.
        make: Takes the original function, and returns the `Interception` that handles such calls. A
            function that fills in its defaults passes all arguments by position.
        sequences: The positions of the parameters that take a sequence of tensors.
        any_iterable: Whether these also take other iterables than lists and tuples.
    """
    function = typing.cast("types.FunctionType", public.function)
    plain = vars(function).setdefault(REPLACED, copy_of(function))
    sequences = tuple(sequences)
    call_as_it_is(function)
    count = plain.__code__.co_argcount if public.fills_in else 0
    closure = plain.__code__.co_freevars
    template = _template(count, not public.fills_in, sequences, True, closure)
    check_items = plain_iterable if any_iterable else plain_sequence
    consts = make(plain)._asdict()
    function.__code__ = _with_metadata(template, plain, consts, check_items if sequences else None)


def _intercept_operator(cls: Any, name: str, answer: Callable[[Any, Any], Any]) -> None:
    """Redirects the calls of an operator with another operand of an unknown type.

    Args:
        cls: A class of TensorFlow.
        name: Its method, such as `__add__`. Nothing happens if the class does not define it.
        answer: Takes both operands of such a call. It returns the result, or
            `NOT_OVERRIDDEN` to call the original method.
    """
    found = vars(cls).get(name)
    if found is None:
        return
    plain = plain_of(found)
    code = plain.__code__
    stars = takes_anything(plain)

    def find_handler(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:  # a direct call of the method may pass operands by name
            try:
                args = inspect.signature(plain).bind(*args, **kwargs).args
            except TypeError:
                return NOT_OVERRIDDEN
        return answer(*args[:2]) if len(args) > 1 else NOT_OVERRIDDEN

    # A new function, because the method may also be a public function with another name.
    count = code.co_argcount
    template = _template(count, stars or not count, (), False, code.co_freevars)
    operator = copy_of(plain, _with_metadata(template, plain, {"find_handler": find_handler}))
    vars(operator).update(vars(found))
    vars(operator)[REPLACED] = plain
    call_as_it_is(operator)
    setattr(cls, name, operator)


def _with_metadata(
    template: types.CodeType,
    plain: types.FunctionType,
    consts: dict[str, Any],
    check_items: Callable[[Any], bool] | None = None,
) -> types.CodeType:
    """Returns the code of a template with its constants, and with the metadata of a function.

    Args:
        template: Code in which strings are placeholders for constants.
        plain: The function whose file, line, name and parameters the code gets.
        consts: The constants by their placeholders, without the leading underscore.
        check_items: Checks the items of a value that may be a container; None if no parameter
            takes a sequence.
    """
    # A function that takes any iterable checks the items of every argument.
    known = PLAIN if check_items is None else FLAT if check_items is plain_sequence else Types()
    consts = {f"_{name}": value for name, value in consts.items()}
    consts |= {**_CONSTS, "_plain": plain, "_types": known, "_check_items": check_items}
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
def _template(
    count: int, stars: bool, sequences: tuple[int, ...], handlers: bool, closure: tuple[str, ...]
) -> types.CodeType:
    """Returns code that checks its arguments, and then calls the original function.

    Before: if all types are known, the original gets the arguments. After: if one is not, or has no
    hash, a handler may answer; otherwise the original gets the arguments too.

    Strings are placeholders for constants. `handlers` says whether `_find_handler` returns a
    handler, which the template calls directly: each frame between TensorFlow's function and a
    handler makes every op of the handler a microsecond slower, because TensorFlow records the stack
    of each op.

    Args:
        count: The number of named parameters.
        stars: Whether `*args, **kwargs` follow.
        sequences: The positions of the parameters that take a sequence; any, if none is named.
        handlers: Whether a handler answers. Otherwise `_find_handler` returns the answer.
        closure: The names of the function's closure.
    """
    names = [f"_{i}" for i in range(count)]
    passed = ", ".join([*names, *["*args", "**kwargs"] * stars])
    given = f"({', '.join([*names, *['*args'] * stars])},), {'kwargs' if stars else '{}'}"
    if names:
        checks = [_type_check(name, i in sequences) for i, name in enumerate(names)]
        if stars:  # an operand may follow
            checks.append(
                f"not kwargs and (not args or (_len(args) == 1 and {_type_check('args[0]')}))"
            )
        before = _if_known(" and ".join(checks), passed)
    else:
        before = _before_any(_type_check("a", bool(sequences)), _type_check("b", bool(sequences)))
    constants = [
        "_types",
        "_type",
        "_plain",
        *["_len"] * stars,
        *["_check_items"] * bool(sequences),
    ]
    body = [
        *_name_lines(*constants),
        "looking = True",
        "try:",
        *(f"  {line}" for line in before),
        "except '_Exception' as error:",
        "  if not looking:",
        "    _beneath = '_beneath'",
        "    raise error.with_traceback(_beneath(error))",
        *_name_lines("_find_handler", "_not_overridden"),
        *(_handler_call(given) if handlers else [f"answer = _find_handler({given})"]),
        "if answer is not _not_overridden:",
        "  return answer",
        "try:",
        f"  return _plain({passed})",
        "except '_Exception' as error:",
        "  _beneath = '_beneath'",
        "  raise error.with_traceback(_beneath(error))",
    ]
    return _compile(passed, body, closure)


def _before_any(known: str, known_too: str) -> list[str]:
    """Returns the lines that check `*args, **kwargs`.

    Calls with one or two arguments, the most frequent ones, have their own branches, because a call
    with a star takes longer than the check.

    Args:
        known: The expression that checks `a`.
        known_too: The same of `b`.
    """
    return [
        "if not kwargs and _len(args) == 1:",
        "  [a] = args",
        *(f"  {line}" for line in _if_known(known, "a")),
        "elif not kwargs and _len(args) == 2:",
        "  a, b = args",
        *(f"  {line}" for line in _if_known(f"{known} and {known_too}", "a, b")),
        "else:",
        "  for a in args:",
        f"    if not {known}: break",
        "  else:",
        "    for a in kwargs.values():",
        f"      if not {known}: break",
        "    else:",
        *(f"      {line}" for line in _if_known("True", "*args, **kwargs")),
    ]


def _if_known(check: str, passed: str) -> list[str]:
    """Returns the lines that call the original function if a check holds."""
    return [f"if {check}:", "  looking = False", f"  return _plain({passed})"]


def _type_check(name: str, sequence: bool = False) -> str:
    """Returns the expression that checks whether the type of an argument is known."""
    return f"(_type({name}) in _types{f' or _check_items({name})' * sequence})"


def _handler_call(given: str) -> list[str]:
    """Returns the lines that call a handler."""
    return [
        f"handler, answer = _find_handler({given})",
        "if handler is not None:",
        *(
            f"  {line}"
            for line in _name_lines("_function", "_failed", "_not_implemented", "_declined")
        ),
        "  try:",
        "    answer = handler(_function, answer, {})",
        "  except '_Exception' as error:",
        "    _failed(error, handler)",
        "    raise",
        "  if answer is None or answer is _not_implemented:",
        f"    answer = _declined(handler, answer, {given})",
    ]


def _name_lines(*names: str) -> list[str]:
    """Returns lines that assign constants to names: Python warns about a call of a string."""
    return [f"{name} = '{name}'" for name in names]


def _compile(parameters: str, body: list[str], closure: tuple[str, ...]) -> types.CodeType:
    """Returns the code of a function, with names for a closure that it does not use.

    A function keeps its closure when its code is replaced, and Python checks that the sizes match.
    All code is on one line, without columns; `_with_metadata` sets the line number of TensorFlow's
    code.
    """
    lines = [f"def outer({', '.join(closure)}):", f"  def template({parameters}):"]
    lines += [f"    {line}" for line in body]
    if closure:
        lines.append(f"    {', '.join(closure)}")  # not reached
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
    """Returns the traceback of an error without the frame of the intercepted function.

    The frame of the new code remains, so a traceback is as long as before.
    """
    of_code = error.__traceback__
    of_function = of_code and of_code.tb_next
    return of_function and of_function.tb_next


_CONSTS: dict[str, Any] = {
    "_beneath": _beneath,
    "_not_implemented": NotImplemented,
    "_Exception": Exception,
    "_len": len,
    "_not_overridden": NOT_OVERRIDDEN,
    "_type": type,
}


_CLASSES = (tf.Tensor, tf.Variable, tf.RaggedTensor, tf.SparseTensor)


def functions() -> Iterator[Patch]:
    """Yields a patch for each function that takes tensors."""
    for public in FUNCTIONS.values():
        operation = operation_of(public.function)
        if operation.places:
            yield Patch(
                f"tf.{public.name}",
                "Types with __tf_dispatch__ override it.",
                "dispatch",
                _intercept_operation,
                functools.partial(_intercept_operation, operation),
            )


def operators() -> Iterator[Patch]:
    """Yields a patch for each operator of TensorFlow's own classes."""
    for cls in _CLASSES:
        for name, answer in answers():
            if name in vars(cls):
                yield Patch(
                    f"tf.{cls.__name__}.{name}",
                    "It converts the other operand to a tensor before it calls a function that "
                    "types override, or calls another function than users do.",
                    "operators",
                    _intercept_operator,
                    functools.partial(_intercept_operator, cls, name, answer),
                )


def _intercept_operation(operation: Operation) -> None:
    _intercept(
        operation.public,
        functools.partial(interception, operation),
        [place for place, nested in operation.places if nested],
        operation.any_iterable,
    )
