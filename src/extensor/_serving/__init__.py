"""Serving of models on servers that accept only plain tensors, and the clients for these."""
