"""Eight threads at once make, call, iterate, register and dispatch, and each is right."""

import copy
import os
import pickle
import random
import sys
import tempfile
import threading
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

import extensor as xt
from tests.fuzz import cases
from tests.samples.types import fresh_masked_type

THREADS, ACTIONS = 8, 3


def test_threads_do_not_disturb_one_another():
    cases.run(__name__, cases.seeds(300, few=20), alone=cases.ALL)


def case(seed):
    sys.setswitchinterval(1e-5)
    _warm_up()
    shared = _Shared(random.Random(seed))
    begin, faults = threading.Barrier(THREADS), []

    def work(number):
        dice = random.Random(f"{seed} {number}")
        begin.wait()
        # All meet what is new at the same time; after that each goes its own way.
        for action in [shared.first, *dice.choices(shared.actions, k=ACTIONS)]:
            try:
                action(dice)
            except BaseException:
                faults.append(f"{action.__name__}: {traceback.format_exc()}")

    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, "\n".join(faults)
    return shared.first.__name__


def _warm_up():
    """Calls what threads will call with TensorFlow's own values.

    Without extensor, too, TensorFlow 2.21 may crash where threads are the first to dispatch.
    """
    ragged = tf.RaggedTensor.from_row_splits(tf.range(4), [0, 2, 4])
    tf.nest.flatten([ragged, tf.sparse.eye(2)], expand_composites=True)
    tf.reduce_sum(tf.strings.length(tf.constant(["a"]))), ragged.row_lengths(), tf.range(4)[1:]
    for function in (tf.square, tf.math.negative, tf.identity):
        function(1.0)
    tf.math.add(1.0, 1.0), tf.concat([tf.ones([2]), tf.ones([1])], 0), tf.ones([1]) * 2
    list(tf.data.Dataset.from_tensor_slices(tf.range(3)).map(lambda x: x).batch(2).take(1))


class _Shared:
    """What the threads share, none of which TensorFlow has met before they begin."""

    def __init__(self, dice):
        self.Masked, self.MaskedSpec = fresh_masked_type()
        self.Declared = _declared()
        self.same = tf.function(lambda value: value)
        rows = 300
        self.table = pa.table({
            "n": range(rows), "l": [[i, i + 1] for i in range(rows)],
            "s": ["x" * 5000] * rows, "t": ["y" * 5000] * rows})  # fmt: skip
        self.path = os.path.join(tempfile.mkdtemp(), "it.parquet")
        pq.write_table(self.table.select(["n", "l"]), self.path)
        self.dataset = xt.data.parquet(self.path, 50) if dice.random() < 0.5 else None
        self.actions = [
            self.construct, self.call, self.iterate, self.stream, self.register, self.dispatch,
            self.handler, self.arrow, self.declare, self.foreign, self.specs, self.save,
        ]  # fmt: skip
        self.first = dice.choice(self.actions)

    def masked(self):
        return self.Masked(tf.constant([1.0, 2.0]), tf.constant([True, False]))

    def construct(self, dice):
        n = dice.randrange(1, 5)
        x = xt.DenseStructuredTensor([n], {"x": list(range(n)), "y": [[1.0]] * n})
        assert x.to_py() == [{"x": i, "y": [1.0]} for i in range(n)]
        assert self.Declared(tf.ones([n]), "kg").x.shape == [n]

    def call(self, dice):
        n = dice.randrange(1, 5)
        value = self.same(self.Masked(tf.ones([n]), tf.ones([n], tf.bool)))
        assert type(value) is self.Masked
        assert value.values.shape == [n]
        assert self.same(self.Declared(tf.ones([n]), "kg")).x.shape == [n]

    def iterate(self, dice):
        value = self.Declared(tf.range(5.0), "g")
        batches = list(tf.data.Dataset.from_tensor_slices(value).map(lambda v: v).batch(2))
        assert [b.x.numpy().tolist() for b in batches] == [[0.0, 1.0], [2.0, 3.0], [4.0]]

    def stream(self, dice):
        dataset = self.dataset or xt.data.parquet(self.path, 50)
        numbers = np.concatenate(
            [batch["n"].numpy() for batch in dataset.take(dice.choice([2, 9]))]
        )
        assert numbers.tolist() == list(range(len(numbers)))
        xt.read_parquet(self.path)

    def register(self, dice):
        _, spec = fresh_masked_type()
        name = f"threads.n{dice.random()}".replace(".", "_")
        assert xt.register_type_spec(spec, name) is spec
        assert xt.registered_types()[name] is spec

    def dispatch(self, dice):
        money = _Money(tf.constant([dice.random()]))
        assert type(tf.square(money)) is _Money
        assert type(tf.math.add(money, money)) is _Money
        assert tf.reduce_sum(tf.concat([tf.ones([2]), tf.ones([1])], 0)) == 3

    def handler(self, dice):
        @xt.dispatch.implements(dice.choice([tf.tile, tf.reverse, tf.roll]), on=_Money)
        def handled(x, *args, **kwargs):
            return "handled"

        assert tf.math.negative(_Money(tf.ones([1]))).x.numpy().tolist() == [-1.0]

    def arrow(self, dice):
        records = xt.from_arrow(self.table)
        assert records["l"].row_lengths().numpy().tolist() == [2] * 300
        assert int(tf.reduce_sum(tf.strings.length(records["s"]))) == 300 * 5000
        assert xt.to_arrow(records).num_rows == 300

    def declare(self, dice):
        cls = _declared()
        x = cls(tf.ones([2]), unit="g")
        assert tf.nest.map_structure(lambda t: t + 1, x, expand_composites=True).unit == "g"
        assert type(self.same(x)) is cls

    def foreign(self, dice):
        class Tally:
            def __init__(self, count):
                self.count = count

        class TallySpec(xt.TypeSpec):
            value_type = Tally
            component_specs = tf.TensorSpec([], tf.int32)

            @classmethod
            def from_value(cls, value):
                return cls()

            def to_components(self, value):
                return value.count

            def from_components(self, components):
                return Tally(components)

            def serialize(self):
                return ()

        TallySpec.__qualname__ = TallySpec.__name__ = f"Tally{dice.random()}".replace(".", "_")
        xt.register_extension_type(Tally, TallySpec)
        assert type(self.same(Tally(tf.constant(1)))) is Tally

    def specs(self, dice):
        spec = tf.type_spec_from_value(self.masked())
        assert spec == copy.deepcopy(spec)
        records = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])})
        assert pickle.loads(pickle.dumps(records)) == records
        assert spec.is_compatible_with(self.masked())

    def save(self, dice):
        module = tf.Module()
        spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None])})
        module.f = tf.function(lambda r: r["x"] * 2, input_signature=[spec])
        assert module.f(xt.DenseStructuredTensor([1], {"x": [1.5]})).numpy().tolist() == [3.0]


class _Money:
    def __init__(self, x):
        self.x = x

    @xt.dispatch.implements(xt.dispatch.is_unary_elementwise_op)
    @staticmethod
    def unary(op, x, *args, **kwargs):
        return _Money(op(x.x))

    @xt.dispatch.implements(xt.dispatch.is_binary_elementwise_op)
    @staticmethod
    def binary(op, x, y, *args, **kwargs):
        return _Money(op(x.x, y.x))


def _declared():
    @xt.extension_type
    class Declared:
        x: tf.Tensor
        unit: str = "g"

    return Declared
