"""What autograph leaves as it is."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from tensorflow.python.autograph.core import config

from extensor._patches.patch import changes


@changes(
    "tensorflow.python.autograph.core.config.CONVERSION_RULES",
    reason="autograph rewrites the source of what a tf.function calls, unless a rule names its "
    "module; to rewrite extensor would make every trace slow, and no loop of it depends on a "
    "tensor.",
    probe="conversion_rules",
)
def leave_extensor_alone() -> None:
    ours = config.DoNotConvert("extensor")
    others = [rule for rule in config.CONVERSION_RULES if str(rule) != str(ours)]
    config.CONVERSION_RULES = (ours, *others)
