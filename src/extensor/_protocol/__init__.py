"""The protocol of extension types: specs, components, the registry, nests and boxed tensors."""
