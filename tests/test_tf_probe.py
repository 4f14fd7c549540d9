"""One probe for each name in the quarantine, so that a new TensorFlow tells which one broke."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.autograph.impl import conversion
from tensorflow.python.framework import type_spec_registry
from tensorflow.python.framework.composite_tensor import CompositeTensor

import extensor as xt
from extensor import _tf
from tests.sample_types import MaskedTensorSpec, Parcel, ParcelSpec, StaticSpec, fresh_masked_type

SOURCE = Path(__file__).parents[1] / "src" / "extensor"


def fresh_masked(values=(1.0, 2.0)):
    masked_type, _ = fresh_masked_type()
    values = tf.constant(values)
    return masked_type(values, tf.ones_like(values, tf.bool))


def composite_tensor():
    masked = fresh_masked()
    flat = tf.nest.flatten(masked, expand_composites=True)
    assert len(flat) == 2, (
        "CompositeTensor: tf.nest does not ask isinstance(value, CompositeTensor), or not through "
        "__subclasshook__, so a class without a base of TensorFlow's is a leaf"
    )
    asked = {
        name
        for name, member in vars(CompositeTensor).items()
        if name == "__tf_tracing_type__"
        or (not name.startswith(("__", "_tf_api")) and name != "_abc_impl" and member is not None)
    }
    asked.add("__composite_gradient__")  # has a probe of its own
    assert asked == set(_tf._MEMBERS), (
        f"CompositeTensor: TensorFlow asks {sorted(asked)} of a composite tensor, and admit gives "
        f"{sorted(_tf._MEMBERS)}"
    )


def supports_tracing_protocol():
    kinds = []
    tf.function(lambda m: kinds.append(type(m.values)))(fresh_masked())
    # Were the value a Python constant to tf.function, its tensors would be eager ones.
    assert kinds != [type(tf.constant(1))], (
        "SupportsTracingProtocol: tf.function does not ask this protocol of an argument first, or "
        "not through __subclasshook__"
    )


def batchable_type_spec():
    required = {"value_type", "_component_specs", "_to_components", "_from_components"}
    required |= {"_serialize", "_batch", "_unbatch"}
    assert _tf.BatchableTypeSpec.__abstractmethods__ == required, (
        "BatchableTypeSpec: what a subclass must define changed to "
        f"{sorted(_tf.BatchableTypeSpec.__abstractmethods__)}"
    )
    for name in (
        *("_to_tensor_list", "_to_batched_tensor_list"),
        *("_from_compatible_tensor_list", "_flat_tensor_specs"),
    ):
        assert hasattr(_tf.BatchableTypeSpec, name), f"BatchableTypeSpec: {name} is gone"
    [batch] = tf.data.Dataset.from_tensor_slices(fresh_masked()).batch(2)
    np.testing.assert_array_equal(
        batch.values, [1.0, 2.0], "BatchableTypeSpec: Dataset.batch goes another way"
    )


def registry():
    spec_class = type("ProbeSpec", (StaticSpec,), {})
    _tf.replace_registration(spec_class, "test_tf_probe.ProbeSpec")
    told = (
        type_spec_registry.get_name(spec_class),
        type_spec_registry.lookup("test_tf_probe.ProbeSpec"),
    )
    assert told == ("test_tf_probe.ProbeSpec", spec_class), (
        "type_spec_registry: get_name and lookup do not read _TYPE_SPEC_TO_NAME and "
        "_NAME_TO_TYPE_SPEC"
    )
    assert _tf.registered_name(tf.RaggedTensorSpec) == "tf.RaggedTensorSpec", (
        "type_spec_registry: _TYPE_SPEC_TO_NAME does not hold TensorFlow's own specs"
    )
    assert _tf.registered_spec("tf.RaggedTensorSpec") is tf.RaggedTensorSpec, (
        "type_spec_registry: _NAME_TO_TYPE_SPEC does not hold TensorFlow's own specs"
    )


def conversion_rules():
    assert conversion.is_allowlisted(xt.nest.flatten), (
        "CONVERSION_RULES: autograph rewrites the functions of extensor"
    )
    assert conversion.is_allowlisted(MaskedTensorSpec.stacked), (
        "CONVERSION_RULES: autograph rewrites the methods of extensor"
    )
    assert not conversion.is_allowlisted(fresh_masked), (
        "CONVERSION_RULES: autograph leaves the functions of users alone"
    )


def variable_spec():
    variable = tf.Variable([1.0, 2.0])
    assert isinstance(variable, _tf.BaseResourceVariable), (
        "BaseResourceVariable: tf.Variable makes another kind of variable"
    )
    counted = Parcel((variable,), ParcelSpec((_tf.VariableSpec.from_value(variable),)))
    tf.function(lambda p: p.components[0].assign_add([1.0, 1.0]))(counted)
    np.testing.assert_array_equal(
        variable,
        [2.0, 3.0],
        "VariableSpec: a variable in an extension value is not one inside tf.function",
    )


def jobs_of_a_spec():
    for value in (tf.ragged.constant([[1, 2], [3]]), tf.sparse.from_dense([[1, 0], [0, 2]])):
        spec = tf.type_spec_from_value(value)
        assert _tf.deserialize(type(spec), _tf.serialize(spec)) == spec, (
            "TypeSpec._to_components: _serialize and _deserialize are not the second job"
        )
        components = _tf.to_components(spec, value)
        tf.nest.assert_same_structure(_tf.component_specs(spec), components)
        again = _tf.from_components(spec, components)
        assert isinstance(again, spec.value_type), (
            "TypeSpec._to_components: _from_components does not rebuild a value"
        )
        assert _tf.unstacked(_tf.stacked(spec, 2)) == spec, (
            "TypeSpec._to_components: _batch and _unbatch do not stack and unstack a spec"
        )


def composite_gradient():
    masked = fresh_masked()
    with tf.GradientTape() as tape:
        tape.watch(masked)
        y = tf.reduce_sum(masked.values**2)
    gradient = tape.gradient(y, masked)
    assert type(gradient) is type(masked), (
        "__composite_gradient__: gradients do not ask a value's class for it"
    )
    np.testing.assert_array_equal(gradient.values, [2.0, 4.0])
    np.testing.assert_array_equal(gradient.mask, masked.mask)


def imperative_gradient():
    # Not the real thing, which would end the process if it went wrong.
    parcel = Parcel((tf.constant(1.0), tf.constant(2.0)), ParcelSpec((tf.TensorSpec([]),) * 2))
    calls = []

    def recorded(tape, target, sources, output_gradients, sources_raw, unconnected_gradients):
        calls.append((len(sources), len(sources_raw)))
        return [None] * len(sources)

    with tf.GradientTape() as tape:
        tape.watch(parcel)
        y = parcel.components[0] * 2
    plain, _tf._plain_imperative_grad = _tf._plain_imperative_grad, recorded
    try:
        tape.gradient(y, parcel, unconnected_gradients="zero")
    finally:
        _tf._plain_imperative_grad = plain
    assert calls == [(2, 2)], (
        "imperative_grad: GradientTape.gradient calls another function, or this one otherwise"
    )
    assert plain.__module__ == "tensorflow.python.eager.imperative_grad", (
        "imperative_grad: something else has wrapped the function"
    )


def gradient_tape():
    masked = fresh_masked()
    with tf.GradientTape() as tape:
        tape.watch(masked)
        y = masked.values**2
    jacobian = tape.jacobian(y, masked)
    assert type(jacobian) is type(masked), "tf.GradientTape.jacobian: it is not the wrapped one"
    np.testing.assert_array_equal(jacobian.values, [[2.0, 0.0], [0.0, 4.0]])
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**2
    assert tape.jacobian(y, [x])[0].shape == [2, 2], (
        "tf.GradientTape.jacobian: another result for a tensor"
    )


def tensor_conversion():
    try:
        tf.convert_to_tensor(fresh_masked())
    except xt.ExtensorError:
        return
    raise AssertionError(
        "tf.register_tensor_conversion_function: conversion does not ask functions that were "
        "registered for an abstract class"
    )


def structures_of_states():
    masked = fresh_masked()
    same = tf.data.Dataset.range(2).reduce(masked, lambda state, _: state)
    assert type(same) is type(masked), "structure: Dataset.reduce does not keep a state's type"
    parts = {"a": tf.int32}, {"a": tf.TensorShape([])}, {"a": tf.Tensor}
    assert _tf.structure.convert_legacy_structure(*parts) == {"a": tf.TensorSpec([], tf.int32)}, (
        "structure: convert_legacy_structure is another function"
    )


def windows():
    [window] = tf.data.Dataset.from_tensor_slices(fresh_masked()).window(2)
    [batch] = window.batch(2)
    np.testing.assert_array_equal(
        batch.values, [1.0, 2.0], "window_op: Dataset.window goes another way"
    )


def stand_ins():
    spec = fresh_masked().__tf_type_spec__().unstacked().stacked(None)
    stand_in = _tf.input_lib._dummy_tensor_fn({"a": spec})["a"]
    assert (type(stand_in), stand_in.values.shape) == (spec.value_type, [0])
    source = inspect.getsource(_tf.input_lib)
    assert source.count("_dummy_tensor_fn(") == 2, (
        "input_lib: _dummy_tensor_fn is not defined once and called once"
    )


def tracked_attributes():
    module, variable = tf.Module(), tf.Variable([1.0, 2.0])
    masked = fresh_masked()
    masked.values = variable
    module.masked = masked
    children = module._trackable_children()["masked"]._trackable_children()
    assert [child is variable for child in children.values()] == [True], (
        "data_structures: a module does not track its attributes by sticky_attribute_assignment"
    )


PROBES = {
    "CompositeTensor": composite_tensor,
    "tf.types.experimental.SupportsTracingProtocol": supports_tracing_protocol,
    "BatchableTypeSpec": batchable_type_spec,
    "type_spec_registry": registry,
    "autograph.core.config.CONVERSION_RULES": conversion_rules,
    "VariableSpec": variable_spec,
    "__composite_gradient__": composite_gradient,
    "imperative_grad": imperative_gradient,
    "tf.GradientTape.jacobian": gradient_tape,
    "tf.register_tensor_conversion_function": tensor_conversion,
    "structure": structures_of_states,
    "window_op": windows,
    "input_lib": stand_ins,
    "data_structures": tracked_attributes,
    "TypeSpec._to_components": jobs_of_a_spec,
}


@pytest.mark.parametrize("name", PROBES)
def test_tensorflow_still_does_what_the_quarantine_says_of(name):
    try:
        PROBES[name]()
    except Exception as error:
        raise AssertionError(f"{name} broke: {error!r}") from error


def test_every_name_in_the_table_of_the_quarantine_has_a_probe():
    assert set(re.findall(r"^\| `(.*?)`", _tf.__doc__, re.MULTILINE)) == set(PROBES)


def private_names(path):
    """The private names of TensorFlow and Keras that the code (not the text) of a file holds."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # What importlib.import_module or getattr would be given.
            names = [node.value] if re.fullmatch(r"[\w.]+", node.value) else []
        else:
            names = []
        for name in names:
            if re.match(r"(tf|tensorflow)\.(python|core|__internal__|compiler|_api)\b", name):
                yield name
            if re.match(r"keras\.src\b", name):
                yield name


def test_every_private_name_of_the_quarantine_is_in_its_table():
    imported = {name.rpartition(".")[2] for name in private_names(SOURCE / "_tf.py")}
    assert imported, "nothing private is left: take the quarantine away"
    text = _tf.__doc__
    # The class that VariableSpec describes, and the module that holds the rules.
    text += "`BaseResourceVariable` `config`"
    assert {name for name in imported if f"`{name}`" not in text} == set()


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix()
)
def test_no_private_name_stands_outside_the_quarantine(path):
    allowed = {SOURCE / "_tf.py": "tensorflow", SOURCE / "keras" / "_keras.py": "keras"}
    private = allowed.get(path, "nothing")
    assert [n for n in private_names(path) if n.partition(".")[0] != private] == []
