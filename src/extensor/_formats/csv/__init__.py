"""CSV files: one record a line, one value a field."""
