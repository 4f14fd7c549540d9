"""The examples on the pages of Spanner, Firestore and the Realtime Database run as they are."""

import re
from pathlib import Path

import pytest

import extensor as xt
from tests.formats import emulators
from tests.formats.test_realtime_database import server  # noqa: F401

pytestmark = [
    pytest.mark.whole("needs a server"),
    pytest.mark.together("servers"),
]

PAGES = Path(__file__).parents[2] / "docs/formats"
RECIPES = [{"title": "tea", "minutes": 5}, {"title": "pie", "minutes": 60}]


def example(page, number=0):
    """Returns the source of an example of a page."""
    return re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)[number]


def run(source):
    names = {"__name__": "__main__"}
    exec(compile(source, "example", "exec"), names)
    return names


def test_spanner(monkeypatch):
    test_spanner = pytest.importorskip("tests.formats.test_spanner")
    columns = {"title": "STRING(MAX)", "minutes": "INT64"}
    read = columns | {"steps": "ARRAY<STRING(MAX)>"}
    written = {name: kind for name, kind in read.items() if name != "minutes"}
    database = test_spanner.new_database(
        emulators.spanner(),
        test_spanner.create("recipes", read, "title"),
        test_spanner.create("quick_recipes", written, "title"),
    )
    rows = [{**row, "steps": ["stir"] * i} for i, row in enumerate(RECIPES, 1)]
    xt.write_spanner(xt.struct.constant(rows), "recipes", database)
    monkeypatch.setenv("SPANNER_EMULATOR_HOST", emulators.spanner())
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    monkeypatch.setenv("SPANNER_DISABLE_BUILTIN_METRICS", "true")
    source = example("spanner.md")
    assert '.database("database")' in source
    run(source.replace('.database("database")', f'.database("{database.database_id}")'))
    found = xt.read_spanner(database, "SELECT * FROM quick_recipes")
    assert found.to_py() == [{"title": "tea", "steps": ["stir"]}]


def test_firestore(monkeypatch):
    test_firestore = pytest.importorskip("tests.formats.test_firestore")
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", emulators.firestore())
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    client = test_firestore.client(emulators.firestore())
    xt.write_firestore(xt.struct.constant(RECIPES), client.collection("recipes"))
    run(example("firestore.md"))
    found = xt.read_firestore(client.collection("quick_recipes"))
    assert found.to_py() == [{"minutes": 5, "title": "tea"}]


def test_realtime_database(server):  # noqa: F811
    firebase_admin = pytest.importorskip("firebase_admin")
    url = f"http://{server.address}?ns=project"
    app = firebase_admin.initialize_app(options={"projectId": "project", "databaseURL": url})
    try:
        users = firebase_admin.db.reference("users")
        users.set({"ann": {"age": 5}, "bob": {"age": 6}})
        run(example("firestore.md", 1))
        assert firebase_admin.db.reference("copy").get() == users.get()
    finally:
        firebase_admin.delete_app(app)
