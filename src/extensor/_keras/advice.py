"""Errors of classes of Keras that refuse extension values: they name what `xt.keras` has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from extensor._protocol.symbolic import is_symbolic
from extensor._struct.value import StructuredTensorValue
from extensor._tf import Extension, describes_extension
from extensor._typing import Nest
from extensor.errors import DTypeError

if TYPE_CHECKING:
    import keras

# The names in `xt.keras`, by the names of Keras's classes. Users derive from the first ones.
_BASES = {"Layer": "Layer", "Sequential": "Sequential", "Functional": "Model", "Model": "Model"}
_OTHERS = {
    **{name: name for name in ("Identity", "Lambda", "RNN", "TimeDistributed")},
    **{name: "layers.ListRNN" for name in ("Bidirectional", "GRU", "LSTM", "SimpleRNN")},
    **{name: "layers.ListAttention" for name in ("Attention", "MultiHeadAttention")},
    **{name: "layers.ListPooling" for name in ("GlobalAveragePooling1D", "GlobalMaxPooling1D")},
    "Embedding": "layers.EmbeddingBag",
}


def own_values(structure: Nest) -> Iterator[Any]:
    """Yields the extension values, placeholders for them, and specs of them in a nest."""
    if is_own(structure):
        yield structure
    elif isinstance(structure, dict):
        for item in structure.values():
            yield from own_values(item)
    elif isinstance(structure, (list, tuple)):
        for item in structure:
            yield from own_values(item)


def is_own(value: object) -> bool:
    """Returns whether `value` is an extension value, a placeholder for one, or the spec of one."""
    if isinstance(value, (Extension, StructuredTensorValue)) or describes_extension(value):
        return True
    # A KerasTensor is symbolic too: its dtype is a str, with the spec if it is of a value.
    dtype = getattr(value, "dtype", None)
    return is_symbolic(value) and (not isinstance(dtype, str) or hasattr(dtype, "spec"))


def refusal_of_layer(layer: keras.Layer, value: object) -> DTypeError:
    """Returns the error of a layer or model of Keras that got an extension value.

    Args:
        layer: The layer or model.
        value: The value.
    """
    cls = type(layer)
    if is_ours(layer) and isinstance(value, StructuredTensorValue):
        fix = "Give value.to_tensor(), which is a StructuredTensor."
    elif not _is_stock(cls):
        base = next(b.__name__ for b in cls.__mro__ if _is_stock(b) and b.__name__ in _BASES)
        fix = f"Derive {cls.__name__} from xt.keras.{_BASES[base]}: its call gets extension values."
    elif (name := (_BASES | _OTHERS).get(cls.__name__)) is not None:
        fix = f"Use xt.keras.{name}, which takes extension values."
    else:
        fix = (
            "Give a tensor of the value, such as one field; or call the layer in the call of an "
            "xt.keras.Layer or in xt.keras.Lambda. xt.keras.Masked returns a tensor with its mask."
        )
    return refusal(f"keras: {cls.__name__} {layer.name}", "tensors", value, fix)


def refusal_of_data(model: keras.Model, value: object) -> DTypeError:
    """Returns the error of a model of Keras that got extension values as data."""
    name = (
        "Sequential" if "Sequential" in [base.__name__ for base in type(model).__mro__] else "Model"
    )
    path = f"keras: {type(model).__name__} {model.name}"
    fix = f"Use xt.keras.{name}, whose fit, evaluate and predict take extension values."
    return refusal(path, "arrays, tensors or a dataset of tensors", value, fix)


def refusal_of_elements(model: keras.Model) -> DTypeError:
    """Returns the error of a model of Keras whose generator or PyDataset has extension values."""
    found = refusal_of_data(model, None)
    return DTypeError(found.path, found.expected, "extension values in the data", found.fix)


def refusal(path: str, expected: str, value: Any, fix: str) -> DTypeError:
    """Returns the error of what got an extension value, or the spec of one."""
    if isinstance(value, Extension) or not describes_extension(value):
        received = f"a {type(value).__name__}"
    else:
        received = f"the spec of a {value.value_type.__name__}"
    backend = sys.modules["keras"].backend.backend()
    if backend != "tensorflow":
        fix = f"Give arrays: xt.data.arrays(dataset). xt.keras needs TensorFlow, not {backend!r}."
    return DTypeError(path, expected, received, fix)


def is_ours(model: keras.Layer) -> bool:
    """Returns whether a layer or model is of a class of extensor, or of one derived from it."""
    return any(base.__module__.startswith("extensor.") for base in type(model).__mro__)


def _is_stock(cls: type) -> bool:
    """Returns whether a class is Keras's own."""
    return cls.__module__.partition(".")[0] == "keras"
