"""What users do by mistake is one clear error; extreme sizes work."""

import numpy as np
import pytest
import tensorflow as tf

import extensor as xt
from extensor.errors import DTypeError, ExtensorError, StructureError


def records():
    return xt.struct.constant([{"minutes": 5, "title": "Tea"}, {"minutes": 3, "title": "Soup"}])


def other():
    return xt.struct.constant([{"x": 1}])


def nested(depth):
    value = {"x": 1}
    for _ in range(depth):
        value = {"r": [value]}
    return value


STEPS = [{"m": 1}, {"m": 2}]
FIELD = r"records\[\"minutes\"\]"


@pytest.mark.parametrize(
    ("mistake", "error", "says"),
    [
        (lambda: xt.DenseStructuredTensor([2], {"steps": STEPS}), StructureError,
         r"^steps: .*got list.*xt\.struct\.constant\(\{'steps': value\}\)"),
        (lambda: xt.DenseStructuredTensor([1], {"steps": [STEPS]}), StructureError,
         r"^steps: .*xt\.struct\.constant"),
        (lambda: bool(records()), DTypeError, FIELD),
        (lambda: np.asarray(records()), DTypeError, FIELD),
        (lambda: tf.constant(records()), DTypeError, FIELD),
        (lambda: tf.convert_to_tensor(records()), DTypeError, FIELD),
        (lambda: tf.Variable(records()), DTypeError, FIELD),
        (lambda: tf.Variable(lambda: records()), DTypeError, FIELD),
        (lambda: tf.Variable([1, 2]).assign(records()), DTypeError, FIELD),
        (lambda: tf.concat([records(), other()], 0), StructureError, "as item 1"),
        (lambda: xt.StructuredTensor(), DTypeError, r"xt\.struct\.constant"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_clear_error(mistake, error, says):
    with pytest.raises(error, match=f"(?s){says}") as caught:
        mistake()
    assert isinstance(caught.value, ExtensorError)


@pytest.mark.whole("makes very large values")
@pytest.mark.parametrize(
    "rows",
    [[], [[]], [{}, {}], {}, nested(64), [nested(64)], [{f"f{i}": i for i in range(10_000)}] * 2],
    ids=["no rows", "no inner rows", "no fields", "no field", "deep", "deep rows", "wide"],
)
def test_extreme_sizes_come_back(rows):
    found = xt.struct.constant(rows)
    assert found.to_py() == rows
    assert xt.spec_of(found).cast(rows).to_py() == rows


@pytest.mark.parametrize("convert", [tf.Variable, tf.constant, tf.convert_to_tensor])
def test_a_list_of_records_is_no_tensor(convert):
    record = xt.DenseStructuredTensor([], {"x": 1})
    for value in ([record], [record, record], (record,), [[record]]):
        with pytest.raises(ValueError, match=r"tf\.stack makes one value of a list of records"):
            convert(value)
    with pytest.raises(ValueError, match=r"tf\.stack makes one value of a list"):
        convert([xt.types.MaskedTensor(1, True)])
