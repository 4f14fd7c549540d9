"""Protocol buffers to StructuredTensors and back."""
