"""What is done thousands of times leaves no more memory behind than TensorFlow alone does."""

import ctypes
import functools
import gc
import os
import tempfile
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor._data import stream
from tests.apis.kinds import measured
from tests.fuzz import cases

FEW = 60
BOUND = 500  # bytes each time, above what TensorFlow leaves behind without us (1,100 once)
TIMES = {"passes": 3000, "passes given up": 10_000, "datasets": 1000, "slices": 1000,
         "conversions": 2000, "traces": 2000, "traces of slots": 500, "calls": 3000}  # fmt: skip


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="glibc 2.33 counts bytes")
@pytest.mark.parametrize("kind", TIMES)
def test_no_memory_is_kept_of_what_is_done_again_and_again(kind):
    cases.run(__name__, [kind], timeout=1800)


def case(kind):
    times = cases.count(TIMES[kind], FEW)
    ours, plain = _pair(kind)
    kept, kept_by_plain = _kept(ours, times), _kept(plain, FEW) if plain else 0
    assert kept < kept_by_plain + BOUND, f"{kept:.0f} bytes each time, {kept_by_plain:.0f} without"
    if kind.startswith("pass"):
        gc.collect()
        assert not stream._passes
        assert threading.active_count() < 20
        fds = "/proc/self/fd"
        assert not [f for f in os.listdir(fds) if ".parquet" in _target(f"{fds}/{f}")]
    return f"{kept:.0f} bytes ({kept_by_plain:.0f})"


def _pair(kind):
    """Returns what is done, and the same without values of ours."""
    path = os.path.join(tempfile.mkdtemp(), "it.parquet")
    pq.write_table(pa.table({"x": [1.5] * 9, "s": ["a"] * 9, "list": [[1, 2]] * 9}), path)
    dataset, plain = xt.data.parquet(path, 4), _with_functions()
    spec = dataset.element_spec
    records, parts = next(iter(dataset)), (tf.range(4), tf.range(5))
    match kind:
        case "passes":
            return lambda: list(dataset), lambda: list(plain)
        case "passes given up":
            return lambda: next(iter(dataset)), lambda: next(iter(plain))
        case "datasets":
            return lambda: list(xt.data.parquet(path, 4)), lambda: list(_with_functions())
        case "slices":
            return lambda: _sliced(records), lambda: _sliced(parts[0])
        case "conversions":
            return lambda: xt.from_arrow(xt.to_arrow(records)).to_py(), None
        case "traces":
            values = spec, measured(2).__tf_type_spec__()
            return lambda: _traced(*values), lambda: _traced(tf.TensorSpec([4]), tf.TensorSpec([]))
        case "traces of slots":
            return lambda: _traced(_slots()(tf.zeros([2]))), lambda: _traced(tf.zeros([2]))
        case "calls":
            same = tf.function(lambda *values: values)
            return lambda: same(records, measured(2)), lambda: same(*parts)


def _identity(x):
    return x


def _nine(_):
    return tf.data.Dataset.range(9).batch(4)


def _with_functions():
    """Returns a dataset with four functions, as ours has: TensorFlow keeps some bytes of each."""
    dataset = tf.data.Dataset.range(1)
    for _ in range(3):
        dataset = dataset.map(_identity)
    return dataset.flat_map(_nine)


def _sliced(value):
    return list(tf.data.Dataset.from_tensor_slices(value).batch(2).prefetch(1))


def _traced(*args):
    # Its own concrete function, as a new cell of a notebook has it.
    return tf.function(lambda *values: values).get_concrete_function(*args)


def _slots():
    """Returns a class whose values know no weak references."""

    class Slots:
        __slots__ = ("x",)

        def __init__(self, x):
            self.x = x

        def __tf_type_spec__(self):
            return SlotsSpec(self.x.shape)

    class SlotsSpec(xt.TypeSpec):
        value_type = Slots

        def __init__(self, shape):
            self.shape = tf.TensorShape(shape)

        component_specs = property(lambda self: tf.TensorSpec(self.shape))

        def to_components(self, value):
            return value.x

        def from_components(self, components):
            return Slots(components)

        def serialize(self):
            return (self.shape,)

    return Slots


_slots = functools.cache(_slots)


def _kept(do, times):
    """Returns how many bytes are kept each time, at the best one of four trials."""
    for _ in range(30):
        do()
    return min(_growth(do, times // 4) / (times // 4) for _ in range(4))


def _growth(do, times):
    before = _used()
    for _ in range(times):
        do()
    return _used() - before


def _used():
    class Mallinfo(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost")]  # fmt: skip

    gc.collect()
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo
    info = mallinfo2()
    return info.uordblks + info.hblkhd + pa.total_allocated_bytes()


def _target(link):
    try:
        return os.readlink(link)
    except OSError:
        return ""
