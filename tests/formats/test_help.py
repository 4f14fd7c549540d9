"""What `help()` shows of functions that read and write records: each argument in its own words."""

import inspect
import re

import pytest

import extensor as xt
from extensor import data, struct

FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (xt, data, struct)
    for name in module.__all__
    if inspect.isfunction(getattr(module, name))
}
WORDS = {
    "nulls": '"mask"',
    "conflicts": '"union"',
    "row_splits_dtype": "int64",
    "progress": "a progress bar",
    "shard": "number of shards",
}


def _arguments(function):
    """Returns the text of each argument in the docstring of a function."""
    text = inspect.getdoc(function) or ""
    section = re.search(r"^Args:\n((?:(?: .*)?\n)*)", text + "\n", re.MULTILINE)
    parts = re.split(r"^    (\w+): ", section[1] if section else "", flags=re.MULTILINE)
    return {
        name: " ".join(body.split()) for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if _arguments(f)])
def test_each_argument_is_explained_where_it_is(name):
    function = FUNCTIONS[name]
    texts = _arguments(function)
    parameters = list(inspect.signature(function).parameters)
    assert [argument for argument in parameters if argument in texts] == [*texts]
    assert set(parameters) - set(texts) <= {"name", "changes"}  # **changes
    # A reference to extensor only sends the reader to another page.
    assert [
        a for a, text in texts.items() if re.match(r"(As in|See) `(?!tf\.|keras\.)", text)
    ] == []
    for argument in texts.keys() & WORDS.keys():
        if argument != "nulls" or "proto" not in name:
            assert WORDS[argument] in texts[argument], argument
