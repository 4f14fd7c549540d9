"""A class that only defines `__tf_type_spec__` works, whichever API gets its values first.

TensorFlow caches what it finds out about a class. So every row uses a new class, and a separate
process if the state of the process matters.
"""

import copy
import textwrap

import numpy as np
import pytest
import tensorflow as tf

from tests.samples.types import fresh_masked_type

VALUES = np.array([3.0, 1.0, 2.0], np.float32)
MASK = np.array([True, False, True])


def doubled(masked):
    return type(masked)(masked.values * 2, masked.mask)


def function_argument(masked):
    return tf.function(doubled)(masked)


def get_concrete_function(masked):
    return tf.function(doubled).get_concrete_function(masked)(masked)


def get_concrete_function_of_a_spec(masked):
    return tf.function(doubled).get_concrete_function(masked.__tf_type_spec__())(masked)


def input_signature(masked):
    _, spec_class = type(masked), type(masked.__tf_type_spec__())
    signature = [spec_class([None], tf.float32)]
    return tf.function(doubled, input_signature=signature)(masked)


def function_return(masked):
    make = type(masked)
    return tf.function(lambda values, mask: make(values * 2, mask))(masked.values, masked.mask)


def function_capture(masked):
    return tf.function(lambda: doubled(masked))()


def cond(masked):
    choose = tf.function(lambda yes: tf.cond(yes, lambda: doubled(masked), lambda: masked))
    return choose(tf.constant(True))


def case(masked):
    choose = tf.function(
        lambda n: tf.case([(n > 0, lambda: doubled(masked))], default=lambda: masked)
    )
    return choose(tf.constant(1))


def switch_case(masked):
    choose = tf.function(lambda n: tf.switch_case(n, [lambda: masked, lambda: doubled(masked)]))
    return choose(tf.constant(1))


def while_loop(masked):
    make = type(masked)

    @tf.function
    def loop(values, mask):
        _, last = tf.while_loop(
            lambda i, _: i < 1, lambda i, m: (i + 1, doubled(m)), [0, make(values, mask)]
        )
        return last.values, last.mask

    return make(*loop(masked.values, masked.mask))


def eager_while_loop(masked):
    return tf.while_loop(lambda i, _: i < 1, lambda i, m: (i + 1, doubled(m)), [0, masked])[1]


def autograph_loop(masked):
    make = type(masked)

    @tf.function
    def loop(values, mask, times):
        m = make(values, mask)
        for _ in tf.range(times):
            m = doubled(m)
        return m.values, m.mask

    return make(*loop(masked.values, masked.mask, tf.constant(1)))


def nest_flatten(masked):
    values, mask = tf.nest.flatten(masked, expand_composites=True)
    return type(masked)(values * 2, mask)


def nest_pack(masked):
    flat = [masked.values * 2, masked.mask]
    return tf.nest.pack_sequence_as(masked, flat, expand_composites=True)


def map_fn(masked):
    element = type(masked.__tf_type_spec__())([], tf.float32)
    return tf.map_fn(doubled, masked, fn_output_signature=element)


def vectorized_map(masked):
    return tf.vectorized_map(doubled, masked)


def py_function(masked):
    return tf.py_function(doubled, [masked], Tout=masked.__tf_type_spec__())


def dataset_from_tensors(masked):
    return next(iter(tf.data.Dataset.from_tensors(masked).map(doubled)))


def dataset_from_tensor_slices(masked):
    return next(iter(tf.data.Dataset.from_tensor_slices(masked).batch(3).map(doubled)))


def dataset_from_generator(masked):
    dataset = tf.data.Dataset.from_generator(
        lambda: iter([doubled(masked)]), output_signature=masked.__tf_type_spec__()
    )
    return next(iter(dataset))


def dataset_map(masked):
    make = type(masked)
    dataset = tf.data.Dataset.from_tensors((masked.values, masked.mask))
    return next(iter(dataset.map(lambda values, mask: make(values * 2, mask))))


def optional(masked):
    return tf.experimental.Optional.from_value(doubled(masked)).get_value()


def identity(masked):
    return tf.identity(doubled(masked))


def stop_gradient(masked):
    return tf.stop_gradient(doubled(masked))


def tuple_of_tensors(masked):
    return tf.tuple([doubled(masked)])[0]


def gradient_through_components(masked):
    with tf.GradientTape() as tape:
        tape.watch(masked.values)
        total = tf.function(lambda m: tf.reduce_sum(m.values**2))(masked)
    return type(masked)(tape.gradient(total, masked.values), masked.mask)


def type_spec_from_value(masked):
    spec = tf.type_spec_from_value(masked)
    assert spec == masked.__tf_type_spec__()
    return spec.from_components((masked.values * 2, masked.mask))


def deepcopy(masked):
    return doubled(copy.deepcopy(masked))


FIRST_APIS = [
    function_argument,
    get_concrete_function,
    get_concrete_function_of_a_spec,
    input_signature,
    function_return,
    function_capture,
    cond,
    case,
    switch_case,
    while_loop,
    eager_while_loop,
    autograph_loop,
    nest_flatten,
    nest_pack,
    map_fn,
    vectorized_map,
    py_function,
    dataset_from_tensors,
    dataset_from_tensor_slices,
    dataset_from_generator,
    dataset_map,
    optional,
    identity,
    stop_gradient,
    tuple_of_tensors,
    gradient_through_components,
    type_spec_from_value,
    deepcopy,
]


@pytest.mark.parametrize("api", FIRST_APIS, ids=lambda api: api.__name__)
def test_first_api_that_meets_the_class_takes_its_values(api):
    masked_type, _ = fresh_masked_type()
    assert "_type_spec" not in vars(masked_type), "something met the class before the API did"
    result = api(masked_type(tf.constant(VALUES), tf.constant(MASK)))
    assert type(result) is masked_type
    np.testing.assert_array_equal(result.values, VALUES * 2)
    np.testing.assert_array_equal(result.mask, MASK)


def test_first_contact_is_a_module_that_finds_the_variables():
    masked_type, _ = fresh_masked_type()
    variable = tf.Variable(VALUES)
    module = tf.Module()
    module.masked = masked_type(variable, tf.constant(MASK))
    assert [v is variable for v in module.variables] == [True]


def test_first_contact_is_a_checkpoint_of_a_type_that_tensorflow_can_track(tmp_path):
    class MaskedModule(tf.Module):
        def __init__(self, values, mask):
            super().__init__()
            self.values, self.mask = values, mask

        __tf_type_spec__ = fresh_masked_type()[0].__tf_type_spec__

    module = MaskedModule(tf.Variable(VALUES), tf.constant(MASK))
    path = tf.train.Checkpoint(masked=module).save(str(tmp_path / "checkpoint"))
    module.values.assign(VALUES * 0)
    tf.train.Checkpoint(masked=module).restore(path).assert_consumed()
    np.testing.assert_array_equal(module.values, VALUES)


def test_variables_are_read_where_the_spec_has_tensors():
    masked_type, _ = fresh_masked_type()
    masked = masked_type(tf.Variable(VALUES), tf.constant(MASK))
    kinds = []
    result = tf.function(lambda m: (kinds.append(type(m.values)), doubled(m))[1])(masked)
    np.testing.assert_array_equal(result.values, VALUES * 2)
    assert not issubclass(kinds[0], tf.Variable)


# Each of these processes imports the library, makes a value, and passes it to the API of the row,
# which is the first API that gets a value of the class.
PROLOGUE = """
import tensorflow as tf
from tests.samples.types import MaskedTensor, MaskedTensorSpec

def doubled(m):
    return MaskedTensor(m.values * 2, m.mask)

masked = MaskedTensor(tf.constant([3.0, 1.0, 2.0]), tf.constant([True, False, True]))
"""
FIRST_APIS_OF_A_PROCESS = {
    "function_argument": "result = tf.function(doubled)(masked)",
    "get_concrete_function": "result = tf.function(doubled).get_concrete_function(masked)(masked)",
    # Two devices can only be made before TensorFlow has looked for devices.
    "mirrored_strategy": """
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    replicas = strategy.run(tf.function(doubled), args=(masked,))
    result, other = strategy.experimental_local_results(replicas)
    assert type(other) is MaskedTensor and other.values.numpy().tolist() == [6.0, 2.0, 4.0]
    """,
}
TWO_DEVICES = """
import tensorflow as tf
[cpu] = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
"""
EPILOGUE = """
assert type(result) is MaskedTensor, type(result)
assert result.values.numpy().tolist() == [6.0, 2.0, 4.0]
assert result.mask.numpy().tolist() == [True, False, True]
"""


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("api", FIRST_APIS_OF_A_PROCESS)
def test_first_api_that_a_process_calls_takes_values(run_python, api):
    run_python(TWO_DEVICES + PROLOGUE + textwrap.dedent(FIRST_APIS_OF_A_PROCESS[api]) + EPILOGUE)


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("first", ["restored_function", "unpickled_value"])
def test_first_contact_crosses_from_one_process_to_another(run_python, tmp_path, first):
    save = {
        "restored_function": """
            import extensor as xt
            xt.register_type_spec(MaskedTensorSpec, "sample.MaskedTensorSpec")
            module = tf.Module()
            signature = [MaskedTensorSpec([None], tf.float32)]
            module.doubled = tf.function(doubled, input_signature=signature)
            tf.saved_model.save(module, path)
        """,
        "unpickled_value": """
            import pickle
            with open(path, "wb") as file:
                pickle.dump((masked, masked.__tf_type_spec__()), file)
        """,
    }
    load = {
        "restored_function": """
            import extensor as xt
            xt.register_type_spec(MaskedTensorSpec, "sample.MaskedTensorSpec")
            result = tf.saved_model.load(path).doubled(masked)
        """,
        "unpickled_value": """
            import pickle
            with open(path, "rb") as file:
                loaded, spec = pickle.load(file)
            assert spec == loaded.__tf_type_spec__() == masked.__tf_type_spec__()
            result = tf.function(doubled)(loaded)
        """,
    }
    place = f"path = {str(tmp_path / 'saved')!r}\n"
    run_python(place + PROLOGUE + textwrap.dedent(save[first]))
    run_python(place + PROLOGUE + textwrap.dedent(load[first]) + EPILOGUE)
