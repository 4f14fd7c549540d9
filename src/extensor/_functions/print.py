"""xt.print for extension values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from extensor import _tf
from extensor._tf import CompositeTensor
from extensor._typing import Nest


def print_(*inputs: Any, **kwargs: Any) -> tf.Operation | None:
    """Prints values; in a graph, prints them when the graph runs.

    Like `tf.print`, for nests of tensors and extension values. An extension value is printed with
    its components.

    Args:
        *inputs: The values to print.
        **kwargs: As in `tf.print`.

    Returns:
        The result of `tf.print`.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> @xt.extension_type
    ... class Interval:
    ...     low: tf.Tensor
    ...     high: tf.Tensor
    ...     unit: str
    >>> xt.print("within", Interval(0, 1, "mm"))  # doctest: +SKIP
    within Interval(high=1, low=0)
    """
    if not any(map(_is_extension, tf.nest.flatten(inputs))):
        return tf.print(*inputs, **kwargs)
    tensors: list[tf.Tensor] = []
    text = kwargs.pop("sep", " ").join(
        value if isinstance(value, str) else "".join(_template(value, tensors)) for value in inputs
    )
    line = tf.strings.format(text, tensors, _PLACEHOLDER, kwargs.pop("summarize", 3))
    return tf.print(line, **kwargs)


_PLACEHOLDER = "\N{OBJECT REPLACEMENT CHARACTER}"


def _is_extension(value: object) -> bool:
    shown_by_tensorflow = (tf.RaggedTensor, tf.SparseTensor, tf.Variable)
    return isinstance(value, CompositeTensor) and not isinstance(value, shown_by_tensorflow)


def _template(value: Nest, tensors: list[tf.Tensor]) -> Iterator[str]:
    """Yields the text of a value with placeholders for tensors, which it appends to `tensors`."""
    if isinstance(value, (tf.Tensor, tf.Variable, tf.RaggedTensor)):
        tensors.append(value)
        yield _PLACEHOLDER
    elif isinstance(value, CompositeTensor):
        spec = tf.type_spec_from_value(value)
        components = _tf.to_components(spec, value)
        names = _names(spec, components)
        yield f"{type(value).__name__}("
        for i, component in enumerate(tf.nest.flatten(components)):
            yield (", " if i else "") + (f"{names[i]}=" if names else "")
            yield from _template(component, tensors)
        yield ")"
    elif isinstance(value, Mapping):
        yield "{"
        for i, (key, item) in enumerate(value.items()):
            yield f"{', ' if i else ''}{key!r}: "
            yield from _template(item, tensors)
        yield "}"
    elif isinstance(value, (list, tuple)):
        opening, closing = "[]" if isinstance(value, list) else "()"
        yield opening
        for i, item in enumerate(value):
            yield ", " if i else ""
            yield from _template(item, tensors)
        yield closing
    else:
        yield repr(value)


def _names(spec: Any, components: Nest) -> list[str]:
    """Returns the names of flat components, or no names if the spec does not have them."""
    if isinstance(components, Mapping):
        return sorted(components)
    # The components of ragged records are values and row splits; the values contain the fields.
    is_record = hasattr(spec, "field_names") and getattr(spec, "_record", spec) is spec
    names = sorted(spec.field_names()) if is_record else []
    return names if len(names) == len(tf.nest.flatten(components)) else []
