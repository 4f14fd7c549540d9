"""Where the records of one spec do not cast to another spec: a table of paths for errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import tensorflow as tf

from extensor._path import Path
from extensor._protocol.casting import castable_type, short_text
from extensor._struct.arrow_types import meaning_beside
from extensor._struct.cast_request import CastRequest
from extensor._struct.change import changes_without_loss, needs_change, with_dtype_of
from extensor._struct.display.schema import node
from extensor._struct.inside import map_inside, map_records_with_spec
from extensor._struct.masked import is_masked, is_nullable, is_union, mask_ranks
from extensor._struct.spec import StructuredTensorSpec, has_records, parts_of_spec
from extensor._typing import FieldValue
from extensor.errors import DTypeError

if TYPE_CHECKING:
    from extensor._struct.dense_spec import DenseStructuredTensorSpec
    from extensor._struct.meaning import Meaning
    from extensor._struct.tensor import StructuredTensor

_Field = tuple[tf.TypeSpec, int, pa.DataType | None]
"""The spec of a field, the rank of the records that have it, and its Arrow type."""

_NONE = "no such field"
_MOST = 20
"""How many differences an error shows."""


class Difference(NamedTuple):
    """A place at which two specs differ.

    Attributes:
        path: The path of the field.
        expected: What is expected there.
        received: What is there.
        fix: Code, or a sentence, that corrects it.
    """

    path: Path
    expected: str
    received: str
    fix: str

    @property
    def is_extra(self) -> bool:
        """Whether it is a field that is not expected."""
        return self.expected == _NONE


def mismatch(
    want: tf.TypeSpec,
    have: tf.TypeSpec,
    at: str,
    where: str = "",
    path: Path | None = None,
    *,
    total: bool = False,
) -> DTypeError | None:
    """Returns the error for records whose spec does not cast to another one, or None if it does.

    Args:
        want: The expected spec.
        have: The spec of the records.
        at: The path of the records, for the error.
        where: The text before the path of a field, such as "model: input ".
        path: The path of both specs. Default: the records themselves.
        total: Whether every value must cast, whatever the lengths of its lists.
    """
    top = Path() if path is None else path
    rows = list(differences(want, have, top, total))
    if not rows:
        return None
    if len(rows) == 1:
        [row] = rows
        place = f"{where}{row.path}" if row.path else at
        return DTypeError(place, row.expected, row.received, f"Fix: {row.fix}")
    shown = [(str(row.path) or at, *row[1:]) for row in rows[:_MOST]]
    table = [("path", "expected", "got", "fix"), *shown]
    widths = [max(len(row[i]) for row in table) for i in range(3)]
    lines = ["  " + "  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in table]
    if len(rows) > _MOST:
        lines.append(f"  ... {len(rows) - _MOST} more")
    expected = "the fields of the spec"
    return DTypeError(at, expected, f"{len(rows)} differences", "\n".join(["Fix each:", *lines]))


def mismatch_of_records(want: tf.TypeSpec, have: tf.TypeSpec, at: str) -> DTypeError | None:
    """Returns the error of `mismatch`; None also if one of the specs has no records in it."""
    return mismatch(want, have, at) if has_records(want) and has_records(have) else None


def differences(
    want: tf.TypeSpec, have: tf.TypeSpec, path: Path, total: bool
) -> Iterator[Difference]:
    """Yields why values of a spec do not cast to another spec.

    Args:
        want: The expected spec.
        have: The spec of the values.
        path: The path of both.
        total: As in `mismatch`.
    """
    if not isinstance(want, StructuredTensorSpec) or not isinstance(have, StructuredTensorSpec):
        yield from _of_parts(want, have, path, total)
        return
    if want.rank != have.rank or not want.shape.is_compatible_with(have.shape):
        yield Difference(
            path, f"records of shape {want.shape}", f"shape {have.shape}", _fix_of_shape(want, have)
        )
        return
    if total and have._record.rank < want._record.rank:
        yield Difference(path, "records in a dense shape", "ragged records", "spec.cast(records)")
        return
    if want._record.rank != have._record.rank:  # dense and ragged records
        want, have = flat_spec(want), flat_spec(have)
    yield from _of_fields(want._record, have._record, path, total)


def _of_parts(
    want: tf.TypeSpec, have: tf.TypeSpec, path: Path, total: bool
) -> Iterator[Difference]:
    """Yields the differences of two specs that are not both those of records."""
    if is_masked(want) and not is_masked(have) and has_records(have):
        yield from differences(want.values, have, path, total)
        return
    found = False
    for at, own, other in _pairs(want, have, path):
        for row in differences(own, other, at, total):
            found = True
            yield row
    if found:
        return
    if castable_type(want, have) is None or (total and _may_fail(want, have)):
        fix = "give records: xt.struct.constant or xt.from_arrow make them"
        if not isinstance(want, StructuredTensorSpec):
            fix = _fix((want, have), (None, None), path)
        yield Difference(path, short_text(want), short_text(have), fix)


def _pairs(want: tf.TypeSpec, have: tf.TypeSpec, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Yields the paths and the specs of the parts that two specs of one class have."""
    if type(want) is not type(have) or is_union(want):
        return
    own, other = parts_of_spec(want), parts_of_spec(have)
    if own.keys() == other.keys():
        for name, part in own.items():
            yield path if is_masked(want) else path / name, part, other[name]


def _fix_of_shape(want: tf.TypeSpec, have: tf.TypeSpec) -> str:
    if want.rank != have.rank and set(want.field_names()) == {"key", "value"}:
        return "spec.cast(Python data), which makes a map of a dict"
    if want.rank != have.rank:
        return "give records of the same dimensions"
    if want.shape[1:].is_compatible_with(have.shape[1:]):
        return "leave the number of records open: spec.unstacked().stacked(None)"
    return "pad or cut the rows, or give a spec of ragged records"


def flat_spec(spec: StructuredTensorSpec) -> DenseStructuredTensorSpec:
    """Returns the spec of all records in one dimension."""
    spec = spec._record
    for _ in range(1, spec.rank):
        spec = spec.unstacked().unstacked().stacked(None)
    return spec if spec.rank else spec.stacked(None)


def _of_fields(
    want: DenseStructuredTensorSpec, have: DenseStructuredTensorSpec, path: Path, total: bool
) -> Iterator[Difference]:
    for name, spec in want.field_specs.items():
        at = path / name
        kept = want.arrow_types.get(name)
        if name in have.field_specs:
            meaning = want._meanings.get(name)
            kept_there = have._metadata.types.get(name)
            meanings = meaning, meaning_beside(have._meanings.get(name), kept_there, meaning)
            own = have.field_specs[name], have.rank, have.arrow_types.get(name)
            yield from _of_field((spec, want.rank, kept), own, meanings, at, total)
        elif not is_nullable(spec, want.rank):
            yield Difference(at, node(name, spec, want.rank, kept).label, _NONE, _add(at))
    for name, spec in have.field_specs.items():
        if name not in want.field_specs:
            label = node(name, spec, have.rank, have.arrow_types.get(name)).label
            yield Difference(path / name, _NONE, label, 'spec.cast(records, extra="ignore")')


def _of_field(
    want: _Field, have: _Field, meanings: tuple[Meaning, Meaning], path: Path, total: bool
) -> Iterator[Difference]:
    """Yields the differences of a field: of its records, or of its numbers.

    Args:
        want: The expected spec, the rank of the records around it, and its Arrow type.
        have: The same of the values.
        meanings: The meaning of the numbers of both.
        path: The path of the field.
        total: As in `mismatch`.
    """
    specs: tuple[Any, Any] = want[0], have[0]
    inner: list[Any] = [spec.values if is_masked(spec) else spec for spec in specs]
    are_records = [has_records(spec) and not is_union(spec) for spec in inner]
    are_nulls_allowed = mask_ranks(specs[1]) <= mask_ranks(specs[0])
    if all(are_records) and are_nulls_allowed:
        yield from differences(inner[0], inner[1], path, total)
        return
    changed = have[0]
    fit = changes_without_loss(*specs, meanings)
    if fit and needs_change(*specs, meanings):
        changed = with_dtype_of(have[0], want[0])
    is_castable = fit and are_nulls_allowed and castable_type(want[0], changed) is not None
    if is_castable and not (total and _may_fail(inner[0], inner[1])):
        return
    names = [node(path.names[-1], *each).label for each in (want, have)]
    if names[0] == names[1] and not are_nulls_allowed:
        names = [_with_levels(name, *each) for name, each in zip(names, (want, have), strict=True)]
    elif names[0] == names[1]:
        names = [short_text(spec) for spec in specs]
    fix = "spec.cast(records)" if is_castable else _fix(specs, meanings, path)
    yield Difference(path, names[0], names[1], fix)


def _with_levels(name: str, spec: tf.TypeSpec, rank: int, _: object) -> str:
    """Returns the text of a field of lists that says what may be null in it."""
    levels = sorted(rank != of_mask for of_mask in mask_ranks(spec))
    nulls = ["null items" if is_inside else "null lists" for is_inside in dict.fromkeys(levels)]
    return f"{name.removesuffix(' or null')} with {' and '.join(nulls)}"


def _may_fail(want: tf.TypeSpec, have: tf.TypeSpec) -> bool:
    """Returns whether a cast of tensors depends on the lengths of lists, or on sizes."""
    if isinstance(want, tf.TensorSpec) and isinstance(have, tf.RaggedTensorSpec):
        return True
    are_tensors = isinstance(want, _TENSORS) and isinstance(have, _TENSORS)
    return are_tensors and not want.shape.is_compatible_with(have.shape)


_TENSORS = (tf.TensorSpec, tf.RaggedTensorSpec)

_OF_TEXT = (tf.int32, tf.int64, tf.float32, tf.float64)
"""The dtypes of `tf.strings.to_number`."""


def _fix(specs: tuple[Any, Any], meanings: tuple[Meaning, Meaning], path: Path) -> str:
    want, have = specs
    key = repr(str(path))
    if is_masked(have) and not is_masked(want):
        return f"xt.struct.fill_null(records, {key}, value)"
    if meanings[0] != meanings[1]:
        return "read both with one schema="
    dtype: Any = getattr(want, "dtype", None)
    own = getattr(have, "dtype", None)
    if not isinstance(dtype, tf.DType) or not isinstance(own, tf.DType) or dtype == own:
        return _add(path)
    if tf.string not in (dtype, own):
        return f"xt.struct.cast(records, {{{key}: tf.{dtype.name}}})"
    if dtype == tf.string:
        made = f"tf.strings.as_string(records[{key}])"
    elif dtype in _OF_TEXT:
        made = f"tf.strings.to_number(records[{key}], tf.{dtype.name})"
    else:
        made = "..."
    return f"records.with_updates({{{key}: {made}}})"


def _add(path: Path) -> str:
    return f"records.with_updates({{{str(path)!r}: ...}})"


def without_extra(
    value: FieldValue, spec: tf.TypeSpec, request: CastRequest, path: Path | None = None
) -> FieldValue:
    """Returns a value without the fields that a request drops, at any depth.

    Args:
        value: Records, or the value of a field.
        spec: The spec of the result.
        request: What fields are dropped of those that the spec does not have.
        path: The path of the value. Default: the records themselves.
    """

    def kept(records: StructuredTensor, record: DenseStructuredTensorSpec, at: Path) -> FieldValue:
        specs, names = record.field_specs, records.field_names()
        some = [name for name in names if name in specs or not request.drops(at / name)]
        return map_inside(
            records._select(some) if len(some) < len(names) else records,
            lambda part, place: without_extra(part, specs.get(place.names[-1]), request, place),
            at,
        )

    return map_records_with_spec(value, spec, kept, Path() if path is None else path)
