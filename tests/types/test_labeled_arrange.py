"""Transposing, joining and multiplying LabeledTensors equals xarray, for random axes."""

import numpy as np
import tensorflow as tf
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from extensor.types import LabeledTensor
from tests.types.labeled_arrays import NAMES, arrays, assert_equal, families, labeled, one, orders

# The order and the number of axes.


@given(st.data())
def test_transposes(data):
    array = data.draw(one())
    order = data.draw(st.permutations(array.dims))
    x = labeled(array)
    expected = array.transpose(*order)
    assert_equal(tf.transpose(x, order), expected)
    assert_equal(tf.transpose(x, [array.dims.index(name) for name in order]), expected)
    assert_equal(tf.transpose(x), array.transpose(*array.dims[::-1]))
    assert_equal(x.transpose(*order) if order else x, expected)
    for count in range(1, len(order) + 1):
        assert_equal(x.transpose(*order[:count], ...), array.transpose(*order[:count], ...))
        assert_equal(x.transpose(..., *order[:count]), array.transpose(..., *order[:count]))
    if len(order) > 1:
        swapped = array.transpose(..., array.dims[-1], array.dims[-2])
        assert_equal(tf.linalg.matrix_transpose(x), swapped)
        assert_equal(x.transpose(order[0], ..., order[1]), array.transpose(order[0], ..., order[1]))


@given(st.data())
def test_axes_of_size_one(data):
    array = data.draw(one())
    x = labeled(array)
    assert_equal(tf.expand_dims(x, "batch"), array.expand_dims("batch"))
    expanded = array.expand_dims("batch").transpose(..., "batch")
    assert_equal(tf.squeeze(labeled(expanded), "batch"), array)
    assert_equal(tf.squeeze(labeled(expanded)), expanded.squeeze())
    assert_equal(tf.squeeze(labeled(expanded.expand_dims("b")), ["batch", 0]), array)
    shifted = LabeledTensor(tf.cast(x.values, tf.int32), x.axes)
    depths = xr.DataArray(np.arange(3), dims="class")
    assert_equal(tf.one_hot(shifted, 3, axis="class"), (array == depths).astype(np.float32))


@given(st.data())
def test_renaming(data):
    array = data.draw(one())
    chosen = data.draw(st.lists(st.sampled_from(array.dims or ["-"]), unique=True))
    names = {name: name + "s" for name in chosen if name in array.dims}
    if len(array.dims) > 1 and data.draw(st.booleans()):
        names = {array.dims[0]: array.dims[1], array.dims[1]: array.dims[0]}
    assert_equal(labeled(array).rename(names), array.rename(names))
    assert_equal(labeled(array).rename(**names), array.rename(**names))


@given(st.data())
def test_concat_and_stack(data):
    array = data.draw(one())
    others = [
        (array * (i + 2)).transpose(*data.draw(st.permutations(array.dims))) for i in range(2)
    ]
    every = [array, *others]
    assert_equal(tf.stack([labeled(a) for a in every], axis="new"), xr.concat(every, "new"))
    if array.ndim:
        name = data.draw(st.sampled_from(array.dims))
        every[1] = every[1].isel({name: slice(1, None)})
        expected = xr.concat(every, name)
        assert_equal(tf.concat([labeled(a) for a in every], name), expected)
        assert_equal(tf.concat([labeled(a) for a in every], array.dims.index(name)), expected)


@given(st.data())
def test_split_tile_pad_and_slice(data):
    array = data.draw(one(min_rank=1))
    x, name = labeled(array), data.draw(st.sampled_from(array.dims))
    number, size = array.dims.index(name), array.sizes[name]
    cut = data.draw(st.integers(0, size))
    for axis in (name, number):
        for part, expected in zip(
            tf.split(x, [cut, size - cut], axis),
            [array.isel({name: slice(cut)}), array.isel({name: slice(cut, None)})],
            strict=True,
        ):
            assert_equal(part, expected)
    for i, part in enumerate(tf.split(x, size, name)):
        assert_equal(part, array.isel({name: [i]}))
    tiled = array.isel({name: [*range(size)] * 2})
    assert_equal(tf.tile(x, {name: 2}), tiled)
    assert_equal(tf.tile(x, [1 + (n == name) for n in array.dims]), tiled)
    padded = array.pad({name: (1, 2)}, constant_values=7.0)
    assert_equal(tf.pad(x, {name: (1, 2)}, constant_values=7.0), padded)
    both = [(1, 2) if n == name else (0, 0) for n in array.dims]
    assert_equal(tf.pad(x, both, constant_values=7.0), padded)
    assert_equal(tf.pad(x, {name: (1, 1)}, "SYMMETRIC"), array.pad({name: 1}, mode="symmetric"))
    begin = [cut if n == name else 0 for n in array.dims]
    sliced = array.isel({name: slice(cut, None)})
    assert_equal(tf.slice(x, begin, sliced.shape), sliced)
    repeats = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    assert_equal(
        tf.repeat(x, repeats, axis=name), array.isel({name: np.repeat(range(size), repeats)})
    )


# Elements at positions.


def indexers(size):
    number = st.integers(-size, size - 1)
    bound = st.none() | st.integers(-size - 1, size + 1)
    step = st.none() | st.sampled_from([1, 2, -1])
    return st.one_of(
        number,
        st.builds(slice, bound, bound, step),
        st.lists(number, max_size=4),
        st.lists(number, min_size=1, max_size=4).map(np.array),
        st.lists(st.booleans(), min_size=size, max_size=size).map(np.array),
    )


def as_tensor(positions):
    array = np.asarray(positions)
    return tf.constant(array if array.size else array.astype(int))


@given(st.data())
def test_isel(data):
    array = data.draw(one(min_rank=1))
    names = data.draw(st.lists(st.sampled_from(array.dims), unique=True))
    chosen = {name: data.draw(indexers(array.sizes[name])) for name in names}
    x, expected = labeled(array), array.isel(chosen)
    assert_equal(x.isel(chosen), expected)
    assert_equal(x.isel(**chosen), expected)
    assert_equal(x[chosen], array[chosen])
    tensors = {n: i if isinstance(i, slice) else as_tensor(i) for n, i in chosen.items()}
    assert_equal(x.isel(tensors), expected)


@given(st.data())
def test_indexing_by_place(data):
    array = data.draw(one(min_rank=1))
    count = data.draw(st.integers(1, array.ndim))
    key = tuple(data.draw(indexers(size)) for size in array.shape[:count])
    dots = data.draw(st.sampled_from([None, 0, count]))
    if dots is not None:
        key = (*key[:dots], ..., *key[dots:]) if dots == count else (..., *key)
    if dots == 0:
        key = (..., *(data.draw(indexers(size)) for size in array.shape[array.ndim - count :]))
    expected = array[key]
    assert_equal(labeled(array)[key], expected)
    if len(key) == 1:
        assert_equal(labeled(array)[key[0]], array[key[0]])


def same_in_any_order(ours, theirs):
    assert set(ours.axes) == set(theirs.dims)
    assert_equal(ours, theirs.transpose(*ours.axes))


def places(size, **limits):
    return st.lists(st.integers(0, size - 1), **limits)


@given(st.data())
def test_gather(data):
    array = data.draw(one(min_rank=1))
    name = data.draw(st.sampled_from(array.dims))
    number, size = array.dims.index(name), array.sizes[name]
    x = labeled(array)
    position = data.draw(st.integers(0, size - 1))
    positions = data.draw(
        st.lists(st.integers(0, size - 1), max_size=4).map(lambda p: np.array(p, int))
    )
    for axis in (name, number):
        assert_equal(tf.gather(x, position, axis=axis), array.isel({name: position}))
        assert_equal(tf.gather(x, positions, axis=axis), array.isel({name: positions}))
    assert_equal(tf.gather(x, 0), array[0])
    grid = xr.DataArray(np.full([2, 1], position), dims=["query", "rank"])
    expected = array.isel({name: grid})
    assert_equal(tf.gather(x, labeled(grid), axis=name), expected)
    assert_equal(x.isel({name: labeled(grid)}), expected)


@given(st.data())
def test_gather_by_positions_that_share_axes(data):
    array = data.draw(one(min_rank=1))
    name = data.draw(st.sampled_from(array.dims))
    sizes = {**dict(array.sizes), "query": 2}
    axes = data.draw(orders(names=[*(n for n in array.dims if n != name), "query"]))
    positions = data.draw(arrays(sizes, axes, np.arange(array.sizes[name])))
    expected = array.isel({name: positions})
    same_in_any_order(tf.gather(labeled(array), labeled(positions), axis=name), expected)
    same_in_any_order(labeled(array).isel({name: labeled(positions)}), expected)


@given(st.data())
def test_points_along_several_axes(data):
    array = data.draw(one(min_rank=2))
    pair = data.draw(st.permutations(array.dims[:2]))
    dtype = data.draw(st.sampled_from([np.int64, np.int32, np.int8]))
    chosen = {}
    for name in pair:  # the axis of the points may have the name of any of the two
        size = array.sizes[name]
        numbers = data.draw(st.lists(st.integers(-size, size - 1), min_size=3, max_size=3))
        dims = data.draw(st.sampled_from(["point", *pair]))
        chosen[name] = xr.DataArray(np.array(numbers, dtype), dims=dims)
    is_list = data.draw(st.booleans())
    ours = {
        name: positions.values if is_list and positions.dims == (name,) else labeled(positions)
        for name, positions in chosen.items()
    }
    same_in_any_order(labeled(array).isel(ours), array.isel(chosen))


@given(st.data())
def test_boolean_mask(data):
    array = data.draw(one(min_rank=1))
    name = data.draw(st.sampled_from(array.dims))
    size = array.sizes[name]
    mask = xr.DataArray(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dims=name)
    expected = array.isel({name: mask})
    x = labeled(array)
    assert_equal(tf.boolean_mask(x, labeled(mask)), expected)
    assert_equal(tf.boolean_mask(x, labeled(mask), axis=name), expected)
    assert_equal(tf.boolean_mask(x, mask.values, axis=array.dims.index(name)), expected)
    assert_equal(x.isel({name: labeled(mask)}), expected)
    if name == array.dims[0]:
        assert_equal(tf.boolean_mask(x, mask.values), expected)
        assert_equal(x[labeled(mask)], array[mask])


# Products.


@given(st.data())
def test_products(data):
    x, y = data.draw(families())
    assert_equal(tf.matmul(labeled(x), labeled(y)), xr.dot(x, y))
    assert_equal(labeled(x) @ labeled(y), x @ y)
    shared = [name for name in x.dims if name in y.dims]
    names = data.draw(st.lists(st.sampled_from(shared), unique=True)) if shared else []
    assert_equal(tf.tensordot(labeled(x), labeled(y), names), xr.dot(x, y, dim=names))
    if len(names) == 1:
        assert_equal(tf.tensordot(labeled(x), labeled(y), names[0]), xr.dot(x, y, dim=names))


@given(st.data())
def test_einsum(data):
    inputs = data.draw(families(data.draw(st.integers(1, 3))))
    letters = dict(zip(NAMES, "wfhr", strict=True))
    every = list(dict.fromkeys(name for a in inputs for name in a.dims))
    kept = data.draw(st.permutations(every))[: data.draw(st.integers(0, len(every)))]
    terms = ",".join("".join(letters[n] for n in a.dims) for a in inputs)
    equation = f"{terms}->{''.join(letters[n] for n in kept)}"
    summed = [name for name in every if name not in kept]
    expected = xr.dot(*inputs, dim=summed).transpose(*kept)
    assert_equal(tf.einsum(equation, *map(labeled, inputs)), expected)
    if len(inputs) > 1 and set(kept) <= set(inputs[0].dims):
        plain = [a.values for a in inputs[1:]]
        assert_equal(tf.einsum(equation, labeled(inputs[0]), *plain), expected)
