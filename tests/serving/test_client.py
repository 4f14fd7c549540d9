"""`xt.serving.Client`: requests and responses of any values."""

import json

import numpy as np
import tensorflow as tf

import extensor as xt
from extensor import errors
from extensor.serving import flat_signature
from tests.serving.sample import (
    RECIPE,
    RECIPE_SPEC,
    content,
    raises,
)


def test_requests_may_be_json_data_or_tensors():
    """Lists, where an empty list has no dtype; and dicts for records."""
    signature = flat_signature(lambda recipe, taste: (recipe, taste),
                               RECIPE_SPEC, tf.TensorSpec([None, 3]))  # fmt: skip
    steps = [[{"minutes": 5, "tools": ["pan"]}, {"minutes": 20, "tools": []}], []]
    recipes = [
        {"title": "soup", "tags": ["quick"], "steps": steps[0]},
        {"title": "stew", "tags": [], "steps": steps[1]},
    ]
    request = content(signature.encode(recipes, []))
    assert request["recipe__steps__row_splits"] == [0, 2, 2]
    assert request["recipe__steps__tools"] == [b"pan"]
    response = {name.replace("recipe", "output_0"): value for name, value in request.items()}
    response["output_1"] = response.pop("taste")
    for text in ("output_0__title", "output_0__tags", "output_0__steps__tools"):
        response[text] = [one.decode() for one in response[text]]
    records, taste = signature.decode(json.loads(json.dumps(response)))
    assert records["steps.tools"].to_list() == [[[b"pan"], []], []]
    assert taste.shape == [0, 3]


def test_the_error_for_a_value_of_another_type_has_its_path():
    signature = flat_signature(lambda a, b: (a, b), {"x": RECIPE_SPEC}, tf.TensorSpec([None, 2]))
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
    error = raises(errors.DTypeError, signature.encode, good[0])
    assert isinstance(error, TypeError)
    assert error.expected == "the arguments (a, b)"
    assert "'b'" in error.received
    sparse = flat_signature(tf.sparse.to_dense, tf.SparseTensorSpec([None, 3]))
    error = raises(errors.DTypeError, sparse.encode, tf.sparse.from_dense([[1.0, 2.0]]))
    assert error.path == sparse.inputs.components[0].path.names[0]


def test_a_single_record_in_place_of_a_batch_gets_the_mend():
    spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])})
    signature = flat_signature(lambda records: records["x"], spec)
    error = raises(errors.StructureError, signature.encode, {"x": 1.5})
    assert error.path == "records: x"
    assert error.fix.endswith("for one record, give [record].")
    assert content(signature.encode([{"x": 1.5}])) == content(signature.encode({"x": [1.5]}))


def test_a_response_must_be_whole():
    signature = flat_signature(lambda x: {"y": x, "z": x}, tf.TensorSpec([None, 2]))
    good = {"y": [[1.0, 2.0]], "z": np.zeros([0, 2], np.float32)}
    signature.decode(good)
    error = raises(errors.DTypeError, signature.decode, tf.constant([[1.0, 2.0]]))
    assert error.expected == "tensors by name"
    error = raises(errors.FieldError, signature.decode, {"y": [[1.0, 2.0]]})
    assert (error.path, error.received) == ("z", "the names y")
    error = raises(errors.FieldError, signature.decode, good | {"more": 1})
    assert error.path == "more"
    error = raises(errors.StructureError, signature.decode, good | {"y": [[1.0]]})
    assert error.path == "y"
    error = raises(errors.DTypeError, signature.decode, good | {"y": tf.constant([[1, 2]])})
    assert "int32" in error.received
