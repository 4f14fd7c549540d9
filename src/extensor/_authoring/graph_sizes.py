"""Which sizes of the tensors of a graph are equal in every run, found from its ops.

TensorFlow says None for each size that is not known while a function is traced. Whether two of them
are one size follows from the ops: `x * 2 + y` has as many rows as `x`, if `y` has as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Size = int | tuple[int, int, int]
"""A number; or the size of an axis of a tensor, which is given by its id, plus a number."""

_STEPS = 100
"""How many ops are followed one after another."""

_ALIKE = frozenset(
    """Abs Acos Acosh AddN Asin Asinh AsString Atan Atanh BiasAdd Cast Ceil CheckNumerics
    ClipByValue Cos Cosh Cumprod Cumsum DebugIdentityV3 Digamma Elu EnsureShape Erf Erfc Erfinv Exp
    Expm1 Floor Identity Inv Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p LogSoftmax
    LogicalNot Neg OnesLike PreventGradient Reciprocal RegexReplace Relu Relu6 ReverseV2 Rint Round
    Rsqrt Selu Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Square StaticRegexFullMatch
    StaticRegexReplace StopGradient StringLength StringLower StringStrip StringToHashBucket
    StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper Tan Tanh
    ZerosLike""".split()
)
"""Ops whose result has the shape of their first input."""

_BROADCAST = frozenset(
    """Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv FloorMod Greater
    GreaterEqual LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan
    NotEqual Pow RealDiv RightShift SelectV2 SquaredDifference Sub TruncateDiv TruncateMod Xdivy
    Xlog1py Xlogy""".split()
)
"""Ops whose inputs are broadcast to one shape, which is that of the result."""

_REDUCTIONS = frozenset("All Any EuclideanNorm Max Mean Min Prod Sum".split())

_OF_SHAPE = {
    "BroadcastTo": 1, "Fill": 0, "RandomStandardNormal": 0, "RandomUniform": 0,
    "RandomUniformInt": 0, "Reshape": 1, "StatelessRandomNormalV2": 0,
    "StatelessRandomUniformIntV2": 0, "StatelessRandomUniformV2": 0, "TruncatedNormal": 0,
}  # fmt: skip
"""Ops whose result has the shape that an input holds: the number of this input."""

_SEGMENTS = frozenset(
    "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum".split()
)


class GraphSizes:
    """The sizes of tensors of a graph, compared without running an op.

    >>> import tensorflow as tf
    >>> from extensor._authoring.graph_sizes import GraphSizes
    >>> @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    ... def compare(x, y):
    ...     sizes = GraphSizes()
    ...     of_x = sizes.size(x, 0)
    ...     print(sizes.size(tf.exp(x) * 2, 0) == of_x, sizes.size(y, 0) == of_x)
    >>> _ = compare.get_concrete_function()
    True False
    """

    def __init__(self) -> None:
        self._learned: dict[tuple[int, int], Size] = {}
        self._followed: dict[tuple[int, int], Size] = {}
        self._values: dict[int, set[Size]] = {}  # how many values row splits cut, by their id
        self._outer: dict[int, dict[int, Any]] = {}
        self._steps = 0
        self._alive: list[Any] = []  # an id is that of one tensor as long as the tensor lives

    def learn(self, tensor: tf.Tensor, axis: int, size: Size) -> None:
        """Stores that an axis of a tensor has a size."""
        key, size = (id(tensor), axis), self._resolve(size)
        if key not in self._learned and size != (*key, 0):
            self._alive.append(tensor)
            self._learned[key] = size

    def learn_rows(self, row_splits: tf.Tensor, counts: set[Size]) -> None:
        """Stores that row splits cut as many values."""
        self._values.setdefault(id(self.source(row_splits)), set()).update(counts)

    def cuts(self, row_splits: tf.Tensor, counts: set[Size]) -> bool:
        """Returns whether row splits are known to cut as many values."""
        known = self._values.get(id(self.source(row_splits)), set())
        return bool({self._resolve(size) for size in known} & counts)

    def forget(self) -> None:
        """Forgets the sizes that were found from ops, so that they are found with new knowledge."""
        self._followed.clear()

    def size(self, tensor: tf.Tensor, axis: int) -> Size:
        """Returns the size of an axis of a tensor. Equal results are equal sizes."""
        key = id(tensor), axis
        size = self._learned.get(key, self._followed.get(key))
        if size is None:
            size = tensor.shape[axis] if tensor.shape.rank is not None else None
        if size is None:
            if self._steps < _STEPS:
                self._steps += 1
                size = self._follow(tensor, axis)
                self._steps -= 1
            size = (*key, 0) if size is None else size
            self._alive.append(tensor)
            self._followed[key] = size
        return self._resolve(size)

    def _resolve(self, size: Size) -> Size:
        while not isinstance(size, int) and size[:2] in self._learned:
            size = plus(self._learned[size[:2]], size[2])
        return size

    def source(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns the tensor that another one is equal to: before it was captured or copied."""
        while not hasattr(tensor, "numpy"):
            captured = self._outer_tensor(tensor)
            if captured is not None:
                tensor = captured
            elif tensor.op.type == "Identity":
                tensor = tensor.op.inputs[0]
            else:
                break
        return tensor

    def _outer_tensor(self, tensor: tf.Tensor) -> tf.Tensor | None:
        """Returns the tensor outside of a function that a tensor inside stands for, or None."""
        if tensor.op.type != "Placeholder":
            return None
        graph = tensor.graph
        captures = getattr(graph, "captures", ())
        outer = self._outer.get(id(graph))
        if outer is None or len(outer) != len(captures):
            self._alive.append(graph)
            outer = self._outer[id(graph)] = {id(inner): value for value, inner in captures}
        return outer.get(id(tensor))

    def _follow(self, tensor: tf.Tensor, axis: int) -> Size | None:
        """Returns the size of an axis by the op that makes a tensor; None if it does not say."""
        captured = self._outer_tensor(tensor)
        if captured is not None:
            return self.size(captured, axis)
        op, rank = tensor.op, tensor.shape.rank
        kind, inputs = op.type, op.inputs
        if kind in _ALIKE:
            return self.size(inputs[0], axis)
        if rank is None:
            return None
        if kind in _BROADCAST:
            return self._broadcast(inputs, axis, rank)
        if kind in _OF_SHAPE:
            return self._element(inputs[_OF_SHAPE[kind]], axis)
        if kind in _REDUCTIONS:
            return self._reduce(op, axis)
        if kind in _SEGMENTS and axis == 0:
            return self.number(inputs[2])
        if kind == "LookupTableFindV2" and axis < (inputs[1].shape.rank or 0):
            return self.size(inputs[1], axis)
        if kind == "MatMul" and axis == 0 and not op.get_attr("transpose_a"):
            return self.size(inputs[0], 0)
        if kind in ("GatherV2", "ResourceGather"):
            return self._gather(op, axis)
        if kind == "ConcatV2":
            along = constant(inputs[-1])
            if along is None or _number(along) % rank == axis:
                return None
            return self.size(inputs[0], axis)
        if kind in ("Pack", "ExpandDims"):
            new = op.get_attr("axis") if kind == "Pack" else constant(inputs[1])
            added = None if new is None else _number(new) % rank
            return None if added in (None, axis) else self.size(inputs[0], axis - (axis > added))
        if kind == "StridedSlice":
            return self._slice(op, axis)
        if kind == "Range":
            start, delta = constant(inputs[0]), constant(inputs[2])
            return self.number(inputs[1]) if (start, delta) == (0, 1) else None
        return None

    def _broadcast(self, inputs: Sequence[Any], axis: int, rank: int) -> Size | None:
        found: set[Size] = set()
        for value in inputs:
            if value.shape.rank is None:
                return None
            own = axis - rank + value.shape.rank
            size = 1 if own < 0 else self.size(value, own)
            if size != 1:
                found.add(size)
        return found.pop() if len(found) == 1 else None

    def _reduce(self, op: tf.Operation, axis: int) -> Size | None:
        value, rank, axes = op.inputs[0], op.inputs[0].shape.rank, constant(op.inputs[1])
        if axes is None or rank is None:
            return None
        gone = {int(each) % rank for each in axes.reshape([-1])}
        if op.get_attr("keep_dims"):
            return None if axis in gone else self.size(value, axis)
        return self.size(value, [each for each in range(rank) if each not in gone][axis])

    def _gather(self, op: tf.Operation, axis: int) -> Size | None:
        values, indices = op.inputs[:2]
        along = 0 if op.type == "ResourceGather" else constant(op.inputs[2])
        if along is None or along < 0 or op.get_attr("batch_dims") or indices.shape.rank is None:
            return None
        if axis < along:
            return self.size(values, axis)
        inner = axis - int(along)
        return self.size(indices, inner) if inner < indices.shape.rank else None

    def _slice(self, op: tf.Operation, axis: int) -> Size | None:
        value, begin, end, strides = op.inputs[0], *map(constant, op.inputs[1:4])
        if begin is None or end is None or strides is None or value.shape.rank is None:
            return None
        masks = {
            name: op.get_attr(f"{name}_mask")
            for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        }

        def has(name: str, place: int) -> bool:
            return bool(masks[name] >> place & 1)

        result = own = 0  # the axes of the result, and of the value
        for i in range(len(begin)):
            if has("ellipsis", i):
                others = sum(j != i and not has("new_axis", j) for j in range(len(begin)))
                skipped = value.shape.rank - others
                if axis < result + skipped:
                    return self.size(value, own + axis - result)
                result, own = result + skipped, own + skipped
            elif has("new_axis", i):
                if result == axis:
                    return 1
                result += 1
            elif has("shrink_axis", i):
                own += 1
            elif result == axis:
                first = 0 if has("begin", i) else int(begin[i])
                last = 0 if has("end", i) else int(end[i])
                if first == last == 0 and has("end", i) and abs(strides[i]) == 1:
                    return self.size(value, own)
                if first < 0 or last > 0 or not (has("end", i) or last) or strides[i] != 1:
                    return None
                return plus(self.size(value, own), last - first)
            else:
                result, own = result + 1, own + 1
        return self.size(value, own + axis - result)

    def number(self, tensor: tf.Tensor) -> Size | None:
        """Returns the number that a scalar tensor holds, if it is a size."""
        known = constant(tensor)
        if known is not None:
            return int(known)
        op = tensor.op
        if op.type in ("Identity", "Cast"):
            return self.number(op.inputs[0])
        if op.type == "Sub":
            less, size = constant(op.inputs[1]), self.number(op.inputs[0])
            return None if less is None or less < 0 or size is None else plus(size, -int(less))
        if op.type == "Size" and op.inputs[0].shape.rank == 1:
            return self.size(op.inputs[0], 0)
        if op.type == "StridedSlice" and op.inputs[0].shape.rank == 1 and tensor.shape.rank == 0:
            place = constant(op.inputs[1])
            return None if place is None else self._element(op.inputs[0], int(place[0]))
        return None

    def _element(self, vector: tf.Tensor, place: int) -> Size | None:
        """Returns the number at a place of a vector, if it is a size."""
        known = constant(vector)
        count = vector.shape[0] if vector.shape.rank == 1 else None
        if known is not None:
            number = int(known[place])
            return None if number < 0 else number
        if count is None or hasattr(vector, "numpy"):
            return None
        op, place = vector.op, place % count
        if op.type == "Shape":
            return self.size(op.inputs[0], place)
        if op.type in ("Identity", "Cast"):
            return self._element(op.inputs[0], place)
        if op.type == "Pack":
            return self.number(op.inputs[place])
        if op.type == "GatherV2" and op.inputs[0].shape.rank == 1:
            chosen = constant(op.inputs[1])
            return None if chosen is None else self._element(op.inputs[0], int(chosen[place]))
        if op.type == "StridedSlice" and not op.get_attr("ellipsis_mask"):
            begin, stride = constant(op.inputs[1]), constant(op.inputs[3])
            if begin is None or stride is None or len(begin) != 1 or stride[0] != 1:
                return None
            first = 0 if op.get_attr("begin_mask") else int(begin[0])
            return self._element(op.inputs[0], first + place) if first >= 0 else None
        if op.type == "ConcatV2":
            for part in op.inputs[:-1]:
                length = part.shape[0]
                if length is None:
                    return None
                if place < length:
                    return self._element(part, place)
                place -= length
        return None


def constant(tensor: tf.Tensor) -> np.ndarray[Any, Any] | None:
    """Returns the value of a tensor that is the same in every run, as an array; else None."""
    return tf.get_static_value(tensor)


def _number(value: int | np.ndarray[Any, Any]) -> int:
    return int(value if isinstance(value, int) else value.reshape([-1])[0])


def plus(size: Size, number: int) -> Size:
    """Returns a size plus a number.

    A slice of too few items has none, not a negative number. The ops that are followed only make
    sizes less, so two sizes that are equal here are equal then too.
    """
    if isinstance(size, int):
        return max(size + number, 0)
    return (*size[:2], size[2] + number)
