"""Values of other rows are refused in a graph as in eager mode, with the same text, by one op."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, StructureError

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor
S, Masked = xt.struct, xt.types.MaskedTensor


def of(size):
    return tf.range(size, dtype=tf.float32)


def grid(*sizes):
    return tf.reshape(of(int(np.prod(sizes))), sizes)


def rows(*lengths, dtype=tf.int64):
    return tf.RaggedTensor.from_row_lengths(of(sum(lengths)), tf.constant(lengths, dtype))


def deep(outer, inner):
    return tf.RaggedTensor.from_row_lengths(rows(*inner), outer)


def lists(x):
    """Returns records with the lists of records that have x."""
    return Dense([None], {"l": S.zip({"x": x}, 2, validate=False)})


def nested(x):
    return Dense([None], {"x": x, "in": Dense([None], {"x": x})})


@xt.extension_type
class Place:
    """A type without a shape: its number of rows is that of its components."""

    x: tf.Tensor

    def to_py(self):
        return self.x.numpy().tolist()


def positive(x):
    if isinstance(x, tf.RaggedTensor):
        return tf.ragged.map_flat_values(lambda flat: flat > 0.0, x)
    return x > 0.0


def ints(x):
    return tf.cast(x, tf.int32)


def masked(values, like, validate=True):
    """Returns values with a mask that has the rows of other values."""
    return (Masked if validate else Masked._of_parts)(values, positive(like))


@dataclass
class Way:
    """A way to make records of values that have the same rows.

    Attributes:
        make: Takes the values and whether to validate.
        agree: Values of the same rows.
        differ: Values of other rows; each is refused.
        checks: How many ops check this.
        same_text: Whether the eager error has the text of the op.
        choice: Whether it compares nothing if told not to validate.
    """

    make: Any
    agree: tuple[Any, ...]
    differ: list[tuple[Any, ...]]
    checks: int = 1
    same_text: bool = True
    choice: bool = True


WAYS = {
    "fields": Way(
        lambda x, y, v: Dense([None], {"x": x, "y": y}, validate=v),
        (of(3), of(3)), [(of(3), of(2)), (of(2), of(3)), (of(3), of(1)), (of(0), of(2))],
    ),
    "three fields": Way(
        lambda x, y, z, v: Dense([None], {"x": x, "y": y, "z": z}, validate=v),
        (of(3), of(3), of(3)), [(of(3), of(2), of(3)), (of(3), of(3), of(2))], checks=2,
    ),
    "two fields of one partition": Way(
        lambda x, y, v: Dense([None], {"x": x, "y": y, "z": tf.exp(y)}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "a size in the shape": Way(
        lambda x, v: Dense([3], {"x": x}, validate=v), (of(3),), [(of(2),), (of(0),)],
    ),
    "fields in two dimensions": Way(
        lambda x, y, v: Dense([None, None], {"x": x, "y": y}, validate=v),
        (grid(2, 3), grid(2, 3)), [(grid(2, 3), grid(2, 2)), (grid(2, 3), grid(3, 3))],
    ),
    "a ragged field": Way(
        lambda x, y, v: Dense([None], {"x": x, "y": y}, validate=v),
        (of(2), rows(2, 0)), [(of(2), rows(2)), (of(2), rows(2, 1, 0))],
    ),
    "ragged rows beside dense ones": Way(
        lambda x, y, v: Dense([None, None], {"x": x, "y": y}, validate=v),
        (grid(3, 2), rows(2, 2, 2)), [(grid(3, 2), rows(2, 3, 2)), (grid(3, 2), rows(2, 2))],
        checks=2,
    ),
    "ragged rows of one length": Way(
        lambda x, v: Dense([None, None], {"x": x}, validate=v),
        (rows(2, 2),), [(rows(2, 3),), (rows(0, 2),)],
    ),
    "ragged rows beside ragged ones": Way(
        lambda x, y, v: Dense([None, None], {"x": x, "y": y}, validate=v),
        (rows(2, 2), rows(2, 2)), [(rows(2, 2), rows(3, 3))], checks=3,
    ),
    "a field of records": Way(
        lambda x, y, v: Dense([None], {"x": x, "r": Dense([None], {"y": y})}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "with_updates": Way(
        lambda x, y, v: Dense([None], {"x": x}).with_updates({"y": y}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "with_updates of the only field": Way(
        lambda x, y, v: Dense([None], {"x": x}).with_updates({"x": y}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "with_updates of two fields of one partition": Way(
        lambda x, y, v: Dense([None], {"x": x}).with_updates({"y": y, "z": -y}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "with_updates of inner records": Way(
        lambda x, y, v: nested(x).with_updates({"in.y": y}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "with_updates of records in lists": Way(
        lambda x, y, v: lists(x).with_updates({"l.y": y}, validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 1, 0))],
    ),
    "with_updates of two fields in lists": Way(
        lambda x, y, v: lists(x).with_updates({"l.y": y, "l.z": y * 2.0}, validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2))],
    ),
    "with_updates of ragged records": Way(
        lambda x, y, v: S.zip({"x": x}, 2, validate=False).with_updates({"y": y}, validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2))],
    ),
    "with_updates in lists of lists": Way(
        lambda x, y, v: S.zip({"x": x}, 3, validate=False).with_updates({"y": y}, validate=v),
        (deep([1, 1], [2, 1]), deep([1, 1], [2, 1])),
        [(deep([1, 1], [2, 1]), deep([2, 0], [2, 1])),
         (deep([1, 1], [2, 1]), deep([1, 1], [1, 2]))],
        checks=2,
    ),
    "zip": Way(
        lambda x, y, v: S.zip({"x": x, "y": y}, validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 1, 2))],
    ),
    "zip of dense values": Way(
        lambda x, y, v: S.zip({"x": x, "y": y}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "zip of row splits of int32": Way(
        lambda x, y, v: S.zip({"x": x, "y": y}, validate=v),
        (rows(2, 1, dtype=tf.int32), rows(2, 1, dtype=tf.int32)),
        [(rows(2, 1, dtype=tf.int32), rows(1, 2, dtype=tf.int32))],
    ),
    "apply": Way(
        lambda x, y, v: S.apply(Dense([None], {"x": x}), lambda _: y, "x", "y", validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "apply in lists": Way(
        lambda x, y, v: S.apply(lists(x), lambda _: y, "l.x", "l.y", validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2))],
    ),
    "map_values": Way(
        lambda x, y, v: S.map_values(lists(x), lambda _: y, "l.x", validate=v),
        (rows(2, 1), of(3)), [(rows(2, 1), of(2))],
    ),
    "from_row_splits": Way(
        lambda x, s, v: Ragged.from_row_splits(Dense([None], {"x": x}), s, v),
        (of(3), tf.constant([0, 2, 3])),
        [(of(3), tf.constant(s)) for s in ([0, 2], [1, 3], [0, 2, 1, 3], [0, 2, 4])],
    ),
    "from_row_lengths": Way(
        lambda x, n, v: Ragged.from_row_lengths(Dense([None], {"x": x}), n, v),
        (of(3), tf.constant([2, 1])), [(of(3), tf.constant([2, 2]))],
    ),
    "from_value_rowids": Way(
        lambda x, n, v: Ragged.from_value_rowids(Dense([None], {"x": x}), n, validate=v),
        (of(3), tf.constant([0, 0, 1])), [(of(3), tf.constant(n)) for n in ([0, 1], [1, 0, 1])],
        checks=2,
    ),
    "from_uniform_row_length": Way(
        lambda x, v: Ragged.from_uniform_row_length(Dense([None], {"x": x}), 2, validate=v),
        (of(4),), [(of(3),)], same_text=False,
    ),
    "partition_outer_dimension": Way(
        lambda x, s, v: Dense([None], {"x": x}).partition_outer_dimension(s, v),
        (of(3), tf.constant([0, 2, 3])), [(of(3), tf.constant([0, 2]))],
    ),
    "a field of a type without a shape": Way(
        lambda x, y, v: Dense([None], {"x": x, "p": Place(y)}, validate=v),
        (of(3), of(3)), [(of(3), of(2)), (of(2), of(3))],
    ),
    "with_updates of a type without a shape": Way(
        lambda x, y, v: Dense([None], {"x": x}).with_updates({"p": Place(y)}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "zip of a type without a shape": Way(
        lambda x, y, v: S.zip({"x": x, "p": Place(y)}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "filter_by": Way(
        lambda x, m, v: S.filter_by(lists(x), "l", positive(m)),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 1, 2))],
        same_text=False, choice=False,
    ),
    "filter_by of records": Way(
        lambda x, m, v: S.filter_by(Dense([None], {"x": x}), (), positive(m)),
        (of(3), of(3)), [(of(3), of(2)), (of(2), of(3))], same_text=False, choice=False,
    ),
    "filter_by of dense lists": Way(
        lambda x, m, v: S.filter_by(Dense([None], {"x": x}), "x", positive(m)),
        (grid(2, 3), grid(2, 3)), [(grid(2, 3), grid(3, 2)), (grid(2, 3), grid(2, 2))],
        checks=2, same_text=False, choice=False,
    ),
    "filter_by of lists by a dense mask": Way(
        lambda x, m, v: S.filter_by(Dense([None], {"x": x}), "x", positive(m)),
        (rows(2, 2), grid(2, 2)), [(rows(1, 3), grid(2, 2)), (rows(2, 2), grid(3, 2))],
        same_text=False, choice=False,
    ),
    "filter_by of lists of lists": Way(
        lambda x, m, v: S.filter_by(S.zip({"x": x}, 2, validate=False), "x", positive(m)),
        (deep([1, 1], [2, 1]), deep([1, 1], [2, 1])),
        [(deep([1, 1], [2, 1]), deep([2, 0], [2, 1])),
         (deep([1, 1], [2, 1]), deep([1, 1], [1, 2]))],
        checks=2, same_text=False, choice=False,
    ),
    "records at a mask": Way(
        lambda x, m, v: Dense([None], {"x": x})[positive(m)],
        (of(3), of(3)), [(of(3), of(1)), (of(2), tf.constant([1.0, 1.0, 0.0]))],
        same_text=False, choice=False,
    ),
    "masked records at a mask": Way(
        lambda x, m, v: Dense([None], {"r": masked(Dense([None], {"x": x}), x)})["r", positive(m)],
        (of(3), of(3)), [(of(3), of(2))], same_text=False, choice=False,
    ),
    "a field at a mask of columns": Way(
        lambda x, m, v: Dense([None], {"x": x})[:, "x", positive(m)],
        (grid(2, 3), of(3)), [(grid(2, 3), of(2))], same_text=False, choice=False,
    ),
    "lists at a mask": Way(
        lambda x, m, v: lists(x)["l"][positive(m)],
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 1, 2))],
        same_text=False, choice=False,
    ),
    "lists at positions": Way(
        lambda x, n, v: lists(x)["l"][ints(n)],
        (rows(2, 2), rows(2, 0)), [(rows(2, 2), rows(2)), (rows(2, 2), rows(2, 0, 0))],
        checks=2, same_text=False, choice=False,
    ),
    "a mask alone": Way(
        lambda x, m, v: masked(x, m, v),
        (of(3), of(3)), [(of(3), of(2)), (of(2), of(3))], same_text=False,
    ),
    "a mask of items alone": Way(
        lambda x, m, v: masked(x, m, v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2))], same_text=False,
    ),
    # Outside of a graph, the mask is compared when it is made.
    "a mask": Way(
        lambda x, m, v: Dense([None], {"x": masked(x, m, v)}, validate=v),
        (of(3), of(3)), [(of(3), of(2)), (of(2), of(3)), (of(3), of(1)), (of(1), of(3))],
        same_text=False,
    ),
    "a mask of items": Way(
        lambda x, m, v: Dense([None], {"x": masked(x, m, v)}, validate=v),
        (rows(2, 1), rows(2, 1)),
        [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 1, 0)), (rows(2, 1), rows(2, 2))],
        same_text=False,
    ),
    "a mask of lists": Way(
        lambda x, m, v: Dense([None], {"x": masked(x, m, v)}, validate=v),
        (rows(2, 1), of(2)), [(rows(2, 1), of(3)), (rows(2, 1), of(1))], same_text=False,
    ),
    "a mask of items in lists of lists": Way(
        lambda x, m, v: Dense([None], {"x": masked(x, m, v)}, validate=v),
        (deep([1, 1], [2, 1]), deep([1, 1], [2, 1])),
        [(deep([1, 1], [2, 1]), deep([1, 1], [1, 2])),
         (deep([1, 1], [2, 1]), deep([2, 0], [2, 1]))],
        checks=2, same_text=False,
    ),
    "a mask in two dimensions": Way(
        lambda x, m, v: Dense([None, None], {"x": masked(x, m, v)}, validate=v),
        (grid(2, 3), grid(2, 3)), [(grid(2, 3), grid(2, 2)), (grid(2, 3), grid(3, 3))],
        checks=2, same_text=False,
    ),
    "a mask of records": Way(
        lambda x, m, v: Dense([None], {"r": masked(Dense([None], {"x": x}), m, v)}, validate=v),
        (of(3), of(3)), [(of(3), of(2)), (of(1), of(3))], same_text=False,
    ),
    "a mask of records in lists": Way(
        lambda x, m, v: Dense(
            [None], {"l": masked(S.zip({"x": x}, 2, validate=False), m, v)}, validate=v
        ),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 2))],
        same_text=False,
    ),
    "with_updates of a masked value": Way(
        lambda x, y, v: Dense([None], {"x": x}).with_updates({"y": masked(y, y)}, validate=v),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "with_updates of a mask": Way(
        lambda x, m, v: Dense([None], {"x": x}).with_updates({"y": masked(x, m, v)}, validate=v),
        (of(3), of(3)), [(of(3), of(2))], same_text=False,
    ),
    "with_updates of a mask of ragged records": Way(
        lambda x, m, v: S.zip({"x": x}, 2, validate=False).with_updates(
            {"y": masked(x, m, v)}, validate=v
        ),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 2))],
        same_text=False,
    ),
    "with_updates of a mask in lists": Way(
        lambda x, m, v: lists(x).with_updates({"l.y": masked(x, m, v)}, validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2))], same_text=False,
    ),
    "with_updates in masked records": Way(
        lambda x, y, v: Dense([None], {"r": masked(Dense([None], {"x": x}), x)}).with_updates(
            {"r.y": y}, validate=v
        ),
        (of(3), of(3)), [(of(3), of(2))],
    ),
    "zip of a masked value": Way(
        lambda x, y, v: S.zip({"x": x, "y": masked(y, y)}, validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2)), (rows(2, 1), rows(2, 1, 2))],
    ),
    "zip of a mask": Way(
        lambda x, m, v: S.zip({"x": x, "y": masked(x, m, v)}, validate=v),
        (rows(2, 1), rows(2, 1)), [(rows(2, 1), rows(1, 2))], same_text=False,
    ),
}  # fmt: skip


def open_spec(value):
    """Returns the spec of a value without its sizes."""
    if isinstance(value, tf.RaggedTensor):
        shape = [None] * value.shape.rank
        return tf.RaggedTensorSpec(shape, value.dtype, value.ragged_rank, value.row_splits.dtype)
    return tf.TensorSpec([None] * value.shape.rank, value.dtype)


def traced(way, validate=True):
    specs = [open_spec(value) for value in way.agree]
    return tf.function(
        lambda *values: way.make(*values, validate), input_signature=specs, autograph=False
    )


def in_function(way):
    function = traced(way)
    return lambda values: function(*values)


def in_dataset(way):
    specs = tuple(open_spec(value) for value in way.agree)

    def run(values):
        data = tf.data.Dataset.from_generator(lambda: iter([values]), output_signature=specs)
        return next(iter(data.map(lambda *each: way.make(*each, True))))

    return run


def in_cond(way):
    def make(*values):
        return tf.cond(
            tf.size(tf.nest.flatten(values[0], expand_composites=True)[0]) > -1,
            lambda: way.make(*values, True),
            lambda: way.make(*values, False),
        )

    return in_function(Way(lambda *args: make(*args[:-1]), way.agree, way.differ))


def checks_in(function):
    graph = function.get_concrete_function().graph
    return sum(op.type in ("Assert", "If", "StatelessIf") for op in graph.get_operations())


def python_of(value):
    return value.to_py() if hasattr(value, "to_py") else value.numpy().tolist()


def text_of(error):
    """Returns the message of an assertion, without the brackets around its parts."""
    return error.message.replace("] [", "")


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("place", [in_function, in_dataset, in_cond])
def test_a_graph_refuses_what_eager_mode_refuses(name, place):
    way = WAYS[name]
    run = place(way)
    assert python_of(run(way.agree)) == python_of(way.make(*way.agree, True))
    for values in way.differ:
        with pytest.raises(StructureError) as eager:
            way.make(*values, True)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            run(values)
        if way.same_text:
            assert str(eager.value) in text_of(caught.value)


@pytest.mark.parametrize("name", WAYS)
def test_each_partition_that_may_differ_is_one_op_and_without_validate_none(name):
    way = WAYS[name]
    assert checks_in(traced(way)) == way.checks
    assert not way.choice or checks_in(traced(way, validate=False)) == 0


RECORDS = Dense([2], {
    "x": of(2), "y": of(2), "name": ["a", "b"], "tags": rows(2, 1),
    "l": Ragged.from_row_splits(Dense([3], {"a": of(3), "b": of(3)}), [0, 2, 3]),
    "in": Dense([2], {"z": of(2)}), "m": Masked(of(2), [True, False]),
})  # fmt: skip

SHARED = {
    "arithmetic": lambda r: r.with_updates(z=r["x"] * 2.0 + r["y"]),
    "a dense layer": lambda r: r.with_updates(
        z=tf.nn.relu(r["x"][:, tf.newaxis] @ tf.ones([1, 3]) + tf.ones([3]))
    ),
    "casts and strings": lambda r: r.with_updates(
        z=tf.cast(tf.strings.length(tf.strings.upper(r["name"])), tf.float32)
    ),
    "a sum of lists": lambda r: r.with_updates(z=tf.reduce_sum(r["tags"], 1)),
    "lengths of lists": lambda r: r.with_updates(z=r["tags"].row_lengths()),
    "a lookup": lambda r: r.with_updates(z=tf.gather(of(9), tf.cast(r["x"], tf.int32))),
    "columns beside each other": lambda r: r.with_updates(z=tf.stack([r["x"], r["y"]], axis=1)),
    "a choice": lambda r: r.with_updates(z=tf.where(r["x"] > 0, r["x"], tf.zeros_like(r["y"]))),
    "noise": lambda r: r.with_updates(z=tf.random.stateless_uniform(tf.shape(r["y"]), [1, 2])),
    "another reshape": lambda r: r.with_updates(z=tf.reshape(r["x"], [tf.shape(r["x"])[0], 1])),
    "a mean along the last axis": lambda r: r.with_updates(
        z=tf.reduce_mean(r["x"][:, tf.newaxis] * tf.ones([1, 4]), axis=-1)
    ),
    "of inner records": lambda r: r.with_updates({"in.w": r["x"] + r["in.z"]}),
    "in lists": lambda r: r.with_updates({"l.c": tf.ragged.map_flat_values(tf.exp, r["l.a"])}),
    "new records of old fields": lambda r: Dense(
        [None], {"p": r["x"], "q": r["in.z"], "t": r["tags"]}
    ),
    "new records of new fields": lambda r: Dense(r.shape, {"p": -r["y"], "q": tf.exp(r["in.z"])}),
    "zip of lists": lambda r: S.zip({"p": r["l.a"], "q": r["l.b"]}),
    "zip of dense fields": lambda r: S.zip({"p": r["x"], "q": r["in.z"]}),
    "the same rows again": lambda r: Ragged.from_row_splits(
        r["l"].values.with_only("b"), r["l"].row_splits
    ),
    "rows of a field": lambda r: Ragged.from_row_splits(
        Dense([None], {"tag": r["tags"].values}), r["tags"].row_splits
    ),
    "map_values": lambda r: S.map_values(r, lambda x: x * 2.0, "l.a"),
    "apply": lambda r: S.apply(r, lambda x, y: x + y, ["x", "y"], "z"),
    "taken by one vector": lambda r: Dense([None], {
        "p": tf.gather(r["x"], [1, 0, 1]), "q": tf.gather(r["name"], [1, 0, 1])}),
    "a masked field": lambda r: r.with_updates(n=r["m"] + r["x"]),
    "a mask of a field": lambda r: r.with_updates(n=Masked(tf.exp(r["x"]), r["y"] > 0.0)),
    "a mask of items": lambda r: r.with_updates(n=masked(r["tags"], r["tags"] * 2.0)),
    "a mask of lists": lambda r: r.with_updates(n=Masked(r["tags"], r["x"] > 0.0)),
    "a mask in lists": lambda r: r.with_updates({"l.c": masked(r["l.a"], r["l.b"])}),
    "filtered by a field": lambda r: S.filter_by(r, "l", r["l.a"] > 0.0),
    "filtered by a path": lambda r: S.filter_by(r.with_updates(n=r["x"] > r["y"]), (), "n"),
    "filtered tags": lambda r: S.filter_by(r, "tags", r["tags"] * 2.0 > 1.0),
    "records at a mask of a field": lambda r: r[r["x"] * 2.0 > r["y"]],
    "a mask of another field alone": lambda r: Masked(r["x"], tf.exp(r["y"]) > 1.0),
    "a field of a type without a shape": lambda r: r.with_updates(p=Place(r["y"] * 2.0)),
    "in a branch": lambda r: tf.cond(
        tf.size(r["x"]) > 1,
        lambda: r.with_updates(y=r["x"] * 3.0),
        lambda: r.with_updates(y=r["y"] + 1.0),
    ),
}  # fmt: skip


def all_ops(function, *specs):
    graph = function.get_concrete_function(*specs).graph.as_graph_def()
    return [*graph.node, *(node for each in graph.library.function for node in each.node_def)]


@pytest.mark.parametrize("name", SHARED)
def test_rows_that_are_known_to_be_shared_need_no_op(name):
    spec = xt.authoring.stacked_spec(
        xt.authoring.unstacked_spec(xt.spec_of(RECORDS), "records"), None, "records"
    )
    function = tf.function(SHARED[name], input_signature=[spec], autograph=False)
    assert not [node.name for node in all_ops(function) if node.op == "Assert"]
    assert function(RECORDS).to_py() == SHARED[name](RECORDS).to_py()


def test_ragged_keys_of_the_same_records_are_not_compared():
    spec = xt.spec_of(RECORDS).unstacked().stacked(None)

    def checks(function):
        traced = tf.function(function, input_signature=[spec], autograph=False)
        return sum(op.op == "Assert" for op in all_ops(traced))

    plain = checks(lambda r: tf.ragged.boolean_mask(r["l.a"], r["l.a"] * 2.0 > 1.0))
    assert checks(lambda r: r["l"][r["l.a"] * 2.0 > 1.0]) <= plain
    assert checks(lambda r: r["l"][tf.zeros_like(r["l.a"], tf.int32)]) == 1  # each row has them


@pytest.mark.whole("traces many functions")
def test_arithmetic_on_lists_keeps_their_rows():
    spec = xt.authoring.stacked_spec(
        xt.authoring.unstacked_spec(xt.spec_of(RECORDS), "records"), None, "records"
    )

    def changed(validate):
        return tf.function(
            lambda r: r.with_updates({"l.c": r["l.a"] - r["l.b"] * 2.0}, validate=validate),
            input_signature=[spec],
        )

    checked, unchecked = changed(True), changed(False)
    assert len(all_ops(checked)) == len(all_ops(unchecked))  # TensorFlow itself asserts here
    assert checked(RECORDS)["l.c"].to_list() == [[0.0, -1.0], [-2.0]]


@pytest.mark.parametrize(
    "change",
    [lambda r: r["x"][1:], lambda r: tf.boolean_mask(r["x"], r["x"] > 0),
     lambda r: r["tags"].values, lambda r: tf.reverse(r["x"], [0])[:-1],
     lambda r: tf.concat([r["x"], r["y"]], 0),
     lambda r: tf.unique(r["x"] * 0.0).y, lambda r: tf.repeat(r["x"], 2),
     lambda r: tf.reduce_sum(r["x"][tf.newaxis] * r["y"][:, tf.newaxis], 0)[1:]],
)  # fmt: skip
def test_values_of_other_rows_that_come_from_the_records_are_found(change):
    spec = xt.authoring.stacked_spec(
        xt.authoring.unstacked_spec(xt.spec_of(RECORDS), "records"), None, "records"
    )
    function = tf.function(lambda r: r.with_updates(z=change(r)), input_signature=[spec])
    with pytest.raises(tf.errors.InvalidArgumentError, match="z: expected a value whose shape"):
        function(RECORDS)


_SPLITS = st.lists(st.integers(0, 3), max_size=4)
_ZIPPED = traced(WAYS["zip"])


@given(_SPLITS, _SPLITS)
@settings(deadline=None)
def test_a_graph_zips_what_eager_mode_zips(a, b):
    values = rows(*a), rows(*b)
    if a == b:
        assert _ZIPPED(*values).to_py() == S.zip(dict(zip("xy", values, strict=True))).to_py()
        return
    with pytest.raises(StructureError):
        S.zip(dict(zip("xy", values, strict=True)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        _ZIPPED(*values)


def test_a_field_may_be_named_validate():
    records = Dense([2], {"x": of(2)})
    assert records.with_updates(validate=of(2)).field_names() == ("x", "validate")
    assert records.with_updates({"validate": of(2)}).field_names() == ("x", "validate")
    assert records.with_updates({"y": of(2)}, validate=False).field_names() == ("x", "y")
    with pytest.raises(DTypeError, match="validate"):
        records.with_updates({"y": of(2)}, validate=of(2))
    for validate in (True, False):
        with pytest.raises(StructureError):
            records.with_updates({"y": of(3)}, validate=validate)


def test_gradients_flow_through_values_that_are_compared():
    function = traced(WAYS["with_updates of records in lists"])
    x, y = rows(2, 1), rows(2, 1)
    with tf.GradientTape() as tape:
        tape.watch(y.flat_values)
        loss = tf.reduce_sum(function(x, y)["l.y"].flat_values ** 2)
    assert tape.gradient(loss, y.flat_values).numpy().tolist() == [0.0, 2.0, 4.0]


def test_a_loop_compares_values_in_each_step():
    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    def loop(x, y):
        records = Dense([None], {"x": x, "y": x})

        def step(i, r):
            return i + 1, r.with_updates(y=y[i:], x=r["x"] + 1.0)

        return tf.while_loop(lambda i, _: i < 2, step, (0, records))[1]

    with pytest.raises(tf.errors.InvalidArgumentError, match="y: expected a value"):
        loop(of(3), of(3))  # in the second step


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")
def test_a_saved_model_compares_too(tmp_path):
    way = WAYS["with_updates of records in lists"]
    module = tf.Module()
    module.make = traced(way)
    tf.saved_model.save(module, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    assert loaded.make(*way.agree).to_py() == module.make(*way.agree).to_py()
    for values in way.differ:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"l\.y: expected the row splits"):
            loaded.make(*values)


def test_a_session_runs_the_check_of_each_value_that_it_fetches():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, y = (tf.compat.v1.placeholder(tf.float32, [None]) for _ in range(2))
        records = Dense([None], {"x": x, "y": y})
        assert session.run(records["y"], {x: [1, 2], y: [3, 4]}).tolist() == [3, 4]
        with pytest.raises(tf.errors.InvalidArgumentError, match="y: expected a value whose shape"):
            session.run(records["y"], {x: [1, 2], y: [3]})


@pytest.mark.whole("XLA compiles")
@pytest.mark.parametrize("name", ["fields", "with_updates of ragged records", "zip"])
def test_xla_compiles_functions_that_compare(name):
    way = WAYS[name]
    function = tf.function(
        lambda *values: tf.nest.flatten(way.make(*values, True), expand_composites=True),
        jit_compile=True,
    )
    expected = tf.nest.flatten(way.make(*way.agree, True), expand_composites=True)
    for ours, theirs in zip(function(*way.agree), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.whole("builds a Keras model")
def test_a_layer_in_a_functional_model_compares():
    import extensor.keras

    class Rated(extensor.keras.Layer):
        def call(self, recipes, stars):
            return tf.reduce_sum(recipes.with_updates({"l.stars": stars})["l.stars"], 1)

    keras = extensor.keras
    step = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])})
    steps = xt.RaggedStructuredTensorSpec([None, None], step, tf.int64)
    recipes = keras.Input(xt.DenseStructuredTensorSpec([None], {"l": steps}))
    stars = keras.Input(tf.RaggedTensorSpec([None, None]))
    model = keras.Model([recipes, stars], Rated()(recipes, stars))
    assert model([lists(rows(2, 1)), rows(2, 1)]).numpy().tolist() == [1.0, 2.0]
    with pytest.raises((StructureError, tf.errors.InvalidArgumentError), match=r"l\.stars"):
        model.predict([lists(rows(2, 1)), rows(1, 2)], verbose=0)
