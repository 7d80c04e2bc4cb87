# SPDX-License-Identifier: Apache-2.0
"""Limits for servers: bytes, seconds and pages. docs/remote.md lists them."""

import asyncio
import concurrent.futures
import queue
import re
import threading

from halfscope._urls import Empty, Refused

LISTING_SECONDS = 300  # to list one URL
LISTING_BYTES = 1 << 26  # all pages of links of a web server together
LISTING_PAGES = 10_000
ANSWER_SECONDS = 300  # for one request
SILENT_SECONDS = 30  # time without a byte
_AT_ONCE = 8
_COPY = "copy it and name the copy"
_SMALLER = "name a folder with fewer files, or copy it and name the copy"


class Threads:
    """A pool of daemon threads: the program can end while they run."""

    def __init__(self, count):
        self._jobs = queue.SimpleQueue()
        self.ended = threading.Event()
        for _ in range(count):
            threading.Thread(target=self._work, daemon=True).start()
        self._count = count

    def submit(self, function, *arguments):
        future = concurrent.futures.Future()
        self._jobs.put((future, function, arguments))
        return future

    def end(self):
        """Ends the threads. Jobs that have not begun are dropped."""
        self.ended.set()
        for _ in range(self._count):
            self._jobs.put(None)

    def _work(self):
        while (job := self._jobs.get()) is not None and not self.ended.is_set():
            future, function, arguments = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments))
                except BaseException as error:
                    future.set_exception(error)


class _Listed:
    """Counts the pages of links that a session read. Raises Refused above the limits."""

    def __init__(self):
        self.pages = self.bytes = 0

    def add_page(self):
        self.pages += 1
        if self.pages > LISTING_PAGES:
            raise Refused(f"its listing has more than {LISTING_PAGES:,} pages; {_SMALLER}")

    def room(self):
        return LISTING_BYTES - self.bytes


def _response_class(listed):
    import aiohttp

    class Response(aiohttp.ClientResponse):
        """A response whose body may not be longer than requested and is never unpacked."""

        async def read(self):
            if self._body is None:
                try:
                    self._body = await self._bounded()
                except BaseException:
                    self.close()
                    raise
            return self._body

        async def _bounded(self):
            packed = self.headers.get("Content-Encoding", "identity")
            if packed not in ("", "identity"):
                raise Refused(f"the server packs its answer ({packed[:20]}), which was asked for as "
                              f"it is; {_COPY}")
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.request_info.headers.get("Range", ""))
            if not asked:
                listed.add_page()
            room = int(asked[2]) - int(asked[1]) + 1 if asked else listed.room()
            most = room if self.status < 300 else max(room, 1 << 20)  # errors have pages too
            body = bytearray()
            async for chunk in self.content.iter_any():
                body += chunk
                if len(body) > most:
                    raise Refused(f"more bytes arrive than the {room:,} that were asked for; its "
                                  f"server gives no ranges: {_COPY}" if asked else
                                  f"its listing is longer than {LISTING_BYTES >> 20} MiB; {_SMALLER}")
            if not asked:
                listed.bytes += len(body)
            return bytes(body)

    return Response


async def _web_client(**settings):
    import aiohttp

    settings.setdefault("timeout", aiohttp.ClientTimeout(
        total=ANSWER_SECONDS, sock_connect=SILENT_SECONDS, sock_read=SILENT_SECONDS))
    headers = {"Accept-Encoding": "identity", **settings.pop("headers", {})}
    return aiohttp.ClientSession(headers=headers, auto_decompress=False,
                                 response_class=_response_class(_Listed()), **settings)


def options(url):
    """Returns the settings of fsspec's file system for a URL."""
    web = url.startswith(("http://", "https://"))
    return {"get_client": _web_client, "skip_instance_cache": True} if web else {}


def bounded(filesystem, method, *arguments, **settings):
    """Calls a method of a file system. Raises TimeoutError. Ctrl-C ends the call at once."""
    if not filesystem.async_impl:
        return getattr(filesystem, method)(*arguments, **settings)
    from fsspec.asyn import sync

    return sync(filesystem.loop, getattr(filesystem, f"_{method}"), *arguments,
                timeout=ANSWER_SECONDS, **settings)


async def _web_files(filesystem, path):
    """Returns the files below a web server's page of links. Raises the first error of any page."""
    files, folders, known = [], [path], {path}
    while folders:
        for entry in await filesystem._ls(folders.pop(), detail=True):
            name = entry["name"]
            if name not in known:
                known.add(name)
                (folders if name.endswith("/") else files).append(name)
    return files or ([] if path.endswith("/") else [path])


async def _found(filesystem, path):
    """Returns {path: bytes or None} for all files below a folder."""
    if filesystem.protocol != ("http", "https"):
        found = await filesystem._find(path, detail=True)
        return {name: info.get("size") for name, info in found.items()}
    turn = asyncio.Semaphore(_AT_ONCE)

    async def size(name):
        async with turn:
            return (await filesystem._info(name)).get("size")

    names = [name for name in await _web_files(filesystem, path)
             if not name.partition("?")[0].endswith("/")]
    return dict(zip(names, await asyncio.gather(*map(size, names))))


def sizes(filesystem, path):
    """Returns {path: bytes} for a file, or for all files below a folder. Raises Empty if none."""
    info = bounded(filesystem, "info", path)
    if info.get("mimetype") == "text/html" and not path.endswith(("/", ".html")):
        path += "/"  # a web server's page of links, for a folder
    if info["type"] == "file" and info.get("size") is not None and not path.endswith("/"):
        return {path: info["size"]}
    if filesystem.async_impl:
        from fsspec.asyn import sync

        found = sync(filesystem.loop, _found, filesystem, path, timeout=LISTING_SECONDS)
    else:
        found = {name: info.get("size")
                 for name, info in filesystem.find(path, detail=True).items()}
    found = {name: size for name, size in found.items()
             if not name.partition("?")[0].endswith("/")}  # no folders; an empty one lists itself
    for name, size in found.items():
        if size is None and (size := bounded(filesystem, "info", name).get("size")) is None:
            raise OSError(f"{name} has no size; {_COPY}")
        found[name] = size
    if not found:
        raise Empty
    return found
