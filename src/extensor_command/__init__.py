"""The command `extensor`, beside the package, whose import loads TensorFlow.

What a command does is in `extensor._cli`, which is imported when the command runs. So the help, the
version, wrong arguments and the completions of a shell take a tenth of a second.
"""
