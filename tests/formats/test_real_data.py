"""Data of public npm packages, as they are: in, through Parquet, and back equal."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import extensor as xt

# Pinned, so that a new release does not change a test.
VERSIONS = {
    "world-countries": "5.1.0",
    "web-features": "3.40.0",
    "world-atlas": "2.0.2",
    "@mdn/browser-compat-data": "8.1.9",
}


@pytest.fixture(scope="session")
def package():
    """A function that returns the folder of an npm package, in a cache outside the repository."""
    cache = Path(tempfile.gettempdir()) / "extensor-npm"

    def installed(name):
        folder = cache / f"{name.replace('/', '-')}-{VERSIONS[name]}"
        found = folder / "node_modules" / name
        if found.is_dir():
            return found
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed; the data is in npm packages")
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        command += ["--prefix", str(folder), f"{name}@{VERSIONS[name]}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"npm did not install {name}: {done.stderr[-200:]}")
        return found

    return installed


def loaded(path):
    return json.loads(path.read_text(encoding="utf-8"))


def pairs(values):
    """A dict whose keys are data, as a list of records."""
    return [{"key": key, "value": value} for key, value in values.items()]


def equal(plain, rows):
    """Whether records have the values of JSON: floats as float32, missing keys as None."""
    if isinstance(rows, dict):
        return set(rows) <= set(plain) and all(
            equal(value, rows.get(name)) for name, value in plain.items()
        )
    if isinstance(rows, list):
        return len(plain) == len(rows) and all(map(equal, plain, rows))
    if isinstance(rows, float):
        return plain == pytest.approx(rows, rel=1e-6)
    return (
        plain is rows
        or (type(plain), plain) == (type(rows), rows)
        or (isinstance(rows, int) and not isinstance(rows, bool) and plain == rows)
    )


def through_parquet(records, folder, nulls):
    xt.write_parquet(records, folder / "file.parquet")
    return xt.read_parquet(folder / "file.parquet", nulls=nulls)


def through_arrow(records, folder, nulls):
    xt.write_arrow(records, folder / "file.arrow")
    return xt.read_arrow(folder / "file.arrow", nulls=nulls)


def check(rows, folder, through=through_parquet, **policy):
    records = xt.struct.constant(rows, **policy)
    plain = records.to_py()
    assert equal(plain, rows)
    again = through(records, folder, policy.get("nulls"))
    assert xt.spec_of(again) == xt.spec_of(records)
    assert again.to_py() == plain
    return records


@pytest.mark.whole("saves and loads models")
def test_geometries_whose_depth_depends_on_their_type(package, tmp_path):
    topology = loaded(package("world-atlas") / "countries-110m.json")
    rows = topology["objects"]["countries"]["geometries"]
    records = check(rows, tmp_path, nulls="mask", conflicts="union")
    arcs = records["arcs"]
    assert arcs.names == ("list3", "list2", "null")
    many = arcs.is_variant("list3").numpy().tolist()
    assert many == [row["type"] == "MultiPolygon" for row in rows]


@pytest.mark.slow
def test_countries_with_maps_and_nulls(package, tmp_path):
    rows = loaded(package("world-countries") / "countries.json")
    check(rows, tmp_path, nulls="mask")
    for row in rows:
        row["languages"] = pairs(row["languages"])
        row["currencies"] = pairs(row["currencies"])
        row["translations"] = pairs(row["translations"])
        row["name"]["native"] = pairs(row["name"]["native"])
    records = check(rows, tmp_path, nulls="mask")
    assert records["languages.value"].to_py()[0] == [b"Dutch", b"Papiamento"]


@pytest.mark.slow
def test_features_of_browsers_with_a_text_or_a_bool(package, tmp_path):
    rows = pairs(loaded(package("web-features") / "data.json")["features"])
    for row in rows:
        status = row["value"].get("status") or {}
        status["by_compat_key"] = pairs(status.get("by_compat_key") or {})
    records = check(rows, tmp_path, nulls="mask", conflicts="union")
    assert records["value.status.baseline"].values.names == ("string", "bool", "null")


@pytest.mark.slow
def test_features_as_they_are_with_a_field_for_each_key(package, tmp_path):
    features = loaded(package("web-features") / "data.json")["features"]
    features = dict(list(features.items())[:100])  # more than 10,000 fields
    # Some of the fields are records without fields, which Parquet does not have.
    check([features], tmp_path, through_arrow, nulls="mask", conflicts="union")


def compat(tree, path=()):
    """Yields a record for each feature in a tree of features."""
    for name, inner in tree.items():
        if name == "__compat":
            yield {"path": ".".join(path), **inner}
        elif isinstance(inner, dict):
            yield from compat(inner, (*path, name))


@pytest.mark.slow
def test_support_by_browsers_with_one_statement_or_a_list(package, tmp_path):
    data = loaded(package("@mdn/browser-compat-data") / "data.json")
    rows = list(compat({k: v for k, v in data.items() if k not in ("__meta", "browsers")}))
    assert len(rows) > 10_000
    records = check(rows, tmp_path, nulls="mask", conflicts="union")
    many = records["support.chrome"].values.is_variant("list").numpy().tolist()
    assert many == [isinstance(row["support"].get("chrome"), list) for row in rows]


@pytest.mark.whole("saves and loads models")
def test_releases_of_browsers(package, tmp_path):
    rows = pairs(loaded(package("@mdn/browser-compat-data") / "data.json")["browsers"])
    for row in rows:
        row["value"]["releases"] = pairs(row["value"]["releases"])
    records = check(rows, tmp_path, nulls="mask")
    assert records["value.name"].to_py()[0] == b"Bun"
