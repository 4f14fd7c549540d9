"""UnionTensor: values of several variants, each row of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np
import tensorflow as tf

from extensor._types.union import check, conversion
from extensor._types.union.check import Rows
from extensor._types.union.rows import flat_codes, merge_variants, row_numbers, take, with_shape_of
from extensor._types.union.spec import UnionSpec
from extensor.authoring import (
    FrozenDict,
    as_tensor,
    assertions,
    batch_of,
    cut_rows,
    extension_type,
    integers,
    is_tensor_like,
    lossless,
    num_rows,
    static_num_rows,
)
from extensor.dispatch import OperatorsMixin
from extensor.errors import FieldError, RowError, StructureError
from extensor.typing import TensorLike

# Type checkers do not know that __init__ may assign the fields.
# pyright: reportAttributeAccessIssue=false


_SHOWN = 6

Op = Callable[..., Any]


@extension_type(name="extensor.types.UnionTensor")
class UnionTensor(OperatorsMixin):
    """Values of several variants, each row of one of them: a number or a text or a record.

    A code for each row says which variant it is. A variant has its own rows only, in their order,
    so nothing is stored for rows of other variants.

    Args:
        codes: The number of the variant of each row: integers of any shape, or a RaggedTensor.
        variants: The rows of each variant by name, in the order of the codes: a tensor,
            RaggedTensor, StructuredTensor, MaskedTensor, or a value of any type that stacks.
        names: The names of the variants in the order of the codes. Default: as in `variants`.
        validate: Whether a graph of TensorFlow gets assertions that check the arguments. Eager
            arguments are always checked, in NumPy.

    Raises:
        RowError: If a code is not the number of a variant (also an IndexError).
        StructureError: If a variant has not one row for each of its codes (also a ValueError).
        DTypeError: If the codes are not integers (also a TypeError).

    >>> import extensor as xt
    >>> amounts = xt.types.UnionTensor([0, 1, 0], {"grams": [500.0, 250.0], "text": ["a pinch"]})
    >>> amounts
    <UnionTensor shape=(3,) {grams: float32, text: string} [500.0, b'a pinch', 250.0]>
    >>> amounts.match({"grams": lambda g: g / 1000.0, "text": lambda t: 0.0}).numpy()
    array([0.5 , 0.  , 0.25], dtype=float32)
    """

    # The types that a handler accepts as other operands; other types handle the call themselves.
    __tf_dispatch_types__ = (tf.Tensor, tf.RaggedTensor)

    Spec = UnionSpec

    codes: Any
    """The number of the variant of each row: int8, of the shape of the union."""
    variants: Mapping[str, Any]
    """The rows of each variant: `[rows of this variant, ...]` each."""
    names: tuple[str, ...]
    """The names of the variants, in the order of the codes."""

    def __init__(
        self,
        codes: TensorLike | tf.RaggedTensor,
        variants: Mapping[str, Any],
        names: Iterable[str] | None = None,
        *,
        validate: bool = False,
    ) -> None:
        check.expect_names(variants, list(variants) if names is None else list(names))
        self.names = tuple(variants if names is None else names)
        self.variants = {name: _rows(variants[name], name) for name in self.names}
        codes = self.codes = _codes(codes, self.names, self.variants)
        if validate and not tf.executing_eagerly():
            checks = check.in_graph(flat_codes(codes), self.names, self.variants)
            with tf.control_dependencies(assertions("UnionTensor", checks)):
                self.codes = tf.nest.map_structure(tf.identity, codes, expand_composites=True)

    def __post_init__(self) -> None:
        # xt.replace may pass lists.
        self.codes = _codes(self.codes, self.names, self.variants)
        self.variants = {name: _rows(self.variants[name], name) for name in self.names}
        check.expect_counts(self.codes, self.names, self.variants)

    @classmethod
    def _of_parts(
        cls,
        codes: TensorLike | tf.RaggedTensor,
        variants: Mapping[str, Any],
        names: tuple[str, ...],
    ) -> UnionTensor:
        """Returns a union from parts that match. Runs no op and checks nothing."""
        self = object.__new__(cls)
        self.__dict__.update(codes=codes, variants=FrozenDict(variants), names=names)
        return self

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the codes."""
        return self.codes.shape

    @property
    def rank(self) -> int | None:
        """The number of dimensions of the codes."""
        return self.codes.shape.rank

    # Variants.

    def is_variant(self, name: str) -> tf.Tensor | tf.RaggedTensor:
        """Returns a bool tensor of the shape of the union, True for the rows of a variant.

        Args:
            name: The name of the variant.

        Raises:
            FieldError: If there is no such variant (also a KeyError).

        >>> import extensor as xt
        >>> union = xt.types.UnionTensor.from_values([1, "a", 2])
        >>> union.is_variant("int").numpy()
        array([ True, False,  True])
        """
        if name not in self.variants:
            expected = f"one of the variants {', '.join(self.names)}"
            raise FieldError("UnionTensor.is_variant", expected, repr(name), "Check the spelling.")
        code = tf.constant(self.names.index(name), tf.int8)
        if isinstance(self.codes, tf.RaggedTensor):
            return self.codes.with_flat_values(tf.equal(self.codes.flat_values, code))
        return tf.equal(self.codes, code)

    def match(
        self,
        functions: Mapping[str, Callable[[Any], Any]],
        default: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Returns the result of one function for each variant, in the order of the rows.

        Args:
            functions: The function of each variant by name. It gets all rows of the variant, as in
                `variants`, and returns a value with one row for each, or one number or string for
                all.
            default: The function of the variants that are not in `functions`.

        Returns:
            A value whose shape begins with the shape of the union: a tensor if all results are
            tensors of one dtype and inner shape, records if all are records of the same fields,
            and likewise for other types. Else a UnionTensor of the results.

        Raises:
            FieldError: If a variant has no function, or a name is no variant (also a KeyError).
            StructureError: If a result has more or fewer rows (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> union = xt.types.UnionTensor.from_values([1, "abc", 2])
        >>> union.match({"int": lambda n: n * 10, "string": tf.strings.length}).numpy()
        array([10,  3, 20], dtype=int32)
        >>> union.match({"int": lambda n: n / 2}, default=tf.strings.upper)
        <UnionTensor shape=(3,) {int: float64, string: string} [0.5, b'ABC', 1.0]>
        """
        for name in functions:
            if name not in self.variants:
                raise _wrong(self, f"a function for {name!r}", "Check the spelling.")
        missing = [name for name in self.names if name not in functions]
        if missing and default is None:
            raise _wrong(
                self, f"no function for {', '.join(missing)}", "Add one, or pass default=."
            )
        results = [functions.get(name, default)(self.variants[name]) for name in self.names]  # pyright: ignore[reportOptionalCall]
        dtypes = {result.dtype for result in results if isinstance(result, tf.Tensor)}
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        rows = [
            _rows_of_result(name, result, dtype, self.variants[name])
            for name, result in zip(self.names, results, strict=True)
        ]
        if _is_one_type(rows):
            return with_shape_of(merge_variants(rows, flat_codes(self.codes)), self.codes)
        return self._of_parts(self.codes, dict(zip(self.names, rows, strict=True)), self.names)

    # Conversion.

    @classmethod
    def from_values(cls, values: Iterable[Any], spec: UnionSpec | None = None) -> UnionTensor:
        """Returns a union of Python values.

        Args:
            values: Numbers, strings, booleans, None, lists and dicts, and all others that
                `xt.struct.constant` takes.
            spec: A `UnionTensor.Spec`. Default: one variant for each kind of value, in the order
                of the values, with their dtypes in `xt.struct.constant(..., conflicts="union")`:
                `bool`, `int` or `float` for all numbers, `string`, `list`, `list2` for lists of
                lists, `record`, `date`, `datetime`, ...; and last `null`.

        Returns:
            A union of shape `[number of values]`.

        Raises:
            DTypeError: If a value is of another type, or fits no variant (also a TypeError).
            NullError: If a value inside of a value is None or missing (also a ValueError).

        >>> import extensor as xt
        >>> union = xt.types.UnionTensor.from_values([1, "a", {"x": 2}, None])
        >>> union.names
        ('int', 'string', 'record', 'null')
        >>> union.to_py()
        [1, b'a', {'x': 2}, None]
        """
        values = list(values)
        if spec is not None:
            return spec.cast(values)
        codes, variants = conversion.from_values(values)
        if not variants:
            fix = "Pass the spec: without values, the variants are not known."
            raise StructureError("UnionTensor.from_values", "at least one value", "no values", fix)
        return cls._of_parts(tf.constant(codes), variants, tuple(variants))

    def to_py(self) -> Any:
        """Returns the values as numbers, bytes, lists and dicts. Needs eager execution.

        >>> import extensor as xt
        >>> xt.types.UnionTensor([[0, 1]], {"number": [7], "text": ["a"]}).to_py()
        [[7, b'a']]
        """
        return conversion.to_py(self)

    @classmethod
    def batch(cls, unions: Iterable[UnionTensor]) -> UnionTensor:
        """Returns a batch of unions of the same variants.

        Raises:
            StructureError: If `unions` is empty, or the variants differ (also a ValueError).

        >>> import extensor as xt
        >>> union = xt.types.UnionTensor.from_values([1, "a"])
        >>> xt.types.UnionTensor.batch([union[0], union[1]]).to_py()
        [1, b'a']
        """
        return batch_of(cls, list(unions))

    # Rows.

    def __getitem__(self, key: Any) -> UnionTensor:
        """Returns one value, as a union of shape `[]`, or a union of some rows.

        Args:
            key: A position, slice, `...`, `tf.newaxis`, or a tuple of these, as for a tensor.

        Raises:
            RowError: If a position is out of range (also an IndexError).
        """
        keys = key if isinstance(key, tuple) else (key,)
        first = keys[0] if keys else None
        size = self.shape[0] if self.shape.rank else 0
        is_outside = isinstance(first, int) and size is not None and not -size <= first < size
        if is_outside:
            expected = f"a position from {-size} to {size - 1}" if size else "no position"
            fix = f"There are {size} rows." if self.shape.rank else "This is a single value."
            raise RowError("UnionTensor[...]", expected, str(first), fix)
        return take(self, row_numbers(self.codes)[key])

    # A field of this type in lists of records: the codes are cut, and the variants stay flat.

    def __tf_cut_rows__(self, row_splits: tf.Tensor) -> UnionTensor:
        """Returns this union cut into rows: with one more, ragged, outer dimension."""
        codes = cut_rows(self.codes, row_splits)
        return self._of_parts(codes, self.variants, self.names)

    def __tf_uncut_rows__(self) -> tuple[UnionTensor, Any] | None:
        """Returns the union before it was cut into rows, and the row splits; None if it was not."""
        codes = self.codes
        if not isinstance(codes, tf.RaggedTensor):
            return None
        return self._of_parts(codes.values, self.variants, self.names), codes.row_splits

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {_kind(self.variants[name])}" for name in self.names)
        text = f"<UnionTensor shape={self.shape} {{{kinds}}}"
        flat = flat_codes(self.codes)
        if not hasattr(flat, "numpy"):
            return f"{text}>"
        if isinstance(self.codes, tf.RaggedTensor):
            return f"{text}>"
        shown: Any = self if self.shape.rank == 0 else self[:_SHOWN]
        rest = self.shape.rank and self.shape[0] > _SHOWN
        values = repr(shown.to_py())
        return f"{text} {values[:-1] + ', ...]' if rest else values}>"


def _kind(rows: Rows) -> str:
    dtype: Any = getattr(rows, "dtype", None)
    if isinstance(rows, tf.Tensor):
        return dtype.name + "".join(f"[{size}]" for size in rows.shape[1:])
    return type(rows).__name__


def _codes(
    codes: TensorLike | tf.RaggedTensor, names: tuple[str, ...], variants: Mapping[str, Any]
) -> tf.Tensor | tf.RaggedTensor:
    """Returns type codes as an int8 tensor or RaggedTensor."""
    if not isinstance(codes, tf.RaggedTensor):
        is_int8 = getattr(codes, "dtype", None) in (tf.int8, np.int8)
        codes = tf.convert_to_tensor(codes if is_int8 else integers(codes, "UnionTensor.codes"))
    if codes.dtype == tf.int8:
        return codes
    check.expect_counts(codes, names, variants)  # before numbers are cut to one byte
    return tf.cast(codes, tf.int8)


def _rows(rows: object, name: str) -> Rows:
    """Returns an extension value unchanged, and any other value as a tensor."""
    if is_tensor_like(rows) and not isinstance(rows, tf.Variable):
        return rows
    return as_tensor(cast("Any", rows), f"UnionTensor.variants[{name!r}]")


def _rows_of_result(name: str, result: Any, dtype: tf.DType | None, argument: Rows) -> Rows:
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
