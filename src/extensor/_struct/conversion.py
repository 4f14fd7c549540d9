"""Conversions: how records become plain Python, objects, NumPy, pandas and Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from extensor._converter import converter
from extensor._path import Path
from extensor._struct import masked, to_python
from extensor._struct.records import RecordsBase

if TYPE_CHECKING:
    import pandas as pd


class Conversions(RecordsBase):
    """The methods of a StructuredTensor that return its records in another form."""

    __slots__ = ()

    @property
    def fields(self: Any) -> Mapping[str, Any]:
        """The value of each field by its name, in the order of the fields.

        It cannot be changed: `with_updates` returns records with other fields.

        >>> import extensor as xt
        >>> recipes = xt.DenseStructuredTensor([2], {"minutes": [5, 90], "title": ["a", "b"]})
        >>> [(name, value.dtype.name) for name, value in recipes.fields.items()]
        [('minutes', 'int32'), ('title', 'string')]
        """
        return MappingProxyType({n: self._field(n, Path(n)) for n in self.field_names()})

    def to_py(self: Any, text: bool | None = None) -> Any:
        """Returns the records as plain Python: dicts for records, lists for dimensions.

        The data that `xt.struct.constant` takes comes back: dates, times, Decimals, UUIDs, str and
        bytes, as the Arrow type of the field says (see `arrow_types`). Times in nanoseconds are
        those of pandas, and times of day a datetime.time with a `nanosecond`. Values that a mask
        excludes are None. Values of a union are those of their variant.

        Args:
            text: Whether strings become str. By default those do that are known to be text: of
                Python str, JSON, or a string type of Arrow. Others are bytes, such as a plain
                tensor of tf.string.

        Raises:
            DTypeError: If a tensor is part of a graph and holds no values; the error names its
                path (also a TypeError).
            FormatError: If a string that should become str is not UTF-8, or Python has no date or
                time of a number (also a ValueError).

        >>> import datetime
        >>> import extensor as xt
        >>> xt.struct.constant([{"title": "Tea", "day": datetime.date(2026, 5, 1)}]).to_py()
        [{'title': 'Tea', 'day': datetime.date(2026, 5, 1)}]
        >>> recipes = xt.DenseStructuredTensor([2], {"title": ["Tea", "Soup"]})
        >>> recipes.to_py()
        [{'title': b'Tea'}, {'title': b'Soup'}]
        >>> recipes.to_py(text=True)
        [{'title': 'Tea'}, {'title': 'Soup'}]
        """
        return to_python.to_py(self, text)

    def to_objects(self: Any, cls: type) -> Any:
        """Returns the records as objects of a class, in nested lists for dimensions.

        Args:
            cls: A dataclass, TypedDict, NamedTuple, attrs or pydantic class with the same fields,
                such as one from `spec.python_class()`. Its annotations say what becomes str, a
                member of an enum, a date, or an object of another class.

        Raises:
            FieldError: If the class has other fields (also a KeyError).
            DTypeError: If the class has no annotated fields (also a TypeError).

        >>> import extensor as xt
        >>> import typing
        >>> class Recipe(typing.NamedTuple):
        ...     title: str
        >>> xt.DenseStructuredTensor([2], {"title": ["Tea", "Soup"]}).to_objects(Recipe)
        [Recipe(title='Tea'), Recipe(title='Soup')]
        """
        return converter("to_objects")(self, cls)

    def to_pandas(self: Any) -> pd.DataFrame:
        """Returns the records as a pandas DataFrame; `xt.to_pandas` says how.

        >>> import extensor as xt
        >>> recipes = xt.struct.constant([{"title": "bread"}, {"title": "tea"}])
        >>> recipes.to_pandas()
           title
        0  bread
        1    tea
        """
        return converter("to_pandas")(self)

    def numpy(self: Any) -> dict[str, Any]:
        """Returns a dict of the fields as NumPy arrays; fields of records are dicts too.

        A ragged field becomes an array of arrays, like `tf.RaggedTensor.numpy`. A masked field
        becomes an array of `numpy.ma`; masked lists are None. Needs eager execution.

        Raises:
            DTypeError: If the tensors are part of a graph and hold no values (also a TypeError).

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> xt.DenseStructuredTensor([2], {"x": [1, 2], "y": tf.ragged.constant([[3], []])}).numpy()
        {'x': array([1, 2], dtype=int32),
         'y': array([array([3], dtype=int32), array([], dtype=int32)], dtype=object)}
        """
        to_python.expect_values(self, "numpy")
        return {name: masked.as_numpy(self[name]) for name in self.field_names()}

    def __arrow_c_array__(self: Any, requested_schema: object = None) -> tuple[Any, Any]:
        """Returns the records as capsules of the Arrow PyCapsule interface."""
        return converter("array_capsules")(self, requested_schema)

    def __arrow_c_stream__(self: Any, requested_schema: object = None) -> object:
        """Returns the records as a capsule of an Arrow stream of one batch."""
        return converter("stream_capsule")(self, requested_schema)
