"""Names that pandas, polars and Arrow users type: the error says what to write, which runs."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor._struct.other_names import OF_MODULE, OF_PATHS, OF_RECORDS
from extensor._struct.paths.earlier_names import INSTEAD
from extensor.errors import DTypeError, MissingAttributeError, StructureError

DENSE = xt.DenseStructuredTensor(
    [2], {"name": tf.constant([1, 2]), "list": tf.ragged.constant([[1], []])}
)
RAGGED = xt.RaggedStructuredTensor.from_row_lengths(DENSE, [1, 1])


def test_what_the_errors_say_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    polars = pytest.importorskip("polars")
    known = {
        "xt": xt, "tf": tf, "polars": polars, "records": DENSE,
        "values": [5, 6], "dtype": tf.float32, "rows": [1, 0], "table": pa.table({"name": [1]}),
        "frame": pd.DataFrame({"name": [1]}),
    }  # fmt: skip
    flat = DENSE.without("list")
    for name, code in [*OF_RECORDS.items(), *OF_MODULE.items(), *OF_PATHS.items()]:
        if "write_" in code or "polars" in code:
            eval(code, {**known, "records": flat, "path": "x"})
        else:
            eval(code, known)
        assert not hasattr(DENSE, name) or name not in OF_RECORDS
        assert not hasattr(xt, name) or name not in OF_MODULE
        assert not hasattr(xt.struct, name) or name not in OF_PATHS


@pytest.mark.parametrize("records", [DENSE, RAGGED, DENSE[0]])
@pytest.mark.parametrize("name", ["head", "columns", "to_arrow", "group_by"])
def test_a_name_of_another_library_raises_an_error_that_says_what_to_write(records, name):
    with pytest.raises(MissingAttributeError) as raised:
        getattr(records, name)
    assert raised.value.name == name
    assert str(raised.value).endswith(f"has no attribute {name!r}. Write {OF_RECORDS[name]}")


def test_names_that_nothing_has_raise_as_python_does():
    with pytest.raises(AttributeError, match="'DenseStructuredTensor' object has no attribute 'o'"):
        _ = DENSE.o
    assert getattr(DENSE, "o", 3) == 3
    assert pickle.loads(pickle.dumps(DENSE)).to_py() == DENSE.to_py()
    with pytest.raises(AttributeError, match=r"'from_polars'. Write xt.from_arrow\(table\)"):
        _ = xt.from_polars
    with pytest.raises(AttributeError, match=r"'extensor.struct' has no .* 'is_none'. Write xt."):
        _ = xt.struct.is_none


@pytest.mark.parametrize("name", INSTEAD)
def test_a_name_of_0_2_warns_and_does_what_it_did(name):
    message = rf"xt\.struct\.{name} goes away in 0\.4\. Write xt\.struct\."
    with pytest.warns(DeprecationWarning, match=message) as found:
        earlier = getattr(xt.struct, name)
    assert found[0].filename == __file__
    assert name not in dir(xt.struct)
    arguments = {"size": ("count",), "index": ("position",), "truncate": (5,)}[name]
    assert (
        earlier(DENSE, "list", *arguments).to_py()
        == eval(INSTEAD[name], {"xt": xt, "records": DENSE}).to_py()
    )


def test_the_page_on_stability_lists_the_deprecated_names(request):
    page = (request.config.rootpath / "docs/stability.md").read_text()
    rows = page.partition("| deprecated |")[2].partition("\n\n")[0].splitlines()[2:]
    assert {row.partition("xt.struct.")[2].partition("(")[0] for row in rows} == set(INSTEAD)


def test_a_negative_limit_of_truncate_is_still_an_error():
    with pytest.warns(DeprecationWarning, match="truncate goes away"):
        truncate = xt.struct.truncate
    with pytest.raises(StructureError, match="limit: expected 0 or more items, got -1"):
        truncate(DENSE, "list", -1)


FRAMES = {
    "dense": DENSE,
    "one record": DENSE[0],
    "ragged": RAGGED,
    "rank 2": xt.DenseStructuredTensor([1, 2], {"name": [[1, 2]]}),
    "empty": DENSE[:0],
    "empty and ragged": RAGGED[:0],
    "without fields": DENSE.with_only(),
    "value": xt.struct.constant_value([{"name": 1}]),
    "empty value": xt.struct.constant_value([{"name": 1}])[:0],
    "ragged value": xt.struct.constant_value([[{"name": 1}], []]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_data_frame_of_records_says_to_pandas(kind):
    records = FRAMES[kind]
    with pytest.raises(DTypeError, match="to_pandas"):
        pd.DataFrame(records)
    assert not hasattr(records, "__array__")  # Keras would convert what has it
    if records.rank:
        assert len(list(records)) == len(records)
        assert [record.to_py() for record in records] == records.to_py()


MASKED = xt.types.MaskedTensor(DENSE, [True, False])


@pytest.mark.parametrize("name", sorted(set(OF_RECORDS) - {"values", "to_numpy"}))
def test_masked_records_answer_the_same_names(name):
    for records in (MASKED, xt.types.MaskedTensor(RAGGED, [True, False])):
        with pytest.raises(MissingAttributeError) as raised:
            getattr(records, name)
        assert raised.value.name == name
        text = f"has no attribute {name!r}. With records = masked.values, without mask, write "
        assert str(raised.value) == f"'MaskedTensor' object {text}{OF_RECORDS[name]}"


def test_other_masked_values_have_no_such_names():
    for values in ([1, 2], xt.types.MaskedTensor(tf.ragged.constant([[1], [2]]))):
        with pytest.raises(AttributeError, match=r"'MaskedTensor' object has no attribute 'head'$"):
            _ = xt.types.MaskedTensor(values, [True, False]).head


def test_the_docs_list_every_name(request):
    page = (request.config.rootpath / "docs/cheat-sheet.md").read_text()
    start = page.index("| pandas, polars or Arrow |")
    lines = page[start:].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip().strip("`") for cell in line.split("|")[1:3]] for line in lines]
    assert {name: code for names, code in rows for name in names.split("`, `")} == OF_RECORDS


@pytest.mark.parametrize("records", [DENSE, RAGGED, DENSE[0], DENSE.with_only()])
def test_fields_are_a_mapping_in_order_that_cannot_be_changed(records):
    fields = records.fields
    assert list(fields) == list(fields.keys()) == list(records.field_names())
    for name, value in fields.items():
        assert value is records[name] or np.array_equal(repr(value), repr(records[name]))
    with pytest.raises(TypeError):
        fields["new"] = 1
