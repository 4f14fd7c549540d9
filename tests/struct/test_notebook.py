"""Records and specs in a notebook: HTML, completion, help."""

import pydoc
import re

import pytest
import tensorflow as tf

import extensor as xt
from extensor.types import MaskedTensor

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor


def recipes():
    steps = Dense([3], {"minutes": [5, 20, 8], "tool": Dense([3], {"name": ["a", "b", "c"]})})
    return Dense(
        [2],
        {
            "title": ["Snickerdoodles", "Flapjacks"],
            "facts": Dense([2], {"fat.g": [1.0, 2.0]}),
            "origin": MaskedTensor(Dense([2], {"city": ["Oslo", ""]}), [True, False]),
            "steps": Ragged.from_row_splits(steps, [0, 2, 3]),
        },
    )


def element_spec(records):
    return tf.data.Dataset.from_tensor_slices(records).batch(2).element_spec


PATHS = [
    *("title", "facts", "origin", "steps"),
    *('facts."fat.g"', "origin.city", "steps.minutes", "steps.tool", "steps.tool.name"),
]


@pytest.mark.parametrize("make", [recipes, lambda: recipes()[0]], ids=["vector", "scalar"])
def test_keys_are_completed_with_all_paths(make):
    records = make()
    keys = records._ipython_key_completions_()
    assert keys == PATHS
    for key in keys:
        records[key]


def test_keys_of_a_list_and_of_a_placeholder_are_completed():
    assert recipes()["steps"]._ipython_key_completions_() == ["minutes", "tool", "tool.name"]
    record = xt.keras.Input(element_spec(recipes()))
    assert record._ipython_key_completions_() == PATHS


def test_a_field_whose_name_has_a_dot_is_completed_by_its_name():
    records = Dense([1], {"fat.g": [1.0], "fat": Dense([1], {"g": [2.0]})})
    keys = records._ipython_key_completions_()
    assert keys == ["fat.g", "fat"]  # the path fat.g would select the first


def test_a_spec_is_html():
    shown = element_spec(recipes())._repr_html_()
    assert shown == xt.struct.tree(element_spec(recipes()))._repr_html_()
    assert "minutes" in shown


class Printer:
    """What IPython gives to `_repr_pretty_`."""

    def __init__(self):
        self.printed = ""

    def text(self, text):
        self.printed += text

    def break_(self):
        self.printed += "\n"


def test_a_spec_is_printed_as_a_tree():
    printer = Printer()
    spec = element_spec(recipes())
    spec._repr_pretty_(printer, False)
    assert printer.printed == str(xt.struct.tree(spec))


@pytest.mark.parametrize("name", ["DenseStructuredTensor", "RaggedStructuredTensor"])
def test_help_begins_with_the_signature_and_has_no_private_names(name):
    text = pydoc.plain(pydoc.render_doc(getattr(xt, name)))
    assert f" |  {name}(" in text
    assert text.index("Create it with" if name.startswith("Ragged") else "Args:") < 1500
    private = set(re.findall(r"^ \|  (_[a-z]\w*)", text, re.MULTILINE))
    assert private == set()


@pytest.mark.whole("starts a process, and most machines have no IPython")
def test_ipython_shows_and_completes(run_python):
    pytest.importorskip("IPython", reason="IPython is not installed")
    # In a process of its own, because a shell of IPython replaces the module __main__.
    run_python("""
        import tensorflow as tf
        from IPython.core.completer import provisionalcompleter
        from IPython.core.interactiveshell import InteractiveShell

        import extensor as xt
        from tests.struct.test_notebook import element_spec, recipes

        shell = InteractiveShell()
        shell.user_ns.update(recipes=recipes(), spec=element_spec(recipes()), xt=xt)
        shown, _ = shell.display_formatter.format(shell.user_ns["spec"])
        assert "<details" in shown["text/html"]
        assert shown["text/plain"].startswith("records (None,)\\n├── title: string")
        pair, _ = shell.display_formatter.format((shell.user_ns["spec"], tf.TensorSpec([None])))
        assert "├── title: string" in pair["text/plain"]
        with provisionalcompleter():
            for typed, expected in {'recipes["steps.': "steps.minutes", "xt.str": "struct"}.items():
                found = [each.text for each in shell.Completer.completions(typed, len(typed))]
                assert any(text.strip('"').endswith(expected) for text in found)

        # A function of a cell is traced, although the shell replaced the module __main__.
        function = "@tf.function\\ndef same(r):\\n    return r if tf.size(r) > 0 else r"
        for cell in ("import tensorflow as tf", function):
            assert shell.run_cell(cell).success
        assert shell.user_ns["same"](xt.struct.constant([{"a": 1}])).to_py() == [{"a": 1}]
    """)
