"""Which parts of its arguments a traced function uses."""
