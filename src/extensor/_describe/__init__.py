"""Statistics of each path of records, their pages, and what differs between two of them."""
