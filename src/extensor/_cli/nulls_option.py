"""The option `--nulls PATH=VALUE` of `extensor convert`."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import click
import pyarrow as pa

from extensor._arrow.arrow_type import decoded_type, inner_fields, is_list, is_string
from extensor._arrow.null_policy import fill
from extensor._path import quote


def paths_in(fields: Iterable[pa.Field], outer: str = "") -> Iterator[tuple[str, pa.Field]]:
    """Yields each path of an Arrow schema with its field, outer ones before those inside."""
    for field in fields:
        yield from _below(f"{outer}{quote(field.name)}", field)


def _below(path: str, field: pa.Field) -> Iterator[tuple[str, pa.Field]]:
    yield path, field
    arrow = field.type
    if pa.types.is_struct(arrow) or pa.types.is_union(arrow):
        yield from paths_in(inner_fields(arrow), f"{path}.")
    elif pa.types.is_map(arrow):
        yield from paths_in(inner_fields(arrow), f"{path}[*].")
    elif is_list(arrow):
        yield from _below(f"{path}[*]", arrow.value_field)


def fill_of(text: str, schema: pa.Schema) -> tuple[str, Any]:
    """Returns the path, and the policy that puts the value in place of its nulls.

    Args:
        text: The option: `PATH=VALUE`. The value is text for a path of text, bytes or times, and
            JSON for all others.
        schema: The schema of the records.

    Raises:
        click.BadParameter: If it is not of this form, the records have no such path, or the value
            is not one of its type.
    """
    path, equal, value = text.partition("=")
    if not equal or not path:
        raise click.BadParameter(f"{text!r} is not PATH=VALUE.", param_hint="--nulls")
    types = {path: decoded_type(field.type) for path, field in paths_in(schema)}
    if path not in types:
        raise click.BadParameter(
            f"there is no path {path!r}, but {', '.join(types)}.", param_hint="--nulls"
        )
    arrow = types[path]
    try:
        if is_string(arrow):
            return path, fill(value)
        if pa.types.is_nested(arrow) or pa.types.is_boolean(arrow) or _is_number(arrow):
            return path, fill(json.loads(value))
        if pa.types.is_time(arrow):
            return path, fill(datetime.time.fromisoformat(value))
        if pa.types.is_duration(arrow):  # Arrow reads no text of it: a number of units
            return path, fill(pa.scalar(int(value), arrow).as_py())
        return path, fill(pa.scalar(value).cast(arrow).as_py())
    except (ValueError, pa.ArrowException):
        problem = f"{value!r} is no value of type {arrow}, such as {_example(arrow)}."
        raise click.BadParameter(problem, param_hint=f"--nulls {path}") from None


def option_for(path: str, schema: pa.Schema) -> str:
    """Returns the option with an example of a value for the nulls of a path."""
    types = {at: decoded_type(field.type) for at, field in paths_in(schema)}
    return f"--nulls {shlex.quote(f'{path}={_example(types.get(path, pa.null()))}')}"


def _is_number(arrow: pa.DataType) -> bool:
    return pa.types.is_integer(arrow) or pa.types.is_floating(arrow)


def _example(arrow: pa.DataType) -> str:
    """Returns a value of a type as the option takes it."""
    if is_string(arrow):
        return ""
    if pa.types.is_time(arrow):
        return "00:00:00"
    if pa.types.is_timestamp(arrow):
        return "1970-01-01T00:00:00" + ("Z" if arrow.tz else "")
    if pa.types.is_date(arrow):
        return "1970-01-01"
    return json.dumps(_plain_example(arrow), separators=(",", ":"))


def _plain_example(arrow: pa.DataType) -> Any:
    arrow = decoded_type(arrow)
    if pa.types.is_struct(arrow):
        return {field.name: _plain_example(field.type) for field in arrow.fields}
    if pa.types.is_boolean(arrow):
        return False
    if is_string(arrow):
        return ""
    return [] if pa.types.is_nested(arrow) else 0
