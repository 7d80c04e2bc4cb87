# SPDX-License-Identifier: Apache-2.0
"""The next step of a PyTorch optimizer: halfscope.optimizer.next_step and flips."""

import functools
import re
from typing import NamedTuple

import torch

from halfscope import optimizer as rows
from halfscope._arguments import described

try:
    from torch.optim.optimizer import _default_to_fused_or_foreach as _choose
except ImportError:  # before 2.0, foreach operations are used only on demand
    _choose = None

_SETTINGS = ("lr", "betas", "eps", "weight_decay", "momentum", "dampening", "nesterov", "maximize", "amsgrad")


class Flips(NamedTuple):
    """The copies of a parameter that the next step changes, as indices of its flattened elements.

    undecided: those that may change, because the row is not exact; none of them is in `moved`.
    share: an estimate of the share that changes, from the update alone: the mean of
    min(1, |update| / ulp of the copy).
    """

    moved: torch.Tensor
    undecided: torch.Tensor
    share: float


def knows(optimizer):
    """Returns True for the optimizers that have rows: not for subclasses, which may compute anything.
    AdamW, a subclass of Adam in newer PyTorch, is listed itself."""
    return type(optimizer) in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


def is_decoupled(optimizer, group):
    return type(optimizer) is torch.optim.AdamW or bool(group.get("decoupled_weight_decay"))


def takes_foreach(group):
    """Returns True if torch.optim uses foreach operations for this group. It chooses since 2.0."""
    if group.get("foreach") is not None or group.get("fused") is not None:
        return bool(group.get("foreach"))
    if _choose is None or (isinstance(group["lr"], torch.Tensor) and not group.get("capturable")):
        return False
    return _choose(group["params"], group.get("differentiable", False), use_fused=False)[1]


def number(value):
    return value.item() if isinstance(value, torch.Tensor) else value


def _row(group, device, foreach):
    if group.get("fused"):
        older = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 11)
        return "cuda-fused-2025" if device == "cuda" and older else f"{device}-fused"
    return device + "-foreach" * bool(foreach) + "-capturable" * bool(group.get("capturable"))


@functools.cache
def _processor():
    """Returns the instruction set of PyTorch's kernels."""
    found = re.search(r"CPU capability usage: (AVX2|AVX512)", torch.__config__.show())
    return found[1] if found else "DEFAULT"


def has_row(parameter, gradient, state):
    """Returns True if step_of() takes a parameter's tensors as they are: those of a CPU, dense."""
    tensors = [parameter, gradient, *(each for key, each in state.items() if key != "step")]
    return (parameter.dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64) and
            all(each is None or each.is_cpu and each.layout == torch.strided and each.dtype == parameter.dtype
                for each in tensors))


def step_of(optimizer, group, weight, gradient, state, foreach, row=None, **options):
    """Returns halfscope.optimizer.step() of a parameter. state: the optimizer's, of it. row: by default the
    one that the optimizer takes."""
    adam, new = type(optimizer) is not torch.optim.SGD, bool(options.get("moments_are_new"))
    names = ["exp_avg", "exp_avg_sq"] if adam else ["momentum_buffer"] * bool(group["momentum"])
    names += ["max_exp_avg_sq"] * bool(group.get("amsgrad"))
    row, weight = row or _row(group, weight.device.type, foreach), _on_cpu(weight)
    moments = {name: torch.zeros_like(weight) if state.get(name) is None else _on_cpu(state[name]) for name in names}
    settings = {name: number(group[name]) for name in _SETTINGS if name in group}
    if adam:
        settings["betas"] = tuple(map(number, group["betas"]))
    return rows.step(row, "sgd" if not adam else "adamw" if is_decoupled(optimizer, group) else "adam", settings,
                     number(state.get("step", 0)) + (not new), weight, gradient if gradient is None else _on_cpu(gradient),
                     **moments, first=not adam and state.get("momentum_buffer") is None, processor=_processor(),
                     threads=torch.get_num_threads(), **options)


def _on_cpu(tensor):
    return tensor.detach().cpu().contiguous().resolve_neg()


def _trained(optimizer):
    """Yields (name or index, group, parameter) of the parameters with a gradient."""
    if not knows(optimizer):
        raise TypeError(f"optimizer is {described(optimizer)}, expected torch.optim's SGD, Adam or AdamW itself")
    index = 0
    for group in optimizer.param_groups:
        if group.get("differentiable") or isinstance(group["lr"], torch.Tensor):
            raise ValueError("a parameter group has differentiable=True or a tensor as lr, whose arithmetic no row "
                             "has; expected differentiable=False and a number: lr.item()")
        for place, parameter in enumerate(group["params"]):
            if parameter.grad is not None:
                yield group.get("param_names", {}) and group["param_names"][place] or index, group, parameter
            index += 1


def next_step(optimizer, *, scale=1, bound="nearest", root=None, update_only=False):
    """Returns {name or index of a parameter: Stepped} for an optimizer that is about to step, in CPU
    memory. The row is the one that torch.optim chooses by the group's flags and the device.

    Parameters without a gradient are left out. Names: as PyTorch's optimizers have them, given
    named_parameters(). Other arguments: as halfscope.optimizer.step() has them.
    """
    return {name: step_of(optimizer, group, parameter, parameter.grad, optimizer.state.get(parameter, {}),
                          takes_foreach(group), scale=scale, bound=bound, root=root, update_only=update_only)
            for name, group, parameter in _trained(optimizer)}


def flips(optimizer, dtype=torch.bfloat16, *, scale=1, root=None):
    """Returns {name or index of a parameter: Flips}: the copies in `dtype` that the next step changes.
    root=torch.sqrt makes the answer exact for float32 parameters on a CPU, as fused=True does."""
    before = {name: _on_cpu(parameter) for name, _, parameter in _trained(optimizer)}
    ends = [next_step(optimizer, scale=scale, root=root, bound=bound) for bound in ("shortest", "longest")]
    updates = next_step(optimizer, scale=scale, root=root, update_only=True)
    return {name: _flips(weight, *(end[name].weight for end in ends), updates[name].weight, dtype)
            for name, weight in before.items()}


def _flips(weight, shortest, longest, update, dtype):
    copy, short, long = (each.to(dtype).flatten() for each in (weight, shortest, longest))
    bits = torch.int8 if copy.element_size() == 1 else torch.int16
    same = short.view(bits) == long.view(bits)
    wide, low, high = copy.float(), torch.minimum(short.float(), long.float()), torch.maximum(short.float(), long.float())
    moved = torch.where(same, short.view(bits) != copy.view(bits), (wide < low) | (wide > high))
    info = torch.finfo(dtype)
    ulp = torch.ldexp(torch.full_like(wide, info.eps), torch.frexp(wide)[1] - 1).clamp(min=info.tiny * info.eps)
    share = (update.flatten().abs() / ulp).clamp(max=1).mean(dtype=torch.float64).item()
    return Flips(moved.nonzero().flatten(), (~same & ~moved).nonzero().flatten(), share)
