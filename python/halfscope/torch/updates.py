# SPDX-License-Identifier: Apache-2.0
"""The update u that an optimizer added to a weight w, before the sum was rounded: w_next =
round(w + u), but for the one rounding of u itself.

It is recomputed after the step from the optimizer's state, as torch.optim computes it: on a CPU by
halfscope.optimizer; elsewhere with torch.optim's operations (those of its foreach implementation if
the optimizer uses that), but the last one, which adds the weight. Kernels of fused=True and
capturable=True on a GPU may differ in the last bits of u. For 16-bit parameters u is float32,
because PyTorch's last operation rounds once, from float32.
"""

import math
from collections import defaultdict

import torch

from halfscope.torch.steps import has_row, is_decoupled, number, step_of
from halfscope.torch.tensors import local


def needs_gradient(optimizer, group):
    """Returns True if update_each() needs the gradient. SGD with momentum needs it only for Nesterov."""
    return type(optimizer) is torch.optim.SGD and (group["momentum"] == 0 or group["nesterov"])


def changes_gradient(optimizer, group, foreach):
    """Returns True if the step adds the momentum buffer to the gradient that update_each() needs: Nesterov's
    momentum by foreach operations, where neither weight decay nor maximize makes a copy. foreach: result of
    takes_foreach(group)."""
    return (foreach and needs_gradient(optimizer, group) and group["momentum"] != 0 and
            group["weight_decay"] == 0 and not group.get("maximize"))


def needs_weight(optimizer, group):
    """Returns True if update_each() needs the weight before the step."""
    if group["weight_decay"] == 0:
        return False
    return is_decoupled(optimizer, group) or needs_gradient(optimizer, group)


def update_each(optimizer, trained, foreach):
    """Computes the updates of parameters in the step just taken.

    trained: (parameter, its group, weight, gradient). weight: the values before the step; None unless
    needs_weight(). gradient: unscaled, as the optimizer used it; None unless needs_gradient(). foreach: {id of
    a group: result of takes_foreach(group)}. Returns a list of tensors of the parameters' shapes; of a DTensor,
    this rank's part. If the optimizer uses foreach operations, one computes many updates.
    """
    updates, together = [None] * len(trained), defaultdict(list)
    states = [optimizer.state.get(parameter, {}) for parameter, *_ in trained]  # [] would add an entry
    states = [{key: _plain(each) for key, each in state.items()} for state in states]
    taken = _numbers([state.get("step", 0) for state in states])
    with torch.no_grad():
        for i, (parameter, group, weight, gradient) in enumerate(trained):
            parameter, weight, gradient, state = *map(_plain, (parameter, weight, gradient)), states[i]
            if not parameter.is_cpu or not has_row(parameter, gradient, state):
                key = (id(group), foreach[id(group)] or i, parameter.dtype, taken[i],
                       gradient is None or gradient.layout, frozenset(state))
                together[key].append((i, group, state, weight, gradient))
                continue
            updates[i] = step_of(optimizer, group, parameter if weight is None else weight, gradient, state,
                                 foreach[id(group)], moments_are_new=True, update_only=True, root=torch.sqrt).weight
        for those in together.values():
            places, (group, *_), of_each, weights, gradients = zip(*those)
            if type(optimizer) is torch.optim.SGD:
                found = _sgd(group, of_each, weights, gradients)
            else:
                found = _adam(group, of_each, taken[places[0]], weights, is_decoupled(optimizer, group),
                              foreach[id(group)])
            for i, each in zip(places, found):
                updates[i] = each
    return updates


def _numbers(values):
    """Returns numbers and tensors of one element as numbers. Waits once for a GPU."""
    alike = defaultdict(list)
    for i, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            alike[value.device, value.dtype, value.shape].append(i)
    for places in alike.values():
        for i, value in zip(places, torch.stack([values[i] for i in places]).flatten().tolist()):
            values[i] = value
    return values


def _plain(value):
    """Returns a DTensor's part of this rank, and anything else as it is."""
    plain = value is None or type(value) in (torch.Tensor, torch.nn.Parameter) or not hasattr(value, "to_local")
    return value if plain else local(value)


def _wide(tensor):
    """Converts 16-bit values to float32, in which PyTorch's element-wise operations compute."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _sgd(group, states, weights, gradients):
    momentum = group["momentum"]
    buffers = [state.get("momentum_buffer") for state in states] if momentum != 0 else [None]
    if buffers[0] is not None and not group["nesterov"]:
        directions = buffers
    else:
        directions = torch._foreach_neg(gradients) if group.get("maximize") else gradients
        if group["weight_decay"] != 0:
            directions = _sums(directions, weights, group["weight_decay"])
        if buffers[0] is not None:
            directions = _sums(directions, buffers, momentum)
    directions = [each if each.layout == torch.strided else each.to_dense() for each in directions]
    return torch._foreach_mul([_wide(each) for each in directions], -number(group["lr"]))


def _sums(terms, others, alpha):
    if terms[0].layout != torch.strided:
        return [term.add(other, alpha=alpha) for term, other in zip(terms, others)]
    return torch._foreach_add(terms, others, alpha=alpha)


def _adam(group, states, step, weights, decoupled, foreach):
    lr, (beta1, beta2) = number(group["lr"]), group["betas"]
    step_size = lr / (1 - number(beta1) ** step)
    correction = math.sqrt(1 - number(beta2) ** step)
    roots = torch._foreach_sqrt([state["max_exp_avg_sq" if group["amsgrad"] else "exp_avg_sq"] for state in states])
    # On a GPU the foreach operation divides; the other one multiplies by the rounded reciprocal.
    if foreach:
        torch._foreach_div_(roots, [correction] * len(roots))
    else:
        roots = [root / correction for root in roots]
    torch._foreach_add_(roots, group["eps"])
    changes = torch._foreach_div([_wide(state["exp_avg"]) for state in states], [_wide(root) for root in roots])
    torch._foreach_mul_(changes, -step_size)
    if decoupled and group["weight_decay"] != 0:
        # The optimizer multiplies the weight by 1 - lr * weight_decay, rounded to the weight's type.
        # That less 1 is exact; -lr * weight_decay would differ from it.
        kept = torch.tensor(1 - lr * group["weight_decay"], dtype=changes[0].dtype).item()
        torch._foreach_add_(changes, [_wide(weight) for weight in weights], alpha=kept - 1)
    return changes
