"""What the files of this room ask of a StructuredTensor, whichever its encoding."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from extensor._path import Path


class Records(abc.ABC):
    """The base of StructuredTensor, below the files that its methods call.

    So a function that takes any value of a field asks whether it is records, and leaves what
    depends on the encoding to a method.
    """

    __slots__ = ()

    @abc.abstractmethod
    def _field(self, name: str, at: Path) -> Any:
        """Returns a field's value; `at` is the path from the root to the field, for errors."""

    @abc.abstractmethod
    def _uncut_field(self, name: str, at: Path) -> Any:
        """Returns a field's value for the records as they were before they were cut into rows."""

    @abc.abstractmethod
    def _row_splits_dtypes(self) -> set[tf.DType]:
        """Returns the dtypes of the row splits within."""

    @abc.abstractmethod
    def _outer_sizes(self, rank: int) -> tf.Tensor:
        """Returns the first `rank` sizes, if the records are uniform in them."""

    @abc.abstractmethod
    def _taken(self, positions: tuple[Any, ...], at: Path) -> Any:
        """Returns the records at positions of the first dimensions; see `index.take`."""

    @abc.abstractmethod
    def _gathered(self, numbers: Any) -> Any:
        """Returns the records of these numbers in the first dimension; see `index.gather`."""

    @abc.abstractmethod
    def _merged(self, sizes: list[Any]) -> Any:
        """Returns the records with their outer two dimensions as one; see `reshape.merged`."""

    @abc.abstractmethod
    def _split(self, sizes: list[Any]) -> Any:
        """Returns the records with their outermost dimension as two; see `reshape.split`."""
