"""How a type overrides TensorFlow's operations for its values."""
