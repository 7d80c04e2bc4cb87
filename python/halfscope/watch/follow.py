# SPDX-License-Identifier: Apache-2.0
"""Follows the files of a growing log: copies their newest bytes, which the readers then read."""

import os
import re
import shutil
import tempfile
from pathlib import Path

from halfscope._halfscope import BadInput

MOST = 16 << 20  # bytes of a log that are copied; the readers read the copy at each change
_MOST_RANKS, _MOST_FILES = 16, 256
_LAST = 256  # bytes before the end of the copy, which a file that was rewritten has no more


def _is_events(name):
    return "tfevents" in name


class Growing:
    """A file that grows, and its copy: the newest bytes. Binary files are not copied."""

    def __init__(self, path, copy):
        self.copy, self.base = copy, 0  # base: offset of the copy's first byte in the file
        self.restarts = -1  # times that the file was truncated or replaced
        self._path, self._read, self._last = path, 0, b""
        self._seen, self._binary = (None, 0), False
        self._events, self._json = _is_events(os.path.basename(path)), path.endswith(".json")
        copy.parent.mkdir(parents=True, exist_ok=True)

    def follow(self, status, limit):
        """Copies the new bytes, so that the copy has at most `limit`. status: of os.stat(). Returns
        True if the copy changed. Raises OSError if the file cannot be read."""
        seen = ((status.st_dev, status.st_ino), status.st_size)
        if seen == self._seen and status.st_size - self.base <= limit:
            return False
        with open(self._path, "rb") as file:
            anew = seen[0] != self._seen[0] or status.st_size < self._seen[1] or not self._continues(file)
            if anew:
                self.restarts += not self._json
                self.base = self._read = 0
                self._binary = not self._events and b"\0" in file.read(4096)
            if status.st_size - self.base > limit:
                self.base = self._read = status.st_size - limit // 4  # a quarter: it is rarely cut
                anew = True
            self._seen = seen
            return not self._binary and self._copy(file, anew)

    def _continues(self, file):
        file.seek(self._read - len(self._last))
        return file.read(len(self._last)) == self._last

    def _copy(self, file, anew):
        head = b""
        if anew and self.base and self._events:  # the version; readers find the next whole record
            file.seek(0)
            head = file.read(8)
            head += file.read(min(int.from_bytes(head, "little"), 4096) + 8)
        file.seek(self._read)
        if anew and self.base and not self._events:
            self._read += len(file.readline(self._seen[1] - self._read))
        data = file.read(max(self._seen[1] - self._read, 0))
        if not self._events and not self._json:  # the rest of the last line is still to come
            data = data[:max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
        self._read += len(data)
        self._last = (data if anew else self._last + data)[-_LAST:]
        with open(self.copy, "wb" if anew else "ab") as out:
            out.write(head + data)
        return anew or bool(data)


def _listed(folder, depth=2):
    """Returns {path: status} of the files that may belong to the log in a folder: of a run log
    those of its first ranks, of others those down to `depth` folders."""
    with os.scandir(folder) as entries:
        entries = {entry.name: entry for entry in entries
                   if not entry.name.startswith(".") and not entry.is_symlink()}
    folders = sorted(name for name, entry in entries.items() if entry.is_dir())
    ranks = [name for name in folders if re.fullmatch(r"rank-\d+", name)][:_MOST_RANKS]
    is_run_log = "run.json" in entries or bool(ranks)
    found = {entry.path: entry.stat() for name, entry in entries.items()
             if entry.is_file() and (not is_run_log or name == "run.json" or _is_events(name))}
    for name in ranks if is_run_log else folders if depth else ():
        if len(found) < _MOST_FILES:
            found.update(_listed(os.path.join(folder, name), depth - 1))
    return dict(list(found.items())[:_MOST_FILES])


class Follower:
    """Copies of the newest parts of a log's files, in a temporary folder. `log` is the path of the
    copy, for the functions that read logs. Use it in a `with` block."""

    def __init__(self, run):
        """run: path of the log. Raises BadInput if nothing is there."""
        if not os.path.exists(run):
            raise BadInput(f"{run}: no such file or folder; check the path, or start the training first")
        self.run = os.path.normpath(run)
        self._folder = tempfile.TemporaryDirectory(prefix="halfscope-")
        self.log = os.path.join(self._folder.name, "log", os.path.basename(os.path.abspath(run)))
        self._files, self._samples = {}, {}  # {path: Growing}, {name: path}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    @property
    def cut(self):
        """True if the copy lacks the first part of the log."""
        return any(file.base for file in self._files.values())

    @property
    def is_run_log(self):
        return any(os.path.basename(path) == "run.json" for path in self._files)

    @property
    def restarts(self):
        """Number of times that a file was truncated or replaced."""
        return sum(file.restarts for file in self._files.values() if file.restarts > 0)

    def poll(self):
        """Copies what is new. Returns True if something is. Raises FileNotFoundError if the log is
        gone, and OSError if it cannot be read."""
        files = _listed(self.run) if os.path.isdir(self.run) else {self.run: os.stat(self.run)}
        gone = [path for path in self._files if path not in files]
        for path in gone:
            self._files.pop(path).copy.unlink(missing_ok=True)
        return any([bool(gone), self._follow(files), self._link()])

    def _follow(self, files):
        """Copies the new bytes of all files. The last by name are the newest: the first of a folder
        are left out when the others have MOST bytes."""
        folders = {os.path.dirname(path) for path in files}
        left = dict.fromkeys(folders, MOST // max(len(folders), 1))
        changed = False
        for path, status in sorted(files.items(), reverse=True):
            if path not in self._files:
                copy = Path(self.log, "" if path == self.run else os.path.relpath(path, self.run))
                self._files[path] = Growing(path, copy)
            folder = os.path.dirname(path)
            changed |= self._files[path].follow(status, left[folder])
            left[folder] = max(left[folder] - status.st_size, 0)
        return changed

    def _link(self):
        """Links the newest samples, up to MOST bytes and one at least. Returns True if they are
        others than before."""
        tensors, links, size = os.path.join(os.path.abspath(self.run), "tensors"), {}, 0
        names = os.listdir(tensors) if self.is_run_log and os.path.isdir(tensors) else ()
        for name in sorted(names, key=lambda name: (len(name), name), reverse=True):
            if re.fullmatch(r"step-\d+\.safetensors", name) and (size <= MOST or not links):
                links[name] = os.path.join(tensors, name)
                size += os.stat(links[name]).st_size
        if links == self._samples:
            return False
        self._samples, folder = links, Path(self.log, "tensors")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, path in links.items():
            (folder / name).symlink_to(path)
        return True
