"""tf.data datasets of structured batches from files."""

from extensor.data.parquet import parquet

__all__ = ["parquet"]


def __dir__() -> list[str]:
    # Not the modules that it is made of.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
