"""Reading and writing of SQL databases: DuckDB, and all that have an ADBC driver."""
