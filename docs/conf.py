"""The site of the documentation, built by `make docs` with Sphinx. No network is used."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import extensor  # noqa: E402
from structure import reference  # noqa: E402

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

# Docstrings are in Google style, with Markdown's `code`.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "extensor"
html_static_path = ["_static"]
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


def setup(app):
    app.connect("autodoc-process-signature", _signature_of_class)
