"""Callbacks for `fit`."""

from extensor._keras.backup import BackupAndRestore

__all__ = ["BackupAndRestore"]
