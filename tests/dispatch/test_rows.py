"""tf.stack, unstack, concat, gather and indexing select and join the rows of declared types."""

import functools
import typing

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt


@xt.extension_type
class Point:
    x: tf.Tensor
    y: tf.Tensor
    unit: str = "mm"


@xt.extension_type
class Track(xt.dispatch.OperatorsMixin):
    points: tf.RaggedTensor
    start: Point
    steps: typing.Mapping[str, tf.Tensor]


@xt.extension_type
class Sparse:
    entries: tf.SparseTensor
    shape: tf.TensorShape


@xt.extension_type
class Only:
    values: tf.Tensor


def track(n):
    lengths = tf.range(n) % 3
    return Track(
        tf.RaggedTensor.from_row_lengths(tf.range(float(tf.reduce_sum(lengths))), lengths),
        Point(tf.range(float(n)), tf.ones([n, 2])),
        {"a": tf.range(n), "b": tf.strings.as_string(tf.range(n))},
    )


KINDS = {
    "tensors": lambda n: Point(tf.range(float(n)), tf.reshape(tf.range(2.0 * n), [n, 2]), "m"),
    "one tensor": lambda n: Only(tf.reshape(tf.range(6 * n), [n, 3, 2])),
    "ragged, nested": track,
    "sparse": lambda n: Sparse(tf.sparse.from_dense(np.eye(n, 4)), [n, 4]),
    "csr": lambda n: xt.types.CSRSparseTensor.from_dense(np.eye(n, 4)),
    "masked": lambda n: Only(xt.types.MaskedTensor(tf.range(n), tf.range(n) % 2 == 0).values),
    "alignments": lambda n: xt.types.DimensionAlignment.batch(
        [xt.types.DimensionAlignment.from_index([0] * i, 2) for i in range(n)]
    ),
}


def as_lists(value):
    """Returns the tensors of a value without the form in which ragged tensors store them."""
    parts = xt.nest.flatten(xt.spec_of(value).to_components(value))
    return [
        part.to_list() if isinstance(part, tf.RaggedTensor)
        else tf.sparse.to_dense(part).numpy().tolist() if isinstance(part, tf.SparseTensor)
        else np.array(part).tolist() if isinstance(part, tf.Tensor)
        else as_lists(part)
        for part in parts
    ]  # fmt: skip


def rows_of(value):
    """Returns the rows as tf.data slices them."""
    return list(tf.data.Dataset.from_tensor_slices(value))


def batch_of(value, numbers):
    """Returns some rows as tf.data slices and joins them."""
    rows = tf.data.Dataset.from_tensor_slices(value)
    first, *others = [rows.skip(n).take(1) for n in numbers]
    return next(iter(functools.reduce(lambda a, b: a.concatenate(b), others, first).batch(9)))


each_kind = pytest.mark.parametrize("kind", KINDS)
each_mode = pytest.mark.parametrize("mode", ["eager", "graph"])


def run(mode, function, *args):
    return function(*args) if mode == "eager" else tf.function(function)(*args)


@each_kind
@each_mode
def test_unstack_and_an_index_give_the_rows_of_a_dataset(kind, mode):
    value = KINDS[kind](4)
    want = [as_lists(row) for row in rows_of(value)]
    assert [as_lists(row) for row in run(mode, lambda v: tf.unstack(v, 4), value)] == want
    assert as_lists(run(mode, lambda v: v[2], value)) == want[2]
    assert as_lists(run(mode, lambda v, i: v[i], value, tf.constant(-1))) == want[-1]
    assert as_lists(run(mode, lambda v: tf.gather(v, 1), value)) == want[1]


@each_kind
@each_mode
def test_stack_concat_gather_and_slices_give_the_batches_of_a_dataset(kind, mode):
    value = KINDS[kind](4)
    rows = rows_of(value)
    for got, want in (
        (run(mode, lambda *rows: tf.stack(rows), *rows[:2]), [0, 1]),
        (run(mode, lambda row: tf.stack([row]), rows[1]), [1]),
        (run(mode, lambda v: v[1:3], value), [1, 2]),
        (run(mode, lambda v: v[::-2], value), [3, 1]),
        (run(mode, lambda v: tf.gather(v, [3, 0, 0]), value), [3, 0, 0]),
        (run(mode, lambda v: tf.concat([v[2:], v], 0), value), [2, 3, 0, 1, 2, 3]),
    ):
        assert type(got) is type(value)
        assert as_lists(got) == as_lists(batch_of(value, want))


def test_positions_of_two_dimensions_stack_twice():
    value = KINDS["ragged, nested"](4)
    twice = tf.gather(value, [[3, 0], [1, 2]])
    for i, row in enumerate(([3, 0], [1, 2])):
        assert as_lists(twice[i]) == as_lists(tf.gather(value, row))


def test_static_shapes_and_data_follow_the_rows():
    value = KINDS["sparse"](4)
    assert [part.shape for part in (value[1], value[1:3], tf.stack([value, value]))] == [
        [4], [2, 4], [2, 4, 4],
    ]  # fmt: skip
    assert tf.concat([value, value], 0).shape.as_list() == [None, 4]
    assert KINDS["tensors"](4)[0].unit == "m"


PAIRS = {
    "stack": (
        lambda v: tf.stack([v[1], v[2], v[2]]).points,
        lambda p: tf.ragged.stack([p[1], p[2], p[2]]),
    ),
    "concat": (
        lambda v: tf.concat([v, v], 0).points,
        lambda p: tf.concat([p, p], 0),
    ),
    "gather": (
        lambda v: tf.gather(v, [1, 2, 2]).points,
        lambda p: tf.gather(p, [1, 2, 2]),
    ),
    "slice": (lambda v: v[1:].points, lambda p: p[1:]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_those_of_the_same_operation_on_a_ragged_tensor(name):
    value = track(5)
    flat = value.points.flat_values
    gradients = []
    for function, argument in zip(PAIRS[name], (value, value.points), strict=True):
        with tf.GradientTape() as tape:
            tape.watch(flat)
            total = tf.reduce_sum(tf.square(function(argument).flat_values + 1.0))
        gradients.append(tf.convert_to_tensor(tape.gradient(total, flat)))
    np.testing.assert_allclose(*gradients)


def test_iteration_ends_with_the_last_row():
    value = KINDS["tensors"](3)
    assert [as_lists(row) for row in value] == [as_lists(row) for row in rows_of(value)]
    assert as_lists(value[np.array(-1)]) == as_lists(rows_of(value)[2])
    with pytest.raises(IndexError, match=r"Point\[...\]: expected a row from -3 to 2, got 3"):
        value[3]


@pytest.mark.parametrize("call", [
    lambda v: tf.stack([v, v], 1), lambda v: tf.concat([v, v], 1), lambda v: tf.unstack(v, axis=1),
    lambda v: tf.gather(v, [0], axis=1), lambda v: tf.gather(v, tf.ragged.constant([[0], [1, 0]])),
    lambda v: v[0, 0], lambda v: v[None], lambda v: v[True], lambda v: v[np.array(True)],
    lambda v: tf.stack([v, tf.ones([2])]), lambda v: tf.exp(v),
    lambda v: tf.Variable(v),
])  # fmt: skip
def test_other_calls_are_an_error_that_names_what_an_author_does(call):
    with pytest.raises(TypeError, match=r"xt\.dispatch\.implements") as error:
        call(KINDS["tensors"](2))
    assert "nest.flatten" not in str(error.value)


def test_a_type_says_otherwise_by_a_handler():
    @xt.extension_type
    class Own:
        values: tf.Tensor

        @xt.dispatch.implements(tf.stack)
        @staticmethod
        def stack(values, axis=0, name="stack"):
            return "mine"

        @xt.dispatch.implements(tf.concat)
        @staticmethod
        def concat(values, axis, name="concat"):
            return NotImplemented

    value = Own([1.0, 2.0])
    assert tf.stack([value, value]) == "mine"
    with pytest.raises(TypeError, match=r"Own declined: its handler for tf.concat returned"):
        tf.concat([value, value], 0)
    assert value[1].values.numpy() == 2.0


def test_a_function_that_is_registered_with_tensorflow_has_priority():
    @xt.extension_type
    class Registered:
        values: tf.Tensor

    @tf.experimental.dispatch_for_api(tf.gather, {"params": Registered})
    def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
        return "theirs"

    try:
        assert tf.gather(Registered([1.0, 2.0]), [0]) == "theirs"
        assert tf.gather(Only([1.0, 2.0]), [0]).values.numpy().tolist() == [1.0]
    finally:
        tf.experimental.unregister_dispatch_for(gather)


def test_a_component_that_does_not_stack_is_named():
    @xt.extension_type
    class Stock:
        total: tf.Tensor

    with pytest.raises(ValueError, match=r"Stock.Spec, boxed tensor 0: .*1 dimension"):
        Stock(1.0)[0]
    with pytest.raises(TypeError, match=r"tf\.stack: expected values of .*Stock"):
        tf.stack([Stock(1.0), Stock(1)])


@pytest.mark.parametrize("wrap", [lambda v: v, tf.function], ids=["eager", "graph"])
def test_components_of_different_numbers_of_rows_have_no_rows(wrap):
    @xt.extension_type
    class Column:
        values: tf.Tensor

        @property
        def shape(self):  # that of one row
            return self.values.shape[1:]

    @xt.extension_type
    class Table:
        column: Column
        ids: tf.Tensor | tf.RaggedTensor | tf.SparseTensor

    gather = wrap(lambda table: tf.gather(table, [2, 0]))
    column = Column(tf.zeros([3, 1]))
    assert gather(Table(column, tf.range(3))).ids.numpy().tolist() == [2, 0]
    many = (tf.range(5), tf.ragged.constant([[1]] * 5), tf.sparse.eye(5))
    for ids in many:
        with pytest.raises(ValueError, match=r"Table\.Spec: .*got components of 3 and 5 rows"):
            gather(Table(column, ids))


def test_records_still_move_their_fields_of_declared_types_themselves():
    records = xt.DenseStructuredTensor([3], {"point": KINDS["tensors"](3)})
    assert not xt.dispatch.follows_protocol(Point)
    assert tf.expand_dims(records, 0)["point"].y.shape == [1, 3, 2]


def test_the_sum_of_values_begins_with_their_own_zero():
    class Length(xt.dispatch.OperatorsMixin):
        def __init__(self, metres):
            self.metres = metres

        @xt.dispatch.implements(tf.add)
        @staticmethod
        def add(x, y, name=None):
            return Length(tf.add(x.metres, y.metres))

    lengths = [Length(tf.constant(n)) for n in (1.0, 2.0, 4.0)]
    assert sum(lengths).metres.numpy() == 7.0
    assert sum(lengths[:1]) is lengths[0]
    with pytest.raises(AttributeError):
        1 + lengths[0]


def test_the_sum_of_csr_matrices_is_sparse():
    dense = np.eye(3)
    matrix = xt.types.CSRSparseTensor.from_dense(dense)
    np.testing.assert_array_equal(sum([matrix, matrix, matrix]).to_dense(), 3 * dense)


def test_unstack_in_a_graph_asks_for_a_number_that_is_not_known():
    spec = xt.types.CSRSparseTensor.Spec([None, 4], tf.float64)

    @tf.function(input_signature=[spec])
    def rows(matrix):
        return tf.unstack(matrix)

    with pytest.raises(xt.errors.StructureError, match=r"tf.unstack of CSRSparseTensor.* num="):
        rows.get_concrete_function()
