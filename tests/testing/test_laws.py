"""The laws hold for correct types, and each law is broken by one wrong type."""

import re
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import extensor as xt
from extensor import testing
from extensor.errors import DTypeError, MissingDependencyError, ProtocolError, UnsupportedTypeError
from tests.samples.declared import STATIC, Masked, Scaled, labelled
from tests.samples.types import MaskedTensor, MaskedTensorSpec, ParcelSpec, parcel
from tests.samples.wrong_types import (
    ALSO,
    WRONG,
    ForgetfulSpec,
    Measure,
    MeasureSpec,
    TerseSpec,
    two_by_three,
)

LAWS = {law.name: law for law in testing.laws()}


class Bowl(tf.experimental.BatchableExtensionType):
    amounts: tf.Tensor
    steps: tf.RaggedTensor
    label: str = "soup"


class Spoon(tf.experimental.ExtensionType):
    """Does not stack."""

    amount: tf.Tensor


STEP = xt.DenseStructuredTensorSpec(
    [None], {"minutes": tf.TensorSpec([None], tf.int32), "text": tf.TensorSpec([None], tf.string)}
)
STEPS = xt.RaggedStructuredTensorSpec([None, None], STEP)
RECIPE = xt.DenseStructuredTensorSpec(
    [None],
    {
        "title": tf.TensorSpec([None], tf.string),
        "steps": STEPS,
        "tags": tf.RaggedTensorSpec([None, None], tf.string),
        "vector": tf.TensorSpec([None, 2], tf.float32),
        "rating": MaskedTensorSpec([None], tf.float32),
    },
)

SPECS = {
    "protocol": MaskedTensorSpec([None, 2], tf.int32),
    "ragged": tf.RaggedTensorSpec([None, None], tf.float32),
    "ragged twice": tf.RaggedTensorSpec([2, None, None, 3], tf.int64, 2, tf.int32),
    "sparse": tf.SparseTensorSpec([None, 3], tf.float32),
    "records": STEP,
    "ragged records": STEPS,
    "nested records": RECIPE,
    "records of rank 2": xt.DenseStructuredTensorSpec(
        [None, 2], {"all": tf.RaggedTensorSpec([None, 2, None], tf.bool, 2)}
    ),
    "declared": Scaled.Spec(
        Masked.Spec(tf.TensorSpec([None, 2]), tf.TensorSpec([None, 2], tf.bool)), 0.5
    ),
    "records without a field": xt.DenseStructuredTensorSpec([None], {}),
    "tensorflow's": Bowl.Spec(
        tf.TensorSpec([None], tf.int32), tf.RaggedTensorSpec([2, None]), "soup"
    ),
}

RAGGED = tf.ragged.constant([[1, 2], [3]])


@xt.extension_type
class Scale:
    """Holds a variable."""

    factor: tf.Variable
    unit: str = "gram"


@xt.extension_type
class Page:
    """Has no tensor."""

    number: int


class Grid:
    """Gives its spec a list for a shape, and a flag."""

    def __init__(self, cells, closed=True):
        self.cells, self.closed = cells, closed

    def __tf_type_spec__(self):
        return GridSpec(self.cells.shape.as_list(), self.closed)


class GridSpec(xt.StackableTypeSpec):
    """Keeps its argument, and serializes another value."""

    value_type = Grid

    def __init__(self, shape, closed):
        self.shape, self.closed, self.seen = shape, closed, object()

    @property
    def component_specs(self):
        return tf.TensorSpec(self.shape)

    def to_components(self, value):
        return value.cells

    def from_components(self, components):
        return Grid(components, self.closed)

    def serialize(self):
        return tf.TensorShape(self.shape), self.closed


def masked(*amounts):
    return MaskedTensor(tf.constant(amounts), tf.constant(amounts) > 1.0)


RECORDS = xt.struct.constant(
    [{"title": "tea", "steps": [{"minutes": 5}, {"minutes": 1}]}, {"title": "pie", "steps": []}]
)
RIGHT = [
    [masked(1.0, 2.0), masked(1.0, 2.0, float("nan"))],
    parcel({"rows": RAGGED, "pair": (masked(2.0, 3.0), tf.constant(["a"]))}),
    Bowl(tf.constant([1, 2]), RAGGED),
    Spoon(1.0),
    [RAGGED, tf.ragged.constant([[1.5], []]), tf.ragged.constant([[[1]]])],
    tf.sparse.from_dense([[1, 0], [0, 2]]),
    two_by_three(Measure),
    [Scale(tf.Variable([1.0, 2.0])), Scale(tf.Variable([3.0, 4.0]), "pound")],
    [Page(3), Page(4)],
    Grid(tf.constant([[1.0, 2.0]])),
    [RECORDS, RECORDS[:1]],
    [RECORDS["steps"], RECORDS["steps"][1:]],
]


@pytest.mark.parametrize("values", RIGHT)
def test_a_correct_type_obeys_the_laws(values):
    testing.check_extension_type(values)


@testing.parametrize_laws([RAGGED])
def test_the_laws_are_one_test_each_on_request(check):
    check()


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize("kind", STATIC)
def test_a_declared_type_with_any_static_data_obeys_the_laws(kind):
    testing.check_extension_type(labelled(kind))


@pytest.mark.whole("checks all laws of several types")
@pytest.mark.parametrize("kind", SPECS)
def test_a_correct_type_obeys_the_laws_for_every_value(kind):
    testing.check_spec(SPECS[kind], max_examples=4)


@pytest.mark.whole("checks all laws of several types")
def test_a_row_of_ragged_records_obeys_the_laws():
    testing.check_spec(STEPS.unstacked(), max_examples=4)


@pytest.mark.parametrize(
    ("name", "make"),
    [*((name, WRONG.get(name)) for name in LAWS), *ALSO],
    ids=[*LAWS, *(f"{name} again" for name, _ in ALSO)],
)
def test_a_wrong_type_breaks_one_law(name, make):
    with pytest.raises(testing.LawError) as caught:
        testing.check_extension_type(make())
    assert caught.value.names == {name}, str(caught.value)


def test_every_law_is_broken_by_a_wrong_type():
    assert set(WRONG) == set(LAWS)


def test_the_page_shows_every_law():
    page = (Path(__file__).parents[2] / "docs" / "laws.md").read_text()
    rows = re.findall(r"^\| `(.*?)` \| (.*) \|$", page, re.MULTILINE)
    assert sorted(rows) == sorted((law.name, law.sentence) for law in LAWS.values())


def test_each_law_follows_the_laws_that_it_requires():
    names = list(LAWS)
    for name, law in LAWS.items():
        assert all(names.index(need) < names.index(name) for need in law.needs)
        assert law.sentence.endswith(".")
        assert law.fix.endswith(".")


# What is told.


def test_the_error_names_the_law_the_type_and_the_mend():
    with pytest.raises(AssertionError) as caught:
        testing.check_extension_type(WRONG["components-run-no-op"]())
    message = str(caught.value)
    assert message.startswith("BusySpecValue breaks a law of extension types.")
    assert "  components-run-no-op: to_components and from_components call" in message
    assert "expected no op from from_components, got Identity" in message
    assert "Only store and return tensors" in message
    assert "Not checked, because they depend on these laws: pack-uses-given-tensors" in message
    assert isinstance(caught.value, xt.ExtensorError)


def test_several_broken_laws_are_one_report():
    class Doubly(TerseSpec, ForgetfulSpec):
        pass

    value_type = type("Doubly", (Measure,), {"spec_class": Doubly})
    Doubly.value_type = value_type
    with pytest.raises(testing.LawError, match="Doubly breaks 2 laws") as caught:
        testing.check_extension_type(two_by_three(value_type))
    assert caught.value.names == {"repr-shows-all", "pickle-round-trip"}


def test_a_single_law_names_the_laws_that_it_requires():
    law = LAWS["function-carries-value"]
    law(masked(1.0))
    with pytest.raises(testing.LawError) as caught:
        law(WRONG["components-rebuild-value"]())
    assert caught.value.names == {"components-rebuild-value"}
    assert caught.value.unchecked == ("function-carries-value",)


def test_an_error_in_the_type_is_a_breach_that_contains_the_error():
    class Failing(MeasureSpec):
        def to_components(self, value):
            raise KeyError("amounts")

    value_type = type("Failing", (Measure,), {"spec_class": Failing})
    with pytest.raises(testing.LawError, match="expected no error, got KeyError: 'amounts'"):
        testing.check_extension_type(two_by_three(value_type))


def test_a_type_without_component_specs_breaks_laws():
    class Mute(MeasureSpec):
        @property
        def component_specs(self):
            raise KeyError("specs")

    value_type = type("Mute", (Measure,), {"spec_class": Mute})
    with pytest.raises(testing.LawError, match="expected no error, got KeyError: 'specs'"):
        testing.check_extension_type(two_by_three(value_type))
    assert testing.parametrize_laws([two_by_three(value_type)]).mark.args[1]


def test_several_values_find_more_breaches_than_one():
    class Unfit(MeasureSpec):
        def most_specific_compatible_type(self, other):
            return self if isinstance(other, Unfit) and self.unit == other.unit else None

    value_type = type("Unfit", (Measure,), {"spec_class": Unfit})
    Unfit.value_type = value_type
    small = value_type(tf.zeros([1]), tf.zeros([1], tf.bool))
    large = value_type(tf.zeros([2]), tf.zeros([2], tf.bool))
    with pytest.raises(testing.LawError) as caught:
        LAWS["merge-holds-both"]([small, large])
    assert caught.value.names == {"merge-holds-both"}


class Described:
    """Returns any value instead of a spec."""

    def __init__(self, spec):
        self.spec = spec

    def __tf_type_spec__(self):
        return self.spec


@pytest.mark.parametrize(
    ("value", "received"),
    [
        ([], "an empty list"),
        (tf.constant(1), "a plain tensor"),
        (object(), "a value without a TypeSpec"),
        ([RAGGED, masked(1.0)], "MaskedTensorSpec, RaggedTensorSpec"),
        (None, "a value without a TypeSpec"),
        ([None, None], "a value without a TypeSpec"),
        (Described(MeasureSpec), "the class MeasureSpec"),
        (Described(3), "a TypeSpec of its own, got 3"),
    ],
)
def test_values_that_are_not_of_one_extension_type_are_an_error(value, received):
    with pytest.raises(ProtocolError, match=received):
        testing.check_extension_type(value)


# pytest.


def test_there_is_an_id_for_each_type_and_law():
    mark = testing.parametrize_laws([RAGGED, Spoon(1.0)]).mark
    ids = [parameters.id for parameters in mark.args[1]]
    assert [i for i in ids if i.startswith("Ragged")] == [f"RaggedTensor-{name}" for name in LAWS]
    assert "Spoon-spec-is-stable" in ids
    assert "Spoon-boxes-rebuild-value" not in ids


def test_a_law_that_requires_a_broken_law_is_skipped():
    mark = testing.parametrize_laws([WRONG["components-rebuild-value"]()]).mark
    checks = {parameters.id.partition("-")[2]: parameters.values[0] for parameters in mark.args[1]}
    assert "proto-round-trip" not in checks
    with pytest.raises(testing.LawError):
        checks["components-rebuild-value"]()
    with pytest.raises(pytest.skip.Exception, match="components-rebuild-value"):
        checks["value-type"]()
    checks["hash-follows-equality"]()


# Hypothesis.


@pytest.mark.parametrize("kind", SPECS)
@given(st.data())
def test_values_belong_to_their_spec(kind, data):
    spec = SPECS[kind]
    value = data.draw(testing.values_of(spec))
    assert spec.is_compatible_with(value)
    for tensor in xt.nest.flatten(value, expand_composites=True):
        assert tensor.shape.is_fully_defined()


@given(testing.values_of(tf.RaggedTensorSpec([None, None], tf.int32)))
def test_row_splits_partition_the_values(ragged):
    tf.RaggedTensor.from_row_splits(ragged.values, ragged.row_splits, validate=True)


@given(testing.values_of(tf.SparseTensorSpec([None, None], tf.int32)))
def test_sparse_entries_are_in_order(sparse):
    assert tf.sparse.reorder(sparse).indices.numpy().tolist() == sparse.indices.numpy().tolist()


@pytest.mark.parametrize("kind", SPECS)
@given(st.data())
def test_specs_are_like_that_of_the_value(kind, data):
    value = data.draw(testing.values_of(SPECS[kind]))
    spec = data.draw(testing.specs_of(value))
    assert type(spec) is type(tf.type_spec_from_value(value))
    assert spec.is_compatible_with(value)


@pytest.mark.parametrize(
    "dtype", [tf.uint8, tf.int64, tf.bfloat16, tf.float64, tf.complex64, tf.string, tf.bool]
)
@settings(max_examples=3)
@given(st.data())
def test_values_of_every_dtype_are_drawn(dtype, data):
    assert data.draw(testing.values_of(tf.TensorSpec(None, dtype))).dtype == dtype


def test_a_spec_without_a_strategy_is_an_error():
    with pytest.raises(UnsupportedTypeError, match="variant"):
        testing.check_spec(ParcelSpec((tf.TensorSpec([1], tf.variant),)))
    with pytest.raises(DTypeError, match="values_of"):
        testing.values_of(3)
    with pytest.raises(DTypeError, match="check_spec"):
        testing.check_spec(masked(1.0))


class Narrow(MeasureSpec):
    """Pickles no more than one row."""

    def __reduce__(self):
        rows = self.shape[0]
        return type(self), (self.shape, self.unit if rows < 2 else "gram?")


Narrow.value_type = type("Narrow", (Measure,), {"spec_class": Narrow})


@pytest.mark.whole("checks all laws of several types")
def test_the_smallest_value_that_breaks_a_law_is_found():
    with pytest.raises(testing.LawError) as caught:
        testing.check_spec(Narrow([None], "gram"))
    assert caught.value.names == {"pickle-round-trip"}
    assert re.search(
        r"specs of the smallest such values: Narrow\(TensorShape\(\[2\]\), 'gram'\)\.",
        str(caught.value),
    )


def test_values_may_be_drawn_by_a_given_strategy():
    small = st.sampled_from([masked(1.0), masked(2.0, 3.0)])
    testing.check_spec(MaskedTensorSpec([None], tf.float32), values=small, max_examples=2)


# What is not installed.


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("hypothesis", lambda: testing.values_of(STEP)),
        ("hypothesis", lambda: testing.specs_of(RAGGED)),
        ("hypothesis", lambda: testing.check_spec(STEP)),
        ("pytest", lambda: testing.parametrize_laws([RAGGED])),
    ],
)
def test_without_a_package_the_error_names_the_extra(package, call, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingDependencyError, match=re.escape(f"{package}, got") + r".*\[testing\]"
    ):
        call()


@pytest.mark.whole("starts a process")
def test_the_laws_need_neither_pytest_nor_hypothesis(run_python):
    run_python(
        """
        import sys
        sys.modules["pytest"] = sys.modules["hypothesis"] = None
        import tensorflow as tf
        import extensor.testing
        extensor.testing.check_extension_type(tf.ragged.constant([[1, 2], [3]]))
        """
    )
