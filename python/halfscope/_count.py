# SPDX-License-Identifier: Apache-2.0
"""Counted logs: small, exact records that can be added."""

import os
import pathlib
import tempfile

from halfscope import _halfscope
from halfscope._arguments import described
from halfscope._logs import _log_notes, _paths, _selection, is_remote, require_path


_NTH = ("first", "second", "third", "fourth", "fifth")


def _named(text, paths, count):
    """Returns a message with "the first Counts", ... in place of the paths of temporary files."""
    for number, path in paths.items():
        nth = _NTH[number] if number < len(_NTH) else f"{number + 1}th"
        text = text.replace(path, f"the {nth} Counts" if count > 1 else "the Counts")
    return text


class Counts:
    """The result of count(): the counts of logs, or of parts of logs.

    `a + b` and sum(many) join them; the bytes do not depend on the order or on the division into
    parts. Counts can be pickled, compared, saved with save() and read with Counts.load(). Every
    function accepts them in place of a log: halfscope.recommend(counts).
    """

    _file = None  # (folder, path) of a temporary file, written when a path is first needed

    def __init__(self, data):
        """data: the bytes of a record. Raises BadInput if it is damaged."""
        self._data = bytes(data)
        self._data, self._logs = self._merge([self])  # finds damage and sorts the parts

    @classmethod
    def load(cls, path):
        """Reads a record, which `halfscope count`, `halfscope merge` or save() wrote."""
        return cls.merged([path])

    @classmethod
    def merged(cls, many):
        """Returns the union of Counts, or files of them. Raises BadInput if parts of a log
        differ."""
        found = cls.__new__(cls)
        found._data, found._logs = cls._merge(many)
        return found

    @staticmethod
    def _merge(many):
        with tempfile.TemporaryDirectory(prefix="halfscope-") as folder:
            paths, made = [], {}
            for number, counts in enumerate(many):
                if isinstance(counts, Counts):
                    made[number] = os.path.join(folder, f"{number}.hst")
                    counts.save(made[number])
                paths.append(made.get(number) or os.fspath(counts))
                require_path(os.fsdecode(paths[-1]))
                if is_remote(os.fsdecode(paths[-1])):
                    from halfscope._urls import hidden

                    raise _halfscope.BadInput(f"{hidden(os.fsdecode(paths[-1]))}: is a URL, expected "
                                              "the path of a record; copy it and name the copy")
            out = os.path.join(folder, "merged.hst")
            try:
                logs = _halfscope.merge(paths, out)
            except _halfscope.BadInput as error:
                raise _halfscope.BadInput(_named(str(error), made, len(paths))) from None
            return pathlib.Path(out).read_bytes(), logs

    def save(self, path):
        """Writes a record, which the program and every function here accept as a log."""
        pathlib.Path(path).write_bytes(self._data)

    def to_parquet(self, folder):
        """Writes tensors.parquet, binades.parquet and scalars.parquet: a row for each
        tensor, binade or scalar of each step and rank.

        docs/parquet.md has the columns, and queries. Files of these names are replaced. Needs
        pyarrow.
        """
        from halfscope import _parquet

        _parquet.write([os.fspath(self)], _selection(None, None, None, None), folder, _log_notes)

    @property
    def logs(self):
        """{name of a log: (number of its parts in here, number of all its parts)}"""
        return {name: (here, of) for name, here, of in self._logs}

    @property
    def nbytes(self):
        """Size in bytes."""
        return len(self._data)

    def __fspath__(self):
        if self._file is None:
            folder = tempfile.TemporaryDirectory(prefix="halfscope-")
            path = os.path.join(folder.name, "counts.hst")
            pathlib.Path(path).write_bytes(self._data)
            self._file = folder, path
        return self._file[1]

    def __add__(self, other):
        return Counts.merged([self, other]) if isinstance(other, Counts) else NotImplemented

    def __radd__(self, other):
        return self if other == 0 else NotImplemented  # sum() begins with 0

    def __bytes__(self):
        return self._data

    def __eq__(self, other):
        return self._data == other._data if isinstance(other, Counts) else NotImplemented

    def __hash__(self):
        return hash(self._data)

    def __reduce__(self):
        return _unpickled, (self._data, self._logs)

    def __repr__(self):
        logs = [f"{name} ({here} of {of} parts)" for name, here, of in self._logs[:3]]
        more = f" and {len(self._logs) - 3} more" if len(self._logs) > 3 else ""
        return f"<Counts of {', '.join(logs) or 'nothing'}{more}, {self.nbytes:,} bytes>"


def _unpickled(data, logs):
    """Returns Counts without checking them: they were sorted and undamaged when pickled."""
    counts = Counts.__new__(Counts)
    counts._data, counts._logs = data, logs
    return counts


def _shard(shard):
    if isinstance(shard, str):
        index, _, of = shard.partition("/")
        shard = (int(index), int(of)) if index.isdecimal() and of.isdecimal() else shard
    if isinstance(shard, tuple) and len(shard) == 2:
        index, of = (n.__index__() if hasattr(n, "__index__") else 0 for n in shard)
        if 1 <= index <= of < 2**63:
            return index, of
    raise ValueError(f"shard is {described(shard)}, expected (i, n) or 'i/n' with i from 1 to n")


def count(logs, *, shard=(1, 1), roles=None, recorded_scale=None, learning_rate=None,
          read_as=None, ranks=None, lines=None):
    """Counts logs into a small record, perhaps a part on each of many machines.

    logs, roles, recorded_scale, learning_rate, read_as, ranks, lines: as for analyze. A log may be
    a URL of an object store or a web server (docs/remote.md); its bytes are fetched while they are
    counted. shard: (i, n) counts every nth part from the ith on, i from 1 to n. A part is a rank of
    a run, a step of a folder of tensor files, or a whole log. Returns Counts. Raises BadInput, and
    ValueError or TypeError for an argument out of its range.
    """
    selection = _selection(None, None, roles, recorded_scale, learning_rate=learning_rate,
                           read_as=read_as, ranks=ranks, lines=lines)
    return counted(_paths(logs), selection, *_shard(shard))


def counted(paths, selection, index=1, of=1):
    """Returns the Counts of one shard; logs the notes. Paths may be URLs."""
    counts, notes = counted_with_notes(paths, selection, index, of)
    _log_notes(notes)
    return counts


def counted_with_notes(paths, selection, index=1, of=1):
    """Returns (Counts of one shard, notes on the logs). Paths may be URLs."""
    from halfscope._remote import Remote

    with Remote(paths) as remote, tempfile.TemporaryDirectory(prefix="halfscope-") as folder:
        out = os.path.join(folder, "counts.hst")
        with remote.naming():
            notes = remote.call(_halfscope.count, remote.logs, selection, index, of, out,
                                remote.source)
        return Counts.load(out), [*remote.notes, *map(remote.named, notes)]
