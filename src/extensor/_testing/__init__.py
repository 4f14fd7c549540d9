"""The laws that extension types obey, runnable on your own type, and Hypothesis strategies.

One rule of the text is not checked, because it cannot be in general: that values are immutable.
"""
