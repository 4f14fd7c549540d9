"""main: runs the command line, and turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

FAILED = 2
"""The exit code of a command that could not do its work."""

# What an error of a Python function advises, and what the commands have instead.
_FIXES = {
    "allow_nan=True": "Give --allow-nan to write NaN and Infinity.",
    "tf.cast(field, tf.float32)": "Give --float32, or write Parquet.",
    'conflicts="union"': "Give all records one type in this field, or leave it out: --column.",
    "xt.fill": "Give a value of this type: --nulls PATH=VALUE.",
}

_INTERRUPTED, _NO_READER = 130, 141  # as shells report the signals INT and PIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, and returns its exit code.

    Args:
        arguments: The words after `extensor`. Default: those of the process.
    """
    try:
        import click
    except ImportError:
        from extensor.errors import MissingDependencyError  # it knows where extensor came from

        fix = 'pip install "extensor[cli]"'
        missing = MissingDependencyError("the command line needs the package click", fix=fix)
        return _print_error(str(missing))
    from extensor_command.commands import extensor

    try:
        if "_EXTENSOR_COMPLETE" in os.environ:  # a shell asks for completions
            extensor.main(prog_name="extensor")
        # Not `extensor.main`, which ends the process with 1 where it finds a closed pipe.
        words = sys.argv[1:] if arguments is None else list(arguments)
        with extensor.make_context("extensor", words) as context:
            code = extensor.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:  # of --help and --version
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        print("Interrupted.", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # Python flushes the output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _NO_READER
    except Exception as error:
        if not _is_of_the_user(error):
            raise
        return _print_error(_message(error))
    return code if isinstance(code, int) else 0


def _is_of_the_user(error: Exception) -> bool:
    """Returns whether an error tells of the files or the machine, and not of a bug."""
    import pyarrow as pa  # not before a command has run

    errors = sys.modules.get("extensor.errors")  # also where TensorFlow is missing
    is_ours = errors is not None and isinstance(error, errors.ExtensorError)
    return is_ours or isinstance(error, (OSError, pa.ArrowException))


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and not hasattr(error, "fix"):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    fix = getattr(error, "fix", None) or ""
    for theirs, ours in _FIXES.items():
        if theirs in fix:
            return str(error).replace(fix, ours)
    return str(error)


def _print_error(message: str) -> int:
    print(f"Error: {message}", file=sys.stderr)
    return FAILED
