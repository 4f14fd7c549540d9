"""Types for annotations: what the functions of extensor take as arguments.

- `ArrowData`: records in memory, of pyarrow or with the Arrow PyCapsule interface.
- `TensorLike`, `DTypeLike`, `ShapeLike`: a tensor, a dtype, a static shape, or what TensorFlow
  converts to one.
- `FilePath`: a path or URL of a file.
- `PathLike`: the path of a field.
- `SchemaLike`: the argument `schema`, a spec or an Arrow schema.
- `NullsLike`: the argument `nulls`, one `NullPolicy` or a dict of them by path.

They are for functions of your own that pass an argument on:

>>> import extensor as xt
>>> from extensor.typing import FilePath, NullsLike
>>> def recipes(file: FilePath, nulls: NullsLike = "mask") -> xt.StructuredTensor:
...     return xt.read_parquet(file, ["title", "steps.minutes"], nulls=nulls)
>>> from extensor.typing import ArrowData, DTypeLike, NullPolicy, PathLike, SchemaLike
>>> def totals(
...     data: ArrowData, path: PathLike, dtype: DTypeLike, schema: SchemaLike, null: NullPolicy
... ) -> xt.StructuredTensor:
...     return xt.struct.cast(xt.from_arrow(data, None, schema, {path: null}), {path: dtype})
>>> from extensor.typing import ShapeLike, TensorLike
>>> def titles(title: TensorLike, shape: ShapeLike = (None,)) -> xt.StructuredTensor:
...     return xt.DenseStructuredTensor(shape, {"title": title})
>>> titles(["Tea", "Toast"]).shape.as_list()
[2]
"""

from extensor._typing import (
    ArrowData,
    DTypeLike,
    FilePath,
    NullPolicy,
    NullsLike,
    PathLike,
    SchemaLike,
    ShapeLike,
    TensorLike,
)

__all__ = [
    "ArrowData",
    "DTypeLike",
    "FilePath",
    "NullPolicy",
    "NullsLike",
    "PathLike",
    "SchemaLike",
    "ShapeLike",
    "TensorLike",
]
