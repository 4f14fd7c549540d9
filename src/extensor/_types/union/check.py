"""Checks that type codes match the rows of the variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import tensorflow as tf

from extensor._types.masked.value import MaskedTensor
from extensor.authoring import known_arrays, num_rows, static_num_rows
from extensor.errors import DTypeError, FieldError, RowError, StructureError

if TYPE_CHECKING:
    from extensor import StructuredTensor
    from extensor._types.union.value import UnionTensor

Codes = tf.Tensor | tf.RaggedTensor

Rows = Union[tf.Tensor, tf.RaggedTensor, MaskedTensor, "StructuredTensor", "UnionTensor"]
"""The rows of a variant: a tensor, records, or another value that stacks."""

MAX_VARIANTS = 128
"""A type code is an int8, as in Arrow."""


def expect_names(variants: object, names: Iterable[str]) -> None:
    """Raises an error unless there are variants, and `names` are their names.

    Raises:
        DTypeError: If the variants are not a mapping by names (also a TypeError).
        StructureError: If there is no variant, or more than 128 (also a ValueError).
        FieldError: If `names` are other names (also a KeyError).
    """
    if not isinstance(variants, Mapping) or not all(isinstance(name, str) for name in variants):
        expected, received = "a mapping from names to rows", "names that are not strings"
        if not isinstance(variants, Mapping):
            received = type(variants).__name__
        fix = 'Write {"number": [1.5], "text": ["a", "b"]}.'
        raise DTypeError("UnionTensor.variants", expected, received, fix)
    if not 0 < len(variants) <= MAX_VARIANTS:
        expected = f"1 to {MAX_VARIANTS} variants"
        fix = "Without variants there is no value; a type code has one byte."
        raise StructureError("UnionTensor.variants", expected, f"{len(variants)}", fix)
    if sorted(names) != sorted(variants):
        expected = f"the names of the variants: {', '.join(variants)}"
        fix = "Leave names out: the order of the variants is the order of the codes."
        raise FieldError("UnionTensor.names", expected, ", ".join(map(str, names)), fix)


def expect_counts(codes: Codes, names: tuple[str, ...], variants: Mapping[str, Any]) -> None:
    """Raises an error unless each variant has one row for each of its codes; not in a graph.

    Args:
        codes: The type codes, of any shape.
        names: The names of the variants, in the order of the codes.
        variants: The rows of each variant.

    Raises:
        RowError: If a code is not the number of a variant (also an IndexError).
        StructureError: If a variant has more or fewer rows (also a ValueError).
    """
    flat: Any = codes.flat_values if isinstance(codes, tf.RaggedTensor) else codes
    arrays = known_arrays(flat)
    if arrays is None:
        return
    numbers = arrays[0].reshape(-1)
    wrong = (numbers < 0) | (numbers >= len(names))
    if wrong.any():
        first = int(np.argmax(wrong))
        expected = f"a code from 0 to {len(names) - 1}, for the variants {', '.join(names)}"
        fix = "A code is the position of the variant among the variants."
        raise RowError(f"UnionTensor.codes, record {first}", expected, str(numbers[first]), fix)
    for code, (name, count) in enumerate(
        zip(names, np.bincount(numbers, minlength=len(names)).tolist(), strict=True)
    ):
        rows = static_num_rows(variants[name])
        if rows is not None and rows != count:
            expected = f"{count} row{'s' * (count != 1)}, one for each code {code}"
            received = f"{rows} row{'s' * (rows != 1)}"
            fix = "A variant has the rows of its own codes only, in their order."
            raise StructureError(f"UnionTensor.variants[{name!r}]", expected, received, fix)


def in_graph(
    flat: tf.Tensor, names: tuple[str, ...], variants: Mapping[str, Any]
) -> list[tuple[Any, str]]:
    """Returns the same checks as conditions and texts for a graph."""
    size = tf.cast(len(names), tf.int32)
    numbers = tf.cast(flat, tf.int32)
    checks = [
        (
            tf.reduce_all((numbers >= 0) & (numbers < size)),
            f"codes must be from 0 to {len(names) - 1}",
        )
    ]
    for code, name in enumerate(names):
        count = tf.reduce_sum(tf.cast(tf.equal(numbers, code), tf.int64))
        checks.append(
            (tf.equal(count, num_rows(variants[name])), f"{name!r} must have a row for each code")
        )
    return checks
