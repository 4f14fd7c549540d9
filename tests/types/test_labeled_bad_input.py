"""Errors for LabeledTensors that do not match: each names the axes of both operands."""

import numpy as np
import pytest
import tensorflow as tf
import xarray as xr

import extensor as xt
from extensor.types import LabeledTensor

Spec = LabeledTensor.Spec

X = LabeledTensor(tf.zeros([3, 2]), ["word", "feature"])
Y = LabeledTensor(tf.zeros([4]), ["word"])
POSITIONS = LabeledTensor([0, 1], ["query"])

BAD = {
    "a name twice": (
        lambda: LabeledTensor(tf.zeros([3, 2]), ["word", "word"]),
        r"LabeledTensor.axes: expected axes of different names, got 'word' twice in \(word, word\)",
    ),
    "too few names": (
        lambda: LabeledTensor(tf.zeros([3, 2]), ["word"]),
        r"expected one name for each axis of shape \(3, 2\), got \(word\)",
    ),
    "too many names": (
        lambda: LabeledTensor(3.0, ["word"]),
        r"expected one name for each axis of shape \(\), got \(word\)",
    ),
    "no names": (
        lambda: LabeledTensor([1.0], []),
        r"expected one name for each axis of shape \(1,\), got \(\)",
    ),
    "a number for a name": (
        lambda: LabeledTensor([1.0], [1]),
        r"expected a list of names, each a nonempty string, got 1",
    ),
    "an empty name": (lambda: LabeledTensor([1.0], [""]), r"nonempty string, got ''"),
    "None for names": (lambda: LabeledTensor([1.0], None), r"list of names.*got a NoneType"),
    "names of a spec": (
        lambda: Spec(tf.TensorSpec([3]), ["word", "feature"]),
        r"LabeledTensor.Spec.axes: expected one name for each axis",
    ),
    "a spec of unknown rank": (lambda: Spec(tf.TensorSpec(None), ["word"]), r"known rank"),
    "other values of another shape": (
        lambda: X.with_values(tf.zeros([2, 3])),
        r"with_values: expected shape \(3, 2\), .* axes \(word=3, feature=2\), got shape \(2, 3\)",
    ),
    "two sizes": (
        lambda: X + Y,
        r"tf.add: expected the same size of axis 'word', got axes \(word=3, feature=2\) and "
        r"axes \(word=4\)",
    ),
    "size 1 beside another": (
        lambda: X - Y[:1],
        r"same size of axis 'word'.*and axes \(word=1\)",
    ),
    "two sizes in a product": (lambda: X @ Y, r"tf.matmul: expected the same size of axis 'word'"),
    "two sizes in where": (lambda: tf.where(X > 0.0, Y, 0.0), r"tf.where: expected the same size"),
    "two sizes in einsum": (
        lambda: tf.einsum("wf,w->f", X, Y),
        r"tf.einsum: expected the same size",
    ),
    "a vector without names": (
        lambda: X * tf.zeros([2]),
        r"tf.multiply: expected a LabeledTensor or a scalar, .* axes \(word=3, feature=2\), "
        r"got a EagerTensor of shape \(2,\), without names",
    ),
    "an array without names": (lambda: np.zeros([2]) + X, r"tf.add: .*got a ndarray of shape \(2,"),
    "a ragged tensor": (
        lambda: X + tf.ragged.constant([[1.0]]),
        r"tf.add: .*has axes \(word=3, feature=2\), got a RaggedTensor",
    ),
    "a sparse tensor": (
        lambda: X * xt.types.CSRSparseTensor.from_dense(X.values),
        r"got axes \(word=3, feature=2\)(.|\n)*CSRSparseTensor.__tf_dispatch__ handled tf.multiply",
    ),
    "a list without names": (lambda: X > [1.0, 2.0], r"tf.greater: .*got a list"),
    "a matrix without names": (
        lambda: X @ tf.zeros([2, 3]),
        r"tf.matmul: expected a LabeledTensor",
    ),
    "no such axis": (
        lambda: tf.reduce_sum(X, axis="head"),
        r"tf.reduce_sum: expected one of the axes \(word=3, feature=2\), got 'head'",
    ),
    "no such axis in a list": (lambda: tf.reduce_max(X, ["word", "head"]), r"got 'head'"),
    "a number beyond the axes": (lambda: tf.cumsum(X, 2), r"tf.cumsum: .*got 2"),
    "an axis of a scalar": (
        lambda: tf.reduce_sum(tf.reduce_sum(X), "word"),
        r"expected no axis, because the tensor is a scalar, got 'word'",
    ),
    "an axis twice": (lambda: tf.reduce_sum(X, ["word", 0]), r"'word' twice"),
    "an axis that is no axis": (lambda: tf.reduce_sum(X, axis=1.5), r"name or the number.*a float"),
    "an axis of a clipped norm": (lambda: tf.clip_by_norm(X, 1.0, ["head"]), r"got 'head'"),
    "an order of some": (
        lambda: tf.transpose(X, ["word"]),
        r"tf.transpose: expected an order of all axes \(word=3, feature=2\), got \(word\)",
    ),
    "an order of others": (lambda: X.transpose("word", "head"), r"transpose: .*got 'head'"),
    "a vector turned": (lambda: tf.linalg.matrix_transpose(Y), r"expected at least 2 axes"),
    "a new axis without a name": (
        lambda: tf.expand_dims(X, 0),
        r"tf.expand_dims: expected a name for the new axis, got 0",
    ),
    "a new axis of an old name": (lambda: tf.expand_dims(X, "word"), r"'word' twice"),
    "a stack without a name": (lambda: tf.stack([X, X]), r"tf.stack: expected a name.*got None"),
    "a stack of an old name": (lambda: tf.stack([X, X], "word"), r"tf.stack: .*'word' twice"),
    "a stack of other axes": (
        lambda: tf.stack([X, Y], "new"),
        r"tf.stack: expected the same axes, got axes \(word=3, feature=2\) and axes "
        r"\(word=4\)",
    ),
    "classes without a name": (lambda: tf.one_hot(POSITIONS, 3), r"tf.one_hot: expected a name"),
    "a concat of other axes": (lambda: tf.concat([X, Y], "word"), r"tf.concat: expected the same"),
    "a concat of other sizes": (
        lambda: tf.concat([X, X[1:]], "feature"),
        r"tf.concat: expected the same size of axis 'word'",
    ),
    "a concat with a plain tensor": (
        lambda: tf.concat([X, tf.zeros([3, 2])], "word"),
        r"tf.concat: expected a LabeledTensor.*got a EagerTensor",
    ),
    "a size that is not 1": (
        lambda: tf.squeeze(X, "word"),
        r"tf.squeeze: expected size 1 of axis 'word', got axes \(word=3, feature=2\)",
    ),
    "a renamed axis that is not there": (lambda: X.rename(head="h"), r"rename: .*got 'head'"),
    "two axes renamed to one": (lambda: X.rename(word="feature"), r"rename: .*'feature' twice"),
    "a position outside": (
        lambda: X.isel(word=3),
        r"isel: expected positions from -3 to 2 along axis 'word', got 3",
    ),
    "a position outside, of many": (lambda: X.isel(feature=[0, -3]), r"from -2 to 1.*got -3"),
    "a position in nothing": (lambda: X[:0][0], r"0 positions along axis 'word'"),
    "a coordinate": (
        lambda: X.isel(word="salt"),
        r"isel: expected a number, a slice, integers or bools for axis 'word', got a str",
    ),
    "a float position": (lambda: X.isel(word=tf.constant(0.5)), r"got a tensor of float32"),
    "a matrix of positions": (lambda: X.isel(word=[[0]]), r"expected a vector of positions"),
    "too many positions": (lambda: X[0, 0, 0], r"at most one position or slice.*got 3"),
    "a new axis by None": (lambda: X[None], r"got a new axis"),
    "a name in brackets": (lambda: X["word"], r"expected a number, a slice.*got a str"),
    "a mask of another size": (
        lambda: X.isel(word=[True, False]),
        r"expected one bool for each position along axis 'word' of axes \(word=3, feature=2\), "
        r"got a EagerTensor of shape \(2,\)",
    ),
    "a mask of another axis": (lambda: X.isel(word=Y > 0.0), r"got axes \(word=4\)"),
    "a mask of an axis of the same size": (
        lambda: X.isel(word=LabeledTensor([True, False, True], ["head"])),
        r"along axis 'word' of axes \(word=3, feature=2\), got axes \(head=3\)",
    ),
    "a mask of all axes": (
        lambda: X[X > 0.0],
        r"expected one bool for each position along.*'word'",
    ),
    "positions of another size": (
        lambda: tf.gather(X, tf.cast(Y, tf.int32), axis="feature"),
        r"tf.gather: expected the same size of axis 'word'",
    ),
    "a matrix gathered from": (
        lambda: tf.gather(tf.zeros([3, 2]), POSITIONS),
        r"tf.gather: expected a vector or LabeledTensor, for indices with axes \(query=2\)",
    ),
    "batch dimensions": (lambda: tf.gather(X, POSITIONS, batch_dims=1), r"Omit batch_dims"),
    "a transposed product": (lambda: tf.matmul(X, X, transpose_b=True), r"got transpose_b=True"),
    "a number of axes": (lambda: tf.tensordot(X, Y, 1), r"tf.tensordot: expected names of axes"),
    "an axis of one alone": (
        lambda: tf.tensordot(X, X[0], ["word"]),
        r"an axis that both have, axes \(word=3, feature=2\) and axes \(feature=2\), got 'word'",
    ),
    "two letters for a name": (
        lambda: tf.einsum("wf,g->wf", X, X[0]),
        r"the same letter for the same name",
    ),
    "two names for a letter": (lambda: tf.einsum("ww->w", X), r"the same letter for the same name"),
    "too few letters": (lambda: tf.einsum("w->w", X), r"one letter for each of the axes \(word=3"),
    "dots": (lambda: tf.einsum("...->...", X), r"an equation with a letter for each axis"),
    "a letter of a plain tensor": (
        lambda: tf.einsum("wf,fu->wu", X, tf.zeros([2, 3])),
        r"a LabeledTensor with the axis 'u' of the result",
    ),
    "a reshape": (lambda: tf.reshape(X, [-1]), r"tf.reshape: .*got axes \(word=3, feature=2\)"),
    "a broadcast": (
        lambda: tf.broadcast_to(X, [1, 3, 2]),
        r"tf.broadcast_to: .*x \+ tf.zeros_like",
    ),
    "a repeat of all": (lambda: tf.repeat(X, 2), r"tf.repeat: .*Name the axis"),
    "an operation that is not there": (
        lambda: tf.linalg.svd(X),
        r"Call the operation with x.values(.|\n)*tf.linalg.svd was not overridden",
    ),
    "a tensor": (lambda: tf.convert_to_tensor(X), r"expected a tensor without names"),
    "an array": (lambda: np.asarray(X), r"expected a tensor without names"),
    "a truth": (lambda: bool(X), r"expected a single bool"),
    "an argument that is the same for all": (
        lambda: tf.nn.leaky_relu(X, Y),
        r"tf.nn.leaky_relu: .*got axes \(word=4\)",
    ),
    "a Dataset of xarray": (
        lambda: LabeledTensor.from_xarray(xr.Dataset({"a": xr.DataArray([1])})),
        r"from_xarray: expected a DataArray or a Variable of xarray, got a Dataset",
    ),
    "dates of xarray": (
        lambda: LabeledTensor.from_xarray(
            xr.DataArray(np.array(["2024-01-01"], "datetime64[ns]"), dims="day")
        ),
        r"from_xarray: expected a dtype that TensorFlow has, got datetime64",
    ),
    "dimensions that are no names": (
        lambda: LabeledTensor.from_xarray(xr.DataArray([1], dims=[3])),
        r"each a nonempty string, got 3",
    ),
}


MASKED = xt.types.MaskedTensor(tf.zeros([3, 2]))
TOGETHER = {
    "a sum": tf.add,
    "a choice": lambda x, y: tf.where(True, x, y),
    "a range": lambda x, y: tf.clip_by_value(x, 0.0, y),
    "one after the other": lambda x, y: tf.concat([x, y], 0),
    "side by side": lambda x, y: tf.stack([x, y]),
    "a product": tf.matmul,
    "an entropy": tf.nn.softmax_cross_entropy_with_logits,
}


@pytest.mark.parametrize("case", TOGETHER)
@pytest.mark.parametrize("other", [MASKED, xt.types.MaskedTensor(1.0)], ids=["matrix", "scalar"])
def test_it_returns_not_implemented_beside_a_type_with_its_own_handler(case, other):
    both = [
        "LabeledTensor declined",
        "MaskedTensor was not called: .*allows MaskedTensor, Tensor, RaggedTensor, but .* is a "
        "LabeledTensor",
    ]
    for operands, said in (((X, other), both), ((other, X), both[::-1])):
        with pytest.raises((TypeError, ValueError), match=".*".join(said)):
            TOGETHER[case](*operands)


@pytest.mark.parametrize("case", TOGETHER)
def test_a_type_that_handles_names_is_called(case):
    class Percent:
        @classmethod
        def __tf_dispatch__(cls, op, args, kwargs):
            return f"a percentage, beside {X.axes}"

    for operands in ((X, Percent()), (Percent(), X)):
        assert TOGETHER[case](*operands) == "a percentage, beside ('word', 'feature')"


def test_a_scalar_is_a_number_beside_a_masked_scalar():
    total = tf.reduce_sum(X + 1.0)
    for result in (total + xt.types.MaskedTensor(1.0), xt.types.MaskedTensor(1.0) + total):
        assert isinstance(result, xt.types.MaskedTensor)
        assert result.to_py() == 7.0


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_an_error_with_four_parts(case):
    call, message = BAD[case]
    with pytest.raises(xt.ExtensorError, match=message) as info:
        call()
    assert isinstance(info.value, ValueError | TypeError | IndexError)
    assert info.value.__cause__ is None or case == "dates of xarray"


def test_a_value_of_a_damaged_model_can_be_shown():
    damaged = xt.types.LabeledTensor._of_parts(tf.zeros([1, 2]), ["recipe", "unit", "recipe"])
    assert repr(damaged) == "<LabeledTensor (recipe=1, unit=2, recipe=?) float32>"
