"""File formats: one file a format, each from and to Arrow."""
