"""Datasets of tf.data, where it supports only tensors, or elements of one type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from extensor._patches.common_type import cast_to_common_type, cast_to_declared, takes_casts
from extensor._patches.patch import overrides
from extensor._protocol import dataset_batch
from extensor._protocol.casting import cast_value, castable_type, difference_of_records
from extensor._raised import raise_marked
from extensor._tf import Extension, describes_extension, map_elements
from extensor._tf._tf_data import (
    as_numpy,
    data_nest,
    has_extension,
    structure,
    with_element_spec,
)
from extensor._typing import Nest, Value
from extensor.errors import DTypeError


@overrides(
    "tensorflow.python.data.experimental.ops.prefetching_ops._CopyToDeviceDataset.__init__",
    reason="copy_to_device and prefetch_to_device build an iterator on the other device from "
    "legacy types and shapes, which only tensors have.",
    probe="devices",
)
def copy_to_device(
    self: Any,
    input_dataset: tf.data.Dataset,
    target_device: str,
    source_device: str = "/cpu:0",
    *,
    plain: Callable[..., None],
) -> None:
    """Calls TensorFlow's function with the boxes of extension values."""
    if not has_extension(input_dataset):
        plain(self, input_dataset, target_device, source_device)
        return
    spec = input_dataset.element_spec
    boxes = with_element_spec(input_dataset, tuple(structure.get_flat_tensor_specs(spec)))
    plain(self, boxes, target_device, source_device)
    # TensorFlow reads the element_spec from it.
    self._input_dataset = with_element_spec(self._input_dataset, spec)


@overrides(
    "tensorflow.python.data.experimental.ops.from_list._ListDataset.__init__",
    reason="tf.data.experimental.from_list converts each value to a tensor.",
    probe="lists_of_values",
)
def list_dataset(
    self: Any, elements: list[Nest], name: str | None = None, *, plain: Callable[..., None]
) -> None:
    """Calls TensorFlow's function with the boxes of values, cast to their common type."""
    given = elements if isinstance(elements, list) else []
    if not any(isinstance(value, Extension) for e in given for value in data_nest.flatten(e)):
        plain(self, elements, name)
        return
    elements = [structure.normalize_element(element) for element in elements]
    specs = [structure.type_spec_from_value(element) for element in elements]
    for spec in specs[1:]:
        data_nest.assert_same_structure(specs[0], spec)
    common = tuple(map(_common_spec, zip(*map(data_nest.flatten, specs), strict=True)))
    boxes: list[tuple[tf.Tensor, ...]] = []
    for element in elements:
        pairs = zip(common, data_nest.flatten(element), strict=True)
        cast = [cast_value(s, v) if describes_extension(s) else v for s, v in pairs]
        boxes.append(tuple(structure.to_tensor_list(common, tuple(cast))))
    plain(self, boxes, name)
    self._structure = data_nest.pack_sequence_as(specs[0], common)


def _common_spec(specs: Sequence[tf.TypeSpec]) -> tf.TypeSpec:
    """Returns the common spec to which values of all specs are cast; raises if there is none."""
    common = specs[0]
    for i, spec in enumerate(specs[1:], 1):
        found = common.most_specific_common_supertype([spec]) or castable_type(common, spec)
        if found is None:
            at = f"from_list, element {i}"
            expected = f"a value with a common type with {common}"
            fix = "Give all elements the same type."
            raise difference_of_records(common, spec, at) or DTypeError(
                at, expected, str(spec), fix
            )
        common = found
    return common


@overrides(
    "tensorflow.python.data.ops.unique_op._unique",
    reason="Dataset.unique supports only integers and strings.",
    probe="unique_elements",
)
def unique(
    input_dataset: tf.data.Dataset, name: str | None, *, plain: Callable[..., tf.data.Dataset]
) -> tf.data.Dataset:
    """Calls TensorFlow's function with the serialized components of extension values."""
    if not has_extension(input_dataset):
        return plain(input_dataset, name)
    spec = input_dataset.element_spec
    tensors = tf.nest.flatten(spec, expand_composites=True)

    def text(element: Nest) -> tf.Tensor:
        flat = tf.nest.flatten(element, expand_composites=True)
        return tf.io.serialize_tensor(tf.stack(list(map(tf.io.serialize_tensor, flat))))

    def boxes(text: tf.Tensor) -> tuple[tf.Tensor, ...]:
        texts = tf.unstack(tf.io.parse_tensor(text, tf.string), len(tensors))
        flat = [
            tf.ensure_shape(tf.io.parse_tensor(part, tensor.dtype), tensor.shape)
            for part, tensor in zip(texts, tensors, strict=True)
        ]
        value = tf.nest.pack_sequence_as(spec, flat, expand_composites=True)
        return tuple(structure.to_tensor_list(spec, value))

    texts = plain(map_elements(input_dataset, text), name)
    return with_element_spec(map_elements(texts, boxes), spec)


class _NumpyIterator(tf.data.NumpyIterator):
    """An iterator over a dataset with extension values in its elements."""

    def __next__(self) -> Nest:
        return data_nest.map_structure(as_numpy, next(self._iterator))


@overrides(
    "tf.data.Dataset.as_numpy_iterator",
    reason="It rejects extension values.",
    probe="datasets_in_numpy",
)
def as_numpy_iterator(
    self: tf.data.Dataset, *, plain: Callable[..., tf.data.NumpyIterator]
) -> tf.data.NumpyIterator:
    """Returns an iterator that converts the components of extension values too."""
    if not has_extension(self) or not tf.executing_eagerly():
        return plain(self)
    others = [s for s in data_nest.flatten(self.element_spec) if not describes_extension(s)]
    known = (tf.TensorSpec, tf.RaggedTensorSpec, tf.SparseTensorSpec, structure.NoneTensorSpec)
    if not all(isinstance(spec, known) for spec in others):
        plain(with_element_spec(self, tuple(others)))  # raises TensorFlow's error
    return _NumpyIterator(self)


@overrides(
    "tensorflow.python.data.ops.ragged_batch_op._ragged_batch",
    reason="Dataset.ragged_batch makes only tensors ragged, not components.",
    probe="ragged_batches",
)
def ragged_batch(
    input_dataset: tf.data.Dataset, *args: Any, plain: Callable[..., tf.data.Dataset]
) -> tf.data.Dataset:
    """Like TensorFlow's function, also for components of extension values."""
    batch = dataset_batch.ragged_batch if has_extension(input_dataset) else plain
    return batch(input_dataset, *args)


@overrides(
    "tensorflow.python.data.ops.padded_batch_op._padded_batch",
    reason="Dataset.padded_batch pads only tensors.",
    probe="padded_batches",
)
def padded_batch(
    input_dataset: tf.data.Dataset, *args: Any, plain: Callable[..., tf.data.Dataset]
) -> tf.data.Dataset:
    """Like TensorFlow's function, also for components of extension values."""
    batch = dataset_batch.padded_batch if has_extension(input_dataset) else plain
    return batch(input_dataset, *args)


@overrides(
    "tf.data.Dataset.bucket_by_sequence_length",
    reason="It treats the shapes of extension values as shapes of tensors.",
    probe="buckets",
)
def bucket_by_sequence_length(
    self: tf.data.Dataset, *args: Any, plain: Callable[..., tf.data.Dataset], **kwargs: Any
) -> tf.data.Dataset:
    """Like TensorFlow's function, also for components of extension values."""
    if not has_extension(self):
        return plain(self, *args, **kwargs)
    call = inspect.signature(plain).bind(self, *args, **kwargs)
    given = call.arguments
    if not given.get("no_padding"):
        shapes = given.get("padded_shapes")
        given["padded_shapes"] = dataset_batch.bucket_shapes(self.element_spec, shapes)
    return plain(*call.args, **call.kwargs)


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


_OTHER_SIZES = "Cannot batch tensors with different shapes"


@overrides(
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator.get_next_as_optional",
    reason="A loop over a dataset of a strategy asks for its batches by this function. Its errors "
    "are those of the iteration of any dataset.",
    probe="raised_errors",
)
@overrides(
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator._next_internal",
    reason="An error during the iteration of a dataset of `xt.data` is the error that names the "
    "file, and no InvalidArgumentError with a traceback as its text. For extension values of "
    "different sizes, the error of `batch` names `ragged_batch`.",
    probe="raised_errors",
)
def next_element(self: Any, *, plain: Callable[..., Nest]) -> Nest:
    """Calls TensorFlow's function; raises an exception of `mark` as it was."""
    try:
        return plain(self)
    except tf.errors.OpError as error:
        raise_marked(error.message)
        if _OTHER_SIZES in error.message and has_extension(self):
            fix = "Use Dataset.ragged_batch for values of different sizes, or padded_batch."
            message = f"{error.message.rstrip()} {fix}"
            raise type(error)(error.node_def, error.op, message) from None
        raise


@overrides(
    "tensorflow.python.data.ops.concatenate_op._concatenate",
    reason="Dataset.concatenate rejects elements of different types.",
    probe="concatenation",
)
def concatenate(
    input_dataset: tf.data.Dataset,
    dataset_to_concatenate: tf.data.Dataset,
    name: str | None = None,
    *,
    plain: Callable[..., tf.data.Dataset],
) -> tf.data.Dataset:
    """Calls TensorFlow's function after casting the elements to their common type."""
    datasets = [input_dataset, dataset_to_concatenate]
    return plain(*cast_to_common_type(datasets, "Dataset.concatenate"), name)


@overrides(
    "tensorflow.python.data.ops.directed_interleave_op._directed_interleave",
    reason="Dataset.choose_from_datasets and sample_from_datasets reject datasets whose elements "
    "have different types.",
    probe="chosen_datasets",
)
def directed_interleave(
    selector_input: tf.data.Dataset,
    data_inputs: Iterable[tf.data.Dataset],
    stop_on_empty_dataset: bool = False,
    *,
    plain: Callable[..., tf.data.Dataset],
) -> tf.data.Dataset:
    """Calls TensorFlow's function after casting the elements to their common type."""
    datasets = cast_to_common_type(list(data_inputs), "Dataset.choose_from_datasets")
    return plain(selector_input, datasets, stop_on_empty_dataset)


@overrides(
    "tensorflow.python.data.ops.from_generator_op._from_generator",
    reason="Dataset.from_generator rejects an element that does not match output_signature.",
    probe="generated_elements",
)
def from_generator(
    generator: Callable[..., Iterable[Nest]],
    output_types: Nest,
    output_shapes: Nest,
    args: Nest,
    output_signature: Nest,
    name: str | None,
    *,
    plain: Callable[..., tf.data.Dataset],
) -> tf.data.Dataset:
    """Calls TensorFlow's function after casting the elements to the declared types."""
    declared = data_nest.flatten(output_signature)

    def cast(element: Nest) -> Nest:
        try:
            values = data_nest.flatten_up_to(output_signature, element)
        except (TypeError, ValueError):
            return element  # TensorFlow raises its own error
        return data_nest.pack_sequence_as(
            output_signature, list(map(cast_to_declared, declared, values))
        )

    def cast_generator(*args: Any) -> Iterator[Nest]:
        return map(cast, generator(*args))

    makes_casts = callable(generator) and any(map(takes_casts, declared))
    elements = cast_generator if makes_casts else generator
    return plain(elements, output_types, output_shapes, args, output_signature, name)
