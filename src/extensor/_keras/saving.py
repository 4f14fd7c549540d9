"""Models over extension values on disk: saved, exported, and built again."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import keras
import tensorflow as tf

from extensor._keras._keras_private import OwnSaveSignature, inference_arguments
from extensor._keras.call_spec import CallSpec
from extensor._keras.lowering import contains, is_extension_spec, is_lowered
from extensor._keras.spec_key import check_savable, key_of_spec
from extensor.errors import StructureError, UnsupportedTypeError


class Saver(OwnSaveSignature, keras.Model):
    """What a model over extension values is saved and exported with."""

    _call_spec: CallSpec | None = None  # of the first call

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
        check_savable(
            [key_of_spec(spec) for spec in signature if is_extension_spec(spec)], self.name
        )
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

    def get_build_config(self) -> Any:
        """Returns what `build_from_config` needs to make the variables again."""
        if self._call_spec is None or not contains(self._call_spec.lowered, is_lowered):
            return super().get_build_config()
        return check_savable(self._call_spec.to_config(), self.name)

    def build_from_config(self, config: Any) -> None:
        """Makes the variables, so that they can be loaded, by tracing a call."""
        if not config or "specs" not in config:
            super().build_from_config(config)
            return
        self._call_spec = CallSpec.from_config(config)
        self.serving_function().get_concrete_function()
