"""Checks of a release: the built files, and their installation. `make release-check` runs them."""
