"""Tests of `xt.arrow_function` on engines of parallel processing, in environments of their own."""
