"""The README's line of code, run as it stands."""

import re
from pathlib import Path

import pytest
import tensorflow as tf

import extensor as xt

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def line() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return code


def test_the_line_has_at_most_25_lines_of_code(line: str) -> None:
    assert sum(bool(text.strip()) for text in line.splitlines()) <= 25


def test_the_line_trains_and_serves(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(line.replace("epochs=5", "epochs=1"), names)
    (loss,) = names["model"].history.history["loss"]
    assert loss < 4.5  # a guess by frequency alone stays near 4.5
    served = tf.saved_model.load(str(tmp_path / "model"))
    columns = ["cities.geonameid", "cities.name", "cities.names", "cities.population"]
    cities = xt.read_parquet("countries.parquet", columns)["cities"][:3]
    probabilities = served.serve(cities.values)
    assert probabilities.shape == [len(cities["name"].flat_values), 244]
    tf.debugging.assert_near(tf.reduce_sum(probabilities, axis=1), 1.0, atol=1e-4)
