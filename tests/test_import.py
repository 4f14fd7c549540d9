"""What `import extensor` loads, and what it says where TensorFlow is missing."""

import json
import re
import textwrap

import pytest

pytestmark = pytest.mark.whole("starts fresh processes")

# Where pandas is installed, TensorFlow's own import loads it, and with it pyarrow. Without it the
# whole of pyarrow is loaded by us.
NO_PANDAS = """
import sys
sys.modules["pandas"] = None
"""
PANDAS = {"with pandas": "", "without pandas": NO_PANDAS}

LOADED = """
import json, sys
import tensorflow
before = set(sys.modules)
import extensor
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.fixture(scope="module")
def loaded(run_python):
    """What the import of extensor loaded, by whether pandas can be imported."""
    return {
        pandas: json.loads(run_python(block + LOADED, fresh=True).stdout)
        for pandas, block in PANDAS.items()
    }


# Keras, pandas and their kin take longer than everything else together; a driver is the business
# of those who read from its database.
NOT_LOADED = (
    *("keras", "extensor.keras", "pandas", "pyarrow.dataset", "pyarrow.pandas_compat"),
    *("pyarrow.flight", "polars", "duckdb", "psycopg", "psycopg2", "sqlite3", "sqlalchemy"),
    *("adbc_driver_manager", "adbc_driver_postgresql", "adbc_driver_sqlite"),
    *(
        "extensor.testing",
        "hypothesis",
        "pytest",
        "google.cloud.spanner",
        "google.cloud.firestore",
        "ptars",
    ),
)


@pytest.mark.parametrize("pandas", PANDAS)
def test_import_loads_nothing_that_only_one_module_needs(loaded, pandas):
    inside = tuple(f"{name}." for name in NOT_LOADED)
    assert [m for m in loaded[pandas] if m in NOT_LOADED or m.startswith(inside)] == []


def test_the_list_has_what_an_import_loads(loaded):
    for name in ("extensor._protocol.spec", "extensor._arrow.buffers"):
        assert all(name in modules for modules in loaded.values())


def error_on_import(run_python, before):
    code = """
    try:
        import extensor
    except ImportError as error:
        from extensor.errors import MissingDependencyError
        assert type(error) is MissingDependencyError, repr(error)
        print(error)
    else:
        raise AssertionError("extensor was imported")
    """
    return run_python(textwrap.dedent(before) + textwrap.dedent(code), fresh=True).stdout.strip()


def test_without_tensorflow_the_error_says_what_to_install(run_python):
    message = error_on_import(run_python, 'import sys; sys.modules["tensorflow"] = None\n')
    assert "extensor: expected TensorFlow 2.20 or newer, got no module tensorflow. " in message
    assert re.search(
        r'Install it: pip install .*\[tf\]", or .*\[tf-cpu\]" without a GPU\.$', message
    )


@pytest.mark.parametrize("version", ["1.15.0", "2.9.3", "2.19.1"])
def test_with_an_old_tensorflow_the_error_says_what_to_install(run_python, version):
    before = f"""
    import sys, types
    sys.modules["tensorflow"] = types.ModuleType("tensorflow")
    sys.modules["tensorflow"].__version__ = {version!r}
    """
    message = error_on_import(run_python, before)
    assert message.startswith(
        f"extensor: expected TensorFlow 2.20 or newer, got TensorFlow {version}"
    )
    assert "[tf]" in message


def test_a_tensorflow_that_is_there_but_broken_keeps_its_own_error(run_python, tmp_path):
    (tmp_path / "tensorflow.py").write_text("import a_part_of_tensorflow_that_is_missing\n")
    code = """
    try:
        import extensor
    except ModuleNotFoundError as error:
        assert error.name == "a_part_of_tensorflow_that_is_missing"
    else:
        raise AssertionError("extensor was imported")
    """
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + textwrap.dedent(code)
    run_python(code, fresh=True)


def test_tensorflow_takes_records_though_no_public_module_was_used(run_python):
    run_python(
        """
        import sys
        import tensorflow as tf
        import extensor as xt

        records = xt.DenseStructuredTensor([2], {"x": [1, 2]})
        assert tf.concat([records, records], 0).to_py() == [{"x": n} for n in (1, 2, 1, 2)]
        public = {"authoring", "data", "dispatch", "nest", "struct", "keras", "serving", "types"}
        assert not {f"extensor.{name}" for name in public} & set(sys.modules)
        """
    )
