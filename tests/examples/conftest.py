"""Marks the tests of this folder."""

import pytest

pytestmark = pytest.mark.whole("trains the models of examples/ and starts servers")
