"""Casting changes no TensorFlow call without extension values: same results, same errors."""

import json

import pytest
import tensorflow as tf

import extensor as xt

pytestmark = pytest.mark.whole("compares fresh processes")

CALLS = """
import json
import sys
import tempfile
import warnings

import tensorflow as tf

if {imported}:
    import extensor

warnings.simplefilter("ignore")


class A(tf.experimental.ExtensionType):
    x: tf.Tensor


class B(tf.experimental.ExtensionType):
    x: tf.Tensor


class Rows(tf.experimental.ExtensionType):
    x: tf.RaggedTensor


def ragged(rows, splits=tf.int64):
    return tf.ragged.constant(rows, row_splits_dtype=splits)


def loop(a, b, **kwargs):
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, b), (0, a), **kwargs)


def invariant_loop(a, b):
    shape = a.shape if isinstance(a, tf.Tensor) else tf.type_spec_from_value(a)
    return loop(a, b, shape_invariants=(tf.TensorShape([]), shape))


def concatenated(a, b):
    return list(tf.data.Dataset.from_tensors(a).concatenate(tf.data.Dataset.from_tensors(b)))


JOINS = {{
    "while_loop": tf.function(loop),
    "while_loop, eagerly": loop,
    "while_loop, shape_invariants": tf.function(invariant_loop),
    "cond": tf.function(lambda a, b: tf.cond(tf.constant(True), lambda: a, lambda: b)),
    "switch_case": tf.function(lambda a, b: tf.switch_case(tf.constant(0), [lambda: a, lambda: b])),
    "case": tf.function(
        lambda a, b: tf.case([(tf.constant(True), lambda: a)], default=lambda: b)
    ),
    "concatenate": concatenated,
}}
DENSE, ROWS = tf.ones([2, 2]), ragged([[1.0], [2.0, 3.0]])
SPARSE = tf.sparse.from_dense(DENSE)
PAIRS = {{
    "dense and sparse": (DENSE, SPARSE),
    "sparse and ragged": (SPARSE, ROWS),
    "ragged of another dtype": (ROWS, ragged([[1]])),
    "ragged of another rank": (ROWS, ragged([[[1.0]]])),
    "ragged and a vector": (ROWS, tf.ones([3])),
    "two extension types": (A(DENSE), B(DENSE)),
    "an extension type of another dtype": (A(DENSE), A(tf.ones([3, 3], tf.int32))),
    "an extension type and a tensor": (A(DENSE), DENSE),
    "row splits within an extension type": (Rows(ROWS), Rows(ragged([[1.0]], tf.int32))),
    # Calls that fail in plain TensorFlow and succeed with casting.
    "dense and ragged": (DENSE, ROWS),
    "row splits": (ROWS, ragged([[1.0], []], tf.int32)),
}}


def error_of(function, *args):
    try:
        function(*args)
    except Exception as error:
        # Names of functions and lines of tracebacks differ from run to run.
        return type(error).__name__
    return "passes"


found = {{
    f"{{join}}: {{pair}}, {{order}}": error_of(function, *values[::step])
    for join, function in JOINS.items()
    for pair, values in PAIRS.items()
    for order, step in (("forwards", 1), ("backwards", -1))
}}

found["while_loop: another number of rows"] = error_of(
    JOINS["while_loop, shape_invariants"], ROWS, ragged([[1.0]], tf.int32)
)
deep = ragged([[[1.0]], [[2.0, 3.0]]])
for name, dense, rank in (("of unknown rank", tf.TensorSpec(None), 1), ("too flat", None, 2)):
    for order in (1, -1):
        signature = [dense or tf.TensorSpec([2, 2]), tf.RaggedTensorSpec(None, ragged_rank=rank)]
        values = [DENSE, ROWS if rank == 1 else deep]
        for join in ("while_loop", "cond", "switch_case"):
            joined = tf.function(JOINS[join].python_function, input_signature=signature[::order])
            found[f"{{join}}: a tensor {{name}}, {{order}}"] = error_of(joined, *values[::order])


module = tf.Module()
module.total = tf.function(tf.reduce_sum)
module.total.get_concrete_function(tf.TensorSpec([None, None]))
module.signed = tf.function(tf.reduce_sum, input_signature=[tf.TensorSpec([None, None])])
module.rows = tf.function(tf.reduce_sum, input_signature=[tf.RaggedTensorSpec([None, None])])
for name, spec in {{
    "lengths": tf.RaggedTensorSpec([None, None]),
    "shorts": tf.RaggedTensorSpec([None, None], row_splits_dtype=tf.int32),
    "pairs": tf.RaggedTensorSpec([None, 2], row_splits_dtype=tf.int64),
    "deep": tf.RaggedTensorSpec([None, None, None]),
    "flat": tf.RaggedTensorSpec([None, None, None], ragged_rank=1),
}}.items():
    setattr(module, name, tf.function(lambda x: x.flat_values))
    getattr(module, name).get_concrete_function(spec)
with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(module, folder)
    loaded = tf.saved_model.load(folder)
ARGUMENTS = {{
    "dense": DENSE,
    "rows of unequal length": ROWS,
    "rows of one length": ragged([[1.0], [2.0]]),
    "short row splits": ragged([[1.0], [2.0, 3.0]], tf.int32),
    "numbers": [[1.0, 2.0]],
    "ragged rank 1": tf.RaggedTensor.from_row_splits(tf.ones([3, 2]), [0, 1, 3]),
    "ragged rank 2": deep,
}}
for name in ("total", "signed", "rows", "lengths", "shorts", "pairs", "deep", "flat"):
    for of, holder in (("restored", loaded), ("traced", module)):
        for kind, argument in ARGUMENTS.items():
            found[f"{{name}}, {{of}}: {{kind}}"] = error_of(getattr(holder, name), argument)
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def errors(run_python):
    """Returns the error of each call, without and with the import."""
    return [
        json.loads(run_python(CALLS.format(imported=imported)).stdout) for imported in (False, True)
    ]


def is_cast(call):
    """Returns whether docs/casting.md lists a call that fails only in plain TensorFlow."""
    if call in ("lengths, restored: short row splits", "deep, restored: ragged rank 1"):
        return True
    join, _, pair = call.partition(": ")
    return pair.startswith(("dense and ragged", "row splits,")) and join != "while_loop, eagerly"


def test_calls_without_extension_values_fail_as_without_the_import(errors):
    without, with_import = errors
    changed = {c: (e, with_import[c]) for c, e in without.items() if with_import[c] != e}
    assert {c: e for c, e in changed.items() if not is_cast(c)} == {}
    assert sum(error != "passes" for error in without.values()) > 100


def test_calls_that_fail_only_in_plain_tensorflow_are_those_that_the_docs_list(errors):
    without, with_import = errors
    listed = [call for call in without if is_cast(call)]
    assert len(listed) == 26
    assert {without[call] for call in listed} <= {"TypeError", "ValueError"}
    # With these invariants the variable stays dense, and the rows here do not have one length.
    stays_dense = "while_loop, shape_invariants: dense and ragged, forwards"
    assert with_import.pop(stays_dense) == "InvalidArgumentError"
    listed.remove(stays_dense)
    assert {with_import[call] for call in listed} == {"passes"}


@pytest.mark.parametrize("starts_with_variable", [True, False])
@pytest.mark.parametrize("returns_variable", [True, False])
def test_the_body_of_a_loop_returns_a_composite_that_holds_a_variable(
    starts_with_variable, returns_variable
):
    variable = tf.Variable([1.0, 2.0])
    first, later = tf.constant([3.0, 4.0]), tf.constant([5.0, 6.0])

    @tf.function
    def loop(rounds):
        return tf.while_loop(
            lambda i, _: i < rounds,
            lambda i, _: (i + 1, operator(variable if returns_variable else later)),
            (0, operator(variable if starts_with_variable else first)),
        )[1].diag

    operator = tf.linalg.LinearOperatorDiag
    start = [1.0, 2.0] if starts_with_variable else [3.0, 4.0]
    end = [1.0, 2.0] if returns_variable else [5.0, 6.0]
    assert loop(tf.constant(0)).numpy().tolist() == start
    assert loop(tf.constant(2)).numpy().tolist() == end


def test_the_body_of_a_loop_returns_a_distribution_that_holds_a_variable():
    from tests.samples.peer import tfp

    loc = tf.Variable(1.0)

    @tf.function
    def loop(normal):
        return tf.while_loop(
            lambda i, _: i < 2,
            lambda i, _: (i + 1, tfp.distributions.Normal(loc, 1.0)),
            (0, normal),
        )[1].mean()

    assert loop(tfp.distributions.Normal(loc, 1.0)).numpy() == 1.0
    assert loop(tfp.distributions.Normal(3.0, 1.0)).numpy() == 1.0


def test_a_variable_and_ragged_rows_meet_in_a_loop():
    variable = tf.Variable([[1.0, 2.0]])
    rows = tf.ragged.constant([[3.0], []])

    @tf.function
    def loop(rounds):
        return tf.while_loop(lambda i, _: i < rounds, lambda i, _: (i + 1, rows), (0, variable))[1]

    assert loop(tf.constant(0)).to_list() == [[1.0, 2.0]]
    assert loop(tf.constant(1)).to_list() == [[3.0], []]


def test_comparing_types_adds_no_op_to_a_loop(run_python):
    counts = """
        {imported}
        import tensorflow as tf

        variable = tf.Variable([1.0, 2.0])
        operator = tf.linalg.LinearOperatorDiag
        loop = tf.function(
            lambda: tf.while_loop(
                lambda i, _: i < 2,
                lambda i, _: (i + 1, operator(variable)),
                (0, operator(variable)),
            )[1].diag
        )
        graph = loop.get_concrete_function().graph
        graphs = [graph, *(function.graph for function in graph._functions.values())]
        print([op.type for part in graphs for op in part.get_operations()])
    """
    without, with_import = (
        run_python(counts.format(imported=line)).stdout for line in ("", "import extensor")
    )
    assert "ReadVariableOp" in without
    assert with_import == without


def test_a_mismatch_with_an_extension_value_names_the_variable():
    masked = xt.types.MaskedTensor([1.0], [True])
    for other in (tf.sparse.from_dense([1.0]), tf.ragged.constant([[1.0]])):
        with pytest.raises(xt.errors.DTypeError, match=r"tf\.while_loop, variable 1: expected a "):
            tf.function(
                lambda x=other: tf.while_loop(
                    lambda i, _: i < 2, lambda i, _: (i + 1, x), (0, masked)
                )
            )()
