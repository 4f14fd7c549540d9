"""StructuredTensors inside graphs: they cost no op, and every graph API takes them."""

from collections import Counter

import pytest
import tensorflow as tf
from hypothesis import given

import extensor as xt
from extensor.errors import RowError, StructureError
from tests.samples.arrow_strategies import schemas_and_records

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor
DenseSpec, RaggedSpec = xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec


def recipes():
    steps = Dense([3], {"minutes": [5.0, 20.0, 8.0], "tool": ["bowl", "oven", ""],
                        "parts": tf.ragged.constant([[1], [], [2, 3]])})  # fmt: skip
    return Dense([2], {
        "title": ["Snickerdoodles", "Flapjacks"],
        "est_time": [55.0, 30.0],
        "tags": tf.ragged.constant([["sweet"], []], dtype=tf.string),
        "author": Dense([2], {"name": ["Ann", "Bob"], "scores": [[1, 2], [3, 4]]}),
        "steps": Ragged.from_row_splits(steps, [0, 2, 3]),
    })  # fmt: skip


# For any number of records.
SPEC = recipes().__tf_type_spec__().unstacked().stacked(None)


def ops_of(function, *specs):
    """Returns the types of the ops that a function builds, counted."""

    @tf.function
    def trace(*args):
        function(*args)

    graph = trace.get_concrete_function(*specs).graph
    counts = Counter(op.type for op in graph.get_operations())
    del counts["Placeholder"]
    return counts


# No op.


def changes(records):
    """Does everything that takes records apart and builds new ones without computing."""
    steps = records["steps"]
    parts = [
        records["title"], records["author"]["name"], records["author.scores"],
        records["author", "scores"], records["tags"], steps["minutes"], records["steps.minutes"],
        records["steps", :, "tool"], steps["parts"], records["steps.parts"], steps.values["parts"],
        records[:, "title"], records[..., "author", ...], records.field_value("steps.parts"),
    ]  # fmt: skip
    copies = [
        records.without("title"), records.without("author.name", "steps.minutes"),
        records.with_only("steps.minutes", "title"),
        records.with_only("steps").without("steps.tool"),
        records.with_updates(x=records["title"]), records.with_updates(steps=steps),
        records.with_updates({"author.x": records["est_time"], "steps.x": steps["parts"]}),
        records.with_updates({"steps.again": steps}), steps.with_updates(x=steps["minutes"]),
    ]  # fmt: skip
    for copied in copies:
        assert copied.shape.rank == 1 or copied.rank == 2
        assert copied.field_names()
        assert copied.__tf_type_spec__()
        assert repr(copied)
        assert "title" in copied or "nil" not in copied
    assert copies[6]["steps.x"].shape.rank == 3
    return parts, copies


@pytest.mark.parametrize("spec", [SPEC, recipes().__tf_type_spec__()], ids=["open", "fixed"])
def test_fields_and_changed_copies_add_no_op(spec):
    @tf.function
    def trace(records):
        graph = tf.compat.v1.get_default_graph()
        before = len(graph.get_operations())
        made = changes(records)
        assert len(graph.get_operations()) == before
        tf.nest.flatten(made, expand_composites=True)
        Dense(records.shape, {"x": records["title"], "y": records["steps"]})
        Ragged.from_row_splits(records["steps"].values, records["steps"].row_splits)
        assert len(graph.get_operations()) == before
        return 0

    trace.get_concrete_function(spec)


@given(schemas_and_records(max_rows=2))
def test_taking_any_field_of_any_records_adds_no_op(schema_and_data):
    _, data = schema_and_data
    spec = xt.from_arrow(data).__tf_type_spec__()

    def walk(records):
        for name in records.field_names():
            value = records[(name,)]
            # Taking away the only field adds the tensor that counts the records.
            if len(records.field_names()) > 1:
                records.without((name,))
            records.with_only((name,)).with_updates({("new",): value})
            if isinstance(value, xt.StructuredTensor):
                walk(value)

    @tf.function
    def trace(records):
        before = len(tf.compat.v1.get_default_graph().get_operations())
        walk(records)
        assert len(tf.compat.v1.get_default_graph().get_operations()) == before
        return 0

    trace.get_concrete_function(spec)


# The same ops as without records.


def test_dense_arithmetic_is_the_arithmetic_of_plain_tensors():
    vector, matrix = tf.TensorSpec([None]), tf.TensorSpec([None, 3])

    def with_records(r):
        total = r["a"] * 2.0 + tf.reduce_sum(r["n.b"], axis=1)
        return r.with_updates({"c": total, "n.b": tf.nn.relu(r["n.b"])})

    def with_dicts(r):
        total = r["a"] * 2.0 + tf.reduce_sum(r["n"]["b"], axis=1)
        return {"a": r["a"], "n": {"b": tf.nn.relu(r["n"]["b"])}, "c": total}

    spec = DenseSpec([None], {"a": vector, "n": DenseSpec([None], {"b": matrix})})
    assert ops_of(with_records, spec) == ops_of(with_dicts, {"a": vector, "n": {"b": matrix}})


@pytest.mark.whole("traces many functions")
def test_arithmetic_in_lists_of_records_is_the_arithmetic_of_ragged_tensors():
    ragged = tf.RaggedTensorSpec([None, None], tf.float32)

    def with_records(r):
        minutes, weight = r["steps.minutes"], r["steps.weight"]
        r = r.with_updates({"steps.minutes": minutes * weight + 1.0})
        return tf.reduce_sum(r["steps.minutes"], axis=1), r

    def with_ragged(minutes, weight):
        weight = tf.RaggedTensor.from_row_splits(weight, minutes.row_splits, validate=False)
        minutes = minutes * weight + 1.0
        return tf.reduce_sum(minutes, axis=1), minutes, weight

    step = DenseSpec([None], dict.fromkeys(("minutes", "weight"), tf.TensorSpec([None])))
    spec = DenseSpec([None], {"steps": RaggedSpec([None, None], step)})
    assert ops_of(with_records, spec) == ops_of(with_ragged, ragged, tf.TensorSpec([None]))


def test_arithmetic_in_lists_of_lists_of_records_is_the_arithmetic_of_ragged_tensors():
    def with_records(r):
        x = r["a.b.x"]
        return r.with_updates({"a.b.x": x / tf.reduce_sum(r["a.b.y"])})

    def with_ragged(x, y):
        inner = tf.RaggedTensor.from_row_splits(y, x.values.row_splits, validate=False)
        y = tf.RaggedTensor.from_row_splits(inner, x.row_splits, validate=False)
        return x / tf.reduce_sum(y), y

    leaf = DenseSpec([None], dict.fromkeys("xy", tf.TensorSpec([None])))
    middle = DenseSpec([None], {"b": RaggedSpec([None, None], leaf)})
    spec = DenseSpec([None], {"a": RaggedSpec([None, None], middle)})
    ragged = tf.RaggedTensorSpec([None, None, None], tf.float32)
    assert ops_of(with_records, spec) == ops_of(with_ragged, ragged, tf.TensorSpec([None]))


def test_indexing_takes_no_more_ops_than_indexing_of_ragged_tensors():
    ragged = tf.RaggedTensorSpec([None, None], tf.float32)
    records = DenseSpec([None], {"x": ragged})
    for key in (0, -1, slice(1, None), (slice(None), slice(0, 2)), (1, 0)):
        key = key if isinstance(key, tuple) else (key,)
        ours = ops_of(lambda r: r[("x", *key)], records)  # noqa: B023 - traced here and now
        theirs = ops_of(lambda r: r[key], ragged)  # noqa: B023
        assert sum(ours.values()) <= sum(theirs.values()), key


# Row splits in a graph.


@pytest.mark.parametrize("splits", [[1, 3], [0, 2], [0, 4], [0, 2, 1, 3], [0, -1, 3], []], ids=str)
@pytest.mark.parametrize("dtype", [tf.int64, tf.int32], ids=["int64", "int32"])
def test_bad_row_splits_in_a_graph_are_found_at_run_time(splits, dtype):
    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None], dtype)])
    def cut(x, splits):
        return Ragged.from_row_splits(Dense([None], {"x": x}), splits)

    x = tf.constant([1.0, 2.0, 3.0])
    assert cut(x, tf.constant([0, 1, 3], dtype)).to_py() == [[{"x": 1.0}], [{"x": 2.0}, {"x": 3.0}]]
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        cut(x, tf.constant(splits, dtype))


def test_row_splits_in_a_graph_are_not_checked_without_validate():
    specs = DenseSpec([None], {"x": tf.TensorSpec([None])}), tf.TensorSpec([None], tf.int64)
    unchecked = ops_of(lambda v, s: Ragged.from_row_splits(v, s, validate=False), *specs)
    assert sum(unchecked.values()) == 0
    checked = ops_of(lambda v, s: Ragged.from_row_splits(v, s), *specs)
    assert sum(checked.values()) > 0


def test_row_splits_that_are_known_while_a_graph_is_built_are_checked_then():
    @tf.function
    def cut(splits):
        return Ragged.from_row_splits(Dense([3], {"x": [1, 2, 3]}), splits)

    assert cut([0, 1, 3]).to_py() == [[{"x": 1}], [{"x": 2}, {"x": 3}]]

    @tf.function
    def cut_badly():
        return Ragged.from_row_splits(Dense([3], {"x": [1, 2, 3]}), [0, 4, 3])

    with pytest.raises(StructureError, match="decrease after row 1"):
        cut_badly()


def test_row_splits_of_unknown_rank_are_a_vector():
    @tf.function(input_signature=[tf.TensorSpec(None, tf.int64)])
    def cut(splits):
        return Ragged.from_row_splits(Dense([3], {"x": [1, 2, 3]}), splits)

    assert cut(tf.constant([0, 3], tf.int64)).shape == [1, None]


def test_validation_counts_values_of_every_kind():
    @tf.function(input_signature=[tf.TensorSpec([None, 1]), tf.RaggedTensorSpec([None, 2, None]),
                                  tf.TensorSpec([None], tf.int64)])  # fmt: skip
    def cut(dense, ragged, splits):
        return [
            Ragged.from_row_splits(Dense([None], {"x": f}), splits, validate=True).rank
            for f in (dense, ragged, Dense([None], {"y": ragged}),
                      tf.sparse.from_dense(dense), Dense([None, 2], {"y": ragged}))
        ]  # fmt: skip

    three = tf.zeros([3, 1]), tf.ragged.constant([[[1.0], []]] * 3, ragged_rank=2)
    cut(*three, tf.constant([0, 1, 3], tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of values"):
        cut(*three, tf.constant([0, 1, 4], tf.int64))


def test_the_number_of_records_without_fields_is_kept_in_a_graph():
    @tf.function(
        input_signature=[tf.TensorSpec([None, None]), tf.RaggedTensorSpec([None, None, None])]
    )
    def count(dense, ragged):
        return [
            Dense([None, None], {"x": dense}).without("x"),
            Dense([None, None], {"x": ragged}).without("x"),
            Dense([None], {"x": ragged}).without("x"),
            Dense([None, None], {"x": Dense([None, None], {"y": ragged})}).without("x"),
        ]

    ragged = tf.ragged.constant([[[1.0], []], [[2.0], [3.0]], [[], []]], ragged_rank=2)
    assert [v.shape for v in count(tf.zeros([3, 2]), ragged)] == [[3, 2], [3, 2], [3], [3, 2]]
    none = tf.ragged.constant([], ragged_rank=2)
    assert [v.shape for v in count(tf.zeros([0, 2]), none)] == [[0, 2], [0, 0], [0], [0, 0]]


# Control flow.


def test_cond_takes_and_returns_records():
    @tf.function
    def choose(records, flag):
        return tf.cond(flag, lambda: records.with_updates(est_time=records["est_time"] + 1.0),
                       lambda: records)  # fmt: skip

    for argument in (
        recipes(),
        recipes()["steps"].with_updates(est_time=recipes()["steps.minutes"]),
    ):
        expected = argument.with_updates(est_time=argument["est_time"] + 1.0)
        assert choose(argument, tf.constant(True)).to_py() == expected.to_py()
        assert choose(argument, tf.constant(False)).to_py() == argument.to_py()


def test_switch_case_and_autograph():
    @tf.function
    def pick(records, number):
        if number > 5:
            records = records.with_updates(est_time=records["est_time"] * 0.0)
        return tf.switch_case(number % 2, [lambda: records, lambda: records])

    assert pick(recipes(), tf.constant(7))["est_time"].numpy().tolist() == [0.0, 0.0]
    assert pick(recipes(), tf.constant(2)).to_py() == recipes().to_py()


def test_while_loop_carries_records():
    @tf.function
    def repeat(records, times):
        _, records = tf.while_loop(
            lambda i, r: i < times,
            lambda i, r: (i + 1, r.with_updates({"steps.minutes": r["steps.minutes"] + 1.0})),
            (0, records),
        )
        return records

    assert repeat(recipes(), 3)["steps.minutes"].to_list() == [[8.0, 23.0], [11.0]]
    assert repeat(recipes(), 0).to_py() == recipes().to_py()


def test_while_loop_lets_records_grow_with_a_spec_as_invariant():
    spec = DenseSpec([None], {"x": tf.TensorSpec([None], tf.int32)})

    @tf.function
    def grow(records):
        return tf.while_loop(
            lambda r: tf.shape(r["x"])[0] < 5,
            lambda r: (Dense([None], {"x": tf.concat([r["x"], [7]], 0)}),),
            (records,), shape_invariants=(spec,),
        )[0]  # fmt: skip

    assert grow(Dense([1], {"x": [1]}))["x"].numpy().tolist() == [1, 7, 7, 7, 7]


def test_a_python_loop_over_records_is_unrolled():
    @tf.function
    def total(records):
        return sum(r["est_time"] for r in records)

    assert total(recipes()).numpy() == 85.0


def test_a_position_outside_is_found_while_the_graph_is_built_if_the_size_is_known():
    @tf.function
    def fifth(records):
        return records[4]

    with pytest.raises(RowError):
        fifth(recipes())
    with pytest.raises(tf.errors.InvalidArgumentError):
        fifth.get_concrete_function(SPEC)(recipes())


# Tracing.


def test_equal_specs_trace_once_and_the_order_of_fields_does_not_matter():
    traces = []

    @tf.function
    def identity(records):
        traces.append(1)
        return records

    value = recipes()
    identity(value)
    identity(recipes())
    turned = value.with_only(*reversed(value.field_names()))
    assert identity(turned).to_py() == value.to_py()
    assert len(traces) == 1
    assert turned.__tf_type_spec__() == value.__tf_type_spec__()
    assert hash(turned.__tf_type_spec__()) == hash(value.__tf_type_spec__())
    identity(value.without("title"))
    identity(value["steps"])
    identity(value[:1])
    assert len(traces) == 4


def test_relaxed_tracing_merges_sizes():
    traces = []

    @tf.function(reduce_retracing=True)
    def count(records):
        traces.append(records.shape)
        return tf.shape(records["x"])[0]

    for n in range(1, 6):
        nested = Dense([n], {"y": tf.zeros([n, 2])})
        assert count(Dense([n], {"x": tf.zeros([n]), "n": nested})).numpy() == n
    assert len(traces) == 2
    assert traces[1].as_list() == [None]
    assert count(recipes()["steps"].with_updates(x=recipes()["steps.minutes"])) == 2
    for lengths in ([1], [2, 3], [1, 1, 1]):
        rows = Ragged.from_row_splits(
            Dense([sum(lengths)], {"x": tf.zeros([sum(lengths)])}),
            [sum(lengths[:i]) for i in range(len(lengths) + 1)],
        )
        assert count(rows).numpy() == len(lengths)
    assert len(traces) <= 5


def test_an_input_signature_takes_any_number_of_records_of_the_schema():
    @tf.function(input_signature=[SPEC])
    def titles(records):
        return records["title"]

    assert titles(recipes()).shape == [2]
    assert titles(recipes()[:1]).shape == [1]
    for other in (recipes().without("title"), recipes()["steps"], recipes()[0],
                  recipes().with_updates(title=[1, 2])):  # fmt: skip
        with pytest.raises(TypeError):
            titles(other)


def test_specs_are_compatible_with_what_they_describe_and_nothing_else():
    value, spec = recipes(), recipes().__tf_type_spec__()
    others = [value["steps"], value[0], value.without("title"), value.with_updates(new=[1, 2]),
              value.with_updates(title=[1, 2]), value.with_updates({"author.name": [1, 2]}),
              value["title"], 3, None]  # fmt: skip
    for a in (spec, SPEC):
        assert a.is_compatible_with(value)
        assert a.is_compatible_with(spec)
        assert a.is_compatible_with(SPEC)
        for other in others:
            assert not a.is_compatible_with(other)
    assert spec.most_specific_compatible_type(SPEC) == SPEC
    assert SPEC.most_specific_compatible_type(spec) == SPEC
    assert spec.is_subtype_of(SPEC)
    assert not SPEC.is_subtype_of(spec)
    specs = [o.__tf_type_spec__() for o in others if isinstance(o, xt.StructuredTensor)]
    row = RaggedSpec([None], DenseSpec([None], {"x": tf.TensorSpec([None])}))
    specs += [row, row.stacked(None)]
    for i, a in enumerate(specs):
        for b in (*specs[:i], tf.TensorSpec([2], tf.string)):
            assert a.most_specific_compatible_type(b) is None
            assert a != b


def test_gradients_flow_through_fields():
    value = recipes()
    with tf.GradientTape() as tape:
        tape.watch(value["est_time"])
        tape.watch(value["steps"].values["minutes"])
        changed = tf.function(lambda r: r.with_updates({"steps.minutes": r["steps.minutes"] ** 2}))(
            value
        )
        loss = tf.reduce_sum(changed["steps.minutes"]) + tf.reduce_sum(changed["est_time"] * 3.0)
    gradients = tape.gradient(loss, [value["est_time"], value["steps"].values["minutes"]])
    assert [g.numpy().tolist() for g in gradients] == [[3.0, 3.0], [10.0, 40.0, 16.0]]


# SavedModel.

# What TensorFlow says of every spec that is not its own.
_SAVING_SAYS = pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")


@pytest.mark.whole("starts a process")
@_SAVING_SAYS
def test_a_saved_model_takes_and_returns_records_where_nothing_else_was_imported(
    run_python, tmp_path
):
    module = tf.Module()
    module.weight = tf.Variable(2.0)

    @tf.function(input_signature=[SPEC])
    def score(records):
        minutes = records["steps.minutes"] * module.weight
        total = tf.reduce_sum(minutes, axis=1)
        return records.with_only("title", "author", "steps").with_updates(
            {"steps.minutes": minutes, "total": total}
        )

    module.score = score
    module.rows = tf.function(lambda steps: steps, input_signature=[SPEC.field_spec("steps")])
    tf.saved_model.save(module, str(tmp_path / "model"))
    expected = score(recipes())
    run_python(f"""
        import tensorflow as tf
        import extensor as xt

        steps = xt.DenseStructuredTensor([3], {{
            "minutes": [5.0, 20.0, 8.0], "tool": ["bowl", "oven", ""],
            "parts": tf.ragged.constant([[1], [], [2, 3]])}})
        recipes = xt.DenseStructuredTensor([2], {{
            "title": ["Snickerdoodles", "Flapjacks"],
            "est_time": [55.0, 30.0],
            "tags": tf.ragged.constant([["sweet"], []], dtype=tf.string),
            "author": xt.DenseStructuredTensor([2], {{
                "name": ["Ann", "Bob"], "scores": [[1, 2], [3, 4]]}}),
            "steps": xt.RaggedStructuredTensor.from_row_splits(steps, [0, 2, 3]),
        }})
        model = tf.saved_model.load({str(tmp_path / "model")!r})
        result = model.score(recipes)
        assert isinstance(result, xt.DenseStructuredTensor)
        assert result.to_py() == {expected.to_py()!r}
        assert result.field_names() == {expected.field_names()!r}
        assert model.rows(recipes["steps"]).to_py() == recipes["steps"].to_py()
        assert model.score(recipes[:1])["total"].numpy().tolist() == [50.0]
        for wrong in (recipes.without("title"), recipes["steps"]):
            try:
                model.score(wrong)
            except (TypeError, ValueError):
                pass
            else:
                raise AssertionError(wrong)
    """)


@_SAVING_SAYS
def test_a_spec_goes_through_a_saved_model_as_it_was(tmp_path):
    fields = {"z b": tf.TensorSpec([None], tf.string), "a": tf.RaggedTensorSpec([None, None])}
    row = RaggedSpec([None], DenseSpec([None], fields))
    deep = row.stacked(None).stacked(3)
    module = tf.Module()
    for i, spec in enumerate((row, deep)):
        function = tf.function(lambda r: r, input_signature=[spec])
        setattr(module, f"f{i}", function)
    tf.saved_model.save(module, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    for i, spec in enumerate((row, deep)):
        function = getattr(loaded, f"f{i}")
        (args, _) = function.concrete_functions[0].structured_input_signature
        assert args[0] == spec
        assert args[0].field_names() == ("z b", "a")
