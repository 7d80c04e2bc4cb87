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

_MOST_WAITING = 64  # steps that wait for an earlier one


def interval(name, value):
    """Returns a number of steps, or None. Raises TypeError or ValueError."""
    try:
        number = None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {described(value)}, expected a number of steps above 0") from None
    if number is not None and number <= 0:
        raise ValueError(f"{name} is {number}, expected a number of steps above 0")
    return number


class Arrivals:
    """Writes attempted steps into a RunLog. receive() and add_loss() may be called from any thread,
    and raise nothing: the first error gives one warning and ends the recording, but not the
    training.

    A step arrives with the number of updates that the optimizer made before it. A loop that skips a
    step keeps the optimizer's old state, so its next attempt has the same number of updates. The
    log counts both attempts.

    log            a RunLog; its close() writes the steps that still wait
    who            name of the recorder, for the warning
    every, sample_every  steps between histograms, between samples; None: never
    repeated       what to do if a step arrives twice, for the warning
    settle         function that waits until all callbacks have run
    await_losses   True if each step waits for its add_loss()
    """

    def __init__(self, log, who, every, sample_every, repeated, settle=lambda: None,
                 await_losses=False):
        self._log, self._who, self._repeated = log, who, repeated
        self._every, self._sample_every = interval("every", every), interval("sample_every", sample_every)
        self._await_losses = await_losses
        self._lock = threading.Lock()
        self._losses = collections.defaultdict(collections.deque)  # {count: losses not written yet}
        self._waiting = []  # heap of (count, finite, order of arrival, largest, numbers, trees)
        self._order = itertools.count()
        self._last = None  # (count, finite) of the step that was written last
        self._shift = 0  # number of a step in the log, minus its count
        self._stopped = False
        log.before_close.append(lambda: (settle(), self._guarded(self._write, True)))

    def chosen(self, count):
        """Returns True if the tensors of a step are recorded. The count may be traced."""
        intervals = filter(None, (self._every, self._sample_every))
        return functools.reduce(operator.or_, (count % steps == 0 for steps in intervals), False)

    def samples(self, count):
        """Returns True if the tensors of a step are saved."""
        return self._sample_every is not None and count % self._sample_every == 0

    def receive(self, count, largest, numbers, trees):
        """Receives a step.

        count: updates of the optimizer before it. largest: its largest gradient magnitude, with the
        loss scale if the gradients carry it. numbers: loss, learning_rate, loss_scale, found_inf;
        absent if unknown. trees: {role: {name: array}}, empty at a step that is not chosen().
        """
        self._guarded(self._receive, count, largest, numbers, trees)

    def add_loss(self, count, loss):
        """Receives the loss of a step, before or after receive()."""
        self._guarded(self._add_loss, count, loss)

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

    def _receive(self, count, largest, numbers, trees):
        count, largest = int(count), float(largest)
        numbers = {name: float(number) for name, number in numbers.items()}
        if not self._is_next(count):  # the caller's memory may be reused
            import numpy

            trees = {role: {name: numpy.array(array) for name, array in tree.items()}
                     for role, tree in trees.items()}
        heapq.heappush(self._waiting, (count, math.isfinite(largest), next(self._order), largest,
                                       numbers, trees))
        self._write()

    def _add_loss(self, count, loss):
        self._losses[int(count)].append(float(loss))
        self._write()

    def _is_next(self, count):
        if self._await_losses and not self._losses.get(count):
            return False
        return (count in (0, self._log.next_step) if self._last is None else
                count <= self._last[0] + 1)

    def _write(self, everything=False):
        while self._waiting and (everything or len(self._waiting) > _MOST_WAITING or
                                 self._is_next(self._waiting[0][0])):
            self._write_step(*heapq.heappop(self._waiting))

    def _write_step(self, count, finite, _, largest, numbers, trees):
        if self._last is None:
            self._shift = max(0, self._log.next_step - count)
        elif count <= self._last[0]:
            if count < self._last[0] or self._last[1]:
                raise RuntimeError(f"update {count} of the optimizer arrived again after update "
                                   f"{self._last[0]}; {self._repeated}")
            self._shift += 1
        self._last = (count, finite)
        if self._losses.get(count):
            numbers["loss"] = self._losses[count].popleft()
        # Without a loss scale it is unknown if the loop skips a step for its infinities.
        skipped = not finite if finite or "loss_scale" in numbers else None
        sample = bool(trees) and self.samples(count)
        if not sample:
            trees.pop("weight_after", None)
        self._log.step(count + self._shift, sample=sample,
                       largest=largest, **{"found_inf": skipped, **numbers}, **trees)
