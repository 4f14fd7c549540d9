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
        yield f"{type(value).__name__}("
        for i, (name, component) in enumerate(_name_items(spec, components)):
            yield (", " if i else "") + name
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


def _name_items(spec: Any, components: Nest) -> list[tuple[str, Nest]]:
    """Returns the outer items of components, each with its name and `=`, or an empty text."""
    if isinstance(components, Mapping):
        return [(f"{name}=", components[name]) for name in sorted(components)]
    items = list(components) if isinstance(components, (list, tuple)) else [components]
    # The components of ragged records are values and row splits; the values contain the fields.
    is_record = getattr(spec, "_record", None) is spec
    names = sorted(spec.field_names()) if is_record else []
    labels = [f"{name}=" for name in names] if len(names) == len(items) else [""] * len(items)
    return list(zip(labels, items, strict=True))
