"""Models over extension values: subclassed and functional, trained, saved and served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from extensor.errors import DTypeError, StructureError, UnsupportedTypeError
from extensor.keras._keras import OwnSaveSignature, takes_training
from extensor.keras.layer import Raising, run_graph
from extensor.keras.lower import is_extension, is_lowered, lower, marked_spec
from extensor.keras.match import check_input


@dataclass(frozen=True)
class _Inputs:
    """The specs of a model's input, in lowered form; in a box that Keras does not track."""

    lowered: Any

    @property
    def raised(self) -> Any:
        """The specs of the extension values themselves."""
        return _raised_specs(self.lowered)


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
        if self._inputs_taken is None and args:
            self._inputs_taken = _Inputs(tf.nest.map_structure(_spec_of_tensor, lower(args[0])))
        return super().__call__(*args, **kwargs)

    def fit(self, x: Any = None, y: Any = None, **kwargs: Any) -> Any:
        """Trains the model, as `keras.Model.fit`, also on a dataset of extension values."""
        if "validation_data" in kwargs:
            kwargs["validation_data"] = _carried(kwargs["validation_data"], "validation_data")
        return super().fit(_carried(x, "x"), y, **kwargs)

    def evaluate(self, x: Any = None, y: Any = None, **kwargs: Any) -> Any:
        """Evaluates the model, as `keras.Model.evaluate`, also on a dataset of such values."""
        return super().evaluate(_carried(x, "x"), y, **kwargs)

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """Returns the model's outputs, as `keras.Model.predict`, also for such a dataset."""
        outputs = super().predict(_carried(x, "x"), **kwargs)
        if _contains(outputs, is_lowered):
            raise UnsupportedTypeError(
                path=f"{self.name}.predict",
                expected="outputs that are plain tensors",
                received="extension values, which Keras cannot concatenate",
                mend="Call the model on each batch: [model(x) for x in dataset].",
            )
        return outputs

    def export(self, filepath: Any, input_signature: Any = None, **kwargs: Any) -> None:
        """Writes a SavedModel whose signature takes extension values.

        Loaded with `tf.saved_model.load` where extensor (or the module that registers the type)
        is imported; its `serve` takes the model's input.

        Args:
            filepath: The folder to write.
            input_signature: The spec of the model's input, or a list with it. Default: that of
                the input the model was built for, for batches of any size.
            **kwargs: `verbose`, as in `keras.Model.export`.

        Raises:
            StructureError: If the model was not called yet and no signature is given (also a
                ValueError).
        """
        serve = self.serving_function(input_signature)
        if serve is None:
            raise StructureError(
                path=f"{self.name}.export",
                expected="a model that knows its input",
                received="one that was never called",
                mend="Call or fit it once, or give input_signature=.",
            )
        archive = keras.export.ExportArchive()
        archive.track(self)
        archive.add_endpoint("serve", serve)
        archive.write_out(str(filepath), **{"verbose": True, **kwargs})

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
            input_signature = self._inputs_taken.raised
        if not isinstance(input_signature, (list, tuple)):
            input_signature = [input_signature]
        training = {"training": False} if takes_training(self) else {}
        return tf.function(
            lambda inputs: self(inputs, **training), input_signature=list(input_signature)
        )


@keras.saving.register_keras_serializable(package="extensor")
class FunctionalModel(Model):
    """What `Model(inputs, outputs)` makes: a functional Keras model behind a door of its own."""

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        flat = tf.nest.flatten(lower(inputs))
        graph = keras.Model(inputs=flat, outputs=lower(outputs), name=f"{self.name}_graph")
        self._set_graph(graph, tf.nest.map_structure(_spec_of_tensor, lower(inputs)))

    def _set_graph(self, graph: Any, specs: Any) -> None:
        self._graph = graph
        self._inputs_taken = _Inputs(specs)
        self.built = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model on values or placeholders of the type that it was built for."""
        if args:
            assert self._inputs_taken is not None
            received = _Inputs(tf.nest.map_structure(_spec_of_tensor, lower(args[0]))).raised
            check_input(self._inputs_taken.raised, received, self.name)
        return super().__call__(*args, **kwargs)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Runs the functional model."""
        return run_graph(self._graph, tf.nest.flatten(inputs), training=training)

    call.takes_lowered = True  # type: ignore[attr-defined]

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`."""
        self._graph.summary(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs to build the model again."""
        assert self._inputs_taken is not None
        return {
            "name": self.name,
            "graph": keras.saving.serialize_keras_object(self._graph),
            "inputs": keras.saving.serialize_keras_object(
                tf.nest.map_structure(lambda spec: None, self._inputs_taken.lowered)
            ),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> FunctionalModel:
        """Returns the model that `get_config` described."""
        graph = keras.saving.deserialize_keras_object(config["graph"], custom_objects)
        self = cls.__new__(cls)
        Model.__init__(self, name=config["name"])
        specs = [tf.TensorSpec(t.shape, t.dtype) for t in graph.inputs]
        inputs = keras.saving.deserialize_keras_object(config["inputs"])
        self._set_graph(graph, tf.nest.pack_sequence_as(inputs, specs))
        return self

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


def _carried(data: Any, argument: str) -> Any:
    """Returns data in the form in which Keras carries it through its loops."""
    if isinstance(data, tf.data.Dataset):
        if not _contains(data.element_spec, _is_extension_spec):
            return data
        return data.map(_lowered_element, num_parallel_calls=1)
    if _contains(data, is_extension):
        raise DTypeError(
            path=f"{argument}=",
            expected="a tf.data.Dataset of batches",
            received="extension values, which Keras cannot cut into batches",
            mend="tf.data.Dataset.from_tensor_slices((x, y)).shuffle(n).batch(batch_size)",
        )
    return data


def _lowered_element(*element: Any) -> Any:
    return lower(element if len(element) > 1 else element[0])


def _is_extension_spec(spec: Any) -> bool:
    plain = (tf.TensorSpec, tf.SparseTensorSpec)
    return isinstance(spec, tf.TypeSpec) and not isinstance(spec, plain)


def _contains(structure: Any, holds: Any) -> bool:
    if holds(structure):
        return True
    if isinstance(structure, dict):
        return any(_contains(item, holds) for item in structure.values())
    if isinstance(structure, (list, tuple)):
        return any(_contains(item, holds) for item in structure)
    return False
