"""MaskedTensor: construction, casts, Keras, and TensorFlow's generic functions."""

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.types import MaskedTensor

Spec = MaskedTensor.Spec

DENSE = MaskedTensor([[1.0, np.nan], [3.0, 4.0]], [[True, False], [True, True]])
ROWS = MaskedTensor([[1.0, 2.0], [3.0, 4.0]], [True, False])
LISTS = MaskedTensor(tf.ragged.constant([[1, 2], [], [], [3]]), [True, True, False, True])
ITEMS = MaskedTensor(
    tf.ragged.constant([[1, 2], [], [3]]), tf.ragged.constant([[True, False], [], [True]], tf.bool)
)


def _records():
    return xt.DenseStructuredTensor(
        [3], {"title": ["bread", "", "soup"], "minutes": tf.ragged.constant([[5, 20], [], [8]])}
    )


BOTH = MaskedTensor(ITEMS, [True, False, True])  # lists that may be null, of such items
RECORDS = MaskedTensor(_records(), [True, False, True])
STEPS = MaskedTensor(
    xt.RaggedStructuredTensor.from_row_splits(_records(), [0, 1, 1, 3]), [True, False, True]
)
BREAD = {"title": b"bread", "minutes": [5, 20]}
SOUP = {"title": b"soup", "minutes": [8]}
NULL = {"title": b"", "minutes": []}


def lists(**options):
    """Lists of lists, some of them None."""
    row = st.lists(st.integers(-3, 3), max_size=3)
    return st.lists(st.none() | row, min_size=1, max_size=4, **options)


def of_lists(rows):
    """The MaskedTensor that has a mask for the lists."""
    values = tf.ragged.constant([row or [] for row in rows], tf.int64, ragged_rank=1)
    return MaskedTensor(values, [row is not None for row in rows])


# What it holds.


def test_lists_that_may_be_null_of_items_that_may_be_null():
    assert BOTH.to_py() == [[1, None], None, [3]]
    assert BOTH[0].to_py() == [1, None]
    assert BOTH[1].to_py() is None
    assert BOTH[0, 1].to_py() is None
    assert not isinstance(BOTH[0, 0].values, MaskedTensor)
    assert BOTH[::2].to_py() == [[1, None], [3]]


def test_an_empty_list_is_a_mask():
    assert MaskedTensor([], []).to_py() == []


def test_a_mask_of_masked_values_has_fewer_dimensions():
    with pytest.raises(xt.errors.DTypeError, match=r"with a mask of shape \(2, 2\)"):
        MaskedTensor(DENSE, DENSE.mask)
    assert MaskedTensor.combined(DENSE, ROWS.mask).to_py() == [[1.0, None], None]
    masks = MaskedTensor.combined(ROWS, [False, True] & ROWS.mask)
    assert masks.to_py() == [None, None]
    assert not isinstance(masks.values, MaskedTensor)


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize("value", [DENSE, ROWS, LISTS, ITEMS, BOTH, RECORDS, STEPS])
def test_it_is_cut_into_rows_and_back(value):
    n = len(value.to_py())
    rows = xt.authoring.cut_rows(value, tf.constant([0, 1, 1, n], tf.int64))
    assert rows.to_py() == [value.to_py()[:1], [], value.to_py()[1:]]
    assert rows[2].to_py() == value.to_py()[1:]
    values, splits = xt.authoring.uncut_rows(rows)
    assert values.to_py() == value.to_py()
    assert splits.numpy().tolist() == [0, 1, 1, n]
    xt.testing.check_extension_type([rows, rows[1:]])


@pytest.mark.parametrize("value", [DENSE, ROWS, LISTS, RECORDS, STEPS])
def test_values_without_a_mask_of_items_are_not_cut(value):
    assert xt.authoring.uncut_rows(value) is None


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize(
    "values",
    [
        [DENSE, MaskedTensor(DENSE.values + 1), MaskedTensor([[2.0, 3.0]])],
        [ROWS, ROWS[:1]],
        [MaskedTensor(["basil", "oregano"], [True, False])],
        [LISTS, LISTS[1:3]],
        [ITEMS, MaskedTensor(ITEMS.values)],
        [BOTH, BOTH[1:]],
        [RECORDS, RECORDS[::-1]],
        [STEPS, STEPS[1:]],
    ],
    ids=[
        "numbers",
        "rows",
        "strings",
        "lists",
        "items of lists",
        "lists and their items",
        "records",
        "lists of records",
    ],
)
def test_laws(values):
    xt.testing.check_extension_type(values)


@pytest.mark.slow
def test_laws_of_generated_values():
    xt.testing.check_spec(Spec(tf.TensorSpec([None, 2])), max_examples=5)


def test_true_means_valid_and_without_a_mask_all_is_valid():
    assert DENSE.to_py() == [[1.0, None], [3.0, 4.0]]
    assert MaskedTensor([1, 2]).mask.numpy().tolist() == [True, True]
    assert MaskedTensor(LISTS.values).to_py() == [[1, 2], [], [], [3]]
    assert MaskedTensor(_records()).to_py() == [BREAD, NULL, SOUP]
    assert MaskedTensor(tf.Variable([1.0])).dtype == tf.float32
    assert (DENSE.shape, DENSE.dtype) == ([2, 2], tf.float32)
    assert RECORDS.shape == [3]
    assert not hasattr(RECORDS, "dtype")


def test_arrays_of_numpy_ma_are_converted_with_the_inverted_mask():
    array = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    ours = MaskedTensor.from_numpy(array)
    assert ours.mask.numpy().tolist() == [[True, False], [True, True]]
    again = ours.to_numpy()
    np.testing.assert_array_equal(again.mask, array.mask)
    np.testing.assert_array_equal(again.data, array.data)
    assert MaskedTensor.from_numpy(np.ma.array([1, 2])).to_py() == [1, 2]
    assert MaskedTensor.from_numpy(np.array([1, 2])).to_py() == [1, 2]
    assert ROWS.to_numpy().tolist() == [[1.0, 2.0], [None, None]]


def test_an_operation_does_not_lose_the_mask_of_an_array_of_numpy_ma():
    array = np.ma.array([1.0, 2.0], mask=[True, False])
    x, y = MaskedTensor([1.0, 2.0]), xt.types.LabeledTensor([1.0, 2.0], ["word"])
    for call in (
        lambda: x * array,
        lambda: tf.add(x=array, y=x),
        lambda: tf.where([True, False], x, array),
        lambda: tf.concat([x, array], 0),
        lambda: y * array[0],
        lambda: np.ma.array(2.0, mask=True) * y,
    ):
        with pytest.raises(xt.errors.DTypeError, match="expected an array without a mask"):
            call()
    tf.add(array, 1.0)  # TensorFlow alone converts it as before
    with pytest.raises(xt.errors.DTypeError):
        x * array
    assert (x * np.ma.array([3.0, 2.0])).to_py() == [3.0, 4.0]


def test_it_is_copied_pickled_and_replaced():
    for value in (DENSE, LISTS, RECORDS):
        assert copy.deepcopy(value).to_py() == value.to_py()
        assert pickle.loads(pickle.dumps(value)).to_py() == value.to_py()
    assert xt.replace(ROWS, mask=[True, True]).to_py() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(xt.errors.StructureError):
        xt.replace(ROWS, mask=[True])
    with pytest.raises(xt.errors.ImmutableError):
        ROWS.mask = [True, True]


def test_the_repr_shows_values_and_mask():
    assert (
        repr(MaskedTensor([1, 2], [True, False])) == "<MaskedTensor shape=(2,) dtype=int32 [1 --]>"
    )
    assert repr(MaskedTensor(1, False)) == "<MaskedTensor shape=() dtype=int32 -->"
    assert repr(LISTS) == (
        "<MaskedTensor of RaggedTensor shape=(4, None) dtype=int32 [[1, 2], [], --, [3]]>"
    )
    assert repr(RECORDS).startswith("<MaskedTensor of DenseStructuredTensor shape=(3,) [{")
    rows = MaskedTensor([[1], [2]], [True, False])
    texts = [repr(rows)]
    tf.function(lambda: texts.append(repr(rows)))()  # the broadcast mask is no tensor of the graph
    assert texts[0] == texts[1]

    @tf.function
    def shown(x):
        return tf.constant(repr(x))

    assert shown(DENSE).numpy() == b"<MaskedTensor shape=(2, 2) dtype=float32>"


# fill, count, rows.


def test_fill():
    assert DENSE.fill(-1).numpy().tolist() == [[1.0, -1.0], [3.0, 4.0]]
    assert DENSE.fill([7.0, 8.0]).numpy().tolist() == [[1.0, 8.0], [3.0, 4.0]]
    assert ROWS.fill([7.0, 8.0]).numpy().tolist() == [[1.0, 2.0], [7.0, 8.0]]
    assert MaskedTensor(["a", "b"], [False, True]).fill("?").numpy().tolist() == [b"?", b"b"]
    assert ITEMS.fill(0).to_list() == [[1, 0], [], [3]]
    assert LISTS.fill([]).to_list() == [[1, 2], [], [], [3]]
    assert LISTS.fill([7, 8, 9]).to_list() == [[1, 2], [], [7, 8, 9], [3]]
    assert MaskedTensor(LISTS.values, [False, True, True, True]).fill(0).to_list()[0] == [0, 0]
    filled = RECORDS.fill({"title": b"?", "minutes": [1]})
    assert filled.to_py() == [BREAD, {"title": b"?", "minutes": [1]}, SOUP]
    # The str says that the field is text.
    of_text = RECORDS.fill({"title": "?", "minutes": [1]})
    assert of_text.to_py() == filled.to_py(text=True)
    assert STEPS.fill([SOUP, BREAD]).to_py() == [[BREAD], [SOUP, BREAD], [NULL, SOUP]]


@given(rows=lists(), other=st.lists(st.integers(-3, 3), max_size=2))
def test_null_lists_are_filled_with_lists(rows, other):
    filled = of_lists(rows).fill(other)
    assert filled.to_list() == [other if row is None else row for row in rows]


def test_count():
    assert DENSE.count().numpy() == 3
    assert DENSE.count(axis=0).numpy().tolist() == [2, 1]
    assert DENSE.count(axis=-1, keepdims=True).numpy().tolist() == [[1], [2]]
    assert LISTS.count().numpy() == 3
    assert ITEMS.count(1).numpy().tolist() == [1, 0, 1]
    assert RECORDS.count().numpy() == 2


@given(rows=st.lists(st.lists(st.integers(-3, 3), max_size=3), min_size=1, max_size=4))
def test_ragged_and_masked_round_trip(rows):
    ragged = tf.ragged.constant(rows, tf.int64, ragged_rank=1)
    ours = MaskedTensor.from_ragged(ragged)
    width = max(map(len, rows))
    assert ours.to_py() == [row + [None] * (width - len(row)) for row in rows]
    assert ours.to_ragged().to_list() == rows
    assert MaskedTensor.from_ragged(ragged, [None, 4]).shape == [len(rows), 4]


def test_valid_items_become_ragged_rows():
    assert DENSE.to_ragged().to_list() == [[1.0], [3.0, 4.0]]
    assert ROWS.to_ragged().to_list() == [[1.0, 2.0], []]
    assert ITEMS.to_ragged().to_list() == [[1], [], [3]]
    assert LISTS.to_ragged().to_list() == [[1, 2], [], [], [3]]
    steps = MaskedTensor(tf.ones([1, 2, 3]), [[True, False]])
    assert steps.to_ragged().to_list() == [[[1.0, 1.0, 1.0]]]
    deep = tf.ragged.constant([[[1], [2, 3]], []])
    assert MaskedTensor.from_ragged(deep).to_py() == [[[1, None], [2, 3]], [[None] * 2] * 2]


# TensorFlow's generic functions.


@pytest.mark.parametrize("value", [DENSE, ROWS, LISTS, ITEMS, RECORDS, STEPS])
def test_datasets_batch_and_unbatch(value):
    dataset = tf.data.Dataset.from_tensor_slices(value)
    elements = [element.to_py() for element in dataset]
    if value is not ROWS and value is not LISTS:  # of a row that is not valid, each number is not
        assert elements == value.to_py()
    batches = [batch.to_py() for batch in dataset.batch(2)]
    assert [row for batch in batches for row in batch] == value.to_py()
    again = dataset.batch(2).map(tf.identity).unbatch().batch(9)
    assert next(iter(again)).to_py() == value.to_py()


def test_loops_and_branches():
    @tf.function
    def doubled(x):
        return tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x + x), (0, x))[1]

    assert doubled(DENSE).to_py() == [[8.0, None], [24.0, 32.0]]
    assert tf.map_fn(lambda row: row * 2.0, DENSE).to_py() == [[2.0, None], [6.0, 8.0]]
    choose = tf.function(lambda yes: tf.cond(yes, lambda: DENSE, lambda: -DENSE))
    assert choose(tf.constant(False)).to_py() == [[-1.0, None], [-3.0, -4.0]]


@pytest.mark.whole("starts a process")
@pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type extensor:UserWarning:tensorflow"
)
def test_a_saved_model_takes_masked_values_in_a_fresh_process(run_python, tmp_path):
    records = RECORDS.__tf_type_spec__().unstacked()

    @tf.function(
        input_signature=[
            Spec(tf.TensorSpec([None])),
            Spec(tf.RaggedTensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.bool)),
            records.stacked(None),
        ]
    )
    def means(numbers, lists, records):
        return tf.reduce_mean(numbers), tf.reduce_sum(lists, 1), records["title"]

    module = tf.Module()
    module.means = means
    folder = str(tmp_path / "model")
    tf.saved_model.save(module, folder)
    run_python(f"""
        import numpy as np
        import tensorflow as tf
        import extensor as xt

        M = xt.types.MaskedTensor
        model = tf.saved_model.load({folder!r})
        records = xt.DenseStructuredTensor(
            [2], {{"title": ["a", "b"], "minutes": tf.ragged.constant([[1], []])}})
        lists = M(tf.ragged.constant([[1, 2], [3]]), [True, False])
        mean, sums, titles = model.means(
            M([1.0, np.nan, 3.0], [True, False, True]), lists, M(records, [False, True]))
        assert mean.to_py() == 2.0
        assert sums.to_py() == [3, None]
        assert titles.to_py() == [None, b"b"]
        assert model.means([1.0, 5.0], lists, M(records, [True, True]))[0].to_py() == 3.0
    """)


# Casting.


def test_a_plain_value_is_cast_to_a_masked_one():
    spec = Spec(tf.TensorSpec([None]))
    assert spec.cast(tf.constant([1.0, 2.0])).to_py() == [1.0, 2.0]
    assert spec.cast([1, 2]).to_py() == [1.0, 2.0]
    assert spec.cast(np.ma.array([1.0, 2.0], mask=[True, False])).to_py() == [None, 2.0]
    assert spec.cast({"values": [1.0], "mask": [False]}).to_py() == [None]
    value = MaskedTensor([1.0])
    assert spec.cast(value) is value
    ragged = LISTS.__tf_type_spec__()
    assert ragged.cast([[1], [], [2], []]).to_py() == [[1], [], [2], []]
    assert ITEMS.__tf_type_spec__().cast(LISTS.values[:3]).mask.to_list() == [[True] * 2, [], []]
    assert RECORDS.__tf_type_spec__().cast([BREAD] * 3).to_py() == [BREAD] * 3
    assert RECORDS.__tf_type_spec__().cast(_records()).to_py() == [BREAD, NULL, SOUP]
    for wrong in (tf.constant([1, 2]), tf.constant("a"), LISTS, [["a"]]):
        with pytest.raises((xt.errors.DTypeError, xt.errors.StructureError)):
            spec.cast(wrong)


def test_the_common_type_of_plain_and_masked_values_is_masked():
    @tf.function
    def choose(yes, x):
        return tf.cond(yes, lambda: x, lambda: x.values * 2)

    assert choose(tf.constant(True), ROWS).to_py() == [[1.0, 2.0], None]
    assert choose(tf.constant(False), ROWS).to_py() == [[2.0, 4.0], [6.0, 8.0]]
    assert choose(tf.constant(False), ITEMS).to_py() == [[2, 4], [], [6]]
    assert choose(tf.constant(False), LISTS).to_py() == [[2, 4], [], [], [6]]
    pick = tf.function(lambda yes, x: tf.cond(yes, lambda: x.values, lambda: x))
    assert pick(tf.constant(True), RECORDS).to_py() == [BREAD, NULL, SOUP]
    assert pick(tf.constant(False), RECORDS).to_py() == [BREAD, None, SOUP]

    @tf.function
    def added(plain, x):
        return tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y + x), (0, plain))[1]

    assert added(tf.ones([2, 2]), DENSE).to_py() == [[3.0, None], [7.0, 9.0]]

    spec = Spec(tf.TensorSpec([2, 3]))
    assert spec.castable_type(tf.TensorSpec([4, 3])) == Spec(tf.TensorSpec([None, 3]))
    assert spec.castable_type(tf.TensorSpec([2, 3], tf.int32)) is None
    ragged = spec.castable_type(tf.RaggedTensorSpec([2, None]))
    assert ragged == Spec(tf.RaggedTensorSpec([2, None]))
    assert ragged.cast(MaskedTensor([[1.0, 2.0]] * 2, [[True, False]] * 2)).to_py() == [
        [1.0, None], [1.0, None]
    ]  # fmt: skip
    assert spec.castable_type(tf.TensorSpec(None)).mask.shape.rank is None
    joined = tf.data.Dataset.from_tensors(DENSE).concatenate(
        tf.data.Dataset.from_tensors(DENSE.values)
    )
    assert [type(element) for element in joined] == [MaskedTensor, MaskedTensor]


# Keras.


def test_keras_gets_its_mask():
    values, mask = DENSE.__keras_mask__()
    assert values.numpy().tolist() == [[1.0, 0.0], [3.0, 4.0]]
    assert mask is DENSE.mask
    steps = MaskedTensor(tf.ones([1, 3, 2]), [[[True, False], [False, False], [True, True]]])
    assert steps.__keras_mask__()[1].numpy().tolist() == [[True, False, True]]
    assert MaskedTensor(["a", "b"], [True, False]).__keras_mask__()[0].numpy().tolist() == [
        b"a",
        b"",
    ]
    values, mask = LISTS.__keras_mask__()
    assert values.numpy().tolist() == [[1, 2], [0, 0], [0, 0], [3, 0]]
    assert mask.numpy().tolist() == [[True, True], [False] * 2, [False] * 2, [True, False]]


def test_keras_layers_ignore_masked_steps():
    steps = MaskedTensor(tf.constant([[[1.0], [np.nan], [3.0]]]), [[True, False, True]])
    plain = xt.keras.Masked()(steps)
    assert keras.layers.GlobalAveragePooling1D()(plain).numpy().tolist() == [[2.0]]
    lstm = keras.layers.LSTM(2)
    kept = tf.constant([[[1.0], [3.0]]])
    np.testing.assert_allclose(lstm(plain), lstm(kept), rtol=1e-6)


def test_a_keras_model_of_masked_steps():
    spec = Spec(tf.TensorSpec([None, 3, 1]), tf.TensorSpec([None, 3], tf.bool))
    inputs = xt.keras.Input(spec)
    hidden = keras.layers.GlobalAveragePooling1D()(xt.keras.Masked()(inputs))
    weights = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = xt.keras.Model(inputs, weights(hidden))
    values = tf.constant([[[1.0], [np.nan], [3.0]], [[4.0], [5.0], [np.nan]]])
    steps = MaskedTensor(values, [[True, False, True], [True, True, False]])
    assert model.predict(steps, batch_size=1, verbose=0).tolist() == [[2.0], [4.5]]
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(steps, np.array([[4.0], [9.0]]), epochs=1, batch_size=2, verbose=0)
    trained = model.predict(steps, verbose=0)
    assert np.isfinite(trained).all()
    assert (trained > [[2.0], [4.5]]).all()


def test_masked_values_pass_through_layers():
    class Double(xt.keras.Layer):
        def call(self, x):
            return x * 2

    inputs = xt.keras.Input(Spec(tf.TensorSpec([None, 2])))
    model = xt.keras.Model(inputs, Double()(inputs))
    result = model.predict(DENSE, batch_size=1, verbose=0)
    assert isinstance(result, MaskedTensor)
    assert result.to_py() == [[2.0, None], [6.0, 8.0]]


def test_the_type_needs_no_keras(run_python):
    run_python("""
        import sys
        from extensor._types.masked.value import MaskedTensor

        assert MaskedTensor([1.0], [False]).__keras_mask__()[0].numpy() == [0.0]
        assert "extensor.keras" not in sys.modules
    """)


# Bad input.


@pytest.mark.parametrize(
    ("values", "mask", "match"),
    [
        ([1, 2], [True], r"mask: expected shape \(2,\), or .*, got shape \(1,\)"),
        ([[1, 2]], [True, False], r"expected shape \(1, 2\), or .*, got shape \(2,\)"),
        ([1, 2], [[True, True]], r"expected shape \(2,\), or .*, got shape \(1, 2\)"),
        (LISTS.values, [True], r"expected a ragged mask of shape \(4, None\), .* got shape \(1,\)"),
        (LISTS.values, tf.ones([4, 2], tf.bool), r"ragged mask .* got shape \(4, 2\)"),
        (LISTS.values, ITEMS.mask, r"ragged mask .* got shape \(3, None\)"),
        (ITEMS.values, ITEMS.mask[::-1], "got a ragged mask with other row lengths"),
        (tf.ones([3, 2]), ITEMS.mask, r"expected shape \(3, 2\), or .* got shape \(3, None\)"),
        (_records(), [True], r"expected shape \(3,\), or .*, got shape \(1,\)"),
    ],
)
def test_a_mask_of_another_shape_is_an_error(values, mask, match):
    with pytest.raises(xt.errors.StructureError, match=match):
        MaskedTensor(values, mask)


def test_a_mask_of_another_shape_is_an_error_in_graphs_and_specs():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 4], tf.bool)])
    def build(values, mask):
        return MaskedTensor(values, mask)

    with pytest.raises(xt.errors.StructureError, match=r"got shape \(None, 4\)"):
        build(tf.ones([2, 3]), tf.ones([2, 4], tf.bool))
    with pytest.raises(xt.errors.StructureError, match=r"got shape \(2,\)"):
        Spec(tf.TensorSpec([3]), tf.TensorSpec([2], tf.bool))


def _asserted(masked):
    tf.debugging.assert_equal(tf.shape(masked.values), tf.shape(masked.mask))
    return masked


def _ensured(masked):
    return tf.ensure_shape(masked, [3])


@pytest.mark.parametrize("held", [_asserted, _ensured])
def test_sizes_unknown_in_a_graph_are_checked_when_it_runs(held):
    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool)])
    def total(values, mask):
        return tf.reduce_sum(held(MaskedTensor(values, mask)))

    assert total([1.0, 2.0, 4.0], [True, False, True]).to_py() == 5.0
    for mask in ([True], [True, False]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            total([1.0, 2.0, 4.0], mask)


def test_wrong_masks_and_unsupported_operations_are_errors():
    with pytest.raises(xt.errors.DTypeError, match="expected bool, got int32"):
        MaskedTensor([1, 2], [1, 0])
    with pytest.raises(xt.errors.DTypeError, match="Combine the masks"):
        MaskedTensor(DENSE, DENSE.mask)
    with pytest.raises(xt.errors.StructureError, match="rank 2 or more"):
        DENSE[0].to_ragged()
    with pytest.raises(xt.errors.DTypeError, match="to_py"):
        LISTS.to_numpy()
    with pytest.raises(xt.errors.DTypeError, match="Select a field"):
        RECORDS.__keras_mask__()
    with pytest.raises(xt.errors.DTypeError, match="Select a field"):
        RECORDS.to_ragged()
    with pytest.raises(xt.errors.StructureError, match="a mask of rank 1"):
        tf.stack([RECORDS, RECORDS]).fill(BREAD)
    with pytest.raises(xt.errors.ExtensorError):
        RECORDS.fill({"titel": ""})
    with pytest.raises(xt.errors.DTypeError, match=r"tf\.concat: expected values of"):
        tf.concat([RECORDS, RECORDS["title"]], 0)
    with pytest.raises(TypeError, match="MaskedTensor declined: its handler"):
        tf.abs(RECORDS)


def test_a_deferred_mask_is_made_once():
    made = []
    mask = tf.constant([True, False])
    value = MaskedTensor._with_late_mask(tf.constant([31, 0]), lambda: made.append(mask) or mask)
    assert value.shape == [2]
    assert value.dtype == tf.int32
    assert not made
    assert value.mask is mask
    assert value.to_py() == [31, None]
    assert len(made) == 1


def test_a_deferred_value_has_no_other_attributes():
    value = MaskedTensor._with_late_mask(tf.constant([31, 0]), lambda: tf.constant([True, False]))
    assert not hasattr(value, "masks")
    assert hasattr(value, "mask")
    with pytest.raises(AttributeError, match=r"MaskedTensor.*nope"):
        value.nope  # noqa: B018 - the attribute is the test
    with pytest.raises(AttributeError, match="mask"):
        object.__new__(MaskedTensor).mask  # noqa: B018 - the attribute is the test
