# SPDX-License-Identifier: Apache-2.0
"""The update u that an optimizer added to a weight w, before the sum was rounded.

It is recomputed after the step from the optimizer's state, with the operations and the arithmetic
of torch.optim (of its foreach implementation if the optimizer uses that). Only the last operation
differs: it adds to zero instead of the weight. So w_next = round(w + u), except for the one
rounding of u itself. Kernels of fused=True and capturable=True may differ in the last bits of u.
For 16-bit parameters u is float32, because PyTorch's last operation rounds once, from float32.
"""

import functools
import math

import torch

from halfscope.torch.sharding import is_distributed

try:
    from torch.optim.optimizer import _default_to_fused_or_foreach as _choose
except ImportError:  # before 2.0, foreach operations are used only on demand
    _choose = None


def knows(optimizer):
    """Returns True if updates of this optimizer can be recomputed: not for subclasses, which may
    compute anything. AdamW, a subclass of Adam in newer PyTorch, is listed itself."""
    return type(optimizer) in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


def needs_gradient(optimizer, group):
    """Returns True if update() needs the gradient. SGD with momentum needs it only for Nesterov."""
    return type(optimizer) is torch.optim.SGD and (group["momentum"] == 0 or group["nesterov"])


def needs_weight(optimizer, group):
    """Returns True if update() needs the weight before the step."""
    if group["weight_decay"] == 0:
        return False
    return _decoupled(optimizer, group) or needs_gradient(optimizer, group)


def update(optimizer, group, parameter, weight, gradient, foreach):
    """Computes the update of one parameter in the step just taken.

    weight: its values before the step; None unless needs_weight(). gradient: unscaled, as the
    optimizer used it; None unless needs_gradient(). foreach: the result of takes_foreach(group).
    Returns a tensor of the parameter's shape.
    """
    state = optimizer.state.get(parameter, {})  # [] would add an entry
    with torch.no_grad():
        if type(optimizer) is torch.optim.SGD:
            return _sgd(group, state, parameter, weight, gradient)
        return _adam(group, state, parameter, weight, _decoupled(optimizer, group), foreach)


def _decoupled(optimizer, group):
    return type(optimizer) is torch.optim.AdamW or bool(group.get("decoupled_weight_decay"))


def takes_foreach(group):
    """Returns True if torch.optim uses foreach operations for this group. It chooses since 2.0."""
    if group.get("foreach") is not None or group.get("fused") is not None:
        return bool(group.get("foreach"))
    if _choose is None or (isinstance(group["lr"], torch.Tensor) and not group.get("capturable")):
        return False
    return _choose(group["params"], group.get("differentiable", False), use_fused=False)[1]


def _number(value):
    return value.item() if isinstance(value, torch.Tensor) else value


def _wide(tensor):
    """Converts 16-bit values to float32, in which PyTorch's element-wise operations compute."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _zero_for(tensor, parameter):
    """Returns the zero to which the last operation adds, in place of the weight: a single element
    if broadcasting works, else a tensor of zeros."""
    if tensor.layout != torch.strided or is_distributed(tensor):
        return torch.zeros_like(_wide(parameter.detach()))
    return _zero(tensor.dtype, tensor.device)


@functools.cache
def _zero(dtype, device):
    return torch.zeros((), dtype=dtype, device=device)


@functools.lru_cache(maxsize=64)
def _as_add_takes_it(alpha, dtype, device):
    """Returns alpha as torch.add uses it. It rounds alpha to a 16-bit type on the CPU, but not on a
    GPU; a test call shows which."""
    rounded = torch.tensor(alpha, dtype=dtype, device=device)
    if torch.add(-rounded, torch.ones_like(rounded), alpha=alpha).item() == 0:
        return rounded.item()
    return alpha


def _sgd(group, state, parameter, weight, gradient):
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
    direction = _wide(direction)
    factor = -_number(group["lr"])
    if direction.dtype != parameter.dtype:
        factor = _as_add_takes_it(factor, parameter.dtype, parameter.device)
    return torch.add(_zero_for(direction, parameter), direction, alpha=factor)


def _adam(group, state, parameter, weight, decoupled, foreach):
    lr, (beta1, beta2) = _number(group["lr"]), group["betas"]
    step = _number(state["step"])
    step_size = lr / (1 - _number(beta1) ** step)
    correction = math.sqrt(1 - _number(beta2) ** step)
    second = state["max_exp_avg_sq"] if group["amsgrad"] else state["exp_avg_sq"]
    # On a GPU the foreach operation divides; the other one multiplies by the rounded reciprocal.
    if foreach:
        (root,) = torch._foreach_div(torch._foreach_sqrt([second]), [correction])
    else:
        root = second.sqrt() / correction
    denominator = root.add_(group["eps"])
    first = _wide(state["exp_avg"])
    zero = _zero_for(first, parameter)
    change = torch.addcdiv(zero, first, _wide(denominator), value=-step_size)
    if not decoupled or group["weight_decay"] == 0:
        return change
    # The optimizer multiplies the weight by `kept`, 1 - lr * weight_decay rounded to the weight's
    # type. kept - 1 is exact; -lr * weight_decay would differ from it.
    kept = torch.full((), 1 - lr * group["weight_decay"], dtype=zero.dtype, device=zero.device)
    return change.add_(_wide(weight) * (kept - 1))
