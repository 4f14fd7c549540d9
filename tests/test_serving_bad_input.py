"""Requests, responses, specs and files that are not right."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature
from tests import sample_declared as declared
from tests.sample_serving import RECIPE, RECIPE_SPEC, assert_alike, content, served
from tests.sample_types import fresh_masked_type

GOOD = {
    "recipe__title": ["soup", "stew"],
    "recipe__tags": ["quick"],
    "recipe__tags___row_splits": [0, 1, 1],
    "recipe__steps__minutes": [5, 20, 8],
    "recipe__steps__tools": ["pan", "pot", "lid"],
    "recipe__steps__tools___row_splits": [0, 1, 1, 3],
    "recipe__steps___row_splits": [0, 2, 3],
}
LENGTHS = {
    name.replace("row_splits", "row_lengths"): list(np.diff(value)) if "___" in name else value
    for name, value in GOOD.items()
}
BAD = {
    "splits that overrun": {"recipe__tags___row_splits": [0, 1, 2]},
    "splits that leave values over": {"recipe__tags___row_splits": [0, 0, 0]},
    "splits that begin late": {"recipe__tags___row_splits": [1, 1, 1]},
    "splits that decrease": {"recipe__steps___row_splits": [0, 4, 3]},
    "splits of inner lists": {"recipe__steps__tools___row_splits": [0, 1, 1, 2]},
    "no splits": {"recipe__steps___row_splits": []},
    "fields of different lengths": {"recipe__steps__minutes": [5, 20]},
    "a ragged field of another length": {"recipe__tags___row_splits": [0, 1]},
    "lists of another length": {"recipe__steps___row_splits": [0, 3]},
    "more records": {"recipe__title": ["soup", "stew", "pie"]},
}


def raises(error, function, *args, **kwargs):
    with pytest.raises(error) as raised:
        function(*args, **kwargs)
    assert all((raised.value.expected, raised.value.received, raised.value.mend))
    return raised.value


def tensors(layout, words):
    return {c.name: tf.constant(words[c.name], c.spec.dtype) for c in layout.components}


def test_the_tensors_of_a_good_request_pass_the_checks():
    for ragged, words in (("row_splits", GOOD), ("row_lengths", LENGTHS)):
        signature = flat_signature(lambda recipe: recipe, RECIPE_SPEC, ragged=ragged, validate=True)
        assert content(signature.encode(RECIPE)) == content(tensors(signature.inputs, words))
        response = signature.function(**tensors(signature.inputs, words))
        assert_alike(signature.decode(response), RECIPE)


@pytest.mark.parametrize("case", BAD)
def test_tensors_that_do_not_fit_are_refused_by_function_and_client(case):
    signature = flat_signature(lambda recipe: recipe["title"], RECIPE_SPEC, validate=True)
    request = tensors(signature.inputs, GOOD | BAD[case])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"recipe\.|slice index"):
        signature.function(**request)
    client = flat_signature(lambda recipe: {"recipe": recipe}, RECIPE_SPEC)
    error = raises(errors.StructureError, client.decode, request)
    assert error.path.startswith("recipe.")
    client.decode(tensors(signature.inputs, GOOD))


@pytest.mark.parametrize(
    ("change", "words"),
    [([2, -1], "of which none is negative"), ([0, 0], "that add up to the number of values")],
)
def test_row_lengths_that_do_not_fit_are_refused(change, words):
    request = LENGTHS | {"recipe__tags___row_lengths": change}
    signature = flat_signature(
        lambda recipe: recipe["title"], RECIPE_SPEC, validate=True, ragged="row_lengths"
    )
    words = rf"recipe\.tags: expected row lengths {words}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        signature.function(**tensors(signature.inputs, request))
    client = flat_signature(lambda recipe: {"recipe": recipe}, RECIPE_SPEC, ragged="row_lengths")
    with pytest.raises(errors.StructureError, match=words):
        client.decode(tensors(signature.inputs, request))


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
    """A checked function of one argument as a server runs it, which compares no shapes itself."""
    signature = flat_signature(lambda r: tf.nest.flatten(r, True)[0], spec, validate=True)
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
        dense([None], v=VECTOR, w=VECTOR), {"r__v": [1, 2, 3], "r__w": 10}, "r__w",
    ),
    "a scalar for the only field": (dense([None], w=VECTOR), {"r__w": 10}, "r__w"),
    "a scalar for a field of a record": (
        dense([None], a=dense([None], x=VECTOR), w=VECTOR), {"r__w": [1], "r__a__x": 1}, "r__a__x",
    ),
    "a vector for a matrix of records": (
        dense([None, None], x=tf.TensorSpec([None, None], tf.int32)), {"r__x": [1]}, "r__x",
    ),
    "rows of another size": (
        dense([None], w=tf.TensorSpec([None, 2], tf.int32)), {"r__w": [[1, 2, 3]]}, "r__w",
    ),
    "a row for each of many": (
        dense([None], w=tf.TensorSpec([None, 2], tf.int32)), {"r__w": [[1]]}, "r__w",
    ),
    "a scalar for a field of any rank": (
        dense([None], v=VECTOR, w=tf.TensorSpec(None, tf.int32)), {"r__v": [1], "r__w": 1}, "r.w",
    ),
    "a field of any rank with other rows": (
        dense([None], v=VECTOR, w=tf.TensorSpec(None, tf.int32)), {"r__v": [1], "r__w": [1, 2]},
        "r.",
    ),
    "a scalar for a plain tensor": (VECTOR, {"r": 1}, "r "),
    "a matrix of row splits": (
        tf.RaggedTensorSpec([None, None], tf.int32), {"r": [1, 2], "r___row_splits": [[0], [2]]},
        "r___row_splits",
    ),
    "a scalar for the values of lists": (LISTS, {"r": 1, "r___row_splits": [0, 1]}, "r: "),
    "values of any rank that the splits leave over": (
        LISTS, {"r": [1, 2], "r___row_splits": [0, 1]}, "r: ",
    ),
    "lists of another number": (
        PAIRS, {"r": [1, 2], "r___row_splits": [0, 1], "r___row_splits_1": [0, 2]}, "r: ",
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
    "a scalar for the count of records": (dense([None], a=dense([None])), {"r__a___rows": 1}, "r_"),
}  # fmt: skip
ANY_SHAPE = {
    "a field": (
        dense([None], v=VECTOR, w=tf.TensorSpec(None, tf.int32)), {"r__v": [1], "r__w": [[1, 2]]},
    ),
    "lists": (LISTS, {"r": [[1, 2], [3, 4]], "r___row_splits": [0, 2]}),
    "pairs": (PAIRS, {"r": [7], "r___row_splits": [0, 2, 4], "r___row_splits_1": [0, 1, 1, 1, 1]}),
    "no pair": (PAIRS, {"r": [], "r___row_splits": [0], "r___row_splits_1": [0]}),
    "a sparse tensor": (
        SPARSE, {"r__indices": [[0, 1]], "r__values": [1], "r__dense_shape": [2, 2]},
    ),
    "a sparse scalar": (
        SPARSE, {"r__indices": np.zeros([1, 0]), "r__values": [1], "r__dense_shape": []},
    ),
    "a sparse field": (
        dense([None], v=VECTOR, w=SPARSE),
        {"r__v": [5], "r__w__indices": [[0, 1]], "r__w__values": [1], "r__w__dense_shape": [1, 2]},
    ),
}  # fmt: skip


def sent(function, request):
    specs = function.structured_input_signature[1]
    return function(**{name: tf.cast(value, specs[name].dtype) for name, value in request.items()})


@pytest.mark.parametrize("case", OTHER_SHAPES)
def test_tensors_of_other_shapes_are_refused_on_a_server(tmp_path, case):
    spec, request, named = OTHER_SHAPES[case]
    function = on_a_server(tmp_path, spec)
    assert set(request) == set(function.structured_input_signature[1])
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        sent(function, request)
    assert named in raised.value.message


@pytest.mark.parametrize("case", ANY_SHAPE)
def test_tensors_whose_specs_leave_the_shape_open_are_taken_if_they_fit(tmp_path, case):
    spec, request = ANY_SHAPE[case]
    sent(on_a_server(tmp_path, spec), request)


def test_nothing_is_checked_where_nobody_asked():
    def operations(validate):
        signature = flat_signature(lambda recipe: recipe, RECIPE_SPEC, validate=validate)
        graph = signature.function.get_concrete_function().graph
        functions = graph.as_graph_def().library.function
        nodes = [*graph.as_graph_def().node, *(n for f in functions for n in f.node_def)]
        return {node.op for node in nodes}

    assert "Assert" in operations(True)
    assert not {"Assert", "If", "StatelessIf"} & operations(False)


def test_what_cannot_be_sent_is_refused_by_its_path():
    variable = declared.Counter(tf.Variable(1.0), tf.Variable(2.0))
    error = raises(errors.UnsupportedTypeError, flat_signature, lambda x: x.count, variable)
    assert (error.path, error.received) == ("x.count", "a variable")
    dataset = tf.data.Dataset.range(3)
    error = raises(errors.UnsupportedTypeError, flat_signature, lambda x: 1, dataset)
    assert (error.path, error.received) == ("x", "a tensor of dtype variant")


def test_wrong_specs_are_refused():
    number = tf.TensorSpec([])
    error = raises(errors.DTypeError, flat_signature, lambda x, y: x, number)
    assert "(x, y)" in error.expected
    assert "'y'" in error.received
    error = raises(errors.DTypeError, flat_signature, lambda x: x, number, number)
    assert isinstance(error, TypeError)
    error = raises(errors.ProtocolError, flat_signature, 3, number)
    assert error.received == "int"
    error = raises(errors.StructureError, flat_signature, lambda x: None, number)
    assert "returns none" in error.received
    error = raises(errors.StructureError, flat_signature, lambda x: x, number, ragged="splits")
    assert "'row_splits' or 'row_lengths'" in error.expected
    value = declared.Labelled([1.0], {1: tf.constant(1), "1": tf.constant(1)})
    error = raises(errors.StructureError, flat_signature, lambda x: x.label[1], value)
    assert error.path == "x.label.1"


def test_values_of_another_type_are_refused_by_their_path():
    signature = flat_signature(lambda a, b: b, {"x": RECIPE_SPEC}, tf.TensorSpec([None, 2]))
    good = {"x": RECIPE}, [[1.0, 2.0]]
    signature.encode(*good)
    error = raises(errors.DTypeError, signature.encode, {"x": RECIPE.without("tags")}, good[1])
    assert error.path.startswith("a.x")
    error = raises(errors.StructureError, signature.encode, good[0], [[1.0]])
    assert error.path == "b"
    error = raises(errors.DTypeError, signature.encode, good[0], [["a", "b"]])
    assert error.path == "b"
    error = raises(errors.StructureError, signature.encode, {"y": RECIPE}, good[1])
    assert (error.path, error.expected, error.received) == ("a", "a dict with x", "a dict with y")
    error = raises(errors.StructureError, signature.encode, RECIPE, good[1])
    assert error.received == "DenseStructuredTensor"
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        signature.encode(good[0])
    sparse = flat_signature(tf.sparse.to_dense, tf.SparseTensorSpec([None, 3]))
    error = raises(errors.DTypeError, sparse.encode, tf.sparse.from_dense([[1.0, 2.0]]))
    assert error.path == sparse.inputs.components[0].path.names[0]


def test_a_response_must_be_whole():
    signature = flat_signature(lambda x: {"y": x, "z": x}, tf.TensorSpec([None, 2]))
    good = {"y": [[1.0, 2.0]], "z": np.zeros([0, 2], np.float32)}
    signature.decode(good)
    error = raises(errors.FieldError, signature.decode, {"y": [[1.0, 2.0]]})
    assert (error.path, error.received) == ("z", "none")
    error = raises(errors.FieldError, signature.decode, good | {"more": 1})
    assert error.path == "more"
    error = raises(errors.StructureError, signature.decode, good | {"y": [[1.0]]})
    assert error.path == "y"
    error = raises(errors.DTypeError, signature.decode, good | {"y": tf.constant([[1, 2]])})
    assert "int32" in error.received


def test_a_type_without_a_registered_name_is_refused_before_anything_is_written(tmp_path):
    masked_type, masked_spec = fresh_masked_type()
    signature = flat_signature(lambda x: x.values, masked_spec([None], tf.float32))
    value = masked_type(tf.constant([1.0]), tf.constant([True]))
    assert served(signature, value) == [1.0]
    error = raises(errors.RegistrationError, xt.serving.save, None, tmp_path / "model", signature)
    assert "register_type_spec" in error.mend
    assert not (tmp_path / "model").exists()
    error = raises(errors.DTypeError, xt.serving.save, None, tmp_path / "model", lambda x: x)
    assert "flat_signature" in error.mend


@pytest.mark.parametrize("module", ["module", 3, len, {}], ids=repr)
def test_what_holds_no_variables_is_refused_as_a_module(tmp_path, module):
    signature = flat_signature(lambda x: x, RECIPE_SPEC)
    error = raises(errors.DTypeError, xt.serving.save, module, tmp_path / "model", signature)
    assert (error.path, error.received) == ("module", type(module).__name__)
    assert not (tmp_path / "model").exists()


def damaged(tmp_path, change):
    path = tmp_path / "model"
    xt.serving.save(None, path, flat_signature(lambda x: x, RECIPE_SPEC))
    file = path / "assets.extra" / "extensor.json"
    file.write_text(change(file.read_text()))
    return path


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda text: text[:100], errors.FormatError),
        (lambda text: "[]", errors.FormatError),
        (lambda text: text.replace("version 1", "version 9"), errors.FormatError),
        (lambda text: text.replace('"inputs"', '"in"'), errors.FormatError),
        (lambda text: text.replace("dictValue", "wrong"), errors.FormatError),
        (lambda text: text.replace("POSITIONAL_OR_KEYWORD", "other"), errors.FormatError),
        (lambda text: text.replace('"x__title"', '"x__name"'), errors.StructureError),
        (
            lambda text: text.replace(
                '"types": {', '"types": {"tests.UnheardOfSpec": "some.module",'
            ),
            errors.RegistrationError,
        ),
        (lambda text: text.replace("serving_default", "other"), errors.FieldError),
    ],
)
def test_a_file_that_is_not_what_was_written_is_refused(tmp_path, change, error):
    path = damaged(tmp_path, change)
    raised = raises(error, xt.serving.load_client, path)
    if error is errors.RegistrationError:
        assert "some.module" in raised.mend
    else:
        assert raised.path == str(path / "assets.extra" / "extensor.json")
