"""Sequential models that declare the type of their input."""

import keras
import numpy as np
import pytest

import extensor as xt
from extensor import errors
from tests.keras import sample_models as sample

RECORDS = sample.recipes()


SPEC = sample.batches().element_spec[0]


def test_a_sequential_that_declares_its_input_says_where_another_differs(tmp_path):
    layers = [sample.Totals(), keras.layers.Dense(1)]
    undeclared, model = (
        xt.keras.Sequential(layers),
        xt.keras.Sequential([xt.keras.Input(SPEC), *layers]),
    )
    more = RECORDS.with_updates(more=RECORDS["taste"])
    np.testing.assert_array_equal(undeclared(more), model(RECORDS))
    model.save(tmp_path / "model.keras")
    for one in (model, keras.saving.load_model(tmp_path / "model.keras")):
        np.testing.assert_array_equal(one(RECORDS[:3]), model(RECORDS[:3]))
        for records, path in ((more, "more"), (RECORDS.without("taste"), "taste")):
            with pytest.raises(errors.DTypeError) as raised:
                one(records)
            assert raised.value.path == f"{model.name}: input {path}"
