# SPDX-License-Identifier: Apache-2.0
"""Writes the steps that a compiled training loop delivers, on any thread and in any order."""

import heapq
import itertools
import math
import threading
import warnings

_MOST_WAITING = 64  # steps that wait for an earlier one


class Arrivals:
    """Writes attempted steps into a RunLog. Its methods may be called from any thread, and raise
    nothing: the first error gives one warning and ends the recording, but not the training.

    A step has the number of the optimizer's updates before it. A loop that skips a step keeps the
    optimizer's old state, so the next attempt has the same number: it gets the next number of the
    log.

    log        a RunLog, whose close() writes the steps that still wait
    who        name of the recorder, for the warning
    repeated   what to do if a step arrives twice, for the warning
    settle     function that waits until all callbacks have run
    """

    def __init__(self, log, who, repeated, settle=lambda: None):
        self._log, self._who, self._repeated = log, who, repeated
        self._lock = threading.Lock()
        self._waiting = []  # heap of (count, finite, order of arrival, numbers, trees)
        self._order = itertools.count()
        self._last = None  # (count, finite) of the step that was written last
        self._shift = 0  # number of a step in the log, minus its count
        self._stopped = False
        log.before_close.append(lambda: (settle(), self._guarded(self._write_all)))

    def add(self, count, largest, numbers, trees=(), sample=False):
        """Receives a step.

        count: updates of the optimizer before it. largest: its largest gradient magnitude, as
        recorded. numbers: loss, learning_rate, loss_scale, found_inf; absent if unknown. trees: what
        RunLog.step() writes, empty at a step whose tensors are not recorded. sample: as there.
        """
        self._guarded(self._add, count, largest, numbers, dict(trees), sample)

    def _guarded(self, function, *args):
        with self._lock:
            if self._stopped:
                return
            try:
                function(*args)
            except Exception as error:
                self._stopped = True
                self._waiting.clear()
                text = " ".join(str(error).split())
                warnings.warn(f"{self._who}: recording stops, training goes on: "
                              f"{type(error).__name__}: {text}. What the log's folder holds can be read",
                              RuntimeWarning, stacklevel=3)

    def _add(self, count, largest, *more):
        heapq.heappush(self._waiting,
                       (count, math.isfinite(largest), next(self._order), largest, *more))
        while self._waiting and self._is_next(self._waiting[0][0]):
            self._write_first()

    def _is_next(self, count):
        if len(self._waiting) > _MOST_WAITING:
            return True
        return count in (0, self._log.next_step) if self._last is None else count <= self._last[0] + 1

    def _write_all(self):
        while self._waiting:
            self._write_first()

    def _write_first(self):
        count, finite, _, largest, numbers, trees, sample = heapq.heappop(self._waiting)
        if self._last is None:
            self._shift = max(0, self._log.next_step - count)
        elif count <= self._last[0]:
            if count < self._last[0] or self._last[1]:
                raise RuntimeError(f"update {count} of the optimizer arrived again after update "
                                   f"{self._last[0]}; {self._repeated}")
            self._shift += 1
        self._last = (count, finite)
        scale = numbers.get("loss_scale")
        self._log.step(count + self._shift, sample=sample, largest=largest,
                       **{"found_inf": scale is not None and not finite, **numbers}, **trees)
