"""StructuredTensor: nested records as tensors, in Arrow's own layout."""

# The import registers the handlers of TensorFlow's operations.
import extensor._struct.handlers as _  # noqa: F401
from extensor._formats.python.classes import spec_from
from extensor._formats.python.constant import constant, constant_value
from extensor._struct.display import tree
from extensor._struct.from_tf import from_tf, to_tf
from extensor._struct.zipped import zip_ as _zip

__all__ = ["constant", "constant_value", "from_tf", "spec_from", "to_tf", "tree"]

# Public, but not in `__all__`: a star-import must not replace the builtin of this name.
zip = _zip
