"""Pictures of the documentation, drawn by code. `python -m pictures` writes docs/pictures/."""
