# SPDX-License-Identifier: Apache-2.0
"""What the recorder and emulate() are given."""

import collections.abc
import math

import torch


def step_test(every, name):
    """A function of the step from a number, a collection of steps, a function, or None: never."""
    if every is None:
        return lambda step: False
    if isinstance(every, int) and not isinstance(every, bool) and every > 0:
        return lambda step: step % every == 0
    if callable(every):
        return lambda step: bool(every(step))
    if isinstance(every, collections.abc.Iterable) and not isinstance(every, (str, bytes)):
        steps = frozenset(every)
        return lambda step: step in steps
    raise TypeError(f"{name} is {every!r}, expected a number of steps above 0, a collection of steps "
                    "or a function of the step")


def told(every):
    """How run.json says it."""
    if every is None or isinstance(every, int):
        return every
    return "a function" if callable(every) else sorted(every)


class Steps:
    """At which steps histograms are recorded, whole tensors, and activation gradients' magnitudes."""

    def __init__(self, every, sample_every, magnitudes_every):
        settings = {"every": every, "sample_every": sample_every,
                    "magnitudes_every": every if magnitudes_every is None else magnitudes_every}
        self.record, self.sample, self.look = (step_test(v, k) for k, v in settings.items())
        self.told = {name: told(value) for name, value in settings.items()}


def require_kinds(model, optimizer, scaler=None, loss_scale=None):
    """Mistakes that would show hours later, or in the log alone, show here."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: found {type(model).__name__}, expected a torch.nn.Module")
    if not hasattr(optimizer, "param_groups") or not hasattr(optimizer, "step"):
        raise TypeError(f"optimizer: found {type(optimizer).__name__}, expected a torch.optim.Optimizer")
    missing = [method for method in ("scale", "step", "update") if not hasattr(scaler, method)]
    if scaler is not None and missing:
        raise TypeError(f"scaler: found {type(scaler).__name__}, expected a GradScaler or anything with its methods")
    if loss_scale is not None and not (math.isfinite(loss_scale) and loss_scale > 0):
        raise ValueError(f"loss_scale: found {loss_scale}, expected a positive finite number")
