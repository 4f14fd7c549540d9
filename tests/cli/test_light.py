"""What the command answers without TensorFlow: help, version, usage errors, completions."""

import json
import re

import pytest

from extensor._streams.read import SUFFIXES
from extensor_command.commands import FORMATS

# The command in a fresh process: its exit code, its CPU time and the packages that it loaded.
RUN = """
import json, resource, sys
from extensor_command.main import main
code = main({words!r})
used = resource.getrusage(resource.RUSAGE_SELF)
loaded = sorted({{name.partition(".")[0] for name in sys.modules}})
print("\\n" + json.dumps([code, used.ru_utime + used.ru_stime, loaded]))
"""

ANSWERS = {
    "the help": (["--help"], 0, "Usage: extensor"),
    "the version": (["--version"], 0, r"extensor, version \d"),
    "the help of a command": (["describe", "--help"], 0, "--threshold"),
    "the help of a process": (["data-service", "worker", "-h"], 0, "--dispatcher"),
    "no command": ([], 2, "Usage: extensor"),
    "an unknown command": (["shcema"], 2, "No such command"),
    "a missing file": (["convert", "x.parquet"], 2, "Missing argument"),
    "an unknown format": (["head", "x", "--format", "xml"], 2, "is not one of 'parquet'"),
}


def test_the_formats_are_those_of_the_streams():
    assert tuple(SUFFIXES) == FORMATS


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_without_work_loads_no_tensorflow(name, run_python):
    words, expected, text = ANSWERS[name]
    code = RUN.format(words=words)
    done = run_python(code, fresh=True)
    returned, seconds, loaded = json.loads(done.stdout.splitlines()[-1])
    assert returned == expected
    assert re.search(text, done.stdout + done.stderr)
    assert not {"extensor", "tensorflow", "keras", "pyarrow", "numpy"} & set(loaded)
    assert seconds < 0.5


@pytest.mark.whole("starts a process")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("extensor ", {"plain,schema", "plain,convert", "plain,data-service"}),
        ("extensor head --format ", {"plain,parquet", "plain,tfrecord"}),
        ("extensor describe rec", {"file,rec"}),
    ],
)
def test_a_shell_completes_commands_formats_and_files(words, expected, run_python, monkeypatch):
    *done, last = words.split(" ")
    env = {
        "_EXTENSOR_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join([*done, last]),
        "COMP_CWORD": str(len(done)),
    }
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    printed = run_python(RUN.format(words=[]), fresh=True, check=False).stdout
    assert expected <= set(printed.splitlines())
