"""The implementation of `extensor.authoring`: functions for authors of extension types."""
