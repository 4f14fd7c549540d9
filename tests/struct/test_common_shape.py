"""Shared dimensions: the fields of records have the same rows, whoever builds the records."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ExtensorError, StructureError

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def ragged(rows):
    return tf.ragged.constant(rows, dtype=tf.int32)


def steps(splits):
    return Ragged.from_row_splits(Dense([splits[-1]], {"m": np.arange(splits[-1])}), splits)


def of_type(rows):
    """Returns the same rows as a RaggedTensor and as a RaggedStructuredTensor."""
    splits = [0, *itertools.accumulate(map(len, rows))]
    return [ragged(rows), steps(splits)]


@pytest.mark.parametrize("size", [None, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kinds", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_rows_that_disagree_are_an_error_that_names_both_fields(size, reverse, kinds):
    # Both are uniform, but not with each other.
    fields = {
        "a": of_type([[1, 2], [3, 4]])[kinds[0]],
        "b": of_type([[1], [3]])[kinds[1]],
    }
    names = list(fields)[::-1] if reverse else list(fields)
    with pytest.raises(StructureError) as caught:
        Dense([2, size], {name: fields[name] for name in names})
    if size is None:
        assert caught.value.path == names[1]
        assert f"rows as long as those of {names[0]}" in caught.value.expected
        assert "row 0" in caught.value.received
    else:
        assert caught.value.path == "b"


def test_the_first_row_that_differs_is_named():
    with pytest.raises(StructureError) as caught:
        Dense([3, None], {"a": tf.constant([[1, 2]] * 3), "b": ragged([[1, 2], [3, 4], [5]])})
    assert str(caught.value).startswith(
        "b: expected rows as long as those of a (2 elements), got row 2 of 1 element. "
    )


@pytest.mark.parametrize("names", list(itertools.permutations("abc")))
def test_one_ragged_field_among_dense_ones_is_found_in_any_order(names):
    fields = {
        "a": tf.constant([[1, 2], [3, 4]]),
        "b": ragged([[1, 2], [3]]),
        "c": ragged([[1, 2], [3, 4]]),
    }
    with pytest.raises(StructureError, match="row "):
        Dense([2, None], {name: fields[name] for name in names})


@pytest.mark.parametrize("value", of_type([[1, 2], [3]]))
def test_ragged_rows_make_no_dense_records(value):
    with pytest.raises(StructureError, match=r"RaggedStructuredTensor\.from_row_splits"):
        Dense([2, None], {"r": value})
    with pytest.raises(StructureError):
        Dense([2, None], {"r": value, "same": value})


@pytest.mark.parametrize("value", of_type([[1, 2], [3, 4]]))
def test_rows_of_one_length_give_the_size(value):
    records = Dense([None, None], {"r": value})
    assert records.shape == [2, 2]
    assert pa.array(xt.to_arrow(records)).to_pylist() == records.to_py()


@pytest.mark.parametrize(
    "value", [tf.RaggedTensor.from_row_lengths(tf.zeros([0]), []), tf.zeros([0, 3])]
)
def test_no_rows_have_any_length(value):
    assert Dense([None, None], {"r": value}).shape[0] == 0


def test_deeper_dimensions_are_checked_too():
    deep = tf.ragged.constant([[[1, 2], [3]], [[4, 5], [6]]])
    assert Dense([None, None], {"d": deep}).shape == [2, 2]
    with pytest.raises(StructureError, match=r"d: .*row 1 of 1 element"):
        Dense([None, None, None], {"d": deep})


@pytest.mark.parametrize("shape", [[2, None], [None, None], [2, 2]])
def test_an_update_is_checked_likewise(shape):
    records = Dense(shape, {"a": tf.constant([[1, 2], [3, 4]])})
    for value in [*of_type([[1, 2], [3]]), tf.zeros([2, 3])]:
        with pytest.raises(StructureError) as caught:
            records.with_updates(b=value)
        assert caught.value.path == "b"
    nested = Dense([], {"in": records})
    with pytest.raises(StructureError) as caught:
        nested.with_updates({"in.b": ragged([[1, 2], [3]])})
    assert caught.value.path == "in.b"


def test_an_update_of_ragged_records_names_the_first_row():
    with pytest.raises(StructureError) as caught:
        steps([0, 2, 3, 3]).with_updates(b=ragged([[1, 2], [], [3]]))
    assert "row 1" in str(caught.value)
    with pytest.raises(StructureError, match="4 rows"):
        steps([0, 2, 3, 3]).with_updates(b=ragged([[1, 2], [], [3], []]))


def test_counts_of_fields_name_both_fields():
    with pytest.raises(StructureError) as caught:
        Dense([None], {"a": [1, 2], "b": [1, 2, 3]})
    assert caught.value.path == "b"
    assert caught.value.expected == "a value whose shape begins with (2,), as that of a"


def test_a_spec_is_checked_likewise():
    with pytest.raises(StructureError) as caught:
        xt.DenseStructuredTensorSpec([None], {"a": tf.TensorSpec([2]), "b": tf.TensorSpec([3])})
    assert caught.value.path == "b"


def test_a_cast_checks_rows():
    spec = xt.DenseStructuredTensorSpec(
        [None, None],
        {"a": tf.RaggedTensorSpec([None, None]), "b": tf.RaggedTensorSpec([None, None])},
    )
    with pytest.raises(StructureError):
        spec.cast({"a": [[1.0, 2.0], [3.0]], "b": [[1.0], [2.0, 3.0]]})
    with pytest.raises(StructureError):
        spec.cast({"a": [[1.0, 2.0], [3.0]], "b": [[1.0, 2.0], [3.0]]})


def test_static_shapes_are_checked_in_a_graph_and_no_op_is_added_for_them():
    @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([None, 3])])
    def unlike(a, b):
        return Dense([None, None], {"a": a, "b": b})

    with pytest.raises(StructureError):
        unlike.get_concrete_function()

    @tf.function(input_signature=[tf.TensorSpec([None, 2]), tf.RaggedTensorSpec([None, None])])
    def unknown(a, b):
        return Dense([None, None], {"a": a, "b": b}, validate=False)

    graph = unknown.get_concrete_function().graph
    assert {op.type for op in graph.get_operations()} <= {"Placeholder", "Identity", "NoOp"}


def test_row_splits_of_another_number_of_rows_are_found_in_a_graph():
    splits = tf.TensorSpec([3], tf.int64), tf.TensorSpec([4], tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None]), *splits])
    def unlike(x, two, three):
        records = Ragged.from_row_splits(Dense([None], {"x": x}), two)
        return records.with_updates(y=tf.RaggedTensor.from_row_splits(x, three, validate=False))

    with pytest.raises(StructureError) as caught:
        unlike.get_concrete_function()
    assert caught.value.path == "y"


# Records without fields.


EMPTY = xt.DenseStructuredTensorSpec([None], {})
EMPTY_ROWS = xt.RaggedStructuredTensorSpec([None, None], EMPTY)


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (EMPTY, [{}, {}, {}]),
        (EMPTY, []),
        (xt.DenseStructuredTensorSpec([], {}), {}),
        (xt.DenseStructuredTensorSpec([None, None], {}), [[{}, {}], [{}, {}]]),
        (EMPTY_ROWS, [[{}, {}], [], [{}]]),
        (xt.DenseStructuredTensorSpec([None], {"e": EMPTY}), [{"e": {}}, {"e": {}}]),
        (xt.DenseStructuredTensorSpec([None], {"e": EMPTY_ROWS}), [{"e": [{}, {}]}, {"e": []}]),
    ],
    ids=str,
)
def test_records_without_fields_keep_their_count(spec, value):
    records = spec.cast(value)
    assert records.to_py() == value
    assert spec.cast(records).to_py() == value


def test_records_without_fields_keep_their_count_from_one_encoding_to_the_other():
    dense = Dense([2, 3], {})
    rows = EMPTY_ROWS.cast(dense)
    assert isinstance(rows, Ragged)
    back = xt.DenseStructuredTensorSpec([None, None], {}).cast(rows)
    assert rows.to_py() == back.to_py() == dense.to_py() == [[{}] * 3] * 2


def test_a_count_that_does_not_fit_is_an_error():
    for value in (Dense([2], {}), [{}, {}]):
        with pytest.raises(ExtensorError):
            xt.DenseStructuredTensorSpec([3], {}).cast(value)
    with pytest.raises(StructureError):
        xt.DenseStructuredTensorSpec([None, None], {}).cast([[{}], [{}, {}]])
    with pytest.raises(StructureError, match="number of records"):
        EMPTY.cast({})
    assert xt.DenseStructuredTensorSpec([3], {}).cast({}).shape == [3]


def test_a_mask_has_the_dimensions_of_the_records():
    mask = xt.types.MaskedTensor([[1, 2], [3, 4]], [True, False])
    with pytest.raises(StructureError, match=r"^m: expected a mask with the 2 dimensions"):
        Dense([2, 2], {"m": mask})
    with pytest.raises(StructureError, match=r"^m: expected a mask with the 2 dimensions"):
        Dense([2, 2], {"x": [[1, 2], [3, 4]]}).with_updates(m=mask)
    assert Dense([2], {"m": mask}).to_py() == [{"m": [1, 2]}, {"m": None}]


def test_masked_lists_are_compared_with_the_other_fields():
    lists = tf.ragged.constant([[1, 2], [3]])
    masked = xt.types.MaskedTensor(lists, tf.ones_like(lists, tf.bool))
    for fields in ({"x": [[1, 2], [3, 4]], "m": masked}, {"m": masked, "x": [[1, 2], [3, 4]]}):
        with pytest.raises(StructureError, match=r"^m: .*row 1 of 1 element"):
            Dense([2, 2], fields)


@pytest.mark.parametrize("others", [{}, {"x": [[1, 2], [3, 4]]}], ids=["alone", "beside others"])
def test_rows_of_different_lengths_from_a_graph_are_not_written_to_arrow(others):
    make = tf.function(
        lambda lists: Dense([None, None], {**others, "lists": lists}, validate=False)
    )
    records = make(tf.ragged.constant([[1, 2], [3]]))
    with pytest.raises(StructureError, match=r"^lists: expected rows"):
        xt.to_arrow(records)
    nested = Dense([2], {"inner": records})
    with pytest.raises(StructureError, match=r"^inner\.lists: expected rows"):
        xt.to_arrow(nested)
    assert xt.to_arrow(make(tf.ragged.constant([[1, 2], [3, 4]]))) is not None
