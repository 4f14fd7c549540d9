"""A law, how it is checked, and the error for broken laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from extensor._testing.subject import Subject
from extensor.errors import LawError

_LAWS: dict[str, Law] = {}


@dataclass(frozen=True)
class Breach:
    """One broken law: what it expects, what was received, and what to do."""

    law: Law
    expected: str
    received: str

    def __str__(self) -> str:
        return (
            f"  {self.law.name}: {self.law.sentence}\n"
            f"    expected {self.expected}, got {self.received}. {self.law.fix}"
        )


class BreachError(Exception):
    """Raised by the function of a law: what it expected, and what it received."""


def expect(holds: object, expected: str, received: object, *parts: object) -> None:
    """Raises BreachError if a condition is false.

    Args:
        holds: The condition.
        expected: What the law expects. Each `{}` stands for a part, if there are parts.
        received: What was received.
        *parts: Specs in the text. It is made only of a broken law: to show a spec takes longer
            than to compare two.
    """
    if not holds:
        raise BreachError(expected.format(*parts) if parts else expected, str(received))


@dataclass(frozen=True)
class Law:
    """One law. Call it to check a value, or several values of one type.

    Attributes:
        name: The name, such as `components-rebuild-value`.
        sentence: The statement of the law.
        fix: How to correct a type that breaks the law.
        function: Checks a subject; raises if it breaks the law.
        needs: The names of the laws that this law depends on.
        applies: Returns whether the law applies to a subject.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> [law] = [law for law in xt.testing.laws() if law.name == "hash-follows-equality"]
    >>> law.sentence
    'Equal specs have equal hashes.'
    >>> law(tf.ragged.constant([[1, 2], [3]]))
    """

    name: str
    sentence: str
    fix: str
    function: Callable[[Subject], None]
    needs: tuple[str, ...] = ()
    applies: Callable[[Subject], bool] = lambda subject: True

    def applies_to(self, subject: Subject) -> bool:
        """Returns whether the law applies to a subject."""
        try:
            return self.applies(subject)
        except Exception:  # raised by the type's own code: checking the law will report it
            return True

    def __call__(self, value_or_values: object) -> None:
        """Raises if a value, or several values of one type, break the law.

        Raises:
            LawError: If the law, or a law that it depends on, is broken (also an AssertionError).
        """
        Trial(Subject(value_or_values)).check([self])


def law(
    name: str, *needs: str, fix: str, applies: Callable[[Subject], bool] = lambda subject: True
) -> Callable[[Callable[[Subject], None]], Law]:
    """Returns a decorator that registers a function as a law; its docstring is the statement.

    Args:
        name: The name of the law.
        *needs: The names of the laws that it depends on.
        fix: How to correct a type that breaks it.
        applies: Returns whether it applies to a subject.
    """

    def register(function: Callable[[Subject], None]) -> Law:
        sentence = " ".join((function.__doc__ or "").split())
        _LAWS[name] = Law(name, sentence, fix, function, needs, applies)
        return _LAWS[name]

    return register


def laws() -> list[Law]:
    """Returns all laws; each follows the laws that it depends on.

    One rule of the specification has no law: that values are immutable, because no general check
    exists.

    >>> import extensor as xt
    >>> for law in xt.testing.laws()[:2]:
    ...     print(f"{law.name}: {law.sentence}")
    spec-has-repr: The repr of a spec returns a string.
    spec-is-stable: A value returns the same TypeSpec every time.
    """
    ordered: dict[str, Law] = {}

    def add(law: Law) -> None:
        for need in law.needs:
            add(_LAWS[need])
        ordered[law.name] = law

    for law in _LAWS.values():
        add(law)
    return list(ordered.values())


class Trial:
    """Checks laws for a subject: each law once, and none that depends on a broken law."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._broken: dict[str, dict[str, Breach]] = {}

    def broken(self, law: Law) -> dict[str, Breach]:
        """Returns by name what breaks a law for the subject, or the laws that it depends on.

        It is empty if the law holds or does not apply.
        """
        if law.name not in self._broken:
            self._broken[law.name] = self._check(law)
        return self._broken[law.name]

    def _check(self, law: Law) -> dict[str, Breach]:
        if not law.applies_to(self.subject):
            return {}
        needed = [self.broken(_LAWS[need]) for need in law.needs]
        if any(needed):
            return {name: breach for each in needed for name, breach in each.items()}
        try:
            law.function(self.subject)
        except BreachError as error:
            return {law.name: Breach(law, *error.args)}
        except Exception as error:
            # Raised by the type's own code, or by TensorFlow. Only the first line is shown, because
            # the others may contain tensors.
            line = (str(error).strip().splitlines() or [""])[0]
            received = f"{type(error).__name__}: {line[:200]}".rstrip(": ")
            return {law.name: Breach(law, "no error", received)}
        return {}

    def error(self, chosen: Iterable[Law], note: str = ".") -> LawError | None:
        """Returns the error that lists the broken laws, or None if all hold."""
        found = {law.name: self.broken(law) for law in chosen}
        breaches = {name: breach for each in found.values() for name, breach in each.items()}
        if not breaches:
            return None
        unchecked = [name for name, broken in found.items() if broken and name not in broken]
        return LawError(self.subject.type_name, breaches.values(), unchecked, note)

    def check(self, chosen: Iterable[Law]) -> None:
        """Raises if one of the laws is broken.

        Raises:
            LawError: If a law is broken.
        """
        error = self.error(chosen)
        if error is not None:
            raise error
