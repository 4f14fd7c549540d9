"""Beam's own runners: in one process, and with two worker processes."""

import pytest

from engines.page import run

SETUP = """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    options = PipelineOptions({options!r}, save_main_session=False)
"""


@pytest.mark.parametrize("model", ["file", "function"])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    ],
    ids=["in_memory", "two_workers"],
)
def test_beam(options, model, tmp_path):
    run("Beam", SETUP.format(options=options), model, tmp_path, 300)
