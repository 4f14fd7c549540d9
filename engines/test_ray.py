"""Ray Data with two workers."""

import pytest

from engines.page import run

SETUP = """
    import ray
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False)
"""


@pytest.mark.parametrize(("model", "processes"), [("file", 0), ("function", 2)])
def test_ray_data(model, processes, tmp_path):
    assert run("Ray Data", SETUP, model, tmp_path, 300) == processes
