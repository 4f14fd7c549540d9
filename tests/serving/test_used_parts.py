"""`flat_signature(prune=True)`: clients send only the tensors that a function uses."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor import errors
from extensor._arrow.schema import spec_from_schema
from tests.pruning.programs import EXPRESSIONS, table, value

SPEC = spec_from_schema(table(0).schema, None)


def names(signature):
    return [component.name for component in signature.inputs.components]


@pytest.mark.parametrize("ragged", ["row_splits", "row_lengths"])
@pytest.mark.parametrize("validate", [False, True])
def test_clients_send_only_used_tensors(ragged, validate):
    def function(records, scale):
        total = tf.reduce_sum(records["steps", "m"], axis=1)
        return {"score": total * records["inner", "d"] * scale}

    scale = tf.TensorSpec([], tf.float32)
    signature = xt.serving.flat_signature(
        function, SPEC, scale, ragged=ragged, validate=validate, prune=True
    )
    assert names(signature) == [
        "records__inner__d",
        "records__steps__m",
        f"records__steps___{ragged}",
        "scale",
    ]
    records = xt.from_arrow(table(0))
    request = signature.encode(records.with_only("inner.d", "steps.m"), 2.0)
    score = signature.decode(signature.function(**request))["score"]
    np.testing.assert_array_equal(score, function(records, 2.0)["score"])


# Its names and tensors do not depend on the function.
WHOLE = xt.serving.flat_signature(lambda records: records["a"], SPEC)


@pytest.mark.whole("draws many values")
@given(EXPRESSIONS, st.integers(0, 3))
def test_results_are_those_of_all_fields(expression, seed):
    def function(records):
        return {"score": value(expression, records)}

    pruned = xt.serving.flat_signature(function, SPEC, prune=True)
    records = xt.from_arrow(table(seed))
    tensors = WHOLE.encode(records)
    assert set(names(pruned)) <= set(tensors)
    some = {name: tensors[name] for name in names(pruned)}
    np.testing.assert_array_equal(
        tf.function(function)(records)["score"], pruned.function(**some)["score"]
    )


def test_a_saved_model_takes_only_used_tensors(tmp_path):
    signature = xt.serving.flat_signature(lambda records: records["a"] * 2.0, SPEC, prune=True)
    xt.serving.save(None, tmp_path, signature)
    served = tf.saved_model.load(tmp_path).signatures["serving_default"]
    assert list(served.structured_input_signature[1]) == ["records__a"]
    client = xt.serving.load_client(tmp_path)
    assert client.decode(served(**client.encode([{"a": 3.0}]))).numpy().tolist() == [6.0]


def test_the_error_for_a_missing_field_names_it():
    signature = xt.serving.flat_signature(lambda records: records["a"], SPEC, prune=True)
    with pytest.raises(errors.ExtensorError, match=r"spec\.cast"):
        signature.encode(xt.from_arrow(table(0)))


def test_static_arguments_beside_records():
    def function(given):
        return {"score": given["records"]["b"] * given["scale"] * given["by"]}

    scale = tf.TensorSpec([], tf.float32)
    specs = {"by": 2.0, "records": SPEC, "scale": scale}
    signature = xt.serving.flat_signature(function, specs, prune=True)
    assert names(signature) == ["given__records__b", "given__scale"]
    request = {"given__records__b": tf.constant([1.0]), "given__scale": tf.constant(3.0)}
    assert signature.function(**request)["score"].numpy().tolist() == [6.0]
