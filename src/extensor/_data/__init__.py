"""tf.data datasets of structured batches from files."""
