# SPDX-License-Identifier: Apache-2.0
"""Follows the files of a growing log: copies their newest bytes, which the readers then read."""

import os
import re
from pathlib import Path

from halfscope._halfscope import BadInput

MOST = 16 << 20  # bytes of a log that are copied; the readers read the copy at each change
_MOST_RANKS, _MOST_FILES = 16, 256
_LAST = 256  # last bytes of the copy; if the file differs there, it was rewritten


class Growing:
    """A file that grows, and its copy: the newest bytes. Binary files are not copied. `base`: offset
    of the copy's first byte. `is_log`: not binary, nor JSON, which is written whole. restart: called
    when a log was truncated or replaced."""

    def __init__(self, path, copy, restart):
        self.copy, self.base, self.is_log = copy, 0, False
        self._path, self._read, self._last, self._restart = path, 0, b"", restart
        self._state, self._binary = None, False
        self._events, self._json = "tfevents" in os.path.basename(path), path.endswith(".json")

    def follow(self, status, limit):
        """Copies the new bytes, so that the copy has at most `limit`. status: of os.stat(). Returns
        True if the copy changed. Raises OSError if the file cannot be read; the next call tries again."""
        size, before = status.st_size, self._state
        state = (status.st_dev, status.st_ino), size, status.st_mtime_ns
        if state == before and (self._binary or size - self.base <= limit):
            return False
        with open(self._path, "rb") as file:
            file.seek(self._read - len(self._last))
            goes_on = before and before[0] == state[0] and before[1] <= size and not self._json
            was_binary = self._binary
            anew = not self._read or not goes_on or file.read(len(self._last)) != self._last
            self._state = None  # after an error it begins anew
            if anew:
                if before and self._read and self.is_log:
                    self._restart()
                self.base, self._read, self._last = 0, file.seek(0), b""
                self._binary = not self._events and b"\0" in file.read(4096).lstrip(b"\0")
                self.is_log = not self._binary and not self._json
            if self._binary:
                self.copy.unlink(missing_ok=True)
            elif size - self.base > limit:
                self.base = self._read = size - limit // 4  # a quarter: it is rarely cut
                anew = True
            changed = not was_binary if self._binary else self._copy(file, size, anew)
        self._state = state
        return changed

    def _copy(self, file, size, anew):
        head, cut = b"", anew and self.base
        if cut and self._events:  # the version; readers find the next whole record
            file.seek(0)
            head = file.read(8)
            head += file.read(min(int.from_bytes(head, "little"), 4096) + 8)
        file.seek(self._read)
        if cut and not self._events:
            self._read += len(file.readline(size - self._read))
        data = file.read(max(size - self._read, 0))
        if not self._events and not self._json:  # the rest of the last line is still to come
            data = data[:max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
        self._read += len(data)
        self._last = (data if anew else self._last + data)[-_LAST:]
        self.copy.parent.mkdir(parents=True, exist_ok=True)
        with open(self.copy, "wb" if anew else "ab") as out:
            out.write(head + data)
        return anew or bool(data)


def _raise(error):
    raise error


def _listed(run):
    """Returns {path: status} of the files that may belong to the log in a folder: of a run log those
    of its first ranks, of others those down to two folders."""
    found = {}
    for folder, folders, names in os.walk(run, onerror=_raise):
        ranks = sorted(name for name in folders if re.fullmatch(r"rank-\d+", name))
        is_run_log = bool(ranks) or "run.json" in names
        deeper = len(Path(folder).relative_to(run).parts) < 2 and len(found) < _MOST_FILES
        folders[:] = ranks[:_MOST_RANKS] if is_run_log else [name for name in folders if deeper]
        for name in sorted(names)[-_MOST_FILES:]:
            path = os.path.join(folder, name)
            known = name == "run.json" or "tfevents" in name
            if (known or not is_run_log) and not name.startswith(".") and os.path.isfile(path):
                found[path] = os.stat(path)
    return found


class Follower:
    """Copies of the newest parts of a log's files. `log` is the path of the copy, for the functions
    that read logs. `cut`: it lacks the first part. `restarts`: times that files were truncated, or that
    all of them were replaced. `skipped`: the skipped steps that were in it since."""

    def __init__(self, run, folder):
        """run: path of the log. folder: for the copy. Raises BadInput if nothing is there."""
        if not os.path.isfile(run) and not os.path.isdir(run):
            raise BadInput(f"{run}: no such file or folder; check the path, or start the training first")
        self.run = os.path.normpath(run)
        self.log = os.path.join(folder, os.path.basename(os.path.abspath(run)))
        self.cut = self.is_run_log = self._changed = False
        self.restarts, self.skipped = 0, set()
        self._files, self._samples = {}, {}  # {path: Growing}, {link: path}

    def poll(self):
        """Copies what is new. Returns True if something is. Raises FileNotFoundError if the log is
        gone, and OSError if it cannot be read; the next call then returns what this one found."""
        files = _listed(self.run) if os.path.isdir(self.run) else {self.run: os.stat(self.run)}
        gone = self._files.keys() - files
        logs = {path for path, file in self._files.items() if file.is_log}
        if logs and logs <= gone:
            self._restart()
        for path in gone:
            self._files.pop(path).copy.unlink(missing_ok=True)
        self._changed |= bool(gone)
        self._follow(files)
        manifests = [path for path in files if os.path.basename(path) == "run.json"]
        self._link(manifests)
        self.is_run_log = bool(manifests)
        self.cut = any(file.base for file in self._files.values())
        changed, self._changed = self._changed, False
        return changed

    def _restart(self):
        self.restarts += 1
        self.skipped.clear()

    def _copy_of(self, path):
        return Path(self.log, os.path.relpath(path, self.run)) if path != self.run else Path(self.log)

    def _follow(self, files):
        """Copies the new bytes of all files. The last by name are the newest: the first of a folder
        are left out when the others have MOST bytes."""
        folders = {os.path.dirname(path) for path in files}
        left = dict.fromkeys(folders, MOST // max(len(folders), 1))
        for path, status in sorted(files.items(), reverse=True):
            folder = os.path.dirname(path)
            file = self._files.setdefault(path, Growing(path, self._copy_of(path), self._restart))
            self._changed |= file.follow(status, left[folder])
            left[folder] -= min(left[folder], status.st_size if file.is_log else 0)

    def _link(self, manifests):
        """Links the newest samples of a run log's first rank, until they have MOST bytes."""
        tensors, links, size = os.path.join(os.path.dirname(min(manifests, default="")), "tensors"), {}, 0
        names = os.listdir(tensors) if manifests and os.path.isdir(tensors) else ()
        for name in sorted(names, key=lambda name: (len(name), name), reverse=True):
            if size < MOST and re.fullmatch(r"step-\d+\.safetensors", name):
                path = os.path.join(tensors, name)
                links[self._copy_of(path)] = os.path.abspath(path)
                size += os.stat(path).st_size
        for copy in self._samples.keys() - links:
            copy.unlink()
        for copy in links.keys() - self._samples:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(links[copy])
        self._changed |= links != self._samples
        self._samples = links
