"""What a law is, how it is judged, and how a breach of it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from extensor._testing.subject import Subject
from extensor.errors import LawError

_LAWS: dict[str, Law] = {}


@dataclass(frozen=True)
class Breach:
    """How a type breaks a law: what the law expects, what was received, and the mend."""

    law: Law
    expected: str
    received: str

    def __str__(self) -> str:
        return (
            f"  {self.law.name}: {self.law.sentence}\n"
            f"    expected {self.expected}, got {self.received}. {self.law.mend}"
        )


class BreachError(Exception):
    """What a law's function raises: what it expected, and what it received."""

    def __init__(self, expected: str, received: str) -> None:
        super().__init__(expected, received)
        self.expected, self.received = expected, received


def expect(holds: object, expected: str, received: object) -> None:
    """Raises BreachError unless something holds."""
    if not holds:
        raise BreachError(expected, str(received))


@dataclass(frozen=True)
class Law:
    """One law, which can be called on a value, or on several values of one type.

    Attributes:
        name: Its name, such as `components-rebuild-value`.
        sentence: What it says.
        mend: What to do about a type that breaks it.
        function: Judges the subject of a test; raises if it breaks the law.
        needs: The names of the laws without which this one says nothing.
        applies: Whether the law speaks of such a subject at all.

    >>> [law] = [law for law in xt.testing.laws() if law.name == "hash-follows-equality"]
    >>> law.sentence
    'Equal specs have equal hashes.'
    >>> law(tf.ragged.constant([[1, 2], [3]]))
    """

    name: str
    sentence: str
    mend: str
    function: Callable[[Subject], None]
    needs: tuple[str, ...] = ()
    applies: Callable[[Subject], bool] = lambda subject: True

    def speaks_of(self, subject: Subject) -> bool:
        """Returns whether the law is asked of a subject, as it is of one that fails to say so."""
        try:
            return self.applies(subject)
        except Exception:  # the type's own code; a law will tell it
            return True

    def __call__(self, value_or_values: Any) -> None:
        """Raises unless the law holds for a value, or for several values of one type.

        Raises:
            LawError: If it is broken, or one that it rests on (also an AssertionError).
        """
        Trial(Subject(value_or_values)).check([self])


def law(
    name: str,
    *needs: str,
    mend: str,
    applies: Callable[[Subject], bool] = lambda subject: True,
) -> Callable[[Callable[[Subject], None]], Law]:
    """Makes a function a law: its docstring is the sentence.

    Args:
        name: The law's name.
        *needs: The names of the laws that it rests on.
        mend: What to do about a type that breaks it.
        applies: Whether it speaks of a subject at all.
    """

    def enter(function: Callable[[Subject], None]) -> Law:
        sentence = " ".join((function.__doc__ or "").split())
        _LAWS[name] = Law(name, sentence, mend, function, needs, applies)
        return _LAWS[name]

    return enter


def laws() -> list[Law]:
    """Returns every law, each after those that it rests on.

    One rule of the text is not among them: that values are immutable cannot be checked in general.

    >>> for law in xt.testing.laws()[:2]:
    ...     print(f"{law.name}: {law.sentence}")
    spec-has-repr: A spec can be written down: its repr is a text.
    spec-is-stable: A value gives the same TypeSpec each time it is asked.
    """
    ordered: dict[str, Law] = {}

    def enter(law: Law) -> None:
        for need in law.needs:
            enter(_LAWS[need])
        ordered[law.name] = law

    for law in _LAWS.values():
        enter(law)
    return list(ordered.values())


class Trial:
    """Judges a subject by laws, each once, and no law that rests on a broken one."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        # None: the law holds. A Breach: it does not. The names of broken laws: it rests on them.
        self._verdicts: dict[str, Breach | frozenset[str] | None] = {}

    def verdict(self, law: Law) -> Breach | frozenset[str] | None:
        """Returns None if a law holds or does not apply, its breach, or what kept it unjudged."""
        if law.name not in self._verdicts:
            self._verdicts[law.name] = self._judge(law)
        return self._verdicts[law.name]

    def _judge(self, law: Law) -> Breach | frozenset[str] | None:
        if not law.speaks_of(self.subject):
            return None
        roots: set[str] = set()
        for need in law.needs:
            verdict = self.verdict(_LAWS[need])
            if verdict is not None:
                roots.update([need] if isinstance(verdict, Breach) else verdict)
        if roots:
            return frozenset(roots)
        try:
            law.function(self.subject)
        except BreachError as broken:
            return Breach(law, broken.expected, broken.received)
        except Exception as error:
            # The type's own code, or TensorFlow's in trouble with it. The first line: the others
            # may hold tensors.
            words = (str(error).strip().splitlines() or [""])[0]
            return Breach(law, "no error", f"{type(error).__name__}: {words[:200]}".rstrip(": "))
        return None

    def error(self, chosen: Iterable[Law], note: str = ".") -> LawError | None:
        """Returns the error that tells which laws are broken, or None if all hold."""
        breaches: dict[str, Breach] = {}
        unjudged: list[str] = []
        for law in chosen:
            verdict = self.verdict(law)
            if isinstance(verdict, Breach):
                breaches[law.name] = verdict
            elif verdict is not None:
                unjudged.append(law.name)
                for root in verdict:
                    breach = self.verdict(_LAWS[root])
                    assert isinstance(breach, Breach)
                    breaches[root] = breach
        if not breaches:
            return None
        return LawError(self.subject.type_name, breaches.values(), unjudged, note)

    def check(self, chosen: Iterable[Law]) -> None:
        """Raises unless all of some laws hold.

        Raises:
            LawError: Otherwise.
        """
        error = self.error(chosen)
        if error is not None:
            raise error
