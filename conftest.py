"""What every test, and every example in a docstring or a page, finds ready."""

import doctest
import functools
import gc
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping

import pytest
from hypothesis import HealthCheck, settings

from tests.prepared_process import Server

pytest_plugins = ["tests.tiers"]

# The imports and the collected tests are millions of objects that stay. The collector would take a
# seventh of the time until the first test; `_frozen_imports` sets the thresholds of the tests.
gc.set_threshold(100_000, 50, 1000)

# TensorFlow reads both when it is first imported: no log lines between the results, and the same
# device on every machine.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

# The first TensorFlow call of a kind takes a thousand times longer than the next ones, so neither a
# deadline nor a judgement on speed means anything.
_ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# "default" draws the same few examples on every run, so that a red build has one cause: the change.
settings.register_profile("default", max_examples=20, derandomize=True, **_ANY_SPEED)
# "quick" begins with the same ones; the rest of the tests repeats the properties with all of them.
settings.register_profile("quick", settings.get_profile("default"), max_examples=5)
# "all" looks for news.
settings.register_profile("all", max_examples=500, print_blob=True, **_ANY_SPEED)
settings.load_profile(os.environ.get("EXTENSOR_HYPOTHESIS_PROFILE", "default"))


# The configuration of Sphinx writes files when it is imported. Only pyright reads the programs.
collect_ignore = ["docs/conf.py", "tests/typed"]


class _FencedDocTestParser(doctest.DocTestParser):
    """Reads examples in Markdown, where a closing fence ends the expected output."""

    def parse(self, string, name="<string>"):
        # Blank lines in place of the fences keep the line numbers right.
        return super().parse(re.sub(r"(?m)^[ \t]*```.*$", "", string), name)


# pytest reads text files with this class and offers no other way in. Docstrings are not affected.
doctest.DocTestParser = _FencedDocTestParser


def pytest_itemcollected(item: pytest.Item) -> None:
    """Gives an example no name that it does not import, so that readers can paste it."""
    if (example := getattr(item, "dtest", None)) is not None:
        example.globs = {"__name__": "__main__"}


@pytest.fixture(autouse=True)
def _folder_of_an_example(request: pytest.FixtureRequest) -> None:
    """Examples write to the current folder: each has one of its own."""
    if hasattr(request.node, "dtest"):
        folder = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """Starts every test with the same seeds: first weights and random inputs never differ."""
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True)
def _same_main() -> Iterator[None]:
    """Checks that a test does not replace the module `__main__`, as IPython's shell does.

    AutoGraph looks there for the source of the functions in examples.
    """
    main = sys.modules["__main__"]
    yield
    replaced = sys.modules["__main__"] is not main
    sys.modules["__main__"] = main
    assert not replaced, "The test replaced the module __main__. Run it in a process of its own."


@pytest.fixture(autouse=True, scope="session")
def _frozen_imports() -> None:
    """Excludes what the imports created from garbage collection.

    The imports create about a million objects that live to the end of the process. The collector
    skips frozen objects; without this it takes a sixth of the time of the tests.
    """
    import tensorflow as tf

    import extensor  # noqa: F401

    # A GPU multiplies matrices with the digits of a CPU then.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    gc.freeze()
    gc.set_threshold(20_000, 20, 10)


@pytest.fixture(scope="module")
def frozen_objects() -> None:
    """Excludes what other tests keep from garbage collection.

    These are millions of objects at last, so that each `gc.collect()` of a test takes seconds.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def variable_scope_as_it_was():
    """Undoes what an error in tf.map_fn, tf.scan or a fold leaves behind in a graph."""
    import tensorflow as tf

    yield
    with tf.compat.v1.get_default_graph().as_default():
        tf.compat.v1.get_variable_scope().set_caching_device(None)


def _run_python(
    code: str,
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
    check: bool = True,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a process of its own, which has not imported extensor.

    Args:
        code: Python source; common indentation is removed.
        env: Variables to set on top of the current environment.
        timeout: Seconds after which the process is killed and the test fails.
        check: Whether a non-zero exit is an error.
        fresh: Whether the process starts without any import. By default TensorFlow, Keras and
            pyarrow are imported already, which saves seconds. Needed where a test depends on the
            order of imports, or on a variable that one of these reads when it is imported.

    Returns:
        The process, with its output as text.

    Raises:
        AssertionError: with the output, if the process failed or did not end in time.
    """
    if not fresh and any(not name.startswith("EXTENSOR_") for name in env or ()):
        raise AssertionError(f"These variables may be read by an import; pass fresh=True: {env}")
    code, environment = textwrap.dedent(code), {**os.environ, **(env or {})}
    try:
        if fresh:
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        else:
            done = _server().run(code, environment, timeout)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(
            f"The process was still running after {timeout} s.\n"
            f"--- stdout\n{_text(error.stdout)}\n--- stderr\n{_text(error.stderr)}"
        ) from None
    if check and done.returncode != 0:
        raise AssertionError(
            f"The process ended with exit status {done.returncode}.\n"
            f"--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
        )
    return done


@functools.cache
def _server() -> Server:
    return Server()


def _text(output: bytes | str | None) -> str:
    # TimeoutExpired holds bytes even where text was asked for.
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


@pytest.fixture(scope="session")
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_python(code, env=None, timeout=300, check=True, fresh=False)`: a process of its own."""
    return _run_python
