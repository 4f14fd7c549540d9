"""Errors for mistakes in types of users: each has path, expected, received and fix."""

from collections.abc import Collection, Iterable, Reversible
from typing import Annotated, Any, Optional, Union

import keras
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import tensorflow as tf

import extensor as xt
from extensor import testing
from extensor.errors import DTypeError, ProtocolError, RegistrationError, StructureError
from tests.samples.types import (
    MaskedTensor,
    MaskedTensorSpec,
    Parcel,
    ParcelSpec,
    fresh_masked_type,
)


def told(kind, act):
    """Returns the four parts of the error that a call raises."""
    with pytest.raises(kind) as caught:
        act()
    error = caught.value
    assert isinstance(error, xt.ExtensorError)
    assert str(error) == (
        f"{error.path}: expected {error.expected}, got {error.received}. {error.fix}"
    )
    return error.path, error.expected, error.received, error.fix


# Components that do not match the spec.


def amount(to_components=None, from_components=None):
    """Returns a value whose spec says: a float32 and a bool tensor of shape [2]."""

    class Amount:
        def __init__(self, grams, exact):
            self.grams, self.exact = grams, exact

        def __tf_type_spec__(self):
            return AmountSpec(self.grams.shape)

    class AmountSpec(xt.StackableTypeSpec):
        value_type = Amount

        def __init__(self, shape):
            self.shape = tf.TensorShape(shape)

        @property
        def component_specs(self):
            return tf.TensorSpec(self.shape, tf.float32), tf.TensorSpec(self.shape, tf.bool)

        def to_components(self, value):
            return to_components(value) if to_components else (value.grams, value.exact)

        def from_components(self, components):
            return Amount(*(from_components(components) if from_components else components))

        def serialize(self):
            return (self.shape,)

    AmountSpec.__qualname__ = "AmountSpec"
    return Amount(tf.constant([1.0, 2.0]), tf.constant([True, False]))


@pytest.mark.parametrize(("spec", "received"), [
    (None, "None"), ("float32", "'float32'"), (tf.TensorSpec, "the class TensorSpec"),
    (tf.TensorSpec([]), r"TensorSpec\(.*"),
    (tf.RaggedTensorSpec([2, None]), r"RaggedTensorSpec\(.*"),
])  # fmt: skip
def test_a_spec_that_is_no_type_spec_is_an_error_that_names_the_method(spec, received):
    class Odd:
        def __tf_type_spec__(self):
            return spec

    Odd.__qualname__ = "Odd"
    match = (
        rf"Odd\.__tf_type_spec__: expected a TypeSpec of its own, got {received}\. Return a spec"
    )
    for call in (tf.function(lambda x: x), tf.type_spec_from_value, xt.spec_of):
        with pytest.raises(xt.errors.ProtocolError, match=match):
            call(Odd())


SPECS = (tf.TensorSpec([2], tf.float32), tf.TensorSpec([2], tf.bool))
STRUCTURE = f"components in the structure {SPECS}"
MISMATCHES = {
    "too few": (lambda v: (v.grams,), "", STRUCTURE, f"({SPECS[0]},)"),
    "a list": (lambda v: [v.grams, v.exact], "", STRUCTURE, str(list(SPECS))),
    "names": (lambda v: {"grams": v.grams}, "", STRUCTURE, str({"grams": SPECS[0]})),
    "dtype": (lambda v: (v.grams, v.grams), ", component 1", str(SPECS[1]), str(SPECS[0])),
    "shape": (
        lambda v: (v.grams, v.exact[:1]),
        *(", component 1", str(SPECS[1]), str(tf.TensorSpec([1], tf.bool))),
    ),
    "no tensor": (lambda v: (v.grams, object()), ", component 1", str(SPECS[1]), "object"),
}


@pytest.mark.parametrize("kind", MISMATCHES)
@pytest.mark.parametrize(
    "use",
    [
        lambda value: tf.function(lambda x: x.grams, autograph=False)(value),
        lambda value: tf.data.Dataset.from_tensors(value),
        lambda value: tf.data.Dataset.from_tensor_slices(value),
        lambda value: value.__tf_type_spec__().to_boxed_tensor(value),
    ],
    ids=["function", "from_tensors", "from_tensor_slices", "box"],
)
def test_components_that_do_not_match_their_specs(use, kind):
    to_components, place, expected, received = MISMATCHES[kind]
    assert told(ProtocolError, lambda: use(amount(to_components))) == (
        f"AmountSpec.to_components{place}",
        expected,
        received,
        "Make component_specs and to_components match, component by component.",
    )


@pytest.mark.parametrize("kind", MISMATCHES)
def test_a_law_reports_components_that_do_not_match(kind):
    with pytest.raises(testing.LawError) as caught:
        testing.check_extension_type(amount(MISMATCHES[kind][0]))
    [breach] = caught.value.breaches
    assert (caught.value.type_name, breach.law.name) == ("Amount", "components-match-specs")
    assert breach.law.fix in str(caught.value)


@pytest.mark.parametrize(
    ("value", "where", "op"),
    [
        (amount(to_components=lambda v: (tf.identity(v.grams), v.exact)), "to", "Identity"),
        (amount(from_components=lambda parts: (tf.abs(parts[0]), parts[1])), "from", "Abs"),
    ],
    ids=["to_components", "from_components"],
)
def test_a_law_reports_a_method_that_calls_an_op(value, where, op):
    with pytest.raises(testing.LawError) as caught:
        testing.check_extension_type(value)
    [breach] = caught.value.breaches
    assert (caught.value.type_name, breach.law.name) == ("Amount", "components-run-no-op")
    assert (breach.expected, breach.received) == (f"no op from {where}_components", op)
    assert breach.law.fix.startswith("Only store and return tensors in to_components and")


# Declared fields.


@xt.extension_type
class Step:
    minutes: Annotated[tf.Tensor, tf.TensorSpec([None], tf.int32)]
    tools: tuple = ()


Step.__qualname__ = "Step"


class Changeable:
    __hash__ = None


@pytest.mark.parametrize(
    ("tools", "place", "received"),
    [
        ((Changeable(),), "[0]", "Changeable"),
        (({"pan": bytearray(b"a")},), "[0]['pan']", "bytearray"),
    ],
)
def test_static_data_that_cannot_be_frozen(tools, place, received):
    assert told(DTypeError, lambda: Step([1], tools)) == (
        f"Step.tools{place}",
        "static data that can be frozen",
        received,
        "Make it a tensor, or an immutable value that defines __hash__ and __eq__.",
    )


def test_an_array_that_cannot_be_frozen():
    path, expected, received, fix = told(DTypeError, lambda: Step([1], (np.array([{}]),)))
    assert (path, expected) == ("Step.tools[0]", "an array of numbers, strings, bytes or times")
    assert received == "a ndarray of dtype object"
    assert fix == "Convert it to such a dtype, or to a tuple."


@pytest.mark.parametrize(
    ("minutes", "kind", "expected", "received"),
    [
        (tf.constant([1.5]), DTypeError, "dtype int32", "float32"),
        (tf.constant([[1]]), StructureError, "shape (None,)", "shape (1, 1)"),
        (tf.constant(1), StructureError, "shape (None,)", "shape ()"),
    ],
    ids=["dtype", "rank 2", "rank 0"],
)
def test_a_tensor_of_another_dtype_or_rank_than_its_annotation(minutes, kind, expected, received):
    path, wanted, got, fix = told(kind, lambda: Step(minutes))
    assert path == "Step.minutes"
    assert wanted == expected
    assert received in got
    assert fix.endswith(".")


def holder(annotation):
    """Returns a declared class with one field."""

    @xt.extension_type
    class Holder:
        x: annotation

    Holder.__qualname__ = "Holder"
    return Holder


def test_a_variable_is_checked_against_the_spec_in_its_annotation():
    cls = holder(Annotated[tf.Variable, tf.TensorSpec([2], tf.float32)])
    variable = tf.Variable([1.0, 2.0])
    value = cls(variable)
    assert value.x is variable
    assert cls.Spec(value.__tf_type_spec__().x) == value.__tf_type_spec__()
    assert tf.function(lambda v: v.x + 1)(value).numpy().tolist() == [2.0, 3.0]
    for wrong, kind, expected, received in (
        (tf.Variable([1.0]), StructureError, "shape (2,)", "shape (1,)"),
        (tf.Variable([1, 2]), DTypeError, "dtype float32", "of dtype int32, shape (2,)"),
    ):
        path, wanted, got, _ = told(kind, lambda value=wrong: cls(value))
        assert (path.rpartition(".")[2], wanted) == ("x", expected)
        assert got.endswith(received)
        part = holder(tf.Variable)(wrong).__tf_type_spec__().x
        path, wanted, got, _ = told(kind, lambda part=part: cls.Spec(part))
        assert (path.rpartition(".")[2], wanted) == ("x", expected)


@xt.extension_type
class Measure:
    amount: tf.Tensor
    unit: str


AMOUNTS = tf.TensorSpec([None], tf.float32)
KILOGRAMS = Measure.Spec(AMOUNTS, "kg")
NUMBERS = xt.spec_of(xt.from_arrow(pa.array([{"a": 1}])))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Annotated[Measure, KILOGRAMS], Measure([1.0], "g")),
        (Annotated[xt.StructuredTensor, NUMBERS], xt.from_arrow(pa.array([{"a": "b"}]))),
    ],
    ids=["static data", "records"],
)
def test_a_value_that_differs_from_its_annotated_spec_is_an_error(annotation, value):
    spec = annotation.__metadata__[0]
    assert told(DTypeError, lambda: holder(annotation)(value))[1:] == (
        str(spec),
        str(xt.spec_of(value)),
        "The field's annotation declares the type.",
    )


def test_records_of_another_shape_than_their_annotation():
    value = xt.from_arrow(pa.array([[{"a": 1}], []]))
    _, expected, received, _ = told(
        StructureError, lambda: holder(Annotated[xt.StructuredTensor, NUMBERS])(value)
    )
    assert (expected, received) == (f"shape {NUMBERS.shape}", f"shape {value.shape}")


@pytest.mark.parametrize(
    ("annotation", "value", "expected", "received"),
    [
        (
            Annotated[tf.Tensor, tf.TensorSpec([2], tf.float32)],
            *(tf.constant([1]), "dtype float32", "a EagerTensor of dtype int32, shape (1,)"),
        ),
        (int, "a", "an int", "str"),
    ],
    ids=["tensor", "int"],
)
def test_the_error_of_an_optional_field_is_that_of_the_field(annotation, value, expected, received):
    for kind in (annotation, Optional[annotation], Union[None, annotation]):  # noqa: UP007, UP045
        cls = holder(kind)
        assert told(DTypeError, lambda cls=cls: cls(value))[1:3] == (expected, received)
    union = Union[annotation, bytes]  # noqa: UP007
    assert "bytes" in told(DTypeError, lambda: holder(union)(value))[1]


@pytest.mark.parametrize("kind", [Iterable, Collection, Reversible])
def test_an_iterable_of_tensors_is_a_sequence_of_them(kind):
    assert [x.numpy() for x in holder(kind[tf.Tensor])([1, 2]).x] == [1, 2]
    assert told(DTypeError, lambda: holder(kind[tf.Tensor])(iter([1])))[1] == "a list or tuple"


def test_an_array_is_checked_against_the_dtype_in_its_annotation():
    for annotation in (npt.NDArray[np.float32], npt.NDArray[np.floating], np.ndarray):
        assert holder(annotation)(np.float32([1])).x.dtype == np.float32
    cls = holder(npt.NDArray[np.float32])
    assert told(DTypeError, lambda: cls(np.int32([1])))[1:] == (
        "an array of dtype float32",
        "an array of dtype int32",
        "Convert it with value.astype.",
    )
    assert holder(npt.NDArray[Any])(np.int32([1])).x.dtype == np.int32
    assert told(DTypeError, lambda: cls([1.0]))[2] == "list"


@pytest.mark.parametrize(
    ("value", "received"), [((1,), "a tuple of 1"), ([1, 2, 3], "a list of 3"), (1, "int")]
)
def test_the_error_for_a_tuple_of_another_length_has_its_length(value, received):
    assert told(DTypeError, lambda: holder(tuple[int, int])(value))[1:3] == (
        "a tuple of 2",
        received,
    )


@pytest.mark.parametrize("annotation", [tf.Variable, Optional[tf.Variable]])  # noqa: UP045
def test_the_error_for_a_keras_variable_names_the_attribute_with_its_tensorflow_variable(
    annotation,
):
    variable = keras.Variable([1.0])
    assert told(DTypeError, lambda: holder(annotation)(variable))[1:] == (
        "a value of type tf.Variable",
        "a keras.Variable",
        "Pass its `.value`.",
    )
    assert holder(annotation)(variable.value).x is variable.value


def test_data_that_contains_itself_is_an_error():
    items = [1]
    items.append(items)
    mapping = {"a": {}}
    mapping["a"]["b"] = mapping
    for annotation, value, place in (
        (Any, items, "[1]"),
        (list[Any], items, "[1][1]"),
        (Any, mapping, "['a']['b']"),
    ):
        path, expected, received, _ = told(DTypeError, lambda a=annotation, v=value: holder(a)(v))
        assert path.endswith(f".x{place}")
        assert expected == "static data that can be frozen"
        assert received == f"a {type(value).__name__} that contains itself"
    same = [1]
    assert holder(Any)([same, same]).x == ((1,), (1,))


# Specs without a name.


def test_a_type_that_is_not_registered_is_not_saved(tmp_path):
    _, spec_class = fresh_masked_type()
    module = tf.Module()
    module.same = tf.function(lambda x: x, input_signature=[spec_class([2], tf.float32)])
    path, expected, received, fix = told(
        RegistrationError, lambda: tf.saved_model.save(module, str(tmp_path))
    )
    assert path.endswith("MaskedTensorSpec")
    assert expected == "a spec with a registered name, under which it is saved"
    assert received == "a spec without a name"
    assert fix.startswith("Register it where it is defined: xt.register_type_spec(MaskedTensorSpec")


# Stacks.

MASKED = MaskedTensor(tf.constant([1.0, 2.0]), tf.constant([True, False]))
RAGGED = tf.ragged.constant([[1, 2], [3]])
GIVE = (
    "Give the result of to_boxed_tensor of the same type, and stack or unstack the spec as often "
    "as the tensors."
)


@pytest.mark.parametrize(
    ("boxes", "kind", "place", "expected", "received"),
    [
        ([], StructureError, "", "2 boxed tensors", "0"),
        (tf.zeros([2]), StructureError, "", "2 boxed tensors", "1"),
        ([tf.zeros([2])] * 3, StructureError, "", "2 boxed tensors", "3"),
        ([tf.zeros([2])] * 2, DTypeError, ", boxed tensor 1", "bool", "float32"),
        ([[1.0, 2.0], MASKED.mask], DTypeError, ", boxed tensor 0", "float32", "list"),
        (
            [tf.zeros([3, 2]), tf.zeros([3, 2], tf.bool)],
            *(StructureError, ", boxed tensor 0", "shape (2,)", "(3, 2)"),
        ),
        (
            [RAGGED, RAGGED],
            *(DTypeError, ", boxed tensor 0", "float32", "int32"),
        ),
    ],
    ids=["none", "one", "three", "dtype", "list", "rank", "ragged"],
)
def test_boxed_tensors_that_do_not_match_their_specs_are_an_error(
    boxes, kind, place, expected, received
):
    spec = MaskedTensorSpec([2], tf.float32)
    assert told(kind, lambda: spec.from_boxed_tensor(boxes)) == (
        f"MaskedTensorSpec{place}",
        expected,
        received,
        GIVE,
    )


@xt.extension_type
class Pair:
    """Has the fields of a MaskedTensor, but is another class."""

    values: tf.Tensor
    mask: tf.Tensor


PAIR = Pair([1.0, 2.0], [True, False])


@pytest.mark.parametrize(
    ("spec", "value", "path", "wanted", "received"),
    [
        (xt.spec_of(MASKED), PAIR, "MaskedTensorSpec", "MaskedTensor", "Pair"),
        (xt.spec_of(PAIR), MASKED, "Pair.Spec", "Pair", "MaskedTensor"),
        (xt.spec_of(MASKED), RAGGED, "MaskedTensorSpec", "MaskedTensor", "RaggedTensor"),
        (xt.spec_of(RAGGED), MASKED, "RaggedTensorSpec", "RaggedTensor", "MaskedTensor"),
        (
            ParcelSpec((tf.SparseTensorSpec([2, 2]),)),
            Parcel((RAGGED,), None),
            *("SparseTensorSpec", "SparseTensor", "RaggedTensor"),
        ),
    ],
    ids=["pair as masked", "masked as pair", "ragged as masked", "masked as ragged", "component"],
)
@pytest.mark.parametrize("minimum_rank", [0, 1])
def test_values_of_two_types_do_not_stack(spec, value, path, wanted, received, minimum_rank):
    assert told(DTypeError, lambda: spec.to_boxed_tensor(value, minimum_rank)) == (
        path,
        f"a {wanted}, because values of two types do not stack",
        f"a {received}",
        "Make all values of one type first.",
    )


@pytest.mark.parametrize(
    "mix",
    [
        lambda: tf.data.Dataset.from_tensors(MASKED).concatenate(
            tf.data.Dataset.from_tensors(PAIR)
        ),
        lambda: tf.data.Dataset.sample_from_datasets(
            [tf.data.Dataset.from_tensors(MASKED), tf.data.Dataset.from_tensors(PAIR)]
        ),
        lambda: tf.map_fn(lambda _: PAIR, tf.range(2), fn_output_signature=xt.spec_of(MASKED)),
        lambda: list(
            tf.data.Dataset.from_generator(
                lambda: iter([MASKED, PAIR]), output_signature=xt.spec_of(MASKED)
            )
        ),
        lambda: tf.function(lambda x: x, input_signature=[xt.spec_of(MASKED)])(PAIR),
    ],
    ids=["concatenate", "sample", "map_fn", "from_generator", "signature"],
)
def test_apis_that_join_values_refuse_two_types(mix):
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)) as caught:
        mix()
    assert "Pair" in str(caught.value)


# Casts.


@pytest.mark.parametrize("value", [PAIR, RAGGED, tf.constant([1.0, 2.0])], ids=["pair", "r", "t"])
def test_a_cast_between_unrelated_types_is_an_error(value):
    path, expected, received, fix = told(DTypeError, lambda: xt.spec_of(MASKED).cast(value))
    assert path == "MaskedTensorSpec"
    assert expected == f"a value that can be cast to {xt.spec_of(MASKED)}"
    assert received == str(tf.type_spec_from_value(value))
    assert fix == "Convert the value first, or override MaskedTensorSpec.cast."
