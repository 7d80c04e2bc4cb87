# SPDX-License-Identifier: Apache-2.0
"""Logs that lie elsewhere: s3://, gs://, https:// and what else fsspec knows.

Files with a log's names and sizes lie in a folder, without their bytes. These come in ranges,
several at a time, when they are read, and go when they have been counted.
"""

import concurrent.futures
import contextlib
import functools
import os
import re
import shutil
import socket
import tempfile
import threading
import time
import urllib.parse

from halfscope import _halfscope
from halfscope._logs import is_remote

_BLOCK = 1 << 18  # the least that is asked for, and what is kept account of
_REQUEST = (1 << 23) // _BLOCK
_AHEAD = (1 << 26) // _BLOCK  # of files that are read from front to back
_KEPT = (1 << 20) // _BLOCK  # at a file's beginning: it is looked at again
_THREADS = 8
_PAUSES = (0.5, 2, 8)  # seconds before a range is asked for again
_SCHEMES = "s3://, gs://, az://, https://, http://"
_OBSTORE = {"s3": "s3", "s3a": "s3a", "gs": "gs", "gcs": "gs", "az": "az", "adl": "adl",
            "azure": "azure", "abfs": "abfs", "abfss": "abfss"}  # its names of what it reads


def shown(url):
    """The URL without what may be secret: user and password, and what follows a question mark."""
    scheme, _, rest = url.partition("://")
    rest = rest.partition("?")[0]
    host, slash, path = rest.partition("/")
    if scheme.startswith("http"):
        path = path.partition("#")[0]
        if not re.fullmatch(r"(.*@)?[^:@]*(:\d*)?", host):  # a password with a slash
            return f"{scheme}://{rest.rpartition('@')[2].partition('#')[0]}"
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _reason(error):
    text = " ".join(str(error).partition("Debug source")[0].split())  # that of obstore
    text = re.sub(r"\w+://[^\s'\"]+", lambda found: shown(found[0]), text)
    if len(text) > 300:
        text = text[:300].rpartition(" ")[0] + " ..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _Empty(Exception):
    """A folder without files."""


def _chain(error):
    """The error, and what it came from."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    return chain


def _place_of(chain, url):
    """HOST:PORT that did not answer."""
    for error in chain:
        host, port = getattr(error, "host", None), getattr(error, "port", None)
        if isinstance(host, str):
            break
    else:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    return host, f"{host}:{port}" if port else host


def _of_status(status):
    if status in (401, 403, 407):
        return f"the server refuses (HTTP {status}): check the credentials"
    if status in (404, 410):
        return "no such path; check the URL"
    return f"the server answers HTTP {status}; " + (
        "try again later" if status >= 500 else "check the URL")


def _why(error, url):
    """Why a URL cannot be listed, without what may be secret."""
    chain = _chain(error)
    web = url.startswith("http")
    statuses = [one.status for one in chain if isinstance(getattr(one, "status", None), int)]
    if isinstance(error, _Empty):
        return "holds no file; check the URL" + (
            ", and that the server lists a folder as a page of links" if web else "")
    if statuses:
        return _of_status(statuses[0])
    if any(isinstance(one, socket.gaierror) for one in chain):
        return f"host {_place_of(chain, url)[0]} is not known; check the URL"
    if any(isinstance(one, ConnectionRefusedError) for one in chain):
        return f"nothing answers at {_place_of(chain, url)[1]} (connection refused)"
    if web and any(isinstance(one, ValueError) for one in chain):  # whose text may be a password
        return "is no valid URL; check it"
    if web and isinstance(error, FileNotFoundError) and len(chain) > 1:
        error = chain[1]  # fsspec's is of whatever went wrong
    if isinstance(error, FileNotFoundError):
        return "no such path; check the URL"
    if isinstance(error, PermissionError):
        return f"access is refused ({_reason(error)}); check the credentials"
    if str(error).startswith("Protocol not known"):
        return (f"{url.partition('://')[0]}:// is not known; use one of {_SCHEMES}, or another "
                "scheme of fsspec: fsspec.available_protocols() lists them")
    return f"cannot be listed ({_reason(error)}); check the URL and your rights"


class _File:
    """One file, and which of its blocks are here or under way."""

    def __init__(self, local, size, read, pool):
        """read: what gives the bytes from begin up to end."""
        self._local, self._size = local, size
        self._read, self._pool = read, pool
        self._end = -(-size // _BLOCK)
        self._lock = threading.Lock()
        self._blocks = {}  # number: the future of its request
        self._last = 0  # where the last question ended

    def expect(self, begin, end):
        """They will be needed."""
        with self._lock:
            self._request(self._missing(begin // _BLOCK, min(self._end, -(-end // _BLOCK))))

    def need(self, begin, end):
        """Returns when they are here. Raises OSError."""
        first, last = begin // _BLOCK, -(-end // _BLOCK)
        with self._lock:
            self._request(self._missing(first, last))
            if begin > 0 and last > self._last and first + 1 >= self._last:  # from front to back
                ahead = self._missing(last, min(self._end, last + _AHEAD))
                self._request((a, b) for a, b in ahead if b - a == _REQUEST or b == self._end)
            self._last = last
            waited = {self._blocks[block] for block in range(first, last)}
        for future in waited:
            future.result()

    def leave(self, begin, end):
        """They are not needed for now."""
        first = max(_KEPT, -(-begin // _BLOCK))
        last = self._end if end >= self._size else end // _BLOCK
        with self._lock:
            here = [block for block in range(first, last)
                    if block in self._blocks and self._blocks[block].done()]
            if here:
                with open(self._local, "r+b") as file:
                    for block in here:
                        del self._blocks[block]
                        _halfscope.punch_hole(file.fileno(), block * _BLOCK, _BLOCK)

    def _missing(self, first, last):
        """Runs of blocks that nobody has asked for, none longer than a request."""
        while first < last:
            end = first
            while end < min(last, first + _REQUEST) and end not in self._blocks:
                end += 1
            if end > first:
                yield first, end
            first = max(end, first + 1)

    def _request(self, runs):
        for first, last in list(runs):
            future = self._pool.submit(self._fetch, first * _BLOCK, min(self._size, last * _BLOCK))
            for block in range(first, last):
                self._blocks[block] = future

    def _fetch(self, begin, end):
        for pause in (*_PAUSES, None):
            try:
                data = self._read(begin, end)
                break
            except Exception as error:
                if pause is None:
                    raise OSError(f"bytes {begin} to {end} do not arrive ({_reason(error)}); "
                                  "check the connection, and start again") from None
                time.sleep(pause)
        if len(data) != end - begin:
            raise OSError(f"{len(data)} bytes arrived, expected {end - begin} (bytes {begin} to "
                          f"{end}); the file has changed, or its server gives no ranges: copy it "
                          "and name the copy")
        with open(self._local, "r+b") as file:
            os.pwrite(file.fileno(), data, begin)


def _filesystem(url):
    """(file system of fsspec, path in it)"""
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{shown(url)} needs fsspec; install it with "
                          "pip install 'halfscope[remote]'") from None
    try:
        return fsspec.core.url_to_fs(url)
    except ImportError:
        protocol, _, path = url.partition("://")
        with contextlib.suppress(ImportError, KeyError):
            from obstore.fsspec import FsspecStore

            return FsspecStore(_OBSTORE[protocol]), path
        raise


def _sizes(filesystem, path):
    """{path: bytes} of one file, or of all in a folder and in those below."""
    info = filesystem.info(path)
    if info.get("mimetype") == "text/html" and not path.endswith(("/", ".html")):
        path += "/"  # a web server's page of a folder
    if info["type"] == "file" and info.get("size") is not None and not path.endswith("/"):
        return {path: info["size"]}
    sizes = {}
    for name, info in filesystem.find(path, detail=True).items():
        if name.partition("?")[0].endswith("/"):  # a folder, and itself if it is empty
            continue
        size = info.get("size")
        sizes[name] = filesystem.info(name).get("size") if size is None else size
        if sizes[name] is None:
            raise OSError(f"{name} has no size; copy it and name the copy")
    if not sizes:
        raise _Empty
    return sizes


class Remote:
    """Logs, those at URLs as files of a folder: a context, and the source of origins.hpp."""

    def __init__(self, logs):
        """Raises BadInput for a URL that cannot be listed, and ImportError where a library is
        missing."""
        self._undo = contextlib.ExitStack()
        self._files = {}
        self._interrupted = None  # by what, while bytes were awaited
        self.notes = []
        self.renamed = []  # (what paths here begin with, what they are shown with)
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self.logs = [self._add(log) if is_remote(log) else log for log in logs]
            undo.pop_all()

    @property
    def source(self):
        """Itself, if bytes have to come."""
        return self if self.renamed else None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self._undo.close()

    @functools.cached_property
    def _folder(self):
        folder = tempfile.mkdtemp(prefix="halfscope-")
        self._undo.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    @functools.cached_property
    def _pool(self):
        pool = concurrent.futures.ThreadPoolExecutor(_THREADS)
        self._undo.callback(pool.shutdown, wait=False, cancel_futures=True)
        return pool

    def named(self, text):
        """A message, with URLs in place of this machine's paths."""
        for here, there in self.renamed:
            text = text.replace(here, there)
        return text

    @contextlib.contextmanager
    def naming(self):
        """Errors in it name URLs."""
        try:
            yield
        except _halfscope.BadInput as error:
            if self._interrupted is not None:
                raise self._interrupted from None
            raise _halfscope.BadInput(self.named(str(error))) from None

    def _add(self, url):
        try:
            filesystem, path = _filesystem(url)
            sizes = _sizes(filesystem, path)
        except ImportError:
            raise
        except Exception as error:
            raise _halfscope.BadInput(f"{shown(url)}: {_why(error, url)}") from None
        # With the folder that it is in: a rank is a part of that.
        scheme, _, rest = shown(url).rstrip("/").partition("://")
        *above, place, name = ["", *rest.split("/")]
        root = os.path.join(self._folder, str(len(self.renamed)), "")
        self.renamed.append((root, f"{scheme}://" + "".join(f"{part}/" for part in above if part)))
        log = os.path.join(root, place, name)
        for remote, size in sizes.items():
            below = remote[len(path.rstrip("/")):].partition("?")[0].split("/")
            if ".." not in below and below[-1:] != [""] or below == [""]:
                try:
                    self._place(filesystem, remote, size, os.path.join(log, *below).rstrip("/"))
                except OSError as error:  # no file can have the name, or another one has it
                    self.notes.append(f"{shown(url)}: '{'/'.join(below)}' cannot be a file here "
                                      f"({error.strerror}), and is left out")
        return log

    def _place(self, filesystem, remote, size, local):
        """A file of its size, without its bytes."""
        os.makedirs(os.path.dirname(local), exist_ok=True)
        with open(local, "xb") as file:
            file.truncate(size)

        def read(begin, end):
            return filesystem.cat_file(remote, start=begin, end=end)

        self._files[local] = _File(local, size, read, self._pool)
        if local.endswith(".safetensors"):
            self._files[local].expect(0, 1)  # its header

    def need(self, path, begin, end):
        if path in self._files:
            try:
                self._files[path].need(begin, end)
            except OSError as error:
                return f"{path}: {error}"
            except BaseException as error:
                self._interrupted = error
                return f"{path}: is no longer awaited"

    def leave(self, path, begin, end):
        if path in self._files:
            self._files[path].leave(begin, end)
