"""TensorFlow Probability with extensor's `auto_composite_tensor` in the place of its own.

    make pairs SUITE=folder PAIRS_ARGS="--first pairs/probability.py"

runs tests of TensorFlow Probability with each of the two decorators.
"""

import importlib.abc
import importlib.machinery
import sys
import warnings

import extensor as xt

NAME = "tensorflow_probability.python.internal.auto_composite_tensor"


class Replaced(importlib.machinery.SourceFileLoader):
    """Loads the module with the decorator, and puts our names in the place of its own."""

    def exec_module(self, module):
        super().exec_module(module)
        for name in module.__all__:
            setattr(module, name, getattr(xt, name))


class Finder(importlib.abc.MetaPathFinder):
    """Finds that module alone. Its names are used as soon as the package is imported."""

    def find_spec(self, fullname, path, target=None):
        if fullname != NAME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        spec.loader = Replaced(fullname, spec.origin)
        return spec


if "tensorflow_probability" in sys.modules:
    raise ImportError("Import this module before tensorflow_probability: it uses its decorator.")
sys.meta_path.insert(0, Finder())
with warnings.catch_warnings():
    # It asks distutils for versions, and asks TensorFlow for names that have moved.
    warnings.simplefilter("ignore")
    import tensorflow_probability  # noqa: F401
