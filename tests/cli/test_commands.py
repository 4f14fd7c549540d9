"""The commands, in this process: what they print, and their exit codes."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import extensor as xt
from extensor_command.main import main

RECORDS = [
    {"title": "Tea", "minutes": 5, "steps": [{"text": "boil", "temp": 100.0}]},
    {"title": "Bread", "minutes": None, "steps": []},
]


@pytest.fixture
def recipes(tmp_path):
    path = tmp_path / "recipes.parquet"
    pq.write_table(pa.Table.from_pylist(RECORDS * 3), path)
    return str(path)


@pytest.fixture
def run(capfd):
    """Returns the exit code, the output and the errors of a command."""

    def run(*words):
        code = main([str(word) for word in words])
        return code, *capfd.readouterr()

    return run


def test_schema_prints_the_type_of_each_path(run, recipes):
    code, out, _ = run("schema", recipes)
    assert code == 0
    assert out.splitlines() == [
        "parquet, 6 records",
        "title          string",
        "minutes        int64",
        "steps          list",
        "steps[*]       record",
        "steps[*].text  string",
        "steps[*].temp  double",
    ]


def test_schema_counts_one_record(run, tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "one.parquet")
    assert run("schema", tmp_path / "one.parquet")[1] == "parquet, 1 record\nx  int64\n"


def test_schema_of_maps_and_unions(run, tmp_path):
    union = pa.UnionArray.from_sparse(
        pa.array([0], pa.int8()), [pa.array([1]), pa.array(["a"])], ["i", "s"]
    )
    maps = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8()))
    table = pa.table({"u": union, "m": maps, "f": pa.array([[1, 2]], pa.list_(pa.int8(), 2))})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
        writer.write_table(table)
    code, out, _ = run("schema", tmp_path / "x.arrow")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["arrow"],
        ["u", "union"],
        ["u.i", "int64"],
        ["u.s", "string"],
        ["m", "map"],
        ["m[*].key", "string", "not", "null"],
        ["m[*].value", "int8"],
        ["f", "list", "of", "2"],
        ["f[*]", "int8"],
    ]


def test_head_prints_records_as_json(run, recipes):
    code, out, _ = run("head", recipes, "-n", 3)
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [*RECORDS, RECORDS[0]]
    assert len(run("head", recipes)[1].splitlines()) == 5
    assert run("head", recipes, "-n", 0)[:2] == (0, "")
    code, out, _ = run("head", recipes, "-n", 1, "-c", "steps.temp", "-c", "title")
    assert json.loads(out) == {"steps": [{"temp": 100.0}], "title": "Tea"}


def test_convert_writes_the_format_of_the_suffix(run, recipes, tmp_path):
    for name in ("a.jsonl.gz", "a.arrow", "a.feather", "b.parquet"):
        code, out, errors = run("convert", recipes, tmp_path / name)
        assert (code, out) == (0, "")
        assert "convert" not in errors  # no bar where there is no terminal
        code, out, _ = run("head", tmp_path / name, "-n", 6)
        assert [json.loads(line) for line in out.splitlines()] == RECORDS * 3


def test_convert_writes_csv_of_records_without_lists(run, tmp_path):
    (tmp_path / "x.csv").write_text('title,minutes\nTea,5\n"Bread, white",\n')
    records = [{"title": "Tea", "minutes": 5}, {"title": "Bread, white", "minutes": None}]
    for name in ("a.jsonl", "b.parquet", "c.tsv", "d.csv.gz"):
        assert run("convert", tmp_path / "x.csv", tmp_path / name)[0] == 0
        code, out, _ = run("head", tmp_path / name)
        assert [json.loads(line) for line in out.splitlines()] == records
        assert run("describe", tmp_path / name)[0] == 0
    xt.write_json(xt.struct.constant([{"x": [1]}]), tmp_path / "lists.jsonl")
    code, _, errors = run("convert", tmp_path / "lists.jsonl", tmp_path / "lists.csv")
    assert code == 2
    assert "x: expected one value" in errors
    assert not (tmp_path / "lists.csv").exists()


def test_convert_takes_several_files_formats_and_columns(run, recipes, tmp_path):
    target = tmp_path / "records.data"
    code, _, errors = run(
        *("convert", recipes, recipes, target, "--to", "json", "-c", "title", "--progress")
    )
    assert code == 0
    assert "convert: 100%" in errors
    code, out, _ = run("head", target, "--format", "json", "-n", 100)
    assert [json.loads(line) for line in out.splitlines()] == [
        {"title": record["title"]} for record in RECORDS * 6
    ]


def test_convert_to_tfrecord_needs_float32(run, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"x": 1.5, "y": [0.25, 3.0]}\n')
    code, _, errors = run("convert", tmp_path / "x.jsonl", tmp_path / "x.tfrecord")
    assert (code, os.listdir(tmp_path)) == (2, ["x.jsonl"])
    assert "float32, got float64" in errors
    assert run("convert", tmp_path / "x.jsonl", tmp_path / "x.tfrecord", "--float32")[0] == 0
    assert run("head", tmp_path / "x.tfrecord")[1] == '{"x":1.5,"y":[0.25,3.0]}\n'


def test_convert_writes_nan_to_json_only_when_asked(run, tmp_path):
    pq.write_table(pa.table({"x": [float("nan")]}), tmp_path / "x.parquet")
    words = ("convert", tmp_path / "x.parquet", tmp_path / "x.json")
    assert run(*words)[0] == 2
    assert run(*words, "--allow-nan")[0] == 0
    assert (tmp_path / "x.json").read_text() == '{"x":NaN}\n'


def test_describe_prints_a_table_and_writes_a_page(run, recipes, tmp_path):
    code, out, _ = run("describe", recipes, "--html", tmp_path / "page.html")
    assert code == 0
    assert out == f"{xt.data.describe(recipes)}\n"
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_describe_exits_with_1_where_values_drifted(run, recipes, tmp_path):
    numbers = [{"x": i % 7} for i in range(700)]
    xt.write_json(xt.struct.constant(numbers), tmp_path / "train.jsonl")
    xt.write_json(xt.struct.constant([{"x": i % 3} for i in range(700)]), tmp_path / "serving.json")
    words = ("describe", tmp_path / "train.jsonl", "--compare")
    code, out, _ = run(*words, tmp_path / "serving.json", "--html", tmp_path / "page.html")
    assert code == 1
    assert out.startswith("1 of 1 paths drifted")
    assert "drifted" in (tmp_path / "page.html").read_text()
    assert run(*words, tmp_path / "serving.json", "--threshold", "0.9")[0] == 0
    assert run(*words, tmp_path / "train.jsonl")[0] == 0


TYPES = """
import tensorflow as tf
import extensor as xt

@xt.extension_type
class CliMenu:
    prices: tf.Tensor

good = CliMenu(tf.constant([1.0]))
several = [good, CliMenu(tf.constant([1.0, 2.0]))]
def made(): return good
spec = tf.RaggedTensorSpec([None, None], tf.int32)

class Broken:
    def __init__(self, prices): self.prices = prices
    def __tf_type_spec__(self): return BrokenSpec(self.prices.shape)

class BrokenSpec(xt.TypeSpec):
    def __init__(self, shape): self.shape = shape
    value_type = Broken
    component_specs = property(lambda self: (tf.TensorSpec(self.shape, tf.int32),))
    def to_components(self, value): return (value.prices,)
    def from_components(self, components): return Broken(tf.abs(components[0]))
    def serialize(self): return (self.shape,)

class Box: broken = Broken(tf.constant([3, 4]))
number = 3
def failing(): return 1 / 0
"""


@pytest.fixture
def types(tmp_path, monkeypatch):
    (tmp_path / "cli_types.py").write_text(TYPES)
    (tmp_path / "cli_bad_module.py").write_text("\n\nx = undefined\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])


@pytest.mark.whole("checks all laws of several types")
def test_check_tells_which_laws_a_value_breaks(run, types):
    for name in ("good", "several", "made", "spec"):
        code, out, _ = run("check", f"cli_types:{name}")
        assert (code, "keeps the laws" in out) == (0, True)
    code, out, _ = run("check", "cli_types:Box.broken")
    assert code == 1
    assert "Broken breaks a law of extension types" in out
    assert "components-run-no-op" in out


def test_check_names_what_it_cannot_check(run, types):
    for name, text in [
        ("cli_types", "Write the colon"),
        ("cli_types:missing", "one of the names"),
        ("cli_none:x", "No module named 'cli_none'"),
        ("cli_bad_module:x", "NameError: name 'undefined' is not defined"),
        ("cli_types:number", "int"),
        ("cli_types:failing", "ZeroDivisionError: division by zero"),
    ]:
        code, out, errors = run("check", name)
        assert (code, out) == (2, "")
        assert text in errors
        assert "Traceback" not in errors
    assert "cli_bad_module.py, line 3" in run("check", "cli_bad_module:x")[2]


STEP = xt.DenseStructuredTensorSpec(
    [None], {"text": tf.TensorSpec([None], tf.string), "minutes": tf.TensorSpec([None], tf.int32)}
)
RECIPES = xt.DenseStructuredTensorSpec(
    [None],
    {
        "title": tf.TensorSpec([None], tf.string),
        "image": tf.TensorSpec([None, 2], tf.float32),
        "steps": xt.RaggedStructuredTensorSpec([None, None], STEP),
    },
)


def test_serve_check_prints_signatures_and_a_request_that_the_model_takes(run, tmp_path):
    path = str(tmp_path / "model" / "1")
    flat = xt.serving.flat_signature(
        lambda recipe: {"minutes": recipe["steps.minutes"]}, RECIPES, prune=False
    )
    xt.serving.save(None, path, flat)
    code, out, _ = run("serve-check", path)
    assert code == 0
    assert "  input   steps__row_splits  int64 (None,)" in out
    assert "  output  minutes" in out
    assert "  response: minutes (1,), minutes__row_splits (2,)" in out
    request = json.loads(next(line for line in out.splitlines() if "signature_name" in line))
    assert request["inputs"]["image"] == [[0.0, 0.0]]
    served = tf.saved_model.load(path).signatures[request["signature_name"]]
    dtypes = {name: spec.dtype for name, spec in served.structured_input_signature[1].items()}
    tensors = {name: tf.constant(v, dtypes[name]) for name, v in request["inputs"].items()}
    assert served(**tensors)["minutes"].numpy().tolist() == [0]
    code, _, errors = run("serve-check", tmp_path / "model")
    assert (code, f"the folder of a version: {path}" in errors) == (2, True)


def test_serve_check_finds_a_model_that_fails_or_has_another_description(run, tmp_path):
    def refuse(recipe):
        with tf.control_dependencies([tf.debugging.Assert(False, ["closed"])]):
            return {"minutes": tf.identity(recipe["steps.minutes"].flat_values)}

    path = tmp_path / "model"
    xt.serving.save(None, path, xt.serving.flat_signature(refuse, RECIPES))
    code, out, _ = run("serve-check", path)
    assert code == 1
    assert "Fault: serving_default: the model fails for the example" in out
    described = path / "assets.extra" / "extensor.json"
    described.write_text(described.read_text().replace('"steps__minutes"', '"steps__name"'))
    code, out, _ = run("serve-check", path)
    assert (code, "steps__name" in out) == (1, True)


def test_serve_check_of_nests_and_of_types_without_an_example(run, tmp_path):
    number, union = tf.TensorSpec([None]), xt.spec_of(xt.types.UnionTensor.from_values([1, "a"]))
    nested = xt.serving.flat_signature(lambda x: x["a"] + x["b"][0], {"a": number, "b": [number]})
    complex_numbers = xt.serving.flat_signature(lambda x: x, tf.TensorSpec([None], tf.complex64))
    signatures = {"nested": nested, "union": xt.serving.flat_signature(lambda x: x, union)}
    signatures["complex"] = complex_numbers
    xt.serving.save(None, tmp_path / "model", signatures)
    code, out, _ = run("serve-check", tmp_path / "model")
    assert code == 0
    assert '"inputs": {"a": [0.0], "b__0": [0.0]}' in out
    assert "no example request: request: expected records and tensors, got UnionTensor.Spec." in out
    assert "no example request: x: expected a type that JSON has" in out


def test_serve_check_of_a_plain_model(run, tmp_path):
    module = tf.Module()
    module.double = tf.function(lambda x: {"y": x * 2}, [tf.TensorSpec([None, 3], tf.float32)])
    tf.saved_model.save(module, str(tmp_path / "plain"), signatures={"double": module.double})
    code, out, _ = run("serve-check", tmp_path / "plain")
    assert (code, "response: y (1, 3)" in out) == (0, True)
    tf.saved_model.save(tf.Module(), str(tmp_path / "none"))
    code, out, _ = run("serve-check", tmp_path / "none")
    assert (code, "Fault: there is no signature" in out) == (1, True)
