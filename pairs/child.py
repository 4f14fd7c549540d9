"""One run of pytest over one file, in a process of its own.

A script, given the path of a JSON file: `file` and `root` (the suite), `first` (what to import
before pytest starts, or null), `events` (the file to write to), `only` (ids of tests, or null for
all), `skip` (ids of tests), `options` (for pytest).

It writes one JSON line as each test starts and as it ends, so that what is written stays if the
process dies. It imports nothing of this package: its folder is not on the path of the tests.
"""

import importlib
import importlib.util
import json
import os
import sys
import traceback


def import_first(first):
    """Imports a module by its name, or by the path of its file."""
    if not first.endswith(".py"):
        importlib.import_module(first)
        return
    spec = importlib.util.spec_from_file_location("pairs_first", first)
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])


def package_root(folder):
    """Returns the folder that holds the package which a folder is in, or the folder itself."""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


class Reporter:
    """Tells pytest which tests to run, and writes what became of each."""

    def __init__(self, events, only, skip):
        self._events = events
        self._only = only if only is None else set(only)
        self._skip = set(skip)
        self._outcome = self._why = None

    def write(self, **event):
        self._events.write(json.dumps(event) + "\n")
        self._events.flush()

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(end=report.nodeid, outcome="not collected", why=_why(report))

    # Last: other plugins, and the suite's own conftest, may change the ids.
    def pytest_collection_modifyitems(self, config, items):
        chosen = [item for item in items if self._is_chosen(item.nodeid)]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
        self.write(collected=len(chosen))

    def _is_chosen(self, test):
        return test not in self._skip and (self._only is None or test in self._only)

    def pytest_runtest_logstart(self, nodeid):
        self._outcome, self._why = "passed", ""
        self.write(start=nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._outcome, self._why = "failed", self._why or _why(report)
        elif report.skipped and self._outcome == "passed":
            self._outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"

    def pytest_runtest_logfinish(self, nodeid):
        self.write(end=nodeid, outcome=self._outcome, why=self._why)

    def pytest_sessionfinish(self, exitstatus):
        self.write(finished=int(exitstatus))


def _why(report):
    """Returns the first line of what went wrong."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else crash.message
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if crash is None:  # a text with a traceback: what is wrong comes last
        lines.reverse()
    return lines[0].removeprefix("E ").strip()[:200] if lines else ""


def mark_flags_as_parsed():
    """Lets tests read the flags of absl, which `absltest.main` would have parsed."""
    try:
        from absl import flags
    except ModuleNotFoundError:
        return
    flags.FLAGS.mark_as_parsed()


def main(task):
    if sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]  # Python puts the folder of a script on the path
    # As pytest does later: or what is imported first would import the installed copy of the package
    # that the tests lie in.
    sys.path.insert(0, package_root(os.path.dirname(task["file"])))
    with open(task["events"], "a") as events:
        reporter = Reporter(events, task["only"], task["skip"])
        if task["first"] is not None:
            try:
                import_first(task["first"])
            except Exception:
                reporter.write(cannot_import=traceback.format_exc())
                return 1
        import pytest

        pytest.hookimpl(trylast=True)(Reporter.pytest_collection_modifyitems)
        mark_flags_as_parsed()
        # Nothing is written into the suite's folder.
        options = ["-q", "-p", "no:cacheprovider", f"--rootdir={task['root']}", *task["options"]]
        return pytest.main([*options, task["file"]], plugins=[reporter])


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        sys.exit(main(json.load(file)))
