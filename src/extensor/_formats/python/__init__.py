"""Python data (dicts, lists, objects) to StructuredTensors, and classes to specs and back."""
