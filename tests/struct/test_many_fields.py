"""What many fields cost: as much for each field, however many there are, and few ops."""

import sys

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt

Dense, Ragged, Masked = xt.DenseStructuredTensor, xt.RaggedStructuredTensor, xt.types.MaskedTensor


def names(count):
    return [f"f{i}" for i in range(count)]


def table(count):
    return pa.table({name: np.arange(8.0) for name in names(count)})


def record(count):
    values = [1, "a", [1.5, 2.5], None, {"x": 1}]
    return {name: values[i % 5] for i, name in enumerate(names(count))}


def calls_of(function, *args):
    """Returns how many functions of Python and C a call runs."""
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


CALLS = {
    "from_arrow": (lambda st, n: xt.from_arrow(table(n), nulls="mask"), 250),
    "to_arrow": (lambda st, n: xt.to_arrow(st), 34),
    "to_py": (lambda st, n: st.to_py(), 40),
    "constant": (lambda st, n: xt.struct.constant(record(n), nulls="mask"), 900),
    "one record": (lambda st, n: st[0], 60),
    "each by name": (lambda st, n: [st[name] for name in names(n)], 60),
    "each is in": (lambda st, n: [name in st for name in names(n)], 30),
    "with_only all": (lambda st, n: st.with_only(*names(n)), 40),
    "with_updates of all": (lambda st, n: st.with_updates(dict.fromkeys(names(n), st["f0"])), 110),
    "without": (lambda st, n: st.without(*names(n)[1:]), 40),
    "spec": (lambda st, n: xt.spec_of(Dense([8], dict.fromkeys(names(n), st["f0"]))), 90),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_field_costs_the_same_few_calls(call):
    function, most = CALLS[call]
    few, many = (calls_of(function, xt.from_arrow(table(n)), n) for n in (100, 300))
    # The first records of a schema make its reader. The same is true of both counts.
    assert (many - few) / 200 <= most


@pytest.mark.parametrize(
    "records",
    [
        Dense([2], {n: [1.0, 2.0] for n in names(50)}),
        Ragged.from_row_splits(Dense([2], {n: [1.0, 2.0] for n in names(50)}), [0, 1, 2]),
    ],
)
def test_a_name_is_found_without_a_list_of_all_names(records, monkeypatch):
    def refused(self):
        raise AssertionError("All names were listed, to find one.")

    monkeypatch.setattr(type(records), "field_names", refused)
    assert "f7" in records
    assert "f77" not in records
    assert records["f7"] is not None
    assert records.field_value("f7") is not None
    records.with_updates(f7=records["f8"])
    records.with_only("f7", "f8")


@pytest.fixture
def slices(monkeypatch):
    """Returns a list with an item for each slice that is cut from a tensor by an op."""
    cut = []
    plain = tf.raw_ops.StridedSlice

    def counted(**kwargs):
        cut.append(kwargs["input"])
        return plain(**kwargs)

    monkeypatch.setattr(tf.raw_ops, "StridedSlice", counted)
    return cut


def refuse_python_indexing(monkeypatch):
    def refused(self, key):
        raise AssertionError("A tensor was indexed in Python, which takes ten times as long.")

    monkeypatch.setattr(type(tf.constant(0)), "__getitem__", refused, raising=False)


@pytest.mark.parametrize("key", [0, -1, slice(1, 3), slice(None, None, 2), slice(3, None, -1)])
def test_a_part_of_each_tensor_is_one_op(key, slices, monkeypatch):
    columns = {"x": np.arange(4), "y": np.arange(8.0).reshape(4, 2), "s": np.array(list("abcd"))}
    records = Dense([4], columns)
    refuse_python_indexing(monkeypatch)
    part = records[key]
    assert len(slices) == 3
    for name, column in columns.items():
        wanted = column[key].astype("S") if name == "s" else column[key]
        np.testing.assert_array_equal(part.field_value(name).numpy(), wanted)


def test_all_records_and_all_values_of_the_only_row_run_no_op(slices):
    tags = tf.ragged.constant([[1, 2, 3]])
    records = Dense([1], {"x": [1.0], "tags": tags})
    assert records[:1]["tags"] is records["tags"]
    assert records[0]["tags"] is tags.values
    assert len(slices) == 1  # the scalar x


def test_one_mask_of_many_fields_is_cut_once(slices):
    records = xt.struct.constant([record(50)], nulls="mask")
    slices.clear()
    one = records[0]
    masks = [tensor for tensor in slices if tensor.dtype == tf.bool]
    assert len(masks) < 15  # the 10 fields that are None, and one mask of all others
    assert one.to_py() == record(50)


def test_indexing_keeps_gradients():
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        records = Dense([3], {"x": tf.convert_to_tensor(x)})
        loss = records[1]["x"] * 2 + tf.reduce_sum(records[:3]["x"])
    np.testing.assert_array_equal(tape.gradient(loss, x), [1.0, 3.0, 1.0])


def test_an_eager_value_in_a_graph_is_cut_in_the_graph():
    records = Dense([3], {"x": [1.0, 2.0, 3.0]})
    graph = tf.function(lambda: records[1]["x"]).get_concrete_function().graph
    assert [op.type for op in graph.get_operations()].count("StridedSlice") == 1


def test_columns_without_nulls_have_one_mask():
    records = xt.from_arrow(table(3), nulls="mask")
    masks = [records[name].mask for name in names(3)]
    assert masks[0] is masks[1] is masks[2]
    assert masks[0].numpy().all()
    assert masks[0].shape == [8]


@pytest.mark.whole("makes very large values")
def test_ten_thousand_keys_of_one_object_come_back():
    values = record(10_000)
    records = xt.struct.constant(values, nulls="mask")
    batch = xt.to_arrow(xt.struct.constant([values], nulls="mask"))
    assert batch.to_pylist() == [values]
    assert xt.from_arrow(batch, nulls="mask")[0].to_py() == values
    assert records.to_py() == values
    assert len(repr(records).splitlines()) < 150
    assert len(repr(xt.struct.tree(records)).splitlines()) < 150
