"""Datasets of files that can be read again with fewer fields.

A dataset remembers the methods that were called on it. So, when a model uses only some fields, the
same methods are called on a dataset that reads only these. The functions of `map` get records with
all fields, in which the fields that nothing uses are blank. They do not notice, because no result
depends on these.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from extensor._data.fields_used import consumption_of
from extensor._pruning.components import blank, checked_uses, components, with_blanks
from extensor._pruning.consumption import NOTHING, SHAPE, VALUE
from extensor._pruning.fields import FieldsUsed
from extensor._struct.component import ComponentTensor
from extensor.errors import ExtensorError

Uses = tuple[int, ...]
"""How each component tensor of an element is used."""

_ORIGIN = "_extensor_origin"

# Methods of functions, and the name of this argument.
_FUNCTIONS = {"map": "map_func", "filter": "predicate"}

# Methods whose results have the elements of the dataset, as they are.
SAME_ELEMENTS = ("cache", "prefetch", "repeat", "shard", "shuffle", "skip", "take", "with_options")

# Methods that may use everything in an element. Before them, `map` may leave out fields.
_OTHER = ("batch", "enumerate", "ragged_batch", "rebatch", "unbatch")


@dataclass(frozen=True)
class _Step:
    """A method that was called on a dataset, and its arguments by name."""

    name: str
    arguments: dict[str, Any]
    before: Any  # the spec of the elements of the dataset
    after: Any  # the spec of the elements of the result

    @functools.cached_property
    def function(self) -> Callable[[Any], Any]:
        """The function that was passed to `map` or `filter`, of one element.

        It is one function of TensorFlow, which is traced once: to know what it uses, and to run.
        """
        passed = self.arguments[_FUNCTIONS[self.name]]
        if type(self.before) is tuple:  # as Dataset.map does
            return tf.function(lambda element: passed(*element))
        return tf.function(lambda element: passed(element))

    def called_on(
        self, dataset: tf.data.Dataset, function: Callable[..., Any] | None = None
    ) -> tf.data.Dataset:
        """Returns the result of the same call on another dataset.

        Args:
            dataset: The other dataset.
            function: The function to pass instead of the one that was passed.
        """
        other = {} if function is None else {_FUNCTIONS[self.name]: function}
        return getattr(dataset, self.name)(**{**self.arguments, **other})


@dataclass(frozen=True)
class _Origin:
    """Where a dataset comes from: how its source is read, and the methods that were called."""

    reread: Callable[[FieldsUsed], tf.data.Dataset]
    source_spec: Any
    steps: tuple[_Step, ...] = ()
    known: dict[Uses, Pruned | None] = field(default_factory=dict[Any, Any])  # what was pruned


@dataclass(frozen=True)
class Pruned:
    """A dataset that reads the fields that are used.

    If all of an element is used, the elements are those of the dataset that was pruned. Otherwise
    an element is a tuple of the tensors that are used, or, without `map`, the records that are
    read.
    """

    dataset: tf.data.Dataset
    element_spec: Any  # of the dataset that was pruned
    uses: Uses
    narrow_spec: Any = None  # of the records that are read, if these are the elements


class _NotPrunableError(Exception):
    """A function does not behave when it is traced as it did in the dataset."""


@functools.cache
def _prunable_class(kind: Any) -> type[tf.data.Dataset]:
    """Returns a subclass of a class of datasets, whose methods remember their arguments."""

    def remembering(name: str) -> Callable[..., tf.data.Dataset]:
        plain: Callable[..., tf.data.Dataset] = getattr(kind, name)
        signature = inspect.signature(plain)

        @functools.wraps(plain)
        def method(self: tf.data.Dataset, *args: Any, **kwargs: Any) -> tf.data.Dataset:
            _, *given = signature.bind(self, *args, **kwargs).arguments.items()
            arguments = dict(given)
            if name == "shuffle" and arguments.get("seed") is None:
                # With a global seed, TensorFlow takes the next of its seeds. The pruned dataset
                # needs the same one.
                _, arguments["seed"] = tf.compat.v1.get_seed(None)
            result = plain(self, **arguments)
            if is_prunable(result):
                return result  # the method called another of our methods
            if name == "cache" and arguments.get("filename"):
                return result  # the file has the elements with all fields
            origin = getattr(self, _ORIGIN)
            step = _Step(name, arguments, self.element_spec, result.element_spec)
            steps = (*origin.steps, step)
            return _with(result, _Origin(origin.reread, origin.source_spec, steps))

        return method

    methods = {name: remembering(name) for name in (*_FUNCTIONS, *SAME_ELEMENTS, *_OTHER)}
    # The only base is the class, so that Python lets a dataset change its class to the subclass.
    return type(kind)(kind.__name__, (kind,), {"__module__": kind.__module__, **methods})


def prunable(
    dataset: tf.data.Dataset, reread: Callable[[FieldsUsed], tf.data.Dataset]
) -> tf.data.Dataset:
    """Returns a dataset of records that models may read with fewer fields.

    Args:
        dataset: The dataset of records with all fields. It gets more methods.
        reread: Returns the dataset of the same records with some of the fields.
    """
    return _with(dataset, _Origin(reread, dataset.element_spec))


def is_prunable(dataset: object) -> bool:
    """Returns whether a dataset may be read with fewer fields."""
    return isinstance(dataset, tf.data.Dataset) and hasattr(dataset, _ORIGIN)


def _with(dataset: tf.data.Dataset, origin: _Origin) -> tf.data.Dataset:
    dataset.__class__ = _prunable_class(type(dataset))
    setattr(dataset, _ORIGIN, origin)
    return dataset


def prune(dataset: tf.data.Dataset, uses_of: Callable[[Any], dict[int, int]]) -> Pruned | None:
    """Returns a dataset that reads only the fields that are used.

    Args:
        dataset: A dataset for which `is_prunable`.
        uses_of: Returns how an element is used, from the element's spec.

    Returns:
        None if all fields are used, or if the dataset cannot be pruned.
    """
    origin: _Origin = getattr(dataset, _ORIGIN)
    stop = next((i for i, step in enumerate(origin.steps) if step.name in _OTHER), None)
    steps = origin.steps[:stop]
    spec = steps[-1].after if steps else origin.source_spec
    uses = _check_uses(spec, uses_of(spec)) if stop is None else (VALUE,) * len(_parts(spec))
    if uses not in origin.known:
        origin.known[uses] = _rebuild(origin, steps, spec, uses)
    found = origin.known[uses]
    if found is None or stop is None:
        return found
    rest = found.dataset
    for step in origin.steps[stop:]:
        rest = step.called_on(rest)
    spec = dataset.element_spec
    return Pruned(rest, spec, (VALUE,) * len(_parts(spec)))


def _rebuild(origin: _Origin, steps: Sequence[_Step], spec: Any, uses: Uses) -> Pruned | None:
    """Returns the dataset of the same steps over fewer fields, or None."""
    needed = [uses]
    for step in reversed(steps):
        try:
            needed.append(_before(step, needed[-1]))
        except _NotPrunableError:
            return None
    needed.reverse()
    source_spec = origin.source_spec
    if all(needed[0]):
        return None
    try:
        dataset = origin.reread(FieldsUsed(source_spec, needed[0]))
    except ExtensorError:
        return None  # such as `nulls` that fill a record of which some fields are not read
    narrow_spec = dataset.element_spec
    if not _has_all(components(source_spec), needed[0], components(narrow_spec)):
        return None
    unpack: Any = functools.partial(with_blanks, source_spec, needed[0], narrow_spec)
    is_packed = False
    for step, kept in zip(steps, needed[1:], strict=True):
        if step.name == "map":
            dataset = step.called_on(dataset, _packing(step, unpack, kept))
            if dataset.element_spec != _packed_spec(step.after, kept):
                return None
            unpack, is_packed = functools.partial(_unpack, step.after, kept), True
        elif step.name == "filter":
            dataset = step.called_on(dataset, _packing(step, unpack))
        else:
            dataset = step.called_on(dataset)
    if not is_packed:
        return Pruned(dataset, source_spec, needed[0], narrow_spec)
    return Pruned(dataset, spec, uses)


def _before(step: _Step, uses: Uses) -> Uses:
    """Returns how the elements before a step are used, from how those after it are."""
    if step.name not in _FUNCTIONS:
        return uses
    is_map = step.name == "map"

    def call(element: Any) -> Any:
        result = step.function(element)
        if is_map:
            _check_structure(result, step.after)
        return result

    consumption = consumption_of(call, step.before)
    if consumption.draws_by_place():
        raise _NotPrunableError
    if is_map:
        used = {i: use for i, use in enumerate(uses) if use}
        return _check_uses(step.before, consumption.input_uses(used))
    found = _check_uses(step.before, consumption.input_uses({0: VALUE}))
    return tuple(map(max, found, uses))


def _check_structure(result: Any, spec: Any) -> None:
    try:
        tf.nest.assert_same_structure(result, spec)
    except (TypeError, ValueError) as error:
        raise _NotPrunableError from error
    flat = tf.nest.flatten(result, expand_composites=True)
    if len(flat) != len(_parts(spec)):
        raise _NotPrunableError


def _packing(step: _Step, unpack: Callable[..., Any], uses: Uses = ()) -> Callable[..., Any]:
    """Returns the function of a step for packed elements.

    Args:
        step: A step with a function.
        unpack: Returns an element from its packed form.
        uses: How the result is used, whose packed form is returned; empty for the whole result.
    """

    @tf.autograph.experimental.do_not_convert  # but AutoGraph converts the function
    def packing(*packed: Any) -> Any:
        return _pack(step.function(unpack(*packed)), uses)

    return packing


def _parts(spec: Any) -> list[ComponentTensor]:
    """Returns the components of all specs in a nest."""
    return [part for leaf in tf.nest.flatten(spec) for part in components(leaf)]


def _check_uses(spec: Any, uses: dict[int, int]) -> Uses:
    checked = checked_uses(_parts(spec), uses)
    if not any(checked):
        checked[0] = VALUE  # an element has at least one tensor
    return tuple(checked)


def _has_all(
    parts: Sequence[ComponentTensor], uses: Uses, narrow: Sequence[ComponentTensor]
) -> bool:
    """Returns whether records with fewer fields have all components that are used."""
    specs = {part.steps: part.spec for part in narrow}
    rows = {part.lists for part in narrow}
    whole = {part.steps: part.spec for part in parts}
    return (
        all(part.steps in specs for part, use in zip(parts, uses, strict=True) if use == VALUE)
        and all(part.lists in rows for part, use in zip(parts, uses, strict=True) if use == SHAPE)
        and all(whole.get(key) == spec for key, spec in specs.items())
    )


def _pack(element: Any, uses: Uses) -> Any:
    """Returns the tensors of an element that are used."""
    if all(use == VALUE for use in uses):
        return element
    flat = tf.nest.flatten(element, expand_composites=True)
    return tuple(
        tensor if use == VALUE else tf.shape(tensor, tf.int64)[0]
        for tensor, use in zip(flat, uses, strict=True)
        if use
    )


def _packed_spec(spec: Any, uses: Uses) -> Any:
    if all(use == VALUE for use in uses):
        return spec
    return tuple(specs_of_used(_parts(spec), uses))


def specs_of_used(parts: Sequence[ComponentTensor], uses: Sequence[int]) -> list[tf.TensorSpec]:
    """Returns the specs of the tensors of a pruned element."""
    return [
        tf.TensorSpec(part.spec.shape, part.spec.dtype)
        if use == VALUE
        else tf.TensorSpec([], tf.int64)
        for part, use in zip(parts, uses, strict=True)
        if use
    ]


def _unpack(spec: Any, uses: Uses, *raw: Any) -> Any:
    if all(use == VALUE for use in uses):
        return raw if type(spec) is tuple else raw[0]
    return unpack_used(spec, uses, raw)


def unpack_used(spec: Any, uses: Sequence[int], tensors: Sequence[Any]) -> Any:
    """Returns an element from the tensors that are used, with blanks for the others.

    Args:
        spec: The nest of specs of the element.
        uses: How each of its components is used.
        tensors: The tensors of a pruned element.
    """
    given = iter(tensors)
    flat: list[Any] = []
    for part, use in zip(_parts(spec), uses, strict=True):
        if use == VALUE:
            flat.append(next(given))
        elif use == SHAPE:
            flat.append(blank(part.spec, next(given)))
        else:
            assert use == NOTHING
            flat.append(blank(part.spec))
    return tf.nest.pack_sequence_as(spec, flat, expand_composites=True)
