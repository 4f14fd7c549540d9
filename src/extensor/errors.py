"""The errors that extensor raises; each is also the builtin that TensorFlow users already catch.

A message contains the path, what was expected, what was received, and what to do. It never contains
the contents of a tensor.
"""

import json as _json
import re as _re
from collections.abc import Iterable as _Iterable
from importlib import metadata as _metadata
from typing import Any as _Any
from urllib import parse as _parse
from urllib import request as _request


class ExtensorError(Exception):
    """Base class of the errors that extensor raises.

    Pass the four parts of the message, or the complete message:

    >>> from extensor.errors import StructureError
    >>> print(StructureError("recipe.est_time", "3 rows", "2 rows", "Give each record one value."))
    recipe.est_time: expected 3 rows, got 2 rows. Give each record one value.
    >>> print(StructureError("The lists overlap."))
    The lists overlap.

    Args:
        path: Where the error occurred: a field path, a file, a class. If it is the only argument,
            it is the complete message.
        expected: What was expected.
        received: What was received.
        fix: How to correct the error.
    """

    # Without this attribute, AutoGraph replaces an error that passes through a tf.function by an
    # error of another class, which user code does not catch.
    ag_pass_through = True

    def __init__(
        self,
        path: object = None,
        expected: str | None = None,
        received: str | None = None,
        fix: str | None = None,
    ) -> None:
        parts = (expected, received, fix)
        at = None if path is None or parts == (None, None, None) else str(path)
        self.expected, self.received, self.fix = parts
        super().__init__(str(path) if at is None and path is not None else _sentence(at, *parts))
        self.path = at  # after the __init__ of ImportError, which resets it

    def __str__(self) -> str:
        # KeyError.__str__ returns the repr of the message.
        return str(self.args[0]) if self.args else ""


def _sentence(path: str | None, expected: str | None, received: str | None, fix: str | None) -> str:
    parts = [f"expected {expected}"] if expected is not None else []
    parts += [f"got {received}"] if received is not None else []
    text = ": ".join(each for each in (path, ", ".join(parts)) if each)
    return f"{text}. {fix}" if fix else text


class StructureError(ExtensorError, ValueError):
    """The parts of a value do not match: shapes, row counts, row splits, names.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "tea"}, {"title": "pie"}])
    >>> recipes.with_updates(minutes=[5])
    Traceback (most recent call last):
    extensor.errors.StructureError: minutes: expected a value whose shape begins with (2,), the
    shape of the records, got shape (1,). Give every field one value for each record.
    """


class DTypeError(ExtensorError, TypeError):
    """A value has the wrong dtype or the wrong type.

    >>> import extensor as xt
    >>> xt.struct.constant([{"minutes": 5}, {"minutes": "five"}])
    Traceback (most recent call last):
    extensor.errors.DTypeError: minutes, record 1: expected a number, as in record 0 (int 5), got a
    string (str 'five'). Give all records one type, or keep both: conflicts="union"; ...
    """


class FieldError(ExtensorError, KeyError):
    """A path names a field that does not exist.

    >>> import extensor as xt
    >>> xt.struct.constant([{"title": "tea"}])["titel"]
    Traceback (most recent call last):
    extensor.errors.FieldError: titel: expected one of the fields title, got titel. Did you mean
    title? ...
    """


class RowError(ExtensorError, IndexError):
    """An index is out of the range of the rows.

    >>> import extensor as xt
    >>> xt.struct.constant([{"title": "tea"}])[3]
    Traceback (most recent call last):
    extensor.errors.RowError: index: expected a position from -1 to 0, got position 3. This
    dimension has size 1.
    """


class PathError(ExtensorError, ValueError):
    """A string is not a valid field path.

    >>> import extensor as xt
    >>> xt.struct.constant([{"title": "tea"}])["title..x"]
    Traceback (most recent call last):
    extensor.errors.PathError: path 'title..x': expected a field name at position 6, got '.'.
    Quote a name with a dot, a quote or a bracket: recipe."est. time", or pass a tuple.
    """


class NullError(ExtensorError, ValueError):
    """The data contains a null, and no handling of nulls was chosen.

    >>> import extensor as xt
    >>> xt.struct.constant([{"title": "tea"}, {"title": None}])
    Traceback (most recent call last):
    extensor.errors.NullError: title, record 1: expected a value, such as str 'tea', got null. ...
    nulls={"title": "mask"}
    """


class UnsupportedTypeError(ExtensorError, TypeError):
    """A type of another library is not supported.

    >>> import extensor as xt
    >>> xt.struct.constant([{"number": object()}])
    Traceback (most recent call last):
    extensor.errors.UnsupportedTypeError: number, record 0: expected a number, a string, a bool, a
    list, a record, or a value that Arrow converts, got object. Convert the value first. ...
    """


class RegistrationError(ExtensorError, ValueError):
    """A TypeSpec cannot be registered under the given name.

    >>> import extensor as xt
    >>> @xt.extension_type(name="not a name")
    ... class Price:
    ...     amount: float
    Traceback (most recent call last):
    extensor.errors.RegistrationError: ... registered as 'not a name': expected words of letters,
    digits and _, joined by dots, got 'not a name'. Give a name: ...
    """


class MissingTypeError(RegistrationError, AttributeError):
    """An operation needs the class of a value, and the class is not imported.

    >>> import extensor as xt
    >>> issubclass(xt.errors.MissingTypeError, xt.errors.RegistrationError)
    True
    """


class ProtocolError(ExtensorError, TypeError):
    """A class does not implement a protocol correctly.

    >>> import extensor as xt
    >>> xt.testing.check_extension_type(object())
    Traceback (most recent call last):
    extensor.errors.ProtocolError: object: expected an extension type: ...
    """


class ArgumentError(ProtocolError, ValueError):
    """A value cannot be decomposed into, or rebuilt from, the arguments of its constructor.

    >>> import extensor as xt
    >>> @xt.auto_composite_tensor
    ... class Adder:
    ...     def __init__(self, x):
    ...         self.other = x
    >>> xt.spec_of(Adder(1.0))
    Traceback (most recent call last):
    extensor.errors.ArgumentError: Adder...x: expected the value of this constructor argument, got a
    value without an attribute `x`, ... Store it in __init__: self._x = x. ...
    """


class FormatError(ExtensorError, ValueError):
    """A file or buffer does not have the expected format.

    >>> import extensor as xt
    >>> xt.read_json(b'{"title": tea}')
    Traceback (most recent call last):
    extensor.errors.FormatError: JSON, line 1, column 11: expected JSON, got 'tea}' ...
    """


class DatabaseError(ExtensorError, OSError):
    """A database rejected a query or a connection, or failed while it was read or written.

    >>> import duckdb
    >>> import extensor as xt
    >>> xt.read_database("select title from recipes", duckdb.connect())
    Traceback (most recent call last):
    extensor.errors.DatabaseError: query: expected a database that answers without an error, got ...
    """


class MissingFileError(ExtensorError, FileNotFoundError):
    """A file to read does not exist.

    >>> import extensor as xt
    >>> xt.read_parquet("absent.parquet")
    Traceback (most recent call last):
    extensor.errors.MissingFileError: absent.parquet: expected a file, a folder, or a pattern, got a
    path that does not exist. Check the path; ...
    """


class StoreError(ExtensorError, OSError):
    """A store of files does not answer, or answers wrongly, also when asked again.

    >>> import extensor as xt
    >>> issubclass(xt.errors.StoreError, OSError)
    True
    """


class DirectoryError(ExtensorError, IsADirectoryError):
    """A path is a directory, and a file is needed.

    >>> import extensor as xt
    >>> xt.write_parquet(xt.struct.constant([{"title": "tea"}]), ".")
    Traceback (most recent call last):
    extensor.errors.DirectoryError: .: expected a file, got a directory. Give the name of a file
    in it.
    """


class MissingDependencyError(ExtensorError, ImportError):
    """A required package is not installed, or its version is not supported.

    A command that installs an extra of extensor, such as `pip install "extensor[sql]"`, becomes one
    that installs it from where this extensor was installed.

    >>> import extensor as xt
    >>> issubclass(xt.errors.MissingDependencyError, ImportError)
    True
    """

    def __init__(
        self,
        path: object = None,
        expected: str | None = None,
        received: str | None = None,
        fix: str | None = None,
    ) -> None:
        fix = fix and _re.sub(r"(['\"])extensor(\[[^\]]+\])\1", _extra, fix)
        super().__init__(path, expected, received, fix)


def _extra(found: "_re.Match[str]") -> str:
    """Returns what pip installs for an extra: by its name, or from a folder, file or repository."""
    quote, extra = found.groups()
    try:
        text = _metadata.distribution("extensor").read_text("direct_url.json")
    except _metadata.PackageNotFoundError:
        text = None
    if text is None:  # from an index
        return found[0]
    origin = _json.loads(text)
    url = origin["url"]
    if origin.get("dir_info", {}).get("editable"):
        folder = _request.url2pathname(_parse.urlparse(url).path)
        return f"-e {quote}{folder}{extra}{quote}"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"{quote}extensor{extra} @ {url}{quote}"


class QueryError(ExtensorError, ValueError):
    """A database does not accept a query or a write.

    >>> import extensor as xt
    >>> issubclass(xt.errors.QueryError, ValueError)
    True
    """


class AccessError(ExtensorError, PermissionError):
    """A server rejects the credentials, or these do not permit the request.

    >>> import extensor as xt
    >>> issubclass(xt.errors.AccessError, PermissionError)
    True
    """


class ServerError(ExtensorError, ConnectionError):
    """A server cannot be reached, or ended the connection before all data came.

    >>> import extensor as xt
    >>> issubclass(xt.errors.ServerError, ConnectionError)
    True
    """


class ImmutableError(ExtensorError, AttributeError):
    """An attribute of an immutable value was assigned or deleted.

    >>> import extensor as xt
    >>> recipes = xt.struct.constant([{"title": "tea"}])
    >>> recipes.title = "pie"
    Traceback (most recent call last):
    extensor.errors.ImmutableError: DenseStructuredTensor.title: expected no assignment of
    attributes, because records are immutable, got assignment of 'title'. Get a changed copy by
    with_updates, ...
    """


class MissingAttributeError(ExtensorError, AttributeError):
    """A value, spec or module has no attribute of a name.

    >>> import extensor as xt
    >>> xt.struct.constant([{"title": "tea"}]).head()
    Traceback (most recent call last):
    extensor.errors.MissingAttributeError: ... has no attribute 'head'. Write records[:5]
    """


class AbstractMethodError(ProtocolError, NotImplementedError):
    """A class lacks a method that its base leaves to it.

    >>> import extensor as xt
    >>> issubclass(xt.errors.AbstractMethodError, NotImplementedError)
    True
    """


class LawError(ExtensorError, AssertionError):
    """A type breaks laws that extension types obey; the message lists all of them.

    Attributes:
        type_name: The name of the type.
        breaches: What was expected and received, for each broken law.
        unchecked: The names of the laws that were not checked, because they depend on a broken one.

    >>> import extensor as xt
    >>> print(xt.errors.LawError("Price", ["equal values have equal specs"], ["stack"]))
    Price breaks a law of extension types
    equal values have equal specs
      Not checked, because they depend on these laws: stack.
    """

    def __init__(
        self,
        type_name: str,
        breaches: _Iterable[_Any],
        unchecked: _Iterable[str] = (),
        note: str = "",
    ) -> None:
        self.type_name = type_name
        self.breaches = tuple(breaches)
        self.unchecked = tuple(unchecked)
        number = "a law" if len(self.breaches) == 1 else f"{len(self.breaches)} laws"
        lines = [f"{type_name} breaks {number} of extension types{note}"]
        lines += map(str, self.breaches)
        if self.unchecked:
            names = ", ".join(self.unchecked)
            lines.append(f"  Not checked, because they depend on these laws: {names}.")
        super().__init__("\n".join(lines))

    @property
    def names(self) -> frozenset[str]:
        """The names of the broken laws."""
        return frozenset(breach.law.name for breach in self.breaches)


def __dir__() -> list[str]:
    return [name for name in globals() if name.startswith("__") or not name.startswith("_")]
