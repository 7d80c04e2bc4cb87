# SPDX-License-Identifier: Apache-2.0
"""Counts updates that do not change an FP16 weight, with PyTorch's own half arithmetic."""

import torch


def _update(optimizer, group, parameter, before):
    """Returns the update of a weight, from the optimizer's state and definition."""
    state = optimizer.state.get(parameter, {})
    if isinstance(optimizer, torch.optim.SGD):
        direction = state["momentum_buffer"] if group["momentum"] else parameter.grad
        return direction * -group["lr"]
    beta1, beta2 = group["betas"]
    step = float(state["step"])
    first = state["exp_avg"].double() / (1 - beta1**step)
    second = state["exp_avg_sq"].double() / (1 - beta2**step)
    change = -group["lr"] * first / (second.sqrt() + group["eps"])
    if isinstance(optimizer, torch.optim.AdamW):
        change -= group["lr"] * group["weight_decay"] * before.double()
    return change.float()


def count(optimizer, names, before):
    """Returns {name: counts} after a step. before: {name: weight before it}; names: {id: name}."""
    found = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = names[id(parameter)]
            update = _update(optimizer, group, parameter, before[name])
            weight, small = before[name].half(), update.half()
            there, gone = update != 0, small == 0
            same = (weight.float() + small.float()).half() == weight
            found[name] = {"updates": int(there.sum()), "update_underflow": int((there & gone).sum()),
                           "swamped": int((there & ~gone & same).sum())}
    return found
