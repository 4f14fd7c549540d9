# pyright comes with hand-written types for a part of TensorFlow and calls the rest of it an error
# (RaggedTensor.from_row_splits, tf.nest). With this file every name of TensorFlow is Any instead.
from typing import Any

def __getattr__(name: str) -> Any: ...
