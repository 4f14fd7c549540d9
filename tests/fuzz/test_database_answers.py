"""A damaged answer of a Realtime Database is refused by name, or read as its client reads it."""

import functools
import http.server
import json
import random
import threading

import pytest

import extensor as xt
from tests.fuzz import cases
from tests.fuzz.mutation import damaged

pytest.importorskip("firebase_admin.db", reason="firebase-admin is not installed")

ROWS = {f"k{i}": {"i": i, "s": f"word {i}", "l": [{"a": i / 4}] * (i % 3)} for i in range(1, 30)}
WHOLE = json.dumps(ROWS).encode()


def test_damaged_answers_are_refused_or_read_as_they_are():
    ends = cases.run(__name__, cases.seeds(1000))
    assert {"refused", "read"} <= set(ends)


class _Answers(http.server.BaseHTTPRequestHandler):
    body, is_short = b"", False

    def do_GET(self):
        self.send_response(200)
        if not self.is_short:  # else the end of the connection is that of the answer
            self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args):
        pass


@functools.cache
def _node():
    import firebase_admin
    from firebase_admin import db

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    app = firebase_admin.initialize_app(options={"projectId": "project"}, name="answers")
    return db.reference("it", app=app, url=f"http://127.0.0.1:{made.server_port}?ns=project")


def case(seed):
    dice = random.Random(seed)
    node = _node()
    _Answers.body, _Answers.is_short = damaged(dice, WHOLE), dice.random() < 0.5
    nulls = {"i": "mask", "s": "mask", "l": "empty", "l.a": "mask"}
    names = ["i", "s", "l.a"]
    try:
        found = xt.read_realtime_database(node, names, nulls=nulls)
    except xt.errors.ExtensorError:
        return "refused"
    theirs = node.get()  # also where bytes are not UTF-8
    wanted = [
        {name: row.get(name, [] if name == "l" else None) for name in ("i", "s", "l")}
        for row in (theirs.values() if isinstance(theirs, dict) else theirs)
    ]
    for row in wanted:
        row["l"] = [{"a": item.get("a")} for item in row["l"]]
    assert found.to_py() == wanted
    return "read"
