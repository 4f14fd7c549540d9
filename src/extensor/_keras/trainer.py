"""Training, evaluation and prediction of models of extension values.

A step of Keras gets each batch as extension values or in lowered form. A step that a user wrote
always gets extension values.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import keras
import tensorflow as tf

from extensor._data.prunable import is_prunable
from extensor._keras._keras_private import OwnBuild, inference_arguments, layers_in
from extensor._keras.compiled_step import (
    PartsApart,
    allow_static_lists,
    compiles_steps,
    expect_no_lookup,
    lookups_in,
    named_errors,
    run_compiled,
    with_parts_apart,
)
from extensor._keras.fit_data import fit_arguments
from extensor._keras.input_check import cast_input, check_input
from extensor._keras.layer_call import wrapper
from extensor._keras.loss_by_field import (
    FunctionLoss,
    by_field,
    by_values,
    check_fields,
    check_losses,
    check_targets,
    chosen_fields,
    in_order_of,
    with_function_losses,
)
from extensor._keras.lowering import (
    contains,
    from_lowered,
    is_extension,
    is_extension_spec,
    lowered_dataset,
    lowered_outputs,
    map_leaves,
    spec_of_nest,
    with_passed_input,
)
from extensor._keras.open_spec import any_batch_size
from extensor._keras.pruned_input import forget_uses, pruned_input
from extensor._keras.python_input import as_batch
from extensor._raised import raise_marked
from extensor._typing import Nest
from extensor.errors import DTypeError, UnsupportedTypeError

# The model whose user-defined `predict_step` is running. In it, `super().predict_step()` returns
# values.
_predicting: ContextVar[Any] = ContextVar("_predicting", default=None)

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def with_arguments_of(
    method: Callable[_Arguments, Any],
) -> Callable[[Callable[..., _Result]], Callable[_Arguments, _Result]]:
    """Returns a decorator that gives a method the signature that a method of Keras has."""

    def decorate(own: Callable[..., _Result]) -> Callable[_Arguments, _Result]:
        own.__signature__ = inspect.signature(method)  # pyright: ignore[reportFunctionMemberAccess]
        return own

    return decorate


def _run_step(step: Callable[..., Any], model: Trainer, data: Nest) -> Nest:
    return run_compiled(model, functools.partial(step, model), data)


def _with_values(
    method: Callable[..., Any], model: object, /, *args: object, **kwargs: object
) -> Nest:
    return method(model, *from_lowered(args), **from_lowered(kwargs))


def _predict(step: Callable[..., Any], model: object, data: Nest) -> Nest:
    token = _predicting.set(model)
    try:
        return lowered_outputs(step(model, from_lowered(data)))
    finally:
        _predicting.reset(token)


_compiled = wrapper(_run_step)
"""Returns a step of a model, which is compiled with XLA if the model compiles."""


class Trainer(OwnBuild, keras.Model):
    """The methods that train and evaluate a model of extension values."""

    _call_spec: Any = None  # the CallSpec of the first call
    _declares_input = False  # whether all inputs must have the type of the first input
    _returns_values = False  # whether an output of a functional model is a value

    compiled_ragged: tuple[str, ...] = ()  # the ragged fields that a compiled step reads
    parts_apart: PartsApart | None = None  # what the dataset computes for a compiled step

    # Set by `compile`. Tuples, because Keras tracks the lists of a model.
    _loss_fields: tuple[str, ...] = ()  # the fields with a loss
    _scored_fields: tuple[str, ...] = ()  # the fields with a loss or a metric

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("train_step", "test_step", "compute_loss", "compute_metrics", "predict_step"):
            if name in vars(cls):
                around = _predict if name == "predict_step" else _with_values
                method = wrapper(around)(vars(cls)[name])
                setattr(cls, name, _compiled(method) if name.endswith("_step") else method)

    @with_arguments_of(keras.Model.compile)
    def compile(self, *args: object, **kwargs: object) -> None:
        """Configures the model for training, as `keras.Model.compile`.

        For outputs that are extension values, `loss`, `metrics`, `weighted_metrics` and
        `loss_weights` may be dicts by field: `loss={"score": "mse", "steps.done": "mse"}`. In a
        ragged field or ragged tensor, all values have the same weight. A loss function or metric
        may also take whole extension values: `loss(y_true, y_pred)`.

        XLA supports neither strings nor most ops on ragged tensors. So it is used only with
        `jit_compile=True`; "auto" turns it off. The layers for lists take records of static shapes:
        `records.to_static`. The lookups of a `RecordFeatures` run in the dataset.

        Raises:
            UnsupportedTypeError: If `jit_compile=True`, and another layer makes ids of strings or
                hashes them (also a TypeError).
        """
        given = inspect.signature(super().compile).bind(*args, **kwargs).arguments
        if given.get("jit_compile", "auto") == "auto":
            given["jit_compile"] = False
        elif given["jit_compile"]:
            expect_no_lookup(self)
            allow_static_lists(self)
        given["loss"] = with_function_losses(given.get("loss"))
        forget_uses(self)
        self.parts_apart = None
        # Losses of values are by field, and not by the names of the outputs.
        names = self.__dict__.pop("output_names", None) if self._returns_values else None
        super().compile(**given)
        if names is not None:
            self.output_names = names
        losses = chosen_fields(given["loss"])
        metrics = chosen_fields(given.get("metrics"), given.get("weighted_metrics"))
        if losses:
            check_fields(f"{self.name}: loss_weights", given.get("loss_weights"), losses)
        self._loss_fields = tuple(losses)
        self._scored_fields = tuple(dict.fromkeys([*losses, *metrics]))

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles the model with the arguments of the saved model."""
        if type(self).compile is not Trainer.compile:
            super().compile_from_config(config)  # Keras warns that it cannot
            return
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.built:
            self.optimizer.build(self.trainable_variables)

    @with_arguments_of(keras.Model.fit)
    def fit(self, *args: object, **kwargs: object) -> keras.callbacks.History:
        """Trains the model, as `keras.Model.fit`.

        Args:
            *args: The arguments of `keras.Model.fit`. `x`, `y`, `sample_weight` and
                `validation_data` may be or contain extension values; their rows are cut into
                batches and shuffled together. Datasets, generators and PyDatasets of extension
                values work too.
            **kwargs: The keyword arguments of `keras.Model.fit`.
        """
        self._expect_one_process("fit")
        given = self._fit_arguments(super().fit, args, kwargs)
        data = given["x"]
        given["x"] = self._for_step(data, self.train_step, given)
        given["validation_data"] = self._for_step(given.get("validation_data"), self.test_step)
        self._build_optimizer()
        with self._named_errors(data):
            return super().fit(**given)

    @with_arguments_of(keras.Model.evaluate)
    def evaluate(self, *args: object, **kwargs: object) -> float | list[float] | dict[str, float]:
        """Evaluates the model, as `keras.Model.evaluate`, on the same data as `fit`."""
        if "_use_cached_eval_dataset" in kwargs:  # `fit` calls it, with the data that it prepared
            return super().evaluate(*args, **kwargs)
        self._expect_one_process("evaluate")
        given = self._fit_arguments(super().evaluate, args, kwargs)
        data = given["x"]
        given["x"] = self._for_step(data, self.test_step)
        with self._named_errors(data):
            return super().evaluate(**given)

    @with_arguments_of(keras.Model.predict)
    def predict(self, *args: object, **kwargs: object) -> Nest:
        """Returns the model's outputs, as `keras.Model.predict`, for the same data as `fit`.

        Outputs that are extension values are concatenated over the batches.
        """
        given = self._fit_arguments(super().predict, args, kwargs)
        data = given["x"]
        given["x"] = self._for_step(data, self.predict_step)
        with self._named_errors(data):
            return from_lowered(super().predict(**given))

    def predict_on_batch(self, x: Nest) -> Nest:
        """Returns the model's outputs for one batch, as `keras.Model.predict_on_batch`."""
        x = self._as_input(x)
        with named_errors(self):
            return from_lowered(super().predict_on_batch(x))

    def train_on_batch(
        self, x: Nest, y: Nest = None, *args: object, **kwargs: object
    ) -> float | list[float] | dict[str, float]:
        """Trains the model on one batch, as `keras.Model.train_on_batch`."""
        x = self._input_of_batch(x, y)
        with named_errors(self):
            return super().train_on_batch(x, y, *args, **kwargs)

    def test_on_batch(
        self, x: Nest, y: Nest = None, *args: object, **kwargs: object
    ) -> float | list[float] | dict[str, float]:
        """Evaluates the model on one batch, as `keras.Model.test_on_batch`."""
        x = self._input_of_batch(x, y)
        with named_errors(self):
            return super().test_on_batch(x, y, *args, **kwargs)

    def _input_of_batch(self, x: Nest, y: Nest) -> Nest:
        """Returns the input of one batch, which is checked; creates the variables for it."""
        self._expect_one_process("train_on_batch or test_on_batch")
        x = self._as_input(x)
        self._build_for_strategy((x, y))
        return x

    @_compiled
    def train_step(self, data: Nest) -> dict[str, Any]:
        """Returns the logs of training on one batch."""
        return super().train_step(with_passed_input(from_lowered(data)))

    @_compiled
    def test_step(self, data: Nest) -> dict[str, Any]:
        """Returns the logs of evaluating one batch."""
        return super().test_step(with_passed_input(from_lowered(data)))

    @_compiled
    def predict_step(self, data: Nest) -> Nest:
        """Returns the outputs for one batch, lowered so that Keras can concatenate batches."""
        outputs = super().predict_step(from_lowered(data))
        return outputs if _predicting.get() is self else lowered_outputs(outputs)

    def make_train_function(self, force: bool = False) -> Callable[..., Any] | None:
        """Creates the function that trains the model on batches of an iterator."""
        with _compiled_by_extensor(self, force):
            return super().make_train_function(force)

    def make_test_function(self, force: bool = False) -> Callable[..., Any] | None:
        """Creates the function that evaluates the model on batches of an iterator."""
        with _compiled_by_extensor(self, force):
            return super().make_test_function(force)

    def make_predict_function(self, force: bool = False) -> Callable[..., Any] | None:
        """Creates the function that returns the outputs for batches."""
        if not self.compiled:
            self.jit_compile = False  # Keras would use XLA on a GPU, as for "auto" in `compile`
        with _compiled_by_extensor(self, force):
            return super().make_predict_function(force)

    def compute_loss(
        self,
        x: Nest = None,
        y: Nest = None,
        y_pred: Nest = None,
        sample_weight: Nest = None,
        training: bool = True,
    ) -> tf.Tensor | None:
        """Returns the loss of a batch, as `keras.Model.compute_loss`."""
        loss = getattr(self, "loss", None)
        y, y_pred, sample_weight = self._by_field(self._loss_fields, y, y_pred, sample_weight, loss)
        check_losses(loss, y_pred, self.name)
        if not contains(y_pred, is_extension):
            check_targets(loss, y, f"{self.name}: target")
        return super().compute_loss(x, y, y_pred, sample_weight, training=training)

    def compute_metrics(
        self, x: Nest, y: Nest, y_pred: Nest, sample_weight: Nest = None
    ) -> dict[str, Any]:
        """Returns the metrics of a batch, as `keras.Model.compute_metrics`."""
        scored = self._by_field(self._scored_fields, y, y_pred, sample_weight)
        return super().compute_metrics(x, *scored)

    def _by_field(
        self, names: Sequence[str], y: Nest, y_pred: Nest, sample_weight: Nest, loss: Nest = None
    ) -> tuple[Any, ...]:
        if not contains((y, y_pred), is_extension):
            return y, y_pred, sample_weight
        of_outputs = getattr(self, "output_names", None) or ()
        if isinstance(y_pred, (list, tuple)) and set(names) <= set(of_outputs):
            names = ()  # those of whole outputs
        y, sample_weight, loss = (
            in_order_of(y_pred, given, of_outputs) for given in (y, sample_weight, loss)
        )
        # The units of the targets are those of the outputs.
        y = cast_input(spec_of_nest(y_pred), y, is_declared=False)
        if names:
            check_fields(f"{self.name}: sample_weight", sample_weight, self._scored_fields)
            return by_field(names, y, y_pred, sample_weight, self.name, loss)
        whole = contains(getattr(self, "loss", None), lambda loss: isinstance(loss, FunctionLoss))
        if y is None or whole:
            return y, y_pred, sample_weight
        return by_values(y, y_pred, sample_weight, self.name, loss)

    def _fit_arguments(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        replicas = self.distribute_strategy.num_replicas_in_sync
        with_fields_read = self._with_fields_read if replicas == 1 else lambda x: (x, None)
        given = fit_arguments(method, args, kwargs, replicas, self._as_input, with_fields_read)
        if isinstance(given["x"], tf.data.Dataset):
            self._build_for_strategy(given["x"].element_spec)
        return given

    def _with_fields_read(self, x: Nest) -> tuple[Any, Any]:
        """Returns an input with the fields that the model is known to read, and its form or None.

        Only the graph of a functional model tells this without a trace.
        """
        return x, None

    def _for_step(
        self, data: Nest, step: Callable[[Any], Any], given: Mapping[str, Any] | None = None
    ) -> Nest:
        """Returns data as a step takes it: a dataset that reads only the fields that it uses.

        If the model compiles the step, the dataset also computes what XLA cannot. Other data, and
        batches that a strategy divides, have that computed in the step.
        """
        if not isinstance(data, tf.data.Dataset):
            return data
        used, only_calls = data, step == self.predict_step

        def create_variables() -> None:
            self._create_variables(data.element_spec, only_calls)

        # With several replicas, TensorFlow splits each batch. It can split only values.
        is_whole = self.distribute_strategy.num_replicas_in_sync == 1
        is_weighted = given is not None and given.get("class_weight") is not None
        if is_whole and not is_weighted and is_prunable(data) and not self.run_eagerly:
            used = pruned_input(self, step, data, create_variables)
        if is_whole and only_calls:
            used = lowered_dataset(used)
        is_apart = compiles_steps(self) and not is_weighted and not self._has_strategy()
        if is_apart and lookups_in(self, apart=True):
            used = with_parts_apart(self, step, used, create_variables)
        return used

    def _as_input(self, x: Nest) -> Nest:
        """Returns the input, with Python records and Arrow tables as values."""
        return self._cast(as_batch(x, self._input_specs(), self.name))

    @contextlib.contextmanager
    def _named_errors(self, data: Nest) -> Generator[None]:
        """Raises errors of TensorFlow again, with the name of the field that causes them.

        An error of a dataset of `xt.data` is raised as it was.
        """
        with named_errors(self):
            try:
                yield
            except tf.errors.OpError as error:
                raise_marked(error.message)
                if not isinstance(error, tf.errors.InvalidArgumentError):
                    raise
                given: Any = {} if self._call_spec is None else self._call_spec.specs
                specs = list(given.values())
                if isinstance(data, tf.data.Dataset) and contains(specs, is_extension_spec):
                    x, _, _ = keras.utils.unpack_x_y_sample_weight(data.element_spec)
                    try:
                        check_input(specs[0], map_leaves(_any_batch, x), self.name)
                    except DTypeError as mismatch:
                        raise mismatch from error
                raise

    def _cast(self, x: Nest) -> Nest:
        """Returns an input that is cast to the type of the model's input, without loss."""
        return cast_input(self._input_specs(), x, self._declares_input)

    def _input_specs(self) -> Nest:
        """Returns the nest of specs of the model's input, or None if it is not known."""
        given = {} if self._call_spec is None else self._call_spec.specs
        specs: Nest = next(iter(given.values()), None)
        # Keras 3.10 loads a model of one input as a model of a list of one input.
        is_one = type(specs) in (list, tuple) and len(specs) == 1
        return specs[0] if is_one and isinstance(specs[0], tf.TypeSpec) else specs

    def _build_for_strategy(self, data: Nest) -> None:
        """Creates all variables, if the model has a strategy.

        Args:
            data: A batch from a dataset, or its spec.
        """
        self.built_for_strategy = False
        if not (self._has_strategy() and contains(data, _is_extension_or_spec)):
            return

        with self.distribute_strategy.scope():
            self._create_variables(data)
        self.built_for_strategy = True

    def _has_strategy(self) -> bool:
        # Inside of `strategy.scope()`, the current strategy is the model's, too.
        is_other = self.distribute_strategy is not tf.distribute.get_strategy()
        return tf.distribute.has_strategy() or is_other

    def _expect_one_process(self, method: str) -> None:
        """Raises if a strategy has several processes, whose losses Keras cannot add.

        Raises:
            UnsupportedTypeError: If it has (also a TypeError).
        """
        strategy: Any = self.distribute_strategy
        is_for_many = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if is_for_many and strategy.num_replicas_in_sync > len(strategy.extended.worker_devices):
            expected = "a strategy of one process, because Keras cannot add losses of several"
            fix = "Write the loop of the steps: strategy.run(train_step, args=(batch,))."
            received = "a MultiWorkerMirroredStrategy of several"
            raise UnsupportedTypeError(f"{self.name}: {method}", expected, received, fix)

    def _build_optimizer(self) -> None:
        """Creates the variables of the optimizer, if the model has all of its own.

        TensorFlow traces a step twice that creates variables. The step of a user may train some
        variables only, and under a strategy Keras creates them.
        """
        optimizer: Any = self.optimizer if self.compiled else None
        is_own = type(self).train_step is Trainer.train_step and not self._has_strategy()
        if optimizer is None or optimizer.built or self.run_eagerly or not is_own:
            return
        variables = self.trainable_variables
        if variables and all(layer.built for layer in layers_in(self)):
            optimizer.build(variables)

    def _create_variables(self, data: Nest, only_calls: bool = False) -> None:
        """Creates all variables that a step needs.

        Args:
            data: A batch from a dataset, or its spec.
            only_calls: Whether to create only the variables of the model's call.
        """

        def step(data: Nest) -> None:
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
            y_pred = self(x, **inference_arguments(self))
            if self.compiled and y is not None and not only_calls:
                self.compute_loss(x, y, y_pred, sample_weight, training=False)
                self.compute_metrics(x, y, y_pred, sample_weight)

        # Variables that are created in this scope get their values when it ends.
        with keras.StatelessScope():
            tf.function(step, autograph=False).get_concrete_function(data)
        optimizer: Any = self.optimizer if self.compiled and not only_calls else None
        if optimizer is not None and not optimizer.built:
            optimizer.build(self.trainable_variables)


@contextlib.contextmanager
def _compiled_by_extensor(model: Trainer, force: bool) -> Generator[None]:
    """Lets Keras create functions that it does not compile, if extensor compiles the steps."""
    if force:
        model.parts_apart = None
    compiles = compiles_steps(model)
    if compiles:
        model.jit_compile = False
    try:
        yield
    finally:
        if compiles:
            model.jit_compile = True


def _any_batch(spec: object) -> object:
    return any_batch_size(spec) if isinstance(spec, tf.TypeSpec) else spec


def _is_extension_or_spec(value: object) -> bool:
    return is_extension_spec(value) or is_extension(value)
