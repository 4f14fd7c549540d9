"""`Dataset.ragged_batch`, `padded_batch` and other functions for values of different sizes."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor._protocol import dataset_batch as _elements
from tests.apis.kinds import assert_same, recipes
from tests.apis.matrix import RUN, row
from tests.apis.test_data import holds, slices
from tests.samples.types import MaskedTensor, MaskedTensorSpec

Dataset = tf.data.Dataset
Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


@xt.extension_type
class Sentence:
    """Holds numbers that are dense or ragged, and a scalar."""

    words: tf.Tensor | tf.RaggedTensor
    score: tf.Tensor
    language: str = "en"


def sized(make, sizes=(2, 0, 3)):
    """A dataset of values made of vectors 0, 1, ... of the given sizes, which are not static."""
    return Dataset.from_tensor_slices(list(sizes)).map(lambda n: make(tf.range(n)))


def sentence(numbers):
    return Sentence(numbers, tf.size(numbers))


def masked(numbers):
    return MaskedTensor(tf.cast(numbers, tf.float32), numbers >= 0)


def record(numbers):
    return Dense(
        [],
        {
            "numbers": numbers,
            "texts": tf.strings.as_string(numbers),
            "pairs": tf.stack([numbers, numbers], 1),
            "size": tf.size(numbers),
            "inner": Dense([], {"flags": numbers > 0}),
        },
    )


def rows(numbers):
    return Dense([None], {"n": numbers, "pair": tf.stack([numbers, numbers], 1)})


def elements(run, make_dataset):
    """The first two elements of a dataset that is made and iterated eagerly or in a graph."""

    def iterate():
        iterator = iter(make_dataset())
        return [next(iterator), next(iterator)]

    return run(iterate)


RUNS = pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))


# Dataset.ragged_batch


@row("Dataset.ragged_batch")
def test_ragged_batch(kind, run):
    batches = [kind.make(2), kind.make(1, 2)]
    holds(run, lambda x: slices(x).ragged_batch(2), kind.make(3), batches)
    holds(run, lambda x: slices(x).ragged_batch(2, drop_remainder=True), kind.make(3), batches[:1])


@RUNS
def test_components_of_different_sizes_become_ragged(run):
    first, second = elements(run, lambda: sized(sentence).ragged_batch(2))
    assert isinstance(first.words, tf.RaggedTensor)
    assert first.words.to_list() == [[0, 1], []]
    assert first.score.numpy().tolist() == [2, 0]
    assert first.language == "en"
    assert second.words.to_list() == [[0, 1, 2]]


@RUNS
def test_fields_that_differ_in_size_become_ragged(run):
    first, _ = elements(run, lambda: sized(record).ragged_batch(2))
    assert first.shape == [2]
    assert first["numbers"].to_list() == [[0, 1], []]
    assert first["texts"].to_list() == [[b"0", b"1"], []]
    assert first["pairs"].to_list() == [[[0, 0], [1, 1]], []]
    assert first["pairs"].ragged_rank == 1
    assert first["size"].numpy().tolist() == [2, 0]
    assert first["inner.flags"].to_list() == [[False, True], []]


@RUNS
def test_records_that_differ_in_number_become_ragged_records(run):
    first, second = elements(run, lambda: sized(rows).ragged_batch(2))
    assert type(first) is Ragged
    assert first.row_lengths().numpy().tolist() == [2, 0]
    assert first.to_py()[0] == [{"n": 0, "pair": [0, 0]}, {"n": 1, "pair": [1, 1]}]
    assert second.row_lengths().numpy().tolist() == [3]
    deep = lambda n: Dense([None, None], {"n": tf.stack([n, n])})  # noqa: E731
    first, _ = elements(run, lambda: sized(deep).ragged_batch(2))
    assert first.to_py() == [[[{"n": 0}, {"n": 1}]] * 2, [[], []]]


@pytest.mark.whole("traces many datasets")
@RUNS
def test_fields_of_records_that_differ_in_number_become_ragged_too(run):
    def records(numbers):
        square = tf.ones([tf.size(numbers), tf.size(numbers)], tf.int32)
        words = tf.RaggedTensor.from_tensor(square)
        return Dense([None], {"square": square, "words": words})

    first, _ = elements(run, lambda: sized(records, (2, 1, 3)).ragged_batch(2))
    for field in ("square", "words"):
        assert first[field].to_list() == [[[1, 1], [1, 1]], [[1]]]
    cut = lambda n: Ragged.from_row_splits(records(n), tf.stack([0, tf.size(n, tf.int64)]))  # noqa: E731
    first, _ = elements(run, lambda: sized(cut, (2, 1, 3)).ragged_batch(2))
    assert first["square"].to_list() == [[[[1, 1], [1, 1]]], [[[1]]]]


@RUNS
def test_a_nest_of_values_and_tensors_becomes_ragged(run):
    nested = lambda n: {"value": sentence(n), "pair": (n, tf.size(n))}  # noqa: E731
    make = lambda: sized(nested).ragged_batch(2, row_splits_dtype=tf.int32)  # noqa: E731
    first, _ = elements(run, make)
    assert first["value"].words.to_list() == first["pair"][0].to_list() == [[0, 1], []]
    assert first["value"].words.row_splits.dtype == first["pair"][0].row_splits.dtype == tf.int32
    assert first["pair"][1].numpy().tolist() == [2, 0]


def test_a_type_that_cannot_be_ragged_is_an_error_at_once():
    for make in (masked, lambda n: Dense([], {"field": masked(n)})):
        with pytest.raises(xt.errors.DTypeError, match=r"ragged_batch: .*MaskedTensorSpec.*padded"):
            sized(make).ragged_batch(2)

    @xt.extension_type
    class Only:
        dense: tf.Tensor

    with pytest.raises(xt.errors.DTypeError, match=r"Declare the field as tf\.Tensor \|"):
        sized(Only).ragged_batch(2)


def test_a_type_keeps_its_own_stacking():
    graphs = [xt.types.TensorDigraph([0] * n, [1] * n, num_nodes=3) for n in (1, 2)]
    dataset = tf.data.experimental.from_list(graphs)
    for batches in (dataset.ragged_batch(2), dataset.padded_batch(2)):
        [batch] = batches
        [expected] = dataset.batch(2)
        assert_same(batch, expected)


# Dataset.padded_batch


@row("Dataset.padded_batch")
def test_padded_batch(kind, run):
    batches = [kind.make(2), kind.make(1, 2)]
    holds(run, lambda x: slices(x).padded_batch(2), kind.make(3), batches)
    holds(run, lambda x: slices(x).padded_batch(2, drop_remainder=True), kind.make(3), batches[:1])


@RUNS
def test_components_of_different_sizes_are_padded_to_the_longest(run):
    first, second = elements(run, lambda: sized(masked).padded_batch(2))
    assert type(first) is MaskedTensor
    assert first.values.numpy().tolist() == [[0, 1], [0, 0]]
    assert first.mask.numpy().tolist() == [[True, True], [False, False]]
    assert second.values.numpy().tolist() == [[0, 1, 2]]
    first, _ = elements(run, lambda: sized(record).padded_batch(2))
    assert first.shape == [2]
    assert first["texts"].numpy().tolist() == [[b"0", b"1"], [b"", b""]]
    assert first["pairs"].numpy().tolist() == [[[0, 0], [1, 1]], [[0, 0], [0, 0]]]
    assert first["size"].numpy().tolist() == [2, 0]
    assert first["inner.flags"].numpy().tolist() == [[False, True], [False, False]]


@RUNS
def test_records_that_differ_in_number_are_padded(run):
    first, second = elements(run, lambda: sized(rows).padded_batch(2))
    assert type(first) is Dense
    assert (first.shape, second.shape) == ([2, 2], [1, 3])
    assert first["n"].numpy().tolist() == [[0, 1], [0, 0]]
    words = lambda n: Dense([None], {"words": tf.RaggedTensor.from_tensor(n[:, None])})  # noqa: E731
    with pytest.raises(ValueError, match=r"padded_batch, words: expected a dense.*ragged_batch"):
        sized(words).padded_batch(2)


@RUNS
@pytest.mark.parametrize(
    "shapes",
    [
        [4],
        [tf.constant(4, tf.int64)],
        tf.TensorShape([4]),
        np.array([4]),
        tf.constant([4], tf.int64),
        ([4], [4]),
        (tf.TensorShape([4]), [4]),
    ],
    ids=str,
)
def test_one_shape_is_that_of_all_components(run, shapes):
    make = lambda: sized(masked).padded_batch(2, padded_shapes=shapes)  # noqa: E731
    first, _ = elements(run, make)
    assert first.values.numpy().tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    assert first.mask.shape == [2, 4]


def test_static_shapes_are_known():
    batches = sized(masked).padded_batch(2, [4], drop_remainder=True)
    assert batches.element_spec.shape == [2, 4]
    batches = sized(record).padded_batch(2, {"pairs": [7, None]})
    assert batches.element_spec.field_spec("pairs").shape.as_list() == [None, 7, 2]
    assert batches.element_spec.field_spec("numbers").shape.as_list() == [None, None]


@RUNS
def test_components_are_padded_by_their_names(run):
    make = lambda: sized(record).padded_batch(  # noqa: E731
        2,
        padded_shapes={"numbers": [4], "pairs": [-1, 3], "inner": {"flags": [3]}},
        padding_values={"numbers": -1, "texts": "-", "inner": {"flags": True}},
    )
    first, _ = elements(run, make)
    assert first["numbers"].numpy().tolist() == [[0, 1, -1, -1], [-1, -1, -1, -1]]
    assert first["texts"].numpy().tolist() == [[b"0", b"1"], [b"-", b"-"]]
    assert first["pairs"].numpy().tolist() == [[[0, 0, 0], [1, 1, 0]], [[0, 0, 0], [0, 0, 0]]]
    assert first["inner.flags"].numpy().tolist() == [[False, True, True], [True, True, True]]


@RUNS
def test_a_nest_of_values_and_tensors_is_padded(run):
    nested = lambda n: {"value": masked(n), "pair": (n, sentence(n))}  # noqa: E731
    make = lambda: sized(nested).padded_batch(  # noqa: E731
        2,
        padded_shapes={"value": [3], "pair": ([4], {"words": [5]})},
        padding_values={"value": (-1.0, None), "pair": (7, None)},
    )
    first, _ = elements(run, make)
    assert first["value"].values.numpy().tolist() == [[0, 1, -1], [-1, -1, -1]]
    assert not first["value"].mask.numpy()[1].any()
    assert first["pair"][0].numpy().tolist() == [[0, 1, 7, 7], [7, 7, 7, 7]]
    assert first["pair"][1].words.shape == [2, 5]
    make = lambda: sized(lambda n: (n, sentence(n))).padded_batch(2, padding_values=9)  # noqa: E731
    first, _ = elements(run, make)
    assert first[0].numpy().tolist() == first[1].words.numpy().tolist() == [[0, 1], [9, 9]]


@RUNS
def test_known_sizes_are_padded_too(run):
    value = Sentence(tf.constant([[1, 2], [3, 4]]), tf.constant([1.0, 2.0]))
    make = lambda: slices(value).padded_batch(1, {"words": [3]})  # noqa: E731
    first, second = elements(run, make)
    assert first.words.numpy().tolist() == [[1, 2, 0]]
    assert second.words.numpy().tolist() == [[3, 4, 0]]
    fixed = Dense([2], {"x": [[1.0], [2.0]]})
    first, _ = elements(run, lambda: slices(fixed).padded_batch(1, {"x": [2]}))
    assert first["x"].numpy().tolist() == [[1.0, 0.0]]


@pytest.mark.whole("draws many values")
@RUNS
def test_rows_of_ragged_fields_stay_ragged_unless_a_shape_is_given(run):
    value = recipes(4)
    first, _ = elements(run, lambda: slices(value).padded_batch(2))
    assert first["tags"].to_list() == [[], [b"tag 10"]]
    assert type(first["steps"]) is Ragged
    first, _ = elements(run, lambda: slices(value).padded_batch(2, {"tags": [None]}))
    assert first["tags"].numpy().tolist() == [[b""], [b"tag 10"]]
    first, _ = elements(run, lambda: slices(value).padded_batch(2, {"tags": [2]}, {"tags": "-"}))
    assert first["tags"].numpy().tolist() == [[b"-", b"-"], [b"tag 10", b"-"]]


@RUNS
def test_a_size_that_is_too_small_is_an_error(run):
    error = (xt.errors.StructureError, tf.errors.InvalidArgumentError)
    with pytest.raises(error, match=r"a size that can be padded to .*larger size in dimension 0"):
        elements(run, lambda: sized(masked).padded_batch(2, [1]))


@pytest.mark.parametrize(
    ("make", "shapes", "values", "says"),
    [
        (masked, [1, 2], None, r"padded_batch, 0: expected a shape that \(None,\) can be "),
        (masked, ([1], [1], [1]), None, "1 item for each of the components 0, 1, got 3"),
        (record, {"number": [3]}, None, "padded_shapes: .*only names of the components inner.*"),
        (record, {"inner": {"flag": [3]}}, None, "padded_shapes, inner: .*flags, got flag"),
        (record, {"pairs": [None, 1]}, None, r"pairs: expected a shape that \(None, 2\) can be"),
        (record, [3], None, r"padded_batch, \w+: expected a shape that .* can be padded to"),
        (record, {"pairs": tf.TensorShape(None)}, None, "a padded shape of known rank"),
        (record, None, {"texts": 3}, "texts: expected a value that converts to .*string"),
        (record, None, {"numbers": 0.5}, "padded_batch, numbers: expected values that dtype int32"),
        (record, None, {"number": 0}, "padding_values: .*got number"),
        (lambda n: Sentence(tf.RaggedTensor.from_tensor(n[:, None]), 1), {"words": [3, 3]}, None,
         "padded_batch, words: expected no padded shape, because this component is not"),
    ],
)  # fmt: skip
def test_shapes_and_values_that_do_not_fit_are_errors_at_once(make, shapes, values, says):
    with pytest.raises(xt.ExtensorError, match=says):
        sized(make).padded_batch(2, shapes, values)


def test_a_part_of_unknown_rank_needs_a_shape():
    spec = Sentence.Spec(tf.TensorSpec(None, tf.int32), tf.TensorSpec([], tf.int32), "en")
    dataset = Dataset.from_generator(
        lambda: iter([Sentence([1], 1), Sentence([1, 2], 1)]), output_signature=spec
    )
    with pytest.raises(xt.errors.StructureError, match="words: expected a padded shape of known"):
        dataset.padded_batch(2)
    [batch] = dataset.padded_batch(2, {"words": [None]})
    assert batch.words.numpy().tolist() == [[1, 0], [1, 2]]


# Dataset.bucket_by_sequence_length


@pytest.mark.whole("traces many datasets")
@row("Dataset.bucket_by_sequence_length")
def test_bucket_by_sequence_length(kind, run):
    value = kind.make(4)

    def bucketed(x, **options):
        length = lambda e: tf.cast(kind.floats(e), tf.int32)  # noqa: E731
        return slices(x).bucket_by_sequence_length(length, [2], [2, 2], **options)

    for options in ({"no_padding": True}, {}):
        expected = [kind.make(2), kind.make(2, 2)]
        holds(run, lambda x, options=options: bucketed(x, **options), value, expected)


@pytest.mark.whole("traces many datasets")
@RUNS
def test_buckets_are_padded(run):
    sizes = (1, 4, 2, 5)

    def bucketed(make, **options):
        length = lambda value: tf.size(tf.nest.flatten(value, expand_composites=True)[0])  # noqa: E731
        return sized(make, sizes).bucket_by_sequence_length(length, [3], [2, 2], **options)

    def values(**options):
        batches = elements(run, lambda: bucketed(masked, **options))
        return [batch.values.numpy().tolist() for batch in batches]

    assert values() == [[[0, 0], [0, 1]], [[0, 1, 2, 3, 0], [0, 1, 2, 3, 4]]]
    assert values(padded_shapes=[6], padding_values=(-1.0, False))[0] == [
        [0, -1, -1, -1, -1, -1], [0, 1, -1, -1, -1, -1]
    ]  # fmt: skip
    options = {"padded_shapes": {"numbers": [6]}, "padding_values": {"numbers": -1}}
    words = lambda n: Dense([], {"numbers": n, "others": n})  # noqa: E731
    first, _ = elements(run, lambda: bucketed(words, **options))
    assert first["numbers"].shape == [2, 6]
    assert first["others"].numpy().tolist() == [[0, 0], [0, 1]]


def test_buckets_without_padding_take_values_that_cannot_be_padded():
    words = lambda n: Dense([None], {"words": tf.RaggedTensor.from_tensor(n[:, None])})  # noqa: E731
    length = lambda records: tf.size(records["words"].values)  # noqa: E731
    sizes = {"bucket_boundaries": [3], "bucket_batch_sizes": [2, 2]}
    dataset = sized(words, (2, 2))
    [batch] = dataset.bucket_by_sequence_length(length, **sizes, no_padding=True)
    assert batch["words"].to_list() == [[[0], [1]], [[0], [1]]]
    with pytest.raises(xt.errors.StructureError, match="padded_batch, words: expected a dense"):
        dataset.bucket_by_sequence_length(length, **sizes)


@RUNS
def test_buckets_are_padded_to_their_boundaries(run):
    def bucketed():
        length = lambda value: tf.size(value.values)  # noqa: E731
        return sized(masked, (1, 2, 3, 4)).bucket_by_sequence_length(
            length, [4, 6], [3, 3, 3], pad_to_bucket_boundary=True
        )

    first, second = elements(run, bucketed)
    assert first.values.shape == [3, 3]
    assert second.values.shape == [1, 5]


# Dataset.unique


@pytest.mark.whole("traces many datasets")
@row("Dataset.unique")
def test_unique(kind, run):
    value = kind.make(3)
    twice = lambda x: slices(x).concatenate(slices(x)).unique()  # noqa: E731
    holds(run, twice, value, kind.examples(0, 1, 2))
    assert twice(value).element_spec == slices(value).element_spec
    pairs = lambda x: Dataset.zip(slices(x), {"n": Dataset.range(3)}).repeat(2).unique()  # noqa: E731
    expected = [(e, {"n": tf.constant(n, tf.int64)}) for n, e in enumerate(kind.examples(0, 1, 2))]
    holds(run, pairs, value, expected)


@pytest.mark.whole("traces many datasets")
@RUNS
def test_unique_compares_all_components(run):
    sizes = (1, 2, 1, 2, 0, 0)
    found = elements(run, lambda: sized(sentence, sizes).unique())
    assert [e.words.numpy().tolist() for e in found] == [[0], [0, 1]]
    shapes = lambda n: Sentence(tf.zeros([n[-1], 2 - n[-1]]), 1)  # noqa: E731
    found = elements(run, lambda: sized(shapes, (1, 2, 3)).unique().take(2))
    assert [e.words.shape.as_list() for e in found] == [[0, 2], [1, 1]]
    floats = tf.constant([np.nan, 0.0, np.nan, 1.0, 0.0])
    found = list(slices(Sentence(floats, floats)).unique())
    np.testing.assert_array_equal([e.words for e in found], [np.nan, 0.0, 1.0])


# Dataset.as_numpy_iterator


IN_NUMPY = {
    "masked": [(0.0, True), (1.0, False)],
    "measured": [
        {"masked": (0.0, True), "weight": 0.5},
        {"masked": (1.0, False), "weight": 1.5},
    ],
    "recipes": [
        {
            "title": b"recipe 0",
            "score": 0.0,
            "tags": [],
            "author": {"age": 20},
            "steps": {"minutes": []},
        },
        {
            "title": b"recipe 1",
            "score": 1.0,
            "tags": [b"tag 10"],
            "author": {"age": 21},
            "steps": {"minutes": [10.0]},
        },
    ],
}


def as_lists(value):
    """The values as Python data; fails if they are not NumPy arrays and scalars."""

    def listed(leaf):
        assert isinstance(leaf, np.ndarray | np.generic | bytes)
        return leaf.tolist() if hasattr(leaf, "tolist") else leaf

    if isinstance(value, dict):
        return {name: as_lists(item) for name, item in value.items()}
    return tuple(map(as_lists, value)) if isinstance(value, tuple) else listed(value)


@row("Dataset.as_numpy_iterator")
def test_as_numpy_iterator(kind, run):
    dataset = slices(kind.make(2))
    iterator = run(dataset.as_numpy_iterator)
    assert isinstance(iterator, tf.data.NumpyIterator)
    assert [as_lists(element) for element in iterator] == IN_NUMPY[kind.name]
    nested = Dataset.zip({"a": dataset, "b": (Dataset.range(2), dataset)})
    found = [as_lists(element) for element in nested.as_numpy_iterator()]
    expected = [{"a": e, "b": (n, e)} for n, e in enumerate(IN_NUMPY[kind.name])]
    assert found == expected


def test_batches_of_records_are_columns_in_numpy():
    [batch] = slices(recipes(3)).batch(3).as_numpy_iterator()
    np.testing.assert_array_equal(batch["score"], [0.0, 1.0, 2.0])
    assert [row.tolist() for row in batch["tags"]] == [[], [b"tag 10"], [b"tag 20", b"tag 21"]]
    assert [row.tolist() for row in batch["steps"]["minutes"]] == [[], [10.0], [20.0, 21.0]]
    assert not batch["score"].flags.writeable
    with pytest.raises(xt.errors.DTypeError, match="numpy: title: expected tensors that hold"):
        tf.function(lambda x: x.numpy())(recipes(1))


def test_a_class_defines_its_value_in_numpy():
    class Said(MaskedTensor):
        def __tf_type_spec__(self):
            return SaidSpec(self.values.shape, self.values.dtype)

        def numpy(self):
            return np.ma.masked_array(self.values.numpy(), ~self.mask.numpy())

    class SaidSpec(MaskedTensorSpec):
        value_type = Said

        def from_components(self, components):
            return Said(*components)

    said = Said(tf.constant([1.0, 2.0]), tf.constant([True, False]))
    [array] = Dataset.from_tensors(said).as_numpy_iterator()
    assert array.tolist() == [1.0, None]


def test_as_numpy_iterator_is_a_checkpoint_as_before(tmp_path):
    iterator = slices(recipes(3)).as_numpy_iterator()
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "at"))
    assert next(iterator)["score"] == 1.0
    tf.train.Checkpoint(iterator=iterator).read(path)
    assert next(iterator)["score"] == 1.0


def test_as_numpy_iterator_needs_eager_execution_and_no_datasets():
    dataset = slices(recipes(2))
    with pytest.raises(RuntimeError, match="only supported in eager mode"):
        tf.function(lambda: dataset.as_numpy_iterator() and 0)()
    windows = Dataset.zip(dataset, Dataset.range(2).window(1))
    with pytest.raises(TypeError, match="not supported for datasets that produce values of type"):
        windows.as_numpy_iterator()


# Everybody else's datasets


def test_datasets_without_extension_values_are_handled_by_tensorflow(monkeypatch):
    ragged = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]]))
    numbers = Dataset.range(3)

    def never(*args, **kwargs):
        raise AssertionError("asked")

    for name in ("ragged_batch", "padded_batch", "bucket_shapes"):
        monkeypatch.setattr(_elements, name, never)
    assert [b.to_list() for b in sized(lambda n: n).ragged_batch(2)] == [[[0, 1], []], [[0, 1, 2]]]
    assert len(list(sized(lambda n: n).padded_batch(2, [4], -1))) == 2
    assert len(list(numbers.repeat(2).unique())) == 3
    buckets = sized(lambda n: n).bucket_by_sequence_length(tf.size, [2], [2, 2])
    assert len(list(buckets)) == 2
    assert type(numbers.as_numpy_iterator()) is tf.data.NumpyIterator
    with pytest.raises(TypeError, match="is only supported for datasets that produce tensor"):
        ragged.padded_batch(2)
    with pytest.raises(TypeError, match="does not support type"):
        Dataset.from_tensors(1.0).unique()


@xt.extension_type
class Track:
    points: tf.Tensor


BATCHED = {
    "a declared type": (
        lambda count: Track(tf.range(float(count))), Track.Spec(tf.TensorSpec([None]))
    ),
    "records": (
        lambda count: Dense([count], {"x": tf.range(float(count))}),
        xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BATCHED)
def test_the_error_for_values_of_other_sizes_names_ragged_batch(kind):
    make, spec = BATCHED[kind]
    dataset = Dataset.from_generator(lambda: map(make, [2, 1]), output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"different shapes.*ragged_batch"):
        list(dataset.batch(2))
    with pytest.raises(xt.errors.StructureError, match=r"ragged_batch|tf\.ragged\.stack"):
        tf.stack([make(2), make(1)])
    with pytest.raises(xt.errors.StructureError, match="ragged_batch"):
        xt.authoring.stack_rows([make(2), make(1)])


def test_the_error_for_plain_tensors_of_other_sizes_is_that_of_tensorflow():
    spec = tf.TensorSpec([None], tf.int32)
    dataset = Dataset.from_generator(lambda: iter([[1], [1, 2]]), output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(dataset.batch(2))
    assert "ragged_batch" not in str(caught.value)
