"""Dispatch of extensor together with TensorFlow's own dispatch and its own types."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.dispatch.overriding import Masked, recording

ONE = tf.constant([1.0, 2.0])


class Theirs(tf.experimental.ExtensionType):
    values: tf.Tensor


@pytest.fixture
def registered():
    """Registers functions with dispatch_for_api, for one test."""
    targets = []

    def register(api, *signatures):
        def decorate(function):
            target = tf.experimental.dispatch_for_api(api, *signatures)(function)
            targets.append(target)
            return target

        return decorate

    yield register
    for target in targets:
        tf.experimental.unregister_dispatch_for(target)


def test_dispatch_for_api_works_as_before(registered):
    @registered(tf.add, {"x": Theirs}, {"y": Theirs})
    def add(x, y):
        return "theirs"

    theirs = Theirs(ONE)
    assert tf.add(theirs, 1.0) == tf.add(x=1.0, y=theirs) == theirs_by_operator(theirs) == "theirs"
    assert tf.function(lambda: tf.identity(tf.add(theirs, 1.0) == "theirs"))().numpy()


def theirs_by_operator(theirs):
    return tf.add(ONE, theirs, name="sum")


def test_the_protocol_goes_first_and_dispatch_for_api_takes_what_it_declines(registered):
    class Both(tf.experimental.ExtensionType):
        values: tf.Tensor

        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return "protocol" if op is tf.add else NotImplemented

    @registered(tf.add, {"x": Both})
    def add(x, y):
        return "dispatch_for_api"

    @registered(tf.subtract, {"x": Both})
    def subtract(x, y):
        return "dispatch_for_api"

    both = Both(ONE)
    assert tf.add(both, 1.0) == "protocol"
    assert tf.subtract(both, 1.0) == "dispatch_for_api"
    assert tf.subtract(both, both) == "dispatch_for_api"
    with pytest.raises(ValueError, match="Both declined"):
        tf.multiply(both, 1.0)


def test_a_call_may_have_values_of_both_dispatch_mechanisms(registered):
    kind = recording()

    @registered(tf.add, {"x": Theirs})
    def add(x, y):
        return "theirs"

    theirs, ours = Theirs(ONE), kind()
    assert tf.add(theirs, ours) == "answered"
    assert tf.add(ours, theirs) == "answered"
    kind.__tf_dispatch_types__ = (tf.Tensor,)
    assert tf.add(theirs, ours) == "theirs"
    # Neither handles this call. That of TensorFlow is not called, because x is not of its type.
    with pytest.raises(ValueError, match="Recording was not called"):
        tf.add(ours, theirs)


def test_elementwise_handlers_of_tensorflow_work_as_before():
    class Plain(tf.experimental.ExtensionType):
        values: tf.Tensor

    @tf.experimental.dispatch_for_unary_elementwise_apis(Plain)
    def unary(api, x):
        return Plain(api(x.values))

    @tf.experimental.dispatch_for_binary_elementwise_apis(Plain, tf.Tensor)
    def binary(api, x, y):
        return Plain(api(x.values, y))

    try:
        plain = Plain(ONE)
        np.testing.assert_array_equal(tf.negative(plain).values, [-1, -2])
        np.testing.assert_array_equal(tf.add(plain, ONE).values, [2, 4])
        assert tf.add(plain, recording()()) == "answered"
    finally:
        tf.experimental.unregister_dispatch_for(unary)
        tf.experimental.unregister_dispatch_for(binary)


def test_registering_after_an_operation_was_called_works(registered):
    class Late(tf.experimental.ExtensionType):
        values: tf.Tensor

    with pytest.raises(ValueError, match="Attempt to convert"):
        tf.tanh(Late(ONE))

    @registered(tf.tanh, {"x": Late})
    def tanh(x):
        return "late"

    assert tf.tanh(Late(ONE)) == "late"


def test_ragged_tensors_are_as_before():
    ragged = tf.ragged.constant([[1.0, 2.0], []])
    assert tf.add(ragged, 1.0).to_list() == [[2.0, 3.0], []]
    assert tf.reduce_sum(ragged, axis=1).numpy().tolist() == [3.0, 0.0]
    assert tf.concat([ragged, ragged], 0).nrows() == 4
    assert (ragged + ragged).to_list() == [[2.0, 4.0], []]
    assert tf.strings.split(tf.constant(["a b", ""])).to_list() == [[b"a", b"b"], []]


def test_a_ragged_tensor_and_a_value_in_one_call():
    ragged = tf.ragged.constant([[1.0, 2.0], []])
    kind = recording()
    x = kind()
    assert tf.add(ragged, x) == tf.add(x, ragged) == tf.concat([ragged, x], 0) == "answered"
    # TensorFlow's target for ragged tensors looks at the first argument only.
    assert tf.clip_by_value(ragged, x, x) == "answered"
    strict = recording(types=(tf.Tensor,))
    with pytest.raises((TypeError, ValueError), match="Recording was not called"):
        tf.add(ragged, strict())
    assert strict.calls == []


def test_a_subclass_of_a_type_of_tensorflow_may_follow_the_protocol():
    class Named(tf.SparseTensor):
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return "named" if op is tf.sparse.reshape else NotImplemented

    named = Named([[0]], [1.0], [2])
    assert tf.sparse.reshape(named, [1, 2]) == "named"
    assert tf.sparse.reshape(tf.SparseTensor([[0]], [1.0], [2]), [1, 2]).shape == [1, 2]


def test_sparse_tensors_are_as_before():
    sparse = tf.sparse.from_dense([[1.0, 0.0], [0.0, 4.0]])
    np.testing.assert_array_equal(tf.sqrt(sparse).values, [1, 2])  # by the fallback dispatchers
    assert tf.sparse.reshape(sparse, [4]).shape == [4]
    assert isinstance(sparse * 2.0, tf.SparseTensor)
    assert tf.io.serialize_sparse(sparse).shape == [3]


def test_linear_operators_are_as_before():
    twice = tf.linalg.LinearOperatorDiag([2.0, 2.0])
    assert tf.linalg.trace(twice).numpy() == 4.0
    np.testing.assert_array_equal(tf.matmul(twice, [[1.0], [2.0]]), [[2], [4]])


def test_extension_types_without_handlers_are_as_before():
    theirs = Theirs(ONE)
    assert tf.identity(theirs).values is not None
    assert tf.nest.flatten(tf.stop_gradient(theirs), expand_composites=True)[0].shape == [2]
    structured = xt.DenseStructuredTensor([2], {"grams": ONE})
    assert tf.identity(structured)["grams"].shape == [2]


def test_a_value_in_the_generic_functions_goes_first_through_its_type():
    masked = Masked(ONE, [True, False])
    assert tf.nest.flatten([masked]) == [masked]
    assert tf.reduce_sum(masked).numpy() == 1.0
    np.testing.assert_array_equal(
        tf.py_function(lambda x: tf.reduce_sum(Masked(x, [True, False])), [ONE], tf.float32), 1.0
    )


@pytest.mark.whole("starts a process")
def test_keras_layers_work_on_plain_tensors(run_python):
    run_python("""
    import keras, numpy as np, tensorflow as tf
    import extensor as xt

    model = keras.Sequential([keras.layers.Dense(3, activation="relu"), keras.layers.Softmax()])
    symbolic = keras.Input([2])
    function = keras.Model(symbolic, tf.keras.ops.add(model(symbolic), 1.0))
    assert function(np.ones([4, 2])).shape == (4, 3)
    model.compile("sgd", "mse")
    model.fit(np.ones([4, 2]), np.ones([4, 3]), verbose=0)
    assert keras.activations.get("relu") is keras.activations.relu
    """)


@pytest.mark.whole("another process, which traces a layer")
def test_autograph_converts_a_keras_layer_without_a_warning(run_python):
    done = run_python("""
        import extensor
        import keras, tensorflow as tf
        from tensorflow.python.autograph.utils import ag_logging

        ag_logging.warning("a warning is shown")
        for function in (keras.layers.Dense(1), lambda x: keras.ops.relu(x) + tf.abs(x)):
            tf.function(function)(tf.ones([2, 3]))
    """)
    assert "a warning is shown" in done.stderr
    assert "AutoGraph could not" not in done.stderr


def test_extensor_can_be_loaded_again(run_python):
    run_python("""
    import sys, tensorflow as tf

    class kind:
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            calls.append(op)
            return "answered"

    calls, names = [], []
    for _ in range(2):
        import extensor
        names.append(tf.add.__code__.co_varnames)
        assert tf.add(kind(), 1) == tf.constant(1) + kind() == tf.einsum("i", kind()) == "answered"
        for name in [n for n in sys.modules if n.partition(".")[0] == "extensor"]:
            if "dispatch" in name:
                del sys.modules[name]
        import extensor.dispatch
    assert tf.add(kind(), 1) == "answered"
    assert len(calls) == 7
    assert names[0] == names[1]
    """)


def test_a_class_that_was_defined_before_the_import_is_dispatched_on(run_python):
    run_python("""
    import tensorflow as tf
    from tensorflow import add

    class kind:
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return op

    try:
        add(kind(), 1)
    except ValueError:
        pass
    else:
        raise AssertionError
    import extensor
    assert add(kind(), 1) is tf.add
    """)
