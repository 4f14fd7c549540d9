"""Every TensorFlow function with a dispatcher can be overridden, and has the right kinds."""

import collections
import contextlib
import functools
import inspect
import re

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry
from tensorflow.python.util import dispatch, tf_decorator

import extensor as xt
from extensor._dispatch import kind
from extensor._dispatch.operation import FUNCTIONS, operation_of
from tests.dispatch.brute import Definition, call
from tests.dispatch.not_overridden import NOT_OVERRIDDEN
from tests.dispatch.overriding import recording
from tests.dispatch.samples import EXCLUDED, SAMPLES, arguments
from tests.dispatch.topics import TOPICS, kinds_of

OPERATIONS = {public.name: operation_of(function) for function, public in FUNCTIONS.items()}
CALLED = sorted(OPERATIONS.keys() & SAMPLES.keys())


@pytest.fixture(autouse=True)
def _quiet():
    # Some functions are deprecated, and tf.print prints.
    level = tf.get_logger().level
    tf.get_logger().setLevel("ERROR")
    yield
    tf.get_logger().setLevel(level)


# The table of functions.


def public_names(module, path, seen):
    """Yields the names and functions of `tf` and its modules."""
    for name in dir(module):
        lazy = path == "" and name in ("keras", "losses", "metrics", "optimizers", "initializers")
        if (name.startswith("_") and name != "__operators__") or lazy:
            continue
        if name in ("python", "core", "compiler", "tsl", "compat", "raw_ops", "include"):
            continue
        member = getattr(module, name, None)
        if inspect.ismodule(member) and "tensorflow" in member.__name__ and member not in seen:
            seen.append(member)
            yield from public_names(member, f"{path}{name}.", seen)
        elif inspect.isfunction(member):
            yield f"{path}{name}", member


def test_every_public_function_with_a_dispatcher_is_in_the_table():
    found = {
        name: function
        for name, function in public_names(tf, "", [])
        if hasattr(function, dispatch.FALLBACK_DISPATCH_ATTR)
    }
    left_out = {name for name, function in found.items() if function not in FUNCTIONS}
    assert left_out == set()
    assert len(found) > len(FUNCTIONS) > 600


def test_every_other_public_function_is_listed_as_not_overridden():
    names = {}
    for name, function in public_names(tf, "", []):
        names.setdefault(function, []).append(name)
    unknown = [
        name
        for function, found in names.items()
        if function not in FUNCTIONS
        for name in found
        if not any(re.fullmatch(pattern, name) for pattern in NOT_OVERRIDDEN)
    ]
    assert unknown == [], "functions without a sample or a reason"


def test_functions_listed_as_not_overridden_exist():
    found = [name for name, _ in public_names(tf, "", [])]
    overridden = [name for name, function in public_names(tf, "", []) if function in FUNCTIONS]
    for pattern in NOT_OVERRIDDEN:
        assert any(re.fullmatch(pattern, name) for name in found), pattern
        assert not any(re.fullmatch(pattern, name) for name in overridden), pattern


def test_every_function_is_known_under_its_shortest_name():
    for name, operation in OPERATIONS.items():
        found = tf
        for part in name.split("."):
            found = getattr(found, part)
        assert found is operation.public.function


def test_samples_and_functions_are_the_same_set():
    every = SAMPLES.keys() | EXCLUDED.keys()
    assert SAMPLES.keys() & EXCLUDED.keys() == set()
    assert OPERATIONS.keys() - every == set(), "functions without a sample or a reason"
    if tf.__version__ >= "2.21":
        assert every - OPERATIONS.keys() == set()


# Tensor parameters.


class Spy:
    """A value that TensorFlow can convert to a tensor, and that records whether it did."""

    def __init__(self, value):
        self.value, self.seen = value, False


def _tensor_of(spy, dtype=None, name=None, as_ref=False):
    spy.seen = True
    return tf.convert_to_tensor(spy.value, dtype)


tf.register_tensor_conversion_function(Spy, _tensor_of)
TENSORS = tf.Tensor | tf.RaggedTensor | tf.SparseTensor


@functools.cache
def conversions(name):
    """Returns the parameters that a sample call converts: each is "tensor" or "sequence"."""
    operation = OPERATIONS[name]
    given, found = arguments(operation), {}
    for parameter, value in given.items():
        many = isinstance(value, list | tuple) and any(isinstance(v, TENSORS) for v in value)
        if not many and (
            isinstance(value, bool | str | dict | tf.DType | tf.TensorShape) or callable(value)
        ):
            continue
        spies = [Spy(v) for v in (value if many else [value])]
        with contextlib.suppress(Exception):
            call(operation, {**given, parameter: spies if many else spies[0]})
            if all(spy.seen for spy in spies):
                found[parameter] = "sequence" if many else "tensor"
    return found


@pytest.mark.whole("calls every operation of TensorFlow")
def test_parameters_that_are_converted_to_tensors_are_tensor_parameters():
    # Positions and options, or numbers that must be static in a graph.
    told = "axis axes epsilon elems k max_iter max_total_size max_val num_classes num_partitions "
    told += "tile_size tol k1 k2 variance_epsilon"
    here = {("nn.approx_max_k", "operand"), ("nn.with_space_to_batch", "op")}
    unexpected = [
        (name, parameter, how)
        for name in CALLED
        for parameter, how in conversions(name).items()
        if parameter not in told.split() and (name, parameter) not in here
        if parameter not in OPERATIONS[name].tensors
    ]
    assert unexpected == []


@pytest.mark.whole("calls every operation of TensorFlow")
def test_tensor_parameters_are_converted_to_tensors():
    counts = collections.Counter()
    never = []
    for name in CALLED:
        found = conversions(name)
        for parameter, nested in OPERATIONS[name].tensors.items():
            if parameter not in arguments(OPERATIONS[name]):
                counts["not in the sample"] += 1
            elif parameter in found:
                counts["converted"] += 1
                one_will_do = found[parameter] == "tensor"
                assert nested == (found[parameter] == "sequence") or (nested and one_will_do)
            else:
                never.append(f"{name}: {parameter}")
    counts["asked for its shape, its dtype or its parts before"] = len(never)
    print(dict(counts))
    assert len(never) < 0.1 * sum(counts.values()), never


def documented(function):
    """Returns the documentation of each parameter of a function."""
    text = re.search(
        r"^Args:\n(.*?)(?=^\w[\w ]*:\s*$|\Z)", inspect.getdoc(function) or "", re.S | re.M
    )
    found, parameter = {}, None
    for line in text.group(1).splitlines() if text else ():
        start = re.match(r" {2,4}\*{0,2}`?(\w+)`?\s*:\s?(.*)$", line)
        if start and len(line) - len(line.lstrip()) <= 4:
            parameter, found[start[1]] = start[1], start[2]
        elif parameter:
            found[parameter] += " " + line.strip()
    return found


def test_parameters_that_are_documented_as_tensors_are_tensor_parameters():
    a_tensor = re.compile(r"[^.:]{0,24}\bTensor`?(?! (objects|with)|Shape)\b")
    # Positions and options, or nests of tensors.
    where = re.compile("axis|axes|batch_dims|rates|shapes|strides")
    missed = [
        f"{name}: {parameter}: {text[:60]}"
        for name, operation in OPERATIONS.items()
        if operation.public.generated is None
        for parameter, text in documented(operation.public.function).items()
        if parameter in operation.public.parameters and a_tensor.match(text)
        if parameter not in operation.tensors and not where.fullmatch(parameter)
    ]
    assert missed == []


@pytest.mark.parametrize(
    "name", [name for name, o in OPERATIONS.items() if o.public.generated is not None]
)
def test_a_generated_function_has_the_inputs_of_its_op(name):
    operation = OPERATIONS[name]
    _, innermost = tf_decorator.unwrap(operation.public.function)
    source = inspect.getsource(vars(innermost).get("_extensor_plain", innermost))
    definition = op_def_registry.get(re.search(r'_apply_op_helper\(\s*"(\w+)"', source)[1])
    inputs = {arg.name: bool(arg.number_attr or arg.type_list_attr) for arg in definition.input_arg}
    assert {p.rstrip("_"): nested for p, nested in operation.tensors.items()} == inputs


def test_tensor_parameters_are_found_by_any_name_of_a_function():
    assert xt.dispatch.tensor_parameters(tf.concat) == ("values",)
    assert xt.dispatch.tensor_parameters(tf.linalg.einsum) == ("inputs",)
    assert xt.dispatch.tensor_parameters(tf.math.reduce_sum) == ("input_tensor",)
    assert xt.dispatch.tensor_parameters(tf.where) == ("condition", "x", "y")
    assert xt.dispatch.tensor_parameters(tf.cond) == ("pred",)
    assert xt.dispatch.tensor_parameters(tf.timestamp) == ()


@pytest.mark.parametrize("other", [len, tf.while_loop, tf.Tensor, 3, None, [], tf.keras])
def test_functions_without_a_dispatcher_have_no_tensor_parameters(other):
    with pytest.raises(xt.ExtensorError, match="expected a function of TensorFlow that types can"):
        xt.dispatch.tensor_parameters(other)


# Overriding.


def overridden(operation, parameter):
    """Returns the calls of the handler of a new type whose value is one argument."""
    recorded = recording()
    value = recorded()
    given = dict(arguments(operation))
    sample = given.get(parameter)
    if operation.tensors[parameter] and isinstance(sample, list | tuple) and sample:
        given[parameter] = [*sample[:-1], value]
    elif operation.public.variadic and parameter == operation.public.parameters[-1]:
        given[parameter] = [value]
    else:
        given[parameter] = value
    given = {p: given[p] for p in operation.public.parameters if p in given}
    assert call(operation, given) == "answered"
    [asked] = recorded.calls
    return given, asked


def test_every_function_can_be_overridden_in_every_tensor_parameter():
    places = 0
    for name in CALLED:
        operation = OPERATIONS[name]
        for parameter in operation.tensors:
            given, (op, args, kwargs) = overridden(operation, parameter)
            assert op is operation.function
            assert kwargs == {}
            if operation.public.variadic:
                [*first, rest] = given.values()
                assert args == (*first, *rest), name
                continue
            bound = dict(zip(operation.public.parameters, args, strict=False))
            assert all(bound[p] is value or bound[p] == value for p, value in given.items()), name
            assert list(given)[-1] == operation.public.parameters[len(args) - 1], name
            places += 1
    print(f"{places} parameters of {len(CALLED)} functions")


def test_functions_without_samples_can_be_overridden():
    for name in EXCLUDED.keys() & OPERATIONS.keys():
        operation = OPERATIONS[name]
        recorded = recording()
        x = recorded()
        required = operation.public.parameters[: operation.required]
        first = next(iter(operation.tensors))
        args = [x if p == first else None for p in required]
        assert operation.public.function(*args) == "answered", name
        assert recorded.calls == [(operation.function, tuple(args), {})]


def test_functions_of_tensors_give_the_results_of_the_original_code():
    for name in ("add", "concat", "split", "nn.conv2d", "strings.join", "einsum", "sort"):
        operation = OPERATIONS[name]
        plain = vars(operation.public.function)["_extensor_plain"]
        given = arguments(operation)
        if operation.public.variadic:
            [*first, rest] = given.values()
            expected = plain(*first, *rest)
        else:
            expected = plain(**given)
        tf.nest.map_structure(tf.debugging.assert_equal, call(operation, given), expected)


# Kinds.

PREDICATES = {
    "unary_elementwise": xt.dispatch.is_unary_elementwise_op,
    "binary_elementwise": xt.dispatch.is_binary_elementwise_op,
    "comparison": xt.dispatch.is_comparison_op,
    "logical": xt.dispatch.is_logical_op,
    "reduction": xt.dispatch.is_reduction_op,
    "unit_keeping_reduction": xt.dispatch.is_unit_keeping_reduction_op,
    "shape_only": xt.dispatch.is_shape_only_op,
    "rearranging": xt.dispatch.is_rearranging_op,
    "stacking": xt.dispatch.is_stacking_op,
}
# Kinds of the sample call that the table does not contain.
EXCEPTIONS = {
    ("convert_to_tensor", "unary_elementwise"): "its result is a tensor whatever it was given",
    ("nn.bias_add", "binary_elementwise"): "the biases go along the second dimension for NC...",
    ("nn.learned_unigram_candidate_sampler", "shape_only"): "random numbers",
    ("random.uniform_candidate_sampler", "shape_only"): "random numbers",
}


@pytest.mark.whole("calls every operation of TensorFlow")
def test_every_function_has_the_kinds_that_its_results_show():
    wrong = []
    for name in CALLED:
        definition = Definition(OPERATIONS[name])
        function = OPERATIONS[name].public.function
        for what, predicate in PREDICATES.items():
            if (name, what) not in EXCEPTIONS and getattr(definition, what)() != predicate(
                function
            ):
                wrong.append(f"{name}: the table says {predicate(function)} for {what}")
        assert definition.assertion() <= OPERATIONS[name].may_return_none, name
    reasons = collections.Counter(EXCLUDED[name] for name in EXCLUDED if name in OPERATIONS)
    unclassified = [name for name, o in OPERATIONS.items() if not kinds_of(o.public.function)]
    print(f"{len(OPERATIONS)} functions: {len(CALLED)} ran")
    for reason, count in reasons.items():
        print(f"  {count} excluded: {reason}")
    print(f"  {len(unclassified)} unclassified; {len(EXCEPTIONS)} exceptions")
    assert wrong == []
    assert unclassified == [], "functions that nobody has classified"
    assert sum(reasons.values()) < 0.1 * len(OPERATIONS)


def test_listed_exceptions_are_exceptions():
    for name, what in EXCEPTIONS:
        function = OPERATIONS[name].public.function
        assert getattr(Definition(OPERATIONS[name]), what)() != PREDICATES[what](function)


def test_tensorflow_agrees_about_what_is_elementwise():
    ours = {id(getattr(f, dispatch.TYPE_BASED_DISPATCH_ATTR, None)): f for f in FUNCTIONS}
    for apis, predicate in (
        (dispatch.unary_elementwise_apis(), xt.dispatch.is_unary_elementwise_op),
        (dispatch.binary_elementwise_apis(), xt.dispatch.is_binary_elementwise_op),
    ):
        known = [ours[id(f._tf_type_based_dispatcher)] for f in apis
                 if id(f._tf_type_based_dispatcher) in ours]  # fmt: skip
        assert len(known) > 35
        assert [f for f in known if not predicate(f) and f is not tf.math.nextafter] == []


def test_no_function_is_named_twice_in_the_tables():
    named = collections.Counter(name for names in TOPICS.values() for name in names.split())
    assert [name for name, count in named.items() if count > 1] == []
    for name in named:
        if name in OPERATIONS:
            assert len(kinds_of(OPERATIONS[name].public.function)) == 1, name
    if tf.__version__ >= "2.21":
        every = [value for name, value in vars(kind).items() if isinstance(value, str)
                 if re.fullmatch("_[A-Z_]+", name)]  # fmt: skip
        every += TOPICS.values()
        assert {n for text in every for n in text.split()} - OPERATIONS.keys() == set()
        assert named.keys() - OPERATIONS.keys() == set()


@pytest.mark.parametrize("predicate", PREDICATES.values())
@pytest.mark.parametrize("other", [len, tf.while_loop, tf.Tensor, 3, None])
def test_predicates_return_false_for_other_objects(predicate, other):
    assert predicate(other) is False
