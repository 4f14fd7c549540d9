"""Passes of a dataset that Python feeds: what they leave in memory, and how a process ends."""

import ctypes
import gc
import itertools
import json
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt

pytestmark = pytest.mark.whole("ends processes while they read")

# mallinfo2 counts what C and C++ have allocated, and no memory that they keep to use it again.
LEFT = """
import ctypes, gc, json
import pyarrow as pa, pyarrow.parquet as pq, tensorflow as tf
import extensor as xt

class Allocated(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Allocated

def left(one_pass, times):
    def allocated():
        gc.collect()
        info = mallinfo2()
        return info.uordblks + info.hblkhd

    for _ in range(times // 3):
        one_pass()
    # What is kept of each pass is kept in every part. A new thread or cache is in one part only.
    parts, marks = 5, [allocated()]
    for _ in range(parts):
        for _ in range(times // parts):
            one_pass()
        marks.append(allocated())
    growth = [after - before for before, after in zip(marks, marks[1:])]
    return min(growth) / (times // parts)

def whole(dataset):
    # `for` ends by an error of TensorFlow's, which leaves some 600 bytes whatever the dataset is.
    def one_pass():
        iterator = iter(dataset)
        while iterator.get_next_as_optional().has_value():
            pass
    return one_pass
"""


@pytest.fixture(scope="module")
def left(run_python):
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("this C library does not tell what is allocated (glibc 2.33 does)")

    def left(code):
        return json.loads(run_python(LEFT + code, timeout=600).stdout.splitlines()[-1])

    return left


@pytest.mark.parametrize("times", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_pass_leaves_no_more_than_a_dataset_with_functions_does(tmp_path, left, times):
    # 10 records; 1,000 records in 500 batches, cut by row splits of that number.
    lists = [[1, 2]] * 1000
    pq.write_table(pa.table({"x": lists[:10]}), tmp_path / "few.parquet")
    pq.write_table(pa.table({"x": lists}), tmp_path / "many.parquet")
    few, many, given_up = left(
        f"""
few, many = (xt.data.parquet(f"{tmp_path}/{{name}}.parquet", 2) for name in ("few", "many"))
passes = [whole(few), whole(many.skip(490)), lambda: next(iter(few))]
print(json.dumps([left(one_pass, {times}) for one_pass in passes]))
"""
    )
    # Functions alone leave some 300 bytes: TensorFlow makes them anew for each iterator.
    assert max(few, many, given_up) < 900


ENDING = """
import atexit
import tensorflow as tf

numbers = tf.data.Dataset.range(10)
theirs = {theirs}
print(int(next(theirs)))
# Handlers run in the opposite order: this one runs after those of extensor.
atexit.register(lambda: print(int(next(theirs))))

import extensor as xt

dataset = xt.data.parquet({path!r}, 10)
ours = iter({ours})
print(next(ours).shape)
"""


@pytest.fixture
def many(tmp_path):
    """A file of so many records that a second part is being read while Python ends."""
    pq.write_table(pa.table({"x": range(100_000)}), tmp_path / "many.parquet")
    return str(tmp_path / "many.parquet")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("iter(numbers)", "dataset"),
        ("iter(numbers.prefetch(2))", "tf.data.Dataset.range(9).flat_map(lambda _: dataset)"),
    ],
)
def test_the_end_of_python_ends_no_iterator_of_others(many, run_python, theirs, ours):
    done = run_python(ENDING.format(path=many, theirs=theirs, ours=ours))
    assert done.stdout.splitlines() == ["0", "(10,)", "1"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "ours",
    [
        # Nobody asks for the elements that are read ahead here, and there is no end of them.
        "tf.data.Dataset.range(10**9).flat_map(lambda _: dataset).prefetch(10**6)",
        # Functions of the user's own, which call Python too.
        "dataset.map(lambda r: tf.py_function(lambda x: x, [r['x']], tf.int64)).prefetch(10**6)",
        "tf.data.Dataset.zip((numbers, {'a': dataset})).map(lambda n, r: r['a']).prefetch(2)",
    ],
)
def test_python_ends_while_passes_are_read_ahead(many, run_python, ours):
    done = run_python(ENDING.format(path=many, theirs="iter(numbers)", ours=ours))
    assert done.stdout.splitlines() == ["0", "(10,)", "1"]


def test_a_stream_is_iterated_untuned_and_what_is_made_of_it_is_tuned(tmp_path):
    pq.write_table(pa.table({"x": [1, 2, 3, 4, 5]}), tmp_path / "few.parquet")
    dataset = xt.data.parquet(tmp_path / "few.parquet", 2)
    assert iter(dataset)._dataset.options().autotune.enabled is False
    assert dataset.options().autotune.enabled is None
    mapped = dataset.map(lambda records: records["x"])
    assert mapped.options().autotune.enabled is None
    assert [x.numpy().tolist() for x in mapped] == [[1, 2], [3, 4], [5]]
    assert [records["x"].numpy().tolist() for records in dataset] == [[1, 2], [3, 4], [5]]


def test_threads_that_share_an_iterator_get_each_batch_once(tmp_path):
    pq.write_table(pa.table({"n": range(60)}), tmp_path / "it.parquet")
    dataset = xt.data.parquet(tmp_path / "it.parquet", 1)

    def read(iterator):
        return [int(batch["n"][0]) for batch in iterator]

    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            seen = pool.map(read, [iter(dataset)] * 4)
            assert sorted(itertools.chain(*seen)) == list(range(60))


def test_reduce_gives_all_batches_eagerly_and_in_a_function(tmp_path):
    pq.write_table(pa.table({"x": [1, 2, 3, 4, 5]}), tmp_path / "few.parquet")
    dataset = xt.data.parquet(tmp_path / "few.parquet", 2)

    def total():
        return dataset.reduce(np.int64(0), lambda sum, records: sum + tf.reduce_sum(records["x"]))

    assert int(total()) == int(tf.function(total)()) == 15


def test_options_of_the_user_hold(tmp_path):
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "few.parquet")
    options = tf.data.Options()
    options.autotune.enabled = True
    dataset = xt.data.parquet(tmp_path / "few.parquet", 2).with_options(options)
    assert iter(dataset)._dataset.options().autotune.enabled is True


def test_a_stream_is_freed_without_garbage_collection(tmp_path):
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "few.parquet")
    gc.disable()
    try:
        dataset = xt.data.parquet(tmp_path / "few.parquet", 2)
        freed = weakref.ref(dataset)
        del dataset
        assert freed() is None
    finally:
        gc.enable()
