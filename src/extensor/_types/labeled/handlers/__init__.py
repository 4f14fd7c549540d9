"""Handlers of TensorFlow's operations for LabeledTensors; the import registers them."""

from extensor._types.labeled.handlers import arrangement as arrangement
from extensor._types.labeled.handlers import elementwise as elementwise
from extensor._types.labeled.handlers import product as product
from extensor._types.labeled.handlers import reduction as reduction
