"""Records with nulls, unions, times and maps in flat signatures and clients."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.samples.arrow_records import features, records, spec


class Model(tf.Module):
    def __call__(self, recipe):
        return {"features": features(recipe), "recipe": recipe.with_only("price", "kind", "when")}


NAMES = """
    author__age author__age__mask author__mask author__name kind__codes kind__int kind__string
    price price__mask steps__row_splits steps__amount__codes steps__amount__int
    steps__amount__string steps__at steps__minutes steps__minutes__mask tags tags__mask
    tags__row_splits when words__row_splits words__key words__value
""".split()


@pytest.mark.whole("saves and loads models")
@pytest.mark.parametrize("ragged", ["row_splits", "row_lengths"])
@pytest.mark.parametrize("validate", [False, True])
def test_a_saved_signature_takes_and_returns_them(tmp_path, ragged, validate):
    model, value = Model(), records()
    prune = not validate
    signature = xt.serving.flat_signature(
        model, spec(), ragged=ragged, validate=validate, prune=prune
    )
    used = [name for name in NAMES if not prune or name != "steps__at"]
    names = [name.replace("row_splits", ragged) for name in used]
    assert sorted(c.name for c in signature.inputs.components) == sorted(names)
    xt.serving.save(model, tmp_path / "model", signature)
    server = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    client = xt.serving.load_client(tmp_path / "model")
    for request in (value, value.to_py()):
        response = client.decode(server(**client.encode(request)))
        np.testing.assert_array_equal(response["features"], features(value))
        recipe = response["recipe"]
        assert recipe.to_py() == value.with_only("price", "kind", "when").to_py()
    arrow = xt.to_arrow(client.decode(server(**client.encode(value)))["recipe"])
    assert arrow.schema.field("when").type == xt.to_arrow(value).schema.field("when").type


def test_a_request_is_a_dict_of_plain_arrays():
    def served(recipe):
        return {"total": tf.where(recipe["price"].mask, recipe["price"].values, 0.0)}

    union = xt.types.UnionTensor.Spec({"n": tf.TensorSpec([None]), "t": tf.TensorSpec([None])})
    price = xt.types.MaskedTensor.Spec(tf.TensorSpec([None]))
    recipe = xt.DenseStructuredTensorSpec([None], {"price": price, "kind": union})
    signature = xt.serving.flat_signature(served, recipe, validate=True, prune=False)
    request = {
        "price": [1.0, 2.0],
        "price__mask": [True, False],
        "kind__codes": np.array([0, 1], np.int8),
        "kind__n": [5.0],
        "kind__t": [6.0],
    }
    response = signature.function(**{name: tf.constant(x) for name, x in request.items()})
    assert response["total"].numpy().tolist() == [1.0, 0.0]
    wrong = {
        "kind__codes": np.array([0, 7], np.int8),  # no such variant
        "kind__t": np.array([6.0, 7.0], np.float32),  # a row too many
        "price__mask": [True],
    }
    for name, array in wrong.items():
        tensors = {n: tf.constant(x) for n, x in {**request, name: array}.items()}
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"kind|price"):
            signature.function(**tensors)
