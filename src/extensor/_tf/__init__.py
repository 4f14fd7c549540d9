"""The private names of TensorFlow that extensor reads, with the reasons.

Beside it only `_patches` names what is private to TensorFlow (a test checks), to change it; nothing
here changes anything. One file a subject, each with a table of the names that it holds, and one
probe a name in `tests/tf/test_tf_probe.py`, so that a new TensorFlow tells which one broke. Seen to
work with TensorFlow 2.20 and 2.21.

The names of the files all begin with `_tf_`, here and in `_patches`, so that the path of a line
tells that it names what is private to TensorFlow.
"""

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
from extensor._tf._tf_casting import CAST_CONTEXT
from extensor._tf._tf_composite import CompositeTensor, describes, is_refused, refuse
from extensor._tf._tf_data import as_numpy, data_nest, mapped, restructured
from extensor._tf._tf_gradient import GRADIENT, differentiable, with_differentiable
from extensor._tf._tf_protocol import (
    Extension,
    admit,
    admit_late,
    describes_extension,
    equip,
    own_spec,
    variables_read,
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
    box_specs,
    boxes,
    boxes_to_unstack,
    component_specs,
    deserialize,
    from_components,
    nan_equal_to_itself,
    number_key,
    ranks_only,
    serialize,
    stacked,
    to_components,
    unboxed,
    unstacked,
    without_names,
)

__all__ = [
    "CAST_CONTEXT",
    "DOTLESS",
    "GRADIENT",
    "BaseResourceVariable",
    "BatchableTypeSpec",
    "CompositeTensor",
    "Extension",
    "VariableSpec",
    "admit",
    "admit_late",
    "as_numpy",
    "box_specs",
    "boxes",
    "boxes_to_unstack",
    "component_specs",
    "data_nest",
    "describes",
    "describes_extension",
    "deserialize",
    "differentiable",
    "equip",
    "from_components",
    "is_refused",
    "mapped",
    "name_for_saving",
    "nan_equal_to_itself",
    "number_key",
    "own_spec",
    "ranks_only",
    "refuse",
    "registered_name",
    "registered_spec",
    "registered_specs",
    "replace_registration",
    "restructured",
    "serialize",
    "stacked",
    "to_components",
    "unboxed",
    "unstacked",
    "variables_read",
    "with_differentiable",
    "without_names",
]
