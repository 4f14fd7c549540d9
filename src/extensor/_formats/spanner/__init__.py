"""Reading of Spanner queries, and writing to Spanner tables."""
