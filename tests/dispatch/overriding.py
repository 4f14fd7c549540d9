"""Types that override operations, for tests."""

import tensorflow as tf


def recording(name="Recording", bases=(), answer="answered", types=None, **members):
    """Returns a new class whose values record the calls, and return the same result for all.

    Args:
        name: Its name.
        bases: Its bases.
        answer: What `__tf_dispatch__` returns, or a function of `op, args, kwargs` that does.
        types: Its `__tf_dispatch_types__`.
        **members: Its other members.
    """

    def method(cls, op, args, kwargs):
        cls.calls.append((op, args, kwargs))
        return answer(op, args, kwargs) if callable(answer) else answer

    members |= {"__tf_dispatch__": classmethod(method), "calls": []}
    if types is not None:
        members["__tf_dispatch_types__"] = types
    return type(name, bases, members)


class Masked:
    """Values and a mask, for the operations in a table; all others are declined."""

    def __init__(self, values, mask):
        self.values, self.mask = tf.convert_to_tensor(values), tf.convert_to_tensor(mask)

    @classmethod
    def __tf_dispatch__(cls, op, args, kwargs):
        if op is tf.add:
            x, y = (a if isinstance(a, cls) else cls(a, tf.ones_like(a, tf.bool)) for a in args[:2])
            return cls(op(x.values, y.values), x.mask & y.mask)
        if op is tf.reduce_sum:
            [x, *rest] = args
            return op(tf.where(x.mask, x.values, 0), *rest, **kwargs)
        return NotImplemented
