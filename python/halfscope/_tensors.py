# SPDX-License-Identifier: Apache-2.0
"""Arrays in memory as a log: the argument tensors of analyze, recommend and report."""

import contextlib
import math
import os
import threading
from numbers import Real

from halfscope import _halfscope
from halfscope._arguments import described
from halfscope._logs import _log_notes
from halfscope._trees import in_memory, named_arrays

_READ = threading.RLock()  # held while the extension reads one


def _renew_lock():
    global _READ
    _READ = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)  # another thread may have held it


class Tensors:
    """A tree of arrays as a log: a safetensors file whose values are the arrays themselves. Arrays
    are copied only if they are not in CPU memory in C order. scale: the loss scale that the
    gradients carry; None: 1. Raises BadInput and TypeError."""

    logs = ("tensors",)  # names for the title of a page

    def __init__(self, tree, scale=None):
        skipped = []
        arrays = named_arrays(tree, skipped=skipped)
        if skipped:
            more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
            _log_notes([f"tensors: no floating-point numbers, so left out: {skipped[0]!r}{more}"])
        metadata = {"gradients": "unscaled"} if scale is None else {
            "gradients": "scaled", "scale": repr(float(scale))}
        self._path = "tensors in memory"
        while os.path.lexists(self._path):  # a folder or file of the user
            self._path += "'"
        self._file = _halfscope.TensorsInMemory(
            self._path, [(name, *in_memory(name, array)) for name, array in arrays.items()], metadata)

    def __fspath__(self):
        return self._path

    @contextlib.contextmanager
    def open_as_log(self):
        """A context in which the path leads to these arrays. Waits for other threads' logs."""
        with _READ:
            self._file.open()
            try:
                yield
            finally:
                self._file.close()


def or_tensors(logs, tensors, roles, recorded_scale):
    """Returns the arguments logs, roles and recorded_scale, with `tensors` as a log. Raises
    TypeError if there are both logs and tensors, and ValueError for a scale that is not one."""
    if logs is not None:
        raise TypeError("logs and tensors are both given, expected one of them: logs are paths, tensors "
                        "a tree of arrays")
    roles = {"*": roles} if isinstance(roles, str) else roles
    if not isinstance(recorded_scale, Real):
        return [Tensors(tensors)], roles, recorded_scale
    if not 0 < recorded_scale < math.inf:
        raise ValueError(f"recorded_scale is {described(recorded_scale)}, expected a number above 0")
    return [Tensors(tensors, recorded_scale)], roles, None
