"""Extension types and StructuredTensors in Keras 3 layers and models, on its TensorFlow backend."""
