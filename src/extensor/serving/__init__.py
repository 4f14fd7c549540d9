"""Models behind servers that know only tensors, and the clients that talk to them."""

from extensor.serving.client import Client, load_client, save_clients
from extensor.serving.layout import Component, Layout
from extensor.serving.signature import FlatSignature, flat_signature, save

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


def __dir__() -> list[str]:
    # Not the modules that it is made of.
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
