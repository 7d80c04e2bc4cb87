# SPDX-License-Identifier: Apache-2.0
"""Compares PyTorch's optimizers on a GPU with the rows of halfscope.optimizer, and keeps their bits.

    optimizers.py [--device cpu] OUT.json VECTORS

Prints a line and writes an object for each implementation: the weight-steps, and the numbers of
weights and moments whose bits differ; of weights also those outside the row's bounds. VECTORS
receives optimizers-DTYPE.json, and powf.json with the powers of bias corrections (docs/gpu.md).
Exit code 1 if a weight is outside, or differs in a row that is exact, or if an optimizer is refused;
3 without PyTorch on a GPU.
"""

import json
import math
import pathlib
import struct
import sys

import modules
import vectors

KINDS = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True},
         "capturable": {"foreach": False, "capturable": True},
         "foreach capturable": {"foreach": True, "capturable": True}}
DTYPES = ("float32", "bfloat16", "float16")
ELEMENTS, STEPS = {"cuda": 2**18 + 3, "cpu": 2**14 + 3}, 8
KEPT = 64  # first elements, whose bits are stored after every step
BETAS, POWERS = (0.4, 0.9, 0.95, 0.99, 0.999), 4096


def optimizers(torch):
    """Yields (name, class, settings)."""
    yield "adamw", torch.optim.AdamW, {"weight_decay": 0.01}
    yield "adam", torch.optim.Adam, {"weight_decay": 0.02, "eps": 1e-6, "betas": (0.4, 0.95)}
    yield "amsgrad", torch.optim.Adam, {"amsgrad": True, "maximize": True}
    yield "sgd", torch.optim.SGD, {"lr": 0.03, "weight_decay": 0.01}
    yield "momentum", torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "dampening": 0.3, "maximize": True}
    yield "nesterov", torch.optim.SGD, {"lr": 0.03, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}


def values(torch, seed, low, high, dtype, device):
    """Returns values with sign and fraction of hashed(seed), exponents from low to high - 1 of
    hashed(seed + 100), rounded to the dtype by PyTorch's CPU."""
    words, exponents = (vectors.hashed(torch, ELEMENTS[device], each) for each in (seed, seed + 100))
    words = (words & 0x807FFFFF) | ((exponents % (high - low) + low + 127) << 23)
    return vectors.binary32(torch, words).to(getattr(torch, dtype)).to(device)


def differing(torch, a, b):
    bits = torch.int32 if a.dtype == torch.float32 else torch.int16
    return (a.view(bits) != b.view(bits)) & ~(a.isnan() & b.isnan())


def results_of(optimizer, parameter, fields):
    """Returns {name: tensor}: the weights and the moments in use."""
    state = optimizer.state[parameter]
    return {"weight": parameter.detach().cpu(), **{name: state[name].cpu() for name in fields}}


def compare(torch, optimizer, parameter, gradients, next_step):
    """Runs STEPS steps. Returns the counts, and the bits after each."""
    found = {"weight_steps": 0, "weights": 0, "moments": 0, "outside": 0}
    kept = []
    for index in range(STEPS):
        parameter.grad = gradients[index % len(gradients)]
        (after,) = next_step(optimizer).values()
        low, high = (next(iter(next_step(optimizer, bound=bound).values())).weight
                     for bound in ("shortest", "longest"))
        optimizer.step()
        ours = {name: one for name, one in zip(after._fields, after) if one is not None}
        theirs = results_of(optimizer, parameter, [name for name in ours if name != "weight"])
        weight = theirs["weight"]
        apart = differing(torch, after.weight, weight)
        inside = (weight >= torch.minimum(low, high)) & (weight <= torch.maximum(low, high))
        found["weight_steps"] += weight.numel()
        found["weights"] += int(apart.sum())
        found["outside"] += int((apart & ~inside).sum())
        found["moments"] += sum(int(differing(torch, ours[name], theirs[name]).sum())
                                for name in ours if name != "weight")
        kept.append({name: {"sha256": vectors.digest(one), **vectors.bits(one[:KEPT])}
                     for name, one in theirs.items()})
    return found, kept


def cases(torch, dtype, device):
    """Yields (names of a case, optimizer, parameter)."""
    for kind, flags in KINDS.items():
        for name, make, settings in optimizers(torch):
            if "capturable" in flags and (make is torch.optim.SGD or device == "cpu"):
                continue
            parameter = torch.nn.Parameter(values(torch, 1, -6, 3, dtype, device), requires_grad=False)
            optimizer = make([parameter], **settings, **flags)
            yield {"optimizer": name, "class": make.__name__, "kind": kind}, optimizer, parameter


def of_dtype(torch, halfscope, dtype, given):
    """Compares all optimizers, and writes their vectors. Returns the results."""
    from halfscope.torch import steps

    accuracy = {row.name: row.accuracy for row in halfscope.optimizer.rows()}
    gradients = [values(torch, seed, -14, 1, dtype, given.device) for seed in (2, 3, 4)]
    results, stored = [], []
    for names, optimizer, parameter in cases(torch, dtype, given.device):
        group = optimizer.param_groups[0]
        row = steps._row(group, given.device, group["foreach"])
        settings = {name: value for name, value in group.items() if name != "params"}
        try:
            found, kept = compare(torch, optimizer, parameter, gradients, halfscope.optimizer.next_step)
        except (RuntimeError, ValueError) as error:  # PyTorch or Halfscope refuses it; the others count
            print(f"fact: refused, {row}, {dtype}, {names['optimizer']} = {' '.join(str(error).split())}")
            results.append({"row": row, "accuracy": accuracy[row], "dtype": dtype, **names, "refused": str(error)})
            continue
        results.append({"row": row, "accuracy": accuracy[row], "dtype": dtype, **names, **found})
        stored.append({**names, "row": row, "settings": settings, "after": kept})
        print(f"{row}, {dtype}, {names['optimizer']}: {found}", flush=True)
    inputs = {"weight": vectors.digest(values(torch, 1, -6, 3, dtype, given.device)),
              "gradients": [vectors.digest(one) for one in gradients]}
    vectors.write(torch, given.device, given.vectors, f"optimizers-{dtype}",
                  {"elements": ELEMENTS[given.device], "sha256": inputs, "cases": stored,
                   "processor": torch.backends.cpu.get_cpu_capability()})
    return results


def nearest(beta, exponent):
    """beta^exponent rounded to binary32, beta a binary32 number."""
    return struct.unpack("<f", struct.pack("<f", math.pow(beta, exponent)))[0]


def powers(torch, given):
    """Stores beta^t, computed as optimizers with capturable=True do. Returns the largest error in
    units in the last place of the correctly rounded power, by each beta."""
    exponents = torch.arange(1, POWERS + 1, dtype=torch.float32, device=given.device)
    stored, worst = {}, {}
    for beta in BETAS:
        power = (beta ** exponents).cpu()
        rounded = torch.tensor(beta, dtype=torch.float32).item()
        true = torch.tensor([nearest(rounded, t) for t in range(1, POWERS + 1)])
        apart = (power.view(torch.int32).long() - true.view(torch.int32).long()).abs()
        stored[str(beta)], worst[str(beta)] = vectors.bits(power), int(apart.max())
    vectors.write(torch, given.device, given.vectors, "powf", {"exponents": [1, POWERS], "powers": stored})
    return worst


def main():
    given, torch, halfscope = modules.arguments(__doc__, "out", "vectors", needs=("torch", "halfscope"))
    if given.device == "cpu":
        torch.set_num_threads(1)  # each thread's part has a tail of its own
    worst = powers(torch, given)
    results = [row for dtype in DTYPES for row in of_dtype(torch, halfscope, dtype, given)]
    about = {"torch": torch.__version__, "device": modules.device_name(torch, given.device)}
    content = {"schema": 1, **about, "powf_ulps": worst, "results": results}
    pathlib.Path(given.out).write_text(json.dumps(content, indent=1), encoding="utf-8")
    compared = [row for row in results if "refused" not in row]
    wrong = sum(row["outside"] + row["moments"] + (row["accuracy"] == "exact") * row["weights"] for row in compared)
    print(f"fact: weight-steps = {sum(row['weight_steps'] for row in compared)}")
    print(f"fact: values that differ beyond the rows' bounds = {wrong}")
    print(f"fact: largest error of beta^t = {max(worst.values())} ulp")
    return int(wrong != 0 or len(compared) < len(results))


if __name__ == "__main__":
    sys.exit(main())
