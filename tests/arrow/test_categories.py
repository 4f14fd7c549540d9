"""Dictionary arrays of strings are strings, wherever they come from."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt

WORDS = st.lists(st.text(max_size=6), max_size=40)
INDEX_TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()]


def encoded(words: list[str], index_type: pa.DataType, value_type: pa.DataType) -> pa.Array:
    dictionary = pa.dictionary(index_type, value_type)
    return pa.array(words, value_type).dictionary_encode().cast(dictionary)


def strings_of(array: pa.Array | pa.ChunkedArray) -> list[str]:
    tensor = xt.from_arrow(pa.table({"x": array}))["x"]
    return [word.decode() for word in tensor.numpy().tolist()]


@given(
    WORDS,
    st.sampled_from(INDEX_TYPES),
    st.sampled_from([pa.string(), pa.large_string()]),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_slices_of_any_index_type_are_their_words(words, index_type, value_type, start, length):
    array = encoded(words, index_type, value_type).slice(start, length)
    assert strings_of(array) == array.to_pylist()


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_chunks_with_dictionaries_of_their_own_are_their_words(chunks):
    array = pa.chunked_array([encoded(words, pa.int32(), pa.string()) for words in chunks])
    assert strings_of(array) == array.to_pylist()


def test_words_inside_lists_of_records_are_found():
    units = pa.array(["cup", "tsp", "cup"]).dictionary_encode()
    steps = pa.ListArray.from_arrays([0, 2, 3], pa.StructArray.from_arrays([units], ["unit"]))
    records = xt.from_arrow(pa.table({"steps": steps}))
    assert records["steps.unit"].to_list() == [[b"cup", b"tsp"], [b"cup"]]
    assert xt.spec_from_schema(pa.schema({"steps": steps.type})).is_compatible_with(records)


@pytest.mark.parametrize("indices", [[0, 2], [0, -1], [5, 0]])
def test_an_index_outside_the_dictionary_is_an_error(indices):
    array = pa.DictionaryArray.from_arrays(
        pa.array(indices, pa.int32()), pa.array(["a", "b"]), safe=False
    )
    with pytest.raises(ValueError, match="x: expected indices from 0 to 1") as error:
        xt.from_arrow(pa.table({"x": array}))
    assert isinstance(error.value, xt.ExtensorError)


def test_nulls_count_whether_an_index_or_a_word_is_null():
    null_index = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int32()), pa.array(["a"]))
    null_word = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["a", None]))
    for array in (null_index, null_word):
        with pytest.raises(
            ValueError,
            match="x: expected a column without nulls, got 1 null, the first in record 1",
        ):
            xt.from_arrow(pa.table({"x": array}))
    unused = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array(["a", None]))
    assert strings_of(unused) == ["a", "a"]


def test_strings_that_parquet_stores_as_dictionaries_are_read_from_several_files(tmp_path):
    few = pa.array(np.random.default_rng(0).choice(["cup", "tsp", "ounce"], 5000))
    many = pc.cast(pa.array(np.arange(5000) * 7919), pa.string())
    table = pa.table(
        {
            "few": few,
            "many": many,
            "lists": pa.ListArray.from_arrays(pa.array(range(5001), pa.int32()), few),
            "records": pa.StructArray.from_arrays([few, many], ["few", "many"]),
        }
    )
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        pq.write_table(table, path, row_group_size=1700)
    records = xt.read_parquet(paths)
    twice = pa.concat_tables([table, table])
    assert xt.to_arrow(records, schema=table.schema).equals(twice.combine_chunks().to_batches()[0])
    some = xt.read_parquet(paths[0], columns=["records.few", "few"])
    assert some["records.few"].numpy().tolist() == some["few"].numpy().tolist()


HOSTILE = """
import numpy as np, pyarrow as pa
import extensor as xt
from extensor.errors import StructureError

def dictionary(places, words):
    numbers = pa.Array.from_buffers(pa.int32(), len(places),
                                    [None, pa.py_buffer(np.array(places, np.int32))])
    return pa.DictionaryArray.from_arrays(numbers, words, safe=False)

def spoilt_words(with_null):
    # pyarrow makes no array of bad offsets, so it gets them later.
    offsets = np.zeros(4, np.int32)
    valid = pa.py_buffer(b"\\x03") if with_null else None
    words = pa.Array.from_buffers(pa.string(), 3,
                                  [valid, pa.py_buffer(offsets), pa.py_buffer(b"abcd")])
    array = dictionary([0, 1], words)
    offsets[:] = [0, 1 << 28, 4, 4]
    return array

view = np.array([20], np.int32).tobytes() + b"abcd" + np.array([0, 1 << 28], np.int32).tobytes()
views = pa.Array.from_buffers(pa.string_view(), 1,
                              [None, pa.py_buffer(view), pa.py_buffer(bytes(26))])
good = pa.array(["x", "y", "x"]).dictionary_encode()
for bad in (dictionary([0, 2], pa.array(["a", "b"])), dictionary([0, 1 << 20], pa.array(["a"])),
            dictionary([0, 5], pa.array(["a", None])), dictionary([0, -7], pa.array(["a", None])),
            spoilt_words(False), spoilt_words(True), dictionary([0, 0], views)):
    lists = [pa.ListArray.from_arrays([0, len(a)], pa.StructArray.from_arrays([a], ["y"]))
             for a in (bad, good)]
    columns = [bad, pa.StructArray.from_arrays([bad], ["y"]), lists[0],
               pa.FixedSizeListArray.from_arrays(bad, 2)]
    if bad.type == good.type:
        columns += map(pa.chunked_array, ([good, bad], [bad, good], lists))
    for column in columns:
        try:
            xt.from_arrow(pa.table({"x": column}))
        except StructureError as error:
            assert error.path in ("x", "x.y"), error
        else:
            raise AssertionError(column.type)
"""


def test_hostile_dictionaries_are_refused_before_arrow_reads_them(run_python):
    # In a process of their own, because what goes wrong there ends the process.
    run_python(HOSTILE)


def test_chunks_may_have_more_words_than_their_indices_can_count():
    words = [[f"{chunk} {i}" for i in range(100)] for chunk in range(3)]
    array = pa.chunked_array([encoded(w, pa.int8(), pa.string()) for w in words])
    assert strings_of(array) == array.to_pylist()


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint64()])
@pytest.mark.parametrize("word", ["short", "a word that is longer than those inside of a tensor"])
def test_many_elements_of_few_words_are_those_of_arrow(index, word):
    words = pa.array(["", "crème", word, "x" * 22]).slice(1)
    codes = pa.array([0, 2, None, 1, 2, 0] * 5, index)
    array = pa.DictionaryArray.from_arrays(codes, words).slice(1)
    records = xt.from_arrow(pa.table({"x": array}), nulls=xt.fill("none"))
    expected = array.cast(pa.string()).fill_null("none").to_pylist()
    assert [row["x"] for row in records.to_py()] == expected
