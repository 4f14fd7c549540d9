"""Benchmarks of extensor, each against another implementation.

Run `python -m bench`. The numbers are for reading; no test depends on them.
"""
