"""LabeledTensor: a tensor whose axes have names."""

# Type checkers do not know that __init__ may assign the fields.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from extensor._types.labeled import index, naming
from extensor._types.labeled.spec import LabeledSpec
from extensor.authoring import as_tensor, extension_type
from extensor.dispatch import OperatorsMixin
from extensor.errors import DTypeError, MissingDependencyError, StructureError
from extensor.typing import DTypeLike, TensorLike

if TYPE_CHECKING:
    from types import EllipsisType

    import xarray as xr


@extension_type(name="extensor.types.LabeledTensor")
class LabeledTensor(OperatorsMixin, elementwise_equality=True):
    """A tensor whose axes have names, like a DataArray of xarray without coordinates.

    Operations match axes by name in any order, and accept names for `axis`.

    Args:
        values: A tensor, or a value that converts to one.
        axes: The name of each axis.

    Raises:
        StructureError: If the number of names is not the rank, or a name occurs twice (also a
            ValueError).
        DTypeError: If a name is not a nonempty string (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> grams = xt.types.LabeledTensor([[500.0, 3.0], [250.0, 1.0]], ["recipe", "ingredient"])
    >>> price = xt.types.LabeledTensor([0.002, 0.05], ["ingredient"])
    >>> cost = tf.reduce_sum(price * grams, axis="ingredient")
    >>> cost
    <LabeledTensor (recipe=2) float32>
    >>> cost.numpy()
    array([1.15, 0.55], dtype=float32)
    """

    Spec = LabeledSpec

    values: tf.Tensor
    """The values, a tensor without names."""
    axes: tuple[str, ...]
    """The name of each axis, in order."""

    def __init__(self, values: TensorLike, axes: str | Sequence[str]) -> None:
        self.values = as_tensor(values, "LabeledTensor.values")
        self.axes = naming.check_names(axes, self.values.shape, "LabeledTensor.axes")

    @classmethod
    def _of_parts(cls, values: tf.Tensor, axes: Sequence[str]) -> LabeledTensor:
        """Returns a tensor from values and names that match. Checks nothing."""
        self = object.__new__(cls)
        self.__dict__.update(values=values, axes=tuple(axes))
        return self

    @property
    def shape(self) -> tf.TensorShape:
        """The static shape."""
        return tf.TensorShape(self.values.shape)  # of a KerasTensor, it is a tuple

    @property
    def dtype(self) -> tf.DType:
        """The dtype of the values."""
        return tf.dtypes.as_dtype(self.values.dtype)  # of a KerasTensor, it is a string

    @property
    def sizes(self) -> dict[str, int | None]:
        """The static size of each axis by its name; None if unknown.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> xt.types.LabeledTensor(tf.zeros([3, 2]), ["word", "feature"]).sizes
        {'word': 3, 'feature': 2}
        """
        return dict(zip(self.axes, self.values.shape.as_list(), strict=True))

    def numpy(self) -> np.ndarray[Any, Any]:
        """Returns the values as a NumPy array. Needs eager execution."""
        return self.values.numpy()

    def with_values(self, values: TensorLike) -> LabeledTensor:
        """Returns a tensor with the same axes and other values.

        Args:
            values: A tensor of a compatible shape and any dtype.

        Raises:
            StructureError: If the shapes are not compatible (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> x = xt.types.LabeledTensor([4.0, 1.0], ["word"])
        >>> x.with_values(tf.linalg.normalize(x.values)[0])
        <LabeledTensor (word=2) float32>
        """
        values = as_tensor(values, "LabeledTensor.with_values")
        if not values.shape.is_compatible_with(self.values.shape):
            expected = f"shape {self.values.shape}, the shape of {naming.describe(self)}"
            received = f"shape {values.shape}"
            fix = "For another shape, create a new tensor: LabeledTensor(values, [...])."
            raise StructureError("LabeledTensor.with_values", expected, received, fix)
        return self._of_parts(values, self.axes)

    def rename(self, names: Mapping[str, str] | None = None, /, **others: str) -> LabeledTensor:
        """Returns the tensor with renamed axes.

        Args:
            names: The new name of each old name.
            **others: The same, as keyword arguments.

        Raises:
            StructureError: If an axis does not exist, or two get the same name (also a ValueError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> x = xt.types.LabeledTensor(tf.zeros([3, 2]), ["word", "feature"])
        >>> x.rename(word="token", feature="channel").axes
        ('token', 'channel')
        """
        axes = list(self.axes)
        for old, new in {**(names or {}), **others}.items():
            axes[naming.axis_number(self, old, "LabeledTensor.rename")] = new
        shape = self.values.shape
        return self._of_parts(self.values, naming.check_names(axes, shape, "LabeledTensor.rename"))

    def transpose(self, *axes: str | EllipsisType) -> LabeledTensor:
        """Returns the tensor with its axes in another order.

        Args:
            *axes: All axes in the new order; `...` stands for those that are not named. Default:
                the reverse order.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> x = xt.types.LabeledTensor(tf.zeros([3, 2, 5]), ["word", "feature", "head"])
        >>> x.transpose("head", ...)
        <LabeledTensor (head=5, word=3, feature=2) float32>
        """
        if not axes:
            return tf.transpose(self)
        named = [axis for axis in axes if axis is not Ellipsis]
        order = naming.axis_numbers(self, named, "LabeledTensor.transpose")
        if Ellipsis in axes:
            dots = axes.index(Ellipsis)
            order[dots:dots] = [i for i in range(len(self.axes)) if i not in order]
        return tf.transpose(self, order)

    def isel(self, indexers: Mapping[str, Any] | None = None, /, **others: Any) -> LabeledTensor:
        """Returns the part at the given positions along the given axes.

        Args:
            indexers: By the name of an axis: a number, which drops the axis; a slice; a vector of
                positions; a vector of bools, one for each position; or a LabeledTensor of
                positions, whose axes replace this one.
            **others: The same, as keyword arguments.

        Raises:
            StructureError: If an axis does not exist (also a ValueError).
            RowError: If a static position is out of range (also an IndexError).
            DTypeError: If an indexer has another type (also a TypeError).

        >>> import extensor as xt
        >>> x = xt.types.LabeledTensor([[1, 2], [3, 4], [5, 6]], ["word", "feature"])
        >>> x.isel(word=-1).numpy()
        array([5, 6], dtype=int32)
        >>> x.isel(feature=[1, 0], word=slice(2)).numpy()
        array([[2, 1],
               [4, 3]], dtype=int32)
        """
        return index.select(self, {**(indexers or {}), **others}, "LabeledTensor.isel")

    # Conversion.

    @classmethod
    def from_xarray(cls, array: xr.DataArray | xr.Variable) -> LabeledTensor:
        """Returns the values and dimensions of an xarray array, without its coordinates.

        Args:
            array: A DataArray or Variable.

        >>> import extensor as xt
        >>> import xarray
        >>> array = xarray.DataArray([[1, 2]], dims=["word", "feature"])
        >>> xt.types.LabeledTensor.from_xarray(array)
        <LabeledTensor (word=1, feature=2) int64>
        """
        dims = getattr(array, "dims", None)
        if not isinstance(dims, tuple) or not hasattr(array, "values"):
            expected = "a DataArray or a Variable of xarray"
            received = f"a {type(array).__qualname__}"
            fix = "Convert each array of a Dataset, such as dataset['grams']."
            raise DTypeError("LabeledTensor.from_xarray", expected, received, fix)
        values = array.values
        if values.dtype.kind == "U":
            values = values.astype(object)
        try:
            return cls(tf.convert_to_tensor(values), dims)
        except (TypeError, ValueError) as error:
            if isinstance(error, DTypeError):
                raise
            fix = "Convert it first: array.astype('int64') converts dates to numbers."
            raise DTypeError(
                "LabeledTensor.from_xarray", "a dtype that TensorFlow has", str(array.dtype), fix
            ) from error

    def to_xarray(self, **arguments: Any) -> xr.DataArray:
        """Returns the tensor as a DataArray. Needs eager execution.

        Args:
            **arguments: Further arguments of `xarray.DataArray`: `coords`, `name`, `attrs`.

        Raises:
            MissingDependencyError: If xarray is not installed (also an ImportError).

        >>> import extensor as xt
        >>> x = xt.types.LabeledTensor([1.0, 2.0], ["word"])
        >>> x.to_xarray(coords={"word": ["salt", "oil"]}).sel(word="oil").item()
        2.0
        """
        try:
            xarray = importlib.import_module("xarray")
        except ModuleNotFoundError as error:
            received = "no module xarray"
            raise MissingDependencyError(
                "LabeledTensor.to_xarray", "xarray", received, 'pip install "extensor[xarray]"'
            ) from error
        return xarray.DataArray(self.values.numpy(), dims=self.axes, **arguments)

    # A conversion to a tensor would lose the names, so only scalars convert implicitly.

    def __tf_tensor__(self, dtype: DTypeLike | None = None, name: str | None = None) -> tf.Tensor:
        """Returns a scalar as a tensor; called by TensorFlow."""
        if self.axes:
            raise naming.names_error(
                "LabeledTensor",
                self,
                "Call the operation with x.values, and name the axes of the result.",
            )
        return tf.convert_to_tensor(self.values, dtype, name=name)

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        # TensorFlow calls this too, for arguments of ops that are not tensors.
        return np.asarray(self.__tf_tensor__().numpy(), dtype)

    def __bool__(self) -> bool:
        if self.axes:
            return super().__bool__()
        if not hasattr(self.values, "numpy"):
            fix = "Inside a tf.function, use the tensor: `if x.values:`."
            raise DTypeError("bool(LabeledTensor)", "an eager value", "a symbolic tensor", fix)
        return bool(self.values)

    def __float__(self) -> float:
        return float(self.__tf_tensor__())

    def __int__(self) -> int:
        return int(self.__tf_tensor__())

    def __repr__(self) -> str:
        return f"<LabeledTensor {naming.axes_text(self.axes, self.shape)} {self.dtype.name}>"


Op = Callable[..., Any]
Operand = LabeledTensor | tf.Tensor
"""An argument of an operation: a tensor may be any value that converts to one."""
