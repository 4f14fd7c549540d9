"""Functions that write take records, or batches of records, and nothing else."""

import pytest

import extensor as xt
from extensor._arrow.batches import batches_of
from extensor.errors import DTypeError

RECORDS = xt.struct.constant([{"x": 1}, {"x": 2}])


@pytest.mark.parametrize("given", [RECORDS, [RECORDS, RECORDS], iter([RECORDS]), []])
def test_records_are_one_batch_and_an_iterable_is_many(given):
    count = 1 if given is RECORDS or not isinstance(given, list) else len(given)
    found = list(batches_of(given, "write"))
    assert len(found) == count
    assert all(batch is RECORDS for batch in found)


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (RECORDS[0], r"DenseStructuredTensor of shape \(\)"),
        (3, "int"),
        ([RECORDS, None], "NoneType"),
        ({"x": 1}, "str"),
    ],
)
def test_anything_else_is_an_error_that_names_the_function(given, received):
    with pytest.raises(DTypeError, match=f"^write: expected .* of rank 1, got {received}[.]"):
        list(batches_of(given, "write"))


def test_a_batch_is_taken_only_when_it_is_written():
    def batches():
        yield RECORDS
        raise AssertionError("the second batch was taken")

    assert next(batches_of(batches(), "write")) is RECORDS
