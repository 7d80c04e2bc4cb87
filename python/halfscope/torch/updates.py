# SPDX-License-Identifier: Apache-2.0
"""The update an optimizer added to a weight, before it was rounded into the weight.

Recomputed after the step from the optimizer's state, by the operations torch.optim applies (those
of its foreach implementation where it takes that), in the arithmetic it applies them in; only the
last one adds to zero where the optimizer adds to the weight. So w_next = round(w + u), up to the one
rounding of u itself. Kernels of fused=True and capturable=True may differ in u's last bits.
For 16-bit parameters u is float32, since PyTorch's last operation rounds once, from float32.
"""

import functools
import math

import torch

from halfscope.torch.sharding import is_distributed

try:
    from torch.optim.optimizer import _default_to_fused_or_foreach as _choose
except ImportError:  # before 2.0 foreach operations are taken on demand alone
    _choose = None


def knows(optimizer):
    """Whether updates of this optimizer are recomputed. Subclasses may do anything, so they are not;
    AdamW is a subclass of Adam in newer PyTorch, and known by its own name."""
    return type(optimizer) in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


def needs_gradient(optimizer, group):
    """Whether the gradient must be at hand: SGD's momentum buffer holds all but Nesterov's part."""
    return type(optimizer) is torch.optim.SGD and (group["momentum"] == 0 or group["nesterov"])


def needs_weight(optimizer, group):
    """Whether the weight before the step must be at hand."""
    if group["weight_decay"] == 0:
        return False
    return _decoupled(optimizer, group) or needs_gradient(optimizer, group)


def update(optimizer, group, parameter, weight, gradient, foreach):
    """The update of one parameter by the step just taken.

    weight: its values before the step. gradient: unscaled, as the optimizer saw it. Either may be
    None where it is not needed. foreach: what takes_foreach(group) says. Returns a tensor like the
    parameter.
    """
    state = optimizer.state.get(parameter, {})  # [] would add an entry
    with torch.no_grad():
        if type(optimizer) is torch.optim.SGD:
            return _sgd(group, state, parameter, weight, gradient)
        return _adam(group, state, parameter, weight, _decoupled(optimizer, group), foreach)


def _decoupled(optimizer, group):
    return type(optimizer) is torch.optim.AdamW or bool(group.get("decoupled_weight_decay"))


def takes_foreach(group):
    """Whether torch.optim steps this group with foreach operations: from 2.0 on it chooses itself."""
    if group.get("foreach") is not None or group.get("fused") is not None:
        return bool(group.get("foreach"))
    if _choose is None or (isinstance(group["lr"], torch.Tensor) and not group.get("capturable")):
        return False
    return _choose(group["params"], group.get("differentiable", False), use_fused=False)[1]


def _number(value):
    return value.item() if isinstance(value, torch.Tensor) else value


def _wide(tensor):
    """As PyTorch's element-wise operations compute: 16-bit values in float32."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _zero_for(tensor, parameter):
    """What the optimizer's operation adds this tensor to, in place of the weight: one zero where that
    is enough."""
    if tensor.layout != torch.strided or is_distributed(tensor):
        return torch.zeros_like(_wide(parameter.detach()))
    return _zero(tensor.dtype, tensor.device)


@functools.cache
def _zero(dtype, device):
    return torch.zeros((), dtype=dtype, device=device)


@functools.lru_cache(maxsize=64)
def _as_add_takes_it(alpha, dtype, device):
    """torch.add rounds alpha to a 16-bit type on the CPU and not on a GPU: asks it."""
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
    # On a GPU the foreach operation divides, the other multiplies by the rounded reciprocal.
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
    # The optimizer multiplies the weight by 1 - lr * weight_decay rounded to its type: what that
    # takes away is exactly representable, lr * weight_decay would not be what was taken.
    kept = torch.full((), 1 - lr * group["weight_decay"], dtype=zero.dtype, device=zero.device)
    return change.add_(_wide(weight) * (kept - 1))
