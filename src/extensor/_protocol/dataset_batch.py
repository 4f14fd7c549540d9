"""Batches of extension values of different sizes: `ragged_batch` and `padded_batch`.

tf.data implements both for plain tensors only. `ragged_batch` casts each value to a type that
stacks as ragged tensors. `padded_batch` decomposes values, stacks each dense component as a ragged
tensor, and then pads it.
"""

# The methods of specs that this module calls are private, so that authors do not override them.

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._count_text import count_text
from extensor._path import Path
from extensor._protocol.box import box
from extensor._protocol.casting import cast_value, required
from extensor._protocol.stackable_spec import ragged_row, stacks_by_components
from extensor._tf import data_nest, map_elements, with_element_spec
from extensor._typing import Nest, TensorLike, Value
from extensor.errors import FieldError, StructureError

_Size = int | tf.Tensor | None


def ragged_batch(
    dataset: tf.data.Dataset,
    batch_size: TensorLike,
    drop_remainder: bool | tf.Tensor,
    row_splits_dtype: tf.DType,
    name: str | None,
) -> tf.data.Dataset:
    """Returns a dataset of batches in which dense components of unknown size become ragged.

    Args:
        dataset: A dataset of any elements.
        batch_size: As in `Dataset.ragged_batch`.
        drop_remainder: As in `Dataset.ragged_batch`.
        row_splits_dtype: As in `Dataset.ragged_batch`.
        name: As in `Dataset.ragged_batch`.

    Raises:
        DTypeError: If a type cannot hold ragged components (also a TypeError).
    """
    spec = dataset.element_spec
    rows = [ragged_row(part, row_splits_dtype) for part in data_nest.flatten(spec)]

    def boxes(element: Nest) -> tuple[tf.Tensor, ...]:
        pairs = zip(rows, data_nest.flatten(element), strict=True)
        return tuple(b for row, value in pairs for b in box(row, cast_value(row, value)))

    stacking = with_element_spec(
        map_elements(dataset, boxes), data_nest.pack_sequence_as(spec, rows)
    )
    return stacking.batch(batch_size, drop_remainder, name=name)


def padded_batch(
    dataset: tf.data.Dataset,
    batch_size: TensorLike,
    padded_shapes: Nest,
    padding_values: Nest,
    drop_remainder: bool | tf.Tensor,
    name: str | None,
) -> tf.data.Dataset:
    """Returns a dataset of batches in which every dense component is padded to one size.

    Args:
        dataset: A dataset of any elements.
        batch_size: As in `Dataset.padded_batch`.
        padded_shapes: As in `Dataset.padded_batch`. For an extension value: None, one shape for
            all its components, or a nest with the structure of its components, from which
            components may be missing. Ragged components stay ragged, except for rows of a ragged
            tensor for which a shape is given.
        padding_values: As in `Dataset.padded_batch`. For an extension value: like `padded_shapes`.
        drop_remainder: As in `Dataset.padded_batch`.
        name: As in `Dataset.padded_batch`.

    Raises:
        FieldError: If a shape or value names a component that does not exist (also a KeyError).
        StructureError: If a shape does not fit its component (also a ValueError).
        DTypeError: If a padding value is of another dtype (also a TypeError).
    """
    element_spec = dataset.element_spec
    specs = data_nest.flatten(element_spec)
    trees = _trees(element_spec, padded_shapes, padding_values)
    parts = [list[_Part](tf.nest.flatten(tree)) for tree in trees]
    flat = [part for each in parts for part in each]

    def boxes(element: Nest) -> tuple[tf.Tensor, ...]:
        values = [
            component
            for spec, value in zip(specs, data_nest.flatten(element), strict=True)
            for component in _decompose(spec, value)
        ]
        pairs = zip(flat, values, strict=True)
        return tuple(b for part, value in pairs for b in box(part.row, part.check(value)))

    def padded(batch: Nest) -> Nest:
        rest = iter([part.padded(value) for part, value in zip(flat, batch, strict=True)])
        values = [
            _compose(_stack(spec, each), rest) for spec, each in zip(specs, parts, strict=True)
        ]
        return data_nest.pack_sequence_as(element_spec, values)

    stacking = with_element_spec(map_elements(dataset, boxes), tuple(part.row for part in flat))
    return map_elements(stacking.batch(batch_size, drop_remainder, name=name), padded)


def bucket_shapes(element_spec: Nest, padded_shapes: Nest) -> Nest:
    """Returns complete padded shapes: one for each component of an element.

    Args:
        element_spec: The element spec of a dataset.
        padded_shapes: The shapes as passed to `padded_batch`, which may be incomplete.
    """
    shapes = [
        tf.nest.map_structure(lambda part: part.shape, tree)
        for tree in _trees(element_spec, padded_shapes, None)
    ]
    return data_nest.pack_sequence_as(element_spec, shapes)


@dataclasses.dataclass(frozen=True)
class _Part:
    """A dense component, which is padded, or another component, which is stacked without padding.

    Attributes:
        path: The name of the component in errors.
        spec: The spec of the component before it is padded and stacked.
        row: The spec of the component while it is stacked.
        shape: The padded shape, with None for the size of the longest; empty without padding.
        value: The padding value, a scalar tensor; None without padding.
    """

    path: str
    spec: tf.TypeSpec
    row: tf.TypeSpec
    shape: list[_Size]
    value: tf.Tensor | None

    @property
    def grows(self) -> bool:
        """Whether padding changes a size that the spec knows statically."""
        if self.row is self.spec or self.spec.shape.rank is None:
            return False
        return any(
            own is not None and size is not None and not _is_equal(own, size)
            for own, size in zip(self.spec.shape, self.shape, strict=True)
        )

    def check(self, value: Value) -> Value:
        """Returns a component cast to `row`; raises if it is larger than the padded shape."""
        if self.row is self.spec:
            return value
        value = tf.ensure_shape(value, [None] * len(self.shape))
        checks: list[tf.Operation] = []
        for axis, size in enumerate(self.shape):
            if size is not None:
                at = self.path
                expected = f"a size that can be padded to {self.shape}"
                fix = "Pad to a larger shape, or slice the value first."
                wrong = StructureError(at, expected, f"a larger size in dimension {axis}", fix)
                fits = tf.shape(value, tf.int64)[axis] <= tf.cast(size, tf.int64)
                checks.extend(required(fits, wrong))
        with tf.control_dependencies(checks):
            return cast_value(self.row, tf.identity(value), self.path)

    def padded(self, stack: Value) -> Value:
        """Returns a stack of components, padded."""
        if self.row is self.spec:
            return stack
        shape: Any = [None, *self.shape]
        if any(isinstance(size, tf.Tensor) for size in shape):
            shape = tf.stack([tf.cast(-1 if n is None else n, tf.int64) for n in shape])
        return stack.to_tensor(self.value, shape=shape)


def _is_equal(size: _Size, other: _Size) -> bool:
    return not isinstance(other, tf.Tensor) and size == other


def _decompose(spec: Any, value: Value) -> list[Value]:
    """Returns the leaf components of a value; nested extension values are decomposed too."""
    if not stacks_by_components(spec):
        return [value]
    pairs = zip(
        tf.nest.flatten(spec.component_specs),
        tf.nest.flatten(spec.to_components(value)),
        strict=True,
    )
    return [part for inner, component in pairs for part in _decompose(inner, component)]


def _compose(spec: Any, parts: Iterator[Value]) -> Value:
    """Returns the value whose leaf components an iterator yields: the inverse of `_decompose`."""
    if not stacks_by_components(spec):
        return next(parts)
    components = [_compose(inner, parts) for inner in tf.nest.flatten(spec.component_specs)]
    return spec.from_components(tf.nest.pack_sequence_as(spec.component_specs, components))


def _stack(spec: Any, parts: list[_Part]) -> tf.TypeSpec:
    """Returns the spec of a stack of values after padding."""
    if not stacks_by_components(spec):
        return spec
    if any(part.grows for part in parts):
        spec = _tf.ranks_only(spec)
    return spec.stacked(None)


def _trees(element_spec: Nest, padded_shapes: Nest, padding_values: Nest) -> list[Nest]:
    """Returns a list of nests of `_Part`s: one nest for each value of an element."""
    specs = data_nest.flatten(element_spec)
    shapes = [None] * len(specs)
    if padded_shapes is not None:
        shapes = data_nest.flatten_up_to(element_spec, padded_shapes)
    values = [padding_values] * len(specs)
    if data_nest.is_nested(element_spec) and data_nest.is_nested(padding_values):
        values = data_nest.flatten_up_to(element_spec, padding_values)
    return [
        _tree(spec, shape, value, Path())
        for spec, shape, value in zip(specs, shapes, values, strict=True)
    ]


def _tree(spec: Nest, shape: Nest, value: Nest, path: Path) -> Nest:
    """Returns the nest of `_Part`s of a spec.

    Args:
        spec: A spec, or a nest of component specs.
        shape: The padded shape for it, or a nest of them.
        value: The padding value for it, or a nest of them.
        path: The path of the spec in the value.
    """
    if stacks_by_components(spec):
        tree = _tree(spec._named_components(), shape, value, path)
        _check_rows(spec, tree)
        return tree
    if isinstance(spec, tf.TypeSpec):
        return _part(spec, shape, value, f"padded_batch, {path}" if path.names else "padded_batch")
    by_key = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
    keys = sorted(by_key)
    shapes = _for_each(keys, shape, _is_shape, "padded_shapes", path)
    values = _for_each(keys, value, lambda given: not _is_nest(given), "padding_values", path)
    return {
        key: _tree(by_key[key], shape, value, path / str(key))
        for key, shape, value in zip(keys, shapes, values, strict=True)
    }


def _for_each(
    keys: list[str] | list[int],
    given: Nest,
    is_single: Callable[[Nest], bool],
    name: str,
    path: Path,
) -> list[Nest]:
    """Returns the argument for each component, or None where none was given."""
    if given is None or is_single(given):
        return [given] * len(keys)
    where = f"{name}, {path}" if path.names else name
    names = ", ".join(map(str, keys))
    if isinstance(given, Mapping):
        unknown = [str(key) for key in given if key not in keys]
        if unknown:
            expected = f"only names of the components {names}"
            fix = "Use the component names of the spec."
            raise FieldError(where, expected, ", ".join(unknown), fix)
        return [given.get(key) for key in keys]
    if len(given) == len(keys):
        return list(given)
    expected = f"1 item for all, or 1 item for each of the components {names}"
    fix = "Give a dict with the components that need another shape or value than the default."
    raise StructureError(where, expected, count_text(len(given), "items"), fix)


def _is_nest(given: object) -> bool:
    return isinstance(given, (Mapping, list, tuple))


def _is_shape(given: Nest) -> bool:
    """Returns whether an argument is a single shape, and not a nest of shapes."""
    if isinstance(given, (list, tuple)):
        return not any(_is_nest(size) or isinstance(size, tf.TensorShape) for size in given)
    return not isinstance(given, Mapping)


def _part(spec: tf.TypeSpec, shape: Nest, value: TensorLike | None, path: str) -> _Part:
    if not isinstance(spec, tf.TensorSpec):
        if shape is None or not _sizes(shape, path):
            return _Part(path, spec, spec, [], None)
        if not isinstance(spec, tf.RaggedTensorSpec) or spec.ragged_rank > 0:
            expected = "no padded shape, because this component is not a dense tensor"
            fix = "Give shapes for dense tensors only, by the names of the components."
            raise StructureError(path, expected, str(shape), fix)
        # A row of a ragged tensor is a dense tensor. With a padded shape, it stacks as a dense one.
        spec = tf.TensorSpec(spec.shape, spec.dtype)
    sizes = _sizes(spec.shape if shape is None else shape, path)
    own = [None] * len(sizes) if spec.shape.rank is None else spec.shape.as_list()
    known = [None if isinstance(size, tf.Tensor) else size for size in sizes]
    if len(own) != len(sizes) or any(
        a is not None and b is not None and a > b for a, b in zip(own, known, strict=True)
    ):
        fix = "Give a shape of the same rank, in which no size is smaller."
        raise StructureError(path, f"a shape that {spec.shape} can be padded to", str(shape), fix)
    padded = [
        axis
        for axis, (a, b) in enumerate(zip(own, sizes, strict=True))
        if a is None or not (b is None or _is_equal(a, b))
    ]
    zero = tf.zeros([], spec.dtype)
    if not padded:
        return _Part(path, spec, spec, sizes, zero)
    value = zero if value is None else cast_value(tf.TensorSpec([], spec.dtype), value, path)
    inner = padded[-1] + 1
    row = tf.RaggedTensorSpec([None] * inner + own[inner:], spec.dtype, inner - 1, tf.int64)
    return _Part(path, spec, row, sizes, value)


def _sizes(shape: Nest, path: str) -> list[_Size]:
    """Returns the sizes of a shape: integers, scalar tensors, and None for the longest."""
    if isinstance(shape, tf.Tensor):
        return tf.unstack(shape)
    try:
        sizes: Any = shape.as_list() if isinstance(shape, tf.TensorShape) else list(shape)
    except (TypeError, ValueError) as error:
        fix = "Give a list of sizes, with None for the size of the longest."
        raise StructureError(path, "a padded shape of known rank", str(shape), fix) from error
    sizes = [size if isinstance(size, tf.Tensor) or size is None else int(size) for size in sizes]
    return [None if isinstance(size, int) and size < 0 else size for size in sizes]


def _check_rows(spec: object, tree: Nest) -> None:
    """Raises if a value is padded as a whole but has components that cannot be padded."""
    shape: Any = getattr(spec, "shape", None)
    parts: list[_Part] = tf.nest.flatten(tree)
    if not isinstance(shape, tf.TensorShape) or shape.is_fully_defined():
        return
    for part in parts:
        if part.value is None:
            expected = f"a dense component: {type(spec).__name__} of shape {shape} are padded whole"
            fix = "Stack them with ragged_batch."
            raise StructureError(part.path, expected, str(part.spec), fix)
