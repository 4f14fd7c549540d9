"""The middle of the house: Arrow data to and from StructuredTensors."""
