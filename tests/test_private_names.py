"""Only `_tf*.py` and `_keras*.py` read private attributes of somebody else's spec or value."""

import ast
from pathlib import Path

import keras
import pytest
import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.framework.type_spec import BatchableTypeSpec

SOURCE = Path(__file__).parents[1] / "src" / "extensor"

# They define what TensorFlow calls, so that the specs of users and of extensor need public names
# only.
BRIDGES = {"_protocol/spec.py", "_protocol/stackable_spec.py"}
DEFINES = {
    *BRIDGES,
    # What TensorFlow's default would do by running the constructor of the author's class.
    "_declare/derived_spec.py",
    # A subclass of CompositeTensor itself, as TensorFlow Probability's.
    "_auto/decorator.py",
}


def private(*classes):
    """The private names of classes, without those of Python itself."""
    names = {name for cls in classes for name in dir(cls)}
    return {name for name in names if name.startswith("_") and not name.endswith("__")}


# Of a spec or a composite tensor each of these is TensorFlow's, also where the class is ours.
OF_SPECS = private(tf.TypeSpec, BatchableTypeSpec, CompositeTensor) - {"_abc_impl"}
# Classes of ours have attributes of some of these names, such as `_shape`.
OF_VALUES = private(
    *(tf.Tensor, tf.Variable, tf.RaggedTensor, tf.SparseTensor, tf.IndexedSlices, tf.Module),
    *(tf.data.Dataset, tf.Graph, tf.Operation, tf.GradientTape, tf.TensorShape, tf.DType),
    *(keras.layers.Layer, keras.Model, keras.KerasTensor, keras.losses.Loss),
)


def parsed(path):
    return ast.parse(path.read_text(), str(path))


def own_names(tree):
    """The names that a file gives to functions, and to attributes of `self` and `cls`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Call):  # self.__dict__.update(_shape=...)
            yield from (keyword.arg for keyword in node.keywords if keyword.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.split()  # __slots__


def read_names(tree, names):
    """The attributes of some names that a file reads or sets, with their lines."""
    return [
        (node.lineno, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in names
    ]


def defined_names(tree, names):
    """The methods of some names that the classes of a file define, with their lines."""
    return [
        (node.lineno, node.name)
        for cls in ast.walk(tree)
        if isinstance(cls, ast.ClassDef)
        for node in cls.body
        if isinstance(node, ast.FunctionDef) and node.name in names
    ]


def is_private_file(path):
    return path.name.startswith(("_tf_", "_keras_"))


@pytest.fixture(scope="module")
def files():
    """The syntax tree of each file that may use public names only."""
    return {
        path.relative_to(SOURCE).as_posix(): parsed(path)
        for path in sorted(SOURCE.rglob("*.py"))
        if not is_private_file(path)
    }


@pytest.fixture(scope="module")
def private_of_others(files):
    """The private names that are not ours."""
    own = {name for tree in files.values() for name in own_names(tree)}
    return OF_SPECS | (OF_VALUES - own)


@pytest.mark.whole("reads all source files")
def test_private_attributes_are_read_in_private_files_only(files, private_of_others):
    assert len(files) > 100
    found = {}
    for name, tree in files.items():
        allowed = OF_SPECS if name in BRIDGES else set()
        defined = [] if name in DEFINES else defined_names(tree, OF_SPECS)
        if names := read_names(tree, private_of_others - allowed) + defined:
            found[name] = names
    assert found == {}


def test_the_names_are_those_that_tensorflow_has(private_of_others):
    assert {
        *("_batch", "_unbatch", "_serialize", "_deserialize", "_component_specs", "_type_spec"),
        *("_to_components", "_from_components", "_to_tensor_list", "_to_batched_tensor_list"),
        *("_from_compatible_tensor_list", "_flat_tensor_specs", "_with_tensor_ranks_only"),
        *("_without_tensor_names", "_convert_variables_to_tensors", "_consumers"),
    } <= OF_SPECS
    assert {"_trackable_children", "_numpy", "_variant_tensor"} <= private_of_others


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("def f(spec): return spec._unbatch()", "_unbatch"),
        ("def f(value): return value._type_spec", "_type_spec"),
        ("def f(x): x._type_spec = 1", "_type_spec"),
        ("def f(dataset): return dataset._variant_tensor", "_variant_tensor"),
        ("class Spec(TypeSpec):\n  def f(self): return super()._serialize()", "_serialize"),
    ],
)
def test_a_private_name_that_is_planted_is_found(code, name, private_of_others):
    found = read_names(ast.parse(code), private_of_others)
    assert [attribute for _, attribute in found] == [name]


def test_a_private_method_that_is_defined_is_found():
    tree = ast.parse("class Spec(TypeSpec):\n  def _batch(self, size): pass")
    assert defined_names(tree, OF_SPECS) == [(2, "_batch")]
