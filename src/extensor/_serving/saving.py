"""save: writes SavedModels with signatures of plain tensors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from extensor._serving.client_file import client_description, save_clients
from extensor._serving.flat_signature import FlatSignature, flat_signature
from extensor._tf._tf_saving import resources_of
from extensor.errors import DTypeError, StructureError


def save(
    module: object,
    path: str | os.PathLike[str],
    signatures: FlatSignature | Mapping[str, Any] | None = None,
    functions: bool = False,
    options: tf.saved_model.SaveOptions | None = None,
) -> None:
    """Writes a SavedModel whose signatures take and return plain tensors.

    Any program that runs SavedModels can run it, also Python without extensor and the types. The
    data for clients is in `assets.extra/extensor.json`, for `load_client`.

    Args:
        module: The `tf.Module`, or layer or model of Keras, with the variables, tables and files
            that the functions use. None if the functions use only variables and tables.
        path: The folder to write.
        signatures: The result of `flat_signature`, for the signature "serving_default". Or a dict
            of such results by key, which may also contain other signatures for
            `tf.saved_model.save`. Default: `flat_signature(module)`, for a model that knows its
            inputs.
        functions: Whether to save the module itself with all its attributes and `tf.function`s,
            for use in Python. Loading it then needs an import of the types in their signatures.
        options: `tf.saved_model.SaveOptions`.

    Raises:
        RegistrationError: If the spec of an argument or result is not registered (also a
            ValueError).
        DTypeError: If `module` or `signatures` has another type (also a TypeError).
        StructureError: If there is a file at the path (also a ValueError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> import os, tempfile
    >>> double = xt.serving.flat_signature(lambda taste: {"taste": taste * 2},
    ...                                    tf.RaggedTensorSpec([None, None], tf.float32))
    >>> path = os.path.join(tempfile.mkdtemp(), "double")
    >>> xt.serving.save(None, path, double)
    >>> served = tf.saved_model.load(path).signatures["serving_default"]
    >>> client = xt.serving.load_client(path)
    >>> client.decode(served(**client.encode(tf.ragged.constant([[1.0], [2.0, 3.0]]))))
    {'taste': <tf.RaggedTensor [[2.0], [4.0, 6.0]]>}
    """
    if isinstance(module, (str, os.PathLike)):
        expected = "a tf.Module, a layer or model of Keras, or None"
        fix = "The model is the first argument: xt.serving.save(model, path)."
        raise DTypeError("module", expected, type(module).__name__, fix)
    if tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path):
        fix = "Delete it first, or give another path."
        raise StructureError(os.fspath(path), "a folder to write", "a file", fix)
    if signatures is None and callable(module):
        signatures = flat_signature(module)
    if isinstance(signatures, FlatSignature):
        signatures = {tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    if not isinstance(signatures, Mapping):
        expected = "a result of flat_signature, or a mapping of such results by key"
        fix = "Give xt.serving.flat_signature(function, spec)."
        raise DTypeError("signatures", expected, type(signatures).__name__, fix)
    flat = {key: one for key, one in signatures.items() if isinstance(one, FlatSignature)}
    for signature in flat.values():
        client_description(signature)  # raises before the first write
    plain = {k: one.function if k in flat else one for k, one in signatures.items()}
    root = module if functions else _used_state(module, plain.values())
    tf.saved_model.save(root, os.fspath(path), signatures=plain, options=options)
    save_clients(path, flat)


def _used_state(module: object, signatures: Iterable[Any]) -> tf.Module:
    """Returns a module with only the variables, tables and files that the signatures use.

    The user's module may have tf.functions that were traced for extension types. Saving it would
    require these types wherever the model is loaded.
    """
    try:
        inside = [] if module is None else tf.train.TrackableView(module).descendants()
    except (AttributeError, TypeError, ValueError) as error:
        expected = "a tf.Module, a layer or model of Keras, or None"
        fix = "Give the object with the variables and tables that the functions use."
        raise DTypeError("module", expected, type(module).__name__, fix) from error
    root: Any = tf.Module()
    functions = [
        one.get_concrete_function() if getattr(one, "input_signature", None) is not None else one
        for one in signatures
    ]
    # TensorFlow's error says what is wrong with others.
    functions = [
        one for one in functions if isinstance(one, tf.types.experimental.ConcreteFunction)
    ]
    kept = (tf.saved_model.experimental.TrackableResource, tf.saved_model.Asset)
    root.resources = _unique(
        [one for one in inside if isinstance(one, kept)],
        *(resources_of(function) for function in functions),
    )
    root.state = _unique(*(function.variables for function in functions))
    return root


def _unique(*parts: Iterable[Any]) -> list[Any]:
    """Returns the objects of all parts, each once."""
    return list({id(one): one for part in parts for one in part}.values())
