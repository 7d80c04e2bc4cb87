# SPDX-License-Identifier: Apache-2.0
"""Logs counted on many machines with Dask: `pip install 'halfscope[dask]'`.

halfscope.distributed.analyze(logs, client=client) returns the result of halfscope.analyze(logs).
Workers count the parts of the logs (ranks of a run, steps of a folder of tensor files), and the
counts are joined in a tree. Workers read the logs by their paths or URLs.
"""

import contextlib
import os
import sys

import halfscope
from halfscope import _halfscope
from halfscope._count import counted_with_notes
from halfscope._logs import _log_notes, _paths, _selection, is_remote

_READING = ("roles", "recorded_scale", "learning_rate", "read_as", "ranks", "lines")
_RETRIES = 3  # new tries for a part whose worker is lost or fails
_JOINED = 4  # counts that one task joins


def _distributed():
    try:
        import distributed
    except ImportError:
        raise ImportError("halfscope.distributed needs Dask; install it with "
                          "pip install 'halfscope[dask]'") from None
    return distributed


def _selection_of(reading):
    named = {name: reading[name] for name in _READING[2:] if name in reading}
    return _selection(None, None, reading.get("roles"), reading.get("recorded_scale"), **named)


def _count_shard(logs, index, of, reading):
    """Returns (Counts, notes), or the BadInput: Dask would log a traceback if it were raised."""
    try:
        return counted_with_notes(logs, _selection_of(reading), index, of)
    except halfscope.BadInput as error:
        if any(map(is_remote, logs)):
            raise  # the next try may get the bytes
        return error


def _merged(many):
    """Joins results of _count_shard() and returns them in its form."""
    for one in many:
        if isinstance(one, halfscope.BadInput):
            return one
    notes = dict.fromkeys(note for _, notes in many for note in notes)
    return halfscope.Counts.merged([counts for counts, _ in many]), list(notes)


@contextlib.contextmanager
def _client_or_local(client):
    if client is not None:
        yield client
        return
    distributed = _distributed()
    with distributed.LocalCluster(n_workers=os.cpu_count(), threads_per_worker=1,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as own:
            yield own


def _joined(client, futures):
    """Joins results a few at a time, the last ones in this process, so that no worker holds all."""
    while len(futures) > _JOINED:
        futures = [client.submit(_merged, futures[i:i + _JOINED], retries=_RETRIES, pure=False)
                   for i in range(0, len(futures), _JOINED)]
    return _merged(client.gather(futures))


def _parts(logs, reading):
    """Returns the number of parts of the logs, or the BadInput."""
    from halfscope._remote import Remote

    try:
        with Remote(logs) as remote, remote.naming():
            return len(remote.call(_halfscope.PartReader, remote.logs, _selection_of(reading),
                                   remote.source))
    except halfscope.BadInput as error:
        return error


def count(logs, *, client=None, shards=None, progress=True, **reading):
    """Counts logs as halfscope.count(logs) does, with the workers of a Dask cluster.

    logs: one or several paths or URLs, as the workers see them. client: a distributed.Client; by
    default a LocalCluster with a worker for each processor, which ends with the call. shards:
    number of tasks; by default one for each part, at most 16 for each thread of the cluster.
    progress: shows a bar if standard output is a terminal. reading: roles, recorded_scale,
    learning_rate, read_as, ranks and lines, as for halfscope.count. Returns Counts. Parts of a lost
    worker are counted again. Raises the BadInput of the first part that cannot be read, and
    ValueError or TypeError for an argument out of its range.
    """
    distributed = _distributed()
    logs = _paths(logs)
    unknown = set(reading) - set(_READING)
    if unknown:
        raise TypeError(f"count() got unexpected arguments {sorted(unknown)}")
    _selection_of(reading)  # raises for an argument out of its range
    # The workers of a cluster may see what this process does not.
    ask = client.submit(_parts, logs, reading, pure=False).result if client else lambda: _parts(logs, reading)
    parts = ask()
    if isinstance(parts, halfscope.BadInput):
        raise parts
    with _client_or_local(client) as client:
        most = 16 * max(1, sum(client.nthreads().values()))
        shards = max(1, shards or min(parts, most))
        futures = client.map(_count_shard, [logs] * shards, range(1, shards + 1), [shards] * shards,
                             [reading] * shards, retries=_RETRIES, pure=False)
        if progress and sys.stdout.isatty():
            distributed.progress(futures, notebook=False)
        found = _joined(client, futures)
    if isinstance(found, halfscope.BadInput):
        raise found
    counts, notes = found
    _log_notes(notes)
    return counts


def analyze(logs, *, client=None, shards=None, progress=True, **arguments):
    """Analyses logs as halfscope.analyze(logs) does, counted by the workers of a Dask cluster.

    client, shards, progress: as for count. Other arguments: those of halfscope.analyze, except
    those that need the tensors themselves (what_if). Returns Findings. Raises as count and analyze
    do.
    """
    reading = {name: arguments.pop(name) for name in _READING if name in arguments}
    counts = count(logs, client=client, shards=shards, progress=progress, **reading)
    return halfscope.analyze(counts, **arguments)
