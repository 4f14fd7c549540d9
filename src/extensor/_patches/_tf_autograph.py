"""Excludes extensor from AutoGraph."""

from __future__ import annotations

from tensorflow.python.autograph.core import config

from extensor._patches.patch import changes


@changes(
    "tensorflow.python.autograph.core.config.CONVERSION_RULES",
    reason="AutoGraph converts each function that a tf.function calls, unless a rule excludes its "
    "module. Converting extensor would slow down every trace, and none of its loops depends on a "
    "tensor.",
    probe="conversion_rules",
)
def leave_extensor_alone() -> None:
    ours = config.DoNotConvert("extensor")
    others = [rule for rule in config.CONVERSION_RULES if str(rule) != str(ours)]
    config.CONVERSION_RULES = (ours, *others)
