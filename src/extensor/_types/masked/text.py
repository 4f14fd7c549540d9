"""The values of a MaskedTensor as text: lists with `--` for what is not valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import tensorflow as tf

if TYPE_CHECKING:
    from extensor._types.masked.value import MaskedTensor

_SHOWN = 3  # items at the beginning and at the end of a list


def is_eager(value: MaskedTensor) -> bool:
    """Returns whether all tensors of a value are known, and its rows can be listed."""
    parts = tf.nest.flatten(value, expand_composites=True)
    return value.shape.rank is not None and all(hasattr(part, "numpy") for part in parts)


def to_text(value: MaskedTensor) -> str:
    """Returns the first and last rows of an eager MaskedTensor as text."""
    dtype: Any = getattr(value, "dtype", None)
    kind = dtype.as_numpy_dtype if isinstance(dtype, tf.DType) and dtype.is_floating else None
    if not value.shape.rank:
        return _text(value.to_py(), kind)
    count = int(tf.shape(value.mask, tf.int64)[0]) if value.mask.shape.rank else 1
    if count <= 2 * _SHOWN:
        return _text(value.to_py(), kind)
    ends = [_text(rows.to_py(), kind)[1:-1] for rows in (value[:_SHOWN], value[-_SHOWN:])]
    return f"[{ends[0]}, ..., {ends[1]}]"


def _text(plain: object, kind: Callable[[float], Any] | None) -> str:
    """Returns numbers, lists and dicts as text; floats as their dtype writes them."""
    if plain is None:
        return "--"
    if isinstance(plain, (list, tuple)):
        items = cast("list[Any]", plain)
        texts = [_text(item, kind) for item in items[:_SHOWN]]
        texts += ["..."] if len(items) > 2 * _SHOWN else []
        last = items[-_SHOWN:] if len(items) > 2 * _SHOWN else items[_SHOWN:]
        return "[" + ", ".join([*texts, *(_text(item, kind) for item in last)]) + "]"
    if isinstance(plain, Mapping):
        fields = cast("Mapping[str, Any]", plain)
        return "{" + ", ".join(f"{name}: {_text(v, kind)}" for name, v in fields.items()) + "}"
    if isinstance(plain, float) and kind is not None:
        return str(kind(plain))
    return repr(plain)
