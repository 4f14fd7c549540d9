"""Records on a GPU, or on a second logical CPU: where they are read, and copied."""

import pytest

pytestmark = pytest.mark.whole("sets the logical devices of a process")

# The devices must be set before TensorFlow has made them.
COPIED = """
import tensorflow as tf

is_gpu = bool(tf.config.list_physical_devices("GPU"))
if not is_gpu:
    [cpu] = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
import extensor as xt

device = "/GPU:0" if is_gpu else "/CPU:1"
items = xt.DenseStructuredTensor([3], {"price": [1.0, 2.0, 3.0], "name": ["a", "b", "c"]})
fields = {
    "id": tf.constant([7, 8], tf.int64),
    "taste": xt.types.MaskedTensor([0.5, 0.0], [True, False]),
    "steps": tf.ragged.constant([[1.0, 2.0], []], row_splits_dtype=tf.int64),
    "items": xt.RaggedStructuredTensor.from_row_lengths(items, tf.constant([1, 2], tf.int64)),
}
records = xt.DenseStructuredTensor([2], fields)
"""

SAME_DEVICES = """
def devices(value):
    parts = tf.nest.flatten(value, expand_composites=True)
    return [part.device.rpartition(":")[0][-3:] + part.device[-2:] for part in parts]

plain = {
    "id": fields["id"],
    "taste": (fields["taste"].mask, fields["taste"].values),
    "steps": fields["steps"],
    "items": {key: records["items", key] for key in ("price", "name")},
}
for copy in (tf.data.experimental.prefetch_to_device, tf.data.experimental.copy_to_device):
    [copied] = tf.data.Dataset.from_tensors(records).apply(copy(device))
    [expected] = tf.data.Dataset.from_tensors(plain).apply(copy(device))
    assert copied.to_py() == records.to_py()
    assert device[1:] in copied["id"].device, copied["id"].device
    assert device[1:] in copied["taste"].values.device
    assert device[1:] in copied["taste"].mask.device
    # Ragged parts are where TensorFlow unpacks those of a dataset.
    assert devices(copied["steps"]) == devices(expected["steps"])
    price = expected["items"]["price"]
    assert devices(copied["items.price"]) == devices(price)
"""

FROM_A_FILE = """
xt.write_parquet(records, "records.parquet")
dataset = xt.data.parquet("records.parquet", 2, nulls={"taste": "mask"})
[expected] = dataset
for copy in (tf.data.experimental.prefetch_to_device, tf.data.experimental.copy_to_device):
    copied = dataset.apply(copy(device))
    for _ in range(2):
        [batch] = copied
        assert batch.to_py() == expected.to_py()
        assert device[1:] in batch["id"].device, batch["id"].device
        with tf.device(device):
            total = tf.reduce_sum(batch["items.price"], 1)
        assert total.numpy().tolist() == [1.0, 5.0]
        assert device[1:] in total.device
"""

READ = """
import decimal
import pyarrow as pa

table = pa.table({
    "id": [7, 8],
    "is_open": [True, False],
    "name": ["a", "b"],
    "price": pa.array([decimal.Decimal(1), decimal.Decimal(2)], pa.decimal128(38, 2)),
    "place": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2)),
    "taste": [None, 0.5],
    "items": [[{"n": 1}], []],
})
xt.write_parquet(records, "records.parquet")
with tf.device(device):
    read = [
        xt.from_arrow(table, nulls="mask"),
        xt.read_parquet("records.parquet", nulls="mask"),
    ]
assert read[0].to_py()[1]["place"] == [3.0, 4.0]
parts = tf.nest.flatten(read, expand_composites=True)
# Some tensors share memory with Arrow, which is that of the host. So all are there.
assert {part.device.rpartition("/")[2] for part in parts} == {"device:CPU:0"}, parts
"""


@pytest.mark.parametrize("body", [SAME_DEVICES, FROM_A_FILE, READ], ids=["batch", "file", "read"])
def test_records_are_on_the_device_that_is_expected(run_python, body, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python(COPIED + body)
