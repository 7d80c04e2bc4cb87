# SPDX-License-Identifier: Apache-2.0
"""Logs at URLs: s3://, gs://, https:// and other schemes of fsspec.

A temporary folder holds sparse files with the names and sizes of the log's files. Their bytes are
fetched in ranges, several at a time, when they are read, and freed when they have been counted.
"""

import concurrent.futures
import contextlib
import functools
import os
import shutil
import tempfile
import threading
import time

from halfscope import _bounds, _halfscope
from halfscope._bounds import bounded
from halfscope._logs import is_remote
from halfscope._urls import STORES, Refused, chain_of, hidden, reason, shown, why

_BLOCK = 1 << 18  # bytes; files are requested and freed in blocks
_REQUEST = (1 << 23) // _BLOCK  # most blocks of one request
_AHEAD = (1 << 26) // _BLOCK  # blocks that are fetched in advance if a file is read in order
_KEPT = (1 << 20) // _BLOCK  # first blocks of a file, never freed: they are read again
_THREADS = 8
_PAUSES = (0.5, 2, 8)  # seconds before each new try of a request
_LOOK = 0.2  # seconds between checks whether the caller still waits


class _File:
    """One file, with the blocks that were fetched or requested. All methods are thread-safe."""

    def __init__(self, local, size, read, pool, awaited):
        """local: path of the sparse file. read(begin, end): fetches bytes. pool: runs the requests.
        awaited(): returns True while the caller still waits."""
        self._local, self._size, self._awaited = local, size, awaited
        self._read, self._pool = read, pool
        self._end = -(-size // _BLOCK)
        self._lock = threading.Lock()
        self._blocks = {}  # number of a block: the future of its request
        self._last = 0  # block at which the last call of need() ended

    def expect(self, begin, end):
        """Requests bytes that will be needed. Does not wait."""
        with self._lock:
            self._request(self._missing(begin // _BLOCK, min(self._end, -(-end // _BLOCK))))

    def need(self, begin, end):
        """Returns when the bytes are in the file or the caller waits no longer. Raises OSError."""
        first, last = begin // _BLOCK, -(-end // _BLOCK)
        with self._lock:
            self._request(self._missing(first, last))
            if begin > 0 and last > self._last and first + 1 >= self._last:  # reading in order
                ahead = self._missing(last, min(self._end, last + _AHEAD))
                self._request((a, b) for a, b in ahead if b - a == _REQUEST or b == self._end)
            self._last = last
            waited = {self._blocks[block] for block in range(first, last)}
        while waited and self._awaited():
            done, waited = concurrent.futures.wait(
                waited, _LOOK, return_when=concurrent.futures.FIRST_EXCEPTION)
            for future in done:
                future.result()

    def leave(self, begin, end):
        """Frees bytes that are not needed for now. They can be requested again."""
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
        """Yields ranges of blocks that are not requested yet, each at most _REQUEST long."""
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
        last = time.monotonic() + _bounds.ANSWER_SECONDS
        for pause in (*_PAUSES, None):
            try:
                data = self._read(begin, end)
                break
            except Refused as error:
                raise OSError(str(error)) from None
            except Exception as error:
                if pause is None or time.monotonic() > last or self._pool.ended.wait(pause):
                    raise OSError(f"bytes {begin} to {end} do not arrive ({reason(error)}); "
                                  "check the connection, and start again") from None
        if len(data) != end - begin:
            raise OSError(f"{len(data)} bytes arrived, expected {end - begin} (bytes {begin} to "
                          f"{end}); the file has changed, or its server gives no ranges: copy it "
                          "and name the copy")
        with open(self._local, "r+b") as file:
            os.pwrite(file.fileno(), data, begin)


def _needed(url, error):
    """Returns a message that names the missing module, or else fsspec's own message."""
    missing = next((one.name for one in chain_of(error) if getattr(one, "name", None)), None)
    return f"{hidden(url)} needs {missing}; install it with pip install {missing}" if missing else (
        f"{hidden(url)}: {reason(error, url)}")


def _filesystem(url):
    """Returns (file system of fsspec, path in it)."""
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{hidden(url)} needs fsspec; install it with "
                          "pip install 'halfscope[remote]'") from None
    try:
        return fsspec.core.url_to_fs(url, **_bounds.options(url))
    except ImportError as error:
        protocol, _, path = url.partition("://")
        with contextlib.suppress(ImportError, KeyError):
            from obstore.fsspec import FsspecStore

            return FsspecStore(STORES[protocol]), path
        raise ImportError(_needed(url, error)) from None


class Remote:
    """A context with logs, those at URLs as local files. Also the source that origins.hpp calls for
    bytes: need() and leave()."""

    def __init__(self, logs):
        """Raises BadInput if a URL cannot be listed, and ImportError if a library is missing."""
        self._undo = contextlib.ExitStack()
        self._files = {}
        self._interrupted = None  # exception that ended the wait for bytes
        self.notes = []
        self.renamed = []  # (beginning of a local path, beginning of its URL)
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self.logs = [self._add(log) if is_remote(log) else log for log in logs]
            undo.pop_all()

    @property
    def source(self):
        """This object if some log is at a URL, else None."""
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
        pool = _bounds.Threads(_THREADS)
        self._undo.callback(pool.end)
        return pool

    def named(self, text):
        """Returns a message with URLs in place of local paths."""
        for here, there in self.renamed:
            text = text.replace(here, there)
        return text

    @contextlib.contextmanager
    def naming(self):
        """A context in which a BadInput names URLs in place of local paths."""
        try:
            yield
        except _halfscope.BadInput as error:
            if self._interrupted is not None:
                raise self._interrupted from None
            raise _halfscope.BadInput(self.named(str(error))) from None

    def call(self, function, *arguments):
        """Returns the result of a function that reads the logs. If some log is at a URL, it runs in
        a thread of its own, so that Ctrl-C ends the call while it waits for bytes."""
        if self.source is None:
            return function(*arguments)
        thread = _bounds.Threads(1)
        future = thread.submit(function, *arguments)
        try:
            return future.result()
        except KeyboardInterrupt as error:
            self._interrupted = error
            concurrent.futures.wait([future], 1)  # before its files are removed
            raise
        finally:
            thread.end()

    def _add(self, url):
        try:
            filesystem, path = _filesystem(url)
            sizes = _bounds.sizes(filesystem, path)
        except ImportError:
            raise
        except Exception as error:
            raise _halfscope.BadInput(f"{hidden(url)}: {why(error, url)}") from None
        # The name of the parent folder is kept too, because a rank belongs to it.
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
                except OSError as error:  # the name is not valid here, or used by another file
                    self.notes.append(f"{shown(url)}: '{'/'.join(below)}' cannot be a file here "
                                      f"({error.strerror}), and is left out")
        return log

    def _place(self, filesystem, remote, size, local):
        """Creates the sparse file of a remote file."""
        os.makedirs(os.path.dirname(local), exist_ok=True)
        with open(local, "xb") as file:
            file.truncate(size)

        def read(begin, end):
            return bounded(filesystem, "cat_file", remote, start=begin, end=end)

        self._files[local] = _File(local, size, read, self._pool, self._awaits)
        if local.endswith(".safetensors"):
            self._files[local].expect(0, 1)  # the header

    def need(self, path, begin, end):
        if path in self._files:
            try:
                self._files[path].need(begin, end)
            except OSError as error:
                return f"{path}: {error}"
            except BaseException as error:
                self._interrupted = error
                return f"{path}: is no longer awaited"
        return None if self._awaits() else f"{path}: is no longer awaited"

    def _awaits(self):
        return self._interrupted is None

    def leave(self, path, begin, end):
        if path in self._files:
            self._files[path].leave(begin, end)
