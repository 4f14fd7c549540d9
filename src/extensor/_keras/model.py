"""Models over extension values: subclassed and functional, trained, saved and served."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar

import keras
import tensorflow as tf

from extensor._keras._keras_private import OwnBuild, OwnSaveSignature, takes_training
from extensor._keras.boxed_dataset import boxed, unboxed
from extensor._keras.call_spec import Inputs, specs_apart, specs_together
from extensor._keras.data_source import with_sources
from extensor._keras.input_check import check_input
from extensor._keras.layer import Raising
from extensor._keras.loss import (
    FunctionLoss,
    by_field,
    by_values,
    check_losses,
    check_names,
    names_of,
    takes_values,
)
from extensor._keras.lowering import (
    contains,
    counted,
    for_keras,
    is_extension,
    is_extension_spec,
    is_lowered,
    lower,
    raised,
)
from extensor._keras.predict_output import joinable, joined
from extensor._keras.spec_key import check_savable, mark
from extensor._keras.summary import field_lines
from extensor.errors import StructureError, UnsupportedTypeError

# The model whose own `predict_step` is running: a `super().predict_step()` in it returns values.
_predicting: ContextVar[Any] = ContextVar("_predicting", default=None)

# What the configuration of a functional model holds.
FUNCTIONAL_CONFIG = {"name", "graph", "inputs"}


class Model(OwnSaveSignature, OwnBuild, Raising, keras.Model):
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

    functional: ClassVar[type]  # set by functional.py, which stands above this room

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes the functional model for `Model(inputs, outputs)`."""
        is_functional = cls is Model and _is_functional(args, kwargs)
        made: Any = cls.functional if is_functional else cls
        return super().__new__(made, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if _is_functional(args, kwargs):
            _make_functional(type(self))
            self.functional.__init__(self, *args, **kwargs)  # type: ignore[misc]
            return
        super().__init__(*args, **kwargs)
        self._inputs_taken: Inputs | None = None
        self._declares_input = False  # made of a placeholder, of whose type all inputs must be
        self._outputs_given: Inputs | None = None
        self._judged: tuple[Any, Any] = ((), ())

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("train_step", "test_step", "compute_loss", "compute_metrics"):
            if name in vars(cls):
                setattr(cls, name, _given_values(vars(cls)[name]))
        if "predict_step" in vars(cls):
            cls.predict_step = _predicting_values(vars(cls)["predict_step"])

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Returns the model that `get_config` described."""
        if config.keys() == FUNCTIONAL_CONFIG and not issubclass(cls, Model.functional):
            _make_functional(cls)
            return cls.from_config(config, custom_objects)
        return super().from_config(config, custom_objects)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model on values or placeholders."""
        if self._inputs_taken is None:
            self._inputs_taken = Inputs.of(self, args, kwargs)
        elif self._declares_input:
            received = Inputs.of(self, args, kwargs).raised
            if "inputs" in received:
                check_input(self._inputs_taken.raised["inputs"], received["inputs"], self.name)
        outputs = super().__call__(*args, **kwargs)
        if self._outputs_given is None:
            self._outputs_given = Inputs.of_values({"": outputs})
        return outputs

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the layers, as `keras.Model.summary`, and the fields of inputs and outputs."""
        super().summary(*args, **kwargs)
        self._print_fields(kwargs.get("print_fn") or print)

    def _print_fields(self, print_fn: Callable[[str], Any]) -> None:
        for title, nest in (("Inputs", self._inputs_taken), ("Outputs", self._outputs_given)):
            lines = field_lines(nest.raised) if nest is not None else []
            if lines:
                print_fn(f" {title}:")
                for line in lines:
                    print_fn(f"   {line}")

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures the model for training, as `keras.Model.compile`.

        Where outputs are extension values, `loss`, `metrics`, `weighted_metrics` and
        `loss_weights` may be dicts by field: `loss={"score": "mse", "steps.done": "mse"}`. A
        ragged field, or a ragged tensor, is judged by its values, each of which weighs the same.
        A loss function may take whole extension values, `loss(y_true, y_pred)`, and so may a
        metric.

        XLA, which takes neither strings nor most ops on ragged tensors, is used only if
        `jit_compile=True` asks for it: "auto" leaves it off.
        """
        given = inspect.signature(super().compile).bind(*args, **kwargs).arguments
        if given.get("jit_compile", "auto") == "auto":
            given["jit_compile"] = False
        given["loss"] = takes_values(given.get("loss"))
        super().compile(**given)
        losses = names_of(given["loss"])
        metrics = names_of(given.get("metrics"), given.get("weighted_metrics"))
        if losses:
            check_names(f"{self.name}: loss_weights", given.get("loss_weights"), losses)
        # In a tuple, because Keras tracks the dicts and lists that a model holds.
        self._judged = (tuple(losses), tuple(dict.fromkeys([*losses, *metrics])))

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles the model as it was when it was saved."""
        if type(self).compile is not Model.compile:
            super().compile_from_config(config)  # Keras warns that it cannot
            return
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Trains the model, as `keras.Model.fit`.

        Args:
            *args: As `keras.Model.fit` has them. `x`, `y`, `sample_weight` and
                `validation_data` may be, or hold, extension values, whose rows are cut into
                batches and shuffled together; and datasets, generators and PyDatasets of them.
            **kwargs: The same.
        """
        return super().fit(**self._sources(super().fit, args, kwargs))

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates the model, as `keras.Model.evaluate`, on what `fit` takes too."""
        return super().evaluate(**self._sources(super().evaluate, args, kwargs))

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the model's outputs, as `keras.Model.predict`, of what `fit` takes too.

        Outputs that are extension values are joined over the batches.
        """
        given = self._sources(super().predict, args, kwargs)
        data = given["x"]
        alone = self.distribute_strategy.num_replicas_in_sync == 1  # else TensorFlow cuts values
        if alone and isinstance(data, tf.data.Dataset):
            given["x"] = boxed(data)
        return joined(super().predict(**given))

    def predict_on_batch(self, x: Any) -> Any:
        """Returns the model's outputs for one batch, as `keras.Model.predict_on_batch`."""
        return joined(super().predict_on_batch(counted(lower(x))))

    def train_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Trains the model on one batch, as `keras.Model.train_on_batch`."""
        self._build_for_strategy((x, y))
        return super().train_on_batch(x, y, *args, **kwargs)

    def test_on_batch(self, x: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Evaluates the model on one batch, as `keras.Model.test_on_batch`."""
        self._build_for_strategy((x, y))
        return super().test_on_batch(x, y, *args, **kwargs)

    def train_step(self, data: Any) -> Any:
        """Returns the logs of training on one batch."""
        return super().train_step(for_keras(data))

    def test_step(self, data: Any) -> Any:
        """Returns the logs of evaluating one batch."""
        return super().test_step(for_keras(data))

    def predict_step(self, data: Any) -> Any:
        """Returns the outputs for one batch, in the form in which Keras joins batches."""
        outputs = super().predict_step(for_keras(unboxed(data)))
        return outputs if _predicting.get() is self else joinable(outputs)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        """Returns the loss of a batch, as `keras.Model.compute_loss`."""
        loss = getattr(self, "loss", None)
        y, y_pred, sample_weight = self._by_field(self._judged[0], y, y_pred, sample_weight, loss)
        check_losses(loss, y_pred, self.name)
        return super().compute_loss(x, y, y_pred, sample_weight, training=training)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Returns the metrics of a batch, as `keras.Model.compute_metrics`."""
        judged = self._by_field(self._judged[1], y, y_pred, sample_weight)
        return super().compute_metrics(x, *judged)

    def _by_field(
        self, names: Any, y: Any, y_pred: Any, sample_weight: Any, loss: Any = None
    ) -> tuple[Any, ...]:
        y, y_pred = raised(y), raised(y_pred)
        if not contains((y, y_pred), is_extension):
            return y, y_pred, sample_weight
        if names:
            check_names(f"{self.name}: sample_weight", sample_weight, self._judged[1])
            return by_field(names, y, y_pred, sample_weight, self.name, loss)
        whole = contains(getattr(self, "loss", None), lambda loss: isinstance(loss, FunctionLoss))
        if y is None or whole:
            return y, y_pred, sample_weight  # which a function takes as they are
        return by_values(y, y_pred, sample_weight, self.name, loss)

    def _inference(self) -> dict[str, Any]:
        """Returns the arguments of a call that is no part of training."""
        return {"training": False} if takes_training(self) else {}

    def _sources(self, method: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        replicas = self.distribute_strategy.num_replicas_in_sync
        given = with_sources(method, args, kwargs, replicas)
        if isinstance(given["x"], tf.data.Dataset):
            self._build_for_strategy(given["x"].element_spec)
        return given

    def _build_for_strategy(self, data: Any) -> None:
        """Makes all variables, where there is a strategy under which they must be made.

        Args:
            data: A batch as datasets yield it, or its spec.
        """
        strategy = self.distribute_strategy
        self.built_for_strategy = False
        if strategy is tf.distribute.get_strategy() or not contains(data, _is_extension_or_spec):
            return

        def step(data: Any) -> Any:
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
            y_pred = self(x, **self._inference())
            if self.compiled and y is not None:
                self.compute_loss(x, y, y_pred, sample_weight, training=False)
                self.compute_metrics(x, y, y_pred, sample_weight)

        with strategy.scope():
            # Variables that are made in this scope get their values when it ends.
            with keras.StatelessScope():
                tf.function(step, autograph=False).get_concrete_function(data)
            if self.compiled and self.optimizer is not None and not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)
        self.built_for_strategy = True

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Writes the model whole, as `keras.Model.save`, to a file that ends in `.keras`.

        Raises:
            UnsupportedTypeError: If it is to be HDF5, which Keras would not read again (also a
                TypeError).
        """
        if str(filepath).endswith((".h5", ".hdf5")):
            raise UnsupportedTypeError(
                path=f"{self.name}.save",
                expected="a file that ends in .keras",
                received=f"{filepath}",
                mend="HDF5 holds weights alone: save_weights('model.weights.h5').",
            )
        super().save(filepath, *args, **kwargs)

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
        check_savable([mark(spec) for spec in signature if is_extension_spec(spec)], self.name)
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
        return tf.function(
            lambda *inputs: self(**dict(zip(signature, inputs, strict=True)), **self._inference()),
            input_signature=list(signature.values()),
        )

    def get_build_config(self) -> Any:
        """Returns what `build_from_config` needs to make the variables again."""
        if self._inputs_taken is None or not contains(self._inputs_taken.lowered, is_lowered):
            return super().get_build_config()
        return check_savable(specs_apart(self._inputs_taken.lowered), self.name)

    def build_from_config(self, config: Any) -> None:
        """Makes the variables, so that they can be loaded, by tracing a call."""
        if not config or "specs" not in config:
            super().build_from_config(config)
            return
        self._inputs_taken = Inputs(specs_together(config))
        self.serving_function().get_concrete_function()


def _is_functional(args: Any, kwargs: Any) -> bool:
    """Returns whether these are the arguments of a functional model."""
    return len(args) == 2 or "outputs" in kwargs


def _make_functional(cls: Any) -> None:
    """Makes a user's own subclass one of functional models, as Keras does with its subclasses."""
    bases = [Model.functional if base is Model else base for base in cls.__bases__]
    cls.__bases__ = (*bases, *([] if Model.functional in bases else [Model.functional]))


def _given_values(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method of a model that a user wrote, which is given values and not their form."""

    @functools.wraps(method)
    def given_values(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *raised(args), **raised(kwargs))

    return given_values


def _predicting_values(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a `predict_step` that a user wrote, around which values have Keras's form."""

    @functools.wraps(method)
    def predict_step(self: Any, data: Any) -> Any:
        token = _predicting.set(self)
        try:
            return joinable(method(self, raised(unboxed(data))))
        finally:
            _predicting.reset(token)

    return predict_step


def _is_extension_or_spec(value: Any) -> bool:
    return is_extension_spec(value) or is_extension(value)
