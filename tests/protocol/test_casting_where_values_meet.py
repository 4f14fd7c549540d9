"""Branches, datasets and functions that return different types: TensorFlow gets one common type."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.apis.matrix import RUN
from tests.samples.types import MaskedTensor

pytestmark = pytest.mark.usefixtures("variable_scope_as_it_was")


@xt.extension_type
class Rows:
    """Has ragged and sparse components, whose static shapes contain the number of rows."""

    ragged: tf.RaggedTensor
    sparse: tf.SparseTensor
    name: str = "rows"


def ragged(size):
    return tf.ragged.constant([[float(n)] * (n % 3) for n in range(size)], ragged_rank=1)


def sparse(size):
    return tf.sparse.from_dense([[1.0, 0.0]] * size)


def masked(size):
    return MaskedTensor(tf.ones([size]), tf.ones([size], tf.bool))


OF_SIZE = {
    "ragged": ragged,
    "sparse": sparse,
    "a ragged field": lambda n: xt.DenseStructuredTensor([n], {"x": ragged(n), "y": tf.range(n)}),
    "ragged and sparse parts": lambda n: Rows(ragged(n), sparse(n)),
    "masked": masked,
}


def assert_equal(value, expected):
    assert type(value) is type(expected)
    assert tf.type_spec_from_value(value) == tf.type_spec_from_value(expected)
    flat = [tf.nest.flatten(x, expand_composites=True) for x in (value, expected)]
    for a, b in zip(*flat, strict=True):
        np.testing.assert_array_equal(a, b)


# tf.switch_case


@pytest.mark.parametrize("make", OF_SIZE.values(), ids=list(OF_SIZE))
@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 4), (2, 2)], ids=str)
def test_branches_of_a_switch_case_differ_in_their_number_of_rows(make, sizes):
    values = [make(size) for size in sizes]

    @tf.function
    def choose(i, values):
        branches = [lambda v=v, n=n: {"it": v, "n": n} for n, v in enumerate(values)]
        return tf.switch_case(i, branches)

    for i, value in enumerate(values):
        result = choose(tf.constant(i), values)
        assert_equal(result["it"], value)
        assert result["n"] == i
    index = tf.TensorSpec([], tf.int32)
    shown = choose.get_concrete_function(index, values).structured_outputs["it"]
    met = tf.type_spec_from_value(values[0]).most_specific_common_supertype(
        [tf.type_spec_from_value(value) for value in values[1:]]
    )
    assert tf.type_spec_from_value(shown).is_compatible_with(met)


def test_indexed_slices_work_beside_parts_of_different_sizes():
    def branch(rows, dtype):
        slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0], dtype), tf.constant([5, 2]))
        return {"a": Rows(ragged(rows), sparse(rows)), "b": slices}

    @tf.function
    def choose(i):
        return tf.switch_case(i, [lambda: branch(2, tf.int32), lambda: branch(3, tf.int64)])

    result = choose(tf.constant(1))
    assert_equal(result["a"], Rows(ragged(3), sparse(3)))
    assert result["b"].indices.dtype == tf.int64


def test_gradients_flow_through_branches_of_different_sizes():
    @tf.function
    def total(i, numbers):
        def branch(n):
            splits = [0, n, 4]
            return lambda: Rows(tf.RaggedTensor.from_row_splits(numbers * n, splits), sparse(n))

        rows = tf.switch_case(i, [branch(1), lambda: Rows(ragged(3), sparse(3)), branch(3)])
        return tf.reduce_sum(rows.ragged.flat_values)

    numbers = tf.ones([4])
    for i, expected in enumerate([1.0, 0.0, 3.0]):
        with tf.GradientTape() as tape:
            tape.watch(numbers)
            result = total(tf.constant(i), numbers)
        found = tape.gradient(result, numbers, unconnected_gradients="zero")
        assert found.numpy().tolist() == [expected] * 4


def test_static_data_that_differs_is_still_an_error_of_switch_case():
    @tf.function
    def choose(i):
        return tf.switch_case(
            i, [lambda: Rows(ragged(2), sparse(2)), lambda: Rows(ragged(2), sparse(2), "other")]
        )

    with pytest.raises((TypeError, ValueError)):
        choose(tf.constant(0))


def test_types_of_other_libraries_are_packed_as_by_tensorflow():
    class Pair(tf.experimental.ExtensionType):
        left: tf.Tensor
        right: tf.RaggedTensor

    def choose(i, a, b):
        return tf.function(lambda i: tf.switch_case(i, [lambda: a, lambda: b]))(tf.constant(i))

    values = [Pair(tf.ones([n]), ragged(2)) for n in (2, 3)]
    for i, value in enumerate(values):
        assert_equal(choose(i, *values), value)
    with pytest.raises(ValueError, match="not compatible with supplied shape"):
        choose(1, values[0], Pair(tf.ones([3]), ragged(3)))


# Functions with declared results, and choose_from_datasets


DENSE = tf.constant([[1.0, 2.0], [3.0, 4.0]])
RAGGED = tf.ragged.constant([[5.0], [6.0, 7.0]])
AS_RAGGED = tf.RaggedTensor.from_tensor(DENSE)


@xt.extension_type
class Words:
    rows: tf.Tensor | tf.RaggedTensor
    language: str = "en"


def records(rows):
    return xt.DenseStructuredTensor([2], {"x": rows})


def list_of_records(rows):
    """Ragged records, or dense ones of two dimensions."""
    if isinstance(rows, tf.RaggedTensor):
        inner = xt.DenseStructuredTensor([rows.flat_values.shape[0]], {"x": rows.flat_values})
        return xt.RaggedStructuredTensor.from_row_splits(inner, rows.row_splits)
    return xt.DenseStructuredTensor([2, 2], {"x": rows})


HOLDERS = {
    "tensor": lambda rows: rows,
    "declared": Words,
    "a field": records,
    "records": list_of_records,
}


@pytest.fixture(params=HOLDERS.values(), ids=list(HOLDERS))
def holder(request):
    return request.param


def spec_of_any(holder):
    """Returns the spec of a holder of two ragged rows."""
    spec, other = (tf.type_spec_from_value(holder(rows)) for rows in (RAGGED, AS_RAGGED))
    return spec.most_specific_common_supertype([other])


def by_map_fn(function, spec):
    mapped = tf.map_fn(lambda _: function(), tf.range(1), fn_output_signature=spec)
    return next(iter(tf.data.Dataset.from_tensor_slices(mapped)))


def by_py_function(function, spec):
    return tf.py_function(function, [], spec)


def by_numpy_function(function, spec):
    return xt.numpy_function(function, [], spec)


def by_generator(function, spec):
    def generated(n):
        assert n == 3
        yield function()

    return next(iter(tf.data.Dataset.from_generator(generated, args=(3,), output_signature=spec)))


@pytest.mark.parametrize(
    "value",
    [
        xt.types.UnionTensor.from_values([1.5, "a"]),
        xt.types.TensorDigraph.batch([xt.types.TensorDigraph([0], [0], {"x": [[1.0]]})]),
        xt.struct.constant([{"a": {"b": [[1, 2]], "c": None}}], nulls="mask"),
    ],
    ids=["union", "graph", "records"],
)
def test_the_result_of_a_py_function_has_the_shapes_of_its_spec(value):
    spec = xt.spec_of(value)

    @tf.function
    def through(value):
        [result, _] = tf.py_function(lambda value: (value, 1), [value], [spec, tf.int32])
        return result

    assert xt.spec_of(through.get_concrete_function(value).structured_outputs) == spec
    assert_equal(through(value), value)


DECLARED = [
    pytest.param(by, run, id=f"{by.__name__.removeprefix('by_')}-{mode}")
    for by in (by_map_fn, by_py_function, by_numpy_function, by_generator)
    for mode, run in RUN.items()
]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize(("by", "run"), DECLARED)
def test_the_result_of_a_function_is_cast_to_its_declared_spec(by, run, holder):
    spec = spec_of_any(holder)

    def gives(value, expected):
        assert_numbers(run(lambda: by(lambda: value, spec)), expected)

    gives(holder(DENSE), holder(AS_RAGGED))
    gives(holder(RAGGED), holder(RAGGED))


def assert_numbers(value, expected):
    """Asserts that two values are of one class, and hold the same numbers."""
    assert type(value) is type(expected)
    for a, b in zip(*(tf.nest.flatten(x, True) for x in (value, expected)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("by", "run"), DECLARED)
def test_a_result_that_cannot_be_cast_to_its_declared_spec_is_an_error(by, run, holder):
    spec = spec_of_any(holder)
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        run(lambda: by(lambda: holder(tf.cast(DENSE, tf.int32)), spec))


def test_values_of_a_generator_are_cast_to_its_spec():
    rows, numbers = (tf.RaggedTensorSpec([None, None], d) for d in (tf.float32, tf.int64))
    spec = (Words.Spec(rows, "en"), {"r": numbers}, tf.TensorSpec([]))

    def generated():
        yield Words(DENSE), {"r": [[1], [2, 3]]}, 1.0
        yield Words(RAGGED), {"r": np.array([[1, 2]])}, 2.0
        yield Words([[1.0]]), {"r": tf.ragged.constant([[1]], tf.int64)}, 3.0

    found = list(tf.data.Dataset.from_generator(generated, output_signature=spec))
    assert [words.rows.to_list() for words, _, _ in found] == [
        DENSE.numpy().tolist(), RAGGED.to_list(), [[1.0]]
    ]  # fmt: skip
    assert [nest["r"].to_list() for _, nest, _ in found] == [[[1], [2, 3]], [[1, 2]], [[1]]]
    assert [number.numpy() for _, _, number in found] == [1.0, 2.0, 3.0]


def test_a_generator_is_closed_after_an_early_end():
    closed = []

    def generated():
        try:
            while True:
                yield DENSE
        finally:
            closed.append(True)

    dataset = tf.data.Dataset.from_generator(
        generated, output_signature=tf.RaggedTensorSpec([None, None])
    )
    assert len(list(dataset.take(2))) == 2
    assert closed == [True]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("run", RUN.values(), ids=list(RUN))
def test_choose_from_datasets_casts_to_the_common_type(run, holder, swapped):
    values = [holder(RAGGED), holder(DENSE)]
    expected = [holder(RAGGED), holder(AS_RAGGED)]
    if swapped:
        values.reverse()
        expected.reverse()
    from_tensors = tf.data.Dataset.from_tensors

    def joined(join):
        datasets = [from_tensors({"it": v, "n": n}).repeat(3) for n, v in enumerate(values)]
        return join(datasets)

    def elements(join):
        def two(_):
            iterator = iter(joined(join))
            return [next(iterator) for _ in range(4)]

        return run(two, 0)

    choose = tf.data.Dataset.choose_from_datasets
    sample = tf.data.Dataset.sample_from_datasets
    for join in (
        lambda datasets: choose(datasets, tf.data.Dataset.range(2).repeat()),
        lambda datasets: sample(datasets, seed=1),
        lambda datasets: sample(datasets, weights=[0.5, 0.5], seed=1),
        lambda datasets: sample(
            datasets, weights=tf.data.Dataset.from_tensors([0.5, 0.5]).repeat(), seed=1
        ),
    ):
        spec = joined(join).element_spec["it"]
        for element in elements(join):
            assert_numbers(element["it"], expected[element["n"]])
            assert spec.is_compatible_with(element["it"])


def test_choose_from_datasets_does_not_change_datasets_of_plain_tensors():
    datasets = [tf.data.Dataset.range(3), tf.data.Dataset.range(3)]
    chosen = tf.data.Dataset.choose_from_datasets(datasets, tf.data.Dataset.range(2))
    assert chosen._inputs()[1:] == datasets
    one = tf.data.Dataset.sample_from_datasets(datasets[:1])
    assert one is datasets[0]
    with pytest.raises(TypeError, match="must have compatible element specs"):
        tf.data.Dataset.choose_from_datasets(
            [datasets[0], tf.data.Dataset.from_tensors(RAGGED)], tf.data.Dataset.range(2)
        )


def test_errors_without_extension_values_are_those_of_tensorflow():
    spec = tf.RaggedTensorSpec([None, None], tf.int32)
    with pytest.raises(ValueError, match="Error in map_fn"):
        tf.map_fn(lambda _: RAGGED, tf.range(1), fn_output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="which did not match Tout="):
        tf.py_function(lambda: RAGGED, [], spec)
    dataset = tf.data.Dataset.from_generator(lambda: iter([RAGGED]), output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`generator` yielded an element of"):
        next(iter(dataset))
    dataset = tf.data.Dataset.from_generator(lambda: iter([1]), output_signature=(spec, spec))
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not match the expected struc"):
        next(iter(dataset))
    with pytest.raises(TypeError, match="must be a Python callable"):
        tf.data.Dataset.from_generator(3, output_signature=spec)
