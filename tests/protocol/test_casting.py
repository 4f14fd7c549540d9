"""Casts of values to other types, and the common type of two specs."""

import pickle

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import extensor as xt
from extensor._patches import _tf_branches, _tf_loops, common_type
from extensor._protocol.casting import cast_value, castable_type
from extensor.errors import DTypeError, FieldError, StructureError
from tests.samples.types import MaskedTensor as PlainMasked
from tests.samples.types import MaskedTensorSpec as PlainMaskedSpec

Dense, Ragged = xt.DenseStructuredTensor, xt.RaggedStructuredTensor
DenseSpec, RaggedSpec = xt.DenseStructuredTensorSpec, xt.RaggedStructuredTensorSpec
T, R = tf.TensorSpec, tf.RaggedTensorSpec


class Masked:
    """A masked tensor to which dense tensors are cast."""

    def __init__(self, values, mask):
        self.values, self.mask = values, mask

    def __tf_type_spec__(self):
        return MaskedSpec(self.values.shape, self.values.dtype)


class MaskedSpec(xt.StackableTypeSpec):
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tf.TensorShape(shape), tf.dtypes.as_dtype(dtype)

    value_type = Masked

    @property
    def component_specs(self):
        return {"values": T(self.shape, self.dtype), "mask": T(self.shape, tf.bool)}

    def to_components(self, value):
        return {"values": value.values, "mask": value.mask}

    def from_components(self, components):
        return Masked(**components)

    def serialize(self):
        return self.shape, self.dtype

    def cast(self, value):
        if isinstance(value, tf.Tensor):
            value = Masked(value, tf.ones_like(value, tf.bool))
        return super().cast(value)

    def castable_type(self, spec):
        if isinstance(spec, tf.TensorSpec) and spec.dtype == self.dtype:
            shape = self.shape.most_specific_compatible_shape(spec.shape)
            return MaskedSpec(shape, self.dtype)
        return super().castable_type(spec)


def plain(value):
    """Returns a value as Python data."""
    if isinstance(value, Masked):
        return [plain(value.values), plain(value.mask)]
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    return value.to_py() if isinstance(value, xt.StructuredTensor) else value.numpy().tolist()


STEPS = Dense([4], {"minutes": [5, 20, 8, 1], "tool": ["bowl", "", "oven", "pan"]})
ROWS = Ragged.from_row_splits(STEPS, [0, 1, 4])
SQUARE = Dense([2, 2], {"minutes": [[1, 2], [3, 4]], "tool": tf.constant([["a", "b"], ["c", ""]])})
TABLE = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
LISTS = tf.ragged.constant([[7.0], [8.0, 9.0], []])

PAIRS = {
    "tensors": (TABLE, LISTS),
    "records": (SQUARE, ROWS),
    "masked": (tf.constant([1.0, 2.0]), Masked(tf.constant([3.0]), tf.constant([False]))),
    "a field": (
        Dense([2], {"x": [[1.0, 2.0], [3.0, 4.0]]}),
        Dense([3], {"x": tf.ragged.constant([[1.0], [], [2.0]])}),
    ),
    "row splits": (LISTS, tf.ragged.constant([[1.0]], row_splits_dtype=tf.int32)),
    "ragged ranks": (
        tf.ragged.constant([[[1.0, 2.0]], []], ragged_rank=1, inner_shape=(2,)),
        tf.ragged.constant([[[3.0], []]], ragged_rank=2),
    ),
}


@pytest.fixture(params=PAIRS)
def pair(request):
    return PAIRS[request.param]


# The common type of two specs, in both orders, and casts of values to it.


def test_both_values_of_a_pair_are_cast_to_their_common_type(pair):
    specs = [tf.type_spec_from_value(value) for value in pair]
    assert specs[0].most_specific_common_supertype([specs[1]]) is None
    met = castable_type(*specs)
    assert met == castable_type(*reversed(specs))
    for value in pair:
        cast = cast_value(met, value)
        assert tf.type_spec_from_value(cast).is_subtype_of(met)
        if not isinstance(cast, Masked):
            assert plain(cast) == plain(value)
        assert cast_value(met, cast) is cast


RECORD = {"n": T([None], tf.int32), "words": R([None, None], tf.string), "pair": T([None, 2])}
WITH_MASK = {**RECORD, "mask": PlainMaskedSpec([None, 3], tf.int32)}


@pytest.mark.parametrize("fields", [RECORD, WITH_MASK, {}], ids=["tensors", "types", "none"])
@given(st.data())
def test_dense_records_become_ragged_and_dense_again(fields, data):
    spec = DenseSpec([None], fields).stacked(None)
    records = data.draw(xt.testing.values_of(spec))
    ragged_spec = RaggedSpec([None, None], DenseSpec([None], fields))
    assert spec.castable_type(ragged_spec) == ragged_spec.castable_type(spec) == ragged_spec
    ragged = ragged_spec.cast(records)
    assert isinstance(ragged, Ragged)
    assert ragged.__tf_type_spec__().is_subtype_of(ragged_spec)
    own = records.__tf_type_spec__()
    again = own.cast(ragged)
    assert again.__tf_type_spec__().is_subtype_of(own)
    for a, b in zip(
        tf.nest.flatten(records, expand_composites=True),
        tf.nest.flatten(again, expand_composites=True),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_a_row_of_a_ragged_tensor_is_a_tensor():
    scalar = R([None, None], tf.int32, ragged_rank=1)._unbatch()._unbatch()
    assert (scalar.shape.rank, scalar.ragged_rank) == (0, -1)
    assert cast_value(scalar, 3).numpy() == 3
    assert cast_value(scalar, tf.constant(3)).dtype == tf.int32
    with pytest.raises(StructureError):
        cast_value(scalar, [3])


def test_all_dimensions_of_records_are_cast():
    box = Dense([2, 1, 2], {"x": [[[1, 2]], [[3, 4]]]})
    rows = RaggedSpec([None, None], DenseSpec([None], {"x": T([None], tf.int32)}))
    deep = RaggedSpec([None, None, None], rows)
    assert deep.cast(box).to_py() == box.to_py()
    assert box.__tf_type_spec__().cast(deep.cast(box)).to_py() == box.to_py()


def test_a_row_of_ragged_records_is_one_of_dense_records_too():
    row = ROWS.__tf_type_spec__().unstacked()
    dense = DenseSpec([None], dict(STEPS.__tf_type_spec__().field_specs))
    assert row.castable_type(dense) == dense.castable_type(row) == row
    cast = row.cast(STEPS)
    assert cast.__tf_type_spec__().is_subtype_of(row)
    assert dense.cast(cast).__tf_type_spec__().is_subtype_of(dense)
    assert dense.cast(cast).to_py() == STEPS.to_py()


def test_row_splits_of_records_take_one_dtype_throughout():
    words = tf.ragged.constant([["a"], []], dtype=tf.string)
    short = tf.ragged.constant([["a"], []], dtype=tf.string, row_splits_dtype=tf.int32)
    a = Ragged.from_row_splits(Dense([2], {"w": words}), tf.constant([0, 2], tf.int64))
    b = Ragged.from_row_splits(Dense([2], {"w": short}), tf.constant([0, 2], tf.int32))
    met = castable_type(a.__tf_type_spec__(), b.__tf_type_spec__())
    for value in (a, b):
        cast = met.cast(value)
        assert cast["w"].row_splits.dtype == cast["w"].values.row_splits.dtype == tf.int64
        assert cast.to_py() == value.to_py()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (T([2], tf.int32), R([2, None], tf.int32)),
        (T([2, 2], tf.int32), R([2, None], tf.float32)),
        (T([2], tf.int32), T([2], tf.float32)),
        (T([2]), tf.SparseTensorSpec([2])),
        (SQUARE.__tf_type_spec__(), STEPS.__tf_type_spec__()),
        (SQUARE.without("tool").__tf_type_spec__(), ROWS.__tf_type_spec__()),
        (SQUARE.__tf_type_spec__(), T([2, 2], tf.int32)),
        (PlainMaskedSpec([2], tf.int32), MaskedSpec([2], tf.int32)),
        (MaskedSpec([2], tf.int32), T([2], tf.float32)),
        (PlainMaskedSpec([2], tf.int32), PlainMaskedSpec([2], tf.float32)),
    ],
)
def test_types_that_are_not_related_have_no_common_type(a, b):
    assert castable_type(a, b) is None
    assert castable_type(b, a) is None


def test_a_ragged_tensor_whose_rows_have_one_length_becomes_a_dense_one():
    rows = tf.ragged.constant([[1, 2], [3, 4]])
    spec = T([None, 2], tf.int32)
    assert cast_value(spec, rows).numpy().tolist() == [[1, 2], [3, 4]]
    function = tf.function(lambda x: cast_value(spec, x))
    assert function(rows).shape == [2, 2]
    with pytest.raises(StructureError, match="rows of different lengths"):
        cast_value(spec, tf.ragged.constant([[1, 2, 3], [4]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows of the same length"):
        function(tf.ragged.constant([[1, 2, 3], [4]]))
    even = R([2, 2], tf.int32, 1)
    assert cast_value(even, rows).shape == [2, 2]
    one_and_three = tf.ragged.constant([[1], [2, 3, 4]])
    with pytest.raises(
        StructureError, match="rows of length 2 in dimension 1, got rows of another"
    ):
        cast_value(even, one_and_three)
    checked = tf.function(lambda x: cast_value(even, x), input_signature=[R([None, None], "int32")])
    assert checked(rows).shape == [2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows of length 2 in dimension 1"):
        checked(one_and_three)
    with pytest.raises(StructureError):  # as many numbers as room, but not so laid out
        cast_value(T([None, None, 0]), tf.RaggedTensor.from_row_lengths(tf.zeros([3, 0]), [1, 2]))


def test_ragged_records_whose_rows_differ_do_not_become_dense():
    spec = DenseSpec([None, None], {"x": T([None, None], tf.int32)})
    rows = Ragged.from_row_splits(Dense([3], {"x": [1, 2, 3]}), [0, 1, 3])
    even = Ragged.from_row_splits(Dense([4], {"x": [1, 2, 3, 4]}), [0, 2, 4])
    with pytest.raises(StructureError, match="rows of one length"):
        spec.cast(rows)
    signature = RaggedSpec([None, None], DenseSpec([None], {"x": T([None], tf.int32)}))
    function = tf.function(spec.cast, input_signature=[signature])
    assert function(even).to_py() == even.to_py()
    assert function(even[:0]).to_py() == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows of one length"):
        function(rows)
    wide = DenseSpec([None, 3], {"x": T([None, 3], tf.int32)})
    with pytest.raises(StructureError, match="rows of 3 records"):
        wide.cast(even)


# Casts of Python values.


@xt.extension_type
class Dish:
    amounts: tf.Tensor
    tags: tf.RaggedTensor
    unit: str = "gram"


DISH = Dish.Spec(T([None]), R([None, None], tf.string), "gram")


def test_a_spec_casts_a_nest_of_python_values_of_its_components():
    dish = DISH.cast({"amounts": [1, 2], "tags": [["a", "b"], []]})
    assert type(dish) is Dish
    assert dish.amounts.dtype == tf.float32
    assert dish.tags.to_list() == [[b"a", b"b"], []]
    assert dish.unit == "gram"
    masked = PlainMaskedSpec([2], tf.int32).cast((np.array([1, 2]), [True, False]))
    assert masked.values.numpy().tolist() == [1, 2]
    double = tf.function(lambda m: m.values * 2, input_signature=[PlainMaskedSpec([None], "int32")])
    assert double(([4], [True])).numpy().tolist() == [8]


@given(xt.testing.values_of(DenseSpec([None], RECORD)))
def test_python_values_of_records_are_cast_to_the_records(records):
    spec = DenseSpec([None], RECORD)
    assert spec.cast(records.to_py()).to_py() == records.to_py()
    columns = {name: [row[name] for row in records.to_py()] for name in RECORD}
    assert spec.cast(columns).to_py() == records.to_py()


DEEP = DenseSpec(
    [None, 2],
    {
        "n": T([None, 2], tf.int64),
        "rows": RaggedSpec(
            [None, None, None],
            RaggedSpec([None, None], DenseSpec([None], {"w": T([None], tf.string)})),
        ),
        "one": DenseSpec([None, 2], {"x": T([None, 2, 3])}),
    },
)


@given(xt.testing.values_of(DEEP))
def test_nested_records_are_cast_from_python(records):
    assert DEEP.cast(records.to_py()).to_py() == records.to_py()


@pytest.mark.parametrize(
    ("spec", "value", "error", "says"),
    [
        (
            DISH,
            {"amounts": [1.0]},
            TypeError,
            "fields amounts, tags, unit, got a dict with amounts",
        ),
        (DISH, [1.0, 2.0], TypeError, "a mapping with amounts, tags, got a list of 2"),
        (DISH, {"amounts": ["a"], "tags": []}, TypeError, r"Dish\.Spec\.amounts: .*got a list"),
        (DISH, tf.constant(1.0), TypeError, "can be cast to Dish.Spec.*got TensorSpec"),
        (DISH, 3, TypeError, "a mapping with amounts, tags, got a int|TensorSpec"),
        (PlainMaskedSpec([2], "int32"), ([1], [True]), StructureError, r"Spec\[0\]: .*fits \(2,\)"),
        (
            DenseSpec([None], RECORD),
            [{"n": 1}],
            FieldError,
            r"^record 0: .*n, words, pair, got n\.",
        ),
        (DenseSpec([None], {"n": T([None])}), [3], StructureError, "a record, as a dict"),
        (DenseSpec([2], {"n": T([2])}), {"n": [1.0]}, StructureError, r"^n: .*fits"),
        (ROWS.__tf_type_spec__(), [3, []], StructureError, "^record 0: expected a list, got int 3"),
        (
            ROWS.__tf_type_spec__(),
            [[]],
            StructureError,
            "^records: expected a list of 2, got a list of 1",
        ),
        (MaskedSpec([2], "int32"), tf.ones([3], tf.int32), StructureError, r"fits \(2,\), got"),
    ],
)
def test_a_value_that_does_not_fit_the_components_is_an_error(spec, value, error, says):
    with pytest.raises(error, match=says) as caught:
        spec.cast(value)
    assert isinstance(caught.value, xt.ExtensorError)
    assert caught.value.fix


# A value of the type itself.


def test_a_value_of_the_spec_is_returned_without_decomposition():
    class Counting(PlainMaskedSpec):
        def to_components(self, value):
            raise AssertionError("taken apart")

    spec = Counting([None], tf.float32)
    for rows in (1, 2, 3, 2):
        value = PlainMasked(tf.ones([rows]), tf.ones([rows], tf.bool))
        value.__class__ = type(
            "Value", (PlainMasked,), {"__tf_type_spec__": lambda self: Counting([2], "float32")}
        )
        assert spec.cast(value) is value
        assert value.__tf_type_spec__().cast(value) is value


def test_the_cache_of_cast_specs_stays_small():
    spec = PlainMaskedSpec([None], tf.float32)
    for rows in range(200):
        value = PlainMasked(tf.ones([rows]), tf.ones([rows], tf.bool))
        assert spec.cast(value) is value
    assert len(spec._accepted) <= 64
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_a_function_with_a_signature_rejects_other_static_data():
    function = tf.function(lambda dish: dish.amounts, input_signature=[DISH])
    right = Dish([1.0], tf.ragged.constant([["a"]]))
    assert function(right).numpy().tolist() == [1.0]
    for call in (function, function.get_concrete_function()):
        with pytest.raises(TypeError, match=r"Dish\.Spec: .*unit='gram'\), got .*unit='pound'"):
            call(xt.replace(right, unit="pound"))
    with pytest.raises(TypeError, match="can be cast to"):
        function.get_concrete_function(xt.replace(right, unit="pound").__tf_type_spec__())


def test_a_function_with_a_signature_casts_its_arguments():
    rows = tf.function(lambda r: r.row_lengths(), input_signature=[ROWS.__tf_type_spec__()])
    flat = DenseSpec([None, None], {n: T([None, None], s.dtype) for n, s in
                                    SQUARE.__tf_type_spec__().field_specs.items()})  # fmt: skip
    assert rows.get_concrete_function() is not None
    any_rows = RaggedSpec([None, None], flat.unstacked().unstacked().stacked(None))
    lengths = tf.function(lambda r: r.row_lengths(), input_signature=[any_rows])
    assert lengths(SQUARE).numpy().tolist() == [2, 2]
    assert lengths(SQUARE.to_py()).numpy().tolist() == [2, 2]
    shape = tf.function(lambda r: r["minutes"], input_signature=[flat])
    assert shape(any_rows.cast(SQUARE)).numpy().tolist() == [[1, 2], [3, 4]]
    masked = tf.function(lambda m: m.mask, input_signature=[MaskedSpec([None], tf.float32)])
    assert masked(tf.constant([1.0])).numpy().tolist() == [True]


def test_a_declared_class_defines_its_casts():
    @xt.extension_type
    class Grams:
        amount: tf.Tensor

        class Spec:
            def cast(self, value):
                return Grams(value) if isinstance(value, float) else super().cast(value)

    @tf.function(input_signature=[Grams.Spec(tf.TensorSpec([], tf.float32))])
    def amount(grams):
        return grams.amount

    assert amount(3.0).numpy() == 3.0
    assert amount(Grams(4.0)).numpy() == 4.0


def test_variables_are_cast_as_tensorflow_does():
    @xt.extension_type
    class Holder:
        held: tf.Variable

    @xt.extension_type
    class Sum:
        numbers: tf.Tensor | tf.Variable

    count = Holder(tf.Variable(1.0))
    add = tf.function(lambda h: h.held.assign_add(1.0)).get_concrete_function(count)
    add(count)
    assert count.held.numpy() == 2.0
    total = tf.function(lambda s: s.numbers + 1, input_signature=[Sum.Spec(T([]))])
    assert total(Sum(tf.Variable(2.0))).numpy() == 3.0


def test_the_argument_context_of_cast_is_optional():
    contexts = []

    class Asking(MaskedSpec):
        def cast(self, value, casting_context=None):
            contexts.append(casting_context)
            return super().cast(value)

    value = Masked(tf.ones([2]), tf.ones([2], tf.bool))
    value.__class__ = type("V", (Masked,), {"__tf_type_spec__": lambda s: Asking([2], "float32")})
    tf.function(lambda m: m.values, input_signature=[Asking([None], tf.float32)])(value)
    assert contexts[0].allow_specs
    assert MaskedSpec([None], tf.float32).cast(value.values).mask.shape == [2]
    spec = MaskedSpec([None], tf.float32)
    assert spec.cast(MaskedSpec([2], tf.float32), contexts[0]) is spec


# Where TensorFlow joins values.


@pytest.fixture(params=[0, 1], ids=["first", "second"])
def taken(request):
    return request.param


def same(value, expected, met):
    assert type(value) is type(expected)
    assert plain(value) == plain(expected)
    assert tf.type_spec_from_value(value).is_subtype_of(met)


def meeting(pair):
    met = castable_type(*map(tf.type_spec_from_value, pair))
    return met, [cast_value(met, value) for value in pair]


def test_branches_of_a_cond_get_their_common_type(pair, taken):
    met, cast = meeting(pair)

    @tf.function
    def choose(first, a, b):
        return tf.cond(first, lambda: {"it": a, "n": 1}, lambda: {"it": b, "n": 2})

    result = choose(tf.constant(taken == 0), *pair)
    same(result["it"], cast[taken], met)
    assert result["n"] == taken + 1


def test_branches_of_a_case_get_their_common_type(pair, taken):
    met, cast = meeting(pair)

    @tf.function
    def choose(i, a, b):
        return tf.case([(i == 0, lambda: a), (i == 1, lambda: b)], default=lambda: a)

    same(choose(tf.constant(taken), *pair), cast[taken], met)
    same(choose(tf.constant(2), *pair), cast[0], met)


def test_branches_of_a_switch_case_get_their_common_type(pair, taken):
    met, cast = meeting(pair)

    @tf.function
    def choose(i, a, b):
        return tf.switch_case(i, [lambda: a, lambda: b, lambda: b, lambda: a])

    same(choose(tf.constant(taken), *pair), cast[taken], met)
    same(choose(tf.constant(3 - taken), *pair), cast[taken], met)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_loop_variable_gets_the_common_type_with_the_body(pair, taken, rounds):
    met, cast = meeting(pair)

    @tf.function
    def loop(rounds, value, other):
        return tf.while_loop(lambda i, x: i < rounds, lambda i, x: [i + 1, other], [0, value])[1]

    result = loop(tf.constant(rounds), pair[taken], pair[1 - taken])
    expected = cast[1 - taken] if rounds else cast[taken]
    assert tf.type_spec_from_value(result).is_subtype_of(met) or type(result) is tf.RaggedTensor
    assert plain(result) == plain(expected)


def test_a_loop_keeps_its_shape_invariants():
    def loop(value, other, invariant):
        return tf.function(
            lambda value, other: tf.while_loop(
                lambda i, x: i < 1,
                lambda i, x: (i + 1, other),
                (0, value),
                shape_invariants=(tf.TensorShape([]), invariant),
            )[1]
        )(value, other)

    assert loop(TABLE, LISTS, R([None, None])).to_list() == LISTS.to_list()
    even = tf.ragged.constant([[1.0, 2.0]])
    assert loop(TABLE, even, tf.TensorShape([None, None])).numpy().tolist() == [[1.0, 2.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows of the same length"):
        loop(TABLE, LISTS, tf.TensorShape([None, None]))


def test_concatenated_datasets_get_their_common_type(pair, taken):
    met, cast = meeting(pair)
    first, second = (tf.data.Dataset.from_tensors((v, {"n": tf.constant(i)}))
                     for i, v in enumerate((pair[taken], pair[1 - taken])))  # fmt: skip
    joined = first.concatenate(second)
    assert joined.element_spec[0].is_subtype_of(met)
    for i, (value, more) in enumerate(joined):
        same(value, cast[taken if i == 0 else 1 - taken], met)
        assert more["n"] == i


def test_gradients_flow_through_branches_that_are_cast(taken):
    x, y = tf.constant([[1.0, 2.0]]), tf.ragged.constant([[3.0]])

    @tf.function
    def choose(first, x, y):
        return tf.reduce_sum(tf.cond(first, lambda: x, lambda: y).flat_values ** 2)

    with tf.GradientTape() as tape:
        tape.watch([x, y.flat_values])
        total = choose(tf.constant(taken == 0), x, y)
    gradients = tape.gradient(total, [x, y.flat_values], unconnected_gradients="zero")
    assert gradients[taken].numpy().tolist() == [[[2.0, 4.0]], [6.0]][taken]
    assert not np.any(gradients[1 - taken])


def test_gradients_flow_through_records_that_are_cast():
    minutes = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    spec = RaggedSpec([None, None], DenseSpec([None], {"minutes": T([None])}))
    with tf.GradientTape() as tape:
        tape.watch(minutes)
        rows = spec.cast(Dense([2, 2], {"minutes": minutes}))
        again = DenseSpec([2, 2], {"minutes": T([2, 2])}).cast(rows)
        total = tf.reduce_sum(again["minutes"] ** 2)
    assert tape.gradient(total, minutes).numpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_branches_without_a_common_type_raise_the_error_of_tensorflow():
    for other in (tf.constant([1, 2]), tf.sparse.from_dense([[1.0]]), {"a": TABLE}):
        with pytest.raises((TypeError, ValueError)):
            tf.function(lambda yes, o=other: tf.cond(yes, lambda: LISTS, lambda: o))(
                tf.constant(True)
            )
        data = [tf.data.Dataset.from_tensors(value) for value in (LISTS, other)]
        with pytest.raises((TypeError, ValueError)):
            data[0].concatenate(data[1])
        loop = tf.function(lambda o=other: tf.while_loop(lambda x: True, lambda x: [o], [LISTS]))
        # TensorFlow fails to compare a dict with a type.
        with pytest.raises(AttributeError if isinstance(other, dict) else ValueError):
            loop()


@pytest.mark.whole("traces many functions")
def test_nothing_is_cast_if_tensorflow_joins_the_values_itself(monkeypatch):
    def never(*args):
        raise AssertionError("cast")

    for module in (common_type, _tf_branches, _tf_loops):
        monkeypatch.setattr(module, "cast_value", never)
    for module in (common_type, _tf_loops):
        monkeypatch.setattr(module, "castable_type", never)
    masked = [PlainMasked(tf.ones([n]), tf.ones([n], tf.bool)) for n in (1, 2)]
    for a, b in [
        (TABLE, TABLE[:1]),
        (LISTS, LISTS[:1]),
        (masked[0], masked[1]),
        (ROWS, ROWS[:1]),
        ((TABLE, {"a": LISTS}), (TABLE[:1], {"a": LISTS[:2]})),
    ]:
        tf.function(lambda yes, a=a, b=b: tf.cond(yes, lambda: a, lambda: b))(tf.constant(True))
        tf.function(lambda i, a=a: tf.switch_case(i, [lambda: a] * 2))(tf.constant(0))
        tf.function(
            lambda n, a=a: tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x), (0, a))
        )(tf.constant(1))
        first, second = map(tf.data.Dataset.from_tensors, (a, b))
        assert len(list(first.concatenate(second))) == 2


def test_an_eager_cond_traces_no_other_branch_for_the_values_of_tensorflow():
    def never():
        raise AssertionError("traced")

    for value in (TABLE, LISTS, None, [TABLE, {"a": LISTS}]):
        assert tf.cond(tf.constant(True), lambda value=value: value, never) is value
        assert tf.cond(False, never, lambda value=value: value) is value


DENSE_ROWS = Dense([2, 2], {"minutes": tf.constant([[1.0, 2.0], [3.0, 4.0]])})
JOINED = {
    "dense and ragged records": (DENSE_ROWS, RaggedSpec(
        [None, None], DenseSpec([None], {"minutes": T([None])})).cast(DENSE_ROWS)),
    "masked and plain": (xt.types.MaskedTensor([1.0, 2.0], [True, False]), tf.constant([3.0, 4.0])),
    "in a nest": ({"a": DENSE_ROWS, "b": [TABLE]}, {"a": DENSE_ROWS[:1], "b": [TABLE]}),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINED)
def test_an_eager_cond_returns_the_type_that_a_graph_returns(name):
    first, second = JOINED[name]

    def choose(yes):
        return tf.cond(yes, lambda: first, lambda: second)

    for yes in (True, False):
        if name == "masked and plain" and not yes:
            continue  # a branch that returns a plain tensor is left as it is
        eager, graph = choose(tf.constant(yes)), tf.function(choose)(tf.constant(yes))
        for ours, theirs in zip(tf.nest.flatten(eager), tf.nest.flatten(graph), strict=True):
            assert type(ours) is type(theirs)
            tf.nest.map_structure(
                tf.debugging.assert_equal,
                *(tf.nest.flatten(value, expand_composites=True) for value in (ours, theirs)),
            )


def test_an_eager_cond_runs_one_branch_and_leaves_what_cannot_be_traced():
    count = tf.Variable(0)

    def counted():
        count.assign_add(1)
        return RaggedSpec([None, None], DenseSpec([None], {"minutes": T([None])})).cast(DENSE_ROWS)

    result = tf.cond(tf.constant(True), lambda: DENSE_ROWS, counted)
    assert type(result) is type(counted())
    assert count.numpy() == 1
    eager_only = tf.cond(tf.constant(True), lambda: DENSE_ROWS, lambda: count.value().numpy())
    assert eager_only is DENSE_ROWS


# Restored functions.


@pytest.mark.filterwarnings("ignore:Encoding a StructuredValue:UserWarning")
def test_a_restored_function_casts_its_arguments(tmp_path):
    module = tf.Module()
    module.lengths = tf.function(lambda rows: rows.row_lengths())
    module.lengths.get_concrete_function(
        RaggedSpec([None, None], DenseSpec([None], {n: T([None], s.dtype) for n, s in
                                           STEPS.__tf_type_spec__().field_specs.items()}))
    )  # fmt: skip
    module.signed = tf.function(lambda x: x.row_lengths(), input_signature=[R([None, None])])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.lengths(ROWS).numpy().tolist() == [1, 3]
    assert loaded.lengths(SQUARE).numpy().tolist() == [2, 2]
    assert loaded.signed(LISTS).numpy().tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.lengths(SQUARE.without("tool"))
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.lengths(STEPS)


# Errors.


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (MaskedSpec([2], tf.float32), PlainMasked(tf.ones([2]), tf.ones([2], tf.bool))),
        (MaskedSpec([2], tf.float32), Masked(tf.ones([2], tf.int32), tf.ones([2], tf.bool))),
        (MaskedSpec([2], tf.float32), tf.constant([1, 2])),
        (MaskedSpec([2], tf.float32), LISTS),
        (SQUARE.__tf_type_spec__(), STEPS),
        (SQUARE.__tf_type_spec__(), ROWS.without("tool")),
        (ROWS.__tf_type_spec__(), TABLE),
        (R([None, None]), tf.constant([[1]])),
        (T([2]), PlainMasked(tf.ones([2]), tf.ones([2], tf.bool))),
        (tf.SparseTensorSpec([2]), LISTS),
    ],
)
def test_a_cast_between_types_that_are_not_related_names_both(spec, value):
    with pytest.raises(DTypeError) as caught:
        cast_value(spec, value)
    error = caught.value
    # Of records, the first field that differs is named, which says more than the spec.
    names = type(spec).__name__, *(spec.field_names() if hasattr(spec, "field_names") else ())
    assert any(name in str(error) for name in names)
    assert error.expected
    assert error.fix
    # The error does not contain the numbers of the tensors.
    assert "numpy=" not in str(error)
