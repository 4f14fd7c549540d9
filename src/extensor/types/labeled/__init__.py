"""Tensors whose axes have names."""

# Importing them says what TensorFlow's operations do with the type.
from extensor.types.labeled import arrange as arrange
from extensor.types.labeled import axiswise as axiswise
from extensor.types.labeled import combine as combine
from extensor.types.labeled import elementwise as elementwise
from extensor.types.labeled import product as product
