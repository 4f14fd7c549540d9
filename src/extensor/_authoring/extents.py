"""The tensors that have the dimensions of a value, and the sizes known from records of a graph."""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from extensor._authoring.graph_sizes import GraphSizes, Size, plus
from extensor._authoring.rows import uncut_rows
from extensor._protocol.box import box
from extensor._protocol.stackable_spec import stacks_by_components
from extensor._protocol.symbolic import is_symbolic
from extensor._typing import Value

_records: weakref.WeakKeyDictionary[Any, list[weakref.ref[Any]]] = weakref.WeakKeyDictionary()
"""The records that were made or received while a graph was traced."""


def extents(value: Value, axis: int) -> list[tuple[tf.Tensor, int, int]]:
    """Returns the tensors that have an axis of a value, their axis, and the difference in size."""
    if isinstance(value, tf.Tensor):
        is_less = value.shape.rank is not None and value.shape.rank <= axis  # a mask of rows
        return [] if is_less else [(value, axis, 0)]
    rows = uncut_rows(value)
    if rows is not None:
        return [(rows[1], 0, -1)] if axis == 0 else extents(rows[0], axis - 1)
    return [each for part in _parts(value) for each in extents(part, axis)]


def known_sizes(value: Value, axis: int, sizes: GraphSizes) -> set[Size]:
    """Returns the size of an axis of a value, as each of its tensors says it."""
    return {plus(sizes.size(tensor, own), number) for tensor, own, number in extents(value, axis)}


def size_at(value: Value, axis: int) -> tf.Tensor:
    """Returns the size of an axis of a value, when the graph runs."""
    tensors = extents(value, axis)
    if not tensors:
        return tf.shape(box(tf.type_spec_from_value(value), value, axis + 1)[0])[axis]
    tensor, own, number = tensors[0]
    return tf.shape(tensor)[own] + number if number else tf.shape(tensor)[own]


def learn(value: Value, axis: int, size: Size, sizes: GraphSizes) -> None:
    """Stores that an axis of a value has a size."""
    for tensor, own, number in extents(value, axis):
        sizes.learn(tensor, own, plus(size, -number))


def remember(records: Value) -> None:
    """Remembers records of the graph that is traced, whose fields have the same rows."""
    if not tf.executing_eagerly():
        known = _records.setdefault(tf.compat.v1.get_default_graph(), [])
        known.append(weakref.ref(records))


def learn_from_records(sizes: GraphSizes) -> None:
    """Stores that the fields of each record in the graph have the same rows."""
    sizes.forget()
    graph: Any = tf.compat.v1.get_default_graph()
    while graph is not None:
        for each in _records.get(graph, ()):
            records = each()
            if records is not None:
                _learn_rows(records, sizes)
        graph = getattr(graph, "outer_graph", None)


def _learn_rows(value: Value, sizes: GraphSizes) -> None:
    rows = uncut_rows(value) if not isinstance(value, tf.Tensor) else None
    if rows is not None:
        sizes.learn_rows(rows[1], known_sizes(rows[0], 0, sizes))
        _learn_rows(rows[0], sizes)
    elif _is_records(value):
        for axis in range(value.rank):
            for size in list(known_sizes(value, axis, sizes))[:1]:
                learn(value, axis, size, sizes)
        for part in _parts(value):
            _learn_rows(part, sizes)


def _parts(value: Value) -> list[Any]:
    if _is_records(value):
        return value._row_parts()
    if is_symbolic(value) or isinstance(value, tf.Variable):
        return []
    spec: Any = tf.type_spec_from_value(value)
    return tf.nest.flatten(spec.to_components(value)) if stacks_by_components(spec) else []


def _is_records(value: Value) -> bool:
    """Returns whether a value is dense records, which this layer does not import."""
    return hasattr(type(value), "_row_parts")
