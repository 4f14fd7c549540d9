"""Functions for authors of extension types, used by `xt.types` too.

- The decorator `extension_type`, and `replace`: the same as `xt.extension_type` and `xt.replace`.
- Boxing of values of any spec: `box`, `unbox`, `boxed_specs`, `stacked_spec`, `unstacked_spec`,
  `expect_unstacks`. Batches of whole values: `batch_of`, `batch_item`.
- Rows of different lengths in flat values: `row_splits_of`, `row_ids`, `cut_rows`, `uncut_rows`,
  `take_rows`, `stack_rows`, `concat_rows`, `reduce_rows`, `num_rows`, `static_num_rows`,
  `rows_spec`, `sizes_of`.
  Boxed rows: `box_rows`, `unbox_rows`, `boxed_rows_specs`.
- Pairs of positions in a batch, such as edges: `Pairs`, `first_positions`.
- Lossless conversions: `as_tensor`, `lossless`, `integers`, `is_tensor_like`, `array_over`,
  `tensor_over`.
  Casts: `cast_value`, `castable_type`, `supertype`.
- Checks: in NumPy (`known_arrays`, `check_row_splits`), in a graph (`assertions`,
  `with_rows_of`), or in both (`required`).
- Static data: `FrozenDict`.
"""

from extensor._authoring.batch import batch_item, batch_of, expect_unstacks
from extensor._authoring.boxed_rows import box_rows, boxed_rows_specs, unbox_rows
from extensor._authoring.component_check import assertions, integers, known_arrays
from extensor._authoring.pairs import Pairs, first_positions
from extensor._authoring.rows import (
    concat_rows,
    cut_rows,
    num_rows,
    reduce_rows,
    row_ids,
    row_splits_of,
    rows_spec,
    sizes_of,
    stack_rows,
    static_num_rows,
    take_rows,
    uncut_rows,
)
from extensor._authoring.same_rows import with_rows_of
from extensor._declare.decorator import extension_type, replace
from extensor._declare.static_data import FrozenDict
from extensor._memory import array_over, tensor_over
from extensor._protocol.box import box, boxed_specs, stacked_spec, unbox, unstacked_spec
from extensor._protocol.casting import cast_value, castable_type, required
from extensor._protocol.lossless import as_tensor, is_tensor_like, lossless
from extensor._protocol.row_splits import check_row_splits
from extensor._protocol.tree import supertype

__all__ = [
    "FrozenDict",
    "Pairs",
    "array_over",
    "as_tensor",
    "assertions",
    "batch_item",
    "batch_of",
    "box",
    "box_rows",
    "boxed_rows_specs",
    "boxed_specs",
    "cast_value",
    "castable_type",
    "check_row_splits",
    "concat_rows",
    "cut_rows",
    "expect_unstacks",
    "extension_type",
    "first_positions",
    "integers",
    "is_tensor_like",
    "known_arrays",
    "lossless",
    "num_rows",
    "reduce_rows",
    "replace",
    "required",
    "row_ids",
    "row_splits_of",
    "rows_spec",
    "sizes_of",
    "stack_rows",
    "stacked_spec",
    "static_num_rows",
    "supertype",
    "take_rows",
    "tensor_over",
    "unbox",
    "unbox_rows",
    "uncut_rows",
    "unstacked_spec",
    "with_rows_of",
]
