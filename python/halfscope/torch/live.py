# SPDX-License-Identifier: Apache-2.0
"""Reads a run log while it is being written: summary and alerts."""

import os
import warnings

from halfscope import _halfscope
from halfscope._logs import recommend


def summary_of(out):
    return str(recommend(os.fspath(out)))


class Alerts:
    """Conditions with actions: conditions of --fail-if, and conditions on a number of a step."""

    def __init__(self):
        self._all = []
        self._told_no_loss = False

    def __bool__(self):
        return bool(self._all)

    def add(self, when, do):
        field = _halfscope.field_of_step(when)  # ValueError
        self._all.append((when, field, do or _warn_once(when)))

    def look(self, guard, folder, attempt, recorded):
        """Tests the conditions for the step that has just ended. recorded: True if its histograms
        are in the log. Exceptions of the user's function are not caught."""
        step = attempt.step
        for when, field, do in self._all:
            if field:
                value = guard(attempt.numbers[field])
                self._tell_no_loss(when, field, value, step)
                found = guard(_of_number, when, value)
            else:
                found = guard(_halfscope.violations, folder, when, step) if recorded else None
            if found:
                do([f"step {step}: tensor '{name}': {text}" if name else f"step {step}: {text}"
                    for name, text in found])

    def _tell_no_loss(self, when, field, value, step):
        """Warns once if a step has no loss, since no alert would look like a good sign."""
        if field == "loss" and value is None and not self._told_no_loss:
            self._told_no_loss = True
            warnings.warn(f"Recorder.alert({when!r}): step {step} has no loss, so it is not tested; note "
                          "the loss with recorder.loss(loss)", RuntimeWarning, stacklevel=7)


def _of_number(when, value):
    text = None if value is None else _halfscope.number_violation(when, value)
    return [(None, text)] if text else []


def _warn_once(when):
    told = []

    def warn(lines):
        if not told:
            told.append(True)
            more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
            warnings.warn(f"Recorder.alert({when!r}): {lines[0]}{more}", RuntimeWarning, stacklevel=7)

    return warn
