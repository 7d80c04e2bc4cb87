# SPDX-License-Identifier: Apache-2.0
"""What a run log says while it is being written."""

import os
import warnings

from halfscope import _halfscope
from halfscope._logs import recommend


def summary_of(out):
    return str(recommend(os.fspath(out)))


class Alerts:
    """Conditions of --fail-if, with what is done where one holds."""

    def __init__(self):
        self._all = []

    def add(self, when, do):
        _halfscope.require_condition(when)  # ValueError
        self._all.append((when, do or _warn_once(when)))

    def look(self, guard, folder, step):
        """At the step that was just recorded. What the user's function raises is not caught."""
        for when, do in self._all:
            found = guard(_halfscope.violations, folder, when, step)
            if found:
                do([f"step {step}: tensor '{name}': {text}" if name else f"step {step}: {text}"
                    for name, text in found])


def _warn_once(when):
    told = []

    def warn(lines):
        if not told:
            told.append(True)
            more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
            warnings.warn(f"Recorder.alert({when!r}): {lines[0]}{more}", RuntimeWarning, stacklevel=7)

    return warn
