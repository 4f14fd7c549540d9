"""MaskedTensor: values with a mask that is True where they are valid."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import tensorflow as tf

from extensor._types.masked import item
from extensor._types.masked.check import Values, expect_fit, static_shape, with_row_check
from extensor._types.masked.spec import MaskedSpec
from extensor.authoring import (
    as_tensor,
    cut_rows,
    extension_type,
    is_tensor_like,
    lossless,
    uncut_rows,
)
from extensor.dispatch import OperatorsMixin
from extensor.errors import DTypeError, MissingAttributeError, NullError, StructureError
from extensor.typing import DTypeLike, ShapeLike, TensorLike


@extension_type(name="extensor.types.MaskedTensor")
class MaskedTensor(OperatorsMixin, elementwise_equality=True):
    """Values with a mask that is True where they are valid.

    (In `numpy.ma` True means masked. `from_numpy` and `to_numpy` invert the mask.)

    TensorFlow's operations accept it like a tensor: elementwise operations keep the mask,
    reductions skip values that are not valid, and the gradient of these values is zero.

    The shape of the mask is a prefix of the shape of the values. So a mask can have one bool for
    each number, row, list of a ragged tensor (shape `[None, None]`, mask `[None]`), or record.

    Args:
        values: A tensor, or a value that converts to one; a RaggedTensor, StructuredTensor or any
            other value that stacks. Values that are not valid are ignored, and may be NaN. Lists
            that may be null, of items that may be null, are a MaskedTensor of a MaskedTensor.
        mask: bool, True where the values are valid. It is ragged if it has a bool for each item of
            ragged lists. Default: all are valid.

    Raises:
        StructureError: If the rows of the mask are not those of the values (also a ValueError).
            Where a graph does not know them, running it raises an InvalidArgumentError instead;
            `_of_parts` makes a value without this check.
        DTypeError: If the mask is not bool, or the values have a mask of no more dimensions (also
            a TypeError).

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> grams = xt.types.MaskedTensor([500.0, np.nan, 250.0], mask=[True, False, True])
    >>> grams / 1000.0
    <MaskedTensor shape=(3,) dtype=float32 [0.5 -- 0.25]>
    >>> tf.reduce_mean(grams).to_py()
    375.0
    >>> grams.fill(0.0).numpy()
    array([500.,   0., 250.], dtype=float32)
    """

    # The types that a handler accepts as other operands; other types handle the call themselves.
    __tf_dispatch_types__ = (tf.Tensor, tf.RaggedTensor)

    __pandas_priority__ = 5000  # more than that of a DataFrame: its operators call those of here

    Spec = MaskedSpec

    values: Any
    """The values: a tensor, RaggedTensor, StructuredTensor, ..."""
    mask: Any
    """True where the values are valid; its shape is a prefix of the shape of the values."""

    def __init__(self, values: object, mask: TensorLike | tf.RaggedTensor | None = None) -> None:
        values = _tensor_of(values, "values")
        self.values = values  # pyright: ignore[reportAttributeAccessIssue]
        mask = item.all_valid(values) if mask is None else _tensor_of(mask, "mask")
        if isinstance(values, MaskedTensor):
            _expect_outer(mask, values.mask)
        self.mask = mask  # pyright: ignore[reportAttributeAccessIssue]

    def __post_init__(self) -> None:
        # xt.replace may pass lists.
        for name, part in (("values", self.values), ("mask", self.mask)):
            if not is_tensor_like(part):
                setattr(self, name, _tensor_of(part, name))
        expect_fit(self.values, self.mask)
        mask = with_row_check(self.mask, self.values)
        self.mask = mask  # pyright: ignore[reportAttributeAccessIssue]

    @classmethod
    def _of_parts(cls, values: object, mask: TensorLike | tf.RaggedTensor) -> MaskedTensor:
        """Returns a tensor from parts that match. Runs no op and checks nothing."""
        self = object.__new__(cls)
        self.__dict__.update(values=values, mask=mask)
        return self

    @classmethod
    def _of_joined(cls, values: object, op: Any, masks: list[Any], axis: Any = 0) -> MaskedTensor:
        """Returns values that are joined by `tf.concat` or `tf.stack`, with their masks joined.

        Lists of lists may have one length in each of the values, and another one in the others.
        """
        first, sizes = masks[0], masks[0].shape[1:]
        are_same = sizes.is_fully_defined() and all(mask.shape[1:] == sizes for mask in masks)
        if axis == 0 and not are_same and isinstance(first, tf.Tensor) and uncut_rows(values):
            first = tf.RaggedTensor.from_tensor(first, ragged_rank=sizes.rank)
            masks = [first, *masks[1:]]
        return cls._of_parts(values, op(masks, axis))

    @classmethod
    def _with_late_mask(cls, values: object, make_mask: Callable[[], Any]) -> MaskedTensor:
        """Returns a tensor whose mask is made when it is first read. Checks nothing.

        Arrow keeps a mask as bits. Unpacking them takes longer than all other work for a column of
        numbers, and many masks are never read.

        Args:
            values: The values.
            make_mask: Returns a mask that matches, always the same one. It is called eagerly, also
                while a function is traced.
        """
        self = object.__new__(cls)
        self.__dict__.update(values=values, _make_mask=make_mask)
        return self

    if not TYPE_CHECKING:  # type checkers know all attributes

        def __getattr__(self, name: str) -> Any:
            """Returns the mask of a value from `_with_late_mask`; other attributes do not exist."""
            fields = self.__dict__
            if name == "numpy":
                expected = "a value without a mask"
                fix = "Call x.to_numpy(), an array of numpy.ma, or x.fill(value).numpy()."
                raise MissingAttributeError("MaskedTensor.numpy", expected, "a MaskedTensor", fix)
            if name != "mask" or "values" not in fields:
                raise _missing(self, name)
            make = fields.get("_make_mask")
            if make is not None:  # else another thread made the mask since it was looked up
                with tf.init_scope():
                    fields["mask"] = make()
                fields.pop("_make_mask", None)
            return fields["mask"]

    @classmethod
    def combined(cls, values: object, mask: tf.Tensor | tf.RaggedTensor) -> MaskedTensor:
        """Returns values with a mask, and, if they are masked already, valid where both masks are.

        Args:
            values: Any values, or a MaskedTensor.
            mask: True where the values are valid. Its shape is a prefix of the shape of the values,
                and of their own mask.

        Returns:
            A MaskedTensor. If the mask of the values has more dimensions, it is a MaskedTensor of
            a MaskedTensor: lists that may be null, of items that may be null.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> ages = xt.types.MaskedTensor([31, 0, 54], [True, False, True])
        >>> xt.types.MaskedTensor.combined(ages, tf.constant([True, True, False])).to_py()
        [31, None, None]
        """
        if isinstance(values, MaskedTensor) and values.mask.shape.rank == mask.shape.rank:
            return cls._of_parts(values.values, item.both(values.mask, mask))
        return cls._of_parts(values, mask)

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the values; for records, the shape of the records."""
        return static_shape(self.values)

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values, if they are tensors."""
        return self.values.dtype

    # Rows.

    def __tf_cut_rows__(self, row_splits: tf.Tensor) -> MaskedTensor:
        """Returns the values and the mask cut into rows; see `xt.authoring.cut_rows`."""
        values = cut_rows(self.values, row_splits)
        rows = uncut_rows(values)  # its row splits may have been cast
        splits = rows[1] if rows else row_splits
        if "mask" not in self.__dict__ and hasattr(splits, "numpy"):
            return MaskedTensor._with_late_mask(values, lambda: cut_rows(self.mask, splits))
        return MaskedTensor._of_parts(values, cut_rows(self.mask, splits))

    def __tf_uncut_rows__(self) -> tuple[MaskedTensor, Any] | None:
        """Returns the values and the mask before the cut; None if the mask is not ragged."""
        rows, masks = uncut_rows(self.values), uncut_rows(self.mask)
        if rows is None or masks is None:
            return None
        return MaskedTensor._of_parts(rows[0], masks[0]), rows[1]

    # Conversion.

    @classmethod
    def from_numpy(cls, array: np.ndarray[Any, Any]) -> MaskedTensor:
        """Returns a MaskedTensor from an array of `numpy.ma`, with the mask inverted.

        Args:
            array: A masked array, or a plain array, which is valid everywhere.

        >>> import numpy as np
        >>> import extensor as xt
        >>> xt.types.MaskedTensor.from_numpy(np.ma.masked_less([1, -1, 2], 0)).mask.numpy()
        array([ True, False,  True])
        """
        if not isinstance(array, np.ma.MaskedArray):
            return cls(array)
        return cls(np.ma.getdata(array), ~np.ma.getmaskarray(array))

    def to_numpy(self) -> np.ma.MaskedArray[Any, Any]:
        """Returns an array of `numpy.ma`, with the mask inverted.

        Raises:
            DTypeError: If the values are ragged, records or symbolic (also a TypeError).

        >>> import extensor as xt
        >>> xt.types.MaskedTensor([1, 2], [True, False]).to_numpy().sum().item()
        1
        """
        if not self._is_eager():
            expected = "an eager dense tensor"
            fix = (
                "Call x.to_py(), which lists values of all types, or x.fill(value), which has "
                "no mask. In a tf.function there are no arrays."
            )
            raise DTypeError("MaskedTensor.to_numpy", expected, type(self.values).__name__, fix)
        with tf.init_scope():  # a function may be traced meanwhile
            mask = item.element_mask(self.values, self.mask)
        return np.ma.array(self.values.numpy(), mask=~mask.numpy())  # pyright: ignore

    @classmethod
    def from_ragged(cls, ragged: tf.RaggedTensor, shape: ShapeLike | None = None) -> MaskedTensor:
        """Returns a RaggedTensor as padded dense values, with a mask that is False for padding.

        Args:
            ragged: A RaggedTensor.
            shape: The shape to pad to. Default: the length of the longest row.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> ragged = tf.ragged.constant([[1, 2], [], [3]])
        >>> xt.types.MaskedTensor.from_ragged(ragged).to_py()
        [[1, 2], [None, None], [3, None]]
        """
        mask = tf.ones_like(ragged, tf.bool)
        return cls._of_parts(ragged.to_tensor(shape=shape), mask.to_tensor(shape=shape))

    def to_ragged(self) -> tf.RaggedTensor:
        """Returns rows of only the valid values.

        Raises:
            StructureError: If the rank is less than 2 (also a ValueError).

        >>> import extensor as xt
        >>> masked = xt.types.MaskedTensor([[1, 2], [3, 4]], [[True, True], [False, True]])
        >>> masked.to_ragged()
        <tf.RaggedTensor [[1, 2], [4]]>
        """
        values, mask = self._tensor("to_ragged"), self.mask
        if values.shape.rank is None or values.shape.rank < 2:
            expected = "rank 2 or more"
            fix = "For a vector, call tf.boolean_mask(x.values, x.mask)."
            raise StructureError("MaskedTensor.to_ragged", expected, f"shape {values.shape}", fix)
        if isinstance(values, tf.RaggedTensor) or mask.shape.rank < 2:
            mask = item.element_mask(values, mask)
        return tf.ragged.boolean_mask(values, mask)

    def to_py(self) -> Any:
        """Returns numbers, lists and dicts, with None if not valid. Needs eager execution.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> lists = xt.types.MaskedTensor(tf.ragged.constant([[1, 2], [], []]), [True, True, False])
        >>> lists.to_py()
        [[1, 2], [], None]
        """
        return item.to_py(self.values, self.mask)

    # Valid values.

    def fill(self, value: object) -> Any:
        """Returns the values without a mask, with another value where they are not valid.

        Args:
            value: A number, a string, or a tensor that broadcasts. To replace whole lists or
                records, pass one, such as `[0, 0]` or `{"title": ""}`. A number replaces each item
                of a list.

        Returns:
            A value of the type of `values`. The gradient of replaced values is zero. Of lists that
            may be null, with items that may be null, a number replaces both: the items, and those
            of null lists, which are mostly empty. A list replaces null lists only.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> xt.types.MaskedTensor([1, 2], [True, False]).fill(0)
        <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 0], dtype=int32)>
        >>> lists = xt.types.MaskedTensor(tf.ragged.constant([[1, 2], []]), [True, False])
        >>> lists.fill([7])
        <tf.RaggedTensor [[1, 2], [7]]>
        """
        values, mask = item.values_to_fill(self.values, self.mask, value)
        if item.is_tensor(values):
            value = lossless(value, values.dtype, "MaskedTensor.fill")
        if isinstance(values, tf.Tensor):
            return item.where(item.expand_mask(values, mask), values, value)
        if item.is_tensor(values) and item.rank_of(value) == 0:
            return item.fill(mask, values, value)
        return item.fill_items(values, mask, value)

    def unmasked(self, path: str = "MaskedTensor") -> Any:
        """Returns the values without the mask; nothing may be null.

        `tf.convert_to_tensor` does the same, and Keras calls it in losses and metrics.

        Args:
            path: The name of the value, for the error.

        Raises:
            NullError: If something is null; the error counts the nulls (also a ValueError). In a
                graph that does not know the mask, an assertion with the same message fails when
                the graph runs.

        >>> import extensor as xt
        >>> xt.types.MaskedTensor([1, 2], [True, True]).unmasked()
        <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
        >>> xt.types.MaskedTensor([1, 2], [True, False]).unmasked()
        Traceback (most recent call last):
        extensor.errors.NullError: MaskedTensor: expected no nulls, got 1 null. ...
        """
        values = self.values
        if isinstance(values, MaskedTensor):
            values = values.unmasked(path)
        return item.without_nulls(values, self.mask, path)

    def count(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> tf.Tensor:
        """Returns the number of valid values, rows or records: the True elements of the mask.

        Args:
            axis: The dimensions of the mask to count along; None for all.
            keepdims: Whether to keep reduced dimensions with size 1.

        Returns:
            An int64 tensor.

        >>> import extensor as xt
        >>> xt.types.MaskedTensor([1, 2], [True, False]).count().numpy().item()
        1
        """
        return tf.reduce_sum(tf.cast(self.mask, tf.int64), axis, keepdims)

    def __keras_mask__(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the values, zero where they are not valid, and a mask for Keras.

        For values of rank 3 or more, the mask is True for each step with any valid value.
        """
        values = item.fill(self.mask, self._tensor("__keras_mask__"), _zero(self.dtype))
        mask = self.mask
        if isinstance(values, tf.RaggedTensor):
            mask = item.element_mask(values, mask).to_tensor()
            values = values.to_tensor()
        if mask.shape.rank is not None and mask.shape.rank > 2:
            mask = tf.reduce_any(mask, list(range(2, mask.shape.rank)))
        return values, mask

    def _tensor(self, method: str) -> tf.Tensor | tf.RaggedTensor:
        if not item.is_tensor(self.values):
            expected = "values that are a dense or ragged tensor"
            fix = "Select a field: masked['title'] has the mask of the records."
            raise DTypeError(f"MaskedTensor.{method}", expected, type(self.values).__name__, fix)
        return self.values

    # A conversion would lose the mask. TensorFlow calls the first of these, because an array has no
    # gradient.

    def __tf_tensor__(self, dtype: DTypeLike | None = None, name: str | None = None) -> tf.Tensor:
        """Raises an error; called by TensorFlow, by operations without a handler."""
        expected = "a tensor, or a value that converts to one"
        fix = (
            "Call x.fill(value), which has no mask; in a model, xt.keras.Masked keeps "
            "it. Authors of an operation register a handler for it with xt.dispatch.implements."
        )
        raise DTypeError("MaskedTensor", expected, "a MaskedTensor", fix)

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        # np.asarray of an array of numpy.ma returns the hidden values too.
        array = self.to_numpy()
        count = int(np.ma.count_masked(array))
        if count:
            expected = "values without nulls, because an array has no mask"
            received = f"{count} nulls" if count > 1 else "1 null"
            fix = "Call x.fill(value), or x.to_numpy(), an array of numpy.ma, which keeps the mask."
            raise NullError("MaskedTensor", expected, received, fix)
        data = np.ma.getdata(array)
        return np.array(data, dtype) if copy else np.asarray(data, dtype)

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def _is_eager(self) -> bool:
        """Returns whether the values are a dense tensor that is known, with its mask."""
        is_dense = isinstance(self.values, tf.Tensor)
        return is_dense and hasattr(self.values, "numpy") and hasattr(self.mask, "numpy")

    def __repr__(self) -> str:
        dtype: Any = getattr(self.values, "dtype", None)
        kind = "" if isinstance(self.values, tf.Tensor) else f" of {type(self.values).__name__}"
        text = f"<MaskedTensor{kind} shape={self.shape}"
        text += f" dtype={dtype.name}" if isinstance(dtype, tf.DType) else ""
        if self._is_eager():
            text += f" {self.to_numpy()!s}"  # format() of a masked scalar shows the masked number
        elif is_eager(self):
            with contextlib.suppress(Exception):  # the code of other types; a repr never fails
                text += f" {_to_text(self)}"
        return f"{text}>"


Op = Callable[..., Any]
Operand = MaskedTensor | tf.Tensor
"""An argument of an operation: a tensor may be any value that converts to one."""
Axes = int | Sequence[int] | tf.Tensor | None


def _expect_outer(mask: tf.Tensor | tf.RaggedTensor, inner: tf.Tensor | tf.RaggedTensor) -> None:
    """Raises unless a mask has fewer dimensions than the mask of its values."""
    ranks = mask.shape.rank, inner.shape.rank
    if None not in ranks and ranks[0] >= ranks[1]:
        expected = "values without a mask, or with a mask of more dimensions"
        received = f"a MaskedTensor with a mask of shape {inner.shape}"
        fix = "Combine the masks: MaskedTensor(x.values, x.mask & mask)."
        raise DTypeError("MaskedTensor.values", expected, received, fix)


def _tensor_of(value: object, name: str) -> Values:
    """Returns an extension value unchanged, and any other value as a tensor."""
    if is_tensor_like(value) and not isinstance(value, tf.Variable):
        return value
    path = f"MaskedTensor.{name}"
    if name == "mask" and isinstance(value, (list, tuple)) and not np.size(cast("Any", value)):
        return as_tensor(value, path, tf.bool)  # an empty list has no dtype
    return as_tensor(cast("Any", value), path)


def _missing(masked: MaskedTensor, name: str) -> AttributeError:
    """Returns the error for an attribute; for masked records, that of the records."""
    own = type(masked).__name__
    values = masked.__dict__.get("values")
    if not hasattr(type(values), name):
        try:
            getattr(values, name)
        except MissingAttributeError as error:
            text = str(error).replace(type(values).__name__, own, 1)
            found = MissingAttributeError(
                text.replace(". Write ", ". With records = masked.values, without mask, write ")
            )
            found.name = name
            return found
        except Exception:  # of another library
            pass
    return AttributeError(f"{own!r} object has no attribute {name!r}")


def _zero(dtype: tf.DType) -> str | np.ndarray[Any, Any]:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)


_SHOWN = 3  # items at the beginning and at the end of a list


def is_eager(value: MaskedTensor) -> bool:
    """Returns whether all tensors of a value are known, and its rows can be listed."""
    parts = tf.nest.flatten(value, expand_composites=True)
    return value.shape.rank is not None and all(hasattr(part, "numpy") for part in parts)


def _to_text(value: MaskedTensor) -> str:
    """Returns the first and last rows of an eager MaskedTensor as text."""
    dtype: Any = getattr(value, "dtype", None)
    kind = dtype.as_numpy_dtype if isinstance(dtype, tf.DType) and dtype.is_floating else None
    if not value.shape.rank:
        return _text(value.to_py(), kind)
    count = int(tf.shape(value.mask, tf.int64)[0]) if value.mask.shape.rank else 1
    if count <= 2 * _SHOWN:
        return _text(value.to_py(), kind)
    ends = [_text(rows.to_py(), kind)[1:-1] for rows in (value[:_SHOWN], value[-_SHOWN:])]
    return f"[{ends[0]}, ..., {ends[1]}]"


def _text(plain: object, kind: Callable[[float], Any] | None) -> str:
    """Returns numbers, lists and dicts as text; floats as their dtype writes them."""
    if plain is None:
        return "--"
    if isinstance(plain, (list, tuple)):
        items = cast("list[Any]", plain)
        texts = [_text(item, kind) for item in items[:_SHOWN]]
        texts += ["..."] if len(items) > 2 * _SHOWN else []
        last = items[-_SHOWN:] if len(items) > 2 * _SHOWN else items[_SHOWN:]
        return "[" + ", ".join([*texts, *(_text(item, kind) for item in last)]) + "]"
    if isinstance(plain, Mapping):
        fields = cast("Mapping[str, Any]", plain)
        return "{" + ", ".join(f"{name}: {_text(v, kind)}" for name, v in fields.items()) + "}"
    if isinstance(plain, float) and kind is not None:
        return str(kind(plain))
    return repr(plain)
