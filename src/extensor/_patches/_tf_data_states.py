"""Extension values as states of Dataset.scan and reduce, and in windows."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from extensor._patches.patch import replaces
from extensor._tf import describes_extension
from extensor._tf._tf_data import data_nest


class _Whole:
    """A spec of an extension type in the place of a legacy dtype or shape of tf.data.

    It implements the operations that tf.data uses on either, by the rules of the spec.
    """

    ndims = 1

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Whole) and self._merged(other) is not None

    def __hash__(self) -> int:
        return hash(type(self.spec))

    def __repr__(self) -> str:
        return repr(self.spec)

    def _merged(self, other: _Whole) -> Any:
        return self.spec.most_specific_common_supertype([other.spec])

    def as_list(self) -> list[Any]:
        return [self.spec]

    def most_specific_compatible_shape(self, other: _Whole) -> _Whole:
        return _Whole(self._merged(other))


_LEGACY = "Dataset.scan and reduce decompose the spec of a state into dtype, shape and class, but "


@replaces(
    "tf.TypeSpec._to_legacy_output_types",
    reason=_LEGACY + "an extension type has several dtypes.",
    probe="structure",
)
def legacy_types(plain: Any) -> Any:
    return _whole(plain)


@replaces(
    "tf.TypeSpec._to_legacy_output_shapes",
    reason=_LEGACY + "an extension type has several shapes.",
    probe="structure",
)
def legacy_shapes(plain: Any) -> Any:
    return _whole(plain)


def _whole(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def to_legacy(self: Any) -> Any:
        return _Whole(self) if describes_extension(self) else plain(self)

    return to_legacy


@replaces(
    "tensorflow.python.data.util.structure.convert_legacy_structure",
    reason="tf.data rebuilds only specs of its own types from dtype, shape and class.",
    probe="structure",
)
def convert_legacy_structure(plain: Any) -> Any:
    def _convert_legacy_structure(
        output_types: Any, output_shapes: Any, output_classes: Any
    ) -> Any:
        """Calls TensorFlow's function with the specs that `_Whole` contains."""
        shapes: Any = data_nest.flatten(output_shapes)
        if any(isinstance(shape, _Whole) for shape in shapes):
            # TensorFlow's function keeps a spec in the place of a class unchanged.
            flat_classes: Any = data_nest.flatten(output_classes)
            classes = zip(shapes, flat_classes, strict=True)
            output_classes = data_nest.pack_sequence_as(
                output_classes, [s.spec if isinstance(s, _Whole) else c for s, c in classes]
            )
        return plain(output_types, output_shapes, output_classes)

    return _convert_legacy_structure


@replaces(
    "tensorflow.python.data.ops.window_op._window",
    reason="Dataset.window creates a dataset for each tensor of an element, but expects one for "
    "each value.",
    probe="windows",
)
def window(plain: Any) -> Any:
    def _window(input_dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls TensorFlow's function with each extension value in an Optional."""
        specs = input_dataset.element_spec
        ours = tf.nest.map_structure(describes_extension, specs)
        if not any(tf.nest.flatten(ours)):
            return plain(input_dataset, *args, **kwargs)

        def mapped(dataset: Any, function: Callable[[Any], Any]) -> Any:
            def of_element(*element: Any) -> Any:
                # Dataset.map passes the items of a tuple as separate arguments.
                whole = element if type(dataset.element_spec) is tuple else element[0]
                return tf.nest.map_structure(lambda own, x: function(x) if own else x, ours, whole)

            return dataset.map(of_element)

        boxed = mapped(input_dataset, tf.experimental.Optional.from_value)
        windows = plain(boxed, *args, **kwargs)
        return mapped(windows, lambda window: window.map(lambda box: box.get_value()))

    return _window
