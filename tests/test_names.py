"""The names that users see: what a package lists, what a star-import brings, each type's spec."""

import ast
import builtins
import importlib
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt

ROOMS = "authoring data dispatch keras nest serving struct testing types typing".split()
INNER_ROOMS = ["keras.callbacks", "keras.layers"]


def room(name):
    return importlib.import_module(f"extensor.{name}")


# Public, but not brought by a star-import, because they shadow builtins.
SHADOWING = {"struct": {"slice", "zip"}}


def listed(names):
    """Returns all names but those of Python, such as `__doc__`."""
    return {name for name in names if not name.startswith("__")}


def test_the_package_lists_its_modules_before_they_are_imported(run_python):
    run_python("""
        import extensor as xt
        assert {"keras", "serving", "testing", "types"} <= set(dir(xt))
    """)


def test_the_package_lists_what_is_public_and_nothing_else():
    assert listed(dir(xt)) == {*xt.__all__, "print", "tuple"}
    assert {"__version__", "__doc__", "__file__", "__all__"} <= set(dir(xt))
    for name in dir(xt):
        getattr(xt, name)


@pytest.mark.parametrize("name", ROOMS + INNER_ROOMS)
def test_a_module_lists_its_public_names_and_nothing_else(name):
    assert listed(dir(room(name))) == {*room(name).__all__, *SHADOWING.get(name, ())}
    assert {"__doc__", "__file__", "__all__"} <= set(dir(room(name)))


def test_the_errors_are_all_that_their_module_lists():
    for name in listed(dir(xt.errors)):
        assert issubclass(getattr(xt.errors, name), xt.ExtensorError)


@pytest.mark.parametrize("name", [None, *ROOMS])
def test_a_star_import_shadows_no_builtin(name):
    module = xt if name is None else room(name)
    assert not set(module.__all__) & set(dir(builtins))


@pytest.mark.whole("starts a process")
def test_a_star_import_leaves_print_and_tuple_alone(run_python):
    printed = run_python("""
        from extensor import *
        print(tuple([1]), extension_type.__module__)
    """).stdout
    assert printed == "(1,) extensor._declare.decorator\n"


ROOT = pathlib.Path(__file__).parents[1]
OF_AUTHORS = sorted(
    path
    for folder in ("src/extensor/_types", "packages", "examples")
    for path in (ROOT / folder).rglob("*.py")
)


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", OF_AUTHORS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_authors_write_imports_public_names_only(path):
    private = [
        name
        for name in imported(path)
        if name.startswith("extensor.")
        and any(part.startswith("_") for part in name.split(".")[1:])
        and not ("_types" in path.parts and name.startswith("extensor._types."))
    ]
    assert private == []


def test_the_version_is_that_of_the_package():
    assert xt.__version__.count(".") == 2
    assert all(part.isdigit() for part in xt.__version__.split(".")[:2])


VALUES = {
    "CSRSparseTensor": lambda: xt.types.CSRSparseTensor.from_dense([[1.0, 0.0], [0.0, 2.0]]),
    "DimensionAlignment": lambda: xt.types.DimensionAlignment.from_index([0, 1], num_targets=2),
    "LabeledDigraph": lambda: xt.types.LabeledDigraph([0], [1], num_nodes=2),
    "LabeledTensor": lambda: xt.types.LabeledTensor([[1.0, 2.0]], ["row", "column"]),
    "MaskedTensor": lambda: xt.types.MaskedTensor([1.0, 2.0], [True, False]),
    "TensorDigraph": lambda: xt.types.TensorDigraph([0], [1], num_nodes=2),
    "UnionTensor": lambda: xt.types.UnionTensor([0], {"number": [1.0]}),
}
SPECS = {
    "CSRSparseTensor": xt.types.CSRSparseTensorSpec([None, 2], tf.float32),
    "DimensionAlignment": xt.types.DimensionAlignmentSpec([]),
    "LabeledDigraph": xt.types.LabeledDigraphSpec(),
    "LabeledTensor": xt.types.LabeledTensorSpec(tf.TensorSpec([None, 2]), ["row", "column"]),
    "MaskedTensor": xt.types.MaskedTensorSpec(tf.TensorSpec([None])),
    "TensorDigraph": xt.types.TensorDigraphSpec(),
    "UnionTensor": xt.types.UnionTensorSpec({"number": tf.TensorSpec([None])}),
}


def test_each_type_has_its_spec_beside_it():
    specs = {name for name in xt.types.__all__ if name.endswith("Spec")}
    assert specs == {f"{name}Spec" for name in set(xt.types.__all__) - specs}
    assert VALUES.keys() == SPECS.keys() == set(xt.types.__all__) - specs


@pytest.mark.parametrize("name", VALUES)
def test_the_spec_of_a_type_is_an_input_signature(name):
    value, spec = VALUES[name](), SPECS[name]
    assert type(value.__tf_type_spec__()) is type(spec) is getattr(xt.types, f"{name}Spec")
    same = tf.function(lambda x: x, input_signature=[spec])
    result = same(value)
    assert type(result) is type(value)
    for a, b in zip(tf.nest.flatten(result, True), tf.nest.flatten(value, True), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_classes_of_results_are_public():
    records = xt.struct.constant([{"x": 1}, {"x": 2}])
    assert isinstance(xt.spec_of(records), xt.StructuredTensorSpec)
    description = xt.data.describe(records)
    assert isinstance(description["x"], xt.data.PathStatistics)
    [drift] = description.compare(description).drifts
    assert isinstance(drift, xt.data.Drift)
    flat = xt.serving.flat_signature(lambda r: {"y": r["x"]}, xt.spec_of(records))
    assert isinstance(flat, xt.serving.FlatSignature)
    assert isinstance(flat.inputs.components[0], xt.serving.Component)
    assert isinstance(xt.testing.laws()[0], xt.testing.Law)
