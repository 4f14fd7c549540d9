"""Batches as the tensors that a dataset holds in place of extension values.

`predict` of Keras takes batches out of a dataset one by one. To make values of them there, and
tensors again for the step, would take longer than many a step. So the dataset tells of nothing but
the tensors that it holds, its boxes, and the values are made of them in the step.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._keras.lowering import contains, is_extension_spec, mapped
from extensor._keras.spec_key import is_mark, mark, marked_spec
from extensor._protocol.box import boxed_specs, unbox

_BOXED = "boxed "


def boxed(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset of the boxes of another one's elements. It runs nothing for them.

    It is good for as long as the other one lives.

    >>> from extensor._keras.boxed_dataset import boxed, unboxed
    >>> rows = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    >>> [unboxed(element) for element in boxed(rows)]
    [<tf.RaggedTensor [[1], [2, 3]]>]
    """
    spec = dataset.element_spec
    if not contains(spec, is_extension_spec):
        return dataset
    variant = tf.data.experimental.to_variant(dataset)
    return tf.data.experimental.from_variant(variant, tf.nest.map_structure(_boxes, spec))


def unboxed(data: Any) -> Any:
    """Returns an element of a boxed dataset with its extension values."""
    return mapped(_unboxed, data, _is_boxed)


def _boxes(spec: Any) -> Any:
    if not is_extension_spec(spec):
        return spec
    return {_BOXED + mark(spec): tuple(boxed_specs(spec))}


def _is_boxed(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    key = next(iter(value))
    return isinstance(key, str) and key.startswith(_BOXED) and is_mark(key[len(_BOXED) :])


def _unboxed(form: dict[str, Any]) -> Any:
    ((key, tensors),) = form.items()
    return unbox(marked_spec(key[len(_BOXED) :]), list(tensors))
