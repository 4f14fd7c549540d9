"""arrow_function: a model as a function of Arrow tables, for engines of parallel processing."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import tempfile
import threading
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import tensorflow as tf

from extensor._arrow.arrow_type import contains_type, inner_fields, is_large_list, with_inner_fields
from extensor._arrow.null_argument import has_auto
from extensor._arrow.null_policy import needs_data
from extensor._arrow.read import table_of
from extensor._arrow.schema import schema_from_spec
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_arrow
from extensor._protocol.spec_of import spec_of
from extensor._struct.dense import DenseStructuredTensor
from extensor._struct.tensor import StructuredTensor
from extensor._typing import ArrowData, Nest, NullsLike, SchemaLike
from extensor.errors import DTypeError, MissingFileError, StructureError

if TYPE_CHECKING:
    import keras

    from extensor._serving.client import Client


def arrow_function(
    model: Any,
    spec: SchemaLike,
    keep: pa.Schema | None = None,
    nulls: NullsLike | None = None,
    schema: pa.Schema | None = None,
) -> ArrowFunction:
    """Returns a model, or a function of records, as a picklable function of Arrow tables.

    Engines such as Ray Data, Spark, Beam and Daft read files, send their records to many processes,
    and write the results. The function is what each process calls: it takes a Table, a RecordBatch
    or a StructArray, and returns the same kind. See docs/scaling.md.

    Args:
        model: One of these:

            - the path of a saved model: a `.keras` file, or the folder of a SavedModel that
              `xt.serving.save` or the method `export` of a model wrote. Each process reads it, so
              it must be on a disk that all of them have. A SavedModel has no order of the
              columns that it returns; they are sorted by name.
            - a model of Keras that takes records. It is pickled with its weights.
            - a function of records. It runs as a `tf.function`.

            It returns records, a tensor, or a nest of tensors and records, with one row for each
            record. Tensors become columns with the names that `xt.serving.flat_signature` gives:
            the key in a dict, or `output_0`, `output_1` and so on.
        spec: The spec of the records, or a pyarrow Schema. Of each table, only its columns are
            read. They are cast to its types without loss.
        keep: The schema of columns of the table that the result has too, such as keys. They come
            first, unchanged. They need not be in `spec`, and may have types without tensors.
        nulls: What becomes of nulls: `"error"`, `"mask"`, `"empty"` for lists, or `xt.fill(value)`;
            one for all fields, or a dict by path, as in `xt.from_arrow`. Default: the masks of the
            spec.
        schema: The Arrow schema of what the model returns, as in `to_arrow`. Default: the natural
            types; but if no list of the spec is a `large_list`, then no list of the result is.

    Returns:
        A function with the attribute `output_schema`, the Arrow schema of its results. It can be
        pickled, also by cloudpickle. A process loads the model at the first call, and only once,
        however often the function is unpickled.

    Raises:
        DTypeError: If `model` is nothing of the above, or it does not return tensors or records;
            or, in a call, if the data is not a table or does not fit the spec (also a TypeError).
        MissingFileError: If there is no model at the path (also a FileNotFoundError).
        StructureError: If two columns of the result have one name, or, in a call, if the result
            has another number of rows than the columns to keep (also a ValueError).
        FieldError, NullError: In a call, if a column is missing, or has a null (also a KeyError, a
            ValueError).

    >>> import pyarrow as pa
    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> table = pa.table({"id": ["a", "b"], "minutes": [[5.0, 20.0], [8.0]]})
    >>> total = xt.arrow_function(lambda recipes: {"total": tf.reduce_sum(recipes["minutes"], 1)},
    ...                           table.schema, keep=pa.schema({"id": pa.string()}))
    >>> total(table).to_pylist()
    [{'id': 'a', 'total': 25.0}, {'id': 'b', 'total': 8.0}]
    >>> total.output_schema
    id: string
    total: double
    """
    load: Callable[[], Callable[[Any], Any]]
    if isinstance(model, (str, os.PathLike)):
        load = functools.partial(_saved_model, os.fspath(model))
    elif _is_keras_model(model):
        load = _KerasModel(model)
    elif callable(model):
        load = functools.partial(_function, model)
    else:
        expected = "the path of a saved model, a model of Keras, or a function"
        fix = "Give for example the path of a .keras file."
        raise DTypeError("arrow_function: model", expected, type(model).__name__, fix)
    return ArrowFunction(uuid.uuid4().hex, load, spec, keep, nulls, schema)


class ArrowFunction:
    """A function of Arrow tables. Create it with `arrow_function`."""

    def __init__(
        self,
        token: str,
        load: Callable[[], Callable[[Any], Any]],
        spec: SchemaLike,
        keep: pa.Schema | None,
        nulls: NullsLike | None,
        schema: pa.Schema | None,
    ) -> None:
        self._arguments = token, load, spec, keep, nulls, schema
        self._load_model = load
        self._keep = _checked_schema(keep, "keep")
        self._schema = _checked_schema(schema, "schema")
        self._wanted = WantedTable(None, spec, nulls)
        if self._wanted.schema is None:
            expected = "the spec of records, or a pyarrow Schema"
            fix = "Give xt.spec_of(records), or the schema of a table."
            raise DTypeError("arrow_function: spec", expected, repr(spec), fix)
        if has_auto(self._wanted.nulls):
            raise needs_data("arrow_function")
        self._model: Any = None
        self._lock = threading.Lock()
        self._loaded: tuple[Callable[[Any], Any], pa.Schema] | None = None
        _known[token] = self

    @property
    def output_schema(self) -> pa.Schema:
        """The Arrow schema of the results. Loads the model."""
        return pa.schema([*(self._keep or ()), *self._load()[1]])

    def __call__(self, data: ArrowData) -> pa.Table | pa.RecordBatch | pa.StructArray:
        """Returns the results for the records of a table, as the same kind of Arrow data.

        Args:
            data: A Table, a RecordBatch, or an array of structs.
        """
        if not isinstance(data, (pa.Table, pa.RecordBatch, pa.StructArray, pa.ChunkedArray)):
            expected = "a Table, a RecordBatch, or an array of structs"
            fix = 'Let the engine give Arrow data: batch_format="pyarrow" in Ray Data.'
            raise DTypeError("arrow_function", expected, type(data).__name__, fix)
        table = table_of(data, "arrow_function")
        run, schema = self._load()
        result = to_arrow(_records(run(self._wanted.records(table))), schema)
        columns = result.columns
        if self._keep is not None:
            kept = WantedTable(None, self._keep).table(table)
            if result.num_rows != table.num_rows:
                expected = f"{table.num_rows} results, one for each record"
                received = f"{result.num_rows} results"
                fix = "Without keep=, the function may drop records."
                raise StructureError("arrow_function: keep", expected, received, fix)
            columns = [*kept.columns, *columns]
        whole = pa.Table.from_arrays(columns, schema=self.output_schema)
        if isinstance(data, pa.Table):
            return whole
        arrays = [c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in whole.columns]
        if isinstance(data, pa.RecordBatch):
            return pa.RecordBatch.from_arrays(arrays, schema=whole.schema)
        return pa.StructArray.from_arrays(arrays, fields=list(whole.schema))

    def _load(self) -> tuple[Callable[[Any], Any], pa.Schema]:
        """Returns the compiled model and the schema of its results; loads it at the first call."""
        with self._lock:
            if self._loaded is None:
                with tf.init_scope():  # also while a graph is being traced
                    self._loaded = self._compile()
            return self._loaded

    def _compile(self) -> tuple[Callable[[Any], Any], pa.Schema]:
        call = self._load_model()
        self._model = call  # because a concrete function does not keep its variables
        function: Any = tf.function(
            lambda records: call(records), input_signature=[self._wanted.records_spec]
        )
        run = function.get_concrete_function()
        with tf.Graph().as_default():
            outputs = run.structured_outputs
            natural = schema_from_spec(spec_of(_records(outputs, validate=False)))
        assert self._wanted.schema is not None
        schema = natural if self._schema is None else self._schema
        if self._schema is None and not any(
            contains_type(field.type, is_large_list) for field in self._wanted.schema
        ):
            schema = pa.schema(map(_narrow, natural))
        twice = {field.name for field in self._keep or ()} & set(schema.names)
        if twice:
            expected = "columns that the model does not return"
            received = f"a column of the results {', '.join(schema.names)}"
            fix = "Leave it out of keep=, or rename the result."
            raise StructureError(f"arrow_function: keep, {min(twice)}", expected, received, fix)
        return run, schema

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, self._arguments


_known: weakref.WeakValueDictionary[str, ArrowFunction] = weakref.WeakValueDictionary()

# The functions that were unpickled last. An engine unpickles the function anew for each task.
_recent: deque[ArrowFunction] = deque(maxlen=8)


def _restore(token: str, *arguments: Any) -> ArrowFunction:
    """Returns the function of a token, if this process has it, and else makes it."""
    function = _known.get(token) or ArrowFunction(token, *arguments)
    if function not in _recent:
        _recent.append(function)
    return function


def _saved_model(path: str) -> Callable[[Any], Any]:
    """Returns the model in a file or folder."""
    if not tf.io.gfile.exists(path):
        fix = "Give a path that every process can read."
        raise MissingFileError(path, "a saved model", "no file or folder", fix)
    if path.endswith(".keras"):
        return _inference(_load_keras(path, {}))
    model: Any = tf.saved_model.load(path)
    if tf.io.gfile.exists(os.path.join(path, "assets.extra", "extensor.json")):
        from extensor._serving.client_file import load_client

        return _Restored(model, load_client(path))
    return _Restored(model, None)


def _function(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function of records, which need not be loaded."""
    return function


class _Restored:
    """A SavedModel. It is kept, because a function of it does not keep its variables.

    Args:
        model: The SavedModel.
        client: The client of its signature, or None if it takes records.
    """

    def __init__(self, model: Any, client: Client | None) -> None:
        self._model = model
        self._client = client

    def __call__(self, records: StructuredTensor) -> Nest:
        if self._client is None:
            outputs = getattr(self._model, "serve", self._model)(records)
        else:
            signature = self._model.signatures[tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
            outputs = self._client.decode(signature(**self._client.encode(records)))
        if not isinstance(outputs, Mapping):
            return outputs
        # A SavedModel has no order of the keys: it would be another one in each process.
        return dict(sorted(cast("Mapping[str, Any]", outputs).items()))


class _KerasModel:
    """Returns a model of Keras in memory. It is pickled as bytes, and read when it is called."""

    def __init__(self, model: keras.Model) -> None:
        self._model = model

    def __call__(self) -> Callable[[Any], Any]:
        return _inference(self._model)

    def __reduce__(self) -> tuple[Any, ...]:
        import keras

        inside = tf.train.TrackableView(self._model).descendants()
        classes = {type(one) for one in inside if isinstance(one, keras.Layer)}
        own = {
            keras.saving.get_registered_name(each): each
            for each in classes
            if each.__module__.partition(".")[0] not in ("keras", "extensor")
        }
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            self._model.save(path)
            with open(path, "rb") as file:
                return functools.partial, (_model_of_bytes, file.read(), own)


def _model_of_bytes(content: bytes, classes: Mapping[str, type]) -> Callable[[Any], Any]:
    """Returns the model of Keras in the content of a `.keras` file.

    Args:
        content: The content.
        classes: The classes of its layers. Only cloudpickle can pickle those of a notebook.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        with open(path, "wb") as file:
            file.write(content)
        return _inference(_load_keras(path, classes))


def _is_keras_model(model: object) -> bool:
    keras: Any = sys.modules.get("keras")  # who has a model has imported it
    return keras is not None and isinstance(model, keras.Model)


def _load_keras(path: str, classes: Mapping[str, Any]) -> Any:
    import keras

    importlib.import_module("extensor.keras")  # registers the layers
    return keras.saving.load_model(path, custom_objects=dict(classes), compile=False)


def _inference(model: keras.Model) -> Callable[[Any], Any]:
    from extensor._keras._keras_private import inference_arguments

    return lambda records: model(records, **inference_arguments(model))


def _checked_schema(schema: object, name: str) -> pa.Schema | None:
    if schema is None or isinstance(schema, pa.Schema):
        return schema
    expected = "a pyarrow Schema of the columns"
    fix = f'Give for example {name}=pa.schema({{"id": pa.int64()}}).'
    raise DTypeError(f"arrow_function: {name}", expected, repr(schema)[:80], fix)


def _records(outputs: Nest, validate: bool = True) -> StructuredTensor:
    """Returns the outputs of a model as records."""
    if isinstance(outputs, StructuredTensor) and outputs.rank == 1:
        return outputs
    fields = dict(_columns(outputs))
    wrong = next((name for name, value in fields.items() if not _has_rows(value)), None)
    if wrong is not None or not fields:
        expected = "records, or tensors with one row for each record"
        received = "no tensors" if wrong is None else repr(spec_of(fields[wrong]))[:80]
        fix = "Return for example a dict of tensors."
        raise DTypeError(
            f"arrow_function: model{'' if wrong is None else ', ' + wrong}", expected, received, fix
        )
    nrows = next(iter(fields.values())).shape[0]
    return DenseStructuredTensor([nrows], fields, validate=validate)


def _columns(outputs: Any) -> Iterator[tuple[str, Any]]:
    """Yields the columns of the outputs, with the names that a signature gives to its outputs."""
    if isinstance(outputs, Mapping):
        yield from cast("Mapping[str, Any]", outputs).items()
    elif hasattr(outputs, "_fields"):
        yield from outputs._asdict().items()
    elif isinstance(outputs, (list, tuple)):
        yield from ((f"output_{i}", one) for i, one in enumerate(cast("list[Any]", outputs)))
    elif outputs is not None:
        yield "output_0", outputs


def _has_rows(value: Any) -> bool:
    return isinstance(getattr(value, "shape", None), tf.TensorShape) and value.shape.rank != 0


def _narrow(field: pa.Field) -> pa.Field:
    """Returns a field whose lists have 32-bit offsets."""
    inner = [_narrow(each) for each in inner_fields(field.type)]
    if pa.types.is_large_list(field.type):
        return field.with_type(pa.list_(*inner))
    return field.with_type(with_inner_fields(field.type, inner)) if inner else field
