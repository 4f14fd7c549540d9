"""Description and Comparison: the statistics of records, as a table and as a page."""

# A comparison reads an attribute of descriptions that is private to this file.

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from extensor._describe.drift import Drift, drifts_between, no_path
from extensor._describe.page import (
    comparison_page,
    comparison_table,
    description_page,
    description_table,
    write_page,
)
from extensor._describe.paths import PathStatistics, Statistics
from extensor._files.files import FilePath
from extensor._path import Path
from extensor.errors import DTypeError


class Description:
    """The statistics of records, path by path; the result of `xt.data.describe`.

    `print` shows a table, a notebook shows a page, and `write_html` writes the page.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> found.num_records, found["minutes"].numbers.max
    (2, 7)
    """

    def __init__(self, tree: Statistics) -> None:
        self._tree = tree

    @property
    def num_records(self) -> int:
        """The number of records."""
        return self._tree.num_records

    @property
    def paths(self) -> Mapping[str, PathStatistics]:
        """The statistics by path, in the order of the fields, such as `steps[*].minutes`."""
        return MappingProxyType(self._tree.paths)

    def __getitem__(self, path: str) -> PathStatistics:
        """Returns the statistics of a path.

        Raises:
            FieldError: If there is no such path (also a KeyError).
        """
        if isinstance(path, Path):
            path = str(path)
        if path in self._tree.paths:
            return self._tree.paths[path]
        raise no_path(path, self._tree.paths)

    def merge(self, other: Description) -> Description:
        """Returns the description of the records of both: of two files, or of two machines' parts.

        Raises:
            DTypeError: If a path has values of different types (also a TypeError).

        >>> import pyarrow as pa
        >>> import extensor as xt
        >>> one, two = (xt.data.describe(pa.table({"x": x})) for x in ([1, 2], [5]))
        >>> one.merge(two)["x"].numbers.max
        5
        """
        _expect_description(other)
        tree = Statistics()
        tree.merge(self._tree)
        tree.merge(other._tree)
        return Description(tree)

    def compare(
        self, other: Description, threshold: float = 0.1, thresholds: Mapping[str, float] = {}
    ) -> Comparison:
        """Returns which paths have other values in other records, such as those seen in serving.

        Numbers, and the lengths of lists, are compared by the Kolmogorov-Smirnov distance: the
        largest difference between the shares of numbers up to any number. Strings are compared by
        the L-infinity distance: the largest difference between the shares of any string. For each
        path the shares of nulls are compared too. All these are between 0 and 1. A path has drifted
        if its distance is larger than the threshold, and larger than what two samples of the same
        values differ by in one case of 100.

        Args:
            other: The description of the other records.
            threshold: The largest distance that is no drift.
            thresholds: Other thresholds, by path.

        Raises:
            DTypeError: If `other` is not a Description, or a threshold is not a number (also a
                TypeError).
            FieldError: If a path of `thresholds` is in neither description (also a KeyError).

        >>> import pyarrow as pa
        >>> import extensor as xt
        >>> train = xt.data.describe(pa.table({"age": [float(i % 80) for i in range(720)]}))
        >>> serving = xt.data.describe(pa.table({"age": [float(i % 40) for i in range(720)]}))
        >>> print(train.compare(serving))
        1 of 1 paths drifted
        path  drifted  statistic           distance  limit  because
        age   yes      Kolmogorov-Smirnov     0.500  0.100  medians 39.5 and 19.5
        """
        _expect_description(other)
        drifts = drifts_between(self.paths, other.paths, threshold, thresholds)
        return Comparison(self, other, drifts)

    def write_html(self, path: FilePath) -> None:
        """Writes a page with a histogram for each path. It has no scripts, and needs no network.

        Raises:
            MissingFileError, DirectoryError: If the folder of `path` does not exist, or `path` is a
                folder (also a FileNotFoundError, an IsADirectoryError).
        """
        write_page(description_page(self._tree), path)

    def __str__(self) -> str:
        return description_table(self._tree)

    def __repr__(self) -> str:
        return f"<Description of {self.num_records:,} records, {len(self.paths)} paths>"

    def _repr_html_(self) -> str:
        return description_page(self._tree, is_document=False)


class Comparison:
    """Which paths differ between two descriptions; the result of `Description.compare`.

    >>> import extensor as xt
    >>> data = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 7}]
    >>> found = xt.data.describe(xt.struct.constant(data))
    >>> found.compare(found).drifted
    []
    """

    def __init__(self, one: Description, other: Description, drifts: list[Drift]) -> None:
        self.one = one
        self.other = other
        self._drifts = drifts

    @property
    def drifts(self) -> list[Drift]:
        """The difference at each path, the largest first; drifted ones before all others."""
        return list(self._drifts)

    @property
    def drifted(self) -> list[str]:
        """The paths that drifted."""
        return [drift.path for drift in self._drifts if drift.drifted]

    def write_html(self, path: FilePath) -> None:
        """Writes a page with two histograms for each path, those that drifted first.

        Raises:
            MissingFileError, DirectoryError: As `Description.write_html`.
        """
        write_page(self._page(), path)

    def __str__(self) -> str:
        return comparison_table(self._drifts)

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.drifted)} of {len(self._drifts)} paths drifted>"

    def _repr_html_(self) -> str:
        return self._page(is_document=False)

    def _page(self, is_document: bool = True) -> str:
        return comparison_page(self.one._tree, self.other._tree, self._drifts, is_document)


def _expect_description(value: object) -> None:
    if not isinstance(value, Description):
        fix = "Give the result of xt.data.describe."
        raise DTypeError("Description", "a Description", type(value).__name__, fix)
