"""Probes of the private names of TensorFlow that dispatch uses."""

import inspect

import tensorflow as tf
from tensorflow.python.util import dispatch, tf_decorator

from extensor._tf import _tf_dispatch
from tests.dispatch.overriding import recording

ONE = tf.constant([1.0, 2.0])


def all_functions():
    table = dispatch._TYPE_BASED_DISPATCH_SIGNATURES
    assert tf.add in table, "dispatch: its table does not hold tf.add"
    assert all(inspect.isfunction(function) for function in table), (
        "dispatch: its table holds other things than functions of Python"
    )
    found = {public.name for public in _tf_dispatch.public_functions()}
    assert {"add", "cos", "concat", "einsum", "meshgrid", "__operators__.getitem"} <= found
    assert len(found) > 550, f"dispatch: only {len(found)} functions are found"
    assert callable(dispatch.unary_elementwise_apis), "dispatch: its lists have other names"
    assert len(_tf_dispatch.elementwise(1)) > 100
    assert len(_tf_dispatch.elementwise(2)) > 35
    assert _tf_dispatch.dispatcher_of(tf.add) is not None
    value = recording()()
    for function, *args in (
        *((tf.add, 1, value), (tf.cos, value), (tf.concat, [value], 0)),
        *((tf.einsum, "i->", value), (tf.meshgrid, value)),
    ):
        assert function(*args) == "answered", f"dispatch: {function} does not look at its arguments"


def names_of_parameters():
    _, innermost = tf_decorator.unwrap(tf.reduce_sum)
    assert innermost.__code__.co_varnames[:4] == ("input_tensor", "axis", "keepdims", "name"), (
        "tf_decorator: unwrap does not return the function beneath all decorators"
    )
    assert "math.reduce_sum" in innermost._tf_api_names, (
        "tf_decorator: the innermost function does not say its public names"
    )
    publics = {public.name: public for public in _tf_dispatch.public_functions()}
    assert publics["dynamic_stitch"].generated == {"indices": True, "data": True}, (
        "tf_decorator: a generated function does not annotate its inputs"
    )
    assert publics["bitcast"].generated == {"input": False}
    assert publics["reduce_sum"].defaults == (None, False, None)


def conversions():
    class Half:
        pass

    assert not _tf_dispatch.converts_to_tensor(Half), (
        "tensor_conversion_registry: another function than that for `object` takes every type"
    )
    tf.register_tensor_conversion_function(Half, lambda *args, **kwargs: ONE)
    assert _tf_dispatch.converts_to_tensor(Half), (
        "tensor_conversion_registry: get does not tell the functions that were registered"
    )


def operators():
    for cls in (tf.Tensor, tf.Variable, tf.RaggedTensor):
        for name in ("__add__", "__radd__", "__lt__", "__eq__", "__pow__"):
            assert "_extensor_plain" in vars(vars(cls)[name]), (
                f"tf.Tensor.__add__: {cls.__name__} defines no {name}, or not as a function"
            )
    assert ONE + recording()() == "answered", "tf.Tensor.__add__: an eager tensor has another"
    assert tf.Variable(ONE) * recording()() == "answered"
    assert tf.function(lambda x: tf.constant(x + recording()()))(ONE) == b"answered"


PROBES = {
    "dispatch": all_functions,
    "tf_decorator": names_of_parameters,
    "tensor_conversion_registry": conversions,
    "operators": operators,
}
