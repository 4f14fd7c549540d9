"""Boxed tensors: stacking, unstacking and concatenating boxes does the same to the values.

The reference is lists of Python: values become lists, which are stacked, indexed and added.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor._protocol.box_ragged import take
from extensor.authoring import box as boxes_of
from extensor.authoring import boxed_specs
from tests.samples.types import (
    MaskedTensor,
    MaskedTensorSpec,
    Parcel,
    ParcelSpec,
    StaticSpec,
    fresh_masked_type,
    parcel,
)


def as_lists(value):
    """Returns a value as lists, with the tensors of a Parcel by their names."""
    if isinstance(value, Parcel):
        return {name: as_lists(part) for name, part in value.components.items()}
    if isinstance(value, MaskedTensor):
        return {"values": as_lists(value.values), "mask": as_lists(value.mask)}
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    if isinstance(value, tf.SparseTensor):
        return tf.sparse.to_dense(value).numpy().tolist()
    return value.numpy().tolist()


def leafwise(combine, *written):
    if isinstance(written[0], dict):
        return {name: leafwise(combine, *(w[name] for w in written)) for name in written[0]}
    return combine(*written)


def stacked_lists(rows):
    return leafwise(lambda *leaves: list(leaves), *rows)


def unstacked_lists(batch, count):
    return [leafwise(lambda leaf, i=i: leaf[i], batch) for i in range(count)]


# Values of one spec with a component of every kind.

numbers = st.integers(-9, 9)


def matrices(rows, columns):
    return st.lists(
        st.lists(numbers, min_size=columns, max_size=columns), min_size=rows, max_size=rows
    )


@st.composite
def ragged_rows(draw):
    rows = draw(st.lists(st.lists(numbers, max_size=3), max_size=3))
    return tf.ragged.constant(rows, tf.int32, ragged_rank=1)


dense = matrices(2, 2).map(lambda rows: tf.constant(rows, tf.int32))
sparse = matrices(2, 3).map(lambda rows: tf.sparse.from_dense(tf.constant(rows, tf.int32)))
masked = st.lists(numbers, min_size=2, max_size=2).map(
    lambda v: MaskedTensor(tf.constant(v, tf.int32), tf.constant(v, tf.int32) > 0)
)
KINDS = {
    "dense": (dense, tf.TensorSpec([2, 2], tf.int32)),
    "ragged": (ragged_rows(), tf.RaggedTensorSpec([None, None], tf.int32, 1)),
    "sparse": (sparse, tf.SparseTensorSpec([2, 3], tf.int32)),
    "extension": (masked, MaskedTensorSpec([2], tf.int32)),
}
KINDS["nested"] = (
    st.builds(
        lambda **parts: Parcel(parts, KINDS["nested"][1]),
        **{kind: values for kind, (values, _) in KINDS.items()},
    ),
    ParcelSpec({kind: spec for kind, (_, spec) in KINDS.items()}),
)
ONES = {
    "dense": tf.ones([2, 2], tf.int32),
    "ragged": tf.ragged.constant([[1], [1, 1]], tf.int32),
    "sparse": tf.sparse.from_dense(tf.ones([2, 3], tf.int32)),
    "extension": MaskedTensor(tf.ones([2], tf.int32), tf.ones([2], tf.bool)),
}
ONES["nested"] = Parcel(dict(ONES), KINDS["nested"][1])
each_kind = pytest.mark.parametrize("kind", KINDS)


def rows_of(kind):
    """Returns values of one spec, with a component of the kind."""
    values, spec = KINDS[kind]
    return st.lists(values.map(lambda v: Parcel({kind: v}, ParcelSpec({kind: spec}))), min_size=1)


def batch_of(rows):
    """Returns values stacked through their boxes."""
    spec = rows[0].spec
    boxes = [boxes_of(spec, row) for row in rows]
    stacked = [tf.stack(parallel, axis=0) for parallel in zip(*boxes, strict=True)]
    return spec.stacked(len(rows)).from_boxed_tensor(stacked)


# The laws of boxes.


@pytest.mark.parametrize("kind", ["dense", "ragged", "sparse"])
@given(st.data())
def test_a_type_of_one_box_follows_the_text_of_the_proposal(kind, data):
    # The RFC: stacking the boxes of values is the same as stacking the values.
    values = data.draw(rows_of(kind))
    type_spec, count = values[0].spec, len(values)
    boxed_tensors = [type_spec.to_boxed_tensor(v) for v in values]
    stacked = type_spec.stacked(count).from_boxed_tensor(tf.stack(boxed_tensors, axis=0))
    assert as_lists(stacked) == stacked_lists([as_lists(v) for v in values])
    type_spec = stacked.spec
    assert type_spec.boxed_tensor_spec(minimum_rank=1).is_compatible_with(
        type_spec.to_boxed_tensor(stacked, minimum_rank=1)
    )
    unstacked_tensors = tf.unstack(type_spec.to_boxed_tensor(stacked, minimum_rank=1), num=count)
    unstacked = [type_spec.unstacked().from_boxed_tensor(t) for t in unstacked_tensors]
    assert [as_lists(v) for v in unstacked] == [as_lists(v) for v in values]


@each_kind
@given(st.data())
def test_stacking_boxes_stacks_values(kind, data):
    rows = data.draw(rows_of(kind))
    batch = batch_of(rows)
    assert type(batch) is Parcel
    assert batch.spec == rows[0].spec.stacked(len(rows))
    assert as_lists(batch) == stacked_lists([as_lists(row) for row in rows])


@each_kind
@given(st.data())
def test_unstacking_boxes_unstacks_values(kind, data):
    rows = data.draw(rows_of(kind))
    batch = batch_of(rows)
    boxes = boxes_of(batch.spec, batch, minimum_rank=1)
    assert all(box.shape[0] == len(rows) for box in boxes)
    unstacked = zip(*(tf.unstack(box, axis=0, num=len(rows)) for box in boxes), strict=True)
    values = [batch.spec.unstacked().from_boxed_tensor(list(parallel)) for parallel in unstacked]
    assert [as_lists(v) for v in values] == unstacked_lists(as_lists(batch), len(rows))
    assert [as_lists(v) for v in values] == [as_lists(row) for row in rows]


@pytest.mark.whole("draws many values")
@each_kind
@given(st.data())
def test_concatenating_boxes_concatenates_values(kind, data):
    batches = [batch_of(data.draw(rows_of(kind))) for _ in range(2)]
    boxes = [boxes_of(batch.spec, batch, minimum_rank=1) for batch in batches]
    # tf.concat has no kernel for variants, which is what ragged and sparse tensors box into.
    joined = [
        tf.stack([row for b in parallel for row in b]) for parallel in zip(*boxes, strict=True)
    ]
    spec = batches[0].spec.unstacked().stacked(None)
    value = spec.from_boxed_tensor(joined)
    assert as_lists(value) == leafwise(lambda a, b: a + b, *map(as_lists, batches))


@pytest.mark.whole("draws many values")
@each_kind
@settings(max_examples=8)
@given(st.data())
def test_reshaping_boxes_batches_values(kind, data):
    rows = data.draw(rows_of(kind)) * 2
    batch = batch_of(rows)
    boxes = boxes_of(batch.spec, batch, minimum_rank=1)
    reshaped = [tf.reshape(t, tf.concat([[2, -1], tf.shape(t)[1:]], 0)) for t in boxes]
    half = len(rows) // 2
    batches_spec = rows[0].spec.stacked(half).stacked(2)
    batches = batches_spec.from_boxed_tensor(reshaped)
    written = [as_lists(row) for row in rows]
    halves = [stacked_lists(written[:half]), stacked_lists(written[half:])]
    assert as_lists(batches) == stacked_lists(halves)
    boxes = boxes_of(batches_spec, batches, minimum_rank=2)
    assert all(box.shape[:2] == [2, half] for box in boxes)
    last = rows[0].spec.from_boxed_tensor([box[1, half - 1] for box in boxes])
    assert as_lists(last) == written[-1]


@each_kind
@pytest.mark.parametrize("count", [0, None])
def test_boxes_of_no_values_are_an_empty_batch(kind, count):
    spec = ParcelSpec({kind: KINDS[kind][1]})
    batch = batch_of([Parcel({kind: ONES[kind]}, spec)] * 2)
    boxes = [box[:0] for box in boxes_of(batch.spec, batch, minimum_rank=1)]

    def unboxed(*boxes):
        return spec.stacked(count).from_boxed_tensor(list(boxes))

    for empty in (unboxed(*boxes), tf.function(unboxed)(*boxes)):
        assert spec.stacked(count).is_compatible_with(empty)
        lists = xt.nest.flatten(as_lists(empty))
        assert lists == [] or all(len(part) == 0 for part in lists)
        again = boxes_of(empty.spec, empty, minimum_rank=1)
        assert [box.shape[0] for box in again] == [0] * len(boxes)


def test_boxes_of_no_rows_keep_their_inner_dimensions():
    rows = parcel({"r": tf.RaggedTensor.from_row_splits(tf.fill([3, 2], "a"), [0, 1, 3])})
    spec = ParcelSpec({"r": tf.RaggedTensorSpec([None, None, 2], tf.string, 1)})
    box = rows.spec.to_boxed_tensor(rows)
    for batch in (
        spec.stacked(None).from_boxed_tensor([tf.stack([box])[:0]]),
        spec.stacked(None).stacked(2).from_boxed_tensor([tf.fill([2, 1], box)[:, :0]]),
    ):
        assert batch.components["r"].flat_values.shape == [0, 2]
        assert int(tf.size(batch.components["r"])) == 0


def test_values_without_a_dimension_stack_and_unstack():
    rows = [parcel({"n": tf.constant(n), "m": MaskedTensor(tf.constant(n), tf.constant(n > 1))})
            for n in range(3)]  # fmt: skip
    batch = batch_of(rows)
    assert as_lists(batch) == {
        "n": [0, 1, 2],
        "m": {"values": [0, 1, 2], "mask": [False, False, True]},
    }
    boxes = zip(*map(tf.unstack, boxes_of(batch.spec, batch, minimum_rank=1)), strict=True)
    again = [batch.spec.unstacked().from_boxed_tensor(list(row)) for row in boxes]
    assert [as_lists(row) for row in again] == [as_lists(row) for row in rows]


DIFFERENTIABLE = {
    "dense": tf.constant([[1.0, 2.0], [3.0, 4.0]]),
    "ragged": tf.ragged.constant([[1.0], [2.0, 3.0]]),
    "extension": MaskedTensor(tf.constant([1.0, 2.0]), tf.constant([True, False])),
}
DIFFERENTIABLE["nested"] = parcel(dict(DIFFERENTIABLE))


@pytest.mark.parametrize("kind", DIFFERENTIABLE)
@pytest.mark.parametrize("in_graph", [False, True])
def test_gradients_flow_through_boxes(kind, in_graph):
    row = parcel({kind: DIFFERENTIABLE[kind]})

    def gradients():
        tensors = [t for t in xt.nest.flatten(row, True) if t.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            rest = iter(tensors)
            value = xt.nest.map_structure(
                lambda t: next(rest) if t.dtype.is_floating else t, row, expand_composites=True
            )
            batch = batch_of([value, value])
            boxes = boxes_of(batch.spec, batch, minimum_rank=1)
            last = batch.spec.unstacked().from_boxed_tensor([take(box, 1) for box in boxes])
            parts = [t for t in xt.nest.flatten([batch, last], True) if t.dtype.is_floating]
            loss = tf.add_n([tf.reduce_sum(t) for t in parts])
        return tape.gradient(loss, tensors)

    # One for each of the two in the batch, and one for the value that was taken from it.
    for gradient in tf.function(gradients)() if in_graph else gradients():
        np.testing.assert_array_equal(gradient, np.full(gradient.shape, 3.0))


POSITIONS = [0, 1, -1, tf.constant(1), slice(1, 2), slice(None, None, -1), slice(0, 0)]


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize("positions", POSITIONS, ids=str)
@pytest.mark.parametrize("in_graph", [False, True])
def test_the_gradient_of_taken_rows_is_that_of_the_same_rows_of_numbers(positions, in_graph):
    weights = tf.range(1.0, 7.0)
    splits = [[0, 2, 4], [0, 1, 3, 4, 6]]

    def boxed(flat):
        rows = tf.RaggedTensor.from_nested_row_splits(flat, splits)
        spec = xt.spec_of(rows)
        taken = take(spec.to_boxed_tensor(rows, minimum_rank=1), positions)
        result = spec.unstacked()
        if isinstance(positions, slice):
            result = result.stacked(None)
        return result.from_boxed_tensor(taken).flat_values

    def indexed(flat):
        # TensorFlow indexes rows of one length itself.
        return tf.reshape(tf.reshape(flat, [2, 3])[positions], [-1])

    def gradient(of):
        flat = tf.range(6.0)
        with tf.GradientTape() as tape:
            tape.watch(flat)
            found = of(flat)
            loss = tf.reduce_sum(found * weights[: tf.size(found)])
        return tape.gradient(loss, flat)

    run = tf.function(gradient, autograph=False) if in_graph else gradient
    np.testing.assert_array_equal(run(boxed), run(indexed))


@xt.extension_type
class Kept:
    """Defines no indexing, so records index its boxes."""

    rows: tf.RaggedTensor


def test_the_gradient_of_an_indexed_field_is_right():
    rows = tf.RaggedTensor.from_nested_row_splits(tf.range(6.0), [[0, 2, 4], [0, 1, 3, 4, 6]])
    with tf.GradientTape() as tape:
        tape.watch(rows)
        records = xt.DenseStructuredTensor([2], {"kept": Kept(rows)})
        loss = tf.reduce_sum(records[1]["kept"].rows.flat_values ** 2)
    assert tape.gradient(loss, rows).flat_values.numpy().tolist() == [0, 0, 0, 6, 8, 10]


@pytest.mark.whole("draws many values")
@each_kind
@given(st.data())
def test_boxes_match_their_specs(kind, data):
    [row, *_] = rows = data.draw(rows_of(kind))
    batch = batch_of(rows)
    for value, minimum_rank in ((row, 0), (batch, 0), (batch, 1)):
        boxes = boxes_of(value.spec, value, minimum_rank)
        specs = boxed_specs(value.spec, minimum_rank)
        assert all(s.is_compatible_with(t) for s, t in zip(specs, boxes, strict=True))
        assert all(t.shape.rank >= minimum_rank for t in boxes)
        assert as_lists(value.spec.from_boxed_tensor(boxes_of(value.spec, value))) == (
            as_lists(value)
        )


@each_kind
@pytest.mark.parametrize("count", [None, 0, 3])
def test_stacked_and_unstacked_specs_undo_each_other(kind, count):
    spec = ParcelSpec({kind: KINDS[kind][1]})
    stacked = spec.stacked(count)
    assert type(stacked) is ParcelSpec
    assert stacked.unstacked() == spec
    assert stacked != spec
    assert spec.stacked(None).most_specific_compatible_type(stacked) == spec.stacked(None)


# The APIs that stack and unstack.


@pytest.mark.whole("draws many values")
@each_kind
@given(st.data())
def test_datasets_batch_and_unbatch_values(kind, data):
    rows = data.draw(rows_of(kind))
    written = [as_lists(row) for row in rows]
    batch = batch_of(rows)
    singles = tf.data.Dataset.from_tensor_slices(batch)
    assert singles.element_spec == rows[0].spec
    assert [as_lists(v) for v in singles] == written
    pairs = singles.batch(2)
    assert pairs.element_spec == rows[0].spec.stacked(None)
    assert [as_lists(v) for v in pairs] == [
        stacked_lists(written[i : i + 2]) for i in range(0, len(written), 2)
    ]
    assert [as_lists(v) for v in pairs.unbatch()] == written
    assert [as_lists(v) for v in pairs.unbatch().batch(len(rows))] == [stacked_lists(written)]
    whole = singles.batch(len(rows), drop_remainder=True)
    assert whole.element_spec == rows[0].spec.stacked(len(rows))


@pytest.mark.whole("draws many values")
@each_kind
@given(st.data())
def test_map_fn_maps_the_values_of_a_batch(kind, data):
    rows = data.draw(rows_of(kind))
    batch = batch_of(rows)
    seen = []

    def see(value):
        seen.append(as_lists(value))
        return value

    mapped = tf.map_fn(see, batch, fn_output_signature=rows[0].spec)
    assert seen == [as_lists(row) for row in rows]
    assert as_lists(mapped) == as_lists(batch)


@pytest.mark.whole("many cases")
@each_kind
def test_datasets_and_map_fn_work_in_graphs(kind):
    spec = ParcelSpec({kind: KINDS[kind][1]})
    batch = batch_of([Parcel({kind: ONES[kind]}, spec)] * 2)

    @tf.function(input_signature=[spec.stacked(None)])
    def through(batch):
        return tf.map_fn(lambda value: value, batch, fn_output_signature=spec)

    assert as_lists(through(batch)) == as_lists(batch)
    mapped = tf.data.Dataset.from_tensors(batch).unbatch().map(lambda v: v).batch(2)
    assert [as_lists(v) for v in mapped] == [as_lists(batch)]


def test_rows_of_different_shapes_do_not_stack():
    masked_type, _ = fresh_masked_type()
    dataset = tf.data.Dataset.range(1, 3).map(
        lambda n: masked_type(tf.ones([n]), tf.ones([n], tf.bool))
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch"):
        list(dataset.batch(2))


# TensorFlow's own types outside and inside.


class Crate(tf.experimental.BatchableExtensionType):
    """A type of TensorFlow's that holds one of ours."""

    content: MaskedTensor


def test_a_type_of_tensorflow_that_holds_ours_stacks():
    rows = [Crate(MaskedTensor(tf.constant([i, -i]), tf.constant([True, i > 1]))) for i in range(3)]
    batch = next(iter(tf.data.Dataset.from_tensors(rows[2]).repeat(2).batch(2)))
    assert as_lists(batch.content) == stacked_lists([as_lists(rows[2].content)] * 2)
    [row, _] = tf.data.Dataset.from_tensor_slices(batch)
    assert as_lists(row.content) == as_lists(rows[2].content)


class Box(tf.experimental.BatchableExtensionType):
    """A type of TensorFlow's that one of ours holds."""

    ragged: tf.RaggedTensor
    scale: tf.Tensor


def test_a_type_of_ours_that_holds_one_of_tensorflow_stacks():
    row = parcel({"box": Box(tf.ragged.constant([[1, 2], [3]]), tf.constant([1.0]))})
    batch = next(iter(tf.data.Dataset.from_tensors(row).repeat(2).batch(2)))
    box = batch.components["box"]
    assert type(box) is Box
    assert box.ragged.to_list() == [[[1, 2], [3]]] * 2
    assert box.scale.numpy().tolist() == [[1.0], [1.0]]
    [first, _] = tf.data.Dataset.from_tensor_slices(batch)
    assert first.components["box"].ragged.to_list() == [[1, 2], [3]]


# An author's own boxes.


class Span:
    """From `low` to `high`."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __tf_type_spec__(self):
        return SpanSpec(self.low.shape)


class SpanSpec(xt.StackableTypeSpec):
    """Boxes into one tensor, not a list, and stacks its own shapes."""

    def __init__(self, shape):
        self.dims = tuple(tf.TensorShape(shape).as_list())

    value_type = Span

    @property
    def component_specs(self):
        return tf.TensorSpec(self.dims, tf.int32), tf.TensorSpec(self.dims, tf.int32)

    def to_components(self, value):
        return value.low, value.high

    def from_components(self, components):
        return Span(*components)

    def serialize(self):
        # No TensorShape: the default would not know what to stack.
        return (self.dims,)

    def to_boxed_tensor(self, value, minimum_rank=0):
        if len(self.dims) < minimum_rank:
            raise ValueError("a single span cannot be unstacked")
        return tf.stack([value.low, value.high - value.low], axis=-1)

    def from_boxed_tensor(self, boxed_tensor):
        low, width = boxed_tensor[..., 0], boxed_tensor[..., 1]
        return Span(low, low + width)

    def boxed_tensor_spec(self, minimum_rank=0):
        return tf.TensorSpec([*self.dims, 2], tf.int32)

    def stacked(self, num):
        return SpanSpec([num, *self.dims])

    def unstacked(self):
        return SpanSpec(self.dims[1:])


SPANS = Span(tf.constant([1, 5, 9]), tf.constant([2, 7, 12]))


def lows_and_highs(spans):
    return [(span.low.numpy().tolist(), span.high.numpy().tolist()) for span in spans]


def test_an_author_may_box_into_a_single_tensor():
    singles = tf.data.Dataset.from_tensor_slices(SPANS)
    assert singles.element_spec == SpanSpec([])
    assert lows_and_highs(singles) == [(1, 2), (5, 7), (9, 12)]
    assert lows_and_highs(singles.batch(2)) == [([1, 5], [2, 7]), ([9], [12])]
    assert lows_and_highs(singles.batch(2).unbatch()) == lows_and_highs(singles)
    wider = tf.map_fn(lambda s: Span(s.low, s.high + 1), SPANS, fn_output_signature=SpanSpec([]))
    assert lows_and_highs([wider]) == [([1, 5, 9], [3, 8, 13])]


def test_the_minimum_rank_reaches_the_components():
    asked = []

    class AskedSpec(SpanSpec):
        def boxed_tensor_spec(self, minimum_rank=0):
            asked.append(minimum_rank)
            return super().boxed_tensor_spec(minimum_rank)

    spec = ParcelSpec((AskedSpec([3]),)).boxed_tensor_spec(minimum_rank=1)
    assert spec == tf.TensorSpec([3, 2], tf.int32)
    assert asked == [1]


def test_a_box_of_a_single_tensor_goes_into_a_list_of_boxes():
    both = parcel({"span": SPANS, "name": tf.constant(["a", "b", "c"])})
    boxes = boxes_of(both.spec, both, minimum_rank=1)
    assert [box.shape.as_list() for box in boxes] == [[3], [3, 2]]
    spec = ParcelSpec({"span": SpanSpec([]), "name": tf.TensorSpec([], tf.string)})
    rows = [spec.from_boxed_tensor([boxes[0][i], boxes[1][i]]) for i in range(3)]
    assert lows_and_highs(row.components["span"] for row in rows) == [(1, 2), (5, 7), (9, 12)]


# Errors.


def test_values_without_a_dimension_do_not_unstack():
    single = MaskedTensor(tf.constant(1.0), tf.constant(True))
    spec = single.__tf_type_spec__()
    assert len(boxes_of(spec, single)) == 2
    with pytest.raises(ValueError, match=r"MaskedTensorSpec, boxed tensor 0: .*1 dimension"):
        boxes_of(spec, single, minimum_rank=1)
    with pytest.raises(ValueError, match="dimension"):
        tf.data.Dataset.from_tensor_slices(single)
    with pytest.raises(ValueError, match=r"MaskedTensorSpec: .*1 dimension"):
        spec.unstacked()


def test_dense_components_are_boxed_for_two_dimensions():
    matrix = MaskedTensor(tf.constant([[1, 2], [3, 4]]), tf.ones([2, 2], tf.bool))
    spec = matrix.__tf_type_spec__()
    values, mask = boxes_of(spec, matrix, minimum_rank=2)
    element = spec.unstacked().unstacked()
    assert element == MaskedTensorSpec([], tf.int32)
    assert element.from_boxed_tensor([values[1, 0], mask[1, 0]]).values.numpy() == 3
    row = MaskedTensor(tf.constant([1]), tf.constant([True]))
    with pytest.raises(ValueError, match="at least 2 dimension"):
        row.__tf_type_spec__().to_boxed_tensor(row, minimum_rank=2)


def test_ragged_rows_unstack_as_far_as_their_first_ragged_axis():
    [row, other] = tf.ragged.constant([[[1], [2, 3]], [[], [4]]], tf.int32)
    even = parcel({"r": tf.stack([row, other])})
    [box] = boxes_of(even.spec, even, minimum_rank=2)
    assert box.shape == [2, 2]
    element = even.spec.unstacked().unstacked()
    assert element.from_boxed_tensor([box[0, 1]]).components["r"].numpy().tolist() == [2, 3]
    uneven = parcel({"r": tf.ragged.constant([[[1]], [[2], [3]]])})
    assert len(boxes_of(uneven.spec, uneven, minimum_rank=1)) == 1
    with pytest.raises(ValueError, match=r"axis 1: .*got rows of different lengths"):
        boxes_of(uneven.spec, uneven, minimum_rank=2)
    with pytest.raises(ValueError, match=r"RaggedTensorSpec: .*a ragged rank of at least 3"):
        boxes_of(even.spec, even, minimum_rank=3)


def test_ragged_rows_that_turn_out_uneven_in_a_graph_are_an_error_when_it_runs():
    spec = parcel({"r": tf.ragged.constant([[[1]], [[2]]])}).spec.unstacked().unstacked()
    batches = spec.stacked(None).stacked(None)

    @tf.function(input_signature=[batches])
    def first(value):
        [box] = boxes_of(batches, value, minimum_rank=2)
        return spec.from_boxed_tensor([box[0, 0]]).components["r"]

    assert first(Parcel({"r": tf.ragged.constant([[[1, 2], []]])}, batches)).numpy().tolist() == [
        1,
        2,
    ]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Axis 1 is ragged"):
        first(Parcel({"r": tf.ragged.constant([[[1]], [[2], [3]]])}, batches))


def test_sparse_entries_unstack_to_a_last_dimension():
    sparse = parcel({"s": tf.sparse.from_dense([[[1, 0], [0, 2]], [[0, 0], [3, 4]]])})
    [box] = boxes_of(sparse.spec, sparse, minimum_rank=2)
    assert box.shape == [2, 2, 3]
    element = sparse.spec.unstacked().unstacked()
    row = element.from_boxed_tensor([box[1, 1]]).components["s"]
    assert tf.sparse.to_dense(row).numpy().tolist() == [3, 4]
    with pytest.raises(ValueError, match=r"SparseTensorSpec: .*more than 3 dimension"):
        boxes_of(sparse.spec, sparse, minimum_rank=3)


def test_the_error_names_a_spec_that_tensorflow_unstacks_only_once():
    stacked = parcel({"d": tf.data.Dataset.range(2)}).spec.stacked(2).stacked(2)
    variant = tf.data.experimental.to_variant(tf.data.Dataset.range(2))
    value = stacked.from_boxed_tensor([tf.fill([2, 2], variant)])
    with pytest.raises(ValueError, match=r"DatasetSpec: .*2 dimension"):
        boxes_of(stacked, value, minimum_rank=2)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_or_too_many_boxes_are_an_error(count):
    with pytest.raises(
        ValueError, match=f"MaskedTensorSpec: expected 2 boxed tensors, got {count}"
    ):
        MaskedTensorSpec([], tf.int32).from_boxed_tensor([tf.constant(1)] * count)


class Loose:
    def __tf_type_spec__(self):
        return StaticSpec()


def test_a_component_that_does_not_stack_is_named():
    spec = ParcelSpec({"loose": StaticSpec()})
    value = Parcel({"loose": Loose()}, spec)
    for act in (
        lambda: boxes_of(spec, value),
        lambda: spec.stacked(2),
        lambda: spec.unstacked(),
        lambda: tf.data.Dataset.from_tensors(value).batch(2),
    ):
        with pytest.raises(TypeError, match=r"StaticSpec, which .*StackableTypeSpec"):
            act()


def test_shapes_that_are_not_in_the_serialization_are_an_error_that_names_the_mend():
    class FixedSpec(SpanSpec):
        stacked = xt.StackableTypeSpec.stacked
        unstacked = xt.StackableTypeSpec.unstacked

    for act in (lambda: FixedSpec([3]).stacked(2), FixedSpec([3]).unstacked):
        with pytest.raises(TypeError, match=r"FixedSpec: .*Override stacked and unstacked"):
            act()


def test_an_empty_batch_keeps_its_spec():
    spec = MaskedTensorSpec([2], tf.int32)
    empty = MaskedTensor(tf.zeros([0, 2], tf.int32), tf.zeros([0, 2], tf.bool))
    dataset = tf.data.Dataset.from_tensor_slices(empty)
    assert dataset.element_spec == spec
    assert list(dataset) == []
    np.testing.assert_array_equal(
        tf.map_fn(lambda v: v, empty, fn_output_signature=spec).values, np.zeros([0, 2], np.int32)
    )
