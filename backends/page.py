"""The loops of docs/backends.md, which its tests run."""

import pathlib
import re

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "backends.md"

BEFORE = """
import sys
import numpy as np
from backends import baskets

dataset = baskets.batches(sys.argv[1], 64)
"""


def example(framework):
    """Returns the program of the loop below a title."""
    page = PAGE.read_text(encoding="utf-8")
    [lines] = re.findall(rf"\*\*{framework}\.\*\*.*?```python\n(.*?)```", page, re.DOTALL)
    return BEFORE + lines
