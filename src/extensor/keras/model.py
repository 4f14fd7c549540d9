"""Models over extension values: subclassed and functional, trained, saved and served."""

from __future__ import annotations

import inspect
import types
import warnings
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from extensor.errors import DTypeError, StructureError, UnsupportedTypeError
from extensor.keras._keras import OwnSaveSignature, takes_training
from extensor.keras.layer import Graph, Raising
from extensor.keras.lower import (
    check_savable,
    contains,
    counted,
    is_extension,
    is_lowered,
    lower,
    mark,
    marked_spec,
    uncounted,
)
from extensor.keras.match import check_input


@dataclass(frozen=True)
class _Inputs:
    """What a model was called with: TensorSpecs in lowered form, by the names of the arguments.

    In a box, because Keras tracks the dicts and lists that a model holds.
    """

    lowered: dict[str, Any]

    @classmethod
    def of(cls, model: Any, args: Any, kwargs: Any) -> _Inputs:
        given = inspect.signature(model.call).bind_partial(*args, **kwargs).arguments
        return cls(
            {
                name: tf.nest.map_structure(_spec_of_tensor, uncounted(lower(value)))
                for name, value in given.items()
                if name not in ("training", "mask") and _holds_tensors_only(value)
            }
        )

    @property
    def raised(self) -> dict[str, Any]:
        """The specs of the extension values themselves."""
        return {name: _raised_specs(form) for name, form in self.lowered.items()}


class Model(OwnSaveSignature, Raising, keras.Model):
    """A Keras model over extension values.

    Subclass it as `keras.Model`, with a `call` that takes extension values; or build it from the
    placeholders of `xt.keras.Input`, as `Model(inputs, outputs)`.

    Args:
        inputs: A placeholder, or a nest of them.
        outputs: What layers made of them.
        name: The model's name.

    >>> spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None, 3], tf.float32)})
    >>> record = xt.keras.Input(spec)
    >>> model = xt.keras.Model(record, keras.layers.Dense(1)(record["x"]))
    >>> model(xt.DenseStructuredTensor([2], {"x": tf.zeros([2, 3])})).shape
    TensorShape([2, 1])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes the functional model for `Model(inputs, outputs)`."""
        functional = len(args) == 2 or "outputs" in kwargs
        if cls is Model and functional:
            return super().__new__(FunctionalModel, *args, **kwargs)
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._inputs_taken: _Inputs | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model on values or placeholders."""
        if self._inputs_taken is None:
            self._inputs_taken = _Inputs.of(self, args, kwargs)
        return super().__call__(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures the model for training, as `keras.Model.compile`.

        XLA, which takes neither strings nor most ops on ragged tensors, is used only if
        `jit_compile=True` asks for it.
        """
        if "jit_compile" not in inspect.signature(super().compile).bind(*args, **kwargs).arguments:
            kwargs["jit_compile"] = False
        super().compile(*args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles the model as it was when it was saved."""
        if type(self).compile is not Model.compile:
            super().compile_from_config(config)  # Keras warns that it cannot
            return
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    def fit(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains the model, as `keras.Model.fit`, also on a dataset of extension values."""
        if "validation_data" in kwargs:
            kwargs["validation_data"] = self._carried(kwargs["validation_data"], "validation_data")
        if isinstance(x, (tf.data.Dataset, types.GeneratorType)):
            kwargs.setdefault("shuffle", False)  # they shuffle themselves, or Keras warns
        return super().fit(self._carried(x, "x"), *args, **kwargs)

    def evaluate(self, x: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Evaluates the model, as `keras.Model.evaluate`, also on a dataset of such values."""
        return super().evaluate(self._carried(x, "x"), *args, **kwargs)

    def train_on_batch(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Trains the model on one batch, as `keras.Model.train_on_batch`."""
        return super().train_on_batch(lower(x), *args, **kwargs)

    def test_on_batch(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Evaluates the model on one batch, as `keras.Model.test_on_batch`."""
        return super().test_on_batch(lower(x), *args, **kwargs)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the model's outputs, as `keras.Model.predict`, also for such a dataset."""
        return super().predict(self._carried(x, "x"), *args, **kwargs)

    def predict_step(self, data: Any) -> Any:
        """Returns the outputs for one batch, which Keras is going to concatenate."""
        outputs = super().predict_step(data)
        if contains(outputs, lambda o: is_extension(o) and not isinstance(o, tf.RaggedTensor)):
            raise UnsupportedTypeError(
                path=f"{self.name}.predict",
                expected="outputs that are tensors",
                received="extension values, which Keras cannot concatenate",
                mend="Call the model on each batch: [model(x) for x in dataset].",
            )
        return outputs

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes a SavedModel whose signature takes extension values.

        Loaded with `tf.saved_model.load` where extensor (or the module that registers the type)
        is imported; its `serve` takes the model's input.

        Args:
            filepath: The folder to write.
            format: "tf_saved_model", the one format that can hold extension values.
            verbose: Whether to print a message; by default yes.
            input_signature: The spec of the model's input, or a list with it. Default: that of
                the input the model was built for, for batches of any size.
            **kwargs: Options of `keras.export.ExportArchive.write_out`.

        Raises:
            StructureError: If the model was not called yet and no signature is given (also a
                ValueError).
            RegistrationError: If the spec of an input is not registered (also a ValueError).
            UnsupportedTypeError: If another format is asked for (also a TypeError).
        """
        if format != "tf_saved_model":
            raise UnsupportedTypeError(
                path=f"{self.name}.export",
                expected="format='tf_saved_model'",
                received=f"{format!r}, which holds plain tensors only",
                mend="Export a plain Keras model over the component tensors.",
            )
        serve = self.serving_function(input_signature)
        if serve is None:
            raise StructureError(
                path=f"{self.name}.export",
                expected="a model that knows its input",
                received="one that was never called",
                mend="Call or fit it once, or give input_signature=.",
            )
        signature = tf.nest.flatten(serve.input_signature)
        check_savable([mark(spec) for spec in signature if _is_extension_spec(spec)])
        if not self.built:
            serve.get_concrete_function()
        archive: Any = keras.export.ExportArchive()
        archive.track(self)
        archive.add_endpoint("serve", serve)
        with warnings.catch_warnings():
            # TensorFlow warns that a reader must import the type, which the docstring says.
            warnings.filterwarnings("ignore", "Encoding a StructuredValue", UserWarning)
            archive.write_out(str(filepath), verbose=verbose is not False, **kwargs)

    def serving_function(self, input_signature: Any = None) -> Any:
        """Returns inference as a tf.function with a signature of extension values.

        Args:
            input_signature: The spec of the model's input, or a list with it. Default: that of
                the input the model was built for, for batches of any size.

        Returns:
            A tf.function, or None if the model was not called yet and no signature is given.
        """
        if input_signature is None:
            if self._inputs_taken is None:
                return None
            signature = self._inputs_taken.raised
        else:
            if not isinstance(input_signature, (list, tuple)):
                input_signature = [input_signature]
            names = inspect.signature(self.call).parameters
            signature = dict(zip(names, input_signature, strict=False))
        training = {"training": False} if takes_training(self) else {}
        return tf.function(
            lambda *inputs: self(**dict(zip(signature, inputs, strict=True)), **training),
            input_signature=list(signature.values()),
        )

    def get_build_config(self) -> Any:
        """Returns what `build_from_config` needs to make the variables again."""
        if self._inputs_taken is None or not contains(self._inputs_taken.lowered, is_lowered):
            return super().get_build_config()
        return check_savable(_with_specs_apart(self._inputs_taken.lowered))

    def build_from_config(self, config: Any) -> None:
        """Makes the variables, so that they can be loaded, by tracing a call."""
        if not config or "specs" not in config:
            super().build_from_config(config)
            return
        self._inputs_taken = _Inputs(_with_specs(config))
        self.serving_function().get_concrete_function()

    def _carried(self, data: Any, argument: str) -> Any:
        """Returns data in the form in which Keras carries it through its loops."""
        if isinstance(data, types.GeneratorType):
            return (_lowered_element(element) for element in data)
        if isinstance(data, tf.data.Dataset):
            if not contains(data.element_spec, _is_extension_spec):
                return data
            if self.distribute_strategy.num_replicas_in_sync > 1:
                raise UnsupportedTypeError(
                    path=f"{argument}=",
                    expected="one replica, for a dataset of extension values",
                    received=f"{type(self.distribute_strategy).__name__} with "
                    f"{self.distribute_strategy.num_replicas_in_sync}",
                    mend="Train on one device: Keras would cut ragged fields at the wrong places.",
                )
            if isinstance(data.element_spec, tuple) and contains(
                data.element_spec[1:], _is_extension_spec
            ):
                raise UnsupportedTypeError(
                    path=f"{argument}=, targets or weights",
                    expected="plain tensors",
                    received="extension values, which the losses of Keras do not take",
                    mend="Map the dataset to dense targets, such as y.to_tensor().",
                )
            whole = isinstance(data.element_spec, tuple)
            return data.map(
                lambda *parts: _lowered_element(parts if whole else parts[0]),
                num_parallel_calls=1,
            )
        if contains(data, is_extension):
            raise DTypeError(
                path=f"{argument}=",
                expected="a tf.data.Dataset of batches",
                received="extension values, which Keras cannot cut into batches",
                mend="tf.data.Dataset.from_tensor_slices((x, y)).shuffle(n).batch(batch_size)",
            )
        return data


@keras.saving.register_keras_serializable(package="extensor")
class FunctionalModel(Model):
    """What `Model(inputs, outputs)` makes: a functional Keras model behind a door of its own."""

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any) -> None:
        # The layers of the graph cast for themselves, as in a functional model of Keras's own.
        super().__init__(name=name, autocast=False, **kwargs)
        flat = tf.nest.flatten(lower(inputs))
        _check_names(flat)
        graph = Graph(flat, lower(outputs), name=f"{self.name}_graph")
        self._set_graph(graph, _Inputs.of(self, [inputs], {}).lowered)

    def _set_graph(self, graph: Any, specs: dict[str, Any]) -> None:
        self._graph = graph
        self._inputs_taken = _Inputs(specs)
        self.built = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model on values or placeholders of the type that it was built for."""
        assert self._inputs_taken is not None
        received = _Inputs.of(self, args, kwargs).raised
        if "inputs" in received:
            check_input(self._inputs_taken.raised["inputs"], received["inputs"], self.name)
        return super().__call__(*args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs the functional model."""
        return self._graph(tf.nest.flatten(uncounted(inputs)), training=training)

    call.takes_lowered = True  # type: ignore[attr-defined]

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`."""
        self._graph.summary(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs to build the model again."""
        assert self._inputs_taken is not None
        return {
            "name": self.name,
            "graph": check_savable(keras.saving.serialize_keras_object(self._graph)),
            "inputs": _with_specs_apart(self._inputs_taken.lowered),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> FunctionalModel:
        """Returns the model that `get_config` described."""
        self = cls.__new__(cls)
        Model.__init__(self, name=config["name"], autocast=False)
        graph = keras.saving.deserialize_keras_object(config["graph"], custom_objects)
        self._set_graph(graph, _with_specs(config["inputs"]))
        return self

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """Returns a layer by its name or place, as `keras.Model.get_layer`."""
        return self._graph.get_layer(name, index)

    def get_build_config(self) -> None:
        """Returns nothing: the functional model is built with the model itself."""

    def build_from_config(self, config: Any) -> None:
        """Does nothing: the functional model is built with the model itself."""


def _spec_of_tensor(tensor: Any) -> tf.TensorSpec:
    shape = tf.TensorShape(tensor.shape)
    if shape.rank:
        shape = tf.TensorShape([None]).concatenate(shape[1:])
    return tf.TensorSpec(shape, tensor.dtype)


def _raised_specs(structure: Any) -> Any:
    """Returns a nest of specs: of extension values where their lowered form stands."""
    if is_lowered(structure):
        return marked_spec(next(iter(structure)))
    if isinstance(structure, dict):
        return {k: _raised_specs(v) for k, v in structure.items()}
    if isinstance(structure, (list, tuple)):
        return type(structure)(_raised_specs(item) for item in structure)
    return structure


def _check_names(placeholders: list[Any]) -> None:
    names = [tensor.name for tensor in placeholders]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise StructureError(
            path=twice,
            expected="inputs of different names",
            received="two of this name",
            mend='Name the placeholders: xt.keras.Input(spec, name="recipe").',
        )


def _lowered_element(element: Any) -> Any:
    """Returns what a dataset or generator yields, in Keras's form, its first part counted."""
    if not isinstance(element, tuple):
        return counted(lower(element))
    x, *rest = lower(element)
    return (counted(x), *rest)


def _with_specs_apart(lowered: dict[str, Any]) -> dict[str, Any]:
    """Returns a nest of TensorSpecs in a form that JSON can hold."""
    empty = tf.nest.map_structure(lambda _: None, lowered)
    specs = [[spec.shape.as_list(), spec.dtype.name] for spec in tf.nest.flatten(lowered)]
    return {"structure": keras.saving.serialize_keras_object(empty), "specs": specs}


def _with_specs(config: dict[str, Any]) -> dict[str, Any]:
    empty = keras.saving.deserialize_keras_object(config["structure"])
    specs = [tf.TensorSpec(shape, dtype) for shape, dtype in config["specs"]]
    return tf.nest.pack_sequence_as(empty, specs)


def _holds_tensors_only(value: Any) -> bool:
    leaves = tf.nest.flatten(lower(value))
    return bool(leaves) and all(
        hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves
    )


def _is_extension_spec(spec: Any) -> bool:
    plain = (tf.TensorSpec, tf.SparseTensorSpec)
    return isinstance(spec, tf.TypeSpec) and not isinstance(spec, plain)
