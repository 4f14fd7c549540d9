"""Arrow data to and from StructuredTensors."""
