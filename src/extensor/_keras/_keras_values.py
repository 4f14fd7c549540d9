"""What `import extensor` changes in Keras: what its own classes do with extension values.

Keras itself refuses them, with errors about positional arguments, shapes or KerasTensors. Where it
does, the error names what `xt.keras` has instead. A call that Keras accepts is not changed, and a
call without extension values raises Keras's errors.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._patches.install import install_keras
from extensor._patches.patch import Patch, replaces
from extensor._protocol.symbolic import is_symbolic
from extensor._struct.masked import is_masked
from extensor._struct.value import StructuredTensorValue
from extensor._tf import Extension, describes_extension
from extensor._typing import Nest
from extensor.errors import DTypeError, MissingAttributeError, NullError

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


def _own_values(structure: Nest) -> Iterator[Any]:
    """Yields the extension values, placeholders for them, and specs of them in a nest."""
    if _is_own(structure):
        yield structure
    elif isinstance(structure, dict):
        for item in structure.values():
            yield from _own_values(item)
    elif isinstance(structure, (list, tuple)):
        for item in structure:
            yield from _own_values(item)


def _is_own(value: object) -> bool:
    """Returns whether `value` is an extension value, a placeholder for one, or the spec of one."""
    if isinstance(value, (Extension, StructuredTensorValue)) or describes_extension(value):
        return True
    # A KerasTensor is symbolic too: its dtype is a str, with the spec if it is of a value.
    dtype = getattr(value, "dtype", None)
    return is_symbolic(value) and (not isinstance(dtype, str) or hasattr(dtype, "spec"))


def _refusal_of_layer(layer: keras.Layer, value: object) -> DTypeError:
    """Returns the error of a layer or model of Keras that got an extension value.

    Args:
        layer: The layer or model.
        value: The value.
    """
    cls = type(layer)
    if _is_ours(layer) and isinstance(value, StructuredTensorValue):
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
    return _refusal(f"keras: {cls.__name__} {layer.name}", "tensors", value, fix)


def _refusal_of_data(model: keras.Model, value: object) -> DTypeError:
    """Returns the error of a model of Keras that got extension values as data."""
    name = (
        "Sequential" if "Sequential" in [base.__name__ for base in type(model).__mro__] else "Model"
    )
    path = f"keras: {type(model).__name__} {model.name}"
    fix = f"Use xt.keras.{name}, whose fit, evaluate and predict take extension values."
    return _refusal(path, "arrays, tensors or a dataset of tensors", value, fix)


def _refusal_of_elements(model: keras.Model) -> DTypeError:
    """Returns the error of a model of Keras whose generator or PyDataset has extension values."""
    found = _refusal_of_data(model, None)
    return DTypeError(found.path, found.expected, "extension values in the data", found.fix)


def _refusal(path: str, expected: str, value: Any, fix: str) -> DTypeError:
    """Returns the error of what got an extension value, or the spec of one."""
    if isinstance(value, Extension) or not describes_extension(value):
        received = f"a {type(value).__name__}"
    else:
        received = f"the spec of a {value.value_type.__name__}"
    backend = sys.modules["keras"].backend.backend()
    if backend != "tensorflow":
        fix = f"Give arrays: xt.data.arrays(dataset). xt.keras needs TensorFlow, not {backend!r}."
    return DTypeError(path, expected, received, fix)


def _is_ours(model: keras.Layer) -> bool:
    """Returns whether a layer or model is of a class of extensor, or of one derived from it."""
    return any(base.__module__.startswith("extensor.") for base in type(model).__mro__)


def _is_stock(cls: type) -> bool:
    """Returns whether a class is Keras's own."""
    return cls.__module__.partition(".")[0] == "keras"


TABLE: list[Patch] = []
VERSIONS = ("3.10", "3.15")


def install() -> None:
    """Makes the changes, if Keras is imported. TensorFlow imports it where it is installed."""
    keras = sys.modules.get("keras")
    version = getattr(keras, "__version__", "0.0").split(".")[:2]
    if tuple(map(int, version)) >= tuple(map(int, VERSIONS[0].split("."))):
        install_keras(TABLE)


_replaces = functools.partial(replaces, probe="refused_values", table=TABLE, versions=VERSIONS)


@_replaces(
    "keras.layers.Layer.__call__",
    reason="A layer or model of Keras that gets an extension value says 'Only input tensors may "
    "be passed as positional arguments'.",
)
def layer_call(plain: Callable[..., Any]) -> Callable[..., Any]:
    return _advising(plain, _advice_of_layer)


def _advice_of_layer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    layer, *inputs = args
    given = next(_own_values(inputs), None)
    # A user's layer accepts values by their names, and may raise any error about them.
    if given is None and type(layer).__module__.startswith("keras."):
        given = next(_own_values(kwargs), None)
    return None if given is None else _refusal_of_layer(layer, given)


def _first_batch(data: Nest) -> Nest:
    """Returns the first batch of a PyDataset, or what a dataset has; other data as it is."""
    keras = sys.modules["keras"]
    if isinstance(data, tf.data.Dataset) and keras.backend.backend() != "tensorflow":
        return data.element_spec  # JAX and PyTorch get no records from any model
    return data[0] if isinstance(data, keras.utils.PyDataset) else data


_DATA = ("x", "y", "sample_weight", "validation_data")


def with_data(plain: Callable[..., Any]) -> Callable[..., Any]:
    return _advising(plain, _advice_of_model)


for _name in ("fit", "evaluate", "predict"):
    _replaces(
        f"keras.Model.{_name}", reason="It calls an extension value an 'unrecognized data type'."
    )(with_data)


def _advice_of_model(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    model, *data = args
    given = [*data[:2], *(kwargs.get(name) for name in _DATA)]
    given = next(_own_values([_first_batch(each) for each in given]), None)
    if given is not None:
        return _refusal_of_data(model, given)
    # A generator gave the value, and Keras read an attribute of tensors.
    is_element = isinstance(sys.exc_info()[1], MissingAttributeError)
    return _refusal_of_elements(model) if is_element else None


@_replaces(
    "keras.src.models.functional.Functional.__init__",
    reason="`keras.Model(inputs, outputs)` says that a placeholder of `xt.keras.Input` is no "
    "KerasTensor.",
)
def functional(plain: Callable[..., Any]) -> Callable[..., Any]:
    expected, fix = "KerasTensors as inputs and outputs", "Use xt.keras.Model(inputs, outputs)."
    return _advising(plain, functools.partial(_advice_of_class, "keras.Model", expected, fix))


@_replaces(
    "keras.Sequential.add", reason="It says that a placeholder of `xt.keras.Input` is no layer."
)
def add(plain: Callable[..., Any]) -> Callable[..., Any]:
    error = ("keras.Sequential", "layers", "Use xt.keras.Sequential.")
    return _advising(plain, functools.partial(_advice_of_class, *error))


def make_input(plain: Callable[..., Any]) -> Callable[..., Any]:
    fix = "Use xt.keras.Input(spec), with the spec of a batch such as dataset.element_spec."
    return _advising(plain, functools.partial(_advice, "keras.Input", "a shape and a dtype", fix))


for _module in ("keras", "keras.layers"):
    _replaces(f"{_module}.Input", reason="It says that the spec of an extension type is no shape.")(
        make_input
    )


def _advice(
    path: str, expected: str, fix: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    given = next(_own_values([list(args), kwargs]), None)
    return None if given is None else _refusal(path, expected, given, fix)


def _advice_of_class(
    path: str, expected: str, fix: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception | None:
    return None if _is_ours(args[0]) else _advice(path, expected, fix, args[1:], kwargs)


def _advising(
    plain: Callable[..., Any], advice: Callable[[Any, Any], Exception | None]
) -> Callable[..., Any]:
    """Returns a function that raises another error where a function of Keras fails.

    Args:
        plain: The function of Keras.
        advice: Takes the arguments of a failed call. Returns the error; None for Keras's own.
    """

    def function(*args: object, **kwargs: object) -> Nest:
        try:
            return plain(*args, **kwargs)
        except NullError:
            raise
        except Exception as error:
            better = advice(args, kwargs)
            if better is None:
                raise
            raise better from error

    return _disguise(function, plain)


def _disguise(function: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function with the name of Keras's function, for tracebacks, and without a file.

    AutoGraph calls a function of the file "<string>" as it is. It would look for the source of any
    other one, and warn that it does not find it.
    """
    function.__code__ = function.__code__.replace(
        co_filename="<string>", co_name=plain.__code__.co_name
    )
    return function


_LAYERS = ("Discretization", "IntegerLookup", "Normalization", "StringLookup", "TextVectorization")


def with_masked(plain: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Nest:
        name = args[0].name
        args = tuple(_unmask(arg, name) for arg in args)
        kwargs = {key: _unmask(arg, name) for key, arg in kwargs.items()}
        return plain(*args, **kwargs)

    return _advising(_disguise(function, plain), _advice_of_preprocessing)


for _target in ("StringLookup.call", *(f"{name}.adapt" for name in _LAYERS)):
    _replaces(
        f"keras.layers.{_target}",
        reason="It converts a MaskedTensor to an array, or takes it row by row. Where nothing is "
        "null, it gets the values; otherwise the error counts the nulls.",
        probe="masked_inputs",
    )(with_masked)


def _advice_of_preprocessing(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    layer, *data = args
    specs = [x.element_spec for x in [*data, *kwargs.values()] if isinstance(x, tf.data.Dataset)]
    given = next(_own_values([data, kwargs, specs]), None)
    return None if given is None else _refusal_of_layer(layer, given)


def _unmask(value: Nest, name: str) -> Nest:
    if isinstance(value, Extension):  # else `is_masked` would import the type
        masked: Any = value
        if is_masked(masked) and not is_symbolic(masked.values):
            return masked.unmasked(name)
    return value
