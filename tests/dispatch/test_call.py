"""`__tf_dispatch__`: the order of the handlers, their arguments, and their results."""

import contextlib
import functools
import gc
import inspect
import sys
import threading
import weakref

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import extensor as xt
from tests.dispatch.overriding import Masked, recording

ONE = tf.constant([1.0, 2.0])


def raised(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


# The function and the arguments that a handler gets.


@pytest.mark.parametrize("call", [
    lambda x: tf.add(x, ONE), lambda x: tf.math.add(x, ONE), lambda x: tf.add(x=x, y=ONE),
    lambda x: tf.math.add(x, y=ONE), lambda x: x + ONE, lambda x: tf.__operators__.add(x, ONE),
])  # fmt: skip
def test_every_alias_is_the_same_function_with_the_same_arguments(call):
    kind = recording()
    x = kind()
    assert call(x) == "answered"
    assert kind.calls == [(tf.add, (x, ONE), {})]
    assert kind.calls[0][0] is tf.add is tf.math.add


PARTIAL = {  # functions that a tf.function traces itself, or calls
    "one argument": (functools.partial(tf.abs, name="x"), tf.abs),
    "of partial": (functools.partial(functools.partial(tf.abs), name="x"), tf.abs),
    "defaults are filled in": (functools.partial(tf.less, y=0.0), lambda x: tf.less(x, 0.0)),
    "a sequence": (lambda x: functools.partial(tf.add_n, name="x")([x, x]), lambda x: x + x),
    "an argument": (functools.partial(tf.add, 1.0), lambda x: 1.0 + x),
    "in a lambda": (lambda x: functools.partial(tf.abs, name="x")(x), tf.abs),
    "the function": (tf.abs, tf.abs),
}


@pytest.mark.parametrize("call", PARTIAL)
@pytest.mark.parametrize("autograph", [True, False])
def test_a_partial_function_is_overridden_in_a_tf_function(call, autograph):
    masked = xt.types.MaskedTensor([1.0, -2.0, 3.0], [True, True, False])
    function, plain = PARTIAL[call]
    assert tf.function(function, autograph=autograph)(masked).to_py() == plain(masked).to_py()
    found = tf.function(function, autograph=autograph)(masked.values)
    assert found.numpy().tolist() == plain(masked.values).numpy().tolist()


def test_a_handler_gets_keywords_but_no_defaults():
    kind = recording()
    x = kind()
    cases = [
        (lambda: tf.reduce_sum(x), (x,)),
        (lambda: tf.math.reduce_sum(input_tensor=x), (x,)),
        (lambda: tf.reduce_sum(x, 0), (x, 0)),
        (lambda: tf.reduce_sum(x, axis=0), (x, 0)),
        (lambda: tf.reduce_sum(x, keepdims=True), (x, None, True)),
        (lambda: tf.reduce_sum(keepdims=True, input_tensor=x), (x, None, True)),
        (lambda: tf.reduce_sum(x, axis=None), (x, None)),
        (lambda: tf.reduce_sum(x, name="total"), (x, None, False, "total")),
        (lambda: tf.cos(x), (x,)),
        (lambda: tf.cos(x, name=None), (x, None)),
        (lambda: tf.cos(name="c", x=x), (x, "c")),
        (lambda: tf.clip_by_value(x, clip_value_max=3, clip_value_min=1), (x, 1, 3)),
        (lambda: tf.nn.l2_normalize(x, epsilon=1e-3), (x, None, 1e-3)),
        (lambda: tf.where(True, y=x), (True, None, x)),
    ]
    for call, expected in cases:
        kind.calls.clear()
        assert call() == "answered"
        [(_, args, kwargs)] = kind.calls
        assert kwargs == {}
        assert type(args) is tuple
        assert args == expected, expected


@pytest.mark.parametrize("function", [tf.einsum, tf.linalg.einsum])
def test_functions_of_any_number_of_arguments_keep_their_keywords(function):
    kind = recording()
    x = kind()
    assert function("i,i->", ONE, x, optimize="greedy") == "answered"
    assert kind.calls == [(tf.einsum, ("i,i->", ONE, x), {"optimize": "greedy"})]
    assert tf.meshgrid(x, ONE, indexing="ij") == "answered"
    assert kind.calls[1:] == [(tf.meshgrid, (x, ONE), {"indexing": "ij"})]


def test_a_handler_may_change_its_arguments():
    def spoils(op, args, kwargs):
        kwargs["indexing"] = "no such way"
        return NotImplemented

    kind = recording(answer=spoils, __array__=lambda self, dtype=None, copy=None: np.ones(3, "f"))
    assert tf.meshgrid(ONE, kind(), indexing="ij")[0].shape == [2, 3]


def test_a_handler_calls_the_operation_again_on_plain_tensors():
    masked = Masked([1.0, 2.0], [True, False])
    total = tf.add(masked, tf.add(masked, 10.0))
    np.testing.assert_array_equal(total.values, [12.0, 14.0])
    assert tf.reduce_sum(total).numpy() == 12.0


def test_a_wrong_call_raises_the_error_of_the_function():
    kind = recording()
    x = kind()
    for wrong, kwargs in (
        [(x,), {}],
        [(x, ONE), {"nam": "x"}],
        [(x, ONE), {"x": ONE}],
        [(x, 2, "n", 4), {}],
        [(), {"y": x}],
    ):
        for function in (tf.add, tf.bitwise.bitwise_and, tf.sparse.maximum):
            plain = vars(function)["_extensor_plain"]
            error = raised(lambda f=function, a=wrong, k=kwargs: f(*a, **k))
            expected = raised(lambda f=plain, a=wrong, k=kwargs: f(*a, **k))
            assert (type(error), str(error)) == (type(expected), str(expected))
            assert isinstance(error, TypeError)
    assert kind.calls == []


def test_in_a_graph_it_is_the_same():
    masked = Masked([1.0, 2.0], [True, False])
    kinds = []

    @tf.function
    def total(values, mask):
        result = tf.add(Masked(values, mask), ONE)
        kinds.append(type(result))
        return tf.reduce_sum(result)

    assert total(masked.values, masked.mask).numpy() == 2.0
    assert kinds == [Masked]


@pytest.mark.parametrize(
    "function", [tf.less, tf.bitwise.invert, tf.add, tf.signal.rfft, tf.sparse.to_dense, tf.stack]
)
def test_functions_that_tensorflow_traces_are_overridden(function):
    kind = recording(answer=lambda op, args, kwargs: tf.constant("answered"))
    x, y = kind(), kind()
    two = function in (tf.less, tf.add)
    assert tf.function(function)(*((x, y) if two else (x,))) == b"answered"
    assert kind.calls[-1][0] is function


# Parameters that are dispatched on.


def test_only_tensor_parameters_are_dispatched_on():
    kind = recording()
    x = kind()
    for call in (
        lambda: tf.reduce_sum(ONE, keepdims=x),
        lambda: tf.reduce_sum(ONE, axis=x),
        lambda: tf.cast(ONE, x),
        lambda: tf.concat([ONE, ONE], axis=x),
        lambda: tf.foldl(lambda a, b: b, [x]),
    ):
        with contextlib.suppress(TypeError, ValueError):
            call()
    assert tf.cond(True, lambda: x, lambda: x) is x
    assert kind.calls == []


@pytest.mark.parametrize("sequence", [list, tuple])
def test_values_in_nested_sequences_are_dispatched_on(sequence):
    kind = recording()
    x = kind()
    given = [
        sequence([ONE, x]), sequence([x]), x, sequence([sequence([1.0, x]), sequence([2.0, 3.0])]),
        sequence([sequence([sequence([x])])]),
    ]  # fmt: skip
    for values in given:
        assert tf.stack(values, 0) == "answered"
    assert [args[0] for _, args, _ in kind.calls] == given
    kind.calls.clear()
    raised(lambda: tf.add(sequence([x, x]), 1.0))
    assert kind.calls == []  # tf.add takes a tensor there, not a sequence of tensors


def test_the_list_of_a_module_is_a_list():
    module = tf.Module()
    module.plain, module.mixed = [ONE, ONE], [ONE, recording()()]
    assert type(module.mixed) is not list
    assert tf.reduce_sum(module.plain).numpy() == 6.0
    assert tf.stack(module.plain).shape == [2, 2]
    assert tf.stack(module.mixed) == "answered"


# Precedence.


def order_of_asking(*values):
    asked = []
    for kind in {type(value) for value in values}:
        kind.__tf_dispatch__ = classmethod(
            lambda cls, op, args, kwargs: asked.append(cls) or NotImplemented
        )
    raised(lambda: tf.stack(list(values)))
    return asked


def test_handlers_are_called_from_left_to_right_and_once_a_type():
    a, b, c = (recording(name) for name in "ABC")
    assert order_of_asking(a(), b(), c()) == [a, b, c]
    assert order_of_asking(c(), a(), c(), b(), a()) == [c, a, b]


def test_handlers_of_subclasses_are_called_before_those_of_bases():
    a = recording("A")
    b = type("B", (a,), {})
    c = type("C", (b,), {})
    d = recording("D")
    assert order_of_asking(a(), b()) == [b, a]
    assert order_of_asking(a(), c(), b()) == [c, b, a]
    assert order_of_asking(a(), d(), b()) == [b, a, d]
    assert order_of_asking(d(), a(), c()) == [d, c, a]


def test_handlers_of_single_parameters_are_called_before_those_of_sequences():
    a, b, c = (recording(name, answer=NotImplemented) for name in "ABC")
    asked = []
    for kind in (a, b, c):
        kind.calls = asked
    raised(lambda: tf.clip_by_value(clip_value_max=c(), clip_value_min=b(), t=a()))
    assert [type(value) for value in asked[0][1]] == [a, b, c]
    assert len(asked) == 3


def test_the_first_result_is_returned():
    first = recording("First", answer=NotImplemented)
    second, third = recording("Second", answer=2), recording("Third", answer=3)
    assert tf.stack([first(), second(), third()]) == 2
    assert (len(first.calls), len(second.calls), len(third.calls)) == (1, 1, 0)


# __tf_dispatch_types__.


class Convertible:
    def __array__(self, dtype=None, copy=None):
        return np.ones(2, np.float32)


@pytest.mark.parametrize(
    "value",
    [ONE, tf.Variable(ONE), np.ones(2), np.float32(1), 1, 1.0, True, 2j, [1.0, 2.0], (1, 2),
     Convertible(), tf.TensorShape([2])],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_arguments_that_convert_to_tensors_have_the_type_tensor(value):
    kind = recording(types=(tf.Tensor,))
    assert tf.add(kind(), value) == "answered"
    assert tf.add(value, kind()) == "answered"
    assert tf.stack([value, kind()]) == "answered"
    strict = recording(types=(str,))
    assert "Recording was not called" in str(raised(lambda: tf.add(strict(), value)))


@pytest.mark.parametrize(
    "value",
    [tf.ragged.constant([[1.0], []]), tf.sparse.from_dense([1.0]), object(),
     tf.IndexedSlices(ONE, [0, 1]), tf.data.Dataset.range(2)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_handler_is_not_called_for_arguments_of_other_types(value):
    kind = recording(types=(tf.Tensor,))
    error = raised(lambda: tf.add(kind(), value))
    assert kind.calls == []
    assert "Recording was not called: its __tf_dispatch_types__ allows Recording, " in str(error)
    assert "__tf_dispatch_types__ allows Recording, Tensor" in str(error)
    assert f"an argument is a {type(value).__qualname__}" in str(error)
    open_ = recording(types=(tf.Tensor, type(value)))
    assert tf.add(open_(), value) == "answered"


def test_arguments_may_be_of_subclasses_of_the_types_and_of_the_class():
    a = recording("A", types=())
    assert tf.add(a(), a()) == "answered"
    b = recording("B", types=(a,))
    assert tf.add(b(), type("SubA", (a,), {})()) == "answered"
    assert len(b.calls) == 1
    assert b.calls[0][0] is tf.add
    c = recording("C", types=(a,), answer=NotImplemented)
    raised(lambda: tf.add(c(), b()))
    assert c.calls == []


@pytest.mark.parametrize(
    "key",
    [0, slice(1, None), (slice(None), 0), (Ellipsis, 1), (None, slice(2)), tf.newaxis, ONE],
    ids=str,
)
def test_the_key_of_an_item_is_not_dispatched_on(key):
    kind = recording(types=(tf.Tensor,))
    assert tf.__operators__.getitem(kind(), key) == "answered"
    refused = tf.ragged.constant([[1]])
    assert "an argument is a RaggedTensor" in str(
        raised(lambda: tf.__operators__.getitem(kind(), (refused, key)))
    )


def test_missing_parameters_and_none_are_not_dispatched_on():
    kind = recording(types=(tf.Tensor,))
    assert tf.where(kind(), None, None) == "answered"
    assert tf.where(kind()) == "answered"


def test_types_are_read_at_every_call():
    kind = recording()
    assert tf.add(kind(), RAGGED) == "answered"
    kind.__tf_dispatch_types__ = (tf.Tensor,)
    raised(lambda: tf.add(kind(), RAGGED))
    assert len(kind.calls) == 1
    kind.__tf_dispatch_types__ = None
    assert tf.add(kind(), RAGGED) == "answered"


RAGGED = tf.ragged.constant([[1.0], []])


# Declining.


def test_a_declined_value_that_converts_is_converted():
    class Half:
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return NotImplemented

    tf.register_tensor_conversion_function(
        Half, lambda value, dtype=None, name=None, as_ref=False: tf.constant(0.5, dtype)
    )
    np.testing.assert_array_equal(tf.add(ONE, Half()), [1.5, 2.5])
    np.testing.assert_array_equal(ONE + Half(), [1.5, 2.5])
    np.testing.assert_array_equal(Half() - ONE, [-0.5, -1.5])
    assert tf.stack([1.0, Half()]).shape == [2]
    assert tf.cos(Half()).dtype == tf.float32
    assert tf.function(lambda: tf.reduce_sum(Half()))().numpy() == 0.5


def test_the_error_of_the_operation_names_the_types_that_declined():
    a = recording("A", answer=NotImplemented)
    b = recording("B", types=(tf.Tensor,))
    plain = raised(lambda: tf.add(object(), ONE))
    error = raised(lambda: tf.add(a(), b()))
    assert type(error) is type(plain)
    assert "tf.add was not overridden." in str(error)
    assert "A declined: its __tf_dispatch__ returned NotImplemented." in str(error)
    assert "B was not called" in str(error)


def test_an_operation_without_a_handler_may_call_operations_with_handlers():
    asked = []

    class Sevens:
        dtype = tf.float32

        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            asked.append(op)
            if op is tf.math.squared_difference:
                return cls()
            return tf.constant([7.0]) if op is tf.reduce_mean else NotImplemented

    mean, variance = tf.nn.moments(Sevens(), [0])
    assert (mean.numpy(), variance.numpy()) == (7.0, 7.0)
    assert asked == [tf.nn.moments, tf.reduce_mean, tf.math.squared_difference, tf.reduce_mean]


def test_an_error_with_arguments_of_its_own_keeps_them():
    def fails(op, args, kwargs):
        raise KeyError("grams")

    kind = recording(answer=fails)
    error = raised(lambda: tf.add(kind(), 1))
    assert error.args == ("grams",)
    [note] = error.__notes__
    assert note == "Raised while Recording.__tf_dispatch__ handled tf.add."


# Handlers that break the rules.


def test_an_error_of_a_handler_passes_with_the_operation_named():
    class CookbookError(ValueError):
        pass

    def fails(op, args, kwargs):
        raise CookbookError("no such recipe")

    for bases in ((), (xt.dispatch.OperatorsMixin,)):
        kind = recording("Cake", bases, answer=fails)
        for call in (lambda x: tf.add(x, 1), lambda x: tf.add(ONE, x), lambda x: ONE + x):
            error = raised(functools.partial(call, kind()))
            assert type(error) is CookbookError
            assert str(error) == (
                "no such recipe\nRaised while Cake.__tf_dispatch__ handled tf.add."
            )


def test_an_error_of_tensorflow_in_a_handler_passes_with_a_note():
    kind = recording(answer=lambda op, args, kwargs: op(tf.ones([2]), tf.ones([3])))
    error = raised(lambda: tf.add(kind(), 1))
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert error.__notes__ == ["Raised while Recording.__tf_dispatch__ handled tf.add."]


@pytest.mark.parametrize("array", [
    np.ma.array([1.0, 2.0], mask=[True, False]), pd.array([None, 2.0], "Float32"),
])  # fmt: skip
def test_an_array_with_nulls_beside_a_value_is_an_error_in_each_call(array):
    x = recording()()
    for call in (lambda: tf.add(x, array), lambda: tf.add(y=x, x=array)) * 2:
        with pytest.raises(xt.ExtensorError, match=r"without a mask|without nulls"):
            call()
    assert tf.add(x, np.ma.array([1.0])) == "answered"


def test_an_error_of_the_first_call_has_no_context():
    class Fresh:
        @xt.dispatch.implements(tf.cos)
        @staticmethod
        def cos(x, name=None):
            raise LookupError("own")

    with pytest.raises(LookupError, match="own") as caught:
        tf.cos(Fresh())
    assert caught.value.__context__ is None


def test_an_exception_that_is_no_error_passes_unchanged():
    def stops(op, args, kwargs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tf.add(recording(answer=stops)(), 1)


def test_a_method_that_is_not_on_the_class_is_an_error():
    class Wrong:
        def __tf_dispatch__(self, op, args, kwargs):
            return "answered"

    for _ in range(2):
        error = raised(lambda: tf.add(Wrong(), 1))
        assert isinstance(error, xt.ExtensorError)
        assert "Wrong.__tf_dispatch__: expected a classmethod, got a function" in str(error)
        assert "@classmethod" in str(error)
    assert isinstance(raised(lambda: Wrong() + ONE), xt.ExtensorError)
    assert isinstance(raised(lambda: tf.stack([ONE, Wrong()])), xt.ExtensorError)


def test_the_protocol_may_be_a_static_method_or_any_callable():
    class Static:
        @staticmethod
        def __tf_dispatch__(op, args, kwargs):
            return op

    class Callable:
        def __call__(self, op, args, kwargs):
            return op

    held = type("Held", (), {"__tf_dispatch__": Callable()})
    assert tf.add(Static(), 1) is tf.add
    assert tf.add(held(), 1) is tf.add
    with pytest.raises(xt.ExtensorError, match="expected a classmethod, got a int"):
        tf.add(type("Number", (), {"__tf_dispatch__": 3})(), 1)


@pytest.mark.parametrize("call", [
    lambda x: tf.add(x, 1), lambda x: tf.stack([x]), lambda x: x + ONE,
    lambda x: tf.einsum("i->", x),
])  # fmt: skip
def test_a_handler_that_returns_none_is_an_error(call):
    kind = recording(answer=None)
    with pytest.raises(xt.ExtensorError, match="got None") as caught:
        call(kind())
    assert "Recording.__tf_dispatch__: expected the value of tf." in str(caught.value)
    assert tf.debugging.assert_equal(kind(), ONE) is None
    assert tf.print(kind()) is None


@pytest.mark.parametrize("types", [tf.Tensor, [tf.Tensor], (1,), "tf.Tensor"])
def test_dispatch_types_that_are_no_tuple_of_types_are_an_error(types):
    kind = recording(types=types)
    with pytest.raises(xt.ExtensorError, match=r"__tf_dispatch_types__: expected a tuple of types"):
        tf.add(kind(), 1)


def test_the_error_for_conflicting_types_names_both():
    a, b = (recording(name, answer=NotImplemented) for name in ("Apples", "Pears"))
    message = str(raised(lambda: tf.add(a(), b())))
    assert "Apples declined" in message
    assert "Pears declined" in message


def test_endless_recursion_of_a_handler_is_named_once_in_the_error():
    kind = recording(answer=lambda op, args, kwargs: op(*args))
    error = raised(lambda: tf.add(kind(), 1))
    assert isinstance(error, RecursionError)
    assert str(error).count("Raised while Recording.__tf_dispatch__ handled tf.add.") == 1


# Classes.


def test_dispatch_types_are_optional():
    kind = recording()
    tf.add(kind(), 1)
    assert kind.__tf_dispatch_types__ is None
    sub = type("Sub", (kind,), {"__tf_dispatch_types__": (tf.Tensor,)})
    assert tf.add(sub(), 1) == "answered"
    assert sub.__tf_dispatch_types__ == (tf.Tensor,)


def test_a_subclass_may_disable_the_protocol():
    kind = recording()
    assert tf.add(kind(), 1) == "answered"
    quiet = type("Quiet", (kind,), {"__tf_dispatch__": None})
    raised(lambda: tf.add(quiet(), 1))
    assert len(kind.calls) == 1


def test_the_protocol_as_a_base_declines():
    class Based(xt.DispatchableType):
        pass

    assert "Based declined" in str(raised(lambda: tf.add(Based(), 1)))


def test_unused_classes_are_garbage_collected():
    kind = recording()
    assert tf.add(kind(), 1) == "answered"
    assert ONE.__eq__(kind()) is NotImplemented
    gone = weakref.ref(kind)
    kind.calls.clear()
    del kind
    gc.collect()
    assert gone() is None


def test_calls_in_threads_are_independent():
    kinds = [recording(f"Type{i}", answer=i) for i in range(8)]
    results, start = [], threading.Barrier(8)

    def work(i):
        start.wait()
        results.append((i, {tf.sinh(kinds[i]()) for _ in range(50)}))

    threads = [threading.Thread(target=work, args=[i]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(i, {i}) for i in range(8)]


# Attributes of the functions of TensorFlow.


@pytest.mark.parametrize("function", [tf.add, tf.cos, tf.concat, tf.einsum, tf.bitwise.invert])
def test_a_function_keeps_its_signature_its_source_and_its_name(function, run_python):
    code = f"""
    import inspect, tensorflow as tf
    function = tf.{function._tf_api_names[0] if hasattr(function, "_tf_api_names") else "add"}
    """
    assert code
    assert "extensor" not in inspect.getsource(function)
    assert str(inspect.signature(function)).startswith(("(x", "(values", "(equation"))
    assert function.__module__.startswith("tensorflow.")
    assert "given" not in str(inspect.getfullargspec(function))


def test_frames_of_overridden_functions_can_be_inspected():
    def looks(op, args, kwargs):
        frame, names = sys._getframe(), []
        while frame is not None:
            names.append(sorted(frame.f_locals))
            frame = frame.f_back
        return [locals_ for locals_ in names if "looking" in locals_]

    kind = recording(answer=looks)
    for call in (lambda x: tf.add(x, 1), tf.cos, lambda x: tf.stack([x]), lambda x: ONE * x):
        assert call(kind())


def test_dispatch_raises_no_internal_exception():
    kind = recording()
    tf.cos(kind()), tf.add(kind(), ONE), tf.stack([kind()])  # what is made once is made now
    raisings = []

    def trace(frame, event, arg):
        # Python 3.12 reports the end of every generator as an exception.
        if event == "exception" and arg[0] is not StopIteration:
            raisings.append((frame.f_code.co_name, arg[0]))
        return trace

    sys.settrace(trace)
    try:
        tf.cos(kind())
        tf.add(kind(), ONE)
        tf.stack([ONE, kind()])
    finally:
        sys.settrace(None)
    assert raisings == []
