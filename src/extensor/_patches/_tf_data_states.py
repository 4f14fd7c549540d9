"""Extension values as states of Dataset.scan and reduce, and in windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.patch import overrides
from extensor._tf import describes_extension, map_elements
from extensor._tf._tf_data import data_nest
from extensor._typing import Nest, Value


class _LegacySpec:
    """A spec of an extension type in the place of a legacy dtype or shape of tf.data.

    It implements the operations that tf.data uses on either, by the rules of the spec.
    """

    ndims = 1

    def __init__(self, spec: tf.TypeSpec) -> None:
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _LegacySpec) and self._merge(other) is not None

    def __hash__(self) -> int:
        return hash(type(self.spec))

    def __repr__(self) -> str:
        return repr(self.spec)

    def _merge(self, other: _LegacySpec) -> tf.TypeSpec | None:
        return self.spec.most_specific_common_supertype([other.spec])

    def as_list(self) -> list[tf.TypeSpec]:
        return [self.spec]

    def most_specific_compatible_shape(self, other: _LegacySpec) -> _LegacySpec:
        return _LegacySpec(self._merge(other))


_LEGACY = "Dataset.scan and reduce decompose the spec of a state into dtype, shape and class, but "


@overrides(
    "tf.TypeSpec._to_legacy_output_types",
    reason=_LEGACY + "an extension type has several dtypes.",
    probe="structure",
)
@overrides(
    "tf.TypeSpec._to_legacy_output_shapes",
    reason=_LEGACY + "an extension type has several shapes.",
    probe="structure",
)
def to_legacy(self: tf.TypeSpec, *, plain: Callable[[tf.TypeSpec], Any]) -> Any:
    """Calls TensorFlow's method, but for specs of extension types."""
    return _LegacySpec(self) if describes_extension(self) else plain(self)


@overrides(
    "tensorflow.python.data.util.structure.convert_legacy_structure",
    reason="tf.data rebuilds only specs of its own types from dtype, shape and class.",
    probe="structure",
)
def convert_legacy_structure(
    output_types: Nest, output_shapes: Nest, output_classes: Nest, *, plain: Callable[..., Nest]
) -> Nest:
    """Calls TensorFlow's function with the specs that `_LegacySpec` contains."""
    shapes = data_nest.flatten(output_shapes)
    if any(isinstance(shape, _LegacySpec) for shape in shapes):
        # TensorFlow's function keeps a spec in the place of a class unchanged.
        classes = zip(shapes, data_nest.flatten(output_classes), strict=True)
        output_classes = data_nest.pack_sequence_as(
            output_classes, [s.spec if isinstance(s, _LegacySpec) else c for s, c in classes]
        )
    return plain(output_types, output_shapes, output_classes)


@overrides(
    "tensorflow.python.data.ops.window_op._window",
    reason="Dataset.window creates a dataset for each tensor of an element, but expects one for "
    "each value.",
    probe="windows",
)
def window(
    input_dataset: tf.data.Dataset, *args: Any, plain: Callable[..., tf.data.Dataset], **kwargs: Any
) -> tf.data.Dataset:
    """Calls TensorFlow's function with each extension value in an Optional."""
    is_ours = tf.nest.map_structure(describes_extension, input_dataset.element_spec)
    if not any(tf.nest.flatten(is_ours)):
        return plain(input_dataset, *args, **kwargs)

    def map_ours(dataset: tf.data.Dataset, function: Callable[[Value], Value]) -> tf.data.Dataset:
        return map_elements(
            dataset,
            lambda element: tf.nest.map_structure(
                lambda ours, value: function(value) if ours else value, is_ours, element
            ),
        )

    windows = plain(map_ours(input_dataset, tf.experimental.Optional.from_value), *args, **kwargs)
    return map_ours(windows, lambda window: window.map(lambda optional: optional.get_value()))
