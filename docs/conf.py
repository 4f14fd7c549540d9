"""The site of the documentation, built by `make docs` with Sphinx. No network is used."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import extensor  # noqa: E402
from structure import reference  # noqa: E402
from structure.api import public_modules  # noqa: E402
from structure.reference import names_of  # noqa: E402

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
reference.write(ROOT / "docs" / "reference")

project = "extensor"
author = "The extensor authors"
copyright = f"2026, {author}"
version = release = extensor.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
root_doc = "index"
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}

# Markdown. Headings have the anchors that GitHub gives them.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]

# Tutorials are run when the site is built; an error fails the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_in_temp = True
nb_merge_streams = True
# TensorFlow logs what devices it found. An error fails the build all the same.
nb_output_stderr = "remove"
suppress_warnings = ["myst-nb.lexer"]  # of tutorials that are not run

# Docstrings are in Google style, with Markdown's `code`: see `_markdown_code`.
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "extensor"
html_static_path = ["_static"]
html_extra_path = ["llms.txt", "llms-full.txt"]
html_css_files = ["extensor.css"]
html_theme_options = {"navigation_with_keys": True}
html_show_sphinx = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"


def _signature_of_class(app, what, name, obj, options, signature, result):
    """Shows the parameters of `__init__` where `__new__` takes any."""
    if what == "class" and signature == "(*args, **kwargs)":
        signature = str(inspect.signature(obj)).partition(" -> ")[0]
    return signature, result


_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)(?=(\w)?)")
_PUBLIC = {name for module in public_modules() for name in (module, *names_of(module))}


def _markdown_code(app, what, name, obj, options, lines):
    """Writes `code` as reStructuredText does, and makes a link of the names of extensor."""

    def code(match):
        text, letter = " ".join(match[1].split()), match[2]
        full = text.replace("xt.", "extensor.", 1) if text.startswith("xt.") else f"extensor.{text}"
        role = f":py:obj:`{text} <{full}>`" if full in _PUBLIC else f"``{text}``"
        return role + ("\\ " if letter else "")

    # Code of examples stays as it is; code of a sentence may go on in the next line.
    parts = re.split(r"(?m)(^[ ]*(?:>>>|\.\.\.).*\n(?:.+\n)*)", "\n".join(lines) + "\n")
    parts[::2] = [_CODE.sub(code, part) for part in parts[::2]]
    lines[:] = "".join(parts).splitlines()


def setup(app):
    # Before napoleon reads the lines.
    app.connect("autodoc-process-docstring", _markdown_code, priority=100)
    app.connect("autodoc-process-signature", _signature_of_class)
