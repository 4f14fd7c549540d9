"""Types that break conventions of TensorFlow: TensorFlow treats them as without the import."""

import json
import typing

import pytest
import tensorflow as tf

import extensor as xt

pytestmark = pytest.mark.whole("starts a process")

CALLS = """
import json
import sys
import tempfile
import typing
import warnings

import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.framework.type_spec import BatchableTypeSpec, TypeSpecBatchEncoder
from tensorflow.python.framework import type_spec_registry
from tensorflow.python.saved_model import nested_structure_coder

if {imported}:
    import extensor

warnings.simplefilter("ignore")


class Encoder(TypeSpecBatchEncoder):
    def batch(self, spec, batch_size):
        return type(spec)(tf.TensorShape([batch_size]).concatenate(spec.shape))

    def unbatch(self, spec):
        return type(spec)(spec.shape[1:])

    def encode(self, spec, value, minimum_rank=0):
        return value.x

    def decode(self, spec, encoded_value):
        return Value(encoded_value, type(spec))

    def encoding_specs(self, spec):
        return tf.TensorSpec(spec.shape)


class Value(CompositeTensor):
    def __init__(self, x, spec_class):
        self.x, self.spec_class = x, spec_class

    @property
    def _type_spec(self):
        return self.spec_class(self.x.shape)


class Spec(BatchableTypeSpec):
    __batch_encoder__ = Encoder()

    def __init__(self, shape):
        self.shape = tf.TensorShape(shape)

    @property
    def _component_specs(self):
        return tf.TensorSpec(self.shape)

    def _to_components(self, value):
        return value.x

    def _from_components(self, components):
        return Value(components, type(self))

    def _serialize(self):
        return (self.shape,)

    def _batch(self, batch_size):
        return self.__batch_encoder__.batch(self, batch_size)

    def _unbatch(self):
        return self.__batch_encoder__.unbatch(self)


def not_known(self):
    raise RuntimeError("nobody knows")


class Meta(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise RuntimeError(name)
        return lambda *args: None


class Strange(metaclass=Meta):
    pass


VALUE_TYPES = {{
    "None": None,
    "a union": typing.Union[int, str],
    "a generic alias": typing.List[int],
    "a function": lambda: Value,
    "an instance": 3,
    "an error": property(not_known),
    "a class of a strange metaclass": property(lambda self: Strange),
    "a class": Value,
}}


def saved(value, spec):
    module = tf.Module()
    module.double = tf.function(lambda v: v.x * 2, input_signature=[spec])
    module.same = tf.function(lambda: value)
    module.same.get_concrete_function()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        return tf.saved_model.load(folder).double(value).numpy().tolist()


def rows(value):
    return tf.data.Dataset.from_tensor_slices(value)


def over_replicas(value, spec):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    total = []

    @tf.function
    def run(batches):
        for batch in batches:
            strategy.run(lambda b: total.append(1), args=(batch,))

    run(strategy.experimental_distribute_dataset(rows(value).batch(1)))


CALLS = {{
    "encode": lambda v, s: str(nested_structure_coder.encode_structure(s)).replace("\\n", " "),
    "decode": lambda v, s: str(
        nested_structure_coder.decode_proto(nested_structure_coder.encode_structure(s)).shape
    ),
    "save": saved,
    "batch": lambda v, s: [b.x.numpy().tolist() for b in rows(v).batch(2)],
    "padded_batch": lambda v, s: len(list(rows(v).padded_batch(2))),
    "ragged_batch": lambda v, s: len(list(rows(v).ragged_batch(2))),
    "window": lambda v, s: [len(list(w)) for w in rows(v).window(2)],
    "scan": lambda v, s: len(list(rows(v).scan(v, lambda s, x: (s, x)))),
    "reduce": lambda v, s: rows(v).reduce(v, lambda s, x: s).x.numpy().tolist(),
    "legacy": lambda v, s: str(tf.compat.v1.data.get_output_types(rows(v))),
    "iterator": lambda v, s: next(iter(rows(v))).x.numpy().tolist(),
    "distribute": over_replicas,
    "map_fn": lambda v, s: tf.map_fn(
        lambda e: e.x, v, fn_output_signature=tf.float32
    ).numpy().tolist(),
    "while_loop": lambda v, s: tf.function(
        lambda v: tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v), (0, v))[1].x
    )(v).numpy().tolist(),
    "cond": lambda v, s: tf.function(
        lambda v: tf.cond(tf.constant(True), lambda: v, lambda: v).x
    )(v).numpy().tolist(),
    "function": lambda v, s: tf.function(lambda v: v.x + 1)(v).numpy().tolist(),
    "flatten": lambda v, s: len(tf.nest.flatten([v], expand_composites=True)),
    "add": lambda v, s: str(tf.add(v, v)),
}}


def outcome(call, *args):
    try:
        return repr(call(*args))
    except Exception as error:
        return type(error).__name__


found = {{}}
for number, (kind, value_type) in enumerate(VALUE_TYPES.items()):
    spec_class = type(Spec)(f"Spec{{number}}", (Spec,), {{"value_type": value_type}})
    type_spec_registry.register(f"strangers.Spec{{number}}")(spec_class)
    value = Value(tf.constant([1.0, 2.0, 3.0]), spec_class)
    for name, call in CALLS.items():
        found[f"{{name}}, {{kind}}"] = outcome(call, value, value._type_spec)
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def outcomes(run_python):
    """Returns the result or error of each call, without and with the import."""
    return [
        json.loads(run_python(CALLS.format(imported=imported)).stdout) for imported in (False, True)
    ]


def test_a_spec_whose_value_type_is_no_class_is_used_as_without_the_import(outcomes):
    without, with_import = outcomes
    changed = {c: (o, with_import[c]) for c, o in without.items() if with_import[c] != o}
    assert changed == {}
    worked = {call.partition(",")[0] for call, o in without.items() if not o.endswith("Error")}
    assert worked >= {"encode", "decode", "save", "batch", "ragged_batch", "iterator", "map_fn"}


class OddSpec(tf.TypeSpec):
    """A spec whose `value_type` is not a class."""

    value_type = typing.List[int]  # noqa: UP006
    _component_specs = ()

    def _to_components(self, value):
        return ()

    def _from_components(self, components):
        return 1

    def _serialize(self):
        return ()


def test_a_spec_whose_value_type_is_no_class_fits_no_field():
    @xt.extension_type
    class Dish:
        amount: tf.Tensor
        unit: str | tf.RaggedTensor

    spec = tf.TensorSpec([])
    with pytest.raises(xt.errors.DTypeError, match=r"Dish\.Spec\.amount"):
        Dish.Spec(OddSpec(), "gram")
    with pytest.raises(xt.errors.DTypeError, match=r"Dish\.Spec\.unit"):
        Dish.Spec(spec, OddSpec())


def test_a_schema_names_a_field_whose_value_type_is_no_class_by_its_spec():
    class Odd(OddSpec):
        value_type = None

    spec = xt.DenseStructuredTensorSpec([None], {"x": Odd()})
    assert str(xt.struct.tree(spec)) == "records (None,)\n└── x: Odd"
