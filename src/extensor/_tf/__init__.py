"""THE quarantine: every private TensorFlow name that extensor uses, and why it needs it.

No other package imports what is private to TensorFlow (a linter checks). One file a subject, each
with a table of the names that it holds, and one probe a name in `tests/test_tf_probe.py`, so that a
new TensorFlow tells which one broke. Seen to work with TensorFlow 2.20 and 2.21.

A file installs what it wraps when it is imported. Their names all begin with `_tf_`, so that the
path of a line tells that it stands in the quarantine.
"""

# pyright: reportUnusedImport=false

from __future__ import annotations

from extensor.errors import MissingDependencyError

# The requirement of pyproject.toml, asked for here because no extra need have been chosen.
try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    raise MissingDependencyError(
        path="extensor",
        expected="TensorFlow 2.20 or newer",
        received="no TensorFlow",
        mend='Install it: pip install "extensor[tf]", or "extensor[tf-cpu]" without a GPU.',
    ) from None
if tuple(int(part) for part in tf.__version__.split(".")[:2]) < (2, 20):
    raise MissingDependencyError(
        path="extensor",
        expected="TensorFlow 2.20 or newer",
        received=f"TensorFlow {tf.__version__}",
        mend='Upgrade it: pip install --upgrade "extensor[tf]", or "extensor[tf-cpu]".',
    )
from extensor._tf import (  # noqa: F401 - what they wrap is wrapped by importing them
    _tf_alias,
    _tf_as_tensor,
    _tf_autograph,
    _tf_data,
    _tf_distribute,
    _tf_nest,
    _tf_py_function,
    _tf_returned,
    _tf_saving,
    _tf_stacking,
    _tf_tracking,
)
from extensor._tf._tf_casting import CAST_CONTEXT, install_casting
from extensor._tf._tf_data import data_nest
from extensor._tf._tf_elements import as_numpy, install_batching, mapped, restructured
from extensor._tf._tf_gradient import GRADIENT, differentiable, with_differentiable
from extensor._tf._tf_protocol import (
    CompositeTensor,
    admit,
    admit_late,
    describes,
    is_refused,
    refuse,
)
from extensor._tf._tf_registry import (
    DOTLESS,
    name_for_saving,
    registered_name,
    registered_spec,
    registered_specs,
    replace_registration,
)
from extensor._tf._tf_spec import (
    BaseResourceVariable,
    BatchableTypeSpec,
    VariableSpec,
    component_specs,
    deserialize,
    from_components,
    nan_equal_to_itself,
    number_key,
    serialize,
    stacked,
    to_components,
    unstacked,
)
from extensor._tf._tf_stand_in import StandIn, plain_spec

__all__ = [
    "CAST_CONTEXT",
    "DOTLESS",
    "GRADIENT",
    "BaseResourceVariable",
    "BatchableTypeSpec",
    "CompositeTensor",
    "StandIn",
    "VariableSpec",
    "admit",
    "admit_late",
    "as_numpy",
    "component_specs",
    "data_nest",
    "describes",
    "deserialize",
    "differentiable",
    "from_components",
    "install_batching",
    "install_casting",
    "is_refused",
    "mapped",
    "name_for_saving",
    "nan_equal_to_itself",
    "number_key",
    "plain_spec",
    "refuse",
    "registered_name",
    "registered_spec",
    "registered_specs",
    "replace_registration",
    "restructured",
    "serialize",
    "stacked",
    "to_components",
    "unstacked",
    "with_differentiable",
]
