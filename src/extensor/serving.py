"""Serving of models on servers that accept only plain tensors, and the clients for these."""

from extensor._serving.client import Client
from extensor._serving.client_file import load_client, save_clients
from extensor._serving.flat_signature import FlatSignature, flat_signature
from extensor._serving.layout import Component, Layout
from extensor._serving.saving import save

__all__ = [
    "Client",
    "Component",
    "FlatSignature",
    "Layout",
    "flat_signature",
    "load_client",
    "save",
    "save_clients",
]
