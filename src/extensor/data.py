"""tf.data datasets of structured batches from files."""

from extensor._data.parquet import parquet

__all__ = ["parquet"]
