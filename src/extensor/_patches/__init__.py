"""Everything that `import extensor` changes in TensorFlow: one record a change, in one table."""
