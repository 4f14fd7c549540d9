"""What TensorFlow and Keras are made of at a moment: every name of every module and class."""

import sys
import types

ROOTS = ("tensorflow", "keras")


def snapshot():
    """Returns the state of what stands under each name, by the module or class that holds it."""
    found, classes = {}, {}
    for module in _modules():
        found[id(module)] = module, {name: _state(v) for name, v in vars(module).items()}
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__.partition(".")[0] in ROOTS:
                classes[id(value)] = value
    for cls in classes.values():
        found[id(cls)] = cls, {name: _state(value) for name, value in vars(cls).items()}
    return found


def changed(before, after):
    """Returns what is another now, as pairs of a module or class and a name in it.

    A function that has other code is named once, with None in the place of the name, although
    many modules hold it. What was imported in between is no change.
    """
    pairs, functions = [], {}
    for key, (owner, old) in before.items():
        _, new = after[key]
        for name, state in new.items():
            value = state[0]
            if _same(old.get(name), state) or isinstance(value, types.ModuleType):
                continue
            if name in old and isinstance(value, types.FunctionType) and old[name][0] is value:
                functions[id(value)] = value, None
            else:
                pairs.append((owner, name))
        pairs += [(owner, name) for name in old.keys() - new.keys()]
    return [*pairs, *functions.values()]


def _modules():
    modules = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ROOTS and type(module) is types.ModuleType:
            modules[id(module)] = module
    return modules.values()


def _state(value):
    """Returns a value with what is in it, in nested tuples, whose leaves are compared by `is`."""
    if isinstance(value, types.FunctionType):
        return value, value.__code__, value.__defaults__, _inside(vars(value), 1)
    return value, _inside(value, 3)


def _inside(value, depth):
    if depth == 0 or isinstance(value, (type, types.ModuleType, str)):
        return value
    if isinstance(value, dict):
        pairs = list(value.items())
        return tuple((key, _inside(item, depth - 1)) for key, item in pairs)
    if isinstance(value, (list, tuple)):
        return tuple(_inside(item, depth - 1) for item in list(value))
    if type(value).__module__.partition(".")[0] in ROOTS and hasattr(value, "__dict__"):
        return _inside(vars(value), depth - 1)
    return value


def _same(one, other):
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(map(_same, one, other))
    return one is other
