"""The examples of docs/command-line.md print what the page says."""

import re
from pathlib import Path

import pytest
import tensorflow as tf

import extensor as xt
from extensor_command.main import main

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
RECIPES = """\
{"title": "Tea", "steps": [{"text": "boil", "minutes": 5}]}
{"title": "Bread", "steps": [{"text": "mix", "minutes": 10}, {"text": "bake", "minutes": 45}]}
{"title": "Tea", "steps": []}
"""
NEW = """\
{"title": "Pie", "steps": []}
{"title": "Pie", "steps": []}
{"title": "Soup", "steps": []}
"""
SHOP = """\
import tensorflow as tf
import extensor as xt

@xt.extension_type
class Price:
    amount: tf.Tensor
    currency: str

price = Price([1.5, 2.0], "EUR")
"""


def test_the_examples_print_what_the_page_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "recipes.jsonl").write_text(RECIPES)
    (tmp_path / "new.jsonl").write_text(NEW)
    (tmp_path / "shop.py").write_text(SHOP)
    minutes = tf.RaggedTensorSpec([None, None], tf.float32)
    spec = xt.DenseStructuredTensorSpec([None], {"minutes": minutes})
    total = xt.serving.flat_signature(lambda r: tf.reduce_sum(r["minutes"], axis=1), spec)
    xt.serving.save(tf.Module(), "total/1", total)
    examples = PAGE.read_text().split("## Examples")[1]
    block = re.search(r"```console\n(.*?)```", examples, re.DOTALL)[1]
    commands = re.findall(r"^\$ extensor (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert len(commands) == 8
    for words, expected in commands:
        code = main(words.split())
        out, errors = capfd.readouterr()
        assert (out if code == 0 else errors) == expected


COMMANDS = "schema", "head", "convert", "describe", "check", "data-service", "serve-check"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_fits_80_columns_and_ends_with_an_example(command, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command.split(), "--help"]) == 0
    text = capfd.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert not command or f"Example: extensor {command} " in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_names_every_command(command):
    assert f"| `{command} " in PAGE.read_text()
