"""Which tests `make test`, `make test-rest` and `make test-all` run, and in which order.

A plugin of pytest with three tiers:

- quick: what runs before each commit. A test is quick unless it is marked. Hypothesis draws a few
  examples only.
- rest: all others except those marked `slow`, and the properties again with more examples. CI runs
  quick and rest.
- all: every test. This is what `pytest` runs without `--tier`.

`@pytest.mark.whole("reason")` takes a test out of the quick tier, `pytestmark =
pytest.mark.whole("reason")` a file; the same line in a conftest.py takes out its folder. Such files
are not even imported for the quick tier.

Of a test with several parameters, the quick tier has the cases on one diagonal of the matrix: each
value of each parameter occurs in at least one of them.

The files run in an order drawn by `--seed`, so that no test comes to depend on another one. The
tests of a file keep their order. Files with one `@pytest.mark.together("name")` share a server, and
stay together. Those with `@pytest.mark.first` come first, because one of their tests takes a
minute: no process begins it when the others have ended. Without the option the seed follows from
the commit: one commit has one order.
"""

import collections
import functools
import itertools
import random
import re
import subprocess

import pytest

TIERS = ("quick", "rest", "all")
_WHOLE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.whole\(", re.MULTILINE)


def pytest_addoption(parser):
    group = parser.getgroup("extensor")
    group.addoption("--tier", choices=TIERS, default="all", help="which tests to run")
    group.addoption("--seed", type=int, help="of the order of the files; by default of the commit")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    # The processes of pytest-xdist get the options of this one.
    if config.option.seed is None:
        config.option.seed = _seed_of_commit(config.rootpath)
    # pytest-xdist does not show this error of pytest.
    for name in config.args:
        if not (config.invocation_params.dir / name.split("::")[0]).exists():
            raise pytest.UsageError(f"file or directory not found: {name}")


def pytest_report_header(config):
    return f"tier: {config.option.tier}, order of the files: --seed {config.option.seed}"


def pytest_ignore_collect(collection_path, config):
    """Leaves out files that have no quick test, before they are imported."""
    if config.option.tier == "quick" and is_whole(collection_path):
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    tier = config.option.tier
    quick = set(map(id, quick_tests(items)))
    chosen, left_out = [], []
    for item in items:
        is_chosen = tier == "all" or _is_in(tier, item, id(item) in quick)
        (chosen if is_chosen else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = shuffled(chosen, config.option.seed)


def _is_in(tier, item, is_quick):
    if tier == "quick":
        return is_quick
    is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return (not is_quick or is_property) and item.get_closest_marker("slow") is None


def quick_tests(items):
    """Returns the tests of the quick tier."""
    return diagonals(
        [
            item
            for item in items
            if item.get_closest_marker("slow") is None
            and item.get_closest_marker("whole") is None
            and not is_whole(item.path)
        ]
    )


@functools.cache
def is_whole(path):
    """Returns whether a file, or the folder of a conftest, is marked as a whole."""
    if path.is_dir():
        conftest = path / "conftest.py"
        return conftest.exists() and _WHOLE.search(conftest.read_text()) is not None
    if path.suffix != ".py":
        return False
    return is_whole(path.parent) or _WHOLE.search(path.read_text()) is not None


def diagonals(items):
    """Returns the cases of each test so that each value of each parameter is in one of them."""
    tests = collections.defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    kept = {id(case) for cases in tests.values() for case in _diagonal(cases)}
    return [item for item in items if id(item) in kept]


def _diagonal(cases):
    axes = _axes(cases[0])
    if not axes:
        return cases
    numbers = [collections.defaultdict(itertools.count().__next__) for _ in axes]
    positions = [
        tuple(
            number[tuple(id(case.callspec.params[name]) for name in axis)]
            for axis, number in zip(axes, numbers, strict=True)
        )
        for case in cases
    ]
    sizes = [len(number) for number in numbers]

    def is_outside(i):
        return positions[i] != tuple(max(positions[i]) % size for size in sizes)

    seen, chosen = set(), []
    # The cases of the diagonal come first. Others fill the gaps of a matrix that is not full.
    for i in sorted(range(len(cases)), key=is_outside):
        values = set(enumerate(positions[i]))
        if values - seen:
            chosen.append(cases[i])
            seen |= values
    return chosen


def _axes(case):
    """Returns the names of the parameters of a test, in groups that take their values together."""
    if not hasattr(case, "callspec"):
        return []
    axes = []
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0]
        axes.append(names.replace(" ", "").split(",") if isinstance(names, str) else list(names))
    marked = {name for axis in axes for name in axis}
    # Parameters of fixtures have no mark.
    return axes + [[name] for name in case.callspec.params if name not in marked]


def shuffled(items, seed):
    """Returns the tests with their files in another order."""
    files = collections.defaultdict(list)
    for item in items:
        together = item.get_closest_marker("together")
        files[together.args[0] if together else str(item.path)].append(item)
    order = sorted(files)
    random.Random(seed).shuffle(order)
    order.sort(key=lambda file: not any(item.get_closest_marker("first") for item in files[file]))
    return [item for file in order for item in files[file]]


def _seed_of_commit(root):
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0  # the sources of a release are no repository
    return int(done.stdout[:6], 16)
