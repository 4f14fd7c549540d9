"""Maps, compares and merges the trees of shapes, specs and data that specs serialize to.

A tree is a leaf, or a list, tuple, namedtuple or mapping of trees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from extensor._tf import number_key

Leaf = Any
"""A shape, dtype, spec, or other static data."""

Tree = Any
"""A `Leaf`, or a list, tuple, namedtuple or mapping of trees."""


class Static:
    """A TypeSpec that is static data, in trees where a bare TypeSpec describes a tensor."""

    __slots__ = ("spec",)

    def __init__(self, spec: tf.TypeSpec) -> None:
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash((Static, self.spec))

    def __repr__(self) -> str:
        return repr(self.spec)


def with_items(container: Tree, items: Iterable[Tree]) -> Tree:
    """Returns a container of the same class with other items.

    Args:
        container: A list, tuple, namedtuple or mapping.
        items: The same number of items; for a mapping, its values in the order of its keys.

    >>> from extensor._protocol.tree import with_items
    >>> with_items({"a": 1, "b": 2}, [3, 4])
    {'a': 3, 'b': 4}
    """
    cls: Any = container.__class__  # not `type()`: tf.Module wraps containers in proxies
    if isinstance(container, Mapping):
        return cls(zip(container, items, strict=True))  # pyright: ignore[reportUnknownArgumentType]
    return cls(*items) if hasattr(container, "_fields") else cls(items)


def map_leaves(function: Callable[[Leaf], Leaf], tree: Tree) -> Tree:
    """Returns a tree with a function applied to every leaf.

    >>> from extensor._protocol.tree import map_leaves
    >>> map_leaves(str, (1, {"a": [2, 3]}))
    ('1', {'a': ['2', '3']})
    """
    if isinstance(tree, (tuple, list)):
        return with_items(tree, [map_leaves(function, item) for item in tree])
    if isinstance(tree, Mapping):
        return with_items(tree, [map_leaves(function, item) for item in tree.values()])
    return function(tree)


def map_shapes(
    tree: Tree,
    change_shape: Callable[[tf.TensorShape], tf.TensorShape],
    change_spec: Callable[[tf.TypeSpec], tf.TypeSpec],
) -> Tree:
    """Returns a tree with one function applied to its shapes, and another to its specs.

    >>> from extensor._protocol.tree import map_shapes
    >>> import tensorflow as tf
    >>> map_shapes((tf.TensorShape([3, 2]), "mm"), lambda shape: shape[1:], lambda spec: spec)
    (TensorShape([2]), 'mm')
    """

    def change(leaf: Leaf) -> Leaf:
        if isinstance(leaf, tf.TypeSpec):
            return change_spec(leaf)
        return change_shape(leaf) if isinstance(leaf, tf.TensorShape) else leaf

    return map_leaves(change, tree)


class TreeComparison(NamedTuple):
    """Functions that compare the containers and the leaves of two trees.

    Attributes:
        same_kind: Returns whether two subtrees have the same class.
        equal: Returns whether two leaves of the same class are equal.
    """

    same_kind: Callable[[Tree, Tree], bool]
    equal: Callable[[Leaf, Leaf], bool]


def _same_saved_kind(a: Tree, b: Tree) -> bool:
    """Returns whether two subtrees have the same class, as far as a SavedModel preserves it.

    A SavedModel restores a namedtuple as another class with the same name and fields, and an
    OrderedDict as a dict.
    """
    if hasattr(a, "_fields") and hasattr(b, "_fields"):
        return type(a).__name__ == type(b).__name__ and a._fields == b._fields
    if isinstance(a, Mapping):
        return isinstance(b, Mapping)
    return type(a) is type(b)


def _equal(a: Leaf, b: Leaf) -> bool:
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return np.array_equal(a, b) or number_key(a.tolist()) == number_key(b.tolist())
    if isinstance(a, (float, np.generic)):
        return number_key(a) == number_key(b)
    return bool(a == b)


SERIALIZED = TreeComparison(_same_saved_kind, _equal)
"""Compares serializations, one of which may come from a SavedModel. NaN equals NaN."""


def supertype(a: tf.TypeSpec, b: tf.TypeSpec) -> tf.TypeSpec | None:
    """Returns the most specific spec that describes the values of both, without a cast, or None.

    Args:
        a: A spec of any type.
        b: Another spec.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.authoring.supertype(tf.TensorSpec([2, 3]), tf.TensorSpec([4, 3]))
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    >>> xt.authoring.supertype(tf.TensorSpec([2]), tf.TensorSpec([2], tf.int32)) is None
    True
    """
    if type(a) is tf.TensorSpec and type(b) is tf.TensorSpec:
        # Same as TensorFlow, which maps a function over the parts of each spec.
        if a.dtype != b.dtype or a.name != b.name:
            return None
        shape = _common_shape(a.shape, b.shape)
        return tf.TensorSpec(shape, a.dtype, a.name)
    try:
        return a.most_specific_common_supertype([b])
    except NotImplementedError:  # a VariableSpec that no function was traced with
        return None


# A cache, because the fields of records have few different shapes.
@functools.lru_cache(maxsize=1024)
def _common_shape(a: tf.TensorShape, b: tf.TensorShape) -> tf.TensorShape:
    return a.most_specific_compatible_shape(b)


def are_compatible(a: Tree, b: Tree, by: TreeComparison = SERIALIZED) -> bool:
    """Returns whether two trees are compatible.

    Shapes, dtypes and specs are compared by their own `is_compatible_with`.

    Args:
        a: A tree, which may be a bare spec.
        b: Another tree. The order does not matter.
        by: The comparison of containers and of other leaves.

    >>> from extensor._protocol.tree import are_compatible
    >>> import tensorflow as tf
    >>> dense, row = tf.TensorSpec([2]), tf.RaggedTensorSpec([2], ragged_rank=0)
    >>> dense.is_compatible_with(row), are_compatible(dense, row), are_compatible(row, dense)
    (False, True, True)
    >>> are_compatible((tf.TensorShape([None]), "mm"), (tf.TensorShape([3]), "mm"))
    True
    """
    if isinstance(a, tf.TypeSpec):
        # TensorFlow's specs treat any other object as a value, and may raise.
        return isinstance(b, tf.TypeSpec) and (
            a.is_compatible_with(b)
            # The spec of a row of a RaggedTensor accepts a TensorSpec, but not vice versa.
            or (isinstance(b, tf.RaggedTensorSpec) and b.is_compatible_with(a))
        )
    if not by.same_kind(a, b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(are_compatible(x, y, by) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(are_compatible(item, b[k], by) for k, item in a.items())
    if isinstance(a, Static):
        return are_compatible(a.spec, b.spec)
    if isinstance(a, (tf.TensorShape, tf.DType)):
        return a.is_compatible_with(b)
    return by.equal(a, b)


def merge(
    a: Tree,
    b: Tree,
    merge_specs: Callable[[tf.TypeSpec, tf.TypeSpec], tf.TypeSpec | None] = supertype,
    by: TreeComparison = SERIALIZED,
) -> Tree | None:
    """Returns a tree with the merged shapes and specs of two trees, or None.

    Args:
        a: A tree other than a bare None.
        b: Another tree.
        merge_specs: Returns the merge of two specs, or None.
        by: The comparison of containers and other leaves, which must be equal.

    Returns:
        A tree with the containers of the first tree; None if the trees do not merge.

    >>> from extensor._protocol.tree import merge
    >>> import tensorflow as tf
    >>> merge((tf.TensorShape([2]), "mm"), (tf.TensorShape([3]), "mm"))
    (TensorShape([None]), 'mm')
    >>> merge((tf.TensorShape([2]), "mm"), (tf.TensorShape([2]), "inch")) is None
    True
    """
    try:
        return _merge(a, b, merge_specs, by)
    except _NoMergeError:
        return None


class _NoMergeError(Exception):
    """Two trees do not merge. Raised instead of returning None, which is a valid leaf."""


def _merge(
    a: Tree,
    b: Tree,
    merge_specs: Callable[[tf.TypeSpec, tf.TypeSpec], tf.TypeSpec | None],
    by: TreeComparison,
) -> Tree:
    if isinstance(a, tf.TypeSpec) and isinstance(b, tf.TypeSpec):
        spec = merge_specs(a, b)
        if spec is None:
            raise _NoMergeError
        return spec
    if not by.same_kind(a, b):
        raise _NoMergeError
    if isinstance(a, tf.TensorShape):
        return a.most_specific_compatible_shape(b)
    if isinstance(a, Static):
        return Static(_merge(a.spec, b.spec, merge_specs, by))
    if isinstance(a, (tuple, list)):
        if len(a) == len(b):
            pairs = zip(a, b, strict=True)
            return with_items(a, [_merge(x, y, merge_specs, by) for x, y in pairs])
    elif isinstance(a, Mapping):
        if a.keys() == b.keys():
            return with_items(a, [_merge(item, b[k], merge_specs, by) for k, item in a.items()])
    elif by.equal(a, b):
        return a
    raise _NoMergeError
