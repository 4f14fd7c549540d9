"""MaskedTensor: values beside a mask that says which of them are valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from extensor import extension_type
from extensor._types.masked import item
from extensor._types.masked.check import expect_fit, static_shape
from extensor._types.masked.spec import MaskedSpec
from extensor.authoring import is_tensor_like, lossless
from extensor.dispatch import OperatorsMixin
from extensor.errors import DTypeError, StructureError


@extension_type(name="extensor.types.MaskedTensor")
class MaskedTensor(OperatorsMixin, elementwise_equality=True):
    """Values beside a mask that says which of them are valid: True = VALID.

    (In `numpy.ma` it is the other way round: there True means masked. `from_numpy` and `to_numpy`
    invert it.)

    TensorFlow's operations take it as they take a tensor: elementwise ones keep the mask,
    reductions leave out what is not valid, and what is not valid has no part in any gradient.

    The mask has the outer dimensions of the values, all or some of them. So it tells not only which
    numbers are valid, but also which rows, which lists of a ragged tensor (`[None, None]` with a
    mask of `[None]`), and which records.

    Args:
        values: A tensor, or what converts to one; a RaggedTensor, StructuredTensor or any other
            value that stacks. What stands where it is not valid does not matter, and may be NaN.
        mask: bool, True where the values are valid. Ragged where it tells which items of ragged
            lists are. Default: all are.

    Raises:
        StructureError: If the mask has another shape, as far as both are known; in a graph,
            `tf.ensure_shape` holds both to one (also a ValueError).
        DTypeError: If it is not of bools, or the values are an array with a mask (also a
            TypeError).

    >>> grams = xt.types.MaskedTensor([500.0, np.nan, 250.0], mask=[True, False, True])
    >>> grams / 1000.0
    <MaskedTensor shape=(3,) dtype=float32 [0.5 -- 0.25]>
    >>> tf.reduce_mean(grams).to_py()
    375.0
    >>> grams.fill(0.0).numpy()
    array([500.,   0., 250.], dtype=float32)
    """

    # What may stand beside it; other types are asked themselves.
    __tf_dispatch_types__ = (tf.Tensor, tf.RaggedTensor)

    Spec = MaskedSpec

    values: Any
    """The values: a tensor, RaggedTensor, StructuredTensor, ..."""
    mask: Any
    """True where the values are valid: of their shape, or of that of their outer dimensions."""

    def __init__(self, values: Any, mask: Any = None) -> None:
        values = _tensor_of(values, "values")
        self.values = values  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(values, MaskedTensor):
            raise DTypeError(
                path="MaskedTensor.values",
                expected="values without a mask",
                received="a MaskedTensor",
                mend="Combine the masks: MaskedTensor(x.values, x.mask & mask).",
            )
        mask = item.all_valid(values) if mask is None else _tensor_of(mask, "mask")
        self.mask = mask  # pyright: ignore[reportAttributeAccessIssue]

    def __post_init__(self) -> None:
        # Lists come here, too, where one field is replaced.
        for name, part in (("values", self.values), ("mask", self.mask)):
            if not is_tensor_like(part):
                setattr(self, name, _tensor_of(part, name))
        expect_fit(self.values, self.mask)

    @classmethod
    def of_parts(cls, values: Any, mask: Any) -> MaskedTensor:
        """Returns the tensor of parts that are known to fit. Runs no op and checks nothing."""
        self = object.__new__(cls)
        self.__dict__.update(values=values, mask=mask)
        return self

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape of the values; of records, of these."""
        return static_shape(self.values)

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values, if they are no records."""
        return self.values.dtype

    # From and to other types.

    @classmethod
    def from_numpy(cls, array: Any) -> MaskedTensor:
        """Returns an array of `numpy.ma`, its mask inverted: there True means masked.

        Args:
            array: A masked array, or a plain one, of which all is valid.

        >>> xt.types.MaskedTensor.from_numpy(np.ma.masked_less([1, -1, 2], 0)).mask.numpy()
        array([ True, False,  True])
        """
        return cls(np.ma.getdata(array), ~np.ma.getmaskarray(array))

    def to_numpy(self) -> Any:
        """Returns an array of `numpy.ma`, its mask inverted: there True means masked.

        Raises:
            DTypeError: If the values are ragged or records, or stand in a graph (also a TypeError).

        >>> xt.types.MaskedTensor([1, 2], [True, False]).to_numpy().sum().item()
        1
        """
        if not isinstance(self.values, tf.Tensor) or not hasattr(self.values, "numpy"):
            raise DTypeError(
                path="MaskedTensor.to_numpy",
                expected="a dense tensor that holds values",
                received=type(self.values).__name__,
                mend="Outside of tf.function, to_py() takes all types.",
            )
        mask = item.elements(self.values, self.mask)
        return np.ma.array(self.values.numpy(), mask=~mask.numpy())  # pyright: ignore

    @classmethod
    def from_ragged(cls, ragged: tf.RaggedTensor, shape: Any = None) -> MaskedTensor:
        """Returns rows of different lengths as dense ones, masked where they are padded.

        Args:
            ragged: A RaggedTensor.
            shape: The shape to pad to. Default: that of the longest rows.

        >>> ragged = tf.ragged.constant([[1, 2], [], [3]])
        >>> xt.types.MaskedTensor.from_ragged(ragged).to_py()
        [[1, 2], [None, None], [3, None]]
        """
        mask = tf.ones_like(ragged, tf.bool)
        return cls(ragged.to_tensor(shape=shape), mask.to_tensor(shape=shape))

    def to_ragged(self) -> tf.RaggedTensor:
        """Returns rows that hold only what is valid.

        Raises:
            StructureError: If there are less than two dimensions, so no rows (also a ValueError).

        >>> masked = xt.types.MaskedTensor([[1, 2], [3, 4]], [[True, True], [False, True]])
        >>> masked.to_ragged()
        <tf.RaggedTensor [[1, 2], [4]]>
        """
        values, mask = self._tensor("to_ragged"), self.mask
        if values.shape.rank is None or values.shape.rank < 2:
            raise StructureError(
                path="MaskedTensor.to_ragged",
                expected="two dimensions or more",
                received=f"shape {values.shape}",
                mend="Of a vector, tf.boolean_mask(x.values, x.mask) takes what is valid.",
            )
        if isinstance(values, tf.RaggedTensor) or mask.shape.rank < 2:
            mask = item.elements(values, mask)
        return tf.ragged.boolean_mask(values, mask)

    def to_py(self) -> Any:
        """Returns numbers, lists and dicts, None for what is not valid. Needs eager execution.

        >>> lists = xt.types.MaskedTensor(tf.ragged.constant([[1, 2], [], []]), [True, True, False])
        >>> lists.to_py()
        [[1, 2], [], None]
        """
        return item.to_py(self.values, self.mask)

    # What is valid.

    def fill(self, value: Any) -> Any:
        """Returns the values without a mask, with another value where they are not valid.

        Args:
            value: A number or string, or a tensor that broadcasts. A list of a ragged tensor
                whose mask is of lists, and a record, are replaced as a whole, by what one is cast
                from: `[0, 0]`, `{"title": ""}`. A number replaces each item of such a list.

        Returns:
            What the values are. Its gradient is zero where they are not valid.

        >>> xt.types.MaskedTensor([1, 2], [True, False]).fill(0)
        <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 0], dtype=int32)>
        >>> lists = xt.types.MaskedTensor(tf.ragged.constant([[1, 2], []]), [True, False])
        >>> lists.fill([7])
        <tf.RaggedTensor [[1, 2], [7]]>
        """
        values, mask = self.values, self.mask
        if item.is_tensor(values):
            value = lossless(value, values.dtype, "MaskedTensor.fill")
        if isinstance(values, tf.Tensor):
            return tf.where(
                item.aligned(values, mask), values, tf.convert_to_tensor(value, values.dtype)
            )
        is_scalar = static_shape(value).rank == 0 if is_tensor_like(value) else np.ndim(value) == 0
        if item.is_tensor(values) and is_scalar:
            return item.choose(mask, values, value)
        return item.replaced(values, mask, value)

    def count(self, axis: Any = None, keepdims: bool = False) -> tf.Tensor:
        """Returns how many values are valid, or rows or records, if these are what the mask is of.

        Args:
            axis: The dimensions of the mask to count along; None for all.
            keepdims: Whether they stay as dimensions of size 1.

        Returns:
            int64.

        >>> xt.types.MaskedTensor([1, 2], [True, False]).count().numpy().item()
        1
        """
        return tf.reduce_sum(tf.cast(self.mask, tf.int64), axis, keepdims)

    def __keras_mask__(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the values, zero where they are not valid, and their mask as Keras uses it.

        Of values of three dimensions or more it says of each step whether anything in it is valid.
        """
        values = item.choose(self.mask, self._tensor("__keras_mask__"), _zero(self.dtype))
        mask = self.mask
        if isinstance(values, tf.RaggedTensor):
            mask = item.elements(values, mask).to_tensor()
            values = values.to_tensor()
        if mask.shape.rank is not None and mask.shape.rank > 2:
            mask = tf.reduce_any(mask, list(range(2, mask.shape.rank)))
        return values, mask

    def _tensor(self, method: str) -> Any:
        if not item.is_tensor(self.values):
            raise DTypeError(
                path=f"MaskedTensor.{method}",
                expected="numbers or strings, dense or ragged",
                received=type(self.values).__name__,
                mend="Take a field: masked['title'] has the mask of the records.",
            )
        return self.values

    def __repr__(self) -> str:
        dtype: Any = getattr(self.values, "dtype", None)
        kind = "" if isinstance(self.values, tf.Tensor) else f" of {type(self.values).__name__}"
        text = f"<MaskedTensor{kind} shape={self.shape}"
        text += f" dtype={dtype.name}" if isinstance(dtype, tf.DType) else ""
        if isinstance(self.values, tf.Tensor) and hasattr(self.values, "numpy"):
            text += f" {self.to_numpy()!s}"  # format() of a masked scalar shows what is under it
        return f"{text}>"


def _tensor_of(value: Any, name: str) -> Any:
    """Returns a value as it is if it is an extension value, and as a tensor otherwise."""
    if is_tensor_like(value) and not isinstance(value, tf.Variable):
        return value
    return tf.convert_to_tensor(lossless(value, None, f"MaskedTensor.{name}"))


def _zero(dtype: tf.DType) -> Any:
    return "" if dtype == tf.string else np.zeros([], dtype.as_numpy_dtype)
