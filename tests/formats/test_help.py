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
    "read_ahead": "12 MB",
    "cache": "`xt.data.Cache`",
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


OF_FILES = [data.arrow, data.csv, data.json, data.parquet, data.proto, data.tfrecord]
IN_ORDER = [data.batches, data.database, data.firestore, data.spanner]
SHARED = ["batch_size", "drop_remainder", "row_splits_dtype", "shuffle", "shard", "epochs", "state"]
OF_REMOTE_FILES = [f for f in FUNCTIONS.values() if "read_ahead" in _arguments(f)]
EVERYWHERE = ["columns", "drop_remainder", "row_splits_dtype", "epochs"]


@pytest.mark.parametrize(
    ("functions", "names"),
    [
        (OF_FILES, SHARED),
        (IN_ORDER, SHARED),
        (OF_FILES + IN_ORDER, EVERYWHERE),
        (OF_REMOTE_FILES, ["read_ahead", "cache"]),
    ],
)
def test_arguments_that_functions_share_have_one_text(functions, names):
    """A function may add sentences at the end."""
    assert len(functions) > 3
    texts = [_arguments(function) for function in functions]
    for name in names:
        shortest = min((each[name] for each in texts), key=len)
        assert [each[name] for each in texts if not each[name].startswith(shortest)] == []


READERS = [
    f for name, f in FUNCTIONS.items() if name.startswith(("extensor.read_", "extensor.data."))
]
NULLS = (
    '`"error"` (the default), `"mask"` for a MaskedTensor, `"empty"` for lists, or '
    "`xt.fill(value)`; one for all fields, or a dict by path. More in `xt.from_arrow`."
)


@pytest.mark.parametrize("function", [f for f in READERS if "nulls" in _arguments(f)])
def test_nulls_have_one_text(function):
    text = _arguments(function)["nulls"]
    if not function.__name__.endswith(("tfrecord", "proto")):  # a feature or field that is missing
        assert re.fullmatch(
            r"What becomes of nulls( and missing fields)?: " + re.escape(NULLS), text
        )
