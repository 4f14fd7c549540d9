"""Pruning: clients send only what a function uses, of records with all fields or few."""

import numpy as np
import pyarrow as pa
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
        f"records__steps__{ragged}",
        "scale",
    ]
    records = xt.from_arrow(table(0))
    request = signature.encode(records.with_only("inner.d", "steps.m"), 2.0)
    score = signature.decode(signature.function(**request))["score"]
    np.testing.assert_array_equal(score, function(records, 2.0)["score"])


# Its names and tensors do not depend on the function.
WHOLE = xt.serving.flat_signature(lambda records: records["a"], SPEC, prune=False)


@pytest.mark.whole("draws many values")
@given(EXPRESSIONS, st.integers(0, 3))
def test_results_are_those_of_all_fields(expression, seed):
    def function(records):
        return {"score": value(expression, records)}

    pruned = xt.serving.flat_signature(function, SPEC)
    records = xt.from_arrow(table(seed))
    tensors = WHOLE.encode(records)
    assert set(names(pruned)) <= set(tensors)
    some = {name: tensors[name] for name in names(pruned)}
    np.testing.assert_array_equal(
        tf.function(function)(records)["score"], pruned.function(**some)["score"]
    )


def test_a_saved_model_takes_only_used_tensors(tmp_path):
    signature = xt.serving.flat_signature(lambda records: records["a"] * 2.0, SPEC)
    xt.serving.save(None, tmp_path, signature)
    served = tf.saved_model.load(tmp_path).signatures["serving_default"]
    assert list(served.structured_input_signature[1]) == ["a"]
    client = xt.serving.load_client(tmp_path)
    assert client.decode(served(**client.encode([{"a": 3.0}]))).numpy().tolist() == [6.0]


FORMS = {
    "records": xt.from_arrow,
    "python": lambda table: xt.from_arrow(table).to_py(),
    "columns": lambda table: {name: xt.from_arrow(table)[name] for name in table.column_names},
    "arrow": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
}


def steps(records):
    return {"total": tf.reduce_sum(records["steps", "m"], axis=1) * records["inner", "d"]}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_loaded", [False, True])
def test_whole_records_are_taken_and_what_is_used_is_sent(form, is_loaded, tmp_path):
    signature = xt.serving.flat_signature(steps, SPEC)
    client = signature
    if is_loaded:
        xt.serving.save(None, tmp_path, signature)
        client = xt.serving.load_client(tmp_path)
    assert client.unused == signature.unused
    request = client.encode(FORMS[form](table(0)))
    assert list(request) == names(signature)
    whole = WHOLE.encode(xt.from_arrow(table(0)))
    for name, tensor in request.items():
        np.testing.assert_array_equal(tensor, whole[name])


@pytest.mark.parametrize("form", FORMS)
def test_a_field_that_no_record_has_is_an_error(form):
    signature = xt.serving.flat_signature(steps, SPEC)
    more = table(0).append_column("unheard", table(0).column("a"))
    with pytest.raises(errors.ExtensorError, match="unheard"):
        signature.encode(FORMS[form](more))
    assert list(signature.encode(FORMS[form](more), extra="ignore")) == names(signature)


def test_the_unused_fields_and_those_that_are_sent_are_all_fields():
    signature = xt.serving.flat_signature(steps, SPEC)
    fields = {path for path in xt.DenseStructuredTensorSpec.leaves(SPEC)}
    sent = {str(c.path) for c in signature.inputs.components if not c.part}
    unused = [str(path) for path in signature.unused]
    for path, _ in fields:
        at = f"records.{path}"
        outer = [one for one in unused if at == one or at.startswith(f"{one}.")]
        assert (at in sent) != bool(outer)


def test_a_function_of_all_fields_is_as_without_pruning():
    whole = xt.serving.flat_signature(lambda records: {"same": records}, SPEC)
    plain = xt.serving.flat_signature(lambda records: {"same": records}, SPEC, prune=False)
    assert whole.unused == ()
    assert whole.inputs.components == plain.inputs.components
    assert whole.inputs.structure == plain.inputs.structure
    nodes = [
        [node.op for node in one.function.get_concrete_function().graph.as_graph_def().node]
        for one in (whole, plain)
    ]
    assert nodes[0] == nodes[1]


def test_the_error_for_a_missing_field_names_it():
    signature = xt.serving.flat_signature(lambda records: records["a"], SPEC)
    with pytest.raises(errors.ExtensorError, match=r"records: a: "):
        signature.encode(xt.from_arrow(table(0)).without("a"))


def test_static_arguments_beside_records():
    def function(given):
        return {"score": given["records"]["b"] * given["scale"] * given["by"]}

    scale = tf.TensorSpec([], tf.float32)
    specs = {"by": 2.0, "records": SPEC, "scale": scale}
    signature = xt.serving.flat_signature(function, specs)
    assert names(signature) == ["records__b", "scale"]
    request = {"records__b": tf.constant([1.0]), "scale": tf.constant(3.0)}
    assert signature.function(**request)["score"].numpy().tolist() == [6.0]


UNUSED = {
    "lists of records": (pa.list_(pa.struct({"q": pa.int64()})), [[{"q": 1}], []]),
    "lists": (pa.list_(pa.int64()), [[1], []]),
    "records": (pa.struct({"q": pa.string()}), [{"q": "a"}, {"q": "b"}]),
    "lists of lists": (pa.list_(pa.list_(pa.int64())), [[[1]], []]),
    "lists of vectors": (pa.list_(pa.list_(pa.int64(), 2)), [[[1, 2]], []]),
}


@pytest.mark.parametrize("nulls", ["error", "mask", {"f[*]": "mask"}])
@pytest.mark.parametrize("kind", UNUSED)
def test_a_field_that_nothing_uses_is_not_sent_whatever_may_be_null(kind, nulls):
    def function(records):
        return records["b"]

    arrow, rows = UNUSED[kind]
    if nulls == {"f[*]": "mask"} and not kind.startswith("lists"):
        nulls = {"f.q": "mask"}
    data = pa.table({"f": pa.array(rows, arrow), "b": pa.array([3, 4], pa.int64())})
    spec = xt.spec_from_schema(data.schema, nulls=nulls)
    signature = xt.serving.flat_signature(function, spec)
    assert {name.partition("__")[0] for name in names(signature)} == {"b"}
    found = signature.decode(
        signature.function(**signature.encode(xt.from_arrow(data, nulls=nulls)))
    )
    assert (found.to_py() if nulls == "mask" else found.numpy().tolist()) == [3, 4]
