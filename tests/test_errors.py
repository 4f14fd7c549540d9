"""Errors: each is of extensor's family, and also the builtin that users catch."""

import ast
import builtins
import copy
import importlib
import pathlib
import pickle
import sys

import pytest
import tensorflow as tf

import extensor as xt

SOURCE = pathlib.Path(xt.__file__).parent
# The errors of other classes that may be raised, each with the reason.
_EXPECTED = "Python, Keras and TensorFlow look for private names, and catch AttributeError."
_BASE_CLASS = "An abstract method."
_CAUGHT = "The same function catches it."
OTHER_ERRORS = {
    ("_anonymous.py", "__getattr__", "AttributeError"): _EXPECTED,
    ("_declare/derived_spec.py", "__getattr__", "AttributeError"): _EXPECTED,
    ("_keras/graph_node.py", "__getattr__", "AttributeError"): _EXPECTED,
    ("_tf/_tf_as_tensor.py", "__get__", "AttributeError"): _EXPECTED,
    ("_tf/_tf_nest.py", "__get__", "AttributeError"): _EXPECTED,
    ("_keras/_keras_private.py", "standardized", "NotImplementedError"): _BASE_CLASS,
    ("_keras/_keras_private.py", "functional_model", "NotImplementedError"): _BASE_CLASS,
    ("_keras/_keras_private.py", "clone_with", "NotImplementedError"): _BASE_CLASS,
    ("_keras/_keras_private.py", "serving_function", "NotImplementedError"): _BASE_CLASS,
    ("_tf/_tf_protocol.py", "_shape_invariant_to_type_spec", "NotImplementedError"): (
        "tf.map_fn and tf.while_loop catch it, as they do for types of TensorFlow."
    ),
    ("_formats/pandas/read.py", "_array", "ArrowNotImplementedError"): _CAUGHT,
    ("_formats/pandas/read.py", "_convert", "TypeError"): _CAUGHT,
    ("_formats/protobuf/text.py", "print_messages", "ValueError"): _CAUGHT,
    ("_arrow/wanted_table.py", "_validate", "ArrowInvalid"): (
        "from_arrow makes a StructureError of it, and read_arrow a FormatError with the file."
    ),
    ("_formats/iceberg.py", "_decode", "ValueError"): (
        "The reader makes a FormatError with the file of it, as of the errors of pyiceberg."
    ),
    ("_formats/awkward.py", "to_awkward", "NotImplementedError"): _CAUGHT,
    ("_formats/tfrecord/files.py", "_decompress", "error"): _CAUGHT,
    ("_data/position.py", "_checked_shard", "TypeError"): _CAUGHT,
    ("_cli/records.py", "_fill_of", "BadParameter"): "click shows it with the usage.",
    ("_cli/records.py", "convert_files", "BadParameter"): "click shows it with the usage.",
}
# Classes of extensor that are not public: each is caught inside of extensor.
INTERNAL_ERRORS = {
    "BreachError": "A broken law, without its name, which its caller adds.",
    "InexactError": "The fast parser of JSON would not give the exact values; another parser does.",
    "UnknownZoneError": "The zone of a time is not known; the caller adds its path.",
    "SplitError": "The fast parser of messages does not merge the parts of a field.",
    "_BadValueError": "A key is twice in an object, or a number too large; the caller adds a line.",
    "_NoMergeError": "Two trees have no merged tree; the caller returns None.",
    "_UnfitError": "A value has no Python object; the caller finds its record.",
    "_UnknownError": "The footers of Parquet do not tell of nulls; the caller reads the column.",
    "_NoVariantError": "A union of a Parquet file is damaged; the caller adds file and column.",
    "_NotPrunableError": "A dataset cannot be pruned; the caller does not prune it.",
    "_WiderError": "A loop must be traced again, for another type.",
}


def raised_class(raised, module):
    """Returns the class of errors that the expression of a `raise` names, or None."""
    names = ast.unparse(raised.func if isinstance(raised, ast.Call) else raised).split(".")
    if not all(name.isidentifier() for name in names):
        return None
    value = getattr(module, names[0], getattr(builtins, names[0], None))
    for name in names[1:]:
        value = getattr(value, name, None)
    return value if isinstance(value, type) and issubclass(value, BaseException) else None


def other_errors(source, module):
    """Yields the function and the class of each `raise` of a class that is not of `xt.errors`."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                raised = isinstance(node, ast.Raise) and node.exc and raised_class(node.exc, module)
                if raised and not issubclass(raised, xt.errors.ExtensorError):
                    yield function.name, raised.__name__


@pytest.fixture(scope="module")
def sources():
    paths = [path for path in SOURCE.rglob("*.py") if path.name != "__main__.py"]
    return {path.relative_to(SOURCE).as_posix(): path.read_text() for path in paths}


@pytest.mark.whole("reads all source files")
def test_every_raise_is_of_a_public_class_of_extensor(sources):
    assert len(sources) > 200
    found = set()
    for file, source in sources.items():
        module = importlib.import_module(f"extensor.{file.removesuffix('.py').replace('/', '.')}")
        found |= {(file, *each) for each in other_errors(source, module)}
    assert {each for each in found if each[-1] not in INTERNAL_ERRORS} == set(OTHER_ERRORS)
    assert {name for _, _, name in found} >= set(INTERNAL_ERRORS)


@pytest.mark.parametrize("name", INTERNAL_ERRORS)
def test_internal_errors_are_caught(name, sources):
    trees = [ast.parse(source) for source in sources.values() if name in source]
    handlers = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler)]
    is_caught = any(name in ast.unparse(handler.type) for handler in handlers if handler.type)
    assert is_caught or any(f"suppress({name})" in source for source in sources.values())


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("raise ValueError('x') from None", "ValueError"),
        ("raise KeyError", "KeyError"),
        ("raise tf.errors.NotFoundError(None, None, 'x')", "NotFoundError"),
    ],
)
def test_a_raise_of_another_class_is_found(statement, name):
    module = sys.modules[__name__]
    assert list(other_errors(f"def f():\n    {statement}", module)) == [("f", name)]
    allowed = "def f(error):\n    raise xt.errors.RowError('x')\n    raise error\n    raise"
    assert list(other_errors(allowed, module)) == []


def test_errors_of_servers_are_the_builtins_of_files_and_values():
    assert issubclass(xt.errors.AccessError, PermissionError)
    assert issubclass(xt.errors.ServerError, ConnectionError)
    assert issubclass(xt.errors.QueryError, ValueError)


@xt.extension_type
class Cup:
    grams: tf.Tensor


SPEC = xt.spec_of(Cup(1.0))
RECORDS = xt.DenseStructuredTensor([1], {"grams": [1.0]})


RAISES = {
    "assigning to a FrozenDict": (
        lambda: setattr(xt.authoring.FrozenDict({"a": 1}), "a", 2),
        xt.errors.ImmutableError,
        AttributeError,
        "FrozenDict.a: expected no assignment",
    ),
    "deleting from a FrozenDict": (
        lambda: delattr(xt.authoring.FrozenDict({"a": 1}), "a"),
        xt.errors.ImmutableError,
        AttributeError,
        "FrozenDict.a: expected no deletion",
    ),
    "assigning to a Path": (
        lambda: setattr(xt.Path("a"), "names", ()),
        xt.errors.ImmutableError,
        AttributeError,
        "Path.names: expected no assignment",
    ),
    "deleting from a Path": (
        lambda: delattr(xt.Path("a"), "names"),
        xt.errors.ImmutableError,
        AttributeError,
        "Path.names: expected no deletion",
    ),
    "a field that a spec has not": (
        lambda: SPEC.grms,
        xt.errors.MissingAttributeError,
        AttributeError,
        r"Cup.Spec: expected one of the fields grams, got 'grms'",
    ),
    "a name that the package has not": (
        lambda: xt.tensors,
        xt.errors.MissingAttributeError,
        AttributeError,
        "module 'extensor' has no attribute 'tensors'",
    ),
    "assigning to records": (
        lambda: setattr(RECORDS, "grams", 1),
        xt.errors.ImmutableError,
        AttributeError,
        "DenseStructuredTensor.grams: expected no assignment",
    ),
    "deleting from records": (
        lambda: delattr(RECORDS, "grams"),
        xt.errors.ImmutableError,
        AttributeError,
        "DenseStructuredTensor.grams: expected no deletion",
    ),
    "the length of a single record": (
        lambda: len(RECORDS[0]),
        xt.errors.DTypeError,
        TypeError,
        r"len\(DenseStructuredTensor\): expected records of rank 1 or more",
    ),
    "the default of an abstract method": (
        lambda: xt.TypeSpec.serialize(SPEC),
        xt.errors.AbstractMethodError,
        NotImplementedError,
        "Cup.Spec.serialize: expected an override of this abstract member",
    ),
}


@pytest.mark.parametrize("name", RAISES)
def test_an_error_is_ours_and_the_builtin(name):
    call, error, builtin, message = RAISES[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, xt.ExtensorError)
    assert isinstance(caught.value, builtin)
    assert getattr(xt.errors, error.__name__) is error


def test_what_is_missing_is_missing_to_python():
    assert not hasattr(SPEC, "grms")
    assert not hasattr(SPEC, "_grms")
    assert not hasattr(xt, "tensors")
    with pytest.raises(ImportError):
        exec("from extensor import tensors")
    assert copy.deepcopy(SPEC) == pickle.loads(pickle.dumps(SPEC)) == SPEC


def test_errors_of_the_laws_are_in_the_family_too():
    assert xt.errors.LawError is xt.testing.LawError
    assert issubclass(xt.errors.LawError, AssertionError)


ORIGINS = {
    None: '"extensor[sql]"',
    '{"url": "file:///home/me/extensor", "dir_info": {"editable": true}}': (
        '-e "/home/me/extensor[sql]"'
    ),
    '{"url": "file:///home/me/extensor", "dir_info": {}}': (
        '"extensor[sql] @ file:///home/me/extensor"'
    ),
    '{"url": "https://a.org/x.whl", "archive_info": {}}': '"extensor[sql] @ https://a.org/x.whl"',
    '{"url": "https://a.org/x.git", "vcs_info": {"vcs": "git", "commit_id": "ab12"}}': (
        '"extensor[sql] @ git+https://a.org/x.git@ab12"'
    ),
}


@pytest.mark.parametrize(("origin", "expected"), ORIGINS.items())
def test_an_extra_is_installed_from_where_extensor_was_installed(monkeypatch, origin, expected):
    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return origin

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())
    error = xt.errors.MissingDependencyError(path="x", fix='pip install "extensor[sql]"')
    assert str(error) == f"x. pip install {expected}"
