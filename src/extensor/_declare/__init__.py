"""`xt.extension_type`: a spec, a constructor and equality from the annotations of a class."""
