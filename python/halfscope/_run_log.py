# SPDX-License-Identifier: Apache-2.0
"""RunLog, which writes a run log: docs/run-log.md."""

import collections.abc
import contextlib
import json
import math
import operator
import os
import threading

from halfscope import _halfscope
from halfscope._arguments import described
from halfscope._folders import log_folder, require_no_log
from halfscope._halfscope import BadInput
from halfscope._tables import as_numbers
from halfscope._trees import ROLES, in_memory, is_torch, named_arrays


def first_number(first_step):
    """Returns first_step as an int. Raises TypeError or ValueError if it cannot be a step."""
    try:
        number = operator.index(first_step)
    except TypeError:
        raise TypeError(f"first_step: found {described(first_step)}, expected the number of a step") from None
    if not 0 <= number < 2**53:
        raise ValueError(f"first_step: found {number}, expected 0 or the number of a later step")
    return number


def for_the_manifest(about):
    """Returns `about` as a dict. Raises TypeError or ValueError if JSON cannot hold it."""
    if about is not None and not isinstance(about, collections.abc.Mapping):
        raise TypeError(f"about: found {type(about).__name__}, expected a dict")
    about = dict(about or {})
    try:
        json.dumps(about, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"about: found what JSON cannot hold: {error}") from None
    return about


class RunLog:
    """Writes a run log from any training loop: docs/python.md.

        with RunLog("run", scaled=True) as log:
            for step, batch in enumerate(batches):
                loss, grads = ...                      # grads: a dict or pytree of arrays
                log.step(loss=loss, loss_scale=scale, weight_grad=grads, weight=weights)

    Or close() in place of `with`. `folder` is the path of the log. Raises BadInput if the folder
    cannot be made or holds a log.

    out         folder of the log; with several ranks, the folder that has one for each
    scaled      True if the gradients that step() receives carry the loss scale
    first_step  number of the first step, for a run that continues from a checkpoint
    about       keys for run.json: optimizer, data, name of the run...; values must be JSON
    rank, world_size  number of this process, and number of processes; each writes a log
    sharded     roles of the tensors that differ between ranks, such as "activation"
    """

    def __init__(self, out, *, scaled=False, first_step=0, about=None, rank=0, world_size=1,
                 sharded=()):
        self._next = first_number(first_step)
        if not (isinstance(rank, int) and isinstance(world_size, int) and 0 <= rank < world_size < 2**31):
            raise ValueError(f"rank is {described(rank)} and world_size {described(world_size)}, expected "
                             "whole numbers, rank below world_size")
        out = os.fsdecode(out)
        self.folder = log_folder(out, rank, world_size)
        require_no_log(out, rank, world_size)
        if isinstance(sharded, str) or not set(sharded) <= set(ROLES):
            raise ValueError(f"sharded is {described(sharded)}, expected a list of some of {', '.join(ROLES)}")
        manifest = {"scaled": bool(scaled), "rank": rank, "world_size": world_size,
                    "sharded": list(sharded), "about": for_the_manifest(about)}
        self._scaled = bool(scaled)
        self._writer = _halfscope.RunLogWriter(self.folder, json.dumps(manifest))
        self._lock = threading.RLock()  # steps of several threads, such as JAX's callbacks
        self.before_close = []  # functions that close() calls first: of recorders that deliver late

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the files. Every step is in them already. A second close() does nothing."""
        while self.before_close:
            with contextlib.suppress(Exception):  # an error of the program, whose results raise it
                self.before_close.pop()()
        with self._lock:
            self._writer = None

    def step(self, step=None, *, loss=None, learning_rate=None, loss_scale=None, found_inf=None,
             max_abs_weight_grad=None, max_abs_activation_grad=None, sample=False, **trees):
        """Writes an attempted optimizer step: its numbers, and a histogram of each array.

        step: its number, above that of the last call; by default the next one. Numbers that are None
        are unknown. loss: without the loss scale. found_inf: True if the step is skipped because a
        gradient is infinite or NaN. max_abs_weight_grad, max_abs_activation_grad: the largest
        magnitude of these gradients without the loss scale, for steps without their trees. sample:
        True to save the arrays too, for lost weight updates. trees: role=tree for each role of
        docs/run-log.md (weight, weight_grad, activation_grad, update...): an array, or a dict or
        tree of arrays, of NumPy, PyTorch, JAX, CuPy or ml_dtypes; None: not at this step. Arrays of
        integers are left out. May be called by several threads. Raises BadInput or TypeError. For a
        wrong argument, nothing of the step is written.
        """
        with self._lock:
            self._step(step, loss=loss, learning_rate=learning_rate, loss_scale=loss_scale, found_inf=found_inf,
                       max_abs_weight_grad=max_abs_weight_grad, max_abs_activation_grad=max_abs_activation_grad,
                       sample=sample, trees=trees)

    def _step(self, step, *, sample, trees, **numbers):
        if self._writer is None:
            raise BadInput(f"{self.folder}: this log is closed; make another RunLog, with a folder of its own")
        step = self._number_of(step)
        numbers = {name: _number(name, value) for name, value in numbers.items()}
        if (numbers["loss_scale"] or 0) < 0:
            raise BadInput(f"step {step}: loss_scale is {numbers['loss_scale']}, expected a number above 0")
        if numbers["found_inf"] is not None:
            numbers["found_inf"] = numbers["found_inf"] != 0
        arrays = _arrays(trees)
        if sample and not arrays:
            raise BadInput(f"step {step}: sample=True saves arrays, but the step has none; give it trees")
        if self._scaled and numbers["loss_scale"] is None and any(map(_is_scaled, arrays)):
            raise BadInput(f"step {step}: has gradients that carry the loss scale (scaled=True), but no "
                           "loss_scale; give it loss_scale=")
        self._write(step, numbers, arrays, sample)
        self._next = step + 1

    def _write(self, step, numbers, arrays, sample):
        gathered, scale = _gathered(arrays), numbers["loss_scale"]
        # A scale of 0 or infinity cannot be undone: the log gets an unknown scale.
        known = scale if scale is not None and _halfscope.usable_scale(scale) else None
        carried = {name: self._scaled and _is_scaled(name) for name in gathered}
        if sample:  # first: if the disk is full, nothing of the step is written
            arrays = [(name, *in_memory(name, array)) for name, array in arrays.items()]
            metadata = dict.fromkeys(("gradients", "activation_gradients"), "scaled" if self._scaled else "unscaled")
            if numbers["found_inf"] is not None:
                metadata["found_inf"] = str(int(numbers["found_inf"]))
            if self._scaled and known is not None:
                metadata["scale"] = repr(known)
            self._writer.write_sample(step, arrays, metadata)
        self.write_tensors(step, [(name, counts, carried[name], known if carried[name] else 1.0)
                                  for name, counts in gathered.items()])
        for role in ("weight_grad", "activation_grad"):
            of_role = [counts for name, counts in gathered.items() if name.startswith(f"{role}/")]
            if of_role and numbers[f"max_abs_{role}"] is None:
                numbers[f"max_abs_{role}"] = unscaled(_largest(of_role), scale if self._scaled else 1.0)
        self.write_scalars(step=step, **numbers, more={})

    def _number_of(self, step):
        try:
            number = self._next if step is None else operator.index(step)
        except TypeError:
            raise TypeError(f"step is {described(step)}, expected the number of a step") from None
        if not self._next <= number < 2**53:
            raise BadInput(f"step {described(number)}: expected a number from {self._next} to 2^53, since "
                           "steps ascend; a run that repeats steps needs a log of its own")
        return number

    # The methods below are for the recorders, which gather tensors while a step runs.

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

    def write_tensors(self, step, tensors, later=False):
        """tensors: list of (name, Gathered, True if scaled, scale or None if unknown). later: another thread
        waits for a GPU's counts and writes them; finish() waits for it."""
        self._writer.write_tensors(step, tensors, later)

    def finish(self):
        """Waits until all is written. Raises the error of what was written later."""
        self._writer.finish()

    def write_scalars(self, **scalars):
        self._writer.write_scalars(**scalars)

    def write_sample(self, step, tensors, metadata):
        """tensors: {name: tensor in CPU memory}"""
        samples = [(name, *as_numbers(values)) for name, values in tensors.items()]
        self._writer.write_sample(step, samples, metadata)


def _arrays(trees):
    unknown = next((role for role in trees if role not in ROLES), None)
    if unknown is not None:
        raise TypeError(f"step() has no argument {unknown!r}; the roles of tensors are {', '.join(ROLES)}")
    return {name: array for role, tree in trees.items() if tree is not None
            for name, array in named_arrays(tree, role).items()}


def _gathered(arrays):
    """Returns {name: Gathered} of {name: array}."""
    found, pieces = {}, []
    for name, array in arrays.items():
        found[name] = _halfscope.Gathered()
        if is_torch(array) and "float8" not in str(array.dtype):
            pieces.append((found[name], array, None))
        else:
            found[name].add_array(*in_memory(name, array))
    if pieces:
        from halfscope.torch.tensors import gather_each

        try:
            gather_each(pieces)
        except Exception as error:  # a tensor that torch.func traces, on the device meta, ...
            raise TypeError(f"an array of PyTorch cannot be read ({str(error).partition(chr(10))[0]})") from error
    return found


def unscaled(magnitude, scale):
    """Returns a magnitude divided by its loss scale; NaN if the scale is 0 or infinite."""
    if magnitude is None or scale == 1.0:
        return magnitude
    return magnitude / scale if 0 < scale < math.inf else math.nan


def _is_scaled(name):
    return name.partition("/")[0] in ("weight_grad", "local_weight_grad", "activation_grad")


def _number(name, value):
    try:
        if isinstance(value, str):
            raise TypeError
        return None if value is None else float(value)
    except Exception:  # the tensor may have no values
        raise TypeError(f"{name} is {described(value)}, expected a number") from None


def _largest(gathered):
    """Returns the largest magnitude of all, NaN if a value is NaN; None if there are no values."""
    found = [counts.largest for counts in gathered if counts.largest is not None]
    return math.nan if any(map(math.isnan, found)) else max(found, default=None)
