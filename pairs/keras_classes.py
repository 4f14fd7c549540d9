"""Gives Keras's own tests the classes of xt.keras in place of those of Keras.

`python -m pairs --first pairs/keras_classes.py` imports this before the tests. From then on, a
test file that imports `Layer`, `Model`, `Sequential` or `Functional` from Keras gets the class of
xt.keras. Keras itself gets its own classes.
"""

import builtins
import types

import keras

import extensor as xt
import extensor.keras

INPUT = keras.Input((1,))
TENSORS = INPUT, keras.layers.Identity()(INPUT)
OURS = {
    keras.layers.Layer: xt.keras.Layer,
    keras.Model: xt.keras.Model,
    keras.Sequential: xt.keras.Sequential,
    type(keras.Model(*TENSORS)): type(xt.keras.Model(*TENSORS)),  # Functional, which is not public
}
keras.backend.clear_session()  # the numbers in names begin with 0 again


class View(types.ModuleType):
    """A module of Keras with the classes of xt.keras in it."""

    def __init__(self, module):
        super().__init__(module.__name__)
        self.__dict__["module"] = module

    def __getattr__(self, name):
        return replaced(getattr(self.module, name))

    def __setattr__(self, name, value):
        setattr(self.module, name, value)  # a test may patch Keras

    def __delattr__(self, name):
        delattr(self.module, name)


def replaced(value):
    """Returns what a test gets in place of something that it imports from Keras."""
    if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "keras":
        return View(value)
    return OURS.get(value, value) if isinstance(value, type) else value


def import_for_tests(name, globals=None, locals=None, fromlist=(), level=0):
    """Imports a module; a test file gets a View of it."""
    module = builtin_import(name, globals, locals, fromlist, level)
    is_test = str((globals or {}).get("__file__", "")).endswith("_test.py")
    return replaced(module) if is_test else module


builtin_import = builtins.__import__
builtins.__import__ = import_for_tests
