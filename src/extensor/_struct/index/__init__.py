"""Indexing: fields by name, records by position."""

from extensor._struct.index.pick import gathered as gathered
from extensor._struct.index.pick import is_step_of_one as is_step_of_one
from extensor._struct.index.pick import sliced as sliced
from extensor._struct.index.pick import slicer as slicer
from extensor._struct.index.select import select as select
from extensor._struct.index.take import ALL as ALL
from extensor._struct.index.take import each as each
from extensor._struct.index.take import each_row as each_row
from extensor._struct.index.take import gather as gather
from extensor._struct.index.take import gathered_at as gathered_at
from extensor._struct.index.take import merged as merged
from extensor._struct.index.take import numbered as numbered
from extensor._struct.index.take import numbers_of as numbers_of
from extensor._struct.index.take import take as take
from extensor._struct.index.take import take_row as take_row
from extensor._struct.index.zero import with_zero as with_zero
