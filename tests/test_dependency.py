"""A package that is not installed is an error that names the extra."""

import pytest

from extensor import errors
from extensor._dependency import needed


def test_a_module_that_is_installed_is_returned():
    assert needed("json.decoder", "json", "read_json").JSONDecoder


def test_a_missing_module_names_the_function_and_the_extra():
    message = "read_spanner: expected the module no_such_cloud.spanner, got No module named .*"
    with pytest.raises(ImportError, match=message + r"extensor\[spanner\]") as caught:
        needed("no_such_cloud.spanner", "spanner", "read_spanner")
    assert isinstance(caught.value, errors.MissingDependencyError)
