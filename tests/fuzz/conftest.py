"""Marks the tests of this folder."""

import pytest

pytestmark = pytest.mark.whole("damaged files, killed processes, threads: minutes")
