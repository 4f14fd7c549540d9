"""The constructor signature of a declared class, its nested `class Spec`, and immutable specs."""

import copy
import dataclasses
import enum
import functools
import inspect
import pickle

import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import ImmutableError, ProtocolError
from tests.samples.auto import Adder
from tests.samples.declared import Pantry, Rows

# A default before a field without one.


@xt.extension_type
class Base:
    x: tf.Tensor
    name: str
    weight: tf.Tensor


@xt.extension_type
class Weighed:
    weight: tf.Tensor


@xt.extension_type
class Named:
    name: str = "n"


@dataclasses.dataclass(frozen=True)
class Plain:
    name: str
    count: int


def declared(*bases, **defaults):
    """Returns a class with fields `name=(annotation, default)`, or `name=annotation`."""
    members = {"__annotations__": {}}
    for name, field in defaults.items():
        annotation, *default = field if isinstance(field, tuple) else (field,)
        members["__annotations__"][name] = annotation
        if default:
            [members[name]] = default
    return xt.extension_type(type("Sub", bases, members))


def parameters(cls):
    """Returns the names of positional parameters, and of keyword-only ones."""
    kinds = {name: p.kind for name, p in inspect.signature(cls).parameters.items()}
    by_name = inspect.Parameter.KEYWORD_ONLY
    return (
        [name for name, kind in kinds.items() if kind is not by_name],
        [name for name, kind in kinds.items() if kind is by_name],
    )


SIGNATURES = {
    "inherited field": (lambda: declared(Base, name=(str, "b")), ["x", "name"], ["weight"]),
    "inherited field and more": (
        lambda: declared(Base, name=(str, "b"), depth=int, more=(int, 3)),
        ["x", "name"],
        ["weight", "depth", "more"],
    ),
    "two bases": (lambda: declared(Weighed, Named), ["name"], ["weight"]),
    "two bases, other order": (lambda: declared(Named, Weighed), ["weight", "name"], []),
    "own field": (lambda: declared(a=(int, 1), b=int, c=(int, 2)), ["a"], ["b", "c"]),
    "own field after an inherited one": (lambda: declared(Named, b=int), ["name"], ["b"]),
    "base that is a mere dataclass": (
        lambda: declared(Plain, name=(str, "p")),
        ["name"],
        ["count"],
    ),
}


@pytest.mark.whole("traces many functions")
@pytest.mark.parametrize(
    ("make", "positional", "by_name"), SIGNATURES.values(), ids=list(SIGNATURES)
)
def test_a_field_without_a_default_after_one_with_and_the_rest_are_keyword_only(
    make, positional, by_name
):
    cls = make()
    assert parameters(cls) == (positional, by_name)
    assert cls.__match_args__ == tuple(positional)
    values = {"x": [1.0], "name": "x", "weight": 2.0, "count": 4, "depth": 5, "more": 6}
    given = {n: values.get(n, 7) for n in positional + by_name}
    value = cls(**given)
    result = tf.function(lambda v: v)(value)
    assert type(result) is cls
    assert result.__tf_type_spec__() == value.__tf_type_spec__()
    replaced = xt.replace(value, **{name: given[name] for name in by_name})
    assert replaced.__tf_type_spec__() == value.__tf_type_spec__()
    if by_name:
        with pytest.raises(TypeError, match="positional argument"):
            cls(*given.values())


def test_a_subclass_has_the_signature_that_tensorflows_extension_type_has():
    class Theirs(tf.experimental.ExtensionType):
        x: tf.Tensor
        name: str
        weight: tf.Tensor

    sub = type(
        "Sub", (Theirs,), {"__annotations__": {"name": str, "extra": int}, "name": "b", "extra": 1}
    )
    ours = declared(Base, name=(str, "b"), extra=(int, 1))
    assert parameters(ours) == parameters(sub) == (["x", "name"], ["weight", "extra"])


def test_the_base_keeps_its_signature_and_its_paths():
    sub = declared(Base, name=(str, "b"))
    assert parameters(Base) == (["x", "name", "weight"], [])
    assert "weight" not in vars(sub).get("__annotations__", {})
    with pytest.raises(TypeError, match=r"^Sub\.weight: expected a tf\.Tensor"):
        sub([1.0], weight=tf.ragged.constant([[1.0]]))
    below = xt.extension_type(type("Below", (sub,), {"__annotations__": {"more": int}}))
    assert parameters(below) == (["x", "name"], ["weight", "more"])


def test_annotations_of_a_base_are_read_where_the_base_is_defined(run_python, tmp_path):
    (tmp_path / "larder.py").write_text(
        "from __future__ import annotations\n"
        "import tensorflow as tensors\nimport extensor as xt\n"
        "@xt.extension_type\nclass Jar:\n    name: str\n    grams: tensors.Tensor\n"
    )
    run_python(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import larder
        import extensor as xt

        @xt.extension_type
        class Jam(larder.Jar):
            name: str = "jam"

        assert Jam(grams=[1.0]).grams.shape == [1]
    """)


# `class Spec`.


class _Meta(type):
    pass


@pytest.mark.parametrize(
    "spec",
    [
        *(12, None, "Spec", lambda self: 1, property(lambda self: 1), tf.TensorSpec([])),
        *(int, dict, enum.Enum, tf.TensorSpec, tf.TypeSpec, _Meta("Meta", (), {})),
        *(xt.TypeSpec, xt.StackableTypeSpec),
    ],
    ids=lambda spec: getattr(spec, "__name__", type(spec).__name__),
)
def test_a_spec_that_is_no_class_of_additions_is_an_error_that_names_it(spec):
    class Cup:
        Spec = spec
        grams: tf.Tensor

    with pytest.raises(ProtocolError) as caught:
        xt.extension_type(Cup)
    assert caught.value.path.endswith("Cup.Spec")
    assert caught.value.expected == "a class with members to add to the spec"
    assert caught.value.received == repr(spec)


def test_help_shows_the_text_of_the_spec_class():
    @xt.extension_type
    class Cup:
        grams: tf.Tensor

        class Spec:
            """The spec of cups of any size."""

    @xt.extension_type
    class Bowl:
        grams: tf.Tensor

        class Spec:
            pass

    assert inspect.getdoc(Cup.Spec) == "The spec of cups of any size."
    assert (inspect.getdoc(Bowl.Spec) or "").endswith("Bowl.")


def test_an_error_of_the_spec_class_itself_stays():
    class Cup:
        grams: tf.Tensor

        class Spec:
            __version__ = 0

    with pytest.raises(ProtocolError, match="expected 1, 2, 3 and so on"):
        xt.extension_type(Cup)


# Specs do not change.


@xt.extension_type
class Renamed:
    label: str

    class Spec:
        __version__ = 2


IMMUTABLE = {
    "declared": (lambda: xt.spec_of(Rows([[1, 2, 3]])), "unit"),
    "declared, containers": (
        lambda: xt.spec_of(Pantry({"salt": 1.0}, (tf.constant([3]), 4), [1])),
        "amounts",
    ),
    "made by its constructor": (lambda: Named.Spec("n"), "name"),
    "auto": (lambda: xt.spec_of(Adder(1.0, 2.0)), "x"),
    "of a type of extensor's": (lambda: xt.types.CSRSparseTensorSpec([None, 2]), "static_shape"),
    "of an older version": (
        lambda: Renamed.Spec.deserialize(xt.spec_of(Named()).serialize()),
        "name",
    ),
}


@pytest.mark.parametrize(("make", "field"), IMMUTABLE.values(), ids=list(IMMUTABLE))
def test_a_spec_takes_no_assignment_and_no_deletion(make, field):
    spec = make()
    before, shown = spec.serialize(), repr(spec)
    for change in (
        lambda: setattr(spec, field, "lb"),
        lambda: setattr(spec, "note", "lb"),
        lambda: delattr(spec, field),
    ):
        with pytest.raises(ImmutableError, match=r"specs are immutable") as caught:
            change()
        assert isinstance(caught.value, AttributeError)
        assert caught.value.path.startswith(f"{type(spec).__qualname__}.")
    assert (spec.serialize(), repr(spec)) == (before, shown)
    assert spec == make()
    assert hash(spec) == hash(make())


def test_a_spec_that_cannot_change_is_copied_pickled_and_compared():
    spec = xt.spec_of(Rows([[1, 2, 3]], "lb"))
    for again in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert again == spec
        assert again.unit == "lb"


def test_an_author_assigns_parts_in_init_and_keeps_private_caches():
    @xt.extension_type
    class Grid:
        values: tf.Tensor

        class Spec:
            def __init__(self, shape):
                self.values = tf.TensorSpec(shape)

            @functools.cached_property
            def size(self):
                return self.values.shape.num_elements()

            @property
            def rank(self):
                self._rank = self.values.shape.rank
                return self._rank

    spec = Grid.Spec([2, 3])
    assert (spec.size, spec.rank, spec.size) == (6, 2, 6)
    with pytest.raises(ImmutableError):
        spec.values = tf.TensorSpec([7])


def test_a_field_may_have_a_private_name():
    @xt.extension_type
    class Secret:
        _key: str
        _values: tf.Tensor

    spec = xt.spec_of(Secret("a", [1.0]))
    with pytest.raises(ImmutableError):
        spec._values = tf.TensorSpec([7])
    assert tf.function(lambda s: s._values)(Secret("a", [1.0])).shape == [1]
