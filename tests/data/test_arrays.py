"""xt.data.arrays: the fields of records as NumPy arrays by path, for Keras on any backend."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor.authoring import array_over

DTYPES = (tf.float32, tf.float64, tf.bfloat16, tf.int32, tf.int64, tf.uint8, tf.bool)
NAMES = st.sampled_from(["a", "b", "c.d", "e f", "été"])


@st.composite
def fields(draw, shape, depth=2):
    """Returns fields of a shape, and the arrays that they have by path."""
    made, arrays = {}, {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        kinds = ["dense", "masked", "list", "records"] if depth else ["dense", "masked"]
        kind = draw(st.sampled_from(kinds))
        if kind in ("dense", "masked"):
            full = (*shape, *draw(st.lists(st.integers(0, 3), max_size=1)))
            numbers = np.arange(np.prod(full, dtype=int)).reshape(full)
            value = tf.cast(numbers, draw(st.sampled_from(DTYPES)))
            arrays[(name,), ""] = value.numpy()
            if kind == "masked":
                arrays[(name,), "__mask"] = numbers % 2 == 0
                value = xt.types.MaskedTensor(value, numbers % 2 == 0)
        else:
            inner_shape = (*shape, draw(st.integers(0, 3))) if kind == "list" else shape
            inner, found = draw(fields(inner_shape, depth - 1))
            value = xt.DenseStructuredTensor(inner_shape, inner)
            arrays |= {((name, *names), part): array for (names, part), array in found.items()}
            if kind == "list":
                mask = np.arange(np.prod(inner_shape, dtype=int)).reshape(inner_shape) % 3 > 0
                value = xt.types.MaskedTensor(value, tf.constant(mask))
                arrays[(name,), "__mask"] = mask
        made[name] = value
    return made, arrays


@given(st.integers(0, 4), st.data())
def test_each_field_and_mask_is_an_array_by_path(rows, data):
    made, expected = data.draw(fields((rows,)))
    records = xt.DenseStructuredTensor([rows], made)
    [found] = xt.data.arrays(tf.data.Dataset.from_tensors(records))
    assert found.keys() == {f"{xt.Path(*names)}{part}" for names, part in expected}
    for (names, part), array in expected.items():
        got = found[f"{xt.Path(*names)}{part}"]
        assert isinstance(got, np.ndarray)
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)


def records_of(count=5):
    items = xt.DenseStructuredTensor([count, 2], {"price": tf.ones([count, 2])})
    return xt.DenseStructuredTensor([count], {"id": tf.range(count), "items": items})


def test_nests_of_records_and_tensors_keep_their_structure():
    pair = collections.namedtuple("pair", "left right")
    element = ({"x": records_of(), "y": tf.zeros([5])}, pair(records_of(), [tf.ones([5])]))
    [(first, second)] = xt.data.arrays(tf.data.Dataset.from_tensors((element[0], element[1].left)))
    assert first["x"].keys() == second.keys() == {"id", "items.price"}
    assert first["y"].shape == (5,)
    [(_, found)] = xt.data.arrays(tf.data.Dataset.from_tensors((tf.zeros([5]), element[1].left)))
    assert found.keys() == {"id", "items.price"}
    [found] = xt.data.arrays(tf.data.Dataset.from_tensors(pair(records_of(), tf.ones([5]))))
    assert type(found) is pair
    assert found.left["items.price"].shape == (5, 2)


def test_arrays_share_the_memory_of_the_tensors_and_are_read_only():
    numbers, items = tf.range(100), tf.random.normal([100, 3])
    records = xt.DenseStructuredTensor([100], {"id": numbers, "x": items})
    dataset = tf.data.Dataset.from_tensors(records)
    for found in xt.data.arrays(dataset.repeat(2)):
        assert found["id"].ctypes.data == array_over(numbers).ctypes.data
        assert found["x"].ctypes.data == array_over(items).ctypes.data
        assert not found["x"].flags.writeable


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "numbers.parquet")
    x = np.arange(10, dtype=np.float32)
    xt.write_parquet(xt.DenseStructuredTensor([10], {"x": x, "y": 2 * x}), path)
    return path


def numbers(dataset):
    return [batch["x"].tolist() for batch in dataset]


def test_a_dataset_gives_its_epochs_again_and_knows_its_steps(path):
    dataset = xt.data.arrays(xt.data.parquet(path, 4))
    assert numbers(dataset) == numbers(dataset) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(dataset) == 3
    assert len(xt.data.arrays(xt.data.parquet(path, 4, epochs=2))) == 6
    rest = xt.data.parquet(path, 4, state=xt.data.state(dataset, 1))
    assert numbers(xt.data.arrays(rest)) == [[4, 5, 6, 7], [8, 9]]


def test_a_checkpoint_of_an_iterator_goes_on_at_its_batch(path, tmp_path):
    dataset = xt.data.arrays(xt.data.parquet(path, 4))
    iterator, other = iter(dataset), iter(dataset)
    next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    tf.train.Checkpoint(iterator=other).restore(saved)
    assert numbers(other) == [[4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize(
    "method",
    [
        lambda dataset: dataset.take(3),
        lambda dataset: dataset.skip(0),
        lambda dataset: dataset.cache(),
        lambda dataset: dataset.shuffle(1),
        lambda dataset: dataset.prefetch(tf.data.AUTOTUNE),
        lambda dataset: dataset.repeat(1).shard(num_shards=1, index=0),
        lambda dataset: dataset.with_options(tf.data.Options()),
    ],
)
def test_methods_that_keep_elements_give_arrays(method, path):
    for dataset in (xt.data.parquet(path, 4), tf.data.Dataset.from_tensors(records_of())):
        expected = list(xt.data.arrays(dataset))
        found = list(method(xt.data.arrays(dataset)))
        assert isinstance(found[0], dict)
        for one, other in zip(found, expected, strict=True):
            assert all(isinstance(array, np.ndarray) for array in one.values())
            np.testing.assert_equal(one, other)


def test_graphs_and_functions_of_map_get_tensors(path):
    dataset = xt.data.arrays(xt.data.parquet(path, 4))

    @tf.function
    def total():
        result = 0.0
        for batch in dataset:
            result += tf.reduce_sum(batch["x"])
        return result

    @tf.function
    def first(iterator):
        return next(iterator)["x"]

    assert total().numpy() == 45
    assert first(iter(dataset)).numpy().tolist() == [0, 1, 2, 3]
    assert all(tf.is_tensor(x) for x in dataset.map(lambda batch: batch["x"]))
    assert next(dataset.as_numpy_iterator())["x"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("run_eagerly", "steps"), [(False, 1), (False, 2), (True, 1)])
def test_a_model_of_keras_trains_as_on_the_whole_arrays(run_eagerly, steps, path):
    dataset = xt.data.parquet(path, 4).map(lambda r: (r.without("y"), r["y"]))
    dataset = xt.data.arrays(dataset)
    x = np.arange(10, dtype=np.float32)
    results = []
    for data in ({"x": dataset}, {"x": {"x": x}, "y": 2 * x, "batch_size": 4}):
        inputs = {"x": keras.Input((), name="x")}
        dense = keras.layers.Dense(1, kernel_initializer="ones")
        output = dense(keras.ops.expand_dims(inputs["x"], 1) / 10)[:, 0]
        model = keras.Model(inputs, output)
        model.compile("sgd", "mse", run_eagerly=run_eagerly, steps_per_execution=steps)
        history = model.fit(**data, epochs=3, shuffle=False, verbose=0).history["loss"]
        loss = model.evaluate(**data, verbose=0)
        data.pop("y", None)
        results.append((history, loss, model.predict(**data, verbose=0).tolist()))
    (ours, our_loss, our_rows), (theirs, their_loss, their_rows) = results
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_allclose(our_loss, their_loss, rtol=1e-5)
    np.testing.assert_allclose(our_rows, their_rows, rtol=1e-5)


def test_static_records_are_arrays_with_their_masks():
    records = xt.struct.constant(
        [
            {"id": 1, "items": [{"price": 5.0, "tags": [1, 2]}, {"price": 2.0, "tags": []}]},
            {"id": 2, "items": []},
        ]
    )
    dataset = tf.data.Dataset.from_tensors(records)
    sizes = {"items": 3, "items.tags": 2}
    [found] = xt.data.arrays(dataset.map(lambda r: r.to_static(sizes)))
    masks = {"items__mask", "items.tags__mask"}
    assert found.keys() == {"id", "items.price", "items.tags", *masks}
    assert found["items.price"].tolist() == [[5, 2, 0], [0, 0, 0]]
    assert found["items__mask"].tolist() == [[True, True, False], [False, False, False]]
    assert found["items.tags"].tolist() == [[[1, 2], [0, 0], [0, 0]], [[0, 0]] * 3]
    assert found["items.tags__mask"].sum() == 2
    packed = dataset.map(lambda r: r.to_static(packed={"items": 3, "items.tags": 2}))
    with pytest.raises(errors.StructureError, match=r"^items.*: expected lists of a static size"):
        xt.data.arrays(packed)


@pytest.mark.filterwarnings("ignore:.*ran out of data")
@pytest.mark.parametrize("has_free_rows", [False, True])
def test_a_model_of_keras_takes_batches_of_buckets(has_free_rows):
    lists = [[1.0], [2.0, 3.0, 4.0], [5.0], [6.0, 7.0], [8.0], [9.0]]
    records = xt.DenseStructuredTensor([6], {"x": tf.ragged.constant(lists)})
    rows = tf.data.Dataset.from_tensor_slices((records, tf.range(6.0)[:, tf.newaxis]))
    dataset = xt.data.bucket(rows, "x", [1, 3], 3, drop_remainder=not has_free_rows)
    if has_free_rows:
        with pytest.raises(errors.UnsupportedTypeError, match=r"^1: .* Give y\.values and y\.mask"):
            xt.data.arrays(dataset)
        dataset = dataset.map(lambda r, y: (r, y.values, tf.cast(y.mask, tf.float32)))
    inputs = {"x": keras.Input((None,), name="x")}
    inputs["x__mask"] = keras.Input((None,), dtype="bool", name="x__mask")
    present = keras.ops.where(inputs["x__mask"], inputs["x"], 0.0)
    model = keras.Model(inputs, keras.ops.sum(present, axis=1, keepdims=True))
    model.compile(loss="mse")
    # The first bucket is full with 0, 2 and 4. The others are in two batches with free rows.
    kept, places = (range(6), 9) if has_free_rows else ([0, 2, 4], 3)
    expected = sum((sum(lists[i]) - i) ** 2 for i in kept) / places
    loss = model.evaluate(xt.data.arrays(dataset), verbose=0)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def dataset_of(**fields):
    return tf.data.Dataset.from_tensors(xt.DenseStructuredTensor([2], fields))


def test_a_list_of_any_size_says_how_to_pad_it():
    with pytest.raises(errors.StructureError) as caught:
        xt.data.arrays(dataset_of(l=tf.ragged.constant([[1], []])))
    assert caught.value.path == "l"
    assert caught.value.expected == "lists of a static size"
    assert caught.value.received == "lists of any size"
    assert "records.to_static({'l': 8})" in caught.value.fix
    assert "records.without('l')" in caught.value.fix
    steps = xt.RaggedStructuredTensor.from_row_splits(records_of(3), [0, 3, 3])
    dataset = dataset_of(steps=steps).map(lambda records: (records, 1))
    with pytest.raises(errors.StructureError, match=r"^0\.steps\.id: expected lists of a static"):
        xt.data.arrays(dataset)


def test_strings_are_an_error_that_names_their_path():
    inner = xt.DenseStructuredTensor([2], {"s": ["a", "b"]})
    with pytest.raises(errors.DTypeError) as caught:
        xt.data.arrays(dataset_of(x=[1, 2], inner=inner))
    assert caught.value.path == "inner.s"
    assert caught.value.received == "dtype string"
    assert "StringLookup" in caught.value.fix
    assert "records.without('inner.s')" in caught.value.fix
    with pytest.raises(errors.DTypeError, match=r"^1: expected numbers or booleans, got dtype str"):
        xt.data.arrays(tf.data.Dataset.from_tensors((records_of(), "text")))


def test_a_value_without_a_path_is_an_error():
    records = records_of(2)
    for y, fix in (
        (xt.types.MaskedTensor([1, 2], [True, False]), r"Give y\.values and y\.mask"),
        (tf.ragged.constant([[1], []]), r"Give y\.to_tensor\(\)"),
        (tf.sparse.from_dense([1, 0]), "Give its tensors"),
    ):
        with pytest.raises(errors.UnsupportedTypeError, match=fix) as caught:
            xt.data.arrays(tf.data.Dataset.from_tensors((records, y)))
        assert caught.value.path == "1"
    with pytest.raises(errors.UnsupportedTypeError, match=r"^s: expected tensors, lists, records"):
        xt.data.arrays(dataset_of(s=tf.sparse.from_dense([[1, 0], [0, 1]])))


def test_two_arrays_of_one_key_and_none_are_errors():
    masked = xt.types.MaskedTensor([1, 2], [True, False])
    with pytest.raises(errors.StructureError, match="got two arrays of 'x__mask'"):
        xt.data.arrays(dataset_of(x=masked, x__mask=[1, 2]))
    with pytest.raises(errors.StructureError, match="expected a field at least, got none"):
        xt.data.arrays(dataset_of())


@pytest.mark.parametrize("given", [None, [1], np.zeros(3)])
def test_only_a_dataset_is_accepted(given):
    with pytest.raises(errors.DTypeError, match=r"expected a tf\.data\.Dataset"):
        xt.data.arrays(given)
