"""TensorFlow's functions that take no extension values, under the same names, for all values."""
