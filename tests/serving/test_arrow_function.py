"""`xt.serving.arrow_function`: a model as a picklable function of Arrow tables."""

import pickle
import threading

import cloudpickle
import keras
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import errors

STEP = pa.struct({"minutes": pa.float32(), "text": pa.string()})
SCHEMA = pa.schema({"title": pa.string(), "steps": pa.list_(STEP)})
KEY = pa.schema({"key": pa.decimal128(20, 2)})
TABLE = pa.table(
    {
        "key": pa.array([7, 3, 5], pa.decimal128(20, 2)),
        "title": ["tea", "soup", "air"],
        "steps": pa.array(
            [
                [{"minutes": 5.0, "text": "steep"}],
                [{"minutes": 8.0, "text": "cut"}, {"minutes": 20.0, "text": "boil"}],
                [],
            ],
            pa.list_(STEP),
        ),
    }
)


def summed(records):
    """Returns a tensor, a ragged tensor and records."""
    minutes = records["steps.minutes"]
    return {"total": tf.reduce_sum(minutes, 1), "double": minutes * 2, "steps": records["steps"]}


EXPECTED = [
    {"total": 5.0, "double": [10.0], "steps": TABLE["steps"][0].as_py()},
    {"total": 28.0, "double": [16.0, 40.0], "steps": TABLE["steps"][1].as_py()},
    {"total": 0.0, "double": [], "steps": []},
]


def model(trainable=True):
    recipes = xt.keras.Input(xt.spec_from_schema(SCHEMA))
    minutes = xt.keras.layers.ListPooling("sum")(recipes["steps.minutes"])
    score = keras.layers.Dense(1)(keras.ops.expand_dims(minutes, 1))
    return xt.keras.Model(recipes, {"score": score[:, 0], "steps": recipes["steps"]})


def test_structs_with_a_mask_may_have_a_union():
    # pyarrow's own conversion to a table ends the process.
    codes, offsets = pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32())
    union = pa.UnionArray.from_dense(codes, offsets, [pa.array([1, 2]), pa.array(["a"])])
    numbers = pa.array([1.0, 2.0, 3.0])
    rows = pa.StructArray.from_arrays([numbers, union], ["x", "u"], mask=pa.array([False] * 3))
    function = xt.arrow_function(lambda records: {"y": records["x"] * 2}, pa.schema(rows.type))
    assert function(rows).to_pylist() == [{"y": 2.0}, {"y": 4.0}, {"y": 6.0}]


@pytest.mark.parametrize("chunks", [1, 2])
def test_the_result_is_of_the_kind_of_the_data(chunks):
    function = xt.arrow_function(summed, SCHEMA)
    table = pa.concat_tables([TABLE] * chunks)
    result = function(table)
    assert isinstance(result, pa.Table)
    assert result.to_pylist() == EXPECTED * chunks
    result = function(table.combine_chunks().to_batches()[0])
    assert isinstance(result, pa.RecordBatch)
    assert result.to_pylist() == EXPECTED * chunks
    rows = table.combine_chunks().to_struct_array()
    result = function(rows.chunk(0))
    assert isinstance(result, pa.StructArray)
    assert result.to_pylist() == EXPECTED * chunks
    assert function(pa.chunked_array(rows.chunks)).to_pylist() == EXPECTED * chunks


@pytest.mark.parametrize("data", [TABLE, TABLE.slice(0, 0), TABLE.slice(1, 1)])
@pytest.mark.parametrize("keep", [None, KEY])
def test_the_schema_is_known_before_the_first_record(data, keep):
    function = xt.arrow_function(summed, SCHEMA, keep)
    schema = function.output_schema
    assert function(data).schema == schema
    for batch in data.combine_chunks().to_batches(1):
        assert function(batch).schema == schema
    result = function(
        pa.RecordBatch.from_arrays([c.combine_chunks() for c in data], data.schema.names)
    )
    assert result.schema == schema
    assert result.num_rows == data.num_rows


def test_lists_are_as_wide_as_those_of_the_spec():
    for make in (pa.list_, pa.large_list):
        schema = pa.schema({"title": pa.string(), "steps": make(STEP)})
        for spec in (
            schema,
            xt.spec_from_schema(schema),
            xt.spec_of(xt.from_arrow(TABLE.select(schema.names).cast(schema))),
        ):
            found = xt.arrow_function(summed, spec).output_schema
            assert found.field("double").type == make(pa.float32())
            assert found.field("steps").type == make(STEP)
    # Also lists in lists, and with row splits of both widths.
    schema = pa.schema({"x": pa.list_(pa.list_(pa.int64()))})
    spec = xt.spec_from_schema(schema, row_splits_dtype=tf.int32)
    for each in (schema, spec):
        function = xt.arrow_function(lambda records: {"x": records["x"] + 1}, each)
        assert function.output_schema == schema
        assert function(pa.table({"x": [[[1, 2], []], []]})).to_pylist() == [
            {"x": [[2, 3], []]},
            {"x": []},
        ]


def test_data_is_cast_to_the_spec():
    # Engines widen types: Daft has large lists only.
    wide = pa.schema({"title": pa.large_string(), "steps": pa.large_list(STEP), "other": pa.null()})
    table = TABLE.append_column("other", pa.nulls(3)).select(wide.names).cast(wide)
    function = xt.arrow_function(summed, SCHEMA)
    assert function(table).equals(function(TABLE))


def test_columns_to_keep_need_no_tensors():
    result = xt.arrow_function(summed, SCHEMA, keep=KEY)(TABLE)
    assert result.schema.names == ["key", "total", "double", "steps"]
    assert result["key"].equals(TABLE["key"])


def test_a_schema_chooses_the_types():
    schema = pa.schema({"y": pa.list_(pa.float32())})
    function = xt.arrow_function(
        lambda records: {"y": tf.ones([tf.size(records["title"]), 2])}, SCHEMA
    )
    assert function.output_schema.field("y").type == pa.list_(pa.float32(), 2)
    function = xt.arrow_function(
        lambda records: {"y": tf.ones([tf.size(records["title"]), 2])}, SCHEMA, schema=schema
    )
    assert function.output_schema == schema
    assert function(TABLE)["y"].to_pylist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        (lambda r: r, ["title", "steps"]),
        (lambda r: r["title"], ["output_0"]),
        (lambda r: (r["title"], r["steps.minutes"]), ["output_0", "output_1"]),
        (lambda r: {"b": r["title"], "a": r["steps"]}, ["b", "a"]),
    ],
)
def test_columns_have_the_names_of_a_signature(outputs, names):
    assert xt.arrow_function(outputs, SCHEMA)(TABLE).schema.names == names


def test_nulls():
    schema = pa.schema({"x": pa.float32()})
    table = pa.table({"x": pa.array([1, None], pa.float32())})
    with pytest.raises(errors.NullError, match="x"):
        xt.arrow_function(lambda r: r, schema)(table)
    assert xt.arrow_function(lambda r: r, schema, nulls=xt.fill(9.0))(table)["x"].to_pylist() == [
        1,
        9,
    ]
    masked = xt.spec_from_schema(schema, nulls="mask")
    assert xt.arrow_function(lambda r: r, masked)(table)["x"].to_pylist() == [1, None]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns a model, and the paths of its files of each kind."""
    folder, made = tmp_path_factory.mktemp("saved"), model()
    made.save(folder / "model.keras")
    made.export(str(folder / "exported"), verbose=False)
    signature = xt.serving.flat_signature(made, xt.spec_from_schema(SCHEMA))
    xt.serving.save(made, folder / "served", signature)
    return made, [folder / name for name in ("model.keras", "exported", "served")]


@pytest.mark.whole("starts a process")
def test_a_model_and_its_files_return_the_same(saved):
    made, paths = saved
    expected = xt.arrow_function(made, SCHEMA, keep=KEY)(TABLE)
    assert expected.schema.names == ["key", "score", "steps"]
    for path in paths:
        for each in (path, str(path)):
            assert xt.arrow_function(each, SCHEMA, keep=KEY)(TABLE).equals(expected)


RESTORED = """
    import pickle, sys
    import keras, pyarrow as pa
    loads = []
    load = keras.saving.load_model
    keras.saving.load_model = lambda *args, **kwargs: loads.append(args) or load(*args, **kwargs)
    with open({path!r}, "rb") as file:
        content = file.read()
    functions = [pickle.loads(content) for _ in range(3)]
    assert not loads
    with pa.ipc.open_file({table!r}) as reader:
        table = reader.read_all()
    results = [function(table) for function in functions for _ in range(2)]
    functions = None
    results.append(pickle.loads(content)(table))
    assert len(loads) == 1, loads
    with pa.ipc.open_file({expected!r}) as reader:
        expected = reader.read_all()
    assert all(result.equals(expected) for result in results), results
"""


def _check_restored(function, pickler, folder, run_python, counts=True):
    (folder / "function").write_bytes(pickler.dumps(function))
    for name, table in (("table", TABLE), ("expected", function(TABLE))):
        with pa.ipc.new_file(folder / name, table.schema) as writer:
            writer.write_table(table)
    names = {"path": "function", "table": "table", "expected": "expected"}
    code = RESTORED.format(**{key: str(folder / name) for key, name in names.items()})
    run_python(code if counts else code.replace("assert len(loads) == 1, loads", ""))


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_another_process_loads_the_file_of_a_model_once(pickler, saved, tmp_path, run_python):
    function = xt.arrow_function(saved[1][0], SCHEMA, keep=KEY)
    assert len(pickler.dumps(function)) < 10_000
    _check_restored(function, pickler, tmp_path, run_python)


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_another_process_loads_a_pickled_model_once(pickler, saved, tmp_path, run_python):
    _check_restored(xt.arrow_function(saved[0], SCHEMA, KEY), pickler, tmp_path, run_python)


def test_another_process_runs_a_function_without_a_name(tmp_path, run_python):
    factor = 3.0
    function = xt.arrow_function(lambda r: {"y": r["steps.minutes"] * factor}, SCHEMA)
    _check_restored(function, cloudpickle, tmp_path, run_python, counts=False)


NOTEBOOK = """
    import sys
    import cloudpickle, keras, pyarrow as pa, tensorflow as tf
    import extensor as xt

    class Half(keras.layers.Layer):
        def call(self, x):
            return x / 2

    class Scorer(xt.keras.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.half = Half()
        def call(self, records):
            return {"y": self.half(records["x"])}
        def predict_step(self, data):
            return super().predict_step(data)

    model = Scorer()
    table = pa.table({"x": [1.0, 3.0]})
    model(xt.from_arrow(table))
    function = xt.arrow_function(model, table.schema)
    assert function(table).to_pylist() == [{"y": 0.5}, {"y": 1.5}]
    with open(%r, "wb") as file:
        file.write(cloudpickle.dumps(function))
"""


@pytest.mark.whole("starts a process")
def test_another_process_runs_a_model_of_a_notebook(tmp_path, run_python):
    path = str(tmp_path / "function")
    run_python(NOTEBOOK % path)
    run_python(f"""
        import pickle, pyarrow as pa
        with open({path!r}, "rb") as file:
            function = pickle.loads(file.read())
        assert function(pa.table({{"x": [1.0, 3.0]}})).to_pylist() == [{{"y": 0.5}}, {{"y": 1.5}}]
    """)


@pytest.mark.whole("starts a process")
def test_a_process_has_one_function_however_often_it_is_unpickled(saved):
    function = xt.arrow_function(saved[0], SCHEMA)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.whole("saves and loads models")
def test_threads_share_one_load(monkeypatch, saved):
    loads, load = [], keras.saving.load_model
    monkeypatch.setattr(
        keras.saving, "load_model", lambda *a, **k: loads.append(a) or load(*a, **k)
    )
    function = xt.arrow_function(saved[1][0], SCHEMA)
    results = []
    threads = [threading.Thread(target=lambda: results.append(function(TABLE))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(results) == 4
    assert all(result.equals(results[0]) for result in results)


def test_inference_only():
    class Noisy(xt.keras.Model):
        def call(self, records, training=None):
            return {"training": tf.fill([tf.size(records["title"])], bool(training))}

    assert xt.arrow_function(Noisy(), SCHEMA)(TABLE)["training"].to_pylist() == [False] * 3


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((3, SCHEMA), errors.DTypeError, "model"),
        ((summed, None), errors.DTypeError, "spec"),
        ((summed, "title"), errors.DTypeError, "schema"),
        ((summed, SCHEMA, ["key"]), errors.DTypeError, "keep"),
        ((summed, SCHEMA, None, None, {"x": int}), errors.DTypeError, "schema"),
    ],
)
def test_wrong_arguments(arguments, error, words):
    with pytest.raises(error, match=words):
        xt.arrow_function(*arguments)


@pytest.mark.parametrize(
    ("function", "keep", "error", "words"),
    [
        ("/no/such/model.keras", None, errors.MissingFileError, "/no/such/model.keras"),
        (lambda r: None, None, errors.DTypeError, "no tensors"),
        (lambda r: {"x": tf.constant(1)}, None, errors.DTypeError, "model, x"),
        (summed, pa.schema({"total": pa.int64()}), errors.StructureError, "keep, total"),
    ],
)
def test_wrong_models(function, keep, error, words):
    with pytest.raises(error, match=words):
        _ = xt.arrow_function(function, SCHEMA, keep).output_schema


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ({"title": ["tea"]}, errors.DTypeError, "got dict"),
        (pa.array([1]), errors.DTypeError, "array of structs"),
        (TABLE.drop_columns("steps"), errors.FieldError, "steps"),
        (TABLE.drop_columns("key"), errors.FieldError, "key"),
        (
            TABLE.set_column(1, "title", [[1, 2, 3]]).drop_columns("steps"),
            errors.FieldError,
            "steps",
        ),
    ],
)
def test_wrong_data(data, error, words):
    with pytest.raises(error, match=words):
        xt.arrow_function(summed, SCHEMA, KEY)(data)


def test_a_function_may_drop_records_only_without_columns_to_keep():
    function = xt.arrow_function(lambda r: {"title": r["title"][1:]}, SCHEMA)
    assert function(TABLE)["title"].to_pylist() == ["soup", "air"]
    with pytest.raises(errors.StructureError, match="expected 3 results"):
        xt.arrow_function(lambda r: {"title": r["title"][1:]}, SCHEMA, KEY)(TABLE)
