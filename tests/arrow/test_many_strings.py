"""Columns of many strings: written by several threads, and checked to be text as a whole."""

import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor._arrow import buffers
from extensor.errors import FormatError

COUNT = 60_000


@pytest.fixture
def nested():
    words = pa.array([f"wörd {i}" for i in range(COUNT)])
    offsets = pa.array(np.arange(0, COUNT + 1, 2), pa.int32())
    rows = [
        pa.StructArray.from_arrays([words, words], ["a", "b"]),
        pa.StructArray.from_arrays([words], ["c"]),
    ]
    lists = [pa.ListArray.from_arrays(offsets, row) for row in rows]
    return pa.table({"x": lists[0], "y": lists[1], "z": words[: COUNT // 2]})


@pytest.mark.whole("makes very large values")
@pytest.mark.parametrize("with_schema", [False, True])
def test_large_columns_are_written_by_several_threads(nested, with_schema, monkeypatch):
    threads, write = {}, buffers.strings_out
    begun = {is_ours: threading.Event() for is_ours in (True, False)}

    def observed(strings, arrow, path):
        threads[str(path)] = name = threading.current_thread().name
        is_ours = name.startswith("extensor-arrow")
        begun[is_ours].set()
        # One thread would do all of it where the machine starts, or continues, the other one late.
        begun[not is_ours].wait(60)
        return write(strings, arrow, path)

    monkeypatch.setattr(buffers, "strings_out", observed)
    monkeypatch.setattr("extensor._arrow.struct_type.LARGE", 1 << 16)
    # Of a table that lives, which the thread has for a moment after it ends, none would be written.
    monkeypatch.setattr("extensor._arrow.kept_strings._FEW", COUNT)
    records = xt.from_arrow(nested)
    with ThreadPoolExecutor(1, "extensor-arrow") as pool:  # leaves this one work
        monkeypatch.setattr("extensor._arrow.parallel_columns._pool", lambda: pool)
        written = xt.to_arrow(records, nested.schema if with_schema else None)
    assert written.to_pylist() == nested.to_pylist()
    assert sorted(threads) == ["x.a", "x.b", "y.c", "z"]
    assert all(each.is_set() for each in begun.values())


def test_few_strings_of_a_large_table_are_read_by_one_thread(nested, monkeypatch):
    threads, read = set(), buffers.strings_in

    def observed(array, path):
        threads.add(threading.current_thread().name)
        time.sleep(0.02)  # the other one begins meanwhile, if there is work for it
        return read(array, path)

    monkeypatch.setattr(buffers, "strings_in", observed)
    monkeypatch.setattr("extensor._arrow.struct_type.LARGE", 1 << 16)
    few = nested.slice(5, 10)
    assert xt.from_arrow(few).to_py() == few.to_pylist()
    assert threads == {threading.current_thread().name}


def test_an_error_of_a_thread_names_the_field(nested):
    records = xt.from_arrow(nested)
    bad = records.with_updates({"x.a": records["y.c"] + b"\xff"})
    with pytest.raises(FormatError, match=r"^x\.a: expected text in UTF-8"):
        xt.to_arrow(bad)


CUT = {
    "in a character": [b"\xe2\x98", b"\x83"],
    "before the end": ["☃".encode(), b"\xe2\x98", b"\x83", b"", b""],
    "at the end": [b"\xe2\x98"],
    "in front": [b"\x83"],
    "over an empty one": [b"\xf0\x9f", b"", b"\x98\x80"],
}


@pytest.mark.parametrize("arrow", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("case", CUT)
@pytest.mark.parametrize("last", [False, True])
def test_strings_that_are_text_only_together_are_refused(arrow, case, last):
    many = [b"fine"] * 600
    values = [*many, *CUT[case]] if last else [*CUT[case], *many]
    records = xt.DenseStructuredTensor([len(values)], {"x": values})
    with pytest.raises(FormatError, match=r"^x: expected text in UTF-8"):
        xt.to_arrow(records, pa.schema({"x": arrow}))


@pytest.mark.parametrize("seed", range(20))
def test_many_strings_are_refused_exactly_if_one_is_no_text(seed):
    dice = random.Random(seed)
    text = "".join(dice.choices("aé☃😀 ", k=2_000)).encode()
    places = dice.sample(range(len(text)), 700)
    if dice.random() < 0.5:  # none inside a character
        places = [i for i in places if text[i] & 0xC0 != 0x80] * 4
    places = [0, *sorted(places), len(text)]
    values = [text[i:j] for i, j in itertools.pairwise(places)]
    records = xt.DenseStructuredTensor([len(values)], {"x": tf.constant(values)})
    try:
        expected = [value.decode() for value in values]
    except UnicodeDecodeError:
        with pytest.raises(FormatError, match="expected text in UTF-8"):
            xt.to_arrow(records)
    else:
        assert len(expected) > 512
        assert xt.to_arrow(records)["x"].to_pylist() == expected


@pytest.mark.whole("starts a process")
def test_large_columns_are_converted_while_python_exits(run_python):
    found = run_python(
        """
        import atexit
        import pyarrow as pa
        import extensor as xt

        words = pa.array([f"a long string, number {i}" for i in range(60_000)])
        table = pa.table({"a": words, "b": words})
        expected = table.to_batches()[0]
        atexit.register(lambda: print(xt.to_arrow(xt.from_arrow(table)).equals(expected)))
        """
    )
    assert found.stdout.split() == ["True"]
