"""Writes docs/llms.txt and docs/llms-full.txt: the pages, and every public name with an example.

Run `make structure`. A test compares them, and runs each example of the second.
"""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structure.api import is_alias, public_modules
from structure.api import signature as signature_of

DOCS = Path(__file__).parent.parent / "docs"
INDEX, FULL = DOCS / "llms.txt", DOCS / "llms-full.txt"

_HEAD = """\
# extensor

> Extension types and nested records for TensorFlow and Keras 3: `import extensor as xt`.
> Nested JSON, Parquet, Arrow, protocol buffers and database rows become `xt.StructuredTensor`s,
> which go through tf.function, tf.data, Keras and SavedModel.

- Nulls are an error until `nulls=` says what becomes of them: "auto", "mask", xt.fill(value) or
  "empty". Fields of several types: `conflicts="union"`. Objects whose keys are data: `maps=["x"]`.
- A field is `records["steps.minutes"]`: a tf.Tensor, a tf.RaggedTensor in lists, an
  xt.types.MaskedTensor with nulls.
- Records are immutable: `records.with_updates({"steps.hours": values})`, `without`, `with_only`.
- Models use xt.keras.Input, xt.keras.Model and xt.keras.layers; other classes are those of keras.
- Every public name with an example that runs: llms-full.txt.
"""

_WITHOUT_A_SERVER = "(not run: it needs a server)"

_IMPORTS = ">>> import extensor as xt\n"
_SPANNER = """\
import extensor as xt
from google.cloud import spanner
database = spanner.Client().instance("instance").database("database")
"""
_FIRESTORE = """\
import extensor as xt
from google.cloud import firestore
recipes = firestore.Client().collection("recipes")
"""
_FIREBASE = """\
import extensor as xt
from firebase_admin import db
node = db.reference("recipes")
"""

# Names whose docstring has no example: their docstring is written by a decorator, or they need a
# server.
EXAMPLES = {
    "xt.read_iceberg": _IMPORTS
    + ">>> xt.read_iceberg('absent.metadata.json')\nTraceback (most recent call last):\n...\n"
    + "extensor.errors.MissingFileError: ...",
    "xt.read_spanner": _SPANNER + 'xt.read_spanner(database, "SELECT title FROM recipes")',
    "xt.write_spanner": _SPANNER + 'xt.write_spanner(records, "recipes", database)',
    "xt.data.spanner": _SPANNER + 'xt.data.spanner(database, "SELECT title FROM recipes", 256)',
    "xt.read_firestore": _FIRESTORE + "xt.read_firestore(recipes)",
    "xt.write_firestore": _FIRESTORE + "xt.write_firestore(records, recipes)",
    "xt.data.firestore": _FIRESTORE + "xt.data.firestore(recipes, 256, schema=schema)",
    "xt.read_realtime_database": _FIREBASE + "xt.read_realtime_database(node)",
    "xt.write_realtime_database": _FIREBASE + "xt.write_realtime_database(records, node)",
}


def index() -> str:
    """Returns the content of llms.txt."""
    return "\n".join([_HEAD, "## Pages", "", *_pages()]) + "\n"


def _pages() -> Iterator[str]:
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS))
        if name.split("/")[0] not in ("reference", "_build") and name != "index.md":
            text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(), flags=re.DOTALL)
            title = re.search(r"^# (.*)$", text, re.MULTILINE)
            if title:
                about = text[title.end() :].strip().split("\n\n")[0].replace("\n", " ")
                about = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", about.split(". ")[0].rstrip("."))
                is_prose = about[:1] not in ("|", "`", "!", "#", "-", "<")
                yield f"- [{title[1]}]({name})" + (f": {about}" if is_prose else "")


def full() -> str:
    """Returns the content of llms-full.txt."""
    blocks = [_HEAD]
    for name, about, example in entries():
        note = f"{_WITHOUT_A_SERVER}\n\n" if example and ">>>" not in example else ""
        blocks.append(f"## {name}\n\n{about}\n\n{note}```python\n{example}\n```\n")
    return "\n".join(blocks)


def entries() -> Iterator[tuple[str, str, str]]:
    """Yields each public name with its signature, what it is, and its example."""
    seen: set[int] = set()
    for module in public_modules():
        found = importlib.import_module(module)
        for name in sorted(dir(found)):
            value = getattr(found, name)
            if name.startswith("_") or inspect.ismodule(value) or id(value) in seen:
                continue
            if not is_alias(value):
                seen.add(id(value))
            full_name = f"{module.replace('extensor', 'xt', 1)}.{name}"
            yield _entry(full_name, value)


def _entry(name: str, value: Any) -> tuple[str, str, str]:
    doc = inspect.getdoc(value) or "" if callable(value) and not is_alias(value) else ""
    about = doc.split("\n\n")[0].replace("\n", " ")
    if is_alias(value):
        example = f"{_IMPORTS}>>> def read(argument: {name}):\n...     return argument"
        return name, "A type for annotations of your own functions.", example
    shown = name if isinstance(value, type) or not callable(value) else name + signature_of(value)
    example = _example(doc) or EXAMPLES.get(name, "")
    if not example and name.endswith("Spec"):
        example = f"{_IMPORTS}>>> issubclass({name}, xt.TypeSpec)\nTrue"
    return shown, about, example


def _example(doc: str) -> str:
    """Returns the last part of a docstring that begins with an example."""
    at = re.search(r"^[ ]*>>> ", doc, re.MULTILINE)
    return textwrap.dedent(doc[at.start() :]).strip() if at else ""


def main() -> None:
    """Writes the files."""
    INDEX.write_text(index())
    FULL.write_text(full())
    print(f"[llms] wrote {INDEX.name} and {FULL.name}")


if __name__ == "__main__":
    main()
