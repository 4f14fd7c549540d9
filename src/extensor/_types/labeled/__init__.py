"""Tensors whose axes have names."""

# Importing them says what TensorFlow's operations do with the type.
from extensor._types.labeled import arrange as arrange
from extensor._types.labeled import axiswise as axiswise
from extensor._types.labeled import combine as combine
from extensor._types.labeled import elementwise as elementwise
from extensor._types.labeled import product as product
