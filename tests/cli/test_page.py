"""The examples of docs/command-line.md print what the page says."""

import re
from pathlib import Path

import pytest

from extensor_command.main import main

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
RECIPES = """\
{"title": "Tea", "steps": [{"text": "boil", "minutes": 5}]}
{"title": "Bread", "steps": [{"text": "mix", "minutes": 10}, {"text": "bake", "minutes": 45}]}
{"title": "Tea", "steps": []}
"""


def test_the_examples_print_what_the_page_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes.jsonl").write_text(RECIPES)
    examples = PAGE.read_text().split("## Examples")[1]
    block = re.search(r"```console\n(.*?)```", examples, re.DOTALL)[1]
    commands = re.findall(r"^\$ extensor (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    assert len(commands) == 5
    for words, expected in commands:
        code = main(words.split())
        out, errors = capfd.readouterr()
        assert (out if code == 0 else errors) == expected


@pytest.mark.parametrize("command", ["schema", "head", "convert", "describe", "check"])
def test_the_page_names_every_command(command):
    assert f"| `{command} " in PAGE.read_text()
