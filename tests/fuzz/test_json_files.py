"""Damaged JSON text is refused by name, or read as Python's own parser reads it."""

import io
import json
import random
import tempfile
from pathlib import Path

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.mutation import damaged


def test_damaged_text_is_refused_or_read_as_python_reads_it():
    ends = cases.run(__name__, cases.seeds(1000))
    assert {"refused", "read"} <= set(ends)


def case(seed):
    dice = random.Random(seed)
    values = [_record(dice, 3) for _ in range(dice.choice([0, 1, 3, 40]))]
    is_array = dice.random() < 0.3
    indent = dice.choice([None, None, None, 1])
    if is_array:
        whole = json.dumps(values, indent=indent).encode()
    else:
        between = dice.choice([b"\n", b"\n", b"", b" ", b"\n\n"])  # several objects a line
        whole = between.join(json.dumps(each, indent=indent).encode() for each in values)
    text = whole if dice.random() < 0.2 else damaged(dice, whole, [(0, len(whole))])
    options = {"nulls": "mask", "conflicts": dice.choice(["error", "union"])}
    if dice.random() < 0.2:
        options["maps"] = ["m"]
    if dice.random() < 0.3 and values:
        options["columns"] = [dice.choice(sorted(values[0]) or ["x"])]
    try:
        records = xt.read_json(text, **options)
    except xt.errors.ExtensorError:
        return "refused"
    rows = _plain(text)
    found = records.to_py()
    assert len(found) == len(rows), (text, found)
    if "maps" not in options:
        names = options.get("columns")
        for row, its in zip(rows, found, strict=True):
            wanted = {k: v for k, v in row.items() if names is None or k in names}
            assert _is_in(wanted, its), (text, row, its)
    if not options.keys() & {"maps", "columns"} and options["conflicts"] == "error":
        assert _streamed(text) == found, text
    xt.write_json(records, io.BytesIO(), allow_nan=True)
    return "read"


def _streamed(text):
    """The records of a text as a dataset has them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.jsonl"
        path.write_bytes(text)
        return [row for batch in xt.data.json(path, 7, nulls="mask") for row in batch.to_py()]


def _record(dice, depth):
    return {
        dice.choice(["x", "y", "m", "a b", "é", "", "null", "a.b", "shape"]): _value(dice, depth)
        for _ in range(dice.randint(0, 3))
    }


def _value(dice, depth):
    kind = dice.randrange(8 if depth else 6)
    if kind == 6:
        return [_value(dice, depth - 1) for _ in range(dice.randint(0, 3))]
    if kind == 7:
        return _record(dice, depth - 1)
    texts = ["", "2020-01-01", "2020-01-01T00:00:00+02:00", 'a"\\\n', "é}null", "[{", "a\0b"]
    numbers = [0, -1, 2**31, 2**63, 0.5, 1e300, -0.0]
    return [dice.choice(texts), dice.choice(numbers), dice.random() < 0.5, None, 7, "s"][kind]


def _plain(text):
    """The records of a text by Python's parser: one array, or objects one after another."""
    decoder, source, at, values = json.JSONDecoder(), text.decode("utf-8-sig"), 0, []
    while source[at:].strip(" \t\r\n"):
        at = len(source) - len(source[at:].lstrip(" \t\r\n"))
        value, at = decoder.raw_decode(source, at)
        values.append(value)
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


def _is_in(wanted, found):
    """Whether found values are those that JSON has; what JSON lacks is None."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and set(wanted) <= set(found)
            and all(_is_in(wanted.get(name), each) for name, each in found.items())
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(wanted) == len(found) and all(
            map(_is_in, wanted, found))  # fmt: skip
    if isinstance(wanted, str):
        return isinstance(found, str) and found == wanted
    if isinstance(wanted, bool) or wanted is None:
        return found is wanted
    return found == wanted or (found != found and wanted != wanted)
