# SPDX-License-Identifier: Apache-2.0
"""Logs to findings: the command line's answers, as Python objects."""

import json
import logging
import os

from halfscope import _halfscope


def _paths(logs):
    if isinstance(logs, (str, os.PathLike)):
        logs = [logs]
    return [os.fspath(log) for log in logs]


def _steps(steps):
    """(first, end) of None, one step, a slice or a range."""
    if steps is None:
        return None, None
    if isinstance(steps, int):
        return steps, steps + 1
    if isinstance(steps, (slice, range)) and steps.step in (None, 1):
        return steps.start, steps.stop
    raise TypeError(f"steps is {steps!r}, wanted a step, slice(first, end) or range(first, end)")


def _selection(steps, tensor, roles, recorded_scale, loss_scale=1.0, learning_rate=None):
    first, end = _steps(steps)
    return _halfscope.Selection(first=first, end=end, tensor=tensor,
                                roles=list((roles or {}).items()), recorded_scale=recorded_scale,
                                loss_scale=loss_scale, learning_rate=learning_rate)


def _answer(text_and_notes):
    """What the log had to say goes where the command line's stderr would be: the logger."""
    text, notes = text_and_notes
    for note in notes:
        logging.getLogger("halfscope").warning(note)
    return json.loads(text)


def _flushes(subnormals):
    if subnormals not in ("keep", "flush"):
        raise ValueError(f"subnormals is {subnormals!r}, wanted 'keep' or 'flush'")
    return subnormals == "flush"


def analyze(logs, *, format="binary16", loss_scale=1.0, recorded_scale=None, subnormals="keep",
            steps=None, tensor=None, roles=None, learning_rate=None, what_if=False,
            formats=False):
    """What rounding to a format does to every tensor of a log, or of several.

    logs: a path or several: run logs, safetensors, NPY, NPZ. loss_scale: counts are for this times
    the unscaled value. recorded_scale: the scale the values carry, where the log does not say.
    subnormals: "keep", or "flush" for hardware that makes them zero. steps: one step, or
    slice(first, end). tensor: a glob. roles: {glob: role}. learning_rate: that of plain SGD, where
    the log does not say. what_if: also what other arithmetic would do to weight updates; slower.
    formats: also every other format, FP8 and MX among them, at its best scale; slower.
    Returns the structure of `halfscope analyze --json`. Raises BadInput.
    """
    selection = _selection(steps, tensor, roles, recorded_scale, loss_scale, learning_rate)
    return _answer(_halfscope.analyze(_paths(logs), format, _flushes(subnormals), selection,
                                      what_if, formats))


def recommend(logs, *, headroom=1, target_underflow=0.001, recorded_scale=None, steps=None,
              tensor=None, roles=None):
    """The static loss scale for a log: the largest power of two that leaves `headroom` binades.

    Arguments as for analyze. target_underflow: the share of finite nonzero gradients that may become
    zero. Returns the structure of `halfscope recommend --json`. Raises BadInput.
    """
    selection = _selection(steps, tensor, roles, recorded_scale)
    return _answer(_halfscope.recommend(_paths(logs), selection, headroom, target_underflow))


def compare(a, b, *, format="binary16", loss_scale="own", recorded_scale=None, subnormals="keep",
            steps=None, tensor=None, roles=None):
    """Two runs tensor by tensor: FP32 against FP16, before against after.

    Arguments as for analyze. loss_scale: "own" counts the gradients of a step at that step's scale.
    Returns the structure of `halfscope compare --json`. Raises BadInput.
    """
    own = loss_scale == "own"
    selection = _selection(steps, tensor, roles, recorded_scale, 1.0 if own else loss_scale)
    return _answer(_halfscope.compare(os.fspath(a), os.fspath(b), format, _flushes(subnormals),
                                      selection, own))


def policies(log, *, policies=(), assume_constant_between=False, framework=None, headroom=1,
             target_underflow=0.001, recorded_scale=None, steps=None, roles=None):
    """What every framework's loss scaling would have done on a recorded run.

    policies: texts such as "torch,growth_interval=500"; none: every policy at its defaults, and what
    the run did. assume_constant_between: steps that are missing are like the one before; without it
    they are an error. framework: whose dynamic settings to search; settings behind its name stay,
    "deepspeed,hysteresis=2". Other arguments as for recommend. Returns the structure of
    `halfscope policies --json`. Raises BadInput, and ValueError for a policy or setting that is not
    known.
    """
    if isinstance(policies, str):
        policies = [policies]
    selection = _selection(steps, None, roles, recorded_scale)
    return _answer(_halfscope.policies(os.fspath(log), selection, list(policies),
                                       assume_constant_between, framework or "", headroom,
                                       target_underflow))
