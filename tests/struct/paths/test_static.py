"""Records of static shapes and back: padded and packed lists, nulls, gradients, bad input."""

import awkward as ak
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given

import extensor as xt
from extensor.errors import DTypeError, FieldError, StructureError, UnsupportedTypeError
from tests.struct.paths import trees

S = xt.struct

SIZES = {
    "padded": ({"author.books": 3, "steps": 3, "steps.tags": 3, "steps.tools": 4, "sizes": 3}, {}),
    "packed": ({}, dict.fromkeys(["author.books", "steps", "steps.tags", "steps.tools"], 99)),
    "padded in packed": ({"steps.tags": 3, "steps.tools": 4, "author.books": 3}, {"steps": 24}),
    "packed in padded": ({"steps": 3}, {"steps.tags": 99, "steps.tools": 99, "author.books": 24}),
}
"""Capacities for recipes, whose lists have up to 3 items. Those without one here are packed."""

ORDERS = xt.struct.constant(
    [
        {"id": 1, "items": [{"price": 5.0, "tags": [1, 2]}, {"price": 2.0, "tags": []}]},
        {"id": 2, "items": []},
        {"id": 3, "items": [{"price": 1.0, "tags": [7]}]},
    ]
)


def there_and_back(padded, packed):
    packed = packed if "sizes" in padded else {**packed, "sizes": 24}

    def operation(records):
        own = {**padded, (): 4} if isinstance(records, xt.RaggedStructuredTensor) else padded
        static = records.to_static(own, packed)
        return S.from_static(static, xt.spec_of(records))

    return operation


@pytest.mark.parametrize("sizes", SIZES)
@given(plain=trees.recipes)
def test_static_records_become_the_same_records_again(sizes, plain):
    assume(plain)
    encode = (trees.vector, trees._halves, trees._twice)[len(repr(plain)) % 3]
    records = encode(plain)
    back = there_and_back(*SIZES[sizes])(records)
    assert back.to_py() == records.to_py()
    assert xt.spec_of(back) == xt.spec_of(records)


RECIPE = trees._OF_OTHER_SIZES[1][0]


@pytest.mark.parametrize("sizes", SIZES)
def test_a_graph_returns_what_eager_calls_return(sizes):
    records = trees.vector([RECIPE, trees._OF_OTHER_SIZES[0][0], RECIPE])
    function = tf.function(there_and_back(*SIZES[sizes]), [trees._any_size(0)], autograph=False)
    assert function(records).to_py() == records.to_py()


NULLABLE = {
    "padded": ({"sizes": 4, "steps": 4, "steps.l": 3}, {}),
    "packed": ({}, {"sizes": 24, "steps": 24, "steps.l": 99}),
    "padded in packed": ({"sizes": 4, "steps.l": 3}, {"steps": 24}),
    "packed in padded": ({"steps": 4}, {"sizes": 24, "steps.l": 99}),
}
FULL = {
    **dict.fromkeys(trees.ODD, 1),
    "id": 1,
    "sizes": [1, None],
    "steps": [{**dict.fromkeys(trees.ODD, 1), "m": 1, "l": [1]}, None],
}


@pytest.mark.whole("draws many values")
@pytest.mark.parametrize("sizes", NULLABLE)
@given(plain=trees.nullable_recipes)
def test_lengths_keep_nulls_apart_from_free_places(sizes, plain):
    plain = [
        *plain,
        FULL,
        {**FULL, "steps": None},
        {**FULL, "steps": [{**FULL["steps"][0], "l": None}]},
    ]
    records = S.constant(plain, nulls="mask")
    records = S.num(S.num(records, "sizes", "n"), "steps", "count")
    records = S.num(records, "steps.l", "steps.count")
    static = records.to_static(*NULLABLE[sizes])
    lengths = {"sizes": "n", "steps": "count", "steps.l": "steps.count"}
    back = S.from_static(static, xt.spec_of(records), lengths)
    assert back.to_py() == records.to_py()
    assert xt.spec_of(back) == xt.spec_of(records)


@given(plain=trees.recipes)
def test_padding_is_that_of_awkward_and_of_tensorflow(plain):
    assume(plain)
    records = trees.vector(plain)
    static = records.to_static(dict.fromkeys(SIZES["padded"][0], 2), overflow="cut")
    books, steps = static["author.books"], static["steps.minutes"]
    assert (
        books.to_py() == ak.pad_none([r["author"]["books"] for r in plain], 2, clip=True).to_list()
    )
    padded = records["steps.minutes"].to_tensor(shape=[None, 2])
    np.testing.assert_array_equal(steps.values, padded)
    np.testing.assert_array_equal(steps.mask, tf.sequence_mask(records["steps"].row_lengths(), 2))
    inner = static["steps.tools.grams"]
    np.testing.assert_array_equal(
        inner.fill(0.0), records["steps.tools.grams"].to_tensor(shape=[None, 2, 2])
    )


@pytest.mark.whole("draws many values")
@given(plain=trees.recipes)
def test_the_items_that_were_cut_are_counted(plain):
    assume(plain)
    records = trees.vector(plain)
    padded = {"author.books": 1, "steps": 2, "steps.tags": 1, "sizes": 2}
    counts = S.num_cut(records, padded, {"steps.tools": 3})
    kept = [r["steps"][:2] for r in plain]
    tools = sum(len(s["tools"]) for r in plain for s in r["steps"])
    kept_tools = sum(len(s["tools"]) for steps in kept for s in steps)
    assert {path: int(count) for path, count in counts.items()} == {
        "author.books": sum(max(len(r["author"]["books"]) - 1, 0) for r in plain),
        "sizes": sum(max(len(r["sizes"]) - 2, 0) for r in plain),
        "steps": sum(max(len(r["steps"]) - 2, 0) for r in plain),
        "steps.tags": sum(len(s["tags"]) for r in plain for s in r["steps"])
        - sum(min(len(s["tags"]), 1) for steps in kept for s in steps),
        "steps.tools": tools - min(kept_tools, 3),
    }
    static = records.to_static(padded, {"steps.tools": 3}, overflow="cut")
    flat = [t for steps in kept for s in steps for t in s["tools"]][:3]
    rows = static["steps.tools"].to_py()
    assert [t for row in rows for list_ in row for t in list_ or [] if t is not None] == flat


@pytest.mark.parametrize(
    "sizes", [({"items": 3, "items.tags": 2}, {}), ({}, {"items": 4, "items.tags": 5})]
)
def test_gradients_flow_there_and_back(sizes):
    prices = tf.constant([5.0, 2.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(prices)
        own = ORDERS.with_updates({"items.price": ORDERS["items.price"].with_values(prices)})
        back = S.from_static(own.to_static(*sizes), xt.spec_of(own))
        loss = tf.reduce_sum(back["items.price"].values ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(loss, prices))
    np.testing.assert_array_equal(gradient, [10.0, 4.0, 2.0])


def test_lists_of_lists_have_a_capacity_for_each_level():
    lists = tf.ragged.constant([[[1, 2], [3]], []], dtype=tf.int32)
    vectors = tf.ragged.constant([[[1.0, 2.0]], []], ragged_rank=1)
    records = xt.DenseStructuredTensor([2], {"m": lists, "v": vectors})
    static = records.to_static({"m": (2, 3), "v": 1})
    assert static["m"].to_py() == [[[1, 2, None], [3, None, None]], [None, None]]
    assert static["v"].to_py() == [[[1.0, 2.0]], [None]]
    packed = records.to_static(packed={"m": (3, 4), "v": 2})
    assert packed["m"].values.values.flat_values.shape == [4]
    for each in (static, packed):
        assert S.from_static(each, xt.spec_of(records)).to_py() == records.to_py()


def test_static_records_are_elements_of_datasets():
    rows = tf.data.Dataset.from_tensor_slices(ORDERS)
    sizes = {"items": 2, "items.tags": 2}
    single = rows.map(lambda row: row.to_static(sizes)).batch(3)
    batched = rows.batch(3).map(lambda batch: batch.to_static(sizes))
    expected = ORDERS.to_static(sizes).to_py()
    assert [batch.to_py() for batch in single] == [batch.to_py() for batch in batched] == [expected]
    assert batched.element_spec == single.element_spec
    items = batched.element_spec.field_spec("items.tags").values
    assert items == tf.TensorSpec([None, 2, 2], tf.int32)
    first = next(iter(rows))
    back = S.from_static(first.to_static(sizes), rows.element_spec)
    assert back.to_py() == first.to_py()


def test_single_records_of_datasets_are_cut():
    sizes = {"items": 1, "items.tags": 1}
    rows = tf.data.Dataset.from_tensor_slices(ORDERS)
    single = rows.map(lambda row: row.to_static(sizes, overflow="cut")).batch(3)
    assert [batch.to_py() for batch in single] == [ORDERS.to_static(sizes, None, "cut").to_py()]


def test_fields_of_the_static_records_alone_stay():
    static = ORDERS.to_static({"items": 2, "items.tags": 2})
    more = static.with_updates(scores=static["items.price"] * 2.0)
    back = S.from_static(more, xt.spec_of(ORDERS))
    assert back["scores"].to_py() == [[10.0, 4.0], [None, None], [2.0, None]]
    assert back.without("scores").to_py() == ORDERS.to_py()


def test_names_of_dimensions_and_types_of_arrow_are_kept():
    import datetime

    records = S.constant([{"days": [datetime.date(2026, 5, 1)]}, {"days": []}]).with_dims("order")
    static = records.to_static({"days": 2})
    assert static.to_py() == [{"days": [datetime.date(2026, 5, 1), None]}, {"days": [None, None]}]
    assert static.dims == ("order",)
    assert S.from_static(static, xt.spec_of(records)).to_py() == records.to_py()


def test_what_is_hidden_in_null_lists_needs_no_place():
    lists = xt.types.MaskedTensor(tf.ragged.constant([[1, 2, 3], [4]]), [False, True])
    records = xt.DenseStructuredTensor([2], {"x": lists})
    assert records.to_static({"x": 1})["x"].to_py() == [None, [4]]
    assert records.to_static(packed={"x": 2})["x"].to_py() == [None, [4, None]]
    assert int(S.num_cut(records, {"x": 1})["x"]) == 0


ALL = {"items": 2, "items.tags": 2}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: ORDERS.to_static({**ALL, "items": 0}), StructureError,
            "items: expected a capacity of 1 or more, got 0. Give the size of the longest list",
        ),
        (
            lambda: ORDERS.to_static({**ALL, "items": 1}), StructureError,
            "items: expected lists of at most 1 items, got one of 2. Give a larger capacity, or "
            'overflow="cut".',
        ),
        (
            lambda: ORDERS.to_static({"items.tags": 2}, {"items": 2}), StructureError,
            "items: expected at most 2 items in all lists, got 3. Give a larger capacity",
        ),
        (
            lambda: ORDERS.to_static({**ALL, "id": 2}), StructureError,
            "id: expected the path of a list, got one value a record. Leave out its capacity",
        ),
        (
            lambda: ORDERS.to_static({**ALL, "items": (2, 3)}), StructureError,
            "items: expected 1 size for the levels of the lists, got 2. Leave out those",
        ),
        (
            lambda: ORDERS[0].to_static(ALL), StructureError,
            "items: expected the path of a list, got a field of one size.",
        ),
        (
            lambda: ORDERS.to_static({**ALL, "item": 2}), FieldError,
            "item: expected one of the fields id, items, got item. Did you mean items?",
        ),
        (
            lambda: ORDERS.to_static({"items": 2}), StructureError,
            "items.tags: expected a capacity for each list, got none. Give padded={'items.tags': ",
        ),
        (
            lambda: ORDERS.to_static(ALL, {"items": 4}), StructureError,
            "items: expected one capacity for the lists, got two. Pad the lists, or pack them.",
        ),
        (
            lambda: ORDERS.to_static({**ALL, "items": 2.5}), DTypeError,
            "items: expected a capacity: an integer, got float. Give an int",
        ),
        (
            lambda: ORDERS.to_static(2), DTypeError,
            "to_static: padded: expected a mapping from paths, got int. Write padded=",
        ),
        (
            lambda: ORDERS.to_static(ALL, overflow="drop"), DTypeError,
            "to_static: overflow: expected 'error' or 'cut', got 'drop'.",
        ),
        (
            lambda: ORDERS["items"].to_static({"tags": 2}), StructureError,
            "(): expected a capacity for each list, got none. Give padded={(): ",
        ),
        (
            lambda: ORDERS[:0].to_static({"items.tags": 2}, {"items": 2}), StructureError,
            "items: expected a record at least, whose list has the free places, got none. Leave",
        ),
        (
            lambda: S.from_static(ORDERS.to_static(ALL), ORDERS), DTypeError,
            "from_static: spec: expected the spec of records, got DenseStructuredTensor. Give xt.",
        ),
        (
            lambda: S.from_static(
                ORDERS.to_static(ALL), xt.spec_of(ORDERS), {"items.tags": "id"}
            ),
            StructureError,
            "id: expected a field beside items.tags, got a field of the root. Put the lengths",
        ),
    ],
)  # fmt: skip
def test_bad_input_raises_an_error_with_a_path(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value).startswith(text)


def test_lists_of_lists_with_one_capacity_raise_an_error():
    records = xt.DenseStructuredTensor([1], {"m": tf.ragged.constant([[[1]]])})
    with pytest.raises(StructureError, match=r"m: expected a capacity for each level .* got 1 of"):
        records.to_static({"m": 2})


def test_items_that_may_be_null_need_lengths_to_come_back():
    records = S.constant([{"x": [1, None]}], nulls="mask")
    static = records.to_static({"x": 3})
    with pytest.raises(StructureError, match="x: expected the lengths of the lists, because their"):
        S.from_static(static, xt.spec_of(records))


def test_a_union_has_no_static_shapes():
    records = S.constant([{"x": 1}, {"x": "a"}], conflicts="union")
    with pytest.raises(
        UnsupportedTypeError, match=r"x: expected a field of tensors, .* UnionTensor"
    ):
        records.to_static({})


def test_items_that_do_not_fit_fail_when_a_graph_runs():
    spec = xt.spec_of(ORDERS).unstacked().stacked(None)
    for sizes, text in [
        (({"items": 1, "items.tags": 2}, {}), r"items: expected lists of at most 1 items, got one"),
        (({"items.tags": 2}, {"items": 2}), r"items: expected at most 2 items in all lists, got "),
    ]:
        function = tf.function(lambda records, sizes=sizes: records.to_static(*sizes), [spec])
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            function(ORDERS)


def test_empty_records_are_padded():
    static = ORDERS[:0].to_static(ALL)
    assert static["items.tags"].shape == [0, 2, 2]
    assert S.from_static(static, xt.spec_of(ORDERS)).to_py() == []
