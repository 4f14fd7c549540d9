"""The cost of a structured value, compared to a dict of the same tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import tensorflow as tf

import extensor as xt
from bench import recipe
from bench.measure import Call
from bench.row import Limit, NoLimit, Row, Under, Within

_LENGTH = 32
_NAMES = tuple(f"x{i}" for i in range(8))


@dataclass(frozen=True)
class _Kind:
    """A container of the eight tensors: how to build it, change a field, and flatten it."""

    make: Callable[[dict[str, tf.Tensor]], Any]
    plus_one: Callable[[Any], Any]
    nest: ModuleType


def rows() -> list[Row]:
    return [
        *_against_both("tf.function call, value in and out", Within(1.25), _call),
        *_against_both("tf.function call, one field + 1", Within(1.25), _call_plus_one),
        *_against_both("constructed anew and tf.function call", NoLimit(), _make_and_call),
        *(
            Row(
                f"tf.function call of a new value, {fields} fields, vs dict of tensors",
                Within(1.1),
                functools.partial(_new_values, fields=fields),
            )
            for fields in (8, 100)
        ),
        *_against_both("trace and first call, one field + 1", Within(1.5), _trace),
        Row(
            "DenseStructuredTensor(shape, 8 fields), vs tf StructuredTensor.from_fields",
            Under(10e-6),
            lambda folder: _pair(_construct, _theirs()),
        ),
        Row(
            "DenseStructuredTensor(shape, 8 fields) and its spec, vs tf StructuredTensor",
            Under(25e-6),
            lambda folder: _pair(_construct_and_describe, _theirs()),
        ),
        Row(
            "with_updates of 1 of 8 fields, vs tf StructuredTensor",
            Under(10e-6),
            _with_updates,
        ),
        Row(
            "with_updates of 1 of 8 fields and its spec, vs tf StructuredTensor",
            Under(15e-6),
            _with_updates_and_describe,
        ),
        Row("struct.constant of 50,000 recipes, vs pa.array alone", Within(1.6), _constant),
        Row("to_py of 50,000 recipes, vs to_pylist of Arrow", Within(1.5), _to_py),
        Row("batch(256) of 20k nested records, vs dict of the same tensors", Within(1.0), _batch),
        Row("range.map.batch(256) of 20k nested records, vs dict", Within(1.0), _map_batch),
        Row("supertype of two specs, 100 fields, vs 100 TensorSpecs", Under(1e-3), _supertype),
        Row("spec of one row, ragged depth 6, vs depth 3", Within(2.5), _unbatch),
        Row("200 batches of nested records, iterated, vs dict of ragged", Within(0.8), _batches),
        *_against_both("nest.flatten into components", Within(1.3), _flatten),
        *_against_both("nest.pack_sequence_as", Within(2), _pack),
        Row(
            "nest.assert_same_structure of components, vs dict of 8 tensors",
            Within(3),
            lambda folder: _pair(_compare, _dict()),
        ),
    ]


def _against_both(what: str, limit: Limit, call: Callable[[_Kind], Call]) -> list[Row]:
    """Returns the row with a limit, against a dict, and one against TensorFlow's own structs."""
    return [
        Row(f"{what}, vs dict of 8 tensors", limit, lambda folder: _pair(call, _dict())),
        Row(f"{what}, vs tf StructuredTensor", NoLimit(), lambda folder: _pair(call, _theirs())),
    ]


def _pair(call: Callable[[_Kind], Call], peer: _Kind) -> tuple[Call, Call]:
    return call(_ours()), call(peer)


def _ours() -> _Kind:
    return _Kind(
        lambda fields: xt.DenseStructuredTensor(shape=[_LENGTH], fields=fields),
        lambda value: value.with_updates(x0=value.field_value("x0") + 1),
        xt.nest,
    )


def _theirs() -> _Kind:
    return _Kind(
        lambda fields: tf.experimental.StructuredTensor.from_fields(fields, shape=[_LENGTH]),
        lambda value: value.with_updates({"x0": value.field_value("x0") + 1}),
        tf.nest,
    )


def _dict() -> _Kind:
    return _Kind(dict, lambda value: {**value, "x0": value["x0"] + 1}, tf.nest)


def _fields() -> dict[str, tf.Tensor]:
    return {name: tf.fill([_LENGTH], float(i)) for i, name in enumerate(_NAMES)}


def _call(kind: _Kind) -> Call:
    value, function = kind.make(_fields()), tf.function(lambda value: value)
    return lambda: function(value)


def _call_plus_one(kind: _Kind) -> Call:
    value, function = kind.make(_fields()), tf.function(kind.plus_one)
    returned = type(function(value))
    if returned is not type(value):
        raise AssertionError(f"A {type(value).__name__} came back as {returned.__name__}.")
    return lambda: function(value)


def _make_and_call(kind: _Kind) -> Call:
    # A new value in each call, because caches in a value do not help with new batches.
    fields, function = _fields(), tf.function(lambda value: value)
    return lambda: function(kind.make(fields))


def _new_values(folder: Path, fields: int) -> tuple[Call, Call]:
    tensors = {f"f{i}": tf.fill([_LENGTH], float(i)) for i in range(fields)}
    ours, peer = (tf.function(lambda value: value["f0"] + 1) for _ in range(2))
    make = xt.DenseStructuredTensor
    return lambda: ours(make([_LENGTH], tensors)), lambda: peer(dict(tensors))


def _trace(kind: _Kind) -> Call:
    value = kind.make(_fields())
    return lambda: tf.function(kind.plus_one)(value)


def _construct(kind: _Kind) -> Call:
    fields = _fields()
    return lambda: kind.make(fields)


def _construct_and_describe(kind: _Kind) -> Call:
    fields = _fields()
    return lambda: tf.type_spec_from_value(kind.make(fields))


def _with_updates_and_describe(folder: Path) -> tuple[Call, Call]:
    ours, theirs = _with_updates(folder)
    return lambda: ours().__tf_type_spec__(), lambda: tf.type_spec_from_value(theirs())


def _with_updates(folder: Path) -> tuple[Call, Call]:
    new = tf.zeros([_LENGTH])
    ours, theirs = _ours().make(_fields()), _theirs().make(_fields())
    ours.__tf_type_spec__()  # which the value keeps
    return lambda: ours.with_updates(x0=new), lambda: theirs.with_updates({"x0": new})


def _constant(folder: Path) -> tuple[Call, Call]:
    rows = recipe.recipes(50_000).to_pylist()
    if xt.struct.constant(rows[:100]).to_py(text=True) != rows[:100]:
        raise AssertionError("struct.constant changed the records.")
    return lambda: xt.struct.constant(rows), lambda: pa.array(rows)


def _to_py(folder: Path) -> tuple[Call, Call]:
    table = recipe.recipes(50_000)
    records, array = xt.from_arrow(table), table.to_struct_array()
    return records.to_py, array.to_pylist


_ROWS = 20_000


def _iterate(dataset: tf.data.Dataset) -> Call:
    def call() -> None:
        for _ in dataset:
            pass

    return call


def _batch(folder: Path) -> tuple[Call, Call]:
    splits = tf.range(_ROWS + 1) * 2
    minutes, grams = tf.range(2 * _ROWS), tf.zeros([2 * _ROWS])
    fields = {"id": tf.range(_ROWS), "emb": tf.zeros([_ROWS, 8]), "age": tf.range(_ROWS)}
    steps = xt.RaggedStructuredTensor.from_row_splits(
        xt.DenseStructuredTensor([2 * _ROWS], {"minutes": minutes, "grams": grams}), splits
    )
    tags = tf.RaggedTensor.from_row_splits(minutes, splits)
    author = xt.DenseStructuredTensor([_ROWS], {"age": fields["age"]})
    records = xt.DenseStructuredTensor(
        [_ROWS],
        {"id": fields["id"], "emb": fields["emb"], "tags": tags, "author": author, "steps": steps},
    )
    tensors = {
        **fields,
        "tags": tags,
        "minutes": tf.RaggedTensor.from_row_splits(minutes, splits),
        "grams": tf.RaggedTensor.from_row_splits(grams, splits),
    }
    both = (tf.data.Dataset.from_tensor_slices(v).batch(256) for v in (records, tensors))
    ours, peer = map(_iterate, both)
    return ours, peer


def _supertype(folder: Path) -> tuple[Call, Call]:
    a, b = (
        xt.DenseStructuredTensorSpec([n], {f"f{i}": tf.TensorSpec([n, 3]) for i in range(100)})
        for n in (2, 4)
    )
    pairs = list(zip(a.field_specs.values(), b.field_specs.values(), strict=True))
    return (
        lambda: a.most_specific_common_supertype([b]),
        lambda: [one.most_specific_common_supertype([other]) for one, other in pairs],
    )


def _unbatch(folder: Path) -> tuple[Call, Call]:
    def lists(depth: int) -> Any:
        spec: Any = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])})
        for rank in range(2, depth + 2):
            spec = xt.RaggedStructuredTensorSpec([None] * rank, spec)
        return spec

    return lists(6).unstacked, lists(3).unstacked


def _batches(folder: Path) -> tuple[Call, Call]:
    splits = tf.range(_LENGTH + 1) * 2
    numbers = tf.range(2 * _LENGTH)
    tensors: dict[str, Any] = {"id": tf.range(_LENGTH)}
    fields = dict(tensors)
    for name in ("steps", "ingredients"):
        parts = {f"{name}{i}": numbers for i in range(4)}
        lists = xt.DenseStructuredTensor([2 * _LENGTH], parts)
        fields[name] = xt.RaggedStructuredTensor.from_row_splits(lists, splits)
        for part, values in parts.items():
            tensors[part] = tf.RaggedTensor.from_row_splits(values, splits)
    both = (xt.DenseStructuredTensor([_LENGTH], fields), tensors)
    ours, peer = (_iterate(tf.data.Dataset.from_tensors(each).repeat(200)) for each in both)
    return ours, peer


def _map_batch(folder: Path) -> tuple[Call, Call]:
    def tensors(i: Any) -> dict[str, Any]:
        return {"id": i, "emb": tf.fill([8], i), "age": i + 1}

    def records(i: Any) -> Any:
        fields = tensors(i)
        author = xt.DenseStructuredTensor([], {"age": fields.pop("age")})
        return xt.DenseStructuredTensor([], {**fields, "author": author})

    both = (tf.data.Dataset.range(_ROWS).map(make).batch(256) for make in (records, tensors))
    ours, peer = map(_iterate, both)
    return ours, peer


def _flatten(kind: _Kind) -> Call:
    value = kind.make(_fields())
    return lambda: kind.nest.flatten(value, expand_composites=True)


def _compare(kind: _Kind) -> Call:
    value, other = kind.make(_fields()), kind.make(_fields())
    return lambda: tf.nest.assert_same_structure(value, other, expand_composites=True)


def _pack(kind: _Kind) -> Call:
    value = kind.make(_fields())
    components = kind.nest.flatten(value, expand_composites=True)
    return lambda: kind.nest.pack_sequence_as(value, components, expand_composites=True)
