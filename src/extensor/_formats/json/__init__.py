"""JSON to StructuredTensors and back: files, and text in memory."""
