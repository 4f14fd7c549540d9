"""Names of dimensions: given, shown, moved with the dimensions, and never part of equality."""

import copy
import pickle

import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, StructureError

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor
DenseSpec, RaggedSpec = xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec


def one():
    return Dense([3], {"x": [1, 2, 3]}, dims=("recipe",))


def two():
    return Dense([2, 3], {"x": tf.reshape(tf.range(6), [2, 3])}, dims=("recipe", "step"))


def rows():
    flat = Dense([3], {"minutes": [5, 20, 8]})
    return Ragged.from_row_splits(flat, [0, 2, 3]).with_dims(("recipe", "step"))


def deep():
    return rows().partition_outer_dimension([0, 1, 2]).with_dims(("book", "recipe", "step"))


def in_field():
    """Records whose field holds records with a name for the dimension of the list."""
    return Dense([2], {"id": [1, 2], "steps": rows().with_dims((None, "step"))}, dims="recipe")


VALUES = {"one": one, "two": two, "rows": rows, "deep": deep, "in a field": in_field}


# Names are given.


def test_without_names_each_dimension_has_none():
    assert Dense([2, 1], {"x": [[1], [2]]}).dims == (None, None)
    assert Dense([], {"x": 1}).dims == ()
    assert two().with_dims(None).dims == (None, None)
    assert rows().with_dims((None, None)).dims == (None, None)
    assert DenseSpec([None], {"x": tf.TensorSpec([None])}).dims == (None,)


def test_one_name_may_be_a_string_and_a_list_is_taken():
    assert Dense([1], {"x": [1]}, dims="recipe").dims == ("recipe",)
    assert one().with_dims(["dish"]).dims == ("dish",)


def test_with_dims_shares_the_tensors():
    value = two()
    named = value.with_dims((None, "way"))
    assert named.dims == (None, "way")
    assert named["x"] is value["x"]
    assert value.dims == ("recipe", "step")


@pytest.mark.parametrize(
    ("dims", "error", "words"),
    [
        (("a",), StructureError, "expected 2 names, one for each dimension"),
        (("a", "b", "c"), StructureError, "expected 2 names"),
        ("ab", StructureError, r"got 1: \('ab',\)"),
        (("a", "a"), StructureError, "'a' twice"),
        (("a", 1), DTypeError, "got int"),
        (("a", ""), DTypeError, "expected a string or None for each dimension, got ''"),
        (3, DTypeError, "got int"),
        ({"a", "b"}, DTypeError, "got set"),
    ],
)
def test_wrong_names_are_errors(dims, error, words):
    for call in (
        lambda: two().with_dims(dims),
        lambda: rows().with_dims(dims),
        lambda: Dense([2, 1], {"x": [[1], [2]]}, dims=dims),
        lambda: DenseSpec([2, 1], {"x": tf.TensorSpec([2, 1])}, dims=dims),
        lambda: RaggedSpec([2, None], DenseSpec([3], {"x": tf.TensorSpec([3])}), dims=dims),
    ):
        with pytest.raises(error, match=words) as caught:
            call()
        assert isinstance(caught.value, (ValueError, TypeError))
        assert caught.value.path.endswith(": dims")


# Names are shown.


def test_the_repr_the_tree_and_the_html_show_the_names():
    text = repr(in_field())
    assert text.startswith(
        "<StructuredTensor shape=(recipe: 2) {id: int32, steps: [step] {minutes: int32}}"
    )
    assert repr(rows()).startswith("<StructuredTensor shape=(recipe: 2, step: None) {")
    assert repr(two().with_dims((None, "step"))).startswith("<StructuredTensor shape=(2, step: 3)")
    tree = xt.struct.tree(in_field())
    assert str(tree).splitlines() == [
        *("records (recipe: 2)", "├── id: int32", "└── steps: list of records (step)"),
        "    └── minutes: int32",
    ]
    for page in (in_field()._repr_html_(), tree._repr_html_()):
        assert "(recipe: 2)" in page
        assert "list of records (step)" in page


def test_shown_names_keep_their_line_and_are_escaped():
    value = Dense([1], {"x": [1]}, dims=("<b>\n\u202e",))
    assert "\n" not in repr(value)
    assert "\u202e" not in repr(value)
    assert "<b>" not in value._repr_html_()


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_the_repr_of_a_spec_makes_it_again_with_its_names(make):
    spec = xt.spec_of(make())
    again = eval(repr(spec))
    assert again == spec
    assert again.dims == spec.dims == make().dims
    assert repr(again) == repr(spec)
    assert repr(spec).count("'recipe'") == 1


# Names move with the dimensions.


SAME = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda r: pickle.loads(pickle.dumps(r)),
    "components": lambda r: xt.spec_of(r).from_components(xt.spec_of(r).to_components(r)),
    "map_structure": lambda r: tf.nest.map_structure(lambda x: x, r),
    "tf.function": lambda r: tf.function(lambda x: x)(r),
    "tf.function of a part": lambda r: tf.function(lambda x: x[:1])(r),
    "a signature": lambda r: tf.function(lambda x: x, input_signature=[xt.spec_of(r)])(r),
    "tf.cond": lambda r: tf.function(lambda x: tf.cond(tf.size(x) > 0, lambda: x, lambda: x))(r),
    "with_updates": lambda r: r.with_updates(new=tf.zeros_like(r[r.field_names()[0]])),
    "with_only": lambda r: r.with_only(*r.field_names()),
    "without": lambda r: r.with_updates(new=r[r.field_names()[0]]).without("new"),
    "without fields": lambda r: r.with_only() if r.rank == 1 else r,
    "range": lambda r: r[1:],
    "step": lambda r: r[::-1],
    "symbolic range": lambda r: r[tf.constant(1) :],
    "ints": lambda r: r[[0, -1]],
    "mask": lambda r: r[tf.sequence_mask(1, r.shape[0])],
    "ellipsis": lambda r: r[..., :],
    "tf.gather": lambda r: tf.gather(r, [0]),
    "tf.boolean_mask": lambda r: tf.boolean_mask(r, tf.sequence_mask(1, r.shape[0])),
    "tf.concat": lambda r: tf.concat([r, r], 0),
    "tf.concat, the first without names": lambda r: tf.concat([r.with_dims(None), r], 0),
    "tf.concat along the last axis": lambda r: tf.concat([r, r], -1),
    "tf.reverse": lambda r: tf.reverse(r, [0]),
    "tf.tile": lambda r: tf.tile(r, [2] + [1] * (r.rank - 1)),
    "tf.repeat": lambda r: tf.repeat(r, 2, axis=0),
    "tf.split": lambda r: tf.split(r, [1, r.shape[0] - 1])[0],
    "tf.where": lambda r: tf.where(tf.sequence_mask(1, r.shape[0]), r, r) if r.rank == 1 else r,
    "tf.random.shuffle": tf.random.shuffle,
    "tf.zeros_like": tf.zeros_like,
    "tf.identity": tf.identity,
    "tf.squeeze of a new dimension": lambda r: tf.squeeze(tf.expand_dims(r, 0), 0),
    "tf.unstack of a stack": lambda r: tf.unstack(tf.stack([r, r]), 2)[1],
    "spec.cast": lambda r: xt.spec_of(r).cast(r.to_py()),
    "row splits": lambda r: r.with_row_splits_dtype(tf.int32),
    "map_fn": lambda r: tf.map_fn(lambda x: x, r) if r.rank == 1 else r,
}


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("way", SAME)
def test_the_names_are_kept_by(way, make):
    value = make()
    # A loop and a stack make a first dimension of their own, which has no name.
    first = None if way == "map_fn" and value.rank == 1 else value.dims[0]
    result = SAME[way](value)
    assert result.dims == (first, *value.dims[1:])
    assert xt.spec_of(result).dims == result.dims
    if "steps" in result and "steps" in value:
        assert result["steps"].dims == (first, "step")


MOVED = {
    "an int removes its dimension": (two, lambda r: r[0], ("step",)),
    "an inner int": (two, lambda r: r[:, 0], ("recipe",)),
    "a scalar tensor": (two, lambda r: r[tf.constant(1)], ("step",)),
    "an int of ragged records": (rows, lambda r: r[0], ("step",)),
    "an inner int of ragged records": (rows, lambda r: r[:, 0], ("recipe",)),
    "a row of a row": (deep, lambda r: r[1, 0], ("step",)),
    "None": (two, lambda r: r[None], (None, "recipe", "step")),
    "an inner None": (two, lambda r: r[:, None], ("recipe", None, "step")),
    "None in ragged records": (rows, lambda r: r[:, None], ("recipe", None, "step")),
    "ints along a later axis": (two, lambda r: r[:, [0, 2]], ("recipe", "step")),
    "two arrays": (two, lambda r: r[[0, 1], [2, 0]], (None,)),
    "ints in two dimensions": (two, lambda r: r[[[0, 1]]], (None, None, "step")),
    "a mask of two dimensions": (two, lambda r: r[r["x"] > 2], (None,)),
    "an int beside an array": (two, lambda r: r[0, [1, 2]], ("step",)),
    "a ragged mask": (rows, lambda r: r[r["minutes"] > 5], ("recipe", "step")),
    "ragged ints": (rows, lambda r: r[tf.ragged.constant([[1, 0], [0]])], ("recipe", "step")),
    "gather by ragged numbers": (
        one, lambda r: tf.gather(r, tf.ragged.constant([[1], [0, 2]])), (None, None)),
    "gather by a matrix": (rows, lambda r: tf.gather(r, [[1], [0]]), (None, None, "step")),
    "gather along axis 1": (two, lambda r: tf.gather(r, [2, 0], axis=1), ("recipe", "step")),
    "gather in batches": (
        two, lambda r: tf.gather(r, [[2], [0]], batch_dims=1), ("recipe", "step")),
    "gather_nd": (two, lambda r: tf.gather_nd(r, [[1], [0]]), (None, "step")),
    "expand_dims": (two, lambda r: tf.expand_dims(r, 1), ("recipe", None, "step")),
    "expand_dims of rows": (rows, lambda r: tf.expand_dims(r, 0), (None, "recipe", "step")),
    "expand_dims within rows": (rows, lambda r: tf.expand_dims(r, 2), ("recipe", "step", None)),
    "transpose": (two, tf.transpose, ("step", "recipe")),
    "transpose by hand": (two, lambda r: tf.transpose(r, [1, 0]), ("step", "recipe")),
    "squeeze": (two, lambda r: tf.squeeze(r[:1]), ("step",)),
    "unstack": (two, lambda r: tf.unstack(r, axis=1)[0], ("recipe",)),
    "stack": (two, lambda r: tf.stack([r, r], 1), ("recipe", None, "step")),
    "stack of rows": (rows, lambda r: tf.stack([r, r]), (None, "recipe", "step")),
    "reshape": (two, lambda r: tf.reshape(r, [3, 2]), (None, None)),
    "broadcast_to": (one, lambda r: tf.broadcast_to(r, [2, 3]), (None, "recipe")),
    "roll": (two, lambda r: tf.roll(r, 1, 0), ("recipe", "step")),
    "repeat of all": (two, lambda r: tf.repeat(r, 2), (None,)),
    "merge_dims": (two, lambda r: r.merge_dims(0, 1), (None,)),
    "merge_dims of rows": (rows, lambda r: r.merge_dims(0, 1), (None,)),
    "merge_dims of the outer": (deep, lambda r: r.merge_dims(0, 1), (None, "step")),
    "merge_dims of the inner": (deep, lambda r: r.merge_dims(1, 2), ("book", None)),
    "partition_outer_dimension": (
        two, lambda r: r.partition_outer_dimension([0, 1, 2]), (None, None, "step")),
    "partition_outer_dimension of rows": (
        rows, lambda r: r.partition_outer_dimension([0, 2]), (None, None, "step")),
    "row splits around named records": (
        one, lambda r: Ragged.from_row_splits(r, [0, 1, 3]), (None, "recipe")),
    "the values of rows": (rows, lambda r: r.values, ("step",)),
    "to_dense": (rows, lambda r: r.to_dense(), ("recipe", "step")),
    "a dense spec": (
        lambda: rows()[:, :1],
        lambda r: DenseSpec([2, 1], {"minutes": tf.TensorSpec([2, 1], tf.int32)}).cast(r),
        ("recipe", "step")),
    "a ragged spec": (
        two,
        lambda r: RaggedSpec([None, None], DenseSpec([None], {"x": tf.TensorSpec([None], tf.int32)})
                             ).cast(r),
        ("recipe", "step")),
    "a batch": (one, lambda r: first(tf.data.Dataset.from_tensors(r).batch(1)), (None, "recipe")),
    "a batch of elements": (
        two, lambda r: first(tf.data.Dataset.from_tensor_slices(r).batch(2)), (None, "step")),
    "an element": (rows, lambda r: first(tf.data.Dataset.from_tensor_slices(r)), ("step",)),
    "a batch of rows": (
        rows, lambda r: first(tf.data.Dataset.from_tensor_slices(r).batch(2)), (None, "step")),
    "a ragged batch": (
        two, lambda r: first(tf.data.Dataset.from_tensor_slices(r).ragged_batch(2)),
        (None, "step")),
    "a row of a field": (in_field, lambda r: r["steps", 0], ("step",)),
    "a field of a row": (in_field, lambda r: r[0]["steps"], ("step",)),
    "a field of rows": (
        lambda: Ragged.from_row_splits(in_field(), [0, 1, 2]).with_dims(("book", "recipe")),
        lambda r: r["steps"], ("book", "recipe", "step")),
    "path operations": (
        in_field, lambda r: xt.struct.broadcast(r, "id", "steps.id")["steps"], ("recipe", "step")),
    "filter_by": (
        in_field, lambda r: xt.struct.filter_by(r, "steps", r["steps.minutes"] > 5)["steps"],
        ("recipe", "step")),
    "sort": (one, lambda r: xt.struct.sort(r, by="x"), ("recipe",)),
}  # fmt: skip


def first(dataset):
    value = next(iter(dataset))
    assert dataset.element_spec.dims == value.dims
    return value


@pytest.mark.whole("many cases")
@pytest.mark.parametrize("case", MOVED)
def test_the_names_move_with_the_dimensions(case):
    make, way, expected = MOVED[case]
    eager = way(make())
    assert eager.dims == expected
    assert len(eager.dims) == eager.rank
    assert xt.spec_of(eager).dims == expected
    assert tf.function(way)(make()).dims == expected


def test_a_name_of_the_records_is_not_used_twice_in_a_field():
    value = Dense([2], {"steps": rows().with_dims((None, "step"))}, dims="step")
    assert value["steps"].dims == ("step", None)


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue")
def test_a_saved_model_keeps_the_names(tmp_path):
    module = tf.Module()
    for name, make in VALUES.items():
        spec = xt.spec_of(make())
        function = tf.function(lambda r: r, input_signature=[spec])
        setattr(module, name.replace(" ", "_"), function)
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for name, make in VALUES.items():
        value = getattr(loaded, name.replace(" ", "_"))(make().with_dims(None))
        assert value.dims == make().dims


# Names are not part of equality.


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_specs_are_equal_and_compatible_whatever_the_names(make):
    value = make()
    named, plain = xt.spec_of(value), xt.spec_of(value.with_dims(None))
    other = xt.spec_of(value.with_dims([f"d{i}" for i in range(value.rank)]))
    assert named == plain == other
    assert (named != other) is False
    assert hash(named) == hash(plain) == hash(other)
    for a, b in ((named, plain), (plain, named), (named, other)):
        assert a.is_compatible_with(b)
        assert a.is_subtype_of(b)
        assert a.most_specific_compatible_type(b) == a
    open_ = xt.authoring.stacked_spec(xt.authoring.unstacked_spec(named, "r"), None, "r")
    assert open_.most_specific_compatible_type(plain).dims[1:] == value.dims[1:]
    assert plain.most_specific_compatible_type(open_).dims[1:] == value.dims[1:]
    assert plain.castable_type(open_).dims[1:] == value.dims[1:]


def test_no_function_is_traced_for_a_name():
    traces = []

    @tf.function
    def identity(records):
        traces.append(1)
        return records

    for make in (one, rows):
        traces.clear()
        identity(make())
        identity(make().with_dims(None))
        identity(make().with_dims(["other"] + [None] * (make().rank - 1)))
        assert len(traces) == 1


def test_a_spec_without_names_is_serialized_as_before():
    plain = [xt.spec_of(make().with_dims(None)) for make in (one, rows)]
    assert [len(spec.serialize()) for spec in plain] == [2, 3]
    for make in VALUES.values():
        spec = xt.spec_of(make())
        again = type(spec).deserialize(spec.serialize())
        assert again.dims == spec.dims


# The Arrow types of the fields move with the records too.


@pytest.mark.parametrize(
    "way",
    [
        lambda r: tf.reverse(r, [0]),
        lambda r: tf.concat([r, r], 0),
        lambda r: tf.stack([r, r]),
        lambda r: tf.roll(r, 1, 0),
        lambda r: tf.where([True, False], r, r),
        lambda r: tf.tile(r, [2]),
        lambda r: tf.split(r, 2)[0],
        lambda r: tf.unstack(r)[0],
        lambda r: tf.squeeze(r[:1]),
        lambda r: tf.transpose(tf.stack([r, r])),
        lambda r: tf.reshape(r, [1, 2]),
    ],
)
def test_array_operations_keep_arrow_types(way):
    table = pa.table({
        "when": pa.array([0, 1], pa.timestamp("s")),
        "inner": pa.array([{"day": 1}] * 2, pa.struct({"day": pa.date32()})),
    })  # fmt: skip
    result = way(xt.from_arrow(table))
    assert result.arrow_types["when"] == pa.timestamp("s")
    assert result["inner"].arrow_types == {"day": pa.date32()}


# Names in Arrow data, in files, and in values outside of TensorFlow.


def lists_in_lists():
    inner = rows().with_dims((None, "step"))
    books = inner.partition_outer_dimension([0, 1, 2]).with_dims((None, "book", "step"))
    pages = Dense([2, 1], {"y": [[1], [2]]}, dims=(None, "page"))
    return Dense([2], {"id": [1, 2], "books": books, "fixed": pages}, dims="shelf")


@pytest.mark.parametrize("make", [one, in_field, lists_in_lists])
def test_arrow_and_parquet_keep_names(make, tmp_path):
    records = make()
    written = xt.to_arrow(records)
    back = xt.from_arrow(written)
    xt.write_parquet(records, tmp_path / "x.parquet")
    stored = xt.read_parquet(tmp_path / "x.parquet")
    for found in (back, stored, xt.from_arrow(pa.table(written)), xt.from_arrow(xt.to_arrow(back))):
        assert found.to_py() == records.to_py()
        for path in ((), ("steps",), ("books",), ("fixed",)):
            if not path or path in records:
                value = found[path] if path else found
                assert value.dims == (records[path] if path else records).dims, path
        assert xt.spec_of(found).dims == records.dims
    spec = xt.spec_from_schema(written.schema)
    assert repr(spec.dims) == repr(records.dims)
    assert spec.is_compatible_with(back)
    read = next(iter(xt.data.parquet(str(tmp_path / "x.parquet"), 2)))
    assert read.dims == records.dims
    schema = xt.schema_from_spec(xt.spec_of(records))
    assert schema.equals(written.schema, check_metadata=True)


def test_other_names_replace_those_that_came_from_arrow():
    records = xt.from_arrow(xt.to_arrow(in_field()))
    renamed = records.with_updates(steps=records["steps"].with_dims((None, "move")))
    back = xt.from_arrow(xt.to_arrow(renamed.with_dims("dish")))
    assert back["steps"].dims == ("dish", "move")
    removed = records.with_updates(steps=records["steps"].with_dims(None)).with_dims(None)
    bare = xt.to_arrow(removed)
    assert bare.schema.metadata is None
    assert bare.schema.field("steps").type.value_field.metadata is None
    assert xt.from_arrow(bare)["steps"].dims == (None, None)


def test_records_of_higher_rank_keep_the_names_of_lists():
    array = xt.to_arrow(deep())
    assert xt.from_arrow(array).dims == (None, "recipe", "step")
    assert xt.from_arrow(xt.to_arrow(two())).dims == (None, "step")


def test_names_in_arrow_data_that_do_not_fit_are_left_out():
    field = pa.field("item", pa.struct([("x", pa.int8())]), metadata={b"extensor:dim": b"\xff"})
    table = pa.table({"s": pa.array([[{"x": 1}]], pa.list_(field))})
    assert xt.from_arrow(table)["s"].dims == (None, None)
    field = field.with_metadata({b"extensor:dim": b"a", b"other": b"b"})
    same = table.cast(pa.schema([("s", pa.list_(field))], {b"extensor:dim": b"a"}))
    records = xt.from_arrow(same)
    assert records["s"].dims == ("a", None)
    assert xt.to_arrow(records).schema.field("s").type.value_field.metadata[b"other"] == b"b"


def test_numpy_values_keep_names():
    for make in VALUES.values():
        records = make()
        value = xt.StructuredTensorValue.from_tensor(records)
        assert value.dims == records.dims
        assert value.to_tensor().dims == records.dims
        assert pickle.loads(pickle.dumps(value)).dims == records.dims
        assert value[:1].dims == records[:1].dims
    field = xt.StructuredTensorValue.from_tensor(in_field())["steps"]
    assert field.dims == ("recipe", "step")
    value = xt.StructuredTensorValue([2], {"x": [1, 2]}, dims="recipe")
    assert eval(repr(value).replace("array([1, 2])", "[1, 2]").replace("Str", "xt.Str")) == value
    with pytest.raises(StructureError, match="expected 1 names"):
        xt.StructuredTensorValue([2], {"x": [1, 2]}, dims=("a", "b"))
