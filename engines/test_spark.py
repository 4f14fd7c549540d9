"""Spark with two threads, and with two processes that are a cluster."""

import sys

import pytest

from engines.page import run

SETUP = """
    os.environ["PYSPARK_PYTHON"] = {python!r}
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema

    session = SparkSession.builder.master({master!r}).config("spark.ui.enabled", "false")
    session = session.config("spark.driver.host", "127.0.0.1")
    session = session.config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    spark = session.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
"""


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,1024]"])
@pytest.mark.parametrize(("model", "processes"), [("file", 0), ("function", 2)])
def test_spark(master, model, processes, tmp_path):
    setup = SETUP.format(master=master, python=sys.executable)
    assert run("Spark", setup, model, tmp_path, 400) == processes
