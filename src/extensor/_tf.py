"""THE quarantine: every private TensorFlow name that extensor uses, and why it needs it.

No other module imports `tensorflow.python`, `tensorflow.core` or `tf.__internal__` (a linter
checks). `tests/test_tf_probe.py` holds one probe a name, so that a new TensorFlow tells which one
broke. Seen to work with TensorFlow 2.20 and 2.21.

| name | why |
| --- | --- |
| `CompositeTensor` | TensorFlow asks `isinstance(value, CompositeTensor)` wherever it decides whether a value decomposes into tensors. It is an ABCMeta class, so a `__subclasshook__` lets classes in that have no base of ours. |
| `tf.types.experimental.SupportsTracingProtocol` (public; that it is asked first is not) | tf.function asks a value's class for this protocol before anything else asks for CompositeTensor. The same hook stands there, so that tf.function may be the first API that a class meets. |
| `BatchableTypeSpec` | `Dataset.batch`, `map_fn` and `vectorized_map` stack values of these specs only. |
| `type_spec_registry` | The one registry of names under which specs are written into a SavedModel. Its `register` refuses what a re-run notebook cell does; its two tables are amended here. |
| `autograph.core.config.CONVERSION_RULES` | autograph rewrites the source of what a tf.function calls, unless a rule names its module, as TensorFlow's own list does for Keras and TFP. Rewriting extensor would make every trace slow and gain nothing: no loop of it depends on a tensor. |
| `VariableSpec` | A field that holds a Variable is described by it, so that the variable survives tf.function. |
| `__composite_gradient__` | Gradients ask a value's class for it: which of its tensors have a gradient, and how to put gradients in their place. |
| `imperative_grad` | `GradientTape.gradient(..., unconnected_gradients="zero")` hands C++ a list of sources in which an extension value stands once, beside one with all its tensors: it reads past the end and ends the process. |
| `tf.GradientTape.jacobian` and `batch_jacobian` (public; wrapped) | They reshape the gradients that they found, which only tensors can be. |
| `tf.register_tensor_conversion_function` (public) | Where TensorFlow wants one tensor and gets an extension value, its own errors speak of lengths and NumPy. |
| `structure` | `Dataset.scan` and `reduce` take the spec of a state apart into type, shape and class, and can put together only those of tensors. `convert_legacy_structure` (which walks nests with tf.data's own `nest`) keeps what `TypeSpec._to_legacy_output_types` and `_to_legacy_output_shapes` said of an extension type whole. |
| `window_op` | `Dataset.window` makes one dataset for each tensor of an element, and takes them for one for each value. |
| `input_lib` | A loop over a distributed dataset inside tf.function makes a stand-in for the batch of a replica that got none, which `_dummy_tensor_fn` can do of tensors only. |
| `data_structures` | What a tf.Module saves is what `sticky_attribute_assignment` finds in its attributes; it does not look for variables inside extension values. |
| `TypeSpec._to_components` and its kin | The jobs of TensorFlow's own specs have private names only; the laws hold for them too, so `extensor.testing` calls every spec's jobs by these. |
"""  # noqa: E501 - a table row is one line

# pyright: reportPrivateUsage=false

from __future__ import annotations

import abc
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from extensor.errors import DTypeError, MissingDependencyError

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
from tensorflow.python.autograph.core import config as autograph_config
from tensorflow.python.data.ops import window_op
from tensorflow.python.data.util import nest as data_nest
from tensorflow.python.data.util import structure
from tensorflow.python.distribute import input_lib
from tensorflow.python.eager import imperative_grad
from tensorflow.python.framework import type_spec_registry
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.framework.type_spec import BatchableTypeSpec
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable, VariableSpec
from tensorflow.python.trackable import data_structures  # pyright: ignore[reportAttributeAccessIssue]

__all__ = [
    "GRADIENT",
    "BaseResourceVariable",
    "BatchableTypeSpec",
    "CompositeTensor",
    "VariableSpec",
    "admit",
    "component_specs",
    "deserialize",
    "differentiable",
    "from_components",
    "registered_name",
    "registered_spec",
    "replace_registration",
    "serialize",
    "stacked",
    "to_components",
    "unstacked",
    "with_differentiable",
]

_PROTOCOL = "__tf_type_spec__"


class _TypeSpecOfValue:
    """Gives TensorFlow `value._type_spec`, which it reads where the protocol has a method.

    Not a data descriptor: a class that keeps an attribute of this name in its instances keeps it.
    """

    def __get__(self, value: Any, owner: type | None = None) -> Any:
        return self if value is None else value.__tf_type_spec__()


def _tracing_type(self: Any, context: Any) -> Any:
    return self.__tf_type_spec__().__tf_tracing_type__(context)


def _convert_variables_to_tensors(self: Any) -> Any:
    """Returns the value with variables read, where its spec speaks of a plain tensor."""
    spec = self.__tf_type_spec__()
    read_any = False

    def read(component_spec: Any, component: Any) -> Any:
        nonlocal read_any
        if isinstance(component, BaseResourceVariable) and isinstance(
            component_spec, tf.TensorSpec
        ):
            read_any = True
            return tf.convert_to_tensor(component)
        return component

    components = tf.nest.map_structure(read, spec._component_specs, spec._to_components(self))
    return spec._from_components(components) if read_any else self


def _shape_invariant_to_type_spec(self: Any, shape: Any) -> Any:
    if shape is None:
        return self.__tf_type_spec__()
    raise NotImplementedError(
        f"{type(self).__name__}: expected a TypeSpec as shape invariant, got a shape. "
        "Give tf.while_loop a TypeSpec for this loop variable."
    )


def differentiable(value: Any) -> list[Any]:
    """Returns the tensors and variables that a value has gradients for: its numbers with a point.

    Args:
        value: A nest of tensors, variables, and values that decompose into them. Whatever else
            stands in it has no gradient.

    >>> from extensor._tf import differentiable
    >>> differentiable({"ragged": tf.ragged.constant([[1.0], []]), "text": tf.constant("a")})
    [<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>]
    """
    found: list[Any] = []
    for leaf in tf.nest.flatten(value):
        if isinstance(leaf, (tf.Tensor, BaseResourceVariable)):
            if leaf.dtype.is_floating or leaf.dtype.is_complex:
                found.append(leaf)
        elif isinstance(leaf, CompositeTensor):
            found.extend(differentiable(leaf._type_spec._to_components(leaf)))
    return found


def with_differentiable(value: Any, tensors: Iterator[Any]) -> Any:
    """Returns a value with other tensors in place of those that `differentiable` finds in it.

    Args:
        value: A nest of tensors, variables, and values that decompose into them.
        tensors: Yields the tensors, in the order in which `differentiable` finds the old ones.
    """

    def replaced(leaf: Any) -> Any:
        if not differentiable(leaf):
            return leaf
        if isinstance(leaf, (tf.Tensor, BaseResourceVariable)):
            return next(tensors)
        spec = leaf._type_spec
        return spec._from_components(with_differentiable(spec._to_components(leaf), tensors))

    return tf.nest.map_structure(replaced, value)


class _Gradient:
    """Tells TensorFlow how an extension value takes part in gradients.

    Its floating point components have gradients. Its gradient is a value of the same type with
    the gradients of those in their place and all other components kept, as the gradient of a
    RaggedTensor keeps its row splits.
    """

    def get_gradient_components(self, value: Any) -> list[Any]:
        # A variable would be taken for a source of its own, its handle is what the tape watches.
        return [
            leaf.handle if isinstance(leaf, BaseResourceVariable) else leaf
            for leaf in differentiable(value)
        ]

    def replace_gradient_components(self, value: Any, component_grads: Any) -> Any:
        if not component_grads:
            return value
        if all(gradient is None for gradient in component_grads):
            return None
        # A value lacks no component, so where only some have gradients, those of others are zero.
        dense = [
            tf.zeros_like(leaf)
            if gradient is None
            else tf.convert_to_tensor(gradient)
            if isinstance(gradient, tf.IndexedSlices)
            else gradient
            for leaf, gradient in zip(differentiable(value), component_grads, strict=True)
        ]
        return with_differentiable(value, iter(dense))


GRADIENT = _Gradient()

_MEMBERS: dict[str, Any] = {
    "_type_spec": _TypeSpecOfValue(),
    "__tf_tracing_type__": _tracing_type,
    "_convert_variables_to_tensors": _convert_variables_to_tensors,
    "_shape_invariant_to_type_spec": _shape_invariant_to_type_spec,
    "_consumers": CompositeTensor._consumers,
    "__composite_gradient__": GRADIENT,
}


def admit(cls: type) -> bool:
    """Makes a class that defines `__tf_type_spec__` what TensorFlow means by a composite tensor.

    Args:
        cls: Any class.

    Returns:
        Whether the class follows the protocol.
    """
    # A protocol has no values of its own, and on Python 3.10 and 3.11 it would ask of every class
    # what is added to it.
    if getattr(cls, "_is_protocol", False):
        return False
    if not any(_PROTOCOL in vars(base) for base in cls.__mro__):
        return False
    for name, member in _MEMBERS.items():
        if not any(name in vars(base) for base in cls.__mro__):
            setattr(cls, name, member)
    return True


def _hook(abstract: type) -> None:
    """Lets `isinstance(value, abstract)` admit classes that follow the protocol.

    Python asks a class's `__subclasshook__` once per class met and remembers the answer, so this
    costs nothing afterwards. Subclasses of `abstract` inherit the hook and must not answer to it.
    """
    inherited: Callable[[type], Any] = abstract.__subclasshook__

    def subclasshook(cls: type, subclass: type) -> Any:
        if cls is abstract and admit(subclass):
            return True
        return inherited(subclass) if cls is abstract else NotImplemented

    abstract.__subclasshook__ = classmethod(subclasshook)  # type: ignore[assignment]


_hook(CompositeTensor)
_hook(tf.types.experimental.SupportsTracingProtocol)


class _Extension(abc.ABC):  # noqa: B024 - a class to ask isinstance of
    """Has the values whose classes follow the protocol as its instances."""


_hook(_Extension)


def _refuse_as_tensor(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    try:
        return tf.constant(value, dtype, name=name)  # what would be tried without this function
    except (TypeError, ValueError) as error:
        raise DTypeError(
            path=type(value).__name__,
            expected="a tensor, or what converts to one",
            received="an extension value, which is made of several",
            mend="Give its components, xt.nest.flatten(value, expand_composites=True). To change "
            "them in place, hold a tf.Variable in a field.",
        ) from error


# After all that users register for their own classes (100), before the one for any object (200).
tf.register_tensor_conversion_function(_Extension, _refuse_as_tensor, 199)


_plain_imperative_grad = imperative_grad.imperative_grad


def _imperative_grad(
    tape: Any,
    target: Any,
    sources: Any,
    output_gradients: Any = None,
    sources_raw: Any = None,
    unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
) -> Any:
    """As TensorFlow's own, with sources of which C++ can make zeros."""
    if (
        unconnected_gradients != tf.UnconnectedGradients.NONE
        and sources_raw is not None
        and any(isinstance(source, _Extension) for source in sources_raw)
    ):
        sources_raw = [
            tensor
            for source in sources_raw
            for tensor in (differentiable(source) if isinstance(source, _Extension) else [source])
        ]
    return _plain_imperative_grad(
        tape, target, sources, output_gradients, sources_raw, unconnected_gradients
    )


imperative_grad.imperative_grad = _imperative_grad


_plain_jacobian: Any = tf.GradientTape.jacobian
_plain_batch_jacobian: Any = tf.GradientTape.batch_jacobian


def _jacobian(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
    """As TensorFlow's own; by a value: its gradients for each number in the target, stacked."""
    flat = tf.nest.flatten(sources)
    if not any(isinstance(source, _Extension) for source in flat):
        return _plain_jacobian(self, target, sources, *args, **kwargs)
    tensors = [differentiable(x) if isinstance(x, _Extension) else [x] for x in flat]
    found = _plain_jacobian(self, target, tensors, *args, **kwargs)
    return tf.nest.pack_sequence_as(
        sources,
        [
            _stacked_gradients(source, jacobians, target)
            if isinstance(source, _Extension)
            else jacobians[0]
            for source, jacobians in zip(flat, found, strict=True)
        ],
    )


def _stacked_gradients(value: Any, jacobians: list[Any], target: Any) -> Any:
    if all(jacobian is None for jacobian in jacobians):
        return None
    dense = [
        tf.zeros(tf.concat([tf.shape(target), tf.shape(tensor)], 0), tensor.dtype)
        if jacobian is None
        else jacobian
        for jacobian, tensor in zip(jacobians, differentiable(value), strict=True)
    ]
    specs = [tf.type_spec_from_value(value)]
    for size in reversed(target.shape):
        specs.append(specs[-1]._batch(size))

    def stacked(rows: list[Any], rank: int) -> Any:
        if rank == 0:
            return with_differentiable(value, iter(rows))
        return tf.map_fn(
            lambda inner: stacked(inner, rank - 1), rows, fn_output_signature=specs[rank - 1]
        )

    return stacked(dense, target.shape.rank)


def _batch_jacobian(self: Any, target: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """As TensorFlow's own, and says of a value what to do instead."""
    if isinstance(source, _Extension):
        raise DTypeError(
            path="GradientTape.batch_jacobian",
            expected="a tensor with a row for each row of the target",
            received=f"a {type(source).__name__}, whose components may have others",
            mend="Give one component of the value, or take the whole jacobian.",
        )
    return _plain_batch_jacobian(self, target, source, *args, **kwargs)


tf.GradientTape.jacobian = functools.wraps(_plain_jacobian)(_jacobian)
tf.GradientTape.batch_jacobian = functools.wraps(_plain_batch_jacobian)(_batch_jacobian)


class _Whole:
    """The spec of an extension type where tf.data asks for a dtype, or for a shape.

    It answers what is asked of either by the spec's own rules.
    """

    ndims = 1

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Whole) and self._merged(other) is not None

    def __hash__(self) -> int:
        return hash(type(self.spec))

    def __repr__(self) -> str:
        return repr(self.spec)

    def _merged(self, other: _Whole) -> Any:
        return self.spec.most_specific_common_supertype([other.spec])

    def as_list(self) -> list[Any]:
        return [self.spec]

    def most_specific_compatible_shape(self, other: _Whole) -> _Whole:
        return _Whole(self._merged(other))

    def _sizes(self) -> Any:
        # Only what pads asks for them, in one of these two ways.
        raise DTypeError(
            path="padded_batch",
            expected="elements of tensors, which can be padded to one shape",
            received=self.spec.value_type.__name__,
            mend="Stack the values with batch or ragged_batch (of bucket_by_sequence_length: "
            "no_padding=True), or pad their components with map before.",
        )

    __bool__ = __index__ = _sizes


def _whole(inherited: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def to_legacy(self: Any) -> Any:
        return _Whole(self) if issubclass(self.value_type, _Extension) else inherited(self)

    return to_legacy


tf.TypeSpec._to_legacy_output_types = _whole(tf.TypeSpec._to_legacy_output_types)
tf.TypeSpec._to_legacy_output_shapes = _whole(tf.TypeSpec._to_legacy_output_shapes)

_plain_convert_legacy_structure = structure.convert_legacy_structure


def _convert_legacy_structure(output_types: Any, output_shapes: Any, output_classes: Any) -> Any:
    """As TensorFlow's own, with the specs that were kept whole."""
    shapes: Any = data_nest.flatten(output_shapes)
    if any(isinstance(shape, _Whole) for shape in shapes):
        # TensorFlow's own takes a spec in the place of a class as it is.
        flat_classes: Any = data_nest.flatten(output_classes)
        classes = zip(shapes, flat_classes, strict=True)
        output_classes = data_nest.pack_sequence_as(
            output_classes, [s.spec if isinstance(s, _Whole) else c for s, c in classes]
        )
    return _plain_convert_legacy_structure(output_types, output_shapes, output_classes)


structure.convert_legacy_structure = _convert_legacy_structure


_plain_window = window_op._window


def _window(input_dataset: Any, *args: Any, **kwargs: Any) -> Any:
    """As TensorFlow's own, with each extension value in one tensor while windows are made."""
    specs = input_dataset.element_spec
    ours = tf.nest.map_structure(lambda spec: issubclass(spec.value_type, _Extension), specs)
    if not any(tf.nest.flatten(ours)):
        return _plain_window(input_dataset, *args, **kwargs)

    def mapped(dataset: Any, function: Callable[[Any], Any]) -> Any:
        def of_element(*element: Any) -> Any:
            # Dataset.map hands a tuple over item by item.
            whole = element if type(dataset.element_spec) is tuple else element[0]
            return tf.nest.map_structure(lambda own, x: function(x) if own else x, ours, whole)

        return dataset.map(of_element)

    boxed = mapped(input_dataset, tf.experimental.Optional.from_value)
    windows = _plain_window(boxed, *args, **kwargs)
    return mapped(windows, lambda window: window.map(lambda box: box.get_value()))


window_op._window = _window


_plain_dummy_tensor_fn = input_lib._dummy_tensor_fn


def _dummy_tensor_fn(value_structure: Any) -> Any:
    """As TensorFlow's own, with extension types: a batch of no values of the type."""

    def dummy(spec: Any) -> Any:
        if not issubclass(spec.value_type, _Extension) or hasattr(spec, "_create_empty_value"):
            return _plain_dummy_tensor_fn(spec)
        if not isinstance(spec, BatchableTypeSpec):
            return _dummy_value(spec)
        element = spec._unbatch()
        return tf.map_fn(
            lambda _: _dummy_value(element), tf.zeros([0]), fn_output_signature=element
        )

    return tf.nest.map_structure(dummy, value_structure)


def _dummy_value(spec: Any) -> Any:
    """Returns a value of a spec of which nobody will read the numbers."""
    if isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 0:
        spec = tf.TensorSpec(spec.shape, spec.dtype)
    if isinstance(spec, tf.TensorSpec):
        return tf.zeros([size or 0 for size in spec.shape], spec.dtype)
    if issubclass(spec.value_type, _Extension):
        return spec._from_components(tf.nest.map_structure(_dummy_value, spec._component_specs))
    return _plain_dummy_tensor_fn(spec)


input_lib._dummy_tensor_fn = _dummy_tensor_fn


_plain_sticky_attribute_assignment = data_structures.sticky_attribute_assignment


def _sticky_attribute_assignment(trackable: Any, name: str, value: Any) -> Any:
    """As TensorFlow's own, and tracks the variables inside an extension value."""
    kept = _plain_sticky_attribute_assignment(trackable, name, value)
    # Not where TensorFlow tracks the value itself, or was asked not to.
    if (
        kept is value
        and isinstance(value, _Extension)
        and not isinstance(value, data_structures.base.Trackable)
    ):
        variables = list(_variables_inside(value, "component"))
        if variables:
            holder = tf.Module()
            for place, variable in variables:
                setattr(holder, place, variable)
            trackable._track_trackable(holder, name=name, overwrite=True)
    return kept


def _variables_inside(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    components = tf.nest.flatten(value._type_spec._to_components(value))
    for i, component in enumerate(components):
        if isinstance(component, BaseResourceVariable):
            yield f"{place}_{i}", component
        elif isinstance(component, _Extension):
            yield from _variables_inside(component, f"{place}_{i}")


data_structures.sticky_attribute_assignment = _sticky_attribute_assignment


autograph_config.CONVERSION_RULES = (
    autograph_config.DoNotConvert("extensor"),
    *autograph_config.CONVERSION_RULES,
)


_registry_lock = threading.RLock()


def registered_name(spec_class: type) -> str | None:
    """Returns the name under which TensorFlow knows a TypeSpec class, or None."""
    return type_spec_registry._TYPE_SPEC_TO_NAME.get(spec_class)


def registered_spec(name: str) -> type | None:
    """Returns the TypeSpec class that TensorFlow knows under a name, or None."""
    return type_spec_registry._NAME_TO_TYPE_SPEC.get(name)


def replace_registration(spec_class: type, name: str) -> None:
    """Binds a name to a class in TensorFlow's registry, in place of an older class if need be.

    The older class keeps its name for saving, because values of it may still be alive.
    """
    with _registry_lock:
        type_spec_registry._TYPE_SPEC_TO_NAME[spec_class] = name
        type_spec_registry._NAME_TO_TYPE_SPEC[name] = spec_class


# The jobs of any spec, TensorFlow's or ours.


def serialize(spec: Any) -> Any:
    """Returns the static parts of any spec."""
    return spec._serialize()


def deserialize(spec_class: Any, serialization: Any) -> Any:
    """Returns the spec of a class that `serialize` described."""
    return spec_class._deserialize(serialization)


def component_specs(spec: Any) -> Any:
    """Returns the nest of specs of what `to_components` returns."""
    return spec._component_specs


def to_components(spec: Any, value: Any) -> Any:
    """Returns the components of a value of any spec."""
    return spec._to_components(value)


def from_components(spec: Any, components: Any) -> Any:
    """Returns the value of any spec that is made of the given components."""
    return spec._from_components(components)


def stacked(spec: Any, num: int | None) -> Any:
    """Returns the spec of `num` stacked values of any spec that stacks."""
    return spec._batch(num)


def unstacked(spec: Any) -> Any:
    """Returns the spec of one of the values that are stacked in a value of any spec."""
    return spec._unbatch()
