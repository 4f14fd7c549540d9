"""Types of values that tensors alone do not make, each also an example of how to write one."""
