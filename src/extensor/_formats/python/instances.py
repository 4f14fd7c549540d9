"""to_objects: records as objects of a class."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import functools
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast, get_args, get_origin

import pyarrow as pa

from extensor._arrow.arrow_type import variant_types
from extensor._formats.python.hints import (
    ARROW,
    INTEGERS,
    LISTS,
    UNIONS,
    Hint,
    hint_text,
    hints_of,
    type_beside_none,
    unwrap,
    variants_in,
)
from extensor._formats.python.objects import class_in, is_typed_dict, names_of
from extensor._formats.python.variants import NULL
from extensor._struct.arrow_types import ArrowType, form_of
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.inside import map_inside
from extensor._struct.masked import is_union
from extensor._struct.metadata import Metadata
from extensor._struct.tensor import StructuredTensor
from extensor._struct.to_python import expect_values, to_py
from extensor.errors import DTypeError, FieldError

_TAG = "\0"


def to_objects(records: StructuredTensor, cls: type) -> Any:
    """Returns records as objects of a class, in nested lists for dimensions.

    See `StructuredTensor.to_objects`.
    """
    hints_of(cls, "to_objects")
    expect_values(records, "to_objects")
    return _object(to_py(_tag(records)), cls, hint_text(cls))


def _tag(value: Any, arrow: pa.DataType | None = None) -> Any:
    """Returns a value with each row of a union in a record, whose field names the variant.

    Args:
        value: Records, or the value of a field.
        arrow: The Arrow type of the field, if it is known.
    """
    if is_union(value):
        types = variant_types(arrow)
        rows = {name: _row(name, part, types.get(name)) for name, part in value.variants.items()}
        return value._of_parts(value.codes, rows, value.names)
    if isinstance(value, DenseStructuredTensor):
        known = value.__tf_type_spec__().arrow_types
        return value._map_parts(lambda part, name: _tag(part, known.get(name)))
    return map_inside(value, lambda part, _: _tag(part, arrow))


def _row(name: str, part: Any, arrow: pa.DataType | None) -> DenseStructuredTensor:
    """Returns the rows of a variant as records."""
    name = _TAG + name
    records = DenseStructuredTensor._of_parts(1, {name: _tag(part, arrow)})
    if arrow is None:
        return records
    kept = ArrowType(pa.field(name, arrow), form_of(part, 1))
    return records._with_metadata(Metadata({name: kept}))


def _untag(plain: object) -> tuple[object, str | None]:
    """Returns a value, and the name of its variant if it is a row of a union."""
    if isinstance(plain, dict) and len(cast("Any", plain)) == 1:
        [(name, value)] = cast("Any", plain).items()
        if name.startswith(_TAG):
            return value, name[len(_TAG) :]
    return plain, None


def _object(plain: object, hint: Hint, path: str) -> object:
    """Returns plain Python data as objects of an annotation's classes."""
    hint = unwrap(hint).hint
    plain, variant = _untag(plain)
    if plain is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in UNIONS:
        one = type_beside_none(hint) or _hint_of_variant(variant, hint, path)
        return _object(plain, one, path)
    if isinstance(plain, list) and origin not in LISTS:
        items: list[Any] = plain
        return [_object(item, hint, path) for item in items]
    if isinstance(plain, list):
        inner = arguments[0] if arguments else object
        made = [_object(item, inner, path) for item in plain]
        return tuple(made) if origin is tuple else made
    if isinstance(plain, dict):
        return _instance(plain, hint, path)
    return _leaf(plain, hint)


def _hint_of_variant(variant: str | None, hint: Hint, path: str) -> Hint:
    """Returns the type in a union that the values of a variant have."""
    hints = variants_in(hint, path)
    if variant in hints:
        return hints[variant]
    if variant == "int" and "float" in hints:
        return hints["float"]
    expected = f"a union of the variants {', '.join(name for name in hints if name != NULL)}"
    received = "values of one type" if variant is None else f"a value of the variant {variant}"
    fix = "Cast the records to xt.struct.spec_from(cls) first."
    raise DTypeError(path, expected, received, fix)


def _leaf(plain: object, hint: Hint) -> object:
    origin = get_origin(hint)
    if origin is Literal:
        hint = type(get_args(hint)[0])
    if not isinstance(hint, type):
        return plain
    if issubclass(hint, enum.Enum):
        text = plain.decode() if isinstance(plain, bytes) else plain
        return hint(text) if any(text == member.value for member in hint) else hint(plain)
    if isinstance(plain, bytes) and issubclass(hint, str):
        return plain.decode("utf-8")
    if isinstance(plain, str) and issubclass(hint, (bytes, bytearray)):
        return hint(plain.encode())
    if isinstance(plain, decimal.Decimal) and issubclass(hint, float):
        return float(plain)
    if isinstance(plain, bytes) and issubclass(hint, uuid.UUID):
        return uuid.UUID(bytes=plain)
    if isinstance(plain, int) and hint in INTEGERS:
        return pa.scalar(plain, INTEGERS[hint]).cast(ARROW[hint]).as_py()
    return plain


def _instance(plain: Mapping[str, object], cls: Hint, path: str) -> object:
    hints = _cached_hints(cls, path)
    if set(plain) != set(hints):
        expected = f"the fields of {hint_text(cls)}: {', '.join(hints)}"
        fix = "Choose the fields with with_only, or make a class with spec.python_class()."
        raise FieldError(path, expected, ", ".join(plain) or "no fields", fix)
    values = {name: _object(plain[name], hint, f"{path}.{name}") for name, hint in hints.items()}
    return _constructor(cls)(values)


@functools.lru_cache(maxsize=256)
def _cached_hints(cls: Hint, path: str) -> dict[str, Hint]:
    return hints_of(cls, path)


@functools.lru_cache(maxsize=256)
def _constructor(cls: Hint) -> Callable[[dict[str, object]], object]:
    """Returns a function from the values of the fields to an object."""
    cls = class_in(cls)
    if is_typed_dict(cls):
        return dict
    names, later = _arguments(cls)
    if not later and all(name == argument for name, argument in names.items()):
        return lambda values: cls(**values)

    def make(values: dict[str, object]) -> object:
        made = cls(**{argument: values[name] for name, argument in names.items()})
        for name in later:
            object.__setattr__(made, name, values[name])  # the class may be frozen
        return made

    return make


def _arguments(cls: type) -> tuple[dict[str, str], list[str]]:
    """Returns the argument of the constructor for each field, and the fields without one."""
    described = getattr(cls, "__attrs_attrs__", None)
    if described is not None:  # an attrs class drops the underscores of private names
        alias = {each.name: each.alias or each.name.lstrip("_") for each in described if each.init}
        return alias, [each.name for each in described if not each.init]
    if dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        return {each.name: each.name for each in fields if each.init}, [
            each.name for each in fields if not each.init
        ]
    alias = {name: name for name in names_of(cls) or ()}
    by_name = getattr(cls, "model_config", {})
    if not (by_name.get("populate_by_name") or by_name.get("validate_by_name")):
        for name, field in getattr(cls, "model_fields", {}).items():
            given = field.validation_alias
            choices = [given, *getattr(given, "choices", ())]  # of an AliasChoices
            alias[name] = next((each for each in choices if isinstance(each, str)), name)
    return alias, []
