"""Models behind servers that know only tensors, and the clients that talk to them."""
