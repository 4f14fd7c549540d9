"""Errors: each is of extensor's family, and also the builtin that users catch."""

import ast
import builtins
import copy
import pathlib
import pickle

import pytest
import tensorflow as tf

import extensor as xt

SOURCE = pathlib.Path(xt.__file__).parent
BUILTIN = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, Exception)
}
# Python and TensorFlow ask for private names all the time, and want no sentence.
MISSING_PRIVATE_NAMES = {
    ("_anonymous.py", "__getattr__"),
    ("_declare/derived_spec.py", "__getattr__"),
}
# Some of the raises below these are what TensorFlow and Keras expect.
QUARANTINE = ("_tf", "_keras")


def bare_raises(path):
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Raise) or node.exc is None:
                continue
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in BUILTIN:
                yield str(path.relative_to(SOURCE)), function.name


def test_no_bare_builtin_is_raised_on_purpose():
    paths = [p for p in SOURCE.rglob("*.py") if p.relative_to(SOURCE).parts[0] not in QUARANTINE]
    assert len(paths) > 100
    assert {found for path in paths for found in bare_raises(path)} == MISSING_PRIVATE_NAMES


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
