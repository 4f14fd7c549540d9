"""Pandas DataFrames to StructuredTensors and back."""
