# SPDX-License-Identifier: Apache-2.0
"""Web servers that hang, never end, or pack what they send. None shares code with the reader."""

import contextlib
import http.server
import itertools
import threading
import time
import zlib

SIZE = 20 << 20  # bytes of the file that each of them says it has


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def _begin(self, status=200, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _chunks(self, pieces):
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.server.sent += len(piece)
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        self.server.asked.append((self.command, self.path, self.headers.get("Range")))
        with contextlib.suppress(OSError):
            getattr(self, self.server.kind)()

    do_HEAD = do_GET

    def _is_head(self):
        if self.command == "HEAD":
            self._begin(Content_Length=SIZE, Accept_Ranges="bytes")
        return self.command == "HEAD"

    def silent(self):
        self.server.ended.wait(60)

    def silent_ranges(self):
        self._is_head() or self.silent()

    def silent_bytes(self):
        """Half of what is asked for."""
        if not self._is_head():
            first, last = map(int, self.headers["Range"][6:].split("-"))
            self._begin(206, Content_Length=last - first + 1)
            self.wfile.write(bytes((last - first + 1) // 2))
            self.silent()

    def slow_bytes(self):
        if not self._is_head():
            self._begin(206, Content_Length=SIZE)
            while not self.server.ended.wait(0.05):
                self.wfile.write(b"x")

    def endless_file(self):
        if not self._is_head():
            self._begin(Transfer_Encoding="chunked")
            self._chunks(itertools.repeat(bytes(1 << 20)))

    def bomb(self):
        """8 GiB of zeros in 8 MiB."""
        if not self._is_head():
            packer = zlib.compressobj(9, zlib.DEFLATED, 31)
            packed = packer.compress(bytes(1 << 26)) + packer.flush()
            self._begin(206, Content_Encoding="gzip", Transfer_Encoding="chunked")
            self._chunks(itertools.repeat(packed, 128))

    def packed_page(self):
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        packed = packer.compress(b"<a href='x'>x</a>" * (1 << 18)) + packer.flush()
        self._begin(Content_Type="text/html", Content_Encoding="gzip", Content_Length=len(packed))
        if self.command == "GET":
            self.wfile.write(packed)

    def endless_page(self):
        self._begin(Content_Type="text/html", Transfer_Encoding="chunked")
        if self.command == "GET":
            self._chunks(b"<a href='%d.txt'>x</a>" % i * 1000 for i in itertools.count())

    def endless_folders(self):
        page = b"<a href='more/'>more</a>"
        self._begin(Content_Type="text/html", Content_Length=len(page))
        if self.command == "GET":
            self.wfile.write(page)

    def slow_page(self):
        self._begin(Content_Type="text/html", Transfer_Encoding="chunked")
        if self.command == "GET":
            while not self.server.ended.wait(0.05):
                self._chunks_piece()

    def _chunks_piece(self):
        self.wfile.write(b"1\r\nx\r\n")


@contextlib.contextmanager
def hostile(kind):
    """A server; .url is that of a file or folder, .sent the bytes that were sent, .asked the
    requests."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.kind, server.sent, server.asked, server.ended = kind, 0, [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/log"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for(server, ranges, seconds=20):
    """Returns when something was asked for, a range if `ranges`."""
    last = time.monotonic() + seconds
    while not any(asked or not ranges for *_, asked in server.asked):
        assert time.monotonic() < last, server.asked
        time.sleep(0.05)
