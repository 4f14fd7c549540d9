"""FieldsUsed: the fields that a function uses, as an argument `columns`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import tensorflow as tf

from extensor._path import Path
from extensor._pruning.components import components, fields_of, is_fixed, is_opaque, leaf_paths
from extensor._pruning.consumption import SHAPE, VALUE
from extensor._struct.component import ComponentTensor


class FieldsUsed(Sequence[str]):
    """The paths of the fields that a function uses: what `columns` takes.

    Of some lists of records, a function may use the row splits alone. Each field of the list gives
    them. `read_parquet` and `xt.data.parquet` read the one that takes the fewest bytes in the file;
    the sequence has the one that is smallest by its spec.

    Args:
        spec: The spec of the records.
        uses: How each component of the spec is used.
    """

    def __init__(self, spec: tf.TypeSpec, uses: Sequence[int]) -> None:
        parts = components(spec)
        self._order = list(leaf_paths(spec))
        self._all_leaves = frozenset(self._order)
        fields = fields_of(spec, parts)
        self._sizes = _sizes(parts, fields)
        # All fields in an opaque value are needed for it; one of those in a list for its rows.
        all_uses = zip(parts, fields, uses, strict=True)
        used = [(part, own) for part, own, use in all_uses if use == VALUE]
        needed = {own for part, own in used if len(own) == 1 or is_opaque(part)}
        self._fields = frozenset[Path]().union(*needed)
        self._choices = [own for _, own in used if own not in needed]
        lists = [part.lists for part in parts]
        for own, use in zip(lists, uses, strict=True):
            if use == SHAPE:
                with_rows = zip(lists, fields, strict=True)
                self._choices.append(
                    frozenset[Path]().union(
                        *(f for other, f in with_rows if other[: len(own)] == own)
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


def _sizes(
    parts: Sequence[ComponentTensor], fields: Sequence[frozenset[Path]]
) -> dict[Path, tuple[int, int]]:
    """Returns the order of fields by size: the lists around them, then the bytes of a value."""
    sizes: dict[Path, tuple[int, int]] = {}
    for part, own in zip(parts, fields, strict=True):
        if not part.part or is_opaque(part) or is_fixed(part):
            is_text = part.spec.dtype in (tf.string, tf.variant, tf.resource)
            count = part.spec.shape[1:].num_elements() if part.spec.shape.rank else 1
            nbytes = 64 if is_text else part.spec.dtype.size
            size = len(part.lists), nbytes * (count or 64)
            sizes.update((path, max(sizes.get(path, (0, 0)), size)) for path in own)
    return sizes
