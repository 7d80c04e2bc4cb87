# SPDX-License-Identifier: Apache-2.0
"""Writes tensors and numbers into a run log, with the C++ writer."""

import json
import os

from halfscope import _halfscope
from halfscope._halfscope import BadInput
from halfscope._tables import as_numbers


def log_folder(out, rank, world_size):
    """Returns the folder of a rank's log: `out`, or out/rank-NNNN if there are several ranks."""
    folder = os.fspath(out)
    return os.path.join(folder, f"rank-{rank:04d}") if world_size > 1 else folder


def require_no_log(folder):
    if os.path.exists(os.path.join(folder, "run.json")):
        raise BadInput(f"{folder}: holds a run log already (run.json), and a log is never written "
                       "over; log to another folder, or delete this one")


class LogWriter:
    """Writes the log of a rank. Raises BadInput if its folder cannot be made or holds a log."""

    def __init__(self, folder, *, scaled, rank, world_size, sharded, about):
        manifest = {"scaled": scaled, "rank": rank, "world_size": world_size, "sharded": sharded,
                    "about": about}
        self._writer = _halfscope.RunLogWriter(folder, json.dumps(manifest, allow_nan=False))
        self.folder = folder

    def replace_about(self, about):
        """Replaces keys of run.json. Readers see the old or the new file, never a part."""
        path = os.path.join(self.folder, "run.json")
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        document.update(about)
        beside = os.path.join(self.folder, ".run.json")
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2, allow_nan=False)
        os.replace(beside, path)

    def write_tensors(self, step, tensors):
        """tensors: list of (name, Gathered, True if scaled, scale or None if unknown)"""
        self._writer.write_tensors(step, tensors)

    def write_scalars(self, **scalars):
        self._writer.write_scalars(**scalars)

    def write_sample(self, step, tensors, metadata):
        """tensors: {name: tensor in CPU memory}"""
        samples = [(name, *as_numbers(values)) for name, values in tensors.items()]
        self._writer.write_sample(step, samples, metadata)
