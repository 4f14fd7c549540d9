"""`xt.patches()`: it lists every change of TensorFlow and Keras, and only changes that exist."""

import re
import textwrap
from pathlib import Path

import pytest

import extensor as xt

# Registries for users with public functions. extensor registers its own types, and a handler of
# tf.compat.v1.batch_gather by tf.experimental.dispatch_for_api.
REGISTRIES = """
    tensorflow.python.util.dispatch._TYPE_BASED_DISPATCH_SIGNATURES
    tensorflow.python.util.dispatch._is_instance_checker_cache
    tensorflow.python.framework.type_spec_registry._NAME_TO_TYPE_SPEC
    tensorflow.python.framework.type_spec_registry._TYPE_SPEC_TO_NAME
    keras.src.saving.object_registration.GLOBAL_CUSTOM_NAMES
    keras.src.saving.object_registration.GLOBAL_CUSTOM_OBJECTS
"""

CHANGED = """
import functools, importlib, sys
import keras, tensorflow as tf
from tests.patches.snapshot import changed, snapshot

# TensorFlow itself imports some modules when they are first used.
for target in {targets!r}:
    parts = target.split(".")
    for end in range(2, len(parts)):
        try:
            importlib.import_module(".".join(parts[:end]))
        except ImportError:
            break

before = snapshot()
assert changed(before, snapshot()) == {{}}
import extensor as xt, extensor.keras, extensor.serving, extensor.types
{more}
after = snapshot()

def place(target):
    name, _, last = target.rpartition(".")
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        module = tf if parts[0] == "tf" and end == 1 else sys.modules.get(".".join(parts[:end]))
        if module is not None:
            break
    owner = functools.reduce(getattr, parts[end:], module)
    value = id(getattr(owner, last))
    return value if value in found else (id(owner), last)

found = changed(before, after)
registries = set(map(place, {registries!r}.split()))
told = {{place(patch.target): patch.target for patch in xt.patches()}}
print("not told:", sorted(found[key] for key in found.keys() - told.keys() - registries))
print("not changed:", sorted(told[key] for key in told.keys() - found.keys()))
print(len(told), "told")
"""


def compared(run_python, more="", **env):
    code = CHANGED.format(
        targets=[patch.target for patch in xt.patches() if patch.target.startswith("tensorflow")],
        registries=REGISTRIES,
        more=textwrap.dedent(more),
    )
    untold, unchanged, count = run_python(code, env=env).stdout.splitlines()[-3:]
    return untold, unchanged, int(count.split()[0])


@pytest.mark.whole("starts a process")
def test_the_table_equals_the_changes_of_the_import(run_python):
    untold, unchanged, count = compared(run_python)
    assert (untold, unchanged) == ("not told: []", "not changed: []")
    assert count > 650


def test_one_function_gets_a_handler_of_tensorflows_own_dispatch(run_python):
    run_python("""
        import keras, tensorflow as tf
        from tensorflow.python.util import dispatch

        def counts():
            table = dispatch._TYPE_BASED_DISPATCH_SIGNATURES
            return {function: len(handlers) for function, handlers in table.items()}

        before = counts()
        import extensor as xt, extensor.keras, extensor.serving, extensor.types
        more = {f: n - before.get(f, 0) for f, n in counts().items() if n != before.get(f, 0)}
        assert more == {tf.compat.v1.batch_gather: 1}, more
    """)


@pytest.mark.whole("starts a process")
def test_a_change_that_is_not_in_the_table_is_found(run_python):
    untold, _, _ = compared(
        run_python,
        """
        tf.type_spec_from_value.__code__ = (lambda value: value).__code__
        tf.Module.trainable_variables = None
        tf.float13 = 1
        """,
    )
    for name in ("type_spec_from_value", "Module.trainable_variables", "tensorflow.float13"):
        assert name in untold, untold


def test_each_row_has_target_reason_and_probe():
    source = Path(xt.__file__).parents[1]
    for patch in xt.patches():
        assert patch.reason.endswith("."), patch
        assert patch.probe, patch
        is_keras = patch.target.startswith("keras")
        assert patch.versions == (("3.10", "3.15") if is_keras else ("2.20", "2.21"))
        file, line = patch.defined_in.split(":")
        text = (source / file).read_text().splitlines()[int(line) - 1 : int(line) + 9]
        assert re.search(r"^(@|def )", "\n".join(text), re.MULTILINE), patch
        assert repr(patch) == f"<{patch.target}: {patch.reason} ({patch.defined_in})>"
    assert xt.patches() is not xt.patches(), "a caller could change the table"


def test_the_page_lists_all_changes_that_are_no_dispatch():
    import extensor.keras  # noqa: F401 - changes Keras

    reasons = {}
    for patch in xt.patches():
        if patch.probe not in ("dispatch", "operators"):
            reasons.setdefault(patch.target, []).append(patch.reason)
    page = (Path(__file__).parents[2] / "docs" / "patches.md").read_text()
    listed = re.findall(r"^\| `(\S+)` \| .+ \|$", page, re.MULTILINE)
    assert sorted(listed) == sorted(reasons)
    for target, why in reasons.items():
        assert f"| `{target}` | {' '.join(why)} |" in page


def test_the_targets_of_functions_and_operators_are_public_names():
    targets = {patch.target for patch in xt.patches()}
    assert {"tf.add", "tf.einsum", "tf.Tensor.__add__", "tf.GradientTape.jacobian"} <= targets


@pytest.mark.whole("starts a process")
def test_no_module_changes_tensorflow_when_it_is_imported(run_python):
    run_python("""
    import importlib, pkgutil, sys, types
    import keras, tensorflow as tf
    from tests.patches.snapshot import changed, snapshot

    # Replaces the module that extensor/__init__.py calls last.
    stub = sys.modules["extensor._patches.install"] = types.ModuleType("install")
    stub.install, stub.patches, stub.install_keras = lambda: None, list, list
    before = snapshot()
    import extensor

    names = [m.name for m in pkgutil.walk_packages(extensor.__path__, "extensor.")]
    assert "extensor._patches._tf_loops" in names and "extensor._keras.model" in names
    names.remove("extensor.__main__")  # its import runs the command
    for name in names:
        importlib.import_module(name)
    registries = (
        "object_registration", "type_spec_registry",
        # The handler of tf.compat.v1.batch_gather.
        "dispatch._TYPE_BASED_DISPATCH_SIGNATURES", "dispatch._is_instance_checker_cache",
    )
    found = changed(before, snapshot()).values()
    found = [n for n in found if n.split(".")[-2] not in registries
             and ".".join(n.split(".")[-2:]) not in registries]
    assert found == [], found
    """)


AGAIN = """
import importlib, sys, threading, warnings
import tensorflow as tf
from tests.patches.snapshot import changed, snapshot

class kind:
    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        return "answered"

import extensor as xt
first = xt.patches()
before = snapshot()
"""


@pytest.mark.whole("starts a process")
def test_reloading_installs_no_patch_twice(run_python):
    run_python(
        AGAIN
        + textwrap.dedent("""
        xt = importlib.reload(xt)
        from extensor._patches.install import install
        install()
        assert xt.patches() == first
        assert changed(before, snapshot()) == {}
        """)
    )


@pytest.mark.whole("starts a process")
def test_modules_that_are_imported_again_replace_their_patches(run_python):
    run_python(
        AGAIN
        + textwrap.dedent("""
        from tensorflow.python.framework import composite_tensor, ops, tensor_conversion_registry
        from tensorflow.python.autograph.core import config
        from tensorflow.python.saved_model import nested_structure_coder
        from tensorflow.python.ops import cond_v2

        def depth(function):
            count = 0
            while hasattr(function, "_extensor_plain"):
                function, count = function._extensor_plain, count + 1
            return count

        def state():
            registry = tensor_conversion_registry._tensor_conversion_func_registry
            gradient = ops.gradient_registry._registry["EagerPyFunc"]["type"]
            return (
                len(nested_structure_coder._codecs),
                {key: len(items) for key, items in registry.items()},
                list(map(str, config.CONVERSION_RULES)),
                depth(tf.add), depth(tf.Tensor.__add__), depth(tf.GradientTape.jacobian),
                depth(cond_v2._make_indexed_slices_indices_types_match), depth(gradient),
                depth(composite_tensor.CompositeTensor.__subclasshook__),
                tf.add.__code__.co_varnames, tf.add.__code__.co_firstlineno,
            )

        expected = state()
        assert expected[3:9] == (1,) * 6, expected
        for _ in range(2):
            for name in [n for n in sys.modules if n.partition(".")[0] == "extensor"]:
                del sys.modules[name]
            import extensor as xt
            assert state() == expected
            assert [p.target for p in xt.patches()] == [p.target for p in first]
            fresh = type("fresh", (kind,), {})
            assert tf.add(fresh(), 1) == tf.constant(1) + fresh() == "answered"
            records = xt.DenseStructuredTensor([2], {"a": [1, 2]})
            [batch] = tf.data.Dataset.from_tensor_slices(records).batch(2)
            assert batch["a"].numpy().tolist() == [1, 2]
            assert tf.function(lambda x: x)(records)["a"].shape == [2]
            try:
                tf.convert_to_tensor(records)
            except xt.ExtensorError:
                pass
            else:
                raise AssertionError
        """)
    )


@pytest.mark.whole("starts a process")
def test_threads_may_import_at_once_and_call_first_at_once(run_python):
    run_python(
        """
        import sys, threading
        import tensorflow as tf
        sys.setswitchinterval(1e-6)

        class kind:
            @classmethod
            def __tf_dispatch__(cls, op, args, kwargs):
                return "answered"

        barrier, found, failed = threading.Barrier(8), [], []

        def work(i):
            try:
                barrier.wait()
                # Imports of several modules, beside calls with plain tensors.
                tf.add(1, 2)
                __import__(["extensor", "extensor.types", "extensor.data"][i % 3])
                barrier.wait()
                fresh = type("fresh", (kind,), {})
                names = ["add", "multiply", "reduce_sum", "sqrt", "concat", "stack", "einsum"]
                for name in names:
                    tf.add(1.0, 2.0), tf.constant(1) + 1
                    value = fresh()
                    args = {"concat": ([value], 0), "stack": ([value],), "einsum": ("i", value),
                            "add": (value, 1), "multiply": (value, 1)}.get(name, (value,))
                    found.append(getattr(tf, name)(*args))
                found.append(tf.constant(1) + fresh())
            except BaseException as error:
                failed.append(repr(error))
                barrier.abort()

        threads = [threading.Thread(target=work, args=[i]) for i in range(8)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert not failed, failed
        assert found == ["answered"] * 64
        import extensor as xt
        assert not hasattr(tf.add._extensor_plain, "_extensor_plain")
        targets = [(patch.target, patch.reason) for patch in xt.patches()]
        assert len(targets) == len(set(targets))
        """
    )


@pytest.mark.parametrize(
    "target",
    [
        "tensorflow.python.ops.cond_v2._make_indexed_slices_indices_types_match",
        "tf.GradientTape.jacobian",
    ],
)
def test_a_name_that_tensorflow_lacks_is_in_the_error(run_python, target):
    owner, _, name = target.rpartition(".")
    run_python(f"""
    import tensorflow as tf
    from tensorflow.python.ops import cond_v2
    delattr({"cond_v2" if "cond_v2" in owner else owner}, {name!r})
    try:
        import extensor
    except ImportError as error:
        assert type(error).__name__ == "MissingDependencyError", error
        assert {target!r} in str(error) and tf.__version__ in str(error), error
    else:
        raise AssertionError
    """)
