"""Functions of the processes that run rows of the matrix."""

import contextlib
import json
import os
import socket
import threading
import traceback


class Report:
    """The checks of a process, by name.

    A check takes a kind and the other arguments of `results`, and raises an error if the row fails.
    """

    def __init__(self):
        self.checks = {}

    def check(self, name, *more):
        """Registers a function as a check; `more` are its last arguments."""

        def decorate(function):
            self.checks[name] = lambda *args: function(*args, *more)
            return function

        return decorate

    def results(self, *args):
        """Returns for each check and kind the error text; empty if the check passes."""
        # Imported late, because a check may concern this import, or set what it needs.
        from tests.apis.kinds import KINDS

        return {
            name: {kind.name: _result(check, kind, *args) for kind in KINDS}
            for name, check in self.checks.items()
        }


def _result(check, *args):
    try:
        check(*args)
    except Exception:
        return traceback.format_exc()
    return ""


def print_and_end(results):
    """Prints the results as JSON, and ends the process at once, because servers end slowly."""
    print(json.dumps(results), flush=True)
    os._exit(0)


def free_ports(count):
    """Returns numbers of unused ports of this machine."""
    with contextlib.ExitStack() as stack:
        # All stay open until the last is found, so that no port is found twice.
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]


def at_once(function):
    """Calls a function in eight threads at once, and raises the first error."""
    barrier, errors = threading.Barrier(8), []

    def run():
        try:
            barrier.wait()
            function()
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
