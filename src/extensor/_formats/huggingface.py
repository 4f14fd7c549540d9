"""Datasets of Hugging Face to StructuredTensors and back, through their Arrow tables.

The feature of a column, such as the names of the classes of a ClassLabel, is in the metadata of its
Arrow field, which records keep.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from extensor._arrow.chosen_columns import leaf_paths
from extensor._arrow.wanted_table import WantedTable
from extensor._arrow.write import to_plain_arrow
from extensor._dependency import import_extra
from extensor._path import Path, PathLike
from extensor._raised import first_line
from extensor._struct.tensor import StructuredTensor
from extensor._typing import DTypeLike, NullsLike, SchemaLike
from extensor.errors import DTypeError, UnsupportedTypeError

if TYPE_CHECKING:
    import datasets

_KEY = b"huggingface"


def from_huggingface(
    dataset: datasets.Dataset,
    columns: Iterable[PathLike] | None = None,
    schema: SchemaLike | None = None,
    nulls: NullsLike | None = None,
    row_splits_dtype: DTypeLike | None = None,
) -> StructuredTensor:
    """Returns the rows of a Hugging Face Dataset as a StructuredTensor.

    Args:
        dataset: A `datasets.Dataset`. Rows come in its order, also after `shuffle` and `select`.
            Its format and transforms have no effect: images and audio stay records of `bytes` and
            `path`, as they are stored.
        columns: Paths of the fields to read. Default: all.
        schema: The spec of a StructuredTensor, or a pyarrow Schema; by default that of the dataset.
        nulls: What becomes of nulls: `"error"`, `"mask"` for a MaskedTensor, `"empty"` for lists,
            or `xt.fill(value)`; one for all fields, or a dict by path. Default: the `path` of
            images and audio is masked; other nulls are an error.
        row_splits_dtype: The dtype of the row splits of lists. Default: tf.int64, or that of a
            spec.

    Returns:
        A StructuredTensor of shape `[number of rows]`. `Array2D` to `Array5D` are dense tensors if
        their shape is fixed.

    Raises:
        MissingDependencyError: If datasets is not installed (also an ImportError).
        DTypeError: If it is no Dataset, but a DatasetDict or an IterableDataset, or a column does
            not fit the schema (also a TypeError).
        NullError, FieldError, UnsupportedTypeError: As in `from_arrow`.

    >>> import extensor as xt
    >>> import datasets
    >>> dataset = datasets.Dataset.from_list([{"title": "bread", "steps": [{"minutes": 60}]},
    ...                                       {"title": "tea", "steps": []}])
    >>> xt.from_huggingface(dataset.select([1]))
    <StructuredTensor shape=(1,) {title: string, steps: [*] {minutes: int64}}
     [{title: 'tea', steps: []}]>
    """
    datasets = import_extra("datasets", "huggingface", "from_huggingface")
    if not isinstance(dataset, datasets.Dataset):
        raise _no_dataset(datasets, dataset)
    wanted = WantedTable(columns, schema, nulls, row_splits_dtype)
    names = wanted.names_in(dataset.column_names)
    rows: Any = dataset.with_format("arrow", columns=names)[:]
    table = rows.replace_schema_metadata(None)
    for i, name in enumerate(table.schema.names):
        column = _dense(table.column(i))
        field = pa.field(name, column.type)
        feature = dataset.features[name]
        if datasets.Features.from_arrow_schema(pa.schema([field]))[name] != feature:
            kept = datasets.Features({"": feature}).to_dict()[""]
            field = field.with_metadata({_KEY: json.dumps(kept)})
        table = table.set_column(i, field, column)
    if nulls is None and schema is None:
        # Most images have no path, and nobody needs it beside the bytes.
        files = [at for name in names for at in _paths(dataset.features[name], Path(name))]
        read = leaf_paths(wanted.pruned(table.schema)) if files else []
        nulls = {str(at): "mask" for at in files if at.names in read} or None
        wanted = WantedTable(wanted.columns, None, nulls, row_splits_dtype)
    return wanted.records(table)


def _no_dataset(datasets: Any, data: object) -> DTypeError:
    fix = "Load one with datasets.load_dataset, or make one with Dataset.from_list."
    if isinstance(data, Mapping):
        fix = f"Choose a split: {', '.join(f'dataset[{name!r}]' for name in list(data)[:5])}."
    elif isinstance(data, datasets.IterableDataset):
        fix = (
            'Read it in batches: dataset.with_format("arrow").iter(1000) yields tables, of which '
            "each is for xt.from_arrow and all are for xt.read_arrow."
        )
    return DTypeError("from_huggingface", "a datasets.Dataset", type(data).__name__, fix)


def _paths(feature: Any, at: Path) -> Iterator[Path]:
    """Yields the place of the paths of images, audio and other files."""
    if isinstance(feature, Mapping):
        for name, inner in feature.items():
            yield from _paths(inner, at / name)
    elif hasattr(feature, "decode_example"):
        stored = getattr(feature, "pa_type", None)
        if stored is not None and pa.types.is_struct(stored) and "path" in stored.names:
            yield at / "path"
    elif hasattr(feature, "feature"):
        yield from _paths(feature.feature, at)


def _dense(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns a column of arrays of one shape as fixed-size lists; others as they are."""
    shape = getattr(column.type, "shape", None)
    is_array = isinstance(column.type, pa.ExtensionType) and isinstance(shape, tuple)
    if not is_array or column.null_count or not shape or any(size is None for size in shape):
        return column
    chunks: list[pa.Array] = []
    for chunk in column.chunks:
        values = chunk.storage
        for _ in shape:
            values = values.flatten()
        for size in reversed(shape):
            if size == 0 or len(values) % size:
                return column
            values = pa.FixedSizeListArray.from_arrays(values, size)
        if len(values) != len(chunk):  # rows of other shapes
            return column
        chunks.append(values)
    kind = column.type.storage_type
    for _ in shape:
        kind = kind.value_type
    for size in reversed(shape):
        kind = pa.list_(kind, size)
    return pa.chunked_array(chunks, kind)


def to_huggingface(
    records: StructuredTensor, schema: pa.Schema | pa.DataType | None = None
) -> datasets.Dataset:
    """Returns records as a Hugging Face Dataset.

    The features of columns that came from a Dataset come back: ClassLabel, Image, Array2D and
    others. Other features follow from the Arrow types.

    Args:
        records: A StructuredTensor of rank 1 that holds values.
        schema: The Arrow schema to convert by, as in `to_arrow`.

    Raises:
        MissingDependencyError: If datasets is not installed (also an ImportError).
        DTypeError: If `records` is not a StructuredTensor of rank 1 (also a TypeError).
        UnsupportedTypeError: If datasets has no feature for a type (also a TypeError).
        FieldError, StructureError, FormatError: As in `to_arrow`.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "bread", "steps": [{"minutes": 60}]}])
    >>> xt.to_huggingface(recipes)[0]
    {'title': 'bread', 'steps': [{'minutes': 60}]}
    """
    datasets = import_extra("datasets", "huggingface", "to_huggingface")
    data = to_plain_arrow(records, schema)
    if not isinstance(data, pa.RecordBatch):
        fix = "Give a vector of records; a record may have lists of records."
        raise DTypeError("to_huggingface", "records of rank 1", f"shape {records.shape}", fix)
    features = {field.name: _feature(datasets, field) for field in data.schema}
    plain = pa.schema([field.remove_metadata() for field in data.schema])
    table = pa.Table.from_arrays(data.columns, schema=plain) if features else pa.table(data)
    return datasets.Dataset(
        datasets.table.InMemoryTable(
            datasets.table.table_cast(table, datasets.Features(features).arrow_schema)
        )
    )


def _feature(datasets: Any, field: pa.Field) -> Any:
    """Returns the feature that a field came with, or that of its Arrow type."""
    kept = (field.metadata or {}).get(_KEY)
    if kept is not None:
        return datasets.Features.from_dict({"": json.loads(kept)})[""]
    try:
        plain = field.remove_metadata()
        return datasets.Features.from_arrow_schema(pa.schema([plain]))[field.name]
    except (ValueError, NotImplementedError, TypeError) as error:
        expected = "a type that datasets has a feature for"
        received = f"Arrow type {field.type} ({first_line(error)})"
        fix = "Give schema= with another type, or leave the field out with without."
        raise UnsupportedTypeError(Path(field.name), expected, received, fix) from error
