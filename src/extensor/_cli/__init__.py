"""The command `extensor`."""
