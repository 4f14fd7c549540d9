"""Saving and exporting of models of extension values."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import OwnSaveSignature, inference_arguments
from extensor._keras.call_spec import CallSpec
from extensor._keras.lowering import contains, is_extension_spec, is_lowered
from extensor._keras.spec_key import check_savable, key_of_spec
from extensor._typing import Nest
from extensor.errors import StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._files.files import FilePath

_TENSOR_FORMATS = ("onnx", "openvino", "litert", "torch")


class Saver(OwnSaveSignature, keras.Model):
    """The methods that save and export a model of extension values."""

    _call_spec: CallSpec | None = None  # of the first call

    def save(self, filepath: FilePath, *args: Any, **kwargs: Any) -> None:
        """Writes the whole model to a file that ends in `.keras`, as `keras.Model.save`.

        Raises:
            UnsupportedTypeError: If the file is HDF5, which Keras could not read again (also a
                TypeError).
        """
        if str(filepath).endswith((".h5", ".hdf5")):
            expected = "a file that ends in .keras"
            fix = "For weights only, use save_weights('model.weights.h5')."
            raise UnsupportedTypeError(f"{self.name}.save", expected, f"{filepath}", fix)
        super().save(filepath, *args, **kwargs)

    def export(
        self,
        filepath: FilePath,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Nest = None,
        **kwargs: object,
    ) -> None:
        """Writes a SavedModel whose signature takes extension values.

        Load it with `tf.saved_model.load`, after importing extensor (or the module that registers
        the type). Its `serve` takes the model's input.

        Args:
            filepath: The folder to write.
            format: "tf_saved_model", the only format that supports extension values. A model whose
                inputs are tensors has the formats of `keras.Model.export`.
            verbose: Whether to print a message; by default yes.
            input_signature: The spec of the model's input, or a list with the spec. Default: the
                spec of the input that the model was built for, with any batch size.
            **kwargs: Options of `keras.export.ExportArchive.write_out`.

        Raises:
            StructureError: If the model was never called and no signature is given (also a
                ValueError).
            RegistrationError: If the spec of an input is not registered (also a ValueError).
            UnsupportedTypeError: If `format` is a format of Keras without extension values (also a
                TypeError).
            ValueError: If Keras does not know the format.
        """
        spec = self._call_spec
        is_plain = spec is not None and not contains(spec.lowered, is_lowered)
        # Keras raises for a format that it does not know.
        if format != "tf_saved_model" and (is_plain or format not in _TENSOR_FORMATS):
            super().export(filepath, format, verbose, input_signature, **kwargs)
            return
        if format != "tf_saved_model":
            expected = "format='tf_saved_model'"
            received = f"{format!r}, which supports only plain tensors"
            fix = (
                "Convert a SavedModel of plain tensors: xt.serving.save(model, path, "
                "xt.serving.flat_signature(model, spec))."
            )
            raise UnsupportedTypeError(f"{self.name}.export", expected, received, fix)
        serve = self.serving_function(input_signature)
        if serve is None:
            expected = "a model that was called, or input_signature="
            received = "a model that was never called"
            fix = "Call or fit the model once, or give input_signature=."
            raise StructureError(f"{self.name}.export", expected, received, fix)
        signature = tf.nest.flatten(serve.input_signature)
        check_savable(
            [key_of_spec(spec) for spec in signature if is_extension_spec(spec)], self.name
        )
        if not self.built:
            serve.get_concrete_function()
        archive: Any = keras.export.ExportArchive()
        archive.track(self)
        archive.add_endpoint("serve", serve)
        with warnings.catch_warnings():
            # TensorFlow warns that loading needs an import of the type. The docstring says this.
            warnings.filterwarnings("ignore", "Encoding a StructuredValue", UserWarning)
            archive.write_out(str(filepath), verbose=verbose is not False, **kwargs)

    def serving_function(self, input_signature: Nest = None) -> Any:
        """Returns a tf.function of the model's inference, with a signature of extension values.

        Args:
            input_signature: The spec of the model's input, or a list with the spec. Default: the
                spec of the input that the model was built for, with any batch size.

        Returns:
            A tf.function, or None if the model was never called and no signature is given.
        """
        if input_signature is None:
            if self._call_spec is None:
                return None
            signature = self._call_spec.specs
        else:
            if not isinstance(input_signature, (list, tuple)):
                input_signature = [input_signature]
            names = inspect.signature(self.call).parameters
            signature = dict(zip(names, input_signature, strict=False))
        return tf.function(
            lambda *inputs: self(
                **dict(zip(signature, inputs, strict=True)), **inference_arguments(self)
            ),
            input_signature=list(signature.values()),
        )

    def get_build_config(self) -> dict[str, Any] | None:
        """Returns the configuration for `build_from_config`."""
        if self._call_spec is None or not contains(self._call_spec.lowered, is_lowered):
            return super().get_build_config()
        return check_savable(self._call_spec.to_config(), self.name)

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Creates the variables by tracing a call, so that their values can be loaded."""
        if not config or "specs" not in config:
            super().build_from_config(config)
            return
        self._call_spec = CallSpec.from_config(config)
        self.serving_function().get_concrete_function()
