"""Functions of the processes that run rows of the matrix."""

import contextlib
import json
import os
import socket
import threading
import traceback


class Report:
    """The checks of a process, by name.

    A check takes a kind and whatever else `results` is given, and raises where the row is wrong.
    """

    def __init__(self):
        self.checks = {}

    def check(self, name, *more):
        """Makes a function a check; `more` are its last arguments."""

        def decorate(function):
            self.checks[name] = lambda *args: function(*args, *more)
            return function

        return decorate

    def results(self, *args):
        """Returns for each check and kind "" or what went wrong."""
        # Not before: importing the kinds may be what is checked, and what they need chosen before.
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
    """Prints what the other process reads, and ends this one at once: servers have no quick end."""
    print(json.dumps(results), flush=True)
    os._exit(0)


def free_ports(count):
    """Returns numbers of ports of this machine that nobody listens at."""
    with contextlib.ExitStack() as stack:
        # All are held until the last is found, so that none is found twice.
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]


def at_once(function):
    """Calls a function in eight threads at once, and raises what one of them did."""
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
