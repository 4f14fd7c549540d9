"""Layout: the component tensors of a nest of values, and their names."""

from __future__ import annotations

import contextlib
import copy
import keyword
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from extensor._arrow.read import has_capsules
from extensor._arrow.wanted_table import records_of_spec
from extensor._authoring.rows import row_splits_of
from extensor._formats.json.read import read_json
from extensor._path import Path
from extensor._protocol.casting import cast_value, not_castable
from extensor._protocol.named_leaves import Names, items_of, named_leaves
from extensor._struct.cast_request import CastRequest
from extensor._struct.component import components
from extensor._struct.spec import StructuredTensorSpec
from extensor._tf import VariableSpec
from extensor._typing import Nest
from extensor.errors import DTypeError, FieldError, NullError, StructureError, UnsupportedTypeError

if TYPE_CHECKING:
    from extensor._path import PathLike
    from extensor._struct.tensor import StructuredTensor

RAGGED = ("row_splits", "row_lengths")
"""The two ways to send ragged rows. A layout uses one of them for all tensors."""


@dataclass(frozen=True)
class Component:
    """A component tensor of a layout.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> layout = xt.serving.Layout({"tags": tf.RaggedTensorSpec([None, None], tf.string)})
    >>> for c in layout.components:
    ...     print(c.name, c.path, c.part or "-", c.spec.dtype.name)
    tags tags - string
    tags__row_splits tags row_splits int64
    """

    name: str
    """The name of the tensor in a signature and in a request."""

    path: Path
    """The path of the values: the argument or the key of the result, then the fields."""

    part: str
    """The empty string for the values at the path. `row_splits` or `row_lengths` for their rows,
    `mask` for their mask, `codes` for the variants of a union, `rows` for the count of records
    without fields. For inner lists and inner masks, with the suffix `_1`, `_2` and so on."""

    spec: tf.TensorSpec
    """The shape and dtype of the tensor."""


class Layout:
    """Encodes a nest of values as plain tensors by name, and decodes them.

    Args:
        structure: A nest of TypeSpecs in dicts, lists, tuples and namedtuples. Any other leaf is
            static: it has no tensors, and every decoded nest contains it. Names begin with the
            keys of the outermost dict or namedtuple. For a list or a tuple, they begin with
            `output_0`, `output_1` and so on. The tensors of a single item have the names of its
            fields, or `output_0`.
        ragged: How to send ragged rows: as `row_splits`, as in TensorFlow, or as `row_lengths`.

    Raises:
        UnsupportedTypeError: If a component cannot be sent to a server, such as a variable (also a
            TypeError).

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> layout = xt.serving.Layout({"tags": tf.RaggedTensorSpec([None, None], tf.string)},
    ...                            ragged="row_lengths")
    >>> tensors = layout.encode({"tags": tf.ragged.constant([["quick", "sweet"], []])})
    >>> tensors["tags"].numpy(), tensors["tags__row_lengths"].numpy()
    (array([b'quick', b'sweet'], dtype=object), array([2, 0]))
    >>> layout.decode(tensors)
    {'tags': <tf.RaggedTensor [[b'quick', b'sweet'], []]>}
    """

    def __init__(self, structure: Nest, ragged: str = "row_splits") -> None:
        if ragged not in RAGGED:
            expected = " or ".join(map(repr, RAGGED))
            raise StructureError("ragged", expected, repr(ragged), "Leave it out for row splits.")
        self._structure = structure
        self._ragged = ragged
        found = [
            (names, one)
            for names, leaf in signature_leaves(structure)
            if isinstance(leaf, tf.TypeSpec)
            for one in components(leaf)
        ]
        places = [
            (Path(*names, *one.names), one.part.replace("row_splits", ragged))
            for names, one in found
        ]
        duplicate = next((place for place, count in Counter(places).items() if count > 1), None)
        if duplicate is not None:
            expected, received = "a unique path for every tensor", "two tensors of this path"
            raise StructureError(duplicate[0], expected, received, "Use unique strings as keys.")
        self._components = {
            (names, one.steps): Component(name, path, part, _spec_sent(one.spec, path, part))
            for name, (path, part), (names, one) in zip(
                names_of(places, items_of(structure) is None), places, found, strict=True
            )
        }

    def with_names(self, names: Sequence[str]) -> Layout:
        """Returns the layout with other names of its tensors, in the order of `components`.

        >>> import tensorflow as tf
        >>> import extensor as xt
        >>> xt.serving.Layout({"title": tf.TensorSpec([None], tf.string)}).with_names(["t"])
        Layout(t)
        """
        renamed = copy.copy(self)
        pairs = zip(self._components.items(), names, strict=True)
        renamed._components = {key: replace(one, name=name) for (key, one), name in pairs}
        return renamed

    @property
    def structure(self) -> Nest:
        """The nest of specs."""
        return self._structure

    @property
    def ragged(self) -> str:
        """How ragged rows are sent: `row_splits` or `row_lengths`."""
        return self._ragged

    @property
    def components(self) -> tuple[Component, ...]:
        """The tensors, in the order of the nest."""
        return tuple(self._components.values())

    def __repr__(self) -> str:
        return f"Layout({', '.join(component.name for component in self.components)})"

    def encode(
        self,
        values: Nest,
        optional: Collection[str] = (),
        extra: Literal["error", "ignore"] | Iterable[PathLike] = "error",
        times: Literal["text"] | None = None,
    ) -> dict[str, Any]:
        """Returns the tensors of a nest of values, by name.

        Args:
            values: A nest with the layout's structure. The leaves are values, or can be cast to
                values: lists and arrays to tensors, dicts to records.
            optional: The keys of the outermost dict that may be missing.
            extra: As in `Client.encode`. Paths begin with the names of the nest.
            times: As in `Client.encode`.

        Raises:
            DTypeError: If a value cannot be cast to its spec (also a TypeError).
            StructureError: If the nest has another structure, or a tensor another shape (also a
                ValueError).
        """
        request = CastRequest.from_arguments(extra, times)
        structure = self._structure
        if optional:
            structure = {k: s for k, s in structure.items() if k in values or k not in optional}
        tensors: dict[str, Any] = {}
        for names, spec, value in typed_leaves(structure, values):
            if isinstance(spec, StructuredTensorSpec):
                value = _as_records(spec, value, request.below(*names), str(Path(*names)))
            parts = _tensors_of(spec, value, str(Path(*names)))
            for one, tensor in zip(components(spec), parts, strict=True):
                component = self._components[names, one.steps]
                tensors[component.name] = (
                    tensor[1:] - tensor[:-1] if _is_lengths(component) else tensor
                )
        return tensors

    def decode(self, tensors: Mapping[str, Any]) -> Nest:
        """Returns the nest of values from its tensors.

        Args:
            tensors: The tensors by name. An array or a list, such as from a JSON response, is
                converted to a tensor.

        Raises:
            FieldError: If a name is missing or unknown (also a KeyError).
            DTypeError: If a tensor has another dtype (also a TypeError).
            StructureError: If a tensor has another shape (also a ValueError).
        """
        if not isinstance(tensors, Mapping):
            fix = "Give what the signature returned: a dict, also of a single tensor."
            raise DTypeError("decode", "tensors by name", type(tensors).__name__, fix)
        unknown = tensors.keys() - {component.name for component in self.components}
        if unknown:
            raise _wrong_names(
                min(unknown), "the name of a tensor in the signature", "an unknown name"
            )
        ready = iter([_receive(component, tensors) for component in self.components])
        leaves = [
            leaf.from_tensors(ready) if isinstance(leaf, tf.TypeSpec) else leaf
            for leaf in tf.nest.flatten(self._structure)
        ]
        return tf.nest.pack_sequence_as(self._structure, leaves)


def layout_of_arguments(structure: Nest, ragged: str) -> Layout:
    """Returns the layout of a dict of arguments; the name of a single one is left out."""
    layout = Layout(structure, ragged)
    places = [(component.path, component.part) for component in layout.components]
    return layout.with_names(names_of(places, is_lone=len(structure) == 1))


def layout_of_fields(layout: Layout, structure: Nest) -> Layout:
    """Returns the layout of a nest with some of the fields, whose tensors keep their names."""
    names = {(one.path, one.part): one.name for one in layout.components}
    narrow = Layout(structure, layout.ragged)
    return narrow.with_names([names[one.path, one.part] for one in narrow.components])


def _spec_sent(spec: tf.TypeSpec, path: Path, part: str) -> tf.TensorSpec:
    """Returns the spec of the tensor that is sent for a component."""
    is_variable = isinstance(spec, VariableSpec)
    if is_variable or spec.dtype in (tf.resource, tf.variant):
        expected = "a tensor of numbers, strings or booleans, because it is sent to a server"
        received = "a variable" if is_variable else f"a tensor of dtype {spec.dtype.name}"
        fix = "Keep it in the module, and use its value in arguments and results."
        raise UnsupportedTypeError(path, expected, received, fix)
    if "row_lengths" not in part:
        return tf.TensorSpec(spec.shape, spec.dtype)
    nsplits = spec.shape[0]
    return tf.TensorSpec([None if nsplits is None else nsplits - 1], spec.dtype)


def _is_lengths(component: Component) -> bool:
    return "row_lengths" in component.part


def _receive(component: Component, tensors: Mapping[str, Any]) -> tf.Tensor:
    if component.name not in tensors:
        raise _wrong_names(
            component.name, "a tensor of this name", f"the names {', '.join(map(str, tensors))}"
        )
    [tensor] = _tensors_of(component.spec, tensors[component.name], component.name)
    return row_splits_of(tensor) if _is_lengths(component) else tensor


def _as_records(
    spec: StructuredTensorSpec, value: Any, request: CastRequest, path: str
) -> StructuredTensor:
    """Returns text of JSON, an Arrow table, Python data or records as records of a spec."""
    with _inside(path):
        if isinstance(value, (str, bytes, bytearray)):
            text = value.encode() if isinstance(value, str) else bytes(value)
            return read_json(text, schema=spec)
        if has_capsules(value) and not hasattr(value, "__tf_type_spec__"):
            return records_of_spec(value, spec, request)
        try:
            return spec._cast_as(value, request)
        except (DTypeError, StructureError) as error:
            if not isinstance(value, Mapping):
                raise
            fix = f"{error.fix} A dict has a list for each field: for one record, give [record]."
            raise type(error)(error.path, error.expected, error.received, fix) from error


@contextlib.contextmanager
def _inside(path: str) -> Generator[None]:
    """Adds the path of a value to errors, which have the path inside the value."""
    try:
        yield
    except (DTypeError, FieldError, NullError, StructureError) as error:
        if error.path == path:
            raise
        raise type(error)(
            f"{path}: {error.path}", error.expected, error.received, error.fix
        ) from error


def _tensors_of(spec: Any, value: object, path: str) -> list[Any]:
    with _inside(path):
        value = cast_value(spec, value, path)
    if not spec.is_compatible_with(value):
        raise not_castable(spec, value, path)
    return spec.to_tensors(value)


def _wrong_names(name: str, expected: str, received: str) -> FieldError:
    return FieldError(name, expected, received, "Give exactly the tensors of the signature.")


_Place = tuple[Path, str]
"""The tensor of a name: its path, and its part; an empty string for the values at the path."""


def names_of(places: Sequence[_Place], is_lone: bool = False) -> list[str]:
    """Returns a unique name for each place; it does not depend on their order.

    Args:
        places: Unique places. A path has at least one name.
        is_lone: Whether the first name of each path is left out, where the next one can begin a
            name.

    >>> from extensor import Path
    >>> from extensor._serving.layout import names_of
    >>> steps = [(Path("recipe", "steps"), "row_splits"), (Path("recipe", "vit. C"), "")]
    >>> names_of(steps), names_of(steps, is_lone=True)
    (['recipe__steps__row_splits', 'recipe__vit___2e____20_C'],
     ['steps__row_splits', 'vit___2e____20_C'])
    >>> names_of([(Path("x", "mask"), ""), (Path("x"), "mask")])
    ['x__mask', 'x___mask']
    >>> names_of([(Path("id"), ""), (Path("Id"), "")])
    ['id', 'x___049_d']
    """
    forms = [_forms(*place, is_lone) for place in places]
    chosen = [0] * len(forms)
    while True:
        names = [form[i] for form, i in zip(forms, chosen, strict=True)]
        count = Counter(name.lower() for name in names)
        same = [n for n, name in enumerate(names) if count[name.lower()] > 1 and chosen[n] < 2]
        if not same:
            return names
        for n in same:
            chosen[n] += 1


def _forms(path: Path, part: str, is_lone: bool) -> tuple[str, str, str]:
    """Returns the names that a place may have: a short one, a longer one, one without capitals."""
    short = Path(*path.names[1:]) if is_lone and _begins_name(path.names[1:2]) else path
    text = _name(short, "", _is_plain)
    return (
        f"{text}__{part}" if part else text,
        _name(path, part, _is_plain),
        _name(path, part, lambda character: _is_plain(character) and not character.isupper()),
    )


def _begins_name(names: tuple[str, ...]) -> bool:
    start = names[0][:1] if names else ""
    return start.isascii() and start.isalpha() and not _is_word(names[0])


def _is_word(text: str) -> bool:
    """Returns whether a text has a meaning in Python, and cannot be an argument."""
    return keyword.iskeyword(text) or text == "self"


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _name(path: Path, part: str, is_allowed: Callable[[str], bool]) -> str:
    first, *others = path.names
    if first[:1].isalpha() and is_allowed(first[0]):
        start = _word(first, is_allowed)
    else:
        start = _escaped_start(first, is_allowed)
    text = "__".join([start, *(_word(name, is_allowed) for name in others)])
    if part:
        return f"{text}___{part}"
    return _escaped_start(text, is_allowed) if _is_word(text) else text


def _escaped_start(name: str, is_allowed: Callable[[str], bool]) -> str:
    """Returns a name with its first character written as a code point."""
    code = f"{ord(name[0]):x}" if name else ""
    return f"x___0{code}_{_word(name[1:], is_allowed)}"


def _word(name: str, is_allowed: Callable[[str], bool]) -> str:
    return "".join(
        character
        if is_allowed(character)
        or (character == "_" and _is_single_underscore(name, at, is_allowed))
        else f"___{ord(character):x}_"
        for at, character in enumerate(name)
    )


def _is_single_underscore(name: str, at: int, is_allowed: Callable[[str], bool]) -> bool:
    return 0 < at < len(name) - 1 and is_allowed(name[at - 1]) and is_allowed(name[at + 1])


def typed_leaves(structure: Nest, values: Nest) -> Iterator[tuple[Names, Any, Any]]:
    """Yields the names, spec and value of each leaf of a nest, except static leaves.

    Args:
        structure: A nest of specs and static data.
        values: A nest of the same structure.

    Raises:
        StructureError: If `values` has another structure (also a ValueError).
    """
    for (names, spec), value in zip(
        signature_leaves(structure), _match(structure, values, ()), strict=True
    ):
        if isinstance(spec, tf.TypeSpec):
            yield names, spec, value


def signature_leaves(structure: Nest) -> Iterator[tuple[Names, Any]]:
    """Yields the leaves of a nest with their names, in the order of `tf.nest`."""
    inner = items_of(structure)
    if inner is None:
        yield ("output_0",), structure
    elif isinstance(structure, Mapping) or hasattr(structure, "_fields"):
        yield from named_leaves(structure)
    else:
        for name, item in inner:
            yield from named_leaves(item, (f"output_{name}",))


def _match(structure: Nest, values: Nest, names: Names) -> Iterator[Any]:
    """Yields the values at the leaves of a nest of specs."""
    inner = items_of(structure)
    if inner is None:
        yield values
        return
    own = items_of(values)
    if own is None or [name for name, _ in own] != [name for name, _ in inner]:
        expected = f"a {type(structure).__name__} with {', '.join(n for n, _ in inner)}"
        received = type(values).__name__
        if own is not None:
            received = f"a {type(values).__name__} with {', '.join(n for n, _ in own)}"
        fix = "Give a nest with the structure of the signature."
        raise StructureError(Path(*names) if names else "values", expected, received, fix)
    for (name, item), (_, value) in zip(inner, own, strict=True):
        yield from _match(item, value, (*names, name))
