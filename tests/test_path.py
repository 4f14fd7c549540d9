"""Paths: what is written is what is read."""

import copy
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extensor._path import Path, quote
from extensor.errors import ExtensorError, PathError

# Any text at all: empty, surrogates, line breaks, quotes. The grammar's own characters come often.
names = st.text() | st.text(alphabet=" .\"'[]*\\`\n\t\0ab")


@given(st.lists(names).map(tuple))
@example(())
@example(("",))
@example(("", ""))
@example(("a.b", "[*]", '"', "\\", '\\"', "a\nb", "\u2028", "\u00a0", "\ud800"))
def test_a_path_is_read_back_from_its_text(names):
    path = Path(*names)
    assert Path.parse(str(path)) == path
    assert Path.parse(str(path)).names == names


@given(st.lists(names, max_size=4).map(tuple), st.lists(names, max_size=4).map(tuple))
def test_two_paths_have_one_text_only_if_they_are_equal(a, b):
    assert (str(Path(*a)) == str(Path(*b))) == (a == b)
    assert (Path(*a) == Path(*b)) == (a == b)
    assert len({Path(*a), Path(*b)}) == (1 if a == b else 2)


@given(st.lists(names, min_size=1).map(tuple), st.data())
def test_list_levels_may_be_written_behind_any_name_and_mean_nothing(names, data):
    levels = [data.draw(st.integers(0, 3)) for _ in names]
    text = ".".join(quote(n) + "[*]" * k for n, k in zip(names, levels, strict=True))
    assert Path.parse(text).names == names


@given(names)
def test_a_name_is_quoted_only_where_it_could_be_misread(name):
    misread = not name or not name.isprintable() or bool(set(name) & set(" .\"'[]\\`"))
    assert (quote(name) == name) == (not misread)


@given(st.lists(names, max_size=4).map(tuple))
def test_every_way_to_write_a_path_gives_the_same(names):
    path = Path(*names)
    assert Path.of(path) is path
    assert Path.of(names) == Path.of(list(names)) == Path.of(str(path)) == path
    assert tuple(path) == names
    assert len(path) == len(names)
    assert path / "x" == Path(*names, "x")
    assert eval(repr(path), {"Path": Path}) == path
    for same in (copy.copy(path), copy.deepcopy(path), pickle.loads(pickle.dumps(path))):
        assert same == path
        assert hash(same) == hash(path)


def test_a_name_in_a_sequence_is_taken_literally_and_a_text_is_parsed():
    assert Path.of("a.b").names == ("a", "b")
    assert Path.of(("a.b",)).names == ("a.b",)
    assert Path("a.b") != Path("a", "b")


def test_white_space_is_no_grammar():
    assert Path.parse("est time.in the oven").names == ("est time", "in the oven")
    assert Path.parse(" a \n").names == (" a \n",)


def test_a_path_equals_no_other_kind_of_value():
    assert Path("a") != "a"
    assert Path("a") != ("a",)


@pytest.mark.parametrize("text", ["[*]", ".", "a.", ".a", "a..b", "a[0]", "a[*",
                                  "a]", '"a', '"a\\', 'a"b"', '"a"b', "a'b", "a\\b", "`a`",
                                  "[*].a", "a[*]b", "a.[*]"])  # fmt: skip
def test_a_text_outside_the_grammar_is_an_error_that_says_where(text):
    with pytest.raises(PathError, match="at position") as caught:
        Path.parse(text)
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.path == f"path {text!r}"
    assert error.expected
    assert error.received
    assert "Quote a name" in error.fix


@pytest.mark.parametrize("not_a_path", [None, 3, 1.5, {"a": 1}, {"a"}, iter("ab")])
def test_what_is_no_path_is_an_error(not_a_path):
    with pytest.raises(PathError) as caught:
        Path.of(not_a_path)
    assert caught.value.received == type(not_a_path).__name__
    with pytest.raises(PathError):
        Path.parse(not_a_path)


@pytest.mark.parametrize("names", [(1,), ("a", None), (b"a",), [["a"]]])
def test_a_name_that_is_no_string_is_an_error(names):
    with pytest.raises(PathError, match="type str"):
        Path(*names)
    with pytest.raises(PathError, match="type str"):
        Path.of(names)


def test_a_path_does_not_change():
    path = Path("a")
    with pytest.raises(AttributeError):
        path.names = ("b",)
    with pytest.raises(AttributeError):
        del path.names
    with pytest.raises(AttributeError):
        path.other = 1
    assert path == Path("a")


def test_an_error_says_path_expected_received_and_mend():
    error = ExtensorError(path=Path("a", "b c"), expected="x", received="y", fix="Do z.")
    assert str(error) == 'a."b c": expected x, got y. Do z.'
    assert (error.path, error.expected, error.received, error.fix) == (
        'a."b c"', "x", "y", "Do z.",
    )  # fmt: skip
    assert str(ExtensorError("whole")) == "whole"
    assert str(ExtensorError(path="p")) == "p"


@given(names)
def test_errors_survive_pickling(name):
    # A worker process of tf.data or of a test runner sends them back.
    error = PathError(path=Path(name), expected="x", received="y", fix="z")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is PathError
    assert str(back) == str(error)
    assert vars(back) == vars(error)
