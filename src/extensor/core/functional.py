"""TensorFlow's functions that do not take extension values, under their own names.

Each does with plain tensors what TensorFlow's own does, and takes extension values besides.
Whatever is not here TensorFlow does itself.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import tensorflow as tf

from extensor._tf import (
    GRADIENT,
    BatchableTypeSpec,
    CompositeTensor,
    differentiable,
    with_differentiable,
)
from extensor.core.box import box, boxed_specs, unbox
from extensor.core.casting import cast_value, castable_type, described, not_castable, supertype
from extensor.core.component import does_not_stack
from extensor.core.spec import TypeSpec
from extensor.errors import ExtensorError, StructureError


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Applies a function over a sequence, and returns all the accumulated values.

    As `tf.scan`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the first element.
        parallel_iterations: As in `tf.scan`.
        swap_memory: As in `tf.scan`.
        infer_shape: As in `tf.scan`.
        reverse: Whether to begin with the last element.
        name: A prefix for the names of the ops.

    Returns:
        What `fn` returned for each element, stacked.

    Raises:
        StructureError: If `fn` returns what cannot be cast to the type of the accumulated value
            (also a ValueError).

    >>> @xt.extension_type
    ... class Account:
    ...     balance: tf.Tensor
    ...     entries: tf.Tensor
    >>> from extensor.core.functional import scan
    >>> days = Account([5.0, -2.0, 4.0], [1, 1, 2])
    >>> scan(lambda a, b: Account(a.balance + b.balance, a.entries + b.entries), days)
    Account(balance=<... numpy=array([5., 3., 7.], ...)>, entries=<... numpy=array([1, 2, 4], ...)>)
    """
    sequence = _Sequence(elems)
    first = sequence.element_spec
    if initializer is not None:
        first = _relaxed(_specs(initializer), first)

    def step(boxed: Any, boxes: Any) -> Any:
        result = fn(_unboxed(first, boxed), sequence.element(boxes))
        return _boxed(first, _accumulated(first, result))

    boxes = tf.scan(
        step,
        sequence.boxes,
        None if initializer is None else _boxed(first, initializer),
        parallel_iterations=parallel_iterations,
        swap_memory=swap_memory,
        infer_shape=infer_shape,
        reverse=reverse,
        name=name,
    )
    return _unboxed(tf.nest.map_structure(lambda spec: spec._batch(sequence.size), first), boxes)


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Applies a function over a sequence from its first element to its last.

    As `tf.foldl`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the first element.
        parallel_iterations: As in `tf.foldl`.
        swap_memory: As in `tf.foldl`.
        name: A prefix for the names of the ops.

    Returns:
        What `fn` returned last.

    Raises:
        StructureError: If `fn` returns a value of a type that the accumulated value does not meet
            (also a ValueError).

    >>> from extensor.core.functional import foldl
    >>> words = tf.ragged.constant([["to", "be"], ["or"]])
    >>> foldl(lambda text, row: tf.strings.join([text, tf.strings.reduce_join(row)]), words, "")
    <tf.Tensor: shape=(), dtype=string, numpy=b'tobeor'>
    """
    return _fold(tf.foldl, fn, elems, initializer, parallel_iterations, swap_memory, name)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Applies a function over a sequence from its last element to its first.

    As `tf.foldr`, for nests of tensors and of extension values that stack.

    Args:
        fn: Takes the accumulated value and an element; returns the next accumulated value.
        elems: A nest of tensors and extension values, unstacked along their first dimension.
        initializer: The first accumulated value. Default: the last element.
        parallel_iterations: As in `tf.foldr`.
        swap_memory: As in `tf.foldr`.
        name: A prefix for the names of the ops.

    Returns:
        What `fn` returned last.

    Raises:
        StructureError: If `fn` returns a value of a type that the accumulated value does not meet
            (also a ValueError).

    >>> from extensor.core.functional import foldr
    >>> words = tf.ragged.constant([["to", "be"], ["or"]])
    >>> foldr(lambda text, row: tf.strings.join([text, tf.strings.reduce_join(row)]), words, "")
    <tf.Tensor: shape=(), dtype=string, numpy=b'ortobe'>
    """
    return _fold(tf.foldr, fn, elems, initializer, parallel_iterations, swap_memory, name)


def _fold(
    fold: Callable[..., Any],
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any,
    parallel_iterations: int,
    swap_memory: bool,
    name: str | None,
) -> Any:
    sequence = _Sequence(elems)
    options: dict[str, Any] = {
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "name": name,
    }
    if initializer is not None:
        specs = _specs(initializer)
        # What is accumulated is a loop variable, which may be an extension value as it is, and of
        # another shape each time.
        return fold(
            lambda value, boxes: _accumulated(specs, fn(value, sequence.element(boxes)), True),
            sequence.boxes,
            initializer,
            **options,
        )

    def step(boxed: Any, boxes: Any) -> Any:
        result = fn(sequence.element(boxed), sequence.element(boxes))
        return _boxed(sequence.element_spec, _accumulated(sequence.element_spec, result))

    return sequence.element(fold(step, sequence.boxes, **options))


class _Sequence:
    """Values to be unstacked along their first dimension, as tensors that TensorFlow can unstack.

    Args:
        elems: A nest of tensors and extension values.
    """

    def __init__(self, elems: Any) -> None:
        elems = tf.nest.map_structure(_tensor_or_value, elems)
        specs = _specs(elems)
        for spec in tf.nest.flatten(specs):
            if not isinstance(spec, BatchableTypeSpec):
                raise does_not_stack(spec)
        self.element_spec = tf.nest.map_structure(lambda spec: spec._unbatch(), specs)
        self.boxes = _boxed(specs, elems, 1)
        self.size = tf.compat.dimension_value(self.boxes[0].shape[0]) if self.boxes else None

    def element(self, boxes: Any) -> Any:
        """Returns the element that its boxed tensors stand for."""
        return _unboxed(self.element_spec, boxes)


def _tensor_or_value(value: Any) -> Any:
    return value if isinstance(value, CompositeTensor) else tf.convert_to_tensor(value)


def _specs(values: Any) -> Any:
    return tf.nest.map_structure(
        lambda value: tf.type_spec_from_value(_tensor_or_value(value)), values
    )


def _boxed(specs: Any, values: Any, minimum_rank: int = 0) -> builtins.tuple[Any, ...]:
    boxes: list[Any] = []
    for spec, value in zip(tf.nest.flatten(specs), tf.nest.flatten(values), strict=True):
        boxes.extend(box(spec, _tensor_or_value(value), minimum_rank))
    return builtins.tuple(boxes)


def _unboxed(specs: Any, boxes: Any) -> Any:
    rest = list(boxes)
    values: list[Any] = []
    for spec in tf.nest.flatten(specs):
        count = len(boxed_specs(spec))
        values.append(unbox(spec, rest[:count]))
        del rest[:count]
    return tf.nest.pack_sequence_as(specs, values)


def _relaxed(specs: Any, others: Any) -> Any:
    """Returns specs that hold values of both nests, where those are of one type."""
    flat, other = tf.nest.flatten(specs), tf.nest.flatten(others)
    if len(flat) != len(other):
        return specs
    merged = [a.most_specific_common_supertype([b]) for a, b in zip(flat, other, strict=True)]
    # TensorFlow's own rule for tensors is that their shape stays as it is.
    kept = [
        a if b is None or isinstance(a, tf.TensorSpec) else b
        for a, b in zip(flat, merged, strict=True)
    ]
    return tf.nest.pack_sequence_as(specs, kept)


def _accumulated(specs: Any, result: Any, any_shape: bool = False) -> Any:
    """Returns what a step of a loop returned, as values of the accumulated value's type.

    Args:
        specs: The specs of the accumulated value.
        result: What was returned.
        any_shape: Whether a value of another shape is accumulated too, and where types meet.
    """
    tf.nest.assert_same_structure(specs, result)

    def accumulated(spec: Any, value: Any) -> Any:
        if isinstance(spec, tf.TensorSpec) and not isinstance(value, CompositeTensor):
            return value  # which TensorFlow converts
        value = _tensor_or_value(value)
        own = tf.type_spec_from_value(value)
        if any_shape:
            met = castable_type(spec, own)
            belongs = supertype(spec, own) is not None
        else:
            met, belongs = spec, spec.is_compatible_with(value)
        try:
            if met is not None:
                return value if belongs else cast_value(met, value)
        except ExtensorError:
            pass
        raise StructureError(
            path=type(value).__name__,
            expected=f"an accumulated value of {spec}",
            received=str(own),
            mend="fn must return values of the type that it gets: cast them, or give an "
            "initializer of the type that it returns.",
        )

    return tf.nest.map_structure(accumulated, specs, result)


def numpy_function(
    func: Callable[..., Any],
    inp: list[Any],
    Tout: Any,  # noqa: N803 - TensorFlow's own name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Wraps a Python function as an op, as `tf.numpy_function`, also for extension values.

    Args:
        func: Takes a NumPy array for each tensor, and for each extension value a value of its
            own type whose tensors are eager, so that `.numpy()` reads them. Returns what `Tout`
            says.
        inp: The arguments.
        Tout: A nest of dtypes and specs of what `func` returns; an extension type by its spec, to
            which what is returned is cast.
        stateful: As in `tf.numpy_function`.
        name: A name for the op.

    Returns:
        What `func` returned, as tensors and extension values. It has no gradient: with
        `tf.py_function`, which takes extension values as it is, it has.

    Raises:
        DTypeError: If `func` returns a value that cannot be cast to its spec in `Tout`: another
            class, dtype or static data, or None (also a TypeError). In a graph this and the next
            are an InvalidArgumentError when it runs.
        StructureError: If it returns another nest or another shape (also a ValueError).

    >>> from extensor.core.functional import numpy_function
    >>> ragged = tf.ragged.constant([[1, 2], [3]])
    >>> numpy_function(lambda rows: np.int32(len(rows.values)), [ragged], tf.int32)
    <tf.Tensor: shape=(), dtype=int32, numpy=3>
    """
    inp = [tf.nest.map_structure(_tensor_or_value, value) for value in inp]
    specs = tf.nest.map_structure(_output_spec, Tout)
    if not any(isinstance(x, (CompositeTensor, tf.TypeSpec)) for x in tf.nest.flatten([inp, Tout])):
        return tf.numpy_function(func, inp, Tout, stateful, name)
    arguments, leaves = _specs(inp), _flat_specs(specs)

    def on_arrays(*arrays: Any) -> list[Any]:
        rest = iter(arrays)

        def rebuilt(spec: Any) -> Any:
            if isinstance(spec, tf.TensorSpec):
                return next(rest)
            flat = [tf.constant(next(rest), leaf.dtype) for leaf in _flat_specs(spec)]
            return tf.nest.pack_sequence_as(spec, flat, expand_composites=True)

        results = func(*tf.nest.map_structure(rebuilt, arguments))
        return _flat_results(specs, results) if leaves else []

    flat = tf.numpy_function(
        on_arrays,
        tf.nest.flatten(inp, expand_composites=True),
        [leaf.dtype for leaf in leaves],
        stateful=stateful,
        name=name,
    )
    if not leaves:
        return flat
    flat = list(flat) if isinstance(flat, (list, builtins.tuple)) else [flat]
    for leaf, tensor in zip(leaves, flat, strict=True):
        tensor.set_shape(leaf.shape)
    return tf.nest.pack_sequence_as(specs, flat, expand_composites=True)


def _flat_results(specs: Any, results: Any) -> list[Any]:
    """Returns the tensors of what a function returned, which is what its specs say."""
    path = "numpy_function"
    listed = isinstance(specs, (list, builtins.tuple)) and len(cast("Any", specs)) == 1
    if listed and not isinstance(results, (list, builtins.tuple)):
        results = [results]
    try:
        tf.nest.assert_same_structure(specs, results, check_types=False)
    except (TypeError, ValueError) as error:
        raise StructureError(
            path=path,
            expected=f"a function that returns {specs}, as Tout says",
            received=f"{tf.nest.map_structure(described, results)}",
            mend="Return such a nest, or say in Tout what is returned.",
        ) from error
    values: list[Any] = []
    for spec, value in zip(tf.nest.flatten(specs), tf.nest.flatten(results), strict=True):
        if isinstance(spec, (tf.TensorSpec, tf.RaggedTensorSpec, TypeSpec)):
            values.append(cast_value(spec, value, path))
        elif spec.is_compatible_with(value):
            values.append(value)
        else:  # TensorFlow's own casts do not compare static data
            raise not_castable(spec, value, path)
    return tf.nest.flatten(values, expand_composites=True)


def _output_spec(output: Any) -> Any:
    return output if isinstance(output, tf.TypeSpec) else tf.TensorSpec(None, output)


def _flat_specs(specs: Any) -> list[Any]:
    return tf.nest.flatten(specs, expand_composites=True)


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that forgets what it computed and computes it again for its gradient.

    As `tf.recompute_grad`, for functions that take and return nests of tensors and extension
    values. Gradients flow through the floating point components of both.

    Args:
        f: The function.

    >>> from extensor.core.functional import recompute_grad
    >>> ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(ragged.values)
    ...     squares = recompute_grad(lambda x: x * x)(ragged)
    >>> tape.gradient(squares, ragged.values)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([2., 4., 6.], dtype=float32)>
    """

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        arguments = (args, kwargs)
        first: list[Any] = []

        def of_floats(*floats: Any) -> Any:
            args, kwargs = with_differentiable(arguments, iter(floats))
            result = tf.nest.map_structure(_tensor_or_value, f(*args, **kwargs))
            if not computed:
                # What has no gradient does not come through the gradient's machinery.
                first.append(result)
                computed.append(True)
            return builtins.tuple(differentiable(result))

        computed: list[bool] = []
        floats = tf.recompute_grad(of_floats)(*differentiable(arguments))
        return with_differentiable(first.pop(), iter(floats))

    return wrapped


def tuple_(tensors: Any, control_inputs: Any = None, name: str | None = None) -> Any:
    """Returns the values unchanged, none of them before all of them are computed.

    As `tf.tuple`, for lists of tensors and extension values.

    Args:
        tensors: A list of tensors and extension values.
        control_inputs: Further ops to wait for.
        name: A name for the op.

    >>> from extensor.core.functional import tuple_
    >>> tuple_([tf.ragged.constant([[1], []]), tf.constant(2)])
    [<tf.RaggedTensor [[1], []]>, <tf.Tensor: shape=(), dtype=int32, numpy=2>]
    """
    flat = tf.nest.flatten(tensors, expand_composites=True)
    flat = tf.tuple(flat, control_inputs=control_inputs, name=name)
    return tf.nest.pack_sequence_as(tensors, flat, expand_composites=True)


def print_(*inputs: Any, **kwargs: Any) -> Any:
    """Prints values, also in a graph: what they are when the graph runs.

    As `tf.print`, for nests of tensors and extension values. An extension value is shown by its
    components.

    Args:
        *inputs: What to print.
        **kwargs: As `tf.print` takes them.

    Returns:
        What `tf.print` returns.

    >>> from extensor.core.functional import print_
    >>> @xt.extension_type
    ... class Interval:
    ...     low: tf.Tensor
    ...     high: tf.Tensor
    ...     unit: str
    >>> print_("within", Interval(0, 1, "mm"))  # doctest: +SKIP
    within Interval(high=1, low=0)
    """
    if not any(map(_is_extension, tf.nest.flatten(inputs))):
        return tf.print(*inputs, **kwargs)
    tensors: list[Any] = []
    text = kwargs.pop("sep", " ").join(
        value if isinstance(value, str) else "".join(_template(value, tensors)) for value in inputs
    )
    line = tf.strings.format(text, tensors, _PLACEHOLDER, kwargs.pop("summarize", 3))
    return tf.print(line, **kwargs)


_PLACEHOLDER = "\N{OBJECT REPLACEMENT CHARACTER}"


def _is_extension(value: Any) -> bool:
    shown_by_tensorflow = (tf.RaggedTensor, tf.SparseTensor, tf.Variable)
    return isinstance(value, CompositeTensor) and not isinstance(value, shown_by_tensorflow)


def _template(value: Any, tensors: list[Any]) -> Iterator[str]:
    """Yields the text of a value, with a placeholder for each tensor, which it collects."""
    if isinstance(value, (tf.Tensor, tf.Variable, tf.RaggedTensor)):
        tensors.append(value)
        yield _PLACEHOLDER
    elif isinstance(value, CompositeTensor):
        spec = tf.type_spec_from_value(value)
        components = spec._to_components(value)
        names = _names(spec, components)
        yield f"{type(value).__name__}("
        for i, component in enumerate(tf.nest.flatten(components)):
            yield (", " if i else "") + (f"{names[i]}=" if names else "")
            yield from _template(component, tensors)
        yield ")"
    elif isinstance(value, Mapping):
        yield "{"
        for i, (key, item) in enumerate(cast("Mapping[Any, Any]", value).items()):
            yield f"{', ' if i else ''}{key!r}: "
            yield from _template(item, tensors)
        yield "}"
    elif isinstance(value, (list, builtins.tuple)):
        opening, closing = "[]" if isinstance(value, list) else "()"
        yield opening
        for i, item in enumerate(cast("list[Any]", value)):
            yield ", " if i else ""
            yield from _template(item, tensors)
        yield closing
    else:
        yield repr(value)


def _names(spec: Any, components: Any) -> list[str]:
    """Returns the names of flat components, as far as a spec tells them."""
    if isinstance(components, Mapping):
        return sorted(cast("Mapping[str, Any]", components))
    # The components of ragged records are no fields: their fields stand in one of them.
    is_record = hasattr(spec, "field_names") and getattr(spec, "record", spec) is spec
    names = sorted(spec.field_names()) if is_record else []
    return names if len(names) == len(tf.nest.flatten(components)) else []


class ForwardAccumulator(tf.autodiff.ForwardAccumulator):
    """Computes Jacobian-vector products forward, as `tf.autodiff.ForwardAccumulator`.

    Args:
        primals: A nest of tensors and extension values to watch.
        tangents: The vectors, of the same structure. Of an extension value only the floating point
            components count.

    >>> from extensor.core.functional import ForwardAccumulator
    >>> @xt.extension_type
    ... class Weighted:
    ...     value: tf.Tensor
    ...     count: tf.Tensor
    >>> at = Weighted([3.0], [1])
    >>> with ForwardAccumulator(at, Weighted([1.0], [0])) as accumulator:
    ...     square = xt.replace(at, value=at.value ** 2)
    >>> accumulator.jvp(square).value
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([6.], dtype=float32)>
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        tf.nest.assert_same_structure(primals, tangents)
        super().__init__(differentiable(primals), differentiable(tangents))

    def jvp(self, primals: Any, unconnected_gradients: Any = tf.UnconnectedGradients.NONE) -> Any:
        """Returns the Jacobian-vector products of values that were computed.

        Args:
            primals: A nest of tensors and extension values.
            unconnected_gradients: As in `tf.autodiff.ForwardAccumulator`.

        Returns:
            A nest of the same structure, with None for what does not depend on what is watched.
            An extension value keeps the components that have no gradient.
        """

        def product(value: Any) -> Any:
            found = super(ForwardAccumulator, self).jvp(
                differentiable(value), unconnected_gradients
            )
            return GRADIENT.replace_gradient_components(value, found) if found else None

        return tf.nest.map_structure(product, primals)
