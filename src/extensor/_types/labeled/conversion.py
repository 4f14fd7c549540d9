"""Conversion between LabeledTensors and xarray."""

from __future__ import annotations

import importlib
from typing import Any

import tensorflow as tf

from extensor.errors import DTypeError, MissingDependencyError


def from_xarray(cls: Any, array: Any) -> Any:
    """Returns a DataArray or Variable as a value of `cls`, without coordinates."""
    dims = getattr(array, "dims", None)
    if not isinstance(dims, tuple) or not hasattr(array, "values"):
        raise DTypeError(
            "LabeledTensor.from_xarray",
            "a DataArray or a Variable of xarray",
            f"a {type(array).__qualname__}",
            "Convert each array of a Dataset, such as dataset['grams'].",
        )
    values = array.values
    if values.dtype.kind == "U":
        values = values.astype(object)
    try:
        return cls(tf.convert_to_tensor(values), dims)
    except (TypeError, ValueError) as error:
        if isinstance(error, DTypeError):
            raise
        raise DTypeError(
            "LabeledTensor.from_xarray",
            "a dtype that TensorFlow has",
            str(array.dtype),
            "Convert it first: array.astype('int64') converts dates to numbers.",
        ) from error


def to_xarray(x: Any, **arguments: Any) -> Any:
    """Returns a LabeledTensor as a DataArray."""
    try:
        xarray = importlib.import_module("xarray")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "LabeledTensor.to_xarray",
            "xarray",
            "no module xarray",
            'pip install "extensor[xarray]"',
        ) from error
    return xarray.DataArray(x.values.numpy(), dims=x.axes, **arguments)
