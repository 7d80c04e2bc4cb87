# SPDX-License-Identifier: Apache-2.0
"""PyTorch's optimizers as judges of halfscope.optimizer: python optimizer_judge.py ELEMENTS STEPS [PART].

Prints a JSON object: the instruction set of PyTorch's kernels, and for each case the weight-steps and
the numbers of values that differ, with PyTorch's square root and with the correctly rounded one.
"""

import itertools
import json
import sys
import time
import warnings

import torch

import halfscope.optimizer
from halfscope.torch import steps

KINDS = ("single", "foreach", "fused", "differentiable")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
OPTIMIZERS = {
    "adamw": (torch.optim.AdamW, {"lr": 1e-3, "weight_decay": 0.01}),
    "adamw, small betas": (torch.optim.AdamW, {"lr": 3e-3, "weight_decay": 0.1, "betas": (0.4, 0.99),
                                               "maximize": True, "amsgrad": True}),
    "adam": (torch.optim.Adam, {"lr": 1e-3}),
    "adam, decay": (torch.optim.Adam, {"lr": 2e-4, "weight_decay": 0.02, "eps": 1e-6}),
    "amsgrad": (torch.optim.Adam, {"lr": 1e-3, "betas": (0.5, 0.95), "amsgrad": True}),
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd, decay": (torch.optim.SGD, {"lr": 0.013, "weight_decay": 0.01, "maximize": True}),
    "momentum": (torch.optim.SGD, {"lr": 0.013, "momentum": 0.9, "weight_decay": 0.01}),
    "nesterov": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    "dampening": (torch.optim.SGD, {"lr": 0.03, "momentum": 0.85, "dampening": 0.3, "maximize": True}),
}


def values(count, seed, low, high):
    """Values of many binades; of a small part of all binades, with zeros, infinities and NaN."""
    generator = torch.Generator().manual_seed(seed)
    exponents = torch.randint(low, high, (count,), generator=generator)
    result = torch.randn(count, generator=generator) * torch.exp2(exponents.float())
    some = torch.arange(5, count, 31)
    bits = torch.randint(-2**31, 2**31 - 1, (len(some),), generator=generator).to(torch.int32)
    result[some] = bits.view(torch.float32)
    result[11::997] = 0.0
    return result


def made(make, options, kind, parameter):
    """Returns the optimizer, or None if this PyTorch does not have it."""
    if kind == "differentiable" and (make is torch.optim.SGD or parameter.dtype != torch.float32):
        return None  # that changes none of its operations; a GPU's rounds numbers to 16 bits
    extra = {kind: True} if kind in ("differentiable", "fused") else {"foreach": kind == "foreach"}
    one = torch.nn.Parameter(torch.ones(1, dtype=parameter.dtype), requires_grad=False)
    one.grad = torch.ones_like(one)
    try:
        make([one], **options, **extra).step()
    except (TypeError, RuntimeError):
        return None
    return make([parameter], **options, **extra)


def next_of(optimizer, root):
    """Returns what halfscope computes for the only parameter."""
    (after,) = halfscope.optimizer.next_step(optimizer, root=root).values()
    return after


def differing(a, b):
    """Returns a mask of values whose bits differ, NaN apart."""
    bits = torch.int32 if a.dtype == torch.float32 else torch.int16
    return (a.view(bits) != b.view(bits)) & ~(a.isnan() & b.isnan())


def compare(kind, dtype, make, options, count, number_of_steps):
    """Returns the numbers of values that differ; None if PyTorch has no such implementation."""
    parameter = torch.nn.Parameter(values(count, 1, -6, 3).to(dtype), requires_grad=False)
    gradients = [values(count, seed, -14, 1).to(dtype) for seed in (2, 3, 4)]
    optimizer = made(make, options, kind, parameter)
    if optimizer is None:
        return None
    found = {"weight_steps": 0, "weights": 0, "state": 0, "weights_without_root": 0, "unexplained": 0, "roots": 0}
    for index in range(number_of_steps):
        parameter.grad = gradients[index % 3] * (0.5 + index % 5)
        (judge_end if kind == "differentiable" else judge)(optimizer, parameter, found)
    return found


def wrong_roots(state):
    """Returns a mask of second moments whose square root PyTorch rounds wrongly."""
    second = state.get("max_exp_avg_sq")
    second = state["exp_avg_sq"] if second is None else second
    return differing(second.sqrt(), second.double().sqrt().to(second.dtype))


def judge_end(optimizer, parameter, found):
    """The same for differentiable=True: behind the moments, its operations are those of capturable=True
    in float32, but for square roots. beta^t is in a range."""
    before = parameter.detach().clone()
    optimizer.step()
    state, group = optimizer.state[parameter], optimizer.param_groups[0]
    nearest, *ends = (steps.step_of(optimizer, group, before, parameter.grad, state, False, row="cuda-capturable",
                                    moments_are_new=True, bound=bound).weight
                      for bound in ("nearest", "shortest", "longest"))
    weight, right = parameter.detach(), ~wrong_roots(state)
    apart = differing(nearest, weight) & right
    powers = [(beta**state["step"], float(torch.tensor(beta)) ** state["step"].item()) for beta in group["betas"]]
    rest = 1 - powers[1][0]
    if all(number == torch.tensor(float(wanted)) for number, wanted in [*powers, (rest.sqrt(), rest.double().sqrt())]):
        found["exact_steps"] = found.get("exact_steps", 0) + 1
        found["unexplained"] += int(apart.sum())
    found["inside"] = found.get("inside", 0) + int(apart.sum())
    inside = (weight >= torch.minimum(*ends)) & (weight <= torch.maximum(*ends))
    found["unexplained"] += int((apart & ~inside).sum())
    found["weight_steps"] += before.numel()


def judge(optimizer, parameter, found):
    """Compares one step, and adds to what was found."""
    by_torch = next_of(optimizer, torch.sqrt)
    same = parameter.dtype != torch.float32 or optimizer.param_groups[0].get("fused")
    rounded = by_torch if same else next_of(optimizer, None)
    optimizer.step()
    weight, state = parameter.detach(), optimizer.state[parameter]
    found["weight_steps"] += weight.numel()
    found["weights"] += int(differing(by_torch.weight, weight).sum())
    apart = differing(rounded.weight, weight)
    found["weights_without_root"] += int(apart.sum())
    for name in by_torch._fields[1:]:
        if getattr(by_torch, name) is not None:
            found["state"] += int(differing(getattr(by_torch, name), state[name]).sum())
            found["state"] += 0 if same else int(differing(getattr(rounded, name), state[name]).sum())
    if "exp_avg_sq" in state:
        roots = wrong_roots(state)
        found["roots"] += int(roots.sum())
        apart &= ~roots
    found["unexplained"] += int(apart.sum())


def main(count, number_of_steps, part=None):
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(part[1:]) if part else 1)
    results, begun = [], time.perf_counter()
    for kind, dtype, (name, (make, options)) in itertools.product(KINDS, DTYPES, OPTIMIZERS.items()):
        found = compare(kind, dtype, make, options, count, number_of_steps)
        results.append({"kind": kind, "dtype": str(dtype)[6:], "optimizer": name, "found": found})
    print(json.dumps({"processor": steps._processor(), "threads": torch.get_num_threads(),
                      "torch": torch.__version__, "seconds": time.perf_counter() - begun, "results": results}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
