"""xt.data.parquet: streaming is slicing the whole table, pass after pass."""

import gc
import importlib
import json
import os
import textwrap
import time
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._data import stream
from tests.formats.test_parquet import folder
from tests.samples.tables import tables

# `xt.data.parquet` is the function; the module has the same name.
PLAN = importlib.import_module("extensor._data.plan")
READ = importlib.import_module("extensor._formats.parquet.read")


def reading_at_once(rows, nbytes=1 << 23):
    """Lets a dataset made meanwhile have parts of so many records, if a batch is no more."""
    return mock.patch.multiple(PLAN, PART_ROWS=rows, PART_BYTES=nbytes)


def numbered(count):
    """A table whose records all differ."""
    steps = [[{"minutes": i + j} for j in range(i % 3)] for i in range(count)]
    return pa.table(
        {
            "number": pa.array(range(count), pa.int64()),
            "title": pa.array([f"recipe {i}" for i in range(count)], pa.string()),
            "steps": pa.array(steps, pa.list_(pa.struct({"minutes": pa.int32()}))),
        }
    )


@pytest.fixture
def ten(tmp_path):
    """A file of ten records in row groups of three."""
    pq.write_table(numbered(10), tmp_path / "ten.parquet", row_group_size=3)
    return tmp_path / "ten.parquet"


def numbers(dataset):
    return [batch["number"].numpy().tolist() for batch in dataset]


BY_FOUR = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@given(
    st.integers(0, 40),
    st.integers(1, 12),
    st.integers(1, 50),
    st.lists(st.integers(0, 40), max_size=3),
    st.booleans(),
    st.integers(1, 50),
    st.integers(1, 500),
)
def test_batches_are_slices_of_the_whole_table(
    rows, group, batch_size, cuts, drop_remainder, most_rows, most_bytes
):
    table = numbered(rows)
    cuts = sorted(min(cut, rows) for cut in cuts)
    with folder() as name:
        paths = []
        for start, stop in zip([0, *cuts], [*cuts, rows], strict=True):
            paths.append(f"{name}/{len(paths)}.parquet")
            pq.write_table(table.slice(start, stop - start), paths[-1], row_group_size=group)
        with reading_at_once(most_rows, most_bytes):
            dataset = xt.data.parquet(paths, batch_size, drop_remainder=drop_remainder)
        batches = list(dataset)
    starts = range(0, rows - batch_size + 1 if drop_remainder else rows, batch_size)
    slices = [table.slice(i, batch_size).to_pylist() for i in starts]
    assert [batch.to_py() for batch in batches] == slices
    assert len(dataset) == int(dataset.cardinality()) == len(slices)
    assert all(
        dataset.element_spec.is_compatible_with(batch.__tf_type_spec__()) for batch in batches
    )


def test_strings_of_large_row_groups_are_read_as_dictionaries(tmp_path, monkeypatch):
    words = ["", "tea", "crème", None, "a word that is longer than those inside of a tensor"] * 50
    lists = [[{"unit": word, "tags": [word, "x"]}] * (i % 3) for i, word in enumerate(words)]
    inner = pa.struct([("unit", pa.string()), ("tags", pa.large_list(pa.large_string()))])
    columns = {
        "title": pa.array(words),
        "parts": pa.array(lists, pa.list_(inner)),
        "id": pa.array([f"number {i}" for i in range(250)]),  # distinct: stored plainly
    }
    table = pa.concat_tables([pa.table(columns), pa.table(columns).slice(1)])
    pq.write_table(table, tmp_path / "x", row_group_size=250)
    found, plain = [], READ.parquet_file
    monkeypatch.setattr(READ, "_LARGE", 0)
    monkeypatch.setattr(READ, "parquet_file", lambda *a: (found.append(a[-1]), plain(*a))[1])
    with reading_at_once(60):  # some have records of both row groups
        dataset = xt.data.parquet(tmp_path / "x", 20, nulls="mask")
    stored = ["title", "parts.list.element.unit", "parts.list.element.tags.list.element"]
    slices = [table.slice(i, 20).to_pylist() for i in range(0, len(table), 20)]
    assert [batch.to_py() for batch in dataset] == slices
    assert found == [stored, stored]
    with monkeypatch.context() as later:  # the footer is not asked again
        later.setattr(READ, "dictionary_columns", lambda *_: [])
        assert [batch.to_py() for batch in dataset] == slices
    assert found == [stored] * 4
    state = xt.data.state(dataset, 14)  # within the second row group
    rest = xt.data.parquet(tmp_path / "x", 20, nulls="mask", state=state)
    assert [batch.to_py() for batch in rest] == slices[14:]
    narrow = stream.feeds[dataset].plan.source.with_fields(["id", "parts.unit"]).encoded()
    pieces = pa.Table.from_batches(piece.cast(narrow.schema) for piece in narrow.read([0, 1], 60))
    rows = table.select(["id", "parts"]).to_pylist()
    for row in rows:
        row["parts"] = [{"unit": part["unit"]} for part in row["parts"]]
    assert pieces.to_pylist() == rows
    assert found[-2:] == [stored[1:2]] * 2


@given(tables(), st.sampled_from([tf.int32, tf.int64]), st.booleans())
def test_the_spec_follows_from_the_schema_alone(table, splits, drop_remainder):
    with folder() as name:
        pq.write_table(table.slice(0, 0), f"{name}/none.parquet")
        pq.write_table(table, f"{name}/some.parquet")
        empty, some = (
            xt.data.parquet(
                f"{name}/{n}.parquet", 2, None, None, drop_remainder, splits
            ).element_spec
            for n in ("none", "some")
        )
    assert empty == some
    assert some.shape == [2 if drop_remainder else None]
    assert some == xt.spec_from_schema(table.schema, 2 if drop_remainder else None, splits)


def test_two_passes_at_once_do_not_disturb_each_other(ten):
    dataset = xt.data.parquet(ten, 4)
    one, other = iter(dataset), iter(dataset)
    seen = [next(one), next(other), next(other), next(one), next(one), next(other)]
    assert numbers(seen) == [BY_FOUR[i] for i in (0, 0, 1, 1, 2, 2)]
    for done in (one, other):
        with pytest.raises(StopIteration):
            next(done)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(
    ("transformed", "expected"),
    [
        (lambda d: d.repeat(2), BY_FOUR * 2),
        (lambda d: d.take(1).concatenate(d), [BY_FOUR[0], *BY_FOUR]),
        (lambda d: d.skip(2), BY_FOUR[2:]),
        (lambda d: d.shard(2, 1), BY_FOUR[1:2]),
        (lambda d: d.prefetch(3), BY_FOUR),
        (lambda d: d.cache().repeat(2), BY_FOUR * 2),
        (lambda d: d.filter(lambda r: r["number"][0] > 3), BY_FOUR[1:]),
        (lambda d: d.unbatch().batch(5), [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
        (lambda d: tf.data.Dataset.zip(d, d.skip(1)).map(lambda a, b: b), BY_FOUR[1:]),
        (lambda d: tf.data.Dataset.range(2).flat_map(lambda _: d), BY_FOUR * 2),
        (lambda d: d.map(lambda r: r.with_only("number"), num_parallel_calls=2), BY_FOUR),
    ],
)
def test_it_is_a_dataset_like_any_other(ten, transformed, expected):
    dataset = transformed(xt.data.parquet(ten, 4))
    assert numbers(dataset) == expected
    assert numbers(dataset) == expected


def test_shuffling_loses_no_record(ten):
    dataset = xt.data.parquet(ten, 1).unbatch().shuffle(10, seed=3).batch(4)
    once, again = ([n for batch in numbers(dataset) for n in batch] for _ in range(2))
    assert sorted(once) == sorted(again) == list(range(10))
    assert once != again


def test_a_new_pass_after_one_that_was_given_up_begins_at_the_beginning(ten):
    dataset = xt.data.parquet(ten, 4)
    assert numbers(dataset.take(2)) == BY_FOUR[:2]
    assert numbers(dataset) == BY_FOUR


def test_a_pass_may_run_inside_a_function(ten):
    @tf.function
    def total(dataset):
        result = tf.constant(0, tf.int64)
        for batch in dataset:
            result += tf.reduce_sum(batch["number"])
        return result

    assert int(total(xt.data.parquet(ten, 4))) == 45


def given_up(dataset):
    for _ in range(3):
        next(iter(dataset))


def broken(dataset):
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(dataset.map(lambda r: tf.strings.to_number(r["title"])))


@pytest.mark.whole("many cases")
@pytest.mark.usefixtures("frozen_objects")
@pytest.mark.parametrize(
    "use", [list, given_up, broken, lambda d: list(d.take(1)), lambda d: list(d.repeat(3))]
)
def test_no_file_stays_open_after_its_pass(ten, use):
    gc.collect()
    # Of other tests, whose errors or models keep them.
    others, passes = set(stream._streams), set(stream._passes)
    dataset = xt.data.parquet(ten, 1)
    assert len(set(stream._streams) - others) == 1
    use(dataset)
    gc.collect()
    until = time.monotonic() + 10
    while (set(stream._passes) - passes or open_files(ten)) and time.monotonic() < until:
        time.sleep(0.01)  # prefetching threads take a moment to end
    assert not set(stream._passes) - passes
    assert not open_files(ten)
    del dataset
    gc.collect()
    assert not set(stream._streams) - others


def open_files(path):
    """The descriptors of this process that point to a file; none where Linux does not tell."""
    folder = "/proc/self/fd"
    fds = os.listdir(folder) if os.path.isdir(folder) else []
    links = [f"{folder}/{fd}" for fd in fds]
    return [link for link in links if os.path.lexists(link) and os.readlink(link) == str(path)]


def test_a_file_is_open_during_a_pass(ten):
    with reading_at_once(1):
        iterator = iter(xt.data.parquet(ten, 1))
        next(iterator)
    assert stream._passes
    assert not os.path.isdir("/proc/self/fd") or open_files(ten)


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize(
    "passes",
    [
        "dataset",
        "dataset.prefetch(100)",
        "tf.data.Dataset.range(8).interleave(lambda _: dataset, 8, num_parallel_calls=8)",
    ],
)
def test_python_ends_in_the_middle_of_a_pass(tmp_path, run_python, passes):
    # A second part is being read while Python ends.
    pq.write_table(numbered(100_000), tmp_path / "many.parquet")
    run_python(
        f"""
import tensorflow as tf
import extensor as xt

dataset = xt.data.parquet({str(tmp_path / "many.parquet")!r}, 10)
iterator = iter({passes})
print(next(iterator)["number"].shape)
"""
    )


@pytest.mark.whole("traces many functions")
@pytest.mark.usefixtures("frozen_objects")
def test_a_dataset_may_be_made_inside_a_function(ten):
    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for batch in xt.data.parquet(ten, 4):
            result += tf.reduce_sum(batch["number"])
        return result

    assert int(total()) == 45
    gc.collect()
    assert int(total()) == 45


@pytest.mark.whole("reads many files")
@pytest.mark.usefixtures("frozen_objects")
def test_an_iterator_keeps_what_it_reads_from(ten):
    iterator = iter(xt.data.parquet(ten, 4).map(lambda r: r["number"]))
    gc.collect()
    assert [n.numpy().tolist() for n in iterator] == BY_FOUR


@pytest.mark.whole("traces many functions")
@pytest.mark.usefixtures("frozen_objects")
def test_a_function_keeps_what_it_reads_from(ten):
    def traced(dataset):
        @tf.function
        def total():
            return dataset.reduce(tf.constant(0, tf.int64), lambda n, x: n + tf.reduce_sum(x))

        return total.get_concrete_function()

    gc.collect()
    others = set(stream._streams)
    total = traced(xt.data.parquet(ten, 4).map(lambda r: r["number"]))
    gc.collect()
    assert len(set(stream._streams) - others) == 1
    assert int(total()) == 45
    del total
    gc.collect()
    assert not set(stream._streams) - others


@pytest.mark.parametrize("name", ["batch_size", "epochs"])
def test_numbers_that_do_not_fit_tensorflow_are_an_error(ten, name):
    with pytest.raises(errors.StructureError, match=rf"{name}: .*below 2\*\*31, got"):
        xt.data.parquet(ten, **{"batch_size": 4, name: 2**70})


def test_columns_that_are_not_asked_for_are_not_read(ten):
    table = numbered(10).append_column("nothing", pa.nulls(10, pa.timestamp("ms")))
    pq.write_table(table, ten)
    dataset = xt.data.parquet(ten, 4, columns=["steps.minutes", "number"])
    assert dataset.element_spec.field_names() == ("steps", "number")
    assert numbers(dataset) == BY_FOUR
    with pytest.raises(errors.NullError, match="nothing: expected a column without nulls"):
        list(xt.data.parquet(ten, 4))


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, None, "4"])
def test_a_batch_has_a_positive_number_of_records(ten, batch_size):
    with pytest.raises(errors.StructureError) as raised:
        xt.data.parquet(ten, batch_size)
    assert isinstance(raised.value, ValueError)
    assert "batch_size" in raised.value.path
    assert raised.value.expected == "an integer of 1 or more"
    assert raised.value.received == repr(batch_size)
    assert "number of records" in raised.value.fix


def test_numpy_may_have_counted_the_batch_size(ten):
    assert numbers(xt.data.parquet(ten, np.int64(4))) == BY_FOUR


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"paths": "nowhere.parquet"}, errors.MissingFileError),
        ({"paths": []}, errors.StructureError),
        ({"columns": ["titel"]}, errors.FieldError),
        ({"columns": "title"}, errors.DTypeError),
        ({"row_splits_dtype": tf.float32}, errors.DTypeError),
    ],
)
def test_bad_arguments_are_errors_before_the_first_batch(ten, change, error):
    with pytest.raises(error):
        xt.data.parquet(**{"paths": ten, "batch_size": 4, **change})


@pytest.mark.parametrize("most_rows", [1, 1 << 14])
def test_a_null_is_an_error_during_iteration_with_its_path_and_record(ten, most_rows):
    rows = numbered(10).to_pylist()
    rows[7]["steps"][0]["minutes"] = None
    pq.write_table(pa.Table.from_pylist(rows, numbered(10).schema), ten)
    seen = []
    with reading_at_once(most_rows):
        batches = iter(xt.data.parquet(ten, 4))
        with pytest.raises(
            errors.NullError,
            match=r"^steps\[\*\]\.minutes: expected a column without nulls, got 1 null, "
            r"the first in record 3 of the batch that begins with record 4 "
            rf"\({ten}, row group 0, record 7\)\. Choose for each field what becomes "
            r'(?:.|\n)*nulls={"steps.minutes": "mask"}$',
        ):
            seen.extend(batch["number"].numpy().tolist() for batch in batches)
    assert seen == BY_FOUR[:1]
    assert numbers(xt.data.parquet(ten, 4).take(1)) == BY_FOUR[:1]


@pytest.mark.parametrize(
    ("later", "error"),
    [
        (numbered(9), errors.FormatError),
        (numbered(11), errors.FormatError),
        (numbered(10).select(["number"]), errors.FormatError),
        (None, errors.MissingFileError),
    ],
)
def test_a_file_that_changed_since_is_an_error_and_no_shorter_pass(ten, later, error):
    dataset = xt.data.parquet(ten, 4)
    if later is None:
        ten.unlink()
    else:
        pq.write_table(later, ten)
    with pytest.raises(error, match=rf"^{ten}: expected"):
        list(dataset)


MEMORY = textwrap.dedent(
    """
    import json, re
    import extensor as xt

    dataset = xt.data.parquet({path!r}, 1024)
    bytes_seen = 0
    for batch in dataset:
        bytes_seen += batch["x"].numpy().nbytes
    # Not getrusage: a process inherits that peak from the one that started it.
    with open("/proc/self/status") as status:
        peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) * 1024
    print(json.dumps([peak, bytes_seen]))
    """
)


def peak_of(run_python, paths, seen):
    """The peak of memory of a process that streams files, in which there are so many bytes of x."""
    if not os.path.exists("/proc/self/status"):
        pytest.skip("Linux tells the peak of a process's memory in /proc/self/status")
    code = MEMORY.format(path=[str(path) for path in paths])
    used, found = json.loads(run_python(code, timeout=600).stdout.splitlines()[-1])
    assert found == seen
    return used


COUNT = 16 * 1024


@pytest.fixture(scope="module")
def slice_of_16_mb():
    """Half of it numbers, half of it text, which no encoding makes smaller."""
    random = np.random.default_rng(0)
    return pa.table(
        {
            "x": pa.FixedSizeListArray.from_arrays(random.random(COUNT * 64), 64),
            "s": pa.array([random.bytes(512) for _ in range(COUNT)], pa.binary()),
        }
    )


def written(path, table, times, row_group_size):
    """A file of a table, many times over, in row groups of so many records."""
    repeated = pa.concat_tables([table] * times)
    pq.write_table(
        repeated, path, row_group_size=row_group_size, compression="none", use_dictionary=False
    )
    return path


@pytest.mark.whole("starts a process")
def test_memory_does_not_grow_with_the_number_of_files(tmp_path, run_python, slice_of_16_mb):
    path = written(tmp_path / "16 MB.parquet", slice_of_16_mb, 1, 4096)
    few, many = (peak_of(run_python, [path] * n, n * COUNT * 64 * 8) for n in (2, 20))
    # How many parts are in memory at once depends on the threads; 18 files more have 288 MB.
    assert many - few < 4 * 16e6


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize(
    ("times", "row_group_size"),
    [
        (10, 1024),
        pytest.param(10, 10 * COUNT, id="one row group"),
        pytest.param(64, 4096, id="1 GB", marks=pytest.mark.slow),
        pytest.param(64, 64 * COUNT, id="1 GB in one row group", marks=pytest.mark.slow),
    ],
)
def test_memory_does_not_grow_with_the_size_of_a_file(
    tmp_path, run_python, slice_of_16_mb, times, row_group_size
):
    # 32 MB are four parts: one that is read, one that is ahead, and one that is iterated.
    small = written(tmp_path / "small.parquet", slice_of_16_mb, 2, row_group_size)
    large = written(tmp_path / "large.parquet", slice_of_16_mb, times, row_group_size)
    few = peak_of(run_python, [small], 2 * COUNT * 64 * 8)
    # Twice: a busy machine frees the last batches late.
    peaks = (peak_of(run_python, [large], times * COUNT * 64 * 8) for _ in range(2))
    assert any(peak < 1.1 * few for peak in peaks)
