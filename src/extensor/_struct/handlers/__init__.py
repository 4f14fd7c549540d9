"""Handlers of TensorFlow's operations for records; the import registers them."""

from extensor._struct.handlers import refused as refused  # first: it is called last

# isort: split
from extensor._struct.handlers import arrangement as arrangement
from extensor._struct.handlers import selection as selection
