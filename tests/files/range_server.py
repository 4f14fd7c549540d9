"""An HTTP server of files on loopback, which counts requests and may answer badly."""

import contextlib
import http.server
import pathlib
import re
import sys
import threading
import time
import urllib.parse


class RangeServer:
    """Serves the files of a dict, by HEAD and by GET of ranges.

    Args:
        files: The content of each path.
    """

    def __init__(self, files):
        self.files = dict(files)
        self.requests = []
        self.latency = 0.0
        self.has_etags = self.knows_if_match = True
        self.now = self.most = 0
        """How many requests are answered now, and were at most."""
        self.at_once = []
        """How many were answered when each of them came."""
        self.bad = []
        """What the next GETs do instead.

        "503", "429", "403", "short", "wrong range", "cut", "all" (the whole file), "stall", "slow"
        (a tenth of the bytes each 0.2 seconds).
        """
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextlib.contextmanager
    def running(self):
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def _handler(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer(None)

            def do_GET(self):
                self.answer(self.headers.get("Range"))

            def answer(self, asked):
                path = urllib.parse.unquote(self.path).lstrip("/")
                outer.requests.append((self.command, asked))
                outer.now += 1
                outer.at_once.append(outer.now)
                outer.most = max(outer.most, outer.now)
                time.sleep(outer.latency)
                outer.now -= 1
                bad = outer.bad.pop(0) if outer.bad and self.command == "GET" else None
                data = outer.files.get(path)
                if bad == "stall":
                    time.sleep(1.5)
                if bad == "all":
                    asked = None
                if bad in ("503", "429", "403") or data is None:
                    return self.head(404 if data is None else int(bad), 0)
                etag = f'"{hash(data) & 0xFFFFFFFF:x}"'
                if outer.knows_if_match and self.headers.get("If-Match") not in (None, etag):
                    return self.head(412, 0)
                start, end = 0, len(data)
                if found := re.match(r"bytes=(\d*)-(\d*)", asked or ""):
                    start = int(found[1]) if found[1] else max(0, end - int(found[2]))
                    end = min(end, int(found[2]) + 1) if found[1] and found[2] else end
                if bad == "short":
                    end = start + (end - start) // 2
                shift = 7 if bad == "wrong range" else 0
                span = f"bytes {start + shift}-{end + shift - 1}/{len(data)}"
                self.head(206 if found else 200, end - start, etag, span if found else None)
                if self.command == "HEAD":
                    return None
                if bad == "cut":
                    self.wfile.write(data[start : start + (end - start) // 2])
                    self.wfile.flush()
                    self.close_connection = True
                    self.connection.shutdown(2)
                    return None
                step = max(1, (end - start) // 10) if bad == "slow" else len(data)
                for begin in range(start, end, step):
                    self.wfile.write(memoryview(data)[begin : min(begin + step, end)])
                    self.wfile.flush()
                    time.sleep(0.2 if bad == "slow" else 0)
                return None

            def head(self, code, size, etag=None, span=None):
                self.send_response(code)
                self.send_header("Content-Length", str(size))
                self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
                etag = etag if outer.has_etags else None
                for name, value in (("ETag", etag), ("Content-Range", span)):
                    if value is not None:
                        self.send_header(name, value)
                self.end_headers()

        return Handler


if __name__ == "__main__":  # python -m tests.files.range_server folder latency
    found = pathlib.Path(sys.argv[1]).iterdir()
    server = RangeServer({path.name: path.read_bytes() for path in found if path.is_file()})
    server.latency = float(sys.argv[2])
    with server.running():
        print(server.url, flush=True)
        threading.Event().wait()
