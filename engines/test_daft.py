"""Daft in the process that calls it."""

import pytest

from engines.page import run

SETUP = """
    import daft
    from daft.functions import to_struct
"""


@pytest.mark.parametrize("model", ["file", "function"])
def test_daft(model, tmp_path):
    run("Daft", SETUP, model, tmp_path, 300)
