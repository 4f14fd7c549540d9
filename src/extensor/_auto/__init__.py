"""`xt.auto_composite_tensor`: a spec from the arguments of a class's constructor."""
