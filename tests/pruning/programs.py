"""Random functions of records, to compare what they use with what the analysis finds."""

import numpy as np
import pyarrow as pa
import tensorflow as tf
from hypothesis import strategies as st

NUMBERS = [("a",), ("b",), ("c",), ("inner", "d"), ("inner", "e")]
LISTS = [("steps", "m"), ("steps", "n"), ("tags",), ("inner", "sizes")]


def table(seed, rows=7):
    """Records with numbers, strings, a struct, a list of numbers and a list of structs."""
    random = np.random.default_rng(seed)
    lengths = {name: random.integers(0, 4, rows) for name in ("steps", "tags", "sizes")}

    def numbers(count):
        return random.normal(size=count).astype(np.float32).tolist()

    steps = [
        [{"m": m, "n": n, "text": str(m)} for m, n in zip(numbers(k), numbers(k), strict=True)]
        for k in lengths["steps"]
    ]
    inner = [
        {"d": d, "e": e, "sizes": numbers(k)}
        for d, e, k in zip(numbers(rows), numbers(rows), lengths["sizes"], strict=True)
    ]
    step = pa.struct({"m": pa.float32(), "n": pa.float32(), "text": pa.string()})
    return pa.table(
        {
            "a": pa.array(numbers(rows), pa.float32()),
            "b": pa.array(numbers(rows), pa.float32()),
            "c": pa.array(numbers(rows), pa.float32()),
            "title": pa.array([f"r{seed}-{i}" * (i + 1) for i in range(rows)]),
            "tags": pa.array([numbers(k) for k in lengths["tags"]], pa.list_(pa.float32())),
            "inner": pa.array(
                inner,
                pa.struct({"d": pa.float32(), "e": pa.float32(), "sizes": pa.list_(pa.float32())}),
            ),
            "steps": pa.array(steps, pa.list_(step)),
        }
    )


def _expressions():
    leaf = st.one_of(
        st.sampled_from(NUMBERS).map(lambda path: ("number", path)),
        st.sampled_from(LISTS).map(lambda path: ("sum", path)),
        st.sampled_from(LISTS).map(lambda path: ("lengths", path)),
        st.sampled_from([*NUMBERS, *LISTS, ("title",)]).map(lambda path: ("rows", path)),
        st.just(("text", ("title",))),
        st.just(("text", ("steps", "text"))),
    )

    def larger(inner):
        return st.one_of(
            st.tuples(st.sampled_from(["add", "zero", "sum of one"]), inner, inner),
            st.tuples(st.sampled_from(["cond", "case", "switch"]), inner, inner, inner),
            st.tuples(st.sampled_from(["while", "call", "gradient", "assert"]), inner, inner),
        )

    return st.recursive(leaf, larger, max_leaves=7)


EXPRESSIONS = _expressions()


def value(expression, records):
    """Returns the vector of an expression, one number for each record."""
    word, *rest = expression
    if word in _LEAVES:
        return _LEAVES[word](records, rest[0])
    return _OPERATIONS[word](*(lambda one=one: value(one, records) for one in rest))


def _rows(records, path):
    field = records[path]
    nrows = field.nrows() if isinstance(field, tf.RaggedTensor) else tf.shape(field)[0]
    return tf.fill([tf.cast(nrows, tf.int32)], tf.cast(nrows, tf.float32))


def _text(records, path):
    lengths = tf.strings.length(records[path])
    if isinstance(lengths, tf.RaggedTensor):
        lengths = tf.reduce_sum(lengths, axis=1)
    return tf.cast(lengths, tf.float32)


_LEAVES = {
    "number": lambda records, path: records[path],
    "sum": lambda records, path: tf.reduce_sum(records[path], axis=1),
    "lengths": lambda records, path: tf.cast(records[path].row_lengths(), tf.float32),
    "rows": _rows,
    "text": _text,
}


def _while(start, step):
    # The second variable does not reach the first, so that it is not used.
    added, dead = step(), start() + 1.0
    return tf.while_loop(
        lambda i, total, other: i < 3,
        lambda i, total, other: (i + 1, total + added, other * dead),
        (0, start(), dead),
    )[1]


def _call(first, second):
    @tf.function
    def both(a, b):
        return tf.nn.relu(a), b * 2.0

    return both(first(), second())[0]


def _gradient(first, second):
    @tf.custom_gradient
    def scaled(x):
        return tf.identity(x), lambda upstream: upstream * second()

    x = first()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x) * 3.0
    return tape.gradient(y, x)


def _assert(first, checked):
    with tf.control_dependencies([tf.debugging.assert_all_finite(checked(), "finite")]):
        return tf.identity(first())


_OPERATIONS = {
    "add": lambda a, b: a() + 2.0 * b(),
    "zero": lambda a, b: a() + tf.zeros_like(b()),
    "sum of one": lambda a, b: tf.unstack(tf.stack([a(), b()]))[0],
    "cond": lambda p, a, b: tf.cond(tf.reduce_sum(p()) > 0.0, a, b),
    "case": lambda p, a, b: tf.switch_case(tf.cast(tf.reduce_sum(p()) > 0.0, tf.int32), [a, b]),
    "switch": lambda p, a, b: tf.where(p() > 0.0, a(), b()),
    "while": _while,
    "call": _call,
    "gradient": _gradient,
    "assert": _assert,
}
