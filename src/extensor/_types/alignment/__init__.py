"""DimensionAlignment: pairs of positions of two dimensions that belong together."""
