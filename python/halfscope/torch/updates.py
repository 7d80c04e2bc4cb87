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

import torch

from halfscope.torch.steps import has_row, is_decoupled, number, step_of
from halfscope.torch.tensors import local


def needs_gradient(optimizer, group):
    """Returns True if update() needs the gradient. SGD with momentum needs it only for Nesterov."""
    return type(optimizer) is torch.optim.SGD and (group["momentum"] == 0 or group["nesterov"])


def needs_weight(optimizer, group):
    """Returns True if update() needs the weight before the step."""
    if group["weight_decay"] == 0:
        return False
    return is_decoupled(optimizer, group) or needs_gradient(optimizer, group)


def update(optimizer, group, parameter, weight, gradient, foreach):
    """Computes the update of one parameter in the step just taken.

    weight: its values before the step; None unless needs_weight(). gradient: unscaled, as the
    optimizer used it; None unless needs_gradient(). foreach: the result of takes_foreach(group).
    Returns a tensor of the parameter's shape; of a DTensor, this rank's part.
    """
    state = optimizer.state.get(parameter, {})  # [] would add an entry
    state = {key: local(each) if isinstance(each, torch.Tensor) else each for key, each in state.items()}
    parameter, weight, gradient = (each if each is None else local(each) for each in (parameter, weight, gradient))
    with torch.no_grad():
        if has_row(parameter, gradient, state):
            return step_of(optimizer, group, parameter if weight is None else weight, gradient, state, foreach,
                           moments_are_new=True, update_only=True, root=torch.sqrt).weight
        if type(optimizer) is torch.optim.SGD:
            return _sgd(group, state, weight, gradient)
        return _adam(group, state, weight, is_decoupled(optimizer, group), foreach)


def _wide(tensor):
    """Converts 16-bit values to float32, in which PyTorch's element-wise operations compute."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _sgd(group, state, weight, gradient):
    momentum = group["momentum"]
    buffer = state.get("momentum_buffer") if momentum != 0 else None
    if buffer is not None and not group["nesterov"]:
        direction = buffer
    else:
        direction = -gradient if group.get("maximize") else gradient
        if group["weight_decay"] != 0:
            direction = direction.add(weight, alpha=group["weight_decay"])
        if buffer is not None:
            direction = direction.add(buffer, alpha=momentum)
    direction = direction if direction.layout == torch.strided else direction.to_dense()
    return _wide(direction) * -number(group["lr"])


def _adam(group, state, weight, decoupled, foreach):
    lr, (beta1, beta2) = number(group["lr"]), group["betas"]
    step = number(state["step"])
    step_size = lr / (1 - number(beta1) ** step)
    correction = math.sqrt(1 - number(beta2) ** step)
    second = state["max_exp_avg_sq"] if group["amsgrad"] else state["exp_avg_sq"]
    # On a GPU the foreach operation divides; the other one multiplies by the rounded reciprocal.
    if foreach:
        (root,) = torch._foreach_div(torch._foreach_sqrt([second]), [correction])
    else:
        root = second.sqrt() / correction
    first = _wide(state["exp_avg"])
    change = first.div(_wide(root.add_(group["eps"]))).mul_(-step_size)
    if decoupled and group["weight_decay"] != 0:
        # The optimizer multiplies the weight by 1 - lr * weight_decay, rounded to the weight's type.
        # That less 1 is exact; -lr * weight_decay would differ from it.
        kept = torch.tensor(1 - lr * group["weight_decay"], dtype=first.dtype).item()
        change.add_(_wide(weight), alpha=kept - 1)
    return change
