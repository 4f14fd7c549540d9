"""The main job, start to end: nested records train a model, which is served on nested records."""
