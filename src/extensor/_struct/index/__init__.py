"""Indexing: fields by name, records by position."""

from extensor._struct.index.pick import gather_tensor as gather_tensor
from extensor._struct.index.pick import is_step_of_one as is_step_of_one
from extensor._struct.index.pick import slice_op as slice_op
from extensor._struct.index.pick import slice_tensor as slice_tensor
from extensor._struct.index.select import select as select
from extensor._struct.index.take import ALL as ALL
from extensor._struct.index.take import gather as gather
from extensor._struct.index.take import gather_at as gather_at
from extensor._struct.index.take import merge_outer_dims as merge_outer_dims
from extensor._struct.index.take import number_items as number_items
from extensor._struct.index.take import range_of_shape as range_of_shape
from extensor._struct.index.take import rows_between as rows_between
from extensor._struct.index.take import take as take
from extensor._struct.index.take import take_row as take_row
from extensor._struct.index.take import unstack as unstack
from extensor._struct.index.take import unstack_rows as unstack_rows
from extensor._struct.index.take import with_zeros as with_zeros
