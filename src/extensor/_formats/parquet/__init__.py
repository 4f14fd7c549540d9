"""Parquet files: which parts of which files are read, their records, and their writing."""
