"""Nests of tensors, with extension values taken apart on demand.

TensorFlow's own `tf.nest`, under one roof with its `expand_composites` argument documented: with
`expand_composites=True` an extension value is a nest of its components, and a TypeSpec a nest of
its component specs.
"""

from extensor._protocol.nest import assert_same_structure, flatten, map_structure, pack_sequence_as

__all__ = ["assert_same_structure", "flatten", "map_structure", "pack_sequence_as"]
