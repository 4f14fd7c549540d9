"""Datasets of extension values, created and iterated eagerly and inside tf.function."""

import pytest
import tensorflow as tf

from tests.apis.kinds import KINDS, assert_same
from tests.apis.matrix import row

Dataset = tf.data.Dataset

pytestmark = pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type:UserWarning:tensorflow"
)


def holds(run, make_dataset, value, expected):
    """Asserts that the dataset that `make_dataset` makes of a value has these elements."""

    def iterate(value):
        iterator = iter(make_dataset(value))
        elements = [next(iterator) for _ in expected]
        return elements, iterator.get_next_as_optional().has_value()

    elements, is_longer = run(iterate, value)
    assert_same(elements, expected)
    assert not is_longer


def slices(value):
    return Dataset.from_tensor_slices(value)


@row("Dataset.from_tensors")
def test_from_tensors(kind, run):
    value = kind.make(3)
    holds(run, Dataset.from_tensors, value, [value])
    pair = {"a": value, "b": (value, tf.constant(1))}
    holds(run, Dataset.from_tensors, pair, [pair])


@row("Dataset.from_tensor_slices")
def test_from_tensor_slices(kind, run):
    holds(run, slices, kind.make(3), kind.examples(0, 1, 2))


@row("Dataset.from_generator")
def test_from_generator(kind, run):
    values = [kind.make(2), kind.make(1, 2)]

    def generated(_):
        return Dataset.from_generator(lambda: iter(values), output_signature=kind.spec)

    holds(run, generated, 0, values)


@row("Dataset.map")
def test_map(kind, run):
    expected = [kind.doubled(example) for example in kind.examples(0, 1)]
    holds(run, lambda x: slices(x).map(kind.doubled), kind.make(2), expected)


@row("Dataset.batch")
def test_batch(kind, run):
    value, batches = kind.make(3), [kind.make(2), kind.make(1, 2)]
    holds(run, lambda x: slices(x).batch(2), value, batches)
    holds(run, lambda x: slices(x).batch(2, drop_remainder=True), value, batches[:1])
    doubled = [kind.doubled(batch) for batch in batches]
    holds(run, lambda x: slices(x).map(kind.doubled).batch(2), value, doubled)


@row("Dataset.unbatch")
def test_unbatch(kind, run):
    holds(run, lambda x: Dataset.from_tensors(x).unbatch(), kind.make(3), kind.examples(0, 1, 2))


@row("Dataset.rebatch")
def test_rebatch(kind, run):
    batches = [kind.make(2), kind.make(1, 2)]
    holds(run, lambda x: Dataset.from_tensors(x).rebatch(2), kind.make(3), batches)


@pytest.mark.whole("traces many datasets")
@row("Dataset.window")
def test_window(kind, run):
    value = kind.make(4)

    def batches(windows):
        return windows.flat_map(lambda window: window.batch(9))

    sliding = [kind.make(2), kind.make(2, 1), kind.make(2, 2)]
    holds(
        run,
        lambda x: batches(slices(x).window(2, shift=1, drop_remainder=True)),
        value,
        sliding,
    )
    # As with tensors, a nest of values gives a nest of windows.
    nested = {"value": value, "pair": (value, tf.range(4))}
    holds(
        run,
        lambda x: slices(x).window(3).flat_map(lambda w: Dataset.zip((w["value"], w["pair"][1]))),
        nested,
        [(kind.example(n), tf.constant(n)) for n in range(4)],
    )
    pairs = (value, tf.range(4))
    holds(
        run,
        lambda x: slices(x).window(3).flat_map(lambda v, n: Dataset.zip((v, n))),
        pairs,
        [(kind.example(n), tf.constant(n)) for n in range(4)],
    )


def test_windows_of_tensors_are_those_of_tensorflow():
    dataset = Dataset.range(3).window(2)
    assert "Map" not in type(dataset).__name__
    assert [list(window.as_numpy_iterator()) for window in dataset] == [[0, 1], [2]]


@row("Dataset.shuffle")
def test_shuffle(kind, run):
    def sorted_again(x):
        shuffled = slices(x).shuffle(4, seed=1).batch(4)
        return shuffled.map(lambda batch: tf.sort(kind.floats(batch)))

    holds(run, sorted_again, kind.make(4), [tf.constant([0.0, 1.0, 2.0, 3.0])])
    same_order = lambda x: slices(x).shuffle(1)  # noqa: E731
    holds(run, same_order, kind.make(2), kind.examples(0, 1))


@row("Dataset.repeat")
def test_repeat(kind, run):
    holds(run, lambda x: slices(x).repeat(2), kind.make(2), kind.examples(0, 1, 0, 1))


@row("Dataset.take")
def test_take(kind, run):
    holds(run, lambda x: slices(x).take(2), kind.make(3), kind.examples(0, 1))


@row("Dataset.skip")
def test_skip(kind, run):
    holds(run, lambda x: slices(x).skip(2), kind.make(3), kind.examples(2))


@row("Dataset.shard")
def test_shard(kind, run):
    holds(run, lambda x: slices(x).shard(2, 1), kind.make(4), kind.examples(1, 3))


@row("Dataset.filter")
def test_filter(kind, run):
    odd = lambda x: slices(x).filter(lambda e: kind.floats(e) % 2 > 0)  # noqa: E731
    holds(run, odd, kind.make(4), kind.examples(1, 3))


@row("Dataset.zip")
def test_zip(kind, run):
    pairs = lambda x: Dataset.zip(slices(x), slices(x).skip(1))  # noqa: E731
    expected = [tuple(kind.examples(0, 1)), tuple(kind.examples(1, 2))]
    holds(run, pairs, kind.make(3), expected)


@row("Dataset.enumerate")
def test_enumerate(kind, run):
    expected = [(tf.constant(n, tf.int64), kind.example(n)) for n in (0, 1)]
    holds(run, lambda x: slices(x).enumerate(), kind.make(2), expected)


@row("Dataset.interleave")
def test_interleave(kind, run):
    both = lambda x: Dataset.range(2).interleave(lambda _: slices(x), 2)  # noqa: E731
    holds(run, both, kind.make(2), kind.examples(0, 0, 1, 1))


@row("Dataset.flat_map")
def test_flat_map(kind, run):
    both = lambda x: Dataset.range(2).flat_map(lambda _: slices(x))  # noqa: E731
    holds(run, both, kind.make(2), kind.examples(0, 1, 0, 1))
    again = lambda x: Dataset.from_tensors(x).flat_map(slices)  # noqa: E731
    holds(run, again, kind.make(2), kind.examples(0, 1))


@row("Dataset.concatenate")
def test_concatenate(kind, run):
    value, longer = kind.make(2), kind.make(3)
    holds(run, lambda x: slices(x).concatenate(slices(x)), value, kind.examples(0, 1, 0, 1))
    # Batches of other sizes meet at the spec that holds both.
    both = lambda x: Dataset.from_tensors(x[0]).concatenate(Dataset.from_tensors(x[1]))  # noqa: E731
    holds(run, both, [value, longer], [value, longer])
    assert both([value, longer]).element_spec.is_compatible_with(kind.make(4))


@row("Dataset.prefetch")
def test_prefetch(kind, run):
    holds(run, lambda x: slices(x).prefetch(2), kind.make(2), kind.examples(0, 1))


@row("Dataset.cache: in memory")
def test_cache_in_memory(kind, run):
    twice = lambda x: slices(x).cache().repeat(2)  # noqa: E731
    holds(run, twice, kind.make(2), kind.examples(0, 1, 0, 1))


@row("Dataset.cache: in a file")
def test_cache_in_a_file(kind, run, tmp_path):
    twice = lambda x: slices(x).cache(str(tmp_path / "cache")).repeat(2)  # noqa: E731
    holds(run, twice, kind.make(2), kind.examples(0, 1, 0, 1))


@pytest.mark.whole("traces many datasets")
@row("Dataset.snapshot")
def test_snapshot(kind, run, tmp_path):
    kept = lambda x: slices(x).snapshot(str(tmp_path))  # noqa: E731
    for _ in range(2):  # the second reads what the first wrote
        holds(run, kept, kind.make(2), kind.examples(0, 1))


@row("Dataset.save, Dataset.load")
def test_save_and_load(kind, run, tmp_path):
    dataset = slices(kind.make(2))
    dataset.save(str(tmp_path))
    assert_same(list(Dataset.load(str(tmp_path))), kind.examples(0, 1))
    loaded = Dataset.load(str(tmp_path), element_spec=dataset.element_spec)
    assert_same(list(loaded), kind.examples(0, 1))


@pytest.mark.whole("traces many datasets")
@row("Dataset.scan")
def test_scan(kind, run):
    # The state grows: 1, 2, 3 examples.
    batches = [kind.make(1), kind.make(2), kind.make(3)]

    def grown(values):
        def step(state, n):
            new = tf.switch_case(tf.cast(n, tf.int32), [lambda b=b: b for b in values[1:]])
            return new, state

        return Dataset.range(2).scan(values[0], step)

    holds(run, grown, batches, batches[:2])
    again = lambda x: Dataset.range(2).scan(x, lambda s, _: (kind.doubled(s), s))  # noqa: E731
    assert again(batches[2]).element_spec.is_compatible_with(batches[2])
    holds(run, again, batches[2], [batches[2], kind.doubled(batches[2])])


@pytest.mark.whole("traces many datasets")
@row("Dataset.reduce")
def test_reduce(kind, run):
    value = kind.make(3)
    doubled = lambda x: Dataset.range(2).reduce(x, lambda s, _: kind.doubled(s))  # noqa: E731
    assert_same(run(doubled, value), kind.doubled(kind.doubled(value)))
    total = lambda x: slices(x).reduce(0.0, lambda s, e: s + kind.floats(e))  # noqa: E731
    assert_same(run(total, value), tf.constant(3.0))
    # Batches of growing size.
    batches = [kind.make(1), kind.make(2), kind.make(3)]

    def last(values):
        return Dataset.range(2).reduce(
            values[0],
            lambda _, n: tf.switch_case(tf.cast(n, tf.int32), [lambda b=b: b for b in values[1:]]),
        )

    assert_same(run(last, batches), batches[-1])


@pytest.mark.parametrize("other", [tf.constant(1.0), "another type"], ids=["a tensor", "a value"])
def test_the_state_of_a_reduction_keeps_its_type(other):
    value = KINDS[0].make(2)
    other = KINDS[2].make(2) if isinstance(other, str) else other
    with pytest.raises(TypeError, match="must match the initial state"):
        Dataset.range(2).reduce(value, lambda *_: other)


@row("Dataset.group_by_window")
def test_group_by_window(kind, run):
    def grouped(x):
        return slices(x).group_by_window(
            lambda e: tf.cast(kind.floats(e) >= 2, tf.int64),
            lambda key, window: window.batch(2),
            window_size=2,
        )

    holds(run, grouped, kind.make(4), [kind.make(2), kind.make(2, 2)])


@row("Dataset.sample_from_datasets")
def test_sample_from_datasets(kind, run):
    # Of the second there is nothing: what is sampled is the first.
    sampled = lambda x: Dataset.sample_from_datasets(  # noqa: E731
        [slices(x), slices(x)], weights=[1.0, 0.0], seed=1, stop_on_empty_dataset=True
    )
    holds(run, sampled, kind.make(3), kind.examples(0, 1, 2))


@row("Dataset.choose_from_datasets")
def test_choose_from_datasets(kind, run):
    def chosen(x):
        return Dataset.choose_from_datasets([slices(x), slices(x).skip(2)], Dataset.range(2))

    holds(run, chosen, kind.make(3), kind.examples(0, 2))


@row("Dataset.get_single_element")
def test_get_single_element(kind, run):
    value = kind.make(3)
    assert_same(run(lambda x: Dataset.from_tensors(x).get_single_element(), value), value)


@row("tf.experimental.Optional")
def test_optional(kind, run):
    value = kind.make(3)

    def through(x):
        some = tf.experimental.Optional.from_value(x)
        none = tf.experimental.Optional.empty(kind.spec)
        following = iter(Dataset.from_tensors(x)).get_next_as_optional()
        return some.get_value(), some.has_value(), none.has_value(), following.get_value()

    some, is_some, is_none, following = run(through, value)
    assert_same([some, following], [value, value])
    assert is_some
    assert not is_none
