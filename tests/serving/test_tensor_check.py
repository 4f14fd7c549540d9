"""Functions and clients reject tensors that do not match each other."""

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature
from tests.serving.sample import RECIPE, RECIPE_SPEC, assert_alike, content, raises

GOOD = {
    "title": ["soup", "stew"],
    "tags": ["quick"],
    "tags__row_splits": [0, 1, 1],
    "steps__minutes": [5, 20, 8],
    "steps__tools": ["pan", "pot", "lid"],
    "steps__tools__row_splits": [0, 1, 1, 3],
    "steps__row_splits": [0, 2, 3],
}
LENGTHS = {
    name.replace("row_splits", "row_lengths"): list(np.diff(value))
    if "__row_splits" in name
    else value
    for name, value in GOOD.items()
}


BAD = {
    "splits that overrun": {"tags__row_splits": [0, 1, 2]},
    "splits that leave values over": {"tags__row_splits": [0, 0, 0]},
    "splits that begin late": {"tags__row_splits": [1, 1, 1]},
    "splits that decrease": {"steps__row_splits": [0, 4, 3]},
    "splits of inner lists": {"steps__tools__row_splits": [0, 1, 1, 2]},
    "no splits": {"steps__row_splits": []},
    "fields of different lengths": {"steps__minutes": [5, 20]},
    "a ragged field of another length": {"tags__row_splits": [0, 1]},
    "lists of another length": {"steps__row_splits": [0, 3]},
    "more records": {"title": ["soup", "stew", "pie"]},
}


def tensors(layout, words):
    return {c.name: tf.constant(words[c.name], c.spec.dtype) for c in layout.components}


def test_tensors_of_a_valid_request_pass_the_checks():
    for ragged, words in (("row_splits", GOOD), ("row_lengths", LENGTHS)):
        signature = flat_signature(lambda recipe: recipe, RECIPE_SPEC, ragged=ragged, validate=True)
        assert content(signature.encode(RECIPE)) == content(tensors(signature.inputs, words))
        response = signature.function(**tensors(signature.inputs, words))
        assert_alike(signature.decode(response), RECIPE)


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("case", BAD)
def test_function_and_client_reject_tensors_that_do_not_match(case):
    signature = flat_signature(
        lambda recipe: recipe["title"], RECIPE_SPEC, validate=True, prune=False
    )
    request = tensors(signature.inputs, GOOD | BAD[case])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"recipe\.|slice index"):
        signature.function(**request)
    client = flat_signature(lambda recipe: recipe, RECIPE_SPEC)
    error = raises(errors.StructureError, client.decode, request)
    assert error.path.startswith("output_0.")
    client.decode(tensors(signature.inputs, GOOD))


@pytest.mark.parametrize(
    ("change", "words"),
    [([2, -1], "of 0 or more"), ([0, 0], "that add up to the number of values")],
)
def test_row_lengths_that_do_not_match_are_an_error(change, words):
    request = LENGTHS | {"tags__row_lengths": change}
    signature = flat_signature(
        lambda recipe: recipe["tags"], RECIPE_SPEC, validate=True, ragged="row_lengths"
    )
    request = {component.name: request[component.name] for component in signature.inputs.components}
    words = rf"\.tags: expected row lengths {words}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        signature.function(**tensors(signature.inputs, request))
    client = flat_signature(lambda recipe: recipe, RECIPE_SPEC, ragged="row_lengths")
    with pytest.raises(errors.StructureError, match=words):
        client.decode(tensors(client.outputs, LENGTHS | {"tags__row_lengths": change}))


@pytest.mark.parametrize(
    "change",
    [
        {"x__indices": [[0, 0], [1, 2]]},
        {"x__indices": [[0, -1], [1, 1]]},
        {"x__indices": [[0, 0]]},
        {"x__values": [1.0]},
    ],
)
def test_indices_of_a_sparse_tensor_lie_within_its_shape(change):
    signature = flat_signature(
        lambda x: tf.sparse.reduce_sum(x), tf.SparseTensorSpec([None, None]), validate=True
    )
    words = {"x__indices": [[0, 0], [1, 1]], "x__values": [1.0, 2.0], "x__dense_shape": [2, 2]}
    assert signature.function(**tensors(signature.inputs, words))["output_0"] == 3.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"x: "):
        signature.function(**tensors(signature.inputs, words | change))


def on_a_server(path, spec):
    """A checked function of one argument as a server runs it, without a check of shapes."""
    signature = flat_signature(
        lambda r: tf.nest.flatten(r, True)[0], spec, validate=True, prune=False
    )
    xt.serving.save(None, path, signature)
    return tf.saved_model.load(path).signatures["serving_default"]


def dense(shape, **fields):
    return xt.DenseStructuredTensorSpec(shape, fields)


VECTOR = tf.TensorSpec([None], tf.int32)


LISTS = tf.RaggedTensorSpec(None, tf.int32, 1)


PAIRS = tf.RaggedTensorSpec([None, 2, None], tf.int32, 2)


SPARSE = tf.SparseTensorSpec(None, tf.int32)


OTHER_SHAPES = {
    "a scalar for a vector of rows": (
        dense([None], v=VECTOR, w=VECTOR), {"v": [1, 2, 3], "w": 10}, "w",
    ),
    "a scalar for the only field": (dense([None], w=VECTOR), {"w": 10}, "w"),
    "a scalar for a field of a record": (
        dense([None], a=dense([None], x=VECTOR), w=VECTOR), {"w": [1], "a__x": 1}, "a__x",
    ),
    "a vector for a matrix of records": (
        dense([None, None], x=tf.TensorSpec([None, None], tf.int32)), {"x": [1]}, "x",
    ),
    "rows of another size": (
        dense([None], w=tf.TensorSpec([None, 2], tf.int32)), {"w": [[1, 2, 3]]}, "w",
    ),
    "a row for each of many": (
        dense([None], w=tf.TensorSpec([None, 2], tf.int32)), {"w": [[1]]}, "w",
    ),
    "a scalar for a field of any rank": (
        dense([None], v=VECTOR, w=tf.TensorSpec(None, tf.int32)), {"v": [1], "w": 1}, "r.w",
    ),
    "a field of any rank with other rows": (
        dense([None], v=VECTOR, w=tf.TensorSpec(None, tf.int32)), {"v": [1], "w": [1, 2]},
        "r.",
    ),
    "a scalar for a plain tensor": (VECTOR, {"r": 1}, "r "),
    "a matrix of row splits": (
        tf.RaggedTensorSpec([None, None], tf.int32), {"r": [1, 2], "r__row_splits": [[0], [2]]},
        "r__row_splits",
    ),
    "a scalar for the values of lists": (LISTS, {"r": 1, "r__row_splits": [0, 1]}, "r: "),
    "values of any rank that the splits leave over": (
        LISTS, {"r": [1, 2], "r__row_splits": [0, 1]}, "r: ",
    ),
    "lists of another number": (
        PAIRS, {"r": [1, 2], "r__row_splits": [0, 1], "r__row_splits_1": [0, 2]}, "r: ",
    ),
    "indices with a column that the shape lacks": (
        SPARSE, {"r__indices": [[0, 1]], "r__values": [1], "r__dense_shape": [2]}, "r: ",
    ),
    "indices that lack a column": (
        SPARSE, {"r__indices": [[0]], "r__values": [1], "r__dense_shape": [2, 2]}, "r: ",
    ),
    "a shape below zero": (
        SPARSE, {"r__indices": np.zeros([0, 1]), "r__values": [], "r__dense_shape": [-2]}, "r: ",
    ),
    "a scalar for the values of a sparse tensor": (
        SPARSE, {"r__indices": [[0]], "r__values": 1, "r__dense_shape": [2]}, "r__values",
    ),
    "a sparse tensor of another shape": (
        tf.SparseTensorSpec([None, 2], tf.int32),
        {"r__indices": [[0, 5]], "r__values": [1], "r__dense_shape": [1, 7]}, "r: ",
    ),
    "a scalar for the count of records": (
        dense([None], a=dense([None])), {"a__rows": 1}, "a__rows",
    ),
}  # fmt: skip


ANY_SHAPE = {
    "a field": (
        dense([None], v=VECTOR, w=tf.TensorSpec(None, tf.int32)), {"v": [1], "w": [[1, 2]]},
    ),
    "lists": (LISTS, {"r": [[1, 2], [3, 4]], "r__row_splits": [0, 2]}),
    "pairs": (PAIRS, {"r": [7], "r__row_splits": [0, 2, 4], "r__row_splits_1": [0, 1, 1, 1, 1]}),
    "no pair": (PAIRS, {"r": [], "r__row_splits": [0], "r__row_splits_1": [0]}),
    "a sparse tensor": (
        SPARSE, {"r__indices": [[0, 1]], "r__values": [1], "r__dense_shape": [2, 2]},
    ),
    "a sparse scalar": (
        SPARSE, {"r__indices": np.zeros([1, 0]), "r__values": [1], "r__dense_shape": []},
    ),
    "a sparse field": (
        dense([None], v=VECTOR, w=SPARSE),
        {"v": [5], "w__indices": [[0, 1]], "w__values": [1], "w__dense_shape": [1, 2]},
    ),
}  # fmt: skip


def sent(function, request):
    specs = function.structured_input_signature[1]
    return function(**{name: tf.cast(value, specs[name].dtype) for name, value in request.items()})


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("case", OTHER_SHAPES)
def test_a_server_rejects_tensors_of_other_shapes(tmp_path, case):
    spec, request, named = OTHER_SHAPES[case]
    function = on_a_server(tmp_path, spec)
    assert set(request) == set(function.structured_input_signature[1])
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        sent(function, request)
    assert named in raised.value.message


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("case", ANY_SHAPE)
def test_tensors_for_specs_of_unknown_shape_are_accepted_if_they_match(tmp_path, case):
    spec, request = ANY_SHAPE[case]
    sent(on_a_server(tmp_path, spec), request)


def test_masks_inside_of_masks_are_checked():
    lists = pa.array([[[1, None], None, []], None, []], pa.list_(pa.list_(pa.int32())))
    records = xt.from_arrow(pa.table({"x": lists}), nulls="mask")
    spec = xt.spec_of(records).unstacked().stacked(None)
    signature = flat_signature(lambda records: records, spec, validate=True)
    request = signature.encode(records)
    assert signature.decode(signature.function(**request)).to_py() == records.to_py()
    request["x__mask_1__row_splits"] = tf.constant([0, 1, 3, 3], tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"mask: expected the rows of the"):
        signature.function(**request)
    with pytest.raises(errors.StructureError, match=r"mask: expected the rows of the values"):
        signature.decode(request)


def test_nothing_is_checked_by_default():
    def operations(validate):
        signature = flat_signature(lambda recipe: recipe, RECIPE_SPEC, validate=validate)
        graph = signature.function.get_concrete_function().graph
        functions = graph.as_graph_def().library.function
        nodes = [*graph.as_graph_def().node, *(n for f in functions for n in f.node_def)]
        return {node.op for node in nodes}

    assert "Assert" in operations(True)
    assert not {"Assert", "If", "StatelessIf"} & operations(False)
