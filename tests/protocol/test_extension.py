"""The two protocols: a class implements them by its methods, without base classes."""

import inspect
import json
import os
import shutil
import subprocess
import sys
import textwrap
import typing
from pathlib import Path

import pytest
import tensorflow as tf

import extensor as xt

ROOT = Path(__file__).parents[2]


class Described:
    def __tf_type_spec__(self):
        return None


class Dispatching:
    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        return NotImplemented


class Plain:
    pass


@pytest.mark.parametrize(
    ("protocol", "follows"),
    [(xt.ExtensionType, Described), (xt.DispatchableType, Dispatching)],
)
def test_a_class_implements_a_protocol_by_its_method_alone(protocol, follows):
    assert typing.Protocol in protocol.__bases__
    assert isinstance(follows(), protocol)
    assert issubclass(follows, protocol)
    assert isinstance(type("Sub", (follows,), {})(), protocol)
    for other in (Plain(), 3, None, tf.constant(1)):
        assert not isinstance(other, protocol)
    assert not issubclass(Plain, protocol)


def test_the_two_protocols_are_independent():
    assert not isinstance(Described(), xt.DispatchableType)
    assert not isinstance(Dispatching(), xt.ExtensionType)


def test_the_protocols_may_be_bases_too():
    class Based(xt.ExtensionType, xt.DispatchableType):
        def __tf_type_spec__(self):
            return tf.TensorSpec([])

    assert isinstance(Based(), xt.ExtensionType)
    assert isinstance(Based(), xt.DispatchableType)


def test_checks_of_tensorflow_do_not_change_the_protocol_class():
    with pytest.raises(TypeError, match="Unsupported type annotation"):

        class Crate(tf.experimental.ExtensionType):
            content: xt.ExtensionType

    assert isinstance(Described(), xt.ExtensionType)
    assert not isinstance(Plain(), xt.ExtensionType)


# DispatchableType.


def test_dispatch_types_default_to_none():
    class Any(xt.DispatchableType):
        pass

    class Some(xt.DispatchableType):
        __tf_dispatch_types__ = (tf.Tensor,)

    assert Any.__tf_dispatch_types__ is None
    assert type("Sub", (Any,), {}).__tf_dispatch_types__ is None
    assert Some.__tf_dispatch_types__ == (tf.Tensor,)
    assert type("Sub", (Some,), {}).__tf_dispatch_types__ == (tf.Tensor,)


def test_a_class_that_overrides_nothing_handles_no_operation():
    class Any(xt.DispatchableType):
        pass

    assert Any.__tf_dispatch__(tf.add, (Any(), 1), {}) is NotImplemented


@pytest.mark.parametrize(
    "function", [xt.DispatchableType.__tf_dispatch__, Dispatching.__tf_dispatch__]
)
def test_a_handler_takes_the_operation_and_its_arguments(function):
    assert list(inspect.signature(function).parameters) == ["op", "args", "kwargs"]


def interpreters():
    """Yields the supported versions of Python on this machine, and their paths."""
    yield pytest.param(sys.executable, id="this")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in ("3.10", "3.11", "3.12", "3.13"):
        found = [*pyenv.glob(f"versions/{version}.*/bin/python"), shutil.which(f"python{version}")]
        missing = pytest.mark.skipif(found == [None], reason=f"no Python {version} on this machine")
        yield pytest.param(str(found[0]), id=version, marks=missing)


# What a protocol's members are differs between 3.10, 3.11, 3.12 and 3.13. The file needs no
# TensorFlow, so any of them can run it.
ON_EVERY_PYTHON = """
    import runpy
    from typing import Protocol, runtime_checkable
    DispatchableType = runpy.run_path(PATH)["DispatchableType"]

    class Structural:
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return NotImplemented

    class Based(DispatchableType):
        pass

    class Typed(DispatchableType):
        __tf_dispatch_types__ = (int,)

    class Wider(DispatchableType, Protocol):
        def more(self): ...

    class Wide(Structural):
        def more(self): ...

    assert isinstance(Structural(), DispatchableType) and issubclass(Structural, DispatchableType)
    assert isinstance(Based(), DispatchableType) and Based.__tf_dispatch_types__ is None
    assert Typed.__tf_dispatch_types__ == (int,)
    assert not isinstance(1, DispatchableType) and not issubclass(int, DispatchableType)
    # A protocol that extends it requires one more method, and no attribute.
    Wider = runtime_checkable(Wider)
    assert isinstance(Wide(), Wider) and not isinstance(Structural(), Wider)
"""


@pytest.mark.parametrize("python", list(interpreters()))
def test_the_dispatch_protocol_is_the_same_on_every_python(python):
    code = f"PATH = {str(ROOT / 'src' / 'extensor' / '_dispatch' / 'dispatchable.py')!r}\n"
    code += textwrap.dedent(ON_EVERY_PYTHON)
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# Type checkers.

CHECKED = """
from typing import Any, Callable, ClassVar

import extensor as xt


class Masked:
    def __tf_type_spec__(self) -> xt.TypeSpec:
        raise NotImplementedError

    @classmethod
    def __tf_dispatch__(
        cls, op: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return NotImplemented


class Narrow(xt.DispatchableType):
    __tf_dispatch_types__: ClassVar[tuple[type, ...] | None] = (int,)


class Plain:
    pass


described: xt.ExtensionType = Masked()
dispatching: xt.DispatchableType = Masked()
narrow: xt.DispatchableType = Narrow()
wrong: xt.ExtensionType = Plain()  # error
wrong_too: xt.DispatchableType = Plain()  # error
"""


@pytest.mark.whole("starts a process")
def test_pyright_takes_a_class_that_follows_the_protocols_and_no_other(tmp_path):
    sample = tmp_path / "sample.py"
    sample.write_text(CHECKED)
    config = {
        "include": [str(sample)],
        "extraPaths": [str(ROOT / "src")],
        "stubPath": str(ROOT / "typings"),
        "pythonVersion": "3.10",
        "reportMissingModuleSource": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = {d["range"]["start"]["line"] for d in found if d["severity"] == "error"}
    expected = {n for n, line in enumerate(CHECKED.splitlines()) if line.endswith("# error")}
    assert errors == expected, [d["message"] for d in found]
