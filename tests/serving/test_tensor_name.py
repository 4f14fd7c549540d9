"""Names of tensors: valid in every TensorFlow API, and different for different paths."""

import itertools
import keyword
import re

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._path import Path
from extensor._serving.layout import _forms, names_of

PARTS = ["", "row_splits", "row_splits_1", "rows", "mask", "mask_1__row_splits", "codes"]
WORDS = [
    *("", "_", "__", "___", "a", "A", "a_", "_a", "a__a", "a.b", "2e", "x", "9", "é", "城市", " "),
    *("row_splits", "rows", "values", "self", "class", "None", "none", "x___0", "___61_", "0_"),
]
words = st.sampled_from(WORDS) | st.text('aAbB_.09e2f-é"x', max_size=5) | st.text(max_size=3)
places = st.tuples(
    st.lists(words, min_size=1, max_size=3).map(lambda names: Path(*names)), st.sampled_from(PARTS)
)


def place_of(name):
    """Parses a name by the grammar of docs/serving.md, from left to right."""
    names, at = [""], 0
    begun = re.match(r"x___0([0-9a-f]*)_", name)
    if begun:
        names, at = [chr(int(begun[1], 16)) if begun[1] else ""], begun.end()
    while at < len(name):
        in_a_row = len(re.match("_*", name[at:])[0])
        if in_a_row == 0:
            names[-1] += name[at]
            at += 1
        elif in_a_row == 1:
            names[-1] += "_"
            at += 1
        elif in_a_row == 3:
            character = re.match(r"___([0-9a-f]+)_", name[at:])
            if not character:
                return Path(*names), name[at + 3 :]
            names[-1] += chr(int(character[1], 16))
            at += character.end()
        else:
            names.append("")
            at += 2
    return Path(*names), ""


def check_names(places, is_lone=False):
    names = names_of(places, is_lone)
    assert len({name.lower() for name in names}) == len(places)
    for name in names:
        assert re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name)
        assert not keyword.iskeyword(name)
        assert name != "self"
    return names


@given(st.lists(places, min_size=1, max_size=6, unique=True), st.booleans(), st.randoms())
def test_names_are_valid_and_unique_in_any_order(places, is_lone, random):
    names = dict(zip(places, check_names(places, is_lone), strict=True))
    random.shuffle(places)
    assert names_of(places, is_lone) == [names[place] for place in places]


@given(st.lists(places, min_size=1, max_size=6, unique=True))
def test_a_longer_name_identifies_its_path(places):
    for path, part in places:
        for name in _forms(path, part, False)[1:]:
            assert place_of(name) == (path, part)


def test_different_paths_have_different_names():
    paths = [Path(*p) for n in (1, 2) for p in itertools.product(WORDS, repeat=n)]
    for is_lone in (False, True):
        check_names(list(itertools.product(paths, PARTS)), is_lone)


@pytest.mark.parametrize(
    ("path", "part", "name"),
    [
        (Path("recipe", "ingredients", "amount"), "", "recipe__ingredients__amount"),
        (Path("recipe", "ingredients"), "row_splits", "recipe__ingredients__row_splits"),
        (Path("recipe", "row_splits"), "", "recipe__row_splits"),
        (Path("recipe", "geonameId"), "", "recipe__geonameId"),
        (Path("recipe", "est_time"), "", "recipe__est_time"),
        (Path("recipe", "vit. C"), "", "recipe__vit___2e____20_C"),
        (Path("recipe", "crème"), "", "recipe__cr___e8_me"),
        (Path("recipe", "_id"), "", "recipe_____5f_id"),
        (Path("recipe", ""), "", "recipe__"),
        (Path("pair", "0"), "", "pair__0"),
        (Path("class"), "", "x___063_lass"),
        (Path("class", "x"), "", "class__x"),
    ],
    ids=str,
)
def test_names_as_the_page_shows_them(path, part, name):
    assert names_of([(path, part)]) == [name]


@pytest.mark.parametrize(
    ("path", "part", "name"),
    [
        (Path("recipe", "steps", "minutes"), "mask", "steps__minutes__mask"),
        (Path("recipe", "tags"), "row_splits", "tags__row_splits"),
        (Path("recipe", "vit. C"), "", "vit___2e____20_C"),
        (Path("recipe"), "mask", "recipe__mask"),
        (Path("recipe", "2019"), "", "recipe__2019"),
        (Path("recipe", ""), "mask", "recipe____mask"),
        (Path("recipe", "class"), "", "recipe__class"),
        (Path("recipe", "é"), "", "recipe_____e9_"),
        (Path("rest", "0", "x"), "", "rest__0__x"),
    ],
    ids=str,
)
def test_the_name_of_a_lone_argument_is_left_out_where_a_name_remains(path, part, name):
    assert names_of([(path, part)], is_lone=True) == [name]


def test_a_field_with_the_name_of_a_part_gets_a_longer_name_and_so_does_the_part():
    places = [(Path("r", "x", "mask"), ""), (Path("r", "x"), "mask"), (Path("r", "x"), "")]
    assert names_of(places, is_lone=True) == ["r__x__mask", "r__x___mask", "x"]
    assert names_of(places) == ["r__x__mask", "r__x___mask", "r__x"]


def test_capitals_are_spelled_out_if_two_names_differ_only_in_case():
    ids = [(Path("r", "id"), ""), (Path("r", "Id"), ""), (Path("r", "geoId"), "")]
    assert names_of(ids) == ["r__id", "r_____49_d", "r__geoId"]


FIELDS = {
    "a.b": [1], "a": xt.DenseStructuredTensor([1], {"b": [2]}), "a_b": [3], "a__b": [4],
    "A": xt.DenseStructuredTensor([1], {"b": [5]}), "": [6], "_": [7], "class": [8], "self": [9],
    "row_splits": [10], "城市": [11], "9": [12], "tags": tf.ragged.constant([[13]]),
    "tags___row_splits": [14], "tags__row_splits": [15], "Tags": tf.ragged.constant([[16]]),
    "a b": [17], "a/b": [18], "a\x00b": [19], "x___062_": [20],
    "steps": xt.RaggedStructuredTensor.from_row_splits(
        xt.DenseStructuredTensor([1], {"row_splits": [21], "values": [22]}), [0, 1]
    ),
}  # fmt: skip


def contents(value):
    return [tensor.numpy().tolist() for tensor in xt.nest.flatten(value, True)]


@pytest.mark.whole("saves and loads models")
def test_tensorflow_saves_and_serves_fields_of_any_name(tmp_path):
    records = xt.DenseStructuredTensor([1], FIELDS)
    results = {"self": records, "Self": records["A"], "None": records["tags"], "": records["9"]}
    signature = xt.serving.flat_signature(lambda **kwargs: results | kwargs, **{"lambda_": records})
    xt.serving.save(None, tmp_path / "model", signature)
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    client = xt.serving.load_client(tmp_path / "model")
    response = client.decode(served(**client.encode(lambda_=records)))
    expected = results | {"lambda_": records}
    assert response.keys() == expected.keys()
    for key, value in expected.items():
        assert contents(response[key]) == contents(value)
