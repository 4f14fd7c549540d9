"""Files of any file system, and files that are written completely or not at all."""
