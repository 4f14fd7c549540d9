"""FilePath: what functions take as the path of a file."""

from __future__ import annotations

import os

FilePath = str | os.PathLike[str]
"""A path or URL of a file."""
