"""The schema of records as a tree of nodes, which the text forms and the HTML show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import tensorflow as tf

from extensor._path import quote
from extensor._struct.spec import StructuredTensorSpec


class Node(NamedTuple):
    """A field, and the fields inside it."""

    name: str
    """The name as it is shown."""
    text: str
    """What the field holds: `float32[3]`, `list of records`."""
    brackets: str
    """The list levels of records: `[*]` for each, or its name in brackets."""
    children: dict[str, tuple[Any, ...]]
    """The spec of each field inside, with the number of outer dimensions that are not shown, and
    the Arrow type if the field has one."""

    is_null: bool = False
    """Whether the value may be null."""
    note: str = ""
    """What the text does not say: the Arrow type of the values, or the names of dimensions."""

    @property
    def label(self) -> str:
        """What the field holds: `float32 or null`, `int64 (date32[day])`."""
        text = f"{self.text} ({self.note})" if self.note else self.text
        return f"{text} or null" if self.is_null else text

    def nodes(self, limit: int | None = None) -> list[Node]:
        """Returns the first nodes inside."""
        names = list(self.children)[:limit]
        return [node(name, *self.children[name]) for name in names]


def node(name: str, spec: tf.TypeSpec, outer: int, arrow: pa.DataType | None = None) -> Node:
    """Returns the node of a field.

    Args:
        name: The name of the field.
        spec: Its spec.
        outer: The number of its outer dimensions that belong to the records around it.
        arrow: Its Arrow type, or None.
    """
    shown = name_text(name)
    if isinstance(spec, StructuredTensorSpec):
        levels = spec.rank - outer
        dims = [name and name_text(name) for name in spec.dims[outer:]]
        record = spec._record
        types = record.arrow_types
        fields = {n: (f, record.rank, types.get(n)) for n, f in record.field_specs.items()}
        text = "list of " * levels + ("records" if levels else "record")
        brackets = "".join(f"[{name or '*'}]" for name in dims)
        note = ", ".join(name or "*" for name in dims) if any(dims) else ""
        return Node(shown, text, brackets, fields, note=note)
    parts = _parts(spec)
    variants, names = getattr(spec, "variants", None), getattr(spec, "names", None)
    if isinstance(variants, Mapping) and names:
        levels = spec.shape.rank - outer
        text = "list of " * levels + ("unions" if levels else "union")
        types = _variant_types(arrow)
        return Node(shown, text, "[*]" * levels, {n: (variants[n], 1, types.get(n)) for n in names})
    if list(parts) == ["values", "mask"]:
        inner = node(name, parts["values"], outer, arrow)
        return inner._replace(is_null=True)
    text = _dtype_text(spec, outer)
    inside = {n: (part, 0) for n, part in parts.items()}
    return Node(shown, text, "", inside, note=_arrow_text(arrow))


def root(spec: StructuredTensorSpec) -> Node:
    """Returns the node of whole records, named by their shape."""
    return node("", spec, spec.rank)._replace(name="records", text=shape_text(spec))


def name_text(name: str) -> str:
    r"""Returns a field's name in one line: quoted where a path needs it, and escaped.

    >>> from extensor._struct.display.schema import name_text
    >>> print(name_text("title"), name_text("vit. C"), name_text("a\nb"))
    title "vit. C" "a\nb"
    """
    return printable(quote(name))


def printable(text: str) -> str:
    r"""Returns text with characters escaped that do not print, or that change the direction.

    >>> from extensor._struct.display.schema import printable
    >>> print(printable("a\u202eb"))
    a\u202eb
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shape_text(spec: StructuredTensorSpec) -> str:
    """Returns the shape of records as Python shows it: `(2, None)`, `(recipe: 2, None)`."""
    pairs = zip(spec.shape, spec.dims, strict=True)
    sizes = [f"{name_text(name)}: {size}" if name else str(size) for size, name in pairs]
    return f"({sizes[0]},)" if spec.dims == (None,) else f"({', '.join(sizes)})"


def type_name(spec: tf.TypeSpec) -> str:
    """Returns the name of the class of the values of a spec."""
    # A nest of specs has none, and other libraries' specs may have one that is not a class.
    return getattr(getattr(spec, "value_type", None), "__name__", type(spec).__name__)


def _parts(spec: tf.TypeSpec) -> dict[str, Any]:
    """Returns the named components of an extension type; {} for other specs."""
    if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec)):
        return {}
    parts: Any = getattr(spec, "component_specs", None)
    return parts if isinstance(parts, dict) else {}


def _variant_types(arrow: pa.DataType | None) -> dict[str, Any]:
    """Returns the Arrow type of each variant of a union, or of a list of unions."""
    arrow = _item_type(arrow)
    if arrow is None or not pa.types.is_union(arrow):
        return {}
    return {field.name: field.type for field in map(arrow.field, range(arrow.num_fields))}


def _item_type(arrow: pa.DataType) -> pa.DataType | None:
    """Returns an Arrow type without its lists."""
    # Other libraries' types may have a `value_type` that is no type.
    own = pa.FixedShapeTensorType
    while hasattr(arrow, "value_type") and not pa.types.is_dictionary(arrow):
        if isinstance(arrow, pa.BaseExtensionType) and not isinstance(arrow, own):
            break
        arrow = arrow.value_type
    return arrow


def _arrow_text(arrow: pa.DataType | None) -> str:
    """Returns an Arrow type, without its lists; "" for numbers and strings, as their dtype says."""
    arrow = _item_type(arrow)
    if arrow is None or pa.types.is_nested(arrow):
        return ""
    is_plain = pa.types.is_primitive(arrow) and not pa.types.is_temporal(arrow)
    is_text = any(map(str(arrow).removeprefix("large_").startswith, ("string", "binary")))
    return "" if is_plain or is_text or pa.types.is_null(arrow) else printable(str(arrow))


def _dtype_text(field: tf.TypeSpec, outer: int) -> str:
    dtype: Any = getattr(field, "dtype", None)
    shape = getattr(field, "shape", None)
    if not isinstance(dtype, tf.DType):
        return type_name(field)
    text = dtype.name if isinstance(field, (tf.TensorSpec, tf.RaggedTensorSpec)) else (
        f"{type_name(field)} of {dtype.name}"
    )  # fmt: skip
    if shape is None or shape.rank is None:
        return text
    return text + "".join(f"[{'*' if size is None else size}]" for size in shape[outer:])
