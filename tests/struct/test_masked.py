"""Masked fields and masked records in records: paths, updates, Python, NumPy, datasets, Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import RowError
from extensor.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def _ages():
    return MaskedTensor([31, 0, 54], [True, False, True])


def _families():
    """People with a partner who may be missing, whose age may be missing, and lists of both."""
    partner = Dense([3], {
        "name": ["Bo", "", "Di"], "age": _ages(), "pets": tf.ragged.constant([["cat"], [], []]),
    })  # fmt: skip
    children = Dense([3], {"age": _ages(), "partner": MaskedTensor(partner, [True, True, False])})
    lists = Ragged.from_row_splits(children, [0, 1, 1, 3])
    return Dense([3], {
        "name": ["Al", "Cy", "Ed"],
        "partner": MaskedTensor(partner, [True, True, False]),
        "children": MaskedTensor(lists, [True, False, True]),
        "tags": MaskedTensor(
            MaskedTensor(tf.ragged.constant([["a", "b"], [], ["c"]]),
                         tf.ragged.constant([[True, False], [], [True]])), [True, False, True]),
    })  # fmt: skip


BO = {"name": b"Bo", "age": 31, "pets": [b"cat"]}
NOBODY = {"name": b"", "age": None, "pets": []}
PLAIN = [
    {
        "name": b"Al",
        "partner": BO,
        "children": [{"age": 31, "partner": BO}],
        "tags": [b"a", None],
    },
    {"name": b"Cy", "partner": NOBODY, "children": None, "tags": None},
    {
        "name": b"Ed",
        "partner": None,
        "children": [{"age": None, "partner": NOBODY}, {"age": 54, "partner": None}],
        "tags": [b"c"],
    },
]


def test_python_values():
    assert _families().to_py() == PLAIN
    assert [record.to_py() for record in _families()] == PLAIN


PATHS = {
    "partner.name": [b"Bo", b"", None],
    "partner.age": [31, None, None],
    "partner.pets": [[b"cat"], [], None],
    "children.age": [[31], None, [None, 54]],
    "children.partner.age": [[31], None, [None, None]],
    "children.partner.name": [[b"Bo"], None, [b"", None]],
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("path", PATHS)
def test_a_path_goes_through_masked_records(path):
    families = _families()
    assert path in families
    assert families[path].to_py() == PATHS[path]
    assert families.field_value(path).to_py() == PATHS[path]
    names = path.split(".")
    assert families[tuple(names)].to_py() == PATHS[path]
    assert families[0, path].to_py() == PATHS[path][0]
    assert families[path, 1:].to_py() == PATHS[path][1:]
    assert families[(names[0], slice(1, None), ".".join(names[1:]))].to_py() == PATHS[path][1:]
    traced = tf.function(lambda r: (r[path], r[1][path], r[path, 2]))
    whole, one, other = traced(families)
    assert whole.to_py() == PATHS[path]
    assert one.to_py() == PATHS[path][1]
    assert other.to_py() == PATHS[path][2]


def test_a_field_of_one_masked_record():
    partner = _families()["partner"]
    assert partner["age"].to_py() == [31, None, None]
    assert partner[0]["age"].to_py() == 31
    assert partner[2]["age"].to_py() is None


@pytest.mark.parametrize(
    "path", ["partner.nope", "partner.age.x", "children.partner.nope", "name.x"]
)
def test_a_path_that_does_not_exist(path):
    families = _families()
    assert path not in families
    with pytest.raises(xt.errors.FieldError, match=path):
        families[path]
    with pytest.raises(xt.errors.FieldError, match=path):
        families.with_only(path)
    with pytest.raises(xt.errors.FieldError):
        families.with_updates({f"{path}.y": 1})


def test_fields_below_masked_records_are_selected_and_replaced():
    families = _families()
    only = families.with_only("partner.age", "children.partner.name")
    assert only.to_py()[0] == {"partner": {"age": 31}, "children": [{"partner": {"name": b"Bo"}}]}
    assert only["children.partner.name"].to_py() == PATHS["children.partner.name"]
    less = families.without("partner.pets", "children.partner")
    assert less["partner"].to_py() == [{"name": b"Bo", "age": 31}, {"name": b"", "age": None}, None]
    assert less["children"].to_py() == [[{"age": 31}], None, [{"age": None}, {"age": 54}]]
    more = families.with_updates({"partner.years": [1, 2, 3], "partner.name": ["X", "Y", "Z"]})
    assert more["partner.years"].to_py() == [1, 2, None]
    assert more["partner.name"].to_py() == [b"X", b"Y", None]
    assert more["partner.age"].to_py() == PATHS["partner.age"]
    assert families.__tf_type_spec__().field_spec("partner.name").dtype == tf.string
    assert families.__tf_type_spec__().field_spec("children.partner.age").dtype == tf.int32


def test_numpy_has_masked_arrays_and_none():
    arrays = _families().numpy()
    assert arrays["partner"]["age"].tolist() == [31, None, None]
    assert isinstance(arrays["partner"]["age"], np.ma.MaskedArray)
    assert arrays["partner"]["pets"][2] is None
    assert arrays["partner"]["pets"][0].tolist() == [b"cat"]
    assert arrays["children"]["age"][0].tolist() == [31]
    assert arrays["children"]["age"][1] is None
    assert arrays["children"]["age"][2].tolist() == [None, 54]
    assert arrays["tags"][0].tolist() == [b"a", None]
    assert arrays["tags"][1] is None


def test_a_spec_casts_python_with_none():
    families = _families()
    spec = xt.spec_of(families).unstacked().stacked(None)
    assert spec.cast(PLAIN).to_py() == PLAIN
    assert spec.cast(PLAIN[::-1]).to_py() == PLAIN[::-1]
    assert spec.cast([]).to_py() == []
    one = spec.unstacked()
    for plain in PLAIN:
        assert one.cast(plain).to_py() == plain
    spec = MaskedTensor.Spec(tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.bool))
    assert spec.cast([[1, 2], None]).to_py() == [[1.0, 2.0], None]
    assert spec.cast([None]).to_py() == [None]


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("kept", ["tags", "partner", "children", None])
def test_datasets_keep_rows_of_masked_lists(kept):
    families = _families() if kept is None else _families().with_only(kept)
    plain = families.to_py()
    rows = tf.data.Dataset.from_tensor_slices(families)
    assert [row.to_py() for row in rows] == plain
    for data in (rows, rows.map(lambda r: r), rows.batch(3).unbatch()):
        assert [batch.to_py() for batch in data.batch(2)] == [plain[:2], plain[2:]]
    assert [batch.to_py() for batch in rows.ragged_batch(2)] == [plain[:2], plain[2:]]


@pytest.mark.whole("checks all laws of several types")
def test_records_with_masks_obey_the_laws():
    families = _families()
    xt.testing.check_extension_type([families, families[1:], families[::-1]])
    nested = Dense([2], {"f": Ragged.from_row_splits(families, [0, 1, 3])})
    xt.testing.check_extension_type([nested, nested[1:]])


def test_a_model_takes_a_masked_field_of_ragged_records():
    items = Dense([4], {"price": MaskedTensor([1.0, 0.0, 3.0, 4.0], [True, False, True, True])})
    baskets = Dense([3], {"items": Ragged.from_row_splits(items, [0, 2, 2, 4])})
    spec = xt.spec_of(baskets).unstacked().stacked(None)

    class Total(xt.keras.Layer):
        def call(self, baskets):
            return tf.reduce_sum(baskets["items.price"].fill(0.0), axis=1)[:, tf.newaxis]

    inputs = xt.keras.Input(spec)
    outputs = keras.layers.Dense(1, kernel_initializer="ones")(Total()(inputs))
    model = xt.keras.Model(inputs, outputs)
    assert model.predict(baskets, verbose=0).tolist() == [[1.0], [0.0], [7.0]]
    model.compile("sgd", "mse")
    model.fit(baskets, np.array([[1.0], [0.0], [7.0]]), verbose=0)


LISTS = xt.struct.constant(
    [
        {"n": [1, 2], "l": [{"v": 1}, {"v": None}], "deep": [[1, 2], None, [3]]},
        {"n": None, "l": None, "deep": None},
        {"n": [5], "l": [{"v": 7}], "deep": [[7]]},
    ],
    nulls="mask",
)
AT = {
    "an int": (("n", slice(None), 0), [1, None, 5]),
    "from the end": (("n", slice(None), -1), [2, None, 5]),
    "a tensor": (("n", slice(None), tf.constant(0)), [1, None, 5]),
    "an ellipsis": (("n", ..., 0), [1, None, 5]),
    "before the name": ((slice(None), "n", 0), [1, None, 5]),
    "one null list": (("n", 1, 0), None),
    "one list": (("n", 2, 0), 5),
    "the end": (("n", -2, -1), None),
    "rows": (("n", [0, 2], 0), [1, 5]),
    "pairs": (("n", [0, 1, 2], [1, 0, 0]), [2, None, 5]),
    "columns": (("n", slice(None), [0]), [[1], None, [5]]),
    "some rows, columns": (("n", slice(2), [0, 1]), [[1, 2], None]),
    "ranges": (("n", slice(None), slice(None, None, -1)), [[2, 1], None, [5]]),
    "ragged ints": (("n", tf.ragged.constant([[1], [], [0]])), [[2], None, [5]]),
    "ragged bools": (("n", LISTS["n"] > 1), [[2], None, [5]]),
    "records": (("l", slice(None), 0), [{"v": 1}, None, {"v": 7}]),
    "a field of records": (("l", slice(None), 0, "v"), [1, None, 7]),
    "a null in a list": (("l.v", slice(None), -1), [None, None, 7]),
    "records by a mask": (("l", LISTS["l.v"] > 1), [[], None, [{"v": 7}]]),
    "lists in lists": (("deep", slice(None), slice(None), 0), [[1, None, 3], None, [7]]),
    "one list of lists": (("deep", 0, slice(None), 0), [1, None, 3]),
    "a null in a list of lists": (("deep", 0, 1, 0), None),
    "an item of lists": (("deep", slice(None), 0), [[1, 2], None, [7]]),
}


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("case", AT)
def test_a_null_list_is_null_at_every_position(case):
    key, expected = AT[case]
    assert LISTS[key].to_py() == expected
    assert tf.function(lambda records: records[key])(LISTS).to_py() == expected


def test_null_lists_over_hidden_items_and_without_any_item():
    hidden = MaskedTensor(tf.ragged.constant([[1], [8, 9], []]), [True, False, False])
    records = Dense([3], {"n": hidden})
    assert records["n", :, 0].to_py() == [1, None, None]
    empty = xt.struct.constant([{"n": None}] * 3, xt.spec_of(records))
    assert empty["n", :, 0].to_py() == [None, None, None]


def test_the_row_that_is_too_short_is_that_of_the_records():
    with pytest.raises(
        RowError, match=r"^n: expected position 1 in every row, got 1 element in row 2"
    ):
        LISTS["n", :, 1]
    function = tf.function(lambda records: records["n", :, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="n: a row is too short"):
        function(LISTS)
