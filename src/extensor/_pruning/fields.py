"""FieldsUsed: the fields that a function uses, as an argument `columns`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import tensorflow as tf

from extensor._path import Path
from extensor._pruning.components import Component, components, leaf_paths
from extensor._pruning.consumption import SHAPE, VALUE


class FieldsUsed(Sequence[str]):
    """The paths of the fields that a function uses: what `columns` takes.

    Of some lists of records, a function may use the row splits alone. Each field of the list gives
    them. `read_parquet` and `xt.data.parquet` read the one that takes the fewest bytes in the file;
    the sequence has the one that is smallest by its spec.

    Args:
        spec: The spec of the records.
        uses: How each component of the spec is used.
    """

    def __init__(self, spec: Any, uses: Sequence[int]) -> None:
        parts = components(spec)
        self._order = list(leaf_paths(spec))
        self._all_leaves = frozenset(self._order)
        self._sizes = _sizes(parts)
        used = list(zip(parts, uses, strict=True))
        self._fields = {leaf for part, use in used if use == VALUE for leaf in _only(part)}
        self._choices = [part.leaves for part, use in used if use == VALUE and not _only(part)]
        for part, use in used:
            if use == SHAPE:
                self._choices.append(
                    frozenset(
                        leaf
                        for other in parts
                        if other.rows[: len(part.rows)] == part.rows
                        for leaf in other.leaves
                    )
                )
        self._choices.append(self._all_leaves)  # the number of records
        most = max(self._sizes.values(), default=0)  # of fields that have no tensor of their own
        self._paths = self.chosen(lambda path: self._sizes.get(path, most))

    def chosen(self, size: Callable[[Path], Any]) -> list[str]:
        """Returns the paths to read, in the order of the spec.

        Args:
            size: What it costs to read a field.
        """
        fields = set(self._fields)
        # The smallest choices first: one of their fields may also be in a larger choice.
        for choice in sorted(self._choices, key=len):
            if not fields & choice:
                fields.add(min((path for path in self._order if path in choice), key=size))
        return [str(path) for path in self._order if path in fields]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: Any) -> Any:
        return self._paths[index]

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._paths == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self._paths))

    def __repr__(self) -> str:
        return f"FieldsUsed({self._paths})"


def _only(part: Component) -> frozenset[Path]:
    """Returns the one field that has a tensor, or nothing."""
    return part.leaves if len(part.leaves) == 1 else frozenset()


def _sizes(parts: Sequence[Component]) -> dict[Path, tuple[int, int]]:
    """Returns the order of fields by size: the lists around them, then the bytes of a value."""
    sizes: dict[Path, tuple[int, int]] = {}
    for part in parts:
        if part.part == "values" or part.is_fixed:
            is_text = part.spec.dtype in (tf.string, tf.variant, tf.resource)
            count = part.spec.shape[1:].num_elements() if part.spec.shape.rank else 1
            nbytes = 64 if is_text else part.spec.dtype.size
            (path,) = part.leaves
            sizes[path] = max(sizes.get(path, (0, 0)), (len(part.rows), nbytes * (count or 64)))
    return sizes
