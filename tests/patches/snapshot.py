"""Snapshots of TensorFlow and Keras: the objects under all names of their modules and classes."""

import sys
import types

ROOTS = ("tensorflow", "keras")
DEPTH = 4  # how far what a name stands for is looked into: a registry is a dict of dicts


def snapshot():
    """Returns the objects under all names, by the module or class that has the name."""
    found, classes = {}, {}
    for module in _modules():
        found[id(module)] = module, {name: _state(v) for name, v in vars(module).items()}
        for value in vars(module).values():
            home = value.__module__ if isinstance(value, type) else ""
            if home.partition(".")[0] in ROOTS and not home.endswith("_pb2"):
                classes[id(value)] = value
    for cls in classes.values():
        found[id(cls)] = cls, {name: _state(value) for name, value in vars(cls).items()}
    return found


def changed(before, after):
    """Returns the dotted names whose objects differ, by what is compared.

    A function that has other code, or a table with other entries, is named once, by its id, even if
    many modules hold it. All else is told by the id of what holds it, and its name. What was
    imported in between is no change.
    """
    found = {}
    for key, (owner, old) in before.items():
        _, new = after[key]
        path = owner.__name__
        if isinstance(owner, type):
            path = f"{owner.__module__}.{owner.__qualname__}"
        for name in {**old, **new}:
            was, now = old.get(name), new.get(name)
            imported = now is not None and isinstance(now[0], types.ModuleType)
            if imported or (was is not None and now is not None and _same(was, now)):
                continue
            if was is not None and now is not None and was[0] is now[0]:
                found.setdefault(id(now[0]), f"{path}.{name}")
            else:
                found[id(owner), name] = f"{path}.{name}"
    return found


def _modules():
    modules = {}
    for name, module in list(sys.modules.items()):
        # Classes of protobuf messages cache attributes that were read.
        ours = name.partition(".")[0] in ROOTS and not name.endswith("_pb2")
        if ours and type(module) is types.ModuleType:
            modules[id(module)] = module
    return modules.values()


def _state(value):
    """Returns a value with what is in it, in nested tuples, whose leaves are compared by `is`."""
    if isinstance(value, types.FunctionType):
        return value, value.__code__, value.__defaults__, _inside(vars(value), 1)
    return value, _inside(value, DEPTH)


def _inside(value, depth):
    if depth == 0 or isinstance(value, (type, types.ModuleType, str)):
        return value
    if isinstance(value, dict):
        pairs = list(value.items())
        return tuple((key, _inside(item, depth - 1)) for key, item in pairs)
    if isinstance(value, (list, tuple)):
        return tuple(_inside(item, depth - 1) for item in list(value))
    if depth == DEPTH and type(value).__module__.partition(".")[0] in ROOTS:
        held = dict(getattr(value, "__dict__", {}))
        for name, member in vars(type(value)).items():
            # A registry that keeps its dict in a slot.
            if isinstance(member, types.MemberDescriptorType):
                registry = getattr(value, name, None)
                held.update({name: registry} if isinstance(registry, dict) else {})
        return _inside(held, depth - 1)
    return value


def _same(one, other):
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(map(_same, one, other))
    # A number may be a new object in each read.
    return one is other or (type(one) is int and type(other) is int and one == other)
