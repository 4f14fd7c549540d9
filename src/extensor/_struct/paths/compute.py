"""Fields computed from fields, renamed, and cast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from typing import cast as typed

import tensorflow as tf

from extensor._authoring.comparison import SizeComparison
from extensor._path import Path, PathLike
from extensor._protocol.run_time_check import LATER
from extensor._struct.field import expect_mapping
from extensor._struct.masked import map_records
from extensor._struct.paths.place import names_of, new_field, put, target_field, type_at, value_at
from extensor._struct.paths.rows import with_rows
from extensor._struct.paths.types import with_types
from extensor._struct.same_sizes import with_count_check
from extensor._struct.spec import root_is_no_field
from extensor._struct.tensor import StructuredTensor
from extensor._typing import FieldValue
from extensor.errors import DTypeError, ExtensorError, FieldError, StructureError


def apply(
    st: StructuredTensor,
    function: Callable[..., Any],
    sources: PathLike | Sequence[PathLike],
    target: PathLike,
    validate: bool = True,
) -> StructuredTensor:
    """Returns the records with a field that a function computes from fields.

    Args:
        st: A StructuredTensor.
        function: Gets `st[source]` for each source. The first dimensions of its result are those of
            the records that get it.
        sources: A list of paths, or one path.
        target: The path of the field for the result. A field that exists is replaced.
        validate: Whether a graph compares the rows of the result with those of the records, where
            they are not known while it is traced. It compares those that its ops do not show to
            be the same.

    Raises:
        FieldError: If a source or the records of the target do not exist (also a KeyError).
        StructureError: If the result does not fit the records (also a ValueError). Running a graph
            raises an InvalidArgumentError instead.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([2], {"est_time": [55.0, 30.0], "wait": [5.0, 0.0]})
    >>> xt.struct.apply(recipes, tf.add, ["est_time", "wait"], "total")["total"].numpy()
    array([60., 30.], dtype=float32)
    """
    paths: list[Any] = typed("list[Any]", sources) if isinstance(sources, list) else [sources]
    values = [value_at(st, names_of(st, path)) for path in paths]
    return put(st, target_field(st, target)[0], function(*values), validate)


def map_values(
    st: StructuredTensor,
    function: Callable[[Any], Any],
    source: PathLike,
    target: PathLike | None = None,
    validate: bool = True,
) -> StructuredTensor:
    """Returns the records with a function applied to the flat values of a field.

    Args:
        st: A StructuredTensor.
        function: Gets one tensor (or one vector of records) of the values in all lists, and returns
            as many values.
        source: The path of the field.
        target: The path of a new field. Default: the result replaces the field.
        validate: Whether a graph compares the number of values, as `apply` compares rows.

    Raises:
        FieldError: If the path does not exist, or the target exists (also a KeyError).
        StructureError: If the function changes the number of values (also a ValueError). Running a
            graph raises an InvalidArgumentError instead.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> tags = tf.ragged.constant([["Sweet", "Dry"], ["Oats"]])
    >>> recipes = xt.DenseStructuredTensor([2], {"tags": tags})
    >>> xt.struct.map_values(recipes, tf.strings.lower, "tags")["tags"]
    <tf.RaggedTensor [[b'sweet', b'dry'], [b'oats']]>
    """
    names = names_of(st, source)
    new = names if target is None else new_field(st, target)
    comparison = SizeComparison.in_graph(validate)
    return put(st, new, _map(function, value_at(st, names), Path(*names), comparison))


def _map(
    function: Callable[[Any], Any], value: FieldValue, path: Path, comparison: SizeComparison | None
) -> FieldValue:
    if hasattr(value, "row_splits"):
        values = _map(function, value.values, path, comparison)
        return with_rows(values, value.row_splits)
    result = function(value)
    if not hasattr(result, "shape"):
        result = tf.convert_to_tensor(result)
    size, new = (tf.TensorShape(v.shape)[:1] for v in (value, result))
    if not size.is_compatible_with(new):
        raise _other_count(path, size, new)
    if comparison is None or not size.rank:
        return result
    error = _other_count(path, f"({LATER},)", f"({LATER},)")
    return with_count_check(result, value, error, comparison)


def _other_count(
    path: Path, size: tf.TensorShape | str, received: tf.TensorShape | str
) -> StructureError:
    fix = "Use xt.struct.apply for a function that changes the number of values."
    return StructureError(path, f"as many values as the function got, {size}", f"{received}", fix)


def rename(st: StructuredTensor, names: Mapping[Any, str]) -> StructuredTensor:
    """Returns the records with fields renamed, in the same order.

    Args:
        st: A StructuredTensor.
        names: The new name of each field by its path.

    Raises:
        FieldError: If a path does not exist, or two fields get one name (also a KeyError).

    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([1], {"title": ["Flapjacks"], "time": [30.0]})
    >>> xt.struct.rename(recipes, {"time": "est_time"})
    <StructuredTensor shape=(1,) {title: string, est_time: float32}
     [{title: b'Flapjacks', est_time: 30.0}]>
    """
    expect_mapping(names, "names", "from paths to new names", '{"time": "est_time"}')
    by_parent: dict[tuple[str, ...], dict[str, str]] = {}
    for path, new in names.items():
        old = names_of(st, path)
        value_at(st, old)
        if not old:
            raise root_is_no_field("names")
        by_parent.setdefault(old[:-1], {})[old[-1]] = new
    for parent in sorted(by_parent, key=len, reverse=True):  # the inner records first
        new_names, at = by_parent[parent], Path(*parent)
        renamed = map_records(
            value_at(st, parent), lambda old, names=new_names, at=at: _rename(old, names, at)
        )
        st = put(st, parent, renamed)
    return st


def _rename(records: StructuredTensor, names: Mapping[str, str], at: Path) -> StructuredTensor:
    old = records.field_names()
    new = [names.get(name, name) for name in old]
    for i, name in enumerate(new):
        if not isinstance(name, str):
            fix = "Name fields by strings."
            raise DTypeError(at / old[i], "a new name of type str", type(name).__name__, fix)
        if name in new[:i]:
            expected = "one name for each field"
            fix = "Choose another name, or remove a field first: st.without(path)."
            raise FieldError(at / name, expected, "a name that two fields would have", fix)
    pairs = list(zip(old, new, strict=True))
    changed = {(b,): records.field_value((a,)) for a, b in pairs if a != b}
    made = records.with_updates(changed, validate=False).with_only(*[(name,) for name in new])
    return with_types(made, {(b,): type_at(records, (a,)) for a, b in pairs})


def cast(st: StructuredTensor, dtypes: Mapping[Any, Any]) -> StructuredTensor:
    """Returns the records with fields cast to other dtypes, as by `tf.cast`.

    Args:
        st: A StructuredTensor.
        dtypes: The new dtype of each field by its path.

    Raises:
        FieldError: If a path does not exist (also a KeyError).
        DTypeError: If the field is records, or is not cast to the dtype (also a TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> recipes = xt.DenseStructuredTensor([2], {"est_time": [55, 30]})
    >>> xt.struct.cast(recipes, {"est_time": tf.float32})["est_time"].numpy()
    array([55., 30.], dtype=float32)
    """
    expect_mapping(dtypes, "dtypes", "from paths to dtypes", '{"minutes": tf.float32}')
    updates: dict[tuple[str, ...], Any] = {}
    for path, dtype in dtypes.items():
        names = names_of(st, path)
        value = value_at(st, names)
        if isinstance(value, StructuredTensor):
            expected, fix = "a field with one dtype", "Give the path of one of their fields."
            raise DTypeError(Path(*names) if names else "the records", expected, "records", fix)
        try:
            updates[names] = tf.cast(value, dtype)
        except ExtensorError:
            raise
        except (TypeError, tf.errors.UnimplementedError) as error:
            expected = f"a dtype to which tf.cast casts {getattr(value, 'dtype', value)!r}"
            text = "to_number" if getattr(value, "dtype", None) == tf.string else "as_string"
            fix = f"Give a dtype of numbers, or xt.struct.map_values(st, tf.strings.{text}, path)."
            raise DTypeError(Path(*names), expected, repr(dtype), fix) from error
    return st.with_updates(updates, validate=False)
