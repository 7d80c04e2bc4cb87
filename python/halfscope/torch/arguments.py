# SPDX-License-Identifier: Apache-2.0
"""Checks of the arguments of the recorder and of emulate()."""

import collections.abc
import contextlib
import math
import operator

import torch

from halfscope._arguments import described, interval


def chosen_steps(every, name):
    """Checks a choice of steps. Returns an int (every n-th step), a frozenset of steps, a function
    of the step, or None (never). Integers may be of NumPy or PyTorch. Raises TypeError."""
    if callable(every):
        return every
    with contextlib.suppress(TypeError):
        if isinstance(every, collections.abc.Iterable) and not isinstance(every, (str, bytes)):
            return frozenset(map(operator.index, every))
    return interval(name, every, "a collection of steps or a function of the step")


def step_test(every):
    """Returns a function that tests a step, from the result of chosen_steps()."""
    if every is None:
        return lambda step: False
    if isinstance(every, int):
        return lambda step: step % every == 0
    return (lambda step: bool(every(step))) if callable(every) else every.__contains__


def told(every):
    """Returns a result of chosen_steps() for run.json."""
    if every is None or isinstance(every, int):
        return every
    return "a function" if callable(every) else sorted(every)


class Steps:
    """Tests of a step: record (histograms), sample (whole tensors), look (gradient magnitudes)."""

    def __init__(self, every, sample_every, magnitudes_every):
        settings = {"every": every, "sample_every": sample_every,
                    "magnitudes_every": magnitudes_every}
        settings = {name: chosen_steps(value, name) for name, value in settings.items()}
        self.record, self.sample, self.look = map(step_test, settings.values())
        self.told = {name: told(value) for name, value in settings.items()}


def _require_own_parameters(model, optimizer):
    """Raises ValueError if a PyTorch optimizer steps no parameter of the model. The FP32 copies that
    an optimizer may hold of a model in 16 bits (master weights) are not refused."""
    own = list(model.parameters())
    ids = {id(parameter) for parameter in own}
    stepped = [p for group in optimizer.param_groups for p in group["params"]]
    copies = any(p.dtype in (torch.float16, torch.bfloat16) for p in own)
    if copies or not stepped or not isinstance(optimizer, torch.optim.Optimizer):
        return
    if not any(id(p) in ids for p in stepped):
        raise ValueError("optimizer: none of its parameters is the model's, so its steps train "
                         "another model; make it from this model's parameters(), after the model "
                         "was moved or copied")


def require_kinds(model, optimizer, scaler=None, loss_scale=None, modules=None, on_error="warn"):
    """Raises TypeError or ValueError for mistakes that would only appear later or in the log."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model: found {type(model).__name__}, expected a torch.nn.Module")
    if not hasattr(optimizer, "param_groups") or not hasattr(optimizer, "step"):
        raise TypeError(f"optimizer: found {type(optimizer).__name__}, expected a torch.optim.Optimizer")
    if modules is not None and not callable(modules):
        raise TypeError(f"modules: found {type(modules).__name__}, expected a function of (path, module)")
    missing = [method for method in ("scale", "step", "update") if not hasattr(scaler, method)]
    if scaler is not None and missing:
        raise TypeError(f"scaler: found {type(scaler).__name__}, expected a GradScaler or anything with its methods")
    if loss_scale is not None and not (math.isfinite(loss_scale) and loss_scale > 0):
        raise ValueError(f"loss_scale: found {loss_scale}, expected a positive finite number")
    if not callable(on_error) and not (isinstance(on_error, str) and on_error in ("warn", "raise")):
        raise ValueError(f"on_error: found {described(on_error)}, expected 'warn', 'raise' or a function")
    _require_own_parameters(model, optimizer)
