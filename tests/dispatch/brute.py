"""Finds the kinds of an operation by calling it with changed arguments.

Every definition works on the sample call of an operation: its first tensor argument is replaced by
others of the same shape and dtype, and the results are compared.
"""

import numpy as np
import tensorflow as tf

from tests.dispatch.samples import arguments

_RANDOM = np.random.default_rng(11)


def call(operation, given):
    """The result of an operation, with the same random numbers on every call."""
    tf.random.set_seed(5)
    if operation.public.variadic:
        given = dict(given)
        rest = given.pop(operation.public.parameters[-1], ())
        return operation.public.function(*given.values(), *rest)
    return operation.public.function(**given)


def _parts(result):
    """The tensors of a result, or None if it holds something else."""
    parts = result if isinstance(result, list | tuple) else [result]
    return parts if parts and all(isinstance(part, tf.Tensor) for part in parts) else None


def _same(one, other, exactly=False):
    """Returns whether two tensors are equal, up to rounding of vectorized arithmetic."""
    one, other = np.asarray(one), np.asarray(other)
    if "S" in (one.dtype.kind, other.dtype.kind):  # of one text
        one, other = one.astype(object), other.astype(object)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind in "fc" and not exactly:
        return np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True)
    return np.array_equal(one, other)


def _all_same(one, other):
    one, other = _parts(one), _parts(other)
    return len(one) == len(other) and all(map(_same, one, other))


class Definition:
    """Definitions of kinds for one operation: methods that return whether it is of the kind."""

    def __init__(self, operation):
        self.operation = operation
        self.given = arguments(operation)
        self.parameters = [p for p in operation.tensors if p in self.given]
        self.result = call(operation, self.given)
        self._is_elementwise = {}  # by the number of arguments, because several kinds need it
        self._is_reduction = None

    def _call(self, /, **changed):
        return call(self.operation, {**self.given, **changed})

    def _fails(self, /, **changed):
        try:
            self._call(**changed)
        except Exception:
            return True
        return False

    def _first(self, count):
        """The first tensor arguments as arrays, or None if they are not so many single tensors."""
        if len(self.parameters) < count:
            return None
        values = [self.given[p] for p in self.parameters[:count]]
        if list(self.operation.tensors)[:count] != self.parameters[:count]:
            return None
        if not all(isinstance(value, tf.Tensor) for value in values):
            return None
        return [np.asarray(value) for value in values]

    def _elementwise(self, count):
        if count not in self._is_elementwise:
            self._is_elementwise[count] = self._find_elementwise(count)
        return self._is_elementwise[count]

    def _find_elementwise(self, count):
        arrays = self._first(count)
        if arrays is None or not isinstance(self.result, tf.Tensor) or arrays[-1].size < 2:
            return False
        try:
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            return False
        if self.result.shape != shape:
            return False
        results = np.asarray(self.result)
        places = list(np.ndindex(shape))
        for i in _RANDOM.permutation(len(places))[:6]:
            place = places[i]
            # If all elements were equal to those of this place, all results would equal this one.
            filled = {}
            for parameter, array in zip(self.parameters, arrays, strict=False):
                one = np.broadcast_to(array, shape)[place]
                filled[parameter] = tf.constant(np.full(array.shape, one), array_type(array))
            try:
                result = np.asarray(self._call(**filled))
            except Exception:
                return False
            exactly = self.operation.name == "math.nextafter"  # it changes the last bit alone
            if not _same(result, np.full(shape, results[place], results.dtype), exactly):
                return False
        return True

    def unary_elementwise(self):
        """Each element of the result comes from one element of the first argument alone."""
        return self._elementwise(1)

    def binary_elementwise(self):
        """Each comes from the corresponding elements of the first two, and from both."""
        return self._elementwise(2)

    def comparison(self):
        """A binary elementwise operation from numbers to bools."""
        return self.result is not None and (
            self.binary_elementwise()
            and self.result.dtype == tf.bool
            and self._first(2)[0].dtype != bool
        )

    def logical(self):
        """An elementwise operation on bools that takes nothing else."""
        if not (self.unary_elementwise() or self.binary_elementwise()):
            return False
        first = self._first(1)[0]
        if first.dtype != bool or self.result.dtype != tf.bool:
            return False
        numbers = {p: tf.cast(self.given[p], tf.float32) for p in self.parameters}
        return self._fails(**numbers)

    def reduction(self):
        """Along `axis` one value remains, and it comes from the values along `axis` alone."""
        if self._is_reduction is None:
            self._is_reduction = self._find_reduction()
        return self._is_reduction

    def _find_reduction(self):
        names = self.operation.public.parameters
        arrays = self._first(1)
        if arrays is None or "axis" not in names:
            return False
        array = _RANDOM.permutation(np.resize(arrays[0].ravel(), 24)).reshape(2, 3, 4)
        name = self.parameters[0]
        for axis in range(3):
            try:
                result = self._call(**{name: tf.constant(array), "axis": axis})
            except Exception:
                return False
            if not isinstance(result, tf.Tensor):
                return False
            lines = np.moveaxis(array, axis, -1)
            if result.shape != lines.shape[:-1]:
                return False
            for place in np.ndindex(*lines.shape[:-1]):
                try:
                    alone = self._call(**{name: tf.constant(lines[place]), "axis": 0})
                except Exception:
                    return False
                if not _same(alone, np.asarray(result)[place]):
                    return False
        return True

    def unit_keeping_reduction(self):
        """A reduction of numbers three times as large is three times as large."""
        if not self.reduction():
            return False
        [numbers] = self._first(1)
        if numbers.dtype.kind != "f":
            return False
        # NumPy 1 makes float64 of 3 times a float32 without dimensions.
        three = np.asarray(3, numbers.dtype)
        larger = self._call(**{self.parameters[0]: tf.constant(three * numbers)})
        return larger.dtype == self.result.dtype and _same(larger, three * np.asarray(self.result))

    def shape_only(self):
        """The result does not depend on the elements of the first argument."""
        if not self.parameters or next(iter(self.operation.tensors)) != self.parameters[0]:
            return False
        name = self.parameters[0]
        value = self.given[name]
        many = isinstance(value, list | tuple)
        values = list(value) if many else [value]
        if not all(isinstance(one, tf.Tensor) for one in values) or _parts(self.result) is None:
            return False
        for fill in (0, 1, 2, 3, None, None):  # among the floats are NaN and infinity
            others = [_other(one, fill) for one in values]
            try:
                result = self._call(**{name: others if many else others[0]})
            except Exception:
                return False
            if not _all_same(result, self.result):
                return False
        return True

    def _natural(self, value):
        """Returns whether elements of the first argument are moved without change.

        Then replacing elements before the operation or after it gives the same result.
        """
        name = self.parameters[0]
        many = isinstance(value, list | tuple)
        arrays = [np.asarray(one) for one in (value if many else [value])]
        palette = _palette(arrays[0].dtype, sum(a.size for a in arrays))
        if palette is None:
            return False
        order = np.roll(np.arange(len(palette)), 1 + len(palette) // 3)  # all change places
        before, after, start = [], [], 0
        for array in arrays:
            places = np.arange(start, start + array.size).reshape(array.shape)
            start += array.size
            before.append(tf.constant(palette[places]))
            after.append(tf.constant(palette[order][places]))
        try:
            first = self._call(**{name: before if many else before[0]})
            second = self._call(**{name: after if many else after[0]})
        except Exception:
            return False
        if isinstance(first, tf.RaggedTensor) and isinstance(second, tf.RaggedTensor):
            first, second = first.flat_values, second.flat_values
        first, second = _parts(first), _parts(second)
        if first is None or second is None or len(first) != len(second):
            return False
        exchanged = dict(zip(palette.tolist(), palette[order].tolist(), strict=True))
        for one, other in zip(first, second, strict=True):
            if one.dtype != before[0].dtype or one.shape != other.shape:
                return False
            found = np.asarray(one).ravel().tolist()
            if not all(element in exchanged for element in found):
                return False
            if [exchanged[element] for element in found] != np.asarray(other).ravel().tolist():
                return False
        moved = len(first) != len(before) or any(
            a.shape != b.shape or not _same(a, b) for a, b in zip(first, before, strict=True)
        )
        return moved

    def rearranging(self):
        """Elements of the first argument are moved, left out or repeated, and not changed."""
        return self._first(1) is not None and self._natural(self.given[self.parameters[0]])

    def stacking(self):
        """The elements of a sequence of tensors are joined in one tensor, and not changed."""
        if not self.parameters or next(iter(self.operation.tensors)) != self.parameters[0]:
            return False
        value = self.given[self.parameters[0]]
        if not isinstance(value, list) or not isinstance(self.result, tf.Tensor | tf.RaggedTensor):
            return False
        return all(isinstance(one, tf.Tensor) for one in value) and self._natural(value)

    def assertion(self):
        """The operation returns None."""
        return self.result is None


def array_type(array):
    return tf.string if array.dtype == object else array.dtype


def _other(tensor, fill):
    """Returns a tensor of the same shape and dtype: of random values, or of one value by number."""
    array = np.asarray(tensor)
    if array.dtype == object:
        pool = np.array([b"", b"7", b"rye", b"a b"], object)
    elif array.dtype == bool:
        pool = np.array([False, True])
    elif array.dtype.kind in "fc":
        pool = np.array([0.0, -1.0, np.nan, np.inf, 0.5, 2.0, 7.25]).astype(array.dtype)
    else:
        pool = np.arange(9).astype(array.dtype)
    chosen = (
        _RANDOM.choice(pool, array.shape)
        if fill is None
        else np.full(array.shape, pool[fill % len(pool)])
    )
    return tf.constant(chosen, array_type(array))


def _palette(dtype, size):
    """Returns different values of a dtype; None if it has too few, or for a size below 2."""
    if size < 2:
        return None
    if dtype.kind == "O":
        return np.array([f"word {i}".encode() for i in range(size)], object)
    if dtype.kind == "c":
        return (np.arange(size) + 1j * (1 + np.arange(size)) ** 2).astype(dtype)
    if dtype.kind == "f" or (dtype.kind in "iu" and size < np.iinfo(dtype).max):
        return np.arange(1, size + 1).astype(dtype)
    return None
