"""Ready extension types; each is also an example of how to write one."""
