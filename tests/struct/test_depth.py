"""What nesting costs: each level of lists of records adds as much as the one before."""

import sys

import pytest
import tensorflow as tf

import extensor as xt

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def records_in_lists(depth):
    value = Dense([2], {"x": [1, 2]})
    for _ in range(depth):
        value = Dense([2], {"list": Ragged.from_row_splits(value, [0, 1, 2])})
    return value


def lists_in_lists(depth):
    value = Dense([2], {"x": [1, 2]})
    for _ in range(depth):
        value = Ragged.from_row_splits(value, [0, 1, 2])
    return value


def masked_records(depth):
    value = Dense([2], {"x": [1, 2]})
    for _ in range(depth):
        value = Dense([2], {"m": xt.types.MaskedTensor(value, [True, False])})
    return value


def records_in_records(depth):
    value = Dense([2], {"x": [1, 2]})
    for _ in range(depth):
        value = Dense([2], {"list": value})
    return value


def calls_of(function):
    """Returns how many functions a call calls, those of TensorFlow and of C included."""
    found = 0

    def count(frame, event, argument):
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


@pytest.fixture
def specs_made(monkeypatch):
    """Returns a list with one item for each spec of records that was made."""
    made = []
    for cls in (xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec):

        def counted(self, *args, _init=cls.__init__, **kwargs):
            made.append(type(self))
            _init(self, *args, **kwargs)

        monkeypatch.setattr(cls, "__init__", counted)
    return made


def batched(value):
    return next(iter(tf.data.Dataset.from_tensor_slices(value).batch(2)))


def restacked(value):
    spec = value.__tf_type_spec__()
    return spec.unstacked().stacked(2)


@pytest.mark.parametrize("nest", [records_in_lists, lists_in_lists, masked_records])
@pytest.mark.parametrize("work", [restacked, batched])
def test_twice_the_depth_makes_twice_the_specs(nest, work, specs_made):
    def count(depth):
        value = nest(depth)
        value.__tf_type_spec__()
        specs_made.clear()
        work(value)
        return len(specs_made)

    counts = [count(depth) for depth in (2, 4, 8)]
    assert counts[2] - counts[1] <= 2 * (counts[1] - counts[0]) + 2, counts


def test_a_batch_of_32_nested_lists_is_the_lists():
    value = records_in_lists(32)
    assert batched(value).to_py() == value.to_py()


def innermost(depth):
    return (*["list"] * depth, "x")


def with_new_leaf(value, depth):
    leaf = value[innermost(depth)]
    return lambda: value.with_updates({innermost(depth): leaf})


def casts_rows(value, depth):
    return lambda: value.with_row_splits_dtype(tf.int32)


def casts_records(value, depth):
    spec = value.__tf_type_spec__().unstacked().stacked(None)
    return lambda: spec.cast(value)


def casts_python_data(value, depth):
    spec, data = value.__tf_type_spec__(), value.to_py()
    return lambda: spec.cast(data)


MASK = tf.constant([True, False])
CALLS = {
    "a path": lambda v, d: lambda: v[".".join(innermost(d))],
    "names": lambda v, d: lambda: v[innermost(d)],
    "names and positions": lambda v, d: lambda: v[(0, *innermost(d))],
    "field_value": lambda v, d: lambda: v.field_value(innermost(d)),
    "in": lambda v, d: lambda: innermost(d) in v,
    "an int": lambda v, d: lambda: v[0],
    "a range": lambda v, d: lambda: v[:1],
    "a list of ints": lambda v, d: lambda: v[[1, 0]],
    "a mask": lambda v, d: lambda: v[MASK],
    "with_updates": with_new_leaf,
    "with_only": lambda v, d: lambda: v.with_only(innermost(d)),
    "without": lambda v, d: lambda: v.without(innermost(d)),
    "cast": casts_records,
    "cast of row splits": casts_rows,
    "cast of Python data": casts_python_data,
    "to_py": lambda v, d: v.to_py,
    "a batch": lambda v, d: lambda: batched(v),
    "stack": lambda v, d: lambda: tf.stack([v, v]),
    "unstack": lambda v, d: lambda: tf.unstack(v),
    "concat": lambda v, d: lambda: tf.concat([v, v], 0),
    "promote": lambda v, d: lambda: xt.struct.promote(v, innermost(d), "y"),
}


@pytest.mark.parametrize("nest", [records_in_lists, records_in_records])
@pytest.mark.parametrize("case", CALLS)
def test_twice_the_depth_takes_twice_the_calls(nest, case):
    if case == "promote" and nest is records_in_records:
        nest = records_in_lists  # promote moves a field over lists

    def count(depth):
        call = CALLS[case](nest(depth), depth)
        call()  # fills the caches
        return calls_of(call)

    small, large = count(16), count(32)
    assert large <= 2.3 * small, (small, large)


def test_levels_deeper_than_the_last_ones_cost_no_more():
    """The work of a level, not only of all: 16 more levels cost what the 16 before them cost."""

    def count(depth):
        value = records_in_lists(depth)
        value[innermost(depth)]
        return calls_of(lambda: value[innermost(depth)])

    counts = [count(depth) for depth in (16, 32, 48)]
    assert counts[2] - counts[1] == counts[1] - counts[0], counts


@pytest.mark.parametrize("nest", [records_in_lists, lists_in_lists])
def test_the_spec_of_a_row_is_made_once(nest, specs_made):
    spec = nest(4).__tf_type_spec__()
    row = spec.unstacked()
    before = len(specs_made)
    assert spec.unstacked() is row
    assert len(specs_made) == before
