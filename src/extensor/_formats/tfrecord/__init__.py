"""tf.Example, SequenceExample and TFRecord files to StructuredTensors and back."""
