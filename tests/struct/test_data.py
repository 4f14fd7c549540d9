"""StructuredTensors in tf.data and wherever TensorFlow stacks and unstacks values."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._protocol.box import box, boxed_specs, unbox
from extensor.errors import ProtocolError, StructureError
from tests.samples.arrow_strategies import arrays
from tests.samples.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor
Dataset = tf.data.Dataset


# Records of every shape: what stands in the fields decides how they are stacked.

STEP = pa.struct([("minutes", pa.int64()), ("tools", pa.large_list(pa.string()))])
FIELDS = {
    "numbers": pa.int32(),
    "text": pa.string(),
    "vectors": pa.list_(pa.float32(), 2),
    "ragged": pa.large_list(pa.int16()),
    "ragged twice": pa.large_list(pa.large_list(pa.string())),
    "vectors of ragged": pa.list_(pa.large_list(pa.int64()), 2),
    "ragged of vectors": pa.large_list(pa.list_(pa.int64(), 2)),
    "record": pa.struct([("x", pa.int64()), ("y", pa.large_list(pa.int64()))]),
    "empty record": pa.struct([]),
    "steps": pa.large_list(STEP),
    "steps of steps": pa.large_list(pa.struct([("steps", pa.large_list(STEP))])),
    "grid of records": pa.list_(pa.struct([("x", pa.int64())]), 2),
    "lists of lists of records": pa.large_list(pa.large_list(STEP)),
    "vectors of lists of records": pa.list_(pa.large_list(STEP), 2),
}
every_field = pytest.mark.parametrize("name", [*FIELDS, "all", "none"])


def type_of(name):
    if name == "all":
        return pa.struct([("id", pa.int64()), *FIELDS.items()])
    return pa.struct([("id", pa.int64()), *([(name, FIELDS[name])] if name in FIELDS else [])])


def some(name, count, seed=0):
    """Returns so many records with a field, no two of them alike, their lists of any length."""
    rng = np.random.default_rng(seed)

    def value(t):
        if pa.types.is_struct(t):
            return {f.name: value(f.type) for f in t.fields}
        if pa.types.is_fixed_size_list(t):
            return [value(t.value_type) for _ in range(t.list_size)]
        if pa.types.is_large_list(t):
            return [value(t.value_type) for _ in range(rng.integers(0, 4))]
        number = int(rng.integers(0, 1000))
        return f"text {number}" if pa.types.is_string(t) else number

    rows = [value(type_of(name)) | {"id": i} for i in range(count)]
    return xt.from_arrow(pa.array(rows, type_of(name)))


# tf.data.


@pytest.mark.whole("many cases")
@every_field
def test_slices_are_the_records_and_batches_their_collections(name):
    records = some(name, 5)
    expected = records.to_py()
    slices = Dataset.from_tensor_slices(records)
    assert [r.to_py() for r in slices] == expected
    batches = list(slices.batch(2))
    assert [b.to_py() for b in batches] == [expected[:2], expected[2:4], expected[4:]]
    assert all(type(b) is Dense and b.field_names() == records.field_names() for b in batches)
    assert slices.element_spec.rank == 0
    assert slices.batch(2).element_spec.rank == 1
    for dataset in (slices, slices.batch(2), slices.batch(5, drop_remainder=True)):
        for element in dataset:
            assert dataset.element_spec.is_compatible_with(element)
    assert slices.batch(5, drop_remainder=True).element_spec.shape == [5]


@pytest.mark.whole("many cases")
@every_field
def test_batches_of_mapped_records(name):
    # TensorFlow's own RaggedTensor and StructuredTensor fail here: inside map they lose what says
    # that their rows differ in length.
    records = some(name, 5)
    mapped = Dataset.from_tensor_slices(records).map(lambda r: r)
    assert [b.to_py() for b in mapped.batch(3)] == [records.to_py()[:3], records.to_py()[3:]]
    updated = Dataset.from_tensor_slices(records).map(lambda r: r.with_updates(id=r["id"] + 1))
    (batch,) = updated.batch(5)
    assert [r["id"] for r in batch.to_py()] == [1, 2, 3, 4, 5]
    assert batch.without("id").to_py() == records.without("id").to_py()


@pytest.mark.whole("many cases")
@every_field
def test_a_dataset_of_one_collection_and_its_elements(name):
    records = some(name, 4)
    whole = Dataset.from_tensors(records)
    assert whole.element_spec == records.__tf_type_spec__()
    assert whole.get_single_element().to_py() == records.to_py()
    assert [r.to_py() for r in whole.unbatch()] == records.to_py()
    assert [b.to_py() for b in whole.unbatch().batch(4)] == [records.to_py()]
    batches = Dataset.from_tensor_slices(records).batch(3)
    assert [r.to_py() for r in batches.unbatch()] == records.to_py()
    assert [b.to_py() for b in batches.rebatch(2)] == [records.to_py()[:2], records.to_py()[2:]]
    assert [b.to_py() for b in Dataset.from_tensor_slices(records).batch(2).batch(2)] == [
        [records.to_py()[:2], records.to_py()[2:]]
    ]


def test_batches_of_differing_size_do_not_stack():
    with pytest.raises(tf.errors.InvalidArgumentError, match="different shapes"):
        list(Dataset.from_tensor_slices(some("steps", 4)).batch(3).batch(2))


@pytest.mark.whole("saves and loads models")
@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")  # says Dataset.save
@every_field
def test_filter_shuffle_take_skip_repeat_concatenate_zip_cache(name, tmp_path):
    records = some(name, 6)
    expected = records.to_py()
    slices = Dataset.from_tensor_slices(records)

    def py(dataset):
        return [r.to_py() for r in dataset]

    assert py(slices.filter(lambda r: r["id"] % 2 == 0)) == expected[::2]
    assert sorted(r["id"] for r in py(slices.shuffle(6, seed=1))) == list(range(6))
    assert all(r == expected[r["id"]] for r in py(slices.shuffle(6, seed=1)))
    assert py(slices.skip(1).take(2)) == expected[1:3]
    assert py(slices.take(2).repeat(2)) == expected[:2] * 2
    assert py(slices.concatenate(slices.take(1))) == [*expected, expected[0]]
    assert py(slices.cache()) == expected
    assert py(slices.prefetch(2)) == expected
    assert py(slices.shard(2, 1)) == expected[1::2]
    assert [(i.numpy(), r.to_py()) for i, r in slices.enumerate()] == list(enumerate(expected))
    assert [(a.to_py(), b.to_py()) for a, b in Dataset.zip((slices, slices))] == list(
        zip(expected, expected, strict=True)
    )
    assert py(slices.interleave(Dataset.from_tensors, cycle_length=1)) == expected
    slices.save(str(tmp_path / "saved"))
    assert py(Dataset.load(str(tmp_path / "saved"), slices.element_spec)) == expected


@pytest.mark.whole("many cases")
@every_field
def test_rows_of_lists_of_records(name):
    # Outermost ragged: elements are whole rows, each of its own length.
    records = some(name, 6)
    rows = Ragged.from_row_splits(records, [0, 2, 2, 5, 6])
    expected = rows.to_py()
    slices = Dataset.from_tensor_slices(rows)
    assert [r.to_py() for r in slices] == expected
    assert [b.to_py() for b in slices.batch(3)] == [expected[:3], expected[3:]]
    assert [b.to_py() for b in slices.map(lambda r: r).batch(4)] == [expected]
    (batch,) = slices.map(lambda r: r.with_updates(id=r["id"] + 1)).batch(4)
    assert isinstance(batch, Ragged)
    assert batch["id"].to_list() == [[1, 2], [], [3, 4, 5], [6]]
    assert [r.to_py() for r in slices.unbatch()] == records.to_py()
    (deep,) = slices.batch(2).batch(2)
    assert deep.to_py() == [expected[:2], expected[2:]]
    assert deep.rank == 3
    assert [b.to_py() for b in Dataset.from_tensors(deep).unbatch()] == deep.to_py()
    assert [r.to_py() for r in Dataset.from_tensors(deep).unbatch().unbatch()] == expected


@pytest.mark.parametrize("dtype", [tf.int64, tf.int32], ids=["int64", "int32"])
def test_row_splits_keep_their_dtype(dtype):
    rows = Ragged.from_row_splits(Dense([3], {"x": [1, 2, 3]}), tf.constant([0, 1, 3], dtype))
    (batch,) = Dataset.from_tensor_slices(rows).map(lambda r: r).batch(2)
    assert batch.row_splits.dtype == dtype
    assert batch.to_py() == rows.to_py()
    ragged = tf.RaggedTensor.from_row_splits([1, 2, 3], tf.constant([0, 1, 3], dtype))
    records = Dense([2], {"r": ragged})
    (batch,) = Dataset.from_tensor_slices(records).map(lambda r: r).batch(2)
    assert batch["r"].row_splits.dtype == dtype
    assert batch.to_py() == records.to_py()


def test_a_record_with_a_row_of_a_ragged_field_is_a_plain_tensor_inside_map():
    records = Dense([2], {"tags": tf.ragged.constant([[1, 2], [3]]), "id": [0, 1]})
    slices = Dataset.from_tensor_slices(records)

    def count(record):
        assert isinstance(record["tags"], tf.Tensor)
        less = record.without("id").with_updates(n=tf.size(record["tags"]))
        return less.with_only("tags", "n").with_updates(tags=record["tags"])

    (batch,) = slices.map(count).batch(2)
    assert batch.to_py() == [{"tags": [1, 2], "n": 2}, {"tags": [3], "n": 1}]
    # What is computed anew has no more to do with the row: its length has to be the same.
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(slices.map(lambda r: r.with_updates(tags=r["tags"] * 2)).batch(2))


@pytest.mark.parametrize("order", [1, -1])
def test_text_beside_bytes_is_bytes(order):
    def records(value, kind):
        inner = pa.struct({"y": kind})
        types = {"x": kind, "l": pa.list_(kind), "o": inner, "s": pa.list_(inner)}
        row = {"x": value, "l": [value], "o": {"y": value}, "s": [{"y": value}]}
        return xt.from_arrow(pa.Table.from_pylist([row], pa.schema(types)))

    both = [records("a", pa.string()), records(b"\xff", pa.binary())][::order]
    wanted = pa.concat_tables(
        [pa.Table.from_batches([xt.to_arrow(each)]) for each in both], promote_options="permissive"
    )
    rows = [tf.data.Dataset.from_tensor_slices(each) for each in both]
    batches = [rows[0].concatenate(rows[1]).batch(2)]
    batches.append(tf.data.Dataset.choose_from_datasets(rows, tf.data.Dataset.range(2)).batch(2))
    for dataset in batches:
        assert [xt.to_arrow(batch).to_pylist() for batch in dataset] == [wanted.to_pylist()]
    chosen = tf.function(lambda c: tf.cond(c, *(lambda each=each: each for each in both)))
    assert xt.to_arrow(chosen(tf.constant(False))).schema.types == wanted.schema.types


def test_no_records_give_no_elements():
    for records in (some("all", 0), Ragged.from_row_splits(some("all", 0), [0])):
        slices = Dataset.from_tensor_slices(records)
        assert list(slices) == []
        assert list(slices.batch(2)) == []
    empty_rows = Ragged.from_row_splits(some("all", 0), [0, 0, 0])
    assert [b.to_py() for b in Dataset.from_tensor_slices(empty_rows).batch(2)] == [[[], []]]
    none_left = Dataset.from_tensor_slices(some("all", 3)).filter(lambda r: r["id"] > 5)
    assert list(none_left.batch(2)) == []


def test_a_generator_yields_records():
    records = some("all", 3)
    spec = records.__tf_type_spec__().unstacked().stacked(None)
    dataset = Dataset.from_generator(
        lambda: (records[:n] for n in (1, 3, 0)), output_signature=spec
    )
    assert [b.to_py() for b in dataset] == [records.to_py()[:n] for n in (1, 3, 0)]


def test_a_dataset_inside_a_tf_function():
    records = some("all", 4)

    @tf.function
    def total(dataset):
        sum_ = tf.constant(0, tf.int64)
        for batch in dataset:
            sum_ += tf.reduce_sum(batch["steps.minutes"])
        return sum_

    assert total(Dataset.from_tensor_slices(records).batch(3)).numpy() == sum(
        s["minutes"] for r in records.to_py() for s in r["steps"]
    )


def test_reduce_and_scan_read_records():
    slices = Dataset.from_tensor_slices(some("all", 4))
    assert slices.reduce(np.int64(0), lambda s, r: s + r["id"]).numpy() == 6
    assert [int(n) for n in slices.scan(np.int64(0), lambda s, r: (s + r["id"], s))] == [0, 0, 1, 3]


def test_a_variable_is_read_before_it_goes_into_a_dataset():
    records = Dense([2], {"n": Dense([2], {"v": tf.Variable([1.0, 2.0])})})
    for make in (Dataset.from_tensors, Dataset.from_tensor_slices):
        with pytest.raises(ProtocolError, match=r"v: .* got a Variable\. Read it first"):
            make(records)
    read = records.with_updates({"n.v": tf.convert_to_tensor(records["n.v"])})
    assert [r.to_py() for r in Dataset.from_tensor_slices(read)] == read.to_py()


# map_fn and gradients.


@every_field
def test_map_fn_gives_records_and_takes_records(name):
    records = some(name, 4)
    ids = tf.map_fn(lambda r: r["id"] * 2, records, fn_output_signature=tf.int64)
    assert ids.numpy().tolist() == [0, 2, 4, 6]
    signature = records.__tf_type_spec__().unstacked()
    same = tf.map_fn(lambda r: r, records, fn_output_signature=signature)
    assert same.to_py() == records.to_py()


def test_map_fn_over_rows():
    rows = Ragged.from_row_splits(some("steps", 5), [0, 2, 2, 5])
    counts = tf.map_fn(lambda r: tf.shape(r["id"])[0], rows, fn_output_signature=tf.int32)
    assert counts.numpy().tolist() == [2, 0, 3]
    same = tf.map_fn(lambda r: r, rows, fn_output_signature=rows.__tf_type_spec__().unstacked())
    assert same.to_py() == rows.to_py()


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("in_a_graph", [False, True])
def test_gradients_reach_a_field_through_map_fn(in_a_graph):
    x, y = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([[1.0], [2.0], [3.0]])

    def loss():
        read = {"x": tf.convert_to_tensor(x), "y": tf.convert_to_tensor(y)}
        rows = Ragged.from_row_splits(Dense([3], read), [0, 2, 3])
        sums = tf.map_fn(
            lambda r: tf.reduce_sum(r["x"] ** 2) + tf.reduce_sum(r["y"] * 5.0),
            rows, fn_output_signature=tf.float32,
        )  # fmt: skip
        return tf.reduce_sum(sums)

    with tf.GradientTape() as tape:
        value = (tf.function(loss) if in_a_graph else loss)()
    gradients = tape.gradient(value, [x, y])
    assert [tf.convert_to_tensor(g).numpy().tolist() for g in gradients] == [
        [2.0, 4.0, 6.0], [[5.0], [5.0], [5.0]],
    ]  # fmt: skip


# The laws of boxing.


def rows_in(records, splits):
    rows = Ragged.from_row_splits(records, splits)
    return rows, rows.__tf_type_spec__()


@every_field
def test_boxes_give_the_value_back(name):
    records = some(name, 5)
    deep = Ragged.from_row_splits(Ragged.from_row_splits(records, [0, 2, 2, 5]), [0, 1, 3])
    for value in (
        records,
        records[0],
        Ragged.from_row_splits(records, [0, 2, 2, 5]),
        deep,
        deep[1],
    ):
        spec = value.__tf_type_spec__()
        for minimum_rank in (0, 1) if spec.rank else (0,):
            boxes = box(spec, value, minimum_rank)
            described = boxed_specs(spec, minimum_rank)
            assert len(boxes) == len(described)
            for tensor, tensor_spec in zip(boxes, described, strict=True):
                assert tensor_spec.is_compatible_with(tensor)
            if minimum_rank == 0:
                assert unbox(spec, boxes).to_py() == value.to_py()


@every_field
def test_stacking_boxes_stacks_the_values(name):
    records = some(name, 6)
    rows, spec = rows_in(records, [0, 2, 2, 6])
    row_spec = spec.unstacked()
    row_boxes = [box(row_spec, rows[i]) for i in range(3)]
    stacked = [tf.stack(boxes) for boxes in zip(*row_boxes, strict=True)]
    assert unbox(row_spec.stacked(3), stacked).to_py() == rows.to_py()

    record_spec = records.__tf_type_spec__().unstacked()
    boxes = [box(record_spec, records[i]) for i in range(6)]
    stacked = [tf.stack(parts) for parts in zip(*boxes, strict=True)]
    assert unbox(record_spec.stacked(6), stacked).to_py() == records.to_py()


@every_field
def test_unstacking_boxes_unstacks_the_values(name):
    records = some(name, 6)
    rows, _ = rows_in(records, [0, 2, 2, 6])
    deep, _ = rows_in(rows, [0, 1, 3])
    for value in (records, rows, deep):
        spec = value.__tf_type_spec__()
        boxes = box(spec, value, 1)
        assert all(len(b) == len(value) for b in boxes)
        unstacked = [unbox(spec.unstacked(), [b[i] for b in boxes]) for i in range(len(value))]
        assert [v.to_py() for v in unstacked] == value.to_py()
        assert all(spec.unstacked().is_compatible_with(v) for v in unstacked)


def joined(*boxes):
    # TensorFlow has no kernel that concatenates variants.
    if boxes[0].dtype != tf.variant:
        return tf.concat(boxes, 0)
    return tf.stack([part for b in boxes for part in tf.unstack(b)])


@every_field
def test_joining_boxes_joins_the_values(name):
    records = some(name, 6)
    rows, _ = rows_in(records, [0, 2, 2, 6])
    for value in (records, rows):
        spec = value.__tf_type_spec__().unstacked().stacked(None)
        a, b = (box(spec, v, 1) for v in (value[:1], value[1:]))
        assert unbox(spec, list(map(joined, a, b))).to_py() == value.to_py()
        turned = unbox(spec, [parts[::-1] for parts in box(spec, value, 1)])
        assert turned.to_py() == value.to_py()[::-1]


@pytest.mark.whole("draws many values")
@given(st.data(), st.lists(st.sampled_from(sorted(FIELDS)), max_size=3, unique=True))
def test_batches_of_any_records_are_those_records(data, names):
    record = pa.struct([("id", pa.int64()), *((n, FIELDS[n]) for n in names)])
    array = data.draw(arrays(pa.large_list(record), data.draw(st.integers(1, 3))))
    rows = xt.from_arrow(array)
    (batch,) = Dataset.from_tensor_slices(rows).map(lambda r: r).batch(len(array))
    assert repr(batch.to_py()) == repr(rows.to_py())
    flat = rows.values
    batches = Dataset.from_tensor_slices(flat).map(lambda r: r).batch(2)
    assert repr([r for b in batches for r in b.to_py()]) == repr(flat.to_py())


def test_stacked_and_unstacked_specs_are_each_others_reverse():
    records = some("all", 3)
    rows, spec = rows_in(records, [0, 1, 3])
    for value in (records, rows, rows_in(rows, [0, 2])[0]):
        spec = value.__tf_type_spec__()
        one = spec.unstacked()
        assert one.stacked(7).unstacked() == one
        assert one.stacked(None).is_compatible_with(value)
        assert one.stacked(len(value)).is_compatible_with(value)
        assert not one.stacked(len(value) + 1).is_compatible_with(value)
        assert one.rank == spec.rank - 1
    with pytest.raises(StructureError, match="a single record"):
        records[0].__tf_type_spec__().unstacked()


def test_boxes_are_counted():
    rows, spec = rows_in(some("all", 3), [0, 1, 3])
    boxes = box(spec, rows)
    with pytest.raises(StructureError, match="boxed tensors"):
        spec.from_boxed_tensor(boxes[:-1])
    with pytest.raises(StructureError, match="boxed tensors"):
        spec.values_spec.from_boxed_tensor(box(spec.values_spec, rows.values)[:-1])


# Fields of other types.


def masked(numbers):
    numbers = tf.constant(numbers)
    return MaskedTensor(numbers, numbers % 2 == 0)


def test_a_field_of_a_type_that_follows_the_protocol_is_stacked_by_its_spec():
    values = [[1, 2], [3, 4], [5, 6], [7, 8]]
    records = Dense([4], {"m": masked(values), "id": [0, 1, 2, 3]})
    slices = Dataset.from_tensor_slices(records)
    assert [r["m"].values.numpy().tolist() for r in slices] == values
    assert [b["m"].values.numpy().tolist() for b in slices.batch(3)] == [values[:3], values[3:]]
    mapped = slices.map(lambda r: r.with_updates(m=MaskedTensor(r["m"].values + 1, r["m"].mask)))
    (batch,) = mapped.batch(4)
    assert isinstance(batch["m"], MaskedTensor)
    assert batch["m"].values.numpy().tolist() == (np.array(values) + 1).tolist()
    assert batch["m"].mask.numpy().tolist() == (np.array(values) % 2 == 0).tolist()
    assert [r["m"].values.numpy().tolist() for r in slices.batch(4).unbatch()] == values
    sums = tf.map_fn(lambda r: tf.reduce_sum(r["m"].values), records, fn_output_signature=tf.int32)
    assert sums.numpy().tolist() == [3, 7, 11, 15]


def test_such_a_field_may_be_in_lists_of_records():
    steps = Dense([3], {"m": masked([1, 2, 3]), "id": [0, 1, 2]})
    rows = Ragged.from_row_splits(steps, [0, 2, 3])
    slices = Dataset.from_tensor_slices(rows)
    assert [r["m"].values.numpy().tolist() for r in slices] == [[1, 2], [3]]
    (batch,) = slices.map(lambda r: r).batch(2)
    assert batch.values["m"].values.numpy().tolist() == [1, 2, 3]
    assert batch.values["m"].mask.numpy().tolist() == [False, True, False]
    records = Dense([2], {"steps": rows})
    (batch,) = Dataset.from_tensor_slices(records).map(lambda r: r).batch(2)
    assert batch["steps"].values["m"].values.numpy().tolist() == [1, 2, 3]


def test_a_sparse_field_is_stacked_as_tensorflow_does():
    records = Dense([3], {"s": tf.sparse.from_dense([[0, 1], [2, 0], [3, 4]]), "id": [0, 1, 2]})
    (batch,) = Dataset.from_tensor_slices(records).batch(3)
    assert tf.sparse.to_dense(batch["s"]).numpy().tolist() == [[0, 1], [2, 0], [3, 4]]


def test_a_field_that_does_not_stack_is_named():
    class Fixed:
        def __tf_type_spec__(self):
            return FixedSpec()

    class FixedSpec(xt.TypeSpec):
        value_type = Fixed
        component_specs = ()

        def to_components(self, value):
            return ()

        def from_components(self, components):
            return Fixed()

        def serialize(self):
            return ()

    records = Dense([2], {"a": [1, 2], "f x": Fixed()})
    for fail in (lambda: Dataset.from_tensor_slices(records), lambda: Dataset.from_tensors(records),
                 lambda: records.__tf_type_spec__().unstacked(),
                 lambda: records.__tf_type_spec__().stacked(3)):  # fmt: skip
        with pytest.raises(ProtocolError) as caught:
            fail()
        assert caught.value.path == '"f x"'
        assert "StackableTypeSpec" in caught.value.fix
    sparse = Dense([2], {"s": tf.sparse.from_dense([[0, 1], [2, 0]])})
    rows = Ragged.from_row_splits(sparse, [0, 1, 2])
    with pytest.raises(ProtocolError, match="is in ragged rows") as caught:
        Dataset.from_tensor_slices(rows)
    assert caught.value.path == "s"


def test_iterating_lists_of_records_creates_no_ragged_tensor_for_a_column(monkeypatch):
    pairs = [[4, 7], [5, 8], [6, 9]]
    steps = xt.DenseStructuredTensor([3], {"a": [1, 2, 3], "b": [4, 5, 6], "pair": pairs})
    lists = xt.RaggedStructuredTensor.from_row_splits(steps, [0, 1, 3])
    ways = xt.RaggedStructuredTensor.from_row_splits(lists, [0, 2])
    values = {"steps": lists, "ways": ways}
    datasets = {name: tf.data.Dataset.from_tensors(value) for name, value in values.items()}
    made = []
    create = tf.RaggedTensor.__init__
    monkeypatch.setattr(
        tf.RaggedTensor, "__init__", lambda *args, **kwargs: made.append(create(*args, **kwargs))
    )
    found = {name: next(iter(dataset)) for name, dataset in datasets.items()}
    assert made == []
    assert {name: value.to_py() for name, value in found.items()} == {
        name: value.to_py() for name, value in values.items()
    }


def test_iterating_lists_of_records_gives_their_ragged_fields_and_inner_sizes():
    steps = xt.DenseStructuredTensor(
        [3],
        {
            "tags": tf.ragged.constant([[1], [], [2, 3]]),
            "pair": [[1, 2], [3, 4], [5, 6]],
            "more": xt.RaggedStructuredTensor.from_row_splits(
                xt.DenseStructuredTensor([2], {"x": tf.ragged.constant([[1.0], [2.0, 3.0]])}),
                [0, 0, 1, 2],
            ),
        },
    )
    for splits in ([0, 1, 3], [0, 0, 3], [0, 0, 0]):
        value = xt.RaggedStructuredTensor.from_row_splits(steps[: splits[-1]], splits)
        (found,) = tf.data.Dataset.from_tensors(value)
        assert found.to_py() == value.to_py()
        assert found.values["pair"].shape[1:] == [2]
        assert isinstance(found["more", "x"], tf.RaggedTensor)
