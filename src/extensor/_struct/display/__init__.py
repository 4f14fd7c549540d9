"""What people see of records: a repr of a few lines, the schema as a tree, HTML for notebooks."""
