"""Layers for lists and for whole records."""
