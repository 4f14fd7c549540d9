"""`tf.nest` functions, with the argument `expand_composites` that decomposes extension values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from extensor._tf._tf_protocol import with_own_components
from extensor._typing import Value
from extensor.errors import StructureError


def flatten(structure: object, expand_composites: bool = False) -> list[Any]:
    """Returns the leaves of a nest as a list.

    Args:
        structure: Any nest (as `tf.nest` has it) of values or of specs.
        expand_composites: Whether an extension value counts as a nest of its component tensors,
            and a TypeSpec as a nest of its component TensorSpecs.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> len(xt.nest.flatten({"x": ragged})), len(xt.nest.flatten({"x": ragged}, True))
    (1, 2)
    """
    if expand_composites:
        structure = with_own_components(structure)
    return tf.nest.flatten(structure, expand_composites)


def pack_sequence_as(
    structure: object, flat_sequence: Iterable[Any], expand_composites: bool = False
) -> Any:
    """Returns a nest shaped like `structure` with its leaves taken from a flat sequence.

    Args:
        structure: Any nest of values or of specs.
        flat_sequence: As many leaves as `flatten(structure, expand_composites)` has. Tensors, not
            specs, where extension values are to be packed.
        expand_composites: Whether extension values (or specs) in `structure` are rebuilt from
            their components: dynamic data comes from `flat_sequence`, static data from the spec.

    Raises:
        ValueError: If the number of leaves differs.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> xt.nest.pack_sequence_as(ragged, [tf.constant([7, 8, 9]), ragged.row_splits], True)
    <tf.RaggedTensor [[7, 8], [9]]>
    """
    return tf.nest.pack_sequence_as(
        structure, list(flat_sequence), expand_composites=expand_composites
    )


def map_structure(
    func: Callable[..., Any], *structures: Any, expand_composites: bool = False
) -> Any:
    """Returns a nest whose leaves are `func` of the leaves of the given nests.

    Args:
        func: Takes as many leaves as there are nests.
        *structures: Nests of the same structure.
        expand_composites: Whether `func` sees the component tensors of extension values, which
            are then rebuilt as values of their original types.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> xt.nest.map_structure(lambda t: t * 2, ragged).to_list()
    [[2, 4], [6]]
    """
    return tf.nest.map_structure(func, *structures, expand_composites=expand_composites)


def assert_same_structure(
    nest1: object, nest2: object, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises an error if two nests differ in structure.

    Args:
        nest1: Any nest of values or of specs.
        nest2: Another nest.
        check_types: Whether the types of containers must be the same too.
        expand_composites: Whether extension values (or specs) are decomposed; two of them then
            have the same structure if some TypeSpec is compatible with both.

    Raises:
        ValueError: If the structures differ, or no TypeSpec is compatible with both values.
        TypeError: If the types of containers differ.

    >>> import tensorflow as tf
    >>> import extensor as xt
    >>> xt.nest.assert_same_structure({"x": 1}, {"x": tf.constant(2)})
    """
    tf.nest.assert_same_structure(
        nest1, nest2, check_types=check_types, expand_composites=expand_composites
    )
    if expand_composites:
        # tf.nest compares two values, or a value and a spec, but accepts any two specs as equal.
        tf.nest.map_structure(_assert_common_supertype, nest1, nest2, check_types=check_types)


def _assert_common_supertype(a: Value, b: Value) -> None:
    specs = [x for x in (a, b) if isinstance(x, tf.TypeSpec) and not isinstance(x, tf.TensorSpec)]
    if len(specs) == 2 and a.most_specific_common_supertype([b]) is None:
        at = "assert_same_structure"
        fix = "Two specs have the same structure if some TypeSpec is compatible with both."
        raise StructureError(at, f"a TypeSpec that is compatible with {a}", str(b), fix)
