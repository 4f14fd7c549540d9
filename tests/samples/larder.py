"""Types for models that are loaded where this module is not imported."""

import enum
from typing import Any

import tensorflow as tf

import extensor as xt


class Size(enum.Enum):
    BIG = 1


@xt.extension_type(name="larder.Lid")
class Lid:
    width: tf.Tensor
    unit: str


@xt.extension_type(name="larder.Jar")
class Jar:
    """Has components and static data of many kinds, and a value of another type."""

    grams: tf.Tensor
    parts: tuple[tf.Tensor, ...]
    lid: Lid
    rows: tf.RaggedTensor
    size: Any = Size.BIG
    label: str = "jam"


@xt.auto_composite_tensor(module_name="larder")
class Shelf(xt.AutoCompositeTensor):
    def __init__(self, jars, rows, name="top"):
        self._jars, self.rows, self.name = jars, rows, name


class Bag:
    """Implements the protocol; its components have no names."""

    def __init__(self, values, mask):
        self.values, self.mask = values, mask

    def __tf_type_spec__(self):
        return BagSpec(self.values.shape, self.values.dtype)


@xt.register_type_spec(name="Bag")
class BagSpec(xt.StackableTypeSpec):
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tf.TensorShape(shape), tf.dtypes.as_dtype(dtype)

    value_type = Bag

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape, self.dtype), tf.TensorSpec(self.shape, tf.bool)

    def to_components(self, value):
        return value.values, value.mask

    def from_components(self, components):
        return Bag(*components)

    def serialize(self):
        return self.shape, self.dtype


@xt.register_type_spec(name="larder.SackSpec")
class SackSpec(BagSpec):
    """Has its own boxes."""

    def to_boxed_tensor(self, value, minimum_rank=0):
        return super().to_boxed_tensor(value, minimum_rank)


class Sack(Bag):
    def __tf_type_spec__(self):
        return SackSpec(self.values.shape, self.values.dtype)


SackSpec.value_type = Sack
SackSpec.from_components = lambda self, components: Sack(*components)


@xt.register_type_spec(name="larder.BoltSpec")
class BoltSpec(xt.TypeSpec):
    """Does not stack; its component has no name, and it holds a spec that it does not serialize."""

    value_type = property(lambda self: Bolt)
    component_specs = tf.TensorSpec([2])

    def to_components(self, value):
        return value.length

    def from_components(self, components):
        return Bolt(components)

    def serialize(self):
        return ()


class Bolt:
    def __init__(self, length):
        self.length = length

    def __tf_type_spec__(self):
        return BoltSpec()


def jar():
    rows = tf.ragged.constant([[1], [2, 3]])
    return Jar([1.0, 2.0], ([1.0], 2.0), Lid([3.0], "cm"), rows)


def bag(cls=Bag):
    return cls(tf.constant([1.0, 2.0, 3.0]), tf.constant([True, False, True]))


def model():
    module = tf.Module()
    module.doubled_jar = tf.function(
        lambda jar: xt.replace(jar, grams=jar.grams * 2), input_signature=[xt.spec_of(jar())]
    )
    shelf = Shelf.Spec(tf.TensorSpec([None]), tf.RaggedTensorSpec([None, None]), "top")
    module.doubled_shelf = tf.function(
        lambda shelf: Shelf(shelf._jars * 2, shelf.rows), input_signature=[shelf]
    )
    module.doubled = tf.function(
        lambda bag: Bag(bag.values * 2, bag.mask), input_signature=[BagSpec([None], tf.float32)]
    )
    module.total = tf.function(
        lambda bag: tf.reduce_sum(bag.values), input_signature=[BagSpec([None], tf.float32)]
    )
    module.made = tf.function(lambda x: Bag(x, x > 1), input_signature=[tf.TensorSpec([None])])
    module.bolt = tf.function(lambda: Bolt(tf.constant([1.0, 2.0])), input_signature=[])
    return module


def save(folder):
    module = model()
    tf.saved_model.save(module, f"{folder}/model", signatures={"total": module.total})
    tf.data.Dataset.from_tensors(jar()).save(f"{folder}/jars")
    for cls in (Bag, Sack):
        tf.data.Dataset.from_tensor_slices(bag(cls)).save(f"{folder}/{cls.__name__}")
    tf.data.Dataset.from_tensors(Bolt(tf.constant([1.0, 2.0]))).save(f"{folder}/bolts")
