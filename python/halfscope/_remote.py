# SPDX-License-Identifier: Apache-2.0
"""Logs that lie elsewhere: s3://, gs://, https:// and what else fsspec knows.

Files with a log's names and sizes lie in a folder, without their bytes. These come in ranges,
several at a time, when they are read, and go when they have been counted.
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

_BLOCK = 1 << 18  # the least that is asked for, and what is kept account of
_REQUEST = (1 << 23) // _BLOCK
_AHEAD = (1 << 26) // _BLOCK  # of files that are read from front to back
_KEPT = (1 << 20) // _BLOCK  # at a file's beginning: it is looked at again
_THREADS = 8
_PAUSES = (0.5, 2, 8)  # seconds before a range is asked for again
_LOOK = 0.2  # seconds between looks at whether the bytes are still awaited


class _File:
    """One file, and which of its blocks are here or under way."""

    def __init__(self, local, size, read, pool, awaited):
        """read: what gives the bytes from begin up to end. awaited: whether the caller still waits."""
        self._local, self._size, self._awaited = local, size, awaited
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
        """Returns when they are here, or are no longer awaited. Raises OSError."""
        first, last = begin // _BLOCK, -(-end // _BLOCK)
        with self._lock:
            self._request(self._missing(first, last))
            if begin > 0 and last > self._last and first + 1 >= self._last:  # from front to back
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
    """What to install, as fsspec says it, or as the missing module is called."""
    missing = next((one.name for one in chain_of(error) if getattr(one, "name", None)), None)
    return f"{hidden(url)} needs {missing}; install it with pip install {missing}" if missing else (
        f"{hidden(url)}: {reason(error, url)}")


def _filesystem(url):
    """(file system of fsspec, path in it)"""
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
        pool = _bounds.Threads(_THREADS)
        self._undo.callback(pool.end)
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

    def call(self, function, *arguments):
        """The result of a function that reads the logs. If bytes have to come, it runs in a thread
        of its own, and Ctrl-C ends the call while they are awaited."""
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
            return bounded(filesystem, "cat_file", remote, start=begin, end=end)

        self._files[local] = _File(local, size, read, self._pool, self._awaits)
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
        return None if self._awaits() else f"{path}: is no longer awaited"

    def _awaits(self):
        return self._interrupted is None

    def leave(self, path, begin, end):
        if path in self._files:
            self._files[path].leave(begin, end)
