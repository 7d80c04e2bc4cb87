# SPDX-License-Identifier: Apache-2.0
"""The folders of a program's run logs: one, or one for each optimizer, and in it one for each rank."""

import contextlib
import os
import re

from halfscope._halfscope import BadInput


def log_folder(out, rank, world_size):
    """Returns the folder of a rank's log: `out`, or out/rank-NNNN if there are several ranks."""
    folder = os.fspath(out)
    return os.path.join(folder, f"rank-{rank:04d}") if world_size > 1 else folder


def _refuse(folder):
    raise BadInput(f"{folder}: holds a run log already (run.json), and a log is never written "
                   "over; log to another folder, or delete this one")


def _holds_log(folder):
    return os.path.exists(os.path.join(folder, "run.json"))


def _ranks_in(folder):
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder) if re.fullmatch(r"rank-\d+", name)]
    except OSError:
        return []


def require_no_log(out, rank, world_size):
    """Raises BadInput if `out` holds a log of this rank, or one of another kind of run: a log has
    ranks or has none."""
    beside = [out] if world_size > 1 else _ranks_in(out)
    for folder in filter(_holds_log, [log_folder(out, rank, world_size), *beside]):
        _refuse(folder)


def logs_in(folder):
    """Returns the folders of run logs in `folder`: itself, and optimizer-N in it."""
    try:
        inside = os.listdir(folder)
    except OSError:
        return []
    found = any(map(_holds_log, [folder, *_ranks_in(folder)]))
    optimizers = sorted((name for name in inside if re.fullmatch(r"optimizer-\d+", name)),
                        key=lambda name: int(name.partition("-")[2]))
    return [folder] * found + [log for name in optimizers
                               for log in logs_in(os.path.join(folder, name))]


def remove_empty_log(folder):
    """Removes the files of a log without steps, and its folder if that is then empty."""
    for name in os.listdir(folder):
        if name == "run.json" or "tfevents" in name:
            os.remove(os.path.join(folder, name))
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def require_no_logs(folder):
    """Raises BadInput if a folder for logs holds one, or is a file."""
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise BadInput(f"{folder}: is a file, expected a folder for the log; name another")
    if logs := logs_in(folder):
        _refuse(logs[0])
