"""DimensionAlignment against Python sets of pairs, SciPy matrices, NumPy and finite differences."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor.types import DimensionAlignment

Spec = DimensionAlignment.Spec

few = settings(max_examples=settings.default.max_examples // 4)
"""Settings for slow functions, such as those of datasets."""


@st.composite
def alignments(draw, num_sources=None, num_targets=None):
    """Alignments in which positions have any number of partners."""
    m = draw(st.integers(0, 4)) if num_sources is None else num_sources
    n = draw(st.integers(0, 4)) if num_targets is None else num_targets
    pairs = st.tuples(st.integers(0, m - 1), st.integers(0, n - 1))
    chosen = sorted(draw(st.sets(pairs, max_size=6))) if m and n else []
    return DimensionAlignment([s for s, _ in chosen], [t for _, t in chosen], m, n)


@st.composite
def composable(draw):
    """Two alignments: the targets of the first are the sources of the second."""
    first = draw(alignments())
    return first, draw(alignments(num_sources=int(first.num_targets)))


def batches():
    return st.lists(alignments(), min_size=1, max_size=3)


def pairs_of(alignment):
    return list(
        zip(alignment.source.numpy().tolist(), alignment.target.numpy().tolist(), strict=True)
    )


def matrix_of(alignment):
    """Returns an alignment as a matrix of targets and sources."""
    shape = (int(tf.reduce_sum(alignment.num_targets)), int(tf.reduce_sum(alignment.num_sources)))
    ones = np.ones(len(alignment.source), int)
    return scipy.sparse.coo_array((ones, (alignment.target, alignment.source)), shape).toarray()


def expect_same(a, b):
    for name in ("source", "target", "num_sources", "num_targets", "num_pairs"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def checked(alignment):
    """Returns an alignment that passes the checks of the constructor."""
    return DimensionAlignment(
        alignment.source,
        alignment.target,
        alignment.num_sources,
        alignment.num_targets,
        alignment.num_pairs,
    )


WORDS = [b"hi", b"there", b"hello", b"bye"]
TO_SPEAKERS = DimensionAlignment.from_index([0, 0, 1, 0], num_targets=2)


# What it holds.


@pytest.mark.parametrize(
    "values",
    [
        [TO_SPEAKERS, DimensionAlignment([0, 0], [0, 1], 3, 2)],
        DimensionAlignment.batch([TO_SPEAKERS, DimensionAlignment([0, 0], [0, 1], 3, 2)]),
    ],
    ids=["single", "batch"],
)
def test_laws(values):
    xt.testing.check_extension_type(values)


@pytest.mark.slow
def test_laws_of_generated_alignments():
    xt.testing.check_spec(Spec(), values=alignments(), max_examples=5)


def test_a_function_is_traced_once_for_alignments_of_all_sizes():
    traces = []

    @tf.function
    def lengths(alignment):
        traces.append(alignment)
        return alignment.to_ragged().row_lengths()

    assert lengths(TO_SPEAKERS).numpy().tolist() == [1, 1, 1, 1]
    assert lengths(TO_SPEAKERS.invert()).numpy().tolist() == [3, 1]
    assert len(traces) == 1
    assert TO_SPEAKERS.__tf_type_spec__() == Spec()


@given(alignments())
def test_it_is_copied_and_pickled(alignment):
    expect_same(copy.deepcopy(alignment), alignment)
    expect_same(pickle.loads(pickle.dumps(alignment)), alignment)


@given(st.data())
def test_pairs_in_any_order(data):
    alignment = data.draw(alignments())
    pairs = pairs_of(alignment)
    shuffled = data.draw(st.permutations(pairs + pairs[:2]))
    again = DimensionAlignment.from_pairs(
        [s for s, _ in shuffled],
        [t for _, t in shuffled],
        alignment.num_sources,
        alignment.num_targets,
    )
    expect_same(again, alignment)


@given(alignments())
def test_ragged_both_ways(alignment):
    pairs = pairs_of(alignment)
    targets = alignment.to_ragged()
    assert targets.to_list() == [
        [t for s, t in pairs if s == i] for i in range(int(alignment.num_sources))
    ]
    assert alignment.invert().to_ragged().to_list() == [
        [s for s, t in pairs if t == i] for i in range(int(alignment.num_targets))
    ]
    expect_same(DimensionAlignment.from_ragged(targets, alignment.num_targets), alignment)
    if targets.nrows():
        listed = DimensionAlignment.from_ragged(targets.to_list(), alignment.num_targets)
        expect_same(listed, alignment)


def test_an_index_of_targets():
    expect_same(TO_SPEAKERS, DimensionAlignment.from_ragged([[0], [0], [1], [0]], 2))
    expect_same(DimensionAlignment.identity(3), DimensionAlignment.from_index([0, 1, 2], 3))


# Algebra.


@given(alignments())
def test_invert(alignment):
    turned = checked(alignment.invert())
    assert sorted(pairs_of(turned)) == sorted((t, s) for s, t in pairs_of(alignment))
    expect_same(turned.invert(), alignment)


@given(composable())
def test_compose(both):
    first, second = both
    composed = checked(first.compose(second))
    expected = {(s, u) for s, t in pairs_of(first) for r, u in pairs_of(second) if t == r}
    assert pairs_of(composed) == sorted(expected)
    product = matrix_of(second) @ matrix_of(first)
    np.testing.assert_array_equal(matrix_of(composed), product > 0)
    expect_same(composed.invert(), second.invert().compose(first.invert()))


@given(alignments())
def test_composed_with_the_identity(alignment):
    ends = alignment.num_sources, alignment.num_targets
    before, after = map(DimensionAlignment.identity, ends)
    expect_same(before.compose(alignment), alignment)
    expect_same(alignment.compose(after), alignment)


@given(st.data())
def test_composition_is_associative(data):
    first, second = data.draw(composable())
    third = data.draw(alignments(num_sources=int(second.num_targets)))
    expect_same(
        first.compose(second).compose(third),
        first.compose(second.compose(third)),
    )


# Values.

REDUCTIONS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


@given(st.data())
def test_apply(data):
    alignment = data.draw(alignments())
    m, n = int(alignment.num_sources), int(alignment.num_targets)
    values = np.random.default_rng(0).integers(-9, 9, (m, 2)).astype(np.float64)
    of_target = [[values[s] for s, t in pairs_of(alignment) if t == i] for i in range(n)]
    found = alignment.apply(values)
    assert found.nrows() == n
    for row, expected in zip(found, of_target, strict=True):
        np.testing.assert_array_equal(row, np.reshape(expected, [-1, 2]))
    for name, reduction in REDUCTIONS.items():
        expected = [reduction(v, axis=0) if v else np.zeros(2) for v in of_target]
        np.testing.assert_allclose(alignment.apply(values, name), np.reshape(expected, [n, 2]))
    np.testing.assert_array_equal(alignment.apply(values, "sum"), matrix_of(alignment) @ values)


def test_words_and_speakers():
    assert TO_SPEAKERS.apply(WORDS).to_list() == [[b"hi", b"there", b"bye"], [b"hello"]]
    names = TO_SPEAKERS.invert().apply(["Ann", "Bob"], "only")
    assert names.numpy().tolist() == [b"Ann", b"Ann", b"Bob", b"Ann"]
    letters = tf.strings.unicode_split(WORDS, "UTF-8")
    assert TO_SPEAKERS.apply(letters).to_list()[1] == [[b"h", b"e", b"l", b"l", b"o"]]


def test_values_of_every_type_by_the_only_source():
    to_words = TO_SPEAKERS.invert()
    speakers = xt.DenseStructuredTensor(
        [2], {"name": ["Ann", "Bob"], "langs": tf.ragged.constant([["en"], []])}
    )
    found = to_words.apply(speakers, "only")
    assert found["name"].numpy().tolist() == [b"Ann", b"Ann", b"Bob", b"Ann"]
    assert found["langs"].to_list() == [[b"en"], [b"en"], [], [b"en"]]
    rows = xt.types.CSRSparseTensor.from_dense([[1.0, 0.0], [0.0, 2.0]])
    assert to_words.apply(rows, "only").to_dense().numpy().tolist() == [
        [1, 0],
        [1, 0],
        [0, 2],
        [1, 0],
    ]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("reduction", [None, "only", *REDUCTIONS])
def test_gradients_are_finite_differences(reduction):
    alignment = TO_SPEAKERS.invert() if reduction == "only" else TO_SPEAKERS
    values = tf.constant(np.arange(8.0).reshape(4, 2)[: int(alignment.num_sources)] / 3)

    def function(x):
        result = alignment.apply(x, reduction)
        return tf.square(result.flat_values if reduction is None else result)

    theoretical, numerical = tf.test.compute_gradient(function, [values], delta=1e-5)
    np.testing.assert_allclose(theoretical[0], numerical[0], rtol=1e-5, atol=1e-6)


# Batches.


@pytest.mark.whole("draws many values")
@given(batches())
def test_a_batch_is_a_disjoint_union(several):
    batch = checked(DimensionAlignment.batch(several))
    assert batch.shape == [len(several)]
    expected = scipy.sparse.block_diag([scipy.sparse.coo_array(matrix_of(a)) for a in several])
    np.testing.assert_array_equal(matrix_of(batch), expected.toarray())
    assert batch.to_ragged().to_list() == [a.to_ragged().to_list() for a in several]
    for i, alignment in enumerate(several):
        expect_same(batch[i], alignment)
    expect_same(batch[::-1], DimensionAlignment.batch(several[::-1]))
    expect_same(batch.invert(), DimensionAlignment.batch([a.invert() for a in several]))


@given(st.lists(composable(), min_size=1, max_size=3))
def test_batches_compose(several):
    first, second = (DimensionAlignment.batch([pair[i] for pair in several]) for i in range(2))
    expected = DimensionAlignment.batch([a.compose(b) for a, b in several])
    expect_same(checked(first.compose(second)), expected)


@pytest.mark.whole("draws many values")
@given(batches())
def test_batches_apply(several):
    batch = DimensionAlignment.batch(several)
    values = [
        np.arange(int(a.num_sources), dtype=np.float32) + 10 * i for i, a in enumerate(several)
    ]
    ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(values), [len(v) for v in values])
    for reduction in (None, *REDUCTIONS):
        found = batch.apply(ragged, reduction)
        expected = [a.apply(v, reduction) for a, v in zip(several, values, strict=True)]
        for row, other in zip(found, expected, strict=True):
            tf.debugging.assert_equal(row, other)
    if len({len(v) for v in values}) == 1:
        dense = batch.apply(np.stack(values), "sum")
        tf.debugging.assert_equal(dense, batch.apply(ragged, "sum"))


def dataset_of(several):
    return tf.data.Dataset.from_generator(lambda: iter(several), output_signature=Spec())


@few
@given(st.lists(alignments(), min_size=2, max_size=3))
def test_datasets_batch_and_unbatch(several):
    batches = list(dataset_of(several).batch(2))
    expect_same(batches[0], DimensionAlignment.batch(several[:2]))
    for ours, alignment in zip(dataset_of(several).batch(2).unbatch(), several, strict=True):
        expect_same(ours, alignment)


def test_batches_of_batches():
    several = [DimensionAlignment.identity(i) for i in range(4)]
    dataset = dataset_of(several).batch(2).batch(2)
    [whole] = dataset
    assert whole.shape == [2, 2]
    assert whole.to_ragged().to_list() == [[[], [[0]]], [[[0], [1]], [[0], [1], [2]]]]
    values = tf.ragged.constant([[[], [1.0]], [[2.0, 3.0], [4.0, 5.0, 6.0]]])
    assert whole.apply(values, "sum").to_list() == values.to_list()
    for ours, alignment in zip(dataset.unbatch().unbatch(), several, strict=True):
        expect_same(ours, alignment)


def test_map_fn_takes_and_returns_alignments():
    batch = DimensionAlignment.batch([TO_SPEAKERS, DimensionAlignment([0, 0], [0, 1], 3, 2)])
    turned = tf.map_fn(lambda a: a.invert(), batch, fn_output_signature=Spec())
    expect_same(turned, batch.invert())


@pytest.mark.whole("starts a process")
@pytest.mark.filterwarnings(
    "ignore:Encoding a StructuredValue with type extensor.types:UserWarning:tensorflow"
)
def test_a_saved_model_takes_alignments_in_a_fresh_process(run_python, tmp_path):
    @tf.function(input_signature=[Spec([None]), tf.RaggedTensorSpec([None, None], tf.string)])
    def by_speaker(alignment, words):
        return alignment.apply(words), alignment.compose(alignment.invert())

    module = tf.Module()
    module.by_speaker = by_speaker
    folder = str(tmp_path / "model")
    tf.saved_model.save(module, folder)
    run_python(f"""
        import tensorflow as tf
        import extensor as xt

        model = tf.saved_model.load({folder!r})
        speakers = [xt.types.DimensionAlignment.from_index(i, 2) for i in ([0, 0, 1], [], [1])]
        words = tf.ragged.constant([["a", "b", "c"], [], ["d"]])
        found, together = model.by_speaker(xt.types.DimensionAlignment.batch(speakers), words)
        assert found.to_list() == [[[b"a", b"b"], [b"c"]], [[], []], [[], [b"d"]]]
        assert together.to_ragged().to_list() == [[[0, 1], [0, 1], [2]], [], [[0]]]
    """)


# Bad input.

BAD = {
    "a target that is not there": (
        lambda: DimensionAlignment([0], [2], 1, 2),
        r"target: expected positions from 0 to 1, got 2, of pair 0. num_targets is the number",
    ),
    "a negative source": (
        lambda: DimensionAlignment([-1], [0], 1, 1),
        r"source: expected positions from 0 to 0, got -1",
    ),
    "no positions": (lambda: DimensionAlignment([0], [0], 1, 0), r"expected no position, got 0"),
    "a pair of two alignments": (
        lambda: DimensionAlignment([0, 1], [0, 0], [1, 1], [1, 1], [1, 1]),
        r"target: expected positions from 1 to 1 of alignment 1, got 0, of pair 1",
    ),
    "pairs out of order": (
        lambda: DimensionAlignment([1, 0], [0, 0], 2, 1),
        r"expected sorted pairs without duplicates, got \(1, 0\) before \(0, 0\)",
    ),
    "targets out of order": (
        lambda: DimensionAlignment([0, 0], [1, 0], 1, 2),
        r"got \(0, 1\) before \(0, 0\). Use DimensionAlignment.from_pairs",
    ),
    "a pair twice": (lambda: DimensionAlignment([0, 0], [0, 0], 1, 1), r"without duplicates, got"),
    "positions that do not pair": (
        lambda: DimensionAlignment([0, 1], [0], 2, 1),
        r"target: expected shape \(2,\), the shape of the source, got \(1,\)",
    ),
    "pairs that do not add up": (
        lambda: DimensionAlignment([0], [0], [1, 1], [1, 1], [1, 1]),
        r"num_pairs: expected numbers that add up to 1, the number of pairs, got 2",
    ),
    "numbers of different batches": (
        lambda: DimensionAlignment([0], [0], [1, 1], 1, [1, 0]),
        r"num_targets: expected shape \(2,\), the shape of num_sources, got \(\)",
    ),
    "a negative number": (lambda: DimensionAlignment([], [], -1, 0), r"num_sources: .* got -1"),
    "an unsorted target that is not there": (
        lambda: DimensionAlignment.from_pairs([1, 0], [5, 0], 2, 2),
        r"target: expected positions from 0 to 1, got 5, of pair 0",
    ),
    "composed with what begins elsewhere": (
        lambda: TO_SPEAKERS.compose(DimensionAlignment.identity(3)),
        r"compose: expected 2 sources, .* got 3 sources",
    ),
    "a batch composed with a single one": (
        lambda: DimensionAlignment.batch([TO_SPEAKERS]).compose(DimensionAlignment.identity(2)),
        r"compose: expected \[2\] sources, .* got 2 sources",
    ),
    "too few values": (
        lambda: TO_SPEAKERS.apply([1.0]),
        r"apply: expected 4 values, one for each source position, got 1",
    ),
    "rows of other lengths": (
        lambda: DimensionAlignment.batch([TO_SPEAKERS]).apply(tf.ragged.constant([[1.0]])),
        r"apply: expected \[4\] values, .* got \[1\]",
    ),
    "dense rows of another length": (
        lambda: DimensionAlignment.batch([TO_SPEAKERS]).apply([[1.0, 2.0]]),
        r"apply: expected \[4\] values, .* got 2",
    ),
    "values without a dimension for the batch": (
        lambda: DimensionAlignment.batch([TO_SPEAKERS]).apply([1.0]),
        r"expected values of rank 2 or more",
    ),
    "several sources where one is asked for": (
        lambda: TO_SPEAKERS.apply(WORDS, "only"),
        r"expected one source for each target, got a target with 0 sources, or with several",
    ),
    "no source where one is asked for": (
        lambda: DimensionAlignment([0], [1], 1, 2).apply([1.0], "only"),
        r"expected one source for each target",
    ),
    "a ragged of too many dimensions": (
        lambda: DimensionAlignment.from_ragged(tf.ragged.constant([[[[1]]]]), 2),
        r"from_ragged: expected shape \[sources, None\]",
    ),
    "an index of too many dimensions": (
        lambda: DimensionAlignment.from_index(tf.ragged.constant([[[1]]]), 2),
        r"from_index: expected shape \[batch, None\]",
    ),
    "a target that its alignment of a batch does not have": (
        lambda: DimensionAlignment.from_index(tf.ragged.constant([[0, 1], [1]]), [2, 1]),
        r"target: expected positions from 0 to 0 of alignment 1, got 1, of pair 2",
    ),
    "a target that its alignment of a ragged batch does not have": (
        lambda: DimensionAlignment.from_ragged(tf.ragged.constant([[[0]], [[], [3, 0]]]), 3),
        r"target: expected positions from 0 to 2 of alignment 1, got 3, of pair 1",
    ),
    "no alignments": (lambda: DimensionAlignment.batch([]), r"batch: expected at least one value"),
    "a spec of unknown rank": (lambda: Spec(None), r"expected a shape of known rank"),
    "unstacking one alignment": (lambda: Spec().unstacked(), r"expected a batch to unstack"),
    "unstacking a batch twice": (
        lambda: Spec([1]).to_boxed_tensor(DimensionAlignment.batch([TO_SPEAKERS]), 2),
        r"expected a batch to unstack, got a single alignment",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_an_error_with_four_parts(case):
    make, message = BAD[case]
    with pytest.raises(xt.ExtensorError, match=message) as info:
        make()
    assert isinstance(info.value, ValueError)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: DimensionAlignment([0.5], [0], 1, 1), TypeError, r"source: expected int64"),
        (lambda: DimensionAlignment([0], [0], 1.0, 1), TypeError, r"num_sources: expected int64"),
        (lambda: TO_SPEAKERS.apply([1.0] * 4, "first"), TypeError, r"one of sum, mean, max, min"),
        (lambda: TO_SPEAKERS.apply(WORDS, "sum"), TypeError, r"expected a numeric tensor"),
        (lambda: TO_SPEAKERS.apply([1, 2, 3, 4], "mean"), TypeError, r"a floating-point tensor"),
        (
            lambda: TO_SPEAKERS.apply(tf.sparse.eye(4)),
            TypeError,
            r"apply: expected a tensor",
        ),
        (lambda: TO_SPEAKERS[0], IndexError, r"expected a batch, got a single value. This"),
        (
            lambda: DimensionAlignment.batch([TO_SPEAKERS]).apply(tf.sparse.eye(4)),
            TypeError,
            r"expected a tensor or RaggedTensor of values for a batch",
        ),
    ],
)
def test_other_errors_are_the_builtin_that_fits(make, kind, message):
    with pytest.raises(xt.ExtensorError, match=message) as info:
        make()
    assert isinstance(info.value, kind)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [2], [1], [2], [1]), "target must be positions that exist"),
        (([-1], [0], [1], [2], [1]), "source must be positions that exist"),
        (([0, 1], [0, 0], [1, 1], [1, 1], [1, 1]), "target must be positions that exist"),
        (([0], [0], [1], [1], [2]), "num_pairs must add up"),
        (([0], [0], [1], [-1], [1]), "num_targets must not be negative"),
        (([1, 0], [0, 0], [2], [1], [2]), "pairs must be sorted"),
        (([0, 0], [0, 0], [2], [1], [2]), "pairs must be sorted"),
    ],
)
def test_bad_input_is_an_error_in_a_graph_if_validated(arguments, message):
    def make(validate):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)] * 5)
        def made(*parts):
            return DimensionAlignment(*parts, validate=validate).source

        return made

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        make(True)(*arguments)
    assert make(False)(*arguments).numpy().tolist() == arguments[0]
    operations = make(False).get_concrete_function().graph.get_operations()
    assert not any(op.type == "Assert" for op in operations)


def test_the_only_source_is_asserted_in_a_graph():
    @tf.function(input_signature=[Spec(), tf.TensorSpec([None])])
    def only(alignment, values):
        return alignment.apply(values, "only")

    assert only(TO_SPEAKERS.invert(), [1.0, 2.0]).numpy().tolist() == [1, 1, 2, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="each target must have one source"):
        only(TO_SPEAKERS, [1.0, 2.0, 3.0, 4.0])
