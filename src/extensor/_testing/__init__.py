"""Checks of the laws of extension types for your own types, and Hypothesis strategies.

One rule of the specification is not checked, because no general check exists: that values are
immutable.
"""
