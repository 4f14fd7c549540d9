"""StructuredTensor: what a collection of records is, and what can be done to it outside a graph."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor.errors import (
    DTypeError,
    ExtensorError,
    FieldError,
    RowError,
    StructureError,
    UnsupportedTypeError,
)
from tests.samples.arrow_strategies import MANY, arrays
from tests.samples.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def plain(value):
    """Returns any field or records as plain Python."""
    if isinstance(value, xt.StructuredTensor):
        return value.to_py(text=False)
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    plain = value.numpy()
    return plain if isinstance(plain, bytes) else plain.tolist()


def steps():
    """Returns the steps of two recipes: three records in two rows."""
    return Ragged.from_row_splits(
        Dense([3], {"minutes": [5, 20, 8], "description": ["mix", "bake", "eat"]}), [0, 2, 3]
    )


def recipes():
    return Dense([2], {
        "title": ["Snickerdoodles", "Flapjacks"],
        "est_time": [55.0, 30.0],
        "tags": tf.ragged.constant([["sweet"], []], dtype=tf.string),
        "author": Dense([2], {"name": ["Ann", "Bob"], "scores": [[1, 2], [3, 4]]}),
        "steps": steps(),
    })  # fmt: skip


# The examples of the text that the type comes from.


INGREDIENTS = [("flour", 3.0, "cup"), ("white sugar", 1.0, "cup"), ("cinnamon", 1.0, "teaspoon")]
RECORD = {
    "user_embedding": [0.5, 2.0, 0.25, 0.125, 9.0, 1.75],
    "recipe": {
        "title": b"Snickerdoodle cookies",
        "est_time": 55.0,
        "ingredients": [
            {"amount": a, "unit": u.encode(), "name": n.encode()} for n, a, u in INGREDIENTS
        ],
        "step": [{"description": b"Preheat oven."}, {"description": b"Whisk."}],
        "user_rating": [
            {"user_embedding": [0.5, 2.0, 0.25, 0.25, 5.0, 2.25], "score": 0.75},
            {"user_embedding": [1.5, 0.0, 3.0, 1.0, 1.25, 0.25], "score": 0.5},
        ],
    },
}


def the_recipe():
    ratings = RECORD["recipe"]["user_rating"]
    return Dense([], {
        "user_embedding": RECORD["user_embedding"],
        "recipe": Dense([], {
            "title": "Snickerdoodle cookies",
            "est_time": 55.0,
            "ingredients": Dense([3], {
                "amount": [a for _, a, _ in INGREDIENTS],
                "unit": [u for _, _, u in INGREDIENTS],
                "name": [n for n, _, _ in INGREDIENTS],
            }),
            "step": Dense([2], {"description": ["Preheat oven.", "Whisk."]}),
            "user_rating": Dense([2], {
                "user_embedding": [r["user_embedding"] for r in ratings],
                "score": [r["score"] for r in ratings],
            }),
        }),
    })  # fmt: skip


def test_the_recipe_is_a_record_of_records_and_lists_of_records():
    struct = the_recipe()
    assert struct.shape == ()
    assert struct.rank == 0
    assert struct["recipe"].shape == ()
    assert [struct["recipe", f].shape for f in ("ingredients", "step", "user_rating")] == [
        [3], [2], [2],
    ]  # fmt: skip
    assert struct["recipe", "user_rating", "user_embedding"].shape == [2, 6]
    assert struct.to_py() == RECORD


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("user_embedding", RECORD["user_embedding"]),
        ("recipe", RECORD["recipe"]),
        (("recipe", "title"), RECORD["recipe"]["title"]),
        (("recipe", "ingredients"), RECORD["recipe"]["ingredients"]),
        (("recipe", "ingredients", 0), RECORD["recipe"]["ingredients"][0]),
        (("recipe", "ingredients", 0, "name"), b"flour"),
        (("recipe", "ingredients", slice(None), "name"), [n.encode() for n, _, _ in INGREDIENTS]),
        (("recipe", "user_rating", slice(None), "user_embedding", slice(None, None, 2)),
         [r["user_embedding"][::2] for r in RECORD["recipe"]["user_rating"]]),
        (("recipe", "user_rating", -1, "user_embedding", -1), 0.25),
        ("recipe.ingredients.name", [n.encode() for n, _, _ in INGREDIENTS]),
        (("recipe.user_rating", 0, "score"), 0.75),
    ],
)  # fmt: skip
def test_the_recipe_is_indexed_as_the_documentation_shows(key, expected):
    assert plain(the_recipe()[key]) == expected


def test_indexing_step_by_step_is_the_same():
    struct = the_recipe()
    assert plain(struct["recipe"]["title"]) == plain(struct["recipe", "title"])
    assert plain(struct["recipe"]["ingredients"][0]["name"]) == b"flour"


SCALAR = {"x": b"foo", "y": [[1, 2], [3]]}
VECTOR = [SCALAR, {"x": b"bar", "y": [[4], [5, 6]]}, {"x": b"baz", "y": [[7, 8, 9]]}]
MATRIX = [[SCALAR, {"x": b"bar", "y": [[4], [5, 6]]}],
          [{"x": b"baz", "y": [[7, 8, 9]]}, {"x": b"raz", "y": []}]]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "x", "expected"),
    [
        ([], "foo", SCALAR),
        ([3], ["foo", "bar", "baz"], VECTOR),
        ([2, 2], [["foo", "bar"], ["baz", "raz"]], MATRIX),
    ],
    ids=["st_scalar", "st_vector", "st_matrix"],
)
def test_the_encodings_of_the_text(shape, x, expected):
    def ys(records):
        return records["y"] if isinstance(records, dict) else [ys(r) for r in records]

    y = tf.ragged.constant(ys(expected), ragged_rank=len(shape) + 1)
    value = Dense(shape, {"x": x, "y": y})
    assert value.shape == shape
    assert value.field_value("y") is y
    assert value.to_py() == expected
    if shape:
        assert [record.to_py() for record in value] == expected


# Construction.


def test_a_field_is_kept_as_it_is_or_becomes_a_tensor():
    tensor, variable = tf.constant([1, 2]), tf.Variable([1.0, 2.0])
    ragged, sparse = tf.ragged.constant([[1], []]), tf.sparse.from_dense([[0, 1], [2, 0]])
    masked = MaskedTensor(tf.constant([1, 2]), tf.constant([True, False]))
    nested = Dense([2], {"x": [1, 2]})
    fields = {"t": tensor, "v": variable, "r": ragged, "s": sparse, "m": masked, "n": nested,
              "steps": steps()}  # fmt: skip
    value = Dense([2], fields)
    for name, field in fields.items():
        assert value.field_value(name) is field
    made = Dense([2], {"list": [1, 2], "array": np.array([1.0, 2.0]), "text": ["a", b"b"],
                       "flags": (True, False)})  # fmt: skip
    assert {n: made[n].dtype for n in made.field_names()} == {
        "list": tf.int32, "array": tf.float64, "text": tf.string, "flags": tf.bool,
    }  # fmt: skip


def test_the_order_of_fields_is_kept():
    names = ("z", "a", "M", "", "a b")
    value = Dense([1], {name: [1] for name in names})
    assert value.field_names() == names
    assert list(value.to_py()[0]) == list(names)
    assert value.with_updates(a=[2]).field_names() == names
    assert value.with_updates(b=[2]).field_names() == (*names, "b")
    assert value.without("M").field_names() == ("z", "a", "", "a b")
    assert value.with_only("M", "z").field_names() == ("M", "z")
    assert tf.function(lambda v: v)(value).field_names() == names


@pytest.mark.parametrize(
    "shape", [[2], [None], tf.TensorShape([2]), (2,), [tf.compat.v1.Dimension(2)]]
)
def test_fields_tell_sizes_that_the_shape_leaves_open(shape):
    assert Dense(shape, {"x": [1, 2]}).shape == [2]


def test_records_without_fields_are_counted_all_the_same():
    for shape in ([], [3], [0], [2, 3], [0, 2]):
        value = Dense(shape, {})
        assert value.shape == shape
        nested = np.empty(shape, object)
        nested.fill({})
        assert value.to_py() == nested.tolist()
        assert value.field_names() == ()
        assert tf.function(lambda v: v)(value).shape == shape
    assert Dense([3], {})[1:].shape == [2]
    assert Dense([3], {})[0].shape == []
    assert Dense([3], {}).with_updates(x=[1, 2, 3]).to_py() == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert Dense([3], {"x": [1, 2, 3]}).without("x").shape == [3]
    empty = Ragged.from_row_splits(Dense([3], {}), [0, 1, 3])
    assert empty.to_py() == [[{}], [{}, {}]]
    assert steps().with_only().to_py() == [[{}, {}], [{}]]


@pytest.mark.parametrize(
    ("shape", "fields", "kind", "path"),
    [
        ([2], {"x": [1, 2, 3]}, StructureError, "x"),
        ([2], {"a": [1, 2], "x y": 5}, StructureError, '"x y"'),
        ([None], {"a": [1, 2], "x": [1, 2, 3]}, StructureError, "x"),
        ([2, 2], {"x": [[1, 2, 3], [4, 5, 6]]}, StructureError, "x"),
        ([2, 2], {"x": [1, 2]}, StructureError, "x"),
        ([2, 1], {"x": tf.ragged.constant([[1], [2, 3]])}, StructureError, "x"),
        ([2], {"x": tf.ragged.constant([[1]])}, StructureError, "x"),
        ([2], {"x": Dense([3], {})}, StructureError, "x"),
        ([2], {"x": Dense([], {"y": 1})}, StructureError, "x"),
        ([2], {"x": tf.Variable([1, 2, 3])}, StructureError, "x"),
        ([2], {"x": MaskedTensor(tf.zeros([3]), tf.ones([3], tf.bool))}, StructureError, "x"),
        ([2], {"x": [[1], [2, 3]]}, StructureError, "x"),
        ([2], {"x": [1, "a"]}, StructureError, "x"),
        ([1], {"x": None}, StructureError, "x"),
        ([1], {"x": [{"y": 1}]}, StructureError, "x"),
        ([1], {"x": object()}, StructureError, "x"),
        (None, {"x": [1]}, StructureError, "DenseStructuredTensor.shape"),
        (tf.TensorShape(None), {}, StructureError, "DenseStructuredTensor.shape"),
        ([None], {}, StructureError, "DenseStructuredTensor"),
        ([1], {3: [1]}, DTypeError, "field 3"),
        ([1], [("x", [1])], DTypeError, "DenseStructuredTensor.fields"),
    ],
)  # fmt: skip
def test_what_makes_no_records_is_an_error(shape, fields, kind, path):
    with pytest.raises(kind) as caught:
        Dense(shape, fields)
    assert caught.value.path == path
    for part in ("expected", "received", "fix"):
        assert getattr(caught.value, part)


def test_a_dict_as_a_field_is_an_error_that_says_how_to_convert_it():
    with pytest.raises(StructureError, match=r"author: .*DenseStructuredTensor\(shape, fields\)"):
        Dense([1], {"author": {"name": ["a"]}})


def test_the_spec_is_checked_likewise():
    spec = xt.DenseStructuredTensorSpec
    for shape, fields, kind in [
        (None, {}, StructureError),
        ([2], {"x": tf.TensorSpec([3], tf.int32)}, StructureError),
        ([2], {"x": tf.TensorSpec([], tf.int32)}, StructureError),
        ([2], {"x": tf.int32}, DTypeError),
        ([2], [tf.TensorSpec([2])], DTypeError),
        ([2], {3: tf.TensorSpec([2])}, DTypeError),
    ]:
        with pytest.raises(kind):
            spec(shape, fields)
    records = spec([None], {"x": tf.TensorSpec([None])})
    for shape, values, dtype, kind in [
        (None, records, tf.int64, StructureError),
        ([None, None, None], records, tf.int64, StructureError),
        ([], records, tf.int64, StructureError),
        ([None, None], tf.TensorSpec([None]), tf.int64, StructureError),
        ([None], spec([], {}), tf.int64, StructureError),
        ([None, None], records, tf.int16, DTypeError),
    ]:
        with pytest.raises(kind):
            xt.RaggedStructuredTensorSpec(shape, values, dtype)


# Rows.


@pytest.mark.parametrize(
    "splits",
    [[1, 3], [0, 2], [0, 4], [0, 2, 1, 3], [0, -1, 3], [], [[0, 3]], 3, [[0], [1, 3]]],
    ids=str,
)
@pytest.mark.parametrize("make", [list, np.int64, np.int32, tf.constant, tf.Variable],
                         ids=["list", "int64", "int32", "tensor", "variable"])  # fmt: skip
def test_row_splits_that_do_not_cut_the_values_are_an_error(splits, make):
    values = Dense([3], {"x": [1, 2, 3]})
    if splits == [[0], [1, 3]]:
        given = splits
    elif make in (np.int64, np.int32):
        given = np.array(splits, make)
    elif make is list:
        given = splits
    else:
        given = make(np.array(splits, np.int64))
    for validate in (True, False):
        with pytest.raises(StructureError) as caught:
            Ragged.from_row_splits(values, given, validate)
        assert caught.value.path == "row_splits"
        fixes = ("Row i holds", "Give a list of integers", "Give nested lists of equal lengths")
        assert caught.value.fix.startswith(fixes)


@pytest.mark.parametrize("splits", [[0.0, 3.0], ["a"], [True, False], [0, None, 3],
                                    tf.constant([0, 3], tf.int16), np.array([0, 3], np.uint64)],
                         ids=str)  # fmt: skip
def test_row_splits_are_int64_or_int32(splits):
    with pytest.raises(DTypeError, match="int64 or int32"):
        Ragged.from_row_splits(Dense([3], {"x": [1, 2, 3]}), splits)


def test_row_splits_keep_their_dtype_and_lists_become_int64():
    values = Dense([3], {"x": [1, 2, 3]})
    assert Ragged.from_row_splits(values, [0, 3]).row_splits.dtype == tf.int64
    assert Ragged.from_row_splits(values, (0, 3)).row_splits.dtype == tf.int64
    assert Ragged.from_row_splits(Dense([0], {"x": []}), [0]).row_splits.dtype == tf.int64
    for dtype in (np.int8, np.uint16, np.uint32):  # as tf.RaggedTensor takes them
        for make, numbers in (
            ("row_splits", [0, 3]),
            ("row_lengths", [3]),
            ("value_rowids", [0] * 3),
        ):
            given = getattr(Ragged, f"from_{make}")(values, np.array(numbers, dtype))
            expected = getattr(tf.RaggedTensor, f"from_{make}")([1, 2, 3], np.array(numbers, dtype))
            assert given.row_splits.dtype == expected.row_splits.dtype == tf.int64
            assert given["x"].to_list() == expected.to_list()
    for dtype in (tf.int32, tf.int64):
        splits = tf.constant([0, 3], dtype)
        assert Ragged.from_row_splits(values, splits).row_splits is splits
        array = np.array([0, 3], dtype.as_numpy_dtype)
        assert Ragged.from_row_splits(values, array).row_splits.dtype == dtype


def test_row_splits_of_two_dtypes_do_not_mix():
    for inner in (
        tf.RaggedTensor.from_row_lengths([1, 2, 3], tf.constant([2, 1], tf.int32)),
        Ragged.from_row_splits(Dense([3], {}), tf.constant([0, 2, 3], tf.int32)),
    ):
        values = Dense([2], {"x": [1, 2], "inner": inner})
        with pytest.raises(DTypeError, match="int32, the dtype of the row splits inside"):
            Ragged.from_row_splits(values, [0, 2])
        assert Ragged.from_row_splits(values, tf.constant([0, 2])).rank == 2
    small = tf.RaggedTensor.from_row_splits([1, 2, 3], tf.constant([0, 2, 3], tf.int32))
    with pytest.raises(
        StructureError, match=r"\(2 rows, int64\), got other row splits \(2 rows, int32\)"
    ):
        steps().with_updates(x=small)

    @tf.function(input_signature=[tf.RaggedTensorSpec([2, None], tf.int32, 1, tf.int32)])
    def in_a_graph(x):
        return steps().with_updates(x=x)

    with pytest.raises(StructureError, match=r"got other row splits \(2 rows, int32"):
        in_a_graph(small)


def test_only_records_are_cut_into_rows():
    for values in (tf.zeros([3]), [1, 2, 3], Dense([], {}), None):
        with pytest.raises(DTypeError, match="rank 1 or more"):
            Ragged.from_row_splits(values, [0, 3])
    with pytest.raises(DTypeError, match="from_row_splits"):
        Ragged()


def test_the_abstract_class_makes_no_values():
    with pytest.raises(TypeError):
        xt.StructuredTensor()


# Access.


def test_shape_and_rank():
    assert recipes().shape == [2]
    assert recipes().rank == 1
    assert recipes()["steps"].shape == [2, None]
    assert recipes()["steps"].rank == 2
    deep = Ragged.from_row_splits(Ragged.from_row_splits(Dense([3, 4], {}), [0, 1, 3]), [0, 2])
    assert deep.shape == [1, None, None, 4]
    assert deep.rank == 4
    assert isinstance(deep.shape, tf.TensorShape)


def test_a_field_is_reached_by_name_path_or_names():
    value = recipes()
    for path in ("author.name", ("author", "name"), ["author", "name"], xt.Path("author", "name")):
        assert value.field_value(path) is value.field_value("author").field_value("name")
    assert value["author.name"] is value["author", "name"] is value[xt.Path("author", "name")]
    assert value["steps.minutes"].to_list() == [[5, 20], [8]]
    assert value["steps"].field_value("minutes").to_list() == [[5, 20], [8]]
    assert value.field_value(()) is value


@pytest.mark.parametrize("name", ["", " ", "est. time", "a.b", '"', "[*]", "a\nb", "row_splits",
                                  "self", "shape", "fields", "_fields", "ñ", "\\"])  # fmt: skip
def test_any_text_is_a_name(name):
    value = Dense([2], {name: [1, 2], "a": Dense([2], {"b": [3, 4], name: [5, 6]})})
    assert value[name].numpy().tolist() == [1, 2]
    assert value[0, name].numpy() == 1
    assert value["a", name, 1].numpy() == 6
    assert name in value
    assert (name,) in value
    assert ("a", name) in value
    assert value.field_value((name,)) is value.field_value(name) is value[(name,)]
    assert value.without(name).field_names() == ("a",)
    assert value.with_only(name).to_py() == [{name: 1}, {name: 2}]
    assert value.with_updates({name: [7, 8]})[name].numpy().tolist() == [7, 8]
    assert value.with_updates(**{name: [7, 8]})[name].numpy().tolist() == [7, 8]
    assert value.with_updates({("a", name): [7, 8]})["a"].to_py()[1] == {"b": 4, name: 8}
    assert value.without(("a", name))["a"].field_names() == ("b",)
    assert value.to_py()[0] == {name: 1, "a": {"b": 3, name: 5}}
    assert str(xt.Path(name)).replace("\n", r"\n") in repr(value)
    assert tf.function(lambda v: v)(value).to_py() == value.to_py()


@pytest.mark.parametrize(
    ("path", "named"),
    [("nil", "nil"), ("author.nil", "author.nil"), ("title.nil", "title.nil"), ("", '""'),
     ("steps.nil", "steps.nil"), (("est time",), '"est time"'), ("steps.minutes.x",
                                                                   "steps.minutes.x")],
)  # fmt: skip
def test_a_missing_field_is_named_with_what_there_is(path, named):
    value = recipes()
    accesses = [
        lambda: value.field_value(path),
        lambda: value[path],
        lambda: value.without(path),
        lambda: value.with_only(path),
        lambda: value.__tf_type_spec__().field_spec(path),
    ]
    for access in accesses:
        with pytest.raises(FieldError) as caught:
            access()
        assert isinstance(caught.value, KeyError)
        assert caught.value.path == named
        assert caught.value.fix
    assert path not in value
    with pytest.raises(FieldError, match="title, est_time, tags, author, steps"):
        value.field_value("nil")


def test_many_fields_are_not_all_listed():
    value = Dense([1], {f"f{i}": [1] for i in range(1000)})
    with pytest.raises(FieldError, match=r"f19, \.\.\. \(1000 in all\)") as caught:
        value["nil"]
    assert len(str(caught.value)) < 400


def test_what_is_in():
    value = recipes()
    for path in ("title", "author.name", ("author", "name"), xt.Path("steps"), "steps.minutes"):
        assert path in value
    for path in (
        "nil",
        "",
        (),
        xt.Path(),
        "author.nil",
        3,
        None,
        b"title",
        ["title"],
        1.5,
        "not a path",
        ("title", 3),
    ):
        assert path not in value


def test_a_field_that_cannot_be_cut_is_there_all_the_same():
    masked = MaskedTensor(tf.constant([1, 2, 3]), tf.constant([True] * 3))
    value = Ragged.from_row_splits(Dense([3], {"m": masked, "x": [1, 2, 3]}), [0, 2, 3])
    assert "m" in value
    assert value.without("m").to_py() == [[{"x": 1}, {"x": 2}], [{"x": 3}]]
    assert value.with_only("m").values["m"] is masked
    assert value.with_updates(x=value["x"] * 2).values["m"] is masked
    with pytest.raises(UnsupportedTypeError, match=r"values\.field_value") as caught:
        value["m"]
    assert caught.value.path == "m"
    with pytest.raises(UnsupportedTypeError) as caught:
        Dense([2], {"r": value}).field_value("r.m")
    assert caught.value.path == "r.m"


def test_a_collection_is_counted_and_iterated_and_a_record_is_not():
    value = recipes()
    assert len(value) == 2
    assert [r.to_py() for r in value] == value.to_py()
    assert [[s.to_py() for s in row] for row in value["steps"]] == value["steps"].to_py()
    assert len(value["steps"]) == 2
    assert list(Dense([0], {"x": []})) == []
    for one in (value[0], the_recipe()):
        with pytest.raises(TypeError, match="expected records of rank 1 or more"):
            len(one)
        with pytest.raises(TypeError):
            iter(one).__next__()


def test_repr_begins_with_shape_and_schema():
    assert repr(recipes()).splitlines()[0] == (
        "<StructuredTensor shape=(2,) {title: string, est_time: float32, tags: string[*], "
        "author: {name: string, scores: int32[2]}, "
        "steps: [*] {minutes: int32, description: string}}"
    )
    sparse = Dense([2], {"a b": [1, 2], "": tf.sparse.from_dense([[1], [0]])})
    assert repr(sparse).splitlines()[0] == (
        '<StructuredTensor shape=(2,) {"a b": int32, "": SparseTensor of int32[1]}'
    )
    assert str(recipes()) == repr(recipes())


@pytest.mark.parametrize("value", [3, tf.zeros([2]), tf.TensorSpec([2]), {"x": [1]}])
def test_a_tree_is_of_records(value):
    with pytest.raises(DTypeError, match="tree: expected a StructuredTensor") as caught:
        xt.struct.tree(value)
    assert caught.value.received == type(value).__name__


def test_the_tree_shows_a_field_a_line():
    assert xt.struct.tree(recipes()) == xt.struct.tree(recipes().__tf_type_spec__())
    assert repr(xt.struct.tree(recipes())).splitlines() == [
        "records (2,)", "├── title: string", "├── est_time: float32", "├── tags: string[*]",
        "├── author: record", "│   ├── name: string", "│   └── scores: int32[2]",
        "└── steps: list of records", "    ├── minutes: int32", "    └── description: string",
    ]  # fmt: skip


# Changed copies.


def test_with_updates_replaces_and_adds_and_shares_the_rest():
    value = recipes()
    changed = value.with_updates(
        {"author.name": ["Cy", "Di"], ("author", "age"): [30, 40]},
        est_time=[1.0, 2.0],
        new=tf.ragged.constant([[1], []]),
    )
    assert changed.field_names() == (*value.field_names(), "new")
    assert changed["author"].to_py() == [
        {"name": b"Cy", "scores": [1, 2], "age": 30}, {"name": b"Di", "scores": [3, 4], "age": 40},
    ]  # fmt: skip
    for shared in ("title", "tags", "steps", "author.scores"):
        assert changed.field_value(shared) is value.field_value(shared)
    assert value.to_py() == recipes().to_py()
    assert value.with_updates() is not None
    assert value.with_updates().to_py() == value.to_py()


def test_with_updates_reaches_into_lists_of_records():
    value = recipes()
    minutes = value["steps.minutes"]
    changed = value.with_updates({"steps.hours": minutes / 60, "steps.minutes": minutes + 1})
    assert changed["steps.minutes"].to_list() == [[6, 21], [9]]
    assert changed["steps"].row_splits is value["steps"].row_splits
    assert changed["steps"].values["description"] is value["steps"].values["description"]
    assert changed["steps.hours"].dtype == tf.float64
    nested = value["steps"].with_updates(again=value["steps"])
    assert nested["again", "minutes"].to_list() == [[5, 20], [8]]


def test_names_of_parameters_are_names_of_fields_too():
    value = Dense([1], {"x": [1]})
    assert value.with_updates(self=[2], updates=[3], at=[4]).to_py() == [
        {"x": 1, "self": 2, "updates": 3, "at": 4},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("updates", "kind", "path"),
    [
        ({"x": [1, 2, 3]}, StructureError, "x"),
        ({"author.x": [1, 2, 3]}, StructureError, "author.x"),
        ({"author.x": [[1], [2, 3]]}, StructureError, "author.x"),
        ({"steps.x": [1, 2, 3]}, StructureError, "steps.x"),
        ({"steps.x": tf.ragged.constant([[1], [2, 3]])}, StructureError, "steps.x"),
        ({"steps.x": tf.ragged.constant([[1, 2], [3]], row_splits_dtype=tf.int32)},
         StructureError, "steps.x"),
        ({"nil.x": [1, 2]}, FieldError, "nil"),
        ({"author.nil.x": [1, 2]}, FieldError, "author.nil"),
        ({"title.x": [1, 2]}, FieldError, "title.x"),
        ({"author.name.x": [1, 2]}, FieldError, "author.name.x"),
        ({(): [1, 2]}, FieldError, "with_updates"),
    ],
)  # fmt: skip
def test_an_update_that_does_not_fit_names_the_whole_path(updates, kind, path):
    with pytest.raises(kind) as caught:
        recipes().with_updates(updates)
    assert caught.value.path == path
    assert caught.value.fix


def test_without_and_with_only_reach_into_records():
    value = recipes()
    less = value.without("author.name", "steps.minutes", "title")
    assert less.field_names() == ("est_time", "tags", "author", "steps")
    assert less["author"].field_names() == ("scores",)
    assert less["steps"].to_py() == [[{"description": b"mix"}, {"description": b"bake"}],
                                     [{"description": b"eat"}]]  # fmt: skip
    only = value.with_only("steps.minutes", "author.scores", "author.name", "title")
    assert only.field_names() == ("steps", "author", "title")
    assert only["author"].field_names() == ("scores", "name")
    assert value.with_only("author", "author.name")["author"].field_names() == ("name", "scores")
    assert value.without("author.name", "author").field_names() == (
        "title", "est_time", "tags", "steps",
    )  # fmt: skip
    assert value.without("author.name", "author.scores")["author"].to_py() == [{}, {}]
    for changed in (less, only):
        for name in changed["author"].field_names():
            assert changed.field_value(("author", name)) is value.field_value(("author", name))
    assert value.without().to_py() == value.to_py()
    assert value.with_only().shape == [2]


def test_records_do_not_change():
    for value in (recipes(), steps()):
        for name in ("shape", "rank", "title", "_fields", "_values"):
            with pytest.raises(AttributeError):
                setattr(value, name, 1)
            with pytest.raises(AttributeError):
                delattr(value, name)
        with pytest.raises(TypeError):
            value["title"] = [1, 2]
        with pytest.raises(TypeError):
            del value["title"]
    fields = {"x": tf.constant([1])}
    value = Dense([1], fields)
    fields["y"] = tf.constant([2])
    assert value.field_names() == ("x",)
    spec = value.__tf_type_spec__()
    with pytest.raises(TypeError):
        spec.field_specs["y"] = tf.TensorSpec([1])


def test_equality_is_identity_as_of_a_plain_object():
    value = recipes()
    assert value == value
    assert value != recipes()
    assert len({value, recipes()}) == 2


# Copies by Python's own means.


@pytest.mark.parametrize(
    "make",
    [recipes, steps, the_recipe, lambda: Dense([2], {}), lambda: recipes()["steps", 0],
     lambda: Dense([2], {"v": tf.Variable([1.0, 2.0])})],
)  # fmt: skip
def test_copies_hold_the_same(make):
    value = make()
    assert copy.copy(value) is value
    for same in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert same.to_py() == value.to_py()
        assert same.field_names() == value.field_names()
        assert same.__tf_type_spec__() == value.__tf_type_spec__()
        spec = value.__tf_type_spec__()
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert copy.deepcopy(spec) == spec


# Indexing.


leaves = st.sampled_from([pa.int64(), pa.string(), pa.bool_(), pa.int16()])


def _lists(inner):
    return st.one_of(
        st.builds(pa.large_list, inner),
        st.builds(pa.list_, inner, st.integers(0, 3)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda types: pa.struct([(f"f{i}", t) for i, t in enumerate(types)])
        ),
    )


records_types = st.recursive(leaves, _lists, max_leaves=5).map(
    lambda t: pa.struct([("a", t), ("b", pa.int64())])
)
root_types = records_types | st.builds(pa.large_list, records_types) | st.builds(
    pa.list_, records_types, st.just(2)
)  # fmt: skip
positions = st.integers(-4, 4)
slices = st.builds(slice, st.none() | positions, st.none() | positions,
                   st.none() | st.sampled_from([1, 2, -1, -2, 3]))  # fmt: skip


def below(arrow_type):
    """Returns the number of list levels of a type, and what is below them."""
    levels = 0
    while not (pa.types.is_struct(arrow_type) or pa.types.is_primitive(arrow_type)
               or pa.types.is_string(arrow_type)):  # fmt: skip
        levels, arrow_type = levels + 1, arrow_type.value_type
    return levels, arrow_type


def at_depth(value, depth, function):
    return function(value) if depth == 0 else [at_depth(v, depth - 1, function) for v in value]


def field_of(value, name):
    return [field_of(v, name) for v in value] if isinstance(value, list) else value[name]


@MANY
@given(st.data(), root_types, st.integers(0, 4))
def test_indexing_is_indexing_of_the_plain_python(data, root, count):
    records = xt.from_arrow(data.draw(arrays(root, count)))
    expected = records.to_py(text=False)
    levels, here = below(root)
    rank, used, kept = levels + 1, 0, 0  # dimensions, those used up, those of them still there
    keys = []
    for _ in range(data.draw(st.integers(1, 6))):
        kinds = ["..."] * (Ellipsis not in keys)
        kinds += ["slice"] * (used < rank)
        # TensorFlow refuses to pick one element of each of many rows.
        kinds += ["int"] * (used < rank and kept == 0)
        kinds += ["name"] * 3 * pa.types.is_struct(here)
        if not kinds:
            break
        kind = data.draw(st.sampled_from(kinds))
        if kind == "int":
            keys.append(data.draw(positions))
            try:
                expected = expected[keys[-1]]
            except IndexError:
                with pytest.raises(RowError):
                    records[tuple(keys)]
                return
            used += 1
        elif kind == "slice":
            keys.append(data.draw(slices))
            expected = at_depth(expected, kept, lambda v: v[keys[-1]])
            used, kept = used + 1, kept + 1
        else:
            if kind == "...":  # stands before a name, or at the end
                keys.append(Ellipsis)
                kept, used = kept + rank - used, rank
                if not pa.types.is_struct(here):
                    break
            field = data.draw(st.sampled_from(list(here.fields)))
            keys.append(field.name)
            expected = field_of(expected, field.name)
            levels, here = below(field.type)
            rank += levels
    assert plain(records[tuple(keys)]) == expected
    if len(keys) == 1:
        assert plain(records[keys[0]]) == expected


@pytest.mark.parametrize(
    ("key", "same"),
    [
        (np.int64(1), 1),
        (np.int8(-1), -1),
        (tf.constant(1), 1),
        (tf.constant(-1, tf.int64), -1),
        (slice(tf.constant(1), None), slice(1, None)),
        (slice(None, np.int64(1)), slice(None, 1)),
        ((), slice(None)),
        (..., slice(None)),
        ((..., slice(None)), slice(None)),
        ((slice(1, None), ...), slice(1, None)),
    ],
    ids=str,
)
def test_positions_of_every_kind(key, same):
    for value in (Dense([2], {"x": [0, 1]}), recipes(), steps()):
        assert value[key].to_py() == value.to_py()[same]


def test_dots_mean_all_dimensions_at_their_position():
    value = Dense([2], {"x": [[1, 2, 3], [4, 5, 6]]})
    assert value[..., 0, "x"].numpy().tolist() == [1, 2, 3]
    assert value["x", ..., 0].numpy().tolist() == [1, 4]
    assert value[..., "x", 0].numpy().tolist() == [1, 4]
    assert value[0, ..., "x"].numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("key", [True, np.bool_(True), 1.5, tf.constant(True), tf.constant(0.5),
                                 b"title", {"title"}, ([0.5],)], ids=str)  # fmt: skip
def test_what_is_no_index_is_an_error(key):
    with pytest.raises(DTypeError, match="a field name, an int, a slice") as caught:
        recipes()[key]
    assert "a list: of names" in caught.value.fix


@pytest.mark.parametrize(
    ("key", "path"),
    [(2, "index"), (-3, "index"), (("author", 2), "author"), (("steps", 0, 2), "steps"),
     (("steps", 0, 2, "minutes"), "steps.minutes"), (("steps", 1, -2), "steps"),
     (("author", 0, "scores", 2), "author.scores"), (("tags", 1, 0), "tags"),
     ((0, 0), "index"), ((0, 0, "title"), "index"), ((..., ...), "index"),
     (("title", 0, 0), "title"), (("steps", 0, 0, 0), "steps")],
    ids=str,
)  # fmt: skip
def test_a_position_outside_is_an_error_that_names_the_path(key, path):
    with pytest.raises(RowError) as caught:
        recipes()[key]
    assert isinstance(caught.value, IndexError)
    assert caught.value.path == path
    assert caught.value.fix


def test_fields_of_other_types_are_indexed_by_their_boxes():
    masked = MaskedTensor(tf.constant([[1, 2], [3, 4], [5, 6]]), tf.ones([3, 2], tf.bool))
    sparse = tf.sparse.from_dense([[0, 1], [2, 0], [3, 4]])
    value = Dense([3], {"m": masked, "s": sparse, "x": [1, 2, 3]})
    assert value[1]["m"].values.numpy().tolist() == [3, 4]
    assert value[-1, "m"].mask.shape == [2]
    assert value[::-1]["m"].values.numpy().tolist() == [[5, 6], [3, 4], [1, 2]]
    assert tf.sparse.to_dense(value[1]["s"]).numpy().tolist() == [2, 0]
    assert tf.sparse.to_dense(value[1:]["s"]).numpy().tolist() == [[2, 0], [3, 4]]
    rows = Ragged.from_row_splits(value, [0, 1, 3])
    assert rows[1]["m"].values.numpy().tolist() == [[3, 4], [5, 6]]
    assert rows[::-1].values["m"].values.numpy().tolist() == [[3, 4], [5, 6], [1, 2]]
    assert tf.sparse.to_dense(rows[:, :1].values["s"]).numpy().tolist() == [[0, 1], [2, 0]]
    recipes = Dense([2], {"steps": rows})
    assert recipes["steps", 1, "m"].values.numpy().tolist() == [[3, 4], [5, 6]]
    assert recipes["steps", -1, 0, "m"].values.numpy().tolist() == [3, 4]
    assert recipes[1, "steps", "m"].values.numpy().tolist() == [[3, 4], [5, 6]]
    for key in (("steps", "m"), ("steps", slice(1, None), "m")):
        with pytest.raises(UnsupportedTypeError, match="m: expected a field of tensors"):
            recipes[key]
    matrix = Dense([3, 2], {"m": masked})
    assert matrix[1, 0, "m"].values.numpy() == 3
    assert matrix[1:, 0]["m"].values.numpy().tolist() == [3, 5]
    assert [[e["m"].values.numpy().item() for e in row] for row in matrix.to_py()] == [
        [1, 2], [3, 4], [5, 6],
    ]  # fmt: skip


def test_fields_of_other_types_keep_the_shape_of_their_records():
    class Opaque:
        def __init__(self, part):
            self.part = part

        def __tf_type_spec__(self):
            return OpaqueSpec()

    class OpaqueSpec(xt.TypeSpec):
        value_type = Opaque
        component_specs = (tf.TensorSpec(None),)

        def to_components(self, value):
            return (value.part,)

        def from_components(self, components):
            return Opaque(*components)

        def serialize(self):
            return ()

    value = Dense([2], {"o": Opaque(tf.zeros([]))})
    assert value.shape == [2]
    assert tf.function(lambda v: v)(value).shape == [2]


@pytest.mark.parametrize("shape", ["round", (9,)])
def test_the_attribute_shape_of_a_field_may_be_anything(shape):
    @xt.extension_type
    class Solid:
        x: tf.Tensor
        shape: object

    value = Dense([2], {"solid": Solid([1.0, 2.0], shape)})
    assert value.shape == [2]
    assert [row["solid"].x.numpy() for row in value] == [1, 2]
    assert tf.function(lambda v: v[1])(value)["solid"].shape == shape
    batch = next(iter(tf.data.Dataset.from_tensor_slices(value).batch(2)))
    assert batch["solid"].x.numpy().tolist() == [1, 2]


# Variables.


def test_a_variable_field_is_assigned_inside_a_tf_function():
    variable = tf.Variable([1.0, 2.0])
    value = Dense([2], {"v": variable, "x": [1, 2]})
    assert type(value.__tf_type_spec__().field_specs["v"]).__name__ == "VariableSpec"

    @tf.function
    def step(records):
        records["v"].assign_add([1.0, 1.0])
        return tf.convert_to_tensor(records["v"]) * 2

    assert step(value).numpy().tolist() == [4.0, 6.0]
    assert variable.numpy().tolist() == [2.0, 3.0]
    assert value.to_py() == [{"v": 2.0, "x": 1}, {"v": 3.0, "x": 2}]
    assert value[1].to_py() == {"v": 3.0, "x": 2}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(value["v"] ** 2)
    assert tape.gradient(loss, variable).numpy().tolist() == [4.0, 6.0]


def test_a_module_finds_the_variables_in_a_field():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            nested = Dense([2], {"w": tf.Variable([1.0, 2.0])})
            self.table = Dense([2], {"n": nested, "frozen": tf.Variable([0, 0], trainable=False)})

    model = Model()
    trainable, frozen = model.table["n.w"], model.table["frozen"]
    assert {id(v) for v in model.variables} == {id(trainable), id(frozen)}
    assert [id(v) for v in model.trainable_variables] == [id(trainable)]


def test_a_checkpoint_of_the_variable_in_a_field_restores_the_field(tmp_path):
    value = Dense([2], {"v": tf.Variable([1.0, 2.0])})
    saved = tf.train.Checkpoint(v=value["v"]).write(str(tmp_path / "c"))
    value["v"].assign([7.0, 7.0])
    tf.train.Checkpoint(v=value["v"]).read(saved).assert_consumed()
    assert value.to_py() == [{"v": 1.0}, {"v": 2.0}]


def test_values_need_no_graph_and_a_graph_has_none():
    @tf.function
    def inside(records):
        with pytest.raises(DTypeError, match=r"outside of tf\.function"):
            records.to_py()
        with pytest.raises(DTypeError, match="a statically known number of records"):
            len(records)
        return records

    spec = xt.DenseStructuredTensorSpec([None], {"x": tf.TensorSpec([None], tf.int32)})
    inside.get_concrete_function(spec)


def test_an_error_inside_a_tf_function_keeps_its_class():
    @tf.function
    def inside(records):
        return records["nil"]

    with pytest.raises(FieldError) as caught:
        inside(recipes())
    assert caught.value.path == "nil"
    assert isinstance(caught.value, (KeyError, ExtensorError))
