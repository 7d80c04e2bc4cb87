# SPDX-License-Identifier: Apache-2.0
"""Writes the steps that a compiled training loop delivers, on any thread and in any order."""

import collections
import functools
import heapq
import itertools
import math
import operator
import threading
import warnings

from halfscope._run_log import unscaled

_MOST_WAITING = 64  # steps that wait for an earlier one


class Arrivals:
    """Writes attempted steps into a RunLog. guarded() calls its methods and the recorders' functions,
    from any thread.

    A step arrives with its count: the optimizer's updates before it. A loop that skips a step keeps
    the optimizer's old state, so its next attempt has the same count.

    log: a RunLog; its close() writes the steps that still wait. who: name of the recorder, for
    warnings. every, sample_every: results of interval(): steps between histograms, between samples.
    repeated: advice if a step arrives twice. settle: waits until all callbacks have run. await_losses: True
    if each step waits for its add_loss().
    """

    def __init__(self, log, who, every, sample_every, repeated, settle, await_losses=False):
        self._log, self._who, self._repeated = log, who, repeated
        self._every, self._sample_every = every, sample_every
        self._await_losses = await_losses
        self._losses = collections.defaultdict(collections.deque)  # {count: losses not written yet}
        self._waiting = []  # heap of (count, finite, order of arrival, largest, numbers, trees)
        self._order = itertools.count()
        self._last = (-1, False)  # (count, finite) of the step that was written last
        self._lock, self._stopped = threading.RLock(), False
        log.before_close += [functools.partial(self.guarded, self._write, True), settle]  # last one first

    def chosen(self, count):
        """Returns True if the tensors of a step are recorded. The count may be traced."""
        intervals = filter(None, (self._every, self._sample_every))
        return functools.reduce(operator.or_, (count % steps == 0 for steps in intervals), False)

    def samples(self, count):
        """Returns True if the tensors of a step are saved."""
        return self._sample_every is not None and count % self._sample_every == 0

    def guarded(self, function, *args):
        """Calls a function, and returns its result. The first exception gives one warning and ends the
        recording, but not the training. Returns None then, and without a call from then on."""
        try:
            return None if self._stopped else function(*args)
        except Exception as error:
            if not self._stopped:
                self._stopped, self._waiting = True, []
                warnings.warn(f"{self._who}: recording stops, training goes on: {type(error).__name__}: "
                              f"{' '.join(str(error).split())}. What the log's folder holds can be read",
                              RuntimeWarning, stacklevel=2)
            return None

    def receive(self, count, largest, numbers, trees):
        """Receives a step.

        largest: its largest gradient magnitude, with the loss scale if the gradients carry it.
        numbers: loss, learning_rate, loss_scale, found_inf; None if unknown. trees: {role: {name:
        array}}, empty at a step that is not chosen(); weight_after is written in samples alone.
        """
        largest = float(largest)
        numbers = {name: float(number) for name, number in numbers.items() if number is not None}
        with self._lock:
            heapq.heappush(self._waiting, (int(count), math.isfinite(largest), next(self._order), largest,
                                           numbers, trees))
            self._write()

    def add_loss(self, count, loss):
        """Receives the loss of a step, before or after receive()."""
        with self._lock:
            self._losses[int(count)].append(float(loss))
            self._write()

    def _write(self, everything=False):
        with self._lock:
            while self._waiting:
                count, last = self._waiting[0][0], self._last[0]
                follows = count <= last + 1 or (last < 0 and count == self._log._next)
                complete = not self._await_losses or self._losses.get(count)
                if not (follows and complete or everything or len(self._waiting) > _MOST_WAITING):
                    return
                self._write_step(*heapq.heappop(self._waiting))

    def _write_step(self, count, finite, _, largest, numbers, trees):
        if losses := self._losses.get(count):
            numbers["loss"] = losses.popleft()
            if not losses:
                del self._losses[count]
        if (count, False) < self._last:  # after a later one, or again although it was not skipped
            if not finite:
                return warnings.warn(f"{self._who}: a skipped attempt arrived late, and is not in the log",
                                     RuntimeWarning, stacklevel=2)
            raise RuntimeError(f"update {count} of the optimizer arrived again after update "
                               f"{self._last[0]}; {self._repeated}")
        self._last, scale = (count, finite), numbers.get("loss_scale")
        # Without a loss scale it is unknown if the loop skips a step for its infinities.
        numbers.setdefault("found_inf", None if scale is None and not finite else not finite)
        sample = bool(trees) and self.samples(count)
        self._log.step(sample=sample, max_abs_weight_grad=unscaled(largest, scale if self._log._scaled else 1.0),
                       **numbers, **{role: tree for role, tree in trees.items()
                                     if sample or role != "weight_after"})
