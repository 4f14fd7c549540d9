"""Tests of `xt.data.arrays` on each backend of Keras, in an environment of their own."""
