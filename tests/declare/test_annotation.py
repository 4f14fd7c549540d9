"""Annotations of fields: which values they accept, and how they convert them."""

import collections.abc
import enum
import typing
from typing import Annotated, Any, Literal, NewType, Optional, TypeVar, Union

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from tests.samples.declared import Course, Masked, Spiced, Unit
from tests.samples.types import MaskedTensor

T = TypeVar("T")
Number = TypeVar("Number", int, float)
Text = TypeVar("Text", bound=str)
Serving = NewType("Serving", int)


def declared(annotation, **default):
    """Returns a type with one field."""
    return xt.extension_type(
        type("Crate", (), {"__annotations__": {"content": annotation}, **default})
    )


def content(annotation, value):
    return declared(annotation)(value).content


ragged = tf.ragged.constant([[1, 2], [3]])
sparse = tf.sparse.from_dense([[0, 1]])


@pytest.mark.parametrize(
    ("annotation", "given", "kept"),
    [
        (int, 3, 3),
        (int, np.int64(3), 3),
        (float, 3, 3.0),
        (float, np.float32(0.5), 0.5),
        (bool, np.bool_(True), True),
        (str, "a", "a"),
        (bytes, b"a", b"a"),
        (None, None, None),
        (type(None), None, None),
        (tf.DType, "float32", tf.float32),
        (tf.DType, np.int32, tf.int32),
        (tf.TensorShape, [None, 2], tf.TensorShape([None, 2])),
        (tf.TypeSpec, tf.TensorSpec([2]), tf.TensorSpec([2])),
        (Course, Course.MAIN, Course.MAIN),
        (enum.Enum, Course.MAIN, Course.MAIN),
        (Literal["mild", 1, None], "mild", "mild"),
        (int | None, None, None),
        (Optional[int], 1, 1),  # noqa: UP045
        (Union[int, float], 1.5, 1.5),  # noqa: UP007
        (Union[float, int], 1, 1),  # noqa: UP007
        (str | tuple[str, ...], ["a"], ("a",)),
        (tuple, [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[()], (), ()),
        (list[int], [1, 2], (1, 2)),
        (list, range(2), (0, 1)),
        (collections.abc.Sequence[float], (1, 2), (1.0, 2.0)),
        (typing.Tuple[int, ...], [1], (1,)),  # noqa: UP006
        (typing.List[str], ["a"], ("a",)),  # noqa: UP006
        (set[int], {1, 2}, frozenset({1, 2})),
        (frozenset, {1, "a"}, frozenset({1, "a"})),
        (collections.abc.Set[str], frozenset("a"), frozenset("a")),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (typing.Mapping[str, tuple[int, ...]], {"a": [1]}, {"a": (1,)}),
        (collections.abc.Mapping, {"a": [1]}, {"a": (1,)}),
        (Unit, Unit("g", 1), Unit("g", 1.0)),
        (Any, [1, {"a": "b"}], (1, {"a": "b"})),
        (object, [1], (1,)),
        (T, "a", "a"),
        (Number, 2, 2),
        (Text, "a", "a"),
        (Serving, 2, 2),
        (typing.Final[int], 2, 2),
        (Annotated[int, "servings"], 2, 2),
        (collections.abc.Callable[[int], int], abs, abs),
        (type, int, int),
        (type[int], int, int),
        (range, range(3), range(3)),
        (collections.abc.Hashable, 3, 3),
    ],
)
def test_static_fields(annotation, given, kept):
    value = declared(annotation)(given)
    assert value.content == kept
    assert type(value.content) is type(kept) or isinstance(kept, dict)
    spec = value.__tf_type_spec__()
    assert spec.component_specs == {}
    assert spec.content == kept
    # A spec that is made by hand is read the same way.
    assert type(spec)(content=given) == spec


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (int, "a"),
        (int, True),
        (int, 1.0),
        (int, tf.constant(1)),
        (float, "1"),
        (float, True),
        (bool, 1),
        (str, b"a"),
        (bytes, "a"),
        (None, 0),
        (tf.DType, "float33"),
        (tf.TensorShape, "abc"),
        (tf.TypeSpec, 3),
        (Course, "MAIN"),
        (Literal["mild", 1], True),
        (Literal["mild"], "hot"),
        (int | None, "a"),
        (tuple[int, ...], 3),
        (tuple[int, ...], "abc"),
        (tuple[int, ...], [1, "a"]),
        (tuple[int, str], [1]),
        (list[int], {1}),
        (set[int], [1]),
        (set[int], {"a"}),
        (dict[str, int], [("a", 1)]),
        (dict[str, int], {1: 1}),
        (dict[str, int], {"a": "b"}),
        (Unit, ("g", 1.0)),
        (Unit, Unit(1, "g")),
        (Text, 3),
        (Number, "a"),
        (np.ndarray, [1]),
        (collections.abc.Callable, 3),
        (tf.Tensor, None),
        (tf.Tensor, ragged),
        (tf.Tensor, [[1], [2, 3]]),
        (tf.Tensor, object()),
        (tf.RaggedTensor, tf.constant([1])),
        (tf.SparseTensor, ragged),
        (tf.Variable, tf.constant(1)),
        (Masked, tf.constant(1)),
        (MaskedTensor, Masked([1.0], [True])),
        (tuple[tf.Tensor, ...], tf.constant([1])),
        (tuple[tf.Tensor, ...], [ragged]),
        (dict[str, tf.Tensor], tf.constant([1])),
        (tf.Tensor | None, object()),
        (Annotated[tf.Tensor, tf.TensorSpec([2], tf.int32)], tf.constant([1.0, 2.0])),
        (Annotated[tf.Tensor, tf.TensorSpec([2], tf.int32)], "a"),
        (Annotated[tf.RaggedTensor, tf.RaggedTensorSpec([None, None])], ragged),
    ],
)
def test_other_values_are_an_error_that_names_type_field_and_mend(annotation, given):
    with pytest.raises(TypeError) as caught:
        content(annotation, given)
    assert isinstance(caught.value, xt.ExtensorError)
    assert str(caught.value).startswith("Crate.content")
    for part in (caught.value.expected, caught.value.received, caught.value.fix):
        assert part


@pytest.mark.parametrize("shape", [[2], [2, 4], []])
def test_a_tensor_of_the_wrong_shape_for_its_annotation_is_an_error(shape):
    annotation = Annotated[tf.Tensor, tf.TensorSpec([None, 3])]
    assert content(annotation, tf.zeros([2, 3])).shape == [2, 3]
    with pytest.raises(ValueError, match=r"Crate.content: expected shape \(None, 3\), got shape"):
        content(annotation, tf.zeros(shape))


def test_the_mend_for_a_wrong_dtype_is_a_cast():
    annotation = Annotated[tf.Tensor, tf.TensorSpec([None], tf.float32)]
    with pytest.raises(TypeError, match=r"dtype float32.*int32, shape \(2,\). Cast it with tf.cas"):
        content(annotation, tf.constant([1, 2]))
    # Python numbers get the dtype of the annotation.
    assert content(annotation, [1, 2]).dtype == tf.float32


def test_an_optional_tensor_may_be_annotated_either_way():
    note = tf.TensorSpec([None], tf.float32)
    for annotation in (Annotated[tf.Tensor | None, note], Annotated[tf.Tensor, note] | None):
        assert content(annotation, None) is None
        assert content(annotation, [1]).dtype == tf.float32
        with pytest.raises(TypeError):
            content(annotation, tf.constant([1]))


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (tf.Tensor, tf.constant([1.0])),
        (tf.RaggedTensor, ragged),
        (tf.SparseTensor, sparse),
        (tf.IndexedSlices, tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]))),
        (tf.data.Dataset, tf.data.Dataset.range(2)),
        (Masked, Masked([1.0], [True])),
        (MaskedTensor, MaskedTensor(tf.constant([1.0]), tf.constant([True]))),
        (xt.ExtensionType, Masked([1.0], [True])),
        (xt.StructuredTensor, xt.DenseStructuredTensor(shape=[1], fields={"a": [1]})),
        (tf.Variable, tf.Variable(1.0)),
        (tf.Tensor | tf.RaggedTensor, ragged),
        (int | tf.Tensor, tf.constant(1)),
        (tf.Tensor | str, "a"),
        (np.ndarray | tf.Tensor, tf.constant([1])),
        (Any, sparse),
        (T, ragged),
    ],
)
def test_values_that_fit_are_not_converted(annotation, value):
    crate = declared(annotation)(value)
    assert crate.content is value
    spec = crate.__tf_type_spec__()
    if isinstance(value, str):
        assert spec.component_specs == {}
        return
    assert list(spec.component_specs) == ["content"]
    part = spec.component_specs["content"]
    assert part.value_type is type(value) or isinstance(value, (tf.Tensor, tf.data.Dataset))
    # The same spec by hand.
    assert type(spec)(part) == spec


def test_other_values_are_converted_to_tensors():
    for value in (1, [1.0], np.array([1]), "a", [b"a"], tf.Variable(3.0)):
        kept = content(tf.Tensor, value)
        assert isinstance(kept, tf.Tensor)
        assert kept.dtype == tf.convert_to_tensor(value).dtype


def test_containers_of_tensors_convert_their_items():
    assert isinstance(content(tuple[tf.Tensor, ...], [1, [2.0]])[1], tf.Tensor)
    mixed = content(dict[str, tuple[tf.Tensor, int]], {"a": ([1], 2)})
    assert isinstance(mixed["a"][0], tf.Tensor)
    assert mixed["a"][1] == 2
    spiced = content(Spiced, Spiced([1.0], "salt"))
    assert type(spiced) is Spiced
    assert isinstance(spiced.amounts, tf.Tensor)
    again = tf.function(lambda x: x)(declared(Spiced)(spiced)).content
    assert type(again) is Spiced
    assert again.spice == "salt"


class Silent(typing.Protocol):
    def stir(self) -> None: ...


@pytest.mark.parametrize("annotation", [3, tf.constant(1), [int], Silent, tf.TensorSpec([2])])
def test_an_unsupported_annotation_is_an_error_at_the_declaration(annotation):
    with pytest.raises(TypeError, match=r"Crate.content: expected a type that supports.*Annotate"):
        declared(annotation)


def test_errors_contain_static_text_but_no_tensor_contents():
    with pytest.raises(TypeError) as caught:
        content(int, tf.constant([123456]))
    assert "123456" not in str(caught.value)
    with pytest.raises(TypeError) as caught:
        content(tf.Tensor, [123456, "a"])
    assert "123456" not in str(caught.value)


# Specs that are made by hand.


@pytest.mark.parametrize(
    ("annotation", "part", "expected"),
    [
        (tf.Tensor, 3, "a TypeSpec of Tensor"),
        (tf.Tensor, tf.constant(3), "a TypeSpec of Tensor"),
        (tf.Tensor, tf.RaggedTensorSpec([None, None]), "a TypeSpec of Tensor"),
        (tf.RaggedTensor, tf.TensorSpec([]), "a TypeSpec of RaggedTensor"),
        (Masked, tf.TensorSpec([]), "a TypeSpec of Masked"),
        (int, tf.TensorSpec([]), "an int"),
        (tuple[tf.Tensor, ...], tf.TensorSpec([]), "a list or tuple"),
        (tuple[tf.Tensor, ...], [3], "a TypeSpec of Tensor"),
        (tf.Tensor | None, 3, "a TypeSpec of Tensor"),
        (Annotated[tf.Tensor, tf.TensorSpec([])], tf.TensorSpec([], tf.int32), "dtype float32"),
    ],
)
def test_a_spec_of_wrong_parts_is_an_error(annotation, part, expected):
    with pytest.raises(TypeError) as caught:
        declared(annotation).Spec(content=part)
    assert isinstance(caught.value, xt.ExtensorError)
    assert str(caught.value).startswith("Crate.Spec.content")
    assert expected in str(caught.value).replace("tensorflow.python.framework.tensor.", "")


def test_a_spec_of_the_wrong_shape_is_an_error():
    with pytest.raises(ValueError, match=r"Crate.Spec.content: expected shape \(2,\)"):
        declared(Annotated[tf.Tensor, tf.TensorSpec([2])]).Spec(tf.TensorSpec([3]))


# Values of other libraries.


@pytest.mark.whole("starts a process")
def test_a_composite_that_converts_to_a_tensor_is_converted_as_by_extension_type(
    run_python,
):
    run_python("""
    import tensorflow as tf, tensorflow_probability as tfp, extensor as xt

    @xt.extension_type
    class Declared:
        x: tf.Tensor

    class Theirs(tf.experimental.ExtensionType):
        x: tf.Tensor

    @xt.extension_type
    class Any:
        x: object

    weight = tfp.util.TransformedVariable(1.5, tfp.bijectors.Exp())
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([3, 2]))
    for value in (weight, slices):
        with tf.GradientTape() as tape:
            ours, theirs = Declared(value).x, Theirs(value).x
            assert type(ours) is type(theirs) and ours.dtype == theirs.dtype == tf.float32
            tf.debugging.assert_equal(ours, theirs)
            total = tf.reduce_sum(ours)
        if value is weight:
            assert tape.gradient(total, weight.trainable_variables)[0].numpy() == 1.5
    assert tf.function(lambda value: value.x * 2)(Declared(weight)).numpy() == 3.0
    # It is not converted if the field is no tensor.
    assert Any(weight).x is weight
    assert xt.DenseStructuredTensor([], {"weight": weight})["weight"] is weight
    """)


def test_a_value_with_tf_tensor_is_converted_as_by_extension_type():
    @xt.extension_type
    class Fixed:
        raw: tf.Tensor

        def __tf_tensor__(self, dtype=None, name=None):
            return tf.cast(self.raw, tf.float32) / 4.0

    @xt.extension_type
    class Declared:
        x: tf.Tensor

    class Theirs(tf.experimental.ExtensionType):
        x: tf.Tensor

    fixed = Fixed([2, 4])
    assert Declared(fixed).x.numpy().tolist() == Theirs(fixed).x.numpy().tolist() == [0.5, 1.0]


def test_a_composite_that_does_not_convert_is_an_error_for_a_tensor():
    for value in (tf.ragged.constant([[1.0], []]), tf.sparse.from_dense([1.0])):
        with pytest.raises(xt.errors.DTypeError, match="Annotate the field with the type"):
            content(tf.Tensor, value)
