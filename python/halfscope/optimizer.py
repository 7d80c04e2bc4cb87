# SPDX-License-Identifier: Apache-2.0
"""A step of SGD, Adam or AdamW, bit for bit as an implementation of PyTorch computes it.

    after = halfscope.optimizer.step("cpu-fused", "adamw", {"lr": 1e-3}, 1, weight, gradient, m, v)
    after.weight, after.exp_avg, after.exp_avg_sq

    halfscope.optimizer.next_step(optimizer)  # of a torch optimizer that is about to step
    halfscope.optimizer.flips(optimizer)      # the BF16 copies of its weights that the step changes

rows() lists the implementations. docs/numerics/optimizer.md has their rules.
"""

import importlib
import math
import numbers
from typing import Any, NamedTuple

from halfscope import _halfscope
from halfscope._arguments import check_text, described
from halfscope._parts import part
from halfscope.arrays import _dtype, _empty, _is_torch, _seen

__all__ = ["Row", "Stepped", "flips", "next_step", "rows", "step"]


class Row(NamedTuple):
    """An implementation. accuracy: "exact"; "root": square roots of float32 are a library's, up to
    one ulp off; "powers": beta^t is a device's, up to four ulps off; "random": rounded at random."""

    name: str
    source: str
    accuracy: str


class Stepped(NamedTuple):
    """Values after a step; None for those that were not given."""

    weight: Any
    exp_avg: Any = None
    exp_avg_sq: Any = None
    max_exp_avg_sq: Any = None
    momentum_buffer: Any = None


def rows():
    """Returns all rows: the first is PyTorch's default on a CPU."""
    return [Row(*row) for row in _halfscope.optimizer_rows()]


def step(row, algorithm, settings, steps, weight, gradient, exp_avg=None, exp_avg_sq=None,
         max_exp_avg_sq=None, momentum_buffer=None, *, scale=1, first=False, processor=None, threads=1,
         bound="nearest", root=None, moments_are_new=False, update_only=False):
    """Computes a step of one parameter. Returns Stepped, in new arrays.

    row: a name that rows() has. algorithm: "sgd", "adam" or "adamw". settings: {name of torch.optim:
    value}; left out: lr 1e-3, betas (0.9, 0.999), eps 1e-8, else 0 or False. steps: steps so far, this one
    included. Arrays: values before the step, of one shape and dtype, of NumPy or PyTorch in CPU
    memory; None for those that the step does not read. scale: the loss scale that the step divides the
    gradient by. first: SGD with momentum has no buffer yet. processor: PyTorch's instruction set,
    "AVX2" (default), "AVX512" or "DEFAULT". threads: torch.get_num_threads().
    bound: in rows that are not exact, "shortest" and "longest" bound the change of each weight.
    root: square roots of float32, as a function from an array to a new one, such as torch.sqrt; by
    default they are correctly rounded. moments_are_new: the moments are those after the step.
    update_only: the weight of the result is the update u of w_next = round(w + u); in float32 if the
    weight has 16 bits.
    """
    state = {"exp_avg": exp_avg, "exp_avg_sq": exp_avg_sq, "max_exp_avg_sq": max_exp_avg_sq,
             "momentum_buffer": momentum_buffer}
    state = {name: array for name, array in state.items() if array is not None}
    for name, array in {"gradient": weight if gradient is None else gradient, **state}.items():
        if (_dtype(array), array.shape) != (_dtype(weight), weight.shape):
            raise ValueError(f"{name} is {described(array)} with dtype {_dtype(array)}, expected dtype and "
                             f"shape of the weight, {_dtype(weight)} and {tuple(weight.shape)}")
    for name, text in (("row", row), ("algorithm", algorithm), ("bound", bound)):
        check_text(name, text, "a text such as 'cpu-fused', 'adamw' or 'nearest'")
    for name, value, least in (("steps", steps, algorithm != "sgd"), ("threads", threads, 1), ("scale", scale, 2**-126)):
        if not isinstance(value, numbers.Real) or not least <= value < math.inf:
            raise ValueError(f"{name} is {described(value)}, expected a number of at least {least:.4g}")
    if not isinstance(settings, dict):
        raise TypeError(f"settings is {described(settings)}, expected a dict by names of torch.optim")
    options = _halfscope.StepOptions(processor or "AVX2", bound, root and _in_place(root, weight))
    _set(options, "options", {"steps": steps, "scale": scale, "first": first, "threads": threads,
                              "moments_are_new": moments_are_new, "update_only": update_only})
    given = _halfscope.OptimizerSettings(algorithm)
    betas = settings.get("betas", (0.9, 0.999))
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"settings has betas: {described(betas)}, expected two numbers")
    _set(given, "settings", {"beta1": betas[0], "beta2": betas[1], **settings}, but="betas")
    wide = update_only and "16" in _dtype(weight)
    after = _empty(weight, "binary32") if wide else _new(weight)
    new = {} if moments_are_new else {name: _new(array) for name, array in state.items()}
    moments = ("momentum_buffer" if algorithm == "sgd" else "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    inputs = [weight, gradient, *map(state.get, moments)]
    _halfscope.optimizer_step(row, given, options, [each if each is None else _seen(each) for each in inputs],
                              [each if each is None else _seen(each) for each in (after, *map(new.get, moments))],
                              "BF16" if _dtype(_seen(weight)) == "uint16" else None)
    return Stepped(after, **{**state, **new})


def _set(of, what, values, but=None):
    for name, value in values.items():
        try:
            if name != but:
                setattr(of, name, value)
        except (AttributeError, TypeError, ValueError):
            known = [each for each in dir(of) if not each.startswith("_")]
            raise ValueError(f"{what} has {described(name)}: {described(value)}, expected numbers, by names of "
                             f"torch.optim: {', '.join(known)}") from None


def _new(like):
    if _is_torch(like):
        return like.detach().new_empty(like.shape)
    return part("numpy", "a new array", "numpy").empty(like.shape, like.dtype)


def _in_place(root, weight):
    """Returns a function that replaces the values of a NumPy array by their square roots."""
    def replace(values):
        if _is_torch(weight):
            values = importlib.import_module("torch").from_numpy(values)
        roots = root(values)
        if getattr(roots, "shape", None) != values.shape:
            raise ValueError(f"root returns {described(roots)}, expected a root for each of {len(values)} values")
        values[:] = roots
    return replace


def __dir__():
    return __all__


def __getattr__(name):  # PyTorch is imported at their first use
    if name in ("flips", "next_step"):
        return getattr(importlib.import_module("halfscope.torch.steps"), name)
    raise AttributeError(f"module 'halfscope.optimizer' has no attribute {name!r}")
