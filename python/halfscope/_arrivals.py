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

from halfscope._arguments import described
from halfscope._run_log import unscaled

_MOST_WAITING = 64  # steps that wait for an earlier one


def interval(name, value):
    """Returns a number of steps, or None. Raises TypeError for anything else."""
    if value is None or (hasattr(value, "__index__") and operator.index(value) > 0):
        return value
    raise TypeError(f"{name} is {described(value)}, expected a number of steps above 0, or None")


def _guarded(method):
    """Lets one thread at a time call a method of Arrivals. The first error gives one warning and ends
    the recording, but not the training."""
    def call(self, *args, **named):
        with self._lock:
            if self._stopped:
                return
            try:
                method(self, *args, **named)
            except Exception as error:
                self._stopped = True
                self._waiting.clear()
                warnings.warn(f"{self._who}: recording stops, training goes on: {type(error).__name__}: "
                              f"{' '.join(str(error).split())}. What the log's folder holds can be read",
                              RuntimeWarning, stacklevel=2)
    return call


class Arrivals:
    """Writes attempted steps into a RunLog. receive() and add_loss() may be called from any thread,
    and raise nothing.

    A step arrives with its count: the optimizer's updates before it. A loop that skips a step keeps
    the optimizer's old state, so its next attempt has the same count.

    log: a RunLog; its close() writes the steps that still wait. who: name of the recorder, for the
    warning. every, sample_every: steps between histograms, between samples; None: never. repeated:
    advice if a step arrives twice. settle: waits until all callbacks have run. await_losses: True
    if each step waits for its add_loss().
    """

    def __init__(self, log, who, every, sample_every, repeated, settle, await_losses=False):
        self._log, self._who, self._repeated = log, who, repeated
        self._every, self._sample_every = interval("every", every), interval("sample_every", sample_every)
        self._await_losses = await_losses
        self._losses = collections.defaultdict(collections.deque)  # {count: losses not written yet}
        self._waiting = []  # heap of (count, finite, order of arrival, largest, numbers, trees)
        self._order = itertools.count()
        self._last = (-1, False)  # (count, finite) of the step that was written last
        self._lock, self._stopped = threading.RLock(), False
        log.before_close += [functools.partial(self._write, everything=True), settle]  # last one first

    def chosen(self, count):
        """Returns True if the tensors of a step are recorded. The count may be traced."""
        intervals = filter(None, (self._every, self._sample_every))
        return functools.reduce(operator.or_, (count % steps == 0 for steps in intervals), False)

    def samples(self, count):
        """Returns True if the tensors of a step are saved."""
        return self._sample_every is not None and count % self._sample_every == 0

    @_guarded
    def receive(self, count, largest, numbers, trees):
        """Receives a step.

        largest: its largest gradient magnitude, with the loss scale if the gradients carry it.
        numbers: loss, learning_rate, loss_scale, found_inf; None if unknown. trees: {role: {name:
        array}}, empty at a step that is not chosen(); weight_after is written in samples alone.
        """
        largest = float(largest)
        numbers = {name: float(number) for name, number in numbers.items() if number is not None}
        heapq.heappush(self._waiting, (int(count), math.isfinite(largest), next(self._order), largest,
                                       numbers, trees))
        self._write()

    @_guarded
    def add_loss(self, count, loss):
        """Receives the loss of a step, before or after receive()."""
        self._losses[int(count)].append(float(loss))
        self._write()

    @_guarded
    def _write(self, everything=False):
        while self._waiting:
            count, last = self._waiting[0][0], self._last[0]
            follows = count <= last + 1 or (last < 0 and count == self._log._next)
            complete = not self._await_losses or self._losses.get(count)
            if not (follows and complete or everything or len(self._waiting) > _MOST_WAITING):
                return
            self._write_step(*heapq.heappop(self._waiting))

    def _write_step(self, count, finite, _, largest, numbers, trees):
        if (count, False) < self._last:  # after a later one, or again although it was not skipped
            raise RuntimeError(f"update {count} of the optimizer arrived again after update "
                               f"{self._last[0]}; {self._repeated}")
        self._last, scale = (count, finite), numbers.get("loss_scale")
        if self._losses.get(count):
            numbers["loss"] = self._losses[count].popleft()
        # Without a loss scale it is unknown if the loop skips a step for its infinities.
        numbers.setdefault("found_inf", None if scale is None and not finite else not finite)
        sample = bool(trees) and self.samples(count)
        self._log.step(sample=sample, max_abs_weight_grad=unscaled(largest, scale if self._log._scaled else 1.0),
                       **numbers, **{role: tree for role, tree in trees.items()
                                     if sample or role != "weight_after"})
