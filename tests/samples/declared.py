"""Declared types that another process can import, with every kind of static data."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf

import extensor as xt


class Course(enum.Enum):
    STARTER = 1
    MAIN = 2


class Diet(enum.Flag):
    VEGAN = enum.auto()
    KOSHER = enum.auto()


class Unit(NamedTuple):
    name: str
    scale: float


class Spiced(NamedTuple):
    amounts: tf.Tensor
    spice: str


class Name(str):
    """A scalar with its own class."""


@xt.extension_type
class Masked:
    values: tf.Tensor
    mask: tf.Tensor


@xt.extension_type
class Scaled:
    inner: Masked
    factor: float = 2.0


@xt.extension_type
class Rows:
    """Checked at construction, with every way to make a field."""

    values: Annotated[tf.Tensor, tf.TensorSpec([None, 3], tf.float32)]
    unit: str = "gram"
    tags: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)


@xt.extension_type
class Pantry:
    """Containers that mix tensors and static parts."""

    amounts: Mapping[str, tf.Tensor]
    pairs: tuple[tf.Tensor, int]
    anything: Any = None


@xt.extension_type
class Counter:
    count: tf.Variable
    other: tf.Variable


@xt.extension_type
class Labelled:
    """One tensor, and static data of any kind."""

    values: tf.Tensor
    label: Any


STATIC = {
    "int": 7,
    "large int": 2**80,
    "negative int": -(2**63),
    "float": 0.1,
    "nan": float("nan"),
    "infinity": float("-inf"),
    "bool": True,
    "none": None,
    "text": "crème brûlée",
    "text subclass": Name("soup"),
    "bytes": b"\x00\xff raw",
    "enum": Course.MAIN,
    "flag": Diet.VEGAN | Diet.KOSHER,
    "dtype": tf.bfloat16,
    "shape": tf.TensorShape([None, 3]),
    "unknown shape": tf.TensorShape(None),
    "spec": tf.TensorSpec([2], tf.int32),
    "spec of a declared type": Masked.Spec(tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool)),
    "tuple": (1, ("a", ()), None),
    "tag-like tuple": ("enum", "os", "system"),
    "namedtuple": Unit("gram", 0.001),
    "mapping": {"b": 1, 2: ["x", {"deep": b"y"}], Course.MAIN: None, (1, "k"): 3.0},
    "empty mapping": {},
    "set": {1, "a", (2, Course.STARTER)},
    "specs as elements and keys": {tf.TensorSpec([2]): {tf.TensorSpec([3], tf.string), tf.int32}},
    "array": np.array([[1.5, np.nan]], np.float32),
    "scalar array": np.array(3, np.int64),
    "empty array": np.zeros([0, 2], np.int8),
    "big-endian array": np.arange(3, dtype=">i4"),
    "text array": np.array([["a", "crème"]]),
    "bytes array": np.array([b"a", b"bcd"]),
    "time array": np.array(["2024-02-29", "NaT"], "datetime64[D]"),
    "complex array": np.array([1 + 2j]),
    "array in containers": {"sizes": (np.array([1, 2]), [np.array([True])])},
}


def labelled(kind: str, values: Any = (1.0, 2.0)) -> Labelled:
    return Labelled(values, STATIC[kind])


Level = Literal["mild", "hot"]
