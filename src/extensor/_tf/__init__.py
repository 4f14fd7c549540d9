"""All private TensorFlow names that extensor reads, each with the reason.

Only `_patches` uses such names too, to change them; this package changes nothing. Each file has one
subject and a table of its names. Each name has a probe in `tests/tf/test_tf_probe.py`, which fails
if a new TensorFlow breaks it. Tested with TensorFlow 2.20 and 2.21.

The names of files that use private names begin with `_tf_`, here and in `_patches`; a test checks
this.
"""

from __future__ import annotations

# ruff: noqa: F401 - other folders import the names from here
# pyright: reportUnusedImport=false
from extensor.errors import MissingDependencyError

# The requirement of pyproject.toml, checked here because it is only in optional extras.
try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    expected = "TensorFlow 2.20 or newer"
    fix = 'Install it: pip install "extensor[tf]", or "extensor[tf-cpu]" without a GPU.'
    raise MissingDependencyError("extensor", expected, "no module tensorflow", fix) from None
if tuple(int(part) for part in tf.__version__.split(".")[:2]) < (2, 20):
    expected = "TensorFlow 2.20 or newer"
    fix = 'Upgrade it: pip install --upgrade "extensor[tf]", or "extensor[tf-cpu]".'
    raise MissingDependencyError("extensor", expected, f"TensorFlow {tf.__version__}", fix)
from extensor._tf._tf_casting import CAST_CONTEXT
from extensor._tf._tf_composite import CompositeTensor, describes, is_refused, refuse
from extensor._tf._tf_data import (
    as_numpy,
    data_nest,
    map_elements,
    method_of_other_elements,
    with_element_spec,
)
from extensor._tf._tf_distributed import DistributedVariableSpec, spec_of_variable
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
from extensor._tf._tf_ragged import ragged_tensor
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
    unbox,
    unstacked,
    without_names,
)
