# SPDX-License-Identifier: Apache-2.0
"""A web server of a folder that gives ranges of files, and keeps account of them."""

import contextlib
import http.server
import os
import re
import threading
import urllib.parse


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def _send(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_GET(self):
        server = self.server
        if server.status:
            return self._send(server.status, b"no")
        path = urllib.parse.unquote(self.path.partition("?")[0]).lstrip("/")
        local = os.path.join(server.folder, path)
        if os.path.isdir(local):
            names = sorted(name + "/" * os.path.isdir(os.path.join(local, name))
                           for name in os.listdir(local))
            page = "".join(f'<a href="{urllib.parse.quote(name)}">{name}</a>\n' for name in names)
            return self._send(200, page.encode(), Content_Type="text/html")
        if not os.path.isfile(local):
            return self._send(404, b"none")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None or not server.ranges:
            with open(local, "rb") as file:
                return self._send(200, file.read(), Accept_Ranges="bytes")
        first, last = map(int, wanted.groups())
        failed = server.fails and server.fails(path, first)  # it may change the file first
        with open(local, "rb") as file:
            data = file.read()
        server.asked.append((path, first, min(last + 1, len(data))))
        if failed:
            return self._send(503, b"try later")
        self._send(206, data[first:last + 1],
                   Content_Range=f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}")

    do_HEAD = do_GET


@contextlib.contextmanager
def serve(folder, ranges=True):
    """A server; .url is where the folder is, .asked the ranges that it gave: (path, first, end).
    .fails(path, first): which of them fail. .status: what it answers to everything."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.folder, server.asked, server.ranges, server.fails = os.fspath(folder), [], ranges, None
    server.status = None
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
