"""Products of LabeledTensors, which sum over the axes that both have."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from extensor._types.labeled import naming
from extensor._types.labeled.align import check_sizes, overrides_operations
from extensor._types.labeled.value import LabeledTensor, Operand
from extensor.dispatch import implements
from extensor.errors import StructureError


def _dot(a: Operand, b: Operand, summed: Sequence[str] | None, path: str) -> LabeledTensor:
    """Returns the product of two tensors, summed over `summed`, or over all shared axes if None."""
    if overrides_operations(a) or overrides_operations(b):
        return NotImplemented
    for one, other in ((a, b), (b, a)):
        if not isinstance(one, LabeledTensor):
            expected = f"a LabeledTensor, because the other operand has {naming.describe(other)}"
            fix = "Name its axes: xt.types.LabeledTensor(value, ['feature', 'unit'])."
            raise StructureError(path, expected, naming.describe(one), fix)
    a, b = check_sizes((a, b), path)
    shared = [name for name in a.axes if name in b.axes]
    if summed is None:
        summed = shared
    for name in summed:
        if name not in shared:
            expected = f"an axis that both have, {naming.describe(a)} and {naming.describe(b)}"
            fix = "Sum over an axis of only one tensor with tf.reduce_sum."
            raise StructureError(path, expected, repr(name), fix)
    every = tuple(dict.fromkeys((*a.axes, *b.axes)))
    kept = [name for name in every if name not in summed]
    letters = dict(zip(every, string.ascii_letters, strict=False))
    left, right, out = ("".join(letters[n] for n in axes) for axes in (a.axes, b.axes, kept))
    return a._of_parts(tf.einsum(f"{left},{right}->{out}", a.values, b.values), kept)


@implements(tf.matmul, on=LabeledTensor)
def matmul(a: Operand, b: Operand, *options: object) -> LabeledTensor:
    """Returns the product of two tensors, summed over all shared axes."""
    names = ("transpose_a", "transpose_b", "adjoint_a", "adjoint_b")
    given = [name for name, option in zip(names, options, strict=False) if option]
    if given:
        expected = "False for transpose_* and adjoint_*, because axes are matched by name"
        fix = "Omit it; for an adjoint, pass tf.math.conj(x)."
        raise StructureError("tf.matmul", expected, f"{given[0]}=True", fix)
    return _dot(a, b, None, "tf.matmul")


@implements(tf.tensordot, on=LabeledTensor)
def tensordot(a: Operand, b: Operand, axes: str | Sequence[str], *_: object) -> LabeledTensor:
    """Returns the product of two tensors, summed over the named axes."""
    axes = [axes] if isinstance(axes, str) else axes
    is_names = isinstance(axes, (list, tuple)) and all(isinstance(name, str) for name in axes)
    if not is_names:
        expected = "names of axes that both tensors have"
        raise StructureError("tf.tensordot", expected, repr(axes), "Write axes=['feature'].")
    return _dot(a, b, axes, "tf.tensordot")


@implements(tf.einsum, on=LabeledTensor)
def einsum(equation: str, *inputs: Operand, **options: object) -> LabeledTensor:
    """Returns the einsum of an equation in which each letter stands for one axis."""
    terms, arrow, out = equation.replace(" ", "").partition("->")
    subscripts = terms.split(",")
    if "." in equation or not arrow or len(subscripts) != len(inputs):
        expected = f"an equation with a letter for each axis, '->', and {len(inputs)} term(s)"
        raise StructureError("tf.einsum", expected, repr(equation), "Write 'wf,fu->wu'.")
    names = _names_of_letters(subscripts, inputs)
    for letter in out:
        if letter not in names:
            expected = f"a LabeledTensor with the axis {letter!r} of the result"
            received = "only tensors without names for this axis"
            fix = "Pass a LabeledTensor for the tensor that has this axis."
            raise StructureError("tf.einsum", expected, received, fix)
    labeled = check_sizes([x for x in inputs if isinstance(x, LabeledTensor)], "tf.einsum")
    rest = iter(labeled)
    tensors = [next(rest).values if isinstance(x, LabeledTensor) else x for x in inputs]
    values = tf.einsum(equation, *tensors, **options)
    return labeled[0]._of_parts(values, [names[letter] for letter in out])


def _names_of_letters(subscripts: Sequence[str], inputs: Sequence[Any]) -> dict[str, str]:
    """Returns the axis name of each letter of an equation."""
    names: dict[str, str] = {}
    letters: dict[str, str] = {}
    for term, x in zip(subscripts, inputs, strict=True):
        if not isinstance(x, LabeledTensor):
            continue
        if len(term) != len(x.axes):
            expected, received = f"one letter for each of the {naming.describe(x)}", repr(term)
            raise StructureError("tf.einsum", expected, received, "Write one letter for each axis.")
        for letter, name in zip(term, x.axes, strict=True):
            if names.setdefault(letter, name) != name or letters.setdefault(name, letter) != letter:
                expected = "the same letter for the same name in all terms"
                received = (
                    f"{letter!r} for {name!r}, beside {names[letter]!r} and "
                    f"{letters.get(name, letter)!r}"
                )
                fix = "Rename an axis, or change the equation."
                raise StructureError("tf.einsum", expected, received, fix)
    return names
