"""The function of float tensors that stands for the call of a layer which is run again."""

import tensorflow as tf

from extensor._keras.layer_call import of_floats


def test_the_function_takes_and_returns_the_float_tensors_only():
    def call(x, options, number=None):
        return {"sum": x["a"] * options["scale"] + 1.0, "number": number, "name": options["name"]}

    a, number = tf.constant([1.0, 2.0]), tf.constant(3)
    options = {"scale": 2.0, "name": "tea"}
    function, tensors, whole = of_floats(call, [{"a": a}, options], {"number": number})
    assert len(tensors) == 1
    assert tensors[0] is a
    [total] = function(*tensors)
    assert total.numpy().tolist() == [3.0, 5.0]
    [again] = function(tf.constant([0.0, 0.0]))
    found = whole([again])
    assert found["sum"].numpy().tolist() == [1.0, 1.0]
    assert found["number"] is number
    assert found["name"] == "tea"
