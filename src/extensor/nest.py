"""`tf.nest` functions with a documented argument `expand_composites`.

With `expand_composites=True` an extension value is a nest of its components, and a TypeSpec a nest
of its component specs.
"""

from extensor._protocol.nest import assert_same_structure, flatten, map_structure, pack_sequence_as

__all__ = ["assert_same_structure", "flatten", "map_structure", "pack_sequence_as"]
