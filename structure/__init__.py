"""Writes the list of public names and the picture of the imports from the code."""
