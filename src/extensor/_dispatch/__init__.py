"""How a type says what TensorFlow's operations do with its values."""
