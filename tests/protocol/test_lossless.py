"""Conversion to a tensor of a declared dtype loses no data without an error."""

import warnings
from typing import Annotated, Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import extensor as xt
from extensor._protocol.casting import cast_value
from extensor._protocol.lossless import is_tensor_like, lossless
from extensor.errors import DTypeError, NullError

REAL = (
    *(tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64),
    *(tf.float16, tf.float32, tf.float64, tf.bool),
)
dtypes = st.sampled_from(REAL)
PLACES = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def crate(dtype: tf.DType) -> Any:
    """Returns a declared type with one field of a dtype."""
    note = Annotated[tf.Tensor, tf.TensorSpec(None, dtype)]
    return xt.extension_type(type("Crate", (), {"__annotations__": {"content": note}}))


CRATES = {dtype: crate(dtype) for dtype in (*REAL, tf.complex64, tf.complex128, tf.string)}


@st.composite
def arrays(draw: Any) -> Any:
    dtype = np.dtype(draw(st.sampled_from([*(d.as_numpy_dtype for d in REAL), np.complex128])))
    return draw(npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0, max_side=3)))


# NumPy warns, in TensorFlow, also of an array without values.
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@given(arrays(), dtypes)
def test_an_array_becomes_the_same_numbers_or_an_error(array, dtype):
    wanted = np.dtype(dtype.as_numpy_dtype)
    widens = PLACES[array.dtype.kind] <= PLACES[wanted.kind] or not array.size
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        cast = array.astype(wanted)
    if wanted.kind == "f":
        fits = bool(np.all(np.isfinite(cast) | ~np.isfinite(array)))
    else:
        fits = array.astype(object).tolist() == cast.astype(object).tolist()
    if widens and fits:
        held = CRATES[dtype](array).content
        assert held.dtype == dtype
        np.testing.assert_array_equal(held, cast)
    else:
        with pytest.raises(xt.errors.DTypeError, match=r"^Crate.content: expected values that d"):
            CRATES[dtype](array)


@given(npst.arrays(st.sampled_from([np.int64, np.float64]), st.integers(1, 3)), dtypes)
def test_a_list_is_converted_like_an_array(array, dtype):
    def outcome(value: Any) -> Any:
        try:
            return np.asarray(CRATES[dtype](value).content)
        except xt.errors.DTypeError as error:
            return str(error)

    for other in (array.tolist(), list(array), array.astype(object)):
        np.testing.assert_array_equal(outcome(other), outcome(array))


@pytest.mark.parametrize(
    ("dtype", "value", "kept"),
    [
        (tf.float32, [1, 2], [1.0, 2.0]),
        (tf.float32, np.array([0.1]), [np.float32(0.1)]),
        (tf.float32, np.array([np.inf, -np.inf]), [np.inf, -np.inf]),
        (tf.float64, [0.1], [0.1]),
        (tf.float32, 2**24 + 1, 2.0**24),
        (tf.int32, np.array([3]), [3]),
        (tf.int32, [True, False], [1, 0]),
        (tf.float32, np.array([True]), [1.0]),
        (tf.int32, [], []),
        (tf.int32, np.array([]), []),
        (tf.int32, range(3), [0, 1, 2]),
        (tf.int32, np.array([1, 2], object), [1, 2]),
        (tf.uint64, 2**64 - 1, 2**64 - 1),
        (tf.uint64, [2**64 - 1, 0], [2**64 - 1, 0]),
        (tf.uint64, [[0], [2**64 - 1]], [[0], [2**64 - 1]]),
        (tf.complex64, [1.5], [1.5]),
        (tf.complex64, np.array([2]), [2.0]),
        (tf.string, np.array(["a"], object), [b"a"]),
        (tf.int64, np.ma.array([1, 2], mask=False), [1, 2]),
        (tf.int32, [tf.constant(1), 2], [1, 2]),
        (tf.float32, [tf.constant(1), tf.constant(2)], [1.0, 2.0]),
    ],
)
def test_usual_conversions_are_allowed(dtype, value, kept):
    held = CRATES[dtype](value).content
    assert (held.dtype, held.numpy().tolist()) == (dtype, kept)


@pytest.mark.parametrize(
    ("dtype", "value", "received"),
    [
        (tf.int32, np.array([2.0]), "got float64"),
        (tf.int32, [2.0], "got float64"),
        (tf.int32, np.float32(2.0), "got float32"),
        (tf.int32, np.array([1.5], object), "got float64"),
        (tf.int32, [tf.constant(1.5)], "got float32"),
        (tf.int32, tf.Variable([1.5]), "got a EagerTensor of dtype float32"),
        (tf.int32, 2**40, "got int64 values out of range"),
        (tf.int32, [[1, 2**40]], "got int64 values out of range"),
        (tf.uint8, [-1], "got int64 values out of range"),
        (tf.uint64, [2**64 - 1, -1], "got int64 values out of range"),
        (tf.int64, [2**64 - 1, 0], "got uint64 values out of range"),
        (tf.int64, np.array([2**63], np.uint64), "got uint64 values out of range"),
        (tf.float16, [70000.0], "got float64 values out of range"),
        (tf.float32, np.array([1e300]), "got float64 values out of range"),
        (tf.float32, np.array([1j]), "got complex128"),
        (tf.bool, np.array([2]), "got int64"),
        (tf.bool, np.array(["no"]), "got string"),
        (tf.int64, np.array(["2020-01-01"], "M8[D]"), r"got datetime64\[D\]"),
        (tf.int64, np.ma.array([1, 2], mask=[False, True]), "got a numpy.ma.MaskedArray"),
    ],
)
def test_a_conversion_that_loses_data_is_an_error_with_a_mend(dtype, value, received):
    with pytest.raises(TypeError, match=rf"^Crate.content: .*{received}.*\. [A-Z]") as caught:
        CRATES[dtype](value)
    assert isinstance(caught.value, xt.errors.DTypeError)


def test_in_a_graph_it_is_the_same():
    @tf.function
    def packed(x, of):
        return CRATES[of]([x, 2]).content

    assert packed(tf.constant(1), tf.int64).numpy().tolist() == [1, 2]
    for wrong in (
        lambda: CRATES[tf.int32](np.array([1.5])).content,
        lambda: CRATES[tf.uint8]([300]).content,
    ):
        with pytest.raises(xt.errors.DTypeError, match=r"that dtype \w+ holds"):
            tf.function(wrong)()
    with pytest.raises(xt.errors.DTypeError, match="that dtype int32 holds, got float32"):
        packed(tf.constant(1.5), tf.int32)


def test_a_masked_array_is_an_error_without_a_declared_dtype():
    half = np.ma.array([1.0, 2.0], mask=[True, False])
    crate = xt.extension_type(type("Crate", (), {"__annotations__": {"content": tf.Tensor}}))
    for wrong in (half, [half, half], (half.filled(0), half)):
        with pytest.raises(xt.errors.DTypeError, match=r"Crate.content: expected an array without"):
            crate(wrong)
    assert crate(half.filled(0)).content.numpy().tolist() == [0.0, 2.0]
    with pytest.raises(xt.errors.DTypeError, match=r"MaskedTensor.values: .*from_numpy"):
        xt.types.MaskedTensor(half)
    with pytest.raises(xt.errors.DTypeError, match=r"LabeledTensor.values: .*without a mask"):
        xt.types.LabeledTensor(half, ["day"])
    with pytest.raises(xt.errors.DTypeError, match=r"^grams: .*without a mask"):
        xt.DenseStructuredTensor([2], {"grams": half})
    with pytest.raises(xt.errors.DTypeError, match=r"^CSRSparseTensor.*without a mask"):
        xt.types.CSRSparseTensor.from_dense(half[np.newaxis])
    assert xt.types.MaskedTensor.from_numpy(half).to_py() == [None, 2.0]


TYPES = {
    "a tensor": lambda x: xt.authoring.as_tensor(x, "Cup.grams"),
    "masked": xt.types.MaskedTensor,
    "from NumPy": xt.types.MaskedTensor.from_numpy,
    "labeled": lambda x: xt.types.LabeledTensor(x, ["row"]),
    "of a node": lambda x: xt.types.TensorDigraph([], [], {"grams": x}),
    "of nodes": lambda x: xt.types.TensorDigraph([], [], num_nodes=2).readout(x),
    "aligned": lambda x: xt.types.DimensionAlignment.identity(2).apply(x),
    "entries": lambda x: xt.types.CSRSparseTensor([0, 2], [0, 1], x, [1, 2]),
    "a variant": lambda x: xt.types.UnionTensor([0, 0], {"number": x}),
    "a field": lambda x: xt.DenseStructuredTensor([2], {"grams": x}),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_value_that_no_tensor_holds_is_an_error_that_names_it(name):
    for value, kind in (
        ([1, None], ValueError),
        ([[1], [2, 3]], ValueError),
        (np.array(["2020-01-01"], "datetime64[s]"), (TypeError, ValueError)),
        ([1.0, object()], (TypeError, ValueError)),
    ):
        with pytest.raises(kind) as caught:
            TYPES[name](value)
        assert isinstance(caught.value, xt.errors.ExtensorError)
        assert "expected a tensor, or a value that converts" in str(caught.value)
    if name != "from NumPy":
        with pytest.raises(DTypeError, match="expected an array without a mask"):
            TYPES[name](np.ma.array([1.0, 2.0], mask=[True, False]))


NULLS = {
    "nullable integers of pandas": lambda: pd.array([1, None], dtype="Int64"),
    "nullable floats of pandas": lambda: pd.array([1.5, None], dtype="Float64"),
    "a column of pandas": lambda: pd.Series([1, None], dtype="Int64"),
    "a column of pandas in Arrow": lambda: pd.Series([1, None], dtype="int64[pyarrow]"),
    "an array of Arrow": lambda: pa.array([1, None]),
    "a column of Arrow": lambda: pa.chunked_array([[1], [None]]),
    "a column of polars": lambda: polars.Series([1, None]),
}


@pytest.mark.parametrize("name", NULLS)
def test_nulls_do_not_become_valid_numbers(name):
    column = NULLS[name]()
    for call in (
        lambda: CRATES[tf.float64](column),
        lambda: xt.types.MaskedTensor([1.0, 2.0]) + column,
        lambda: tf.where([True, False], xt.types.MaskedTensor([1.0, 2.0]), column),
    ):
        with pytest.raises(NullError, match="with 1 null"):
            call()
    for convert in TYPES.values():
        with pytest.raises(NullError, match="with 1 null"):
            convert(column)
    np.testing.assert_array_equal(xt.types.MaskedTensor(column[:1]).values, column[:1])
    lists = pd.Series([1.0, None])  # here NaN is a number
    np.testing.assert_array_equal(xt.types.MaskedTensor(lists).values, [1.0, np.nan])


def test_replaced_fields_and_union_annotations_are_checked():
    short, real = (Annotated[tf.Tensor, tf.TensorSpec(None, d)] for d in (tf.int32, tf.float32))

    @xt.extension_type
    class Cup:
        grams: short | real

    cup = Cup(np.array([1]))
    assert cup.grams.dtype == tf.int32
    assert xt.replace(cup, grams=np.array([1.5])).grams.numpy().tolist() == [1.5]
    with pytest.raises(xt.errors.DTypeError):
        xt.replace(cup, grams=np.array([1.5j]))


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (tf.TensorSpec([1], tf.int32), np.array([1.5])),
        (tf.RaggedTensorSpec([2, None], tf.int32), [[2**40], []]),
        (tf.RaggedTensorSpec([2, None], tf.uint8), [[1, 2], [-1]]),
        (tf.RaggedTensorSpec([2, None], tf.int32), np.array([[1.5], [2.5]])),
    ],
)
def test_a_cast_of_plain_values_is_checked(spec, value):
    for cast in (cast_value, lambda spec, value, path: xt.spec_of(spec).cast(value)):
        with pytest.raises(xt.errors.DTypeError, match=f"that dtype {spec.dtype.name} holds"):
            cast(spec, value, "cup")


def test_fill_values_and_factors_are_checked_against_the_dtype():
    masked = xt.types.MaskedTensor(tf.constant([1, 2], tf.uint8), [True, False])
    ragged = xt.types.MaskedTensor(tf.ragged.constant([[1], [2]]), [True, False])
    for wrong in (lambda: masked.fill(300), lambda: ragged.fill(np.float64(0.5))):
        with pytest.raises(xt.errors.DTypeError, match=r"^MaskedTensor.fill: expected values"):
            wrong()
    assert masked.fill(np.int64(255)).numpy().tolist() == [1, 255]
    matrix = xt.types.CSRSparseTensor.from_dense([[1, 2]])
    with pytest.raises(xt.errors.DTypeError, match=r"^CSRSparseTensor.matmul: expected values"):
        matrix.matmul(np.array([[0.5], [0.5]]))


def test_a_conversion_that_tensorflow_rejects_raises_its_error():
    masked = xt.types.MaskedTensor([1.5])
    for value in ([1, None], [[1], [1, 2]], object(), {"a": 1}, [2**70], masked):
        assert lossless(value, tf.int32, "cup") is value
        with pytest.raises((TypeError, ValueError)):
            tf.convert_to_tensor(value, tf.int32)


class WithoutHash:
    __hash__ = None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (tf.constant(1), True),
        (tf.ragged.constant([[1]]), True),
        (tf.sparse.from_dense([1]), True),
        (CRATES[tf.int32]([1]), True),
        (np.zeros(2), False),
        ([tf.constant(1)], False),
        (tf.Variable(1), True),
        (WithoutHash(), False),
        (None, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tensors_and_values_with_components_are_like_tensors(value, expected):
    assert is_tensor_like(value) is expected


@pytest.mark.parametrize("value", [2**64, -(2**64), [2**64], [0, 2**65]])
def test_an_int_of_more_than_64_bits_is_an_error_each_time(value):
    # TensorFlow makes 2**64 - 1 of the first from the second time on.
    spec = tf.TensorSpec(None, tf.uint64)
    for _ in range(3):
        with pytest.raises(xt.errors.DTypeError, match="uint64 holds"):
            cast_value(spec, value, "x")
