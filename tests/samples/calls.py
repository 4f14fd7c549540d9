"""Counts the Python calls of a function."""

import sys


def calls_of(function):
    """Returns how many functions of Python and C the second call of a function runs."""
    count = 0

    def seen(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    function()
    sys.setprofile(seen)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count
