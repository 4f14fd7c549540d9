"""Records that are given to a model as Python data or as an Arrow table."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from extensor._arrow.read import has_capsules
from extensor._arrow.wanted_table import records_of_spec
from extensor._keras.lowering import contains, is_extension, is_lowered
from extensor._struct.cast_request import STRICT
from extensor._struct.spec import StructuredTensorSpec
from extensor._struct.tensor import StructuredTensor
from extensor._struct.value import StructuredTensorValue
from extensor._typing import Nest
from extensor.errors import ExtensorError, StructureError


def as_batch(data: Any, specs: Nest, model: str) -> Nest:
    """Returns the input of a model, with Python records and Arrow tables as StructuredTensors.

    Args:
        data: A list of dicts, an Arrow table or record batch, a DataFrame or other table that
            gives Arrow data, or any other input of a model.
        specs: The nest of specs of the model's input, or None if it is not known.
        model: The model's name, for errors.

    Raises:
        StructureError: If the input is a single record or a dict, or is a list of dicts or a
            table and the spec is not known (also a ValueError).
    """
    if isinstance(data, StructuredTensorValue):
        data = data.to_tensor()
    if is_extension(data) and getattr(data, "shape", tf.TensorShape(None)) == ():
        fix = "Give a batch of one value: records[:1] instead of records[0]."
        raise StructureError(f"{model}: input", "a batch", "a single value of shape ()", fix)
    if type(specs) is dict and type(data) is dict and not is_lowered(data):
        return {name: _as_part(item, specs.get(name), model) for name, item in data.items()}
    if type(data) in (list, tuple) and not _is_list_of_records(data):
        parts = specs if type(specs) in (list, tuple) else [specs]
        if len(parts) == len(data):
            pairs = zip(data, parts, strict=True)
            return type(data)([_as_part(*each, model) for each in pairs])
    is_table = _is_table(data)
    if isinstance(specs, StructuredTensorSpec) and type(data) is dict and not is_lowered(data):
        expected = "a batch: a list of dicts, one for each record"
        received = f"a dict with the keys {', '.join(map(str, data))}"
        fix = "For one record, give [record]; for columns, xt.from_arrow(pa.table(columns))."
        raise StructureError(f"{model}: input", expected, received, fix)
    if not is_table and not _is_list_of_records(data):
        # Only Keras knows what a DataFrame is to a model of tensors.
        if isinstance(specs, StructuredTensorSpec) and has_capsules(data):
            return data if is_extension(data) else specs.cast(data)
        return data
    if not isinstance(specs, StructuredTensorSpec):
        expected = (
            "extension values, tensors or a dataset" if specs is None else f"the inputs {specs}"
        )
        received = f"a {type(data).__name__}" if is_table else "a list of dicts"
        fix = "Give xt.from_arrow(table), or spec.cast(records) with the spec of the records."
        raise StructureError(f"{model}: input", expected, received, fix)
    if is_table:
        table: Any = data
        try:
            return records_of_spec(table, specs, STRICT)
        except ExtensorError:
            data = table.to_pylist()  # the spec decides about types and nulls
    return specs.cast(list(data))


def holds_data(nest: Nest) -> bool:
    """Returns whether an input of a model may hold Python data or tables.

    >>> from extensor._keras.python_input import holds_data
    >>> holds_data([{"a": 1}]), holds_data({"x": [{"a": 1}]}), holds_data({"x": 1})
    (True, True, False)
    """
    if type(nest) is dict and not is_lowered(nest):
        return any(type(item) in (list, tuple) or _is_table(item) for item in nest.values())
    return type(nest) is not dict


def _as_part(data: Nest, spec: Nest, model: str) -> Nest:
    """Returns one of several inputs of a model, as `as_batch`."""
    is_records = isinstance(spec, StructuredTensorSpec) and spec.rank == 1
    return as_batch(data, spec, model) if is_records and not is_extension(data) else data


def _is_table(data: object) -> bool:
    return type(data).__module__.partition(".")[0] == "pyarrow" and hasattr(data, "to_pylist")


def _is_list_of_records(data: object) -> bool:
    """Returns whether `data` is a list of dicts that hold Python data."""
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(isinstance(item, dict) for item in data) and not contains(data, _is_array)


def _is_array(leaf: object) -> bool:
    return hasattr(leaf, "shape") or isinstance(leaf, StructuredTensor)
