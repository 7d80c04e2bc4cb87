# SPDX-License-Identifier: Apache-2.0
"""Compares PyTorch's optimizers on a GPU with the rows of halfscope.optimizer: optimizers.py OUT.json.

Prints a line and writes an object for each implementation: the weight-steps, and the numbers of
weights and moments whose bits differ; of weights also those outside the row's bounds. Exit code 1 if
one is outside, or differs in a row that is exact; 3 without PyTorch on a GPU.
"""

import itertools
import json
import sys

KINDS = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True},
         "capturable": {"foreach": False, "capturable": True},
         "foreach capturable": {"foreach": True, "capturable": True}}
COUNT, STEPS = 1_000_003, 8


def optimizers(torch):
    """Yields (name, class, settings)."""
    yield "adamw", torch.optim.AdamW, {"weight_decay": 0.01}
    yield "adam", torch.optim.Adam, {"weight_decay": 0.02, "eps": 1e-6, "betas": (0.4, 0.95)}
    yield "amsgrad", torch.optim.Adam, {"amsgrad": True, "maximize": True}
    yield "sgd", torch.optim.SGD, {"lr": 0.03, "weight_decay": 0.01}
    yield "momentum", torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "dampening": 0.3, "maximize": True}
    yield "nesterov", torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}


def values(torch, seed, low, high, dtype, device):
    generator = torch.Generator().manual_seed(seed)
    exponents = torch.randint(low, high, (COUNT,), generator=generator).float()
    return (torch.randn(COUNT, generator=generator) * torch.exp2(exponents)).to(device, dtype)


def differing(torch, a, b):
    bits = torch.int32 if a.dtype == torch.float32 else torch.int16
    return (a.view(bits) != b.view(bits)) & ~(a.isnan() & b.isnan())


def compare(torch, optimizer, parameter, next_step):
    """Runs STEPS steps. Returns the counts."""
    found = {"weight_steps": 0, "weights": 0, "moments": 0, "outside": 0}
    gradients = [values(torch, seed, -14, 1, parameter.dtype, parameter.device) for seed in (2, 3, 4)]
    for index in range(STEPS):
        parameter.grad = gradients[index % 3]
        (after,) = next_step(optimizer).values()
        low, high = (next(iter(next_step(optimizer, bound=bound).values())).weight
                     for bound in ("shortest", "longest"))
        optimizer.step()
        weight = parameter.detach().cpu()
        apart = differing(torch, after.weight, weight)
        inside = (weight >= torch.minimum(low, high)) & (weight <= torch.maximum(low, high))
        found["weight_steps"] += weight.numel()
        found["weights"] += int(apart.sum())
        found["outside"] += int((apart & ~inside).sum())
        for name, ours in zip(after._fields[1:], after[1:]):
            if ours is not None:
                theirs = optimizer.state[parameter][name].cpu()
                found["moments"] += int(differing(torch, ours, theirs).sum())
    return found


def main(out, device="cuda"):
    try:
        import torch

        from halfscope import optimizer as halfscope_optimizer
        from halfscope.torch import steps
    except ImportError as error:
        print(f"optimizers.py: {error}", file=sys.stderr)
        return 3
    if device == "cuda" and not torch.cuda.is_available():
        print("optimizers.py: this PyTorch sees no GPU", file=sys.stderr)
        return 3
    accuracy = {row.name: row.accuracy for row in halfscope_optimizer.rows()}
    results, wrong = [], 0
    for (kind, flags), dtype in itertools.product(KINDS.items(), (torch.float32, torch.bfloat16, torch.float16)):
        for name, make, settings in optimizers(torch):
            if "capturable" in flags and (make is torch.optim.SGD or device == "cpu"):
                continue
            parameter = torch.nn.Parameter(values(torch, 1, -6, 3, dtype, device), requires_grad=False)
            optimizer = make([parameter], **settings, **flags)
            row = steps._row(optimizer.param_groups[0], device, flags.get("foreach"))
            found = compare(torch, optimizer, parameter, halfscope_optimizer.next_step)
            results.append({"row": row, "accuracy": accuracy[row], "dtype": str(dtype)[6:], "optimizer": name, **found})
            print(f"{row}, {results[-1]['dtype']}, {name}: {found}", flush=True)
            wrong += found["outside"] + found["moments"] + (accuracy[row] == "exact") * found["weights"]
    with open(out, "w", encoding="utf-8") as file:
        about = {"torch": torch.__version__, "device": torch.cuda.get_device_name() if device == "cuda" else device}
        json.dump({"schema": 1, **about, "results": results}, file, indent=1)
    print(f"fact: weight-steps = {sum(row['weight_steps'] for row in results)}")
    print(f"fact: values that differ beyond the rows' bounds = {wrong}")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
