"""Arrow data of other libraries: their extension types, their exports, and very deep schemas."""

import sys

import pyarrow as pa
import pytest

import extensor as xt
from extensor import errors


class Unhashable(pa.ExtensionType):
    """An extension type like those of awkward: it compares, and has no hash."""

    def __init__(self):
        super().__init__(pa.int64(), "extensor.tests.unhashable")

    def __eq__(self, other):
        return isinstance(other, Unhashable)

    __hash__ = None

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def test_an_extension_type_without_a_hash_is_read_as_its_storage_and_comes_back():
    array = pa.ExtensionArray.from_storage(Unhashable(), pa.array([1, 2]))
    lists = pa.LargeListArray.from_arrays([0, 2, 2], pa.StructArray.from_arrays([array], ["y"]))
    table = pa.table({"x": array, "lists": lists})
    records = xt.from_arrow(table)
    assert records["x"].numpy().tolist() == [1, 2]
    assert records["lists.y"].to_list() == [[1, 2], []]
    assert xt.spec_from_schema(table.schema).is_compatible_with(records)
    back = xt.to_arrow(records)
    assert back.schema == table.schema
    assert back.column(0).storage.equals(array.storage)


class Grid(pa.ExtensionType):
    """An extension type like those of datasets: its shape and value type are its own."""

    shape, value_type = (2, 2), "float32"

    def __init__(self):
        super().__init__(pa.list_(pa.list_(pa.float32())), "extensor.tests.grid")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def test_an_extension_type_may_have_attributes_of_any_meaning():
    cells = pa.array([[[1, 2], [3, 4]]], pa.list_(pa.list_(pa.float32())))
    table = pa.table({"x": pa.ExtensionArray.from_storage(Grid(), cells)})
    records = xt.from_arrow(table)
    assert "x: float32[*][*]" in repr(records)
    assert "grid" in str(xt.struct.tree(records)).lower()
    assert xt.to_arrow(records).schema == table.schema


class Exporter:
    """Says that it exports Arrow data, and gives something else."""

    def __init__(self, method, given):
        setattr(type(self), method, lambda self, requested_schema=None: given())


def raising():
    raise RuntimeError("the file is gone")


def streams():
    return pa.table({"x": [1]}).__arrow_c_stream__()


@pytest.mark.parametrize("method", ["__arrow_c_stream__", "__arrow_c_array__"])
@pytest.mark.parametrize("given", [raising, lambda: None, lambda: 3, lambda: (3, 4), lambda: ()])
def test_an_export_that_fails_is_named(method, given):
    kind = type("Frame", (Exporter,), {})
    with pytest.raises(errors.FormatError, match="Frame: expected valid Arrow data") as raised:
        xt.from_arrow(kind(method, given))
    assert isinstance(raised.value, ValueError)
    assert raised.value.__cause__ is not None


def test_an_array_that_is_exported_for_a_stream_is_named():
    kind = type("Frame", (Exporter,), {})
    with pytest.raises(errors.FormatError, match="Frame"):
        xt.from_arrow(kind("__arrow_c_array__", streams))


def deep(levels):
    arrow, value = pa.int64(), 1
    for _ in range(levels):
        arrow, value = pa.struct([("a", arrow)]), {"a": value}
    return pa.table({"x": pa.array([value], arrow)})


def below(frames, call):
    """Calls something where the recursion limit leaves a number of frames."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(frames + len(_stack()))
    try:
        return call()
    finally:
        sys.setrecursionlimit(limit)


def _stack():
    frame, frames = sys._getframe(), []
    while frame:
        frames.append(frame)
        frame = frame.f_back
    return frames


@pytest.mark.parametrize("call", ["from_arrow", "spec_from_schema", "to_arrow", "to_py"])
def test_more_levels_than_python_can_follow_are_an_error_with_the_mend(call):
    table = deep(160)
    records = below(3000, lambda: xt.from_arrow(table))
    calls = {
        "from_arrow": lambda: xt.from_arrow(table),
        "spec_from_schema": lambda: xt.spec_from_schema(table.schema),
        "to_arrow": lambda: xt.to_arrow(records),
        "to_py": lambda: records.to_py(),
    }
    with pytest.raises(errors.StructureError, match=f"{call}: .*recursion limit") as raised:
        below(150, calls[call])  # Python 3.12 needs one frame for each level only
    assert "setrecursionlimit" in raised.value.fix
    below(5000, calls[call])
