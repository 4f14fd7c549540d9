"""Columns of strings that are kept beside their tensors while their table lives."""

import copy
import gc
import pickle

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor._arrow import kept_strings

COUNT = 600  # a column of few strings is not kept


def table_of(words, arrow=None):
    items = pa.array([words[i : i + 2] for i in range(0, len(words), 2)] * 2, pa.list_(pa.string()))
    records = pa.StructArray.from_arrays([items], ["words"])
    return pa.table({"x": pa.array(words, arrow or pa.string()), "list": items, "inner": records})


def address(array):
    return array.buffers()[2].address


def is_kept(tensor):
    return kept_strings.is_kept(tensor)


WORDS = [f"é{i}" for i in range(COUNT)]


def test_strings_of_a_table_that_lives_are_written_without_a_copy():
    table = table_of(WORDS)
    records = xt.from_arrow(table)
    batch = xt.to_arrow(records)
    assert batch.equals(table.to_batches()[0])
    batch.validate(full=True)
    assert address(batch["x"]) == address(table["x"].chunk(0))
    inner, own = batch["inner"].field(0).values, table["inner"].chunk(0).field(0).values
    assert address(inner) == address(own)


def test_lists_of_a_table_that_lives_are_written_with_its_offsets():
    pairs = pa.array([[("a", i)] * (i % 3) for i in range(COUNT)], pa.map_(pa.string(), pa.int64()))
    table = table_of(WORDS).append_column("map", pairs)
    records = xt.from_arrow(table)
    batch = xt.to_arrow(records)
    assert batch.equals(table.to_batches()[0])
    batch.validate(full=True)
    for name in ("list", "map"):
        assert batch[name].buffers()[1].address == table[name].chunk(0).buffers()[1].address
    lengths = tf.strings.length(records["list"].values)
    others = records.with_updates(list=records["list"].with_values(lengths)).with_only("list")
    numbers = pa.schema([pa.field("list", pa.list_(pa.int32()))])
    expected = [{"list": [len(w.encode()) for w in row]} for row in table["list"].to_pylist()]
    assert xt.to_arrow(others, numbers).to_pylist() == expected
    wide = pa.schema([pa.field("list", pa.large_list(pa.string()))])
    assert xt.to_arrow(records.with_only("list"), wide)["list"].equals(
        table["list"].chunk(0).cast(wide.field(0).type)
    )
    splits = records["list"].row_splits
    fewer = tf.RaggedTensor.from_row_splits(lengths[1:], splits, validate=False)
    with pytest.raises(xt.errors.StructureError, match=r"x: expected splits that end with"):
        xt.to_arrow(xt.DenseStructuredTensor([len(table)], {"x": fewer}, validate=False))
    del table, pairs, batch
    gc.collect()
    assert kept_strings.kept_lists(splits, pa.list_(pa.string())) is None
    assert xt.to_arrow(others, numbers).to_pylist() == expected


def test_nothing_is_kept_when_the_table_is_deleted():
    table = table_of(WORDS)
    records = xt.from_arrow(table)
    gc.collect()  # of other tests
    before = pa.total_allocated_bytes()
    assert is_kept(records["x"])
    del table
    gc.collect()
    assert not is_kept(records["x"])
    assert pa.total_allocated_bytes() < before
    assert xt.to_arrow(records)["x"].to_pylist() == WORDS


def test_a_table_that_is_read_again_and_again_keeps_the_columns_of_tensors_that_live():
    table = table_of(WORDS)
    for _ in range(5):
        records = xt.from_arrow(table)
    gc.collect()
    assert is_kept(records["x"])
    assert len(kept_strings._owned[id(table)].kept) == 5  # three of strings, two of row splits


@given(st.integers(0, COUNT), st.integers(0, COUNT))
def test_slices_of_tables_and_of_records_are_written_as_they_are(start, stop):
    table = table_of(WORDS).slice(0, COUNT // 2)
    part = table.slice(start % 40)
    records = xt.from_arrow(part)
    assert xt.to_arrow(records).to_pylist() == part.to_pylist()
    assert xt.to_arrow(records[start:stop]).to_pylist() == part.to_pylist()[start:stop]


def test_strings_that_were_changed_are_written_as_they_are_now():
    table = table_of(WORDS)
    records = xt.from_arrow(table)
    joined = records.with_updates(x=records["x"] + "!")
    assert xt.to_arrow(joined)["x"].to_pylist() == [f"{word}!" for word in WORDS]
    assert xt.to_arrow(tf.gather(records, [2, 1]))["x"].to_pylist() == [WORDS[2], WORDS[1]]


@pytest.mark.parametrize("arrow", [pa.large_string(), pa.binary(), pa.string_view()], ids=str)
def test_another_type_is_written_as_it_is_asked_for(arrow):
    table = table_of(WORDS)
    records = xt.from_arrow(table)
    schema = table.schema.set(0, pa.field("x", arrow))
    written = xt.to_arrow(records, schema)["x"]
    assert written.type == arrow
    assert written.equals(pa.array(WORDS, pa.string()).cast(arrow))


@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string(), pa.binary()], ids=str)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=5))
def test_to_py_gives_the_same_while_the_table_lives_and_after(arrow, few):
    words = [*few, *few, *WORDS]
    table = table_of(words, arrow)
    records = xt.from_arrow(table)
    expected = table.to_pylist()
    as_text = [{**row, "x": word} for row, word in zip(expected, words, strict=True)]
    texts = None if arrow == pa.binary() else words
    assert kept_strings.kept_texts(records["x"]) == texts
    assert records.to_py() == expected
    assert records.to_py(text=True) == as_text
    del table
    assert kept_strings.kept_texts(records["x"]) is None
    assert records.to_py() == expected
    assert records.to_py(text=True) == as_text


def test_to_py_of_kept_text_that_is_not_utf8_names_the_record():
    wrong = [*[b"tea"] * COUNT, b"\xff"]
    table = pa.table({"x": pa.array(wrong, pa.binary()).view(pa.string())})
    records = xt.from_arrow(table)
    assert is_kept(records["x"])
    with pytest.raises(xt.errors.FormatError, match=f"x, record {COUNT}: expected text in UTF-8"):
        records.to_py()
    assert records.to_py(text=False) == [{"x": word} for word in wrong]


def test_text_that_is_not_utf8_is_an_error_also_where_it_is_kept():
    wrong = pa.array([b"\xff"] * COUNT, pa.binary()).view(pa.string())
    table = pa.table({"x": wrong})
    records = xt.from_arrow(table)
    with pytest.raises(xt.errors.FormatError, match="x: expected text in UTF-8"):
        xt.to_arrow(records)


def test_nulls_and_columns_that_are_converted_are_not_kept():
    words = pa.array([None, *WORDS])
    table = pa.table(
        {"x": words, "codes": words.dictionary_encode(), "views": words.cast("string_view")}
    )
    records = xt.from_arrow(table, nulls={"*": xt.fill("none")})
    assert not any(is_kept(records[name]) for name in ("x", "codes", "views"))
    assert xt.to_arrow(records)["x"].to_pylist() == ["none", *WORDS]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda tensor: pickle.loads(pickle.dumps(tensor))]
)
def test_a_copy_of_the_tensor_is_written_as_it_is(copied):
    table = table_of(WORDS)
    records = xt.from_arrow(table)
    again = records.with_updates(x=copied(records["x"]))
    assert xt.to_arrow(again).equals(table.to_batches()[0])


def test_the_parts_of_a_stream_are_not_kept(tmp_path):
    xt.write_parquet(xt.from_arrow(table_of(WORDS)), tmp_path / "x.parquet")
    (records,) = xt.data.parquet(tmp_path / "x.parquet", 1000)
    assert not is_kept(records["x"])


def test_chunks_that_were_joined_are_not_kept():
    table = pa.concat_tables([table_of(WORDS)] * 2)
    records = xt.from_arrow(table)
    assert not is_kept(records["x"])
    assert xt.to_arrow(records).to_pylist() == table.to_pylist()


def test_threads_keep_the_columns_of_one_table():
    words = np.array([f"word {i % 100} of a long column" for i in range(60_000)])
    table = pa.table({name: words for name in "abcd"})  # converted in parallel
    records = xt.from_arrow(table)
    assert all(is_kept(records[name]) for name in "abcd")
    assert xt.to_arrow(records).equals(table.to_batches()[0])
