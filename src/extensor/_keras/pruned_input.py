"""Datasets of files for `fit`, `evaluate` and `predict`, with the fields that the model uses."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from extensor._data.fields_used import uses_by
from extensor._data.prunable import prune, specs_of_used
from extensor._keras.lowering import BOXES, is_extension_spec, key_of_form, spec_of_value
from extensor._protocol.box import boxed_specs
from extensor._pruning.components import components, is_fixed, is_opaque
from extensor._pruning.consumption import NOTHING, SHAPE, VALUE
from extensor._tf import with_element_spec
from extensor._typing import Nest

if TYPE_CHECKING:
    from extensor._keras.trainer import Trainer
    from extensor._struct.dense import DenseStructuredTensor

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
        form = _form_of_fields(found.element_spec, found.uses, found.narrow_spec)
        return with_element_spec(found.dataset, form)
    uses = iter(found.uses)
    return with_element_spec(
        found.dataset, tf.nest.map_structure(lambda spec: _form(spec, uses), found.element_spec)
    )


def of_fields(records: DenseStructuredTensor, names: list[str]) -> tuple[Any, Any]:
    """Returns records with some fields, and the form in which a model gets a batch of them.

    If nothing can be left out, it returns the records as they are, and None.

    Args:
        records: A DenseStructuredTensor.
        names: The names of the fields that are read.
    """
    spec = spec_of_value(records)
    parts = components(spec)
    # The form is not known of a field of a type that is not known here.
    whole = [is_opaque(part) or is_fixed(part) for part in parts]
    names = [
        *names,
        *(part.names[0] for part, is_kept in zip(parts, whole, strict=True) if is_kept),
    ]
    kept = [name for name in records.field_names() if name in names]
    has_count = any(
        not part.lists and part.names[0] in kept and not is_kept
        for part, is_kept in zip(parts, whole, strict=True)
    )
    if len(kept) == len(records.field_names()) or not has_count:
        return records, None
    narrow = records.with_only(*kept)
    narrow_spec = spec_of_value(narrow)
    uses = [VALUE if part.names[0] in kept else NOTHING if part.lists else SHAPE for part in parts]
    return narrow, _form_of_fields(spec, uses, narrow_spec)


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


def _form_of_fields(
    spec: tf.TypeSpec, uses: Sequence[int], narrow_spec: tf.TypeSpec
) -> dict[str, Any]:
    """Returns the spec of the lowered form of records, as boxes of some of their fields."""
    return {key_of_form(spec, BOXES, uses, narrow_spec): tuple(boxed_specs(narrow_spec))}
