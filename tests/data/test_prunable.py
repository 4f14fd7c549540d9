"""Datasets of Parquet files read fewer fields, and their elements stay the same."""

from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._data.prunable import is_prunable, prune
from extensor._pruning.consumption import VALUE
from tests.formats.test_parquet import folder
from tests.pruning.programs import EXPRESSIONS, table, value


class Reads:
    """Counts the columns, and their bytes in the file, that are read."""

    def __init__(self):
        self.columns = set()
        self.nbytes = 0

    def __enter__(self):
        plain = pq.ParquetFile.iter_batches

        def counted(file, *args, columns=None, **kwargs):
            group = file.metadata.row_group(0)
            chunks = [group.column(i) for i in range(group.num_columns)]
            for chunk in chunks:
                if columns is None or chunk.path_in_schema in columns:
                    self.columns.add(chunk.path_in_schema.replace(".list.element", ""))
                    self.nbytes += chunk.total_compressed_size
            return plain(file, *args, columns=columns, **kwargs)

        self._patch = mock.patch.object(pq.ParquetFile, "iter_batches", counted)
        self._patch.__enter__()
        return self

    def __exit__(self, *error):
        self._patch.__exit__(*error)


@pytest.fixture
def path(tmp_path):
    pq.write_table(table(0, 40), tmp_path / "records.parquet")
    return tmp_path / "records.parquet"


def all_used(spec):
    return dict.fromkeys(range(len(tf.nest.flatten(spec, expand_composites=True))), VALUE)


def in_arrays(element):
    return [tensor.numpy().tolist() for tensor in tf.nest.flatten(element, expand_composites=True)]


@pytest.mark.whole("draws many values")
@given(st.lists(EXPRESSIONS, min_size=1, max_size=3), st.sampled_from(["map", "filter", "twice"]))
def test_elements_are_the_same(expressions, shape):
    def results(records):
        return tuple(value(one, records) for one in expressions)

    def chained(dataset):
        if shape == "map":
            return dataset.map(results)
        if shape == "filter":
            kept = dataset.filter(lambda records: tf.reduce_sum(records["b"]) > 0.0)
            return kept.map(results).prefetch(1)
        pairs = dataset.map(lambda records: (records, records["inner", "d"])).shuffle(4, seed=3)
        return pairs.map(lambda records, d: (d, *results(records))).take(2)

    with folder() as name:
        pq.write_table(table(1, 11), f"{name}/records.parquet")
        whole = chained(xt.data.parquet(f"{name}/records.parquet", 3, columns=None))
        dataset = chained(xt.data.parquet(f"{name}/records.parquet", 3))
        found = prune(dataset, all_used)
        assert found is not None
        assert found.dataset.element_spec == whole.element_spec
        assert list(map(in_arrays, found.dataset)) == list(map(in_arrays, whole))


STEPS = {
    "map": lambda ds: ds.map(lambda r: r["a"]),
    "map twice": lambda ds: ds.map(lambda r: (r, r["c"])).map(lambda r, c: r["a"]),
    "a function of another": lambda ds: ds.map(lambda r: r["a"]).batch(2),
    "rows alone": lambda ds: ds.map(lambda r: (r["a"], tf.shape(r["title"])[0])),
    "filter": lambda ds: ds.filter(lambda r: tf.reduce_sum(r["a"]) > -1e9).map(lambda r: r["a"]),
    "methods": lambda ds: (
        ds.shuffle(3).repeat(2).skip(1).take(5).shard(2, 0).cache().map(lambda r: r["a"])
    ),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("name", STEPS)
def test_fields_that_no_step_uses_are_not_read(path, name):
    found = prune(STEPS[name](xt.data.parquet(path, 8)), all_used)
    with Reads() as reads:
        for _ in found.dataset:
            pass
    assert reads.columns == {"a"}


def test_side_effects_are_kept(path):
    seen = []

    def function(records):
        tf.py_function(lambda title: seen.append(title.shape[0]), [records["title"]], [])
        return records["a"]

    found = prune(xt.data.parquet(path, 20).map(function), all_used)
    with Reads() as reads:
        for _ in found.dataset:
            pass
    assert reads.columns == {"a", "title"}
    assert seen == [20, 20]


UNPRUNED = {
    "all fields are used": lambda ds: ds.map(lambda r: r),
    "a file has the elements": lambda ds: ds.cache("elements"),
    "another method": lambda ds: ds.ignore_errors(),
}


@pytest.mark.parametrize("name", UNPRUNED)
def test_what_cannot_be_pruned_stays(path, name):
    dataset = UNPRUNED[name](xt.data.parquet(path, 8))
    assert not is_prunable(dataset) or prune(dataset, all_used) is None


def test_columns_none_or_given_reads_what_it_says(path):
    assert not is_prunable(xt.data.parquet(path, 8, columns=None))
    assert not is_prunable(xt.data.parquet(path, 8, columns=["a", "b"]))


def test_random_numbers_by_place_in_the_graph_stay(path):
    tf.random.set_seed(5)
    try:
        dataset = xt.data.parquet(path, 8).map(lambda r: r["a"] + tf.random.uniform([]))
        assert prune(dataset, all_used) is None
    finally:
        tf.random.set_seed(None)


def test_a_global_seed_shuffles_both_alike(path):
    def firsts(dataset):
        return [float(a[0]) for a in dataset]

    try:
        tf.random.set_seed(7)
        plain = firsts(xt.data.parquet(path, 4, columns=None).shuffle(9).map(lambda r: r["a"]))
        tf.random.set_seed(7)
        dataset = xt.data.parquet(path, 4).shuffle(9).map(lambda r: r["a"])
        after = prune(dataset, all_used).dataset
        assert firsts(after) == plain
    finally:
        tf.random.set_seed(None)


def test_policies_for_nulls_of_fields_that_are_not_read(path):
    nulls = {"title": "unknown", "a": 0.0, "steps.text": xt.fill("?"), "*": "error"}
    nulls["title"] = xt.fill("unknown")
    dataset = xt.data.parquet(path, 8, nulls=nulls).map(lambda r: r["a"])
    whole = list(map(in_arrays, dataset))
    assert list(map(in_arrays, prune(dataset, all_used).dataset)) == whole


@pytest.mark.parametrize(
    "read", [xt.read_parquet, lambda p, c: next(iter(xt.data.parquet(p, 40, c)))]
)
def test_columns_takes_the_fields_used(path, read):
    spec = xt.data.parquet(path, 40).element_spec

    def function(records):
        return tf.reduce_sum(records["steps", "m"], axis=1) + records["inner", "d"]

    fields = xt.data.fields_used(function, spec)
    assert list(fields) == ["inner.d", "steps.m"]
    records = read(path, fields)
    np.testing.assert_array_equal(function(records), function(xt.read_parquet(path)))
    assert list(map(str, dict(records.__tf_type_spec__().leaves()))) == ["inner.d", "steps.m"]


def test_row_splits_are_read_with_the_smallest_field(path):
    spec = xt.data.parquet(path, 40).element_spec
    fields = xt.data.fields_used(lambda r: r["steps"].row_splits, spec)
    group = pq.ParquetFile(path).metadata.row_group(0)
    sizes = {
        column.path_in_schema: column.total_compressed_size
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema.startswith("steps")
    }
    smallest = min(sizes, key=sizes.get).replace(".list.element", "")
    records = xt.read_parquet(path, fields)
    assert [str(name) for name, _ in records.__tf_type_spec__().leaves()] == [smallest]


@pytest.mark.parametrize(("function", "spec"), [(3, None), (lambda r: r, tf.TensorSpec([None]))])
def test_arguments_of_another_type_are_named(path, function, spec):
    with pytest.raises(errors.DTypeError, match="fields_used"):
        xt.data.fields_used(function, spec or xt.data.parquet(path, 8).element_spec)
