"""DimensionAlignment: which positions of one dimension belong to which of another."""
