"""What the pages say of other libraries is what the installed ones do, without extensor.

Each claim is a sentence of a page, and a program that shows it. The programs run in one process
that does not import extensor, because the import changes the errors of Keras.
"""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.whole("builds models of plain Keras in a process of its own")

SETUP = """
import json
import awkward as ak
import keras
import numpy as np
import tensorflow as tf

RAGGED = tf.RaggedTensor.from_row_lengths(tf.ones([3, 2]), [2, 1])

def predicted(layer, values=RAGGED, dtype="float32"):
    given = keras.Input(values.shape[1:], dtype=dtype, ragged=True)
    return keras.Model(given, layer(given)).predict(values, verbose=0).shape

def error_of(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""

class Measured(tf.experimental.BatchableExtensionType):
    value: tf.Tensor

class Total(keras.layers.Layer):
    def call(self, measured):
        return measured.value

class Model(keras.Model):
    def call(self, measured):
        return measured.value

measured = Measured(tf.ones([2, 3]))
records = tf.experimental.StructuredTensor.from_pyval([{"a": [{"b": 1}]}, {"a": []}])
FOUND = {}
"""

# The page, its words, an expression, and its value: a pattern, if it is the text of an error.
CLAIMS = {
    "keras_input_takes_ragged": (
        "docs/asked-programs.md",
        "Plain Keras has `keras.Input(ragged=True)` since 3.8",
        "keras.Input([None], ragged=True).ragged",
        True,
    ),
    "embedding_and_pooling_take_ragged": (
        "docs/asked-programs.md",
        "`Embedding` and `GlobalAveragePooling1D` do",
        "predicted(lambda x: keras.layers.GlobalAveragePooling1D()("
        "keras.layers.Embedding(9, 4)(x)), tf.ragged.constant([[1, 2], [3]]), 'int32')",
        [2, 4],
    ),
    "dense_takes_no_ragged": (
        "docs/asked-programs.md",
        "`Dense` and `LSTM` do not",
        "error_of(predicted, keras.layers.Dense(3))",
        "Error: ",
    ),
    "lstm_takes_no_ragged": (
        "docs/asked-programs.md",
        "`Dense` and `LSTM` do not",
        "error_of(predicted, keras.layers.LSTM(3))",
        "Error: ",
    ),
    "most_layers_are_dense": (
        "docs/howto/ragged.md",
        "`Embedding` takes ragged ones too",
        "predicted(keras.layers.Embedding(9, 4), tf.ragged.constant([[1, 2], [3]]), 'int32')[0]",
        2,
    ),
    "input_has_no_type_spec": (
        "docs/asked-programs.md",
        "`Input(type_spec=...)`, which Keras 3 does not",
        "error_of(keras.Input, type_spec=Measured.Spec(tf.TensorSpec([None, 3])))",
        "unexpected keyword argument 'type_spec'",
    ),
    "layers_take_only_tensors": (
        "docs/asked.md",
        "layers of Keras 3 take only tensors",
        "error_of(Total(), measured)",
        "Only input tensors may be passed",
    ),
    "no_extension_type_in_fit": (
        "README.md",
        "`tf.experimental.ExtensionType`: a base class, and no Keras 3",
        "error_of(Model().predict, measured, verbose=0)",
        "Unrecognized data type",
    ),
    "functions_take_no_placeholders": (
        "docs/asked-programs.md",
        "TensorFlow's functions do not take placeholders",
        "error_of(tf.nn.relu, keras.Input([3]))",
        "KerasTensor cannot be used as input to a TensorFlow function",
    ),
    "awkward_has_to_raggedtensor": (
        "README.md",
        "`ak.to_raggedtensor`",
        "ak.to_raggedtensor(ak.Array([[1, 2], [], [3]])).to_list()",
        [[1, 2], [], [3]],
    ),
    "awkward_converts_no_records": (
        "README.md",
        "of each column of numbers",
        "error_of(ak.to_raggedtensor, ak.Array([{'x': [1]}, {'x': []}]))",
        "of numbers can be converted",
    ),
    "awkward_converts_no_nulls": (
        "docs/compare.md",
        "neither records nor nulls",
        "error_of(ak.to_raggedtensor, ak.Array([[1, None], [3]]))",
        "of numbers can be converted",
    ),
    "awkward_needs_data": (
        "docs/compare.md",
        "in a `tf.function`, in a saved model and on a server there is no awkward array",
        "error_of(tf.function(lambda x: ak.from_raggedtensor(x)), RAGGED)",
        "Error: ",
    ),
    "their_records_do_not_gather": (
        "docs/migrate/structured-tensor.md",
        "`tf.gather`, `tf.where`, `tf.reverse` and others | not supported",
        "[error_of(tf.gather, records, [0]), error_of(tf.where, [True, False], records, records),"
        " error_of(tf.reverse, records, [0])].count('')",
        0,
    ),
    "their_records_fail_in_map": (
        "docs/migrate/structured-tensor.md",
        "`dataset.map(f).batch(n)` of records with lists | fails in the graph",
        "error_of(lambda: list(tf.data.Dataset.from_tensor_slices(records)"
        ".map(lambda r: r).batch(2)))",
        "Error: ",
    ),
    "examples_have_few_dtypes": (
        "docs/compare.md",
        "dtypes that tf.Example does not",
        "error_of(tf.io.parse_example, tf.constant(['']),"
        " {'x': tf.io.FixedLenFeature([], tf.int32, 0)})",
        "Error: ",
    ),
}


@pytest.fixture(scope="module")
def found(run_python):
    pytest.importorskip("awkward")
    lines = [f"FOUND[{name!r}] = {claim[2]}" for name, claim in CLAIMS.items()]
    code = "\n".join([SETUP, *lines, "import sys", "assert 'extensor' not in sys.modules"])
    printed = run_python(code + "\nprint('FOUND' + json.dumps(FOUND))").stdout
    return json.loads(printed.rpartition("FOUND")[2])


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_on_another_library_is_true(found, name):
    page, words, _, expected = CLAIMS[name]
    text = re.sub(r"\s+", " ", (ROOT / page).read_text())
    assert words in text, "The page says something else now: change the claim, or leave it out."
    if isinstance(expected, str):
        assert expected in found[name]
    else:
        assert found[name] == expected
