"""One test for each private name of TensorFlow in use; it fails if a release changes the name."""

import ast
import inspect
import re
import tempfile
from pathlib import Path

import attrs
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.unknown_fields import UnknownFieldSet
from tensorflow.python.autograph.impl import api, conversion
from tensorflow.python.data.util import nest as data_nest
from tensorflow.python.distribute import cross_device_utils, input_lib
from tensorflow.python.eager import imperative_grad
from tensorflow.python.framework import ops, type_spec_registry
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.ops import cond
from tensorflow.python.saved_model import nested_structure_coder

import extensor as xt
from extensor import _raised, _tf
from extensor._patches import _tf_gradients, _tf_py_function
from extensor._patches.patch import with_original
from extensor._tf import (
    _tf_casting,
    _tf_data,
    _tf_named_function,
    _tf_nest,
    _tf_probability,
    _tf_protocol,
    _tf_saving,
    _tf_serving,
    _tf_symbol,
    _tf_value_spec,
)
from extensor._tf._tf_broadcast import makes_positions, makes_rows
from extensor._tf._tf_eager import eagerly
from extensor.errors import ProtocolError
from tests.dispatch import probes as dispatch_probes
from tests.samples import peer
from tests.samples.types import (
    MaskedTensorSpec,
    Parcel,
    ParcelSpec,
    StaticSpec,
    fresh_masked_type,
    parcel,
)

SOURCE = Path(__file__).parents[2] / "src" / "extensor"
READING = sorted((SOURCE / "_tf").glob("_tf_*.py"))
PRIVATE_FILES = [*READING, *sorted((SOURCE / "_patches").glob("_tf_*.py"))]


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
    assert asked == set(_tf_protocol.MEMBERS), (
        f"CompositeTensor: TensorFlow asks {sorted(asked)} of a composite tensor, and admit gives "
        f"{sorted(_tf_protocol.MEMBERS)}"
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


def map_fn_of_what_does_not_stack():
    value = Parcel({}, StaticSpec())
    elements = lambda: tf.map_fn(lambda _: 1.0, value, fn_output_signature=tf.TensorSpec([]))  # noqa: E731
    results = lambda: tf.map_fn(lambda _: value, tf.range(2), fn_output_signature=StaticSpec())  # noqa: E731
    for stack in (elements, results):
        with pytest.raises(ProtocolError, match="expected a type whose values stack"):
            stack()


def vectorized_map_of_what_does_not_stack():
    value = Parcel({}, StaticSpec())
    with pytest.raises(ProtocolError, match="expected a type whose values stack"):
        tf.vectorized_map(lambda x: value, tf.range(2))


def packed_containers():
    class Both(list):
        def __tf_type_spec__(self):
            return StaticSpec()

    with pytest.raises(ProtocolError, match="expected a class whose values are leaves"):
        tf.nest.pack_sequence_as(Both([1, 2]), [3, 4])


def key_of_a_spec():
    assert StaticSpec(float("nan")) == StaticSpec(float("nan")), (
        "TypeSpec.__make_cmp_key: TensorFlow does not compare specs by what it returns, or not "
        "part by part"
    )
    assert tf.RaggedTensorSpec([None]) == tf.RaggedTensorSpec([None])


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


def same_variables():
    def handles(one, other):
        first, second = parcel([one]), parcel([other])
        concrete = tf.function(lambda *_: None).get_concrete_function(first, second)
        return [tensor.dtype for tensor in concrete.inputs].count(tf.resource)

    one, other = tf.Variable(1.0), tf.Variable(1.0)
    assert (handles(one, one), handles(one, other)) == (1, 2), (
        "VariableSpec.alias_id: it does not tell which arguments are the same variable"
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
    installed = imperative_grad.imperative_grad
    imperative_grad.imperative_grad = with_original(_tf_gradients.imperative_grad, recorded)
    try:
        tape.gradient(y, parcel, unconnected_gradients="zero")
    finally:
        imperative_grad.imperative_grad = installed
    assert calls == [(2, 2)], (
        "imperative_grad: GradientTape.gradient calls another function, or this one otherwise"
    )
    assert installed.__wrapped__.__code__.co_filename == imperative_grad.__file__, (
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
    with tf.GradientTape() as tape:
        tape.watch(masked)
        y = masked.values**2
    assert tape.gradient(y, fresh_masked([1, 2])) is None, (
        "tf.GradientTape.gradient: it is not the wrapped one"
    )
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
    assert _tf_data.structure.convert_legacy_structure(*parts) == {
        "a": tf.TensorSpec([], tf.int32)
    }, "structure: convert_legacy_structure is another function"


def windows():
    [window] = tf.data.Dataset.from_tensor_slices(fresh_masked()).window(2)
    [batch] = window.batch(2)
    np.testing.assert_array_equal(
        batch.values, [1.0, 2.0], "window_op: Dataset.window goes another way"
    )


def stand_ins():
    spec = fresh_masked().__tf_type_spec__().unstacked().stacked(None)
    stand_in = input_lib._dummy_tensor_fn({"a": spec})["a"]
    assert (type(stand_in), stand_in.values.shape) == (spec.value_type, [0])
    source = inspect.getsource(input_lib)
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
    module.pair = (masked, 1)
    children = module._trackable_children()["pair"]._trackable_children()["0"]._trackable_children()
    assert [child is variable for child in children.values()] == [True], (
        "data_structures: a module does not wrap the tuples for which _should_wrap_tuple is True"
    )


def saved_specs():
    _, spec_class = fresh_masked_type()
    spec = spec_class([2], tf.float32)
    unregistered = error_of(nested_structure_coder.encode_structure, spec)
    assert isinstance(unregistered, nested_structure_coder.NotEncodableError)
    assert isinstance(unregistered, xt.ExtensorError), (
        "nested_structure_coder: a codec that was registered last is not asked first"
    )
    _tf.replace_registration(spec_class, "test_tf_probe.SavedSpec")
    proto = nested_structure_coder.encode_structure(spec)
    proto = type(proto).FromString(proto.SerializeToString())
    assert nested_structure_coder.decode_proto(proto) == spec, (
        "nested_structure_coder: what our codec writes, TensorFlow's own does not read"
    )
    proto.type_spec_value.type_spec_class_name = "test_tf_probe.NobodySpec"
    with _tf_saving.classes_needed():
        unknown = error_of(nested_structure_coder.decode_proto, proto)
    assert isinstance(unknown, xt.ExtensorError), (
        "nested_structure_coder: the name of the module does not come back with the spec"
    )
    assert f"`import {spec_class.__module__}`" in str(unknown)
    plain = nested_structure_coder.encode_structure(tf.RaggedTensorSpec([2, None]))
    assert len(UnknownFieldSet(plain.type_spec_value)) == 0
    plain.type_spec_value.type_spec_class_name = "test_tf_probe.NobodySpec"
    plain.type_spec_value.type_spec_class = proto.type_spec_value.type_spec_class
    error = error_of(nested_structure_coder.decode_proto, plain)
    assert not isinstance(error, xt.ExtensorError), (
        "nested_structure_coder: our codec speaks of the types of others"
    )


def owner_of_a_captured_handle():
    rows = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    table = tf.lookup.StaticHashTable(rows, 0)
    function = tf.function(table.lookup, input_signature=[tf.TensorSpec([], tf.string)])
    (handle,) = (
        one for one in function.get_concrete_function().captured_inputs if one.dtype == tf.resource
    )
    assert handle._parent_trackable() is table, "_parent_trackable: a handle has no table"


def signatures_on_disk():
    with tempfile.TemporaryDirectory() as path:
        function = tf.function(lambda x: {"y": x}, input_signature=[tf.TensorSpec([], name="x")])
        tf.saved_model.save(tf.Module(), path, signatures={"key": function})
        assert _tf_serving.signature_tensors(path) == {
            "key": {"inputs/x": "key_x:0", "outputs/y": "PartitionedCall:0"}
        }, "loader_impl: parse_saved_model returns something else"


def error_of(function, *args):
    try:
        function(*args)
    except Exception as error:
        return error
    raise AssertionError(f"{function.__name__} raised nothing")


def padded_to_gather():
    for size, padded in ((0, [1, 3]), (2, [2, 3])):
        assert cross_device_utils._pad_util(tf.zeros([0, 3]), size).shape == padded


def per_worker_datasets():
    create = tf.distribute.coordinator.ClusterCoordinator.create_per_worker_dataset
    held = tf.data.Dataset.range(3)
    text = "^create_per_worker_dataset: expected a function whose dataset the workers make"
    with pytest.raises(xt.errors.UnsupportedTypeError, match=text):
        create(None, lambda: held.map(lambda x: x))
    row = tf.ragged.constant([[1]])._to_variant()  # a variant that is no dataset can be sent
    for made in (
        held,
        lambda: tf.data.Dataset.from_tensors(row).map(lambda _: tf.zeros([], tf.int64)),
    ):
        assert create(None, made).element_spec == held.element_spec


def reduced_values():
    strategy, plain = tf.distribute.OneDeviceStrategy("CPU:0"), tf.constant([1.0, 2.0])

    def in_replica(name, *args, **kwargs):
        return strategy.run(
            lambda: getattr(tf.distribute.get_replica_context(), name)(*args, **kwargs)
        )

    for name, call in {
        "reduce": lambda x: strategy.reduce("SUM", x, axis=None),
        "reduce by keywords": lambda x: strategy.reduce(reduce_op="SUM", value=x, axis=None),
        "gather": lambda x: strategy.gather(x, 0),
        "all_reduce": lambda x: in_replica("all_reduce", "SUM", x),
        "all_gather": lambda x: in_replica("all_gather", value=x, axis=0),
    }.items():
        np.testing.assert_array_equal(
            call(plain), plain, f"tf.distribute.Strategy.reduce: {name}: another result"
        )
        assert isinstance(error_of(call, fresh_masked()), xt.ExtensorError), (
            f"tf.distribute.Strategy.reduce: {name} is not the wrapped one"
        )


TABLE = tf.constant([[1.0, 2.0]])
ROWS = tf.ragged.constant([[3.0], []])


def cast_context():
    assert not _tf.CAST_CONTEXT.allow_specs
    tensor = tf.TensorSpec([2]).cast([1.0, 2.0], _tf.CAST_CONTEXT)
    np.testing.assert_array_equal(
        tensor, [1.0, 2.0], "InternalCastContext: a TensorSpec does not convert Python's numbers"
    )


def branches():
    for first, second in [(TABLE, ROWS), (ROWS, TABLE)]:
        cond = tf.function(lambda yes, a=first, b=second: tf.cond(yes, lambda: a, lambda: b))
        case = tf.function(lambda i, a=first, b=second: tf.switch_case(i, [lambda: a, lambda: b]))
        results = cond(tf.constant(True)), case(tf.constant(0)), case(tf.constant(1))
        told = [type(result) for result in results]
        assert told == [tf.RaggedTensor] * 3, (
            "cond_v2: _make_indexed_slices_indices_types_match is not asked of the graphs of the "
            "branches, or what they return is not read from outputs and structured_outputs"
        )
        assert results[2].shape[0] == second.shape[0], (
            "cond_v2: tf.switch_case takes its result for what the first branch shows"
        )
    rows = tf.function(lambda i: tf.switch_case(i, [lambda: ROWS[:1], lambda: ROWS]))
    assert rows(tf.constant(1)).to_list() == ROWS.to_list(), (
        "cond_v2: _CASE does not tell tf.switch_case from tf.cond"
    )


def eager_branches():
    seen = []
    function = cond._eager_cond_implementation
    cond._eager_cond_implementation = lambda *args: seen.append(len(args)) or function(*args)
    try:
        tf.cond(tf.constant(True), lambda: TABLE, lambda: ROWS)
        tf.case([(tf.constant(True), lambda: TABLE)], default=lambda: ROWS)
    finally:
        cond._eager_cond_implementation = function
    assert seen == [5, 5], (
        "cond: tf.cond and tf.case do not call _eager_cond_implementation with the predicate, "
        "both branches, strict and name"
    )


def mapped_results():
    mapped = tf.map_fn(
        lambda _: TABLE, tf.range(1), fn_output_signature=tf.RaggedTensorSpec([None, None])
    )
    assert mapped.to_list() == [TABLE.numpy().tolist()], (
        "map_fn: tf.map_fn does not compare results by _result_value_flat_to_batchable"
    )


def generated_elements():
    spec = tf.RaggedTensorSpec([None, None])
    [rows] = tf.data.Dataset.from_generator(lambda: iter([TABLE]), output_signature=spec)
    assert rows.to_list() == TABLE.numpy().tolist(), (
        "from_generator_op: Dataset.from_generator does not go through _from_generator"
    )


def chosen_datasets():
    datasets = [tf.data.Dataset.from_tensors(value) for value in (TABLE, ROWS)]
    chosen = tf.data.Dataset.choose_from_datasets(datasets, tf.data.Dataset.range(2))
    sampled = tf.data.Dataset.sample_from_datasets(datasets)
    expected = [TABLE.numpy().tolist(), ROWS.to_list()]
    told = [element.to_list() for element in chosen]
    assert told == expected == sorted(element.to_list() for element in sampled), (
        "directed_interleave_op: a dataset is not chosen from by _directed_interleave"
    )


def methods_of_datasets():
    dataset = tf.data.Dataset.range(4)
    made = {
        "batch": dataset.batch(2),
        "cache": dataset.cache(),
        "concatenate": dataset.concatenate(dataset),
        "directed_interleave": tf.data.Dataset.choose_from_datasets([dataset] * 2, dataset),
        "filter": dataset.filter(lambda number: number > 1),
        "flat_map": dataset.flat_map(tf.data.Dataset.range),
        "ignore_errors": dataset.ignore_errors(),
        "interleave": dataset.interleave(tf.data.Dataset.range, 2),
        "group_by_window": dataset.group_by_window(lambda n: n % 2, lambda _, rows: rows, 2),
        "padded_batch": dataset.padded_batch(2),
        "rebatch": dataset.batch(2).rebatch(3),
        "shard": dataset.shard(2, 0),
        "shuffle": dataset.shuffle(2),
        "skip": dataset.skip(1),
        "unbatch": dataset.batch(2).unbatch(),
        "unique": dataset.unique(),
        "window": dataset.window(2),
    }
    found = {name: _tf_data.method_of_other_elements(each) for name, each in made.items()}
    assert found == {name: name for name in made}, "data.ops: a module has another name"
    for kept in (dataset.map(lambda number: number), dataset.prefetch(1), dataset.take(1)):
        assert _tf_data.method_of_other_elements(kept) is None


def restructured_datasets():
    dataset = _tf_data.with_element_spec(tf.data.Dataset.range(2), (tf.TensorSpec([], tf.int64),))
    assert [number.numpy() for (number,) in dataset] == [0, 1], (
        "dataset_ops: _RestructuredDataset does not show the same tensors"
    )


def records_of_a_file():
    with tempfile.TemporaryDirectory() as folder:
        with tf.io.TFRecordWriter(f"{folder}/all") as writer:
            writer.write(b"a" * 8)
            writer.write(b"")
        whole = (Path(folder) / "all").read_bytes()
        assert list(_tf_data.records_of_file(f"{folder}/all")) == [b"a" * 8, b""], (
            "_pywrap_record_io: RecordIterator does not yield the records"
        )
        for part in (whole[:-1], whole.replace(b"aaaa", b"aaab")):
            (Path(folder) / "part").write_bytes(part)
            with pytest.raises(tf.errors.DataLossError):
                list(_tf_data.records_of_file(f"{folder}/part"))


def devices():
    copied = tf.data.Dataset.from_tensors(fresh_masked()).apply(
        tf.data.experimental.copy_to_device("/cpu:0")
    )
    [masked] = copied
    np.testing.assert_array_equal(
        masked.values, [1.0, 2.0], "prefetching_ops: copy_to_device makes another dataset"
    )


def lists_of_values():
    [masked] = tf.data.experimental.from_list([fresh_masked()])
    np.testing.assert_array_equal(
        masked.values, [1.0, 2.0], "from_list: it makes another dataset than _ListDataset"
    )


def ragged_batches():
    records = tf.data.Dataset.from_tensor_slices([1, 2]).map(
        lambda n: xt.DenseStructuredTensor([], {"n": tf.range(n)})
    )
    [batch] = records.ragged_batch(2)
    assert batch["n"].to_list() == [[0], [0, 1]], (
        "ragged_batch_op: Dataset.ragged_batch does not go through _ragged_batch"
    )


def padded_batches():
    masked_type, _ = fresh_masked_type()
    values = [masked_type(tf.ones([n]), tf.ones([n], tf.bool)) for n in (1, 2)]
    dataset = tf.data.experimental.from_list(values)
    [batch] = dataset.padded_batch(2)
    np.testing.assert_array_equal(
        batch.values,
        [[1.0, 0.0], [1.0, 1.0]],
        "padded_batch_op: Dataset.padded_batch does not go through _padded_batch",
    )


def buckets():
    records = tf.data.Dataset.from_tensor_slices([1, 2]).map(
        lambda n: xt.DenseStructuredTensor([], {"n": tf.range(n)})
    )
    [batch] = records.bucket_by_sequence_length(
        lambda record: tf.size(record["n"]), [9], [2, 2], padded_shapes={"n": [3]}
    )
    assert batch["n"].numpy().tolist() == [[0, 0, 0], [0, 1, 0]], (
        "tf.data.Dataset.bucket_by_sequence_length: it is not the wrapped one"
    )


def nests_of_datasets():
    assert _tf_data.data_nest is data_nest
    assert data_nest.flatten({"b": [1], "a": (2, 3)}) == [2, 3, [1]], (
        "data.util.nest: a list is no leaf to tf.data"
    )


def unique_elements():
    dataset = tf.data.Dataset.from_tensors(fresh_masked()).repeat(3).unique()
    assert len(list(dataset)) == 1, "unique_op: Dataset.unique does not go through _unique"


def datasets_in_numpy():
    [(values, mask)] = tf.data.Dataset.from_tensors(fresh_masked()).as_numpy_iterator()
    assert isinstance(values, np.ndarray)
    assert mask.tolist() == [True, True]
    plain = next(tf.data.Dataset.range(1).as_numpy_iterator())
    assert isinstance(plain, np.integer), (
        "tf.data.Dataset.as_numpy_iterator: it does something else with tensors"
    )


def python_functions():
    masked = fresh_masked()
    spec = masked.__tf_type_spec__()

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            same = tf.py_function(lambda x: x, [x], spec)
        return tape.gradient(same.values, x)

    np.testing.assert_array_equal(
        gradient(masked).values, [1.0, 1.0], "script_ops: a py_function keeps its tape elsewhere"
    )


def gradients_of_ops():
    registered = ops.gradient_registry.lookup("EagerPyFunc")
    assert registered.__code__.co_filename == _tf_py_function.__file__, (
        "ops.gradient_registry: the gradient of tf.py_function is not the wrapped one"
    )


def loops():
    loop = tf.function(
        lambda n: tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, ROWS), (0, TABLE))
    )
    told = [loop(tf.constant(n))[1].to_list() for n in (0, 1)]
    assert told == [TABLE.numpy().tolist(), ROWS.to_list()], (
        "while_v2: tf.while_loop does not build its loop by while_loop"
    )


def variables_in_loops():
    variable, operator = tf.Variable([1.0]), tf.linalg.LinearOperatorDiag
    read = _tf_casting.convert_variables_to_tensors([variable, operator(variable), 1, [TABLE]])
    assert isinstance(read[0], tf.Tensor), "convert_variables_to_tensors: a variable is not read"
    assert isinstance(read[1].diag, tf.Tensor), (
        "convert_variables_to_tensors: a variable within a composite is not read"
    )
    assert read[2:] == [1, [TABLE]]


def concatenation():
    data = tf.data.Dataset.from_tensors(TABLE).concatenate(tf.data.Dataset.from_tensors(ROWS))
    told = [element.to_list() for element in data]
    assert told == [TABLE.numpy().tolist(), ROWS.to_list()], (
        "concatenate_op: Dataset.concatenate does not go through _concatenate"
    )


def restored_functions():
    module = tf.Module()
    module.lengths = tf.function(lambda rows: rows.row_lengths())
    module.lengths.get_concrete_function(tf.RaggedTensorSpec([None, None]))
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        loaded = tf.saved_model.load(folder)
    np.testing.assert_array_equal(loaded.lengths(ROWS), [1, 0])
    wide = _tf.from_components(
        tf.RaggedTensorSpec([None, None], row_splits_dtype=tf.int32),
        [tf.constant([3.0]), tf.constant([0, 1, 1])],
    )
    np.testing.assert_array_equal(
        loaded.lengths(wide),
        [1, 0],
        "function_deserialization: a restored function does not ask "
        "_concrete_function_callable_with, or does not call _call_concrete_function",
    )


def scratch_graphs():
    with _tf_casting.func_graph.FuncGraph("probe").as_default() as graph:
        doubled = TABLE * 2
    assert doubled.graph is graph
    assert graph.capture(TABLE).graph is graph, "func_graph: a FuncGraph captures no tensor"
    flat = _tf_casting.func_graph.flatten([TABLE, {"a": ROWS}])
    assert [tensor.dtype for tensor in flat] == [tf.float32, tf.float32, tf.int64], (
        "func_graph: flatten does not take extension values apart"
    )


def late_admission():
    class Met:
        pass

    assert tf.nest.flatten(Met(), expand_composites=True), "tf.nest takes a plain object apart"
    Met.__tf_type_spec__ = lambda self: StaticSpec()
    assert not _tf.admit_late(Met), (
        "IsCompositeTensor: TensorFlow asks again of a class that it has met, so register it late"
    )
    fresh = type("Fresh", (), {"__tf_type_spec__": lambda self: StaticSpec()})
    assert _tf.admit_late(fresh), "IsCompositeTensor: it does not ask isinstance of a new class"


def stand_in_signature():
    spec = xt.spec_of(tf.RaggedTensorSpec([None, None], tf.int32))
    assert not isinstance(spec, tf.types.experimental.TraceType), (
        "TraceType: isinstance does not ask __subclasshook__"
    )
    traced = tf.function(lambda x: x, input_signature=[spec]).get_concrete_function()
    [[signature], _] = traced.structured_input_signature
    assert type(signature) is tf.RaggedTensorSpec, (
        "TraceType: a signature does not ask a spec that is none for its tracing type"
    )


def stand_in_compatibility():
    own = tf.SparseTensorSpec([2, 2])
    assert own.is_compatible_with(xt.spec_of(own)), (
        "TypeSpec.is_compatible_with: SparseTensorSpec has one of its own"
    )
    assert not own.is_compatible_with(tf.SparseTensorSpec([3, 2])), (
        "TypeSpec.is_compatible_with: the wrapped one is not asked"
    )


def stand_in_supertype():
    own = tf.RaggedTensorSpec([None, None], tf.int32)
    assert own.most_specific_common_supertype([xt.spec_of(own)]) == own, (
        "TypeSpec.most_specific_common_supertype: RaggedTensorSpec has one of its own"
    )
    value = tf.ragged.constant([[1], []])
    tf.nest.assert_same_structure(value, xt.spec_of(value), expand_composites=True)


def names_of_functions():
    names = [_tf_symbol.public_name(f) for f in (tf.nn.relu, tf.reduce_sum, tf.keras.Model, len)]
    assert names == ["nn.relu", "math.reduce_sum", None, None]


def conversion_functions():
    spec = _tf_value_spec.converted_spec(tf.TensorArray(tf.float32, 2))
    assert type(spec) is tf.TensorArraySpec
    assert _tf_value_spec.converted_spec(1.0) is None


def constructed_ragged_tensors():
    values, splits = tf.constant([5.0, 20.0, 8.0]), tf.constant([0, 2, 3])
    made, public = (
        cut(cut(values, splits), splits[1:] - 2)
        for cut in (
            _tf.ragged_tensor,
            lambda v, s: tf.RaggedTensor.from_row_splits(v, s, validate=False),
        )
    )
    for own, theirs in ((made, public), (made.values, public.values)):
        assert vars(own).keys() == vars(theirs).keys(), "RaggedTensor: it has other attributes"
    rows, public_rows = made.values._row_partition, public.values._row_partition
    assert vars(rows).keys() == vars(public_rows).keys(), "RowPartition: it has other attributes"
    assert made.to_list() == public.to_list() == [[[5.0, 20.0]]]
    assert tf.type_spec_from_value(made) == tf.type_spec_from_value(public)


def variables_of_strategies():
    @xt.auto_composite_tensor(module_name="tests.tf.probe")
    class Holder(xt.AutoCompositeTensor):
        def __init__(self, variable):
            self.variable = variable

    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        plain = Holder(tf.Variable(1.0))
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        mirrored = Holder(tf.Variable(1.0))
    read = tf.function(lambda holder: holder.variable + 1.0, autograph=False)
    assert [read(plain).numpy(), read(mirrored).numpy()] == [2.0, 2.0], (
        "VariableSpec.placeholder_value: a variable of a strategy is no argument of a tf.function"
    )


def broadcast_rows():
    found = []

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None])] * 2, autograph=False)
    def total(a, b):
        for op in (a + b).row_splits.graph.get_operations():
            found.append((op.type, makes_rows(op), makes_positions(op)))

    total.get_concrete_function()
    kinds = {kind for kind, rows, _ in found if rows}
    assert {"ConcatV2", "Cumsum", "GatherV2", "AddV2"} <= kinds, "_broadcast_half: makes no rows"
    assert any(kind == "StatelessIf" and positions for kind, _, positions in found), (
        "_broadcast_dynamic_shape_first_layer: makes no positions"
    )


def control_inputs():
    with tf.Graph().as_default():
        first, second = tf.constant(1), tf.constant(2)
        second.op._add_control_input(first.op)
        assert second.op.control_inputs == [first.op], "Operation._add_control_input: no input"


def eager_mode_in_a_graph():
    with tf.Graph().as_default():
        with tf.init_scope():
            assert not tf.executing_eagerly(), "tf.init_scope: it leaves a graph of TensorFlow 1"
        with eagerly():
            assert tf.constant(1).numpy() == 1, "context.eager_mode: it runs no op"


def session_run():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        masked = xt.types.MaskedTensor(tf.constant([1, 2]), tf.constant([True, False]))
        assert session.run(masked).to_py() == [1, None], "Session.run: fetches no such class"
        ragged = tf.RaggedTensor.from_row_lengths(tf.constant([1, 2]), tf.constant([1, 1]))
        assert session.run(ragged).to_list() == [[1], [2]]


def attrs_classes():
    plain, hidden = (attrs.make_class(name, ["x"]) for name in ("Plain", "Hidden"))
    _tf_nest.composite_first(hidden)
    assert attrs.fields(hidden).x.name == "x"
    assert tf.nest.is_nested(plain(1)), "tf.nest.is_nested: attrs classes are no containers"
    assert not tf.nest.is_nested(hidden(1)), (
        "tf.nest.is_nested: TensorFlow forgets what it once took a class for"
    )


def deferred_assertions():
    seen = []

    class Normal(peer.tfp.distributions.Normal):
        def _parameter_control_dependencies(self, is_init):
            seen.append(is_init)
            return super()._parameter_control_dependencies(is_init)

    with _tf_probability.Deferred():
        assert peer.is_deferred_assertion_context()
        Normal(0.0, 1.0, validate_args=True)
    assert not peer.is_deferred_assertion_context()
    assert seen == [], "_DEFERRED_ASSERTION_CONTEXT: distributions do not ask it"


def signatures_of_constructors():
    made = peer.tfp.distributions.ZeroInflatedNegativeBinomial.__init__
    assert "total_count" not in inspect.signature(made).parameters
    assert "total_count" in _tf_probability.signature_of(made).parameters, (
        "_sig_cache: the arguments of constructors that take **kwargs are not there"
    )


def raised_errors():
    def fail():
        raise _raised.mark(LookupError("missing"))

    dataset = tf.data.Dataset.range(1).map(lambda _: tf.py_function(fail, [], tf.int32))
    for read in (
        next,
        lambda iterator: iterator.get_next(),
        lambda iterator: iterator.get_next_as_optional(),
        list,
    ):
        with pytest.raises(LookupError, match="missing"):
            read(iter(dataset))


def named_functions():
    _tf_named_function.name_function("extensor.probe", lambda x: x + 1, tf.int32)
    called = tf.function(lambda x: _tf_named_function.call_named("extensor.probe", [x], tf.int32))
    assert int(called(tf.constant(1))) == 2, "_py_funcs: a name in `_funcs` is not found"


def artifacts():
    assert hasattr(api.autograph_artifact(lambda: 0), "autograph_info__"), (
        "autograph.impl.api: autograph_artifact marks functions by another attribute"
    )
    seen = tf.function(api.autograph_artifact(lambda x: tf.constant(x is None)))(None)
    assert seen.numpy()
    assert hasattr(tf.less, "autograph_info__")


# By the names in the tables of `_tf`, and by what a patch calls its probe.
PROBES = {
    "CompositeTensor": composite_tensor,
    "BatchableTypeSpec": batchable_type_spec,
    "TypeSpec.__make_cmp_key": key_of_a_spec,
    "type_spec_registry": registry,
    "autograph.impl.api": artifacts,
    "_pywrap_utils.IsCompositeTensor": late_admission,
    "VariableSpec": variable_spec,
    "VariableSpec.alias_id": same_variables,
    "__composite_gradient__": composite_gradient,
    "data.util.nest": nests_of_datasets,
    "structure": structures_of_states,
    "nested_structure_coder": saved_specs,
    "_parent_trackable": owner_of_a_captured_handle,
    "loader_impl": signatures_on_disk,
    "TypeSpec._to_components": jobs_of_a_spec,
    "trace_type.InternalCastContext": cast_context,
    "data.ops": methods_of_datasets,
    "dataset_ops": restructured_datasets,
    "_pywrap_record_io": records_of_a_file,
    "convert_variables_to_tensors": variables_in_loops,
    "func_graph": scratch_graphs,
    "eager_branches": eager_branches,
    "tf_export": names_of_functions,
    "type_spec._TYPE_CONVERSION_FUNCTION_REGISTRY": conversion_functions,
    "tf.nest.is_nested": attrs_classes,
    "_DEFERRED_ASSERTION_CONTEXT": deferred_assertions,
    "_sig_cache": signatures_of_constructors,
    "row_partition._row_partition_factory_key": constructed_ragged_tensors,
    "_broadcast_half": broadcast_rows,
    "Operation._add_control_input": control_inputs,
    "VariableSpec.placeholder_value": variables_of_strategies,
    "context.eager_mode": eager_mode_in_a_graph,
    "session_run": session_run,
    "_broadcast_dynamic_shape_first_layer": broadcast_rows,
    "RaggedTensor._values": constructed_ragged_tensors,
    **{
        probe.__name__: probe
        for probe in (
            branches,
            buckets,
            chosen_datasets,
            concatenation,
            conversion_rules,
            datasets_in_numpy,
            devices,
            generated_elements,
            gradient_tape,
            gradients_of_ops,
            imperative_gradient,
            lists_of_values,
            loops,
            map_fn_of_what_does_not_stack,
            mapped_results,
            packed_containers,
            padded_batches,
            python_functions,
            ragged_batches,
            padded_to_gather,
            per_worker_datasets,
            reduced_values,
            restored_functions,
            stand_in_compatibility,
            stand_in_signature,
            stand_in_supertype,
            stand_ins,
            supports_tracing_protocol,
            tensor_conversion,
            tracked_attributes,
            unique_elements,
            vectorized_map_of_what_does_not_stack,
            windows,
        )
    },
    "script_ops": named_functions,
    "raised_errors": raised_errors,
    **dispatch_probes.PROBES,
}


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue with type:UserWarning:tensorflow")
@pytest.mark.parametrize("name", PROBES)
def test_tensorflow_fulfils_the_reason_for(name):
    try:
        PROBES[name]()
    except Exception as error:
        rows = [patch for patch in xt.patches() if patch.probe == name]
        broken = "\n".join(map(repr, rows[:5])) or name
        raise AssertionError(f"broke:\n{broken}\n{error!r}") from error


def table(path):
    """The rows of the table in a file's docstring, as the names that each begins with."""
    text = ast.get_docstring(ast.parse(path.read_text(), str(path)))
    return [re.findall(r"`(.*?)`", row) for row in re.findall(r"^\| (`.*)", text, re.MULTILINE)]


def test_every_name_in_a_table_and_every_patch_has_a_probe():
    first = [row[0] for path in READING for row in table(path)]
    assert len(first) == len(set(first)), "a name stands in two tables"
    patches = [patch for patch in xt.patches() if not patch.target.startswith("keras")]
    assert {*first, *(patch.probe for patch in patches)} == set(PROBES)


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


def test_every_private_name_of_a_file_with_private_names_is_in_its_table():
    missing = {}
    for path in READING:
        imported = {name.rpartition(".")[2] for name in private_names(path)}
        told = {part for row in table(path) for name in row for part in re.split(r"\W+", name)}
        assert told, f"nothing private is left in {path.name}: give it another name"
        if names := imported - told:
            missing[path.name] = sorted(names)
    assert missing == {}


def test_a_private_name_is_imported_by_one_file():
    imported = [name for path in PRIVATE_FILES for name in set(private_names(path))]
    assert imported
    assert sorted(imported) == sorted(set(imported))


def test_no_private_name_is_used_outside_the_private_files():
    allowed = dict.fromkeys(PRIVATE_FILES, "tensorflow") | dict.fromkeys(
        (SOURCE / "_keras").glob("_keras_*.py"), "keras"
    )
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > len(allowed) > 1
    used = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in files
        for name in private_names(path)
        if name.partition(".")[0] != allowed.get(path, "nothing")
    ]
    assert used == []


@pytest.mark.parametrize(
    "code",
    [
        "import tensorflow.python.framework",
        "from keras.src import layers",
        "tf.__internal__.dispatch",
        "importlib.import_module('tensorflow.core.x')",
    ],
)
def test_a_private_name_that_is_planted_is_found(code, tmp_path):
    path = tmp_path / "planted.py"
    path.write_text(code)
    assert list(private_names(path))
