"""How fast extensor is, each measurement side by side with what it is compared to.

Run `python -m bench`. The numbers are for reading; no test depends on them.
"""
