"""Runs other people's tests without and with an import, and names those that pass only without."""
