"""Functions for extension values that replace TensorFlow's functions of the same names."""
