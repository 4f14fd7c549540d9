"""Indexing records equals indexing nested lists of dicts."""

import functools
import itertools
import operator

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import DTypeError, FieldError, RowError, StructureError
from tests.samples.arrow_strategies import MANY
from tests.samples.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def plain(value):
    """Returns any field or records as plain Python."""
    if isinstance(value, (xt.StructuredTensor, xt.types.MaskedTensor)):
        return value.to_py()
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    value = value.numpy()
    return value if isinstance(value, bytes) else value.tolist()


# The reference: indexing of nested lists.


def at(value, key):
    """Returns nested lists at a key: ints, slices, None, lists of ints or bools."""
    if not key:
        return value
    first, rest = key[0], key[1:]
    if first is None:
        return [at(value, rest)]
    if isinstance(first, int):
        return at(value[first], rest)
    if isinstance(first, slice):
        return [at(item, rest) for item in value[first]]
    if isinstance(first, PerRow):
        return [at_one_row(row, own, rest) for row, own in zip(value, first, strict=True)]
    arrays = list(itertools.takewhile(lambda part: isinstance(part, list), key))
    if first and isinstance(first[0], bool):
        return [at(item, rest) for item, chosen in zip(value, first, strict=True) if chosen]
    return at_arrays(value, arrays, key[len(arrays) :])


def at_arrays(value, arrays, rest):
    if arrays and isinstance(arrays[0], list):
        return [at_arrays(value, items, rest) for items in zip(*arrays, strict=True)]
    return at(functools.reduce(operator.getitem, arrays, value), rest)


def at_one_row(row, own, rest):
    if own and isinstance(own[0], bool):
        return [at(item, rest) for item, chosen in zip(row, own, strict=True) if chosen]
    if own and isinstance(own[0], list):
        return [at_one_row(r, o, rest) for r, o in zip(row, own, strict=True)]
    return [at(row[i], rest) for i in own]


class PerRow(list):
    """Positions or a mask for each row."""


# Values: records whose fields are computed from their numbers.


def record(number):
    return {
        "v": number,
        "w": [number] * (number % 3),
        "r": {"s": b"s%d" % number},
        "items": [{"n": number + i} for i in range(number % 2)],
    }


def numbered(counter, sizes):
    """Returns nested lists of records; a size is an int, or a list of the lengths of rows."""
    if not sizes:
        return record(next(counter))
    size = sizes[0]() if callable(sizes[0]) else sizes[0]
    return [numbered(counter, sizes[1:]) for _ in range(size)]


def flat(value, rank):
    return value if rank == 1 else [item for row in value for item in flat(row, rank - 1)]


def make(value, rank, ragged):
    """Returns nested lists of records as a StructuredTensor, dense or ragged."""
    items = flat(value, rank)
    spec = Dense(
        [1],
        {
            "v": [0],
            "w": tf.ragged.constant([[0]]),
            "r": Dense([1], {"s": ["s"]}),
            "items": Ragged.from_row_splits(Dense([1], {"n": [0]}), [0, 1]),
        },
    ).__tf_type_spec__()
    records = spec.unstacked().stacked(None).cast(items)
    levels = []
    for depth in range(1, rank):
        rows = value if depth == 1 else flat(value, depth)
        levels.append([len(row) for row in rows])
    for lengths in reversed(levels):
        records = Ragged.from_row_splits(records, np.cumsum([0, *lengths]))
    if ragged or rank == 1:
        return records
    sizes = [len(value)]
    for _ in range(1, rank):
        value = value[0]
        sizes.append(len(value))
    return records._as_dense(tf.TensorShape(sizes))


@st.composite
def collections(draw):
    rank = draw(st.integers(1, 3))
    ragged = rank > 1 and draw(st.booleans())
    if ragged:
        sizes = [draw(st.integers(0, 3))]
        sizes += [lambda: draw(st.integers(0, 3)) for _ in range(rank - 1)]
    else:
        sizes = [draw(st.integers(1, 3)) for _ in range(rank)]
    value = numbered(itertools.count(), sizes)
    return value, rank, make(value, rank, ragged)


positions = st.integers(-3, 3)
slices = st.builds(slice, st.none() | positions, st.none() | positions,
                   st.none() | st.sampled_from([1, 2, -1, -2, 3]))  # fmt: skip


@st.composite
def keys(draw, value, rank):
    """Returns a key for nested lists, with names between the positions."""
    key, used = [], 0
    allowed = ["int", "slice", "slice", "all", "None", "array", "end"]
    while used < rank:
        kind = draw(st.sampled_from(allowed))
        if kind == "end":
            break
        if kind == "array":
            if any(isinstance(part, int) for part in key):  # NumPy joins it with the arrays
                continue
            count = draw(st.integers(1, rank - used))
            length = draw(st.integers(0, 3))
            key += [draw(st.lists(st.integers(-2, 2), min_size=length, max_size=length))
                    for _ in range(count)]  # fmt: skip
            used += count
            allowed = ["slice", "all", "None", "end"]
            continue
        if kind == "None":
            key.append(None)
            continue
        kinds = {"int": positions, "slice": slices, "all": st.just(slice(None))}
        key.append(draw(kinds[kind]))
        used += 1
    return key


def result(function):
    """Returns the result of a function, or the word "outside" for a position out of range."""
    try:
        return function()
    except IndexError:
        return "outside"


@pytest.mark.whole("draws many values")
@MANY
@given(st.data(), collections())
def test_a_key_of_every_kind_is_indexing_of_nested_lists(data, collection):
    value, rank, records = collection
    key = data.draw(keys(value, rank))
    arrays = [np.asarray(part, np.int64) if isinstance(part, list) else part for part in key]
    if isinstance(records, Dense):  # NumPy refuses a position outside even where it takes no item
        try:
            np.empty(records.shape)[tuple(arrays)]
        except IndexError:
            with pytest.raises(RowError):
                records[tuple(arrays)]
            return
    assert result(lambda: plain(records[tuple(arrays)])) == result(lambda: at(value, key))
    name = data.draw(st.sampled_from(["v", "w"]))
    place = data.draw(st.integers(0, len(key)))
    named = [*arrays[:place], name, *arrays[place:]]
    expected = result(lambda: fields(at(value, key), name))
    assert result(lambda: plain(records[tuple(named)])) == expected


def fields(value, name):
    return [fields(item, name) for item in value] if isinstance(value, list) else value[name]


@pytest.mark.whole("draws many values")
@settings(max_examples=8)
@given(st.data(), collections())
def test_the_same_in_a_graph_with_symbolic_positions(data, collection):
    value, rank, records = collection
    key = data.draw(keys(value, rank))
    expected = result(lambda: at(value, key))
    if expected == "outside" or isinstance(records, Dense):
        try:
            np.empty(records.shape if isinstance(records, Dense) else [])[tuple(key)]
        except (IndexError, ValueError):
            return
    numbers = iter_tensors(key)

    @tf.function(
        autograph=False,
        input_signature=[open_spec(records), *[tf.TensorSpec(n.shape, n.dtype) for n in numbers]],
    )
    def taken(records, *numbers):
        return records[tuple(with_tensors(key, iter(numbers)))]

    assert plain(taken(records, *numbers)) == expected


def open_spec(records):
    """Returns a spec with unknown sizes."""
    if isinstance(records, Ragged):
        return records.__tf_type_spec__().unstacked().stacked(None)
    spec = records.__tf_type_spec__()
    for _ in range(records.rank):
        spec = spec.unstacked()
    for _ in range(records.rank):
        spec = spec.stacked(None)
    return spec


def iter_tensors(key):
    found = []
    for part in key:
        if isinstance(part, slice):
            found += [tf.constant(n) for n in (part.start, part.stop, part.step) if n is not None]
        elif part is not None:
            found.append(tf.constant(part, tf.int64))
    return found


def with_tensors(key, tensors):
    for part in key:
        if isinstance(part, slice):
            bounds = (part.start, part.stop, part.step)
            yield slice(*(None if bound is None else next(tensors) for bound in bounds))
        else:
            yield None if part is None else next(tensors)


@tf.function(reduce_retracing=True)
def at_in_a_graph(records, key):
    return records[key]


@pytest.mark.whole("draws many values")
@MANY
@given(st.data(), collections())
def test_masks_and_ragged_arrays_select_in_each_row(data, collection):
    value, rank, records = collection
    of_records = data.draw(st.integers(1, rank))
    kind = data.draw(st.sampled_from([st.booleans(), None]))

    def drawn(value, rank):
        if rank > 1:
            return [drawn(row, rank - 1) for row in value]
        if kind is not None:
            return [data.draw(kind) for _ in value]
        return data.draw(st.lists(st.integers(-len(value), len(value) - 1), max_size=4)) if (
            value
        ) else []  # fmt: skip

    chosen = drawn(value, of_records)
    dtype = tf.bool if kind is not None else tf.int64
    if of_records == 1:
        key = np.asarray(chosen, dtype.as_numpy_dtype)
        assert plain(records[key]) == at(value, [chosen])
        return
    key = tf.ragged.constant(chosen, dtype, ragged_rank=of_records - 1, row_splits_dtype=tf.int64)
    expected = at(value, [PerRow(chosen)])
    assert plain(records[key]) == expected
    assert plain(records[key, "w"]) == fields(expected, "w")
    assert plain(records["w", key]) == fields(expected, "w")
    assert plain(at_in_a_graph(records, key)) == expected


def basket():
    items = Dense([4], {"v": [1, 5, 2, 7], "name": ["a", "b", "c", "d"]})
    return Dense([3], {
        "id": [10, 20, 30],
        "items": Ragged.from_row_splits(items, [0, 2, 2, 4]),
        "owner": Dense([3], {"name": ["x", "y", "z"], "age": [1, 2, 3]}),
    })  # fmt: skip


def test_a_mask_of_a_field_selects_items():
    s = basket()
    assert s["items"][s["items.v"] > 1]["name"].to_list() == [[b"b"], [], [b"c", b"d"]]
    assert s["items", s["items.v"] > 4, "v"].to_list() == [[5], [], [7]]
    assert s[s["id"] > 10]["id"].numpy().tolist() == [20, 30]
    assert s["items"][[[0], [], [1, -2]]]["v"].to_list() == [[1], [], [7, 2]]


def test_a_mask_of_two_dense_dimensions_gives_one():
    value = Dense([2, 3], {"v": np.arange(6).reshape(2, 3), "w": tf.zeros([2, 3, 2])})
    mask = np.array([[True, False, True], [False, True, False]])
    assert value[mask]["v"].numpy().tolist() == [0, 2, 4]
    assert value[mask].shape == [3]
    assert value["v", mask].numpy().tolist() == [0, 2, 4]


def test_a_list_of_names_selects_fields_and_commutes():
    s = basket()
    assert s[["id", "owner.name"]].to_py()[0] == {"id": 10, "owner": {"name": b"x"}}
    assert s[["id", "items"], 0].to_py() == s[0, ["id", "items"]].to_py()
    assert s["owner", ["age"], -1].to_py() == {"age": 3}
    assert s[["owner", "id"]].field_names() == ("owner", "id")


def test_two_arrays_in_one_key_are_zipped():
    s = basket()
    assert s["items", [0, 2, 2], [1, 0, -1], "v"].numpy().tolist() == [5, 2, 7]
    assert s["items", [[0], [2]], [0, -1], "v"].numpy().tolist() == [[1, 5], [2, 7]]
    assert s["items", [0, 2], 0, "v"].numpy().tolist() == [1, 2]


def test_an_int_at_a_ragged_level_needs_long_rows():
    s = basket()
    for key in (("items", slice(None), 0), ("items", slice(None), 0, "v")):
        with pytest.raises(RowError, match="0 elements in row 1") as caught:
            s[key]
        assert caught.value.path == ("items" if len(key) == 3 else "items.v")
    assert s["items", ::2, 0, "v"].numpy().tolist() == [1, 2]
    assert s["items", ::2, -1, "name"].numpy().tolist() == [b"b", b"d"]
    assert s["items", ::2, [0, 0, 1], "v"].numpy().tolist() == [[1, 1, 5], [2, 2, 7]]
    taken = tf.function(lambda s: s["items", :, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="items: a row is too short"):
        taken(s)
    assert taken(s[::2])["v"].numpy().tolist() == [1, 2]


def test_new_axes():
    s = basket()
    assert s[None].to_py() == [s.to_py()]
    assert s[:, tf.newaxis].to_py() == [[record] for record in s.to_py()]
    assert s[0, None].to_py() == [s[0].to_py()]
    assert s["items", None, :, None].to_py() == [[[row] for row in s["items"].to_py()]]
    assert s["items", ..., None].to_py() == [[[i] for i in row] for row in s["items"].to_py()]
    assert s["id", :, None].shape == [3, 1]
    nothing = Dense([2], {})
    assert nothing[None].to_py() == [[{}, {}]]


def test_fields_of_other_types_are_taken_too():
    own = xt.types.MaskedTensor([[1, 2], [3, 4], [5, 6]], [[True, False]] * 3)
    other = MaskedTensor(tf.constant([[1, 2], [3, 4], [5, 6]]), tf.ones([3, 2], tf.bool))
    s = Dense([3], {"m": own, "o": other})
    assert s[[2, 0]]["m"].to_py() == [[5, None], [1, None]]
    assert s[[2, 0]]["o"].values.numpy().tolist() == [[5, 6], [1, 2]]
    assert s["m", [2, 0]].to_py() == [[5, None], [1, None]]
    assert s["o", np.array([False, True, False])].values.numpy().tolist() == [[3, 4]]
    assert s[[[0], [1]]].shape == [2, 1]
    assert s[[[0], [1]]]["o"].values.shape == [2, 1, 2]
    assert s[None]["o"].values.shape == [1, 3, 2]
    assert s[None]["m"].shape == [1, 3, 2]
    matrix = Dense([3, 2], {"m": own, "o": other})
    assert matrix[[0, 2], [1, 0]]["o"].values.numpy().tolist() == [2, 5]
    assert matrix[[0, 2], [1, 0]]["m"].to_py() == [None, 5]
    assert matrix[:, None]["o"].values.shape == [3, 1, 2]


@pytest.mark.parametrize(
    ("key", "kind", "words"),
    [
        (("owner", "nmae"), FieldError, "owner.nmae: .*Did you mean name"),
        ("owner.nmae", FieldError, "owner.nmae: .*Did you mean name"),
        (("owner", 0, ["age", "nmae"]), FieldError, "owner.nmae: .*Did you mean name"),
        (("items", "v", "x"), FieldError, r"items.v.x: expected a record with fields"),
        (([0, 3],), RowError, "index: expected a position from -3 to 2, got position 3"),
        (("items", [0, 1], [0, 0]), RowError, "items: expected position 0 in every row, got 0"),
        (([True, False],), StructureError, r"a mask of shape \(3,\)"),
        (("items", [[True], [True], [True]]), RowError, "items: expected .*row"),
        (("items", [0, 1], [0, 1, 2]), StructureError, "arrays of one shape"),
        (("items", 0, slice(None), 0), RowError, "at most 2 position"),
        ((True,), DTypeError, "a field name, an int, a slice"),
        ((1.5,), DTypeError, "a field name, an int, a slice"),
        (([1.5],), DTypeError, "a field name, an int, a slice"),
        ((["id", 0],), DTypeError, "a field name, an int, a slice"),
        ((tf.ragged.constant([[0], [0]]),), RowError, "at most 1 position"),
        (("items", tf.ragged.constant([[0], []])), StructureError, "items: .*3 rows"),
        (("items", tf.ragged.constant([[True], [True], []])), StructureError, "rows of the value"),
    ],
    ids=str,
)  # fmt: skip
def test_a_key_that_does_not_fit_is_an_error_with_the_whole_path(key, kind, words):
    with pytest.raises(kind, match=words) as caught:
        basket()[key]
    assert caught.value.fix


@pytest.mark.parametrize("kind", ["vector", "rows", "field"])
def test_a_slice_that_is_no_range_is_an_error(kind):
    flat = xt.DenseStructuredTensor([3], {"x": [1, 2, 3]})
    rows = xt.RaggedStructuredTensor.from_row_lengths(flat, [2, 1])
    value = {"vector": flat, "rows": rows, "field": rows}[kind]
    for part, error in (
        (slice(None, None, 0), StructureError),
        (slice(1.5, None), DTypeError),
        (slice("a", "b"), DTypeError),
        (slice(tf.constant(0.5), None), DTypeError),
        (slice(tf.constant([1]), None), DTypeError),
    ):
        for key in (("x", part), (part, "x"), (slice(None), part)) if kind == "field" else (part,):
            with pytest.raises(error, match=r"slice of ints|step other than 0"):
                value[key]


def test_arrays_on_both_sides_of_a_slice_are_refused():
    value = Dense([2, 2, 2], {"v": np.arange(8).reshape(2, 2, 2)})
    for key in (([0, 1], slice(None), [0, 1]), (0, slice(None), [0, 1])):
        with pytest.raises(StructureError, match="beside each other"):
            value[key]
    assert value[0][:, [1, 0]]["v"].numpy().tolist() == [[1, 0], [3, 2]]


def test_a_vector_of_positions_runs_one_gather_a_field():
    taken = tf.function(lambda s, i: s[i]).get_concrete_function(
        Dense([3], {"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]}), np.array([1, 0])
    )
    ops = [op.type for op in taken.graph.get_operations()]
    assert ops.count("GatherV2") == 2
    assert "Where" not in ops


@pytest.mark.parametrize("dtype", [tf.uint8, tf.int16, tf.uint64])
def test_positions_of_every_integer_dtype(dtype):
    records = xt.struct.constant([{"x": 1, "l": [1]}, {"x": 2, "l": [2, 3]}])
    for places in (tf.constant([1, 0], dtype), tf.constant([[1], [0]], dtype)):
        assert records[places].to_py() == tf.gather(records, tf.cast(places, tf.int64)).to_py()
    assert records["l", tf.constant([1], dtype)].to_list() == [[2, 3]]
    assert records[tf.constant(1, dtype)].to_py() == {"x": 2, "l": [2, 3]}
    assert records[tf.constant(1, dtype) :].to_py() == records[1:].to_py()
    assert records[: tf.constant(1, dtype)].to_py() == records[:1].to_py()


REFUSED = (RowError, StructureError, tf.errors.InvalidArgumentError)
OF_LISTS = {
    "an int": (lambda r, mask: r["l", 0, mask], [5, 7], 3),
    "a slice": (lambda r, mask: r["l", :2, mask], [[5, 7], [8, 10]], 3),
    "two ints": (lambda r, mask: r["m", 1, 0, mask], [2], 2),
    "an int and a slice": (lambda r, mask: r["m", 1, :, mask], [[2], [4]], 2),
}


@pytest.mark.parametrize("size", ["its lists", 1, 4])
@pytest.mark.parametrize("case", OF_LISTS)
@pytest.mark.parametrize("run", ["eager", "graph"])
def test_a_mask_after_other_positions_is_as_long_as_the_lists(case, size, run):
    rows = [
        {"l": [5, 6, 7], "m": [[1]]}, {"l": [8, 9, 10], "m": [[2, 3], [4, 5]]},
        {"l": [11], "m": []},
    ]  # fmt: skip
    records = xt.struct.constant(rows)
    select, expected, length = OF_LISTS[case]
    mask = np.resize([True, False], length if size == "its lists" else size)
    if run == "graph":
        spec = xt.spec_of(records).most_specific_common_supertype(
            [xt.spec_of(xt.struct.constant(rows[1:]))]
        )
        signature = [spec, tf.TensorSpec([None], tf.bool)]
        select = tf.function(select, input_signature=signature, autograph=False)
    if size == "its lists":
        assert plain(select(records, tf.constant(mask))) == expected
        return
    with pytest.raises(REFUSED, match=r"a mask"):
        select(records, tf.constant(mask))
