"""Every row of the matrix has its tests, and docs/apis.md shows the rows."""

import importlib
from pathlib import Path

import pytest

from tests.apis import table
from tests.apis.kinds import KINDS
from tests.apis.matrix import AS_IS, BY_NAME, ROWS, TESTED

for _path in Path(__file__).parent.glob("test_*.py"):
    if _path != Path(__file__):
        importlib.import_module(f"tests.apis.{_path.stem}")


def test_a_row_is_listed_once():
    assert len(BY_NAME) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_a_test_for_every_kind_in_every_mode(row):
    assert TESTED.get(row.name) == {(kind.name, mode) for kind in KINDS for mode in row.modes}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_an_implementation_or_a_reason_and_an_alternative(row):
    assert row.how == AS_IS or row.how.startswith(("through `xt.", "not possible: "))
    assert row.how == AS_IS or row.note


def test_the_table_of_the_page_is_current():
    page = table.PAGE.read_text()
    assert page == table.written(page), "run: python -m tests.apis.table"
