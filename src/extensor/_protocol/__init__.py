"""What makes a class an extension type: its spec, the protocol, nests and boxes."""
