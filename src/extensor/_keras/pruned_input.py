"""Datasets of files for `fit`, `evaluate` and `predict`, with the fields that the model uses."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._data.fields_used import uses_by
from extensor._data.prunable import prune, specs_of_used
from extensor._keras.lowering import BOXES, is_extension_spec, key_of_form
from extensor._protocol.box import boxed_specs
from extensor._pruning.components import components
from extensor._pruning.consumption import VALUE
from extensor._tf import with_element_spec
from extensor._typing import Nest

if TYPE_CHECKING:
    from extensor._keras.trainer import Trainer

_LOG = logging.getLogger("extensor")

# How the steps of a model use an element, by the name of the step and the spec of the element.
# Keras traces a step once for each, so a later change of the model changes nothing.
_known: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()


def pruned_input(
    model: Trainer,
    step: Callable[[Any], Any],
    data: tf.data.Dataset,
    create_variables: Callable[[], None],
) -> tf.data.Dataset:
    """Returns a dataset of files that reads only the fields that a model uses.

    Values come lowered, with the tensors that are used.

    Args:
        model: The model.
        step: The method of the model that gets each element.
        data: A dataset for which `is_prunable`.
        create_variables: Creates all variables of the model, before its step is traced.
    """

    def uses_of(spec: Nest) -> dict[int, int]:
        known = _known.setdefault(model, {})
        key = step.__name__, repr(spec)
        if key not in known:
            create_variables()
            known[key] = _with_plain(uses_by(step, spec), spec)
        return known[key]

    try:
        found = prune(data, uses_of)
    except Exception as error:
        _LOG.debug("extensor reads all fields, because tracing the step failed: %r", error)
        return data
    if found is None:
        return data
    if all(use == VALUE for use in found.uses):
        return found.dataset
    if found.narrow_spec is not None:
        key = key_of_form(found.element_spec, BOXES, found.uses, found.narrow_spec)
        return with_element_spec(found.dataset, {key: tuple(boxed_specs(found.narrow_spec))})
    uses = iter(found.uses)
    return with_element_spec(
        found.dataset, tf.nest.map_structure(lambda spec: _form(spec, uses), found.element_spec)
    )


def forget_uses(model: Trainer) -> None:
    """Forgets how the steps of a model use elements, because the steps are traced again."""
    _known.pop(model, None)


def _with_plain(uses: dict[int, int], spec: Nest) -> dict[int, int]:
    """Returns uses in which all plain tensors are used, because Keras needs their places."""
    uses, number = dict(uses), 0
    for leaf in tf.nest.flatten(spec):
        for _ in components(leaf):
            if not is_extension_spec(leaf):
                uses[number] = VALUE
            number += 1
    return uses


def _form(spec: tf.TypeSpec, uses: Iterator[int]) -> Nest:
    """Returns the spec of the lowered form of a value, or a spec of plain tensors as it is."""
    parts = components(spec)
    own = [next(uses) for _ in parts]
    if not is_extension_spec(spec):
        return spec
    return {key_of_form(spec, uses=own): tuple(specs_of_used(parts, own))}
