"""One function for each variant, and their results in the order of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._types.union.check import Rows
from extensor._types.union.rows import flat_codes, merge_variants, with_shape_of
from extensor.authoring import is_tensor_like, lossless, num_rows, static_num_rows
from extensor.errors import FieldError, StructureError

if TYPE_CHECKING:
    from extensor._types.union.value import UnionTensor

Function = Callable[[Any], Any]


def match(
    union: UnionTensor, functions: Mapping[str, Function], default: Function | None
) -> Rows | UnionTensor:
    """Returns the results of `UnionTensor.match`."""
    for name in functions:
        if name not in union.variants:
            raise _wrong(union, f"a function for {name!r}", "Check the spelling.")
    missing = [name for name in union.names if name not in functions]
    if missing and default is None:
        raise _wrong(union, f"no function for {', '.join(missing)}", "Add one, or pass default=.")
    results = [functions.get(name, default)(union.variants[name]) for name in union.names]  # pyright: ignore[reportOptionalCall]
    dtypes = {result.dtype for result in results if isinstance(result, tf.Tensor)}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    rows = [
        _rows(name, result, dtype, union.variants[name])
        for name, result in zip(union.names, results, strict=True)
    ]
    if _is_one_type(rows):
        return with_shape_of(merge_variants(rows, flat_codes(union.codes)), union.codes)
    return union._of_parts(union.codes, dict(zip(union.names, rows, strict=True)), union.names)


def _rows(name: str, result: Any, dtype: tf.DType | None, argument: Rows) -> Rows:
    """Returns the result of a function with one row for each row of its argument."""
    if not is_tensor_like(result):
        result = tf.convert_to_tensor(lossless(result, dtype, f"UnionTensor.match: {name}"), dtype)
    if isinstance(result, tf.Tensor) and result.shape.rank == 0:
        return tf.fill(tf.reshape(num_rows(argument), [1]), result)
    given, expected = static_num_rows(result), static_num_rows(argument)
    if None not in (given, expected) and given != expected:
        fix = "The function gets all rows of the variant, and returns one row for each."
        text = f"a result of {expected} rows, as the argument has"
        raise StructureError(f"UnionTensor.match: {name}", text, f"{given} rows", fix)
    return result


def _is_one_type(rows: list[Any]) -> bool:
    """Returns whether results are parts of one value."""
    specs: list[Any] = [tf.type_spec_from_value(row) for row in rows]
    first = specs[0]
    if all(isinstance(row, tf.Tensor) for row in rows):
        return all(
            s.dtype == first.dtype and s.shape[1:].is_compatible_with(first.shape[1:])
            for s in specs
        )
    if len({type(spec) for spec in specs}) > 1:
        return False
    return all(first.most_specific_common_supertype([s]) is not None for s in specs[1:])


def _wrong(union: UnionTensor, received: str, fix: str) -> FieldError:
    expected = f"a function for each of the variants {', '.join(union.names)}"
    return FieldError("UnionTensor.match", expected, received, fix)
